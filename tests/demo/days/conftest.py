"""A fresh install, and a person who types at it.

The wheel is built and installed into an environment of its own, from which it is used in an
empty folder. What obygaze needs is found beside these tests, as nothing is fetched here.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOT_IN_THE_BASE_INSTALL = (
    "av",
    "PIL",
    "pillow",
    "torch",
    "transformers",
    "matplotlib",
    "obstore",
    "starlette",
)


class Person:
    """Somebody in a folder of their own, with the commands of one install.

    Attributes
    ----------
    folder
        Where they work.
    environment
        What a process that they start finds: the install's commands first, and a home of its own.
    """

    def __init__(self, folder: Path, install: Path) -> None:
        self.folder = folder
        home = folder.with_name("home")
        home.mkdir()
        cluster = ("SLURM", "RAY_", "OBYGAZE")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(cluster)}
        path = os.pathsep.join([str(install / "bin"), os.environ["PATH"]])
        own = {
            "PATH": path,
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "PYTHONUNBUFFERED": "1",
        }
        self.environment = inherited | own

    def start(self, line: str) -> "subprocess.Popen[str]":
        """Start what a line says, and leave it running."""
        return subprocess.Popen(
            self.words(line),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )

    def words(self, line: str) -> list[str]:
        """Split a line as a shell does, and find its program on the person's path."""
        program, *others = shlex.split(line)
        return [shutil.which(program, path=self.environment["PATH"]) or program, *others]

    def types(self, line: str, code: int = 0) -> str:
        """Type a command and read what is printed; it ends with the exit code that it should have."""
        running = self.start(line)
        printed, _ = running.communicate(timeout=3000)
        assert running.returncode == code, f"$ {line}\n{printed}"
        assert "Traceback" not in printed, f"$ {line}\n{printed}"
        return printed


def install(wheel: Path, place: Path, without: tuple[str, ...] = ()) -> Path:
    """Install a wheel into a new environment, beside the packages that these tests have, some left out."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, wheel], check=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    needed = place / "needed"
    needed.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        # "obstore" and "obstore-0.12.1.dist-info" are one package.
        is_left_out = entry.name.partition("-")[0].partition(".")[0] in without
        if not is_left_out and "obygaze" not in entry.name:
            (needed / entry.name).symlink_to(entry)
    (Path(packages) / "needed.pth").write_text(str(needed), encoding="utf-8")
    return place


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        folder,
        ROOT,
    ]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def person(wheel, tmp_path) -> Person:
    """Somebody in an empty folder, with obygaze installed from its wheel, with all extras.

    `person.types(LINE)` runs a command there, expects its exit code, and returns what it printed.
    """
    (tmp_path / "work").mkdir()
    return Person(tmp_path / "work", install(wheel, tmp_path / "installed"))


@pytest.fixture
def person_with_the_base(wheel, tmp_path) -> Person:
    """Somebody in an empty folder, with the base install alone: no reader of films, no PyTorch, no S3.

    `person.types(LINE)` runs a command there, expects its exit code, and returns what it printed.
    """
    (tmp_path / "work").mkdir()
    place = install(wheel, tmp_path / "installed", NOT_IN_THE_BASE_INSTALL)
    return Person(tmp_path / "work", place)
