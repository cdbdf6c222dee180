"""`obygaze weights`: fetch and verify."""

import hashlib
import json

import pytest
from click.testing import CliRunner

from obygaze_features.commands.weights_commands import fetch, verify


def run(command, *arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def digest(checkpoints):
    return hashlib.sha256((checkpoints["clip"] / "model.safetensors").read_bytes()).hexdigest()


def test_fetch_prints_the_commit_and_the_digest(in_hub, checkpoints, digest):
    commit = in_hub(checkpoints["clip"], "v1").name
    shown = run(fetch, "lab/net", "--revision", "v1").stdout
    assert f"lab/net@{commit}" in shown
    assert digest in shown
    document = json.loads(run(fetch, "lab/net", "--revision", "v1", "--json").stdout)
    assert (document["revision"], document["sha256"]) == (commit, digest)


def test_verify_agrees_with_a_file_and_with_its_folder(checkpoints, digest):
    for path in (checkpoints["clip"], checkpoints["clip"] / "model.safetensors"):
        done = run(verify, path, "--sha256", digest.upper())
        assert done.exit_code == 0
        assert done.stdout.startswith(digest)


def test_verify_says_so_when_they_are_other_weights(checkpoints, digest):
    done = run(verify, checkpoints["clip"], "--sha256", "0" * 64)
    assert done.exit_code == 3
    document = json.loads(run(verify, checkpoints["clip"], "--sha256", "0" * 64, "--json").stdout)
    assert (document["equal"], document["sha256"]) == (False, digest)
