"""Declare the files of a scored film: `film.json`, columns and flags of its tables, corrected rates."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Meta, Struct
from numpy.typing import NDArray

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, CodebookTexts
from obygaze_features.text import unsuitable
from obygaze_features.untrusted import decoded
from obygaze_film.errors import FilmError

FORMAT: Final = "obygaze film"
"""Name of the format of a film's folder, as its record states it."""

NUMBER: Final = 4
"""Format number of a film's folder; raised when readers of one format would misread the other."""

COLUMNS = (
    "movie", "start_s", "end_s", "level_task", "model", "logit", "p", "p_low", "p_high", "called", "unlike",
    "flags",
)  # fmt: skip
"""First columns of `timeline.csv`, followed by those of the concepts and `LAST_COLUMNS`."""

LAST_COLUMNS = ("base_contribution", "n_windows", "status")
"""Last columns of `timeline.csv`."""

DETECTORS: Final = ("own", "transnet", "scenedetect")
"""Names of the programs that find shots: what is black or credits there nobody looked at."""

SHOT_COLUMNS = ("movie", "start_s", "end_s", "detector", "flags")
"""Columns of `shots.csv`."""

TRACE_COLUMNS = ("movie", "model", "start_s", "end_s", "n_frames", "weight", "contribution")
"""Columns of `frames.csv`, followed by ``<concept>_p``."""

NO_TRACES = pd.DataFrame(columns=list(TRACE_COLUMNS))

TEXT_COLUMNS = ("start_s", "end_s", "text")
"""Columns of `subtitles.csv`."""

NO_TEXTS = pd.DataFrame(columns=list(TEXT_COLUMNS))

NO_VARIABLES = pd.DataFrame(columns=["start_s", "end_s"])
"""Of `variables.csv`: windows' times, followed by what `obygaze film variables` measured."""

CLASS_COLUMNS = ("start_s", "end_s", "classifier", "class", "p", "usual_p")
"""Of `classes.csv`: a window's times, a classifier of its store, a class, its probability there, and its mean
over the film's windows."""

NO_CLASSES = pd.DataFrame(columns=list(CLASS_COLUMNS))

MAX_S: Final = 1e6
"""Seconds of the longest film that is read: eleven days."""

RowKind = Literal["shots", "windows", "steps"]
Seconds = Annotated[float, Meta(ge=0, le=MAX_S)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What damaged or hostile JSON raises."""

Spans = NDArray[np.float64]
"""Starts and ends in seconds, shape [N, 2], in time order."""

Run = tuple[int, int]
"""Index of the first row, and of the row after the last."""

FLAGS = ("unlike", "missing", "black", "credits", "bars", "partial", "short", "trained_on", "no_skill")
"""Values of the column `flags`, separated by semicolons.

unlike: unlike all training clips, so it has no probability; missing: no window with features covers it;
black, credits: no content of the film, so it has no probability; bars: black bars, which change features;
partial: a part of a window's video could not be read; short: the film is shorter than two windows;
trained_on: the model was trained on this film, so its scores are not predictions; no_skill: the model may be
no better than chance.
"""

UNLIKE, MISSING, BLACK, CREDITS, BARS, PARTIAL, SHORT, TRAINED_ON, NO_SKILL = FLAGS


UNRELIABLE: Final = (UNLIKE, MISSING)
"""Flags of rows without a probability, because the model knows nothing like them."""

NO_CONTENT: Final = (BLACK, CREDITS)
"""Flags of rows without a probability, because there is nothing to see."""

MAX_UNRELIABLE_SHARE: Final = 0.2
"""Largest unreliable share of the film's time; above it the film has no rate."""


class Rate(Struct, frozen=True, kw_only=True):
    """The share of a film's time that a model expects to be positive.

    Attributes
    ----------
    value : float or None
        sum(duration * p) / sum(duration) over rows with a probability and without `NO_CONTENT`; None where it
        is refused.
    bracket_low, bracket_high : float or None
        Bracket that holds the true share of about 80 % of new films, from the errors of films left out; None
        also for models saved before their files had it.
    calibration_low, calibration_high : float or None
        80 % band of the share over calibrations drawn from their posterior, that is, those that fit the
        held-out scores of the training films. It excludes differences between films, and so holds the true
        share far less often.
    reason : str
        Why it is refused; empty if it is not.
    unreliable : float
        Share of the film's time, without `NO_CONTENT`, that is unlike any training clip or missing.
    counted_s : float
        Seconds counted.
    n_windows : float or None
        How many windows, without overlap, the counted seconds are, where these are so few that the bracket
        is wider for it by `score.MIN_ADDED_WIDTH` to a side; None where they are not.
    """

    value: Share | None
    bracket_low: Share | None
    bracket_high: Share | None
    calibration_low: Share | None
    calibration_high: Share | None
    reason: str
    unreliable: Share
    counted_s: Seconds
    n_windows: float | None = None

    @property
    def is_unreliable(self) -> bool:
        """Whether a larger share of the film's content than `MAX_UNRELIABLE_SHARE` has no probability.

        Such a film has no share (`value` is None).
        """
        return self.unreliable > MAX_UNRELIABLE_SHARE


FORMER: Final = "-before"
"""Ends the key of the model that scored a film before it learnt from judgements."""


class ConceptRecord(Struct, frozen=True, kw_only=True):
    """A concept of a model, and how well it is found on films left out of training.

    Attributes
    ----------
    name : str
    threshold_p : float
        Lowest probability at which it counts as seen (`Model.concept_thresholds`).
    ap, low, high, chance : float or None
        Out-of-fold average precision, its 95 % interval over films, and the share of clips with the concept;
        None if the model's card does not give them.
    absent : float or None
        Its contribution to the logit where it is at the 5th percentile of the training clips, each by a model
        without its film (`explain --set NAME=.05`); None where contributions depend on each other (a tree).
    usual, usual_p : float or None
        The value at which it contributes nothing, the training clips' mean, each by a model without its film,
        and its probability there; None as `absent`.
    weight : float or None
        What one more of its value adds to the logit; None as `absent`. A concept in time contributes by its
        position too, which may outweigh its value.
    """

    name: str
    threshold_p: Share
    ap: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    absent: float | None = None
    usual: float | None = None
    usual_p: Share | None = None
    weight: float | None = None

    @property
    def is_found(self) -> bool:
        """Whether the concept is found better than chance: the interval of its average precision is above it.

        False if one of these numbers is not known.
        """
        if self.low is None or self.chance is None:
            return False
        return self.low > self.chance

    @property
    def is_near_chance(self) -> bool:
        """Whether it was tested (it has an average precision) and is not found better than chance."""
        was_tested = self.ap is not None
        return was_tested and not self.is_found


class CalibrationRecord(Struct, frozen=True, kw_only=True):
    """Calibration of logits to probabilities: the mean of 1 / (1 + exp(-(slope * logit + intercept))).

    Attributes
    ----------
    draws : list of (float, float)
        Slope and intercept of each draw of the posterior.
    p_skilled : float
        Posterior probability that scores rise with the label within films.
    error : float
        Expected calibration error on films left out.
    n_movies : int
        Films it was fitted on.
    clips : dict of str to int
        Clips of each level that it was fitted on; empty where the model's card does not say.
    film_error, worst_film_error : float or None
        Mean and largest distance between expected and true share of positive clips of a film left out.
    clip_s : float or None
        Median length of the clips that it was fitted on, in seconds; None where the card does not say.
    """

    draws: Annotated[list[tuple[float, float]], Meta(min_length=1)]
    p_skilled: Share
    error: float
    n_movies: int
    clips: dict[str, int]
    film_error: float | None = None
    worst_film_error: float | None = None
    clip_s: float | None = None


class EvidenceRecord(Struct, frozen=True, kw_only=True):
    """What films left out of training show of a model.

    Attributes
    ----------
    n_clips, n_movies : int
        Clips and films of which `auc` is; where it is undefined, those that were tested.
    auc, auc_low, auc_high : float or None
        Mean AUC within films and its 95 % interval; None where undefined.
    p_skilled : float or None
        Posterior probability that scores rise with the label within films; None without calibration.
    """

    n_clips: Count
    n_movies: Count
    auc: Share | None
    auc_low: Share | None
    auc_high: Share | None
    p_skilled: Share | None


class HumanRecord(Struct, frozen=True, kw_only=True):
    """Agreement of two annotators with the same codebook, as a reference for timelines.

    Attributes
    ----------
    corpus : str
    positive : list of str
        The levels that count as marked: on others they agree otherwise.
    kappa, second_f1, segment_f1, boundary_f1 : float
        Of seconds; segments matched at tIoU 0.5; onset and offset within 5 s.
    rank_correlation : float
        Spearman's, of films' rates.
    rank_low, rank_high : float or None
        Its 95 % interval over films.
    """

    corpus: str
    positive: list[str]
    kappa: float
    second_f1: float
    segment_f1: float
    boundary_f1: float
    rank_correlation: float
    rank_low: float | None = None
    rank_high: float | None = None


class ModelRecord(Struct, frozen=True, kw_only=True):
    """A model that scored a film.

    Attributes
    ----------
    key : str
        Its name in the column `model` of the tables.
    model, title : str
        Name in the zoo, and title to show.
    sha256 : str
        Of the model file; empty without one.
    task, task_title : str
        The task it was trained for.
    levels : list of str
        The levels that its task is about.
    negative, positive : list of str
        Levels of the two classes; empty for a concept's model. Who asks what is positive asks
        `positive.positive_of`.
    concept : str
        The concept that it finds; empty for a model of levels.
    codebook : str
    construct : str
        What the codebook says its levels measure; empty where it does not.
    means : dict of str to str
        What the codebook says its positive levels, or its concept, mean; those of which it does.
    titles : dict of str to str
        Titles of levels of a codebook that is not built in; a built-in one has its own.
    translations : dict of str to CodebookTexts
        What a codebook that is not built in says in other languages, by language.
    backbone : str
    concepts : list of ConceptRecord
        Its concepts, in the model's order.
    decides : bool
        Whether it gives logits; False for a concept bank without a classifier.
    by_concepts : bool
        Whether contributions of concepts add up to its logit.
    has_changes : bool
        Whether its rows hold the change of the probability due to each concept, as it cannot be computed from
        the contributions: those of a tree follow a clip's path. False in scores of earlier versions.
    threshold : float
        Lowest logit at which a row is called positive.
    threshold_p : float or None
        Its probability.
    calibration : CalibrationRecord or None
        None: no probabilities, no segments, no rate.
    clip_s : float or None
        Median length of the clips it was trained on, in seconds.
    n_movies, n_clips : int
        Numbers of training films and clips.
    metrics : list of object
        Out-of-fold metrics, rows of the run's `metrics.csv`.
    licence, citation : str
    is_trained_on : bool
        Whether it was trained on this film.
    flags : dict of str to float
        Seconds of the film with each flag.
    rate : Rate
    perceives : list of str
        What its features perceive of a film, of MODALITIES; empty where that is not known.
    evidence : EvidenceRecord or None
        What films left out show of it; None where none was.
    no_skill : bool
        Whether these films leave open that it is no better than chance.
    levels_left_out : list of str
        Levels of the codebook that it was neither calibrated nor tested on. Films have them: its share is
        refused, and what else it says of a film rests on clips of other levels.
    human : HumanRecord or None
        How far two people agree on what it calls positive, in a corpus with the same codebook; None where
        that is not known, and of labels that nobody judged.
    labelled_by : list of str
        Who labelled the clips that it was trained on; empty where its file does not say.
    """

    key: str
    model: str
    title: str
    sha256: str
    task: str
    task_title: str
    negative: list[str]
    positive: list[str]
    codebook: str
    backbone: str
    concepts: list[ConceptRecord]
    decides: bool
    by_concepts: bool
    threshold: float
    threshold_p: Share | None
    calibration: CalibrationRecord | None
    clip_s: float | None
    n_movies: Count
    n_clips: Count
    metrics: list[dict[str, Any]]
    licence: str
    citation: str
    is_trained_on: bool
    flags: dict[str, Seconds]
    rate: Rate
    levels: list[str] = []
    concept: str = ""
    construct: str = ""
    means: dict[str, str] = {}
    titles: dict[str, str] = {}
    translations: dict[str, CodebookTexts] = {}
    perceives: list[str] = []
    evidence: EvidenceRecord | None = None
    no_skill: bool = False
    levels_left_out: list[str] = []
    human: HumanRecord | None = None
    labelled_by: list[str] = []
    has_changes: bool = False

    @property
    def columns(self) -> list[str]:
        """Columns of the model's concepts in `timeline.csv`."""
        endings = ["value", "p"]
        if self.by_concepts:
            endings.append("contribution")
        if self.has_changes:
            endings.append("change")
        return [f"{concept.name}_{ending}" for concept in self.concepts for ending in endings]

    @property
    def auc(self) -> dict[str, Any]:
        """The row of `metrics` with the model's AUC and its interval; empty if there is none."""
        for row in self.metrics:
            if row.get("metric") == "auc":
                return row
        return {}


class StoreRecord(Struct, frozen=True, kw_only=True):
    """The store that was scored."""

    name: str
    fingerprint: str


class WindowsRecord(Struct, frozen=True, kw_only=True):
    """The windows that were scored: median length and hop in seconds, how many, and how many failed."""

    window_s: Annotated[float, Meta(gt=0, le=MAX_S)]
    hop_s: Seconds | None
    n: Count
    n_missing: Count


class RowsRecord(Struct, frozen=True, kw_only=True):
    """The kind of the timeline's rows: shots, windows, or steps between the starts of two windows."""

    kind: RowKind
    n: Count


class ShotsRecord(Struct, frozen=True, kw_only=True):
    """The detector of the shots, and their number."""

    detector: str
    n: Count


class FilmRecord(Struct, frozen=True, kw_only=True):
    """`film.json`: everything about a scored film except its tables.

    Attributes
    ----------
    format, number : str, int
        `FORMAT` and `NUMBER`.
    movie : str
        As in the manifest.
    title : str
        Title to show; by default the movie.
    year : int or None
    duration_s : float
        End of the last window.
    source_sha256 : str
        Of the video; empty if not given.
    store : StoreRecord
    windows : WindowsRecord
    rows : RowsRecord
    shots : ShotsRecord or None
    models : list of ModelRecord
        At least one.
    versions : dict of str to str
    tables : dict of str to str
        File -> SHA-256 of the tables beside it; empty unless it lies in a folder.
    """

    format: Literal["obygaze film"]
    number: Literal[4]
    movie: str
    title: str
    year: Annotated[int, Meta(ge=1, le=9999)] | None
    duration_s: Annotated[float, Meta(gt=0, le=MAX_S)]
    source_sha256: str
    store: StoreRecord
    windows: WindowsRecord
    rows: RowsRecord
    shots: ShotsRecord | None
    models: Annotated[list[ModelRecord], Meta(min_length=1)]
    versions: dict[str, str]
    tables: dict[str, str] = {}


def refuse_texts(record: Struct) -> None:
    """Refuse a record if a text in it has characters that control a terminal or turn the direction of text.

    Raises
    ------
    FilmError
        A text has such characters; the message quotes its beginning.
    """
    to_check: list[Any] = [msgspec.to_builtins(record)]
    while to_check:
        value = to_check.pop()
        if isinstance(value, dict):
            to_check += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            to_check += value
        elif isinstance(value, str):
            problem = unsuitable(value, line_breaks=True)  # line breaks are allowed
            if problem:
                raise FilmError(f"{value!r:.80} {problem}")


def read_record(data: bytes, name: str) -> FilmRecord:
    """Read the record of a film (`film.json`) and check it; `name` is its name in messages.

    Raises
    ------
    FilmError
        It is not a record of this format, or a field is invalid; the message names the field.
    """
    try:
        record = msgspec.json.decode(decoded(data), type=FilmRecord)
        refuse_texts(record)
        _refuse_movie_name(record.movie)
    except (*UNREADABLE, FilmError, ManifestError) as error:
        raise FilmError(f"{name}: {error}: score the film again (format {NUMBER})") from error
    return record


def _refuse_movie_name(movie: str) -> None:
    """Raise ManifestError if no manifest may have a movie of this name."""
    Clip("any", movie)  # a clip checks its fields


class JudgesAgreement(Struct, frozen=True):
    """How far two annotators agree on the windows that both judged.

    Attributes
    ----------
    annotators : list of str
        Two names.
    n, alike : int
        Windows that both judged and were sure of, and those that both call positive or both negative.
    kappa, low, high : float or None
        Cohen's kappa and its 95 % interval (`kappa_interval`); None of fewer windows than it needs
        (`judged_windows.MIN_SURE_WINDOWS`), and where both call all positive, or all negative.
    n_unsure : int
        Windows that both judged, and left out as not both were sure.
    definition : str
        Digest of the definitions that they judged under; empty where nothing says.
    definition_name : str
        Their codebook and its version; empty where that is not known.
    """

    annotators: list[str]
    n: int
    alike: int
    kappa: float | None
    low: float | None
    high: float | None
    n_unsure: Count = 0
    definition: str = ""
    definition_name: str = ""


class JudgesAlpha(Struct, frozen=True):
    """Krippendorff's alpha of three judges or more, nominal, also of windows that not all of them judged.

    Attributes
    ----------
    annotators : list of str
        Those who were sure of a window of which another was sure, too.
    n_windows : int
        Windows that two of them or more were sure of.
    value : float
    n_unsure : int
        Windows that two or more judged, and left out as fewer than two were sure.
    """

    annotators: list[str]
    n_windows: int
    value: float
    n_unsure: Count = 0


class TooFewJudged(Struct, frozen=True, kw_only=True):
    """A judge, or a panel, of whose windows there are too few for a number.

    Attributes
    ----------
    judges : list of str
        One, or the panel.
    judged, sure, left, least : int
        Windows that the judge, or each of the panel, judged blindly; those that they were sure of; those that
        are left to judge; and of how many they must be sure, unless none is left (`WindowCounts`).
    after_gap : int
        Further windows that they judged, after the first gap of the draw: they do not count.
    definition : str
        Digest of the definitions that they judged under; empty where nothing says.
    definition_name : str
        Their codebook and its version; empty where that is not known.
    """

    judges: list[str]
    judged: Count
    sure: Count
    left: Count
    least: Count
    after_gap: Count = 0
    definition: str = ""
    definition_name: str = ""


class CorrectedRate(Struct, frozen=True, kw_only=True):
    """The share of a film's time that its target would call positive, estimated from blind judgements.

    The target is one judge, or a panel: then it is the mean of its judges' shares, from windows that all of
    them judged.

    Attributes
    ----------
    model : str
        Key of the model whose probabilities were corrected.
    value, low, high, level : float
        Estimate, and its interval of that level.
    method : str
        "difference", "wilson" where the model's probabilities do not help, "exact" where none of the judged
        windows is positive, or all are, or "census" where no window is left to judge: low and high are the
        value.
    n, n_positive_by_all : int
        Number of windows judged surely, and of those that every judge of the target calls positive;
        `positives` counts for each judge.
    n_rows : int
        Number of windows of the film that could be drawn: those with content.
    worth : float or None
        Number of windows that would have to be judged without the model for the same width, at most all; None
        where the model saves none.
    expected : float or None
        The rate that the model expects, or of labels in its place the share that they mark.
    is_of_labels : bool
        Whether labels stand in the model's place.
    expected_s : float or None
        Seconds of which that is a rate: those that the model can judge.
    annotators : list of str
        The target: a judge, or the judges of a panel. A judge without a name has an empty one.
    positives : list of int
        Number of windows that each of them calls positive.
    positive : str
        What counts as positive: levels, or a concept.
    is_of_concept : bool
        Whether it is a concept.
    definition : str
        Digest of the definitions that they judged under; empty where nothing says.
    definition_name : str
        Their codebook and its version; empty where that is not known.
    content_s : float or None
        Seconds of the film that the share is of: without black, credits, what could not be read, and windows
        that nobody was sure of.
    n_unsure, unsure_s : int, float
        Windows that were judged, and left out as their judge (of a panel: one of them) was not sure, and
        their seconds without black and credits.
    unread_s : float
        Seconds, neither black nor credits, that the share is not of, as they could not be read.
    agreement : list of JudgesAgreement
        Of every two judges of a panel who judged the same windows, or of a judge with every other.
    """

    model: str
    value: Share
    low: Share
    high: Share
    level: Share
    method: str
    n: Count
    n_positive_by_all: Count
    n_rows: Count
    worth: Annotated[float, Meta(ge=0)] | None
    expected: Share | None
    annotators: list[str]
    positives: list[Count]
    positive: str
    is_of_concept: bool = False
    definition: str = ""
    definition_name: str = ""
    content_s: Annotated[float, Meta(ge=0)] | None = None
    n_unsure: Count = 0
    unsure_s: Annotated[float, Meta(ge=0)] = 0.0
    expected_s: Annotated[float, Meta(ge=0)] | None = None
    agreement: list[JudgesAgreement] = msgspec.field(default_factory=list)
    is_of_labels: bool = False
    unread_s: Annotated[float, Meta(ge=0)] = 0.0

    @property
    def is_of_panel(self) -> bool:
        """Whether it is of several judges together."""
        return len(self.annotators) > 1

    @property
    def is_census(self) -> bool:
        """Whether no window is left to judge: the share is counted, and has no interval."""
        return self.method == "census"


def has_flag(table: pd.DataFrame, *names: str) -> NDArray[np.bool_]:
    """Mark the rows [N] that have any of the flags."""
    wanted = set(names)
    # Many rows have the same text: each different text is split only once.
    text_index_of_row, texts = pd.factorize(table["flags"])
    text_has_any = [not wanted.isdisjoint(text.split(";")) for text in texts]
    return np.array(text_has_any, dtype=np.bool_)[text_index_of_row]


def flags_in(table: pd.DataFrame) -> list[str]:
    """List the flags that any row has, in the order of their first row."""
    return distinct_flags(table["flags"])


def distinct_flags(cells: Iterable[str]) -> list[str]:
    """List the flags that any cell of the column `flags` has, in the order of their first cell.

    Examples
    --------
    >>> distinct_flags(["", "unlike", "missing;unlike"])
    ['unlike', 'missing']
    """
    flags: dict[str, None] = {}  # its keys are a list without repetitions
    for cell in cells:
        for flag in cell.split(";"):
            if flag:
                flags[flag] = None
    return list(flags)


def runs(marked: NDArray[np.bool_]) -> list[Run]:
    """Find the runs of neighbouring rows [N] that are marked, in order.

    Examples
    --------
    A run is its first row and the first row after it.

    >>> import numpy as np
    >>> from obygaze_film.schema import runs
    >>> runs(np.array([False, True, True, False, True]))
    [(1, 3), (4, 5)]
    """
    # With an unmarked row before and after all, each run begins with a step up and ends with a step down.
    between_unmarked = np.concatenate([[False], marked, [False]])
    steps = np.diff(between_unmarked.astype(np.int8))
    firsts = np.flatnonzero(steps == 1)
    afters = np.flatnonzero(steps == -1)
    return list(zip(firsts.tolist(), afters.tolist(), strict=True))


def durations(table: pd.DataFrame) -> NDArray[np.float64]:
    """Compute the length of each row [N] in seconds."""
    return np.asarray(table["end_s"] - table["start_s"], dtype=np.float64)


def shared_seconds(table: pd.DataFrame) -> NDArray[np.float64]:
    """Share the time that rows [N] cover among them, and compute the seconds of each.

    A second that several rows cover is divided equally among them, so that the seconds of all rows add up to
    the time that they cover together.

    Examples
    --------
    >>> shared_seconds(pd.DataFrame({"start_s": [0.0, 6.0], "end_s": [8.0, 10.0]})).tolist()
    [7.0, 3.0]
    """
    # All times where a row begins or ends, rising, and for each row the indices of its two among them.
    spans = table[["start_s", "end_s"]].to_numpy(dtype=np.float64)
    edges, edge_indices = np.unique(spans, return_inverse=True)
    first_edges, last_edges = edge_indices.reshape(spans.shape).T

    # How many rows cover the time between two neighbouring edges: those that have begun and not ended.
    n_begun = np.bincount(first_edges, minlength=len(edges))
    n_ended = np.bincount(last_edges, minlength=len(edges))
    n_covering = np.cumsum(n_begun - n_ended)[:-1]

    # Each of them gets the same part of it.
    part_s = np.diff(edges) / np.maximum(n_covering, 1)  # time that no row covers is not used below

    # A row's seconds are the sum of the parts from its first edge to its last one.
    sums_s = np.concatenate([[0.0], np.cumsum(part_s)])  # of the parts before each edge
    return np.asarray(sums_s[last_edges] - sums_s[first_edges])


def is_counted(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the rows [N] that count in a film's rate and segments: those with a usable probability.

    Rows that are unlike the training, missing, black or credits do not count, whether or not they have one.
    """
    return np.asarray(~is_left_out(table) & table["p"].notna(), dtype=np.bool_)


def is_left_out(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the rows [N] that are unlike the training, missing, black or credits: they count in no number."""
    return has_flag(table, *UNRELIABLE, *NO_CONTENT)
