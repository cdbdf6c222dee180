"""Say in a sentence what a model marks in a film, and in another how sure that is."""

from collections import defaultdict

import pandas as pd

from obygaze_film.page.phrases import SHORT_S, Words
from obygaze_film.schema import FilmRecord, ModelRecord

MOST_NAMES = 3
"""Concepts that the sentence names at most."""


def first_sentence(model: ModelRecord, segments: pd.DataFrame, whole_s: float, words: Words) -> str:
    """Name the passages that reach the threshold, their time, what they are marked as, and by which concepts.

    What they are marked as is the codebook's own wording (`means`), or else the level's name. The concepts
    are those seen in at least half of the passages' time. Empty for a model that predicts nothing of it.

    Parameters
    ----------
    segments : DataFrame
        As `Timeline.segments` gives them.
    whole_s : float
        Length of the film in seconds.
    """
    if model.calibration is None or model.is_trained_on or model.rate.unreliable >= 1:
        return ""
    marked = model.means or f"“{' / '.join(model.positive) or model.task_title}”"
    passages = segments[segments["reaches"] == 1]
    if passages.empty:
        return words.say("sentence_none", means=marked, whole=words.duration(whole_s))
    lengths = passages["end_s"] - passages["start_s"]
    seen: defaultdict[str, float] = defaultdict(float)
    for names, length in zip(passages["present"], lengths, strict=True):
        for name in filter(None, names.split(";")):
            seen[name] += length
    total = float(lengths.sum())
    often = sorted((name for name in seen if seen[name] >= total / 2), key=lambda name: -seen[name])
    return words.say(
        "sentence" if len(passages) > 1 else "sentence_one",
        n=len(passages),
        time=str(round(total / 60)) if total >= SHORT_S else words.duration(total),
        whole=words.duration(whole_s),
        means=marked,
        mostly=words.say("mostly", names=words.listed(often[:MOST_NAMES])) if often else "",
    )


def how_sure(model: ModelRecord, record: FilmRecord, words: Words) -> str:
    """Say how far the share was off on other films, how far experts agree, and what could not be judged."""
    facts = []
    if model.calibration is not None and model.calibration.film_error is not None:
        facts.append(words.say("sure_share", error=words.share(model.calibration.film_error)))
    if record.human is not None:
        kappa = words.number(record.human.kappa)
        facts.append(words.say("sure_human", kappa=kappa, corpus=record.human.corpus))
    if model.rate.unreliable > 0:
        facts.append(words.say("sure_unjudged", share=words.share(model.rate.unreliable)))
    return " ".join([*facts, words["sure_reasons"]] if facts else facts)
