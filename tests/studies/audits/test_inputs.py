"""Inputs are read strictly, as declared: every mistake names the file and the line or the id."""

import math

import pytest

from obygaze_features.errors import ManifestError
from obygaze_studies.audit_common.inputs import read_items, read_lines, read_rows, read_text_ids
from obygaze_studies.audits import Option, audits, resolve
from obygaze_studies.errors import AuditError
from tests.files import written


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"a\n", ""),
        (b"a,b\n1,2\n ,3\n", "line 3, column a"),
        (b"a\nx\nx\n", "a x"),
    ],
)
def test_a_bad_table_is_refused_and_the_place_named(tmp_path, content, place):
    path = written(tmp_path / "table.csv", content)
    with pytest.raises(AuditError, match=rf"table\.csv.*{place}"):
        read_rows(path, ["a"], unique=["a"])


def test_commas_quotes_and_line_ends_in_cells_are_kept(tmp_path):
    path = written(tmp_path / "table.csv", b'\xef\xbb\xbfa,b\r\n"x, ""y""","1\n2"\r\n')
    assert read_rows(path, ["a", "b"]) == ({"a": 'x, "y"', "b": "1\n2"},)


def test_items_are_named_by_item_id_or_image_id(tmp_path):
    path = tmp_path / "items.csv"
    for name in ("item_id", "image_id"):
        path.write_text(f"{name},side\ni1,X\n", encoding="utf-8")
        assert read_items(path)["i1"]["side"] == "X"
    path.write_text("name\ni1\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"items\.csv.*item_id"):
        read_items(path)


def test_what_looks_alike_in_a_table_of_items_is_one(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("item_id,side\na,e\u0301 X\nb, \u00e9  X \n", encoding="utf-8")
    assert {row["side"] for row in read_items(path).values()} == {"\u00e9 X"}
    path.write_text("item_id\ne\u0301\n\u00e9 \n", encoding="utf-8")
    with pytest.raises(AuditError, match="two rows"):
        read_items(path)


def test_two_ids_of_one_text_are_refused(tmp_path):
    path = written(tmp_path / "texts.csv", "text_id,text\nt1,a cat\nt2,a cat\n")
    with pytest.raises(AuditError, match=r"texts\.csv.*a cat"):
        read_text_ids(path)


def test_a_cell_that_is_no_number_is_named(tmp_path):
    for cell in ("high", "1_0", "nan"):
        path = written(tmp_path / "o.csv", f"image_id,p_c\ni,{cell}\n")
        with pytest.raises(AuditError, match=r"o\.csv: p_c of image_id i"):
            read_rows(path, ["image_id", "p_c"], numbers=["p_c"])


def test_a_list_is_one_name_a_line(tmp_path):
    path = tmp_path / "objects.txt"
    for text in ("\n \n", "cat,dog\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(AuditError, match=r"objects\.txt"):
            read_lines(path)
    path.write_text("cat\n\nmotor scooter \n", encoding="utf-8")
    assert read_lines(path) == ("cat", "motor scooter")


def test_ratings_are_read_as_declared_with_their_gaps(tmp_path):
    (declared,) = (option for option in audits()["alpha"].options if option.name == "ratings")
    path = written(tmp_path / "ratings.csv", "r1,item_id,r2\n1,i1,0\n,i2,1\n")
    first, second = declared.value(path)
    assert first == {"r1": 1.0, "item_id": "i1", "r2": 0.0}
    assert math.isnan(second["r1"])
    assert second["r2"] == 1.0
    for cell in ("nan", "inf", "many"):
        path.write_text(f"item_id,r1\ni1,{cell}\n", encoding="utf-8")
        with pytest.raises(AuditError, match=r"ratings\.csv.*item_id i1"):
            declared.value(path)
    path.write_text("item_id,\ni1\n", encoding="utf-8")
    with pytest.raises(AuditError, match=r"ratings\.csv.*item_id"):
        declared.value(path)


def test_a_setting_and_an_input_that_is_not_given_stay_as_they_are():
    assert Option(name="seed", type="int").value(3) == 3
    assert Option(name="texts", read="store").value(None) is None


def test_every_declared_function_is_there_and_takes_what_is_declared():
    for audit in audits().values():
        assert audit.examples
        assert all(callable(resolve(name)) for name in (audit.function, audit.prepare, *audit.draws.values()))
        for option in audit.options:
            assert option.help or option.argument
            assert option.read or option.type or option.choices, option.name
