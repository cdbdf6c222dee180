"""Machines that miss videos which others find: the run stops, and nothing is sealed with holes."""

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.extraction import RunReport
from obygaze_features.extraction.extract import prepare
from obygaze_features.io import NO_SUCH_FILE
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import ClipResult, Stage, staging_path
from obygaze_features.store.missing_videos import (
    ABSENT_FOLDER,
    MissingVideoCheck,
    clips_with_returned_video,
    refuse_missing_videos,
)

from .toy_stores import CORPUS, group, plan, seal_stage_of

pytestmark = pytest.mark.usefixtures("no_slurm")


CLIPS_OF_TT0 = [f"tt0-{i:02}" for i in range(16)]
CLIPS_OF_TT1 = [f"tt1-{i:02}" for i in range(16, 32)]
"""The ids of the clips in each of the two folders of `corpus`."""

SHARE_OF_TT0 = (0, 2)
SHARE_OF_TT1 = (1, 2)
"""The first and the second half of the work: the clips of one folder each."""


@pytest.fixture
def no_slurm(monkeypatch):
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)


@pytest.fixture
def corpus(tmp_path) -> Manifest:
    """32 clips, of which 16 have videos in the folder tt0, and 16 in tt1; nobody decodes the videos here.

    A piece of a stage has 16 clips: those of a folder are the share of one of two machines.
    """
    clips = []
    for i in range(32):
        movie = f"tt{i // 16}"
        video = Path(movie) / f"clip-{i:02}.mp4"
        (tmp_path / "films" / video).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "films" / video).write_bytes(b"a video")
        clips.append(Clip(f"{movie}-{i:02}", movie, str(video)))
    return Manifest(tuple(clips), tmp_path / "films")


class Machine:
    """A machine that extracts a corpus, without decoding videos.

    It fails every clip: for the reason NO_SUCH_FILE if its video is absent, and else as one that cannot be
    decoded. Only the first of the two may change on another machine.

    Attributes
    ----------
    done
        The clips of the last run, in order.
    """

    def __init__(self, name, corpus, store, monkeypatch) -> None:
        self.name = name
        self.corpus = corpus
        self.store = store
        self.monkeypatch = monkeypatch
        self.done: list[str] = []

    def run(self, shard=(0, 1), during=lambda: None):
        """Extract a share of the corpus as `extract` does, and return the stage.

        Parameters
        ----------
        shard
            The share: (0, 2) is the first half, and (0, 1) all.
        during
            Called before each clip: what happens elsewhere meanwhile.
        """
        self.monkeypatch.setenv("SLURMD_NODENAME", self.name)
        work = prepare(self.corpus, self.store, ["descriptors"], n_frames=1, shard=shard, note=print)
        self.done = []

        def fail_every_clip(job, stage, missing, *, stopped):
            """Stand in for the engine, which decodes and encodes the missing clips of a stage.

            It reports after each commit, and ends where it is told that the run is stopped.
            """
            with stage.writer(missing) as writer:
                for task in job.tasks(missing):
                    during()
                    reason = "garbage" if task.path.exists() else NO_SUCH_FILE
                    results = [ClipResult(task.clip_id, "failed", reason)]
                    writer.commit(results)
                    self.done.append(task.clip_id)
                    yield RunReport(), results
                    if stopped():
                        break

        object.__setattr__(work, "engine", fail_every_clip)  # `work` is frozen
        stage, *_ = work.run()
        return stage


@pytest.fixture
def machine_named(corpus, tmp_path, monkeypatch):
    return lambda name: Machine(name, corpus, tmp_path / "store", monkeypatch)


def seal_what_machines_wrote(tmp_path, **options):
    """Make a finished store of what the machines have written, and return its path.

    They wrote it into the staging folder beside the store, where it is looked for without a path.
    """
    return seal_stage_of(tmp_path / "store", licence="CC0-1.0", **options)


def hide(corpus: Manifest, movie: str = "tt1") -> None:
    (corpus.root / movie).rename(corpus.root / "away")


def show(corpus: Manifest, movie: str = "tt1") -> None:
    (corpus.root / "away").rename(corpus.root / movie)


def test_a_machine_without_its_videos_stops_and_fails_no_clip(machine_named, corpus):
    """Two machines share the work: n1 does the clips of folder tt0, and notes that it sees tt1 as well.

    Where n2 does not see tt1, a disk is not mounted: its clips are not recorded as failed, and n2 does them
    once the folder is there.
    """
    machine_named("n1").run(SHARE_OF_TT0)

    hide(corpus, "tt1")
    blind = machine_named("n2")
    with pytest.raises(StoreError):
        blind.run(SHARE_OF_TT1)
    assert blind.done == []

    show(corpus, "tt1")
    stage = machine_named("n2").run(SHARE_OF_TT1)
    assert stage.missing() == []


@pytest.mark.long
def test_clips_are_done_again_if_another_machine_finds_their_videos(machine_named, corpus, monkeypatch):
    """Machine n2 has the share of the folder tt1, which it does not see, so that these clips fail.

    Meanwhile n1 runs, sees tt1, and notes that it does: so n2 ends with an error, as its disk is not mounted.
    Once it is, n2 does the same clips again, because they failed for this reason alone.

    Both machines are played by this process. What one sees is set by moving the folder away (`hide`) and back
    (`show`); its name is an environment variable.
    """
    hide(corpus, "tt1")
    blind_n2 = machine_named("n2")

    def run_n1_which_sees_tt1() -> None:
        """Do the clips of tt0 as n1, in the middle of the run of n2; then go on as n2."""
        show(corpus, "tt1")
        machine_named("n1").run(SHARE_OF_TT0)
        hide(corpus, "tt1")
        monkeypatch.setenv("SLURMD_NODENAME", "n2")

    with pytest.raises(StoreError):
        blind_n2.run(SHARE_OF_TT1, during=run_n1_which_sees_tt1)
    assert blind_n2.done == CLIPS_OF_TT1

    show(corpus, "tt1")
    seeing_n2 = machine_named("n2")
    seeing_n2.run(SHARE_OF_TT1)
    assert seeing_n2.done == CLIPS_OF_TT1


def test_sealing_waits_for_clips_that_failed_on_a_machine_without_a_folder_that_another_machine_sees(
    machine_named, corpus, tmp_path
):
    """Machine n2 does all clips, but does not see the folder tt1: the clips of tt1 fail.

    Machine n1 sees tt1. It is given the share of tt0, of which nothing is left to do, and notes what it sees.
    So the clips of tt1 could still be done, and a store without them is sealed only if that is allowed
    explicitly. Once n1 was given all clips, and has done those of tt1, the store is sealed as usual.
    """
    hide(corpus, "tt1")
    machine_named("n2").run()
    show(corpus, "tt1")
    seeing_n1 = machine_named("n1")
    seeing_n1.run(SHARE_OF_TT0)
    assert seeing_n1.done == []

    first_clip_of_tt1 = "tt1-16"
    with pytest.raises(StoreError, match=first_clip_of_tt1):
        seal_what_machines_wrote(tmp_path)
    assert seal_what_machines_wrote(tmp_path, allow_missing=True, version="0.9.0").exists()

    seeing_n1.run()
    assert seeing_n1.done == CLIPS_OF_TT1
    assert seal_what_machines_wrote(tmp_path).exists()


def test_a_run_stops_when_its_videos_go_away(machine_named, corpus):
    """A machine does 32 clips; tt0-00 to tt0-15 have their videos in folder tt0, the others in tt1.

    Folder tt0 disappears at the second clip, and the run stops. The next run begins with that clip again.
    """
    machine = machine_named("n1")
    clips_begun = []

    def unmount_tt0_at_the_second_clip() -> None:
        clips_begun.append("a clip")
        if len(clips_begun) == 2:
            hide(corpus, "tt0")

    with pytest.raises(StoreError, match="clip tt0-01"):
        machine.run(during=unmount_tt0_at_the_second_clip)
    assert machine.done == ["tt0-00", "tt0-01"]

    show(corpus, "tt0")
    machine.run()
    assert machine.done == [*CLIPS_OF_TT0[1:], *CLIPS_OF_TT1]


def test_a_machine_that_finds_no_video_at_all_does_nothing(machine_named, corpus, tmp_path):
    """All videos are in the folders tt0 and tt1, which are moved away. No clip is recorded as failed."""
    for movie in ("tt0", "tt1"):
        (corpus.root / movie).rename(tmp_path / movie)
    node = machine_named("n1")

    with pytest.raises(StoreError):
        node.run()

    assert node.done == []


def test_a_video_that_no_machine_finds_is_a_failed_clip(machine_named, corpus, tmp_path):
    """Two machines see all other videos: the file is really not there, and its clip is not tried again.

    The first machine does all 32 clips, and the second finds nothing left to do.
    """
    (corpus.root / "tt1" / "clip-31.mp4").unlink()
    first = machine_named("n1")
    second = machine_named("n2")

    first.run()
    second.run()

    all_clips = [*CLIPS_OF_TT0, *CLIPS_OF_TT1]
    assert first.done == all_clips
    assert second.done == []
    assert seal_what_machines_wrote(tmp_path).exists()


def test_a_store_with_more_failed_clips_than_wanted_is_not_sealed(machine_named, tmp_path):
    """A machine has tried all 32 clips, and all failed, as the files are no videos.

    A finished store is made of them (`seal`) only if no more failed than the caller allows: not if 3 may
    fail, and well if 32 may.
    """
    machine = machine_named("n1")
    machine.run()
    assert len(machine.done) == 32

    with pytest.raises(StoreError):
        seal_what_machines_wrote(tmp_path, max_failed=3)

    assert seal_what_machines_wrote(tmp_path, max_failed=32).exists()


# --- four clips and their videos
# ---------------------------------------------------------------------------
CLIPS = [clip.clip_id for clip in plan(4)]
LOST = f"the file cannot be read: {os.strerror(errno.ESTALE)}"
"""The reason of a clip whose file system went away."""
DAMAGED = "garbage"
"""The reason of a clip whose video is there, and cannot be decoded."""


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """A stage of four clips, of which none is done, on the machine "this one"."""
    monkeypatch.setenv("SLURMD_NODENAME", "this one")
    return Stage.open(staging_path(tmp_path / "toy"), plan(4), [group()], CORPUS)


def videos_in(folder, *there, clips=CLIPS):
    """Give each clip a video, of which those in `there` exist."""
    videos = {clip: folder / f"{number}.mp4" for number, clip in enumerate(clips)}
    for clip in there:
        videos[clip].touch()
    return videos


def noted_as_absent(stage):
    """Return what each machine noted: machine -> clips whose video it does not find."""
    return {path.stem: json.loads(path.read_text()) for path in (stage.path / ABSENT_FOLDER).glob("*")}


def fail(stage, reason_of_clip):
    """Let clips of a stage fail: id of a clip -> the reason with which it fails."""
    with stage.writer(list(reason_of_clip)) as writer:
        for clip, reason in reason_of_clip.items():
            writer.commit([ClipResult(clip, "failed", reason)])


@pytest.mark.parametrize("n_there", [0, 1, 4])
@pytest.mark.parametrize("has_work", [True, False])
def test_a_machine_that_finds_none_of_its_videos_is_refused_if_it_has_work(
    stage, tmp_path, n_there, has_work
):
    """Of the videos of four clips, a machine ("this one") finds none, one or all when a run begins.

    If it finds none, and there are clips to do, its disks are probably not mounted: the run is refused. One
    video that is there is enough to go on. In any case it notes for other machines what it does not find.
    """
    videos = videos_in(tmp_path, *CLIPS[:n_there])

    if n_there == 0 and has_work:
        with pytest.raises(StoreError, match=r"this one finds none .* 4 clips"):
            MissingVideoCheck(stage, videos)
    else:
        assert not MissingVideoCheck(stage, videos, has_work=has_work).failed

    assert noted_as_absent(stage) == {"this_one": sorted(CLIPS[n_there:])}


@pytest.mark.parametrize("videos", [{}, dict.fromkeys(CLIPS)], ids=["texts", "no clip has a video"])
def test_a_run_of_clips_without_videos_looks_for_none(stage, videos):
    """The rows are texts, or the manifest names no video of any clip: nothing is noted as absent."""
    assert not MissingVideoCheck(stage, videos).failed
    assert noted_as_absent(stage) == {}


def test_a_clip_that_failed_for_an_absent_video_and_is_not_in_the_manifest_does_not_forbid_sealing(
    stage, tmp_path
):
    """A stage has four clips; a run has a manifest of the first two, whose videos are there.

    The last clip, of a parent store, failed before because its video was absent. Its path is not known, so
    that nobody can look for the video: it is noted as absent on this machine ("this one"), as if it had been
    looked for. Then no machine has found it, and the stage may be sealed without it. The third clip failed as
    its video is damaged, and is not noted.
    """
    in_manifest = CLIPS[:2]
    _, _, damaged_clip, absent_clip = CLIPS
    fail(stage, {damaged_clip: DAMAGED, absent_clip: LOST})

    MissingVideoCheck(stage, videos_in(tmp_path, *in_manifest, clips=in_manifest))  # a run that begins

    assert noted_as_absent(stage) == {"this_one": [absent_clip]}
    refuse_missing_videos(stage)  # raises no error


def outcome(clip, status, reason):
    """What a check looks at in the result of a clip."""
    return SimpleNamespace(clip_id=clip, status=status, reason=reason)


@pytest.mark.parametrize("reason", [NO_SUCH_FILE, LOST], ids=["gone", "unmounted"])
def test_a_run_stops_at_a_video_that_was_there_when_it_began(stage, tmp_path, reason):
    """When a run begins, the videos of the first three of four clips are there.

    Then the second clip fails as its video is damaged, which stops nothing. The first fails as its video
    cannot be found any more: from then on the check says that the run must stop (`failed`). The same happens
    to the third clip later. The run is refused with the name of the clip that was lost first.
    """
    check = MissingVideoCheck(stage, videos_in(tmp_path, *CLIPS[:3]))
    lost = outcome(CLIPS[0], "failed", reason)
    damaged = outcome(CLIPS[1], "failed", DAMAGED)
    lost_later = outcome(CLIPS[2], "failed", NO_SUCH_FILE)

    check.check([damaged, lost])
    assert check.failed

    check.check([lost_later])
    with pytest.raises(StoreError, match=f"clip {CLIPS[0]}"):
        check.refuse()


@pytest.mark.parametrize(
    ("clip", "status", "reason"),
    [
        pytest.param(CLIPS[0], "failed", DAMAGED, id="damaged"),
        pytest.param(CLIPS[0], "partial", NO_SUCH_FILE, id="partial"),
        pytest.param(CLIPS[3], "failed", NO_SUCH_FILE, id="never there"),
        pytest.param("unknown", "failed", NO_SUCH_FILE, id="a clip without a video"),
    ],
)
def test_a_run_goes_on_if_no_clip_failed_because_a_video_went_away(stage, tmp_path, clip, status, reason):
    """When a run begins, the videos of the first three of four clips are there, and they stay there.

    A clip may fail as its video is damaged, or as it was absent from the beginning; or it is partial, so that
    its video was read; or it has no video. None of this says that a file system went away.
    """
    check = MissingVideoCheck(stage, videos_in(tmp_path, *CLIPS[:3]))
    damaged = outcome(CLIPS[1], "failed", DAMAGED)

    check.check([damaged, outcome(clip, status, reason)])

    assert not check.failed
    check.refuse()  # raises no error


def note_of_another_machine(stage, absent):
    """Write what a machine "other" noted: the clips whose videos it does not find."""
    notes = stage.path / ABSENT_FOLDER
    notes.mkdir()
    (notes / "other.json").write_text(json.dumps(absent))


@pytest.mark.parametrize(
    ("absent_there", "n_found_there_alone"),
    [([], 2), (CLIPS[2:3], 1)],
    ids=["the other machine finds all four", "the other machine finds one more"],
)
def test_a_run_is_refused_before_it_begins_if_another_machine_finds_videos_that_are_absent_here(
    stage, tmp_path, absent_there, n_found_there_alone
):
    """Of four videos, this machine finds the first two; a machine called "other" finds all, or three.

    It has noted in the stage which ones it does not find (`absent_there`). So a disk is not mounted here, and
    clips would fail for it. The error says how many videos only the other machine finds.
    """
    note_of_another_machine(stage, absent_there)
    videos = videos_in(tmp_path, *CLIPS[:2])

    with pytest.raises(StoreError, match=rf"videos of {n_found_there_alone} clips?, .* other does"):
        MissingVideoCheck(stage, videos, has_work=True)


@pytest.mark.parametrize(
    ("absent_there", "has_work"),
    [(CLIPS[2:], True), (CLIPS, True), ([], False)],
    ids=["the other machine finds the same two", "the other machine finds none", "a run without work"],
)
def test_absent_videos_stop_no_run_if_no_other_machine_finds_them_or_the_run_has_no_work(
    stage, tmp_path, absent_there, has_work
):
    """Of four videos, this machine finds the first two; a machine "other" noted which it does not find.

    If that one finds no more than this one, the videos do not exist, and their clips fail rightly. If it
    finds all four, a disk is not mounted here; but a run that has no clips to do needs no video.
    """
    note_of_another_machine(stage, absent_there)
    videos = videos_in(tmp_path, *CLIPS[:2])

    MissingVideoCheck(stage, videos, has_work=has_work).refuse()  # raises no error


def test_clips_are_tried_again_where_their_video_is_back(stage, tmp_path):
    """Of four clips that failed, the first two have their video again, and one of them was damaged.

    The third is absent still, and the manifest names no video of the fourth any more.
    """
    reasons = [LOST, DAMAGED, NO_SUCH_FILE, NO_SUCH_FILE]
    fail(stage, dict(zip(CLIPS, reasons, strict=True)))
    videos = videos_in(tmp_path, *CLIPS[:2]) | {CLIPS[3]: None}
    entries = stage.best_entries().values()

    assert clips_with_returned_video(entries, videos) == {CLIPS[0]}


def test_a_clip_that_failed_for_a_lost_mount_forbids_sealing_once_a_machine_has_found_its_video(
    stage, tmp_path
):
    """The first of four clips failed on a machine that had lost its mount; this machine finds its video.

    A run that begins here looks for all videos, and notes in the stage which ones it does not find; that of
    the first clip is not among these. So the clip can still be done, and the stage must not be sealed without
    it.
    """
    clip_with_video = CLIPS[0]
    fail(stage, {clip_with_video: LOST})

    MissingVideoCheck(stage, videos_in(tmp_path, *CLIPS[:2]))  # a run that begins: looks for videos and notes

    with pytest.raises(StoreError, match=clip_with_video):
        refuse_missing_videos(stage)
