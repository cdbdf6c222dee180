"""Read tables with the columns of a manifest, and judgements of scored films."""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from obygaze_features.cells import is_unreadable
from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.manifest.clip import Clip, Collected, clip_of_row, parse_seen_score, split_concepts
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.importers.column_contents import (
    cells_of,
    count_labels,
    is_of_marks,
    label_of_heading,
)
from obygaze_features.manifest.importers.column_proposals import propose
from obygaze_features.manifest.importers.columns import (
    LabelReader,
    with_manifest_names,
    with_names_of_scales,
)
from obygaze_features.manifest.importers.folder import movie_of, name_of
from obygaze_features.manifest.importers.imported import ClipIds, consumed, slug
from obygaze_features.manifest.importers.proposal import Proposal, UnreadColumnsError, option
from obygaze_features.manifest.importers.span_films import FilmNames
from obygaze_features.manifest.importers.table_layout import Layout, TooManyColumnsError, read_layout
from obygaze_features.manifest.importers.table_rows import (
    clip_rows,
    maybe_commented_out,
    maybe_no_clips,
    with_films_of_blocks,
    with_whole_names,
)
from obygaze_features.manifest.spans.headings import LABEL_COLUMNS, NAMED_COLUMNS, Headings
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import film_named, is_place
from obygaze_features.manifest.spans.read_in_sandbox import MemoryBudget
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import DECISION, HOW, is_of_a_model
from obygaze_features.manifest.text_tables import (
    OUR_COLUMNS,
    SEEN_SCORE,
    TIMES,
    Problems,
    Row,
    Table,
    counted,
    table_of,
)
from obygaze_features.text import composed, first_few
from obygaze_features.workbook import SHEET

DecisionRow = tuple[Path, int, Mapping[str, str]]
"""A row of judgements: its file, line and cells."""

JUDGEMENTS = "judgements"

COLUMNS_OF_SCORED_FILMS: Final = frozenset({"judgement", "judged_at", "draw", DECISION})
"""Columns by which a table of judgements is known to be of a scored film: of its folder, or exported."""

SHOWN_COLUMNS = 4
SHOWN_WORDS = 3
MAX_RESPELLINGS = 10

TELLING_ROWS = 1000
"""Rows by which a table is first told from files that are none."""

CELLS_PER_LABEL = 4
"""A column that is not read is named for its labels if at least one of so many cells is a label."""


class TableClip(NamedTuple):
    """A clip of a person's table.

    Attributes
    ----------
    clip
        The clip.
    where
        Its line in the table.
    judgement
        The id that all judgements of its span by one person share, the last of which counts; "" where the
        table holds no judgements.
    """

    clip: Clip
    where: str
    judgement: str


class VideoFilm(NamedTuple):
    """The film of a video that a table names.

    Attributes
    ----------
    movie
        Name of the film.
    name
        Part of clips' ids that stands for the video.
    path
        Path of the video as the manifest stores it.
    """

    movie: str
    name: str
    path: str


class PersonTables:
    """Reads tables with the columns of a manifest, and remembers the films and judgements of earlier tables.

    Parameters
    ----------
    films
        Names of the films, and the places where files say that they are.
    annotator
        Who annotated, where a table does not say it.
    ids
        Makes the ids of judgements, over all files.
    budget
        What the process holds of the files, which is limited.

    Attributes
    ----------
    decisions
        All rows of judgements, with those that have no level.
    """

    def __init__(self, films: FilmNames, annotator: str, ids: ClipIds, budget: MemoryBudget) -> None:
        """Remember films, ids and judgements over all tables of an import."""
        self._films = films
        self._annotator = annotator
        self._ids = ids
        self._budget = budget
        self.decisions: list[DecisionRow] = []
        # Slugs stand for films in the ids of clips, where no video file names the film (`_unique_slug`).
        self._slug_of_title: dict[str, str] = {}  # each slug is of one title only
        self._taken_slugs = set[str]()
        self._next_number_of_slug: dict[str, int] = {}  # slug -> number that the next film with it gets
        # Clips of judgements: those of one span by one judge, blind or not, share an id (`_judgement_id`).
        self._id_of_judgement: dict[tuple[str, ...], str] = {}  # film, judge, span, seen_score -> clip id
        self._ids_of_judged_clips: set[str] = set()  # those that a row has already, to count repeated ones
        # Which ids in tables of judgements are taken (`_take_id_if_free`).
        self._span_of_id_in_table: dict[str, tuple[str, ...]] = {}  # clip id in a table -> film and times
        self._taken_by_annotator = set[tuple[str, str]]()  # (clip id in a table, annotator)

    def clips(self, file: SpanFile, table: Table, words: LabelWords) -> Iterator[TableClip]:
        """Yield the clips of a table, and note in its file's account what is doubtful or not read.

        The account also counts the rows: those that become clips, and those that are left out. The table's
        columns are called as those of a manifest already, where their meaning is known.

        Raises
        ------
        ManifestError
            With all cells of the table that cannot be read.
        """
        account = file.account
        are_judgements = account.kind == JUDGEMENTS
        table = with_names_of_scales(table, words.codebook)

        # 1. Leave out the rows that are no clips.
        if not are_judgements:
            table = _without_other_rows(file, table, words)
            _note_whole_films(file, table)
        account.shows_model_output = any(is_of_a_model(row.cells.get("tier", "")) for row in table.rows)

        # 2. Read the labels, and leave out the rows that lack their times. Notices on rows are written now,
        # as the rows are gone when they are noted.
        labels = LabelReader(table, file.reading.headings, words)
        self._count_memory_of_rows_of_annotators(file, table, labels)
        rows = _without_rows_lacking_times(file, _labelled_rows(file, table, labels))
        notices_on_lacking_cells = list(_notices_on_lacking_cells(rows))
        notices_on_odd_rows = [] if are_judgements else list(_notices_on_odd_rows(table))

        # 3. Make all clips before the first is yielded, as any row may have a problem. `consumed` frees the
        # memory of rows and clips while they are used.
        make_clips = self._clips_of_judgements if are_judgements else self._clips_of_rows
        clips = list(make_clips(file, table, consumed(rows), words.codebook))
        _refuse_problems(table)
        has_labels = any(table_clip.clip.level or table_clip.clip.concepts for table_clip in clips)
        yield from consumed(clips)

        # 4. Note what is doubtful. The caller may have noted more about single clips meanwhile.
        account.note(*table.notes, *labels.notes, _respelled_labels(labels.respelled))
        account.note(*notices_on_lacking_cells, *_doubtful_annotators(table, words), *notices_on_odd_rows)
        is_written_by_obygaze = are_judgements or account.shows_model_output
        if not is_written_by_obygaze:  # else the other columns hold what a model found
            mentioned = account.mentioned_columns
            account.note(*_notices_on_unread_columns(table, labels, words, mentioned, has_labels=has_labels))

    def _count_memory_of_rows_of_annotators(self, file: SpanFile, table: Table, labels: LabelReader) -> None:
        """Add to the budget the rows that a table gets if annotators have columns of their own.

        Each row of the table then becomes one row for each annotator. A table that would take too much memory
        is refused here, before these rows are made.
        """
        n_further = len(table.rows) * max(len(labels.annotators) - 1, 0)
        self._budget.add(file.path, rows=n_further, cells=n_further * len(table.columns))

    def _clips_of_rows(
        self, file: SpanFile, table: Table, rows: Iterable[Row], codebook: Codebook
    ) -> Iterator[TableClip]:
        """Yield the clips of a table's rows; add what cannot be read to the table's problems."""
        problems = table.problems
        has_ids = "clip_id" in table.columns
        column_of_ids = "clip_id" if has_ids else ""  # for messages
        clips_so_far = Collected(problems, column_of_ids)  # refuses a clip that is there twice
        whole_films = _WholeFilms(problems)
        for row in rows:
            file.account.seen += 1
            clip = self._clip_of_cells(file, row.line, _trimmed(row.cells), problems, codebook)
            if clip is None:
                continue
            if not has_ids:
                whole_films.add(clip, row.line)
            clips_so_far.add(clip, row.line)
            yield TableClip(clip, f"line {row.line}", judgement="")

    def _clips_of_judgements(
        self, file: SpanFile, table: Table, rows: Iterable[Row], codebook: Codebook
    ) -> Iterator[TableClip]:
        """Yield the clips of rows of judgements; add what cannot be read to the table's problems.

        All rows are remembered as decisions. Those without a level, concepts and ranks are no clips, and are
        counted in the file's account. A span may be judged again, by rows with the same clip id.
        """
        account = file.account
        n_judged_again = 0
        for row in rows:
            account.seen += 1
            cells = _trimmed(row.cells)
            self.decisions.append((file.path, row.line, cells))
            if not _has_labels(cells, codebook):
                account.leave_out(f"line {row.line}", "without a level")
                continue
            clip = self._clip_of_cells(file, row.line, cells, table.problems, codebook)
            if clip is None:
                continue
            if clip.clip_id in self._ids_of_judged_clips:
                n_judged_again += 1
            self._ids_of_judged_clips.add(clip.clip_id)
            yield TableClip(clip, f"line {row.line}", judgement=clip.clip_id)
        if n_judged_again:
            what = counted(n_judged_again, "span was", "spans were")
            account.note(f"{what} judged again: the last counts")

    def _clip_of_cells(
        self, file: SpanFile, line: int, cells: Mapping[str, str], problems: Problems, codebook: Codebook
    ) -> Clip | None:
        """Return the clip of a row of a table; None if it cannot be read, which is added to the problems.

        The problems of all rows are collected and refused together. `problems.attempt` calls a function with
        the arguments that follow it; if that raises an error, it adds the error and returns None.
        """
        for scale in codebook.scales:
            # The level is not used: this only notes a cell that is no number of the scale as a problem.
            problems.attempt(line, scale.name, scale.level_of, cells.get(scale.name, ""))
        completed_row = problems.attempt(line, "", self._completed, file, line, cells, codebook)
        if completed_row is None:
            return None
        # LabelReader has written the labels of the row as the codebook spells them.
        return clip_of_row(completed_row, problems, codebook, spelled=True)

    def _completed(self, file: SpanFile, line: int, cells: Mapping[str, str], codebook: Codebook) -> Row:
        """Return a row of a table with its film, video, annotator and clip id filled in.

        Its film is remembered for later rows and files, and so is the id of a judgement.

        Raises
        ------
        ManifestError
            The row names neither a film nor a video, or a judgement lacks a cell.
        """
        names_film = bool(cells.get("video") or cells.get("movie") or file.reading.movie)
        if "video" in cells and not names_film:
            # Problems put the line and the column before this text: "line 7, column video: is empty".
            raise ManifestError("is empty", "video")
        film = self._film_of_row(file, cells)

        annotator = cells.get("annotator", "")
        if not annotator and _has_labels(cells, codebook):
            annotator = self._annotator

        id_in_table = cells.get("clip_id", "")
        completed = {
            **cells,
            "clip_id": id_in_table or _clip_id_of_times(film, cells),
            "movie": film.movie,
            "video": film.path,
            "annotator": annotator,
        }
        if file.account.kind == JUDGEMENTS:
            completed[SEEN_SCORE] = parse_seen_score(completed[SEEN_SCORE])
            completed["clip_id"] = self._judgement_id(completed, id_in_table)
        return Row(line, completed)

    def _film_of_row(self, file: SpanFile, cells: Mapping[str, str]) -> VideoFilm:
        """Return the film of a row: by its cells `movie` and `video`, else by the option `--movie`."""
        movie = cells.get("movie", "")
        if is_place(movie):
            # The cell has a path or a web page, which names the film and says where it is.
            path_or_url = movie
            movie = film_named(path_or_url)
            self._films.add_place(file, movie, path_or_url, "movie")
        if cells.get("video"):
            return self._film_of_video(file, movie, cells["video"])
        movie = movie or file.reading.movie
        return VideoFilm(
            movie=movie,
            name=self._name_of_film(movie),
            path=self._films.files.stored_path_of_movie(movie),
        )

    def _film_of_video(self, file: SpanFile, movie: str, written: str) -> VideoFilm:
        """Return the film of a video that a row names.

        It is the movie that the row names, else that of `--movie`, else the first folder of the video's path,
        else the name of the video file. `movie` is "" if the row names none, and `written` the video's path
        or URL as the row has it.
        """
        video = self._films.files.video(file.path, written)
        name_in_ids = composed(name_of(video.path_in_folder))
        if movie:
            return VideoFilm(movie, name_in_ids, video.path)

        movie_option = file.reading.movie
        movie = movie_option or composed(movie_of(video.path_in_folder))
        # The place of a film is where rows say that it is. A film with two places gets a notice, as these are
        # probably two films of one name. Videos of one sub-folder, or with --movie, are meant to be one film:
        # they get the film's name as their common place.
        is_in_a_sub_folder = len(video.path_in_folder.parts) > 1
        may_share_film = bool(movie_option) or is_in_a_sub_folder
        place = movie if may_share_film else written
        self._films.add_place(file, movie, place, "video")
        return VideoFilm(movie, name_in_ids, video.path)

    def _name_of_film(self, movie: str) -> str:
        """Return the part of clips' ids that stands for a film: the name of its video, else a slug.

        Its video is the file of the folder of videos, if the person gave one, that is called as the movie.
        """
        videos = self._films.files
        if not videos.files:  # no folder of videos
            return self._unique_slug(movie)
        path_of_video = videos.find(movie)
        if path_of_video is None:
            return self._unique_slug(movie)
        return composed(name_of(path_of_video))

    def _unique_slug(self, movie: str) -> str:
        """Return the part of ids that stands for a film: its name in the letters that ids may have.

        Different titles may become the same slug. Then the later film gets `-2`, `-3`, ... behind it.
        """
        title = composed(movie)
        if title not in self._slug_of_title:
            slug_without_number = slug(movie)
            unique_slug = slug_without_number
            while unique_slug in self._taken_slugs:
                number = self._next_number_of_slug.get(slug_without_number, 2)
                self._next_number_of_slug[slug_without_number] = number + 1
                unique_slug = f"{slug_without_number}-{number}"
            self._taken_slugs.add(unique_slug)
            self._slug_of_title[title] = unique_slug
        return self._slug_of_title[title]

    def _judgement_id(self, cells: Mapping[str, str], id_in_table: str) -> str:
        """Return the clip id of a judgement; the same person's repeated judgements of a span share one id.

        A manifest's own ids are kept where they can be, as answers of machines name clips by them. Tables of
        a scored film have ids of windows, which all judges of a window share; their judgements get new ids.

        Raises
        ------
        ManifestError
            A cell is empty that a judgement needs: its judge, its times, or whether the score was seen.
        """
        for name in ("annotator", *TIMES, SEEN_SCORE):
            if not cells[name]:
                # Problems put the line and the column before this text.
                raise ManifestError("is empty: a judgement is somebody's, of a span", name)
        # A blind judgement is not replaced by one that was made with the score visible.
        judgement = tuple(cells[name] for name in ("movie", "annotator", *TIMES, SEEN_SCORE))
        if judgement in self._id_of_judgement:
            return self._id_of_judgement[judgement]

        clip_id = ""
        if _keeps_ids(cells, JUDGEMENTS):
            clip_id = self._take_id_if_free(cells, id_in_table)
        if not clip_id:
            stem = f"{slug(cells['movie'])}-{slug(cells['annotator'])}"
            number = len(self._id_of_judgement) + 1
            clip_id = self._ids.new(stem, number)
        self._id_of_judgement[judgement] = clip_id
        return clip_id

    def _take_id_if_free(self, cells: Mapping[str, str], id_in_table: str) -> str:
        """Take the id that a row of judgements has for its annotator, and return it; "" if it is not free.

        It is free if no earlier row had it for another span, or took it for the same annotator.
        """
        span = tuple(cells[name] for name in ("movie", *TIMES))
        first_span = self._span_of_id_in_table.setdefault(id_in_table, span)
        id_of_annotator = (id_in_table, cells["annotator"])
        if span != first_span or id_of_annotator in self._taken_by_annotator:
            return ""
        self._taken_by_annotator.add(id_of_annotator)
        return id_in_table


class _WholeFilms:
    """Checks that each annotator labels a film once in rows without times, which are of whole films."""

    def __init__(self, problems: Problems) -> None:
        """Start with no film; a film that is labelled again will be added to `problems`, with its line."""
        self._problems = problems
        self._first_lines: dict[tuple[str, str, str], int] = {}  # (movie, clip id, annotator) -> line

    def add(self, clip: Clip, line: int) -> None:
        """Add the clip of a row; note a problem if it is a whole film that its annotator labelled already.

        A clip without times is a whole film.
        """
        has_times = clip.start_s is not None
        if has_times:
            return
        film_of_annotator = (clip.movie, clip.clip_id, clip.annotator)
        first_line = self._first_lines.setdefault(film_of_annotator, line)
        if first_line != line:
            self._problems.add(line, f"{clip.clip_id!r} is already on line {first_line}{_HOW_TO_NAME_TIMES}")


def ids_in(table: Table, kind: str) -> list[str]:
    """Return the ids that a table of a kind gives its clips itself, so that no other clip gets them."""
    if not _keeps_ids(table.columns, kind):
        return []
    ids = dict.fromkeys(row.cells.get("clip_id", "").strip() for row in table.rows)
    return [clip_id for clip_id in ids if clip_id]


def _keeps_ids(columns: Iterable[str], kind: str) -> bool:
    """Return whether clips keep the ids of a table: unless it is a scored film's, of windows of any judge."""
    return kind != JUDGEMENTS or COLUMNS_OF_SCORED_FILMS.isdisjoint(columns)


def _has_labels(cells: Mapping[str, str], codebook: Codebook) -> bool:
    """Return whether a row says anything of its clip (`clip.has_labels`): by its cells, which are trimmed."""
    columns_of_labels = (*LABEL_COLUMNS, *(scale.name for scale in codebook.scales))
    return any(cells.get(name) for name in columns_of_labels)


def _refuse_problems(table: Table) -> None:
    """Raise the problems of a table's rows, if there are any, and how to tell several sheets apart."""
    try:
        table.problems.refuse()
    except ManifestError as problems:
        if SHEET not in table.columns:
            raise
        remedy = (
            "the rows are of several sheets, and lines are those of each: where a sheet is an annotator's or "
            f"a film's, give --column annotator={SHEET} or --column movie={SHEET}"
        )
        raise ManifestError(f"{problems}; {remedy}") from None


def _clip_id_of_times(film: VideoFilm, cells: Mapping[str, str]) -> str:
    """Return the id of a row's clip: the name of its film, and its times if it has them."""
    if cells.get("start_s") and cells.get("end_s"):
        return f"{film.name}-{cells['start_s']}-{cells['end_s']}"
    return film.name


_HOW_TO_NAME_TIMES = (
    ": without times each row is of a whole film; if rows are of spans, say which columns their times are, "
    "as in --column start_s=HEADING --column end_s=HEADING"
)


def read_person_table(file: SpanFile) -> Layout:
    """Read a person's table; columns that are identified get the manifest's names, except those of labels.

    Raises
    ------
    ManifestError
        It has no header or too many columns, or a table of judgements lacks a column.
    """
    if file.account.kind == JUDGEMENTS:
        needed = (*TIMES, SEEN_SCORE)
        records, delimiter = file.records(needed)
        advice = "give what `obygaze film open` or `film next` wrote, filled in"
        table = table_of(file.path, records, delimiter, needed, known=OUR_COLUMNS, advice=advice)
        return Layout(with_manifest_names(table, file), titles=(), headings=table.columns)
    layout = read_layout(file)
    if layout is None:
        raise file.error(
            "no row of it is the header of a table: two columns or more with headings were expected"
        )
    return layout._replace(table=with_manifest_names(layout.table, file))


def is_table(file: SpanFile, words: LabelWords) -> bool:
    """Return whether a file is a table of spans: rows below a header, with columns of times or labels.

    `words` are the words by which labels are known.
    """
    try:
        layout = read_layout(file)
    except TooManyColumnsError:
        # It counts as a table, so that reading it refuses it with this reason.
        return True
    except ManifestError:
        return False
    if layout is None or not layout.table.rows:
        return False
    if file.reading.headings.is_header(layout.headings):
        return True  # with headings that the person names, or a manifest's own
    # The first rows are enough for nearly every table, and a table may be long.
    first_rows = replace(layout.table, rows=layout.table.rows[:TELLING_ROWS])
    if _holds_spans(file, layout._replace(table=first_rows), words):
        return True
    has_more_rows = len(layout.table.rows) > TELLING_ROWS
    return has_more_rows and _holds_spans(file, layout, words)


def _holds_spans(file: SpanFile, layout: Layout, words: LabelWords) -> bool:
    """Return whether a table has columns whose cells are times or labels, whatever their headings.

    It has if a meaning can be proposed for a column that no manifest's name identifies.
    """
    rows_of_clips = clip_rows(layout.table, file.reading.headings, words).table
    proposal = propose(file, layout._replace(table=rows_of_clips), NAMED_COLUMNS, words)
    return bool(proposal.columns or proposal.annotators_with_columns)


def refuse_unread(tables: Sequence[tuple[SpanFile, Proposal]]) -> None:
    """Refuse tables with columns of times, labels or films that would not be read.

    Other unread columns that could be read are noted in the account of the table's file, so that
    `PersonTables` writes no second notice on them. Each table comes with its proposal.

    Raises
    ------
    UnreadColumnsError
        With the options that read the first such table, and those of the others that fit them.
    """
    refused: list[tuple[SpanFile, Proposal]] = []
    for file, proposal in tables:
        if proposal.is_import_refused:
            refused.append((file, proposal))
            continue
        if not proposal.optional_unread:
            continue
        texts = list(proposal.optional_unread)
        # The person's options are not repeated (no headings are handed over), as the table is read by them.
        options = " ".join(proposal.options(Headings()))
        if options:
            texts.append(options)
        file.account.note(f"not read, though it fits: {'; '.join(texts)}")
        file.account.mentioned_columns = tuple(proposal.mentioned)
    if refused:
        raise _error_on_unread(refused)


def _error_on_unread(refused: Sequence[tuple[SpanFile, Proposal]]) -> UnreadColumnsError:
    """Return the error on tables that would not be read, with the options that read them.

    It describes the first table. Its proposal is changed: those of the other tables are added to it, if they
    fit, so that one command reads all these tables. The tables that do not fit are named, to be imported
    apart.
    """
    file, proposal = refused[0]
    needing_other_options = []
    for other_file, other_proposal in refused[1:]:
        was_added = proposal.add(other_proposal)
        if not was_added:
            needing_other_options.append(other_file.path.name)

    headings = file.reading.headings
    doubts = []  # what the person has to add, or should know
    notice_on_words = proposal.notice_on_words_without_option(file.path, headings)
    if notice_on_words:
        doubts.append(notice_on_words)
    doubts += proposal.doubts
    if needing_other_options:
        shown = first_few(needing_other_options, maximum=3)
        doubts.append(f"import apart, as they need other options: {shown}")
    doubts += proposal.optional_unread
    return UnreadColumnsError(
        f"{file.path}: it holds {', '.join(proposal.needed_unread)}, which no heading of a manifest names",
        proposal.options(headings),
        doubts,
    )


def proposal_for(file: SpanFile, layout: Layout, words: LabelWords, annotator: str) -> Proposal:
    """Propose a meaning for the columns of a table whose headings are not known.

    Columns that are identified have a manifest's names. `annotator` is the name that the person's option
    gives; "" for none.
    """
    headings = file.reading.headings
    # Columns are judged by the cells of clips alone: without sums and other rows that are no clips, and
    # without a spreadsheet's errors that the person explains as no label.
    table = with_names_of_scales(layout.table, words.codebook)
    table = without_errors_explained_as_no_label(table, words)
    table_of_clips = clip_rows(table, headings, words).table

    # The columns that are read already get no proposal.
    label_columns = LabelReader(table_of_clips, headings, words).columns
    scales = [scale.name for scale in words.codebook.scales]
    # The person may say that a table has no levels or concepts, though a column is called so.
    absent_columns = [name for name in LABEL_COLUMNS if headings.has_none_of(name)]
    read_names = [name for name in NAMED_COLUMNS if name not in absent_columns]
    read_columns = [*read_names, *scales, *label_columns]
    return propose(file, layout._replace(table=table_of_clips), read_columns, words, annotator)


def without_errors_explained_as_no_label(table: Table, words: LabelWords) -> Table:
    """Empty the cells with a spreadsheet's error that the person explains as no label (`--word '#N/A='`).

    `words` remembers that these words were read, so that their options count as used.
    """
    rows = []
    for row in table.rows:
        emptied_cells = {}
        for name, cell in row.cells.items():
            if is_unreadable(cell) and words.is_explained_as_nothing(cell):
                emptied_cells[name] = ""
                words.note_read(cell)
        rows.append(Row(row.line, {**row.cells, **emptied_cells}) if emptied_cells else row)
    return replace(table, rows=tuple(rows))


def _without_other_rows(file: SpanFile, table: Table, words: LabelWords) -> Table:
    """Leave out the rows that are no clips, such as sums, and complete the names of films in the others.

    A film that only the first row of a block of rows names is written into all of them, and a film named by
    the number 2.0 is called 2. The rows are counted as left out in the file's account.
    """
    table = without_errors_explained_as_no_label(table, words)
    rows = clip_rows(table, file.reading.headings, words)
    for entry in rows.left_out:
        file.account.seen += 1
        file.account.leave_out(_places([entry.row]), f"{entry.reason}, no clip")
    return with_whole_names(with_films_of_blocks(rows.table))


def _note_whole_films(file: SpanFile, table: Table) -> None:
    """If a table has no column of starts, note that each row is taken as a whole film."""
    start_column, _ = TIMES
    if start_column not in table.columns:
        rows = [row for row in table.rows if not row.is_empty]
        file.account.note(f"no columns of times: {counted(len(rows), 'row')} taken as whole films")


def _labelled_rows(file: SpanFile, table: Table, labels: LabelReader) -> list[Row]:
    """Return a row for each span and annotator, with times in seconds and labels as the codebook names them.

    If annotators have columns of their own, a row of the table becomes several. If each row says a single
    label, the rows of a span become one. There are two signs of such rows:

    - A column of labels has levels in some rows and concepts in others.
    - Spans have several rows, none of which has more than one concept.
    """
    rows = []
    for row in _rows_in_seconds(file, table):
        rows += _rows_of_annotators(row, labels)
    says_one_label_a_row = labels.has_single_labels or _name_spans_and_one_concept_at_most(rows)
    return _joined_by_span(file, rows) if says_one_label_a_row else rows


def _rows_in_seconds(file: SpanFile, table: Table) -> Iterator[Row]:
    """Yield the rows of a table; if it has a column of starts, with times in seconds.

    Cells that are no times are added to the table's problems.
    """
    if TIMES[0] in table.columns:
        yield from table.timed(rate=file.reading.rate)
        return
    for row in table.checked():
        yield row.as_written()


def _without_rows_lacking_times(file: SpanFile, rows: list[Row]) -> list[Row]:
    """Leave out the rows that should have times and have none, in a table in which other rows have times.

    Only a row of a whole file needs no times. It names a video that no row with times names, or it has an id
    and names no video.

    Raises
    ------
    ManifestError
        More rows lack their times than have them.
    """
    timed = [row for row in rows if _has_times(row)]
    if not timed or len(timed) == len(rows):
        return rows

    videos_of_timed = {plain(row.cells.get("video", "")) for row in timed}
    rows_lacking_times = []
    other_rows = []
    for row in rows:
        needs_no_times = _is_of_a_file(row, videos_of_timed)
        if _has_times(row) or needs_no_times:
            other_rows.append(row)
        else:
            rows_lacking_times.append(row)

    if len(rows_lacking_times) > len(timed):
        n_spans = len(timed) + len(rows_lacking_times)
        raise file.error(
            f"{len(rows_lacking_times)} of {counted(n_spans, 'row')} of spans have no times "
            f"({_places(rows_lacking_times)}): fill them in, or "
            "leave out the columns of times where each row is of a whole film"
        )
    for row in rows_lacking_times:
        file.account.seen += 1
        file.account.leave_out(f"line {row.line}", "no times, which other rows have")
    return other_rows


def _has_times(row: Row) -> bool:
    """Return whether a row has a start or an end."""
    return any(row.cells.get(name, "").strip() for name in TIMES)


def _is_of_a_file(row: Row, videos_of_spans: Container[str]) -> bool:
    """Return whether a row without times is of a whole file: of a video that no span names, or with an id.

    `videos_of_spans` are the videos of rows with times, in the form in which names are compared (`plain`).
    """
    video = row.cells.get("video", "").strip()
    if video:
        return plain(video) not in videos_of_spans
    return bool(row.cells.get("clip_id", "").strip())


def _rows_of_annotators(row: Row, labels: LabelReader) -> list[Row]:
    """Split a row into one for each annotator who has columns and labelled it; one row if nobody has."""
    label_columns = set(labels.columns)
    other_cells = {name: cell for name, cell in row.cells.items() if name not in label_columns}
    annotator_rows = []
    for annotator in labels.annotators:
        own_labels = labels.labels_by(row, annotator)
        if own_labels is not None:
            level_and_concepts = {"level": own_labels.level, "concepts": own_labels.concepts}
            cells = {**other_cells, **level_and_concepts, "annotator": annotator}
            annotator_rows.append(Row(row.line, cells))
    if annotator_rows:
        return annotator_rows
    # No annotator has columns, or those who have left them empty in this row.
    shared_labels = labels.shared_labels(row)
    cells = {**other_cells, "level": shared_labels.level, "concepts": shared_labels.concepts}
    if labels.annotators:
        cells["annotator"] = ""  # so that all rows of the table have the same columns
    return [Row(row.line, cells)]


def _joined_by_span(file: SpanFile, rows: Sequence[Row]) -> list[Row]:
    """Join the rows of one span and annotator, which each say one label, into one row with all labels.

    The joined row is in the place of the first row of its span. A row that repeats a label, or gives a second
    level, stays a row of its own, so that it is refused later as a second row of its clip.
    """
    result: list[Row] = []
    place_of_key: dict[tuple[str, ...], int] = {}  # key of a span -> index in the result of its first row
    rows_of_key: dict[tuple[str, ...], _RowsOfSpan] = {}  # key of a span -> its rows, if it has several
    n_joined = 0
    for row, key in zip(rows, _keys_of_spans(rows), strict=True):
        if key not in place_of_key:
            place_of_key[key] = len(result)
            result.append(row)
            continue
        if key not in rows_of_key:
            first_row = result[place_of_key[key]]
            rows_of_key[key] = _RowsOfSpan(first_row)
        if rows_of_key[key].can_join(row):
            rows_of_key[key].join(row)
            n_joined += 1
        else:
            result.append(row)
    for key, rows_of_span in rows_of_key.items():
        result[place_of_key[key]] = rows_of_span.as_one_row()
    # The account counts the rows of the result when their clips are made. The rows that were joined to
    # others are not among them, and are counted here.
    file.account.seen += n_joined
    file.account.used += n_joined
    if n_joined:
        file.account.note(
            f"each row says one label: {counted(n_joined, 'row')} joined to others of their span"
        )
    return result


def _keys_of_spans(rows: Iterable[Row]) -> Iterator[tuple[str, ...]]:
    """Yield for each row a key that rows share if they are of one span and annotator, judged in one way.

    A row that does not say how it was judged is taken to be judged as the row of its span above it.
    """
    # Span -> how its last row that says so was judged.
    how_of_span: dict[tuple[str, ...], tuple[str, ...]] = {}
    for row in rows:
        span = tuple(row.cells.get(name, "").strip() for name in _SPAN_COLUMNS)
        how = tuple(row.cells.get(name, "").strip() for name in _COLUMNS_OF_HOW)
        if any(how):
            how_of_span[span] = how
        yield span + how_of_span.get(span, how)


def _name_spans_and_one_concept_at_most(rows: Sequence[Row]) -> bool:
    """Return whether every row names its span, by an id or times, and has at most one concept.

    Then rows of the same span say one label each, and are joined (`_joined_by_span`). Rows without id and
    times must not be: they may be of different spans of their film, whose times are in a column that is not
    read.
    """
    name_spans = all(row.cells.get("clip_id") or row.cells.get(TIMES[0]) for row in rows)
    return name_spans and all(len(split_concepts(row.cells["concepts"])) <= 1 for row in rows)


_SPAN_COLUMNS = ("clip_id", "movie", "video", *TIMES, "annotator")
"""The columns in which rows of one span and annotator are equal."""

_COLUMNS_OF_HOW = (SEEN_SCORE, HOW)
"""Columns in which they are equal too, where they are filled: what was seen in sight of a score is in no
blind label."""


_BETWEEN_TEXTS = "; "


class _TextsOfColumn:
    """The different texts that the rows of a span have in one column, which become one cell: `"red; dark"`.

    Many rows may be joined, so that texts are joined once, at the end, and not again for each row.
    """

    def __init__(self, first_cell: str) -> None:
        """Begin with the cell of the first row, which may be empty."""
        self._texts = [first_cell] if first_cell else []
        self._known_texts = {first_cell.strip()}  # the same without outer blanks, to find one fast
        self._joined_length = len(first_cell)  # length of the cell that they would make now

    @property
    def is_empty(self) -> bool:
        """Whether no row has a text yet."""
        return not self._texts

    def has(self, text: str) -> bool:
        """Return whether a text is there already: as one of the texts, or as the cell that all of them make.

        Joined rows that were exported, and are imported beside the rows that they were made of, have such a
        cell. The lengths are compared first, as to join the texts for each row would take long.
        """
        if text.strip() in self._known_texts:
            return True
        return len(text) == self._joined_length and text == self.as_one_cell()

    def add(self, text: str) -> None:
        """Add a text behind the others."""
        if self._texts:
            self._joined_length += len(_BETWEEN_TEXTS)
        self._joined_length += len(text)
        self._texts.append(text)
        self._known_texts.add(text.strip())

    def as_one_cell(self) -> str:
        """Join all texts to one cell; "" if there is none."""
        return _BETWEEN_TEXTS.join(self._texts)


class _RowsOfSpan:
    """Rows of one span and annotator, which are joined into one: in time that grows with their number.

    Parameters
    ----------
    first
        The first of them.
    """

    def __init__(self, first: Row) -> None:
        """Begin with the cells of the first row."""
        self._first = first
        self._columns: dict[str, _TextsOfColumn] = {}  # all but `concepts`
        for name, cell in first.cells.items():
            if name != "concepts":
                self._columns[name] = _TextsOfColumn(cell)
        first_concepts = first.cells["concepts"]
        self._cells_of_concepts = [first_concepts] if first_concepts else []  # in the order of the rows
        self._concepts = set(split_concepts(first_concepts))  # those that these cells list

    def can_join(self, row: Row) -> bool:
        """Return whether a row adds a concept or a level to the others, and no second level."""
        level = row.cells["level"]
        level_so_far = self._columns["level"].as_one_cell()
        if level and level_so_far and level != level_so_far:
            return False
        has_new_concepts = not self._concepts.issuperset(split_concepts(row.cells["concepts"]))
        has_new_level = bool(level) and not level_so_far
        return has_new_concepts or has_new_level

    def join(self, row: Row) -> None:
        """Add the labels of a further row of the span, and its texts that the columns do not have yet.

        A column of the table's own, such as `remark`, may get several texts. A manifest's column, such as
        `video`, says one thing of a clip, and keeps its first text.
        """
        for name, cell in row.cells.items():
            if name == "concepts":
                if cell:
                    self._cells_of_concepts.append(cell)
                    self._concepts.update(split_concepts(cell))
                continue
            column = self._columns[name]
            can_have_a_further_text = name not in OUR_COLUMNS and not column.has(cell)
            if cell.strip() and (column.is_empty or can_have_a_further_text):
                column.add(cell)

    def as_one_row(self) -> Row:
        """Return one row, on the line of the first, in which each cell has the texts of all rows."""
        cells = {}
        for name in self._first.cells:
            if name == "concepts":
                cells[name] = ";".join(self._cells_of_concepts)
            else:
                cells[name] = self._columns[name].as_one_cell()
        return Row(self._first.line, cells)


def _trimmed(cells: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row; in a manifest's columns without outer blanks and with composed accents."""
    trimmed = dict(cells)
    for name, cell in cells.items():
        if name in OUR_COLUMNS:
            trimmed[name] = composed(cell.strip())
    return trimmed


# --- doubts
# ---------------------------------------------------------------------------
def _notices_on_odd_rows(table: Table) -> Iterator[str]:
    """Yield notices on rows that are read as clips, though they may be comments, sums or examples."""
    rows_with_sign = maybe_commented_out(table)
    if rows_with_sign:
        what = counted(len(rows_with_sign), "row that begins", "rows that begin")
        yield f"read {what} with a sign of comments ({_places(rows_with_sign)})"
    sums_or_examples = maybe_no_clips(table)
    if sums_or_examples:
        what = counted(len(sums_or_examples), "row is", "rows are")
        yield (
            f"{what} called like a sum or an example, and read as a clip ({_places(sums_or_examples)}): "
            "delete what is none"
        )


def _notices_on_lacking_cells(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a notice on the rows without times, and one on rows without a level if most rows have one."""
    start_column, _ = TIMES
    untimed = [row for row in rows if not row.cells.get(start_column, "").strip()]
    if untimed and start_column in rows[0].cells:
        what = "all" if len(untimed) == len(rows) else counted(len(untimed), "row")
        yield f"{what} without times taken as whole films ({_places(untimed)})"
    unlabelled = [row for row in rows if not row.cells["level"].strip()]
    is_minority = 2 * len(unlabelled) < len(rows)
    if unlabelled and is_minority:
        what = counted(len(unlabelled), "row")
        yield f"{what} without a level, which the others have ({_places(unlabelled)})"


def _places(rows: Sequence[Row]) -> str:
    """Write where rows are, for messages: the lines of the first three, each with its first filled cell."""
    return first_few([f"line {row.line}, {_first_cell(row)!r:.40}" for row in rows], maximum=3)


def _first_cell(row: Row) -> str:
    """Return the first cell of a row that is not empty; "" for an empty row."""
    for cell in row.cells.values():
        if cell.strip():
            return cell.strip()
    return ""


def _doubtful_annotators(table: Table, words: LabelWords) -> Iterator[str]:
    """Yield a notice if the column of annotators seems to hold labels of the codebook."""
    if "annotator" not in table.columns:
        return
    counts = count_labels(cells_of(table, "annotator"), words)
    if counts.n_cells and (counts.are_levels or counts.are_concepts):
        yield (
            f"column annotator holds labels ({counts.n_labels} of {counts.n_cells} cells), taken as "
            f"people: {option('level', 'annotator')} if they are levels"
        )


def _respelled_labels(respelled: Counter[tuple[str, str]]) -> str:
    """Say which texts were read as a label that is spelled differently, each with its rows; "" for none."""
    if not respelled:
        return ""
    readings = []
    for (text, label), n_rows in sorted(respelled.items()):
        readings.append(f"{text!r:.60} as {label} ({counted(n_rows, 'row')})")
    return f"read {first_few(readings, MAX_RESPELLINGS)}"


def _notices_on_unread_columns(
    table: Table, labels: LabelReader, words: LabelWords, mentioned: Sequence[str], *, has_labels: bool
) -> list[str]:
    """Return notices on the columns that are not read.

    If no label was read from the table, they say which columns might hold the labels. A scale of the codebook
    is a label too, in a column of its name.

    Parameters
    ----------
    labels
        What reads the labels of the table.
    mentioned
        Columns that the proposal has mentioned in a notice already: they get no second one.
    has_labels
        Whether a level or a concept was read from the table.
    """
    scales = [scale.name for scale in words.codebook.scales]
    read_columns = [*OUR_COLUMNS, *scales, *labels.columns]
    # A column of marks is read even if all its marks say no, so that no clip has a label.
    are_labels_read = has_labels or bool(scales) or labels.is_of_marks
    if not are_labels_read:
        return [_notice_on_possible_labels(table, read_columns)]
    return list(unread_columns(table, [*read_columns, *mentioned], words))


def unread_columns(table: Table, without: Iterable[str], words: LabelWords) -> Iterator[str]:
    """Yield a notice on each unread column that seems to hold labels, and one on the other unread columns.

    `without` are the columns that need none: they are read, or an earlier notice is on them.
    """
    columns_without_notice = set(without)
    columns_of_no_labels = []
    for column in table.columns:
        is_empty = not cells_of(table, column)
        if column in columns_without_notice or is_empty:
            continue
        notice = _notice_on_labels(table, column, words)
        if notice:
            yield notice
        else:
            columns_of_no_labels.append(repr(column))
    if columns_of_no_labels:
        shown = first_few(columns_of_no_labels, SHOWN_COLUMNS)
        yield f"kept as they are, and read as no labels: {shown} (--column concepts=HEADING reads one)"


def _notice_on_labels(table: Table, column: str, words: LabelWords) -> str:
    """Say why an unread column seems to hold labels, by its heading or its cells; "" if it does not."""
    cells = cells_of(table, column)
    most_common = Counter(cells).most_common(SHOWN_WORDS)
    shown = ", ".join(f"{word!r:.20}" for word, _ in most_common)

    label = label_of_heading(column, words)  # its cells then should be marks that say yes or no to it
    if is_of_marks(table, column, words):
        return f"column {column!r} is headed as {label}, and its marks are not read"
    if label:
        reason = f"its cells are no marks ({shown})"
        remedy = "if they are, say of each what it means: --word MARK=yes, --word MARK=no"
        return f"column {column!r} is headed as {label} and not read: {reason}; {remedy}"

    n_labels = count_labels(cells, words).n_labels
    are_labels_frequent = CELLS_PER_LABEL * n_labels >= len(cells)
    if n_labels > 1 and are_labels_frequent:
        return f"column {column!r} is not read, and {n_labels} of its {len(cells)} cells are labels ({shown})"
    return ""


def _notice_on_possible_labels(table: Table, read_columns: Collection[str]) -> str:
    """Say which columns might hold the labels of a table in which no labels are read; "" if none might.

    Columns of few different words are named first.
    """
    words_of_column: dict[str, Counter[str]] = {}  # only of columns that are not read
    for column in table.columns:
        cells = cells_of(table, column)
        if cells and column not in read_columns:
            words_of_column[column] = Counter(cells)
    if not words_of_column:
        return ""
    descriptions = []
    for column in sorted(words_of_column, key=lambda column: len(words_of_column[column])):
        most_common = words_of_column[column].most_common(SHOWN_WORDS)
        words = ", ".join(f"{word:.20}" for word, _ in most_common)
        descriptions.append(f"{column!r} ({words})")
    shown = first_few(descriptions, SHOWN_COLUMNS)
    return (
        f"no row has a level or concepts; not read are {shown}: --column level=HEADING reads one, and "
        "`obygaze codebook guess` writes a codebook of its words"
    )
