"""Build the content of every export of a scored film: tiers of labelled spans, and caveats."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from obygaze_features.io import NO_LICENCE
from obygaze_features.manifest import BUILTIN, builtin_codebook
from obygaze_features.screen import probability
from obygaze_film.schema import ModelRecord, durations
from obygaze_film.segments import Reason, reasons

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

KINDS: Final = ("segments", "level", "concepts", "shots", "subtitles")
"""Available tiers."""

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
    rank: int | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def present(self) -> tuple[str, ...]:
        """The concepts that are seen, the heaviest first."""
        return tuple(reason.concept for reason in self.reasons if reason.is_present)

    @property
    def numbers(self) -> dict[str, float]:
        """The probability and its band, if any, rounded."""
        numbers = {"p": self.p, "p_low": self.p_low, "p_high": self.p_high}
        return {name: round(value, 4) for name, value in numbers.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Tier:
    """A named list of spans in time order, disjoint but for those of subtitles."""

    kind: str
    name: str
    spans: tuple[TierSpan, ...]


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
    """

    film: "Timeline"
    model: ModelRecord
    tiers: tuple[Tier, ...]
    levels: tuple[str, ...]
    rate: Fraction
    notice: str
    start: tuple[bool, int] = (False, 0)

    @property
    def spans(self) -> list[tuple[Tier, TierSpan]]:
        """All spans, each with its tier."""
        return [(tier, span) for tier in self.tiers for span in tier.spans]

    @property
    def positive(self) -> str:
        """Title of what the model finds."""
        return "/".join(self.model.positive) or self.model.task_title

    @property
    def licence(self) -> str:
        """The model's licence; empty if none is stated."""
        return "" if self.model.licence == NO_LICENCE else self.model.licence

    @property
    def caveats(self) -> tuple[str, ...]:
        """Caveats of the scores, one sentence each, for every export."""
        model, record = self.model, self.film.record
        digest = model.sha256[:12] or "unknown"
        lines = [
            (
                f"Scores of a model ({model.title}, {model.task_title}, SHA-256 {digest}) "
                f"for {self.film.heading}"
                + ("." if any(tier.kind == "people" for tier in self.tiers) else "; no annotation by people.")
            ),
            (
                f"'{self.positive}' is how a span is staged, as judged by a few experts of one school: "
                "no property of a person, an actor or a director, and no verdict on a film. "
                "Disagreement is data."
            ),
            "No face is recognised, no person identified, no gender inferred.",
            (
                "p is calibrated on films left out; [a, b] is its 80 % band. "
                "Contributions are shares of a logit, no causes."
            ),
        ]
        if record.human is not None:
            lines.append(
                f"Two experts, {record.human.corpus}, agreed second by second with kappa "
                f"{record.human.kappa:.2f}, and on boundaries within 5 s with F1 "
                f"{record.human.boundary_f1:.2f}."
            )
        if model.rate.unreliable > 0:
            share = f"{100 * model.rate.unreliable:.0f} %"
            lines.append(f"{share} of the time is unlike the training films, or missing, and has no score.")
        if self.licence:
            lines.append(f"Model licence: {self.licence}.")
        if self.notice:
            lines.append(self.notice)
        return tuple(lines)


def exported(
    film: "Timeline", kinds: Sequence[str], *, rate: Fraction, top: int, model: str | None
) -> Exported:
    """Collect the tiers of a film: what every format writes.

    Passages are those that reach the threshold; a larger `top` adds the highest others.
    """
    chosen = film.model(model)
    rows = film.rows(chosen.key)
    every = [
        Tier("segments", f"{PREFIX}segments", _segments(film, chosen, top)),
        Tier("level", f"{PREFIX}level (p)", _level(rows)),
        *_concepts(film, chosen),
        Tier("shots", f"{PREFIX}shots", _shots(film)),
    ]
    every += _texts("subtitles", "subtitles", film.subtitles)
    tiers = [tier for tier in every if tier.kind in kinds]
    known = chosen.codebook in BUILTIN
    levels = builtin_codebook(chosen.codebook).level_names if known else (*chosen.negative, *chosen.positive)
    return Exported(film, chosen, tuple(tiers), tuple(levels), rate, _notice(film, chosen, tiers))


def _notice(film: "Timeline", model: ModelRecord, tiers: Sequence[Tier]) -> str:
    """Say in one line why there are no passages, or nothing at all."""
    if any(tier.kind == "segments" for tier in tiers):
        if model.threshold_p is None or not film.rows(model.key)["p"].notna().any():
            return "No passage is marked: the film has no probability."
        if film.segments(model.key, top=0).empty:
            return f"No passage reaches the threshold, {probability(model.threshold_p)}."
    elif not any(tier.spans for tier in tiers):
        return f"There is nothing to write: no {' or '.join(dict.fromkeys(tier.kind for tier in tiers))}."
    return ""


def _segments(film: "Timeline", model: ModelRecord, top: int) -> tuple[TierSpan, ...]:
    table = film.segments(model.key, top=top).sort_values("start_s", kind="stable")
    spans = []
    for row in table.to_dict(orient="records"):
        start, end, p, low, high = (float(row[name]) for name in ("start_s", "end_s", "p", "p_low", "p_high"))
        span = TierSpan(start, end, "", p, low, high, str(row["flags"]), int(row["rank"]), reasons(row))
        parts = [f"{span.rank}. {'/'.join(model.positive) or model.task_title} {_with_band(p, low, high)}"]
        parts += [", ".join(span.present), "" if row["reaches"] else "below the threshold"]
        parts += [span.flags.replace(";", ", ")]
        spans.append(replace(span, text="; ".join(filter(None, parts))))
    return tuple(spans)


def _with_band(p: float, low: float, high: float) -> str:
    if probability(high) == probability(0.0):
        return probability(high)
    return f"{probability(p)} [{probability(low, '<')}, {probability(high)}]"


def _level(rows: pd.DataFrame) -> tuple[TierSpan, ...]:
    """Make one span per row that has a probability."""
    spans = []
    for row in rows[rows["p"].notna()].to_dict(orient="records"):
        start, end, p, low, high = (float(row[name]) for name in ("start_s", "end_s", "p", "p_low", "p_high"))
        spans.append(TierSpan(start, end, probability(p), p, low, high, row["flags"]))
    return tuple(spans)


def _concepts(film: "Timeline", model: ModelRecord) -> list[Tier]:
    """Make a tier for each concept found better than chance: spans where it is seen."""
    source = next((candidate for candidate in (model, *film.record.models) if candidate.concepts), None)
    if source is None:
        return []
    rows = film.rows(source.key)
    tiers = []
    for concept in source.concepts:
        p = rows.get(f"{concept.name}_p")
        if p is None or not concept.is_found:
            continue
        there = rows.assign(p=p)[(p >= concept.threshold_p).to_numpy()]
        tiers.append(Tier("concepts", f"{PREFIX}{concept.name}", _merged(there, concept.name)))
    return tiers


def _merged(rows: pd.DataFrame, name: str) -> tuple[TierSpan, ...]:
    """Join rows that touch; the probability is their mean by duration."""
    spans = []
    for _, group in rows.groupby((rows["start_s"] != rows["end_s"].shift()).cumsum()):
        mean = float(np.average(group["p"], weights=durations(group)))
        start, end = float(group["start_s"].iloc[0]), float(group["end_s"].iloc[-1])
        spans.append(TierSpan(start, end, f"{name} {mean:.2f}", mean))
    return tuple(spans)


def _texts(kind: str, name: str, table: pd.DataFrame) -> list[Tier]:
    """Make the tier of a table of `TEXT_COLUMNS`, unless it is empty."""
    spans = tuple(TierSpan(*row) for row in table.itertuples(index=False, name=None))
    return [Tier(kind, f"{PREFIX}{name}", spans)] if spans else []


def _shots(film: "Timeline") -> tuple[TierSpan, ...]:
    return tuple(
        TierSpan(float(row["start_s"]), float(row["end_s"]), row["flags"] or row["detector"])
        for row in film.shots.to_dict(orient="records")
    )
