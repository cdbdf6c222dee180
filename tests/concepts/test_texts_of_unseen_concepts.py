"""Zero-shot rows of a concept that has no texts, since it is heard: an error, and no shorter table."""

import pytest

from obygaze_features.store import open_store
from obygaze_models.concepts.texts import zero_shot_models
from obygaze_models.errors import ConceptError
from tests.concepts.test_texts import data, folder_of_stores  # noqa: F401 - fixtures


def test_a_concept_that_is_heard_has_no_zero_shot_model(folder_of_stores, data):  # noqa: F811
    """The texts of the codebook describe visual concepts, and are compared with pictures."""
    thesaurus = open_store(folder_of_stores / "thesaurus")

    with pytest.raises(ConceptError, match=r"Voice is not visual.*texts of .*Body.*leave out --texts"):
        zero_shot_models(data, thesaurus, "concept:Voice")
