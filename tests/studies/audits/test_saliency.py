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


def region(rows, columns, name="face"):
    """Make a region of these rows and columns, each from the first one to before the last one."""
    return Region(name, y0=rows[0], x0=columns[0], y1=rows[1], x1=columns[1])


def test_a_map_is_stretched_from_0_to_1_as_the_oracle_does(oracle):
    """Several maps are averaged after each was stretched; here there is one, which is its own mean."""
    case = oracle["gradcam"]["cases"]["cosine"]
    only_map = np.array(case["cam"])

    stretched = mean_stretched([only_map])

    np.testing.assert_allclose(stretched, case["cam_minmax"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("rows", "name_in_oracle"), [((0, 2), "face_rows0_1"), ((2, 4), "chest_rows2_3")], ids=["face", "chest"]
)
def test_the_share_of_a_map_in_a_region_is_the_oracles(oracle, rows, name_in_oracle):
    """The oracle has a map of 4 x 4 places, and the share of its sum in each half.

    The upper one is called face there, the lower one chest.
    """
    case = oracle["gradcam"]["cases"]["cosine"]
    half_of_the_map = region(rows, columns=(0, 4))

    share = energy_share(np.array(case["cam"]), half_of_the_map)

    assert share == pytest.approx(case["roi"][name_in_oracle], rel=1e-9)


def test_a_map_of_zeros_has_neither_a_share_nor_a_highest_place_in_a_region():
    """A share of nothing is 0 / 0, and all places of such a map are as high."""
    zeros = np.zeros((3, 3))
    all_of_it = region(rows=(0, 3), columns=(0, 3))

    assert energy_share(zeros, all_of_it) is None
    assert pointing_hit(zeros, all_of_it) is None
    assert not mean_stretched([zeros]).any()


@pytest.mark.parametrize(("columns", "is_hit"), [((2, 3), True), ((0, 2), False)])
def test_a_region_is_hit_if_the_highest_place_of_the_map_is_in_it(columns, is_hit):
    """The highest of 4 x 4 places is in row 1 and column 2. The region has rows 0 and 1, and some columns."""
    map_of_places = np.zeros((4, 4))
    map_of_places[1, 2] = 1

    assert pointing_hit(map_of_places, region(rows=(0, 2), columns=columns)) is is_hit


@pytest.fixture
def maps_of_three_images():
    """Maps of three images: light in the top left of `top`, in the bottom right of `low`, none in `dark`."""
    raw = np.zeros((3, SIDE, SIDE), np.float32)
    raw[0, :50, :50] = 2.0
    raw[1, 180:, 180:] = 3.0
    names = {"text": "a face", "group": "g", "score": 0.25}
    peaks = {"top": 2.0, "low": 3.0, "dark": 0.0}
    pairs = tuple({"image_id": one, **names, "peak": peak} for one, peak in peaks.items())
    return Maps({"space": "toy-clip sha256:0123", "score": "dot"}, pairs, raw)


@pytest.fixture
def audit_of_corner(maps_of_three_images):
    """An audit of the three maps in the top left quarter."""
    corner = region(rows=(0, SIDE // 2), columns=(0, SIDE // 2), name="corner")
    return audit_maps(maps_of_three_images, {image: [corner] for image in ("top", "low", "dark")})


def test_a_map_with_all_light_in_a_region_has_its_share_and_hits_it(audit_of_corner):
    """The region is the top left quarter. The image `top` has all its light there, and `low` none."""
    top, low, _ = records(audit_of_corner.data)

    assert top["share"] > 0.99
    assert top["hit"] is True
    assert low["share"] < 0.01
    assert low["hit"] is False


def test_a_map_without_light_is_called_empty_and_has_no_share(audit_of_corner):
    """A map shows which places of an image a network looked at. That of the image `dark` is 0 everywhere.

    Its share in a region would be 0 / 0, and its highest place (peak, 0) can't be said to hit the region.
    """
    _top, _low, dark = records(audit_of_corner.data)

    assert dark["empty"]
    assert dark["peak"] == 0.0
    assert dark["share"] is None
    assert dark["hit"] is None


def test_a_group_has_the_means_of_its_maps_that_are_not_empty(audit_of_corner):
    """Of three maps one is empty, one hits the corner and one does not."""
    top, low, _ = records(audit_of_corner.data)
    (group,) = audit_of_corner.record["summary"]["groups"]
    assert group["n_maps"] == 3
    assert group["n_empty"] == 1
    assert group["share_of_hits"] == 1 / 2
    assert group["mean_share"] == pytest.approx((top["share"] + low["share"]) / 2)


def test_the_mean_of_three_stretched_maps_without_overlap_is_at_most_a_third(maps_of_three_images):
    """Of three maps, one has light in the top left, one in the bottom right, and one is empty.

    Each is stretched to the range from 0 to 1, so that no place of their mean has more than (1 + 0 + 0) / 3.
    """
    maps = maps_of_three_images.by_group()["g"]

    assert mean_stretched(maps).max() == pytest.approx(1 / 3, abs=1e-3)


def test_an_audit_without_regions_has_a_row_for_each_map(maps_of_three_images):
    """A map is of a pair of an image and a text. Three images have a map each, and so a row.

    With regions there would be a row for each region of an image, with its name as `roi`.
    """
    rows = records(audit_maps(maps_of_three_images).data)

    assert [row["image_id"] for row in rows] == ["top", "low", "dark"]
    assert [row["roi"] for row in rows] == [None, None, None]


def bytes_of_files(folder):
    """Read all files below a folder: relative path -> bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_maps_are_stored_as_the_same_bytes(maps_of_three_images, tmp_path):
    """In another folder, and written over themselves."""
    write_maps(maps_of_three_images, tmp_path / "one.zarr")
    bytes_written_once = bytes_of_files(tmp_path / "one.zarr")

    write_maps(maps_of_three_images, tmp_path / "one.zarr")
    write_maps(maps_of_three_images, tmp_path / "other.zarr")

    assert bytes_of_files(tmp_path / "one.zarr") == bytes_written_once
    assert bytes_of_files(tmp_path / "other.zarr") == bytes_written_once


def test_maps_that_were_stored_are_read_as_they_were_and_give_the_same_audit(maps_of_three_images, tmp_path):
    """The planted maps are of the images `top`, `low` and `dark`. An audit adds up a map in regions."""
    write_maps(maps_of_three_images, tmp_path / "maps.zarr")

    maps = read_maps(tmp_path / "maps.zarr")

    assert maps.pairs == maps_of_three_images.pairs
    assert maps.about == maps_of_three_images.about
    np.testing.assert_array_equal(maps.raw, maps_of_three_images.raw)

    whole_image = region(rows=(0, SIDE), columns=(0, SIDE))
    regions = {"top": [whole_image], "low": [whole_image], "dark": [whole_image]}
    assert to_json(audit_maps(maps, regions)) == to_json(audit_maps(maps_of_three_images, regions))


def test_maps_that_do_not_exist_are_refused_by_their_name(tmp_path):
    with pytest.raises(StoreError, match=r"m\.zarr"):
        read_maps(tmp_path / "m.zarr")


def test_a_folder_that_holds_no_maps_is_not_replaced_by_maps_even_by_force(tmp_path):
    """Only maps that were written before may be replaced, and this is a folder of something else."""
    with pytest.raises(StoreError):
        check_maps_free(tmp_path, force=True)


def test_a_map_whose_file_is_lost_is_refused_by_its_image(maps_of_three_images, tmp_path):
    """The maps of `top`, `low` and `dark` are stored in a file each; that of map 1, of `low`, is removed."""
    write_maps(maps_of_three_images, tmp_path / "lost.zarr")
    file_of_map_1 = tmp_path / "lost.zarr" / "raw" / "c" / "1" / "0" / "0"
    file_of_map_1.unlink()

    with pytest.raises(StoreError, match="map 1, of low"):
        read_maps(tmp_path / "lost.zarr")


def test_a_map_with_negative_values_is_refused_by_its_image(maps_of_three_images, tmp_path):
    """Grad-CAM cuts negative values, so that a stored map has none; here all maps are turned into theirs."""
    negative = replace(maps_of_three_images, raw=-maps_of_three_images.raw)
    write_maps(negative, tmp_path / "negative.zarr")

    with pytest.raises(StoreError, match="map 0, of top"):
        read_maps(tmp_path / "negative.zarr")


def test_fewer_maps_than_are_listed_are_refused_by_the_name_of_their_array(maps_of_three_images, tmp_path):
    """Three pairs of image and text are listed, and the array `raw` has two maps."""
    with_two_maps = replace(maps_of_three_images, raw=maps_of_three_images.raw[:2])
    write_maps(with_two_maps, tmp_path / "fewer.zarr")

    with pytest.raises(StoreError, match="array 'raw'"):
        read_maps(tmp_path / "fewer.zarr")


def test_an_image_without_regions_is_named(maps_of_three_images):
    """There are maps of the images `top`, `low` and `dark`, and no region for any."""
    with pytest.raises(AuditError, match="image top"):
        audit_maps(maps_of_three_images, {})


def test_an_image_with_regions_and_without_a_map_is_counted(maps_of_three_images):
    """There are maps of the images `top`, `low` and `dark`, and regions of these and of `other`."""
    box = [region(rows=(0, 9), columns=(0, 9))]
    regions = {"top": box, "low": box, "dark": box, "other": box}

    summary = audit_maps(maps_of_three_images, regions).record["summary"]

    assert summary["n_images_with_regions_only"] == 1


NINE_OF_5000_DIGITS = "9".zfill(5000)


@pytest.mark.parametrize(
    "box",
    [
        "5,0,5,9",
        f"0,0,{SIDE + 1},9",
        "-1,0,5,9",
        "0,0,5.5,9",
        f"0,0,{NINE_OF_5000_DIGITS},9",
    ],
    ids=["no height", "beyond the map", "before the map", "half a pixel", "a number of 5000 digits"],
)
def test_a_region_that_is_no_box_in_the_map_is_refused(tmp_path, box):
    """A region is a box in pixels: its first row and column, and those behind its last ones."""
    path = tmp_path / "roi.csv"
    path.write_text(f"image_id,roi,y0,x0,y1,x1\ni,face,{box}\n", encoding="utf-8")
    with pytest.raises(AuditError, match=r"roi\.csv.*face of i"):
        read_regions(path)
