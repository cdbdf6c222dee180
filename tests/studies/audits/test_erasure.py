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
from tests.command import obygaze

SPACE = "planted"


def planted_items(seed=0, n=600, size=24, films=9):
    """Plant a gender in features 0 and 2 of items of nine films, and a task in feature 1.

    Returns features [N, D], whether an item's gender is w [N], the rows of the table of items, and the
    embeddings that hold the features. The task is more often 1 where the gender is w.
    """
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


def planted_texts():
    """Two texts, a along feature 2, in which the gender is planted, and b along feature 3."""
    rows = {"a": 0, "b": 1}
    return Embeddings(
        "there", SPACE, np.eye(24, dtype=np.float32)[[2, 3]], rows, "1", {}, {"a": "a", "b": "b"}
    )


def erased(X, attribute):
    """Erase an attribute of two values from features by LEACE, fitted on these features."""
    return leace(X, np.where(attribute, "w", "m").tolist())(X)


def n_directions_lost(X):
    """Count the directions in which features do not vary."""
    return (np.linalg.eigvalsh(np.cov(X.T)) < 1e-9).sum()


def test_after_leace_the_means_of_classes_are_equal_and_one_direction_is_lost():
    """A linear model is then no better than a constant. A second time LEACE changes nothing."""
    X, attribute, _, _ = planted_items()
    after = erased(X, attribute)
    assert after[attribute].mean(axis=0) == pytest.approx(after[~attribute].mean(axis=0), abs=1e-9)
    nearly_unpenalised = LogisticRegression(C=1e6).fit(after, attribute)
    share_of_larger_class = max(attribute.mean(), 1 - attribute.mean())
    assert nearly_unpenalised.score(after, attribute) == pytest.approx(share_of_larger_class, abs=0.01)
    assert n_directions_lost(after) == 1
    assert erased(after, attribute) == pytest.approx(after, abs=1e-9)


def test_leace_moves_features_less_than_projecting_the_difference_of_means_out():
    """Moves are measured in standard deviations, by the Mahalanobis distance, which LEACE makes least."""
    X, attribute, _, _ = planted_items(seed=1)
    mixed = X @ np.random.default_rng(0).normal(size=(24, 24))
    difference = mixed[attribute].mean(axis=0) - mixed[~attribute].mean(axis=0)
    unit = difference / np.linalg.norm(difference)
    projected = mixed - np.outer((mixed - mixed.mean(axis=0)) @ unit, unit)
    whitener = np.linalg.inv(np.linalg.cholesky(np.cov(mixed.T)))

    def distance_moved(after):
        return np.sum(((after - mixed) @ whitener.T) ** 2)

    assert distance_moved(erased(mixed, attribute)) < distance_moved(projected)


def test_leace_of_three_values_makes_their_means_equal_and_takes_two_directions():
    """Items of the value a lie apart in one direction, those of b in another, and those of c in neither.

    LEACE changes features so that no linear model tells the three: their means become equal, for which the
    two directions between the means are lost.
    """
    rng = np.random.default_rng(0)
    values = rng.choice(["a", "b", "c"], 500)
    features = rng.normal(size=(500, 6))
    features[values == "a"] += 1
    features[values == "b", 3] += 2

    after = leace(features, values.tolist())(features)

    mean_of_a = after[values == "a"].mean(axis=0)
    mean_of_b = after[values == "b"].mean(axis=0)
    mean_of_c = after[values == "c"].mean(axis=0)
    assert mean_of_b == pytest.approx(mean_of_a, abs=1e-9)
    assert mean_of_c == pytest.approx(mean_of_a, abs=1e-9)
    assert mean_of_c == pytest.approx(mean_of_b, abs=1e-9)
    assert n_directions_lost(after) == 2


def test_leace_of_an_attribute_with_one_value_changes_nothing():
    features = np.random.default_rng(0).normal(size=(500, 6))
    all_alike = ["a"] * 500

    assert leace(features, all_alike)(features) == pytest.approx(features)


GENDER_TEST = EatTest("gender", {"gender": "w"}, {"gender": "m"}, ("a",), ("b",))


def test_erasing_a_gender_hides_it_from_probes_and_leaves_most_of_a_task_that_goes_with_it():
    """The features of 600 images hold a gender and a task, which often go together.

    LEACE, fitted on some films, erases the gender; the measures are mostly of the other films. Probes are
    models that are trained to tell the gender or the task (balanced accuracy, .5 by chance); d is of a test
    with texts.
    """
    _, _, items, images = planted_items()
    columns = {"attribute": "gender", "films": "film", "task": "task"}
    association = {"texts": planted_texts(), "tests": [GENDER_TEST]}

    report = audit_erase(images, items, **columns, **association)

    gender_by_fitted_films, gender_by_other_films, task, *_, d = records(report.data)
    assert gender_by_fitted_films["before_others"] > 0.75
    assert gender_by_fitted_films["after_others"] == pytest.approx(0.5, abs=0.05)
    assert gender_by_other_films["before_others"] > 0.7
    assert 0.5 < gender_by_other_films["after_others"] < gender_by_other_films["before_others"] - 0.1
    assert 0.6 < task["after_others"] <= task["before_others"] + 0.02
    assert d["after_fitted"] == pytest.approx(0, abs=0.01)
    assert abs(d["after_others"]) < d["before_others"]


def test_the_erased_features_are_written_as_a_table(tmp_path):
    """The table has a row for each of 600 images: its id, and its features f0, f1, ... without the gender."""
    _, _, items, images = planted_items()
    table = tmp_path / "erased.csv"

    audit_erase(images, items, attribute="gender", films="film", erased=table)

    with table.open(encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream))
    assert header[:2] == ["clip_id", "f0"]
    assert len(rows) == 600


def test_features_of_no_known_space_are_erased_but_not_compared_with_texts():
    """Images and texts can be compared where one network embedded both, as their space says.

    The same images are audited with the space `planted`, which is also that of the texts, and without one.
    """
    _, _, items, images = planted_items()
    of_unknown_space = replace(images, space=None)
    columns = {"attribute": "gender", "films": "film"}

    result = records(audit_erase(of_unknown_space, items, **columns).data)

    assert result == records(audit_erase(images, items, **columns).data)
    with pytest.raises(AuditError, match="space"):
        audit_erase(of_unknown_space, items, **columns, texts=planted_texts(), tests=[])


def test_an_effect_that_erasing_makes_undefined_does_not_stop_the_audit():
    """The features hold the gender and nothing else. After erasing it, no target differs from another."""
    X, attribute, items, images = planted_items()
    gender_alone = np.ones_like(X)
    gender_alone[:, 2] += attribute
    report = audit_erase(
        replace(images, vectors=gender_alone.astype(np.float32)),
        items,
        attribute="gender",
        films="film",
        texts=planted_texts(),
        tests=[GENDER_TEST],
    )
    *_, effect = records(report.data)

    assert effect["before_others"] > 1
    assert effect["after_others"] is None


def test_items_without_a_film_an_attribute_or_an_embedding_are_left_out_and_counted():
    """One item has no film, one a blank as gender, and one is not in the store."""
    _, _, items, images = planted_items()
    items["i000"]["film"] = ""
    items["i001"]["gender"] = " "
    items["without_embedding"] = items["i002"]
    report = audit_erase(images, items, attribute="gender", films="film")
    assert report.record["left_out"] == 3


TEST_OF_A_TEXT_THAT_IS_NOT_THERE = EatTest("t", {"gender": "w"}, {"gender": "m"}, ("a",), ("c",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attribute": "film", "films": "film"}, "two values were expected"),
        ({"attribute": "side", "films": "film"}, "every film of those fitted has one value of it"),
        (
            {
                "attribute": "gender",
                "films": "film",
                "texts": planted_texts(),
                "tests": [TEST_OF_A_TEXT_THAT_IS_NOT_THERE],
            },
            "no 'c'",
        ),
        ({"attribute": "hair", "films": "film"}, "no column hair"),
        ({"attribute": "gender", "films": "gender"}, "2 films"),
    ],
    ids=[
        "an attribute of nine values",
        "an attribute that does not vary within films",
        "a test of a text that is not there",
        "a column that is not there",
        "a column of two films",
    ],
)
def test_an_attribute_films_or_texts_that_do_not_fit_the_audit_are_refused(arguments, message):
    """The images are of nine films, f0 to f8, with the columns gender, of two values, task, film and side.

    The side is even or odd, as the number of the film is, and so the same for all images of a film.
    """
    _, _, items, images = planted_items()
    for row in items.values():
        number_of_film = int(row["film"].removeprefix("f"))
        row["side"] = "odd" if number_of_film % 2 else "even"

    with pytest.raises(AuditError, match=message):
        audit_erase(images, items, **arguments)


@pytest.mark.parametrize("given", ["tests", "texts"])
def test_tests_of_association_and_their_texts_are_given_together(tmp_path, capsys, given):
    """Tests without their texts could not be run, and would be missing in the result."""
    (tmp_path / "items.csv").write_text("item_id,gender,film\na,w,f\n", encoding="utf-8")
    inputs = ["--images", tmp_path / "images", "--items", tmp_path / "items.csv"]
    about = ["--attribute", "gender", "--films", "film", "--out", tmp_path / "out.csv"]
    assert obygaze("audit", "erase", *inputs, *about, f"--{given}", "table1") == 2
    said = capsys.readouterr().err
    assert "--tests" in said
    assert "--texts" in said
