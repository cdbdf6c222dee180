"""A batch that kills its encoder is taken apart; only the clip that does it fails."""

import pytest

from obygaze_features.extraction.decode import DecodedClip
from obygaze_features.extraction.ray_nodes import ATTEMPTS, CrashCounts, encode_carefully
from obygaze_features.store import ClipResult


class Dead(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def run():
    """Encode a batch as Ray does, again after every death; give the results and what was begun."""
    crash_counts = CrashCounts()

    def run(ids, killers, unlucky=0):
        begun = []

        def encode(clips):
            begun.append("".join(clip.clip_id for clip in clips))
            if killers & set(begun[-1]) or len(begun) <= unlucky:
                raise Dead
            return [ClipResult(clip.clip_id, "failed", "encoded") for clip in clips]

        def ask(method, *words):
            return getattr(crash_counts, method)(*words)

        while len(begun) < 100:
            try:
                results = encode_carefully([DecodedClip(each, "ok") for each in ids], encode, ask)
            except Dead:
                continue
            return {result.clip_id: result.reason for result in results}, begun
        pytest.fail("tried without end")

    return run


def test_a_batch_that_kills_nobody_is_encoded_at_once(run):
    assert run("abc", set()) == (dict.fromkeys("abc", "encoded"), ["abc"])


@pytest.mark.parametrize("killer", "abc")
def test_only_the_guilty_clip_fails(run, killer):
    reasons, begun = run("abc", {killer})
    assert [clip for clip in "abc" if reasons[clip] != "encoded"] == [killer]
    assert reasons[killer] == "the process that held the networks died on this clip 3 times"
    assert sum(killer in batch for batch in begun) == ATTEMPTS


def test_all_may_be_guilty(run):
    reasons, _ = run("abc", set("abc"))
    assert "encoded" not in reasons.values()


def test_a_worker_that_dies_of_its_machine_fails_no_clip(run):
    assert run("abc", set(), unlucky=1)[0] == dict.fromkeys("abc", "encoded")
    # What was survived is forgotten: a later accident begins to count anew.
    assert run("abc", set(), unlucky=2)[0] == dict.fromkeys("abc", "encoded")
