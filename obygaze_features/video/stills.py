"""Read a still image with Pillow, as a video of one frame at time 0."""

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.ExifTags import Base

from obygaze_features.arguments import checked
from obygaze_features.errors import ObygazeError, VideoError
from obygaze_features.file_kinds import HEAD_BYTES, PICTURE_SUFFIXES, UNKNOWN, file_kind, why_not
from obygaze_features.text import counted
from obygaze_features.untrusted import open_regular
from obygaze_features.video.frames import Frames
from obygaze_features.video.sampling import FrameTimes, Sampling, choose
from obygaze_features.video.source import MAX_PIXELS, check_file, naming_file
from obygaze_features.video.stream import PACKETS, PICTURES

T = TypeVar("T")
Pixels = NDArray[np.uint8]

# Pillow reads many more formats, some by running other programs.
FORMATS = ("AVIF", "BMP", "JPEG", "PNG", "TIFF", "WEBP")
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
ROUNDED = "more than 8 bits a sample: the upper 8 were kept"
# Bytes of what a file states of its pixels and Pillow does not tell -> the remark on it (ISO/IEC 14496-12 and
# 23008-12; PNG).
STATED = {
    rb"(?s:\A\x89PNG.{20}\x10[\x02\x04\x06]|pixi.{4}[\x03\x04][\x09-\x10])": ROUNDED,
    rb"(?s:colrnclx..\0\x10|cICP.\x10)": PICTURES["PQ"],
    rb"(?s:colrnclx..\0\x12|cICP.\x12)": PICTURES["HLG"],
}
SIZE_BYTES = 4
"""Bytes of a size with which a file of AVIF begins."""
ANIMATED_AVIF = b"ftypavis"
"""The bytes behind this size in an animation (AV1 Image File Format, 6.1)."""
USUAL_GAMMA = 1 / 2.2
USUAL_PRIMARIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
"""White, red, green and blue of sRGB, as x and y."""

ROTATIONS = {3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}
"""EXIF orientation -> degrees clockwise that make a picture upright."""
MIRRORED = {2, 4, 5, 7}
"""EXIF orientations of pictures that are mirrored after their rotation."""


@checked
def is_still(path: str | PurePath) -> bool:
    """Return whether a file is a still image rather than a video, by its suffix.

    Still images and animations in AVIF have the same suffix, so the first bytes of the file decide, if it can
    be read.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix != ".avif":
        return suffix in PICTURE_SUFFIXES
    try:
        with open_regular(Path(path)) as file:
            file.read(SIZE_BYTES)
            kind = file.read(len(ANIMATED_AVIF))
    except (OSError, ObygazeError):
        return True
    return kind != ANIMATED_AVIF


def read_still(
    path: Path,
    requests: Sequence[tuple[Sampling, Callable[[Pixels], T]]],
    *,
    spanned: bool = False,
    strict: bool = False,
) -> tuple[Frames[T], ...]:
    """Read a still image as `read_windows` reads a window of a video.

    Parameters
    ----------
    path
        A file that `is_still`.
    requests
        Rules, each with the function applied to the picture; no rule may select several frames.
    spanned
        Whether a time span is requested, which is an error for a still image.
    strict
        Refuse an image for which Pillow issues a warning.

    Raises
    ------
    VideoError
        The image cannot be read completely, or several frames or a span are requested.
    """
    still = load_still(path)  # first: a file that is missing, or no image, is refused for that
    if spanned:
        raise VideoError("a still image has no span of time: leave its start and end empty", path)
    chosen_numbers = [_chosen_numbers(sampling, path) for sampling, _ in requests]
    if strict and still.losses:
        raise VideoError("; ".join(still.losses), path)

    height, width, _ = still.rgb.shape
    frames = []
    for (_, apply), numbers in zip(requests, chosen_numbers, strict=True):
        frames_of_request = Frames(
            images=[apply(still.rgb) for _ in numbers.tolist()],
            index=numbers,
            time_s=np.zeros(len(numbers)),
            status="partial" if still.losses else "ok",
            notes=(*still.losses, *still.remarks),
            method="still",
            width=width,
            height=height,
            rotation=still.rotation,
            mirrored=still.mirrored,
            total=1,
            decoded=1,
        )
        frames.append(frames_of_request)
    return tuple(frames)


def _chosen_numbers(sampling: Sampling, path: Path) -> NDArray[np.int64]:
    """Apply a sampling rule to a still image; return the number 0 for each frame that the rule takes.

    Raises
    ------
    VideoError
        The rule asks for several frames.
    """
    if sampling.n is not None and sampling.n > 1:
        raise VideoError(f"a still image has one frame, and {sampling.n} are asked for: ask for 1", path)
    frame = FrameTimes(np.zeros(1, np.int64), np.zeros(1), np.ones(1, np.bool_))
    with naming_file(path):
        return choose(sampling, frame)


class StillImage(NamedTuple):
    """A still image as it is shown.

    Parameters
    ----------
    rgb
        Upright pixels [H, W, 3].
    rotation, mirrored
        Clockwise degrees and mirroring that made them upright.
    losses
        Damage that Pillow warns of.
    remarks
        What the conversion to RGB did, and what was not applied.
    """

    rgb: Pixels
    rotation: int
    mirrored: bool
    losses: tuple[str, ...]
    remarks: tuple[str, ...]


class _UprightImage(NamedTuple):
    """An upright image, and the clockwise degrees and mirroring that made it upright."""

    image: Image.Image
    rotation: int
    mirrored: bool


def load_still(path: Path) -> StillImage:
    """Load a complete still image.

    Transparent pixels are blended with white. Grey is repeated in three channels. Of 16 bits the upper 8 are
    kept, as Pillow does for colours. CMYK is converted without its profile. Animations and multi-page images
    are refused, except the extra pictures that cameras append to a JPEG.

    Raises
    ------
    VideoError
        The image is missing, damaged, truncated, too large, or in an unsupported format.
    """
    check_file(path)
    with warnings.catch_warnings(record=True) as pillow_warnings:
        warnings.simplefilter("always")
        try:
            upright = _load_upright(path)
        except UnidentifiedImageError:
            raise VideoError(_why_no_image(path), path) from None
        except Image.DecompressionBombError:
            raise VideoError(_too_large("several times"), path) from None
        except VideoError:
            raise
        except Exception as error:  # on damaged data, Pillow's readers raise errors of many types
            is_of_system = isinstance(error, OSError) and error.errno is not None  # such as a failing disk
            if is_of_system:
                raise
            raise VideoError(_damage(error), path) from error

    losses = _losses(pillow_warnings)
    rgb, remarks_on_conversion = _rgb(upright.image, path)
    remarks = (*remarks_on_conversion, *_unapplied(upright.image, path))
    return StillImage(rgb, upright.rotation, upright.mirrored, losses, remarks)


def _damage(error: Exception) -> str:
    """Return a sentence on the damage of an image, by the error that Pillow raised for it."""
    if "truncated" in str(error):
        return "the image is cut off: it ends before its picture does"
    return "the image is damaged: it cannot be read"


def _why_no_image(path: Path) -> str:
    """Return a sentence on what is wrong with a file that Pillow does not recognise as an image."""
    kind = file_kind(path)
    if kind == UNKNOWN or kind.name.endswith(" picture"):
        return f"this is no image that can be read ({', '.join(FORMATS)}), or its header is damaged"
    return f"this is no image: {why_not(path, 'a picture')}"


def _losses(pillow_warnings: Iterable[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return what Pillow warned of in a file, such as damage, as sentences without line breaks, each once."""
    losses = []
    for warning in pillow_warnings:
        concerns_file = issubclass(warning.category, UserWarning)  # others concern the code
        if concerns_file:
            message = " ".join(str(warning.message).split())
            losses.append(f"Pillow warns: {message}")
    return tuple(dict.fromkeys(losses))


def _unapplied(image: Image.Image, path: Path) -> Iterator[str]:
    """Yield notes on colour properties that an image file states and that the conversion to RGB ignores.

    Examples are more than 8 bits a sample, HDR, and colour profiles.
    """
    # What Pillow does not tell is read from the bytes of the file.
    with open_regular(path) as file:
        first_bytes = file.read(HEAD_BYTES)
    for pattern, remark in STATED.items():
        if re.search(pattern, first_bytes):
            yield remark

    bits = image.getexif().get(Base.BitsPerSample, ())  # of each channel of a TIFF
    is_deep_tiff = isinstance(bits, tuple) and max(bits, default=8) > 8
    if image.mode == "RGB" and is_deep_tiff:
        yield ROUNDED
    yield from _unapplied_colours(image)


def _unapplied_colours(image: Image.Image) -> Iterator[str]:
    """Yield one note if an image states other colours than those of an ordinary screen (sRGB).

    Such a statement is not applied. It is a colour profile (ICC); or, in a PNG, the exponent gamma of
    brightness, and the primaries: which red, green and blue are meant. If there is a profile, or the
    statement that the colours are sRGB, readers of a PNG ignore gamma and primaries (PNG, 4.3).
    """
    # A profile of sRGB says so in its name, whose letters may have two bytes each, one of which is 0: without
    # the zeros it is found in either case.
    profile = (image.info.get("icc_profile") or b"").replace(b"\0", b"")
    if profile:
        if b"sRGB" not in profile:
            yield PACKETS["icc_profile"]  # the note on a profile that is not applied
        return
    if "srgb" in image.info:
        return
    gamma = image.info.get("gamma", USUAL_GAMMA)
    primaries = image.info.get("chromaticity", USUAL_PRIMARIES)
    if not math.isclose(gamma, USUAL_GAMMA, rel_tol=0.01):
        yield "its gamma is not applied"
    elif not np.allclose(primaries, USUAL_PRIMARIES, atol=0.01):
        yield "its primaries are not those of an ordinary screen, and are not applied"


def _load_upright(path: Path) -> _UprightImage:
    """Decode an image file and turn the picture upright, as its EXIF orientation says.

    Raises
    ------
    VideoError
        It has too many pixels, or several pictures.
    """
    with Image.open(path, formats=FORMATS) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise VideoError(_too_large(f"{width} x {height}, that is"), path)
        n_pictures = getattr(image, "n_frames", 1)
        is_camera_jpeg = image.format == "MPO"  # a JPEG with extra pictures, as cameras write
        if n_pictures > 1 and not is_camera_jpeg:
            raise VideoError(
                f"it holds {counted(n_pictures, 'picture')}, and a still image has one: save that one", path
            )

        if image.format == "PNG":
            # Decoding ignores wrong checksums. An image that was verified cannot be decoded, so that the file
            # is opened once more for it.
            with Image.open(path, formats=FORMATS) as to_verify:
                to_verify.verify()

        # Read before decoding: Pillow rotates a TIFF on decoding and then drops its orientation.
        orientation = image.getexif().get(Base.Orientation, 1)
        image.load()
        ImageOps.exif_transpose(image, in_place=True)
        return _UprightImage(image, ROTATIONS.get(orientation, 0), orientation in MIRRORED)


def _rgb(image: Image.Image, path: Path) -> tuple[Pixels, tuple[str, ...]]:
    """Convert an image of any pixel format to RGB, uint8 [H, W, 3]; return it with notes on the conversion.

    Raises
    ------
    VideoError
        The format is not supported.
    """
    is_grey_16 = image.mode.startswith("I;16")
    unsupported = ""
    if is_grey_16 and "transparency" in image.info:
        unsupported = "transparency at 16 bits"
    elif not is_grey_16 and image.mode not in MODES:
        unsupported = f"pixels of kind {image.mode!r}"
    if unsupported:
        raise VideoError(
            f"it holds {unsupported}, which no rule here turns into 8-bit RGB: convert it first", path
        )

    if is_grey_16:
        upper_8_bits = (np.asarray(image) >> 8).astype(np.uint8)
        rgb = np.repeat(upper_8_bits[..., None], 3, axis=2)
        return rgb, ("16-bit grey: the upper 8 bits were kept",)

    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        alpha = np.asarray(rgba)[..., 3]
        is_transparent = int(alpha.min()) < 255
        if is_transparent:
            return over_white(rgba), ("its transparent parts were laid over white",)

    rgb = np.array(image.convert("RGB"))
    if image.mode == "CMYK":
        return rgb, ("CMYK was converted without a colour profile",)
    return rgb, ()


def over_white(rgba: Image.Image) -> Pixels:
    """Lay a picture with transparent pixels over white: RGB uint8 [H, W, 3]."""
    paper = Image.new("RGBA", rgba.size, "white")
    paper.alpha_composite(rgba)
    return np.array(paper.convert("RGB"))


def _too_large(size: str) -> str:
    """Return the sentence that an image has too many pixels; `size` describes how many."""
    return f"it claims {size} more than {MAX_PIXELS:,} pixels (a decompression bomb?): make it smaller"
