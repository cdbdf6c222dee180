"""Cut a film into cells, the windows that people judge, with what a model says of each."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.manifest import Clip, Manifest
from obygaze_film.coverage import SLACK_S, Coverage, find_coverage
from obygaze_film.draws import SUCCESSIVE, Sampling, random_order
from obygaze_film.errors import FilmError
from obygaze_film.positive import Positive, positive_of
from obygaze_film.schema import MISSING, NO_CONTENT, FilmRecord, Spans, durations, has_flag, is_counted
from obygaze_film.timeline import Timeline

Floats = NDArray[np.float64]

ROUNDING_MS = 1e-6
"""Milliseconds by which floating point may make a length longer than it is."""


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """The cells of a film (windows of equal length without gaps), and what one model says of them.

    Attributes
    ----------
    spans : ndarray, shape [C, 2]
        Starts and ends in seconds, without gaps.
    content_s : ndarray, shape [C]
        Seconds that were read and are neither black nor credits, which can be judged; the same for all
        models. A cell of which more than half could not be read has none.
    counted_s : ndarray, shape [C]
        Seconds that count in the rate that the model expects: content with a probability.
    p : ndarray, shape [C]
        Mean probability over the content. Content without a probability (unlike, missing) has the mean over
        the film's counted seconds, so that the mean of `p` weighted by `content_s` is the rate that the model
        expects.
    unread_s : float
        Seconds of the film, neither black nor credits, that are no content since they, or more than half of
        their cell, could not be read.
    n_unread : int
        Cells that have no content for that reason.
    """

    spans: Spans
    content_s: Floats
    counted_s: Floats
    p: Floats
    unread_s: float = 0.0
    n_unread: int = 0

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether more than half of each cell [C] is content with a probability (`counted_s`)."""
        lengths_s = self.spans[:, 1] - self.spans[:, 0]
        return np.asarray(self.counted_s > lengths_s / 2)

    def index_of(self, start_s: float | None, end_s: float | None) -> int | None:
        """Find the cell with this start and end, to the millisecond (`SLACK_S`); None if there is none.

        A clip that is a whole film has no times (None), and so it matches no cell.
        """
        if start_s is None or end_s is None:
            return None
        distances_s = np.abs(self.spans - (start_s, end_s)).max(axis=1)
        is_same = distances_s <= SLACK_S
        return int(np.argmax(is_same)) if is_same.any() else None

    def index_with_content(self, start_s: float | None, end_s: float | None) -> int | None:
        """Find the cell with this start and end; None if there is none, or if it has no content."""
        cell = self.index_of(start_s, end_s)
        if cell is None or self.content_s[cell] <= 0:
            return None
        return cell

    def order_of_draw(self, name: str, seed: int, sampling: Sampling = SUCCESSIVE) -> list[int]:
        """Put the cells with content in a random order; return their indices.

        For any n, the first n are a random sample of the cells (`inclusion_chances`). Cells with more content
        tend to come first (`random_order`).

        Parameters
        ----------
        name : str
            Name of the film: films with the same seed have different orders.
        seed : int
        sampling : str
            Method of sampling: `SUCCESSIVE` or `SEQUENTIAL_POISSON`.
        """
        return random_order(self.content_s, name, seed, sampling)

    def without(self, cells: Iterable[int]) -> "Cells":
        """Copy the cells with the content of some set to 0 s, such as where no judge was sure."""
        content_s = self.content_s.copy()
        content_s[list(cells)] = 0
        return replace(self, content_s=content_s)


def cells_of(timeline: Timeline, key: str | None = None) -> Cells:
    """Cut a film into cells as long as the scored windows, or the models' training clips if those are longer.

    The last cell also has what is left, so that none is shorter; a film shorter than a cell is one cell. The
    cells of a model are computed once; their arrays are read-only.

    Parameters
    ----------
    timeline : Timeline
    key : str, optional
        The model of `p` and `counted_s`; spans and content do not depend on it.
    """
    cells_by_model = _CELLS_OF_FILM.setdefault(timeline, {})
    key = timeline.model(key).key
    if key not in cells_by_model:
        cells = cells_by_model[key] = _compute_cells(timeline, key)
        for array in (cells.spans, cells.content_s, cells.counted_s, cells.p):
            array.flags.writeable = False
    return cells_by_model[key]


_CELLS_OF_FILM: WeakKeyDictionary[Timeline, dict[str, Cells]] = WeakKeyDictionary()
"""Film, as long as it is used -> key of a model -> the cells."""


def _compute_cells(timeline: Timeline, key: str) -> Cells:
    """Cut a film into cells, and compute what a model says of each."""
    rows = timeline.rows(key)
    spans = _spans_of_cells(timeline.record, last_end_s=float(rows["end_s"].max()))
    rows_in_cells = find_coverage(spans, rows[["start_s", "end_s"]].to_numpy(dtype=np.float64))

    # Which rows [R] can be judged
    has_pictures = ~has_flag(rows, *NO_CONTENT)  # neither black nor credits
    is_unread = _unread_by_all(timeline)
    has_content = has_pictures & ~is_unread

    content = _content_of_cells(
        spans,
        read_s=rows_in_cells.marked_seconds(has_content),
        unread_s=rows_in_cells.marked_seconds(has_pictures & is_unread),
    )
    return Cells(
        spans=spans,
        content_s=content.content_s,
        counted_s=rows_in_cells.marked_seconds(is_counted(rows)),
        p=_p_of_cells(rows, rows_in_cells, has_content, content.content_s),
        unread_s=float(content.unread_s.sum()),
        n_unread=int(content.is_unread.sum()),
    )


class _CellContent(NamedTuple):
    """What can be judged in each cell [C].

    `content_s` are the seconds that can, `unread_s` those that can't as they could not be read. `is_unread`
    says which cells have no content since more than half of the cell could not be read.
    """

    content_s: Floats
    unread_s: Floats
    is_unread: NDArray[np.bool_]


def _content_of_cells(spans: Spans, *, read_s: Floats, unread_s: Floats) -> _CellContent:
    """Compute what can be judged in each cell [C], from its seconds with pictures that were and weren't read.

    If more than half of a cell could not be read, all of it counts as unread.
    """
    lengths_s = spans[:, 1] - spans[:, 0]
    is_unread = unread_s > lengths_s / 2
    return _CellContent(
        content_s=np.where(is_unread, 0.0, read_s),
        unread_s=np.where(is_unread, unread_s + read_s, unread_s),
        is_unread=is_unread,
    )


def _p_of_cells(
    rows: pd.DataFrame, rows_in_cells: Coverage, has_content: NDArray[np.bool_], content_s: Floats
) -> Floats:
    """Average the probability of a film's rows over the content of each cell [C].

    Rows with content but without a probability are filled with the film's mean; so are cells without content.

    Parameters
    ----------
    rows : DataFrame, R rows
    rows_in_cells : Coverage
        Which rows cover which cells, and for how many seconds.
    has_content : ndarray of bool, shape [R]
        Rows that were read and are neither black nor credits.
    content_s : ndarray, shape [C]
        Seconds of content in each cell.
    """
    film_p = _mean_p(rows)
    p_of_rows = np.where(is_counted(rows), rows["p"].to_numpy(dtype=np.float64), film_p)
    sums = rows_in_cells.weighted_sums(np.where(has_content, p_of_rows, 0.0))  # p times seconds
    return _ratios(sums, content_s, default=film_p)


def _ratios(numerators: Floats, denominators: Floats, default: float) -> Floats:
    """Divide two arrays of the same shape; `default` where the denominator is 0."""
    ratios: Floats = np.full(len(denominators), default)
    np.divide(numerators, denominators, out=ratios, where=denominators > 0)
    return ratios


def _mean_p(rows: pd.DataFrame) -> float:
    """Average the probability of rows over their seconds; 0.5 if no row has a probability."""
    with_p = rows[is_counted(rows)]
    if not len(with_p):
        return 0.5
    return float(np.average(with_p["p"].to_numpy(dtype=np.float64), weights=durations(with_p)))


def _unread_by_all(timeline: Timeline) -> NDArray[np.bool_]:
    """Mark the rows [R] of which nothing could be read: all models lack features of them.

    All models of a film have the same rows.
    """
    is_missing = [has_flag(timeline.rows(key), MISSING) for key in timeline.keys]
    return np.asarray(np.logical_and.reduce(is_missing))


def _spans_of_cells(record: FilmRecord, last_end_s: float) -> Spans:
    """Cut a film into equal spans [C, 2], the last of which reaches to the film's end.

    Parameters
    ----------
    record : FilmRecord
    last_end_s : float
        End of the film's last row, which may lie after the film's duration.
    """
    cell_s = _cell_length_s(record)
    end_s = max(record.duration_s, last_end_s)
    # The slack keeps a last cell that only rounding makes shorter than the others.
    n_full_cells = int((end_s + SLACK_S) // cell_s)
    n_cells = max(1, n_full_cells)
    starts = np.round(cell_s * np.arange(n_cells), 3)
    ends = [*starts[1:], end_s]  # what is left after the full cells goes to the last one
    return np.column_stack([starts, ends])


def _cell_length_s(record: FilmRecord) -> float:
    """Return the longest of the film's windows and the models' training clips, in whole milliseconds."""
    longest_s = record.windows.window_s
    for model in record.models:
        if model.clip_s is not None:
            longest_s = max(longest_s, model.clip_s)
    # Rounded up. 8.1 s may be 8100.000000000001 ms by floating point, and must not become 8101 ms.
    cell_ms = np.ceil(1000 * longest_s - ROUNDING_MS)
    return float(cell_ms) / 1000


def cells_by(labels: Manifest, timeline: Timeline, key: str | None = None) -> Cells:
    """Cut a film into cells whose `p` comes from an annotator's labels in place of a model.

    The `p` of a cell is the positive share of its labelled seconds. A cell without labels has the positive
    share of all labelled seconds of the film. `counted_s` are a cell's labelled seconds, at most its content.

    Parameters
    ----------
    labels : Manifest
        Clips labelled by one annotator, of this film and perhaps of others.
    timeline : Timeline
    key : str, optional
        The model whose positive levels, or concept, decide which labels are positive.

    Raises
    ------
    FilmError
        The labels are of several annotators, or none is of this film.
    """
    from obygaze_film.rows import overlaps  # noqa: PLC0415 - slow, and films are opened without it

    cells = cells_of(timeline, key)

    # The labels of the film, and which of them are positive
    positive = positive_of(timeline.model(key))
    clips = _labelled_clips(labels, timeline.movie, positive)
    spans = np.array([(clip.start_s, clip.end_s) for clip in clips], dtype=np.float64).reshape(-1, 2)
    is_positive = np.array([bool(positive.is_positive(clip, labels.codebook.labels)) for clip in clips])

    # How much of each cell is labelled, and how much of it positive
    overlap_s = overlaps(cells.spans, spans)  # [C, labels]: seconds of each label in each cell
    labelled_s = overlap_s.sum(axis=1, dtype=np.float64)
    positive_s = overlap_s @ is_positive.astype(np.float64)
    if not labelled_s.any():
        raise FilmError(f"film {timeline.movie}: the labels in place of the model's have no span in it")

    film_share = float(positive_s.sum() / labelled_s.sum())
    return replace(
        cells,
        counted_s=np.minimum(labelled_s, cells.content_s),
        p=_ratios(positive_s, labelled_s, default=film_share),
    )


def _labelled_clips(labels: Manifest, movie: str, positive: Positive) -> list[Clip]:
    """Return the labelled spans of a film: its clips with times that are either positive or negative.

    `positive` is what the model calls positive: levels of the codebook, or a concept.

    Raises
    ------
    FilmError
        The labels are of several annotators. Or `positive` is a concept and no clip of any film names a
        concept: then the annotator may have given levels alone, and a clip without the concept is not a
        negative one.
    """
    annotator_of(labels)  # called for its error, on labels of several annotators
    levels_that_count = labels.codebook.labels

    # The clips of all films that are positive or negative. The labels may write this film's name in another
    # form: it is replaced by ours, and other films are left as they are.
    labelled_of_all_films = []
    for clip in labels.spelled_as([movie]):
        is_positive = positive.is_positive(clip, levels_that_count)  # None: neither positive nor negative
        if is_positive is not None:
            labelled_of_all_films.append(clip)

    if positive.lacks_labels_in(labelled_of_all_films):
        raise FilmError(
            f"film {movie}: the labels in place of the model's name no concept, so that nothing "
            f"says where {positive.text} is: give labels with concepts"
        )
    return [clip for clip in labelled_of_all_films if clip.movie == movie and clip.end_s is not None]


def annotator_of(labels: Manifest) -> str:
    """Return the name of the annotator of labels that take a model's place; "labels" if they name none.

    Rows without a level or a concept are labels of nobody: a rank on a scale takes no model's place.

    Raises
    ------
    FilmError
        The labels are of several annotators.
    """
    annotators = {clip.annotator for clip in labels if clip.level is not None or clip.concepts}
    if len(annotators) > 1:
        names = ", ".join(sorted(annotators))
        raise FilmError(f"the labels are of {len(annotators)} annotators ({names}): give one's")
    return "".join(annotators) or "labels"
