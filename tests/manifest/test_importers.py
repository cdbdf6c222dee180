"""Published annotations and folders of videos become manifests; nothing is lost without being counted."""

import ast
import json

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, read_manifest, write_manifest
from obygaze_features.manifest.importers.imported import concept_list, text_list
from obygaze_studies.mobygaze import RECORDS, import_mobygaze
from obygaze_studies.obygaze12 import import_obygaze12
from obygaze_studies.obygaze12.printed_values import PUBLISHED
from tests.files import rows_of, written

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
    return written(
        folder / "ObyGaze12_thresh_02.csv", "\r\n".join([OBYGAZE_HEADER, ";" * 10, *rows, ""]).encode()
    )


def split_file(folder, name, *rows):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([";id;label;reason;fold", *(f"0;{row}" for row in rows), ""]), encoding="utf-8")


def moby_file(folder, *rows):
    return written(folder / "mobygaze_dataframe.csv", "\n".join([MOBY_HEADER, *rows, ""]))


# ObyGaze12


def test_a_row_of_obygaze12_becomes_a_clip(tmp_path):
    """Published names of concepts, such as "Type of plan", become those of the codebook, in its order."""
    path = obygaze_file(
        tmp_path, obygaze_row(3, "Hard Neg", "['Speech', ' Exp of  emotion', 'Type of plan']")
    )
    imported = import_obygaze12(path, tmp_path)
    (clip,) = imported.manifest

    assert (clip.clip_id, clip.movie, clip.video, clip.level) == ("tt1-003", "tt1", "tt1_scene_1.avi", "HN")
    assert clip.concepts == ("Type of shot", "Expression of emotion", "Speech")
    assert clip.extras["scene_shots"] == "tt1scene-001.ss-0001.es-0002"
    assert clip.extras["year"] == ""  # Table 3 has no film tt1
    assert imported.notices == ("left out 1 line of empty cells",)


@pytest.fixture(scope="module")
def whole_obygaze12(shared_data, tmp_path_factory):
    """The released annotations of ObyGaze12, imported without a folder of videos at clips/."""
    folder = tmp_path_factory.mktemp("obygaze12")
    return import_obygaze12(shared_data / "obygaze12", folder, videos=folder / "clips")


@pytest.mark.long
def test_the_real_obygaze12_has_1914_clips_and_its_gaps_are_reported(whole_obygaze12):
    """The counts are those of the published table; 75 of its rows name no video, and 1,839 name one."""
    manifest = whole_obygaze12.manifest
    assert len(manifest) == 1914
    assert sum(not clip.video for clip in manifest) == 75
    assert manifest.by_id["tt0108160-003"].video == "clips/tt0108160_scene_3.avi"
    juno = manifest.by_id["tt0467406-001"].extras
    assert (juno["year"], juno["genres"]) == ("2007", "drama;comedy")
    for notice in (
        "left out 1 line of empty cells",
        "75 clips have no video_name: no video is known for them",
        f"0 of 1,839 named videos are in {manifest.root / 'clips'}: there is no such folder",
    ):
        assert notice in whole_obygaze12.notices


@pytest.mark.parametrize("column", PUBLISHED["splits"])
def test_a_split_file_becomes_a_column_of_folds_in_the_same_order(whole_obygaze12, shared_data, column):
    """In the same order: the manifest alone then gives the folds of the original code."""
    split_file = shared_data / "obygaze12" / PUBLISHED["splits"][column]["path"]
    released = [(row["id"], row["fold"]) for row in rows_of(split_file, ";")]
    imported = [(clip.clip_id, clip.extras[column]) for clip in whole_obygaze12.manifest]
    assert [(clip_id, fold) for clip_id, fold in imported if fold] == released


def test_the_real_obygaze12_is_read_back_as_written(whole_obygaze12):
    manifest = whole_obygaze12.manifest
    path = manifest.root / "obygaze12.csv"
    write_manifest(manifest, path)
    assert read_manifest(path).clips == manifest.clips


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (obygaze_row(label="Surely"), "line 4, column label"),
        (obygaze_row(concepts="__import__('os')"), "line 4, column concepts"),
        (obygaze_row(clip_id="tt2-001"), "line 4, column id"),
        (obygaze_row(9), "line 4, column id"),
        ("0;1;too;short", "line 4"),
    ],
)
def test_a_broken_row_of_obygaze12_is_refused_with_its_line(tmp_path, row, message):
    """Line 1 is the heading, line 2 is empty cells, line 3 is a good row."""
    path = obygaze_file(tmp_path, obygaze_row(9), row)
    with pytest.raises(ManifestError, match=message):
        import_obygaze12(path, tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("tt1-007;Sure;[];0", "line 2, column id"),
        ("tt1-001;Hard Neg;['Clothes'];0", "line 2, column label"),
        ("tt1-001;Sure;['Look'];0", "line 2, column reason"),
        ("tt1-001;Sure;['Clothes'];x", "line 2, column fold"),
    ],
)
def test_a_split_file_that_contradicts_the_annotations_is_refused(tmp_path, row, message):
    """A split names clips with their level and concepts again. Both files must agree."""
    obygaze_file(tmp_path, obygaze_row(1))
    split_file(tmp_path, "balanced_level/02_HN_S.csv", row)
    with pytest.raises(ManifestError, match=message):
        import_obygaze12(tmp_path, tmp_path)


def test_split_files_that_are_missing_are_named(tmp_path):
    obygaze_file(tmp_path, obygaze_row(1), obygaze_row(2))
    split_file(tmp_path, "movieset/HN_S.csv", "tt1-002;1;['Clothes'];11")
    imported = import_obygaze12(tmp_path, tmp_path)
    assert [clip.extras.get("fold_movieset_hn_s") for clip in imported.manifest] == ["", "11"]
    assert "no balanced_level/02_EN_S.csv: no column fold_en_s" in imported.notices
    assert "fold_movieset_hn_s: the folds of 1 clip" in imported.notices


def test_videos_that_are_not_in_their_folder_are_counted(tmp_path):
    """First one of two videos is there, then both."""
    obygaze_file(tmp_path, obygaze_row(1, video="a.avi"), obygaze_row(2, video="b.avi"))
    videos = tmp_path / "clips"
    videos.mkdir()
    (videos / "a.avi").touch()
    notices = import_obygaze12(tmp_path, tmp_path, videos=videos).notices
    assert f"1 of 2 named videos is in {videos}; the first that is not is b.avi" in notices
    (videos / "b.avi").touch()
    notices = import_obygaze12(tmp_path, tmp_path, videos=videos).notices

    assert f"2 of 2 named videos are in {videos}" in notices


def test_lists_are_parsed_and_never_run_as_python():
    """The published tables have Python lists in cells. Evaluating them could run code of a stranger."""
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
    """At 24 frames a second, frames 24 to 47 are shown from 1 s to the end of frame 47, at 2 s.

    The next segment begins there.
    """
    imported = import_mobygaze(moby_file(tmp_path, moby_row(0), moby_row(1, "48", "71")), tmp_path)
    first, second = imported.manifest

    assert (first.clip_id, first.movie, first.annotator) == ("tt9-ann1-0000", "tt9", "ann1")
    assert (first.start_s, first.end_s, second.start_s) == (1.0, 2.0, 2.0)
    assert (first.level, first.concepts) == ("HN", ("Clothing",))
    assert first.extras["comment"] == "a"
    assert first.extras["end_frame"] == "47"
    assert imported.notices == ("left out 3 columns: movie_id, start_clip, end_clip",)


def test_a_films_video_is_found_by_its_imdb_id(tmp_path):
    """A film whose video is missing is named, and one of two videos is refused."""
    segments = moby_file(tmp_path, moby_row())
    videos = tmp_path / "films"
    videos.mkdir()
    notices = import_mobygaze(segments, tmp_path, videos).notices
    assert notices[-1] == f"no video in {videos} for 1 film: tt9"

    (videos / "tt9.mkv").touch()
    (clip,) = import_mobygaze(segments, tmp_path, videos).manifest
    assert clip.video == "films/tt9.mkv"

    (videos / "tt9.mp4").touch()
    with pytest.raises(ManifestError, match="'tt9'"):
        import_mobygaze(segments, tmp_path, videos)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (moby_row(1, start="-3"), "line 3, column start_frame"),
        (moby_row(1, rate="0"), "line 3, column framerate"),
        (moby_row(1, label="Maybe"), "line 3, column label"),
        (moby_row(0), "line 3, column clip_index"),
    ],
)
def test_a_broken_segment_is_refused_with_its_line(tmp_path, row, message):
    with pytest.raises(ManifestError, match=message):
        import_mobygaze(moby_file(tmp_path, moby_row(0), row), tmp_path)


@pytest.fixture(scope="module")
def mobygaze(shared_data):
    """The folder of the released annotations of MObyGaze."""
    return shared_data / "mobygaze"


@pytest.fixture(scope="module")
def record_sets(mobygaze, tmp_path_factory):
    """Each record set of MObyGaze, imported."""
    folder = tmp_path_factory.mktemp("mobygaze")
    return {records: import_mobygaze(mobygaze, folder, records=records) for records in RECORDS}


@pytest.fixture(scope="module")
def rows_of_mobygaze(mobygaze):
    """The rows of MObyGaze's table, read with csv alone, to count them again."""
    return rows_of(mobygaze / "mobygaze_dataframe.csv", ";")


def concepts_in(row):
    """The names of concepts in a row's cell, without blanks around them and without empty ones."""
    return {name.strip() for name in ast.literal_eval(row["concepts"])} - {""}


def has_subtitle(row):
    return bool(row["subtitle"].strip())


def test_the_record_sets_are_named_in_mobygazes_metadata(mobygaze):
    metadata = json.loads((mobygaze / "metadata.json").read_text())
    names = {record["name"] for record in metadata["recordSet"]}
    assert {f"mobygaze-{records}" for records in RECORDS} <= names


@pytest.mark.long  # reads the whole of it
def test_record_sets_hold_the_rows_that_their_columns_say(record_sets, rows_of_mobygaze):
    """The rows of each record set are counted here from the table.

    "speech" has the segments with a subtitle, "vision" those with a visual concept, "EN" those of that level.
    """
    not_visual = {"Speech", "Voice", "Soundtrack", "Narratology"}
    n_rows = {
        "full": len(rows_of_mobygaze),
        "speech": sum(has_subtitle(row) for row in rows_of_mobygaze),
        "vision": sum(bool(concepts_in(row) - not_visual) for row in rows_of_mobygaze),
        "EN": sum(row["label"] == "Easy Negative" for row in rows_of_mobygaze),
    }
    assert {records: len(imported.manifest) for records, imported in record_sets.items()} == n_rows
    assert record_sets["EN"].notices[0] == f"record set mobygaze-EN: {n_rows['EN']:,} of 6,072 segments"
    n_of_speech = sum("Speech" in clip.concepts for clip in record_sets["speech"].manifest)
    assert n_of_speech == sum("Speech" in concepts_in(row) and has_subtitle(row) for row in rows_of_mobygaze)


@pytest.mark.long  # reads the whole of it
def test_segments_of_mobygaze_have_their_subtitles_and_the_facts_of_their_film(record_sets, rows_of_mobygaze):
    """Texts are the subtitles that are not blank."""
    full, speech = record_sets["full"], record_sets["speech"]
    assert len(full.texts) == sum(has_subtitle(row) for row in rows_of_mobygaze)
    assert len(speech.texts) == len(speech.manifest)
    subtitles = dict(full.texts)
    assert subtitles["tt0097576-annotator1-0001"].startswith("Dismount! Herman's horsesick!")
    assert "tt0097576-annotator1-0000" not in subtitles

    facts = {clip.movie: (clip.extras["year"], clip.extras["genres"]) for clip in full.manifest}
    assert len(facts) == 20
    assert facts["tt0097576"] == ("1989", "action;adventure")
    assert all(year and genres for year, genres in facts.values())


def test_the_codebook_has_every_concept_and_instance_of_mobygazes_thesaurus(shared_data):
    """In its words, but for an "etc." and three slips that the codebook corrects."""
    values = json.loads((shared_data / "mobygaze" / "objectification-thesaurus.json").read_text())
    (group,) = values["dictionaries"][0]["values"]
    codebook = builtin_codebook("mobygaze")
    corrected = {"acion": "action", "Discreprency": "Discrepancy", "Voyerism": "Voyeurism"}
    for value in group["values"]:
        words = value["tool-tip"].replace(", etc.", "")
        for wrong, right in corrected.items():
            words = words.replace(wrong, right)
        name = codebook.concept_spelled(value["name"].strip())
        (concept,) = (item for item in codebook.concepts if item.name == name)
        assert [instance.name for instance in concept.instances] == [
            part.strip() for part in words.split(";") if part.strip()
        ], name


@pytest.mark.long
def test_the_real_mobygaze_has_6072_segments_that_tile_its_films(shared_data, tmp_path):
    """Each annotator divided each film from 0 to its end without gaps. So the lengths sum up to the film."""
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
