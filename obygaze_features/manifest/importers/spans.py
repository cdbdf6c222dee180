"""Import spans of films from the files of other tools, subtitles and tables, as a manifest."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

from obygaze_features.apart import readers_apart
from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.io import local_path
from obygaze_features.manifest.clip import OVERHANG_S, Clip, grouped
from obygaze_features.manifest.codebook import BUILTIN, Codebook, builtin_codebook
from obygaze_features.manifest.identity import check_identity, refuse_twins
from obygaze_features.manifest.importers.film_files import FilmFiles
from obygaze_features.manifest.importers.imported import Imported, with_columns
from obygaze_features.manifest.importers.overlaps import overlapping_levels
from obygaze_features.manifest.importers.own_tables import (
    JUDGEMENTS,
    OwnTables,
    is_table,
    proposal_for,
    read_own_table,
    refuse_unread,
)
from obygaze_features.manifest.importers.proposal import unpacked
from obygaze_features.manifest.importers.repeated import repeated_concepts
from obygaze_features.manifest.importers.span_films import OWN_TABLES, FilmNames
from obygaze_features.manifest.importers.tool_spans import ToolSpans, span_of
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.spans.headings import Headings
from obygaze_features.manifest.spans.instant import SHORTEST_S, clock
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import film_named, name_hint, plain
from obygaze_features.manifest.spans.read_apart import FileContent, read_apart
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.roles import DECLARABLE, TierRoles
from obygaze_features.manifest.spans.sources import SOURCES, TABLE, kind_of, what_instead
from obygaze_features.manifest.spans.span_file import Reading, SpanFile
from obygaze_features.manifest.text_tables import CODEBOOK_COLUMN, counted, placed, uncollected
from obygaze_features.text import composed, first_few

LATE_S, LONGEST_S = 3600.0, 86_400.0
"""Where a time code begins that does not begin at 0, at one hour or at ten; what no film lasts."""

NO_VALUE = {"na", "n/a", "<na>", "nan", "none", "null"}
"""What programs write where a cell has no value, and a film or person may be called."""


@checked
@uncollected()
def import_spans(
    files: Sequence[Path | str],
    root: Path | str,
    kind: str = "",
    *,
    tiers: Mapping[str, str] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    wide: Sequence[str] = (),
    words: Mapping[str, str] | None = None,
    movie: str = "",
    annotator: str = "",
    videos: Path | str | None = None,
    codebook: Codebook | None = None,
    rate: Fraction | None = None,
    encoding: str = "",
    length_of: Callable[[Path], float | None] | None = None,
) -> Imported:
    r"""Read spans of films, with their labels, from files of one kind or several.

    Parameters
    ----------
    files
        Annotations of ELAN, BORIS, Praat, VIAN, VIA, Label Studio, CVAT, ActivityNet; RTTM; subtitles;
        answers of machines; judgements of scored films; tables with the columns of a manifest.
    root
        Folder that the manifest will lie in.
    kind
        One of `SOURCES`; by default each file's content tells.
    tiers
        Tier (track, category, attribute) -> `levels`, `concepts` or `labels` (both, by the codebook's words);
        no other is read then. By default tiers named level or concepts are labels, and those of which every
        text, over all files, is of the codebook, and more than one word is used (`spans.roles`).
    columns
        Column of a manifest, or `duration_s` -> the headings of tables that stand for it; several for `level`
        and `concepts` alone (`spans.headings.Headings`).
    wide
        Annotators who have columns of their own, which are called so, or begin or end so.
    words
        Words of the files -> the level or concept of the codebook that each stands for; "" for none.
    movie
        The film, or a path or page of it, where no column says it; by default that of the video or media,
        else the file's name without suffix.
    annotator
        Who annotated, where a file does not say it.
    videos
        Folder of the films, searched recursively.
    codebook
        Of the levels and concepts, which may be spelled by titles and synonyms; by default the one that the
        files name, else the default one.
    rate
        Frames per second of times that are, or end in, frames.
    encoding
        Of text files that are not UTF-8 and have no byte order mark.
    length_of
        Length of a video file in seconds, None where it is unknown; what lies behind its end is left out.

    Notes
    -----
    A row of judgements without a level is left out; where an annotator judged a span again, the last
    judgement counts, blind ones apart from those in sight of the score. A concept belongs to the level above
    it, or to the level with its times and annotator.

    Raises
    ------
    ManifestError
        Naming file, and line or annotation: it is of no kind that is known, a table of ours is wrong, a cell
        that is read cannot be read, a level or concept on a tier that is declared is unknown, a heading that
        is named is in no table, or names differ in case alone.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.manifest import import_spans
    >>> _ = Path("film0.rttm").write_text("SPEAKER film0 1 1.5 2.0 <NA> <NA> Ann <NA> <NA>\n")
    >>> imported = import_spans(["film0.rttm"], "")
    >>> [(clip.movie, clip.start_s, clip.end_s, clip.extras["text"]) for clip in imported.manifest]
    [('film0', 1.5, 3.5, 'Ann')]
    >>> imported.notices[0]
    'film0.rttm: 1 of 1 spans read (rttm)'
    """
    if kind and kind not in SOURCES:
        raise ManifestError(f"kind {kind!r}: expected one of {', '.join(SOURCES)}")
    for name, role in (tiers or {}).items():
        if role not in DECLARABLE:
            raise ManifestError(f"tier {name!r}: {role!r} is no role: expected {', '.join(DECLARABLE)}")
    root, movie = local_path(root), film_named(movie)
    if movie:
        with placed("--movie"):
            Clip("film", movie)
    reading = Reading(rate, encoding, movie, tiers or {}, Headings(columns or {}, wide))
    chosen = _ChosenCodebook(codebook)
    contents = []
    with readers_apart() as child:
        for path in map(local_path, files):
            asked = _Asked(kind, chosen.known, dict(words or {}), annotator)
            content = read_apart(child, path, reading, _read, asked)
            chosen.choose(content.file, _codebook_names(content))
            contents.append(content)
    _refuse_absent_headings(reading.headings, contents)
    label_words = LabelWords(chosen.codebook, words)
    refuse_unread([(content.file, unpacked(content.more)) for content in contents])
    labelled = _Labelled(
        FilmNames(FilmFiles(videos, root)),
        label_words,
        composed(annotator),
        _Lengths(root, length_of),
    )
    return labelled.imported(contents, reading, root)


class _Asked(NamedTuple):
    """What the person says of the labels of a file that is read in a child.

    Attributes
    ----------
    codebook
        The person's, or that of the files before; None where this is the first.
    words
        Words of the file -> what they stand for.
    """

    kind: str
    codebook: Codebook | None
    words: Mapping[str, str]
    annotator: str


def _kind_of(file: SpanFile, codebook: Codebook | None) -> str:
    """Tell a file's kind; one that is of none, and holds times or labels below a header, is a table."""
    try:
        return kind_of(file)
    except ManifestError:
        if what_instead(file) or not is_table(file, LabelWords(codebook or default_codebook())):
            raise
        return TABLE


Content = FileContent[RawSpan]


def _codebook_names(content: Content) -> list[str]:
    """List the codebooks that a file names."""
    if content.table is not None:
        names = [row.cells.get(CODEBOOK_COLUMN, "") for row in content.table.rows]
    else:
        names = [record.cells.get("codebook", "") for record in content.records]
    return list(dict.fromkeys(name.strip() for name in names if name.strip()))


def _read(file: SpanFile, asked: _Asked) -> Content:
    """Read a file of a kind, or of the one that its content tells."""
    file.account.kind = asked.kind or _kind_of(file, asked.codebook)
    if file.account.kind not in OWN_TABLES:
        file.words = LabelWords(asked.codebook or default_codebook(), asked.words)
        return FileContent(file, records=SOURCES[file.account.kind].read(file))
    headings = file.reading.headings
    layout = read_own_table(file)
    present = [heading for heading in headings.named() if headings.is_in(heading, layout.headings)]
    content: Content = FileContent(file, table=layout.table, headings=present, header=layout.headings)
    if file.account.kind == JUDGEMENTS:
        return content
    words = LabelWords(asked.codebook or _codebook_of(_codebook_names(content)), asked.words)
    return replace(content, more=proposal_for(file, layout, words, asked.annotator).packed())


def _refuse_absent_headings(headings: Headings, contents: Sequence[Content]) -> None:
    """Refuse headings that the person names and no table has."""
    present = {heading for content in contents for heading in content.headings}
    absent = [heading for heading in headings.named() if heading not in present]
    if not absent:
        return
    for content in contents:
        if content.table is not None:
            columns = content.header
            hint = name_hint(absent[0], columns)
            raise content.file.error(f"no column {absent[0]!r}{hint}; found {', '.join(columns)}")
    raise ManifestError(f"no table has a column {absent[0]!r}: no file is a table of yours")


def _codebook_of(named: Sequence[str]) -> Codebook:
    """Return the codebook of a file that the person says no other of: the first that it names."""
    is_builtin = bool(named) and named[0] in BUILTIN
    return builtin_codebook(named[0]) if is_builtin else default_codebook()


class _ChosenCodebook:
    """The codebook of an import: the person's, or the one that its files name."""

    def __init__(self, codebook: Codebook | None) -> None:
        self._codebook, self._is_given = codebook, codebook is not None

    @property
    def known(self) -> Codebook | None:
        """The codebook that is chosen so far; None where no file was read."""
        return self._codebook

    @property
    def codebook(self) -> Codebook:
        """The codebook that is chosen; the default one where no file names any."""
        return self._codebook or default_codebook()

    def choose(self, file: SpanFile, named: Sequence[str]) -> None:
        """Take the first that a file names, where the person names none; refuse or note another."""
        if self._codebook is None:
            self._codebook = _codebook_of(named)
        other = next((name for name in named if name != self._codebook.name), "")
        if other:
            what = f"of codebook {other!r}, and the import uses {self._codebook.name!r}"
            if not self._is_given:
                raise file.error(f"{what}: give its file or name with --codebook")
            file.account.notes.append(what)


class _Sourced(NamedTuple):
    """A clip, and where it was read."""

    clip: Clip
    account: Account
    where: str


class _Labelled:
    """What all files of an import are read with, once the codebook is known: its words, films, lengths."""

    def __init__(self, films: FilmNames, words: LabelWords, annotator: str, lengths: "_Lengths") -> None:
        self._films, self._words, self._annotator, self._lengths = films, words, annotator, lengths

    def imported(self, contents: Sequence[Content], reading: Reading, root: Path) -> Imported:
        """Make the manifest, and say what became of everything."""
        roles = self._roles(contents, reading)
        ids = set[str]()
        tables = OwnTables(self._films, self._annotator, ids)
        tools = ToolSpans(self._films, self._words, roles, self._annotator, ids)
        clips: dict[str | int, _Sourced] = {}  # a judgement by its id, which the last one of it keeps
        for content in contents:
            for key, sourced in self._clips(content, tables, tools):
                kept = self._lengths.cut(sourced)
                if kept is not None:
                    kept.account.used += 1
                    clips[len(clips) if key is None else key] = kept
        accounts = [content.file.account for content in contents]
        read = _join_concepts(clips.values())
        equal = _with_equal_columns([sourced.clip for sourced in read])
        kept_clips = _without_bare_rows(equal)
        _refuse_twins(read)
        notices = [*self._account_lines(accounts, read), *roles.notices(), *overlapping_levels(kept_clips)]
        notices += check_identity(kept_clips, root)
        notices += self._films.doubts(kept_clips)
        if n := len(equal) - len(kept_clips):
            notices.append(f"{counted(n, 'row')} of nobody left out, as annotators labelled these clips")
        notices += [f"{path}: {notice}" for path, notice in repeated_concepts(tables.decisions).items()]
        videos = self._films.files
        notices += [*videos.missing(), *videos.notices, *videos.unnamed()]
        with placed(first_few([str(account.path) for account in accounts], 3)):
            manifest = Manifest(tuple(kept_clips), root, self._words.codebook)
        return Imported(manifest, tuple(notices), accounts=tuple(accounts))

    def _roles(self, contents: Sequence[Content], reading: Reading) -> TierRoles:
        """Decide the roles of tiers by all files."""
        roles = TierRoles(self._words, reading.tiers)
        for content in contents:
            source = SOURCES[content.file.account.kind]
            roles.add(content.records, source.tier, is_said=source.is_said)
        return roles

    def _clips(
        self, content: Content, tables: OwnTables, tools: ToolSpans
    ) -> Iterator[tuple[str | None, _Sourced]]:
        """Yield the clips of a file, a judgement with its id."""
        file = content.file
        if content.table is not None:
            for clip, where, judgement in tables.clips(file, content.table, self._words):
                yield judgement or None, _Sourced(clip, file.account, where)
        else:
            for clip, where in tools.clips(file, content.records):
                yield None, _Sourced(clip, file.account, where)

    def _account_lines(self, accounts: Sequence[Account], read: Sequence[_Sourced]) -> list[str]:
        """Write the line of each file, with what is doubtful in its clips."""
        in_tables = {clip.clip_id for clip, account, _ in read if account.kind in OWN_TABLES}
        clips_of: dict[int, list[Clip]] = {id(account): [] for account in accounts}
        for clip, account, _ in read:
            clips_of[id(account)].append(clip)
        n_files = Counter(account.path.name for account in accounts)
        lines = []
        for account in accounts:
            clips = clips_of[id(account)]
            new = [clip.clip_id for clip in clips if clip.clip_id not in in_tables]
            if in_tables and new and account.kind == "answers":
                what = counted(len(new), "clip")
                account.notes.append(f"{what} that no table has (the first: {new[0]}), rows of their own")
            of_unknown_length = [clip for clip in clips if math.isinf(self._lengths.of(clip))]
            account.note(*_doubtful_times(of_unknown_length, account.kind), *_doubtful_names(clips))
            movies = ", ".join(dict.fromkeys(clip.movie for clip in clips))
            lines.append(account.line(movies if n_files[account.path.name] > 1 else ""))
        return lines


def _refuse_twins(read: Sequence[_Sourced]) -> None:
    """Refuse films, and annotators, of one name in two spellings."""
    for what in ("movie", "annotator"):
        first: dict[str, tuple[object, str]] = {}
        for clip, account, where in read:
            first.setdefault(getattr(clip, what), (account.path, where))
        refuse_twins(what, first)


class _Lengths:
    """The lengths of films, where they are known."""

    def __init__(self, root: Path, length_of: Callable[[Path], float | None] | None) -> None:
        self._root, self._length_of = root, length_of and cache(length_of)

    def of(self, clip: Clip) -> float:
        """Return the length of a clip's film in seconds; infinite where it is not known."""
        length = self._length_of(self._root / clip.video) if self._length_of and clip.video else None
        return math.inf if length is None else length

    def cut(self, sourced: _Sourced) -> _Sourced | None:
        """Cut a clip at its film's end, and say so; None, and left out, if it begins behind it."""
        clip, account, where = sourced
        length_s = self.of(clip)
        if clip.start_s is None or clip.end_s is None or clip.end_s <= length_s + OVERHANG_S:
            return sourced
        if clip.start_s >= length_s - SHORTEST_S:
            account.leave(where, f"it begins at {clip.start_s:g} s, but its video ends at {length_s:g} s")
            return None
        account.notes.append(f"{where}: cut at the end of its video, {length_s:g} s")
        return sourced._replace(clip=replace(clip, end_s=length_s))


def _join_concepts(read: Iterable[_Sourced]) -> list[_Sourced]:
    """Join concepts of files without levels: to a level of their times and annotator, or to each other."""
    joined = dict(enumerate(read))
    bare = [place for place, sourced in joined.items() if _is_concepts_alone(sourced)]
    owners: dict[tuple[object, ...], int] = {}
    for place, sourced in joined.items() if bare else ():
        if sourced.clip.level:
            owners[span_of(sourced.clip)] = place
    for place in bare:
        owner = owners.setdefault(span_of(joined[place].clip), place)
        if owner != place:
            concepts = (*joined[owner].clip.concepts, *joined.pop(place).clip.concepts)
            joined[owner] = joined[owner]._replace(clip=replace(joined[owner].clip, concepts=concepts))
    return list(joined.values())


def _is_concepts_alone(sourced: _Sourced) -> bool:
    clip, account, _ = sourced
    has_other = clip.level or clip.extras.get("text")
    return account.kind not in OWN_TABLES and bool(clip.concepts) and not has_other


def _with_equal_columns(clips: Sequence[Clip]) -> list[Clip]:
    """Give all clips the same extra columns, and one video to those of one id."""
    columns = tuple(dict.fromkeys(name for clip in clips for name in clip.extras))
    videos = {clip.clip_id: clip.video for clip in clips if clip.video}
    return [with_columns(clip, columns, videos.get(clip.clip_id, "")) for clip in clips]


def _without_bare_rows(clips: Sequence[Clip]) -> list[Clip]:
    """Leave out rows of nobody, without a level, of clips that annotators labelled."""
    annotated = {(clip.clip_id, clip.movie) for clip in clips if clip.annotator}
    return [
        clip for clip in clips if clip.annotator or clip.level or (clip.clip_id, clip.movie) not in annotated
    ]


def _doubtful_times(clips: Iterable[Clip], kind: str) -> Iterator[str]:
    """Say which films have spans in their first second alone, or behind an hour or a day alone."""
    late, long, short = [], [], []
    for movie, own in grouped(clips, "movie").items():
        first = min(clip.start_s or 0.0 for clip in own)
        last = max(clip.end_s or 0.0 for clip in own)
        if first >= LATE_S:
            late.append(f"{movie}: {clock(first)}")
        if last >= LONGEST_S:
            long.append(f"{movie}: {clock(last)}")
        if 0 < last < 1 and kind in OWN_TABLES:
            short.append(movie)
    if short:
        yield f"no span after the first second ({first_few(short, 3)}): are times shares of a day, or hours?"
    if late:
        yield f"no span in the first hour ({first_few(late, 3)}): does the time code begin at 0?"
    if long:
        yield f"a film of more than a day ({first_few(long, 3)}): are its times milliseconds or frames?"


def _doubtful_names(clips: Iterable[Clip]) -> list[str]:
    """Say which names of films and annotators are what programs write for none."""
    names = sorted({(what, getattr(clip, what)) for clip in clips for what in ("movie", "annotator")})
    return [
        f"{what} {name!r} taken as a name: where there is none, leave it empty"
        for what, name in names
        if plain(name) in NO_VALUE
    ]
