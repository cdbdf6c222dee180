"""A manifest is read back as written, byte for byte; what is wrong with one is told by line and column."""

import gc
import hashlib
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import FIELDS, Clip, Manifest, builtin_codebook, read_manifest, write_manifest
from obygaze_features.manifest.clip import stored_path
from obygaze_features.manifest.identity import check_identity
from obygaze_features.manifest.text_tables import CODEBOOK_COLUMN
from obygaze_features.text import unsuitable

LEVELS = builtin_codebook("obygaze12").level_names
CONCEPTS = builtin_codebook("obygaze12").concept_names
HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
GOOD_ROW = "a-1,a,,0.0,1.5,S,Look;Body,"


def manifest_file(folder: Path, *rows: str, header: str = HEADER) -> Path:
    """Write a manifest with these rows below its header, in line 1."""
    path = folder / "films.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_manifest_has_these_columns():
    """Tests of this file write manifests below the same heading, `HEADER`."""
    heading = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
    assert ",".join(FIELDS) == heading
    assert heading == HEADER


@pytest.fixture
def restored_garbage_collection():
    """Set Python's garbage collector after the test as it was before."""
    was_on = gc.isenabled()
    yield
    if was_on:
        gc.enable()
    else:
        gc.disable()


@pytest.mark.usefixtures("restored_garbage_collection")
@pytest.mark.parametrize("is_on", [True, False])
def test_reading_leaves_garbage_collection_as_it_was(tmp_path, is_on):
    """Reading switches the garbage collector off for speed. It must be as before, also after an error."""
    path = manifest_file(tmp_path, GOOD_ROW)
    if is_on:
        gc.enable()
    else:
        gc.disable()

    assert len(read_manifest(path)) == 1
    with pytest.raises(FileNotFoundError):
        read_manifest(tmp_path / "nothing.csv")

    assert gc.isenabled() == is_on


printable = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12).filter(
    lambda text: text == text.strip() and unsuitable(text) is None
)
names = printable.filter(lambda text: text and not text.startswith(".") and not set(text) & set("/\\"))
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: unsuitable(text, line_breaks=True) is None
)
instants = st.floats(0, 1e6)
spans = st.one_of(
    st.just((None, None)),
    st.tuples(instants, instants).filter(lambda span: span[0] < span[1] >= 1),  # else shares of a day
)


@st.composite
def manifests(draw):
    """Draw up to six clips of any names, times and labels, with up to three further columns."""
    columns = draw(
        st.lists(names.filter(lambda name: name not in (*FIELDS, CODEBOOK_COLUMN)), unique=True, max_size=3)
    )
    clips = []
    for clip_id in draw(st.lists(names, unique=True, max_size=6)):
        start, end = draw(spans)
        clips.append(
            Clip(
                clip_id,
                draw(names),
                draw(printable),
                start,
                end,
                draw(st.none() | st.sampled_from(LEVELS)),
                tuple(draw(st.sets(st.sampled_from(CONCEPTS)))),
                draw(printable),
                {column: draw(anything) for column in columns},
            )
        )
    return clips


def are_apart(clips):
    """Tell whether no two names of films or people are one, and no video is of two films at once."""
    try:
        check_identity(clips)
    except ManifestError:
        return False
    return True


@pytest.mark.long
@given(clips=manifests())
def test_a_manifest_is_read_back_and_written_again_byte_for_byte(clips):
    """A manifest of up to six clips, with any names, times and labels, survives writing and reading.

    Left out are clips of which two have the same name, spelled otherwise: they would be refused.
    """
    assume(are_apart(clips))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest = Manifest(tuple(clips), folder)

        write_manifest(manifest, folder / "first.csv")
        read_back = read_manifest(folder / "first.csv")
        write_manifest(read_back, folder / "second.csv")

        assert read_back.clips == manifest.clips
        assert read_back.digest() == manifest.digest()
        assert (folder / "first.csv").read_bytes() == (folder / "second.csv").read_bytes()


@pytest.mark.long
@given(clips=manifests())
def test_a_manifest_in_its_form_for_spreadsheets_is_read_back(clips):
    """A manifest has up to six clips with any names, times and labels, such as =A1, which is a formula.

    It is written in a form in which no cell can be taken for a formula, and read in that form. Left out are
    clips of which two have the same name, spelled otherwise: they would be refused.
    """
    assume(are_apart(clips))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest = Manifest(tuple(clips), folder)

        write_manifest(manifest, folder / "sheet.csv", spreadsheet_safe=True)
        read_back = read_manifest(folder / "sheet.csv", spreadsheet_safe=True)

        assert read_back.clips == manifest.clips


def test_the_digest_is_that_of_the_canonical_file(tmp_path):
    """A manifest of two clips has a further column, a note. Runs record the digest of their manifest.

    It is the SHA-256 of the file as we write it: times with decimals, concepts in the order of the codebook,
    and a quote within a cell twice.
    """
    first = Clip(
        "a-1",
        "a",
        "films/a.mp4",
        start_s=0,
        end_s=1.5,
        level="S",
        concepts=("Body", "Look"),
        annotator="",
        extras={"note": 'say "x"'},
    )
    second = Clip("b", "b", extras={"note": ""})
    manifest = Manifest((first, second), tmp_path)

    write_manifest(manifest, tmp_path / "films.csv")

    content = (
        b"clip_id,movie,video,start_s,end_s,level,concepts,annotator,note\n"
        b'a-1,a,films/a.mp4,0.0,1.5,S,Look;Body,,"say ""x"""\n'
        b"b,b,,,,,,,\n"
    )
    assert (tmp_path / "films.csv").read_bytes() == content
    assert manifest.digest() == hashlib.sha256(content).hexdigest()


def test_unknown_columns_are_kept_as_they_are(tmp_path):
    """A manifest has two columns of a person's own, note and other. In CSV, a quote in a cell is doubled."""
    path = manifest_file(tmp_path, 'a-1,a,,0,1,S,,, spaced ,"a, ""b"""', header=f"{HEADER},note,other")

    (clip,) = read_manifest(path).clips

    assert clip.extras == {"note": " spaced ", "other": 'a, "b"'}


def test_times_may_be_clocks(tmp_path):
    """A clip is from 00:00:40 to 1:10.5, which is a minute and 10.5 s."""
    path = manifest_file(tmp_path, "a-1,a,,00:00:40,1:10.5,S,,")

    (clip,) = read_manifest(path).clips

    assert clip.start_s == 40.0
    assert clip.end_s == 60 + 10.5


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    """Spreadsheets on Windows write a byte order mark before the heading, and line ends of two signs.

    The manifest has one clip and an empty line at its end.
    """
    path = tmp_path / "films.csv"
    byte_order_mark = b"\xef\xbb\xbf"
    path.write_bytes(byte_order_mark + f"{HEADER}\r\na-1,a,,0.0,1.5,S,Look;Body,\r\n\r\n".encode())

    (clip,) = read_manifest(path).clips

    assert (clip.clip_id, clip.level, clip.concepts) == ("a-1", "S", ("Look", "Body"))


@pytest.mark.parametrize(
    ("row", "place"),
    [
        pytest.param("a-1,a,,,,S,,", "line 3, column clip_id", id="an id that is taken"),
        pytest.param("a-2,a,,-1,2,S,,", "line 3, column start_s", id="a start before 0"),
        pytest.param("a-2,a,,5,2,S,,", "line 3, column end_s", id="an end before the start"),
        pytest.param("a-2,a,,nan,2,S,,", "line 3, column start_s", id="not a number"),
        pytest.param("a-2,a,,0,1_0,S,,", "line 3, column end_s", id="a number as only Python writes it"),
        pytest.param(
            "a-2,a,,0.001042,0.001053,S,,", "line 3, column end_s", id="a clip shorter than a frame"
        ),
        pytest.param("a-2,a,,0,,S,,", "line 3, column end_s", id="a start without an end"),
        pytest.param("a-2,a,,,,Sure,,", "line 3, column level", id="an unknown level"),
        pytest.param("a-2,a,,,,S,Look;;Body,", "line 3, column concepts", id="an empty concept"),
        pytest.param("a-2,a,,00:00:01:12,2,S,,", "line 3, column start_s", id="a time code"),
        pytest.param(
            "a-2,a,,0.0104166666666667,0.0208333333333333,S,,",
            "column start_s or end_s",
            id="shares of a day, as spreadsheets keep 00:15 and 00:30",
        ),
        pytest.param(",a,,,,S,,", "line 3, column clip_id", id="no id"),
        pytest.param("a-2,,,,,S,,", "line 3, column movie", id="no movie"),
        pytest.param("a/2,a,,,,S,,", "line 3, column clip_id", id="an id with a slash"),
        pytest.param("a\x072,a,,,,S,,", "line 3, column clip_id", id="an id with a control character"),
        pytest.param("a-2,a,,,,S,", "line 3", id="a cell less than headings"),
        pytest.param('a-2,a,"x,,,S,,', "line 3", id="a quotation mark that is not closed"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line_and_column(tmp_path, row, place):
    """The columns are clip_id, movie, video, start_s, end_s, level, concepts and annotator.

    Line 1 is the heading, line 2 a good row of the clip a-1, and line 3 the wrong row.
    """
    path = manifest_file(tmp_path, "a-1,a,,0.0,1.5,S,Look;Body,", row)

    with pytest.raises(ManifestError) as error:
        read_manifest(path)

    message = str(error.value)
    assert message.startswith(f"{path}: {place}: ")
    assert "\n" not in message


@pytest.mark.parametrize(("cell", "expected"), [("1", "1"), ("0", "0"), ("", ""), ("1.0", "1"), ("0,0", "0")])
def test_seen_score_is_read_as_programs_write_numbers(tmp_path, cell, expected):
    """1 says that the annotator saw a model's score. Spreadsheets may write it as 1.0 or 1,0."""
    path = manifest_file(tmp_path, f'{GOOD_ROW},"{cell}"', header=f"{HEADER},seen_score")

    (clip,) = read_manifest(path).clips

    assert clip.extras == {"seen_score": expected}


@pytest.mark.parametrize("cell", ["TRUE", "2"])
def test_seen_score_must_be_0_or_1(tmp_path, cell):
    """1 says that the annotator saw a model's score, and 0 that they judged blindly."""
    path = manifest_file(tmp_path, f'{GOOD_ROW},"{cell}"', header=f"{HEADER},seen_score")
    with pytest.raises(ManifestError, match="line 2, column seen_score"):
        read_manifest(path)


def test_blanks_around_cells_are_ignored_in_a_sheet_filled_in_by_a_person(tmp_path):
    """A sheet is a manifest written to be safe for spreadsheets. Capitals do not count there either."""
    filled_in = manifest_file(tmp_path, " a-1 ,a ,,0.0,1.5, s,Look ; body,AB ")

    clips = read_manifest(filled_in, spreadsheet_safe=True).clips

    assert clips == (
        Clip("a-1", "a", "", start_s=0.0, end_s=1.5, level="S", concepts=("Look", "Body"), annotator="AB"),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "the file is empty", id="an empty file"),
        pytest.param(b"clip_id,movie\n", "no column video", id="two columns alone"),
        pytest.param("clip_id,movie\n".encode("utf-16-le"), "utf-16-le without its mark", id="UTF-16"),
        pytest.param(HEADER.encode() + b",movie\n", "'movie'", id="the column movie twice"),
        pytest.param(HEADER.encode() + b"\na-1,\xe9,,,,,,\n", "line 2", id="a name in Latin-1"),
        pytest.param(b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml", "Excel", id="a workbook"),
        pytest.param(
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs", id="a pointer to a file"
        ),
        pytest.param(b"<!DOCTYPE html>\n<html>", "HTML", id="a web page"),
    ],
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path, content, message):
    """A manifest is a table in UTF-8 with eight columns, clip_id, movie, and so on. This file is none.

    The error says what the file is by its content, or which column or line of it is wrong.
    """
    no_manifest = tmp_path / "films.csv"
    no_manifest.write_bytes(content)
    with pytest.raises(ManifestError, match=message):
        read_manifest(no_manifest)


@pytest.mark.parametrize("name", ["~$films.xlsx", ".~lock.films.csv#"])
def test_the_lock_file_of_an_open_spreadsheet_is_named_as_such(tmp_path, name):
    """Excel and LibreOffice put a file of such a name beside a table while it is open in them."""
    (tmp_path / name).write_bytes(b"\x02AB" + bytes(162))
    with pytest.raises(ManifestError, match="open"):
        read_manifest(tmp_path / name)


COMPOSED = "Zo\u00eb"
DECOMPOSED = "Zoe\u0308"
"""The name Zoë in the two forms of Unicode: with ë as one sign, and as e with an accent of its own."""


def test_names_are_stored_in_one_form_of_unicode(tmp_path):
    """Zoë is written with ë as one sign, and as e with an accent of its own. The first form is stored."""
    path = manifest_file(tmp_path, f"a,{COMPOSED},,,,,,{COMPOSED}", f"b,{DECOMPOSED},,,,,,{DECOMPOSED}")

    first, second = read_manifest(path).clips

    assert (first.movie, first.annotator) == (COMPOSED, COMPOSED)
    assert (second.movie, second.annotator) == (COMPOSED, COMPOSED)


def test_ids_that_differ_in_their_form_of_unicode_are_one_id_twice(tmp_path):
    """Two clips are called Zoë, with ë as one sign, and as e with an accent of its own."""
    path = manifest_file(tmp_path, f"{COMPOSED},m,,,,,,", f"{DECOMPOSED},m,,,,,,")
    with pytest.raises(ManifestError, match="line 2"):
        read_manifest(path)


def test_a_clip_made_in_code_must_end_after_its_start():
    """A clip would last from 2 to 1 s. The error names it."""
    with pytest.raises(ManifestError, match="clip 'a'"):
        Clip("a", "a", start_s=2, end_s=1)


def test_a_further_column_of_a_clip_may_not_have_the_name_of_a_manifests_own():
    """Each manifest has a column "movie"."""
    with pytest.raises(ManifestError):
        Clip("a", "a", extras={"movie": "b"})


def test_a_manifest_made_in_code_has_concepts_of_its_codebook_alone():
    """Clothes is a synonym of the concept Clothing, which files may have and clips may not."""
    with pytest.raises(ManifestError, match="'Clothes'"):
        Manifest((Clip("a", "a", concepts=("Clothes",)),), Path())


def test_all_clips_of_a_manifest_made_in_code_have_the_same_further_columns():
    """Of two clips, the second alone has a further column, x."""
    with pytest.raises(ManifestError):
        Manifest((Clip("a", "a"), Clip("b", "b", extras={"x": ""})), Path())


def test_a_relative_path_leads_to_the_video_through_a_linked_folder(tmp_path):
    """The folder here/manifests is a link to disk/manifests, and the video is in disk/films.

    Systems resolve ".." of a link in the real folder, so that ../films is disk/films.
    """
    video = tmp_path / "disk" / "films" / "a.mp4"
    video.parent.mkdir(parents=True)
    video.touch()
    real_folder = tmp_path / "disk" / "manifests"
    real_folder.mkdir()
    linked_folder = tmp_path / "here" / "manifests"
    linked_folder.parent.mkdir()
    linked_folder.symlink_to(real_folder)

    path = stored_path(video, linked_folder)

    assert path == "../films/a.mp4"
    assert (linked_folder / path).is_file()


def test_a_manifest_written_elsewhere_still_finds_its_videos(tmp_path):
    """The manifest has a video in folder one, and a clip without a video. It is written into folder two."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "a.mp4").touch()
    manifest = Manifest((Clip("a", "a", "a.mp4"), Clip("b", "b")), tmp_path / "one")

    written = write_manifest(manifest, tmp_path / "two" / "films.csv")

    assert [clip.video for clip in written] == ["../one/a.mp4", ""]
    read_back = read_manifest(tmp_path / "two" / "films.csv")
    path = read_back.video_path(read_back.by_id["a"])
    assert path is not None
    assert path.is_file()
    assert read_back.video_path(read_back.by_id["b"]) is None
    assert read_back.digest() == written.digest()


@pytest.mark.parametrize("form_on_disk", ["NFC", "NFD"])
@pytest.mark.parametrize("form_in_manifest", ["NFC", "NFD"])
def test_a_video_is_found_in_either_form_of_unicode(tmp_path, form_on_disk, form_in_manifest):
    """Disks differ in how they store the é of a folder Amélie: NFC as one sign, NFD as e and an accent.

    The name of the file in it is in NFD on all of them.
    """
    folder = tmp_path / unicodedata.normalize(form_on_disk, "Amélie")
    folder.mkdir()
    video = folder / unicodedata.normalize("NFD", "début.mp4")
    video.touch()
    clip = Clip("a", "m", unicodedata.normalize(form_in_manifest, "Amélie/début.mp4"))

    path = Manifest((clip,), tmp_path).video_path(clip)

    assert path.samefile(video)


def test_a_video_that_is_found_in_no_form_of_unicode_keeps_the_path_of_the_manifest(tmp_path):
    """The folder has no video à.mp4, whether its à is one sign or an a with an accent of its own."""
    clip = Clip("b", "m", "à.mp4")

    path = Manifest((clip,), tmp_path).video_path(clip)

    assert path == tmp_path / "à.mp4"
