"""What every caption says, whichever table it is under."""

from collections.abc import Mapping, Sequence

from obygaze_models.experiments.material import Material, count_absent
from obygaze_models.probes import Imbalance
from obygaze_models.protocol.paper import Fold

PAPER = (
    "protocol paper: a reconstruction of the published folds, to compare with published numbers; whether the "
    "folds leak is told by table and cell (see docs/leak.md)"
)
STRICT = (
    "protocol strict: each film tested by models of the other films; epoch, threshold, depth and penalty "
    "chosen by inner folds of films"
)
IMBALANCE: Mapping[Imbalance, str] = {
    "none": "imbalance none: the mlp trained on classes as they are, its threshold tuned",
    "weights": "imbalance weights: the mlp trained with losses in which both classes weigh the same",
    "subsample": "imbalance subsample: the mlp trained on as many clips of the larger class as of the other",
}
POLICIES = {
    "raw": "labels: raw policy, as annotated",
    "paper": "labels: paper policy, a clip without a visual concept is EN",
    "released": "labels: released policy, clips whose concepts are all non-visual left out",
}
PAPER_LABELS = "labels: those of the released split files"


def sources(material: Material) -> list[str]:
    """Say which features the columns stand on, and which clips all of them leave out."""
    lines = [
        f"features {one.title}: store {one.store[:12]}, {one.features} ({one.pool}), {one.X.shape[1]} "
        "numbers a clip"
        for one in material.sources
    ]
    untrained = [one.label for one in material.sources if one.untrained]
    if untrained:
        lines.append(
            f"UNTRAINED: the weights of {', '.join(untrained)} are random; these numbers say nothing of the "
            "published network"
        )
    return lines


def strict_notes(material: Material) -> list[str]:
    """Caption a strict experiment."""
    films = len(set(material.movies.tolist()))
    return [
        STRICT,
        POLICIES[str(material.policy)],
        (
            f"{len(material.clip_ids)} clips of {films} films; {len(material.excluded)} excluded for want of "
            f"features, from all models alike; with {films} films an interval is wide"
        ),
        *sources(material),
    ]


def paper_notes(material: Material, folds: Sequence[Fold]) -> list[str]:
    """Caption an experiment of the paper protocol."""
    absent = count_absent(
        material, [name for fold in folds for name in fold.train + fold.validation + fold.test]
    )
    lines = [PAPER, PAPER_LABELS]
    if absent:
        lines.append(f"{absent} clips of these folds have no features and are left out of all sides")
    return [*lines, *sources(material)]
