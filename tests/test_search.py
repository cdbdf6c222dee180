"""Search ranks a planted space as it was planted, from a folder or a URL, and only within one space."""

import json
from pathlib import Path

import numpy as np
import pytest

from obygaze_features import Clip, Manifest, extract, read_manifest, search, search_like, write_manifest
from obygaze_features.backbones import load_text_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import ObygazeError, SearchError
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze
from tests.lazy_import import lazy_import
from tests.process import python
from tests.tiny_checkpoints import tiny_text_checkpoint

from .store.serving import serving
from .store.toy_stores import GROUP_MAKERS, make_sealed_store

AutoConfig = lazy_import("transformers", "AutoConfig")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")

CLIPS = ("c0", "c1", "c2", "c3", "c4", "c5")
ANGLES = {"c4": 0.3, "c0": 0.7, "c3": 1.1, "c1": 1.5, "c2": 1.9, "c5": 2.3}
"""Clip -> the angle between its planted vector and that of "a man"; c5 has failed all the same."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """The folder of a tiny X-CLIP, as a text."""
    return str(tiny_text_checkpoint("xclip", tmp_path_factory.mktemp("weights") / "xclip"))


@pytest.fixture(scope="module")
def query_vector(weights):
    """The vector of "a man"."""
    backbone = load_text_backbone("xclip-text", weights=weights, compute=Compute("cpu"))
    (tokens,) = backbone.tokenize(["a man"])
    return backbone.encode(np.array([tokens.ids]))[0].astype(np.float64)


def plant(query_vector):
    """Make vectors of the clips c0 to c5 at the planted angles to a query, of different lengths."""
    rng = np.random.default_rng(0)
    along = query_vector / np.linalg.norm(query_vector)
    vector_of = {}
    for clip, angle in ANGLES.items():
        across = rng.normal(size=len(query_vector))
        across -= (across @ along) * along
        direction = np.cos(angle) * along + np.sin(angle) * across / np.linalg.norm(across)
        vector_of[clip] = rng.uniform(0.5, 20) * direction
    return np.array([vector_of[clip] for clip in CLIPS], np.float32)


@pytest.fixture(scope="module")
def folder_of_stores(tmp_path_factory, weights, query_vector):
    """A folder of stores.

    `films` holds the planted X-CLIP vectors, beside a group `toy`; `texts` the texts "a dog" (t1) and "a man"
    (t2) in their space, the first with the vector of the second times -1; `texts-of-another-space` the same
    in another space.
    """
    folder = tmp_path_factory.mktemp("stores")
    sha256 = find_weights(Path(weights)).sha256
    seal_arrays(
        folder / "films",
        {"c0": "film0", "c1": "film0", "c2": "film0", "c3": "film1", "c4": "film1", "c5": "film1"},
        {"xclip": {"pooled": plant(query_vector)}, "toy": {"pooled": np.ones((6, 3), np.float32)}},
        failed={"c5": "the file is empty"},
        spans={clip: (4.0 * index, 4.0 * index + 4) for index, clip in enumerate(CLIPS[:5])},
        weights_sha256=sha256,
    )
    texts = {"t1": "a dog", "t2": "a man"}
    arrays = {"xclip-text": {"pooled": np.stack([-query_vector, query_vector]).astype(np.float32)}}
    movie_of = {"t1": "", "t2": ""}
    seal_arrays(folder / "texts", movie_of, arrays, texts=texts, space=f"xclip sha256:{sha256}")
    seal_arrays(folder / "texts-of-another-space", movie_of, arrays, texts=texts, space="xclip sha256:0")
    return folder


@pytest.fixture(scope="module")
def ranking_by_a_man(folder_of_stores, weights):
    """The films' clips, ranked by "a man"."""
    return search(folder_of_stores / "films", "a man", weights=weights, device="cpu")


@pytest.mark.long
def test_a_planted_space_is_ranked_as_it_was_planted(ranking_by_a_man):
    """The clips' vectors were planted at these angles to the vector of "a man"; a score is the cosine."""
    angles = {"c4": 0.3, "c0": 0.7, "c3": 1.1, "c1": 1.5, "c2": 1.9}

    assert [hit.clip_id for hit in ranking_by_a_man] == list(angles)
    cosines = np.cos(list(angles.values()))
    np.testing.assert_allclose([hit.score for hit in ranking_by_a_man], cosines, atol=1e-6)


def test_a_ranking_counts_clips_and_its_hits_have_rank_film_and_times(ranking_by_a_man):
    """Clips c0 to c5 last 4 s each, one after the other. c4, of film1, is the nearest; c5 has failed."""
    first = ranking_by_a_man.hits[0]

    assert (first.rank, first.movie) == (1, "film1")
    assert (first.start_s, first.end_s) == (16.0, 20.0)
    assert ranking_by_a_man.backbone == "xclip"
    assert (ranking_by_a_man.n_clips, ranking_by_a_man.n_without) == (5, 1)


def test_a_ranking_is_a_table_in_pandas_and_in_a_notebook(ranking_by_a_man):
    """The clips were planted in this order, from the nearest to the query to the farthest."""
    assert ranking_by_a_man.to_frame()["clip_id"].tolist() == ["c4", "c0", "c3", "c1", "c2"]

    assert "c4" in ranking_by_a_man._repr_html_()


def test_the_two_nearest_clips_may_be_asked_for(folder_of_stores, weights):
    """Of the store, c4 and c0 were planted nearest to "a man"."""
    ranking = search(folder_of_stores / "films", "a man", weights=weights, device="cpu", top=2)

    assert [hit.clip_id for hit in ranking] == ["c4", "c0"]


@pytest.mark.parametrize("query", ["a man", "t2"], ids=["the text", "its id"])
def test_a_store_of_texts_gives_the_same_ranking_without_a_network(folder_of_stores, ranking_by_a_man, query):
    """The store `texts` has the vector of "a man", with the id t2; the ranking was made by the network."""
    assert (
        search(folder_of_stores / "films", query, text_store=folder_of_stores / "texts") == ranking_by_a_man
    )


def test_a_text_of_the_opposite_vector_ranks_in_the_opposite_order(folder_of_stores):
    """In the store of texts "a dog" has the vector of "a man" times -1; by "a man" c4 is first, c2 last."""
    ranking = search(open_store(folder_of_stores / "films"), "a dog", text_store=folder_of_stores / "texts")

    assert [hit.clip_id for hit in ranking] == ["c2", "c1", "c3", "c0", "c4"]


def test_stores_at_a_url_give_the_same_ranking(folder_of_stores):
    """The folder has a store of films and one of texts, among them "a man"; a server offers it by HTTP."""
    pytest.importorskip("obstore")
    ranking_by_paths = search(folder_of_stores / "films", "a man", text_store=folder_of_stores / "texts")

    with serving(folder_of_stores) as server:
        films_url = f"{server.url}/films-1.0.0"
        texts_url = f"{server.url}/texts-1.0.0"
        ranking_by_urls = search(films_url, "a man", text_store=texts_url)

    assert ranking_by_urls == ranking_by_paths


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("a man", {"text_store": "texts-of-another-space"}, None),
        ("a cat", {"text_store": "texts"}, "group xclip-text"),
        ("a man", {"text_store": "films"}, None),
        ("a man", {}, "--weights"),
        ("a man", {"backbone": "toy"}, "group toy"),
        (" ", {}, None),
    ],
    ids=[
        "texts of another space",
        "a text that is not in the store",
        "a store without texts",
        "no weights",
        "a backbone without texts",
        "an empty query",
    ],
)
def test_a_query_that_cannot_be_compared_is_refused_in_one_line(
    folder_of_stores, query, options, message, monkeypatch
):
    """The store `films` has clips in the space of an X-CLIP, with which texts of this space can be compared.

    `texts` has texts of it, `texts-of-another-space` of another one. What the user asks for cannot be
    compared, as the case's name says. Where a single thing is at fault the message must have its name
    (`message`); the others must be refused with any one line (None).
    """
    monkeypatch.chdir(folder_of_stores)

    with pytest.raises(SearchError, match=message) as refusal:
        search("films", query, **options)

    assert "\n" not in str(refusal.value)


def test_a_network_with_other_weights_than_the_store_is_refused(folder_of_stores, tmp_path):
    """The features were made with weights of seed 0; vectors of a text by others mean something else."""
    other_weights = tiny_text_checkpoint("xclip", tmp_path / "other", seed=1)

    with pytest.raises(SearchError):
        search(folder_of_stores / "films", "a man", weights=str(other_weights), device="cpu")


@pytest.mark.long
def test_search_is_a_function_also_after_the_module_of_this_name_was_imported():
    """Importing `commands.search` must not put a module in the place of the function `search`."""
    code = "import obygaze_features.commands.search, obygaze_features as of; assert callable(of.search)"
    python("-c", code)


@pytest.fixture
def untrained_store(tmp_path, monkeypatch):
    """A store of six clips by a tiny CLIP of random weights of seed 7."""
    body = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = body | {"vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98, "pad_token_id": 0}
    tiny = {"text_config": text, "vision_config": body, "projection_dim": 24}
    for_model = AutoConfig.for_model
    monkeypatch.setattr(AutoConfig, "for_model", lambda kind: for_model(kind, **tiny))
    return seal_arrays(
        tmp_path / "films",
        dict.fromkeys(CLIPS, "film0"),
        {"image": {"pooled": np.random.default_rng(0).normal(size=(6, 24)).astype(np.float32)}},
        untrained=True,
        weights="random:7:clip",
        space="clip random:7",
    )


def test_a_store_of_random_weights_is_searched_with_the_same_ones(untrained_store):
    """The store has six clips by a network of random weights, which the seed gives: no file is needed."""
    ranking = search(untrained_store, "a man")

    assert len(ranking.hits) == 6
    assert "untrained" in ranking.notes[0]

    ranking_again = search(untrained_store, "a man")
    assert ranking_again.hits == ranking.hits


def test_random_weights_of_another_seed_than_the_stores_are_refused(untrained_store):
    """The features of the store are by random weights of seed 7."""
    with pytest.raises(SearchError, match="random:8"):
        search(untrained_store, "a man", weights="random:8:clip")


# --- like a clip
# ---------------------------------------------------------------------------
@pytest.fixture
def path_of_twelve_clips(tmp_path):
    """Twelve clips c00 to c11, all far from 0; c03 and c07 are like c00, and c05 has failed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 6))
    X[3] = X[0] + 0.05 * rng.normal(size=6)
    X[7] = X[0] + 0.1 * rng.normal(size=6)
    movie_of = {f"c{row:02}": f"m{row % 3}" for row in range(12)}
    spans = {clip: (float(row), row + 4.0) for row, clip in enumerate(movie_of)}
    groups = {"toy": {"pooled": (X + 100).astype(np.float32)}}
    return seal_arrays(tmp_path / "films", movie_of, groups, spans=spans, failed={"c05": "no picture"})


def test_clips_are_alike_by_how_they_differ_from_the_mean_of_all(path_of_twelve_clips):
    """Of the clips c00 to c11, c03 and c07 were made like c00, the others at random.

    All are far from 0 in the same direction: their plain cosines would all be near 1, also the third's.
    """
    first, second, third = search_like(path_of_twelve_clips, "c00", top=3).hits

    assert (first.clip_id, second.clip_id) == ("c03", "c07")
    assert first.score > 0.95
    assert third.score < 0.75


def test_all_clips_are_ranked_but_the_one_asked_for_and_those_that_have_failed(path_of_twelve_clips):
    """Of the clips c00 to c11, c05 has failed."""
    ranking = search_like(path_of_twelve_clips, "c00", top=20)

    ranked = {hit.clip_id for hit in ranking}
    assert ranked == {"c01", "c02", "c03", "c04", "c06", "c07", "c08", "c09", "c10", "c11"}
    assert (ranking.n_clips, ranking.n_without) == (10, 1)


@pytest.mark.parametrize(
    ("failed", "remark"),
    [
        ((), "6 clips ranked by toy"),
        (("c2",), "5 clips ranked by toy; 1 more has no features"),
        (("c2", "c4"), "4 clips ranked by toy; 2 more have no features"),
    ],
    ids=["none", "one", "two"],
)
def test_a_search_says_how_many_clips_have_no_features(tmp_path, capsys, failed, remark):
    """Seven clips c0 to c6: c0 is asked for, so that at most six are ranked, less those that have failed."""
    X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    movie_of = {f"c{row}": "m" for row in range(7)}
    reasons = dict.fromkeys(failed, "no picture")
    store = seal_arrays(tmp_path / "films", movie_of, {"toy": {"pooled": X}}, failed=reasons)

    assert obygaze("search", store, "--like", "c0") == 0

    assert remark in capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("kind", GROUP_MAKERS)
def test_clips_are_ranked_by_pooled_vectors_whatever_frames_stand_beside_them(tmp_path, kind):
    """A score is the cosine of standardised pooled vectors; `kind` says how many frames a clip has.

    It is the same number in all clips (fixed), or any number (ragged). 17 clips of the store have features.
    """
    store = open_store(
        make_sealed_store(tmp_path / kind, groups=[GROUP_MAKERS[kind](arrays=["pooled", "frames"])])
    )
    group = store["toy"]
    first_clip = group.clip_ids[0]

    ranking = search_like(store, first_clip, top=20)

    vectors = group.pooled()[group.usable].astype(np.float64)
    standardised = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
    lengths = np.linalg.norm(standardised, axis=1)
    cosines_with_first = standardised @ standardised[0] / lengths / lengths[0]
    of_other_clips = cosines_with_first[1:]
    from_highest = sorted(of_other_clips, reverse=True)
    assert len(vectors) == 17
    assert ranking.n_clips == 17 - 1
    np.testing.assert_allclose([hit.score for hit in ranking], from_highest, atol=1e-5)


@pytest.fixture
def store_of_frames(tmp_path):
    """A store that holds frames alone."""
    return make_sealed_store(tmp_path, groups=[GROUP_MAKERS["ragged"](arrays=["frames"])])


def test_frames_alone_are_not_searched_by_a_text(store_of_frames):
    """The store has the frames of each clip, and no vector of the whole clip."""
    with pytest.raises(SearchError, match="pooled vectors"):
        search(store_of_frames, "a man")


def test_frames_alone_are_not_searched_by_a_clip(store_of_frames):
    """The store has the frames of each clip, and no vector of the whole clip."""
    clip_of_the_store = "tt0000-é"
    with pytest.raises(SearchError, match="pooled vectors"):
        search_like(store_of_frames, clip_of_the_store)


@pytest.mark.parametrize("clip", ["c99", "c05"], ids=["an unknown clip", "a clip that has failed"])
def test_a_clip_without_features_is_refused(path_of_twelve_clips, clip):
    """The store has the clips c00 to c11, of which c05 has failed."""
    with pytest.raises(ObygazeError):
        search_like(path_of_twelve_clips, clip)


@pytest.mark.parametrize(
    ("group", "n_frames"), [("toy", 4), ("else", 16)], ids=["other frames", "another backbone"]
)
def test_a_clip_of_a_store_that_was_extracted_in_another_way_is_refused(
    path_of_twelve_clips, tmp_path, group, n_frames
):
    """The store that is searched has features of the backbone `toy` from 16 frames a clip."""
    features = np.ones((1, 6), np.float32)
    other = seal_arrays(tmp_path / "other", {"x": "m"}, {group: {"pooled": features}}, n_frames=n_frames)

    with pytest.raises(ObygazeError):
        search_like(path_of_twelve_clips, "x", other=other)


@pytest.mark.parametrize("options", [{"backbone": "else"}, {"top": 0}], ids=["unknown backbone", "no hits"])
def test_options_that_give_no_ranking_are_refused(path_of_twelve_clips, options):
    """The store has features of the backbone `toy` alone; `top` is how many hits are wanted."""
    with pytest.raises(SearchError):
        search_like(path_of_twelve_clips, "c00", **options)


VIDEOS = {
    "arm_\u00e9": "arm_wrestling.mp4",
    "flip\u00e9": "flipping_a_pancake.mkv",
    "test\u00e9": "test.avi",
}
"""Clip -> its video."""


@pytest.fixture(scope="module")
def extracted(shared_data, tmp_path_factory):
    """A folder with films.csv, of three real videos, and a store of their descriptors, films-1.0.0.

    The clip of flipping_a_pancake.mkv is called "flip\u00e9", with an accent in one character.
    """
    folder = tmp_path_factory.mktemp("extracted")
    clips = [Clip(name, name[:4], str(shared_data / "videos" / video)) for name, video in VIDEOS.items()]
    manifest = Manifest(tuple(clips), folder)
    write_manifest(manifest, folder / "films.csv")
    extract(manifest, folder / "films", ["descriptors"], n_frames=4, workers=1, licence="CC0-1.0")
    return folder


@pytest.mark.long
def test_the_video_file_of_a_clip_finds_this_clip_with_the_score_1(extracted, shared_data, capsys):
    """The features of the file are extracted as those of the store were: they must be the same."""
    video = shared_data / "videos" / "flipping_a_pancake.mkv"

    assert obygaze("search", extracted / "films-1.0.0", "--like", video, "--json") == 0

    first = json.loads(capsys.readouterr().out)["hits"][0]
    assert first["clip_id"] == "flip\u00e9"
    assert first["score"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.long
def test_a_video_is_compared_with_features_of_kept_frames(extracted, shared_data, tmp_path, capsys):
    """With `keep_frames` the features are of JPEGs, which are not exactly the frames of the video.

    The frames of the file that is searched with are made JPEGs too: so it equals its clip in the store.
    """
    manifest = read_manifest(extracted / "films.csv")
    extract(
        manifest,
        tmp_path / "films",
        ["descriptors"],
        n_frames=4,
        keep_frames=tmp_path / "frames",
        workers=1,
        licence="CC0-1.0",
    )
    video = shared_data / "videos" / "flipping_a_pancake.mkv"

    assert obygaze("search", tmp_path / "films-1.0.0", "--like", video, "--json") == 0
    first = json.loads(capsys.readouterr().out)["hits"][0]
    assert first["clip_id"] == "flip\u00e9"
    assert first["score"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.long
def test_hits_are_drawn_on_a_sheet(extracted, tmp_path, capsys):
    """The store has three clips: the one that is asked for and two others, which are drawn."""
    options = ("--manifest", extracted / "films.csv", "--sheet", tmp_path / "hits")

    assert obygaze("search", extracted / "films-1.0.0", "--like", "flip\u00e9", *options) == 0

    assert "2 of 2 clips drawn" in capsys.readouterr().err
    assert (tmp_path / "hits" / "found.png").is_file()


def test_a_clip_is_found_by_its_name_however_its_accent_is_written(extracted):
    """The clip is called "flip\u00e9"; macOS writes the same name as an e and an accent of its own."""
    name_with_accent_apart = "flipe\u0301"
    assert obygaze("search", extracted / "films-1.0.0", "--like", name_with_accent_apart) == 0


@pytest.mark.long
def test_a_file_that_is_no_video_is_refused_by_its_path(extracted, capsys):
    """Clips like a table of clips are asked for; --like takes a clip of the store or a video."""
    table = extracted / "films.csv"

    assert obygaze("search", extracted / "films-1.0.0", "--like", table) == 1
    assert f"error: {table}: " in capsys.readouterr().err
