"""Compute Gender Scores of captions, as they are or with both genders put in."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from obygaze_models.report import Block, Picture, Report, cell
from obygaze_studies.audit_common.audit_tables import Row, audit_report, drawn_by, table
from obygaze_studies.audit_common.published_values import TOTALS
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.belief_revision import Detected, Scorer, joined
from obygaze_studies.gender_score.cooc import GENDERS, Gender, filled, has_mask, named, share
from obygaze_studies.gender_score.scores_by_object import (
    ScoredObject,
    by_object,
    example_blocks,
    examples,
    object_blocks,
)

PREDICTIONS = ("n_predicted", "n_correct")
"""Readings that estimation alone has: captions as they are predict no gender."""

READING = "to_man_by_"
"""Begins the names of the shares of man, one for each reading of the source."""


class Mode(StrEnum):
    """Direct: the caption as it is. Estimation: man and woman in turn in the place of its gender."""

    DIRECT = "gs"
    ESTIMATION = "ge"


class LabelsMode(StrEnum):
    """How an image with several objects counts: the mean over them, or their labels joined into one."""

    EACH = "each"
    JOINED = "joined"


def needed_texts(
    captions: Sequence[Row], objects: Mapping[str, Sequence[Detected]], mode: Mode, labels: LabelsMode
) -> tuple[str, ...]:
    """List every text that needs an embedding: captions or their variants, then their images' labels."""
    texts: dict[str, None] = {}
    for row in captions:
        texts |= dict.fromkeys(_variants(row["caption"], mode).values())
    for row in captions:
        detected = objects.get(row["image_id"], ())
        texts |= dict.fromkeys(
            shown.label for shown in (joined(detected) if labels is LabelsMode.JOINED else detected)
        )
    return tuple(texts)


def _variants(caption: str, mode: Mode) -> dict[str, str]:
    """Return the texts to score, by column of the results."""
    if mode is Mode.DIRECT:
        return {"gs": caption}
    if not has_mask(caption) and len(named(caption)) != 1:
        return {}
    return {f"gs_{gender}": filled(caption, gender) for gender in GENDERS}


def audit_gender_score(
    captions: Sequence[Row],
    objects: Mapping[str, Sequence[Detected]],
    scorer: Scorer,
    *,
    mode: Mode = Mode.DIRECT,
    labels: LabelsMode = LabelsMode.EACH,
    origin: Mapping[str, object] | None = None,
    model: str | None = None,
    names: Sequence[str] | None = None,
) -> Report:
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
    if model is not None and model not in TOTALS:
        raise AuditError(f"no published values of {model!r}, but of {', '.join(TOTALS)}")
    if model is not None and mode is not Mode.ESTIMATION:
        raise AuditError("the published values are of estimation, not of captions as they are: use mode ge")
    rows = tuple(_row(row, objects.get(row["image_id"], ()), scorer, mode, labels) for row in captions)
    reasons = [str(row["left_out"]) for row in rows if row["left_out"]]
    if len(reasons) == len(rows):
        raise AuditError(
            f"none of {len(rows)} captions could be scored; {captions[0]['caption_id']}: {reasons[0]}"
        )
    record = {
        **(origin or {}),
        "mode": str(mode),
        "labels": str(labels),
        "published_model": model,
        "source": "Sabir and Padró 2023, Gender Score; gender by the words man and woman",
    }
    parts = [
        part
        for row, scored in zip(captions, rows, strict=True)
        if scored["left_out"] is None
        for part in _parts(row, objects.get(row["image_id"], ()), scorer, mode, labels)
    ]
    of_objects = by_object(parts, names, model)
    estimated = mode is Mode.ESTIMATION
    shown = examples(parts) if estimated else []
    summary = _summary(rows, mode, model) | {"by_object": of_objects, "examples": shown}
    columns = ["caption_id", "gender"]
    columns += ["gs"] if mode is Mode.DIRECT else ["gs_man", "gs_woman", "to_man", "predicted"]
    return audit_report(
        "gender-score",
        "Gender Scores of captions",
        rows,
        [
            table("Captions", rows, columns),
            *_summary_blocks(summary),
            *object_blocks(of_objects, model, estimated=estimated),
            *example_blocks(shown, model),
        ],
        record,
        summary=summary,
        notes=[f"{len(reasons)} of {len(rows)} captions are left out"] if reasons else (),
        picture=Picture("gender-score", "Share of man", _bars(summary)),
    )


def _summary_blocks(summary: Mapping[str, Any]) -> list[Block]:
    by_gender = summary["by_gender"]
    counted = [{"gender": gender, **counts} for gender, counts in by_gender.items()]
    shares = tuple((name, cell(value)) for name, value in _shares(summary).items())
    return [
        table("By gender", counted, tuple(counted[0])),
        Block("Share of man", ("by", "share"), shares),
    ]


def _shares(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the share of man by each reading of the source."""
    return {name.removeprefix(READING): value for name, value in summary.items() if name.startswith(READING)}


def _bars(summary: Mapping[str, Any]) -> Callable[[Path], None]:
    shares = _shares(summary)
    printed = shares.pop("published", None)
    marks = {"man": [printed if name == "n_correct" else None for name in shares]}
    labels = [name.replace("_", " ") for name in shares]
    series = {"man": list(shares.values())}
    published = marks if printed else None
    return drawn_by("draw_bars", labels=labels, series=series, axis="share of man", published=published)


def _gender(caption: str) -> str:
    """Name the gender that a caption names: one or both, a mask in its place, or none."""
    return "masked" if has_mask(caption) else " and ".join(named(caption)) or "none"


def _row(
    row: Row, objects: Sequence[Detected], scorer: Scorer, mode: Mode, labels: LabelsMode
) -> dict[str, object]:
    chosen = joined(objects) if labels is LabelsMode.JOINED else objects
    own = named(row["caption"])
    variants = _variants(row["caption"], mode)
    scores = {column: scorer.score(text, chosen) for column, text in variants.items()}
    reasons = [score for score in scores.values() if isinstance(score, str)]
    if not chosen:
        reasons = [f"image {row['image_id']} has no object"]
    if not variants:
        reasons = ["names both genders" if own else "names no gender and has no mask"]
    known = {} if reasons else scores
    man, woman = known.get("gs_man"), known.get("gs_woman")
    ratio = share(man, woman) if isinstance(man, float) and isinstance(woman, float) else None
    predicted = None if ratio is None else "man" if ratio >= 0.5 else "woman"
    gender = _gender(row["caption"])
    return {
        "caption_id": row["caption_id"],
        "image_id": row["image_id"],
        "caption": row["caption"],
        "objects": "; ".join(detected.label for detected in chosen),
        "gender": gender,
        "gs": known.get("gs"),
        "gs_man": man,
        "gs_woman": woman,
        "to_man": ratio,
        "to_woman": None if ratio is None else 1 - ratio,
        "predicted": predicted,
        "correct": predicted == gender if predicted and gender in GENDERS else None,
        "left_out": reasons[0] if reasons else None,
    }


def _parts(
    row: Row, objects: Sequence[Detected], scorer: Scorer, mode: Mode, labels: LabelsMode
) -> list[ScoredObject]:
    """List each object of a caption with each gender that was scored; none of captions of both or neither."""
    chosen = joined(objects) if labels is LabelsMode.JOINED else objects
    own = named(row["caption"])
    texts: dict[Gender, str]
    if mode is Mode.ESTIMATION:
        texts = {gender: filled(row["caption"], gender) for gender in GENDERS}
    else:
        texts = {own[0]: row["caption"]} if len(own) == 1 else {}
    parts = []
    for gender, text in texts.items():
        for detected in chosen:
            revised = scorer.revised(text, detected)
            if not isinstance(revised, str):
                known = (row["caption_id"], row["image_id"], row["caption"])
                parts.append(ScoredObject(*known, detected.label, gender, _gender(row["caption"]), *revised))
    return parts


def _summary(rows: Sequence[Mapping[str, object]], mode: Mode, model: str | None) -> dict[str, object]:
    """Count and sum by gender, in several readings, since the source does not define its count."""
    by_gender: dict[str, dict[str, float | int | None]] = {}
    estimated = mode is Mode.ESTIMATION
    for gender in GENDERS:
        column = f"gs_{gender}" if estimated else "gs"
        of_gender = [row for row in rows if estimated or row["gender"] == gender]
        scores = [score for row in of_gender if isinstance(score := row[column], float)]
        by_gender[gender] = {
            "n_captions": sum(row["gender"] == gender for row in rows),
            "n_scored": len(scores),
            "sum": math.fsum(scores),
            "mean": math.fsum(scores) / len(scores) if scores else None,
            "n_predicted": sum(row["predicted"] == gender for row in rows) if estimated else None,
            "n_correct": sum(row["predicted"] == gender and row["correct"] is True for row in rows)
            if estimated
            else None,
            "published": TOTALS[model].gender_score[gender] if model else None,
        }
    man, woman = by_gender["man"], by_gender["woman"]
    ratios = {
        f"{READING}{reading}": share(man[reading] or 0, woman[reading] or 0)
        for reading in ("sum", "mean", *(PREDICTIONS if estimated else ()), *(["published"] if model else []))
    }
    return {
        "by_gender": by_gender,
        **ratios,
        "genders_named": dict(Counter(str(row["gender"]) for row in rows)),
        "n_left_out": sum(row["left_out"] is not None for row in rows),
    }
