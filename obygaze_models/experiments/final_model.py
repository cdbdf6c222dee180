"""The model that an evaluation is of, trained on all movies and described by a card, to be saved."""

from collections.abc import Mapping
from typing import Any

from obygaze_features.store import Group
from obygaze_models.dataset import Dataset
from obygaze_models.experiments.evaluate import Run, models_with, seed_of
from obygaze_models.experiments.reach import distances
from obygaze_models.experiments.run_folder import document
from obygaze_models.persistence import Card
from obygaze_models.persistence.card import family
from obygaze_models.probes import MLPProbe
from obygaze_models.protocol import Task

MODEL = "mlp"


def train_final(data: Dataset, train: Task, run: Run, group: Group) -> tuple[MLPProbe, Card]:
    """Train the probe on the clips of a task in all movies, as every fold of the run was trained.

    Parameters
    ----------
    data : Dataset
        What was evaluated.
    train : Task
        What was trained on.
    run : Run
        The evaluation, whose out-of-fold metrics go on the card: no clip is left to test this model on.
    group : Group
        Where the features are from.
    """
    record: Mapping[str, Any] = run.record
    rows = train.holds(data.levels)
    # A fold's seed is of the film that it leaves out: none here.
    probe = models_with(record["imbalance"])[MODEL](seed_of(record["seed"], ""))
    if not isinstance(probe, MLPProbe):
        raise TypeError(f"{MODEL} is not a probe")
    probe.fit(data.X[rows], data.y[rows], groups=data.movies[rows])
    metrics: Any = document(run)["metrics"]
    card = Card(
        estimator=type(probe).__name__,
        parameters=probe.get_params(),
        threshold=probe.threshold_,
        n_epochs=probe.n_epochs_,
        backbone=data.backbone,
        features=data.features,
        pool=data.pool,
        n_features=data.X.shape[1],
        provenance=group.provenance,
        provenance_sha256=family(group.provenance),
        store=data.store,
        manifest_sha256=record["manifest_sha256"],
        label_policy=record["label_policy"],
        train_task=record["train_task"],
        test_task=record["test_task"],
        protocol=record["protocol"],
        seed=record["seed"],
        movies=tuple(sorted(set(data.movies[rows].tolist()))),
        n_clips=int(rows.sum()),
        n_positives=int(data.y[rows].sum()),
        metrics=tuple(row for row in metrics if row["model"] == MODEL),
        versions=record["versions"],
        reach=float(distances(probe, data.X[rows]).max()),
    )
    return probe, card
