"""Every version that is pinned has the digests of its files, and no file names an index."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def hashed():
    """Map every pin of hashes.txt to its digests, read as pip reads it."""
    lines = (ROOT / "hashes.txt").read_text().replace(" \\\n", " ").splitlines()
    return {pin: digests for pin, *digests in (line.split() for line in lines)}


def test_every_pin_has_its_digests():
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert list(hashed()) == pins
    digests = [one for each in hashed().values() for one in each]
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in digests)
    assert all(hashed().values())
    assert all(len(Requirement(pin).specifier) == 1 and "==" in pin for pin in pins)


def test_no_index_is_named():
    for name in ("constraints.txt", "hashes.txt", "Makefile", ".ci/hashes.py", ".ci/run", "pyproject.toml"):
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
