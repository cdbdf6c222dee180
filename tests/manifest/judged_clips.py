"""Clips that somebody judged, in sight of a model's score or blindly."""

from obygaze_features.manifest import Clip


def judged_clip(level, *, by, start_s, end_s, film="m", clip_id="", **columns):
    """Make a clip of which the annotator `by` says that it has this level.

    Of the columns, `seen_score` is "1" if the annotator saw a model's score, "0" if they judged blindly, and
    "" if nobody knows. Without a `clip_id`, a clip is named by its film and times.
    """
    name = clip_id or f"{film}-{start_s}-{end_s}"
    return Clip(name, film, start_s=start_s, end_s=end_s, level=level, annotator=by, extras=columns)
