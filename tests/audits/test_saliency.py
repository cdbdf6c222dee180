"""Grad-CAM from stored activations: autograd's numbers, regions, empty maps, and what is refused."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import zarr

from obygaze_features.store import StoreError
from obygaze_features.store.saliency_maps import SIDE, read_maps, stretched, write_maps
from obygaze_features.store.testing import seal_arrays
from obygaze_models.audits.embeddings import read_embeddings
from obygaze_models.audits.gradcam import Score, channel_weights, class_activation, enlarge, gradcam, linear
from obygaze_models.audits.heads import AttentionPool, Linear, read_head
from obygaze_models.audits.regions import Region, energy_share, pointing_hit, read_regions
from obygaze_models.audits.saliency import audit_maps, map_pairs, read_activations
from obygaze_models.errors import AuditError
from obygaze_models.report import records, to_json

C, D, GRID = 6, 5, (4, 4)
TIGHT = {"rtol": 1e-9, "atol": 1e-12}


@pytest.fixture(scope="module")
def cam(oracle):
    found = oracle["gradcam"]
    return {name: np.array(found[name]) for name in ("acts", "W", "text")} | {"cases": found["cases"]}


def pool_of(case):
    p = {name: np.array(values) for name, values in case["params"].items()}
    none = np.zeros(C)
    return AttentionPool(
        p["pos"],
        p["q"],
        p["k"],
        p["v"],
        p["c"],
        q_bias=none,
        k_bias=none,
        v_bias=none,
        c_bias=np.zeros(D),
        heads=case["heads"],
    )


@pytest.mark.parametrize(("name", "score"), [("dot_unnormalised_text", Score.DOT), ("cosine", Score.COSINE)])
def test_average_pooling_gives_the_numbers_of_autograd(cam, name, score):
    case = cam["cases"][name]
    found = gradcam(cam["acts"], Linear(cam["W"], np.zeros(D)), cam["text"], score)
    assert found.score == pytest.approx(case["score"], rel=1e-9)
    np.testing.assert_allclose(found.weights, case["alpha"], **TIGHT)
    np.testing.assert_allclose(channel_weights(np.array(case["grads"])), case["alpha"], **TIGHT)
    np.testing.assert_allclose(found.cam, case["cam"], **TIGHT)
    np.testing.assert_allclose(enlarge(found.cam, (8, 8)), case["cam_bicubic_8x8"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(enlarge(found.cam, (8, 8), linear), case["cam_bilinear_8x8"], **TIGHT)
    np.testing.assert_allclose(stretched(found.cam), case["cam_minmax"], **TIGHT)
    face, chest = Region("face", 0, 0, 2, 4), Region("chest", 2, 0, 4, 4)
    assert energy_share(found.cam, face) == pytest.approx(case["roi"]["face_rows0_1"], rel=1e-9)
    assert energy_share(found.cam, chest) == pytest.approx(case["roi"]["chest_rows2_3"], rel=1e-9)


def test_attention_pooling_gives_the_numbers_of_autograd(cam):
    case = cam["cases"]["attention_pool_dot"]
    head = pool_of(case)
    found = gradcam(cam["acts"], head, cam["text"], Score.DOT)
    assert found.score == pytest.approx(case["score"], rel=1e-9)
    np.testing.assert_allclose(head.backward(cam["acts"], cam["text"]), case["grads"], **TIGHT)
    np.testing.assert_allclose(found.weights, channel_weights(np.array(case["grads"])), **TIGHT)
    np.testing.assert_allclose(found.weights, case["alpha"], **TIGHT)
    np.testing.assert_allclose(found.cam, case["cam"], **TIGHT)


def random_pool(rng, heads=2):
    square = [rng.normal(size=(C, C)) for _ in range(3)]
    biases = [rng.normal(size=C) for _ in range(3)]
    last = rng.normal(size=D)
    return AttentionPool(
        rng.normal(size=(17, C)), *square, rng.normal(size=(D, C)), *biases, c_bias=last, heads=heads
    )


@pytest.mark.parametrize("kind", ["linear", "pool"])
def test_gradients_are_the_slopes_of_the_cosine(kind):
    rng = np.random.default_rng(0)
    head = random_pool(rng) if kind == "pool" else Linear(rng.normal(size=(D, C)), rng.normal(size=D))
    acts, text = rng.normal(size=(C, *GRID)), rng.normal(size=D)
    step, slopes = 1e-6, np.zeros(C)
    for channel in range(C):
        up, down = acts.copy(), acts.copy()
        up[channel] += step
        down[channel] -= step
        slopes[channel] = (gradcam(up, head, text).score - gradcam(down, head, text).score) / (2 * step)
    # Moving a whole channel adds up its gradients, of which the weight is the mean.
    np.testing.assert_allclose(gradcam(acts, head, text).weights * 16, slopes, rtol=1e-6, atol=1e-9)


def test_the_length_of_the_text_scales_the_map_of_the_dot_product_alone():
    rng = np.random.default_rng(1)
    head, acts, text = random_pool(rng), rng.normal(size=(C, *GRID)), rng.normal(size=D)
    one, twice = (gradcam(acts, head, scale * text) for scale in (1, 2))
    np.testing.assert_allclose(one.cam, twice.cam, **TIGHT)
    one, twice = (gradcam(acts, head, scale * text, Score.DOT) for scale in (1, 2))
    np.testing.assert_allclose(2 * one.cam, twice.cam, **TIGHT)


def test_a_flat_map_stays_flat_when_enlarged_and_a_place_stays_in_its_place():
    np.testing.assert_allclose(enlarge(np.full((7, 7), 0.3), (SIDE, SIDE)), 0.3, rtol=1e-12)
    one = np.zeros((7, 7))
    one[2, 5] = 1.0
    big = enlarge(one, (SIDE, SIDE))
    y, x = np.unravel_index(big.argmax(), big.shape)
    assert (y // 32, x // 32) == (2, 5)
    assert big.min() < 0, "cubic interpolation overshoots"


def test_a_map_without_positive_values_is_zero_and_has_no_shares():
    empty = class_activation(np.ones((2, 3, 3)), np.array([-1.0, -2.0]))
    assert not empty.any()
    assert not stretched(empty).any()
    whole = Region("all", 0, 0, 3, 3)
    assert energy_share(empty, whole) is None
    assert pointing_hit(empty, whole) is None


def test_the_highest_place_hits_or_misses():
    one = np.zeros((4, 4))
    one[1, 2] = 1
    assert pointing_hit(one, Region("r", 0, 2, 2, 3)) is True
    assert pointing_hit(one, Region("r", 0, 0, 2, 2)) is False


@pytest.fixture(scope="module")
def planted(tmp_path_factory, keep):
    """Channel 0 is text t and lights the top left of `top`, the bottom right of `low`, nowhere in `dark`."""
    folder = tmp_path_factory.mktemp("planted")
    acts = np.zeros((3, C, *GRID), np.float16)
    acts[0, 0, 0, 0] = acts[1, 0, 3, 3] = acts[2, 1, 0, 0] = 4.0
    acts[:, 2] = 1.0
    tokens = np.ascontiguousarray(acts.reshape(3, C, 16).transpose(0, 2, 1))
    about = {"space": "toy-clip sha256:0123", "grid": list(GRID)}
    seal_arrays(
        folder / "acts", dict.fromkeys(["top", "low", "dark"], "none"), {"rn": {"tokens": tokens}}, **about
    )
    weight = np.zeros((D, C))
    weight[0, 0], weight[0, 1], weight[1, 2] = 1, -1, 1
    np.savez(folder / "head.npz", weight=weight, space="toy-clip sha256:0123")
    keep(folder / "texts", ["t"], [[1, 0, 0, 0, 0]])

    def run(images=("top", "low", "dark"), **changes):
        given = {
            "activations": read_activations(folder / "acts"),
            "head": read_head(folder / "head.npz"),
            "texts": read_embeddings(folder / "texts"),
            "text_ids": {"a face": "t"},
            "pairs": [{"image_id": one, "text": "a face", "group": "g"} for one in images],
            **changes,
        }
        three = [given.pop(name) for name in ("activations", "head", "texts")]
        regions = given.pop("regions", None)
        maps = map_pairs(*three, **given)
        return audit_maps(maps, regions), maps

    return run


def test_planted_light_is_found_where_it_is(planted):
    half = SIDE // 2
    corner = Region("corner", 0, 0, half, half)
    regions = {one: [corner] for one in ("top", "low", "dark")}
    results, maps = planted(regions=regions, score=Score.DOT)
    top, low, dark = records(results.data)
    assert top["share"] > 0.99
    assert (top["hit"], low["hit"]) == (True, False)
    assert low["share"] < 0.01
    assert (dark["empty"], dark["share"], dark["hit"], dark["peak"]) == (True, None, None, 0.0)
    (group,) = results.record["summary"]["groups"]
    assert (group["n_maps"], group["n_empty"], group["share_of_hits"]) == (3, 1, 0.5)
    assert group["mean_share"] == pytest.approx((top["share"] + low["share"]) / 2)
    assert maps.raw.shape == (3, SIDE, SIDE)
    assert maps.raw.min() == 0
    np.testing.assert_allclose(maps.mean_raw[0], maps.raw.mean(axis=0), atol=1e-7)
    assert maps.mean_stretched.max() == pytest.approx(1 / 3, abs=1e-3)


def test_without_regions_there_is_a_row_a_pair(planted):
    results, _ = planted()
    assert [row["image_id"] for row in records(results.data)] == ["top", "low", "dark"]
    assert {row["roi"] for row in records(results.data)} == {None}


def test_maps_are_kept_the_same_every_time(planted, tmp_path):
    def digest(folder):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        parts = [(str(path.relative_to(folder)), path.read_bytes()) for path in files]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    _, maps = planted()
    one, other = tmp_path / "one.zarr", tmp_path / "other.zarr"
    write_maps(maps, one)
    write_maps(maps, other)
    assert digest(one) == digest(other)
    write_maps(maps, one)
    assert digest(one) == digest(other)
    group = zarr.open_group(str(one), mode="r")
    np.testing.assert_array_equal(group["raw"][...], maps.raw)
    first = {"image_id": "low", "text": "a face", "group": "g"}
    assert group.attrs["pairs"][1] == {**first, "score": maps.pairs[1]["score"], "peak": maps.raw[1].max()}
    assert group.attrs["groups"] == ["g"]
    assert group.attrs["about"]["space"] == "toy-clip sha256:0123"


def test_kept_maps_are_audited_as_those_just_made(planted, tmp_path):
    whole = Region("all", 0, 0, SIDE, SIDE)
    regions = {one: [whole] for one in ("top", "low", "dark")}
    results, maps = planted(regions=regions)
    write_maps(maps, tmp_path / "m.zarr")
    again = read_maps(tmp_path / "m.zarr")
    np.testing.assert_array_equal(again.mean_stretched, maps.mean_stretched)
    assert to_json(audit_maps(again, regions)) == to_json(results)


def test_maps_that_are_not_whole_are_refused(planted, tmp_path):
    _, maps = planted()
    path = tmp_path / "m.zarr"
    with pytest.raises(StoreError, match="no saliency maps"):
        read_maps(path)
    write_maps(maps, path)
    (path / "raw" / "c" / "1" / "0" / "0").unlink()
    with pytest.raises(StoreError, match="map 1, of low, is not the one that was written"):
        read_maps(path)
    write_maps(replace(maps, raw=-maps.raw), path)
    with pytest.raises(StoreError, match="map 0, of top, has values below 0 or not finite"):
        read_maps(path)
    write_maps(replace(maps, raw=maps.raw[:2]), path)
    with pytest.raises(StoreError, match=r"array 'raw' should be float32 \[3, 224, 224\]"):
        read_maps(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"text_ids": {}}, "the pair of top: the table of texts has no 'a face'"),
        ({"images": ["gone"]}, "no clip gone"),
        ({"regions": {}}, "image top has no region of interest"),
    ],
)
def test_what_is_missing_is_named(planted, change, words):
    with pytest.raises(ValueError, match=words):
        planted(**change)


def test_other_spaces_channels_and_lengths_are_refused(planted, tmp_path, keep):
    head = tmp_path / "other.npz"
    np.savez(head, weight=np.ones((D, C)), space="other sha256:9")
    with pytest.raises(AuditError, match=r"the head is of 'other sha256:9', .* of 'toy-clip sha256:0123'"):
        planted(head=read_head(head))
    np.savez(head, weight=np.ones((D, C + 1)), space="toy-clip sha256:0123")
    with pytest.raises(AuditError, match="has 6 channels, the head takes 7"):
        planted(head=read_head(head))
    keep(tmp_path / "short", ["t"], [[1, 0]])
    with pytest.raises(AuditError, match=r"image top: the head gives 5 features, .* has 2"):
        planted(texts=read_embeddings(tmp_path / "short"))
    np.savez(head, weight=np.zeros((D, C)), space="toy-clip sha256:0123")
    with pytest.raises(AuditError, match="image top: the image's embedding is the zero vector"):
        planted(head=read_head(head))


@pytest.mark.parametrize("grid", [None, [4, 5], "4x4"])
def test_activations_must_say_where_their_places_lie(tmp_path, grid):
    tokens = {"rn": {"tokens": np.zeros((1, 16, C), np.float16)}}
    more = {} if grid is None else {"grid": grid}
    path = seal_arrays(tmp_path / "acts", {"i": "none"}, tokens, space="s", **more)
    with pytest.raises(AuditError, match=r"should say with 'grid' \[h, w\] where its 16 tokens lie"):
        read_activations(path)


def attention(**changes):
    arrays = {
        "positional_embedding": np.zeros((17, C)),
        "heads": 2,
        "space": "s",
        "c_weight": np.ones((D, C)),
    }
    arrays |= {f"{name}_weight": np.eye(C) for name in "qkv"} | changes
    return {name: value for name, value in arrays.items() if value is not None}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"weight": np.ones((D, C))}, "expected one text `space`"),
        ({"space": "s"}, "expected the arrays weight, or positional_embedding"),
        ({"space": "s", "weight": np.full((D, C), np.nan)}, "weight has a value that is not finite"),
        ({"space": "s", "weight": np.ones(C)}, r"weight should be \[D, C\], found \[6\]"),
        ({"space": "s", "weight": np.ones((D, C)), "bias": np.ones(3)}, r"bias should be \[5\], found \[3\]"),
        (attention(heads=4), "heads should be one whole number that divides 6, found 4"),
        (attention(k_weight=np.ones((C, D))), r"k_weight should be \[6, 6\], found \[6, 5\]"),
        (attention(q_weight=None), "expected the arrays weight"),
    ],
)
def test_a_bad_head_is_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "head.npz", **arrays)
    with pytest.raises(AuditError, match=words):
        read_head(tmp_path / "head.npz")


def test_a_head_is_read_without_unpickling(tmp_path):
    np.savez(tmp_path / "head.npz", **attention(q_bias=np.ones(C)))
    head = read_head(tmp_path / "head.npz").head
    assert isinstance(head, AttentionPool)
    assert head.heads == 2
    assert head.q_bias.all()
    assert not head.k_bias.any()
    np.savez(tmp_path / "head.npz", weight=np.array([{}], dtype=object), space="s")
    with pytest.raises(AuditError, match=r"is not an \.npz file of plain arrays"):
        read_head(tmp_path / "head.npz")
    (tmp_path / "head.npz").write_bytes(b"weights")
    with pytest.raises(AuditError, match=r"is not an \.npz file of plain arrays"):
        read_head(tmp_path / "head.npz")


@pytest.mark.parametrize("box", ["5,0,5,9", "0,0,225,9", "-1,0,5,9", "0,0,5.5,9"])
def test_a_region_that_is_no_box_in_the_map_is_refused(tmp_path, box):
    path = tmp_path / "roi.csv"
    path.write_text(f"image_id,roi,y0,x0,y1,x1\ni,face,{box}\n", encoding="utf-8")
    with pytest.raises(AuditError, match="region face of i should be whole y0 < y1, x0 < x1"):
        read_regions(path)
