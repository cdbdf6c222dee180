"""A card with classes, numbers or names that no training writes is refused, in one line."""

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
def card():
    """The card of a model of two levels that comes with the package."""
    return card_of(ZOO / "words-s-1.0.0.model")


def refusal_of(card):
    """Return the message that refuses a card; it has one line."""
    with pytest.raises(ModelError) as refused:
        parse_card(card, "a.model")
    message = str(refused.value)
    assert message.startswith("a.model: the card: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("model", [*ZOO.glob("*.model"), *FROZEN.glob("*.model")], ids=lambda path: path.stem)
def test_the_card_of_every_model_that_was_trained_is_read(model):
    parse_card(card_of(model), model.name)


@pytest.mark.parametrize(
    ("classes", "found"),
    [
        ([], "found 0 classes"),
        ([["S"]], "found 1 class"),
        ([["S"], ["S"]], "the level 'S' is in 2 classes"),
        ([["EN", "HN"], ["S", "HN"]], "the level 'HN' is in 2 classes"),
    ],
    ids=["none", "one", "two equal ones", "one level in both"],
)
def test_levels_that_do_not_divide_clips_into_classes_are_refused(card, classes, found):
    """A model of levels tells apart clips of two classes, and no clip is of both."""
    card["target"]["classes"] = classes

    message = refusal_of(card)

    assert "'target'" in message
    assert found in message


def test_a_concept_needs_no_classes(card):
    """Models that were joined from sums over films have none."""
    card["target"] |= {"kind": "concept", "name": "concept:Body", "concept": "Body", "classes": []}

    assert parse_card(card, "a.model").target["classes"] == []


@pytest.mark.parametrize("auc", [0.2, 0.9], ids=["below", "above"])
def test_an_auc_outside_of_its_interval_is_refused(card, auc):
    """The interval is around the mean over films, and always holds it."""
    card["evidence"] |= {"auc": auc, "auc_low": 0.6, "auc_high": 0.7}

    assert f"'evidence': auc {auc:g} is not between auc_low 0.6 and auc_high 0.7" in refusal_of(card)


def test_an_auc_at_the_end_of_its_interval_is_read(card):
    """Where all films have the AUC 1, the interval ends there."""
    card["evidence"] |= {"auc": 1.0, "auc_low": 0.29, "auc_high": 1.0}

    assert parse_card(card, "a.model").evidence["auc"] == 1


@pytest.mark.parametrize("number", [-3, 2.5, "many", None])
def test_a_metric_of_no_number_of_clips_is_refused(card, number):
    card["metrics"][0]["n_clips"] = number

    assert f"'metrics': n_clips should be a whole number, 0 or more; found {number!r}" in refusal_of(card)


@pytest.mark.parametrize("text", ["Bo\u202edy", "Body\n# A heading"], ids=["U+202E", "a line break"])
@pytest.mark.parametrize("field", ["title", "model", "estimator", "backbone", "protocol"])
def test_a_text_that_would_change_a_page_is_refused(card, field, text):
    """It would turn the text around it, or begin a heading."""
    card[field] = text

    assert f"{field!r}: " in refusal_of(card)


@pytest.mark.parametrize("field", ["movies", "labelled_by"])
def test_a_name_in_a_list_that_would_change_a_page_is_refused(card, field):
    card[field] = ["AB", "C\u202eD"]

    assert f"{field!r}: " in refusal_of(card)


@pytest.mark.parametrize(
    "changes", [{"title": "EN\nvs S"}, {"classes": [["E\u202eN"], ["S"]]}], ids=["its title", "a level"]
)
def test_a_target_that_would_change_a_page_is_refused(card, changes):
    card["target"] |= changes

    assert "'target'" in refusal_of(card)
