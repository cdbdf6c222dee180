"""Judgements of several people become one manifest; what is left out is counted."""

from functools import partial

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, import_spans, read_manifest, write_manifest

import_judgements = partial(import_spans, kind="judgements")

HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score,judgement\n"


def file(folder, name, *lines, head=HEAD):
    path = folder / name
    path.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_the_last_judgement_of_a_span_counts_and_ids_are_new(tmp_path):
    ab_file = file(
        tmp_path, "one.csv",
        "a,'=tt1,,0,5,S,,AB,1,agree,", "b,'=tt1,,5,9,,,AB,1,unsure,",
        "c,'=tt1,,0,5,HN,Body,AB,1,disagree,dark",
        head=HEAD.replace("judgement\n", "judgement,comment\n"),
    )  # fmt: skip
    cd_file = file(tmp_path, "two.csv", "a,'=tt1,,0,5,sure,body;look,'=CD(),0,", "b,'=tt1,,5,9,EN,,'=CD(),0,")
    imported = import_judgements([ab_file, cd_file], tmp_path)
    first, second, _ = imported.manifest.clips
    assert (first.clip_id, first.movie, first.level, first.annotator) == ("tt1-AB-0001", "=tt1", "HN", "AB")
    assert (second.level, second.concepts, second.annotator) == ("S", ("Look", "Body"), "=CD()")
    assert first.extras == {"seen_score": "1", "judgement": "disagree", "comment": "dark"}
    one, two = imported.accounts
    assert (one.seen, one.used, one.left_out) == (3, 2, [("line 3", "without a level")])
    assert (two.seen, two.used) == (2, 2)
    assert any("judged again" in note for note in one.notes)
    assert len(import_judgements([ab_file, cd_file], tmp_path).notices) == 2
    write_manifest(imported.manifest, tmp_path / "m.csv")
    assert len(read_manifest(tmp_path / "m.csv")) == 3


@pytest.mark.parametrize("start", ["-0", "0.0", "00:00:00", "0e0"])
def test_a_span_judged_again_is_one_however_its_times_are_written(tmp_path, start):
    path = file(tmp_path, "one.csv", "a,tt1,,0,5,S,,AB,1,agree", f"b,tt1,,{start},5.00,EN,,AB,1,disagree")
    assert [clip.level for clip in import_judgements([path], tmp_path).manifest] == ["EN"]


def test_of_several_files_of_one_name_each_is_told_apart(tmp_path):
    """As those are that lie in the folders of scored films."""
    paths = []
    for movie in ("tt1", "tt2"):
        (tmp_path / movie).mkdir()
        paths.append(file(tmp_path / movie, "judgements.csv", f"a,{movie},,0,5,S,,AB,1,agree"))
    notices = import_judgements(paths, tmp_path).notices
    assert [notice.partition(": ")[0] for notice in notices[:2]] == [
        "judgements.csv of tt1", "judgements.csv of tt2"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,tt1,,0,5,S,,,1,agree", "line 2, column annotator"),
        ("a,tt1,,0,5,S,,AB,,agree", "line 2, column seen_score"),
        ("a,tt1,,0,5,X,,AB,1,agree", "line 2, column level"),
        ("a,tt1,,,,S,,AB,1,agree", "column start_s"),
        ("a,tt1,,,5,S,,AB,1,agree", "column start_s"),
        ("a,tt1,,0,,S,,AB,1,agree", "column end_s"),
        ("a,tt1,,5,0,S,,AB,1,agree", None),
    ],
)
def test_what_is_wrong_is_named(tmp_path, line, message):
    with pytest.raises(ManifestError, match=message):
        import_judgements([file(tmp_path, "j.csv", line)], tmp_path)


@pytest.mark.parametrize("head", ["start,end\n", HEAD.replace("seen_score", "seen")])
def test_a_table_without_the_columns_is_refused_with_advice(tmp_path, head):
    with pytest.raises(ManifestError, match="`film next` wrote"):
        import_judgements([file(tmp_path, "j.csv", "1,2", head=head)], tmp_path)


def test_films_and_their_videos_are_found_as_of_every_table(tmp_path):
    (tmp_path / "films").mkdir()
    for movie in ("tt1", "tt2"):
        (tmp_path / "films" / f"{movie}.mp4").touch()
    path = file(tmp_path, "j.csv", "a,,,0,5,S,,AB,0,", "b,tt2,tt2.mp4,0,5,S,,AB,0,")
    imported = import_judgements([path], tmp_path, movie="tt1", videos=tmp_path / "films")
    found = [(clip.movie, clip.video) for clip in imported.manifest]
    assert found == [("tt1", "films/tt1.mp4"), ("tt2", "films/tt2.mp4")]
    assert len(imported.notices) == 1


def test_another_codebook_must_be_given(tmp_path):
    head = HEAD.replace("annotator,", "annotator,codebook,")
    path = file(tmp_path, "j.csv", "a,tt1,,0,5,violent,,AB,mine,1,agree", head=head)
    with pytest.raises(ManifestError, match=r"'mine'.*--codebook"):
        import_judgements([path], tmp_path)
    imported = import_judgements([path], tmp_path, codebook=builtin_codebook("mediaeval15"))
    assert imported.manifest.clips[0].level == "violent"
    assert "of codebook 'mine'" in imported.notices[0]


def test_concepts_that_may_be_those_of_the_decision_before_are_named_and_stay(tmp_path):
    """A page once kept ticks when another passage was chosen: such decisions are named in both files."""
    head = HEAD.replace("judgement\n", "judgement,draw,place,judged_at\n")

    def line(number, concepts, at, *, movie="tt1", seen=1, zone="+00:00"):
        place = "" if seen else number
        span = f"{number},{number + 1}"
        return f'x{number},{movie},,{span},S,{concepts},AB,"{seen}",,,{place},2026-01-0{at}{zone}'

    judged = file(
        tmp_path, "judgements.csv",
        line(1, "Look", "1T10:00:00"),
        line(2, " Look ", "1T12:00:09", zone="+02:00", seen="1,0"),  # 3, saved by a spreadsheet
        line(3, "", "1T10:01:00"),
        line(4, "", "1T10:01:01"),  # no concept could be carried
        line(5, "Look", "1T10:02:00"),
        line(6, "Look", "1T10:02:10", seen=0),
        line(7, "Look", "1T10:02:20", zone=""),  # another page between them
        line(8, "Look", "1T10:02:21", movie="tt2"),  # another film's page
        line(9, "Look", "2T10:02:20"),  # another day
        "y,tt1,,20,21,S,Look,AB,1,,,,", "z,tt1,,21,22,S,Look,AB,1,,,,soon",
        head=head,
    )  # fmt: skip
    own = file(
        tmp_path, "passages.csv", line(30, "Look", "1T10:00:20"), line(31, "Body", "2T10:03:00"), head=head
    )
    imported = import_judgements([judged, own], tmp_path)
    named = [notice for notice in imported.notices if "just before" in notice]
    assert [(notice.split(": ")[0], notice.rpartition(": ")[2]) for notice in named] == [
        (str(judged), "line 3"),
        (str(own), "line 2"),
    ]
    assert sum(clip.concepts == ("Look",) for clip in imported.manifest) == 10


def test_files_of_no_workspace_are_read_without_such_a_notice(tmp_path):
    lines = [f"x{number},tt1,,{number},{number + 1},S,Look,AB,1," for number in range(4)]
    notices = import_judgements([file(tmp_path, "j.csv", *lines)], tmp_path).notices
    assert len(notices) == 1  # what was read
