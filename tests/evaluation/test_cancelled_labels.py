"""Labels that cancel each other teach nothing; labels that go against each other do not tell who is right."""

from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.experts import agree_by_chance

NOT_ASKED = -1
N_CLIPS = 80


def plant_opposite_annotators(folder, *, n_agreed):
    """Plant 80 clips that A and B label EN or S: the first `n_agreed` alike, and all others oppositely.

    They are of four films, and their features know the labels of A.
    """
    generator = np.random.default_rng(0)
    movie_of = {}
    rows = []
    X = []
    for number in range(N_CLIPS):
        clip_id = f"clip{number:02}"
        movie_of[clip_id] = f"film{number % 4}"
        is_positive = number % 3 == 0
        is_agreed = number < n_agreed
        X.append(generator.normal(size=3) + 2 * is_positive)
        level_of_a, level_of_b = ("S", "EN") if is_positive else ("EN", "S")
        if is_agreed:
            level_of_b = level_of_a
        rows.append(Clip(clip_id, movie_of[clip_id], "", level=level_of_a, annotator="A"))
        rows.append(Clip(clip_id, movie_of[clip_id], "", level=level_of_b, annotator="B"))
    store = seal_arrays(folder / "store", movie_of, {"lab": {"pooled": np.array(X, np.float32)}})
    return of.open_store(store), Manifest(tuple(rows), Path())


def evaluate(store, manifest, experts):
    return om.evaluate(om.load_dataset(store, manifest), ["linear"], "en_s", experts=experts)


@pytest.mark.parametrize("experts", ["soft", "noisy"])
def test_two_annotators_of_opposite_labels_are_refused(tmp_path, experts):
    """Every clip is as much positive as negative: a model would rank clips by the rounding of its sums."""
    store, manifest = plant_opposite_annotators(tmp_path, n_agreed=0)

    with pytest.raises(ProtocolError, match=r"'A', 'B' cancel each other: on every judged clip \(80\).*each"):
        evaluate(store, manifest, experts)


def test_of_two_annotators_of_opposite_labels_each_is_learnt_by_a_model_of_its_own(tmp_path):
    """A and B label all 80 clips oppositely, so that one model of both is refused.

    With `experts="each"`, as the refusal proposes, there is a model of A's labels and one of B's.
    """
    store, manifest = plant_opposite_annotators(tmp_path, n_agreed=0)

    run = evaluate(store, manifest, "each")

    assert {"linear@A", "linear@B"} <= set(run.predictions.table["model"])


def test_a_run_notes_that_labels_do_not_tell_who_is_right_if_annotators_agree_less_than_by_chance(tmp_path):
    """A and B give 15 of 80 clips the same label, where about 40 would be the same by chance.

    Trained on "noisy" labels, a model estimates how often each annotator is right. A who is mostly right and
    B who is mostly wrong would label as they did, and so would B who is right and A who is wrong. The run's
    record says that the labels do not tell which of these holds: `noise_untold`.
    """
    store, manifest = plant_opposite_annotators(tmp_path, n_agreed=15)

    run = evaluate(store, manifest, "noisy")
    om.write_run(run, tmp_path / "run")

    assert run.record["noise_untold"]
    assert om.read_run(tmp_path / "run").record["noise_untold"]


def test_who_is_right_is_told_by_annotators_who_mostly_agree(tmp_path):
    """A and B give 70 of 80 clips the same label, so the record of the run has no entry `noise_untold`.

    Trained on "noisy" labels, a model estimates how often each annotator is right; the entry would say that
    the labels do not tell it.
    """
    store, manifest = plant_opposite_annotators(tmp_path, n_agreed=70)

    run = evaluate(store, manifest, "noisy")

    assert "noise_untold" not in run.record


@pytest.mark.parametrize(
    ("calls", "by_chance"),
    [
        ([[0, 0, 1, 1], [0, 0, 1, 1]], False),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], True),
        ([[0, 0, 1, 1], [0, 1, 0, 1]], True),
        ([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 0]], False),
        ([[0, 1, NOT_ASKED, NOT_ASKED], [NOT_ASKED, NOT_ASKED, 1, 0]], False),
    ],
    ids=[
        "equal on all clips",
        "opposite on all clips",
        "equal on two clips of four, as by chance",
        "two are equal, and the third goes with them on three clips of four",
        "no clip is shared, so nothing is known of agreement",
    ],
)
def test_agreement_by_chance_is_seen_on_shared_clips(calls, by_chance):
    """Two or three annotators call four clips positive (1) or negative (0); `calls` has a row for each.

    They agree by chance if their calls do not go together on the clips that both of a pair judged.
    """
    assert agree_by_chance(np.array(calls)) == by_chance
