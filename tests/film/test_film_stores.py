"""The store that a film was scored from is looked for in the folders near the film's."""

import os
from dataclasses import replace

import pytest
from msgspec import structs

from obygaze_film.film_stores import stores_near
from tests.film.films import film_store
from tests.film.page.invented import fake_scored_film


def film_of_store(name):
    """Return a film that says it was scored from the store of a name."""
    film = fake_scored_film("m", n_rows=6, duration_s=60.0)
    return replace(
        film, record=structs.replace(film.record, store=structs.replace(film.record.store, name=name))
    )


@pytest.fixture
def folder_that_vanishes(tmp_path, monkeypatch):
    """A folder in `tmp_path` that another program removes after its name was listed and before it is read."""
    vanishing = tmp_path / "temporary"
    vanishing.mkdir()

    def removing_first(list_folder):
        def remove_and_list(path):
            if str(path) == str(vanishing) and vanishing.exists():
                vanishing.rmdir()
            return list_folder(path)

        return remove_and_list

    monkeypatch.setattr(os, "scandir", removing_first(os.scandir))
    monkeypatch.setattr(os, "listdir", removing_first(os.listdir))
    return vanishing


def test_stores_are_found_near_a_film_though_a_folder_vanishes_meanwhile(tmp_path, folder_that_vanishes):
    """The film is scored into `scored/m`; its store is `stores/m`, and `temporary` is removed meanwhile."""
    store = film_store(tmp_path / "stores", "m", end_s=60.0, planted=())
    (tmp_path / "scored" / "m").mkdir(parents=True)

    found = stores_near(tmp_path / "scored" / "m", film_of_store(store.name))

    assert not folder_that_vanishes.exists()
    assert [near.fingerprint for near in found] == [store.fingerprint]
