"""The walls of the house hold, and a breach would be seen."""

import ast
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies")
SUPPORT = {
    "obygaze_features.arguments",
    "obygaze_features.cores",
    "obygaze_features.untrusted",
    "obygaze_features.errors",
    "obygaze_features.identity",
    "obygaze_features.io",
    "obygaze_features.lines",
    "obygaze_features.locks",
    "obygaze_features.options",
    "obygaze_features.plugins",
    "obygaze_features.screen",
    "obygaze_features.signatures",
    "obygaze_features.templates",
    "obygaze_features.text",
    "obygaze_features.workers",
    "obygaze_models.blas",
    "obygaze_models.errors",
}
"""Modules of the core for our own packages; they offer what they define, but for names with an underscore."""


BREACHES = """
obygaze_models/dataset/dataset.py import obygaze_features.video
obygaze_features/store/format.py import obygaze_models
obygaze_models/dataset/dataset.py import obygaze.cli
obygaze_features/store/format.py import obygaze_features.manifest
obygaze_features/video/sampling.py import obygaze_features.extraction
obygaze_features/io.py import obygaze_features.store
obygaze_features/store/format.py import obygaze_features.store.group
obygaze_features/store/sealing.py import obygaze_features.store.verification
obygaze_features/exchange/import_items.py import obygaze_features.manifest
obygaze_features/exchange/publish.py import obygaze_features.exchange.merge
obygaze_features/store/attic.py
obygaze_models/dataset/dataset.py import obygaze_models.models.spec
obygaze_features/store/format.py import obygaze_film
obygaze_film/schema.py import obygaze_studies.caption_words
obygaze_film/timeline.py import torch
obygaze_features/manifest/clip.py import pandas
obygaze_models/dataset/dataset.py import torch
obygaze/cli.py import obygaze_features.store
"""
"""A file and the line that breaches a wall there; a file without a line is on no floor."""


def check_walls(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter in a folder, as `make walls` does; it exits with 1 if a rule of imports is broken."""
    command = "import sys; from importlinter.cli import lint_imports_command as run; run()"
    return subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def copy_packages(folder: Path) -> Path:
    """Copy our five packages and pyproject.toml, which has the rules of imports, into a folder."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.long
def test_no_package_imports_what_the_walls_forbid(tmp_path):
    """The walls are rules on which package may import which; they stand in pyproject.toml."""
    result = check_walls(copy_packages(tmp_path))

    assert result.returncode == 0, result.stdout


@pytest.fixture(scope="module")
def report_of_broken_walls(tmp_path_factory):
    """What import-linter says of a copy of the packages with all forbidden imports of `BREACHES` in it.

    The sentences of the report are in one line.
    """
    folder = copy_packages(tmp_path_factory.mktemp("breached"))
    for breach in BREACHES.strip().splitlines():
        file, _, forbidden_import = breach.partition(" ")
        path = folder / file
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{forbidden_import}\n{before}", encoding="utf-8")
    result = check_walls(folder)
    assert result.returncode == 1, result.stdout
    _, _, broken_walls = " ".join(result.stdout.split()).partition("BROKEN")
    return broken_walls


@pytest.mark.long
@pytest.mark.parametrize("breach", BREACHES.strip().splitlines())
def test_an_import_that_a_wall_forbids_is_reported(report_of_broken_walls, breach):
    """A breach is a file and the import that was written into it, "obygaze/a.py import obygaze_film".

    The report names it as "obygaze.a -> obygaze_film (l. 1)". A breach without an import is a new module that
    no layer lists, and the report names the module.
    """
    file, _, forbidden_import = breach.partition(" ")
    module = file.removesuffix(".py").replace("/", ".")
    imported = forbidden_import.removeprefix("import ")

    expected = f"{module} -> {imported} (l." if imported else module
    assert expected in report_of_broken_walls


def imports_of(path):
    """Yield (module, name) of every import of a file; name is None where the module itself is imported."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 or path.suffix == ".pyi", path
            yield from ((node.module, alias.name) for alias in node.names if node.level == 0)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def is_offered(module, name):
    """Return whether films and studies may import a name of the core from a module."""
    spec = importlib.util.find_spec(module)
    is_package = spec.submodule_search_locations is not None
    if module in SUPPORT:
        assert not is_package
        imported_there = {imported for _, imported in imports_of(Path(spec.origin))}
        return name is None or not (name.startswith("_") or name in imported_there)
    if not is_package or module.count(".") > 1:
        return False
    return name is None or name in importlib.import_module(module).__all__


@pytest.mark.long
def test_films_and_studies_import_of_the_core_only_what_it_offers():
    """The core, `obygaze_features` and `obygaze_models`, offers what its packages list in `__all__`.

    Its support modules, such as `obygaze_features.io`, offer what they define without an underscore.
    """
    n_imported = 0
    not_offered = set()
    for package in ("obygaze_film", "obygaze_studies"):
        for path in (ROOT / package).rglob("*.py"):
            for module, name in imports_of(path):
                if module.startswith(("obygaze_features", "obygaze_models")):
                    n_imported += 1
                    if not is_offered(module, name):
                        not_offered.add((path, module, name))

    assert n_imported > 200, "the imports were not found"
    assert not not_offered


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("obygaze_features.store.format", "ARRAYS"),
        ("obygaze_features.store", "ARRAYS"),
        ("obygaze_features.io", "contextmanager"),
        ("obygaze_features.io", "_sweep"),
        ("obygaze_features.schema", "check"),
    ],
    ids=[
        "in a module of a room, which only the room may import",
        "not in the room's __all__",
        "imported there from the standard library",
        "with an underscore",
        "in a module that is no support module",
    ],
)
def test_the_core_does_not_offer_a_name(module, name):
    """Films and studies may not write `from MODULE import NAME`; the id of each case says why."""
    assert not is_offered(module, name)


BY_NAME = re.compile(
    r"av\.open|h5py\.File|Image\.open|(io\.)?FileIO|json\.load|load_file|np\.(fromfile|load|loadtxt|memmap)"
    r"|np\.lib\.format\.open_memmap|(os\.)?open|pd\.read_\w+|pickle\.load|pq\.ParquetFile|safe_open|tarfile\.open"
    r"|tomllib\.load|torch\.load|zarr\.open\w*|zipfile\.ZipFile|.*\.from_pretrained"
)
"""Calls that open what they are given the name of; so do `from_pretrained`, and `open`, `read_bytes` and
`read_text` of a path."""

MAY_OPEN = re.compile("open|read|load|from|File|memmap|safe_open|ZipFile|ParquetFile")
"""Beginnings of their last names; of others the whole text is not looked at."""

OPENED_OTHERWISE = {
    "obygaze/demo.py": "a mark of its own",
    "obygaze/demo_corpus.py": "its own tables",
    "obygaze_features/sandbox.py": "the null device",
    "obygaze_features/untrusted.py": "it is `untrusted`",
    "obygaze_features/limits.py": "what Linux says of this process",
    "obygaze_features/errors.py": "the configuration of the installation",
    "obygaze_features/io.py": "opens to write, and prints its own file",
    "obygaze_features/messages.py": "memory shared with its own workers",
    "obygaze_features/backbones/checkpoint.py": "`weights.py` has looked at all that is beside the weights",
    "obygaze_features/backbones/waveform.py": "`weights.py` has looked at all that is beside the weights",
    "obygaze_features/backbones/weights.py": "digested in `untrusted` before",
    "obygaze_features/backbones/xclip_lsmdc.py": "`weights.py` has digested them in `untrusted`",
    "obygaze_features/exchange/import_hdf5.py": "`open_source`, `table_items` open it by `untrusted`",
    "obygaze_features/exchange/row_ids.py": "`table_items` opens it by `untrusted`, `read_ids` reads it",
    "obygaze_features/extraction/doctor.py": "its own file, and the system's list of mounts",
    "obygaze_features/extraction/pool.py": "its own process's",
    "obygaze_features/extraction/ray_leader.py": "its own process's",
    "obygaze_features/store/zarr_view.py": "zarr asks the store's files, which open in `untrusted`",
    "obygaze_features/torch_files.py": "callers have digested it, or read its header, in `untrusted`",
    "obygaze_features/video/cuts.py": "a file of an installed package",
    "obygaze_features/video/joined_sound.py": "opens bytes in memory",
    "obygaze_features/video/source.py": "after `check_file`",
    "obygaze_features/video/stills.py": "after `check_file`",
    "obygaze_models/joint/sums.py": "opened in `untrusted` first",
    "obygaze_models/report/pages.py": "its own drawing",
    "obygaze_studies/lsmdc/state.py": "opened in `untrusted` first",
}
"""Modules that open files by other means than `untrusted`, and why they may."""


WRITING = re.compile(r"[wax]b?|r\+b|w-")
"""Modes of files that are written."""
IN_MEMORY = re.compile(r"BytesIO|StringIO|^file$|^opened$")
"""First arguments that are no name of a file, but a file that is open or a text in memory."""
METHODS_OF_PATHS = (".open", ".read_bytes", ".read_text")


def calls_that_open_by_name(code):
    """Yield the functions that a source calls to read a file that is given by its name.

    Calls that write, and calls that read what is in memory, open already, or of a package, are left out.
    """
    if not MAY_OPEN.search(code):
        return
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        last_name = getattr(node.func, "attr", getattr(node.func, "id", "open"))
        if not MAY_OPEN.match(last_name):
            continue
        function = ast.unparse(node.func)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        constants = [str(argument.value) for argument in arguments if isinstance(argument, ast.Constant)]
        first = ast.unparse(arguments[0]) if arguments else ""
        if any(WRITING.fullmatch(constant) for constant in constants):
            continue
        if IN_MEMORY.search(first) or "files(" in function:  # `importlib.resources.files`
            continue
        # A path's own method takes at most a mode or an encoding; an archive's `open` takes a member.
        is_of_path = function.endswith(METHODS_OF_PATHS) and (not first or constants)
        if is_of_path or BY_NAME.fullmatch(function):
            yield function


@pytest.mark.long
def test_only_modules_with_a_stated_reason_open_files_by_other_means():
    """`untrusted.py` refuses pipes, devices and files that are too large, which a stranger may have made.

    Any other module that calls `open`, `np.load` or the like has a reason in the dictionary
    `OPENED_OTHERWISE`.
    """
    modules_that_open = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if list(calls_that_open_by_name(source)):
                modules_that_open.add(path.relative_to(ROOT).as_posix())

    modules_with_a_reason = set(OPENED_OTHERWISE)
    assert modules_that_open == modules_with_a_reason


@pytest.mark.parametrize(
    ("call", "reads_a_named_file"),
    [
        ("np.load(path)", True),
        ("path.read_text(encoding='utf-8')", True),
        ("Net.from_pretrained(folder)", True),
        ("path.open('w')", False),
        ("np.load(io.BytesIO(data))", False),
        ("archive.open(member)", False),
        ("files(package).joinpath('a').read_text()", False),
    ],
)
def test_calls_that_read_a_file_by_its_name_are_found(call, reads_a_named_file):
    """Calls that write, or that read memory, a member of an archive or a file of a package, are not."""
    found = list(calls_that_open_by_name(call))

    assert (found != []) == reads_a_named_file


def test_collecting_the_tests_imports_nothing_heavy(request):
    """Each process of a run collects all tests; torch and the like take seconds to import.

    `tests/conftest.py` notes which of four such libraries were imported when all tests had been collected.
    """
    heavy_libraries_imported = request.config.heavy
    assert heavy_libraries_imported == set()


def can_be_imported(module, name):
    """Return whether a module has a name, or a package a module of it."""
    imported = importlib.import_module(module)
    if hasattr(imported, name):
        return True
    return hasattr(imported, "__path__") and importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.long
def test_what_scripts_of_benchmarks_examples_and_docs_import_of_our_packages_exists():
    """These scripts are run by hand: no other test would notice that a name was renamed."""
    missing = []
    for folder in ("benchmarks", "examples", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for module, name in imports_of(path):
                is_name_of_ours = module.startswith("obygaze") and name is not None
                if is_name_of_ours and not can_be_imported(module, name):
                    missing.append(f"{path}: {module}.{name}")

    assert not missing
