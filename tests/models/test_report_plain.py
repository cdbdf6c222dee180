"""Reports on a terminal: tables no wider than it, every cell there, every row still known by name."""

import pandas as pd

from obygaze_models.report import Block, Report, plain
from obygaze_models.report.plain import tables

WIDE = Block(
    "a block",
    ("model", "features", *(f"metric number {number}" for number in range(6))),
    (
        ("mlp", "xclip", *("0.123 [0.100, 0.200]" for _ in range(6))),
        ("mlp", "vivit", *("0.456 [0.400, 0.500]" for _ in range(6))),
    ),
    ("a note",),
)


def test_a_wide_table_is_cut_and_every_part_repeats_what_tells_rows_apart():
    parts = tables(WIDE)
    assert len(parts) == 3
    for part in parts:
        assert max(map(len, part.splitlines())) <= 80
        assert part.splitlines()[0].split()[:2] == ["model", "features"]
        assert [line.split()[:2] for line in part.splitlines()[2:]] == [["mlp", "xclip"], ["mlp", "vivit"]]
    assert sum(part.count("0.123") for part in parts) == 6


def test_a_narrow_table_stays_whole_and_a_column_too_wide_stands_alone():
    block = Block("narrow", ("a", "b"), (("1", "2"),))
    assert len(tables(block)) == 1
    assert len(tables(Block("empty", ("a", "b"), ()))) == 1
    assert len(tables(Block("wide", ("a", "b", "c"), (("1", "x" * 90, "3"),)))) == 2


def test_a_report_is_its_title_its_notes_and_its_blocks():
    text = plain(Report("name", "Table 0", ("to be known",), (WIDE,), pd.DataFrame(), {}))
    for said in ("Table 0\n  to be known\n", "\na block\n  a note\n", "metric number 5"):
        assert said in text
