"""A column is a feature because it is asked for, or is of the one numbered series: a label never slips in."""

import re
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from obygaze_features.errors import StoreError
from obygaze_features.exchange.columns import choose_columns
from obygaze_features.exchange.import_tables import table_items
from tests.manifest.spans.files import sheet

TABLE = Path("a.csv")
NUMBERS = "number"
LISTS = "list"
TEXTS = "other"


def chosen(kinds, *patterns, never=()):
    return choose_columns(TABLE, list(kinds), kinds.__getitem__, patterns, never)


def series(prefix, n, first=0):
    return dict.fromkeys((f"{prefix}{number}" for number in range(first, first + n)), NUMBERS)


@pytest.mark.parametrize(
    ("kinds", "features"),
    [
        (series("f", 3), ["f0", "f1", "f2"]),
        (series("emb_", 3, 1), ["emb_1", "emb_2", "emb_3"]),
        (series("", 12), [str(number) for number in range(12)]),
        ({"f10": NUMBERS} | series("f", 10), [f"f{number}" for number in range(11)]),
        ({"f00": NUMBERS, "f01": NUMBERS}, ["f00", "f01"]),
        (series("f", 2) | {"title": TEXTS, "note1": TEXTS, "note2": TEXTS}, ["f0", "f1"]),
        ({"embedding": LISTS, "title": TEXTS}, ["embedding"]),
    ],
    ids=["f0", "from 1 on", "bare numbers", "out of order", "zeros", "beside texts", "one column of lists"],
)
def test_unasked_the_one_numbered_series_of_columns_are_the_features(kinds, features):
    assert chosen(kinds) == features


@pytest.mark.parametrize(
    ("kinds", "asked", "features"),
    [
        (series("f", 2) | {"label": NUMBERS}, ("f*",), ["f0", "f1"]),
        (series("f", 2) | {"label": NUMBERS}, ("!label",), ["f0", "f1"]),
        (series("f", 2) | {"label": NUMBERS}, ("label", "f?"), ["f0", "f1", "label"]),
        (series("f", 2) | series("g", 2), ("f*", "!f0"), ["f1"]),
        ({"mean": NUMBERS, "std": NUMBERS}, ("*",), ["mean", "std"]),
        ({"embedding": LISTS, "label": NUMBERS}, ("embedding",), ["embedding"]),
    ],
    ids=["f*", "all but the label", "the label too", "f* but f0", "all", "a column of lists"],
)
def test_columns_that_are_asked_for_are_the_features(kinds, asked, features):
    assert chosen(kinds, *asked) == features


@pytest.mark.parametrize(
    "kinds",
    [
        series("f", 4) | {"label": NUMBERS},
        series("f", 4) | {"year2": NUMBERS},
        series("f", 4) | {"y": NUMBERS, "z": NUMBERS},
        series("f", 4) | series("concept_", 3),
        {"embedding": LISTS, "label": NUMBERS},
        {"rgb": LISTS, "flow": LISTS},
        {"mean": NUMBERS, "std": NUMBERS},
        {"f0": NUMBERS},
        {"f0": NUMBERS, "f1": NUMBERS, "f3": NUMBERS},
        {"f1": NUMBERS, "f01": NUMBERS, "f2": NUMBERS},
        {"f2": NUMBERS, "f3": NUMBERS},
        {"title": TEXTS},
        {},
    ],
    ids=[
        *("a label", "a year", "two labels", "two series", "lists and a label", "two columns of lists"),
        *("no series", "one number", "no f2", "f1 twice", "no f0 and no f1", "texts alone", "nothing"),
    ],
)
def test_columns_that_are_not_clearly_one_series_are_refused_until_they_are_asked_for(kinds):
    with pytest.raises(StoreError, match=r"^a\.csv: "):
        chosen(kinds)


@given(st.sets(st.from_regex(r"[a-z_]{1,6}[0-9]{0,2}", fullmatch=True)), st.integers(2, 40))
def test_no_column_beside_a_series_becomes_a_feature_unasked(others, n):
    features = series("feature", n)
    kinds = dict.fromkeys(others, NUMBERS) | features
    if others:
        with pytest.raises(StoreError, match="--columns"):
            chosen(kinds)
    assert set(chosen(kinds, *(f"!{name}" for name in others))) == set(features)


def test_the_pattern_that_a_refusal_names_takes_the_series_alone():
    kinds = {"f0": "number", "f1": "number", "fps": "number", "fold": "number", "title": "other"}
    with pytest.raises(StoreError) as refused:
        choose_columns(Path("a.csv"), [*kinds], kinds.__getitem__)
    (pattern,) = re.findall(r"--columns '([^!']*)'", str(refused.value))
    assert choose_columns(Path("a.csv"), [*kinds], kinds.__getitem__, [pattern]) == ["f0", "f1"]


def test_a_column_whose_number_has_thousands_of_digits_is_not_of_a_series():
    kinds = series("f", 2) | {"f" + "9" * 5000: NUMBERS}
    with pytest.raises(StoreError, match="--columns"):
        chosen(kinds)
    assert chosen(kinds, "f?") == ["f0", "f1"]


LABELLED = series("f", 2) | {"Weapon": NUMBERS, "clip_id": TEXTS}
NEVER = {"Weapon", "clip_id"}


@pytest.mark.parametrize("asked", [(), ("*",)], ids=["nothing asked for", "all"])
def test_labels_of_the_manifest_are_never_features(asked):
    assert chosen(LABELLED, *asked, never=NEVER) == ["f0", "f1"]


@pytest.mark.parametrize("pattern", ["Weapon", "g*", "!label"])
def test_a_pattern_that_matches_no_column_is_refused(pattern):
    with pytest.raises(StoreError):
        chosen(LABELLED, pattern, never=NEVER)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(StoreError, match="'f0'"):
        choose_columns(TABLE, ["f0", "f0", "f1"], {"f0": NUMBERS, "f1": NUMBERS}.__getitem__)


NAMES = (
    "label y target class score hn_s fold split year fps duration n_frames frame age shot level2 rating "
    "weight valence time seed length Label"
)
"""Of numbers that tables of experiments have beside features."""


def excel(frame, path):
    """Write as Excel does where the comma is decimal."""
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8-sig")


def named(frame, path):
    """Write as Excel does, with the line that names what is between cells."""
    path.write_text("sep=;\n" + frame.to_csv(index=False, sep=";", decimal=","), encoding="utf-8")


def unicode_text(frame, path):
    frame.to_csv(path, index=False, sep="\t", encoding="utf-16")


def workbook(frame, path):
    pytest.importorskip("python_calamine")
    path.write_bytes(sheet([[*frame.columns], *frame.astype(object).to_numpy().tolist()]))


FORMS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "excel.csv": excel,
    "sep.csv": named,
    "unicode.tsv": unicode_text,
    "xlsx": workbook,
    "parquet": lambda frame, path: frame.to_parquet(path),
}


@pytest.fixture(params=FORMS)
def experiment_table(tmp_path, request):
    """Make a table, in each form, of features, a title and one number of an experiment."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"a.{request.param}"

    def write(number_of_experiment):
        columns = {"f0": [0.5, 1], number_of_experiment: [1.5, 0], "f1": [2, 3.0], "title": ["x", "y"]}
        FORMS[request.param](pd.DataFrame({"clip_id": ["a", "b"], **columns}), path)
        return path

    return write


@pytest.mark.parametrize("name", NAMES.split())
def test_a_number_of_an_experiment_beside_features_is_refused_by_name(experiment_table, name):
    with (
        pytest.raises(StoreError, match=rf"\b{name}\b.*--columns"),
        table_items(experiment_table(name), None),
    ):
        pass


@pytest.mark.parametrize("name", NAMES.split())
def test_a_number_of_an_experiment_can_be_left_out_by_name(experiment_table, name):
    with table_items(experiment_table(name), None, columns=[f"!{name}"]) as (items, about):
        assert items["a"].load()[""].tolist() == [0.5, 2]
        assert name in about["left_out"]


def test_a_number_of_an_experiment_becomes_a_feature_where_that_is_asked_for(experiment_table):
    name = NAMES.rsplit(maxsplit=1)[-1]
    with table_items(experiment_table(name), None, columns=["f?", name]) as (items, _):
        assert items["b"].load()[""].tolist() == [1, 0, 3]


def test_a_matrix_without_names_has_no_columns_to_ask_for(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((1, 2)))
    (tmp_path / "ids.txt").write_text("a")
    with (
        pytest.raises(StoreError, match=r"a\.npy"),
        table_items(tmp_path / "a.npy", str(tmp_path / "ids.txt"), columns=["x"]),
    ):
        pass
