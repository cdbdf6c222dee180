"""LEACE: no linear model tells the attribute on what it was fitted on; the least change that does so.

LEACE (least-squares concept erasure) is a linear map by which features forget an attribute, such as a gender.
"""

import csv
from dataclasses import replace
from typing import NamedTuple

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


class PlantedItems(NamedTuple):
    """600 items of nine films, whose features know a gender and a task.

    Attributes
    ----------
    X
        Features [600, 24]: the gender is in features 0 and 2, the task in feature 1.
    is_w
        Whether an item's gender is w, not m [600].
    items
        The rows of the table of items, by id: gender, task (0 or 1) and film. The task is more often 1 where
        the gender is w.
    images
        The embeddings that hold the features.
    """

    X: np.ndarray
    is_w: np.ndarray
    items: dict[str, dict[str, str]]
    images: Embeddings


def planted_items(seed=0, n=600, size=24, films=9):
    """Draw the items of `PlantedItems`.

    Feature 0 is higher by 2 and feature 2 by .6 where the gender is w; feature 1 is higher by 2 where the
    task is 1. The task is 1 in 65 % of items of w, and in 35 % of those of m.
    """
    rng = np.random.default_rng(seed)
    film = rng.integers(films, size=n)
    is_w = rng.random(n) < 0.5
    task = rng.random(n) < np.where(is_w, 0.65, 0.35)
    X = rng.normal(size=(n, size))
    X[:, 0] += 2 * is_w
    X[:, 1] += 2 * task
    X[:, 2] += 0.6 * is_w + 3
    ids = [f"i{number:03}" for number in range(n)]
    items = {}
    for number, item_id in enumerate(ids):
        items[item_id] = {
            "item_id": item_id,
            "gender": "w" if is_w[number] else "m",
            "task": str(int(task[number])),
            "film": f"f{film[number]}",
        }
    row_of_item = {item_id: row for row, item_id in enumerate(ids)}
    images = Embeddings("here", SPACE, X.astype(np.float32), row_of_item, "0", {})
    return PlantedItems(X, is_w, items, images)


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


def test_no_linear_model_tells_a_gender_that_leace_has_erased():
    """Features of 600 items know the gender, w or m. LEACE maps them linearly, so that they no longer do.

    Then w and m have the same mean features, and a linear model is no better than one that calls all items
    by the more frequent gender.
    """
    planted = planted_items()
    is_w = planted.is_w

    after = erased(planted.X, is_w)

    assert after[is_w].mean(axis=0) == pytest.approx(after[~is_w].mean(axis=0), abs=1e-9)
    nearly_unpenalised = LogisticRegression(C=1e6).fit(after, is_w)
    share_of_larger_class = max(is_w.mean(), 1 - is_w.mean())
    assert nearly_unpenalised.score(after, is_w) == pytest.approx(share_of_larger_class, abs=0.01)


def test_leace_takes_one_direction_from_features_and_nothing_more_a_second_time():
    """From features of 600 items LEACE erases the gender, w or m, and then once more.

    Two values differ in their means along one direction, the only one in which the features no longer vary.
    """
    planted = planted_items()

    after = erased(planted.X, planted.is_w)
    after_second_time = erased(after, planted.is_w)

    assert n_directions_lost(after) == 1
    assert after_second_time == pytest.approx(after, abs=1e-9)


def with_the_difference_of_means_projected_out(X, is_w):
    """Move features to where they do not vary along the line between the means of both genders."""
    difference = X[is_w].mean(axis=0) - X[~is_w].mean(axis=0)
    direction = difference / np.linalg.norm(difference)
    return X - np.outer((X - X.mean(axis=0)) @ direction, direction)


def distance_moved(before, after):
    """Sum the squared distances that features were moved, in their standard deviations (Mahalanobis).

    With the covariance C = L L^T, the squared distance of a move m is |L^-1 m|^2.
    """
    lower_triangle = np.linalg.cholesky(np.cov(before.T))
    return np.sum(np.linalg.solve(lower_triangle, (after - before).T) ** 2)


def test_leace_moves_features_less_than_projecting_out_the_difference_of_means():
    """Both make the means of the genders equal. By its derivation LEACE is the map that moves features least.

    The features are mixed at random, so that the gender is in many of them, which are correlated.
    """
    planted = planted_items(seed=1)
    mixed = planted.X @ np.random.default_rng(0).normal(size=(24, 24))

    after_leace = erased(mixed, planted.is_w)
    after_projection = with_the_difference_of_means_projected_out(mixed, planted.is_w)

    assert distance_moved(mixed, after_leace) < distance_moved(mixed, after_projection)


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


def test_erasing_an_attribute_that_is_the_same_for_all_items_changes_nothing():
    """LEACE makes the means of the attribute's values equal, and there is one mean."""
    features = np.random.default_rng(0).normal(size=(500, 6))

    erase = leace(features, ["a"] * 500)

    assert erase(features) == pytest.approx(features)


GENDER_TEST = EatTest("gender", x={"gender": "w"}, y={"gender": "m"}, a=("a",), b=("b",))
"""Whether images of w are nearer to the text a than to b, more so than images of m; d is the size of it."""


@pytest.fixture(scope="module")
def rows_of_audit():
    """What an audit measures before and after it erases the gender of `PlantedItems`.

    LEACE is fitted on some films. Columns are of these (fitted) or of the other films (others).
    """
    planted = planted_items()
    report = audit_erase(
        planted.images,
        planted.items,
        attribute="gender",
        films="film",
        task="task",
        texts=planted_texts(),
        tests=[GENDER_TEST],
    )
    return records(report.data)


def test_probes_of_other_films_do_not_tell_an_erased_gender(rows_of_audit):
    """A probe is trained to tell the gender; its balanced accuracy is .5 by chance.

    Trained on the films on which LEACE was fitted, it finds nothing there and has .5 on other films. Trained
    on other films, where the fitted LEACE leaves a little, it tells the gender much worse than before.
    """
    probe_of_fitted_films, probe_of_other_films, *_ = rows_of_audit

    assert probe_of_fitted_films["before_others"] > 0.75
    assert probe_of_fitted_films["after_others"] == pytest.approx(0.5, abs=0.05)
    assert probe_of_other_films["before_others"] > 0.7
    assert 0.5 < probe_of_other_films["after_others"] < probe_of_other_films["before_others"] - 0.1


def test_a_task_that_often_goes_with_an_erased_gender_is_still_told_by_a_probe(rows_of_audit):
    """The task is in a feature of its own. Its probe has a balanced accuracy above .6, and .5 is chance."""
    _, _, task, *_ = rows_of_audit

    assert 0.6 < task["after_others"] <= task["before_others"] + 0.02


def test_images_of_an_erased_gender_are_no_nearer_to_texts_than_others(rows_of_audit):
    """The last row is d of `GENDER_TEST`: 0 on the films on which LEACE was fitted, and smaller on others."""
    *_, effect = rows_of_audit

    assert effect["after_fitted"] == pytest.approx(0, abs=0.01)
    assert abs(effect["after_others"]) < effect["before_others"]


def test_the_erased_features_are_written_as_a_table(tmp_path):
    """The table has a row for each of 600 images: its id, and its features f0, f1, ... without the gender."""
    planted = planted_items()
    table = tmp_path / "erased.csv"

    audit_erase(planted.images, planted.items, attribute="gender", films="film", erased=table)

    with table.open(encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream))
    assert header[:2] == ["clip_id", "f0"]
    assert len(rows) == 600


def test_features_of_no_known_space_are_erased_but_not_compared_with_texts():
    """Images and texts can be compared where one network embedded both, as their space says.

    The same images are audited with the space `planted`, which is also that of the texts, and without one.
    """
    planted = planted_items()
    of_unknown_space = replace(planted.images, space=None)
    columns = {"attribute": "gender", "films": "film"}

    result = records(audit_erase(of_unknown_space, planted.items, **columns).data)

    assert result == records(audit_erase(planted.images, planted.items, **columns).data)
    with pytest.raises(AuditError, match="space"):
        audit_erase(of_unknown_space, planted.items, **columns, texts=planted_texts(), tests=[])


def test_an_effect_that_erasing_makes_undefined_does_not_stop_the_audit():
    """The features hold the gender and nothing else: all are 1, but feature 2 is 2 where the gender is w.

    After erasing it, all images are equal. The effect d divides by how much they differ, and so has no value.
    """
    planted = planted_items()
    gender_alone = np.ones_like(planted.X)
    gender_alone[:, 2] += planted.is_w
    images = replace(planted.images, vectors=gender_alone.astype(np.float32))

    report = audit_erase(
        images,
        planted.items,
        attribute="gender",
        films="film",
        texts=planted_texts(),
        tests=[GENDER_TEST],
    )

    *_, effect = records(report.data)
    assert effect["before_others"] > 1
    assert effect["after_others"] is None


def test_items_without_a_film_an_attribute_or_an_embedding_are_left_out_and_counted():
    """Of 601 items one has no film, one has a blank as gender, and one has no embedding in the store."""
    planted = planted_items()
    items = planted.items
    items["i000"]["film"] = ""
    items["i001"]["gender"] = " "
    items["without_embedding"] = items["i002"]

    report = audit_erase(planted.images, items, attribute="gender", films="film")

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
    planted = planted_items()
    for row in planted.items.values():
        number_of_film = int(row["film"].removeprefix("f"))
        row["side"] = "odd" if number_of_film % 2 else "even"

    with pytest.raises(AuditError, match=message):
        audit_erase(planted.images, planted.items, **arguments)


@pytest.mark.parametrize("given_option", ["--tests", "--texts"])
def test_audit_erase_with_association_tests_or_their_texts_alone_asks_for_both(
    tmp_path, capsys, given_option
):
    """`audit erase` can run tests of association of images with texts, before and after it erases a gender.

    It needs the tests (`--tests`) and the embeddings of their texts (`--texts`). With one of these options
    alone no test could be run, and the result would lack them without a word: the command ends with the
    code 2, of wrong options, and names both.
    """
    table_of_items = tmp_path / "items.csv"
    table_of_items.write_text("item_id,gender,film\na,w,f\n", encoding="utf-8")
    options = ["--images", tmp_path / "images", "--items", table_of_items, "--out", tmp_path / "out.csv"]
    columns = ["--attribute", "gender", "--films", "film"]

    exit_code = obygaze("audit", "erase", *options, *columns, given_option, "table1")

    message = capsys.readouterr().err
    assert exit_code == 2
    assert "--tests" in message
    assert "--texts" in message
