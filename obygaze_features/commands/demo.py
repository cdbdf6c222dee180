"""`obygaze demo`: run the whole workflow on a synthetic corpus."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from obygaze_features.text import unescaped

MARK = ".obygaze-demo"
FINISHED = "Made by 'obygaze demo', which writes its files anew every time.\n"
STOPPED = "Made by 'obygaze demo', which was stopped: the next one resumes its extraction.\n"
STAGE = "store.staging"
WRITTEN = (
    "films",
    "labels.csv",
    "planted.csv",
    "manifest.csv",
    STAGE,
    "store-1.0.0",
    "run",
    "predictions.csv",
    "film",
)


LINE = 76  # without the trailing backslash

PLANTED = """
Planted: S clips show Body with Posture, Clothing or Appearance; HN clips other
concepts, never Body; EN clips none. Visibility, brightness and colour do not
depend on the level, and each film has a look of its own. So linear and mlp should
be far above every baseline, the PCBMs above directions that know no concept."""


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("obygaze-demo"), help="Folder to write into."
)
@click.option("--workers", type=click.IntRange(1), help="Number of processes.  [default: the usable cores]")
@click.pass_context
def demo(ctx: click.Context, out: Path, workers: int | None) -> None:
    """Write a small film corpus, extract its features, seal, verify, evaluate, and show a new film.

    Seven films of abstract shapes, 24 clips each, as real H.264 files. Concepts are planted and determine
    the levels; each film has its own look. One file is corrupt and one is missing, to show how failures
    are reported. Six films are labelled; a model trained on them predicts the seventh, clip by clip and then
    as a whole, on a page. Every step is a separate command, printed before it runs. A demo that was stopped
    resumes its extraction; a second run writes everything anew and gives the same bytes.

    \b
    Examples:
      obygaze demo
      obygaze demo --out demo-films --workers 2
    """
    from tqdm import tqdm

    from obygaze_features.cores import usable_cores
    from obygaze_features.demo import UNLABELLED, compare_with_planted, plan_corpus, write_corpus

    workers = workers or usable_cores()
    _clear(out)
    click.echo(f"Writing seven films with planted concepts to {out / 'films'}")
    with tqdm(total=len(plan_corpus()), unit="movie", disable=None, file=unescaped(sys.stderr)) as bar:
        labels = write_corpus(out, workers, on_movie=lambda _: bar.update())
    manifest, store = out / "manifest.csv", out / "store"
    sealed = out / "store-1.0.0"
    run = out / "run"
    _run(ctx, "manifest", "import", "folder", out / "films", "--spans", labels, "--out", manifest)
    named = ("--corpus", "obygaze-demo", "--licence", "CC0-1.0")
    _run(ctx, "extract", manifest, store, *named, "--workers", workers, expected=3)
    _run(ctx, "store", "verify", sealed, "--full")
    tasks = ("--task", "hn_s", "--test", "enhn_s", "--save", "pcbm_lr")
    _run(ctx, "evaluate", manifest, sealed, *tasks, "--out", run)
    click.echo(PLANTED)
    _run(ctx, "predict", run / "pcbm_lr.model", sealed, "--out", out / "predictions.csv")
    for line in compare_with_planted(out):
        click.echo(line)
    film = out / "films" / UNLABELLED / "film.mkv"
    windows = ("--window", 8, "--hop", 4, "--title", "The seventh film", "--out", out / "film")
    _run(ctx, "film", "run", film, "--model", run / "pcbm_lr.model", *windows, "--workers", workers)
    (out / MARK).write_text(FINISHED, encoding="utf-8")
    click.echo(
        f"""
Everything lies in {out}:
  films/, labels.csv   the corpus
  planted.csv          what is true of every clip
  manifest.csv         what the clips are
  store-1.0.0/         their features, sealed: what you would share
  store.staging/       the stage it was sealed from; may go
  run/                 predictions, metrics and the record of the run, and the model kept
  predictions.csv      what the model says of every clip, concept by concept
  film/report.html     the seventh film as a whole: open it in a browser
The two failed clips were planted. Next, your own videos: obygaze manifest import folder --help
(the command is in .venv/bin after 'make demo'; '. .venv/bin/activate' puts it on your path)"""
    )


def _run(ctx: click.Context, *words: object, expected: int = 0) -> None:
    """Print a command and run it through the root command of this context."""
    arguments = [str(word) for word in words]
    click.echo("\n" + _typed(["$", "obygaze", *map(shlex.quote, arguments)]))
    sys.stdout.flush()
    root = ctx.find_root().command
    code = root.main(args=arguments, prog_name="obygaze", standalone_mode=False)
    if (code or 0) != expected:
        ctx.exit(code if isinstance(code, int) else 1)


def _typed(words: Sequence[str]) -> str:
    """Format a command as typed in a shell, wrapped to the terminal width."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > LINE:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _clear(out: Path) -> None:
    """Remove only the output of an earlier demo; leave other folders unchanged.

    The stage of a stopped demo is kept, since its films are rewritten with the same bytes.
    """
    mark = out / MARK
    if out.exists() and not mark.is_file() and (not out.is_dir() or any(out.iterdir())):
        raise click.UsageError(f"{out} exists and is not an obygaze demo; choose another --out")
    stopped = mark.is_file() and mark.read_text(encoding="utf-8") == STOPPED
    for name in WRITTEN:
        if stopped and name == STAGE:
            continue
        path = out / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(STOPPED, encoding="utf-8")
