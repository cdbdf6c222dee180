"""Reproduce Figure 5: the decision tree on concepts for S against EN, its first four levels."""

import math
from collections.abc import Sequence
from typing import Any

from obygaze_models.concepts import node_counts
from obygaze_models.report import Report
from obygaze_studies.audit_common.findings import drawn_by
from obygaze_studies.obygaze12.corpus import TASKS, VISUAL_CONCEPTS, SourcePart, declared_block
from obygaze_studies.obygaze12.paper_folds import Negatives, head_fold, leak_caption
from obygaze_studies.obygaze12.protocol_results import TREES, PaperResults, StrictResults

TASK = "en_s"

N_LEVELS = 4
"""Number of levels of the tree that are shown and drawn, as in the paper."""

PRINTED_DEPTH = 10
"""Depth of the tree that the paper prints."""


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 5, the decision tree of PCBM-DT, under the `paper` protocol.

    Parameters
    ----------
    results
        The trained models of each source, all of the same corpus.
    """
    corpus = results[0].corpus
    limits = TREES[TASK]  # how far the original code lets a tree for EN vs S grow
    fold = head_fold(corpus.manifest, train=TASKS[TASK], test=TASKS[TASK])  # that the tree is trained on

    note_on_leaks = f"{leak_caption([fold], corpus.first_source)}; its CAVs are fitted on its training clips"
    note_on_training = (
        "trained on the head's clips of EN vs S, CAVs against EN; "
        f"the original code's limits for this task are depth {limits['max_depth']} "
        f"and {limits['min_samples_leaf']} clips a leaf"
    )
    # The paper draws a deeper tree than its code can grow: a note says so where its clips are used.
    if corpus.has_printed_numbers and limits["max_depth"] < PRINTED_DEPTH:
        note_on_training += f", which can't give the printed depth of {PRINTED_DEPTH}"

    parts = []
    for result in results:
        # The tree that reads values of CAVs that were fitted against EN clips.
        tree = result.heads.trees[TASK, Negatives.EN]
        parts.append(
            _part(
                result,
                tree,
                concepts=VISUAL_CONCEPTS,
                note=note_on_leaks,
                caption_words=f": {note_on_leaks}",
            )
        )
    record = {"task": TASK, "max_depth": limits["max_depth"]}
    return corpus.report("figure5", parts, record, notes=[note_on_training], folds=[fold])


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 5 under `strict`: one tree of all movies, its depth chosen by inner folds.

    `results` are the trained models of each source, all of the same corpus.
    """
    parts = []
    for result in results:
        model = result.tree
        losses = ", ".join(f"{tried.name} {tried.inner_loss:.4f}" for tried in model.candidates_)
        note = f"log loss of the inner loop by depth: {losses}"
        parts.append(_part(result, model.head_, model.concepts_, note))
    return results[0].corpus.report("figure5", parts, {"task": TASK})


def _part(
    result: PaperResults | StrictResults,
    tree: Any,
    concepts: Sequence[str],
    note: str,
    caption_words: str = "",
) -> SourcePart:
    """Make the part of one source: the tree's first nodes as a table, and the tree as a figure.

    Parameters
    ----------
    result
        The results that the tree is of; under `paper`, the table's title gives its depth.
    tree
        The fitted decision tree.
    concepts
        Names of its features.
    note
        Note under the table.
    caption_words
        Words that are added to the caption of the figure, under the `paper` protocol.
    """
    nodes = tree_nodes(tree, concepts)
    source = result.source
    # Under `strict` the note of the table says which depth was chosen.
    depth = f", depth {tree.get_depth()}" if isinstance(result, PaperResults) else ""
    shown_nodes = [node for node in nodes if node["depth"] < N_LEVELS]
    block = declared_block(
        source.title + depth,
        shown_nodes,
        (note,),
        columns_of=("figure5", "nodes"),
        writers={  # how cells of these columns are formatted
            "branch": _format_branch,
            "asked": _format_concept,
            "threshold": _format_threshold,
        },
    )

    if len(nodes) > 1:
        answer = f"the tree of {len(nodes)} nodes asks for {nodes[0]['concept']} first"
    else:
        answer = "the tree asks for no concept"

    return SourcePart(
        source=source,
        rows=[{"features": source.title} | node for node in nodes],
        blocks=[block],
        answers=[f"{source.title}: {answer}"],
        draw=drawn_by("draw_tree", tree=tree, features=concepts, classes=("EN", "S"), n_levels=N_LEVELS),
        caption_words=caption_words,
    )


def _format_branch(depth: int, side: str) -> str:
    """Write the side of its parent that a node is on, indented by its depth; "all" for the root."""
    return f"{'. ' * depth}{side or 'all'}"


def _format_concept(concept: str) -> str:
    """Write the concept that a node asks for; a leaf asks for none."""
    return concept or "(leaf)"


def _format_threshold(threshold: float) -> str:
    """Write the threshold of a node; nothing for a leaf, whose threshold is NaN."""
    if math.isnan(threshold):
        return ""
    return f"{threshold:.6g}"


def tree_nodes(tree: Any, concepts: Sequence[str]) -> list[dict[str, Any]]:
    """List the nodes of a scikit-learn tree, parents before children, the low side before the high one.

    Returns
    -------
    A row for each node: `number`; `depth`; `parent`, -1 for the root; `side`, "low" if the parent's concept
    is at most its threshold and "high" if it is above; the `concept` and `threshold` that the node tests, ""
    and NaN for a leaf; `n_train`, its training clips, and the share of positive ones, `share_positive`.
    """
    counts = node_counts(tree)
    arrays = tree.tree_
    nodes: list[dict[str, Any]] = []
    # Number of a node -> where it is in the tree: its depth, its parent, and which side of it. A parent has a
    # lower number than its children in scikit-learn, so that the position of each node is known in time.
    position_of: dict[int, dict[str, Any]] = {0: {"depth": 0, "parent": -1, "side": ""}}
    for number in range(arrays.node_count):
        position = position_of[number]
        low = int(arrays.children_left[number])
        high = int(arrays.children_right[number])
        is_leaf = low == high  # both are -1

        concept = ""
        threshold = math.nan
        if not is_leaf:
            depth = position["depth"] + 1
            position_of[low] = {"depth": depth, "parent": number, "side": "low"}
            position_of[high] = {"depth": depth, "parent": number, "side": "high"}
            concept = concepts[int(arrays.feature[number])]
            threshold = float(arrays.threshold[number])

        node = {"number": number, **position, "concept": concept, "threshold": threshold}
        node["n_train"] = int(arrays.n_node_samples[number])
        node["share_positive"] = float(counts[number, 1] / counts[number].sum())
        nodes.append(node)
    return nodes
