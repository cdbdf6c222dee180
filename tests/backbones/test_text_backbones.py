"""Backbones of texts give what transformers gives, in any batch, in the space of their pictures."""

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
"""A text of more tokens than the networks take."""
FIRST_TOKEN, END_TOKEN, PADDING = 97, 98, 0
"""Of the vocabulary of the tiny CLIP."""


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


def tokens_by_hand(folder, texts, padding=True):
    """Tokenize texts with transformers, padded to the longest one or, with `max_length`, to the limit."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer(list(texts), return_tensors="pt", truncation=True, padding=padding)


# Older CLIPs state 2, which means the highest token; newer ones state the end token itself.
@pytest.mark.parametrize("eos_token_id", [2, END_TOKEN], ids=["as older files", "as newer files"])
@pytest.mark.parametrize(("name", "network"), [("clip", "CLIPModel"), ("xclip", "XCLIPModel")])
def test_vectors_of_texts_are_those_of_transformers(folders, tmp_path, name, network, eos_token_id):
    folder = shutil.copytree(folders[name], tmp_path / name)
    rewrite(folder / "config.json", lambda config: config["text_config"].update(eos_token_id=eos_token_id))
    backbone = load(f"{name}-text", folder)
    model = getattr(transformers, network).from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model.get_text_features(**tokens_by_hand(folder, (*TEXTS, LONG))).pooler_output

    np.testing.assert_allclose(vectors(backbone, (*TEXTS, LONG)), expected, atol=NETWORK_ROUNDING)
    assert backbone.width == expected.shape[1]


def test_cosines_of_videos_and_texts_of_x_clip_are_its_scores(folders, clips):
    """X-CLIP adapts texts to the video too; with alpha = 0 that part is switched off."""
    model = transformers.XCLIPModel.from_pretrained(folders["xclip"]).eval()
    model.prompts_generator.alpha.data.zero_()
    texts = load("xclip-text", folders["xclip"])
    videos = load_backbone("xclip", weights=str(folders["xclip"]), preset="xclip", compute=cpu())
    pixels = pixels_of_x_clip(clips[:2])
    with torch.inference_mode():
        logits = model(pixel_values=pixels, **tokens_by_hand(folders["xclip"], TEXTS)).logits_per_video
        expected = logits / model.logit_scale.exp()
    cosines = unit(videos.encode(clips[:2])["pooled"]) @ unit(vectors(texts, TEXTS)).T

    np.testing.assert_allclose(cosines, expected, atol=NETWORK_ROUNDING)


def pixels_of_x_clip(clips):
    """Scale and shift clips `[B, F, h, w, 3]` as X-CLIP expects them: `[B, F, 3, h, w]`."""
    affine = choose_preset("xclip", ("xclip",)).affine
    scale = torch.tensor(affine.scale)[:, None, None]
    shift = torch.tensor(affine.shift)[:, None, None]
    return torch.tensor(clips).permute(0, 1, 4, 2, 3) * scale + shift


def unit(rows):
    """Scale rows to length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_lsmdc_text_reproduces_the_score_of_the_oracle(shared_data):
    """The score is s * (t M) v: the vector of a text includes the matrix M, and v is that of a video."""
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
def test_texts_of_siglip_are_padded_to_the_limit_as_by_transformers(folders, tmp_path, side):
    """SigLIP was trained on texts padded to a fixed length, on the side that its tokenizer states."""
    folder = shutil.copytree(folders["siglip"], tmp_path / "siglip")
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(padding_side=side))
    backbone = load("clip-text", folder)
    model = transformers.SiglipModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        batch = tokens_by_hand(folder, TEXTS, padding="max_length")
        expected = model.get_text_features(input_ids=batch["input_ids"]).pooler_output

    np.testing.assert_allclose(vectors(backbone, TEXTS), expected, atol=NETWORK_ROUNDING)
    assert {len(one.ids) for one in backbone.tokenize(TEXTS)} == {LIMIT}
    assert not any(one.is_cut for one in backbone.tokenize(TEXTS))


def last_layer_of_sentences(folder):
    """Run the tiny BERT on TEXTS: its last layer `[4, tokens, width]`, and which tokens are of texts."""
    model = transformers.BertModel.from_pretrained(folder).eval()
    batch = tokens_by_hand(folder, TEXTS)
    with torch.inference_mode():
        return model(**batch).last_hidden_state.numpy(), batch["attention_mask"].numpy().astype(bool)


@pytest.mark.parametrize(
    "states_it", [True, False], ids=["where the files ask for it", "where no file says how"]
)
def test_a_sentence_is_the_mean_of_its_tokens_scaled_to_length_1(folders, tmp_path, states_it):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    if states_it:
        write_modules(folder, mode="mean", normalise=True)
    backbone = load("sentence", folder)
    layer, is_of_text = last_layer_of_sentences(folder)
    means = np.stack([tokens[mask].mean(axis=0) for tokens, mask in zip(layer, is_of_text, strict=True)])

    np.testing.assert_allclose(vectors(backbone, TEXTS), unit(means), atol=NETWORK_ROUNDING)
    assert backbone.provenance["space"].startswith("sentence-mean sha256:")


def test_a_sentence_is_its_first_token_where_the_files_ask_for_that(folders, tmp_path):
    """Some encoders take the class token ("cls") and do not scale it."""
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    write_modules(folder, mode="cls", normalise=False)
    backbone = load("sentence", folder)
    layer, _ = last_layer_of_sentences(folder)
    np.testing.assert_allclose(vectors(backbone, TEXTS), layer[:, 0], atol=NETWORK_ROUNDING)
    assert backbone.provenance["space"].startswith("sentence-cls sha256:")


TEXT_BACKBONES = [
    # Name of the backbone, and of the checkpoint.
    ("clip-text", "clip"),
    ("sentence", "sentence"),
    ("xclip-text", "xclip"),
    ("xclip-lsmdc-text", "xclip-lsmdc"),
]


@pytest.mark.parametrize(("name", "folder"), TEXT_BACKBONES)
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
    ("family", "name"),
    [("clip", "clip"), ("siglip", "clip"), ("xclip", "xclip"), ("xclip-lsmdc", "xclip-lsmdc")],
)
def test_texts_and_pictures_of_one_file_share_a_space(folders, family, name):
    """Their common space is named by the digest of the weights."""
    texts = load(f"{name}-text", folders[family])
    images = load_backbone(name, 1 if name == "clip" else None, weights=str(folders[family]), compute=cpu())
    assert texts.provenance["space"] == embedding_space({"name": name, **images.provenance})
    assert texts.provenance["weights_sha256"] in texts.provenance["space"]
    assert texts.width == images.outputs[0].shape[-1]


def test_texts_of_the_lsmdc_x_clip_are_padded_or_cut_to_8_tokens(folders):
    """As by the authors' tokenizer; the last token is the end, where the network reads the meaning."""
    short, long = load("xclip-lsmdc-text", folders["xclip-lsmdc"]).tokenize(["a", LONG])
    letter_a = short.ids[1]
    assert short.ids == (FIRST_TOKEN, letter_a, END_TOKEN, *[PADDING] * 5)
    assert not short.is_cut
    assert (long.is_cut, len(long.ids), long.ids[-1]) == (True, 8, END_TOKEN)


@pytest.mark.parametrize(("name", "folder"), TEXT_BACKBONES[:3])
def test_a_text_that_is_too_long_is_cut_and_marked_as_cut(folders, name, folder):
    backbone = load(name, folders[folder])
    (cut,), (whole,) = backbone.tokenize([LONG]), backbone.tokenize(["a man"])
    assert (cut.is_cut, len(cut.ids), cut.limit) == (True, LIMIT, LIMIT)
    assert cut.n_tokens > LIMIT
    assert cut.ids[-1] == whole.ids[-1]  # the end token is kept
    assert not whole.is_cut


def test_older_and_newer_files_of_sentence_transformers_mean_the_same(folders, tmp_path):
    """Newer versions of the library renamed files, fields and classes."""
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    write_modules(folder, mode="cls", max_seq_length=5)
    of_older_files = load("sentence", folder).provenance
    assert of_older_files["tokenizer"]["max_tokens"] == 5

    (folder / "1_Pooling/config.json").write_text('{"embedding_dimension": 32, "pooling_mode": "cls"}')
    (folder / "sentence_bert_config.json").rename(folder / "sentence_roberta_config.json")
    older_module, newer_module = (
        "sentence_transformers.models",
        "sentence_transformers.sentence_transformer.modules.pooling",
    )
    modules = (folder / "modules.json").read_text(encoding="utf-8")
    (folder / "modules.json").write_text(modules.replace(older_module, newer_module))

    assert load("sentence", folder).provenance == of_older_files


def test_a_sentence_encoder_that_pools_in_two_ways_is_refused(folders, tmp_path):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    write_modules(folder)
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": ["cls", "max"]}')
    with pytest.raises(BackboneError, match="cls, max"):
        load("sentence", folder)


def test_the_tokenizers_files_are_recorded_with_their_digests(folders):
    """Another vocabulary would give other tokens and so other vectors."""
    recorded = load("clip-text", folders["clip"]).provenance["tokenizer"]
    assert recorded["sha256"].keys() == {"tokenizer_config.json", "vocab.json", "merges.txt"}
    assert recorded["max_tokens"] == LIMIT


def test_weights_and_tokenizer_come_from_one_commit_of_the_hub(folders, save_as_hub_snapshot):
    commit = save_as_hub_snapshot(folders["sentence"]).name
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
    ("modules", "files", "message"),  # options of write_modules; file -> its content, or None to remove it
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
def test_a_sentence_encoder_that_cannot_be_followed_is_refused(folders, tmp_path, modules, files, message):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    write_modules(folder, **modules)
    for name, content in files.items():
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(content)

    with pytest.raises(BackboneError, match=message):
        load("sentence", folder)


def test_code_beside_the_weights_is_never_run(folders, tmp_path):
    """Transformers can run Python files of a repository (`auto_map`), and weights come from strangers."""
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    auto = {"AutoConfig": "labnet.Config", "AutoModel": "labnet.Model"}
    rewrite(folder / "config.json", lambda config: config.update(model_type="labnet", auto_map=auto))
    (folder / "labnet.py").write_text("raise SystemExit('it was run')\n")
    with pytest.raises(BackboneError, match="'labnet'"):
        load("sentence", folder)


def test_a_tokenizer_whose_end_token_is_not_the_networks_is_refused(folders, tmp_path):
    """The end token gets the number of another one: the network looks for the highest number."""
    folder = shutil.copytree(folders["clip"], tmp_path / "clip")
    unused, end = "<|unused0|>", "<|endoftext|>"

    def swap(vocabulary):
        vocabulary[unused], vocabulary[end] = vocabulary[end], vocabulary[unused]

    rewrite(folder / "vocab.json", swap)

    with pytest.raises(BackboneError, match="end token"):
        load("clip-text", folder)


def test_a_tokenizer_that_cannot_pad_is_refused_for_a_siglip(folders, tmp_path):
    """SigLIP needs texts padded to a fixed length, and this tokenizer has no padding token."""
    folder = shutil.copytree(folders["siglip"], tmp_path / "siglip")
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(pad_token=None))
    with pytest.raises(BackboneError, match="fill texts up"):
        load("clip-text", folder)


def test_weights_of_a_sentence_encoder_are_refused_for_clip_text(folders):
    with pytest.raises(BackboneError, match="expected clip"):
        load("clip-text", folders["sentence"])


@pytest.mark.parametrize(("name", "weights"), [("sentence", "random:0:roberta"), ("text", "random:0")])
def test_random_weights_that_a_text_backbone_does_not_offer_are_refused(name, weights):
    """`sentence` makes BERT alone from a seed, and `text` needs a type."""
    with pytest.raises(BackboneError, match="random:0"):
        load(name, weights)


def test_backbones_of_texts_and_of_frames_are_not_confused(folders):
    with pytest.raises(BackboneError, match="'sentence'"):
        load_backbone("sentence", weights=str(folders["sentence"]))
    with pytest.raises(BackboneError, match="'clip'"):
        load_text_backbone("clip", weights=str(folders["clip"]))
