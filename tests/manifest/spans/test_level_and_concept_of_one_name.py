"""A codebook may call a level and a concept alike: a text with a level and that concept has both."""

import pytest

from obygaze_features.manifest import Codebook, Concept, Level
from obygaze_features.manifest.spans.label_words import Labels, LabelWords

GAZE_AND_BODY_ARE_BOTH = Codebook(
    "looks",
    version="1",
    levels=(Level("none"), Level("Gaze"), Level("Body")),
    concepts=(Concept("Gaze"), Concept("Body"), Concept("Gun")),
)
"""A codebook with the levels none, Gaze and Body, and the concepts Gaze, Body and Gun."""


@pytest.mark.parametrize(
    ("text", "level", "concepts"),
    [
        ("none; Gaze", "none", ("Gaze",)),
        ("Gaze; none", "none", ("Gaze",)),
        ("Gaze; Gaze", "Gaze", ("Gaze",)),
        ("Gaze; Body; Gun", "Gaze", ("Body", "Gun")),
        ("Gaze; Gun", "Gaze", ("Gun",)),
        ("Gun", "", ("Gun",)),
    ],
)
def test_one_word_is_the_level_and_the_others_are_concepts(text, level, concepts):
    """The codebook has the levels none, Gaze and Body, and the concepts Gaze, Body and Gun: two are both.

    A span has one level. It is the word that can only be a level, or else the first that can be one.
    """
    labels = LabelWords(GAZE_AND_BODY_ARE_BOTH).labels_of(text)
    assert labels == Labels(level, concepts)


def test_two_words_that_are_levels_alone_are_no_labels_of_one_span():
    """The codebook has the levels none and some, and a span has one level: the text is not read as labels."""
    codebook = Codebook(
        "looks", version="1", levels=(Level("none"), Level("some")), concepts=(Concept("Gaze"),)
    )

    assert LabelWords(codebook).labels_of("none; some") is None
