"""Estimate a film's rate from blind judgements; a model, right or wrong, narrows the interval."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from obygaze_features.door import decoded
from obygaze_features.io import write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.manifest import DEFINITION, Manifest, judgements_of
from obygaze_film.agreement import kappa, kappa_of
from obygaze_film.cells import Cells, Floats, cells_by, cells_of
from obygaze_film.draws import SUCCESSIVE, Law
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import (
    LEAST,
    JudgedFilm,
    JudgedWindows,
    WindowCounts,
    judged_film,
    needed_windows,
    votes,
)
from obygaze_film.notes import said
from obygaze_film.positive import positive_of
from obygaze_film.rate_estimates import LEVEL, Estimates, estimate_rate
from obygaze_film.schema import (
    UNREADABLE,
    CorrectedRate,
    JudgesAgreement,
    JudgesAlpha,
    TooFewJudged,
    refuse_texts,
)
from obygaze_film.scored_files import RATES, bytes_of
from obygaze_film.timeline import Timeline

MOST_PAIRS: Final = 100
"""Pairs of judges whose agreement is computed; of more, so many are drawn."""

KAPPA_DRAWS: Final = 10_000

MOST_ADVISED: Final = 30
"""Windows that a film without a rate is advised to have judged, if it has so many."""


class FilmRates(Struct, frozen=True):
    """What the blind judgements of a film say of its rate by one model, each number with its target.

    Attributes
    ----------
    rates : tuple of CorrectedRate
        Each judge's own who has one, by name, and at the end the panel's, if there is one.
    agreement : tuple of JudgesAgreement
        Of every two judges.
    alpha : JudgesAlpha or None
        Of all judges together; None of fewer than three, of too few windows, or where it is undefined.
    too_few : tuple of TooFewJudged
        Judges without a number of their own, and several who have none together.
    notices : tuple of str
        What was left out, and why.
    """

    rates: tuple[CorrectedRate, ...]
    agreement: tuple[JudgesAgreement, ...] = ()
    alpha: JudgesAlpha | None = None
    too_few: tuple[TooFewJudged, ...] = ()
    notices: tuple[str, ...] = ()


def correct_rates(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    labels: Manifest | None = None,
) -> FilmRates:
    """Correct a film's rate by the blind judgements of each judge, and of all together.

    A judge's number comes from the windows that they judged and were sure of, in the order of the draw up to
    the first one that they did not judge. These must be 10 or more, unless no window is left to judge.
    The panel's number, the mean of its judges' shares, comes from the windows that all of them judged and
    were sure of. Where none of them judged any other, its interval goes no further than the mean of the ends
    of their own intervals.

    Parameters
    ----------
    timeline, judgements, key, labels
        As in `correct_rate`.

    Raises
    ------
    FilmError
        Nobody was sure of 10 cells of this film or judged all of it, or the judgements are of two draws.
    ManifestError
        They were made under two definitions.
    """
    film = judged_film(timeline, judgements, key)
    own = {judge: film.of(judge) for judge in film.judges}
    notices = [*film.notices, *film.gaps()]
    if not any(windows.is_enough for windows in own.values()):
        raise _too_few(film, [windows.counts for windows in own.values()], notices)
    agreement, n_pairs = agreement_of_judges([film])
    if len(agreement) < n_pairs:
        notices.append(said("note_pairs", n=len(agreement), pairs=f"{n_pairs:,}"))
    estimator = _Estimator(timeline, key, labels)
    targets = [([judge], windows) for judge, windows in own.items()]
    if len(film.judges) > 1:
        targets.append(([*film.judges], film.panel()))
    rates: list[CorrectedRate] = []
    too_few = []
    for judges, windows in targets:
        counts = windows.counts
        if windows.is_enough:
            rate = estimator.rate(windows, judges)
            if len(judges) > 1:
                rate = _within_mean(rate, rates, own.values())
            rates.append(structs.replace(rate, agreement=_of_judges(agreement, judges)))
        else:
            too_few.append(TooFewJudged(judges=judges, **counts._asdict()))
    return FilmRates(tuple(rates), tuple(agreement), alpha_of_judges([film]), tuple(too_few), tuple(notices))


def rates_by_definition(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    labels: Manifest | None = None,
) -> FilmRates:
    """Correct a film's rate as `correct_rates` does, apart for each definition that it was judged under.

    Where there are several, judgements that do not say under which they were made are left out and counted.

    Raises
    ------
    FilmError
        As `correct_rates`, under every definition.
    """
    own = judgements.with_clips(clip for clip in judgements if clip.movie == timeline.movie)
    definitions = [*judgements_of(own).definitions]
    if len(definitions) < 2:
        found = correct_rates(timeline, judgements, key, labels=labels)
        return _under("".join(definitions), found)
    rates: list[CorrectedRate] = []
    too_few: list[TooFewJudged] = []
    agreement: list[JudgesAgreement] = []
    notices: list[str] = []
    for definition in definitions:
        clips = [clip for clip in own if clip.extras.get(DEFINITION) == definition]
        try:
            found = correct_rates(timeline, own.with_clips(clips), key, labels=labels)
        except FilmError as error:
            notices.append(said("note_definition", definition=definition[:12], notice=error.args[0]))
            continue
        found = _under(definition, found)
        rates += found.rates
        too_few += found.too_few
        agreement += found.agreement
        known = {"definition": definition[:12]}
        notices += [said("note_definition", **known, notice=notice) for notice in found.notices]
    n_unknown = sum(not clip.extras.get(DEFINITION) and clip.level is not None for clip in own)
    if n_unknown:
        s = "" if n_unknown == 1 else "s"
        notices.append(said("note_left_out", n=n_unknown, s=s, why=said("why_definition")))
    if not rates:
        raise FilmError(said("rate_definitions", movie=timeline.movie, notices="; ".join(notices)))
    alpha = None  # of what was judged under several definitions there is none
    return FilmRates(tuple(rates), tuple(agreement), alpha, tuple(too_few), tuple(notices))


def _under(definition: str, found: FilmRates) -> FilmRates:
    """Note under which definition judges have numbers, or too few windows for one, and agree so far."""
    rates = tuple(structs.replace(rate, definition=definition) for rate in found.rates)
    too_few = tuple(structs.replace(few, definition=definition) for few in found.too_few)
    agreement = tuple(structs.replace(pair, definition=definition) for pair in found.agreement)
    return structs.replace(found, rates=rates, too_few=too_few, agreement=agreement)


def correct_rate(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    judge: str | None = None,
    labels: Manifest | None = None,
) -> tuple[CorrectedRate, list[str]]:
    """Correct a film's rate by blind judgements of cells that `choose_next` drew.

    Parameters
    ----------
    timeline : Timeline
    judgements : Manifest
        Clips of other films, not drawn blindly, or made with the score in sight are left out. Cells of which
        judges were not sure are left out too: the rate refers to the others.
    key : str, optional
        The model whose probabilities are corrected; by default the first with logits.
    judge : str, optional
        Whose rate is asked for; by default that of all who judged, from the windows that all of them judged.
    labels : Manifest, optional
        Labels of the film's windows by one annotator, such as a machine, which are corrected in their place.

    Returns
    -------
    rate : CorrectedRate
    notices : list of str
        What was left out, and why.

    Raises
    ------
    FilmError
        The judges (each of several) were sure of fewer than 10 cells of this film, and did not judge all of
        it; a judge who is asked for was sure of none; or the judgements are of two draws.
    ManifestError
        They were made under two definitions.
    """
    film = judged_film(timeline, judgements, key)
    notices = [*film.notices, *film.gaps()]
    if judge is None:
        windows, judges = film.panel(), film.judges
        has_rate = windows.is_enough
    elif judge in film.judges:
        windows, judges = film.of(judge), (judge,)
        has_rate = windows.counts.sure > 0
    else:
        raise _too_few(film, [], notices)
    if not has_rate:
        raise _too_few(film, [windows.counts], notices)
    estimator = _Estimator(timeline, key, labels)
    rate = estimator.rate(windows, judges)
    if len(judges) > 1:
        own = [film.of(name) for name in judges]
        alone = [estimator.rate(own_windows, [name]) for name, own_windows in zip(judges, own, strict=True)]
        rate = _within_mean(rate, alone, own)
    agreement, n_pairs = agreement_of_judges([film])
    if len(agreement) < n_pairs:
        notices.append(said("note_pairs", n=len(agreement), pairs=f"{n_pairs:,}"))
    return structs.replace(rate, agreement=_of_judges(agreement, rate.annotators)), notices


def main_rate(rates: Sequence[CorrectedRate]) -> CorrectedRate:
    """Choose the rate that stands for a film where there is room for one: the panel's, else the longest.

    Of several judges without a number together it is that of who judged most windows, under their name.
    """
    return max(rates, key=lambda rate: (rate.is_of_panel, rate.n))


def _too_few(film: JudgedFilm, counts: Sequence[WindowCounts], notices: Sequence[str]) -> FilmError:
    """Say how many windows were judged by whoever judged most surely, and how to go on if any is left."""
    nothing = JudgedWindows(film.cells, {}, (), film.law).counts
    most = max(counts, key=lambda judge: (judge.sure, judge.judged), default=nothing)
    told = "; ".join(notices) or said("rate_none_out")
    known = {"movie": film.movie, "counted": counted_windows(most), "notices": told}
    if not most.left:
        return FilmError(said("rate_none_left", **known))
    n_windows = most.judged + most.left
    n_advised = min(n_windows, max(MOST_ADVISED, most.judged + most.least))
    needed = needed_windows(most.judged, most.left, most.least)
    return FilmError(said("rate_few", **known, needed=needed, more=n_advised))


def counted_windows(counts: WindowCounts) -> str:
    """Say how many windows were judged blindly, and how many of them surely where that is fewer."""
    key = "counted" if counts.are_all_sure else "counted_sure"
    if counts.judged < 2:
        key += f"_{counts.judged}"
    return said(key, judged=counts.judged, sure=counts.sure)


def estimate_windows(windows: JudgedWindows) -> Estimates:
    """Estimate the mean share of the judges of some windows, each of which all of them judged."""
    order, y, _ = votes(windows.by_cell)
    cells, judges = windows.sure_cells, windows.common_judges
    return estimate_rate(cells, order[None], y[None], law=windows.law, judges=judges)


def _within_mean(
    rate: CorrectedRate, alone: Sequence[CorrectedRate], own: Iterable[JudgedWindows]
) -> CorrectedRate:
    """Cut the interval of a panel at the mean of its judges' own ends, if all were sure of the same windows.

    The panel's share is the mean of its judges' shares, and varies by no more than their mean deviation.

    Parameters
    ----------
    rate : CorrectedRate
        The panel's.
    alone : sequence of CorrectedRate
        Those of its judges, as far as they have one.
    own : iterable of JudgedWindows
        What each of them judged.
    """
    sets_of_windows = {(frozenset(windows.by_cell), frozenset(windows.unsure)) for windows in own}
    have_same_windows = len(sets_of_windows) == 1
    if not have_same_windows or len(alone) < len(rate.annotators):
        return rate
    low = max(rate.low, float(np.mean([one.low for one in alone])))
    high = min(rate.high, float(np.mean([one.high for one in alone])))
    return structs.replace(rate, low=min(low, rate.value), high=max(high, rate.value))


class _Estimator:
    """Estimate rates of one film, whose model's probabilities, or others in their place, are corrected."""

    def __init__(self, timeline: Timeline, key: str | None, labels: Manifest | None) -> None:
        model = timeline.model(key)
        self.name, self.expected = model.key, model.rate.value
        self.positive = positive_of(model)
        cells = cells_of(timeline, key)
        self.machine: Cells | None = None
        if labels is not None:
            cells = self.machine = cells_by(labels, timeline, key)
            self.name = labels.clips[0].annotator or "labels"
            self.expected = float(np.average(self.machine.p, weights=self.machine.content))
        self.expected_s = float(cells.counted.sum())

    def rate(self, windows: JudgedWindows, judges: Sequence[str]) -> CorrectedRate:
        """Estimate the mean share of some judges from windows that all of them judged."""
        if self.machine is not None:
            cells = replace(windows.cells, p=self.machine.p, counted=self.machine.counted)
            windows = replace(windows, cells=cells)
        order, y, _ = votes(windows.by_cell)
        found = estimate_windows(windows)
        calls = windows.by_cell.values()
        content = windows.sure_cells.content
        n_windows = int((content > 0).sum())
        return CorrectedRate(
            model=self.name,
            value=float(found.value[0]),
            low=float(found.low[0]),
            high=float(found.high[0]),
            level=LEVEL,
            method="census" if windows.is_census else _method(found.gain[0] > 0, windows.law, y),
            n=len(order),
            n_positive_by_all=int((y == 1).sum()),
            n_rows=int((windows.cells.content > 0).sum()),
            worth=_worth(found, len(order), n_windows),
            expected=self.expected,
            expected_s=self.expected_s,
            is_of_labels=self.machine is not None,
            annotators=[*judges],
            positives=[sum(own[judge] for own in calls) for judge in judges],
            positive=self.positive.text,
            is_of_concept=self.positive.is_concept,
            content_s=float(content.sum()),
            n_unsure=len(windows.unsure),
            unsure_s=float(windows.cells.content[[*windows.unsure]].sum()),
        )


def _worth(found: Estimates, n: int, n_windows: int) -> float | None:
    """Compute how many windows, judged without the model, would give as narrow an interval; None if no more.

    The squared width of the interval from n of a film's N windows is proportional to 1 / n - 1 / N. The
    number m that is asked for solves 1 / m - 1 / N = (1 / n - 1 / N) (width / width_alone)^2, and is never
    above N.
    """
    width = float(found.high[0] - found.low[0])
    width_alone = float(found.alone_high[0] - found.alone_low[0])
    if n == n_windows or width >= width_alone:
        return None
    worth = 1 / (1 / n_windows + (1 / n - 1 / n_windows) * (width / width_alone) ** 2)
    return round(worth, 1) if round(worth) > n else None


def _of_judges(agreement: Sequence[JudgesAgreement], judges: Sequence[str]) -> list[JudgesAgreement]:
    """Keep the pairs that a target has to do with: within a panel, or of a judge with others."""
    if len(judges) > 1:
        return [pair for pair in agreement if set(pair.annotators) <= set(judges)]
    return [pair for pair in agreement if judges[0] in pair.annotators]


def _method(uses_model: bool, law: Law, y: Floats) -> str:
    """Name the way an interval was found (`CorrectedRate`)."""
    if uses_model:
        return "difference"
    is_uniform = not y.any() or bool((y == 1).all())
    return "exact" if is_uniform and law == SUCCESSIVE else "wilson"


class _NamedCalls(NamedTuple):
    """What the judges who have a name say of each window.

    Attributes
    ----------
    names : list of str
    called : ndarray, shape [J, C]
        0, 1, or NaN where a judge is not sure or did not judge.
    judged : ndarray of bool, shape [J, C]
        Whether they judged it, sure or not.
    """

    names: list[str]
    called: Floats
    judged: NDArray[np.bool_]


def _named_calls(films: Sequence[JudgedFilm]) -> _NamedCalls:
    """Gather what each judge who has a name says of each window of some films, one film after the other."""
    names = list(dict.fromkeys(name for film in films for name in film.judges if name))
    windows = []
    for film in films:
        places = sorted(film.cell_at, key=lambda place: film.cell_at[place])
        windows += [(film, place) for place in places]
    called = np.full((len(names), len(windows)), np.nan)
    judged = np.zeros(called.shape, dtype=np.bool_)
    for row, name in enumerate(names):
        for column, (film, place) in enumerate(windows):
            calls = film.calls.get(name, {})
            judged[row, column] = place in calls
            call = calls.get(place)
            if call is not None:
                called[row, column] = call
    return _NamedCalls(names, called, judged)


def alpha_of_judges(films: Sequence[JudgedFilm]) -> JudgesAlpha | None:
    """Compute Krippendorff's alpha of three judges or more of some films; of two there is kappa.

    None of fewer than `LEAST` windows that two judges or more were sure of.
    """
    every = _named_calls(films)
    n_sure = (~np.isnan(every.called)).sum(axis=0)
    n_windows = int((n_sure >= 2).sum())
    if len(every.names) < 3 or n_windows < LEAST:
        return None
    from obygaze_features.manifest import krippendorff_alpha  # noqa: PLC0415 - films are opened without it

    value = krippendorff_alpha(every.called)
    if value is None:
        return None
    n_judges = every.judged.sum(axis=0)
    n_unsure = int(((n_judges >= 2) & (n_sure < 2)).sum())
    return JudgesAlpha(len(every.names), n_windows, value, n_unsure)


class KappaInterval(NamedTuple):
    """Cohen's kappa of two judges and the ends of its 95 % interval; all NaN where it is undefined."""

    kappa: float
    low: float
    high: float


NO_KAPPA: Final = KappaInterval(np.nan, np.nan, np.nan)
"""Of two judges who judged too few windows together, or whose calls define none."""


class JudgePairs(NamedTuple):
    """How far pairs of judges agree, and how many pairs there are; of many, some were drawn at random."""

    agreement: list[JudgesAgreement]
    n_pairs: int


def agreement_of_judges(films: Sequence[JudgedFilm]) -> JudgePairs:
    """Compare every two judges on the cells of some films that both judged.

    Of fewer than `LEAST` cells of which both were sure there is no kappa.
    """
    every = _named_calls(films)
    is_sure = ~np.isnan(every.called)  # [J judges, W windows]
    n_common = is_sure.astype(np.float64) @ is_sure.T  # [J, J]
    pairs = np.argwhere(np.triu(n_common, 1))  # each pair with a window of which both were sure, once
    # Of too many pairs some at random, the same ones each time, and in their own order.
    drawn = np.random.default_rng(0).permutation(len(pairs))[:MOST_PAIRS]
    agreements = []
    for pair in pairs[np.sort(drawn)]:
        are_sure = is_sure[pair].all(axis=0)
        a, b = every.called[pair][:, are_sure] == 1
        who = [every.names[judge] for judge in pair]
        found = kappa_interval(a, b) if len(a) >= LEAST else NO_KAPPA
        value, low, high = (None if np.isnan(end) else end for end in found)
        n_unsure = int((every.judged[pair].all(axis=0) & ~are_sure).sum())
        alike = int((a == b).sum())
        agreements.append(JudgesAgreement(who, len(a), alike, value, low, high, n_unsure))
    return JudgePairs(agreements, len(pairs))


def kappa_interval(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> KappaInterval:
    """Compute Cohen's kappa of two annotators of the same cells [n] and its 95 % interval.

    The interval is that of the posterior under Jeffreys' prior of the shares of the four pairs of calls. The
    jackknife over cells covers too little of rare calls, and has none where annotators agree on all.
    """
    value = kappa(a, b)
    if np.isnan(value):
        return NO_KAPPA
    pairs = np.bincount(2 * a + b, minlength=4)
    neither, second, first, both = np.random.default_rng(0).dirichlet(pairs + 0.5, KAPPA_DRAWS).T
    low, high = np.quantile(kappa_of(both + first, both + second, both + neither), (0.025, 0.975))
    return KappaInterval(value, min(float(low), value), max(float(high), value))


class _Rates(Struct, kw_only=True):
    format: Literal["obygaze film rate"]
    number: int
    models: list[FilmRates]


def write_rates(folder: Path, rates: Sequence[FilmRates]) -> None:
    """Write corrected rates beside a timeline, those of each model, for the page."""
    document = _Rates(format="obygaze film rate", number=5, models=[*rates])
    write_whole(
        folder / RATES, json_bytes(msgspec.to_builtins(document, enc_hook=str)), links=False
    )  # a stranger's folder


def read_rates(folder: Path) -> list[FilmRates]:
    """Read the corrected rates of a scored film, those of each model; empty without judgements.

    Raises
    ------
    FilmError
        The file is damaged; names the field.
    """
    path = folder / RATES
    if not path.is_file():
        return []
    try:
        rates = msgspec.json.decode(decoded(bytes_of(path)), type=_Rates)
        refuse_texts(rates)
    except (*UNREADABLE, FilmError) as error:
        raise FilmError(f"{path}: {error}: run 'obygaze film rate' again") from error
    return rates.models
