"""What a model is asked: tasks by name or by levels, concepts, ordered levels and scales of any codebook."""

from pathlib import Path

import numpy as np
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Codebook, Level, Manifest, Scale, builtin_codebook
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import find_target, labels_of, level_target
from obygaze_models.protocol.targets import NOT_ASKED, choose_targets

CODEBOOK = builtin_codebook("obygaze12")


@pytest.fixture
def labels(tmp_path):
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
def test_the_level_or_concepts_of_a_clip_say_its_label_or_that_it_is_not_asked(labels, name, kind, expected):
    target = find_target(name, CODEBOOK)
    assert target.kind == kind
    assert target.of(labels).tolist() == expected
    assert target.n_classes == max(expected) + 1
    assert NOT_ASKED == -1


def test_any_levels_in_any_letters_make_a_task(labels):
    target = level_target(("en",), ("HN", "S"), CODEBOOK)
    assert (target.name, target.kind) == ("EN-vs-HN+S", "levels")
    assert target.of(labels).tolist() == [0, 1, -1, 1, -1]


def test_only_visual_concepts_are_columns(labels):
    assert labels.concepts == CODEBOOK.visual_concepts
    assert labels.present[:, labels.concepts.index("Body")].tolist() == [False, True, False, True, False]
    assert labels.take(np.array([3])).present.sum() == 1


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
    clips = (
        Clip("c0", "m", level="yes", extras={"valence": "high", "loud": "quiet"}),
        Clip("c1", "m", level="no", extras={"valence": "", "loud": "noisy"}),
        Clip("c2", "m", level=None, extras={"valence": "low", "loud": ""}),
    )
    target = find_target(name, MOODS)
    assert (target.kind, target.n_classes) == (kind, n_classes)
    assert target.of(labels_of(Manifest(clips, tmp_path, codebook=MOODS))).tolist() == expected
    assert find_target("scale:valence", MOODS).title == "low < middle < high"


def test_a_scale_of_which_a_manifest_has_no_column_is_refused(tmp_path):
    without_columns = labels_of(Manifest((Clip("c0", "m"),), tmp_path, codebook=MOODS))
    with pytest.raises(ProtocolError, match=r"valence.*scale:valence"):
        find_target("scale:valence", MOODS).of(without_columns)


def test_a_concept_that_is_not_visual_is_a_target_and_no_column_of_concept_models(tmp_path):
    clips = [
        Clip("a", "m", level="S", concepts=("Speech", "Body")),
        Clip("b", "m", level="EN"),
        Clip("c", "m"),
    ]
    labels = labels_of(Manifest(tuple(clips), tmp_path))
    target = find_target("concept:speech", CODEBOOK)
    assert (target.name, target.title) == ("concept:Speech", "Speech (not visual), present or not")
    assert target.of(labels).tolist() == [1, 0, NOT_ASKED]
    assert target.of(labels.take(np.array([1, 0]))).tolist() == [0, 1]
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
    with pytest.raises(ManifestError, match=message):
        find_target(name, CODEBOOK)


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
    with pytest.raises(error, match=message):
        level_target(negative, positive, CODEBOOK)


def test_a_model_may_be_trained_on_chosen_levels_and_tested_on_a_named_task():
    train, test = choose_targets(CODEBOOK, None, "hn_s", sides=(("EN", "HN"), ("S",)))
    assert (train.name, test.name) == ("EN+HN-vs-S", "hn_s")
    with pytest.raises(ProtocolError, match=r"--task .*--negative and --positive"):
        choose_targets(CODEBOOK, "hn_s", None, sides=(("EN",), ("S",)))
    with pytest.raises(ProtocolError, match=r"--task.*en_s, hn_s"):
        choose_targets(CODEBOOK, None, None)


CLIPS_OF_AB = tuple(Clip(f"c{number}", "m", level="S", annotator="AB") for number in range(3))


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
    assert labels_of(Manifest(clips, Path())).annotators == annotators
