"""Import spans of films from the files of other tools, subtitles and tables, as a manifest."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.io import local_path
from obygaze_features.manifest.clip import OVERHANG_S, Clip, grouped
from obygaze_features.manifest.codebook import BUILTIN, Codebook, builtin_codebook
from obygaze_features.manifest.identity import check_identity, refuse_twins
from obygaze_features.manifest.importers.film_files import FilmFiles
from obygaze_features.manifest.importers.imported import Imported, with_columns
from obygaze_features.manifest.importers.own_tables import OwnTables
from obygaze_features.manifest.importers.repeated import repeated_concepts
from obygaze_features.manifest.importers.span_films import OWN_TABLES, FilmNames
from obygaze_features.manifest.importers.tool_spans import ToolSpans, are_labels, span_of
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.spans.given import Account, Given
from obygaze_features.manifest.spans.instant import SHORTEST_S, clock
from obygaze_features.manifest.spans.names import film_named, plain
from obygaze_features.manifest.spans.sources import SOURCES, kind_of
from obygaze_features.manifest.text_tables import counted, placed, uncollected
from obygaze_features.text import composed, first_few

LATE_S, LONGEST_S = 3600.0, 86_400.0
"""Where a time code begins that does not begin at 0, at one hour or at ten; what no film lasts."""

NO_VALUE = {"na", "n/a", "<na>", "nan", "none", "null"}
"""What programs write where a cell has no value, and a film or person may be called."""

ROLES = ("levels", "concepts")


@uncollected()
def import_spans(
    files: Sequence[Path | str],
    root: Path | str,
    kind: str = "",
    *,
    tiers: Mapping[str, str] | None = None,
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
        Tier (track, category, attribute) -> `levels` or `concepts`; no other is read then. By default the
        tiers that people write on in documents of ELAN; elsewhere a text that the codebook has as a level or
        as concepts is one, and every other text is kept in the column `text`.
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
        Naming file, and line or annotation: it is of no kind that is known, a table of ours is wrong, a level
        or concept on a tier that is named is unknown, or names differ in case alone.

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
        if role not in ROLES:
            raise ManifestError(f"tier {name!r}: {role!r} is no role: expected levels or concepts")
    root, movie = local_path(root), film_named(movie)
    if movie:
        with placed("--movie"):
            Clip("film", movie)
    work = _Import(root, codebook, annotator, FilmNames(FilmFiles(videos, root)))
    for path in map(local_path, files):
        given = Given(path, rate, encoding, movie, tiers or {})
        given.account.kind = kind or kind_of(given)
        work.add(given)
    return work.finish(length_of)


class _Sourced(NamedTuple):
    """A clip, and where it was read."""

    clip: Clip
    account: Account
    where: str


class _Import:
    """The clips and accounts of the files that were read so far."""

    def __init__(self, root: Path, codebook: Codebook | None, annotator: str, films: FilmNames) -> None:
        self._root, self._films = root, films
        self._codebook, self._is_codebook_given = codebook, codebook is not None
        ids = set[str]()
        self._tables = OwnTables(films, composed(annotator), ids)
        self._tools = ToolSpans(films, composed(annotator), ids)
        self._clips: dict[str | int, _Sourced] = {}  # a judgement by its id, which the last one of it keeps
        self._accounts: list[Account] = []

    def add(self, given: Given) -> None:
        """Add the clips of a file."""
        account = given.account
        if account.kind in OWN_TABLES:
            for clip, where, judgement in self._tables.read(given, self._choose_codebook):
                self._clips[judgement or len(self._clips)] = _Sourced(clip, account, where)
        else:
            raws = are_labels(account, account.spans(SOURCES[account.kind].read(given)))
            codebook = self._choose_codebook(given, (raw.cells.get("codebook", "") for raw in raws))
            in_sight = any(reason.startswith("of a model") for _, reason in account.left_out)
            for clip, where in self._tools.read(given, raws, codebook, is_model_in_sight=in_sight):
                self._clips[len(self._clips)] = _Sourced(clip, account, where)
        self._accounts.append(account)

    def _choose_codebook(self, given: Given, names: Iterable[str]) -> Codebook:
        """Find the codebook that a file names, where the person names none; refuse or note another."""
        named = list(dict.fromkeys(name.strip() for name in names if name.strip()))
        if self._codebook is None:
            is_builtin = named and named[0] in BUILTIN
            self._codebook = builtin_codebook(named[0]) if is_builtin else default_codebook()
        other = next((name for name in named if name != self._codebook.name), "")
        if other:
            what = f"of codebook {other!r}, and the import uses {self._codebook.name!r}"
            if not self._is_codebook_given:
                raise given.error(f"{what}: give its file or name with --codebook")
            given.account.notes.append(what)
        return self._codebook

    def finish(self, length_of: Callable[[Path], float | None] | None) -> Imported:
        """Make the manifest, and say what became of everything."""
        read = _join_concepts(self._clips.values())
        lengths = _Lengths(self._root, length_of)
        inside = _with_equal_columns([clip for each in read if (clip := lengths.cut(each))])
        kept = _without_bare_rows(inside)
        for what in ("movie", "annotator"):
            first: dict[str, tuple[Path, str]] = {}
            for clip, account, where in read:
                first.setdefault(getattr(clip, what), (account.path, where))
            refuse_twins(what, first)
        notices = self._account_lines(read, lengths)
        notices += check_identity(kept, self._root)
        notices += self._films.doubts(kept)
        if n := len(inside) - len(kept):
            notices.append(f"{counted(n, 'row')} of nobody left out, as annotators labelled these clips")
        notices += [f"{path}: {notice}" for path, notice in repeated_concepts(self._tables.decisions).items()]
        videos = self._films.files
        notices += [*videos.missing(), *videos.notices, *videos.unnamed()]
        with placed(first_few([str(account.path) for account in self._accounts], 3)):
            manifest = Manifest(tuple(kept), self._root, self._codebook or default_codebook())
        return Imported(manifest, tuple(notices), accounts=tuple(self._accounts))

    def _account_lines(self, read: Sequence[_Sourced], lengths: "_Lengths") -> list[str]:
        """Write the line of each file, with what is doubtful in its clips."""
        in_tables = {clip.clip_id for clip, account, _ in read if account.kind in OWN_TABLES}
        clips_of: dict[int, list[Clip]] = {id(account): [] for account in self._accounts}
        for clip, account, _ in read:
            clips_of[id(account)].append(clip)
        n_files = Counter(account.path.name for account in self._accounts)
        lines = []
        for account in self._accounts:
            clips = clips_of[id(account)]
            new = [clip.clip_id for clip in clips if clip.clip_id not in in_tables]
            if in_tables and new and account.kind == "answers":
                what = counted(len(new), "clip")
                account.notes.append(f"{what} that no table has (the first: {new[0]}), rows of their own")
            of_unknown_length = [clip for clip in clips if math.isinf(lengths.of(clip))]
            account.note(*_doubtful_times(of_unknown_length, account.kind), *_doubtful_names(clips))
            movies = ", ".join(dict.fromkeys(clip.movie for clip in clips))
            lines.append(account.line(movies if n_files[account.path.name] > 1 else ""))
        return lines


class _Lengths:
    """The lengths of films, where they are known."""

    def __init__(self, root: Path, length_of: Callable[[Path], float | None] | None) -> None:
        self._root, self._length_of = root, length_of and cache(length_of)

    def of(self, clip: Clip) -> float:
        """Return the length of a clip's film in seconds; infinite where it is not known."""
        length = self._length_of(self._root / clip.video) if self._length_of and clip.video else None
        return math.inf if length is None else length

    def cut(self, read: _Sourced) -> Clip | None:
        """Cut a clip at its film's end, and say so; None if it begins behind it."""
        clip, account, where = read
        length = self.of(clip)
        if clip.start_s is None or clip.end_s is None or clip.end_s <= length + OVERHANG_S:
            return clip
        if clip.start_s >= length - SHORTEST_S:
            account.used -= 1
            account.leave(where, f"it begins at {clip.start_s:g} s, but its video ends at {length:g} s")
            return None
        account.notes.append(f"{where}: cut at the end of its video, {length:g} s")
        return replace(clip, end_s=length)


def _join_concepts(read: Iterable[_Sourced]) -> list[_Sourced]:
    """Join concepts of files without levels: to a level of their times and annotator, or to each other."""
    joined = dict(enumerate(read))
    bare = [place for place, each in joined.items() if _is_concepts_alone(each)]
    owners = {span_of(each.clip): place for place, each in joined.items() if bare and each.clip.level}
    for place in bare:
        owner = owners.setdefault(span_of(joined[place].clip), place)
        if owner != place:
            concepts = (*joined[owner].clip.concepts, *joined.pop(place).clip.concepts)
            joined[owner] = joined[owner]._replace(clip=replace(joined[owner].clip, concepts=concepts))
    return list(joined.values())


def _is_concepts_alone(read: _Sourced) -> bool:
    clip, account, _ = read
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
