"""Who can know what: one function matches what conveys a concept with what a source perceives."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ObygazeError
from obygaze_features.extraction.variables import VARIABLES
from obygaze_features.manifest import (
    MODALITIES,
    OF_VARIABLES,
    Codebook,
    Concept,
    Level,
    codebook_questions,
    modalities_of,
    unperceived,
    why_unperceived,
)

SOURCES = [some for n in range(1, len(MODALITIES) + 1) for some in combinations(MODALITIES, n)]


@given(st.sampled_from(MODALITIES), st.sampled_from(SOURCES))
def test_a_concept_is_perceived_by_its_modality_and_speech_also_by_hearing(modality, perceives):
    """Whoever hears a film hears what is said in it: "heard" includes "said"."""
    concept = Concept("C", visual=modality in {"visual", "moving"}, modality=modality)
    is_perceived = modality in perceives or (modality == "said" and "heard" in perceives)
    reason = why_unperceived(concept, perceives)
    if is_perceived:
        assert reason == ""
    else:
        assert reason != ""


def test_a_source_that_states_no_modality_may_perceive_every_concept():
    """Nothing is known of what the source perceives, so nothing is excluded."""
    told = Concept("Told", visual=False, modality="told")
    assert why_unperceived(told, ()) == ""


def test_a_non_visual_concept_needs_more_than_pictures():
    """The concept does not say what conveys it, only that pictures do not.

    A source that also hears may perceive it.
    """
    concept = Concept("C", visual=False)
    assert why_unperceived(concept, ("visual", "moving")) != ""
    assert why_unperceived(concept, ("visual", "heard")) == ""


@given(st.lists(st.sampled_from(MODALITIES), max_size=6), st.sampled_from(SOURCES))
def test_each_concept_is_either_asked_about_or_absent_with_a_reason(modalities, perceives):
    """The codebook has the levels a and z and some concepts.

    Questions to a source cover those that it can perceive, and the others are listed as absent.
    """
    concepts = tuple(
        Concept(f"c{n}", visual=modality in {"visual", "moving"}, modality=modality)
        for n, modality in enumerate(modalities)
    )
    codebook = Codebook("b", "1", (Level("a"), Level("z")), concepts)
    asked = {name.partition(":")[2] for name in codebook_questions(codebook, perceives)}
    absent = unperceived(codebook, perceives)

    assert asked & set(absent) == set()
    assert asked | set(absent) == {"a", "z", *codebook.concept_names}
    assert all(absent.values())


@pytest.mark.parametrize("names", [[], ["smell"], ["visual", "Heard"]])
def test_unknown_words_for_what_a_source_perceives_are_refused(names):
    """The words are those of MODALITIES, in small letters, and at least one must be given."""
    with pytest.raises(ObygazeError, match="--perceives"):
        modalities_of(names, "--perceives")


def test_every_measured_variable_states_its_source():
    assert set(OF_VARIABLES) == set(VARIABLES)
