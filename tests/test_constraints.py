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


def hashed(name=".ci/hashes.txt"):
    """Yield every requirement of a file with its digests, read as pip reads it."""
    for line in (ROOT / name).read_text().replace(" \\\n", " ").splitlines():
        if line.startswith("#"):
            continue
        requirement, *digests = re.split(r"\s+--hash=sha256:", line)
        yield Requirement(requirement), digests


@pytest.mark.parametrize(
    ("system", "machine", "built"),
    [("linux", "x86_64", "+cpu"), ("linux", "aarch64", ""), ("darwin", "arm64", "")],
)
def test_every_pin_has_its_digests(system, machine, built):
    """Where PyTorch's usual build needs CUDA libraries, which have no pins, its CPU build is asked for."""
    place = {"sys_platform": system, "platform_machine": machine}
    result = {
        f"{one.name}{one.specifier}": digests
        for one, digests in hashed()
        if not one.marker or one.marker.evaluate(place)
    }
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert list(result) == [f"{pin}{built}" if pin.startswith("torch==") else pin for pin in pins]
    assert all(result.values())
    assert all(re.fullmatch(r"[0-9a-f]{64}", one) for digests in result.values() for one in digests)


def test_the_tools_that_run_the_tests_on_windows_are_those_of_the_pins():
    tools = {str(one): digests for one, digests in hashed(".ci/test-tools.txt")}
    pins = {str(one): digests for one, digests in hashed()}
    on_windows_alone = tools.keys() - pins.keys()
    assert {Requirement(tool).name for tool in on_windows_alone} == {"colorama"}
    assert {tool: pins[tool] for tool in tools.keys() & pins.keys()}.items() <= tools.items()
    named = {canonicalize_name(Requirement(tool).name) for tool in tools}
    needed = {"pytest", "pytest-xdist", "hypothesis"}
    for tool in ("pytest", "pytest-xdist", "hypothesis"):
        needed |= brought_by(tool, SYSTEMS["Windows"] | {"python_version": "3.11"})
    assert needed <= named


def test_whatever_runs_in_the_workflows_is_installed_by_its_digest():
    """But for this checkout, whose dependencies are what is tested."""
    files = [*(ROOT / ".github/workflows").glob("*.yml"), ROOT / "Makefile", ROOT / ".ci/run"]
    for path in files:
        text = path.read_text(encoding="utf-8")
        for command in re.findall(r"pip install (.*)", text):
            is_of_checkout = re.search(r"--(editable|constraint|upgrade|resolution)|--no-deps$", command)
            assert "--require-hashes" in command or is_of_checkout, f"{path.name}: {command}"


def test_no_index_is_named():
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
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links", (ROOT / name).read_text()), name


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("zarr", "3.1.3"),  # its Array has no subscript, so no store can be opened
        ("av", "17.0"),  # without av.stream.Discard no video can be
        ("av", "19.0"),  # takes no metadata_errors
    ],
)
def test_no_bound_lets_a_version_in_that_is_known_to_fail(name, version):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = chain(project["dependencies"], *project["optional-dependencies"].values())
    bounds = [one.specifier for one in map(Requirement, known) if one.name == name and one.specifier]
    assert bounds
    assert not [str(bound) for bound in bounds if bound.contains(version)]


def test_the_table_of_wheels_has_every_system_and_every_extra_that_users_install():
    wheels = runpy.run_path(str(ROOT / "docs" / "wheels.py"))
    page = wheels["PAGE"].read_text(encoding="utf-8")
    table = page.partition(wheels["BEGIN"])[2].partition(wheels["END"])[0].split("\n")
    lines = [line.strip("| ").split(" | ") for line in table if line.startswith("| ")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].keys() - wheels["LEFT_OUT"]
    assert set(lines[0]) == {"base", *extras}
    assert {line[0] for line in lines[2:]} == wheels["SYSTEMS"].keys()


def base_section() -> str:
    """Give the section of the page on installing that lists what the base install brings."""
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    return page.partition("## The base install\n")[2].partition("\n## ")[0]


def named_in(text: str) -> set[str]:
    """List the packages that a text names."""
    return {canonicalize_name(name) for name in re.findall(r"`([A-Za-z0-9_.-]+)`", text)}


def test_the_page_on_installing_lists_what_is_asked_for_and_every_extra():
    of_our_own = base_section().partition("- what these need in turn")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert named_in(of_our_own) == {
        canonicalize_name(Requirement(words).name) for words in project["dependencies"]
    }
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    users_extras = project["optional-dependencies"].keys() - {"dev", "docs", "benchmarks"}
    assert {name for name in users_extras if f"'.[{name}]'" not in page} == set()


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
def test_the_base_install_brings_what_its_page_lists_and_no_more(system, python):
    environment = {**SYSTEMS[system], "python_version": python, "python_full_version": f"{python}.0"}
    assert brought_by("obygaze", environment) <= named_in(base_section())
