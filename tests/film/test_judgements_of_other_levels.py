"""Judgements of a level that the model does not learn are counted: they change no model."""

from types import SimpleNamespace

import pytest

from obygaze_features.manifest import Clip
from obygaze_film.learning import _notes_on_other_levels

HN_VS_S = {"kind": "levels", "title": "HN vs S", "classes": [["HN"], ["S"]]}
LOOK = {"kind": "concept", "title": "Look", "classes": []}


def judged(*levels):
    """Plant judgements of a film's windows with these levels."""
    return [Clip(f"clip{number}", "film", "", level=level) for number, level in enumerate(levels)]


def run_that_learns(target):
    """Stand in for the run of a model that learns this target."""
    return SimpleNamespace(record={"train": target})


def test_judgements_that_a_model_of_two_levels_does_not_learn_are_counted():
    """The report named 12 judgements and the same AUC before and after, and did not say why."""
    notes = _notes_on_other_levels(judged("EN", "EN", "NS", "S", ""), run_that_learns(HN_VS_S))

    assert notes == ["3 of 5 judgements not learnt from: no level that HN vs S is trained on (EN, NS)"]


@pytest.mark.parametrize("target", [HN_VS_S, LOOK], ids=["HN vs S", "the concept Look"])
def test_no_note_is_on_judgements_of_levels_that_a_model_does_not_learn_from_if_it_learns_from_all(target):
    """Two windows are judged HN and S. A model of HN vs S learns from both, one of a concept from any level.

    A note would count the judgements of levels that a model cannot learn from: there are none.
    """
    assert _notes_on_other_levels(judged("HN", "S"), run_that_learns(target)) == []
