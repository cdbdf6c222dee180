"""Seconds are made of text, and names compared, in one place; what fits two readings is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    find_film,
    frame_label,
    frame_rate,
    time_code,
)
from obygaze_features.manifest.identity import refuse_twins
from obygaze_features.manifest.importers.column_contents import (
    LabelCounts,
    are_clocks,
    are_files,
    are_ranges,
    are_times,
)
from obygaze_features.manifest.spans.instant import DROPPING, instants
from obygaze_features.manifest.spans.names import path_of, suggestion

FILMS = {"tt0054215": "Psycho", "tt0155975": "Psycho", "film0": "Déjà vu"}
"""Titles of three films by their names: two are called Psycho."""


@pytest.mark.parametrize(
    ("cells", "usual_sign", "expected"),
    [
        # Numbers with points alone, in a table whose usual sign is the point.
        (["12.5", "1234.25"], ".", [12.5, 1234.25]),
        (["1.234", "5.678"], ".", [1.234, 5.678]),
        # Commas before three digits part thousands, as points are there for decimals.
        (["1,234.5", "1,280"], ".", [1234.5, 1280.0]),
        (["1,234", "12.5"], ".", [1234.0, 12.5]),
        # Commas before one digit part decimals, so that the point of another cell parts thousands.
        (["999,5", "1000,5", "1.234"], "", [999.5, 1000.5, 1234.0]),
        (["1.234,5"], "", [1234.5]),
        # Blanks part thousands, a narrow no-break one (U+202F) too.
        (["1\u202f234,5", "1 234"], "", [1234.5, 1234.0]),
        # No thousands follow a 0, so that the comma parts decimals.
        (["0,500", "5,500"], ".", [0.5, 5.5]),
        # Whole numbers, an empty cell, and a number with an exponent.
        (["7", "", "8"], "", [7.0, None, 8.0]),
        (["1e3", "5"], ".", [1000.0, 5.0]),
        # Clocks: 90 min, and 1 h 2 min 3.25 s. What follows their seconds are decimals.
        (["00:01:30,500", "00:01:30.5"], ".", [90.5, 90.5]),
        (["90:00", "1:02:03.25"], ".", [5400.0, 3723.25]),
        # Clocks in wide characters; digits and decimal sign in Arabic, digits of two scripts, a wide minus.
        (["００：０１：３０", "００：０１：４０．５"], ".", [90.0, 100.5]),
        (["\u0661\u0662\u066b\u0665", "\uff11\u0969", "\uff0d1"], ".", [12.5, 13.0, -1.0]),
        # A wide comma.
        (["1\uff0c5"], "", [1.5]),
    ],
)
def test_the_whole_column_decides_the_decimal_sign(cells, usual_sign, expected):
    """The cells of a column are times: numbers of seconds, or clocks of hours, minutes and seconds.

    A comma or a point may separate decimals or thousands, and other cells of the column tell which. Where
    none does, it is the usual sign of this kind of tables: the point, or "" where it may be either.
    """
    assert instants(cells, usual_sign) == expected


@pytest.mark.parametrize(
    ("cells", "usual_sign"),
    [(["1,234", "1,280"], "."), (["1.234", "1.280"], "")],
    ids=["commas, where the point is usual", "points, where neither sign is usual"],
)
def test_an_ambiguous_decimal_sign_is_refused(cells, usual_sign):
    """The cell 1,234 may be 1.234 s or 1234 s, and no other cell of the column tells which.

    1.234 is as ambiguous in a table whose usual decimal sign may be a point or a comma (""). Where the point
    is usual, 1.234 would be read.
    """
    with pytest.raises(ManifestError, match=r"could be 1\.234 or 1234"):
        instants(cells, usual_sign)


def test_a_column_of_two_decimal_signs_is_refused():
    """In 1,5 a comma can only be the decimal sign, and in 2.5 a point; both are cells of one column."""
    with pytest.raises(ManifestError, match="is the decimal sign, not both"):
        instants(["1,5", "2.5"], ".")


@pytest.mark.parametrize(
    ("cells", "usual_sign"),
    [
        (["0.00104166666666667", "", "0.00105324074074074"], "."),
        (["0,0208333333333333", "0"], ""),
        (["0.0104166666666667", "00:30:00", "45.5"], "."),
        (["5.787037037037037e-05", "30"], "."),
    ],
    ids=["alone", "with a comma", "beside a clock and seconds", "with an exponent"],
)
def test_shares_of_a_day_are_refused(cells, usual_sign):
    """Spreadsheets keep a clock of 1 min 30 s as 0.00104166666666667, its share of the 86,400 s of a day.

    Numbers below 1 with so many digits are such shares, and would be wrong as seconds. The decimal sign that
    is usual in the table is the point, or either ("").
    """
    with pytest.raises(ManifestError, match="as shares of a day have"):
        instants(cells, usual_sign)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [([0, 0.9583333333333334], [0.9583333333333334, 45]), ([0.125], [1.958333333333333])],
    ids=["45 s in the column", "1.96 s in the row"],
)
def test_times_of_many_digits_beside_seconds_are_seconds(starts, ends):
    """The cells of two columns, first all starts and then all ends, are read together.

    0.958 and 0.125 could be shares of a day, which are refused. But shares are less than 1; an end is not.
    """
    times = [*starts, *ends]
    assert instants([str(time) for time in times], n_columns=2) == times


def test_a_column_with_time_codes_of_drop_frame_and_others_is_refused():
    """A semicolon before the frames is of a time code that drops labels, as at 29.97 frames a second.

    A column has a code with a colon, an empty cell and a code with a semicolon: both counts can't be right.
    """
    with pytest.raises(ManifestError, match="drop labels"):
        instants(["00:00:01:00", "", "00:01:05;00"], ".", frame_rate("29.97"))


def test_a_time_code_of_drop_frame_is_an_error_of_its_cell_at_a_rate_that_drops_none():
    """A semicolon before the frames is of a time code that drops labels, which nobody does at 25 a second.

    The other cells of the column stay readable.
    """
    cells = ["00:00:01:00", "", "00:01:05;00"]

    first, empty, drop_frame = instants(cells, ".", frame_rate("25"))

    assert first == 1.0
    assert empty is None
    assert isinstance(drop_frame, ManifestError)


def test_a_rate_of_2000_frames_a_second_is_refused():
    """A rate is at most 1000, as labels of frames have three digits."""
    with pytest.raises(ManifestError):
        frame_rate("2000")


@pytest.mark.parametrize(
    "cell",
    [
        "90x",
        "1_0",
        "nan",
        "inf",
        "1e300",
        "1:2:3:4:5",
        "P1D",
        "12:61",
        "1,2,3",
        "0x10",
        "00:75:00",
        "0:0:1:12",
    ],
)
def test_an_unreadable_time_is_an_error_of_its_cell(cell):
    """Each time of a column is a number of seconds or an error. The other cell, 2.5, is read all the same."""
    first, second = instants([cell, "2.5"])
    assert isinstance(first, ManifestError)
    assert second == 2.5


def test_cells_of_half_a_million_digits_are_errors_with_short_messages():
    """The two cells of a column are no times: half a million digits, and an x or a colon behind them.

    A pattern that divides the digits in several ways would take hours for such a cell.
    """
    digits_and_a_letter = "9" * 500_000 + "x"
    digits_and_a_colon = "0" * 500_000 + ":"

    errors = instants([digits_and_a_letter, digits_and_a_colon])

    assert len(errors) == 2
    for error in errors:
        assert isinstance(error, ManifestError)
        assert len(str(error)) < 2000


@given(
    hours=st.integers(min_value=0, max_value=10**6),
    minutes=st.integers(min_value=0, max_value=59),
    seconds=st.integers(min_value=0, max_value=59),
    decimals=st.text("0123456789", max_size=30),
)
def test_a_clock_is_rounded_once_however_many_digits_it_has(hours, minutes, seconds, decimals):
    """A clock such as 1:02:03.45, with up to 30 decimals or none, is read as seconds, a float.

    A sum of floats would be rounded at each step. Here the exact sum, a fraction, is rounded once.
    """
    clock = f"{hours}:{minutes}:{seconds:02}.{decimals}"

    read_s = time_code(clock)

    seconds_with_decimals = Fraction(f"{seconds}.{decimals}".rstrip("."))
    exact_sum_s = hours * 3600 + minutes * 60 + seconds_with_decimals
    assert read_s == float(exact_sum_s)


WHOLE_RATES = [Fraction(rate) for rate in (24, 25, 30, 50, 60)]
NTSC_RATES = [Fraction(rate * 1000, 1001) for rate in (24, 30, 60, 120)]
FRAMES_OF_A_DAY = 24 * 60 * 60 * 24


@given(
    rate=st.sampled_from([*WHOLE_RATES, *NTSC_RATES]),
    number_of_frame=st.integers(min_value=0, max_value=FRAMES_OF_A_DAY),
    drops_numbers=st.booleans(),
)
def test_the_time_code_of_a_frame_is_read_as_its_time(rate, number_of_frame, drops_numbers):
    """A time code such as 01:00:00:12 names a frame: the last number counts frames within a second.

    At rates a little below 30 or 60 frames a second, time codes may leave numbers out, so that they keep up
    with the clock. Read back, a frame's code is the frame's number divided by the rate, in seconds.
    """
    may_drop_numbers = rate in DROPPING
    code = frame_label(number_of_frame, rate, drop=drops_numbers and may_drop_numbers)
    assert time_code(code, rate) == float(number_of_frame / rate)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        pytest.param("01:00:00;00", "25", id="drop frame at 25"),
        pytest.param("00;01;10;02", "25", id="drop frame with semicolons at 25"),
        pytest.param("01:00:00;00", "23.976", id="drop frame at 23.976"),
        pytest.param("01:00:00;00", "30", id="drop frame at 30"),
        pytest.param("00:02:00;00", "29.97", id="the first of two frames that are skipped"),
        pytest.param("00:02:00;01", "29.97", id="the second of two frames that are skipped"),
        pytest.param("00:01:00;03", "59.94", id="the last of four frames that are skipped"),
        pytest.param("00;01:10;02", "29.97", id="one semicolon before the seconds"),
        pytest.param("00;01;10:02", "29.97", id="a colon behind semicolons"),
        pytest.param("01:00:00:00", "12.5", id="a rate that labels no frames"),
        pytest.param("00:00:00:24", "24", id="frame 24 of a second with 0 to 23"),
    ],
)
def test_time_codes_that_cannot_exist_are_refused(text, rate):
    """Time codes at 29.97 count 30 frames a second. To keep time they skip frames 0 and 1 of most minutes.

    A semicolon says that frames are skipped, which is done at 29.97 and its multiples alone. A time code of a
    skipped frame, or one whose signs or frames don't fit its rate, is in no film.
    """
    frames_per_second = frame_rate(rate)
    with pytest.raises(ManifestError):
        time_code(text, frames_per_second)


def test_a_film_is_found_by_its_name_in_letters_and_digits_of_full_width():
    """One of the films is called film0. Keyboards of East Asia write ＦＩＬＭ０ for it."""
    assert find_film("ＦＩＬＭ０", FILMS) == "film0"


@pytest.mark.parametrize(
    ("text", "has_cyrillic_letter"),
    [("\u0405", True), ("B\u043edy", True), ("B\u00f3dy", False), ("\U00017000", False)],
    ids=["Cyrillic S", "Body with a Cyrillic o", "Body with an accent", "a letter of Tangut"],
)
def test_a_letter_that_looks_like_one_of_another_script_is_named(text, has_cyrillic_letter):
    """The known words are S and Body. A Cyrillic letter looks like the Latin one, so that nobody sees it.

    The message on the unknown word says that the letter is Cyrillic. An accent is seen, and is of the Latin
    script. Of a letter of Tangut Python may not know the name: the message does without.
    """
    message = suggestion(text, ["S", "Body"])

    assert message != ""
    assert ("is CYRILLIC" in message) == has_cyrillic_letter
    assert "is LATIN" not in message


@pytest.mark.parametrize("ten_minutes", ["00:10:00;00", "00;10;00;00", "００；１０；００；００"])
def test_a_tenth_minute_drops_nothing(ten_minutes):
    """At 29.97, two labels are dropped each minute but not each tenth.

    In ten minutes that is 10 * 60 * 30 - 9 * 2 = 17982 frames of 1001/30000 s.
    """
    assert time_code(ten_minutes, frame_rate("29.97")) == float(17982 * Fraction(1001, 30000))


@pytest.mark.parametrize(
    ("text", "movie"),
    [
        ("tt0054215", "tt0054215"),
        ("TT54215", "tt0054215"),
        ("https://www.imdb.com/title/tt0054215/", "tt0054215"),
        (r"C:\films\tt0054215.mkv", "tt0054215"),
        ("file:///films/film0.mp4", "film0"),
        ("file:/C:/films/film0.mp4", "film0"),
        (" FILM0 ", "film0"),
        ("De\u0301ja\u0300 vu", "film0"),  # its title; each accent is a sign of its own behind the letter
        ("film1", None),
        ("film0.1998", None),
        ("film0.II", None),
    ],
)
def test_a_film_is_found_by_its_id_file_or_title(text, movie):
    """The films are tt0054215 and tt0155975, which are both called Psycho, and film0, called Déjà vu.

    Ids of IMDb may lack zeros, and stand anywhere in a text. A name that only begins alike is another.
    """
    assert find_film(text, FILMS, titles=FILMS) == movie


def test_a_bare_number_is_an_imdb_id_where_films_are_not_found_by_title():
    """One of the films has the IMDb id tt0054215, which may be written without tt and zeros."""
    ids_of_films = list(FILMS)

    assert find_film("54215", ids_of_films, titles=None) == "tt0054215"


def test_a_bare_number_is_no_imdb_id_where_films_are_found_by_title():
    """Titles may be numbers, such as 1984. No film has the title 54215, so the number names no film.

    Without titles it would name the film tt0054215.
    """
    ids_of_films = list(FILMS)

    assert find_film("54215", ids_of_films, titles=FILMS) is None


def test_a_title_of_two_films_is_refused():
    """The films tt0054215 and tt0155975 are both called Psycho."""
    with pytest.raises(ManifestError, match=r"tt0054215.*tt0155975"):
        find_film("psycho", FILMS, titles=FILMS)


@pytest.mark.parametrize("twin", ["ab", "ＡＢ"], ids=["in small letters", "in letters of full width"])
def test_annotators_whose_names_differ_in_case_or_width_alone_are_refused_with_their_lines(twin):
    """AB stands in line 2 of a table, and its twin in line 3. Keyboards of East Asia write ＡＢ for AB."""
    places = {"AB": ("a.csv", "line 2"), twin: ("a.csv", "line 3")}
    with pytest.raises(ManifestError, match=r"a\.csv: line 3.*line 2.*are one name"):
        refuse_twins("annotator", places)


def test_annotators_of_different_names_are_not_refused():
    """AB stands in line 2 of a table, and CD in line 3. Nothing is raised."""
    places = {"AB": ("a.csv", "line 2"), "CD": ("a.csv", "line 3")}
    refuse_twins("annotator", places)


@pytest.mark.parametrize(
    "place",
    [
        r"C:\films\a.mp4", r"\\server\films\a.mp4", "one\\a.mp4", "https://x.example/f/a.mp4?t=1#x",
        "~/a.mp4", "/f/a.mp4",
    ],
)  # fmt: skip
def test_paths_of_every_system_end_in_their_file(place):
    """`place` is a path of Windows, of a server or of Unix, or an address with a question and a part."""
    path = path_of(place)
    assert path.name == "a.mp4"


@pytest.mark.parametrize(
    ("separator", "weight", "encoding"),
    [(",", "1.250", "utf-8"), (";", "1,25", "utf-8-sig"), ("\t", "1,25", "utf-16")],
    ids=["commas", "semicolons", "tabs"],
)
def test_na_and_null_are_names_and_not_missing_values(tmp_path, separator, weight, encoding):
    """Libraries for tables read NA and null as missing. Here they are names of clips and films.

    The film 8.125 keeps its name too, and the weight beside it is a number.
    """
    read_frames = pytest.importorskip("obygaze_models.evaluation.localise").read_frames
    rows = [["clip_id", "movie", "time_s", "weight"], ["NA", "NA", "0", weight], ["null", "8.125", "1", ""]]
    path = tmp_path / "frames.csv"
    path.write_text("".join(separator.join(row) + "\n" for row in rows), encoding=encoding)

    frames = read_frames(path)

    assert frames["clip_id"].tolist() == ["NA", "null"]
    assert frames["movie"].tolist() == ["NA", "8.125"]
    assert frames["weight"].tolist()[0] == 1.25


@pytest.mark.parametrize(
    ("is_kind", "cell"),
    [
        (are_times, "12.5"),
        (are_times, "00:01:05:12"),
        (are_clocks, "00:01:05"),
        (are_ranges, "12.5-18"),
        (are_files, "films/a.mp4"),
    ],
)
def test_a_column_is_of_a_kind_if_two_thirds_of_its_cells_are(is_kind, cell):
    """One cell of three may be mistyped, and the import then names it. A column of no cells is of no kind."""
    assert is_kind([cell])
    assert is_kind([cell, cell, "?"])
    assert is_kind([cell, "?", cell, "no", cell, cell])
    assert not is_kind([cell, "?"])
    assert not is_kind([cell, cell, cell, "?", "no"])
    assert not is_kind([])


@pytest.mark.parametrize(
    ("n_cells", "n_levels", "n_concepts", "kinds"),
    [
        pytest.param(0, 0, 0, set(), id="no cells"),
        pytest.param(4, 2, 0, set(), id="half of the cells are labels"),
        pytest.param(3, 2, 0, {"levels"}, id="more than half, all levels"),
        pytest.param(3, 0, 2, {"concepts"}, id="more than half, all concepts"),
        pytest.param(10, 1, 9, {"levels", "both"}, id="a tenth of the labels are levels"),
        pytest.param(11, 1, 10, {"concepts"}, id="less than a tenth are levels"),
        pytest.param(5, 4, 1, {"levels", "both"}, id="a fifth of the labels are concepts"),
        pytest.param(6, 5, 1, {"levels"}, id="less than a fifth are concepts"),
    ],
)
def test_a_column_of_a_table_holds_levels_concepts_or_both_by_their_shares_of_its_cells(
    n_cells, n_levels, n_concepts, kinds
):
    """A column holds labels if more than half of its cells are: a column of notes has a level now and then.

    They are levels if at least a tenth of them are, and concepts otherwise. If at least a fifth of labels
    with levels are concepts, both are meant; fewer are taken for slips.
    """
    counts = LabelCounts(n_cells, n_levels, n_concepts)

    assert counts.are_labels == bool(kinds)
    assert counts.are_levels == ("levels" in kinds)
    assert counts.are_concepts == ("concepts" in kinds)
    assert counts.are_levels_and_concepts == ("both" in kinds)
