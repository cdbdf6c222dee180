"""What people decided is drawn on a mailed page as agreeing with the model or not, as at the desk."""

from dataclasses import replace

import pytest

from obygaze_features.manifest import Level, builtin_codebook
from obygaze_film.exchange.decided import Decided
from obygaze_film.page.view_model import decisions_data

from .invented import ten_minute_film, with_model
from .test_page import view_of

OBYGAZE12 = builtin_codebook("obygaze12")


def verdict_on(film, **decided):
    """Return the verdict of the page on one decision."""
    decision = Decided(start_s=120.0, end_s=150.0, judges=("AB",), **decided)
    [described] = decisions_data([decision], view_of(film))
    return described["verdict"]


@pytest.mark.parametrize(
    ("level", "verdict"),
    [
        pytest.param("S", "agree", id="what the model finds"),
        pytest.param("HN", "disagree", id="its negative level"),
        pytest.param("EN", "disagree", id="a level that it was trained without"),
        pytest.param("NS", "unsure", id="not sure, which no task has"),
        pytest.param("", "note", id="no level"),
    ],
)
@pytest.mark.parametrize("codebook", [OBYGAZE12, None], ids=["known codebook", "unknown codebook"])
def test_a_level_agrees_if_it_is_what_the_model_finds(level, verdict, codebook):
    """The model finds S among clips of HN and S. People who are not sure neither agree nor disagree."""
    film = ten_minute_film(levels=(("HN",), ("S",)))
    assert verdict_on(film, level=level, note="n", codebook=codebook) == verdict


@pytest.mark.parametrize(("concepts", "verdict"), [(("Clothing",), "agree"), (("Look",), "disagree")])
@pytest.mark.parametrize("level", ["HN", "S", "NS"])
def test_who_marks_the_concept_agrees_with_a_model_of_it(level, concepts, verdict):
    """A model of a concept has no positive levels: whatever the level, the concept counts."""
    film = with_model(ten_minute_film(), concept="Clothing", positive=[], negative=[])
    assert verdict_on(film, level=level, concepts=concepts) == verdict


def test_a_level_that_only_the_peoples_codebook_has_counts_as_an_answer():
    """The model finds S. AB gave a level "none", which the model's codebook lacks and AB's own one has.

    So the page knows that AB's answer is another level than S, and says that AB disagrees with the model. A
    level of no codebook would be no answer, neither for nor against.
    """
    own_level = Level("none", position=len(OBYGAZE12.levels))
    own_codebook = replace(OBYGAZE12, levels=(*OBYGAZE12.levels, own_level))
    film = ten_minute_film()
    assert verdict_on(film, level="none", codebook=own_codebook) == "disagree"


def test_without_any_codebook_the_levels_of_the_task_are_answers():
    """The model's codebook is not built in, and nothing states that of the people."""
    film = with_model(ten_minute_film(), codebook="of a lab", levels=["HN", "S"])
    assert verdict_on(film, level="HN") == "disagree"
    assert verdict_on(film, level="perhaps") == "unsure"
