"""Codebooks are data: checked, written and read back as equal; their words are found by any spelling."""

from pathlib import Path

import numpy as np
import pytest

import obygaze_features.manifest
from obygaze_features.errors import ManifestError
from obygaze_features.manifest import BUILTIN, Instance, Level, Scale, builtin_codebook, find_codebook

OBYGAZE12 = builtin_codebook("obygaze12")


def test_every_codebook_of_the_package_is_listed():
    folder = Path(obygaze_features.manifest.__file__).parent / "codebooks"
    assert {path.name for path in folder.glob("*.codebook.toml")} == {
        f"{name}.codebook.toml" for name in BUILTIN
    }
    assert [builtin_codebook(name).name for name in BUILTIN] == list(BUILTIN)


def test_levels_of_obygaze12_rise_from_easy_negative_to_sure():
    assert OBYGAZE12.level_names == ("EN", "HN", "NS", "S")
    assert [OBYGAZE12.rank(level) for level in OBYGAZE12.level_names] == [0, 1, 2, 3]
    assert OBYGAZE12.labels == ("EN", "HN", "S")
    assert [level.title for level in OBYGAZE12.levels] == [
        "Easy Negative",
        "Hard Negative",
        "Not Sure",
        "Sure",
    ]


def test_the_concepts_of_obygaze12_are_table_1():
    visual = OBYGAZE12.concepts[:8]
    assert tuple(concept.name for concept in visual) == OBYGAZE12.visual_concepts
    assert OBYGAZE12.non_visual_concepts == ("Speech", "Voice", "Soundtrack", "Narratology")
    assert len(OBYGAZE12.sub_constructs) == 5
    assert [len(concept.instances) for concept in visual] == [3, 2, 4, 6, 4, 1, 1, 1]
    assert all(instance.examples for concept in visual for instance in concept.instances)
    assert "CVPR 2024, Table 1" in OBYGAZE12.source


def test_mobygaze_has_the_same_levels_and_concepts_and_its_own_thesaurus():
    moby = builtin_codebook("mobygaze")
    assert moby.levels == OBYGAZE12.levels
    assert moby.concept_names == OBYGAZE12.concept_names
    assert moby.visual_concepts == OBYGAZE12.visual_concepts
    assert Instance("Woman off screen in action scene") in moby.concepts[0].instances
    assert moby.concepts[8].instances[-1] == Instance("Mansplaining")
    assert moby.policies == ("raw", "paper")


@pytest.mark.parametrize(
    ("cell", "valence", "arousal"),
    [
        ("-0.16", "negative", "calm"),
        ("-0.15", "neutral", "neutral"),
        ("0", "neutral", "neutral"),
        ("0.15", "neutral", "neutral"),
        ("0.1500001", "positive", "active"),
        ("Neutral", "neutral", "neutral"),
        ("", None, None),
    ],
)
def test_scores_of_mediaeval_fall_into_classes_with_both_limits_neutral(cell, valence, arousal):
    codebook = builtin_codebook("mediaeval15")
    assert codebook.scale("valence").level_of(cell) == valence
    assert codebook.scale("arousal").level_of(cell) == arousal


@pytest.mark.parametrize("cell", ["high", "nan", "1_0"])
def test_a_cell_that_is_no_level_of_the_scale_is_refused(cell):
    with pytest.raises(ManifestError, match="no level of valence"):
        builtin_codebook("mediaeval15").scale("valence").level_of(cell)
    with pytest.raises(ManifestError, match=r"expected low, high$"):
        Scale("size", (Level("low"), Level("high"))).level_of("1")


def test_one_cut_belongs_to_the_upper_level():
    assert Scale("size", (Level("low"), Level("high")), (1.0,)).level_of("1") == "high"


def test_the_digests_of_built_in_codebooks_do_not_change_unnoticed():
    """A new digest needs a new version in the file: runs and models made with the old one tell them apart."""
    digests = {name: builtin_codebook(name).digest()[:12] for name in BUILTIN}
    assert digests == {"obygaze12": "b71176ad75a2", "mobygaze": "9081efebf39f", "mediaeval15": "babe279c2a1d"}


# Words


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Easy Neg", "EN"),
        ("Easy Negative", "EN"),
        ("Hard Neg", "HN"),
        ("Not sure", "NS"),
        (" Sure ", "S"),
        ("S", "S"),
    ],
)
def test_published_spellings_of_levels_are_read(text, level):
    assert OBYGAZE12.level_spelled(text) == level


@pytest.mark.parametrize(
    ("text", "concept"),
    [
        ("Type of plan", "Type of shot"),
        (" Clothes", "Clothing"),
        ("Exp of  emotion", "Expression of emotion"),
        (" Exp of emotion", "Expression of emotion"),
        ("Exp. of emotion", "Expression of emotion"),
        ("Activities", "Activity"),
        ("Body", "Body"),
        (" Narratology", "Narratology"),
    ],
)
def test_published_spellings_of_concepts_are_read(text, concept):
    assert OBYGAZE12.concept_spelled(text) == concept


@pytest.mark.parametrize(
    ("read", "wrong", "right"),
    [
        (OBYGAZE12.level_named, "Sure", "S"),
        (OBYGAZE12.concept_named, "Clothes", "Clothing"),
        (OBYGAZE12.task, "hns", "hn_s"),
        (builtin_codebook("mediaeval15").scale, "valance", "valence"),
        (find_codebook, "obygaze1", "obygaze12"),
        (builtin_codebook, "mobygase", "mobygaze"),
    ],
)
def test_exact_names_only_are_taken_and_suggested(read, wrong, right):
    with pytest.raises(ManifestError, match=rf"{wrong}.*{right!r}"):
        read(wrong)


def test_a_word_like_no_other_gets_the_whole_list_and_the_codebooks_name():
    with pytest.raises(ManifestError):
        OBYGAZE12.concept_spelled("qqqq")
    with pytest.raises(ManifestError, match="'Gun'"):
        builtin_codebook("mediaeval15").concept_named("Gun")


def test_concepts_are_put_in_canonical_order_each_once():
    assert OBYGAZE12.in_order(["Speech", "Body", "Look", "Body"]) == ("Look", "Body", "Speech")
    assert OBYGAZE12.visual(OBYGAZE12.concept_names) == OBYGAZE12.visual_concepts


def test_tasks_hold_levels_and_make_labels():
    task = OBYGAZE12.task("enhn_s")
    levels = np.array(["EN", "HN", "NS", "S"])
    assert task.title == "(EN u HN) vs S"
    assert task.levels == ("EN", "HN", "S")
    assert task.holds(levels).tolist() == [True, True, False, True]
    assert task.labels(levels).tolist() == [0, 0, 0, 1]
