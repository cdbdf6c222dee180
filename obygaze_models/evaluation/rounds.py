"""Follow a round of annotation: what is done, and who drifts."""

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import ORDER, Manifest, merge_annotators, project
from obygaze_features.manifest.agreement import distances
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.drift import Drift, drifts
from obygaze_models.protocol.targets import NOT_ASKED, Labels, Target, experts_of, find_target

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Progress:
    """How far one annotator is.

    Attributes
    ----------
    films, done : list of str
        Assigned, in their order, and annotated, be it in part.
    clips, clips_done : int
        Assigned, and those with a level.
    alone, against : Drift
        Of their calls, and of their calls less the others' mean on the same clips.
    """

    films: list[str]
    done: list[str]
    clips: int
    clips_done: int
    alone: Drift
    against: Drift

    @property
    def to_do(self) -> list[str]:
        """Films that are not annotated yet, in their order."""
        return [film for film in self.films if film not in self.done]


def round_progress(planned: Manifest, annotated: Manifest, task: str | None = None) -> dict[str, Progress]:
    """Compare a round with what was annotated.

    Parameters
    ----------
    planned : Manifest
        As `obygaze_features.manifest.assign` makes it.
    annotated : Manifest
        Rows of annotators: of the round's clips, or free segments, which are projected onto them.
    task : str, optional
        What a call is, by name (`find_target`); by default a level's place, the lowest 0 and the highest 1.

    Returns
    -------
    dict of str to Progress
        By annotator, those of the round alone.

    Raises
    ------
    ProtocolError
        A clip of the first manifest has no number in the column `order`.
    """
    for clip in planned.clips:
        if not re.fullmatch(r"\d{1,9}", place := clip.extras.get(ORDER, ""), re.ASCII):
            raise ProtocolError(
                f"clip {clip.clip_id!r} of {clip.annotator!r}: {ORDER} {place!r:.20} is no number of a film: "
                "make the round with 'obygaze manifest assign'"
            )
    bare = planned.with_clips(replace(clip, extras={}) for clip in planned)
    clips = merge_annotators(bare)
    labelled = annotated.with_clips(replace(clip, extras={}) for clip in annotated if clip.level is not None)
    done = {(clip.annotator, clip.movie) for clip in labelled}
    if not {clip.clip_id for clip in labelled} <= {clip.clip_id for clip in clips}:
        labelled = project(labelled, clips, per_annotator=True).manifest
    by_expert = experts_of(labelled, clips) if done else {}
    target = None if task is None else find_target(task, annotated.codebook)
    calls = {name: _calls(labels, target, annotated) for name, labels in by_expert.items()}
    movies, by_clip = (np.array([getattr(clip, what) for clip in clips]) for what in ("movie", "clip_id"))
    orders: dict[str, dict[str, int]] = {clip.annotator: {} for clip in planned}
    for clip in sorted(planned, key=lambda clip: int(clip.extras[ORDER])):
        orders[clip.annotator][clip.movie] = int(clip.extras[ORDER])
    none = np.full(len(clips), np.nan)
    own = np.array([calls.get(name, none) for name in dict.fromkeys([*orders, *calls])])
    n = np.isfinite(own).sum(axis=0)
    against = np.where(n > 1, (own * n - np.nansum(own, axis=0)) / np.maximum(n - 1, 1), np.nan)

    def films(name: str, values: Floats) -> tuple[list[Floats], list[int]]:
        each = [values[(movies == film) & np.isfinite(values)] for film in orders[name]]
        return each, [*orders[name].values()]

    independent = float((1 - 1 / n[n > 1]).mean()) if (n > 1).any() else 1.0
    of_others = drifts([films(name, row) for name, row in zip(orders, against, strict=False)], independent)
    found = {}
    for name, values, change in zip(orders, own, of_others, strict=False):
        begun = [film for film in orders[name] if (name, film) in done]
        assigned = np.isin(by_clip, [clip.clip_id for clip in planned if clip.annotator == name])
        judged = by_expert[name].levels != "" if name in by_expert else np.zeros(len(clips), bool)
        clips_of = int(assigned.sum()), int((assigned & judged).sum())
        alone = drifts([films(name, values)])[0]
        found[name] = Progress([*orders[name]], begun, *clips_of, alone, change)
    return found


def _calls(labels: Labels, target: Target | None, manifest: Manifest) -> Floats:
    """Read an annotator's calls [N]; NaN where there is none."""
    if target is not None:
        codes = target.of(labels).astype(np.float64)
        return np.where(codes == NOT_ASKED, np.nan, codes)
    names = manifest.codebook.level_names
    place = dict(zip(names, distances(manifest.codebook)[0].tolist(), strict=True))
    return np.array([place.get(level, np.nan) for level in labels.levels.tolist()])
