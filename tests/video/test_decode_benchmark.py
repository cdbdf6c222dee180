"""The verdicts of benchmarks/decode.py; what it measures is not tested."""

import importlib
from math import nan
from pathlib import Path


def test_the_benchmark_tells_a_missed_goal_from_one_that_no_reader_reaches(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    room = importlib.import_module("decode_goals")
    # 40 ms are the least: 30 on the needed packets, and 10 more to read the others.
    clip = {"decord": 60, "limit": 30, "demuxing": 12, "demuxing needed": 2}
    for ours, goal, verdict in ((38, 1.5, "met"), (50, 1.4, "missed"), (50, 1.8, "beyond the limit")):
        monkeypatch.setitem(room.AT_LEAST, "a.mp4", ("decord", goal))
        row = clip | {"clip": "a.mp4", "ours": ours, "to decord": 60 / ours, "of limit": ours / 30}
        to_decord, of_limit = room.figures([row], [])
        assert (to_decord.verdict, to_decord.best) == (verdict, 1.5)
        assert (of_limit.verdict, of_limit.best) == ("beyond the limit", 40 / 30)
    window = {"what": "windows", "at most": 0.45}
    figures = room.figures([], [window | {"ratio": 0.4}, window | {"ratio": 0.5}])
    assert [figure.verdict for figure in figures] == ["met", "missed"]
    avi = {"clip": "mpeg4-b.avi", "decord": 60, "ours": 50, "to decord": 1.2, "of limit": nan, "demuxing": 5}
    assert [figure.verdict for figure in room.figures([avi], [])] == ["met"]
