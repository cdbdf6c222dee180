"""Score texts with a causal language model: token probabilities and their means."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_features.backbones import Compute, Weights, load_network
from obygaze_features.errors import BackboneError


def means_of_probabilities(log_probabilities: NDArray[np.float64]) -> dict[str, int | float]:
    """Compute the means and the product of the probabilities of a text's n tokens, p_1 to p_n.

    Parameters
    ----------
    log_probabilities : ndarray, shape [n]
        Logarithms of the probabilities.

    Returns
    -------
    dict of str to number
        `n_tokens`, end token included; `lm_mean`, (p_1 + ... + p_n) / n, the prior of the Gender Score (Sabir
        and Padró, 2023); `lm_prod`, p_1 ... p_n, the probability of the text, which may underflow to 0;
        `lm_gmean`, its n-th root, the inverse of the perplexity; `lm_hmean`, n / (1/p_1 + ... + 1/p_n).
    """
    n = len(log_probabilities)
    total = math.fsum(log_probabilities)
    # 1/p overflows for tiny p, so the largest term, 1 / exp(least), is factored out of the sum of all 1/p.
    least = float(log_probabilities.min())
    scaled_sum = math.fsum(np.exp(least - log_probabilities))
    return {
        "n_tokens": n,
        "lm_mean": math.fsum(np.exp(log_probabilities)) / n,
        "lm_prod": math.exp(total),
        "lm_gmean": math.exp(total / n),
        "lm_hmean": n * math.exp(least) / scaled_sum,
    }


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal language model with its tokenizer.

    Attributes
    ----------
    network, tokenizer
        Objects of the transformers library.
    tokenizer_sha256 : mapping
        Digests of the tokenizer's files by name.
    begin, end : int
        Token before every text, used only as context; token after it, which is scored.
    context : int or None
        Maximum number of tokens, begin token included; None if the configuration states no limit.
    """

    network: Any
    tokenizer: Any
    weights: Weights
    tokenizer_sha256: Mapping[str, str]
    compute: Compute
    begin: int
    end: int
    context: int | None

    def tokens(self, text: str) -> tuple[int, ...]:
        """Split a text into tokens, enclosed by the begin and end tokens.

        Raises
        ------
        BackboneError
            The text has too many tokens for the model, or a token outside the network's vocabulary.
        """
        inside = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        ids = (self.begin, *inside, self.end)
        n_inputs = len(ids) - 1  # the end token is predicted but not an input
        if self.context is not None and n_inputs > self.context:
            raise BackboneError(
                f"{n_inputs} tokens with the begin token; {self.weights.name} takes {self.context}"
            )
        vocabulary = self.network.get_input_embeddings().num_embeddings
        if max(ids) >= vocabulary:
            raise BackboneError(
                f"token {max(ids)}, and {self.weights.name} has {vocabulary}: "
                "the tokenizer is of another model"
            )
        return ids

    def score(self, texts: Sequence[tuple[int, ...]]) -> list[dict[str, int | float]]:
        """Score texts that have the same number of tokens; return the means of each text's probabilities.

        Texts are tokens as the method `tokens` gives them. Of one length they need no padding. The batch size
        affects a score only through the matrix library: below 1e-5 of the value in float32, and not at all
        for batches of one.

        Raises
        ------
        BackboneError
            The network returned a value that is not finite.
        """
        device = self.network.device
        ids = torch.tensor(texts, dtype=torch.long, device=device)
        with torch.inference_mode():
            # Each token but the first is predicted from those before it: [texts, tokens - 1, vocabulary].
            logits = self.network(input_ids=ids[:, :-1], use_cache=False).logits
            log_probabilities_of_all = logits.double().log_softmax(dim=-1)
            predicted_ids = ids[:, 1:, None]  # [texts, tokens - 1, 1]
            log_probabilities = log_probabilities_of_all.gather(2, predicted_ids)[:, :, 0]
        if not torch.isfinite(log_probabilities).all():
            raise BackboneError(f"{self.weights.name}: a token's probability is not finite")
        return [means_of_probabilities(row) for row in log_probabilities.cpu().numpy()]

    def record(self) -> dict[str, Any]:
        """Return everything that affects the scores, as JSON values."""
        return {
            **self.weights.record(),
            "tokenizer_sha256": dict(self.tokenizer_sha256),
            "architecture": self.network.config.model_type,
            "context": self.context,
            "begin_token": self.tokenizer.convert_ids_to_tokens(self.begin),
            "end_token": self.tokenizer.convert_ids_to_tokens(self.end),
            "compute": self.compute.record(),
        }


def language_model(source: str, compute: Compute) -> LanguageModel:
    """Load a causal language model and its tokenizer from a folder in the hub's format or a repository.

    Texts are scored with a token before and after them. A model without a begin token uses the end token in
    its place, as GPT-2 does.

    Parameters
    ----------
    source
        The folder or repository.
    compute
        Where the model runs.

    Raises
    ------
    BackboneError
        There is no such model, its weights are not the network's, it has no tokenizer or no end token, or it
        is not causal.
    """
    loaded = load_network("causal-lm", source)
    tokenizer = loaded.tokenizer
    end = tokenizer.eos_token_id
    if end is None:
        raise BackboneError(f"{loaded.weights.name}: its tokenizer has no end token, and the prior counts it")
    network = loaded.module.to(compute.torch_device())
    begin = end if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    context = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    model = LanguageModel(
        network=network,
        tokenizer=tokenizer,
        weights=loaded.weights,
        tokenizer_sha256=loaded.tokenizer_sha256,
        compute=compute,
        begin=begin,
        end=end,
        context=context,
    )
    _check_causal(model)
    return model


def _check_causal(model: LanguageModel) -> None:
    """Raise a BackboneError if the network's prediction of a token depends on what follows it.

    Such a network, for example BERT, gives no probability of a text.
    """
    # Two inputs of the same first token and different second ones: the first and the last of the vocabulary.
    last_id = model.network.get_input_embeddings().num_embeddings - 1
    ids = torch.tensor([[model.begin, 0], [model.begin, last_id]], device=model.network.device)
    with torch.inference_mode():
        logits_at_first_token = model.network(input_ids=ids, use_cache=False).logits[:, 0].double()
    first, second = logits_at_first_token
    tolerance = 1e-5 * float(first.abs().max())  # more than the rounding of float32
    if not torch.allclose(first, second, rtol=0, atol=tolerance):
        raise BackboneError(
            f"{model.weights.name}: not a causal language model: what follows a token changes its probability"
        )
