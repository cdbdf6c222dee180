"""Mistakes that newcomers made, and the one line that each of them gets."""

import os
import socket

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "one.mp4").touch()
    clips = tuple(Clip(f"m{n}-1", f"m{n}", f"m{n}.mp4", level="S" if n else "EN") for n in range(2))
    write_manifest(Manifest(clips, tmp_path), tmp_path / "films.csv")

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return ended.value.code or 0, said.err

    return run


def make(name, clips=("m0-1", "m1-1"), **settings):
    rows = np.ones((len(clips), 4), np.float32)
    seal_arrays(name, {clip: clip[:2] for clip in clips}, {"toy": {"pooled": rows}}, **settings)


def test_a_sealed_stores_folder_is_no_target_of_an_extraction(run):
    make("stores/films")
    for more in ((), ("--dry-run",)):
        code, err = run("extract", "films.csv", "stores/films-1.0.0", *more)
        assert (code, err) == (1, "obygaze: error: stores/films-1.0.0 is sealed; the name is stores/films\n")
    code, err = run("extract", "films.csv", "stores/films.staging")
    assert code == 1
    assert "the name is stores/films" in err


@pytest.mark.parametrize("store", ["stores/films", "stores/films-1.0.0"])
def test_store_before_manifest_is_told_the_order(run, store):
    make("stores/films")
    code, err = run("evaluate", store, "films.csv", "--task", "hn_s")
    assert code == 2
    assert "the order is MANIFEST STORE" in err


def test_time_codes_and_excels_table_are_read(run, tmp_path):
    (tmp_path / "spans.csv").write_text(
        "video;start_s;end_s;level\none.mp4;0,5;00:00:02,5;Sure\n", encoding="utf-8-sig"
    )
    asked = ("manifest", "import", "folder", "films", "--out", "cut.csv", "--spans")
    code, err = run(*asked, "spans.csv")
    assert code == 0
    assert "read 'Sure' as S (1 row)" in err
    assert "one-0.5-2.5,one,films/one.mp4,0.5,2.5,S" in (tmp_path / "cut.csv").read_text(encoding="utf-8")
    (tmp_path / "frames.csv").write_text("video,start_s,end_s\none.mp4,00:00:01:00,00:00:02:12\n")
    code, err = run(*asked, "frames.csv", "--force")
    assert code == 1
    assert "'00:00:01:00' ends in frames; give their rate, as in --rate 25" in err
    assert run(*asked, "frames.csv", "--force", "--rate", "24")[0] == 0
    assert ",1.0,2.5," in (tmp_path / "cut.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("header", "what", "importer"),
    [
        ("idx;util;clip;label;overlap_ratio;concepts;id;movie;graph_number", "ObyGaze12's", "obygaze12"),
        (";clip_index;label;start_frame;end_frame;imdb_key;framerate", "MObyGaze's", "mobygaze"),
        ("video,start_s,end_s", "a table of spans", "folder FOLDER --spans"),
        ("clip,movie,split,valence", "MediaEval's", "mediaeval15"),
    ],
)
def test_a_file_to_import_names_its_importer(run, tmp_path, header, what, importer):
    (tmp_path / "a.csv").write_text(f"{header}\n", encoding="utf-8")
    code, err = run("manifest", "inspect", "a.csv")
    assert code == 1
    assert err.startswith(f"obygaze: error: a.csv is {what}")
    assert f"obygaze manifest import {importer} a.csv --out" in err
    assert err.count("\n") == 1


def test_the_real_obygaze12_file_names_its_importer(run, shared_data):
    code, err = run("manifest", "inspect", shared_data / "obygaze12" / "ObyGaze12_thresh_02.csv")
    assert code == 1
    assert "obygaze manifest import obygaze12" in err


def test_too_few_films_are_counted(run):
    make("stores/films")
    for command in (("evaluate", "films.csv", "stores/films", "--negative", "EN", "--positive", "S"),):
        code, err = run(*command)
        assert code == 1
        assert "at least 3 movies" in err


def test_a_name_that_no_group_can_have_is_the_options_fault(run):
    code, err = run(
        "store", "import", "films.csv", "films", "x", "--from", "npy", "--backbone", "my net",
        "--licence", "MIT",
    )  # fmt: skip
    assert code == 2
    assert "Invalid value for --backbone: 'my net': expected at most 100 letters" in err


def test_a_server_that_is_not_there_is_named(run):
    pytest.importorskip("obstore")
    with socket.socket() as mute:  # bound, so that no server takes the port, and does not listen
        mute.bind(("127.0.0.1", 0))
        port = mute.getsockname()[1]
        code, err = run("evaluate", "films.csv", f"http://127.0.0.1:{port}/films-1.0.0")
    assert code == 1
    assert f"no server answers at 127.0.0.1:{port}" in err


def test_merge_tells_all_that_differs_at_once(run):
    for name, clip, licence in (("a", "m0-1", "MIT"), ("b", "m1-1", "CC0-1.0")):
        make(f"stores/{name}", [clip])
        again = ("--licence", licence, "--citation", name.upper(), "--store-version", "1.1.0")
        assert run("store", "seal", f"stores/{name}", *again)[0] == 0
    code, err = run("store", "merge", "stores/a", "stores/b", "--out", "stores/c")
    assert code == 1
    assert "licence differs (CC0-1.0; MIT): choose the result's (--licence)" in err
    assert "citation differs (A; B): choose the result's (--citation)" in err
