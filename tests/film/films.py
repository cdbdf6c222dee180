"""Films that are planted second by second, models for them, and scored folders for whoever needs some."""

from pathlib import Path

import numpy as np
import pandas as pd

from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.cells import Cells
from obygaze_film.score import FilmFacts, score_film
from obygaze_film.timeline import Timeline
from tests.planted_models import GUN, LIGHT, D, Shelf

PLANTED = ((40.0, 72.0), (150.0, 190.0), (301.0, 330.0), (480.0, 520.0))
"""From second to second of a ten-minute film: a gun is seen there, which is violent."""

MODELS = ("pcbm_lr", "linear")
"""Models that are trained for the tests of films."""


def film_store(
    folder: Path,
    *movies: str,
    end_s=600.0,
    planted=PLANTED,
    window_s=8.0,
    shift=0.0,
    seed=1,
    failed=(),
    holes=(),
    damaged=(),
) -> Store:
    """Keep a store of films' windows of `window_s` seconds every 4 s, with a gun in the spans `planted`.

    Noise is independent between windows; a `shift` moves all of a film away from the training clips.
    The windows `failed` have no features. A file has no pictures in `holes`, from one second to another:
    windows within one fail, others are partial. A file that is cut off has such a hole at its end. The
    clips `damaged` are partial for another reason.
    """
    rng = np.random.default_rng(seed)
    movie_of, spans, rows, stretches = {}, {}, [], {}
    failed = [*failed]
    for movie in movies:
        starts = [*np.arange(0, end_s - window_s, 4.0), end_s - window_s]
        for number, start in enumerate(starts, 1):
            clip_id = f"{movie}-{number:04d}"
            end = start + window_s
            gun = sum(max(0.0, min(end, b) - max(start, a)) for a, b in planted) / window_s
            movie_of[clip_id], spans[clip_id] = movie, (float(start), float(end))
            inside = [(max(start, hole[0]), min(end, hole[1])) for hole in holes]
            inside = [(float(a), float(b)) for a, b in inside if a < b]
            if inside == [(start, end)]:
                failed.append(clip_id)
            elif inside:
                stretches[clip_id] = inside
            row = 0.7 * rng.normal(size=D) + 3 * gun * GUN + 1.35 * LIGHT + shift
            row[7] = 0.25
            rows.append(row.astype(np.float32))
    sealed = seal_arrays(
        folder / "-".join(movies),
        movie_of,
        {"descriptors": {"pooled": np.stack(rows)}},
        failed=dict.fromkeys(failed, "the file ends here"),
        partial=dict.fromkeys([*stretches, *damaged], "pictures are missing"),  # the words decide nothing
        without_pictures_s=stretches,
        spans=spans,
    )
    return open_store(sealed)


def under_another_name(trained: Shelf, movie: str, name: str, folder: Path) -> Store:
    """Keep a store of the clips of a training film, called otherwise; their features are the same bytes."""
    data = trained.data
    rows = [at for at, of_movie in enumerate(data.movies) if of_movie == movie]
    ids = [f"{name}-{number}" for number in range(len(rows))]
    spans = {clip_id: (4.0 * number, 4.0 * number + 4) for number, clip_id in enumerate(ids)}
    pooled = np.asarray(data.X)[rows].astype(np.float32)
    groups = {"descriptors": {"pooled": pooled}}
    return open_store(seal_arrays(folder / "copy", dict.fromkeys(ids, name), groups, spans=spans))


def shots_of(movie: str, end_s=600.0, seed=3) -> pd.DataFrame:
    """Plant shots of 2 to 9 seconds; the first is black, the last two are credits."""
    rng = np.random.default_rng(seed)
    edges = [0.0]
    while edges[-1] < end_s - 9:
        edges.append(round(edges[-1] + float(rng.uniform(2, 9)), 3))
    edges.append(end_s)
    flags = ["black", *[""] * (len(edges) - 4), "credits", "credits"]
    columns = {"movie": movie, "start_s": edges[:-1], "end_s": edges[1:], "detector": "own", "flags": flags}
    return pd.DataFrame(columns)


def planted_cells(*, content_s, p=0.5) -> Cells:
    """Plant a film's cells: the seconds of content of each, all scored, and the model's probabilities.

    `p` is one number for all cells, or one number a cell. Starts and ends are 0: no estimate reads them.
    """
    content_s = np.asarray(content_s, dtype=float)
    p = np.broadcast_to(np.asarray(p, dtype=float), content_s.shape).copy()
    return Cells(spans=np.zeros((len(content_s), 2)), content_s=content_s, counted_s=content_s, p=p)


def scored_film(
    folder: Path, trained: Shelf, movie="tt0000001", *, models=("pcbm_lr",), with_shots=True, **planted
) -> tuple[Path, Timeline]:
    """Score a planted film into `folder/MOVIE`; a `shift` moves it away from the training films."""
    store = film_store(folder, movie, **planted)
    shots = shots_of(movie, planted.get("end_s", 600.0)) if with_shots else None
    facts = FilmFacts("A Planted Film", 1950)
    timeline = score_film(store, [trained.paths[name] for name in models], shots=shots, facts=facts)
    timeline.write(folder / movie)
    return folder / movie, timeline
