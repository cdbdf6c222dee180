"""Loading cannot lie: what is missing, in excess or of another shape is named, and nothing stays random."""

import json
import re
import shutil
import zipfile

import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError, InputError
from tests.lazy_import import lazy_import
from tests.test_untrusted import ENDLESS, POSIX

torch = lazy_import("torch")
load_file = lazy_import("safetensors.torch", "load_file")
save_file = lazy_import("safetensors.torch", "save_file")
nn = lazy_import("torch.nn")
VivitConfig = lazy_import("transformers", "VivitConfig")
VivitForVideoClassification = lazy_import("transformers", "VivitForVideoClassification")
XCLIPVisionModel = lazy_import("transformers", "XCLIPVisionModel")
load_exactly = lazy_import("obygaze_features.backbones.checkpoint", "load_exactly")
load_pretrained = lazy_import("obygaze_features.backbones.checkpoint", "load_pretrained")
load_state_dict = lazy_import("obygaze_features.backbones.checkpoint", "load_state_dict")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")


@pytest.fixture
def copy_checkpoint(tmp_path, tiny_checkpoints):
    """Copy a checkpoint, for changes."""
    return lambda name="clip": shutil.copytree(tiny_checkpoints[name], tmp_path / name)


@pytest.fixture
def copy_with_tensors(copy_checkpoint):
    """Copy a checkpoint and change its tensors by a function."""

    def copy(name, edit):
        folder = copy_checkpoint(name)
        tensors = load_file(folder / TENSORS)
        edit(tensors)
        save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
        return folder

    return copy


def load_backbone_from(folder, name="clip", n_frames=None):
    """Load a backbone with the weights in a folder; SigLIPs are loaded by the backbone `clip`, too."""
    return load_backbone(name.replace("siglip", "clip"), n_frames, weights=str(folder))


def change_configuration(folder, **fields):
    """Change fields of a config.json; one that is a dict there keeps keys that the new dict lacks."""
    config = json.loads((folder / "config.json").read_text())
    for name, value in fields.items():
        if isinstance(value, dict) and name in config:
            config[name] = config[name] | value
        else:
            config[name] = value
    (folder / "config.json").write_text(json.dumps(config))


TENSORS, PICKLED, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"
A_TENSOR_OF = {
    "xclip": "mit.position_embedding",
    "vivit": "embeddings.cls_token",
    "clip": "visual_projection.weight",
    "siglip": "vision_model.head.probe",
}
"""Checkpoint -> the name of one of its tensors."""


def remove(tensors, key):
    del tensors[key]


def add(tensors, _key):
    tensors["surprise"] = torch.zeros(2)


def shorten(tensors, key):
    tensors[key] = tensors[key][..., :-1].clone()


@pytest.mark.parametrize(("name", "tensor"), A_TENSOR_OF.items())
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (remove, "missing: .*LAST_PART"),
        (add, "no place for: .*surprise"),
        (shorten, "another shape: .*LAST_PART"),
    ],
    ids=["missing", "in excess", "one number shorter in its last dimension"],
)
def test_a_tensor_that_does_not_fit_the_network_is_named(copy_with_tensors, name, tensor, change, reason):
    """One tensor of a tiny checkpoint is removed or shortened, or another one, "surprise", is added.

    The message names it; only the last part of its name, such as `weight`, is the same in our network and in
    the file. All other tensors fit, so that the message does not say that all names begin otherwise.
    """
    folder = copy_with_tensors(name, lambda tensors: change(tensors, tensor))
    last_part_of_name = tensor.split(".")[-1]
    message = "1 tensors .*" + reason.replace("LAST_PART", last_part_of_name)

    with pytest.raises(BackboneError, match=message) as refused:
        load_backbone_from(folder, name)

    assert "begin with" not in str(refused.value)


def to_pickle(folder, change=None, save=None):
    """Write the tensors, one of which `change` changes, as a file of torch in place of safetensors."""
    tensors = load_file(folder / TENSORS)
    name = A_TENSOR_OF["clip"]
    if change is not None:
        tensors[name] = change(tensors[name])
    write = torch.save if save is None else save
    write(tensors, folder / PICKLED)
    (folder / TENSORS).unlink()


def write_lfs_pointer(folder, name):
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")


def cut_to(folder, count):
    (folder / TENSORS).write_bytes((folder / TENSORS).read_bytes()[:count])


def change_header(folder, **fields):
    """Change what the header of a safetensors file says of a tensor.

    The file is the header's length (8 bytes), the header (JSON), and the numbers of all tensors.
    """
    data = (folder / TENSORS).read_bytes()
    end_of_header = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end_of_header])
    header[A_TENSOR_OF["clip"]] |= fields
    new_header = json.dumps(header).encode()
    new_length = len(new_header).to_bytes(8, "little")
    (folder / TENSORS).write_bytes(new_length + new_header + data[end_of_header:])


def write_shards(folder, index_overrides=()):
    """Write all weights as a.safetensors, one of them doubled as b.safetensors, and an index."""
    (folder / TENSORS).rename(folder / "a.safetensors")
    tensors = load_file(folder / "a.safetensors")
    name = A_TENSOR_OF["clip"]
    save_file({name: 2 * tensors[name]}, folder / "b.safetensors")
    index = {"weight_map": dict.fromkeys(tensors, "a.safetensors") | dict(index_overrides)}
    (folder / INDEX).write_text(json.dumps(index))


def write_nested_json(folder, name):
    """Write lists in lists, deeper than a parser goes, in place of the configuration or the index."""
    write_shards(folder)  # an index is read only where the weights are divided
    (folder / name).write_text("[" * 200_000 + "]" * 200_000)


def write_infinite_number(folder):
    tensors = load_file(folder / TENSORS)
    tensors[A_TENSOR_OF["clip"]].view(-1)[0] = float("inf")
    save_file(tensors, folder / TENSORS)


QUANTISED = {"quantization_config": {"quant_method": "bitsandbytes"}}
METHOD, CUT, LIE = (
    r"config\.json.*bitsandbytes",
    "cannot be read",
    r"model\.safetensors: cannot be read.*damaged",
)
DAMAGED_FILES = {
    # What is wrong -> the function that damages the folder, and what the message says.
    "of another name": (
        lambda f: to_pickle(f, save=save_file),
        rf"{PICKLED}: .*let its name end in .safetensors",
    ),
    "sparse": (lambda f: to_pickle(f, lambda tensor: tensor.to_sparse()), rf"{PICKLED}: .*sparse"),
    "no values": (lambda f: to_pickle(f, lambda tensor: tensor.to("meta")), rf"{PICKLED}: .*no values"),
    "quantised": (lambda f: change_configuration(f, **QUANTISED), METHOD),
    "a quantised half": (lambda f: change_configuration(f, vision_config=QUANTISED), METHOD),
    "a pointer": (lambda f: write_lfs_pointer(f, TENSORS), f"{TENSORS}.*git-lfs pointer"),
    "a pickle's pointer": (
        lambda f: (to_pickle(f), write_lfs_pointer(f, PICKLED)),
        f"{PICKLED}.*git-lfs pointer",
    ),
    "a configuration's pointer": (
        lambda f: write_lfs_pointer(f, "config.json"),
        r"config\.json.*git-lfs pointer",
    ),
    "a server's answer": (
        lambda f: (f / "preprocessor_config.json").write_text('{"error":"Entry not found"}'),
        r"preprocessor_config\.json.*server's error",
    ),
    **{f"cut to {n}": (lambda f, n=n: cut_to(f, n), CUT) for n in (0, 5, 1000, -1)},
    "places": (lambda f: change_header(f, data_offsets=[0, 8]), LIE),
    "a huge shape": (lambda f: change_header(f, shape=[2**40, 2**40]), LIE),
    "a negative shape": (lambda f: change_header(f, shape=[-1]), LIE),
    "a type": (lambda f: change_header(f, dtype="F99"), LIE),
    "nested": (lambda f: write_nested_json(f, "config.json"), "config.json"),
    "a nested index": (lambda f: write_nested_json(f, INDEX), INDEX),
    # Transformers applies it where peft is installed, and says nothing where it is not.
    "an adapter": (lambda f: (f / "adapter_config.json").write_text('{"peft_type": "LORA"}'), "adapter"),
    "not finite": (write_infinite_number, re.escape(A_TENSOR_OF["clip"])),
    "in two shards": (
        lambda f: write_shards(f, [(A_TENSOR_OF["clip"], "b.safetensors")]),
        re.escape(A_TENSOR_OF["clip"]),
    ),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGED_FILES.values(), ids=DAMAGED_FILES)
def test_damaged_files_are_refused_with_the_true_reason(copy_checkpoint, damage, reason):
    """A case of DAMAGED_FILES is a function that damages a folder, and what the message says (`reason`).

    It does one thing to a good checkpoint of CLIP, such as to cut model.safetensors to 5 bytes, of which the
    message is "cannot be read". Libraries fail on such files with misleading messages, or load them wrongly.
    """
    folder = copy_checkpoint("clip")
    damage(folder)

    with pytest.raises(BackboneError, match=reason):
        load_backbone_from(folder, n_frames=2)


def test_a_class_that_matches_no_tensor_of_the_file_is_refused(tiny_checkpoints):
    """The file is of a whole X-CLIP, whose names have a prefix before those of its vision model.

    transformers finds no tensor of the vision model in it and leaves all of them random; we refuse.
    """
    folder = tiny_checkpoints["xclip"]
    with quiet():
        network, report = XCLIPVisionModel.from_pretrained(folder, output_loading_info=True)
    n_of_class = len(network.state_dict())
    n_in_file = len(load_file(folder / "model.safetensors"))
    assert len(report["missing_keys"]) == n_of_class  # to transformers, all are missing

    with pytest.raises(BackboneError, match=f"{n_of_class} tensors .*{n_in_file} tensors"):
        load_pretrained(XCLIPVisionModel, find_weights(folder), network.config)


def test_old_position_ids_are_allowed(copy_with_tensors):
    """Older releases of transformers saved position ids, which are 0, 1, 2, ... and not learnt."""

    def add_position_ids(tensors):
        tensors["vision_model.embeddings.position_ids"] = torch.zeros(2)

    folder = copy_with_tensors("clip", add_position_ids)

    assert load_backbone_from(folder).name == "clip"


def test_weights_of_a_vivit_may_have_tensors_of_a_classifier_which_are_not_loaded(tmp_path):
    """A tiny ViViT (vectors of 32 numbers) was saved as a network for classification.

    Its file also has the tensors of the last layer, which turns vectors into classes. The backbone `vivit`
    gives the vectors before it. In general, a tensor for which a network has no place is an error.
    """
    vector_length = 32
    config = VivitConfig(
        hidden_size=vector_length,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        tubelet_size=(2, 56, 56),
    )
    with quiet():
        VivitForVideoClassification(config).save_pretrained(tmp_path)
    names_in_file = load_file(tmp_path / "model.safetensors").keys()
    assert any("classifier" in name for name in names_in_file)

    backbone = load_backbone("vivit", weights=str(tmp_path))

    assert backbone.provenance["architecture"]["hidden_size"] == vector_length


def test_a_half_precision_checkpoint_is_computed_in_float32(copy_with_tensors):
    """Weights in float16 save disk space; computing in float16 would lose digits."""

    def convert_to_float16(tensors):
        for key, value in tensors.items():
            tensors[key] = value.half()

    folder = copy_with_tensors("clip", convert_to_float16)

    network = load_backbone_from(folder, n_frames=2).encode.network

    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}


def test_a_torch_checkpoint_in_a_folder_loads_too(copy_checkpoint):
    """Older repositories have pytorch_model.bin, a pickle, in place of model.safetensors."""
    folder = copy_checkpoint("clip")
    to_pickle(folder)

    backbone = load_backbone_from(folder, n_frames=2)

    assert backbone.provenance["hub"] is None  # it is from a folder, not from a hub


def torch_dtypes():
    """List all types of numbers that torch has, in the order of their names."""
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return sorted(dtypes, key=str)


def name_of(dtype):
    """Return "float32" of torch.float32."""
    return str(dtype).removeprefix("torch.")


def zeros_of(dtype, shape):
    """Return a tensor of zeros of any type, made of zero bytes: `torch.zeros` does not know all types."""
    is_quantised = str(dtype).startswith("torch.q")
    if is_quantised:
        return torch.quantize_per_tensor(torch.zeros(shape), scale=0.1, zero_point=0, dtype=dtype)
    n_bytes = shape.numel() * dtype.itemsize
    zero_bytes = torch.zeros(n_bytes, dtype=torch.uint8)
    return zero_bytes.view(dtype).reshape(shape)


def save_with_dtype(folder, dtype, form):
    """Replace one tensor by zeros of another type; return False where no such file can be written."""
    tensors = load_file(folder / TENSORS)
    key = A_TENSOR_OF["clip"]
    try:
        tensors[key] = zeros_of(dtype, tensors[key].shape)
        if form == "bin":
            torch.save(tensors, folder / PICKLED)
            (folder / TENSORS).unlink()
        else:
            save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
    except (KeyError, RuntimeError, ValueError, NotImplementedError, AttributeError):
        return False
    return True


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of torch about types that it will drop
@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_a_tensor_of_every_type_is_loaded_or_refused_by_its_name(copy_checkpoint, form):
    """One tensor of a good checkpoint is replaced by one of each type of numbers that torch has.

    Floats of 16 bits or more are loaded. Integers and floats of 8 bits need a scale to be weights, so a
    network of them would be wrong.
    """
    n_files = 0
    for dtype in torch_dtypes():
        folder = copy_checkpoint("clip")
        could_be_written = save_with_dtype(folder, dtype, form)
        if could_be_written:
            n_files += 1
            if name_of(dtype) in {"float64", "float32", "float16", "bfloat16"}:
                load_backbone_from(folder, n_frames=2)
            else:
                assert_refused_by_name(folder, dtype)
        shutil.rmtree(folder)

    assert n_files > 15  # some types cannot be written, and most can


def assert_refused_by_name(folder, dtype):
    """See that loading ends with one line that names the tensor and its type, such as quint4 for quint4x2."""
    short_name = re.match(r"[a-z]+\d*", name_of(dtype))[0]
    with pytest.raises(BackboneError, match=short_name) as refused:
        load_backbone_from(folder, n_frames=2)
    assert A_TENSOR_OF["clip"] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_integer_weights_are_refused_but_not_a_count_of_batches(tmp_path):
    """Integer weights need a scale, which the file of a plain network does not have.

    BatchNorm1d counts its batches in an int64, which is no weight.
    """
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    tensors = network.state_dict()
    torch.save(tensors, tmp_path / "float.pt")
    tensors["0.weight"] = tensors["0.weight"].to(torch.int8)
    torch.save(tensors, tmp_path / "int.pt")

    load_exactly(network, find_weights(tmp_path / "float.pt"))
    with pytest.raises(BackboneError, match=r"int\.pt.*0\.weight is int8"):
        load_exactly(network, find_weights(tmp_path / "int.pt"))


@pytest.mark.parametrize("tubelet_size", [[], [0, 16, 16], ["x"], "x", 0], ids=str)
def test_a_vivit_without_a_sensible_tubelet_size_is_refused(copy_checkpoint, tubelet_size):
    """A tubelet, the block that becomes one token, has three positive sizes: frames, height and width.

    The field of the configuration beside a tiny ViViT's weights is replaced.
    """
    folder = copy_checkpoint("vivit")
    change_configuration(folder, tubelet_size=tubelet_size)

    with pytest.raises(BackboneError, match=r"config\.json"):
        load_backbone_from(folder, "vivit")


@pytest.mark.parametrize("prefix", ["module.", "model.", "clip.", "_orig_mod.module."])
def test_a_prefix_of_the_names_of_all_tensors_is_named(copy_with_tensors, prefix):
    """Training frameworks put a prefix before each name, so that no name fits."""

    def put_prefix_before_each_name(tensors):
        for name in list(tensors):
            tensors[prefix + name] = tensors.pop(name)

    folder = copy_with_tensors("clip", put_prefix_before_each_name)

    with pytest.raises(BackboneError, match=f"all their names begin with '{prefix}'"):
        load_backbone_from(folder)


@POSIX
@pytest.mark.parametrize("name", ["adapter_config.json", "generation_config.json", "tokenizer.model"])
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_pipe_or_device_beside_the_weights_is_refused_at_once(copy_checkpoint, name, kind):
    """Reading a pipe or a device such as /dev/zero may never end, so it is not opened.

    ENDLESS has functions that make such a file at a path, here beside the weights of a tiny CLIP.
    """
    folder = copy_checkpoint("clip")
    make_endless_file = ENDLESS[kind]
    make_endless_file(folder / name, b"")

    with pytest.raises(InputError, match=name):
        load_backbone_from(folder)


class FailsTheTestWhenUnpickled:
    """An object whose pickle calls pytest.fail when it is loaded."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize(
    ("name", "weights"),
    [("clip", "."), ("xclip-lsmdc", "pytorch_model.bin")],
    ids=["in a folder", "a file of its own"],
)
def test_code_in_a_pickle_is_never_run(tmp_path, tiny_checkpoints, name, weights):
    """A pickle can run any code when it is loaded, and checkpoints come from strangers.

    The code in this pickle would fail the test.
    """
    torch.save({"a": FailsTheTestWhenUnpickled()}, tmp_path / "pytorch_model.bin")
    shutil.copy(tiny_checkpoints["clip"] / "config.json", tmp_path)

    with pytest.raises(BackboneError, match=r"cannot be read|refused"):
        load_backbone(name, weights=str(tmp_path / weights))


HOSTILE_FIELDS = {
    # What the network would be -> checkpoint, fields of its configuration, and what the message names.
    "of petabytes": ("vivit", {"hidden_size": 10**7}, "config.json"),
    "of gigabytes, which are granted": ("clip", {"vision_config": {"hidden_size": 60_000}}, "config.json"),
    "of pictures without end": ("siglip", {"vision_config": {"image_size": 10**6}}, "config.json"),
    "of more tensors than any": ("xclip", {"vision_config": {"num_hidden_layers": 4000}}, "config.json"),
    "of layers without end": ("clip", {"vision_config": {"num_hidden_layers": 10**7}}, "num_hidden_layers"),
    "of labels without end": ("vivit", {"num_labels": 10**6}, "num_labels"),
    "whose field is no number": ("vivit", {"tubelet_size": "x"}, "config.json.*tubelet_size"),
    "whose field is too short": ("vivit", {"tubelet_size": [2]}, "config.json"),
    "of pictures without a side": ("vivit", {"image_size": []}, "config.json.*image_size"),
    "of pictures of a text": ("clip", {"vision_config": {"image_size": "x"}}, "config.json.*image_size"),
    "that divides by nothing": ("xclip", {"vision_config": {"patch_size": 0}}, "config.json"),
}


@pytest.mark.long
@pytest.mark.parametrize(("name", "fields", "named"), HOSTILE_FIELDS.values(), ids=HOSTILE_FIELDS)
def test_a_configuration_that_does_not_fit_its_weights_is_refused_unloaded(
    copy_checkpoint, monkeypatch, name, fields, named
):
    """config.json is changed to say something else than the weights, such as 10 million features.

    The files have 32 features and two layers, so none of these fields can be true. The network must not be
    made, since it might need petabytes.
    """
    folder = copy_checkpoint(name)
    change_configuration(folder, **fields)
    fail_the_test = staticmethod(lambda *_, **__: pytest.fail("it was loaded"))
    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", fail_the_test)

    with pytest.raises(BackboneError, match=named):
        load_backbone_from(folder, name)


def test_a_null_projection_width_is_that_of_the_vision_config(copy_checkpoint):
    """Some checkpoints state the width of the projection, here 24, in their vision_config alone."""
    folder = copy_checkpoint("clip")
    change_configuration(folder, projection_dim=None)
    change_configuration(folder, vision_config={"projection_dim": 24})

    backbone = load_backbone_from(folder, n_frames=2)

    assert backbone.outputs[0].shape == (2, 24)  # frames, width


def test_tensors_of_more_numbers_than_their_file_has_bytes_are_refused(tmp_path):
    """A pickle may state a tensor of any shape over one number, here of 10^12 numbers."""
    one_number_repeated = torch.zeros(1).expand(10**6, 10**6)
    torch.save({"a": one_number_repeated}, tmp_path / "x.bin")

    with pytest.raises(BackboneError):
        load_state_dict(find_weights(tmp_path / "x.bin"))


def test_a_compressed_checkpoint_is_refused_before_it_is_unpacked(tmp_path):
    """A file of torch is a ZIP archive without compression, so no honest file needs it.

    A compressed file of few bytes could unpack to any size.
    """
    plain_file = tmp_path / "x.bin"
    torch.save({"a": torch.zeros(10**6)}, plain_file)
    assert load_state_dict(find_weights(plain_file))["a"].shape == (10**6,)
    compressed_file = tmp_path / "y.bin"
    with (
        zipfile.ZipFile(plain_file) as plain,
        zipfile.ZipFile(compressed_file, "w", zipfile.ZIP_DEFLATED) as compressed,
    ):
        for member in plain.namelist():
            compressed.writestr(member, plain.read(member))

    with pytest.raises(BackboneError, match=r"y\.bin"):
        find_weights(compressed_file)
