"""Cut a film into cells, the windows that people judge, with what a model says of each."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import Manifest
from obygaze_film.coverage import SLACK_S, find_coverage
from obygaze_film.draws import SUCCESSIVE, Sampling, random_order
from obygaze_film.errors import FilmError
from obygaze_film.positive import positive_of
from obygaze_film.schema import NO_CONTENT, Spans, durations, has_flag, is_counted
from obygaze_film.timeline import Timeline

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """The cells of a film, and what one model says of them.

    Attributes
    ----------
    spans : ndarray, shape [C, 2]
        Starts and ends in seconds, without gaps.
    content : ndarray, shape [C]
        Seconds that are neither black nor credits; the same for all models.
    counted : ndarray, shape [C]
        Seconds that count in the rate that the model expects: content with a probability.
    p : ndarray, shape [C]
        Mean probability over the content. Content without a probability (unlike, missing) has the mean over
        the film's counted seconds: the mean of `p` weighted by `content` is the rate that the model expects.
    """

    spans: Spans
    content: Floats
    counted: Floats
    p: Floats

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Mark the cells [C] of whose time more than half counts in the rate that the model expects."""
        lengths_s = self.spans[:, 1] - self.spans[:, 0]
        return np.asarray(self.counted > lengths_s / 2)

    def find(self, start_s: float | None, end_s: float | None) -> int | None:
        """Find the cell that has content and this span; None if there is none, as of a whole film."""
        cell = self.at(start_s, end_s)
        return cell if cell is not None and self.content[cell] > 0 else None

    def at(self, start_s: float | None, end_s: float | None) -> int | None:
        """Find the cell of this span, with or without content; None if there is none, as of a whole film."""
        if start_s is None or end_s is None:
            return None
        distances_s = np.abs(self.spans - (start_s, end_s)).max(axis=1)
        is_same = distances_s <= SLACK_S
        return int(np.argmax(is_same)) if is_same.any() else None

    def drawn(self, name: str, seed: int, sampling: Sampling = SUCCESSIVE) -> list[int]:
        """Put all cells with content in a random order, of which the first n are a draw of n.

        Each next cell is drawn in proportion to its content among those left (`random_order`).
        `inclusion_chances` gives the chances with which a cell is among the first n.
        """
        return random_order(self.content, name, seed, sampling)

    def without(self, cells: Iterable[int]) -> "Cells":
        """Take the content from some cells, such as those of which no judge was sure."""
        content = self.content.copy()
        content[list(cells)] = 0
        return replace(self, content=content)


def cells_of(timeline: Timeline, key: str | None = None) -> Cells:
    """Cut a film into cells as long as the scored windows, or the models' training clips if those are longer.

    The last cell also has what is left, so that none is shorter; a film shorter than a cell is one cell.

    Parameters
    ----------
    timeline : Timeline
    key : str, optional
        The model of `p` and `counted`; spans and content do not depend on it.
    """
    record = timeline.record
    rows = timeline.rows(key)
    longest_s = max(record.windows.window_s, *(model.clip_s or 0.0 for model in record.models))
    # Rounded up to whole milliseconds; a millionth of one too many is an error of floating point.
    cell_s = float(np.ceil(1000 * longest_s - 1e-6)) / 1000
    end_s = max(record.duration_s, float(rows["end_s"].max()))
    n_cells = max(1, int((end_s + SLACK_S) // cell_s))
    starts = np.round(cell_s * np.arange(n_cells), 3)
    spans = np.column_stack([starts, [*starts[1:], end_s]])
    has_content = ~has_flag(rows, *NO_CONTENT)
    has_p = is_counted(rows)
    p = rows["p"].to_numpy(dtype=np.float64)
    # A film without any probability says nothing: 0.5 is as good as any other number.
    film_p = float(np.average(p[has_p], weights=durations(rows)[has_p])) if has_p.any() else 0.5
    coverage = find_coverage(spans, rows[["start_s", "end_s"]].to_numpy(dtype=np.float64))
    content = coverage.sums(has_content.astype(np.float64))
    sums_of_p = coverage.sums(np.where(has_content, np.where(has_p, p, film_p), 0.0))
    return Cells(
        spans=spans,
        content=content,
        counted=coverage.sums(has_p.astype(np.float64)),
        p=np.divide(sums_of_p, content, out=np.full(len(spans), film_p), where=content > 0),
    )


def cells_by(labels: Manifest, timeline: Timeline, key: str | None = None) -> Cells:
    """Cut a film into cells whose `p` is made of an annotator's labels, such as a machine's.

    The `p` of a cell is the positive share of its labelled seconds; where it has none, the film's mean.
    `counted` are its labelled seconds, at most its content.

    Raises
    ------
    FilmError
        The labels are of several annotators, or none is of this film.
    """
    from obygaze_film.rows import overlaps  # noqa: PLC0415 - slow, and films are opened without it

    cells = cells_of(timeline, key)
    positive = positive_of(timeline.model(key))
    names = {clip.annotator for clip in labels}
    if len(names) > 1:
        raise FilmError(f"the labels are of {len(names)} annotators ({', '.join(sorted(names))}): give one's")
    levels = labels.codebook.labels
    of_film = [clip for clip in labels.spelled_as([timeline.movie]) if clip.movie == timeline.movie]
    clips_of_film = [clip for clip in of_film if positive.calls(clip, levels) is not None]
    if positive.never_named(clips_of_film):
        raise FilmError(
            f"film {timeline.movie}: the labels in place of the model's name no concept, so that nothing "
            f"says where {positive.text} is: give labels with concepts"
        )
    with_times = [clip for clip in clips_of_film if clip.end_s is not None]
    spans = np.array([(clip.start_s, clip.end_s) for clip in with_times], dtype=np.float64).reshape(-1, 2)
    is_positive = np.array([bool(positive.calls(clip, levels)) for clip in with_times], dtype=np.float64)
    overlap_s = overlaps(cells.spans, spans)  # [C, labels]: seconds of each label in each cell
    labelled_s = overlap_s.sum(axis=1)
    positive_s = overlap_s @ is_positive
    if not labelled_s.any():
        raise FilmError(f"film {timeline.movie}: the labels in place of the model's have no span in it")
    mean = positive_s.sum() / labelled_s.sum()
    p = np.divide(positive_s, labelled_s, out=np.full(len(labelled_s), mean), where=labelled_s > 0)
    return replace(cells, counted=np.minimum(labelled_s, cells.content), p=p)
