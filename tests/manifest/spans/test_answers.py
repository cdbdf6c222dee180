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
    read_manifest,
    write_manifest,
)
from tests.command import obygaze

BOOK = builtin_codebook("obygaze12")
ALL_NO = dict.fromkeys(codebook_questions(BOOK), "no") | {"level:EN": "yes"}
GOOD = {"answers": ALL_NO}
LEVEL = {"answers": {"level": "EN"}}
REFUSAL = {"answers": {"level": None}}
HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"


def lines(*answers):
    """Write answers of the machine "tiny" as lines of JSON, each about a clip of 4 s of film m.

    They are about the clips c0, c1, ... one after the other, unless the fields of an answer say otherwise.
    """
    text = ""
    for k, answer in enumerate(answers):
        clip = {"movie": "m", "model": "tiny", "clip_id": f"c{k}", "start_s": 4 * k, "end_s": 4 * k + 4}
        text += json.dumps(clip | answer) + "\n"
    return text


def test_questions_are_of_each_level_and_visual_concept_and_say_what_it_means():
    questions = codebook_questions(BOOK)
    of_levels = [f"level:{name}" for name in BOOK.level_names]
    of_concepts = [f"concept:{name}" for name in BOOK.visual_concepts]
    assert list(questions) == of_levels + of_concepts
    for question, text in questions.items():
        _, _, name = question.partition(":")
        assert BOOK.means[name] in text


def answered_by_tiny(questions_of_clip):
    """Answer the questions about a clip as a machine does: the level EN (see `ALL_NO`), and Body at 0.9."""
    answered = {key: value for key, value in questions_of_clip.items() if key != "questions"}
    answers = ALL_NO | {"concept:Body": 0.9}
    return answered | {"answers": answers, "model": "tiny", "date": "2026-11-25"}


def test_answers_stand_beside_people_on_the_same_clips(tmp_path, monkeypatch):
    """AB says S and Body of three clips; the machine, which a person names vlm, says EN and Body."""
    monkeypatch.chdir(tmp_path)
    clips = [Clip(f"c{k}", "m", "m.mp4", 4 * k, 4 * k + 4, "S", ("Body",), "AB") for k in range(3)]
    write_manifest(Manifest(tuple(clips), tmp_path), tmp_path / "people.csv")
    assert obygaze("codebook", "questions", "people.csv", "--out", "asked.jsonl") == 0
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text("utf-8").splitlines()]
    (prompt,) = {questions_of_clip["prompt"] for questions_of_clip in asked}
    answered = [json.dumps(answered_by_tiny(questions_of_clip)) + "\n" for questions_of_clip in asked]
    (tmp_path / "answered.jsonl").write_text("".join(answered), "utf-8")

    command = "manifest import spans people.csv answered.jsonl --annotator vlm --out both.csv"
    assert obygaze(*command.split()) == 0

    manifest = read_manifest(tmp_path / "both.csv")
    assert manifest.is_per_annotator
    of_machine = [clip for clip in manifest if clip.annotator == "vlm"]
    assert [(c.clip_id, c.video, c.level, c.concepts) for c in of_machine] == [
        ("c0", "m.mp4", "EN", ("Body",)),
        ("c1", "m.mp4", "EN", ("Body",)),
        ("c2", "m.mp4", "EN", ("Body",)),
    ]
    assert of_machine[0].extras == {
        "model": "tiny",
        "prompt": prompt,
        "answered_on": "2026-11-25",
        "perceives": "visual",
    }
    assert all(clip.extras["model"] == "" for clip in manifest if clip.annotator == "AB")


def test_a_manifest_without_clips_has_no_questions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_manifest(Manifest((), tmp_path), tmp_path / "none.csv")
    assert obygaze("codebook", "questions", "none.csv", "--out", "none.jsonl") == 1


@pytest.mark.parametrize(
    "answer", ["I cannot help with that", "", None, 1.2, True, "yes, and no", [], "maybe"]
)
def test_a_refusal_leaves_the_clip_out_and_is_counted(import_files, answer):
    """A language model may refuse, or answer with something that is neither yes, no nor a probability.

    Such an answer is no "no".
    """
    bad = {"answers": ALL_NO | {"concept:Look": answer}}
    clips, notices = import_files({"a.jsonl": lines(GOOD, bad, GOOD, bad)})
    assert [(clip.clip_id, clip.annotator) for clip in clips] == [("c0", "tiny"), ("c2", "tiny")]
    assert "2 left out: concept:Look refused or unclear (the first: line 2)" in notices
    assert "; model: tiny (2);" in notices


# Of each case: the answers, the ids of the clips that they label, and a notice.
LEFT_OUT = {
    "refusals alone": ([{"answers": dict.fromkeys(ALL_NO)}], [], "0 of 1 span read"),
    "a level in words": ([{"answers": {"level": "rather sure"}}], [], "'rather sure' is no level"),
    "a clip twice": (
        [{**GOOD, "clip_id": "c0"}] * 2, ["c0"], "line 2: of a clip that was answered above",
    ),
    "a clip without a name": (
        [{**GOOD, "clip_id": ""}, GOOD], ["c1"], "line 1: no clip_id or no movie",
    ),
    "a clip of no film": (
        [{**GOOD, "movie": None}, GOOD], ["c1"], "line 1: no clip_id or no movie",
    ),
    "one level alone, denied": (
        [{"answers": {"level:S": answer}} for answer in ("yes", "no", 0.2, 0.7)], ["c0", "c3"],
        "2 left out: no level: the only one that was asked of is not there (the first: line 2)",
    ),
    **{f"a question in two spellings, {twin}": (
        [{"answers": ALL_NO | {twin: "yes"}}, GOOD], ["c1"], f"line 1: {twin} is answered twice",
    ) for twin in ("level:en", "concept:body", "level:ＥＮ")},
    **{f"a level by {level!r}": (
        [{"answers": {"level": level}}, GOOD], ["c1"], "line 1: level refused or unclear",
    ) for level in ({}, {"": 1}, "")},
    "a question of no kind": (
        [{"answers": ALL_NO | {"gaze:S": "no"}}, GOOD], ["c1"],
        "line 1: question 'gaze:S': expected level, level:NAME or concept:NAME",
    ),
    "a question that most answer, refusals apart": (
        [{"answers": {"level": "EN", "concept:Body": "no"}}] * 2 + [LEVEL] + [REFUSAL] * 2, ["c0", "c1"],
        "line 3: no answer to concept:Body",
    ),
    "a question that few answer": (
        [{"answers": {"level": "EN", "concept:Body": "no"}}, LEVEL, LEVEL], ["c0", "c1", "c2"],
        "3 of 3 spans read",
    ),
    "questions that the codebook lacks": (
        [{"answers": {"level": "EN", "concept:Body": "no", "concept:Boddy": "no"}}], ["c0"],
        ("1 question not of codebook 'obygaze12' (concept:Boddy); "
         f"nothing asked of {len(BOOK.visual_concepts) - 1} concepts"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT_OUT)
def test_unusable_answers_are_left_out_with_their_reason(import_files, case):
    answers, expected_ids, notice = LEFT_OUT[case]
    clips, notices = import_files({"a.jsonl": lines(*answers)})
    assert [clip.clip_id for clip in clips] == expected_ids
    assert notice in notices


def test_concepts_that_pictures_do_not_show_are_noted_where_concepts_were_asked_of(import_files):
    """Of answers to levels alone no concept is noted."""
    assert len(BOOK.concepts) - len(BOOK.visual_concepts) == 4
    _, notices = import_files({"a.jsonl": lines({"answers": ALL_NO})})
    assert "absent, not asked: 4 concepts" in notices
    assert "nothing asked" not in notices
    assert "question" not in notices

    _, notices = import_files({"b.jsonl": lines({"answers": {"level:EN": "yes", "level:S": "no"}})})
    assert "asked" not in notices
    assert "question" not in notices


def test_a_row_without_a_label_gives_way_to_an_answer_about_its_clip(import_files):
    """Of the two clips that nobody labelled, c0 is answered, and c9, which is not, keeps its row."""
    unlabelled = f"{HEAD}c0,m,m.mp4,0,4,,,\nc9,m,m.mp4,4,8,,,\n"
    answer_about_c0 = lines(GOOD)
    clips, notices = import_files({"clips.csv": unlabelled, "a.jsonl": answer_about_c0}, annotator="vlm")
    assert [(c.clip_id, c.annotator, c.video) for c in clips] == [("c9", "", "m.mp4"), ("c0", "vlm", "m.mp4")]
    assert "1 row of nobody" in notices


def test_a_machine_may_be_asked_of_concepts_alone(import_files):
    clips, notices = import_files(
        {"a.jsonl": lines(*({"answers": {"concept:Body": answer}} for answer in ("yes", "no")))}
    )
    assert [(clip.clip_id, clip.level, clip.concepts) for clip in clips] == [
        ("c0", None, ("Body",)),
        ("c1", None, ()),
    ]
    assert "2 of 2 spans" in notices


WHOLE_FILE = {"start_s": None, "end_s": None}


def test_levels_and_concepts_of_whole_files_may_be_answered_in_two_files(import_files):
    """Whole files have no times."""
    levels = lines(*(WHOLE_FILE | {"answers": {"level": level}} for level in ("EN", "S")))
    concepts = lines(*(WHOLE_FILE | {"answers": {f"concept:{name}": "yes"}} for name in ("Body", "Look")))
    clips, _ = import_files({"levels.jsonl": levels, "concepts.jsonl": concepts})
    assert [(clip.level, clip.concepts) for clip in clips] == [("EN", ("Body",)), ("S", ("Look",))]
    assert {(clip.start_s, clip.end_s) for clip in clips} == {(None, None)}


@pytest.mark.parametrize("level", ["Sure", "Sure.", {"EN": 0.1, "S": 0.3}, {"EN": "0.1", "S": "0.3"}])
def test_a_level_may_be_named_or_have_probabilities(import_files, level):
    assert [clip.level for clip in import_files({"a.jsonl": lines({"answers": {"level": level}})})[0]] == [
        "S"
    ]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"answers": {"level": "EN", "concept:Guns": "yes"}}, r"line 1: .*Guns"),
        ({"answers": {}}, "nothing has answers"),
        ({**GOOD, "model": None}, "line 1: nobody's: name its model, or give --annotator"),
    ],
    ids=["a concept that the codebook lacks", "no answer", "no model"],
)
def test_answers_that_fit_no_codebook_or_annotator_are_refused(import_files, answer, message):
    with pytest.raises(ManifestError, match=message):
        import_files({"a.jsonl": lines(answer)})


def test_answers_about_a_clip_that_has_other_times_in_a_table_are_refused(import_files):
    """The clip c0 lasts from 1 to 4 s in the table, and from 0 to 4 s in the answer."""
    table = f"{HEAD}c0,m,,1,4,S,,AB\n"
    with pytest.raises(ManifestError, match="of AB and tiny, whose films, videos or times differ"):
        import_files({"t.csv": table, "a.jsonl": lines(GOOD)})


@pytest.mark.parametrize("indent", [None, 1])
def test_answers_may_be_a_list(import_files, indent):
    """The second object is a refusal: each of its answers is null."""
    refusal = {"answers": dict.fromkeys(ALL_NO, None)}
    objects = [json.loads(line) for line in lines(GOOD, refusal).splitlines()]
    clips, notices = import_files({"a.json": json.dumps(objects, indent=indent)})
    assert [clip.clip_id for clip in clips] == ["c0"]
    assert "object 2" in notices


def test_each_machine_of_a_file_is_an_annotator_of_its_own(import_files):
    """Two models answered about the same clip. Model A's second, different answer is left out."""
    said = [{**GOOD, "clip_id": "c", "start_s": 0, "end_s": 4, "model": name} for name in "AB"]
    said.append({**said[0], "answers": ALL_NO | {"concept:Look": "yes"}})
    clips, notices = import_files({"a.jsonl": lines(*said)})
    assert [(clip.clip_id, clip.annotator) for clip in clips] == [("c", "A"), ("c", "B")]
    assert "line 3: of a clip that was answered above, otherwise" in notices


def test_names_may_be_numbers_and_a_machine_is_named_by_the_person(import_files):
    numbered = {**GOOD, "clip_id": 7, "movie": 54215, "model": 4, "date": 20260101}
    (clip,), _ = import_files({"a.jsonl": lines(numbered)})
    assert (clip.clip_id, clip.movie, clip.annotator) == ("7", "54215", "4")
    assert clip.extras["answered_on"] == "20260101"
    (clip,), _ = import_files({"a.jsonl": lines({**GOOD, "model": None})}, annotator="vlm")
    assert clip.annotator == "vlm"


def test_answers_may_have_any_letters_of_unicode(import_files):
    """U+2028 and U+0085 end lines for `str.splitlines`; in a text of JSON they are letters.

    The é of a clip's name, here an e with an accent of its own, is composed.
    """
    e_and_accent = normalize("NFD", "é")
    answer = json.loads(lines({**GOOD, "clip_id": e_and_accent, "note": "one\u2028two\u0085three"}))
    (clip,), _ = import_files({"a.jsonl": json.dumps(answer, ensure_ascii=False) + "\n"})
    assert clip.clip_id == "é"


HEARD_OR_TOLD = ("Speech", "Voice", "Soundtrack", "Narratology")
"""The concepts of the codebook that pictures do not show: three are heard, Narratology is in what is told."""


def test_answers_about_a_concept_that_a_machine_cannot_perceive_do_not_count(import_files):
    """The machine sees pictures alone, and says that Voice, which is heard, is in both clips."""
    voice_and_body = ALL_NO | {"concept:Voice": "yes", "concept:Body": "yes"}
    voice = ALL_NO | {"concept:Voice": "yes", "concept:Body": "no"}
    clips, notices = import_files({"a.jsonl": lines({"answers": voice_and_body}, {"answers": voice})})

    assert [clip.concepts for clip in clips] == [("Body",), ()]
    assert [clip.extras["perceives"] for clip in clips] == ["visual", "visual"]
    assert "Voice is heard, and what is perceived is visual (2 answers)" in notices
    # Of the 4 of `HEARD_OR_TOLD`, those besides Voice were not asked.
    assert "3 concepts" in notices


def test_a_machine_that_hears_is_asked_of_what_is_heard_and_its_answers_count(import_files):
    questions = codebook_questions(BOOK, ("visual", "heard"))
    asked = {name for name in HEARD_OR_TOLD if f"concept:{name}" in questions}
    assert asked == {"Speech", "Voice", "Soundtrack"}
    answers = dict.fromkeys(questions, "no") | {"level:EN": "yes", "concept:Voice": "yes"}
    (clip,), notices = import_files(
        {"a.jsonl": lines({"answers": answers, "perceives": ["visual", "heard"]})}
    )

    assert clip.concepts == ("Voice",)
    assert "Narratology is told" in notices


def test_answers_of_a_machine_with_a_sense_that_does_not_exist_are_left_out(import_files):
    clips, account = import_files({"a.jsonl": lines({"answers": ALL_NO, "perceives": ["smell"]}, GOOD)})
    assert [clip.clip_id for clip in clips] == ["c1"]
    assert "smell" in account


def test_questions_hold_instances_and_examples_and_the_construct():
    asked = codebook_questions(BOOK)
    for concept in BOOK.concepts:
        for instance in concept.instances:
            assert instance.name in asked[f"concept:{concept.name}"]
            assert all(example in asked[f"concept:{concept.name}"] for example in instance.examples)
    assert all(BOOK.construct in asked[f"level:{name}"] for name in BOOK.level_names)
