"""Read what people judged in scored films' folders, and in tables elsewhere, for whoever counts or learns."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from obygaze_features.manifest import DEFINITION, Clip, Codebook, Manifest, import_spans
from obygaze_film.notes import counted_message
from obygaze_film.scored_files import SETTLED
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.decisions import Decisions, codebook_of
from obygaze_film.workspace.definitions import Meanings
from obygaze_film.workspace.ledger import LEDGER, Ledger
from obygaze_film.workspace.ledger_lines import Header
from obygaze_film.workspace.settling import span_key


class JudgedTables(NamedTuple):
    """Judgements of films.

    Attributes
    ----------
    manifest : Manifest
        The judgements. In its column `definition`, definitions that people declared to mean the same have one
        digest.
    meanings : Meanings
        Which definitions those are.
    notices : list of str
        Messages for the user about the ledgers and the tables.
    """

    manifest: Manifest
    meanings: Meanings
    notices: list[str]


def read_judged(
    films: Mapping[Path, Timeline],
    book: Codebook | None,
    names: Sequence[str],
    other_tables: Sequence[Path] = (),
    *,
    settled: bool = False,
    root: Path | None = None,
) -> JudgedTables:
    """Read tables of judgements: those in scored films' folders, and others.

    The tables in a folder with a ledger are written anew from the ledger first.

    Parameters
    ----------
    films
        Folder of a scored film -> the film.
    book
        Codebook of the levels; by default each film's own for its ledger, and the tables' own.
    names
        File names of the tables to read in each folder.
    other_tables
        Further tables elsewhere.
    settled
        Whether to replace what people judged of a span by what they agreed on.
    root
        Folder that paths in the manifest are relative to.
    """
    root = root or Path()
    ledgers = _write_tables_from_ledgers(films, book)
    tables = [*_existing_files(films, names), *other_tables]
    imported = import_spans(tables, root, "judgements", codebook=book)
    manifest = imported.manifest
    notices = [*ledgers.notices, *imported.notices]

    agreed_tables = _existing_files(films, [SETTLED])
    if settled and agreed_tables:
        agreed = import_spans(agreed_tables, root, "judgements", codebook=book)
        manifest = with_agreed(manifest, agreed.manifest, ledgers.disputed_spans)
        notices += agreed.notices
        notices += _notices_on_contradictions(agreed.manifest)

    meanings = Meanings(ledgers.headers)
    return JudgedTables(with_common_definitions(manifest, meanings), meanings, notices)


class _Ledgers(NamedTuple):
    """What films' ledgers say that is not in the tables written from them.

    Attributes
    ----------
    headers
        Of the ledgers' files; they declare which definitions mean the same.
    disputed_spans
        Spans of films on which people differ by now, whatever they had agreed on before.
    notices
        Messages for the user.
    """

    headers: list[Header]
    disputed_spans: "set[_FilmSpan]"
    notices: list[str]


def _write_tables_from_ledgers(films: Mapping[Path, Timeline], book: Codebook | None) -> _Ledgers:
    """Write the tables of judgements anew from the ledgers of films, and return what is not in the tables.

    That is by which definitions decisions were made, which spans are disputed, and notices for the user.
    Films without a ledger keep their tables.

    Parameters
    ----------
    films
        Folder of a scored film -> the film.
    book
        Codebook of the levels; by default each film's own.
    """
    ledgers = _Ledgers(headers=[], disputed_spans=set(), notices=[])
    for folder, film in films.items():
        has_ledger = (folder / LEDGER).is_dir()
        if not has_ledger:
            continue
        codebook = book or codebook_of(film.model().codebook, path=None)
        decisions = Decisions(folder, film, codebook)  # to open them writes the film's tables anew
        decisions.require_tables()  # an error where a table could not be written, as on a full disk
        ledgers.headers.extend(decisions.headers)
        ledgers.disputed_spans.update(_disputed_spans(decisions))
        ledgers.notices.extend(decisions.notices)
    return ledgers


def _notices_on_contradictions(agreed: Manifest) -> list[str]:
    """Tell the user of how many spans people agreed on different levels; nothing if there is none."""
    levels_of_span = _agreed_levels(agreed)
    n_contradictory = sum(len(levels) > 1 for levels in levels_of_span.values())
    if n_contradictory == 0:
        return []
    return [counted_message("settled_twice", n_contradictory)]


def _existing_files(folders: Iterable[Path], names: Sequence[str]) -> list[Path]:
    """List the files of these names that exist, folder after folder."""
    paths = [folder / name for folder in folders for name in names]
    return [path for path in paths if path.is_file()]


def _disputed_spans(decisions: Decisions) -> "set[_FilmSpan]":
    """Return the spans of a film on which people differ, and which nothing settles (`disagreements`)."""
    spans = set()
    for difference in decisions.disagreements():
        if not difference.agreed:
            spans.add(_FilmSpan(decisions.film.movie, difference.start_s, difference.end_s))
    return spans


def with_agreed(
    judged: Manifest, agreed: Manifest, disputed_spans: "Collection[_FilmSpan]" = frozenset()
) -> Manifest:
    """Replace what was judged of a span by what people agreed on, where they agreed on one level of it.

    A model learns from the result. There are two cases in which the judgements of a span stay: agreed
    decisions give it different levels, or the span is disputed.

    Parameters
    ----------
    judged : Manifest
        What each person judged.
    agreed : Manifest
        What people agreed on, the latest last.
    disputed_spans : collection
        Spans that somebody judged otherwise since people agreed on them.
    """
    # The latest agreed decision on each span of which one level was agreed
    levels_of_span = _agreed_levels(agreed)
    latest_agreed: dict[_FilmSpan, Clip] = {}
    for clip in agreed:
        span = _film_span(clip)
        have_agreed_on_one_level = len(levels_of_span[span]) == 1
        if have_agreed_on_one_level and span not in disputed_spans:
            latest_agreed[span] = clip

    clips = [clip for clip in judged if _film_span(clip) not in latest_agreed]
    for number, clip in enumerate(latest_agreed.values(), start=1):
        # Ledgers of two films may have equal ids: with a number before it, each id is unique.
        clips.append(replace(clip, clip_id=f"agreed-{number:04d}-{clip.clip_id}"))
    # Agreed decisions have other columns than judgements; all clips of a manifest have the same.
    return judged.with_clips(_with_equal_columns(clips))


def _with_equal_columns(clips: Sequence[Clip]) -> list[Clip]:
    """Fill columns that some clips lack with empty cells: the clips of a manifest must have the same ones."""
    columns = dict.fromkeys(name for clip in clips for name in clip.extras)
    filled = []
    for clip in clips:
        extras = {name: clip.extras.get(name, "") for name in columns}
        filled.append(replace(clip, extras=extras))
    return filled


class _FilmSpan(NamedTuple):
    """A span of a film, in seconds, rounded so that equal spans compare as equal."""

    movie: str
    start_s: float
    end_s: float


def _film_span(clip: Clip) -> _FilmSpan:
    """Return the span of a clip."""
    start_s, end_s = span_key(clip)
    return _FilmSpan(clip.movie, start_s, end_s)


def _agreed_levels(agreed: Manifest) -> dict[_FilmSpan, set[str]]:
    """Return the different levels that agreed decisions give to each span."""
    levels_of_span: dict[_FilmSpan, set[str]] = {}
    for clip in agreed:
        levels_of_span.setdefault(_film_span(clip), set()).add(clip.level or "")
    return levels_of_span


def meanings_in(folders: Sequence[Path], books: Sequence[Codebook] = ()) -> Meanings:
    """Read which definitions mean the same, as people declared in the ledgers of scored films.

    Definitions can be named (`Meanings.names`) if their codebook is in a ledger or among `books`.
    """
    headers: list[Header] = []
    for folder in folders:
        ledger = Ledger(folder, say=lambda _: None)
        ledger.read()
        headers += [line.header for line in ledger.lines.values() if line.header is not None]
    return Meanings(headers, books)


def with_common_definitions(manifest: Manifest, meanings: Meanings) -> Manifest:
    """Write one digest in all judgements whose definitions mean the same (`Meanings.representative`)."""
    clips = []
    for clip in manifest:
        definition = clip.extras.get(DEFINITION, "")
        representative = meanings.representative(definition)
        if definition and representative != definition:
            clips.append(replace(clip, extras={**clip.extras, DEFINITION: representative}))
        else:
            clips.append(clip)
    return manifest.with_clips(clips)
