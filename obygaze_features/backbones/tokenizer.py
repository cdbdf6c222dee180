"""Tokenize texts with the tokenizer stored beside a network's weights."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import ftfy
import numpy as np
from numpy.typing import NDArray
from transformers import AutoTokenizer

from obygaze_features.backbones.backbone import Tokens
from obygaze_features.backbones.checkpoint import load_from_folder, quiet
from obygaze_features.backbones.weights import TOKENIZER_FILES, Weights, digest, file_of
from obygaze_features.errors import BackboneError

VOCABULARIES = (TOKENIZER_FILES[0], *TOKENIZER_FILES[4:])
"""Files of which a tokenizer needs one: without any, transformers silently makes an empty tokenizer."""
UNLIMITED = 10**6
"""Tokens from which on a limit is none: tokenizers without a limit have 1e30."""
OLD_END_ID = 2
"""`eos_token_id` of CLIPs that take the highest token for the end, whatever their configuration says."""


class Tokenizer:
    """A network's own tokenizer, with the number of tokens that the network takes.

    Parameters
    ----------
    limit
        Maximum number of tokens per text; the tokenizer's own limit applies too.
    lower
        Lower-case texts first.
    pad
        Pad every text to the limit, as in the network's training.

    Raises
    ------
    BackboneError
        If there is no tokenizer, it cannot be read or cannot fill texts up, or nothing says how long a text
        may be.
    """

    def __init__(
        self, weights: Weights, limit: int | None, *, lower: bool = False, pad: bool = False
    ) -> None:
        """Load the tokenizer, and take the smaller of `limit` and the tokenizer's own limit."""
        self.lower = lower
        self.pad = pad
        self._tokenizer, self.digests = load_tokenizer(weights)

        possible_limits = (limit, self._tokenizer.model_max_length)
        # A huge number stands for no limit, as None does.
        limits = [size for size in possible_limits if size and size < UNLIMITED]
        if not limits:
            raise BackboneError(f"{weights.name}: nothing says how many tokens a text may have")
        self.limit = int(min(limits))

        n_special = self._tokenizer.num_special_tokens_to_add()
        if self.limit <= n_special:
            raise BackboneError(
                f"{weights.name}: a text may have {self.limit} tokens, "
                f"and begin and end alone are {n_special}"
            )

        self.pad_id: int | None = self._tokenizer.pad_token_id
        if pad and self.pad_id is None:
            raise BackboneError(f"{weights.name}: its tokenizer has no token to fill texts up with")

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Turn texts into tokens, at most `limit` for each text.

        Each result also says how many tokens the whole text has, which tells whether it was cut.
        """
        prepared = [text.lower() for text in texts] if self.lower else list(texts)
        if not prepared:  # which tokenizers do not take
            return []
        padding = "max_length" if self.pad else False
        uncut_ids = self._ids(prepared)
        cut_ids = self._ids(prepared, truncation=True, max_length=self.limit, padding=padding)
        tokens = []
        for ids, ids_of_whole_text in zip(cut_ids, uncut_ids, strict=True):
            tokens.append(Tokens(tuple(ids), len(ids_of_whole_text), self.limit))
        return tokens

    def sees_case(self) -> bool:
        """Return whether the tokenizer gives a text in capitals other tokens than in lower case."""
        small, capitals = self([ascii_lowercase, ascii_uppercase])
        return small.ids != capitals.ids

    def record(self) -> dict[str, Any]:
        """Return the digests of the tokenizer's files by name, and its settings, for the provenance."""
        return {
            "sha256": self.digests,
            "max_tokens": self.limit,
            "lower_case": self.lower,
            "padded": self.pad,
        }

    def _ids(self, texts: list[str], **settings: Any) -> list[list[int]]:
        """Return the token ids of each text, by the tokenizer with these settings of transformers."""
        with quiet():  # without warnings of texts that are too long, which are cut in another call
            ids: list[list[int]] = self._tokenizer(texts, **settings)["input_ids"]
        return ids


class CaptionTokenizer(Tokenizer):
    """CLIP's tokenizer as the LSMDC X-CLIP takes it: start, `max_words - 2` tokens, end, padded with 0.

    Parameters
    ----------
    weights
        The network, whose folder has the tokenizer's files.
    vocabulary
        Number of rows of its token embedding.
    max_words
        Tokens per caption, start and end included.

    Raises
    ------
    BackboneError
        If there is no tokenizer, or it is not this network's.
    """

    def __init__(self, weights: Weights, *, vocabulary: int, max_words: int) -> None:
        """Load the tokenizer, and check that its tokens are those of the network."""
        if weights.folder is None and weights.files:
            # Weights in one file of a format of its own have no folder; the tokenizer lies beside the file.
            weights = replace(weights, folder=weights.files[0].parent)
        super().__init__(weights, max_words, lower=True)
        self.limit = max_words  # also if the tokenizer's own limit is lower
        self.files = _files_of(weights, self.digests)

        # The network takes the vector of a sentence from the token with the largest id. That must be the end
        # token, which is the last of the vocabulary.
        n_tokens = len(self._tokenizer)
        (ids_of_a_text,) = self._ids(["a"])
        end = ids_of_a_text[-1:]  # empty if the tokenizer gives no tokens
        if end != [vocabulary - 1] or n_tokens != vocabulary:
            raise BackboneError(
                f"{weights.name}: its tokenizer has {n_tokens} tokens and ends with {end}; "
                f"expected {vocabulary} and [{vocabulary - 1}], as the network has them"
            )

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Turn captions into tokens, cut and padded with 0 to the number that the network takes."""
        captions = [clean_caption(text) for text in texts]
        padded_captions = []
        for tokens in super().__call__(captions):
            padding = (0,) * (self.limit - len(tokens.ids))
            padded_captions.append(replace(tokens, ids=tokens.ids + padding))
        return padded_captions

    def ids(self, captions: Sequence[str]) -> NDArray[np.int64]:
        """Return the token ids of captions as an array `[N, max_words]`."""
        ids = [tokens.ids for tokens in self(captions)]
        return np.array(ids, np.int64).reshape(-1, self.limit)  # without captions [0, max_words]

    def record(self) -> dict[str, Any]:
        """Return the digests of the tokenizer's files by name, and its settings, for the provenance."""
        return {**super().record(), "padded": True}


def load_tokenizer(weights: Weights) -> tuple[Any, dict[str, str]]:
    """Load the tokenizer in the folder of the weights; return it, and name -> SHA-256 of each of its files.

    Raises
    ------
    BackboneError
        If there is none, or it cannot be read.
    """
    if weights.folder is None:
        raise BackboneError(f"{weights.name}: a tokenizer is needed; name a folder or repository")
    paths = _files_of(weights, TOKENIZER_FILES)
    # Without a file that has the vocabulary, transformers would silently make an empty tokenizer.
    if not any(path.name in VOCABULARIES for path in paths):
        raise BackboneError(
            f"{weights.name}: there is no tokenizer beside the weights ({', '.join(VOCABULARIES)})"
        )
    loaded = load_from_folder(AutoTokenizer, weights, "the tokenizer")
    return loaded, {path.name: digest([path]) for path in paths}


def _files_of(weights: Weights, names: Iterable[str]) -> list[Path]:
    """Return the paths of those files that exist in the folder or repository of the weights."""
    paths = [file_of(weights, name) for name in names]
    return [path for path in paths if path is not None]


def check_end(weights: Weights, tokenizer: Tokenizer, end: int) -> None:
    """Raise an error if the tokenizer does not end texts with the token at which the network reads them.

    A CLIP takes the vector of a text from its end token; with another tokenizer it would take any other one.

    Parameters
    ----------
    weights
        The weights, for the message.
    tokenizer
        The tokenizer.
    end
        `eos_token_id` of the network's configuration.
    """
    (tokens,) = tokenizer(["a"])
    last_id = tokens.ids[-1] if tokens.ids else None
    expected_id: int | None = end
    if end == OLD_END_ID:
        # Configurations of OpenAI's CLIPs state this wrong id. Transformers knows, and takes the token with
        # the highest id of a text for its end.
        expected_id = max(tokens.ids, default=None)
    if last_id is None or last_id != expected_id:
        raise BackboneError(
            f"{weights.name}: the network reads a text at its end token {expected_id}, "
            f"and the tokenizer ends texts with {'nothing' if last_id is None else last_id}"
        )


def clean_caption(text: str) -> str:
    """Clean a caption as CLIP's preprocessing does: encoding errors, HTML, white space, lower case."""
    fixed = ftfy.fix_text(text)
    unescaped = html.unescape(html.unescape(fixed))  # some captions were escaped twice
    return re.sub(r"\s+", " ", unescaped.strip()).strip().lower()
