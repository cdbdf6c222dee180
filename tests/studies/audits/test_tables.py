"""Tables are read strictly: every mistake names the file and the line or the id."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_studies.audit_common.audit_tables import number, read_items, read_rows, read_text_ids
from obygaze_studies.errors import AuditError
from tests.files import written


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"a\n", ""),
        (b"a,b\n1,2\n ,3\n", "line 3: the cell of column a"),
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


def test_two_ids_of_one_text_are_refused(tmp_path):
    path = written(tmp_path / "texts.csv", "text_id,text\nt1,a cat\nt2,a cat\n")
    with pytest.raises(AuditError, match=r"texts\.csv.*a cat"):
        read_text_ids(path)


def test_a_cell_that_is_no_number_is_named(tmp_path):
    with pytest.raises(AuditError, match=r"o\.csv.*p_c of image_id 'i'"):
        number(tmp_path / "o.csv", {"image_id": "i", "p_c": "high"}, "p_c", "image_id")
