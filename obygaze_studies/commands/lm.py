"""`obygaze lm`: score captions with a causal language model."""

import json
from pathlib import Path

import click

from obygaze_studies.commands.declared import declared


@click.command()
@declared("lm")
@click.option("--json", "as_json", is_flag=True, help="Print the record as one JSON document.")
def lm(texts: Path, model: str, out: Path, device: str, force: bool, as_json: bool) -> None:
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
    from tqdm import tqdm

    from obygaze_features.io import refuse_existing
    from obygaze_studies.gender_score.priors import describe, measure_priors, texts_to_score, write_priors

    if out.suffix.lower() != ".csv":
        raise click.BadParameter(f"'{out}' should end in .csv; a .json file is written beside it")
    refuse_existing(out, out.with_suffix(".json"), force=force)
    wanted = texts_to_score(texts)

    from obygaze_features.backbones import Compute
    from obygaze_studies.gender_score.language_model import language_model

    compute = Compute(device)
    loaded = language_model(model, compute=compute)
    if loaded.begin == loaded.end and loaded.tokenizer.bos_token_id is None:
        click.echo(f"{model} has no begin token: its end token stands before every text", err=True)
    at_once = compute.first_size()
    journal = out.with_name(f"{out.name}.partial")
    with tqdm(total=len(wanted.where), unit="text", disable=None) as bar:
        priors = measure_priors(loaded, wanted, journal, at_once=at_once, restart=force, on_texts=bar.update)
    record = describe(texts, wanted, loaded, at_once)
    write_priors(out, priors, record)
    journal.unlink()
    if as_json:
        click.echo(json.dumps(record, indent=2, ensure_ascii=False))
    click.echo(f"{len(priors):,} texts of {wanted.n_rows:,} rows kept in {out}", err=True)
