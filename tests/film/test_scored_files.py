"""Folders of scored films are written whole, and read as what strangers wrote."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from obygaze_features.errors import OutputError
from obygaze_features.io import sha256_of
from obygaze_film import scored_files
from obygaze_film.errors import FilmError
from obygaze_film.exchange import write_export
from obygaze_film.page import film_page
from obygaze_film.scored_files import FILES, link, write_films
from obygaze_film.timeline import Timeline, read_films
from tests.film.page.invented import fake_scored_film

BREAKS_TERMINALS = "\x1b]0;gone\x07"


@pytest.fixture
def copy_with(scored, tmp_path):
    """A function that copies the folder of a scored film; in one file it changes the first place of a text.

    The digests in `film.json` are those of the changed file, unless `digests` is False.
    """

    def copy(name, old="", new="", *, digests=True):
        folder = tmp_path / "film"
        shutil.copytree(scored[0], folder)
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        if digests and name != "film.json":
            record = json.loads((folder / "film.json").read_bytes())
            record["tables"][name] = sha256_of(path.read_bytes())
            (folder / "film.json").write_text(json.dumps(record), encoding="utf-8")
        return folder

    return copy


def film_with(timeline, **record):
    """Return a film with some fields of its record changed."""
    return Timeline(replace(timeline.record, **record), timeline.table, timeline.shots, timeline.frames)


class EditedLine(NamedTuple):
    """A line of the timeline's table, as it is and with one cell changed."""

    before: str
    after: str


def line_with(folder, column, value, row=30):
    """Return a line of a film's timeline, and the same with another value in one column."""
    header, *lines = (folder / "timeline.csv").read_text(encoding="utf-8").splitlines()
    before = lines[row - 1]
    cells = dict(zip(header.split(","), before.split(","), strict=True))
    cells[column] = value
    return EditedLine(before, ",".join(cells.values()))


@pytest.mark.long
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("start_s", "nan"),
        ("start_s", "inf"),
        ("start_s", "-1"),
        ("start_s", "1e300"),
        ("start_s", ""),
        ("end_s", "inf"),
        ("end_s", "0"),
        ("end_s", "600.5"),
        ("p", "1.5"),
        ("p", "-0.1"),
        ("p", "inf"),
        ("p", ""),
        ("p_low", ""),
        ("p_low", "nan"),
        ("called", "0.5"),
        ("called", "inf"),
        ("called", "-1"),
        ("n_windows", "1e300"),
        ("n_windows", "2.5"),
        ("logit", "inf"),
        ("flags", BREAKS_TERMINALS),
        ("movie", "\u202efilm"),
    ],
)
def test_an_impossible_cell_is_refused_with_its_file_and_column(scored, copy_with, column, value):
    """One cell of a film's timeline is changed. Folders of scored films may come from strangers.

    An end that does not fit its start may be reported as of `start_s`, and a missing p as of `p_low`.
    """
    folder, _film = scored
    line = line_with(folder, column, value)
    changed_folder = copy_with("timeline.csv", old=line.before, new=line.after)
    with pytest.raises(FilmError, match=rf"timeline\.csv: column.*(start_s|p_low|{column})"):
        Timeline.read(changed_folder)


def test_a_span_without_length_is_refused(scored, copy_with):
    """The 30th row of the timeline ends where it begins."""
    folder, _film = scored
    start_s = pd.read_csv(folder / "timeline.csv", dtype=str).loc[29, "start_s"]
    line = line_with(folder, "end_s", start_s, row=30)
    changed_folder = copy_with("timeline.csv", old=line.before, new=line.after)
    with pytest.raises(FilmError):
        Timeline.read(changed_folder)


def test_times_of_a_model_that_do_not_rise_are_refused(scored, copy_with):
    """Two rows have changed places, so that the second begins before the first."""
    folder, _film = scored
    _head, first, second, *_ = (folder / "timeline.csv").read_text(encoding="utf-8").splitlines()
    changed_folder = copy_with("timeline.csv", old=f"{first}\n{second}", new=f"{second}\n{first}")
    with pytest.raises(FilmError, match="do not rise"):
        Timeline.read(changed_folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("duration_s", 0),
        ("duration_s", -5),
        ("duration_s", 1e12),
        ("duration_s", 1e300),
        ("duration_s", "NaN"),
        ("year", -1),
        ("title", BREAKS_TERMINALS),
        ("title", "\u202efilm"),
        ("versions", {"numpy": "\x00"}),
        ("movie", "x" * 10 + "\x9b"),
    ],
)
def test_an_impossible_field_is_refused(copy_with, field, value):
    """A field of a film's record, `film.json`, is replaced, as in a folder from a stranger.

    A length is more than 0 s and at most a million, and a year is positive. Some texts have characters that
    change what a terminal shows.
    """
    folder = copy_with("film.json")
    record = json.loads((folder / "film.json").read_bytes())
    (folder / "film.json").write_text(json.dumps(record | {field: value}), encoding="utf-8")
    with pytest.raises(FilmError, match=r"film\.json"):
        Timeline.read(folder)


@pytest.mark.parametrize("name", ["timeline.csv", "shots.csv"])
def test_a_table_of_another_scoring_is_refused(copy_with, name):
    """A scored film is a record, `film.json`, and tables, of which the record has the digests.

    In one table a digit is changed, 0 to 1, as it might be in the table of another scoring. The record keeps
    the old digest (`digests=False`), and so the table is not the one that it was written with.
    """
    folder_with_a_changed_digit = copy_with(name, old="0", new="1", digests=False)
    with pytest.raises(FilmError, match=f"{name}: not the table"):
        Timeline.read(folder_with_a_changed_digit)


@pytest.fixture
def film_of_eleven_days(copy_with):
    """A film of a million seconds, the longest that may be: over eleven days."""
    old, new = '"duration_s": 600.0', '"duration_s": 1000000.0'
    return Timeline.read(copy_with("film.json", old=old, new=new))


@pytest.mark.long  # eleven days of minutes
@pytest.mark.nightly
def test_the_page_of_the_longest_film_is_below_5_megabytes(film_of_eleven_days):
    """A film may last a million seconds, over eleven days, of which a page tells each minute."""
    assert len(film_page([film_of_eleven_days])) < 5e6


def test_the_longest_film_has_every_export(film_of_eleven_days, export_format, tmp_path):
    """Times of over eleven days can be written in each format; nothing is raised."""
    write_export(film_of_eleven_days, export_format, tmp_path / "out", rate=24)


@pytest.mark.parametrize(("first", "second"), [("a/b", "a_b"), (".x", "x"), ("Alien", "alien"), (".", "..")])
def test_films_that_would_share_a_folder_are_refused(planted_timeline, tmp_path, first, second):
    """Folders are named after films, and not every letter can stand in the name of a folder.

    So two names may lead to one folder, and nothing is written.
    """
    films = [film_with(planted_timeline, movie=first), film_with(planted_timeline, movie=second)]
    with pytest.raises(OutputError):
        write_films(films, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_of_films_have_names_that_every_system_can_have(planted_timeline, tmp_path):
    """Windows has no folder with a colon or a question mark in its name, and none that is named "nul"."""
    films = [
        film_with(planted_timeline, movie="Alien: Resurrection?"),
        film_with(planted_timeline, movie="nul"),
    ]
    folders = write_films(films, tmp_path / "out")
    assert [path.name for path in folders.values()] == ["Alien_ Resurrection_", "nul_"]
    for path in folders.values():
        assert (path / "timeline.csv").is_file()


def test_writing_a_film_keeps_a_users_files_but_no_old_rates(scored, tmp_path):
    """In the folder of a scored film are also notes, a picture and rates, and the film is scored anew.

    The rates (`rate.json`) were estimated from the former scores, and would be wrong beside the new ones.
    """
    folder, film = scored
    out = tmp_path / "out"
    shutil.copytree(folder, out)
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    (out / "pictures").mkdir()
    (out / "pictures" / "1.jpg").write_bytes(b"mine")
    (out / "rate.json").write_text("of former scores", encoding="utf-8")

    write_films([film], out)

    names_there = {path.name for path in out.iterdir()}
    files_of_a_scored_film = set(FILES)
    assert names_there - files_of_a_scored_film == {"notes.txt", "pictures"}
    assert "rate.json" not in names_there
    assert (out / "pictures" / "1.jpg").read_bytes() == b"mine"
    assert [read.movie for read in read_films([out])] == [film.movie]


@pytest.mark.parametrize("movie", ["../x", "a/../../x", "..", "", " a", "a\\\\b", "a\u202eb"])
def test_a_film_has_a_name_that_manifests_may_have(copy_with, movie):
    """A name such as ../x would lead out of the folder that films are written to."""
    changed_folder = copy_with("film.json", old='"movie": "tt0000001"', new=f'"movie": "{movie}"')
    with pytest.raises(FilmError):
        Timeline.read(changed_folder)


def test_no_file_carries_a_control_character(planted_timeline, export_format, tmp_path):
    """A film's title has signs that set a terminal's title to "gone" and that turn text round.

    A program may make such a record, but neither an export nor the scored film itself is written with it: no
    file is left. The message of the latter has the rest of the title.
    """
    hostile_film = film_with(planted_timeline, title=f"A{BREAKS_TERMINALS}\u202eB<i>")
    with pytest.raises(FilmError):
        write_export(hostile_film, export_format, tmp_path / "out", rate=24)
    with pytest.raises(FilmError, match="gone"):
        hostile_film.write(tmp_path / "film")
    assert list(tmp_path.iterdir()) == []


def test_a_file_above_the_maximum_size_is_refused(scored, monkeypatch):
    """The maximum is set to the size of the largest file of a scored film, and then to a byte less."""
    folder, _film = scored
    size_of_largest_file = max(path.stat().st_size for path in folder.iterdir() if path.is_file())

    monkeypatch.setattr(scored_files, "MAX_BYTES", size_of_largest_file)
    Timeline.read(folder)

    monkeypatch.setattr(scored_files, "MAX_BYTES", size_of_largest_file - 1)
    with pytest.raises(FilmError, match="larger"):
        Timeline.read(folder)


def test_a_whole_number_beyond_what_a_float_holds_is_refused():
    """Cells are read as floats. Up to 2**53 each whole number has a float of its own; 2**53 + 1 has none.

    So a larger number might be read as another one, and is said to be "none of its numbers": outside the
    bounds of the column of whole numbers `n_windows`.
    """
    largest = pd.Series([str(2**53)], name="n_windows")
    beyond = pd.Series([str(2**53 + 2)], name="n_windows")
    end_of_film_s = 1.0  # bounds times alone

    assert scored_files._checked_numbers(largest, end_of_film_s)[0] == 2**53
    with pytest.raises(ValueError, match="none of its numbers"):
        scored_files._checked_numbers(beyond, end_of_film_s)


def test_a_file_is_copied_where_no_hard_link_can_be_made(tmp_path):
    """A file that is there already keeps the system from making the link."""
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.write_bytes(b"a note")
    copy.write_bytes(b"in the way")

    link(original, copy)

    assert copy.read_bytes() == b"a note"
    assert not copy.samefile(original)


CELLS = (
    "", " ", " 1", "1 ", "+1", "1.", ".5", "1e5", "1_0", "0x1", "true", "True", "1e400", "-0", "１", "1,5",
    "a",
)  # fmt: skip
"""Cells of numbers, and of what is none, as people and programs write them."""


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(CELLS), st.floats(allow_nan=False).map(repr)), min_size=1, max_size=4)
)
def test_fast_reading_of_a_table_equals_reading_each_cell(cells):
    """`_plain_table` reads a table in one call, or returns None if some cell is no plain number.

    Where it reads one, -0.0 keeps its sign, and NA is a text and no missing number.
    """
    lines = ["start_s,p_low,text"]
    lines += [f'{row}.5,"{cell}",NA' for row, cell in enumerate(cells)]

    table = scored_files._plain_table("\n".join(lines).encode())

    if table is not None:
        expected = [float(cell) if cell else np.nan for cell in cells]
        np.testing.assert_array_equal(table["p_low"].to_numpy(), expected)
        assert np.signbit(table["p_low"]).tolist() == np.signbit(expected).tolist()
        assert table["text"].tolist() == ["NA"] * len(cells)


def test_the_quick_reading_of_a_table_loses_no_digit_and_no_empty_cell():
    """`_plain_table` reads all cells of a table in one call of pandas, which is faster than one by one.

    0.30000000000000004 is the float after 0.3, and the p of the second row is empty.
    """
    table = scored_files._plain_table(b"start_s,p,text\n0.1,0.30000000000000004,a\n2,,b\n")
    first_p, empty_p = table["p"]
    assert table["p"].dtype == np.float64
    assert first_p == 0.30000000000000004
    assert np.isnan(empty_p)


def test_a_table_with_an_infinite_number_is_not_read_in_one_call():
    """The quick reading, of all cells in one call, gives up (None) where the start of a row is infinite.

    The table is then read cell by cell, so that a message can name the cell.
    """
    table = scored_files._plain_table(b"start_s,p,text\ninf,0.30000000000000004,a\n2,,b\n")
    assert table is None


@pytest.mark.parametrize(("movie", "other"), [("Psycho", "PSYCHO"), ("tt0054215", "54215")])
def test_a_film_under_two_spellings_of_its_name_is_refused(tmp_path, movie, other):
    """Whoever evaluates, judges or compares films would count it twice."""
    for name in (movie, other):
        fake_scored_film(name, n_rows=20, duration_s=300.0).write(tmp_path / f"scored-{name}")

    with pytest.raises(FilmError, match=f"films '{movie}' and '{other}' are one name"):
        read_films([tmp_path / f"scored-{movie}", tmp_path / f"scored-{other}"])


@pytest.fixture
def close(monkeypatch):
    """Return a function that makes the system deny every look into a folder, as to others than its owner."""
    look = Path.stat
    closed_folders = []

    def look_unless_denied(path, **options):
        if any(folder in path.parents for folder in closed_folders):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", look_unless_denied)
    return closed_folders.append


def test_a_film_whose_folder_is_closed_to_us_is_not_left_out(scored, tmp_path, close):
    """Of a folder with two films, one may be read by its owner alone.

    Groups of films would be compared without it, and nobody would know that there is one more.
    """
    for name in ("ours", "theirs"):
        shutil.copytree(scored[0], tmp_path / name)
    close(tmp_path / "theirs")

    with pytest.raises(PermissionError) as refused:
        read_films([tmp_path])

    assert refused.value.filename == str(tmp_path / "theirs" / "film.json")


@pytest.mark.parametrize("name", ["lost+found", ".Trashes", "System Volume Information"])
def test_a_closed_folder_of_the_system_is_no_film(scored, tmp_path, close, name):
    """The films lie at the root of a disk, where systems put folders that users may not look into."""
    shutil.copytree(scored[0], tmp_path / "ours")
    (tmp_path / name).mkdir()
    close(tmp_path / name)

    films = read_films([tmp_path])

    assert len(films) == 1
