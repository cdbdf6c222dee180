"""Priors of a causal language model: its definition by a plain loop, batches, and what is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from obygaze_features.errors import BackboneError
from tests.lazy_import import cpu, lazy_import
from tests.tiny_checkpoints import tiny_language_model

tokenizers = lazy_import("tokenizers")
torch = lazy_import("torch")
load_file = lazy_import("safetensors.torch", "load_file")
save_file = lazy_import("safetensors.torch", "save_file")
LlamaConfig = lazy_import("transformers", "LlamaConfig")
LlamaForCausalLM = lazy_import("transformers", "LlamaForCausalLM")
PreTrainedTokenizerFast = lazy_import("transformers", "PreTrainedTokenizerFast")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
language_model = lazy_import("obygaze_studies.gender_score.language_model", "language_model")
means_of_probabilities = lazy_import("obygaze_studies.gender_score.language_model", "means_of_probabilities")

TEXTS = ("a man riding a motorcycle on a road", "a woman riding", "Übung, 漫画!", "a")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_language_model(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def model(folder):
    return language_model(str(folder), compute=cpu())


@pytest.fixture
def copy_spoilt(folder, tmp_path):
    """Return a function that copies the checkpoint of the tiny GPT-2 with changed files."""

    def copy_spoilt(**text_of_file):
        """Give files (named without ending) another text, or remove those of None; return the folder."""
        for path in folder.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        for name, text in text_of_file.items():
            (path,) = [path for path in tmp_path.iterdir() if path.stem == name]
            if text is None:
                path.unlink()
            else:
                path.write_text(text, encoding="utf-8")
        return str(tmp_path)

    return copy_spoilt


def probabilities_one_by_one(model, text):
    """Compute P(next token | begin token and all before it) one token after the other, the end token last."""
    ids = [0, *model.tokenizer(text)["input_ids"], 0]
    result = []
    for index in range(1, len(ids)):
        logits = model.network(input_ids=torch.tensor([ids[:index]])).logits[0, -1].double()
        result.append(float(torch.softmax(logits, dim=0)[ids[index]]))
    return result


def test_the_four_reductions_are_those_of_the_oracle(shared_data):
    """The oracle has the logarithms of the probabilities of three tokens.

    Their mean, product, geometric mean and harmonic mean are given.
    """
    oracle = json.loads((shared_data / "audits/oracle.json").read_text(encoding="utf-8"))
    (case,) = oracle["gender_score"]["lm_reduce_cases"]

    result = means_of_probabilities(np.array(case["token_logprobs"]))

    assert result["n_tokens"] == 3
    assert result["lm_mean"] == pytest.approx(case["mean"], rel=1e-12)
    assert result["lm_prod"] == pytest.approx(case["prod"], rel=1e-12)
    assert result["lm_gmean"] == pytest.approx(case["gmean"], rel=1e-12)
    assert result["lm_hmean"] == pytest.approx(case["hmean"], rel=1e-12)


def test_means_of_probabilities_are_computed_even_if_one_is_too_small_for_a_float():
    """Two tokens have the log probabilities -800 and -1; e^-800 is so small that it is 0 as a float.

    So the mean of both is half of e^-1, and their product 0. Their harmonic mean, 2 / (e^800 + e^1), is about
    2 e^-800, which is 0 as a float (or the smallest one above). Nothing may be divided by 0 for it.
    """
    result = means_of_probabilities(np.array([-800.0, -1.0]))

    smallest_float_above_0 = 5e-324
    assert result["lm_mean"] == pytest.approx(math.exp(-1) / 2)
    assert result["lm_prod"] == 0
    assert result["lm_hmean"] == pytest.approx(0, abs=smallest_float_above_0)


@pytest.mark.parametrize("text", TEXTS)
def test_the_prior_is_the_mean_of_the_tokens_probabilities_and_that_of_the_end(model, text):
    """A language model gives each token of a text, and its end, a probability after all that comes before it.

    The prior of the text is their mean; the product, the geometric and the harmonic mean are given besides.
    """
    probabilities = np.array(probabilities_one_by_one(model, text))

    (prior,) = model.score([model.tokens(text)])

    n_tokens = len(probabilities)
    geometric_mean = np.exp(np.mean(np.log(probabilities)))
    harmonic_mean = n_tokens / np.sum(1 / probabilities)
    assert prior["n_tokens"] == n_tokens
    assert prior["lm_mean"] == pytest.approx(np.mean(probabilities), rel=1e-5)
    assert prior["lm_prod"] == pytest.approx(np.prod(probabilities), rel=1e-4)
    assert prior["lm_gmean"] == pytest.approx(geometric_mean, rel=1e-5)
    assert prior["lm_hmean"] == pytest.approx(harmonic_mean, rel=1e-4)


def test_texts_scored_together_get_what_they_get_alone(model):
    """Texts of as many tokens are scored in one batch, which changes the rounding alone."""
    texts = [model.tokens(text) for text in ("a man", "a road", "a woman")]
    of_four_tokens = [ids for ids in texts if len(ids) == 4]
    assert len(of_four_tokens) > 1

    together = [prior["lm_mean"] for prior in model.score(of_four_tokens)]

    alone = [model.score([ids])[0]["lm_mean"] for ids in of_four_tokens]
    assert together == pytest.approx(alone, rel=1e-5)


def test_a_text_scored_again_gets_the_same_prior_to_the_last_bit(model):
    """So an interrupted run that scores a text again ends with the same table."""
    tokens = model.tokens("a man")

    assert model.score([tokens]) == model.score([tokens])


def test_a_text_longer_than_the_model_takes_is_refused(model):
    """The model takes 33 tokens: a begin and an end token and 31 letters."""
    assert len(model.tokens("a" * 31)) == 33
    with pytest.raises(BackboneError, match="33 tokens"):
        model.tokens("a" * 32)


def test_a_tokenizer_of_another_model_is_refused(copy_spoilt, folder):
    """The vocabulary gives the letter "a" the number 999, but the network knows fewer tokens than that."""
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["a"] = 999
    path = copy_spoilt(vocab=json.dumps(vocabulary))
    with_larger_vocabulary = language_model(path, compute=cpu())

    with pytest.raises(BackboneError, match="999"):
        with_larger_vocabulary.tokens("a")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab": None, "merges": None}, "tokenizer"),
        ({"tokenizer_config": '{"eos_token": null}'}, "end token"),
        ({"config": '{"model_type": "clip"}'}, "'clip'"),
    ],
    ids=["no tokenizer", "no token for the end of a text", "a model of images and texts"],
)
def test_a_folder_that_is_no_language_models_is_refused(copy_spoilt, changes, message):
    """In a copy of a tiny GPT-2, files get another text, or are left out where this is None."""
    path = copy_spoilt(**changes)

    with pytest.raises(BackboneError, match=message):
        language_model(path, compute=cpu())


def test_a_model_without_a_begin_token_begins_texts_with_its_end_token(copy_spoilt, model):
    """GPT-2 has one token, of number 0, for the begin and the end of a text.

    In a copy, the configuration names no begin token. It must score a text as the model itself.
    """
    model_without_begin = language_model(copy_spoilt(tokenizer_config='{"bos_token": null}'), compute=cpu())

    end_token = 0
    assert model_without_begin.begin == end_token
    scores = model_without_begin.score([model_without_begin.tokens("a man")])
    assert scores == model.score([model.tokens("a man")])


BEGIN, END, A, MAN = 1, 2, 3, 4
"""Numbers of the tokens of the model that `save_model_whose_tokenizer_adds_begin_and_end` writes."""


def save_model_whose_tokenizer_adds_begin_and_end(folder):
    """Write a tiny Llama that knows "a" and "man", and whose tokenizer puts <s> and </s> around a text."""
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    words = {"<unk>": 0, "<s>": BEGIN, "</s>": END, "a": A, "man": MAN}
    tokenizer = tokenizers.Tokenizer(WordLevel(words, unk_token=special["unk_token"]))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", BEGIN), ("</s>", END)]
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(words), **sizes)
    untrained(lambda: LlamaForCausalLM(config), 0).save_pretrained(folder)


def test_a_tokenizer_that_adds_begin_and_end_itself_adds_none_twice(tmp_path):
    """A text is scored between a token for its begin and one for its end, which most tokenizers do not add.

    This one does, so nothing is added to what it gives. "a man" has three probabilities: of either word, and
    of the end.
    """
    save_model_whose_tokenizer_adds_begin_and_end(tmp_path)
    model = language_model(str(tmp_path), compute=cpu())
    assert model.tokenizer("a man")["input_ids"] == [BEGIN, A, MAN, END]

    tokens = model.tokens("a man")

    assert tokens == (BEGIN, A, MAN, END)
    (prior,) = model.score([tokens])
    assert prior["n_tokens"] == 3


def test_code_beside_a_model_is_never_run(copy_spoilt):
    """Weights come from strangers, and Python files beside them are not executed."""
    auto = {"AutoConfig": "labnet.Config", "AutoModelForCausalLM": "labnet.Model"}
    path = copy_spoilt(config=json.dumps({"model_type": "labnet", "auto_map": auto}))
    (Path(path) / "labnet.py").write_text("raise SystemExit('it was run')\n", encoding="utf-8")
    with pytest.raises(BackboneError, match=r"labnet|tokenizer"):
        language_model(path, compute=cpu())


def test_a_network_that_looks_ahead_is_refused(tmp_path, folder):
    """BERT sees the following words too, so its numbers are no probabilities of a next word."""
    from transformers import BertConfig, BertLMHeadModel

    config = BertConfig(
        vocab_size=280, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    untrained(lambda: BertLMHeadModel(config), 0).save_pretrained(tmp_path)
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}', encoding="utf-8")
    with pytest.raises(BackboneError, match="causal"):
        language_model(str(tmp_path), compute=cpu())


def rename_tensor(file, old, new):
    """Give a tensor in a file of weights another name."""
    tensors = load_file(file)
    tensors[new] = tensors.pop(old)
    save_file(tensors, file)


def test_weights_that_are_not_the_networks_are_refused(copy_spoilt):
    """The network would keep random numbers for a tensor that the file lacks, or has by another name."""
    path = copy_spoilt()
    rename_tensor(f"{path}/model.safetensors", "ln_f.weight", "ln_f.wait")

    with pytest.raises(BackboneError, match=r"transformer\.ln_f\.weight"):
        language_model(path, compute=cpu())


@pytest.mark.parametrize("source", ["random:0", "no/such/folder"])
def test_random_weights_and_a_folder_that_does_not_exist_are_refused_as_language_models(source):
    """Priors by random weights would mean nothing."""
    with pytest.raises(BackboneError):
        language_model(source, compute=cpu())
