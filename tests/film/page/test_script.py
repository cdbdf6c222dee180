"""The desk's modules by node's own runner."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import obygaze_film
from obygaze_film.workspace.proxy import content_key

ASSETS = Path(obygaze_film.__file__).parent / "page" / "assets"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_modules_pass_their_own_tests_in_node(tmp_path):
    """The page's modules are JavaScript, with tests of their own (`script/*.mjs`).

    One of these computes the key of a film's content, which must be ours; it is given as KEY.
    """
    modules = list(ASSETS.glob("*.js"))
    tests = sorted((Path(__file__).parent / "script").glob("*.mjs"))
    for path in (*modules, *tests):
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    film = tmp_path / "film.bin"
    film.write_bytes(bytes(number % 251 for number in range(2_000_000)))

    done = subprocess.run(
        ["node", "--test", *(path.name for path in tests)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"KEY": content_key(film)},
    )

    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout
