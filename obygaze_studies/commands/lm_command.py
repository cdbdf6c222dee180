"""`obygaze lm`: score texts with a causal language model."""

from pathlib import Path
from typing import Annotated

from obygaze_features.options import Answer
from obygaze_features.signatures import argument, command, option


@command()
def lm(
    texts: Annotated[Path, argument()],
    *,
    model: Annotated[
        str,
        option(
            "Causal language model: a folder with weights and tokenizer, or OWNER/NAME[@REVISION] on the hub."
        ),
    ] = "openai-community/gpt2",
    out: Annotated[Path, option("CSV file to write; a JSON record goes beside it.")],
    device: Annotated[
        str, option("Device: auto, cpu, cuda or cuda:NUMBER.", envvar="OBYGAZE_DEVICE")
    ] = "auto",
    force: Annotated[bool, option("Replace existing files and start again.")] = False,
) -> Answer:
    """Score texts with a causal language model (token probabilities, the priors of Gender Scores).

    TEXTS is a CSV file of text_id and text, as `obygaze audit gender-score --list-texts` writes it, or of
    caption_id and caption; or a .txt file, one text per line. Every text is scored once; one with [MASK] or
    <MASK> as two, with man and with woman. lm_mean, what the Gender Score takes, is the arithmetic mean of
    the probabilities of all tokens and of the end token, each given the begin token and what stands before
    it; their product, geometric and harmonic mean stand beside it.

    Finished texts are kept in OUT.partial: the same command resumes where it stopped. A text that is too
    long for the model is reported as an error before work starts.

    \b
    Examples:
      obygaze lm captions.csv --out lm.csv
      obygaze lm texts.csv --model models/gpt2 --device cuda --out lm.csv
      obygaze lm texts.csv --model openai-community/gpt2-medium@main --out lm.csv
    """
    from obygaze_studies.gender_score import priors

    return priors.lm(texts, model, out, device=device, force=force)
