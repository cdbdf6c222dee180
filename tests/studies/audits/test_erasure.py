"""LEACE: no linear model tells the attribute on what it was fitted on; the least change that does so."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from obygaze_models.report import records
from obygaze_studies.audit_common.embeddings import Embeddings
from obygaze_studies.eat_stimuli import EatTest
from obygaze_studies.erasure import audit_erase, leace
from obygaze_studies.errors import AuditError

SPACE = "planted"


def world(seed=0, n=600, size=24, films=9):
    rng = np.random.default_rng(seed)
    film = rng.integers(films, size=n)
    attribute = rng.random(n) < 0.5
    task = rng.random(n) < np.where(attribute, 0.65, 0.35)
    X = rng.normal(size=(n, size))
    X[:, 0] += 2 * attribute
    X[:, 1] += 2 * task
    X[:, 2] += 0.6 * attribute + 3
    ids = [f"i{k:03}" for k in range(n)]
    items = {
        name: {"item_id": name, "gender": "mw"[int(a)], "task": str(int(t)), "film": f"f{f}"}
        for name, a, t, f in zip(ids, attribute, task, film, strict=True)
    }
    rows = {name: row for row, name in enumerate(ids)}
    return X, attribute, items, Embeddings("here", SPACE, X.astype(np.float32), rows, "0", {})


def texts():
    rows = {"a": 0, "b": 1}
    return Embeddings(
        "there", SPACE, np.eye(24, dtype=np.float32)[[2, 3]], rows, "1", {}, {"a": "a", "b": "b"}
    )


def test_class_means_are_equal_after_it_and_other_directions_stay():
    X, attribute, _, _ = world()
    after = leace(X, np.where(attribute, "w", "m").tolist())(X)
    assert after[attribute].mean(axis=0) == pytest.approx(after[~attribute].mean(axis=0), abs=1e-9)
    assert LogisticRegression(C=1e6).fit(after, attribute).score(after, attribute) == pytest.approx(
        max(attribute.mean(), 1 - attribute.mean()), abs=0.01
    )
    values = np.linalg.eigvalsh(np.cov(after.T))
    assert (values < 1e-9).sum() == 1  # one direction of two values is gone
    again = leace(after, np.where(attribute, "w", "m").tolist())(after)
    assert again == pytest.approx(after, abs=1e-9)


def test_it_moves_features_less_than_taking_out_the_difference_of_means():
    X, attribute, _, _ = world(1)
    mixed = X @ np.random.default_rng(0).normal(size=(24, 24))
    after = leace(mixed, np.where(attribute, "w", "m").tolist())(mixed)
    whitener = np.linalg.inv(np.linalg.cholesky(np.cov(mixed.T)))
    difference = mixed[attribute].mean(axis=0) - mixed[~attribute].mean(axis=0)
    unit = difference / np.linalg.norm(difference)
    plain = mixed - np.outer((mixed - mixed.mean(axis=0)) @ unit, unit)
    moved = [np.sum(((own - mixed) @ whitener.T) ** 2) for own in (after, plain)]
    assert moved[0] < moved[1]


def test_three_values_lose_two_directions_and_one_value_none():
    rng = np.random.default_rng(0)
    named = rng.choice(["a", "b", "c"], 500)
    X = rng.normal(size=(500, 6)) + np.where(named == "a", 1.0, 0)[:, None]
    X[named == "b", 3] += 2
    after = leace(X, named.tolist())(X)
    means = np.array([after[named == value].mean(axis=0) for value in "abc"])
    assert np.ptp(means, axis=0) == pytest.approx(np.zeros(6), abs=1e-9)
    assert leace(X, ["a"] * 500)(X) == pytest.approx(X)


def test_what_is_left_on_other_films_and_what_it_costs(tmp_path):
    _, _, items, images = world()
    words = texts()
    test = EatTest("gender", {"gender": "w"}, {"gender": "m"}, ("a",), ("b",))
    path = tmp_path / "erased.csv"
    report = audit_erase(
        images, items, attribute="gender", films="film", task="task", texts=words, tests=[test], erased=path
    )
    probe, own, task, _, d = records(report.data)
    assert own["before_others"] > 0.7
    assert 0.5 < own["after_others"] < own["before_others"] - 0.1
    assert probe["before_others"] > 0.75
    assert probe["after_others"] == pytest.approx(0.5, abs=0.05)
    assert d["after_fitted"] == pytest.approx(0, abs=0.01)
    assert abs(d["after_others"]) < d["before_others"]
    assert 0.6 < task["after_others"] <= task["before_others"] + 0.02
    with path.open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows[0][:2] == ["clip_id", "f0"]
    assert len(rows) == 601


def test_features_of_no_known_space_are_erased_but_not_compared_with_texts():
    _, _, items, images = world()
    unknown = replace(images, space=None)
    columns = {"attribute": "gender", "films": "film"}
    result = records(audit_erase(unknown, items, **columns).data)
    assert result == records(audit_erase(images, items, **columns).data)
    with pytest.raises(AuditError, match="space"):
        audit_erase(unknown, items, **columns, texts=texts(), tests=[])


def test_where_erasing_leaves_nothing_the_effect_is_undefined_and_the_audit_goes_on():
    X, attribute, items, images = world()
    X = np.ones_like(X)
    X[:, 2] += attribute
    test = EatTest("gender", {"gender": "w"}, {"gender": "m"}, ("a",), ("b",))
    report = audit_erase(
        replace(images, vectors=X.astype(np.float32)),
        items, attribute="gender", films="film", texts=texts(), tests=[test],
    )  # fmt: skip
    *_, d = records(report.data)
    assert d["before_others"] > 1
    assert d["after_others"] is None


def test_items_of_no_film_or_without_an_embedding_are_left_out_and_said():
    _, _, items, images = world()
    items["i000"]["film"] = ""
    items["i001"]["gender"] = " "
    items["more"] = items["i002"]
    report = audit_erase(images, items, attribute="gender", films="film")
    assert report.record["left_out"] == 3


def test_tables_that_do_not_fit_are_refused():
    _, _, items, images = world()
    for row in items.values():
        row["of film"] = "ab"[int(row["film"][1]) % 2]
    test = EatTest("t", {"gender": "w"}, {"gender": "m"}, ("a",), ("c",))
    for given, words in (
        ({"attribute": "film", "films": "film"}, "two values were expected"),
        ({"attribute": "of film", "films": "film"}, "every film of those fitted has one value of it"),
        ({"attribute": "gender", "films": "film", "texts": texts(), "tests": [test]}, "no 'c'"),
        ({"attribute": "hair", "films": "film"}, "no column hair"),
        ({"attribute": "gender", "films": "gender"}, "2 films"),
    ):
        with pytest.raises(AuditError, match=words):
            audit_erase(images, items, **given)
