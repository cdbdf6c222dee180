"""Every version that is pinned has the digests of its files, and no file names an index."""

import importlib.metadata
import re
import runpy
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TEST_TOOLS = ".ci/test-tools.txt"
"""What is installed on Windows to run the tests."""


def requirements_with_digests(name=".ci/hashes.txt"):
    """Yield every requirement of a file with its digests, read as pip reads it."""
    for line in (ROOT / name).read_text().replace(" \\\n", " ").splitlines():
        if line.startswith("#"):
            continue
        requirement, *digests = re.split(r"\s+--hash=sha256:", line)
        yield Requirement(requirement), digests


@pytest.mark.parametrize(
    ("system", "machine", "build_of_torch"),
    [("linux", "x86_64", "+cpu"), ("linux", "aarch64", ""), ("darwin", "arm64", "")],
)
def test_every_pin_has_its_digests(system, machine, build_of_torch):
    """constraints.txt pins a version of each package; .ci/hashes.txt has the same with SHA-256 of its files.

    Where PyTorch's usual build needs CUDA libraries, which have no pins, its CPU build is asked for.
    """
    environment = {"sys_platform": system, "platform_machine": machine}
    digests_of_requirement = {}
    for requirement, digests in requirements_with_digests():
        if requirement.marker is None or requirement.marker.evaluate(environment):
            digests_of_requirement[f"{requirement.name}{requirement.specifier}"] = digests

    pins = []
    for pin in (ROOT / "constraints.txt").read_text().splitlines():
        pins.append(f"{pin}{build_of_torch}" if pin.startswith("torch==") else pin)  # noqa: PERF401
    assert list(digests_of_requirement) == pins
    for requirement, digests in digests_of_requirement.items():
        assert digests, requirement
        for digest in digests:
            assert re.fullmatch(r"[0-9a-f]{64}", digest), requirement


def test_the_tools_that_run_the_tests_on_windows_have_the_versions_and_digests_of_the_pins():
    """Two files pin versions of packages with the digests of their files, which pip checks.

    .ci/hashes.txt has all pins of the usual test runs; .ci/test-tools.txt the few tools that run the tests on
    Windows. A tool that is in both must be the same package. Colorama is in the latter alone, since pytest
    needs it only on Windows.
    """
    tools = {str(requirement): digests for requirement, digests in requirements_with_digests(TEST_TOOLS)}
    pins = {str(requirement): digests for requirement, digests in requirements_with_digests()}

    tools_without_pin = tools.keys() - pins.keys()
    assert {Requirement(tool).name for tool in tools_without_pin} == {"colorama"}
    for tool in tools.keys() & pins.keys():
        assert tools[tool] == pins[tool], tool


def test_the_tools_that_run_the_tests_on_windows_are_listed_with_all_that_they_need():
    """Pytest and two packages beside it, with what they need in turn, stand in .ci/test-tools.txt."""
    listed = set()
    for requirement, _ in requirements_with_digests(TEST_TOOLS):
        listed.add(canonicalize_name(requirement.name))

    for tool in ("pytest", "pytest-xdist", "hypothesis"):
        needed = brought_by(tool, SYSTEMS["Windows"] | {"python_version": "3.11"})
        assert {tool} | needed <= listed


INSTALLS_OF_THIS_CHECKOUT = (
    "--editable",  # with what it needs, as a developer has it
    "--constraint constraints.txt",  # INSTALL_pinned of the Makefile: with the versions that are pinned
    "--upgrade",  # INSTALL_newest: with the newest version of each package
    "--resolution lowest-direct",  # INSTALL_lowest: with the oldest versions that pyproject.toml allows
)
"""Options by which the Makefile and the workflows install this checkout; each stands in no other install.

INSTALL_hashed of the Makefile installs it by `--no-deps` alone, at the end of its line.
"""


def test_the_workflows_install_by_digest_whatever_is_not_this_checkout():
    """Each `pip install` has --require-hashes, but for those of this checkout, which is what is tested.

    They have one of a few options instead, or end with --no-deps: the Makefile adds the path then.
    """
    files = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / "Makefile", ROOT / ".ci/run"]
    for path in files:
        text = path.read_text(encoding="utf-8")
        for command in re.findall(r"pip install (.*)", text):
            installs_this_checkout = command.endswith("--no-deps") or any(
                option in command for option in INSTALLS_OF_THIS_CHECKOUT
            )
            assert "--require-hashes" in command or installs_this_checkout, f"{path.name}: {command}"


def test_no_file_names_an_index_of_packages():
    """The index is that of whoever installs, and may be a mirror."""
    for name in (
        "constraints.txt",
        ".ci/hashes.txt",
        ".ci/test-tools.txt",
        ".ci/uv.txt",
        "Makefile",
        ".ci/hashes.py",
        ".ci/run",
        "pyproject.toml",
    ):
        text = (ROOT / name).read_text()
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text), name


@pytest.mark.parametrize(
    ("name", "version"),
    [("zarr", "3.1.3"), ("av", "17.0"), ("av", "19.0")],
    ids=["its Array has no subscript", "it has no av.stream.Discard", "it takes no metadata_errors"],
)
def test_no_bound_lets_a_version_in_that_is_known_to_fail(name, version):
    """The bounds of dependencies stand in pyproject.toml; the id of a case says why the version fails."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dependencies = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    bounds = []
    for requirement in map(Requirement, dependencies):
        if requirement.name == name and requirement.specifier:
            bounds.append(requirement.specifier)  # noqa: PERF401

    assert bounds
    for bound in bounds:
        assert not bound.contains(version)


def test_the_table_of_wheels_has_every_system_and_every_extra_that_users_install():
    """A page has the table that docs/wheels.py writes: a column for each extra, a line for each system."""
    wheels = runpy.run_path(str(ROOT / "docs" / "wheels.py"))
    page = wheels["PAGE"].read_text(encoding="utf-8")
    _, _, from_table_on = page.partition(wheels["BEGIN"])
    table, _, _ = from_table_on.partition(wheels["END"])
    lines = [line.strip("| ").split(" | ") for line in table.split("\n") if line.startswith("| ")]
    head, _line_between, *lines_of_systems = lines

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras_of_users = project["optional-dependencies"].keys() - wheels["LEFT_OUT"]
    assert set(head) == {"base", *extras_of_users}
    assert {line[0] for line in lines_of_systems} == wheels["SYSTEMS"].keys()


def base_section() -> str:
    """Give the section of the page on installing that lists what the base install brings."""
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    return page.partition("## The base install\n")[2].partition("\n## ")[0]


def named_in(text: str) -> set[str]:
    """List the packages that a text names."""
    return {canonicalize_name(name) for name in re.findall(r"`([A-Za-z0-9_.-]+)`", text)}


def test_the_page_on_installing_lists_what_the_base_install_asks_for():
    """Those that obygaze needs itself are listed before those that these need in turn."""
    list_of_the_page, _, _ = base_section().partition("- what these need in turn")

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    dependencies = {canonicalize_name(Requirement(words).name) for words in project["dependencies"]}
    assert named_in(list_of_the_page) == dependencies


def test_the_page_on_installing_shows_how_to_install_every_extra_of_users():
    """Such as '.[video]'; three extras are for those who develop obygaze."""
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras_of_users = project["optional-dependencies"].keys() - {"dev", "docs", "benchmarks"}

    for extra in extras_of_users:
        assert f"'.[{extra}]'" in page


# --- the base install
# ---------------------------------------------------------------------------
SYSTEMS = {
    "Linux": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    "macOS": {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    "Windows": {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
}


def brought_by(name: str, environment: dict[str, str]) -> set[str]:
    """List the packages that the base install of a package brings, as those installed here declare them."""
    brought, waiting = set(), {(name, "")}
    while waiting:
        package, extra = waiting.pop()
        brought.add((package, extra))
        try:
            declared = importlib.metadata.requires(package) or []
        except importlib.metadata.PackageNotFoundError:  # of another system
            continue
        for requirement in map(Requirement, declared):
            marker = requirement.marker
            if marker is None or marker.evaluate({**environment, "extra": extra}):
                needed = {(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)}
                waiting |= needed - brought
    return {package for package, _ in brought} - {name}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("python", ["3.11", "3.14"])
def test_the_base_install_brings_no_package_that_its_page_does_not_list(system, python):
    """On each system, by what the packages that are installed here declare to need, and these in turn."""
    environment = {**SYSTEMS[system], "python_version": python, "python_full_version": f"{python}.0"}

    not_listed = brought_by("obygaze", environment) - named_in(base_section())

    assert not_listed == set()
