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


def obygaze_row(clip_id="tt1-001", label="Sure", concepts="[' Clothes']", video="tt1_scene_1.avi"):
    """Write a row of ObyGaze12's table, of a clip of film tt1."""
    return f"0;1;tt1scene-001.ss-0001.es-0002;{label};1.00;{concepts};{clip_id};tt1;x.srt;{video};0"


def obygaze_table(folder, *rows):
    """Write a table like that of ObyGaze12: its heading, a line of empty cells, and rows."""
    lines = [OBYGAZE_HEADER, ";" * 10, *rows, ""]
    return written(folder / "ObyGaze12_thresh_02.csv", "\r\n".join(lines).encode())


def split_file(folder, name, *rows):
    """Write a file that divides clips into folds; a row says id;level;concepts;fold of a clip."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([";id;label;reason;fold", *(f"0;{row}" for row in rows), ""]), encoding="utf-8")


def mobygaze_table(folder, *rows):
    return written(folder / "mobygaze_dataframe.csv", "\n".join([MOBY_HEADER, *rows, ""]))


# ObyGaze12


def test_a_row_of_obygaze12_becomes_a_clip(tmp_path):
    """Published names of concepts, such as "Type of plan", become those of the codebook, in its order.

    The films' years are in Table 3 of the paper, which has no film tt1.
    """
    row = obygaze_row(
        "tt1-003",
        label="Hard Neg",
        concepts="['Speech', ' Exp of  emotion', 'Type of plan']",
        video="tt1_scene_1.avi",
    )

    imported = import_obygaze12(obygaze_table(tmp_path, row), tmp_path)

    (clip,) = imported.manifest
    assert (clip.clip_id, clip.movie, clip.video, clip.level) == ("tt1-003", "tt1", "tt1_scene_1.avi", "HN")
    assert clip.concepts == ("Type of shot", "Expression of emotion", "Speech")
    assert clip.extras["scene_shots"] == "tt1scene-001.ss-0001.es-0002"
    assert clip.extras["year"] == ""


def test_a_line_of_empty_cells_in_obygaze12_is_left_out_and_counted(tmp_path):
    """The released table has such a line below its heading, and so has this one."""
    imported = import_obygaze12(obygaze_table(tmp_path, obygaze_row()), tmp_path)

    assert len(imported.manifest) == 1
    assert imported.notices == ("left out 1 line of empty cells",)


@pytest.fixture(scope="module")
def whole_obygaze12(shared_data, tmp_path_factory):
    """The released annotations of ObyGaze12, imported without a folder of videos at clips/."""
    folder = tmp_path_factory.mktemp("obygaze12")
    return import_obygaze12(shared_data / "obygaze12", folder, videos=folder / "clips")


@pytest.mark.long
def test_the_real_obygaze12_has_1914_clips(whole_obygaze12):
    """The published table has 1914 rows with an id. The scene tt0467406-001 is of Juno, a film of 2007."""
    manifest = whole_obygaze12.manifest

    assert len(manifest) == 1914
    assert manifest.by_id["tt0108160-003"].video == "clips/tt0108160_scene_3.avi"
    clip_of_juno = manifest.by_id["tt0467406-001"]
    assert clip_of_juno.extras["year"] == "2007"
    assert clip_of_juno.extras["genres"] == "drama;comedy"


@pytest.mark.long
def test_what_the_real_obygaze12_lacks_is_reported(whole_obygaze12):
    """75 rows of the published table name no video, and 1914 - 75 = 1,839 name one. No video is here."""
    manifest = whole_obygaze12.manifest

    assert sum(clip.video == "" for clip in manifest) == 75
    notices = whole_obygaze12.notices
    assert "left out 1 line of empty cells" in notices
    assert "75 clips have no video_name: no video is known for them" in notices
    folder = manifest.root / "clips"
    assert f"0 of 1,839 named videos are in {folder}: there is no such folder" in notices


@pytest.mark.parametrize("column", PUBLISHED["splits"])
def test_a_split_file_becomes_a_column_of_folds_in_the_same_order(whole_obygaze12, shared_data, column):
    """ObyGaze12 was published with split files: lists of clips with their folds, whose order its code uses.

    Imported, each split is a column of the manifest, empty for clips that are in no fold. The others stand in
    the order of the file, with the same folds.
    """
    split_file = shared_data / "obygaze12" / PUBLISHED["splits"][column]["path"]
    published_folds = [(row["id"], row["fold"]) for row in rows_of(split_file, delimiter=";")]

    imported_folds = []
    for clip in whole_obygaze12.manifest:
        fold = clip.extras[column]
        if fold:
            imported_folds.append((clip.clip_id, fold))

    assert imported_folds == published_folds


def test_the_real_obygaze12_is_read_back_as_written(whole_obygaze12):
    """The manifest has the 1914 clips of the released annotations, with their columns of folds and facts."""
    manifest = whole_obygaze12.manifest
    path = manifest.root / "obygaze12.csv"

    write_manifest(manifest, path)

    assert read_manifest(path).clips == manifest.clips


@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param(obygaze_row(label="Surely"), "line 4, column label", id="no level"),
        pytest.param(obygaze_row(concepts="__import__('os')"), "line 4, column concepts", id="a program"),
        pytest.param(obygaze_row("tt2-001"), "line 4, column id", id="an id of another film"),
        pytest.param(obygaze_row("tt1-009"), "line 4, column id", id="the id of line 3"),
        pytest.param("0;1;too;short", "line 4", id="4 cells of 11"),
    ],
)
def test_a_broken_row_of_obygaze12_is_refused_with_its_line(tmp_path, row, message):
    """Line 1 is the heading, line 2 is empty cells, line 3 is a good row, of clip tt1-009."""
    path = obygaze_table(tmp_path, obygaze_row("tt1-009"), row)
    with pytest.raises(ManifestError, match=message):
        import_obygaze12(path, tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param("tt1-007;Sure;[];0", "line 2, column id", id="a clip that the annotations do not have"),
        pytest.param("tt1-001;Hard Neg;['Clothes'];0", "line 2, column label", id="another level"),
        pytest.param("tt1-001;Sure;['Look'];0", "line 2, column reason", id="another concept"),
        pytest.param("tt1-001;Sure;['Clothes'];x", "line 2, column fold", id="a fold that is no number"),
    ],
)
def test_a_split_file_that_contradicts_the_annotations_is_refused(tmp_path, row, message):
    """A split names clips with their level and concepts again, and both files must agree.

    The annotations have one clip, tt1-001, which is Sure and has Clothes.
    """
    obygaze_table(tmp_path, obygaze_row("tt1-001", label="Sure", concepts="['Clothes']"))
    split_file(tmp_path, "balanced_level/02_HN_S.csv", row)
    with pytest.raises(ManifestError, match=message):
        import_obygaze12(tmp_path, tmp_path)


def test_a_clip_that_no_split_file_names_has_no_fold(tmp_path):
    """ObyGaze12 has two clips here, and a split file puts the second into fold 11.

    The first has an empty cell in the column of the split, which a notice says.
    """
    obygaze_table(tmp_path, obygaze_row("tt1-001"), obygaze_row("tt1-002"))
    split_file(tmp_path, "movieset/HN_S.csv", "tt1-002;1;['Clothes'];11")

    imported = import_obygaze12(tmp_path, tmp_path)

    first, second = imported.manifest
    assert first.extras["fold_movieset_hn_s"] == ""
    assert second.extras["fold_movieset_hn_s"] == "11"
    assert "fold_movieset_hn_s: the folds of 1 clip" in imported.notices


def test_split_files_that_are_missing_are_named(tmp_path):
    """ObyGaze12 is released with files that divide its clips into folds. None is here."""
    obygaze_table(tmp_path, obygaze_row())

    imported = import_obygaze12(tmp_path, tmp_path)

    assert "no balanced_level/02_EN_S.csv: no column fold_en_s" in imported.notices


@pytest.mark.parametrize(
    ("files", "notice"),
    [
        (["a.avi"], "1 of 2 named videos is in {}; the first that is not is b.avi"),
        (["a.avi", "b.avi"], "2 of 2 named videos are in {}"),
    ],
)
def test_videos_that_are_not_in_their_folder_are_counted(tmp_path, files, notice):
    """The table names the videos a.avi and b.avi. The folder has the first, or both."""
    obygaze_table(tmp_path, obygaze_row("tt1-001", video="a.avi"), obygaze_row("tt1-002", video="b.avi"))
    folder = tmp_path / "clips"
    folder.mkdir()
    for name in files:
        (folder / name).touch()

    imported = import_obygaze12(tmp_path, tmp_path, videos=folder)

    assert notice.format(folder) in imported.notices


def test_python_lists_in_cells_are_parsed():
    """The published tables have Python lists of texts in cells."""
    assert text_list("['a', ' b']") == ("a", " b")
    assert concept_list("['']", builtin_codebook("obygaze12")) == ()


@pytest.mark.parametrize(
    "cell",
    ["open('x')", "('a',)", "['a'] * 9", "", "[" * 10_000],
    ids=["a call", "a tuple", "a product", "nothing", "10,000 brackets"],
)
def test_other_python_in_cells_is_refused_and_never_run(cell):
    """Evaluating cells could run code of a stranger."""
    with pytest.raises(ManifestError):
        text_list(cell)


# MObyGaze


def mobygaze_row(index=0, first_frame="24", last_frame="47", frames_per_second="24.0", label="Hard Negative"):
    """Write a row of MObyGaze's table: a segment of film tt9 by ann1, with the concept Clothing."""
    return (
        f"0;id_{index};1;ann1;{label};['Clothing'];[' a ', ''];{first_frame};{last_frame};tt9;Nine;"
        f"{frames_per_second};so they say;1;2"
    )


def test_a_row_of_mobygaze_becomes_a_clip(tmp_path):
    """A table of MObyGaze has one segment, of film tt9 by ann1: frames 24 to 47, Hard Negative, Clothing.

    Its comments are a list of two, of which one is empty.
    """
    row = mobygaze_row(index=0, last_frame="47", label="Hard Negative")

    imported = import_mobygaze(mobygaze_table(tmp_path, row), tmp_path)

    (clip,) = imported.manifest
    assert (clip.clip_id, clip.movie, clip.annotator) == ("tt9-ann1-0000", "tt9", "ann1")
    assert (clip.level, clip.concepts) == ("HN", ("Clothing",))
    assert clip.extras["comment"] == "a"
    assert clip.extras["end_frame"] == "47"
    assert imported.notices == ("left out 3 columns: movie_id, start_clip, end_clip",)


def test_frames_become_seconds_with_the_last_frame_inside(tmp_path):
    """At 24 frames a second, frames 24 to 47 are shown from 1 s to the end of frame 47, at 2 s.

    The next segment, of frames 48 to 71, begins there.
    """
    first_row = mobygaze_row(index=0, first_frame="24", last_frame="47", frames_per_second="24.0")
    second_row = mobygaze_row(index=1, first_frame="48", last_frame="71", frames_per_second="24.0")

    imported = import_mobygaze(mobygaze_table(tmp_path, first_row, second_row), tmp_path)

    first, second = imported.manifest
    assert (first.start_s, first.end_s) == (1.0, 2.0)
    assert (second.start_s, second.end_s) == (2.0, 3.0)


@pytest.fixture
def empty_folder(tmp_path):
    """The folder `films`, with nothing in it."""
    folder = tmp_path / "films"
    folder.mkdir()
    return folder


def test_a_films_video_is_found_by_its_imdb_id(tmp_path, empty_folder):
    """The table has a segment of film tt9, and the folder a video tt9.mkv."""
    segments = mobygaze_table(tmp_path, mobygaze_row())
    (empty_folder / "tt9.mkv").touch()

    (clip,) = import_mobygaze(segments, tmp_path, empty_folder).manifest

    assert clip.video == "films/tt9.mkv"


def test_a_film_without_a_video_is_named(tmp_path, empty_folder):
    """The table has a segment of film tt9, and the folder of videos is empty."""
    segments = mobygaze_table(tmp_path, mobygaze_row())

    notices = import_mobygaze(segments, tmp_path, empty_folder).notices

    assert notices[-1] == f"no video in {empty_folder} for 1 film: tt9"


def test_a_film_of_which_there_are_two_videos_is_refused(tmp_path, empty_folder):
    """The table has a segment of film tt9, and nothing tells which of two videos it is of."""
    segments = mobygaze_table(tmp_path, mobygaze_row())
    (empty_folder / "tt9.mkv").touch()
    (empty_folder / "tt9.mp4").touch()
    with pytest.raises(ManifestError, match="'tt9'"):
        import_mobygaze(segments, tmp_path, empty_folder)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param(
            mobygaze_row(index=1, first_frame="-3"), "line 3, column start_frame", id="before the film"
        ),
        pytest.param(
            mobygaze_row(index=1, frames_per_second="0"), "line 3, column framerate", id="no frames"
        ),
        pytest.param(mobygaze_row(index=1, label="Maybe"), "line 3, column label", id="no level"),
        pytest.param(mobygaze_row(index=0), "line 3, column clip_index", id="the index of line 2"),
    ],
)
def test_a_broken_segment_is_refused_with_its_line(tmp_path, row, message):
    """A table of MObyGaze has a heading, a good segment of index 0 on line 2, and a broken one on line 3.

    Its first frame lies before the film, a second has no frames, its label is no level, or its index is that
    of line 2.
    """
    good_row = mobygaze_row(index=0)
    table = mobygaze_table(tmp_path, good_row, row)
    with pytest.raises(ManifestError, match=message):
        import_mobygaze(table, tmp_path)


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
    """MObyGaze is released in several record sets: the full one, and parts of it."""
    metadata = json.loads((mobygaze / "metadata.json").read_text())
    released_names = {record["name"] for record in metadata["recordSet"]}
    assert {f"mobygaze-{records}" for records in RECORDS} <= released_names


@pytest.mark.long  # reads the whole of it
def test_record_sets_hold_the_rows_that_their_columns_say(record_sets, rows_of_mobygaze):
    """MObyGaze, 6072 segments, can be imported in part, as a record set. Rows are counted here in its table.

    "speech" has the segments with a subtitle, "vision" those with a visual concept, and "EN" those of this
    level.
    """
    not_visual = {"Speech", "Voice", "Soundtrack", "Narratology"}
    n_with_subtitle = 0
    n_with_visual_concept = 0
    n_easy_negative = 0
    for row in rows_of_mobygaze:
        if has_subtitle(row):
            n_with_subtitle += 1
        if concepts_in(row) - not_visual:
            n_with_visual_concept += 1
        if row["label"] == "Easy Negative":
            n_easy_negative += 1

    assert {records: len(imported.manifest) for records, imported in record_sets.items()} == {
        "full": len(rows_of_mobygaze),
        "speech": n_with_subtitle,
        "vision": n_with_visual_concept,
        "EN": n_easy_negative,
    }
    assert record_sets["EN"].notices[0] == f"record set mobygaze-EN: {n_easy_negative:,} of 6,072 segments"


@pytest.mark.long  # reads the whole of it
def test_the_record_set_of_speech_keeps_the_concepts_of_its_rows(record_sets, rows_of_mobygaze):
    """As many of its segments have the concept Speech as rows with a subtitle in the table."""
    rows_with_subtitle = [row for row in rows_of_mobygaze if has_subtitle(row)]
    n_rows = sum("Speech" in concepts_in(row) for row in rows_with_subtitle)

    n_clips = sum("Speech" in clip.concepts for clip in record_sets["speech"].manifest)

    assert n_clips == n_rows


@pytest.mark.long  # reads the whole of it
def test_segments_of_mobygaze_have_their_subtitles(record_sets, rows_of_mobygaze):
    """Texts are the subtitles that are not blank: (clip, its subtitle). "full" has all segments of MObyGaze.

    All segments of the record set "speech" have a subtitle.
    """
    full = record_sets["full"]
    speech = record_sets["speech"]

    assert len(full.texts) == sum(has_subtitle(row) for row in rows_of_mobygaze)
    assert len(speech.texts) == len(speech.manifest)
    subtitles = dict(full.texts)
    assert subtitles["tt0097576-annotator1-0001"].startswith("Dismount! Herman's horsesick!")
    assert "tt0097576-annotator1-0000" not in subtitles


@pytest.mark.long  # reads the whole of it
def test_segments_of_mobygaze_have_the_year_and_the_genres_of_their_film(record_sets):
    """There are 20 films; tt0097576 is Indiana Jones and the Last Crusade, of 1989."""
    facts = {}
    for clip in record_sets["full"].manifest:
        facts[clip.movie] = (clip.extras["year"], clip.extras["genres"])

    assert len(facts) == 20
    assert facts["tt0097576"] == ("1989", "action;adventure")
    for year, genres in facts.values():
        assert year != ""
        assert genres != ""


def test_the_codebook_has_every_concept_and_instance_of_mobygazes_thesaurus(shared_data):
    """The thesaurus that MObyGaze published lists the instances of each concept in a text, its tool-tip.

    Semicolons stand between them. The codebook "mobygaze" has them in the same words and order, but for an
    "etc." and three misspelt words, which it corrects.
    """
    thesaurus = json.loads((shared_data / "mobygaze" / "objectification-thesaurus.json").read_text())
    (group,) = thesaurus["dictionaries"][0]["values"]
    codebook = builtin_codebook("mobygaze")
    concept_of_name = {concept.name: concept for concept in codebook.concepts}
    corrections = {"acion": "action", "Discreprency": "Discrepancy", "Voyerism": "Voyeurism"}

    for entry in group["values"]:
        tool_tip = entry["tool-tip"].replace(", etc.", "")
        for wrong, right in corrections.items():
            tool_tip = tool_tip.replace(wrong, right)
        published_instances = [part.strip() for part in tool_tip.split(";") if part.strip()]
        name = codebook.concept_spelled(entry["name"].strip())
        concept = concept_of_name[name]
        assert [instance.name for instance in concept.instances] == published_instances, name


@pytest.fixture(scope="module")
def whole_mobygaze(record_sets):
    """All segments of MObyGaze, imported."""
    return record_sets["full"]


@pytest.mark.long
def test_the_real_mobygaze_has_6072_segments_of_20_films(whole_mobygaze):
    """The numbers are those of the released table."""
    assert len(whole_mobygaze.manifest) == 6072
    assert len(whole_mobygaze.manifest.movies) == 20
    assert "1 segment names a concept more than once: counted once" in whole_mobygaze.notices


@pytest.mark.long
def test_segments_of_the_real_mobygaze_tile_its_films(whole_mobygaze):
    """Each of two annotators divided each film from 0 to its end without gaps.

    So the lengths of their segments sum up to the end of the last, but for a second of rounding.
    """
    manifest = whole_mobygaze.manifest
    for movie in manifest.movies:
        for annotator in ("annotator1", "annotator2"):
            segments = [clip for clip in manifest if (clip.movie, clip.annotator) == (movie, annotator)]
            assert segments[0].start_s == 0
            last_end_s = max(segment.end_s for segment in segments)
            total_s = sum(segment.duration_s for segment in segments)
            assert total_s == pytest.approx(last_end_s, abs=1)


@pytest.mark.long
def test_times_of_the_real_mobygaze_are_counted_by_its_frames(whole_mobygaze):
    """Sleepless in Seattle runs 105 minutes; by the table's start_clip and end_clip it would be 157."""
    ends_s = [clip.end_s for clip in whole_mobygaze.manifest if clip.movie == "tt0108160"]
    assert max(ends_s) / 60 == pytest.approx(105, abs=1)
