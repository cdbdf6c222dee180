"""List the formats that scored films are exported in, and write a film in one of them."""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from obygaze_features.arguments import checked
from obygaze_features.io import local_path, write_whole
from obygaze_features.manifest import Codebook, time_code
from obygaze_features.plugins import EXPORTERS, offered
from obygaze_features.templates import packaged
from obygaze_film.errors import FilmError
from obygaze_film.exchange.decided import Decided
from obygaze_film.exchange.people import people_tiers
from obygaze_film.exchange.tiers import (
    KINDS,
    PEOPLE,
    Exported,
    TimeCodeStart,
    codebook_of_people,
    levels_of,
    notice_of,
    tiers_of,
)
from obygaze_film.notes import message
from obygaze_film.schema import ModelRecord, refuse_texts

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

DEFAULT_RATE: Final = Fraction(24)
"""Default frames per second of formats that count frames."""

MILLISECOND_ROUNDING_S: Final = 0.0015
"""Seconds by which a time of a file may differ from a decision's and be the same, in formats that round to
milliseconds."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format that scored films are exported in.

    Attributes
    ----------
    write
        Writes an export as text.
    suffix
        Suffix of its files.
    tiers
        Kinds of tiers that are exported by default.
    loses
        What is lost in the format, for the user.
    loses_of_people
        What is lost of people's decisions besides.
    packs
        Turns the text into the bytes of a file; by default its UTF-8 encoding.
    has_contributions
        Whether it holds the contributions of concepts to the model's logit.
    holds_notes_alone
        Whether a file without any span holds the notes too; else they are printed.
    read_as
        Kind of files as which `manifest import spans` and `film import` read it, so that people's decisions
        come back; "" if none does.
    rounding_s
        Seconds by which a time that comes back may differ from the one that was written.
    """

    write: Callable[[Exported], str]
    suffix: str
    tiers: tuple[str, ...]
    loses: str = ""
    loses_of_people: str = ""
    packs: Callable[[str], bytes] = str.encode
    has_contributions: bool = False
    holds_notes_alone: bool = True
    read_as: str = ""
    rounding_s: float = MILLISECOND_ROUNDING_S

    def file_of(self, exported: Exported) -> bytes:
        """Return the content of a file in this format."""
        return self.packs(self.write(exported))


def _packaged_format(facts: Mapping[str, Any]) -> Format:
    """Make a format from its table in formats.toml, which explains the keys.

    The functions that write and pack are named there, such as "obygaze_film.exchange.srt:to_srt".
    """
    return Format(
        pkgutil.resolve_name(facts["writer"]),
        facts["suffix"],
        tuple(facts["tiers"]),
        facts["loses"],
        facts.get("loses_of_people", ""),
        pkgutil.resolve_name(facts["packs"]) if "packs" in facts else str.encode,
        has_contributions=facts.get("has_contributions", False),
        holds_notes_alone=facts.get("holds_notes_alone", True),
        read_as=facts.get("read_as", ""),
        rounding_s=facts.get("rounding_s", MILLISECOND_ROUNDING_S),
    )


_FACTS: Final = packaged(__package__, "formats.toml")["formats"]
FORMATS: Final[Mapping[str, Format]] = {
    **{name: _packaged_format(facts) for name, facts in _FACTS.items()},
    **offered(EXPORTERS, Format),
}
"""Formats by name, ours and those of other packages (entry points of `obygaze.exporters`)."""


@checked
def collect(
    film: "Timeline",
    kind: str,
    *,
    tiers: Sequence[str] = (),
    people: Sequence[Decided] | None = None,
    rate: Fraction = DEFAULT_RATE,
    top: int = 0,
    model: str | None = None,
    start: str = "",
) -> Exported:
    """Prepare a scored film for the writer of a format: its tiers, with the caveats.

    Parameters
    ----------
    film : Timeline
    kind : str
        One of `FORMATS`.
    tiers : sequence of str
        Kinds of tiers (`KINDS`). By default those of the format, and those of people if `people` is given.
    people : sequence of Decided, optional
        What people decided.
    rate : Fraction
        Frames per second, for formats that count frames.
    top : int
        Minimum number of passages: if fewer reach the threshold, the highest others are added and marked.
    model : str, optional
        Key of the model; by default the first with logits.
    start : str
        Time code of the film's first frame, for edl and markers: hh:mm:ss:ff, or hh:mm:ss;ff for drop frame.

    Raises
    ------
    FilmError
        The format, tier or model is unknown.
    ManifestError
        The start is no time code at the rate, or the rate has none.
    """
    # --- check what was asked for
    refuse_texts(film.record)  # with control characters, which the other tool would show or obey
    if kind not in FORMATS:
        raise FilmError(f"format {kind!r}: expected one of {', '.join(FORMATS)}")
    unknown = [name for name in tiers if name not in KINDS]
    if unknown:
        raise FilmError(f"tier {unknown[0]!r}: expected some of {', '.join(KINDS)}")

    # --- choose the kinds of tiers, and make the tiers
    chosen_model = film.model(model)
    kinds_of_tiers = tuple(tiers)
    if not kinds_of_tiers:
        kinds_of_tiers = FORMATS[kind].tiers
        if people is not None:
            kinds_of_tiers = (*kinds_of_tiers, PEOPLE)
    exported_tiers = tiers_of(film, chosen_model, kinds_of_tiers, top)
    if PEOPLE in kinds_of_tiers:
        exported_tiers += people_tiers(people or ())
    book = codebook_of_people(people or ())
    return Exported(
        film,
        chosen_model,
        tiers=tuple(exported_tiers),
        codebook=chosen_model.codebook if book is None else book.name,
        levels=_levels_to_choose(book, chosen_model, people or ()),
        rate=rate,
        notice=notice_of(film, chosen_model, exported_tiers, kinds_of_tiers),
        start=_time_code_start(start, rate),
        has_contributions=FORMATS[kind].has_contributions,
        has_concepts="concepts" in kinds_of_tiers,
    )


def _levels_to_choose(
    book: Codebook | None, model: ModelRecord, decided: Sequence[Decided]
) -> tuple[str, ...]:
    """List the levels that may be chosen for a span when an export is edited in another tool, each once.

    They are the levels of the codebook under which people decided (`book`), or, if it is not known, those of
    the model's, and others that people decided on.
    """
    levels_of_book = levels_of(model) if book is None else book.level_names
    decided_levels = [decision.level for decision in decided if decision.level]
    return tuple(dict.fromkeys([*levels_of_book, *decided_levels]))


def _time_code_start(start: str, rate: Fraction) -> TimeCodeStart:
    """Read the time code of the film's first frame, at a rate of frames per second; an empty text is 0.

    A semicolon before the frames marks drop-frame time codes, as in `01:00:00;00`.
    """
    start_s = time_code(start or "0", rate) or 0.0
    first_frame = round(Fraction(start_s) * rate)
    return TimeCodeStart(is_dropping=";" in start, first_frame=first_frame)


class Options(TypedDict, total=False):
    """Options of an export, as of `collect`."""

    tiers: Sequence[str]
    people: Sequence[Decided] | None
    rate: Fraction
    top: int
    model: str | None
    start: str


@checked
def export(film: "Timeline", kind: str, **options: Unpack[Options]) -> str:
    """Write a scored film in another format; options as of `collect`.

    A film without a passage that reaches the threshold gives a valid file without passages.
    """
    exported = collect(film, kind, **options)  # refuses a kind that is no format
    return FORMATS[kind].write(exported)


@checked
def write_export(film: "Timeline", kind: str, path: Path | str, **options: Unpack[Options]) -> str:
    """Write a scored film in another format into a file, and return notes for the user.

    Options as of `collect`.

    Returns
    -------
    str
        - Usually: why the file holds no passage that reaches the threshold, or nothing at all, and which
          concepts are left out. Empty if there is nothing to note.
        - If the file has no span, and so no place for caveats in this format (`Format.holds_notes_alone`):
          all caveats.
    """
    exported = collect(film, kind, **options)  # refuses a kind that is no format
    path = local_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    file_format = FORMATS[kind]
    write_whole(path, file_format.file_of(exported))
    if not exported.spans and not file_format.holds_notes_alone:
        return message("export_unnoted", notes=" ".join(exported.caveats))
    sentences = [exported.notice, *exported.left_out]
    return " ".join(sentence for sentence in sentences if sentence)
