"""Compute Gender Scores of captions, as they are or with both genders put in, and sum them up by object.

Bias ratios, Gender Object Distance and examples are those of Sabir and Padró (2023).
"""

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from obygaze_models.report import Block, Report, block, cell
from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart, plain, table
from obygaze_studies.audit_common.inputs import Row, refuse_unknown
from obygaze_studies.caption_words import tokens
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.belief_revision import Detected, Scorer, detected, joined
from obygaze_studies.gender_score.cooc import GENDERS, Gender, filled, has_mask, holds, named, share
from obygaze_studies.gender_score.published_values import EXAMPLE_VALUES, EXAMPLES, TOTALS

KEPT = ("caption_id", "image_id", "caption")
"""Columns of captions that results keep."""

N_SHOWN = 30
"""Objects shown, the most frequent ones; the JSON file has all."""

N_EXAMPLES = 4
"""Examples shown of each kind."""

Mode = Literal["gs", "ge"]
"""gs: the caption as it is. ge, estimation: man and woman in turn in the place of its gender."""

LabelsMode = Literal["each", "joined"]
"""How an image with several objects counts: the mean over them, or their labels joined into one."""


ScoredObject = Mapping[str, Any]
"""One object beside one caption with a gender in it: the caption's id, image and text; the object's `label`;
the `gender` that the scored text names; what the caption itself is `named`, a gender or "masked"; `distance`,
the poster's Gender Object Distance, the cosine similarity of text and label; `score`, the revised belief."""


def needed_texts(
    captions: Sequence[Row], objects: Sequence[Row], mode: Mode, labels: LabelsMode
) -> list[str]:
    """List every text that needs an embedding: captions or their variants, then their images' labels."""
    found = detected(objects)
    texts = [text for row in captions for text in _variants(row["caption"], mode).values()]
    texts += [one.label for row in captions for one in _chosen(found.get(row["image_id"], ()), labels)]
    return list(dict.fromkeys(texts))


def _chosen(objects: Sequence[Detected], labels: LabelsMode) -> Sequence[Detected]:
    return joined(objects) if labels == "joined" else objects


def _variants(caption: str, mode: Mode) -> dict[Gender | None, str]:
    """Return the texts to score: with each gender put in, or the caption as it is."""
    if mode == "gs":
        return {None: caption}
    if not has_mask(caption) and len(named(caption)) != 1:
        return {}
    return {gender: filled(caption, gender) for gender in GENDERS}


@audited(
    Wording(
        name="gender-score",
        title="Gender Scores of captions",
        table="Captions",
        columns=(
            "caption_id",
            "gender",
        ),
        sentence="share of man ({reading}): {found}, of {n:,} of {n_rows:,} captions",
        source="Sabir and Padró 2023, Gender Score; gender by the words man and woman",
        figure="Share of man",
    )
)
def audit_gender_score(
    captions: Sequence[Row],
    objects: Mapping[str, Sequence[Detected]],
    scorer: Scorer,
    *,
    mode: Mode = "gs",
    labels: LabelsMode = "each",
    origin: Mapping[str, object] | None = None,
    model: str | None = None,
    names: Sequence[str] | None = None,
) -> Finding:
    """Score every caption; what can't be scored is a row with its reason, and never counts as 0.

    Parameters
    ----------
    captions
        Rows with caption_id, image_id, caption.
    objects
        Image id -> its objects.
    scorer
        Priors and similarities.
    origin
        What to record of where these came from.
    model
        A captioner of the published table, to put its values beside those of estimation.
    names
        Objects to sum up by; a label counts for each whose words it holds. By default every label.

    Raises
    ------
    AuditError
        No caption at all could be scored, the captioner is unknown, or its values are of the other mode.
    """
    refuse_unknown(model, TOTALS)
    estimated = mode == "ge"
    if model is not None and not estimated:
        raise AuditError("the published values are of estimation, not of captions as they are: use mode ge")
    beside = [_chosen(objects.get(row["image_id"], ()), labels) for row in captions]
    scored = [_scored(row, chosen, scorer, mode) for row, chosen in zip(captions, beside, strict=True)]
    rows, parts = [row for row, _ in scored], [part for _, own in scored for part in own]
    reasons = [str(row["left_out"]) for row in rows if row["left_out"]]
    if len(reasons) == len(rows):
        first = f"{captions[0]['caption_id']}: {reasons[0]}"
        raise AuditError(f"none of {len(rows)} captions could be scored; {first}")
    of_objects, shown = by_object(parts, names, model), examples(parts) if estimated else []
    by_gender = _by_gender(rows, mode, model)
    man, woman = by_gender["man"], by_gender["woman"]
    # Several readings, since the source does not define its count; captions as they are predict no gender.
    predicted = ("n_predicted", "n_correct") if estimated else ()
    readings = ("sum", "mean", *predicted, *(["published"] if model else []))
    shares = {name: share(man[name] or 0, woman[name] or 0) for name in readings}
    summary = {
        "by_gender": by_gender,
        **{f"to_man_by_{name}": value for name, value in shares.items()},
        "genders_named": dict(Counter(row["gender"] for row in rows)),
        "n_left_out": len(reasons),
        "by_object": of_objects,
        "examples": shown,
    }
    reading, found = next(iter(shares.items()))
    scored_rows = [row for row in rows if not row["left_out"]]
    # As they are, captions that name one gender alone.
    n = len(scored_rows) if estimated else sum(row["gender"] in GENDERS for row in scored_rows)
    printed = shares.get("published")
    bars = {name: value for name, value in shares.items() if name != "published"}
    marks = {"man": [printed if name == "n_correct" else None for name in bars]}
    return Finding(
        rows=rows,
        columns=["gs_man", "gs_woman", "to_man", "predicted"] if estimated else ["gs"],
        blocks=[
            table(
                "By gender", [{"gender": each, **own} for each, own in by_gender.items()], ["gender", *man]
            ),
            Block(
                "Share of man", ("by", "share"), tuple((name, cell(value)) for name, value in shares.items())
            ),
            *object_blocks(of_objects, model, estimated=estimated),
            *example_blocks(shown, model),
        ],
        said={"reading": reading.replace("_", " "), "found": found, "n": n, "n_rows": len(rows)},
        record={**(origin or {}), "mode": mode, "labels": labels, "published_model": model},
        summary=summary,
        notes=[f"{len(reasons)} of {len(rows)} captions are left out"] if reasons else [],
        remarks=_left_out(rows),
        draw=bar_chart(
            labels=[name.replace("_", " ") for name in bars],
            series={"man": list(bars.values())},
            axis="share of man",
            published=marks if printed else None,
        ),
    )


def _left_out(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which captions are left out and why, reason by reason."""
    of: dict[str, list[str]] = {}
    for row in rows:
        if row["left_out"]:
            of.setdefault(row["left_out"], []).append(row["caption_id"])
    names = {why: own[0] if len(own) == 1 else f"{len(own):,}, such as {own[0]}" for why, own in of.items()}
    return [f"left out {name}: {why}" for why, name in names.items()]


def _scored(
    row: Row, chosen: Sequence[Detected], scorer: Scorer, mode: Mode
) -> tuple[dict[str, Any], list[ScoredObject]]:
    """Make a caption's row, and list its objects with each gender that was scored; none if it is left out."""
    own, variants = named(row["caption"]), _variants(row["caption"], mode)
    gender = "masked" if has_mask(row["caption"]) else " and ".join(own) or "none"
    scores: dict[Gender | None, float] = {}
    parts: list[ScoredObject] = []
    left_out = None if chosen else f"image {row['image_id']} has no object"
    if not variants:
        left_out = "names both genders" if own else "names no gender and has no mask"
    try:
        for variant, text in variants.items() if left_out is None else ():
            revised = [scorer.revised(text, one) for one in chosen]
            scores[variant] = math.fsum(belief for _, belief in revised) / len(revised)
            if variant or len(own) == 1:
                about = {name: row[name] for name in KEPT} | {"gender": variant or own[0], "named": gender}
                parts += [
                    about | {"label": one.label, "distance": distance, "score": score}
                    for one, (distance, score) in zip(chosen, revised, strict=True)
                ]
    except AuditError as error:
        left_out, scores, parts = str(error), {}, []
    man, woman = scores.get("man"), scores.get("woman")
    ratio = None if man is None or woman is None else share(man, woman)
    predicted = None if ratio is None else "man" if ratio >= 0.5 else "woman"
    return {name: row[name] for name in KEPT} | {
        "objects": "; ".join(one.label for one in chosen),
        "gender": gender,
        "gs": scores.get(None),
        "gs_man": man,
        "gs_woman": woman,
        "to_man": ratio,
        "to_woman": None if ratio is None else 1 - ratio,
        "predicted": predicted,
        "correct": predicted == gender if predicted and gender in GENDERS else None,
        "left_out": left_out,
    }, parts


def _by_gender(rows: Sequence[Mapping[str, Any]], mode: Mode, model: str | None) -> dict[str, dict[str, Any]]:
    """Count and sum by gender."""
    by_gender: dict[str, dict[str, Any]] = {}
    estimated = mode == "ge"
    for gender in GENDERS:
        column = f"gs_{gender}" if estimated else "gs"
        own = [row for row in rows if row["gender"] == gender]
        scores = [row[column] for row in (rows if estimated else own) if row[column] is not None]
        predicted = [row for row in rows if row["predicted"] == gender]
        by_gender[gender] = {
            "n_captions": len(own),
            "n_scored": len(scores),
            "sum": math.fsum(scores),
            "mean": _mean(scores),
            "n_predicted": len(predicted) if estimated else None,
            "n_correct": sum(row["correct"] is True for row in predicted) if estimated else None,
            "published": TOTALS[model]["gender_score"][gender] if model else None,
        }
    return by_gender


# --- by object
# ---------------------------------------------------------------------------
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
    labels = dict.fromkeys(part["label"] for part in parts)
    held: dict[str, set[str]] = {label: {label} for label in labels}
    if objects is not None:
        held = {name: {label for label in labels if holds(tokens(label), tokens(name))} for name in objects}
    printed = TOTALS[model] if model else {}
    rows = []
    for name, of_labels in held.items():
        own = [part for part in parts if part["label"] in of_labels]
        of = {gender: [part for part in own if part["gender"] == gender] for gender in GENDERS}
        sums = {gender: math.fsum(part["score"] for part in scored) for gender, scored in of.items()}
        correct = _correct(own)
        rows.append(
            {"object": name, "n_captions": len({part["caption_id"] for part in own})}
            | {f"distance_{gender}": _mean([part["distance"] for part in of[gender]]) for gender in GENDERS}
            | {f"gs_{gender}": _mean([part["score"] for part in of[gender]]) for gender in GENDERS}
            | {"to_man": share(sums["man"], sums["woman"]), "to_woman": share(sums["woman"], sums["man"])}
            | {f"n_correct_{gender}": correct[gender] for gender in GENDERS}
            | {"to_man_by_n_correct": share(correct["man"], correct["woman"])}
            | {f"published_to_{each}": printed.get(f"score_to_{each}", {}).get(name) for each in GENDERS}
        )
    return sorted(rows, key=lambda row: (-row["n_captions"], row["object"]))


def _correct(parts: Sequence[ScoredObject]) -> dict[Gender, int]:
    """Count the captions beside an object whose own gender has the larger score of both; a tie is man."""
    scores: dict[tuple[str, str], dict[Gender, float]] = {}
    for part in parts:
        scores.setdefault((part["caption_id"], part["named"]), {})[part["gender"]] = part["score"]
    counts: dict[Gender, int] = dict.fromkeys(GENDERS, 0)
    for (_, own), both in scores.items():
        if len(both) == len(GENDERS):
            larger: Gender = "man" if both["man"] >= both["woman"] else "woman"
            counts[larger] += own == larger
    return counts


def object_blocks(rows: Sequence[Mapping[str, Any]], model: str | None, *, estimated: bool) -> list[Block]:
    """Show the Gender Score and the Gender Object Distance by object."""
    shown = rows[:N_SHOWN]
    more = [f"the {len(shown)} most frequent of {len(rows)} objects"] if len(rows) > len(shown) else []
    columns = ["object", "n_captions", "gs_man", "gs_woman", "to_man", "to_woman"]
    columns += ["to_man_by_n_correct"] if estimated else []
    columns += ["published_to_man", "published_to_woman"] if model else []
    near = "mean cosine similarity of caption and object: the larger, the nearer"
    distances = ["object", "n_captions", "distance_man", "distance_woman"]
    return [
        table("Gender Score by object", shown, columns, more),
        table("Gender Object Distance", shown, distances, [near, *more]),
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
        pairs.setdefault((part["caption_id"], part["label"]), {})[part["gender"]] = part
    ratios = {
        key: ratio
        for key, both in pairs.items()
        if len(both) == len(GENDERS)
        and (ratio := share(both["man"]["score"], both["woman"]["score"])) is not None
    }
    ordered = sorted(ratios, key=lambda key: (ratios[key], key))
    men = [key for key in ordered[::-1] if ratios[key] > 0.5]
    women = [key for key in ordered if ratios[key] < 0.5]
    even = sorted(ratios, key=lambda key: (abs(ratios[key] - 0.5), key))
    chosen: dict[tuple[str, str], str] = {}
    for kind, keys in (("man", men), ("woman", women), ("neither", even)):
        free = [key for key in keys if key not in chosen]
        chosen |= dict.fromkeys(free[:N_EXAMPLES], kind)
    return [
        {"nearest_to": kind, "visual": pairs[key]["man"]["label"]}
        | {name: pairs[key]["man"][name] for name in ("caption", "caption_id", "image_id")}
        | {f"distance_{gender}": pairs[key][gender]["distance"] for gender in GENDERS}
        | {f"gs_{gender}": pairs[key][gender]["score"] for gender in GENDERS}
        for key, kind in chosen.items()
    ]


def example_blocks(rows: Sequence[Mapping[str, Any]], model: str | None) -> list[Block]:
    """Show examples as tables, beside the poster's if a captioner is named."""
    if not rows:
        return []
    texts = plain(("caption_id", "nearest_to", "visual", "caption"))
    numbers = [(_titled(name), name, "{:.2f}".format) for name in EXAMPLE_VALUES]
    title = "Examples of the poster, whose captioner it does not name"
    printed = [block(title, [*texts[2:], *numbers], EXAMPLES)] if model else []
    return [block("Examples", [*texts, *numbers], rows), *printed]


def _titled(name: str) -> str:
    return name.replace("_", " ").replace("gs", "GS")


def draw_sheet(report: Report, manifest: Path, sheet: Path) -> None:
    """Draw the examples of a report under their pictures, a column each for man, woman and neither.

    Raises
    ------
    AuditError
        There are none, or a picture is missing.
    """
    from obygaze_studies.audit_common import charts  # noqa: PLC0415 - matplotlib is slow

    summary: Any = report.record["summary"]
    rows = summary["examples"]
    if not rows:
        raise AuditError("no caption was scored with both genders: there are no examples for --sheet")
    files = charts.find_pictures([row["image_id"] for row in rows], manifest)
    columns: dict[str, list[Any]] = {}
    for row in rows:
        values = "   ".join(f"{_titled(name)} {row[name]:.2f}" for name in EXAMPLE_VALUES)
        words = [*textwrap.wrap(row["caption"], 40), *textwrap.wrap(f"visual: {row['visual']}", 40), values]
        column = columns.setdefault(row["nearest_to"], [])
        title = "" if column else f"nearest to {row['nearest_to']}"
        picture = charts.read_picture(files[row["image_id"]], charts.PICTURE_PIXELS)
        column.append(charts.Panel(picture=picture, title=title, text="\n".join(words)))
    height = 2.6 * max(map(len, columns.values()))
    charts.draw_panels(list(columns.values()), (7.2, height), sheet)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
