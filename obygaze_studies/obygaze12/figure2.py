"""Reproduce Figure 2 and the numbers of section 3.4 (Tores et al., CVPR 2024): levels and concepts."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from obygaze_features.manifest import (
    Manifest,
    apply_policy,
    policies_of,
)
from obygaze_models.report import Column, Picture, Report, block
from obygaze_studies.figure import GREY, WIDTH, save
from obygaze_studies.obygaze12.corpus import CODEBOOK, VISUAL_CONCEPTS, refuse_other_codebook
from obygaze_studies.obygaze12.statistics import (
    PRINTED_COUNTS,
    Statistics,
    count_table,
    printed_count_table,
    statistics,
)

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb", "#332288")
"""One colour per concept, distinct for readers who do not see red or green."""

SHADES = {"EN": "#deebf7", "HN": "#9ecae1", "NS": "#4292c6", "S": "#08519c"}
"""One shade per level, darker from level to level."""

ROOM = 0.035
"""Shares that have room for their number."""

DARK = 0.5
"""Luminance below which black can't be read on a colour."""


def dataset_report(manifest: Manifest) -> Report:
    """Reproduce Figure 2 and the numbers of section 3.4, under the label policies.

    Raises
    ------
    ProtocolError
        The labels are not those of the paper.
    """
    refuse_other_codebook(manifest.codebook, "Figure 2")
    counted: dict[str, Statistics] = {
        str(policy): statistics(apply_policy(manifest, policy)) for policy in policies_of(manifest.codebook)
    }
    printed = printed_count_table(manifest)
    rows = [
        {"policy": policy, "number": count.name, "ours": count.shown}
        | ({"printed": printed[count.name]} if printed else {})
        for policy, counts in counted.items()
        for count in count_table(counts)
        if count.name in PRINTED_COUNTS
    ]
    columns: list[Column] = [("share or mean", "number", str), ("ours", "ours", str)]
    columns += [("printed", "printed", str)] if printed else []
    blocks = []
    for policy, counts in counted.items():
        own = [row for row in rows if row["policy"] == policy]
        blocks.append(block(f"label policy {policy}, {counts.n_clips} clips", columns, own))
    return Report(
        name="figure2",
        title="Figure 2 and section 3.4: levels and concepts",
        notes=("the printed numbers follow the paper policy",) if printed else (),
        blocks=tuple(blocks),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest()},
        answers=tuple(
            f"label policy {policy}: {counts.n_clips:,} clips, "
            + ", ".join(f"{n:,} {level}" for level, n in counts.clips.items())
            for policy, counts in counted.items()
        ),
        pictures=(Picture("figure2", _caption(counted), partial(draw_figure2, counted)),),
    )


def _caption(counted: Mapping[str, Statistics]) -> str:
    first, *others = counted
    caption = f"Visual concepts marked at each level under the label policy {first}"
    if others:
        marks = [(level, concept) for level in CODEBOOK.level_names for concept in VISUAL_CONCEPTS]
        shares = {
            policy: np.array([of.share_of_marks(*mark) or 0.0 for mark in marks])
            for policy, of in counted.items()
        }
        apart = max(np.abs(shares[policy] - shares[first]).max() for policy in others)
        caption += f" (under {' and '.join(others)} no share is more than {100 * apart:.1f} points away)"
    return f"{caption}, and levels by label policy"


def draw_figure2(counted: Mapping[str, Statistics], path: Path) -> None:
    """Draw how the visual concepts marked at each level are distributed, and the levels by label policy.

    The same counts give the same bytes: no date, no version, no random ids.

    Parameters
    ----------
    counted
        Statistics by label policy. The concepts are drawn for the first: policies move or leave out clips
        without a visual concept, so that the shares of the others are the same, or nearly.
    path
        A .pdf, .png or .svg file.
    """
    first = next(iter(counted))
    ratios = (len(CODEBOOK.level_names) * 1.3, len(counted))

    def draw(figure: Figure) -> None:
        concepts, levels = figure.subplots(2, 1, sharex=True, height_ratios=ratios)
        _draw_concepts(concepts, counted[first])
        title = f"a   visual concepts marked at each level, label policy {first}"
        concepts.set_title(title, loc="left", fontsize=8)
        concepts.set_xlabel("share of the visual concepts marked at the level")
        concepts.tick_params(labelbottom=True)
        _draw_levels(levels, counted)
        levels.set_title("b   levels by label policy", loc="left", fontsize=8)
        levels.set_xlabel("share of the clips with a level")
        for axes in (concepts, levels):
            axes.set_xlim(0, 1)
            axes.xaxis.set_major_formatter("{x:.0%}")
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        figure.legend(*concepts.get_legend_handles_labels(), loc="outside upper center", ncols=4)

    save(path, (WIDTH, 2.9 + 0.44 * len(counted)), draw)


def _draw_concepts(axes: Axes, counted: Statistics) -> None:
    names = CODEBOOK.level_names
    left = [0.0] * len(names)
    for concept, colour in zip(VISUAL_CONCEPTS, COLOURS, strict=True):
        shares = [counted.share_of_marks(level, concept) or 0.0 for level in names]
        left = _stack(axes, shares, left, (colour, concept), [f"{share:.0%}" for share in shares])
    for row, level in enumerate(names):
        if not counted.mean_concepts(level):
            axes.text(0.01, row, "no visual concept is marked", va="center", fontsize=7, color=GREY)
    axes.set_yticks(range(len(names)), [_title(level, counted) for level in names])
    axes.set_ylim(len(names) - 0.5, -0.5)


def _draw_levels(axes: Axes, counted: Mapping[str, Statistics]) -> None:
    left = [0.0] * len(counted)
    for level, colour in SHADES.items():
        shares = [counts.share(level) or 0.0 for counts in counted.values()]
        left = _stack(axes, shares, left, (colour, level), [f"{level} {share:.0%}" for share in shares])
    sizes = [sum(counts.clips.values()) for counts in counted.values()]
    axes.set_yticks(
        range(len(counted)), [f"{policy}\n{n:,} clips" for policy, n in zip(counted, sizes, strict=True)]
    )
    axes.set_ylim(len(counted) - 0.5, -0.5)


def _stack(
    axes: Axes, shares: Sequence[float], left: Sequence[float], look: tuple[str, str], written: Sequence[str]
) -> list[float]:
    """Add one part to every bar, of a colour and a name, with its text where there is room; give the ends."""
    colour, label = look
    bars = axes.barh(range(len(shares)), shares, left=left, color=colour, edgecolor="white", label=label)
    shown = [text if share >= ROOM else "" for text, share in zip(written, shares, strict=True)]
    red, green, blue = to_rgb(colour)
    ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < DARK else "black"
    axes.bar_label(bars, shown, label_type="center", fontsize=7, color=ink)
    return [start + share for start, share in zip(left, shares, strict=True)]


def _title(level: str, counted: Statistics) -> str:
    mean = counted.mean_concepts(level)
    if mean is None:
        return f"{level}: no clip"
    return f"{level}: {counted.clips[level]:,} clips,\n{mean:.2f} concepts per clip"
