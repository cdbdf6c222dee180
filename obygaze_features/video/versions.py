"""Which decoder this is: what a store must say of its frames."""

import av
import PIL


def decoder_versions(*, stills: bool = False) -> dict[str, str]:
    """List the versions of PyAV and of the FFmpeg inside it; for still images Pillow's too."""
    pillow = {"pillow": PIL.__version__} if stills else {}
    return {"av": av.__version__, "ffmpeg": av.ffmpeg_version_info} | pillow
