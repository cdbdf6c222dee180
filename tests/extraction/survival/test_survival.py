"""Decode workers are killed while they wait, start, decode and send; the sealed bytes stay the same."""

import pytest


@pytest.mark.long
def test_two_kills_of_idle_workers_do_not_change_the_sealed_bytes(digests_after_kills, undisturbed_digests):
    """Workers are killed while they wait for a task, and others take their place."""
    digests = digests_after_kills(state="idle", n_kills=2, engine="local")

    assert digests == undisturbed_digests


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
def test_twenty_kills_of_workers_in_a_state_do_not_change_the_sealed_bytes(
    digests_after_kills, undisturbed_digests, state, engine
):
    """Workers are killed while they decode a clip, wait for a task, start, or send a result.

    Others do the clips. Only here do workers die in each state while films are really extracted.
    """
    if engine == "ray":
        pytest.importorskip("ray")

    digests = digests_after_kills(state=state, n_kills=20, engine=engine)

    assert digests == undisturbed_digests
