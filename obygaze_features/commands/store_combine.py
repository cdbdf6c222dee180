"""`obygaze store`: compare and merge stores."""

from collections.abc import Sequence
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
    """Report the differences between two stores: clips, provenance, values; exit with 3 if they differ.

    For the clips with features in both stores, print the largest absolute difference of two values, and the
    smallest cosine of two corresponding vectors. A value differs if any bit of it differs.

    \b
    Examples:
      obygaze store diff stores/ours stores/theirs
      obygaze store diff stores/films-1.0.0 stores/films-1.1.0 --json
    """
    from obygaze_features.exchange.diff import describe_differences

    difference = of.diff(of.open_store(first), of.open_store(second))
    lines = describe_differences(difference, first, second, maximum=SHOWN)
    code = PROBLEMS_FOUND
    if difference.equal:
        lines.append("nothing differs")
        code = 0
    return Answer(difference.record(), "\n".join(lines), code=code)


@command()
def merge(
    stores: Annotated[tuple[str, ...], argument(type=click.STRING)],
    *,
    out: Annotated[
        Path, option("Path of the result without its version: the store written is PATH-VERSION.", type=LOCAL)
    ],
    version: Annotated[str, option("Version of the result.", name="store-version")] = "1.0.0",
    licence: Annotated[
        str | None,
        option("Licence of the result, an SPDX expression; needed if the stores' licences differ."),
    ] = None,
    citation: Annotated[
        str | None, option("How to cite the result; needed if the stores' citations differ.")
    ] = None,
    corpus: Annotated[
        str | None, option("Name of the result's corpus; needed if the stores' corpora have different names.")
    ] = None,
) -> Answer:
    """Merge the clips of several stores into one, equal to extracting all of them at once.

    Stop with an error if the stores' features were made in different ways (backbones, weights, sampling,
    decoders, ...), or if a clip has different features in two stores. The result records the fingerprint of
    the first store as its parent, and those of the others. A fingerprint is a SHA-256 that identifies a
    store's content.

    \b
    Examples:
      obygaze store merge stores/films stores/more-films --out stores/films \\
          --store-version 1.1.0
      obygaze store merge stores/a stores/b --out stores/both \\
          --licence CC-BY-4.0 --corpus "A and B"
    """
    opened_stores = [of.open_store(store) for store in stores]
    path = of.merge(
        opened_stores, out, version=version, licence=licence, citation=citation, corpus=corpus, progress=True
    )
    for notice in _notices_on_lost_fields(opened_stores, of.open_store(path)):
        click.echo(notice, err=True)
    return sealed_result(path, older=stores[0])


def _notices_on_lost_fields(stores: "Sequence[of.Store]", result: "of.Store") -> list[str]:
    """Return a notice for each field that the merged store lacks because the stores differ in it.

    Parameters
    ----------
    stores
        The stores that were merged.
    result
        The merged store.
    """
    # Fields that describe the corpus, in the attributes of the stores.
    fields_of_corpus: set[str] = set()
    for store in stores:
        fields_of_corpus.update(store.attributes["corpus"])
    left_out = sorted(fields_of_corpus - result.attributes["corpus"].keys())
    notices = [f"left out: the stores' corpus.{field} differs, so the result has none" for field in left_out]

    # Fields of the provenance of each group of features.
    for name in result:
        for field in ("hub", "commit"):
            is_known = any(store[name].provenance[field] for store in stores)
            if is_known and result[name].provenance[field] is None:
                notices.append(f"left out: the stores' {field} of {name} differs, so the result has none")
    return notices
