"""Machines that miss videos which others find: the run stops, and nothing is sealed with holes."""

from pathlib import Path

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.extraction import RunReport
from obygaze_features.extraction.extract import prepare
from obygaze_features.io import NO_SUCH_FILE
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import ClipResult, seal

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
    """A clip that failed because one machine does not see its video is not lost.

    1. n2 begins with its share, the clips of the folder tt1, which it does not see: they fail.
    2. n1, which sees tt1, runs meanwhile, and notes that it does.
    3. So n2 ends with an error: its disk is not mounted.
    4. Once n2 sees the folder too, it does the same clips again.
    """
    share_of_n1, share_of_n2 = (0, 2), (1, 2)
    hide(corpus, "tt1")
    blind = nodes("n2")

    def run_n1_which_sees_tt1() -> None:
        show(corpus, "tt1")
        nodes("n1").run(share_of_n1)
        hide(corpus, "tt1")
        monkeypatch.setenv("SLURMD_NODENAME", "n2")  # both run in this process

    with pytest.raises(StoreError):
        blind.run(share_of_n2, during=run_n1_which_sees_tt1)
    clips_of_tt1 = SECOND
    assert blind.done == clips_of_tt1

    show(corpus, "tt1")
    seeing = nodes("n2")
    seeing.run(share_of_n2)
    assert seeing.done == clips_of_tt1


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
        seal(None, tmp_path / "store", licence="CC0-1.0")
    allowed = {"allow_missing": True, "version": "0.9.0"}
    assert seal(None, tmp_path / "store", licence="CC0-1.0", **allowed).exists()

    seeing.run()
    clips_of_tt1 = SECOND
    assert seeing.done == clips_of_tt1
    assert seal(None, tmp_path / "store", licence="CC0-1.0").exists()


def test_a_run_stops_when_its_videos_go_away(nodes, corpus):
    """The folder tt0 disappears at the second clip: the first stays done, the second is tried again.

    Clips are tt0-00 to tt0-15 in folder tt0 (FIRST), then 16 others in tt1 (SECOND).
    """
    node = nodes("n1")
    begun = []

    def unmount_at_the_second_clip() -> None:
        begun.append("a clip")
        if len(begun) == 2:
            hide(corpus, "tt0")

    with pytest.raises(StoreError, match="clip tt0-01"):
        node.run(during=unmount_at_the_second_clip)
    assert node.done == FIRST[:2]

    show(corpus, "tt0")
    node.run()
    assert node.done == [*FIRST[1:], *SECOND]


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
    assert seal(None, tmp_path / "store", licence="CC0-1.0").exists()


def test_a_store_with_more_failed_clips_than_wanted_is_not_sealed(nodes, tmp_path):
    """The files are no videos, so all 32 clips fail: more than 3, and not more than 32."""
    nodes("n1").run()

    with pytest.raises(StoreError):
        seal(None, tmp_path / "store", licence="CC0-1.0", max_failed=3)

    assert seal(None, tmp_path / "store", licence="CC0-1.0", max_failed=32).exists()
