"""Inputs are read strictly, as declared: every mistake names the file and the line or the id."""

import math
from functools import partial

import pytest

from obygaze_features.errors import ObygazeError
from obygaze_studies.alpha import read_ratings
from obygaze_studies.audit_common.inputs import read_items, read_names, read_rows, read_text_ids
from tests.files import written

read_rows_named_by_a = partial(read_rows, needed=["a"], unique=["a"])
read_confidences = partial(read_rows, needed=["image_id", "p_c"], numbers=["p_c"])


def test_commas_quotes_and_line_ends_in_cells_are_kept(tmp_path):
    path = written(tmp_path / "table.csv", b'\xef\xbb\xbfa,b\r\n"x, ""y""","1\n2"\r\n')
    assert read_rows(path, ["a", "b"]) == ({"a": 'x, "y"', "b": "1\n2"},)


def test_items_are_named_by_item_id_or_image_id(tmp_path):
    path = tmp_path / "items.csv"
    for name in ("item_id", "image_id"):
        path.write_text(f"{name},side\ni1,X\n", encoding="utf-8")
        assert read_items(path)["i1"]["side"] == "X"


def test_equal_letters_in_two_unicode_forms_and_spaces_around_them_are_one_value(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("item_id,side\na,e\u0301 X\nb, \u00e9  X \n", encoding="utf-8")
    assert {row["side"] for row in read_items(path).values()} == {"\u00e9 X"}


def test_a_list_is_one_name_a_line(tmp_path):
    assert read_names(written(tmp_path / "o.txt", "cat\n\nmotor scooter \n")) == ("cat", "motor scooter")


def test_ratings_are_read_as_declared_with_their_gaps(tmp_path):
    path = written(tmp_path / "ratings.csv", "r1,item_id,r2\n1,i1,0\n,i2,1\n")
    first, second = read_ratings(path)
    assert first == {"r1": 1.0, "item_id": "i1", "r2": 0.0}
    assert math.isnan(second["r1"])
    assert second["r2"] == 1.0


@pytest.mark.parametrize(("separator", "decimal_point"), [(",", "."), (";", ","), (";", "."), ("\t", ",")])
def test_tables_of_spreadsheets_with_other_separators_and_empty_rows_are_read(
    tmp_path, separator, decimal_point
):
    rows = ["item_id,r1", "i1,1.5", " ,", "i2,2"]
    lines = [separator.join(cell.replace(".", decimal_point) for cell in row.split(",")) for row in rows]
    ratings = read_ratings(written(tmp_path / "ratings.csv", "\n".join(lines)))
    assert [row["r1"] for row in ratings] == [1.5, 2.0]


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_rows_named_by_a, "a\n", ""),
        (read_rows_named_by_a, "a,b\n1,2\n ,3\n", "line 3, column a"),
        (read_rows_named_by_a, "a\nx\nx\n", "a x"),
        (read_text_ids, "text_id,text\nt1,a cat\nt2,a cat\n", "a cat"),
        (read_names, "\n \n", ""),
        (read_names, "cat,dog\n", ""),
        (read_items, "name\ni1\n", "item_id"),
        (read_items, "item_id\ne\u0301\n\u00e9 \n", "two rows"),
        *(
            (read_confidences, f"image_id,p_c\ni,{cell}\n", "p_c of image_id i")
            for cell in ("high", "1_0", "nan")
        ),
        (read_ratings, "item_id;r1\ni1;1.500\n", "r1: '1.500'"),
        *((read_ratings, f"item_id,r1\ni1,{cell}\n", "item_id i1") for cell in ("nan", "inf", "many")),
        (read_ratings, "item_id,\ni1\n", "item_id"),
    ],
)
def test_a_mistake_names_the_file_and_the_place(tmp_path, read, content, message):
    with pytest.raises(ObygazeError, match=rf"given\.csv.*{message}"):
        read(written(tmp_path / "given.csv", content))
