"""Decide what an annotator says of time that they did not mark: that nothing is there, or nothing at all."""

from collections.abc import Iterable

from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.judgements import place_in


def marks_every_answer(marks: Iterable[Clip], codebook: Codebook) -> bool:
    """Return whether an annotator of a film said nothing of the time that they did not mark.

    Somebody who delimits only what they find says of all other time that it is not there. Somebody who also
    marks the lowest level (EN), or who judged windows that were drawn, answers by marks alone: where there
    are none, they did not look, or did not get that far.

    Parameters
    ----------
    marks
        All labelled clips of this annotator in the film.
    codebook
        Its first level is the lowest.

    Examples
    --------
    >>> from obygaze_features.manifest import Clip, builtin_codebook
    >>> found = Clip("a", "tt1", start_s=0.0, end_s=60.0, level="S")
    >>> nothing_there = Clip("b", "tt1", start_s=60.0, end_s=90.0, level="EN")
    >>> codebook = builtin_codebook("obygaze12")
    >>> marks_every_answer([found], codebook), marks_every_answer([found, nothing_there], codebook)
    (False, True)
    """
    lowest = codebook.level_names[0]
    return any(mark.level == lowest or place_in(mark) > 0 for mark in marks)
