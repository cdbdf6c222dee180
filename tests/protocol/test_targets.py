"""What a model is asked: tasks by name or by levels, concepts, ordered levels and scales of any codebook."""

from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Codebook, Level, Manifest, Scale, builtin_codebook
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import find_target, labels_of, level_target
from obygaze_models.protocol.targets import NOT_ASKED, choose_targets

OBYGAZE12 = builtin_codebook("obygaze12")


@pytest.fixture
def labels_of_five_clips(tmp_path):
    """Labels of five clips: EN; HN with Body; NS with Look; S with Body and Voice; a clip without level."""
    levels_and_concepts = [
        ("EN", ()),
        ("HN", ("Body",)),
        ("NS", ("Look",)),
        ("S", ("Body", "Voice")),
        (None, ()),
    ]
    clips = []
    for number, (level, concepts) in enumerate(levels_and_concepts):
        clips.append(Clip(f"c{number}", "m", level=level, concepts=concepts))
    return labels_of(Manifest(tuple(clips), tmp_path))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),  # of the five clips: negative 0, positive 1, not asked -1
    [
        ("en_s", "levels", [0, -1, -1, 1, -1]),
        ("hn_s", "levels", [-1, 0, -1, 1, -1]),
        ("enhn_s", "levels", [0, 0, -1, 1, -1]),
        ("levels", "ordinal", [0, 1, -1, 2, -1]),
        ("concept:Body", "concept", [0, 1, -1, 1, -1]),
        ("concept:body", "concept", [0, 1, -1, 1, -1]),
    ],
)
def test_the_level_or_concepts_of_a_clip_say_its_label_or_that_it_is_not_asked(
    labels_of_five_clips, name, kind, expected
):
    """The clips are: EN; HN with Body; NS with Look; S with Body and Voice; and one without a level.

    A task names two sides: "enhn_s" asks whether a clip is S (1), or EN or HN (0). Clips of other levels are
    not asked (-1), and NS, not sure, never is. The task "levels" has the classes EN, HN and S in order.
    """
    target = find_target(name, OBYGAZE12)

    assert target.kind == kind
    assert target.of(labels_of_five_clips).tolist() == expected
    assert target.n_classes == max(expected) + 1
    assert NOT_ASKED == -1


def test_any_levels_in_any_letters_make_a_task(labels_of_five_clips):
    """The levels of the five clips are EN, HN, NS, S, and none."""
    target = level_target(negatives=("en",), positives=("HN", "S"), codebook=OBYGAZE12)

    assert target.name == "EN-vs-HN+S"
    assert target.kind == "levels"
    assert target.of(labels_of_five_clips).tolist() == [0, 1, NOT_ASKED, 1, NOT_ASKED]


def test_only_visual_concepts_are_columns(labels_of_five_clips):
    """Body is in the second and the fourth clip. The fourth has Voice, too, which is heard and no column."""
    labels = labels_of_five_clips
    assert labels.concepts == OBYGAZE12.visual_concepts

    column_of_body = labels.present[:, labels.concepts.index("Body")]
    assert column_of_body.tolist() == [False, True, False, True, False]
    fourth_clip = labels.take(np.array([3]))
    assert fourth_clip.present.sum() == 1


MOODS = Codebook(
    name="moods",
    version="1",
    levels=(Level("no"), Level("yes")),
    scales=(
        Scale("valence", (Level("low"), Level("middle"), Level("high"))),
        Scale("loud", (Level("quiet"), Level("noisy"))),
    ),
)


@pytest.mark.parametrize(
    ("name", "kind", "n_classes", "expected"),
    [
        ("scale:valence", "ordinal", 3, [2, NOT_ASKED, 0]),
        ("scale:loud", "levels", 2, [0, 1, NOT_ASKED]),
        ("levels", "levels", 2, [1, 0, NOT_ASKED]),
    ],
    ids=["a scale of three levels", "a scale of two levels", "the two levels of the codebook"],
)
def test_two_levels_are_a_task_of_two_classes_and_three_an_ordinal_one(
    tmp_path, name, kind, n_classes, expected
):
    """The codebook `MOODS` has the levels no and yes, and two scales.

    Valence is low (0), middle (1) or high (2), and loud is quiet (0) or noisy (1). A clip with an empty cell
    is not asked.
    """
    clips = (
        Clip("c0", "m", level="yes", extras={"valence": "high", "loud": "quiet"}),
        Clip("c1", "m", level="no", extras={"valence": "", "loud": "noisy"}),
        Clip("c2", "m", level=None, extras={"valence": "low", "loud": ""}),
    )
    labels = labels_of(Manifest(clips, tmp_path, codebook=MOODS))

    target = find_target(name, MOODS)

    assert target.kind == kind
    assert target.n_classes == n_classes
    assert target.of(labels).tolist() == expected


def valence_by(annotator, clip_id, cell, *, level=None, model=""):
    """A row in which an annotator answers for the scale valence of `MOODS`, and perhaps with a level."""
    return Clip(clip_id, "m", annotator=annotator, level=level, extras={"valence": cell, "model": model})


@pytest.mark.parametrize("level", ["yes", None], ids=["beside levels", "on the scale alone"])
def test_an_annotator_has_the_ranks_that_he_gave_and_no_other(tmp_path, level):
    """Ada and Bo differ on c0. Ada alone judged c1, and Bo alone c2."""
    rows = (
        valence_by("Ada", "c0", "high", level=level),
        valence_by("Bo", "c0", "low", level=level),
        valence_by("Ada", "c1", "high", level=level),
        valence_by("Bo", "c2", "low", level=level),
    )
    labels = labels_of(Manifest(rows, tmp_path, codebook=MOODS))

    valence = find_target("scale:valence", MOODS)

    assert valence.of(labels.experts["Ada"]).tolist() == [2, 2, NOT_ASKED]
    assert valence.of(labels.experts["Bo"]).tolist() == [0, NOT_ASKED, 0]
    assert labels.annotators == ("Ada", "Bo")


@pytest.mark.parametrize("level", ["yes", None], ids=["beside levels", "on the scale alone"])
def test_ranks_of_a_machine_are_not_taken_for_those_of_people(tmp_path, level):
    """The machine gpt ranks the clips c0 and c1 high on the scale valence. Bo ranks c0 and c2 low.

    The ranks of the clips must be Bo's: low (0, the lowest of three) for c0 and c2, and none for c1. The
    machine is counted with its two clips.
    """
    rows = (
        valence_by("gpt", "c0", "high", level=level, model="gpt"),
        valence_by("Bo", "c0", "low", level=level),
        valence_by("gpt", "c1", "high", level=level, model="gpt"),
        valence_by("Bo", "c2", "low", level=level),
    )
    labels = labels_of(Manifest(rows, tmp_path, codebook=MOODS))

    valence = find_target("scale:valence", MOODS)

    low = 0
    assert labels.clip_ids.tolist() == ["c0", "c1", "c2"]
    assert valence.of(labels).tolist() == [low, NOT_ASKED, low]
    assert labels.machines == {"gpt": 2}


def test_the_title_of_an_ordinal_target_is_its_levels_in_order():
    """The codebook `MOODS` has a scale of valence, with the levels low, middle and high."""
    assert find_target("scale:valence", MOODS).title == "low < middle < high"


def test_a_scale_of_which_a_manifest_has_no_column_is_refused(tmp_path):
    """The codebook `MOODS` has a scale of valence, and the only clip no cell of that name."""
    without_columns = labels_of(Manifest((Clip("c0", "m"),), tmp_path, codebook=MOODS))
    target = find_target("scale:valence", MOODS)

    with pytest.raises(ProtocolError, match=r"valence.*scale:valence"):
        target.of(without_columns)


def test_a_concept_that_is_not_visual_is_a_target_and_no_column_of_concept_models(tmp_path):
    """Speech is heard. Clip a has it, b has none, and c, without a level, was not asked."""
    clips = (
        Clip("a", "m", level="S", concepts=("Speech", "Body")),
        Clip("b", "m", level="EN"),
        Clip("c", "m"),
    )
    labels = labels_of(Manifest(clips, tmp_path))

    target = find_target("concept:speech", OBYGAZE12)

    assert target.name == "concept:Speech"
    assert target.title == "Speech (not visual), present or not"
    assert target.of(labels).tolist() == [1, 0, NOT_ASKED]
    b_and_a = labels.take(np.array([1, 0]))
    assert target.of(b_and_a).tolist() == [0, 1]
    assert "Speech" not in labels.concepts


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hn_ss", "task 'hn_ss'.*hn_s.*'obygaze12'"),
        ("concept:Bodyy", "concept 'Bodyy'.*Body.*'obygaze12'"),
        ("scale:valence", "scale 'valence'.*'obygaze12'"),
    ],
)
def test_a_task_concept_or_scale_that_the_codebook_lacks_is_refused_with_the_nearest_name(name, message):
    """The codebook obygaze12 has a task hn_s and a concept Body, and no scale."""
    with pytest.raises(ManifestError, match=message):
        find_target(name, OBYGAZE12)


@pytest.mark.parametrize(
    ("negative", "positive", "error", "message"),
    [
        (("EN",), ("SS",), ManifestError, "'SS'.*'obygaze12'"),
        (("EN",), (), ProtocolError, "--negative and --positive"),
        (("EN", "S"), ("S",), ProtocolError, "'S'"),
        (("NS",), ("S",), ProtocolError, "'NS'.*'obygaze12'"),
    ],
    ids=["an unknown level", "no positive level", "a level on both sides", "the level of unsure clips"],
)
def test_levels_that_make_no_task_are_refused(negative, positive, error, message):
    """The levels of the codebook obygaze12 are EN, HN, NS (not sure) and S."""
    with pytest.raises(error, match=message):
        level_target(negative, positive, OBYGAZE12)


def test_a_model_may_be_trained_on_chosen_levels_and_tested_on_a_named_task():
    """The two sides are the negative levels and the positive ones."""
    negative_and_positive = (("EN", "HN"), ("S",))

    train, test = choose_targets(OBYGAZE12, task=None, test="hn_s", sides=negative_and_positive)

    assert train.name == "EN+HN-vs-S"
    assert test.name == "hn_s"


def test_a_named_task_and_chosen_levels_at_once_are_refused():
    """The task hn_s tells HN from S; the levels that are chosen beside it are EN and S."""
    negative_and_positive = (("EN",), ("S",))

    with pytest.raises(ProtocolError, match=r"--task .*--negative and --positive"):
        choose_targets(OBYGAZE12, task="hn_s", test=None, sides=negative_and_positive)


def test_neither_a_task_nor_levels_are_refused_with_the_tasks_there_are():
    """The codebook obygaze12 has the tasks en_s, hn_s and others."""
    with pytest.raises(ProtocolError, match=r"--task.*en_s, hn_s"):
        choose_targets(OBYGAZE12, task=None, test=None)


CLIPS_OF_AB = tuple(Clip(f"c{number}", "m", level="S", annotator="AB") for number in range(3))
"""Three clips that AB called S."""


@pytest.mark.parametrize(
    ("clips", "annotators"),
    [
        (CLIPS_OF_AB, ("AB",)),
        ((*CLIPS_OF_AB, Clip("c3", "m", level="HN")), ()),
        ((*CLIPS_OF_AB, Clip("c3", "m")), ("AB",)),
    ],
    ids=["all by one annotator", "a label of nobody", "a clip without a label"],
)
def test_annotators_are_named_only_where_every_label_has_one(clips, annotators):
    """AB labelled three clips. A fourth may have a label of nobody, or none at all."""
    labels = labels_of(Manifest(clips, Path()))

    assert labels.annotators == annotators
