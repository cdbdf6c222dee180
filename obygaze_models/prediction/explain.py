"""Explain the decision about one clip, and show what would change it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.screen import probability, table
from obygaze_features.store import (
    LikelyClass,
    Store,
    classes_of,
    classifier_of,
    groups_of_classes,
    likely_classes,
)
from obygaze_features.templates import filled
from obygaze_models.concepts.heads import Contribution, Explanation
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.predictions import records
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.fusion import LinearFusion
from obygaze_models.persistence.card import Card
from obygaze_models.persistence.evidence import evidence_line
from obygaze_models.prediction.frames import OF_ATTENTION, frames_of, reads_frames
from obygaze_models.prediction.reading import find_clips
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import recognise

ENDS = (0.05, 0.95)
"""Quantiles of the training clips' values to which every concept is set in turn."""

MOST_ROWS = 40
"""Concepts in the table of a terminal; of more, those that contribute most."""

MOST_CONCEPTS = 4
"""Concepts whose frames a terminal shows; JSON has all."""

LEAST = 0.005
"""Contribution above which a concept is named among the reasons, where nothing says what it does to p."""

LEAST_CHANGE = 0.01
"""Change of the probability from which on a concept is named."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A logit and the decision from it; None if the model gives none, as of a clip out of distribution."""

    logit: float
    p: float | None
    p_low: float | None
    p_high: float | None
    called: bool | None


@dataclass(frozen=True, eq=False, slots=True)
class Explained:
    """The explanation of a clip's decision.

    Attributes
    ----------
    clip_id, movie : str
    start_s, end_s : float or None
    unlike : float or None
        Share of training clips nearer than this one.
    is_unlike, trained_on, no_skill : bool
        Whether the clip is out of distribution, whether its film was trained on, and whether the model may be
        no better than chance.
    evidence : str
        What films left out show of the model, in one line.
    threshold, threshold_p : float
        Lowest logit at which a clip is called positive, and its probability (None if not calibrated).
    decision : Decision
    parts : Explanation or None
        None if the clip is out of distribution.
    modalities : dict of str to float or None
        Of a model of several modalities what each contributes to the logit, and the ``base`` that they are
        added to; None for one that the clip lacks.
    concept_p, concept_thresholds : tuple of float
        The probability that each concept is in the clip (None of one that was found without labels), and that
        from which on it counts as seen (`Model.concept_thresholds`).
    seen : tuple of str
        The concepts that reach theirs.
    near_chance : tuple of str
        Concepts that films left out of training do not show to be found better than chance.
    changes : tuple of float
        Of the probability, what is due to each concept: less that with the concept at its usual value. None
        without calibration, or where the concept has no usual value.
    ends : tuple of (Decision, Decision)
        The decision with each concept at the 5th and at the 95th percentile of the training clips' values.
    set_to : dict of str to float
        The requested quantiles.
    changed : Decision or None
        The decision with all of them set.
    frames : tuple of dict
        For each frame of the clip its time_s and, where the model has them, weight, evidence, contribution,
        and each concept's value and p; empty if the store keeps no frames that the model can read.
    classes : dict of str to tuple of LikelyClass
        By classifier of the store, the classes that it finds more probable in the clip than in the clips of
        its film; empty if the store has no answers. The model does not read them.
    """

    clip_id: str
    movie: str
    start_s: float | None
    end_s: float | None
    unlike: float | None
    is_unlike: bool
    trained_on: bool
    no_skill: bool
    evidence: str
    threshold: float
    threshold_p: float | None
    decision: Decision
    parts: Explanation | None = None
    modalities: Mapping[str, float | None] = field(default_factory=dict)
    concept_p: tuple[float | None, ...] = ()
    concept_thresholds: tuple[float, ...] = ()
    seen: tuple[str, ...] = ()
    near_chance: tuple[str, ...] = ()
    changes: tuple[float | None, ...] = ()
    ends: tuple[tuple[Decision, Decision], ...] = ()
    set_to: Mapping[str, float] = field(default_factory=dict)
    changed: Decision | None = None
    frames: tuple[Mapping[str, float | None], ...] = ()
    classes: Mapping[str, tuple[LikelyClass, ...]] = field(default_factory=dict)


def explain(model: Model, stores: Sequence[Store], clip_id: str, set_to: Mapping[str, float]) -> Explained:
    """Explain the decision about one clip of some stores.

    Parameters
    ----------
    model : Model
        One that decides by concepts, weighs frames, or reads several modalities.
    stores : sequence of Store
    clip_id : str
    set_to : mapping of str to float
        Concepts and the quantiles (0 to 1) of the training clips' values to set them to.

    Raises
    ------
    ModelError
        The clip is unknown, or has no features of the kind that the model reads.
    ConceptError
        The model neither decides by concepts nor weighs frames, or a concept or quantile is invalid.
    """
    store, row = _holding(stores, clip_id)
    card = model.card
    readable = find_clips(card, stores, clip_id=clip_id)
    if not len(readable):
        raise ModelError(f"clip {clip_id} has no features ({next(iter(readable.excluded))})")
    (block,) = readable.blocks()
    X = block.X
    (movie,) = block.clips.movies
    fusion = model.estimator if isinstance(model.estimator, LinearFusion) else None
    if fusion is not None and set_to:
        raise ConceptError(f"--set: model {card.model} decides by no concepts")
    weighs = isinstance(model.estimator, AttentionPooling)
    parts = None if weighs or fusion is not None else model.explain(X)
    changed = _decide(model, model.intervene(X, set_to)) if set_to else None
    far = bool(model.is_out_of_distribution(X)[0])
    explained = Explained(
        clip_id,
        movie,
        start_s=_known(block.clips.start_s),
        end_s=_known(block.clips.end_s),
        unlike=_known(model.out_of_distribution_share(X)),
        is_unlike=far,
        trained_on=recognise(card, model.training, stores).knows(clip_id, movie),
        no_skill=card.no_skill,
        evidence=evidence_line(card.evidence),
        threshold=card.threshold,
        threshold_p=_decide(model, np.array([card.threshold])).p,
        decision=_decide(model, model.logits(X), known=not far),
        set_to=dict(set_to),
        frames=_frames(model, store, row),
        classes=_classes(store, row),
    )
    if far:
        return explained
    thresholds = model.concept_thresholds.tolist()
    concept_p = [None if np.isnan(p) else p for p in model.concept_probabilities(X)[0].tolist()]
    of_concepts = zip(model.concepts, concept_p, thresholds, strict=True)
    low, high = ([_decide(model, model.intervene(X, {name: end})) for name in model.concepts] for end in ENDS)
    return replace(
        explained,
        parts=parts,
        modalities={} if fusion is None else _by_modality(card, fusion, X),
        concept_p=tuple(concept_p),
        concept_thresholds=tuple(thresholds),
        seen=tuple(name for name, p, threshold in of_concepts if p is not None and p >= threshold),
        near_chance=_near_chance(card, model.concepts),
        changes=_changes(model, explained.decision, parts),
        ends=tuple(zip(low, high, strict=True)),
        changed=changed,
    )


def _by_modality(card: Card, fusion: LinearFusion, X: NDArray[Any]) -> dict[str, float | None]:
    """Decompose the score of one clip [1, D] by modality."""
    base, parts = fusion.contributions(X)
    values = {each["name"]: float(value) for each, value in zip(card.modalities, parts[0], strict=True)}
    known = {name: None if np.isnan(value) else value for name, value in values.items()}
    return {**known, "base": float(base[0])}


def _frames(model: Model, store: Store, row: int) -> tuple[dict[str, float | None], ...]:
    """Give what the model says of each frame of a clip, if the store keeps frames that it can read."""
    if not reads_frames(model, store):
        return ()
    table = frames_of(model, store, np.array([row])).drop(columns=["clip_id", "movie", "frame"])
    shown = table if isinstance(model.estimator, AttentionPooling) else table.drop(columns=list(OF_ATTENTION))
    return tuple(records(shown.astype(np.float64)))


def _classes(store: Store, row: int) -> dict[str, tuple[LikelyClass, ...]]:
    """Tell which classes the store's classifiers find more probable in a clip than in its film."""
    movies = np.array(store.table.movies)
    found = {}
    for name in groups_of_classes(store):
        group = store[name]
        of_film = np.flatnonzero((movies == movies[row]) & group.usable)
        if not group.usable[row]:
            continue
        p = group.pooled().astype(np.float64)
        likely = likely_classes(classes_of(group), p[row], p[of_film].mean(axis=0))
        if likely:
            found[classifier_of(group)] = tuple(likely)
    return found


def parse_settings(settings: Sequence[str]) -> dict[str, float]:
    """Parse settings of the form ``CONCEPT=QUANTILE``.

    Raises
    ------
    ConceptError
        A setting has another form, or a concept is set twice.
    """
    quantiles: dict[str, float] = {}
    for text in settings:
        name, equals, number = text.rpartition("=")
        try:
            quantile = float(number)
        except ValueError:
            quantile = np.nan
        if not equals or not name or not 0 <= quantile <= 1:
            raise ConceptError(
                f"--set {text}: expected CONCEPT=QUANTILE, "
                "a quantile of the training clips' values between 0 and 1"
            )
        if name in quantiles:
            raise ConceptError(f"--set {text}: {name} is set twice")
        quantiles[name] = quantile
    return quantiles


def _changes(model: Model, decision: Decision, parts: Explanation | None) -> tuple[float | None, ...]:
    """Compute what each concept does to the probability of a clip."""
    changes: list[float | None] = []
    for part in () if parts is None else parts.contributions:
        at_usual = _decide(model, np.array([decision.logit - part.contribution])).p
        known = part.usual is not None and decision.p is not None and at_usual is not None
        changes.append(decision.p - at_usual if known else None)  # type: ignore[operator]
    return tuple(changes)


def _near_chance(card: Card, concepts: Sequence[str]) -> tuple[str, ...]:
    """Name the concepts that films left out do not show to be found better than chance."""
    found = {str(row.get("task")): row for row in card.metrics if "movie_chance" in row}
    named = []
    for concept in concepts:
        row = found.get(f"concept:{concept}", {})
        low, chance = row.get("movie_low"), row.get("movie_chance")
        is_shown = low is not None and chance is not None and low > chance
        if row.get("movie_mean") is not None and not is_shown:
            named.append(concept)
    return tuple(named)


def _sides(card: Card) -> list[list[str]]:
    """Name the levels of "negative" and "positive": those of the calibration, else the task's."""
    sides = [list(side) for side in card.target["classes"]]
    if len(sides) == 2:
        clips = card.population["clips"] if card.population is not None else {}
        negative = [level for level in clips if level not in sides[1]]
        sides[0] = negative or sides[0]
    return sides


def _reasons(
    concepts: Sequence[tuple[Contribution, float | None, float | None]],
    near_chance: Collection[str],
) -> dict[str, list[tuple[str, Contribution, float | None]]]:
    """Part concepts, the strongest first, into those for the positive class and those against it.

    Each is said to be more or less than usual, where a usual value is known. What moves the probability by
    less than `LEAST_CHANGE` is left out.
    """
    reasons: dict[str, list[tuple[str, Contribution, float | None]]] = {"for it": [], "against it": []}
    for part, p, change in concepts:
        moved, least = (part.contribution, LEAST) if change is None else (change, LEAST_CHANGE)
        if abs(moved) >= least:
            name = f"{part.amount} {part.concept} than usual" if part.amount else part.concept
            if part.concept in near_chance:
                name += " [not shown to be found better than chance]"
            reasons["for it" if moved > 0 else "against it"].append((name, part, p))
    return reasons


def describe(explained: Explained, model: Model) -> str:
    """Describe the decision in words and tables."""
    contributions = () if explained.parts is None else explained.parts.contributions
    columns = (contributions, explained.concept_p, explained.concept_thresholds, explained.ends)
    concepts = list(zip(*columns, strict=True))
    strongest = sorted(concepts, key=lambda own: -abs(own[0].contribution))
    change_of = {part.concept: change for part, change in zip(contributions, explained.changes, strict=True)}
    said = [(part, p, change_of[part.concept]) for part, p, *_ in strongest]
    reasons = _reasons(said, explained.near_chance)
    rows = [
        (name, "absent" if value is None else f"{value:+.3f}" if value else "no weight")
        for name, value in explained.modalities.items()
    ]
    values = {
        "it": explained,
        "task": model.card.target["name"],
        "sides": _sides(model.card),
        "largest": isinstance(model.estimator, LinearFusion) and model.estimator.largest,
        "labelled": None not in explained.concept_p,
        "reasons": reasons,
        "modalities": table(rows, ["modality", "contribution"], right=[1]),
        "concepts": _concepts_table(concepts if len(concepts) <= MOST_ROWS else strongest[:MOST_ROWS]),
        "frames": _frames_table(explained, [part.concept for part, *_ in strongest[:MOST_CONCEPTS]]),
    }
    text = filled("obygaze_models.prediction", "explained.txt.jinja", values, filters={"p": probability})
    return text.removesuffix("\n")


def _frames_table(explained: Explained, concepts: Sequence[str]) -> str:
    """Lay out the frames in time: concepts, or attention's parts."""
    told = "value" if None in explained.concept_p else "p"
    columns = {f"{name}_{told}": f"{told} of\n{name}" for name in concepts}
    columns = columns or {"weight": "weight", "contribution": "contribution"}

    def cell(value: float | None, decimals: int) -> str:
        return "" if value is None else f"{value:.{decimals}f}"

    rows = [
        [cell(frame["time_s"], 2), *(cell(frame.get(name), 3) for name in columns)]
        for frame in explained.frames
    ]
    return table(rows, ["time s", *columns.values()], right=range(len(columns) + 1))


def _concepts_table(concepts: Sequence[tuple[Contribution, float | None, float, Sequence[Decision]]]) -> str:
    def cell(p: float | None) -> str:
        return "" if p is None else probability(p, "<")

    rows = [
        [
            part.concept,
            f"{part.value:.2f}",
            f"{part.percentile:.0f} %",
            cell(share),
            "" if share is None else probability(threshold),
            f"{part.contribution:+.3f}",
            *(cell(end.p) for end in ends),
        ]
        for part, share, threshold, ends in concepts
    ]
    names = ("concept", "value", "percentile", "p")
    return table(rows, [*names, "seen\nfrom", "contri-\nbution", "p at\n5 %", "p at\n95 %"])


def _holding(stores: Sequence[Store], clip_id: str) -> tuple[Store, int]:
    """Find the store that has a clip, and its row."""
    known: list[str] = []
    for store in stores:
        clip_ids = store.table.clip_ids
        if clip_id in clip_ids:
            return store, clip_ids.index(clip_id)
        known += clip_ids
    near = get_close_matches(clip_id, known, n=1)
    hint = f": did you mean {near[0]!r}?" if near else f" among their {len(known)}: see obygaze store inspect"
    raise ModelError(f"no clip {clip_id!r} in {', '.join(store.name for store in stores)}{hint}")


def _known(values: NDArray[np.float64]) -> float | None:
    """Give the number of one clip [1], which may be missing."""
    (value,) = values.tolist()
    return None if np.isnan(value) else float(value)


def _decide(model: Model, logits: Any, *, known: bool = True) -> Decision:
    """Make a decision of one logit [1]."""
    logit = float(logits[0])
    p: list[float | None] = [None] * 3
    if model.calibration is not None and known:
        every = (model.calibration.probability(logits), *model.calibration.band(logits))
        p = [float(each[0]) for each in every]
    called = bool(logit >= model.card.threshold) if known else None
    return Decision(logit, p[0], p[1], p[2], called)
