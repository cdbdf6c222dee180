"""Vision-language models answer as transformers does: tiny untrained checkpoints of two families."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.manifest import write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset.variables_and_answers import with_answers
from obygaze_models.errors import DatasetError
from tests.command import obygaze
from tests.lazy_import import lazy_import

Squared = lazy_import("obygaze_features.backbones.vision_language", "Squared")
torch = lazy_import("torch")
transformers = lazy_import("transformers")
tokenizers = lazy_import("tokenizers")
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
            {word: index for index, word in enumerate(words)}, unk_token=SPECIAL_TOKENS["unk_token"]
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
    images = lazy_import("PIL.Image")
    inputs = processor(
        images=[[images.fromarray(frame) for frame in clip]],
        text=[" ".join(["<image>"] * len(clip) + [question])],
        return_tensors="pt",
    )
    with torch.no_grad():
        logits = model(**inputs).logits[0, -1].double()
    yes, no = (processor.tokenizer(word, add_special_tokens=False).input_ids[0] for word in ("yes", "no"))
    return float(torch.softmax(logits[[yes, no]], dim=0)[0])


def load_model_that_is_asked_two_questions(checkpoint):
    """Load a vision-language model of clips of two frames, which is asked QUESTIONS of each clip."""
    return of.load_backbone(
        "vlm", n_frames=2, weights=str(checkpoint), questions=checkpoint / "questions.jsonl"
    )


def two_clips_of_noise():
    """Two clips of two frames each, [2, 2, 448, 448, 3]."""
    return np.random.default_rng(0).integers(0, 255, (2, 2, 448, 448, 3), np.uint8)


@pytest.mark.long
def test_an_answer_is_the_probability_that_the_model_goes_on_with_yes_rather_than_with_no(checkpoint):
    """A vision-language model is asked two questions (QUESTIONS) of each of two clips, for a yes or a no.

    An answer is P(yes) / (P(yes) + P(no)) for the token that comes next. The expected value is computed with
    transformers' own classes, for each clip and question alone (`probability_of_yes_by_hand`).
    """
    backbone = load_model_that_is_asked_two_questions(checkpoint)
    clips = two_clips_of_noise()

    answers = backbone.encode(clips)["pooled"]

    assert answers.shape == (2, 2)  # clips, questions
    for i, clip in enumerate(clips):
        for j, question in enumerate(QUESTIONS.values()):
            expected = probability_of_yes_by_hand(checkpoint, clip, question)
            assert answers[i, j] == pytest.approx(expected, abs=1e-5)
    first_clip, second_clip = answers
    assert abs(first_clip[0] - second_clip[0]) > 1e-5  # the answer depends on the clip


@pytest.mark.long
def test_the_answers_about_a_clip_do_not_depend_on_the_batch_it_is_in(checkpoint):
    """The second of two clips of noise is asked about beside the first, and alone."""
    backbone = load_model_that_is_asked_two_questions(checkpoint)
    clips = two_clips_of_noise()

    both = backbone.encode(clips)["pooled"]
    second_alone = backbone.encode(clips[1:])["pooled"]

    assert np.array_equal(second_alone[0], both[1])


@pytest.mark.long
def test_a_model_that_answers_records_its_questions_and_its_tokenizer(checkpoint):
    """The tiny model is asked two questions about each clip, on the level S and on the concept Body.

    Another tokenizer, or another question, would give other answers; so a store records them.
    """
    backbone = load_model_that_is_asked_two_questions(checkpoint)

    assert backbone.name == "answers"
    assert backbone.outputs[0].shape == (2,)  # one number for each question
    assert backbone.provenance["architecture"]["features"] == ["level:S", "concept:Body"]
    assert "tokenizer.json" in backbone.provenance["preset"]["constants"]


QUESTION_ABOUT_VOICE = {"concept:Voice": "Is this in the passage ? Answer yes or no ."}


def write_questions(folder, **fields):
    """Write a file of questions, a JSON object of one line; return its path."""
    path = folder / "questions.jsonl"
    path.write_text(json.dumps(fields) + "\n")
    return path


def test_a_concept_that_is_heard_is_not_asked_of_pictures(checkpoint, tmp_path):
    """The network sees pictures and hears nothing, so it is asked about nudity and not about a voice."""
    questions = {
        "level:S": "Is this a film ? Answer yes or no .",
        "concept:Body": "Is this in the passage : nudity ? Answer yes or no .",
        "concept:Voice": "Is this in the passage ? Answer yes or no .",
    }
    conveyed = {"concept:Body": "visual", "concept:Voice": "heard"}
    path = write_questions(tmp_path, questions=questions, conveyed=conveyed)

    backbone = of.load_backbone("vlm", n_frames=2, weights=str(checkpoint), questions=path)

    assert backbone.provenance["architecture"]["features"] == ["level:S", "concept:Body"]
    assert list(backbone.provenance["absent"]) == ["concept:Voice"]
    assert backbone.provenance["perceives"] == ["visual"]


def test_questions_about_sound_alone_are_refused(checkpoint, tmp_path):
    """The file asks about Voice only and says that it is heard; the network sees pictures alone."""
    conveyed = {"concept:Voice": "heard"}
    path = write_questions(tmp_path, questions=QUESTION_ABOUT_VOICE, conveyed=conveyed)

    with pytest.raises(BackboneError, match="Voice is heard"):
        of.load_backbone("vlm", n_frames=2, weights=str(checkpoint), questions=path)


def test_the_codebook_says_what_is_heard_where_questions_do_not(checkpoint, tmp_path):
    """The file asks about Voice only and does not say how it is conveyed, so it can be loaded.

    By the manifest's codebook (obygaze12, the default) Voice is heard, so a network of pictures cannot be
    asked about it.
    """
    path = write_questions(tmp_path, questions=QUESTION_ABOUT_VOICE)
    backbone = of.load_backbone("vlm", n_frames=2, weights=str(checkpoint), questions=path)
    manifest = of.Manifest((of.Clip("a", "m", "a.mp4"),), tmp_path)

    with pytest.raises(ExtractError, match="Voice is heard"):
        of.extract(manifest, tmp_path / "store", [backbone])


def test_a_frame_is_shrunk_whole_onto_a_black_square():
    """A grey frame of 40 x 80 becomes 16 x 32, so that 8 black rows are above it and 8 below."""
    grey_frame = np.full((40, 80, 3), 200, np.uint8)

    square = Squared(32)(grey_frame)

    assert square.shape == (32, 32, 3)
    assert (square[:8] == 0).all()
    assert (square[8:24] == 200).all()
    assert (square[24:] == 0).all()


def test_a_file_without_questions_is_refused(checkpoint, tmp_path):
    """A file of questions is a JSON object with the key "questions"; this one is empty, {}."""
    file_of_an_empty_object = write_questions(tmp_path)

    with pytest.raises(BackboneError, match="no questions"):
        of.load_backbone("vlm", n_frames=2, weights=str(checkpoint), questions=file_of_an_empty_object)


def test_a_network_of_pictures_alone_is_refused(checkpoint, tmp_path):
    """Questions need a network that takes a picture and a text; a ViT takes pictures only."""
    config = json.loads((checkpoint / "config.json").read_text())
    config["model_type"] = "vit"
    (tmp_path / "config.json").write_text(json.dumps(config))
    shutil.copy(checkpoint / "model.safetensors", tmp_path)

    with pytest.raises(BackboneError, match="takes no images and text"):
        of.load_backbone("vlm", n_frames=2, weights=str(tmp_path), questions=checkpoint / "questions.jsonl")


class FourFilms(NamedTuple):
    """48 clips of four films, each of level S or EN."""

    film_of: dict  # clip id -> film
    is_s: np.ndarray  # whether each clip is of level S
    data: om.Dataset  # the clips with features of noise
    features: Path  # the store of these features, in the group "b"


@pytest.fixture
def four_films(tmp_path):
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
    return FourFilms(film_of, is_s, data, Path(features))


def test_the_answer_about_a_level_is_its_share_of_the_two_levels(four_films, tmp_path):
    """A model was asked about each level alone: "is this EN?" and "is this S?".

    Its two probabilities need not add up to 1, so that of S is divided by their sum.
    """
    p_of_en = np.where(four_films.is_s, 0.3, 0.8)
    p_of_s = np.where(four_films.is_s, 0.6, 0.1)
    store_of_answers = seal_arrays(
        tmp_path / "answers",
        four_films.film_of,
        {"answers": {"pooled": np.column_stack([p_of_en, p_of_s]).astype(np.float32)}},
        architecture={"features": ["level:EN", "level:S"]},
    )
    en_or_s = om.find_target("en_s", four_films.data.codebook)

    data_with_answers, _ = with_answers(four_films.data, Path(store_of_answers), en_or_s)

    expected = np.where(four_films.is_s, 0.6 / (0.3 + 0.6), 0.1 / (0.8 + 0.1))
    assert data_with_answers.answers[:, 0] == pytest.approx(expected)


def test_evaluate_records_the_same_fingerprint_of_answers_in_a_folder_and_in_a_zip(
    four_films, tmp_path, capsys
):
    """A store has a model's answers on clips of four films: the probabilities of the levels EN and S.

    It is packed into the zip ANSWERS.ZIP; some systems write this suffix in capitals. `evaluate --answers`
    reads either, and its record names the same fingerprint, since it is the same store.
    """
    p_of_s = np.where(four_films.is_s, 0.9, 0.1)
    levels = four_films.data.levels.tolist()
    names_and_films = four_films.film_of.items()
    clips = [
        of.Clip(name, film, level=level) for (name, film), level in zip(names_and_films, levels, strict=True)
    ]
    write_manifest(of.Manifest(tuple(clips), tmp_path), tmp_path / "films.csv")
    folder = seal_arrays(
        tmp_path / "answers",
        four_films.film_of,
        {"answers": {"pooled": np.column_stack([1 - p_of_s, p_of_s]).astype(np.float32)}},
        architecture={"features": ["level:EN", "level:S"]},
    )
    packed = of.pack(folder, tmp_path / "ANSWERS.ZIP")
    evaluate = ["evaluate", tmp_path / "films.csv", four_films.features, "--task", "en_s", "--json"]

    fingerprints = []
    for answers in (folder, packed):
        assert obygaze(*evaluate, "--model", "linear", "--answers", answers) == 0
        fingerprints.append(json.loads(capsys.readouterr().out)["record"]["answers_sha256"])

    fingerprint_of_folder, fingerprint_of_zip = fingerprints
    assert fingerprint_of_folder == of.open_store(folder).fingerprint
    assert fingerprint_of_zip == of.open_store(folder).fingerprint


def test_a_store_without_answers_is_refused_as_one_of_answers(four_films):
    """The store has features of a group named 'b', and no group named 'answers'."""
    en_or_s = om.find_target("en_s", four_films.data.codebook)

    with pytest.raises(DatasetError, match="no group 'answers'"):
        with_answers(four_films.data, four_films.features, en_or_s)
