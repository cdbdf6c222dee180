"""Compare names: of films, annotators, levels, concepts, tiers and files, however they are spelled."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import PurePath, PurePosixPath
from urllib.parse import parse_qsl, unquote

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import FACTS, FILM_SUFFIXES, SUBTITLE_SUFFIXES
from obygaze_features.identity import imdb_id, is_one_title, looks_of_title, plain
from obygaze_features.text import composed, first_few, number_of

NO_MARKUP = str.maketrans("<>{}", "‹›()")
"""Signs of markup -> those that are written in their place: SubRip has no escapes, and players obey `<i>`."""

MAX_COMPARED = 200
"""Longest name, in characters, that is compared for likeness: the time grows with the product of lengths."""

SHORT_NAME = 2
MIN_LIKENESS = 0.6
MIN_LIKENESS_OF_SHORT = 0.75
"""Least share of letters that a misspelling has in common with a name (as `difflib` counts them), and that of
texts of up to `SHORT_NAME` letters: `si` has two thirds in common with `s`."""

QUESTION_MARKS = "?\uff1f\u061f\u037e"
"""Question marks: of most scripts, in full width, of Arabic, of Greek."""

MAX_NAMES = 40
"""Names that a message lists; of more it says how many there are."""

_TYPED_TWICE = re.compile(r"([^\W\d_])\1")
"""A letter twice. A sign or digit twice is another degree or number: `++` is no slip for `+`."""
_DRIVE = re.compile(r"(?:[A-Za-z]:|%\w+%|\$\w+|\$\{\w+\})[\\/]")
"""A disk, or a variable of the system that names a folder."""
SEPARATORS_OF_SCRIPTS = {"،": ",", "、": ",", "，": ",", "﹐": ",", "؛": ";", "；": ";", "﹔": ";"}
"""Commas and semicolons of Arabic, Persian, Urdu, Chinese and Japanese -> the usual ones."""
MAX_SUFFIXES = 4
"""How many suffixes of subtitles are taken off a file's name, one behind the other."""

_ZEROS = re.compile(r"\A([+-]?\d+)[.,]0+\Z", re.ASCII)
_ID_OF_FILE = re.compile(r"tt\d{7,9}(?=\.)", re.ASCII | re.IGNORECASE)
_LANGUAGE = re.compile(  # a word in a title begins with a capital
    rf"(?![A-Z][a-z])(?i:({'|'.join(FACTS['languages'])})([-_]([a-z]{{2,4}}|\d{{3}}))*|sdh|cc|forced|default)"
)
# Tools write names of files as they are; a page of IMDb names its film, whatever follows.
_URL = re.compile(r"(?i:file:/.*)|[A-Za-z][A-Za-z0-9+.-]+:/(?:[^?#]*?/title/tt\d+|[^?#]*)", re.ASCII)


def with_usual_separators(text: str, words: Iterable[str]) -> str:
    """Write the commas and semicolons of other scripts as `,` and `;`, but for those that a word has itself.

    Parameters
    ----------
    text
        A list of labels, as a person writes it.
    words
        Spellings of the labels. A sign that is in one of them may belong to a label, and stays.

    Examples
    --------
    >>> with_usual_separators("体、視線", ["体", "視線"]), with_usual_separators("体、視線", ["体、視線"])
    ('体,視線', '体、視線')
    """
    if SEPARATORS_OF_SCRIPTS.keys().isdisjoint(text):  # as nearly all texts are
        return text
    signs_of_words = set("".join(words))
    for sign, usual_sign in SEPARATORS_OF_SCRIPTS.items():
        if sign not in signs_of_words:
            text = text.replace(sign, usual_sign)
    return text


def nearest(text: str, names: Iterable[str]) -> str:
    """Find the name that a person most likely meant by a text; "" if no name is near.

    The first of these that exists is taken:

    1. the same IMDb id written in another way;
    2. the same number without decimals: 2 for 2.0;
    3. the same name in another case;
    4. the name with one letter less, where the text has that letter twice: `ss` is S;
    5. the name that is spelled most alike. `sí` is not alike enough to be S.

    Another number is no spelling of a number, as -1 is none of 1.
    """
    if len(text) > MAX_COMPARED:
        return ""
    name_of_spelling = {plain(name): name for name in names if len(name) <= MAX_COMPARED}

    text_id = imdb_id(text)
    if text_id:
        for name in name_of_spelling.values():
            if imdb_id(name) == text_id:
                return name

    number_text = without_zeros(text)
    if number_text in name_of_spelling.values():
        return number_text

    spelling = plain(text)
    if spelling in name_of_spelling:
        return name_of_spelling[spelling]

    possible = name_of_spelling
    if _is_number(spelling):
        possible = {near: name for near, name in name_of_spelling.items() if not _is_number(near)}
    without_double_letters = _TYPED_TWICE.sub(r"\1", spelling)
    if without_double_letters in possible:
        return possible[without_double_letters]

    min_likeness = MIN_LIKENESS if len(spelling) > SHORT_NAME else MIN_LIKENESS_OF_SHORT
    near_spellings = get_close_matches(spelling, possible, n=1, cutoff=min_likeness)
    return possible[near_spellings[0]] if near_spellings else ""


def _is_number(text: str) -> bool:
    """Return whether a text is a number, such as -1 or 1.5."""
    return not math.isnan(number_of(text))


@lru_cache(4096)  # a column has the same numbers in many rows
def without_zeros(text: str) -> str:
    """Write a whole number without the decimals that data frames give it beside an empty cell.

    Examples
    --------
    >>> without_zeros("2.0"), without_zeros("2,0"), without_zeros("2.5")
    ('2', '2', '2.5')
    """
    return _ZEROS.sub(r"\1", text.strip())


def has_doubt(answer: str, labels: Iterable[str]) -> bool:
    """Return whether an answer has a question mark, so that whoever gave it was in doubt: `S?` is no slip.

    A question mark that one of the labels has itself may belong to a label, and is no doubt.

    Examples
    --------
    >>> has_doubt("S?", ["S"]), has_doubt("sure (\uff1f)", ["S"]), has_doubt("1 - S?", ["S", "S?"])
    (True, True, False)
    """
    signs_of_labels = set("".join(labels))
    return any(sign in answer and sign not in signs_of_labels for sign in QUESTION_MARKS)


def suggestion(text: str, known: Iterable[str] | Mapping[str, str], *, may_be_slip: bool = True) -> str:
    """Return the end of a message on an unknown name: the nearest known name, or else a list of all names.

    It also says if the text has a letter of a script that no name uses, as a Cyrillic letter may look like a
    Latin one.

    Parameters
    ----------
    text
        The unknown name.
    known
        The known names, or spelling (as `plain` writes it) -> name.
    may_be_slip
        Whether the text may be a misspelt name. If not, the message has the list.
    """
    name_of_spelling = known if isinstance(known, Mapping) else {plain(name): name for name in known}
    names = list(dict.fromkeys(name_of_spelling.values()))
    script_note = _note_on_scripts(text, names)
    near_spelling = nearest(text, name_of_spelling) if may_be_slip else ""
    if near_spelling:
        return f" (did you mean {name_of_spelling[near_spelling]!r}?{script_note})"
    if not names:
        return ""
    return f" (expected one of {first_few(names, MAX_NAMES)}{script_note})"


def _note_on_scripts(text: str, names: Iterable[str]) -> str:
    """Return a note on the first letter of a text in a script that no name uses; "" if there is none."""
    known_scripts = {_script(letter) for name in names for letter in name}
    for letter in text:
        if _script(letter) not in known_scripts:
            return f"; {letter!r} is {unicodedata.name(letter, 'of another script')}"
    return ""


def _script(letter: str) -> str:
    """Return the script of a letter, as `LATIN` or `CYRILLIC`; signs that are no letters count as Latin."""
    if not letter.isalpha():
        return "LATIN"
    script, _, _ = unicodedata.name(letter, "").partition(" ")  # of a name such as LATIN SMALL LETTER A
    return script


def is_foreign(path_or_url: str) -> bool:
    """Return whether a place is a path of another system, or a URL, which names no file below a folder."""
    is_on_drive = _DRIVE.match(path_or_url) is not None
    is_url = _URL.match(path_or_url) is not None
    is_on_network_or_at_home = path_or_url.startswith(("\\\\", "~"))
    return is_on_drive or is_url or is_on_network_or_at_home


def is_place(film: str) -> bool:
    """Return whether a text that names a film is the path of a file or the address of a page."""
    return is_foreign(film) or path_of(film).suffix.lower() in FILM_SUFFIXES


@lru_cache(4096)  # many spans are of few films
def path_of(path_or_url: str) -> PurePosixPath:
    r"""Write a path of any system, or a URL, as a path with slashes.

    Examples
    --------
    >>> path_of("C:\\films\\a.mp4").name, path_of("https://lab.example/films/a%20b.mp4?x=1").name
    ('a.mp4', 'a b.mp4')
    >>> path_of("https://www.youtube.com/watch?v=abc").name  # the query names the film, not the path
    'abc'
    >>> path_of("file:///films/Rocky #1.mp4").name  # of a file it is no query
    'Rocky #1.mp4'
    """
    url = _URL.match(path_or_url)
    if url is None:
        return PurePosixPath(path_or_url.replace("\\", "/"))
    path = PurePosixPath(unquote(url[0]).replace("\\", "/"))
    names_a_file = path.suffix != ""
    if names_a_file:
        return path
    # The match of `_URL` ends before the sign that begins a query or a fragment.
    name = _name_in_query(path_or_url[url.end() + 1 :])
    return path / name if name else path


def _name_in_query(query_and_fragment: str) -> str:
    """Return the film that the query of a URL names: a file, or the parameter `v` or `id`; "" if none.

    Examples
    --------
    >>> _name_in_query("v=abc&t=10#top")
    'abc'
    """
    query, _, _ = query_and_fragment.partition("#")
    for parameter, value in dict(parse_qsl(query)).items():
        is_file = PurePosixPath(value).suffix != ""
        if is_file or parameter in {"v", "id"}:
            return value
    return ""


@lru_cache(4096)
def stem_of(path_or_url: str) -> str:
    """Return the name of a file without its suffix, and without the language of subtitles.

    Only suffixes of films and subtitles are removed; other dots belong to the name.

    Examples
    --------
    >>> stem_of("films/Psycho.1998.mkv"), stem_of("Psycho.1998"), stem_of("Rocky.II")
    ('Psycho.1998', 'Psycho.1998', 'Rocky.II')
    """
    path = path_of(path_or_url)
    for _ in range(MAX_SUFFIXES):  # such as `film.mkv.en.srt`, which has several
        if path.suffix.lower() not in SUBTITLE_SUFFIXES:
            break
        imdb_match = _ID_OF_FILE.match(path.name)
        if imdb_match:
            return imdb_match[0]
        name = _without_language(path)
        path = path_of(name)
    has_suffix_of_film = path.suffix.lower() in FILM_SUFFIXES
    return path.stem if has_suffix_of_film else path.name


def film_named(text: str) -> str:
    r"""Return the name of a film that a person gives by its name, its file or a web page.

    Examples
    --------
    >>> film_named("The  Matrix"), film_named("C:\\films\\tt0133093.mp4")
    ('The Matrix', 'tt0133093')
    """
    name = stem_of(text) if is_place(text) else text.replace("\\", "/")
    return composed(" ".join(name.split()))


def are_different_files(first: str, second: str) -> bool:
    """Return whether two paths or URLs must be of different files: their names or their folders differ.

    Only as many folders are compared as both have.
    """
    if plain(stem_of(first)) != plain(stem_of(second)):
        return True
    # From the file upwards, as far as both paths go.
    folders = zip(_folders_of(first), _folders_of(second), strict=False)
    return any(folder != other_folder for folder, other_folder in folders)


def _folders_of(path: str) -> Iterator[str]:
    """Yield the folders of a path, each as `plain` writes it, from the one that holds the file upwards."""
    for folder in islice(reversed(path_of(path).parts), 1, None):
        name = plain(folder)
        if name not in {"", "/"}:
            yield name


def film_by_file(path: PurePath) -> str:
    """Return the film of a file: the IMDb id in the file's name, else this name without suffix and language.

    Examples
    --------
    >>> film_by_file(PurePath("tt0054215.x.srt")), film_by_file(PurePath("Psycho.1960.mkv.pt-BR.srt"))
    ('tt0054215', 'Psycho.1960')
    """
    imdb_match = _ID_OF_FILE.match(path.name)
    if imdb_match:
        return imdb_match[0]
    return stem_of(_without_language(path))


def _without_language(path: PurePath) -> str:
    """Return a file's name without its suffix and without the languages before it, as in `a.pt-BR.srt`."""
    stem = path.stem
    name, point, last_part = stem.rpartition(".")
    while point and _LANGUAGE.fullmatch(last_part):
        stem = name
        name, point, last_part = stem.rpartition(".")
    return stem


@checked
def find_film(text: str, movies: Iterable[str], titles: Mapping[str, str] | None = None) -> str | None:
    """Find the film that a text names: by its id, a path or URL of its file, or its title.

    The first of these that finds a film is taken:

    1. the text is the id;
    2. the text is the id in another spelling, or a path or URL whose file has the id as its name;
    3. the text has the same IMDb id, or is the title;
    4. the text, or its file's name, is one title with the id (`is_one_title`), as without its accents.

    Parameters
    ----------
    text
        What a table or a file says.
    movies
        Ids of the films.
    titles
        Id of a film -> its title, to find films by title too. A bare number is then taken as a title, not as
        an IMDb id.

    Returns
    -------
    The id of the film, as `movies` has it; None if no film is named so.

    Raises
    ------
    ManifestError
        Several films are named so.
    """
    films = _films_in_index(tuple(movies))
    matches = films.named(text)
    if not matches:
        matches = films.spelled(text)
    if not matches:
        matches = _films_by_imdb_id_or_title(text, films, titles or {})
    if not matches:
        matches = films.spelled_nearly(text)
    if len(matches) > 1:
        raise ManifestError(
            f"{text!r} names {len(matches)} films: {first_few(matches, MAX_NAMES)}; give the id"
        )
    return matches[0] if matches else None


def _names_in(text: str) -> set[str]:
    """Return what may be a film's id in a text: the text, and the name of a file, with and without suffix."""
    return {text, path_of(text).name, stem_of(text)}


def _films_by_imdb_id_or_title(text: str, films: "_Films", titles: Mapping[str, str]) -> list[str]:
    """Return the films that have the IMDb id in a text, then those that have it as their title.

    `titles` is id of a film -> its title; if there are any, a bare number is a title, and no IMDb id.
    """
    is_title = bool(titles) and text.strip().isdecimal()
    text_id = "" if is_title else imdb_id(text)
    matches = films.with_imdb_id(text_id) if text_id else []
    if titles:
        matches += [movie for movie in films.movies if plain(titles.get(movie, "")) == plain(text)]
    return list(dict.fromkeys(matches))  # each film once


class _Films:
    """Ids of films, which are found by the forms of a name without comparing it with each of them.

    Parameters
    ----------
    movies
        The ids.
    """

    def __init__(self, movies: tuple[str, ...]) -> None:
        """Keep the ids; their forms are indexed when they are first needed."""
        self.movies = movies

    def named(self, text: str) -> list[str]:
        """Return the films whose id is a text, however its accents are stored."""
        return list(self._by_id.get(composed(text.strip()), ()))

    def spelled(self, text: str) -> list[str]:
        """Return the films whose id is, in another spelling, a text or the name of its file (`plain`)."""
        return self._in_order(self._by_spelling, [plain(name) for name in _names_in(text)])

    def with_imdb_id(self, film_id: str) -> list[str]:
        """Return the films that have an IMDb id, which is written in full."""
        return list(self._by_imdb_id.get(film_id, ()))

    def spelled_nearly(self, text: str) -> list[str]:
        """Return the films whose id is the same title as a text, or as the name of the file that it names.

        Titles may differ as `is_one_title` says, in accents for example. To compare each film so takes long:
        only films that look similar (`looks_of_title`) are compared.
        """
        names = _names_in(text)
        looks: list[str] = []
        for name in names:
            looks += looks_of_title(name)
        candidates = self._in_order(self._by_look, looks)
        return [movie for movie in candidates if any(is_one_title(movie, name) for name in names)]

    def _in_order(self, index: Mapping[str, Sequence[str]], keys: Iterable[str]) -> list[str]:
        """Return the films that an index has under any of some keys, in the order of the films."""
        found = {movie for key in keys for movie in index.get(key, ())}
        return [movie for movie in self.movies if movie in found] if found else []

    def _indexed(self, forms_of: Callable[[str], Iterable[str]]) -> dict[str, list[str]]:
        """Return form of an id -> the films whose ids have this form, to find them by it at once.

        `forms_of` gives the forms of an id in which it may be looked up, such as the id in small letters.
        """
        index: dict[str, list[str]] = {}
        for movie in self.movies:
            different_forms = dict.fromkeys(forms_of(movie))  # so that no film is listed twice below a form
            for form in different_forms:
                index.setdefault(form, []).append(movie)
        return index

    @cached_property
    def _by_id(self) -> dict[str, list[str]]:
        """Id with composed accents -> films."""
        return self._indexed(lambda movie: [composed(movie)])

    @cached_property
    def _by_spelling(self) -> dict[str, list[str]]:
        """Id as `plain` writes it -> films."""
        return self._indexed(lambda movie: [plain(movie)])

    @cached_property
    def _by_imdb_id(self) -> dict[str, list[str]]:
        """IMDb id in full -> films; "" -> those that have none."""
        return self._indexed(lambda movie: [imdb_id(movie)])

    @cached_property
    def _by_look(self) -> dict[str, list[str]]:
        """Form of an id (`looks_of_title`) -> films."""
        return self._indexed(looks_of_title)


@lru_cache(32)  # a table asks for the same films in every row
def _films_in_index(movies: tuple[str, ...]) -> _Films:
    """Return films in an index, which is kept for the next names that are looked for among the same films."""
    return _Films(movies)


@checked
def name_hint(text: str, names: Iterable[str]) -> str:
    """Return a hint to the nearest of some names, for the end of a message; "" if none is near."""
    near = nearest(text, names)
    return f" (did you mean {near!r}?)" if near else ""
