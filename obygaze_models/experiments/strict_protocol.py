"""Predictions of probe and baselines under the `strict` protocol: each film tested by the others."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from obygaze_models.evaluation import Predictions
from obygaze_models.experiments.evaluate import CURVE_COLUMNS, MODELS, curves_of, scores_of, seed_of
from obygaze_models.experiments.material import Material, Source
from obygaze_models.experiments.rows import gather, predicted
from obygaze_models.probes import MLPProbe, fit_many
from obygaze_models.probes.baselines import Baseline
from obygaze_models.protocol import TASKS, ProtocolError, Split, leave_one_movie_out, splits

TRAINED = ("en_s", "hn_s")
TESTED = ("en_s", "enhn_s")


def film_splits(material: Material, train: str) -> list[Split]:
    """Leave out one film at a time; training clips are those of a task, test clips of all three levels.

    Raises
    ------
    ProtocolError
        Fewer than three films, a leak, or a film without which there is one class to learn from.
    """
    table = leave_one_movie_out(material.clip_ids.tolist(), material.movies.tolist())
    cuts = list(splits(table, TASKS[train].holds(material.levels), TASKS["enhn_s"].holds(material.levels)))
    for cut in cuts:
        for label, kind in ((1, "positive"), (0, "negative")):
            if not (material.y[cut.train] == label).any():
                raise ProtocolError(
                    f"without movie {material.movies[cut.test[0]]} there is no {kind} clip of task "
                    f"{train} to "
                    f"learn from, under the label policy {material.policy}"
                )
    return cuts


@dataclass(frozen=True, eq=False)
class Classified:
    """Predictions of probe and baselines, and the inner curves that chose the probe's epochs.

    Attributes
    ----------
    predictions : Predictions
    inner_curves : DataFrame
        A row for each training task, film left out, inner fold and epoch.
    """

    predictions: Predictions
    inner_curves: pd.DataFrame


def classifiers(
    material: Material,
    source: Source,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Classified:
    """Train the probe and the baselines for both training tasks, and test them on both test tasks."""
    cuts = [(train, cut) for train in TRAINED for cut in film_splits(material, train)]
    films = [str(material.movies[cut.test[0]]) for _, cut in cuts]
    models = [{name: make(seed_of(seed, film)) for name, make in MODELS.items()} for film in films]
    probes = [model for fitted in models for model in fitted.values() if isinstance(model, MLPProbe)]
    fit_many(
        probes,
        source.X,
        material.y,
        [cut.train for _, cut in cuts],
        groups=material.movies,
        progress=progress,
    )
    blocks, curves = [], []
    for (train, cut), fitted in zip(cuts, models, strict=True):
        movies = material.movies
        for name, model in fitted.items():
            if isinstance(model, Baseline):
                model.fit(source.X[cut.train], material.y[cut.train], groups=movies[cut.train])
            else:
                curves.append(curves_of(model).assign(model=name, task=train, fold=cut.fold, seed=seed))
            for test in TESTED:
                rows = cut.test[TASKS[test].holds(material.levels[cut.test])]
                if rows.size:
                    blocks.append(
                        predicted(
                            material,
                            source,
                            rows,
                            model=name,
                            task=f"{train}>{test}",
                            fold=cut.fold,
                            seed=seed,
                            score=scores_of(model, source.X[rows], movies[rows]),
                            threshold=float(model.threshold_),
                        )
                    )
    inner_curves = pd.concat(curves, ignore_index=True)
    return Classified(gather(blocks), inner_curves[["model", "task", *CURVE_COLUMNS[1:]]])
