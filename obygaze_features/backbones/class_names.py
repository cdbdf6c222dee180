"""Name the thousand classes of ImageNet, in the order in which classifiers give them.

The names are those that OpenCLIP carries (Radford et al. 2021 made them clear and unlike each other); they
are read from its file, which is not run.
"""

import ast
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from obygaze_features.door import read_text

PACKAGE, FILE, VARIABLE = "open_clip", "zero_shot_metadata.py", "IMAGENET_CLASSNAMES"
N_CLASSES = 1000


def imagenet_classes() -> tuple[str, ...] | None:
    """Read the names of the classes; None where OpenCLIP is not installed, or its file has no such list.

    Of two classes of one name the second is called `NAME (2)`, so that names tell classes apart.
    """
    spec = find_spec(PACKAGE)
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    for place in places:
        path = Path(place, FILE)
        if path.is_file():
            return _listed(path)
    return None


def _listed(path: Path) -> tuple[str, ...] | None:
    """Read the list out of a file of Python."""
    for statement in ast.parse(read_text(path)).body:
        if not isinstance(statement, ast.Assign):
            continue
        targets = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        if VARIABLE in targets:
            names = ast.literal_eval(statement.value)
            is_whole = len(names) == N_CLASSES and all(isinstance(name, str) for name in names)
            return _apart(names) if is_whole else None
    return None


def _apart(names: list[str]) -> tuple[str, ...]:
    """Tell names apart that stand more than once, by numbers."""
    times: Counter[str] = Counter()
    apart = []
    for name in names:
        times[name] += 1
        apart.append(name if times[name] == 1 else f"{name} ({times[name]})")
    return tuple(apart)
