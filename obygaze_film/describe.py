"""Describe models and annotator agreement for a film's record."""

from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from obygaze_film.record import CalibrationRecord, ConceptRecord, HumanRecord, ModelRecord, Rate
from obygaze_models.concepts import ConceptBottleneck
from obygaze_models.prediction import Model

MOBYGAZE = HumanRecord(
    corpus="MObyGaze (20 films, two annotators)",
    kappa=0.308,
    second_f1=0.401,
    segment_f1=0.172,
    boundary_f1=0.095,
    rank_correlation=0.433,
)
"""Agreement of MObyGaze's annotators 1 and 2; recomputed in tests/film/test_agreement.py."""


def describe_model(
    model: Model,
    key: str,
    sha256: str,
    *,
    is_trained_on: bool,
    flags: Mapping[str, float],
    rate: Rate,
) -> ModelRecord:
    """Describe a model that scored a film."""
    card = model.card
    sides = [list(side) for side in card.target["classes"]]
    calibration = None
    if model.calibration is not None:
        found = model.calibration
        calibration = CalibrationRecord(
            slope=found.slope,
            intercept=found.intercept,
            error=found.error,
            n_movies=len(card.movies),
            film_error=found.film_error,
            worst_film_error=found.worst_film_error,
        )
    threshold_p = None
    if model.calibration is not None:
        threshold_p = float(model.calibration.probability([card.threshold])[0])
    return ModelRecord(
        key=key,
        model=card.model,
        title=card.title,
        sha256=sha256,
        task=card.target["name"],
        task_title=card.target["title"],
        negative=sides[0] if sides else [],
        positive=sides[-1] if sides else [],
        codebook=card.codebook["name"],
        backbone=card.backbone,
        concepts=[_concept(model, name) for name in card.concepts],
        decides=model.decides,
        by_concepts=isinstance(model.estimator, ConceptBottleneck),
        threshold=card.threshold,
        threshold_p=threshold_p,
        calibration=calibration,
        clip_s=card.clip_s,
        n_movies=len(card.movies),
        n_clips=card.n_clips,
        metrics=[dict(row) for row in card.metrics],
        licence=card.licence,
        citation=card.citation,
        is_trained_on=is_trained_on,
        flags=dict(flags),
        rate=rate,
    )


def _concept(model: Model, name: str) -> ConceptRecord:
    """Describe a concept from the model's card."""
    row: Mapping[str, Any] = next(
        (row for row in model.card.metrics if row.get("task") == f"concept:{name}" and "movie_chance" in row),
        {},
    )
    return ConceptRecord(
        name=name,
        ap=row.get("movie_mean"),
        low=row.get("movie_low"),
        high=row.get("movie_high"),
        chance=row.get("movie_chance"),
    )


def human_agreement(codebooks: Collection[str]) -> HumanRecord | None:
    """Return the agreement of annotators of these codebooks, if it was measured."""
    return MOBYGAZE if set(codebooks) <= {"obygaze12", "mobygaze"} else None


def versions() -> dict[str, str]:
    """Return the versions of the libraries that affect the numbers."""
    return {name: version(name) for name in ("obygaze", "numpy", "scipy", "scikit-learn", "pandas")}
