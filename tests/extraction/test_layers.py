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
from tests.later import cpu
from tests.store.serving import serving
from tests.tiny_checkpoints import tiny_checkpoint

QUIET = {"licence": "CC0-1.0", "note": lambda _: None, "workers": 1}
LEVELS = ("EN", "S")


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Twelve videos of four films, and a file that is none; every other one is labelled S and is darker."""
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    clips = []
    for number in range(12):
        brightest = 100 if number % 2 else 255
        write_video(folder / f"{number}.mp4", rng.integers(0, brightest, (6, 48, 64, 3), np.uint8), 24)
        movie = f"tt{number // 3}"
        clips.append(of.Clip(f"c{number:02d}", movie, f"{number}.mp4", level=LEVELS[number % 2]))
    (folder / "none.mp4").write_bytes(b"no video")
    clips.append(of.Clip("none", "tt0", "none.mp4", level="S"))
    of.write_manifest(of.Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return str(tiny_checkpoint("clip", tmp_path_factory.mktemp("weights") / "clip"))


def extracted(films, out, weights, manifest="films.csv", layers=None, **options):
    """Extract with a tiny CLIP, whose network has two layers, and keep those that are asked for."""
    settings = {"weights": weights, "compute": cpu()}
    if layers is not None:
        settings["layers"] = layers
    recipe = Recipe("clip", options=settings)
    if "per_second" not in options:
        options["n_frames"] = 2
    return of.extract(films / manifest, out, [recipe], **QUIET, **options)


BOTH_LAYERS = Layers()


@pytest.fixture(scope="module")
def store(films, weights, tmp_path_factory):
    """The store of a network's output and of both of its layers."""
    return extracted(films, tmp_path_factory.mktemp("stores") / "films", weights, layers=BOTH_LAYERS)


@pytest.fixture(scope="module")
def store_without_layers(films, weights, tmp_path_factory):
    """The store of the network's output alone."""
    return extracted(films, tmp_path_factory.mktemp("plain") / "films", weights)


@pytest.mark.long
def test_every_layer_is_a_group_of_the_store_with_the_vectors_of_the_pass_that_gives_the_output(
    films, weights, store
):
    """The tiny network has two layers, whose groups are named after it.

    The network is run here on one clip, and its second layer must be the row of the store.
    """
    assert store.names == ("clip", "clip.1", "clip.2")
    assert store.backbones == ("clip",)
    assert store["clip.1"].arrays == ("pooled",)
    assert of.verify(store, "full").ok

    backbone = load_backbone("clip", 2, weights=weights, layers=Layers((2,)), compute=cpu())
    frames = read_frames(films / "3.mp4", uniform(2)).images
    batch = np.stack([backbone.prepare(frame) for frame in frames])[None]
    assert np.array_equal(store["clip.2"].read("c03", "pooled"), backbone.encode(batch)["2/pooled"][0])

    status = {row.clip_id: row.status for row in store.clips}
    assert status["none"] == "failed"
    assert not store["clip.1"].usable[store["clip.1"].clip_ids.index("none")]


@pytest.mark.long
def test_the_output_of_a_network_is_stored_the_same_with_and_without_layers(store, store_without_layers):
    assert store_without_layers.names == ("clip",)
    for array in ("pooled", "frames", "time_s"):
        assert store_without_layers["clip"].digests(array) == store["clip"].digests(array)
    assert store_without_layers["clip"].provenance == store["clip"].provenance
    assert store_without_layers.attributes["spec_version"] == store.attributes["spec_version"] == "1.0"

    assert diff(store, store_without_layers).groups_first == ("clip.1", "clip.2")


@pytest.mark.long
def test_the_record_of_a_layer_names_it_and_its_network_and_no_space_of_texts(store):
    record = store["clip.2"].provenance
    assert record["layer"] == "2"
    assert record["norm"] is None
    assert record["beside"] == "clip"
    assert "space" not in record  # only the output of CLIP lies in one space with texts


@pytest.fixture
def run_layers(films, weights, tmp_path, obygaze):
    """Run the command `extract` with a network, or another backbone, and some more options."""

    def run(*options, network=True):
        words = ["extract", films / "films.csv", tmp_path / "s", "--licence", "CC0-1.0", "--workers", 1]
        if network:
            words += ["--backbone", "clip", "--weights", weights, "--n", 2]
        return obygaze(tmp_path, *words, *options)

    return run


@pytest.mark.long
def test_the_command_extracts_a_normalised_layer_with_its_frames(run_layers, tmp_path):
    result = run_layers("--layers", "2", "--layer-norm", "--layer-frames")
    assert result.returncode == 3, result.stderr  # one file is no video

    store = of.open_store(tmp_path / "s")
    assert store.names == ("clip", "clip.2")
    assert store["clip.2"].arrays == ("pooled", "frames")
    assert store["clip.2"].provenance["norm"] == "vision_model.post_layernorm"


def test_layers_of_a_backbone_without_layers_and_a_norm_without_layers_are_usage_errors(run_layers):
    """Descriptors are no network, and have no layers."""
    assert run_layers("--layers", "2", network=False).returncode == 2
    assert run_layers("--layer-norm").returncode == 2


@pytest.mark.parametrize("layer", ["3", "0", "first"])
def test_a_layer_that_a_network_has_not_is_refused_without_a_traceback(run_layers, layer):
    """The network has the layers 1 and 2."""
    result = run_layers("--layers", layer)
    assert result.returncode in {1, 2}
    assert "Traceback" not in result.stderr


@pytest.mark.long
def test_a_store_with_layers_grows(films, weights, store, tmp_path):
    """Five clips are extracted first, and the others are added; the result is that of all at once."""
    clips = of.read_manifest(films / "films.csv").clips
    of.write_manifest(of.Manifest(clips[:5], films), films / "some.csv")
    some = extracted(films, tmp_path / "films", weights, "some.csv", layers=BOTH_LAYERS)
    grown = extracted(
        films, tmp_path / "films", weights, layers=BOTH_LAYERS, append=some.path, version="1.1.0"
    )

    for group in store.names:
        assert grown[group].digests("pooled") == store[group].digests("pooled")

    compared = diff(store, grown)
    assert not any(array.changed for array in compared.arrays)
    assert not any(compared.numerics.values())


@pytest.mark.long
def test_a_layer_is_read_from_a_zip_and_from_a_server(store, tmp_path):
    pack(store.path, tmp_path / "films.zip")
    with serving(tmp_path) as server:
        for place in (tmp_path / "films.zip", f"{server.url}/films.zip"):
            pooled = of.open_store(place)["clip.1"].pooled()
            assert np.array_equal(pooled, store["clip.1"].pooled(), equal_nan=True)


@pytest.mark.long
def test_stores_with_and_without_layers_are_not_merged_and_the_layers_are_named(
    store, store_without_layers, tmp_path
):
    with pytest.raises(of.ObygazeError) as refused:
        merge([store.path, store_without_layers.path], tmp_path / "merged", version="1.1.0")
    paths = re.compile(r"\S*/\S+")
    assert "clip.1" in paths.sub("", str(refused.value))


@pytest.mark.long
def test_a_layer_has_the_vectors_of_frames_extracted_at_a_rate(films, weights, tmp_path):
    """Eight frames a second, each encoded here alone, give the rows of the layer."""
    layer_1 = Layers((1,), frames=True)
    store = extracted(films, tmp_path / "s", weights, layers=layer_1, per_second=8)
    group = store["clip.1"]
    assert group.arrays == ("frames",)
    assert group.ragged  # each clip has a number of frames of its own
    assert np.array_equal(group.row_size, store["clip"].row_size)

    backbone = load_backbone("clip", 1, weights=weights, layers=Layers((1,)), compute=cpu())
    frames = read_frames(films / "3.mp4", fps(8)).images
    batches_of_one = [backbone.prepare(frame)[np.newaxis, np.newaxis] for frame in frames]
    vectors = np.stack([backbone.encode(batch)["1/pooled"][0] for batch in batches_of_one])

    np.testing.assert_allclose(group.read("c03", "frames"), vectors, rtol=1e-4, atol=1e-5)


def test_a_layer_without_frames_is_refused_where_frames_are_extracted_at_a_rate(films, weights, tmp_path):
    """A layer without frames has one vector a clip, and at a rate there are only vectors of frames."""
    with pytest.raises(ExtractError):
        extracted(films, tmp_path / "t", weights, layers=Layers(frames=False), per_second=8)


@pytest.mark.long
def test_clips_without_sound_have_no_features_in_any_layer_of_a_network_of_sound(films, tmp_path):
    """The videos are silent; for `descriptors` they have features."""
    from tests.tiny_checkpoints import tiny_sound_checkpoint

    folder = tiny_sound_checkpoint("hubert", tmp_path / "hubert")
    of_sound = Recipe("waveform", options={"weights": str(folder), "compute": cpu(), "layers": Layers((1,))})
    store = of.extract(films / "films.csv", tmp_path / "s", ["descriptors", of_sound], n_frames=2, **QUIET)

    assert store.names == ("descriptors", "waveform", "waveform.1")
    assert not store["waveform.1"].usable.any()
    assert of.verify(store, "full").ok


@pytest.mark.long
def test_clips_like_another_are_searched_in_the_layer_that_is_named(store):
    """Without a name, the output of the network is searched."""
    assert of.search_like(store, "c03").backbone == "clip"
    assert of.search_like(store, "c03", backbone="clip.2").backbone == "clip.2"


@pytest.mark.long
def test_clips_like_a_file_are_searched_in_the_layer_that_is_named(films, store, weights, tmp_path, obygaze):
    words = ["search", store.path, "--like", films / "3.mp4", "--backbone", "clip.2", "--json"]
    result = obygaze(tmp_path, *words, "--weights", weights)
    assert result.returncode == 0, result.stderr
    first = json.loads(result.stdout)["hits"][0]
    assert first["clip_id"] == "c03"  # the clip of that file
    assert math.isclose(first["score"], 1, abs_tol=1e-5)


@pytest.mark.long
def test_a_model_of_a_layer_names_it_and_predicts_the_clips_of_a_store_that_has_it(
    films, store, weights, tmp_path
):
    data = om.load_dataset(store, of.read_manifest(films / "films.csv"), backbone="clip.2")
    run = om.evaluate(data, ["linear"], "en_s")
    (path,) = om.save_models(run, data, ["linear"], tmp_path / "kept").values()

    model = om.load_model(path)
    assert model.card.backbone == "clip.2"
    assert model.card.provenance["layer"] == "2"
    n_decoded = sum(clip.status != "failed" for clip in store.clips)
    assert len(om.predict(model, [store]).table) == n_decoded

    words_for_a_film = _feature_options({"kept": model.card}, [f"clip={weights}"])
    words = [str(word) for word in words_for_a_film]
    assert words[words.index("--layers") + 1] == "clip=2"
