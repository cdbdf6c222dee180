"""Read picture properties from packet headers, by codec, without decoding."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import av

from obygaze_features.video.nal import (
    hevc_picture,
    is_h264_random_access,
    is_hevc_random_access,
    is_hevc_unreferenced,
    nal_length_size,
    parameter_sets,
)
from obygaze_features.video.pictures import (
    is_av1_random_access,
    is_mpeg12_frame,
    is_mpeg12_random_access,
    is_vp9_key,
    mpeg12_type,
    vp8_picture,
)

Packet: TypeAlias = "av.Packet[Any]"

MPEG12 = frozenset({"mpeg1video", "mpeg2video"})
INTRA_ONLY = frozenset({"dnxhd", "ffv1", "mjpeg", "prores"})
"""Codecs whose flagged key frames need no other (FFV1 has others, where its coder's state goes on)."""

# Enough for sequence, group and picture headers and some user data; most packets are ten times larger.
MPEG_HEAD_BYTES = 1024

SKIPS_UNREFERENCED = MPEG12 | {"h264", "mpeg4"}
"""Codecs of which libavcodec leaves out the pictures that no other refers to, exactly, if told so."""


class Head(NamedTuple):
    """Properties of a packet's picture, read from its header.

    Parameters
    ----------
    start
        Decoding can start here and gives exact pictures for all frames displayed after this one.
    hidden
        It is decoded, but no picture is shown for it.
    unreferenced, layer
        Whether no other picture of its temporal layer refers to it; the layer's number.
    kind
        I, P or B, where only the picture types give the display order; empty where unknown.
    sets
        The parameter sets sent with a random access point.
    """

    start: bool = False
    hidden: bool = False
    unreferenced: bool = False
    layer: int = 0
    kind: str = ""
    sets: bytes = b""


# Packets share the few heads that there are without parameter sets.
plain = cache(Head)
NOTHING = plain()
READABLE = MPEG12 | INTRA_ONLY | {"h264", "hevc", "vp8", "vp9", "av1"}


def head_reader(codec: str, extradata: bytes | None) -> Callable[[Packet], Head]:
    """Return the function that reads the packet headers of a codec; for unknown codecs it reads nothing."""
    size = nal_length_size(extradata, codec)
    readers: dict[str, Callable[[Packet], Head]] = {
        "h264": lambda packet: _h264(packet, size) if packet.is_keyframe else NOTHING,
        "hevc": lambda packet: _hevc(packet, size),
        "vp8": _vp8,
        "vp9": lambda packet: _keyed(packet, is_vp9_key) if packet.is_keyframe else NOTHING,
        "av1": lambda packet: _keyed(packet, is_av1_random_access) if packet.is_keyframe else NOTHING,
    }
    readers |= dict.fromkeys(MPEG12, _mpeg12)
    readers |= dict.fromkeys(INTRA_ONLY, lambda packet: plain(start=packet.is_keyframe))
    return readers.get(codec, lambda _: NOTHING)


def _keyed(packet: Packet, is_random_access: Callable[[bytes], bool]) -> Head:
    """Accept the container's key-frame flag only if the packet's header confirms it."""
    return plain(start=is_random_access(bytes(packet)))


def _h264(packet: Packet, length_size: int) -> Head:
    data = memoryview(packet)
    if not is_h264_random_access(data, length_size):
        return NOTHING
    return Head(start=True, sets=parameter_sets(data, length_size, "h264"))


def _hevc(packet: Packet, length_size: int) -> Head:
    data = memoryview(packet)
    kind, layer = hevc_picture(data, length_size)
    if is_hevc_random_access(kind):
        return Head(start=True, layer=layer, sets=parameter_sets(data, length_size, "hevc"))
    return plain(unreferenced=is_hevc_unreferenced(kind), layer=layer)


def _mpeg12(packet: Packet) -> Head:
    data = bytes(memoryview(packet)[:MPEG_HEAD_BYTES])
    if len(data) == MPEG_HEAD_BYTES and not is_mpeg12_frame(data):
        data = bytes(packet)
    kind = mpeg12_type(data)
    return plain(start=kind == "I" and is_mpeg12_random_access(data), kind=kind)


def _vp8(packet: Packet) -> Head:
    key, shown = vp8_picture(bytes(memoryview(packet)[:1]))
    return plain(start=key and packet.is_keyframe, hidden=not shown)
