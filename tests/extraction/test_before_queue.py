"""What would stop a run is found before jobs are queued, on a machine that is not like the nodes."""

import errno
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import obygaze_features as of
from obygaze.demo_corpus import write_video
from obygaze_features import cores
from obygaze_features import machine as machine_module
from obygaze_features.backbones.registry import BACKBONES, TEXT_BACKBONES, is_known_network
from obygaze_features.errors import BackboneError, ExtractError, StoreError, system_error_line
from obygaze_features.extraction import Recipe, before_queue, prepare
from obygaze_features.extraction.before_queue import examine_run, recipes_on_cpu
from obygaze_features.extraction.doctor import Mount
from obygaze_features.store.disk_usage import FreeSpace, free_space, refused_reservation
from tests.process import python


@pytest.fixture
def films(tmp_path):
    """Three short videos."""
    for i in range(3):
        frames = (np.full((48, 64, 3), 20 * i + t, np.uint8) for t in range(12))
        write_video(tmp_path / f"{i}.mp4", frames, 24)
    return list_of(tmp_path, 3)


def list_of(folder: Path, n_clips: int, corpus: str = "films") -> Path:
    """Write the list of the first clips of a folder of films."""
    clips = tuple(of.Clip(f"tt1-{i}", "tt1", f"{i}.mp4") for i in range(n_clips))
    of.write_manifest(of.Manifest(clips, folder), folder / f"{corpus}.csv")
    return folder


def prepared(films: Path, name: str = "films", **settings):
    """Prepare an extraction, whose notes are kept in no place."""
    how = {"n_frames": 2, "workers": 1, "licence": "CC0-1.0", "note": lambda _: None, "progress": False}
    return prepare(films / f"{name}.csv", films / "s", ["descriptors"], **(how | settings))


def levels(extraction) -> dict[str, str]:
    return {finding.about: finding.level for finding in examine_run(extraction)}


# --- on the login node
# ---------------------------------------------------------------------------
def test_before_a_queue_a_sound_run_has_no_faults_and_nothing_is_written(films):
    before = sorted(films.iterdir())
    assert "fault" not in levels(prepared(films)).values()
    assert sorted(films.iterdir()) == before


@pytest.mark.parametrize("room", [FreeSpace(1000, None), FreeSpace(10**12, 3)], ids=["bytes", "files"])
def test_a_disk_that_is_too_small_is_a_fault(films, monkeypatch, room):
    monkeypatch.setattr(before_queue, "free_space", lambda _: room)
    assert levels(prepared(films))["room"] == "fault"


def refuse_reservations(monkeypatch, number: int | None) -> list[tuple[Path, int]]:
    """Let each reservation on a shared disk fail with an error, or with none; return what is asked for."""
    asked = []

    def reserve(folder, size):
        asked.append((folder, size))
        return None if number is None else OSError(number, os.strerror(number), str(folder))

    monkeypatch.setattr(before_queue, "refused_reservation", reserve)
    monkeypatch.setattr(before_queue, "mount_of", lambda _: Mount("nfs4", ""))
    return asked


@pytest.mark.parametrize(
    ("number", "level"),
    [
        (errno.EDQUOT, "fault"),  # the quota is less
        (errno.ENOSPC, "note"),  # the quota may be less: some disks tell it so
        (errno.EFBIG, "note"),
        (None, "ok"),
    ],
    ids=["over the quota", "no space", "too large a file", "reserved"],
)
def test_a_quota_that_refuses_a_reservation_is_a_fault(films, monkeypatch, number, level):
    refuse_reservations(monkeypatch, number)
    assert levels(prepared(films))["room"] == level


def test_what_a_store_needs_is_reserved_once_in_its_folder(films, monkeypatch):
    asked = refuse_reservations(monkeypatch, None)
    examine_run(prepared(films))
    [(folder, size)] = asked
    assert folder == films
    assert size > 1000  # bytes; three clips' features alone are more


def test_no_room_is_reserved_where_the_stage_is_in_memory(films, monkeypatch):
    monkeypatch.setattr(before_queue, "mount_of", lambda _: Mount("tmpfs", ""))
    monkeypatch.setattr(before_queue, "refused_reservation", lambda *_: pytest.fail("it takes memory"))
    assert levels(prepared(films))["room"] == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux alone")
@pytest.mark.parametrize("size", [1 << 20, 0])
def test_a_reservation_of_what_there_is_is_not_refused(tmp_path, size):
    assert refused_reservation(tmp_path, size) is None


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux alone")
def test_a_reservation_of_more_than_there_is_says_why(tmp_path):
    refusal = refused_reservation(tmp_path, free_space(tmp_path).bytes + (1 << 30))
    assert refusal is None or refusal.errno in {errno.ENOSPC, errno.EFBIG}  # None: ZFS, and others


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux alone")
def test_a_reservation_leaves_no_file_and_takes_no_room(tmp_path):
    free = free_space(tmp_path).bytes
    refused_reservation(tmp_path, 1 << 20)
    assert list(tmp_path.iterdir()) == []
    assert free_space(tmp_path).bytes > 0.9 * free


# --- two clusters, and clocks
# ---------------------------------------------------------------------------
def of_cluster(monkeypatch, cluster: str, node: str = "n1"):
    monkeypatch.setenv("SLURM_CLUSTER_NAME", cluster)
    monkeypatch.setenv("SLURMD_NODENAME", node)


@pytest.fixture
def two_pieces(films):
    """A list of two pieces of clips, all of one video."""
    clips = tuple(of.Clip(f"tt1-{i:02}", "tt1", "0.mp4") for i in range(20))
    of.write_manifest(of.Manifest(clips, films), films / "many.csv")
    return films


@pytest.fixture
def begun_on_alpha(two_pieces, monkeypatch):
    """Two shares, of which cluster alpha has begun the first and done one clip of it."""
    of_cluster(monkeypatch, "alpha")
    prepared(two_pieces, "many", shard=(0, 2), limit=1).run()
    return two_pieces


def test_a_share_that_another_cluster_has_begun_is_not_extracted(begun_on_alpha, monkeypatch):
    of_cluster(monkeypatch, "beta")
    with pytest.raises(StoreError, match="alpha"):
        prepared(begun_on_alpha, "many", shard=(0, 2))


def test_before_a_queue_shares_of_another_cluster_are_a_fault(begun_on_alpha, monkeypatch):
    of_cluster(monkeypatch, "beta")
    assert levels(prepared(begun_on_alpha, "many", shard=(1, 2)))["shares"] == "fault"


def test_two_clusters_do_different_shares_of_one_stage(begun_on_alpha, monkeypatch):
    of_cluster(monkeypatch, "beta")
    prepared(begun_on_alpha, "many", shard=(1, 2)).run()
    of_cluster(monkeypatch, "alpha", "n2")
    stage, _ = prepared(begun_on_alpha, "many", shard=(0, 2)).run()
    assert stage.missing() == []


def test_a_share_that_another_cluster_has_done_is_not_done_again(begun_on_alpha, monkeypatch):
    prepared(begun_on_alpha, "many", shard=(0, 2)).run()
    of_cluster(monkeypatch, "beta")
    _, report = prepared(begun_on_alpha, "many", shard=(0, 2)).run()
    assert report.clips == 0


def test_what_another_cluster_has_open_is_not_swept_where_its_locks_are_not_seen(two_pieces, monkeypatch):
    of_cluster(monkeypatch, "alpha")
    stage, _ = prepared(two_pieces, "many", shard=(0, 2), limit=1).run()
    left_open = stage.path / "pieces" / "0.9999.1.rows"
    left_open.touch()
    (stage.path / "journal" / "9999.jsonl").touch()  # its lock is not seen: it looks ended
    of_cluster(monkeypatch, "beta")
    prepared(two_pieces, "many", shard=(1, 2)).run()
    assert left_open.exists()
    of_cluster(monkeypatch, "alpha")
    prepared(two_pieces, "many", shard=(0, 2)).run()
    assert not left_open.exists()


@pytest.mark.parametrize(("ahead_s", "word"), [(-3600.0, "behind"), (3600.0, "ahead of")])
def test_a_clock_that_differs_from_that_of_the_disk_is_noted(two_pieces, monkeypatch, ahead_s, word):
    real = time.time
    monkeypatch.setattr(machine_module, "time", SimpleNamespace(time=lambda: real() + ahead_s))
    notes: list[str] = []
    prepared(two_pieces, "many", shard=(0, 2), note=notes.append).run()
    (on_clocks,) = [note for note in notes if "clock" in note]
    assert word in on_clocks
    assert "clock" in levels(prepared(two_pieces, "many", shard=(1, 2)))


def test_a_clock_that_agrees_with_the_disk_is_not_mentioned(two_pieces):
    notes: list[str] = []
    prepared(two_pieces, "many", shard=(0, 2), note=notes.append).run()
    assert [note for note in notes if "clock" in note] == []
    assert "clock" not in levels(prepared(two_pieces, "many", shard=(1, 2)))


@pytest.mark.parametrize(("gone", "level"), [([0], "note"), ([0, 1, 2], "fault")])
def test_videos_that_are_not_found_are_counted_and_a_fault_if_there_is_none(films, gone, level):
    for i in gone:
        (films / f"{i}.mp4").unlink()
    result = {finding.about: finding for finding in examine_run(prepared(films))}
    assert result["videos"].level == level
    assert f"{3 - len(gone)} of 3 videos" in result["videos"].text


@pytest.fixture
def sealed_films(films):
    """Videos of which a store of version 1.0.0 is there, and its stage."""
    of.extract(films / "films.csv", films / "s", n_frames=2, workers=1, licence="CC0-1.0", progress=False)
    return films


def test_before_a_queue_a_version_that_is_sealed_is_a_fault(sealed_films):
    assert levels(prepared(sealed_films))["stage"] == "fault"


def test_before_a_queue_a_sealed_version_is_a_fault_without_its_stage_too(sealed_films):
    shutil.rmtree(sealed_films / "s.staging")
    assert levels(prepared(sealed_films))["stage"] == "fault"


def test_before_a_queue_the_next_version_of_a_store_is_no_fault(sealed_films):
    assert levels(prepared(sealed_films, version="1.0.1"))["stage"] == "ok"


def test_tasks_without_clips_are_counted(films):
    result = {finding.about: finding for finding in examine_run(prepared(films, shard=(0, 8)))}
    assert result["clips"].level == "note"
    assert "7 of 8 tasks" in result["clips"].text


def with_a_network(extraction, device: str):
    """Let the descriptors' record say that a network ran on a device, with as many clips at once as there."""
    [backbone] = extraction.job.backbones
    compute = {**backbone.provenance["compute"], "device": device}
    compute |= {"clips_at_once": 8} if device == "cuda" else {}
    network = replace(backbone, provenance={**backbone.provenance, "compute": compute})
    return replace(extraction, job=replace(extraction.job, backbones=(network,)))


def test_a_stage_of_nodes_with_gpus_is_resumed_from_a_machine_without(films):
    on_nodes = with_a_network(prepared(films, limit=1), "cuda")
    on_nodes.run()
    here = with_a_network(prepared(films), "cpu")
    assert levels(here)["stage"] == "ok"
    with pytest.raises(StoreError, match="device"):
        here.run()


@pytest.mark.parametrize("weights", [None, "lab/net", "lab/net@main"])
def test_weights_that_the_cache_lacks_are_named_with_the_ways_to_get_them(monkeypatch, tmp_path, weights):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    recipe = Recipe("xclip", None, {} if weights is None else {"weights": weights})
    with pytest.raises(BackboneError, match="obygaze weights fetch"):
        recipes_on_cpu([recipe])


def test_networks_are_examined_on_the_cpu_before_a_queue():
    pytest.importorskip("torch")
    from obygaze_features.backbones import Compute

    asked = [
        Recipe("clip", 2, {"weights": "random:0", "compute": Compute("cuda", "bfloat16")}),
        Recipe("descriptors"),
    ]
    looked_at, descriptors = recipes_on_cpu(asked)
    assert looked_at.options["compute"] == Compute("cpu", "bfloat16")
    assert descriptors == asked[1]


# --- a GPU that is asked for
# ---------------------------------------------------------------------------
@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A Linux machine whose devices are the files of a folder."""
    monkeypatch.setattr(cores.sys, "platform", "linux")
    monkeypatch.setattr(cores, "NODE_GPUS", tmp_path / "gpus")
    monkeypatch.setattr(cores, "DEVICES", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


@pytest.mark.parametrize("device", ["nvidia0", "nvidiactl", "kfd", "dxg"])
def test_a_machine_with_a_gpu_is_known_by_its_devices(machine, monkeypatch, device):
    (machine / "null").touch()
    assert cores.no_gpu_here()
    (machine / device).touch()
    assert not cores.no_gpu_here()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES" in cores.no_gpu_here()


def test_which_backbones_run_a_network_is_known_without_loading_them():
    pytest.importorskip("torch")
    for name in (*BACKBONES, *TEXT_BACKBONES):
        assert is_known_network(name) == ("compute" in of.backbones.backbone_options(name)), name


@pytest.mark.parametrize("option", [("--device", "cuda"), ("--gpus", "0,1")])
def test_a_gpu_that_is_not_there_is_refused_before_networks_are_loaded(films, option):
    script = (
        "import sys\nfrom obygaze.cli import main\n"
        f"try: main(['extract', 'films.csv', 's', '--backbone', 'xclip', *{option!r}])\n"
        "finally: print('torch' in sys.modules)"
    )
    without = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    result = python("-c", script, code=1, cwd=films, env=without)
    assert result.stdout.split() == ["False"]
    assert "CUDA_VISIBLE_DEVICES" in result.stderr
    assert not list(films.glob("s*"))


# --- a stage that is not what it was
# ---------------------------------------------------------------------------
def test_a_stage_that_is_renamed_under_a_run_is_named_with_what_to_do(films):
    extraction = prepared(films)

    def renamed() -> bool:
        if extraction.stage_path.exists():
            extraction.stage_path.rename(films / "other.staging")
        return False

    with pytest.raises(ExtractError, match=r"s\.staging.*renamed"):
        extraction.run(stopped=renamed)
    (films / "other.staging").rename(extraction.stage_path)
    stage, _ = prepared(films).run()
    assert not stage.missing()


def test_a_run_that_begins_anew_beside_a_renamed_stage_names_it(films):
    prepared(films, limit=1).run()
    (films / "s.staging").rename(films / "other.staging")
    notes: list[str] = []
    prepared(films, note=notes.append).run()
    assert [note for note in notes if "other.staging" in note] != []


def test_before_a_queue_a_renamed_stage_is_a_fault_and_one_of_other_settings_is_none(films):
    prepared(films, limit=1).run()
    (films / "s.staging").rename(films / "other.staging")
    result = [finding for finding in examine_run(prepared(films)) if "other.staging" in finding.text]
    assert [finding.level for finding in result] == ["fault"]
    with_more_frames = examine_run(prepared(films, n_frames=3))
    assert [finding.text for finding in with_more_frames if "other.staging" in finding.text] == []


def test_a_stage_of_other_clips_tells_how_many_differ(films):
    prepared(films, limit=1).run()
    list_of(films, 2, "fewer")
    with pytest.raises(StoreError, match=r"3 clips of 'films', 1 of which your list 'fewer' of 2 lacks"):
        prepared(films, "fewer").run()


def test_a_stage_of_a_list_of_another_name_is_resumed_by_its_name(films):
    prepared(films, limit=1).run()
    list_of(films, 3, "copy")
    with pytest.raises(StoreError, match="--corpus films"):
        prepared(films, "copy").run()
    prepared(films, "copy", corpus="films").run()


def test_backbones_are_examined_by_their_own_weights(monkeypatch, tmp_path):
    pytest.importorskip("huggingface_hub")
    from obygaze_features.extraction.doctor import cached_weights

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    result = list(cached_weights(["xclip", "descriptors", "clip=lab/net", "xclip-lsmdc"]))
    assert [finding.level for finding in result] == ["fault", "ok", "fault", "ok"]
    assert "lab/net" in result[2].text
    with pytest.raises(BackboneError, match="xclop"):
        list(cached_weights(["xclop"]))


@pytest.mark.usefixtures("machine")
def test_a_gpu_that_is_asked_for_and_absent_is_a_fault():
    from obygaze_features.extraction.doctor import examine

    result = [finding for finding in examine(device="cuda") if finding.about == "gpu"]
    assert [finding.level for finding in result] == ["fault"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOENT])
def test_an_error_of_the_system_is_one_line_with_the_path_and_what_can_be_done(number):
    line = system_error_line(OSError(number, os.strerror(number), "stores/films.staging/pieces/0.rows"))
    assert line.startswith(f"stores/films.staging/pieces/0.rows: {os.strerror(number)}")
    assert ("run the same command again" in line) == (number != errno.ENOENT)
