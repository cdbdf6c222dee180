"""Maps in regions: shares, the highest place, empty maps, and maps that were kept."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_models.report import records, to_json
from obygaze_studies.errors import AuditError
from obygaze_studies.saliency.maps_file import (
    SIDE,
    Maps,
    Region,
    audit_maps,
    check_maps_free,
    energy_share,
    mean_stretched,
    pointing_hit,
    read_maps,
    read_regions,
    write_maps,
)


def test_shares_and_stretching_are_the_expected(oracle):
    case = oracle["gradcam"]["cases"]["cosine"]
    cam = np.array(case["cam"])
    np.testing.assert_allclose(mean_stretched([cam]), case["cam_minmax"], rtol=1e-9, atol=1e-12)
    face = Region("face", 0, 0, 2, 4)
    chest = Region("chest", 2, 0, 4, 4)
    assert energy_share(cam, face) == pytest.approx(case["roi"]["face_rows0_1"], rel=1e-9)
    assert energy_share(cam, chest) == pytest.approx(case["roi"]["chest_rows2_3"], rel=1e-9)


def test_a_map_of_zeros_has_no_shares():
    empty = np.zeros((3, 3))
    assert not mean_stretched([empty]).any()
    whole = Region("all", 0, 0, 3, 3)
    assert energy_share(empty, whole) is None
    assert pointing_hit(empty, whole) is None


def test_the_highest_place_hits_or_misses():
    one = np.zeros((4, 4))
    one[1, 2] = 1
    assert pointing_hit(one, Region("r", 0, 2, 2, 3)) is True
    assert pointing_hit(one, Region("r", 0, 0, 2, 2)) is False


@pytest.fixture
def planted():
    """Light in the top left of `top`, in the bottom right of `low`, nowhere in `dark`."""
    raw = np.zeros((3, SIDE, SIDE), np.float32)
    raw[0, :50, :50] = 2.0
    raw[1, 180:, 180:] = 3.0
    names = {"text": "a face", "group": "g", "score": 0.25}
    peaks = {"top": 2.0, "low": 3.0, "dark": 0.0}
    pairs = tuple({"image_id": one, **names, "peak": peak} for one, peak in peaks.items())
    return Maps({"space": "toy-clip sha256:0123", "score": "dot"}, pairs, raw)


def test_planted_light_is_found_where_it_is(planted):
    half = SIDE // 2
    corner = Region("corner", 0, 0, half, half)
    regions = {one: [corner] for one in ("top", "low", "dark")}
    results = audit_maps(planted, regions)
    maps = planted
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
    assert mean_stretched(maps.by_group()["g"]).max() == pytest.approx(1 / 3, abs=1e-3)


def test_without_regions_there_is_a_row_a_pair(planted):
    results = audit_maps(planted)
    assert [row["image_id"] for row in records(results.data)] == ["top", "low", "dark"]
    assert {row["roi"] for row in records(results.data)} == {None}


def test_maps_are_kept_the_same_every_time_and_audited_as_those_just_made(planted, tmp_path):
    kept = []
    for name in ("one.zarr", "one.zarr", "other.zarr"):
        write_maps(planted, tmp_path / name)
        files = (path for path in (tmp_path / name).rglob("*") if path.is_file())
        kept.append({path.relative_to(tmp_path / name): path.read_bytes() for path in files})
    assert kept[0] == kept[1] == kept[2]
    maps = read_maps(tmp_path / "one.zarr")
    assert (maps.pairs, maps.about) == (planted.pairs, planted.about)
    np.testing.assert_array_equal(maps.raw, planted.raw)
    regions = {one: [Region("all", 0, 0, SIDE, SIDE)] for one in ("top", "low", "dark")}
    assert to_json(audit_maps(maps, regions)) == to_json(audit_maps(planted, regions))


def test_maps_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(StoreError, match=r"m\.zarr"):
        read_maps(tmp_path / "m.zarr")


def test_a_folder_that_holds_no_maps_is_not_replaced(tmp_path):
    with pytest.raises(StoreError):
        check_maps_free(tmp_path, force=True)


def test_a_map_whose_chunk_is_lost_is_named(planted, tmp_path):
    write_maps(planted, tmp_path / "m.zarr")
    (tmp_path / "m.zarr" / "raw" / "c" / "1" / "0" / "0").unlink()
    with pytest.raises(StoreError, match="map 1, of low"):
        read_maps(tmp_path / "m.zarr")


def test_a_map_of_negative_values_is_named(planted, tmp_path):
    write_maps(replace(planted, raw=-planted.raw), tmp_path / "m.zarr")
    with pytest.raises(StoreError, match="map 0, of top"):
        read_maps(tmp_path / "m.zarr")


def test_fewer_maps_than_pairs_are_refused(planted, tmp_path):
    write_maps(replace(planted, raw=planted.raw[:2]), tmp_path / "m.zarr")
    with pytest.raises(StoreError, match="array 'raw'"):
        read_maps(tmp_path / "m.zarr")


def test_an_image_without_regions_is_named(planted):
    with pytest.raises(AuditError, match="image top"):
        audit_maps(planted, {})
    box = [Region("face", 0, 0, 9, 9)]
    summary = audit_maps(planted, dict.fromkeys(("top", "low", "dark", "other"), box)).record["summary"]
    assert summary["n_images_with_regions_only"] == 1


@pytest.mark.parametrize("box", ["5,0,5,9", "0,0,225,9", "-1,0,5,9", "0,0,5.5,9", f"0,0,{9:05000},9"])
def test_a_region_that_is_no_box_in_the_map_is_refused(tmp_path, box):
    path = tmp_path / "roi.csv"
    path.write_text(f"image_id,roi,y0,x0,y1,x1\ni,face,{box}\n", encoding="utf-8")
    with pytest.raises(AuditError, match=r"roi\.csv.*face of i"):
        read_regions(path)
