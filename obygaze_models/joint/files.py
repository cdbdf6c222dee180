"""Keep joint models as model files, which `obygaze predict` applies as any other."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.io import local_path
from obygaze_models.concepts.bank import LinearCAV
from obygaze_models.joint.fits import Joint, Planes
from obygaze_models.models.linear import MOST, ClippedScaler, linear_probe
from obygaze_models.persistence.card import Card, CardTarget
from obygaze_models.persistence.estimators import fill_linear
from obygaze_models.persistence.model_file import to_state, write_model

PROTOCOL = "joint: fitted to sums over films of several labs; penalties chosen by leaving one film out"


def save_joint(
    joint: Joint, planes: Planes, path: Path | str, *, concept: str = "", citation: str = ""
) -> None:
    """Write a joint linear model, or the CAV of a concept, as a model file.

    It has no probabilities and does not say how unlike a clip is: both need scores of single clips.

    Parameters
    ----------
    planes : Planes
        Of one target, that of `joint` or the concept.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> joint = om.join([om.gram(data, "hn_s", least=5)])
    >>> om.save_joint(joint, joint.cav("Body"), "body.model", concept="Body")
    >>> om.load_model("body.model").card.title
    'CAV, joint'
    """
    about = joint.about
    place = about.n_features + (1 + about.concepts.index(concept) if concept else 0)
    counts = joint.sums.counts
    n_positives = 0 if about.at == "losses" else round(float(counts @ joint.sums.means[:, place]))
    estimator = _cav(planes) if concept else _linear(planes)
    kept = to_state(estimator)
    asked = about.target["name"].removeprefix("concept:") if about.target["kind"] == "concept" else ""
    target = CardTarget(**about.target, concept=asked)
    if concept:
        title = f"{concept}, present or not"
        target = CardTarget(
            name=f"concept:{concept}", title=title, kind="concept", classes=[], concept=concept
        )
    card = Card(
        model="cav" if concept else "linear",
        title="CAV, joint" if concept else "Linear model, joint",
        kind=kept.kind,
        estimator=type(estimator).__name__,
        parameters=dict(kept.parameters),
        threshold=0.0 if concept or about.at == "losses" else 0.5,
        target=target,
        concepts=(),
        backbone=about.backbone,
        features=about.features,
        pool=about.pool,
        n_features=about.n_features,
        provenance=dict(about.provenance),
        provenance_sha256=about.provenance_sha256,
        store=hashlib.sha256("".join(about.movies).encode()).hexdigest(),
        codebook=about.codebook,
        manifest_sha256="",
        label_policy=about.label_policy,
        protocol=PROTOCOL,
        seed=0,
        movies=tuple(about.movies),
        n_clips=int(counts.sum()),
        n_positives=n_positives,
        calibration={},
        metrics=_metrics(planes, concept or about.target["name"], joint),
        versions={
            "python": platform.python_version(),
            **{name: version(name) for name in ("obygaze", "numpy", "scikit-learn")},
        },
        licence=about.licence,
        citation=citation,
    )
    write_model(local_path(path), card, kept.arrays, {})


def _metrics(planes: Planes, task: str, joint: Joint) -> tuple[dict[str, Any], ...]:
    """Record the squared error on films left out, beside that of knowing the share of positive clips."""
    if np.isnan(planes.losses[0]):
        return ()
    return (
        {
            "task": task,
            "metric": "squared_error",
            "model": "joint",
            "pooled": float(planes.losses[0]),
            "n_movies": len(joint.about.movies),
            "n_clips": int(joint.sums.counts.sum()),
        },
    )


def _scaler(mean: NDArray[np.float64], scale: NDArray[np.float64]) -> ClippedScaler:
    """Make a scaler that cuts nothing off."""
    scaler = ClippedScaler(MOST)
    scaler.mean_, scaler.scale_, scaler.n_features_in_ = mean, scale, len(mean)
    return scaler


def _linear(planes: Planes) -> Any:
    """Make the zoo's linear probe of a hyperplane."""
    pipeline = linear_probe(C=float(1 / max(planes.penalties[0], 1e-12)))
    pipeline.steps[0] = (pipeline.steps[0][0], _scaler(planes.mean, planes.scale))
    fill_linear(pipeline[-1], planes.weights[0], planes.intercepts)
    pipeline[-1].n_features_in_ = len(planes.mean)
    return pipeline


def _cav(planes: Planes) -> LinearCAV:
    cav = LinearCAV("ridge", C=float(1 / max(planes.penalties[0], 1e-12)), clip=MOST)
    length = float(np.linalg.norm(planes.weights[0])) or 1.0
    cav.scaler_, cav.n_features_in_ = _scaler(planes.mean, planes.scale), len(planes.mean)
    cav.classes_, cav.threshold_ = np.array([0, 1]), 0.0
    cav.direction_ = planes.weights[0] / length
    cav.offset_, cav.norm_ = float(planes.intercepts[0]) / length, length
    return cav
