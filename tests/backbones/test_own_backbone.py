"""A lab's own backbone plugs in as docs/backbones.md says."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.backbones import backbone_names, backbone_options, load_backbone
from obygaze_features.errors import BackboneError
from tests import lab_package
from tests.later import later

torch = later("torch")
save_file = later("safetensors.torch", "save_file")
Compute = later("obygaze_features.backbones.compute", "Compute")
PAGE = Path(__file__).parents[2] / "docs" / "backbones.md"


def example_in_page(language):
    """Return the worked example of docs/backbones.md, its last block of code in a language."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return blocks[-1]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a module with entry points of backbones."""

    def installed(module, source, entry_points):
        lab_package.install(tmp_path, monkeypatch, module, source, f"[obygaze.backbones]\n{entry_points}\n")
        return tmp_path

    yield installed
    for module in ("labnet", "broken"):
        sys.modules.pop(module, None)


@pytest.fixture
def labnet_folder(install):
    """Install the worked example, the backbone `labnet`; the folder with its weights."""
    header, line = example_in_page("toml").strip().splitlines()
    assert header == '[project.entry-points."obygaze.backbones"]'
    folder = install("labnet", example_in_page("python"), line.replace('"', ""))
    generator = torch.Generator().manual_seed(0)
    shapes = {"patches.weight": (16, 3, 32, 32), "patches.bias": (16,)}
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    save_file(tensors, folder / "labnet.safetensors")
    return folder


def test_the_worked_example_of_docs_backbones_works(labnet_folder):
    assert "labnet" in backbone_names()
    assert backbone_options("labnet") == ("weights", "compute")
    weights = str(labnet_folder / "labnet.safetensors")
    backbone = load_backbone("labnet", weights=weights, compute=Compute(device="cpu"))
    frames = np.random.default_rng(0).integers(0, 256, (2, 8, 240, 320, 3), dtype=np.uint8)
    batch = np.stack([[backbone.prepare(frame) for frame in clip] for clip in frames])
    result = backbone.encode(batch)

    assert result["frames"].shape == (2, 8, 16)
    assert result["pooled"] == pytest.approx(result["frames"].mean(axis=1), abs=1e-5)
    assert backbone.provenance["weights_sha256"]


@pytest.mark.usefixtures("labnet_folder")
def test_the_worked_example_runs_with_random_weights():
    clip = np.random.default_rng(0).integers(0, 256, (1, 8, 224, 224, 3), dtype=np.uint8)
    vectors = {}
    for weights in ("random:7", "random:8"):
        backbone = load_backbone("labnet", weights=weights, compute=Compute(device="cpu"))
        assert backbone.provenance["untrained"]
        vectors[weights] = backbone.encode(clip)["pooled"]
    again = load_backbone("labnet", weights="random:7", compute=Compute(device="cpu"))

    assert np.array_equal(again.encode(clip)["pooled"], vectors["random:7"])
    assert not np.array_equal(vectors["random:7"], vectors["random:8"])


def test_reading_a_file_of_random_weights_is_an_error(install):
    """The example is changed so that it reads one all the same."""
    loads_a_file_even_of_a_seed = ("if found.seed is None:", "if True:")
    source = example_in_page("python").replace(*loads_a_file_even_of_a_seed)
    install("broken", source, "mine = broken:labnet")
    with pytest.raises(BackboneError, match="random:7: random weights have no file of tensors"):
        load_backbone("mine", weights="random:7")


def test_a_missing_or_wrong_option_is_refused_by_backbone(labnet_folder):
    """The error comes from a lab's own code, so it says which backbone it is about."""
    with pytest.raises(BackboneError, match=r"'labnet'.*'weights'"):
        load_backbone("labnet")
    with pytest.raises(BackboneError, match="'labnet'"):
        load_backbone("labnet", weights=str(labnet_folder / "labnet.safetensors"), compute=3)


def test_a_stated_output_that_is_not_given_is_named(install, labnet_folder):
    """The example is changed so that it returns "poled" in place of "pooled"."""
    misspelt = ('"pooled": vectors.float()', '"poled": vectors.float()')
    source = example_in_page("python").replace(*misspelt)
    install("broken", source, "mine = broken:labnet")
    weights = str(labnet_folder / "labnet.safetensors")
    backbone = load_backbone("mine", weights=weights, compute=Compute(device="cpu"))

    with pytest.raises(BackboneError, match=r"'labnet'.*'pooled'.*poled"):
        backbone.encode(np.zeros((1, 8, 224, 224, 3), dtype=np.uint8))


@pytest.mark.parametrize("source", ["import absent_module", "def function(**_):\n    return 1 / 0\n"])
def test_a_backbone_that_does_not_load_is_named(install, source):
    install("broken", source, "mine = broken:function")
    with pytest.raises(BackboneError, match="'mine'"):
        load_backbone("mine")


def test_a_backbone_with_the_name_of_a_built_in_one_is_refused(install):
    """Stores record names, and one name must mean one backbone."""
    install("labnet", example_in_page("python"), "descriptors = labnet:labnet")
    with pytest.raises(BackboneError, match="'descriptors'"):
        load_backbone("descriptors")


@pytest.mark.parametrize(
    "value",
    ["broken:absent", "broken:number", "broken:function"],
    ids=["no such name", "no function", "a function that returns no backbone"],
)
def test_an_entry_point_that_is_no_backbone_is_named(install, value):
    install("broken", "number = 3\ndef function(n_frames=None):\n    return 3\n", f"mine = {value}")
    with pytest.raises(BackboneError, match=f"mine|{value}"):
        load_backbone("mine")


def test_unknown_names_and_options_list_the_known_ones():
    with pytest.raises(BackboneError, match="'resnet'") as refused:
        load_backbone("resnet")
    assert "clip-text, " in str(refused.value)
    assert "descriptors, " in str(refused.value)
    with pytest.raises(BackboneError, match="'weights'"):
        load_backbone("descriptors", weights="random:0")
    with pytest.raises(BackboneError, match="weights, preset, tokens, layers, answers, compute"):
        load_backbone("vivit", depth=3)
