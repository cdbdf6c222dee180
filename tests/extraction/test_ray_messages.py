"""Errors of a Ray cluster's node are one line that names the node. No cluster runs here."""

from types import SimpleNamespace

import pytest

from tests.later import later, needs

ray_nodes = later("obygaze_features.extraction.ray_nodes")
pytestmark = needs("ray")


@pytest.mark.long
def test_a_node_with_another_decoder_is_named_with_both_versions(monkeypatch):
    """Another version of the decoder may give other pixels, so the store would not be of one kind."""
    monkeypatch.setattr(ray_nodes, "_node", lambda: "n3 (10.0.0.3)")
    monkeypatch.setattr(ray_nodes, "decoder_record", lambda _: {"av": "18.0.0"})
    settings = ray_nodes.DecodeSettings(600.0, "pyav", {"av": "18.1.0"})

    (refusal,) = ray_nodes.decode_pass([], settings)
    assert "n3 (10.0.0.3)" in refusal.reason
    assert 'av is "18.0.0" there and "18.1.0" here' in refusal.reason


@pytest.mark.long
def test_a_node_that_does_not_see_the_stage_is_named(monkeypatch, tmp_path):
    """The run leaves a mark in its folder; a node that does not find it has not mounted the folder."""
    monkeypatch.setattr(ray_nodes, "_node", lambda: "n3 (10.0.0.3)")
    encoder = ray_nodes.RayEncoder(SimpleNamespace(begin=lambda: None), tmp_path / "mark", None)
    refusal = encoder.begin()
    assert "n3 (10.0.0.3)" in refusal.reason
    assert str(tmp_path) in refusal.reason

    (tmp_path / "mark").touch()
    assert encoder.begin() is None
