"""`obygaze store`: compare and merge stores."""

from pathlib import Path
from typing import Annotated

import click

import obygaze_features as of
from obygaze_features.commands.store_output import sealed_result
from obygaze_features.options import LOCAL, PROBLEMS_FOUND, Answer
from obygaze_features.signatures import argument, command, option

SHOWN = 5


@command()
def diff(
    first: Annotated[str, argument(type=click.STRING)],
    second: Annotated[str, argument(type=click.STRING)],
) -> Answer:
    """Report differences between two stores (clips, provenance, values); exit with 3 if they differ.

    Values are compared over the clips with features in both stores: the largest absolute difference, and
    the smallest cosine of two corresponding vectors.

    \b
    Examples:
      obygaze store diff stores/ours stores/theirs
      obygaze store diff stores/films-1.0.0 stores/films-1.1.0 --json
    """
    from obygaze_features.exchange.diff import in_words

    difference = of.diff(of.open_store(first), of.open_store(second))
    lines = [*in_words(difference, first, second, most=SHOWN)]
    lines += ["nothing differs"] if difference.equal else []
    return Answer(difference.record(), "\n".join(lines), code=PROBLEMS_FOUND * (not difference.equal))


@command()
def merge(
    stores: Annotated[tuple[str, ...], argument(type=click.STRING)],
    *,
    out: Annotated[Path, option("Name of the result.", type=LOCAL)],
    version: Annotated[str, option("Version of the result.", name="store-version")] = "1.0.0",
    licence: Annotated[str | None, option("SPDX expression; needed if the stores' licences differ.")] = None,
    citation: Annotated[
        str | None, option("How to cite the result; needed if the stores' citations differ.")
    ] = None,
    corpus: Annotated[str | None, option("Name of the corpus; needed if the stores' differ.")] = None,
) -> Answer:
    """Merge the clips of several stores into one, equal to extracting all of them at once.

    Refused if the provenance differs, or if a clip in two stores has different rows. The result names its
    parent (the first store) and the other stores.

    \b
    Examples:
      obygaze store merge stores/films stores/more-films --out stores/films \\
          --store-version 1.1.0
      obygaze store merge stores/a stores/b --out stores/both \\
          --licence CC-BY-4.0 --corpus "A and B"
    """
    opened = [of.open_store(store) for store in stores]
    path = of.merge(
        opened, out, version=version, licence=licence, citation=citation, corpus=corpus, progress=True
    )
    result = of.open_store(path)
    for field in sorted({field for store in opened for field in store.attributes["corpus"]}):
        if field not in result.attributes["corpus"]:
            click.echo(f"left out: the stores' corpus.{field} differs, so the result has none", err=True)
    for name in result:
        for field in ("hub", "commit"):
            if result[name].provenance[field] is None and any(
                store[name].provenance[field] for store in opened
            ):
                click.echo(
                    f"left out: the stores' {field} of {name} differs, so the result has none", err=True
                )
    return sealed_result(path)
