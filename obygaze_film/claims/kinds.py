"""Declare the kinds of claims: who says what, of which time, number, interval and conditions."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec

from obygaze_features.arguments import checked
from obygaze_film.positive import Positive

# --- conditions: what must be known to read a number
# ---------------------------------------------------------------------------
TRAINED_ON: Final = "trained on this film"
ALL_NOTHING: Final = "all of it is black or credits"
ALL_UNREAD: Final = "nothing of it could be read"
ALL_UNLIKE: Final = "unlike every film of the training"
LITTLE_JUDGED: Final = "little can be judged"
PARTLY_READ: Final = "a part of its video could not be read"
NO_SKILL: Final = "may be no better than chance"
UNTESTED: Final = "no film was left out"
UNDEFINED: Final = "undefined"
NEAR_CHANCE: Final = "not shown to be found better than chance"
BOTH_SIDES: Final = "in some places for it, in others against it"
AGREE_BY_CHANCE: Final = "may agree no better than chance"
AGREE_LESS: Final = "agree less than by chance"
SOME_UNDEFINED: Final = "undefined of some"
SOME_BY_CHANCE: Final = "some may agree no better than chance"
SOME_LESS: Final = "some agree less than by chance"
BELOW_THRESHOLD: Final = "below the threshold"
MEAN_BELOW: Final = "reaches the threshold in a part, and its mean is below it"
DECIDES_NOTHING: Final = "finds concepts alone"
UNCALIBRATED: Final = "no calibration"
LEVELS_LEFT_OUT: Final = "neither calibrated nor tested on levels that films have"
OF_CONCEPT: Final = "of a concept, at any level"
OF_LABELS: Final = "of labels in the model's place"
REFUSED: Final = "refused"
BLIND: Final = "blind"
IN_SIGHT: Final = "in sight of the score"
NO_SCORE: Final = "not blind, where there is no score"
AGREED: Final = "agreed"
ALL_JUDGED: Final = "all windows judged"
NOT_SURE: Final = "without windows of which they were not sure"
TOO_FEW: Final = "too few windows judged"
FOUND_BY_DETECTOR: Final = "black or credits as a detector found them"
FEW_WINDOWS: Final = "wider, as the film has few windows"
NO_INTERVAL: Final = "without an interval"
TOO_FEW_FILMS: Final = "without an interval, which needs 3 films"
FILMS_ALIKE: Final = "without an interval, as all films have one value"
ANSWERED_TIME: Final = "of the time that all annotators answered for"
SEVERAL_DEFINITIONS: Final = "judged under several definitions"
EARLIER_LAW: Final = "drawn by an earlier law"
OTHER_JUDGES: Final = "not all films judged by the same people"


@dataclass(frozen=True, slots=True)
class ClaimTime:
    """The time that a claim is about.

    Attributes
    ----------
    part : str
        One of

        - ``film``: all of it;
        - ``judged``: the part with a probability;
        - ``content``: the film without black and credits;
        - ``sure``: the content without windows that were left out as judges were not sure of them;
        - ``span``: from `start_s` to `end_s`;
        - ``other films``.
    seconds : float or None
        Length; None if it is not known, as of other films.
    start_s, end_s : float or None
        Ends of a span.
    """

    part: str
    seconds: float | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The interval of a number, and its confidence level, such as 0.95."""

    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmClaim:
    """A statement as data.

    Attributes
    ----------
    who : tuple of str
        Keys of models, or names of judges.
    what : str
        What is said to be so: a level or its meaning, a concept, a measure.
    time : ClaimTime
        The time that it is about.
    number : float or None
        None where there is none; then a condition says why.
    interval : Bounds or None
    conditions : tuple of str
        The constants of this module that apply.
    """

    KIND: ClassVar[str] = "claim"

    who: tuple[str, ...]
    what: str
    time: ClaimTime
    number: float | None = None
    interval: Bounds | None = None
    conditions: tuple[str, ...] = ()

    def has(self, condition: str) -> bool:
        """Whether a condition applies."""
        return condition in self.conditions

    def known_number(self) -> float:
        """Return the number, for a sentence that states it; a claim without one must never be read as 0.

        Raises
        ------
        ValueError
            The claim has no number.
        """
        if self.number is None:
            raise ValueError(f"a claim of the kind {self.KIND!r} has no number, and its sentence states one")
        return self.number


@checked
def document(claim: FilmClaim) -> dict[str, Any]:
    """Convert a claim to a dict for JSON: its kind, as ``claim``, and its attributes."""
    # Texts in several languages are subclasses of str, which msgspec writes only with this hook.
    return {"claim": claim.KIND, **msgspec.to_builtins(claim, enc_hook=str)}


# --- of models
# ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelClaim(FilmClaim):
    """A statement that rests on how a model was calibrated and tested.

    Attributes
    ----------
    levels_left_out : tuple of str
        Levels that films have, and that the model was neither calibrated nor tested on: then the condition
        is `LEVELS_LEFT_OUT`.
    """

    levels_left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Title(ModelClaim):
    """What must be known of a film before any number: `what` is its title, conditions are warnings."""

    KIND: ClassVar[str] = "title"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEvidence(ModelClaim):
    """What films left out of training show of a model: `number` is the mean AUC within films.

    Attributes
    ----------
    n_clips : int or None
        Clips tested; None where only the run's metrics are known.
    n_films : int
        Films tested.
    """

    KIND: ClassVar[str] = "evidence"

    n_clips: int | None
    n_films: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTime(FilmClaim):
    """How much of a film a model can judge: `number` is that share; its three parts add up to the film.

    Attributes
    ----------
    judged_s, unlike_s, nothing_s : float
        Seconds with a probability, of content that the model cannot judge, and of black or credits.
    unread_s : float
        Of `unlike_s`, what could not be read; the rest is unlike the training films.
    is_whole : bool
        Whether all of the film is judged.
    unread_from_s : float or None
        Second from which nothing could be read up to the film's end; None if its end was read.
    """

    KIND: ClassVar[str] = "judged time"

    judged_s: float
    unlike_s: float
    nothing_s: float
    is_whole: bool
    unread_s: float = 0.0
    unread_from_s: float | None = None


@dataclass(frozen=True, slots=True)
class FrequentConcept:
    """A concept that is seen, and raises the probability, in at least half of the time of the passages.

    Time is counted row by row of the timeline, not by the means of whole passages.

    Attributes
    ----------
    name : str
    is_near_chance : bool
    share : float
        Share of the passages' time in which it is seen and raises the probability: at least a half.
    """

    name: str
    is_near_chance: bool
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedPassages(ModelClaim):
    """How many passages a model marks (`number`), and as what (`what`).

    The numbers of passages by the lower and the upper edge of the 80 % band are no interval of this number: a
    higher curve may join passages, and so give fewer.

    Attributes
    ----------
    judged : JudgedTime
    is_one_of_several : bool
        Whether the film was scored by other models too, so that a sentence must name this one.
    at_low_edge, at_high_edge : int
        Passages that the lower and the upper edge of the band give, by the same rule.
    positive : Positive
        What it finds, with what the codebook says that means.
    marked_s : float
        Seconds of the passages that have a probability.
    called_s : float
        Of these, seconds at the threshold or above: passages go on where the probability is a little lower.
    short_s : float
        Seconds at the threshold or above in places that are too short for a passage.
    concepts : tuple of FrequentConcept
        Those that add most to the probability over the passages' time come first; equal ones are in the
        codebook's order.
    n_listed : int
        Number of segments that are listed, with those below the threshold.
    """

    KIND: ClassVar[str] = "marked passages"

    judged: JudgedTime
    is_one_of_several: bool
    at_low_edge: int
    at_high_edge: int
    positive: Positive
    marked_s: float
    called_s: float
    short_s: float
    concepts: tuple[FrequentConcept, ...]
    n_listed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptReason(FilmClaim):
    """A concept that raises or lowers the probability of a passage.

    `what` is the concept. `number` is the change of the passage's probability due to it: the probability,
    minus what it would be with the concept at its usual value, or, of a tree, at the values that training
    clips have. None if it is not known, as in a tree's scores by earlier versions.

    Attributes
    ----------
    amount : str
        How much of the concept there is, compared with usual: ``more``, ``less``, or ``mixed`` (more in some
        places and less in others). Empty if no usual value is known.
    is_for : bool
        Whether it raises the probability: the sign of `number` if that is known. If the mean contribution has
        the other sign, the condition is `BOTH_SIDES`.
    moves : bool
        Whether it changes the probability enough to be named.
    p : float
        Mean probability of the concept.
    usual_p : float or None
        Probability of the concept at its usual value.
    contribution : float
        Mean contribution to the logit.
    is_present : bool
        Whether the concept is seen.
    """

    KIND: ClassVar[str] = "reason"

    amount: str
    is_for: bool
    moves: bool
    p: float
    usual_p: float | None
    contribution: float
    is_present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSeen(FilmClaim):
    """A class (`what`) that a classifier (`who`) finds more probable in a span than in the film.

    `number` is its mean probability there, as the classifier gives it: it was not calibrated on films.

    Attributes
    ----------
    usual_p : float
        Its mean probability over the film.
    """

    KIND: ClassVar[str] = "class seen"

    usual_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(ModelClaim):
    """A passage of a film: `number` is its mean probability, `interval` the 80 % band.

    Attributes
    ----------
    name : str
        Its number by time; empty for a span that somebody marked.
    judged_s : float
        Seconds of it that have a probability, which its numbers cover.
    reasons : tuple of ConceptReason
        By contribution, the largest first: all that change the probability enough to be named, and others.
    present : tuple of str
        Concepts that are seen, the largest contribution first.
    flags : tuple of str
        Flags of rows in it.
    classes : tuple of ClassSeen
        What classifiers of the store find in it, beyond what is usual in the film.
    threshold_p : float or None
        The model's threshold, which some row of the passage may reach or not.
    """

    KIND: ClassVar[str] = "passage"

    name: str
    judged_s: float
    reasons: tuple[ConceptReason, ...] = ()
    present: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    classes: tuple[ClassSeen, ...] = ()
    threshold_p: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedSpan(FilmClaim):
    """A span of a film of which a model says nothing: its condition says why."""

    KIND: ClassVar[str] = "span without a probability"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedShare(ModelClaim):
    """The share of a film's time that a model expects, or why there is none; the interval is for new films.

    Attributes
    ----------
    error, worst_error : float or None
        Mean and largest error of the share on films left out.
    clips : dict of str to int
        Clips of each level that the calibration was fitted on.
    unlike : float
        Share of the film without black and credits that the model cannot judge. If it is more than a fifth,
        there is no expected share.
    unread : float
        Share of the film without black and credits that could not be read; it is a part of `unlike`.
    reason : str
        Why the share is refused, in the words of the film's record; empty if it is not.
    n_windows : float or None
        Judged time of the film, counted in windows that do not overlap. None unless they are so few that the
        interval is wider by `score.MIN_ADDED_WIDTH` to a side.
    """

    KIND: ClassVar[str] = "expected share"

    error: float | None
    worst_error: float | None
    clips: dict[str, int]
    unlike: float
    reason: str
    unread: float = 0.0
    n_windows: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SameProbability(FilmClaim):
    """A model gives the same probability to all that it can judge of a film (`number`, the median).

    So it does not tell scenes apart. A decision tree does so if the whole film falls into one leaf.

    Attributes
    ----------
    least, most : float
        The lowest and the highest of these probabilities.
    """

    KIND: ClassVar[str] = "one probability"

    least: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(FilmClaim):
    """A passage whose probability was changed by training on judgements: `number` is the new one.

    Attributes
    ----------
    before : float
        Probability by the model before this training.
    """

    KIND: ClassVar[str] = "moved passage"

    before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AtUsual(FilmClaim):
    """What a span's probability would be with a concept (`what`) at its usual value: `number`.

    `before` minus `number` is the `number` of the concept's `ConceptReason`.

    Attributes
    ----------
    before : float
        The probability as it is.
    """

    KIND: ClassVar[str] = "a concept at its usual value"

    before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPassage(FilmClaim):
    """No passage of a film reaches the threshold (`number`)."""

    KIND: ClassVar[str] = "no passage"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedTime(FilmClaim):
    """The share of a film that has a flag (`what`)."""

    KIND: ClassVar[str] = "flagged time"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWindows(FilmClaim):
    """The windows that were scored are of another length (`number`, the median) than the model's clips.

    Attributes
    ----------
    trained_s, calibrated_s : float or None
        Median length of the clips that it was trained on, and of those that it was calibrated on, which may
        be others; None where that is not known.
    """

    KIND: ClassVar[str] = "other windows"

    trained_s: float | None
    calibrated_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptFound(FilmClaim):
    """How well a concept (`what`) is found on films left out: `number` is its average precision.

    Attributes
    ----------
    chance : float or None
        Share of clips with the concept, which is the average precision of guessing.
    """

    KIND: ClassVar[str] = "concept found"

    chance: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingMean(FilmClaim):
    """The mean of a variable of staging (`what`) over the windows of a film that have one.

    Attributes
    ----------
    digits : int
        Decimals to print: those that the measurement supports.
    n_known, n_windows : int
        Windows that have one, and all of the film.
    """

    KIND: ClassVar[str] = "mean of staging"

    digits: int
    n_known: int
    n_windows: int


# --- of people
# ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Experts(FilmClaim):
    """How far two experts of a corpus (`who`) agree on whole films: `number` is kappa, second by second.

    `what` are the levels that count as marked.

    Attributes
    ----------
    rank : float
        Spearman's correlation of films' shares.
    rank_interval : Bounds or None
    boundary : float
        F1 of onsets and offsets within 5 s.
    """

    KIND: ClassVar[str] = "experts"

    rank: float
    rank_interval: Bounds | None
    boundary: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairKappa(FilmClaim):
    """How far two judges agree: `number` is Cohen's kappa.

    Attributes
    ----------
    positive : str
        As to what they agree: what they call each window, or do not. Of levels that are no part of it they
        may give different ones to a window that they call alike.
    n, alike : int
        Windows that both judged and were sure of, and those that they call alike. Of fewer than kappa needs
        (`judged_windows.MIN_SURE_WINDOWS`) there is none, and the condition is `TOO_FEW`.
    n_unsure : int
        Windows that both judged, and left out as not both were sure.
    definition : str
        Digest of the definitions that they judged under; empty where a sentence need not name it.
    definition_name : str
        Their codebook and its version; empty where that is not known.
    """

    KIND: ClassVar[str] = "agreement of two"

    positive: str
    n: int
    alike: int
    n_unsure: int = 0
    definition: str = ""
    definition_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyPairs(FilmClaim):
    """The kappas of many pairs of judges: `number` is the median, the interval has all of them.

    Attributes
    ----------
    n_pairs : int
    """

    KIND: ClassVar[str] = "agreement of pairs"

    n_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAgreement(FilmClaim):
    """How far three judges or more (`who`) agree: `number` is Krippendorff's alpha.

    Attributes
    ----------
    positive : str
        As to what they agree, as in `PairKappa`.
    n_windows : int
        Windows that two or more judged and were sure of.
    n_unsure : int
        Windows that two or more judged, and left out as fewer than two were sure.
    """

    KIND: ClassVar[str] = "agreement of a panel"

    positive: str
    n_windows: int
    n_unsure: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedShare(FilmClaim):
    """The share of a film's content that judges would call positive, from windows that they judged blindly.

    `what` is what counts as positive. There is no interval if all windows were judged.

    Attributes
    ----------
    model : str
        Key of the model whose probabilities narrow the interval.
    n : int
        Windows that the judges were sure of, from which the share is estimated.
    n_windows : int
        All windows of the film that the share covers.
    positives : tuple of int
        Windows that each judge calls positive.
    worth : float or None
        How many windows would have to be judged without the model for an interval of this width; None if the
        model saves none.
    n_unsure, unsure_s : int, float
        Windows left out as a judge was not sure of them, and their seconds without black and credits.
    expected : float or None
        Share that the model alone expects, or that labels in its place mark.
    expected_s : float or None
        Seconds that this share covers: those that the model can judge.
    is_of_labels : bool
        Whether labels stand in the model's place.
    is_corrected : bool
        Whether the model's probabilities, or the labels, move the share away from what the judgements alone
        give, whether or not they narrow its interval.
    definition : str
        Digest of the definitions that they judged under; empty where nothing says.
    definition_name : str
        Their codebook and its version; empty where that is not known.
    agreement : tuple of PairKappa
        Of every two judges of a panel, or of a judge with every other.
    left_out : tuple of str
        In a comparison of films: judges who are left out of this film's share, because all of them together
        judged too few windows surely. They count in the share of its group.
    after_gap : int
        Windows that these and the claim's judges all judged, after the first gap of the draw: they do not
        count in a share of all of them.
    """

    KIND: ClassVar[str] = "judged share"

    model: str
    n: int
    n_windows: int
    positives: tuple[int, ...]
    worth: float | None
    n_unsure: int
    unsure_s: float
    expected: float | None
    expected_s: float | None
    is_of_labels: bool = False
    is_corrected: bool = False
    definition: str = ""
    definition_name: str = ""
    agreement: tuple[PairKappa, ...] = ()
    left_out: tuple[str, ...] = ()
    after_gap: int = 0

    @property
    def is_of_panel(self) -> bool:
        """Whether the share is that of several judges together."""
        return len(self.who) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NoJudgedShare(FilmClaim):
    """A judge, or several together, have no share: they were sure of too few windows.

    Attributes
    ----------
    judged : int
        Number of windows that they (each of them) judged blindly.
    sure : int
        Of these, windows of which they (each of them) were sure.
    left : int
        Windows left to judge.
    least : int
        Least `sure` for a share, unless no window is left.
    after_gap : int
        Further windows judged blindly, after the first window of the draw that was not judged: they do not
        count.
    definition : str
        Digest of the definitions that they judged under; empty if a sentence need not name it.
    definition_name : str
        The codebook of the definitions and its version; empty if that is not known.
    """

    KIND: ClassVar[str] = "no judged share"

    judged: int
    sure: int
    left: int
    least: int
    after_gap: int = 0
    definition: str = ""
    definition_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSoFar(FilmClaim):
    """An interval of a film's share that is valid whenever its judge stops; `number` is its width.

    Attributes
    ----------
    n_unsure, unsure_s : int, float
        Windows left out as the judge was not sure of them, and their seconds without black and credits.
    fixed : float
        Width that the interval would have if the number of windows had been fixed before judging.
    """

    KIND: ClassVar[str] = "share so far"

    n_unsure: int
    unsure_s: float
    fixed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedSpan(FilmClaim):
    """The level that people gave to a span (`what`, its title); conditions say whether they saw the score."""

    KIND: ClassVar[str] = "decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineAgreement(FilmClaim):
    """How far a model's timelines agree with an annotator (`what`): `number` is the mean kappa over films.

    Attributes
    ----------
    n_films : int
        Films where kappa is defined, or all that were compared if it is nowhere.
    whole_s : float
        Seconds of these films, of which `time` is what the model can judge; with the condition
        `ANSWERED_TIME`, what annotators answered for besides.
    """

    KIND: ClassVar[str] = "agreement of timelines"

    n_films: int
    whole_s: float


# --- of several films
# ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShare(FilmClaim):
    """The mean share of time of a group of films, as its judges would mark.

    Attributes
    ----------
    group : str
    n_films, n_judged, n_windows : int
        Films, judged ones, and windows judged in them.
    worth : float or None
        Judged windows that would be needed without the model.
    expected : float or None
        Mean share by the model alone.
    n_expected : int
        Films of which the model has a share: those of that mean.
    reason : str
        Why there is no share; empty if there is.
    note : str
        On how few films it rests; empty if on three or more.
    """

    KIND: ClassVar[str] = "share of a group"

    group: str
    n_films: int
    n_judged: int
    n_windows: int
    worth: float | None
    expected: float | None
    n_expected: int
    reason: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange(FilmClaim):
    """A difference of two groups' shares, or a trend: `number` is the change.

    Attributes
    ----------
    change : str
        Which change.
    is_by_decade : bool
        Whether it is the trend by ten years.
    n_films, n_judged : int
    note, reason : str
        On how few films it rests; why there is none.
    """

    KIND: ClassVar[str] = "change of shares"

    change: str
    is_by_decade: bool
    n_films: int
    n_judged: int
    note: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameShare(FilmClaim):
    """A model expects the same share (`number`) of every one of several films: it does not tell them apart.

    Attributes
    ----------
    n_films : int
    """

    KIND: ClassVar[str] = "one share of all films"

    n_films: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntChange(FilmClaim):
    """How much training on judgements raised a model's AUC: `number` is the mean change over films.

    Attributes
    ----------
    n_films : int
    is_of_judged : bool
        Whether the films are those that were judged, each left out of training; else those of the corpus.
    """

    KIND: ClassVar[str] = "change by learning"

    n_films: int
    is_of_judged: bool
