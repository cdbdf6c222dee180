"""Tokenize texts with the tokenizer stored beside a network's weights."""

from collections.abc import Sequence
from typing import Any

from transformers import AutoTokenizer

from obygaze_features.backbones.checkpoint import quiet
from obygaze_features.backbones.text_backbone import Tokens
from obygaze_features.backbones.weights import TOKENIZER_FILES, Weights, digest, file_of
from obygaze_features.errors import BackboneError

VOCABULARIES = (TOKENIZER_FILES[0], *TOKENIZER_FILES[4:])
"""It takes one of these: without any, transformers makes an empty tokenizer and says nothing."""

UNLIMITED = 10**6
"""Tokenizers without a limit say that it is 1e30."""


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
        self.lower = lower
        self.pad = pad
        self._tokenizer, self._digests = load_tokenizer(weights)
        known = [size for size in (limit, self._tokenizer.model_max_length) if size and size < UNLIMITED]
        if not known:
            raise BackboneError(f"{weights.name}: nothing says how many tokens a text may have")
        self.limit = int(min(known))
        if self.limit <= (added := self._tokenizer.num_special_tokens_to_add()):
            raise BackboneError(
                f"{weights.name}: a text may have {self.limit} tokens, and begin and end alone are {added}"
            )
        if pad and self._tokenizer.pad_token_id is None:
            raise BackboneError(f"{weights.name}: its tokenizer has no token to fill texts up with")

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        """Turn texts into tokens, cut at the limit."""
        prepared = [text.lower() for text in texts] if self.lower else list(texts)
        if not prepared:
            return []
        whole = self._ids(prepared)
        filling = "max_length" if self.pad else False
        taken = self._ids(prepared, truncation=True, max_length=self.limit, padding=filling)
        return [Tokens(tuple(ids), len(found), self.limit) for ids, found in zip(taken, whole, strict=True)]

    def record(self) -> dict[str, Any]:
        """Return the digests of its files by name and its settings, in the store's terms."""
        return {
            "sha256": self._digests,
            "max_tokens": self.limit,
            "lower_case": self.lower,
            "padded": self.pad,
        }

    def _ids(self, texts: list[str], **how: Any) -> list[list[int]]:
        with quiet():
            found: list[list[int]] = self._tokenizer(texts, **how)["input_ids"]
        return found


def load_tokenizer(weights: Weights) -> tuple[Any, dict[str, str]]:
    """Load the tokenizer beside some weights, with the digests of its files by name.

    Raises
    ------
    BackboneError
        If there is none, or it cannot be read.
    """
    if weights.folder is None:
        what = "untrained weights have none" if weights.seed is not None else "this is one file"
        raise BackboneError(f"{weights.name}: a tokenizer is needed, and {what}; name a folder or repository")
    paths = [path for name in TOKENIZER_FILES if (path := file_of(weights, name))]
    if not any(path.name in VOCABULARIES for path in paths):
        raise BackboneError(
            f"{weights.name}: there is no tokenizer beside the weights ({', '.join(VOCABULARIES)})"
        )
    try:
        with quiet():
            loaded: Any = AutoTokenizer.from_pretrained(
                weights.folder, local_files_only=True, trust_remote_code=False
            )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise BackboneError(f"{weights.name}: the tokenizer cannot be read: {said}") from None
    return loaded, {path.name: digest([path]) for path in paths}
