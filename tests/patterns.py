"""Find every regular expression of the packages, and make the texts on which one could be slow.

A pattern is slow on long texts where an attempt that fails has gone through much of the text, and the next
attempt begins one character later: time grows with the square of the text's length. `shapes_for` makes texts
of many repeats of what a pattern itself asks for, on which such a pattern shows.
"""

import ast
import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, groupby, product
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]  # of the pattern's own parser
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from obygaze_features.file_kinds import XML_PROLOGUE, _known_formats
from obygaze_features.manifest.spans.formats import anywhere_pattern, beginning_pattern, root_pattern
from obygaze_features.video.stills import STATED

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")
FIRST, ALL, START, WHOLE = "search", "finditer", "match", "fullmatch"
"""Methods that look for the first match, for all, for one at the start, or for one of the whole text."""
METHODS = {
    "search": FIRST,
    "match": START,
    "fullmatch": WHOLE,
    **dict.fromkeys(("sub", "subn", "split", "findall", "finditer"), ALL),
}
"""Methods of a pattern -> the one whose time stands for theirs."""

MAY_USE_PATTERNS = re.compile(rf"\.\s*(compile|{'|'.join(METHODS)})\b")

LARGE = {"torch", "transformers", "ray", "matplotlib"}
"""Libraries that take seconds to import."""
USUAL_LETTERS = "a0 A_\t"
"""One of each class that patterns name: letters, digits, blanks and words."""
MAX_PAIRED = 9
"""Letters of which each pair is a unit."""
BAD_END = "\x01\n"
"""An end that fits no pattern, so that each attempt to match fails at the end of the text."""
MAX_UNITS = 80
"""Units that are tried of a pattern, the shortest ones: each is more or less a part of a longer one."""


class Use(NamedTuple):
    """A pattern, where it stands, and the method that it is used with."""

    place: str
    pattern: re.Pattern[Any]
    method: str


# --- every pattern of the packages
# ---------------------------------------------------------------------------
def uses() -> tuple[list[Use], list[str]]:
    """List the patterns of the packages with their uses; and the places of those that no module shows.

    Returns
    -------
    uses : list of Use
        Of module constants, of calls such as `re.search("...", text)`, and of tables of facts.
    hidden : list of str
        Modules and sources of patterns that are made while the program runs.
    """
    trees = dict(_modules())
    methods = _methods_by_name(trees.values())
    result: list[Use] = []
    hidden: list[str] = []
    for module, tree in trees.items():
        calls = list(_calls(tree))
        if not calls:
            continue
        names = _names_of(module, tree)
        result += _of_constants(module, names, methods)
        for call in calls:
            pattern = _evaluated(call, names)
            function = _function(call)
            if pattern is None:
                hidden.append(f"{module}: {ast.unparse(call)}")
            elif function != "compile":  # whose pattern is used by the constant that holds it
                result.append(Use(f"{module}: {ast.unparse(call):.60}", pattern, METHODS[function]))
    return [*dict.fromkeys([*result, *_of_facts()])], hidden


def _of_constants(module: str, names: Mapping[str, Any], methods: Mapping[str, set[str]]) -> Iterator[Use]:
    """Yield the patterns in a module's constants, with each method by which any module uses the constant.

    Of a constant that no module is seen to use, the two methods stand for all that it may be used with.
    """
    for constant, value in names.items():
        for pattern, bound_method in _patterns_in(value):
            used_by = {bound_method} if bound_method else methods.get(constant, {START, FIRST})
            for method in sorted(used_by):
                yield Use(f"{module}.{constant}", pattern, method)


def _names_of(name: str, tree: ast.Module) -> Mapping[str, Any]:
    """Return what a module defines; of one that imports a large library, its patterns alone.

    The latter is not imported: the patterns are made of their calls in its source.
    """
    if _imported_libraries(tree).isdisjoint(LARGE):
        return vars(importlib.import_module(name))
    names: dict[str, Any] = {"re": re}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if node.value not in _calls(node):  # not of a function of `re`
            continue
        for target in node.targets:
            if isinstance(target, ast.Name):
                names[target.id] = _evaluated(node.value, names)
    return names


def _imported_libraries(tree: ast.Module) -> set[str]:
    """Return the libraries that a module imports at its top: of `import a` and of `from a.b import c`, a."""
    libraries: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            libraries.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            libraries.add(str(node.module).partition(".")[0])
    return libraries


def _modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the syntax of each module that uses patterns, as a method of theirs shows."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if module.name.endswith("__main__"):  # runs the command
                continue
            path = ROOT.joinpath(*module.name.split("."))
            path = path / "__init__.py" if module.ispkg else path.with_suffix(".py")
            source = path.read_text(encoding="utf-8")
            if MAY_USE_PATTERNS.search(source):
                yield module.name, ast.parse(source)


def _methods_by_name(trees: Iterable[ast.Module]) -> Mapping[str, set[str]]:
    """Return the methods by which each constant is used, in any module."""
    methods: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or node.attr not in METHODS:
                continue
            owner = node.value
            if isinstance(owner, ast.Subscript):
                owner = owner.value
            name = getattr(owner, "id", getattr(owner, "attr", ""))
            methods.setdefault(name, set()).add(METHODS[node.attr])
    return methods


def _patterns_in(value: object) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Yield the patterns that a constant holds, with the method that it binds, if any."""
    if isinstance(value, re.Pattern):
        yield value, ""
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__, METHODS[value.__name__]  # type: ignore[attr-defined]
    elif type(value) is dict:
        yield from _patterns_in(tuple(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            if isinstance(each, re.Pattern):
                yield each, ""


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of functions of `re` that take a pattern."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and getattr(node.func.value, "id", "") == "re"
            and node.func.attr in {"compile", *METHODS}
        ):
            yield node


def _function(call: ast.Call) -> str:
    """Return the name of the function of `re` that a call is of."""
    return str(call.func.attr)  # type: ignore[attr-defined]  # an attribute, by `_calls`


PLACE_OF_FLAGS = {
    "compile": 1,  # compile(pattern, flags)
    "search": 2,  # search(pattern, string, flags)
    "match": 2,
    "fullmatch": 2,
    "findall": 2,
    "finditer": 2,
    "sub": 3,  # sub(pattern, replacement, string), whose flags are named in our code, as those of split
    "subn": 3,
}
"""Which argument of a function of `re` is its flags, where they are not named."""


def _evaluated(call: ast.Call, names: Mapping[str, Any]) -> re.Pattern[Any] | None:
    """Compile the pattern of a call; None where it depends on more than the module's constants."""
    flags = [word.value for word in call.keywords if word.arg == "flags"]
    place = PLACE_OF_FLAGS.get(_function(call))
    if place is not None and len(call.args) > place:
        flags.append(call.args[place])
    arguments = []
    for node in [call.args[0], *flags]:
        code = compile(ast.Expression(node), "", "eval")
        try:
            arguments.append(eval(code, dict(names)))  # noqa: S307 - our own source
        except NameError:
            return None
    return re.compile(*arguments)


KINDS_FILE = "manifest/spans/kinds.toml"
METHOD_OF_KEY = {
    "holds": FIRST,  # text somewhere in a file of this kind
    "anywhere": FIRST,  # bytes somewhere in it
    "cell": WHOLE,  # a cell, a column of the file's own, a cell that is read
    "own": WHOLE,
    "read": WHOLE,
    "lines": WHOLE,  # a line
    "members": WHOLE,  # a name in an archive
}
"""Keys of the table of kinds whose values are patterns -> the method that they are used with."""


def _pattern_of_kind(key: str, source: str) -> re.Pattern[Any]:
    """Compile a pattern of the table of kinds as the reader of this table does."""
    if key == "holds":
        return re.compile(source.replace("{xml}", XML_PROLOGUE), re.MULTILINE | re.IGNORECASE)
    if key == "anywhere":
        return re.compile(source.encode())
    return re.compile(source, re.IGNORECASE if key in {"cell", "own", "read"} else 0)


def _of_facts() -> Iterator[Use]:
    """Yield the patterns of tables of facts."""
    folder = ROOT / "obygaze_features"
    kinds = tomllib.loads((folder / KINDS_FILE).read_text(encoding="utf-8"))["kinds"]
    for name, facts in kinds.items():
        for key, method in METHOD_OF_KEY.items():
            if key in facts:
                yield Use(f"kinds.{name}.{key}", _pattern_of_kind(key, facts[key]), method)
    yield from _of_formats(folder)
    yield from _of_networks(folder)
    for source in STATED:
        yield Use("video.stills.STATED", re.compile(source), FIRST)
    for binary in (False, True):
        for source, kind in _known_formats(binary=binary):
            yield Use(f"file_kinds: {kind.name}", re.compile(source, re.DOTALL), START)


def _of_formats(folder: Path) -> Iterator[Use]:
    """Yield the patterns of the table of formats, as `formats` uses them."""
    formats = tomllib.loads((folder / "manifest/spans/formats.toml").read_text(encoding="utf-8"))["formats"]
    for facts in formats:
        name = f"formats.{facts['name']}"
        if "root" in facts:
            yield Use(f"{name}.root", root_pattern(facts["root"]), START)
        if "begins" in facts:
            yield Use(f"{name}.begins", beginning_pattern(facts["begins"]), START)
        if "within" in facts:
            yield Use(f"{name}.within", anywhere_pattern(facts["within"]), FIRST)
        for mark in {"lines", "cells", "members"} & facts.keys():
            yield Use(f"{name}.{mark}", re.compile(facts[mark]), WHOLE)
        if "bytes" in facts:
            yield Use(f"{name}.bytes", re.compile(facts["bytes"].encode("latin-1"), re.DOTALL), START)


def _of_networks(folder: Path) -> Iterator[Use]:
    """Yield the patterns of names of tensors that a checkpoint may have beside its network's."""
    networks = tomllib.loads((folder / "backbones/networks.toml").read_text(encoding="utf-8"))
    for entry in _tables_in(networks):
        for source in entry.get("unused_tensors", ()):
            yield Use("networks.unused_tensors", re.compile(source), WHOLE)


def _tables_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of a document of TOML, at any depth."""
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from _tables_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _tables_in(part)


def texts_like_patterns() -> Iterator[str]:
    """Yield the texts in tables of facts that are written as patterns are, by their classes and repeats."""
    like_a_pattern = re.compile(r"\\[.dwsbAZ$]|\.[*+]|\(\?|\[\^")
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.toml")):
            for table in _tables_in(tomllib.loads(path.read_text(encoding="utf-8"))):
                values = [value if isinstance(value, list) else [value] for value in table.values()]
                texts = [text for value in values for text in value if isinstance(text, str)]
                yield from filter(like_a_pattern.search, texts)


# --- texts on which a pattern could be slow
# ---------------------------------------------------------------------------
class Shape(NamedTuple):
    """A text that a pattern could be slow on: a beginning, a unit that is repeated, and an end."""

    begin: str
    unit: str
    end: str

    def text(self, n: int) -> str:
        """Return the text with n units."""
        return self.begin + self.unit * n + self.end


MAX_BEGINNINGS = 2
"""Beginnings that are tried before a unit."""


def shapes_for(pattern: re.Pattern[Any]) -> list[Shape]:
    """Make the texts on which a pattern could be slow: what it asks for itself, many times.

    Of `a+b*c`, for example, units are "a", "ab" and "abc", without a beginning, and "b", "bc" and "c" after
    what stands before them; each with nothing behind it and with an end that fits no pattern.
    """
    source, flags = pattern.pattern, pattern.flags
    if isinstance(source, bytes):
        source, flags = source.decode("latin-1"), flags & ~re.UNICODE
    tree = parser.parse(source, flags)
    letters = "".join(dict.fromkeys([*_literals(tree), *USUAL_LETTERS]))
    beginnings = _units_of_parts(tree, letters)

    units = [*letters]
    units += ["".join(pair) for pair in product(letters[:MAX_PAIRED], repeat=2)]
    units += sorted(beginnings, key=len)[:MAX_UNITS]
    units.append(_sample(tree, letters))

    shapes: dict[Shape, None] = {}  # in their order, each once
    for unit in units:
        if not unit:
            continue
        for begin in ["", *beginnings.get(unit, [])[:MAX_BEGINNINGS]]:
            shapes[Shape(begin, unit, "")] = None
            shapes[Shape(begin, unit, BAD_END)] = None
    return list(shapes)


def _units_of_parts(tree: Any, letters: str) -> dict[str, list[str]]:
    """Return a text of each run of neighbouring parts of a pattern -> texts of what is before it."""
    beginnings: dict[str, list[str]] = {}
    for before, sequence in _sequences(tree, letters, ""):
        samples = [_sample([item], letters) for item in _joined_literals(sequence)]
        for first, last in combinations_with_replacement(range(len(samples)), 2):
            unit = "".join(samples[first : last + 1])
            begin = before + "".join(samples[:first])
            known = beginnings.setdefault(unit, [])
            if begin not in known:
                known.append(begin)
    return beginnings


def _joined_literals(sequence: Sequence[Any]) -> list[Any]:
    """Join the literals of a sequence that follow each other, as one node of the parser's own kind."""
    joined: list[Any] = []
    for is_literal, items in groupby(sequence, lambda item: item[0] is codes.LITERAL):
        run = list(items)
        joined += [(codes.ATOMIC_GROUP, run)] if is_literal else run
    return joined


def _literals(tree: Any) -> Iterator[str]:
    """Yield the characters that a pattern names."""
    for code, value in tree:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            yield chr(value)
        elif code is codes.IN:
            yield from (chr(each[1]) for each in value if each[0] is codes.LITERAL)
        else:
            for part in _parts(code, value):
                yield from _literals(part)


def _parts(code: Any, value: Any) -> Sequence[Any]:
    """Return the patterns inside a node."""
    parts: list[Any] = []
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        parts = [value[2]]
    elif code is codes.SUBPATTERN:
        parts = [value[3]]
    elif code is codes.BRANCH:
        parts = list(value[1])
    elif code in (codes.ASSERT, codes.ASSERT_NOT):
        parts = [value[1]]
    elif code is codes.ATOMIC_GROUP:
        parts = [value]
    elif code is codes.GROUPREF_EXISTS:
        parts = [part for part in value[1:] if part]
    return parts


def _sequences(tree: Any, letters: str, begin: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield each sequence of nodes, with a text that fits what stands before it."""
    items = list(tree)
    yield begin, items
    before = begin
    for item in items:
        for part in _parts(*item):
            yield from _sequences(part, letters, before)
        before += _sample([item], letters)


def _sample(tree: Iterable[tuple[Any, Any]], letters: str) -> str:
    """Write a short text that fits a pattern, but for what it looks around for; each repeat at least once."""
    text = ""
    for code, value in tree:
        if code is codes.LITERAL:
            text += chr(value)
        elif code in (codes.NOT_LITERAL, codes.ANY, codes.IN):
            inside = value if code is codes.IN else [(code, value)]
            text += _letter(inside, letters)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, repeated = value
            if most:
                text += max(1, min(least, 60)) * _sample(repeated, letters)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            continue
        else:
            parts = _parts(code, value)
            text += _sample(parts[0], letters) if parts else ""
    return text


def _letter(inside: Sequence[tuple[Any, Any]], letters: str) -> str:
    """Choose a letter of a class: a usual one, or one that the pattern names, or of a range of it."""
    ranges = "".join(chr(value[0]) for code, value in inside if code is codes.RANGE)
    for letter in (*USUAL_LETTERS, *letters, *ranges):
        if _is_in(letter, inside):
            return letter
    return ""


def _is_in(letter: str, inside: Sequence[tuple[Any, Any]]) -> bool:
    """Return whether a letter is in a class."""
    is_negated = bool(inside) and inside[0][0] is codes.NEGATE
    for code, value in inside:
        fits = (
            (code is codes.LITERAL and ord(letter) == value)
            or (code is codes.NOT_LITERAL and ord(letter) != value)
            or (code is codes.ANY and letter != "\n")
            or (code is codes.RANGE and value[0] <= ord(letter) <= value[1])
            or (code is codes.CATEGORY and _is_of(letter, value))
        )
        if fits:
            return not is_negated
    return is_negated


def _is_of(letter: str, category: Any) -> bool:
    """Return whether a letter is a digit, blank or word, or is none."""
    kinds = {"DIGIT": letter.isdigit(), "SPACE": letter.isspace(), "WORD": letter.isalnum() or letter == "_"}
    name = str(category).removeprefix("CATEGORY_").removeprefix("UNI_")
    return not kinds[name.removeprefix("NOT_")] if name.startswith("NOT_") else kinds[name]
