"""Limit the time and memory of a process that reads what strangers made, and keep it off the network.

Linux keeps a process to its limits. macOS keeps it to its time and Windows to nothing: there the parent
watches (`excess`). On Linux the system itself refuses sockets, to C code too; elsewhere Python does.
"""

import ctypes
import os
import platform
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

CPU_S: Final = 60
CPU_S_PER_10_MB: Final = 20
"""Seconds of processor time for any file, and further ones for each 10 MB of it."""
MEMORY: Final = 1 << 28
MEMORY_PER_BYTE: Final = 30
"""Bytes of memory above what the process has before it reads, and further ones for each byte of the file."""

_SYSTEM_CALLS: Final = {"x86_64": (0xC000003E, (41, 425)), "aarch64": (0xC00000B7, (198, 425))}
"""Of a processor: its number, those of `socket` and `io_uring_setup`. Source: linux/audit.h, asm/unistd.h."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_PLACE_OF_NUMBER = 0
_PLACE_OF_ARCHITECTURE = 4
_OTHER_NUMBERS: Final = 0x40000000
"""From here on are the numbers of a second set of system calls, x32."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _SIGNAL_OF_PARENT = 38, 22, 2, 1
_KILL = 9
"""The number of SIGKILL, which Python does not know on Windows."""


class Limits(NamedTuple):
    """What reading a file may take.

    Attributes
    ----------
    cpu_s
        Processor time in seconds.
    memory
        Bytes above what the process has before it reads.
    """

    cpu_s: int
    memory: int


class Used(NamedTuple):
    """What a process has used: processor time in seconds, and memory in bytes (on Windows the most)."""

    cpu_s: float
    memory: int


def limits_of(size: int) -> Limits:
    """Return the processor time and memory that reading a file may take, given the file's size in bytes.

    Examples
    --------
    >>> limits_of(25_000_000)
    Limits(cpu_s=100, memory=1018435456)
    """
    cpu_s = CPU_S + CPU_S_PER_10_MB * (size // 10_000_000)
    return Limits(cpu_s, memory=MEMORY + MEMORY_PER_BYTE * size)


def keep_to(limits: Limits) -> None:
    """Limit the processor time and memory that this process may use from now on.

    What it has used before does not count. It may be called again with other limits. macOS limits only the
    time, and Windows nothing; there the parent process watches its child (`excess`).
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not on Windows

    used = resource.getrusage(resource.RUSAGE_SELF)
    used_s = int(used.ru_utime + used.ru_stime)
    _set_soft_limit(resource.RLIMIT_CPU, used_s + limits.cpu_s + 1)  # + 1, as used_s is rounded down
    if sys.platform == "linux":
        _set_soft_limit(resource.RLIMIT_DATA, _own_memory() + limits.memory)


def _set_soft_limit(kind: int, wanted: int) -> None:
    """Set the soft limit of a resource, which may not be above its hard limit."""
    import resource  # noqa: PLC0415 - not on Windows

    _, hard_limit = resource.getrlimit(kind)
    allowed = wanted if hard_limit == resource.RLIM_INFINITY else min(wanted, hard_limit)
    resource.setrlimit(kind, (allowed, hard_limit))


def _own_memory() -> int:
    """Return the bytes of data memory that this process has asked for, without the code of libraries."""
    # The fields are numbers of pages: size, resident, shared, text, lib, data, dt (man proc_pid_statm).
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    n_pages_of_data = int(fields[5])
    return n_pages_of_data * os.sysconf("SC_PAGE_SIZE")


# --- no network
# ---------------------------------------------------------------------------
class _Instruction(ctypes.Structure):
    """An instruction of a filter of system calls, as the kernel reads it (`sock_filter`)."""

    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("value", ctypes.c_uint),
    )


class _Step(NamedTuple):
    """An instruction of the filter, whose fields are those of `_Instruction`.

    Attributes
    ----------
    code
        What it does.
    skip_if_true, skip_if_false
        How many of the next steps to skip after a comparison that is true, or false.
    value
        What it compares with, loads or returns.
    """

    code: int
    skip_if_true: int = 0
    skip_if_false: int = 0
    value: int = 0


class _Program(ctypes.Structure):
    """A filter of system calls, as the kernel reads it (`sock_fprog`): its instructions and their number."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


@cache
def without_network() -> None:
    """Prevent this process from opening sockets for the rest of its life.

    On Linux the kernel refuses them; elsewhere a hook of Python does.
    """
    if sys.platform == "linux" and platform.machine() in _SYSTEM_CALLS and _filter_calls():
        return
    sys.addaudithook(_refuse_sockets)


def _filter_calls() -> bool:
    """Install a seccomp filter that refuses the system calls of this process that create sockets.

    The filter is a small BPF program that the kernel runs for each call: it refuses or allows the call. The
    program goes from step to step. A comparison skips as many of the next steps as it states for its outcome.
    Here each comparison has one step behind it that refuses the call, and skips it if the call is not to be
    refused. The last step allows all calls that were not refused.

    Returns
    -------
    bool
        Whether the kernel accepted the filter.
    """
    architecture, refused_calls = _SYSTEM_CALLS[platform.machine()]
    refuse = _Step(_RETURN, value=_REFUSE)
    steps = [
        _Step(_LOAD, value=_PLACE_OF_ARCHITECTURE),
        # If it is equal, go on. Numbers of another architecture mean other calls: refuse all of them.
        _Step(_EQUAL, skip_if_true=1, value=architecture),
        refuse,
        _Step(_LOAD, value=_PLACE_OF_NUMBER),
        # If the number is below, go on. From this number on, some architectures have a second set of numbers
        # for the same calls: refuse all of them.
        _Step(_AT_LEAST, skip_if_false=1, value=_OTHER_NUMBERS),
        refuse,
    ]
    for call in refused_calls:
        # If it is not this call, go on.
        steps += [_Step(_EQUAL, skip_if_false=1, value=call), refuse]
    steps.append(_Step(_RETURN, value=_ALLOW))

    # As an array of C, of structures that have the fields of `_Step`.
    array_of_instructions = _Instruction * len(steps)
    instructions = array_of_instructions(*(_Instruction(*step) for step in steps))
    program = _Program(len(steps), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    # Without this promise, only root may install a filter.
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0)


def _refuse_sockets(event: str, _: tuple[Any, ...]) -> None:
    """Raise an error when Python is about to make a socket; called for every audited event."""
    if event == "socket.__new__":
        raise PermissionError("no network where files of strangers are read")


def end_with_parent() -> None:
    """Make Linux kill this process when its parent process ends, even if the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENT, _KILL, 0, 0, 0)


def peak_bytes(usage: Any) -> int:
    """Return the most memory (resident set) that a process had, in bytes, by its usage of resources.

    `usage` is what `resource.getrusage` and `os.wait4` return. macOS counts in bytes, other systems in KiB.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    return int(usage.ru_maxrss) * unit


# --- watched by the parent
# ---------------------------------------------------------------------------
SYSTEM_KEEPS_LIMITS: Final = sys.platform == "linux"
"""Whether the system keeps a process to all its limits; else its parent must watch it."""


def used_by(pid: int) -> Used:
    """Return the time and memory that another process has used; zeros if it has ended, or where unknown."""
    if sys.platform == "win32":
        return _used_on_windows(pid)
    # Linux and macOS limit the time themselves, so that it is not needed.
    if sys.platform == "linux":
        return Used(cpu_s=0.0, memory=_memory_on_linux(pid))
    else:  # noqa: RET505 - without it a type checker takes what follows as never reached
        return Used(cpu_s=0.0, memory=_memory_on_macos(pid))


def _memory_on_linux(pid: int) -> int:
    """Return the bytes of memory that a process has; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    n_pages = int(fields[1])  # those that are in memory now (man proc_pid_statm)
    return n_pages * os.sysconf("SC_PAGE_SIZE")


def _memory_on_macos(pid: int) -> int:
    """Return the bytes of memory that a process has, which `ps` says in KB; 0 if it has ended."""
    command = ["/bin/ps", "-o", "rss=", "-p", str(pid)]  # prints the memory alone, without a heading
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    words = result.stdout.split()
    return int(words[0]) * 1024 if words else 0


def excess(pid: int, limits: Limits, before: Used) -> str:
    """Return which limit a process has exceeded: "time", "memory", or "" if none.

    Parameters
    ----------
    pid
        The process.
    limits
        What it may use.
    before
        What it had used before its task, which does not count.
    """
    now = used_by(pid)
    if now.cpu_s - before.cpu_s > limits.cpu_s:
        return "time"
    if now.memory - before.memory > limits.memory:
        return "memory"
    return ""


_QUERY_INFORMATION, _READ_MEMORY = 0x0400, 0x0010
"""Rights to a process that reading its counters takes: PROCESS_QUERY_INFORMATION and PROCESS_VM_READ. Source:
winnt.h."""
_COUNTERS, _MAX_COMMITTED = 10, 8
"""Number of 64-bit words of PROCESS_MEMORY_COUNTERS_EX, and the index of its PeakPagefileUsage. The word at
index 0 holds two numbers of 32 bits. Source: psapi.h."""
_TICKS_PER_SECOND = 1e7
"""Windows counts processor time in units of 100 ns."""


def _used_on_windows(pid: int) -> Used:
    """Ask Windows for the processor time and the committed memory of a process; 0 for both if it is gone."""
    # A new object, not `ctypes.windll`, which all libraries share: the type of a result is set on it.
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(_QUERY_INFORMATION | _READ_MEMORY, 0, pid)
    if not handle:
        return Used(cpu_s=0.0, memory=0)

    # What Windows fills: its counters of memory, and four times (each in `_TICKS_PER_SECOND`).
    counters = (ctypes.c_size_t * _COUNTERS)()
    created = ctypes.c_ulonglong()
    ended = ctypes.c_ulonglong()
    in_kernel = ctypes.c_ulonglong()
    in_user_code = ctypes.c_ulonglong()
    times = (created, ended, in_kernel, in_user_code)
    try:
        kernel.K32GetProcessMemoryInfo(ctypes.c_void_p(handle), counters, ctypes.sizeof(counters))
        kernel.GetProcessTimes(ctypes.c_void_p(handle), *map(ctypes.byref, times))
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))

    cpu_s = (in_kernel.value + in_user_code.value) / _TICKS_PER_SECOND
    return Used(cpu_s, int(counters[_MAX_COMMITTED]))
