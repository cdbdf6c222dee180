"""A stage: what is done stays done, and what does not belong is refused before a byte is written."""

import json
from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.lines import checked_entry, encode_line
from obygaze_features.store import ClipFeatures, ClipResult, PlannedClip, Stage, read_stage, seal, verify

from .toy_stores import (
    CORPUS,
    bytes_of_files,
    commit_clips,
    group,
    make_stage,
    plan,
    planted_features,
    provenance,
    result,
)

FIXED_GROUP = group()


@pytest.fixture
def stage_of_40_clips(tmp_path):
    """A stage of 40 clips: two pieces of 16 and one of 8."""
    return Stage.open(tmp_path / "toy.staging", plan(40), [FIXED_GROUP], CORPUS)


@pytest.fixture
def sorted_ids(stage_of_40_clips):
    return [clip.clip_id for clip in stage_of_40_clips.clips]


def ok(_clip):
    return "ok"


def failed(_clip):
    return "failed"


def names_of_feature_files(stage):
    return {path.name for path in (stage.path / "pieces").iterdir()}


def test_a_stage_has_every_clip_to_do_sorted_by_id_in_whatever_order_it_is_opened(
    stage_of_40_clips, sorted_ids
):
    """The stage was begun for the 40 clips of `plan(40)`, whose `sorted_ids` are sorted here; none is done.

    It is opened again for the same clips in reverse order. A manifest in another order has another digest,
    which the stage takes over.
    """
    assert sorted_ids == sorted(clip.clip_id for clip in plan(40))
    assert stage_of_40_clips.missing() == sorted_ids
    assert stage_of_40_clips.status() == {}

    clips_in_reverse_order = plan(40)[::-1]
    other_digest = "cd" * 32
    corpus_with_other_digest = {**CORPUS, "manifest_sha256": other_digest}
    reopened = Stage.open(
        stage_of_40_clips.path, clips_in_reverse_order, [FIXED_GROUP], corpus_with_other_digest
    )

    assert reopened.clips == stage_of_40_clips.clips
    assert read_stage(stage_of_40_clips.path).corpus["manifest_sha256"] == other_digest


def test_committed_clips_are_done_in_a_stage_that_is_opened_again(stage_of_40_clips, sorted_ids):
    """Of the 40 clips of a stage the first three are committed, one of each status.

    Clips to do are `missing`. A failed clip counts as done, unless failed clips are to be tried again.
    """
    ok_clip, partial_clip, failed_clip = sorted_ids[:3]
    not_committed = sorted_ids[3:]
    statuses = {ok_clip: "ok", partial_clip: "partial", failed_clip: "failed"}
    commit_clips(stage_of_40_clips, statuses, status=statuses.get)

    reopened = Stage.open(stage_of_40_clips.path, plan(40), [FIXED_GROUP], CORPUS)

    assert reopened.missing() == not_committed
    assert reopened.missing(retry_failed=True) == [failed_clip, *not_committed]

    entries = reopened.status()
    assert {clip: entry.status for clip, entry in entries.items()} == statuses
    assert entries[failed_clip].reason == "the file is failed"  # as `commit_clips` gives it
    assert entries[ok_clip].source["duration_s"] == 5.25  # of every clip of `commit_clips`


def test_two_shards_divide_the_pieces_of_a_stage(stage_of_40_clips, sorted_ids):
    """40 clips are pieces of 16, 16 and 8.

    Shard 0 gets every second piece from the first, shard 1 the other. There is no shard 2 of 2.
    """
    first, second, third = sorted_ids[:16], sorted_ids[16:32], sorted_ids[32:]
    assert stage_of_40_clips.missing((0, 2)) == first + third
    assert stage_of_40_clips.missing((1, 2)) == second
    with pytest.raises(StoreError):
        stage_of_40_clips.missing((2, 2))


def test_a_piece_is_recorded_once_all_its_announced_clips_are_committed(stage_of_40_clips, sorted_ids):
    """A stage of 40 clips has pieces of 16. A writer announces clips 2 and 7 of piece 0, and 20 of piece 1.

    It commits clip 7, of which the journal says nothing yet, as a line of it is about a whole piece. It
    commits clip 2: now all that was announced of piece 0 is done, and both clips are recorded. A clip that is
    recorded cannot be committed again.
    """
    clip_2, clip_7, clip_20 = sorted_ids[2], sorted_ids[7], sorted_ids[20]
    with stage_of_40_clips.writer([clip_2, clip_7, clip_20]) as writer:
        writer.commit([result(clip_7, [FIXED_GROUP])])
        recorded_clips = list(stage_of_40_clips.status())
        assert recorded_clips == []

        writer.commit([result(clip_2, [FIXED_GROUP])])
        recorded_clips = list(stage_of_40_clips.status())
        assert recorded_clips == [clip_2, clip_7]

        with pytest.raises(StoreError, match="already done"):
            writer.commit([result(clip_2, [FIXED_GROUP])])


def test_closing_a_writer_records_the_piece_it_has_begun(stage_of_40_clips, sorted_ids):
    """A writer announces two clips of a piece, commits the first, and is closed.

    The journal records clips in pieces, so that nothing is recorded before; closing records what is done of
    the piece. `status` has the recorded clips. A closed writer takes no further clip.
    """
    with stage_of_40_clips.writer([sorted_ids[20], sorted_ids[21]]) as writer:
        writer.commit([result(sorted_ids[20], [FIXED_GROUP])])
        assert list(stage_of_40_clips.status()) == []

    assert list(stage_of_40_clips.status()) == [sorted_ids[20]]
    with pytest.raises(StoreError, match="closed"):
        writer.commit([])


def test_a_failed_clip_counts_its_attempts_and_may_succeed_later(stage_of_40_clips, sorted_ids):
    """The same clip is committed three times: it fails twice, and is then ok."""
    clip = sorted_ids[0]

    commit_clips(stage_of_40_clips, [clip], failed)
    commit_clips(stage_of_40_clips, [clip], failed)
    entry = stage_of_40_clips.status()[clip]
    assert entry.attempt == 2
    assert entry.status == "failed"

    commit_clips(stage_of_40_clips, [clip], ok)
    entry = stage_of_40_clips.status()[clip]
    assert entry.attempt == 3
    assert entry.status == "ok"


def test_writers_never_share_a_journal_and_are_counted_until_they_end(stage_of_40_clips):
    """Three writers have three names, also the one that begins after the others have ended."""
    assert stage_of_40_clips.n_writers() == 0

    with stage_of_40_clips.writer() as first, stage_of_40_clips.writer() as second:
        assert stage_of_40_clips.n_writers() == 2
    assert stage_of_40_clips.n_writers() == 0

    with stage_of_40_clips.writer() as third:
        assert len({first.name, second.name, third.name}) == 3


def features_with(replaced, clip):
    """The right features of a clip, but for the arrays `replaced` (name -> array)."""
    right = planted_features(clip, FIXED_GROUP)
    vectors = dict(right.arrays)
    times = {"time_s": right.time_s, "frame_index": right.frame_index}
    for name, array in replaced.items():
        if name in times:
            times[name] = array
        else:
            vectors[name] = array
    return ClipFeatures(arrays=vectors, **times)


@pytest.mark.parametrize(
    ("bad_arrays", "message"),
    [
        ({"pooled": np.full(4, np.nan, np.float32)}, "array pooled: 4 values are not finite, NaN among them"),
        (
            {"pooled": np.array([0, 0, 0, np.inf], np.float32)},
            "array pooled: 1 value is not finite, inf among them",
        ),
        (
            {"frames": np.full((3, 4), np.inf, np.float16)},
            r"array frames: 12 .* inf among them \(float16 overflow\?\)",
        ),
        ({"frames": np.zeros((3, 4), np.float32)}, "array frames: expected float16, found float32"),
        ({"pooled": np.zeros(5, np.float32)}, r"array pooled: expected shape \[4\], found \[5\]"),
        ({"logits": np.zeros(4, np.float32)}, "expected arrays .*; found .*logits"),
        ({"time_s": np.zeros(3, np.float32)}, "array time_s: expected float64, found float32"),
        ({"frame_index": np.full(3, -1)}, "array frame_index: a negative index"),
    ],
)
def test_a_bad_array_is_refused_by_name_and_nothing_of_the_commit_is_written(
    stage_of_40_clips, sorted_ids, bad_arrays, message
):
    """Right are: pooled [4] in float32, frames [3, 4] in float16, and of 3 frames the times and indices.

    A good clip and one with a bad array are committed together. A commit is written as a whole or not at
    all, so the good one is not written either, and can be committed later.
    """
    good, bad = sorted_ids[:2]
    good_result = result(good, [FIXED_GROUP])
    bad_result = ClipResult(bad, "ok", groups={"toy": features_with(bad_arrays, bad)})

    with stage_of_40_clips.writer() as writer:
        with pytest.raises(StoreError, match=rf"clip {bad}, group toy.*{message}"):
            writer.commit([good_result, bad_result])
        assert names_of_feature_files(stage_of_40_clips) == set()

        writer.commit([good_result])
    assert list(stage_of_40_clips.status()) == [good]


def test_clips_that_another_process_did_meanwhile_may_be_done_again(stage_of_40_clips, sorted_ids, tmp_path):
    """A writer knows which of the 40 clips were done when it began, not what others do meanwhile.

    Clips 0 to 19 are done by another process, and 0 to 2 then again by the writer. The same clip gives the
    same features, so doing it twice harms nothing.
    """
    missing_at_the_beginning = stage_of_40_clips.missing()

    opened_by_another = Stage.open(stage_of_40_clips.path, plan(40), [FIXED_GROUP], CORPUS)
    commit_clips(opened_by_another, sorted_ids[:20], ok)
    with stage_of_40_clips.writer(missing_at_the_beginning) as writer:
        writer.commit([result(clip, [FIXED_GROUP]) for clip in sorted_ids[:3]])
    commit_clips(stage_of_40_clips, sorted_ids[20:], ok)

    assert not stage_of_40_clips.missing()
    assert not stage_of_40_clips.damage()
    sealed = seal(stage_of_40_clips.path, tmp_path / "toy", licence="CC0-1.0")
    assert verify(sealed, "full").ok


@pytest.mark.parametrize(
    ("clips", "groups", "message"),
    [
        (["nobody"], [FIXED_GROUP], "clip nobody: not in the plan"),
        (["tt0002-é", "tt0002-é"], [FIXED_GROUP], "committed twice at once"),
        (["tt0002-é"], [], "expected features of toy; found none"),
        (["tt0000-é"], [FIXED_GROUP], "already done"),
        (["tt0001-é"], [FIXED_GROUP], "already done"),
    ],
    ids=["out of plan", "twice at once", "without a group", "done by this writer", "done before"],
)
def test_a_commit_that_does_not_fit_its_stage_is_refused(stage_of_40_clips, clips, groups, message):
    """Clip tt0001 was done before, and tt0000 by the same writer. Each clip needs features of group "toy"."""
    commit_clips(stage_of_40_clips, ["tt0001-é"], ok)

    with stage_of_40_clips.writer() as writer:
        writer.commit([result("tt0000-é", [FIXED_GROUP])])

        with pytest.raises(StoreError, match=message):
            writer.commit([result(clip, groups) for clip in clips])


def assert_opening_is_refused_and_changes_no_file(path, message, *, clips, groups, corpus):
    files_before = bytes_of_files(path)
    with pytest.raises(StoreError, match=message):
        Stage.open(path, clips, groups, corpus)
    assert bytes_of_files(path) == files_before


FIRST_CLIP, *OTHER_CLIPS = plan(8)


@pytest.mark.parametrize(
    ("clips", "message"),
    [
        pytest.param(OTHER_CLIPS, "tt0000-é", id="the first is missing"),
        pytest.param(
            [replace(FIRST_CLIP, end_s=9.0), *OTHER_CLIPS], "tt0000-é", id="the first ends elsewhere"
        ),
        pytest.param(
            [FIRST_CLIP, *OTHER_CLIPS, PlannedClip("tt0000-é", movie="x")],
            "clip tt0000-é",
            id="the first comes twice",
        ),
    ],
)
def test_a_stage_is_not_opened_for_other_clips(tmp_path, clips, message):
    """A stage was begun for eight clips, of which the first is tt0000-é, and keeps this plan.

    Opening it for other clips is refused with the id of the clip that differs.
    """
    path = make_stage(tmp_path, 8).path

    assert_opening_is_refused_and_changes_no_file(
        path, message, clips=clips, groups=[FIXED_GROUP], corpus=CORPUS
    )


@pytest.mark.parametrize(
    "other_group",
    [
        pytest.param(group("other"), id="of another name"),
        pytest.param(group(arrays=["pooled"]), id="with fewer arrays"),
        pytest.param(
            group(decoder={**provenance()["decoder"], "ffmpeg": "8"}), id="decoded by another FFmpeg"
        ),
    ],
)
def test_a_stage_is_not_opened_for_another_group(tmp_path, other_group):
    """A stage was begun for a group "toy" of three arrays, decoded by FFmpeg 7.1.

    Features of another group or of another decoder must not come under its name.
    """
    path = make_stage(tmp_path, 8).path

    assert_opening_is_refused_and_changes_no_file(
        path, message=None, clips=plan(8), groups=[other_group], corpus=CORPUS
    )


@pytest.mark.parametrize(
    ("other_corpus", "message"),
    [
        pytest.param({**CORPUS, "name": "Others"}, None, id="of another name"),
        pytest.param({}, "corpus", id="without any field"),
    ],
)
def test_a_stage_is_not_opened_for_another_corpus(tmp_path, other_corpus, message):
    """A stage was begun for the corpus "Toy films", whose name the store will have."""
    path = make_stage(tmp_path, 8).path

    assert_opening_is_refused_and_changes_no_file(
        path, message, clips=plan(8), groups=[FIXED_GROUP], corpus=other_corpus
    )


@pytest.mark.parametrize(
    ("clips", "groups"), [([], [FIXED_GROUP]), (plan(8), [])], ids=["no clips", "no groups"]
)
def test_a_stage_of_no_clips_or_no_groups_is_not_begun(tmp_path, clips, groups):
    """A stage is opened for no clips, or for no group of features: it is refused, and its folder not made."""
    folder = tmp_path / "toy.staging"

    with pytest.raises(StoreError):
        Stage.open(folder, clips, groups, CORPUS)

    assert not folder.exists()


def test_a_stage_of_two_groups_of_one_name_is_not_begun(tmp_path):
    """A store has its arrays by the names of groups, so that the second group would replace the first."""
    with pytest.raises(StoreError, match="group toy"):
        Stage.open(tmp_path / "toy.staging", plan(8), [FIXED_GROUP, FIXED_GROUP], CORPUS)
    assert not (tmp_path / "toy.staging").exists()


# --- earlier attempts
def test_retrying_a_failed_clip_rewrites_its_piece_with_the_old_rows(stage_of_40_clips, sorted_ids):
    """Of a piece of 16 clips, clip 3 fails. It is tried again, as the second attempt at this piece.

    The files of an attempt are never written to again. So new files hold the row of clip 3, and copies of the
    other 15 rows, whose digests are the same as before; the old files are removed.
    """
    first_piece = sorted_ids[:16]
    clip_3 = sorted_ids[3]
    commit_clips(stage_of_40_clips, first_piece, lambda clip: "failed" if clip == clip_3 else "ok")
    old_files = names_of_feature_files(stage_of_40_clips)
    old_digests = {clip: entry.sha256 for clip, entry in stage_of_40_clips.status().items()}

    commit_clips(stage_of_40_clips, [clip_3], ok)

    new_files = names_of_feature_files(stage_of_40_clips)
    assert old_files.isdisjoint(new_files)
    entries = stage_of_40_clips.status()
    reader = stage_of_40_clips.reader()
    for clip in first_piece:
        assert entries[clip].attempt == 2
        is_damaged = reader.small_rows(entries[clip]) is None
        assert not is_damaged
        if clip != clip_3:
            assert entries[clip].sha256 == old_digests[clip]


def test_a_damaged_row_is_not_copied_and_its_file_is_kept(stage_of_40_clips, sorted_ids):
    """15 of the 16 clips of a piece are done, and a bit is flipped in the row of the first.

    Then the last clip is committed, as attempt 2. This writes the piece into new files, into which the rows
    of attempt 1 are copied, and the old files are removed. But a damaged row must not get a place among right
    ones: it stays in the old files, which are kept, and its clip stays one of attempt 1. Sealing finds the
    damage there.
    """
    damaged_clip, last_clip = sorted_ids[0], sorted_ids[15]
    commit_clips(stage_of_40_clips, sorted_ids[:15], ok)
    (rows,) = (stage_of_40_clips.path / "pieces").glob("*.rows")
    data = bytearray(rows.read_bytes())
    data[0] ^= 1
    rows.write_bytes(bytes(data))
    old_files = names_of_feature_files(stage_of_40_clips)

    commit_clips(stage_of_40_clips, [last_clip], ok)

    files_now = names_of_feature_files(stage_of_40_clips)
    new_files = files_now - old_files
    assert old_files <= files_now
    assert new_files
    assert stage_of_40_clips.status()[damaged_clip].attempt == 1
    assert stage_of_40_clips.missing() == sorted_ids[16:]


def test_sweeping_removes_only_files_of_a_piece_that_a_killed_writer_had_not_finished(
    stage_of_40_clips, sorted_ids
):
    """Clips are written in pieces of 16, in files whose names begin with the number of the piece.

    Piece 0 is done. One writer is killed after the first clip of piece 1, while another has done the first
    clip of piece 2 and goes on. Sweeping removes the files of piece 1 alone, and returns how many clips may
    have been written in what it removed: up to 16. When the other writer has ended too, there is nothing left
    to remove. The clips of piece 1 are to be done again, and those of piece 2 but the first.
    """
    piece_0, piece_1, piece_2 = sorted_ids[:16], sorted_ids[16:32], sorted_ids[32:]
    commit_clips(stage_of_40_clips, piece_0, ok)
    killed = stage_of_40_clips.writer(piece_1[:4])
    alive = stage_of_40_clips.writer(piece_2)
    killed.commit([result(piece_1[0], [FIXED_GROUP])])
    alive.commit([result(piece_2[0], [FIXED_GROUP])])
    killed._journal.close()  # so that its lock ends, as it does when a process is killed

    n_clips_that_may_be_lost = stage_of_40_clips.sweep()
    assert n_clips_that_may_be_lost == len(piece_1)  # which of them were written is not known
    pieces_with_files = {name.split(".")[0] for name in names_of_feature_files(stage_of_40_clips)}
    assert pieces_with_files == {"0", "2"}

    alive.close()
    n_clips_that_may_be_lost = stage_of_40_clips.sweep()
    assert n_clips_that_may_be_lost == 0
    assert stage_of_40_clips.missing() == piece_1 + piece_2[1:]


# --- journals
@pytest.fixture
def journal(stage_of_40_clips, sorted_ids):
    """A journal of two pieces."""
    commit_clips(stage_of_40_clips, sorted_ids[:32], ok)
    (path,) = (stage_of_40_clips.path / "journal").iterdir()
    return path


def test_a_torn_last_line_is_as_if_it_were_never_written(stage_of_40_clips, sorted_ids, journal):
    """A power cut may leave any part of the last line, which recorded the second piece of 16 clips.

    Those clips are then missing, which is no damage. Without its line break alone the line counts: its digest
    shows that it is whole.
    """
    complete = journal.read_bytes()
    *_, last_line = complete.splitlines(keepends=True)
    for n_lost in range(2, len(last_line), 99):
        journal.write_bytes(complete[:-n_lost])
        assert stage_of_40_clips.missing() == sorted_ids[16:]
        assert stage_of_40_clips.damage() == ()

    journal.write_bytes(complete.removesuffix(b"\n"))
    assert stage_of_40_clips.missing() == sorted_ids[32:]
    assert stage_of_40_clips.damage() == ()


def test_a_damaged_line_in_the_middle_is_reported_and_its_clips_done_again(
    stage_of_40_clips, sorted_ids, journal
):
    """Each of the two lines records a piece of 16 clips.

    A bit of the first is flipped, and no power cut does that: the damage is told, and clips 0 to 15 are done
    again.
    """
    damaged = bytearray(journal.read_bytes())
    damaged[60] ^= 1
    journal.write_bytes(damaged)

    assert stage_of_40_clips.missing() == sorted_ids[:16] + sorted_ids[32:]
    (damage,) = stage_of_40_clips.damage()
    assert f"{journal}, line 1: damaged" in damage

    n_clips_that_may_be_lost = stage_of_40_clips.sweep()
    assert n_clips_that_may_be_lost == 16
    commit_clips(stage_of_40_clips, sorted_ids[:16], ok)
    assert stage_of_40_clips.missing() == sorted_ids[32:]


def name_another_attempt_for_one_clip_of_the_first_line(journal):
    """Let the fourth clip of a journal's first line name attempt 2**31; the others name attempt 1.

    The digest of the line is made to fit, so that the line does not count as damaged for that.
    """
    first_line, second_line = journal.read_bytes().splitlines(keepends=True)
    entry = json.loads(checked_entry(first_line.removesuffix(b"\n")))
    entry["rows"][3]["attempt"] = 2**31
    journal.write_bytes(encode_line(entry) + second_line)


def test_clips_of_a_journal_line_that_names_two_attempts_are_done_again_and_sealed(
    stage_of_40_clips, sorted_ids, journal
):
    """Of 40 clips, two pieces of 16 are done, each of which has a line in the journal.

    A line is about one attempt to do clips of a piece. The number of the attempt, here 1, is in the names of
    the files that hold their features. Now one clip of the first line names another attempt than the others:
    it is not known which files the line means. So the line counts as damaged, and its 16 clips are done
    again, after which the stage is sealed as usual.
    """
    clips_of_first_line = sorted_ids[:16]
    not_committed = sorted_ids[32:]
    name_another_attempt_for_one_clip_of_the_first_line(journal)

    assert len(stage_of_40_clips.damage()) == 1
    assert stage_of_40_clips.missing() == clips_of_first_line + not_committed

    commit_clips(stage_of_40_clips, clips_of_first_line + not_committed, ok)
    sealed = seal(stage_of_40_clips.path, stage_of_40_clips.path.with_name("toy"), licence="CC0-1.0")
    assert verify(sealed, "full").ok


def test_every_flipped_bit_of_a_line_is_noticed():
    """Each line of a journal has a checksum of itself. Its last byte, the line break, is not tried here."""
    line = encode_line({"rows": [{"row": 1, "clip_id": "é", "status": "failed"}]}).removesuffix(b"\n")
    assert checked_entry(line) is not None

    for index in range(len(line)):
        for bit in range(8):
            flipped = bytearray(line)
            flipped[index] ^= 2**bit

            assert checked_entry(bytes(flipped)) is None, f"bit {bit} of byte {index}"


def test_a_journal_with_a_clip_that_is_not_in_the_plan_is_refused(stage_of_40_clips):
    """A line of the journal records clip x, and the plan of the stage (plan.jsonl) lists no such clip."""
    entry = {"row": 0, "clip_id": "x", "status": "failed"}
    (stage_of_40_clips.path / "journal" / "0001.jsonl").write_bytes(encode_line({"rows": [entry]}))

    with pytest.raises(StoreError, match=r"plan.jsonl"):
        stage_of_40_clips.status()


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("plan.jsonl", lambda content: content.replace(b"tt0000", b"tt9999"), "plan.jsonl, line 1"),
        ("stage.json", lambda content: content[:-9], "stage.json"),
        ("stage.json", lambda content: content.replace(b'"layout": 3', b'"layout": 9'), None),
        ("stage.json", lambda _: json.dumps({"layout": 3}).encode(), "stage.json"),
        ("plan.jsonl", lambda _: b"", "plan.jsonl"),
    ],
    ids=[
        "another clip than the digest of its line has",
        "the last nine bytes are lost",
        "a layout of files that is not known",
        "no field but the layout",
        "an empty plan",
    ],
)
def test_damaged_stage_metadata_are_refused_by_file_name(stage_of_40_clips, file, damage, message):
    """A stage has the plan of its clips in plan.jsonl, and all else about itself in stage.json.

    One of the two is damaged, and the stage cannot be read.
    """
    path = stage_of_40_clips.path / file
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(StoreError, match=message):
        read_stage(stage_of_40_clips.path)
