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

OBYGAZE12 = builtin_codebook("obygaze12")
ALL_NO = dict.fromkeys(codebook_questions(OBYGAZE12), "no") | {"level:EN": "yes"}
"""Answers to all questions of the codebook: yes to the level EN, and no to other levels and to concepts."""
ANSWERED = {"answers": ALL_NO}
LEVEL = {"answers": {"level": "EN"}}
REFUSAL = {"answers": {"level": None}}
HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"


def jsonl_of(*answers):
    """Write answers of the machine "tiny" as lines of JSON, each about a clip of 4 s of film m.

    They are about the clips c0, c1, ... one after the other, unless the fields of an answer say otherwise.
    """
    text = ""
    for k, answer in enumerate(answers):
        clip = {"movie": "m", "model": "tiny", "clip_id": f"c{k}", "start_s": 4 * k, "end_s": 4 * k + 4}
        text += json.dumps(clip | answer) + "\n"
    return text


def test_questions_are_of_each_level_and_visual_concept_and_say_what_it_means():
    """Questions have names such as level:EN or concept:Body. Of what is heard, a machine is not asked."""
    questions = codebook_questions(OBYGAZE12)

    names_of_levels = [f"level:{level}" for level in OBYGAZE12.level_names]
    names_of_concepts = [f"concept:{concept}" for concept in OBYGAZE12.visual_concepts]
    assert list(questions) == names_of_levels + names_of_concepts
    for name, question in questions.items():
        level_or_concept = name.removeprefix("level:").removeprefix("concept:")
        assert OBYGAZE12.means[level_or_concept] in question


def write_three_clips_judged_by_ab(path):
    """Write a manifest of the clips c0 to c2, of 4 s each, of which AB says S and Body."""
    clips = []
    for number in range(3):
        start_s = 4 * number
        clips.append(Clip(f"c{number}", "m", "m.mp4", start_s, start_s + 4, "S", ("Body",), "AB"))
    write_manifest(Manifest(tuple(clips), path.parent), path)


def answer_by_tiny(asked, answered):
    """Answer a file of questions as the model "tiny" does: of each clip EN (see `ALL_NO`), and Body at 0.9.

    It returns the prompt of the questions.
    """
    answers = {"answers": ALL_NO | {"concept:Body": 0.9}, "model": "tiny", "date": "2026-11-25"}
    lines = []
    prompts = set()
    for line in asked.read_text("utf-8").splitlines():
        asked_of_clip = json.loads(line)
        del asked_of_clip["questions"]
        prompts.add(asked_of_clip["prompt"])
        lines.append(json.dumps(asked_of_clip | answers) + "\n")
    answered.write_text("".join(lines), "utf-8")
    (prompt,) = prompts
    return prompt


def test_answers_stand_beside_people_on_the_same_clips(tmp_path, monkeypatch):
    """AB says S and Body of the clips c0 to c2. A machine, the model tiny, says EN and Body of each.

    One command writes the questions to ask of each clip, and another imports the labels of both: the person
    who gives it calls the machine vlm.
    """
    monkeypatch.chdir(tmp_path)
    write_three_clips_judged_by_ab(tmp_path / "people.csv")

    assert obygaze("codebook", "questions", "people.csv", "--out", "asked.jsonl") == 0
    prompt = answer_by_tiny(tmp_path / "asked.jsonl", tmp_path / "answered.jsonl")
    import_both = "manifest import spans people.csv answered.jsonl --annotator vlm --out both.csv"
    assert obygaze(*import_both.split()) == 0

    manifest = read_manifest(tmp_path / "both.csv")
    assert manifest.is_per_annotator
    of_machine = [clip for clip in manifest if clip.annotator == "vlm"]
    assert [(clip.clip_id, clip.video, clip.level, clip.concepts) for clip in of_machine] == [
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
    of_ab = [clip for clip in manifest if clip.annotator == "AB"]
    assert all(clip.extras["model"] == "" for clip in of_ab)


def test_a_manifest_without_clips_has_no_questions(tmp_path, monkeypatch):
    """The command writes the questions to ask of each clip of a manifest. Of none it ends with code 1."""
    monkeypatch.chdir(tmp_path)
    write_manifest(Manifest((), tmp_path), tmp_path / "none.csv")

    exit_code = obygaze("codebook", "questions", "none.csv", "--out", "none.jsonl")

    assert exit_code == 1


@pytest.mark.parametrize(
    "answer", ["I cannot help with that", "", None, 1.2, True, "yes, and no", [], "maybe"]
)
def test_a_refusal_leaves_the_clip_out_and_is_counted(import_files, answer):
    """A language model may refuse, or answer with something that is neither yes, no nor a probability.

    Such an answer is no "no". Here it is about Look, in the second and the fourth of four clips.
    """
    refusal = {"answers": ALL_NO | {"concept:Look": answer}}

    clips, notices = import_files({"a.jsonl": jsonl_of(ANSWERED, refusal, ANSWERED, refusal)})

    assert [(clip.clip_id, clip.annotator) for clip in clips] == [("c0", "tiny"), ("c2", "tiny")]
    assert "2 left out: concept:Look refused or unclear (the first: line 2)" in notices
    assert "; model: tiny (2);" in notices


# Of each case: the answers, the ids of the clips that they label, and a notice.
LEFT_OUT = {
    "refusals alone": ([{"answers": dict.fromkeys(ALL_NO)}], [], "0 of 1 span read"),
    "a level in words": ([{"answers": {"level": "rather sure"}}], [], "'rather sure' is no level"),
    "a clip twice": (
        [{**ANSWERED, "clip_id": "c0"}] * 2, ["c0"], "line 2: of a clip that was answered above",
    ),
    "a clip without a name": (
        [{**ANSWERED, "clip_id": ""}, ANSWERED], ["c1"], "line 1: no clip_id or no movie",
    ),
    "a clip of no film": (
        [{**ANSWERED, "movie": None}, ANSWERED], ["c1"], "line 1: no clip_id or no movie",
    ),
    "one level alone, denied": (
        [{"answers": {"level:S": answer}} for answer in ("yes", "no", 0.2, 0.7)], ["c0", "c3"],
        "2 left out: no level: the only one that was asked of is not there (the first: line 2)",
    ),
    **{f"a question in two spellings, {twin}": (
        [{"answers": ALL_NO | {twin: "yes"}}, ANSWERED], ["c1"], f"line 1: {twin} is answered twice",
    ) for twin in ("level:en", "concept:body", "level:ＥＮ")},
    **{f"a level by {level!r}": (
        [{"answers": {"level": level}}, ANSWERED], ["c1"], "line 1: level refused or unclear",
    ) for level in ({}, {"": 1}, "")},
    "a question of no kind": (
        [{"answers": ALL_NO | {"gaze:S": "no"}}, ANSWERED], ["c1"],
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
         f"nothing asked of {len(OBYGAZE12.visual_concepts) - 1} concepts"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "ids_of_labelled_clips", "notice"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_answers_of_a_machine_that_cannot_be_used_are_left_out_with_their_reason(
    import_files, answers, ids_of_labelled_clips, notice
):
    """A machine answered the questions of a codebook about the clips c0, c1, ..., an object of JSON for each.

    For example, if it says of c0 that the level is "rather sure", which the codebook doesn't have, no clip is
    labelled, and the notice "'rather sure' is no level" says why. The cases of `LEFT_OUT` have the answers,
    the clips that are labelled, and a part of the notice.
    """
    clips, notices = import_files({"a.jsonl": jsonl_of(*answers)})

    assert [clip.clip_id for clip in clips] == ids_of_labelled_clips
    assert notice in notices


def test_concepts_that_pictures_do_not_show_are_noted_as_not_asked(import_files):
    """A machine that sees alone answered all questions of ObyGaze12 about levels and visual concepts.

    Four concepts are not visual, so that no question was about them. No other remark is made on questions.
    """
    _, notices = import_files({"a.jsonl": jsonl_of({"answers": ALL_NO})})

    assert "absent, not asked: 4 concepts" in notices
    assert "nothing asked" not in notices
    assert "question" not in notices


def test_no_notice_speaks_of_concepts_where_a_machine_was_asked_for_levels_alone(import_files):
    """A machine answered whether a clip is EN, and whether it is S. Nobody asked it for concepts.

    A machine that was asked for some concepts and not for others gets a notice of the questions that were
    not asked. Here there is none.
    """
    _, notices = import_files({"b.jsonl": jsonl_of({"answers": {"level:EN": "yes", "level:S": "no"}})})
    assert "asked" not in notices
    assert "question" not in notices


def test_a_clip_without_labels_is_replaced_by_the_clip_that_a_machine_labelled(import_files):
    """A table lists the clips c0 and c9 of m.mp4, and has no label and no annotator of either.

    A machine, "vlm", answered about c0. Then c0 is in the manifest once, as labelled by vlm, and keeps its
    video. Of c9 nothing was answered, so that its row stays as it is. A notice counts the row that is left
    out.
    """
    table_without_labels = f"{HEAD}c0,m,m.mp4,0,4,,,\nc9,m,m.mp4,4,8,,,\n"
    answer_about_c0 = jsonl_of(ANSWERED)

    clips, notices = import_files(
        {"clips.csv": table_without_labels, "a.jsonl": answer_about_c0}, annotator="vlm"
    )

    annotator_and_video = {clip.clip_id: (clip.annotator, clip.video) for clip in clips}
    assert annotator_and_video == {"c0": ("vlm", "m.mp4"), "c9": ("", "m.mp4")}
    assert [clip.clip_id for clip in clips] == ["c9", "c0"]
    assert "1 row of nobody" in notices


def test_a_machine_may_be_asked_of_concepts_alone(import_files):
    """Body is in the first clip and not in the second. Neither clip has a level."""
    answers = jsonl_of({"answers": {"concept:Body": "yes"}}, {"answers": {"concept:Body": "no"}})

    clips, notices = import_files({"a.jsonl": answers})

    assert [(clip.clip_id, clip.level, clip.concepts) for clip in clips] == [
        ("c0", None, ("Body",)),
        ("c1", None, ()),
    ]
    assert "2 of 2 spans" in notices


def of_whole_file(answers):
    """Make an answer about a clip that is a whole file, so that it has no times."""
    return {"start_s": None, "end_s": None, "answers": answers}


def test_levels_and_concepts_of_whole_files_may_be_answered_in_two_files(import_files):
    """Both files are about the clips c0 and c1. Each has its level in one, and its concept in the other."""
    levels = jsonl_of(of_whole_file({"level": "EN"}), of_whole_file({"level": "S"}))
    concepts = jsonl_of(of_whole_file({"concept:Body": "yes"}), of_whole_file({"concept:Look": "yes"}))

    clips, _ = import_files({"levels.jsonl": levels, "concepts.jsonl": concepts})

    assert [(clip.level, clip.concepts) for clip in clips] == [("EN", ("Body",)), ("S", ("Look",))]
    assert [(clip.start_s, clip.end_s) for clip in clips] == [(None, None), (None, None)]


@pytest.mark.parametrize("level", ["Sure", "Sure.", {"EN": 0.1, "S": 0.3}, {"EN": "0.1", "S": "0.3"}])
def test_a_level_may_be_named_or_have_probabilities(import_files, level):
    """Sure is the title of S. Of probabilities, the level with the highest counts."""
    (clip,), _ = import_files({"a.jsonl": jsonl_of({"answers": {"level": level}})})
    assert clip.level == "S"


@pytest.mark.parametrize("level", ["s", "en"])
def test_a_machine_may_name_a_level_in_small_letters_as_people_may(import_files, level):
    """The machine tiny answered s, or en, of the clip from 0 s on, and AB wrote the same into a table.

    Both mean the level S, or EN, of the codebook.
    """
    table = f"movie,start_s,end_s,level,annotator\nm,0,4,{level},AB\nm,4,8,HN,AB\n"
    files = {"a.jsonl": jsonl_of({"answers": {"level": level}}), "people.csv": table}

    clips, _ = import_files(files)

    level_by = {clip.annotator: clip.level for clip in clips if clip.start_s == 0}
    assert level_by == {"tiny": level.upper(), "AB": level.upper()}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"answers": {"level": "EN", "concept:Guns": "yes"}}, r"line 1: .*Guns"),
        ({"answers": {}}, "nothing has answers"),
        ({**ANSWERED, "model": None}, "line 1: nobody's: name its model, or give --annotator"),
    ],
    ids=["a concept that the codebook lacks", "no answer", "no model"],
)
def test_answers_that_fit_no_codebook_or_annotator_are_refused(import_files, answer, message):
    """A file has one answer of a machine: on a concept of another codebook, on nothing, or of no machine.

    The codebook is ObyGaze12, which has no concept Guns. The message says what is wrong.
    """
    with pytest.raises(ManifestError, match=message):
        import_files({"a.jsonl": jsonl_of(answer)})


def test_answers_about_a_clip_that_has_other_times_in_a_table_are_refused(import_files):
    """The clip c0 lasts from 1 to 4 s in the table, and from 0 to 4 s in the answer."""
    table = f"{HEAD}c0,m,,1,4,S,,AB\n"
    with pytest.raises(ManifestError, match="of AB and tiny, whose films, videos or times differ"):
        import_files({"t.csv": table, "a.jsonl": jsonl_of(ANSWERED)})


@pytest.mark.parametrize("indent", [None, 1])
def test_answers_of_a_machine_are_also_read_from_a_list_of_json(import_files, indent):
    """Answers are mostly written as an object of JSON on each line. Here they are one list of JSON.

    The list stands on one line, or on many. It has answers about the clips c0 and c1; the machine refused
    each question about c1 (null), so that c1 gets no label, and a notice names its place in the list.
    """
    answer_about_c0 = ANSWERED
    refusal_about_c1 = {"answers": dict.fromkeys(ALL_NO, None)}
    objects = [json.loads(line) for line in jsonl_of(answer_about_c0, refusal_about_c1).splitlines()]

    clips, notices = import_files({"a.json": json.dumps(objects, indent=indent)})

    assert [clip.clip_id for clip in clips] == ["c0"]
    assert "object 2" in notices


def test_each_machine_of_a_file_is_an_annotator_of_its_own(import_files):
    """The models A and B answered about the same clip. A's second, different answer is left out."""
    about_clip = {"clip_id": "c", "start_s": 0, "end_s": 4}
    of_a = {**about_clip, "model": "A", "answers": ALL_NO}
    of_b = {**about_clip, "model": "B", "answers": ALL_NO}
    of_a_again = {**about_clip, "model": "A", "answers": ALL_NO | {"concept:Look": "yes"}}

    clips, notices = import_files({"a.jsonl": jsonl_of(of_a, of_b, of_a_again)})

    assert [(clip.clip_id, clip.annotator) for clip in clips] == [("c", "A"), ("c", "B")]
    assert "line 3: of a clip that was answered above, otherwise" in notices


def test_names_of_clips_films_and_machines_may_be_numbers(import_files):
    """In a machine's answer about a clip the ids of clip, film and model, and the date, are numbers of JSON.

    They are taken as the texts that they are written as.
    """
    numbered = {**ANSWERED, "clip_id": 7, "movie": 54215, "model": 4, "date": 20260101}

    (clip,), _ = import_files({"a.jsonl": jsonl_of(numbered)})

    assert (clip.clip_id, clip.movie, clip.annotator) == ("7", "54215", "4")
    assert clip.extras["answered_on"] == "20260101"


def test_a_machine_without_a_name_is_named_by_the_person(import_files):
    """The file of answers does not say which model gave them. The person calls the annotator vlm."""
    answer_of_nobody = {**ANSWERED, "model": None}

    (clip,), _ = import_files({"a.jsonl": jsonl_of(answer_of_nobody)}, annotator="vlm")

    assert clip.annotator == "vlm"


def test_answers_may_have_any_letters_of_unicode(import_files):
    """U+2028 and U+0085 end lines for `str.splitlines`; in a text of JSON they are letters."""
    answer = json.loads(jsonl_of({**ANSWERED, "note": "one\u2028two\u0085three"}))

    (clip,), _ = import_files({"a.jsonl": json.dumps(answer, ensure_ascii=False) + "\n"})

    assert clip.clip_id == "c0"


def test_names_of_clips_in_answers_are_stored_in_one_form_of_unicode(import_files):
    """The é of a clip's name, here an e with an accent of its own, is stored as one letter."""
    e_and_accent = normalize("NFD", "é")
    (clip,), _ = import_files({"a.jsonl": jsonl_of({**ANSWERED, "clip_id": e_and_accent})})
    assert clip.clip_id == "é"


def test_answers_about_a_concept_that_a_machine_cannot_perceive_do_not_count(import_files):
    """The machine sees pictures alone, and says that Voice, which is heard, is in both clips.

    The three other concepts that are not visual, Speech, Soundtrack and Narratology, were not asked.
    """
    voice_and_body = ALL_NO | {"concept:Voice": "yes", "concept:Body": "yes"}
    voice = ALL_NO | {"concept:Voice": "yes", "concept:Body": "no"}

    clips, notices = import_files({"a.jsonl": jsonl_of({"answers": voice_and_body}, {"answers": voice})})

    assert [clip.concepts for clip in clips] == [("Body",), ()]
    assert [clip.extras["perceives"] for clip in clips] == ["visual", "visual"]
    assert "Voice is heard, and what is perceived is visual (2 answers)" in notices
    assert "3 concepts" in notices


def test_a_machine_that_hears_is_asked_of_what_is_heard():
    """Four concepts are not visual: Speech, Voice and Soundtrack are heard, and Narratology is told."""
    questions = codebook_questions(OBYGAZE12, ("visual", "heard"))

    assert "concept:Speech" in questions
    assert "concept:Voice" in questions
    assert "concept:Soundtrack" in questions
    assert "concept:Narratology" not in questions


def test_answers_of_a_machine_that_hears_count_for_what_is_heard(import_files):
    """A machine that sees and hears answers all questions, and says that Voice, which is heard, is there.

    It was not asked about Narratology, which the story tells.
    """
    questions = codebook_questions(OBYGAZE12, ("visual", "heard"))
    answers = dict.fromkeys(questions, "no") | {"level:EN": "yes", "concept:Voice": "yes"}
    of_machine = {"answers": answers, "perceives": ["visual", "heard"]}

    (clip,), notices = import_files({"a.jsonl": jsonl_of(of_machine)})

    assert clip.concepts == ("Voice",)
    assert "Narratology is told" in notices


def test_answers_of_a_machine_with_a_sense_that_does_not_exist_are_left_out(import_files):
    """The first of two answers is of a machine that perceives "smell", which is no modality."""
    of_a_nose = {"answers": ALL_NO, "perceives": ["smell"]}

    clips, notices = import_files({"a.jsonl": jsonl_of(of_a_nose, ANSWERED)})

    assert [clip.clip_id for clip in clips] == ["c1"]
    assert "smell" in notices


def test_questions_of_concepts_hold_their_instances_and_examples():
    """An instance is a typical form of a concept, with examples, as ObyGaze12 lists them.

    The question about a concept names all of them, by which a machine knows what to look for.
    """
    questions = codebook_questions(OBYGAZE12)
    n_instances = 0
    for concept in OBYGAZE12.concepts:
        for instance in concept.instances:
            n_instances += 1
            question = questions[f"concept:{concept.name}"]
            assert instance.name in question
            for example in instance.examples:
                assert example in question
    assert n_instances > 0


def test_questions_of_levels_hold_the_construct():
    """The construct is what the levels are levels of: objectification."""
    questions = codebook_questions(OBYGAZE12)
    for level in OBYGAZE12.level_names:
        assert OBYGAZE12.construct in questions[f"level:{level}"]


def test_a_concept_that_is_none_is_refused_without_an_option_that_does_not_work(import_files):
    """A machine answered about "Gun", a concept that the codebook does not have.

    Answers keep the codebook's words, and `--word` explains none of them, so it is not proposed.
    """
    answer = (
        '{"clip_id": "c0", "movie": "f", "start_s": 1, "end_s": 5, "model": "m", '
        '"answers": {"concept:Gun": "yes"}}'
    )

    with pytest.raises(ManifestError, match="unknown concept 'Gun'") as refusal:
        import_files({"answers.jsonl": answer})

    assert "--word" not in str(refusal.value)


@pytest.mark.parametrize(
    "table_of_people",
    [
        pytest.param(
            "clip_id,movie,start_s,end_s,level,annotator\nc0,m,0,4,S,AB\n",
            id="a table that does not say whether a score was seen",
        ),
        pytest.param(
            "clip_id,movie,start_s,end_s,level,annotator,seen_score\nc0,m,0,4,S,AB,1\n",
            id="a table of labels in sight of a score",
        ),
    ],
)
def test_answers_of_a_machine_are_about_the_clip_that_people_labelled_under_the_same_id(
    import_files, table_of_people
):
    """A machine, "tiny", answered about the clip c0, which it names by its id and AB labelled in a table.

    Both are labels of one clip, whichever columns the table has: no notice says that the table lacks c0.
    """
    clips, notices = import_files({"people.csv": table_of_people, "a.jsonl": jsonl_of(LEVEL)})

    assert [(clip.clip_id, clip.annotator) for clip in clips] == [("c0", "AB"), ("c0", "tiny")]
    assert "no table has" not in notices
