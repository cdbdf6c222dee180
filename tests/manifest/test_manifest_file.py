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
HEADER = ",".join(FIELDS)
GOOD = "a-1,a,,0.0,1.5,S,Look;Body,"


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "films.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("is_on", [True, False])
def test_reading_leaves_garbage_collection_as_it_was(tmp_path, is_on):
    """Reading switches the garbage collector off for speed. It must be as before, also after an error."""
    path = written(tmp_path, GOOD)
    wrong = tmp_path / "nothing.csv"
    was_on = gc.isenabled()
    try:
        gc.enable() if is_on else gc.disable()
        assert len(read_manifest(path)) == 1
        with pytest.raises(FileNotFoundError):
            read_manifest(wrong)
        assert gc.isenabled() == is_on
    finally:
        gc.enable() if was_on else gc.disable()


printable = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12).filter(
    lambda text: text == text.strip() and unsuitable(text) is None
)
names = printable.filter(lambda text: text and not text.startswith(".") and not set(text) & set("/\\"))
anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: unsuitable(text, lines=True) is None
)
instants = st.floats(0, 1e6)
spans = st.one_of(
    st.just((None, None)),
    st.tuples(instants, instants).filter(lambda span: span[0] < span[1] >= 1),  # else shares of a day
)


@st.composite
def manifests(draw):
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
@given(manifests())
def test_a_manifest_is_read_back_and_written_again_byte_for_byte(clips):
    """A manifest of any names, times and labels survives writing and reading.

    So does its form for spreadsheets.
    """
    assume(are_apart(clips))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest = Manifest(tuple(clips), folder)
        write_manifest(manifest, folder / "a.csv")
        again = read_manifest(folder / "a.csv")
        assert again.clips == manifest.clips
        assert again.digest() == manifest.digest()
        write_manifest(again, folder / "b.csv")
        assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
        write_manifest(again, folder / "sheet.csv", spreadsheet_safe=True)
        assert read_manifest(folder / "sheet.csv", spreadsheet_safe=True).clips == manifest.clips


def test_the_digest_is_that_of_the_canonical_file(tmp_path):
    """Runs record the digest of their manifest. It is the SHA-256 of the file as we write it."""
    clip = Clip("a-1", "a", "films/a.mp4", 0, 1.5, LEVELS[3], ("Body", "Look"), "", {"note": 'say "x"'})
    manifest = Manifest((clip, Clip("b", "b", extras={"note": ""})), tmp_path)
    content = (
        b"clip_id,movie,video,start_s,end_s,level,concepts,annotator,note\n"
        b'a-1,a,films/a.mp4,0.0,1.5,S,Look;Body,,"say ""x"""\n'
        b"b,b,,,,,,,\n"
    )
    assert manifest.digest() == hashlib.sha256(content).hexdigest()
    write_manifest(manifest, tmp_path / "films.csv")

    assert (tmp_path / "films.csv").read_bytes() == content


def test_unknown_columns_are_kept_verbatim_and_times_read_as_those_of_every_table(tmp_path):
    """A clock such as 1:10.5 is a minute and 10.5 s."""
    row = 'a-1,a,,00:00:40,1:10.5,S,,, spaced ,"a, ""b"""'
    (clip,) = read_manifest(written(tmp_path, row, header=HEADER + ",note,other")).clips
    assert (clip.start_s, clip.end_s) == (40.0, 70.5)
    assert clip.extras == {"note": " spaced ", "other": 'a, "b"'}


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    path = tmp_path / "films.csv"
    path.write_bytes(b"\xef\xbb\xbf" + HEADER.encode() + b"\r\n" + GOOD.encode() + b"\r\n\r\n")
    assert read_manifest(path).clips[0].concepts == ("Look", "Body")


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ("a-1,a,,,,S,,", "line 3, column clip_id"),
        ("a-2,a,,-1,2,S,,", "line 3, column start_s"),
        ("a-2,a,,5,2,S,,", "line 3, column end_s"),
        ("a-2,a,,nan,2,S,,", "line 3, column start_s"),
        ("a-2,a,,0,1_0,S,,", "line 3, column end_s"),
        ("a-2,a,,0.001042,0.001053,S,,", "line 3, column end_s"),
        ("a-2,a,,0,,S,,", "line 3, column end_s"),
        ("a-2,a,,,,Sure,,", "line 3, column level"),
        ("a-2,a,,,,S,Look;;Body,", "line 3, column concepts"),
        ("a-2,a,,00:00:01:12,2,S,,", "line 3, column start_s"),
        ("a-2,a,,0.0104166666666667,0.0208333333333333,S,,", "column start_s or end_s"),
        (",a,,,,S,,", "line 3, column clip_id"),
        ("a-2,,,,,S,,", "line 3, column movie"),
        ("a/2,a,,,,S,,", "line 3, column clip_id"),
        ("a\x072,a,,,,S,,", "line 3, column clip_id"),
        ("a-2,a,,,,S,", "line 3"),
        ('a-2,a,"x,,,S,,', "line 3"),
    ],
)
def test_a_wrong_row_is_refused_with_its_line_and_column(tmp_path, row, where):
    """Line 1 is the heading, and line 2 a good row."""
    path = written(tmp_path, GOOD, row)
    with pytest.raises(ManifestError) as caught:
        read_manifest(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {where}: ")
    assert "\n" not in message


@pytest.mark.parametrize(("cell", "expected"), [("1", "1"), ("0", "0"), ("", ""), ("1.0", "1"), ("0,0", "0")])
def test_seen_score_is_read_as_programs_write_numbers(tmp_path, cell, expected):
    """1 says that the annotator saw a model's score. Spreadsheets may write it as 1.0 or 1,0."""
    path = written(tmp_path, f'{GOOD},"{cell}"', header=f"{HEADER},seen_score")
    (clip,) = read_manifest(path).clips
    assert clip.extras == {"seen_score": expected}


@pytest.mark.parametrize("cell", ["TRUE", "2"])
def test_seen_score_must_be_0_or_1(tmp_path, cell):
    path = written(tmp_path, f'{GOOD},"{cell}"', header=f"{HEADER},seen_score")
    with pytest.raises(ManifestError, match="line 2, column seen_score"):
        read_manifest(path)


def test_blanks_around_cells_are_ignored_in_a_sheet_filled_in_by_a_person(tmp_path):
    """A person fills in a sheet, which was written to be safe for spreadsheets."""
    with_blanks = written(tmp_path, " a-1 ,a ,,0.0,1.5, s,Look ; body,AB ")
    clips = read_manifest(with_blanks, spreadsheet_safe=True).clips
    without_blanks = written(tmp_path, f"{GOOD}AB")
    assert clips == read_manifest(without_blanks).clips


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", None),
        (b"clip_id,movie\n", None),
        ("clip_id,movie\n".encode("utf-16-le"), "utf-16-le without its mark"),
        (HEADER.encode() + b",movie\n", "'movie'"),
        (HEADER.encode() + b"\na-1,\xe9,,,,,,\n", "line 2"),
        (b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml", "Excel"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs"),
        (b"<!DOCTYPE html>\n<html>", "HTML"),
    ],
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path, content, message):
    """Common mistakes are an empty file, another encoding, a workbook and a web page."""
    path = tmp_path / "films.csv"
    path.write_bytes(content)
    with pytest.raises(ManifestError, match=message):
        read_manifest(path)


@pytest.mark.parametrize("name", ["~$films.xlsx", ".~lock.films.csv#"])
def test_the_lock_file_of_an_open_spreadsheet_is_named_as_such(tmp_path, name):
    """Excel and LibreOffice put such a file beside a table while it is open."""
    (tmp_path / name).write_bytes(b"\x02AB" + bytes(162))
    with pytest.raises(ManifestError, match="open"):
        read_manifest(tmp_path / name)


COMPOSED = "Zo\u00eb"
DECOMPOSED = "Zoe\u0308"


def test_names_in_two_forms_of_unicode_are_one(tmp_path):
    """An accent may be part of its letter or a sign of its own: names are stored in the first form.

    So a clip's id in both forms is a duplicate.
    """
    path = written(tmp_path, f"a,{COMPOSED},,,,,,{COMPOSED}", f"b,{DECOMPOSED},,,,,,{DECOMPOSED}")
    clips = read_manifest(path).clips
    assert [(clip.movie, clip.annotator) for clip in clips] == [(COMPOSED, COMPOSED)] * 2

    path = written(tmp_path, f"{COMPOSED},m,,,,,,", f"{DECOMPOSED},m,,,,,,")
    with pytest.raises(ManifestError, match="line 2"):
        read_manifest(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Clip("a", "a", start_s=2, end_s=1), "clip 'a'"),
        (lambda: Clip("a", "a", extras={"movie": "b"}), None),
        (lambda: Manifest((Clip("a", "a", concepts=("Clothes",)),), Path()), "'Clothes'"),
        (lambda: Manifest((Clip("a", "a"), Clip("a", "b")), Path()), "'a'"),
        (lambda: Manifest((Clip("a", "a"), Clip("b", "b", extras={"x": ""})), Path()), None),
    ],
    ids=[
        "an end before its start",
        "a column of a manifest's own",
        "a concept by its synonym",
        "one id twice",
        "columns of one clip alone",
    ],
)
def test_clips_and_manifests_made_in_code_are_checked_too(make, message):
    with pytest.raises(ManifestError, match=message):
        make()


def test_a_relative_path_leads_to_the_video_through_a_linked_folder(tmp_path):
    """here/manifests is a link to disk/manifests. Systems resolve ".." of a link in the real folder."""
    real = tmp_path / "disk" / "manifests"
    real.mkdir(parents=True)
    (tmp_path / "disk" / "films").mkdir()
    (tmp_path / "disk" / "films" / "a.mp4").touch()
    (tmp_path / "here").mkdir()
    link = tmp_path / "here" / "manifests"
    link.symlink_to(real)
    stored = stored_path(tmp_path / "disk" / "films" / "a.mp4", link)

    assert stored == "../films/a.mp4"
    assert (link / stored).is_file()


def test_a_manifest_written_elsewhere_still_finds_its_videos(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    video = tmp_path / "one" / "a.mp4"
    video.touch()
    manifest = Manifest((Clip("a", "a", "a.mp4"), Clip("b", "b")), tmp_path / "one")
    placed = write_manifest(manifest, tmp_path / "two" / "films.csv")
    assert [clip.video for clip in placed] == ["../one/a.mp4", ""]
    read = read_manifest(tmp_path / "two" / "films.csv")
    path = read.video_path(read.by_id["a"])

    assert path is not None
    assert path.is_file()
    assert read.video_path(read.by_id["b"]) is None
    assert read.digest() == placed.digest()


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_video_is_found_in_either_form_of_unicode(tmp_path, form):
    """File systems differ in how they store accents.

    A video that is not found in any form keeps its written path.
    """
    stored = tmp_path / unicodedata.normalize(form, "Amélie") / unicodedata.normalize("NFD", "début.mp4")
    stored.parent.mkdir()
    stored.touch()
    for written in ("NFC", "NFD"):
        clip = Clip("a", "m", unicodedata.normalize(written, "Amélie/début.mp4"))
        assert Manifest((clip,), tmp_path).video_path(clip).samefile(stored)
    lost = Clip("b", "m", "à.mp4")

    assert Manifest((lost,), tmp_path).video_path(lost) == tmp_path / "à.mp4"
