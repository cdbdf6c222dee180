"""Explain the decision about one clip, and show what would change it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.screen import probability, table
from obygaze_features.store import Store
from obygaze_models.concepts.heads import Explanation
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.predictions import records
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.fusion import LinearFusion
from obygaze_models.persistence.card import Card
from obygaze_models.prediction.predict import OF_ATTENTION, frames_of, reads_frames
from obygaze_models.prediction.reading import read_clips
from obygaze_models.prediction.saved_model import Model

ENDS = (0.05, 0.95)
"""Quantiles of the training clips' values to which every concept is set in turn."""

MOST_ROWS = 40
"""Concepts in the table of a terminal; of more, those that contribute most."""

MOST_CONCEPTS = 4
"""Concepts whose frames a terminal shows; JSON has all."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A logit and the decision from it; None if the model gives none."""

    logit: float
    p: float | None
    p_low: float | None
    p_high: float | None
    called: bool


@dataclass(frozen=True, eq=False, slots=True)
class Explained:
    """The explanation of a clip's decision.

    Attributes
    ----------
    clip_id, movie : str
    start_s, end_s : float or None
    unlike : float or None
        Share of training clips nearer than this one.
    is_unlike, trained_on : bool
        Whether the clip is out of distribution, and whether its film was trained on.
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
    ends : tuple of (Decision, Decision)
        The decision with each concept at the 5th and at the 95th percentile of the training clips' values.
    set_to : dict of str to float
        The requested quantiles.
    changed : Decision or None
        The decision with all of them set.
    frames : tuple of dict
        For each frame of the clip its time_s and, where the model has them, weight, evidence, contribution,
        and each concept's value and p; empty if the store keeps no frames that the model can read.
    """

    clip_id: str
    movie: str
    start_s: float | None
    end_s: float | None
    unlike: float | None
    is_unlike: bool
    trained_on: bool
    threshold: float
    threshold_p: float | None
    decision: Decision
    parts: Explanation | None = None
    modalities: Mapping[str, float | None] = field(default_factory=dict)
    concept_p: tuple[float | None, ...] = ()
    concept_thresholds: tuple[float, ...] = ()
    seen: tuple[str, ...] = ()
    ends: tuple[tuple[Decision, Decision], ...] = ()
    set_to: Mapping[str, float] = field(default_factory=dict)
    changed: Decision | None = None
    frames: tuple[Mapping[str, float | None], ...] = ()


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
    excluded: dict[str, list[str]] = {}
    read = list(read_clips(model.card, stores, excluded, lambda clip: clip.clip_id == clip_id))
    if not read:
        raise ModelError(f"clip {clip_id} has no features ({next(iter(excluded))})")
    ((clip,), X), card = read[0], model.card
    fusion = model.estimator if isinstance(model.estimator, LinearFusion) else None
    if fusion is not None and set_to:
        raise ConceptError(f"--set: model {card.model} decides by no concepts")
    weighs = isinstance(model.estimator, AttentionPooling)
    parts = None if weighs or fusion is not None else model.explain(X)
    changed = _decide(model, model.intervene(X, set_to)) if set_to else None
    far, share = bool(model.is_out_of_distribution(X)[0]), float(model.out_of_distribution_share(X)[0])
    explained = Explained(
        *(clip_id, clip.movie, clip.start_s, clip.end_s),
        unlike=None if np.isnan(share) else share,
        is_unlike=far,
        trained_on=clip.movie in card.movies,
        threshold=card.threshold,
        threshold_p=_decide(model, np.array([card.threshold])).p,
        decision=_decide(model, model.logits(X), known=not far),
        set_to=dict(set_to),
        frames=_frames(model, store, row),
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


def lines(explained: Explained, model: Model) -> list[str]:
    """Describe the decision in words and a table."""
    card, decision = model.card, explained.decision
    untimed = None in (explained.start_s, explained.end_s)
    span = "" if untimed else f", {explained.start_s:g} to {explained.end_s:g} s"
    text = [f"clip {explained.clip_id} of film {explained.movie}{span}"]
    if explained.trained_on:
        text.append("The model was trained on clips of this film: what it says here is no prediction.")
    if explained.is_unlike:
        share = explained.unlike
        nearer = "" if share is None else f" ({share:.1%} of the training clips lie nearer)"
        text.append(
            f"The clip is unlike any that the model was trained on{nearer}: no probability and no "
            f"contributions are given{', and --set is not answered' if explained.set_to else ''}. "
            f"Its logit would be {decision.logit:.2f}."
        )
        return text
    text += [f"{card.target['name']}: {_called(decision, card)}", *_on_both_scales(explained)]
    if explained.modalities:
        largest = isinstance(model.estimator, LinearFusion) and model.estimator.largest
        rule = "The largest and the base add up" if largest else "They add up"
        rule += " to the logit. Above 0: for the positive class, more than the mean training clip is."
        rows = [
            (name, "absent" if value is None else f"{value:+.3f}" if value else "no weight")
            for name, value in explained.modalities.items()
        ]
        return [*text, "", table(rows, ["modality", "contribution"], right=[1]), "", rule]
    if explained.parts is None:
        return [*text, "", _frames_table(explained)]
    text += _reasons(explained, explained.parts)
    text += [
        f"  {step.concept} {step.value:.2f} is {'above' if step.above else 'at most'} {step.threshold:.2f} "
        f"({step.n_train} training clips here, {step.share_positive:.0%} positive)"
        for step in explained.parts.path
    ]
    added = f"The contributions and the base ({explained.parts.base:+.3f}) add up to the logit."
    if decision.p is not None:
        added += " The last columns: the probability if that concept alone were at the 5th, or the 95th "
        added += "percentile of the training clips."
    text += ["", _concepts_table(explained, explained.parts), "", added]
    if explained.frames:
        text += ["", _frames_table(explained)]
    if explained.changed is not None:  # last: it is what was asked, and stands by the prompt
        wanted = ", ".join(f"{name} at quantile {value:g}" for name, value in explained.set_to.items())
        text += ["", f"With {wanted}: {_called(explained.changed, card)}"]
        if decision.p is not None and explained.changed.p is not None:
            text.append(f"  probability  {probability(decision.p)} -> {_with_band(explained.changed)}")
        text.append(f"  logit        {decision.logit:.3f} -> {explained.changed.logit:.3f}")
    return text


def _holding(stores: Sequence[Store], clip_id: str) -> tuple[Store, int]:
    """Find the store that has a clip, and its row."""
    known: list[str] = []
    for store in stores:
        ids = [clip.clip_id for clip in store.clips]
        if clip_id in ids:
            return store, ids.index(clip_id)
        known += ids
    near = get_close_matches(clip_id, known, n=1)
    hint = f": did you mean {near[0]!r}?" if near else f" among their {len(known)}: see obygaze store inspect"
    raise ModelError(f"no clip {clip_id!r} in {', '.join(store.name for store in stores)}{hint}")


def _decide(model: Model, logits: Any, *, known: bool = True) -> Decision:
    """Make a decision of one logit [1]."""
    logit = float(logits[0])
    p: list[float | None] = [None] * 3
    if model.calibration is not None and known:
        every = (model.calibration.probability(logits), *model.calibration.band(logits))
        p = [float(each[0]) for each in every]
    return Decision(logit, p[0], p[1], p[2], logit >= model.card.threshold)


def _called(decision: Decision, card: Card) -> str:
    classes = card.target["classes"]
    side = " or ".join(classes[int(decision.called)]) if len(classes) == 2 else ""
    return "called " + ("positive" if decision.called else "negative") + (f" ({side})" if side else "")


def _on_both_scales(explained: Explained) -> list[str]:
    """State score and threshold as probabilities and as logits."""
    logit = f"  logit        {explained.decision.logit:.3f}; threshold {explained.threshold:.3f}"
    if explained.decision.p is None or explained.threshold_p is None:
        return ["  The model is not calibrated, so there is no probability.", logit]
    return [f"  probability  {_with_band(explained.decision)}; threshold {explained.threshold_p:.2f}", logit]


def _with_band(decision: Decision) -> str:
    values = (decision.p, decision.p_low, decision.p_high)
    p, low, high = (probability(value) for value in values if value is not None)
    return p if high == probability(0.0) else f"{p} ({low} to {high})"


def _reasons(explained: Explained, parts: Explanation) -> list[str]:
    """Name the concepts with the largest contributions: those that are seen, and apart those that are not."""
    p_of = dict(zip((part.concept for part in parts.contributions), explained.concept_p, strict=True))
    labelled = None not in explained.concept_p
    text = [] if explained.seen or not labelled else ["seen: no concept"]
    for what in ("seen", "absent") if labelled else ("",):
        for sign, side in ((1, "counted in favour"), (-1, "counted against")):
            counted = [
                part
                for part in parts.contributions
                if (part.concept in explained.seen) == (what == "seen") and sign * part.contribution > 0.005
            ]
            counted.sort(key=lambda part: -abs(part.contribution))
            named = [
                f"{part.concept} ({_p(p_of[part.concept], 'p ', ', ')}{part.contribution:+.2f}, "
                f"above {part.percentile:.0f} % of the training clips)"
                for part in counted[:3]
            ]
            if named:
                text.append(f"{what}, {side}: {', '.join(named)}".removeprefix(", "))
    return text


def _p(p: float | None, before: str = "", after: str = "", under: str = "below ") -> str:
    """Write a probability between other words; nothing where there is none."""
    return "" if p is None else f"{before}{probability(p, under)}{after}"


def _frames_table(explained: Explained) -> str:
    """Lay out the frames in time: attention's parts, or the concepts that contribute most to the clip."""
    columns: dict[str, str] = {"weight": "weight", "contribution": "contribution"}
    if explained.parts is not None:
        most = sorted(explained.parts.contributions, key=lambda part: -abs(part.contribution))[:MOST_CONCEPTS]
        told = "value" if None in explained.concept_p else "p"
        columns = {f"{part.concept}_{told}": f"{told} of\n{part.concept}" for part in most}

    def cell(value: float | None, decimals: int) -> str:
        return "" if value is None else f"{value:.{decimals}f}"

    rows = [
        [cell(frame["time_s"], 2), *(cell(frame[name], 3) for name in columns)] for frame in explained.frames
    ]
    return table(rows, ["time s", *columns.values()], right=range(len(columns) + 1))


def _concepts_table(explained: Explained, parts: Explanation) -> str:
    columns = (parts.contributions, explained.concept_p, explained.concept_thresholds, explained.ends)
    every = list(zip(*columns, strict=True))
    if len(every) > MOST_ROWS:
        every = sorted(every, key=lambda own: -abs(own[0].contribution))[:MOST_ROWS]
    rows = [
        [
            part.concept,
            f"{part.value:.2f}",
            f"{part.percentile:.0f} %",
            _p(share, under="<"),
            "" if share is None else probability(threshold),
            f"{part.contribution:+.3f}",
            *(_p(end.p, under="<") for end in ends),
        ]
        for part, share, threshold, ends in every
    ]
    names = ("concept", "value", "percentile", "p")
    return table(rows, [*names, "seen\nfrom", "contri-\nbution", "p at\n5 %", "p at\n95 %"])
