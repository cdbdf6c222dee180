"""The failing side of everything that `obygaze doctor` examines."""

import errno
import importlib
import importlib.metadata
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from obygaze_features.extraction import doctor
from obygaze_features.extraction.doctor import Finding

GB = 10**9


def only(found: list[Finding], about: str) -> Finding:
    (finding,) = [each for each in found if each.about == about]
    return finding


# --- versions
# ---------------------------------------------------------------------------
@pytest.fixture
def installed(monkeypatch):
    """Pretend that a distribution has another version; None: it is not installed."""
    real = importlib.metadata.version

    def pretend(name: str, version: str | None) -> list[Finding]:
        def asked(other: str) -> str:
            if other != name:
                return real(other)
            if version is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr(importlib.metadata, "version", asked)
        return doctor.versions()

    return pretend


def test_a_version_outside_of_its_bounds_is_a_fault(installed):
    finding = only(installed("av", "15.0.0"), "extra video")
    assert finding.level == "fault"
    assert "av 15.0.0 (needed: " in finding.text
    assert "pip install 'obygaze[video]'" in finding.text


@pytest.mark.parametrize(
    ("name", "about", "level"),
    [("av", "extra video", "fault"), ("zarr", "base install", "fault"), ("torch", "extra extract", "note")],
)
def test_what_is_not_installed_is_a_fault_only_where_no_backbone_runs_without_it(
    installed, name, about, level
):
    finding = only(installed(name, None), about)
    assert (finding.level, finding.text.partition(";")[0]) == (level, f"not installed: {name}")


def test_a_torchvision_of_another_build_is_a_fault(tmp_path, monkeypatch):
    """PyPI's torchvision, built for CUDA, beside PyTorch's CPU build."""
    (tmp_path / "torchvision-0.28.0.dist-info").mkdir()
    (tmp_path / "torchvision-0.28.0.dist-info" / "METADATA").write_text(
        "Name: torchvision\nVersion: 0.28.0\n"
    )
    file = tmp_path / "torchvision.py"
    file.write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    (finding,) = doctor.torchvision()
    assert (finding.about, finding.level) == ("torchvision", "fault")
    assert "0.28.0 does not work with the installed torch (operator torchvision::nms" in finding.text
    file.write_text("")
    importlib.invalidate_caches()
    assert list(doctor.torchvision()) == [Finding("torchvision", "ok", "0.28.0")]
    del sys.modules["torchvision"]


# --- GPUs and codecs
# ---------------------------------------------------------------------------
def card(free: int = 100 * GB, major: int = 9) -> dict[str, object]:
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_properties": lambda _: SimpleNamespace(name="H200", major=major, minor=0),
        "mem_get_info": lambda _: (free, 140 * GB),
    }


@pytest.mark.parametrize(
    ("cuda", "environment", "level", "words"),
    [
        (card(), {}, "ok", "cuda:0 H200, 100.0 of 140.0 GB free"),
        (card(free=GB), {}, "fault", "others use it"),
        (card(major=7), {}, "note", "compute capability 7.0: no fast bf16 or TF32"),
        ({"is_available": lambda: False}, {}, "note", "networks run on the CPU"),
        ({"is_available": lambda: False}, {"SLURM_GPUS_ON_NODE": "2"}, "fault", "built without CUDA"),
    ],
)
def test_gpus(monkeypatch, cuda, environment, level, words):
    torch = SimpleNamespace(
        cuda=SimpleNamespace(**cuda), version=SimpleNamespace(cuda=None), __version__="2.9.0"
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    finding = only(doctor.devices(environment), "gpu")
    assert finding.level == level
    assert words in finding.text


def test_without_torch_there_are_descriptors(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert only(doctor.devices({}), "gpu").level == "note"


@pytest.mark.parametrize(("absent", "level"), [("h264", "fault"), ("av1", "note"), ("", "ok")])
def test_codecs(monkeypatch, absent, level):
    there = {name for name in doctor.CODECS if name != absent}
    av = SimpleNamespace(codecs_available=there, library_versions={"libavcodec": (61, 3, 100)})
    monkeypatch.setitem(sys.modules, "av", av)
    assert only(doctor.codecs(), "codecs").level == level


# --- weights
# ---------------------------------------------------------------------------
def cached(cache: Path) -> Path:
    """Make a hub's cache with one commit of X-CLIP."""
    folder = cache / "models--microsoft--xclip-base-patch16-zero-shot"
    snapshot = folder / "snapshots" / ("a" * 40)
    for each in (folder / "blobs", folder / "refs", snapshot):
        each.mkdir(parents=True)
    (folder / "refs" / "main").write_text("a" * 40, encoding="utf-8")
    for name in ("config.json", "model.safetensors"):
        (folder / "blobs" / name).write_text("bytes", encoding="utf-8")
        (snapshot / name).symlink_to(folder / "blobs" / name)
    return cache


def of_xclip(found: list[Finding]) -> Finding:
    (finding,) = [each for each in found if each.text.startswith("xclip ")]
    return finding


@pytest.fixture(autouse=True)
def hub():
    pytest.importorskip("huggingface_hub")


def test_weights_that_are_not_pinned_are_said_with_the_commit(tmp_path):
    finding = of_xclip(doctor.weights({}, cached(tmp_path)))
    assert finding.level == "note"
    assert f"--weights xclip=microsoft/xclip-base-patch16-zero-shot@{'a' * 40}" in finding.text


def test_weights_in_the_cache_are_pinned_offline(tmp_path):
    found = doctor.weights({"HF_HUB_OFFLINE": "1"}, cached(tmp_path))
    assert of_xclip(found).level == "ok"


def test_weights_that_are_nowhere_are_a_note(tmp_path):
    found = list(doctor.weights({}, tmp_path / "none"))
    assert {finding.level for finding in found} == {"note"}
    assert "obygaze weights fetch xclip" in of_xclip(found).text


# --- cores and Slurm
# ---------------------------------------------------------------------------
def test_a_task_that_is_bound_to_fewer_cores_than_it_asked_for(monkeypatch):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4096")
    finding = only(doctor.cores(os.environ), "cores")
    assert (finding.level, "--cpu-bind=none" in finding.text) == ("note", True)


# --- the place of a store
# ---------------------------------------------------------------------------
def test_a_file_in_the_way_and_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert only(doctor.examine_place(tmp_path / "file" / "films"), "path").level == "fault"

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryDirectory", refused)
    finding = only(doctor.examine_place(tmp_path / "films"), "path")
    assert (finding.level, "Permission denied" in finding.text) == ("fault", True)


def test_a_good_place_is_left_as_it_was(tmp_path):
    found = doctor.examine_place(tmp_path / "stores" / "films")
    assert [finding.about for finding in found] == ["path", "fsync", "locks", "space", "inodes"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, None])
def test_a_file_system_without_locks_or_that_grants_them_always(tmp_path, monkeypatch, number):
    def lock(_: int) -> None:
        if number is not None:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(doctor, "_flock", lock)
    assert only(doctor.examine_place(tmp_path), "locks").level == "fault"


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ("rw,localflock", "fault"),
        ("rw,vers=3,nolock,addr=1", "fault"),
        ("rw,local_lock=flock", "fault"),
        ("rw,local_lock=none", "ok"),
    ],
)
def test_locks_that_other_nodes_do_not_see(tmp_path, monkeypatch, options, level):
    monkeypatch.setattr(doctor, "_mount", lambda _: ("lustre", options))
    assert only(doctor.examine_place(tmp_path), "locks").level == level


def test_a_disk_that_fails_or_is_slow(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "SLOW_SYNC_S", 0.0)
    assert only(doctor.examine_place(tmp_path), "fsync").level == "note"

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(doctor.os, "fsync", fail)
    assert [each.level for each in doctor.examine_place(tmp_path) if each.about == "path"] == ["ok", "fault"]


@pytest.mark.parametrize(
    ("free", "inodes", "levels"),
    [
        (100, 10**7, ["ok", "ok"]),
        (5, 10**4, ["note", "note"]),
        (0.5, 10, ["fault", "fault"]),
        (100, None, ["ok", "ok"]),
    ],
)
def test_space_and_inodes(tmp_path, monkeypatch, free, inodes, levels):
    status = SimpleNamespace(f_bavail=free * GB, f_frsize=1, f_files=inodes is not None, f_favail=inodes)
    monkeypatch.setattr(doctor.os, "statvfs", lambda _: status)
    found = [finding for finding in doctor.examine_place(tmp_path) if finding.about in {"space", "inodes"}]
    assert [finding.level for finding in found] == levels
    assert all("--dry-run" in finding.text for finding in found if finding.level != "ok")


# --- the command
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(("level", "code"), [("fault", 3), ("note", 0)])
def test_the_command_gives_one_line_a_finding_and_its_code(tmp_path, monkeypatch, obygaze, level, code):
    findings = [Finding("host", "ok", "n1"), Finding("locks", level, "none")]
    monkeypatch.setattr(doctor, "examine", lambda path: findings if path else [])
    done = obygaze(tmp_path, "doctor", "films")
    assert (done.returncode, done.stdout.splitlines()) == (
        code,
        ["ok     host   n1", f"{level:5}  locks  none"],
    )
    document = json.loads(obygaze(tmp_path, "doctor", "films", "--json").stdout)
    assert document["faults"] == (code == 3)
    assert document["findings"][1] == {"about": "locks", "level": level, "text": "none"}


def test_nothing_is_in_the_way_of_a_night_here(tmp_path):
    found = doctor.examine(tmp_path)
    assert [
        finding for finding in found if finding.level == "fault" and finding.about not in ("space", "inodes")
    ] == []
