"""Read what a model answered to the questions of a codebook: a JSON object a clip, in lines or a list.

`{"clip_id": ..., "movie": ..., "start_s": ..., "end_s": ..., "model": ..., "prompt": ..., "date": ...,
"perceives": ["visual"], "answers": {"level:S": "no", "concept:Body": 0.9}}`: a line of `codebook questions`
with answers in place of the questions. An answer is yes, no, or the probability of yes; `level` may be one
level's name, or the probability of each. What is neither is a refusal; nothing is guessed.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from obygaze_features.arguments import checked
from obygaze_features.errors import ObygazeError
from obygaze_features.identity import plain
from obygaze_features.manifest.spans.json_values import json_in, number, text_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.read_in_sandbox import FileContent, read_in_sandbox
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.perception import PICTURES, modalities_of
from obygaze_features.sandbox import reader_process
from obygaze_features.text import composed

PROBABILITY_OF_WORD: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
NO_ANSWERS = "no JSON object with answers"
COLUMN_OF_KEY = {name: name for name in ("clip_id", "movie", "model", "prompt")} | {"date": "answered_on"}
"""Key of an answer's object -> the column of the clip in which its value is kept."""
MIN_PROBABILITY = 0.5
"""From this probability of yes on, a concept, or a level that is asked about alone, counts as present."""


class Answered(RawSpan, frozen=True, array_like=True, gc=False):
    """What a model answered about one clip.

    Its cells are clip_id, movie, model, prompt, answered_on, perceives.

    Parameters
    ----------
    answers
        Question, `level:NAME` or `concept:NAME`, -> probability of yes. Names are as the file spells them.
    perceives
        Which of MODALITIES the model perceives; pictures if the file does not say.
    """

    answers: Mapping[str, float] = msgspec.field(default_factory=dict)
    perceives: tuple[str, ...] = PICTURES

    def probabilities(self, kind: str) -> dict[str, float]:
        """Return name -> probability of yes for all questions of a kind, `level` or `concept`."""
        prefix = f"{kind}:"
        result = {}
        for question, probability in self.answers.items():
            if question.startswith(prefix):
                result[question.removeprefix(prefix)] = probability
        return result

    @property
    def model(self) -> str:
        """The name of the model; "" if the file does not say."""
        return self.cells.get("model", "")

    @property
    def key(self) -> tuple[str, str]:
        """Whose answers they are, (clip id, model): a file may hold the answers of several models."""
        return self.cells.get("clip_id", ""), self.model

    @property
    def level(self) -> str:
        """The level of highest probability; "" if several have it, or there is none."""
        probability_of_level = self.probabilities("level")
        highest = max(probability_of_level.values(), default=0.0)
        likeliest = [name for name, p in probability_of_level.items() if p == highest]
        return likeliest[0] if len(likeliest) == 1 else ""


class _Probabilities(NamedTuple):
    """The probability of each question, and why the answers do not count; "" if they do."""

    answers: dict[str, float]
    reason: str


def answered_clips(file: SpanFile) -> list[Answered]:
    """Read the answers on all clips of a file. If they do not count, `Answered.reason` says why.

    Answers on a clip do not count if

    - they cannot be read;
    - one is missing that the model gave for most clips;
    - several levels are the likeliest;
    - the same model answered the same clip earlier in the file.

    Raises
    ------
    ManifestError
        No line has answers.
    """
    clips = _clips_of_file(file)
    if all(clip.reason == NO_ANSWERS for clip in clips):
        raise file.error(
            "nothing has answers: JSON objects as of `codebook questions` were expected, one a line or a list"
        )

    usual_questions = _usual_questions([clip for clip in clips if not clip.reason])
    clips_with_reasons = []
    first_answers: dict[tuple[str, str], Mapping[str, float]] = {}  # (clip id, model) -> its first answers
    for clip in clips:
        reason = _why_not_counted(clip, usual_questions, first_answers)
        if not reason:
            first_answers[clip.key] = clip.answers
        clips_with_reasons.append(replace(clip, reason=reason))
    return clips_with_reasons


def _why_not_counted(
    clip: Answered,
    usual_questions: Mapping[str, Sequence[str]],
    first_answers: Mapping[tuple[str, str], Mapping[str, float]],
) -> str:
    """Return the first reason why the answers on a clip do not count; "" if they do.

    Parameters
    ----------
    clip
        The answers on a clip, perhaps with a reason already.
    usual_questions
        Model -> the questions that it answered for most clips.
    first_answers
        (clip id, model) -> the first answers that count, of the clips above in the file.
    """
    if clip.reason:
        return clip.reason
    for question in usual_questions.get(clip.model, ()):
        if question not in clip.answers:
            return f"no answer to {question}"
    has_levels = bool(clip.probabilities("level"))
    has_likeliest_level = clip.level != ""
    if has_levels and not has_likeliest_level:
        return "several levels are the likeliest"
    earlier_answers = first_answers.get(clip.key)
    if earlier_answers is None:
        return ""
    if earlier_answers == clip.answers:
        return "of a clip that was answered above"
    return "of a clip that was answered above, otherwise"  # the file contradicts itself


def _clips_of_file(file: SpanFile) -> list[Answered]:
    """Read the answers to each clip: from the objects of a JSON list, else from an object on each line."""
    objects = json_in(file.text, list)
    if objects is not None:
        return [_answered_clip(f"object {n}", value) for n, value in enumerate(objects, start=1)]
    clips = []
    for line_number, line in enumerate(file.lines, start=1):
        if line.strip():
            clips.append(_answered_clip(f"line {line_number}", json_in(line, dict)))
    return clips


def _usual_questions(clips: Sequence[Answered]) -> dict[str, list[str]]:
    """Return model -> the questions that it answered for more than half of its clips.

    A file does not list which questions were asked, so that a missing answer is found by these.
    """
    n_clips = Counter[str]()  # model -> its clips
    n_answers = Counter[tuple[str, str]]()  # (model, question) -> its answers
    for clip in clips:
        n_clips[clip.model] += 1
        n_answers.update((clip.model, question) for question in clip.answers)

    questions_of_model: dict[str, list[str]] = {}
    for (model, question), n in sorted(n_answers.items()):
        if 2 * n > n_clips[model]:
            questions_of_model.setdefault(model, []).append(question)
    return questions_of_model


def read_answers(file: SpanFile) -> Iterator[RawSpan]:
    """Yield for each clip a span with its level, and one with the concepts that the answers affirm.

    A clip whose answers do not count is yielded as a record with the reason.
    """
    clips = answered_clips(file)
    _note_models(file, [clip for clip in clips if not clip.reason])
    for clip in clips:
        if clip.reason:
            yield clip
        else:
            yield from _spans_of_clip(clip)


def _spans_of_clip(clip: Answered) -> Iterator[RawSpan]:
    """Yield the span of a clip's level, and that of its concepts.

    - A clip on which one level alone was asked about, and denied, has no known level: it is left out.
    - A clip with a level has a span of the level, and one of concepts if it has any.
    - A clip on which no level was asked about has a span of concepts. Without concepts it says that none is
      there.
    """
    levels = clip.probabilities("level")
    is_only_level_denied = len(levels) == 1 and max(levels.values()) < MIN_PROBABILITY
    if is_only_level_denied:
        yield replace(clip, reason="no level: the only one that was asked of is not there")
        return
    clip_id, model = clip.key
    level_span_id = f"{clip_id} of {model}"
    if levels:
        yield replace(clip, text=clip.level, tier="level", span_id=level_span_id)
    concepts = [name for name, p in clip.probabilities("concept").items() if p >= MIN_PROBABILITY]
    if concepts or not levels:
        yield replace(
            clip,
            text=";".join(concepts),
            tier="concepts",
            parent_ids=(level_span_id,),
            role="concepts",  # says that the text is concepts, so that unknown ones are refused
        )


def _note_models(file: SpanFile, clips: Sequence[Answered]) -> None:
    """Note which models and prompts gave the answers, each with its number of clips."""
    for name in ("model", "prompt"):
        n_clips = Counter(clip.cells.get(name, "") for clip in clips)
        shown = ", ".join(f"{text or 'not named':.12} ({n})" for text, n in n_clips.most_common(3))
        if shown:
            file.account.note(f"{name}: {shown}")


@checked
def read_answered(path: Path) -> list[Answered]:
    """Read the answers in a file, including those that do not count.

    The file is read in a child process, as one by a stranger may take any time or memory.
    """
    no_options = Reading()
    with reader_process() as child:
        content = read_in_sandbox(child, path, no_options, _read_answered)
    return list(content.records)


def _read_answered(file: SpanFile) -> FileContent[Answered]:
    """Read a file of answers in the process of `read_in_sandbox`."""
    return FileContent(file, answered_clips(file))


def _answered_clip(location: str, value: Any) -> Answered:
    """Read the answers on one clip from a JSON value; with a reason if they do not count.

    `location` is the line or object of the file, for messages.
    """
    answers_in_file = value.get("answers") if isinstance(value, dict) else None
    if not isinstance(answers_in_file, dict) or not answers_in_file:
        return Answered(location, reason=NO_ANSWERS)

    cells = _cells(value)
    names_clip = bool(cells.get("clip_id") and cells.get("movie"))
    name_problem = "" if names_clip else "no clip_id or no movie"

    perceives = PICTURES
    perceives_problem = ""
    try:
        perceives = _perceives(value.get("perceives"), location)
    except ObygazeError as error:
        perceives_problem = str(error).removeprefix(f"{location}: ")  # the record states the place itself
    cells["perceives"] = ";".join(perceives)

    answers, answers_problem = _probabilities(answers_in_file)
    have_no_times = all(value.get(name) in (None, "") for name in ("start_s", "end_s"))
    return Answered(
        location,
        start_s=number(value.get("start_s")),
        end_s=number(value.get("end_s")),
        cells=cells,
        reason=name_problem or perceives_problem or answers_problem,
        is_whole_file=have_no_times,
        answers=answers,
        perceives=perceives,
    )


def _cells(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of `COLUMN_OF_KEY` that the object of a clip fills with a text or a whole number."""
    cells = {}
    for name, column in COLUMN_OF_KEY.items():
        is_text_or_number = type(value.get(name)) in {str, int}  # `isinstance` takes true for a number
        if is_text_or_number:
            cells[column] = composed(one_line(str(value[name])))
    return cells


def _perceives(value: Any, location: str) -> tuple[str, ...]:
    """Read what the model perceives, such as `visual` or `said`; only pictures if the object does not say.

    `value` is a name or a list of names, from the object of a clip; None if it has none.

    Raises
    ------
    ObygazeError
        A name is none of MODALITIES.
    """
    if value is None:
        return PICTURES
    names = value if isinstance(value, list) else [value]
    return modalities_of([text_of(name) for name in names], location)


def _probabilities(answers: Mapping[str, Any]) -> _Probabilities:
    """Read a machine's answers to all questions on a clip, and why they cannot be used if one is unclear.

    A question on one label, `level:NAME` or `concept:NAME`, is answered with the probability of yes. The
    question `level` asks which level it is: its answer gives the probabilities of several labels, as if
    `level:NAME` had been asked of each. Of several reasons only the first is kept.
    """
    probabilities: dict[str, float] = {}  # question on one label -> probability of yes
    reasons = []
    answered_questions = set[str]()  # on one label, as `plain` writes them: `level:s`
    for question, answer in answers.items():
        if not _is_question(question):
            reasons.append(f"question {question!r:.40}: expected level, level:NAME or concept:NAME")
            continue
        probability_of_label = _probabilities_of_answer(question, answer)
        is_unclear = any(math.isnan(probability) for probability in probability_of_label.values())
        if not probability_of_label or is_unclear:
            reasons.append(f"{question} refused or unclear")
            continue
        for question_on_label in probability_of_label:
            # A level may be in the answer to `level`, and be asked about by `level:NAME` too.
            plain_question = plain(question_on_label)
            if plain_question in answered_questions:
                reasons.append(f"{question} is answered twice")
            answered_questions.add(plain_question)
        probabilities.update(probability_of_label)
    first_reason = reasons[0] if reasons else ""
    return _Probabilities(probabilities, first_reason)


def _probabilities_of_answer(question: str, answer: Any) -> dict[str, float]:
    """Return question -> probability of yes, for one question of a machine's record and its answer.

    Most questions are about one label, such as `concept:Look`. The answer to the question `level`, which of
    the levels it is, counts as answers to `level:EN`, `level:HN` and so on.

    Examples
    --------
    >>> _probabilities_of_answer("concept:Look", "yes")
    {'concept:Look': 1.0}
    >>> _probabilities_of_answer("level", {"EN": 0.2, "S": 0.8})
    {'level:EN': 0.2, 'level:S': 0.8}
    """
    if question == "level":
        return _levels(answer)
    return {question: _probability(answer)}


def _is_question(text: str) -> bool:
    """Return whether a text is a question that is read: `level`, `level:NAME` or `concept:NAME`."""
    kind, _, name = text.partition(":")
    return text == "level" or (kind in {"level", "concept"} and name != "")


def _levels(answer: Any) -> dict[str, float]:
    """Return `level:NAME` -> probability for the answer to the question `level`; NaN if it is unclear.

    The answer is an object of level -> probability, or the name of one level, which gets the probability 1.
    """
    if not isinstance(answer, dict):
        level = _bare(answer)  # "" if it is no text
        return {f"level:{level}": 1.0 if level else math.nan}
    probabilities = {}
    for level, level_answer in answer.items():
        probabilities[f"level:{level}"] = _probability(level_answer) if level else math.nan
    return probabilities


def _probability(answer: object) -> float:
    """Read yes, no, or the probability of yes; NaN for anything else."""
    value = PROBABILITY_OF_WORD.get(_bare(answer).lower(), number(answer))
    return value if 0 <= value <= 1 else math.nan


def _bare(answer: object) -> str:
    """Return an answer without blanks and without the signs that end a sentence; "" if it is no text.

    Models often answer with a sentence of one word, such as `Yes.`.
    """
    if not isinstance(answer, str):
        return ""
    return answer.strip().rstrip(".!").strip()
