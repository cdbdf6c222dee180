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

SETS_OF_MODALITIES = [some for n in range(1, len(MODALITIES) + 1) for some in combinations(MODALITIES, n)]
"""Every set of modalities that a source can perceive, of one to all."""


@given(modality=st.sampled_from(MODALITIES), perceives=st.sampled_from(SETS_OF_MODALITIES))
def test_a_concept_is_perceived_by_its_modality_and_speech_also_by_hearing(modality, perceives):
    """A concept is conveyed by one modality, and a source perceives some: both are any.

    Whoever hears a film hears what is said in it, so "heard" includes "said".
    """
    concept = Concept("C", visual=modality in {"visual", "moving"}, modality=modality)
    is_perceived = modality in perceives or (modality == "said" and "heard" in perceives)

    reason = why_unperceived(concept, perceives)

    if is_perceived:
        assert reason == ""
    else:
        assert reason != ""


def test_a_source_that_states_no_modality_may_perceive_every_concept():
    """Nothing is known of what the source perceives, so no concept is excluded: the reason is empty."""
    concept = Concept("Told", visual=False, modality="told")
    assert why_unperceived(concept, ()) == ""


def test_a_non_visual_concept_needs_more_than_pictures():
    """The concept does not say what conveys it, only that pictures do not.

    A source that also hears may perceive it. A reason that is not empty says why one can't.
    """
    concept = Concept("C", visual=False)
    assert why_unperceived(concept, ("visual", "moving")) != ""
    assert why_unperceived(concept, ("visual", "heard")) == ""


@given(
    modalities=st.lists(st.sampled_from(MODALITIES), max_size=6),
    perceives=st.sampled_from(SETS_OF_MODALITIES),
)
def test_each_concept_is_either_asked_about_or_absent_with_a_reason(modalities, perceives):
    """The codebook has the levels a and z, and up to six concepts c0, c1, ... of any modality.

    Questions to a source, called level:a or concept:c0, cover the levels and the concepts that the source can
    perceive. The other concepts are listed as absent, {concept: reason}.
    """
    concepts = []
    for n, modality in enumerate(modalities):
        concepts.append(Concept(f"c{n}", visual=modality in {"visual", "moving"}, modality=modality))
    codebook = Codebook("b", "1", (Level("a"), Level("z")), tuple(concepts))

    questions = codebook_questions(codebook, perceives)
    reasons = unperceived(codebook, perceives)

    asked = {question.removeprefix("level:").removeprefix("concept:") for question in questions}
    absent = set(reasons)
    assert asked & absent == set()
    assert asked | absent == {"a", "z", *codebook.concept_names}
    assert all(reason != "" for reason in reasons.values())


@pytest.mark.parametrize("names", [[], ["smell"], ["visual", "Heard"]])
def test_unknown_words_for_what_a_source_perceives_are_refused(names):
    """A modality is visual, moving, heard, said or told, in small letters, and at least one must be given.

    The error names the option with which the words were given.
    """
    with pytest.raises(ObygazeError, match="--perceives"):
        modalities_of(names, "--perceives")


def test_of_every_measured_variable_it_is_stated_what_it_is_measured_of():
    """`OF_VARIABLES` says of variables such as loudness, what it is measured of: sound or pictures."""
    assert set(OF_VARIABLES) == set(VARIABLES)
