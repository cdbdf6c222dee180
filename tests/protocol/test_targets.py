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
    given = [("EN", ()), ("HN", ("Body",)), ("NS", ("Look",)), ("S", ("Body", "Voice")), (None, ())]
    clips = [Clip(f"c{n}", "m", level=level, concepts=concepts) for n, (level, concepts) in enumerate(given)]
    return labels_of(Manifest(tuple(clips), tmp_path))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("en_s", "levels", [0, -1, -1, 1, -1]),
        ("hn_s", "levels", [-1, 0, -1, 1, -1]),
        ("enhn_s", "levels", [0, 0, -1, 1, -1]),
        ("levels", "ordinal", [0, 1, -1, 2, -1]),
        ("concept:Body", "concept", [0, 1, -1, 1, -1]),
        ("concept:body", "concept", [0, 1, -1, 1, -1]),
    ],
)
def test_a_clip_is_labelled_by_its_level_or_concept_or_not_asked(labels, name, kind, expected):
    target = find_target(name, CODEBOOK)
    assert target.kind == kind
    assert target.of(labels).tolist() == expected
    assert target.n_classes == max(expected) + 1
    assert NOT_ASKED == -1


def test_levels_make_a_task_that_the_codebook_does_not_name(labels):
    target = level_target(("en",), ("HN", "S"), CODEBOOK)
    assert (target.name, target.kind) == ("EN-vs-HN+S", "levels")
    assert target.of(labels).tolist() == [0, 1, -1, 1, -1]


def test_only_visual_concepts_are_columns(labels):
    assert labels.concepts == CODEBOOK.visual_concepts
    assert labels.present[:, labels.concepts.index("Body")].tolist() == [False, True, False, True, False]
    assert labels.take(np.array([3])).present.sum() == 1


def test_a_scale_of_the_codebook_is_ordered_and_two_levels_are_two_classes(tmp_path):
    three = tuple(Level(name) for name in ("low", "middle", "high"))
    codebook = Codebook(
        name="moods",
        version="1",
        levels=(Level("no"), Level("yes")),
        scales=(Scale("valence", three), Scale("loud", (Level("quiet"), Level("noisy")))),
    )
    clips = tuple(
        Clip(f"c{n}", "m", level=level, extras={"valence": valence, "loud": loud})
        for n, (level, valence, loud) in enumerate(
            [("yes", "high", "quiet"), ("no", "", "noisy"), (None, "low", "")]
        )
    )
    labels = labels_of(Manifest(clips, tmp_path, codebook=codebook))
    valence = find_target("scale:valence", codebook)
    assert (valence.kind, valence.n_classes, valence.title) == ("ordinal", 3, "low < middle < high")
    assert valence.of(labels).tolist() == [2, -1, 0]
    loud = find_target("scale:loud", codebook)
    assert (loud.kind, loud.of(labels).tolist()) == ("levels", [0, 1, -1])
    levels = find_target("levels", codebook)
    assert (levels.kind, levels.of(labels).tolist()) == ("levels", [1, 0, -1])
    bare = labels_of(Manifest((Clip("c0", "m"),), tmp_path, codebook=codebook))
    with pytest.raises(ProtocolError, match=r"valence.*scale:valence"):
        valence.of(bare)


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


@pytest.mark.parametrize("name", ["task 'hn_ss'.*hn_s", "concept 'Bodyy'.*Body", "scale 'valence'"])
def test_what_the_codebook_lacks_is_refused_with_the_nearest_name(name):
    kind, asked = name.split("'")[:2]
    asked = asked if kind == "task " else f"{kind.strip()}:{asked}"
    with pytest.raises(ManifestError, match=f"{name}.*'obygaze12'"):
        find_target(asked, CODEBOOK)


@pytest.mark.parametrize(
    ("sides", "error", "place"),
    [
        ((("EN",), ("SS",)), ManifestError, "'SS'.*'obygaze12'"),
        ((("EN",), ()), ProtocolError, "--negative and --positive"),
        ((("EN", "S"), ("S",)), ProtocolError, "'S'"),
        ((("NS",), ("S",)), ProtocolError, "'NS'.*'obygaze12'"),
    ],
)
def test_levels_that_make_no_task_are_refused(sides, error, place):
    with pytest.raises(error, match=place):
        level_target(*sides, CODEBOOK)


def test_training_and_test_are_chosen_by_name_or_levels_and_the_only_task_by_default():
    train, test = choose_targets(CODEBOOK, None, "hn_s", sides=(("EN", "HN"), ("S",)))
    assert (train.name, test.name) == ("EN+HN-vs-S", "hn_s")
    with pytest.raises(ProtocolError, match=r"--task .*--negative and --positive"):
        choose_targets(CODEBOOK, "hn_s", None, sides=(("EN",), ("S",)))
    with pytest.raises(ProtocolError, match=r"--task.*en_s, hn_s"):
        choose_targets(CODEBOOK, None, None)


def test_who_labelled_is_named_where_every_clip_says_it():
    """Of clips of which some say nothing, nobody is named: they would be called the labels of the others."""
    clips = [Clip(f"c{n}", "m", level="S", annotator="AB") for n in range(3)]
    assert labels_of(Manifest(tuple(clips), Path())).annotators == ("AB",)
    unsaid = Clip("c3", "m", level="HN")
    assert labels_of(Manifest((*clips, unsaid), Path())).annotators == ()
    unlabelled = Clip("c3", "m")
    assert labels_of(Manifest((*clips, unlabelled), Path())).annotators == ("AB",)
