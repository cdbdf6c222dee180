"""Convert a scored film to the content of its page: texts, tiers, passages and minutes."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_film.claims import of_film, phrases
from obygaze_film.claims.kinds import FilmClaim, Moved
from obygaze_film.claims.of_judgements import rate_claims
from obygaze_film.claims.words import Words
from obygaze_film.codebook_names import names_of
from obygaze_film.film_time import (
    BLACK_OR_CREDITS,
    UNJUDGED,
    informative_flags_in,
    mean_probability,
    parts_of,
    seconds_inside,
)
from obygaze_film.page.cards import cards
from obygaze_film.page.key_figures import KeyFigure, key_figures
from obygaze_film.page.translated import model_title, named_rates, task_title
from obygaze_film.positive import people_besides_program, positive_of
from obygaze_film.schema import (
    FLAGS,
    FORMER,
    NO_CONTENT,
    ConceptRecord,
    ModelRecord,
    has_flag,
    is_counted,
    is_left_out,
    runs,
)
from obygaze_film.segments import band_of_mean, columns_of

if TYPE_CHECKING:
    from obygaze_film.judged_rate import FilmRates
    from obygaze_film.timeline import Timeline

Floats = NDArray[np.float64]

MINUTE_S: Final = 60.0

MIN_OF_MINUTE_S: Final = 10.0
"""Minimum number of seconds with a probability of which a minute has means, also a shorter last one."""

SUM_SLACK_S: Final = 1e-6
"""Seconds by which a sum of lengths may miss its exact value, as floats are rounded."""

WINDOW_SLACK_S: Final = 0.002
"""Seconds by which a sum of two times of windows may be off: each is rounded to milliseconds."""

MIN_CHANGE: Final = 0.1
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


class ChangedPassageLine(NamedTuple):
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
    """What the page of a film shows: its rows, its passages, what is claimed of it, and sentences on it.

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
        The model's rows of the film, in time order, with the scores that are shown (`_shown_rows`).
    segments : DataFrame
        Its passages in the order of the page: first those that reach the threshold, then weaker ones; in
        time order each.
    frames : DataFrame
        Its values of frames; empty if it has none.
    concepts : list of ShownConcept
        Concepts, best found first.
    doubtful_concepts : set of str
        Names of those that are not found better than chance.
    time : FilmTime
        How much of the film has a probability, and why the rest has none.
    why_no_prediction : str
        Why the model predicts nothing for the film; empty if it predicts.
    judge_claims : list of FilmClaim
        Rates by blind judgements, for the model shown.
    judged_time : FilmClaim
        How much of the film has a probability.
    marked_passages : FilmClaim or None
        How many passages the model marks; None where it predicts nothing.
    model_evidence : FilmClaim
        How well the model did in tests on films left out of training.
    expected_share : ExpectedShare
        The share of the film that the model expects.
    expert_agreement : FilmClaim or None
        How far experts agree in the corpus that the model was trained on; None if that is not known.
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
        """Read the tables of the model that is shown, and compute what is claimed of the film.

        `words` has the language of the page, `anchor` is the prefix of the film's ids there, `top` the
        minimum number of segments to list, and `rates` are shares by people's blind judgements.
        """
        self.film = film
        self.anchor = anchor
        self.words = words
        self.model = film.model()  # of the film's models, the one that decides
        self.names = names_of(self.model)  # of its levels and concepts
        self.whole_s = film.record.duration_s

        # The model's tables of the film
        self.rows = _shown_rows(film, self.model)
        segments = film.segments(self.model.key, top=top)
        # First the passages that reach the model's threshold, then weaker ones; in time order each
        self.segments = segments.sort_values(["reaches", "start_s"], ascending=[False, True])
        self.frames = film.frames[film.frames["model"] == self.model.key]
        self.concepts = self._concepts()
        self.doubtful_concepts = {shown.concept.name for shown in self.concepts if not shown.concept.is_found}
        self.time = film.time(self.model.key)
        self.why_no_prediction = of_film.why_no_prediction(self.model, self.time)

        # What is claimed of the film: by people's blind judgements, and by the model
        self.judge_claims = self._claims_of_judges(rates)
        self.judged_time = of_film.judged_time(self.model, self.time, film.shots)
        self.marked_passages = of_film.marked_passages(film, self.model, self.segments)
        self.model_evidence = of_film.model_evidence(self.model)
        self.expected_share = of_film.expected_share(self.model, self.rows)
        self.expert_agreement = of_film.corpus_experts(self.model)

    def _claims_of_judges(self, rates: "Sequence[FilmRates]") -> list[FilmClaim]:
        """Return the claims of the first rates that correct the model shown; none if there are no such rates.

        The film may also have rates that correct other models.
        """
        for film_rates in rates:
            if any(rate.model == self.model.key for rate in film_rates.rates):
                return rate_claims(named_rates(film_rates, self.film))
        return []

    # --- sentences
    # -----------------------------------------------------------------------
    @property
    def heading(self) -> str:
        """The film's title with its gravest warnings."""
        return phrases.title_sentence(of_film.film_title(self.film, self.model.key), self.words)

    @property
    def evidence(self) -> str:
        """How well the model did on films left out of training; its name, too, if the film has several."""
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
        record = self.film.record.windows
        window = self.words.seconds(record.window_s)
        # The time from one start to the next, the hop, may not be known: of two windows, the second one may
        # have been moved back.
        has_only_two = record.n == 2
        if record.hop_s is None or has_only_two:
            return self.words.say("windows", window=window)
        sentence = self.words.say("windows_hop", window=window, hop=self.words.seconds(record.hop_s))
        # Rows that are the windows themselves do not overlap: none was moved.
        may_overlap = self.film.record.rows.kind != "windows"
        if may_overlap and self._would_last_end_after_film(record.n, record.hop_s, record.window_s):
            sentence += self.words["windows_moved"]
        return sentence

    def _would_last_end_after_film(self, n_windows: int, hop_s: float, window_s: float) -> bool:
        """Whether the last window would end after the film if it began a full hop after the one before.

        It was then moved back, to end with the film. `hop_s` is the time from one start to the next.
        """
        end_s = (n_windows - 1) * hop_s + window_s
        excess_s = end_s - self.whole_s
        # An excess of a hop or more is impossible: the window before would reach the film's end.
        return WINDOW_SLACK_S < excess_s < hop_s - WINDOW_SLACK_S

    @property
    def marked_sentence(self) -> str:
        """Which passages the model marks, as a sentence; empty where it predicts nothing."""
        if self.marked_passages is None:
            return ""
        return phrases.marked_sentence(self.marked_passages, self.words)

    @property
    def reliability(self) -> str:
        """How far the numbers of the page can be relied on, in up to three sentences.

        They say how far the expected share was off on other films, how far experts agree, and what part of
        the film could not be judged.
        """
        sentences = [phrases.error_sentence(self.expected_share, self.words)]
        if self.expert_agreement is not None:
            sentences.append(phrases.experts_note(self.expert_agreement, self.words))
        sentences.append(phrases.unjudged_sentence(self.judged_time, self.words))
        return " ".join(sentence for sentence in sentences if sentence)

    @property
    def warnings(self) -> list[str]:
        """What makes the numbers unfit to be read as predictions of this film, a sentence each."""
        warnings = []
        # The film is in the model's training data.
        if self.model.is_trained_on:
            warnings.append(self.words["trained_on"])
        # The model gives no probabilities, or none of this film.
        if self.model.calibration is None:
            warnings.append(self.words["uncalibrated"])
        elif self.why_no_prediction in of_film.NOTHING_JUDGED:
            why = phrases.no_prediction_phrase(self.why_no_prediction, self.words)
            warnings.append(self.words.say("nothing_printed", why=why))
        # The model gives all of the film the same probability.
        same_probability = of_film.same_probability(self.film, self.model)
        if same_probability is not None:
            warnings.append(phrases.same_sentence(same_probability, self.words))
        # The model was calibrated on clips of another length than the windows.
        other_windows = of_film.other_windows(self.model, self.film.record.windows)
        if other_windows is not None:
            warnings.append(phrases.windows_sentence(other_windows, self.words))
        return warnings

    @property
    def why_no_passage(self) -> str:
        """Why the page has no card, as a clause: each passage of the film has a card.

        The model gives no prediction of the film, or it does, but no place is long enough for a passage.
        """
        return phrases.no_place_phrase(self.why_no_prediction, self.words)

    @property
    def caveat(self) -> str:
        """What the model's finding means and does not mean, and how far experts agree on it.

        If labels of the training clips are planted (given by a program, to test the method), it says so
        instead of the experts' agreement.
        """
        limits = self.words.say("caveat", positive=self.positive)
        if positive_of(self.model).is_planted:
            agreement = self.words["no_human_planted"]
        elif people_besides_program(self.model):  # a program gave some of the labels
            agreement = self.words["no_human_partly_planted"]
        elif self.expert_agreement is None:
            agreement = self.words["no_human"]
        else:
            agreement = phrases.experts_sentence(self.expert_agreement, self.words)
        return f"{limits} {agreement}"

    @property
    def whose_labels(self) -> str:
        """A sentence that says whose labels the model was trained on.

        Either a program gave them (they are planted), or the model's record names the people, or it is not
        known.
        """
        planted_sentence = phrases.planted_sentence(self.model, self.words)
        if planted_sentence:
            return planted_sentence
        names = self.model.labelled_by
        if not names:
            return self.words["about_1"]
        return self.words.say("about_1_named", names=self.words.listed(names))

    @property
    def figures(self) -> list[KeyFigure]:
        """The share of time, the number of passages, and the AUC within films left out of training."""
        return key_figures(self)

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
        """What the model's levels measure, by the codebook; empty if the codebook does not state it."""
        return str(self.words.translated(self.names.construct(self.model.construct)))

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        """The passages, described for the page's script (`page.cards`)."""
        return cards(self)

    # --- the timeline
    # -----------------------------------------------------------------------
    @property
    def threshold_label(self) -> str:
        """Label of the line of the model's threshold; empty without one, or if no row has a probability."""
        if self.model.threshold_p is None or self.rows["p"].isna().all():
            return ""
        return phrases.threshold_label(self.model.threshold_p, self.words)

    @cached_property
    def staging_strips(self) -> list[Strip]:
        """The strips of measured variables, such as loudness: each with its values by window and its mean.

        A variable that the film was not measured for has no strip.
        """
        table = self.film.variables
        starts = table["start_s"].to_numpy(dtype=np.float64)
        ends = table["end_s"].to_numpy(dtype=np.float64)
        # Windows may overlap: each is drawn up to the start of the next one.
        next_starts = np.append(starts[1:], np.inf)
        drawn_ends = np.minimum(ends, next_starts)

        strips: list[Strip] = []
        for name, scale in SCALES.items():
            if name not in table or table[name].isna().all():
                continue
            mean = of_film.staging_mean(self.film, self.model, name, scale.decimals)
            shares_of_axis = (table[name] - scale.low) / (scale.high - scale.low)
            strip = Strip(
                key=f"staging-{len(strips)}",
                name=self.words[name],
                note=phrases.staging_sentence(mean, self.words),
                starts=starts,
                ends=drawn_ends,
                values=shares_of_axis.clip(0, 1).to_numpy(dtype=np.float64),
            )
            strips.append(strip)
        return strips

    def concept_strips(self, *, found: bool) -> list[Strip]:
        """Return the strips of concepts that are found better than chance; with `found` false, of the others.

        The note of each says how well it is found. Its key has the concept's place among all concepts.
        """
        starts = self.rows["start_s"].to_numpy(dtype=np.float64)
        ends = self.rows["end_s"].to_numpy(dtype=np.float64)
        strips = []
        for number, shown in enumerate(self.concepts):
            if shown.concept.is_found != found:
                continue
            claim = of_film.concept_found(self.model, shown.concept)
            strip = Strip(
                key=f"concept-{number}",
                name=shown.name,
                note=phrases.concept_label(claim, self.words),
                starts=starts,
                ends=ends,
                values=shown.p,
            )
            strips.append(strip)
        return strips

    @cached_property
    def other_models(self) -> list[Strip]:
        """The strips of the film's other models that classify, each with the share that it expects."""
        strips: list[Strip] = []
        for model in self.film.record.models:
            if model.decides and model.key != self.model.key:
                strips.append(_model_strip(f"other-{len(strips)}", model, self.film, self.words))
        return strips

    def legend(self, kind: str) -> str:
        """Explain, for the legend of the timeline, how a kind of span is hatched.

        `kind` is `UNJUDGED`, of spans with content but no probability, or `BLACK_OR_CREDITS`.
        """
        if kind == UNJUDGED:
            return phrases.unjudged_legend(self.judged_time, self.words)
        return self.words[f"legend_{kind}"]

    @cached_property
    def hatched(self) -> list[dict[str, Any]]:
        """The spans that are hatched because they have no probability or no content.

        Adjacent rows of one kind are joined. Each has `start`, `end` and `kind`: `UNJUDGED` or
        `BLACK_OR_CREDITS`.
        """
        kinds_of_rows = parts_of(self.rows)
        starts = self.rows["start_s"].tolist()
        ends = self.rows["end_s"].tolist()
        spans = []
        for kind in (UNJUDGED, BLACK_OR_CREDITS):
            for first, after in runs(kinds_of_rows == kind):
                last = after - 1
                spans.append({"kind": kind, "start": starts[first], "end": ends[last]})
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
        """Return the concepts of a model that have probabilities, best found first.

        If the model is not the one shown, the names of the concepts name it too.
        """
        rows = _shown_rows(self.film, model)
        names = names_of(model)
        concepts = []
        for concept in sorted(model.concepts, key=_best_found_first_key):
            column = f"{concept.name}_p"
            has_probabilities = column in rows
            if not has_probabilities:
                continue
            name: str = self.words.translated(names.concept(concept.name))
            if model.key != self.model.key:
                name = self.words.say("of_model", name=name, model=model.key)
            p = rows[column].to_numpy(dtype=np.float64)
            concepts.append(ShownConcept(concept, p, name))
        return concepts

    # --- what learning changed
    # -----------------------------------------------------------------------
    @cached_property
    def rows_before_learning(self) -> pd.DataFrame:
        """The film's rows by the model as it was before it learnt from judgements.

        Empty if the model did not learn from judgements.
        """
        key_before = f"{self.model.key}{FORMER}"
        if key_before not in self.film.keys:
            return self.rows.iloc[:0]
        return _shown_rows(self.film, self.film.model(key_before))

    @property
    def changed_passages(self) -> list[Moved]:
        """Passages whose probability learning changed by `MIN_CHANGE` or more, the largest change first.

        They are the passages that reach the threshold, by the model as it is now or as it was before.
        """
        if self.rows_before_learning.empty:
            return []

        # The spans of the passages that reach the threshold before or after learning, each once.
        segments_before = self.film.segments(f"{self.model.key}{FORMER}")
        segments = pd.concat([self.segments, segments_before])
        passages = segments[segments["reaches"] == 1]  # the others stay below the threshold
        spans = passages[["start_s", "end_s"]].drop_duplicates()

        changes = []
        for start_s, end_s in spans.to_numpy(dtype=np.float64).tolist():
            change = self._change_by_learning(start_s, end_s)
            if change.size >= MIN_CHANGE:
                changes.append(change)
        return [
            of_film.moved_passage(self.model, (change.start_s, change.end_s), change.before, change.after)
            for change in sorted(changes, key=lambda change: -change.size)
        ]

    def _change_by_learning(self, start_s: float, end_s: float) -> "ChangeByLearning":
        """Compute the mean probability of a span before and after the model learnt from judgements.

        Each is NaN if too little of the span is judged (`mean_probability`).
        """
        before = mean_probability(self.rows_before_learning, start_s, end_s)
        after = mean_probability(self.rows, start_s, end_s)
        return ChangeByLearning(
            start_s,
            end_s,
            before=np.nan if before is None else before,
            after=np.nan if after is None else after,
        )

    @property
    def reasons_note(self) -> str:
        """What it means that a reason is positive or negative; empty if the model gives no reasons."""
        if not self.model.by_concepts:
            return ""
        has_usual = any(concept.usual is not None for concept in self.model.concepts)
        has_changes = self.model.has_changes
        return phrases.reasons_note(self.words, has_usual=has_usual, has_changes=has_changes)

    @property
    def changed_passage_lines(self) -> list[ChangedPassageLine]:
        """The passages whose probability learning changed, as the desk lists them."""
        lines = []
        for claim in self.changed_passages:
            sentence = phrases.moved_sentence(claim, self.words)
            lines.append(ChangedPassageLine(claim.time.start_s, claim.time.end_s, sentence))
        return lines

    # --- minutes
    # -----------------------------------------------------------------------
    @property
    def minutes_caption(self) -> str:
        """Caption of the table of minutes, with the number of seconds that a mean of a minute needs."""
        return self.words.say("minutes_caption", n=self.words.seconds(MIN_OF_MINUTE_S))

    @property
    def minutes(self) -> list[Minute]:
        """Means of each minute of the film; the last one may be shorter."""
        return [self._minute(start_s) for start_s in np.arange(0.0, self.whole_s, MINUTE_S).tolist()]

    def _minute(self, start_s: float) -> Minute:
        """Average the rows in the minute from `start_s` on, each weighted by its seconds in the minute."""
        end_s = min(start_s + MINUTE_S, self.whole_s)
        seconds_of_all = seconds_inside(self.rows, start_s, end_s)
        is_inside = seconds_of_all > 0  # a row that only rounding moves into the minute is not
        rows = self.rows[is_inside]
        seconds = seconds_of_all[is_inside]

        # The model's probability, of the rows that have one
        has_p = is_counted(rows)  # not those that are black, or too unlike the training clips
        mean = self._mean_with_band(rows[has_p], seconds[has_p])

        # The concepts' probabilities, which are arrays of all rows of the film
        concept_means = [_mean_of_known(shown.p[is_inside], seconds) for shown in self.concepts]

        flags_of_rows = informative_flags_in(rows)
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

    def _mean_with_band(self, rows: pd.DataFrame, seconds: Floats) -> "MeanWithBand":
        """Average rows [N] of one minute, weighted by their seconds in it [N].

        All is NaN if the rows have too few seconds in the minute.
        """
        if not _is_enough_of_minute(seconds):
            return MeanWithBand(np.nan, np.nan, np.nan)
        p = float(np.average(rows["p"], weights=seconds))
        p_low, p_high = band_of_mean(columns_of(rows), seconds, self.model)
        return MeanWithBand(p, p_low, p_high)


class ChangeByLearning(NamedTuple):
    """The mean probability of a span, whose ends are in seconds, before and after learning."""

    start_s: float
    end_s: float
    before: float
    after: float

    @property
    def size(self) -> float:
        """By how much learning changed the mean probability, up or down; NaN if one of them is not known."""
        return abs(self.after - self.before)


class MeanWithBand(NamedTuple):
    """A mean probability, and the ends of its band."""

    p: float
    p_low: float
    p_high: float


def _is_enough_of_minute(seconds: Floats) -> bool:
    """Whether so many seconds of rows are enough for a mean of a minute (`MIN_OF_MINUTE_S`)."""
    return float(seconds.sum()) >= MIN_OF_MINUTE_S - SUM_SLACK_S


def _mean_of_known(p: Floats, seconds: Floats) -> float:
    """Average the probabilities [N] of a minute's rows that are not NaN, weighted by the rows' seconds [N].

    NaN if the rows that have a probability are less than `MIN_OF_MINUTE_S` of the minute.
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
    rows = _shown_rows(film, model)
    expected = of_film.expected_share(model, rows)
    share = words["withheld"] if expected.number is None else phrases.share_value(expected, words)
    notes = [share]
    warnings = phrases.model_warnings(of_film.film_title(film, model.key), words)
    if warnings:
        notes.append(warnings)
    return Strip(
        key,
        name=f"{model_title(model, words)}, {task_title(model, words)}",
        note=words["semicolon"].join(notes),
        starts=rows["start_s"].to_numpy(dtype=np.float64),
        ends=rows["end_s"].to_numpy(dtype=np.float64),
        values=rows["p"].to_numpy(dtype=np.float64),
    )


def _shown_rows(film: "Timeline", model: ModelRecord) -> pd.DataFrame:
    """Return a model's rows of a film without scores that do not count, so that nothing draws them.

    Rows that are left out (`schema.is_left_out`) have no probability of the model. Black pictures and credits
    have none of concepts either: of a film that the model was trained on they may have both.
    """
    rows = film.rows(model.key)
    of_model = [name for name in ("p", "p_low", "p_high") if name in rows]
    of_concepts = [f"{concept.name}_p" for concept in model.concepts if f"{concept.name}_p" in rows]
    has_no_content = has_flag(rows, *NO_CONTENT)
    shown = {name: rows[name].mask(is_left_out(rows)) for name in of_model}
    shown |= {name: rows[name].mask(has_no_content) for name in of_concepts}
    return rows.assign(**shown)


def _best_found_first_key(concept: ConceptRecord) -> tuple[int, float]:
    """Return a sort key by which the concept whose average precision is highest above chance comes first.

    Concepts that are not found better than chance come after all others, and in either group those without
    these numbers come last.
    """
    group = 0 if concept.is_found else 1
    if concept.ap is None or concept.chance is None:
        largest_possible_difference = 1.0
        return group, largest_possible_difference
    # Sorting is by rising keys: the farther above chance, the smaller the key.
    return group, concept.chance - concept.ap
