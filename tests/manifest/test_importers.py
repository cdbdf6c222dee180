"""Published annotations and folders of videos become manifests; nothing is lost without being counted."""

import csv
from pathlib import Path

import pytest

from obygaze_features.manifest import (
    Clip,
    ManifestError,
    builtin_codebook,
    import_folder,
    import_images,
    import_mobygaze,
    import_obygaze12,
    read_manifest,
    write_manifest,
)
from obygaze_features.manifest.importers.imported import concept_list, text_list
from obygaze_features.manifest.importers.obygaze12 import SPLIT_FILES
from obygaze_features.manifest.rows import frame_rate, time_code

OBYGAZE_HEADER = "idx;util;clip;label;overlap_ratio;concepts;id;movie;srt_name;video_name;graph_number"
MOBY_HEADER = (
    ";clip_index;movie_id;annotator;label;concepts;comment;start_frame;end_frame;imdb_key;movie_title;framerate;"
    "subtitle;start_clip;end_clip"
)


def obygaze_row(number=1, label="Sure", concepts="[' Clothes']", clip_id=None, video="tt1_scene_1.avi"):
    clip_id = clip_id or f"tt1-{number:03d}"
    return f"0;1;tt1scene-001.ss-0001.es-0002;{label};1.00;{concepts};{clip_id};tt1;x.srt;{video};0"


def obygaze_file(folder, *rows):
    folder.mkdir(exist_ok=True)
    path = folder / "ObyGaze12_thresh_02.csv"
    path.write_bytes("\r\n".join([OBYGAZE_HEADER, ";" * 10, *rows, ""]).encode())
    return path


def split_file(folder, name, *rows):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([";id;label;reason;fold", *(f"0;{row}" for row in rows), ""]), encoding="utf-8")


def moby_file(folder, *rows):
    path = folder / "mobygaze_dataframe.csv"
    path.write_text("\n".join([MOBY_HEADER, *rows, ""]), encoding="utf-8")
    return path


# ObyGaze12


def test_a_row_of_obygaze12_becomes_a_clip(tmp_path):
    path = obygaze_file(
        tmp_path, obygaze_row(3, "Hard Neg", "['Speech', ' Exp of  emotion', 'Type of plan']")
    )
    imported = import_obygaze12(path, tmp_path)
    assert imported.manifest.clips == (
        Clip(
            "tt1-003",
            "tt1",
            "tt1_scene_1.avi",
            level="HN",
            concepts=("Type of shot", "Expression of emotion", "Speech"),
            extras={
                "scene_shots": "tt1scene-001.ss-0001.es-0002",
                "overlap_ratio": "1.00",
                "srt_name": "x.srt",
                "graph_number": "0",
                "util": "1",
            },
        ),
    )
    assert imported.notices == ("left out 1 line of empty cells",)


def test_the_real_obygaze12_has_1914_clips_with_the_folds_of_every_split_file(shared_data, tmp_path):
    imported = import_obygaze12(shared_data / "obygaze12", tmp_path, videos=tmp_path / "clips")
    manifest = imported.manifest
    assert len(manifest) == 1914
    assert sum(not clip.video for clip in manifest) == 75
    assert manifest.by_id["tt0108160-003"].video == "clips/tt0108160_scene_3.avi"
    assert "left out 1 line of empty cells" in imported.notices
    assert "75 clips have no video_name: no video is known for them" in imported.notices
    clips = tmp_path / "clips"
    assert f"0 of 1,839 named videos are in {clips}: there is no such folder" in imported.notices
    for split in SPLIT_FILES:
        with (shared_data / "obygaze12" / split.path).open(encoding="utf-8", newline="") as stream:
            released = {row["id"]: row["fold"] for row in csv.DictReader(stream, delimiter=";")}
        ours = {clip.clip_id: fold for clip in manifest if (fold := clip.extras[split.column])}
        assert ours == released
        assert list(ours) == list(released)  # in the same order: the manifest alone gives issue-free folds
    write_manifest(manifest, tmp_path / "obygaze12.csv")
    assert read_manifest(tmp_path / "obygaze12.csv").clips == manifest.clips


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (obygaze_row(label="Surely"), "line 4, column label: unknown level 'Surely' .did you mean 'S'"),
        (
            obygaze_row(concepts="['Loook']"),
            "line 4, column concepts: unknown concept 'Loook' .did you mean 'Look'",
        ),
        (obygaze_row(concepts="__import__('os')"), "line 4, column concepts: .* is not a list of texts"),
        (obygaze_row(concepts="['Look'"), "line 4, column concepts: .* is not a list of texts"),
        (obygaze_row(concepts="[1]"), "line 4, column concepts: .* is not a list of texts"),
        (obygaze_row(clip_id="tt2-001"), "line 4, column id: 'tt2-001' does not begin with the movie 'tt1'"),
        (obygaze_row(9), "line 4, column id: clip 'tt1-009' is already on line 3"),
        ("0;1;too;short", "line 4: 4 cells where the header has 11"),
    ],
)
def test_a_broken_row_of_obygaze12_is_refused_with_its_line(tmp_path, row, what):
    path = obygaze_file(tmp_path, obygaze_row(9), row)
    with pytest.raises(ManifestError, match=what):
        import_obygaze12(path, tmp_path)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("tt1-007;Sure;[];0", "line 2, column id: clip 'tt1-007' is not in the annotations"),
        (
            "tt1-001;Hard Neg;['Clothes'];0",
            "line 2, column label: clip 'tt1-001' is 'Hard Neg' here and S in",
        ),
        ("tt1-001;Easy Neg;['Clothes'];0", "line 2, column label: unknown label 'Easy Neg'"),
        (
            "tt1-001;Sure;['Look'];0",
            "line 2, column reason: clip 'tt1-001' has .'Look'. here and .'Clothing'. in",
        ),
        ("tt1-001;Sure;['Clothes'];x", "line 2, column fold: 'x' is not a whole number"),
    ],
)
def test_a_split_file_that_contradicts_the_annotations_is_refused(tmp_path, row, what):
    obygaze_file(tmp_path, obygaze_row(1))
    split_file(tmp_path, "balanced_level/02_HN_S.csv", row)
    with pytest.raises(ManifestError, match=what):
        import_obygaze12(tmp_path, tmp_path)


def test_split_files_that_are_missing_are_named(tmp_path):
    obygaze_file(tmp_path, obygaze_row(1), obygaze_row(2))
    split_file(tmp_path, "movieset/HN_S.csv", "tt1-002;1;['Clothes'];11")
    imported = import_obygaze12(tmp_path, tmp_path)
    assert [clip.extras.get("fold_movieset_hn_s") for clip in imported.manifest] == ["", "11"]
    assert "no balanced_level/02_EN_S.csv: no column fold_en_s" in imported.notices
    assert "fold_movieset_hn_s: the folds of 1 clip" in imported.notices


def test_a_folder_without_annotations_is_refused(tmp_path):
    with pytest.raises(ManifestError, match=r"no ObyGaze12_thresh_02\.csv in this folder"):
        import_obygaze12(tmp_path, tmp_path)


def test_lists_are_read_and_never_run():
    assert text_list("['a', ' b']") == ("a", " b")
    assert concept_list("['']", builtin_codebook("obygaze12")) == ()
    for cell in ("open('x')", "('a',)", "['a'] * 9", "", "[" * 10_000):
        with pytest.raises(ManifestError):
            text_list(cell)


# MObyGaze


def moby_row(
    index=0, start="24", end="47", rate="24.0", label="Hard Negative", concepts="['Clothing']", by="ann1"
):
    return f"0;id_{index};1;{by};{label};{concepts};[' a ', ''];{start};{end};tt9;Nine;{rate};so they say;1;2"


def test_frames_become_seconds_with_the_last_frame_inside(tmp_path):
    imported = import_mobygaze(moby_file(tmp_path, moby_row(0), moby_row(1, "48", "71")), tmp_path)
    first, second = imported.manifest
    assert (first.clip_id, first.movie, first.annotator) == ("tt9-ann1-0000", "tt9", "ann1")
    assert (first.start_s, first.end_s, second.start_s) == (1.0, 2.0, 2.0)
    assert (first.level, first.concepts) == ("HN", ("Clothing",))
    assert first.extras["comment"] == "a"
    assert first.extras["end_frame"] == "47"
    assert imported.notices == ("left out 4 columns: movie_id, subtitle, start_clip, end_clip",)


def test_a_films_video_is_found_by_its_imdb_id(tmp_path):
    path = moby_file(tmp_path, moby_row())
    (tmp_path / "films").mkdir()
    missing = import_mobygaze(path, tmp_path, tmp_path / "films")
    assert missing.notices[-1] == f"no video in {tmp_path / 'films'} for 1 film: tt9"
    (tmp_path / "films" / "tt9.mkv").touch()
    assert import_mobygaze(path, tmp_path, tmp_path / "films").manifest.clips[0].video == "films/tt9.mkv"
    (tmp_path / "films" / "tt9.mp4").touch()
    with pytest.raises(ManifestError, match="both could be the film 'tt9'"):
        import_mobygaze(path, tmp_path, tmp_path / "films")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (moby_row(1, start="-3"), "line 3, column start_frame: '-3' is not a whole number"),
        (moby_row(1, start="50"), "line 3, column end_frame: 47 is before start_frame 50"),
        (moby_row(1, rate="0"), "line 3, column framerate: '0' is not a positive number"),
        (moby_row(1, label="Maybe"), "line 3, column label: unknown level 'Maybe'"),
        (moby_row(1, by=""), "line 3, column annotator: is empty"),
        (moby_row(0), "line 3, column clip_index: clip 'tt9-ann1-0000' is already on line 2"),
    ],
)
def test_a_broken_segment_is_refused_with_its_line(tmp_path, row, what):
    with pytest.raises(ManifestError, match=what):
        import_mobygaze(moby_file(tmp_path, moby_row(0), row), tmp_path)


def test_the_real_mobygaze_has_6072_segments_that_tile_its_films(shared_data, tmp_path):
    imported = import_mobygaze(shared_data / "mobygaze", tmp_path)
    manifest = imported.manifest
    assert (len(manifest), len(manifest.movies)) == (6072, 20)
    assert "1 segment names a concept more than once: counted once" in imported.notices
    for movie in manifest.movies:
        for annotator in ("annotator1", "annotator2"):
            own = [clip for clip in manifest if (clip.movie, clip.annotator) == (movie, annotator)]
            assert own[0].start_s == 0
            assert sum(clip.duration_s for clip in own) == pytest.approx(
                max(clip.end_s for clip in own), abs=1
            )
    # Sleepless in Seattle runs 105 minutes; in the file's start_clip and end_clip it would be 157.
    assert max(clip.end_s for clip in manifest if clip.movie == "tt0108160") / 60 == pytest.approx(105, abs=1)


# A folder


@pytest.fixture
def films(tmp_path):
    folder = tmp_path / "films"
    videos = ["one.mp4", "two/a.MKV", "two/deep/b.avi"]
    for name in (*videos, ".hidden.mp4", "two/.cache/c.mp4", "two/notes.txt", "README"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_every_video_below_a_folder_becomes_a_clip(films, tmp_path):
    imported = import_folder(films, tmp_path)
    assert [(clip.clip_id, clip.movie, clip.video) for clip in imported.manifest] == [
        ("one", "one", "films/one.mp4"),
        ("two-a", "two", "films/two/a.MKV"),
        ("two-deep-b", "two", "films/two/deep/b.avi"),
    ]
    assert imported.notices == (
        "left out 2 files that are no video by name: 1 without suffix, 1 .txt",
        "left out 2 hidden files or folders",
    )


@pytest.mark.parametrize("twin", ["one.mkv", "two-a.mp4"])
def test_files_that_would_share_an_id_are_both_named(films, tmp_path, twin):
    (films / twin).touch()
    with pytest.raises(ManifestError, match=r"films/.* and .*films/.*: both would be clip"):
        import_folder(films, tmp_path)


def test_a_name_that_is_no_clip_id_is_refused_with_the_file(films, tmp_path):
    (films / "bad\nname.mp4").touch()
    with pytest.raises(ManifestError, match="cannot be printed; rename it") as caught:
        import_folder(films, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_without_videos_and_what_is_no_folder_are_refused(films, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError, match="no video below this folder"):
        import_folder(tmp_path / "empty", tmp_path)
    with pytest.raises(ManifestError, match="is a file"):
        import_folder(films / "one.mp4", tmp_path)
    with pytest.raises(ManifestError, match="does not exist"):
        import_folder(tmp_path / "nowhere", tmp_path)


def test_a_table_of_no_spans_is_refused(films, tmp_path):
    (tmp_path / "spans.csv").write_text("video,start_s,end_s\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"spans.csv: names no clip"):
        import_folder(films, tmp_path, tmp_path / "spans.csv")


def test_a_manifest_in_place_of_spans_is_refused_with_what_to_do(films, tmp_path):
    manifest = tmp_path / "films.csv"
    write_manifest(import_folder(films, tmp_path).manifest, manifest)
    with pytest.raises(ManifestError, match=r"films.csv: is a manifest already .*'obygaze extract' as it is"):
        import_folder(films, tmp_path, manifest)
    with pytest.raises(ManifestError, match=r"films.csv: is a file, .*with --spans .*films.csv"):
        import_folder(manifest, tmp_path)


@pytest.mark.parametrize("header", ["video,start_s,end_s", "clip_id,video,start_s,end_s,level"])
def test_spans_in_place_of_a_manifest_are_refused_with_the_command(tmp_path, header):
    (tmp_path / "spans.csv").write_text(f"{header}\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"is a table of spans, .*import folder FOLDER --spans "):
        read_manifest(tmp_path / "spans.csv")


def test_spans_of_films_become_clips_with_the_labels_that_come_along(films, tmp_path):
    spans = tmp_path / "spans.csv"
    spans.write_text(
        "video,start_s,end_s,clip_id,movie,level,concepts,note\n"
        "two/a.MKV,0,12.5,,,Sure,Clothes;Look,x\n"
        "two/a.MKV,12.5,20,scene-2,film,,,\n"
        "gone.mp4,,,,,HN,,\n",
        encoding="utf-8",
    )
    imported = import_folder(films, tmp_path, spans)
    assert imported.manifest.clips == (
        Clip(
            "two-a-0.0-12.5",
            "two",
            "films/two/a.MKV",
            0,
            12.5,
            "S",
            ("Look", "Clothing"),
            "",
            {"note": "x"},
        ),
        Clip("scene-2", "film", "films/two/a.MKV", 12.5, 20, extras={"note": ""}),
        Clip("gone", "gone", "films/gone.mp4", level="HN", extras={"note": ""}),
    )
    assert imported.notices[-3:] == (
        "read 'Clothes' as Clothing (1 row), 'Sure' as S (1 row)",
        f"1 of 2 named videos is missing on disk: {films / 'gone.mp4'}",
        "left out 2 videos that spans.csv does not name",
    )


@pytest.mark.parametrize(
    ("text", "rate", "expected"),
    [
        ("90.5", None, 90.5),
        ("01:30.5", None, 90.5),
        ("90:00", None, 5400),
        ("1:02:03.25", None, 3723.25),
        ("00:01:30:12", "24", 90.5),
        ("01:00:00:00", "23.976", 3603.6),  # counts 24 a second, and a second lasts 1.001 s
        ("00:10:00;00", "29.97", 17982 * 1001 / 30000),  # drop frame: 18 numbers are left out by then
        ("01:00:00;00", "59.94", 215784 * 1001 / 60000),
        ("", None, None),
    ],
)
def test_times_are_read_as_film_people_write_them(text, rate, expected):
    assert time_code(text, rate and frame_rate(rate)) == (expected and pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize(
    ("text", "rate", "message"),
    [
        ("00:01:30:12", None, "'00:01:30:12' ends in frames; give their rate, as in --rate 25"),
        ("00:01:30:25", "25", "is no time code hh:mm:ss:ff at 25 frames per second"),
        ("00:75:00", None, "'00:75:00' is no time: expected seconds, hh:mm:ss.ms"),
        ("1:2:3:4:5", "25", "is no time"),
    ],
)
def test_times_that_are_none_are_refused(text, rate, message):
    with pytest.raises(ManifestError, match=message):
        time_code(text, rate and frame_rate(rate))


@pytest.mark.parametrize("text", ["0", "x", "1/0", "nan", "5000"])
def test_a_rate_is_a_number_of_frames_per_second(text):
    with pytest.raises(ManifestError, match=f"rate '{text}': expected frames per second"):
        frame_rate(text)


def test_spans_of_excel_have_semicolons_decimal_commas_and_time_codes(films, tmp_path):
    spans = tmp_path / "spans.csv"
    spans.write_text(
        "video;start_s;end_s;level;concepts\r\n"
        'one.mp4;0,5;00:01:30,5;S;"Body;Look"\r\n'
        "one.mp4;00:02:00:12;00:02:30:00;EN;\r\n",
        encoding="utf-8-sig",
    )
    clips = import_folder(films, tmp_path, spans, rate=frame_rate("24")).manifest.clips
    assert [(clip.start_s, clip.end_s) for clip in clips] == [(0.5, 90.5), (120.5, 150.0)]
    assert set(clips[0].concepts) == {"Body", "Look"}
    assert clips[0].clip_id == "one-0.5-90.5"


def test_spans_may_name_videos_by_absolute_paths(films, tmp_path):
    spans = tmp_path / "spans.csv"
    spans.write_text(f"video,start_s,end_s\n{films / 'two' / 'a.MKV'},1,2\n", encoding="utf-8")
    imported = import_folder(films, tmp_path, spans)
    assert [(clip.clip_id, clip.movie, clip.video) for clip in imported.manifest] == [
        ("a-1.0-2.0", "a", "films/two/a.MKV")
    ]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("one.mp4,3,2", "line 3, column end_s: .*2.0 is not after start_s 3.0"),
        ("one.mp4,x,2", "line 3, column start_s: 'x' is not a finite number"),
        ("one.mp4,1,", "line 3, column end_s: .*give both ends"),
        (",1,2", "line 3, column video: is empty"),
        (".,1,2", "line 3"),
        ("one.mp4,0,1", "line 3, column clip_id: clip 'one-0.0-1.0' is already on line 2"),
    ],
)
def test_a_wrong_span_is_refused_with_its_line(films, tmp_path, row, what):
    spans = tmp_path / "spans.csv"
    spans.write_text(f"video,start_s,end_s\none.mp4,0,1\n{row}\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=what):
        import_folder(films, tmp_path, spans)


def test_the_same_folder_gives_the_same_bytes(films, tmp_path):
    digests = {import_folder(films, Path(tmp_path)).manifest.digest() for _ in range(2)}
    assert len(digests) == 1


# A folder of images


@pytest.fixture
def stills(tmp_path):
    folder = tmp_path / "stills"
    for name in ("one.png", "two/a.JPG", "two/deep/b.webp", "c.tiff", "film.mp4", "notes.txt", ".d.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_every_image_below_a_folder_becomes_a_clip_without_a_span(stills, tmp_path):
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


def test_a_folder_of_videos_leaves_images_out_and_counts_them(stills, tmp_path):
    imported = import_folder(stills, tmp_path)
    assert [clip.clip_id for clip in imported.manifest] == ["film"]
    assert "5 files that are no video by name" in imported.notices[0]


def test_images_that_would_share_an_id_are_both_named(stills, tmp_path):
    (stills / "one.jpg").touch()
    with pytest.raises(ManifestError, match=r"one\.jpg and .*one\.png: both would be clip 'one'"):
        import_images(stills, tmp_path)


def test_a_folder_without_images_and_what_is_no_folder_are_refused(films, tmp_path):
    with pytest.raises(ManifestError, match=r"no image below this folder \(looked for \.bmp"):
        import_images(films, tmp_path)
    with pytest.raises(ManifestError, match="does not exist, and a folder of images was expected"):
        import_images(tmp_path / "nowhere", tmp_path)
