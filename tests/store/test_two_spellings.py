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

ONE_FILM = [
    pytest.param("Casablanca", "CASABLANCA", id="case"),
    pytest.param("Casablanca", "\u0421asablanca", id="Cyrillic letter"),
    pytest.param("The Birds", "Birds, The", id="article"),
    pytest.param("tt0054215", "54215", id="IMDb id without zeros"),
]


def make_sealed_store(folder, name, movie):
    """Seal a store of one clip of a film."""
    return open_store(seal_arrays(folder / name, {f"{name}-clip": movie}, VECTORS))


@pytest.mark.parametrize(("film", "other_spelling"), ONE_FILM)
def test_a_store_does_not_grow_by_another_spelling_of_one_of_its_films(tmp_path, film, other_spelling):
    """The manifest of the new clips spells a film of the store otherwise, which the manifest cannot show."""
    parent = make_sealed_store(tmp_path, "films", film)
    groups = [spec_of(parent["net"])]
    new_clips = [PlannedClip("new-clip", other_spelling, start_s=0.0, end_s=1.5)]

    with pytest.raises(StoreError, match="are one name: one film would be two") as refusal:
        plan_growth(parent, "1.1.0", new_clips, groups, CORPUS)

    assert "films-1.0.0 has it" in str(refusal.value)


def test_a_store_that_has_both_spellings_already_grows_by_another_film(tmp_path):
    """It was made when both were taken for films, and no name in the manifest would mend it."""
    movies = {"a": "The Birds", "b": "Birds, The"}
    two_vectors = {"net": {"pooled": np.ones((2, 3), np.float32)}}
    parent = open_store(seal_arrays(tmp_path / "films", movies, two_vectors))
    new_clips = [PlannedClip("c", "Casablanca", start_s=0.0, end_s=1.5)]

    plan = plan_growth(parent, "1.1.0", new_clips, [spec_of(parent["net"])], CORPUS)

    assert [clip.movie for clip in plan.clips] == ["The Birds", "Birds, The", "Casablanca"]


def test_a_store_grows_by_more_clips_of_its_film_and_by_another_film(tmp_path):
    """Names that are equal, and names of different films, are no two spellings."""
    parent = make_sealed_store(tmp_path, "films", "Casablanca")
    new_clips = [
        PlannedClip("b", "Casablanca", start_s=0.0, end_s=1.5),
        PlannedClip("c", "The Birds", start_s=0.0, end_s=1.5),
    ]

    plan = plan_growth(parent, "1.1.0", new_clips, [spec_of(parent["net"])], CORPUS)

    assert [clip.movie for clip in plan.clips] == ["Casablanca", "Casablanca", "The Birds"]


@pytest.mark.parametrize(("film", "other_spelling"), ONE_FILM)
def test_stores_with_two_spellings_of_a_film_are_not_merged(tmp_path, film, other_spelling):
    """Each store names the film in its own way."""
    stores = [make_sealed_store(tmp_path, "a", film), make_sealed_store(tmp_path, "b", other_spelling)]

    with pytest.raises(StoreError, match="are one name: one film would be two"):
        merge(stores, tmp_path / "all")
