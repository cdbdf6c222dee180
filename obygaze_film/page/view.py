"""Convert a scored film to the content of its page: texts, tiers, passages and minutes."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.claims import of_film, phrases
from obygaze_film.claims.kinds import FilmClaim, MarkedPassages, Moved
from obygaze_film.claims.of_judgements import rate_claims
from obygaze_film.claims.words import Words
from obygaze_film.codebook_names import names_of
from obygaze_film.film_time import BLACK_OR_CREDITS, UNJUDGED, informative_flags_in, parts_of
from obygaze_film.page.cards import cards
from obygaze_film.page.key_figures import KeyFigure, key_figures
from obygaze_film.page.translated import model_title, named_rates, task_title
from obygaze_film.positive import people_besides_program, positive_of
from obygaze_film.schema import (
    FLAGS,
    FORMER,
    ConceptRecord,
    ModelRecord,
    is_counted,
    runs,
)
from obygaze_film.segments import band_of_mean, columns_of

if TYPE_CHECKING:
    from obygaze_film.judged_rate import FilmRates
    from obygaze_film.timeline import Timeline

Floats = NDArray[np.float64]

MINUTE_S: Final = 60.0

LEAST_OF_MINUTE_S: Final = 10.0
"""Minimum number of seconds with a probability of which a minute has means, also a shorter last one."""

SUM_SLACK_S: Final = 1e-6
"""Seconds by which a sum of lengths may miss its exact value, as floats are rounded."""

WINDOW_SLACK_S: Final = 0.002
"""Seconds by which a sum of two times of windows may be off: each is rounded to milliseconds."""

LEAST_MOVED: Final = 0.1
"""Minimum change of a passage's probability, by learning, that is listed."""


class StagingScale(NamedTuple):
    """How a variable of staging is drawn.

    Attributes
    ----------
    low, high : float
        Ends of its axis, in its own unit.
    decimals : int
        Decimals of its mean.
    """

    low: float
    high: float
    decimals: int


SCALES: Final = {
    "loudness": StagingScale(-50.0, -10.0, 0),
    "speech": StagingScale(0.0, 1.0, 2),
    "cuts": StagingScale(0.0, 60.0, 1),
    "black": StagingScale(0.0, 1.0, 2),
    "camera": StagingScale(0.0, 0.3, 2),
    "screen": StagingScale(0.0, 1.0, 2),
    "close": StagingScale(0.0, 1.0, 2),
    "face": StagingScale(0.0, 0.5, 2),
}
"""Column of a film's variables -> how it is drawn, in the order of the page."""


class Strip(NamedTuple):
    """A row of the timeline.

    Attributes
    ----------
    key : str
        The script's name of the row: its kind and its number among those of its kind, such as `staging-0`.
    name : str
        Its name on the page.
    note : str
        What stands beside it.
    starts, ends : ndarray, shape [N]
        Times of its values, in seconds.
    values : ndarray, shape [N]
        What is drawn, from 0 to 1; NaN is not drawn.
    """

    key: str
    name: str
    note: str
    starts: Floats
    ends: Floats
    values: Floats


class Minute(NamedTuple):
    """Means of a minute, weighted by time; a mean of too little time is NaN.

    Attributes
    ----------
    start_s : float
    judged_s : float
        Seconds that have a probability.
    p, p_low, p_high : float
        The model's probability and the ends of its band.
    concepts : list of float
        Probability of each concept, in the order of `FilmView.concepts`.
    flags : str
        Its flags, joined by semicolons.
    """

    start_s: float
    judged_s: float
    p: float
    p_low: float
    p_high: float
    concepts: list[float]
    flags: str


class MovedLine(NamedTuple):
    """A passage whose probability learning changed: its ends in seconds, and a sentence on the change."""

    start_s: float | None
    end_s: float | None
    sentence: str


class ShownConcept(NamedTuple):
    """A concept, its probabilities on the rows shown, and its name on the page.

    The name also names the concept's model if that is another one than the model shown.
    """

    concept: ConceptRecord
    p: Floats
    name: str


class FilmView:
    """One film of a page.

    Parameters
    ----------
    film : Timeline
    anchor : str
        Prefix of the film's ids on the page.
    words : Words
        The language of the page.
    top : int
        Minimum number of segments to list.
    rates : sequence of FilmRates
        The film's rates by blind judgements; those of the model shown count.

    Attributes
    ----------
    model : ModelRecord
        The model that is shown: the one that decides.
    names : CodebookNames
        Names of its levels and concepts in all languages of the codebook.
    whole_s : float
        Length of the film in seconds.
    rows : DataFrame
        The model's rows of the film, in time order.
    segments : DataFrame
        Its passages in the order of the page: first those that reach the threshold, then weaker ones.
    frames : DataFrame
        Its values of frames; empty if it has none.
    concepts : list of ShownConcept
        Concepts, best found first.
    doubtful : set of str
        Names of those that are not found better than chance.
    time : FilmTime
        How much of the film has a probability, and why the rest has none.
    why_no_prediction : str
        Why the model predicts nothing for the film; empty if it predicts.
    judges, judged, marked, model_evidence, expected, experts
        Claims about the film: rates by blind judgements, time with a probability, passages, how well the
        model was tested, the share that it expects, and how far experts agree.
    """

    def __init__(
        self,
        film: "Timeline",
        anchor: str,
        words: Words,
        *,
        top: int,
        rates: "Sequence[FilmRates]" = (),
    ) -> None:
        self.film, self.words, self.anchor = film, words, anchor
        self.model = film.model()
        self.names = names_of(self.model)
        self.whole_s = film.record.duration_s
        self.rows = film.rows(self.model.key)
        strongest_first = film.segments(self.model.key, top=top)
        self.segments = strongest_first.sort_values(["reaches", "start_s"], ascending=[False, True])
        self.frames = film.frames[film.frames["model"] == self.model.key]
        self.concepts = self._concepts()
        self.doubtful = {shown.concept.name for shown in self.concepts if not shown.concept.is_found}
        self.time = film.time(self.model.key)
        self.why_no_prediction = of_film.why_no_prediction(self.model, self.time)
        # What is claimed of the film: by people's blind judgements, and by the model.
        self.judges = self._judges(film, rates)
        self.judged = of_film.judged_time(self.model, self.time, film.shots)
        self.marked = of_film.marked_passages(film, self.model, self.segments)
        self.model_evidence = of_film.model_evidence(self.model)
        self.expected = of_film.expected_share(self.model, self.rows)
        self.experts = of_film.corpus_experts(self.model)

    @staticmethod
    def _judges(film: "Timeline", rates: "Sequence[FilmRates]") -> list[FilmClaim]:
        """State the rates by blind judgements of the model shown as claims; none if it has no rates."""
        for found in rates:
            if any(rate.model == film.model().key for rate in found.rates):
                return rate_claims(named_rates(found, film))
        return []

    # --- sentences
    # -----------------------------------------------------------------------
    @property
    def heading(self) -> str:
        """The film's title with its gravest warnings."""
        return phrases.title_sentence(of_film.film_title(self.film, self.model.key), self.words)

    @property
    def evidence(self) -> str:
        """How well the model did on films left out of training; one of several models is named."""
        sentence = phrases.evidence_sentence(self.model_evidence, self.words)
        if len(self.film.record.models) == 1:
            return sentence
        return self.words.say("named", name=self.model.key, what=sentence)

    @property
    def windows(self) -> str:
        """How long the windows are, how far apart they begin, and whether the last one was moved back.

        Windows are of 8 s and begin every 4 s, for example. A last window that would end after the film is
        moved back to end with it.
        """
        windows = self.film.record.windows
        window = self.words.seconds(windows.window_s)
        # Of two windows, the second may have been moved: nobody knows how far apart they should begin.
        if windows.hop_s is None or windows.n == 2:
            return self.words.say("windows", window=window)
        sentence = self.words.say("windows_hop", window=window, hop=self.words.seconds(windows.hop_s))
        # Where rows are windows, these do not overlap: none was moved.
        do_overlap = self.film.record.rows.kind != "windows"
        if do_overlap and self._ends_after_film(windows.n, windows.hop_s, windows.window_s):
            sentence += self.words["windows_moved"]
        return sentence

    def _ends_after_film(self, n_windows: int, hop_s: float, window_s: float) -> bool:
        """Whether the last of the windows, a full hop after the one before, would end after the film."""
        end_s = (n_windows - 1) * hop_s + window_s
        beyond_s = end_s - self.whole_s
        # A whole hop or more after the end there would be no such window.
        return WINDOW_SLACK_S < beyond_s < hop_s - WINDOW_SLACK_S

    @property
    def marked_sentence(self) -> str:
        """Which passages the model marks; empty where it predicts nothing."""
        return "" if self.marked is None else phrases.marked_sentence(self.marked, self.words)

    @property
    def reliability(self) -> str:
        """How far the share was off on other films, how far experts agree, and what could not be judged."""
        facts = [phrases.error_sentence(self.expected, self.words)]
        if self.experts is not None:
            facts.append(phrases.experts_note(self.experts, self.words))
        facts.append(phrases.unjudged_sentence(self.judged, self.words))
        return " ".join(fact for fact in facts if fact)

    @property
    def warnings(self) -> list[str]:
        """What makes the numbers unfit to be read as predictions of this film."""
        warnings = []
        if self.model.is_trained_on:
            warnings.append(self.words["trained_on"])
        if self.model.calibration is None:
            warnings.append(self.words["uncalibrated"])
        elif self.why_no_prediction in of_film.NOTHING_JUDGED:
            why = phrases.no_prediction_phrase(self.why_no_prediction, self.words)
            warnings.append(self.words.say("nothing_printed", why=why))
        same = of_film.same_probability(self.film, self.model)
        if same is not None:
            warnings.append(phrases.same_sentence(same, self.words))
        windows = of_film.other_windows(self.model, self.film.record.windows)
        if windows is not None:
            warnings.append(phrases.windows_sentence(windows, self.words))
        return warnings

    @property
    def why_no_cards(self) -> str:
        """Why no passage is listed, as a clause."""
        return phrases.no_place_phrase(self.why_no_prediction, self.words)

    @property
    def caveat(self) -> str:
        """What the model's finding means and does not mean, and how far experts agree on it."""
        limits = self.words.say("caveat", positive=self.positive)
        if positive_of(self.model).is_planted:
            return f"{limits} {self.words['no_human_planted']}"
        if people_besides_program(self.model):
            return f"{limits} {self.words['no_human_partly_planted']}"
        if self.experts is None:
            return f"{limits} {self.words['no_human']}"
        return f"{limits} {phrases.experts_sentence(self.experts, self.words)}"

    @property
    def labelled(self) -> str:
        """Whose labels the model was trained on, as far as its record tells."""
        planted = phrases.planted_sentence(self.model, self.words)
        if planted:
            return planted
        names = self.model.labelled_by
        if not names:
            return self.words["about_1"]
        return self.words.say("about_1_named", names=self.words.listed(names))

    @property
    def figures(self) -> list[KeyFigure]:
        """The share of time, the number of passages, and the AUC within films left out of training."""
        return key_figures(self)

    @property
    def reaching_passages(self) -> MarkedPassages | None:
        """The number of passages, even if the model was trained on the film; None without a probability."""
        return of_film.reaching_passages(self.film, self.model, self.segments)

    @cached_property
    def positive(self) -> str:
        """What the model finds: its positive levels with their titles, or its concept."""
        return str(self.words.translated(positive_of(self.model).titled))

    @property
    def model_title(self) -> str:
        """The model's title."""
        return model_title(self.model, self.words)

    @property
    def construct(self) -> str:
        """What the codebook says its levels measure; empty if it does not say it."""
        return str(self.words.translated(self.names.construct(self.model.construct)))

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        """The passages as the page's script shows them."""
        return cards(self)

    # --- the timeline
    # -----------------------------------------------------------------------
    def between(self, start_s: float, end_s: float) -> pd.DataFrame:
        """Return the rows that overlap a span."""
        return self.rows[(self.rows["end_s"] > start_s) & (self.rows["start_s"] < end_s)]

    @property
    def threshold(self) -> str:
        """Label of the line of the model's threshold; empty without one, or if no row has a probability."""
        if self.model.threshold_p is None or self.rows["p"].isna().all():
            return ""
        return phrases.threshold_label(self.model.threshold_p, self.words)

    @cached_property
    def staging_strips(self) -> list[Strip]:
        """The variables of staging, such as loudness: each with its values by window and its mean."""
        table = self.film.variables
        starts = table["start_s"].to_numpy(dtype=np.float64)
        # Windows may overlap: each is drawn up to the start of the next one.
        ends = np.minimum(table["end_s"], np.append(starts[1:], np.inf)).to_numpy(dtype=np.float64)
        strips: list[Strip] = []
        for name, scale in SCALES.items():
            if name in table and table[name].notna().any():
                mean = of_film.staging_mean(self.film, self.model, name, scale.decimals)
                shares_of_axis = ((table[name] - scale.low) / (scale.high - scale.low)).clip(0, 1)
                strip = Strip(
                    key=f"staging-{len(strips)}",
                    name=self.words[name],
                    note=phrases.staging_sentence(mean, self.words),
                    starts=starts,
                    ends=ends,
                    values=shares_of_axis.to_numpy(dtype=np.float64),
                )
                strips.append(strip)
        return strips

    def concept_strips(self, *, found: bool) -> list[Strip]:
        """Return the concepts that are found better than chance; or, with `found` false, all others.

        The note of each says how well it is found.
        """
        starts, ends = (self.rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
        strips = []
        for number, shown in enumerate(self.concepts):
            if shown.concept.is_found == found:
                claim = of_film.concept_found(self.model, shown.concept)
                note = phrases.concept_label(claim, self.words)
                key = f"concept-{number}"
                strips.append(Strip(key, shown.name, note, starts=starts, ends=ends, values=shown.p))
        return strips

    @cached_property
    def other_models(self) -> list[Strip]:
        """The probabilities of the film's other models that decide, each with the share that it expects."""
        strips: list[Strip] = []
        for model in self.film.record.models:
            if model.decides and model.key != self.model.key:
                strips.append(_model_strip(f"other-{len(strips)}", model, self.film, self.words))
        return strips

    def legend(self, kind: str) -> str:
        """Explain how a kind of span is drawn, such as `UNJUDGED`: spans with content, but no probability."""
        if kind == UNJUDGED:
            return phrases.unjudged_legend(self.judged, self.words)
        return self.words[f"legend_{kind}"]

    @cached_property
    def hatched(self) -> list[dict[str, Any]]:
        """The spans that are hatched because they have no probability or no content.

        Adjacent rows of one kind are joined. Each has `start`, `end` and `kind`: `UNJUDGED` or
        `BLACK_OR_CREDITS`.
        """
        kinds = parts_of(self.rows)
        starts, ends = self.rows["start_s"].tolist(), self.rows["end_s"].tolist()
        spans = []
        for kind in (UNJUDGED, BLACK_OR_CREDITS):
            for first, after in runs(kinds == kind):
                spans.append({"kind": kind, "start": starts[first], "end": ends[after - 1]})
        return spans

    def _concepts(self) -> list[ShownConcept]:
        """Return the concepts of the model shown; if it has none, those of another model that has some.

        All models of a film have rows at the same times, so that another model's concepts can be drawn too.
        """
        for model in (self.model, *self.film.record.models):
            concepts = self._concepts_of(model)
            if concepts:
                return concepts
        return []

    def _concepts_of(self, model: ModelRecord) -> list[ShownConcept]:
        """Return the concepts of a model that have probabilities, best found first (`_best_found_first`).

        The name of a concept of another model than the one shown says which model it is of.
        """
        rows, names = self.film.rows(model.key), names_of(model)
        shown = []
        for concept in sorted(model.concepts, key=_best_found_first):
            if f"{concept.name}_p" not in rows:
                continue
            name: str = self.words.translated(names.concept(concept.name))
            if model.key != self.model.key:
                name = self.words.say("of_model", name=name, model=model.key)
            p = rows[f"{concept.name}_p"].to_numpy(dtype=np.float64)
            shown.append(ShownConcept(concept, p, name))
        return shown

    # --- what learning changed
    # -----------------------------------------------------------------------
    @cached_property
    def former(self) -> pd.DataFrame:
        """The rows of the model before it learnt from judgements; empty if it did not."""
        key = f"{self.model.key}{FORMER}"
        return self.film.rows(key) if key in self.film.keys else self.rows.iloc[:0]

    @property
    def moved(self) -> list[Moved]:
        """Passages whose probability learning changed by `LEAST_MOVED` or more, the largest change first.

        They are the passages of the model as it is now, and those of the model before it learnt.
        """
        if self.former.empty:
            return []
        segments = pd.concat([self.segments, self.film.segments(f"{self.model.key}{FORMER}")])
        passages = segments[segments["reaches"] == 1]  # those that reach the threshold
        spans = passages[["start_s", "end_s"]].drop_duplicates()
        claims: list[Moved] = []
        changes: list[float] = []  # of each claim, without its sign
        for start_s, end_s in spans.to_numpy(dtype=np.float64).tolist():
            inside = self.between(start_s, end_s)
            # Each row is weighted by its seconds in the passage, as where the desk shows a chosen passage.
            seconds = inside["end_s"].clip(upper=end_s) - inside["start_s"].clip(lower=start_s)
            # Both models have the same rows, with the same index.
            before = _average(self.former.loc[inside.index, "p"], seconds)
            after = _average(self.rows.loc[inside.index, "p"], seconds)
            if abs(after - before) >= LEAST_MOVED:
                claims.append(of_film.moved_passage(self.model, (start_s, end_s), before, after))
                changes.append(abs(after - before))
        largest_first = sorted(range(len(claims)), key=lambda index: -changes[index])
        return [claims[index] for index in largest_first]

    @property
    def reasons_note(self) -> str:
        """What it means that a reason is positive or negative; empty if the model gives no reasons."""
        if not self.model.by_concepts:
            return ""
        has_usual = any(concept.usual is not None for concept in self.model.concepts)
        return phrases.reasons_note(self.words, has_usual=has_usual)

    @property
    def moved_lines(self) -> list[MovedLine]:
        """The moved passages as the desk lists them."""
        return [
            MovedLine(claim.time.start_s, claim.time.end_s, phrases.moved_sentence(claim, self.words))
            for claim in self.moved
        ]

    # --- minutes
    # -----------------------------------------------------------------------
    @property
    def minutes_caption(self) -> str:
        """Caption of the table of minutes, which says from how many seconds on a minute has a mean."""
        return self.words.say("minutes_caption", n=self.words.seconds(LEAST_OF_MINUTE_S))

    @property
    def minutes(self) -> list[Minute]:
        """Means of each minute of the film; the last one may be shorter."""
        return [self._minute(start_s) for start_s in np.arange(0.0, self.whole_s, MINUTE_S).tolist()]

    def _minute(self, start_s: float) -> Minute:
        """Average the rows in the minute from `start_s` on, each weighted by its seconds in the minute."""
        end_s = min(start_s + MINUTE_S, self.whole_s)
        inside = self.between(start_s, end_s)
        seconds = _seconds_inside(inside, start_s, end_s)
        has_p = is_counted(inside)
        mean = self._mean_with_band(inside[has_p], seconds[has_p])
        indices = inside.index.to_numpy()  # in all rows of the film
        concept_means = [_mean_of_known(shown.p[indices], seconds) for shown in self.concepts]
        flags_of_rows = informative_flags_in(inside)
        flags = [flag for flag in FLAGS if flag in flags_of_rows]  # in the order of `FLAGS`
        return Minute(
            start_s,
            judged_s=float(seconds[has_p].sum()),
            p=mean.p,
            p_low=mean.p_low,
            p_high=mean.p_high,
            concepts=concept_means,
            flags=";".join(flags),
        )

    def _mean_with_band(self, rows: pd.DataFrame, weights: Floats) -> "MeanWithBand":
        """Average rows [N] of one minute, weighted by their seconds in it [N]; NaN if these are too few."""
        if not _is_enough_of_minute(weights):
            return MeanWithBand(np.nan, np.nan, np.nan)
        p = float(np.average(rows["p"], weights=weights))
        p_low, p_high = band_of_mean(columns_of(rows), weights, self.model)
        return MeanWithBand(p, p_low, p_high)


class MeanWithBand(NamedTuple):
    """A mean probability, and the ends of its band."""

    p: float
    p_low: float
    p_high: float


def _is_enough_of_minute(seconds: Floats) -> bool:
    """Whether so many seconds of rows are enough for a mean of a minute (`LEAST_OF_MINUTE_S`)."""
    return float(seconds.sum()) >= LEAST_OF_MINUTE_S - SUM_SLACK_S


def _seconds_inside(rows: pd.DataFrame, start_s: float, end_s: float) -> Floats:
    """Compute how many seconds of each row [N] lie in a span."""
    starts, ends = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    return np.asarray((np.minimum(ends, end_s) - np.maximum(starts, start_s)).clip(0))


def _mean_of_known(p: Floats, seconds: Floats) -> float:
    """Average probabilities [N] that are not NaN, weighted by their seconds in a minute [N].

    NaN if these are too few.
    """
    is_known = ~np.isnan(p) & (seconds > 0)
    if not _is_enough_of_minute(seconds[is_known]):
        return float(np.nan)
    return float(np.average(p[is_known], weights=seconds[is_known]))


def _model_strip(key: str, model: ModelRecord, film: "Timeline", words: Words) -> Strip:
    """Make the strip of one of a film's other models: its probability over the film's time.

    The note beside it is the share of the film that the model expects, and its warnings. `key` names the
    strip for the page's script.
    """
    rows = film.rows(model.key)
    expected = of_film.expected_share(model, rows)
    note = words["withheld"] if expected.number is None else phrases.share_value(expected, words)
    warnings = phrases.model_warnings(of_film.film_title(film, model.key), words)
    if warnings:
        note = f"{note}{words['semicolon']}{warnings}"
    return Strip(
        key,
        name=f"{model_title(model, words)}, {task_title(model, words)}",
        note=note,
        starts=rows["start_s"].to_numpy(dtype=np.float64),
        ends=rows["end_s"].to_numpy(dtype=np.float64),
        values=rows["p"].to_numpy(dtype=np.float64),
    )


def _average(values: pd.Series, weights: pd.Series) -> float:
    """Return the weighted mean of the values that are not NaN; NaN if all are."""
    return float((values * weights).sum() / weights[values.notna()].sum(min_count=1))


def _best_found_first(concept: ConceptRecord) -> tuple[bool, float]:
    """Return a sort key by which the concept whose average precision is highest above chance comes first.

    Concepts that are not found better than chance come after all others, and in either group those without
    these numbers come last.
    """
    is_not_found = not concept.is_found  # False is sorted before True
    if concept.ap is None or concept.chance is None:
        return is_not_found, 1.0  # the largest possible value of chance - ap
    return is_not_found, concept.chance - concept.ap
