"""Figure 3: how well each concept is told from clips without it, against EN clips and against all."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.concepts import permutation_pvalues
from obygaze_models.evaluation import jackknife_interval
from obygaze_models.evaluation.metrics import NAN, auc, f1_pos
from obygaze_models.experiments import captions
from obygaze_models.experiments.material import Source
from obygaze_models.experiments.paper_protocol import NEGATIVES
from obygaze_models.experiments.published import FIGURE3_HARD, trivial_f1
from obygaze_models.experiments.results import PaperResults, StrictResults, one_thread
from obygaze_models.experiments.strict_concepts import enough, presence, used
from obygaze_models.figures.figure3 import Bar, draw_figure3
from obygaze_models.protocol import VISUAL_CONCEPTS
from obygaze_models.protocol.paper import Negatives, concept_folds, leak_caption
from obygaze_models.report import Block, Picture, Report, interval, number

TITLE = "Figure 3"
N_PERMUTATIONS = 1000
PRINTED_NOTE = (
    "printed: bars without numbers; the text calls the hatched bars of "
    f"{', '.join(FIGURE3_HARD)} hard to separate"
)
ALPHA = 0.05
UNDEFINED = Bar(NAN, NAN, NAN, NAN)
AGAINST = {Negatives.EN: "EN (solid)", Negatives.ALL: "all (hatched)"}


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Redo Figure 3 under the `paper` protocol: the elected SVM of each concept on fold 9."""
    material = results[0].material
    folds = [
        fold
        for negatives in NEGATIVES
        for concept in VISUAL_CONCEPTS
        for fold in concept_folds(material.manifest, concept, negatives)
    ]
    blocks, data, pictures = [], [], []
    for one in results:
        rows = _paper_rows(one)
        data += rows
        cells = tuple(
            (
                row["concept"],
                AGAINST[Negatives(row["negatives"])],
                f"{row['positives']} of {row['n_test']}",
                number(row["f1_pos"]),
                f"{row['f1_pos_min']:.3f} to {row['f1_pos_max']:.3f}",
                str(row["elected"]),
                number(row["all_positive"]),
                _printed(row),
            )
            for row in rows
        )
        headers = (
            "concept",
            "against",
            "test clips with it",
            "f1_pos",
            "of the nine splits",
            "elected split",
            "all positive",
            "printed",
        )
        blocks.append(Block(one.source.title, headers, cells, (leak_caption(folds),)))
        pictures.append(
            _picture(
                one.source,
                "paper",
                rows,
                ends=("f1_pos_min", "f1_pos_max"),
                whisker="least and most of the nine splits",
                note=f": {leak_caption(folds)}",
            )
        )
    return Report(
        name="figure3-paper",
        title=f"{TITLE}, paper protocol",
        notes=(
            *captions.paper_notes(material, folds),
            (
                "linear SVMs with the published C of each concept; the split elected is the best on its "
                "validation "
                "fold; every split is tested on the same clips"
            ),
            PRINTED_NOTE,
        ),
        blocks=tuple(blocks),
        data=pd.DataFrame(data),
        record=material.record() | {"protocol": "paper"},
        pictures=tuple(pictures),
    )


def _picture(
    source: Source,
    protocol: str,
    rows: Sequence[dict[str, Any]],
    *,
    ends: tuple[str, str],
    whisker: str,
    note: str = "",
) -> Picture:
    """Draw every concept, those without a row as undefined."""
    bars = {
        (row["negatives"], row["concept"]): Bar(
            row["f1_pos"], row[ends[0]], row[ends[1]], row["all_positive"], _mark(row)
        )
        for row in rows
    }
    solid, hatched = (
        [bars.get((str(negatives), concept), UNDEFINED) for concept in VISUAL_CONCEPTS]
        for negatives in NEGATIVES
    )
    return Picture(
        f"figure3-{protocol}-{source.label}",
        f"{TITLE} under the {protocol} protocol, {source.title}{note}",
        partial(draw_figure3, VISUAL_CONCEPTS, solid, hatched, whisker),
    )


def _mark(row: dict[str, Any]) -> str:
    if "p_holm" not in row:
        return ""
    return "*" if row["p_holm"] < ALPHA else "n.s."


def _printed(row: dict[str, Any]) -> str:
    hard = row["negatives"] == "all" and row["concept"] in FIGURE3_HARD
    return "no number; hard to separate" if hard else "no number"


def _paper_rows(one: PaperResults) -> list[dict[str, Any]]:
    table = one.concepts.predictions.table.assign(called=one.concepts.predictions.called)
    rows: list[dict[str, Any]] = []
    for negatives in NEGATIVES:
        for concept in VISUAL_CONCEPTS:
            part = table[table["task"] == f"{concept}|{negatives}"]
            values = [
                f1_pos(fold["label"].to_numpy(), fold["called"].to_numpy())
                for _, fold in part.groupby("fold")
            ]
            elected = one.concepts.elected[concept, negatives]
            first = part[part["fold"] == elected]
            rows.append(
                {
                    "features": one.source.title,
                    "concept": concept,
                    "negatives": str(negatives),
                    "f1_pos": values[elected],
                    "f1_pos_min": min(values),
                    "f1_pos_max": max(values),
                    "elected": elected,
                    "n_test": len(first),
                    "positives": int(first["label"].sum()),
                    "all_positive": trivial_f1(float(first["label"].mean()), 1.0, "f1_pos"),
                }
            )
    return rows


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Redo Figure 3 under the `strict` protocol: pooled over films, with intervals and permutation tests."""
    material = results[0].material
    kept = enough(material)
    absent = [concept for number, concept in enumerate(VISUAL_CONCEPTS) if number not in kept]
    blocks, data, pictures = [], [], []
    for one in results:
        rows = one_thread(_strict_rows, one)
        data += rows
        cells = tuple(
            (
                row["concept"],
                AGAINST[Negatives(row["negatives"])],
                f"{row['positives']} of {row['n_clips']}",
                interval(row["f1_pos"], row["f1_pos_low"], row["f1_pos_high"]),
                number(row["all_positive"]),
                number(row["auc"]),
                number(row["p"], 4),
                number(row["p_holm"], 4),
                number(row["lag1"], 2),
                _printed(row),
            )
            for row in rows
        )
        headers = (
            "concept",
            "against",
            "clips with it",
            "f1_pos [95 %]",
            "all positive",
            "auc",
            "p",
            "p (Holm)",
            "lag 1",
            "printed",
        )
        blocks.append(Block(one.source.title, headers, cells, ("no clip or film is on two sides",)))
        pictures.append(
            _picture(
                one.source,
                "strict",
                rows,
                ends=("f1_pos_low", "f1_pos_high"),
                whisker="95 % jackknife interval over films; *: p (Holm) below .05, n.s.: not",
            )
        )
    return Report(
        name="figure3-strict",
        title=f"{TITLE}, strict protocol",
        notes=(
            *captions.strict_notes(material),
            (
                "ridge CAVs, each film's by the other films; each concept's penalty is chosen by leaving "
                "these out one by one (inner-losses-*.csv)"
            ),
            (
                f"p: {N_PERMUTATIONS} circular shifts of the concept within films, of its covariance with "
                "the held-out projection; lag 1: correlation of a clip's presence with the next clip's; "
                "Holm over the concepts, for each choice of negatives; significant is not "
                "accurate"
            ),
            *([f"undefined, in too few films to leave one out: {', '.join(absent)}"] if absent else []),
            PRINTED_NOTE,
        ),
        blocks=tuple(blocks),
        data=pd.DataFrame(data),
        record=material.record() | {"protocol": "strict", "n_permutations": N_PERMUTATIONS},
        pictures=tuple(pictures),
    )


def _strict_rows(one: StrictResults) -> list[dict[str, Any]]:
    material, kept = one.material, enough(one.material)
    table = one.concepts.table.assign(called=one.concepts.called)
    rows: list[dict[str, Any]] = []
    for negatives in NEGATIVES:
        present = np.where(
            np.column_stack([used(material, concept, negatives) for concept in kept]),
            presence(material)[:, list(kept)].astype(np.float64),
            np.nan,
        )
        found = permutation_pvalues(
            one.source.X, present, material.movies, n_permutations=N_PERMUTATIONS, seed=one.seed
        )
        for place, concept in enumerate(kept):
            part = table[table["task"] == f"{VISUAL_CONCEPTS[concept]}|{negatives}"]
            y, score, called = (part[name].to_numpy() for name in ("label", "score", "called"))
            found_f1 = jackknife_interval(
                partial(_f1_pos_of, y, called), part["movie"].to_numpy(dtype=str), bounds=(0.0, 1.0)
            )
            rows.append(
                {
                    "features": one.source.title,
                    "concept": VISUAL_CONCEPTS[concept],
                    "negatives": str(negatives),
                    "f1_pos": found_f1.mean,
                    "f1_pos_low": found_f1.low,
                    "f1_pos_high": found_f1.high,
                    "auc": auc(y, score),
                    "all_positive": trivial_f1(float(y.mean()), 1.0, "f1_pos"),
                    "p": float(found.p[place]),
                    "p_holm": float(found.p_holm[place]),
                    "lag1": float(found.lag1[place]),
                    "n_clips": len(y),
                    "positives": int(y.sum()),
                }
            )
    return rows


def _f1_pos_of(y: NDArray[np.int64], called: NDArray[np.int64], rows: NDArray[np.bool_]) -> float:
    return f1_pos(y[rows], called[rows])
