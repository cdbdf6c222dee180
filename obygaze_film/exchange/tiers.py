"""Build the content of every export of a scored film: tiers of labelled spans, and caveats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from obygaze_features.io import NO_LICENCE
from obygaze_features.manifest import BUILTIN, PeopleTier, builtin_codebook
from obygaze_film.claims import Words, phrases
from obygaze_film.claims.kinds import ConceptReason, Passage
from obygaze_film.claims.of_film import (
    corpus_experts,
    film_title,
    judged_time,
    model_evidence,
    no_passage,
    other_windows,
    passage,
    why_no_prediction,
)
from obygaze_film.exchange.decided import Decided
from obygaze_film.notes import said
from obygaze_film.positive import positive_of
from obygaze_film.schema import ModelRecord, durations

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

KINDS: Final = ("segments", "level", "concepts", "shots", "subtitles", "people")
"""Available tiers; all but those of people are the model's, or the film's beside it."""

PEOPLE: Final = "people"

ENGLISH: Final = Words("en")

SHOT: Final = "shot"
"""Text of a shot of which nothing is marked."""
"""Exports are in English."""

PREFIX: Final = "obygaze: "
"""Prefix of the name of every tier that a model wrote; importers skip these tiers."""


@dataclass(frozen=True, slots=True)
class TierSpan:
    """A span of a film with a text, and its probability, band and reasons, if any.

    The text names the concepts of `present` alone; `reasons` are for numbers with their signs.
    """

    start_s: float
    end_s: float
    text: str
    p: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    flags: str = ""
    number: str = ""
    rank: int | None = None
    claim: Passage | None = None
    decided: Decided | None = None

    @property
    def reasons(self) -> tuple[ConceptReason, ...]:
        """What speaks for a passage and against it, the heaviest first."""
        return () if self.claim is None else self.claim.reasons

    @property
    def present(self) -> tuple[str, ...]:
        """The concepts that are seen, the heaviest first."""
        return () if self.claim is None else self.claim.present

    @property
    def numbers(self) -> dict[str, float]:
        """The probability and its band, if any, rounded."""
        numbers = {"p": self.p, "p_low": self.p_low, "p_high": self.p_high}
        return {name: round(value, 4) for name, value in numbers.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Tier:
    """A named list of spans in time order, disjoint but for those of subtitles.

    `people` says who wrote it and how; None where it is the model's.
    """

    kind: str
    name: str
    spans: tuple[TierSpan, ...]
    people: PeopleTier | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """A film, prepared for the writers of formats.

    Attributes
    ----------
    film : Timeline
    model : ModelRecord
        The model whose scores are written.
    tiers : tuple of Tier
    levels : tuple of str
        Of the codebook, for people to choose from.
    rate : Fraction
        Frames per second.
    notice : str
        Why there is nothing, or no passage that reaches the threshold; empty if there is.
    start : (bool, int)
        Of time codes: whether they drop numbers, and the frame that the film begins with.
    has_contributions : bool
        Whether the format writes what concepts add to the logit.
    """

    film: "Timeline"
    model: ModelRecord
    tiers: tuple[Tier, ...]
    levels: tuple[str, ...]
    rate: Fraction
    notice: str
    start: tuple[bool, int]
    has_contributions: bool = False

    @property
    def spans(self) -> list[tuple[Tier, TierSpan]]:
        """All spans, each with its tier."""
        return [(tier, span) for tier in self.tiers for span in tier.spans]

    @property
    def has_model(self) -> bool:
        """Whether there are tiers beside those of people: what is changed in the file is in their sight."""
        return any(tier.kind != PEOPLE for tier in self.tiers) or not self.tiers

    @property
    def definition(self) -> str:
        """Digest of the definitions that people decided under; empty if unknown, or if there are several."""
        decided = [span.decided for _, span in self.spans if span.decided]
        definitions = {decision.definition for decision in decided if decision.level}
        return definitions.pop() if len(definitions) == 1 else ""

    @property
    def heading(self) -> str:
        """The film's title with its gravest warnings."""
        return phrases.title_sentence(film_title(self.film, self.model.key), ENGLISH)

    @property
    def positive(self) -> str:
        """What the model finds."""
        return positive_of(self.model).text

    @property
    def licence(self) -> str:
        """The model's licence; empty if none is stated."""
        return "" if self.model.licence == NO_LICENCE else self.model.licence

    @property
    def caveats(self) -> tuple[str, ...]:
        """Caveats of the scores and of what people decided, one sentence each, for every export."""
        notice = [self.notice] if self.notice else []
        decided = self._caveat_of_people()
        if not self.has_model:
            return (*decided, said("caveat_span_people", positive=self.positive), *notice)
        return (*self._caveats_of_scores(has_people=bool(decided)), *decided, *notice)

    def _caveat_of_people(self) -> list[str]:
        """Say whose decisions there are."""
        judges = {name for _, span in self.spans if span.decided for name in span.decided.judges}
        if not judges:
            return []
        return [said("caveat_decided", film=self.heading, judges=", ".join(sorted(judges)))]

    def _caveats_of_scores(self, *, has_people: bool) -> list[str]:
        model = self.model
        about = {"title": model.title, "task": model.task_title, "digest": model.sha256[:12] or "unknown"}
        ending = "." if has_people else said("caveat_people")
        lines: list[str] = [said("caveat_scores", **about, film=self.heading, rest=ending)]
        if positive_of(model).is_planted:
            lines += [said("caveat_span_planted", positive=self.positive), ENGLISH["about_1_planted"]]
        else:
            lines.append(said("caveat_span", positive=self.positive))
        lines.append(said("caveat_faces"))
        lines += self._caveats_of_p()
        lines += self._caveats_of_reading()
        experts = corpus_experts(model)
        if experts is not None:
            lines.append(phrases.experts_caveat(experts, ENGLISH))
        judged = judged_time(model, self.film.time(model.key), self.film.shots)
        if judged.unlike_s > 0 and model.calibration is not None:
            lines.append(phrases.unlike_caveat(judged, ENGLISH))
        if judged.nothing_s > 0:
            lines.append(phrases.nothing_caveat(judged, ENGLISH))
        if self.licence:
            lines.append(said("caveat_licence", licence=self.licence))
        return lines

    def _caveats_of_p(self) -> list[str]:
        """Say on what probabilities were calibrated, and what contributions are, as far as there are any."""
        model = self.model
        lines: list[str] = []
        if model.calibration is not None:
            levels = list(model.calibration.clips)
            if model.levels_left_out and levels:
                lines.append(said("caveat_p_levels", levels=ENGLISH.listed(levels)))
            else:
                lines.append(said("caveat_p"))
        has_passages = any(tier.kind == "segments" and tier.spans for tier in self.tiers)
        if has_passages and model.threshold_p is not None:
            lines.append(phrases.threshold_caveat(model.threshold_p, ENGLISH))
        has_reasons = any(span.reasons for _, span in self.spans)
        if self.has_contributions and has_reasons:
            lines.append(said("caveat_contributions"))
        return lines

    def _caveats_of_reading(self) -> list[str]:
        """Say what the page says too of how to read the scores: what was tested, and on what."""
        model, lines = self.model, []
        if model.is_trained_on:
            lines.append(ENGLISH["trained_on"])
        lines.append(phrases.evidence_sentence(model_evidence(model), ENGLISH))
        windows = other_windows(model, self.film.record.windows)
        if windows is not None:
            lines.append(phrases.windows_sentence(windows, ENGLISH))
        near_chance = [concept.name for concept in model.concepts if concept.is_near_chance]
        if near_chance:
            lines.append(phrases.near_chance_caveat(near_chance, ENGLISH))
        return lines


def tiers_of(film: "Timeline", model: ModelRecord, kinds: Sequence[str], top: int) -> list[Tier]:
    """Collect some kinds of tiers; passages that reach the threshold, and up to `top` the highest others."""
    tiers = []
    if "segments" in kinds:
        tiers.append(_tier("segments", "segments", _passages(film, model, top)))
    if "level" in kinds:
        tiers.append(_tier("level", "level (p)", _levels(film, model)))
    if "concepts" in kinds:
        tiers += _concepts(film, model)
    if "shots" in kinds:
        tiers.append(_tier("shots", "shots", _shots(film)))
    if "subtitles" in kinds and len(film.subtitles):
        lines = film.subtitles.itertuples(index=False, name=None)
        tiers.append(_tier("subtitles", "subtitles", [TierSpan(*line) for line in lines]))
    return tiers


def _tier(kind: str, name: str, spans: Sequence[TierSpan]) -> Tier:
    return Tier(kind, f"{PREFIX}{name}", tuple(spans))


def levels_of(model: ModelRecord) -> tuple[str, ...]:
    """Return the levels of a model's codebook, for people to choose from."""
    is_builtin = model.codebook in BUILTIN
    return builtin_codebook(model.codebook).level_names if is_builtin else tuple(model.levels)


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict(orient="records")


def notice_of(film: "Timeline", model: ModelRecord, tiers: Sequence[Tier], kinds: Sequence[str]) -> str:
    """Say in one line why there are no passages, or nothing at all."""
    if any(tier.kind == "segments" for tier in tiers):
        judged = film.time(model.key)
        if model.threshold_p is None or not judged.judged_s:
            reason = why_no_prediction(model, judged)
            return said("export_no_p", why=phrases.no_place_phrase(reason, ENGLISH))
        if film.segments(model.key, top=0).empty:
            return phrases.no_passage_sentence(no_passage(model), ENGLISH)
    elif not any(tier.spans for tier in tiers):
        return said("export_nothing", kinds=" or ".join(dict.fromkeys(kinds)))
    return ""


def _passages(film: "Timeline", model: ModelRecord, top: int) -> list[TierSpan]:
    """Make a span of each passage, in time order."""
    spans = []
    for row in _records(film.segments(model.key, top=top).sort_values("start_s", kind="stable")):
        claim = passage(model, row)
        spans.append(
            _with_p(
                row,
                phrases.passage_label(claim, ENGLISH),
                number=claim.name,
                rank=row["rank"],
                claim=claim,
            )
        )
    return spans


def _with_p(row: Mapping[Any, Any], text: str, **fields: Any) -> TierSpan:
    """Make a span of a row with a probability and its band."""
    return TierSpan(
        row["start_s"],
        row["end_s"],
        text,
        p=row["p"],
        p_low=row["p_low"],
        p_high=row["p_high"],
        flags=row["flags"],
        **fields,
    )


def _levels(film: "Timeline", model: ModelRecord) -> list[TierSpan]:
    """Make a span of each row that has a probability."""
    rows = _records(film.rows(model.key).dropna(subset="p"))
    return [_with_p(row, ENGLISH.probability(row["p"])) for row in rows]


def _shots(film: "Timeline") -> list[TierSpan]:
    """Make a span of each shot: what is seen in it, if that was marked."""
    return [TierSpan(row["start_s"], row["end_s"], row["flags"] or SHOT) for row in _records(film.shots)]


def _concepts(film: "Timeline", model: ModelRecord) -> list[Tier]:
    """Make a tier for each concept that the model finds better than chance: spans where it is seen.

    A model without concepts has no such tier: what another model of the film finds isn't its finding.
    """
    rows = film.rows(model.key)
    tiers = []
    for concept in model.concepts:
        p = rows.get(f"{concept.name}_p")
        if p is not None and concept.is_found:
            marked = rows.assign(p=p)[(p >= concept.threshold_p).to_numpy()]
            tiers.append(_tier("concepts", concept.name, _merged(marked, concept.name)))
    return tiers


def _merged(rows: pd.DataFrame, name: str) -> list[TierSpan]:
    """Join rows that touch; the probability is their mean by duration."""
    spans = []
    begins_anew = rows["start_s"] != rows["end_s"].shift()
    for _, group in rows.groupby(begins_anew.cumsum()):
        mean = float(np.average(group["p"], weights=durations(group)))
        start_s = float(group["start_s"].iloc[0])
        end_s = float(group["end_s"].iloc[-1])
        spans.append(TierSpan(start_s, end_s, phrases.concept_span_label(name, mean, ENGLISH), p=mean))
    return spans
