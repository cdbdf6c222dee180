"""One film, one name; one person, one name; one video, one film: at every door."""

import unicodedata
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.identity import is_one_name, same_names
from obygaze_features.manifest import Clip, Manifest, import_folder, import_spans, read_manifest
from obygaze_features.manifest.identity import check_identity, movies_of_one_id, same_films
from obygaze_features.manifest.spans.names import film_by_file, find_film
from tests.command import obygaze
from tests.cpu_time import within_cpu_s

HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"

ONE_NAME = {
    "case": ("AB", "ab"),
    "width": ("AB", "\uff21\uff22"),
    "a mark": ("Am\u00e9lie", "Amelie"),
    "a mark on its own": ("Ame\u0301lie", "Amelie"),
    "a sign without width": ("Psycho", "Psy\u200bcho"),
    "a selector": ("Psycho", "Psycho\ufe0f"),
    "blanks": ("The Birds", "the  birds"),
    "a Cyrillic capital": ("Casablanca", "\u0421asablanca"),
    "a Cyrillic small letter": ("Casablanca", "C\u0430sablanca"),
    "all letters Cyrillic": ("HOPE", "\u041d\u041e\u0420\u0415"),
    "small Latin and capital Cyrillic letters": ("hope", "\u041d\u041e\u0420\u0415"),
    "a Greek capital": ("AB", "A\u0392"),
    "a Greek capital beside a small one": ("ab", "\u0391b"),
    "an Armenian letter": ("so", "s\u0585"),
    "a dotless i": ("Isik", "\u0131s\u0131k"),
    "a dotted I": ("istanbul", "\u0130STANBUL"),
    "a ligature": ("Ofilm", "O\ufb01lm"),
    "a sharp s": ("Strauss", "Strau\u00df"),
}


@pytest.mark.parametrize(("name", "other"), ONE_NAME.values(), ids=ONE_NAME)
def test_names_that_look_alike_are_one_whoever_is_first(name, other):
    """Two names of a film or a person differ in capitals, accents, blanks, or letters that look alike.

    A film under two spellings would be two films, and could be in training and test. The order of the two
    names does not matter.
    """
    assert is_one_name(name, other)
    assert is_one_name(other, name)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Psycho", "Psycho II"),
        ("film1", "film2"),
        ("\u304b", "\u304c"),  # hiragana ka and ga: a mark that makes another letter
        ("\u0e01\u0e34", "\u0e01\u0e38"),  # Thai vowels are marks too
        ("\u041a\u0440\u0430\u0439", "\u041a\u0440\u0430\u044f"),
        ("AB", "BA"),
    ],
)
def test_names_that_differ_in_a_letter_or_mark_are_two_names(name, other):
    """`same_names` lists pairs that are one name, and pairs that only look alike. There are neither."""
    pairs_of_one_name, pairs_that_look_alike = same_names([name, other])
    assert pairs_of_one_name == []
    assert pairs_that_look_alike == []


@pytest.mark.parametrize(("name", "other"), [("A1", "Al"), ("film0", "filmO"), ("Burn", "Bum")])
def test_films_whose_names_look_alike_are_noted_and_stay_two_films(name, other):
    """Two films are called A1 and Al, with l for 1, or film0 and filmO, or Burn and Bum, with m for rn.

    All signs are typed on one keyboard and may be meant, so both films stay, and a note names them.
    """
    clips = (Clip("a", name), Clip("b", other))

    (note,) = check_identity(clips)

    assert name in note
    assert other in note
    assert Manifest(clips, root=None).movies == (name, other)


@pytest.mark.long
@given(st.text(min_size=1), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_a_name_in_another_form_of_unicode_is_the_same_name(name, form):
    """A text may be written with other signs in each of the four forms, and is the same name."""
    assert is_one_name(name, unicodedata.normalize(form, name))


@given(name=st.text("abcdefghkopqrstuvwxyz 23456789", min_size=1).map(str.strip).filter(bool))
def test_a_name_in_capitals_is_the_same_name(name):
    """Names are made of letters and digits, but for those that look like others: i, j, l, m, n, 0 and 1."""
    assert is_one_name(name, name.upper())
    assert is_one_name(name.capitalize(), name)


@given(names=st.lists(st.text("abcxyz", min_size=1), unique=True))
def test_different_names_of_plain_letters_are_different(names):
    """Of a, b, c, x, y and z none looks like another, so that no two different names are or look alike."""
    pairs_of_one_name, pairs_that_look_alike = same_names(names)
    assert pairs_of_one_name == []
    assert pairs_that_look_alike == []


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Citt\u00e0, La", "La Citta"),
        ("The Castle (1997)", "\u0421astle, The (1997)"),
        ("Avventura, L\u2019", "L'Avventur\u00e0"),
    ],
    ids=["an accent", "a Cyrillic C", "an elided article"],
)
def test_a_title_with_its_article_behind_it_and_a_letter_that_differs_names_the_same_film(name, other):
    """An article may stand behind a title, as in "Castle, The". Here a letter or an accent differs too.

    Both spellings are found to be one film, whichever comes first, and either finds the other.
    """
    for first, second in ((name, other), (other, name)):
        later_and_earlier = (second, first)
        assert same_films([first, second]) == [later_and_earlier]
        assert find_film(second, ["Psycho", first]) == first


@pytest.mark.long
def test_a_name_of_no_film_is_looked_for_among_many_in_little_time():
    """A table may have such a name in every row: comparing it with each of 500 films took 1.5 ms a row."""
    films = [f"Film number {number}" for number in range(500)]

    with within_cpu_s(limit_s=1.5):
        for number in range(3000):
            assert find_film(f"no film {number}", films) is None


@pytest.mark.parametrize("film_id", ["tt0054215", "TT0054215"])
def test_an_imdb_id_in_a_name_is_one_in_capitals_too(film_id):
    """A file is of the film whose id its name begins with, and two names that begin with one id are noted."""
    name = film_by_file(PurePath(f"{film_id}.1080p.en.srt"))
    assert find_film(name, ["tt0054215"]) == "tt0054215"

    (note,) = movies_of_one_id(["tt0054215-cut", f"{film_id}-long"])
    assert "2 movies begin with tt0054215" in note


def test_films_are_one_by_imdb_id_or_article():
    """54215 and tt00054215 are the IMDb id tt0054215, and "Matrix, The" is "The Matrix" in a catalogue."""
    names = ["tt0054215", "The Matrix", "54215", "Matrix, The", "tt00054215"]

    pairs_of_one_film = same_films(names)

    assert pairs_of_one_film == [
        ("54215", "tt0054215"),
        ("Matrix, The", "The Matrix"),
        ("tt00054215", "tt0054215"),
    ]


LIKELY_SPELLINGS = ["case", "a mark on its own", "a Cyrillic capital"]
"""Of `ONE_NAME`, one of each kind: written, composed and drawn alike."""


@pytest.fixture(params=LIKELY_SPELLINGS)
def two_spellings(request):
    """Two spellings that a person takes for one name."""
    return ONE_NAME[request.param]


@pytest.fixture(params=["movie", "annotator"])
def column(request):
    """The column that has both spellings."""
    return request.param


@pytest.fixture
def manifest_of_two_spellings(tmp_path, two_spellings, column):
    """The path of a manifest of two clips that differ in the spelling of their film or annotator."""
    rows = []
    for start, name in enumerate(two_spellings):
        names = {"movie": "f", "annotator": "X", column: name}
        rows.append(f"c{start},{names['movie']},,{start},{start + 1},S,,{names['annotator']}\n")
    path = tmp_path / "m.csv"
    path.write_text(HEADER + "".join(rows), encoding="utf-8")
    return path


def test_an_import_of_two_spellings_of_one_name_is_refused(manifest_of_two_spellings, column, tmp_path):
    """Two rows name their film, or their annotator, in two spellings of one name, such as AB and ab.

    The error names the column of the two spellings: movie, or annotator.
    """
    with pytest.raises(ManifestError, match=column):
        import_spans([manifest_of_two_spellings], tmp_path)


def test_a_manifest_of_two_spellings_of_one_name_is_not_read(manifest_of_two_spellings, column):
    """Two rows name their film, or their annotator, in two spellings of one name, such as AB and ab.

    The error names the file, m.csv, and the column of the two spellings: movie, or annotator.
    """
    with pytest.raises(ManifestError, match=rf"m\.csv.*{column}"):
        read_manifest(manifest_of_two_spellings)


def test_a_manifest_made_in_code_of_two_spellings_of_one_name_is_refused(two_spellings, column, tmp_path):
    """Two clips name their film, or their annotator, in two spellings of one name, such as AB and ab.

    The error names the column of the two spellings: movie, or annotator.
    """
    clips = []
    for name in two_spellings:
        clips.append(Clip(f"c{name}", **{"movie": "f", column: name}))  # noqa: PERF401 - a plain loop
    with pytest.raises(ManifestError, match=column):
        Manifest(tuple(clips), tmp_path)


def test_a_command_writes_nothing_of_two_spellings_of_one_name(
    manifest_of_two_spellings, column, tmp_path, capsys
):
    """Two rows of a manifest have two spellings of one name, such as AB and ab, as their film or annotator.

    The error names the column of the two spellings. The command would write windows of 5 s to out.csv.
    """
    out = tmp_path / "out.csv"

    exit_code = obygaze("manifest", "project", manifest_of_two_spellings, "--window", "5", "--out", out)

    assert exit_code != 0
    assert column in capsys.readouterr().err
    assert not out.exists()


def test_a_letter_of_another_script_is_named(tmp_path):
    """The Cyrillic C of one Casablanca looks like the Latin one of the other: the error says which it is."""
    table = tmp_path / "t.csv"
    table.write_text(
        "movie,start_s,end_s,level\nCasablanca,1,2,S\n\u0421asablanca,3,4,EN\n", encoding="utf-8"
    )
    with pytest.raises(ManifestError, match="CYRILLIC"):
        import_spans([table], tmp_path)


# --- one video, one film
# ---------------------------------------------------------------------------
@pytest.fixture
def table_of_one_video_as_two_films(tmp_path):
    """The path of a table in which b.mp4 is Casablanca from 1 to 2 s, and Kasablanka from 5 to 6 s."""
    table = tmp_path / "t.csv"
    table.write_text(
        "movie,video,start_s,end_s,level\nCasablanca,b.mp4,1,2,S\nKasablanka,./b.mp4,5,6,EN\n",
        encoding="utf-8",
    )
    return table


def test_a_video_named_as_two_films_is_noted_by_every_command(
    table_of_one_video_as_two_films, tmp_path, capsys
):
    """A table says that b.mp4 is Casablanca from 1 to 2 s, and Kasablanka from 5 to 6 s.

    One video may hold two films, one after the other: it is no error, and may be a slip.
    The import is told so, and whoever inspects the manifest that it writes.
    """
    manifest = tmp_path / "m.csv"

    assert obygaze("manifest", "import", "spans", table_of_one_video_as_two_films, "--out", manifest) == 0
    assert "Kasablanka" in capsys.readouterr().err

    assert obygaze("manifest", "inspect", manifest) == 0
    assert "Kasablanka" in capsys.readouterr().err


@pytest.mark.parametrize(
    "films_with_times",
    [
        [("A", None, None), ("B", None, None)],
        [("A", 0, 10), ("B", 5, 15)],
        [("A", None, None), ("B", 5, 15)],
        [("A", 0, 0.5), ("B", 1, 1.5), ("A", 2, 2.5), ("B", 3, 3.5)],
    ],
    ids=["both the whole video", "at the same time", "the whole video and a part", "in turns"],
)
def test_a_video_whose_times_are_of_two_films_at_once_or_in_turns_is_refused(films_with_times):
    """Clips of the video a.mp4 are of the films A and B, each with its start and end, or None for all of it.

    A compilation may have one film after the other in one video, but not two at once or in turns.
    """
    clips = []
    for number, (film, start_s, end_s) in enumerate(films_with_times):
        clips.append(Clip(f"c{number}", film, "a.mp4", start_s=start_s, end_s=end_s))

    with pytest.raises(ManifestError, match="'A' and 'B'"):
        check_identity(clips)


def test_two_videos_of_one_content_are_reported(tmp_path):
    """The folder has a.mp4 and b.mp4 with the same 3 MB, and c.mp4 with others.

    The first two may be one film under two names, so a notice names them.
    """
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "a.mp4").write_bytes(b"x" * 3_000_000)
    (folder / "b.mp4").write_bytes(b"x" * 3_000_000)
    (folder / "c.mp4").write_bytes(b"y" * 3_000_000)

    notices = import_folder(folder, tmp_path).notices

    (notice,) = [notice for notice in notices if "one video" in notice]
    assert "a.mp4, b.mp4" in notice
    assert "c.mp4" not in notice
