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
    """A concept is conveyed by one modality, such as said or heard, and a source perceives one or more.

    Whoever hears a film hears what is said in it, so "heard" includes "said". The reason why a concept is not
    perceived is empty where it is.
    """
    concept = Concept("C", visual=modality in {"visual", "moving"}, modality=modality)

    reason = why_unperceived(concept, perceives)

    is_perceived_as_such = modality in perceives
    is_speech_that_is_heard = modality == "said" and "heard" in perceives
    assert (reason == "") == (is_perceived_as_such or is_speech_that_is_heard)


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
    """A codebook has the levels low and high, and up to six concepts c0, c1, ..., conveyed by any modality.

    A source is asked level:low, level:high, and concept:c0 if it can perceive c0. The concepts that it cannot
    perceive have each a reason instead.
    """
    concepts = []
    for number, modality in enumerate(modalities):
        is_visual = modality in {"visual", "moving"}
        concepts.append(Concept(f"c{number}", visual=is_visual, modality=modality))
    codebook = Codebook("b", version="1", levels=(Level("low"), Level("high")), concepts=tuple(concepts))

    questions = codebook_questions(codebook, perceives)
    reason_of_absent_concept = unperceived(codebook, perceives)

    asked = {question.removeprefix("level:").removeprefix("concept:") for question in questions}
    absent = set(reason_of_absent_concept)
    assert asked & absent == set()
    assert asked | absent == {"low", "high", *codebook.concept_names}
    assert all(reason != "" for reason in reason_of_absent_concept.values())


@pytest.mark.parametrize("names", [[], ["smell"], ["visual", "Heard"]])
def test_unknown_words_for_what_a_source_perceives_are_refused(names):
    """A modality is visual, moving, heard, said or told, in small letters, and at least one must be given.

    The error names the option with which the words were given.
    """
    with pytest.raises(ObygazeError, match="--perceives"):
        modalities_of(names, "--perceives")


def test_every_measured_variable_says_whether_it_is_measured_of_sound_or_of_pictures():
    """`OF_VARIABLES` says of variables such as loudness, what it is measured of: sound or pictures."""
    assert set(OF_VARIABLES) == set(VARIABLES)
