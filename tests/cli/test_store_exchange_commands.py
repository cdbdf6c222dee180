"""`obygaze store diff, merge, import, export, card`, and growing: what is printed, and the exit codes."""

import json
import os

import h5py
import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays

CLIPS = ["m1-1", "m1-2", "m2-1"]


def values(clip):
    return np.random.default_rng([*clip.encode()]).standard_normal(4).astype(np.float32)


def make(name, clips=CLIPS, change=0.0, **settings):
    rows = np.stack([values(clip) for clip in clips])
    rows[0, 0] += change
    seal_arrays(name, {clip: clip[:2] for clip in clips}, {"toy": {"pooled": rows}}, **settings)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.chdir(tmp_path)
    clips = tuple(Clip(clip, clip[:2], f"films/{clip[:2]}/{clip}.avi", extras={}) for clip in CLIPS)
    write_manifest(Manifest(clips, tmp_path), tmp_path / "films.csv")
    return tmp_path


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["store", *map(str, arguments)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return ended.value.code or 0, said.out, said.err

    return run


def test_diff_says_in_words_what_differs_and_exits_with_3(here, run):
    make(here / "a")
    make(here / "b", change=1)
    assert run("diff", "a", "a") == (0, "nothing differs\n", "")
    code, out, _ = run("diff", "a", "b")
    assert code == 3
    assert out.startswith(
        "values of toy/pooled: 1 of 3 clips differ, by at most 1 (m1-1), smallest cosine 0."
    )
    code, out, _ = run("diff", "a", "b", "--json")
    assert code == 3
    assert json.loads(out)["arrays"][0]["max_abs_clip"] == "m1-1"
    code, _, err = run("diff", "a", "nothing")
    assert code == 1
    assert err.startswith("obygaze: error: nothing: no such store")


def test_merge_says_where_the_store_is_or_what_forbids_it(here, run):
    make(here / "a", CLIPS[:2])
    make(here / "b", CLIPS[2:])
    make(here / "c", CLIPS[2:], contact="c", commit="1" * 40, citation="C", layer="other")
    code, out, _ = run("merge", "a", "b", "--out", "films", "--store-version", "1.1.0")
    store = open_store("films")
    assert code == 0
    assert out == f"films-1.1.0: 3 clips of toy (3 ok), fingerprint {store.fingerprint}\n"
    assert store.attributes["parent"] == open_store("a").fingerprint
    make(here / "d", CLIPS[2:], commit="1" * 40)
    code, _, err = run("merge", "a", "d", "--out", "other")
    assert (code, err) == (0, "left out: the stores' commit of toy differs, so the result has none\n")
    code, _, err = run("merge", "a", "c", "--out", "films")
    assert code == 1
    assert "features of toy: provenance differs in layer" in err


@pytest.mark.parametrize(
    ("option", "remedy"), [(("--parent", "films-1.0.0"), "--append"), (("--consume",), "without it")]
)
def test_options_of_sealing_that_are_gone_say_what_to_do(run, option, remedy):
    code, _, err = run("seal", "films", "--licence", "MIT", *option)
    assert code == 2
    assert f"{option[0]} is gone" in err
    assert remedy in err


def test_the_original_codes_folders_of_pth_come_in(here, run):
    torch = pytest.importorskip("torch")
    for clip in CLIPS:
        folder = here / "XCLIP" / clip[:2]
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(torch.from_numpy(values(clip))[None].requires_grad_(), folder / f"{clip}.pth")
    torch.save(torch.zeros(1, 4), here / "XCLIP/stray.pth")
    asked = ("import", "films.csv", "XCLIP", "lab", "--from", "pth", "--backbone", "xclip")
    code, out, err = run(*asked, "--licence", "MIT")
    assert code == 0, err
    assert "left out: 1 that belong to no clip of the manifest: stray" in err
    store = open_store("lab")
    assert out == f"lab-1.0.0: 3 clips of xclip (3 ok), fingerprint {store.fingerprint}\n"
    for clip in CLIPS:
        assert store["xclip"].read(clip, "pooled").tobytes() == values(clip).tobytes()
    assert store["xclip"].provenance["imported"] is True
    again = ("--store-version", "2.0.0", "--pattern", "{movie}/{video}", "--licence", "MIT")
    assert run(*asked, *again)[0] == 0
    assert open_store("lab-2.0.0").fingerprint == store.fingerprint


class Evil:
    def __reduce__(self):
        return (os.system, ("touch pwned",))


def test_a_pth_that_is_more_than_a_tensor_is_not_unpickled(here, run):
    torch = pytest.importorskip("torch")
    (here / "x").mkdir()
    asked = ("import", "films.csv", "x", "lab", "--from", "pth", "--backbone", "b", "--licence", "MIT")
    for clip in CLIPS:
        torch.save(torch.zeros(4), here / f"x/{clip}.pth")
    for content, words in (
        (Evil(), "not a tensor that can be read without unpickling"),
        ({"a": torch.zeros(4)}, "holds a dict; expected one tensor"),
        (torch.zeros(5), "expected pooled float32 [4] as in the first file; found float32 [5]"),
        (torch.full((4,), torch.nan), "4 values that are NaN"),
        (b"", "not a tensor"),
    ):
        if isinstance(content, bytes):
            (here / "x/m1-2.pth").write_bytes(content)
        else:
            torch.save(content, here / "x/m1-2.pth")
        code, out, err = run(*asked)
        assert (code, out) == (1, "")
        assert err.startswith("obygaze: error: x/m1-2.pth: ")
        assert words in err
        assert err.count("\n") == 1
    assert not (here / "pwned").exists()
    torch.save(torch.arange(4).to(torch.bfloat16), here / "x/m1-2.pth")
    assert run(*asked)[0] == 0
    assert open_store("lab")["b"].read("m1-2", "pooled").tolist() == [0, 1, 2, 3]


def test_npy_comes_in_with_what_is_declared(here, run):
    (here / "x").mkdir()
    for clip in CLIPS[:2]:
        np.save(here / f"x/{clip}.npy", values(clip))
    (here / "known.json").write_text('{"compute": {"device": "their GPU"}}', encoding="utf-8")
    asked = [
        "import",
        "films.csv",
        "x",
        "lab",
        "--from",
        "npy",
        "--licence",
        "MIT",
        "--declared",
        "known.json",
    ]
    code, _, err = run(*asked)
    assert code == 2
    assert "--backbone" in err
    asked += ["--backbone", "lab"]
    code, _, err = run(*asked)
    assert code == 1
    assert "1 of 3 clips have no features to import, the first is m2-1" in err
    assert run(*asked, "--allow-missing")[0] == 0
    assert open_store("lab")["lab"].provenance["compute"]["device"] == "their GPU"
    code, _, err = run(*asked, "--pattern", "{clip}")
    assert code == 2
    assert "{clip}: expected one of clip_id, movie, video" in err
    (here / "known.json").write_text("[1]", encoding="utf-8")
    assert run(*asked)[0] == 2


def test_a_store_goes_out_as_hdf5_and_comes_back(here, run):
    make(here / "films", failed={"m1-2": "no such file"})
    code, out, _ = run("export", "films", "films.h5", "--to", "hdf5")
    assert (code, out) == (0, "films.h5: 2 clips of toy; 1 without features left out\n")
    asked = ("import", "films.csv", "films.h5", "back", "--from", "hdf5", "--licence", "CC0-1.0")
    assert run(*asked, "--allow-missing")[0] == 0
    code, out, _ = run("diff", "films", "back")
    assert code == 3
    assert "values" not in out
    assert "provenance of toy: imported is nothing in films, true in back (so the features" in out
    code, out, _ = run("export", "films", "films.h5ad", "--to", "h5ad")
    assert out == "films.h5ad: 2 clips of toy; 1 without features left out\n"
    with h5py.File(here / "films.h5ad") as file:
        assert file["X"].shape == (2, 4)
    code, _, err = run("export", "films", "films.h5", "--to", "hdf5")
    assert code == 1
    assert "films.h5: is there already" in err


@pytest.mark.parametrize("kind", ["hdf5", "h5ad"])
def test_labels_go_out_with_the_features(here, run, kind):
    clips = (
        Clip("m1-1", "m1", "a.avi", level="S", concepts=("Look", "Body")),
        Clip("m1-2", "m1", "b.avi"),
    )
    write_manifest(Manifest(clips, here), here / "labels.csv")
    make(here / "films")
    code, _, err = run("export", "films", "films.x", "--to", kind, "--manifest", "labels.csv")
    assert (code, err) == (0, "no labels for 1 clips: labels.csv does not have them\n")
    with h5py.File(here / "films.x") as file:
        if kind == "hdf5":
            found = [tuple(file[clip].attrs[name] for name in ("level", "concepts")) for clip in CLIPS]
        else:
            found = list(zip(*(file["obs"][name].asstr()[()] for name in ("level", "concepts")), strict=True))
            assert {"movie", "start_s", "level"} <= set(file["obs"].attrs["column-order"])
    assert set(found[0][1].split(";")) == {"Look", "Body"}
    assert [level for level, _ in found] == ["S", "", ""]


def test_a_sealed_stores_folder_is_no_name_for_another(here, run):
    make(here / "films")
    for command in (
        ("seal", "films-1.0.0", "--licence", "MIT"),
        ("merge", "films", "films", "--out", "films-1.0.0"),
    ):
        code, _, err = run(*command)
        assert code == 1
        assert "films-1.0.0 is sealed; the name is" in err
    with pytest.raises(SystemExit) as ended:
        main(["extract", "films.csv", "films-1.0.0"])
    assert ended.value.code == 1
    assert not (here / "films-1.0.0-1.0.0").exists()


def test_card_is_printed_or_written_beside_the_store(here, run):
    make(here / "films")
    code, out, _ = run("card", "films")
    assert code == 0
    assert out == (here / "films-1.0.0/README.md").read_text(encoding="utf-8")
    code, out, _ = run("card", "films", "--out", "shared", "--url", "https://example.org/films")
    assert (code, out) == (0, "shared/README.md\nshared/croissant.json\n")
    code, _, err = run("card", "films", "--out", "shared")
    assert code == 1
    assert "shared/README.md exists already: give --force" in err
    assert run("card", "films", "--out", "shared", "--force")[0] == 0
    code, _, err = run("card", "films", "--out", "films-1.0.0/data")
    assert code == 2
    assert "never changes" in err
    code, _, err = run("card", "films", "--licence", "MIT")
    assert code == 1
    assert "sealed under CC0-1.0, not MIT" in err


@pytest.mark.parametrize("command", ["diff", "merge", "import", "export", "card"])
def test_help_has_examples(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"obygaze store {command}" in out
