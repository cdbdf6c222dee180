"""Name the thousand classes of ImageNet, in the order in which classifiers give them.

The names are those in OpenCLIP (Radford et al. 2021 made them clear and distinct); they are read from its
file, which is not run.
"""

import ast
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from obygaze_features.untrusted import read_text

PACKAGE = "open_clip"
FILE = "zero_shot_metadata.py"
VARIABLE = "IMAGENET_CLASSNAMES"
"""Package, its file, and the variable in that file which holds the names."""
N_CLASSES = 1000
"""Names that the list must have."""


def imagenet_classes() -> tuple[str, ...] | None:
    """Return the names of the 1000 ImageNet classes; None if OpenCLIP is not installed, or has no such list.

    If two classes have the same name, the second is called `NAME (2)`, so that every name is unique. The
    names are read from a source file of OpenCLIP, because importing the package is slow.
    """
    spec = find_spec(PACKAGE)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        path = Path(folder, FILE)
        if path.is_file():
            return _names_in(path)
    return None


def _names_in(path: Path) -> tuple[str, ...] | None:
    """Read the names of the 1000 ImageNet classes from a Python file without running it.

    Returns None if the file does not assign a list of as many names to the variable `VARIABLE`.
    """
    for statement in ast.parse(read_text(path)).body:
        if not isinstance(statement, ast.Assign):
            continue
        assigned_names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        if VARIABLE not in assigned_names:
            continue
        names = ast.literal_eval(statement.value)
        is_complete = len(names) == N_CLASSES and all(isinstance(name, str) for name in names)
        return unique_names(names) if is_complete else None
    return None


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Make names of classes unique: add a number to every name that occurred before.

    The second `crane` is called `crane (2)`; or `crane (3)`, if a class before it has the name `crane (2)`.
    """
    distinct_names: dict[str, None] = {}  # a set that keeps the order
    last_numbers: Counter[str] = Counter()  # name -> number that its last occurrence got
    for name in names:
        last_numbers[name] += 1
        distinct_name = name if last_numbers[name] == 1 else f"{name} ({last_numbers[name]})"
        while distinct_name in distinct_names:
            last_numbers[name] += 1
            distinct_name = f"{name} ({last_numbers[name]})"
        distinct_names[distinct_name] = None
    return tuple(distinct_names)
