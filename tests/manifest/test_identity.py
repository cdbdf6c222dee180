"""One film, one name; one person, one name; one video, one film: at every door."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.identity import is_one_name, same_names
from obygaze_features.manifest import Clip, Manifest, import_folder, import_spans, read_manifest
from obygaze_features.manifest.identity import check_identity, same_films
from tests.command import obygaze

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


@pytest.mark.parametrize("case", ONE_NAME)
def test_names_that_look_alike_are_one_whoever_is_first(case):
    """A film under two spellings would be two films, and could be in training and test.

    The order of the two names does not matter.
    """
    name, other = ONE_NAME[case]
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
def test_names_that_differ_are_two(name, other):
    assert same_names([name, other]) == ([], [])


@pytest.mark.parametrize(("name", "other"), [("A1", "Al"), ("film0", "filmO"), ("Burn", "Bum")])
def test_films_whose_names_look_alike_are_noted_and_stay_two_films(name, other):
    """L for 1, O for 0, rn for m: all are typed on one keyboard, and may be meant."""
    clips = [Clip("a", name), Clip("b", other)]
    (note,) = check_identity(clips)
    assert name in note
    assert other in note
    assert Manifest(tuple(clips), None).movies == (name, other)


@pytest.mark.long
@given(st.text(min_size=1), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_no_form_of_unicode_makes_another_name(name, form):
    assert is_one_name(name, unicodedata.normalize(form, name))


@given(st.text("abcdefghkopqrstuvwxyz 23456789", min_size=1).map(str.strip).filter(bool))
def test_no_case_makes_another_name(name):
    assert is_one_name(name, name.upper())
    assert is_one_name(name.capitalize(), name)


@given(st.lists(st.text("abcxyz", min_size=1), unique=True))
def test_names_of_plain_letters_are_what_they_are(names):
    assert same_names(names) == ([], [])


def test_films_are_one_by_imdb_id_or_article():
    """54215 and tt00054215 are the IMDb id tt0054215, and "Matrix, The" is "The Matrix" in a catalogue."""
    names = ["tt0054215", "The Matrix", "54215", "Matrix, The", "tt00054215"]
    assert same_films(names) == [
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
def table(tmp_path, two_spellings, column):
    """A manifest of two clips that differ in the spelling of their film or annotator."""
    rows = []
    for start, name in enumerate(two_spellings):
        names = {"movie": "f", "annotator": "X", column: name}
        rows.append(f"c{start},{names['movie']},,{start},{start + 1},S,,{names['annotator']}\n")
    path = tmp_path / "m.csv"
    path.write_text(HEADER + "".join(rows), encoding="utf-8")
    return path


def test_two_spellings_of_one_name_in_a_table_are_refused(table, column, tmp_path):
    with pytest.raises(ManifestError, match=column):
        import_spans([table], tmp_path)
    with pytest.raises(ManifestError, match=rf"m\.csv.*{column}"):
        read_manifest(table)


def test_a_manifest_made_in_code_of_two_spellings_of_one_name_is_refused(two_spellings, column, tmp_path):
    clips = tuple(Clip(f"c{name}", **{"movie": "f", column: name}) for name in two_spellings)
    with pytest.raises(ManifestError, match=column):
        Manifest(clips, tmp_path)


def test_a_command_shows_and_writes_nothing_with_two_spellings_of_one_name(table, column, tmp_path, capsys):
    assert obygaze("manifest", "inspect", table) != 0
    assert column in capsys.readouterr().err
    out = tmp_path / "out.csv"
    assert obygaze("manifest", "project", table, "--window", "5", "--out", out) != 0
    assert column in capsys.readouterr().err
    assert not out.exists()


def test_the_strange_letter_is_named(tmp_path):
    """The Cyrillic C looks like the Latin one, so the error says which letter it is."""
    table = tmp_path / "t.csv"
    table.write_text(
        "movie,start_s,end_s,level\nCasablanca,1,2,S\n\u0421asablanca,3,4,EN\n", encoding="utf-8"
    )
    with pytest.raises(ManifestError, match="CYRILLIC"):
        import_spans([table], tmp_path)


# --- one video, one film
# ---------------------------------------------------------------------------
def test_a_video_named_as_two_films_is_reported_by_every_command(tmp_path, capsys):
    """One video may hold two films, one after the other, so it is a note and no error."""
    table = tmp_path / "t.csv"
    table.write_text(
        "movie,video,start_s,end_s,level\nCasablanca,b.mp4,1,2,S\nKasablanka,./b.mp4,5,6,EN\n",
        encoding="utf-8",
    )
    imported = import_spans([table], tmp_path)
    assert any("Kasablanka" in notice for notice in imported.notices)
    manifest = tmp_path / "m.csv"

    assert obygaze("manifest", "import", "spans", table, "--out", manifest) == 0
    assert "Kasablanka" in capsys.readouterr().err
    assert obygaze("manifest", "inspect", manifest) == 0
    assert "Kasablanka" in capsys.readouterr().err


@pytest.mark.parametrize(
    "spans",
    [
        [("A", None, None), ("B", None, None)],
        [("A", 0, 10), ("B", 5, 15)],
        [("A", None, None), ("B", 5, 15)],
        [("A", 0, 0.5), ("B", 1, 1.5), ("A", 2, 2.5), ("B", 3, 3.5)],
    ],
    ids=["both the whole video", "at the same time", "the whole video and a part", "in turns"],
)
def test_a_video_whose_times_are_of_two_films_at_once_or_in_turns_is_refused(spans):
    """A compilation has one film after the other."""
    clips = [Clip(f"c{n}", movie, "a.mp4", start, end) for n, (movie, start, end) in enumerate(spans)]
    with pytest.raises(ManifestError, match="'A' and 'B'"):
        check_identity(clips)


def test_two_videos_of_one_content_are_reported(tmp_path):
    """a.mp4 and b.mp4 have the same bytes."""
    videos = tmp_path / "films"
    videos.mkdir()
    for name, content in {"a.mp4": b"x", "b.mp4": b"x", "c.mp4": b"y"}.items():
        (videos / name).write_bytes(content * 3_000_000)
    notices = import_folder(videos, tmp_path).notices
    (said,) = [notice for notice in notices if "one video" in notice]

    assert "a.mp4, b.mp4" in said
    assert "c.mp4" not in said
