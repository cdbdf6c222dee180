"""Compute Gender Scores of captions, as they are or with both genders put in, and sum them up by object.

Bias ratios, Gender Object Distance and examples are those of Sabir and Padró (2023).
"""

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

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
    objects_of = detected(objects)
    texts: list[str] = []
    for row in captions:
        texts += _variants(row["caption"], mode).values()
    for row in captions:
        beside = _chosen(objects_of.get(row["image_id"], ()), labels)
        texts += [detected_object.label for detected_object in beside]
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


class _Scores(NamedTuple):
    """What a caption's texts score.

    Attributes
    ----------
    by_variant
        Gender put in, None for the caption as it is -> mean over the image's objects.
    parts
        Each object with each gender.
    left_out
        Why there are none; else None.
    """

    by_variant: Mapping[Gender | None, float] = MappingProxyType({})
    parts: Sequence[ScoredObject] = ()
    left_out: str | None = None


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
    rows = []
    parts: list[ScoredObject] = []
    for caption in captions:
        beside = _chosen(objects.get(caption["image_id"], ()), labels)
        scores = _scores(caption, beside, scorer, mode)
        rows.append(_caption_row(caption, beside, scores))
        parts += scores.parts
    reasons = [str(row["left_out"]) for row in rows if row["left_out"]]
    if len(reasons) == len(rows):
        first = f"{captions[0]['caption_id']}: {reasons[0]}"
        raise AuditError(f"none of {len(rows)} captions could be scored; {first}")
    of_objects = by_object(parts, names, model)
    shown = examples(parts) if estimated else []
    by_gender = _by_gender(rows, mode, model)
    # Several readings, since the source does not define its count; captions as they are predict no gender.
    readings = ["sum", "mean"]
    if estimated:
        readings += ["n_predicted", "n_correct"]
    if model:
        readings.append("published")
    shares = {
        reading: share(by_gender["man"][reading] or 0, by_gender["woman"][reading] or 0)
        for reading in readings
    }
    summary = {
        "by_gender": by_gender,
        **{f"to_man_by_{name}": value for name, value in shares.items()},
        "genders_named": dict(Counter(row["gender"] for row in rows)),
        "n_left_out": len(reasons),
        "by_object": of_objects,
        "examples": shown,
    }
    first_reading = readings[0]
    scored_rows = [row for row in rows if not row["left_out"]]
    # As they are, captions that name one gender alone.
    n = len(scored_rows) if estimated else sum(row["gender"] in GENDERS for row in scored_rows)
    printed = shares.get("published")
    bars = {name: value for name, value in shares.items() if name != "published"}
    marks = {"man": [printed if name == "n_correct" else None for name in bars]}
    gender_rows = [{"gender": gender, **counts} for gender, counts in by_gender.items()]
    return Finding(
        rows=rows,
        columns=["gs_man", "gs_woman", "to_man", "predicted"] if estimated else ["gs"],
        blocks=[
            table("By gender", gender_rows, list(gender_rows[0])),
            Block(
                "Share of man", ("by", "share"), tuple((name, cell(value)) for name, value in shares.items())
            ),
            *object_blocks(of_objects, model, estimated=estimated),
            *example_blocks(shown, model),
        ],
        said={
            "reading": first_reading.replace("_", " "),
            "found": shares[first_reading],
            "n": n,
            "n_rows": len(rows),
        },
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
    captions_of: dict[str, list[str]] = {}
    for row in rows:
        if row["left_out"]:
            captions_of.setdefault(row["left_out"], []).append(row["caption_id"])
    remarks = []
    for reason, captions in captions_of.items():
        which = captions[0] if len(captions) == 1 else f"{len(captions):,}, such as {captions[0]}"
        remarks.append(f"left out {which}: {reason}")
    return remarks


def _scores(row: Row, objects: Sequence[Detected], scorer: Scorer, mode: Mode) -> _Scores:
    """Score a caption with each gender beside each object of its image, or say why it cannot be."""
    variants = _variants(row["caption"], mode)
    genders = named(row["caption"])
    if not variants:
        return _Scores(left_out="names both genders" if genders else "names no gender and has no mask")
    if not objects:
        return _Scores(left_out=f"image {row['image_id']} has no object")
    by_variant: dict[Gender | None, float] = {}
    parts: list[ScoredObject] = []
    for variant, text in variants.items():
        try:
            revised = [scorer.revised(text, detected_object) for detected_object in objects]
        except AuditError as error:
            return _Scores(left_out=str(error))
        by_variant[variant] = math.fsum(belief for _, belief in revised) / len(revised)
        if variant is None and len(genders) != 1:
            continue
        about = {name: row[name] for name in KEPT}
        about |= {"gender": variant or genders[0], "named": _gender(row["caption"])}
        for detected_object, (distance, score) in zip(objects, revised, strict=True):
            parts.append(about | {"label": detected_object.label, "distance": distance, "score": score})
    return _Scores(by_variant, parts)


def _gender(caption: str) -> str:
    """Name the gender of a caption: one, both, a mask, or none."""
    if has_mask(caption):
        return "masked"
    return " and ".join(named(caption)) or "none"


def _caption_row(row: Row, objects: Sequence[Detected], scores: _Scores) -> dict[str, Any]:
    """Make a caption's row of the table."""
    gender = _gender(row["caption"])
    man = scores.by_variant.get("man")
    woman = scores.by_variant.get("woman")
    ratio = None
    if man is not None and woman is not None:
        ratio = share(man, woman)
    predicted = correct = None
    if ratio is not None:
        predicted = "man" if ratio >= 0.5 else "woman"
        correct = predicted == gender if gender in GENDERS else None
    return {name: row[name] for name in KEPT} | {
        "objects": "; ".join(detected_object.label for detected_object in objects),
        "gender": gender,
        "gs": scores.by_variant.get(None),
        "gs_man": man,
        "gs_woman": woman,
        "to_man": ratio,
        "to_woman": None if ratio is None else 1 - ratio,
        "predicted": predicted,
        "correct": correct,
        "left_out": scores.left_out,
    }


def _by_gender(rows: Sequence[Mapping[str, Any]], mode: Mode, model: str | None) -> dict[str, dict[str, Any]]:
    """Count and sum by gender."""
    by_gender: dict[str, dict[str, Any]] = {}
    estimated = mode == "ge"
    for gender in GENDERS:
        naming = [row for row in rows if row["gender"] == gender]
        column, of_gender = (f"gs_{gender}", rows) if estimated else ("gs", naming)
        scores = [row[column] for row in of_gender if row[column] is not None]
        predicted = [row for row in rows if row["predicted"] == gender]
        by_gender[gender] = {
            "n_captions": len(naming),
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
    labels = list(dict.fromkeys(part["label"] for part in parts))
    rows = []
    for name in labels if objects is None else objects:
        counted = {name}
        if objects is not None:
            counted = {label for label in labels if holds(tokens(label), tokens(name))}
        rows.append(_object_row(name, [part for part in parts if part["label"] in counted], model))
    return sorted(rows, key=lambda row: (-row["n_captions"], row["object"]))


def _object_row(name: str, parts: Sequence[ScoredObject], model: str | None) -> dict[str, Any]:
    """Sum up an object beside all captions."""
    man = [part for part in parts if part["gender"] == "man"]
    woman = [part for part in parts if part["gender"] == "woman"]
    sum_man = math.fsum(part["score"] for part in man)
    sum_woman = math.fsum(part["score"] for part in woman)
    correct = _correct(parts)
    printed = TOTALS[model] if model else {}
    return {
        "object": name,
        "n_captions": len({part["caption_id"] for part in parts}),
        "distance_man": _mean([part["distance"] for part in man]),
        "distance_woman": _mean([part["distance"] for part in woman]),
        "gs_man": _mean([part["score"] for part in man]),
        "gs_woman": _mean([part["score"] for part in woman]),
        "to_man": share(sum_man, sum_woman),
        "to_woman": share(sum_woman, sum_man),
        "n_correct_man": correct["man"],
        "n_correct_woman": correct["woman"],
        "to_man_by_n_correct": share(correct["man"], correct["woman"]),
        "published_to_man": printed.get("score_to_man", {}).get(name),
        "published_to_woman": printed.get("score_to_woman", {}).get(name),
    }


def _correct(parts: Sequence[ScoredObject]) -> dict[Gender, int]:
    """Count the captions beside an object whose own gender has the larger score of both; a tie is man."""
    scores: dict[tuple[str, str], dict[Gender, float]] = {}
    for part in parts:
        scores.setdefault((part["caption_id"], part["named"]), {})[part["gender"]] = part["score"]
    counts: dict[Gender, int] = dict.fromkeys(GENDERS, 0)
    for (_, gender), score_of in scores.items():
        if len(score_of) == len(GENDERS):
            larger: Gender = "man" if score_of["man"] >= score_of["woman"] else "woman"
            counts[larger] += larger == gender
    return counts


def object_blocks(rows: Sequence[Mapping[str, Any]], model: str | None, *, estimated: bool) -> list[Block]:
    """Show the Gender Score and the Gender Object Distance by object."""
    shown = rows[:N_SHOWN]
    notes = []
    if len(rows) > len(shown):
        notes.append(f"the {len(shown)} most frequent of {len(rows)} objects")
    columns = ["object", "n_captions", "gs_man", "gs_woman", "to_man", "to_woman"]
    if estimated:
        columns.append("to_man_by_n_correct")
    if model:
        columns += ["published_to_man", "published_to_woman"]
    distances = ["object", "n_captions", "distance_man", "distance_woman"]
    nearness = "mean cosine similarity of caption and object: the larger, the nearer"
    return [
        table("Gender Score by object", shown, columns, notes),
        table("Gender Object Distance", shown, distances, [nearness, *notes]),
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
    ratios: dict[tuple[str, str], float] = {}
    for key, pair in pairs.items():
        if len(pair) == len(GENDERS):
            ratio = share(pair["man"]["score"], pair["woman"]["score"])
            if ratio is not None:
                ratios[key] = ratio
    ordered = sorted(ratios, key=lambda key: (ratios[key], key))
    nearest = {
        "man": [key for key in reversed(ordered) if ratios[key] > 0.5],
        "woman": [key for key in ordered if ratios[key] < 0.5],
        "neither": sorted(ratios, key=lambda key: (abs(ratios[key] - 0.5), key)),
    }
    rows = []
    chosen: set[tuple[str, str]] = set()
    for kind, keys in nearest.items():
        free = [key for key in keys if key not in chosen]
        for key in free[:N_EXAMPLES]:
            chosen.add(key)
            rows.append(_example(kind, pairs[key]["man"], pairs[key]["woman"]))
    return rows


def _example(kind: str, man: ScoredObject, woman: ScoredObject) -> dict[str, Any]:
    return {
        "nearest_to": kind,
        "visual": man["label"],
        "caption": man["caption"],
        "caption_id": man["caption_id"],
        "image_id": man["image_id"],
        "distance_man": man["distance"],
        "distance_woman": woman["distance"],
        "gs_man": man["score"],
        "gs_woman": woman["score"],
    }


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
