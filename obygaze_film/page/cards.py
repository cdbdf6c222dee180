"""Describe a film's passages for its page: what is said of each, its concepts, and its frames."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from obygaze_film.claims import phrases
from obygaze_film.claims.kinds import ConceptReason
from obygaze_film.claims.of_film import passage
from obygaze_film.claims.words import clock
from obygaze_film.page.packed import packed_shares, packed_times

if TYPE_CHECKING:
    from obygaze_film.page.view import FilmView

LONGEST_BAR = 48.0
"""Length of the longest bar of a contribution, in percent of the available width.

Bars begin in the middle of the width and go to the right or left: 48 leaves 2 percent free at either end.
"""


def cards(view: "FilmView") -> list[dict[str, Any]]:
    """Describe each passage of a film, in the order of `FilmView.segments`, as the page's script shows it.

    Returns
    -------
    list of dict
        `start`, `end`, `p` : float
        `number` : str
        `rank` : int
            Its rank by probability; 1 for the strongest passage.
        `below` : bool
            Whether all of it stays below the threshold.
        `length`, `value`, `band`, `limit`, `spoken`, `sentence`, `classes`, `flags` : str
            Texts about it; empty if there is nothing to say. `value` and `band` are its probability with the
            uncertainty, `limit` says that all of it, or only its mean, is below the threshold, `spoken` is
            for screen readers, and `sentence` gives the reasons.
        `parts` : list of dict
            Its concepts (`concept_bar`).
        `frames` : dict
            Attention and concepts frame by frame (`traces`); empty without frames.
    """
    rows: Any = view.segments.to_dict(orient="records")
    # What is claimed of each passage, with the concepts that are reasons for it or against it.
    claims = [passage(view.model, row, view.film.classes) for row in rows]
    # The bars of all passages have one scale, so that they can be compared.
    largest = largest_contribution([reason for claim in claims for reason in claim.reasons])
    described = []
    for row, claim in zip(rows, claims, strict=True):
        seen_concepts = [reason.what for reason in claim.reasons if reason.is_present]
        card = {
            "start": row["start_s"],
            "end": row["end_s"],
            "p": round(row["p"], 3),
            "number": row["number"],
            "rank": row["rank"],
            "below": not row["reaches"],
            "length": phrases.passage_length(claim, view.words),
            "value": phrases.passage_value(claim, view.words),
            "band": phrases.passage_band(claim, view.words),
            "limit": phrases.below_phrase(claim, view.words),
            "spoken": phrases.passage_spoken(claim, view.words),
            "sentence": phrases.reasons_sentence(claim.reasons, view.words),
            "classes": phrases.classes_sentence(claim.classes, view.words),
            "flags": view.words.flags(row["flags"], is_judged=True),
            "parts": [concept_bar(reason, largest, view) for reason in claim.reasons],
            "frames": traces(view, seen_concepts, row),
        }
        described.append(card)
    return described


def largest_contribution(reasons: Sequence[ConceptReason]) -> float:
    """Return the largest absolute contribution, whose bar is the longest; 1 if none differs from 0."""
    sizes = [abs(reason.contribution) for reason in reasons if not math.isnan(reason.contribution)]
    largest = max(sizes, default=0.0)
    return largest or 1.0


def concept_bar(reason: ConceptReason, largest: float, view: "FilmView") -> dict[str, Any]:
    """Describe a concept of a passage: its probability, its contribution, and the bar of the contribution.

    The bar's length `bar` is in percent of the width, `LONGEST_BAR` for the contribution `largest`. It is
    positive, to the right of the middle, if the concept raises the probability of the passage; negative if it
    lowers it; and 0 if the contribution is unknown. `doubt` says whether films left out do not show that the
    concept is found better than chance.
    """
    is_unknown = math.isnan(reason.contribution)
    bar = 0.0 if is_unknown else round(LONGEST_BAR * reason.contribution / largest, 1)
    return {
        "name": view.words.translated(reason.what),
        "p": phrases.reason_p(reason, view.words),
        "value": phrases.reason_weight(reason, view.words),
        "bar": bar,
        "doubt": reason.what in view.doubtful_concepts,
    }


def traces(view: "FilmView", concepts: Sequence[str], row: Mapping[Any, Any]) -> dict[str, Any]:
    """Describe the frames inside a passage: their weights of attention, and their probabilities of concepts.

    Parameters
    ----------
    view : FilmView
    concepts : sequence of str
        Concepts to describe.
    row : mapping
        The passage, with `start_s` and `end_s`.

    Returns
    -------
    dict
        `starts` : str
            Start of each frame in the film (`packed_times`).
        `rows` : list of dict
            For the weight and each concept: `name`, `values` (`packed_shares`), and `best`, the time of the
            frame with the highest value.

        It is empty if no frame has a value.
    """
    frames = view.frames
    start_s = row["start_s"]
    end_s = row["end_s"]
    inside = frames[(frames["end_s"] > start_s) & (frames["start_s"] < end_s)]
    # The first frame may have begun before the passage.
    starts = inside["start_s"].to_numpy(dtype=np.float64).clip(start_s, end_s)
    # Column of the frames -> its name on the page.
    name_of_column = {"weight": view.words["weight"]}
    name_of_column |= {f"{concept}_p": view.words.translated(concept) for concept in concepts}
    rows = []
    for column, name in name_of_column.items():
        has_values = column in inside and inside[column].notna().any()
        if not has_values:
            continue
        values = inside[column].to_numpy(dtype=np.float64)
        best_s = starts[np.nanargmax(values)]
        if column == "weight":
            # The weights of a clip add up to 1, so that each is small: the film's largest is shown as 1.
            values = values / float(frames["weight"].max())
        rows.append({"name": name, "values": packed_shares(values), "best": clock(best_s)})
    return {"starts": packed_times(starts), "rows": rows} if rows else {}
