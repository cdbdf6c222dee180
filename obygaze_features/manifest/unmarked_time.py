"""Decide what an annotator says of time that they did not mark: that nothing is there, or nothing at all."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.manifest.clip import Clip, grouped
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.judgements import MODEL, place_in
from obygaze_features.manifest.manifest import Manifest


@checked
def marks_every_answer(marks: Iterable[Clip], codebook: Codebook) -> bool:
    """Return whether an annotator marked every answer in a film, so that unmarked time has no answer.

    - Somebody who delimits only what they find answers "no" by leaving time unmarked: False.
    - Somebody who also marks the lowest level (EN), or who judged windows that were drawn, marks a "no" too.
      Where such a person marked nothing, they did not look, or did not get that far: True.
    - Of clips that a machine was not asked about, or did not answer on, it says nothing either: True.

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
    lowest_level = codebook.level_names[0]
    for mark in marks:
        is_drawn_window = place_in(mark) > 0  # it has a place in the film's draw
        is_answer_of_machine = mark.extras.get(MODEL, "") != ""
        if mark.level == lowest_level or is_drawn_window or is_answer_of_machine:
            return True
    return False


class Stretch(NamedTuple):
    """A part of a film, in seconds."""

    start_s: float
    end_s: float


@checked
def common_stretches(manifest: Manifest) -> dict[str, Stretch]:
    """Find the stretch of each film in which all annotators answer who mark every answer: movie -> stretch.

    It goes from the latest of their first marks to the earliest of their last ones, and is empty where these
    do not meet. A film in which nobody marks every answer has none. A clip without times has no part in it.
    """
    timed_marks = [
        clip for clip in manifest if clip.annotator and clip.level is not None and clip.start_s is not None
    ]
    stretches: dict[str, Stretch] = {}
    for movie, marks in grouped(timed_marks, "movie").items():
        starts_s = []
        ends_s = []
        for their_marks in grouped(marks, "annotator").values():
            if marks_every_answer(their_marks, manifest.codebook):
                starts_s.append(min(mark.start_s or 0.0 for mark in their_marks))
                ends_s.append(max(mark.end_s or 0.0 for mark in their_marks))
        if starts_s:
            stretches[movie] = Stretch(max(starts_s), min(ends_s))
    return stretches


@checked
def in_common_stretches(manifest: Manifest) -> Manifest:
    """Cut annotations to the stretch of their film in which all annotators answer.

    Agreement on free segments is measured there alone: where one of two annotators stopped at half of the
    film, nobody knows whether they would have agreed on the rest. The stretch goes from the latest of their
    first marks to the earliest of their last ones (`common_stretches`). Clips outside are left out. Films
    without a stretch, and clips without times, stay as they are.

    An annotator whose marks all lie outside has no clip in the result: whoever compares annotators has to
    remember them, as they say of the stretch that nothing is there.
    """
    stretches = common_stretches(manifest)
    clips = []
    for clip in manifest:
        stretch = stretches.get(clip.movie)
        if stretch is None or clip.start_s is None or clip.end_s is None:
            clips.append(clip)
            continue
        start_s = max(clip.start_s, stretch.start_s)
        end_s = min(clip.end_s, stretch.end_s)
        if start_s < end_s:
            clips.append(replace(clip, start_s=start_s, end_s=end_s))
    return manifest.with_clips(clips)
