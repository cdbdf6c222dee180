"""Compute Gender Scores of captions, as they are or with each gender filled in, and sum them up by object.

Bias ratios, Gender Object Distance and examples are those of Sabir and Padró (2023).
"""

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from obygaze_features.text import counted
from obygaze_models.report import Block, Report, block, cell
from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart, columns_of_keys, table
from obygaze_studies.audit_common.inputs import Row, refuse_unpublished
from obygaze_studies.caption_words import tokens
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.belief_revision import Detected, Scorer, join_objects, objects_by_image
from obygaze_studies.gender_score.cooc import (
    GENDERS,
    Gender,
    genders_named,
    has_mask,
    names_label,
    share,
    with_gender,
    words_of_objects,
)
from obygaze_studies.gender_score.published_values import EXAMPLE_VALUES, EXAMPLES, TOTALS

KEPT_COLUMNS = ("caption_id", "image_id", "caption")
"""Columns of captions that results keep."""

N_SHOWN = 30
"""Objects shown, the most frequent ones; the JSON file has all."""

N_EXAMPLES = 4
"""Examples shown of each kind."""

LINE_LENGTH = 40
"""Letters in a line of text under a picture of the sheet; more would run into the next column."""

ROW_HEIGHT = 2.6
"""Height in inches of a row of the sheet: a picture with the lines under it."""

Mode = Literal["gs", "ge"]
"""How captions are scored.

gs scores the caption as it is. ge (gender estimation) replaces the caption's gender by man, then by woman.
"""

LabelsMode = Literal["each", "joined"]
"""How several objects of an image count: by the mean of their scores, or as one object with all labels."""


ScoredObject = Mapping[str, Any]
"""The score of one object of an image with one text of a caption of this image.

caption_id, image_id, caption
    The caption.
label
    The label of the object.
gender
    The gender that the scored text names.
named
    The gender that the caption itself names, or "masked".
distance
    The poster's Gender Object Distance: the cosine similarity of text and label.
score
    The revised belief.
"""


def needed_texts(
    captions: Sequence[Row], objects: Sequence[Row], mode: Mode, labels: LabelsMode
) -> list[str]:
    """List every text that needs an embedding: the texts to score, then the labels of the images' objects.

    Parameters
    ----------
    captions
        Rows with image_id, caption.
    objects
        Rows with image_id, object, p_c.
    mode, labels
        As `audit_gender_score` takes them.
    """
    objects_of_image = objects_by_image(objects)
    texts: list[str] = []
    for row in captions:
        texts += _texts_to_score(row["caption"], mode).values()
    for row in captions:
        image_objects = _counted_objects(objects_of_image.get(row["image_id"], ()), labels)
        texts += [detected_object.label for detected_object in image_objects]
    return list(dict.fromkeys(texts))


def _counted_objects(objects: Sequence[Detected], labels: LabelsMode) -> Sequence[Detected]:
    """Return the objects of an image as they count: separately ("each"), or joined into one ("joined")."""
    return join_objects(objects) if labels == "joined" else objects


def _texts_to_score(caption: str, mode: Mode) -> dict[Gender | None, str]:
    """Return the texts of a caption to score: the gender that is filled in -> text.

    In mode gs the only text is the caption as it is, and its key is None. In mode ge ("gender estimation")
    man and woman are filled in, for the caption's mask or for the word of its gender. A caption without a
    mask that names both genders or none then has no text to score.
    """
    if mode == "gs":
        return {None: caption}
    names_one_gender = len(genders_named(caption)) == 1
    if not has_mask(caption) and not names_one_gender:
        return {}
    return {gender: with_gender(caption, gender) for gender in GENDERS}


class _Scores(NamedTuple):
    """The scores of a caption.

    Attributes
    ----------
    score_of_gender
        Filled-in gender, or None for the caption as it is -> the mean score over the image's objects.
    scored_objects
        The score of every object with every gender.
    left_out
        The reason why the caption has no scores; None if it has.
    """

    score_of_gender: Mapping[Gender | None, float] = MappingProxyType({})
    scored_objects: Sequence[ScoredObject] = ()
    left_out: str | None = None


@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding's `sentence_values`
        name="gender-score",
        title="Gender Scores of captions",
        table="Captions",
        columns=(
            "caption_id",
            "gender",
        ),
        sentence="share of man ({reading}): {found}, of {n:,} of {n_rows:caption}",
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
    """Score every caption, and sum the scores up by gender and by object.

    A caption's score says how much the objects in its image raise the belief in its text. Captions are scored
    as they are, or twice, with each gender filled in: then the scores also estimate a gender. A caption that
    cannot be scored has a row with the reason, and never counts as 0.

    Parameters
    ----------
    captions
        Rows with caption_id, image_id, caption.
    objects
        Image id -> its objects.
    scorer
        Priors and similarities.
    mode
        Whether captions are scored as they are, or with each gender filled in.
    labels
        How several objects of an image count.
    origin
        What to record of the source of priors and similarities.
    model
        A captioner of the published table, to show its values beside those of estimation.
    names
        Objects to sum up by; a label counts for each object whose words it contains. By default every label.

    Raises
    ------
    AuditError
        No caption at all could be scored, the captioner is unknown, or its values are of the other mode.
    """
    refuse_unpublished(model, TOTALS)
    estimated = mode == "ge"  # whether each gender is filled in, which estimates one
    if model is not None and not estimated:
        raise AuditError("the published values are of estimation, not of captions as they are: use mode ge")

    # Score each caption with the objects of its image.
    rows = []
    scored_objects: list[ScoredObject] = []
    for caption in captions:
        image_objects = _counted_objects(objects.get(caption["image_id"], ()), labels)
        scores = _score_caption(caption, image_objects, scorer, mode)
        rows.append(_caption_row(caption, image_objects, scores))
        scored_objects += scores.scored_objects
    n_left_out = len(rows) - len(_scored_rows(rows))
    if n_left_out == len(rows):
        why_first_is_left_out = f"{captions[0]['caption_id']}: {rows[0]['left_out']}"
        raise AuditError(f"none of {counted(len(rows), 'caption')} could be scored; {why_first_is_left_out}")

    # Sum the scores up.
    by_gender = _by_gender(rows, mode, model)
    shares = _shares_of_man(by_gender, estimated=estimated, has_published=bool(model))
    object_rows = by_object(scored_objects, names, model)
    example_rows = examples(scored_objects) if estimated else []

    return Finding(
        rows=rows,
        columns=["gs_man", "gs_woman", "to_man", "predicted"] if estimated else ["gs"],
        blocks=[
            *_gender_blocks(by_gender, shares),
            *object_blocks(object_rows, model, estimated=estimated),
            *example_blocks(example_rows, model),
        ],
        sentence_values={
            "reading": "sum",
            "found": shares["sum"],
            "n": _n_counted_captions(rows, estimated=estimated),
            "n_rows": len(rows),
        },
        record={**(origin or {}), "mode": mode, "labels": labels, "published_model": model},
        summary={
            "by_gender": by_gender,
            **{f"to_man_by_{name}": value for name, value in shares.items()},
            "genders_named": dict(Counter(row["gender"] for row in rows)),
            "n_left_out": n_left_out,
            "by_object": object_rows,
            "examples": example_rows,
        },
        notes=[f"{n_left_out} of {counted(len(rows), 'caption')} are left out"] if n_left_out else [],
        remarks=_remarks_on_left_out(rows),
        draw=_share_chart(shares),
    )


def _scored_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of the captions that could be scored; others have a reason in `left_out`."""
    return [row for row in rows if not row["left_out"]]


def _n_counted_captions(rows: Sequence[Mapping[str, Any]], *, estimated: bool) -> int:
    """Count the captions whose scores count for a gender.

    If genders were filled in (`estimated`), every scored caption counts, for both genders. A caption that was
    scored as it is counts only if it names one gender.
    """
    scored_rows = _scored_rows(rows)
    if estimated:
        return len(scored_rows)
    return len([row for row in scored_rows if row["gender"] in GENDERS])


def _gender_blocks(
    by_gender: Mapping[str, Mapping[str, Any]], shares: Mapping[str, float | None]
) -> list[Block]:
    """Make the table of counts and sums of each gender, and the table of the shares of man.

    Parameters
    ----------
    by_gender
        Gender -> counts and sums of scores, all with the same names.
    shares
        What is counted or summed -> the share of man.
    """
    gender_rows = [{"gender": gender, **counts} for gender, counts in by_gender.items()]
    share_cells = tuple((name, cell(value)) for name, value in shares.items())
    return [
        table("By gender", gender_rows, list(gender_rows[0])),
        Block("Share of man", ("by", "share"), share_cells),
    ]


def _shares_of_man(
    by_gender: Mapping[str, Mapping[str, Any]], *, estimated: bool, has_published: bool
) -> dict[str, float | None]:
    """Compute the share of man in several quantities, each of man and woman together: quantity -> share.

    The published study gives such a share and does not define of which quantity. So there is one for each
    that it may mean: the sums of scores, their means, the numbers of captions predicted to be of a gender,
    and the numbers of those that are right.

    Parameters
    ----------
    by_gender
        Gender -> quantity -> its value for this gender.
    estimated
        Whether genders were filled in: only then a gender is predicted for each caption.
    has_published
        Whether `by_gender` has published values too, whose share is then computed.
    """
    quantities = ["sum", "mean"]
    if estimated:
        quantities += ["n_predicted", "n_correct"]
    if has_published:
        quantities.append("published")
    shares = {}
    for quantity in quantities:
        # A mean of no scores is None, and counts as 0.
        of_man = by_gender["man"][quantity] or 0
        of_woman = by_gender["woman"][quantity] or 0
        shares[quantity] = share(of_man, of_woman)
    return shares


def _share_chart(shares: Mapping[str, float | None]) -> Callable[[Path], None]:
    """Return the function that draws the shares of man as bars.

    The published share, if there is one, is marked on the bar of correct predictions: it is a share of these,
    and compares with no other bar.
    """
    published_share = shares.get("published")
    bars = {name: value for name, value in shares.items() if name != "published"}
    marks = None
    if published_share:
        mark_of_bar = [published_share if name == "n_correct" else None for name in bars]
        marks = {"man": mark_of_bar}
    return bar_chart(
        labels=[name.replace("_", " ") for name in bars],
        series={"man": list(bars.values())},
        axis="share of man",
        published=marks,
    )


def _remarks_on_left_out(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write a remark for every reason for which captions are left out, with their number and an example."""
    captions_by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row["left_out"]:
            captions_by_reason.setdefault(row["left_out"], []).append(row["caption_id"])
    remarks = []
    for reason, captions in captions_by_reason.items():
        which = captions[0] if len(captions) == 1 else f"{len(captions):,}, such as {captions[0]}"
        remarks.append(f"left out {which}: {reason}")
    return remarks


def _score_caption(row: Row, objects: Sequence[Detected], scorer: Scorer, mode: Mode) -> _Scores:
    """Score a caption with every object of its image, or say in `left_out` why it has no score.

    In mode "gs" the caption is scored as it is: it has one text, and its score is kept under the gender None.
    In mode "ge" each gender is filled in, in place of the one that it names or of a mask: it has a text and a
    score for "man" and for "woman". The score of a text is the mean, over the objects, of the belief in the
    text as the object revised it.

    Parameters
    ----------
    row
        The caption, with its image.
    objects
        The objects of the image.
    scorer
        Revises the belief in a text by an object.
    mode
        Whether the caption is scored as it is ("gs"), or with each gender filled in ("ge").
    """
    text_of_gender = _texts_to_score(row["caption"], mode)
    genders = genders_named(row["caption"])
    # Nothing can be filled in if a caption names both genders, or neither a gender nor a mask for one.
    if not text_of_gender:
        return _Scores(left_out="names both genders" if genders else "names no gender and has no mask")
    if not objects:
        return _Scores(left_out=f"image {row['image_id']} has no object")

    score_of_gender: dict[Gender | None, float] = {}
    scored_objects: list[ScoredObject] = []
    for filled_gender, text in text_of_gender.items():
        try:
            revised = [scorer.revised(text, detected_object) for detected_object in objects]
        except AuditError as error:
            return _Scores(left_out=str(error))
        score_of_gender[filled_gender] = math.fsum(belief for _, belief in revised) / len(revised)

        # The gender for which the objects' scores count: the one that was filled in, or, of a caption as it
        # is, the one that it names. They count for none if it names both genders, or none.
        gender_of_scores = filled_gender
        if filled_gender is None and len(genders) == 1:
            gender_of_scores = genders[0]
        if gender_of_scores is not None:
            scored_objects += _scored_objects(row, gender_of_scores, objects, revised)
    return _Scores(score_of_gender, scored_objects)


def _scored_objects(
    row: Row, gender: Gender, objects: Sequence[Detected], revised: Sequence[tuple[float, float]]
) -> list[ScoredObject]:
    """Make a row for each object of a caption, with its score.

    Parameters
    ----------
    row
        The caption.
    gender
        The gender for which the scores count.
    objects
        The objects of its image.
    revised
        For each object, its similarity to the caption and the revised belief, as `Scorer.revised` gives them.
    """
    caption_columns = {name: row[name] for name in KEPT_COLUMNS}
    caption_columns |= {"gender": gender, "named": _gender_words(row["caption"])}
    scored_objects: list[Mapping[str, Any]] = []
    for detected_object, (similarity, score) in zip(objects, revised, strict=True):
        # The paper calls the similarity a distance.
        object_columns = {"label": detected_object.label, "distance": similarity, "score": score}
        scored_objects.append(caption_columns | object_columns)
    return scored_objects


def _gender_words(caption: str) -> str:
    """Describe the gender of a caption: man, woman, "man and woman", "masked" or "none"."""
    if has_mask(caption):
        return "masked"
    return " and ".join(genders_named(caption)) or "none"


def _caption_row(row: Row, objects: Sequence[Detected], scores: _Scores) -> dict[str, Any]:
    """Make a caption's row of the table: its scores, the gender that they predict, and whether it is right.

    A caption that was scored as it is has the score `gs`, which is kept under the gender None. One in which
    each gender was filled in has `gs_man` and `gs_woman`, and their shares `to_man` and `to_woman`.

    Parameters
    ----------
    row
        The caption.
    objects
        The objects of its image.
    scores
        Its scores; None stands in the row for each that it does not have.
    """
    gender = _gender_words(row["caption"])
    score_as_it_is = scores.score_of_gender.get(None)
    score_with_man = scores.score_of_gender.get("man")
    score_with_woman = scores.score_of_gender.get("woman")
    share_of_man = None
    if score_with_man is not None and score_with_woman is not None:
        share_of_man = share(score_with_man, score_with_woman)

    predicted = _gender_of_larger_score(share_of_man)
    correct = None  # unknown, unless the caption itself names one gender
    if predicted is not None and gender in GENDERS:
        correct = predicted == gender

    return {name: row[name] for name in KEPT_COLUMNS} | {
        "objects": "; ".join(detected_object.label for detected_object in objects),
        "gender": gender,
        "gs": score_as_it_is,
        "gs_man": score_with_man,
        "gs_woman": score_with_woman,
        "to_man": share_of_man,
        "to_woman": None if share_of_man is None else 1 - share_of_man,
        "predicted": predicted,
        "correct": correct,
        "left_out": scores.left_out,
    }


def _gender_of_larger_score(share_of_man: float | None) -> Gender | None:
    """Return the gender with which a caption has the larger score, given the share of its score with man.

    A tie is man; None if the share is undefined, as both scores are 0.
    """
    if share_of_man is None:
        return None
    return "man" if share_of_man >= 0.5 else "woman"


def _by_gender(rows: Sequence[Mapping[str, Any]], mode: Mode, model: str | None) -> dict[str, dict[str, Any]]:
    """Count the captions of each gender and sum their scores: gender -> counts and sums.

    In mode ge every caption has a score for each gender; in mode gs a caption's score counts for the gender
    that it names.

    Parameters
    ----------
    rows
        The rows of the captions.
    mode
        How captions are scored.
    model
        A captioner whose published values are added; None for none.
    """
    by_gender: dict[str, dict[str, Any]] = {}
    estimated = mode == "ge"
    for gender in GENDERS:
        rows_naming_gender = [row for row in rows if row["gender"] == gender]
        if estimated:
            scores = [row[f"gs_{gender}"] for row in rows if row[f"gs_{gender}"] is not None]
        else:
            scores = [row["gs"] for row in rows_naming_gender if row["gs"] is not None]
        predicted = [row for row in rows if row["predicted"] == gender]
        correct = [row for row in predicted if row["correct"]]
        by_gender[gender] = {
            "n_captions": len(rows_naming_gender),
            "n_scored": len(scores),
            "sum": math.fsum(scores),
            "mean": _mean(scores),
            "n_predicted": len(predicted) if estimated else None,
            "n_correct": len(correct) if estimated else None,
            "published": TOTALS[model]["gender_score"][gender] if model else None,
        }
    return by_gender


# --- by object
# ---------------------------------------------------------------------------
def by_object(
    scored_objects: Sequence[ScoredObject], objects: Sequence[str] | None = None, model: str | None = None
) -> list[dict[str, Any]]:
    """Sum up the scores by object, the objects of most captions first.

    Parameters
    ----------
    scored_objects
        The scored objects of all captions.
    objects
        Names to sum up by; a label counts for each name whose words it contains. By default every label is
        a name.
    model
        A captioner of the published table, to show its values beside.

    Raises
    ------
    AuditError
        An object of `objects` is listed twice, also in upper and in lower case.

    Returns
    -------
    A row for each object: mean distances and scores, the share of man by the sums of scores and, where
    captions were scored with both genders, by the number of captions whose own gender has the larger score.
    """
    # Which labels count for each name: without names each label for itself, else all that have its words, as
    # "tennis racket" has those of "racket".
    labels = list(dict.fromkeys(scored["label"] for scored in scored_objects))  # each once
    labels_of_name: dict[str, set[str]] = {}
    if objects is None:
        for label in labels:
            labels_of_name[label] = {label}
    else:
        words_of_objects(objects)  # called for its error, on an object that is listed twice
        for name in objects:
            labels_of_name[name] = {label for label in labels if names_label(tokens(label), tokens(name))}

    rows = []
    for name, labels_that_count in labels_of_name.items():
        scored_of_name = [scored for scored in scored_objects if scored["label"] in labels_that_count]
        rows.append(_object_row(name, scored_of_name, model))
    return sorted(rows, key=lambda row: (-row["n_captions"], row["object"]))


def _object_row(name: str, scored_objects: Sequence[ScoredObject], model: str | None) -> dict[str, Any]:
    """Make the row of an object from its scores with all captions; a "distance" is a cosine similarity.

    Parameters
    ----------
    name
        The object.
    scored_objects
        Its scores, each with one caption and one gender.
    model
        A captioner whose published values are added; None for none.
    """
    scored_with_man = [scored for scored in scored_objects if scored["gender"] == "man"]
    scored_with_woman = [scored for scored in scored_objects if scored["gender"] == "woman"]
    sum_man = math.fsum(scored["score"] for scored in scored_with_man)
    sum_woman = math.fsum(scored["score"] for scored in scored_with_woman)
    n_correct = _count_correct(scored_objects)
    published = TOTALS[model] if model else {}  # what the paper prints, by name of a value
    words = " ".join(tokens(name))  # as the paper prints the object
    return {
        "object": name,
        "n_captions": len({scored["caption_id"] for scored in scored_objects}),
        "distance_man": _mean([scored["distance"] for scored in scored_with_man]),
        "distance_woman": _mean([scored["distance"] for scored in scored_with_woman]),
        "gs_man": _mean([scored["score"] for scored in scored_with_man]),
        "gs_woman": _mean([scored["score"] for scored in scored_with_woman]),
        "to_man": share(sum_man, sum_woman),
        "to_woman": share(sum_woman, sum_man),
        "n_correct_man": n_correct["man"],
        "n_correct_woman": n_correct["woman"],
        "to_man_by_n_correct": share(n_correct["man"], n_correct["woman"]),
        "published_to_man": published.get("score_to_man", {}).get(words),
        "published_to_woman": published.get("score_to_woman", {}).get(words),
    }


def _count_correct(scored_objects: Sequence[ScoredObject]) -> dict[Gender, int]:
    """Count for each gender the captions that name it and whose score is larger with it filled in.

    "Larger" is decided as in the captions' rows. Of a caption with several of these objects, the scores of
    the last one count.
    """
    # (caption, gender that it names) -> gender that was filled in -> score. A later object of the same
    # caption replaces an earlier one.
    scores_of_caption: dict[tuple[str, str], dict[Gender, float]] = {}
    for scored in scored_objects:
        caption = (scored["caption_id"], scored["named"])
        scores_of_gender = scores_of_caption.setdefault(caption, {})
        scores_of_gender[scored["gender"]] = scored["score"]

    counts: dict[Gender, int] = dict.fromkeys(GENDERS, 0)
    for (_, named_gender), scores in scores_of_caption.items():
        has_both_scores = len(scores) == len(GENDERS)
        if not has_both_scores:
            continue
        gender_with_larger_score = _gender_of_larger_score(share(scores["man"], scores["woman"]))
        if gender_with_larger_score is not None and gender_with_larger_score == named_gender:
            counts[gender_with_larger_score] += 1
    return counts


def object_blocks(rows: Sequence[Mapping[str, Any]], model: str | None, *, estimated: bool) -> list[Block]:
    """Make the tables of the Gender Score and of the Gender Object Distance by object.

    The score of an object has columns for man and for woman (`gs_man`, `gs_woman`), and for the share of
    either (`to_man`, `to_woman`). The published Object Distance is a mean similarity, so that it is large
    where caption and object are near: a note says so.

    Parameters
    ----------
    rows
        The rows of the objects (`by_object`), the most frequent ones first; only these are shown.
    model
        The captioner whose published values are shown beside; None for none.
    estimated
        Whether captions were scored with each gender filled in, which adds a column.
    """
    first_rows = rows[:N_SHOWN]
    notes = []
    if len(rows) > len(first_rows):
        notes.append(f"the {len(first_rows)} most frequent of {counted(len(rows), 'object')}")
    columns = ["object", "n_captions", "gs_man", "gs_woman", "to_man", "to_woman"]
    if estimated:
        columns.append("to_man_by_n_correct")
    if model:
        columns += ["published_to_man", "published_to_woman"]
    columns_of_distance = ["object", "n_captions", "distance_man", "distance_woman"]
    note_on_distance = "mean cosine similarity of caption and object: the larger, the nearer"
    return [
        table("Gender Score by object", first_rows, columns, notes),
        table("Gender Object Distance", first_rows, columns_of_distance, [note_on_distance, *notes]),
    ]


def examples(scored_objects: Sequence[ScoredObject]) -> list[dict[str, Any]]:
    """Choose example captions: the nearest to man, the nearest to woman, and the nearest to neither.

    An example is a caption with one object. How near it is to man is the share of its score with man in the
    sum of its scores with man and with woman. Only captions that were scored with both are chosen, and each
    example once.

    Returns
    -------
    Rows with nearest_to, visual (the object's label), caption, caption_id, image_id, and for each gender
    distance and gs.
    """
    # (Caption id, label) -> gender -> the scored object.
    pairs: dict[tuple[str, str], dict[Gender, ScoredObject]] = {}
    for scored in scored_objects:
        caption_and_label = (scored["caption_id"], scored["label"])
        pairs.setdefault(caption_and_label, {})[scored["gender"]] = scored

    share_of_man: dict[tuple[str, str], float] = {}
    for key, pair in pairs.items():
        has_both_scores = len(pair) == len(GENDERS)
        if has_both_scores:
            man = share(pair["man"]["score"], pair["woman"]["score"])
            if man is not None:  # both scores may be 0
                share_of_man[key] = man

    # Equal shares are ordered by their keys, so that the same examples are chosen every time.
    from_woman_to_man = sorted(share_of_man, key=lambda key: (share_of_man[key], key))
    nearest = {
        "man": [key for key in reversed(from_woman_to_man) if share_of_man[key] > 0.5],
        "woman": [key for key in from_woman_to_man if share_of_man[key] < 0.5],
        "neither": sorted(share_of_man, key=lambda key: (abs(share_of_man[key] - 0.5), key)),
    }

    rows = []
    chosen: set[tuple[str, str]] = set()
    for kind, keys in nearest.items():
        not_chosen = [key for key in keys if key not in chosen]
        for key in not_chosen[:N_EXAMPLES]:
            chosen.add(key)
            rows.append(_example(kind, pairs[key]["man"], pairs[key]["woman"]))
    return rows


def _example(kind: str, man: ScoredObject, woman: ScoredObject) -> dict[str, Any]:
    """Make the row of an example from the scores of one caption and object with each gender.

    `kind` is "man", "woman" or "neither": what the example is nearest to.
    """
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
    """Make the table of examples and, if published values are shown, that of the published poster's examples.

    Parameters
    ----------
    rows
        The rows of `examples`: captions nearest to man, to woman and to neither (`nearest_to`). Without any
        there is no table.
    model
        The captioner whose published values the report shows; None for none. The poster's examples are the
        same for all.
    """
    if not rows:
        return []
    shows_published_values = model is not None
    id_columns = columns_of_keys(("caption_id", "nearest_to"))
    text_columns = columns_of_keys(("visual", "caption"))
    number_columns = [(_heading(name), name, "{:.2f}".format) for name in EXAMPLE_VALUES]
    blocks = [block("Examples", [*id_columns, *text_columns, *number_columns], rows)]
    if shows_published_values:
        title = "Examples of the poster, whose captioner it does not name"
        blocks.append(block(title, [*text_columns, *number_columns], EXAMPLES))
    return blocks


def _heading(name: str) -> str:
    """Write the name of a column of values as a heading: gs_man as "GS man"."""
    return name.replace("_", " ").replace("gs", "GS")


def draw_sheet(report: Report, manifest: Path, sheet: Path) -> None:
    """Draw the examples of a report with their pictures, in one column each for man, woman and neither.

    Parameters
    ----------
    report
        A report of `audit_gender_score`.
    manifest
        Manifest of the images, by image_id.
    sheet
        The .pdf, .png or .svg file to write.

    Raises
    ------
    AuditError
        The report has no examples, or a picture is missing.
    """
    from obygaze_studies.audit_common import charts  # noqa: PLC0415 - matplotlib is slow

    summary: Any = report.record["summary"]
    rows = summary["examples"]
    if not rows:
        raise AuditError("no caption was scored with both genders: there are no examples for --sheet")
    files = charts.find_pictures([row["image_id"] for row in rows], manifest)
    columns: dict[str, list[Any]] = {}
    for row in rows:
        column = columns.setdefault(row["nearest_to"], [])
        is_first_of_column = not column
        title = f"nearest to {row['nearest_to']}" if is_first_of_column else ""
        picture = charts.read_picture(files[row["image_id"]], charts.PICTURE_PIXELS)
        column.append(charts.Panel(picture=picture, title=title, text=_text_of_example(row)))

    n_rows = max(map(len, columns.values()))
    width_and_height = (charts.WIDTH, ROW_HEIGHT * n_rows)  # of the sheet, in inches
    charts.draw_panels(list(columns.values()), width_and_height, sheet)


def _text_of_example(row: Mapping[str, Any]) -> str:
    """Write the lines under the picture of an example: its caption, its object and its values."""
    lines = textwrap.wrap(row["caption"], LINE_LENGTH)
    lines += textwrap.wrap(f"visual: {row['visual']}", LINE_LENGTH)
    values = [f"{_heading(name)} {row[name]:.2f}" for name in EXAMPLE_VALUES]  # such as "GS man 0.31"
    lines.append("   ".join(values))
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean of values; None if there are no values."""
    if not values:
        return None
    return math.fsum(values) / len(values)
