"""Reproduce Figure 2 and the numbers of section 3.4 (Tores et al., CVPR 2024): levels and concepts."""

from collections.abc import Mapping

import pandas as pd

from obygaze_features.manifest import Manifest, apply_policy, policies_of
from obygaze_models.report import Column, Picture, Report, block
from obygaze_studies.audit_common.findings import drawn_by
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, refuse_other_codebook
from obygaze_studies.obygaze12.import_annotations import CODEBOOK
from obygaze_studies.obygaze12.statistics import (
    PRINTED_COUNTS,
    Statistics,
    count_table,
    printed_count_table,
    statistics,
)


def figure2(manifest: Manifest) -> Report:
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
    first = next(iter(counted))
    caption = (
        f"Visual concepts marked at each level under the label policy {first}, and levels by label policy"
    )
    draw = drawn_by("draw_stacks", panels=_panels(counted), axis="share")
    return Report(
        name="figure2",
        title="Figure 2 and section 3.4: levels and concepts",
        notes=("the printed numbers follow the paper policy",) if printed else (),
        blocks=tuple(
            block(
                f"label policy {policy}, {counts.n_clips} clips",
                columns,
                [row for row in rows if row["policy"] == policy],
            )
            for policy, counts in counted.items()
        ),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest()},
        answers=tuple(
            f"label policy {policy}: {counts.n_clips:,} clips, "
            + ", ".join(f"{n:,} {level}" for level, n in counts.clips.items())
            for policy, counts in counted.items()
        ),
        pictures=(Picture("figure2", caption, draw),),
    )


def _panels(counted: Mapping[str, Statistics]) -> dict[str, dict[str, dict[str, float]]]:
    """Lay out the shares of the visual concepts marked at each level, and of the levels by label policy.

    Concepts are those of the first policy: policies move or leave out clips without a visual concept, so that
    the shares of the others are the same, or nearly.
    """
    policy, first = next(iter(counted.items()))
    marks = {
        f"{level}: {first.clips[level]:,} clips,\n{first.mean_concepts(level) or 0:.2f} concepts per clip": {
            concept: first.share_of_marks(level, concept) or 0.0 for concept in VISUAL_CONCEPTS
        }
        for level in CODEBOOK.level_names
    }
    levels = {
        f"{policy}\n{sum(counts.clips.values()):,} clips": {
            level: counts.share(level) or 0.0 for level in CODEBOOK.level_names
        }
        for policy, counts in counted.items()
    }
    return {
        f"a   visual concepts marked at each level, label policy {policy}": marks,
        "b   levels by label policy": levels,
    }
