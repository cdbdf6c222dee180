"""`obygaze weights`: fetch and verify."""

import hashlib
import json

import pytest
from click.testing import CliRunner

from obygaze_features.commands.weights_commands import fetch, verify
from obygaze_features.errors import BackboneError


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


@pytest.mark.parametrize("name", ["descriptors", "xclip-lsmdc", "nonsense"])
def test_what_has_no_weights_on_the_hub_is_refused_without_asking_it(name):
    with pytest.raises(BackboneError, match=f"'{name}': .*OWNER/NAME"):
        run(fetch, name)


def test_a_digest_to_verify_has_64_digits(tmp_path):
    assert run(verify, tmp_path, "--sha256", "9f86d081").exit_code == 2


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


def test_verify_of_nothing_is_an_error(tmp_path):
    with pytest.raises(BackboneError, match="absent"):
        run(verify, tmp_path / "absent", "--sha256", "0" * 64)
