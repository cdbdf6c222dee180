"""One film under two spellings would be two films in a store: when it grows, or when stores are merged."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.merge import merge
from obygaze_features.store import PlannedClip, open_store
from obygaze_features.store.group import spec_of
from obygaze_features.store.growth import plan_growth
from obygaze_features.store.testing import seal_arrays

from .toy_stores import CORPUS

VECTORS = {"net": {"pooled": np.ones((1, 3), np.float32)}}

TWO_SPELLINGS_OF_A_FILM = [
    pytest.param("Casablanca", "CASABLANCA", id="case"),
    pytest.param("Casablanca", "\u0421asablanca", id="Cyrillic letter"),
    pytest.param("The Birds", "Birds, The", id="article"),
    pytest.param("tt0054215", "54215", id="IMDb id without zeros"),
]


def make_sealed_store(folder, name, movie):
    """Seal a store of one clip of a film."""
    return open_store(seal_arrays(folder / name, {f"{name}-clip": movie}, VECTORS))


@pytest.mark.parametrize(("film", "other_spelling"), TWO_SPELLINGS_OF_A_FILM)
def test_a_store_does_not_grow_by_another_spelling_of_one_of_its_films(tmp_path, film, other_spelling):
    """A store has a clip of a film, and is to grow by a clip of the same film, whose name is spelt otherwise.

    In the store these would be two films, so that one could be used for training and the other for testing.
    The manifest of the new clips has one spelling alone, so that only the growing store shows both: it is
    refused, with the name of the store that has the other spelling.
    """
    parent = make_sealed_store(tmp_path, "films", film)
    groups = [spec_of(parent["net"])]
    new_clips = [PlannedClip("new-clip", other_spelling, start_s=0.0, end_s=1.5)]

    with pytest.raises(StoreError, match="are one name: one film would be two") as refusal:
        plan_growth(parent, "1.1.0", new_clips, groups, CORPUS)

    assert "films-1.0.0 has it" in str(refusal.value)


def test_a_store_with_two_spellings_of_a_film_still_grows_by_another_film(tmp_path):
    """An old store has clips of "The Birds" and of "Birds, The", which are one film.

    New clips are refused if they add a second spelling of a film of the store. These do not: they are of
    another film, Casablanca. The old names can't be mended by the new clips, so they are no reason to refuse.
    """
    movies = {"a": "The Birds", "b": "Birds, The"}
    two_vectors = {"net": {"pooled": np.ones((2, 3), np.float32)}}
    parent = open_store(seal_arrays(tmp_path / "films", movies, two_vectors))
    new_clips = [PlannedClip("c", "Casablanca", start_s=0.0, end_s=1.5)]

    plan = plan_growth(parent, "1.1.0", new_clips, [spec_of(parent["net"])], CORPUS)

    assert [clip.movie for clip in plan.clips] == ["The Birds", "Birds, The", "Casablanca"]


def test_a_store_grows_by_more_clips_of_its_film_and_by_another_film(tmp_path):
    """A store of a clip of Casablanca grows by a clip of Casablanca and one of The Birds.

    New clips are refused if they spell the name of a film of the store otherwise. A name that is spelt as
    before, and the name of another film, must not be taken for that.
    """
    parent = make_sealed_store(tmp_path, "films", "Casablanca")
    new_clips = [
        PlannedClip("b", "Casablanca", start_s=0.0, end_s=1.5),
        PlannedClip("c", "The Birds", start_s=0.0, end_s=1.5),
    ]

    plan = plan_growth(parent, "1.1.0", new_clips, [spec_of(parent["net"])], CORPUS)

    assert [clip.movie for clip in plan.clips] == ["Casablanca", "Casablanca", "The Birds"]


@pytest.mark.parametrize(("film", "other_spelling"), TWO_SPELLINGS_OF_A_FILM)
def test_stores_with_two_spellings_of_a_film_are_not_merged(tmp_path, film, other_spelling):
    """Two stores have a clip of the same film each, and spell its name in two ways: one film would be two."""
    stores = [make_sealed_store(tmp_path, "a", film), make_sealed_store(tmp_path, "b", other_spelling)]

    with pytest.raises(StoreError, match="are one name: one film would be two"):
        merge(stores, tmp_path / "all")
