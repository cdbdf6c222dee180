"""Vision-language models answer as transformers does: tiny untrained checkpoints of two families."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset.variables_and_answers import with_answers
from obygaze_models.errors import DatasetError
from tests.later import later

Squared = later("obygaze_features.backbones.vision_language", "Squared")
torch = later("torch")
transformers = later("transformers")
tokenizers = later("tokenizers")
TINY = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip
NAMED = dict(
    zip(("pad_token", "unk_token", "bos_token", "eos_token"), ("<pad>", "<unk>", "<s>", "</s>"), strict=True)
)
SPECIAL = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
QUESTIONS = {
    "level:S": "Is this a film ? Answer yes or no .",
    "concept:Body": "Is this in the passage : nudity ? Answer yes or no .",
}


def tokenizer():
    plain = re.findall(r"\S+", "yes no Is this a film . ? Answer or nudity : in the passage")
    words = [*NAMED.values(), *SPECIAL, *plain]
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(
            {word: place for place, word in enumerate(words)}, unk_token=NAMED["unk_token"]
        )
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, additional_special_tokens=SPECIAL, **NAMED
    )
    return fast, len(words)


def llava():
    made, size = tokenizer()
    text = transformers.LlamaConfig(vocab_size=size, num_key_value_heads=2, **TINY)
    vision = transformers.CLIPVisionConfig(image_size=28, patch_size=14, **TINY)
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=text, image_token_id=4, image_token_index=4, vision_feature_layer=-1
    )
    images = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    processor = transformers.LlavaProcessor(
        images, made, patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1
    )
    return transformers.LlavaForConditionalGeneration, config, processor


def idefics3():
    made, size = tokenizer()
    config = transformers.Idefics3Config(
        image_token_id=4, scale_factor=2, pad_token_id=0,
        vision_config={"image_size": 56, "patch_size": 14, **TINY},
        text_config={"model_type": "llama", "vocab_size": size, "num_key_value_heads": 2,
                     "pad_token_id": 0, **TINY},
    )  # fmt: skip
    images = transformers.Idefics3ImageProcessorPil(
        size={"longest_edge": 56}, max_image_size={"longest_edge": 56}, do_image_splitting=False
    )
    return (
        transformers.Idefics3ForConditionalGeneration, config,
        transformers.Idefics3Processor(images, made, image_seq_len=4),
    )  # fmt: skip


@pytest.fixture(scope="module", params=[llava, idefics3], ids=["llava", "idefics3"])
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param.__name__)
    cls, config, processor = request.param()
    torch.manual_seed(0)
    cls(config).save_pretrained(folder)
    processor.save_pretrained(folder)
    (folder / "questions.jsonl").write_text(json.dumps({"questions": QUESTIONS}) + "\n")
    return folder


def by_hand(folder, clip, question):
    """Probability of yes by transformers: the next token after the prompt."""
    processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    images = later("PIL.Image")
    given = processor(
        images=[[images.fromarray(frame) for frame in clip]],
        text=[" ".join(["<image>"] * len(clip) + [question])],
        return_tensors="pt",
    )
    with torch.no_grad():
        logits = model(**given).logits[0, -1].double()
    yes, no = (processor.tokenizer(word, add_special_tokens=False).input_ids[0] for word in ("yes", "no"))
    return float(torch.softmax(logits[[yes, no]], dim=0)[0])


def test_answers_are_those_of_transformers_whatever_else_is_in_the_batch(checkpoint):
    backbone = of.load_backbone("vlm", 2, weights=str(checkpoint), questions=checkpoint / "questions.jsonl")
    assert (backbone.name, backbone.outputs[0].shape) == ("answers", (2,))
    clips = np.random.default_rng(0).integers(0, 255, (2, 2, 448, 448, 3), np.uint8)
    result = backbone.encode(clips)["pooled"]
    expected = [[by_hand(checkpoint, clip, question) for question in QUESTIONS.values()] for clip in clips]
    assert result == pytest.approx(np.array(expected), abs=1e-5)
    assert np.ptp(result[:, 0]) > 1e-5
    assert np.array_equal(backbone.encode(clips[1:])["pooled"], result[1:])
    assert backbone.provenance["architecture"]["features"] == list(QUESTIONS)
    assert "tokenizer.json" in backbone.provenance["preset"]["constants"]


def test_what_pictures_do_not_show_is_not_asked_and_stands_in_the_provenance(checkpoint, tmp_path):
    questions = QUESTIONS | {"concept:Voice": "Is this in the passage ? Answer yes or no ."}
    conveyed = {"concept:Body": "visual", "concept:Voice": "heard"}
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"questions": questions, "conveyed": conveyed}) + "\n")
    backbone = of.load_backbone("vlm", 2, weights=str(checkpoint), questions=path)
    assert backbone.provenance["architecture"]["features"] == list(QUESTIONS)
    assert list(backbone.provenance["absent"]) == ["concept:Voice"]
    assert backbone.provenance["perceives"] == ["visual"]
    path.write_text(json.dumps({"questions": {"concept:Voice": "?"}, "conveyed": conveyed}) + "\n")
    with pytest.raises(BackboneError, match="Voice is heard"):
        of.load_backbone("vlm", 2, weights=str(checkpoint), questions=path)


def test_questions_that_say_nothing_of_what_conveys_them_are_held_against_the_codebook(checkpoint, tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"questions": {"concept:Voice": "?"}}) + "\n")
    backbone = of.load_backbone("vlm", 2, weights=str(checkpoint), questions=path)
    manifest = of.Manifest((of.Clip("a", "m", "a.mp4"),), tmp_path)
    with pytest.raises(ExtractError, match="Voice is heard"):
        of.extract(manifest, tmp_path / "store", [backbone])


def test_frames_are_whole_on_a_black_square():
    frame = np.full((40, 80, 3), 200, np.uint8)
    square = Squared(32)(frame)
    assert square.shape == (32, 32, 3)
    assert (square[8:24] == 200).all()
    assert not square[:8].any()
    assert not square[24:].any()


def test_what_answers_nothing_is_refused(checkpoint, tmp_path):
    empty = tmp_path / "none.jsonl"
    empty.write_text("{}\n")
    with pytest.raises(BackboneError, match="no questions"):
        of.load_backbone("vlm", 2, weights=str(checkpoint), questions=empty)
    config = json.loads((checkpoint / "config.json").read_text()) | {"model_type": "vit"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes((checkpoint / "model.safetensors").read_bytes())
    with pytest.raises(BackboneError, match="takes no images and text"):
        of.load_backbone("vlm", 2, weights=str(tmp_path), questions=checkpoint / "questions.jsonl")


def test_a_store_of_answers_is_read_as_a_file_of_them(tmp_path):
    rng = np.random.default_rng(0)
    movie_of = {f"f{film}-{k:02}": f"f{film}" for film in range(4) for k in range(12)}
    truth = rng.random(len(movie_of)) < 0.5
    p = np.stack([np.where(truth, 0.3, 0.8), np.where(truth, 0.6, 0.1)], axis=1).astype(np.float32)
    clips = [
        of.Clip(name, film, level="S" if s else "EN")
        for (name, film), s in zip(movie_of.items(), truth, strict=True)
    ]
    manifest = of.Manifest(tuple(clips), Path(tmp_path))
    X = rng.normal(size=(len(clips), 4)).astype(np.float32)
    features = seal_arrays(tmp_path / "b", movie_of, {"b": {"pooled": X}})
    data = om.load_dataset(of.open_store(features), manifest)
    with pytest.raises(DatasetError, match="no group 'answers'"):
        with_answers(data, Path(features), om.find_target("en_s", data.codebook))
    named = {"architecture": {"features": ["level:EN", "level:S"]}}
    store = seal_arrays(tmp_path / "answers", movie_of, {"answers": {"pooled": p}}, **named)
    result, _ = with_answers(data, Path(store), om.find_target("en_s", data.codebook))
    assert result.answers[:, 0] == pytest.approx(p[:, 1] / p.sum(axis=1))
