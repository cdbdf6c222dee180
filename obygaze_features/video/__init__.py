"""From a video file to exactly the frames asked for, each with its number and its time."""

from obygaze_features.video.errors import VideoError
from obygaze_features.video.frames import Frames, Probe
from obygaze_features.video.read import probe, read_frames
from obygaze_features.video.sampling import Sampling, at, fps, keyframes, uniform

__all__ = [
    "Frames",
    "Probe",
    "Sampling",
    "VideoError",
    "at",
    "fps",
    "keyframes",
    "probe",
    "read_frames",
    "uniform",
]
