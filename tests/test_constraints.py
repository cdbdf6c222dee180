"""Every version that is pinned has the digests of its files, and no file names an index."""

import re
import runpy
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def hashed():
    """Yield every requirement of .ci/hashes.txt with its digests, read as pip reads it."""
    for line in (ROOT / ".ci/hashes.txt").read_text().replace(" \\\n", " ").splitlines():
        requirement, *digests = re.split(r"\s+--hash=sha256:", line)
        yield Requirement(requirement), digests


@pytest.mark.parametrize(
    ("system", "machine", "built"),
    [("linux", "x86_64", "+cpu"), ("linux", "aarch64", ""), ("darwin", "arm64", "")],
)
def test_every_pin_has_its_digests(system, machine, built):
    """Where PyTorch's usual build needs CUDA libraries, which have no pins, its CPU build is asked for."""
    place = {"sys_platform": system, "platform_machine": machine}
    found = {
        f"{one.name}{one.specifier}": digests
        for one, digests in hashed()
        if not one.marker or one.marker.evaluate(place)
    }
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert list(found) == [f"{pin}{built}" if pin.startswith("torch==") else pin for pin in pins]
    assert all(found.values())
    assert all(re.fullmatch(r"[0-9a-f]{64}", one) for digests in found.values() for one in digests)


def test_no_index_is_named():
    for name in (
        "constraints.txt",
        ".ci/hashes.txt",
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


def test_the_page_on_installing_lists_what_the_base_install_brings_and_every_extra():
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    section = page.partition("## The base install\n")[2].partition("\n## ")[0]
    items = [line.partition(": ")[2] for line in section.splitlines() if line.startswith("- ")]
    listed = {re.match("[a-z0-9-]+", name)[0] for item in items for name in item.split(", ")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert listed == {canonicalize_name(Requirement(words).name) for words in project["dependencies"]}
    users_extras = project["optional-dependencies"].keys() - {"dev", "docs", "benchmarks"}
    assert {name for name in users_extras if f"'.[{name}]'" not in page} == set()
