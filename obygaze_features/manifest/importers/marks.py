"""Tell what a span says: a level, a concept or a text, of which film, and whose; read tables of our own."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from obygaze_features.manifest.clip import Clip, grouped, split_concepts
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import spellings_of
from obygaze_features.manifest.spans.eaf import MODEL, key_among, tier_key
from obygaze_features.manifest.spans.given import Account, Given, RawSpan
from obygaze_features.manifest.spans.instant import clock, is_short
from obygaze_features.manifest.spans.names import film_by_file, imdb_id, name_hint, path_of, plain
from obygaze_features.manifest.spans.sources import SUBTITLES
from obygaze_features.manifest.text_tables import FIELDS, SEEN_SCORE, TIMES, Row, Table, counted, table_of
from obygaze_features.text import composed, first_few

APART = ("subject", "observation")
"""What else keeps spans of one time apart: who is seen, and the sitting of an annotator."""

SAID = (*SUBTITLES, "moviegraphs")
"""Kinds whose texts are words of a film or about it: `Look` is no label there, unless --tier says so."""

OF_A_FILM = (*SUBTITLES, "textgrid", "elan-text")
"""Kinds whose files are of one film, which they are named by."""

LATE_S, LONGEST_S = 3600.0, 86_400.0
"""Where a time code begins that does not begin at 0, at one hour or at ten; what no film lasts."""

OURS = ("judgements", "table")
"""Kinds of tables with the columns of a manifest: what is wrong in them is refused, not left out."""

NO_VALUE = {"na", "n/a", "<na>", "nan", "none", "null"}
"""What programs write where a cell has no value, and a film or person may be called."""


class Marked:
    """A span of another tool's file, with the concepts that are marked on it."""

    def __init__(self, raw: RawSpan, movie: str, is_level: bool, parts: Sequence[str]) -> None:
        self.raw, self.movie, self.is_level = raw, movie, is_level
        self.text, *self.concepts = parts


def labels_of_clip(clip: Clip) -> str:
    """Write a clip's labels as one text."""
    return ";".join(filter(None, (clip.level, *clip.concepts)))


def span_key(raw: RawSpan, movie: str, usual: str) -> tuple[object, ...]:
    """Return what spans must share for a concept to belong to a level."""
    return movie, annotator_of(raw, usual), round(raw.start_s, 3), round(raw.end_s, 3)


def film_by_name(given: Given) -> str:
    """Name the film by the file, without suffixes and language; one that may have more is noted."""
    name, stem = film_by_file(given.path), given.path.stem
    without = f", without {stem[len(name) :]!r}" * (name != stem)
    if given.account.kind not in OF_A_FILM or ("." in stem and imdb_id(name) != name):
        given.account.note(f"film {name!r} by the file's name{without}")
    return name


def facts_of(clip: Clip) -> tuple[object, ...]:
    """Return whose judgement of what a clip is: a span of a film, or a file."""
    span = (clip.clip_id,) if clip.start_s is None else (clip.start_s, clip.end_s)
    return clip.movie, clip.annotator, *span, *(clip.extras.get(name, "") for name in APART)


def joined(clips: Iterable[tuple[Clip, Account, str]]) -> list[tuple[Clip, Account, str]]:
    """Join concepts of files without levels: to a level of their times and annotator, or to each other."""
    made = dict(enumerate(clips))
    alone = [
        place
        for place, (clip, account, _) in made.items()
        if account.kind not in OURS and clip.concepts and not (clip.level or clip.extras.get("text"))
    ]
    levels = {facts_of(clip): place for place, (clip, *_) in made.items() if alone and clip.level}
    for place in alone:
        if (at := levels.setdefault(facts_of(made[place][0]), place)) != place:
            clip, of, where = made[at]
            made[at] = replace(clip, concepts=(*clip.concepts, *made.pop(place)[0].concepts)), of, where
    return [*made.values()]


def is_of_one(raw: RawSpan, other: RawSpan) -> bool:
    """Return whether nothing that both say of whom or what they are about keeps them apart."""
    both = ((raw.cells.get(name), other.cells.get(name)) for name in APART)
    return all(mine == theirs for mine, theirs in both if mine and theirs)


def annotator_of(raw: RawSpan, usual: str) -> str:
    """Name the annotator: whom the file does, its tier behind `@`, the usual one, or the machine."""
    said = (raw.cells.get("annotator", ""), raw.tier.partition("@")[2], usual, raw.cells.get("model", ""))
    return composed(next(filter(None, map(str.strip, said)), ""))


def word(text: str) -> str:
    """Write a label as labels are compared; of one letter, such as a code of behaviour, the case counts."""
    return text if len(text) == 1 else plain(text)


def parts_of(text: str) -> list[str]:
    """Divide a text at its semicolons."""
    return [part.strip() for part in text.split(";") if part.strip()]


def role_of(
    raw: RawSpan, roles: Mapping[str, str], levels: Set[str], concepts: Set[str], *, is_said: bool
) -> tuple[str, list[str]]:
    """Tell what a span's text is, as its file says, by its tier or by the codebook's words; and its parts."""
    if raw.role:
        return raw.role, [raw.text]
    if roles:
        return roles.get(key_among(raw.tier, roles), "left"), [raw.text]
    parts = [raw.text] if word(raw.text) in levels else parts_of(raw.text)
    said = [part for part in parts if word(part) in levels]
    others = [part for part in parts if part not in said]
    if is_said or not parts or len(said) > 1 or not all(word(part) in concepts for part in others):
        return "text", [raw.text]
    return "levels" if said else "concepts", [*said, *others]


def absent_tiers(given: Given, raws: Iterable[RawSpan]) -> list[str]:
    """Say which tiers that the person names are not there; documents of ELAN say it themselves."""
    there = dict.fromkeys(raw.tier for raw in raws if not raw.role)
    names = {tier_key(name): name for name in given.tiers if there}
    lacking = (names[key] for key in names.keys() - {key_among(each, names) for each in there})
    return [f"no tier {name!r} is there{name_hint(name, there)}" for name in sorted(lacking)]


def doubtful_questions(questions: Sequence[str], book: Codebook) -> list[str]:
    """Say which questions are not the codebook's, and of which concepts nothing was asked."""
    known = {"level": spellings_of(book.levels), "concept": spellings_of(book.concepts)}
    asked = [each.partition(":")[::2] for each in questions]
    strange = [f"{kind}:{name}" for kind, name in asked if plain(name) not in known[kind]]
    named = {known[kind].get(plain(name)) for kind, name in asked if kind == "concept"}
    rest = [name for name in book.concept_names if named and name not in named]
    notes = [f"{counted(len(strange), 'question')} not of codebook {book.name!r} ({first_few(strange, 3)})"]
    gaps = [f"nothing asked of {counted(len(rest), 'concept')} ({first_few(rest, 3)}), marked on no clip"]
    return notes * bool(strange) + gaps * bool(rest)


def doubtful_times(clips: Iterable[Clip], kind: str) -> list[str]:
    """Say which films have spans in their first second alone, or behind an hour or a day alone."""
    films = grouped(clips, "movie").items()
    first = {movie: min(clip.start_s or 0.0 for clip in own) for movie, own in films}
    last = {movie: max(clip.end_s or 0.0 for clip in own) for movie, own in films}
    late = first_few([f"{name}: {clock(time)}" for name, time in first.items() if time >= LATE_S], 3)
    long = first_few([f"{name}: {clock(time)}" for name, time in last.items() if time >= LONGEST_S], 3)
    short = first_few([name for name, time in last.items() if 0 < time < 1 and kind in OURS], 3)
    return [
        *[f"no span after the first second ({short}): are times shares of a day, or hours?"] * bool(short),
        *[f"no span in the first hour ({late}): does the time code begin at 0?"] * bool(late),
        *[f"a film of more than a day ({long}): are its times milliseconds or frames?"] * bool(long),
    ]


def doubtful_films(clips: Iterable[Clip], places: Mapping[tuple[str, str], Mapping[Path, str]]) -> list[str]:
    """Say that all videos are taken as of one movie, or those of a folder as a movie each, by its files."""
    films = grouped(clips, "movie")
    videos = {clip.video for own in films.values() for clip in own} - {""}
    named = [place for (_, kind), own in places.items() if kind in OURS for place in own.values()]
    folders = Counter(path_of(place).parent for place in named)
    notes = []
    if len(films) == 1 < len(videos) and films.keys() <= {movie for movie, _ in places}:
        what = f"all {len(videos)} videos are taken as of one movie, {min(films)!r}"
        notes.append(f"{what}: if they are several films, add a column movie")
    if 1 < len(folders) < len(named):
        what = f"videos of {len(folders)} folders are taken as of {len(named)} movies"
        notes.append(f"{what}: if a folder is a film, add a column movie, or give the folders by --videos")
    return notes


def is_label(account: Account, raw: RawSpan) -> bool:
    """Leave out what is too short for a span, and what a model wrote."""
    from_model = any(plain(name).startswith(f"{MODEL}:") for name in (raw.tier, raw.text))
    why = "shorter than a frame" if is_short(raw.start_s, raw.end_s) else "of a model, no label" * from_model
    if why:
        account.leave(raw.where, why)
    return not why


# --- tables of our own
# ---------------------------------------------------------------------------
def own_table(given: Given, *, judged: bool) -> Table:
    """Read a table with the columns of a manifest."""
    needed = (*TIMES, SEEN_SCORE) if judged else TIMES
    advice = "give what `obygaze film open` or `film next` wrote, filled in" if judged else ""
    table = table_of(given.path, *given.records(needed), needed, advice=advice)
    if not {"video", "movie"} & set(table.columns) and not given.movie:
        raise given.error("no column video or movie says which film a span is of: add one, or give --movie")
    lacking = [name for name in FIELDS if name not in table.columns]
    hints = {name: name_hint(name, lacking) for name in table.columns if name not in FIELDS}
    almost = (f"column {name!r} is not read{hint}: rename it" for name, hint in hints.items() if hint)
    given.account.note(*table.notes, *almost)
    return table


def trimmed(cells: Mapping[str, str]) -> dict[str, str]:
    """Write cells of our columns without blanks around them, and with accents in one form."""
    ours = (*FIELDS, SEEN_SCORE)
    return {name: composed(cell.strip()) if name in ours else cell for name, cell in cells.items()}


def doubts(table: Table, book: Codebook) -> list[str]:
    """Say which rows of a table are of whole films, and which columns are named as labels are."""
    rows = [row for row in table.rows if not row.is_empty]
    whole = [row.line for row in rows if not row.cells[TIMES[0]].strip()]
    notes = []
    if 0 < len(whole) < len(rows):
        what = counted(len(whole), "row")
        notes.append(f"{what} without times taken as whole films (the first: line {whole[0]})")
    words = {*spellings_of(book.levels), *spellings_of(book.concepts)} - set(map(plain, FIELDS))
    if beside := [name for name in table.columns if plain(name) in words]:
        notes.append(f"columns named as labels are no labels ({', '.join(beside)}): write level and concepts")
    return notes


def nameless(clips: Sequence[Clip]) -> list[str]:
    """Say which names of films and annotators are what programs write for none."""
    said = {(name, getattr(clip, name)) for clip in clips for name in ("movie", "annotator")}
    return [
        f"{name} {text!r} taken as a name: where there is none, leave it empty"
        for name, text in sorted(said)
        if plain(text) in NO_VALUE
    ]


def respelled_labels(row: Row, clip: Clip, codebook: Codebook) -> list[tuple[str, str]]:
    """List the labels of a row that are spelled otherwise than the codebook names them."""
    read = [(row.cells.get("level", ""), clip.level or "")]
    read += [(text, codebook.concept_spelled(text)) for text in split_concepts(row.cells.get("concepts", ""))]
    return [(text, name) for text, name in read if text != name]
