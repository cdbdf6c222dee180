"""Folders of videos and images become clips, whole or cut into spans; what does not fit is refused."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Film,
    UnreadColumnsError,
    import_film,
    import_folder,
    import_images,
    import_spans,
)


def touched(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture
def films(tmp_path):
    others = (".hidden.mp4", "two/.cache/c.mp4", "two/notes.txt", "README")
    return touched(tmp_path / "films", "one.mp4", "two/a.MKV", "two/deep/b.avi", *others)


def test_every_video_below_a_folder_becomes_a_clip(films, tmp_path):
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


def test_every_image_below_a_folder_becomes_a_clip_without_a_span(tmp_path):
    names = ("one.png", "two/a.JPG", "two/deep/b.webp", "c.tiff", "film.mp4", "notes.txt", ".d.png")
    imported = import_images(touched(tmp_path / "stills", *names), tmp_path)
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


def test_spans_of_films_become_clips_with_the_labels_that_come_along(films, tmp_path):
    spans = tmp_path / "spans.csv"
    spans.write_text(
        "video,start_s,end_s,clip_id,movie,level,concepts,note\n"
        "two/a.MKV,0,12.5,,,Sure,Clothes;Look,x\n"
        "two/a.MKV,12.5,20,scene-2,film,,,\n"
        "gone.mp4,,,,,HN,,\n",
        encoding="utf-8",
    )
    imported = import_spans([spans], tmp_path, videos=films)
    clips = [(clip.clip_id, clip.movie, clip.start_s, clip.end_s, clip.level) for clip in imported.manifest]
    assert clips == [
        ("two-a-0.0-12.5", "two", 0, 12.5, "S"),
        ("scene-2", "film", 12.5, 20, None),
        ("gone", "gone", None, None, "HN"),
    ]
    first = imported.manifest.clips[0]
    assert (first.video, first.concepts, first.extras) == (
        "films/two/a.MKV",
        ("Look", "Clothing"),
        {"note": "x"},
    )
    (account,) = imported.accounts
    assert (account.seen, account.used) == (3, 3)
    assert "read 'Clothes' as Clothing (1 row), 'Sure' as S (1 row)" in account.notes
    assert any("whole film" in note for note in account.notes)
    assert any(f"missing on disk: {films / 'gone.mp4'}" in notice for notice in imported.notices)
    assert "left out 2 videos that no span names" in imported.notices


def test_movies_that_differ_in_case_and_blanks_alone_are_refused(tmp_path):
    videos = touched(tmp_path, "The_Birds/a.mp4", "the birds/b.mp4", "Psycho/c.mp4")
    with pytest.raises(ManifestError, match="the birds"):
        import_folder(videos, tmp_path)


@pytest.mark.parametrize("written", ["NASA_13013.MP4", "nasa_13013", "films/nasa-13013.mp4"])
def test_an_almost_right_name_of_a_video_gets_the_right_one(tmp_path, written):
    films = touched(tmp_path / "films", "nasa_13013.mp4")
    (tmp_path / "spans.csv").write_text(f"video,start_s,end_s\n{written},0,2\n", encoding="utf-8")
    imported = import_spans([tmp_path / "spans.csv"], tmp_path, videos=films)
    (clip,) = imported.manifest
    is_found = imported.manifest.video_path(clip) == films / "nasa_13013.mp4"
    assert is_found != any("did you mean 'nasa_13013.mp4'" in notice for notice in imported.notices)


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
    ("header", "meant"),
    [
        ("Level,concepts", []),
        ("lvl,concept", ["level=lvl", "concepts=concept"]),
        ("label,concepts", ["level=label"]),
        ("level,concepts", []),
    ],
)
def test_columns_that_are_almost_named_are_said(films, tmp_path, header, meant):
    text = f"video,start_s,end_s,{header},video_2\ntwo/a.MKV,0,2,S,Body,mine\n"
    (tmp_path / "spans.csv").write_text(text, encoding="utf-8")
    if meant:
        with pytest.raises(UnreadColumnsError) as refusal:
            import_spans([tmp_path / "spans.csv"], tmp_path, videos=films)
        assert refusal.value.options == tuple(f"--column {column}" for column in meant)
    else:
        (clip,) = import_spans([tmp_path / "spans.csv"], tmp_path, videos=films).manifest
        assert (clip.level, clip.concepts) == ("S", ("Body",))


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
    spans = tmp_path / "spans.csv"
    spans.write_text(f"video,start_s,end_s\none.mp4,0,1\n{row}\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=message):
        import_spans([spans], tmp_path, videos=films)


NFC = "Am\u00e9lie"
NFD = "Ame\u0301lie"


@pytest.mark.parametrize(("on_disk", "in_table"), [(NFC, NFD), (NFD, NFC)])
def test_accents_have_one_form_in_ids_and_a_video_is_found_in_either(tmp_path, on_disk, in_table):
    """Old Macs, and archives made on them, spell an accent as a letter of its own; keyboards do not."""
    folder = touched(tmp_path / "films", f"{on_disk}/one.mp4")
    spans = tmp_path / "spans.csv"
    spans.write_text(
        f"video,start_s,end_s,clip_id,movie\n{in_table}/one.mp4,0,1,,\n{in_table}/one.mp4,1,2,{NFD},{NFD}\n",
        encoding="utf-8",
    )
    imported = import_spans([spans], tmp_path, videos=folder)
    assert [clip.clip_id for clip in imported.manifest] == [f"{NFC}-one-0.0-1.0", NFC]
    assert imported.manifest.movies == (NFC,)
    assert all(imported.manifest.video_path(clip).is_file() for clip in imported.manifest)
    assert len(imported.notices) == 1
    (whole,) = import_folder(folder, tmp_path).manifest
    assert (whole.clip_id, whole.movie, whole.video) == (f"{NFC}-one", NFC, f"films/{on_disk}/one.mp4")


def test_names_that_differ_in_the_form_of_accents_alone_are_refused(tmp_path):
    spans = tmp_path / "spans.csv"
    spans.write_text(f"video,start_s,end_s\n{NFC}.mp4,0,1\n{NFD}.mp4,0,1\n", encoding="utf-8")
    with pytest.raises(ManifestError, match="both would be clip"):
        import_folder(touched(tmp_path, f"{NFC}.mp4", f"{NFD}.mp4"), tmp_path)
    with pytest.raises(ManifestError):
        import_spans([spans], tmp_path, videos=tmp_path)
    films = [Film(tmp_path / f"{name}.mp4", 10.0) for name in (NFC, NFD)]
    assert [film.movie for film in films] == [NFC, NFC]
    with pytest.raises(ManifestError, match="both would be movie"):
        import_film(films, tmp_path, 5.0)
