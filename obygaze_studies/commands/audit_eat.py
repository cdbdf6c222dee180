"""`obygaze audit eat`: embedding association tests."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.options import removed_option
from obygaze_studies.commands.audit import (
    ONE_BACKBONE,
    TEXT_ITEMS,
    TEXTS_BACKBONE,
    tell_partial,
    write_rows,
)
from obygaze_studies.commands.output import FILE, FORCE, PATH, Output, output

if TYPE_CHECKING:
    from obygaze_studies.eat.eat_tests import EatTest

VARIANT = click.option(
    "--variant",
    type=click.Choice(["code", "paper"]),
    default="code",
    show_default=True,
    help="Wording of the prompts. code: as in the authors' code, used for the tables ('an angry person'). "
    "paper: as in the paper ('a angry person').",
)


@click.group(invoke_without_command=True)
@click.option("--images", type=PATH, help="Store of the targets' embeddings.")
@removed_option("--images-backbone", ONE_BACKBONE, value=True)
@click.option("--texts", type=PATH, help="Store of the attributes' embeddings, in the same space.")
@TEXTS_BACKBONE
@TEXT_ITEMS
@click.option(
    "--items",
    type=FILE,
    help="CSV of the targets: item_id and the columns that tests select on.  [default: SOBEM's file names]",
)
@click.option(
    "--tests",
    default="table1",
    show_default=True,
    help="table1 or table2 for the tests of those tables, or your own JSON file.",
)
@VARIANT
@click.option(
    "--perms",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Number of sampled partitions if there are more than 44 targets; up to 44, all are enumerated.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the sampled partitions."
)
@click.option(
    "--published",
    help="Model of the paper's tables, such as 'CLIP RN50', to show its published values beside.",
)
@output(figure=True)
@click.pass_context
def eat(
    ctx: click.Context,
    images: Path | None,
    texts: Path | None,
    text_items: Path | None,
    items: Path | None,
    tests: str,
    variant: str,
    perms: int,
    seed: int,
    published: str | None,
    output: Output,
) -> None:
    """Run embedding association tests (EAT) between two sets of images and two sets of texts.

    Reports for every test the effect size d (Wolfe et al., FAccT 2023, eq. 1), its normal p and the exact or
    sampled permutation p, one-sided. A star is a normal p below .05 in either tail, as in the paper's tables.

    \b
    Examples:
      obygaze audit eat prompts --out prompts.csv
      obygaze extract prompts.csv stores/prompts --backbone clip-text
      obygaze audit eat --images stores/sobem --texts stores/prompts --out eat.csv
      obygaze audit eat --images stores/jobs --texts stores/prompts \\
          --items jobs.csv --tests table2 \\
        --published 'CLIP RN50' --out eat.csv --figure eat.png
    """
    if ctx.invoked_subcommand is not None:
        return
    # Not required=True: `prompts` below this command needs none of them.
    if images is None or texts is None or output.out is None:
        values = {"images": images, "texts": texts, "out": output.out}
        missing = next(name for name, value in values.items() if value is None)
        raise click.UsageError(f"Missing option '--{missing}'.", ctx)
    from obygaze_studies.audit_common.audit_tables import read_items
    from obygaze_studies.audit_common.embeddings import read_embeddings, read_stored_text_ids
    from obygaze_studies.eat.eat_audit import audit_eat
    from obygaze_studies.eat.eat_tests import Variant, sobem_items

    output.check()
    chosen = _tests(tests)
    targets, attributes = read_embeddings(images), read_embeddings(texts)
    for embedded in (targets, attributes):
        tell_partial(embedded)
    report = audit_eat(
        targets,
        attributes,
        items=read_items(items) if items else sobem_items(tuple(targets.rows)),
        text_ids=read_stored_text_ids(texts, table=text_items),
        tests=chosen,
        variant=Variant(variant),
        n_perm=perms,
        seed=seed,
        model=published,
    )
    output.finish(report)


def _tests(tests: str) -> "tuple[EatTest, ...]":
    from obygaze_studies.eat.eat_tests import SELECTIONS, read_tests

    if tests in SELECTIONS:
        return SELECTIONS[tests]
    if not Path(tests).is_file():
        message = f"'{tests}' is neither {' nor '.join(SELECTIONS)} nor a JSON file of your own"
        raise click.BadParameter(message, param_hint="'--tests'")
    return read_tests(Path(tests))


@eat.command()
@VARIANT
@click.option("--out", type=PATH, required=True, help="CSV file: text_id, text, list.")
@FORCE
def prompts(variant: str, out: Path, force: bool) -> None:
    """Write the prompts of the paper's tests, as input of `obygaze extract`.

    \b
    Examples:
      obygaze audit eat prompts --out prompts.csv
      obygaze audit eat prompts --variant paper --out prompts-paper.csv
    """
    from obygaze_studies.eat.eat_tests import Variant, prompt_rows

    rows = prompt_rows(Variant(variant))
    write_rows([list(rows[0]), *(list(row.values()) for row in rows)], out, "prompts", force=force)
