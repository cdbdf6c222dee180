"""A machine's answers to the questions of a codebook become an annotator's labels; nothing is guessed."""

import json
from unicodedata import normalize

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    Manifest,
    builtin_codebook,
    codebook_questions,
    import_spans,
    read_manifest,
    write_manifest,
)
from tests.command import obygaze

BOOK = builtin_codebook("obygaze12")
ALL_NO = dict.fromkeys(codebook_questions(BOOK), "no") | {"level:EN": "yes"}


def lines(path, *answers, **more):
    said = [
        {
            "clip_id": f"c{k}",
            "movie": "m",
            "start_s": 4 * k,
            "end_s": 4 * k + 4,
            "model": "tiny",
            **more,
            **each,
        }
        for k, each in enumerate(answers)
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in said), "utf-8")
    return path


def test_a_question_for_each_level_and_concept_by_what_it_means():
    asked = codebook_questions(BOOK)
    assert list(asked) == [
        *(f"level:{name}" for name in BOOK.level_names),
        *(f"concept:{name}" for name in BOOK.concept_names),
    ]
    for name, means in BOOK.means.items():
        assert any(
            means in asked[f"{kind}:{name}"] for kind in ("level", "concept") if f"{kind}:{name}" in asked
        )


def test_answers_stand_beside_people_on_the_same_clips(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clips = [Clip(f"c{k}", "m", "m.mp4", 4 * k, 4 * k + 4, "S", ("Body",), "AB") for k in range(3)]
    write_manifest(Manifest(tuple(clips), tmp_path), tmp_path / "people.csv")
    assert obygaze("codebook", "questions", "people.csv", "--out", "asked.jsonl") == 0
    write_manifest(Manifest((), tmp_path), tmp_path / "none.csv")
    assert obygaze("codebook", "questions", "none.csv", "--out", "none.jsonl") == 1
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text("utf-8").splitlines()]
    assert len({each["prompt"] for each in asked}) == 1
    for each in asked:
        each["answers"] = ALL_NO | {"concept:Body": 0.9}
        each.update(model="tiny", date="2026-11-25")
        del each["questions"]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked), "utf-8")
    command = "manifest import spans people.csv said.jsonl --annotator vlm --out both.csv"
    assert obygaze(*command.split()) == 0
    both = read_manifest(tmp_path / "both.csv")
    assert both.is_per_annotator
    machine = [clip for clip in both if clip.annotator == "vlm"]
    assert [(c.clip_id, c.video, c.level, c.concepts) for c in machine] == [
        (f"c{k}", "m.mp4", "EN", ("Body",)) for k in range(3)
    ]
    assert machine[0].extras == {"model": "tiny", "prompt": asked[0]["prompt"], "answered_on": "2026-11-25"}
    assert all(clip.extras["model"] == "" for clip in both if clip.annotator == "AB")


@pytest.mark.parametrize(
    "answer", ["I cannot help with that", "", None, 1.2, True, "yes, and no", [], "maybe"]
)
def test_a_refusal_leaves_the_clip_out_and_is_counted(tmp_path, answer):
    good, bad = {"answers": ALL_NO}, {"answers": ALL_NO | {"concept:Look": answer}}
    found = import_spans([lines(tmp_path / "a.jsonl", good, bad, good, bad)], tmp_path)
    assert [clip.clip_id for clip in found.manifest] == ["c0", "c2"]
    assert found.manifest.clips[0].annotator == "tiny"
    assert "2 left out: concept:Look refused or unclear (the first: line 2)" in found.notices[0]


def test_rows_of_clips_that_nobody_labelled_give_way_to_answers(tmp_path):
    table = tmp_path / "clips.csv"
    table.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator\nc0,m,m.mp4,0,4,,,\nc9,m,m.mp4,4,8,,,\n",
        "utf-8",
    )
    found = import_spans([table, lines(tmp_path / "a.jsonl", {"answers": ALL_NO})], tmp_path, annotator="vlm")
    assert [(c.clip_id, c.annotator, c.video) for c in found.manifest] == [
        ("c9", "", "m.mp4"), ("c0", "vlm", "m.mp4")
    ]  # fmt: skip
    assert any("1 row of nobody" in notice for notice in found.notices)


def test_a_file_of_refusals_is_counted(tmp_path):
    found = import_spans([lines(tmp_path / "a.jsonl", {"answers": dict.fromkeys(ALL_NO)})], tmp_path)
    assert "0 of 1 spans read" in found.notices[0]


def test_whole_files_have_no_times(tmp_path):
    path = lines(
        tmp_path / "a.jsonl", {"answers": ALL_NO | {"concept:Body": "yes"}}, start_s=None, end_s=None
    )
    (clip,) = import_spans([path], tmp_path).manifest
    assert (clip.clip_id, clip.start_s, clip.end_s, clip.concepts) == ("c0", None, None, ("Body",))


def test_a_level_may_be_named_or_have_probabilities(tmp_path):
    for level in ("Sure", "Sure.", {"EN": 0.1, "S": 0.3}, {"EN": "0.1", "S": "0.3"}):
        found = import_spans([lines(tmp_path / "a.jsonl", {"answers": {"level": level}})], tmp_path)
        assert [clip.level for clip in found.manifest] == ["S"]


def test_what_the_codebook_has_not_is_refused_or_left_out(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"answers": {"level": "EN", "concept:Guns": "yes"}})
    with pytest.raises(ManifestError, match=r"line 1: .*Guns"):
        import_spans([path], tmp_path)
    found = import_spans([lines(tmp_path / "a.jsonl", {"answers": {"level": "rather sure"}})], tmp_path)
    assert not found.manifest.clips
    assert "'rather sure' is no level" in found.notices[0]
    with pytest.raises(ManifestError, match="nothing has answers"):
        import_spans([lines(tmp_path / "a.jsonl", {"answers": {}})], tmp_path)


@pytest.mark.parametrize("indent", [None, 1])
def test_answers_may_be_a_list(tmp_path, indent):
    said = lines(tmp_path / "a.jsonl", {"answers": ALL_NO}, {"answers": dict.fromkeys(ALL_NO)}).read_text()
    listed = tmp_path / "a.json"
    listed.write_text(json.dumps([*map(json.loads, said.splitlines())], indent=indent))
    found = import_spans([listed], tmp_path)
    assert [clip.clip_id for clip in found.manifest] == ["c0"]
    assert "object 2" in found.notices[0]


def test_a_clip_that_is_answered_twice_counts_once(tmp_path):
    said = {"answers": ALL_NO, "clip_id": "c"}
    found = import_spans([lines(tmp_path / "a.jsonl", said, said)], tmp_path)
    assert len(found.manifest) == 1
    assert "line 2: of a clip that was answered above" in found.notices[0]


def test_each_machine_of_a_file_is_an_annotator_of_its_own(tmp_path):
    said = [{"answers": ALL_NO, "clip_id": "c", "start_s": 0, "end_s": 4, "model": name} for name in "AB"]
    said.append({**said[0], "answers": ALL_NO | {"concept:Look": "yes"}})
    found = import_spans([lines(tmp_path / "a.jsonl", *said)], tmp_path)
    assert [(clip.clip_id, clip.annotator) for clip in found.manifest] == [("c", "A"), ("c", "B")]
    assert "line 3: of a clip that was answered above, otherwise" in found.notices[0]


def test_names_may_be_numbers_and_a_machine_without_a_name_is_nobody(tmp_path):
    numbered = {"answers": ALL_NO, "clip_id": 7, "movie": 54215, "model": 4, "date": 20260101}
    (clip,) = import_spans([lines(tmp_path / "a.jsonl", numbered)], tmp_path).manifest
    assert (clip.clip_id, clip.movie, clip.annotator) == ("7", "54215", "4")
    assert clip.extras["answered_on"] == "20260101"
    path = lines(tmp_path / "a.jsonl", {"answers": ALL_NO, "model": None})
    with pytest.raises(ManifestError, match="line 1: nobody's: name its model, or give --annotator"):
        import_spans([path], tmp_path)
    assert import_spans([path], tmp_path, annotator="vlm").manifest.clips[0].annotator == "vlm"


@pytest.mark.parametrize("twin", ["level:en", "concept:body", "level:ＥＮ"])
def test_a_question_in_two_spellings_is_answered_twice(tmp_path, twin):
    path = lines(tmp_path / "a.jsonl", {"answers": ALL_NO | {twin: "yes"}}, {"answers": ALL_NO})
    (notice, *_) = import_spans([path], tmp_path).notices
    assert f"line 1: {twin} is answered twice" in notice


def test_questions_that_the_codebook_lacks_or_nobody_asked_are_said(tmp_path):
    answers = {"level": "EN", "concept:Body": "no", "concept:Boddy": "no"}
    (notice, *_) = import_spans([lines(tmp_path / "a.jsonl", {"answers": answers})], tmp_path).notices
    assert "1 question not of codebook 'obygaze12' (concept:Boddy)" in notice
    assert f"nothing asked of {len(BOOK.concepts) - 1} concepts" in notice
    (notice, *_) = import_spans([lines(tmp_path / "a.jsonl", {"answers": ALL_NO})], tmp_path).notices
    assert "asked" not in notice
    assert "question" not in notice


def test_a_level_that_alone_was_asked_of_and_denied_is_no_level(tmp_path):
    said = [{"answers": {"level:S": answer}} for answer in ("yes", "no", 0.2, 0.7)]
    found = import_spans([lines(tmp_path / "a.jsonl", *said)], tmp_path)
    assert [clip.clip_id for clip in found.manifest] == ["c0", "c3"]
    assert (
        "2 left out: no level: the only one that was asked of is not there (the first: line 2)"
        in found.notices[0]
    )


def test_a_line_ends_where_its_object_does_and_names_have_one_form_of_unicode(tmp_path):
    said = {"answers": ALL_NO, "clip_id": normalize("NFD", "é"), "note": "one\u2028two\u0085three"}
    path = lines(tmp_path / "a.jsonl", said)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")), ensure_ascii=False) + "\n", "utf-8")
    (clip,) = import_spans([path], tmp_path).manifest
    assert clip.clip_id == "é"


def test_answers_of_another_span_than_the_tables_say_what_differs(tmp_path):
    head = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"
    (tmp_path / "t.csv").write_text(head + "c0,m,,1,4,S,,AB\n", "utf-8")
    path = lines(tmp_path / "a.jsonl", {"answers": ALL_NO})
    with pytest.raises(ManifestError, match="of AB and tiny, whose films, videos or times differ"):
        import_spans([tmp_path / "t.csv", path], tmp_path)
