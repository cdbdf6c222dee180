"""Backbones that read texts: what plain transformers gives, whatever the batch, in the image half's space."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from click.testing import CliRunner
from huggingface_hub import constants

from obygaze_features.backbones import load_backbone, load_text_backbone
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.runner import TextRunner
from obygaze_features.backbones.weights import find_weights
from obygaze_features.backbones.xclip_lsmdc import XClipLsmdcText
from obygaze_features.backbones.xclip_lsmdc import load as load_lsmdc
from obygaze_features.commands.weights_commands import fetch
from obygaze_features.errors import BackboneError
from obygaze_features.store.provenance import embedding_space
from obygaze_studies.lsmdc.step import similarities
from tests.tiny_checkpoints import LIMIT, tiny_text_checkpoint, write_modules

CPU = Compute(device="cpu")
TEXTS = ("a", "a photo of a man", "sad man", "A Sad Man")
LONG = "a sad man of a sad man of a sad man of a sad man"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    names = ("clip", "siglip", "sentence", "xclip", "xclip-lsmdc")
    return {name: tiny_text_checkpoint(name, folder / name) for name in names}


def load(name, folder, **options):
    return load_text_backbone(name, weights=str(folder), compute=CPU, **options)


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
def test_clip_text_gives_what_transformers_gives_whatever_it_takes_for_the_end(folders, tmp_path, end):
    folder = shutil.copytree(folders["clip"], tmp_path / "clip")
    rewrite(folder / "config.json", lambda config: config["text_config"].update(eos_token_id=end))
    backbone = load("clip-text", folder)
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model.get_text_features(**padded(folder, (*TEXTS, LONG))).pooler_output
    np.testing.assert_allclose(vectors(backbone, (*TEXTS, LONG)), expected, atol=2e-6)
    assert backbone.width == 24


@pytest.mark.parametrize("end", [2, 98])
def test_xclip_text_gives_what_transformers_gives_whatever_it_takes_for_the_end(folders, tmp_path, end):
    folder = shutil.copytree(folders["xclip"], tmp_path / "xclip")
    rewrite(folder / "config.json", lambda config: config["text_config"].update(eos_token_id=end))
    backbone = load("xclip-text", folder)
    model = transformers.XCLIPModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model.get_text_features(**padded(folder, (*TEXTS, LONG))).pooler_output
    np.testing.assert_allclose(vectors(backbone, (*TEXTS, LONG)), expected, atol=2e-6)


def test_cosines_of_the_two_halves_of_x_clip_are_its_logits_without_video_specific_prompts(folders, clips):
    model = transformers.XCLIPModel.from_pretrained(folders["xclip"]).eval()
    model.prompts_generator.alpha.data.zero_()
    videos = load_backbone("xclip", weights=str(folders["xclip"]), preset="xclip", compute=CPU)
    affine = choose_preset("xclip", ("xclip",)).require_affine()
    pixels = torch.tensor(clips[:2]).permute(0, 1, 4, 2, 3) * torch.tensor(affine.scale)[:, None, None]
    with torch.inference_mode():
        wanted = (
            model(
                pixel_values=pixels + torch.tensor(affine.shift)[:, None, None],
                **padded(folders["xclip"], TEXTS),
            ).logits_per_video
            / model.logit_scale.exp()
        )
    texts, found = vectors(load("xclip-text", folders["xclip"]), TEXTS), videos.encode(clips[:2])["pooled"]
    cosines = unit(found) @ unit(texts).T
    np.testing.assert_allclose(cosines, wanted, atol=2e-6)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def lsmdc(shared_data):
    """The oracle's inputs, what the original gave on them, and its weights."""
    oracle = shared_data / "oracles" / "xclip_lsmdc_oracle"
    return (
        np.load(oracle / "inputs.npz"),
        np.load(oracle / "expected_fp32.npz"),
        oracle / "weights.safetensors",
    )


def test_lsmdc_text_is_the_oracles_and_gives_its_video_sentence_score(lsmdc):
    inputs, expected, weights = lsmdc
    network, _ = load_lsmdc(find_weights(weights))
    scale = float(network.logit_scale.detach().exp())
    matrix = network.global_mat_weight.detach().numpy()
    found = TextRunner("xclip-lsmdc-text", XClipLsmdcText(network), CPU)(inputs["input_ids"])
    np.testing.assert_allclose(found, unit(expected["sentence_output"][:, 0]) @ matrix, atol=1e-5)
    scores = scale * found @ expected["video_embedding"].T
    np.testing.assert_allclose(scores, expected["logits_video_sentence"], atol=1e-5 * scale)


def test_the_four_similarities_of_what_a_store_holds_are_the_oracles(lsmdc):
    """Of the one clip of 12 frames, since extraction never pads; v is stored in float16."""
    inputs, expected, weights = lsmdc
    whole = np.flatnonzero(inputs["video_mask"].astype(bool).all(axis=1))
    videos = load_backbone("xclip-lsmdc", weights=str(weights), compute=CPU).encode(
        inputs["frames_u8"][whole].transpose(0, 1, 3, 4, 2)
    )
    network, _ = load_lsmdc(find_weights(weights))
    with torch.inference_mode():
        sentences, words = network.encode_text(torch.from_numpy(inputs["input_ids"]).long())
        scores = similarities(
            network,
            sentences=sentences,
            words=words,
            frames=torch.from_numpy(videos["tokens"]).float(),
            videos=torch.from_numpy(videos["pooled"]),
        )
    scale = float(network.logit_scale.detach().exp())
    for name, tolerance in {
        "video_sentence": 1e-5,
        "video_word": 1e-5,
        "sentence_frame": 1e-3,
        "frame_word": 1e-3,
    }.items():
        wanted = expected[f"logits_{name}"][:, whole]
        np.testing.assert_allclose(scores[name], wanted, atol=tolerance * scale, err_msg=name)
    np.testing.assert_allclose(scores["logits"], expected["logits"][:, whole], atol=1e-3 * scale)


@pytest.mark.parametrize("side", ["right", "left"])
def test_siglip_text_gives_what_transformers_gives_for_texts_filled_up(folders, tmp_path, side):
    folder = shutil.copytree(folders["siglip"], tmp_path / "siglip")
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(padding_side=side))
    backbone = load("clip-text", folder)
    model = transformers.SiglipModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        batch = padded(folder, TEXTS, padding="max_length")
        expected = model.get_text_features(input_ids=batch["input_ids"]).pooler_output
    np.testing.assert_allclose(vectors(backbone, TEXTS), expected, atol=1e-6)
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
    np.testing.assert_allclose(vectors(backbone, TEXTS), expected, atol=1e-6)
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
    np.testing.assert_allclose(several.encode(ids), alone, atol=1e-5)


def test_threads_are_as_before(folders):
    before = torch.get_num_threads()
    vectors(load("sentence", folders["sentence"]), TEXTS)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("family", "name"), [("clip", "clip"), ("siglip", "clip"), ("xclip", "xclip"), ("xclip-lsmdc",) * 2]
)
def test_the_two_halves_of_one_file_have_one_space(folders, family, name):
    texts = load(f"{name}-text", folders[family])
    images = load_backbone(name, 1 if name == "clip" else None, weights=str(folders[family]), compute=CPU)
    assert texts.provenance["space"] == embedding_space({"name": name, **images.provenance})
    assert texts.provenance["weights_sha256"] in texts.provenance["space"]
    assert texts.width == images.outputs[0].shape[-1]


def test_lsmdc_text_is_padded_with_zeros_and_cut_before_the_end_token(folders):
    texts = load("xclip-lsmdc-text", folders["xclip-lsmdc"])
    short, long = texts.tokenize(["a", LONG])
    assert (len(short.ids), short.ids[0], short.ids[2:]) == (8, 97, (98, 0, 0, 0, 0, 0))
    assert (long.is_cut, len(long.ids), long.ids[-1]) == (True, 8, 98)


def test_lsmdc_weights_without_a_tokenizer_beside_them_are_refused(folders, tmp_path):
    path = tmp_path / "pytorch_model.bin.4"
    shutil.copy(folders["xclip-lsmdc"], path)
    with pytest.raises(BackboneError, match="there is no tokenizer beside the weights"):
        load("xclip-lsmdc-text", path)
    with pytest.raises(BackboneError, match="has no public weights"):
        load_text_backbone("xclip-lsmdc-text")


@pytest.mark.parametrize(("name", "folder"), READERS[:3])
def test_a_text_that_is_too_long_is_cut_and_says_so(folders, name, folder):
    backbone = load(name, folders[folder])
    (cut,), (whole,) = backbone.tokenize([LONG]), backbone.tokenize(["a man"])
    assert (cut.is_cut, len(cut.ids), cut.limit) == (True, LIMIT, LIMIT)
    assert cut.n_tokens > LIMIT
    assert cut.ids[-1] == whole.ids[-1]  # the end token is kept
    assert not whole.is_cut


def test_the_files_of_a_sentence_encoder_decide_on_limit_and_case(folders, tmp_path):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    write_modules(folder, max_seq_length=5, do_lower_case=True)
    backbone = load("sentence", folder)
    assert [one.limit for one in backbone.tokenize(["a b c d e f"])] == [5]
    assert backbone.provenance["tokenizer"]["lower_case"] is True


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
    with pytest.raises(BackboneError, match="asks for cls, max; one of"):
        load("sentence", folder)


def test_the_tokenizers_files_are_recorded_with_their_digests(folders):
    recorded = load("clip-text", folders["clip"]).provenance["tokenizer"]
    assert recorded["sha256"].keys() == {"tokenizer_config.json", "vocab.json", "merges.txt"}
    assert recorded["max_tokens"] == LIMIT


def test_weights_and_tokenizer_come_from_one_commit_of_the_hub(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--lab--net"
    shutil.copytree(folders["sentence"], repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    backbone = load("sentence", "lab/net")
    assert backbone.provenance["hub"] == {"repository": "lab/net", "revision": COMMIT}
    assert backbone.provenance["space"] == load("sentence", folders["sentence"]).provenance["space"]
    assert "vocab.txt" in backbone.provenance["tokenizer"]["sha256"]
    shown = CliRunner().invoke(fetch, ["lab/net"], catch_exceptions=False).stdout
    assert "beside    tokenizer_config.json, vocab.txt\n" in shown


def drop_tokenizer(folder):
    for name in ("vocab.txt", "tokenizer_config.json"):
        (folder / name).unlink()


def ask_for(**changes):
    return lambda folder: write_modules(folder, **changes)


def pool_by(what):
    def spoil(folder):
        write_modules(folder)
        (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": what}))

    return spoil


def bring_code(folder):
    """Bring code along, which must not even be offered to be run."""
    auto = {"AutoConfig": "labnet.Config", "AutoModel": "labnet.Model"}
    rewrite(folder / "config.json", lambda config: config.update(model_type="labnet", auto_map=auto))
    (folder / "labnet.py").write_text("raise SystemExit('it was run')\n")


def add_dense(folder):
    write_modules(folder)
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[2] |= {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")


def add_prompt(folder):
    write_modules(folder)
    (folder / "config_sentence_transformers.json").write_text('{"default_prompt_name": "query"}')


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (drop_tokenizer, "there is no tokenizer beside the weights"),
        (ask_for(mode="max"), "asks for pooling_mode_max_tokens; one of pooling_mode_mean_tokens"),
        (add_dense, "asks for Transformer in '', Pooling in '1_Pooling', Dense in '2_Dense'; only"),
        (add_prompt, "puts the prompt 'query' first"),
        (lambda folder: (folder / "config.json").unlink(), "there is no such file"),
        (lambda folder: (folder / "modules.json").write_text("{"), "not readable as JSON"),
        (lambda folder: (folder / "modules.json").write_text("[1]"), "expected a list of modules"),
        (ask_for(max_seq_length="5"), "max_seq_length should be a whole number of tokens, found '5'"),
        (ask_for(max_seq_length=0), "max_seq_length should be a whole number of tokens, found 0"),
        (ask_for(max_seq_length=2), "a text may have 2 tokens, and begin and end alone are 2"),
        (pool_by(5), "asks for 5; one of"),
        (pool_by([["mean"]]), r"asks for \['mean'\]; one of"),
        (bring_code, "transformers has no network of type 'labnet': .* contains custom code"),
    ],
)
def test_what_a_sentence_encoder_lacks_or_cannot_be_given_is_named(folders, tmp_path, spoil, words):
    folder = shutil.copytree(folders["sentence"], tmp_path / "sentence")
    spoil(folder)
    with pytest.raises(BackboneError, match=words):
        load("sentence", folder)


def test_a_tokenizer_whose_end_the_network_does_not_know_is_refused(folders, tmp_path):
    folder = shutil.copytree(folders["clip"], tmp_path / "clip")
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    first, last = "<|unused0|>", "<|endoftext|>"
    vocabulary[first], vocabulary[last] = vocabulary[last], vocabulary[first]
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    with pytest.raises(BackboneError, match="the network reads a text at its end token"):
        load("clip-text", folder)


def test_texts_that_cannot_be_filled_up_are_refused(folders, tmp_path):
    folder = shutil.copytree(folders["siglip"], tmp_path / "siglip")
    rewrite(folder / "tokenizer_config.json", lambda config: config.update(pad_token=None))
    with pytest.raises(BackboneError, match="its tokenizer has no token to fill texts up with"):
        load("clip-text", folder)


@pytest.mark.parametrize("name", [name for name, _ in READERS])
def test_untrained_weights_have_no_tokenizer(name):
    with pytest.raises(BackboneError, match="random:0: a text backbone needs a tokenizer"):
        load(name, "random:0")


def test_a_network_of_another_kind_is_refused(folders):
    with pytest.raises(BackboneError, match="expected a network of type clip"):
        load("clip-text", folders["sentence"])
    for both in ("clip", "siglip"):
        with pytest.raises(BackboneError, match=f"a network of type '{both}' is no sentence encoder"):
            load("sentence", folders[both])


def test_readers_of_texts_and_of_frames_are_not_mixed_up(folders):
    with pytest.raises(BackboneError, match="'sentence' reads texts, not frames"):
        load_backbone("sentence")
    with pytest.raises(BackboneError, match=r"no backbone 'clip' reads texts; those that do: clip-text"):
        load_text_backbone("clip")
    with pytest.raises(BackboneError, match="takes no option 'preset'; it takes weights, compute"):
        load("clip-text", folders["clip"], preset="clip")
