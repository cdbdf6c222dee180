"""Layers are groups of a store like any other: from the command to search, growth, merging and a model."""

import json
import math
import re

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze.demo_corpus import write_video
from obygaze.film_run import _feature_options
from obygaze_features.backbones import Layers, load_backbone
from obygaze_features.errors import ExtractError
from obygaze_features.exchange import diff, merge, pack
from obygaze_features.extraction import Recipe
from obygaze_features.video import fps, read_frames, uniform
from tests.lazy_import import cpu
from tests.store.serving import serving
from tests.tiny_checkpoints import tiny_checkpoint

QUIET = {"licence": "CC0-1.0", "note": lambda _: None, "workers": 1}
LEVELS = ("EN", "S")


@pytest.fixture(scope="module")
def folder_of_twelve_videos(tmp_path_factory):
    """Twelve videos of four films, and a file that is none; every other one is labelled S and is darker."""
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    clips = []
    for number in range(12):
        brightest = 100 if number % 2 else 255
        write_video(folder / f"{number}.mp4", rng.integers(0, brightest, (6, 48, 64, 3), np.uint8), rate=24)
        movie = f"tt{number // 3}"
        clips.append(of.Clip(f"c{number:02d}", movie, f"{number}.mp4", level=LEVELS[number % 2]))
    (folder / "none.mp4").write_bytes(b"no video")
    clips.append(of.Clip("none", "tt0", "none.mp4", level="S"))
    of.write_manifest(of.Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


@pytest.fixture(scope="module")
def clip_weights(tmp_path_factory):
    """The folder of the weights of a tiny CLIP, whose network has two layers."""
    return str(tiny_checkpoint("clip", tmp_path_factory.mktemp("weights") / "clip"))


def extract_layers(films, out, clip_weights, manifest="films.csv", layers=None, **options):
    """Extract with a tiny CLIP, whose network has two layers, and keep those that are asked for."""
    settings = {"weights": clip_weights, "compute": cpu()}
    if layers is not None:
        settings["layers"] = layers
    recipe = Recipe("clip", options=settings)
    if "per_second" not in options:
        options["n_frames"] = 2
    return of.extract(films / manifest, out, [recipe], **QUIET, **options)


BOTH_LAYERS = Layers()


@pytest.fixture(scope="module")
def store_of_both_layers(folder_of_twelve_videos, clip_weights, tmp_path_factory):
    """The store of a network's output and of both of its layers."""
    return extract_layers(
        folder_of_twelve_videos, tmp_path_factory.mktemp("stores") / "films", clip_weights, layers=BOTH_LAYERS
    )


@pytest.fixture(scope="module")
def store_without_layers(folder_of_twelve_videos, clip_weights, tmp_path_factory):
    """The store of the network's output alone."""
    return extract_layers(folder_of_twelve_videos, tmp_path_factory.mktemp("plain") / "films", clip_weights)


@pytest.mark.long
def test_every_layer_is_a_group_of_the_store_with_the_vectors_of_the_pass_that_gives_the_output(
    folder_of_twelve_videos, clip_weights, store_of_both_layers
):
    """A store has, of two frames of each clip, the output of a small network (clip) and of its two layers.

    Here the network is run on clip c03, which is the file 3.mp4: the vector of its second layer must be that
    of the store.
    """
    assert store_of_both_layers.names == ("clip", "clip.1", "clip.2")
    assert store_of_both_layers.backbones == ("clip",)
    assert store_of_both_layers["clip.1"].arrays == ("pooled",)
    assert of.verify(store_of_both_layers, "full").ok

    second_layer = Layers(numbers=(2,))
    backbone = load_backbone("clip", n_frames=2, weights=clip_weights, layers=second_layer, compute=cpu())
    frames = read_frames(folder_of_twelve_videos / "3.mp4", uniform(2)).images
    batch_of_one_clip = np.stack([backbone.prepare(frame) for frame in frames])[np.newaxis]
    vector_of_second_layer = backbone.encode(batch_of_one_clip)["2/pooled"][0]
    assert np.array_equal(store_of_both_layers["clip.2"].read("c03", "pooled"), vector_of_second_layer)


@pytest.mark.long
def test_a_clip_that_failed_has_no_features_in_any_layer(store_of_both_layers):
    """The file of the clip `none` is no video."""
    status_of = {row.clip_id: row.status for row in store_of_both_layers.clips}
    assert status_of["none"] == "failed"
    for layer in ("clip.1", "clip.2"):
        row = store_of_both_layers[layer].clip_ids.index("none")
        assert not store_of_both_layers[layer].usable[row]


@pytest.mark.long
def test_the_output_of_a_network_is_stored_the_same_with_and_without_layers(
    store_of_both_layers, store_without_layers
):
    """Both stores are of the same clips and network; one has its two layers besides, clip.1 and clip.2."""
    assert store_without_layers.names == ("clip",)
    for array in ("pooled", "frames", "time_s"):
        assert store_without_layers["clip"].digests(array) == store_of_both_layers["clip"].digests(array)
    assert store_without_layers["clip"].provenance == store_of_both_layers["clip"].provenance
    assert store_without_layers.attributes["spec_version"] == "1.0"
    assert store_of_both_layers.attributes["spec_version"] == "1.0"

    groups_of_first_alone = diff(store_of_both_layers, store_without_layers).groups_first
    assert groups_of_first_alone == ("clip.1", "clip.2")


@pytest.mark.long
def test_the_provenance_of_a_layer_names_it_and_its_network_and_no_space_of_texts(store_of_both_layers):
    """The group clip.2 of a store has the vectors of the second layer of the network `clip`.

    They are stored as they leave the layer, without a normalisation behind it (`norm`). Only the last output
    of CLIP lies in one space with vectors of texts, and has the field `space`; a layer has none.
    """
    provenance = store_of_both_layers["clip.2"].provenance

    assert provenance["layer"] == "2"
    assert provenance["beside"] == "clip"  # the group of the network's output
    assert provenance["norm"] is None
    assert "space" not in provenance


@pytest.fixture
def run_extract(folder_of_twelve_videos, clip_weights, tmp_path, obygaze):
    """Run the command `extract` into the store `s` with a tiny CLIP, or else descriptors, and options."""

    def run(*options, network=True):
        words = [
            "extract",
            folder_of_twelve_videos / "films.csv",
            tmp_path / "s",
            "--licence",
            "CC0-1.0",
            "--workers",
            1,
        ]
        if network:
            words += ["--backbone", "clip", "--weights", clip_weights, "--n", 2]
        return obygaze(tmp_path, *words, *options)

    return run


@pytest.mark.long
def test_the_command_extracts_a_normalised_layer_with_its_frames(run_extract, tmp_path):
    """The exit code 3 says that a clip has failed: one file is no video."""
    result = run_extract("--layers", "2", "--layer-norm", "--layer-frames")

    assert result.returncode == 3, result.stderr
    store = of.open_store(tmp_path / "s")
    assert store.names == ("clip", "clip.2")
    assert store["clip.2"].arrays == ("pooled", "frames")
    assert store["clip.2"].provenance["norm"] == "vision_model.post_layernorm"


def test_layers_of_a_backbone_without_layers_and_a_norm_without_layers_are_usage_errors(run_extract):
    """Descriptors are no network, and have no layers. The exit code of a usage error is 2."""
    layers_of_descriptors = run_extract("--layers", "2", network=False)
    norm_without_layers = run_extract("--layer-norm")

    assert layers_of_descriptors.returncode == 2
    assert norm_without_layers.returncode == 2


@pytest.mark.parametrize("layer", ["3", "0", "first"])
def test_a_layer_that_a_network_has_not_is_refused_without_a_traceback(run_extract, layer):
    """The network has the layers 1 and 2."""
    result = run_extract("--layers", layer)

    assert result.returncode in {1, 2}
    assert "Traceback" not in result.stderr


@pytest.mark.long
def test_a_store_with_layers_grows(folder_of_twelve_videos, clip_weights, store_of_both_layers, tmp_path):
    """A store has the output of a network and of its two layers: of five clips first, and then of all 13.

    It has the digests of the store that was made of all at once.
    """
    clips = of.read_manifest(folder_of_twelve_videos / "films.csv").clips
    of.write_manifest(of.Manifest(clips[:5], folder_of_twelve_videos), folder_of_twelve_videos / "some.csv")

    store_of_five = extract_layers(
        folder_of_twelve_videos, tmp_path / "films", clip_weights, "some.csv", layers=BOTH_LAYERS
    )
    grown = extract_layers(
        folder_of_twelve_videos,
        tmp_path / "films",
        clip_weights,
        layers=BOTH_LAYERS,
        append=store_of_five.path,
        version="1.1.0",
    )

    for group in ("clip", "clip.1", "clip.2"):
        assert grown[group].digests("pooled") == store_of_both_layers[group].digests("pooled")
    differences = diff(store_of_both_layers, grown)
    assert not any(array.changed for array in differences.arrays)
    assert not any(differences.numerics.values())


@pytest.mark.long
def test_a_layer_is_read_from_a_zip_and_from_a_server(store_of_both_layers, tmp_path):
    """The rows of the clip that failed are NaN."""
    zipped = tmp_path / "films.zip"
    pack(store_of_both_layers.path, zipped)

    with serving(tmp_path) as server:
        vectors_of_zip = of.open_store(zipped)["clip.1"].pooled()
        vectors_of_server = of.open_store(f"{server.url}/films.zip")["clip.1"].pooled()

    vectors = store_of_both_layers["clip.1"].pooled()
    assert np.array_equal(vectors_of_zip, vectors, equal_nan=True)
    assert np.array_equal(vectors_of_server, vectors, equal_nan=True)


@pytest.mark.long
def test_stores_with_and_without_layers_are_not_merged_and_the_layers_are_named(
    store_of_both_layers, store_without_layers, tmp_path
):
    """The layer clip.1 is named in the message, and not only as a part of a path."""
    with pytest.raises(of.ObygazeError) as refused:
        merge([store_of_both_layers.path, store_without_layers.path], tmp_path / "merged", version="1.1.0")

    message_without_paths = re.sub(r"\S*/\S+", "", str(refused.value))
    assert "clip.1" in message_without_paths


@pytest.mark.long
def test_a_layer_has_the_vectors_of_frames_extracted_at_a_rate(
    folder_of_twelve_videos, clip_weights, tmp_path
):
    """Of a network's first layer, a store has the vectors of eight frames a second of each clip.

    The frames of clip c03, which is the file 3.mp4, get the same vectors when they are encoded here alone.
    Batches of another size may be summed in another order, so they agree to four digits.
    """
    first_layer_of_frames = Layers(numbers=(1,), frames=True)
    store = extract_layers(
        folder_of_twelve_videos, tmp_path / "s", clip_weights, layers=first_layer_of_frames, per_second=8
    )
    group = store["clip.1"]
    assert group.arrays == ("frames",)
    assert group.ragged  # each clip has a number of frames of its own
    assert np.array_equal(group.row_size, store["clip"].row_size)

    first_layer = Layers(numbers=(1,))
    backbone = load_backbone("clip", n_frames=1, weights=clip_weights, layers=first_layer, compute=cpu())
    vectors_of_each_alone = []
    for frame in read_frames(folder_of_twelve_videos / "3.mp4", fps(rate=8)).images:
        batch_of_one = backbone.prepare(frame)[np.newaxis, np.newaxis]
        vectors_of_each_alone.append(backbone.encode(batch_of_one)["1/pooled"][0])
    vectors_of_store = group.read("c03", "frames")
    np.testing.assert_allclose(vectors_of_store, np.stack(vectors_of_each_alone), rtol=1e-4, atol=1e-5)


def test_a_layer_without_frames_is_refused_where_frames_are_extracted_at_a_rate(
    folder_of_twelve_videos, clip_weights, tmp_path
):
    """A layer without frames has one vector a clip, and at a rate there are only vectors of frames."""
    with pytest.raises(ExtractError):
        extract_layers(
            folder_of_twelve_videos, tmp_path / "t", clip_weights, layers=Layers(frames=False), per_second=8
        )


@pytest.mark.long
def test_clips_without_sound_have_no_features_in_any_layer_of_a_network_of_sound(
    folder_of_twelve_videos, tmp_path
):
    """The videos are silent. Their pictures have descriptors, so that their clips do not fail."""
    from tests.tiny_checkpoints import tiny_sound_checkpoint

    weights = str(tiny_sound_checkpoint("hubert", tmp_path / "hubert"))
    options = {"weights": weights, "compute": cpu(), "layers": Layers((1,))}
    backbones = ["descriptors", Recipe("waveform", options=options)]

    store = of.extract(folder_of_twelve_videos / "films.csv", tmp_path / "s", backbones, n_frames=2, **QUIET)

    assert store.names == ("descriptors", "waveform", "waveform.1")
    assert not store["waveform.1"].usable.any()
    assert of.verify(store, "full").ok


@pytest.mark.long
def test_clips_like_another_are_searched_in_the_layer_that_is_named(store_of_both_layers):
    """Without a name, the output of the network is searched."""
    usual_search = of.search_like(store_of_both_layers, "c03")
    search_in_second_layer = of.search_like(store_of_both_layers, "c03", backbone="clip.2")

    assert usual_search.backbone == "clip"
    assert search_in_second_layer.backbone == "clip.2"


@pytest.mark.long
def test_clips_like_a_file_are_searched_in_the_layer_that_is_named(
    folder_of_twelve_videos, store_of_both_layers, clip_weights, tmp_path, obygaze
):
    """The file 3.mp4 is that of clip c03, which is found first, with the cosine 1."""
    words = [
        "search",
        store_of_both_layers.path,
        "--like",
        folder_of_twelve_videos / "3.mp4",
        "--backbone",
        "clip.2",
        "--json",
    ]

    result = obygaze(tmp_path, *words, "--weights", clip_weights)

    assert result.returncode == 0, result.stderr
    first_hit = json.loads(result.stdout)["hits"][0]
    assert first_hit["clip_id"] == "c03"
    assert math.isclose(first_hit["score"], 1, abs_tol=1e-5)


@pytest.fixture(scope="module")
def model_of_second_layer(folder_of_twelve_videos, store_of_both_layers, tmp_path_factory):
    """A linear model, trained on the store's layer clip.2, saved and loaded."""
    data = om.load_dataset(
        store_of_both_layers, of.read_manifest(folder_of_twelve_videos / "films.csv"), backbone="clip.2"
    )
    run = om.evaluate(data, ["linear"], "en_s")
    (path,) = om.save_models(run, data, ["linear"], tmp_path_factory.mktemp("models") / "kept").values()
    return om.load_model(path)


@pytest.mark.long
def test_a_model_of_a_layer_names_it_and_predicts_the_clips_of_a_store_that_has_it(
    store_of_both_layers, model_of_second_layer
):
    """The store has 12 clips with features, and one that failed; clip.2 is the network's second layer."""
    predictions = om.predict(model_of_second_layer, [store_of_both_layers]).table

    assert model_of_second_layer.card.backbone == "clip.2"
    assert model_of_second_layer.card.provenance["layer"] == "2"
    assert len(predictions) == 12


@pytest.mark.long
def test_a_film_is_extracted_with_the_layer_that_its_model_reads(model_of_second_layer, clip_weights):
    """For a model of clip.2, `obygaze film` extracts with the option --layers clip=2."""
    cards = {"kept": model_of_second_layer.card}

    options = [str(word) for word in _feature_options(cards, [f"clip={clip_weights}"])]

    value_of_layers = options[options.index("--layers") + 1]
    assert value_of_layers == "clip=2"
