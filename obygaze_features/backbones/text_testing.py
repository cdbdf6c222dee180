"""Tiny checkpoints of text backbones with their tokenizers, in the real file formats, for tests."""

import json
import string
from pathlib import Path
from typing import Any

from obygaze_features.backbones.checkpoint import quiet, untrained
from obygaze_features.backbones.testing import WIDTH, tiny_checkpoint
from obygaze_features.errors import BackboneError

LIMIT = 16
"""Tokens that all of them take."""
MERGES = ("a n</w>", "m an</w>", "o f</w>", "s a", "sa d</w>")
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase)
PARTS = tuple(f"##{letter}" for letter in string.ascii_lowercase)


def tiny_text_checkpoint(name: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a tiny untrained checkpoint with a tokenizer of letters; returns what `weights` takes.

    Parameters
    ----------
    name
        `clip` or `siglip`, both halves, for `clip-text`; `xclip` and `xclip-lsmdc`, the same for theirs;
        `sentence`, a BERT with the files of sentence-transformers.
    """
    if name in {"clip", "xclip", "xclip-lsmdc"}:
        weights = tiny_checkpoint(name, folder, seed=seed)
        _write_clip_tokenizer(folder)
        return weights
    if name == "siglip":
        tiny_checkpoint("siglip", folder, seed=seed)
        _write_bert_tokenizer(folder)
    elif name == "sentence":
        _write_bert(folder, seed)
        _write_bert_tokenizer(folder)
    else:
        raise BackboneError(f"there is no tiny '{name}'")
    return folder


def write_modules(folder: Path, *, mode: str = "mean", normalise: bool = True, **changes: object) -> None:
    """Say in the files of sentence-transformers how a sentence encoder pools.

    Parameters
    ----------
    mode
        `mean`, `cls` or any other; which of them the pooling's configuration asks for.
    changes
        Fields of `sentence_bert_config.json`.
    """
    kinds = {"Transformer": "", "Pooling": "1_Pooling", **({"Normalize": "2_Normalize"} if normalise else {})}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(kinds.items())
    ]
    flags = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
    pooling = {f"pooling_mode_{flag}": name == mode for name, flag in flags.items()}
    limits = {"max_seq_length": LIMIT, "do_lower_case": False, **changes}
    (folder / "1_Pooling").mkdir(exist_ok=True)
    for file, content in (
        ("modules.json", modules),
        ("1_Pooling/config.json", pooling),
        ("sentence_bert_config.json", limits),
    ):
        (folder / file).write_text(json.dumps(content, indent=2), encoding="utf-8")


def _write_bert(folder: Path, seed: int) -> None:
    from transformers import BertConfig, BertModel  # noqa: PLC0415 - imported one by one, each at a cost

    config: Any = BertConfig(
        vocab_size=len(WORDS) + len(PARTS),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=2 * LIMIT,
        initializer_range=0.1,  # so that texts are told apart
    )
    with quiet():
        untrained(lambda: BertModel(config), seed).save_pretrained(folder)


def _write_bert_tokenizer(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join((*WORDS, *PARTS)) + "\n", encoding="utf-8")
    _write_config(folder, "BertTokenizer", do_lower_case=True)


def _write_clip_tokenizer(folder: Path) -> None:
    """Write the tokenizer of a CLIP: byte pairs, an end of word in the tokens, the end token the highest."""
    letters = string.ascii_lowercase
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), *(pair.replace(" ", "") for pair in MERGES)]
    tokens += [f"<|unused{place}|>" for place in range(97 - len(tokens))]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
    _write_config(folder, "CLIPTokenizer")


def _write_config(folder: Path, kind: str, **more: object) -> None:
    config = {"tokenizer_class": kind, "model_max_length": LIMIT, **more}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
