"""Check a machine and the folder of a store for problems that would end an extraction after hours."""

import errno
import fcntl
import importlib
import importlib.metadata
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from obygaze_features.cores import usable_cores
from obygaze_features.locks import NO_LOCKS
from obygaze_features.store.missing_videos import host_name

GB = 1e9
LEAST_GPU_BYTES = 2 * GB  # free memory for the smallest network with one clip
SLOW_SYNC_S = 0.05
FEW_BYTES, FEW_INODES = 20 * GB, 100_000
LOCAL_LOCKS = re.compile(r"(?:^|,)(localflock|nolock|local_lock=(?:all|flock))(?:,|$)")
NEEDED = ("", "video")  # without torch, `descriptors` still runs
EXTRAS = (*NEEDED, "extract", "ray", "remote")
CODECS = ("h264", "hevc", "vp9", "av1", "vp8", "mpeg4", "mpeg2video", "mpeg1video")

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
    system = os.uname()
    host = f"{host_name()}, {system.sysname} {system.release} {system.machine}"
    return [
        Finding("host", "ok", host),
        *versions(),
        *torchvision(),
        *devices(os.environ),
        *codecs(),
        *weights(os.environ),
        *cores(os.environ),
        *(() if path is None else examine_place(Path(path))),
    ]


def versions() -> Iterator[Finding]:
    """Compare the installed versions with the bounds that obygaze declares."""
    yield Finding("obygaze", "ok", importlib.metadata.version("obygaze"))
    declared = [Requirement(words) for words in importlib.metadata.requires("obygaze") or []]
    shown = {"obygaze"}
    for extra in EXTRAS:
        there, absent, outside = [], [], []
        for package in declared:
            if package.name in shown or (package.marker and not package.marker.evaluate({"extra": extra})):
                continue
            shown.add(package.name)
            try:
                version = importlib.metadata.version(package.name)
            except importlib.metadata.PackageNotFoundError:
                absent.append(package.name)
                continue
            there.append(f"{package.name} {version}")
            if not package.specifier.contains(version, prereleases=True):
                outside.append(f"{package.name} {version} (needed: {package.specifier})")
        about = f"extra {extra}" if extra else "base install"
        install = f"pip install 'obygaze[{extra}]'" if extra else "pip install --upgrade obygaze"
        if outside:
            yield Finding(about, "fault", f"outside of their bounds: {', '.join(outside)}; {install}")
        elif absent:
            level: Level = "fault" if extra in NEEDED else "note"
            yield Finding(about, level, f"not installed: {', '.join(absent)}; {install}")
        else:
            yield Finding(about, "ok", ", ".join(there))


def torchvision() -> Iterator[Finding]:
    """Import torchvision if it is installed: transformers does too, and no network runs if that fails."""
    try:
        version = importlib.metadata.version("torchvision")
        importlib.import_module("torchvision")
    except importlib.metadata.PackageNotFoundError:
        return
    except (ImportError, RuntimeError, OSError) as error:
        text = f"{version} does not work with the installed torch ({error}): reinstall both from one index"
        yield Finding("torchvision", "fault", text)
    else:
        yield Finding("torchvision", "ok", version)


def devices(environment: Mapping[str, str]) -> Iterator[Finding]:
    """List the GPUs that torch sees, with their memory."""
    try:
        import torch  # noqa: PLC0415 - takes seconds, and is an extra
    except ImportError:
        yield Finding("gpu", "note", "no torch: networks cannot run, `descriptors` can")
        return
    n = torch.cuda.device_count() if torch.cuda.is_available() else 0
    promised = environment.get("SLURM_GPUS_ON_NODE", "0") not in ("", "0")
    if not n and (promised or Path("/proc/driver/nvidia/gpus").is_dir()):
        why = "it was built without CUDA" if torch.version.cuda is None else "its driver is too old"
        yield Finding("gpu", "fault", f"this machine has GPUs and torch {torch.__version__} sees none: {why}")
    elif not n:
        yield Finding("gpu", "note", "none: networks run on the CPU, some hundred times slower")
    for number in range(n):
        card = torch.cuda.get_device_properties(number)
        free, total = torch.cuda.mem_get_info(number)
        level: Level = "fault" if free < LEAST_GPU_BYTES else "note" if card.major < 8 else "ok"
        remedy = {
            "fault": ": others use it; choose another with CUDA_VISIBLE_DEVICES or --device",
            "note": f", compute capability {card.major}.{card.minor}: no fast bf16 or TF32",
        }.get(level, "")
        text = f"cuda:{number} {card.name}, {free / GB:.1f} of {total / GB:.1f} GB free"
        yield Finding("gpu", level, text + remedy)


def codecs() -> Iterator[Finding]:
    """List the codecs that the bundled FFmpeg can decode."""
    try:
        import av  # noqa: PLC0415 - an extra, whose lack is a finding of the versions
    except ImportError:
        return
    absent = [name for name in CODECS if name not in av.codecs_available]
    number = ".".join(map(str, av.library_versions["libavcodec"]))
    lacks = f"does not decode {', '.join(absent)}; PyAV from PyPI does"
    level: Level = "fault" if "h264" in absent else "note" if absent else "ok"
    yield Finding(
        "codecs", level, f"libavcodec {number} " + (lacks if absent else f"decodes {', '.join(CODECS)}")
    )


def weights(environment: Mapping[str, str], cache: Path | None = None) -> Iterator[Finding]:
    """List the weights in the hub's cache (None: the default folder), each with the commit that pins it."""
    from obygaze_features.backbones.weights import HUB  # noqa: PLC0415 - heavy

    try:
        from huggingface_hub import scan_cache_dir  # noqa: PLC0415 - an extra
        from huggingface_hub.errors import CacheNotFound  # noqa: PLC0415
    except ImportError:
        return
    try:
        cached = {repository.repo_id: repository.revisions for repository in scan_cache_dir(cache).repos}
    except CacheNotFound:
        cached = {}
    offline = environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")
    for repository in dict.fromkeys(HUB.values()):
        names = [name for name, where in HUB.items() if where == repository]
        about, fetch = f"{' and '.join(names)}: {repository}", f"obygaze weights fetch {names[0]}"
        revisions = cached.get(repository, ())
        if not revisions:
            yield Finding("weights", "note", f"{about} is not in the cache: {fetch}")
        elif offline:
            yield Finding("weights", "ok", f"{about} is in the cache, pinned, for HF_HUB_OFFLINE is set")
        else:
            newest = max(revisions, key=lambda revision: ("main" in revision.refs, revision.last_modified))
            pin = f"pin it with --weights {names[0]}={repository}@{newest.commit_hash}"
            text = f"{about} is in the cache, not pinned: {pin}, or set HF_HUB_OFFLINE=1"
            yield Finding("weights", "note", text)


def cores(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Count the usable cores, and report Slurm's settings of this job."""
    n = usable_cores()
    text = f"{n} usable of {os.cpu_count()}"
    level: Level = "ok" if n > 1 else "note"
    allotted = environment.get("SLURM_CPUS_PER_TASK", "")
    if allotted.isdecimal() and n < int(allotted):
        level, text = "note", f"{text}, although --cpus-per-task={allotted}; use srun --cpu-bind=none"
    yield Finding("cores", level, text)
    if job := environment.get("SLURM_JOB_ID"):
        yield Finding("slurm", "ok", f"job {job} on {environment.get('SLURM_JOB_NODELIST', '?')}")


def examine_place(path: Path) -> Iterator[Finding]:
    """Test what a stage needs of a file system: writing, fsync, locks, space and inodes."""
    folder = path.absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    kind, options = _mount(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".obygaze-doctor-", dir=folder) as trial:
            yield Finding("path", "ok", f"{folder} can be written to ({kind})")
            yield _fsync(Path(trial) / "file")
            yield _locks(Path(trial) / "file", kind, options)
            yield from _space(folder)
    except OSError as error:
        yield Finding("path", "fault", f"no stage can be kept in {folder}: {error.strerror or error}")


def _fsync(path: Path) -> Finding:
    started = time.perf_counter()
    with path.open("wb") as file:
        file.write(b"a clip")
        file.flush()
        os.fsync(file.fileno())
    took = time.perf_counter() - started
    level: Level = "note" if took > SLOW_SYNC_S else "ok"
    return Finding("fsync", level, f"a file is forced to the disk in {1000 * took:.0f} ms")


def _locks(path: Path, kind: str, options: str) -> Finding:
    """Take a lock twice; the second attempt must fail."""
    remedy = "write the stage to a file system that has them, or mount this one with them (Lustre: -o flock)"
    with path.open("rb") as first, path.open("rb") as second:
        try:
            _flock(first.fileno())
            _flock(second.fileno())
        except OSError as error:
            if error.errno in NO_LOCKS:
                return Finding("locks", "fault", f"the file system has no locks ({error.strerror}): {remedy}")
            if error.errno != errno.EWOULDBLOCK:
                raise
        else:
            return Finding("locks", "fault", f"two locks on one file were both granted: {remedy}")
    if local := LOCAL_LOCKS.search(options):
        why = f"{kind} is mounted with {local[1]}: other nodes do not see the locks of this one"
        remedy = "extract on one node only, or mount it with locks for the cluster"
        return Finding("locks", "fault", f"{why}; {remedy}")
    return Finding("locks", "ok", "a file can be locked, and a second lock is refused")


def _flock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _mount(folder: Path) -> tuple[str, str]:
    """Return the type and the options of a folder's file system; unknown where /proc does not list them."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown", ""
    mounts = {Path(line.split()[1].replace("\\040", " ")): line.split()[2:4] for line in lines}
    point = next((place for place in (folder, *folder.parents) if place in mounts), None)
    kind, options = mounts.get(point, ["unknown", ""]) if point else ("unknown", "")
    return kind, options


def _space(folder: Path) -> Iterator[Finding]:
    """Compare free bytes and inodes with what a large corpus needs; a twentieth is a fault."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    inodes = status.f_favail if status.f_files else FEW_INODES  # not counted here
    texts = {"space": f"{free / GB:,.1f} GB free", "inodes": f"{inodes:,} free"}
    shares = {"space": free / FEW_BYTES, "inodes": inodes / FEW_INODES}
    for about, share in shares.items():
        level: Level = "ok" if share >= 1 else "note" if share >= 0.05 else "fault"
        hint = "" if share >= 1 else "; `obygaze extract ... --dry-run` shows what is needed"
        yield Finding(about, level, texts[about] + hint)
