"""Change single expressions of the code, and see whether the tests notice: a sampled mutation run.

A copy of the checkout is changed, one place at a time: a comparison, an operator, a constant, a condition, a
call left out. For each change those tests run that call the changed function, the quickest first; the run
ends with the first that fails. What survives is printed with its place, to be killed by a test or explained.

    python benchmarks/mutate.py [--number 150] [--seed 0] [--only MODULE:LINE:COLUMN]
"""

import argparse
import ast
import copy
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = {
    "obygaze_features/store": ["tests/store"],
    "obygaze_features/exchange": ["tests/exchange"],
    "obygaze_models/models": ["tests/models"],
    "obygaze_models/evaluation": ["tests/evaluation"],
}
"""Packages that are changed, and their tests."""
HEAVY = (
    *("numpy.testing", "numpy.random", "pandas", "zarr", "h5py", "scipy.optimize", "scipy.stats", "click"),
    *("sklearn.linear_model", "sklearn.pipeline", "sklearn.utils.estimator_checks", "msgspec"),
    *("obstore", "numcodecs.zstd", "fastcrc"),
)
"""Imported once, before the forks in which the tests run."""
PYTEST = [
    "-q",
    "-x",
    "-p",
    "no:cacheprovider",
    "-m",
    "not long",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
CPU_S = 90
FEW, MOST = 40, 240
"""Tests that are run first, of one file, and at most: the quickest that call the function."""

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
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
    """A change: the module, the place, what it is, and the first line of the function (0: of none)."""

    module: str
    line: int
    column: int
    what: str
    function: int

    @property
    def place(self) -> str:
        """Where it is, as `--only` takes it."""
        return f"{self.module}:{self.line}:{self.column}"


def changed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a node may be changed to, and say it."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in COMPARISONS:
            other = COMPARISONS[type(op)]
            yield (
                f"{type(op).__name__} -> {other.__name__}",
                ast.Compare(left, [other()], right),
            )
        case ast.BinOp(op=op) if type(op) in OPERATORS and not _is_text(node):
            other = OPERATORS[type(op)]
            yield f"{type(op).__name__} -> {other.__name__}", ast.BinOp(node.left, other(), node.right)
        case ast.BoolOp(op=op):
            other = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"{type(op).__name__} -> {other.__name__}", ast.BoolOp(other(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield "not left out", node.operand
        case ast.Constant(value=bool(value)):
            yield f"{value} -> {not value}", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield f"{value} -> {value + 1}", ast.Constant(value + 1)
        case ast.Expr(value=ast.Call() | ast.Yield()) if isinstance(node.value, ast.Call):
            yield "call left out", ast.Pass()
        case ast.Return(value=ast.expr()):
            yield "None returned", ast.Return(ast.Constant(None))


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", 0), str)
        for side in (node.left, node.right)
    )


def mutants(module: str) -> list[Mutant]:
    """List every change of a module, except in annotations, decorators and messages."""
    found: list[Mutant] = []

    def visit(node: ast.AST, function: int) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.decorator_list[0] if node.decorator_list else node
            function = first.lineno
        if not isinstance(node, ast.Raise | ast.JoinedStr | ast.AnnAssign):
            for what, _ in changed(node):
                found.append(Mutant(module, node.lineno, node.col_offset, what, function))
        for name, value in ast.iter_fields(node):
            skipped = isinstance(node, ast.Raise | ast.JoinedStr) or name in (
                "annotation",
                "returns",
                "decorator_list",
            )
            for below in () if skipped else value if isinstance(value, list) else [value]:
                if isinstance(below, ast.AST):
                    visit(below, function)

    visit(ast.parse((ROOT / module).read_text(encoding="utf-8")), 0)
    return found


def mutated(source: str, mutant: Mutant) -> str:
    """Change a module's source."""

    class Change(ast.NodeTransformer):
        done = False

        def visit(self, node: ast.AST) -> ast.AST:
            at = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
            if not self.done and at == (mutant.line, mutant.column):
                for what, other in changed(node):
                    if what == mutant.what:
                        self.done = True
                        return ast.copy_location(copy.deepcopy(other), node)
            return self.generic_visit(node)

    change = Change()
    tree = change.visit(ast.parse(source))
    assert change.done, mutant
    return ast.unparse(ast.fix_missing_locations(tree))


class Calls:
    """A plugin of pytest that notes which functions each test calls, and how long it takes."""

    def __init__(self, root: Path) -> None:
        self._root, self._codes = f"{root}/obygaze", set[CodeType]()
        self.of: dict[str, list[list[str | int]]] = {}
        self.seconds: dict[str, float] = {}

    def _see(self, frame: FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self._root):
            self._codes.add(code)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note a test's calls."""
        self._codes = set()
        begin = time.process_time()
        threading.settrace(self._see)
        sys.settrace(self._see)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  # as documented
        self.seconds[item.nodeid] = time.process_time() - begin
        self.of[item.nodeid] = [
            [code.co_filename.removeprefix(f"{self._root[: -len('obygaze')]}"), code.co_firstlineno]
            for code in self._codes
        ]


def in_fork(
    copied: Path, words: list[str], plugins: list[object], keep: Path | None = None
) -> tuple[int, str]:
    """Run pytest on the copy, in a fork; give its exit code (-1: out of time) and its output."""
    said = copied / "said.txt"
    child = os.fork()
    if not child:
        code = 99
        try:
            code = _test(copied, said, words, plugins, keep)
        except BaseException:  # noqa: BLE001 - shown by the parent
            said.write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(code)  # with all that this process has open
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return (-1 if code < 0 else code), said.read_text(encoding="utf-8", errors="replace")


def _test(copied: Path, said: Path, words: list[str], plugins: list[object], keep: Path | None) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S if keep is None else 3600, 3600))
    os.chdir(copied)
    sys.path.insert(0, str(copied))
    os.environ["PYTHONPATH"] = str(copied)
    with said.open("w", encoding="utf-8", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        code = int(pytest.main([*PYTEST, *words], plugins))
        if keep is not None:
            calls = plugins[0]
            assert isinstance(calls, Calls)
            keep.write_text(json.dumps([calls.of, calls.seconds]), encoding="utf-8")
    return code


def covering(mutant: Mutant, of: dict[str, list[list[str | int]]], seconds: dict[str, float]) -> list[str]:
    """List the tests that call the changed function; of what is in none, those that call its module."""
    found = [
        test
        for test, calls in of.items()
        if any(file == mutant.module and mutant.function in (0, line) for file, line in calls)
    ]
    return sorted(found, key=lambda test: seconds[test])


def main() -> None:
    """Sample changes, try them, print what survives."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="places, as they are printed")
    parser.add_argument("--calls", type=Path, help="keep here which test calls what, or take it from here")
    asked = parser.parse_args()
    os.environ.setdefault("OBYGAZE_TEST_DATA", str(ROOT.parent / "shared" / "data"))
    with redirect_stderr(io.StringIO()):
        for name in HEAVY:
            __import__(name)
    modules = [str(path.relative_to(ROOT)) for at in TESTS for path in sorted((ROOT / at).rglob("*.py"))]
    every = [mutant for module in modules for mutant in mutants(module)]
    chosen = random.Random(asked.seed).sample(every, min(asked.number, len(every)))
    if asked.only:
        chosen = [mutant for mutant in every if mutant.place in asked.only]
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place).resolve() / "checkout"
        shutil.copytree(ROOT, copied, ignore=shutil.ignore_patterns(".git", ".venv", "site", "__pycache__"))
        kept = asked.calls or Path(place, "calls.json")
        if not kept.is_file():
            words = [folder for some in TESTS.values() for folder in some]
            code, said = in_fork(copied, words, [Calls(copied)], kept)
            print(f"{len(every)} changes possible; the tests unchanged: {said.splitlines()[-1]}", flush=True)
            if code:
                raise SystemExit(said[-3000:])
        of, seconds = json.loads(kept.read_text(encoding="utf-8"))
        counts = {"killed": 0, "survived": 0, "in no test": 0}
        for mutant in chosen:
            tests = covering(mutant, of, seconds)
            path = copied / mutant.module
            good = path.read_text(encoding="utf-8")
            path.write_text(mutated(good, mutant), encoding="utf-8")
            files = Counter(test.partition("::")[0] for test in tests)
            own = max(files, key=files.__getitem__, default="")
            first = [test for test in tests if test.startswith(f"{own}::")][:FEW]
            code, said = in_fork(copied, first, []) if tests else (0, "")
            if code == 0 and (rest := [test for test in tests[:MOST] if test not in first]):
                code, said = in_fork(copied, rest, [])
            path.write_text(good, encoding="utf-8")
            if code > 1 and "error" not in said.lower():
                raise SystemExit(f"{mutant}: pytest ended with {code}\n{said[-2000:]}")
            result = "killed" if code else "survived" if tests else "in no test"
            counts[result] += 1
            line = good.splitlines()[mutant.line - 1].strip()
            print(f"{result}: {mutant.place} {mutant.what}: {line} ({len(tests)} tests)", flush=True)
        print(counts)


if __name__ == "__main__":
    main()
