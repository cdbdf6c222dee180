"""Keep joint models as model files, which `obygaze predict` applies as any other."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.io import local_path
from obygaze_models.concepts.bank import LinearCAV
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.run import software
from obygaze_models.joint.fits import Joint, Planes
from obygaze_models.models.scaling import MOST
from obygaze_models.persistence.card import JOINT, Card, CardTarget, Sources
from obygaze_models.persistence.model_file import write_model


@checked
def save_joint(joint: Joint, planes: Planes, path: Path | str, *, concept: str = "") -> None:
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
    about, counts = joint.about, joint.sums.counts
    weights, intercept, loss = planes.weights[0], planes.intercepts, float(planes.losses[0])
    C, n_clips = float(1 / max(planes.penalties[0], 1e-12)), int(counts.sum())
    asked = about.target["name"].removeprefix("concept:") if about.target["kind"] == "concept" else ""
    model, title, estimator = "linear", "Linear model, joint", "Pipeline"
    target = CardTarget(**about.target, concept=asked)
    parameters: dict[str, Any] = {"limit": MOST, "C": C}
    arrays = {"mean": planes.mean, "scale": planes.scale, "weights": weights, "intercept": intercept}
    if concept:
        model, title, estimator = "cav", "CAV, joint", "LinearCAV"
        name, words = f"concept:{concept}", f"{concept}, present or not"
        target = CardTarget(name=name, title=words, kind="concept", classes=[], concept=concept)
        parameters = LinearCAV("ridge", C=C, clip=MOST).get_params()
        length = float(np.linalg.norm(weights)) or 1.0
        arrays = {"direction": weights / length, "plane": np.array([intercept[0] / length, length])}
        arrays |= {"feature_mean": planes.mean, "feature_scale": planes.scale}
    losses = about.at == "losses"
    measured = {
        "task": concept or about.target["name"],
        "metric": "squared_error",
        "model": "joint",
        "pooled": loss,
        "n_movies": len(about.movies),
        "n_clips": n_clips,
    }
    store = hashlib.sha256("".join(about.movies).encode()).hexdigest()
    card = Card(
        model=model,
        title=title,
        kind=model,
        estimator=estimator,
        parameters=parameters,
        threshold=0.0 if concept or losses else 0.5,
        target=target,
        concepts=(),
        manifest_sha256="",
        protocol=JOINT,
        seed=0,
        movies=tuple(about.movies),
        n_clips=n_clips,
        n_positives=0 if losses else round(float(counts @ joint.sums.means[:, about.column(concept)])),
        calibration={},
        metrics=() if np.isnan(loss) else (measured,),
        versions=software(),
        citation="",
        **{name: getattr(about, name) for name in Sources.__struct_fields__} | {"store": store},
    )
    training = joint.sums.training
    if training is None:
        raise ModelError("a model of sums without digests of their clips' rows can't be kept")
    write_model(local_path(path), card, arrays, training.to_arrays())
