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
from tests.lazy_import import lazy_import
from tests.tiny_checkpoints import tiny_checkpoint

constants = lazy_import("huggingface_hub", "constants")
LocalEntryNotFoundError = lazy_import("huggingface_hub.errors", "LocalEntryNotFoundError")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def cached_repository(save_as_hub_snapshot, tiny_checkpoints):
    """The folder of lab/net, a tiny CLIP, in the hub's cache; its name is the commit. Downloads are off."""
    return save_as_hub_snapshot(tiny_checkpoints["clip"])


@pytest.mark.long
def test_a_folder_is_known_by_the_digest_of_its_weights(tiny_checkpoints):
    """The folder has a tiny CLIP. It is of no hub, and nothing in it states a licence."""
    folder = tiny_checkpoints["clip"]

    weights_of_folder = find_weights(folder)

    digest = sha256(folder / "model.safetensors")
    assert weights_of_folder.sha256 == digest
    assert weights_of_folder.record() == {"hub": None, "weights_sha256": digest, "licence": "NOASSERTION"}


def test_weights_of_a_seed_are_recorded_as_untrained_without_a_digest():
    """`random:7` means random weights from seed 7: there is no file that could have a digest."""
    assert find_weights("random:7").record() == {
        "hub": None,
        "weights_sha256": None,
        "untrained": True,
        "weights": "random:7",
        "licence": "NOASSERTION",
    }


def test_a_repository_is_resolved_to_a_commit_without_network(cached_repository):
    """lab/net is in the cache of Hugging Face's hub, in a folder that is named after the commit.

    The name may point to other weights tomorrow, so the commit is recorded.
    """
    commit = cached_repository.name

    by_name = find_weights("lab/net")
    by_name_and_commit = find_weights(f"lab/net@{commit}")

    assert by_name.record()["hub"] == {"repository": "lab/net", "revision": commit}
    assert by_name.sha256 == sha256(cached_repository / "model.safetensors")
    assert by_name_and_commit == by_name
    assert fetch("lab/net", commit) == by_name


def test_a_backbone_with_weights_of_a_repository_records_its_commit(cached_repository):
    """lab/net is in the cache of Hugging Face's hub, in a folder that is named after the commit."""
    backbone = load_backbone("clip", n_frames=2, weights="lab/net")

    assert backbone.provenance["hub"] == {"repository": "lab/net", "revision": cached_repository.name}
    assert "untrained" not in backbone.provenance


@pytest.mark.usefixtures("cached_repository")
@pytest.mark.parametrize("name", ["lab/other", "lab/net@v2"], ids=["another repository", "another version"])
def test_a_repository_or_version_not_in_the_cache_is_an_error_offline(name):
    """The cache has one version of lab/net, which is not v2, and downloads are off."""
    with pytest.raises(BackboneError, match=f"{name}.*unset HF_HUB_OFFLINE"):
        find_weights(name)


def test_a_failed_connection_is_not_reported_as_a_missing_file(monkeypatch, cached_repository):
    """The hub is reachable for config.json, and not any more for the next file, model.safetensors."""

    def download_only_the_configuration(_repository, name, **_options):
        if name == "config.json":
            return f"/cache/{cached_repository.name}/config.json"
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download_only_the_configuration)
    monkeypatch.setattr(weights, "_why_no_network", lambda: "")  # empty: there is a network

    with pytest.raises(BackboneError, match=r"model\.safetensors .*no connection"):
        find_weights("lab/net")


@pytest.fixture
def hub_without_an_address(monkeypatch):
    """Downloads are on and there is no proxy, but no server is known by the name of Hugging Face's hub."""

    def find_no_address(*_):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(weights, "getproxies", dict)
    monkeypatch.setattr(socket, "getaddrinfo", find_no_address)


# `cached_repository` comes first: it turns downloads off, and `hub_without_an_address` on again.
@pytest.mark.usefixtures("cached_repository", "hub_without_an_address")
def test_where_the_hub_has_no_address_the_cache_alone_is_read(monkeypatch, cached_repository):
    """The address of Hugging Face's hub cannot be looked up, as on a machine without network.

    The hub's client would try five times to connect, unless it is told to read its cache alone
    (`local_files_only`): it must be, for each file.

    Its cache has the configuration of lab/net and not the weights. The error says why these cannot be had:
    "Name or service not known" is what the system says of the address.
    """

    def download_from_cache(_repository, name, *, local_files_only, **_options):
        is_told_to_read_the_cache_alone = local_files_only
        assert is_told_to_read_the_cache_alone
        if name == "config.json":
            return f"/cache/{cached_repository.name}/config.json"
        raise LocalEntryNotFoundError("not in the cache")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download_from_cache)

    with pytest.raises(BackboneError, match="Name or service not known"):
        find_weights("lab/net")


@pytest.mark.parametrize(
    ("repository", "fetched_as"),
    [(weights.HUB["xclip"], "xclip"), ("timm/resnet50_clip.openai", "openclip"), ("lab/net", "lab/net")],
)
def test_the_help_for_missing_weights_says_how_to_get_them(monkeypatch, tmp_path, repository, fetched_as):
    """The repository of a backbone's own weights is fetched by the backbone's name, another by its own.

    The help also names the folder of the cache where the weights would be: lab/net is in models--lab--net.
    """
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))

    help_text = weights.how_to_get(repository)

    assert f"obygaze weights fetch {fetched_as};" in help_text
    assert f"models--{repository.replace('/', '--')}" in help_text
    assert str(tmp_path / "cache") in help_text
    assert "--weights FOLDER" in help_text


@pytest.mark.usefixtures("cached_repository")
def test_a_repository_is_cached_if_the_cache_has_its_weights():
    """The cache has the weights of lab/net, and nothing else."""
    assert weights.is_cached("lab/net")
    assert not weights.is_cached("lab/other")


def test_a_file_with_its_configuration_beside_it_stands_for_its_folder(tiny_checkpoints):
    """A folder of weights has model.safetensors and config.json; a user may name either."""
    folder = tiny_checkpoints["clip"]

    by_file = load_backbone("clip", n_frames=2, weights=str(folder / "model.safetensors"))
    by_folder = load_backbone("clip", n_frames=2, weights=str(folder))

    assert by_file.provenance == by_folder.provenance


def test_a_file_of_weights_without_a_configuration_beside_it_is_refused(tiny_checkpoints, tmp_path):
    """Without config.json, nothing says of what network the weights are."""
    file_alone = shutil.copy(tiny_checkpoints["clip"] / "model.safetensors", tmp_path)

    with pytest.raises(BackboneError, match=r"config\.json"):
        load_backbone("clip", n_frames=2, weights=str(file_alone))


def test_a_repository_without_weights_is_an_error(cached_repository):
    """lab/net is in the cache of the hub, in a folder named after the commit; its weights were removed."""
    (cached_repository / "model.safetensors").unlink()
    commit = cached_repository.name

    with pytest.raises(BackboneError, match=f"lab/net@{commit}"):
        find_weights("lab/net")


def test_a_sharded_checkpoint_loads_and_its_digest_is_that_of_all_shards(tmp_path):
    """The digest is that of a list of the shards' digests and names, as sha256sum prints it."""
    folder = tiny_checkpoint("vivit", tmp_path / "sharded", shard_size="40KB")
    shards = sorted(folder.glob("*.safetensors"))
    assert len(shards) > 1

    backbone = load_backbone("vivit", weights=str(folder), tokens="none")

    output_of_sha256sum = ""
    for shard in shards:
        output_of_sha256sum += f"{sha256(shard)}  {shard.name}\n"
    expected = hashlib.sha256(output_of_sha256sum.encode()).hexdigest()
    assert backbone.provenance["weights_sha256"] == expected


def test_a_checkpoint_that_lacks_one_of_its_shards_is_refused_by_the_name_of_the_shard(tmp_path):
    """The weights of a tiny ViViT are divided into files of 40 kB, of which an index lists the names."""
    folder = tiny_checkpoint("vivit", tmp_path / "sharded", shard_size="40KB")
    missing = min(folder.glob("*.safetensors"))
    missing.unlink()

    with pytest.raises(BackboneError, match=missing.name):
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
    """The working folder is empty, so none of these names is there."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BackboneError, match=reason):
        find_weights(source)


def test_an_index_of_shards_in_other_folders_is_refused(tmp_path):
    """The index comes from a stranger: it must not make us read files outside of the checkpoint's folder."""
    index = {"weight_map": {"a": "../../secret"}}  # tensor -> file
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))

    with pytest.raises(BackboneError, match="beside it"):
        find_weights(tmp_path)


def put_byte_order_mark_before(file):
    """Write a UTF-8 byte order mark before what a file has; a file that is missing gets an empty object."""
    content = file.read_bytes() if file.exists() else b"{}"
    file.write_bytes(BOM_UTF8 + content)


@pytest.mark.parametrize(
    ("load", "backbone", "name"),
    [
        (load_backbone, "clip", "config.json"),
        (load_backbone, "clip", "preprocessor_config.json"),
        (load_text_backbone, "clip-text", "tokenizer.json"),
        (load_text_backbone, "clip-text", "tokenizer_config.json"),
    ],
    ids=["config", "processor", "tokenizer", "tokenizer's config"],
)
def test_a_byte_order_mark_in_a_file_beside_the_weights_is_named(
    tiny_checkpoints, tmp_path, load, backbone, name
):
    """Libraries that read these files fail on it with messages that don't say so."""
    folder = shutil.copytree(tiny_checkpoints["clip"], tmp_path / "clip")
    put_byte_order_mark_before(folder / name)

    with pytest.raises(BackboneError, match=f"{name}.*byte order mark"):
        load(backbone, weights=folder)


def test_a_folder_of_another_network_is_refused(tiny_checkpoints):
    """The backbone `xclip` reads X-CLIPs; the configuration in the folder is of a ViViT."""
    folder_of_vivit = str(tiny_checkpoints["vivit"])

    with pytest.raises(BackboneError, match="'vivit' is not read here: expected xclip"):
        load_backbone("xclip", weights=folder_of_vivit)


@pytest.mark.parametrize("name", [".", "model.safetensors"], ids=["a folder", "a file"])
def test_weights_verify_says_that_the_digest_is_the_expected_one(tiny_checkpoints, name):
    """Digests may be written in capitals."""
    digest = sha256(tiny_checkpoints["clip"] / "model.safetensors")
    path = str(tiny_checkpoints["clip"] / name)

    result = CliRunner().invoke(verify, [path, "--sha256", digest.upper(), "--json"])

    assert result.exit_code == 0
    output = json.loads(result.stdout)
    assert output["equal"] is True
    assert output["sha256"] == digest


@pytest.mark.parametrize("name", [".", "model.safetensors"], ids=["a folder", "a file"])
def test_weights_verify_ends_with_exit_code_3_if_the_digest_is_another_one(tiny_checkpoints, name):
    """Exit code 3 says that the check was done and failed."""
    digest = sha256(tiny_checkpoints["clip"] / "model.safetensors")
    path = str(tiny_checkpoints["clip"] / name)

    result = CliRunner().invoke(verify, [path, "--sha256", "0" * 64, "--json"])

    assert result.exit_code == 3
    output = json.loads(result.stdout)
    assert output["equal"] is False
    assert output["sha256"] == digest


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
    tiny_checkpoints, tmp_path, front_matter, licence
):
    """A licence known to SPDX is written as SPDX does, another one as LicenseRef-.

    What is no single licence, or cannot be read, is NOASSERTION.
    """
    folder = shutil.copytree(tiny_checkpoints["clip"], tmp_path / "net")
    (folder / "README.md").write_text(f"---\n{front_matter}\n---\n# A network\n", encoding="utf-8")

    record = find_weights(folder).record()

    assert record["licence"] == licence


@pytest.mark.long
@pytest.mark.parametrize(
    ("licence", "n_warnings"),
    [("CC0-1.0", 1), ("CC-BY-NC-4.0", 0)],
    ids=["wider than that of the weights", "the same"],
)
def test_extract_warns_of_a_licence_that_is_wider_than_that_of_the_weights(
    tiny_checkpoints, tmp_path, shared_data, licence, n_warnings
):
    """The README beside the weights says that they may not be used commercially (CC-BY-NC-4.0).

    A store made with them gets that licence, or CC0-1.0, which would allow any use.
    """
    from obygaze_features import Clip, Manifest, extract

    folder = shutil.copytree(tiny_checkpoints["clip"], tmp_path / "net")
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n", encoding="utf-8")
    backbone = load_backbone("clip", n_frames=1, weights=str(folder))
    clip = Clip("a", "m", str(shared_data / "videos" / "test.avi"), start_s=0.0, end_s=1.0)
    notes = []

    store = extract(
        Manifest((clip,), tmp_path),
        tmp_path / "store",
        [backbone],
        n_frames=1,
        workers=1,
        licence=licence,
        note=notes.append,
    )

    assert store["clip"].provenance["licence"] == "CC-BY-NC-4.0"
    warnings = [note for note in notes if "CC-BY-NC-4.0" in note]
    assert len(warnings) == n_warnings


def test_a_network_that_needs_no_weights_is_named_so_in_messages():
    """Weights without a source are those of a descriptor, which computes without a trained network."""
    assert weights.Weights().name == "no weights"
