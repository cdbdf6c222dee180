"""A dry run counts the clips that the run does then, whatever the store and its stage have of them."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

import obygaze_features as of
from obygaze.demo_corpus import write_video
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import doctor, prepare
from obygaze_features.extraction.before_queue import examine_run
from obygaze_features.store import disk_usage
from obygaze_features.store.disk_usage import FreeSpace
from tests.command import obygaze

HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"
SETTINGS = {"n_frames": 1, "workers": 1, "progress": False, "note": lambda _: None}


@pytest.fixture(scope="module")
def stills(tmp_path_factory):
    """A folder with the stage and the store of version 1.0.0, of three stills, each a clip of the film m.

    Of the clips c0, c1 and c2 the first was read; c1 failed as its picture is damaged, and c2 as its picture
    was absent. The picture of c2 is back now.
    """
    tmp_path = tmp_path_factory.mktemp("stills")
    Image.new("RGB", (8, 8), (90, 9, 9)).save(tmp_path / "0.png")
    (tmp_path / "1.png").write_bytes(b"no picture")
    rows = "".join(f"c{number},m,{number}.png,,,,,\n" for number in range(3))
    (tmp_path / "films.csv").write_text(HEADER + rows, encoding="utf-8")
    manifest = tmp_path / "films.csv"
    of.extract(manifest, tmp_path / "s", ["descriptors"], licence="CC0-1.0", **SETTINGS)
    Image.new("RGB", (8, 8), (9, 9, 90)).save(tmp_path / "2.png")
    return tmp_path


@pytest.fixture
def folder_of_three_stills(stills, tmp_path):
    """The folder of `stills` in a copy: version 1.0.0 has c0; c1 is damaged; the picture of c2 is back."""
    return shutil.copytree(stills, tmp_path / "films")


def version_1_1_0_that_extends_1_0_0(films, **options):
    """Prepare the extraction that makes version 1.1.0 of the store `s` by adding clips to version 1.0.0."""
    options = {"append": films / "s-1.0.0", "version": "1.1.0"} | SETTINGS | options
    return prepare(films / "films.csv", films / "s", ["descriptors"], **options)


def version_1_0_1_from_the_stage(films, **options):
    """Prepare the extraction that makes version 1.0.1 of the store `s`, of the same clips as version 1.0.0.

    It extends no store, and resumes the stage that version 1.0.0 has left, if it is there.
    """
    options = {"append": None, "version": "1.0.1"} | SETTINGS | options
    return prepare(films / "films.csv", films / "s", ["descriptors"], **options)


def finding_about(subject, work):
    """Return what the examination of a run, before jobs are queued, finds about a subject, as "stage"."""
    (finding,) = [finding for finding in examine_run(work) if finding.about == subject]
    return finding


@pytest.mark.parametrize(("retry_failed", "n_clips"), [(False, 1), (True, 2)])
def test_a_dry_run_counts_the_failed_clips_that_the_run_tries_again(
    folder_of_three_stills, retry_failed, n_clips
):
    """The clip whose picture is back is tried again in any case, the damaged one where that is asked for."""
    shutil.rmtree(folder_of_three_stills / "s.staging")
    work = version_1_1_0_that_extends_1_0_0(folder_of_three_stills, retry_failed=retry_failed)

    expected = work.estimate().clips
    _, report = work.run()

    assert expected == report.clips == n_clips


def test_a_store_that_grows_is_examined_under_its_own_licence(folder_of_three_stills):
    """No licence is given for version 1.1.0, which is so sealed under that of version 1.0.0."""
    finding = finding_about("licence", version_1_1_0_that_extends_1_0_0(folder_of_three_stills))

    assert (finding.level, finding.text) == ("ok", "CC0-1.0")


def test_a_dry_run_that_resumes_a_stage_counts_a_failed_clip_whose_picture_is_back(folder_of_three_stills):
    """Version 1.0.1 resumes the stage of version 1.0.0, which has an outcome for each of three clips.

    One was read, one is damaged, and one failed as its picture was absent. That picture is there now, so that
    its clip alone is tried again. The estimate of the dry run, the examination before jobs are queued and the
    run itself must agree on this number.
    """
    work = version_1_0_1_from_the_stage(folder_of_three_stills)

    finding_on_stage = finding_about("stage", work)
    n_expected = work.estimate().clips
    _, report = work.run()

    assert n_expected == 1
    assert finding_on_stage.text.endswith("1 clip left to do")
    assert report.clips == 1


@pytest.mark.parametrize("limit", ["bytes", "files"])
def test_a_resumed_run_needs_the_room_of_what_is_left_to_write(folder_of_three_stills, monkeypatch, limit):
    """The stage of the run has been written in part, and the disk has exactly the room of the rest.

    The room is what stage and store take together at most, less what the stage takes already. It is a number
    of bytes, or of files on disks that limit these. Neither the dry run nor the examination of the run,
    before jobs are queued, may say that the disk is too small.
    """
    notes = []
    work = version_1_0_1_from_the_stage(folder_of_three_stills, note=notes.append)
    needed = work.estimate().room  # of the whole stage and the store
    stage_files = [path for path in work.stage_path.rglob("*") if path.is_file()]
    stage_bytes = sum(file.stat().st_size for file in stage_files)
    free = {
        "bytes": FreeSpace(bytes=needed.peak_bytes - stage_bytes, files=None),
        "files": FreeSpace(bytes=10**12, files=needed.files - len(stage_files)),
    }
    monkeypatch.setattr(disk_usage, "free_space", lambda _folder: free[limit])
    notes.clear()  # of the estimate above, which saw the real disk

    work.estimate()  # notes if the disk is too small
    finding_on_room = finding_about("room", work)

    assert notes == []
    assert finding_on_room.level != "fault"


def test_a_dry_run_of_frames_a_second_does_not_say_that_every_clip_is_done(tmp_path, capsys):
    """A clip of 2 s has four frames at two a second, and no number of frames that is known before.

    The features of a frame are float32.
    """
    film = tmp_path / "film.mp4"
    write_video(film, (np.full((48, 64, 3), number, np.uint8) for number in range(48)), rate=24)
    clips = (of.Clip("c0", "film", film.name, start_s=0.0, end_s=2.0),)
    of.write_manifest(of.Manifest(clips, tmp_path), tmp_path / "films.csv")
    (frames,) = [
        array for array in of.load_backbone("descriptors", n_frames=1).outputs if array.name == "frames"
    ]

    dry_run = (
        "extract",
        tmp_path / "films.csv",
        tmp_path / "s",
        "--workers",
        1,
        "--per-second",
        2,
        "--dry-run",
    )
    assert obygaze(*dry_run) == 0
    assert "clips to do" in capsys.readouterr().out

    assert obygaze(*dry_run, "--json") == 0
    assert json.loads(capsys.readouterr().out)["feature_bytes"] == 4 * 4 * frames.shape[1]


@pytest.mark.parametrize("with_stage", [False, True], ids=["without a stage", "with the stage of 1.0.0"])
def test_a_run_whose_store_has_the_name_of_an_empty_folder_is_refused_before_anything_is_decoded(
    folder_of_three_stills, with_stage
):
    """Version 1.0.1 is to be made, and its folder is there and empty, as after a copy that was stopped.

    The finished store could not get its name. So the estimate and the run are refused at once, and the
    examination before jobs are queued finds a fault, whether or not another version has left a stage.
    """
    if not with_stage:
        shutil.rmtree(folder_of_three_stills / "s.staging")
    (folder_of_three_stills / "s-1.0.1").mkdir()
    work = version_1_0_1_from_the_stage(folder_of_three_stills)

    for begin in (work.estimate, work.run):
        with pytest.raises(ExtractError, match=r"s-1\.0\.1: is in the place of the store, and is none"):
            begin()
    assert finding_about("stage", work).level == "fault"


def test_a_share_of_a_growing_store_prints_the_command_that_seals_it_under_the_licence_it_keeps(
    folder_of_three_stills, capsys
):
    """Version 1.1.0 extends version 1.0.0, and the first of its two shares is extracted.

    The output ends with the command that seals the store once all shares are done. Its licence is that of
    version 1.0.0 (CC0-1.0), though nobody has typed it here.
    """
    shutil.rmtree(folder_of_three_stills / "s.staging")  # of version 1.0.0; this run makes a stage of its own
    grow = ("--append", folder_of_three_stills / "s-1.0.0", "--store-version", "1.1.0", "--shard", "0/2")

    obygaze(
        "extract",
        folder_of_three_stills / "films.csv",
        folder_of_three_stills / "s",
        "--workers",
        1,
        "--n",
        1,
        *grow,
    )

    seal = f"obygaze store seal {folder_of_three_stills / 's'} --licence CC0-1.0 --store-version 1.1.0"
    assert f"Once all are: {seal}\n" in capsys.readouterr().err


def test_three_terabytes_of_free_space_are_printed_as_3121_gb_by_estimate_and_examination(
    folder_of_three_stills, monkeypatch
):
    """The disk has 3,121.4 GB free, as the disks of clusters have.

    All lines with this number have the same digits, and none a power of ten (3.12e+03).
    """
    free = FreeSpace(bytes=3_121_400_000_000, files=None)
    for module_that_asks in (disk_usage, doctor):
        monkeypatch.setattr(module_that_asks, "free_space", lambda _folder: free)
    work = version_1_0_1_from_the_stage(folder_of_three_stills)

    text_of = {finding.about: finding.text for finding in examine_run(work)}
    facts = dict(work.estimate().facts())

    assert text_of["space"] == "3,121 GB free"
    assert text_of["room"].endswith("needed, 3,121 GB free")
    assert facts["peak disk"].endswith(" GB; 3,121 GB free")


def test_a_video_that_is_there_and_cannot_be_read_is_not_absent(tmp_path):
    """The video of a clip is a folder by mistake. It is there, so that it counts as found, not as absent.

    The clip fails when the extraction reads it, and the reason says what is wrong.
    """
    (tmp_path / "film").mkdir()
    of.write_manifest(of.Manifest((of.Clip("c0", "film", "film"),), tmp_path), tmp_path / "films.csv")
    work = prepare(tmp_path / "films.csv", tmp_path / "s", ["descriptors"], **SETTINGS)

    finding_on_videos = finding_about("videos", work)
    n_absent_videos = work.estimate().absent
    stage, _ = work.run()

    assert finding_on_videos.text == "1 of 1 video found"
    assert n_absent_videos == 0
    assert stage.status()["c0"].status == "failed"
    assert stage.status()["c0"].reason.startswith("this is a directory")


def test_absent_videos_are_no_fault_of_a_run_that_has_no_clip_left_to_do(folder_of_three_stills):
    """The run has done all clips of its stage, and then their pictures were moved to an archive.

    The examination before jobs are queued finds no picture. Where clips are left to do that is a fault; here
    it is a note, as the run would read none.
    """
    work = version_1_0_1_from_the_stage(folder_of_three_stills)
    work.run()
    for picture in folder_of_three_stills.glob("*.png"):
        picture.unlink()

    finding_on_videos = finding_about("videos", work)
    _, report = work.run()

    assert finding_on_videos.level == "note"
    assert report.clips == 0
