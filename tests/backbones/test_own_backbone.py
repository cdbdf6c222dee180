"""A lab's own backbone plugs in as docs/backbones.md says."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.backbones import backbone_names, backbone_options, load_backbone
from obygaze_features.errors import BackboneError
from tests import lab_package
from tests.lazy_import import lazy_import

torch = lazy_import("torch")
save_file = lazy_import("safetensors.torch", "save_file")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
PAGE = Path(__file__).parents[2] / "docs" / "backbones.md"


def example_in_page(language):
    """Return the worked example of docs/backbones.md, its last block of code in a language."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return blocks[-1]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package of a lab: a module with its source, and entry points that name its backbones."""

    def install_package(module, source, entry_points):
        lab_package.install(tmp_path, monkeypatch, module, source, f"[obygaze.backbones]\n{entry_points}\n")
        return tmp_path

    yield install_package
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


@pytest.mark.usefixtures("labnet_folder")
def test_an_installed_backbone_is_listed_with_its_options():
    """The worked example of docs/backbones.md, `labnet`, is installed as a package of a lab."""
    assert "labnet" in backbone_names()
    assert backbone_options("labnet") == ("weights", "compute")


def test_the_worked_example_of_docs_backbones_gives_vectors_of_frames_and_their_mean(labnet_folder):
    """`labnet` gives 16 numbers for each of the 8 frames of a clip; here of two clips of noise."""
    weights = str(labnet_folder / "labnet.safetensors")
    backbone = load_backbone("labnet", weights=weights, compute=Compute(device="cpu"))
    clips = np.random.default_rng(0).integers(0, 256, (2, 8, 240, 320, 3), dtype=np.uint8)
    batch = np.stack([[backbone.prepare(frame) for frame in clip] for clip in clips])

    arrays = backbone.encode(batch)

    assert arrays["frames"].shape == (2, 8, 16)
    assert arrays["pooled"] == pytest.approx(arrays["frames"].mean(axis=1), abs=1e-5)
    assert backbone.provenance["weights_sha256"]


@pytest.mark.usefixtures("labnet_folder")
def test_the_worked_example_runs_with_random_weights_that_follow_from_the_seed():
    """`random:7` means random weights from seed 7."""
    clip = np.random.default_rng(0).integers(0, 256, (1, 8, 224, 224, 3), dtype=np.uint8)
    seed_7 = load_backbone("labnet", weights="random:7", compute=Compute(device="cpu"))
    seed_7_again = load_backbone("labnet", weights="random:7", compute=Compute(device="cpu"))
    seed_8 = load_backbone("labnet", weights="random:8", compute=Compute(device="cpu"))

    vector = seed_7.encode(clip)["pooled"]

    assert np.array_equal(seed_7_again.encode(clip)["pooled"], vector)
    assert not np.array_equal(seed_8.encode(clip)["pooled"], vector)
    assert seed_7.provenance["untrained"]
    assert seed_8.provenance["untrained"]


def test_a_backbone_of_a_lab_that_reads_a_file_although_its_weights_are_random_gets_an_error(install):
    """The user gives the weights random:7, which are drawn from the seed 7, and of which there is no file.

    The worked example of docs/backbones.md asks whether there is a seed, and reads a file only if there is
    none. Here a lab has forgotten this: its backbone is the example with "if True:" in place of the question,
    and always reads a file.
    """
    question_whether_there_is_no_seed = "if found.seed is None:"
    source = example_in_page("python")
    assert question_whether_there_is_no_seed in source
    always_reads_a_file = source.replace(question_whether_there_is_no_seed, "if True:")
    install("broken", always_reads_a_file, "mine = broken:labnet")

    with pytest.raises(BackboneError, match="random:7: random weights have no file of tensors"):
        load_backbone("mine", weights="random:7")


def test_a_missing_or_wrong_option_is_refused_by_backbone(labnet_folder):
    """The error comes from a lab's own code, so it says which backbone it is about."""
    weights = str(labnet_folder / "labnet.safetensors")

    with pytest.raises(BackboneError, match=r"'labnet'.*'weights'"):
        load_backbone("labnet")
    with pytest.raises(BackboneError, match="'labnet'"):
        load_backbone("labnet", weights=weights, compute=3)


def test_a_stated_output_that_is_not_given_is_named(install, labnet_folder):
    """A lab's backbone says that it gives "pooled" and returns "poled".

    It is the worked example of docs/backbones.md with this misspelling.
    """
    misspelt = example_in_page("python").replace('"pooled": vectors.float()', '"poled": vectors.float()')
    install("broken", misspelt, "mine = broken:labnet")
    weights = str(labnet_folder / "labnet.safetensors")
    backbone = load_backbone("mine", weights=weights, compute=Compute(device="cpu"))
    clip = np.zeros((1, 8, 224, 224, 3), dtype=np.uint8)

    with pytest.raises(BackboneError, match=r"'labnet'.*'pooled'.*poled"):
        backbone.encode(clip)


@pytest.mark.parametrize(
    "source",
    ["import absent_module", "def function(**_):\n    return 1 / 0\n"],
    ids=["a module that cannot be imported", "a function that fails"],
)
def test_a_backbone_that_does_not_load_is_named(install, source):
    """The backbone is called `mine`, and is made by the function of the module `broken`."""
    install("broken", source, "mine = broken:function")

    with pytest.raises(BackboneError, match="'mine'"):
        load_backbone("mine")


def test_a_backbone_with_the_name_of_a_built_in_one_is_refused(install):
    """A lab's package calls its backbone `descriptors`, as one of ours is called.

    Stores record names, and one name must mean one backbone.
    """
    install("labnet", example_in_page("python"), "descriptors = labnet:labnet")

    with pytest.raises(BackboneError, match="'descriptors'"):
        load_backbone("descriptors")


@pytest.mark.parametrize(
    "entry_point",
    ["broken:absent", "broken:number", "broken:function"],
    ids=["no such name", "no function", "a function that returns no backbone"],
)
def test_an_entry_point_that_is_no_backbone_is_named(install, entry_point):
    """The module `broken` has a number and a function that returns a number."""
    source = "number = 3\ndef function(n_frames=None):\n    return 3\n"
    install("broken", source, f"mine = {entry_point}")

    with pytest.raises(BackboneError, match=f"mine|{entry_point}"):
        load_backbone("mine")


def test_the_error_for_an_unknown_backbone_lists_the_known_ones():
    """There is no backbone `resnet`; clip-text and descriptors are two of the known ones."""
    with pytest.raises(BackboneError, match="'resnet'") as refused:
        load_backbone("resnet")

    assert "clip-text, " in str(refused.value)
    assert "descriptors, " in str(refused.value)


def test_the_error_for_an_unknown_option_lists_the_known_ones():
    """Descriptors have no weights; ViViT has weights and five other options, but no depth."""
    with pytest.raises(BackboneError, match="'weights'"):
        load_backbone("descriptors", weights="random:0")
    with pytest.raises(BackboneError, match="weights, preset, tokens, layers, answers, compute"):
        load_backbone("vivit", depth=3)
