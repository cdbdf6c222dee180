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
def card_of_words_s():
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
def test_levels_that_do_not_divide_clips_into_classes_are_refused(card_of_words_s, classes, found):
    """A model of levels tells apart clips of two classes, and no clip is of both."""
    card_of_words_s["target"]["classes"] = classes

    message = refusal_of(card_of_words_s)

    assert "'target'" in message
    assert found in message


def test_a_concept_needs_no_classes(card_of_words_s):
    """Models that were joined from sums over films have none."""
    card_of_words_s["target"] |= {"kind": "concept", "name": "concept:Body", "concept": "Body", "classes": []}

    assert parse_card(card_of_words_s, "a.model").target["classes"] == []


@pytest.mark.parametrize(
    ("auc", "low", "high", "problem"),
    [
        (0.2, 0.6, 0.7, "auc 0.2 is not between auc_low 0.6 and auc_high 0.7"),
        (0.9, 0.6, 0.7, "auc 0.9 is not between auc_low 0.6 and auc_high 0.7"),
        (0.7, 0.9, 0.6, "auc_low 0.9 is above auc_high 0.6"),
    ],
    ids=["an AUC below", "an AUC above", "an end before the beginning"],
)
def test_an_auc_outside_of_its_interval_is_refused(card_of_words_s, auc, low, high, problem):
    """The interval is around the mean over films, and always holds it."""
    card_of_words_s["evidence"] |= {"auc": auc, "auc_low": low, "auc_high": high}

    assert f"'evidence': {problem}" in refusal_of(card_of_words_s)


def test_an_auc_at_the_end_of_its_interval_is_read(card_of_words_s):
    """Where all films have the AUC 1, the interval ends there."""
    card_of_words_s["evidence"] |= {"auc": 1.0, "auc_low": 0.29, "auc_high": 1.0}

    assert parse_card(card_of_words_s, "a.model").evidence["auc"] == 1


@pytest.mark.parametrize("share", [0, 1])
def test_0_and_1_are_shares(card_of_words_s, share):
    """An AUC and the probability that a model is skilled are from 0 to 1, both included."""
    card_of_words_s["evidence"] |= {"auc": share, "auc_low": 0.0, "auc_high": 1.0, "p_skilled": share}

    assert parse_card(card_of_words_s, "a.model").evidence["auc"] == share


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
def test_evidence_that_is_no_share_is_refused(card_of_words_s, name, value):
    """An AUC of 10 to the power of 30 ended in a traceback where it was written; one of 1.5 was printed."""
    card_of_words_s["evidence"] |= {"auc": 0.7, "auc_low": 0.6, "auc_high": 0.8} | {name: value}

    assert "'evidence' should be an object" in refusal_of(card_of_words_s)


def test_more_positive_clips_than_clips_are_refused(card_of_words_s):
    card_of_words_s["n_positives"] = card_of_words_s["n_clips"] + 1

    assert "are positive" in refusal_of(card_of_words_s)


@pytest.mark.parametrize("number", [-3, 2.5, "many"])
def test_a_metric_of_no_number_of_clips_is_refused(card_of_words_s, number):
    card_of_words_s["metrics"][0]["n_clips"] = number

    assert f"'metrics': n_clips should be a whole number, 0 or more; found {number!r}" in refusal_of(
        card_of_words_s
    )


TURNED = "Bo\u202edy"
"""A name with a character that turns the text after it."""

HEADING = "Body\n# A heading"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("title", TURNED, id="title, turned"),
        pytest.param("title", HEADING, id="title, a heading"),
        pytest.param("model", TURNED, id="model"),
        pytest.param("estimator", TURNED, id="estimator"),
        pytest.param("backbone", TURNED, id="backbone"),
        pytest.param("protocol", TURNED, id="protocol"),
        pytest.param("movies", ["AB", TURNED], id="a movie"),
        pytest.param("labelled_by", ["AB", TURNED], id="an annotator"),
        pytest.param("concepts", [TURNED], id="a concept, turned"),
        pytest.param("concepts", [HEADING], id="a concept, a heading"),
    ],
)
def test_a_name_that_would_change_a_page_is_refused(card_of_words_s, field, value):
    """On a model's page it would turn the text around it, or begin a heading."""
    card_of_words_s[field] = value

    assert f"{field!r}: " in refusal_of(card_of_words_s)


def test_a_concept_without_a_name_is_refused(card_of_words_s):
    card_of_words_s["concepts"] = [" "]

    assert "'concepts': " in refusal_of(card_of_words_s)


@pytest.mark.parametrize(
    "changes", [{"title": HEADING}, {"classes": [[TURNED], ["S"]]}], ids=["its title", "a level"]
)
def test_a_target_that_would_change_a_page_is_refused(card_of_words_s, changes):
    card_of_words_s["target"] |= changes

    assert "'target'" in refusal_of(card_of_words_s)
