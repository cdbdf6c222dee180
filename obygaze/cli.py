"""The `obygaze` command: a lazy table of contents.

A subcommand's module is imported only when that subcommand runs: `obygaze --help` costs no more than click.
"""

import importlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

import click


@dataclass(frozen=True)
class Entry:
    """One line of the contents: what a command is for, where it is or what is below it, and an example."""

    summary: str
    target: str | Mapping[str, "Entry"]
    example: str = ""


FEATURES = "obygaze_features.commands"
MODELS = "obygaze_models.commands"
CONTENTS: dict[str, Entry] = {
    "demo": Entry("Make a small film corpus, extract, seal, verify, evaluate.", f"{FEATURES}.demo:demo"),
    "manifest": Entry(
        "Create and inspect manifests (tables of clips).",
        {
            "import": Entry("Make a manifest of annotations or videos.", f"{FEATURES}.manifest:import_"),
            "inspect": Entry("Check a manifest and show its clips.", f"{FEATURES}.manifest:inspect"),
            "project": Entry("Project free annotations onto clips.", f"{FEATURES}.manifest:project"),
            "agreement": Entry("Agreement gamma between two annotators.", f"{FEATURES}.agreement:agreement"),
            "stats": Entry("Count levels and concepts.", f"{MODELS}.stats:stats"),
        },
        "  obygaze manifest import folder films --out films.csv\n  obygaze manifest stats films.csv",
    ),
    "codebook": Entry(
        "Say which levels, concepts and tasks there are.",
        {
            "show": Entry("Show a built-in codebook, a file's or a manifest's.", f"{FEATURES}.codebook:show"),
            "check": Entry("Check a codebook file.", f"{FEATURES}.codebook:check"),
            "init": Entry("Write a commented codebook to begin with.", f"{FEATURES}.codebook:init"),
        },
        "  obygaze codebook show obygaze12\n  obygaze codebook init --out mine.toml",
    ),
    "frames": Entry("Show or save the frames an extraction would use.", f"{FEATURES}.frames:frames"),
    "extract": Entry("Extract a manifest's clips into a store.", f"{FEATURES}.extract:extract"),
    "train": Entry(
        "Re-train a backbone.",
        {
            "xclip-lsmdc": Entry("Train the X-CLIP of LSMDC from a CLIP.", f"{FEATURES}.train:xclip_lsmdc"),
        },
        "  obygaze train xclip-lsmdc --help",
    ),
    "gradcam": Entry("Map what a network sees in still images.", f"{FEATURES}.gradcam:gradcam"),
    "store": Entry(
        "List, inspect, seal, verify, share and combine stores.",
        {
            "ls": Entry("List the stores in a folder.", f"{FEATURES}.store:ls"),
            "inspect": Entry("Show what a store holds and its provenance.", f"{FEATURES}.store:inspect"),
            "seal": Entry("Make an immutable store of a staging folder.", f"{FEATURES}.store:seal"),
            "verify": Entry("Check a store against its digests.", f"{FEATURES}.store:verify"),
            "diff": Entry("Report differences between two stores.", f"{FEATURES}.store_combine:diff"),
            "merge": Entry("Make one store of the clips of several.", f"{FEATURES}.store_combine:merge"),
            "import": Entry("Import features from other tools.", f"{FEATURES}.store_exchange:import_"),
            "export": Entry("Write features as HDF5 or AnnData.", f"{FEATURES}.store_exchange:export"),
            "card": Entry("Write a store's dataset card anew.", f"{FEATURES}.store_exchange:card"),
            "pack": Entry("Put a store into one zip.", f"{FEATURES}.store_transfer:pack"),
            "unpack": Entry("Make a folder of a zip.", f"{FEATURES}.store_transfer:unpack"),
            "pull": Entry("Download a store, or a part of it.", f"{FEATURES}.store_transfer:pull"),
            "push": Entry("Upload a store.", f"{FEATURES}.store_transfer:push"),
            "rm": Entry("Remove a store or a stage.", f"{FEATURES}.store_clean:rm"),
            "gc": Entry("Remove stages that are sealed.", f"{FEATURES}.store_clean:gc"),
        },
        "  obygaze store ls\n  obygaze store verify stores/films --full",
    ),
    "weights": Entry(
        "Fetch and check the weights of networks.",
        {
            "fetch": Entry("Fetch weights from the hub, pinned to a commit.", f"{FEATURES}.weights:fetch"),
            "verify": Entry("Check a weight file against its SHA-256.", f"{FEATURES}.weights:verify"),
        },
        "  obygaze weights fetch xclip\n  obygaze weights verify pytorch_model.bin.4 --sha256 9f86d081...",
    ),
    "lm": Entry("Score texts with a causal language model.", f"{FEATURES}.lm:lm"),
    "folds": Entry("Print the clips of every fold.", f"{MODELS}.folds:folds"),
    "evaluate": Entry("Evaluate models, one movie left out at a time.", f"{MODELS}.evaluate:evaluate"),
    "compare": Entry("Compare two models, movie by movie.", f"{MODELS}.compare:compare"),
    "paper": Entry(
        "Redo the tables and figures of Tores et al., CVPR 2024.",
        {
            "all": Entry("Redo all of them, with one index.", f"{MODELS}.paper:all_"),
            "table2": Entry("Redo Table 2 (and 5).", f"{MODELS}.paper:table2"),
            "table4": Entry("Redo Table 4, movie by movie.", f"{MODELS}.paper:table4"),
            "figure2": Entry("Count levels and concepts, drawn.", f"{MODELS}.paper:figure2"),
            "figure3": Entry("Show how well each concept is found.", f"{MODELS}.paper:figure3"),
            "figure5": Entry("Draw the tree over concepts.", f"{MODELS}.paper:figure5"),
            "figure6": Entry("Show what makes the perceptron fail.", f"{MODELS}.paper:figure6"),
        },
        "  obygaze paper all obygaze12.csv stores/xclip --out paper\n"
        "  obygaze paper table2 obygaze12.csv stores/xclip --out table2",
    ),
    "audit": Entry(
        "Audit embeddings, captions and saliency for bias.",
        {
            "eat": Entry("Embedding association tests.", f"{MODELS}.audit_eat:eat"),
            "words": Entry("Count words of emotion in captions.", f"{MODELS}.audit:words"),
            "alpha": Entry("Cronbach's alpha of raters.", f"{MODELS}.audit:alpha"),
            "saliency": Entry("Grad-CAM maps and regions of interest.", f"{MODELS}.audit_saliency:saliency"),
            "gender-score": Entry("Gender Scores of captions.", f"{MODELS}.audit_gender:gender_score"),
            "cooc": Entry("Co-occurrence of objects and genders.", f"{MODELS}.audit_gender:cooc"),
        },
        "  obygaze audit alpha --ratings ratings.csv --out alpha.csv",
    ),
    "task": Entry(
        "Benchmark tasks of neighbouring papers.",
        {
            "mediaeval15": Entry(
                "MediaEval 2015 Affective Impact of Movies.",
                {
                    "labels": Entry("Make classes of scores and judgements.", f"{MODELS}.mediaeval:labels"),
                    "train": Entry("Train on dev clips and write a run.", f"{MODELS}.mediaeval:train"),
                    "score": Entry("Score runs by the official measures.", f"{MODELS}.mediaeval:score"),
                    "check": Entry("Check a folder of runs by the rules.", f"{MODELS}.mediaeval:check"),
                },
                "  obygaze task mediaeval15 check --help",
            )
        },
        "  obygaze task mediaeval15 score --help",
    ),
    "predict": Entry("Score stores' clips with a saved model.", f"{MODELS}.predict:predict"),
    "explain": Entry("Take apart a concept model's decision.", f"{MODELS}.predict:explain"),
    "model": Entry(
        "Show what a model file is.",
        {"inspect": Entry("Print a model file's card.", f"{MODELS}.model:inspect")},
        "  obygaze model inspect models/pcbm_lr.model",
    ),
}

SIGPIPE = 13  # its number everywhere; Windows lacks signal.SIGPIPE
EXTRAS = {
    "av": "video",
    "PIL": "video",
    "pebble": "video",
    "ftfy": "extract",
    "torch": "extract",
    "transformers": "extract",
    "huggingface_hub": "remote",
    "obstore": "remote",
    "safetensors": "extract",
    "pytorch_grad_cam": "saliency",
    "torchvision": "saliency",
    "matplotlib": "figures",
    "ray": "ray",
    "skops": "skops",
    "pyarrow": "ray",
}

HELP = """Features of frozen video models, kept in stores that labs can share,
and the small models that read them.

\b
Examples:
  obygaze demo                                      the whole path in a minute
  obygaze manifest import folder films --out films.csv
  obygaze extract films.csv stores/films          resumes where it was stopped
  obygaze evaluate films.csv stores/films --task hn_s --test enhn_s
"""


class Contents(click.Group):
    """A group that knows its commands by name and imports each when it is asked for."""

    def __init__(self, name: str, entries: Mapping[str, Entry], **settings: Any) -> None:
        super().__init__(name, **settings)
        self.entries = entries

    def list_commands(self, _: click.Context) -> list[str]:
        """Name the commands in the order of the contents."""
        return list(self.entries)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, or make the group below it."""
        if cmd_name not in self.entries:
            return None
        entry = self.entries[cmd_name]
        if not isinstance(entry.target, str):
            return Contents(cmd_name, entry.target, help=f"{entry.summary}\n\n\b\nExamples:\n{entry.example}")
        module, attribute = entry.target.split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is asked for, or say which one was perhaps meant."""
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - for mistakes alone

            near = get_close_matches(args[0], self.entries, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])


class Fitted:
    """A terminal's stream on which lines break at blanks before the terminal's edge, not within words."""

    def __init__(self, stream: TextIO, width: int) -> None:
        self._stream = stream
        self._width = width

    def write(self, text: str) -> int:
        """Write a text, its long lines broken; what moves the cursor (a progress bar) as it is."""
        if "\r" not in text and "\x1b" not in text:
            text = "\n".join(map(self._broken, text.split("\n")))
        return self._stream.write(text)

    def _broken(self, line: str) -> str:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        parts = []
        while len(line) > self._width:
            cut = line.rfind(" ", len(indent) + 1, self._width + 1)
            cut = cut if cut > 0 else line.find(" ", self._width)
            if cut < 0:
                break
            parts.append(line[:cut].rstrip())
            line = indent + line[cut:].lstrip()
        return "\n".join([*parts, line])

    def __getattr__(self, name: str) -> Any:
        """Do everything else as the stream does."""
        return getattr(self._stream, name)


def fit_to_terminal(words: Sequence[str]) -> None:
    """Break long lines where output is a terminal, except JSON."""
    width = shutil.get_terminal_size((80, 24)).columns
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream.isatty() and not (name == "stdout" and "--json" in words):
            setattr(sys, name, Fitted(stream, width))


def show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the installed version and leave."""
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and needed here alone

        click.echo(f"obygaze {version('obygaze')}")
        ctx.exit()


def table_of_contents() -> Contents:
    """Make the root of all commands."""
    version = click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show_version
    )
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
    return Contents("obygaze", CONTENTS, help=HELP, params=[version], context_settings=settings)


def obygaze_error() -> type[Exception]:
    """Import the base of all errors that are written for users; only after something was raised."""
    from obygaze_features.errors import ObygazeError  # noqa: PLC0415 - help needs no package

    return ObygazeError


def fail(message: str) -> int:
    """Print an error as one line and give its exit code."""
    click.echo(f"obygaze: error: {message}", err=True)
    return 1


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 done, 1 error, 2 usage, 3 done with failed clips or problems found, 130 stopped, 141 the
    reader of its output has left, as in `obygaze store ls | head -1`: what a shell says of other programs.
    """
    code: object
    fit_to_terminal(sys.argv if arguments is None else arguments)
    try:
        code = table_of_contents().main(args=arguments, prog_name="obygaze", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("obygaze: stopped", err=True)
        code = 130
    except SystemExit:
        # click's answer, with code 1, when whoever read our output has left; our commands never leave so.
        code = 128 + SIGPIPE
    except obygaze_error() as error:
        code = fail(str(error))
    except OSError as error:
        code = fail(f"{error.filename or 'input/output'}: {error.strerror or error}")
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = EXTRAS[error.name]
        code = fail(f"this needs {error.name}; install it with: pip install 'obygaze[{extra}]'")
    sys.exit(code if isinstance(code, int) else 0)
