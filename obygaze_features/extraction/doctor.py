"""Check a machine and the folder of a store for what one kind of work needs, before hours go into it."""

import importlib.metadata
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from obygaze_features.cores import NODE_GPUS, no_gpu_here, usable_cores
from obygaze_features.errors import StoreError, install_command
from obygaze_features.extraction.uses import USES, Use
from obygaze_features.locks import hold
from obygaze_features.machine import clock_problem, host_name
from obygaze_features.store.disk_usage import existing_folder, free_space
from obygaze_features.text import three_digits

GB = 1e9
FEWEST_CORES = 88
MAX_CORES = 380
"""Fewest and most cores that decode film as fast as an H200 computes one of three networks (docs/gpu.md)."""
MIN_GPU_BYTES = 2 * GB
"""Free memory that the smallest network needs for one clip."""
FEW_BYTES = 20 * GB
FEW_INODES = 100_000
"""Free bytes and inodes below which the space is noted."""
FIRST_PAGE = "first-hour.md"
"""The page that a newcomer reads first."""

LOCAL_LOCK_OPTIONS = re.compile(r"(?:^|,)(localflock|nolock|local_lock=(?:all|flock))(?:,|$)")
"""Options of a mounted file system whose locks other machines do not see."""
MOUNTS = Path("/proc/self/mounts")
"""Linux's list of mounted file systems."""

Level = Literal["ok", "note", "fault", "absent"]

DEVELOPMENT_EXTRAS = frozenset({"dev", "docs", "benchmarks"})
"""Extras of this project's own development."""


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
        The work; by default `extract`. If nothing at all is given, it is reported for every kind of work
        whether this machine is ready for it.
    backbones
        Backbones that are to run here, whose weights are looked for; empty looks for no particular ones.
    device
        Device that networks are to run on; None is any.

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
    version_text = importlib.metadata.version("obygaze")
    pages = docs_folder()
    if pages is not None:
        version_text += f"; its pages, from first-hour.md on, are in {pages}"
    findings = [_diagnosis("host", host), _diagnosis("obygaze", version_text)]

    is_general_check = use is None and path is None and not backbones and device is None
    if is_general_check:
        return [*findings, *extras(use=None), *cores(), *readiness()]

    examined_use = use or "extract"
    findings += _examine_use(examined_use, backbones, device)
    if path is not None:
        findings += examine_place(Path(path))

    names_of_faults = [finding.about for finding in findings if finding.level == "fault"]
    level: Level = "fault" if names_of_faults else "ok"
    return [*findings, Diagnosis(f"for {examined_use}", level, _verdict(examined_use, names_of_faults))]


def docs_folder() -> Path | None:
    """Return the folder of this installation's documentation, which messages name; None if it has none.

    It is the folder of `FIRST_PAGE`: among the files of an installed wheel, or `docs` of a checkout.
    """
    installed_files = importlib.metadata.distribution("obygaze").files or []
    possible_pages = [Path(str(file.locate())) for file in installed_files if file.name == FIRST_PAGE]
    possible_pages.append(Path(__file__).parents[2] / "docs" / FIRST_PAGE)
    for page in possible_pages:
        if page.is_file():
            return page.resolve().parent
    return None


def readiness() -> Iterator[Diagnosis]:
    """Report for every kind of work whether this machine is ready for it, and if not, why."""
    for use in USES:
        findings = _examine_use(use)
        faults = [f"{finding.about}: {finding.text}" for finding in findings if finding.level == "fault"]
        level: Level = "note" if faults else "ok"  # no fault, since nobody has asked for this use
        yield Diagnosis(f"for {use}", level, f"{_verdict(use, faults)}; obygaze doctor --for {use} says more")


def _verdict(use: Use, faults: Sequence[str]) -> str:
    """Return a sentence on whether the machine is ready for a kind of work, with the faults if it is not.

    Work with networks is also ready without torch: some backbones, such as `descriptors`, are no
    networks.
    """
    needs = USES[use]
    if faults:
        return f"{needs.work}: not ready: {'; '.join(faults)}"
    if needs.networks and not _installed_version("torch"):
        return f"{needs.work}: ready, with backbones that are no networks; for others, {_remedy('extract')}"
    return f"{needs.work}: ready"


def _examine_use(use: Use, backbones: Sequence[str] = (), device: str | None = None) -> Iterator[Diagnosis]:
    """Check what one kind of work needs of this machine: packages, GPUs, weights and cores.

    Without `backbones`, the weights of all networks are looked for; without a `device`, networks may run
    on any.
    """
    yield from extras(use)
    if USES[use].networks:
        yield from devices(device)
        yield from cached_weights(backbones) if backbones else weights()
    yield from cores()


def _diagnosis(about: str, text: str, *, note: str = "", fault: str = "") -> Diagnosis:
    """Return the result of a check, with the level `fault` or `note` if something is wrong, else `ok`.

    Parameters
    ----------
    about
        Subject of the check.
    text
        The result.
    note, fault
        What is wrong and the remedy, put right behind the text, so it begins with a comma or colon; empty if
        nothing is wrong. At most one of the two.
    """
    if fault:
        return Diagnosis(about, "fault", f"{text}{fault}")
    if note:
        return Diagnosis(about, "note", f"{text}{note}")
    return Diagnosis(about, "ok", text)


def extras(use: Use | None) -> Iterator[Diagnosis]:
    """Check whether the packages of the base install and of every extra are there, in versions that fit.

    Yields a diagnosis for each extra, and one for each package that is missing or has a wrong version.

    Parameters
    ----------
    use
        The work that decides how bad a missing package is. With None only a package of the base install is a
        fault, and the extras are optional.
    """
    # Several extras may have one package. It is listed with the first of them, and its problem is reported
    # once.
    listed: set[str] = set()
    reported: set[str] = set()
    for extra, packages in declared_packages().items():
        new_packages = [package for package in packages if package.name not in listed]
        yield _examine_extra(extra, new_packages, use)
        listed.update(package.name for package in packages)
        for package in packages:
            problem = _problem(package)
            level = _level_of(extra, problem, use)
            matters_for_use = level in {"note", "fault"}
            if matters_for_use and package.name not in reported:
                reported.add(package.name)
                yield Diagnosis(package.name, level, f"{problem}, needed: {package}; {_remedy(extra)}")


def declared_packages() -> dict[str, list[Requirement]]:
    """List the packages that obygaze declares: extra -> all that it installs; "" is the base install.

    Extras that other extras include come first.
    """
    metadata = importlib.metadata.metadata("obygaze")
    extra_names = set(metadata.get_all("Provides-Extra") or []) - DEVELOPMENT_EXTRAS

    # Those that others include come first, of which `video` is the smallest.
    included_names = [name for name in ("video", "extract") if name in extra_names]
    names_in_order = [*included_names, *sorted(extra_names.difference(included_names))]
    packages: dict[str, list[Requirement]] = {"": []}
    for extra in names_in_order:
        packages[extra] = []

    # A line is such as "torch>=2.4; extra == 'extract'": what follows the semicolon is its marker.
    for line in importlib.metadata.requires("obygaze") or []:
        package = Requirement(line)
        marker = package.marker
        if marker is None or marker.evaluate({"extra": ""}):  # of the base install
            packages[""].append(package)
            continue
        for extra in names_in_order:
            if marker.evaluate({"extra": extra}):
                packages[extra].append(package)
    return packages


def _examine_extra(extra: str, packages: list[Requirement], use: Use | None) -> Diagnosis:
    """Report the packages of one extra with their versions, and how to install it if one is missing.

    The level says how bad that is for the work, as `_level_of` decides.

    Parameters
    ----------
    extra
        Name of the extra (optional group of packages); "" is the base install.
    packages
        Its packages.
    use
        The kind of work; None if none in particular.
    """
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
    """Return what is wrong with a package: "not installed", or its unsuitable version; "" if nothing is.

    The package comes with the versions that are suitable, as in `torch>=2.4`.
    """
    version = _installed_version(package.name)
    if not version:
        return "not installed"
    if package.specifier.contains(version, prereleases=True):
        return ""
    return version


def _level_of(extra: str, problem: str, use: Use | None) -> Level:
    """Return how bad a package's problem is, by whether the work needs the extra that the package is in.

    An extra may be needed for the work, helpful for a part of it, or not be used by it: then its package
    counts as `absent`.

    Parameters
    ----------
    extra
        Name of the extra; "" is the base install.
    problem
        What is wrong with the package, as `_problem` returns it; "" if nothing is.
    use
        The kind of work; None if none in particular.
    """
    if not problem:
        return "ok"
    is_base_install = extra == ""
    if is_base_install:
        return "fault"
    if use is None:
        return "absent"
    if extra in USES[use].extras:
        return "fault"
    if extra not in USES[use].helpful:
        return "absent"
    # Without a helpful package a part of the work is missing. One of a wrong version would be used, and fail.
    return "note" if problem == "not installed" else "fault"


def devices(wanted: str | None = None) -> Iterator[Diagnosis]:
    """Report the GPUs that torch sees, with their memory, and whether cores can keep them busy.

    Parameters
    ----------
    wanted
        Device that networks are to run on; it is a fault if a named GPU does not exist.
    """
    needs_gpu = wanted is not None and wanted.startswith("cuda")
    no_gpu_reason = no_gpu_here() if needs_gpu else None
    if no_gpu_reason:
        yield _diagnosis("gpu", "none", fault=f", and {wanted} is asked for: {no_gpu_reason}")
        return
    try:
        import torch  # noqa: PLC0415 - takes seconds, and is an extra
    except ImportError:  # which `extras` reports
        if needs_gpu:
            yield _diagnosis("gpu", "none without torch", fault=f", and {wanted} is asked for")
        return

    n_gpus = torch.cuda.device_count()
    build = f"torch {torch.__version__}, built for CUDA {torch.version.cuda}"
    machine_has_gpus = NODE_GPUS.is_dir()  # as the operating system says
    if needs_gpu and _device_index(wanted) >= n_gpus:
        yield _diagnosis("gpu", f"{build}, sees {n_gpus} GPUs", fault=f", and {wanted} is asked for")
    elif n_gpus == 0 and machine_has_gpus:
        yield _diagnosis("gpu", build, fault=", sees no GPU, although this machine has some")
    elif n_gpus == 0:
        yield _diagnosis("gpu", "none", note=": networks run on the CPU, some hundred times slower")
    for number in range(n_gpus):
        yield _gpu(number)
    if n_gpus > 0:
        yield _cores_per_gpu(n_gpus)


def _cores_per_gpu(n_gpus: int) -> Diagnosis:
    """Report how many cores decode for each GPU, and note if they are too few to keep it busy.

    `FEWEST_CORES` to `MAX_CORES` cores, by the network, decode film as fast as an H200 computes the network.
    """
    cores_per_gpu = usable_cores() / n_gpus
    note = ""
    if cores_per_gpu < FEWEST_CORES:
        note = f": decoding sets the pace; such a card takes what {FEWEST_CORES} to {MAX_CORES} cores decode"
    return _diagnosis("decoding", f"{three_digits(cores_per_gpu)} cores a card", note=note)


def _device_index(device: str | None) -> int:
    """Return the index of a device: 1 for `cuda:1`, and 0 for `cuda` or None."""
    if device is None or ":" not in device:
        return 0
    _, _, index = device.partition(":")
    return int(index or 0)


def _gpu(number: int) -> Diagnosis:
    """Report the name and free memory of a GPU; it is a fault if other processes leave too little of it."""
    import torch  # noqa: PLC0415 - takes seconds

    free, total = torch.cuda.mem_get_info(number)
    name = torch.cuda.get_device_name(number)
    text = f"cuda:{number} {name}, {free / GB:.1f} of {total / GB:.1f} GB free"
    fault = ""
    if free < MIN_GPU_BYTES:
        fault = ": others use it; choose another with CUDA_VISIBLE_DEVICES or --device"
    return _diagnosis("gpu", text, fault=fault)


def weights() -> Iterator[Diagnosis]:
    """Report for each network whether its default weights are in the cache of the Hugging Face Hub.

    If some are not, the last diagnosis says how to get weights, by the example of the first of them.
    """
    if not _has_hub_client():  # nothing is known of its cache
        return
    from obygaze_features.backbones.weights import HUB, how_to_get  # noqa: PLC0415 - heavy

    absent: list[str] = []  # names of weights
    for backbone, hub_weights in HUB.items():
        commit = _cached_commit(hub_weights)
        if commit is not None:
            yield _cached_weights_diagnosis(backbone, hub_weights, commit)
        else:
            absent.append(hub_weights)
            text = f"{backbone}: {hub_weights} is not in the cache"
            yield _diagnosis("weights", text, note=f": obygaze weights fetch {backbone}")
    if absent:
        yield Diagnosis("weights", "note", how_to_get(absent[0]))


def cached_weights(backbones: Sequence[str]) -> Iterator[Diagnosis]:
    """Report whether the weights of some networks are in the Hugging Face Hub's cache on this machine.

    Jobs on a cluster often cannot download them.

    Parameters
    ----------
    backbones
        Each a NAME, or NAME=WEIGHTS for other weights of the hub.

    Raises
    ------
    BackboneError
        If there is no such backbone.
    """
    from obygaze_features.backbones.registry import backbone_options, is_known_network  # noqa: PLC0415 - heavy
    from obygaze_features.backbones.weights import HUB, how_to_get, hub_name  # noqa: PLC0415 - heavy

    for backbone in backbones:
        name, _, weights_name = backbone.partition("=")
        backbone_options(name)  # refuses a name that no backbone has
        hub_weights = hub_name(weights_name or HUB.get(name, ""))
        if not hub_weights:
            text = "its weights are given by --weights" if is_known_network(name) else "needs none of the hub"
            yield Diagnosis("weights", "ok", f"{name}: {text}")
            continue
        if not _has_hub_client():  # which `extras` reports as missing
            continue
        commit = _cached_commit(hub_weights)
        if commit is not None:
            yield _cached_weights_diagnosis(name, hub_weights, commit)
        else:
            text = f"{name}: the cache has no tensors of {hub_weights}. {how_to_get(hub_weights)}"
            yield Diagnosis("weights", "fault", text)


def _cached_weights_diagnosis(backbone: str, hub_weights: str, commit: str) -> Diagnosis:
    """Report the commit of weights that are in the cache; note how to pin it unless it is pinned.

    Weights are pinned if their name has a commit, or if the Hugging Face Hub is not asked for newer ones.

    Parameters
    ----------
    backbone
        Name of the network.
    hub_weights
        Name of its weights on the Hub, perhaps with a commit (`name@commit`).
    commit
        The commit in the cache.
    """
    from huggingface_hub import is_offline_mode  # noqa: PLC0415 - an extra

    repository = _repository(hub_weights)
    is_pinned = is_offline_mode() or "@" in hub_weights
    note = ""
    if not is_pinned:
        note = f"; pin it with --weights {backbone}={repository}@{commit}, or set HF_HUB_OFFLINE=1"
    return _diagnosis("weights", f"{backbone}: {hub_weights} is in the cache, {commit}", note=note)


def _repository(hub_weights: str) -> str:
    """Return the repository OWNER/NAME of weights on the Hugging Face Hub.

    Parameters
    ----------
    hub_weights
        Name of a model of OpenCLIP, or the repository itself, perhaps with a commit (OWNER/NAME@COMMIT).
    """
    from obygaze_features.backbones.weights import OPENCLIP  # noqa: PLC0415 - heavy

    if hub_weights in OPENCLIP:
        return OPENCLIP[hub_weights].repository
    return hub_weights.partition("@")[0]


def _has_hub_client() -> bool:
    """Return whether the client of the Hugging Face Hub is installed, which knows its cache."""
    try:
        import huggingface_hub  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def _cached_commit(hub_weights: str) -> str | None:
    """Return the commit of weights in the cache of the Hugging Face Hub; None if some are not there."""
    from obygaze_features.backbones.weights import cached_tensors  # noqa: PLC0415 - heavy

    paths = cached_tensors(hub_weights)
    if not paths:
        return None
    return paths[0].parent.name  # the cache has a folder for each commit


def cores() -> Iterator[Diagnosis]:
    """Report how many cores this process may use, and note if Slurm allotted more to its task."""
    n_usable = usable_cores()
    n_allotted = os.environ.get("SLURM_CPUS_PER_TASK", "")
    note = ""
    if n_allotted.isdecimal() and n_usable < int(n_allotted):
        note = f", although --cpus-per-task={n_allotted}; use srun --cpu-bind=none"
    yield _diagnosis("cores", f"{n_usable} usable of {os.cpu_count()}", note=note)


def examine_place(path: Path) -> Iterator[Diagnosis]:
    """Check whether a folder can hold an unfinished store (a stage), by making a small folder there.

    A stage needs files that can be written and flushed, locks, a clock that agrees with this machine's, free
    bytes and free inodes.
    """
    folder = existing_folder(path)
    mount = mount_of(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=".obygaze-doctor-", dir=folder) as trial:
            yield _diagnosis("path", f"{folder} can be written to ({mount.kind})")

            trial_file = Path(trial) / "file"
            with trial_file.open("wb", buffering=0) as file:
                file.write(b"a clip")
                os.fsync(file.fileno())  # raises an OSError if bytes cannot be flushed to the disk

            lock_problem = _problem_of_locks(trial_file, mount.options)
            yield _diagnosis("locks", f"on {mount.kind}", fault=lock_problem)

            clock_note = clock_problem(Path(trial))
            if clock_note:
                yield Diagnosis("clock", "note", clock_note)
    except OSError as error:
        yield _diagnosis("path", f"no stage can be kept in {folder}", fault=f": {error.strerror or error}")
        return
    yield from _examine_space(folder)


def _examine_space(folder: Path) -> Iterator[Diagnosis]:
    """Report the free bytes and inodes (files that fit) of a file system, and note if they are few."""
    free = free_space(folder)
    hint = "; `obygaze extract ... --dry-run` shows what is needed"
    note_on_bytes = hint if free.bytes < FEW_BYTES else ""
    yield _diagnosis("space", f"{three_digits(free.bytes / GB)} GB free", note=note_on_bytes)
    if free.files is not None:  # None where the file system has no limit
        note_on_inodes = hint if free.files < FEW_INODES else ""
        yield _diagnosis("inodes", f"{free.files:,} free", note=note_on_inodes)


def _problem_of_locks(path: Path, options: str) -> str:
    """Return what is wrong with the file locks of a file system; empty if they work.

    Parameters
    ----------
    path
        A file, which is locked twice: the second lock must fail.
    options
        Options with which the file system is mounted.
    """
    local_locks = LOCAL_LOCK_OPTIONS.search(options)
    if local_locks:
        option = local_locks[1]
        return f", mounted with {option}: other nodes do not see the locks of this one; extract on one node"

    with path.open("rb") as first, path.open("rb") as second:
        try:
            hold(first.fileno(), path)  # held until the file is closed
            is_locked_twice = hold(second.fileno(), path, wait=False)
        except StoreError as error:
            return f": {error}"
    if is_locked_twice:
        return ": two processes can both lock a file; choose a place on another file system"
    return ""


class Mount(NamedTuple):
    """Type and options of a mounted file system; `unknown` and empty if the system does not list them."""

    kind: str
    options: str


def mount_of(folder: Path) -> Mount:
    """Return type and options of the file system that holds a folder, as Linux lists it in /proc.

    The folder is absolute. The file system is that of the nearest of its parents that is a mount point.
    """
    if not MOUNTS.exists():  # not Linux
        return Mount("unknown", "")

    mounts = {}  # mount point -> its file system
    for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
        _device, mount_point, kind, options = line.split()[:4]
        mounts[mount_point.replace("\\040", " ")] = Mount(kind, options)  # \040 is a space

    for parent in (folder, *folder.parents):
        if str(parent) in mounts:
            return mounts[str(parent)]
    return Mount("unknown", "")
