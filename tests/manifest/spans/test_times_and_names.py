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
from obygaze_features.manifest.spans.instant import DROPPING, instants
from obygaze_features.manifest.spans.names import path_of, suggestion

PSYCHOS = {"tt0054215": "Psycho", "tt0155975": "Psycho", "film0": "Déjà vu"}


@pytest.mark.parametrize(
    ("cells", "usual_sign", "expected"),
    [
        (["12.5", "1234.25"], ".", [12.5, 1234.25]),
        (["1,234.5", "1,280"], ".", [1234.5, 1280.0]),
        (["1,234", "12.5"], ".", [1234.0, 12.5]),
        (["999,5", "1000,5", "1.234"], "", [999.5, 1000.5, 1234.0]),
        (["1.234,5"], "", [1234.5]),
        (["1\u202f234,5", "1 234"], "", [1234.5, 1234.0]),
        (["1.234", "5.678"], ".", [1.234, 5.678]),
        (["00:01:30,500", "00:01:30.5"], ".", [90.5, 90.5]),
        (["0,500", "5,500"], ".", [0.5, 5.5]),
        (["7", "", "8"], "", [7.0, None, 8.0]),
        (["1e3", "5"], ".", [1000.0, 5.0]),
        (["90:00", "1:02:03.25"], ".", [5400.0, 3723.25]),
        (["００：０１：３０", "００：０１：４０．５"], ".", [90.0, 100.5]),
        (["\u0661\u0662\u066b\u0665", "\uff11\u0969", "\uff0d1"], ".", [12.5, 13.0, -1.0]),
        (["1\uff0c5"], "", [1.5]),
    ],
)
def test_the_whole_column_decides_the_decimal_sign(cells, usual_sign, expected):
    """A comma or a point may separate decimals or thousands, and other cells of the column tell which.

    Where no cell tells, the usual sign of a kind of tables counts; "" is of no kind.
    """
    assert instants(cells, usual_sign) == expected


@pytest.mark.parametrize(
    ("cells", "usual"), [(["1,234", "1,280"], "."), (["1.234", "1.280"], "")], ids=["commas", "points"]
)
def test_an_ambiguous_decimal_sign_is_refused(cells, usual):
    """1,234 may be 1.234 s or 1,234 s, and no other cell of the column tells."""
    with pytest.raises(ManifestError, match=r"could be 1\.234 or 1234"):
        instants(cells, usual)


def test_a_column_of_two_decimal_signs_is_refused():
    with pytest.raises(ManifestError, match="is the decimal sign, not both"):
        instants(["1,5", "2.5"], ".")


@pytest.mark.parametrize(
    ("cells", "usual"),
    [
        (["0.00104166666666667", "", "0.00105324074074074"], "."),
        (["0,0208333333333333", "0"], ""),
        (["0.0104166666666667", "00:30:00", "45.5"], "."),
        (["5.787037037037037e-05", "30"], "."),
    ],
    ids=["alone", "with a comma", "beside a clock and seconds", "with an exponent"],
)
def test_shares_of_a_day_are_refused(cells, usual):
    """Spreadsheets keep 1 min 30 s as 0.00104166666666667, its share of the 86,400 s of a day."""
    with pytest.raises(ManifestError, match="as shares of a day have"):
        instants(cells, usual)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [([0, 0.9583333333333334], [0.9583333333333334, 45]), ([0.125], [1.958333333333333])],
    ids=["45 s in the column", "1.96 s in the row"],
)
def test_times_of_many_digits_beside_seconds_are_seconds(starts, ends):
    """They could be shares of a day, which are refused, but shares are less than 1."""
    times = [*starts, *ends]
    assert instants([str(time) for time in times], n_columns=2) == times


def test_drop_frame_time_codes_are_refused_beside_others_and_at_a_rate_that_drops_none():
    """A semicolon before the frames is of a time code that drops labels, which only rates such as 29.97 do.

    At 25 frames it is an error of its cell, and the other cells of the column stay readable.
    """
    cells = ["00:00:01:00", "", "00:01:05;00"]
    with pytest.raises(ManifestError, match="drop labels"):
        instants(cells, ".", frame_rate("29.97"))
    first, empty, drop_frame = instants(cells, ".", frame_rate("25"))
    assert first == 1.0
    assert empty is None
    assert isinstance(drop_frame, ManifestError)


@pytest.mark.parametrize(
    "cell",
    [
        "90x",
        "1_0",
        "nan",
        "inf",
        "1e300",
        "1:2:3:4:5",
        "PT1M",
        "12:61",
        "1,2,3",
        "0x10",
        "00:75:00",
        "0:0:1:12",
    ],
)
def test_an_unreadable_time_is_an_error_of_its_cell(cell):
    """One bad cell must not spoil the column."""
    first, second = instants([cell, "2.5"])
    assert isinstance(first, ManifestError)
    assert second == 2.5


def test_a_cell_of_many_digits_takes_no_longer_than_it_is_long():
    values = instants(["9" * 500_000 + "x", "0" * 500_000 + ":"])
    assert all(isinstance(value, ManifestError) and len(str(value)) < 2000 for value in values)


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59), st.text("0123456789", max_size=30))
def test_a_clock_is_rounded_once_however_many_digits_it_has(hours, minutes, seconds, rest):
    """The nearest float of the exact sum is returned, without adding up rounding errors."""
    exact = hours * 3600 + minutes * 60 + Fraction(f"{seconds}.{rest}".rstrip("."))
    assert time_code(f"{hours}:{minutes}:{seconds:02}.{rest}") == float(exact)


RATES = [*map(Fraction, (24, 25, 30, 50, 60)), *(Fraction(n * 1000, 1001) for n in (24, 30, 60, 120))]


@given(st.sampled_from(RATES), st.integers(0, 24 * 3600 * 24), st.booleans())
def test_a_label_of_frames_is_the_time_of_its_frame(rate, frames, drop):
    """A time code counts frames.

    Rates such as 29.97 drop some labels, so that the clock stays near real time.
    """
    label = frame_label(frames, rate, drop=drop and rate in DROPPING)
    assert time_code(label, rate) == float(frames / rate)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        pytest.param("01:00:00;00", "25", id="drop frame at 25"),
        pytest.param("00;01;10;02", "25", id="drop frame with semicolons at 25"),
        pytest.param("01:00:00;00", "23.976", id="drop frame at 23.976"),
        pytest.param("01:00:00;00", "30", id="drop frame at 30"),
        pytest.param("00:02:00;00", "29.97", id="the first label that a minute drops"),
        pytest.param("00:02:00;01", "29.97", id="the second label that a minute drops"),
        pytest.param("00:01:00;03", "59.94", id="the last of four labels that a minute drops"),
        pytest.param("00;01:10;02", "29.97", id="one semicolon before the seconds"),
        pytest.param("00;01;10:02", "29.97", id="a colon behind semicolons"),
        pytest.param("01:00:00:00", "12.5", id="a rate that labels no frames"),
        pytest.param("00:00:00:24", "24", id="frame 24 of a second with 0 to 23"),
        pytest.param("00:00:00:24", "2000", id="a rate of more frames than labels have digits"),
    ],
)
def test_time_codes_that_cannot_exist_are_refused(text, rate):
    with pytest.raises(ManifestError):
        time_code(text, frame_rate(rate))


def test_letters_and_digits_of_full_width_are_the_same_names():
    assert find_film("ＦＩＬＭ０", PSYCHOS) == "film0"
    with pytest.raises(ManifestError, match="are one name"):
        refuse_twins("annotator", {"AB": ("a.csv", "line 2"), "ＡＢ": ("a.csv", "line 3")})


@pytest.mark.parametrize(
    ("text", "script"),
    [("\u0405", "CYRILLIC"), ("B\u043edy", "CYRILLIC"), ("B\u00f3dy", ""), ("\U00017000", "")],
    ids=["Cyrillic S", "Body with a Cyrillic o", "Body with an accent", "a letter of Tangut"],
)
def test_a_letter_that_looks_like_one_of_another_script_is_named(text, script):
    """A Cyrillic letter looks like the Latin one, so the user can't see why the word is unknown.

    Python may have no name of a letter.
    """
    message = suggestion(text, ["S", "Body"])
    assert message
    assert ("is CYRILLIC" in message) == (script == "CYRILLIC")
    assert "is LATIN" not in message


def test_a_tenth_minute_drops_nothing():
    """At 29.97, two labels are dropped each minute but not each tenth.

    In ten minutes that is 10 * 60 * 30 - 9 * 2 = 17982 frames of 1001/30000 s.
    """
    for text in ("00:10:00;00", "00;10;00;00", "００；１０；００；００"):
        assert time_code(text, frame_rate("29.97")) == float(17982 * Fraction(1001, 30000))


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
    """Ids of IMDb may lack zeros, and stand anywhere in a text. A name that only begins alike is another."""
    assert find_film(text, PSYCHOS, titles=PSYCHOS) == movie


def test_a_bare_number_is_an_imdb_id_where_no_titles_are_given():
    """Where titles are given, a number may be a title, such as 1984."""
    assert find_film("54215", PSYCHOS) == "tt0054215"
    assert find_film("54215", PSYCHOS, titles=PSYCHOS) is None


def test_a_title_of_two_films_and_twins_are_refused():
    """Two films are called Psycho. Two annotators whose names differ in capitals alone are one person."""
    with pytest.raises(ManifestError, match=r"tt0054215.*tt0155975"):
        find_film("psycho", PSYCHOS, PSYCHOS)
    refuse_twins("annotator", {"AB": ("a.csv", "line 2"), "CD": ("a.csv", "line 3")})
    with pytest.raises(ManifestError, match=r"a\.csv: line 3.*line 2"):
        refuse_twins("annotator", {"AB": ("a.csv", "line 2"), "ab": ("a.csv", "line 3")})


@pytest.mark.parametrize(
    "place",
    [
        r"C:\films\a.mp4", r"\\server\films\a.mp4", "one\\a.mp4", "https://x.example/f/a.mp4?t=1#x",
        "~/a.mp4", "/f/a.mp4",
    ],
)  # fmt: skip
def test_paths_of_every_system_end_in_their_file(place):
    assert path_of(place).name == "a.mp4"


@pytest.mark.parametrize(
    ("separator", "weight", "encoding"),
    [(",", "1.250", "utf-8"), (";", "1,25", "utf-8-sig"), ("\t", "1,25", "utf-16")],
    ids=["commas", "semicolons", "tabs"],
)
def test_na_and_null_are_names_and_not_missing_values(tmp_path, separator, weight, encoding):
    """Libraries for tables read NA and null as missing. Here they are names of clips and films."""
    read_frames = pytest.importorskip("obygaze_models.evaluation.localise").read_frames
    rows = [["clip_id", "movie", "time_s", "weight"], ["NA", "NA", "0", weight], ["null", "8.125", "1", ""]]
    path = tmp_path / "frames.csv"
    path.write_text("".join(separator.join(row) + "\n" for row in rows), encoding=encoding)
    frames = read_frames(path)

    assert frames["clip_id"].tolist() == ["NA", "null"]
    assert frames["movie"].tolist() == ["NA", "8.125"]
    assert frames["weight"].tolist()[0] == 1.25
