"""Compute what may be said of a scored film: what a model can judge, which passages it marks, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_film import schema
from obygaze_film.claims.kinds import (
    ALL_NOTHING,
    ALL_UNLIKE,
    ALL_UNREAD,
    BELOW_THRESHOLD,
    BOTH_SIDES,
    DECIDES_NOTHING,
    FEW_WINDOWS,
    FOUND_BY_DETECTOR,
    LEVELS_LEFT_OUT,
    LITTLE_JUDGED,
    MEAN_BELOW,
    NEAR_CHANCE,
    NO_SKILL,
    OF_CONCEPT,
    PARTLY_READ,
    REFUSED,
    TRAINED_ON,
    UNCALIBRATED,
    UNDEFINED,
    UNTESTED,
    AtUsual,
    Bounds,
    ClaimTime,
    ClassSeen,
    ConceptFound,
    ConceptReason,
    ExpectedShare,
    Experts,
    FilmClaim,
    FlaggedTime,
    FrequentConcept,
    JudgedTime,
    MarkedPassages,
    ModelEvidence,
    Moved,
    NoPassage,
    OtherWindows,
    Passage,
    SameProbability,
    StagingMean,
    Title,
    UnjudgedSpan,
)
from obygaze_film.classes import classes_of_span
from obygaze_film.codebook_names import names_of
from obygaze_film.film_time import BLACK_OR_CREDITS, UNREAD, FilmTime, film_time, staging_means
from obygaze_film.positive import Positive, positive_of
from obygaze_film.schema import (
    DETECTORS,
    NO_CLASSES,
    NO_CONTENT,
    PARTIAL,
    UNLIKE,
    ConceptRecord,
    ModelRecord,
    WindowsRecord,
    durations,
    has_flag,
    is_counted,
)
from obygaze_film.segments import (
    DECIMALS,
    MIN_CHANGE,
    MIN_CONTRIBUTION,
    changes_of_rows,
    columns_of,
    n_reaching,
    reasons,
)
from obygaze_film.segments import Reason as SegmentReason

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

OTHER_FILMS: Final = ClaimTime("other films")

BAND_LEVEL: Final = 0.8
"""Confidence level of the bands of probabilities, and of the interval of a new film's expected share."""

LEVEL: Final = 0.95
"""Confidence level of the intervals over films, and of those of judged shares."""

SAME: Final = 1e-6
"""By how much probabilities, or shares, may differ that are one number."""

MIN_P_DIFFERENCE: Final = 0.01
"""Least difference between a film's probabilities that tells its scenes apart: no scholar would read more
out of the second decimal."""

HALF: Final = 0.5
"""Share of the passages' time in which a concept must be seen to be named as frequent there."""

LENGTH_TOLERANCE: Final = 0.1
"""Share of the length of the model's clips by which windows may differ from it without a claim."""

FLAGS_OF_OTHER_CLAIMS: Final = ("unlike", "missing", "black", "credits", "trained_on", "no_skill")
"""Flags that claims of other kinds report: judged time, title and evidence."""

CONDITIONS_OF_UNJUDGED: Final = {BLACK_OR_CREDITS: ALL_NOTHING, UNREAD: ALL_UNREAD, UNLIKE: ALL_UNLIKE}
"""Why no second of a film is judged (`FilmTime.why_unjudged`) -> the condition of its claims."""

NOTHING_JUDGED: Final = (ALL_NOTHING, ALL_UNREAD, ALL_UNLIKE)
"""Reasons for no prediction that lie in the film, not in the model."""

WARNINGS_OF_TITLE: Final = (TRAINED_ON, *NOTHING_JUDGED)
"""Reasons for no prediction that are warnings beside a film's title."""


@checked
def film_claims(film: "Timeline", key: str | None = None) -> list[FilmClaim]:
    """Compute every claim on a scored film by one model.

    Parameters
    ----------
    film : Timeline
    key : str, optional
        Model; by default the first that decides.

    Returns
    -------
    list of FilmClaim
        In this order: `Title`, `ModelEvidence`, `JudgedTime`, `MarkedPassages`, `SameProbability`, a
        `Passage` for each segment by time, `ExpectedShare`, a `FlaggedTime` for each flag, `OtherWindows` and
        `Experts`. A claim that does not hold of the film, or that the model cannot make, is left out.

    Raises
    ------
    FilmError
        No model has this key.
    """
    model = film.model(key)
    segments = film.segments(model.key)
    judged = judged_time(model, film.time(model.key), film.shots)
    claims: list[FilmClaim | None] = [
        film_title(film, model.key),
        model_evidence(model),
        judged,
        marked_passages(film, model, segments),
        same_probability(film, model),
        *passages(model, segments.sort_values("start_s"), film.classes),
        expected_share(model, film.rows(model.key)),
        *flagged_times(model, judged),
        other_windows(model, film.record.windows),
        corpus_experts(model),
    ]
    return [claim for claim in claims if claim is not None]


def why_no_prediction(model: ModelRecord, time: FilmTime) -> str:
    """Return the condition that says why a model gives no prediction of a film; empty if it gives one.

    If there are several reasons, the gravest is returned. The gravest of all is that the model was trained on
    the film. Titles, pages, exports and the terminal call this, so that they all give the same reason.
    """
    if model.decides and model.is_trained_on:
        return TRAINED_ON
    return _why_unjudged(model, time)


def _why_unjudged(model: ModelRecord, time: FilmTime) -> str:
    """Return the condition that says why a film, or a span of it, has no probability; empty if it has one.

    `time` is how much of the film, or of the span, this model can judge.
    """
    if not model.decides:  # it scores concepts, and no level
        return DECIDES_NOTHING
    if model.calibration is None or model.threshold_p is None:
        return UNCALIBRATED
    # `why_unjudged` is empty if any second is judged.
    return CONDITIONS_OF_UNJUDGED.get(time.why_unjudged, "")


def film_title(film: "Timeline", key: str | None = None) -> Title:
    """Claim the title of a film, with the warnings to know before reading one model's numbers.

    The model is by default the first that decides. Warnings of the film's other models are not included.
    """
    model = film.model(key)
    warnings = _warnings_of_title(model, film.time(model.key))
    return Title(
        who=(model.key,),
        what=film.record.title,
        time=ClaimTime("film", film.record.duration_s),
        conditions=warnings,
        levels_left_out=_levels_left_out(model) if LEVELS_LEFT_OUT in warnings else (),
    )


def _warnings_of_title(model: ModelRecord, time: FilmTime) -> tuple[str, ...]:
    """Return the conditions to know before reading a model's numbers.

    If the film has no prediction for one of the reasons `WARNINGS_OF_TITLE`, only that reason is returned.
    Else the conditions say what makes the prediction doubtful.
    """
    reason = why_no_prediction(model, time)
    if reason in WARNINGS_OF_TITLE:
        return (reason,)  # without a prediction, warnings about its quality are pointless
    warnings = [NO_SKILL] if model.no_skill else []
    if model.decides:
        warnings += _conditions_of_levels(model)
    return tuple(warnings)


def _conditions_of_levels(model: ModelRecord) -> list[str]:
    """Return `LEVELS_LEFT_OUT` if a model was neither calibrated nor tested on some levels; else nothing."""
    return [LEVELS_LEFT_OUT] if model.levels_left_out else []


def _levels_left_out(model: ModelRecord) -> tuple[str, ...]:
    """Return the codebook's names of the levels on which a model was neither calibrated nor tested."""
    names = names_of(model)
    return tuple(names.level(level) for level in model.levels_left_out)


def _conditions_of_concept(positive: Positive) -> list[str]:
    """Return `OF_CONCEPT` if a model finds a concept, and not levels; else nothing."""
    return [OF_CONCEPT] if positive.is_concept else []


@dataclass(frozen=True, slots=True)
class _TestedAuc:
    """A model's mean AUC on films left out of its training, and its interval; None where they are unknown."""

    mean: float | None
    low: float | None
    high: float | None
    n_films: int
    n_clips: int | None


def model_evidence(model: ModelRecord) -> ModelEvidence:
    """Claim how well a model ranks the clips of films that were left out of its training."""
    auc = _tested_auc(model)
    return ModelEvidence(
        who=(model.key,),
        what="AUC",
        time=OTHER_FILMS,
        number=auc.mean,
        interval=_bounds(auc.low, auc.high, LEVEL),
        conditions=_conditions_of_evidence(model, auc),
        n_clips=auc.n_clips,
        n_films=auc.n_films,
        levels_left_out=_levels_left_out(model),
    )


def _tested_auc(model: ModelRecord) -> _TestedAuc:
    """Read a model's AUC from its own evidence, or else from the metrics of the run that trained it."""
    evidence = model.evidence
    if evidence is not None:
        return _TestedAuc(
            mean=evidence.auc,
            low=evidence.auc_low,
            high=evidence.auc_high,
            n_films=evidence.n_movies,
            n_clips=evidence.n_clips,
        )
    row_of_auc = model.auc  # of the run's metrics; empty if no film was left out
    return _TestedAuc(
        mean=row_of_auc.get("movie_mean"),
        low=row_of_auc.get("movie_low"),
        high=row_of_auc.get("movie_high"),
        n_films=int(row_of_auc.get("n_movies") or 0),
        n_clips=None,
    )


def _conditions_of_evidence(model: ModelRecord, auc: _TestedAuc) -> tuple[str, ...]:
    """Return what must be known to read a model's AUC: conditions, which are constants of `kinds`.

    A model that was not tested is `UNTESTED`. The AUC of one that was tested may be `UNDEFINED`.
    """
    if model.evidence is None and auc.mean is None:
        return (UNTESTED,)
    conditions = [NO_SKILL] if model.no_skill else []
    if auc.mean is None:
        conditions.append(UNDEFINED)
    return (*conditions, *_conditions_of_levels(model))


def _bounds(low: float | None, high: float | None, level: float) -> Bounds | None:
    """Make an interval from its ends and its confidence level, such as 0.95; None if an end is unknown."""
    if low is None or high is None:
        return None
    return Bounds(low, high, level)


def judged_time(model: ModelRecord, time: FilmTime, shots: pd.DataFrame | None = None) -> JudgedTime:
    """Claim how much of a film a model can judge.

    The film has three parts: what the model can judge; what it cannot judge, as it is unlike the training
    films or could not be read; and what is black or credits.

    Parameters
    ----------
    model : ModelRecord
    time : FilmTime
        The seconds of these parts.
    shots : DataFrame, optional
        Of the film (`Timeline.shots`). They tell whether a detector, and not a person, found what is black or
        credits: then the claim says so.
    """
    conditions = [*_limits_of_judged(model, time), *_found_by_detector(time, shots)]
    partly_read_s = model.flags.get(PARTIAL)
    if partly_read_s:
        conditions.append(PARTLY_READ)
    return JudgedTime(
        who=(model.key,),
        what="judged",
        time=ClaimTime("film", time.whole_s),
        number=time.share(time.judged_s),
        conditions=tuple(conditions),
        judged_s=time.judged_s,
        unlike_s=time.unjudged_s,  # those that could not be read are among them
        nothing_s=time.black_or_credits_s,
        is_whole=time.is_whole,
        unread_s=time.unread_s,
        unread_from_s=time.unread_from_s,
    )


def _limits_of_judged(model: ModelRecord, time: FilmTime) -> tuple[str, ...]:
    """Return the condition that says why little or nothing of a film is judged; nothing if most of it is.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> calibrated = SimpleNamespace(calibration=SimpleNamespace())
    >>> _limits_of_judged(calibrated, SimpleNamespace(is_mostly_judged=False))
    ('little can be judged',)
    """
    if model.calibration is None:  # then there are no probabilities
        return (UNCALIBRATED,)
    if not time.is_mostly_judged:
        return (LITTLE_JUDGED,)
    return ()


def _found_by_detector(time: FilmTime, shots: pd.DataFrame | None) -> tuple[str, ...]:
    """Return `FOUND_BY_DETECTOR` if a program, and not a person, marked any shot as black or credits."""
    if not time.black_or_credits_s or shots is None or shots.empty:
        return ()
    is_black_or_credits = has_flag(shots, *NO_CONTENT)
    is_by_program = shots["detector"].isin(DETECTORS).to_numpy()
    if (is_black_or_credits & is_by_program).any():
        return (FOUND_BY_DETECTOR,)
    return ()


def marked_passages(film: "Timeline", model: ModelRecord, segments: pd.DataFrame) -> MarkedPassages | None:
    """Claim how many passages one of a film's models marks; None if it predicts nothing of the film.

    A model that was trained on the film predicts nothing of it, even if segments (`Timeline.segments`) reach
    its threshold.
    """
    if model.is_trained_on:
        return None
    return reaching_passages(film, model, segments)


def reaching_passages(film: "Timeline", model: ModelRecord, segments: pd.DataFrame) -> MarkedPassages | None:
    """Claim how many passages reach a model's threshold, also if it was trained on the film.

    None if the film has no probability. `segments` are as `Timeline.segments` gives them.
    """
    rows = film.rows(model.key)
    judged = judged_time(model, film.time(model.key), film.shots)
    has_probability = model.calibration is not None and judged.judged_s > 0
    if not has_probability or model.threshold_p is None:
        return None
    positive = positive_of(model)
    conditions = [TRAINED_ON] if model.is_trained_on else []
    conditions += [*_conditions_of_levels(model), *_conditions_of_concept(positive)]

    # Segments that do not reach the threshold are listed, but they are no marked passages.
    reaching = segments[segments["reaches"] == 1]
    rows_with_p = rows[is_counted(rows)]
    is_in_passage = _is_in_segment(rows_with_p, reaching)
    passage_rows = rows_with_p[is_in_passage]
    other_rows = rows_with_p[~is_in_passage]
    return MarkedPassages(
        who=(model.key,),
        what=positive.text,
        time=ClaimTime("judged", judged.judged_s),
        number=len(reaching),
        conditions=tuple(conditions),
        levels_left_out=_levels_left_out(model),
        judged=judged,
        is_one_of_several=len(film.record.models) > 1,
        # Passages that there would be if each probability were the lower, or the upper, end of its band.
        at_low_edge=n_reaching(rows, model, "p_low"),
        at_high_edge=n_reaching(rows, model, "p_high"),
        positive=positive,
        marked_s=float(durations(passage_rows).sum()),
        # Less than `marked_s`, as a passage goes on over rows a little below the threshold.
        called_s=_seconds_reaching(passage_rows, model.threshold_p),
        # Other rows that reach the threshold are in places too short for a passage.
        short_s=_seconds_reaching(other_rows, model.threshold_p),
        concepts=_frequent_concepts(model, passage_rows),
        n_listed=len(segments),
    )


def _seconds_reaching(rows: pd.DataFrame, threshold_p: float) -> float:
    """Add up the seconds of the rows whose probability reaches a threshold."""
    return float(durations(rows[rows["p"] >= threshold_p]).sum())


def _is_in_segment(rows: pd.DataFrame, segments: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the rows [N] that lie in one of the segments."""
    row_starts = rows["start_s"].to_numpy()
    row_ends = rows["end_s"].to_numpy()
    is_inside = np.zeros(len(rows), dtype=np.bool_)
    for start_s, end_s in segments[["start_s", "end_s"]].to_numpy(dtype=np.float64):
        is_inside |= (row_starts >= start_s) & (row_ends <= end_s)
    return is_inside


class _RankedConcept(NamedTuple):
    """A frequent concept and its total effect, by which such concepts are ranked.

    The total is the effect times seconds, summed over the rows where the concept is seen and raises the
    probability.
    """

    concept: FrequentConcept
    total_effect: float


def _frequent_concepts(model: ModelRecord, passage_rows: pd.DataFrame) -> tuple[FrequentConcept, ...]:
    """Find the concepts that explain the passages of a film, the one with the largest effect first.

    Such a concept is seen, and raises the probability, in at least half of the passages' time. It also raises
    the probability on average over all of that time. `passage_rows` are the passages' rows that have a
    probability.
    """
    if not model.by_concepts:
        return ()
    seconds = durations(passage_rows)
    changes = changes_of_rows(columns_of(passage_rows), model)
    near_chance = concepts_near_chance(model)  # those that are not shown to be found better than by chance
    names = names_of(model)

    ranked: list[_RankedConcept] = []
    for concept in model.concepts:
        # By how much it raises the probability of each row (or the logit, where that is not known)
        effect = _effect_on_rows(concept, passage_rows, changes)
        p = passage_rows[f"{concept.name}_p"].to_numpy(dtype=np.float64)
        is_seen = p >= concept.threshold_p
        is_seen_and_raises = is_seen & (effect.of_rows >= effect.least)  # `least`: enough to be named
        share = _share_of_time(seconds, is_seen_and_raises)
        explains_passages = share >= HALF and _raises_on_average(effect, seconds)
        if not explains_passages:
            continue

        frequent = FrequentConcept(names.concept(concept.name), concept.name in near_chance, share)
        total_effect = float((effect.of_rows * seconds)[is_seen_and_raises].sum())
        ranked.append(_RankedConcept(frequent, total_effect))

    # Rounded, as sums of decimals differ in their last digits: equal effects keep the codebook's order.
    ranked.sort(key=lambda item: -round(item.total_effect, 6))
    return tuple(item.concept for item in ranked)


class _Effect(NamedTuple):
    """By how much a concept raises the probability, or the logit, of N rows.

    Attributes
    ----------
    of_rows : ndarray, shape [N]
        Change of the probability, or contribution to the logit; below 0 where the concept lowers it.
    least : float
        The least effect that sentences name, on the same scale.
    """

    of_rows: NDArray[np.float64]
    least: float


def _effect_on_rows(
    concept: ConceptRecord, rows: pd.DataFrame, changes: Mapping[str, NDArray[np.float64]]
) -> _Effect:
    """Return the effect of a concept on each row [N].

    - It is the change of the probability due to the concept, where that is known.
    - In scores of a tree by earlier versions it is not: it is then the contribution to the logit.

    Parameters
    ----------
    concept : ConceptRecord
    rows : DataFrame
        Rows of the model.
    changes : mapping of str to ndarray, shape [N]
        Concept -> the change of each row's probability due to it (`changes_of_rows`); without concepts that
        have no such change.
    """
    if concept.name in changes:
        return _Effect(changes[concept.name], MIN_CHANGE)
    contributions = rows[f"{concept.name}_contribution"].to_numpy(dtype=np.float64)
    return _Effect(contributions, MIN_CONTRIBUTION)


def _share_of_time(seconds: NDArray[np.float64], is_chosen: NDArray[np.bool_]) -> float:
    """Return the chosen rows' share of the seconds [N] of all rows; 0 if no row is chosen."""
    chosen_s = float(seconds[is_chosen].sum())
    if not chosen_s:
        return 0.0
    # Rounded, as sums of decimals differ in their last digits: half of the time is exactly 0.5.
    return round(chosen_s / float(seconds.sum()), 9)


def _raises_on_average(effect: _Effect, seconds: NDArray[np.float64]) -> bool:
    """Whether a concept's mean effect over rows is large enough to be named: at least `effect.least`.

    It is weighted by the rows' seconds [N], and rounded as in tables.
    """
    mean_effect = float(np.average(effect.of_rows, weights=seconds))
    return round(mean_effect, DECIMALS) >= effect.least


def same_probability(film: "Timeline", model: ModelRecord) -> SameProbability | None:
    """Claim that a model gives nearly the same probability to all rows it judges: it tells no scenes apart.

    None if probabilities differ by `MIN_P_DIFFERENCE` or more, or if fewer than two rows are judged.
    """
    rows = film.rows(model.key)
    judged_p = rows.loc[is_counted(rows), "p"].to_numpy(dtype=np.float64)
    if len(judged_p) < 2 or np.ptp(judged_p) >= MIN_P_DIFFERENCE:
        return None
    return SameProbability(
        who=(model.key,),
        what=positive_of(model).text,
        time=ClaimTime("judged", film.time(model.key).judged_s),
        number=float(np.median(judged_p)),
        least=float(judged_p.min()),
        most=float(judged_p.max()),
    )


def concepts_near_chance(model: ModelRecord) -> set[str]:
    """Name the concepts that a model was not shown to find better than chance on films left out."""
    return {concept.name for concept in model.concepts if concept.is_near_chance}


def passages(model: ModelRecord, segments: pd.DataFrame, classes: pd.DataFrame = NO_CLASSES) -> list[Passage]:
    """Make a claim of each passage of a film, in the order of the table of `Timeline.segments`.

    The claims name the classes (`Timeline.classes`) that are likely in the passages.
    """
    return [passage(model, row, classes) for row in segments.to_dict(orient="records")]


def passage(model: ModelRecord, row: Mapping[Any, Any], classes: pd.DataFrame = NO_CLASSES) -> Passage:
    """Make a claim of one passage: a row, column -> value, of `Timeline.segments`.

    The claim names the classes (`Timeline.classes`) that are likely in the passage.
    """
    time = ClaimTime("span", row["end_s"] - row["start_s"], row["start_s"], row["end_s"])
    reasons_found = passage_reasons(model, reasons(row), time)
    return Passage(
        who=(model.key,),
        what=positive_of(model).text,
        time=time,
        number=row["p"],
        interval=Bounds(row["p_low"], row["p_high"], BAND_LEVEL),
        conditions=_limits_of_passage(model, reaches=bool(row["reaches"]), p=row["p"]),
        levels_left_out=_levels_left_out(model),
        name=str(row["number"]),
        judged_s=row["judged_s"],
        reasons=reasons_found,
        present=tuple(reason.what for reason in reasons_found if reason.is_present),
        flags=tuple(flag for flag in str(row["flags"]).split(";") if flag),
        classes=classes_seen(classes, time),
        threshold_p=model.threshold_p,
    )


def classes_seen(classes: pd.DataFrame, time: ClaimTime) -> tuple[ClassSeen, ...]:
    """Claim which classes, such as "kitchen", a classifier finds more probable in a span than in the film.

    `Timeline.classes` are what image and sound classifiers give for each window. A time without ends has no
    claims.
    """
    if time.start_s is None or time.end_s is None:
        return ()
    claims = []
    for classifier, likely_classes in classes_of_span(classes, time.start_s, time.end_s).items():
        for likely in likely_classes:
            claim = ClassSeen(
                who=(classifier,), what=likely.name, time=time, number=likely.p, usual_p=likely.usual_p
            )
            claims.append(claim)
    return tuple(claims)


def _limits_of_passage(model: ModelRecord, *, reaches: bool, p: float) -> tuple[str, ...]:
    """Return the conditions that must be known to read a passage's mean probability.

    Parameters
    ----------
    model : ModelRecord
    reaches : bool
        Whether the probability reaches the model's threshold anywhere in the passage.
    p : float
        Its mean, which may be below the threshold all the same.
    """
    limits = []

    # The probability and the threshold
    is_mean_below = model.threshold_p is not None and p < model.threshold_p
    if not reaches:
        limits.append(BELOW_THRESHOLD)
    elif is_mean_below:
        limits.append(MEAN_BELOW)

    # The model. That it was trained on the film weighs more than that it has no skill in films left out, and
    # so the latter is then not said.
    if model.is_trained_on:
        limits.append(TRAINED_ON)
    elif model.no_skill:
        limits.append(NO_SKILL)
    return (*limits, *_conditions_of_levels(model))


def unjudged_span(model: ModelRecord, rows: pd.DataFrame, time: ClaimTime) -> UnjudgedSpan:
    """Claim why a model has no probability in a span; `rows` are those in it, none of which has one."""
    reason = _why_unjudged(model, film_time(rows))
    return UnjudgedSpan(who=(model.key,), what=positive_of(model).text, time=time, conditions=(reason,))


def passage_reasons(
    model: ModelRecord, reasons_of_span: Sequence[SegmentReason], time: ClaimTime
) -> tuple[ConceptReason, ...]:
    """Make a claim of each concept that raises or lowers the probability of a span."""
    near_chance = concepts_near_chance(model)
    names = names_of(model)
    claims = []
    for reason in reasons_of_span:
        conditions = []
        if reason.concept in near_chance:
            conditions.append(NEAR_CHANCE)
        if reason.goes_both_ways:  # it raises the probability in some rows and lowers it in others
            conditions.append(BOTH_SIDES)
        claim = ConceptReason(
            who=(model.key,),
            what=names.concept(reason.concept),
            time=time,
            number=reason.change,
            conditions=tuple(conditions),
            amount=reason.amount,  # "more" or "less" of it than usual, or "mixed"
            is_for=reason.is_for,  # whether it raises the probability
            moves=reason.moves,  # whether it changes the probability enough to be named
            p=reason.p,
            usual_p=reason.usual_p,
            contribution=reason.contribution,
            is_present=reason.is_present,
        )
        claims.append(claim)
    return tuple(claims)


def expected_share(model: ModelRecord, rows: pd.DataFrame) -> ExpectedShare:
    """Claim which share of a film's time a model expects to be positive, or why it gives none.

    The share and its interval were computed when the film was scored (`ModelRecord.rate`). The interval is a
    prediction interval: it is made to hold the true share of 80 % of new films. `rows` are the model's rows
    in the film.
    """
    rate = model.rate
    calibration = model.calibration
    time = film_time(rows)
    positive = positive_of(model)
    return ExpectedShare(
        who=(model.key,),
        what=positive.text,
        time=ClaimTime("judged", rate.counted_s),
        number=rate.value,
        interval=_bounds(rate.bracket_low, rate.bracket_high, BAND_LEVEL),
        conditions=_conditions_of_expected(model, time, positive),
        error=calibration.film_error if calibration else None,
        worst_error=calibration.worst_film_error if calibration else None,
        clips=_calibration_clips(model),
        levels_left_out=_levels_left_out(model),
        unlike=rate.unreliable,  # share of the content that the model cannot judge
        reason=rate.reason,
        unread=time.share_of_content(time.unread_s),
        n_windows=rate.n_windows,
    )


def _conditions_of_expected(model: ModelRecord, time: FilmTime, positive: Positive) -> tuple[str, ...]:
    """Return what must be known to read the share that a model expects, or why it gives none.

    They are conditions of the claim, constants of `kinds`, such as that some levels were left out of the
    calibration (`LEVELS_LEFT_OUT`).
    """
    conditions = [*_why_no_share(model, time)]
    if model.levels_left_out and LEVELS_LEFT_OUT not in conditions:
        conditions.append(LEVELS_LEFT_OUT)
    conditions += _conditions_of_concept(positive)
    if model.rate.n_windows is not None:  # recorded only if the interval is wider as the film is short
        conditions.append(FEW_WINDOWS)
    return tuple(conditions)


def _calibration_clips(model: ModelRecord) -> dict[str, int]:
    """Count the clips of each level that a model's calibration was fitted on."""
    if model.calibration is None:
        return {}
    names = names_of(model)
    return {names.level(level): n for level, n in model.calibration.clips.items()}


def _why_no_share(model: ModelRecord, time: FilmTime) -> tuple[str, ...]:
    """Return `REFUSED` and the gravest reason why a model gives no share of a film; empty if it gives one."""
    if model.rate.value is not None:
        return ()
    reason = why_no_prediction(model, time)
    if reason:
        return (REFUSED, reason)
    if model.rate.is_unreliable:
        return (REFUSED, LITTLE_JUDGED)
    if model.levels_left_out:
        return (REFUSED, LEVELS_LEFT_OUT)
    return (REFUSED,)  # the record has a reason of its own (`ExpectedShare.reason`)


def corpus_experts(model: ModelRecord) -> Experts | None:
    """Claim how far two experts of a corpus agree on what a model finds; None if that is unknown.

    There are three measures: kappa by seconds (`number`), the rank correlation of the films' shares (`rank`),
    and the F1 of the starts and ends of marked spans (`boundary`).
    """
    human = model.human
    if human is None:
        return None
    return Experts(
        who=(human.corpus,),
        what=positive_of(model).titled,
        time=OTHER_FILMS,
        number=human.kappa,
        rank=human.rank_correlation,
        rank_interval=_bounds(human.rank_low, human.rank_high, LEVEL),
        boundary=human.boundary_f1,
    )


def flagged_times(model: ModelRecord, judged: JudgedTime) -> list[FlaggedTime]:
    """Claim which share of a film has each flag, but for flags that other claims report.

    The flag of windows that the model was trained on is a special case. If the model was trained on the film,
    the title of the page says so, and no share is claimed. If only some windows of the film were in its
    training, as where two films share a scene, the title does not say it: then their share is claimed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(key="pcbm", flags={schema.TRAINED_ON: 30.0}, is_trained_on=False)
    >>> judged = SimpleNamespace(judged_s=200.0, unlike_s=60.0, nothing_s=40.0)
    >>> [claim.number for claim in flagged_times(model, judged)]  # 30 of 300 s
    [0.1]
    """
    film_s = judged.judged_s + judged.unlike_s + judged.nothing_s
    if not film_s:
        return []
    time = ClaimTime("film", film_s)
    claims = []
    for flag, flagged_s in model.flags.items():
        are_single_windows_trained_on = flag == schema.TRAINED_ON and not model.is_trained_on
        is_reported_elsewhere = flag in FLAGS_OF_OTHER_CLAIMS and not are_single_windows_trained_on
        if not is_reported_elsewhere:
            claims.append(FlaggedTime(who=(model.key,), what=flag, time=time, number=flagged_s / film_s))
    return claims


def other_windows(model: ModelRecord, windows: WindowsRecord) -> OtherWindows | None:
    """Claim that windows are longer or shorter than the clips of a model's training or calibration.

    None if they are about as long (within 10 %) as both kinds of clips, or if neither length is known.
    """
    trained_s = model.clip_s
    calibrated_s = None if model.calibration is None else model.calibration.clip_s
    known_lengths_s = [length_s for length_s in (trained_s, calibrated_s) if length_s]
    is_length_other = [
        abs(windows.window_s - length_s) > LENGTH_TOLERANCE * length_s for length_s in known_lengths_s
    ]
    if not any(is_length_other):
        return None
    return OtherWindows(
        who=(model.key,),
        what="length of the windows in seconds",
        time=ClaimTime("film"),
        number=windows.window_s,
        trained_s=trained_s,
        calibrated_s=calibrated_s,
    )


def concept_found(model: ModelRecord, concept: ConceptRecord) -> ConceptFound:
    """Claim the average precision by which a model finds a concept on films left out of its training."""
    return ConceptFound(
        who=(model.key,),
        what=names_of(model).concept(concept.name),
        time=OTHER_FILMS,
        number=concept.ap,
        interval=_bounds(concept.low, concept.high, LEVEL),
        conditions=(NEAR_CHANCE,) if concept.is_near_chance else (),
        chance=concept.chance,  # the average precision of guessing
    )


def no_passage(model: ModelRecord) -> NoPassage:
    """Claim that no passage of a film reaches the threshold; the claim's number is the threshold."""
    return NoPassage(
        who=(model.key,), what=positive_of(model).text, time=ClaimTime("film"), number=model.threshold_p
    )


def staging_mean(film: "Timeline", model: ModelRecord, name: str, digits: int) -> StagingMean:
    """Claim the mean over a film's time of something measured, such as brightness; NaN if nothing was.

    It is the mean by which `film compare` groups films (`staging_means`).

    Parameters
    ----------
    film : Timeline
    model : ModelRecord
    name : str
        A column of `Timeline.variables`.
    digits : int
        Decimals to print: those that the measurement supports.
    """
    values = film.variables[name]
    # A film with shots has its share of black pictures from the model's rows (`share_of_black`).
    rows = film.rows(model.key) if len(film.shots) else None
    means = staging_means(film.variables, rows)
    return StagingMean(
        who=(),  # a measurement, and no claim of a model or a person
        what=name,
        time=ClaimTime("film"),
        number=means.get(name, float("nan")),
        digits=digits,
        n_known=int(values.notna().sum()),
        n_windows=len(values),
    )


def moved_passage(model: ModelRecord, ends: tuple[float, float], before: float, after: float) -> Moved:
    """Claim how learning from judgements changed the probability of a passage, whose ends are in seconds."""
    start_s, end_s = ends
    time = ClaimTime("span", end_s - start_s, start_s, end_s)
    return Moved(who=(model.key,), what=positive_of(model).text, time=time, number=after, before=before)


def at_usual(span: Passage, reason: ConceptReason) -> AtUsual | None:
    """Claim what a span's probability would be with a concept at its usual value in the training.

    Parameters
    ----------
    span : Passage
    reason : ConceptReason
        Of the concept: its `number` is the change of the span's probability due to the concept.

    Returns
    -------
    AtUsual or None
        None if the span's probability or the change is unknown, or the concept has no usual value.
    """
    if reason.number is None or reason.usual_p is None or span.number is None:
        return None
    return AtUsual(
        who=span.who,
        what=reason.what,
        time=span.time,
        number=max(span.number - reason.number, 0.0),  # a sum of decimals may end just below 0
        before=span.number,
    )
