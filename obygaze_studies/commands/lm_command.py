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
            "Causal language model: a folder with weights and tokenizer, or OWNER/NAME[@REVISION] "
            "on the Hugging Face Hub."
        ),
    ] = "openai-community/gpt2",
    out: Annotated[Path, option("CSV file to write; a JSON record is written beside it.")],
    device: Annotated[
        str, option("Device to run on: auto, cpu, cuda or cuda:NUMBER.", envvar="OBYGAZE_DEVICE")
    ] = "auto",
    force: Annotated[bool, option("Replace existing files and start again.")] = False,
) -> Answer:
    """Score texts with a causal language model (token probabilities, the priors of Gender Scores).

    TEXTS is a CSV file with the columns text_id and text, as `obygaze audit gender-score --list-texts`
    writes it, or caption_id and caption; or a .txt file with one text per line. Every text is scored once.
    A text with [MASK] or <MASK> is scored as two texts, with man and with woman.

    The column lm_mean, which the Gender Score reads, is the arithmetic mean of the probabilities of all
    tokens and of the end token. The probability of a token is that after the begin token and the tokens
    before it. Other columns have the product, and the geometric and harmonic mean, of the same
    probabilities.

    Finished texts are kept in OUT.partial, and the same command resumes where it stopped. If a text is too
    long for the model, the command stops with an error before work starts.

    \b
    Examples:
      obygaze lm captions.csv --out lm.csv
      obygaze lm texts.csv --model models/gpt2 --device cuda --out lm.csv
      obygaze lm texts.csv --model openai-community/gpt2-medium@main --out lm.csv
    """
    from obygaze_studies.gender_score import priors

    return priors.lm(texts, model, out, device=device, force=force)
