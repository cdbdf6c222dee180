"""Folders of videos and images become clips, whole or cut into spans; what does not fit is refused."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Film,
    import_film,
    import_folder,
    import_images,
    import_spans,
)


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture
def films(tmp_path):
    others = (".hidden.mp4", "two/.cache/c.mp4", "two/notes.txt", "README")
    return touch(tmp_path / "films", "one.mp4", "two/a.MKV", "two/deep/b.avi", *others)


def test_every_video_below_a_folder_becomes_a_clip(films, tmp_path):
    """A film is named by the first folder below, or by the file.

    Hidden files, other files and linked folders are left out and counted.
    """
    for link in ("link", ".link"):
        (films / link).symlink_to(films / "two")
    imported = import_folder(films, tmp_path)

    assert [(clip.clip_id, clip.movie, clip.video) for clip in imported.manifest] == [
        ("one", "one", "films/one.mp4"),
        ("two-a", "two", "films/two/a.MKV"),
        ("two-deep-b", "two", "films/two/deep/b.avi"),
    ]
    assert imported.notices == (
        "left out 2 files that are no video by name: 1 without suffix, 1 .txt",
        "left out 3 hidden files or folders",
        "did not follow 1 linked folder",
    )


def test_every_image_below_a_folder_becomes_a_clip(tmp_path):
    """A picture has no times. Videos, notes and hidden files are left out and counted."""
    names = ("one.png", "two/a.JPG", "two/deep/b.webp", "c.tiff", "film.mp4", "notes.txt", ".d.png")
    imported = import_images(touch(tmp_path / "stills", *names), tmp_path)

    assert [(clip.clip_id, clip.movie, clip.video) for clip in imported.manifest] == [
        ("c", "stills", "stills/c.tiff"),
        ("one", "stills", "stills/one.png"),
        ("two-a", "two", "stills/two/a.JPG"),
        ("two-deep-b", "two", "stills/two/deep/b.webp"),
    ]
    assert all(clip.duration_s is None for clip in imported.manifest)
    assert imported.notices == (
        "left out 2 files that are no image by name: 1 .mp4, 1 .txt",
        "left out 1 hidden file or folder",
    )


SPANS = """video,start_s,end_s,clip_id,movie,level,concepts,note
two/a.MKV,0,12.5,,,Sure,Clothes;Look,x
two/a.MKV,12.5,20,scene-2,film,,,
gone.mp4,,,,,HN,,
"""


def test_spans_of_a_table_keep_their_names_labels_and_further_columns(films, tmp_path):
    """`SPANS` name one of three films, and one that is missing.

    The second row states its own clip and film; the third has no times, so the clip is the whole film. The
    word Sure is a synonym of S, and Clothes of Clothing.
    """
    (tmp_path / "spans.csv").write_text(SPANS, encoding="utf-8")
    imported = import_spans([tmp_path / "spans.csv"], tmp_path, videos=films)
    assert [(c.clip_id, c.movie, c.start_s, c.end_s, c.level) for c in imported.manifest] == [
        ("two-a-0.0-12.5", "two", 0, 12.5, "S"),
        ("scene-2", "film", 12.5, 20, None),
        ("gone", "gone", None, None, "HN"),
    ]
    first, *_ = imported.manifest
    assert (first.video, first.concepts) == ("films/two/a.MKV", ("Look", "Clothing"))
    assert first.extras == {"note": "x"}

    (account,) = imported.accounts
    assert (account.seen, account.used) == (3, 3)
    assert "read 'Clothes' as Clothing (1 row), 'Sure' as S (1 row)" in account.notes
    assert any("whole film" in note for note in account.notes)
    assert any(f"missing on disk: {films / 'gone.mp4'}" in notice for notice in imported.notices)
    assert "left out 2 videos that no span names" in imported.notices


def test_movies_that_differ_in_case_and_blanks_alone_are_refused(tmp_path):
    """One film in two folders would be two films.

    One of them could be in training and the other in the test.
    """
    videos = touch(tmp_path, "The_Birds/a.mp4", "the birds/b.mp4", "Psycho/c.mp4")
    with pytest.raises(ManifestError, match="the birds"):
        import_folder(videos, tmp_path)


@pytest.mark.parametrize(
    ("written", "is_found"),
    [("NASA_13013.MP4", True), ("nasa_13013", True), ("films/nasa-13013.mp4", False)],
    ids=["in capitals", "without its suffix", "with a hyphen"],
)
def test_a_video_is_found_by_its_name_and_one_of_almost_this_name_is_proposed(tmp_path, written, is_found):
    """A hyphen in place of an underscore may mean another file."""
    films = touch(tmp_path / "films", "nasa_13013.mp4")
    (tmp_path / "spans.csv").write_text(f"video,start_s,end_s\n{written},0,2\n", encoding="utf-8")
    imported = import_spans([tmp_path / "spans.csv"], tmp_path, videos=films)
    (clip,) = imported.manifest
    assert (imported.manifest.video_path(clip) == films / "nasa_13013.mp4") == is_found
    assert any("did you mean 'nasa_13013.mp4'" in notice for notice in imported.notices) == (not is_found)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("gone", "does not exist, and a folder of videos was expected"),
        ("README", "is a file, and a folder of videos was expected; a table"),
        ("empty", "no file below"),
    ],
)
def test_what_is_no_folder_of_videos_is_refused(films, tmp_path, place, message):
    (films / "empty").mkdir()
    with pytest.raises(ManifestError, match=message):
        import_folder(films / place, tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("one.mp4,3,2", "line 3, column end_s"),
        ("one.mp4,x,2", "line 3, column start_s"),
        ("one.mp4,1,", "line 3, column end_s"),
        ("one.mp4,1,2\n,2,3", "line 4, column video"),
        (".,1,2", "line 3"),
        ("one.mp4,0,1", "line 3: clip .* line 2"),
    ],
)
def test_a_wrong_span_is_refused_with_its_line(films, tmp_path, row, message):
    """Line 1 is the heading, and line 2 a good row."""
    spans = tmp_path / "spans.csv"
    spans.write_text(f"video,start_s,end_s\none.mp4,0,1\n{row}\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=message):
        import_spans([spans], tmp_path, videos=films)


NFC = "Am\u00e9lie"
NFD = "Ame\u0301lie"
"""One name in the two forms of Unicode: é as one sign, and as e with an accent of its own.

Old Macs, and archives made on them, write the second form; keyboards write the first.
"""


@pytest.mark.parametrize(("on_disk", "in_table"), [(NFC, NFD), (NFD, NFC)], ids=["NFD to NFC", "NFC to NFD"])
def test_a_video_is_found_in_either_form_of_unicode_and_named_in_one(tmp_path, on_disk, in_table):
    """The table and the disk write the accent differently.

    Names of clips and films are stored in one form. The path of a video is left as it is on the disk.
    """
    folder = touch(tmp_path / "films", f"{on_disk}/one.mp4")
    spans = tmp_path / "spans.csv"
    without_names = f"{in_table}/one.mp4,0,1,,"
    with_names = f"{in_table}/one.mp4,1,2,{NFD},{NFD}"
    spans.write_text(f"video,start_s,end_s,clip_id,movie\n{without_names}\n{with_names}\n", encoding="utf-8")
    imported = import_spans([spans], tmp_path, videos=folder)

    assert [clip.clip_id for clip in imported.manifest] == [f"{NFC}-one-0.0-1.0", NFC]
    assert imported.manifest.movies == (NFC,)
    assert all(imported.manifest.video_path(clip).is_file() for clip in imported.manifest)
    assert not any("missing" in notice for notice in imported.notices)


@pytest.mark.parametrize("on_disk", [NFC, NFD], ids=["NFC", "NFD"])
def test_names_from_a_folder_get_composed_accents(tmp_path, on_disk):
    """The name of the clip is stored in one form, and the path of the video as it is on the disk."""
    folder = touch(tmp_path / "films", f"{on_disk}/one.mp4")
    (clip,) = import_folder(folder, tmp_path).manifest
    assert (clip.clip_id, clip.movie, clip.video) == (f"{NFC}-one", NFC, f"films/{on_disk}/one.mp4")


def test_two_videos_that_differ_in_the_form_of_accents_are_refused(tmp_path):
    """Both would be the same clip and the same film."""
    videos = touch(tmp_path, f"{NFC}.mp4", f"{NFD}.mp4")
    with pytest.raises(ManifestError, match="both would be clip"):
        import_folder(videos, tmp_path)

    spans = tmp_path / "spans.csv"
    spans.write_text(f"video,start_s,end_s\n{NFC}.mp4,0,1\n{NFD}.mp4,0,1\n", encoding="utf-8")
    with pytest.raises(ManifestError):
        import_spans([spans], tmp_path, videos=videos)

    films = [Film(tmp_path / f"{name}.mp4", 10.0) for name in (NFC, NFD)]
    with pytest.raises(ManifestError, match="both would be movie"):
        import_film(films, tmp_path, 5.0)
