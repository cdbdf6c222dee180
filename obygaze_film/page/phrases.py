"""Write numbers and sentences of a film's page by language, from the texts of assets/film.LANGUAGE.toml."""

import math
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from obygaze_film.film_time import FilmTime
from obygaze_film.notes import LATER, Said, texts
from obygaze_film.schema import FLAGS, CorrectedRate, FilmRecord, JudgesAgreement, ModelRecord
from obygaze_film.segments import Reason, reasons
from obygaze_models.report import asset

if TYPE_CHECKING:
    from obygaze_film.film_groups import FilmComparison
    from obygaze_film.judged_rate import FilmRates, JudgesAlpha

LANGUAGES: Final = ("en", "fr")

SCRIPT: Final = ("decimal", "hundredth", "probability_low", "probability_band")
"""Texts that the page's script shows."""


SHORT_S: Final = 120.0
"""Below it a length of time is written in seconds."""


MOST_NAMES = 3
"""Concepts that the sentence names at most."""


class Words:
    """Texts and numbers in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts: dict[str, str] = texts(language) | tomllib.loads(
            asset(f"film.{language}.toml", "obygaze_film.page")
        )

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def say(self, key: str, **values: object) -> str:
        """Fill a text."""
        return self._texts[key].format(**values)

    def again(self, note: Any) -> Any:
        """Say a note in this language; what is none stays as it is."""
        if not isinstance(note, Said):
            return note
        return self.say(note.key, **{name: self.again(value) for name, value in note.values.items()})

    def starting(self, prefix: str) -> dict[str, str]:
        """Return the texts of a script: those whose names begin so, by the rest of their names."""
        return {
            name.removeprefix(prefix): text
            for name, text in self._texts.items()
            if name.startswith(prefix) or name == "decimal"
        }

    def number(self, value: float, digits: int = 2) -> str:
        """Write a number with two decimals."""
        return f"{value:.{digits}f}".replace(".", self._texts["decimal"])

    def probability(self, p: float, least: str = "hundredth") -> str:
        """Write a probability; one that rounds to 0 is below 0.01."""
        return self.number(p) if p >= 0.005 else self[least]

    def interval(self, low: float, high: float, between: str) -> str:
        """Write an interval of probabilities; empty where even its upper end rounds to 0."""
        first = self.number(low) if low >= 0.005 else f"<{self.number(0.01)}"
        return f"{first}{between}{self.number(high)}" if high >= 0.005 else ""

    def spoken(self, p: float, low: float, high: float) -> str:
        """Write a probability and its band as the page's script does."""
        text = self["probability_band" if high >= 0.005 else "probability_low"]
        return text.format(*map(self.probability, (p, low, high)))

    def signed(self, value: float) -> str:
        """Write a number with its sign (a true minus); a number that rounds to 0 has no sign."""
        text = self.number(abs(value))
        return text if float(f"{value:.2f}") == 0 else ("−" if value < 0 else "+") + text

    def share(self, value: float) -> str:
        """Write a share as a whole percentage, NaN as a dash; a share above 0 is never written as 0."""
        if math.isnan(value):
            return "–"
        text = "<1" if 0 < value < 0.005 else f"{100 * value:.0f}"
        return self._texts["percent"].format(text)

    def points(self, row: Mapping[Any, Any]) -> str:
        """Write a difference of shares with its interval, in points of percent."""
        value, low, high = (self.number(100 * row[name], 1) for name in ("value", "low", "high"))
        signed = [text if text.startswith("-") else f"+{text}" for text in (value, low, high)]
        return "{} [{}, {}]".format(*signed).replace("-", "−")

    def listed(self, names: list[str]) -> str:
        """Join names."""
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {self._texts['and']} {names[-1]}"

    def flags(self, cell: str) -> str:
        """Name the flags of a cell."""
        return ", ".join(self[f"flag_{flag}"] for flag in cell.split(";") if flag in FLAGS)

    def duration(self, seconds: float) -> str:
        """Write a length of time in whole minutes, or in seconds."""
        if seconds < SHORT_S:
            return self._texts["seconds"].format(round(seconds))
        return self.say("minutes_of", n=round(seconds / 60))

    def seconds(self, value: float) -> str:
        """Write seconds, with decimals only if needed."""
        return self.number(value, 0 if float(value).is_integer() else 2)


def clock(seconds: float) -> str:
    """Write a time as h:mm:ss."""
    whole = int(seconds + 1e-6)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


# --- sentences
# ---------------------------------------------------------------------------
def heading(record: FilmRecord, words: Words) -> str:
    """Write the film's title with its most important warning."""
    verdicts = []
    for model in record.models:
        if model.is_trained_on:
            verdicts.append(words["verdict_trained"])
        elif model.rate.unreliable >= 1:
            verdicts.append(words["verdict_unlike"])
        elif model.no_skill:
            verdicts.append(words["verdict_no_skill"])
    return " · ".join([record.title, *dict.fromkeys(verdicts)])


def evidence(model: ModelRecord, words: Words) -> str:
    """Say what films left out show of a model: clips and films tested, AUC, and whether it may be chance."""
    if model.evidence is None:
        return words["evidence_none"]
    tested = {"clips": model.evidence.n_clips, "films": model.evidence.n_movies}
    value, low, high = model.evidence.auc, model.evidence.auc_low, model.evidence.auc_high
    if value is None:
        measured = words.say("evidence_undefined", **tested)
    elif low is None or high is None:
        measured = words.say("evidence", auc=words.number(value), **tested)
    else:
        between = f"{words.number(value)} [{words.number(low)}, {words.number(high)}]"
        measured = words.say("evidence", auc=between, **tested)
    doubt = words["evidence_chance"] if model.no_skill else ""
    return f"{measured}{doubt}."


def first_sentence(model: ModelRecord, segments: pd.DataFrame, time: FilmTime, words: Words) -> str:
    """Say of what part of a film a model speaks, and which passages it marks there.

    Of a film of which it can judge little that is said first. What the passages are marked as is the
    codebook's own wording (`means`), or else the level's name. The concepts are those seen, and speaking for
    it, in at least half of the passages' time. Empty for a model that predicts nothing of it.

    Parameters
    ----------
    segments : DataFrame
        As `Timeline.segments` gives them.
    time : FilmTime
    """
    if model.calibration is None or model.is_trained_on or not time.judged_s:
        return ""
    judged = words.duration(time.judged_s)
    share = words.share(time.share(time.judged_s))
    if not time.is_mostly_judged:
        limits = words.say("sentence_little", judged=judged, share=share)
        return f"{limits} {_marked(model, segments, words, words['sentence_of_these'])}"
    before = words.say("sentence_all" if time.is_whole else "sentence_of", judged=judged, share=share)
    return _marked(model, segments, words, before)


def _marked(model: ModelRecord, segments: pd.DataFrame, words: Words, before: str) -> str:
    """Say which passages a model marks, after words that tell of which part of the film."""
    marked = model.means or f"“{' / '.join(model.positive) or model.task_title}”"
    passages = segments[segments["reaches"] == 1]
    if passages.empty:
        return words.say("sentence_none", before=before, means=marked)
    lengths = passages["judged_s"]
    seen: defaultdict[str, float] = defaultdict(float)
    for row, length in zip(passages.to_dict(orient="records"), lengths, strict=True):
        for part in reasons(row):
            if part.is_present and part.moves and part.is_for:
                seen[part.concept] += length
    total = float(lengths.sum())
    often = sorted((name for name in seen if seen[name] >= total / 2), key=lambda name: -seen[name])
    near_chance = {concept.name for concept in model.concepts if concept.is_near_chance}
    named = [f"{name} ({words['why_near_chance']})" if name in near_chance else name for name in often]
    return words.say(
        "sentence" if len(passages) > 1 else "sentence_one",
        before=before,
        n=len(passages),
        time=words.duration(total),
        means=marked,
        mostly=words.say("mostly", names=words.listed(named[:MOST_NAMES])) if named else "",
    )


def why(parts: Sequence[Reason], words: Words, near_chance: Set[str] = frozenset()) -> str:
    """Say what speaks for a passage and what against it: more or less than usual of which concepts.

    What moves its probability by less than `LEAST_CHANGE` is left out. Of a model without usual values, as a
    tree, the concepts are named alone.

    Parameters
    ----------
    parts : sequence of Reason
    words : Words
    near_chance : set of str
        Concepts that films left out show to be found no better than chance, which is said.
    """
    if not parts:
        return ""
    sentences = []
    for key, is_for in (("why_for", True), ("why_against", False)):
        own = [part for part in parts if part.moves and part.is_for == is_for]
        if own:
            named = [_reason(part, words, is_near_chance=part.concept in near_chance) for part in own]
            sentences.append(words.say(key, reasons="; ".join(named)))
    return " ".join(sentences) or words["why_nothing"]


def _reason(part: Reason, words: Words, *, is_near_chance: bool) -> str:
    """Write a reason: more or less than usual of a concept, with its probability beside the usual one."""
    amount = words.say(f"why_{part.amount}", concept=part.concept) if part.amount else part.concept
    notes = []
    if part.usual_p is not None:
        p, usual = words.probability(part.p), words.probability(part.usual_p)
        # Means of probabilities and of values may part: then numbers that say the opposite are not printed.
        if p != usual and (part.p > part.usual_p) == (part.amount == "more"):
            notes.append(words.say("why_usual", p=p, usual=usual))
    if is_near_chance:
        notes.append(words["why_near_chance"])
    return f"{amount} ({', '.join(notes)})" if notes else amount


def judge_name(name: str, words: Words) -> str:
    """Write the name of a judge, who may have none."""
    return name or words["no_name"]


def rate_sentence(rate: CorrectedRate, words: Words) -> str:
    """Say whose share of a film it is, with its interval, and how often they called windows positive.

    Of a panel whose judges may agree no better than chance that is said too.
    """
    who = words.listed([judge_name(name, words) for name in rate.annotators])
    sentence = words.say(
        "rate_panel" if rate.is_of_panel else "rate_judge",
        who=who,
        share=words.share(rate.value),
        low=words.share(rate.low),
        high=words.share(rate.high),
        level=words.share(rate.level),
        positives=words.listed([str(n) for n in rate.positives]),
        n=rate.n,
        all=rate.n_rows,
    )
    if rate.is_of_panel and any(may_be_chance(pair) for pair in rate.agreement):
        sentence = f"{sentence}; {words['rate_chance']}"
    return sentence


def rate_lines(found: "FilmRates", words: Words) -> list[str]:
    """Say a film's rates by one model: each judge's, the panel's or why there is none, and agreement."""
    lines = []
    definitions = {rate.definition for rate in found.rates}
    for rate in found.rates:
        line = rate_sentence(rate, words)
        if rate.worth is not None and rate.worth > rate.n:
            line += f"; {words.say('rate_worth', model=rate.model, worth=round(rate.worth))}"
        if rate.expected is not None:
            line += f"; {words.say('rate_expected', model=rate.model, share=words.share(rate.expected))}"
        if len(definitions) > 1:
            line = words.say("rate_under", definition=rate.definition[:12], rate=line)
        lines.append(line)
    if found.no_panel:
        lines.append(str(words.again(found.no_panel)))
    lines += [agreement(pair, words) for pair in found.agreement]
    if found.alpha is not None:
        lines.append(alpha_sentence(found.alpha, words))
    return lines


def alpha_sentence(alpha: "JudgesAlpha", words: Words) -> str:
    """Say how far three judges or more agree."""
    value = words.number(alpha.value)
    return words.say("judges_alpha", judges=alpha.n_judges, n=alpha.n_windows, alpha=value)


def may_be_chance(pair: JudgesAgreement) -> bool:
    """Whether two judges may agree no better than chance: their kappa is undefined, or may be 0."""
    return pair.low is None or pair.low <= 0


def agreement(pair: JudgesAgreement, words: Words) -> str:
    """Say on how many windows two people agree, and their kappa, and where it may be that of chance."""
    kappa = words["desk_undefined"] if pair.kappa is None else words.number(pair.kappa)
    if pair.low is not None and pair.high is not None:
        kappa += f" [{words.number(pair.low)}, {words.number(pair.high)}]"
    share, who = words.share(pair.alike / pair.n), words.listed(pair.annotators)
    if may_be_chance(pair):
        kappa = f"{kappa} ({words['pair_chance']})"
    return words.say("desk_pair", who=who, alike=pair.alike, n=pair.n, share=share, kappa=kappa)


def compared_sentence(compared: "FilmComparison", words: Words) -> str:
    """Write the groups' rates, as those who judged them would mark, and the trend of years."""
    rated = [row for row in compared.groups.to_dict("records") if not row["reason"]]
    if not rated:
        return words["no_group"]
    everybody, *others = {str(row["judges"]) for row in rated}
    rates = []
    for row in rated:
        value, low, high = (words.share(row[name]) for name in ("value", "low", "high"))
        said = words.say("rate_of", share=f"{value} [{low}, {high}]", group=words.again(row["group"]))
        rates.append(f"{row['judges']}: {said}" if others else said)
    trends = [row for row in compared.changes.to_dict("records") if row["change"] == LATER]
    rates += [words.say("later", points=words.points(row)) for row in trends if pd.notna(row["value"])]
    who = words["judges"] if others else everybody
    return words.say("would_mark", who=who, positive=compared.positive, rates="; ".join(rates))
