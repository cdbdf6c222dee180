"""A card that no training writes is refused in one line: its classes, its numbers, or its names."""

import json
import zipfile
from pathlib import Path

import pytest

import obygaze_models
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import parse_card

ZOO = Path(obygaze_models.__file__).parent / "zoo"
FROZEN = Path(__file__).parent / "frozen"


def card_of(model):
    """Read the card of a model file as JSON values."""
    with zipfile.ZipFile(model) as file:
        return json.loads(file.read("card.json"))


@pytest.fixture
def good_card():
    """The card, as JSON values, of a model of two levels that comes with the package."""
    return card_of(ZOO / "words-s-1.0.0.model")


def message_that_refuses(card):
    """Hold that a card is refused in one line, which begins with the file's name, and return that line."""
    with pytest.raises(ModelError) as refused:
        parse_card(card, "a.model")
    message = str(refused.value)
    assert message.startswith("a.model: the card: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("model", [*ZOO.glob("*.model"), *FROZEN.glob("*.model")], ids=lambda path: path.stem)
def test_the_card_of_every_model_that_was_trained_is_read(model):
    """A model is a file; in it is a card, a JSON document that says what it is and how it was trained.

    The models of the zoo and those that older releases wrote must have cards that today's code accepts.
    """
    card = card_of(model)

    assert parse_card(card, model.name).title == card["title"]


@pytest.mark.parametrize(
    ("classes", "found"),
    [
        ([], "found 0 classes"),
        ([["S"]], "found 1 class"),
        ([[], ["S"]], "a class should have a level or more"),
        ([["S"], ["S"]], "the level 'S' is in 2 classes"),
        ([["EN", "HN"], ["S", "HN"]], "the level 'HN' is in 2 classes"),
    ],
    ids=["none", "one", "one without a level", "two equal ones", "one level in both"],
)
def test_levels_that_do_not_divide_clips_into_classes_are_refused(good_card, classes, found):
    """A model of levels tells apart clips of two classes, and no clip is of both."""
    good_card["target"]["classes"] = classes

    message = message_that_refuses(good_card)

    assert "'target'" in message
    assert found in message


def test_the_card_of_a_model_of_a_concept_may_have_no_classes_of_levels(good_card):
    """A model of the concept Body tells clips with Body from those without, whatever their levels.

    The classes of a card are sets of levels. Models of concepts that labs joined from their sums over films
    have none; their cards must be read.
    """
    good_card["target"] |= {"kind": "concept", "name": "concept:Body", "concept": "Body", "classes": []}

    assert parse_card(good_card, "a.model").target["classes"] == []


@pytest.mark.parametrize(
    ("auc", "low", "high", "problem"),
    [
        (0.2, 0.6, 0.7, "auc 0.2 is not between auc_low 0.6 and auc_high 0.7"),
        (0.9, 0.6, 0.7, "auc 0.9 is not between auc_low 0.6 and auc_high 0.7"),
        (0.7, 0.9, 0.6, "auc_low 0.9 is above auc_high 0.6"),
    ],
    ids=["an AUC below", "an AUC above", "an end before the beginning"],
)
def test_an_auc_outside_of_its_interval_is_refused(good_card, auc, low, high, problem):
    """The interval is around the mean over films, and always holds it."""
    good_card["evidence"] |= {"auc": auc, "auc_low": low, "auc_high": high}

    assert f"'evidence': {problem}" in message_that_refuses(good_card)


def test_an_auc_at_the_end_of_its_interval_is_read(good_card):
    """Where all films have the AUC 1, the interval ends there."""
    good_card["evidence"] |= {"auc": 1.0, "auc_low": 0.29, "auc_high": 1.0}

    assert parse_card(good_card, "a.model").evidence["auc"] == 1


@pytest.mark.parametrize("share", [0, 1])
def test_0_and_1_are_shares(good_card, share):
    """An AUC and the probability that a model is skilled are from 0 to 1, both included."""
    good_card["evidence"] |= {"auc": share, "auc_low": 0.0, "auc_high": 1.0, "p_skilled": share}

    assert parse_card(good_card, "a.model").evidence["auc"] == share


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auc", -0.01),
        ("auc", 10**30),
        ("auc", 1e299),
        ("auc", 1.01),
        ("auc_low", 1.01),
        ("auc_high", 1.01),
        ("p_skilled", 1.01),
    ],
    ids=["auc below 0", "whole auc", "huge auc", "auc above 1", "auc_low", "auc_high", "p_skilled"],
)
def test_a_card_whose_evidence_has_a_number_below_0_or_above_1_is_refused(good_card, name, value):
    """A card's evidence is what films left out showed: an AUC, the ends of its interval, and `p_skilled`.

    The latter is the probability that the model is better than chance. All four lie between 0 and 1, and one
    of them does not here. It would be printed as it is, or be too large to be written with some decimals.
    """
    evidence_of_good_card = {"auc": 0.7, "auc_low": 0.6, "auc_high": 0.8}
    good_card["evidence"] |= evidence_of_good_card
    good_card["evidence"][name] = value

    assert "'evidence' should be an object" in message_that_refuses(good_card)


def test_a_card_with_more_positive_clips_than_clips_is_refused(good_card):
    """A good model's card is changed to say that one clip more than all was positive in training."""
    good_card["n_positives"] = good_card["n_clips"] + 1

    assert "are positive" in message_that_refuses(good_card)


@pytest.mark.parametrize("number", [-3, 2.5, "many"])
def test_a_card_with_a_metric_whose_number_of_clips_is_no_whole_number_is_refused(good_card, number):
    """The first metric of a good model's card gets a negative number of clips, half a clip, or a text."""
    good_card["metrics"][0]["n_clips"] = number

    assert (
        f"'metrics': n_clips should be a whole number, 0 or more; found {number!r}"
        in message_that_refuses(good_card)
    )


THAT_TURNS_TEXT = "Bo\u202edy"
"""A name with a character that turns the text after it."""

THAT_BEGINS_A_HEADING = "Body\n# A heading"
"""A name of two lines; the second one is a heading in Markdown, in which a model's page is written."""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("title", THAT_TURNS_TEXT, id="title, turned"),
        pytest.param("title", THAT_BEGINS_A_HEADING, id="title, a heading"),
        pytest.param("model", THAT_TURNS_TEXT, id="model"),
        pytest.param("estimator", THAT_TURNS_TEXT, id="estimator"),
        pytest.param("backbone", THAT_TURNS_TEXT, id="backbone"),
        pytest.param("protocol", THAT_TURNS_TEXT, id="protocol"),
        pytest.param("movies", ["AB", THAT_TURNS_TEXT], id="a movie"),
        pytest.param("labelled_by", ["AB", THAT_TURNS_TEXT], id="an annotator"),
        pytest.param("concepts", [THAT_TURNS_TEXT], id="a concept, turned"),
        pytest.param("concepts", [THAT_BEGINS_A_HEADING], id="a concept, a heading"),
    ],
)
def test_a_card_with_a_name_that_would_spoil_the_models_page_is_refused(good_card, field, value):
    """A stranger may have made the card, and its names are written into the page of the model.

    There a name with a mark of direction would turn the text behind it, and one with a line break could begin
    a heading. One name of a good model's card is replaced by such a name.
    """
    good_card[field] = value

    assert f"{field!r}: " in message_that_refuses(good_card)


def test_a_card_with_a_concept_without_a_name_is_refused(good_card):
    """A good model's card is changed to have a concept whose name is a blank."""
    good_card["concepts"] = [" "]

    assert "'concepts': " in message_that_refuses(good_card)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"title": THAT_BEGINS_A_HEADING}, id="a title with a heading in it"),
        pytest.param({"classes": [[THAT_TURNS_TEXT], ["S"]]}, id="a level with a mark that turns text"),
    ],
)
def test_a_card_with_a_target_whose_names_would_spoil_the_models_page_is_refused(good_card, changes):
    """A model's target, what it tells apart, has a title and names of levels, which its page shows."""
    good_card["target"] |= changes

    assert "'target'" in message_that_refuses(good_card)
