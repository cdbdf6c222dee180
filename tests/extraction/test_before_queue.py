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
from obygaze_features.extraction.doctor import Diagnosis, Mount, cached_weights, examine
from obygaze_features.store import disk_usage
from obygaze_features.store.disk_usage import FreeSpace, free_space, refused_reservation
from tests.command import obygaze
from tests.process import python


@pytest.fixture
def folder_of_three_films(tmp_path):
    """A folder with three short videos and their manifest films.csv."""
    for i in range(3):
        frames = (np.full((48, 64, 3), 20 * i + t, np.uint8) for t in range(12))
        write_video(tmp_path / f"{i}.mp4", frames, rate=24)
    return write_manifest_of(tmp_path, n_clips=3)


def write_manifest_of(folder: Path, n_clips: int, corpus: str = "films") -> Path:
    """Write the manifest CORPUS.csv of the first videos of a folder."""
    clips = tuple(of.Clip(f"tt1-{i}", "tt1", f"{i}.mp4") for i in range(n_clips))
    of.write_manifest(of.Manifest(clips, folder), folder / f"{corpus}.csv")
    return folder


def prepare_extraction(films: Path, manifest: str = "films", **settings):
    """Prepare the extraction of the clips of MANIFEST.csv into the store `s`."""
    defaults = {"n_frames": 2, "workers": 1, "licence": "CC0-1.0", "note": lambda _: None, "progress": False}
    return prepare(films / f"{manifest}.csv", films / "s", ["descriptors"], **(defaults | settings))


def findings_of(extraction) -> dict[str, Diagnosis]:
    """Examine an extraction as before its jobs are queued: what a finding is about -> the finding."""
    return {finding.about: finding for finding in examine_run(extraction)}


# --- on the login node
def test_examining_a_good_run_finds_no_fault_and_writes_nothing(folder_of_three_films):
    """A finding is ok, a note or a fault. Three videos are there, and their descriptors can be extracted."""
    files_before = sorted(folder_of_three_films.iterdir())

    findings = examine_run(prepare_extraction(folder_of_three_films))

    assert "fault" not in {finding.level for finding in findings}
    assert sorted(folder_of_three_films.iterdir()) == files_before


@pytest.mark.parametrize(
    "free", [FreeSpace(bytes=1000, files=None), FreeSpace(bytes=10**12, files=3)], ids=["bytes", "files"]
)
def test_a_disk_with_room_for_too_few_bytes_or_files_is_a_fault(folder_of_three_films, monkeypatch, free):
    """The disk has 1000 bytes free, or can take 3 more files: the stage of three clips needs more of both."""
    monkeypatch.setattr(disk_usage, "free_space", lambda _folder: free)

    finding = findings_of(prepare_extraction(folder_of_three_films))["room"]

    assert finding.level == "fault"


def pretend_network_disk(monkeypatch, error_number):
    """Let reservations on the disk fail with an error, or succeed if it is None.

    Returns the list of all reservations, to which each adds its folder and its number of bytes.
    """
    reservations = []

    def reserve_on_pretended_disk(folder, n_bytes):
        reservations.append((folder, n_bytes))
        if error_number is None:
            return None
        return OSError(error_number, os.strerror(error_number), str(folder))

    monkeypatch.setattr(before_queue, "refused_reservation", reserve_on_pretended_disk)
    monkeypatch.setattr(before_queue, "mount_of", lambda _folder: Mount("nfs4", ""))
    return reservations


@pytest.mark.parametrize(
    ("error_number", "level"),
    [(errno.EDQUOT, "fault"), (errno.ENOSPC, "note"), (errno.EFBIG, "note"), (None, "ok")],
    ids=["over the quota", "no space", "too large a file", "granted"],
)
def test_a_reservation_refused_for_the_quota_is_a_fault(
    folder_of_three_films, monkeypatch, error_number, level
):
    """Before three clips are extracted, the bytes of their store are reserved on the disk for a moment.

    So one learns of a quota, a limit of what a person may use; being over it is a fault. Other errors
    are noted only: some disks call a quota a lack of space, and some refuse what would have room.
    """
    reservations = pretend_network_disk(monkeypatch, error_number)

    finding = findings_of(prepare_extraction(folder_of_three_films))["room"]

    assert finding.level == level
    [(folder, n_bytes)] = reservations
    assert folder == folder_of_three_films
    assert n_bytes > 1000  # three clips' features alone are more


def test_the_examination_of_room_reserves_none_on_a_file_system_in_memory(folder_of_three_films, monkeypatch):
    """Before jobs are queued, it is tried whether the disk lets them have the room that they need.

    For that a file of this size is reserved for a moment, since a quota may forbid it though the disk has
    room. The folder here is on a tmpfs, whose files are in memory: a reservation would take all of it, so
    that none is tried.
    """

    def reserve(*_):
        pytest.fail("a reservation would take memory")

    monkeypatch.setattr(before_queue, "mount_of", lambda _folder: Mount("tmpfs", ""))
    monkeypatch.setattr(before_queue, "refused_reservation", reserve)

    finding_on_room = findings_of(prepare_extraction(folder_of_three_films))["room"]

    assert finding_on_room.level == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux alone")
@pytest.mark.parametrize("n_bytes", [2**20, 0], ids=["a mebibyte", "nothing"])
def test_a_reservation_that_the_disk_has_room_for_is_granted_and_takes_no_room(tmp_path, n_bytes):
    """A reservation that is granted is given back at once, and there is no refusal."""
    free_before = free_space(tmp_path).bytes

    refusal = refused_reservation(tmp_path, n_bytes)

    assert refusal is None
    assert list(tmp_path.iterdir()) == []
    assert free_space(tmp_path).bytes > 0.9 * free_before


@pytest.mark.skipif(sys.platform != "linux", reason="space is reserved on Linux alone")
def test_a_reservation_that_the_system_refuses_gives_its_error(tmp_path):
    """Two mebibytes are reserved where the system allows files of one mebibyte alone.

    (To ask for more than is free would fill the disk for others.)
    """
    import resource

    one_mebibyte = 2**20
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    _, hard_limit = limits
    resource.setrlimit(resource.RLIMIT_FSIZE, (one_mebibyte, hard_limit))
    try:
        refusal = refused_reservation(tmp_path, 2 * one_mebibyte)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    file_system_does_not_know_sizes_before = refusal is None  # such as ZFS
    assert file_system_does_not_know_sizes_before or refusal.errno == errno.EFBIG


# --- two clusters, and clocks
def run_on_cluster(monkeypatch, cluster: str, node: str = "n1"):
    """Set what Slurm sets in a job on a cluster's node."""
    monkeypatch.setenv("SLURM_CLUSTER_NAME", cluster)
    monkeypatch.setenv("SLURMD_NODENAME", node)


@pytest.fixture
def twenty_clips(folder_of_three_films):
    """The manifest twenty.csv of 20 clips, all of one video; a piece has 16, so share 1 of 2 has four."""
    clips = tuple(of.Clip(f"tt1-{i:02}", "tt1", "0.mp4") for i in range(20))
    of.write_manifest(of.Manifest(clips, folder_of_three_films), folder_of_three_films / "twenty.csv")
    return folder_of_three_films


@pytest.mark.long
def test_two_clusters_extract_different_shares_of_one_store(twenty_clips, monkeypatch):
    """Twenty clips are extracted in two shares, numbers 0 and 1, on the clusters alpha and beta.

    Clusters do not see each other's jobs: a share belongs to the cluster that began it, until it is done.
    Once alpha has begun share 0, beta may do share 1 alone.
    """

    def prepare_share(number, **settings):
        return prepare_extraction(twenty_clips, "twenty", shard=(number, 2), **settings)

    # Alpha begins share 0, and does one clip of it.
    run_on_cluster(monkeypatch, "alpha")
    prepare_share(0, limit=1).run()

    # Beta is refused share 0. An examination of any task names it as a fault of the stage; share 1 is free.
    run_on_cluster(monkeypatch, "beta")
    with pytest.raises(StoreError, match="alpha"):
        prepare_share(0)
    finding_on_shares = findings_of(prepare_share(1))["shares"]
    assert finding_on_shares.level == "fault"
    prepare_share(1).run()

    # Another node of alpha finishes share 0.
    run_on_cluster(monkeypatch, "alpha", node="n2")
    stage, _report = prepare_share(0).run()
    assert stage.missing() == []

    # Share 0 is done, so that beta may run it, and has nothing to do.
    run_on_cluster(monkeypatch, "beta")
    _stage, report_by_beta = prepare_share(0).run()
    assert report_by_beta.clips == 0


@pytest.mark.long
def test_only_the_cluster_of_a_killed_writer_removes_what_it_left(twenty_clips, monkeypatch):
    """Writer 9999 of cluster alpha was killed, and left its journal and the rows of an open piece.

    To another cluster, which may not see its locks, a writer that still runs would look the same.
    """
    run_on_cluster(monkeypatch, "alpha")
    stage, _ = prepare_extraction(twenty_clips, "twenty", shard=(0, 2), limit=1).run()
    rows_of_killed_writer = stage.path / "pieces" / "0.9999.1.rows"
    rows_of_killed_writer.touch()
    (stage.path / "journal" / "9999.jsonl").touch()

    run_on_cluster(monkeypatch, "beta")
    prepare_extraction(twenty_clips, "twenty", shard=(1, 2)).run()
    assert rows_of_killed_writer.exists()

    run_on_cluster(monkeypatch, "alpha")
    prepare_extraction(twenty_clips, "twenty", shard=(0, 2)).run()
    assert not rows_of_killed_writer.exists()


@pytest.mark.long
@pytest.mark.parametrize(("ahead_s", "word"), [(-3600.0, "behind"), (3600.0, "ahead of")])
def test_a_run_and_an_examination_note_a_clock_that_differs_from_the_disks(
    twenty_clips, monkeypatch, ahead_s, word
):
    """The machine's clock is an hour behind the times that the disk gives to files, or ahead of them."""
    notes: list[str] = []
    set_clock_ahead(monkeypatch, ahead_s)

    prepare_extraction(twenty_clips, "twenty", shard=(0, 2), note=notes.append).run()
    findings = findings_of(prepare_extraction(twenty_clips, "twenty", shard=(1, 2)))

    (note,) = [note for note in notes if "clock" in note]
    assert word in note
    assert "clock" in findings


@pytest.mark.long
def test_a_clock_that_agrees_with_the_disks_is_not_mentioned(twenty_clips, monkeypatch):
    """The machine's clock tells the time that the disk gives to files: neither notes nor findings name it."""
    notes: list[str] = []
    set_clock_ahead(monkeypatch, 0.0)

    prepare_extraction(twenty_clips, "twenty", shard=(0, 2), note=notes.append).run()
    findings = findings_of(prepare_extraction(twenty_clips, "twenty", shard=(1, 2)))

    assert not any("clock" in note for note in notes)
    assert "clock" not in findings


def set_clock_ahead(monkeypatch, ahead_s: float) -> None:
    """Let this machine's clock be some seconds ahead of the true time."""
    true_time = time.time
    clock = SimpleNamespace(time=lambda: true_time() + ahead_s)
    monkeypatch.setattr(machine_module, "time", clock)


@pytest.mark.parametrize(
    ("removed_videos", "level", "count"),
    [
        (["0.mp4"], "note", "2 of 3 videos"),
        (["0.mp4", "1.mp4", "2.mp4"], "fault", "0 of 3 videos"),
    ],
    ids=["one", "all"],
)
def test_videos_that_are_not_found_are_counted_and_a_fault_if_there_is_none(
    folder_of_three_films, removed_videos, level, count
):
    """The manifest lists the videos 0.mp4 to 2.mp4."""
    for name in removed_videos:
        (folder_of_three_films / name).unlink()

    finding = findings_of(prepare_extraction(folder_of_three_films))["videos"]

    assert finding.level == level
    assert count in finding.text


@pytest.mark.long
def test_an_examination_accepts_the_next_version_of_a_store_but_not_a_sealed_one(folder_of_three_films):
    """Version 1.0.0 is sealed. To extract it again is a fault, also when its stage is removed."""
    of.extract(
        folder_of_three_films / "films.csv",
        folder_of_three_films / "s",
        n_frames=2,
        workers=1,
        licence="CC0-1.0",
        progress=False,
    )

    same_version = findings_of(prepare_extraction(folder_of_three_films))["stage"]
    next_version = findings_of(prepare_extraction(folder_of_three_films, version="1.0.1"))["stage"]
    shutil.rmtree(folder_of_three_films / "s.staging")
    same_version_without_stage = findings_of(prepare_extraction(folder_of_three_films))["stage"]

    assert same_version.level == "fault"
    assert next_version.level == "ok"
    assert same_version_without_stage.level == "fault"


def test_tasks_without_clips_are_counted(folder_of_three_films):
    """Three clips are one piece, which one of eight tasks does."""
    finding = findings_of(prepare_extraction(folder_of_three_films, shard=(0, 8)))["clips"]

    assert finding.level == "note"
    assert "7 of 8 tasks" in finding.text


@pytest.mark.long
def test_a_run_that_has_nothing_left_to_do_names_no_pieces(folder_of_three_films):
    """All three clips, which are one piece, are done; the stage is not sealed."""
    prepare_extraction(folder_of_three_films, licence="CC0-1.0").run()

    finding = findings_of(prepare_extraction(folder_of_three_films))["clips"]

    assert (finding.level, finding.text) == ("note", "3 clips, of which none is left to do")


@pytest.mark.long
def test_tasks_whose_share_was_done_before_are_counted_as_idle(twenty_clips):
    """Twenty clips are two pieces, and so the shares of two tasks, of which the first was done."""
    prepare_extraction(twenty_clips, "twenty", shard=(0, 2)).run()

    finding = findings_of(prepare_extraction(twenty_clips, "twenty", shard=(1, 2)))["clips"]

    assert finding.level == "note"
    assert finding.text == "20 clips, work in 1 piece of 16: 1 of 2 tasks have nothing to do"


@pytest.mark.long
def test_tasks_get_pieces_of_all_rows_of_a_growing_store_though_two_rows_alone_are_to_do(
    folder_of_three_films,
):
    """A store of 32 clips, tt1-01 to tt1-32, is extended by tt1-00 and tt1-33, by an array of three tasks.

    The 34 rows are three pieces: rows 0 to 15, 16 to 31, and 32 and 33. Each task gets one piece. The new
    clips are the first and the last row, so that pieces 0 and 2 have work. The task of piece 1 has none, and
    the examination before jobs are queued says so.
    """

    def write(name, numbers):
        clips = tuple(of.Clip(f"tt1-{number:02}", "tt1", "0.mp4") for number in numbers)
        of.write_manifest(of.Manifest(clips, folder_of_three_films), folder_of_three_films / f"{name}.csv")

    write("old", range(1, 33))
    prepared = prepare_extraction(folder_of_three_films, "old")
    stage, _ = prepared.run()
    prepared.seal(stage)
    shutil.rmtree(folder_of_three_films / "s.staging")
    write("new", [0, 33])

    grown = prepare_extraction(
        folder_of_three_films,
        "new",
        append=folder_of_three_films / "s-1.0.0",
        version="1.1.0",
        shard=(0, 3),
    )
    finding = findings_of(grown)["clips"]

    assert finding.text == "2 clips, work in 2 pieces of 16: 1 of 3 tasks have nothing to do"


def with_network_on(extraction, device: str):
    """Copy an extraction whose record says that its backbone is computed on a device.

    On a GPU, the record also says how many clips are computed at once.
    """
    [backbone] = extraction.job.backbones
    compute = backbone.provenance["compute"] | {"device": device}
    if device == "cuda":
        compute["clips_at_once"] = 8
    network = replace(backbone, provenance=backbone.provenance | {"compute": compute})
    job = replace(extraction.job, backbones=(network,))
    return replace(extraction, job=job)


@pytest.mark.long
def test_a_run_begun_on_gpus_can_be_queued_but_not_done_without_one(folder_of_three_films):
    """Jobs are queued on a login node, which has no GPU. A store must be computed on one kind of device.

    The records of the two runs say that their backbone was computed on a GPU ("cuda"), and on a CPU.
    """
    on_gpu_node = with_network_on(prepare_extraction(folder_of_three_films, limit=1), "cuda")
    on_gpu_node.run()

    on_login_node = with_network_on(prepare_extraction(folder_of_three_films), "cpu")

    assert findings_of(on_login_node)["stage"].level == "ok"
    with pytest.raises(StoreError, match="device"):
        on_login_node.run()


@pytest.fixture
def empty_cache_of_weights(tmp_path, monkeypatch):
    """The folder in which the Hugging Face Hub keeps downloaded weights is empty."""
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    "options",
    [{}, {"weights": "lab/net"}, {"weights": "lab/net@main"}],
    ids=["the usual weights", "others", "a branch of others"],
)
@pytest.mark.usefixtures("empty_cache_of_weights")
def test_an_examination_without_the_weights_says_how_to_get_them(options):
    """Before jobs are queued, each backbone is built on the CPU of the login node, here X-CLIP.

    Its weights were not downloaded, whichever the options ask for; the error names the command that does it.
    """
    x_clip = Recipe("xclip", n_frames=None, options=options)

    with pytest.raises(BackboneError, match="obygaze weights fetch"):
        recipes_on_cpu([x_clip])


def test_an_examination_loads_a_network_for_the_gpu_on_the_cpu():
    """Only whether it loads is examined; the login node may have no GPU."""
    pytest.importorskip("torch")
    from obygaze_features.backbones import Compute

    on_gpu = {"weights": "random:0", "compute": Compute("cuda", "bfloat16")}

    network, descriptors = recipes_on_cpu([Recipe("clip", n_frames=2, options=on_gpu), Recipe("descriptors")])

    assert network.options["compute"] == Compute("cpu", "bfloat16")
    assert descriptors == Recipe("descriptors")  # they are no network


# --- a GPU that is asked for
@pytest.fixture
def dev_of_machine_without_gpu(monkeypatch, tmp_path):
    """The folder that stands for /dev of a Linux machine, which has no GPU."""
    monkeypatch.setattr(cores.sys, "platform", "linux")
    monkeypatch.setattr(cores, "NODE_GPUS", tmp_path / "gpus")
    monkeypatch.setattr(cores, "DEVICES", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


@pytest.mark.parametrize("device", ["nvidia0", "nvidiactl", "kfd", "dxg"])
def test_a_gpu_is_found_by_its_file_in_dev(dev_of_machine_without_gpu, device):
    """The files are those of NVIDIA, AMD and Windows' Linux. To look for them is quicker than a library.

    `no_gpu_here` gives the reason why there is none, or an empty text.
    """
    dev = dev_of_machine_without_gpu
    (dev / "null").touch()
    assert cores.no_gpu_here() != ""

    (dev / device).touch()

    assert cores.no_gpu_here() == ""


@pytest.mark.parametrize("device", ["nvidia0", "nvidiactl", "kfd", "dxg"])
def test_a_gpu_that_cuda_visible_devices_hides_is_not_found(dev_of_machine_without_gpu, monkeypatch, device):
    """An empty CUDA_VISIBLE_DEVICES hides all GPUs."""
    (dev_of_machine_without_gpu / device).touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    assert "CUDA_VISIBLE_DEVICES" in cores.no_gpu_here()


def test_which_backbones_run_a_network_is_known_without_loading_them():
    """A backbone that runs a network has the option `compute`, as a network can run on several devices."""
    pytest.importorskip("torch")
    for name in (*BACKBONES, *TEXT_BACKBONES):
        has_option = "compute" in of.backbones.backbone_options(name)  # which loads its module
        assert is_known_network(name) == has_option, name


@pytest.mark.long
@pytest.mark.parametrize("option", [("--device", "cuda"), ("--gpus", "0,1")], ids=["device", "gpus"])
def test_a_gpu_that_is_not_there_is_refused_before_networks_are_loaded(folder_of_three_films, option):
    """The command runs in a process that sees no GPU. At its end it prints whether PyTorch was imported."""
    script = (
        "import sys\n"
        "from obygaze.cli import main\n"
        "try:\n"
        f"    main(['extract', 'films.csv', 's', '--backbone', 'xclip', *{option!r}])\n"
        "finally:\n"
        "    print('torch' in sys.modules)"
    )
    no_gpu = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}

    result = python("-c", script, code=1, cwd=folder_of_three_films, env=no_gpu)

    was_torch_imported = result.stdout.strip()
    assert was_torch_imported == "False"
    assert "CUDA_VISIBLE_DEVICES" in result.stderr
    assert not (folder_of_three_films / "s.staging").exists()


# --- a stage that is not what it was
@pytest.mark.long
def test_a_run_whose_stage_is_renamed_says_so_and_can_be_resumed(folder_of_three_films):
    """The stage s.staging is renamed while the run works on it, and is then given its name again."""
    extraction = prepare_extraction(folder_of_three_films)
    renamed_stage = folder_of_three_films / "other.staging"

    def rename_stage_and_go_on() -> bool:
        """Is asked after each clip whether to stop."""
        if extraction.stage_path.exists():
            extraction.stage_path.rename(renamed_stage)
        return False

    with pytest.raises(ExtractError, match=r"s\.staging.*renamed"):
        extraction.run(stopped=rename_stage_and_go_on)

    renamed_stage.rename(extraction.stage_path)
    stage, _ = prepare_extraction(folder_of_three_films).run()
    assert stage.missing() == []


@pytest.mark.long
def test_an_examination_calls_a_renamed_stage_a_fault(folder_of_three_films):
    """The stage s.staging of a run of one clip is renamed to other.staging. Its clips would be done again.

    To a run of other settings it is just another stage, which is not mentioned.
    """
    prepare_extraction(folder_of_three_films, limit=1).run()
    (folder_of_three_films / "s.staging").rename(folder_of_three_films / "other.staging")

    findings = examine_run(prepare_extraction(folder_of_three_films))
    findings_with_other_settings = examine_run(prepare_extraction(folder_of_three_films, n_frames=3))

    (finding,) = [finding for finding in findings if "other.staging" in finding.text]
    assert finding.level == "fault"
    assert not any("other.staging" in finding.text for finding in findings_with_other_settings)


@pytest.mark.long
def test_a_run_that_begins_anew_names_its_renamed_stage(folder_of_three_films):
    """The stage s.staging of a run of one clip is renamed to other.staging, and all begins anew."""
    prepare_extraction(folder_of_three_films, limit=1).run()
    (folder_of_three_films / "s.staging").rename(folder_of_three_films / "other.staging")

    notes: list[str] = []
    prepare_extraction(folder_of_three_films, note=notes.append).run()

    assert any("other.staging" in note for note in notes)


@pytest.mark.long
def test_a_run_of_other_clips_than_its_stage_says_how_many_differ(folder_of_three_films):
    """The stage was begun with the three clips of films.csv; the manifest fewer.csv lists two of them."""
    prepare_extraction(folder_of_three_films, limit=1).run()
    write_manifest_of(folder_of_three_films, n_clips=2, corpus="fewer")

    with pytest.raises(StoreError, match=r"3 clips of 'films', 1 of which your list 'fewer' of 2 lacks"):
        prepare_extraction(folder_of_three_films, "fewer").run()


@pytest.mark.long
def test_a_renamed_manifest_resumes_its_stage_by_the_old_corpus_name(folder_of_three_films):
    """A corpus is named after its manifest, so after the renaming --corpus must name it as before."""
    prepare_extraction(folder_of_three_films, limit=1).run()
    (folder_of_three_films / "films.csv").rename(folder_of_three_films / "renamed.csv")

    with pytest.raises(StoreError, match="--corpus films"):
        prepare_extraction(folder_of_three_films, "renamed").run()
    prepare_extraction(folder_of_three_films, "renamed", corpus="films").run()


@pytest.mark.parametrize(
    ("backbone", "level", "named"),
    [
        pytest.param("xclip", "fault", "xclip", id="the usual weights of a network"),
        pytest.param("clip=lab/net", "fault", "lab/net", id="weights that are typed"),
        pytest.param("descriptors", "ok", "descriptors", id="no network"),
        pytest.param(
            "xclip-lsmdc", "ok", "xclip-lsmdc", id="a network without usual weights: theirs is a path"
        ),
    ],
)
def test_weights_that_are_missing_in_the_cache_are_a_fault(monkeypatch, tmp_path, backbone, level, named):
    """The cache of the Hugging Face Hub is an empty folder."""
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))

    (finding,) = cached_weights([backbone])

    assert finding.level == level
    assert named in finding.text


def test_weights_of_an_unknown_backbone_are_refused_by_its_name():
    """The backbone xclip is misspelt."""
    pytest.importorskip("huggingface_hub")
    with pytest.raises(BackboneError, match="xclop"):
        list(cached_weights(["xclop"]))


@pytest.mark.long
@pytest.mark.usefixtures("dev_of_machine_without_gpu")
def test_a_gpu_that_is_asked_for_and_absent_is_a_fault():
    """On a machine without a GPU, `obygaze doctor` is asked about the device "cuda"."""
    (finding,) = [finding for finding in examine(device="cuda") if finding.about == "gpu"]

    assert finding.level == "fault"


@pytest.mark.parametrize(
    ("number", "may_be_mended"),
    [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EROFS, True), (errno.ENOENT, False)],
    ids=["no space", "over the quota", "read-only", "no such file"],
)
def test_a_system_error_is_one_line_with_its_path_and_remedy(number, may_be_mended):
    """For want of space, the same command can be run again later; a missing file does not come by itself."""
    words = os.strerror(number)  # such as "No space left on device"
    error = OSError(number, words, "stores/films.staging/pieces/0.rows")

    line = system_error_line(error)

    assert line.startswith(f"stores/films.staging/pieces/0.rows: {words}")
    has_remedy = "run the same command again" in line
    assert has_remedy == may_be_mended


@pytest.mark.parametrize(("level", "exit_code"), [("ok", 0), ("fault", 3)])
def test_extract_with_check_prints_what_it_finds_and_extracts_nothing(
    folder_of_three_films, monkeypatch, capsys, level, exit_code
):
    """The examination finds one thing, about the room on the disk."""
    finding = Diagnosis("room", level, "for 3 films")
    monkeypatch.setattr(before_queue, "examine_run", lambda _extraction: [finding])
    settings = ("--backbone", "descriptors", "--licence", "CC0-1.0", "--workers", 1)

    code = obygaze(
        "extract", folder_of_three_films / "films.csv", folder_of_three_films / "s", *settings, "--check"
    )

    assert code == exit_code
    assert capsys.readouterr().out.split() == [level, "room", "for", "3", "films"]
    assert not (folder_of_three_films / "s").exists()
