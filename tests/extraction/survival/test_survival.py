"""Decode workers are killed while they wait, start, decode and send; the sealed bytes stay the same."""

import pytest

STATES = ("idle", "starting", "decoding", "sending")


@pytest.mark.long
def test_two_kills_of_idle_workers_leave_the_sealed_bytes_as_they_are(survives):
    survives("idle", 2, "local")


@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "engine"),
    [
        ("decoding", "local"),
        *(pytest.param(state, "local", marks=pytest.mark.nightly) for state in STATES if state != "decoding"),
        pytest.param("sending", "ray", marks=pytest.mark.nightly),
    ],
)
def test_twenty_kills_leave_the_sealed_bytes_as_they_are(survives, state, engine):
    """Only here do workers die in every state of theirs while films are really extracted."""
    if engine == "ray":
        pytest.importorskip("ray")
    survives(state, 20, engine)
