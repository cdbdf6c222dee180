"""Levels are ordered, concepts have one name each, and published spellings find them."""

import pytest

from obygaze_features.manifest import CONCEPTS, LEVELS, VISUAL_CONCEPTS, Level, ManifestError, thesaurus
from obygaze_features.manifest.vocabulary import (
    concept_named,
    concept_spelled,
    in_order,
    level_named,
    level_spelled,
    visual,
)


def test_levels_rise_from_easy_negative_to_sure():
    assert [level.value for level in LEVELS] == ["EN", "HN", "NS", "S"]
    assert [level.rank for level in LEVELS] == [0, 1, 2, 3]


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
    assert level_spelled(text) is Level(level)


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
    assert concept_spelled(text) == concept


@pytest.mark.parametrize(
    ("read", "wrong", "right"), [(level_named, "Sure", "S"), (concept_named, "Clothes", "Clothing")]
)
def test_a_manifest_takes_exact_names_only_and_suggests_them(read, wrong, right):
    with pytest.raises(ManifestError, match=rf"{wrong!r} \(did you mean {right!r}"):
        read(wrong)


def test_a_word_like_no_other_gets_the_whole_list():
    with pytest.raises(ManifestError, match=r"expected one of Type of shot, .*, Narratology"):
        concept_spelled("qqqq")


def test_concepts_are_put_in_canonical_order_each_once():
    assert in_order(["Speech", "Body", "Look", "Body"]) == ("Look", "Body", "Speech")
    assert visual(CONCEPTS) == VISUAL_CONCEPTS


def test_the_thesaurus_is_table_1():
    table = thesaurus()
    assert tuple(concept.name for concept in table.concepts) == VISUAL_CONCEPTS
    assert len(table.sub_constructs) == 5
    assert [len(concept.instances) for concept in table.concepts] == [3, 2, 4, 6, 4, 1, 1, 1]
    assert all(instance.examples for concept in table.concepts for instance in concept.instances)
    assert "CVPR 2024, Table 1" in table.source
