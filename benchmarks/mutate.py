"""Change single expressions of the code, and see whether the tests notice: a sampled mutation run.

One place of a function is changed at a time: a comparison, an operator, a constant, a condition, a call left
out, a result. For each change those tests run that call the function: first those that run the changed line,
the quickest before others. The run ends with the first that fails. What survives is printed with its place
and with what the function is for, which is what a user would lose: a test kills it, or a row of
`mutants_argued.csv` says why it changes nothing.

The packages are imported and the tests collected once. Every change is then made in a fork of that process,
in the function's code alone, so that a change costs what its tests cost. Constants of modules and defaults
are not changed. Which tests run which of the changed places is traced first, in the rooms that changes were
drawn from: the functions to be changed note there that they run, which costs nothing elsewhere.

    python benchmarks/mutate.py [--room PACKAGE] [--since COMMIT] [--number 120] [--seed 0] [--most 0.05]
        [--only MODULE:LINE:COLUMN...] [--calls calls.json]

`--room` takes a package or module of `TESTS`, or the beginning of some; by default all are changed.
`--since` changes only lines that are new since a commit. `--calls` keeps the trace, or reads it where it is;
it fits the changes that it was made for.
The exit code is 1 where more than the share `--most` survives.
"""

import ast
import builtins
import copy
import csv
import importlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from measure import arguments

ROOT = Path(__file__).resolve().parents[1]
ARGUED = Path(__file__).with_name("mutants_argued.csv")
"""Changes that no test can see, each with the reason."""
CLI = ["tests/cli", "tests/test_documented_commands.py"]
TESTS = {
    "obygaze/": [*CLI, "tests/demo"],
    "obygaze_features/untrusted": ["tests/test_untrusted.py"],
    "obygaze_features/io": ["tests/test_io.py", "tests/store"],
    "obygaze_features/manifest": [
        "tests/manifest",
        "tests/cli",
        "tests/film",
        "tests/test_every_door.py",
        "tests/evaluation/test_staging.py",
    ],
    "obygaze_features/text_records": ["tests/manifest", "tests/test_text.py"],
    "obygaze_features/workbook": ["tests/manifest"],
    "obygaze_features/video": ["tests/video", "tests/extraction"],
    "obygaze_features/backbones": ["tests/backbones", "tests/extraction"],
    "obygaze_features/extraction": ["tests/extraction"],
    "obygaze_features/store": [
        "tests/store",
        "tests/exchange",
        "tests/test_cosines.py",
        "tests/test_loading.py",
    ],
    "obygaze_features/exchange": ["tests/exchange"],
    "obygaze_features/commands": CLI,
    "obygaze_models/models": ["tests/models"],
    "obygaze_models/concepts": ["tests/concepts"],
    "obygaze_models/dataset": ["tests/test_dataset.py", "tests/evaluation", "tests/models"],
    "obygaze_models/protocol": ["tests/protocol"],
    "obygaze_models/evaluation": ["tests/evaluation"],
    "obygaze_models/persistence": [
        "tests/persistence",
        "tests/joint",
        "tests/prediction",
        "tests/test_untrusted.py",
    ],
    "obygaze_models/joint": ["tests/joint", "tests/test_every_door.py"],
    "obygaze_models/prediction": ["tests/prediction"],
    "obygaze_models/report": ["tests/report", "tests/models/test_report.py", "tests/evaluation"],
    "obygaze_models/commands": [*CLI, "tests/evaluation"],
    "obygaze_film": ["tests/film", *CLI],
    "obygaze_studies": ["tests/studies", *CLI],
}
"""Packages and modules that are changed, and their tests."""
EXAMPLES = "tests/test_docstrings.py"
"""Runs the examples in the docstrings of all packages."""
PYTEST = ["-q", "-s", "-p", "no:cacheprovider", "-m", "not nightly"]
LONG_TESTS = (
    "tests/backbones",
    "tests/cli/test_commands",
    "tests/concepts",
    "tests/demo",
    "tests/evaluation",
    "tests/film/test_",
    "tests/joint",
    "tests/manifest",
    "tests/models",
    "tests/persistence",
    "tests/prediction",
    "tests/report",
    "tests/studies",
)
"""Beginnings of the names of tests that run although they are long: they compute for seconds.

Long tests of other folders kill processes, or wait for servers, browsers and clusters."""
NOTE = "_note_of_mutants"
"""Name of a built-in function, while tests are traced, that is told what runs."""
BUDGET_S = 10
WALL_S = 300
"""CPU seconds, by the trace, of the tests of a change; seconds of waiting, as for a pipe, before it counts as
killed."""

PAIRS = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot))
COMPARISONS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
}


@dataclass(frozen=True)
class Mutant:
    """A change: module, place, what it is; first line of the function, and of the outermost around it."""

    module: str
    line: int
    column: int
    what: str
    function: int
    outer: int

    @property
    def place(self) -> str:
        """Where it is, as `--only` takes it."""
        return f"{self.module}:{self.line}:{self.column}"

    @property
    def text(self) -> str:
        """The line that it is in."""
        return (ROOT / self.module).read_text(encoding="utf-8").splitlines()[self.line - 1].strip()

    @property
    def purpose(self) -> str:
        """What its function is for: the first line of its docstring, or the function's own first line."""
        lines = (ROOT / self.module).read_text(encoding="utf-8").splitlines()[self.function - 1 :]
        heads = [line.strip() for line in lines[:40] if line.lstrip().startswith(("def ", '"""'))]
        return next((head.strip('"') for head in heads if head.startswith('"""')), heads[0])


def changed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a node may be changed to, and say it."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in COMPARISONS:
            opposite = COMPARISONS[type(op)]
            yield (
                f"{type(op).__name__} -> {opposite.__name__}",
                ast.Compare(left, [opposite()], right),
            )
        case ast.BinOp(op=op) if type(op) in OPERATORS and not _is_text(node):
            opposite = OPERATORS[type(op)]
            yield f"{type(op).__name__} -> {opposite.__name__}", ast.BinOp(node.left, opposite(), node.right)
        case ast.BoolOp(op=op):
            opposite = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"{type(op).__name__} -> {opposite.__name__}", ast.BoolOp(opposite(), node.values)
        case ast.Constant(value=bool(value)):
            yield f"{value} -> {not value}", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield f"{value} -> {value + 1}", ast.Constant(value + 1)
        case ast.Return(value=ast.Constant(value=None | False)):
            return  # nobody could tell None from it
        case ast.Return(value=ast.expr()):
            yield "None returned", ast.Return(ast.Constant(None))
        case _:
            yield from _without(node)


def _without(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what is left of a node without a rule or a step, and say it."""
    match node:
        case ast.UnaryOp(op=ast.Not()):
            yield "not left out", node.operand
        case ast.Expr(value=ast.Call()):
            yield "call left out", ast.Pass()
        case ast.AugAssign():
            yield "step left out", ast.Pass()
        case ast.If(body=body, orelse=orelse):
            yield "rule left out", ast.If(ast.Constant(False), body, orelse)
        case ast.IfExp(orelse=orelse):
            yield "rule left out", orelse
        case (
            ast.ListComp(generators=[one])
            | ast.SetComp(generators=[one])
            | ast.GeneratorExp(generators=[one])
        ) if one.ifs:
            copied = copy.copy(node)
            copied.generators = [ast.comprehension(one.target, one.iter, [], 0)]
            yield "filter left out", copied


def _parts_to_change(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node in which changes are looked for.

    Those are no messages, annotations, decorators and defaults; nor what no test can see: `strict`, by which
    lists are asserted to be as long as each other, and the arguments of `reshape`, where any negative length
    is the one that follows from the others.
    """
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return
    is_reshape = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reshape"
    )
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        if is_reshape and name == "args":
            continue
        for below in value if isinstance(value, list) else [value]:
            if isinstance(below, ast.AST):
                yield below


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", 0), str)
        for side in (node.left, node.right)
    )


def mutants(module: str) -> list[Mutant]:
    """List every change of a module's functions, except in annotations, decorators, defaults and messages."""
    mutants_found: list[Mutant] = []

    def visit(node: ast.AST, function: int, outer: int) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = (node.decorator_list[0] if node.decorator_list else node).lineno
            outer = outer or function
        left_out = isinstance(node, ast.Raise | ast.JoinedStr | ast.AnnAssign)
        if function and not left_out:
            for change, _ in changed(node):
                mutants_found.append(Mutant(module, node.lineno, node.col_offset, change, function, outer))
        for below in _parts_to_change(node):
            visit(below, function, outer)

    visit(ast.parse((ROOT / module).read_text(encoding="utf-8")), 0, 0)
    return mutants_found


def mutated(mutant: Mutant) -> CodeType:
    """Compile the changed function."""

    class Change(ast.NodeTransformer):
        done = False

        def visit(self, node: ast.AST) -> ast.AST:
            at = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
            if not self.done and at == (mutant.line, mutant.column):
                for what, replacement in changed(node):
                    if what == mutant.what:
                        self.done = True
                        return ast.copy_location(copy.deepcopy(replacement), node)
            return self.generic_visit(node)

    change = Change()
    tree = change.visit(_tree_of(mutant.module))
    assert change.done, mutant
    return _compiled_function(tree, mutant.module, mutant.outer)


def noting(chosen: Sequence[Mutant]) -> CodeType:
    """Compile the outermost function that changes were drawn in, so that it notes what runs.

    It calls `NOTE` with the place of a change and "place" before what would be changed runs, and with
    "function" at the beginning of the function around it.
    """

    def call_of_note(mutant: Mutant, what: str) -> ast.Call:
        return ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(mutant.place), ast.Constant(what)], [])

    class Noting(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if isinstance(node, ast.pattern):  # no expression can be put in there
                return node
            at = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
            possible = {what for what, _ in changed(node)}
            notes = [
                call_of_note(mutant, "place")
                for mutant in chosen
                if (mutant.line, mutant.column) == at and mutant.what in possible
            ]
            visited = self.generic_visit(node)
            if isinstance(visited, ast.FunctionDef | ast.AsyncFunctionDef):
                self._note_function(visited)
            if not notes:
                return visited
            if isinstance(visited, ast.stmt):
                return [*map(ast.Expr, notes), visited]
            noted_then_value = ast.Tuple([*notes, visited], ast.Load())
            return ast.Subscript(noted_then_value, ast.Constant(len(notes)), ast.Load())

        def _note_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
            first_line = min([function.lineno, *(each.lineno for each in function.decorator_list)])
            function.body[:0] = [
                ast.Expr(call_of_note(mutant, "function"))
                for mutant in chosen
                if mutant.function == first_line
            ]

    module = chosen[0].module
    return _compiled_function(Noting().visit(_tree_of(module)), module, chosen[0].outer)


def _tree_of(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text(encoding="utf-8"))


def _compiled_function(tree: ast.AST, module: str, first_line: int) -> CodeType:
    """Compile a changed module, and find the code of the function that begins in a line."""
    waiting = [compile(ast.fix_missing_locations(tree), str(ROOT / module), "exec")]  # type: ignore[arg-type]
    for code in waiting:
        if code.co_firstlineno == first_line and code.co_name not in ("<module>", "<lambda>"):
            return code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    raise AssertionError(f"{module}:{first_line}: there is no function")


def put(code: CodeType, module_path: str) -> None:
    """Change the function where it lives, in this process."""
    module = importlib.import_module(
        module_path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    )
    spaces: list[Any] = [module, *(each for each in vars(module).values() if isinstance(each, type))]
    for space in spaces:
        for value in list(vars(space).values()):
            for function in _functions(value):
                known = function.__code__
                if (known.co_filename, known.co_firstlineno) == (code.co_filename, code.co_firstlineno):
                    function.__code__ = code
                    return
    raise AssertionError(f"{module_path}:{code.co_firstlineno}: the function was not found")


def _functions(value: object) -> Iterator[FunctionType]:
    """Yield the functions that a value is made of: of methods, properties, commands, what is decorated."""
    if isinstance(value, FunctionType):
        yield value
    for name in ("__wrapped__", "__func__", "func", "fget", "callback"):
        below = getattr(value, name, None) if not isinstance(value, type) else None
        if below is not None:
            yield from _functions(below)


class QuickTests:
    """A plugin of pytest that leaves out long tests, except those in `LONG_TESTS`."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave them out."""
        items[:] = [
            item
            for item in items
            if item.get_closest_marker("long") is None or item.nodeid.startswith(LONG_TESTS)
        ]


class Calls:
    """A plugin of pytest that notes which changed places each test runs, and how long it takes.

    A fixture that several tests share runs in the first of them alone; what it runs counts for all of them.

    Attributes
    ----------
    functions
        Test -> the changes whose functions it calls, by their places.
    places
        Test -> the changes whose places it runs.
    seconds
        Test -> its CPU seconds, without those of the fixtures that it shares.
    shared
        Test -> the fixtures that it shares, each with the CPU seconds of its setup.
    """

    def __init__(self, chosen: Sequence[Mutant]) -> None:
        self._chosen = chosen
        self._now = _Seen()
        self._of_fixtures: dict[str, _Seen] = {}
        self.functions: dict[str, list[str]] = {}
        self.places: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        self.shared: dict[str, dict[str, float]] = {}

    def pytest_collection_finish(self) -> None:
        """Put functions that note what runs in place of those that changes were drawn from."""
        by_function: dict[tuple[str, int], list[Mutant]] = {}
        for mutant in self._chosen:
            by_function.setdefault((mutant.module, mutant.outer), []).append(mutant)

        def note(place: str, what: str) -> None:
            seen = self._now.places if what == "place" else self._now.functions
            seen.add(place)

        setattr(builtins, NOTE, note)
        for (module, _), mutants_of_function in by_function.items():
            put(noting(mutants_of_function), module)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Note what the setup of a shared fixture calls."""
        if fixturedef.scope == "function":
            yield
            return
        around = self._now
        self._now = _Seen()
        begin = time.process_time()
        yield
        seen = self._of_fixtures.setdefault(_name(fixturedef), _Seen())
        seen.add(self._now)
        around.fixtures_s += time.process_time() - begin
        seen.seconds = max(seen.seconds, time.process_time() - begin - self._now.fixtures_s)
        self._now = around

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note what a test runs."""
        _forget_kept_results()
        self._now = _Seen()
        begin = time.process_time()
        yield
        self.seconds[item.nodeid] = time.process_time() - begin - self._now.fixtures_s
        shared = {}
        for definitions in getattr(item, "_fixtureinfo").name2fixturedefs.values():  # noqa: B009 - private
            for fixture in map(_name, definitions):
                if fixture in self._of_fixtures:
                    self._now.add(self._of_fixtures[fixture])
                    shared[fixture] = self._of_fixtures[fixture].seconds
        self.shared[item.nodeid] = shared
        # A test that failed is there already, without any.
        self.functions.setdefault(item.nodeid, sorted(self._now.functions))
        self.places[item.nodeid] = sorted(self._now.places)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that need the worker: they fail without a change."""
        if report.failed:
            self.functions[report.nodeid] = []


@dataclass
class _Seen:
    """Changes whose functions and places ran, CPU seconds, and those of shared fixtures within them."""

    functions: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    seconds: float = 0.0
    fixtures_s: float = 0.0

    def add(self, other: "_Seen") -> None:
        self.functions |= other.functions
        self.places |= other.places


def _name(fixture: Any) -> str:
    return f"{fixture.baseid}:{fixture.argname}"


def _forget_kept_results() -> None:
    """Clear the caches of functions, so that every test that needs their results calls them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("obygaze"):
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def read_here() -> None:
    """Let importers read in this process: in a worker they are neither traced nor changed."""
    from obygaze_features.exchange import import_arrays, import_hdf5, import_items, import_tables, row_ids

    in_worker = import_items.read_in_worker

    def here(library: str, reader: Any, path: Path, *words: Any) -> Any:
        # A test's own reader crashes.
        is_ours = reader.__module__.startswith("obygaze")
        return reader(path, *words) if is_ours else in_worker(library, reader, path, *words)

    for module in (import_arrays, import_hdf5, import_tables, row_ids):
        if "read_in_worker" in vars(module):
            module.read_in_worker = here  # type: ignore[attr-defined,assignment]


class Trials:
    """A plugin of pytest that runs the tests of every change in a fork, in place of all tests once.

    Attributes
    ----------
    survivors
        Changes that no test noticed, and that are not argued.
    counts
        How many changes had which result.
    """

    def __init__(self, chosen: Sequence[Mutant], calls: Path) -> None:
        self._chosen = chosen
        noted = json.loads(calls.read_text(encoding="utf-8"))
        self._functions = noted["functions"]
        self._places = noted["places"]
        self._seconds = noted["seconds"]
        self._shared = noted["shared"]
        self._argued = read_argued()
        self._out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
        self.survivors: list[Mutant] = []
        self.counts = {"killed": 0, "survived": 0, "argued": 0, "in no test": 0}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try every change."""
        items = {item.nodeid: item for item in session.items}
        for mutant in self._chosen:
            tests = [items[test] for test in self._covering(mutant, items)]
            result = self._result(mutant, tests)
            self.counts[result] += 1
            self._out.write(f"{result}: {mutant.place} {mutant.what}: {mutant.text} ({len(tests)} tests)\n")
        for mutant in self.survivors:
            self._out.write(f"{mutant.place} {mutant.what}: {mutant.text}\n    lost: {mutant.purpose}\n")
        self._out.write(f"{self.counts}\n")
        return True

    def _result(self, mutant: Mutant, tests: Sequence[pytest.Item]) -> str:
        if tests and self._fails(mutant, tests):
            return "killed"
        if (mutant.module, mutant.text, mutant.what) in self._argued:
            return "argued"
        self.survivors.append(mutant)
        return "survived" if tests else "in no test"

    def _covering(self, mutant: Mutant, items: Mapping[str, pytest.Item]) -> list[str]:
        """List tests that call the changed function: first those that run the place; each kind by time."""
        calling = [test for test, places in self._functions.items() if mutant.place in places]
        tests = [test for test in calling if test in items]
        tests.sort(key=lambda test: (mutant.place not in self._places[test], self._cost(test, {})))
        chosen: list[str] = []
        paid: dict[str, float] = {}
        spent = 0.0
        for test in tests:
            spent += self._cost(test, paid)
            if chosen and spent > BUDGET_S:
                break
            chosen.append(test)
            paid |= self._shared[test]
        return chosen

    def _cost(self, test: str, paid: Mapping[str, float]) -> float:
        """Return the CPU seconds of a test, with those of shared fixtures that are not set up yet."""
        fixtures_s = sum(seconds for name, seconds in self._shared[test].items() if name not in paid)
        return float(self._seconds[test]) + fixtures_s

    def _fails(self, mutant: Mutant, tests: Sequence[pytest.Item]) -> bool:
        child = os.fork()
        if not child:
            code = 2
            try:
                for stream in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
                limit = 4 * max(BUDGET_S, round(self._cost(tests[0].nodeid, {})))
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
                signal.alarm(WALL_S)
                put(mutated(mutant), mutant.module)
                following = [*tests[1:], None]
                code = 0
                for item, then in zip(tests, following, strict=True):
                    reports = runtestprotocol(item, nextitem=then, log=False)
                    if any(report.failed for report in reports):
                        code = 1
                        break
            finally:
                os._exit(code)  # with all that this process has open
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 2:
            raise AssertionError(mutant)
        return status != 0


def read_argued() -> set[tuple[str, str, str]]:
    """Read which changes are argued: module, line, and what is changed."""
    with ARGUED.open(encoding="utf-8", newline="") as file:
        return {(row["module"], row["line"], row["change"]) for row in csv.DictReader(file)}


def new_lines(commit: str) -> dict[str, set[int]]:
    """Find the lines of each module that are new since a commit."""
    command = ["git", "diff", "--unified=0", "--no-color", "--no-renames", commit, "--", "*.py"]
    changes = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    lines: dict[str, set[int]] = {}
    module = ""
    for line in changes.splitlines():
        if line.startswith("+++ "):
            module = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(hunk[1])
            n_lines = int(hunk[2] or 1)
            lines.setdefault(module, set()).update(range(first, first + n_lines))
    return lines


def trace(words: Sequence[str], calls: Path, chosen: Sequence[Mutant]) -> None:
    """Note in a process of its own which tests run which changed places."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    plugin = Calls(chosen)
    pytest.main([*words], [QuickTests(), plugin])
    noted = {
        "functions": plugin.functions,
        "places": plugin.places,
        "seconds": plugin.seconds,
        "shared": plugin.shared,
    }
    calls.write_text(json.dumps(noted), encoding="utf-8")
    os._exit(0)


def main() -> None:
    """Sample changes, try them, print what survives."""
    options = arguments(__doc__, calls=Path(), room="", since="", number=120, seed=0, most=0.05, only=[""])
    os.chdir(ROOT)
    read_here()
    rooms = [room for room in TESTS if room.startswith(options.room)]
    if not rooms:
        sys.exit(f"{options.room}: no room; there is {', '.join(TESTS)}")
    paths = [path for room in rooms for path in (*sorted((ROOT / room).rglob("*.py")), ROOT / f"{room}.py")]
    modules = [str(path.relative_to(ROOT)) for path in paths if path.is_file()]
    possible = [mutant for module in modules for mutant in mutants(module)]
    if options.since:
        new = new_lines(options.since)
        possible = [mutant for mutant in possible if mutant.line in new.get(mutant.module, ())]
    chosen = random.Random(options.seed).sample(possible, min(options.number, len(possible)))
    if options.only != [""]:
        chosen = [mutant for mutant in possible if mutant.place in options.only]
    print(f"{len(chosen)} of {len(possible)} possible changes")
    if not chosen:
        return
    folders: set[str] = set()
    for room in rooms:
        if any(mutant.module.startswith(room) for mutant in chosen):
            folders.update(TESTS[room])
    words = [*PYTEST, *sorted(folders), EXAMPLES]
    with tempfile.TemporaryDirectory() as temporary:
        calls = options.calls.absolute() if options.calls.name else Path(temporary) / "calls.json"
        if not calls.is_file():
            trace(words, calls, chosen)
        trials = Trials(chosen, calls)
        pytest.main(words, [QuickTests(), trials])
    sys.exit(len(trials.survivors) > options.most * len(chosen))


if __name__ == "__main__":
    main()
