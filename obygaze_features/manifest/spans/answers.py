"""Read what a machine answered to the questions of a codebook: a JSON object a clip, in lines or a list.

`{"clip_id": ..., "movie": ..., "start_s": ..., "end_s": ..., "model": ..., "prompt": ..., "date": ...,
"answers": {"level:S": "no", "concept:Body": 0.9}}`: a line of `codebook questions` with answers in place of
the questions. An answer is yes, no, or the probability of yes; `level` may be one level's name, or the
probability of each. What is neither is a refusal; nothing is guessed.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from obygaze_features.manifest.spans.given import Given, RawSpan, json_in, number
from obygaze_features.manifest.spans.names import plain
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.text import composed

YES: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
NONE = "no JSON object with answers"
CELLS = {name: name for name in ("clip_id", "movie", "model", "prompt")} | {"date": "answered_on"}
CALLED = 0.5
"""Probability from which on a concept is there."""


@dataclass(frozen=True)
class Answered(RawSpan):
    """What a machine answered about one clip; its cells are clip_id, movie, model, prompt, answered_on.

    Parameters
    ----------
    answers
        Question, as `level:NAME` or `concept:NAME`, -> probability; names as they are spelled there.
    """

    answers: Mapping[str, float] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, float]:
        """Return the probability of each `level` or `concept`."""
        own = f"{kind}:"
        return {name.removeprefix(own): p for name, p in self.answers.items() if name.startswith(own)}

    @property
    def model(self) -> str:
        """The machine; "" where the line does not say."""
        return self.cells.get("model", "")

    @property
    def key(self) -> tuple[str, str]:
        """The clip, and who answers: a file may be of several machines."""
        return self.cells.get("clip_id", ""), self.model

    @property
    def level(self) -> str:
        """The level of highest probability; "" where several have it."""
        levels = self.of("level")
        best = [name for name, p in levels.items() if p == max(levels.values())]
        return best[0] if len(best) == 1 else ""


def answered(given: Given) -> list[Answered]:
    """Read the lines of a file; a clip that lacks an answer which most have does not count.

    Raises
    ------
    ManifestError
        No line has answers.
    """
    listed = json_in(given.text, list)
    if listed is not None:
        found = [_line(f"object {n}", each) for n, each in enumerate(listed, start=1)]
    else:
        lines = ((at, line) for at, line in enumerate(given.lines, start=1) if line.strip())
        found = [_line(f"line {at}", json_in(line, dict)) for at, line in lines]
    if all(each.why == NONE for each in found):
        raise given.error(
            "nothing has answers: JSON objects as of `codebook questions` were expected, one a line or a list"
        )
    given_to = Counter((each.model, question) for each in found if not each.why for question in each.answers)
    lines_of = Counter(each.model for each in found if not each.why)
    asked = sorted(question for question, n in given_to.items() if 2 * n > lines_of[question[0]])
    made, seen = [], dict[tuple[str, str], Mapping[str, float]]()
    for each in found:
        gaps = [name for model, name in asked if model == each.model and name not in each.answers]
        why = each.why or (f"no answer to {gaps[0]}" if gaps else "")
        if not why and each.of("level") and not each.level:
            why = "several levels are the likeliest"
        if not why and (first := seen.setdefault(each.key, each.answers)) is not each.answers:
            why = "of a clip that was answered above" + ", otherwise" * (first != each.answers)
        made.append(replace(each, why=why))
    return made


def read_answers(given: Given) -> Iterator[RawSpan]:
    """Yield the level of each clip, and the concepts on it."""
    clips = answered(given)
    kept = [each for each in clips if not each.why]
    for name in ("model", "prompt"):
        said = Counter(each.cells.get(name, "") for each in kept)
        told = ", ".join(f"{text or 'not named':.12} ({n})" for text, n in said.most_common(3))
        given.account.note(f"{name}: {told}" * bool(said))
    given.questions = sorted({question for each in kept for question in each.answers})
    for each in clips:
        levels, name = each.of("level"), " of ".join(each.key)
        denied = len(levels) == 1 and max(levels.values()) < CALLED
        if each.why or denied:
            yield replace(each, why=each.why or "no level: the only one that was asked of is not there")
            continue
        there = ";".join(concept for concept, p in each.of("concept").items() if p >= CALLED)
        if levels:
            yield replace(each, text=each.level, tier="level", own=name)
        if there or not levels:
            # Of this role, so that unknown ones are refused.
            yield replace(each, text=there, tier="concepts", above=(name,), role="concepts")


def read_answered(path: Path) -> list[Answered]:
    """Read a file of answers, those that do not count included."""
    return answered(Given(path))


def _line(where: str, said: Any) -> Answered:
    """Read one line."""
    if not isinstance(said, dict) or not isinstance(said.get("answers"), dict) or not said["answers"]:
        return Answered(where, why=NONE)
    told = {CELLS[name]: text for name, text in said.items() if name in CELLS and type(text) in {str, int}}
    cells = {name: composed(one_line(str(text))) for name, text in told.items()}
    answers: dict[str, float] = {}
    why = "" if cells.get("clip_id") and cells.get("movie") else "no clip_id or no movie"
    for question, answer in said["answers"].items():
        kind, _, name = question.partition(":")
        if question == "level":
            levels = answer if isinstance(answer, dict) else {_bare(answer): "yes"}
            given = {f"level:{level}": _probability(p if level else None) for level, p in levels.items()}
        else:
            given = {question: _probability(answer)}
        if kind not in {"level", "concept"} or (question != "level" and not name):
            why = why or f"question {question!r:.40}: expected level, level:NAME or concept:NAME"
        elif not given or any(map(math.isnan, given.values())):
            why = why or f"{question} refused or unclear"
        else:
            each = [*answers, *given]
            why = why or f"{question} is answered twice" * (len({*map(plain, each)}) < len(each))
            answers.update(given)
    whole = all(said.get(name) in (None, "") for name in ("start_s", "end_s"))
    start, end = number(said.get("start_s")), number(said.get("end_s"))
    return Answered(where, start, end, cells=cells, why=why, whole=whole, answers=answers)


def _probability(answer: object) -> float:
    """Read yes, no, or the probability of yes; NaN for anything else."""
    value = YES.get(_bare(answer).lower(), number(answer))
    return value if 0 <= value <= 1 else math.nan


def _bare(answer: object) -> str:
    """Write an answer without the signs that end a sentence; "" if it is no text."""
    return answer.strip().rstrip(".!").strip() if isinstance(answer, str) else ""
