"""Write notes on a run: how its numbers came about, and what limits them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from obygaze_features.manifest import counted
from obygaze_features.text import visible
from obygaze_models.evaluation.intervals import CAPTIONS
from obygaze_models.evaluation.run import SEEN, Run
from obygaze_models.models.joined_model import ALONE
from obygaze_models.models.training import N_TRIAL_EPOCHS
from obygaze_models.report.run_answers import chosen_layers


def notes(run: Run) -> tuple[str, ...]:
    """Say how all numbers of a run came about, on which clips, and what limits them."""
    record = run.record
    lines = [_on_features(record)]
    if record["protocol"] != SEEN:  # else it is a limit
        lines.append(f"protocol {record['protocol']}")
    lines += [
        _on_seeds(record["seeds"]),
        _on_tested_clips(record),
        _on_clips_left_out(record),
        *_on_clips_in_sight(record["clips"]),
        *_on_starts(run),
        *_limits(run),
        *_on_rare_concepts(record),
        _on_intervals(),
    ]
    return tuple(visible(line, lines=False) for line in lines)


def limits(run: Run) -> tuple[str, ...]:
    """Say what limits all numbers of a run."""
    return tuple(visible(line, lines=False) for line in _limits(run))


def _limits(run: Run) -> Iterator[str]:
    """Yield what limits all numbers of a run."""
    record = run.record
    if record["protocol"] == SEEN:
        yield f"protocol {SEEN}"
    if record["untrained"]:
        yield (
            f"UNTRAINED: the weights of {record['backbone']} are random; these numbers say nothing of the "
            "published network"
        )
    if record["clips"].get("partial"):
        partial = counted(record["clips"]["partial"], "clip is partial", "clips are partial")
        yield f"{partial}: a part of the video could not be read"
    selected = run.selection["candidate"].astype(str)
    alone = run.selection["model"][selected.str.startswith(f"{ALONE} ")]
    for model, n in alone.value_counts(sort=False).items():
        yield (
            f"{model}: one modality has all the weight in {n} of "
            f"{counted(len(record['folds']), 'fold')}, and decides "
            "alone"
        )
    yield from chosen_layers(run)
    for model, reason in record["models_left_out"].items():
        yield f"{model} left out: {reason}"


# --- notes of the whole report
# ---------------------------------------------------------------------------
def _on_features(record: Mapping[str, Any]) -> str:
    """Name the codebook, the label policy and the features."""
    line = (
        f"codebook {record['codebook']['name']}; labels: {record.get('label_policy', 'raw')} policy; "
        f"features: {record['backbone']}, {record['features']} ({record['pool']})"
    )
    if "reduced_by" in record:
        line += f"; of frames and tokens: tokens reduced by {record['reduced_by']}"
    return line


def _on_seeds(seeds: list[int]) -> str:
    """Name the seed, or the first and last of several."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"seeds {seeds[0]} to {seeds[-1]}, metrics are means"


def _on_tested_clips(record: Mapping[str, Any]) -> str:
    """Count the tested clips, and say how many are positive."""
    line = (
        f"{counted(record['clips']['tested'], 'clip')} of {counted(record['movies_tested'], 'movie')} tested"
    )
    shares = [f"{share:.3f}" for share in record["prevalence"].values() if share is not None]
    if shares:
        line += f", prevalence {', '.join(shares)}"
    return line


def _on_clips_left_out(record: Mapping[str, Any]) -> str:
    """Count the clips of the manifest that were not used, by reason."""
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


def _on_clips_in_sight(clips: Mapping[str, Any]) -> list[str]:
    """Count the clips that were judged with a model's score in sight."""
    n_clips = clips.get("seen_score")
    if not n_clips:
        return []
    return [f"{counted(n_clips, 'clip')} judged with a model's score in sight: trained on, not tested"]


def _on_starts(run: Run) -> list[str]:
    """Say how far the losses of a network's starts lie apart; far apart, a single start may fail."""
    losses = ["start_loss_low", "start_loss_high"]
    trainings = run.curves.dropna(subset=losses[0]).drop_duplicates(["model", "fold", "seed", "inner_fold"])
    lines = []
    for model, low, high in trainings.groupby("model", sort=False)[losses].median().itertuples():
        lines.append(
            f"{model}: trained on from the best of several starts; their training losses after "
            f"{N_TRIAL_EPOCHS} epochs lie between {low:.2f} and {high:.2f} (medians of the inner trainings)"
        )
    return lines


def _on_intervals() -> str:
    """Say what the two kinds of intervals cover."""
    captions = f"these models: {CAPTIONS['models']}; method: {CAPTIONS['method']}"
    return f"{captions}; docs/evaluation.md has the measured coverage of each"


def _on_rare_concepts(record: Mapping[str, Any]) -> list[str]:
    """Say which concepts a model of them lacks, and in how many folds."""
    n_folds = Counter(name for fold in record["folds"] for name in fold["concepts_left_out"])
    if not n_folds or "pcbm" not in " ".join(record["models"]):
        return []
    counts = ", ".join(f"{name} {count}" for name, count in n_folds.items())
    return [f"concepts too rare to be learnt, in so many folds: {counts}"]
