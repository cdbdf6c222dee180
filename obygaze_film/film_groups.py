"""Compare groups of scored films: match films with a table of facts, estimate means, differences, a trend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from obygaze_features.io import local_path
from obygaze_features.manifest import Clip, Manifest, delimiter_of, read_table
from obygaze_film.comparison import (
    LEAST_FILMS,
    LEAST_OF_TREND,
    FilmSample,
    RateEstimate,
    estimate_groups,
    estimate_slope,
    sample_of,
)
from obygaze_film.errors import FilmError
from obygaze_film.judged_rate import cells_of, correct_rate, judged_cells, least_judged, votes
from obygaze_film.schema import CorrectedRate
from obygaze_film.timeline import Timeline
from obygaze_models.report import Column, Report, block, interval, number, signed

JUDGEMENTS: Final = "judgements.csv"
"""File of a scored film's folder with what people judged."""

ALL: Final = "all films"
"""Name of the only group, where no column is given."""

LEAST_VALUES: Final = 3
"""Of a trend's number, among judged films; two are a difference of groups."""

NOTES: Final = (
    "mean of the films' shares; its interval is of films like these, for films and windows are both drawn",
    "it holds if the judged films were drawn at random, not chosen",
    "worth windows: that many judged windows would give the same interval without the model",
)

Facts = Mapping[str, Mapping[str, str]]
"""Cells of a table of films, by column, of each film."""


@dataclass(frozen=True, eq=False, slots=True)
class ComparedFilm:
    """A film with its facts, its group, the number of its trend, and its judged rate."""

    timeline: Timeline
    facts: Mapping[str, str]
    group: str
    x: float
    sample: FilmSample
    rate: CorrectedRate | None

    @property
    def title(self) -> str:
        """Title of the table of films, or of the scored film."""
        return self.facts["title"] or self.timeline.movie

    @property
    def row(self) -> dict[str, object]:
        """What a table has of the film: its judged rate if there is one."""
        known = self.rate
        return {
            "movie": self.timeline.movie,
            "year": self.facts["year"],
            "title": self.title,
            "group": self.group,
            "n_windows": known.n if known else 0,
            "expected": self.sample.expected,
            **{name: getattr(known, name) if known else np.nan for name in ("value", "low", "high")},
        }


@dataclass(frozen=True, eq=False, slots=True)
class FilmComparison:
    """Rates of groups of films.

    Attributes
    ----------
    films : tuple of ComparedFilm
        By year and title, never by rate.
    groups : DataFrame
        A row for each group: `group`, `n_films`, `n_judged` (films), `n_windows` (judged), `expected` (by the
        model alone), `value`, `low`, `high`, `worth` (judged windows that would be needed without the model)
        and `reason`: why there is no value.
    differences : DataFrame
        Of every two groups with a value, unless the judged films of one are all alike: `group`, `minus`,
        `value`, `low`, `high`.
    trend : DataFrame
        At most one row: `group` (the column), `n_films`, `n_judged`, `value` (by ten years, or by 1 of any
        other column), `low`, `high`, `reason`.
    notes : tuple of str
        What was left out, and why.
    by, positive, model : str
        The column of groups; what the model finds; its key.
    """

    films: tuple[ComparedFilm, ...]
    groups: pd.DataFrame
    differences: pd.DataFrame
    trend: pd.DataFrame
    notes: tuple[str, ...]
    by: str
    positive: str
    model: str

    @property
    def tables(self) -> tuple[pd.DataFrame, ...]:
        """The tables in which a value may be refused."""
        return tuple(table for table in (self.groups, self.trend) if len(table))

    @property
    def trend_title(self) -> str:
        """What the trend is."""
        column = self.trend["group"].iloc[0]
        return f"Trend: change by {'10 years' if column == 'year' else f'1 of {column}'}"

    @property
    def sentence(self) -> str:
        """The groups' rates in words."""
        known = self.groups[self.groups["value"].notna()]
        if known.empty:
            return "No group has enough judged films for a rate."
        rates = [
            f"{row.value:.0%} [{row.low:.0%}, {row.high:.0%}] of the time of {row.group}"
            for row in known.itertuples(index=False)
        ]
        return f"People would mark as {self.positive} (95 % intervals): {'; '.join(rates)}."


def read_facts(path: Path | str, films: Sequence[Timeline]) -> tuple[Facts, list[str]]:
    """Read a table of films and match its rows by the column `movie`, or else by `title`.

    Returns
    -------
    facts : mapping
        Cells by movie.
    notes : list of str
        Rows and films without a match.

    Raises
    ------
    FilmError
        It has neither column, or two rows are of one film.
    """
    path = local_path(path)
    table = read_table(path, (), delimiter_of(path))
    key = next((name for name in ("movie", "title") if name in table.columns), None)
    if key is None:
        raise FilmError(f"{path}: no column movie or title: one of them says which film a row is of")
    names = {film.movie if key == "movie" else film.record.title: film.movie for film in films}
    if len(names) < len(films):
        raise FilmError(f"{path}: two scored films have one title: add the column movie")
    facts: dict[str, Mapping[str, str]] = {}
    unmatched = []
    for row in table.rows:
        movie = names.get(row.cells[key])
        if movie is None:
            unmatched.append(row.cells[key])
        elif movie in facts:
            raise FilmError(f"{path}: line {row.line}, column {key}: film {movie} has a row already")
        else:
            facts[movie] = row.as_written().cells
    notes = _note(f"not scored, of {path.name}", unmatched)
    return facts, notes + _note(
        f"not in {path.name}", [film.movie for film in films if film.movie not in facts]
    )


def compare_films(
    films: Sequence[Timeline],
    judgements: Manifest,
    facts: Facts | None = None,
    *,
    by: str | None = None,
    trend: str | None = None,
    model: str | None = None,
) -> FilmComparison:
    """Estimate the mean rate of groups of films, their differences, and a trend.

    Parameters
    ----------
    films : sequence of Timeline
    judgements : Manifest
        Of the windows that `film next --blind` drew, of all films; without clips if there are none.
    facts : mapping, optional
        Cells by movie (`read_facts`); films without any are left out. By default `title` and `year` of the
        scored films.
    by, trend : str, optional
        Columns of groups and of the number of the trend. `decade` is made from `year`.
    model : str, optional
        Key of the model; by default the first that decides.

    Raises
    ------
    FilmError
        A column is missing, a cell of the trend is no number, or two models scored the films.
    """
    films = sorted(films, key=lambda film: film.movie)
    models = {(film.model(model).key, film.model(model).sha256): film.movie for film in films}
    if len(models) > 1:
        raise FilmError(f"films {' and '.join([*models.values()][:2])} were scored by different models")
    notes: list[str] = []
    trained_on = [film.movie for film in films if film.model(model).is_trained_on]
    notes += _note("left out, as the model was trained on them", trained_on)
    clips: dict[str, list[Clip]] = {}
    for clip in judgements:
        clips.setdefault(clip.movie, []).append(clip)
    compared, ungrouped, without_x = [], [], []
    for film in films:
        if film.movie in trained_on or (facts is not None and film.movie not in facts):
            continue
        cells = _facts(film, (facts or {}).get(film.movie, {}))
        group = _cell(cells, by, film.movie) if by else ALL
        if not group:
            ungrouped.append(film.movie)
            continue
        x = _number(_cell(cells, trend, film.movie), trend, film.movie) if trend else np.nan
        if trend and np.isnan(x):
            without_x.append(film.movie)
        own = replace(judgements, clips=tuple(clips.get(film.movie, ())))
        sample, rate, notices = _judged(film, own, model)
        notes += [f"{film.movie}: {notice}" for notice in notices]
        compared.append(ComparedFilm(film, cells, group, x, sample, rate))
    notes += _note(f"without {by}, left out", ungrouped)
    notes += _note(f"without {trend}, not in the trend", without_x)
    compared.sort(key=lambda film: (film.facts["year"] or "9999", film.title, film.timeline.movie))
    groups, differences = _groups(compared)
    shown = films[0].model(model)
    positive = " or ".join(shown.positive) or shown.task_title
    slope = _trend([film for film in compared if not np.isnan(film.x)], trend) if trend else pd.DataFrame()
    return FilmComparison(
        tuple(compared), groups, differences, slope, tuple(notes), by or ALL, positive, shown.key
    )


def _note(what: str, names: Sequence[str]) -> list[str]:
    return [f"{len(names)} films {what}: {', '.join(names)}"] if names else []


def _facts(film: Timeline, cells: Mapping[str, str]) -> dict[str, str]:
    """Join what a table says of a film with its record; a year gives a decade."""
    known = {"title": film.record.title, "year": str(film.record.year or ""), **cells}
    if known["year"].isdecimal():
        known.setdefault("decade", f"{int(known['year']) // 10 * 10}s")
    return known


def _cell(cells: Mapping[str, str], column: str, movie: str) -> str:
    if column not in cells and column != "decade":
        raise FilmError(f"no column {column} of film {movie}: there are {', '.join(cells)}")
    return cells.get(column, "").strip()


def _number(text: str, column: str | None, movie: str) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        raise FilmError(f"film {movie}, column {column}: {text!r} is no number") from None


def _judged(
    film: Timeline, judgements: Manifest, key: str | None
) -> tuple[FilmSample, CorrectedRate | None, list[str]]:
    """Summarise a film and its blind judgements; with too few it counts as not judged."""
    if judgements.clips:
        cells, by_cell, notices = judged_cells(film, judgements, key)
        if len(by_cell) >= least_judged(cells):
            return sample_of(cells, *votes(by_cell)), correct_rate(film, judgements, key)[0], notices
        notices.append(
            f"{len(by_cell)} windows judged blindly, {least_judged(cells)} are needed: not counted"
        )
    else:
        cells, notices = cells_of(film, key), []
    return sample_of(cells, np.empty(0, np.int64), np.empty(0)), None, notices


def _groups(films: Sequence[ComparedFilm]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Estimate the groups, and the differences of every two."""
    by_name: dict[str, list[ComparedFilm]] = {}
    for film in films:
        by_name.setdefault(film.group, []).append(film)
    groups = {name: [film.sample for film in by_name[name]] for name in sorted(by_name)}
    enough = {name: samples for name, samples in groups.items() if _n_judged(samples) >= LEAST_FILMS}
    estimates = dict(zip(enough, estimate_groups([*enough.values()]) if enough else (), strict=True))
    rows = []
    for name, samples in groups.items():
        n_windows = sum(sample.n for sample in samples)
        estimate = estimates.get(name)
        rows.append(
            {
                "group": name,
                "n_films": len(samples),
                "n_judged": _n_judged(samples),
                "n_windows": n_windows,
                "expected": float(np.mean([sample.expected for sample in samples])),
                **_values(estimate),
                "worth": n_windows * estimate.worth if estimate else np.nan,
                "reason": "" if estimate else _too_few(by_name[name], LEAST_FILMS),
            }
        )
    differences = []
    for one, other in combinations([name for name in enough if not _alike(enough[name])], 2):
        both, sides = (
            [*enough[one], *enough[other]],
            np.repeat([1.0, 0.0], [len(enough[one]), len(enough[other])]),
        )
        differences.append({"group": one, "minus": other, **_values(estimate_slope(both, sides))})
    columns = ["group", "minus", "value", "low", "high"]
    return pd.DataFrame(rows), pd.DataFrame(differences, columns=columns)


def _trend(films: Sequence[ComparedFilm], column: str) -> pd.DataFrame:
    """Estimate the change by ten years, or by 1 of another column."""
    samples, x = [film.sample for film in films], np.array([film.x for film in films])
    n_values = len({film.x for film in films if film.sample.n})
    reason = _too_few(films, LEAST_OF_TREND) if _n_judged(samples) < LEAST_OF_TREND else ""
    if not reason and n_values < LEAST_VALUES:
        reason = f"the judged films have {n_values} values of {column}; {LEAST_VALUES} are needed"
    if not reason and _alike(samples):
        reason = "the judged films are all alike"
    estimate = None if reason else estimate_slope(samples, x / (10 if column == "year" else 1))
    counts = {"n_films": len(films), "n_judged": _n_judged(samples)}
    return pd.DataFrame([{"group": column, **counts, **_values(estimate), "reason": reason}])


def _n_judged(samples: Sequence[FilmSample]) -> int:
    return sum(sample.n > 0 for sample in samples)


def _alike(samples: Sequence[FilmSample]) -> bool:
    """Whether all judged films have the same share, so that nothing is known of how films differ."""
    return len({sample.judged for sample in samples if sample.n}) < 2


def _values(estimate: RateEstimate | None) -> dict[str, float]:
    names = ("value", "low", "high")
    return {name: np.nan if estimate is None else getattr(estimate, name) for name in names}


def _too_few(films: Sequence[ComparedFilm], least: int) -> str:
    """Say how many more films are needed, and draw them: a choice by hand would not stand for the others."""
    n_judged = _n_judged([film.sample for film in films])
    text = f"{n_judged} of {len(films)} films judged, {least} are needed"
    movies = [film.timeline.movie for film in films if not film.sample.n]
    movies.sort(key=lambda movie: float(np.random.default_rng([*movie.encode()]).random()))
    missing = least - n_judged
    if len(movies) < missing:
        return f"{text}: score more films"
    return f"{text}: judge {', '.join(movies[:missing])} (drawn at random)"


def comparison_report(compared: FilmComparison) -> Report:
    """Make a report: a table of groups, one of differences, the trend, and one of films by year."""
    counts: list[Column] = [("films", "n_films", str), ("judged", "n_judged", str)]
    rate: Column = ("share of time [95 %]", ("value", "low", "high"), interval)
    change: Column = ("difference [95 %]", ("value", "low", "high"), signed)
    groups = block(
        f"Groups by {compared.by}",
        [
            (compared.by, "group", str), *counts, ("windows", "n_windows", str), rate,
            ("worth windows", "worth", _whole), ("model alone", "expected", number),
            ("no rate", "reason", str),
        ],
        compared.groups.to_dict("records"),
        (compared.sentence, *NOTES),
    )  # fmt: skip
    blocks, parts = [groups], [compared.groups.assign(table="groups")]
    if len(compared.differences):
        n = len(compared.differences)
        columns: list[Column] = [(compared.by, "group", str), ("minus", "minus", str), change]
        notes = [f"{n} intervals: one in twenty such intervals does not hold the truth"] if n > 1 else []
        blocks.append(block("Differences", columns, compared.differences.to_dict("records"), notes))
        parts.append(compared.differences.assign(table="differences"))
    if len(compared.trend):
        columns = [("column", "group", str), *counts, change, ("no trend", "reason", str)]
        blocks.append(block(compared.trend_title, columns, compared.trend.to_dict("records")))
        parts.append(compared.trend.assign(table="trend"))
    films = [film.row for film in compared.films]
    columns = [
        ("year", "year", str), ("film", "title", str), (compared.by, "group", str),
        ("windows", "n_windows", str), rate, ("model alone", "expected", number),
    ]  # fmt: skip
    blocks.append(block("Films", columns, films, ["by year and title"]))
    parts.append(pd.DataFrame(films).assign(table="films"))
    return Report(
        name="film-compare",
        title=f"{len(compared.films)} films by {compared.by}",
        notes=compared.notes,
        blocks=tuple(blocks),
        data=pd.concat(parts, ignore_index=True),
        record={"by": compared.by, "positive": compared.positive, "model": compared.model},
    )


def _whole(value: float) -> str:
    return number(None if np.isnan(value) else value, 0)
