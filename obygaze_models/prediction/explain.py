"""Explain the decision about one clip, and show what would change it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, NamedTuple

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
from obygaze_features.text import percentage, rounded, signed
from obygaze_models.concepts.explanations import Contribution, Explanation
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.evaluation.predictions import records
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.models.linear_fusion import LinearFusion
from obygaze_models.persistence.card import Card
from obygaze_models.persistence.evidence import evidence_line
from obygaze_models.prediction.effects import probability_changes
from obygaze_models.prediction.frames import ATTENTION_COLUMNS, frames_of, reads_frames
from obygaze_models.prediction.predict import labels_line
from obygaze_models.prediction.reading import ClipBlock, find_clips
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import recognise

LOW_AND_HIGH = (0.05, 0.95)
"""Quantiles of the training clips' values: each concept is set to the low and to the high one, in turn."""

MAX_ROWS = 40
"""Number of concepts that a terminal's table shows; if there are more, those that contribute most."""

MAX_CONCEPTS = 4
"""Number of concepts whose values a terminal shows for each frame; JSON has all."""

MIN_CONTRIBUTION = 0.005
"""Without calibration, a concept is named as a reason if its contribution to the logit is at least this."""

MIN_CHANGE = 0.01
"""With calibration, a concept is named as a reason if it changes the probability by at least this."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A logit and the decision from it.

    Attributes
    ----------
    logit : float
    p, p_low, p_high : float or None
        Probability and the ends of its 80 % band; None without calibration, or out of distribution.
    called : bool or None
        Whether the clip is called positive; None out of distribution.
    """

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
        Share of training clips that are nearer to the training mean than this clip.
    is_unlike, trained_on, no_skill : bool
        Whether the clip is out of distribution, whether its film was trained on, and whether the model may be
        no better than chance.
    read_in_part : str
        What could not be read of the clip's video; empty if all was read.
    unread_s : float
        Seconds of the clip without pictures, as far as that is known.
    evidence : str
        One line on how well the model did on films left out of training.
    levels_left_out : tuple of str
        Levels that the model was neither calibrated nor tested on, so that nothing is known of its
        probabilities for clips of these levels.
    threshold, threshold_p : float
        Lowest logit at which a clip is called positive, and its probability (None if not calibrated).
    decision : Decision
    parts : Explanation or None
        Contributions of concepts; None if the clip is out of distribution.
    modalities : dict of str to float or None
        For a model of several modalities, the contribution of each to the logit (None if the clip lacks it),
        and the ``base`` to which the contributions are added.
    concept_p : tuple of float
        The probability that each concept is in the clip; None for a concept that was found without labels.
    concept_thresholds : tuple of float
        The lowest probability at which each concept counts as seen (`Model.concept_thresholds`).
    seen : tuple of str
        The concepts whose probability reaches their threshold.
    near_chance : tuple of str
        The concepts of which it is not shown, on films left out of training, that the model finds them better
        than chance.
    changes : tuple of float
        For each concept, the clip's probability less the probability with the concept at its usual value (of
        a tree: less its mean over the training clips' values); None without calibration.
    ends : tuple of (Decision, Decision)
        The decision with each concept at the 5th and at the 95th percentile of the training clips' values.
    set_to : dict of str to float
        For each concept that the user set, the quantile it was set to.
    changed : Decision or None
        The decision with all concepts of `set_to` set; None if there are none.
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
    read_in_part: str
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
    levels_left_out: tuple[str, ...] = ()
    unread_s: float = 0.0

    @property
    def is_scarcely_read(self) -> bool:
        """Whether less than half of the clip has pictures. The timeline of a film ignores such windows."""
        if self.start_s is None or self.end_s is None:
            # A clip that is a whole file, whose length is not known here.
            return False
        length_s = self.end_s - self.start_s
        return self.unread_s > length_s / 2


def explain(model: Model, stores: Sequence[Store], clip_id: str, set_to: Mapping[str, float]) -> Explained:
    """Explain a model's decision about one clip of some stores: what contributes, and what would change it.

    Parameters
    ----------
    model : Model
        A model that decides by concepts, weighs frames, or reads several modalities.
    stores : sequence of Store
    clip_id : str
    set_to : mapping of str to float
        Concept -> the quantile (0 to 1) of the training clips' values to set it to.

    Raises
    ------
    ModelError
        The clip is unknown, or has no features of the kind that the model reads.
    ConceptError
        The model neither decides by concepts nor weighs frames, or a concept or quantile is invalid.
    """
    store, row = _find_clip(stores, clip_id)
    block = _read_clip(model, stores, clip_id)

    # First what raises if the model is of a kind that can't be explained, or a setting is not valid.
    contributions = _contributions_by_concept(model, block.X, set_to)
    decision_with_settings = None
    if set_to:
        decision_with_settings = _decide(model, model.intervene(block.X, set_to))

    explained = _explain_decision(model, stores, store, row, block)
    explained = replace(explained, set_to=dict(set_to))
    if explained.is_unlike:
        # Out of distribution neither probabilities nor contributions mean anything.
        return explained

    # Then what each modality and each concept adds to the decision.
    if isinstance(model.estimator, LinearFusion):
        modalities = _contributions_by_modality(model.card, model.estimator, block.X)
        explained = replace(explained, modalities=modalities)
    explained = _explain_concepts(explained, model, block.X, contributions)
    return replace(explained, changed=decision_with_settings)


def _read_clip(model: Model, stores: Sequence[Store], clip_id: str) -> ClipBlock:
    """Read the features of one clip; raise if it has none of the kind that the model reads."""
    readable = find_clips(model.card, stores, clip_id=clip_id)
    if not len(readable):
        reasons = list(readable.excluded)
        raise ModelError(f"clip {clip_id} has no features ({reasons[0]})")
    (only_block,) = readable.blocks()
    return only_block


def _contributions_by_concept(
    model: Model, X: NDArray[Any], set_to: Mapping[str, float]
) -> Explanation | None:
    """Decompose the score of one clip X [1, D] by concept; None for models that are explained in another way.

    These are models of several modalities, by modality, and models with attention, by frame. `set_to` are the
    concepts that the user set to other values (--set).

    Raises
    ------
    ConceptError
        A model of another kind does not decide by concepts; or concepts are set for a model of several
        modalities.
    """
    has_several_modalities = isinstance(model.estimator, LinearFusion)
    if has_several_modalities and set_to:
        raise ConceptError(f"--set: model {model.card.model} decides by no concepts")
    if has_several_modalities or isinstance(model.estimator, AttentionPooling):
        return None
    return model.explain(X)


def _explain_decision(
    model: Model, stores: Sequence[Store], store: Store, row: int, block: ClipBlock
) -> Explained:
    """Explain the decision on a clip without its concepts and modalities, which are added later.

    Parameters
    ----------
    model : Model
    stores : sequence of Store
    store, row : Store, int
        The store that has the clip, and its row there.
    block : ClipBlock
        The clip and its features.
    """
    card = model.card
    (clip_id,) = block.clips.clip_ids
    (movie,) = block.clips.movies
    is_out_of_distribution = bool(model.is_out_of_distribution(block.X)[0])
    recognition = recognise(card, model.training, stores)
    levels_left_out = card.levels_left_out or ()
    unread = _find_unread(stores, clip_id)
    return Explained(
        clip_id,
        movie,
        start_s=_number_or_none(block.clips.start_s),
        end_s=_number_or_none(block.clips.end_s),
        unlike=_number_or_none(model.out_of_distribution_share(block.X)),
        is_unlike=is_out_of_distribution,
        trained_on=recognition.knows(clip_id, movie),
        no_skill=card.no_skill,
        read_in_part=unread.reason,
        unread_s=unread.seconds,
        evidence=evidence_line(card.evidence, levels_left_out),
        levels_left_out=levels_left_out,
        threshold=card.threshold,
        threshold_p=_decide(model, np.array([card.threshold])).p,
        decision=_decide(model, model.logits(block.X), in_distribution=not is_out_of_distribution),
        frames=_explain_frames(model, store, row),
        classes=_likely_classes_by_classifier(store, row),
    )


class _Unread(NamedTuple):
    """The part of a clip's video that could not be read.

    Attributes
    ----------
    reason : str
        Empty if all was read.
    seconds : float
        Length without pictures, as far as it is known.
    """

    reason: str
    seconds: float


def _find_unread(stores: Sequence[Store], clip_id: str) -> _Unread:
    """Look up how much of a clip could not be read, by the stores that have the clip.

    If several say so, the one with the most seconds counts. If none does, seconds and reason are empty.
    """
    longest = _Unread(reason="", seconds=0.0)
    for store in stores:
        table = store.table
        for row, (stored_id, status) in enumerate(zip(table.clip_ids, table.status, strict=True)):
            if stored_id != clip_id or status != "partial":
                continue
            stretches = table.without_pictures_s.get(row, ())
            seconds = float(sum(end_s - start_s for start_s, end_s in stretches))
            if not longest.reason or seconds > longest.seconds:
                longest = _Unread(table.reasons[row], seconds)
    return longest


def _explain_concepts(
    explained: Explained, model: Model, X: NDArray[Any], contributions: Explanation | None
) -> Explained:
    """Return the explanation of a clip with the fields that describe its concepts.

    X [1, ...] are the clip's features. `contributions` is what its concepts add to the score, None if the
    model does not decide by concepts: the fields are then empty.
    """
    concept_p = [None if np.isnan(p) else p for p in model.concept_probabilities(X)[0].tolist()]
    concept_thresholds = model.concept_thresholds.tolist()
    return replace(
        explained,
        parts=contributions,
        concept_p=tuple(concept_p),
        concept_thresholds=tuple(concept_thresholds),
        seen=_seen_concepts(model.concepts, concept_p, concept_thresholds),
        near_chance=_concepts_near_chance(model.card, model.concepts),
        changes=_probability_changes(model, X, explained.decision, contributions),
        ends=_decisions_at_low_and_high(model, X),
    )


def _seen_concepts(
    concepts: Sequence[str], probabilities: Sequence[float | None], thresholds: Sequence[float]
) -> tuple[str, ...]:
    """List the concepts whose probability reaches their threshold; one without probability is not seen."""
    seen = []
    for name, p, threshold in zip(concepts, probabilities, thresholds, strict=True):
        if p is not None and p >= threshold:
            seen.append(name)
    return tuple(seen)


def _decisions_at_low_and_high(model: Model, X: NDArray[Any]) -> tuple[tuple[Decision, Decision], ...]:
    """Decide on one clip X [1, ...] with each concept in turn set to a low and to a high value.

    These are the 5th and the 95th percentile of its values in the training clips (`LOW_AND_HIGH`).
    """
    low_quantile, high_quantile = LOW_AND_HIGH
    decisions = []
    for name in model.concepts:
        low = _decide(model, model.intervene(X, {name: low_quantile}))
        high = _decide(model, model.intervene(X, {name: high_quantile}))
        decisions.append((low, high))
    return tuple(decisions)


def _contributions_by_modality(card: Card, fusion: LinearFusion, X: NDArray[Any]) -> dict[str, float | None]:
    """Decompose the score of one clip [1, D] into contributions of modalities, as `Explained.modalities`."""
    base, parts = fusion.contributions(X)
    contributions: dict[str, float | None] = {}
    for modality, part in zip(card.modalities, parts[0], strict=True):
        # NaN if the clip lacks the modality.
        contributions[modality["name"]] = None if np.isnan(part) else float(part)
    contributions["base"] = float(base[0])
    return contributions


def _explain_frames(model: Model, store: Store, row: int) -> tuple[dict[str, float | None], ...]:
    """Compute the model's output for each frame of the clip in a row of a store, as `Explained.frames`.

    It is empty if the store has no frames that the model can read.
    """
    if not reads_frames(model, store):
        return ()
    table_of_frames = frames_of(model, store, np.array([row]))
    # Clip and movie are the same for all frames, and the frames are in order.
    omitted = ["clip_id", "movie", "frame"]
    has_attention = isinstance(model.estimator, AttentionPooling)
    if not has_attention:
        omitted += ATTENTION_COLUMNS
    numbers = table_of_frames.drop(columns=omitted).astype(np.float64)
    return tuple(records(numbers))


def _likely_classes_by_classifier(store: Store, row: int) -> dict[str, tuple[LikelyClass, ...]]:
    """List the classes that a store's classifiers find more probable in a clip than in the rest of its film.

    The result maps classifiers to classes; `row` is the clip's row in the store.
    """
    movies = np.array(store.table.movies)
    classes_of_classifier = {}
    # Each of these groups holds the answers of one classifier.
    for name in groups_of_classes(store):
        group = store[name]
        if not group.usable[row]:
            continue
        rows_of_film = np.flatnonzero((movies == movies[row]) & group.usable)
        p = group.pooled().astype(np.float64)
        mean_p_of_film = p[rows_of_film].mean(axis=0)
        likely = likely_classes(classes_of(group), p[row], mean_p_of_film)
        if likely:
            classes_of_classifier[classifier_of(group)] = tuple(likely)
    return classes_of_classifier


def parse_settings(settings: Sequence[str]) -> dict[str, float]:
    """Parse settings ``CONCEPT=QUANTILE`` of the option --set: concept -> quantile, 0 to 1.

    Raises
    ------
    ConceptError
        A setting has another form, or a concept is set twice.
    """
    quantiles: dict[str, float] = {}
    for text in settings:
        name, _, number = text.rpartition("=")  # the name is empty without "="
        quantile = _parse_quantile(number)
        if not name or quantile is None:
            raise ConceptError(
                f"--set {text}: expected CONCEPT=QUANTILE, "
                "a quantile of the training clips' values between 0 and 1"
            )
        if name in quantiles:
            raise ConceptError(f"--set {text}: {name} is set twice")
        quantiles[name] = quantile
    return quantiles


def _parse_quantile(text: str) -> float | None:
    """Parse a number between 0 and 1; None if the text is none."""
    try:
        quantile = float(text)
    except ValueError:
        return None
    return quantile if 0 <= quantile <= 1 else None


def _probability_changes(
    model: Model, X: NDArray[Any], decision: Decision, parts: Explanation | None
) -> tuple[float | None, ...]:
    """Return how much of the probability of a clip is due to each concept: `Explained.changes`.

    A model without concepts has no `parts`, and no changes. Without calibration there is no probability: the
    change is None for each concept. X [1, ...] are the clip's features.
    """
    if parts is None:
        return ()
    changes = None
    if decision.p is not None:
        changes = probability_changes(model, X)  # [1, K]
    if changes is None:
        return (None,) * len(model.concepts)
    (changes_of_clip,) = changes
    return tuple(changes_of_clip.tolist())


def _concepts_near_chance(card: Card, concepts: Sequence[str]) -> tuple[str, ...]:
    """List the concepts whose average precision on films left out is not shown to be above chance."""
    # The card's metrics are one row per task; those of concepts (`concept_metrics`) have a chance level.
    row_of_task = {str(row.get("task")): row for row in card.metrics if "movie_chance" in row}
    near_chance = []
    for concept in concepts:
        row = row_of_task.get(f"concept:{concept}", {})
        is_measured = row.get("movie_mean") is not None
        # The lower end of the interval of the mean over films.
        low = row.get("movie_low")
        chance = row.get("movie_chance")
        is_above_chance = low is not None and chance is not None and low > chance
        if is_measured and not is_above_chance:
            near_chance.append(concept)
    return tuple(near_chance)


def _level_names_of_classes(card: Card) -> list[list[str]]:
    """Return the names of the levels of each class, the negative class first.

    The negative levels are those of the clips that the model was calibrated on, which may be more than the
    task's. Without calibration, or if a target has not two classes of the codebook's levels, they are the
    task's.
    """
    classes = [list(levels) for levels in card.target["classes"]]
    if len(classes) != 2 or not card.is_of_codebook_levels or card.population is None:
        return classes
    negative, positive = classes
    n_clips_of_level = card.population["clips"]
    calibrated_negative = [level for level in n_clips_of_level if level not in positive]
    return [calibrated_negative or negative, positive]


class _Reason(NamedTuple):
    """A concept as a reason for or against the positive class.

    Attributes
    ----------
    text : str
        The concept, with "more" or "less", "earlier" or "later" than usual if the usual values are known.
    part : Contribution
    p : float or None
        The probability that the concept is in the clip.
    is_by_path : bool
        Whether the contribution has another sign than the effect, as it may in a tree, where it follows the
        clip's path. It is then not printed beside the reason.
    """

    text: str
    part: Contribution
    p: float | None
    is_by_path: bool


class _ConceptRow(NamedTuple):
    """A concept of an explained clip.

    Attributes
    ----------
    part : Contribution
    p, threshold, change, ends
        The concept's entry of `concept_p`, `concept_thresholds`, `changes` and `ends` of `Explained`.
    """

    part: Contribution
    p: float | None
    threshold: float
    change: float | None
    ends: tuple[Decision, Decision]


def _concept_rows(explained: Explained) -> list[_ConceptRow]:
    """Combine the fields of an explanation that describe concepts into one row per concept."""
    if explained.parts is None:
        return []
    rows = []
    for index, contribution in enumerate(explained.parts.contributions):
        row = _ConceptRow(
            part=contribution,
            p=explained.concept_p[index],
            threshold=explained.concept_thresholds[index],
            change=explained.changes[index],
            ends=explained.ends[index],
        )
        rows.append(row)
    return rows


def _reasons(concepts: Sequence[_ConceptRow], near_chance: Collection[str]) -> dict[str, list[_Reason]]:
    """Sort concepts into reasons for the positive class and reasons against it.

    Concepts that change the probability too little are left out; without calibration, those that contribute
    too little to the logit.

    Parameters
    ----------
    concepts : sequence of _ConceptRow
        The strongest first.
    near_chance : collection of str
        Concepts that the model was not shown to find better than chance.

    Returns
    -------
    dict of str to list of _Reason
        The headings "for it" and "against it" -> their reasons.
    """
    reasons: dict[str, list[_Reason]] = {"for it": [], "against it": []}
    for concept in concepts:
        part = concept.part
        if concept.change is None:
            effect = part.contribution
            min_effect = MIN_CONTRIBUTION
        else:
            effect = concept.change
            min_effect = MIN_CHANGE
        if abs(effect) < min_effect:
            continue

        text = _compared_with_usual(part)
        if part.concept in near_chance:
            text += " [not shown to be found better than chance]"
        heading = "for it" if effect > 0 else "against it"
        # Usually effect and contribution have one sign. In a tree the contribution follows the clip's path,
        # and may be positive of a concept whose change to the usual value makes the probability rise.
        has_other_sign = effect * part.contribution <= 0
        reasons[heading].append(_Reason(text, part, concept.p, is_by_path=has_other_sign))
    return reasons


def _compared_with_usual(part: Contribution) -> str:
    """Name a concept with what makes it a reason: how much of it there is, when it is there, or both."""
    if part.amount and part.time:
        return f"{part.amount} {part.concept}, and {part.time}, than usual"
    if part.amount:
        return f"{part.amount} {part.concept} than usual"
    if part.time:
        return f"{part.concept} {part.time} than usual"
    return part.concept


def describe(explained: Explained, model: Model) -> str:
    """Write the explanation of a decision as text, with tables of concepts and frames.

    The sentences are in a template; what is computed here are its variables.
    """
    concepts = _concept_rows(explained)
    strongest_first = sorted(concepts, key=lambda row: -abs(row.part.contribution))
    # If there are too many concepts for a terminal, those that contribute most are shown.
    shown_concepts = concepts if len(concepts) <= MAX_ROWS else strongest_first[:MAX_ROWS]
    concepts_of_frames = [row.part.concept for row in strongest_first[:MAX_CONCEPTS]]
    modalities = [(name, _contribution_text(value)) for name, value in explained.modalities.items()]

    values = {
        "it": explained,  # in the template, `it.p` is the probability, and so on
        "task": model.card.target["name"],
        "labels_line": labels_line(model.card),
        "levels_of_classes": _level_names_of_classes(model.card),
        # Whether the score is the largest of the modalities' contributions, not their sum.
        "only_largest_counts": isinstance(model.estimator, LinearFusion) and model.estimator.fused_by_max,
        # Concepts that were found without labels have none.
        "has_concept_probabilities": None not in explained.concept_p,
        "reasons": _reasons(strongest_first, explained.near_chance),
        # These are tables, as text.
        "modalities": table(modalities, ["modality", "contribution"], right=[1]),
        "concepts": _concepts_table(shown_concepts),
        "frames": _frames_table(explained, concepts_of_frames),
    }
    filters: dict[str, Callable[..., object]] = {
        "p": probability,
        "percentage": percentage,
        "rounded": rounded,
        "signed": signed,
    }
    text = filled("obygaze_models.prediction", "explained.txt.jinja", values, filters=filters)
    return text.removesuffix("\n")


def _contribution_text(contribution: float | None) -> str:
    """Format the contribution of a modality: "absent" if the clip lacks it."""
    if contribution is None:
        return "absent"
    if contribution == 0:
        return "no weight"
    return signed(contribution, 3)


def _frames_table(explained: Explained, concepts: Sequence[str]) -> str:
    """Format a table of the clip's frames, with a column for each of some concepts.

    Without concepts the columns are the attention's weights and contributions.
    """
    # Concepts that were found without labels have no probability, but a value.
    quantity = "value" if None in explained.concept_p else "p"
    if concepts:
        # Keys of `Explained.frames`, such as "Gun_p", with the headings of their columns.
        heading_of_key = {f"{name}_{quantity}": f"{quantity} of\n{name}" for name in concepts}
    else:
        heading_of_key = {"weight": "weight", "contribution": "contribution"}
    rows = []
    for frame in explained.frames:
        row = [_decimal(frame["time_s"], decimals=2)]
        row += [_decimal(frame.get(key), decimals=3) for key in heading_of_key]
        rows.append(row)
    headings = ["time s", *heading_of_key.values()]
    return table(rows, headings, right=range(len(headings)))


def _decimal(value: float | None, decimals: int) -> str:
    """Format a number with this many decimals; "" for None."""
    return "" if value is None else rounded(value, decimals)


def _concepts_table(concepts: Sequence[_ConceptRow]) -> str:
    """Format a table of the concepts of a clip, one row per concept.

    Columns are the concept's value and its percentile among the training clips, its probability with the
    threshold from which it is seen, its contribution to the logit, and the clip's probability if only this
    concept were at the 5th or the 95th percentile (`LOW_AND_HIGH`).
    """
    low_quantile, high_quantile = LOW_AND_HIGH
    headings = [
        "concept",
        "value",
        "percentile",
        "p",
        "seen\nfrom",
        "contri-\nbution",
        f"p at\n{100 * low_quantile:.0f} %",
        f"p at\n{100 * high_quantile:.0f} %",
    ]
    rows = []
    for concept in concepts:
        low, high = concept.ends
        row = [
            concept.part.concept,
            rounded(concept.part.value, 2),
            f"{concept.part.percentile:.0f} %",
            _probability(concept.p),
            "" if concept.p is None else probability(concept.threshold),
            signed(concept.part.contribution, 3),
            _probability(low.p),
            _probability(high.p),
        ]
        rows.append(row)
    return table(rows, headings)


def _probability(p: float | None) -> str:
    """Format a probability; "" for None."""
    return "" if p is None else probability(p, "<")


def _find_clip(stores: Sequence[Store], clip_id: str) -> tuple[Store, int]:
    """Find the store that has a clip, and its row there.

    Raises
    ------
    ModelError
        No store has it.
    """
    for store in stores:
        clip_ids = store.table.clip_ids
        if clip_id in clip_ids:
            return store, clip_ids.index(clip_id)

    # The name may be misspelt: suggest the most similar one.
    names = ", ".join(store.name for store in stores)
    all_clip_ids = [known_id for store in stores for known_id in store.table.clip_ids]
    similar = get_close_matches(clip_id, all_clip_ids, n=1)
    if similar:
        raise ModelError(f"no clip {clip_id!r} in {names}: did you mean {similar[0]!r}?")
    raise ModelError(
        f"no clip {clip_id!r} in {names} among their {len(all_clip_ids)}: see obygaze store inspect"
    )


def _number_or_none(values: NDArray[np.float64]) -> float | None:
    """Return the only number of an array [1], or None in place of NaN."""
    (value,) = values.tolist()
    return None if np.isnan(value) else float(value)


def _decide(model: Model, one_logit: NDArray[np.float64], *, in_distribution: bool = True) -> Decision:
    """Decide by one logit, an array [1], and compute its probability if the model is calibrated.

    A clip that is out of distribution (`in_distribution` False) gets neither a decision nor a probability.
    """
    logit = float(one_logit[0])
    if not in_distribution:
        return Decision(logit, p=None, p_low=None, p_high=None, called=None)
    is_positive = bool(logit >= model.card.threshold)
    if model.calibration is None:
        return Decision(logit, p=None, p_low=None, p_high=None, called=is_positive)
    (p,) = model.calibration.probability(one_logit).tolist()
    low, high = model.calibration.band(one_logit)
    return Decision(logit, p=p, p_low=float(low[0]), p_high=float(high[0]), called=is_positive)
