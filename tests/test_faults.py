"""Faults planted into commands are found by the type checker: five kinds, in each group of commands."""

import ast
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.process import python

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")

PLANTED = """
renamed   obygaze_features/commands/store_exchange.py import_ source
retyped   obygaze_features/commands/store_exchange.py import_ declared
default   obygaze_features/commands/store_exchange.py import_ version
misspelt  obygaze_features/commands/store_exchange.py import_ array
optional  obygaze_features/commands/store_exchange.py import_ licence

renamed   obygaze_features/commands/extract_command.py extract corpus
retyped   obygaze_features/commands/extract_command.py extract limit
default   obygaze_features/commands/extract_command.py extract decoder
misspelt  obygaze_features/commands/extract_command.py extract engine
optional  obygaze_features/commands/extract_command.py extract manifest

renamed   obygaze_features/commands/manifest_film.py film hop
retyped   obygaze_features/commands/manifest_film.py film model
default   obygaze_features/commands/manifest_film.py film shots
optional  obygaze_features/commands/manifest_inspect.py project annotations

renamed   obygaze_models/commands/evaluate_commands.py evaluate reduce
retyped   obygaze_models/commands/evaluate_commands.py evaluate refits
default   obygaze_models/commands/evaluate_commands.py evaluate seed
misspelt  obygaze_models/commands/evaluate_commands.py evaluate imbalance
optional  obygaze_models/commands/evaluate_commands.py evaluate manifest

renamed   obygaze_models/commands/unit_commands.py units labels
retyped   obygaze_models/commands/unit_commands.py units texts
default   obygaze_models/commands/unit_commands.py units seed
misspelt  obygaze_models/commands/unit_commands.py units features
optional  obygaze_models/commands/unit_commands.py units out

renamed   obygaze_studies/commands/audit_commands.py words lists
retyped   obygaze_studies/commands/audit_commands.py words texts
default   obygaze_studies/commands/audit_commands.py words min_total
misspelt  obygaze_studies/commands/audit_commands.py eat variant
optional  obygaze_studies/commands/audit_commands.py words items

renamed   obygaze_studies/commands/paper_commands.py figure4 segments
retyped   obygaze_studies/commands/paper_commands.py figure4 span
default   obygaze_studies/commands/paper_commands.py all_ seed
misspelt  obygaze_studies/commands/paper_commands.py all_ policy
optional  obygaze_studies/commands/paper_commands.py figure4 movie

renamed   obygaze_studies/commands/mediaeval15_commands.py train backbone
retyped   obygaze_studies/commands/mediaeval15_commands.py labels pivots
default   obygaze_studies/commands/mediaeval15_commands.py train seed
misspelt  obygaze_studies/commands/folds_command.py folds protocol
optional  obygaze_studies/commands/mediaeval15_commands.py train run

renamed   obygaze_film/commands/film_judgements.py compare trend
retyped   obygaze_film/commands/film_judgements.py learn key
default   obygaze_film/commands/film_output.py report top
misspelt  obygaze_film/commands/film_output.py report language
optional  obygaze_film/commands/film_score.py evaluate truth

renamed   obygaze/film_run.py run hop
retyped   obygaze/film_run.py run workers
default   obygaze/film_run.py run window
misspelt  obygaze/film_run.py run language
optional  obygaze/film_run.py run out
"""
"""Kind of fault, file, command's function, option; a group of commands a block (manifest has no choices)."""


class Fault(NamedTuple):
    """A fault of an option of a command.

    Kinds: `renamed` without its use; `retyped`; with a `default` of another type, or a `misspelt` choice as
    its default; `optional` though it is needed.
    """

    kind: str
    file: str
    function: str
    option: str


class Parameter(NamedTuple):
    """A parameter of a signature, as it is parsed."""

    argument: ast.arg
    default: ast.expr | None
    is_option: bool


def command(source: str, name: str) -> ast.FunctionDef:
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return next(function for function in functions if function.name == name)


def parameter(source: str, fault: Fault) -> Parameter:
    arguments = command(source, fault.function).args
    result = [Parameter(argument, None, is_option=False) for argument in arguments.args]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        result.append(Parameter(argument, default, is_option=True))
    return next(each for each in result if each.argument.arg == fault.option)


def with_text(source: str, node: ast.expr | ast.arg, text: str) -> str:
    """Write a text in place of a node; columns count bytes."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()


def plant(source: str, fault: Fault) -> str:
    argument, default, is_option = parameter(source, fault)
    text = ast.get_source_segment(source, argument)
    if fault.kind == "renamed":
        return with_text(source, argument, text.replace(fault.option, f"{fault.option}_renamed", 1))
    if fault.kind == "retyped":
        declared_type = argument.annotation.slice.elts[0]
        new_type = "bytes | None" if "None" in ast.unparse(declared_type) else "bytes"
        return with_text(source, declared_type, new_type)
    if fault.kind == "default":
        return with_text(source, default, 'b"bytes"')
    if fault.kind == "misspelt":
        return with_text(source, default, '"misspelt"')
    assert default is None, "it is needed"
    return with_text(source, argument, f"{text} | None = None" if is_option else f"{text} | None")


FAULTS = [Fault(*line.split()) for line in PLANTED.splitlines() if line]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the packages with all faults planted."""
    folder = tmp_path_factory.mktemp("checkout")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for fault in FAULTS:
        path = folder / fault.file
        path.write_text(plant(path.read_text(encoding="utf-8"), fault), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def errors(checkout):
    """What mypy says of the copy: (file, line, message). It starts from the checkout's cache, if there is."""
    pytest.importorskip("mypy")
    if (ROOT / ".mypy_cache").is_dir():
        shutil.copytree(ROOT / ".mypy_cache", checkout / ".mypy_cache")
    ended = python("-m", "mypy", cwd=checkout, code=1)
    result = re.findall(r"^(\S+?):(\d+): error: (.*)$", ended.stdout, re.MULTILINE)
    return [(file, int(line), message) for file, line, message in result]


SAYS = {
    "renamed": 'Name "{option}" is not defined',
    "retyped": "bytes",
    "default": 'Incompatible default for parameter "{option}"',
    "misspelt": 'Incompatible default for parameter "{option}"',
    "optional": "None",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind} {fault.function} {fault.option}")
def test_a_fault_is_found_where_it_is(fault, checkout, errors):
    function = command((checkout / fault.file).read_text(encoding="utf-8"), fault.function)
    is_of_signature = fault.kind in {"default", "misspelt"}
    first = function.lineno if is_of_signature else function.body[0].lineno
    last = function.body[0].lineno if is_of_signature else function.end_lineno
    here = [message for file, line, message in errors if file == fault.file and first <= line <= last]
    words = SAYS[fault.kind].format(option=fault.option)
    assert any(words in message for message in here), here


def test_nothing_else_is_found(errors):
    assert {file for file, _, _ in errors} == {fault.file for fault in FAULTS}
