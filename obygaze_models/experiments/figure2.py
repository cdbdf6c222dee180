"""Figure 2 and the numbers of section 3.4: how many clips of which level, and which concepts."""

from functools import partial

import pandas as pd

from obygaze_features.manifest import Manifest, Statistics, apply_policy, policies_of, statistics
from obygaze_features.manifest.statistics import PRINTED, numbers, printed_numbers
from obygaze_models.figures.figure2 import draw_figure2
from obygaze_models.report import Block, Picture, Report


def dataset_report(manifest: Manifest) -> Report:
    """Redo Figure 2 and the numbers of section 3.4, under the label policies."""
    counted: dict[str, Statistics] = {
        str(policy): statistics(apply_policy(manifest, policy)) for policy in policies_of(manifest.codebook)
    }
    caption = "Concepts marked at each level; label policies that give the same numbers share a panel"
    printed = printed_numbers(manifest)
    rows = [
        {"policy": policy, "number": one.name, "ours": one.shown, "printed": printed.get(one.name, "")}
        for policy, counts in counted.items()
        for one in numbers(counts)
        if one.name in PRINTED
    ]
    return Report(
        name="figure2",
        title="Figure 2 and section 3.4: levels and concepts",
        notes=("the printed numbers follow the paper policy",)
        if printed
        else ("not the films of the papers",),
        blocks=tuple(
            Block(
                f"label policy {policy}, {counts.n_clips} clips",
                ("share or mean", "ours", "printed"),
                tuple(
                    (row["number"], row["ours"], row["printed"]) for row in rows if row["policy"] == policy
                ),
            )
            for policy, counts in counted.items()
        ),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest()},
        pictures=(Picture("figure2", caption, partial(draw_figure2, counted)),),
    )
