"""Represent, read and write a scored film: its rows in time, its shots, and its record."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.io import local_path, sha256_of, whole_folder, write_new
from obygaze_film.errors import FilmError
from obygaze_film.schema import (
    NO_TEXTS,
    NO_TRACES,
    FilmRecord,
    ModelRecord,
    Rate,
    Run,
    csv_bytes,
    durations,
    flags_in,
    is_counted,
    refuse_texts,
    runs,
)
from obygaze_film.scored_files import (
    FILES,
    FRAMES,
    RECORD,
    SEGMENTS,
    SHOTS,
    SUBTITLES,
    TIMELINE,
    folders_of,
    link,
    read_scored,
)


@dataclass(frozen=True, eq=False)
class Timeline:
    """A film scored by models over time.

    Attributes
    ----------
    record : FilmRecord
        Content of `film.json`.
    table : DataFrame
        Content of `timeline.csv`: for each model one row per shot (or step between windows), in the order
        of models and of time. Rows of a model do not overlap, and cover the film.
    shots : DataFrame
        Content of `shots.csv`; empty if no shots were detected.
    frames : DataFrame
        Content of `frames.csv`: values of models for frames, step by step (`score.traces_of`); empty
        if the store has no frames that they can read.
    subtitles : DataFrame
        Content of `subtitles.csv`: what is said, with its times; empty unless it was asked for.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> timeline = obygaze_film.score_film(of.open_store("stores/more"), ["kept/linear.model"], movie="film6")
    >>> timeline.rows().shape[0], timeline.rate().reason
    (16, '')
    >>> timeline.write(Path("scored"))
    >>> obygaze_film.Timeline.read("scored").rate() == timeline.rate()
    True
    """

    record: FilmRecord
    table: pd.DataFrame
    shots: pd.DataFrame
    frames: pd.DataFrame = field(default_factory=lambda: NO_TRACES)
    subtitles: pd.DataFrame = field(default_factory=lambda: NO_TEXTS)

    @property
    def movie(self) -> str:
        """Name of the film in the manifest."""
        return self.record.movie

    @property
    def heading(self) -> str:
        """The film's title with its most important warning (`page.phrases.heading`)."""
        from obygaze_film.page.phrases import Words, heading  # noqa: PLC0415 - these write what is read here

        return heading(self.record, Words("en"))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the models in the tables."""
        return tuple(model.key for model in self.record.models)

    def model(self, key: str | None = None) -> ModelRecord:
        """Find a model by its key; by default the first with logits.

        Raises
        ------
        FilmError
            No model has this key.
        """
        models = self.record.models
        if key is None:
            return next((model for model in models if model.decides), models[0])
        for model in models:
            if model.key == key:
                return model
        raise FilmError(f"film {self.movie} has no model {key!r}: it has {', '.join(self.keys)}")

    def rows(self, key: str | None = None) -> pd.DataFrame:
        """Return the rows of one model, in time order."""
        name = self.model(key).key
        return self.table[self.table["model"] == name].reset_index(drop=True)

    def segments(self, key: str | None = None, top: int = 20) -> pd.DataFrame:
        """Find the segments of one model; columns as in `segments.csv`, best first.

        Parameters
        ----------
        key : str, optional
        top : int
            Minimum number of segments, if the film has as many: those that stay below the threshold have
            `reaches` 0. All that reach it are listed.
        """
        return find_segments(self.rows(key), self.model(key), top)

    def rate(self, key: str | None = None) -> Rate:
        """Return the share of the film's time that a model expects to be positive, or why it is refused."""
        return self.model(key).rate

    def sentence(self, key: str | None = None, language: str = "en") -> str:
        """Say what a model marks in the film; empty where it predicts nothing (`phrases.first_sentence`)."""
        from obygaze_film.page.phrases import Words, first_sentence  # noqa: PLC0415 - these write

        model = self.model(key)
        return first_sentence(model, self.segments(model.key), self.record.duration_s, Words(language))

    def write(self, folder: Path | str) -> None:
        """Write `film.json` and its tables into a folder, as `write_films` does."""
        write_films([self], folder)

    def files(self) -> dict[str, bytes]:
        """Return the bytes of each file of the folder; the record has the digests of the others."""
        segments = [self.segments(model.key) for model in self.record.models]
        segments = [table for table in segments if len(table)] or segments[
            :1
        ]  # empty tables would decide types
        tables = {TIMELINE: self.table, SEGMENTS: pd.concat(segments), SHOTS: self.shots}
        optional = {FRAMES: self.frames, SUBTITLES: self.subtitles}
        tables |= {name: table for name, table in optional.items() if len(table)}
        written = {name: csv_bytes(table) for name, table in tables.items()}
        tables_of = {name: sha256_of(data) for name, data in written.items()}
        record = msgspec.structs.replace(self.record, tables=tables_of)
        refuse_texts(record)
        return {**written, RECORD: record.to_bytes()}

    def to_html(self, path: Path | str, *, force: bool = False, **options: Any) -> None:
        """Write the film's page; options as of `obygaze_film.page.film_page`."""
        from obygaze_film.page import write_film_page  # noqa: PLC0415 - it draws what is read here

        write_film_page([self], path, force=force, **options)

    def export(self, kind: str, path: Path | str, **options: Any) -> None:
        """Write the film for another tool; kinds and options as of `obygaze_film.exchange.collect`."""
        from obygaze_film.exchange import write_export  # noqa: PLC0415 - it writes what is read here

        write_export(self, kind, local_path(path), **options)

    @classmethod
    def read(cls, folder: Path | str) -> "Timeline":
        """Read a folder that `obygaze film score` wrote.

        Raises
        ------
        FilmError
            It is not such a folder, or a file is damaged; names file and column.
        """
        record, tables = read_scored(local_path(folder))
        return cls(record, *tables)


def write_films(films: Sequence[Timeline], out: Path | str) -> dict[str, Path]:
    """Write scored films, one into `out` itself, several into a folder of it each; return these folders.

    Earlier films of these folders are replaced with all that belongs to them, rates from judgements too; what
    else is there stays. Whatever happens, the old or the new films are there, whole.

    Raises
    ------
    FilmError
        Two films would have one folder, or a text has control characters.
    """
    out = local_path(out)
    folders = folders_of([film.movie for film in films], out)
    ours = FILES if out in folders.values() else {folder.name for folder in folders.values()}
    with whole_folder(out) as partial:
        for node in out.iterdir() if out.is_dir() else ():
            if node.name in ours:
                continue
            if node.is_dir() and not node.is_symlink():
                shutil.copytree(node, partial / node.name, symlinks=True, copy_function=link)
            else:
                link(node, partial / node.name)
        for film in films:
            folder = partial / folders[film.movie].relative_to(out)
            folder.mkdir(exist_ok=True)
            for name, data in film.files().items():
                write_new(folder / name, data)
    return folders


def read_films(folders: Sequence[Path | str]) -> list[Timeline]:
    """Read scored films from folders of one film, of several, or of a run (`obygaze film run`).

    Raises
    ------
    FilmError
        A folder contains no film, or a film occurs twice.

    Examples
    --------
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> for film in obygaze_film.score_films(of.open_store("stores/more"), ["kept/linear.model"]):
    ...     film.write(Path("scored-films") / film.movie)
    >>> len(obygaze_film.read_films(["scored-films"]))
    6
    """
    return list(found_films([local_path(folder) for folder in folders]).values())


def found_films(folders: Sequence[Path]) -> dict[Path, Timeline]:
    """Read scored films like `read_films`, by folder."""
    folder_of: dict[str, Path] = {}
    films = {}
    for folder in folders:
        found = (sorted(folder.glob(f"{deeper}{RECORD}")) for deeper in ("", "*/", "scored/*/"))
        places = [record.parent for record in next(filter(None, found), [])]
        if not places:
            raise FilmError(
                f"{folder}: no {RECORD} here or one folder deeper: give what 'obygaze film score' wrote, or "
                "'obygaze film run'"
            )
        for path in places:
            film = Timeline.read(path)
            if film.movie in folder_of:
                raise FilmError(
                    f"film {film.movie} is there twice, in {folder_of[film.movie]} and {path}: give one"
                )
            folder_of[film.movie] = path
            films[path] = film
    return films


# --- segments
# ---------------------------------------------------------------------------
SEGMENT_COLUMNS = (
    "movie", "model", "rank", "start_s", "end_s", "p", "p_low", "p_high", "peak_s", "reaches", "present",
    "concepts", "concepts_p", "contributions", "flags",
)  # fmt: skip
"""present: the concepts that are seen and weigh most; concepts: these, and those that weigh most whether seen
or not, with the probability of each and its contribution to the logit. Names and numbers are separated by
semicolons, the heaviest first."""

DROP = 0.1
"""Difference between the probabilities at which a segment starts and ends."""

MIN_S, GAP_S = 5.0, 5.0
"""Seconds of the shortest segment, and of the longest gap in one."""

N_CONCEPTS = 3
"""Most concepts in the column `present`, and number of those that weigh most."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A concept of a segment: its mean probability and contribution to the logit, and whether it is seen."""

    concept: str
    p: float
    contribution: float
    is_present: bool


def reasons(segment: Mapping[Any, Any]) -> tuple[Reason, ...]:
    """Read the concepts of a row of `SEGMENT_COLUMNS`, the heaviest first."""
    names, p, contributions = (
        str(segment[name]).split(";") for name in ("concepts", "concepts_p", "contributions")
    )
    present = str(segment["present"]).split(";")
    return tuple(
        Reason(name, float(own_p), float(contribution), name in present)
        for name, own_p, contribution in zip(names, p, contributions, strict=True)
        if name
    )


def find_segments(rows: pd.DataFrame, model: ModelRecord, top: int = 20) -> pd.DataFrame:
    """Find the segments of one model in a film.

    A segment starts where the probability reaches the model's threshold and goes on while it stays above the
    threshold less 0.1 (of a threshold below 0.2: above half of it). Segments at most 5 s apart are one;
    shorter ones than 5 s are dropped. Where fewer than `top` are found, the highest places that stay below
    the threshold are listed too, cut out by the same rule with their own peak as the threshold.

    Parameters
    ----------
    rows : DataFrame
        The rows of the model, in time order.
    model : ModelRecord
    top : int

    Returns
    -------
    DataFrame
        `SEGMENT_COLUMNS`; first those that reach the threshold, each part by mean probability. Empty for a
        model without probabilities.
    """
    threshold, counted = model.threshold_p, is_counted(rows)
    if threshold is None or not counted.any():
        return pd.DataFrame(columns=SEGMENT_COLUMNS)
    p = np.where(counted, rows["p"].to_numpy(dtype=np.float64), -1.0)
    start, end = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    reaching = [run for run in runs(p >= _floor(threshold)) if p[slice(*run)].max() >= threshold]
    reaching = [run for run in _bridge(reaching, start, end) if end[run[1] - 1] - start[run[0]] >= MIN_S]
    below = _peaks(np.where(p < threshold, p, -1.0), reaching, start, end, top - len(reaching))
    listed = [_row(rows, run, model) | {"reaches": 1} for run in reaching]
    listed += [_row(rows, run, model) | {"reaches": 0} for run in below]
    table = pd.DataFrame(listed, columns=SEGMENT_COLUMNS)
    table = table.sort_values(["reaches", "p", "start_s"], ascending=[False, False, True], ignore_index=True)
    return table.assign(rank=np.arange(1, len(table) + 1))


def _floor(threshold: float) -> float:
    return max(threshold - DROP, threshold / 2)


def _bridge(separate: Sequence[Run], start: NDArray[np.float64], end: NDArray[np.float64]) -> list[Run]:
    """Join runs that are near each other."""
    bridged: list[Run] = []
    for first, after in separate:
        if bridged and start[first] - end[bridged[-1][1] - 1] <= GAP_S:
            bridged[-1] = (bridged[-1][0], after)
        else:
            bridged.append((first, after))
    return bridged


def _peaks(
    p: NDArray[np.float64],
    reaching: Sequence[Run],
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    n: int,
) -> list[Run]:
    """Find at most n of the highest peaks outside of the segments that reach the threshold."""
    left = p.copy()
    for run in reaching:
        left[slice(*run)] = -1.0
    peaks: list[Run] = []
    while len(peaks) < n:
        seed = int(np.argmax(left))
        if left[seed] <= 0:
            break
        floor = _floor(float(left[seed]))
        first, after = seed, seed + 1
        while first > 0 and left[first - 1] >= floor:
            first -= 1
        while after < len(left) and left[after] >= floor:
            after += 1
        left[first:after] = -1.0
        if end[after - 1] - start[first] >= MIN_S:
            peaks.append((first, after))
    return peaks


def _row(rows: pd.DataFrame, run: Run, model: ModelRecord) -> dict[str, object]:
    """Describe one segment."""
    part = rows.iloc[slice(*run)]
    reliable = part[is_counted(part)]
    weights = durations(reliable)

    def mean(column: str) -> float:
        return float(np.average(reliable[column], weights=weights))

    peak = reliable.iloc[int(np.argmax(reliable["p"].to_numpy()))]
    every = []
    for concept in model.concepts if model.by_concepts else ():
        p = mean(f"{concept.name}_p")
        every.append(Reason(concept.name, p, mean(f"{concept.name}_contribution"), p >= concept.threshold_p))
    every.sort(key=lambda reason: -abs(reason.contribution))
    present = [reason for reason in every if reason.is_present][:N_CONCEPTS]
    weighing = [reason for reason in every[:N_CONCEPTS] if reason.contribution]
    named = [reason for reason in every if reason in present or reason in weighing]
    return {
        "movie": part["movie"].iloc[0],
        "model": model.key,
        "start_s": float(part["start_s"].iloc[0]),
        "end_s": float(part["end_s"].iloc[-1]),
        **{name: mean(name) for name in ("p", "p_low", "p_high")},
        "peak_s": float((peak["start_s"] + peak["end_s"]) / 2),
        "present": ";".join(reason.concept for reason in present),
        "concepts": ";".join(reason.concept for reason in named),
        "concepts_p": ";".join(f"{reason.p:.4f}" for reason in named),
        "contributions": ";".join(f"{reason.contribution:.4f}" for reason in named),
        "flags": ";".join(flags_in(part)),
    }
