"""Check a machine and the folder of a store for what one kind of work needs, before hours go into it."""

import importlib.metadata
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from obygaze_features.cores import NODE_GPUS, no_gpu_here, usable_cores
from obygaze_features.errors import StoreError, install_command
from obygaze_features.extraction.uses import USES, Use
from obygaze_features.locks import hold
from obygaze_features.machine import clock_problem, host_name
from obygaze_features.store.disk_usage import existing_folder, free_space

GB = 1e9
FEWEST_CORES, MOST_CORES = 88, 380
"""Cores that decode minutes of film as fast as an H200 computes three networks of them (docs/gpu.md)."""
LEAST_GPU_BYTES = 2 * GB  # free memory for the smallest network with one clip
FEW_BYTES, FEW_INODES = 20 * GB, 100_000
PAGE = "first-hour.md"
"""The page that a newcomer reads first."""

LOCAL_LOCKS = re.compile(r"(?:^|,)(localflock|nolock|local_lock=(?:all|flock))(?:,|$)")
MOUNTS = Path("/proc/self/mounts")  # of Linux

Level = Literal["ok", "note", "fault", "absent"]

DEVELOPMENT = frozenset({"dev", "docs", "benchmarks"})
"""Extras of this project's own development."""

BROUGHT_ALONG = frozenset({"video", "extract"})
"""Extras that others bring along."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of one check.

    Parameters
    ----------
    about
        Subject of the check: `extra video`, `gpu`, `locks`, ...
    level
        `fault` if the work would fail, `note` if a part of it is missing, slower or less safe, `absent` for
        an extra that is not installed and not needed.
    text
        One line with the result and the remedy.
    """

    about: str
    level: Level
    text: str


def examine(
    path: Path | str | None = None,
    use: Use | None = None,
    *,
    backbones: Sequence[str] = (),
    device: str | None = None,
) -> list[Diagnosis]:
    """Check this machine for one kind of work, and the folder in which a store will be created.

    Parameters
    ----------
    path
        Folder or path of the future store; None checks the machine only. A small folder is created there and
        removed.
    use
        The work. None with a path or backbones is `extract`; None without lists which uses this machine is
        ready for.
    backbones
        Those that are to run here; empty judges none by its weights.
    device
        What networks are to run on; None is any.

    Returns
    -------
    list of Diagnosis
        In a fixed order; problems are returned, never raised.

    Raises
    ------
    BackboneError
        If there is no such backbone.

    Examples
    --------
    >>> from obygaze_features.extraction.doctor import examine
    >>> [finding.about for finding in examine(use="laptop")][:2]
    ['host', 'obygaze']
    """
    host = f"{host_name()}, {platform.system()} {platform.release()} {platform.machine()}"
    pages = docs_folder()
    where = "" if pages is None else f"; its pages, from first-hour.md on, are in {pages}"
    version = importlib.metadata.version("obygaze")
    findings = [_found("host", host), _found("obygaze", f"{version}{where}")]
    if use is None and path is None and not backbones and device is None:
        return [*findings, *extras(None), *cores(), *readiness()]
    asked_use = use or "extract"
    findings += _of_use(asked_use, backbones, device)
    if path is not None:
        findings += examine_place(Path(path))
    names_of_faults = [finding.about for finding in findings if finding.level == "fault"]
    level: Level = "fault" if names_of_faults else "ok"
    return [*findings, Diagnosis(f"for {asked_use}", level, _verdict(asked_use, names_of_faults))]


def docs_folder() -> Path | None:
    """Return the folder of the pages that messages and helps name, of this install; None if it has none.

    A wheel brings them along, a checkout has them beside the packages.
    """
    installed = importlib.metadata.distribution("obygaze").files or []
    pages = [Path(str(file.locate())) for file in installed if file.name == PAGE]
    pages.append(Path(__file__).parents[2] / "docs" / PAGE)
    for page in pages:
        if page.is_file():
            return page.resolve().parent
    return None


def readiness() -> Iterator[Diagnosis]:
    """Say of every use whether this machine is ready for it, and what is in the way."""
    for use in USES:
        faults = [f"{finding.about}: {finding.text}" for finding in _of_use(use) if finding.level == "fault"]
        level: Level = "note" if faults else "ok"  # nobody has asked for this use
        more = f"; obygaze doctor --for {use} says more"
        yield Diagnosis(f"for {use}", level, f"{_verdict(use, faults)}{more}")


def _verdict(use: Use, in_the_way: Sequence[str]) -> str:
    """Say whether a machine is ready for a use, or else what is in the way."""
    needs = USES[use]
    if in_the_way:
        return f"{needs.work}: not ready: {'; '.join(in_the_way)}"
    if needs.networks and not _installed_version("torch"):
        return f"{needs.work}: ready, with backbones that are no networks; for others, {_remedy('extract')}"
    return f"{needs.work}: ready"


def _of_use(use: Use, backbones: Sequence[str] = (), device: str | None = None) -> Iterator[Diagnosis]:
    """Examine what a use needs of this machine."""
    yield from extras(use)
    if USES[use].networks:
        yield from devices(device)
        yield from weights_of(backbones) if backbones else weights()
    yield from cores()


def _found(about: str, text: str, *, note: str = "", fault: str = "") -> Diagnosis:
    """Make a finding; what is wrong, and the remedy, follow the text."""
    return Diagnosis(about, "fault" if fault else "note" if note else "ok", f"{text}{fault or note}")


def extras(use: Use | None) -> Iterator[Diagnosis]:
    """Compare the base install and every extra with the versions that obygaze declares.

    Parameters
    ----------
    use
        The work by which a lack is judged; None judges the base install alone.
    """
    shown: set[str] = set()
    blamed: set[str] = set()
    for extra, packages in declared_packages().items():
        yield _extra(extra, [package for package in packages if package.name not in shown], use)
        shown |= {package.name for package in packages}
        for package in packages:
            problem = _problem(package)
            level = _level_of(extra, problem, use)
            if level in {"note", "fault"} and package.name not in blamed:
                blamed.add(package.name)
                yield Diagnosis(package.name, level, f"{problem}, needed: {package}; {_remedy(extra)}")


def declared_packages() -> dict[str, list[Requirement]]:
    """List the packages that obygaze declares: extra -> all that it brings; "" is the base install.

    Those that others bring along come first.
    """
    metadata = importlib.metadata.metadata("obygaze")
    extra_names = set(metadata.get_all("Provides-Extra") or []) - DEVELOPMENT
    names = sorted(extra_names, key=lambda name: (name not in BROUGHT_ALONG, name != "video", name))
    declared = [Requirement(words) for words in importlib.metadata.requires("obygaze") or []]
    packages: dict[str, list[Requirement]] = {"": [], **{name: [] for name in names}}
    for package in declared:
        if package.marker is None or package.marker.evaluate({"extra": ""}):
            packages[""].append(package)
            continue
        for name in names:
            if package.marker.evaluate({"extra": name}):
                packages[name].append(package)
    return packages


def _extra(extra: str, packages: list[Requirement], use: Use | None) -> Diagnosis:
    """Describe one extra: its packages with their versions, and how to install it where it lacks one."""
    about = f"extra {extra}" if extra else "base install"
    versions = {package.name: _installed_version(package.name) for package in packages}
    text = ", ".join(f"{name} {version or '(not installed)'}" for name, version in versions.items())
    if all(versions.values()):
        return Diagnosis(about, "ok", text)
    level = _level_of(extra, "not installed", use)
    return Diagnosis(about, level, f"{text}; a part is missing: {_remedy(extra)}")


def _remedy(extra: str) -> str:
    """Return the command that installs an extra, or the base install."""
    return install_command(f"obygaze[{extra}]" if extra else "obygaze")


def _installed_version(name: str) -> str:
    """Return the version of an installed distribution; empty if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _problem(package: Requirement) -> str:
    """Say what is wrong with a package: it is not installed, or of another version; empty if nothing is."""
    version = _installed_version(package.name)
    if not version:
        return "not installed"
    return "" if package.specifier.contains(version, prereleases=True) else version


def _level_of(extra: str, problem: str, use: Use | None) -> Level:
    """Judge a problem of a package by what the work needs of its extra."""
    if not problem:
        return "ok"
    needs = None if use is None else USES[use]
    if not extra or (needs and extra in needs.extras):
        return "fault"
    if needs is None or extra not in needs.helpful:
        return "absent"
    is_another_version = problem != "not installed"
    return "fault" if is_another_version else "note"  # what is there would be used, and fail


def devices(wanted: str | None = None) -> Iterator[Diagnosis]:
    """List the GPUs that torch sees, with their memory.

    Parameters
    ----------
    wanted
        What networks are to run on: a GPU that is named and not there is a fault.
    """
    needs_gpu = (wanted or "").startswith("cuda")
    if needs_gpu and (reason := no_gpu_here()):
        yield _found("gpu", "none", fault=f", and {wanted} is asked for: {reason}")
        return
    try:
        import torch  # noqa: PLC0415 - takes seconds, and is an extra, whose lack is a finding of the versions
    except ImportError:
        if needs_gpu:
            yield _found("gpu", "none without torch", fault=f", and {wanted} is asked for")
        return
    n = torch.cuda.device_count()
    index = (wanted or "").partition(":")[2]
    if needs_gpu and int(index or 0) >= n:
        build = f"torch {torch.__version__}, built for CUDA {torch.version.cuda}, sees {n} GPUs"
        yield _found("gpu", build, fault=f", and {wanted} is asked for")
    elif not n and NODE_GPUS.is_dir():
        build = f"{torch.__version__}, built for CUDA {torch.version.cuda}"
        yield _found("gpu", f"torch {build}", fault=", sees no GPU, although this machine has some")
    elif not n:
        yield _found("gpu", "none", note=": networks run on the CPU, some hundred times slower")
    for number in range(n):
        free, total = torch.cuda.mem_get_info(number)
        name = torch.cuda.get_device_name(number)
        text = f"cuda:{number} {name}, {free / GB:.1f} of {total / GB:.1f} GB free"
        remedy = ": others use it; choose another with CUDA_VISIBLE_DEVICES or --device"
        yield _found("gpu", text, fault=remedy if free < LEAST_GPU_BYTES else "")
    if n:
        here = usable_cores() / n
        slow = f": decoding sets the pace; such a card takes what {FEWEST_CORES} to {MOST_CORES} cores decode"
        yield _found("decoding", f"{here:.3g} cores a card", note=slow if here < FEWEST_CORES else "")


def weights() -> Iterator[Diagnosis]:
    """List the usual weights of backbones in the hub's cache, each with the commit that pins it."""
    from obygaze_features.backbones.weights import HUB, how_to_get  # noqa: PLC0415 - heavy

    absent: list[str] = []
    for name, named in HUB.items():
        commit = _cached_commit(named)
        if commit is None:
            return
        if commit:
            yield _pinned(name, named, commit)
        else:
            absent.append(named)
            yield _found(
                "weights", f"{name}: {named} is not in the cache", note=f": obygaze weights fetch {name}"
            )
    if absent:
        yield Diagnosis("weights", "note", how_to_get(absent[0]))


def weights_of(backbones: Sequence[str]) -> Iterator[Diagnosis]:
    """Look for the usual weights of backbones in the hub's cache: a job may not be able to fetch them.

    Parameters
    ----------
    backbones
        Each a NAME, or NAME=WEIGHTS for others of the hub.

    Raises
    ------
    BackboneError
        If there is no such backbone.
    """
    from obygaze_features.backbones.registry import backbone_options, is_known_network  # noqa: PLC0415 - heavy
    from obygaze_features.backbones.weights import HUB, how_to_get, hub_name  # noqa: PLC0415 - heavy

    for backbone in backbones:
        name, _, source = backbone.partition("=")
        backbone_options(name)
        named = hub_name(source or HUB.get(name, ""))
        commit = _cached_commit(named) if named else None
        if not named:
            text = "its weights are given by --weights" if is_known_network(name) else "needs none of the hub"
            yield Diagnosis("weights", "ok", f"{name}: {text}")
        elif commit:
            yield _pinned(name, named, commit)
        elif commit is not None:
            text = f"{name}: the cache has no tensors of {named}. {how_to_get(named)}"
            yield Diagnosis("weights", "fault", text)


def _pinned(name: str, named: str, commit: str) -> Diagnosis:
    """Say that weights are in the cache, and how every job gets the same ones."""
    from huggingface_hub import is_offline_mode  # noqa: PLC0415 - an extra

    repository = _repository(named)
    pin = f"; pin it with --weights {name}={repository}@{commit}, or set HF_HUB_OFFLINE=1"
    note = "" if is_offline_mode() or "@" in named else pin
    return _found("weights", f"{name}: {named} is in the cache, {commit}", note=note)


def _repository(named: str) -> str:
    """Return the repository of weights that the hub, or OpenCLIP, knows by this name."""
    from obygaze_features.backbones.weights import OPENCLIP  # noqa: PLC0415 - heavy

    return OPENCLIP[named].repository if named in OPENCLIP else named.partition("@")[0]


def _cached_commit(named: str) -> str | None:
    """Return the commit whose tensors the hub's cache has; empty without, None where no hub is installed."""
    from obygaze_features.backbones.weights import cached_tensors  # noqa: PLC0415 - heavy

    try:
        paths = cached_tensors(named)
    except ImportError:
        return None
    return paths[0].parent.name if paths else ""


def cores() -> Iterator[Diagnosis]:
    """Count the usable cores, and compare them with what Slurm allotted."""
    n = usable_cores()
    allotted = os.environ.get("SLURM_CPUS_PER_TASK", "")
    bound = allotted.isdecimal() and n < int(allotted)
    note = f", although --cpus-per-task={allotted}; use srun --cpu-bind=none" if bound else ""
    yield _found("cores", f"{n} usable of {os.cpu_count()}", note=note)


def examine_place(path: Path) -> Iterator[Diagnosis]:
    """Test what a stage needs of a file system: writing, fsync, locks, space and inodes."""
    folder = existing_folder(path)
    kind, options = mount_of(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".obygaze-doctor-", dir=folder) as trial:
            yield _found("path", f"{folder} can be written to ({kind})")
            with (Path(trial) / "file").open("wb", buffering=0) as file:
                file.write(b"a clip")
                os.fsync(file.fileno())
            yield _found("locks", f"on {kind}", fault=_without_locks(Path(trial) / "file", options))
            if problem := clock_problem(Path(trial)):
                yield Diagnosis("clock", "note", problem)
    except OSError as error:
        yield _found("path", f"no stage can be kept in {folder}", fault=f": {error.strerror or error}")
        return
    free = free_space(folder)
    hint = "; `obygaze extract ... --dry-run` shows what is needed"
    yield _found("space", f"{free.bytes / GB:,.1f} GB free", note=hint if free.bytes < FEW_BYTES else "")
    if free.files is not None:
        yield _found("inodes", f"{free.files:,} free", note=hint if free.files < FEW_INODES else "")


def _without_locks(path: Path, options: str) -> str:
    """Say what the locks of a file system lack: take a lock twice, the second attempt must fail."""
    if local := LOCAL_LOCKS.search(options):
        return f", mounted with {local[1]}: other nodes do not see the locks of this one; extract on one node"
    with path.open("rb") as first, path.open("rb") as second:
        try:
            hold(first.fileno(), path)
            both = hold(second.fileno(), path, wait=False)
        except StoreError as error:
            return f": {error}"
    return ": two processes can both lock a file; choose a place on another file system" if both else ""


def mount_of(folder: Path) -> tuple[str, str]:
    """Return the type and the options of a folder's file system; unknown where /proc does not list them."""
    lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines() if MOUNTS.exists() else []
    mounts = {line.split()[1].replace("\\040", " "): line.split()[2:4] for line in lines}
    parents = (str(parent) for parent in (folder, *folder.parents))
    kind, options = next((mounts[parent] for parent in parents if parent in mounts), ("unknown", ""))
    return kind, options
