"""What a probe knows of an attribute in films that have it more, or less, often than each other."""

import numpy as np
import pytest

from obygaze_studies.audit_common.embeddings import Embeddings
from obygaze_studies.erasure import audit_erase

SHARE_OF_FILM = np.array([0.9, 0.1, 0.9, 0.1, 0.9, 0.1])
"""How often items of six films have the gender w."""

N_OF_FILM = 150


def probes_by_other_films(seed, signal):
    """Erase a gender; return the row of probes by other films.

    A share of the gender is in feature 0 (`signal`; 0: nowhere). The table has a row before and after.
    """
    rng = np.random.default_rng(seed)
    film = np.repeat(np.arange(6), N_OF_FILM)
    is_woman = rng.random(len(film)) < SHARE_OF_FILM[film]
    X = rng.normal(size=(len(film), 24))
    X[:, 0] += signal * is_woman
    ids = [f"i{number:03}" for number in range(len(film))]
    items = {
        name: {"item_id": name, "gender": "mw"[int(woman)], "film": f"f{number}"}
        for name, woman, number in zip(ids, is_woman, film, strict=True)
    }
    rows = {name: row for row, name in enumerate(ids)}
    images = Embeddings("here", "planted", X.astype(np.float32), rows, "0", {})
    report = audit_erase(images, items, attribute="gender", films="film", seed=seed)
    (row,) = (row for row in report.data.to_dict("records") if row["measure"].endswith("by other films"))
    return row


def test_features_that_know_nothing_are_at_chance():
    """Two films are left to probe. Where their shares are .9 and .1, each was called by what the other has.

    Over all items of both, the accuracy was .1 to .3.
    """
    accuracies = [probes_by_other_films(seed, signal=0)["before_others"] for seed in range(6)]

    assert np.mean(accuracies) == pytest.approx(0.5, abs=0.05)


def test_an_attribute_that_is_there_is_found_and_less_of_it_after_erasing():
    """Shares of the films that speak against it hid it: over all items, it was below .5 before erasing."""
    rows = [probes_by_other_films(seed, signal=3) for seed in range(6)]
    before = np.mean([row["before_others"] for row in rows])
    after = np.mean([row["after_others"] for row in rows])

    assert before > 0.6
    assert after < before - 0.05
