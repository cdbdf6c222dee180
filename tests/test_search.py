"""Search ranks a planted space as it was planted, from a folder or a URL, and only within one space."""

import json

import numpy as np
import pytest

from obygaze_features import Clip, Manifest, extract, search, search_like, write_manifest
from obygaze_features.backbones import load_text_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import ObygazeError, SearchError
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze
from tests.later import later
from tests.process import python
from tests.tiny_checkpoints import tiny_text_checkpoint

from .store.serving import serving
from .store.toy_stores import KINDS, sealed

AutoConfig = later("transformers", "AutoConfig")
Compute = later("obygaze_features.backbones.compute", "Compute")

QUERY = "a man"
CLIPS = [f"c{index}" for index in range(6)]
PLANTED = ("c4", "c0", "c3", "c1", "c2")
"""From the nearest to the farthest; c5 has failed."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_text_checkpoint("xclip", tmp_path_factory.mktemp("weights") / "xclip")


@pytest.fixture(scope="module")
def vector(weights):
    backbone = load_text_backbone("xclip-text", weights=str(weights), compute=Compute("cpu"))
    (tokens,) = backbone.tokenize([QUERY])
    return backbone.encode(np.array([tokens.ids]))[0].astype(np.float64)


def plant(vector):
    """Clips at rising angles from a vector, of different lengths; the nearest first in PLANTED."""
    rng = np.random.default_rng(0)
    along = vector / np.linalg.norm(vector)
    rows = {}
    for index, name in enumerate((*PLANTED, "c5")):
        across = rng.normal(size=len(vector))
        across -= (across @ along) * along
        angle = 0.3 + 0.4 * index
        direction = np.cos(angle) * along + np.sin(angle) * across / np.linalg.norm(across)
        rows[name] = rng.uniform(0.5, 20) * direction
    return np.array([rows[name] for name in CLIPS], np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, weights, vector):
    """A store of X-CLIP vectors, one more group beside it, and a store of texts in their space."""
    folder = tmp_path_factory.mktemp("stores")
    seal_arrays(
        folder / "films",
        dict.fromkeys(CLIPS[:3], "film0") | dict.fromkeys(CLIPS[3:], "film1"),
        {"xclip": {"pooled": plant(vector)}, "toy": {"pooled": np.ones((6, 3), np.float32)}},
        failed={"c5": "the file is empty"},
        spans={name: (4.0 * index, 4.0 * index + 4) for index, name in enumerate(CLIPS[:5])},
        weights_sha256=find_weights(weights).sha256,
    )
    texts = {"t1": "a dog", "t2": QUERY}
    rows = np.stack([-vector, vector]).astype(np.float32)
    space = f"xclip sha256:{find_weights(weights).sha256}"
    for name, changes in (("texts", {"space": space}), ("others", {"space": "xclip sha256:0"})):
        seal_arrays(
            folder / name, dict.fromkeys(texts, ""), {"xclip-text": {"pooled": rows}}, texts=texts, **changes
        )
    return folder


def test_a_planted_space_is_ranked_as_it_was_planted(folder, weights):
    ranking = search(folder / "films", QUERY, weights=str(weights), device="cpu")
    assert tuple(hit.clip_id for hit in ranking) == PLANTED
    np.testing.assert_allclose([hit.score for hit in ranking], np.cos(0.3 + 0.4 * np.arange(5)), atol=1e-6)
    first = ranking.hits[0]
    assert (first.rank, first.movie, first.start_s, first.end_s) == (1, "film1", 16.0, 20.0)
    assert (ranking.backbone, ranking.n_clips, ranking.n_without) == ("xclip", 5, 1)
    assert ranking.to_frame()["clip_id"].tolist() == list(PLANTED)
    assert "c4" in ranking._repr_html_()
    assert len(search(folder / "films", QUERY, weights=str(weights), device="cpu", top=2)) == 2


def test_a_store_of_texts_gives_the_same_without_a_network(folder, weights):
    encoded = search(folder / "films", QUERY, weights=str(weights), device="cpu")
    for query in (QUERY, "t2"):
        stored = search(folder / "films", query, text_store=folder / "texts")
        assert stored == encoded
    turned = search(open_store(folder / "films"), "a dog", text_store=folder / "texts")
    assert tuple(hit.clip_id for hit in turned) == PLANTED[::-1]


def test_a_url_gives_the_same_and_reads_the_pooled_vectors_alone(folder):
    pytest.importorskip("obstore")
    here = search(folder / "films", QUERY, text_store=folder / "texts")
    with serving(folder) as site:
        there = search(f"{site.url}/films-1.0.0", QUERY, text_store=f"{site.url}/texts-1.0.0")
    assert there == here


@pytest.mark.parametrize(
    ("query", "how", "words"),
    [
        (QUERY, {"text_store": "others"}, None),
        ("a cat", {"text_store": "texts"}, "group xclip-text"),
        (QUERY, {"text_store": "films"}, None),
        (QUERY, {}, "--weights"),
        (QUERY, {"backbone": "toy"}, "group toy"),
        (" ", {}, None),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(folder, query, how, words, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(SearchError, match=words) as refused:
        search("films", query, **how)
    assert "\n" not in str(refused.value)


def test_a_network_with_other_weights_than_the_store_is_refused(folder, tmp_path):
    other = tiny_text_checkpoint("xclip", tmp_path / "other", seed=1)
    with pytest.raises(SearchError):
        search(folder / "films", QUERY, weights=str(other), device="cpu")


def test_the_function_is_public_whatever_was_imported_first():
    code = "import obygaze_features.commands.search, obygaze_features as of; assert callable(of.search)"
    python("-c", code)


def test_a_store_of_random_weights_is_searched_offline_and_says_that_it_is(tmp_path, monkeypatch):
    body = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = body | {"vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98, "pad_token_id": 0}
    configs = {"text_config": text, "vision_config": body, "projection_dim": 24}
    for_model = AutoConfig.for_model
    monkeypatch.setattr(AutoConfig, "for_model", lambda kind: for_model(kind, **configs))
    vectors = np.random.default_rng(0).normal(size=(6, 24)).astype(np.float32)
    sealed = seal_arrays(
        tmp_path / "films",
        dict.fromkeys(CLIPS, "film0"),
        {"image": {"pooled": vectors}},
        untrained=True,
        weights="random:7:clip",
        space="clip random:7",
    )
    found = search(sealed, QUERY)
    assert len(found.hits) == 6
    assert "untrained" in found.notes[0]
    assert search(sealed, QUERY).hits == found.hits
    with pytest.raises(SearchError, match="random:8"):
        search(sealed, QUERY, weights="random:8:clip")


# --- like a clip
# ---------------------------------------------------------------------------
@pytest.fixture
def films(tmp_path):
    """Twelve clips: two like the first, the others anywhere, far from 0 all alike."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 6))
    X[3], X[7] = X[0] + 0.05 * rng.normal(size=6), X[0] + 0.1 * rng.normal(size=6)
    ids = {f"c{row:02}": f"m{row % 3}" for row in range(12)}
    spans = {name: (float(row), row + 4.0) for row, name in enumerate(ids)}
    groups = {"toy": {"pooled": (X + 100).astype(np.float32)}}
    return seal_arrays(tmp_path / "films", ids, groups, spans=spans, failed={"c05": "no picture"})


def test_clips_like_one_are_ranked_by_what_they_do_not_share_with_all(films):
    found = search_like(films, "c00", top=20)
    assert [hit.clip_id for hit in found][:2] == ["c03", "c07"]
    assert {hit.clip_id for hit in found} == {f"c{row:02}" for row in range(12)} - {"c00", "c05"}
    assert (found.hits[0].start_s, found.hits[0].movie) == (3.0, "m0")
    assert found.hits[0].score > 0.95
    assert found.hits[2].score < 0.75
    assert (found.n_clips, found.n_without) == (10, 1)


def test_clips_with_frames_of_any_number_are_ranked_by_their_pooled_vectors_alike(tmp_path):
    ranked = []
    for name, kind in KINDS.items():
        store = open_store(sealed(tmp_path / name, groups=[kind(arrays=["pooled", "frames"])]))
        clip = store["toy"].clip_ids[0]
        vectors = store["toy"].pooled()[store["toy"].usable].astype(np.float64)
        apart = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)
        cosines = apart @ apart[0] / np.linalg.norm(apart, axis=1) / np.linalg.norm(apart[0])
        found = search_like(store, clip, top=20)
        scores = [hit.score for hit in found]
        np.testing.assert_allclose(scores, np.sort(cosines[1:])[::-1], atol=1e-5)
        assert found.n_clips == len(scores) == 16
        ranked.append(sorted(hit.clip_id for hit in found))
    assert ranked[0] == ranked[1]


def test_frames_alone_are_no_vectors_to_search(tmp_path):
    store = sealed(tmp_path, groups=[KINDS["ragged"](arrays=["frames"])])
    for look in (lambda: search(store, QUERY), lambda: search_like(store, "tt0000-é")):
        with pytest.raises(SearchError, match="pooled vectors"):
            look()


def test_what_is_no_clip_or_was_made_otherwise_is_refused(films, tmp_path):
    other = seal_arrays(tmp_path / "o", {"x": "m"}, {"toy": {"pooled": np.ones((1, 6), "f4")}}, n_frames=4)
    third = seal_arrays(tmp_path / "t", {"x": "m"}, {"else": {"pooled": np.ones((1, 6), "f4")}})
    for clip, given in (("c99", {}), ("c05", {}), ("x", {"other": other}), ("x", {"other": third})):
        with pytest.raises(ObygazeError):
            search_like(films, clip, **given)
    for given in ({"backbone": "else"}, {"top": 0}):
        with pytest.raises(SearchError):
            search_like(films, "c00", **given)


def test_a_file_is_extracted_as_the_store_was_and_hits_are_drawn(tmp_path, shared_data, capsys):
    videos = shared_data / "videos"
    names = ("arm_wrestling.mp4", "flipping_a_pancake.mkv", "test.avi")
    clips = Manifest(
        tuple(Clip(f"{name[:4]}\u00e9", name[:4], str(videos / name)) for name in names), tmp_path
    )
    write_manifest(clips, tmp_path / "films.csv")
    store = extract(clips, tmp_path / "films", ["descriptors"], n_frames=4, workers=1, licence="CC0-1.0")
    words = ("search", store.where, "--like", videos / names[1], "--sheet", tmp_path / "hits")
    assert obygaze(*words, "--manifest", tmp_path / "films.csv", "--json") == 0
    said = capsys.readouterr()
    (first, *_) = json.loads(said.out)["hits"]
    assert (first["clip_id"], round(first["score"], 6)) == ("flip\u00e9", 1.0)
    assert "3 of 3 clips drawn" in said.err
    assert (tmp_path / "hits" / "found.png").is_file()
    assert obygaze("search", store.where, "--like", "flipe\u0301") == 0
    assert obygaze("search", store.where, "--like", tmp_path / "films.csv") == 1
    assert f"error: {tmp_path / 'films.csv'}: " in capsys.readouterr().err
