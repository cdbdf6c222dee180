"""`obygaze store pack, unpack, push, pull`, and stores at URLs: what is printed, and the exit codes."""

import functools
import http.server
import os
import threading

import numpy as np
import pytest

from obygaze.cli import CONTENTS, ContentsEntry, main
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays

pytestmark = pytest.mark.usefixtures("stores")
COMMANDS = ("pack", "unpack", "pull", "push")


@pytest.fixture(autouse=True)
def _contents(monkeypatch):
    """The commands, wherever the table of contents stands."""
    target = "obygaze_features.commands.store_transfer"
    known = {
        **CONTENTS["store"].target,
        **{name: ContentsEntry(name, f"{target}:{name}") for name in COMMANDS},
    }
    monkeypatch.setitem(CONTENTS, "store", ContentsEntry("stores", known))


@pytest.fixture
def stores(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    arrays = {
        "pooled": rng.standard_normal((80, 3)).astype(np.float32),
        "frames": rng.standard_normal((80, 2, 3)).astype(np.float16),
    }
    seal_arrays(tmp_path / "stores/films", {f"c{i:02d}": "m" for i in range(80)}, {"toy": arrays})
    return tmp_path


@pytest.fixture
def url(stores):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=stores / "stores")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/films-1.0.0"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["store", *map(str, arguments)])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


def test_pack_and_unpack_say_what_they_made(run):
    fingerprint = open_store("stores/films").fingerprint
    code, out, _ = run("pack", "stores/films")
    assert code == 0
    assert out.startswith("stores/films-1.0.0.zip: 0.1 MB, fingerprint " + fingerprint)
    code, out, _ = run("unpack", "stores/films-1.0.0.zip", "--out", "copy")
    assert code == 0
    assert out.startswith("copy: ")
    assert out.endswith(f"fingerprint {fingerprint}\n")
    assert run("verify", "copy", "--full")[0] == 0
    assert run("verify", "stores/films-1.0.0.zip", "--full")[0] == 0
    assert "fingerprint" in run("inspect", "stores/films-1.0.0.zip")[1]


def test_packing_twice_is_one_clear_line(run):
    run("pack", "stores/films")
    code, out, err = run("pack", "stores/films")
    assert (code, out) == (1, "")
    assert (
        err == "obygaze: error: stores/films-1.0.0.zip: is there already; remove it, or name another file\n"
    )


def test_a_foreign_zip_is_one_clear_line(run):
    import zipfile

    with zipfile.ZipFile("evil.zip", "w") as archive:
        archive.writestr("../evil", "x")
    code, out, err = run("unpack", "evil.zip")
    assert (code, out) == (1, "")
    assert err.startswith("obygaze: error: evil.zip: ")
    assert err.count("\n") == 1


def test_pull_whole_partial_and_again(stores, url, run):
    (stores / "few.txt").write_text("c70\n\nc71\n", encoding="utf-8")
    (stores / "few.csv").write_text("movie,clip_id\nm,c70\n", encoding="utf-8")
    for clips in ("few.txt", "few.csv"):
        code, out, _ = run("pull", url, f"part-{clips}", "--arrays", "frames", "--clips", clips)
        assert code == 0
        assert "2 left out (fetch.txt)" in out
        with pytest.raises(ValueError, match="not in this partial copy"):
            open_store(f"part-{clips}")["toy"].frames()
        assert open_store(f"part-{clips}")["toy"].read("c70", "frames").shape == (2, 3)
    code, out, _ = run("pull", url, "part-few.txt")
    assert (code, "2 files" in out, "left out" in out) == (0, True, False)
    assert run("verify", "part-few.txt", "--full")[0] == 0
    code, out, _ = run("pull", url, "part-few.txt")
    assert "0 files, 0.0 MB" in out


def test_a_store_at_a_url_is_inspected_and_verified(stores, url, run):
    assert open_store("stores/films").fingerprint in run("inspect", url)[1]
    code, out, _ = run("verify", url)
    assert code == 0
    assert out.startswith(f"{url} (digests): nothing wrong")
    (stores / "stores/films-1.0.0/data/features.zarr/toy/pooled/c/0/0").write_bytes(b"rubbish")
    code, out, _ = run("verify", url)
    assert code == 3
    assert "toy/pooled/c/0/0: changed" in out


def test_push_to_a_folder_and_what_is_refused(run):
    code, out, _ = run("push", "stores/films", "share/films-1.0.0")
    assert code == 0
    assert out == f"share/films-1.0.0: fingerprint {open_store('stores/films').fingerprint}\n"
    code, _, err = run("push", "stores/films", "https://example.org/films")
    assert code == 1
    assert "nothing can be pushed over HTTP" in err


def test_a_zip_in_place_of_a_folder_or_the_reverse_is_one_line(run):
    run("pack", "stores/films")
    for arguments, words in (
        (["pack", "stores/films-1.0.0.zip"], "films-1.0.0.zip: a packed store, and its folder is needed"),
        (["push", "stores/films-1.0.0.zip", "b"], "obygaze store unpack stores/films-1.0.0.zip"),
        (["unpack", "stores/films-1.0.0"], "stores/films-1.0.0: a folder; expected a zip"),
    ):
        code, _, err = run(*arguments)
        assert code == 1
        assert words in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"obygaze store {command} " in out
