"""A column is a feature if it is asked for, or is one of the only numbered columns: labels never slip in."""

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

from .lab_features import array_of

TABLE = Path("a.csv")
NUMBERS = "number"
LISTS = "list"
TEXTS = "other"


def features_among(kinds, *patterns, never=()):
    """Choose the features among columns, given as name -> kind; `never` names labels."""
    return choose_columns(TABLE, list(kinds), kinds.__getitem__, patterns, never)


def number_columns(prefix, n, first=0):
    """Make columns of numbers that are called PREFIX and a number: name -> kind."""
    return dict.fromkeys((f"{prefix}{number}" for number in range(first, first + n)), NUMBERS)


@pytest.mark.parametrize(
    ("kinds", "features"),
    [
        (number_columns("f", 3), ["f0", "f1", "f2"]),
        (number_columns("emb_", 3, first=1), ["emb_1", "emb_2", "emb_3"]),
        (number_columns("", 12), [str(number) for number in range(12)]),
        ({"f10": NUMBERS} | number_columns("f", 10), [f"f{number}" for number in range(11)]),
        ({"f00": NUMBERS, "f01": NUMBERS}, ["f00", "f01"]),
        (number_columns("f", 2) | {"title": TEXTS, "note1": TEXTS, "note2": TEXTS}, ["f0", "f1"]),
        ({"embedding": LISTS, "title": TEXTS}, ["embedding"]),
    ],
    ids=["f0", "from 1 on", "bare numbers", "out of order", "zeros", "beside texts", "one column of lists"],
)
def test_without_an_option_the_numbered_columns_are_the_features(kinds, features):
    """Columns of numbers that are called f0, f1, f2 and so on are taken for features; so is one of lists.

    A table has columns, each of a kind: of numbers, lists or texts. `number_columns("f", 3)` makes the
    columns f0, f1 and f2 of numbers.
    """
    no_option = ()

    assert features_among(kinds, *no_option) == features


@pytest.mark.parametrize(
    ("kinds", "patterns", "features"),
    [
        (number_columns("f", 2) | {"label": NUMBERS}, ("f*",), ["f0", "f1"]),
        (number_columns("f", 2) | {"label": NUMBERS}, ("!label",), ["f0", "f1"]),
        (number_columns("f", 2) | {"label": NUMBERS}, ("label", "f?"), ["f0", "f1", "label"]),
        (number_columns("f", 2) | number_columns("g", 2), ("f*", "!f0"), ["f1"]),
        ({"mean": NUMBERS, "std": NUMBERS}, ("*",), ["mean", "std"]),
        ({"embedding": LISTS, "label": NUMBERS}, ("embedding",), ["embedding"]),
    ],
    ids=["f*", "all but the label", "the label too", "f* but f0", "all", "a column of lists"],
)
def test_columns_that_are_asked_for_are_the_features(kinds, patterns, features):
    """The option --columns has patterns with wildcards; one that begins with "!" leaves columns out.

    A table has columns, each of a kind: of numbers or lists. `number_columns("f", 2)` makes f0 and f1.
    """
    assert features_among(kinds, *patterns) == features


COLUMNS_TO_BE_ASKED_FOR = {
    "a label": number_columns("f", 4) | {"label": NUMBERS},
    "a year": number_columns("f", 4) | {"year2": NUMBERS},
    "two labels": number_columns("f", 4) | {"y": NUMBERS, "z": NUMBERS},
    "two series": number_columns("f", 4) | number_columns("concept_", 3),
    "lists and a label": {"embedding": LISTS, "label": NUMBERS},
    "two columns of lists": {"rgb": LISTS, "flow": LISTS},
    "no series": {"mean": NUMBERS, "std": NUMBERS},
    "one number": {"f0": NUMBERS},
    "no f2": {"f0": NUMBERS, "f1": NUMBERS, "f3": NUMBERS},
    "f1 twice": {"f1": NUMBERS, "f01": NUMBERS, "f2": NUMBERS},
    "no f0 and no f1": {"f2": NUMBERS, "f3": NUMBERS},
    "texts alone": {"title": TEXTS},
    "nothing": {},
}


@pytest.mark.parametrize("kinds", COLUMNS_TO_BE_ASKED_FOR.values(), ids=COLUMNS_TO_BE_ASKED_FOR)
def test_columns_that_are_not_clearly_one_numbered_series_are_refused(kinds):
    """Any other number might be a label, which must never become a feature unnoticed.

    `kinds` says of each column of the table a.csv whether it has numbers, lists or texts.
    """
    with pytest.raises(StoreError, match=r"^a\.csv: "):
        features_among(kinds)


some_other_columns = st.sets(st.from_regex(r"[a-z_]{1,6}[0-9]{0,2}", fullmatch=True), min_size=1)


@given(names_of_others=some_other_columns, n_features=st.integers(2, 40))
def test_any_column_of_numbers_beside_a_series_must_be_left_out_by_name(names_of_others, n_features):
    """A table has the columns feature0, feature1, ... and others of numbers, with names drawn at random.

    Each of the others might be a label. They are left out by patterns such as "!year".
    """
    features = number_columns("feature", n_features)
    others = dict.fromkeys(names_of_others, NUMBERS)
    table = others | features

    with pytest.raises(StoreError, match="--columns"):
        features_among(table)

    patterns_without_others = [f"!{name}" for name in names_of_others]
    assert features_among(table, *patterns_without_others) == list(features)


def test_the_pattern_that_a_refusal_names_matches_the_numbered_columns_alone():
    """The refusal proposes a pattern: "f*" would also match the columns "fps" and "fold"."""
    kinds = {"f0": NUMBERS, "f1": NUMBERS, "fps": NUMBERS, "fold": NUMBERS, "title": TEXTS}
    with pytest.raises(StoreError) as refused:
        features_among(kinds)

    (pattern,) = re.findall(r"--columns '([^!']*)'", str(refused.value))
    assert features_among(kinds, pattern) == ["f0", "f1"]


def test_a_column_numbered_with_thousands_of_digits_is_no_feature():
    """Python refuses to read such a number, which must not stop the import with a traceback.

    Other columns are f0 and f1.
    """
    kinds = {"f0": NUMBERS, "f1": NUMBERS, "f" + "9" * 5000: NUMBERS}

    with pytest.raises(StoreError, match="--columns"):
        features_among(kinds)

    assert features_among(kinds, "f?") == ["f0", "f1"]


COLUMNS_WITH_LABEL = number_columns("f", 2) | {"Weapon": NUMBERS, "clip_id": TEXTS}


@pytest.mark.parametrize("patterns", [(), ("*",)], ids=["nothing asked for", "all"])
def test_labels_of_the_manifest_are_never_features(patterns):
    """A column that has the name of a label is left out even if all columns are asked for.

    The table has the columns f0, f1, Weapon and clip_id.
    """
    assert features_among(COLUMNS_WITH_LABEL, *patterns, never={"Weapon", "clip_id"}) == ["f0", "f1"]


@pytest.mark.parametrize(
    "pattern", ["g*", "!label", "Weapon"], ids=["no such column", "none to leave out", "a label alone"]
)
def test_a_pattern_that_matches_no_column_that_may_be_a_feature_is_refused(pattern):
    """The table has the columns f0, f1, Weapon and clip_id, of which the last two are never features."""
    with pytest.raises(StoreError):
        features_among(COLUMNS_WITH_LABEL, pattern, never={"Weapon", "clip_id"})


def test_two_columns_of_one_name_are_refused():
    """Which of the two is meant by f0 is not known."""
    names = ["f0", "f0", "f1"]
    kinds = {"f0": NUMBERS, "f1": NUMBERS}

    with pytest.raises(StoreError, match="'f0'"):
        choose_columns(TABLE, names, kinds.__getitem__)


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


@pytest.mark.parametrize("name", ["label", "level2", "n_frames"])
def test_a_number_beside_features_is_refused_by_name(name):
    """Tables of experiments have labels, folds and times beside features; none may slip in."""
    with pytest.raises(StoreError, match=rf"\b{name}\b.*--columns"):
        features_among({"f0": NUMBERS, name: NUMBERS, "f1": NUMBERS, "title": TEXTS})


def read_items(*arguments, **options):
    """Read the items of a table, and what is said about it, from a file that is closed again."""
    with table_items(*arguments, **options) as (items, about):
        return {clip: array_of(item).tolist() for clip, item in items.items()}, about


@pytest.mark.parametrize("form", FORMS)
def test_a_score_beside_features_is_refused_until_it_is_left_out_or_asked_for(tmp_path, form):
    """A table of clips a and b has the features f0 and f1, with a score and a title beside."""
    if form == "parquet":
        pytest.importorskip("pyarrow")
    columns = {"f0": [0.5, 1], "score": [1.5, 0], "f1": [2, 3.0], "title": ["x", "y"]}
    table = pd.DataFrame({"clip_id": ["a", "b"], **columns})
    path = tmp_path / f"a.{form}"
    write_table = FORMS[form]
    write_table(table, path)

    with pytest.raises(StoreError, match=r"\bscore\b.*--columns"):
        read_items(path, None)

    arrays, about = read_items(path, None, columns=["!score"])
    assert arrays == {"a": [0.5, 2], "b": [1, 3]}
    assert "score" in about["left_out"]

    arrays, _ = read_items(path, None, columns=["f?", "score"])
    assert arrays["b"] == [1, 0, 3]


def test_columns_of_a_matrix_without_names_cannot_be_asked_for(tmp_path):
    """A file .npy has one array, here of one row and two columns; names are in tables alone."""
    np.save(tmp_path / "a.npy", np.zeros((1, 2)))
    (tmp_path / "ids.txt").write_text("a")

    with pytest.raises(StoreError, match=r"a\.npy"):
        read_items(tmp_path / "a.npy", str(tmp_path / "ids.txt"), columns=["x"])
