"""A card written by hand is refused where its fields contradict each other, or a name would change a page."""

import json
import zipfile
from pathlib import Path

import pytest

import obygaze_models
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import parse_card

MODEL = Path(obygaze_models.__file__).parent / "zoo" / "words-s-1.0.0.model"


@pytest.fixture
def card():
    """The card of a model that comes with the package."""
    with zipfile.ZipFile(MODEL) as file:
        return json.loads(file.read("card.json"))


def test_the_card_as_it_was_written_is_read(card):
    assert parse_card(card, "a.model").title == card["title"]


def test_more_positive_clips_than_clips_are_refused(card):
    card["n_positives"] = card["n_clips"] + 1

    with pytest.raises(ModelError, match=r"a\.model: the card: .* are positive"):
        parse_card(card, "a.model")


def test_an_interval_that_ends_before_it_begins_is_refused(card):
    card["evidence"] |= {"auc_low": 0.9, "auc_high": 0.6}

    with pytest.raises(ModelError, match=r"auc_low 0\.9 is above auc_high 0\.6"):
        parse_card(card, "a.model")


def test_a_class_without_a_level_is_refused(card):
    card["target"]["classes"] = [[], ["S"]]

    with pytest.raises(ModelError, match="a class should have a level or more"):
        parse_card(card, "a.model")


@pytest.mark.parametrize("name", [" ", "Bo\u202edy", "Body\n# A heading"])
def test_a_concept_whose_name_is_no_line_of_text_is_refused(card, name):
    """On a model's page it would turn the text around, or begin a heading."""
    card["concepts"] = [name]

    with pytest.raises(ModelError, match="'concepts'"):
        parse_card(card, "a.model")
