"""Backbones that read texts: what plain transformers gives, whatever the batch, in the image half's space."""

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from obygaze_features.backbones import load_backbone, load_text_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import find_weights
from obygaze_features.commands.weights_commands import fetch
from obygaze_features.errors import BackboneError
from obygaze_features.store.provenance import embedding_space
from tests.later import cpu, later
from tests.rounding import network_rounding
from tests.tiny_checkpoints import LIMIT, tiny_text_checkpoint, write_modules

torch = later("torch")
transformers = later("transformers")
Compute = later("obygaze_features.backbones.compute", "Compute")
TextRunner = later("obygaze_features.backbones.runner", "TextRunner")
load_lsmdc = later("obygaze_features.backbones.xclip_lsmdc", "load")
sentence_vectors = later("obygaze_features.backbones.xclip_lsmdc", "sentence_vectors")

NETWORK_ROUNDING = network_rounding(1)
TEXTS = ("a", "a photo of a man", "sad man", "A Sad Man")
LONG = "a sad man of a sad man of a sad man of a sad man"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    names = ("clip", "siglip", "sentence", "xclip", "xclip-lsmdc")
    return {name: tiny_text_checkpoint(name, folder / name) for name in names}


def load(name, folder, **options):
    return load_text_backbone(name, weights=str(folder), compute=cpu(), **options)


def vectors(backbone, texts):
    return np.concatenate([backbone.encode(np.array([one.ids])) for one in backbone.tokenize(texts)])


def rewrite(path, change):
    """Change a JSON file in place."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def padded(folder, texts, **how):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer(list(texts), return_tensors="pt", truncation=True, **({"padding": True} | how))


@pytest.mark.parametrize("end", [2, 98])
@pytest.mark.parametrize(("name", "network"), [("clip", "CLIPModel"), ("xclip", "XCLIPModel")])
def test_texts_are_transformers_own_whatever_it_takes_for_the_end(folders, tmp_path, name, network, end):
    folder = shutil.copytree(folders[name], tmp_path / name)
    rewrite(folder / "config.json", lambda config: config["text_config"].update(eos_token_id=end))
    backbone = load(f"{name}-text", folder)
    model = getattr(transformers, network).from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model.get_text_features(**padded(folder, (*TEXTS, LONG))).pooler_output
    np.testing.assert_allclose(vectors(backbone, (*TEXTS, LONG)), expected, atol=NETWORK_ROUNDING)
    assert backbone.width == expected.shape[1]


def test_cosines_of_the_two_halves_of_x_clip_are_its_logits_without_video_specific_prompts(folders, clips):
    model = transformers.XCLIPModel.from_pretrained(folders["xclip"]).eval()
    model.prompts_generator.alpha.data.zero_()
    videos = load_backbone("xclip", weights=str(folders["xclip"]), preset="xclip", compute=cpu())
    affine = choose_preset("xclip", ("xclip",)).affine
    pixels = torch.tensor(clips[:2]).permute(0, 1, 4, 2, 3) * torch.tensor(affine.scale)[:, None, None]
    pixels += torch.tensor(affine.shift)[:, None, None]
    with torch.inference_mode():
        expected = model(pixel_values=pixels, **padded(folders["xclip"], TEXTS)).logits_per_video
        expected = expected / model.logit_scale.exp()
    texts, result = vectors(load("xclip-text", folders["xclip"]), TEXTS), videos.encode(clips[:2])["pooled"]
    np.testing.assert_allclose(unit(result) @ unit(texts).T, expected, atol=NETWORK_ROUNDING)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_lsmdc_text_is_the_oracles_and_gives_its_video_sentence_score(shared_data):
    oracle = shared_data / "oracles" / "xclip_lsmdc_oracle"
    inputs, expected = np.load(oracle / "inputs.npz"), np.load(oracle / "expected_fp32.npz")
    weights = oracle / "weights.safetensors"
    network, _ = load_lsmdc(find_weights(weights))
    scale = float(network.logit_scale.detach().exp())
    matrix = network.global_mat_weight.detach().numpy()
    result = TextRunner("xclip-lsmdc-text", network, sentence_vectors, cpu())(inputs["input_ids"])
    np.testing.assert_allclose(
        result, unit(expected["sentence_output"][:, 0]) @ matrix, atol=NETWORK_ROUNDING
    )
    scores = scale * result @ expected["video_embedding"].T
    np.testing.assert_allclose(scores, expected["logits_video_sentence"], atol=NETWORK_ROUNDING * scale)


@pytest.mark.parametrize("side", ["right", "left"])
def test_siglip_text_gives_what_transformers_gives_for_texts_filled_up(folders, tmp_path, side):
    folder = shutil.copytree(folders["siglip"], tmp_path / "siglip")
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(padding_side=side))
    backbone = load("clip-text", folder)
    model = transformers.SiglipModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        batch = padded(folder, TEXTS, padding="max_length")
        expected = model.get_text_features(input_ids=batch["input_ids"]).pooler_output
    np.testing.assert_allclose(vectors(backbone, TEXTS), expected, atol=NETWORK_ROUNDING)
    assert {len(one.ids) for one in backbone.tokenize(TEXTS)} == {LIMIT}
    assert not any(one.is_cut for one in backbone.tokenize(TEXTS))


@pytest.mark.parametrize("mode", [None, "mean", "cls"])
def test_sentence_gives_the_pooling_that_its_files_ask_for(folders, tmp_path, mode):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    if mode is not None:
        write_modules(folder, mode=mode, normalise=mode == "mean")
    backbone = load("sentence", folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        batch = padded(folder, TEXTS)
        layer = model(**batch).last_hidden_state
        mask = batch["attention_mask"][:, :, None]
        expected = layer[:, 0] if mode == "cls" else (layer * mask).sum(dim=1) / mask.sum(dim=1)
        if mode != "cls":
            expected = torch.nn.functional.normalize(expected, dim=1)
    np.testing.assert_allclose(vectors(backbone, TEXTS), expected, atol=NETWORK_ROUNDING)
    assert backbone.provenance["space"].startswith(f"sentence-{mode or 'mean'} sha256:")


READERS = [
    ("clip-text", "clip"),
    ("sentence", "sentence"),
    ("xclip-text", "xclip"),
    ("xclip-lsmdc-text", "xclip-lsmdc"),
]


@pytest.mark.parametrize(("name", "folder"), READERS)
def test_a_text_gets_the_same_bytes_in_any_batch(folders, name, folder):
    backbone = load(name, folders[folder])
    ids = np.array([one.ids for one in backbone.tokenize(["a man", "b man", "c man", "d man", "e man"])])
    alone = np.concatenate([backbone.encode(ids[row : row + 1]) for row in range(len(ids))])
    assert np.array_equal(backbone.encode(ids), alone)
    several = load_text_backbone(
        name, weights=str(folders[folder]), compute=Compute(device="cpu", clips_at_once=3)
    )
    np.testing.assert_allclose(several.encode(ids), alone, atol=NETWORK_ROUNDING)


@pytest.mark.parametrize(
    ("family", "name"), [("clip", "clip"), ("siglip", "clip"), ("xclip", "xclip"), ("xclip-lsmdc",) * 2]
)
def test_the_two_halves_of_one_file_have_one_space(folders, family, name):
    texts = load(f"{name}-text", folders[family])
    images = load_backbone(name, 1 if name == "clip" else None, weights=str(folders[family]), compute=cpu())
    assert texts.provenance["space"] == embedding_space({"name": name, **images.provenance})
    assert texts.provenance["weights_sha256"] in texts.provenance["space"]
    assert texts.width == images.outputs[0].shape[-1]


def test_lsmdc_text_is_padded_with_zeros_and_cut_before_the_end_token(folders):
    texts = load("xclip-lsmdc-text", folders["xclip-lsmdc"])
    short, long = texts.tokenize(["a", LONG])
    assert (len(short.ids), short.ids[0], short.ids[2:]) == (8, 97, (98, 0, 0, 0, 0, 0))
    assert (long.is_cut, len(long.ids), long.ids[-1]) == (True, 8, 98)


@pytest.mark.parametrize(("name", "folder"), READERS[:3])
def test_a_text_that_is_too_long_is_cut_and_says_so(folders, name, folder):
    backbone = load(name, folders[folder])
    (cut,), (whole,) = backbone.tokenize([LONG]), backbone.tokenize(["a man"])
    assert (cut.is_cut, len(cut.ids), cut.limit) == (True, LIMIT, LIMIT)
    assert cut.n_tokens > LIMIT
    assert cut.ids[-1] == whole.ids[-1]  # the end token is kept
    assert not whole.is_cut


def test_files_of_newer_and_of_older_versions_say_the_same(folders, tmp_path):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    write_modules(folder, mode="cls", max_seq_length=5)
    older = load("sentence", folder).provenance
    (folder / "1_Pooling/config.json").write_text('{"embedding_dimension": 32, "pooling_mode": "cls"}')
    (folder / "sentence_bert_config.json").rename(folder / "sentence_roberta_config.json")
    module = "sentence_transformers.sentence_transformer.modules.pooling"
    modules = (folder / "modules.json").read_text(encoding="utf-8")
    (folder / "modules.json").write_text(modules.replace("sentence_transformers.models", module))
    assert load("sentence", folder).provenance == older
    assert older["tokenizer"]["max_tokens"] == 5
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": ["cls", "max"]}')
    with pytest.raises(BackboneError, match="cls, max"):
        load("sentence", folder)


def test_the_tokenizers_files_are_recorded_with_their_digests(folders):
    recorded = load("clip-text", folders["clip"]).provenance["tokenizer"]
    assert recorded["sha256"].keys() == {"tokenizer_config.json", "vocab.json", "merges.txt"}
    assert recorded["max_tokens"] == LIMIT


def test_weights_and_tokenizer_come_from_one_commit_of_the_hub(folders, in_hub):
    commit = in_hub(folders["sentence"]).name
    backbone = load("sentence", "lab/net")
    assert backbone.provenance["hub"] == {"repository": "lab/net", "revision": commit}
    assert backbone.provenance["space"] == load("sentence", folders["sentence"]).provenance["space"]
    assert "vocab.txt" in backbone.provenance["tokenizer"]["sha256"]
    shown = CliRunner().invoke(fetch, ["lab/net"], catch_exceptions=False).stdout
    assert "tokenizer_config.json, vocab.txt\n" in shown


POOLING, MODULES = "1_Pooling/config.json", "modules.json"
DENSE = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
]


@pytest.mark.parametrize(
    ("asked", "files", "place"),
    [
        ({}, {"vocab.txt": None, "tokenizer_config.json": None}, "tokenizer beside the weights"),
        ({"mode": "max"}, {}, "pooling_mode_max_tokens"),
        ({}, {MODULES: json.dumps(DENSE)}, "Dense in '2_Dense'"),
        ({}, {"config_sentence_transformers.json": '{"default_prompt_name": "query"}'}, "'query'"),
        ({}, {"config.json": None}, r"config\.json"),
        ({}, {MODULES: "{"}, r"modules\.json"),
        ({"max_seq_length": "5"}, {}, "max_seq_length .*'5'"),
        ({"max_seq_length": 2}, {}, "2 tokens"),
        ({}, {POOLING: '{"pooling_mode": 5}'}, "asks for 5"),
        ({}, {POOLING: '{"pooling_mode": [["mean"]]}'}, r"\['mean'\]"),
    ],
)
def test_what_a_sentence_encoder_lacks_or_cannot_be_given_is_named(folders, tmp_path, asked, files, place):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    write_modules(folder, **asked)
    for name, content in files.items():
        (folder / name).unlink() if content is None else (folder / name).write_text(content)
    with pytest.raises(BackboneError, match=place):
        load("sentence", folder)


def test_code_that_weights_bring_along_is_not_even_offered_to_be_run(folders, tmp_path):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    auto = {"AutoConfig": "labnet.Config", "AutoModel": "labnet.Model"}
    rewrite(folder / "config.json", lambda config: config.update(model_type="labnet", auto_map=auto))
    (folder / "labnet.py").write_text("raise SystemExit('it was run')\n")
    with pytest.raises(BackboneError, match="'labnet'"):
        load("sentence", folder)


def test_a_tokenizer_whose_end_the_network_does_not_know_or_that_cannot_fill_up_is_refused(folders, tmp_path):
    folder = shutil.copytree(folders["clip"], tmp_path / "clip")
    first, last = "<|unused0|>", "<|endoftext|>"
    rewrite(folder / "vocab.json", lambda known: known.update({first: known[last], last: known[first]}))
    with pytest.raises(BackboneError, match="end token"):
        load("clip-text", folder)
    folder = shutil.copytree(folders["siglip"], tmp_path / "siglip")
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(pad_token=None))
    with pytest.raises(BackboneError, match="fill texts up"):
        load("clip-text", folder)


def test_networks_and_readers_of_another_kind_are_refused(folders):
    others = (
        ("sentence", "random:0:roberta"),
        ("text", "random:0"),
        ("clip-text", folders["sentence"]),
    )
    for name, weights in others:
        with pytest.raises(BackboneError, match=r"random:0|expected clip"):
            load(name, weights)
    for name, load_other in (("sentence", load_backbone), ("clip", load_text_backbone)):
        with pytest.raises(BackboneError, match=f"'{name}'"):
            load_other(name)
