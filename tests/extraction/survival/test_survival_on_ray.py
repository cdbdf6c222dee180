"""Ray's workers lose their decode workers while these wait, start, decode and send: the same bytes."""

import pytest

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def _ray():
    pytest.importorskip("ray")


@pytest.mark.parametrize("state", ["idle", "starting", "decoding", "sending"])
def test_twenty_kills_leave_the_sealed_bytes_as_they_are(survives, state):
    survives(state, 20, "ray")
