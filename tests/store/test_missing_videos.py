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


FIRST = [f"tt0-{i:02}" for i in range(16)]
SECOND = [f"tt1-{i:02}" for i in range(16, 32)]
"""The ids of the clips in each of the two folders of `corpus`."""


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


class Node:
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
def nodes(corpus, tmp_path, monkeypatch):
    return lambda name: Node(name, corpus, tmp_path / "store", monkeypatch)


def seal_store_of_nodes(tmp_path, **options):
    """Make a finished store of what the machines (`nodes`) have written, and return its path.

    They wrote it into the staging folder beside the store, where it is looked for without a path.
    """
    return seal_stage_of(tmp_path / "store", licence="CC0-1.0", **options)


def hide(corpus: Manifest, movie: str = "tt1") -> None:
    (corpus.root / movie).rename(corpus.root / "away")


def show(corpus: Manifest, movie: str = "tt1") -> None:
    (corpus.root / "away").rename(corpus.root / movie)


def test_a_machine_without_its_videos_stops_and_fails_no_clip(nodes, corpus):
    """Two machines share the work: n1 does the clips of folder tt0, and notes that it sees tt1 as well.

    Where n2 does not see tt1, a disk is not mounted: its clips are not recorded as failed, and n2 does them
    once the folder is there.
    """
    share_of_n1, share_of_n2 = (0, 2), (1, 2)
    nodes("n1").run(share_of_n1)

    hide(corpus, "tt1")
    blind = nodes("n2")
    with pytest.raises(StoreError):
        blind.run(share_of_n2)
    assert blind.done == []

    show(corpus, "tt1")
    stage = nodes("n2").run(share_of_n2)
    assert stage.missing() == []


@pytest.mark.long
def test_clips_are_done_again_if_another_machine_finds_their_videos(nodes, corpus, monkeypatch):
    """Machine n2 has the share of the folder tt1, which it does not see, so that these clips fail.

    Meanwhile n1 runs, sees tt1, and notes that it does: so n2 ends with an error, as its disk is not mounted.
    Once it is, n2 does the same clips again, because they failed for this reason alone.
    """
    share_of_n1, share_of_n2 = (0, 2), (1, 2)  # the first and the second half of the clips
    clips_of_tt1 = SECOND
    hide(corpus, "tt1")
    blind_n2 = nodes("n2")

    def run_n1_which_sees_tt1() -> None:
        show(corpus, "tt1")
        nodes("n1").run(share_of_n1)
        hide(corpus, "tt1")
        monkeypatch.setenv("SLURMD_NODENAME", "n2")  # both run in this process

    with pytest.raises(StoreError):
        blind_n2.run(share_of_n2, during=run_n1_which_sees_tt1)
    assert blind_n2.done == clips_of_tt1

    show(corpus, "tt1")
    seeing_n2 = nodes("n2")
    seeing_n2.run(share_of_n2)
    assert seeing_n2.done == clips_of_tt1


def test_clips_that_one_machine_alone_did_not_find_forbid_sealing_until_another_does_them(
    nodes, corpus, tmp_path
):
    """n2 does all clips and does not see the folder tt1: those of it fail. n1 sees it, and notes that.

    They could still be done, so sealing without them must be allowed explicitly, until n1 does all clips.
    """
    hide(corpus, "tt1")
    nodes("n2").run()
    show(corpus, "tt1")
    seeing = nodes("n1")
    share_without_clips_of_tt1 = (0, 2)
    seeing.run(share_without_clips_of_tt1)
    assert seeing.done == []

    with pytest.raises(StoreError, match="tt1-16"):
        seal_store_of_nodes(tmp_path)
    allowed = {"allow_missing": True, "version": "0.9.0"}
    assert seal_store_of_nodes(tmp_path, **allowed).exists()

    seeing.run()
    clips_of_tt1 = SECOND
    assert seeing.done == clips_of_tt1
    assert seal_store_of_nodes(tmp_path).exists()


def test_a_run_stops_when_its_videos_go_away(nodes, corpus):
    """A machine does 32 clips; tt0-00 to tt0-15 have their videos in folder tt0, the others in tt1.

    Folder tt0 disappears at the second clip, and the run stops. The next run begins with that clip again.
    """
    clips_of_tt0, clips_of_tt1 = FIRST, SECOND
    machine = nodes("n1")
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
    assert machine.done == [*clips_of_tt0[1:], *clips_of_tt1]


def test_a_machine_that_finds_no_video_at_all_does_nothing(nodes, corpus, tmp_path):
    """All videos are in the folders tt0 and tt1, which are moved away. No clip is recorded as failed."""
    for movie in ("tt0", "tt1"):
        (corpus.root / movie).rename(tmp_path / movie)
    node = nodes("n1")

    with pytest.raises(StoreError):
        node.run()

    assert node.done == []


def test_a_video_that_no_machine_finds_is_a_failed_clip(nodes, corpus, tmp_path):
    """Two machines see all other videos: the file is really not there, and its clip is not tried again.

    The first machine does all 32 clips, and the second finds nothing left to do.
    """
    (corpus.root / "tt1" / "clip-31.mp4").unlink()
    first = nodes("n1")
    second = nodes("n2")

    first.run()
    second.run()

    all_clips = [*FIRST, *SECOND]
    assert first.done == all_clips
    assert second.done == []
    assert seal_store_of_nodes(tmp_path).exists()


def test_a_store_with_more_failed_clips_than_wanted_is_not_sealed(nodes, tmp_path):
    """A machine has tried all 32 clips, and all failed, as the files are no videos.

    A finished store is made of them (`seal`) only if no more failed than the caller allows: not if 3 may
    fail, and well if 32 may.
    """
    machine = nodes("n1")
    machine.run()
    assert len(machine.done) == 32

    with pytest.raises(StoreError):
        seal_store_of_nodes(tmp_path, max_failed=3)

    assert seal_store_of_nodes(tmp_path, max_failed=32).exists()


# --- four clips and their videos
# ---------------------------------------------------------------------------
CLIPS = [clip.clip_id for clip in plan(4)]
LOST = f"the file cannot be read: {os.strerror(errno.ESTALE)}"
"""The reason of a clip whose file system went away."""


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


def fail(stage, **reasons):
    """Let clips fail; `c0="garbage"` is the first one with this reason."""
    clips = [CLIPS[int(name[1:])] for name in reasons]
    with stage.writer(clips) as writer:
        for clip, reason in zip(clips, reasons.values(), strict=True):
            writer.commit([ClipResult(clip, "failed", reason)])


@pytest.mark.parametrize("n_there", [0, 1, 4])
@pytest.mark.parametrize("has_work", [True, False])
def test_a_machine_that_finds_none_of_its_videos_is_refused_if_it_has_work(
    stage, tmp_path, n_there, has_work
):
    """What it does not find is noted for other machines in any case. One video that is there is enough."""
    videos = videos_in(tmp_path, *CLIPS[:n_there])

    if n_there == 0 and has_work:
        with pytest.raises(StoreError, match=r"this one finds none .* 4 clips"):
            MissingVideoCheck(stage, videos)
    else:
        assert not MissingVideoCheck(stage, videos, has_work=has_work).failed

    assert noted_as_absent(stage) == {"this_one": sorted(CLIPS[n_there:])}


@pytest.mark.parametrize("videos", [{}, dict.fromkeys(CLIPS)], ids=["texts", "no clip has a video"])
def test_clips_without_videos_miss_none(stage, videos):
    """There is nothing to look for, and nothing to note."""
    assert not MissingVideoCheck(stage, videos).failed
    assert noted_as_absent(stage) == {}


def test_a_clip_outside_of_the_manifest_that_failed_as_absent_is_absent_here_too(stage, tmp_path):
    """The last clip is of a parent store, and its path is not known: it forbids no sealing.

    The third failed for another reason, and is none of the manifest's either.
    """
    fail(stage, c2="garbage", c3=LOST)

    MissingVideoCheck(stage, videos_in(tmp_path, *CLIPS[:2], clips=CLIPS[:2]))

    assert noted_as_absent(stage) == {"this_one": [CLIPS[3]]}
    refuse_missing_videos(stage)


def outcome(clip, status, reason):
    """What a check looks at in the result of a clip."""
    return SimpleNamespace(clip_id=clip, status=status, reason=reason)


@pytest.mark.parametrize("reason", [NO_SUCH_FILE, LOST], ids=["gone", "unmounted"])
def test_a_run_stops_at_a_video_that_was_there_when_it_began(stage, tmp_path, reason):
    """Of four videos the first three are there. The first can then not be found any more, later the third.

    The run is refused with the first clip that was lost so: it must not be stored as failed for good. A
    damaged video, as of the second clip, stops nothing.
    """
    check = MissingVideoCheck(stage, videos_in(tmp_path, *CLIPS[:3]))
    lost = outcome(CLIPS[0], "failed", reason)
    damaged = outcome(CLIPS[1], "failed", "garbage")
    lost_later = outcome(CLIPS[2], "failed", NO_SUCH_FILE)

    check.check([damaged, lost])
    assert check.failed

    check.check([lost_later])
    with pytest.raises(StoreError, match=f"clip {CLIPS[0]}"):
        check.refuse()


@pytest.mark.parametrize(
    ("clip", "status", "reason"),
    [
        pytest.param(CLIPS[0], "failed", "garbage", id="damaged"),
        pytest.param(CLIPS[0], "partial", NO_SUCH_FILE, id="partial"),
        pytest.param(CLIPS[3], "failed", NO_SUCH_FILE, id="never there"),
        pytest.param("unknown", "failed", NO_SUCH_FILE, id="a clip without a video"),
    ],
)
def test_a_run_goes_on_after_a_clip_that_failed_for_another_reason(stage, tmp_path, clip, status, reason):
    """Of four videos the first three are there when the run begins; no such video is lost later."""
    check = MissingVideoCheck(stage, videos_in(tmp_path, *CLIPS[:3]))
    damaged = outcome(CLIPS[1], "failed", "garbage")

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
    ids=["it finds all", "it finds one more"],
)
def test_videos_that_another_machine_finds_are_mounted_before_clips_fail(
    stage, tmp_path, absent_there, n_found_there_alone
):
    """Of four videos the last two are absent here; another machine noted that it finds more of them.

    A disk is then not mounted here: the run is refused before it begins.
    """
    note_of_another_machine(stage, absent_there)
    videos = videos_in(tmp_path, *CLIPS[:2])

    with pytest.raises(StoreError, match=rf"videos of {n_found_there_alone} clips?, .* other does"):
        MissingVideoCheck(stage, videos, has_work=True)


@pytest.mark.parametrize(
    ("absent_there", "has_work"),
    [([], False), (CLIPS[2:], True), (CLIPS, True)],
    ids=["no work", "it finds the same", "it finds none"],
)
def test_videos_that_no_other_machine_finds_either_stop_no_run(stage, tmp_path, absent_there, has_work):
    """Of four videos the last two are absent here, and another machine noted which ones it does not find.

    If it finds no more than this one, the videos are just not there. A run without clips to do needs none.
    """
    note_of_another_machine(stage, absent_there)
    videos = videos_in(tmp_path, *CLIPS[:2])

    MissingVideoCheck(stage, videos, has_work=has_work).refuse()  # raises no error


def test_clips_are_tried_again_where_their_video_is_back(stage, tmp_path):
    """Of four clips that failed, the first two have their video again, and one of them was damaged.

    The third is absent still, and the manifest names no video of the fourth any more.
    """
    fail(stage, c0=LOST, c1="garbage", c2=NO_SUCH_FILE, c3=NO_SUCH_FILE)
    videos = videos_in(tmp_path, *CLIPS[:2]) | {CLIPS[3]: None}
    entries = stage.best_entries().values()

    assert clips_with_returned_video(entries, videos) == {CLIPS[0]}


def test_a_clip_that_failed_as_absent_and_is_found_here_forbids_sealing(stage, tmp_path):
    """The first clip failed on a machine without its mount; here it can still be done."""
    fail(stage, c0=LOST)
    MissingVideoCheck(stage, videos_in(tmp_path, *CLIPS[:2]))
    with pytest.raises(StoreError, match=CLIPS[0]):
        refuse_missing_videos(stage)
