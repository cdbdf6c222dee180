"""`obygaze weights verify` compares with a digest; tests/cli has `weights fetch`."""

import hashlib
import json

import pytest
from click.testing import CliRunner

from obygaze_features.commands.weights_commands import verify


@pytest.mark.parametrize("name", [".", "model.safetensors"])
@pytest.mark.parametrize("equal", [True, False])
def test_verify_agrees_with_a_file_and_with_its_folder_and_tells_other_weights(checkpoints, name, equal):
    digest = hashlib.sha256((checkpoints["clip"] / "model.safetensors").read_bytes()).hexdigest()
    asked = digest.upper() if equal else "0" * 64
    done = CliRunner().invoke(verify, [str(checkpoints["clip"] / name), "--sha256", asked, "--json"])
    assert done.exit_code == (0 if equal else 3)
    document = json.loads(done.stdout)
    assert (document["equal"], document["sha256"]) == (equal, digest)
