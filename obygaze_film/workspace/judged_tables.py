"""Read what people judged in scored films' folders, and in tables elsewhere, for whoever counts or learns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from obygaze_features.manifest import DEFINITION, Clip, Codebook, Manifest, import_spans
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
        Definitions that people declared to mean the same are one in its column `definition`.
    meanings : Meanings
        By which they are one.
    notices : list of str
        What is to be said of the ledgers and of the tables.
    """

    manifest: Manifest
    meanings: Meanings
    notices: list[str]


def read_judged(
    films: Mapping[Path, Timeline],
    book: Codebook | None,
    names: Sequence[str],
    more: Sequence[Path] = (),
    *,
    settled: bool = False,
    root: Path | None = None,
) -> JudgedTables:
    """Read the tables of these names in scored films' folders, as their ledgers are now, and `more` tables.

    Parameters
    ----------
    films
        By folder.
    book
        Of the levels; by default each film's own for its ledger, and the tables' own.
    names
        Of tables in the folders.
    more
        Tables elsewhere.
    settled
        Whether what people agreed on stands in the place of what they had judged.
    root
        Of the manifest.
    """
    headers: list[Header] = []
    notices: list[str] = []
    for folder, film in films.items():
        if (folder / LEDGER).is_dir():
            decisions = Decisions(folder, film, book or codebook_of(film.model().codebook, None))
            headers += decisions.headers
            notices += decisions.notices
    tables = [folder / name for folder in films for name in names]
    files = [*filter(Path.is_file, tables), *more]
    imported = import_spans(files, root or Path(), "judgements", codebook=book)
    notices += imported.notices
    manifest = imported.manifest
    settled_files = [folder / SETTLED for folder in films if settled and (folder / SETTLED).is_file()]
    if settled_files:
        agreed = import_spans(settled_files, root or Path(), "judgements", codebook=book)
        notices += agreed.notices
        manifest = with_settled(manifest, agreed.manifest)
    meanings = Meanings(headers)
    return JudgedTables(one_definition_a_meaning(manifest, meanings), meanings, notices)


def with_settled(judged: Manifest, agreed: Manifest) -> Manifest:
    """Put what was agreed in the place of all that was judged of its span, for whoever learns.

    What two people settled otherwise is left out: there the judgements stay.
    """
    agreed_of: dict[tuple[str, float, float], list[Clip]] = {}
    for clip in agreed:
        agreed_of.setdefault((clip.movie, *span_key(clip)), []).append(clip)
    settled = {key: clips[-1] for key, clips in agreed_of.items() if len({one.level for one in clips}) == 1}
    clips = [clip for clip in judged if (clip.movie, *span_key(clip)) not in settled]
    for number, clip in enumerate(settled.values(), start=1):
        name = f"agreed-{number:04d}-{clip.clip_id}"
        clips.append(replace(clip, clip_id=name, annotator=f"agreed ({clip.annotator})"))
    columns = dict.fromkeys(name for clip in clips for name in clip.extras)
    return judged.with_clips(
        replace(clip, extras={name: clip.extras.get(name, "") for name in columns}) for clip in clips
    )


def meanings_in(folders: Sequence[Path]) -> Meanings:
    """Read which definitions mean the same, as people declared in the ledgers of scored films."""
    headers: list[Header] = []
    for folder in folders:
        ledger = Ledger(folder, lambda _: None)
        ledger.read()
        headers += [line.header for line in ledger.lines.values() if line.header is not None]
    return Meanings(headers)


def one_definition_a_meaning(manifest: Manifest, meanings: Meanings) -> Manifest:
    """Give judgements whose definitions mean the same one definition."""
    clips = []
    for clip in manifest:
        definition = clip.extras.get(DEFINITION, "")
        if definition and meanings.of(definition) != definition:
            clips.append(replace(clip, extras={**clip.extras, DEFINITION: meanings.of(definition)}))
        else:
            clips.append(clip)
    return manifest.with_clips(clips)
