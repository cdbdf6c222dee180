"""What every test may ask for."""

import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SHARED_DATA = Path(os.environ.get("OBYGAZE_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real annotations, videos and oracles, which the project's licence forbids to carry along."""
    if not SHARED_DATA.is_dir():
        message = (
            f"no test data at {SHARED_DATA}: fetch the annotations and videos that tests/README.md names, "
            "or point OBYGAZE_TEST_DATA at them"
        )
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED_DATA


@pytest.fixture(scope="session")
def grad_cam() -> None:
    """Import the package grad-cam; where torchvision is not installed, beside a stand-in that goes again."""
    pytest.importorskip("transformers")  # first, so that it never sees the stand-in
    if find_spec("pytorch_grad_cam") is None:
        pytest.skip("no grad-cam: it is in the extra `saliency`")
    if find_spec("torchvision") is not None:
        return
    standins = str(Path(__file__).parent / "backbones" / "standins")
    sys.path.insert(0, standins)
    try:
        importlib.import_module("pytorch_grad_cam")
    finally:
        sys.path.remove(standins)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
