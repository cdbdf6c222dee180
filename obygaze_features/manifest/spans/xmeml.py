"""Read markers of Final Cut Pro 7 XML (xmeml), which Premiere Pro and DaVinci Resolve write too.

Markers of a clip are in the time of its media file, markers of a sequence in the sequence's. Their comment is
kept; where an export of obygaze wrote it, it names the tier. Source: Apple, "Final Cut Pro XML Interchange
Format", marker.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.markers import marker
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import is_of_a_model, split_people_tier

ROOT: Final = "xmeml"
NTSC: Final = Fraction(1000, 1001)
"""By which the rate of NTSC is slower than its time base."""


class Owner(NamedTuple):
    """What a marker is set on.

    Attributes
    ----------
    rate
        Frames per second; None if it is not known.
    media
        Path or name of the media file; "" for a sequence.
    """

    rate: Fraction | None
    media: str


def read_xmeml(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the markers of all sequences and clips, in the order of the document.

    A marker is in the time of the innermost sequence or clip around it.
    """
    root = file.xml(ROOT, "Final Cut Pro 7 XML")
    media_of_file = _media_of_file(root)
    # The next element is taken from the end of the list, so that children are added in reverse order.
    waiting = [(root, Owner(file.reading.rate, ""))]
    n_markers = 0
    while waiting:
        node, owner = waiting.pop()
        if node.tag == "marker":
            n_markers += 1
            yield _marker(file, node, owner, f"marker {n_markers}")
            continue
        if node.tag in {"sequence", "clip", "clipitem"}:
            owner = _owner(file, node, owner, media_of_file)
        waiting += [(child, owner) for child in reversed(node)]


def _media_of_file(root: Element) -> dict[str, str]:
    """Return id of an element `file` -> its media. Only the first element of an id has the path or URL."""
    media: dict[str, str] = {}
    for node in root.iter("file"):
        url_or_name = node.findtext("pathurl") or node.findtext("name")
        if url_or_name:
            media.setdefault(node.get("id", ""), unquote(url_or_name.strip()))
    return media


def _owner(file: SpanFile, node: Element, above: Owner, media_of_file: dict[str, str]) -> Owner:
    """Return the frame rate and the media file of a sequence or a clip.

    The rate that the person gives by --rate comes first, and that of the element around it (`above`) last.
    """
    rate = file.reading.rate or _rate(node) or above.rate
    if node.tag == "sequence":
        return Owner(rate, "")
    source = node.find("file")
    media = "" if source is None else media_of_file.get(source.get("id", ""), "")
    return Owner(rate, media or (node.findtext("name") or "").strip())


def _rate(node: Element) -> Fraction | None:
    """Read the frames per second of an element; None if it states none."""
    base = number(node.findtext("rate/timebase") or "")
    if not 1 <= base <= 1000:
        return None
    is_ntsc = (node.findtext("rate/ntsc") or "").strip().upper() == "TRUE"
    return Fraction(base) * (NTSC if is_ntsc else 1)


def _marker(file: SpanFile, node: Element, owner: Owner, location: str) -> RawSpan:
    """Return the span of a marker. One without an out point marks a point in time: its end is its start.

    `owner` is what is known of the sequence or clip that the marker is in: its frame rate and its media file.
    """
    name = one_line(node.findtext("name") or "")
    comment = one_line(node.findtext("comment") or "")
    location = f"{location} ({name or comment:.40})"

    # In and out points are numbers of frames; NaN if they cannot be read. An out point of -1 stands for none.
    in_point = number(node.findtext("in") or "")
    out_point = number(node.findtext("out") or "")
    if out_point < 0:  # not if it is NaN: then the span has no end that can be read
        out_point = in_point
    if owner.rate is None:
        start_s = file.seconds(in_point, location)  # refused, as no rate is known
        end_s = file.seconds(out_point, location)
    else:
        start_s = in_point / float(owner.rate)
        end_s = out_point / float(owner.rate)

    people_tier, _ = split_people_tier(name)  # "" if the name does not begin with a tier of people
    is_our_export = bool(people_tier) or is_of_a_model(comment)
    if is_our_export:
        # In our exports a comment begins with the tier, and the clip has the name of the film.
        exported_tier, _, _ = comment.partition(". ")
        cells_of_export = {"movie": owner.media}
        return marker(
            location, start_s=start_s, end_s=end_s, text=name, tier=exported_tier, cells=cells_of_export
        )

    cells = {"media": owner.media} if owner.media else {}
    text = name or comment
    if comment != text:
        cells["comment"] = comment
    return marker(location, start_s=start_s, end_s=end_s, text=text, tier="", cells=cells)
