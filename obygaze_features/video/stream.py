"""Describe a stream of pictures when it is opened, and what happens to each fact that the file states of it.

A fact is *used*, *noted* (not applied, with a note), *refused*, or *listed* (it concerns no pixel and no
time, and stands in the record only). A fact of a kind that the tables lack is noted.
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
from obygaze_features.text import counted
from obygaze_features.video.file_facts import files_of
from obygaze_features.video.packets import describe_streams
from obygaze_features.video.source import Source

UNKNOWN: Final = "unknown"
"""Side data of a kind that PyAV does not name."""


FATES: Final = packaged(__package__, "fates.toml")


def _sentences(kind: str) -> dict[str, str]:
    """Read from `fates.toml` the note for each fact that a video file may state: name -> sentence, or "".

    The file sorts the facts into those that are used, listed (ignored, as they change no picture), refused
    and noted, and these into groups. All facts of a group have the same sentence.

    Parameters
    ----------
    kind
        Kind of the facts, such as `packets` for the side data of packets.
    """
    sentences = {}
    for treatment in ("used", "listed", "refused", "noted"):
        for group in FATES[treatment]:
            sentence = group.get("sentence", "")
            names = group.get(kind, [])
            sentences.update(dict.fromkeys(names, sentence))
    return sentences


PACKETS = _sentences("packets")
"""Side data of packets."""

FRAMES = _sentences("frames")
"""Side data of decoded pictures."""

DISPOSITIONS = _sentences("dispositions")
"""FFmpeg's dispositions of streams."""

PICTURES: Final = _sentences("pictures") | FRAMES
"""Facts of single pictures, and their side data."""

STREAMS: Final[dict[str, str]] = FATES["streams"]
"""Name by which FFmpeg prints side data of a stream -> PyAV's name of the same data of packets."""

STRANGE: Final = PICTURES[UNKNOWN]
"""The sentence on a fact of a kind that the tables lack."""

ENCRYPTED: Final = PACKETS["encryption_info"]
ENCRYPTED_SIGNS: Final = {
    *(name for name, sentence in PACKETS.items() if sentence == ENCRYPTED),
    *("enc_key_id", "ASF_Protection_Type", "ASF Extended Content Encryption"),
    *(f"{kind}\0\0\0" for kind in "\xdb\xcf\xc1\xc2"),
}
"""Signs of an encrypted stream: side data of its packets; keys or values that FFmpeg reads from Matroska and
ASF; and types of streams of MPEG-TS (SAMPLE-AES of HLS)."""
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
"""How FFmpeg prints the side data of a stream, behind the stream's number; the group holds its lines."""
STATED: Final = re.compile(r"^ {6}(\S[^:\n]*(?::\d+ [^:\n]*)?): ?(.*)", re.MULTILINE)
"""A line of side data; the groups are its name and value."""


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
    def pixel_aspect(self) -> float:
        """Width of a pixel divided by its height, in pictures that are turned upright."""
        ratio = float(Fraction(self.sample_aspect.replace(":", "/") or 1))
        is_turned_on_its_side = "90." in self.rotation  # as FFmpeg prints it: 90.00 or -90.00 degrees
        return 1 / ratio if is_turned_on_its_side else ratio

    def record(self) -> dict[str, Any]:
        """Return the fields as plain JSON, without those that have their default (`omit_defaults`)."""
        as_json = msgspec.json.encode(self)
        record: dict[str, Any] = msgspec.json.decode(as_json)
        return record


def note_side_data(packet: Any, names: set[str]) -> None:
    """Add PyAV's names of a packet's side data to `names`."""
    try:
        for data in packet.iter_sidedata():  # few packets have any
            names.add(data.data_type)
    except (ValueError, LookupError):  # PyAV has no name for it
        names.add(UNKNOWN)


def describe(source: Source, packet_data: Iterable[str], parts: int) -> tuple[Stream, tuple[str, ...]]:
    """Describe the stream of pictures of an open file; return it with notes on what is not applied.

    Side data are what a file states of its pictures beside these, such as a rotation, or levels of light. It
    states some for the whole stream, and some for single packets.

    Parameters
    ----------
    source
        The open file.
    packet_data
        Names of the side data of its packets.
    parts
        Parts that it was joined from.

    Raises
    ------
    VideoError
        The pictures are encrypted, or without meaning to an ordinary decoder.
    """
    context = source.context
    pixels = _pixels(source)
    is_known = pixels != UNKNOWN
    side_data = _stream_data(source)
    names = sorted({*side_data, *packet_data})  # of all side data, of the stream and of its packets
    if is_encrypted(source.stream, source.container, names):
        raise VideoError(ENCRYPTED, source.path)
    video_streams = source.container.streams.video
    # Without cover pictures, which are streams too.
    films = [stream for stream in video_streams if not stream.disposition & Disposition.attached_pic]
    has_transparency = is_known and pixels != WITHOUT_ALPHA and has_alpha(context.format)
    uses_usual_conversion = is_known and not is_exact(context.format)
    n_bits = 8
    if is_known:
        n_bits = context.format.components[0].bits  # type: ignore[union-attr]

    stream = Stream(
        codec=source.codec,
        pixels=pixels,
        bits=n_bits,
        matrix=int(context.colorspace),
        transfer=int(context.color_trc),
        primaries=int(context.color_primaries),
        full_range=RANGES.get(int(context.color_range)),
        rotation=side_data.get("display_matrix", "").removeprefix("rotation of "),
        crop=_crop(side_data.get("frame_cropping", "")),
        dolby_vision=_dolby_vision(side_data.get("dovi_conf", ""), source),
        sample_aspect=_sample_aspect(source),
        alpha=has_transparency,
        other_streams=len(films) - 1,
        parts=parts,
        side_data=tuple(names),
        conversion=1 if uses_usual_conversion else 2,  # 2: to RGB with full precision (`is_exact`)
    )

    remarks = [*_remarks(source, stream)]
    remarks += [PACKETS.get(name, STRANGE) for name in names]  # the sentence on each kind of side data
    remarks += _remarks_on_dispositions(source)
    distinct_remarks = dict.fromkeys(remark for remark in remarks if remark)  # "" is no remark
    return stream, tuple(distinct_remarks)


def _remarks_on_dispositions(source: Source) -> list[str]:
    """Return a note, which may be "", on each of FFmpeg's dispositions (roles) of a stream.

    Examples of dispositions are `default` and `attached_pic`.
    """
    dispositions = [disposition for disposition in Disposition if disposition in source.stream.disposition]
    return [DISPOSITIONS.get(disposition.name or "", STRANGE) for disposition in dispositions]


def _pixels(source: Source) -> str:
    """Return FFmpeg's name of a stream's pixel format, such as `yuv420p`.

    The fourth byte of a pixel in an uncompressed AVI is not used, but FFmpeg takes it for transparency. For
    such pixels `WITHOUT_ALPHA` is returned.
    """
    pixels = source.context.pix_fmt or UNKNOWN
    is_uncompressed = source.codec == "rawvideo" and tag_of(source.context) == UNCOMPRESSED
    if is_uncompressed and pixels == "bgra":
        return WITHOUT_ALPHA
    return pixels


def _sample_aspect(source: Source) -> str:
    """Return the width of a pixel by its height, such as `16:11`; empty if square or not stated."""
    ratio = source.stream.sample_aspect_ratio
    if not ratio or ratio == 1:
        return ""
    return f"{ratio.numerator}:{ratio.denominator}"


def _remarks(source: Source, stream: Stream) -> Iterable[str]:
    """Yield notes for the user on a video: its files, the shape of its pixels, its colours, other streams."""
    width = source.context.width
    height = source.context.height
    n_files = len(files_of(source.path))
    if n_files > 1:
        yield f"{counted(n_files, 'file')} of a DVD's title, read as one film"
    if stream.sample_aspect:
        shown_width = round(width * source.stream.sample_aspect_ratio)  # type: ignore[operator]
        yield (
            f"pixels are not square ({stream.sample_aspect}): the pictures are given as stored, "
            f"{width}x{height}, and players show {shown_width}x{height}"
        )
    if stream.primaries in GAMUTS:
        yield f"its colours are those of {GAMUTS[stream.primaries]}, not mapped to an ordinary screen's"
    if stream.dolby_vision:
        yield f"{FRAMES['DOVI_METADATA']} (profile {stream.dolby_vision})"
    if stream.other_streams:
        yield f"the file has {stream.other_streams} more video streams, which are not read"


def _crop(text: str) -> tuple[int, ...]:
    """Read a crop that FFmpeg prints as `left/right/top/bottom`, in pixels.

    Returns rows above and below, columns left and right; or () if nothing is cropped.
    """
    if not text:
        return ()
    left, right, above, below = map(int, text.split("/"))
    crop = (above, below, left, right)
    return crop if any(crop) else ()


_DOLBY_PROFILE = re.compile(
    r"profile: (\d++)(?:(?!profile: |compatibility id: \d).)*+compatibility id: (\d+)"
)


def _dolby_vision(text: str, source: Source) -> str:
    """Return the profile and compatibility of Dolby Vision, such as `8.1`; empty without Dolby Vision.

    Raises
    ------
    VideoError
        The base layer is made for Dolby Vision alone (profile 5, and any without compatibility).
    """
    match = _DOLBY_PROFILE.search(text)
    if match:
        profile, compatibility = match.groups()
    elif tag_of(source.context) in DOLBY_TAGS:
        profile = "not stated"
        compatibility = "0"
    else:
        return ""
    if compatibility == "0" or profile == "5":
        raise VideoError(
            f"its colours are those of Dolby Vision alone (profile {profile}), which cannot be read here: "
            "convert it to HDR10 or BT.709, for instance with FFmpeg's filter libplacebo",
            source.path,
        )
    return f"{profile}.{compatibility}"


def tag_of(context: Any) -> str:
    """Return the four characters by which a container names a codec."""
    try:
        return str(context.codec_tag)
    except UnicodeDecodeError as error:  # PyAV reads only ASCII
        return error.object.decode("latin-1")


def is_encrypted(stream: Any, container: Any, side_data: Iterable[str] = ()) -> bool:
    """Return whether a stream is encrypted, by its metadata, its codec's tag, or side data of its packets.

    Parameters
    ----------
    stream, container
        The stream and its file, as PyAV has them open.
    side_data
        Names of the side data of its packets.
    """
    possible_signs = set(side_data)
    possible_signs.update(stream.metadata)
    possible_signs.update(container.metadata)
    possible_signs.update(container.metadata.values())
    possible_signs.add(tag_of(stream.codec_context))
    return not ENCRYPTED_SIGNS.isdisjoint(possible_signs)


def _stream_data(source: Source) -> dict[str, str]:
    """Return further data that a file states of its pictures, such as a rotation: name -> value as text.

    They are parsed from FFmpeg's description of the file, because PyAV does not return the side data of
    streams. FFmpeg prints them below the line of the stream::

        Stream #0:1: Video: h264, ...
          Side data:
            Display Matrix: rotation of -90.00 degrees

    The names that are returned are those that PyAV gives to the same data of packets (`STREAMS`), such as
    `display_matrix`; a kind that the table lacks keeps the printed name.
    """
    text = describe_streams(source.container)
    stream_head = rf"^  Stream #\d+:{source.stream.index}"
    with_end_of_last_line = f"{text}\n"  # by which the pattern knows a line
    section = re.search(stream_head + SECTION, with_end_of_last_line, re.MULTILINE)
    lines = section[1] if section else ""
    side_data = {}
    for printed_name, value in STATED.findall(lines):
        name = printed_name.strip().lower().replace(" ", "_")
        side_data[STREAMS.get(name, name)] = value
    return side_data


def has_alpha(pixels: Any) -> bool:
    """Return whether pixels of a format may be transparent."""
    return bool(pixels.has_palette or any(part.is_alpha for part in pixels.components))


def is_exact(pixels: Any) -> bool:
    """Return whether pixels of a format are converted to RGB with full precision, to within one level of 255.

    FFmpeg's usual conversion is used for the other formats: for planar YUV of 8 bits, which it rounds down
    (docs/decoding.md), and for RGB, grey and palettes, which need no calculation.
    """
    if pixels.is_rgb:
        # The usual conversion is right for RGB, except where two big-endian bytes hold all three colours: it
        # mixes these bytes up.
        return re.fullmatch(r"(rgb|bgr)5[56]5be", pixels.name) is not None
    is_grey = len(pixels.components) < 3
    if pixels.has_palette or is_grey:
        return False
    is_planar_yuv_of_8_bits = re.fullmatch(r"yuv[aj]?4(20|22|44)p", pixels.name) is not None
    return not is_planar_yuv_of_8_bits
