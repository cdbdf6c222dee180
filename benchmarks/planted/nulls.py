"""Models of every kind on features that know nothing of labels, and what `obygaze evaluate` says of them.

Features and labels change slowly from clip to clip, as in films: chance makes them go together for a while.
"""

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from scipy.special import expit, logit, ndtri

from benchmarks.planted.calibrations import BOTH, WIDTH, smooth
from benchmarks.planted.row import Cell, Column, Draw, Row
from obygaze_features.manifest import builtin_codebook
from obygaze_models.concepts.by_modality import fused_by_concepts
from obygaze_models.dataset import Dataset, Modality
from obygaze_models.evaluation import compare, evaluate, saved, side
from obygaze_models.evaluation.experts import Experts
from obygaze_models.models.fusion import fused
from obygaze_models.models.joined_model import How
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.protocol.targets import Labels
from obygaze_models.report.run_tables import run_report

N_FILMS: Final = 8

N_FRAMES: Final = 6

NAMES: Final = ("visual", "heard")

CODEBOOK: Final = builtin_codebook("obygaze12")
CONCEPTS: Final = tuple(concept.name for concept in CODEBOOK.concepts)
MARKED: Final = [CONCEPTS.index("Body"), CONCEPTS.index("Speech")]


def marks(rng: np.random.Generator, order: float, sizes: np.ndarray, share: float, n: int = 1) -> np.ndarray:
    """Mark clips [N, n] in stretches: those of a film have a share of their own, and a common course."""
    parts = []
    for size in sizes:
        level = ndtri(expit(logit(share) + 0.6 * rng.normal()))
        common = smooth(rng, int(size), 1, order)
        parts.append(0.8 * common + 0.6 * smooth(rng, int(size), n, order) < level)
    return np.concatenate(parts)


def corpus(rng: np.random.Generator, order: float) -> Dataset:
    """Draw films of 30 to 60 clips, two modalities, frames, concepts, and labels by two annotators."""
    sizes = rng.integers(30, 61, N_FILMS)
    X = np.concatenate([smooth(rng, n, 2 * WIDTH, order) + 0.3 * rng.normal(size=2 * WIDTH) for n in sizes])
    frames = np.concatenate([smooth(rng, n * N_FRAMES, WIDTH, order).reshape(n, N_FRAMES, -1) for n in sizes])
    movies = np.repeat([f"film{number}" for number in range(N_FILMS)], sizes)
    ids = np.array([f"{movie}-{index:03}" for index, movie in enumerate(movies)])
    marks_of_film = marks(rng, order, sizes, share=0.3, n=2)
    present = np.zeros((len(X), len(CONCEPTS)), np.bool_)
    present[:, MARKED] = marks(rng, order, sizes, share=0.3, n=2)

    def labels(marked: np.ndarray) -> Labels:
        return Labels(ids, movies, np.where(marked, "S", "EN"), present, CONCEPTS, {})

    experts = {name: labels(marked) for name, marked in zip(("ann", "ben"), marks_of_film.T, strict=True)}
    parts = [
        Modality(name, "0" * 64, name, "pooled", "as stored", at.start, at.stop, missing=0)
        for name, at in zip(NAMES, BOTH, strict=True)
    ]
    return Dataset(
        X.astype(np.float32),
        replace(labels(marks_of_film.any(axis=1)), experts=experts),
        CODEBOOK,
        "toy",
        "pooled",
        "as stored",
        "0" * 64,
        modalities=tuple(parts),
        bags=frames.astype(np.float32),
    )


def asked(
    rng: np.random.Generator,
    model: str,
    order: float,
    how: How | Literal["", "concepts"] = "",
    experts: Experts | None = None,
) -> Draw:
    """Evaluate a model, and compare those of the two modalities."""
    data = corpus(rng, order)
    if experts is None:
        data = replace(data, labels=replace(data.labels, experts={}))
    if how == "":
        data = replace(data, modalities=())
    specs = [replace(BUILTIN_MODELS[model], compared_with=())]
    if how == "concepts":
        specs = fused_by_concepts(data)
    elif how:
        specs = fused(specs, data, how)
    run = evaluate(data, specs, "en_s", experts=experts)
    rows = run.metrics[run.metrics["metric"] == "auc"]
    rows = rows[[name.split("@")[0] == specs[0].name for name in rows["model"]]]
    outside = {}
    for kind in ("movie", "method"):
        ends = rows[[f"{kind}_low", f"{kind}_high"]].to_numpy()
        outside[kind] = [not low <= 0.5 <= high for low, high in ends]
    tests = {}
    if how == "late":
        first, second = (side(saved(run), f"{model}:{name}") for name in NAMES)
        compared = compare(first, second).metrics.set_index("metric").loc["auc"]
        tests = {"compare: sign flip": compared["p"] <= 0.05, "corrected t": compared["method_p"] <= 0.05}
    return {
        "AUC by film": rows["movie_mean"].to_numpy(),
        "these models' interval without .5": outside["movie"],
        "the method's": outside["method"],
        "said to be better": [
            sentence.startswith("better than each of the baselines") for sentence in run_report(run).answers
        ],
        **tests,
    }


LEVEL: Final = Column(high=0.05)
ORDERS: Final = {"in no order": 0.0, "smooth, .9": 0.9}
KINDS: Final[dict[str, tuple[Any, ...]]] = {
    "`linear`": ("linear",),
    "`attention`": ("attention",),
    "`attentive`": ("attentive",),
    "`--fuse late`": ("linear", "late"),
    "`--fuse concat`": ("linear", "concat"),
    "`--fuse concepts`": ("linear", "concepts"),
    "`--experts each`": ("linear", "", "each"),
    "`--experts soft`": ("linear", "", "soft"),
}

ROWS = [
    Row(
        "nulls", "docs/evaluation.md", "evaluate, compare",
        "Features that know nothing of labels, 8 films of 30 to 60 clips: AUC by film, and the share of "
        "corpora in which something is found. Clips in no order, or features and labels change slowly; "
        "`compare` of the two modalities.",
        ("model", "clips"),
        [Cell((kind, name), (what[0], order, *what[1:]))
         for name, order in ORDERS.items() for kind, what in KINDS.items()
         if order or kind in {"`linear`", "`--fuse late`"}],
        asked,
        {"AUC by film": Column(0.47, 0.53), "these models' interval without .5": Column(),
         "the method's": LEVEL, "said to be better": LEVEL, "compare: sign flip": Column(),
         "corrected t": LEVEL},
        full=60, small=3, small_cells=1,
    ),
]  # fmt: skip
