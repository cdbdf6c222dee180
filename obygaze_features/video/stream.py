"""Describe a stream of pictures whole when it is opened, with the fate of each fact that the file states.

A fact is *used*, *noted* (left out, and said), *refused*, or *listed*: it concerns no pixel and no time, and
is kept in the record alone. A fact of a kind that the tables lack is noted.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

import msgspec
from av.stream import Disposition
from av.video.reformatter import ColorRange

from obygaze_features.errors import VideoError
from obygaze_features.templates import packaged
from obygaze_features.video.file_facts import files_of
from obygaze_features.video.packets import dumped
from obygaze_features.video.source import Source

UNKNOWN: Final = "unknown"
"""Side data of a kind that PyAV does not name."""


FATES: Final = packaged(__package__, "fates.toml")


def _table(name: str) -> dict[str, str]:
    """Read what is said of each fact of one kind of names: a sentence, or nothing."""
    return {
        entry: group.get("sentence", "")
        for fate in ("used", "listed", "refused", "noted")
        for group in FATES[fate]
        for entry in group.get(name, ())
    }


PACKETS, FRAMES, DISPOSITIONS = map(_table, ("packets", "frames", "dispositions"))
PICTURES: Final = _table("pictures") | FRAMES
"""Facts of single pictures, and their side data."""

STREAMS: Final[dict[str, str]] = FATES["streams"]
STRANGE: Final = PICTURES[UNKNOWN]
ENCRYPTED: Final = PACKETS["encryption_info"]
ENCRYPTED_SIGNS: Final = {
    *(name for name, said in PACKETS.items() if said == ENCRYPTED),
    *("enc_key_id", "ASF_Protection_Type", "ASF Extended Content Encryption"),
    *(f"{kind}\0\0\0" for kind in "\xdb\xcf\xc1\xc2"),
}
"""What tells an encrypted stream: side data of its packets, keys or values that FFmpeg's readers of Matroska
and ASF give, and types of streams of MPEG-TS (SAMPLE-AES of HLS)."""
DOLBY_TAGS: Final = ("dvh1", "dvhe")
"""Names of codecs whose pictures only Dolby Vision shows rightly, whether the file describes it or not."""
UNCOMPRESSED = "\0\0\0\0"
WITHOUT_ALPHA = "bgr0"
"""Tag of pixels of AVI without a codec. Their fourth byte, which FFmpeg calls alpha, is not used (BI_RGB)."""
UNTAGGED: Final = 2
GAMUTS: Final = {9: "BT.2020", 10: "XYZ", 11: "DCI-P3", 12: "Display P3"}
"""Primaries wider than those of an ordinary screen (H.273, table 2)."""
RANGES: Final = {int(ColorRange.MPEG): False, int(ColorRange.JPEG): True}
SECTION: Final = r"\b(?:.*\n(?!  Stream #))*?    Side data:\n((?: {5}.*\n|\n)*)"
STATED: Final = re.compile(r"^ {6}(\S[^:\n]*(?::\d+ [^:\n]*)?): ?(.*)", re.MULTILINE)
"""Where FFmpeg prints the side data of a stream, and each with its name."""


class Stream(msgspec.Struct, frozen=True, omit_defaults=True):
    """The pictures of a file, as they are stored and as they are to be shown.

    Parameters
    ----------
    codec, pixels
        Name of the codec, and FFmpeg's name of the format of pixels.
    bits
        Bits a sample.
    matrix, transfer, primaries
        Tags of the colours, by their numbers in H.273; 2 where the file states none.
    full_range
        Whether samples are tagged to fill their range; None where the file does not say.
    rotation
        Degrees by which the container asks to turn the pictures, as FFmpeg prints it; applied.
    crop
        Rows above and below, columns left and right, that the container asks to leave out; applied.
    dolby_vision
        Profile and compatibility of Dolby Vision, such as `8.1`; empty without.
    sample_aspect
        Width of a pixel by its height, such as `16:11`; empty if it is square or not stated.
    alpha
        Whether pixels may be transparent; they are laid over white.
    other_streams
        Further video streams of the file, which are not read.
    parts
        Parts that the file was joined from, by its times.
    side_data
        Names of all other data that the file states, of its stream and packets.
    conversion
        Version of the rule by which pixels become RGB: 1 or 2.
    """

    codec: str
    pixels: str
    bits: int = 8
    matrix: int = UNTAGGED
    transfer: int = UNTAGGED
    primaries: int = UNTAGGED
    full_range: bool | None = None
    rotation: str = ""
    crop: tuple[int, ...] = ()
    dolby_vision: str = ""
    sample_aspect: str = ""
    alpha: bool = False
    other_streams: int = 0
    parts: int = 1
    side_data: tuple[str, ...] = ()
    conversion: int = 1

    @property
    def shape(self) -> float:
        """Width of a pixel by its height, in upright pictures."""
        ratio = float(Fraction(self.sample_aspect.replace(":", "/") or 1))
        return 1 / ratio if "90." in self.rotation else ratio

    def record(self) -> dict[str, Any]:
        """Return as plain JSON what differs from the plainest stream."""
        record: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return record


def note_side_data(packet: Any, names: set[str]) -> None:
    """Add the side data of a packet to names of side data, by PyAV's."""
    try:
        for data in packet.iter_sidedata():  # few packets have any
            names.add(data.data_type)
    except (ValueError, LookupError):  # PyAV has no name for it
        names.add(UNKNOWN)


def describe(source: Source, packet_data: Iterable[str], parts: int) -> tuple[Stream, tuple[str, ...]]:
    """Describe an opened stream; return what to note, too.

    Parameters
    ----------
    source
        The stream.
    packet_data
        Names of the side data of its packets.
    parts
        Parts that it was joined from.

    Raises
    ------
    VideoError
        The pictures are encrypted, or without meaning to an ordinary decoder.
    """
    pixels = source.context.pix_fmt or UNKNOWN
    ratio = source.stream.sample_aspect_ratio
    if (source.codec, pixels, tag_of(source.context)) == ("rawvideo", "bgra", UNCOMPRESSED):
        pixels = WITHOUT_ALPHA
    stated = _stream_data(source)
    names = sorted({*stated, *packet_data})
    if is_encrypted(source.stream, source.container, names):
        raise VideoError(ENCRYPTED, source.path)
    films = [e for e in source.container.streams.video if not e.disposition & Disposition.attached_pic]
    stream = Stream(
        codec=source.codec,
        pixels=pixels,
        bits=source.context.format.components[0].bits if pixels != UNKNOWN else 8,  # type: ignore[union-attr]
        matrix=int(source.context.colorspace),
        transfer=int(source.context.color_trc),
        primaries=int(source.context.color_primaries),
        full_range=RANGES.get(int(source.context.color_range)),
        rotation=stated.get("display_matrix", "").removeprefix("rotation of "),
        crop=_crop(stated.get("frame_cropping", "")),
        dolby_vision=_dolby_vision(stated.get("dovi_conf", ""), source),
        sample_aspect="" if not ratio or ratio == 1 else f"{ratio.numerator}:{ratio.denominator}",
        alpha=pixels not in (UNKNOWN, WITHOUT_ALPHA) and has_alpha(source.context.format),
        other_streams=len(films) - 1,
        parts=parts,
        side_data=tuple(names),
        conversion=2 if pixels == UNKNOWN or is_exact(source.context.format) else 1,
    )
    remarks = [PACKETS.get(name, STRANGE) for name in names]
    remarks += [
        DISPOSITIONS.get(e.name or "", STRANGE) for e in Disposition if e in source.stream.disposition
    ]
    return stream, tuple(dict.fromkeys(filter(None, (*_remarks(source, stream), *remarks))))


def _remarks(source: Source, stream: Stream) -> Iterable[str]:
    width = source.context.width
    height = source.context.height
    if (count := len(files_of(source.path))) > 1:
        yield f"{count} files of a DVD's title are read as one film"
    if stream.sample_aspect:
        shown = f"{round(width * source.stream.sample_aspect_ratio)}x{height}"  # type: ignore[operator]
        yield (
            f"pixels are not square ({stream.sample_aspect}): the pictures are given as stored, "
            f"{width}x{height}, and players show {shown}"
        )
    if stream.primaries in GAMUTS:
        yield f"its colours are those of {GAMUTS[stream.primaries]}, not mapped to an ordinary screen's"
    if stream.dolby_vision:
        yield f"{FRAMES['DOVI_METADATA']} (profile {stream.dolby_vision})"
    if stream.other_streams:
        yield f"the file has {stream.other_streams} more video streams, which are not read"


def _crop(text: str) -> tuple[int, ...]:
    """Read `left/right/top/bottom`."""
    left, right, above, below = map(int, text.split("/")) if text else (0, 0, 0, 0)
    return (above, below, left, right) if left or right or above or below else ()


_DOLBY_PROFILE = re.compile(
    r"profile: (\d++)(?:(?!profile: |compatibility id: \d).)*+compatibility id: (\d+)"
)


def _dolby_vision(text: str, source: Source) -> str:
    """Return profile and compatibility.

    Raises
    ------
    VideoError
        The base layer is made for Dolby Vision alone (profile 5, and any without compatibility).
    """
    match = _DOLBY_PROFILE.search(text)
    profile, compatible = match.groups() if match else ("not stated", "0")
    if not match and tag_of(source.context) not in DOLBY_TAGS:
        return ""
    if compatible == "0" or profile == "5":
        raise VideoError(
            f"its colours are those of Dolby Vision alone (profile {profile}), which cannot be read here: "
            "convert it to HDR10 or BT.709, for instance with FFmpeg's filter libplacebo",
            source.path,
        )
    return f"{profile}.{compatible}"


def tag_of(context: Any) -> str:
    """Return the four characters by which a container names a codec, of which PyAV reads ASCII alone."""
    try:
        return str(context.codec_tag)
    except UnicodeDecodeError as error:
        return error.object.decode("latin-1")


def is_encrypted(stream: Any, container: Any, side_data: Iterable[str] = ()) -> bool:
    """Return whether a container, or side data of packets, says that a stream is encrypted."""
    stated = {*stream.metadata, *container.metadata, *container.metadata.values()}
    return not ENCRYPTED_SIGNS.isdisjoint({*stated, *side_data, tag_of(stream.codec_context)})


def _stream_data(source: Source) -> dict[str, str]:
    """Read side data of the stream, by PyAV's names of packets' side data; FFmpeg prints what PyAV lacks."""
    text = dumped(source.container)
    match = re.search(rf"^  Stream #\d+:{source.stream.index}{SECTION}", f"{text}\n", re.MULTILINE)
    stated = STATED.findall(match[1] if match else "")
    names = (name.strip().lower().replace(" ", "_") for name, _ in stated)
    return {STREAMS.get(name, name): value for name, (_, value) in zip(names, stated, strict=True)}


def has_alpha(pixels: Any) -> bool:
    """Return whether pixels of a format may be transparent."""
    return bool(pixels.has_palette or any(part.is_alpha for part in pixels.components))


def is_exact(pixels: Any) -> bool:
    """Return whether pixels are converted to RGB within a level: all but 8 bits of planar 4:2:0 and 4:2:2.

    Of those the usual conversion is kept, which rounds down (docs/decoding.md).
    """
    if pixels.is_rgb:  # swscale mixes up the bytes of these on its short way
        return re.fullmatch(r"(rgb|bgr)5[56]5be", pixels.name) is not None
    if pixels.has_palette or len(pixels.components) < 3:
        return False
    return not re.fullmatch(r"yuv[aj]?4(20|22|44)p", pixels.name)
