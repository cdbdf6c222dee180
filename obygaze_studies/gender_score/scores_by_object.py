"""Sum Gender Scores by object: bias ratios, Gender Object Distance, examples (Sabir and Padró 2023)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from obygaze_models.report import Block, block
from obygaze_studies.audit_common.audit_tables import table
from obygaze_studies.audit_common.published_values import EXAMPLE_VALUES, EXAMPLES, TOTALS
from obygaze_studies.caption_words import tokens
from obygaze_studies.columns import plain
from obygaze_studies.gender_score.cooc import GENDERS, Gender, holds, share

N_SHOWN = 30
"""Objects shown, the most frequent ones; the JSON file has all."""

N_EXAMPLES = 4
"""Examples shown of each kind."""


@dataclass(frozen=True, slots=True)
class ScoredObject:
    """One object beside one caption with a gender in it.

    Attributes
    ----------
    caption_id, image_id, caption : str
    label : str
    gender : {"man", "woman"}
        That the scored text names.
    named : str
        What the caption itself names: a gender, or "masked".
    distance : float
        The poster's Gender Object Distance: the cosine similarity of text and label.
    score : float
        The revised belief.
    """

    caption_id: str
    image_id: str
    caption: str
    label: str
    gender: Gender
    named: str
    distance: float
    score: float


def by_object(
    parts: Sequence[ScoredObject], objects: Sequence[str] | None = None, model: str | None = None
) -> list[dict[str, Any]]:
    """Sum scored objects by name, those of most captions first.

    Parameters
    ----------
    parts
        Of all captions that could be scored.
    objects
        Names to sum up by; a label counts for each name whose words it holds. By default every label is one.
    model
        A captioner of the published table, to put its values beside.

    Returns
    -------
    A row for each object: mean distances and scores, `to_man` by their sums and, where captions were scored
    with both genders, by the captions whose own gender has the larger score.
    """
    if objects is None:
        groups = {label: [part for part in parts if part.label == label] for label in _labels(parts)}
    else:
        held = {label: tokens(label) for label in _labels(parts)}
        groups = {name: [part for part in parts if holds(held[part.label], tokens(name))] for name in objects}
    printed = TOTALS[model] if model else None
    rows = []
    for name, own in groups.items():
        of: dict[Gender, list[ScoredObject]] = {
            gender: [part for part in own if part.gender == gender] for gender in GENDERS
        }
        sums = {gender: math.fsum(part.score for part in scored) for gender, scored in of.items()}
        correct = _correct(own)
        rows.append(
            {
                "object": name,
                "n_captions": len({part.caption_id for part in own}),
                **{f"distance_{gender}": _mean([part.distance for part in of[gender]]) for gender in GENDERS},
                **{f"gs_{gender}": _mean([part.score for part in of[gender]]) for gender in GENDERS},
                "to_man": share(sums["man"], sums["woman"]),
                "to_woman": share(sums["woman"], sums["man"]),
                **{f"n_correct_{gender}": correct[gender] for gender in GENDERS},
                "to_man_by_n_correct": share(correct["man"], correct["woman"]),
                "published_to_man": printed.score_to_man.get(name) if printed else None,
                "published_to_woman": printed.score_to_woman.get(name) if printed else None,
            }
        )
    return sorted(rows, key=lambda row: (-row["n_captions"], row["object"]))


def _correct(parts: Sequence[ScoredObject]) -> dict[Gender, int]:
    """Count the captions beside an object whose own gender has the larger score of both; a tie is man."""
    scores: dict[tuple[str, str], dict[Gender, float]] = {}
    for part in parts:
        scores.setdefault((part.caption_id, part.named), {})[part.gender] = part.score
    counts: dict[Gender, int] = dict.fromkeys(GENDERS, 0)
    for (_, named), both in scores.items():
        if len(both) == len(GENDERS):
            larger: Gender = "man" if both["man"] >= both["woman"] else "woman"
            counts[larger] += named == larger
    return counts


def object_blocks(rows: Sequence[Mapping[str, Any]], model: str | None, *, estimated: bool) -> list[Block]:
    """Show the Gender Score and the Gender Object Distance by object."""
    shown = rows[:N_SHOWN]
    more = [f"the {len(shown)} most frequent of {len(rows)} objects"] if len(rows) > len(shown) else []
    columns = ["object", "n_captions", "gs_man", "gs_woman", "to_man", "to_woman"]
    columns += ["to_man_by_n_correct"] if estimated else []
    columns += ["published_to_man", "published_to_woman"] if model else []
    return [
        table("Gender Score by object", shown, columns, more),
        table(
            "Gender Object Distance",
            shown,
            ["object", "n_captions", "distance_man", "distance_woman"],
            ["mean cosine similarity of caption and object: the larger, the nearer", *more],
        ),
    ]


def examples(parts: Sequence[ScoredObject]) -> list[dict[str, Any]]:
    """Choose captions with both genders in: nearest to man, to woman, and to neither.

    Returns
    -------
    Rows in this order: nearest_to, visual (the object's label), caption, caption_id, image_id, and for each
    gender distance and gs.
    """
    pairs: dict[tuple[str, str], dict[Gender, ScoredObject]] = {}
    for part in parts:
        pairs.setdefault((part.caption_id, part.label), {})[part.gender] = part
    ratios = {}
    for key, both in pairs.items():
        if len(both) == len(GENDERS):
            ratio = share(both["man"].score, both["woman"].score)
            if ratio is not None:
                ratios[key] = (ratio, both)
    ordered = sorted(ratios, key=lambda key: (ratios[key][0], key))
    men = [key for key in ordered[::-1] if ratios[key][0] > 0.5]
    women = [key for key in ordered if ratios[key][0] < 0.5]
    even = sorted(ratios, key=lambda key: (abs(ratios[key][0] - 0.5), key))
    chosen: dict[tuple[str, str], str] = {}
    for kind, keys in (("man", men), ("woman", women), ("neither", even)):
        free = [key for key in keys if key not in chosen]
        chosen |= dict.fromkeys(free[:N_EXAMPLES], kind)
    rows = []
    for key, kind in chosen.items():
        both = ratios[key][1]
        of_man = both["man"]
        rows.append(
            {
                "nearest_to": kind,
                "visual": of_man.label,
                "caption": of_man.caption,
                "caption_id": of_man.caption_id,
                "image_id": of_man.image_id,
                **{f"distance_{gender}": both[gender].distance for gender in GENDERS},
                **{f"gs_{gender}": both[gender].score for gender in GENDERS},
            }
        )
    return rows


def example_blocks(rows: Sequence[Mapping[str, Any]], model: str | None) -> list[Block]:
    """Show examples as tables, beside the poster's if a captioner is named."""
    if not rows:
        return []
    texts = plain(("caption_id", "nearest_to", "visual", "caption"))
    numbers = [(name.replace("_", " ").replace("gs", "GS"), name, "{:.2f}".format) for name in EXAMPLE_VALUES]
    blocks = [block("Examples", [*texts, *numbers], rows)]
    if model:
        printed = [
            {"visual": example.visual, "caption": example.caption}
            | dict(zip(EXAMPLE_VALUES, example.values, strict=True))
            for example in EXAMPLES
        ]
        title = "Examples of the poster, whose captioner it does not name"
        blocks.append(block(title, [*texts[2:], *numbers], printed))
    return blocks


def _labels(parts: Sequence[ScoredObject]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.label for part in parts))


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
