"""Name tiers: those that people and models write on, and how names of tiers are compared."""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NamedTuple

from obygaze_features.identity import plain

LEVEL_TIER = "human: level"
CONCEPT_TIER = "human: concepts"
"""Tiers that people write on, beside what a model's export wrote; no export of a model has these names."""

BLIND = "blind"
IN_SIGHT = "in sight"
AGREED = "agreed"
HOW: Final = "how"
"""Column: how people decided, where their tier says it."""

DECISION = "decision"
"""Column: the id of the decision that a span shows, in the ledger of a scored film."""

HOWS: Final = (IN_SIGHT, BLIND, AGREED)
"""How people decided: with the model's score in sight or out of it; or several, on what they differed on."""

ROLE_OF: Final[Mapping[str, str]] = {"level": "levels", "concepts": "concepts", "labels": "labels"}
"""What a tier of people holds -> its role; a tier of notes holds texts."""

NAMED: Final[Mapping[str, str]] = {
    **{f"human: {what}": role for what, role in ROLE_OF.items()},
    **{f"human: {what}, {how}": role for what, role in ROLE_OF.items() for how in HOWS},
    "level": "levels",
    "levels": "levels",
    "concept": "concepts",
    "concepts": "concepts",
}
"""Names of tiers that say their role."""

DECIDED_LEVEL = "human: decision level"
DECIDED_CONCEPTS = "human: decision concepts"
DECIDED: Final[Mapping[str, str]] = {DECIDED_LEVEL: "levels", DECIDED_CONCEPTS: "concepts"}
"""Tiers on which annotators' conflicts are decided; they are read where they are named alone."""

MODEL = "obygaze"
"""Begins the names of tiers and of header properties that a model's export wrote."""

LINE_SEPARATOR: Final = " = "
"""Between a tier of people and the text on it, in files whose lines name no tiers."""

MIN_LIKENESS: Final = 0.75
"""How alike two names of tiers are (`difflib`, 0 to 1) from which one may be a misspelling of the other."""

_WIDE_COLON = "\uff1a"
_NUMBER = re.compile(r" \([0-9]+\)$")


class PeopleTier(NamedTuple):
    """A tier that a person wrote.

    Attributes
    ----------
    what
        `level`, `concepts`, `labels` (both) or `note`.
    how
        One of `HOWS`; empty where the tier does not say.
    annotator
        Empty where nobody signed it.
    number
        Of several tiers of one person, whose spans would overlap on one; from 1.

    Examples
    --------
    >>> PeopleTier("level", "blind", "AB").name
    'human: level, blind@AB'
    >>> PeopleTier.parse("human: level, blind@AB").how
    'blind'
    """

    what: str
    how: str = ""
    annotator: str = ""
    number: int = 1

    @property
    def name(self) -> str:
        """The tier's name, the same in files of all formats: `human: level, blind@AB`."""
        name = f"human: {self.what}"
        if self.how:
            name += f", {self.how}"
        if self.annotator:
            name += f"@{self.annotator}"
        return numbered(name, self.number)

    def line(self, text: str) -> str:
        """Write a text of this tier for a file whose lines name no tiers (`split_people_tier` reads it)."""
        return f"{self.name}{LINE_SEPARATOR}{text}"

    @classmethod
    @lru_cache(4096)  # many spans are on few tiers
    def parse(cls, name: str) -> "PeopleTier | None":
        """Read the name of a tier, however it is spelled (`tier_key`); None if it is no tier of people.

        A number in brackets, as in `human: level, blind (2)@AB`, is left out: it only tells apart tiers of
        one person that have the same name otherwise.
        """
        name_before_annotator, _, annotator = name.partition("@")
        name_without_number = _NUMBER.sub("", name_before_annotator.strip())
        facts = _FACTS_OF_KEY.get(tier_key(name_without_number))
        if facts is None:
            return None
        what, how = facts
        return cls(what, how, annotator.strip())


def numbered(name: str, number: int) -> str:
    """Return the name of the n-th of several tiers that share a name, such as `subtitles (2)`.

    Spans that overlap cannot be on one tier, so that exports move them to a second and a third one.

    Examples
    --------
    >>> numbered("subtitles", 2), numbered("level@AB", 2)
    ('subtitles (2)', 'level (2)@AB')
    """
    if number == 1:
        return name
    base, at, annotator = name.partition("@")
    return f"{base} ({number}){at}{annotator}"


def split_people_tier(text: str) -> tuple[str, str]:
    """Split a line of a format without tiers into the tier of people that it names and its text.

    Only a line that names such a tier can hold labels: subtitles of a film are never read as labels.

    Returns
    -------
    (name of the tier, text on it), or ("", the whole line) if it names none.

    Examples
    --------
    >>> split_people_tier("human: labels, blind@AB = S; Body")
    ('human: labels, blind@AB', 'S; Body')
    >>> split_people_tier("Sure.")
    ('', 'Sure.')
    """
    name, separator, text_on_tier = text.partition(LINE_SEPARATOR)
    if separator and PeopleTier.parse(name) is not None:
        return name.strip(), text_on_tier.strip()
    return "", text


def seen_score_of_tier(name: str) -> str:
    """Return the cell of `seen_score` for a tier, whether annotators on it saw the model's score.

    "1" if its name says that they did, "0" if it says that they did not, and "" if it says neither.
    """
    tier = PeopleTier.parse(name)
    if tier is None:
        return ""
    if tier.how == IN_SIGHT:
        return "1"
    return "0" if tier.how == BLIND else ""


def tier_key(name: str) -> str:
    """Return the form in which names of tiers are compared: without case, blanks and forms of accents."""
    return plain(name).replace(" ", "")


def _facts_of_people_tiers() -> dict[str, tuple[str, str]]:
    """Return key of a tier of people -> what it holds, and how people decided ("" if it does not say).

    A key is the form in which names are compared (`tier_key`), here of a name without annotator: the key of
    `human: level, blind` has the facts ("level", "blind").
    """
    facts: dict[str, tuple[str, str]] = {}
    for what in (*ROLE_OF, "note"):
        for how in ("", *HOWS):
            facts[tier_key(PeopleTier(what, how).name)] = (what, how)
    return facts


_FACTS_OF_KEY: Final[Mapping[str, tuple[str, str]]] = _facts_of_people_tiers()
"""Key of a tier of people (`tier_key`), without annotator and number -> what it holds, how people decided."""


def tier_named_nearly(name: str, others: Iterable[str]) -> str | None:
    """Return the tier among `others` whose name is most like this one; None if none is near enough.

    Examples
    --------
    >>> tier_named_nearly("levels", ["words", "level"])
    'level'
    """
    name_of_key = {tier_key(other): other for other in others}
    near_keys = get_close_matches(tier_key(name), name_of_key, n=1, cutoff=MIN_LIKENESS)
    return name_of_key[near_keys[0]] if near_keys else None


@lru_cache(4096)  # many spans are on few tiers
def without_annotator(name: str) -> str:
    """Return a tier's name without the annotator behind its `@`, and without the number of a further tier.

    A name with nothing else is returned as it is.

    Examples
    --------
    >>> without_annotator("level (2)@AB"), without_annotator("@AB"), without_annotator("words")
    ('level', '@AB', 'words')
    """
    return _NUMBER.sub("", name.partition("@")[0].strip()) or name


def matching_key(name: str, keys: Collection[str]) -> str:
    """Find a tier in a collection of tiers' keys (`tier_key`), by its name with or without its annotator.

    Returns
    -------
    The key that is in `keys`; that of the whole name comes first. "" if neither is there.
    """
    for key in (tier_key(name), tier_key(without_annotator(name))):
        if key in keys:
            return key
    return ""


def is_of_a_model(name: str) -> bool:
    """Return whether a tier, or a label, was exported as a model's, by its name."""
    has_colon = ":" in name or _WIDE_COLON in name  # for speed: most names have none
    return has_colon and tier_key(name).startswith(f"{MODEL}:")
