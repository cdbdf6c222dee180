"""Films that are planted second by second, models for them, and scored folders for whoever needs some."""

from pathlib import Path

import numpy as np
import pandas as pd

from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.cells import Cells
from obygaze_film.score import FilmFacts, score_film
from obygaze_film.timeline import Timeline
from tests.planted_models import GUN, LIGHT, D, TrainedModels

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
    """Plant a store of films: windows of `window_s` seconds that begin every 4 s, and one at the end.

    Parameters
    ----------
    folder, movies
        Where the store is made, and the films in it.
    end_s
        Length of each film.
    planted
        From second to second, where a gun is seen.
    window_s
        Length of each window.
    shift
        How far all features of a film are from those of the training clips.
    seed
        Of the noise, which is independent between windows.
    failed
        Ids of windows that have no features, like "tt1-0001".
    holes
        From second to second, where the file has no pictures. A window that is all in a hole fails, and one
        that is in part in it is partial. A file that is cut off has a hole at its end.
    damaged
        Ids of windows that are partial for another reason.
    """
    rng = np.random.default_rng(seed)
    starts = [*np.arange(0, end_s - window_s, 4.0), end_s - window_s]
    movie_of = {}
    spans = {}
    vectors = []
    for movie in movies:
        for number, start in enumerate(starts, 1):
            clip_id = f"{movie}-{number:04d}"
            end = start + window_s
            movie_of[clip_id] = movie
            spans[clip_id] = (float(start), float(end))
            gun_s = sum(stop - begin for begin, stop in _overlaps(start, end, planted))
            vectors.append(_planted_vector(rng, gun_s / window_s, shift))

    failed = list(failed)
    without_pictures = {}
    for clip_id, (start, end) in spans.items():
        parts_in_holes = _overlaps(start, end, holes)
        if parts_in_holes == [(start, end)]:
            failed.append(clip_id)
        elif parts_in_holes:
            without_pictures[clip_id] = parts_in_holes

    sealed = seal_arrays(
        folder / "-".join(movies),
        movie_of,
        {"descriptors": {"pooled": np.stack(vectors)}},
        failed=dict.fromkeys(failed, "the file ends here"),
        # The words decide nothing.
        partial=dict.fromkeys([*without_pictures, *damaged], "pictures are missing"),
        without_pictures_s=without_pictures,
        spans=spans,
    )
    return open_store(sealed)


def _overlaps(start, end, spans):
    """Return the parts of some spans that lie between two times."""
    parts = [(float(max(start, span_start)), float(min(end, span_end))) for span_start, span_end in spans]
    return [(part_start, part_end) for part_start, part_end in parts if part_start < part_end]


def _planted_vector(rng, gun_share, shift):
    """Plant a window's features as those of the training clips are planted (`planted_models.corpus`).

    A gun that is there all the time moves its feature by 3. Light is that of an average clip, 3 * .45.
    """
    vector = 0.7 * rng.normal(size=D) + 3 * gun_share * GUN + 1.35 * LIGHT + shift
    vector[7] = 0.25  # a feature that does not vary
    return vector.astype(np.float32)


def under_another_name(trained_models: TrainedModels, movie: str, name: str, folder: Path) -> Store:
    """Keep the clips of a training film as those of a film NAME, with the same bytes of features."""
    data = trained_models.data
    is_of_movie = np.asarray(data.movies) == movie
    vectors = np.asarray(data.X)[is_of_movie].astype(np.float32)
    clip_ids = [f"{name}-{number}" for number in range(len(vectors))]
    spans = {clip_id: (4.0 * number, 4.0 * number + 4) for number, clip_id in enumerate(clip_ids)}
    path = seal_arrays(
        folder / "copy", dict.fromkeys(clip_ids, name), {"descriptors": {"pooled": vectors}}, spans=spans
    )
    return open_store(path)


def shots_of(movie: str, end_s=600.0, seed=3) -> pd.DataFrame:
    """Plant shots of 2 to 9 seconds; the first is black, the last two are credits."""
    shortest_s, longest_s = 2, 9
    rng = np.random.default_rng(seed)
    edges = [0.0]
    while end_s - edges[-1] > longest_s:
        length_s = float(rng.uniform(shortest_s, longest_s))
        edges.append(round(edges[-1] + length_s, 3))
    edges.append(end_s)
    n_shots = len(edges) - 1
    flags = ["black", *[""] * (n_shots - 3), "credits", "credits"]
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
    folder: Path,
    trained_models: TrainedModels,
    movie="tt0000001",
    *,
    models=("pcbm_lr",),
    with_shots=True,
    **planted,
) -> tuple[Path, Timeline]:
    """Score a planted film into `folder/MOVIE`; a `shift` moves it away from the training films."""
    store = film_store(folder, movie, **planted)
    shots = shots_of(movie, planted.get("end_s", 600.0)) if with_shots else None
    facts = FilmFacts("A Planted Film", year=1950)
    timeline = score_film(store, [trained_models.paths[name] for name in models], shots=shots, facts=facts)
    timeline.write(folder / movie)
    return folder / movie, timeline
