"""Which decoder this is: what a store must say of its frames."""

import av


def decoder_versions() -> dict[str, str]:
    """Name the versions of PyAV and of the FFmpeg inside it."""
    return {"av": av.__version__, "ffmpeg": av.ffmpeg_version_info}
