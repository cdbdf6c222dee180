"""With SIMULATED=windows or macos: have modules of obygaze see a Python as that system has it.

Their imports of os, sys, signal and so on give views in which functions are missing or behave otherwise; the
rules of a file system hold for all modules. Not simulated: backslashes in paths, drives, letters of either
case, virus scanners, the start of processes.
"""

import builtins
import ctypes
import errno
import fcntl
import io
import ntpath
import os
import re
import signal
import sys
from types import ModuleType, SimpleNamespace

SYSTEM = os.environ.get("SIMULATED", "")

OS_OF_LINUX = """
    fork forkpty getuid geteuid getgid getegid getpgid setsid killpg pread preadv pwrite pwritev
    readv writev posix_fallocate posix_fadvise sched_getaffinity sched_setaffinity sched_yield
    statvfs fstatvfs fchmod chown fchown nice uname wait waitpid wait4 WIFEXITED WIFSIGNALED
    WEXITSTATUS WTERMSIG mkfifo mknod openpty sendfile copy_file_range memfd_create eventfd
    getloadavg sysconf sync fdatasync O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_SYNC O_DIRECT
    O_TMPFILE register_at_fork posix_spawn getxattr setxattr lockf pipe2 environb
"""
SIGNALS_OF_LINUX = """
    SIGHUP SIGKILL SIGPIPE SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGSTOP SIGQUIT alarm setitimer
    pthread_sigmask
"""
OS_NOT_ON_MACOS = """
    memfd_create posix_fallocate posix_fadvise sched_getaffinity sched_setaffinity copy_file_range
    fdatasync pipe2
"""
MODULES_NOT_ON_WINDOWS = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix"}
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')
LONGEST_PATH = 259
O_BINARY = 1 << 40
ELSEWHERE = ("/proc", "/dev", "/sys", "/usr", "/etc")
PASSED_OVER = {"pathlib", "io", "contextlib", "tempfile", "shutil", "zipfile", "codecs", __name__}

real = SimpleNamespace(
    **{
        name: getattr(os, name)
        for name in [
            "open",
            "write",
            "close",
            "fsync",
            "replace",
            "rename",
            "unlink",
            "rmdir",
            "mkdir",
            "link",
            "symlink",
        ]
    },
    iopen=io.open,
    imports=builtins.__import__,
)


class View(ModuleType):
    """A module as another system has it."""

    def __init__(self, module, missing="", **others):
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _missing=set(missing.split()), **others)

    def __getattr__(self, name):
        if name in self._missing:
            raise AttributeError(f"module '{self._module.__name__}' has no attribute '{name}' on {SYSTEM}")
        return getattr(self._module, name)

    def __setattr__(self, name, value):  # monkeypatch of tests
        self.__dict__.pop(name, None)
        setattr(self._module, name, value)


def is_ours(space):
    """Whether a module's globals are those of a module of obygaze."""
    names = (space or {}).get("__name__") or "", (space or {}).get("__package__") or ""
    return any(name.startswith("obygaze") for name in names)


def asked_by_us():
    """Whether the innermost caller outside of the standard library is a module of obygaze."""
    frame = sys._getframe(2)
    while frame and frame.f_globals.get("__name__") in PASSED_OVER:
        frame = frame.f_back
    return frame is not None and is_ours(frame.f_globals)


def show(views, gone=frozenset()):
    """Give modules of obygaze these views, and none of the modules that are gone."""

    def imports(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002 - as __import__ calls them
        if level == 0 and is_ours(globals):
            if name in gone:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in views:
                return views[name]
        return real.imports(name, globals, locals, fromlist, level)

    builtins.__import__ = imports


def check_there(path):
    """Have no module of ours open what only Linux has."""
    if os.fsdecode(path).startswith(("/proc/self/fd", "/sys/", "/dev/shm/")) and asked_by_us():  # noqa: S108
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))


# --- the file system of Windows
# ---------------------------------------------------------------------------
def is_elsewhere(path):
    """Whether a path is none of the user's, which the rules leave alone."""
    return isinstance(path, int) or os.path.abspath(os.fsdecode(path)).startswith(ELSEWHERE)


def check_name(path):
    """Refuse what no file can be called."""
    if is_elsewhere(path):
        return
    path = os.fsdecode(path)
    name = os.path.basename(path.rstrip("/"))
    if name not in {"", ".", ".."} and (REFUSED.search(name) or RESERVED.fullmatch(name)):
        raise OSError(errno.EINVAL, "[WinError 123] The file name is incorrect", path)
    if len(os.path.abspath(path)) > LONGEST_PATH:
        raise FileNotFoundError(errno.ENOENT, "[WinError 206] The path is too long", path)


def check_unused(path):
    """Refuse to move or remove what this process has open or mapped, or what holds such a file."""
    if is_elsewhere(path):
        return
    whole = os.path.realpath(os.fsdecode(path))
    held = []
    for number in os.listdir("/proc/self/fd"):
        try:
            held.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    with real.iopen("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        held += [line.rstrip("\n").split(maxsplit=5)[-1] for line in maps if "/" in line]
    if any(each == whole or each.startswith(f"{whole}/") for each in held):
        raise PermissionError(errno.EACCES, "[WinError 32] The file is used by another process", str(path))


def replace(source, target, **_):
    """Move onto a file, which nobody may have open; never onto a folder."""
    check_name(target)
    check_unused(source)
    check_unused(target)
    if os.path.isdir(target):
        raise PermissionError(errno.EACCES, "[WinError 5] Access is denied", str(source), None, str(target))
    real.replace(source, target)


def rename(source, target, **_):
    """Move to a free name."""
    if os.path.lexists(target):
        raise FileExistsError(
            errno.EEXIST, "[WinError 183] It exists already", str(source), None, str(target)
        )
    replace(source, target)


def unlink(path, *, dir_fd=None):
    """Remove a file that is not open."""
    if dir_fd is None:
        if os.path.isdir(path) and not os.path.islink(path):
            raise PermissionError(errno.EACCES, "[WinError 5] Access is denied", str(path))
        check_unused(path)
    real.unlink(path, dir_fd=dir_fd)


def rmdir(path, *, dir_fd=None):
    """Remove a folder of which no file is open."""
    if dir_fd is None:
        check_unused(path)
    real.rmdir(path, dir_fd=dir_fd)


def mkdir(path, *args, **options):
    """Make a folder of a name that can be."""
    check_name(path)
    real.mkdir(path, *args, **options)


def symlink(*_, **__):
    """Refuse, as for a user without the right to it."""
    raise OSError(errno.EINVAL, "[WinError 1314] A required privilege is not held by the client")


def open_file(
    file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None
):
    """Open as `open` does, with the encoding and line ends of Windows where a module of ours names none."""
    if not isinstance(file, int):
        check_there(file)
        if set(mode) & set("wxa"):
            check_name(file)
        if opener is None and os.path.isdir(file):
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
    if "b" not in mode and asked_by_us():
        encoding = "cp1252" if encoding in {None, "locale"} else encoding
        if newline is None and set(mode) & set("wxa+"):
            newline = "\r\n"
    return real.iopen(file, mode, buffering, encoding, errors, newline, closefd, opener)


# --- what modules of ours see of Windows
# ---------------------------------------------------------------------------
texts = set()  # descriptors whose line ends are changed


def os_open(path, flags, mode=0o777, **_):
    """Open a file; without O_BINARY as a text."""
    check_there(path)
    if flags & os.O_CREAT:
        check_name(path)
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    descriptor = real.open(path, flags & ~O_BINARY, mode)
    (texts.discard if flags & O_BINARY else texts.add)(descriptor)
    return descriptor


def os_write(descriptor, data):
    """Write; of a text each line end becomes two characters."""
    if descriptor not in texts:
        return real.write(descriptor, data)
    changed = bytes(data).replace(b"\n", b"\r\n")
    while changed:
        changed = changed[real.write(descriptor, changed) :]
    return len(data)


def os_close(descriptor):
    """Close a file."""
    texts.discard(descriptor)
    real.close(descriptor)


def os_fsync(file):
    """Force a file to the disk that was opened for writing."""
    descriptor = file if isinstance(file, int) else file.fileno()
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    real.fsync(descriptor)


def os_kill(pid, number):
    """Send Ctrl-C, which is number 0."""
    if number == 0:
        raise OSError(errno.EINVAL, "[WinError 87] The parameter is incorrect")
    os.kill(pid, number)


def locking(descriptor, mode, size):
    """Lock a byte, without waiting."""
    del mode, size
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


def open_process(_access, _inherit, pid):
    """Return a handle of a process that runs, here its id, or 0."""
    return pid if os.path.isdir(f"/proc/{pid}") else 0


def lines_of(handle, name):
    """Read what Linux says of a process, given by its handle; nothing where it has ended."""
    try:
        with real.iopen(f"/proc/{handle.value}/{name}", encoding="ascii", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def process_memory(handle, counters, size):
    """Fill in what a process has committed: its own memory, as the most that it had."""
    if size < ctypes.sizeof(counters):
        return 0
    for line in lines_of(handle, "status"):
        if line.startswith("VmData:"):
            counters[8] = int(line.split()[1]) * 1024
    return 1


def process_times(handle, *times):
    """Fill in what processor time a process has had, in the kernel and by itself, in 100 ns."""
    for line in lines_of(handle, "stat"):
        by_itself, in_kernel = line.rpartition(")")[2].split()[11:13]
        for time, ticks in zip(times[2:], (in_kernel, by_itself), strict=True):
            time._obj.value = int(ticks) * 10_000_000 // os.sysconf("SC_CLK_TCK")
    return 1


def normpath(path):
    """Write the separators of Windows, but for the start of a whole path, which has no drive here."""
    return ntpath.normpath(path) if isinstance(path, str) and path[:1] != "/" else os.path.normpath(path)


def no_library(name, *_, **__):
    """Refuse to load the program itself, as Linux does for None."""
    raise TypeError(f"LoadLibrary() argument 1 must be str, not {type(name).__name__}")


def simulate_windows():
    """Have the modules of obygaze see Windows."""
    for function in (replace, rename, unlink, rmdir, mkdir):
        setattr(os, function.__name__, function)
    os.remove = unlink
    import shutil
    import tempfile  # noqa: F401 - before os.open is another

    shutil._use_fd_functions = False
    io.open = builtins.open = open_file
    system = {
        "name": "nt",
        "open": os_open,
        "write": os_write,
        "close": os_close,
        "fsync": os_fsync,
        "kill": os_kill,
        "symlink": symlink,
        "O_BINARY": O_BINARY,
        "path": View(os.path, normpath=normpath),
    }
    kernel = SimpleNamespace(
        OpenProcess=open_process,
        K32GetProcessMemoryInfo=process_memory,
        GetProcessTimes=process_times,
        CloseHandle=bool,
    )
    views = {
        "os": View(os, OS_OF_LINUX, **system),
        "os.path": system["path"],
        "sys": View(sys, platform="win32"),
        "signal": View(signal, SIGNALS_OF_LINUX),
        "ctypes": View(ctypes, CDLL=no_library, WinDLL={"kernel32": kernel}.__getitem__),
        "msvcrt": SimpleNamespace(locking=locking, LK_NBLCK=2),
    }
    show(views, MODULES_NOT_ON_WINDOWS)


# --- macOS
# ---------------------------------------------------------------------------
def simulate_macos():
    """Have the modules of obygaze see macOS, with a limit of 256 open files."""
    import resource

    def getrlimit(what):
        soft, hard = resource.getrlimit(what)
        return soft, resource.RLIM_INFINITY if what == resource.RLIMIT_NOFILE else hard

    def setrlimit(what, limits):
        if what == resource.RLIMIT_NOFILE and limits[0] == resource.RLIM_INFINITY:
            raise ValueError("current limit exceeds maximum limit")
        resource.setrlimit(what, limits)

    def full_sync(descriptor, what, *given):
        return real.fsync(descriptor) if what == "full" else fcntl.fcntl(descriptor, what, *given)

    def open_here(path, *how, **options):
        check_there(path)
        return real.open(path, *how, **options)

    views = {
        "os": View(os, OS_NOT_ON_MACOS, open=open_here),
        "sys": View(sys, platform="darwin"),
        "resource": View(resource, "prlimit", getrlimit=getrlimit, setrlimit=setrlimit),
        "fcntl": View(fcntl, fcntl=full_sync, F_FULLFSYNC="full"),
        "ctypes": View(ctypes),
    }
    show(views)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


if SYSTEM:
    {"windows": simulate_windows, "macos": simulate_macos}[SYSTEM]()
