"""Figure 2 and the numbers of section 3.4 (Tores et al., CVPR 2024): levels and concepts."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from obygaze_features.manifest import Manifest, Statistics, apply_policy, policies_of, statistics
from obygaze_features.manifest.statistics import PRINTED, numbers, printed_numbers
from obygaze_models.obygaze12.corpus import VISUAL_CONCEPTS, refuse_other_codebook
from obygaze_models.report import Block, Picture, Report
from obygaze_models.report.figure import save

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb", "#332288")
"""One colour a concept; told apart by readers who do not see red or green."""

DARK = {
    concept
    for concept, colour in zip(VISUAL_CONCEPTS, COLOURS, strict=True)
    if colour in {"#4477aa", "#228833", "#aa3377", "#332288"}
}
"""Concepts whose colour black can't be read on."""
ROOM = 0.035
"""Shares that have room for their number."""


def dataset_report(manifest: Manifest) -> Report:
    """Redo Figure 2 and the numbers of section 3.4, under the label policies.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    """
    refuse_other_codebook(manifest.codebook, "Figure 2")
    counted: dict[str, Statistics] = {
        str(policy): statistics(apply_policy(manifest, policy)) for policy in policies_of(manifest.codebook)
    }
    caption = "Concepts marked at each level; label policies that give the same numbers share a panel"
    printed = printed_numbers(manifest)
    rows = [
        {"policy": policy, "number": one.name, "ours": one.shown}
        | ({"printed": printed[one.name]} if printed else {})
        for policy, counts in counted.items()
        for one in numbers(counts)
        if one.name in PRINTED
    ]
    return Report(
        name="figure2",
        title="Figure 2 and section 3.4: levels and concepts",
        notes=("the printed numbers follow the paper policy",) if printed else (),
        blocks=tuple(
            Block(
                f"label policy {policy}, {counts.n_clips} clips",
                ("share or mean", "ours", *(["printed"] if printed else [])),
                tuple(tuple(row.values())[1:] for row in rows if row["policy"] == policy),
            )
            for policy, counts in counted.items()
        ),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest()},
        pictures=(Picture("figure2", caption, partial(draw_figure2, counted)),),
    )


def draw_figure2(counted: Mapping[str, Statistics], path: Path) -> None:
    """Draw, for each reading of the labels, how the visual concepts marked at HN, NS and S are distributed.

    The same counts give the same bytes: no date, no version, no random ids.

    Parameters
    ----------
    counted
        Statistics by label policy, a panel each; policies with the same numbers share one.
    path
        A .png or .svg file.
    """
    merged: dict[str, Statistics] = {}
    for one in counted.values():
        merged[", ".join(policy for policy, other in counted.items() if other == one)] = one
    save(path, (8.5, 0.9 + 1.7 * len(merged)), partial(_draw, merged))


def _draw(merged: Mapping[str, Statistics], figure: Figure) -> None:
    panels = figure.subplots(len(merged), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (policy, one) in zip(panels, merged.items(), strict=True):
        _draw_panel(axes, policy, one)
    panels[-1].set_xlabel("share of the visual concepts marked at the level")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)


def _draw_panel(axes: Axes, policy: str, counted: Statistics) -> None:
    levels = ("S", "NS", "HN")  # drawn from the bottom up
    left = [0.0] * len(levels)
    for concept, colour in zip(VISUAL_CONCEPTS, COLOURS, strict=True):
        shares = [counted.share_of_marks(level, concept) or 0.0 for level in levels]
        bars = axes.barh(
            range(len(levels)), shares, left=left, color=colour, edgecolor="white", label=concept
        )
        written = [f"{share:.0%}" if share >= ROOM else "" for share in shares]
        ink = "white" if concept in DARK else "black"
        axes.bar_label(bars, written, label_type="center", fontsize=7, color=ink)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    axes.set_yticks(range(len(levels)), [_title(level, counted) for level in levels])
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.set_title(f"label policy: {policy}", loc="left", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _title(level: str, counted: Statistics) -> str:
    share, mean = counted.share(level), counted.mean_concepts(level)
    if share is None or mean is None:
        return f"{level}: no clip"
    return f"{level}: {share:.0%} of clips,\n{mean:.2f} concepts a clip"
