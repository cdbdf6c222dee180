"""Estimate a film's rate from blind judgements; a model, right or wrong, narrows the interval."""

from collections.abc import Mapping, Sequence
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
from obygaze_film.coverage import SLACK_S
from obygaze_film.draws import SUCCESSIVE, Sampling
from obygaze_film.errors import FilmError
from obygaze_film.judged_windows import (
    LEAST_SURE,
    JudgedFilm,
    JudgedWindows,
    WindowCounts,
    judged_film,
    left_out_message,
    needed_windows,
    votes,
)
from obygaze_film.notes import Message, message
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
"""Draws from the posterior of a kappa, of which its interval is made."""

MOST_ADVISED: Final = 30
"""Windows that a film without a rate is advised to have judged, if it has so many."""


class FilmRates(Struct, frozen=True):
    """What the blind judgements of a film say of its rate, corrected with one model.

    Attributes
    ----------
    rates : tuple of CorrectedRate
        The rates of single judges, by name, and at the end that of all of them together (the panel's). A
        judge, or the panel, that judged too few windows has none here.
    agreement : tuple of JudgesAgreement
        Of every two judges.
    alpha : JudgesAlpha or None
        Of all judges together; None of fewer than three judges, of too few windows, or where it is undefined.
    too_few : tuple of TooFewJudged
        The judges without a rate, and the panel if it has none.
    notices : tuple of str
        What was left out, and why.
    n_definitions : int
        Under how many definitions the film was judged, whether or not there is a rate under each.
    """

    rates: tuple[CorrectedRate, ...]
    agreement: tuple[JudgesAgreement, ...] = ()
    alpha: JudgesAlpha | None = None
    too_few: tuple[TooFewJudged, ...] = ()
    notices: tuple[str, ...] = ()
    n_definitions: int = 1


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
    were sure of. Where each of them has a number of the same time, its interval goes no further than the mean
    of the ends of their own intervals.

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
    notices = [*film.notices, *film.notices_of_gaps()]
    if not any(windows.is_enough for windows in own.values()):
        raise _too_few(film, [windows.counts for windows in own.values()], notices)
    agreement, n_pairs = agreement_of_judges([film])
    if len(agreement) < n_pairs:
        notices.append(message("note_pairs", n=len(agreement), pairs=f"{n_pairs:,}"))
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
            if len(judges) > 1:  # the panel comes last: `rates` are those of its judges
                rate = _cut_at_mean_of_judges(rate, rates)
            rates.append(structs.replace(rate, agreement=_pairs_of_target(agreement, judges)))
        else:
            too_few.append(TooFewJudged(judges=judges, **counts._asdict()))
    return FilmRates(tuple(rates), tuple(agreement), alpha_of_judges([film]), tuple(too_few), tuple(notices))


def rates_by_definition(
    timeline: Timeline,
    judgements: Manifest,
    key: str | None = None,
    *,
    labels: Manifest | None = None,
    names: Mapping[str, str] | None = None,
) -> FilmRates:
    """Correct a film's rate as `correct_rates` does, apart for each definition that it was judged under.

    Where there are several, judgements that do not say under which they were made are left out and counted.

    Parameters
    ----------
    timeline, judgements, key, labels
        As in `correct_rate`.
    names : mapping of str to str, optional
        Digest of a definition -> its name (`Meanings.names`).

    Raises
    ------
    FilmError
        As `correct_rates`, under every definition.
    """
    own = judgements.with_clips(clip for clip in judgements if clip.movie == timeline.movie)
    definitions = [*judgements_of(own).definitions]
    names = names or {}
    if len(definitions) < 2:
        found = correct_rates(timeline, judgements, key, labels=labels)
        definition = definitions[0] if definitions else ""
        return _with_definition(found, definition, names.get(definition, ""))
    rates: list[CorrectedRate] = []
    too_few: list[TooFewJudged] = []
    agreement: list[JudgesAgreement] = []
    notices: list[str] = []
    for definition in definitions:
        under = definition_phrase(definition, names.get(definition, ""))
        clips = [clip for clip in own if clip.extras.get(DEFINITION) == definition]
        try:
            film_rates = correct_rates(timeline, own.with_clips(clips), key, labels=labels)
        except FilmError as error:
            notices.append(message("note_definition", definition=under, notice=error.args[0]))
            continue
        film_rates = _with_definition(film_rates, definition, names.get(definition, ""))
        rates += film_rates.rates
        too_few += film_rates.too_few
        agreement += film_rates.agreement
        notices += [message("note_definition", definition=under, notice=text) for text in film_rates.notices]
    n_unknown = sum(not clip.extras.get(DEFINITION) and clip.level is not None for clip in own)
    if n_unknown:
        notices.append(left_out_message(n_unknown, message("why_definition")))
    if not rates:
        raise FilmError(message("rate_definitions", movie=timeline.movie, notices="; ".join(notices)))
    alpha = None  # alpha is of judgements under one definition
    return FilmRates(tuple(rates), tuple(agreement), alpha, tuple(too_few), tuple(notices), len(definitions))


def definition_phrase(definition: str, name: str) -> Message:
    """Name a definition by its codebook and version; by the start of its digest where these are not known."""
    if name:
        return message("definition_named", name=name)
    return message("definition_digest", digest=definition[:12])


def _with_definition(found: FilmRates, definition: str, name: str) -> FilmRates:
    """Set the definition in rates, agreements and counts of too few windows: what they were judged under."""
    named = {"definition": definition, "definition_name": name}
    rates = tuple(structs.replace(rate, **named) for rate in found.rates)
    too_few = tuple(structs.replace(few, **named) for few in found.too_few)
    agreement = tuple(structs.replace(pair, **named) for pair in found.agreement)
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
    notices = [*film.notices, *film.notices_of_gaps()]
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
        windows_of_judges = {name: film.of(name) for name in judges}
        rates_of_judges = []
        for name, own_windows in windows_of_judges.items():
            if own_windows.is_enough:
                rates_of_judges.append(estimator.rate(own_windows, [name]))
        rate = _cut_at_mean_of_judges(rate, rates_of_judges)
    agreement, n_pairs = agreement_of_judges([film])
    if len(agreement) < n_pairs:
        notices.append(message("note_pairs", n=len(agreement), pairs=f"{n_pairs:,}"))
    return structs.replace(rate, agreement=_pairs_of_target(agreement, rate.annotators)), notices


def main_rate(rates: Sequence[CorrectedRate]) -> CorrectedRate:
    """Choose the one rate that stands for a film: the panel's, else that of the judge of most windows."""
    return max(rates, key=lambda rate: (rate.is_of_panel, rate.n))


def _too_few(film: JudgedFilm, counts: Sequence[WindowCounts], notices: Sequence[str]) -> FilmError:
    """Make the error that a film has too few judgements for a rate.

    It says how many windows the judge with most sure judgements judged, and how to go on if any is left.

    Parameters
    ----------
    film : JudgedFilm
    counts : sequence of WindowCounts
        Of each judge; empty if nobody judged a window of this film.
    notices : sequence of str
        What was left out, and why.
    """
    no_windows = JudgedWindows(film.cells, by_cell={}, unsure=(), sampling=film.sampling)
    most = max(counts, key=lambda judge: (judge.sure, judge.judged), default=no_windows.counts)
    left_out = "; ".join(notices) or message("rate_none_out")
    known = {"movie": film.movie, "counted": counted_windows(most), "notices": left_out}
    if not most.left:
        return FilmError(message("rate_none_left", **known))
    n_windows = most.judged + most.left
    n_advised = min(n_windows, max(MOST_ADVISED, most.judged + most.least))
    needed = needed_windows(most.judged, most.left, most.least)
    return FilmError(message("rate_few", **known, needed=needed, more=n_advised))


def counted_windows(counts: WindowCounts) -> str:
    """Say how many windows were judged blindly, and how many of them surely if not all."""
    key = "counted" if counts.are_all_sure else "counted_sure"
    if counts.judged < 2:
        key += f"_{counts.judged}"
    return message(key, judged=counts.judged, sure=counts.sure)


def estimate_windows(windows: JudgedWindows) -> Estimates:
    """Estimate the mean share of the judges of some windows, each of which all of them judged.

    The estimates are arrays of one draw, shape [1].
    """
    judged, y, _ = votes(windows.by_cell)
    return estimate_rate(
        windows.sure_cells,
        judged[None],
        y[None],
        sampling=windows.sampling,
        denominator=windows.denominator,
    )


def _cut_at_mean_of_judges(panel: CorrectedRate, rates: Sequence[CorrectedRate]) -> CorrectedRate:
    """Cut the interval of a panel at the mean of its judges' own ends, if these are all of one time.

    They are not where a judge has no number, or where some were not sure of windows that others were sure of.
    The panel's share is the mean of its judges' shares, and the standard deviation of a mean is no more than
    the mean of the standard deviations, whichever windows each of them judged. Planted: two judges, alike or
    opposed, who mark .08 to .5 of films of 21 to 100 windows; one judged 21 to 40 of them, the other the
    first 10 to 15 of these. The interval that is cut so holds the mean of their shares in .98 or more of 250
    draws, as that of the common windows does, and is half to three quarters as wide.

    Parameters
    ----------
    panel : CorrectedRate
    rates : sequence of CorrectedRate
        Those of its judges who have one.
    """
    time_s = panel.content_s or 0.0
    are_of_one_time = all(abs((rate.content_s or 0.0) - time_s) <= SLACK_S for rate in rates)
    if len(rates) < len(panel.annotators) or not are_of_one_time:
        return panel
    low = max(panel.low, float(np.mean([rate.low for rate in rates])))
    high = min(panel.high, float(np.mean([rate.high for rate in rates])))
    return structs.replace(panel, low=min(low, panel.value), high=max(high, panel.value))


class _Estimator:
    """Estimate rates of one film by correcting a model's probabilities, or labels in their place.

    Attributes
    ----------
    name : str
        The model's key, or the labels' annotator.
    expected : float or None
        The rate that the model expects, or that the labels have; None if the model has none.
    expected_s : float
        Seconds of the film that `expected` is a rate of.
    positive : Positive
    labelled : Cells or None
        Cells with the labels' shares in place of the model's probabilities; None without labels.
    """

    def __init__(self, timeline: Timeline, key: str | None, labels: Manifest | None) -> None:
        model = timeline.model(key)
        self.positive = positive_of(model)
        self.labelled: Cells | None = None
        if labels is None:
            cells = cells_of(timeline, key)
            self.name = model.key
            self.expected = model.rate.value
        else:
            cells = self.labelled = cells_by(labels, timeline, key)
            self.name = labels.clips[0].annotator or "labels"
            self.expected = float(np.average(cells.p, weights=cells.content_s))
        self.expected_s = float(cells.counted_s.sum())

    def rate(self, windows: JudgedWindows, judges: Sequence[str]) -> CorrectedRate:
        """Estimate the mean share of some judges from windows that all of them judged."""
        if self.labelled is not None:
            cells = replace(windows.cells, p=self.labelled.p, counted_s=self.labelled.counted_s)
            windows = replace(windows, cells=cells)
        judged, positive_shares, _ = votes(windows.by_cell)
        estimates = estimate_windows(windows)
        uses_model = estimates.gain[0] > 0
        method = "census" if windows.is_census else _method(uses_model, windows.sampling, positive_shares)
        calls_of_cells = windows.by_cell.values()
        content = windows.sure_cells.content_s
        n_windows = int((content > 0).sum())
        return CorrectedRate(
            model=self.name,
            value=float(estimates.value[0]),
            low=float(estimates.low[0]),
            high=float(estimates.high[0]),
            level=LEVEL,
            method=method,
            n=len(judged),
            n_positive_by_all=int((positive_shares == 1).sum()),
            n_rows=int((windows.cells.content_s > 0).sum()),
            worth=_worth(estimates, len(judged), n_windows),
            expected=self.expected,
            expected_s=self.expected_s,
            is_of_labels=self.labelled is not None,
            annotators=[*judges],
            positives=[sum(calls[judge] for calls in calls_of_cells) for judge in judges],
            positive=self.positive.text,
            is_of_concept=self.positive.is_concept,
            content_s=float(content.sum()),
            n_unsure=len(windows.unsure),
            unsure_s=float(windows.cells.content_s[[*windows.unsure]].sum()),
            unread_s=windows.cells.unread_s,
        )


def _worth(estimates: Estimates, n: int, n_windows: int) -> float | None:
    """Compute how many windows, judged without the model, would give as narrow an interval.

    The squared width of the interval from n of a film's N windows is proportional to 1 / n - 1 / N. The
    number m that is asked for solves 1 / m - 1 / N = (1 / n - 1 / N) (width / width_alone)^2, and is never
    above N. None if m is no more than n: then the model saves nothing.

    Parameters
    ----------
    estimates : Estimates
        Of one draw.
    n : int
        Windows judged.
    n_windows : int
        Windows of the film, N.
    """
    width = float(estimates.high[0] - estimates.low[0])
    width_alone = float(estimates.alone_high[0] - estimates.alone_low[0])
    if n == n_windows or width >= width_alone:
        return None
    worth = 1 / (1 / n_windows + (1 / n - 1 / n_windows) * (width / width_alone) ** 2)
    return worth if round(worth) > n else None


def _pairs_of_target(agreement: Sequence[JudgesAgreement], judges: Sequence[str]) -> list[JudgesAgreement]:
    """Keep the pairs of judges within a panel; of a single judge, the pairs with any other."""
    if len(judges) > 1:
        return [pair for pair in agreement if set(pair.annotators) <= set(judges)]
    return [pair for pair in agreement if judges[0] in pair.annotators]


def _method(uses_model: bool, sampling: Sampling, y: Floats) -> str:
    """Name the way an interval was found, as `CorrectedRate.method` has it, from judgements y [n], 0 to 1."""
    if uses_model:
        return "difference"
    none_is_positive = not y.any()
    all_are_positive = bool((y == 1).all())
    is_exact = (none_is_positive or all_are_positive) and sampling == SUCCESSIVE
    return "exact" if is_exact else "wilson"


class _NamedCalls(NamedTuple):
    """What J judges who have a name say of each of W windows.

    Attributes
    ----------
    names : list of str
        Of the judges.
    called : ndarray, shape [J, W]
        1 (positive), 0, or NaN where a judge is not sure or did not judge.
    judged : ndarray of bool, shape [J, W]
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
        places = sorted(film.cell_of_place, key=lambda place: film.cell_of_place[place])
        windows += [(film, place) for place in places]
    called = np.full((len(names), len(windows)), np.nan)
    judged = np.zeros(called.shape, dtype=np.bool_)
    for row, name in enumerate(names):
        for column, (film, place) in enumerate(windows):
            calls = film.answers.get(name, {})
            judged[row, column] = place in calls
            call = calls.get(place)
            if call is not None:
                called[row, column] = call
    return _NamedCalls(names, called, judged)


def alpha_of_judges(films: Sequence[JudgedFilm]) -> JudgesAlpha | None:
    """Compute Krippendorff's alpha of three judges or more of some films; of two there is kappa.

    None of fewer than `LEAST_SURE` windows that two judges or more were sure of.
    """
    calls = _named_calls(films)
    n_sure = (~np.isnan(calls.called)).sum(axis=0)  # [W]: judges who were sure of each window
    n_windows = int((n_sure >= 2).sum())
    if len(calls.names) < 3 or n_windows < LEAST_SURE:
        return None
    from obygaze_features.manifest import krippendorff_alpha  # noqa: PLC0415 - films are opened without it

    value = krippendorff_alpha(calls.called)
    if value is None:
        return None
    n_judges = calls.judged.sum(axis=0)  # [W]: judges of each window
    n_unsure = int(((n_judges >= 2) & (n_sure < 2)).sum())
    return JudgesAlpha(len(calls.names), n_windows, value, n_unsure)


class KappaInterval(NamedTuple):
    """Cohen's kappa of two judges and the ends of its 95 % interval; all NaN where it is undefined."""

    kappa: float
    low: float
    high: float


NO_KAPPA: Final = KappaInterval(np.nan, np.nan, np.nan)
"""Of two judges who judged too few windows together, or whose calls define none."""


class JudgePairs(NamedTuple):
    """How far pairs of judges agree.

    Attributes
    ----------
    agreement : list of JudgesAgreement
        Of each pair, or of `MOST_PAIRS` that were drawn at random.
    n_pairs : int
        All pairs with a window of which both were sure.
    """

    agreement: list[JudgesAgreement]
    n_pairs: int


def agreement_of_judges(films: Sequence[JudgedFilm]) -> JudgePairs:
    """Compare every two judges on the cells of some films of which both were sure.

    Of fewer than `LEAST_SURE` such cells there is no kappa.
    """
    calls = _named_calls(films)
    is_sure = ~np.isnan(calls.called)  # [J judges, W windows]
    n_common = is_sure.astype(np.float64) @ is_sure.T  # [J, J]: windows of which both were sure
    pairs = np.argwhere(np.triu(n_common, 1))  # [pairs, 2]: judges with a common window, each pair once
    # Of too many pairs some are drawn: the seed is fixed, so that they are the same ones each time.
    drawn = np.random.default_rng(0).permutation(len(pairs))[:MOST_PAIRS]
    agreements = []
    for pair in pairs[np.sort(drawn)]:
        are_sure = is_sure[pair].all(axis=0)
        first, second = calls.called[pair][:, are_sure] == 1
        kappa_of_pair = kappa_interval(first, second) if len(first) >= LEAST_SURE else NO_KAPPA
        value, low, high = (None if np.isnan(figure) else figure for figure in kappa_of_pair)
        agreement = JudgesAgreement(
            annotators=[calls.names[judge] for judge in pair],
            n=len(first),
            alike=int((first == second).sum()),
            kappa=value,
            low=low,
            high=high,
            n_unsure=int((calls.judged[pair].all(axis=0) & ~are_sure).sum()),
        )
        agreements.append(agreement)
    return JudgePairs(agreements, len(pairs))


def kappa_interval(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> KappaInterval:
    """Compute Cohen's kappa of two annotators of the same cells [n] and its 95 % interval.

    The interval is that of the posterior under Jeffreys' prior of the shares of the four pairs of calls. The
    jackknife over cells covers too little of rare calls, and has none where annotators agree on all.
    """
    value = kappa(a, b)
    if np.isnan(value):
        return NO_KAPPA
    # 2 a + b of calls is 0 where neither, 1 where b alone does, 2 where a alone does, 3 where both.
    counts = np.bincount(2 * a + b, minlength=4)
    shares = np.random.default_rng(0).dirichlet(counts + 0.5, KAPPA_DRAWS)  # Jeffreys' prior is 0.5 of each
    neither, only_b, only_a, both = shares.T
    kappas = kappa_of(first=both + only_a, second=both + only_b, alike=both + neither)
    low, high = np.quantile(kappas, (0.025, 0.975))
    return KappaInterval(value, min(float(low), value), max(float(high), value))


class _Rates(Struct, kw_only=True):
    """The content of `rate.json`; `number` is that of its format."""

    format: Literal["obygaze film rate"]
    number: int
    models: list[FilmRates]


def write_rates(folder: Path, rates: Sequence[FilmRates]) -> None:
    """Write the corrected rates of each model into a scored film's folder, for the film's page."""
    document = _Rates(format="obygaze film rate", number=5, models=[*rates])
    data = json_bytes(msgspec.to_builtins(document, enc_hook=str))
    # A folder that came from somebody else may hold a link to any file: it is not followed.
    write_whole(folder / RATES, data, links=False)


def read_rates(folder: Path) -> list[FilmRates]:
    """Read the corrected rates of each model from a scored film's folder; empty if none were written.

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
