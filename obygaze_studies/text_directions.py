"""Compare the text directions of concepts with CAVs learnt from labels.

The CAV of a concept is the direction of ridge regression of its presence on the features, both centred within
movies, so that nothing that tells movies apart counts. A text direction is the mean of a concept's unit text
vectors less the mean over all concepts, since what all texts share tells no concept from another. Their
cosine is held against circular shifts of the presences within movies (see `evaluation.significance`), which
keep labels and features as they are but for their alignment.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_features.store import Store
from obygaze_models.blas import one_blas_thread
from obygaze_models.commands import read_inputs
from obygaze_models.concepts import TEXT_KINDS, read_concept_texts, unit_length
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.evaluation import SHIFTS_AT_ONCE, centred_within, circular_shifts, holm
from obygaze_models.report import Block, Column, block, number
from obygaze_studies.audit_common.findings import Finding, audited
from obygaze_studies.errors import AuditError

MIN_MOVIES = 2

PENALTY = 1.0
"""Ridge penalty, in mean variances of the centred features' directions."""

Numbers = NDArray[np.float64]


def agreement(
    data: Dataset, directions: Numbers, concepts: tuple[str, ...], n_permutations: int, seed: int
) -> tuple[Numbers, dict[str, NDArray[Any]]]:
    """Compare K concepts' CAVs with K directions [K, D].

    Returns
    -------
    cosines : ndarray, shape [K, K]
        Of the CAV of each row with the texts of each column.
    of_concepts : dict of str to ndarray, shape [K]
        `cosine` with its own texts; `null_mean` and `null_high`, mean and 97.5 % quantile of drawn cosines;
        `p`, the share of the draws, the labels as they are among them, whose CAV is at least as near to the
        texts; and `rank`, the place of its own texts among all; 1 is the nearest.
    """
    groups = np.unique(data.movies, return_inverse=True)[1]
    features = centred_within(data.X.astype(np.float64), groups)
    labels = centred_within(data.present[list(concepts)].to_numpy(), groups)
    towards = unit_length(directions)
    with one_blas_thread():
        ridge = PENALTY * float(np.sum(features * features)) / min(features.shape)
        if ridge <= 0:
            raise AuditError("the features are constant in every movie: no CAV can be fitted")
        moments = features.T @ features + ridge * np.eye(features.shape[1])
        fit = linalg.solve(moments, features.T, assume_a="pos").T
        cosines = unit_length(labels.T @ fit) @ towards.T
        orders = circular_shifts(groups, n_permutations, np.random.default_rng(seed))
        drawn = np.empty((n_permutations, len(concepts)))
        for start in range(0, n_permutations, SHIFTS_AT_ONCE):
            rows = slice(start, start + SHIFTS_AT_ONCE)
            for concept, z in enumerate(np.ascontiguousarray(labels.T)):
                drawn[rows, concept] = unit_length(z[orders[rows]] @ fit) @ towards[concept]
    own = np.diagonal(cosines)
    # Tolerance for rounding: a shift that changes nothing must count.
    reached = 1 + (drawn >= own - 1e-9).sum(axis=0)
    return cosines, {
        "cosine": own,
        "null_mean": drawn.mean(axis=0),
        "null_high": np.quantile(drawn, 0.975, axis=0),
        "p": reached / (n_permutations + 1),
        "rank": 1 + (cosines > own[:, None]).sum(axis=1),
    }


def prepare(manifest: Path, store: Path, texts: Store, backbone: str | None, **how: Any) -> dict[str, Any]:
    """Load the clips: what `audit_text_directions` takes."""
    clips, (opened,) = read_inputs(manifest, [store])
    return how | {"data": load_dataset(opened, clips, backbone=backbone), "texts": texts}


@audited("text-directions")
def audit_text_directions(
    data: Dataset, texts: Store, *, n_permutations: int = 1000, seed: int = 0
) -> Finding:
    """Compare the texts of a codebook's concepts with CAVs learnt from labels.

    Parameters
    ----------
    data : Dataset
        Of pooled vectors; the clips of a movie in the order of the film.
    texts : Store
        With the texts that `obygaze codebook texts` lists, in the space of the clips.
    n_permutations, seed : int

    Raises
    ------
    AuditError
        Fewer than two concepts vary within at least two movies.
    ConceptError
        Texts and clips do not compare, or a text is missing.
    """
    vectors_of = read_concept_texts(texts, data)
    known = list(data.present.columns)
    varying = {
        concept: data.present[concept].groupby(data.movies).nunique().gt(1).sum() >= MIN_MOVIES
        for concept in known
    }
    varies = [concept for concept in known if varying[concept]]
    rows: list[dict[str, Any]] = []
    blocks: list[Block] = []
    for kind in TEXT_KINDS:
        concepts = tuple(concept for concept in varies if (concept, kind) in vectors_of)
        if len(concepts) < 2:
            continue
        means = np.stack([vectors_of[concept, kind].vectors.mean(axis=0) for concept in concepts])
        directions = means - means.mean(axis=0)
        cosines, of_concepts = agreement(data, directions, concepts, n_permutations, seed)
        for index, concept in enumerate(concepts):
            about = {"concept": concept, "kind": kind, "n_texts": len(vectors_of[concept, kind].texts)}
            about |= {"n_with": int(data.present[concept].sum())}
            rows.append(about | {name: values[index].item() for name, values in of_concepts.items()})
        columns: list[Column] = [("CAV", "CAV", str), *((concept, concept, number) for concept in concepts)]
        own = (dict(zip(concepts, values, strict=True)) for values in cosines.tolist())
        matrix = [{"CAV": concept} | values for concept, values in zip(concepts, own, strict=True)]
        title = f"Cosine of each CAV (rows) with the texts of each concept ({kind})"
        blocks.append(block(title, columns, matrix))
    if not rows:
        raise AuditError(
            "fewer than two concepts with texts vary within at least two movies: nothing to compare"
        )
    for row, p in zip(rows, holm(np.array([row["p"] for row in rows])), strict=True):
        row["p_holm"] = float(p)
    rank = f"rank: place of a concept's own texts among those of {len(varies)} concepts; 1 is the nearest"
    left_out = ", ".join(concept for concept in known if not varying[concept])
    why = f"left out, since they vary within fewer than {MIN_MOVIES} movies: {left_out}"
    return Finding(
        rows=rows,
        blocks=blocks,
        said={"n_nearest": sum(row["rank"] == 1 for row in rows), "n_rows": len(rows)},
        record={
            "backbone": data.title,
            "store": data.store,
            "texts": texts.fingerprint,
            "codebook": data.codebook.name,
            "n_clips": len(data),
            "n_movies": len(set(data.movies.tolist())),
            "n_permutations": n_permutations,
            "seed": seed,
        },
        notes=[rank, *([why] if left_out else [])],
    )
