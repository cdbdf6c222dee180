"""Loading cannot lie: what is missing, in excess or of another shape is named, and nothing stays random."""

import json
import re
import shutil
import zipfile

import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError, InputError
from tests.later import later
from tests.test_door import ENDLESS, POSIX

torch = later("torch")
load_file = later("safetensors.torch", "load_file")
save_file = later("safetensors.torch", "save_file")
nn = later("torch.nn")
VivitConfig = later("transformers", "VivitConfig")
VivitForVideoClassification = later("transformers", "VivitForVideoClassification")
XCLIPVisionModel = later("transformers", "XCLIPVisionModel")
load_exactly = later("obygaze_features.backbones.checkpoint", "load_exactly")
load_pretrained = later("obygaze_features.backbones.checkpoint", "load_pretrained")
load_state_dict = later("obygaze_features.backbones.checkpoint", "load_state_dict")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")


@pytest.fixture
def copied(tmp_path, checkpoints):
    """Copy a checkpoint, for changes."""
    return lambda name="clip": shutil.copytree(checkpoints[name], tmp_path / name)


@pytest.fixture
def change(copied):
    """Copy a checkpoint with other tensors."""

    def changed(name, edit):
        folder = copied(name)
        tensors = load_file(folder / TENSORS)
        edit(tensors)
        save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
        return folder

    return changed


def load(folder, name="clip", n_frames=None):
    return load_backbone(name.replace("siglip", "clip"), n_frames, weights=str(folder))


def configure(folder, **fields):
    """Change fields of a configuration; those of its halves by a dict of theirs."""
    config = json.loads((folder / "config.json").read_text())
    for key, value in fields.items():
        config[key] = config[key] | value if isinstance(value, dict) and key in config else value
    (folder / "config.json").write_text(json.dumps(config))


TENSORS, PICKLED, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"
KEYS = {
    "xclip": "mit.position_embedding",
    "vivit": "embeddings.cls_token",
    "clip": "visual_projection.weight",
    "siglip": "vision_model.head.probe",
}
EDITS = {
    "missing": lambda tensors, key: tensors.pop(key),
    "no place for": lambda tensors, _: tensors.update({"surprise": torch.zeros(2)}),
    "another shape": lambda tensors, key: tensors.update({key: tensors[key][..., :-1].clone()}),
}


@pytest.mark.parametrize(("name", "key"), KEYS.items())
@pytest.mark.parametrize("case", EDITS)
def test_a_tensor_that_is_missing_in_excess_or_of_another_shape_is_named(change, name, key, case):
    weights = change(name, lambda tensors: EDITS[case](tensors, key))
    named = "surprise" if case == "no place for" else key.rpartition(".")[2]
    with pytest.raises(BackboneError, match=rf"1 tensors .*{case}: .*{named}"):
        load(weights, name)


def pickled(folder, change=lambda tensor: tensor, save=None):
    """Write the tensors as a file of torch, one of them changed."""
    tensors = load_file(folder / TENSORS)
    (save or torch.save)(tensors | {KEYS["clip"]: change(tensors[KEYS["clip"]])}, folder / PICKLED)
    (folder / TENSORS).unlink()


def pointer(folder, name):
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")


def keep(folder, count):
    (folder / TENSORS).write_bytes((folder / TENSORS).read_bytes()[:count])


def lie(folder, **fields):
    """Change what the header says of a tensor."""
    data = (folder / TENSORS).read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header[KEYS["clip"]] |= fields
    text = json.dumps(header).encode()
    (folder / TENSORS).write_bytes(len(text).to_bytes(8, "little") + text + data[end:])


def shards(folder, **places):
    """Write an index of shards, of which `a.safetensors` has all tensors."""
    (folder / TENSORS).rename(folder / "a.safetensors")
    tensors = load_file(folder / "a.safetensors")
    save_file({KEYS["clip"]: 2 * tensors[KEYS["clip"]]}, folder / "b.safetensors")
    (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(tensors, "a.safetensors") | places}))


def nested(folder, name):
    shards(folder)
    (folder / name).write_text("[" * 200_000 + "]" * 200_000)


def infinite(folder):
    tensors = load_file(folder / TENSORS)
    tensors[KEYS["clip"]].view(-1)[0] = float("inf")
    save_file(tensors, folder / TENSORS)


QUANTISED = {"quantization_config": {"quant_method": "bitsandbytes"}}
METHOD, CUT, LIE = (
    r"config\.json.*bitsandbytes",
    "cannot be read",
    r"model\.safetensors: cannot be read.*damaged",
)
REFUSED = {
    "of another name": (
        lambda f: pickled(f, save=save_file),
        rf"{PICKLED}: .*let its name end in .safetensors",
    ),
    "sparse": (lambda f: pickled(f, lambda tensor: tensor.to_sparse()), rf"{PICKLED}: .*sparse"),
    "no values": (lambda f: pickled(f, lambda tensor: tensor.to("meta")), rf"{PICKLED}: .*no values"),
    "quantised": (lambda f: configure(f, **QUANTISED), METHOD),
    "a quantised half": (lambda f: configure(f, vision_config=QUANTISED), METHOD),
    "a pointer": (lambda f: pointer(f, TENSORS), f"{TENSORS}.*git-lfs pointer"),
    "a pickle's pointer": (lambda f: (pickled(f), pointer(f, PICKLED)), f"{PICKLED}.*git-lfs pointer"),
    "a configuration's pointer": (lambda f: pointer(f, "config.json"), r"config\.json.*git-lfs pointer"),
    "a server's answer": (
        lambda f: (f / "preprocessor_config.json").write_text('{"error":"Entry not found"}'),
        r"preprocessor_config\.json.*server's error",
    ),
    **{f"cut to {n}": (lambda f, n=n: keep(f, n), CUT) for n in (0, 5, 1000, -1)},
    "places": (lambda f: lie(f, data_offsets=[0, 8]), LIE),
    "a huge shape": (lambda f: lie(f, shape=[2**40, 2**40]), LIE),
    "a negative shape": (lambda f: lie(f, shape=[-1]), LIE),
    "a type": (lambda f: lie(f, dtype="F99"), LIE),
    "nested": (lambda f: nested(f, "config.json"), "config.json"),
    "a nested index": (lambda f: nested(f, INDEX), INDEX),
    # Transformers applies it where peft is installed, and says nothing where it is not.
    "an adapter": (lambda f: (f / "adapter_config.json").write_text('{"peft_type": "LORA"}'), "adapter"),
    "not finite": (infinite, re.escape(KEYS["clip"])),
    "in two shards": (lambda f: shards(f, **{KEYS["clip"]: "b.safetensors"}), re.escape(KEYS["clip"])),
}


@pytest.mark.parametrize(("spoil", "reason"), REFUSED.values(), ids=REFUSED)
def test_why_files_are_not_loaded_is_true(copied, spoil, reason):
    spoil(folder := copied())
    with pytest.raises(BackboneError, match=reason):
        load(folder, n_frames=2)


def test_a_bare_vision_model_of_a_whole_xclip_loads_nothing_and_here_that_is_an_error(checkpoints):
    with quiet():
        random, report = XCLIPVisionModel.from_pretrained(checkpoints["xclip"], output_loading_info=True)
    assert len(report["missing_keys"]) == len(random.state_dict())  # in silence, but for a printed table
    with pytest.raises(BackboneError, match=r"63 tensors .*151 tensors"):
        load_pretrained(XCLIPVisionModel, find_weights(checkpoints["xclip"]), random.config)


def test_old_position_ids_are_allowed(change):
    def add_ids(tensors):
        tensors["vision_model.embeddings.position_ids"] = torch.zeros(2)

    assert load(change("clip", add_ids)).name == "clip"


def test_a_vivit_classifier_may_bring_its_classifier(tmp_path):
    config = VivitConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        tubelet_size=(2, 56, 56),
    )
    with quiet():
        VivitForVideoClassification(config).save_pretrained(tmp_path)
    assert any("classifier" in key for key in load_file(tmp_path / "model.safetensors"))
    assert load_backbone("vivit", weights=str(tmp_path)).provenance["architecture"]["hidden_size"] == 32


def test_a_half_precision_checkpoint_is_computed_in_float32(change):
    def half(tensors):
        for key, value in tensors.items():
            tensors[key] = value.half()

    network = load(change("clip", half), n_frames=2).encode.network
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}


def test_a_torch_checkpoint_in_a_folder_loads_too(copied):
    pickled(folder := copied())
    assert load(folder, n_frames=2).provenance["hub"] is None


WEIGHTS = {"torch.float64", "torch.float32", "torch.float16", "torch.bfloat16"}


def dtypes():
    return sorted({str(dtype) for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)})


def cast(tensor, name):
    """Return a tensor of zeros of a type; torch makes none of some types, whose bytes it only names."""
    dtype = getattr(torch, name.removeprefix("torch."))
    if name.startswith("torch.q"):
        return torch.quantize_per_tensor(tensor, 0.1, 0, dtype)
    return torch.zeros(tensor.numel() * dtype.itemsize, dtype=torch.uint8).view(dtype).reshape(tensor.shape)


@pytest.mark.filterwarnings("ignore")  # of torch about types that it will drop
@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_a_tensor_of_every_type_is_loaded_or_refused_by_its_name(copied, form):
    key, folder = KEYS["clip"], copied()
    whole = load_file(folder / TENSORS)
    (folder / TENSORS).unlink()
    fates = {}
    for name in dtypes():
        try:
            tensors = whole | {key: cast(whole[key], name)}
            if form == "bin":
                torch.save(tensors, folder / PICKLED)
            else:
                save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
        except (KeyError, RuntimeError, ValueError, NotImplementedError, AttributeError):
            continue  # neither torch nor safetensors saves such a tensor
        try:
            fates[name] = load(folder, n_frames=2).name
        except BackboneError as error:
            fates[name] = str(error)
    assert len(fates) > 15
    assert {name for name, fate in fates.items() if fate == "clip"} == WEIGHTS
    for name, fate in fates.items():
        word = re.match(r"torch\.([a-z]+\d*)", name)[1]  # safetensors names kinds otherwise
        assert fate == "clip" or (key in fate and word in fate and "\n" not in fate)


def test_a_network_of_its_own_file_takes_no_codes_either(tmp_path):
    network = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    tensors = network.state_dict()
    torch.save(tensors, tmp_path / "a.pt")
    load_exactly(network, find_weights(tmp_path / "a.pt"))
    torch.save(tensors | {"0.weight": tensors["0.weight"].to(torch.int8)}, tmp_path / "b.pt")
    with pytest.raises(BackboneError, match=r"b\.pt.*0\.weight is int8"):
        load_exactly(network, find_weights(tmp_path / "b.pt"))


@pytest.mark.parametrize("size", [[], [0, 16, 16], ["x"], "x", 0])
def test_a_configuration_without_frames_of_a_step_is_refused(copied, size):
    configure(folder := copied("vivit"), tubelet_size=size)
    with pytest.raises(BackboneError, match=r"config\.json"):
        load(folder, "vivit")


@pytest.mark.parametrize("prefix", ["module.", "model.", "clip.", "_orig_mod.module."])
def test_a_prefix_of_all_names_is_named(change, prefix):
    def rename(tensors):
        whole = dict(tensors)
        tensors.clear()
        tensors.update({prefix + key: value for key, value in whole.items()})

    with pytest.raises(BackboneError, match=f"all their names begin with '{prefix}'"):
        load(change("clip", rename))


def test_no_prefix_is_named_where_only_a_tensor_is_missing(change):
    with pytest.raises(BackboneError) as caught:
        load(change("xclip", lambda tensors: tensors.pop(KEYS["xclip"])))
    assert "begin with" not in str(caught.value)


@POSIX
@pytest.mark.parametrize("name", ["adapter_config.json", "generation_config.json", "tokenizer.model"])
@pytest.mark.parametrize("case", ENDLESS)
def test_what_lies_beside_weights_is_not_waited_for(copied, name, case):
    ENDLESS[case]((folder := copied()) / name, b"")
    with pytest.raises(InputError, match=name):
        load(folder)


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize("name", ["clip", "xclip-lsmdc"])
def test_a_pickle_with_more_than_tensors_is_never_run(tmp_path, checkpoints, name):
    folder = tmp_path / "trap"
    folder.mkdir()
    path = folder / "pytorch_model.bin"
    torch.save({"a": Trap()}, path)
    if name == "clip":
        shutil.copy(checkpoints["clip"] / "config.json", folder)
    with pytest.raises(BackboneError, match=r"cannot be read|refused"):
        load_backbone(name, weights=str(folder if name == "clip" else path))


HOSTILE = {
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


@pytest.mark.parametrize(("name", "fields", "place"), HOSTILE.values(), ids=HOSTILE)
def test_a_network_larger_than_its_files_is_refused_before_it_is_made(
    copied, monkeypatch, name, fields, place
):
    """The files are of 32 features and two layers; nothing of them is loaded, and no memory asked for."""
    configure(folder := copied(name), **fields)
    loads = staticmethod(lambda *_, **__: pytest.fail("it was loaded"))
    monkeypatch.setattr("transformers.PreTrainedModel.from_pretrained", loads)
    with pytest.raises(BackboneError, match=place):
        load(folder, name)


def test_a_width_that_is_null_is_that_of_the_half(copied):
    configure(folder := copied(), projection_dim=None)
    assert load(folder, n_frames=2).outputs[0].shape == (2, 24)


def test_tensors_of_more_numbers_than_their_file_has_bytes_are_refused(tmp_path):
    """A pickle may state a tensor of any shape over one number."""
    torch.save({"a": torch.zeros(1).expand(10**6, 10**6)}, tmp_path / "x.bin")
    with pytest.raises(BackboneError):
        load_state_dict(find_weights(tmp_path / "x.bin"))


def test_a_compressed_checkpoint_is_refused_before_it_is_unpacked(tmp_path):
    torch.save({"a": torch.zeros(10**6)}, tmp_path / "x.bin")
    with (
        zipfile.ZipFile(tmp_path / "x.bin") as plain,
        zipfile.ZipFile(tmp_path / "y.bin", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for member in plain.namelist():
            packed.writestr(member, plain.read(member))
    assert load_state_dict(find_weights(tmp_path / "x.bin"))["a"].shape == (10**6,)
    with pytest.raises(BackboneError, match=r"y\.bin"):
        find_weights(tmp_path / "y.bin")
