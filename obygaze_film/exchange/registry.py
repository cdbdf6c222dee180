"""List the formats that scored films are exported in, and write a film in one of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from obygaze_features.io import write_whole
from obygaze_film.errors import FilmError
from obygaze_film.exchange.eaf import to_eaf
from obygaze_film.exchange.text_formats import to_csv, to_jsonld, to_srt, to_vtt
from obygaze_film.exchange.tiers import KINDS, Exported, exported
from obygaze_film.exchange.video_editors import to_edl, to_fcpxml7, to_otio

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


FORMATS: Final[Mapping[str, Format]] = {
    "eaf": Format(to_eaf, ".eaf", KINDS, "times are rounded to milliseconds"),
    "vtt": Format(to_vtt, ".vtt", ("segments",), "times are rounded to milliseconds"),
    "srt": Format(to_srt, ".srt", ("segments",), "times are rounded to milliseconds"),
    "otio": Format(to_otio, ".otio", ("segments", "concepts"), "times are rounded to frames"),
    "fcpxml7": Format(to_fcpxml7, ".xml", ("segments", "concepts"), "times are rounded to frames"),
    "edl": Format(
        to_edl,
        ".edl",
        ("segments",),
        "a CMX-3600 list holds points: ends are lost, starts are rounded to frames",
    ),
    "jsonld": Format(to_jsonld, ".jsonld", ("segments", "concepts")),
    "csv": Format(to_csv, ".csv", ("segments",)),
}


def export(
    film: "Timeline",
    kind: str,
    *,
    tiers: Sequence[str] = (),
    rate: Fraction = DEFAULT_RATE,
    top: int = 20,
    model: str | None = None,
) -> str:
    """Write a scored film in another format, with its caveats.

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
        Minimum number of segments to list, if the film has as many.
    model : str, optional
        Key of the model; by default the first with logits.

    Raises
    ------
    FilmError
        The format, tier or model is unknown, or the tiers are empty.
    """
    if kind not in FORMATS:
        raise FilmError(f"format {kind!r}: expected one of {', '.join(FORMATS)}")
    if unknown := [name for name in tiers if name not in KINDS]:
        raise FilmError(f"tier {unknown[0]!r}: expected some of {', '.join(KINDS)}")
    made = exported(film, tuple(tiers) or FORMATS[kind].tiers, rate=rate, top=top, model=model)
    if not any(tier.spans for tier in made.tiers):
        raise FilmError(
            f"film {film.movie}: nothing to write: it has no {' or '.join(tiers or FORMATS[kind].tiers)}"
        )
    return FORMATS[kind].write(made)


def write_export(film: "Timeline", kind: str, path: Path, **options: Any) -> None:
    """Write a scored film in another format into a file; options as of `export`."""
    text = export(film, kind, **options)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
