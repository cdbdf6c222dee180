"""What may enter a stage, and how refusals read."""

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import (
    ArraySpec,
    ClipResult,
    GroupSpec,
    PlannedClip,
    open_store,
    same_numerics,
    validate_provenance,
    verify,
)
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.testing import seal_arrays, toy_group

from .toy_stores import provenance


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": {"weights": "/home/ann/w.pt"}}, r"provenance.architecture.weights"),
        ({"architecture": {"file": "C:\\w.pt"}}, None),
        ({"architecture": {"hostname": "gpu7"}}, "'hostname'"),
        ({"architecture": {"scale": float("nan")}}, r"architecture.scale"),
        ({"architecture": {"mean": np.zeros(3)}}, r"architecture.mean"),
        ({"architecture": {1: 2}}, None),
        ({"architecture": {"a": "\ud800"}}, None),
    ],
)
def test_an_unfit_value_in_a_provenance_is_refused_by_field(change, message):
    """Provenance is JSON without paths or host names: it is published, and must not tell of one machine."""
    with pytest.raises(StoreError, match=message):
        validate_provenance(provenance(**change))


def test_numpy_scalars_and_tuples_become_plain_json_and_unknown_fields_are_kept():
    validated = validate_provenance(
        provenance(extra={"a": np.float64(0.5), "b": (np.int64(1), np.bool_(True))})
    )
    assert validated["extra"] == {"a": 0.5, "b": [1, True]}
    assert [type(value) for value in validated["extra"]["b"]] == [int, bool]


def test_fields_that_do_not_change_numbers_may_differ_between_groups():
    """Groups with the same numerical settings may be merged, whoever made them under whatever licence."""
    second = provenance(contact="me", licence="0BSD", commit="a" * 40, hub=None, citation="x")
    assert same_numerics(provenance(), second) == []


def test_every_other_field_that_differs_between_two_groups_is_named():
    first = provenance()
    second = provenance(compute={**first["compute"], "dtype": "bfloat16"}, new_field=1, untrained=True)
    assert same_numerics(first, second) == ["compute.dtype", "new_field", "untrained"]


def test_a_whole_and_a_real_number_are_not_the_same_field():
    """In JSON, 4 and 4.0 are written differently, although they are equal in Python."""
    whole = provenance(architecture={"width": 4})
    assert same_numerics(whole, provenance(architecture={"width": 4.0})) == ["architecture.width"]


@pytest.mark.parametrize(
    "licence", ["CC-BY-4.0", "NOASSERTION", "MIT OR Apache-2.0", "LicenseRef-lab", "(MIT AND 0BSD)"]
)
def test_licences_are_spdx_expressions(licence):
    """SPDX is the list of short names for licences, which can be joined by AND and OR."""
    assert validate_licence(licence) == licence


@pytest.mark.parametrize(
    "licence",
    ["", "free for all", "foo", "MIT\n", "MIT OR", "MIT OR foo", "/", "MIT OR NOASSERTION", "cc-by-4.0"],
)
def test_other_licences_are_refused(licence):
    """Names must be on the list of SPDX in their spelling, and NOASSERTION stands alone."""
    with pytest.raises(StoreError, match=r"SPDX|spelt"):
        validate_licence(licence)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ArraySpec("logits", (3,), "float32"), "array 'logits'"),
        (lambda: ArraySpec("pooled", (3, 4), "float32"), None),
        (lambda: ArraySpec("pooled", (3,), "float16"), "array pooled"),
        (lambda: ArraySpec("tokens", (3, 4), "float32"), "array tokens"),
        (lambda: ArraySpec("frames", (-1, 4), "float32"), None),
        (lambda: GroupSpec("a/b", (ArraySpec("pooled", (3,), "float32"),), 1, provenance()), "'a/b'"),
        (lambda: GroupSpec("a" * 101, (), 1, provenance()), None),
        (lambda: GroupSpec("a", (), 1, provenance()), None),
        (lambda: GroupSpec("a", (ArraySpec("frames", (3, 3), "float32"),), 4, provenance()), None),
        (
            lambda: GroupSpec(
                "a",
                (ArraySpec("pooled", (5,), "float32"), ArraySpec("frames", (4, 3), "float32")),
                4,
                provenance(),
            ),
            "'feature'",
        ),
        (lambda: GroupSpec("a", (ArraySpec("pooled", (3,), "float32"),) * 2, 1, provenance()), None),
        (lambda: PlannedClip("", "m"), None),
        (lambda: PlannedClip("a\nb", "m"), None),
        (lambda: PlannedClip("a", "m", float("nan")), "start_s"),
        (lambda: ClipResult("a", "failed"), None),
        (lambda: ClipResult("a", "done"), None),
        (lambda: ClipResult("a", "failed", "x", groups={"g": None}), None),
        (lambda: ClipResult("a", "ok", source={"host": "x"}), "'host'"),
        (lambda: ClipResult("a", "ok", source={"bytes": -1}), None),
    ],
    ids=[
        "an array of no known name",
        "a pooled array of two dimensions",
        "a pooled array of half precision",
        "tokens of single precision",
        "a negative number of frames",
        "a group's name with a slash",
        "a group's name of 101 letters",
        "a group without arrays",
        "another number of frames than its group has",
        "two widths in a group",
        "an array twice",
        "a clip without an id",
        "an id of two lines",
        "a time that is no number",
        "a failed clip without a reason",
        "an unknown status",
        "a failed clip with features",
        "an unknown fact of the source",
        "a negative size of the source",
    ],
)
def test_values_that_the_format_cannot_hold_are_refused_at_once(make, message):
    with pytest.raises(StoreError, match=message):
        make()


TWO_VECTORS_OF_A_CLIP = {"frames": np.zeros((1, 2, 4), np.float32), "pooled": np.zeros((1, 4), np.float32)}


def test_vectors_of_several_frames_each_have_the_dimension_tubelet():
    """ViViT makes one vector of several frames (a tubelet). Here 6 frames have 2 vectors, and 6 times."""
    group = toy_group("vivit", TWO_VECTORS_OF_A_CLIP, n_frames=6)
    assert group.dimensions("frames") == ("clip", "tubelet", "feature")
    assert group.dimensions("time_s") == ("clip", "frame")


def test_vectors_of_one_frame_each_have_the_dimension_frame():
    group = toy_group("clip", TWO_VECTORS_OF_A_CLIP, n_frames=2)
    assert group.dimensions("frames") == ("clip", "frame", "feature")


def test_a_number_of_frames_that_is_no_multiple_of_the_vectors_is_refused():
    """Every vector covers as many frames as any other, but 5 frames cannot be divided by 2 vectors."""
    with pytest.raises(StoreError):
        toy_group("vivit", {"frames": np.zeros((1, 2, 4), np.float32)}, n_frames=5)


def test_a_store_of_tubelets_reads_as_it_was_sealed(tmp_path):
    frames = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    movies = {f"c{i}": "m" for i in range(3)}
    path = seal_arrays(tmp_path / "vivit", movies, {"vivit": {"frames": frames}}, n_frames=6)
    group = open_store(path)["vivit"]
    assert group.n_frames == 6
    assert np.array_equal(group.frames(), frames)
    assert verify(path, "full").ok
