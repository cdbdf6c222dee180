"""Check a machine and the folder of a store for problems that would end an extraction after hours."""

import contextlib
import fcntl
import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement

from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.job import array_shard
from obygaze_features.io import sync
from obygaze_features.locks import NO_LOCKS
from obygaze_features.store.missing_videos import host_name

GB = 1e9
LEAST_BYTES, LEAST_FILES = 1 * GB, 1_000  # less is too little even for a small corpus
FEW_BYTES, FEW_FILES = 20 * GB, 100_000
SLOW_SYNC_S = 0.05
LOCAL_LOCKS = re.compile(r"(?:^|,)(localflock|nolock|local_lock=(?:all|flock))(?:,|$)")

Level = Literal["ok", "note", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Parameters
    ----------
    about
        Subject of the check: `av`, `gpu`, `locks`, ...
    level
        `fault` if an extraction would fail, `note` if it would be slower or less safe.
    text
        One line with the result and the remedy.
    """

    about: str
    level: Level
    text: str


def examine_place(path: Path) -> list[Finding]:
    """Test what a stage needs of a file system: writing, fsync, renaming, locks, space and inodes."""
    folder = path.absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        return [Finding("path", "fault", f"{folder} is a file, so nothing can be written to {path}")]
    try:
        with tempfile.TemporaryDirectory(prefix=".obygaze-doctor-", dir=folder) as trial:
            kind, options = _mount(folder)
            findings = [Finding("path", "ok", f"{folder} can be written to" + (f" ({kind})" if kind else ""))]
            return [*findings, *_trial(Path(trial), kind, options), *space(folder)]
    except OSError as error:
        return [Finding("path", "fault", f"{folder} cannot be written to: {error.strerror or error}")]


def _trial(folder: Path, kind: str, options: str) -> Iterator[Finding]:
    for examination in (_fsync, lambda folder: _locks(folder, kind, options)):
        try:
            yield examination(folder)
        except OSError as error:
            yield Finding("path", "fault", f"a stage cannot be kept there: {error.strerror or error}")


def _fsync(folder: Path) -> Finding:
    started = time.perf_counter()
    partial = folder / "file.partial"
    with partial.open("wb") as file:
        file.write(b"a clip")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / "file")
    sync(folder)
    took = time.perf_counter() - started
    if (folder / "file").read_bytes() != b"a clip":
        return Finding("fsync", "fault", "a file read back is not what was written")
    text = f"a file is forced to the disk and renamed in {1000 * took:.0f} ms"
    return Finding("fsync", "note" if took > SLOW_SYNC_S else "ok", text)


def _locks(folder: Path, kind: str, options: str) -> Finding:
    """Take a lock twice; the second attempt must fail."""
    remedy = "write the stage to a file system that has them, or mount this one with them (Lustre: -o flock)"
    path = folder / "lock"
    path.touch()
    with path.open("rb") as first, path.open("rb") as second:
        try:
            _flock(first.fileno())
        except OSError as error:
            if error.errno in NO_LOCKS:
                return Finding("locks", "fault", f"the file system has no locks ({error.strerror}): {remedy}")
            raise
        try:
            _flock(second.fileno())
        except BlockingIOError:
            if local := LOCAL_LOCKS.search(options):
                return Finding(
                    "locks",
                    "fault",
                    f"{kind} is mounted with {local[1]}: other nodes do not see the locks of this one; "
                    "extract on one node only, or mount it with locks for the cluster",
                )
            return Finding("locks", "ok", "a file can be locked, and a second lock is refused")
        return Finding("locks", "fault", f"two locks on one file were both granted: {remedy}")


def _flock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _mount(folder: Path) -> tuple[str, str]:
    """Return the type and the options of a folder's file system; empty if /proc does not list them."""
    best = ("", "", "")
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, point, kind, options, *_ = line.split()
            point = point.replace("\\040", " ")
            if len(point) > len(best[0]) and (folder == Path(point) or Path(point) in folder.parents):
                best = (point, kind, options)
    return best[1], best[2]


def space(folder: Path, usage: Callable[[Path], tuple[int, int]] | None = None) -> list[Finding]:
    """Compare free bytes and inodes with what an extraction needs.

    Parameters
    ----------
    usage
        Returns free bytes and free inodes (-1: not counted) of a folder; None queries the file system.
    """
    free, inodes = (usage or _free)(folder)
    levels: list[Level] = [
        "fault" if free < LEAST_BYTES else "note" if free < FEW_BYTES else "ok",
        "fault" if 0 <= inodes < LEAST_FILES else "note" if 0 <= inodes < FEW_FILES else "ok",
    ]
    hint = "; `obygaze extract ... --dry-run` shows what is needed"
    texts = [f"{free / GB:,.1f} GB free", "not counted here" if inodes < 0 else f"{inodes:,} free"]
    return [
        Finding(about, level, text + (hint if level != "ok" else ""))
        for about, level, text in zip(("space", "inodes"), levels, texts, strict=True)
    ]


def _free(folder: Path) -> tuple[int, int]:
    if not hasattr(os, "statvfs"):
        return shutil.disk_usage(folder).free, -1
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize, status.f_favail if status.f_files else -1


LEAST_GPU_BYTES = 2 * GB  # free memory for the smallest network with one clip
EXTRAS = ("video", "extract", "ray", "remote")
NEEDED = ("", "video")  # without torch, `descriptors` still runs
CODECS = ("h264", "hevc", "vp9", "av1", "vp8", "mpeg4", "mpeg2video", "mpeg1video")


def examine(path: Path | str | None = None) -> list[Finding]:
    """Check this machine and the folder in which a store will be created.

    Parameters
    ----------
    path
        Folder or path of the future store; None checks the machine only. A small folder is created there and
        removed.

    Returns
    -------
    list of Finding
        In a fixed order; problems are returned, never raised.

    Examples
    --------
    >>> from obygaze_features.extraction.doctor import examine
    >>> [finding.about for finding in examine()][:2]
    ['host', 'obygaze']
    """
    findings = [Finding("host", "ok", _host())]
    findings += versions()
    findings += torchvision()
    findings += devices(os.environ)
    findings += codecs()
    findings += weights(os.environ)
    findings += cores(os.environ)
    if path is not None:
        findings += examine_place(Path(path))
    return findings


def _host() -> str:
    system = os.uname() if hasattr(os, "uname") else None
    return host_name() + (f", {system.sysname} {system.release} {system.machine}" if system else "")


# --- installed packages
# ---------------------------------------------------------------------------
def versions() -> list[Finding]:
    """Compare the installed versions with the bounds that obygaze declares."""
    version = importlib.metadata.version("obygaze")
    findings = [Finding("obygaze", "ok", version)]
    declared = [Requirement(words) for words in importlib.metadata.requires("obygaze") or []]
    shown: set[str] = {"obygaze"}
    for extra in ("", *EXTRAS):
        own = [each for each in declared if each.name not in shown and _of(each, extra)]
        findings += _bounds(own, extra)
        shown |= {each.name for each in own}
    return findings


def _of(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _bounds(some: list[Requirement], extra: str) -> list[Finding]:
    about = f"extra {extra}" if extra else "base install"
    there, absent, outside = [], [], []
    for each in some:
        try:
            version = importlib.metadata.version(each.name)
        except importlib.metadata.PackageNotFoundError:
            absent.append(each.name)
            continue
        there.append(f"{each.name} {version}")
        if not each.specifier.contains(version, prereleases=True):
            outside.append(f"{each.name} {version} (needed: {each.specifier})")
    install = f"pip install 'obygaze[{extra}]'" if extra else "pip install --upgrade obygaze"
    if outside:
        return [Finding(about, "fault", f"outside of their bounds: {', '.join(outside)}; {install}")]
    if absent:
        level: Level = "fault" if extra in NEEDED else "note"
        return [Finding(about, level, f"not installed: {', '.join(absent)}; {install}")]
    return [Finding(about, "ok", ", ".join(there))]


def torchvision() -> list[Finding]:
    """Import torchvision if it is installed: transformers does too, and no network runs if that fails."""
    try:
        version = importlib.metadata.version("torchvision")
    except importlib.metadata.PackageNotFoundError:
        return []
    try:
        importlib.import_module("torchvision")
    except (ImportError, RuntimeError, OSError) as error:
        text = f"{version} does not work with the installed torch ({error}): reinstall both from one index"
        return [Finding("torchvision", "fault", text)]
    return [Finding("torchvision", "ok", version)]


# --- processors, codecs and weights
# ---------------------------------------------------------------------------
def devices(environment: Mapping[str, str]) -> list[Finding]:
    """List the GPUs that torch sees, with their memory."""
    try:
        import torch  # noqa: PLC0415 - takes seconds, and is an extra
    except ImportError:
        return [Finding("gpu", "note", "no torch: networks cannot run, `descriptors` can")]
    promised = environment.get("SLURM_GPUS_ON_NODE", "0") not in ("", "0") or bool(_cards())
    n = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not n:
        if promised:
            why = (
                "this torch was built without CUDA" if torch.version.cuda is None else "its driver is too old"
            )
            return [
                Finding(
                    "gpu", "fault", f"the machine has GPUs and torch {torch.__version__} sees none: {why}"
                )
            ]
        return [Finding("gpu", "note", "none: networks run on the CPU, some hundred times slower")]
    findings = []
    for number in range(n):
        card = torch.cuda.get_device_properties(number)
        free, total = torch.cuda.mem_get_info(number)
        text = f"cuda:{number} {card.name}, {free / GB:.1f} of {total / GB:.1f} GB free"
        level: Level = "ok"
        if free < LEAST_GPU_BYTES:
            level, text = (
                "fault",
                f"{text}: others use it; choose another with CUDA_VISIBLE_DEVICES or --device",
            )
        elif card.major < 8:
            level, text = (
                "note",
                f"{text}, compute capability {card.major}.{card.minor}: no fast bf16 or TF32",
            )
        findings.append(Finding("gpu", level, text))
    return findings


def _cards() -> list[str]:
    """List the GPUs reported by the driver; does not need torch."""
    with contextlib.suppress(OSError):
        return [path.name for path in Path("/proc/driver/nvidia/gpus").iterdir()]
    return []


def codecs() -> list[Finding]:
    """List the codecs that the bundled FFmpeg can decode."""
    try:
        import av  # noqa: PLC0415 - an extra
    except ImportError as error:
        return [Finding("codecs", "fault", f"PyAV cannot be imported ({error}): no video can be decoded")]
    absent = [name for name in CODECS if not _decodes(av, name)]
    numbers = ".".join(map(str, av.library_versions["libavcodec"]))
    if "h264" in absent:
        return [Finding("codecs", "fault", f"libavcodec {numbers} decodes no H.264; install PyAV from PyPI")]
    if absent:
        return [Finding("codecs", "note", f"libavcodec {numbers} does not decode {', '.join(absent)}")]
    return [Finding("codecs", "ok", f"libavcodec {numbers} decodes {', '.join(CODECS)}")]


def _decodes(av: Any, name: str) -> bool:
    try:
        av.Codec(name, "r")
    except Exception:  # noqa: BLE001 - its class moved between versions of PyAV
        return False
    return True


def weights(environment: Mapping[str, str], cache: Path | None = None) -> list[Finding]:
    """List the weights in the hub's cache (None: the default folder), each with the commit that pins it."""
    from obygaze_features.backbones.weights import HUB  # noqa: PLC0415 - heavy

    try:
        from huggingface_hub import scan_cache_dir  # noqa: PLC0415 - an extra
        from huggingface_hub.errors import CacheNotFound  # noqa: PLC0415
    except ImportError:
        return []
    try:
        cached = {repository.repo_id: repository.revisions for repository in scan_cache_dir(cache).repos}
    except CacheNotFound:
        cached = {}
    offline = environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")
    findings = []
    for repository in dict.fromkeys(HUB.values()):
        names = [name for name, where in HUB.items() if where == repository]
        revisions = cached.get(repository, ())
        whole = [each for each in revisions if any(_is_tensors(file) for file in each.files)]
        about = f"{' and '.join(names)}: {repository}"
        if whole:
            newest = max(whole, key=lambda each: ("main" in each.refs, each.last_modified))
            pin = f"pin it with --weights {names[0]}={repository}@{newest.commit_hash}"
            held = (
                "pinned, for HF_HUB_OFFLINE is set"
                if offline
                else f"not pinned: {pin}, or set HF_HUB_OFFLINE=1"
            )
            findings.append(
                Finding("weights", "ok" if offline else "note", f"{about} is in the cache, {held}")
            )
        elif revisions:
            text = f"{about} is in the cache without its tensors: obygaze weights fetch {names[0]}"
            findings.append(Finding("weights", "fault", text))
        else:
            text = f"{about} is not in the cache: obygaze weights fetch {names[0]}"
            findings.append(Finding("weights", "note", text))
    return findings


def _is_tensors(file: Any) -> bool:
    named = file.file_name.endswith((".safetensors", ".bin"))
    return bool(named and file.file_path.exists() and file.size_on_disk)


def cores(environment: Mapping[str, str]) -> list[Finding]:
    """Count the usable cores, and report Slurm's settings of this job."""
    n = usable_cores()
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else n
    text = f"{n} usable of {os.cpu_count()}"
    level: Level = "ok" if n > 1 else "note"
    allotted = environment.get("SLURM_CPUS_PER_TASK", "")
    if allotted.isdecimal() and bound < int(allotted):
        level, text = (
            "note",
            f"{text}: bound to {bound}, although --cpus-per-task={allotted}; use srun --cpu-bind=none",
        )
    elif n == 1:
        text += ": decoding takes long with one"
    findings = [Finding("cores", level, text)]
    if "SLURM_JOB_ID" not in environment:
        return findings
    remarks = [f"job {environment['SLURM_JOB_ID']} on {environment.get('SLURM_JOB_NODELIST', '?')}"]
    level = "ok"
    try:
        shard = array_shard(environment)
        remarks += [f"shard {shard[0]}/{shard[1]} of an array"] if shard else []
    except ExtractError as error:
        level, remarks = "note", [*remarks, str(error)]
    if limit := _time_limit(environment["SLURM_JOB_ID"]):
        remarks.append(f"time left {limit}")
    return [*findings, Finding("slurm", level, "; ".join(remarks))]


def _time_limit(job: str) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        words = ["squeue", "--noheader", "--job", job, "--format", "%L"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=20)  # noqa: S603
        return done.stdout.strip().splitlines()[0] if done.stdout.strip() else ""
    return ""
