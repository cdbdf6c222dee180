"""A codebook may call a level and a concept alike: a text with a level and that concept has both."""

import pytest

from obygaze_features.manifest import Codebook, Concept, Level
from obygaze_features.manifest.spans.label_words import Labels, LabelWords

CODEBOOK = Codebook(
    "looks",
    "1",
    (Level("none"), Level("Gaze"), Level("Body")),
    (Concept("Gaze"), Concept("Body"), Concept("Gun")),
)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("none; Gaze", Labels("none", ("Gaze",))),
        ("Gaze; none", Labels("none", ("Gaze",))),
        ("Gaze; Gaze", Labels("Gaze", ("Gaze",))),
        ("Gaze; Body; Gun", Labels("Gaze", ("Body", "Gun"))),
        ("Gaze; Gun", Labels("Gaze", ("Gun",))),
        ("Gun", Labels("", ("Gun",))),
    ],
)
def test_one_word_is_the_level_and_the_others_are_concepts(text, labels):
    assert LabelWords(CODEBOOK).labels_of(text) == labels


def test_two_words_that_are_levels_alone_are_no_labels_of_one_span():
    codebook = Codebook("looks", "1", (Level("none"), Level("some")), (Concept("Gaze"),))

    assert LabelWords(codebook).labels_of("none; some") is None
