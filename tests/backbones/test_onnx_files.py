"""A network in an ONNX file: what onnxruntime gives of the pictures that the TOML describes, or a refusal."""

import hashlib
import pickle
import re
import sys
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from obygaze.demo_corpus import write_video
from obygaze_features import Clip, Manifest, extract, load_backbone, open_store
from obygaze_features.backbones import onnx_files
from obygaze_features.backbones.registry import backbone_call
from obygaze_features.errors import BackboneError
from obygaze_features.extraction.decode_clips import _reason
from obygaze_features.store import classes_of
from tests.command import obygaze

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

FIELDS = {
    "layout": "NCHW",
    "type": "float32",
    "channels": "RGB",
    "resize": "pillow-bicubic",
    "size": 24,
    "fit": "crop",
    "shortest": 28,
    "mean": [0.5, 0.25, 0.75],
    "std": [0.5, 0.25, 1.0],
}
"""What the TOML beside a network says of its pictures."""
FRAMES = np.random.default_rng(0).integers(0, 256, (4, 30, 50, 3), dtype=np.uint8)


def write_network(folder, fields=FIELDS, *, shape=("n", 3, 24, 24), kind="FLOAT", name="net"):
    """Write a network and its TOML, and return its path.

    It gives three numbers of each picture: the mean of each channel over positions, doubled.

    Parameters
    ----------
    fields
        Fields of the TOML.
    shape, kind
        Shape and type of the input.
    """
    node = onnx.helper.make_node
    value = onnx.helper.make_tensor_value_info
    floats = onnx.TensorProto.FLOAT
    has_channels_last = shape and shape[-1] == 3
    nodes = []
    real = "x"
    if kind != "FLOAT":
        real = "real"
        nodes.append(node("Cast", ["x"], [real], to=floats))
    nodes.append(node("Relu", [real], ["inside"]))
    axes = [1, 2] if has_channels_last else [2, 3]
    nodes.append(node("ReduceMean", [real], ["map"], axes=axes, keepdims=0))
    nodes.append(node("Add", ["map", "map"], ["out"]))
    takes = value("x", getattr(onnx.TensorProto, kind), shape and list(shape))
    graph = onnx.helper.make_graph(nodes, "net", [takes], [value("out", floats, ["n", 3])])
    opset = onnx.helper.make_opsetid("", 13)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    path.with_suffix(".toml").write_text(toml_of(fields), encoding="utf-8")
    return path


def toml_of(fields):
    """Format fields as TOML, whose values are texts, numbers, lists and true."""
    lines = []
    for key, value in fields.items():
        text = "true" if value is True else repr(value).replace("'", '"')
        lines.append(f"{key} = {text}")
    return "\n".join(lines)


def run_onnxruntime(path, pixels, output="out"):
    """Run a network on values that are prepared already."""
    session = runtime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return session.run([output], {"x": pixels})[0]


def prepared(backbone):
    """Prepare the four frames for a backbone: an array [4, height, width, 3] of pixels."""
    return np.stack([backbone.prepare(frame) for frame in FRAMES])


def normalised(clip):
    """Normalise pixels by the mean and std of the TOML."""
    mean = np.array(FIELDS["mean"])
    std = np.array(FIELDS["std"])
    scale = (1 / (255 * std)).astype(np.float32)
    shift = (-mean / std).astype(np.float32)
    return clip.astype(np.float32) * scale + shift


def test_the_vectors_are_onnxruntimes_of_the_pictures_that_the_toml_describes(tmp_path):
    path = write_network(tmp_path)
    backbone = load_backbone(f"onnx:{path}", 4)
    clip = prepared(backbone)
    assert clip.shape == (4, 24, 24, 3)
    pixels = np.ascontiguousarray(normalised(clip).transpose(0, 3, 1, 2))
    result = backbone.encode(np.stack([clip, clip[::-1]]))
    assert np.array_equal(result["frames"][0], run_onnxruntime(path, pixels))
    assert np.array_equal(result["frames"][1], result["frames"][0][::-1])
    assert np.array_equal(result["pooled"][0], result["frames"][0].mean(axis=0))
    assert backbone.provenance["layer"] == "out"


def test_blue_comes_first_where_it_is_said(tmp_path):
    path = write_network(tmp_path, FIELDS | {"channels": "BGR", "mean": [0.5] * 3, "std": [0.5] * 3})
    rgb = write_network(tmp_path, FIELDS | {"mean": [0.5] * 3, "std": [0.5] * 3}, name="rgb")
    clip = prepared(load_backbone(f"onnx:{path}", 4))
    result = [load_backbone(f"onnx:{one}", 4).encode(clip[None])["frames"] for one in (path, rgb)]
    assert np.array_equal(result[0], result[1][..., ::-1])


@pytest.fixture
def network_of_uint8(tmp_path):
    """A network that takes one picture of uint8 at a time, channels last."""
    fields = {key: value for key, value in FIELDS.items() if key not in ("mean", "std")}
    fields |= {"layout": "NHWC", "type": "uint8"}
    return write_network(tmp_path, fields, shape=(1, 24, 24, 3), kind="UINT8")


def test_whole_numbers_and_channels_last_go_in_as_they_are(network_of_uint8):
    backbone = load_backbone(f"onnx:{network_of_uint8}", 4)
    clip = prepared(backbone)
    one_by_one = np.concatenate([run_onnxruntime(network_of_uint8, frame[None]) for frame in clip])
    assert np.array_equal(backbone.encode(clip[None])["frames"][0], one_by_one)
    recorded = backbone.provenance["preset"]
    assert recorded["constants"] == {"scale": [1.0] * 3, "shift": [0.0] * 3}
    assert recorded["order"].endswith("RGB, NHWC, uint8")


def test_a_layer_that_gives_no_vectors_is_refused(network_of_uint8):
    """The layer is the input itself."""
    with pytest.raises(BackboneError, match="vectors were expected"):
        load_backbone(f"onnx:{network_of_uint8}:x", 4)


def test_a_mean_and_a_deviation_of_whole_numbers_are_refused(tmp_path):
    path = write_network(tmp_path, FIELDS | {"type": "uint8"}, kind="UINT8")
    with pytest.raises(BackboneError, match="for uint8"):
        load_backbone(f"onnx:{path}", 4)


@pytest.mark.parametrize("resize", ["pillow-bicubic", "opencv-bilinear"])
def test_a_picture_may_be_wider_than_high(tmp_path, resize):
    fields = {key: value for key, value in FIELDS.items() if key != "shortest"}
    fields |= {"fit": "squash", "size": [16, 28], "resize": resize}
    backbone = onnx_files.onnx_backbone(str(write_network(tmp_path, fields, shape=("n", 3, 16, 28))), 4)
    clip = prepared(backbone)
    assert clip.shape == (4, 16, 28, 3)
    image = Image.fromarray(FRAMES[0]).resize((28, 16), Image.Resampling.BICUBIC)
    assert resize != "pillow-bicubic" or np.array_equal(clip[0], np.asarray(image))
    given = backbone.encode(clip[None])["frames"][0]
    expected = run_onnxruntime(tmp_path / "net.onnx", normalised(clip).transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(given, expected)
    assert "squash to 16x28" in backbone.provenance["preset"]["resize"]


def test_a_network_of_so_many_pictures_is_given_them_together(tmp_path):
    backbone = load_backbone(f"onnx:{write_network(tmp_path, shape=(2, 3, 24, 24))}", 4)
    clip = prepared(backbone)
    free = load_backbone(f"onnx:{write_network(tmp_path, shape=None, name='free')}", 4)
    assert np.array_equal(backbone.encode(clip[None])["frames"], free.encode(clip[None])["frames"])
    with pytest.raises(BackboneError, match="3 frames"):
        load_backbone(f"onnx:{tmp_path / 'net.onnx'}", 3)


def test_a_layer_inside_is_given_as_an_output_of_a_graph_would_be(tmp_path):
    path = write_network(tmp_path)
    backbone = load_backbone(f"onnx:{path}:inside", 4)
    clip = prepared(backbone)
    model = onnx.load(path)
    model.graph.output.append(onnx.ValueInfoProto(name="inside"))
    more = tmp_path / "more.onnx"
    more.write_bytes(model.SerializeToString())
    features = run_onnxruntime(more, np.ascontiguousarray(normalised(clip).transpose(0, 3, 1, 2)), "inside")
    expected = features.transpose(0, 2, 3, 1).reshape(4, -1, 3).mean(axis=1)
    assert np.array_equal(backbone.encode(clip[None])["frames"][0], expected)
    more.with_suffix(".toml").write_bytes(path.with_suffix(".toml").read_bytes())
    named = [load_backbone(f"onnx:{each}:out", 4).encode(clip[None])["frames"] for each in (path, more)]
    assert np.array_equal(*named)
    with pytest.raises(BackboneError, match="choose one of its outputs"):
        load_backbone(f"onnx:{more}", 4)


@pytest.mark.parametrize(("layout", "turn"), [("NCHW", [0, 2, 3, 1]), ("NHWC", [0, 3, 1, 2])])
@pytest.mark.parametrize("sides", [(24, 24), (16, 28)])
def test_a_layer_may_lie_otherwise_than_the_pictures(tmp_path, layout, turn, sides):
    fields = {key: value for key, value in FIELDS.items() if key != "shortest"}
    shape = ("n", 3, *sides) if layout == "NCHW" else ("n", *sides, 3)
    path = write_network(
        tmp_path, fields | {"fit": "squash", "size": [*sides], "layout": layout}, shape=shape
    )
    model = onnx.load(path)
    model.graph.node.append(onnx.helper.make_node("Transpose", ["x"], ["turned"], perm=turn))
    path.write_bytes(model.SerializeToString())
    turned, kept = (load_backbone(f"onnx:{path}:{layer}", 4) for layer in ("turned", "out"))
    clip = prepared(kept)
    twice = kept.encode(clip[None])["frames"]
    np.testing.assert_allclose(2 * turned.encode(clip[None])["frames"], twice, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["FLOAT", "UINT8"])  # black is 0 as uint8, whatever chance multiplies it
def test_a_network_that_gives_other_vectors_each_time_is_refused(tmp_path, kind):
    raw = {key: value for key, value in FIELDS.items() if key not in {"mean", "std"}} | {"type": "uint8"}
    path = write_network(tmp_path, FIELDS if kind == "FLOAT" else raw, kind=kind)
    model = onnx.load(path)
    model.graph.node[-1].CopyFrom(onnx.helper.make_node("Dropout", ["map", "", "training"], ["out"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "training"))
    path.write_bytes(model.SerializeToString())
    with pytest.raises(BackboneError, match="each time"):
        load_backbone(f"onnx:{path}", 32)


@pytest.mark.parametrize("field", ["layout", "type", "channels", "resize", "size", "fit", "mean", "shortest"])
def test_what_the_toml_does_not_say_is_refused(tmp_path, field):
    path = write_network(tmp_path, {key: value for key, value in FIELDS.items() if key != field})
    with pytest.raises(BackboneError, match=rf"net\.toml.*{field}"):
        load_backbone(f"onnx:{path}", 4)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"layout": "NHWC"}, "NHWC"),
        ({"layout": "NFCHW"}, "one of NCHW, NHWC"),
        ({"size": 20}, "20 x 20"),
        ({"type": "float16"}, "float16"),
        ({"scale": [1.0] * 3, "shift": [0.0] * 3}, "scale.*unknown"),
        ({"std": None}, "mean and std"),
        ({"fit": "squash"}, "shortest"),
        ({"shortest": 20}, "shortest that is no less"),
        ({"size": [24, 24]}, "square"),
        ({"size": [24, 24, 3]}, "pixels or height and width"),
        ({"resize": "opencv-bilinear"}, "opencv"),
        ({"resize": "nearest"}, "resize"),
        ({"colour": "sRGB"}, "colour"),
        ({"mean": [0.5, 0.5]}, "mean"),
        *(({"mean": [value] * 3}, "from 0") for value in (123.675, -1.0, nan, inf)),
        *(({"std": [value] * 3}, "from 0") for value in (58.395, 0.0, nan, inf)),
        ({"name": "camera"}, "another backbone"),
        ({"citation": "A. Author\u202e, 2026"}, "citation"),
        ({"citation": "two\nlines"}, "citation"),
    ],
)
def test_what_contradicts_the_network_or_itself_is_refused(tmp_path, more, words):
    path = write_network(
        tmp_path, {key: value for key, value in (FIELDS | more).items() if value is not None}
    )
    with pytest.raises(BackboneError, match=words):
        load_backbone(f"onnx:{path}", 4)


def test_the_page_describes_a_network_whole(tmp_path):
    page = Path(__file__).parents[2].joinpath("docs", "backbones.md").read_text(encoding="utf-8")
    described = re.search(r"```toml\n(layout.*?)```", page, re.DOTALL)[1]
    path = write_network(tmp_path, shape=("n", 3, 224, 224))
    path.with_suffix(".toml").write_text(described, encoding="utf-8")
    write_labels(tmp_path)
    backbone = load_backbone(f"onnx:{path}", 4)
    assert (backbone.name, backbone.provenance["licence"]) == ("lab-net", "MIT")
    assert backbone.group_names() == ("lab-net", "lab-net.answers")


GIT_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda whole: whole[: len(whole) // 2], "damaged"),
        (lambda _: GIT_LFS_POINTER, "git-lfs"),
        (lambda _: b"", "cannot load|empty"),
    ],
    ids=["half of it", "a pointer of Git LFS", "nothing"],
)
def test_a_file_that_holds_no_network_is_refused_by_what_it_is(tmp_path, damage, words):
    path = write_network(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BackboneError, match=words):
        load_backbone(f"onnx:{path}", 4)


def test_a_network_that_is_not_there_and_a_toml_in_its_place_are_named(tmp_path):
    path = write_network(tmp_path)
    path.with_name("absent.toml").write_bytes(path.with_suffix(".toml").read_bytes())
    with pytest.raises(FileNotFoundError, match=r"absent\.onnx"):
        load_backbone(f"onnx:{tmp_path / 'absent.onnx'}", 4)
    with pytest.raises(BackboneError, match=r"net\.toml"):
        load_backbone(f"onnx:{tmp_path / 'net.toml'}", 4)


def test_an_operator_of_a_lab_is_named(tmp_path):
    path = write_network(tmp_path)
    model = onnx.load(path)
    model.graph.node[-1].domain = "lab"
    model.opset_import.append(onnx.helper.make_opsetid("lab", 1))
    path.write_bytes(model.SerializeToString())
    with pytest.raises(BackboneError, match="lab:Add"):
        load_backbone(f"onnx:{path}", 4)


def test_a_layer_that_a_network_does_not_have_is_named(tmp_path):
    with pytest.raises(BackboneError, match="absent"):
        load_backbone(f"onnx:{write_network(tmp_path)}:absent", 4)


def test_a_network_without_a_toml_is_refused_with_the_fields_that_one_needs(tmp_path):
    path = write_network(tmp_path)
    path.with_suffix(".toml").unlink()
    with pytest.raises(BackboneError, match=r"no such file.*layout.*type.*channels.*resize.*size.*fit"):
        load_backbone(f"onnx:{path}", 4)


def test_a_folder_in_the_place_of_the_toml_is_named(tmp_path):
    path = write_network(tmp_path)
    path.with_suffix(".toml").unlink()
    path.with_suffix(".toml").mkdir()
    with pytest.raises(OSError, match=r"net\.toml"):
        load_backbone(f"onnx:{path}", 4)


@pytest.mark.parametrize("name", ["w.data", "./w.data", "../here/w.data", "net.onnx"])
@pytest.mark.parametrize("place", [".", "here"])
def test_weights_in_other_files_are_refused_wherever_they_lie(tmp_path, monkeypatch, name, place):
    (tmp_path / "here").mkdir()
    path = write_network(tmp_path / "here")
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(3, dtype=np.float32), "w"))
    # Of a product: what else would be read of other files, onnxruntime's own optimisations stumble over.
    model.graph.node[-1].CopyFrom(onnx.helper.make_node("MatMul", ["map", "w"], ["out"]))
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], name)
    for folder in (tmp_path, path.parent):
        (folder / "w.data").write_bytes(model.graph.initializer[0].raw_data)
    model.graph.initializer[0].ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    monkeypatch.chdir(tmp_path / place)
    with pytest.raises(BackboneError, match="other files"):
        load_backbone(f"onnx:{path}", 4)


@pytest.mark.parametrize("to", ["Expand", "Tile"])
def test_a_clip_that_a_network_fails_on_or_gives_other_shapes_of_is_told_by_its_name(tmp_path, to):
    path, make = write_network(tmp_path), onnx.helper.make_node
    model = onnx.load(path)
    del model.graph.node[-1]
    for name, values in (("ones", [1, 1]), ("width", [0, 1])):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(values), name))
    model.graph.node.extend([
        make("ReduceMax", ["x"], ["most"], keepdims=0),
        make("Relu", ["most"], ["above"]),
        make("Cast", ["above"], ["n"], to=onnx.TensorProto.INT64),  # 0 of black
        make("Mul", ["width", "n"], ["more"]),
        make("Add", ["ones", "more"], ["sizes"]),
        make(to, ["map", "sizes"], ["out"]),
    ])  # fmt: skip
    path.write_bytes(model.SerializeToString())
    encode = load_backbone(f"onnx:{path}", 4).encode
    encode(np.zeros((1, 4, 24, 24, 3), np.uint8))
    with pytest.raises(BackboneError, match=r"^net\.onnx: it") as refused:
        encode(np.full((1, 4, 24, 24, 3), 255, np.uint8))
    assert _reason(refused.value) == str(refused.value)


def test_what_is_not_installed_is_named_with_its_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "videos").mkdir()
    write_video(tmp_path / "videos" / "a.mp4", FRAMES, 4)
    monkeypatch.chdir(tmp_path)
    assert obygaze("manifest", "import", "folder", "videos", "--out", "clips.csv") == 0
    assert obygaze("extract", "clips.csv", "store", "--backbone", f"onnx:{write_network(tmp_path)}") == 1
    assert "obygaze[onnx]" in capsys.readouterr().err


def test_another_process_reads_the_same_file_or_none(tmp_path):
    path = write_network(tmp_path)
    encode = pickle.dumps(load_backbone(f"onnx:{path}", 4).encode)
    path.write_bytes(path.read_bytes() + b"\x32\x00")  # a field of no content: the same network
    runs = pickle.loads(encode)  # noqa: S301 - its own
    onnx_files._session.cache_clear()
    with pytest.raises(BackboneError, match="changed"):
        runs(np.zeros((1, 4, 24, 24, 3), np.uint8))


def test_networks_give_a_store_that_names_the_file_by_its_digest(tmp_path, monkeypatch):
    path = write_network(tmp_path, FIELDS | {"name": "lab-net", "licence": "MIT"})
    write_network(tmp_path, FIELDS | {"channels": "BGR"}, name="other")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "videos").mkdir()
    for number in range(2):
        write_video(tmp_path / "videos" / f"{number}.mp4", FRAMES[number:], 4)
    assert obygaze("manifest", "import", "folder", "videos", "--out", "clips.csv") == 0
    words = ["--n", 4, "--workers", 2, "--licence", "CC0-1.0"]
    words += ["--backbone", "onnx:net.onnx", "--backbone", "onnx:other.onnx:inside"]
    assert obygaze("extract", "clips.csv", "store", *words) == 0
    store = open_store(tmp_path / "store-1.0.0")
    arrays = {"frames", "pooled"}
    assert {name: {*store[name].arrays} for name in store.names} == {"lab-net": arrays, "other": arrays}
    provenance = store["lab-net"].provenance
    assert provenance["weights_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert provenance["licence"] == "MIT"
    assert store["lab-net"].pooled().shape == (2, 3)
    (tmp_path / "nets").mkdir()
    for each in (path, path.with_suffix(".toml")):
        each.rename(tmp_path / "nets" / each.name)
    for weights in (None, "other.onnx", "lab-net=other.toml"):
        with pytest.raises(BackboneError, match=r"other|--weights lab-net=FILE"):
            backbone_call(provenance, weights)
    like = ("search", "store-1.0.0", "--like", "videos/0.mp4", "--backbone", "lab-net", "--weights")
    for weights in ("nets/net.onnx", "lab-net=onnx:nets/net.onnx"):
        assert obygaze(*like, weights) == 0
    (tmp_path / "nets" / "net.toml").write_bytes((tmp_path / "other.toml").read_bytes())
    with pytest.raises(BackboneError, match="with its TOML"):
        backbone_call(provenance, "nets/net.onnx")


CLASSES = ("a red thing", "a green thing", "a blue thing")
WITH_CLASSES = FIELDS | {"classes": "labels.txt", "gives": "logits"}


def write_labels(folder, names=CLASSES):
    """Write names of classes beside a network, in the order of its numbers."""
    (folder / "labels.txt").write_text("\n".join(names) + "\n", encoding="utf-8")


def test_classes_that_a_file_beside_names_have_probabilities_beside_the_vectors(tmp_path):
    write_labels(tmp_path)
    backbone = load_backbone(f"onnx:{write_network(tmp_path, WITH_CLASSES)}", 4)
    clip = prepared(backbone)
    result = backbone.encode(clip[None])
    logits = result["frames"][0].astype(np.float64)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert result["answers/pooled"][0] == pytest.approx(shares.mean(axis=0), abs=1e-6)
    (side,) = backbone.side_groups
    assert side.provenance["architecture"]["features"] == list(CLASSES)
    plain = load_backbone(f"onnx:{write_network(tmp_path, name='plain')}", 4)
    assert np.array_equal(plain.encode(clip[None])["frames"], result["frames"])
    assert plain.side_groups == ()


def test_a_store_of_them_is_searched_and_grown_by_the_very_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_labels(tmp_path)
    path = write_network(tmp_path, WITH_CLASSES)
    write_video(tmp_path / "a.mp4", np.resize(FRAMES, (12, 32, 48, 3)), 8)
    clips = Manifest((Clip("a", "a", "a.mp4"),), tmp_path)
    store = extract(clips, tmp_path / "s", [f"onnx:{path}"], n_frames=4, licence="CC0-1.0", progress=False)
    assert classes_of(store["net.answers"]) == CLASSES
    maker = backbone_call(store["net.answers"].provenance, str(path))
    assert maker.name.startswith("onnx:")


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (FIELDS | {"classes": "labels.txt"}, CLASSES),  # logits or probabilities?
        (FIELDS | {"gives": "logits"}, CLASSES),  # of what?
        (WITH_CLASSES | {"classes": "../labels.txt"}, CLASSES),
        (WITH_CLASSES, CLASSES[:2]),  # of three
        (WITH_CLASSES, (*CLASSES[:2], CLASSES[0])),
        (WITH_CLASSES | {"gives": "probabilities"}, CLASSES),  # which are below 0
    ],
)
def test_classes_that_do_not_fit_the_network_are_refused(tmp_path, fields, names):
    write_labels(tmp_path, names)
    path = write_network(tmp_path, fields)
    with pytest.raises(BackboneError):
        load_backbone(f"onnx:{path}", 4)
