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
SPECIAL_TOKENS = dict(
    zip(("pad_token", "unk_token", "bos_token", "eos_token"), ("<pad>", "<unk>", "<s>", "</s>"), strict=True)
)
IMAGE_TOKENS = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
IMAGE_TOKEN_ID = len(SPECIAL_TOKENS)
"""That of <image>, which stands behind the special tokens in the vocabulary of `tokenizer`."""
QUESTIONS = {
    "level:S": "Is this a film ? Answer yes or no .",
    "concept:Body": "Is this in the passage : nudity ? Answer yes or no .",
}


def tokenizer():
    plain = re.findall(r"\S+", "yes no Is this a film . ? Answer or nudity : in the passage")
    words = [*SPECIAL_TOKENS.values(), *IMAGE_TOKENS, *plain]
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(
            {word: place for place, word in enumerate(words)}, unk_token=SPECIAL_TOKENS["unk_token"]
        )
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, additional_special_tokens=IMAGE_TOKENS, **SPECIAL_TOKENS
    )
    return fast, len(words)


def llava():
    """Return the class, the configuration and the processor of a tiny LLaVA, which sees 2 x 2 patches."""
    made, size = tokenizer()
    text = transformers.LlamaConfig(vocab_size=size, num_key_value_heads=2, **TINY)
    vision = transformers.CLIPVisionConfig(image_size=28, patch_size=14, **TINY)
    config = transformers.LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_id=IMAGE_TOKEN_ID,
        image_token_index=IMAGE_TOKEN_ID,
        vision_feature_layer=-1,
    )
    images = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    processor = transformers.LlavaProcessor(
        images,
        made,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,  # the class token
    )
    return transformers.LlavaForConditionalGeneration, config, processor


def idefics3():
    """Return a tiny Idefics 3 as `llava` does; it joins 2 x 2 patches into one of 4 tokens of an image."""
    made, size = tokenizer()
    vision = {"image_size": 56, "patch_size": 14, **TINY}
    text = {"model_type": "llama", "vocab_size": size, "num_key_value_heads": 2, "pad_token_id": 0, **TINY}
    config = transformers.Idefics3Config(
        image_token_id=IMAGE_TOKEN_ID,
        scale_factor=2,
        pad_token_id=0,
        vision_config=vision,
        text_config=text,
    )
    images = transformers.Idefics3ImageProcessorPil(
        size={"longest_edge": 56}, max_image_size={"longest_edge": 56}, do_image_splitting=False
    )
    processor = transformers.Idefics3Processor(images, made, image_seq_len=4)
    return transformers.Idefics3ForConditionalGeneration, config, processor


@pytest.fixture(scope="module", params=[llava, idefics3], ids=["llava", "idefics3"])
def checkpoint(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param.__name__)
    cls, config, processor = request.param()
    torch.manual_seed(0)
    cls(config).save_pretrained(folder)
    processor.save_pretrained(folder)
    (folder / "questions.jsonl").write_text(json.dumps({"questions": QUESTIONS}) + "\n")
    return folder


def probability_of_yes_by_hand(folder, clip, question):
    """Probability of yes by transformers: the next token after the prompt."""
    processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    images = later("PIL.Image")
    inputs = processor(
        images=[[images.fromarray(frame) for frame in clip]],
        text=[" ".join(["<image>"] * len(clip) + [question])],
        return_tensors="pt",
    )
    with torch.no_grad():
        logits = model(**inputs).logits[0, -1].double()
    yes, no = (processor.tokenizer(word, add_special_tokens=False).input_ids[0] for word in ("yes", "no"))
    return float(torch.softmax(logits[[yes, no]], dim=0)[0])


@pytest.mark.long
def test_answers_are_the_probabilities_of_yes_in_any_batch(checkpoint):
    """An answer is the probability of "yes" as the next token, where "no" is the alternative."""
    backbone = of.load_backbone("vlm", 2, weights=str(checkpoint), questions=checkpoint / "questions.jsonl")
    assert (backbone.name, backbone.outputs[0].shape) == ("answers", (2,))
    clips = np.random.default_rng(0).integers(0, 255, (2, 2, 448, 448, 3), np.uint8)
    result = backbone.encode(clips)["pooled"]
    expected = [
        [probability_of_yes_by_hand(checkpoint, clip, question) for question in QUESTIONS.values()]
        for clip in clips
    ]

    assert result == pytest.approx(np.array(expected), abs=1e-5)
    assert np.ptp(result[:, 0]) > 1e-5  # the answer depends on the clip
    assert np.array_equal(backbone.encode(clips[1:])["pooled"], result[1:])
    assert backbone.provenance["architecture"]["features"] == list(QUESTIONS)
    assert "tokenizer.json" in backbone.provenance["preset"]["constants"]


QUESTION_OF_SOUND = {"concept:Voice": "Is this in the passage ? Answer yes or no ."}
CONVEYED = {"concept:Body": "visual", "concept:Voice": "heard"}
"""By what a concept is conveyed, as questions may state it."""


def write_questions(folder, **fields):
    path = folder / "questions.jsonl"
    path.write_text(json.dumps(fields) + "\n")
    return path


def test_a_concept_that_is_heard_is_not_asked_of_pictures(checkpoint, tmp_path):
    """The network sees pictures and hears nothing, so it is asked about nudity and not about a voice."""
    path = write_questions(tmp_path, questions=QUESTIONS | QUESTION_OF_SOUND, conveyed=CONVEYED)
    backbone = of.load_backbone("vlm", 2, weights=str(checkpoint), questions=path)
    assert backbone.provenance["architecture"]["features"] == list(QUESTIONS)
    assert list(backbone.provenance["absent"]) == ["concept:Voice"]
    assert backbone.provenance["perceives"] == ["visual"]


def test_questions_about_sound_alone_are_refused(checkpoint, tmp_path):
    path = write_questions(tmp_path, questions=QUESTION_OF_SOUND, conveyed=CONVEYED)
    with pytest.raises(BackboneError, match="Voice is heard"):
        of.load_backbone("vlm", 2, weights=str(checkpoint), questions=path)


def test_the_codebook_says_what_is_heard_where_questions_do_not(checkpoint, tmp_path):
    """By the manifest's codebook the concept Voice is heard, and there is no other question."""
    path = write_questions(tmp_path, questions=QUESTION_OF_SOUND)
    backbone = of.load_backbone("vlm", 2, weights=str(checkpoint), questions=path)
    manifest = of.Manifest((of.Clip("a", "m", "a.mp4"),), tmp_path)
    with pytest.raises(ExtractError, match="Voice is heard"):
        of.extract(manifest, tmp_path / "store", [backbone])


def test_a_frame_is_shrunk_whole_onto_a_black_square():
    """A frame of 40 x 80 becomes 16 x 32, in the middle of 32 x 32."""
    frame = np.full((40, 80, 3), 200, np.uint8)  # becomes 16 x 32
    square = Squared(32)(frame)
    assert square.shape == (32, 32, 3)
    assert (square[8:24] == 200).all()
    assert not square[:8].any()
    assert not square[24:].any()


def test_a_file_without_questions_is_refused(checkpoint, tmp_path):
    with pytest.raises(BackboneError, match="no questions"):
        of.load_backbone("vlm", 2, weights=str(checkpoint), questions=write_questions(tmp_path))


def test_a_network_of_pictures_alone_is_refused(checkpoint, tmp_path):
    """Questions need a network that takes a picture and a text; a ViT takes pictures only."""
    config = json.loads((checkpoint / "config.json").read_text()) | {"model_type": "vit"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes((checkpoint / "model.safetensors").read_bytes())
    with pytest.raises(BackboneError, match="takes no images and text"):
        of.load_backbone("vlm", 2, weights=str(tmp_path), questions=checkpoint / "questions.jsonl")


@pytest.fixture
def four_films(tmp_path):
    """48 clips of four films, of level S or EN, with features: clip -> film, which are S, and the dataset."""
    rng = np.random.default_rng(0)
    film_of = {f"f{film}-{number:02}": f"f{film}" for film in range(4) for number in range(12)}
    is_s = rng.random(len(film_of)) < 0.5
    levels = np.where(is_s, "S", "EN")
    clips = [
        of.Clip(name, film, level=str(level))
        for (name, film), level in zip(film_of.items(), levels, strict=True)
    ]
    X = rng.normal(size=(len(clips), 4)).astype(np.float32)
    features = seal_arrays(tmp_path / "features", film_of, {"b": {"pooled": X}})
    data = om.load_dataset(of.open_store(features), of.Manifest(tuple(clips), Path(tmp_path)))
    return film_of, is_s, data, features


def test_the_answer_about_a_level_is_its_share_of_the_two_levels(four_films, tmp_path):
    """A model was asked about each level alone: "is this EN?" and "is this S?"."""
    film_of, is_s, data, _features = four_films
    p_of_en, p_of_s = np.where(is_s, 0.3, 0.8), np.where(is_s, 0.6, 0.1)
    answers = np.stack([p_of_en, p_of_s], axis=1).astype(np.float32)
    names = {"architecture": {"features": ["level:EN", "level:S"]}}
    store = seal_arrays(tmp_path / "answers", film_of, {"answers": {"pooled": answers}}, **names)
    result, _ = with_answers(data, Path(store), om.find_target("en_s", data.codebook))

    assert result.answers[:, 0] == pytest.approx(p_of_s / (p_of_en + p_of_s))


def test_a_store_without_answers_is_refused_as_one_of_answers(four_films):
    """The store has features of a group named 'b', and no group named 'answers'."""
    _film_of, _is_s, data, features = four_films
    with pytest.raises(DatasetError, match="no group 'answers'"):
        with_answers(data, Path(features), om.find_target("en_s", data.codebook))
