"""Import spans of films from the files of other tools, subtitles and tables, as a manifest."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import starmap
from pathlib import Path

from obygaze_features.errors import ManifestError
from obygaze_features.io import local_path
from obygaze_features.manifest.clip import OVERHANG_S, Clip, Collected, absolute, clip_of, seen_of
from obygaze_features.manifest.codebook import BUILTIN, Codebook, builtin_codebook
from obygaze_features.manifest.identity import check_identity, refuse_twins
from obygaze_features.manifest.importers import marks
from obygaze_features.manifest.importers.film_files import FilmFiles
from obygaze_features.manifest.importers.folder import movie_of, name_of
from obygaze_features.manifest.importers.imported import Imported, slug, unique_id, with_columns
from obygaze_features.manifest.importers.repeated import repeated_concepts
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.spans.eaf import DECIDED_ON, tier_key
from obygaze_features.manifest.spans.given import Account, Given, RawSpan
from obygaze_features.manifest.spans.instant import SHORTEST_S
from obygaze_features.manifest.spans.names import (
    are_apart,
    film_named,
    is_place,
    path_of,
    stem_of,
)
from obygaze_features.manifest.spans.sources import SOURCES, kind_of
from obygaze_features.manifest.text_tables import (
    CODEBOOK_COLUMN,
    SEEN_SCORE,
    TIMES,
    Row,
    counted,
    placed,
    uncollected,
)
from obygaze_features.text import composed, first_few

KEPT_OF_TOOLS = (
    SEEN_SCORE, DECIDED_ON, "subject", "observation", "modifiers", "comment",
    "model", "prompt", "answered_on",
)  # fmt: skip
"""Extra columns of other tools' files; the last three say which machine answered what, and when."""

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
    made = _Made(root, codebook, annotator, FilmFiles(videos, root), length_of)
    for path in map(local_path, files):
        given = Given(path, rate, encoding, movie, tiers or {})
        given.account.kind = kind or kind_of(given)
        if given.account.kind in marks.OURS:
            made.add_table(given)
        else:
            made.add_spans(given)
    return made.imported()


class _Made:
    """The clips that files give, and what is to be said of them."""

    def __init__(
        self, root: Path, codebook: Codebook | None, annotator: str, films: FilmFiles,
        length_of: Callable[[Path], float | None] | None,
    ) -> None:  # fmt: skip
        self._root, self._codebook, self._annotator, self._films = root, codebook, composed(annotator), films
        self._length_of, self._is_chosen = length_of and cache(length_of), codebook is not None
        self._clips: list[tuple[Clip, Account, str]] = []
        self._ids: set[str] = set()
        self._stems: dict[str, str] = {}
        self._judged: dict[tuple[str, ...], str] = {}
        self._place: dict[str, int] = {}
        self._decisions: list[tuple[Path, int, Mapping[str, str]]] = []
        self._accounts: list[Account] = []
        self._places: dict[tuple[str, str], dict[Path, str]] = {}
        self._apart: dict[str, str] = {}
        self._said: dict[tuple[object, ...], tuple[Clip, Given, str]] = {}
        self._named = cache(self._movie_of)  # many spans are of few films

    # --- tables with the columns of a manifest
    # ---------------------------------------------------------------------------
    def add_table(self, given: Given) -> None:
        """Add the rows of a table of ours."""
        account, judged = given.account, given.account.kind == "judgements"
        table = marks.own_table(given, judged=judged)
        book = self._book(given, [row.cells.get(CODEBOOK_COLUMN, "") for row in table.rows])
        problems = table.problems
        collected = Collected(problems, "clip_id" if "clip_id" in table.columns else "")
        respelled: Counter[tuple[str, str]] = Counter()
        again = 0
        for row in table.timed(rate=given.rate):
            account.seen += 1
            cells = marks.trimmed(row.cells)
            self._decisions += [(given.path, row.line, cells)] if judged else []
            if judged and not cells.get("level"):
                account.leave(f"line {row.line}", "without a level")
                continue
            for scale in book.scales:
                problems.attempt(row.line, scale.name, scale.level_of, cells.get(scale.name, ""))
            full = problems.attempt(row.line, "", self._completed, given, row.line, cells)
            clip = None if full is None else clip_of(full, problems, book, spelled=True)
            if full is None or clip is None:
                continue
            respelled.update(marks.respelled_labels(full, clip, book))
            account.used += 1
            place = len(self._clips)
            if judged:
                place = self._place.setdefault(clip.clip_id, place)
                again += place < len(self._clips)
            else:
                collected.add(clip, row.line)
            self._clips[place : place + 1] = [(clip, account, f"line {row.line}")]
        account.note(*marks.doubts(table, book))
        told = f"{counted(again, 'span was', 'spans were')} judged again: the last counts"
        account.note(told * bool(again))
        read = [f"{text!r} as {name} ({counted(n, 'row')})" for (text, name), n in sorted(respelled.items())]
        account.note(f"read {', '.join(read)}" * bool(read))
        self._accounts.append(account)

    def _judged_as(self, cells: Mapping[str, str]) -> str:
        """Name a judgement, as an earlier one of its span by the same person if there is one."""
        for name in ("annotator", *TIMES, SEEN_SCORE):
            if not cells[name]:
                raise ManifestError("is empty: a judgement is somebody's, of a span", name)
        # What was judged blindly stays, whatever was judged in sight of the score.
        key = tuple(cells[name] for name in ("movie", "annotator", *TIMES, SEEN_SCORE))
        if key not in self._judged:
            stem = f"{slug(cells['movie'])}-{slug(cells['annotator'])}"
            self._judged[key] = unique_id(stem, len(self._judged) + 1, self._ids)
        return self._judged[key]

    def _completed(self, given: Given, line: int, cells: Mapping[str, str]) -> Row:
        """Fill in whose and of what a row is, where it does not say; find where its video lies."""
        written, movie = cells.get("video", ""), cells.get("movie", "")
        if "video" in cells and not (written or movie or given.movie):
            raise ManifestError("is empty", "video")
        if is_place(movie):
            movie = self._at(given, movie, film_named(movie), "movie")
        movie = movie or given.movie * (not written)
        name, video = slug(movie), "" if written else self._films.film_of(movie)
        while self._stems.setdefault(name, composed(movie)) != composed(movie):
            name += "-2"
        if written:
            inside, video = self._films.video(given.path, written)
            name = composed(name_of(inside))
            if not movie:
                movie = given.movie or composed(movie_of(inside))
                self._at(given, movie if given.movie or len(inside.parts) > 1 else written, movie, "video")
        if cells["start_s"] and cells["end_s"]:
            name = f"{name}-{cells['start_s']}-{cells['end_s']}"
        whole = {**cells, "clip_id": cells.get("clip_id") or name, "movie": movie, "video": video}
        whole["annotator"] = cells.get("annotator", "") or self._annotator * bool(cells.get("level"))
        if given.account.kind == "judgements":
            whole[SEEN_SCORE] = seen_of(whole[SEEN_SCORE])
            whole["clip_id"] = self._judged_as(whole)
        return Row(line, whole)

    def _book(self, given: Given, names: Iterable[str]) -> Codebook:
        """Find the codebook that a file names, where the person names none; refuse or note another."""
        named = [*dict.fromkeys(filter(None, map(str.strip, names)))]
        if self._codebook is None:
            self._codebook = builtin_codebook(named[0]) if {*named[:1]} & {*BUILTIN} else default_codebook()
        if other := next((name for name in named if name != self._codebook.name), ""):
            what = f"of codebook {other!r}, and the import uses {self._codebook.name!r}"
            if not self._is_chosen:
                raise given.error(f"{what}: give its file or name with --codebook")
            given.account.notes.append(what)
        return self._codebook

    # --- files of other tools
    # ---------------------------------------------------------------------------
    def add_spans(self, given: Given) -> None:
        """Add the spans of another tool's file."""
        account = given.account
        found = account.spans(SOURCES[account.kind].read(given))
        raws = [raw for raw in found if marks.is_label(account, raw)]
        book = self._book(given, (raw.cells.get("codebook", "") for raw in raws))
        roles = {tier_key(name): role for name, role in given.tiers.items()}
        words = [
            {marks.word(name) for each in of for name in each.spellings}
            for of in (book.levels, book.concepts)
        ]
        seen = any(why.startswith("of a model") for _, why in account.left_out)
        twins = set() if roles else words[0] & words[1]
        both = sorted({raw.text for raw in raws if marks.word(raw.text) in twins and not raw.role})
        account.note(*(f"{text!r} is a level and a concept, read as the level: give --tier" for text in both))
        levels, named, unknown, told = [], [], Counter[str](), Counter[tuple[str, bool]]()
        account.note(*marks.absent_tiers(given, raws))
        for raw in raws:
            role, parts = marks.role_of(raw, roles, *words, is_said=account.kind in marks.SAID)
            told[raw.tier, role == "text"] += 1
            if role == "left":
                account.leave(raw.where, f"on tier {raw.tier!r}, which --tier does not name")
            elif role == "text" and account.kind == "answers":
                account.leave(raw.where, f"{raw.text!r:.40} is no level of codebook {book.name!r}")
            elif role == "concepts":
                named.append(raw)
            else:
                levels.append(marks.Marked(raw, self._movie(given, raw), role == "levels", parts))
                unknown[raw.text] += role == "text" and bool(raw.text)
        account.notes += [
            f"tier {name!r}: most texts are not of codebook {book.name!r}, the others are read as labels: if "
            "they are none, give --tier"
            for name, is_text in sorted(told)
            if name and is_text and 0 < told[name, False] < told[name, True]
        ]
        account.notes += marks.doubtful_questions(given.questions, book)
        self._join(given, levels, named)
        if account.kind not in marks.SAID and (rest := +unknown):
            names = first_few([f"{text!r} ({n})" for text, n in rest.most_common()], 3)
            what = f"{counted(rest.total(), 'label')} not of codebook {book.name!r}"
            account.notes.append(f"{what}: kept as text ({names})")
        has_text = any(level.text and not level.is_level for level in levels)
        for number, level in enumerate(levels, start=1):
            clip = self._clip(given, level, book, number, has_text=has_text, seen=seen)
            if why := self._repeated(given, level, clip):
                account.leave(level.raw.where, why)
                continue
            account.used += 1
            self._clips.append((clip, account, level.raw.where))
        self._accounts.append(account)

    def _repeated(self, given: Given, level: marks.Marked, clip: Clip) -> str:
        """Say where the same was read before; refuse a level that contradicts another of its times."""
        key = marks.facts_of(clip), *(clip.extras.get(name, "") for name in (SEEN_SCORE, DECIDED_ON))
        said = clip.level, frozenset(clip.concepts), clip.extras.get("text", "")
        own = clip, given, level.raw.where
        before, of, where = self._said.setdefault((*key, level.is_level or said), own)
        if before is clip or level.raw.cells.get("clip_id") or (not level.is_level and of is given):
            return ""
        place = f"{where} of {of.path.name}"
        if (before.level, frozenset(before.concepts)) != said[:2]:
            raise given.error(
                f"{level.raw.where}: {marks.labels_of_clip(clip)} where {place}, of its times and annotator, "
                f"says {marks.labels_of_clip(before)}: keep one; tiers of different people are imported "
                "apart, with --tier and --annotator"
            )
        other = [name for name, cell in clip.extras.items() if cell != before.extras.get(name, "")]
        return f"the same as {place}" + f" but for {', '.join(other)}" * bool(other)

    def _movie(self, given: Given, raw: RawSpan) -> str:
        """Name the film of a span."""
        return self._named(given, raw.cells.get("movie", ""), raw.cells.get("media", ""))

    def _movie_of(self, given: Given, said: str, media: str) -> str:
        """Name a film: as its file does, as the person does, by its media, or by its file."""
        named = film_named(said) or given.movie or stem_of(media)
        if not named and given.account.kind == "eaf":
            raise given.error("does not say which film it is of: give --movie")
        movie = composed(" ".join((named or marks.film_by_name(given)).split()))
        own = "" if named else absolute(given.path).with_name(movie).as_posix()
        media = path_of(media).name if given.movie else media  # which is one film, wherever it lies
        if place := said if is_place(said) else media * (not said) or own:
            with placed(given.path):
                self._at(given, place, movie)
        return movie

    def _at(self, given: Given, place: str, movie: str, column: str = "") -> str:
        """Refuse two places in a file that give one film, or are two videos; note those of several files."""
        known = self._places.setdefault((movie, given.account.kind), {given.path: place})
        twin, first = known.setdefault(given.path, place), next(iter(known.values()))
        for other in {twin, first} - {place}:
            if are_apart(other, place):
                found = {self._films.find(each) for each in (other, place)} - {None}
                if other == twin or len(found) > 1:
                    what = f"{other!r} and {place!r} would both be movie {movie!r}"
                    remedy = "name each in a column movie, or import them apart with --movie"
                    raise ManifestError(f"{what}: {remedy}", column)
                self._apart.setdefault(movie, f"{movie}: {other} and {place}")
        return movie

    def _join(self, given: Given, levels: list[marks.Marked], named: Sequence[RawSpan]) -> None:
        """Give concepts to the level above them, or of their times and annotator; without levels, clips."""
        account = given.account
        real = [level for level in levels if level.is_level]
        by_id = {level.raw.own: level for level in real if level.raw.own}
        by_span: dict[tuple[object, ...], list[marks.Marked]] = {}
        for level in real if named else ():
            by_span.setdefault(marks.span_key(level.raw, level.movie, self._annotator), []).append(level)
        for mark in named:
            movie, parts = self._movie(given, mark), marks.parts_of(mark.text)
            if not real:
                levels.append(marks.Marked(mark, movie, is_level=False, parts=["", *parts]))
                continue
            above = [by_id[name] for name in mark.above if name in by_id]
            beside = by_span.get(marks.span_key(mark, movie, self._annotator), [])
            same = above or [each for each in beside if marks.is_of_one(each.raw, mark)]
            for level in same:
                level.concepts += parts
            account.used += bool(same)
            if not same:
                account.leave(mark.where, "concepts without a level of their times, annotator and subject")

    def _clip(
        self, given: Given, level: marks.Marked, book: Codebook, number: int, *, has_text: bool, seen: bool
    ) -> Clip:
        """Make a clip of a span and what is marked on it."""
        raw, cells = level.raw, level.raw.cells
        who = marks.annotator_of(raw, self._annotator)
        text = "" if level.is_level else level.text
        extras = {"text": text} if has_text else {}
        extras |= {name: cells[name] for name in KEPT_OF_TOOLS if cells.get(name)}
        if raw.tier and (text or given.tiers):
            extras["tier"] = raw.tier
        extras |= {SEEN_SCORE: "1"} if seen else {}
        stem = f"{slug(level.movie)}-{slug(who)}" if who else slug(level.movie)
        if not who and SOURCES[given.account.kind].is_signed:
            where = "set the tier's annotator in ELAN" if given.account.kind == "eaf" else "name its model"
            raise given.error(f"{raw.where}: nobody's: {where}, or give --annotator")
        start, end = (None, None) if raw.whole else (raw.start_s, raw.end_s)
        with placed(f"{given.path}: {raw.where}"):
            name = cells.get("clip_id") or unique_id(stem, number, self._ids)
            video = self._films.film_of(cells.get("media", "") or level.movie)
            named = book.level_spelled(level.text) if level.is_level else None
            concepts = tuple(map(book.concept_spelled, level.concepts))
            return Clip(name, level.movie, video, start, end, named, concepts, who, extras)

    # --- all files
    # ---------------------------------------------------------------------------
    def imported(self) -> Imported:
        """Make the manifest, and say what became of everything."""
        self._clips = marks.joined(self._clips)
        inside = [clip for clip in starmap(self._inside, self._clips) if clip]
        told = dict.fromkeys(name for clip in inside for name in clip.extras)
        videos = {clip.clip_id: clip.video for clip in inside if clip.video}
        kept = [with_columns(clip, tuple(told), videos.get(clip.clip_id, "")) for clip in inside]
        theirs = {(clip.clip_id, clip.movie) for clip in kept if clip.annotator}
        n_before = len(kept)
        kept = [
            clip for clip in kept if clip.annotator or clip.level or (clip.clip_id, clip.movie) not in theirs
        ]
        for what in ("movie", "annotator"):  # reversed, so that the first place of each name stays
            places = ((getattr(clip, what), (of.path, where)) for clip, of, where in reversed(self._clips))
            refuse_twins(what, dict(places))
        tabled = {clip.clip_id for clip, account, _ in self._clips if account.kind in marks.OURS}
        names, notices = Counter(account.path.name for account in self._accounts), []
        clips: dict[int, list[Clip]] = {id(account): [] for account in self._accounts}
        for clip, account, _ in self._clips:
            clips[id(account)].append(clip)
        for account in self._accounts:
            own = clips[id(account)]
            new = [clip.clip_id for clip in own if clip.clip_id not in tabled]
            if tabled and new and account.kind == "answers":
                what = counted(len(new), "clip")
                account.notes.append(f"{what} that no table has (the first: {new[0]}), rows of their own")
            unknown = (clip for clip in own if math.isinf(self._length(clip)))
            account.note(*marks.doubtful_times(unknown, account.kind), *marks.nameless(own))
            movies = dict.fromkeys(clip.movie for clip in own)
            notices.append(account.line(", ".join(movies) if names[account.path.name] > 1 else ""))
        notices += check_identity(kept, self._root)
        notices += marks.doubtful_films(kept, self._places)
        apart = counted(len(self._apart), "movie"), first_few([*self._apart.values()], 3)
        what = "{} named by several files ({}): films of one name are imported apart, with --movie"
        notices += [what.format(*apart)] * bool(self._apart)
        if bare := n_before - len(kept):
            notices.append(f"{counted(bare, 'row')} of nobody left out, as annotators labelled these clips")
        notices += [f"{path}: {notice}" for path, notice in repeated_concepts(self._decisions).items()]
        notices += [*self._films.missing(), *self._films.notices, *self._films.unnamed()]
        with placed(first_few([str(account.path) for account in self._accounts], 3)):
            manifest = Manifest(tuple(kept), self._root, self._codebook or default_codebook())
        return Imported(manifest, tuple(notices), accounts=tuple(self._accounts))

    def _length(self, clip: Clip) -> float:
        """Return the length of a clip's film in seconds; infinite where it is not known."""
        length = self._length_of(self._root / clip.video) if self._length_of and clip.video else None
        return math.inf if length is None else length

    def _inside(self, clip: Clip, account: Account, where: str) -> Clip | None:
        """Cut a span at its film's end, where that is known; None, and said, if it begins behind it."""
        length = self._length(clip)
        if clip.start_s is None or clip.end_s is None or clip.end_s <= length + OVERHANG_S:
            return clip
        if clip.start_s >= length - SHORTEST_S:
            account.used -= 1
            account.leave(where, f"it begins at {clip.start_s:g} s, but its video ends at {length:g} s")
            return None
        account.notes.append(f"{where}: cut at the end of its video, {length:g} s")
        return replace(clip, end_s=length)
