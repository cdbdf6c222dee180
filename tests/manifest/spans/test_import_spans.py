# ruff: noqa: E501 - rows of files are kept as tools write them
"""Spans of every tool's files become clips; each record is used, left out and said, or refused."""

import json
import re
import unicodedata
from fractions import Fraction
from pathlib import PurePosixPath

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, codebook_of_text, import_spans, load_codebook
from obygaze_features.manifest.importers.overlaps import overlapping_levels
from tests.command import obygaze
from tests.manifest.spans.files import EXAMPLES, alignable_annotation, eaf, ref_annotation, sheet, tier

SLOTS = {"t1": 1000, "t2": 5000, "t3": 7000, "t4": 9000}
LEVEL = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))


@pytest.fixture
def films(tmp_path):
    """A folder with the videos a.mp4 and b.mp4."""
    (tmp_path / "films").mkdir()
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / "films" / name).touch()
    return tmp_path / "films"


@pytest.fixture
def import_file(tmp_path):
    """Return a function that imports a text or bytes as a file of this name.

    It returns (movie, start, end, level, concepts) of each clip, and the account.
    """

    def import_file(content, name="f.txt", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        imported = import_spans([path], tmp_path, **options)
        (account,) = imported.accounts
        assert account.seen == account.used + len(account.left_out)
        assert imported.notices[0] == account.line()
        return [(c.movie, c.start_s, c.end_s, c.level, c.concepts) for c in imported.manifest], account

    return import_file


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_kind_is_recognised_by_its_content_and_read(import_file, kind):
    """The suffix .x says nothing, and the user need not name the kind, but may.

    An example is a file of a tool, with the spans that it has and the reasons why records are left out.
    """
    example = EXAMPLES[kind]
    for kind_by_user in ("", kind):
        clips, account = import_file(example.content, "tt0000042.x", kind=kind_by_user, **example.options)
        assert account.kind == kind
        expected_clips = [(example.movie, *span) for span in example.spans]
        assert clips == expected_clips
        assert sorted(reason for _, reason in account.left_out) == sorted(example.left_out)


@pytest.mark.parametrize("rate", [None, Fraction(25)])
def test_frames_of_vian_are_of_24_a_second(import_file, rate):
    """VIAN always counts 24 frames a second, whatever rate the user gives.

    So 1 s and 12 frames are 1.5 s, and 5 s and 6 frames are 5.25 s.
    """
    table = "movie,segmentation_name,start_ts,end_ts\na,Main,00:00:01:12,00:00:05:06\n"

    ((_, start_s, end_s, _, _),), _ = import_file(table, rate=rate)

    assert (start_s, end_s) == (1.5, 5.25)


# --- ELAN
# ---------------------------------------------------------------------------
def read_elan(import_file, *tiers, slots=None, header="", **options):
    """Import a document of ELAN of film tt1, with these tiers of annotator AB: no more is known of them.

    It returns (start, end, level, concepts) of each clip, and the account. The time slots t1 to t4 are at 1,
    5, 7 and 9 s unless `slots` gives others, {slot: milliseconds}.
    """
    options = {"movie": "tt1", "annotator": "AB"} | options
    clips, account = import_file(eaf(slots or SLOTS, "".join(tiers), header), "film.eaf", **options)
    return [clip[1:] for clip in clips], account


def media(url, origin_ms, kind="video"):
    """Write that a document is of a medium, and begins at this time of it."""
    return f'<MEDIA_DESCRIPTOR MEDIA_URL="file:///{url}" MIME_TYPE="{kind}/x" TIME_ORIGIN="{origin_ms}"/>'


@pytest.mark.parametrize(
    ("media_of_document", "movie"),
    [
        (media("film.mp4", origin_ms=2000), "tt1"),
        (media("film.mp4", origin_ms=2000) + media("sound.wav", origin_ms=500, kind="audio"), "tt1"),
        (media("film.mp4", origin_ms=2000) + media("film.wav", origin_ms=500, kind="audio"), "film"),
    ],
    ids=["a video", "a video and sound", "a video and sound of its name"],
)
def test_the_offset_of_the_video_moves_all_times(import_file, media_of_document, movie):
    """A document of ELAN has the level S from t1 to t2, 1 to 5 s of the document, and names its media.

    Of each medium it says where in it the document begins, TIME_ORIGIN in milliseconds: 2000 in the video,
    and 500 in the sound of another recorder. The film is the video, so S is from 3 to 7 s of the film.
    """
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    times_in_document_ms = {"t1": 1000, "t2": 5000}

    clips, _ = read_elan(
        import_file, level, slots=times_in_document_ms, header=media_of_document, movie=movie
    )

    ((start_s, end_s, level_of_clip, _),) = clips
    assert start_s == 1.0 + 2.0
    assert end_s == 5.0 + 2.0
    assert level_of_clip == "S"


def test_of_two_videos_the_offset_of_the_one_named_like_the_film_counts(import_file):
    """A document of ELAN has S from 1 to 5 s. It begins at 2000 ms of tt1.mp4, and with other.mp4.

    The film is tt1, so S is from 3 to 7 s of it.
    """
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    slots = {"t1": 1000, "t2": 5000}
    two_videos = media("tt1.mp4", origin_ms=2000) + media("other.mp4", origin_ms=0)

    clips, _ = read_elan(import_file, level, slots=slots, header=two_videos, movie="tt1")

    assert clips == [(1.0 + 2.0, 5.0 + 2.0, "S", ())]


def test_two_videos_with_different_offsets_are_refused_where_neither_is_named_like_the_film(import_file):
    """A document of ELAN names two videos: its time 0 is at 2000 ms of tt1.mp4, and at 0 of other.mp4.

    Times are those of the video that is named like the film. The film is tt2, so it can be neither, and the
    error asks for the film by --movie.
    """
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    two_videos = media("tt1.mp4", origin_ms=2000) + media("other.mp4", origin_ms=0)
    with pytest.raises(ManifestError, match=r"film.eaf.*--movie"):
        read_elan(import_file, level, header=two_videos, movie="tt2")


@pytest.mark.parametrize("place", ['MEDIA_URL="file:///C:/f/m%20x.mp4"', 'RELATIVE_MEDIA_URL="./m x.mp4"'])
def test_a_document_names_its_film_by_any_place_of_the_media(import_file, place):
    """A document of ELAN names its film "m x" by a URL, in which %20 is a blank, or by a relative path."""
    document = eaf(SLOTS, LEVEL, f'<MEDIA_DESCRIPTOR {place} MIME_TYPE="video/mp4"/>')

    clips, _ = import_file(document, annotator="AB")

    assert [movie for movie, *_ in clips] == ["m x"]


def test_an_old_document_names_its_film_by_its_media_file(import_file):
    """Old versions of ELAN wrote one attribute MEDIA_FILE, which is empty in newer documents."""
    document = eaf(SLOTS, LEVEL).replace('MEDIA_FILE=""', 'MEDIA_FILE="m x.mpg"')

    clips, _ = import_file(document, annotator="AB")

    assert [movie for movie, *_ in clips] == ["m x"]


REFERRING = 'PARENT_REF="human: level"'
"""The attribute of a tier whose annotations refer to those of the tier of levels."""
LEVEL_BY_AB = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"), 'ANNOTATOR="AB"')


def test_concepts_that_refer_to_a_level_are_kept(import_file):
    """S (a1) is from t1 to t2, 1 to 5 s. Body and Look refer to it, so they have its times."""
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    body_and_look = ref_annotation("a2", "a1", "Body") + ref_annotation("a3", "a1", "Look")
    concepts = tier("human: concepts", body_and_look, REFERRING)

    clips, _ = read_elan(import_file, level, concepts)

    assert clips == [(1.0, 5.0, "S", ("Look", "Body"))]


def test_concepts_that_refer_to_a_level_are_kept_from_all_tiers(import_file):
    """S (a1) is from t1 to t2, 1 to 5 s. Body refers to it, and so does Clothes, on a tier of CD."""
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    concepts = tier("human: concepts", ref_annotation("a2", "a1", "Body"), REFERRING)
    concepts_by_cd = tier("human: concepts@CD", ref_annotation("a4", "a1", "Clothes"), REFERRING)

    clips, _ = read_elan(import_file, level, concepts, concepts_by_cd)

    assert clips == [(1.0, 5.0, "S", ("Body", "Clothing"))]


@pytest.mark.parametrize("level_tier", [LEVEL, LEVEL_BY_AB], ids=["of nobody", "of AB"])
def test_concepts_at_the_times_of_a_level_are_kept(import_file, level_tier):
    """On a tier of levels is S, and on a tier of concepts are Body and Look, all from 1 to 5 s.

    They have the same times, so they are one clip, whether or not the level's tier is signed by AB.
    """
    body_and_look = alignable_annotation("a2", "t1", "t2", "Body") + alignable_annotation(
        "a3", "t1", "t2", "Look"
    )

    clips, _ = read_elan(import_file, level_tier, tier("human: concepts", body_and_look))

    assert clips == [(1.0, 5.0, "S", ("Look", "Body"))]


def test_concepts_of_another_annotator_than_their_levels_are_noted(import_file):
    """The level S is on a tier signed AB. The concept Clothes, on a tier of CD, refers to it.

    So a clip has the level of one annotator and a concept of another, which is noted.
    """
    level_by_ab = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"), 'ANNOTATOR="AB"')
    clothes_by_cd = tier("human: concepts@CD", ref_annotation("a4", "a1", "Clothes"), REFERRING)

    _, account = read_elan(import_file, level_by_ab, clothes_by_cd)

    assert any("signed CD" in note for note in account.notes)


def test_slots_without_times_are_spread_evenly_between_those_that_have_some(import_file):
    """S, EN and HN follow each other from t1, at 1 s, to t4, at 7 s. t2 and t3 have no time.

    So each of the three lasts a third of the 6 s.
    """
    slots = {"t1": 1000, "t2": None, "t3": None, "t4": 7000}
    levels = (
        alignable_annotation("a1", "t1", "t2", "S")
        + alignable_annotation("a2", "t2", "t3", "EN")
        + alignable_annotation("a3", "t3", "t4", "HN")
    )

    clips, _ = read_elan(import_file, tier("human: level", levels), slots=slots)

    assert clips == [(1.0, 3.0, "S", ()), (3.0, 5.0, "EN", ()), (5.0, 7.0, "HN", ())]


def test_an_annotation_of_elan_whose_end_has_no_time_is_refused(import_file):
    """In ELAN, annotations begin and end at time slots. S (a1) ends at the slot t2, which has no time.

    ELAN spreads slots without a time between the slots around them. But no annotation begins at t2, so that
    no later slot follows, and nothing tells when a1 ends. The message names the annotation.
    """
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    slots = {"t1": 1000, "t2": None}
    with pytest.raises(ManifestError, match=r"film.eaf.*a1"):
        read_elan(import_file, level, slots=slots)


def test_time_slots_without_a_time_are_spread_evenly_between_those_that_have_one_or_got_one(import_file):
    """Annotations of ELAN last from one time slot to another, and some slots have no time.

    t1 is at 1 s and t4 at 7 s; t2 and t3 have no time. On the tier of scenes, t2 lies between t1 and t4:
    halfway, at 4 s. On that of levels, t3 lies between t1 and t2: halfway between 1 and the 4 s that t2 got,
    at 2.5 s.
    """
    slots = {"t1": 1000, "t2": None, "t3": None, "t4": 7000}
    scenes = tier(
        "scene", alignable_annotation("a3", "t1", "t2", "x") + alignable_annotation("a4", "t2", "t4", "x")
    )
    levels = tier(
        "human: level",
        alignable_annotation("a1", "t1", "t3", "S") + alignable_annotation("a2", "t3", "t2", "EN"),
    )

    clips, _ = read_elan(import_file, levels, scenes, slots=slots)

    assert clips == [(1.0, 2.5, "S", ()), (2.5, 4.0, "EN", ())]


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ("1000.5", "'1000.5' is no whole"),
        (-1, "'-1' is no whole"),
        ("", "it has no time"),
    ],
)
def test_a_time_that_cannot_be_read_is_refused_by_file_and_annotation(import_file, start, reason):
    """Times are whole numbers of milliseconds from 0 on. The level, a1, begins at t1."""
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    with pytest.raises(ManifestError, match=rf"film.eaf.*a1.*{reason}"):
        read_elan(import_file, level, slots={"t1": start, "t2": 5})


def test_an_unreadable_time_on_an_unread_tier_is_no_error(import_file):
    """The tier "words" holds no labels, so that the time "later" of its one annotation does not matter."""
    level = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    words = tier("words", alignable_annotation("b1", "t9", "t2", "hello"))

    clips, account = read_elan(import_file, level, words, slots={"t1": 1000, "t2": 5000, "t9": "later"})

    assert clips == [(1.0, 5.0, "S", ())]
    assert any("'words' (1)" in note for note in account.notes)  # the tier, and its number of annotations


@pytest.mark.parametrize("name", ["human:level", "Human: level", "human: level ", "HUMAN:  LEVEL@AB"])
def test_a_tier_is_found_whatever_its_blanks_and_case(import_file, name):
    """The tier of levels is called "human: level", and here spelled otherwise. S is from 1 to 5 s."""
    level = tier(name, alignable_annotation("a1", "t1", "t2", "S"))

    clips, _ = read_elan(import_file, level)

    assert clips == [(1.0, 5.0, "S", ())]


LEVEL_ON_A_COPIED_TIER = tier("human: level-cp", alignable_annotation("a1", "t1", "t2", "S"))
"""The level S on a tier that ELAN made as a copy of our tier "human: level"."""


def test_a_tier_almost_named_like_one_of_ours_is_not_read_but_noted(import_file):
    """ELAN copied a tier "human: level", with the level S, to "human: level-cp", which is none of ours."""
    clips, account = read_elan(import_file, LEVEL_ON_A_COPIED_TIER)

    assert clips == []
    assert any("did you mean 'human: level'" in note for note in account.notes)


def test_a_tier_of_any_name_is_read_where_the_user_says_what_it_holds(import_file):
    """The tier "human: level-cp" has the level S from 1 to 5 s, and the user says that it holds levels."""
    clips, _ = read_elan(import_file, LEVEL_ON_A_COPIED_TIER, tiers={"human: level-cp": "levels"})

    assert clips == [(1.0, 5.0, "S", ())]


def test_a_tier_that_the_user_names_must_be_there(import_file):
    """The document has one tier, "human: level-cp". The user says what "gaze" holds."""
    with pytest.raises(ManifestError, match="no tier"):
        read_elan(import_file, LEVEL_ON_A_COPIED_TIER, tiers={"gaze": "levels"})


def test_a_tier_of_a_model_is_refused_where_the_person_says_that_it_holds_levels(import_file):
    """Tiers whose names begin with "obygaze:" are what a model says of the film, and no labels of people."""
    of_model = tier("obygaze: segments", alignable_annotation("a1", "t1", "t2", "S"))
    with pytest.raises(ManifestError, match="model"):
        read_elan(import_file, of_model, tiers={"obygaze: segments": "levels"})


@pytest.mark.parametrize(
    ("name", "is_of_model"),
    [("obygaze: levels", True), ("OBYGAZE :levels", True), ("obygaze12", False), ("Obygaze level", False)],
)
def test_a_tier_of_elan_is_a_models_by_the_rule_of_all_formats(import_files, name, is_of_model):
    """A model's tiers are called "obygaze:", in any case; a person may name theirs after the codebook."""
    marks = alignable_annotation("a1", "t1", "t2", "S") + alignable_annotation("a2", "t2", "t3", "EN")

    clips, _ = import_files({"a.eaf": eaf(SLOTS, tier(name, marks))}, movie="a", annotator="AB")

    assert [clip.level for clip in clips] == ([] if is_of_model else ["S", "EN"])
    assert all("seen_score" not in clip.extras for clip in clips)


def test_two_tiers_whose_names_differ_in_a_blank_are_refused(import_file):
    """The tiers "human: level" and "human:level" would be one."""
    first = tier("human: level", alignable_annotation("a1", "t1", "t2", "S"))
    second = tier("human:level", alignable_annotation("a2", "t3", "t4", "S"))
    with pytest.raises(ManifestError, match="rename"):
        read_elan(import_file, first, second)


# --- tables
# ---------------------------------------------------------------------------
PLACES = (
    "C:\\films\\{}.mp4", "https://x.example/{}.mp4?t=1", "file:///films/{}.mp4", "~/films/{}.mp4", "{}.mp4",
    "\\\\server\\films\\{}.mp4", "/mnt/films/{}.mp4", "%USERPROFILE%\\films\\{}.mp4", "$HOME/films/{}.mp4",
    "file:///C:%5Cfilms%5C{}.mp4",
)  # fmt: skip
"""Places of a file as systems write them, with {} for its name without suffix."""


@pytest.mark.parametrize("path_of_film", PLACES)
def test_paths_of_every_system_name_their_films(import_file, films, path_of_film):
    r"""A table names its films by paths of another computer, such as C:\films\a.mp4 or /mnt/films/a.mp4.

    The videos here are a.mp4, b.mp4 and _a.mp4. Films are found by the names of their files, and a.mp4 is not
    taken for _a.mp4, though _ counts as a blank where no file has exactly the name.
    """
    (films / "_a.mp4").touch()
    path_of_a = path_of_film.format("a")
    path_of_b = path_of_film.format("b")
    table = f"video,start_s,end_s,level\n{path_of_a},1,2,S\n{path_of_b},1,2,S\n"

    clips, _ = import_file(table, "spans.csv", videos=films)

    assert [movie for movie, *_ in clips] == ["a", "b"]


@pytest.mark.parametrize(
    ("place", "video"),
    [("~/films/a.mp4", "films/a.mp4"), ("C:\\f\\b.mp4", "b.mp4"), ("~no-such-user/b.mp4", "b.mp4")],
    ids=["in the user's home", "on another system", "in the home of nobody here"],
)
def test_a_video_of_another_computer_is_looked_for_beside_the_table(
    import_files, tmp_path, monkeypatch, place, video
):
    """A table names a video, and no folder of videos is given: it should be in the folder of the table.

    The table lies in the user's home, so that ~/films is a folder beside it. Of a path of another system, or
    in the home of a user who is unknown here, only the file's name is of use. The clip's video is the path
    from the table on, whether or not there is such a file.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    (clip,), _ = import_files({"s.csv": f"video,start_s,end_s\n{place},1,2\n"})

    assert clip.video == video


@pytest.mark.parametrize("movie", ["Am\u00e9lie", "Am\u0435lie"], ids=["accent", "Cyrillic e"])
def test_a_film_has_the_video_whose_name_is_one_with_its_own(import_files, films, movie):
    """The folder of videos has Amelie.mp4, and a table has a film of that name with other letters.

    One is written with an accent, the other with a Cyrillic letter that looks like e. Names that differ so are
    one name everywhere (a manifest of both would be refused), so the film has this video.
    """
    (films / "Amelie.mp4").touch()

    (clip,), notices = import_files({"s.csv": f"movie,start_s,end_s,level\n{movie},1,2,S\n"}, videos=films)

    assert PurePosixPath(clip.video).name == "Amelie.mp4"
    assert not any("missing" in notice for notice in notices)


COMPOSED = "D\u00e9shabill\u00e9"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
"""The word Déshabillé with é as one sign, and with e and an accent of its own."""


def codebook_with(folder, *concepts):
    """Write and load a codebook of these concepts."""
    text = 'name = "v"\nversion = "1"\n[[levels]]\nname = "calm"\n'
    text += "".join(f'[[concepts]]\nname = "{concept}"\nvisual = true\n' for concept in concepts)
    (folder / "v.toml").write_text(text, encoding="utf-8")
    return load_codebook(folder / "v.toml")


def test_accents_of_labels_have_one_form(import_file, films, tmp_path):
    """The codebook has the é of its concept as one sign. The first row writes e with an accent of its own."""
    table = f"video,start_s,end_s,concepts\na.mp4,1,2,{DECOMPOSED}\na.mp4,3,4,{COMPOSED}\n"

    clips, _ = import_file(table, "spans.csv", videos=films, codebook=codebook_with(tmp_path, COMPOSED))

    assert [concepts for *_, concepts in clips] == [(COMPOSED,), (COMPOSED,)]


def test_accents_of_annotators_have_one_form(import_files, films):
    """Léa is written with é as one sign, and with e, an accent of its own, and a blank behind it."""
    rows = "a.mp4,1,2,S,L\u00e9a\na.mp4,3,4,S,Le\u0301a \n"

    clips, _ = import_files({"spans.csv": f"video,start_s,end_s,level,annotator\n{rows}"}, videos=films)

    assert [clip.annotator for clip in clips] == ["L\u00e9a", "L\u00e9a"]


def test_two_concepts_that_differ_in_the_form_of_an_accent_are_refused(tmp_path):
    """A codebook has a concept with é as one sign, and one with e and an accent of its own.

    They look the same, so that nobody could tell which one a label means.
    """
    with pytest.raises(ManifestError):
        codebook_with(tmp_path, COMPOSED, DECOMPOSED)


def test_a_film_beside_the_table_is_found_in_either_form_of_unicode(import_files, tmp_path):
    """A video Léa.mp4 lies beside a table. The disk has e and an accent of its own, the table one sign."""
    (tmp_path / "Le\u0301a.mp4").touch()

    (clip,), notices = import_files({"s.csv": "video,start_s,end_s\nL\u00e9a.mp4,1,5\n"})

    assert "missing" not in notices
    assert (tmp_path / clip.video).is_file()


HEADINGS = ["video", "start_s", "end_s", "level"]


def days(seconds):
    """Give seconds as a workbook keeps a time, as a share of a day."""
    return seconds / 86_400


def test_times_of_a_workbook_are_seconds_or_clocks(import_file, films):
    """A cell that is formatted as a time is a share of a day: 0:01:30 is 90 s of 86,400."""
    in_seconds = ["a.mp4", 1.5, 2.5, "S"]
    as_clock = ["b.mp4", ("time", days(seconds=90)), ("time", days(seconds=95)), "EN"]
    workbook = sheet([HEADINGS, in_seconds, as_clock])

    clips, _ = import_file(workbook, "spans.xlsx", videos=films)

    assert clips == [("a", 1.5, 2.5, "S", ()), ("b", 90.0, 95.0, "EN", ())]


def test_times_of_a_workbook_that_are_shares_of_a_day_but_not_shown_as_clocks_are_refused(import_file, films):
    """A workbook keeps a time as a share of a day. This one's cells are formatted as plain numbers.

    Read as seconds, 90 / 86,400 to 95 / 86,400 would be a span of less than a thousandth of a second.
    """
    plain_numbers = ["a.mp4", days(seconds=90), days(seconds=95), "S"]
    workbook = sheet([HEADINGS, plain_numbers])

    with pytest.raises(ManifestError, match="day"):
        import_file(workbook, "spans.xlsx", videos=films)


def test_a_workbook_with_a_cell_in_the_last_possible_row_is_refused(import_file, films):
    """XFD1048576 is the last cell of a sheet: with it the table has a million rows, which nobody means."""
    cell_far_below = {"XFD1048576": 1}
    workbook = sheet([["a"]], cell_far_below)

    with pytest.raises(ManifestError, match="rows"):
        import_file(workbook, "spans.xlsx", videos=films)


# --- labels of other tools
# ---------------------------------------------------------------------------
def rttm(*turns):
    """Write turns of speech of film tt1, (start, end, name of the speaker), as RTTM."""
    lines = ""
    for start, end, name in turns:
        lines += f"SPEAKER tt1 1 {start} {end - start} <NA> <NA> {name} <NA> <NA>\n"
    return lines


def test_names_of_speakers_are_labels_where_the_person_says_so(import_file):
    """RTTM names the speakers of turns of speech, and the person says that these names are labels.

    A level and a concept at the same times are of one clip, and so are two concepts. Ann is no label.
    """
    turns = rttm((1, 5, "Sure"), (1, 5, "body"), (2, 3, "Ann"), (7, 9, "Look"), (7, 9, "body"))

    clips, _ = import_file(turns, tiers={"speaker": "labels"})

    assert clips == [
        ("tt1", 1.0, 5.0, "S", ("Body",)),
        ("tt1", 2.0, 3.0, None, ()),
        ("tt1", 7.0, 9.0, None, ("Look", "Body")),
    ]


def test_names_of_speakers_are_no_labels_by_themselves(import_file):
    """Sure and body, which could be a level and a concept, are names of speakers here."""
    turns = rttm((1, 5, "Sure"), (1, 5, "body"), (2, 3, "Ann"), (7, 9, "Look"), (7, 9, "body"))

    clips, _ = import_file(turns)

    assert {(level, concepts) for *_, level, concepts in clips} == {(None, ())}


def test_a_name_that_is_no_level_is_refused_where_speakers_are_levels(import_file):
    """The user says that names of speakers are levels. Ann is none."""
    with pytest.raises(ManifestError, match=r"f.txt.*line 1.*'Ann'"):
        import_file(rttm((2, 3, "Ann")), tiers={"speaker": "levels"})


CALM_IS_BOTH = """
name = "v"
version = "1"
[[levels]]
name = "calm"
title = "at;rest"
[[concepts]]
name = "Calm"
"""


@pytest.fixture
def codebook_where_calm_is_both(tmp_path):
    """A codebook with a level "calm", whose title is "at;rest", and a concept "Calm"."""
    (tmp_path / "v.toml").write_text(CALM_IS_BOTH)
    return load_codebook(tmp_path / "v.toml")


def test_a_word_that_is_both_level_and_concept_is_the_level(import_file, codebook_where_calm_is_both):
    """On a tier of labels, the word "calm" may be either. The choice is noted, with the option to change it."""
    clips, account = import_file(
        rttm((1, 5, "calm")), codebook=codebook_where_calm_is_both, tiers={"speaker": "labels"}
    )

    assert clips == [("tt1", 1.0, 5.0, "calm", ())]
    assert any("'calm'" in note and "--tier" in note for note in account.notes)


def test_a_word_that_is_both_level_and_concept_is_the_concept_on_a_tier_of_concepts(
    import_file, codebook_where_calm_is_both
):
    """The codebook has a level "calm" and a concept "Calm". A turn says "calm" on a tier of concepts.

    So it is the concept. There is no choice to make, and nothing to note.
    """
    clips, account = import_file(
        rttm((1, 5, "calm")), codebook=codebook_where_calm_is_both, tiers={"speaker": "concepts"}
    )

    assert clips == [("tt1", 1.0, 5.0, None, ("Calm",))]
    assert not account.notes


def test_a_title_with_a_semicolon_is_one_label(import_file, codebook_where_calm_is_both):
    """The level "calm" has the title "at;rest". Elsewhere a semicolon stands between two labels."""
    clips, _ = import_file(
        rttm((1, 5, "At;rest")), codebook=codebook_where_calm_is_both, tiers={"speaker": "labels"}
    )
    assert clips == [("tt1", 1.0, 5.0, "calm", ())]


def test_times_in_frames_need_their_rate(import_file):
    """CVAT counts frames and does not write how many are shown in a second. The option --rate says it."""
    content = EXAMPLES["cvat"].content
    with pytest.raises(ManifestError, match="--rate"):
        import_file(content, kind="cvat")


def test_a_span_ends_with_its_film_where_the_films_length_is_known(import_file, films):
    """The film is 10 s long. A span until 12 s is cut at 10 s, and one from 30 s on is left out."""
    table = "video,start_s,end_s\na.mp4,1,2\na.mp4,9,12\na.mp4,30,31\n"

    clips, account = import_file(table, "s.csv", videos=films, length_of=lambda _: 10.0)

    assert [(start_s, end_s) for _, start_s, end_s, *_ in clips] == [(1.0, 2.0), (9.0, 10.0)]
    assert (account.seen, account.used) == (3, 2)
    assert [place for place, _ in account.left_out] == ["line 4"]
    assert any("line 3: cut at the end" in note for note in account.notes)
    assert json.dumps(account.record()), "the account can be written as JSON"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kind": "elan"}, "expected .*eaf"), ({"tiers": {"gaze": "level"}}, "expected .*levels")],
    ids=["a kind", "a role"],
)
def test_an_unknown_kind_or_role_is_refused_with_those_that_exist(import_file, options, message):
    """The kind of ELAN is called eaf, and a tier of levels has the role "levels"."""
    with pytest.raises(ManifestError, match=message):
        import_file("", **options)


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("content", ["x", "x\ty\n", "<a/>", "{}", "WEBVTT\n\nx\n"])
def test_a_file_of_another_kind_than_stated_gives_no_clip_or_is_refused_by_its_name(
    import_file, kind, content
):
    """The user says that a file is of some kind, such as `srt`. It has a word, a row, XML, JSON or WebVTT.

    Whether it is refused or read as a file without spans, there must be no clip, and no other error than one
    that names the file.
    """
    try:
        clips, _ = import_file(content, name="f.txt", kind=kind)
    except ManifestError as error:
        assert "f.txt" in str(error)  # noqa: PT017 - a file may be read, as without spans, or refused
    else:
        assert clips == []


@pytest.mark.parametrize("content", [b"", b"<svg/>", b"hello", b"{}", b"\0" * 99, bytes(range(256))])
def test_content_of_no_known_kind_is_refused_by_the_files_name(import_file, content):
    """The file f.txt is empty, a drawing, a word, an empty object of JSON, or bytes that are no text."""
    with pytest.raises(ManifestError, match=r"f.txt"):
        import_file(content, name="f.txt")


BROKEN = {
    "a.eaf": '<?xml version="1.0"?><ANNOTATION_DOCUMENT><TIER></ANNOTATION_DOCUMENT>',
    "a.csv": 'movie,start_s,end_s,level\nm,1,2,"S\n',
    "b.csv": 'movie,start_s,end_s,level\nm,1,2,"S"x\n',
    "c.csv": f'movie,start_s,end_s,level\nm,1,2,"{"x" * 140000}"\n',
    "a.json": '[{"id":1,"annotations":[}]',
    "a.xlsx": "PK\3\4[Content_Types].xml",
    "a.xml": "<?a?><!--a-->" * 40 + "<annotated/>",  # would take years if parts ended anywhere
}


@pytest.mark.parametrize("name", BROKEN)
def test_errors_do_not_quote_the_parsers(import_file, name):
    """A file is broken, and the parser of its kind (XML, JSON, CSV or workbooks) fails with words of its own.

    The error says what is wrong in our words.
    """
    words_of_parsers = "mismatched|unexpected|expected after|limit|Expecting|column 2|calamine|codec"

    with pytest.raises(ManifestError) as error:
        import_file(BROKEN[name], name)

    assert not re.search(words_of_parsers, str(error.value))


@pytest.mark.parametrize("encoding", ["utf-16", "klingon"])
def test_an_encoding_that_is_not_the_file_s_is_refused_in_our_words(import_file, encoding):
    """The file is in Latin-1, and there is no encoding "klingon". Python's errors speak of a codec."""
    content = "1\n00:00:01,000 --> 00:00:02,000\nA\u00e9\n".encode("latin-1")

    with pytest.raises(ManifestError, match=encoding) as error:
        import_file(content, "a.srt", encoding=encoding)

    assert "codec" not in str(error.value)


@pytest.fixture
def turn_without_length(tmp_path):
    """The path of a file of RTTM with one turn of speech, which lasts 0 s."""
    path = tmp_path / "a.rttm"
    path.write_text("SPEAKER f 1 1.5 0.0 <NA> <NA> A <NA> <NA>\n")
    return path


def test_a_file_without_spans_leaves_no_manifest(turn_without_length, tmp_path, capsys):
    """A file of RTTM has one turn of speech, which lasts 0 s, so there is no span to import.

    The command writes no manifest, says so, and ends with the code 3.
    """
    manifest = tmp_path / "a.csv"

    code = obygaze("manifest", "import", "spans", turn_without_length, "--out", manifest)

    assert code == 3
    assert not manifest.exists()
    printed = capsys.readouterr()
    assert printed.out == f"no span to import: {manifest} is not written\n"
    assert "0 of 1 span read (rttm); line 1: it has no length" in printed.err


def test_an_import_without_clips_writes_no_manifest_and_says_so_in_json(
    turn_without_length, tmp_path, capsys
):
    """The file has one turn of speech, which lasts 0 s, and so is left out.

    The command ends with the code 3. Its answer in JSON names no manifest, and counts the one record.
    """
    code = obygaze("manifest", "import", "spans", turn_without_length, "--out", tmp_path / "a.csv", "--json")

    assert code == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["manifest"] is None
    assert answer["clips"] == 0
    assert answer["accounts"][0]["seen"] == 1


def judged_span(level, *, start_s, end_s, by="AB", movie="a", **columns):
    """Make a clip of a span of the film a to which AB, or another annotator, gave this level."""
    name = f"{movie} {by} {level} {start_s}"
    return Clip(name, movie, start_s=start_s, end_s=end_s, level=level, annotator=by, extras=columns)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(judged_span("HN", start_s=10, end_s=20), id="it begins where the first ends"),
        pytest.param(judged_span("S", start_s=5, end_s=20), id="of the same level"),
        pytest.param(judged_span(None, start_s=5, end_s=20), id="of no level"),
        pytest.param(judged_span("HN", start_s=None, end_s=None), id="without times"),
        pytest.param(judged_span("HN", start_s=5, end_s=20, by="CD"), id="by another annotator"),
        pytest.param(judged_span("HN", start_s=5, end_s=20, movie="b"), id="of another film"),
        pytest.param(judged_span("HN", start_s=5, end_s=20, subject="Ann"), id="of another subject"),
        pytest.param(judged_span("HN", start_s=5, end_s=20, observation="2"), id="of another observation"),
        pytest.param(judged_span("HN", start_s=5, end_s=20, prompt="2"), id="by another prompt"),
    ],
)
def test_spans_that_do_not_contradict_each_other_are_no_overlap(other):
    """AB gave the level S to the film a from 0 to 10 s, and the other span is judged by AB too if not stated.

    It is noticed where one annotator gives two levels to the same time of one thing. In each case here one of
    these conditions is not met.
    """
    first_span = judged_span("S", start_s=0, end_s=10)
    assert overlapping_levels([first_span, other]) == []


@pytest.mark.parametrize("seen", ["0", "1"])
def test_windows_of_a_scored_film_may_overlap(seen):
    """Both windows were drawn to be judged one by one, whether or not a score was seen."""
    windows = [
        judged_span("S", start_s=0, end_s=10, draw="random", seen_score=seen),
        judged_span("HN", start_s=5, end_s=15, draw="random", seen_score=seen),
    ]
    assert overlapping_levels(windows) == []


@pytest.mark.parametrize(
    ("spans", "overlaps"),
    [
        pytest.param(
            [judged_span("HN", start_s=9.5, end_s=20), judged_span("S", start_s=0, end_s=10)],
            ["S 0-10 s and HN 9.5-20 s"],
            id="the later one stands first",
        ),
        pytest.param(
            [
                judged_span("HN", start_s=0.5, end_s=1),
                judged_span("S", start_s=0, end_s=10),
                judged_span("EN", start_s=2, end_s=3),
            ],
            ["S 0-10 s and HN 0.5-1 s", "S 0-10 s and EN 2-3 s"],
            id="two within a long one",
        ),
        pytest.param(
            [
                judged_span("S", start_s=0, end_s=10),
                judged_span("HN", start_s=1, end_s=5),
                judged_span("S", start_s=4, end_s=6),
            ],
            ["S 0-10 s and HN 1-5 s", "HN 1-5 s and S 4-6 s"],
            id="one with two others, which have the same level",
        ),
        pytest.param(
            [
                judged_span("S", start_s=0, end_s=3),
                judged_span("S", start_s=1, end_s=9),
                judged_span("HN", start_s=8, end_s=12),
            ],
            ["S 1-9 s and HN 8-12 s"],
            id="of two with the same level, the one that ends last",
        ),
    ],
)
def test_levels_that_overlap_are_counted_and_named(spans, overlaps):
    """AB gave levels to spans of the film a, and in the time that two spans share they differ: S and HN, or EN.

    Only one of two levels can be meant, so the notice says how many spans contradict an earlier one, and
    which.
    """
    (notice,) = overlapping_levels(spans)

    assert notice.startswith(f"{len(overlaps)} span")
    for overlap in overlaps:
        assert f"a by AB: {overlap}" in notice


def test_the_notice_on_levels_that_overlap_names_no_annotator_where_the_spans_name_none():
    """S from 0 to 10 s and HN from 5 to 20 s of the film a overlap, and neither says who gave it."""
    spans_of_nobody = [
        judged_span("S", start_s=0, end_s=10, by=""),
        judged_span("HN", start_s=5, end_s=20, by=""),
    ]

    (notice,) = overlapping_levels(spans_of_nobody)

    assert "(a: S 0-10 s and HN 5-20 s)" in notice


@pytest.mark.parametrize(
    ("name", "usual_name"),
    [
        ("Human: Level,Blind@AB", "human: level, blind@AB"),
        ("human : level, in  sight@AB", "human: level, in sight@AB"),
        ("human\uff1alabels, agreed@AB", "human: labels, agreed@AB"),
    ],
    ids=["case and blanks", "two blanks", "a wide colon"],
)
def test_a_tier_whose_name_was_spelled_in_another_way_still_says_how_people_judged(
    tmp_path, name, usual_name
):
    """A tier of a document of ELAN says in its name that AB judged blindly, in sight, or agreed with others.

    In another spelling of blanks, capitals or the colon it says the same: otherwise what was agreed on, for
    example, would be AB's label.
    """
    clips = []
    for tier_name in (name, usual_name):
        path = tmp_path / "a.eaf"
        path.write_text(eaf(SLOTS, tier(tier_name, alignable_annotation("a1", "t1", "t2", "S"))), "utf-8")
        clips += import_spans([path], tmp_path, movie="a").manifest
    clip, usual_clip = clips

    assert (clip.level, clip.annotator) == ("S", "AB")
    assert clip.extras == usual_clip.extras
    assert clip.extras["how"] in usual_name


@pytest.mark.parametrize("are_in_two_files", [False, True])
def test_concepts_that_were_seen_in_sight_of_a_score_are_in_no_blind_label(import_files, are_in_two_files):
    """AB gave the level of a span blindly, and its concepts in sight of a model's score, on two tiers.

    Joined to one clip, the concepts would seem blind too. So they are a clip of their own, in one file or
    two.
    """
    level = tier("human: level, blind@AB", alignable_annotation("a1", "t1", "t2", "S"))
    concepts = tier("human: concepts, in sight@AB", alignable_annotation("a2", "t1", "t2", "Body"))
    contents = [level, concepts] if are_in_two_files else [level + concepts]
    files = {f"{number}.eaf": eaf(SLOTS, content) for number, content in enumerate(contents)}

    clips, _ = import_files(files, movie="a")

    labels = [(clip.level, clip.concepts, clip.extras["how"]) for clip in clips]
    assert labels == [("S", (), "blind"), (None, ("Body",), "in sight")]


@pytest.mark.parametrize("role", ["levels", "labels"])
@pytest.mark.parametrize(
    "text", ["s", "\uff33", "en", "2.0"], ids=["a small letter", "a wide one", "two", "2.0"]
)
def test_a_tier_of_labels_reads_the_levels_that_a_tier_of_levels_reads(import_files, role, text):
    """The level S may be typed as s, or with a keyboard of East Asia; a level 2 as programs write it."""
    levels = "".join(f'[[levels]]\nname = "{name}"\n' for name in ("EN", "2", "S"))
    codebook = codebook_of_text(f'name = "mine"\nversion = "1"\n{levels}')
    content = eaf(SLOTS, tier("gaze@AB", alignable_annotation("a1", "t1", "t2", text)))

    (clip,), _ = import_files({"a.eaf": content}, movie="a", tiers={"gaze": role}, codebook=codebook)

    assert clip.level == {"s": "S", "\uff33": "S", "en": "EN", "2.0": "2"}[text]


def textgrid_of_ab(tiers):
    """Write a TextGrid of AB with one interval on each tier: {tier: (start, end, text)}."""
    lines = ['"ooTextFile"', '"TextGrid"', f"0 9 <exists> {len(tiers)}"]
    for name, (start, end, text) in tiers.items():
        lines += [f'"IntervalTier" "human: {name}@AB" 0 9 1', f'{start} {end} "{text}"']
    return "\n".join(lines)


LEVEL_OF_FRAMES = {"level": ("0.4166667", "0.8333333", "S")}
"""A level from one frame of 24 a second to another, as Praat writes its times."""


@pytest.mark.parametrize("are_in_two_files", [False, True])
def test_a_span_is_the_same_to_the_millisecond_in_one_file_and_in_two(import_files, are_in_two_files):
    """AB's level is at 0.4166667 to 0.8333333 s, as Praat writes frames, and the concept at 0.417 to 0.833 s.

    To the millisecond both spans are one, so that level and concept are of one clip.
    """
    concepts = {"concepts": ("0.417", "0.833", "Look")}
    contents = [LEVEL_OF_FRAMES, concepts] if are_in_two_files else [LEVEL_OF_FRAMES | concepts]
    files = {f"{n}/m.TextGrid": textgrid_of_ab(tiers) for n, tiers in enumerate(contents)}

    clips, _ = import_files(files)

    assert [(clip.level, clip.concepts) for clip in clips] == [("S", ("Look",))]


def test_two_levels_of_one_span_contradict_each_other_also_if_two_tools_rounded_its_times(refusal_of):
    """AB says S at 0.4166667 to 0.8333333 s in one file, and HN at 0.417 to 0.833 s in the other.

    To the millisecond both spans are one, so that the levels contradict each other: the refusal says that the
    second file has HN where the first one has S.
    """
    sure = {"level": ("0.4166667", "0.8333333", "S")}
    hard_negative = {"level": ("0.417", "0.833", "HN")}
    refusal = refusal_of(
        {"0/m.TextGrid": textgrid_of_ab(sure), "1/m.TextGrid": textgrid_of_ab(hard_negative)}
    )
    assert "HN where" in str(refusal)


@pytest.mark.parametrize("headings", ["movie,start_s,end_s,level", "Film,Anfang,Ende,Stufe"])
def test_the_first_codebook_that_a_table_names_is_the_one_that_others_are_refused_beside(
    refusal_of, headings
):
    """The rows name obygaze12, mobygaze and obygaze12 again, below a manifest's headings or unknown ones.

    In a table with unknown headings, only the rows that name codebooks are looked at for this.
    """
    rows = ["a,0,4,S,obygaze12", "a,5,9,S,mobygaze", "a,10,14,S,obygaze12"]

    refusal = refusal_of({"t.csv": "\n".join([f"{headings},codebook", *rows])})

    assert "of codebook 'mobygaze', and the import uses 'obygaze12'" in str(refusal)
