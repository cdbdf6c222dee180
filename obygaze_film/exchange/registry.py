"""List the formats that scored films are exported in, and write a film in one of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from obygaze_features.io import local_path, write_whole
from obygaze_features.manifest import time_code
from obygaze_features.plugins import EXPORTERS, offered
from obygaze_film.errors import FilmError
from obygaze_film.exchange.text_formats import to_csv, to_eaf, to_rttm, to_srt, to_textgrid, to_vtt
from obygaze_film.exchange.tiers import KINDS, Exported, levels_of, notice_of, tiers_of
from obygaze_film.exchange.video_editors import to_edl, to_timeline
from obygaze_film.exchange.web_annotations import to_iiif, to_jsonld
from obygaze_film.schema import refuse_texts

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

DEFAULT_RATE: Final = Fraction(24)
"""Default frames per second of formats that count frames."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format: writer, file suffix, default tiers, and what it loses."""

    write: Callable[[Exported], str]
    suffix: str
    tiers: tuple[str, ...]
    loses: str = ""


MARKED, BOTH = ("segments",), ("segments", "concepts")
MILLISECONDS, FRAMES = "times are rounded to milliseconds", "times are rounded to frames"

FORMATS: Final[Mapping[str, Format]] = {
    "eaf": Format(to_eaf, ".eaf", KINDS, MILLISECONDS),
    "vtt": Format(to_vtt, ".vtt", MARKED, MILLISECONDS),
    "srt": Format(to_srt, ".srt", MARKED, MILLISECONDS),
    "otio": Format(partial(to_timeline, adapter="otio_json"), ".otio", BOTH, FRAMES),
    "fcpxml7": Format(partial(to_timeline, adapter="fcp_xml"), ".xml", BOTH, FRAMES),
    "edl": Format(to_edl, ".edl", MARKED, f"{FRAMES}, and texts are ASCII; ends are read by Resolve alone"),
    "textgrid": Format(to_textgrid, ".TextGrid", KINDS, "times are rounded to microseconds"),
    "rttm": Format(to_rttm, ".rttm", BOTH, f"labels are names of tiers; {MILLISECONDS}"),
    "jsonld": Format(to_jsonld, ".jsonld", BOTH),
    "iiif": Format(to_iiif, ".iiif.json", BOTH, "the film is not part of it"),
    "csv": Format(to_csv, ".csv", MARKED),
    **offered(EXPORTERS, Format),
}
"""Formats by name, ours and those of other packages (entry points of `obygaze.exporters`)."""


def collect(
    film: "Timeline",
    kind: str,
    *,
    tiers: Sequence[str] = (),
    rate: Fraction = DEFAULT_RATE,
    top: int = 0,
    model: str | None = None,
    start: str = "",
) -> Exported:
    """Collect what a format writes of a scored film, with its caveats.

    Parameters
    ----------
    film : Timeline
    kind : str
        One of `FORMATS`.
    tiers : sequence of str
        Of `KINDS`; by default those of the format.
    rate : Fraction
        Frames per second, for formats that count frames.
    top : int
        Passages to write at least: where fewer reach the threshold, the highest others are added and marked.
    model : str, optional
        Key of the model; by default the first with logits.
    start : str
        Time code of the film's first frame, for edl: hh:mm:ss:ff, or hh:mm:ss;ff for drop frame.

    Raises
    ------
    FilmError
        The format, tier or model is unknown.
    ManifestError
        The start is no time code at the rate, or the rate has none.
    """
    refuse_texts(film.record)
    if kind not in FORMATS:
        raise FilmError(f"format {kind!r}: expected one of {', '.join(FORMATS)}")
    if unknown := [name for name in tiers if name not in KINDS]:
        raise FilmError(f"tier {unknown[0]!r}: expected some of {', '.join(KINDS)}")
    first = ";" in start, round(Fraction(time_code(start or "0", rate) or 0.0) * rate)
    chosen, kinds = film.model(model), tuple(tiers) or FORMATS[kind].tiers
    made = tiers_of(film, chosen, kinds, top)
    notice = notice_of(film, chosen, made, kinds)
    return Exported(film, chosen, tuple(made), levels_of(chosen), rate, notice, first)


class Options(TypedDict, total=False):
    """Options of an export, as of `collect`."""

    tiers: Sequence[str]
    rate: Fraction
    top: int
    model: str | None
    start: str


def export(film: "Timeline", kind: str, **options: Unpack[Options]) -> str:
    """Write a scored film in another format; options as of `collect`.

    A film without a passage that reaches the threshold gives a valid file without passages.
    """
    made = collect(film, kind, **options)  # which refuses what is no format
    return FORMATS[kind].write(made)


def write_export(film: "Timeline", kind: str, path: Path | str, **options: Unpack[Options]) -> str:
    """Write a scored film in another format into a file; options as of `collect`.

    Returns
    -------
    str
        Why it holds no passage that reaches the threshold, or nothing at all; empty if it does.
    """
    made, path = collect(film, kind, **options), local_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, FORMATS[kind].write(made))
    return made.notice
