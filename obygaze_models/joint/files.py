"""Save joint models as model files, which `obygaze predict` applies like any other."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.io import local_path
from obygaze_models.concepts.linear_cav import LinearCAV
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.run import software
from obygaze_models.joint.fits import Joint, Planes
from obygaze_models.joint.sums import About
from obygaze_models.models.scaling import MOST_LIMIT
from obygaze_models.persistence.card import JOINT, Card, CardTarget, Sources
from obygaze_models.persistence.model_file import write_model


@checked
def save_joint(joint: Joint, planes: Planes, path: Path | str, *, concept: str = "") -> None:
    """Write a joint linear model, or the CAV of a concept, as a model file.

    The file has no calibration and no distances of training clips: both need scores of single clips.

    Parameters
    ----------
    joint : Joint
        The sums that the model was fitted to.
    planes : Planes
        The model: one hyperplane, for the target of `joint` or for the concept.
    path : Path or str
    concept : str
        The concept whose CAV it is; "" for a linear model of the target.

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
    training = joint.sums.training
    if training is None:
        raise ModelError("a model of sums without digests of their clips' rows can't be kept")
    about = joint.about
    counts = joint.sums.counts
    n_clips = int(counts.sum())
    holds_derivatives = about.holds_derivatives
    parts = _cav_parts(planes, concept) if concept else _linear_parts(planes, about)
    loss = float(planes.losses[0])
    metrics: tuple[dict[str, Any], ...] = ()
    # The loss is NaN if the penalty was given: then no film was left out to measure one.
    if not np.isnan(loss):
        metric = {
            "task": concept or about.target["name"],
            "metric": "squared_error",
            "model": "joint",
            "pooled": loss,
            "n_movies": len(about.movies),
            "n_clips": n_clips,
        }
        metrics = (metric,)
    # Gradients and curvatures do not tell how many clips are positive: the card then says 0.
    n_positives = 0
    if not holds_derivatives:
        share_in_films = joint.sums.means[:, about.column(concept)]
        n_positives = round(float(counts @ share_in_films))
    sources = {name: getattr(about, name) for name in Sources.__struct_fields__}
    # There is no store with all films, so a digest of their names stands for its fingerprint.
    sources["store"] = hashlib.sha256("".join(about.movies).encode()).hexdigest()
    card = Card(
        model=parts.kind,
        title=parts.title,
        kind=parts.kind,
        estimator=parts.estimator,
        parameters=parts.parameters,
        # Scores of least squares are near 1 or 0; the other scores are logits or distances.
        threshold=0.0 if concept or holds_derivatives else 0.5,
        target=parts.target,
        concepts=(),
        manifest_sha256="",
        protocol=JOINT,
        seed=0,
        movies=tuple(about.movies),
        n_clips=n_clips,
        n_positives=n_positives,
        calibration={},
        metrics=metrics,
        versions=software(),
        citation="",
        **sources,
    )
    write_model(local_path(path), card, parts.arrays, training.to_arrays())


class _CardParts(NamedTuple):
    """The fields of a card, and the arrays of a model file, in which a linear model and a CAV differ.

    Attributes
    ----------
    kind, title, estimator, target, parameters
        Fields of the card.
    arrays : dict
        Name of an array in the file -> the array.
    """

    kind: str
    title: str
    estimator: str
    target: CardTarget
    parameters: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def _inverse_strength(planes: Planes) -> float:
    """Return the inverse strength C = 1 / penalty of the first hyperplane.

    A model file needs a finite C: it is 1e12 for a penalty of 0.
    """
    return float(1 / max(planes.penalties[0], 1e-12))


def _linear_parts(planes: Planes, about: About) -> _CardParts:
    """Describe a hyperplane as a linear model of the sums' target, as model files store such models.

    A model file stores a linear model as a scikit-learn pipeline of two steps: a scaler (mean, scale, limit)
    and a linear classifier (weights, intercept, C).
    """
    target = about.target
    concept = ""
    if target["kind"] == "concept":
        # The target is then called "concept:NAME".
        concept = target["name"].removeprefix("concept:")
    return _CardParts(
        kind="linear",
        title="Linear model, joint",
        estimator="Pipeline",
        target=CardTarget(**target, concept=concept),
        # The hyperplane is of features that were not clipped: the largest limit clips none.
        parameters={"limit": MOST_LIMIT, "C": _inverse_strength(planes)},
        arrays={
            "mean": planes.mean,
            "scale": planes.scale,
            "weights": planes.weights[0],
            "intercept": planes.intercepts,
        },
    )


def _cav_parts(planes: Planes, concept: str) -> _CardParts:
    """Describe a hyperplane as the CAV of a concept, as model files store CAVs.

    A model file stores a unit direction, and in ``plane`` the signed distance of the origin and the length
    ||w|| by which weights and intercept were divided.
    """
    weights = planes.weights[0]
    # Weights that are all 0 are divided by 1.
    length = float(np.linalg.norm(weights)) or 1.0
    return _CardParts(
        kind="cav",
        title="CAV, joint",
        estimator="LinearCAV",
        target=CardTarget(
            name=f"concept:{concept}",
            title=f"{concept}, present or not",
            kind="concept",
            classes=[],
            concept=concept,
        ),
        parameters=LinearCAV("ridge", C=_inverse_strength(planes), clip=MOST_LIMIT).get_params(),
        arrays={
            "direction": weights / length,
            "plane": np.array([planes.intercepts[0] / length, length]),
            "feature_mean": planes.mean,
            "feature_scale": planes.scale,
        },
    )
