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
from tests.lazy_import import cpu, lazy_import
from tests.rounding import network_rounding
from tests.tiny_checkpoints import tiny_text_checkpoint, write_modules

torch = lazy_import("torch")
transformers = lazy_import("transformers")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
TextRunner = lazy_import("obygaze_features.backbones.runner", "TextRunner")
load_lsmdc = lazy_import("obygaze_features.backbones.xclip_lsmdc", "load")
sentence_vectors = lazy_import("obygaze_features.backbones.xclip_lsmdc", "sentence_vectors")
NETWORK_ROUNDING = network_rounding(patch=1)
TEXTS = ("a", "a photo of a man", "sad man", "A Sad Man")
LONG_TEXT = "a sad man of a sad man of a sad man of a sad man"
"""A text of more tokens than the networks take."""
FIRST_TOKEN, END_TOKEN, PADDING = 97, 98, 0
"""Of the vocabulary of the tiny CLIP."""


@pytest.fixture(scope="module")
def checkpoint_folders(tmp_path_factory):
    """Tiny checkpoints with text encoders and tokenizers: name -> folder."""
    folder = tmp_path_factory.mktemp("texts")
    names = ("clip", "siglip", "sentence", "xclip", "xclip-lsmdc")
    return {name: tiny_text_checkpoint(name, folder / name) for name in names}


def load_text_backbone_from(name, folder, **options):
    """Load a backbone of texts with the weights in a folder."""
    return load_text_backbone(name, weights=str(folder), compute=cpu(), **options)


def vectors_of(backbone, texts):
    """Encode texts one by one: [texts, width]."""
    return np.concatenate([backbone.encode(np.array([tokens.ids])) for tokens in backbone.tokenize(texts)])


def change_json(path, change):
    """Change the content of a JSON file by a function."""
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
def test_vectors_of_texts_are_those_of_transformers(
    checkpoint_folders, tmp_path, name, network, eos_token_id
):
    """A text's vector is that of its end token, which is the token of number 98 in a tiny CLIP or X-CLIP.

    Older configurations state 2 in its place, and mean the same. One of the five texts is cut, as it has more
    tokens than the network takes.
    """

    def state_end_token(config):
        config["text_config"]["eos_token_id"] = eos_token_id

    folder = shutil.copytree(checkpoint_folders[name], tmp_path / name)
    change_json(folder / "config.json", state_end_token)
    backbone = load_text_backbone_from(f"{name}-text", folder)
    texts = ("a", "a photo of a man", "sad man", "A Sad Man", LONG_TEXT)

    vectors = vectors_of(backbone, texts)

    model = getattr(transformers, network).from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model.get_text_features(**tokens_by_hand(folder, texts)).pooler_output
    np.testing.assert_allclose(vectors, expected, atol=NETWORK_ROUNDING)
    assert backbone.width == expected.shape[1]


def test_cosines_of_videos_and_texts_of_x_clip_are_its_scores(checkpoint_folders, two_clips_of_32_frames):
    """The scores that X-CLIP in transformers gives of two videos and four texts are cosines times a scale.

    It would also adapt the texts to each video, times a number alpha, which our vectors of texts cannot, as
    they know no video; so alpha is 0 here.
    """
    folder = checkpoint_folders["xclip"]
    text_backbone = load_text_backbone_from("xclip-text", folder)
    video_backbone = load_backbone("xclip", weights=str(folder), preset="xclip", compute=cpu())
    two_clips = two_clips_of_32_frames[:2]

    vectors_of_videos = video_backbone.encode(two_clips)["pooled"]
    vectors_of_texts = vectors_of(text_backbone, TEXTS)
    cosines = unit(vectors_of_videos) @ unit(vectors_of_texts).T

    x_clip = transformers.XCLIPModel.from_pretrained(folder).eval()
    x_clip.prompts_generator.alpha.data.zero_()
    pixels = pixels_of_x_clip(two_clips)
    with torch.inference_mode():
        scores = x_clip(pixel_values=pixels, **tokens_by_hand(folder, TEXTS)).logits_per_video
        scale = x_clip.logit_scale.exp()
    np.testing.assert_allclose(cosines, scores / scale, atol=NETWORK_ROUNDING)


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
    """The authors' score is scale * (t M) v, where t is the unit vector of a text, and v that of a video.

    Our vector of a text is t M, so that its product with v is the score but for the scale. What the authors'
    code gave for some texts and videos is kept, as the oracle.
    """
    oracle = shared_data / "oracles" / "xclip_lsmdc_oracle"
    token_ids = np.load(oracle / "inputs.npz")["input_ids"]
    original = np.load(oracle / "expected_fp32.npz")
    network, _ = load_lsmdc(find_weights(oracle / "weights.safetensors"))
    scale = float(network.logit_scale.detach().exp())
    matrix = network.global_mat_weight.detach().numpy()
    encode_texts = TextRunner("xclip-lsmdc-text", network, sentence_vectors, cpu())

    vectors_of_texts = encode_texts(token_ids)

    units_of_texts = unit(original["sentence_output"][:, 0])
    np.testing.assert_allclose(vectors_of_texts, units_of_texts @ matrix, atol=NETWORK_ROUNDING)
    scores = scale * vectors_of_texts @ original["video_embedding"].T
    np.testing.assert_allclose(scores, original["logits_video_sentence"], atol=NETWORK_ROUNDING * scale)


@pytest.mark.parametrize("side", ["right", "left"])
def test_texts_of_siglip_are_padded_to_the_limit_as_by_transformers(checkpoint_folders, tmp_path, side):
    """SigLIP was trained on texts that are padded to a fixed length, on the side that its tokenizer states.

    A tiny one takes 16 tokens, and each of the four short texts has fewer.
    """
    folder = shutil.copytree(checkpoint_folders["siglip"], tmp_path / "siglip")
    change_json(folder / "tokenizer_config.json", lambda config: config.update(padding_side=side))
    backbone = load_text_backbone_from("clip-text", folder)

    tokens_of_texts = backbone.tokenize(TEXTS)
    vectors = vectors_of(backbone, TEXTS)

    for tokens in tokens_of_texts:
        assert len(tokens.ids) == 16
        assert not tokens.is_cut
    siglip = transformers.SiglipModel.from_pretrained(folder).eval()
    padded_by_transformers = tokens_by_hand(folder, TEXTS, padding="max_length")
    with torch.inference_mode():
        expected = siglip.get_text_features(input_ids=padded_by_transformers["input_ids"]).pooler_output
    np.testing.assert_allclose(vectors, expected, atol=NETWORK_ROUNDING)


def token_vectors_of_sentences(folder):
    """Run the tiny BERT on TEXTS: for each text, the vectors of its tokens in the last layer."""
    model = transformers.BertModel.from_pretrained(folder).eval()
    batch = tokens_by_hand(folder, TEXTS)
    with torch.inference_mode():
        last_layer = model(**batch).last_hidden_state.numpy()  # [texts, tokens with padding, width]
    is_of_text = batch["attention_mask"].numpy().astype(bool)
    return [vectors[mask] for vectors, mask in zip(last_layer, is_of_text, strict=True)]


@pytest.mark.parametrize(
    "states_it", [True, False], ids=["where the files ask for it", "where no file says how"]
)
def test_a_sentence_is_the_mean_of_its_tokens_scaled_to_length_1(checkpoint_folders, tmp_path, states_it):
    """A tiny BERT gives each token of a sentence a vector; files beside it may say how these become one.

    Here they ask for the mean, scaled to length 1, or are missing, and then the same is done. The expected
    vectors of tokens, of four short texts, are those of transformers.
    """
    folder = shutil.copytree(checkpoint_folders["sentence"], tmp_path / "sentence")
    if states_it:
        write_modules(folder, mode="mean", normalise=True)
    backbone = load_text_backbone_from("sentence", folder)

    vectors = vectors_of(backbone, TEXTS)

    means = np.stack([tokens.mean(axis=0) for tokens in token_vectors_of_sentences(folder)])
    np.testing.assert_allclose(vectors, unit(means), atol=NETWORK_ROUNDING)
    assert backbone.provenance["space"].startswith("sentence-mean sha256:")


def test_a_sentence_is_its_first_token_where_the_files_ask_for_that(checkpoint_folders, tmp_path):
    """Some encoders take the class token ("cls") and do not scale it. TEXTS are four short texts."""
    folder = shutil.copytree(checkpoint_folders["sentence"], tmp_path / "sentence")
    write_modules(folder, mode="cls", normalise=False)
    backbone = load_text_backbone_from("sentence", folder)

    vectors = vectors_of(backbone, TEXTS)

    class_tokens = np.stack([tokens[0] for tokens in token_vectors_of_sentences(folder)])
    np.testing.assert_allclose(vectors, class_tokens, atol=NETWORK_ROUNDING)
    assert backbone.provenance["space"].startswith("sentence-cls sha256:")


TEXT_BACKBONES = [
    # Name of the backbone, and of the checkpoint.
    ("clip-text", "clip"),
    ("sentence", "sentence"),
    ("xclip-text", "xclip"),
    ("xclip-lsmdc-text", "xclip-lsmdc"),
]


@pytest.mark.parametrize(("name", "checkpoint"), TEXT_BACKBONES)
def test_a_text_gets_the_same_bytes_in_any_batch(checkpoint_folders, name, checkpoint):
    """Five texts of two words are encoded by a tiny network, one by one and all at once."""
    backbone = load_text_backbone_from(name, checkpoint_folders[checkpoint])
    texts = ["a man", "b man", "c man", "d man", "e man"]
    ids = np.array([tokens.ids for tokens in backbone.tokenize(texts)])

    one_by_one = np.concatenate([backbone.encode(ids[row : row + 1]) for row in range(5)])
    all_at_once = backbone.encode(ids)

    assert np.array_equal(all_at_once, one_by_one)


@pytest.mark.parametrize(("name", "checkpoint"), TEXT_BACKBONES)
def test_texts_that_a_network_takes_three_at_a_time_get_the_same_vectors(
    checkpoint_folders, name, checkpoint
):
    """They may differ by rounding. Of five texts, the second call has two, and is filled up."""
    folder = checkpoint_folders[checkpoint]
    one_at_a_time = load_text_backbone_from(name, folder)
    three_at_a_time = load_text_backbone(
        name, weights=str(folder), compute=Compute(device="cpu", clips_at_once=3)
    )
    texts = ["a man", "b man", "c man", "d man", "e man"]
    ids = np.array([tokens.ids for tokens in one_at_a_time.tokenize(texts)])

    expected = np.concatenate([one_at_a_time.encode(ids[row : row + 1]) for row in range(5)])
    np.testing.assert_allclose(three_at_a_time.encode(ids), expected, atol=NETWORK_ROUNDING)


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [("clip", "clip"), ("siglip", "clip"), ("xclip", "xclip"), ("xclip-lsmdc", "xclip-lsmdc")],
)
def test_texts_and_pictures_of_one_file_share_a_space(checkpoint_folders, checkpoint, name):
    """Their common space, in which they can be compared, is named by the digest of the weights."""
    folder = checkpoint_folders[checkpoint]
    n_frames = 1 if name == "clip" else None

    texts = load_text_backbone_from(f"{name}-text", folder)
    pictures = load_backbone(name, n_frames, weights=str(folder), compute=cpu())

    assert texts.provenance["space"] == embedding_space({"name": name, **pictures.provenance})
    assert texts.provenance["weights_sha256"] in texts.provenance["space"]
    assert texts.width == pictures.outputs[0].shape[-1]


def test_texts_of_the_lsmdc_x_clip_are_padded_or_cut_to_8_tokens(checkpoint_folders):
    """As by the authors' tokenizer. The end token, where the network reads the meaning, is never cut off."""
    backbone = load_text_backbone_from("xclip-lsmdc-text", checkpoint_folders["xclip-lsmdc"])

    short, long = backbone.tokenize(["a", LONG_TEXT])

    letter_a = short.ids[1]
    assert short.ids == (FIRST_TOKEN, letter_a, END_TOKEN, PADDING, PADDING, PADDING, PADDING, PADDING)
    assert not short.is_cut
    assert len(long.ids) == 8
    assert long.ids[-1] == END_TOKEN
    assert long.is_cut


@pytest.mark.parametrize(("name", "checkpoint"), TEXT_BACKBONES[:3])
def test_a_text_that_is_too_long_is_cut_and_marked_as_cut(checkpoint_folders, name, checkpoint):
    """The networks take 16 tokens. The end token of a text is kept."""
    backbone = load_text_backbone_from(name, checkpoint_folders[checkpoint])

    (short,) = backbone.tokenize(["a man"])
    (long,) = backbone.tokenize(["a sad man of a sad man of a sad man of a sad man"])

    assert not short.is_cut
    assert long.is_cut
    assert len(long.ids) == 16
    assert long.limit == 16
    assert long.n_tokens > 16
    assert long.ids[-1] == short.ids[-1]


def test_older_and_newer_files_of_sentence_transformers_mean_the_same(checkpoint_folders, tmp_path):
    """Newer versions of the library renamed a file, fields and classes."""
    folder = shutil.copytree(checkpoint_folders["sentence"], tmp_path / "sentence")
    write_modules(folder, mode="cls", max_seq_length=5)
    of_older_files = load_text_backbone_from("sentence", folder).provenance
    assert of_older_files["tokenizer"]["max_tokens"] == 5

    (folder / "sentence_bert_config.json").rename(folder / "sentence_roberta_config.json")
    (folder / "1_Pooling/config.json").write_text('{"embedding_dimension": 32, "pooling_mode": "cls"}')
    older_module = "sentence_transformers.models"
    newer_module = "sentence_transformers.sentence_transformer.modules.pooling"
    modules = (folder / "modules.json").read_text(encoding="utf-8")
    (folder / "modules.json").write_text(modules.replace(older_module, newer_module))
    of_newer_files = load_text_backbone_from("sentence", folder).provenance

    assert of_newer_files == of_older_files


def test_a_sentence_encoder_that_pools_in_two_ways_is_refused(checkpoint_folders, tmp_path):
    """Its files ask for the class token and for the maximum over tokens."""
    folder = shutil.copytree(checkpoint_folders["sentence"], tmp_path / "sentence")
    write_modules(folder)
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": ["cls", "max"]}')

    with pytest.raises(BackboneError, match="cls, max"):
        load_text_backbone_from("sentence", folder)


def test_the_tokenizers_files_are_recorded_with_their_digests(checkpoint_folders):
    """Another vocabulary would give other tokens and so other vectors. The tiny CLIP takes 16 tokens."""
    backbone = load_text_backbone_from("clip-text", checkpoint_folders["clip"])

    tokenizer = backbone.provenance["tokenizer"]
    assert tokenizer["sha256"].keys() == {"tokenizer_config.json", "vocab.json", "merges.txt"}
    assert tokenizer["max_tokens"] == 16


def test_weights_and_tokenizer_come_from_one_commit_of_the_hub(checkpoint_folders, save_as_hub_snapshot):
    """lab/net is in the cache of Hugging Face's hub, in a folder that is named after the commit."""
    commit = save_as_hub_snapshot(checkpoint_folders["sentence"]).name

    of_repository = load_text_backbone_from("sentence", "lab/net").provenance

    assert of_repository["hub"] == {"repository": "lab/net", "revision": commit}
    assert (
        of_repository["space"]
        == load_text_backbone_from("sentence", checkpoint_folders["sentence"]).provenance["space"]
    )
    assert "vocab.txt" in of_repository["tokenizer"]["sha256"]


def test_weights_fetch_prints_the_files_of_the_tokenizer(checkpoint_folders, save_as_hub_snapshot):
    """lab/net, a tiny sentence encoder with a tokenizer of two files, is in the cache of the hub already."""
    save_as_hub_snapshot(checkpoint_folders["sentence"])  # as lab/net

    result = CliRunner().invoke(fetch, ["lab/net"], catch_exceptions=False)

    assert "tokenizer_config.json, vocab.txt\n" in result.stdout


POOLING, MODULES = "1_Pooling/config.json", "modules.json"
DENSE = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
]


@pytest.fixture
def sentence_encoder(checkpoint_folders, tmp_path):
    """The folder of a tiny sentence encoder, whose files ask for the mean of its tokens."""
    folder = shutil.copytree(checkpoint_folders["sentence"], tmp_path / "sentence")
    write_modules(folder)
    return folder


@pytest.mark.parametrize(
    ("missing_files", "message"),
    [
        (["vocab.txt", "tokenizer_config.json"], "tokenizer beside the weights"),
        (["config.json"], r"config\.json"),
    ],
    ids=["of the tokenizer", "of the network"],
)
def test_a_sentence_encoder_without_a_needed_file_is_refused(sentence_encoder, missing_files, message):
    """A good folder has files beside the weights that describe the tokenizer and the network."""
    for name in missing_files:
        (sentence_encoder / name).unlink()

    with pytest.raises(BackboneError, match=message):
        load_text_backbone_from("sentence", sentence_encoder)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        pytest.param(MODULES, json.dumps(DENSE), "Dense in '2_Dense'", id="a layer behind the mean"),
        pytest.param(MODULES, "{", r"modules\.json", id="no JSON"),
        pytest.param(
            "config_sentence_transformers.json",
            '{"default_prompt_name": "query"}',
            "'query'",
            id="words before each text",
        ),
        pytest.param(POOLING, '{"pooling_mode": 5}', "asks for 5", id="a number for how to pool"),
        pytest.param(POOLING, '{"pooling_mode": [["mean"]]}', r"\['mean'\]", id="a list in a list"),
    ],
)
def test_a_file_that_says_how_a_sentence_is_encoded_otherwise_is_refused(
    sentence_encoder, file, content, message
):
    """Files beside the weights say how tokens become a vector of their text; one asks for what we can't do.

    To leave it aside would give other vectors than those of sentence-transformers, without any error.
    """
    (sentence_encoder / file).write_text(content)

    with pytest.raises(BackboneError, match=message):
        load_text_backbone_from("sentence", sentence_encoder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"mode": "max"}, "pooling_mode_max_tokens", id="the largest numbers of the tokens"),
        pytest.param({"max_seq_length": "5"}, "max_seq_length .*'5'", id="a limit of tokens as a text"),
        pytest.param({"max_seq_length": 2}, "2 tokens", id="a limit of two tokens"),
    ],
)
def test_settings_of_a_sentence_encoder_that_cannot_be_followed_are_refused(
    sentence_encoder, settings, message
):
    """The usual files ask for something else than the mean of the tokens, or limit texts to no words at all.

    Two of a text's tokens mark its beginning and end.
    """
    write_modules(sentence_encoder, **settings)

    with pytest.raises(BackboneError, match=message):
        load_text_backbone_from("sentence", sentence_encoder)


def test_code_beside_the_weights_is_never_run(checkpoint_folders, tmp_path):
    """Transformers can run Python files of a repository (`auto_map`), and weights come from strangers.

    The file beside these weights would end the program.
    """
    folder = shutil.copytree(checkpoint_folders["sentence"], tmp_path / "sentence")
    (folder / "labnet.py").write_text("raise SystemExit('it was run')\n")
    auto_map = {"AutoConfig": "labnet.Config", "AutoModel": "labnet.Model"}
    change_json(folder / "config.json", lambda config: config.update(model_type="labnet", auto_map=auto_map))

    with pytest.raises(BackboneError, match="'labnet'"):
        load_text_backbone_from("sentence", folder)


def test_a_tokenizer_whose_end_token_is_not_the_networks_is_refused(checkpoint_folders, tmp_path):
    """The end token exchanges its number with an unused one; the network looks for the highest number."""
    folder = shutil.copytree(checkpoint_folders["clip"], tmp_path / "clip")

    def exchange_numbers(vocabulary):
        number_of_end = vocabulary["<|endoftext|>"]
        vocabulary["<|endoftext|>"] = vocabulary["<|unused0|>"]
        vocabulary["<|unused0|>"] = number_of_end

    change_json(folder / "vocab.json", exchange_numbers)

    with pytest.raises(BackboneError, match="end token"):
        load_text_backbone_from("clip-text", folder)


def test_a_tokenizer_that_cannot_pad_is_refused_for_a_siglip(checkpoint_folders, tmp_path):
    """SigLIP needs texts padded to a fixed length, and this tokenizer has no padding token."""
    folder = shutil.copytree(checkpoint_folders["siglip"], tmp_path / "siglip")
    change_json(folder / "tokenizer_config.json", lambda config: config.update(pad_token=None))

    with pytest.raises(BackboneError, match="fill texts up"):
        load_text_backbone_from("clip-text", folder)


def test_weights_of_a_sentence_encoder_are_refused_for_clip_text(checkpoint_folders):
    """They are of a BERT, and the backbone clip-text reads CLIPs."""
    with pytest.raises(BackboneError, match="expected clip"):
        load_text_backbone_from("clip-text", checkpoint_folders["sentence"])


@pytest.mark.parametrize(("name", "weights"), [("sentence", "random:0:roberta"), ("text", "random:0")])
def test_random_weights_that_a_text_backbone_does_not_offer_are_refused(name, weights):
    """`random:SEED:TYPE` means an untrained network. `sentence` makes BERT alone, and `text` needs a type."""
    with pytest.raises(BackboneError, match="random:0"):
        load_text_backbone_from(name, weights)


def test_a_backbone_of_texts_is_refused_as_one_of_frames(checkpoint_folders):
    """`load_backbone` is for frames, `load_text_backbone` for texts; the message names the backbone."""
    with pytest.raises(BackboneError, match="'sentence'"):
        load_backbone("sentence", weights=str(checkpoint_folders["sentence"]))


def test_a_backbone_of_frames_is_refused_as_one_of_texts(checkpoint_folders):
    """`clip` encodes frames, and `clip-text` texts by the same weights; the message names the backbone."""
    with pytest.raises(BackboneError, match="'clip'"):
        load_text_backbone("clip", weights=str(checkpoint_folders["clip"]))
