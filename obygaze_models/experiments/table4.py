"""Table 4: films that were not trained on, each by itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from obygaze_models.evaluation import METRICS, t_interval
from obygaze_models.evaluation.metrics import f1_pos, f1_weighted
from obygaze_models.experiments import captions
from obygaze_models.experiments.paper_protocol import FILM_PAIRS, pair_folds
from obygaze_models.experiments.published import TABLE4, TABLE4_MEAN, title_of, trivial_f1
from obygaze_models.experiments.results import PaperResults, StrictResults
from obygaze_models.protocol.paper import leak_caption
from obygaze_models.report import Block, Report, interval, mean_sd, number
from obygaze_models.report.format import NOTHING

TITLE = "Table 4"
TASK = ">".join(FILM_PAIRS)


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Redo Table 4 under the `paper` protocol: mean and SD over each film's nine validation films."""
    material = results[0].material
    folds = pair_folds(material)
    blocks, data = [], []
    for one in results:
        pairs = _pairs(one)
        rows = []
        printed_for = one.source.printed_row == "X-CLIP"
        for movie, part in pairs.groupby("movie", sort=False):
            printed = TABLE4.get(str(movie)) if printed_for else None
            p = float(part["prevalence"].iloc[0])
            rows.append(
                (
                    title_of(str(movie)),
                    str(part["n_clips"].iloc[0]),
                    f"{p:.3f}",
                    mean_sd(part["f1_weighted"].tolist()),
                    str(printed or NOTHING),
                    mean_sd(part["f1_pos"].tolist()),
                    number(trivial_f1(p, 1.0, "f1_pos")),
                )
            )
            data.append(
                {
                    "features": one.source.title,
                    "movie": movie,
                    "film": title_of(str(movie)),
                    "n_clips": part["n_clips"].iloc[0],
                    "prevalence": p,
                    "n_pairs": len(part),
                    "f1_weighted": part["f1_weighted"].mean(),
                    "f1_weighted_sd": part["f1_weighted"].std(ddof=0),
                    "f1_pos": part["f1_pos"].mean(),
                    "f1_pos_sd": part["f1_pos"].std(ddof=0),
                    "printed": printed.mean if printed else float("nan"),
                    "printed_sd": printed.sd if printed else float("nan"),
                }
            )
        means = pairs.groupby("movie", sort=False)[["f1_weighted", "f1_pos"]].mean()
        rows.append(
            (
                "mean over films",
                "",
                "",
                number(float(means["f1_weighted"].mean())),
                str(TABLE4_MEAN) if printed_for else NOTHING,
                number(float(means["f1_pos"].mean())),
                "",
            )
        )
        blocks.append(
            Block(
                one.source.title,
                ("film", "clips", "prevalence", "f1_weighted", "printed", "f1_pos", "all positive, f1_pos"),
                tuple(rows),
                (f"{len(pairs)} film pairs; {leak_caption(folds)}, and no film is on two sides",),
            )
        )
    return Report(
        name="table4-paper",
        title=f"{TITLE}, paper protocol",
        notes=(
            *captions.paper_notes(material, folds),
            (
                "mean (SD) over the validation films of each test film; the papers do not say which F1 they "
                "print"
            ),
            (
                "the two pairs of two films have the same training clips and the same seed: one training, "
                "which each validation film stops on its own"
            ),
            *_printed_note([one.source.printed_row for one in results]),
        ),
        blocks=tuple(blocks),
        data=pd.DataFrame(data),
        record=material.record() | {"protocol": "paper", "seed": results[0].seed},
    )


def _printed_note(rows: Sequence[str | None]) -> list[str]:
    if "X-CLIP" in rows:
        return []
    films = "; ".join(f"{title_of(movie)} {printed}" for movie, printed in TABLE4.items())
    return [f"printed for X-CLIP (000, Table 4): {films}; mean {TABLE4_MEAN}"]


def _pairs(one: PaperResults) -> pd.DataFrame:
    """Compute both F1 of each film pair, in the order of the pairs."""
    table = one.film_pairs.table.assign(called=one.film_pairs.called)
    rows: list[dict[str, Any]] = []
    for fold, part in table.groupby("fold"):
        y, called = part["label"].to_numpy(), part["called"].to_numpy()
        rows.append(
            {
                "fold": fold,
                "movie": part["movie"].iloc[0],
                "n_clips": len(y),
                "prevalence": float(y.mean()),
                "f1_weighted": f1_weighted(y, called),
                "f1_pos": f1_pos(y, called),
            }
        )
    return pd.DataFrame(rows)


SHOWN = ("average_precision", "f1_pos", "f1_weighted", "auc")
POSITIVE = ("average_precision", "f1_pos")
"""Those that need no negative clip."""


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Redo Table 4 under the `strict` protocol: each film once, by models of all the others."""
    material = results[0].material
    blocks, data = [], []
    for one in results:
        table = one.classifiers.table.assign(called=one.classifiers.called)
        part = table[(table["model"] == "mlp") & (table["task"] == TASK)]
        printed_for = one.source.printed_row == "X-CLIP"
        films: list[dict[str, Any]] = []
        for movie, own in part.groupby("movie"):
            y, score, called = (own[name].to_numpy() for name in ("label", "score", "called"))
            films.append(
                {
                    "features": one.source.title,
                    "movie": movie,
                    "film": title_of(str(movie)),
                    "n_clips": len(y),
                    "prevalence": float(y.mean()),
                    **{name: METRICS[name](y, score, called) for name in SHOWN},
                    "printed": TABLE4[str(movie)].mean if printed_for and movie in TABLE4 else float("nan"),
                }
            )
        data += films
        rows = [
            (
                str(film["film"]),
                str(film["n_clips"]),
                number(film["prevalence"]),
                *(number(film[name]) for name in SHOWN),
                NOTHING if np.isnan(film["printed"]) else str(TABLE4[str(film["movie"])]),
            )
            for film in films
        ]
        means = [t_interval([film[name] for film in films], bounds=METRICS[name].bounds) for name in SHOWN]
        labels = [own["label"].to_numpy() for _, own in part.groupby("movie")]
        # Without a positive clip a film defines neither AP nor F1, and with one class no AUC.
        chances = [
            METRICS[name].chance([y for y in labels if y.any() and (name in POSITIVE or not y.all())])
            for name in SHOWN
        ]
        rows.append(
            (
                "mean over films [95 %]",
                "",
                "",
                *(interval(mean.mean, mean.low, mean.high) for mean in means),
                str(TABLE4_MEAN) if printed_for else NOTHING,
            )
        )
        rows.append(("chance level, mean over films", "", "", *map(number, chances), NOTHING))
        blocks.append(
            Block(
                one.source.title,
                ("film", "clips", "prevalence", "AP", "f1_pos", "f1_weighted", "auc", "printed"),
                tuple(rows),
                ("no clip or film is on two sides",),
            )
        )
    return Report(
        name="table4-strict",
        title=f"{TITLE}, strict protocol",
        notes=(
            *captions.strict_notes(material),
            captions.IMBALANCE["none"],
            (
                "train HN vs S, test (EN u HN) vs S; chance level: of AP a random ranking of a "
                "film's clips, of F1 the best constant, of AUC 0.5"
            ),
            (
                "mean over films with Student's interval, of these trained models; the two films that the "
                "published table always trains on are tested too"
            ),
            *_printed_note([one.source.printed_row for one in results]),
        ),
        blocks=tuple(blocks),
        data=pd.DataFrame(data),
        record=material.record() | {"protocol": "strict", "seed": results[0].seed},
    )
