"""Errors of a Ray cluster's node are one line that names the node. No cluster runs here."""

from types import SimpleNamespace

import pytest

from tests.lazy_import import lazy_import, needs

ray_nodes = lazy_import("obygaze_features.extraction.ray_nodes")
pytestmark = needs("ray")


@pytest.mark.long
def test_a_node_with_another_decoder_is_named_with_both_versions(monkeypatch):
    """Another version of the decoder may give other pixels, so the store would not be of one kind.

    The node n3 has PyAV 18.0.0; the run that asks it to decode has 18.1.0.
    """
    monkeypatch.setattr(ray_nodes, "_node", lambda: "n3 (10.0.0.3)")
    monkeypatch.setattr(ray_nodes, "decoder_record", lambda _decoder: {"av": "18.0.0"})
    limit_s = 600.0
    settings_of_run = ray_nodes.DecodeSettings(limit_s, "pyav", {"av": "18.1.0"})

    (refusal,) = ray_nodes.decode_pass([], settings_of_run)

    assert "n3 (10.0.0.3)" in refusal.reason
    assert 'av is "18.0.0" there and "18.1.0" here' in refusal.reason


@pytest.mark.long
def test_a_node_that_does_not_see_the_stage_is_named(monkeypatch, tmp_path):
    """The run leaves a mark in its folder; a node that does not find it has not mounted the folder."""
    monkeypatch.setattr(ray_nodes, "_node", lambda: "n3 (10.0.0.3)")
    mark = tmp_path / "mark"
    encoder_that_begins = SimpleNamespace(begin=lambda: None)
    encoder_on_node = ray_nodes.RayEncoder(encoder_that_begins, mark, None)

    refusal_without_mark = encoder_on_node.begin()
    mark.touch()
    refusal_with_mark = encoder_on_node.begin()

    assert "n3 (10.0.0.3)" in refusal_without_mark.reason
    assert str(tmp_path) in refusal_without_mark.reason
    assert refusal_with_mark is None
