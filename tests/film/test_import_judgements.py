"""Judgements of several people become one manifest; what is left out is counted."""

from functools import partial

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, import_spans, read_manifest, write_manifest

import_judgements = partial(import_spans, kind="judgements")

HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score,judgement\n"


def write_table(folder, name, *lines, head=HEAD):
    """Write a table of judgements with these lines below its head."""
    path = folder / name
    path.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def files_of_two(tmp_path):
    """Two tables of judgements of a film called =tt1: by AB, and by a person called =CD().

    AB judged 0 to 5 s twice, and gave no level to 5 to 9 s. =CD() wrote levels and concepts in small letters.
    Names that begin with = have a quote before them, so that no spreadsheet computes them.
    """
    by_ab = write_table(
        tmp_path, "one.csv",
        "a,'=tt1,,0,5,S,,AB,1,agree,",
        "b,'=tt1,,5,9,,,AB,1,unsure,",
        "c,'=tt1,,0,5,HN,Body,AB,1,disagree,dark",
        head=HEAD.replace("judgement\n", "judgement,comment\n"),
    )  # fmt: skip
    by_cd = write_table(
        tmp_path, "two.csv",
        "a,'=tt1,,0,5,sure,body;look,'=CD(),0,",
        "b,'=tt1,,5,9,EN,,'=CD(),0,",
    )  # fmt: skip
    return [by_ab, by_cd]


def test_of_two_judgements_of_a_span_in_a_table_the_last_is_imported(files_of_two, tmp_path):
    """AB judged 0 to 5 s twice: S, and then HN with the concept Body and the comment "dark"."""
    by_ab, *_by_cd = import_judgements(files_of_two, tmp_path).manifest

    assert by_ab.annotator == "AB"
    assert by_ab.level == "HN"
    assert by_ab.concepts == ("Body",)
    assert by_ab.extras == {"seen_score": "1", "judgement": "disagree", "comment": "dark"}


def test_levels_concepts_and_names_of_a_table_are_imported_as_the_codebook_and_the_film_spell_them(
    files_of_two, tmp_path
):
    """CD's first row has the level "sure", which is S, and the concepts "body;look".

    Its film is '=tt1 and its annotator '=CD(): with the quote that keeps a spreadsheet from computing what
    begins with =, and without which they are imported. Concepts get the order of the codebook.
    """
    _by_ab, first_by_cd, _second_by_cd = import_judgements(files_of_two, tmp_path).manifest

    assert first_by_cd.movie == "=tt1"
    assert first_by_cd.annotator == "=CD()"
    assert first_by_cd.level == "S"
    assert first_by_cd.concepts == ("Look", "Body")


def test_imported_judgements_are_a_manifest_with_ids_of_film_and_annotator(files_of_two, tmp_path):
    """AB's table and another person's both have rows a and b, so that these ids cannot stay.

    Three judgements are imported and get new ids. The film is called =tt1, of which an id has no =.
    """
    tables_of_both = files_of_two

    manifest = import_judgements(tables_of_both, tmp_path).manifest
    write_manifest(manifest, tmp_path / "m.csv")

    ids = [clip.clip_id for clip in read_manifest(tmp_path / "m.csv")]
    assert ids[0] == "tt1-AB-0001"
    assert len(set(ids)) == 3


def test_each_file_has_an_account_of_what_was_read_and_left_out(files_of_two, tmp_path):
    """AB's table has three rows: that in line 3 has no level, and the last one judges the first span again.

    The table of the other person has two good rows.
    """
    tables_of_both = files_of_two

    imported = import_judgements(tables_of_both, tmp_path)

    ab_account, cd_account = imported.accounts

    assert (ab_account.seen, ab_account.used) == (3, 2)
    assert ab_account.left_out == [("line 3", "without a level")]
    assert any("judged again" in note for note in ab_account.notes)
    assert (cd_account.seen, cd_account.used) == (2, 2)
    assert len(imported.notices) == 2  # one a table


@pytest.mark.parametrize("start", ["-0", "0.0", "00:00:00", "0e0"])
def test_a_span_judged_again_is_one_however_its_times_are_written(tmp_path, start):
    """AB calls 0 to 5 s S, and then EN. The start 0 is the same time however it is written: EN stands."""
    path = write_table(
        tmp_path, "one.csv", "a,tt1,,0,5,S,,AB,1,agree", f"b,tt1,,{start},5.00,EN,,AB,1,disagree"
    )
    (judgement,) = import_judgements([path], tmp_path).manifest
    assert judgement.level == "EN"


def test_notices_on_files_of_one_name_name_their_folders(tmp_path):
    """The folder of each scored film has a file called judgements.csv."""
    paths = []
    for movie in ("tt1", "tt2"):
        (tmp_path / movie).mkdir()
        paths.append(write_table(tmp_path / movie, "judgements.csv", f"a,{movie},,0,5,S,,AB,1,agree"))

    first_notice, second_notice, *_ = import_judgements(paths, tmp_path).notices

    assert first_notice.startswith("judgements.csv of tt1: ")
    assert second_notice.startswith("judgements.csv of tt2: ")


@pytest.mark.parametrize(
    ("line", "place"),
    [
        pytest.param("a,tt1,,0,5,S,,,1,agree", "line 2, column annotator", id="no annotator"),
        pytest.param("a,tt1,,0,5,S,,AB,,agree", "line 2, column seen_score", id="not said whether in sight"),
        pytest.param("a,tt1,,0,5,X,,AB,1,agree", "line 2, column level", id="an unknown level"),
        pytest.param("a,tt1,,,,S,,AB,1,agree", "column start_s", id="no times"),
        pytest.param("a,tt1,,,5,S,,AB,1,agree", "column start_s", id="no start"),
        pytest.param("a,tt1,,0,,S,,AB,1,agree", "column end_s", id="no end"),
        pytest.param("a,tt1,,5,0,S,,AB,1,agree", "line 2, column end_s", id="the end before the start"),
    ],
)
def test_a_line_that_is_no_judgement_is_refused_and_its_column_named(tmp_path, line, place):
    """Columns: clip_id, movie, video, start_s, end_s, level, concepts, annotator, seen_score, judgement."""
    with pytest.raises(ManifestError, match=place):
        import_judgements([write_table(tmp_path, "j.csv", line)], tmp_path)


@pytest.mark.parametrize(
    "head",
    ["start,end\n", HEAD.replace("seen_score", "seen")],
    ids=["two other columns", "seen_score has another name"],
)
def test_a_table_without_the_columns_of_judgements_is_refused(tmp_path, head):
    """The message names the command that writes tables which can be imported, `film next`."""
    with pytest.raises(ManifestError, match="`film next` wrote"):
        import_judgements([write_table(tmp_path, "j.csv", "1,2", head=head)], tmp_path)


def test_a_judgement_without_a_film_is_of_the_given_one(tmp_path):
    """The first line names neither film nor video, the second both: both videos are found in their folder.

    Columns: clip_id, movie, video, start_s, end_s, level, concepts, annotator, seen_score, judgement.
    """
    videos = tmp_path / "films"
    videos.mkdir()
    (videos / "tt1.mp4").touch()
    (videos / "tt2.mp4").touch()
    without_film = "a,,,0,5,S,,AB,0,"
    of_tt2 = "b,tt2,tt2.mp4,0,5,S,,AB,0,"
    path = write_table(tmp_path, "j.csv", without_film, of_tt2)

    imported = import_judgements([path], tmp_path, movie="tt1", videos=videos)

    first, second = imported.manifest
    assert (first.movie, first.video) == ("tt1", "films/tt1.mp4")
    assert (second.movie, second.video) == ("tt2", "films/tt2.mp4")
    assert len(imported.notices) == 1  # on what was read of the table


@pytest.fixture
def table_of_another_codebook(tmp_path):
    """A table with one judgement, "violent", by a codebook called "mine"."""
    head = HEAD.replace("annotator,", "annotator,codebook,")
    return write_table(tmp_path, "j.csv", "a,tt1,,0,5,violent,,AB,mine,1,agree", head=head)


def test_judgements_by_an_unknown_codebook_are_refused(table_of_another_codebook, tmp_path):
    """The levels of a codebook of the user's own, "mine", are not known: the message asks for its file."""
    with pytest.raises(ManifestError, match=r"'mine'.*--codebook"):
        import_judgements([table_of_another_codebook], tmp_path)


def test_judgements_are_imported_by_a_given_codebook_and_a_notice_names_theirs(
    table_of_another_codebook, tmp_path
):
    """The given codebook has the level "violent"; that it is not the table's, "mine", is said."""
    with_violent = builtin_codebook("mediaeval15")
    imported = import_judgements([table_of_another_codebook], tmp_path, codebook=with_violent)
    (judgement,) = imported.manifest
    assert judgement.level == "violent"
    assert "of codebook 'mine'" in imported.notices[0]


HEAD_OF_THE_DESK = HEAD.replace("judgement\n", "judgement,draw,place,judged_at\n")

LOOK_AT_10_00 = "1,tt1,,1,2,S,Look,AB,1,,,,2026-01-01T10:00:00+00:00"
"""AB decided at 10:00:00 that 1 to 2 s are S, with the concept Look."""


def decision_at(clock, *, clip_id="2", start_s=2, seen_score=1, place=""):
    """Write a line of a table of the desk: AB calls a second S, with the concept Look, on 1 January 2026."""
    end_s = start_s + 1
    judged_at = f"2026-01-01T{clock}+00:00"
    return f"{clip_id},tt1,,{start_s},{end_s},S,Look,AB,{seen_score},,,{place},{judged_at}"


def lines_that_may_copy_concepts(folder, *lines):
    """Import a table of the desk; return the lines of which a notice says that they may copy concepts.

    "line 3" is the second of `lines`, as line 1 is the table's head.
    """
    path = write_table(folder, "judgements.csv", *lines, head=HEAD_OF_THE_DESK)
    imported = import_judgements([path], folder)
    assert len(imported.manifest) == len(lines)  # no line is left out
    named = []
    for notice in imported.notices:
        if "just before" in notice:
            _, line = notice.rsplit(": ", 1)
            named.append(line)
    return named


@pytest.mark.parametrize(
    "second_line",
    [
        pytest.param("2,tt1,,2,3,S,Look,AB,1,,,,2026-01-01T10:00:09+00:00", id="nine seconds later"),
        pytest.param("2,tt1,,2,3,S, Look ,AB,1,,,,2026-01-01T12:00:09+02:00", id="in another time zone"),
        pytest.param('2,tt1,,2,3,S,Look,AB,"1,0",,,,2026-01-01T10:00:09+00:00', id="saved by a spreadsheet"),
    ],
)
def test_concepts_that_may_be_left_from_the_decision_before_are_named(tmp_path, second_line):
    """A page once kept the ticks of concepts when another passage was chosen.

    AB ticked Look for one passage at 10:00:00 and for another one at 10:00:09: the second may come of this.
    A notice names it, in line 3 of the table, and its concepts stay.
    """
    named = lines_that_may_copy_concepts(tmp_path, LOOK_AT_10_00, second_line)
    assert named == ["line 3"]


@pytest.mark.parametrize(
    "second_line",
    [
        pytest.param("2,tt1,,2,3,S,Body,AB,1,,,,2026-01-01T10:00:09+00:00", id="other concepts"),
        pytest.param("2,tt1,,2,3,S,,AB,1,,,,2026-01-01T10:00:09+00:00", id="no concept"),
        pytest.param("2,tt1,,2,3,S,Look,AB,0,,,2,2026-01-01T10:00:09+00:00", id="on the blind page"),
        pytest.param("2,tt2,,2,3,S,Look,AB,1,,,,2026-01-01T10:00:09+00:00", id="on another film's page"),
        pytest.param("2,tt1,,2,3,S,Look,AB,1,,,,2026-01-02T10:00:09+00:00", id="on another day"),
        pytest.param("2,tt1,,2,3,S,Look,AB,1,,,,", id="at no time"),
        pytest.param("2,tt1,,2,3,S,Look,AB,1,,,,soon", id="at a time that cannot be read"),
    ],
)
def test_concepts_of_another_page_or_day_are_not_named(tmp_path, second_line):
    """AB ticked the concept Look at 10:00:00; a page kept such a tick only for as long as it was open.

    Nothing in the second lines can come of that: a notice names none of them as a possible copy.
    """
    named = lines_that_may_copy_concepts(tmp_path, LOOK_AT_10_00, second_line)
    assert named == []


def test_the_same_concepts_before_and_after_a_blind_judgement_are_not_taken_for_left_over(tmp_path):
    """Within nine seconds AB judged in sight of the score, then blindly, then in sight: three times Look.

    An import names lines whose concepts may only be left ticked from the judgement just before. Here none may
    be: blind judgements have a page of their own, and on a page that is opened anew no concept is ticked.
    """
    in_sight = decision_at("10:00:00", clip_id="1", start_s=1)
    second_window_of_draw = 2
    blind = decision_at("10:00:05", clip_id="2", start_s=2, seen_score=0, place=second_window_of_draw)
    in_sight_again = decision_at("10:00:09", clip_id="3", start_s=3)
    assert lines_that_may_copy_concepts(tmp_path, in_sight, blind, in_sight_again) == []


def test_a_concept_decided_just_after_it_was_decided_in_another_file_of_the_film_has_a_notice(tmp_path):
    """AB ticked Look in a judgement at 10:00:00, and in a passage, which is in another file, at 10:00:09.

    Nine seconds later the box may have stayed ticked by mistake: a notice on the second file names its line
    2, the first below the head.
    """
    judgements = write_table(tmp_path, "judgements.csv", LOOK_AT_10_00, head=HEAD_OF_THE_DESK)
    look_at_10_00_09 = "2,tt1,,30,31,S,Look,AB,1,,,,2026-01-01T10:00:09+00:00"
    passages = write_table(tmp_path, "passages.csv", look_at_10_00_09, head=HEAD_OF_THE_DESK)

    notices = import_judgements([judgements, passages], tmp_path).notices

    (notice,) = [notice for notice in notices if "just before" in notice]
    assert notice.startswith(f"{passages}: ")
    assert notice.endswith(": line 2")


def test_rows_of_judgements_are_read_if_they_have_concepts_and_no_level(tmp_path):
    """A table has a column seen_score, and so is one of judgements. AB named a concept in two spans.

    Look was named in sight of the score (1), and Body blindly (0). Neither row has a level; both are read,
    and keep what they say of the score.
    """
    path = tmp_path / "m.csv"
    path.write_text("movie,start_s,end_s,concepts,annotator,seen_score\nm,0,5,Look,AB,1\nm,5,9,Body,AB,0\n")

    clips = import_spans([path], tmp_path).manifest

    labels = [(clip.level, clip.concepts, clip.extras["seen_score"]) for clip in clips]
    assert labels == [(None, ("Look",), "1"), (None, ("Body",), "0")]
