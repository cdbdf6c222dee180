"""Decode workers are killed while they wait, start, decode and send; the sealed bytes stay the same."""

import pytest


@pytest.mark.long
def test_two_kills_of_idle_workers_do_not_change_the_sealed_bytes(survives):
    survives("idle", kills=2, engine="local")


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "engine"),
    [
        ("decoding", "local"),
        pytest.param("idle", "local", marks=pytest.mark.nightly),
        pytest.param("starting", "local", marks=pytest.mark.nightly),
        pytest.param("sending", "local", marks=pytest.mark.nightly),
        pytest.param("sending", "ray", marks=pytest.mark.nightly),
    ],
)
def test_twenty_kills_of_workers_in_a_state_do_not_change_the_sealed_bytes(survives, state, engine):
    """Only here do workers die in each state while films are really extracted."""
    if engine == "ray":
        pytest.importorskip("ray")
    survives(state, kills=20, engine=engine)
