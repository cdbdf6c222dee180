"""Import spans of films from the files of other tools, subtitles and tables, as a manifest."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.io import local_path
from obygaze_features.manifest.clip import OVERHANG_S, Clip, grouped, has_labels
from obygaze_features.manifest.codebook import BUILTIN, Codebook, builtin_codebook
from obygaze_features.manifest.identity import check_identity, refuse_twins
from obygaze_features.manifest.importers.film_files import FilmFiles
from obygaze_features.manifest.importers.imported import ClipIds, Imported, consumed
from obygaze_features.manifest.importers.overlaps import overlapping_levels
from obygaze_features.manifest.importers.person_tables import (
    JUDGEMENTS,
    PersonTables,
    ids_in,
    is_table,
    proposal_for,
    read_person_table,
    refuse_unread,
)
from obygaze_features.manifest.importers.proposal import proposal_from_json
from obygaze_features.manifest.importers.repeated import repeated_concepts
from obygaze_features.manifest.importers.span_films import PERSON_TABLES, FilmNames
from obygaze_features.manifest.importers.tool_spans import ANSWERS, ToolSpans, key_of_annotated_span
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.spans.formats import json_value
from obygaze_features.manifest.spans.headings import Headings
from obygaze_features.manifest.spans.instant import SHORTEST_S, clock
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import film_named, name_hint
from obygaze_features.manifest.spans.read_in_sandbox import (
    FileContent,
    MemoryBudget,
    read_in_sandbox,
    without_repeats,
)
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.roles import DECLARABLE, TierRoles
from obygaze_features.manifest.spans.sources import SOURCES, TABLE, kind_of, why_not_read
from obygaze_features.manifest.spans.span_file import KINDS, Reading, SpanFile
from obygaze_features.manifest.spans.tier_names import HOW
from obygaze_features.manifest.spans.units import checked_unit
from obygaze_features.manifest.text_tables import (
    CODEBOOK_COLUMN,
    MAX_SHOWN,
    Row,
    Table,
    counted,
    error_context,
    without_gc,
)
from obygaze_features.sandbox import reader_process
from obygaze_features.text import composed, first_few

LATE_S = 3600.0
"""A film whose first span begins later is doubtful: many time codes begin at one hour or at ten, not at 0."""

LONGEST_S = 86_400.0
"""A film whose last span ends later, after a day, is doubtful: its times may be milliseconds or frames."""

EARLY_S = 1.0
"""A film whose last span ends earlier is doubtful: its times may be shares of a day, or hours."""

NO_VALUE = {"na", "n/a", "<na>", "nan", "none", "null", "-", "--", "---", "–", "—", ".", "?", "??", "???"}
"""What programs and people write in a cell without a value; it stays a name, as a film may be called so."""

NOBODY = {
    "unknown", "anonymous", "anon", "nobody", "missing", "not specified", "n.a.", "k.a.", "k. a.", "s/o",
    "s.o.", "n/d", "n.d.", "unbekannt", "anonym", "keine angabe", "niemand", "inconnu", "inconnue", "anonyme",
    "sans objet", "non renseigné", "desconocido", "desconocida", "anónimo", "sconosciuto", "anonimo",
    "desconhecido", "anônimo", "onbekend", "nieznany", "неизвестно", "bilinmiyor", "不明", "未知", "匿名",
    "불명", "غير معروف",
}  # fmt: skip
"""What people write where they do not know the annotator."""

SEVERAL_PEOPLE = {
    "both", "all", "everybody", "consensus", "together", "joint", "beide", "alle", "konsens", "gemeinsam",
    "tous", "toutes", "les deux", "ensemble", "ambos", "ambas", "todos", "todas", "consenso", "entrambi",
    "entrambe", "tutti", "insieme", "allebei", "allen", "obaj", "wszyscy", "оба", "все", "両方", "全員", "都",
}  # fmt: skip
"""What people write where several of them annotated."""

_BETWEEN_NAMES = re.compile(r"[;,/+&|]|\band\b")
"""What people write between the names of several annotators in one cell."""


@checked
@without_gc()
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
    unit: str = "",
    start: str = "",
    encoding: str = "",
    length_of: Callable[[Path], float | None] | None = None,
) -> Imported:
    r"""Make a manifest of the spans of films that files of other tools hold, with their labels.

    Parameters
    ----------
    files
        Files of the kinds in `SOURCES`, such as annotations of ELAN, subtitles, and people's tables.
    root
        Folder that the manifest will be written to.
    kind
        One of `SOURCES`, for all files; by default each file's content tells.
    tiers
        Tier -> its role: `levels`, `concepts` or `labels` (both). If any is given, no other tier is read. By
        default names and texts of the tiers decide (`spans.roles`).
    columns
        Column of a manifest, or `duration_s` -> the headings of tables that stand for it. Only `level` and
        `concepts` may have several (`spans.headings.Headings`).
    wide
        Annotators who have columns of their own, with headings that are, begin or end with their names.
    words
        Word of the files -> the level or concept of the codebook that it stands for; "" for no label.
    movie
        The film, by its name, path or web page, of files that name neither a film nor a video. By default it
        is called as the file of annotations.
    annotator
        The annotator of files that do not name any.
    videos
        Folder of the films, searched recursively.
    codebook
        The codebook of the labels. By default the one that the files name, else the default codebook.
    rate
        Frames per second, for times that are frames or end in frames.
    unit
        Unit of times that are numbers in tables and transcripts: one of `spans.units.UNITS`, such as `ms`. By
        default the heading tells, or the format.
    start
        Time code of the film's first frame, for lists and tables of video editors.
    encoding
        Encoding of text files that are not UTF-8 and have no byte order mark.
    length_of
        Returns the length of a video file in seconds, or None if it is unknown. Spans are cut there.

    Notes
    -----
    If a judge judged a span several times, the last judgement counts; but blind judgements and those with
    the score visible are kept apart.

    Raises
    ------
    ManifestError
        A file or a label cannot be read, or two names differ only in case. The message names the place.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features.manifest import import_spans
    >>> _ = Path("film0.rttm").write_text("SPEAKER film0 1 1.5 2.0 <NA> <NA> Ann <NA> <NA>\n")
    >>> imported = import_spans(["film0.rttm"], "")
    >>> [(clip.movie, clip.start_s, clip.end_s, clip.extras["text"]) for clip in imported.manifest]
    [('film0', 1.5, 3.5, 'Ann')]
    >>> imported.notices[0]
    'film0.rttm: 1 of 1 span read (rttm)'
    """
    if kind and kind not in SOURCES:
        raise ManifestError(f"kind {kind!r}: expected one of {', '.join(SOURCES)}")
    tiers = tiers or {}
    words = dict(words or {})
    _refuse_unknown_roles(tiers)
    root = local_path(root)
    reading = Reading(
        rate=rate,
        unit=checked_unit(unit),
        encoding=encoding,
        movie=_checked_movie(movie),
        tiers=tiers,
        headings=Headings(columns or {}, wide),
        start=start,
    )
    budget = MemoryBudget()
    contents, codebook_of_import = _read_files(
        [local_path(file) for file in files],
        reading,
        _ReadOptions(kind=kind, codebook=codebook, words=words, annotator=annotator),
        budget,
    )

    _refuse_absent_headings(reading.headings, contents)
    _refuse_needless_start(start, contents)
    label_words = LabelWords(codebook_of_import, words)
    proposals_for_columns = [(content.file, proposal_from_json(content.findings)) for content in contents]
    refuse_unread(proposals_for_columns)

    maker = _ManifestMaker(
        films=FilmNames(FilmFiles(videos, root)),
        words=label_words,
        annotator=composed(annotator),
        lengths=_Lengths(root, length_of),
        budget=budget,
    )
    return maker.make_manifest(contents, reading, root)


class _ReadFiles(NamedTuple):
    """The contents of all files of an import, and its codebook: the person's, or the one that they name."""

    contents: "list[Content]"
    codebook: Codebook


def _read_files(
    paths: Sequence[Path], reading: Reading, options: "_ReadOptions", budget: MemoryBudget
) -> _ReadFiles:
    """Read all files in one child process, so that a crafted file cannot harm this one.

    If `options` has no codebook, the first file decides on it for those after it.
    """
    chosen = _ChosenCodebook(options.codebook)
    contents = []
    with reader_process() as child:
        for path in paths:
            options_of_file = options._replace(codebook=chosen.chosen_so_far)
            content = read_in_sandbox(child, path, reading, _read_content, options_of_file, budget=budget)
            chosen.choose(content.file, _codebook_names(content))
            contents.append(content)
    return _ReadFiles(contents, chosen.codebook)


def _refuse_unknown_roles(tiers: Mapping[str, str]) -> None:
    """Refuse a tier whose role is none of those that a person may name."""
    for name, role in tiers.items():
        if role not in DECLARABLE:
            raise ManifestError(f"tier {name!r}: {role!r} is no role: expected {', '.join(DECLARABLE)}")


def _checked_movie(movie: str) -> str:
    """Return the name of the film that option `--movie` gives by its name, path or web page; "" for none.

    Raises
    ------
    ManifestError
        A manifest cannot have a film of this name.
    """
    name = film_named(movie)
    if name:
        with error_context("--movie"):
            Clip("film", name)  # made only for its check of the name
    return name


class _ReadOptions(NamedTuple):
    """The options of an import that the child process needs which reads a file.

    Attributes
    ----------
    kind
        The kind of all files; "" if the content of each file decides.
    codebook
        The person's codebook, or the one that an earlier file names; None if there is neither.
    words
        Words of the file -> the level or concept that each stands for.
    annotator
        Who annotated, where the file does not say it.
    """

    kind: str
    codebook: Codebook | None
    words: Mapping[str, str]
    annotator: str


def _kind_of(file: SpanFile, codebook: Codebook | None) -> str:
    """Return the kind of a file, told by its content; a file of no known format may still be a table.

    Raises
    ------
    ManifestError
        The file is of no kind that is read, and is no table.
    """
    try:
        return kind_of(file)
    except ManifestError:
        if _is_table_of_unknown_format(file, codebook):
            return TABLE
        raise


def _is_table_of_unknown_format(file: SpanFile, codebook: Codebook | None) -> bool:
    """Return whether a file of no known format is a person's table, and no document of JSON or XML."""
    is_unsupported_format = bool(why_not_read(file))  # a format that we know and do not read
    is_json = json_value(file) is not None
    is_xml = file.head.lstrip().startswith("<")
    if is_unsupported_format or is_json or is_xml:
        return False
    return is_table(file, LabelWords(codebook or default_codebook()))


Content = FileContent[RawSpan]


def _codebook_names(content: Content) -> list[str]:
    """Return the codebooks that the rows or records of a file name, each once."""
    if content.table is not None:
        cells = [row.cells.get(CODEBOOK_COLUMN, "") for row in content.table.rows]
    else:
        cells = [record.cells.get(CODEBOOK_COLUMN, "") for record in content.records]
    names = dict.fromkeys(cell.strip() for cell in cells)  # each once, in order
    return [name for name in names if name]


def _read_content(file: SpanFile, options: _ReadOptions) -> Content:
    """Read a file in the child process: the records of another tool, or a person's table.

    The file's account is told its kind, and whether the options `--rate` and `--start` matter to it; the file
    itself gets the words by which its reader tells labels from other texts.
    """
    kind = options.kind or _kind_of(file, options.codebook)
    file.account.kind = kind
    is_table_of_a_person = kind in PERSON_TABLES
    if is_table_of_a_person:
        return _read_table(file, options)

    file.words = LabelWords(options.codebook or default_codebook(), options.words)
    if kind in KINDS:
        file.account.uses_rate = KINDS[kind].get("has_rate", False)
        file.account.uses_start = KINDS[kind].get("has_start", False)
    else:
        # Another package's importer reads it. It may use the rate, so that no notice says that it is unused.
        file.account.uses_rate = True
        file.account.uses_start = False
    records = SOURCES[kind].read(file)
    return FileContent(file, records=without_repeats(records))


def _read_table(file: SpanFile, options: _ReadOptions) -> Content:
    """Read a person's table, and propose meanings for columns whose headings are not known.

    The proposal goes to the parent process as `findings`, in JSON. A table of judgements needs none, as all
    its headings are known.
    """
    headings_of_options = file.reading.headings
    layout = read_person_table(file)
    # The parent refuses a heading that the options name and that no table has.
    named_and_present = [
        heading
        for heading in headings_of_options.named()
        if headings_of_options.is_in(heading, layout.headings)
    ]
    content: Content = FileContent(
        file, table=layout.table, headings=named_and_present, header=layout.headings
    )
    if file.account.kind == JUDGEMENTS:
        return content

    codebook = options.codebook or _codebook_named_first(_codebook_names(content))
    words = LabelWords(codebook, options.words)
    proposal = proposal_for(file, layout, words, options.annotator)
    if proposal.is_import_refused:
        # The parent needs the proposal and the names of codebooks for the refusal, and no other rows.
        content = replace(content, table=_rows_naming_codebooks(layout.table))
    return replace(content, findings=proposal.to_json())


def _rows_naming_codebooks(table: Table) -> Table:
    """Return a table with the first row for each codebook that its rows name, and no other row."""
    first_row_of_codebook: dict[str, Row] = {}  # in the order of the rows, as the first codebook is chosen
    for row in table.rows:
        name = row.cells.get(CODEBOOK_COLUMN, "").strip()
        first_row_of_codebook.setdefault(name, row)
    return replace(table, rows=tuple(first_row_of_codebook.values()))


def _refuse_absent_headings(headings: Headings, contents: Sequence[Content]) -> None:
    """Refuse headings that the person's options (`headings`) name and that no table of the import has.

    The error names the first of them, and the columns of the first table, where it was probably meant to be.
    """
    present = {heading for content in contents for heading in content.headings}
    absent = [heading for heading in headings.named() if heading not in present]
    if not absent:
        return
    first_absent = absent[0]
    for content in contents:
        is_table = content.table is not None
        if is_table:
            columns = content.header  # all headings, as the table has them
            hint = name_hint(first_absent, columns)
            raise content.file.error(
                f"no column {first_absent!r}{hint}; found {first_few(columns, MAX_SHOWN)}"
            )
    raise ManifestError(f"no table has a column {first_absent!r}: no file is a table of yours")


def _refuse_needless_start(start: str, contents: Sequence[Content]) -> None:
    """Refuse `--start`, the time code of a film's first frame, if no file is of a kind with time codes."""
    with_start = [kind for kind, facts in KINDS.items() if facts.get("has_start")]
    kinds = {content.file.account.kind for content in contents}
    if start and kinds.isdisjoint(with_start):
        raise ManifestError(f"--start is for files of kind {' or '.join(with_start)}, and none is there")


def _codebook_named_first(names: Sequence[str]) -> Codebook:
    """Return the codebook of the first of some names if it is built in, else the default codebook."""
    if names and names[0] in BUILTIN:
        return builtin_codebook(names[0])
    return default_codebook()


class _ChosenCodebook:
    """The codebook of an import: the person's, or the one that its files name.

    Attributes
    ----------
    chosen_so_far
        The codebook that is chosen so far; None if none is given and no file was read.
    """

    def __init__(self, codebook: Codebook | None) -> None:
        """Start with the person's codebook; None if the person gives none."""
        self.chosen_so_far = codebook
        self._is_given = codebook is not None

    @property
    def codebook(self) -> Codebook:
        """The codebook that is chosen; the default one if none is given and no file was read."""
        return self.chosen_so_far or default_codebook()

    def choose(self, file: SpanFile, named: Sequence[str]) -> None:
        """If no codebook is chosen yet, choose the one that a file names first; refuse a second one.

        A file that names another codebook is noted, if the person chose the codebook.

        Raises
        ------
        ManifestError
            The file names another codebook than the chosen one, and the person did not choose it.
        """
        if self.chosen_so_far is None:
            self.chosen_so_far = _codebook_named_first(named)
        others = [name for name in named if name != self.chosen_so_far.name]
        if others:
            what = f"of codebook {others[0]!r}, and the import uses {self.chosen_so_far.name!r}"
            if not self._is_given:
                raise file.error(f"{what}: give its file or name with --codebook")
            file.account.notes.append(what)


class _ReadClip(NamedTuple):
    """A clip, with the account of the file that it was read from and its place there."""

    clip: Clip
    account: Account
    where: str


class _ManifestMaker:
    """Makes a manifest of the contents of all files, once the codebook of the import is known.

    Parameters
    ----------
    films
        Names of the films, and the places where files say that they are.
    words
        The words of labels that the codebook knows.
    annotator
        Who annotated, where a file does not say it.
    lengths
        The lengths of the films, at whose ends clips are cut.
    budget
        Counts what this process holds of the files, and refuses too much.
    """

    def __init__(
        self, films: FilmNames, words: LabelWords, annotator: str, lengths: "_Lengths", budget: MemoryBudget
    ) -> None:
        """Keep what all files of an import share; the class describes the parameters."""
        self._films = films
        self._budget = budget
        self._words = words
        self._annotator = annotator
        self._lengths = lengths

    def make_manifest(self, contents: Sequence[Content], reading: Reading, root: Path) -> Imported:
        """Make the manifest of all files, for the folder `root`, with notices for the person who imports.

        Notices say what was left out or changed, and what is doubtful. Making the clips fills the accounts of
        the files, and what is known of films, words and judgements: so notices are written afterwards.
        """
        # 1. Make the clips of all files: of people's tables, and of other tools' files. What a tier holds is
        # decided by all files together, and ids that tables give are taken before others are made.
        tier_roles = self._roles(contents, reading)
        ids = _clip_ids_beside_those_of_tables(contents)
        tables = PersonTables(self._films, self._annotator, ids, self._budget)
        tools = ToolSpans(self._films, self._words, tier_roles, self._annotator, ids)
        read_clips = _join_concepts(self._clips_within_films(contents, tables, tools))
        all_clips = self._with_same_columns([read_clip.clip for read_clip in read_clips])
        manifest_clips = _without_unlabelled_rows(all_clips, self._words.codebook)
        n_left_out = len(all_clips) - len(manifest_clips)
        _refuse_names_spelled_in_two_ways(read_clips)

        # 2. Write notices, in the order in which a person reads them.
        accounts = [content.file.account for content in contents]
        videos = self._films.files
        notices = self._account_lines(accounts, read_clips)
        notices += tier_roles.notices()
        notices += _unused_words(self._words)
        notices += self._clip_notices(manifest_clips, root, n_left_out)
        notices += [f"{path}: {notice}" for path, notice in repeated_concepts(tables.decisions).items()]
        notices += [*videos.missing(), *videos.notices, *videos.unnamed()]
        notices += _unused_options(accounts, reading)

        with error_context(first_few([str(account.path) for account in accounts], 3)):
            manifest = Manifest(tuple(manifest_clips), root, self._words.codebook)
        return Imported(manifest, tuple(notices), accounts=tuple(accounts))

    def _clips_within_films(
        self, contents: Sequence[Content], tables: PersonTables, tools: ToolSpans
    ) -> Iterable[_ReadClip]:
        """Return the clips of all files, cut where their films end, and count them in the files' accounts.

        Of several judgements of one span only the last is kept.
        """
        clips: list[_ReadClip] = []
        index_of_judgement: dict[str, int] = {}  # id of a judgement -> index of its clip in the list
        for content in contents:
            for judgement, read_clip in self._clips(content, tables, tools):
                cut_clip = self._lengths.cut(read_clip)
                if cut_clip is None:
                    continue
                cut_clip.account.used += 1
                if judgement is not None and judgement in index_of_judgement:
                    # A later judgement of a span has the id of the earlier one, and takes its place.
                    clips[index_of_judgement[judgement]] = cut_clip
                    continue
                if judgement is not None:
                    index_of_judgement[judgement] = len(clips)
                clips.append(cut_clip)
        return clips

    def _with_same_columns(self, clips: Sequence[Clip]) -> list[Clip]:
        """Give all clips the extra columns that any of them has, and clips of one id the same video.

        A manifest has the same columns in all rows: those that a clip lacks are empty. Of the rows of one
        clip by several annotators, some may name no video, and get the one that another row names.
        """
        names: dict[str, None] = {}  # of the extra columns, in the order of their first clip
        for clip in clips:
            names |= dict.fromkeys(clip.extras)
        columns = tuple(names)
        # The new empty cells are counted before they are made.
        n_cells = sum(len(columns) - len(clip.extras) for clip in clips)
        self._budget.add("the columns of all files together", cells=n_cells)
        videos = {clip.clip_id: clip.video for clip in clips if clip.video}
        return [_with_columns(clip, columns, videos.get(clip.clip_id, "")) for clip in clips]

    def _clip_notices(self, clips: Sequence[Clip], root: Path, n_unlabelled: int) -> list[str]:
        """Return notices on doubtful clips, and on rows that were left out as they have no annotator."""
        notices = list(overlapping_levels(clips))
        notices += check_identity(clips, root)
        notices += self._films.doubts(clips)
        if n_unlabelled:
            what = counted(n_unlabelled, "row")
            notices.append(f"{what} of nobody left out, as annotators labelled these clips")
        return notices

    def _roles(self, contents: Sequence[Content], reading: Reading) -> TierRoles:
        """Decide what each tier holds (levels, concepts, texts) from its texts in all files."""
        roles = TierRoles(self._words, reading.tiers)
        for content in contents:
            source = SOURCES[content.file.account.kind]
            # Records that name no tier are on one that has the default name of their kind of file.
            roles.add(content.records, default_tier=source.tier, is_speech=source.is_said)
        return roles

    def _clips(
        self, content: Content, tables: PersonTables, tools: ToolSpans
    ) -> Iterator[tuple[str | None, _ReadClip]]:
        """Yield (id of a judgement, clip) for each clip of a file: a person's table or a file of a tool.

        A person's judgements of one window of a scored film share their id, so that only the last is kept.
        The id is None for every other clip.
        """
        file = content.file
        if content.table is not None:
            for clip, location, judgement_id in tables.clips(file, content.table, self._words):
                yield judgement_id or None, _ReadClip(clip, file.account, location)
        else:
            assert isinstance(content.records, list)  # noqa: S101 - records from the child process are a list
            for clip, location in tools.clips(file, consumed(content.records)):
                yield None, _ReadClip(clip, file.account, location)

    def _account_lines(self, accounts: Sequence[Account], read_clips: Sequence[_ReadClip]) -> list[str]:
        """Note in each file's account what is doubtful in its clips, and return a line on each account."""
        ids_in_tables = {clip.clip_id for clip, account, _ in read_clips if account.kind in PERSON_TABLES}
        n_files_of_name = Counter(account.path.name for account in accounts)
        clips_of_files = _clips_of_files(accounts, read_clips)
        lines = []
        for account, clips in zip(accounts, clips_of_files, strict=True):
            self._note_doubts(account, clips, ids_in_tables)

            # Files of the same name in different folders are told apart by their movies.
            movies = ""
            if n_files_of_name[account.path.name] > 1:
                movies = first_few(list(dict.fromkeys(clip.movie for clip in clips)), 3)
            lines.append(account.line(movies))
        return lines

    def _note_doubts(self, account: Account, clips: Sequence[Clip], ids_in_tables: Collection[str]) -> None:
        """Note in the account of a file what is doubtful in its clips: ids, times and names.

        A model answers on clips of people's tables, so the id of an answer should be one of `ids_in_tables`.
        """
        has_models_answers = account.kind == ANSWERS
        if has_models_answers and ids_in_tables:
            note = _clips_in_no_table(clips, ids_in_tables)
            if note:
                account.notes.append(note)

        # Where a film's length is known, its clips were compared with it already.
        with_unknown_end = [clip for clip in clips if math.isinf(self._lengths.of_film(clip))]
        account.note(*_doubtful_times(with_unknown_end, account))
        account.note(*_doubtful_names(clips))


def _clip_ids_beside_those_of_tables(contents: Sequence[Content]) -> ClipIds:
    """Return a maker of new clip ids that makes none of the ids which people's tables give their own clips.

    A table may come after a file for whose clips ids are made, so that all tables are looked at first.
    """
    ids = ClipIds()
    for content in contents:
        if content.table is None:  # a file of a tool
            continue
        kind = content.file.account.kind
        for clip_id in ids_in(content.table, kind):
            ids.take(clip_id)
    return ids


def _with_columns(clip: Clip, names: tuple[str, ...], video: str) -> Clip:
    """Return a clip with exactly the extra columns `names` and, if it names no video, with the video `video`.

    Extra columns that the clip does not have are empty.
    """
    has_columns = tuple(clip.extras) == names
    has_video = bool(clip.video) or not video
    if has_columns and has_video:
        return clip  # not a copy, as there may be very many
    extras = {name: clip.extras.get(name, "") for name in names}
    return replace(clip, extras=extras, video=clip.video or video)


def _clips_of_files(accounts: Sequence[Account], read_clips: Iterable[_ReadClip]) -> list[list[Clip]]:
    """Return the clips of each file, in the order of the files' accounts."""
    # An account is found by its identity, as it is not hashable.
    clips_of_account: dict[int, list[Clip]] = {id(account): [] for account in accounts}
    for clip, account, _ in read_clips:
        clips_of_account[id(account)].append(clip)
    return [clips_of_account[id(account)] for account in accounts]


def _unused_options(accounts: Sequence[Account], reading: Reading) -> list[str]:
    """Return notices on options `--rate` and `--unit` that were given, but by which no time was read."""
    notices = []
    if reading.rate is not None and not any(account.uses_rate for account in accounts):
        notices.append(
            f"--rate {float(reading.rate):g} is used nowhere: no times are frames, or end in frames"
        )
    if reading.unit and not any(account.uses_unit for account in accounts):
        notices.append(
            f"--unit {reading.unit} is used nowhere: no times are numbers whose unit may be another"
        )
    return notices


def _unused_words(words: LabelWords) -> list[str]:
    """Return a notice on the words that options `--word` explain but no file has; [] if there are none."""
    unused_words = words.words_not_read
    if not unused_words:
        return []
    options = [f"--word {shlex.quote(f'{text}={label}')}" for text, label in unused_words.items()]
    return [f"no label in the files is written so: {first_few(options, MAX_SHOWN)}"]


def _clips_in_no_table(clips: Sequence[Clip], ids_in_tables: Container[str]) -> str:
    """Say how many clips that a model answered on are not in the imported tables; "" if all are."""
    new_ids = [clip.clip_id for clip in clips if clip.clip_id not in ids_in_tables]
    if not new_ids:
        return ""
    what = counted(len(new_ids), "clip")
    return f"{what} that no table has (the first: {new_ids[0]}), rows of their own"


def _refuse_names_spelled_in_two_ways(read_clips: Sequence[_ReadClip]) -> None:
    """Refuse films, or annotators, whose name is spelled in two ways.

    Raises
    ------
    ManifestError
        With the first place of each spelling.
    """
    for what in ("movie", "annotator"):
        first_places: dict[str, tuple[object, str]] = {}
        for clip, account, location in read_clips:
            first_places.setdefault(getattr(clip, what), (account.path, location))
        refuse_twins(what, first_places)


class _Lengths:
    """The lengths of films, where they are known."""

    def __init__(self, root: Path, length_of: Callable[[Path], float | None] | None) -> None:
        """Keep how lengths are found: `length_of` measures a video, whose path is relative to `root`.

        Without `length_of`, no length is known.
        """
        self._root = root
        # Cached, as opening a film takes time, and many clips are of one film.
        self._length_of = None if length_of is None else cache(length_of)

    def of_film(self, clip: Clip) -> float:
        """Return the length of a clip's film in seconds; infinite where it is not known."""
        if self._length_of is None or not clip.video:
            return math.inf
        length_s = self._length_of(self._root / clip.video)
        return math.inf if length_s is None else length_s

    def cut(self, read_clip: _ReadClip) -> _ReadClip | None:
        """Return a clip cut at the end of its film, or None if it begins after that.

        The account of the clip's file notes that it was cut or left out.
        """
        clip, account, location = read_clip
        if clip.start_s is None or clip.end_s is None:
            return read_clip  # it is of the whole film
        length_s = self.of_film(clip)
        if clip.end_s <= length_s + OVERHANG_S:
            return read_clip
        if clip.start_s >= length_s - SHORTEST_S:
            account.leave_out(
                location, f"it begins at {clip.start_s:g} s, but its video ends at {length_s:g} s"
            )
            return None
        account.note(f"{location}: cut at the end of its video, {length_s:g} s")
        return read_clip._replace(clip=replace(clip, end_s=length_s))


def _join_concepts(clips: Iterable[_ReadClip]) -> list[_ReadClip]:
    """Join each clip that has only concepts to another clip of its span, its owner.

    This is needed because a tool may export levels in one file and concepts in another, or each concept in a
    file of its own. The owner is a clip of the span with a level, or, if there is none, its first clip
    (`_owners`). Clips of one span have the same film, times and annotator, and were judged in the same way,
    as their tiers say it: concepts that were marked in sight of a score are not joined to a blind label.
    """
    read_clips = list(clips)
    owner_of_clip = _owners(read_clips)  # by their indices; clips that are not joined are not in it
    further_concepts: dict[int, list[str]] = {}  # index of an owner -> the concepts of clips joined to it
    for index, owner_index in owner_of_clip.items():
        further_concepts.setdefault(owner_index, []).extend(read_clips[index].clip.concepts)
    for owner_index, concepts in further_concepts.items():
        owner = read_clips[owner_index]
        all_concepts = (*owner.clip.concepts, *concepts)
        read_clips[owner_index] = owner._replace(clip=replace(owner.clip, concepts=all_concepts))
    return [clip for index, clip in enumerate(read_clips) if index not in owner_of_clip]


def _owners(read_clips: Sequence[_ReadClip]) -> dict[int, int]:
    """Find the clip that each clip with only concepts is joined to (its owner): its index -> owner's index.

    Both clips are of one span. The owner is the last clip of the span that has a level. In a span without a
    level, the first clip with only concepts is the owner of the others.
    """
    with_only_concepts = [index for index, clip in enumerate(read_clips) if _has_only_concepts(clip)]
    if not with_only_concepts:
        return {}

    # The keys are film, times, annotator and how they judged.
    last_with_level: dict[tuple[object, ...], int] = {}
    for index, read_clip in enumerate(read_clips):
        if read_clip.clip.level:
            last_with_level[_key_of_judged_span(read_clip.clip)] = index

    owners = {}
    first_without_level: dict[tuple[object, ...], int] = {}
    for index in with_only_concepts:
        span = _key_of_judged_span(read_clips[index].clip)
        if span in last_with_level:
            owners[index] = last_with_level[span]
        elif span in first_without_level:
            owners[index] = first_without_level[span]
        else:
            first_without_level[span] = index
    return owners


def _key_of_judged_span(clip: Clip) -> tuple[object, ...]:
    """Return a key that is equal for two clips if one annotator judged the same span in the same way."""
    return (*key_of_annotated_span(clip), clip.extras.get(HOW, ""))


def _has_only_concepts(read_clip: _ReadClip) -> bool:
    """Return whether a clip has concepts, but neither a level nor a text.

    It is False for a clip of a person's table, whose rows stand for themselves and are not joined.
    """
    clip, account, _ = read_clip
    has_level_or_text = clip.level or clip.extras.get("text")
    return account.kind not in PERSON_TABLES and bool(clip.concepts) and not has_level_or_text


def _without_unlabelled_rows(clips: Sequence[Clip], codebook: Codebook) -> list[Clip]:
    """Leave out rows without annotator and labels, if another row of the same clip has an annotator.

    Such a row is of a list of clips that nobody had labelled yet.
    """
    annotated = {(clip.clip_id, clip.movie) for clip in clips if clip.annotator}
    labelled_clips = []
    for clip in clips:
        is_unlabelled = not clip.annotator and not has_labels(clip, codebook)
        if is_unlabelled and (clip.clip_id, clip.movie) in annotated:
            continue
        labelled_clips.append(clip)
    return labelled_clips


def _doubtful_times(clips: Iterable[Clip], account: Account) -> Iterator[str]:
    """Yield notices on films whose times seem to be in another unit, or not to count from the film's start.

    `clips` are those of the account's file, without the clips of films whose length is known.
    """
    # Films, as a notice shows them.
    beginning_after_an_hour = []
    longer_than_a_day = []
    ending_in_the_first_second = []
    for movie, clips_of_film in grouped(clips, "movie").items():
        first_start_s = min(clip.start_s or 0.0 for clip in clips_of_film)
        last_end_s = max(clip.end_s or 0.0 for clip in clips_of_film)
        if first_start_s >= LATE_S:
            beginning_after_an_hour.append(f"{movie}: {clock(first_start_s)}")
        if last_end_s >= LONGEST_S:
            longer_than_a_day.append(f"{movie}: {clock(last_end_s)}")
        # Only a person's spreadsheet writes times as shares of a day.
        if account.kind in PERSON_TABLES and 0 < last_end_s < EARLY_S:
            ending_in_the_first_second.append(movie)

    if ending_in_the_first_second:
        films = first_few(ending_in_the_first_second, 3)
        yield f"no span after the first second ({films}): are times shares of a day, or hours?"
    if beginning_after_an_hour:
        films = first_few(beginning_after_an_hour, 3)
        remedy = " Give --start hh:mm:ss:ff if not" if account.uses_start else ""
        yield f"no span in the first hour ({films}): does the time code begin at 0?{remedy}"
    if longer_than_a_day:
        films = first_few(longer_than_a_day, 3)
        yield f"a film of more than a day ({films}): are its times milliseconds or frames?"


def _doubtful_names(clips: Iterable[Clip]) -> list[str]:
    """Return notices on names of films and annotators that are probably not the name of one.

    `NaN` and `unknown` are words for a missing name, and `both` and `AB;CD` are several annotators.
    """
    names = set[tuple[str, str]]()
    for clip in clips:
        names.add(("movie", clip.movie))
        names.add(("annotator", clip.annotator))
    doubts = []
    for column, name in sorted(names):
        if plain(name) in NO_VALUE:
            doubts.append(f"{column} {name!r} taken as a name: where there is none, leave it empty")
        elif column == "annotator" and plain(name) in NOBODY:
            doubts.append(f"{column} {name!r} taken as a person: where nobody is known, leave it empty")
    annotators = {name for column, name in names if column == "annotator"}
    return doubts + _annotators_who_are_several(annotators)


def _annotators_who_are_several(annotators: set[str]) -> list[str]:
    """Return a notice on each annotator whose name stands for several people.

    It is a word for them, such as `both`, or lists other annotators, such as `AB;CD` beside AB and CD.
    """
    doubts = []
    for name in sorted(annotators):
        is_word_for_several = plain(name) in SEVERAL_PEOPLE
        # The others are listed for such words alone: for every name of many, that would take time by their
        # square.
        others = sorted(annotators - {name, ""}) if is_word_for_several else []
        if others:
            shown_others = first_few(list(map(repr, others)), 3)
            doubts.append(
                f"annotator {name!r} taken as one person beside {shown_others}: if several judged together, "
                "write a row for each of them"
            )
        parts = [part.strip() for part in _BETWEEN_NAMES.split(name)]
        listed_names = [part for part in parts if part]
        lists_other_annotators = len(listed_names) > 1 and annotators.issuperset(listed_names)
        if lists_other_annotators:
            shown_names = " and ".join(map(repr, listed_names))
            doubts.append(
                f"annotator {name!r} taken as one name beside {shown_names}: write a row for each of them"
            )
    return doubts
