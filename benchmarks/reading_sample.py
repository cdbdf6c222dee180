"""Draw functions and tests of a room for somebody to read who has not seen them, and to rate from 1 to 5.

Nothing is chosen by hand: the seed decides. Functions of three lines and fewer are left out, as nothing in
them can be hard; a method counts as a function, and so does a test, of a folder of tests. With `--before`
as many functions of an earlier commit stand among them, in an order of chance, so that a reader does not know
which is which; `--key` says it afterwards.

    python benchmarks/reading_sample.py --room obygaze_studies/obygaze12 [MORE ...] --seed 7 [--number 10]
        [--without FOLDER ...] [--before COMMIT] [--key]
"""

import ast
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import arguments

ROOT = Path(__file__).resolve().parents[1]
MIN_LINES = 4


@dataclass(frozen=True)
class Passage:
    """A function to read.

    Attributes
    ----------
    module
        Path of its file in the checkout.
    name
        With the name of its class.
    text
        Its lines, with its decorators.
    revision
        Commit that it is read from; "" for the checkout.
    """

    module: str
    name: str
    text: str
    revision: str = ""


def passages(module: str, source: str, revision: str = "") -> list[Passage]:
    """List the functions of a module, and the methods of its classes."""
    functions = []
    lines = source.splitlines()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.FunctionDef):
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                text = "\n".join(lines[first - 1 : child.end_lineno])
                if text.count("\n") + 1 >= MIN_LINES:
                    functions.append(Passage(module, f"{prefix}{child.name}", text, revision))

    visit(ast.parse(source), "")
    return functions


def modules_of(rooms: Sequence[str], without: Sequence[str], revision: str = "") -> list[str]:
    """List the Python files of rooms, which are folders or modules, in the checkout or at a commit."""
    command = ["git", "ls-tree", "-r", "--name-only", revision] if revision else ["git", "ls-files"]
    listing = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    return [
        module
        for module in sorted(listing.splitlines())
        if module.endswith(".py") and _is_in(module, rooms) and not _is_in(module, without)
    ]


def _is_in(module: str, rooms: Sequence[str]) -> bool:
    return any(module == room or module.startswith(f"{room}/") for room in rooms)


def source_at(revision: str, module: str) -> str:
    """Read a module at a commit."""
    command = ["git", "show", f"{revision}:{module}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout


def main() -> None:
    """Print the sample."""
    options = arguments(__doc__, room=[""], without=[""], seed=0, number=10, before="", key=False)
    for room in options.room:
        if not room or not (ROOT / room).exists():
            sys.exit(f"{room!r}: no folder or module of the checkout")
    draw = random.Random(options.seed)
    now = []
    for module in modules_of(options.room, options.without):
        now += passages(module, (ROOT / module).read_text(encoding="utf-8"))
    sample = draw.sample(now, min(options.number, len(now)))
    if options.before:
        earlier = []
        for module in modules_of(options.room, options.without, options.before):
            earlier += passages(module, source_at(options.before, module), options.before)
        sample += draw.sample(earlier, min(options.number, len(earlier)))
    draw.shuffle(sample)
    for number, passage in enumerate(sample, start=1):
        if options.key:
            print(f"{number:3} {passage.module}: {passage.name} {passage.revision}")
        else:
            print(f"\n{'-' * 20} {number}\n{passage.text}")


if __name__ == "__main__":
    main()
