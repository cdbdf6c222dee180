"""Build the content of every export of a scored film: tiers of labelled spans, and caveats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from obygaze_features.io import NO_LICENCE
from obygaze_features.manifest import BUILTIN, Codebook, PeopleTier, builtin_codebook
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
from obygaze_film.notes import message
from obygaze_film.positive import positive_of
from obygaze_film.schema import ModelRecord, durations, is_counted

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

KINDS: Final = ("segments", "level", "concepts", "shots", "subtitles", "people")
"""Kinds of tiers. Segments, level and concepts are a model's, shots and subtitles the film's."""

PEOPLE: Final = "people"
"""Kind of the tiers of what people decided."""

ENGLISH: Final = Words("en")
"""The language of all exports."""

SHOT: Final = "shot"
"""Text of a shot that has no flags."""

PREFIX: Final = "obygaze: "
"""Prefix of the name of every tier that a model wrote; importers skip these tiers."""


@dataclass(frozen=True, slots=True)
class TierSpan:
    """A span of a film with a text: a passage, row, concept, shot, subtitle or decision.

    Attributes
    ----------
    start_s, end_s : float
        Ends of the span, in seconds.
    text : str
        Of a passage it names the concepts that are seen (`present`); others have no place in a text.
    p, p_low, p_high : float or None
        The model's probability and the ends of its band.
    flags : str
        Flags of its rows, joined by semicolons.
    number : str
        Number of a passage, in time order.
    rank : int or None
        Rank of a passage by probability, from 1 on.
    claim : Passage or None
        What is claimed of a passage.
    decided : Decided or None
        What people decided, on tiers of people.
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
        """The concepts that raise or lower a passage's probability, the largest contribution first.

        Empty for spans that are no passages.
        """
        return () if self.claim is None else self.claim.reasons

    @property
    def present(self) -> tuple[str, ...]:
        """The concepts that are seen in a passage, the largest contribution first; else empty."""
        return () if self.claim is None else self.claim.present

    @property
    def numbers(self) -> dict[str, float]:
        """The probability and the ends of its band, with four decimals; missing ones are left out."""
        numbers = {"p": self.p, "p_low": self.p_low, "p_high": self.p_high}
        return {name: round(value, 4) for name, value in numbers.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Tier:
    """A named list of spans in time order. Only subtitles may overlap.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
    spans : tuple of TierSpan
    people : PeopleTier or None
        Who decided what is on the tier, and how; None if it is a tier of the model or the film.
    """

    kind: str
    name: str
    spans: tuple[TierSpan, ...]
    people: PeopleTier | None = None


class PlacedSpan(NamedTuple):
    """A span, and the tier that it is on."""

    tier: Tier
    span: TierSpan


class TimeCodeStart(NamedTuple):
    """The time code of a film's first frame.

    Attributes
    ----------
    is_dropping : bool
        Whether time codes are drop-frame.
    first_frame : int
        The time code as a number of frames.
    """

    is_dropping: bool
    first_frame: int


@dataclass(frozen=True, slots=True)
class Exported:
    """A film, prepared for the writers of formats.

    Attributes
    ----------
    film : Timeline
    model : ModelRecord
        The model whose scores are written.
    tiers : tuple of Tier
    codebook : str
        Name of the codebook under which people gave levels; if it is not known, of the model's.
    levels : tuple of str
        Levels of this codebook, for people to choose from in the other tool.
    rate : Fraction
        Frames per second.
    notice : str
        Why there is no passage that reaches the threshold, or nothing at all; empty if there is one.
    start : TimeCodeStart
        Where the time codes of formats with time codes begin.
    has_contributions : bool
        Whether the format writes the contributions of concepts to the model's logit.
    has_concepts : bool
        Whether tiers of concepts were asked for.
    """

    film: "Timeline"
    model: ModelRecord
    tiers: tuple[Tier, ...]
    codebook: str
    levels: tuple[str, ...]
    rate: Fraction
    notice: str
    start: TimeCodeStart
    has_contributions: bool = False
    has_concepts: bool = False

    @property
    def spans(self) -> list[PlacedSpan]:
        """All spans, each with its tier."""
        return [PlacedSpan(tier, span) for tier in self.tiers for span in tier.spans]

    @property
    def has_model(self) -> bool:
        """Whether the file holds a model's output, so that judgements written into it are not blind.

        A file without any tier counts as one that does.
        """
        if not self.tiers:
            return True
        return any(tier.kind != PEOPLE for tier in self.tiers)

    @property
    def definition(self) -> str:
        """Digest of the definitions by which people gave the levels in the file (`definition_of_people`)."""
        return definition_of_people([span.decided for _, span in self.spans if span.decided])

    @property
    def heading(self) -> str:
        """The film's title, with the gravest warnings about the model's scores of it."""
        return phrases.title_sentence(film_title(self.film, self.model.key), ENGLISH)

    @property
    def positive(self) -> str:
        """The names of the positive levels, or of the concept, that the model finds."""
        return positive_of(self.model).text

    @property
    def licence(self) -> str:
        """The model's licence; empty if none is stated."""
        return "" if self.model.licence == NO_LICENCE else self.model.licence

    @property
    def caveats(self) -> tuple[str, ...]:
        """Caveats of the scores and of what people decided, one sentence each, for every export.

        The order is: the scores if there are any, the people if there are any, and the notice, if any, last.
        """
        of_people = self._caveats_of_people()
        if self.has_model:
            caveats = [*self._caveats_of_scores(has_people=bool(of_people)), *of_people]
        else:
            caveats = [*of_people, message("caveat_span_people", positive=self.positive)]
        if self.notice:
            caveats.append(self.notice)
        return tuple(caveats)

    def _caveats_of_people(self) -> list[str]:
        """Name the people whose decisions are in the file, in one sentence; empty if there are none."""
        judges: set[str] = set()
        for _, span in self.spans:
            if span.decided:
                judges.update(span.decided.judges)
        if not judges:
            return []
        return [message("caveat_decided", film=self.heading, judges=", ".join(sorted(judges)))]

    def _caveats_of_scores(self, *, has_people: bool) -> list[str]:
        """Say what the scores mean, how far they can be trusted, and what part of the film has none.

        `has_people` says whether the file also holds people's decisions.
        """
        return [
            *self._caveats_of_labels(has_people=has_people),
            message("caveat_faces"),
            *self._caveats_of_p(),
            *self._caveats_of_tests(),
            *self._caveats_of_experts(),
            *self._caveats_of_time(),
            *self._caveats_of_licence(),
        ]

    def _caveats_of_labels(self, *, has_people: bool) -> list[str]:
        """Say which model the scores are from, what it marks, and who gave the labels of its training.

        A program may have given (planted) some or all of these labels.
        """
        model = self.model
        no_person_judged = message("caveat_people")
        end_of_sentence = "." if has_people else no_person_judged
        scores = message(
            "caveat_scores",
            title=model.title,
            task=model.task_title,
            digest=model.sha256[:12] or "unknown",
            film=self.heading,
            rest=end_of_sentence,
        )
        key_of_span = "caveat_span_planted" if positive_of(model).is_planted else "caveat_span"
        lines: list[str] = [scores, message(key_of_span, positive=self.positive)]
        planted_sentence = phrases.planted_sentence(model, ENGLISH)  # empty if people gave all labels
        if planted_sentence:
            lines.append(planted_sentence)
        return lines

    def _caveats_of_experts(self) -> list[str]:
        """Say how far experts agree on what the model finds; empty if that is unknown."""
        experts = corpus_experts(self.model)
        return [] if experts is None else [phrases.experts_caveat(experts, ENGLISH)]

    def _caveats_of_time(self) -> list[str]:
        """Say which parts of the film have no score, and why; empty if all of it has one.

        Time without a score is unlike the training clips, or it is black or credits.
        """
        model = self.model
        judged = judged_time(model, self.film.time(model.key), self.film.shots)
        caveats = [phrases.unjudged_caveat(judged, ENGLISH), phrases.black_caveat(judged, ENGLISH)]
        return [caveat for caveat in caveats if caveat]

    def _caveats_of_licence(self) -> list[str]:
        """Name the model's licence; empty if none is stated."""
        return [message("caveat_licence", licence=self.licence)] if self.licence else []

    def _caveats_of_p(self) -> list[str]:
        """Say what the probabilities, the threshold and the contributions mean, as far as the file has them.

        A model may be calibrated on some of the levels alone: then these are named.
        """
        model = self.model
        lines: list[str] = []
        # Without calibration there are no probabilities.
        if model.calibration is not None:
            calibrated_levels = list(model.calibration.clips)
            if model.levels_left_out and calibrated_levels:
                lines.append(message("caveat_p_levels", levels=ENGLISH.listed(calibrated_levels)))
            else:
                lines.append(message("caveat_p"))
        has_passages = any(tier.kind == "segments" and tier.spans for tier in self.tiers)
        if has_passages and model.threshold_p is not None:
            lines.append(phrases.threshold_caveat(model.threshold_p, ENGLISH))
        has_reasons = any(span.reasons for _, span in self.spans)
        if self.has_contributions and has_reasons:
            lines.append(message("caveat_contributions"))
        return lines

    def _caveats_of_tests(self) -> list[str]:
        """Say how the model was tested, in the sentences that the film's page has too.

        They say whether it was trained on this film, how well it did on films left out of training, whether
        windows of this film are longer or shorter than its clips, and which concepts it finds no better than
        chance.
        """
        model = self.model
        lines: list[str] = []
        if model.is_trained_on:
            lines.append(ENGLISH["trained_on"])
        lines.append(phrases.evidence_sentence(model_evidence(model), ENGLISH))
        windows = other_windows(model, self.film.record.windows)
        if windows is not None:
            lines.append(phrases.windows_sentence(windows, ENGLISH))
        near_chance = [concept.name for concept in model.concepts if concept.is_near_chance]
        if near_chance:
            lines.append(phrases.near_chance_caveat(near_chance, ENGLISH))
        return [*lines, *self.left_out]

    @property
    def left_out(self) -> list[str]:
        """Say which concepts have no tier, in one sentence; empty if all have one, or none was asked for.

        A concept has a tier only if tests show that the model finds it better than chance.
        """
        if not self.has_concepts:
            return []
        names = [concept.name for concept in self.model.concepts if not concept.is_found]
        return [phrases.without_tier_caveat(names, ENGLISH)] if names else []


def tiers_of(film: "Timeline", model: ModelRecord, kinds: Sequence[str], top: int) -> list[Tier]:
    """Make the tiers of a film that have one of these kinds, by one model.

    Parameters
    ----------
    film : Timeline
    model : ModelRecord
    kinds : sequence of str
        Some of `KINDS`; `people` is ignored.
    top : int
        Minimum number of passages (`segments`). If fewer reach the threshold, the highest others are added.
    """
    tiers = []
    if "segments" in kinds:
        tiers.append(_tier(kind="segments", name="segments", spans=_passages(film, model, top)))
    if "level" in kinds:
        tiers.append(_tier(kind="level", name="level (p)", spans=_levels(film, model)))
    if "concepts" in kinds:
        tiers += _concepts(film, model)
    if "shots" in kinds:
        tiers.append(_tier(kind="shots", name="shots", spans=_shots(film)))
    if "subtitles" in kinds and len(film.subtitles):
        tiers.append(_tier(kind="subtitles", name="subtitles", spans=_subtitles(film)))
    return tiers


def _tier(kind: str, name: str, spans: Sequence[TierSpan]) -> Tier:
    """Make a tier of the model or the film; its name gets the prefix by which importers skip such tiers."""
    return Tier(kind, f"{PREFIX}{name}", tuple(spans))


def definition_of_people(decided: Sequence[Decided]) -> str:
    """Return the digest of the definitions under which people gave levels; "" if unknown, or if several.

    Decisions that do not say theirs are ignored, as where judgements are counted (`Judgements.under`): they
    are no other definition, and whoever changes a level in an export reads the one that it names.
    """
    definitions = {decision.definition for decision in decided if decision.level and decision.definition}
    return definitions.pop() if len(definitions) == 1 else ""


def codebook_of_people(decided: Sequence[Decided]) -> Codebook | None:
    """Return the codebook of the definitions under which people gave levels (`definition_of_people`).

    It is None if these are not known, or if they are several.
    """
    definition = definition_of_people(decided)
    if not definition:
        return None
    for decision in decided:
        if decision.level and decision.definition == definition:
            return decision.codebook
    return None


def levels_of(model: ModelRecord) -> tuple[str, ...]:
    """Return the levels of a model's codebook.

    Only built-in codebooks are known by their name; of any other one, the model's record has the levels.
    """
    is_builtin = model.codebook in BUILTIN
    return builtin_codebook(model.codebook).level_names if is_builtin else tuple(model.levels)


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a table as dicts: column -> value."""
    return table.to_dict(orient="records")


def notice_of(film: "Timeline", model: ModelRecord, tiers: Sequence[Tier], kinds: Sequence[str]) -> str:
    """Say why an exported file has not what its reader looks for in it; empty if it has.

    In a file with a tier of passages, that is a passage that reaches the threshold. In any other file it is a
    span of any kind.

    Parameters
    ----------
    film : Timeline
    model : ModelRecord
    tiers : sequence of Tier
        Those of the file.
    kinds : sequence of str
        The kinds of tiers that were asked for.
    """
    has_tier_of_passages = any(tier.kind == "segments" for tier in tiers)
    if has_tier_of_passages:
        return _why_no_passage(film, model)
    has_spans = any(tier.spans for tier in tiers)
    if not has_spans:
        return message("export_nothing", kinds=" or ".join(dict.fromkeys(kinds)))
    return ""


def _why_no_passage(film: "Timeline", model: ModelRecord) -> str:
    """Say why no passage of a film reaches the threshold; empty if one does."""
    time = film.time(model.key)
    if model.threshold_p is None or not time.judged_s:
        reason = why_no_prediction(model, time)
        return message("export_no_p", why=phrases.no_place_phrase(reason, ENGLISH))
    reaching_passages = film.segments(model.key, top=0)  # none below the threshold is added
    if reaching_passages.empty:
        return phrases.no_passage_sentence(no_passage(model), ENGLISH)
    return ""


def _passages(film: "Timeline", model: ModelRecord, top: int) -> list[TierSpan]:
    """Make a span of each passage, in time order, with its label, number, rank and claim.

    `top` is how many passages to list, if the film has as many: those that reach the threshold are all
    listed, and weaker ones are added.
    """
    in_time_order = film.segments(model.key, top=top).sort_values("start_s", kind="stable")
    spans = []
    for row in _records(in_time_order):
        claim = passage(model, row)
        label = phrases.passage_label(claim, ENGLISH)
        number_of_passage = claim.name  # such as "3", or "w2" of a weaker one
        spans.append(_scored_span(row, label, number=number_of_passage, rank=row["rank"], claim=claim))
    return spans


def _scored_span(row: Mapping[Any, Any], text: str, **fields: Any) -> TierSpan:
    """Make a span, with this text, of a table's row that has a probability and its band.

    `fields` are further fields of the `TierSpan`.
    """
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
    """Make a span of each row of a film's timeline that counts; its text is the row's probability.

    A row is a shot, or a step of time if shots are not known.
    """
    rows = film.rows(model.key)
    counted = _records(rows[is_counted(rows)])
    return [_scored_span(row, ENGLISH.probability(row["p"])) for row in counted]


def _shots(film: "Timeline") -> list[TierSpan]:
    """Make a span of each shot; its text is the shot's flags, or `SHOT` if it has none."""
    return [TierSpan(row["start_s"], row["end_s"], row["flags"] or SHOT) for row in _records(film.shots)]


def _subtitles(film: "Timeline") -> list[TierSpan]:
    """Make a span of each subtitle."""
    lines = film.subtitles.itertuples(index=False, name=None)
    return [TierSpan(start_s, end_s, text) for start_s, end_s, text in lines]


def _concepts(film: "Timeline", model: ModelRecord) -> list[Tier]:
    """Make a tier of each concept that the model finds better than chance: the spans where it is seen.

    A model without concepts has no such tier, even if another model of the film finds concepts.
    """
    all_rows = film.rows(model.key)
    rows = all_rows[is_counted(all_rows)]
    tiers = []
    for concept in model.concepts:
        p = rows.get(f"{concept.name}_p")
        if p is None or not concept.is_found:  # `is_found`: better than chance, in tests
            continue
        is_seen = (p >= concept.threshold_p).to_numpy()
        seen_rows = rows.assign(p=p)[is_seen]
        tiers.append(_tier("concepts", concept.name, _joined(seen_rows, concept.name)))
    return tiers


def _joined(rows: pd.DataFrame, concept_name: str) -> list[TierSpan]:
    """Join the rows in which a concept is seen to spans, where they follow each other without a gap.

    The probability of a span is the mean of its rows, weighted by their durations; its text names the concept
    and this mean. `rows` are in time order.
    """
    spans = []
    # Rows that follow each other share an edge exactly: both have the same float.
    follows_gap = rows["start_s"] != rows["end_s"].shift()
    number_of_span = follows_gap.cumsum()
    for _, group in rows.groupby(number_of_span):
        mean = float(np.average(group["p"], weights=durations(group)))
        start_s = float(group["start_s"].iloc[0])
        end_s = float(group["end_s"].iloc[-1])
        text = phrases.concept_span_label(concept_name, mean, ENGLISH)
        spans.append(TierSpan(start_s, end_s, text, p=mean))
    return spans
