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
    ids=[
        "a path",
        "a path of Windows",
        "a host name",
        "no number",
        "an array",
        "a key that is no text",
        "no Unicode",
    ],
)
def test_an_unfit_value_in_a_provenance_is_refused_by_field(change, message):
    """Provenance is JSON without paths or host names: it is published, and must not tell of one machine."""
    with pytest.raises(StoreError, match=message):
        validate_provenance(provenance(**change))


def test_numpy_scalars_and_tuples_become_plain_json_and_unknown_fields_are_kept():
    """The format does not know the field `extra`. NumPy's values equal Python's: types are compared too."""
    extra = {"a": np.float64(0.5), "b": (np.int64(1), np.bool_(True))}

    validated = validate_provenance(provenance(extra=extra))

    assert validated["extra"] == {"a": 0.5, "b": [1, True]}
    assert [type(value) for value in validated["extra"]["b"]] == [int, bool]


def test_fields_that_do_not_change_numbers_may_differ_between_groups():
    """Groups with the same numerical settings may be merged, whoever made them under whatever licence."""
    first = provenance()
    second = provenance(contact="me", licence="0BSD", commit="a" * 40, hub=None, citation="x")

    fields_that_differ = same_numerics(first, second)

    assert fields_that_differ == []


def test_every_other_field_that_differs_between_two_groups_is_named():
    """In JSON, 4 and 4.0 are written differently, although they are equal in Python."""
    first = provenance(architecture={"width": 4})
    compute = {**first["compute"], "dtype": "bfloat16"}
    second = provenance(architecture={"width": 4.0}, compute=compute, new_field=1, untrained=True)

    fields_that_differ = same_numerics(first, second)

    assert fields_that_differ == ["architecture.width", "compute.dtype", "new_field", "untrained"]


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


def array(name, shape, dtype="float32"):
    return ArraySpec(name=name, shape=shape, dtype=dtype)


@pytest.mark.parametrize(
    ("fields", "named_in_message"),
    [
        pytest.param(
            {"name": "logits", "shape": (3,), "dtype": "float32"}, "array 'logits'", id="no known name"
        ),
        pytest.param({"name": "pooled", "shape": (3, 4), "dtype": "float32"}, None, id="pooled, in a table"),
        pytest.param(
            {"name": "pooled", "shape": (3,), "dtype": "float16"}, "array pooled", id="pooled, in float16"
        ),
        pytest.param(
            {"name": "tokens", "shape": (3, 4), "dtype": "float32"}, "array tokens", id="tokens, in float32"
        ),
        pytest.param(
            {"name": "frames", "shape": (-1, 4), "dtype": "float32"}, None, id="a negative number of frames"
        ),
    ],
)
def test_an_array_that_the_format_does_not_know_is_refused_at_once(fields, named_in_message):
    """A clip may have three arrays: pooled (one vector, float32), frames (one a frame), tokens (float16).

    Others are refused when they are described, before anything is computed or written.
    """
    with pytest.raises(StoreError, match=named_in_message):
        ArraySpec(**fields)


@pytest.mark.parametrize(
    ("name", "arrays", "n_frames", "named_in_message"),
    [
        pytest.param("a/b", [array("pooled", shape=(3,))], 1, "'a/b'", id="a name with a slash"),
        pytest.param("a" * 101, [], 1, None, id="a name of 101 letters"),
        pytest.param("a", [], 1, None, id="no arrays"),
        pytest.param("a", [array("frames", shape=(3, 3))], 4, None, id="vectors of 3 frames, but 4 frames"),
        pytest.param(
            "a",
            [array("pooled", shape=(5,)), array("frames", shape=(4, 3))],
            4,
            "'feature'",
            id="vectors of 5 numbers, and vectors of 3",
        ),
        pytest.param(
            "a", [array("pooled", shape=(3,)), array("pooled", shape=(3,))], 1, None, id="an array twice"
        ),
    ],
)
def test_a_group_that_the_format_cannot_hold_is_refused_at_once(name, arrays, n_frames, named_in_message):
    """A group is what one network gives of a clip: named arrays, with vectors of the same length.

    It is refused when it is described, before anything is computed or written.
    """
    with pytest.raises(StoreError, match=named_in_message):
        GroupSpec(name=name, arrays=tuple(arrays), n_frames=n_frames, provenance=provenance())


@pytest.mark.parametrize(
    ("fields", "named_in_message"),
    [
        pytest.param({"clip_id": ""}, None, id="no id"),
        pytest.param({"clip_id": "a\nb"}, None, id="an id of two lines"),
        pytest.param({"clip_id": "a", "start_s": float("nan")}, "start_s", id="a time that is no number"),
    ],
)
def test_a_clip_that_the_format_cannot_hold_is_refused_when_it_is_planned(fields, named_in_message):
    """A clip has no id, an id of two lines, or a start that is no number: nothing is extracted of it."""
    with pytest.raises(StoreError, match=named_in_message):
        PlannedClip(movie="m", **fields)


@pytest.mark.parametrize(
    ("fields", "named_in_message"),
    [
        pytest.param({"status": "failed"}, None, id="failed without a reason"),
        pytest.param({"status": "done"}, None, id="an unknown status"),
        pytest.param(
            {"status": "failed", "reason": "x", "groups": {"g": None}}, None, id="failed, and has features"
        ),
        pytest.param(
            {"status": "ok", "source": {"host": "x"}}, "'host'", id="a fact of the source that no field has"
        ),
        pytest.param({"status": "ok", "source": {"bytes": -1}}, None, id="a source of -1 bytes"),
    ],
)
def test_the_result_of_a_clip_that_the_format_cannot_hold_is_refused_at_once(fields, named_in_message):
    """A clip is "ok", "partial" or "failed"; a failed one has a reason and no features.

    Of its video file, the source, a store holds such facts as the size in bytes.
    """
    with pytest.raises(StoreError, match=named_in_message):
        ClipResult(clip_id="a", **fields)


@pytest.mark.parametrize(
    ("n_frames", "dimension"),
    [(6, "tubelet"), (2, "frame")],
    ids=["three frames each", "one frame each"],
)
def test_two_vectors_of_several_frames_each_have_the_dimension_tubelet(n_frames, dimension):
    """Of 6 frames ViViT makes 2 vectors, each of 3 neighbouring frames (a tubelet); each frame has a time."""
    arrays = {"frames": np.zeros((1, 2, 4), np.float32), "pooled": np.zeros((1, 4), np.float32)}

    group = toy_group("vivit", arrays, n_frames=n_frames)

    assert group.dimensions("frames") == ("clip", dimension, "feature")
    assert group.dimensions("time_s") == ("clip", "frame")


def test_a_number_of_frames_that_is_no_multiple_of_the_vectors_is_refused():
    """Every vector covers as many frames as any other, but 5 frames cannot be divided by 2 vectors."""
    two_vectors_of_one_clip = np.zeros((1, 2, 4), np.float32)

    with pytest.raises(StoreError):
        toy_group("vivit", {"frames": two_vectors_of_one_clip}, n_frames=5)


def test_a_store_of_tubelets_reads_as_it_was_sealed(tmp_path):
    """Three clips have two vectors of four numbers each, of six frames: three frames a vector."""
    frames = np.arange(3 * 2 * 4, dtype=np.float32).reshape(3, 2, 4)
    movie_of_clip = {"c0": "m", "c1": "m", "c2": "m"}

    path = seal_arrays(tmp_path / "vivit", movie_of_clip, {"vivit": {"frames": frames}}, n_frames=6)

    group = open_store(path)["vivit"]
    assert group.n_frames == 6
    assert np.array_equal(group.frames(), frames)
    assert verify(path, "full").ok
