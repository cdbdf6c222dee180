"""Read tables with the columns of a manifest, and judgements of scored films."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip, Collected, clip_of, seen_of, split_concepts
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import spellings_of
from obygaze_features.manifest.importers.folder import movie_of, name_of
from obygaze_features.manifest.importers.imported import slug, unique_id
from obygaze_features.manifest.importers.span_films import FilmNames
from obygaze_features.manifest.spans.given import Given
from obygaze_features.manifest.spans.names import film_named, is_place, name_hint, plain
from obygaze_features.manifest.text_tables import (
    CODEBOOK_COLUMN,
    FIELDS,
    SEEN_SCORE,
    TIMES,
    Row,
    Table,
    counted,
    table_of,
)
from obygaze_features.text import composed

Decision = tuple[Path, int, Mapping[str, str]]
"""A row of judgements: its file, line and cells."""


class OwnTables:
    """Reader of tables of ours, which remembers the films and judgements of the tables before.

    Attributes
    ----------
    decisions
        All rows of judgements, those without a level too.
    """

    def __init__(self, films: FilmNames, annotator: str, ids: set[str]) -> None:
        self._films, self._annotator, self._ids = films, annotator, ids
        self._movie_of_slug: dict[str, str] = {}
        self._judgement_ids: dict[tuple[str, ...], str] = {}
        self._judged: set[str] = set()
        self.decisions: list[Decision] = []

    def read(
        self, given: Given, choose_codebook: Callable[[Given, Iterable[str]], Codebook]
    ) -> Iterator[tuple[Clip, str, str]]:
        """Yield each clip with its place in the file, and of a judgement what a later one of it replaces."""
        account = given.account
        is_judged = account.kind == "judgements"
        table = _table(given, needed=(*TIMES, SEEN_SCORE) if is_judged else TIMES)
        codebook = choose_codebook(given, [row.cells.get(CODEBOOK_COLUMN, "") for row in table.rows])
        problems = table.problems
        unique = Collected(problems, "clip_id" if "clip_id" in table.columns else "")
        respelled: Counter[tuple[str, str]] = Counter()
        n_judged_again = 0
        for row in table.timed(rate=given.rate):
            account.seen += 1
            cells = _trimmed(row.cells)
            if is_judged:
                self.decisions.append((given.path, row.line, cells))
                if not cells.get("level"):
                    account.leave(f"line {row.line}", "without a level")
                    continue
            for scale in codebook.scales:
                problems.attempt(row.line, scale.name, scale.level_of, cells.get(scale.name, ""))
            completed = problems.attempt(row.line, "", self._completed, given, row.line, cells)
            if completed is None:
                continue
            clip = clip_of(completed, problems, codebook, spelled=True)
            if clip is None:
                continue
            respelled.update(_respelled_labels(completed, clip, codebook))
            account.used += 1
            if not is_judged:
                unique.add(clip, row.line)
            elif clip.clip_id in self._judged:
                n_judged_again += 1
            else:
                self._judged.add(clip.clip_id)
            yield clip, f"line {row.line}", clip.clip_id if is_judged else ""
        account.note(*_doubts(table, codebook))
        account.note(_judged_again(n_judged_again), _read_as(respelled))

    def _completed(self, given: Given, line: int, cells: Mapping[str, str]) -> Row:
        """Fill in the film, the video, the annotator and the id of a row that does not say them."""
        video, movie = cells.get("video", ""), cells.get("movie", "")
        if "video" in cells and not (video or movie or given.movie):
            raise ManifestError("is empty", "video")
        if is_place(movie):
            place, movie = movie, film_named(movie)
            self._films.add_place(given, movie, place, "movie")
        if video:
            movie, name, video = self._of_video(given, movie, video)
        else:
            movie = movie or given.movie
            name, video = self._unique_slug(movie), self._films.files.film_of(movie)
        if cells["start_s"] and cells["end_s"]:
            name = f"{name}-{cells['start_s']}-{cells['end_s']}"
        annotator = cells.get("annotator", "") or (self._annotator if cells.get("level") else "")
        completed = {
            **cells,
            "clip_id": cells.get("clip_id") or name,
            "movie": movie,
            "video": video,
            "annotator": annotator,
        }
        if given.account.kind == "judgements":
            completed[SEEN_SCORE] = seen_of(completed[SEEN_SCORE])
            completed["clip_id"] = self._judgement_id(completed)
        return Row(line, completed)

    def _of_video(self, given: Given, movie: str, written: str) -> tuple[str, str, str]:
        """Return the film, the name and the path of a video, as written in a table."""
        inside, path = self._films.files.video(given.path, written)
        if not movie:
            movie = given.movie or composed(movie_of(inside))
            is_of_a_folder = given.movie or len(inside.parts) > 1
            self._films.add_place(given, movie, movie if is_of_a_folder else written, "video")
        return movie, composed(name_of(inside)), path

    def _unique_slug(self, movie: str) -> str:
        """Write a film's name as a part of ids, so that no two films have the same."""
        name = slug(movie)
        while self._movie_of_slug.setdefault(name, composed(movie)) != composed(movie):
            name += "-2"
        return name

    def _judgement_id(self, cells: Mapping[str, str]) -> str:
        """Name a judgement; as an earlier one of its span by the same person, if there is one."""
        for name in ("annotator", *TIMES, SEEN_SCORE):
            if not cells[name]:
                raise ManifestError("is empty: a judgement is somebody's, of a span", name)
        # What was judged blindly stays, whatever was judged in sight of the score.
        key = tuple(cells[name] for name in ("movie", "annotator", *TIMES, SEEN_SCORE))
        if key not in self._judgement_ids:
            stem = f"{slug(cells['movie'])}-{slug(cells['annotator'])}"
            self._judgement_ids[key] = unique_id(stem, len(self._judgement_ids) + 1, self._ids)
        return self._judgement_ids[key]


def _table(given: Given, needed: tuple[str, ...]) -> Table:
    advice = "give what `obygaze film open` or `film next` wrote, filled in" if SEEN_SCORE in needed else ""
    table = table_of(given.path, *given.records(needed), needed, advice=advice)
    if not {"video", "movie"} & set(table.columns) and not given.movie:
        raise given.error("no column video or movie says which film a span is of: add one, or give --movie")
    given.account.note(*table.notes)
    absent = [name for name in FIELDS if name not in table.columns]
    for name in table.columns:
        if name not in FIELDS and (hint := name_hint(name, absent)):
            given.account.note(f"column {name!r} is not read{hint}: rename it")
    return table


def _trimmed(cells: Mapping[str, str]) -> dict[str, str]:
    """Write cells of our columns without blanks around them, and with accents in one form."""
    ours = (*FIELDS, SEEN_SCORE)
    return {name: composed(cell.strip()) if name in ours else cell for name, cell in cells.items()}


def _doubts(table: Table, codebook: Codebook) -> list[str]:
    """Say which rows of a table are of whole films, and which columns are named as labels are."""
    notes = []
    rows = [row for row in table.rows if not row.is_empty]
    untimed = [row.line for row in rows if not row.cells[TIMES[0]].strip()]
    if 0 < len(untimed) < len(rows):
        what = counted(len(untimed), "row")
        notes.append(f"{what} without times taken as whole films (the first: line {untimed[0]})")
    labels = {*spellings_of(codebook.levels), *spellings_of(codebook.concepts)} - set(map(plain, FIELDS))
    if columns := [name for name in table.columns if plain(name) in labels]:
        notes.append(
            f"columns named as labels are no labels ({', '.join(columns)}): write level and concepts"
        )
    return notes


def _respelled_labels(row: Row, clip: Clip, codebook: Codebook) -> list[tuple[str, str]]:
    """List the labels of a row that are spelled otherwise than the codebook names them."""
    labels = [(row.cells.get("level", ""), clip.level or "")]
    concepts = split_concepts(row.cells.get("concepts", ""))
    labels += [(text, codebook.concept_spelled(text)) for text in concepts]
    return [(text, name) for text, name in labels if text != name]


def _judged_again(n: int) -> str:
    return f"{counted(n, 'span was', 'spans were')} judged again: the last counts" if n else ""


def _read_as(respelled: Counter[tuple[str, str]]) -> str:
    """Say which labels were read under another name."""
    if not respelled:
        return ""
    read = [f"{text!r} as {name} ({counted(n, 'row')})" for (text, name), n in sorted(respelled.items())]
    return f"read {', '.join(read)}"
