"""Faults planted into commands are found by the type checker: five kinds, in a command of each package."""

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


class Fault(NamedTuple):
    """A fault of an option of a command.

    Kinds: `renamed` without its use; `retyped`; with a `default` of another type, or a `misspelt` choice as
    its default; `optional` though it is needed.
    """

    kind: str
    file: str
    function: str
    option: str


STORE_IMPORT = "obygaze_features/commands/store_exchange.py"
FAULTS_OF_STORE_IMPORT = [
    Fault("renamed", STORE_IMPORT, "import_", "source"),
    Fault("retyped", STORE_IMPORT, "import_", "declared"),
    Fault("default", STORE_IMPORT, "import_", "version"),
    Fault("misspelt", STORE_IMPORT, "import_", "array"),
    Fault("optional", STORE_IMPORT, "import_", "licence"),
]

EVALUATE = "obygaze_models/commands/evaluate_commands.py"
AUDITS = "obygaze_studies/commands/audit_commands.py"
FILM_JUDGEMENTS = "obygaze_film/commands/film_judgements.py"
FILM_OUTPUT = "obygaze_film/commands/film_output.py"
FILM_SCORE = "obygaze_film/commands/film_score.py"
FILM_RUN = "obygaze/film_run.py"
FAULTS_OF_OTHER_PACKAGES = [
    Fault("renamed", EVALUATE, "evaluate", "reduce"),
    Fault("retyped", EVALUATE, "evaluate", "refits"),
    Fault("default", EVALUATE, "evaluate", "seed"),
    Fault("misspelt", EVALUATE, "evaluate", "imbalance"),
    Fault("optional", EVALUATE, "evaluate", "manifest"),
    Fault("renamed", AUDITS, "words", "lists"),
    Fault("retyped", AUDITS, "words", "texts"),
    Fault("default", AUDITS, "words", "min_total"),
    Fault("misspelt", AUDITS, "eat", "variant"),
    Fault("optional", AUDITS, "words", "items"),
    Fault("renamed", FILM_JUDGEMENTS, "compare", "trend"),
    Fault("retyped", FILM_JUDGEMENTS, "learn", "key"),
    Fault("default", FILM_OUTPUT, "report", "top"),
    Fault("misspelt", FILM_OUTPUT, "report", "language"),
    Fault("optional", FILM_SCORE, "evaluate", "truth"),
    Fault("renamed", FILM_RUN, "run", "hop"),
    Fault("retyped", FILM_RUN, "run", "workers"),
    Fault("default", FILM_RUN, "run", "window"),
    Fault("misspelt", FILM_RUN, "run", "language"),
    Fault("optional", FILM_RUN, "run", "out"),
]


# --- to plant a fault
# ---------------------------------------------------------------------------
class Parameter(NamedTuple):
    """A parameter of a signature, as it is parsed."""

    argument: ast.arg
    default: ast.expr | None
    is_option: bool


def function_called(source: str, name: str) -> ast.FunctionDef:
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return next(function for function in functions if function.name == name)


def parameter_of(source: str, fault: Fault) -> Parameter:
    arguments = function_called(source, fault.function).args
    parameters = [Parameter(argument, default=None, is_option=False) for argument in arguments.args]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(Parameter(argument, default, is_option=True))
    return next(each for each in parameters if each.argument.arg == fault.option)


def with_text(source: str, node: ast.expr | ast.arg, text: str) -> str:
    """Write a text in place of a node; columns count bytes."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()


def with_fault(source: str, fault: Fault) -> str:
    argument, default, is_option = parameter_of(source, fault)
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


# --- to find it
# ---------------------------------------------------------------------------
class Checked(NamedTuple):
    """A copy of the packages with faults, and the errors of mypy: (file, line, message)."""

    folder: Path
    errors: list[tuple[str, int, str]]


def check_with_faults(folder: Path, faults: list[Fault], *words: str) -> Checked:
    """Copy the packages, plant faults and run mypy, with words behind it."""
    pytest.importorskip("mypy")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for fault in faults:
        path = folder / fault.file
        path.write_text(with_fault(path.read_text(encoding="utf-8"), fault), encoding="utf-8")
    if (ROOT / ".mypy_cache").is_dir():
        shutil.copytree(ROOT / ".mypy_cache", folder / ".mypy_cache")
    ended = python("-m", "mypy", *words, cwd=folder, code=1)
    errors = re.findall(r"^(\S+?):(\d+): error: (.*)$", ended.stdout, re.MULTILINE)
    return Checked(folder, [(file, int(line), message) for file, line, message in errors])


def errors_at(checked: Checked, fault: Fault) -> str:
    """Join the errors in the part of the function where a fault is seen: its signature, or its body."""
    source = (checked.folder / fault.file).read_text(encoding="utf-8")
    function = function_called(source, fault.function)
    first_of_body = function.body[0].lineno
    if fault.kind in {"default", "misspelt"}:
        lines = range(function.lineno, first_of_body + 1)
    else:
        lines = range(first_of_body, function.end_lineno + 1)
    return "\n".join(
        message for file, line, message in checked.errors if file == fault.file and line in lines
    )


MESSAGES = {
    "renamed": 'Name "{option}" is not defined',
    "retyped": "bytes",
    "default": 'Incompatible default for parameter "{option}"',
    "misspelt": 'Incompatible default for parameter "{option}"',
    "optional": "None",
}
"""Kind of fault -> what mypy says of it."""


def name_of(fault: Fault) -> str:
    return f"{fault.kind} {fault.function} {fault.option}"


QUICK_CONFIGURATION = """
[tool.mypy]
strict = true
follow_imports = "skip"
ignore_missing_imports = true
disallow_subclassing_any = false

[[tool.mypy.overrides]]
module = ["obygaze_features.*"]
follow_imports = "silent"
"""
"""Checks one file by what it imports of our packages; to read other packages takes most of mypy's time."""


@pytest.fixture(scope="module")
def mypy_of_store_import(tmp_path_factory):
    """What mypy says of the module of `store import` with all of its faults planted."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "quick.toml").write_text(QUICK_CONFIGURATION, encoding="utf-8")
    return check_with_faults(folder, FAULTS_OF_STORE_IMPORT, "--config-file", "quick.toml", STORE_IMPORT)


@pytest.mark.parametrize("fault", FAULTS_OF_STORE_IMPORT, ids=name_of)
def test_a_fault_planted_in_store_import_is_found_by_mypy(fault, mypy_of_store_import):
    """A fault is a change of one option of the command `obygaze store import`, in a copy of its module.

    The option is renamed but not where it is used, or has another type, or a default of another type, or may
    be None. mypy must say so where the fault is seen: in the signature of the function, or in its body.
    MESSAGES has, for each kind of fault, what mypy says of it.
    """
    expected_message = MESSAGES[fault.kind].format(option=fault.option)

    assert expected_message in errors_at(mypy_of_store_import, fault)


@pytest.fixture(scope="module")
def mypy_of_packages(tmp_path_factory):
    """What mypy says of all packages with all faults planted, run as `make types` runs it."""
    return check_with_faults(tmp_path_factory.mktemp("all"), FAULTS_OF_OTHER_PACKAGES)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS_OF_OTHER_PACKAGES, ids=name_of)
def test_a_fault_planted_in_a_command_of_any_package_is_found_by_mypy(fault, mypy_of_packages):
    """A fault is a change of one option of a command, in a copy of all packages.

    The option is renamed but not where it is used, or has another type, or a default of another type, or may
    be None. mypy must say so where the fault is seen: in the signature of the function, or in its body.
    MESSAGES has, for each kind of fault, what mypy says of it.
    """
    expected_message = MESSAGES[fault.kind].format(option=fault.option)

    assert expected_message in errors_at(mypy_of_packages, fault)


@pytest.mark.nightly
def test_mypy_finds_errors_in_no_file_but_those_with_planted_faults(mypy_of_packages):
    """Faults were planted into options of commands, in a copy of all packages, which mypy has checked.

    FAULTS_OF_OTHER_PACKAGES are these faults. mypy has found an error in each file that has one. It has found
    none in any other file: an error there would be of the copy itself, as if a package that it imports were
    missing, and could hide a fault or be taken for one.
    """
    files_with_errors = {file for file, _, _ in mypy_of_packages.errors}
    files_with_faults = {fault.file for fault in FAULTS_OF_OTHER_PACKAGES}

    assert files_with_errors == files_with_faults
