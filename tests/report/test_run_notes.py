"""The notes of a report say under which conditions its numbers were computed."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_models import evaluate
from obygaze_models.dataset.dataset import Exclusion
from obygaze_models.report import number
from obygaze_models.report.run_notes import limits, notes
from tests.conftest import dataset


@pytest.fixture(scope="module")
def run():
    """A run of one model on 80 clips of four films."""
    rng = np.random.default_rng(0)
    movies = np.repeat([f"tt{number}" for number in range(4)], 20)
    clips = dataset(rng.normal(size=(80, 6)), np.tile(["EN", "S"], 40), movies)
    return evaluate(clips, ["linear"], task="en_s")


@pytest.mark.parametrize(
    ("record", "note"),
    [
        ({"seeds": [3]}, "seed 3"),
        ({"seeds": [3, 4]}, "seeds 3 to 4"),
        ({"protocol": "strict"}, "protocol strict"),
        ({"reduced_by": "mean over tokens"}, "tokens reduced by mean over tokens"),
        ({"untrained": True}, "UNTRAINED"),
    ],
    ids=["one seed", "two seeds", "protocol", "reduced tokens", "random weights"],
)
def test_notes_say_how_numbers_were_computed(run, record, note):
    """Whoever reads numbers of random weights, or of other tokens, must not take them for those of a paper.

    The note stands there only where it is true: another run has other seeds, protocol and features.
    """
    other = {"seeds": [0], "protocol": "paper", "untrained": False}

    assert any(note in line for line in notes(replace(run, record=run.record | record)))
    assert not any(note in line for line in notes(replace(run, record=run.record | other)))


def test_a_prevalence_is_rounded_as_in_the_tables_below(run):
    """One clip of 16 is positive: .0625, of which tables write 0.063."""
    of_few = run.record | {"prevalence": {"en_s": 0.0625}}
    assert number(0.0625) == "0.063"
    assert any(note.endswith("prevalence 0.063") for note in notes(replace(run, record=of_few)))


def test_clips_of_videos_that_could_be_read_in_part_are_a_limit(run):
    """The limits of a report are lines on what may make its numbers wrong.

    Three clips have fewer frames than they should. This adds one line to those of the same run without them.
    """
    clips = run.record["clips"] | {"partial": 3}
    run_with_partial_clips = replace(run, record=run.record | {"clips": clips})

    (added_line,) = set(limits(run_with_partial_clips)) - set(limits(run))

    assert added_line.startswith("3 clips are partial")


def test_the_counts_of_clips_add_up_to_those_of_the_manifest():
    """Of 84 clips 40 are tested (S and HN) and 40 are of EN; one of S and three of EN have no features.

    A clip of EN is of another level than those asked for, with features or without.
    """
    rng = np.random.default_rng(0)
    movies = np.repeat([f"tt{number}" for number in range(4)], 20)
    data = dataset(rng.normal(size=(80, 6)), np.tile(["EN", "S", "EN", "HN"], 20), movies)
    excluded = tuple(
        Exclusion(f"x{number}", level, "not in the store") for number, level in enumerate(["S", *["EN"] * 3])
    )
    data = replace(data, excluded=excluded, counts={"manifest": 84, "unlabelled": 0, "in_no_task": 0})

    run = evaluate(data, ["linear"], task="hn_s")

    assert run.record["clips"]["tested"] == 40
    assert "left out of 84 clips in the manifest: 43 of other levels, 1 without features" in notes(run)


def test_a_name_with_control_characters_stays_one_line(run):
    """The name of a network is of a stranger's file, and must not write lines of its own into a report."""
    named = replace(run, record=run.record | {"backbone": "net\nprotocol strict", "untrained": True})
    for line in (*notes(named), *limits(named)):
        assert "\n" not in line
