"""A stage: what is done stays done, and what does not belong is refused before a byte is written."""

import json
from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.io import encode_line, read_lines
from obygaze_features.store import ClipFeatures, ClipResult, PlannedClip, Stage, read_stage, seal, stage_files

from .toy_stores import CORPUS, F, features, group, plan, provenance, result, staged, tree

TOY = group()


@pytest.fixture
def stage(tmp_path):
    return Stage.open(tmp_path / "toy.staging", plan(8), [TOY], CORPUS)


def clip_ids(stage):
    return [clip.clip_id for clip in stage.clips]


def test_a_new_stage_has_everything_to_do_in_the_order_of_the_plan(stage):
    assert stage.missing() == [clip.clip_id for clip in plan(8)]
    assert stage.status() == {}
    assert read_stage(stage.path).clips == tuple(plan(8))


def test_a_committed_clip_is_done_and_says_so_to_everybody(stage):
    ids = clip_ids(stage)
    with stage.writer() as writer:
        writer.commit(
            [result(ids[0], [TOY]), result(ids[1], [TOY], "partial"), result(ids[2], [TOY], "failed")]
        )
    again = Stage.open(stage.path, plan(8), [TOY], CORPUS)
    assert again.missing() == ids[3:]
    assert again.missing(retry_failed=True) == ids[2:]
    found = again.status()
    assert [found[clip].status for clip in ids[:3]] == ["ok", "partial", "failed"]
    assert found[ids[2]].reason == "the file is failed"
    assert found[ids[0]].source["duration_s"] == 5.25


def test_shards_share_the_rows_out_without_overlap(stage):
    shards = [stage.missing((i, 3)) for i in range(3)]
    assert shards[1] == [clip_ids(stage)[row] for row in (1, 4, 7)]
    assert sorted(clip for shard in shards for clip in shard) == sorted(clip_ids(stage))
    with pytest.raises(StoreError, match="shard 3/3"):
        stage.missing((3, 3))


def test_a_failed_clip_counts_its_attempts_and_may_succeed_later(stage):
    clip = clip_ids(stage)[0]
    for attempt in (1, 2):
        with stage.writer() as writer:
            writer.commit([result(clip, [TOY], "failed")])
        assert stage.status()[clip].attempt == attempt
    with stage.writer() as writer:
        writer.commit([result(clip, [TOY])])
    assert (stage.status()[clip].status, stage.status()[clip].attempt) == ("ok", 3)


def test_writers_never_share_a_journal(stage):
    with stage.writer() as one, stage.writer() as two:
        assert one.name != two.name
    with stage.writer() as three:
        assert three.name not in (one.name, two.name)


def test_writers_at_work_are_counted_until_they_end(stage):
    assert stage.n_writers() == 0
    with stage.writer() as first, stage.writer():
        assert stage.n_writers() == 2
        first.commit([result(clip_ids(stage)[0], [TOY])])
    assert stage.n_writers() == 0
    assert stage.missing() == clip_ids(stage)[1:]


def test_rows_lie_in_one_file_a_writer_and_array_in_the_order_of_their_slots(stage):
    clips = [clip_ids(stage)[row] for row in (5, 2, 7)]
    with stage.writer() as writer:
        writer.commit([result(clips[0], [TOY]), result(clips[1], [TOY], "failed"), result(clips[2], [TOY])])
    assert [stage.status()[clip].slot for clip in clips] == [0, -1, 1]
    files = {path.name: path.read_bytes() for path in (stage.path / "rows" / writer.name).iterdir()}
    truths = [features(clip, TOY) for clip in (clips[0], clips[2])]
    for name in ("pooled", "frames", "tokens"):
        assert files.pop(f"toy.{name}") == b"".join(truth.arrays[name].tobytes() for truth in truths)
    for name in ("time_s", "frame_index"):
        assert files.pop(f"toy.{name}") == b"".join(getattr(truth, name).tobytes() for truth in truths)
    assert files == {}


def test_files_do_not_grow_in_number_with_the_clips(tmp_path):
    counts = []
    for n in (20, 200):
        path = staged(tmp_path / str(n), n).path
        counts.append(sum(file.is_file() for file in path.rglob("*")))
    assert counts[0] == counts[1] <= 0.2 * 200


def broken(clip, **arrays):
    truth = features(clip, TOY)
    return ClipFeatures(
        arrays.pop("time_s", truth.time_s),
        arrays.pop("frame_index", truth.frame_index),
        {**truth.arrays, **arrays},
    )


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pooled": np.full(4, np.nan, np.float32)}, "array pooled: 4 values are not finite, NaN among them"),
        (
            {"frames": np.full((3, 4), np.inf, np.float16)},
            r"array frames: 12 .* inf among them \(float16 overflow\?\)",
        ),
        ({"frames": np.zeros((3, 4), np.float32)}, "array frames: expected float16, found float32"),
        ({"pooled": np.zeros(5, np.float32)}, r"array pooled: expected shape \[4\], found \[5\]"),
        ({"pooled": [0.0] * 4}, "array pooled: expected a numpy array, found list"),
        ({"logits": np.zeros(4, np.float32)}, "expected arrays .*; found .*logits"),
        ({"time_s": np.zeros(F, np.float32)}, "array time_s: expected float64, found float32"),
        ({"time_s": np.full(F, np.nan)}, "array time_s: 3 values are not finite"),
        ({"frame_index": np.full(F, -1)}, "array frame_index: a negative index"),
    ],
)
def test_a_bad_array_is_refused_by_name_and_nothing_of_the_commit_is_written(stage, arrays, message):
    good, bad = clip_ids(stage)[:2]
    before = tree(stage.path / "rows")
    with stage.writer() as writer:
        with pytest.raises(StoreError, match=rf"clip {bad}, group toy.*{message}"):
            writer.commit([result(good, [TOY]), ClipResult(bad, "ok", groups={"toy": broken(bad, **arrays)})])
        assert tree(stage.path / "rows") == before
        assert stage.status() == {}
        writer.commit([result(good, [TOY])])  # the writer still works
    assert good in stage.status()


def test_clips_out_of_plan_done_twice_or_without_a_group_are_refused(stage):
    clip = clip_ids(stage)[0]
    with stage.writer() as writer:
        for bad, message in (
            ([result("nobody", [TOY])], "clip nobody: not in the plan"),
            ([result(clip, [TOY])] * 2, "committed twice at once"),
            ([ClipResult(clip, "ok")], "expected features of toy; found none"),
        ):
            with pytest.raises(StoreError, match=message):
                writer.commit(bad)
        writer.commit([result(clip, [TOY])])
        with pytest.raises(StoreError, match="already done"):
            writer.commit([result(clip, [TOY])])
    with pytest.raises(StoreError, match="closed"):
        writer.commit([])


@pytest.mark.parametrize(
    ("clips", "groups", "corpus", "message"),
    [
        (plan(8)[1:], [TOY], CORPUS, "clip tt0000-é is planned here but was not asked for"),
        (
            [replace(plan(8)[0], end_s=9.0), *plan(8)[1:]],
            [TOY],
            CORPUS,
            r"clip tt0000-é was planned otherwise: end_s is \S+, not 9.0",
        ),
        (plan(8), [group("other")], CORPUS, "was begun for toy, not for other"),
        (
            plan(8),
            [group(arrays=["pooled"])],
            CORPUS,
            r"other settings of toy: frames is {.*}, not nothing; tokens is {.*}, not nothing; nothing was",
        ),
        (
            plan(8),
            [group(decoder={**provenance()["decoder"], "ffmpeg": "8"})],
            CORPUS,
            r'settings of toy: provenance.decoder.ffmpeg is ".+", not "8"; nothing was changed',
        ),
        (
            plan(8),
            [TOY],
            {**CORPUS, "name": "Others"},
            r'settings of the corpus: name is ".+", not "Others"; nothing',
        ),
        ([*plan(8), PlannedClip("tt0000-é", "x")], [TOY], CORPUS, "clip tt0000-é: given twice"),
        ([], [TOY], CORPUS, "at least one clip"),
        (plan(8), [TOY], {}, "corpus: 'name' is missing"),
    ],
)
def test_resuming_for_something_else_is_refused_and_nothing_is_lost(tmp_path, clips, groups, corpus, message):
    path = staged(tmp_path, 8).path
    before = tree(path)
    with pytest.raises(StoreError, match=message):
        Stage.open(path, clips, groups, corpus)
    assert tree(path) == before


def test_a_plan_grows_and_the_rows_there_are_stay(tmp_path):
    stage = staged(tmp_path, 8)
    new = [PlannedClip("aa", "m"), *reversed(plan(8)), PlannedClip("zz", "m")]
    grown = Stage.open(stage.path, new, [TOY], {**CORPUS, "manifest_sha256": "cd" * 32})
    assert grown.clips == (*stage.clips, PlannedClip("aa", "m"), PlannedClip("zz", "m"))
    assert grown.missing() == ["aa", "zz"]
    assert grown.corpus["manifest_sha256"] == "cd" * 32
    with grown.writer() as writer:
        writer.commit([result(clip, [TOY]) for clip in grown.missing()])
    assert seal(stage.path, tmp_path / "toy", licence="MIT").is_dir()


def test_a_torn_last_line_is_as_if_it_were_never_written(stage):
    ids = clip_ids(stage)
    with stage.writer() as writer:
        writer.commit([result(clip, [TOY]) for clip in ids[:3]])
    journal = stage.path / "journal" / f"{writer.name}.jsonl"
    whole = journal.read_bytes()
    for cut in range(1, len(whole.splitlines(keepends=True)[-1]), 9):
        journal.write_bytes(whole[:-cut])
        assert stage.missing() == (ids[3:] if cut == 1 else ids[2:])  # the line break alone may be missing
        assert stage.damage() == ()


def test_a_damaged_line_in_the_middle_is_reported_and_its_clip_done_again(stage):
    ids = clip_ids(stage)
    with stage.writer() as writer:
        writer.commit([result(clip, [TOY]) for clip in ids[:3]])
    journal = stage.path / "journal" / f"{writer.name}.jsonl"
    whole = bytearray(journal.read_bytes())
    whole[whole.index(b"\n") + 60] ^= 1
    journal.write_bytes(whole)
    assert stage.missing() == [ids[1], *ids[3:]]
    assert len(stage.damage()) == 1
    assert f"{writer.name}.jsonl, line 2: damaged" in stage.damage()[0]
    with stage.writer() as second:
        second.commit([result(ids[1], [TOY])])
    assert stage.missing() == ids[3:]


def test_every_flipped_bit_of_a_line_is_noticed(tmp_path):
    line = encode_line({"row": 1, "id": "é"})
    path = tmp_path / "lines"
    for bit in range(8 * (len(line) - 1)):
        flipped = bytearray(line)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(flipped))
        assert all(entry is None for _, entry in read_lines(path))


def test_what_a_killed_writer_left_behind_its_journal_is_never_looked_at(tmp_path):
    stage = staged(tmp_path, 8)
    good = tree(seal(None, tmp_path / "toy", licence="MIT"))
    for file in (stage.path / "rows" / "0001").iterdir():
        file.write_bytes(file.read_bytes() + b"torn")
    (stage.path / "journal" / "0002.jsonl").touch()  # killed before its first line
    (stage.path / "rows" / "0002").mkdir()
    (stage.path / "rows" / "0002" / "toy.pooled").write_bytes(b"torn")
    assert stage.missing() == []
    with stage.writer() as writer:
        assert writer.name == "0003"
    assert tree(seal(None, tmp_path / "toy", licence="MIT", version="1.0.1")).keys() == good.keys()


def test_the_draft_of_a_killed_creation_is_swept(stage):
    draft = stage.path.with_name("new.staging.partial")
    draft.mkdir()
    Stage.open(stage.path.with_name("new.staging"), plan(8), [TOY], CORPUS)
    assert not draft.exists()


def test_an_open_stage_reads_only_what_is_new_in_the_journals(stage, monkeypatch):
    ids = clip_ids(stage)
    lines = []
    monkeypatch.setattr(
        stage_files,
        "read_entry",
        lambda *line, real=stage_files.read_entry: lines.append(line) or real(*line),
    )
    with stage.writer() as writer:
        for clip in ids[:4]:
            writer.commit([result(clip, [TOY])])
            assert clip in stage.status()
            assert clip not in stage.missing()
    assert len([line for line, *_ in lines if line]) == 4


def test_a_folder_that_is_no_stage_is_refused(tmp_path):
    (tmp_path / "film.mp4").touch()
    for path in (tmp_path, tmp_path / "film.mp4"):
        with pytest.raises(StoreError, match=r"not a staging folder|file is in the way"):
            Stage.open(path, plan(8), [TOY], CORPUS)
    assert (tmp_path / "film.mp4").exists()


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("plan.jsonl", lambda data: data.replace(b"tt0000", b"tt9999"), "plan.jsonl, line 1: damaged"),
        ("plan.jsonl", lambda data: data[:-9], "plan.jsonl, line 8: damaged"),
        ("stage.json", lambda data: data[:-9], "stage.json: damaged"),
        ("stage.json", lambda data: data.replace(b'"layout": 2', b'"layout": 3'), "a stage of layout 3"),
        ("stage.json", lambda _: json.dumps({"layout": 2}).encode(), "stage.json: damaged"),
        (
            "stage.json",
            lambda _: json.dumps({"layout": 2, "groups": [], "corpus": {"name": "toy"}}).encode(),
            "stage.json: damaged",
        ),
        ("plan.jsonl", lambda _: b"", "plan.jsonl: no clips"),
    ],
)
def test_damaged_stage_metadata_say_so(stage, file, change, message):
    path = stage.path / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(StoreError, match=message):
        read_stage(stage.path)


def test_a_journal_of_another_plan_is_refused(stage):
    (stage.path / "journal" / "0001.jsonl").write_bytes(
        encode_line(
            {
                "row": 0,
                "id": "x",
                "status": "failed",
                "reason": "",
                "attempt": 1,
                "slot": -1,
                "sha256": "",
                "crc32c": "",
                "source": {},
            }
        )
    )
    with pytest.raises(StoreError, match=r"row 0 is clip tt0000-é in plan.jsonl but x"):
        stage.status()
