"""The failing side of everything that `obygaze doctor` examines."""

import errno
import importlib.metadata
import os

import pytest

from obygaze_features.extraction import doctor
from obygaze_features.extraction.doctor import Diagnosis
from obygaze_features.store.disk_usage import FreeSpace

GB = 10**9


def only(found: list[Diagnosis], about: str) -> Diagnosis:
    (finding,) = [each for each in found if each.about == about]
    return finding


# --- versions
# ---------------------------------------------------------------------------
@pytest.fixture
def installed(monkeypatch):
    """Pretend that a distribution has another version; None: it is not installed."""
    real = importlib.metadata.version

    def pretend(name: str, version: str | None) -> list[Diagnosis]:
        def asked(other: str) -> str:
            if other != name:
                return real(other)
            if version is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr(importlib.metadata, "version", asked)
        return doctor.versions()

    return pretend


@pytest.mark.parametrize(
    ("name", "version", "level"),
    [
        ("av", None, "fault"),
        ("zarr", None, "fault"),
        ("torch", None, "note"),
        ("torch", "1.0", "fault"),
    ],
)
def test_what_is_not_installed_is_a_fault_only_where_no_backbone_runs_without_it(
    installed, name, version, level
):
    found = [*installed(name, version)]
    assert only(found, name).level == level
    incomplete = [each.about for each in found if each.level == "note" and "missing" in each.text]
    whole = {"av": "extra video", "zarr": "base install", "torch": "extra extract"}
    assert (whole[name] in incomplete) == (version is None)


# --- the place of a store
# ---------------------------------------------------------------------------


def test_a_good_place_is_left_as_it_was(tmp_path):
    found = doctor.examine_place(tmp_path / "stores" / "films")
    assert [finding.about for finding in found] == ["path", "locks", "space", "inodes"]
    assert list(tmp_path.iterdir()) == []


def failing(number):
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def space(free, inodes):
    return lambda _: FreeSpace(free * GB, inodes)


def mounted(options):
    return lambda _: ("lustre", options)


@pytest.mark.parametrize(
    ("about", "level", "name", "pretended"),
    [
        ("path", "fault", "tempfile.TemporaryDirectory", failing(errno.EACCES)),
        ("path", "fault", "os.fsync", failing(errno.EIO)),
        ("locks", "fault", "fcntl.flock", failing(errno.ENOSYS)),
        ("locks", "fault", "fcntl.flock", lambda *_: None),  # granted to everybody
        ("locks", "fault", "_mount", mounted("rw,localflock")),
        ("locks", "fault", "_mount", mounted("rw,local_lock=flock")),
        ("locks", "ok", "_mount", mounted("rw,local_lock=none")),
        ("space", "note", "free_space", space(5, 10**4)),
        ("inodes", "note", "free_space", space(5, 10**4)),
        ("space", "ok", "free_space", space(100, None)),
    ],
)
def test_what_is_wrong_with_a_place_is_found(tmp_path, monkeypatch, about, level, name, pretended):
    within = "" if name == "fcntl.flock" else "obygaze_features.extraction.doctor."
    monkeypatch.setattr(f"{within}{name}", pretended)
    assert level in {finding.level for finding in doctor.examine_place(tmp_path) if finding.about == about}


# --- cards
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(("cores", "level"), [(16, "note"), (2 * doctor.FEWEST_CORES, "ok")])
def test_cores_too_few_to_decode_for_the_cards_are_said(monkeypatch, cores, level):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (140 * GB, 141 * GB))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a card")
    monkeypatch.setattr(doctor, "usable_cores", lambda: cores)
    found = only(list(doctor.devices()), "decoding")
    assert found.level == level
    assert f"{cores / 2:.3g} cores a card" in found.text
