"""Files with the ids of clips, by which a part of a store is pulled: no row of them is lost in silence."""

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.row_ids import read_ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a-1\na-2\n", ["a-1", "a-2"]),
        ("\ufeffa-1\r\na-2", ["a-1", "a-2"]),
        ("level,clip_id\nS,a-1\nHN,a-2\n", ["a-1", "a-2"]),
    ],
    ids=["a line each", "byte order mark, lines of Windows", "a column"],
)
def test_ids_are_read_from_lines_or_a_column(tmp_path, text, ids):
    """A list that an editor wrote, or a table with other columns beside."""
    (tmp_path / "few.txt").write_text(text, encoding="utf-8", newline="")

    assert read_ids(tmp_path / "few.txt") == ids


def test_a_table_without_a_row_is_no_list_of_ids(tmp_path):
    """A filter that left nothing wrote it; the pull would copy no clip, and call that done."""
    (tmp_path / "few.csv").write_text("clip_id,level\n")

    with pytest.raises(StoreError, match=r"few\.csv: there is no clip id in it"):
        read_ids(tmp_path / "few.csv")


@pytest.mark.parametrize("row", ["HN", "HN,"], ids=["it ends before its id", "its id is empty"])
def test_a_row_without_an_id_is_named(tmp_path, row):
    """The row is not passed over, as its clip would be missing in the copy."""
    (tmp_path / "few.csv").write_text(f"level,clip_id\nS,a-1\n{row}\n")

    with pytest.raises(StoreError, match=r"few\.csv: line 3: no clip_id; every row needs one"):
        read_ids(tmp_path / "few.csv")
