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
    """The table begins with a byte order mark, as spreadsheets write it. Quotes in a cell are doubled."""
    path = written(tmp_path / "table.csv", b'\xef\xbb\xbfa,b\r\n"x, ""y""","1\n2"\r\n')

    assert read_rows(path, ["a", "b"]) == ({"a": 'x, "y"', "b": "1\n2"},)


@pytest.mark.parametrize("name", ["item_id", "image_id"])
def test_items_are_named_by_item_id_or_image_id(tmp_path, name):
    """The column with the ids of the items may have either heading."""
    path = written(tmp_path / "items.csv", f"{name},side\ni1,X\n")

    assert read_items(path)["i1"]["side"] == "X"


def test_equal_letters_in_two_unicode_forms_and_spaces_around_them_are_one_value(tmp_path):
    """The letter is written as e with an accent behind it, and as one character; spaces differ too."""
    path = written(tmp_path / "items.csv", "item_id,side\na,e\u0301 X\nb, \u00e9  X \n")

    assert {row["side"] for row in read_items(path).values()} == {"\u00e9 X"}


def test_a_list_has_one_name_a_line_which_may_be_of_several_words(tmp_path):
    """Empty lines, and spaces at the end of a line, don't count."""
    path = written(tmp_path / "objects.txt", "cat\n\nmotor scooter \n")

    assert read_names(path) == ("cat", "motor scooter")


def test_ratings_are_numbers_and_a_missing_one_is_nan(tmp_path):
    """A table of ratings has a column for each rater, r1 and r2; the ids of items may stand between them.

    The second item has no rating by r1.
    """
    path = written(tmp_path / "ratings.csv", "r1,item_id,r2\n1,i1,0\n,i2,1\n")

    first, second = read_ratings(path)

    assert first == {"r1": 1.0, "item_id": "i1", "r2": 0.0}
    assert math.isnan(second["r1"])
    assert second["r2"] == 1.0


@pytest.mark.parametrize(("separator", "decimal_point"), [(",", "."), (";", ","), (";", "."), ("\t", ",")])
def test_tables_of_spreadsheets_with_other_separators_and_empty_rows_are_read(
    tmp_path, separator, decimal_point
):
    """Two items have the ratings 1.5 and 2 by the rater r1; the row between them is empty.

    Cells are separated by commas, semicolons or tabs, and numbers have a decimal point or comma.
    """
    table = f"item_id{separator}r1\ni1{separator}1{decimal_point}5\n {separator}\ni2{separator}2"

    ratings = read_ratings(written(tmp_path / "ratings.csv", table))

    assert [row["r1"] for row in ratings] == [1.5, 2.0]


@pytest.mark.parametrize(
    ("read", "content", "place"),
    [
        pytest.param(read_rows_named_by_a, "a\n", "", id="no row"),
        pytest.param(read_rows_named_by_a, "a,b\n1,2\n ,3\n", "line 3, column a", id="a row without name"),
        pytest.param(read_rows_named_by_a, "a\nx\nx\n", "a x", id="a name twice"),
        pytest.param(read_text_ids, "text_id,text\nt1,a cat\nt2,a cat\n", "a cat", id="a text twice"),
        pytest.param(read_names, "\n \n", "", id="no name"),
        pytest.param(read_names, "cat,dog\n", "", id="two names in a line"),
        pytest.param(read_items, "name\ni1\n", "item_id", id="no ids of items"),
        pytest.param(read_items, "item_id\ne\u0301\n\u00e9 \n", "two rows", id="one id in two Unicode forms"),
        pytest.param(read_ratings, "item_id;r1\ni1;1.500\n", "r1: '1.500'", id="1.5, or 1500?"),
        pytest.param(read_ratings, "item_id,\ni1\n", "item_id", id="a rater without name"),
    ],
)
def test_a_mistake_names_the_file_and_the_place(tmp_path, read, content, place):
    """Each kind of table has its own function that reads it, and the content has one mistake.

    In a table of semicolons a point may separate thousands, so "1.500" may be two numbers.
    """
    path = written(tmp_path / "given.csv", content)

    with pytest.raises(ObygazeError, match=rf"given\.csv.*{place}"):
        read(path)


@pytest.mark.parametrize("cell", ["high", "1_0", "nan"])
def test_a_confidence_that_is_no_number_names_the_file_and_the_image(tmp_path, cell):
    """Python reads 1_0 as 10, which is a slip in a table; `p_c` is the column of confidences."""
    path = written(tmp_path / "given.csv", f"image_id,p_c\ni,{cell}\n")

    with pytest.raises(ObygazeError, match=r"given\.csv.*p_c of image_id i"):
        read_confidences(path)


@pytest.mark.parametrize("cell", ["nan", "inf", "many"])
def test_a_rating_that_is_no_finite_number_names_the_file_and_the_item(tmp_path, cell):
    """The table has one item, i1, and its rating by the rater r1."""
    path = written(tmp_path / "given.csv", f"item_id,r1\ni1,{cell}\n")

    with pytest.raises(ObygazeError, match=r"given\.csv.*item_id i1"):
        read_ratings(path)
