"""Tell whether two names are the same: of films and of people, however they are typed.

Names are one if they are equal after Unicode's form NFKC (width), case folding, and without marks, signs
without width and repeated blanks; or if they look alike: their skeletons (Unicode Technical Standard 39, by
the facts of version 17 in `confusables.tsv`) are equal. Some letters of one keyboard look alike too, as 1 and
l: names in ASCII that differ in them alone may be one, which is said, and refused nowhere.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from obygaze_features.templates import packaged_text
from obygaze_features.text import SIGNS_OF_DIRECTION, composed, normalised

_COMMON_SIGN = str.maketrans("‘’ʼ′`‐‑‒–—−_", "'''''------ ")
"""Signs that programs write for each other -> the sign that stands for them: `'` for apostrophes, `-` for
hyphens, a blank for an underscore."""

_PLAIN_SIGN: dict[int, int | None] = {**_COMMON_SIGN, ord("ı"): ord("i")}
"""These signs, signs of full width, and signs without width (None) -> what `plain` writes for them."""
for _sign in range(0x21, 0x7F):
    _PLAIN_SIGN[_sign + 0xFEE0] = _PLAIN_SIGN.get(_sign, _sign)
for _letter in f"\u200b\u2060\ufeff\xad{SIGNS_OF_DIRECTION}":
    _PLAIN_SIGN[ord(_letter)] = None

_MARKS = ((0x0300, 0x036F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F))
"""First and last code point of the blocks of marks on letters of any script; vowels of other scripts stay."""

_VARIANTS = (0xFE00, 0xFE0F)
"""Selectors of the form of a sign, which have no width."""

_IMDB = re.compile(r"(?:.*/title/)?(?:tt)?(\d{1,9})/?", re.ASCII | re.IGNORECASE)
"""An IMDb id, with or without its letters and zeros, or the address of its page."""

_ARTICLE = re.compile(
    r"^(.+), (the|an?|l[ae]s?|l'|il|gli|der|die|das|el|los|une?)( \(\d{4}\))?$", re.IGNORECASE
)
"""A title with its article behind it, and perhaps a year: `Birds, The (1963)`."""


class SameNames(NamedTuple):
    """Names that are one, and names that may be.

    Attributes
    ----------
    same : list of tuple of str
        A name, and the first name before it that is another spelling of it.
    doubtful : list of tuple of str
        A name, and the first name before it that looks like it, both in ASCII, such as `Al` and `A1`.
    """

    same: list[tuple[str, str]]
    doubtful: list[tuple[str, str]]


def same_names(names: Iterable[str]) -> SameNames:
    """Find names that are spellings of the same name, and names that may be.

    - Names that differ only in case, width, accents or blanks are the same.
    - Names that look alike, but have different letters, are the same if one of them has letters outside of
      ASCII: these were probably typed or pasted by mistake, such as a Cyrillic S for a Latin C.
    - Names that look alike and are both in ASCII, such as `A1` and `Al`, may be different on purpose: they
      are doubtful.

    Parameters
    ----------
    names
        The names, in the order in which they are read; each is compared with those before it.

    Examples
    --------
    >>> same_names(["AB", "Casablanca", "ab", "\u0421asablanca", "A1", "Al"]).same
    [('ab', 'AB'), ('Сasablanca', 'Casablanca')]
    >>> same_names(["A1", "Al"])
    SameNames(same=[], doubtful=[('Al', 'A1')])
    """
    name_of_typed: dict[str, str] = {}  # `as_typed` of a name -> the first name that has it
    name_of_skeleton: dict[str, str] = {}  # one of the `skeletons` of a name -> the first name that has it
    same: list[tuple[str, str]] = []
    doubtful: list[tuple[str, str]] = []
    for name in dict.fromkeys(names):
        first_typed_so = name_of_typed.setdefault(as_typed(name), name)
        if first_typed_so != name:
            same.append((name, first_typed_so))
            continue
        lookalike = _first_lookalike(name, name_of_skeleton)
        if lookalike is None:
            continue
        are_ascii = as_typed(name).isascii() and as_typed(lookalike).isascii()
        if are_ascii:
            doubtful.append((name, lookalike))
        else:
            same.append((name, lookalike))
    return SameNames(same, doubtful)


def same_movies(names: Iterable[str]) -> SameNames:
    """Find names of movies that are spellings of one, or may be, as `same_names` does for any names.

    Names are also one if they are forms of one IMDb id, or differ in where the article stands; whatever else
    they differ in: `Città, La` is `La Citta`.

    Examples
    --------
    >>> same_movies(["tt0054215", "The Birds", "54215", "Birds, The"]).same
    [('54215', 'tt0054215'), ('Birds, The', 'The Birds')]
    """
    first_of_key: dict[str, str] = {}  # IMDb id, or title in one form -> the first name that has it
    respelled = []
    for name in dict.fromkeys(names):
        key = imdb_id(name) or plain(name)
        first = first_of_key.setdefault(key, name)
        if first != name:
            respelled.append((name, first))
    # The names with their articles in front are compared, and those that were given are returned.
    name_of_title = {with_article_in_front(name): name for name in first_of_key.values()}
    pairs = same_names(name_of_title)
    same = [(name_of_title[title], name_of_title[other]) for title, other in pairs.same]
    doubtful = [(name_of_title[title], name_of_title[other]) for title, other in pairs.doubtful]
    return SameNames([*respelled, *same], doubtful)


def _first_lookalike(name: str, name_of_skeleton: dict[str, str]) -> str | None:
    """Return an earlier name that looks like a name; None if there is none.

    `name_of_skeleton` maps each skeleton to the first name that has it. Those of this name are added.
    """
    lookalikes = []
    for skeleton in skeletons(name):  # all of them, as all are to be added
        first_name = name_of_skeleton.setdefault(skeleton, name)
        if first_name != name:
            lookalikes.append(first_name)
    return lookalikes[0] if lookalikes else None


def is_one_name(name: str, other: str) -> bool:
    """Return whether two names are spellings of the same name, as `same_names` finds them.

    Examples
    --------
    >>> is_one_name("Amélie", "ＡＭＥＬＩＥ"), is_one_name("Psycho", "Psycho II")
    (True, False)
    """
    return name == other or bool(same_names([name, other]).same)


def is_one_title(title: str, other: str) -> bool:
    """Return whether two titles are spellings of the same one, also if their article stands elsewhere.

    IMDb ids are no titles: `same_movies` compares both.

    Examples
    --------
    >>> is_one_title("Citt\u00e0, La", "La Citta"), is_one_name("Citt\u00e0, La", "La Citta")
    (True, False)
    """
    return is_one_name(with_article_in_front(title), with_article_in_front(other))


def looks_of_title(title: str) -> list[str]:
    """Return forms of a title by which other spellings of it are looked up among many titles.

    Two spellings of one title (`is_one_title`), such as "The Piano" and "Piano, The", have at least one form
    in common. Two titles that have a form in common need not be one: what is found is still to be compared.

    Returns
    -------
    list of str
        The title as it would be typed, and texts that stand for how it looks (`skeletons`).
    """
    name = with_article_in_front(title)
    forms_of_look = sorted(skeletons(name))
    return [as_typed(name), *forms_of_look]


@lru_cache(4096)  # a table has the same names in every row
def as_typed(name: str) -> str:
    """Normalise a name: without differences of width, case, accents and blanks, which keyboards vary.

    Examples
    --------
    >>> as_typed("Ｄéjà  Vu"), as_typed("ISTANBUL") == as_typed("İstanbul")
    ('deja vu', True)
    """
    text = normalised("NFKC", name).translate(_COMMON_SIGN)
    text = " ".join(text.split())
    # Folding case may add marks, as for `İ`, and removing marks composes letters anew: so it is folded again.
    without_marks = _without_marks(text.casefold())
    return without_marks.casefold()


@lru_cache(4096)
def skeletons(name: str) -> frozenset[str]:
    """Return texts that stand for how a name looks; names that share one of them look alike.

    They are the name in three forms: as it is, in small letters, and in capitals. In each form, letters are
    replaced by the Latin letters that they look like. All three are needed, as only one form of a letter may
    look like a Latin letter: a Greek capital beta looks like B, but a small one like no Latin letter.
    """
    text = normalised("NFKC", name).translate(_COMMON_SIGN)
    text = _without_marks(" ".join(text.split()))
    forms = (text, text.casefold(), text.upper())
    # The case of the Latin letters does not count, so that all three can be compared.
    return frozenset(_replace_lookalikes(form).casefold() for form in forms)


def _replace_lookalikes(text: str) -> str:
    """Replace each sign by the one that stands for all that look like it."""
    return _without_marks(text.translate(_prototypes()))


def _without_marks(text: str) -> str:
    """Remove accents and other marks on letters, and signs without width."""
    if text.isascii():
        return text
    signs_and_marks = normalised("NFD", text)  # in which a letter and its accent are two signs
    signs = [sign for sign in signs_and_marks if not _is_mark(sign)]
    return normalised("NFC", "".join(signs))


@lru_cache(1 << 16)
def _is_mark(sign: str) -> bool:
    """Return whether a sign is a mark on a letter, or has no width."""
    is_format_character = unicodedata.category(sign) == "Cf"  # such as a zero-width joiner
    if is_format_character:
        return True
    code = ord(sign)
    return any(first <= code <= last for first, last in (*_MARKS, _VARIANTS))


@cache
def _prototypes() -> dict[int, str]:
    """Read the table of signs that look alike: code point -> the sign that stands for all of them."""
    prototypes: dict[str, str] = {}
    for line in packaged_text(__package__, "confusables.tsv").splitlines():
        if line.startswith("#"):
            continue
        prototype, signs = line.split("\t")
        prototypes.update(dict.fromkeys(signs, prototype))
    return str.maketrans(prototypes)


@lru_cache(4096)  # a table has the same names in every row
def plain(text: str) -> str:
    """Normalise a name for comparison: two spellings of one name become the same text.

    - Letters become lower case, in Unicode's form NFC.
    - Blanks, which `_` is one of, become single ones; those at the ends are removed.
    - An article behind the name goes in front: `Birds, The` becomes `the birds`.
    - Characters that programs write for each other become one: apostrophes, dashes, the dotless i of Turkish
      and i. Characters without width are removed.

    Examples
    --------
    >>> plain("Birds,  The"), plain("L\u2019Avventura"), plain("Amour_fou")
    ('the birds', "l'avventura", 'amour fou')
    """
    alike = " ".join(text.translate(_PLAIN_SIGN).split())
    # The capital I with a dot of Turkish is folded to an i and a dot above it, which is removed.
    folded = composed(alike.casefold()).replace("i\u0307", "i")
    return _with_article_in_front(folded)


def with_article_in_front(title: str) -> str:
    """Return a title with the article that stands behind it in front, with usual signs and single blanks.

    Examples
    --------
    >>> with_article_in_front("Birds, The (1963)"), with_article_in_front("Avventura, L\u2019")
    ('The Birds (1963)', "L'Avventura")
    """
    return _with_article_in_front(" ".join(title.translate(_PLAIN_SIGN).split()))


def _with_article_in_front(title: str) -> str:
    """Return a title of usual signs and single blanks with the article that stands behind it in front."""
    with_article = _ARTICLE.match(title) if ", " in title else None
    if with_article is None:
        return title
    name, article, rest = with_article.groups(default="")
    blank = "" if article.endswith("'") else " "
    return f"{article}{blank}{name}{rest}"


def imdb_id(text: str) -> str:
    """Return an IMDb id in full (`tt0054215`), whatever its form; "" if the text is no id or its page.

    Examples
    --------
    >>> imdb_id("54215"), imdb_id("tt54215"), imdb_id("Psycho")
    ('tt0054215', 'tt0054215', '')
    """
    match = _IMDB.fullmatch(composed(text).strip())
    return f"tt{int(match[1]):07d}" if match else ""
