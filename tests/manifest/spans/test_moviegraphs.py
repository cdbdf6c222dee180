"""Situations, characters and interactions of MovieGraphs as clips with a text and what it is."""

import json

from obygaze_features.manifest import import_spans

GRAPH = {
    "movie": "tt1", "start_s": 3, "end_s": 40.5, "situation": "first date", "scene": "bar",
    "characters": ["Ann", "Bob"], "interactions": [{"from": "Ann", "what": "asks", "to": "Bob"}, "smiles"],
}  # fmt: skip


def test_each_text_is_a_clip_of_its_tier(tmp_path):
    path = tmp_path / "graphs.json"
    path.write_text(json.dumps({"moviegraphs": [GRAPH]}), "utf-8")
    found = import_spans([path], tmp_path).manifest
    assert [(clip.extras["tier"], clip.extras["text"]) for clip in found] == [
        ("situation", "first date"), ("scene", "bar"), ("character", "Ann"), ("character", "Bob"),
        ("interaction", "Ann: asks: Bob"), ("interaction", "smiles"),
    ]  # fmt: skip
    assert {(clip.movie, clip.start_s, clip.end_s) for clip in found} == {("tt1", 3.0, 40.5)}


def test_one_tier_may_be_levels(tmp_path):
    path = tmp_path / "graphs.json"
    path.write_text(json.dumps({"moviegraphs": [GRAPH | {"situation": "Sure"}]}), "utf-8")
    (clip,) = import_spans([path], tmp_path, tiers={"situation": "levels"}).manifest
    assert (clip.level, clip.extras["tier"]) == ("S", "situation")
