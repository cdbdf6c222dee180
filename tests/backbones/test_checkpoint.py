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
PreTrainedModel = later("transformers", "PreTrainedModel")
VivitConfig = later("transformers", "VivitConfig")
VivitForVideoClassification = later("transformers", "VivitForVideoClassification")
XCLIPVisionModel = later("transformers", "XCLIPVisionModel")
load_exactly = later("obygaze_features.backbones.checkpoint", "load_exactly")
load_pretrained = later("obygaze_features.backbones.checkpoint", "load_pretrained")
load_state_dict = later("obygaze_features.backbones.checkpoint", "load_state_dict")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")


@pytest.fixture
def change(tmp_path, checkpoints):
    """Copy a checkpoint with other tensors."""

    def changed(name, edit):
        folder = tmp_path / name
        shutil.copytree(checkpoints[name], folder)
        tensors = load_file(folder / "model.safetensors")
        edit(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return str(folder)

    return changed


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
@pytest.mark.parametrize("what", EDITS)
def test_a_tensor_that_is_missing_in_excess_or_of_another_shape_is_named(change, name, key, what):
    weights = change(name, lambda tensors: EDITS[what](tensors, key))
    named = "surprise" if what == "no place for" else key.rpartition(".")[2]
    with pytest.raises(BackboneError, match=rf"1 tensors .*{what}: .*{named}"):
        load_backbone(name.replace("siglip", "clip"), weights=weights)


@pytest.mark.parametrize("what", ["let its name end in .safetensors", "sparse", "no values"])
def test_why_a_file_is_not_loaded_is_true(checkpoints, tmp_path, what):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    tensors = load_file(folder / "model.safetensors")
    tensor = tensors[KEYS["clip"]]
    other = {"sparse": tensor.to_sparse(), "no values": tensor.to("meta")}.get(what, tensor)
    save = torch.save if what in {"sparse", "no values"} else save_file
    save(tensors | {KEYS["clip"]: other}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(BackboneError, match=rf"pytorch_model\.bin: .*{what}"):
        load_backbone("clip", weights=str(folder))


def test_a_bare_vision_model_of_a_whole_xclip_loads_nothing_and_here_that_is_an_error(checkpoints):
    with quiet():
        random, report = XCLIPVisionModel.from_pretrained(checkpoints["xclip"], output_loading_info=True)
    assert len(report["missing_keys"]) == len(random.state_dict())  # in silence, but for a printed table
    with pytest.raises(BackboneError, match=r"63 tensors .*151 tensors"):
        load_pretrained(XCLIPVisionModel, find_weights(checkpoints["xclip"]), random.config)


def test_old_position_ids_are_allowed(change):
    def add_ids(tensors):
        tensors["vision_model.embeddings.position_ids"] = torch.zeros(2)

    assert load_backbone("clip", weights=change("clip", add_ids)).name == "clip"


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

    network = load_backbone("clip", 2, weights=change("clip", half)).encode.network
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}


def test_a_torch_checkpoint_in_a_folder_loads_too(tmp_path, checkpoints):
    folder = tmp_path / "old"
    shutil.copytree(checkpoints["clip"], folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert load_backbone("clip", 2, weights=str(folder)).provenance["hub"] is None


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
def test_a_tensor_of_every_type_is_loaded_or_refused_by_its_name(tmp_path, checkpoints, form):
    key = KEYS["clip"]
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    whole = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    fates = {}
    for name in dtypes():
        try:
            tensors = whole | {key: cast(whole[key], name)}
            if form == "bin":
                torch.save(tensors, folder / "pytorch_model.bin")
            else:
                save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        except (KeyError, RuntimeError, ValueError, NotImplementedError, AttributeError):
            continue  # neither torch nor safetensors saves such a tensor
        try:
            fates[name] = load_backbone("clip", 2, weights=str(folder)).name
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


@pytest.mark.parametrize("half", [False, True])
def test_a_configuration_that_says_quantised_is_refused_by_the_method(tmp_path, checkpoints, half):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    config = json.loads((folder / "config.json").read_text())
    (config["vision_config"] if half else config)["quantization_config"] = {"quant_method": "bitsandbytes"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BackboneError, match=r"config\.json.*bitsandbytes"):
        load_backbone("clip", 2, weights=str(folder))


@pytest.mark.parametrize("size", [[], [0, 16, 16], ["x"], "x", 0])
def test_a_configuration_without_frames_of_a_step_is_refused(tmp_path, checkpoints, size):
    folder = shutil.copytree(checkpoints["vivit"], tmp_path / "vivit")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"tubelet_size": size}))
    with pytest.raises(BackboneError, match=r"config\.json"):
        load_backbone("vivit", weights=str(folder))


@pytest.mark.parametrize("prefix", ["module.", "model.", "clip.", "_orig_mod.module."])
def test_a_prefix_of_all_names_is_named(change, prefix):
    def rename(tensors):
        whole = dict(tensors)
        tensors.clear()
        tensors.update({prefix + key: value for key, value in whole.items()})

    with pytest.raises(BackboneError, match=f"'{prefix}'"):
        load_backbone("clip", 2, weights=change("clip", rename))
    with pytest.raises(BackboneError) as caught:
        load_backbone("clip", 2, weights=change("xclip", lambda tensors: tensors.pop(KEYS["xclip"])))
    assert "begin with" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "config.json"])
def test_a_pointer_in_place_of_a_file_is_called_one(tmp_path, checkpoints, name):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    if name == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(BackboneError, match=f"{name}.*git-lfs pointer"):
        load_backbone("clip", 2, weights=str(folder))


@pytest.mark.parametrize("keep", [0, 5, 1000, -1])
def test_a_truncated_file_is_an_error(tmp_path, checkpoints, keep):
    folder = tmp_path / "cut"
    shutil.copytree(checkpoints["clip"], folder)
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BackboneError, match="cannot be read"):
        load_backbone("clip", weights=str(folder))


@pytest.mark.parametrize(
    "lie", [{"data_offsets": [0, 8]}, {"shape": [2**40, 2**40]}, {"shape": [-1]}, {"dtype": "F99"}]
)
def test_a_header_that_its_tensors_do_not_fit_is_damage(tmp_path, checkpoints, lie):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "lie")
    path = folder / "model.safetensors"
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header[KEYS["clip"]] |= lie
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])
    with pytest.raises(BackboneError, match=r"model\.safetensors: cannot be read.*damaged"):
        load_backbone("clip", weights=str(folder))


@POSIX
@pytest.mark.parametrize("name", ["adapter_config.json", "generation_config.json", "tokenizer.model"])
@pytest.mark.parametrize("what", ENDLESS)
def test_what_lies_beside_weights_is_not_waited_for(tmp_path, checkpoints, name, what):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    ENDLESS[what](folder / name, b"")
    with pytest.raises(InputError, match=name):
        load_backbone("clip", 2, weights=str(folder))


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
    tmp_path, checkpoints, monkeypatch, name, fields, place
):
    """The files are of 32 features and two layers; nothing of them is loaded, and no memory asked for."""
    folder = shutil.copytree(checkpoints[name], tmp_path / name)
    config = json.loads((folder / "config.json").read_text())
    for key, value in fields.items():
        config[key] = config[key] | value if isinstance(value, dict) else value
    (folder / "config.json").write_text(json.dumps(config))
    loads = staticmethod(lambda *_, **__: pytest.fail("it was loaded"))
    monkeypatch.setattr(PreTrainedModel, "from_pretrained", loads)
    with pytest.raises(BackboneError, match=place):
        load_backbone(name.replace("siglip", "clip"), weights=str(folder))


def test_a_width_that_is_null_is_that_of_the_half(tmp_path, checkpoints):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"projection_dim": None}))
    assert load_backbone("clip", 2, weights=str(folder)).outputs[0].shape == (2, 24)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_nesting_without_end_is_an_error(tmp_path, checkpoints, name):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = {"weight_map": {"logit_scale": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / name).write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(BackboneError, match=name):
        load_backbone("clip", weights=str(folder))


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


def test_weights_beside_an_adapter_are_refused(tmp_path, checkpoints):
    """Transformers applies it where peft is installed, and says nothing where it is not."""
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(BackboneError, match="adapter"):
        load_backbone("clip", 2, weights=str(folder))


def test_weights_that_are_not_finite_are_refused_by_name(tmp_path, checkpoints):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    tensors = load_file(folder / "model.safetensors")
    tensors[KEYS["clip"]].view(-1)[0] = float("inf")
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(BackboneError, match=re.escape(KEYS["clip"])):
        load_backbone("clip", 2, weights=str(folder))


def test_a_tensor_in_two_shards_is_refused(tmp_path, checkpoints):
    folder = shutil.copytree(checkpoints["clip"], tmp_path / "clip")
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    tensors = load_file(folder / "a.safetensors")
    save_file({KEYS["clip"]: 2 * tensors[KEYS["clip"]]}, folder / "b.safetensors")
    places = dict.fromkeys(tensors, "a.safetensors") | {KEYS["clip"]: "b.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(BackboneError, match=re.escape(KEYS["clip"])):
        load_backbone("clip", 2, weights=str(folder))
