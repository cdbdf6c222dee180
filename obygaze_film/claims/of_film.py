"""Compute what may be said of a scored film: what a model can judge, which passages it marks, and why."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from obygaze_features.arguments import checked
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
    LEAST_CHANGE,
    LEAST_CONTRIBUTION,
    changes_of_rows,
    is_reason,
    n_reaching,
    reasons,
)
from obygaze_film.segments import Reason as SegmentReason

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

OTHER_FILMS: Final = ClaimTime("other films")

BAND: Final = 0.8
"""Level of the bands of probabilities, and of the bracket of new films."""

LEVEL: Final = 0.95
"""Level of the intervals over films."""

SAME: Final = 1e-6
"""By how much probabilities, or shares, may differ that are one number."""

NEARLY_SAME: Final = 0.01
"""By less than this the probabilities of a film differ that are nearly one number: no scholar would read more
out of the second decimal."""

HALF: Final = 0.5
"""Share of the passages' time from which on a concept is named as seen there."""

OTHER_LENGTH: Final = 0.1
"""By which share windows may differ in length from the model's clips, without a word."""

TOLD_OTHERWISE: Final = ("unlike", "missing", "black", "credits", "trained_on", "no_skill")
"""Flags whose time, or meaning, other claims tell."""

ALL_OF_IT: Final = {BLACK_OR_CREDITS: ALL_NOTHING, UNREAD: ALL_UNREAD, UNLIKE: ALL_UNLIKE}
"""Why nothing of a film is judged -> the condition of what is said of it."""

NOTHING_JUDGED: Final = (ALL_NOTHING, ALL_UNREAD, ALL_UNLIKE)
"""Reasons for no prediction that are of the film, not of the model."""

TOLD_BESIDE_THE_TITLE: Final = (TRAINED_ON, *NOTHING_JUDGED)
"""Reasons for no prediction that stand beside a film's title."""


@checked
def film_claims(film: "Timeline", key: str | None = None) -> list[FilmClaim]:
    """Compute every claim on a scored film by one model.

    Parameters
    ----------
    film : Timeline
    key : str, optional
        Model; by default the first with logits.

    Returns
    -------
    list of Claim
        The film's title with its warnings, the model's evidence, the judged time, the marked passages and
        each of them with its reasons, the expected share, flagged time, windows of another length, and how
        far experts agree. What a model does not say of the film is left out.

    Raises
    ------
    FilmError
        No model has this key.
    """
    model = film.model(key)
    segments = film.segments(model.key)
    judged = judged_time(model, film.time(model.key), film.shots)
    claims: list[FilmClaim] = [film_title(film, model.key), model_evidence(model), judged]
    marked = marked_passages(film, model, segments)
    if marked is not None:
        claims.append(marked)
    same = same_probability(film, model)
    if same is not None:
        claims.append(same)
    claims += passages(model, segments.sort_values("start_s"), film.classes)
    claims.append(expected_share(model, film.rows(model.key)))
    claims += flagged_times(model, judged)
    windows = other_windows(model, film.record.windows)
    if windows is not None:
        claims.append(windows)
    experts = corpus_experts(model)
    if experts is not None:
        claims.append(experts)
    return claims


def why_no_prediction(model: ModelRecord, time: FilmTime) -> str:
    """Tell why a model predicts nothing of a film, the gravest reason first; empty where it does.

    Every place that says so asks here: title, page, desk, exports and terminal.

    Parameters
    ----------
    model : ModelRecord
    time : FilmTime
        How it parts the film.
    """
    if model.decides and model.is_trained_on:
        return TRAINED_ON
    return _why_unjudged(model, time)


def _why_unjudged(model: ModelRecord, time: FilmTime) -> str:
    """Tell why a film, or a span of it, has no probability; empty where it has one."""
    if not model.decides:
        return DECIDES_NOTHING
    if model.calibration is None or model.threshold_p is None:
        return UNCALIBRATED
    return ALL_OF_IT.get(time.why_unjudged, "")


def film_title(film: "Timeline", key: str | None = None) -> Title:
    """Take a film's title, and what must be known of one model's numbers: never another model's warnings.

    Parameters
    ----------
    film : Timeline
    key : str, optional
        Model; by default the first that decides.
    """
    model = film.model(key)
    warnings: list[str] = []
    reason = why_no_prediction(model, film.time(model.key))
    if reason in TOLD_BESIDE_THE_TITLE:
        warnings.append(reason)
    else:
        if model.no_skill:
            warnings.append(NO_SKILL)
        if model.decides:
            warnings += _levels_condition(model)
    return Title(
        who=(model.key,),
        what=film.record.title,
        time=ClaimTime("film", film.record.duration_s),
        conditions=tuple(warnings),
        levels_left_out=_levels_left_out(model) if LEVELS_LEFT_OUT in warnings else (),
    )


def _levels_condition(model: ModelRecord) -> list[str]:
    """Tell whether a model was neither calibrated nor tested on levels that films have."""
    return [LEVELS_LEFT_OUT] if model.levels_left_out else []


def _levels_left_out(model: ModelRecord) -> tuple[str, ...]:
    """Name the levels that films have, and that a model was neither calibrated nor tested on."""
    names = names_of(model)
    return tuple(names.level(level) for level in model.levels_left_out)


def _concept_condition(positive: Positive) -> list[str]:
    """Tell whether what is claimed is of a concept."""
    return [OF_CONCEPT] if positive.is_concept else []


def model_evidence(model: ModelRecord) -> ModelEvidence:
    """Take what films left out of training show of a model: its own evidence, else its run's metrics."""
    conditions = [NO_SKILL] if model.no_skill else []
    n_clips: int | None = None
    if model.evidence is not None:
        n_clips, n_films = model.evidence.n_clips, model.evidence.n_movies
        number, low, high = model.evidence.auc, model.evidence.auc_low, model.evidence.auc_high
    else:
        row = model.auc
        n_films = int(row.get("n_movies") or 0)
        number, low, high = row.get("movie_mean"), row.get("movie_low"), row.get("movie_high")
        if number is None:
            conditions = [UNTESTED]
    if number is None and UNTESTED not in conditions:
        conditions.append(UNDEFINED)
    if UNTESTED not in conditions:
        conditions += _levels_condition(model)
    return ModelEvidence(
        who=(model.key,),
        what="AUC",
        time=OTHER_FILMS,
        number=number,
        interval=_interval(low, high, LEVEL),
        conditions=tuple(conditions),
        n_clips=n_clips,
        n_films=n_films,
        levels_left_out=_levels_left_out(model),
    )


def _interval(low: float | None, high: float | None, level: float) -> Bounds | None:
    if low is None or high is None:
        return None
    return Bounds(low, high, level)


def judged_time(model: ModelRecord, time: FilmTime, shots: pd.DataFrame | None = None) -> JudgedTime:
    """Tell how much of a film a model can judge.

    Parameters
    ----------
    model : ModelRecord
    time : FilmTime
    shots : DataFrame, optional
        `Timeline.shots`, which tell whether a detector found what is black or credits.
    """
    return JudgedTime(
        who=(model.key,),
        what="judged",
        time=ClaimTime("film", time.whole_s),
        number=time.share(time.judged_s),
        conditions=(
            *_limits_of_judged(model, time),
            *_found_by_detector(time, shots),
            *([PARTLY_READ] if model.flags.get(PARTIAL) else []),
        ),
        judged_s=time.judged_s,
        unlike_s=time.unjudged_s,
        nothing_s=time.black_or_credits_s,
        is_whole=time.is_whole,
        unread_s=time.unread_s,
        unread_from_s=time.unread_from_s,
    )


def _limits_of_judged(model: ModelRecord, time: FilmTime) -> tuple[str, ...]:
    if model.calibration is None:
        return (UNCALIBRATED,)
    return () if time.is_mostly_judged else (LITTLE_JUDGED,)


def _found_by_detector(time: FilmTime, shots: pd.DataFrame | None) -> tuple[str, ...]:
    """Tell whether a detector, and not a person, marked any shot as black or credits."""
    if not time.black_or_credits_s or shots is None or shots.empty:
        return ()
    is_found = has_flag(shots, *NO_CONTENT) & shots["detector"].isin(DETECTORS).to_numpy()
    return (FOUND_BY_DETECTOR,) if is_found.any() else ()


def marked_passages(film: "Timeline", model: ModelRecord, segments: pd.DataFrame) -> MarkedPassages | None:
    """Count the passages that a model marks; None of a model that predicts nothing of the film.

    Parameters
    ----------
    film : Timeline
    model : ModelRecord
        One of the film's.
    segments : DataFrame
        As `Timeline.segments` gives them.
    """
    if model.is_trained_on:
        return None
    return counted_passages(film, model, segments)


def counted_passages(film: "Timeline", model: ModelRecord, segments: pd.DataFrame) -> MarkedPassages | None:
    """Count the passages that reach the threshold, whether or not that is a prediction.

    None where no passage can reach it: without a probability anywhere, nothing is judged.
    """
    rows = film.rows(model.key)
    judged = judged_time(model, film.time(model.key), film.shots)
    if model.calibration is None or model.threshold_p is None or not judged.judged_s:
        return None
    marked = segments[segments["reaches"] == 1]
    known = rows[is_counted(rows)]
    inside = _rows_in(known, marked)
    outside = known.drop(inside.index)
    positive = positive_of(model)
    limits = (TRAINED_ON,) if model.is_trained_on else ()
    return MarkedPassages(
        who=(model.key,),
        what=positive.text,
        time=ClaimTime("judged", judged.judged_s),
        number=len(marked),
        conditions=(*limits, *_levels_condition(model), *_concept_condition(positive)),
        levels_left_out=_levels_left_out(model),
        judged=judged,
        is_one_of_several=len(film.record.models) > 1,
        at_low_edge=n_reaching(rows, model, "p_low"),
        at_high_edge=n_reaching(rows, model, "p_high"),
        positive=positive,
        marked_s=float(durations(inside).sum()),
        called_s=float(durations(inside[inside["p"] >= model.threshold_p]).sum()),
        short_s=float(durations(outside[outside["p"] >= model.threshold_p]).sum()),
        concepts=_frequent_concepts(model, inside),
        n_listed=len(segments),
    )


def _rows_in(rows: pd.DataFrame, marked: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows that lie in passages."""
    is_inside = np.zeros(len(rows), dtype=bool)
    starts, ends = rows["start_s"].to_numpy(), rows["end_s"].to_numpy()
    for start_s, end_s in marked[["start_s", "end_s"]].to_numpy(dtype=np.float64):
        is_inside |= (starts >= start_s) & (ends <= end_s)
    return rows[is_inside]


def _frequent_concepts(model: ModelRecord, inside: pd.DataFrame) -> tuple[FrequentConcept, ...]:
    """Find the concepts that are seen, and speak for it, in half of the time of the rows or more.

    One that is against it in the rest, so that over all of the time it is no reason for it (`is_reason`), is
    not found.

    Parameters
    ----------
    model : ModelRecord
    inside : DataFrame
        The rows of the passages that have a probability.
    """
    seconds, found = durations(inside), []
    changes = changes_of_rows(inside, model)
    near_chance = concepts_near_chance(model)
    names = names_of(model)
    for concept in model.concepts if model.by_concepts else ():
        contribution = inside[f"{concept.name}_contribution"].to_numpy(dtype=np.float64)
        change = changes.get(concept.name)
        # Without a usual value, as of a tree, what it adds to the logit decides.
        effect, least = (contribution, LEAST_CONTRIBUTION) if change is None else (change, LEAST_CHANGE)
        is_for = effect >= least
        is_seen = inside[f"{concept.name}_p"].to_numpy(dtype=np.float64) >= concept.threshold_p
        time_s = float(seconds[is_seen & is_for].sum())
        # Sums of decimals differ in their last digits: half of the time is half of it.
        share = round(time_s / float(seconds.sum()), 9) if time_s else 0.0
        if share < HALF:
            continue
        mean_effect = float(np.average(effect, weights=seconds))
        mean_change = None if change is None else mean_effect
        if mean_effect > 0 and is_reason(mean_effect, mean_change):
            added = float((effect * seconds)[is_seen & is_for].sum())
            called = names.concept(concept.name)
            found.append((added, FrequentConcept(called, concept.name in near_chance, share)))
    # Sums of decimals differ in their last digits: equal ones keep the codebook's order.
    found.sort(key=lambda one: -round(one[0], 6))
    return tuple(concept for _, concept in found)


def same_probability(film: "Timeline", model: ModelRecord) -> SameProbability | None:
    """Tell that a model gives all that it can judge of a film the same probability, or nearly; else None.

    Of a film of one row nothing is told.
    """
    rows = film.rows(model.key)
    known = rows.loc[is_counted(rows), "p"].to_numpy(dtype=np.float64)
    if len(known) < 2 or np.ptp(known) >= NEARLY_SAME:
        return None
    return SameProbability(
        who=(model.key,),
        what=positive_of(model).text,
        time=ClaimTime("judged", film.time(model.key).judged_s),
        number=float(np.median(known)),
        least=float(known.min()),
        most=float(known.max()),
    )


def concepts_near_chance(model: ModelRecord) -> set[str]:
    """Name the concepts of a model that films left out do not show to be found better than chance."""
    return {concept.name for concept in model.concepts if concept.is_near_chance}


def passages(model: ModelRecord, segments: pd.DataFrame, classes: pd.DataFrame = NO_CLASSES) -> list[Passage]:
    """Make a claim of each row of `Timeline.segments`, in their order; parameters as in `passage`."""
    return [passage(model, row, classes) for row in segments.to_dict(orient="records")]


def passage(model: ModelRecord, row: Mapping[Any, Any], classes: pd.DataFrame = NO_CLASSES) -> Passage:
    """Make a claim of a row of `SEGMENT_COLUMNS`.

    Parameters
    ----------
    model : ModelRecord
    row : mapping
    classes : DataFrame
        `Timeline.classes`, of which those that are likely there are named.
    """
    time = ClaimTime("span", row["end_s"] - row["start_s"], row["start_s"], row["end_s"])
    reasons_found = passage_reasons(model, reasons(row), time)
    return Passage(
        who=(model.key,),
        what=positive_of(model).text,
        time=time,
        number=row["p"],
        interval=Bounds(row["p_low"], row["p_high"], BAND),
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
    """Tell what classifiers find in a span, beyond what is usual in the film.

    Parameters
    ----------
    classes : DataFrame
        `Timeline.classes`.
    time : ClaimTime
        Of a span.
    """
    if time.start_s is None or time.end_s is None:
        return ()
    claims = []
    for classifier, found in classes_of_span(classes, time.start_s, time.end_s).items():
        for likely in found:
            name, p, usual_p = likely.name, likely.p, likely.usual_p
            claims.append(ClassSeen(who=(classifier,), what=name, time=time, number=p, usual_p=usual_p))
    return tuple(claims)


def _limits_of_passage(model: ModelRecord, *, reaches: bool, p: float) -> tuple[str, ...]:
    """Tell what must be known to read a passage's probability."""
    limits = [] if reaches else [BELOW_THRESHOLD]
    if reaches and model.threshold_p is not None and p < model.threshold_p:
        limits.append(MEAN_BELOW)
    if model.is_trained_on:
        limits.append(TRAINED_ON)
    elif model.no_skill:
        limits.append(NO_SKILL)
    return (*limits, *_levels_condition(model))


def unjudged_span(model: ModelRecord, rows: pd.DataFrame, time: ClaimTime) -> UnjudgedSpan:
    """Tell why a model says nothing of a span, by the rows in it, of which none is judged."""
    reason = _why_unjudged(model, film_time(rows))
    return UnjudgedSpan(who=(model.key,), what=positive_of(model).text, time=time, conditions=(reason,))


def passage_reasons(
    model: ModelRecord, found: Sequence[SegmentReason], time: ClaimTime
) -> tuple[ConceptReason, ...]:
    """Make a claim of each concept that weighs in a span of a film."""
    near_chance = concepts_near_chance(model)
    names = names_of(model)
    claims = []
    for reason in found:
        conditions = []
        if reason.concept in near_chance:
            conditions.append(NEAR_CHANCE)
        if reason.goes_both_ways:
            conditions.append(BOTH_SIDES)
        claim = ConceptReason(
            who=(model.key,),
            what=names.concept(reason.concept),
            time=time,
            number=reason.change,
            conditions=tuple(conditions),
            amount=reason.amount,
            is_for=reason.is_for,
            moves=reason.moves,
            p=reason.p,
            usual_p=reason.usual_p,
            contribution=reason.contribution,
            is_present=reason.is_present,
        )
        claims.append(claim)
    return tuple(claims)


def expected_share(model: ModelRecord, rows: pd.DataFrame) -> ExpectedShare:
    """Take the share of a film's time that a model expects, or why it has none.

    Parameters
    ----------
    model : ModelRecord
    rows : DataFrame
        Its rows in the film.
    """
    rate, calibration, time = model.rate, model.calibration, film_time(rows)
    positive = positive_of(model)
    limits = [*_why_no_share(model, time), *_levels_condition(model), *_concept_condition(positive)]
    if rate.n_windows is not None:
        limits.append(FEW_WINDOWS)
    return ExpectedShare(
        who=(model.key,),
        what=positive.text,
        time=ClaimTime("judged", rate.counted_s),
        number=rate.value,
        interval=_interval(rate.bracket_low, rate.bracket_high, BAND),
        conditions=tuple(dict.fromkeys(limits)),
        error=calibration.film_error if calibration else None,
        worst_error=calibration.worst_film_error if calibration else None,
        clips=_calibration_clips(model),
        levels_left_out=_levels_left_out(model),
        unlike=rate.unreliable,
        reason=rate.reason,
        unread=time.share_of_content(time.unread_s),
        n_windows=rate.n_windows,
    )


def _calibration_clips(model: ModelRecord) -> dict[str, int]:
    """Count the clips of each level that a model's calibration was fitted on."""
    if model.calibration is None:
        return {}
    names = names_of(model)
    return {names.level(level): n for level, n in model.calibration.clips.items()}


def _why_no_share(model: ModelRecord, time: FilmTime) -> tuple[str, ...]:
    """Tell why a model has no share of a film, the gravest reason first; empty where it has one."""
    if model.rate.value is not None:
        return ()
    reason = why_no_prediction(model, time)
    if reason:
        return (REFUSED, reason)
    by_weight = {
        LITTLE_JUDGED: model.rate.is_unreliable,
        LEVELS_LEFT_OUT: bool(model.levels_left_out),
    }
    for condition, applies in by_weight.items():
        if applies:
            return (REFUSED, condition)
    return (REFUSED,)


def corpus_experts(model: ModelRecord) -> Experts | None:
    """Take how far two experts of a corpus agree on what a model finds; None where that is not known."""
    human = model.human
    if human is None:
        return None
    return Experts(
        who=(human.corpus,),
        what=positive_of(model).titled,
        time=OTHER_FILMS,
        number=human.kappa,
        rank=human.rank_correlation,
        rank_interval=_interval(human.rank_low, human.rank_high, LEVEL),
        boundary=human.boundary_f1,
    )


def flagged_times(model: ModelRecord, judged: JudgedTime) -> list[FlaggedTime]:
    """Tell which shares of a film have flags that no other claim tells of."""
    whole_s = judged.judged_s + judged.unlike_s + judged.nothing_s
    claims = []
    for flag, seconds in model.flags.items():
        if flag not in TOLD_OTHERWISE and whole_s:
            time = ClaimTime("film", whole_s)
            claims.append(FlaggedTime(who=(model.key,), what=flag, time=time, number=seconds / whole_s))
    return claims


def other_windows(model: ModelRecord, windows: WindowsRecord) -> OtherWindows | None:
    """Tell where the windows are of another length than a model's clips of training or calibration."""
    trained_s = model.clip_s
    calibrated_s = None if model.calibration is None else model.calibration.clip_s
    lengths = [length for length in (trained_s, calibrated_s) if length]
    if not any(abs(windows.window_s - length) > OTHER_LENGTH * length for length in lengths):
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
    """Tell how well a concept is found on films left out."""
    return ConceptFound(
        who=(model.key,),
        what=names_of(model).concept(concept.name),
        time=OTHER_FILMS,
        number=concept.ap,
        interval=_interval(concept.low, concept.high, LEVEL),
        conditions=(NEAR_CHANCE,) if concept.is_near_chance else (),
        chance=concept.chance,
    )


def no_passage(model: ModelRecord) -> NoPassage:
    """Tell that no passage of a film reaches the threshold."""
    return NoPassage(
        who=(model.key,), what=positive_of(model).text, time=ClaimTime("film"), number=model.threshold_p
    )


def staging_mean(film: "Timeline", model: ModelRecord, name: str, digits: int) -> StagingMean:
    """Tell the mean of a variable of staging over a film's time; NaN where no window has one.

    It is the one by which `film compare` groups films (`staging_means`).

    Parameters
    ----------
    film : Timeline
    model : ModelRecord
    name : str
        A column of its variables.
    digits : int
        Decimals that are measured.
    """
    values = film.variables[name]
    means = staging_means(film.variables, film.rows(model.key) if len(film.shots) else None)
    return StagingMean(
        who=(),
        what=name,
        time=ClaimTime("film"),
        number=means.get(name, float("nan")),
        digits=digits,
        n_known=int(values.notna().sum()),
        n_windows=len(values),
    )


def moved_passage(model: ModelRecord, ends: tuple[float, float], before: float, after: float) -> Moved:
    """Tell how learning changed a passage's probability."""
    start_s, end_s = ends
    time = ClaimTime("span", end_s - start_s, start_s, end_s)
    return Moved(who=(model.key,), what=positive_of(model).text, time=time, number=after, before=before)


def at_usual(span: Passage, reason: ConceptReason) -> AtUsual | None:
    """Tell what a span's probability were with a concept at its usual value; None where that is not known."""
    if reason.number is None or span.number is None:
        return None
    return AtUsual(
        who=span.who,
        what=reason.what,
        time=span.time,
        number=max(span.number - reason.number, 0.0),
        before=span.number,
    )
