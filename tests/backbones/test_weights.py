"""Weights are what their name says, or an error says why not."""

import hashlib
import json
import shutil
import socket
from codecs import BOM_UTF8

import pytest
from click.testing import CliRunner

from obygaze_features.backbones import load_backbone, load_text_backbone, weights
from obygaze_features.backbones.weights import fetch, find_weights
from obygaze_features.commands.weights_commands import verify
from obygaze_features.errors import BackboneError
from tests.later import later
from tests.tiny_checkpoints import tiny_checkpoint

constants = later("huggingface_hub", "constants")
LocalEntryNotFoundError = later("huggingface_hub.errors", "LocalEntryNotFoundError")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def hub(save_as_hub_snapshot, checkpoints):
    """A repository in the hub's cache, and no network."""
    return save_as_hub_snapshot(checkpoints["clip"])


@pytest.mark.long
def test_a_folder_is_known_by_the_digest_of_its_weights(checkpoints):
    result = find_weights(checkpoints["clip"])
    assert result.sha256 == sha256(checkpoints["clip"] / "model.safetensors")
    assert result.record() == {"hub": None, "weights_sha256": result.sha256, "licence": "NOASSERTION"}


def test_weights_of_a_seed_are_recorded_as_untrained_without_a_digest():
    """`random:7` means random weights from seed 7: there is no file that could have a digest."""
    assert find_weights("random:7").record() == {
        "hub": None,
        "weights_sha256": None,
        "untrained": True,
        "weights": "random:7",
        "licence": "NOASSERTION",
    }


def test_a_repository_is_resolved_to_a_commit_without_network(hub):
    """A name such as lab/net may point to other weights tomorrow, so the commit is recorded."""
    result = find_weights("lab/net")
    assert result.record()["hub"] == {"repository": "lab/net", "revision": hub.name}
    assert result.sha256 == sha256(hub / "model.safetensors")
    assert fetch("lab/net", hub.name) == find_weights(f"lab/net@{hub.name}") == result
    provenance = load_backbone("clip", 2, weights="lab/net").provenance

    assert provenance["hub"] == result.record()["hub"]
    assert "untrained" not in provenance


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("name", ["lab/other", "lab/net@v2"], ids=["another repository", "another version"])
def test_a_repository_or_version_not_in_the_cache_is_an_error_offline(name):
    with pytest.raises(BackboneError, match=f"{name}.*unset HF_HUB_OFFLINE"):
        find_weights(name)


def test_a_failed_connection_is_not_reported_as_a_missing_file(monkeypatch, hub):
    """Here the hub was reachable for one file and not for the next."""

    def download(_, name, **__):
        if name == "config.json":
            return f"/cache/{hub.name}/config.json"
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr(weights, "_no_network", lambda: "")

    with pytest.raises(BackboneError, match=r"model\.safetensors .*no connection"):
        find_weights("lab/net")


def test_where_the_hub_has_no_address_the_cache_alone_is_read(monkeypatch, hub):
    def no_address(*_):
        raise socket.gaierror(-2, "Name or service not known")

    def download(_, name, *, local_files_only, **__):
        assert local_files_only  # otherwise the client would try to connect five times
        if name == "config.json":
            return f"/cache/{hub.name}/config.json"
        raise LocalEntryNotFoundError("not in the cache")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(weights, "getproxies", dict)
    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)

    with pytest.raises(BackboneError, match="Name or service not known"):
        find_weights("lab/net")


@pytest.mark.parametrize(
    ("repository", "fetched_as"),
    [(weights.HUB["xclip"], "xclip"), ("timm/resnet50_clip.openai", "openclip"), ("lab/net", "lab/net")],
)
def test_the_help_for_missing_weights_says_how_to_get_them(monkeypatch, tmp_path, repository, fetched_as):
    """A backbone with weights of its own is fetched by the backbone's name."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    output = weights.how_to_get(repository)
    assert f"obygaze weights fetch {fetched_as};" in output
    assert f"models--{repository.replace('/', '--')}" in output
    assert str(tmp_path / "cache") in output
    assert "--weights FOLDER" in output


@pytest.mark.usefixtures("hub")
def test_a_repository_is_cached_if_the_cache_has_its_weights():
    assert weights.is_cached("lab/net")
    assert not weights.is_cached("lab/other")


def test_a_file_with_its_configuration_beside_it_stands_for_its_folder(checkpoints, tmp_path):
    """Without config.json beside it, nothing says of what network a file is."""
    folder = checkpoints["clip"]
    by_file = load_backbone("clip", 2, weights=str(folder / "model.safetensors"))
    by_folder = load_backbone("clip", 2, weights=str(folder))
    assert by_file.provenance == by_folder.provenance
    alone = shutil.copy(folder / "model.safetensors", tmp_path)

    with pytest.raises(BackboneError, match=r"config\.json"):
        load_backbone("clip", 2, weights=str(alone))


def test_a_repository_without_weights_is_an_error(hub):
    (hub / "model.safetensors").unlink()
    with pytest.raises(BackboneError, match=f"lab/net@{hub.name}"):
        find_weights("lab/net")


def test_a_sharded_checkpoint_loads_and_its_digest_is_that_of_all_shards(tmp_path):
    """The digest is that of a list of the shards' digests and names, as sha256sum prints it."""
    folder = tiny_checkpoint("vivit", tmp_path / "sharded", shard_size="40KB")
    shards = sorted(folder.glob("*.safetensors"))
    assert len(shards) > 1
    lines = "".join(f"{sha256(shard)}  {shard.name}\n" for shard in shards)
    backbone = load_backbone("vivit", weights=str(folder), tokens="none")
    assert backbone.provenance["weights_sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    shards[0].unlink()

    with pytest.raises(BackboneError, match=shards[0].name):
        find_weights(folder)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("./nowhere", "no such file or folder"),
        ("lab/net.safetensors", "no such file or folder"),
        ("nowhere", "no such file or folder"),
        ("random:x", "seed"),
        (".", r"model\.safetensors"),
    ],
    ids=["a path", "a file's name", "a word", "a seed that is no number", "an empty folder"],
)
def test_weights_that_name_nothing_to_load_are_refused(tmp_path, monkeypatch, source, reason):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackboneError, match=reason):
        find_weights(source)


def test_an_index_of_shards_in_other_folders_is_refused(tmp_path):
    """The index comes from a stranger: it must not make us read files outside of the checkpoint's folder."""
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../../secret"}}))
    with pytest.raises(BackboneError, match="beside it"):
        find_weights(tmp_path)


@pytest.mark.parametrize(
    "name", ["config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json"]
)
def test_a_byte_order_mark_in_a_configuration_is_named(checkpoints, tmp_path, name):
    """Libraries that read these files fail on it with messages that don't say so."""
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    file = folder / name
    file.write_bytes(BOM_UTF8 + (file.read_bytes() if file.exists() else b"{}"))
    load = load_text_backbone if name.startswith("token") else load_backbone
    with pytest.raises(BackboneError, match=f"{name}.*byte order mark"):
        load("clip-text" if name.startswith("token") else "clip", weights=folder)


def test_a_folder_of_another_network_is_refused(checkpoints):
    with pytest.raises(BackboneError, match="'vivit' is not read here: expected xclip"):
        load_backbone("xclip", weights=str(checkpoints["vivit"]))


@pytest.mark.parametrize("name", [".", "model.safetensors"], ids=["a folder", "a file"])
@pytest.mark.parametrize("is_equal", [True, False], ids=["the digest, in capitals", "another digest"])
def test_weights_verify_compares_the_digest_with_the_expected_one(checkpoints, name, is_equal):
    """Exit code 3 says that the check was done and failed."""
    digest = sha256(checkpoints["clip"] / "model.safetensors")
    expected = digest.upper() if is_equal else "0" * 64
    arguments = [str(checkpoints["clip"] / name), "--sha256", expected, "--json"]

    result = CliRunner().invoke(verify, arguments)

    assert result.exit_code == (0 if is_equal else 3)
    shown = json.loads(result.stdout)

    assert (shown["equal"], shown["sha256"]) == (is_equal, digest)


@pytest.mark.parametrize(
    ("front_matter", "licence"),
    [
        ("license: mit", "MIT"),
        ("license: cc-by-nc-4.0", "CC-BY-NC-4.0"),
        ("license: other\nlicense_name: dinov3 license", "LicenseRef-dinov3-license"),
        ("license: other", "LicenseRef-other"),
        ("license: openrail", "LicenseRef-openrail"),
        ("license: [mit, other]", "NOASSERTION"),
        ("tags: [x]", "NOASSERTION"),
        ("license: [unclosed", "NOASSERTION"),
        ("license: 5", "NOASSERTION"),
    ],
)
def test_the_licence_of_weights_is_read_from_the_readme_beside_them(
    checkpoints, tmp_path, front_matter, licence
):
    """A licence known to SPDX is written as SPDX does, another one as LicenseRef-."""
    folder = tmp_path / "net"
    shutil.copytree(checkpoints["clip"], folder)
    (folder / "README.md").write_text(f"---\n{front_matter}\n---\n# A network\n", encoding="utf-8")
    assert find_weights(folder).record()["licence"] == licence


@pytest.mark.long
@pytest.mark.parametrize(
    ("licence", "n_warnings"),
    [("CC0-1.0", 1), ("CC-BY-NC-4.0", 0)],
    ids=["wider than that of the weights", "the same"],
)
def test_extract_warns_of_a_licence_that_is_wider_than_that_of_the_weights(
    checkpoints, tmp_path, shared_data, licence, n_warnings
):
    """The weights may not be used commercially (CC-BY-NC-4.0)."""
    from obygaze_features import Clip, Manifest, extract

    folder = shutil.copytree(checkpoints["clip"], tmp_path / "net")
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n", encoding="utf-8")
    clips = Manifest((Clip("a", "m", str(shared_data / "videos" / "test.avi"), 0.0, 1.0),), tmp_path)
    backbone = load_backbone("clip", 1, weights=str(folder))
    notes = []
    options = {"n_frames": 1, "workers": 1, "licence": licence, "note": notes.append}
    store = extract(clips, tmp_path / "store", [backbone], **options)

    assert store["clip"].provenance["licence"] == "CC-BY-NC-4.0"
    assert len([note for note in notes if "CC-BY-NC-4.0" in note]) == n_warnings


def test_a_network_that_needs_no_weights_is_named_so_in_messages():
    assert weights.Weights().name == "no weights"
