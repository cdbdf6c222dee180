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
from obygaze_models.models.scaling import MAX_LIMIT
from obygaze_models.persistence.card import JOINT, Card, CardTarget, Sources
from obygaze_models.persistence.model_file import write_model


@checked
def save_joint(joint: Joint, planes: Planes, path: Path | str, *, concept: str = "") -> None:
    """Write a joint linear model, or the CAV (concept activation vector) of a concept, as a model file.

    The file has no calibration and no distances of training clips: both need scores of single clips, and a
    joint model is fitted to sums over films (`Sums`).

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
    parts = _cav_parts(planes, concept) if concept else _linear_parts(planes, about)

    # Least squares of a label 1 or 0 give scores near 1 or 0, with the threshold .5. A CAV's scores are
    # distances to its hyperplane, and the scores of a logistic regression, fitted to derivatives, are logits.
    is_least_squares = not concept and not about.holds_derivatives

    # A joint model is of several manifests, is not calibrated, and draws no random numbers.
    card = Card(
        model=parts.kind,
        title=parts.title,
        kind=parts.kind,
        estimator=parts.estimator,
        parameters=parts.parameters,
        threshold=0.5 if is_least_squares else 0.0,
        target=parts.target,
        concepts=(),
        manifest_sha256="",
        protocol=JOINT,
        seed=0,
        movies=tuple(about.movies),
        n_clips=int(joint.sums.counts.sum()),
        n_positives=_count_positives(joint, concept),
        calibration={},
        metrics=_metrics(joint, planes, concept),
        versions=software(),
        citation="",
        **_sources(about),
    )
    write_model(local_path(path), card, parts.arrays, training.to_arrays())


def _count_positives(joint: Joint, concept: str) -> int:
    """Count the positive clips, or those with a concept if one is named, from the sums over films.

    The number is 0 if it is unknown: sums of derivatives do not tell it.
    """
    if joint.about.holds_derivatives:
        return 0
    # The mean of a column of 0 and 1 is a share of the film's clips.
    share_of_films = joint.sums.means[:, joint.about.column(concept)]
    return round(float(joint.sums.counts @ share_of_films))


def _metrics(joint: Joint, planes: Planes, concept: str) -> tuple[dict[str, Any], ...]:
    """Return the squared error on films left out, as the only metric of the card.

    There is none if the penalty was given, since then no film was left out. `concept` is the concept whose
    CAV the model is, or "".
    """
    loss = float(planes.losses[0])
    if np.isnan(loss):
        return ()

    about = joint.about
    metric = {
        "task": concept or about.target["name"],
        "metric": "squared_error",
        "model": "joint",
        "pooled": loss,
        "n_movies": len(about.movies),
        "n_clips": int(joint.sums.counts.sum()),
    }
    return (metric,)


def _sources(about: About) -> dict[str, Any]:
    """Return the fields of a joint model's card that say which features the model reads.

    They are those of the labs' sums, but for the store: no store has the films of all labs. In place of a
    store's fingerprint stands the SHA-256 of the films' names.
    """
    sources = {name: getattr(about, name) for name in Sources.__struct_fields__}
    sources["store"] = hashlib.sha256("".join(about.movies).encode()).hexdigest()
    return sources


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


def _inverse_strength(penalty: float) -> float:
    """Return the inverse strength C = 1 / penalty; 1e12 for a penalty of 0, as a model file's C is finite."""
    return float(1 / max(penalty, 1e-12))


def _linear_parts(planes: Planes, about: About) -> _CardParts:
    """Describe a linear model that labs fitted together, as a model file stores a linear model.

    A model file stores it as a scikit-learn pipeline of two steps: a scaler (mean, scale, limit) and a linear
    classifier (weights, intercept, C).

    Parameters
    ----------
    planes
        The fitted model, of the one target that the labs agreed on: its weights are the first row.
    about
        What the labs agreed on; `target` there is the level or concept.
    """
    target = about.target
    concept = ""
    if target["kind"] == "concept":
        concept = target["name"].removeprefix("concept:")  # the target's name is "concept:NAME"

    return _CardParts(
        kind="linear",
        title="Linear model, joint",
        estimator="Pipeline",
        target=CardTarget(**target, concept=concept),
        # The hyperplane is of features that were not clipped at a number of deviations: the largest limit
        # clips none.
        parameters={"limit": MAX_LIMIT, "C": _inverse_strength(planes.penalties[0])},
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
    ||w|| by which weights and intercept were divided. Its other fields are those of a `LinearCAV`.
    """
    weights = planes.weights[0]
    length = float(np.linalg.norm(weights))
    if length == 0:
        length = 1.0  # weights that are all 0 stay 0
    distance_of_origin = planes.intercepts[0] / length

    target = CardTarget(
        name=f"concept:{concept}",
        title=f"{concept}, present or not",
        kind="concept",
        classes=[],
        concept=concept,
    )
    # The features were not clipped at a number of deviations: the largest limit clips none.
    cav = LinearCAV("ridge", C=_inverse_strength(planes.penalties[0]), clip=MAX_LIMIT)
    return _CardParts(
        kind="cav",
        title="CAV, joint",
        estimator="LinearCAV",
        target=target,
        parameters=cav.get_params(),
        arrays={
            "direction": weights / length,
            "plane": np.array([distance_of_origin, length]),
            "feature_mean": planes.mean,
            "feature_scale": planes.scale,
        },
    )
