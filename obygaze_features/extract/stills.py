"""Still images among the clips: never mixed with videos, each of one frame."""

from obygaze_features.extract.errors import ExtractError
from obygaze_features.manifest import Manifest
from obygaze_features.video import is_still


def of_stills(manifest: Manifest) -> bool:
    """Say whether a manifest's clips are still images rather than videos.

    Raises
    ------
    ExtractError
        If some are the one and some the other: their features are not made in the same way.
    """
    named = [clip for clip in manifest if clip.video]
    stills = [clip for clip in named if is_still(clip.video)]
    if stills and len(stills) < len(named):
        video = next(clip for clip in named if not is_still(clip.video))
        raise ExtractError(
            f"clip {stills[0].clip_id} is a still image ({stills[0].video}) and clip {video.clip_id} a video "
            f"({video.video}): give each kind a manifest and a store of its own"
        )
    return bool(stills)


def frames_of(manifest: Manifest, wanted: int | None) -> int | None:
    """Choose how many frames of a clip are taken: 1 of still images, unless another number is asked for."""
    return 1 if wanted is None and of_stills(manifest) else wanted
