"""`obygaze demo`: run the whole workflow on a synthetic corpus."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import click

from obygaze.pipeline import remove, run_command
from obygaze_features.signatures import command, option

MARK_FILE = ".obygaze-demo"
"""File that marks a folder as the demo's."""

MARK_OF_FINISHED = "Made by 'obygaze demo', which writes its files anew every time.\n"
"""Content of the mark file when the demo has finished."""

MARK_OF_STOPPED = "Made by 'obygaze demo', which was stopped: the next one resumes its extraction.\n"
"""Content of the mark file until then."""

STAGING_FOLDER = "store.staging"
"""Name of the staging folder of the extraction."""

WRITTEN_NAMES = (
    "films",
    "labels.csv",
    "planted.csv",
    "manifest.csv",
    STAGING_FOLDER,
    "store-1.0.0",
    "run",
    "predictions.csv",
    "film",
)
"""Files and folders that a demo writes beside its mark file."""

RESULTS = """
Everything lies in {out}:
  films/, labels.csv   the corpus
  planted.csv          what is true of every clip
  manifest.csv         what the clips are
  store-1.0.0/         their features, sealed: what you would share
  store.staging/       the stage it was sealed from; may go
  run/                 predictions, metrics and the record of the run, and the model kept
  predictions.csv      what the model says of every clip, concept by concept
  film/report.html     the seventh film as a whole: open it in a browser
The two failed clips were planted. Next, your own videos: obygaze manifest import folder --help"""
"""What the demo prints at its end; `out` is its folder."""

PLANTED = """
Planted: S clips show Body with Posture, Clothing or Appearance; HN clips other
concepts, never Body; EN clips none. Visibility, brightness and colour do not
depend on the level, and each film has a look of its own. So linear and mlp should
be far above every baseline, the PCBMs above directions that know no concept."""


@command()
def demo(
    *,
    out: Annotated[Path, option("Folder to write into.")] = Path("obygaze-demo"),
    workers: Annotated[
        int | None,
        option("Number of processes.  [default: the usable cores]", type=click.IntRange(1)),
    ] = None,
) -> None:
    """Run the whole workflow on a small film corpus that is made for it.

    The demo writes seven films of abstract shapes (H.264, 24 clips each), extracts features into a store,
    seals and verifies the store, and evaluates models. The concepts in the clips are planted, and they
    determine the levels. Six films are labelled. A model trained on these predicts the seventh, first clip
    by clip, then as a whole film, on a page.

    One file is corrupt and one is missing, to show how failures are reported. Each step is a command that is
    printed before it runs. If you stop the demo, the next run resumes the extraction. A run after a finished
    one writes everything anew, with the same bytes.

    \b
    Examples:
      obygaze demo
      obygaze demo --out demo-films --workers 2
    """
    from tqdm import tqdm

    from obygaze.demo_corpus import UNLABELLED, compare_with_planted, plan_corpus, write_corpus
    from obygaze_features.cores import usable_cores
    from obygaze_features.text import unescaped

    ctx = click.get_current_context()
    workers = workers or usable_cores()
    _prepare_folder(out)

    # The corpus.
    click.echo(f"Writing seven films with planted concepts to {out / 'films'}")
    with tqdm(total=len(plan_corpus()), unit="movie", disable=None, file=unescaped(sys.stderr)) as bar:
        labels = write_corpus(out, workers, on_movie=lambda _: bar.update())

    # From labels and videos to a store and a model.
    manifest = out / "manifest.csv"
    store = out / "store"
    sealed = out / "store-1.0.0"
    run = out / "run"
    _run_step(ctx, "manifest", "import", "spans", labels, "--videos", out / "films", "--out", manifest)
    provenance_options = ("--corpus", "obygaze-demo", "--licence", "CC0-1.0")
    # 3: the clips whose files are corrupt or missing fail.
    _run_step(ctx, "extract", manifest, store, *provenance_options, "--workers", workers, expected=3)
    _run_step(ctx, "store", "verify", sealed, "--full")
    tasks = ("--task", "hn_s", "--test", "enhn_s", "--save", "pcbm_lr")
    _run_step(ctx, "evaluate", manifest, sealed, *tasks, "--out", run)
    click.echo(PLANTED)

    # The seventh film, which has no labels: its clips, and then as a whole.
    _run_step(ctx, "predict", run / "pcbm_lr.model", sealed, "--out", out / "predictions.csv")
    for line in compare_with_planted(out):
        click.echo(line)
    _run_step(ctx, "search", sealed, "--like", f"{UNLABELLED}-009", "--top", 5)
    film = out / "films" / UNLABELLED / f"{UNLABELLED}.mkv"
    windows = ("--window", 8, "--hop", 4, "--title", "The seventh film", "--out", out / "film")
    _run_step(ctx, "film", "run", film, "--model", run / "pcbm_lr.model", *windows, "--workers", workers)

    (out / MARK_FILE).write_text(MARK_OF_FINISHED, encoding="utf-8", newline="\n")
    click.echo(RESULTS.format(out=out))
    if shutil.which("obygaze") is None:
        click.echo(
            "(the command is in .venv/bin after 'make demo'; '. .venv/bin/activate' puts it on your path)"
        )


def _run_step(ctx: click.Context, *words: object, expected: int = 0) -> None:
    """Run an `obygaze` command, given by its words; end the demo if its exit code is not the expected one."""
    code = run_command(ctx, words)
    if code != expected:
        ctx.exit(code or 1)


def _prepare_folder(out: Path) -> None:
    """Make the demo's folder with a file that marks it as one; remove what an earlier demo wrote there.

    The staging folder of a demo that was stopped is kept: its films are written again with the same bytes, so
    that the extraction resumes.

    Raises
    ------
    UsageError
        The folder holds anything else, or is a file.
    """
    from obygaze_features.io import naming

    mark = out / MARK_FILE  # its text says whether the demo was stopped or has finished
    was_stopped = False
    if mark.is_file():
        was_stopped = mark.read_text(encoding="utf-8") == MARK_OF_STOPPED
    elif out.exists():
        is_empty_folder = out.is_dir() and not any(out.iterdir())
        if not is_empty_folder:
            raise click.UsageError(f"{out} exists and is not an obygaze demo; choose another --out")
    for name in WRITTEN_NAMES:
        is_stage_to_resume = name == STAGING_FOLDER and was_stopped
        if not is_stage_to_resume:
            remove([out / name])
    out.mkdir(parents=True, exist_ok=True)
    with naming(mark):
        mark.write_text(MARK_OF_STOPPED, encoding="utf-8", newline="\n")
