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


def folder_of_empty_files(folder, *names):
    """Make a folder with empty files of these names, in folders below where a name has a slash."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture
def folder_of_three_videos(tmp_path):
    """The folder `films`: three videos, two hidden ones, a text and a file without suffix."""
    videos = ("one.mp4", "two/a.MKV", "two/deep/b.avi")
    others = (".hidden.mp4", "two/.cache/c.mp4", "two/notes.txt", "README")
    return folder_of_empty_files(tmp_path / "films", *videos, *others)


def test_every_video_below_a_folder_becomes_a_clip(folder_of_three_videos, tmp_path):
    """The folder `films` has the videos one.mp4, two/a.MKV and two/deep/b.avi, and other files.

    A film is named by the first folder below `films`, or by the file where it lies in none.
    """
    imported = import_folder(folder_of_three_videos, tmp_path)

    assert [(clip.clip_id, clip.movie, clip.video) for clip in imported.manifest] == [
        ("one", "one", "films/one.mp4"),
        ("two-a", "two", "films/two/a.MKV"),
        ("two-deep-b", "two", "films/two/deep/b.avi"),
    ]


def test_other_files_hidden_ones_and_linked_folders_are_left_out_and_counted(tmp_path):
    """The folder `films` has one video, two/a.mp4, two other files, and a link to the folder `two`.

    Three names begin with a point, so that a video, a folder and a link are hidden.
    """
    films = folder_of_empty_files(
        tmp_path / "films", "two/a.mp4", "README", "two/notes.txt", ".hidden.mp4", "two/.cache/c.mp4"
    )
    (films / "link").symlink_to(films / "two")
    (films / ".link").symlink_to(films / "two")

    imported = import_folder(films, tmp_path)

    assert [clip.video for clip in imported.manifest] == ["films/two/a.mp4"]
    assert imported.notices == (
        "left out 2 files that are no video by name: 1 without suffix, 1 .txt",
        "left out 3 hidden files or folders",
        "did not follow 1 linked folder",
    )


def test_every_image_below_a_folder_becomes_a_clip(tmp_path):
    """A picture has no times. Videos, notes and hidden files are left out and counted."""
    images = ("one.png", "two/a.JPG", "two/deep/b.webp", "c.tiff")
    others = ("film.mp4", "notes.txt", ".d.png")
    stills = folder_of_empty_files(tmp_path / "stills", *images, *others)

    imported = import_images(stills, tmp_path)

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


def test_a_span_of_a_table_keeps_its_names_labels_and_further_columns(folder_of_three_videos, tmp_path):
    """The clip and the movie of the first row are named by its video and times, the second row names its own.

    The word Sure is a synonym of S, and Clothes of Clothing.
    """
    table = tmp_path / "spans.csv"
    table.write_text(
        "video,start_s,end_s,clip_id,movie,level,concepts,note\n"
        "two/a.MKV,0,12.5,,,Sure,Clothes;Look,x\n"
        "two/a.MKV,12.5,20,scene-2,film,,,\n",
        encoding="utf-8",
    )

    imported = import_spans([table], tmp_path, videos=folder_of_three_videos)

    first, second = imported.manifest
    assert (first.clip_id, first.movie, first.video) == ("two-a-0.0-12.5", "two", "films/two/a.MKV")
    assert (first.start_s, first.end_s) == (0, 12.5)
    assert (first.level, first.concepts) == ("S", ("Look", "Clothing"))
    assert first.extras == {"note": "x"}
    assert (second.clip_id, second.movie) == ("scene-2", "film")
    assert (second.start_s, second.end_s, second.level) == (12.5, 20, None)
    (account,) = imported.accounts
    assert (account.seen, account.used) == (2, 2)
    assert "read 'Clothes' as Clothing (1 row), 'Sure' as S (1 row)" in account.notes


def test_a_row_without_times_is_of_the_whole_film(folder_of_three_videos, tmp_path):
    """A row of a table names one.mp4, a video of the folder, with a level and without a start and an end."""
    table = tmp_path / "spans.csv"
    table.write_text("video,start_s,end_s,level\none.mp4,,,HN\n", encoding="utf-8")

    imported = import_spans([table], tmp_path, videos=folder_of_three_videos)

    (clip,) = imported.manifest
    assert (clip.clip_id, clip.movie, clip.level) == ("one", "one", "HN")
    assert (clip.start_s, clip.end_s) == (None, None)
    (account,) = imported.accounts
    assert any("whole film" in note for note in account.notes)


def test_a_video_that_is_missing_and_videos_that_no_span_names_are_reported(folder_of_three_videos, tmp_path):
    """A folder has three videos. A table names one of them, and gone.mp4, which is not there.

    The notices name the missing one, and count the two others.
    """
    table = tmp_path / "spans.csv"
    table.write_text("video,start_s,end_s\ntwo/a.MKV,0,12.5\ngone.mp4,0,1\n", encoding="utf-8")

    imported = import_spans([table], tmp_path, videos=folder_of_three_videos)

    assert [clip.movie for clip in imported.manifest] == ["two", "gone"]
    missing = folder_of_three_videos / "gone.mp4"
    assert any(f"missing on disk: {missing}" in notice for notice in imported.notices)
    assert "left out 2 videos that no span names" in imported.notices


def test_movies_that_differ_in_case_and_blanks_alone_are_refused(tmp_path):
    """The folders The_Birds and "the birds" are of one film, which would be two films.

    One of them could be in training and the other in the test.
    """
    videos = folder_of_empty_files(tmp_path, "The_Birds/a.mp4", "the birds/b.mp4", "Psycho/c.mp4")
    with pytest.raises(ManifestError, match="the birds"):
        import_folder(videos, tmp_path)


@pytest.mark.parametrize("name_in_table", ["NASA_13013.MP4", "nasa_13013"])
def test_a_video_is_found_by_its_name_in_capitals_or_without_its_suffix(tmp_path, name_in_table):
    """A table names a video in capitals or without .mp4. The folder has nasa_13013.mp4."""
    films = folder_of_empty_files(tmp_path / "films", "nasa_13013.mp4")
    table = tmp_path / "spans.csv"
    table.write_text(f"video,start_s,end_s\n{name_in_table},0,2\n", encoding="utf-8")

    imported = import_spans([table], tmp_path, videos=films)

    (clip,) = imported.manifest
    assert imported.manifest.video_path(clip) == films / "nasa_13013.mp4"
    assert not any("did you mean" in notice for notice in imported.notices)


def test_a_video_of_almost_the_name_in_the_table_is_proposed_but_not_taken(tmp_path):
    """A table names nasa-13013.mp4. The folder has nasa_13013.mp4, which may be another file."""
    films = folder_of_empty_files(tmp_path / "films", "nasa_13013.mp4")
    table = tmp_path / "spans.csv"
    table.write_text("video,start_s,end_s\nfilms/nasa-13013.mp4,0,2\n", encoding="utf-8")

    imported = import_spans([table], tmp_path, videos=films)

    (clip,) = imported.manifest
    assert imported.manifest.video_path(clip) != films / "nasa_13013.mp4"
    assert any("did you mean 'nasa_13013.mp4'" in notice for notice in imported.notices)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("gone", "does not exist, and a folder of videos was expected"),
        ("README", "is a file, and a folder of videos was expected; a table"),
        ("empty", "no file below"),
    ],
)
def test_what_is_no_folder_of_videos_is_refused(folder_of_three_videos, tmp_path, place, message):
    """In the folder are a file README and a folder that is empty, and nothing is called `gone`."""
    (folder_of_three_videos / "empty").mkdir()
    with pytest.raises(ManifestError, match=message):
        import_folder(folder_of_three_videos / place, tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param("one.mp4,3,2", "line 3, column end_s", id="an end before its start"),
        pytest.param("one.mp4,x,2", "line 3, column start_s", id="a start that is no time"),
        pytest.param("one.mp4,1,", "line 3, column end_s", id="no end"),
        pytest.param("one.mp4,1,2\n,2,3", "line 4, column video", id="a second row without a video"),
        pytest.param(".,1,2", "line 3", id="a folder for a video"),
        pytest.param("one.mp4,0,1", "line 3: clip .* line 2", id="the span of line 2 again"),
    ],
)
def test_a_wrong_span_is_refused_with_its_line(folder_of_three_videos, tmp_path, row, message):
    """Line 1 is the heading, line 2 a good row, and line 3 the first one to be wrong."""
    table = tmp_path / "spans.csv"
    table.write_text(f"video,start_s,end_s\none.mp4,0,1\n{row}\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=message):
        import_spans([table], tmp_path, videos=folder_of_three_videos)


COMPOSED = "Am\u00e9lie"
DECOMPOSED = "Ame\u0301lie"
"""The name Amélie in the two forms of Unicode: é as one sign, and as e with an accent of its own.

Old Macs, and archives made on them, write the second form; keyboards write the first.
"""


@pytest.mark.parametrize(
    ("name_on_disk", "name_in_table"),
    [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)],
    ids=["the disk has é as one sign", "the table has é as one sign"],
)
def test_a_video_is_found_in_either_form_of_unicode_and_named_in_one(tmp_path, name_on_disk, name_in_table):
    """Unicode can write the é of Amélie as one sign, or as e and an accent; table and disk do it differently.

    The video is found all the same. Names of clips and films, which the second row states, are stored with
    one sign, and the path of the video as it is on the disk.
    """
    films = folder_of_empty_files(tmp_path / "films", f"{name_on_disk}/one.mp4")
    table = tmp_path / "spans.csv"
    without_names = f"{name_in_table}/one.mp4,0,1,,"
    with_names = f"{name_in_table}/one.mp4,1,2,{DECOMPOSED},{DECOMPOSED}"
    table.write_text(f"video,start_s,end_s,clip_id,movie\n{without_names}\n{with_names}\n", encoding="utf-8")

    imported = import_spans([table], tmp_path, videos=films)

    assert [clip.clip_id for clip in imported.manifest] == [f"{COMPOSED}-one-0.0-1.0", COMPOSED]
    assert imported.manifest.movies == (COMPOSED,)
    assert all(imported.manifest.video_path(clip).is_file() for clip in imported.manifest)
    assert not any("missing" in notice for notice in imported.notices)


@pytest.mark.parametrize("name_on_disk", [COMPOSED, DECOMPOSED], ids=["composed", "decomposed"])
def test_names_from_a_folder_get_composed_accents(tmp_path, name_on_disk):
    """The folder is called Amélie, its é one sign, or e with an accent of its own.

    The clip is named with one sign, and the path of the video stays as it is on the disk.
    """
    folder = folder_of_empty_files(tmp_path / "films", f"{name_on_disk}/one.mp4")

    (clip,) = import_folder(folder, tmp_path).manifest

    assert (clip.clip_id, clip.movie) == (f"{COMPOSED}-one", COMPOSED)
    assert clip.video == f"films/{name_on_disk}/one.mp4"


def test_a_folder_of_two_videos_that_differ_in_the_form_of_an_accent_is_refused(tmp_path):
    """Both are called Amélie, so they would be one clip."""
    videos = folder_of_empty_files(tmp_path, f"{COMPOSED}.mp4", f"{DECOMPOSED}.mp4")
    with pytest.raises(ManifestError, match="both would be clip"):
        import_folder(videos, tmp_path)


def test_a_table_of_two_videos_that_differ_in_the_form_of_an_accent_is_refused(tmp_path):
    """Both are called Amélie, so they would be one film."""
    videos = folder_of_empty_files(tmp_path, f"{COMPOSED}.mp4", f"{DECOMPOSED}.mp4")
    table = tmp_path / "spans.csv"
    table.write_text(f"video,start_s,end_s\n{COMPOSED}.mp4,0,1\n{DECOMPOSED}.mp4,0,1\n", encoding="utf-8")
    with pytest.raises(ManifestError):
        import_spans([table], tmp_path, videos=videos)


def test_two_films_to_be_cut_that_differ_in_the_form_of_an_accent_are_refused(tmp_path):
    """Both are called Amélie, so they would be one film."""
    first = Film(tmp_path / f"{COMPOSED}.mp4", end_s=10.0)
    second = Film(tmp_path / f"{DECOMPOSED}.mp4", end_s=10.0)
    with pytest.raises(ManifestError, match="both would be movie"):
        import_film([first, second], tmp_path, window_s=5.0)
