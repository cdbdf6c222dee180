"""Write notes on a run: how its numbers came about, and what limits them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from obygaze_features.manifest import counted
from obygaze_features.text import rounded, visible
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.by_modality import ConceptsByModality
from obygaze_models.concepts.in_time import ConceptsInTime
from obygaze_models.evaluation.intervals import CAPTIONS
from obygaze_models.evaluation.run import SEEN_MOVIES, Run
from obygaze_models.models.joined_model import ALONE
from obygaze_models.models.names import name_in_zoo
from obygaze_models.models.training import N_TRIAL_EPOCHS
from obygaze_models.protocol.targets import labels_in_sight_note
from obygaze_models.report.run_answers import CONCEPT_LABELS, chosen_layers

LEARNING_CONCEPTS = frozenset(
    made.__name__ for made in (ConceptBottleneck, ConceptsInTime, ConceptsByModality)
)
"""Classes of models that learn concepts, and decide by them."""


def notes(run: Run) -> tuple[str, ...]:
    """Write the notes of a run: on which clips and how its numbers were computed, and what limits them."""
    record = run.record
    lines = [_features_note(record)]
    # That tested films are trained on in part is listed among the limits.
    if record["protocol"] != SEEN_MOVIES:
        lines.append(f"protocol {record['protocol']}")
    lines += [
        _seeds_note(record["seeds"]),
        _tested_clips_note(record),
        _clips_left_out_note(record),
        *seen_scores_note(record),
        *_starts_notes(run),
        *_limits(run),
        *_unlearnable_concepts_note(record),
        _intervals_note(),
    ]
    return tuple(visible(line, line_breaks=False) for line in lines)


def limits(run: Run) -> tuple[str, ...]:
    """Write what limits all numbers of a run, such as an untrained network or models left out."""
    return tuple(visible(line, line_breaks=False) for line in _limits(run))


def _limits(run: Run) -> Iterator[str]:
    """Yield sentences on what limits all numbers of a run.

    Names of files and models in them may hold control characters, which the caller has to escape.
    """
    record = run.record
    if record["protocol"] == SEEN_MOVIES:
        yield f"protocol {SEEN_MOVIES}"
    if record["untrained"]:
        yield (
            f"UNTRAINED: the weights of {record['backbone']} are random; these numbers say nothing of the "
            "published network"
        )
    if record["clips"].get("partial"):
        partial = counted(record["clips"]["partial"], "clip is partial", "clips are partial")
        yield f"{partial}: a part of the video could not be read"

    yield from _deciding_modalities(run)
    yield from chosen_layers(run)
    for model, reason in record["models_left_out"].items():
        yield f"{model} left out: {reason}"
    for test, reason in record.get("tests_left_out", {}).items():
        yield f"{test} left out: {reason}"
    yield from _alike_concepts(record)
    for machine, use in record.get("machines", {}).items():
        yield f"labels of a machine, {machine}: {use}"


def _alike_concepts(record: Mapping[str, Any]) -> Iterator[str]:
    """Write which concepts the labels do not tell apart, if a model of the run reads concepts."""
    if not _has_concept_model(record):
        return
    for concepts in record.get("concepts_alike", []):
        yield (
            f"concepts {' and '.join(concepts)} are marked in the same clips, or one where the other is not: "
            "no model can tell them apart, and the weight of one of them alone means nothing"
        )
    for concept in record.get("concepts_of_label", []):
        yield (
            f"concept {concept} is marked in all clips of one class and in none of the other: it is the "
            "label itself, and models of concepts show little of the others"
        )


def _has_concept_model(record: Mapping[str, Any]) -> bool:
    """Tell whether a model of a run decides by concepts, detected or annotated."""
    reads_annotated_concepts = any(name_in_zoo(name) == CONCEPT_LABELS for name in record["models"])
    return reads_annotated_concepts or _learns_concepts(record)


def _learns_concepts(record: Mapping[str, Any]) -> bool:
    """Tell by the models' classes whether one of a run learns concepts, whatever its name is."""
    return any(settings.get("estimator") in LEARNING_CONCEPTS for settings in record["models"].values())


def _deciding_modalities(run: Run) -> Iterator[str]:
    """Write for each fused model in how many folds a single modality has all the weight.

    The table `run.selection` has a row for each model and fold, with the weights as the name of a candidate.
    In such a fold this name begins with `ALONE`.
    """
    candidates = run.selection["candidate"].astype(str)
    is_alone = candidates.str.startswith(f"{ALONE} ")
    n_folds_of_model = run.selection.loc[is_alone, "model"].value_counts(sort=False)
    for model, n_folds in n_folds_of_model.items():
        yield (
            f"{model}: one modality has all the weight in {n_folds} of "
            f"{counted(len(run.record['folds']), 'fold')}, and decides alone"
        )


# --- notes of the whole report
# ---------------------------------------------------------------------------
def _features_note(record: Mapping[str, Any]) -> str:
    """Write the names of the codebook, the label policy and the features."""
    line = (
        f"codebook {record['codebook']['name']}; labels: {record.get('label_policy', 'raw')} policy; "
        f"features: {record['backbone']}, {record['features']} ({record['pool']})"
    )
    if "reduced_by" in record:
        line += f"; of frames and tokens: tokens reduced by {record['reduced_by']}"
    return line


def _seeds_note(seeds: list[int]) -> str:
    """Write the seed of a run, or the first and last of several seeds, which follow each other."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"seeds {seeds[0]} to {seeds[-1]}, metrics are means"


def _tested_clips_note(record: Mapping[str, Any]) -> str:
    """Write how many clips were tested, and the share of positive ones."""
    n_clips = counted(record["clips"]["tested"], "clip")
    line = f"{n_clips} of {counted(record['movies_tested'], 'movie')} tested"
    shares = [rounded(share, digits=3) for share in record["prevalence"].values() if share is not None]
    if shares:
        line += f", prevalence {', '.join(shares)}"
    return line


def _clips_left_out_note(record: Mapping[str, Any]) -> str:
    """Write how many clips of the manifest were not used, for each reason."""
    clips = record["clips"]
    counts = {
        "of other levels": clips["other_levels"],
        "of a level in no task": clips.get("in_no_task", 0),
        "without a level": clips.get("unlabelled", 0),
        "without features": len(record["excluded"]),
    }
    left_out = [f"{count} {reason}" for reason, count in counts.items() if count]
    n_clips = clips.get("manifest", clips["tested"])
    return f"left out of {counted(n_clips, 'clip')} in the manifest: {', '.join(left_out) or 'none'}"


def seen_scores_note(record: Mapping[str, Any]) -> list[str]:
    """Write how many clips of a run were judged while a model's score was shown; nothing if none were.

    `record` is that of the run.
    """
    n_clips = record.get("clips", {}).get("seen_score")
    if not n_clips:
        return []
    tested_levels: set[str] = set()
    for test in record["tests"]:
        tested_levels |= _levels(test)
    return labels_in_sight_note(n_clips, _levels(record["train"]), tested_levels)


def _levels(target: Mapping[str, Any]) -> set[str]:
    """Return the levels of the clips that a target uses, from its record."""
    return {level for levels_of_class in target["classes"] for level in levels_of_class}


def _starts_notes(run: Run) -> list[str]:
    """Write for each network how far apart the training losses of its random starts are.

    If they are far apart, training from a single start could fail.
    """
    # The table of curves has a row for each epoch of a training. If the training tried several starts, every
    # row has the lowest and highest loss of these; one row is enough.
    curves = run.curves.dropna(subset="start_loss_low")
    trainings = curves.drop_duplicates(["model", "fold", "seed", "inner_fold"])
    medians = trainings.groupby("model", sort=False)[["start_loss_low", "start_loss_high"]].median()
    lines = []
    for model, median_low, median_high in medians.itertuples():
        lines.append(
            f"{model}: trained on from the best of several starts; their training losses after "
            f"{N_TRIAL_EPOCHS} epochs lie between {median_low:.2f} and {median_high:.2f} (medians of the "
            "inner trainings)"
        )
    return lines


def _intervals_note() -> str:
    """Write what the two kinds of intervals cover."""
    captions = f"these models: {CAPTIONS['models']}; method: {CAPTIONS['method']}"
    return f"{captions}; docs/evaluation.md has the measured coverage of each"


def _unlearnable_concepts_note(record: Mapping[str, Any]) -> list[str]:
    """Write which concepts could not be learnt, and in how many folds.

    Without some movie of such a fold, no clip has the concept, or every clip has it. Nothing is written if
    there are none, or if no model learns concepts.
    """
    n_folds_of_concept = Counter[str]()
    for fold in record["folds"]:
        n_folds_of_concept.update(fold["concepts_left_out"])
    if not n_folds_of_concept or not _learns_concepts(record):
        return []
    counts = ", ".join(f"{name} {n_folds}" for name, n_folds in n_folds_of_concept.items())
    reason = "as without one movie no clip has them or every clip has them"
    return [f"concepts that cannot be learnt, {reason}, in so many folds: {counts}"]
