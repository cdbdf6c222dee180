"""What a probe knows of an attribute in films that have it more, or less, often than each other."""

import numpy as np
import pytest

from obygaze_studies.audit_common.embeddings import Embeddings
from obygaze_studies.erasure import audit_erase

SHARE_OF_FILM = np.array([0.9, 0.1, 0.9, 0.1, 0.9, 0.1])
"""How often items of six films have the gender w."""

N_OF_FILM = 150


def probes_by_other_films(seed, signal):
    """Audit the erasure of a gender; return how well probes of other films tell it, before and after.

    Items of six films have the gender w as often as `SHARE_OF_FILM` says. Feature 0 is higher by `signal`
    where the gender is w; with 0, the features know nothing of the gender.
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


def test_probes_of_features_that_know_nothing_of_a_gender_have_an_accuracy_of_one_half():
    """A probe learns from one of two films and is tested on the other, where w is as rare as it was frequent.

    It calls every item by what is frequent in its own film. Pooled over the items of both films, it would be
    wrong in most, an accuracy of .1 to .3. So accuracy is balanced within each film, where it is .5.
    """
    accuracies = [probes_by_other_films(seed, signal=0)["before_others"] for seed in range(6)]

    assert np.mean(accuracies) == pytest.approx(0.5, abs=0.05)


def test_a_gender_in_the_features_is_told_by_probes_and_less_so_after_erasing():
    """A probe also learns how frequent w is in its own film, which misleads it in a film where w is rare.

    Pooled over the items of all films, its accuracy would be below .5 though the features know the gender.
    Within films it is above .6 before erasing, and falls by more than .05.
    """
    rows = [probes_by_other_films(seed, signal=3) for seed in range(6)]
    before = np.mean([row["before_others"] for row in rows])
    after = np.mean([row["after_others"] for row in rows])

    assert before > 0.6
    assert after < before - 0.05
