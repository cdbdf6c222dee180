"""Read exactly the requested frames of a video file or still image, each with its number and time."""

from obygaze_features.errors import VideoError
from obygaze_features.video.frames import Frames, Probe
from obygaze_features.video.learnt import file_digest, share_in
from obygaze_features.video.passes import Known
from obygaze_features.video.read import decoder_versions, probe, read_frames, read_samplings, read_windows
from obygaze_features.video.sampling import Sampling, at, fps, keyframes, uniform
from obygaze_features.video.shots import Measured, Shot, find_shots, joined_shots
from obygaze_features.video.stills import is_still
from obygaze_features.video.stretches import Rest, read_stretch, why_not_in_stretches

__all__ = [
    "Frames",
    "Known",
    "Measured",
    "Probe",
    "Rest",
    "Sampling",
    "Shot",
    "VideoError",
    "at",
    "decoder_versions",
    "file_digest",
    "find_shots",
    "fps",
    "is_still",
    "joined_shots",
    "keyframes",
    "probe",
    "read_frames",
    "read_samplings",
    "read_stretch",
    "read_windows",
    "share_in",
    "uniform",
    "why_not_in_stretches",
]
