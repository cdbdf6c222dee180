"""Define the `obygaze` command as a lazy table of contents.

A subcommand's module is imported only when that subcommand runs: `obygaze --help` costs no more than click.
"""

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from obygaze.safe_output import shown

FEATURES = "obygaze_features.commands"
MODELS = "obygaze_models.commands"
FILM = "obygaze_film.commands"
STUDIES = "obygaze_studies.commands"


@dataclass(frozen=True)
class ContentsEntry:
    """One entry of the contents: the summary of a command, its import target or subcommands, an example."""

    summary: str
    target: str | Mapping[str, "ContentsEntry"]
    example: str = ""


CONTENTS: dict[str, ContentsEntry] = {
    "demo": ContentsEntry(
        "Make a small film corpus, extract, seal, verify, evaluate.", f"{FEATURES}.demo:demo"
    ),
    "manifest": ContentsEntry(
        "Create and inspect manifests (tables of clips).",
        {
            "import": ContentsEntry(
                "Make a manifest from annotations or videos.",
                f"{FEATURES}.manifest_import:import_",
            ),
            "inspect": ContentsEntry(
                "Check a manifest and show its clips.", f"{FEATURES}.manifest_inspect:inspect"
            ),
            "project": ContentsEntry(
                "Project free annotations onto clips.", f"{FEATURES}.manifest_inspect:project"
            ),
            "agreement": ContentsEntry(
                "Measure gamma agreement between annotators.",
                f"{MODELS}.annotation_commands:agreement",
            ),
            "stats": ContentsEntry("Count levels and concepts.", f"{STUDIES}.corpus_commands:stats"),
            "sheets": ContentsEntry(
                "Draw contact sheets per concept or kind of error.",
                f"{FEATURES}.manifest_inspect:sheets",
            ),
        },
        "  obygaze manifest import folder films --out films.csv\n  obygaze manifest stats films.csv",
    ),
    "codebook": ContentsEntry(
        "Show, check and write codebooks (levels, concepts, tasks).",
        {
            "show": ContentsEntry(
                "Show a codebook: built-in, of a file or of a manifest.",
                f"{FEATURES}.codebook_commands:show",
            ),
            "check": ContentsEntry("Check a codebook file.", f"{FEATURES}.codebook_commands:check"),
            "init": ContentsEntry(
                "Write a commented template of a codebook.",
                f"{FEATURES}.codebook_commands:init",
            ),
            "texts": ContentsEntry(
                "Write the texts of a codebook's concepts.",
                f"{FEATURES}.codebook_commands:texts",
            ),
        },
        "  obygaze codebook show obygaze12\n  obygaze codebook init --out mine.toml",
    ),
    "doctor": ContentsEntry(
        "Check a machine and a store's place before a long extraction.",
        f"{FEATURES}.doctor_command:doctor",
    ),
    "frames": ContentsEntry(
        "Show or save the frames an extraction would use.", f"{FEATURES}.frames_command:frames"
    ),
    "extract": ContentsEntry(
        "Extract a manifest's clips into a store.", f"{FEATURES}.extract_command:extract"
    ),
    "train": ContentsEntry(
        "Re-train a backbone.",
        {
            "xclip-lsmdc": ContentsEntry(
                "Train X-CLIP on LSMDC, starting from CLIP.", f"{STUDIES}.train:xclip_lsmdc"
            ),
        },
        "  obygaze train xclip-lsmdc --help",
    ),
    "gradcam": ContentsEntry("Compute Grad-CAM maps for still images.", f"{STUDIES}.gradcam:gradcam"),
    "store": ContentsEntry(
        "List, inspect, seal, verify, share and combine stores.",
        {
            "ls": ContentsEntry("List the stores in a folder.", f"{FEATURES}.store_commands:ls"),
            "inspect": ContentsEntry(
                "Show what a store holds and its provenance.",
                f"{FEATURES}.store_commands:inspect",
            ),
            "seal": ContentsEntry(
                "Turn a staging folder into an immutable store.",
                f"{FEATURES}.store_commands:seal",
            ),
            "verify": ContentsEntry(
                "Check a store against its digests.", f"{FEATURES}.store_commands:verify"
            ),
            "diff": ContentsEntry("Report differences between two stores.", f"{FEATURES}.store_combine:diff"),
            "merge": ContentsEntry(
                "Merge the clips of several stores into one.", f"{FEATURES}.store_combine:merge"
            ),
            "import": ContentsEntry(
                "Import features from other tools.", f"{FEATURES}.store_exchange:import_"
            ),
            "export": ContentsEntry(
                "Write features as HDF5 or AnnData.", f"{FEATURES}.store_exchange:export"
            ),
            "card": ContentsEntry("Regenerate a store's dataset card.", f"{FEATURES}.store_exchange:card"),
            "pack": ContentsEntry("Pack a store into one zip file.", f"{FEATURES}.store_transfer:pack"),
            "unpack": ContentsEntry("Unpack a zip file into a folder.", f"{FEATURES}.store_transfer:unpack"),
            "pull": ContentsEntry("Download a store or part of it.", f"{FEATURES}.store_transfer:pull"),
            "push": ContentsEntry("Upload a store.", f"{FEATURES}.store_transfer:push"),
            "rm": ContentsEntry("Remove stores and staging folders.", f"{FEATURES}.store_commands:rm"),
            "gc": ContentsEntry(
                "Remove staging folders that are already sealed.",
                f"{FEATURES}.store_commands:gc",
            ),
        },
        "  obygaze store ls\n  obygaze store verify stores/films --full",
    ),
    "weights": ContentsEntry(
        "Download and verify network weights.",
        {
            "fetch": ContentsEntry(
                "Download weights from the hub and print their commit.",
                f"{FEATURES}.weights_commands:fetch",
            ),
            "verify": ContentsEntry(
                "Check a weight file against its SHA-256.",
                f"{FEATURES}.weights_commands:verify",
            ),
        },
        "  obygaze weights fetch xclip\n  obygaze weights verify pytorch_model.bin.4 --sha256 9f86d081...",
    ),
    "search": ContentsEntry("Find clips of a store by a text.", f"{FEATURES}.search:search"),
    "lm": ContentsEntry("Score texts with a causal language model.", f"{STUDIES}.lm:lm"),
    "folds": ContentsEntry("List the clips of each fold.", f"{STUDIES}.corpus_commands:folds"),
    "evaluate": ContentsEntry(
        "Evaluate models by leave-one-movie-out.", f"{MODELS}.evaluate_commands:evaluate"
    ),
    "compare": ContentsEntry("Compare two models, paired by movie.", f"{MODELS}.evaluate_commands:compare"),
    "paper": ContentsEntry(
        "Reproduce tables and figures of Tores et al., CVPR 2024.",
        {
            "all": ContentsEntry(
                "Reproduce all of them and write an index.", f"{STUDIES}.paper_commands:all_"
            ),
            "table2": ContentsEntry("Reproduce Table 2 (and 5).", f"{STUDIES}.paper_commands:table2"),
            "table4": ContentsEntry(
                "Reproduce Table 4 (generalisation across movies).",
                f"{STUDIES}.paper_commands:table4",
            ),
            "figure2": ContentsEntry(
                "Reproduce Figure 2 (counts of levels and concepts).",
                f"{STUDIES}.paper_commands:figure2",
            ),
            "figure3": ContentsEntry(
                "Reproduce Figure 3 (detection of each concept).",
                f"{STUDIES}.paper_commands:figure3",
            ),
            "figure4": ContentsEntry(
                "Draw the preprint's Figure 4 (annotations to labels).",
                f"{STUDIES}.paper_commands:figure4",
            ),
            "figure5": ContentsEntry(
                "Reproduce Figure 5 (decision tree on concepts).",
                f"{STUDIES}.paper_commands:figure5",
            ),
            "figure6": ContentsEntry(
                "Reproduce Figure 6 (error analysis of the MLP).",
                f"{STUDIES}.paper_commands:figure6",
            ),
            "claims": ContentsEntry(
                "Test sentences of the papers on released data.", f"{STUDIES}.corpus_commands:claims"
            ),
        },
        "  obygaze paper all obygaze12.csv stores/xclip --out paper\n"
        "  obygaze paper table2 obygaze12.csv stores/xclip --out table2",
    ),
    "audit": ContentsEntry(
        "Audit embeddings, captions and saliency for bias.",
        {
            "eat": ContentsEntry("Run embedding association tests.", f"{STUDIES}.audit_eat:eat"),
            "words": ContentsEntry("Count emotion words in captions.", f"{STUDIES}.audit:words"),
            "alpha": ContentsEntry("Compute Cronbach's alpha of raters.", f"{STUDIES}.audit:alpha"),
            "text-directions": ContentsEntry(
                "Compare texts of concepts with labelled CAVs.",
                f"{STUDIES}.audit:text_directions",
            ),
            "saliency": ContentsEntry(
                "Measure Grad-CAM maps in regions of interest.",
                f"{STUDIES}.audit:saliency",
            ),
            "gender-score": ContentsEntry(
                "Compute Gender Scores of captions.", f"{STUDIES}.audit_gender:gender_score"
            ),
            "objects": ContentsEntry(
                "Find the objects of images with CLIP.", f"{STUDIES}.audit_gender:objects"
            ),
            "cooc": ContentsEntry(
                "Count co-occurrences of objects and genders.", f"{STUDIES}.audit_gender:cooc"
            ),
        },
        "  obygaze audit alpha --ratings ratings.csv --out alpha.csv",
    ),
    "task": ContentsEntry(
        "Run benchmark tasks of related papers.",
        {
            "mediaeval15": ContentsEntry(
                "Run MediaEval 2015 Affective Impact of Movies.",
                {
                    "labels": ContentsEntry(
                        "Convert scores and judgements to classes.",
                        f"{STUDIES}.mediaeval:labels",
                    ),
                    "train": ContentsEntry(
                        "Train on dev clips and write a run file.", f"{STUDIES}.mediaeval:train"
                    ),
                    "score": ContentsEntry(
                        "Score runs with the official measures.", f"{STUDIES}.mediaeval:score"
                    ),
                    "check": ContentsEntry(
                        "Check a folder of runs against the rules.",
                        f"{STUDIES}.mediaeval:check",
                    ),
                },
                "  obygaze task mediaeval15 check --help",
            )
        },
        "  obygaze task mediaeval15 score --help",
    ),
    "film": ContentsEntry(
        "Score whole films; compare the scores with people.",
        {
            "run": ContentsEntry("Cut, extract, score and show films in one go.", "obygaze.film_run:run"),
            "score": ContentsEntry("Score the windows of films in a store.", f"{FILM}.film_score:score"),
            "thumbnails": ContentsEntry("Save small pictures of segments.", f"{FILM}.film_output:thumbnails"),
            "report": ContentsEntry("Show scored films as a page.", f"{FILM}.film_output:report"),
            "export": ContentsEntry(
                "Write a scored film for ELAN, players, editors.", f"{FILM}.film_output:export"
            ),
            "evaluate": ContentsEntry(
                "Compare scored films with annotations.", f"{FILM}.film_score:evaluate"
            ),
            "next": ContentsEntry("Choose the windows to judge next.", f"{FILM}.film_score:next_"),
            "rate": ContentsEntry("Estimate a film's rate from blind judgements.", f"{FILM}.film_score:rate"),
        },
        "  obygaze film run film.mkv --model run/pcbm_lr.model --out scored\n"
        "  obygaze film score run/pcbm_lr.model stores/film --out scored\n"
        "  obygaze film report scored --out film.html",
    ),
    "predict": ContentsEntry("Score clips of stores with a saved model.", f"{MODELS}.model_commands:predict"),
    "explain": ContentsEntry(
        "Explain a concept model's decision on a clip.", f"{MODELS}.model_commands:explain"
    ),
    "localise": ContentsEntry(
        "Compare frames' scores with marked segments.", f"{MODELS}.annotation_commands:localise"
    ),
    "model": ContentsEntry(
        "Inspect model files.",
        {"inspect": ContentsEntry("Print the card of a model file.", f"{MODELS}.model_commands:inspect")},
        "  obygaze model inspect models/pcbm_lr.model",
    ),
}

SIGPIPE = 13  # its number everywhere; Windows lacks signal.SIGPIPE
EXTRAS = {
    "av": "video",
    "PIL": "video",
    "ftfy": "extract",
    "torch": "extract",
    "transformers": "extract",
    "huggingface_hub": "remote",
    "obstore": "remote",
    "safetensors": "extract",
    "open_clip": "openclip",
    "pytorch_grad_cam": "saliency",
    "torchvision": "saliency",
    "matplotlib": "figures",
    "ray": "ray",
    "skops": "skops",
    "opentimelineio": "interchange",
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
    """A click group that imports each command when it is first used."""

    def __init__(self, name: str, entries: Mapping[str, ContentsEntry], **settings: Any) -> None:
        super().__init__(name, **settings)
        self.entries = entries

    def list_commands(self, _: click.Context) -> list[str]:
        """List the command names in the order of the contents."""
        return list(self.entries)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, or build the group of its subcommands."""
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
        """Find the named command, or suggest the closest name."""
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - only needed for a wrong name

            near = get_close_matches(args[0], self.entries, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])


def show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the installed version and exit."""
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and needed only here

        click.echo(f"obygaze {version('obygaze')}")
        ctx.exit()


def table_of_contents() -> Contents:
    """Build the root command."""
    version = click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show_version
    )
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
    return Contents("obygaze", CONTENTS, help=HELP, params=[version], context_settings=settings)


def obygaze_error() -> type[Exception]:
    """Import the base class of errors meant for users; called only after something was raised."""
    from obygaze_features.errors import ObygazeError  # noqa: PLC0415 - help needs no package

    return ObygazeError


def fail(message: str) -> int:
    """Print an error as one line and return its exit code."""
    from obygaze_features.text import visible  # noqa: PLC0415 - help needs no package

    click.echo(f"obygaze: error: {visible(message, lines=False)}", err=True)
    return 1


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 done, 1 error, 2 usage, 3 done with failed clips or problems found, 130 stopped, 141 when
    the reader of the output has closed it, as in `obygaze store ls | head -1` (the shell's convention).
    """
    with shown(sys.argv if arguments is None else arguments):
        code = _run(arguments)
    sys.exit(code if isinstance(code, int) else 0)


def _run(arguments: list[str] | None) -> object:
    """Run a command; print what went wrong as one line, and return the exit code."""
    code: object
    try:
        code = table_of_contents().main(args=arguments, prog_name="obygaze", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("obygaze: stopped", err=True)
        code = 130
    except SystemExit as left:
        # click exits with 1 when the reader of our output has closed it; our commands never do that.
        code = 128 + SIGPIPE if left.code == 1 else left.code
    except obygaze_error() as error:
        code = fail(str(error))
    except OSError as error:
        code = fail(f"{error.filename or 'input/output'}: {error.strerror or error}")
    except (ModuleNotFoundError, RuntimeError) as error:
        message = _missing(error)
        if message is None:
            raise
        code = fail(message)
    return code


def _missing(error: Exception) -> str | None:
    """Say what to install after an import failed; None if the error is another one."""
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"this needs {error.name}; install it with: pip install 'obygaze[{EXTRAS[error.name]}]'"
    reason: BaseException | None = error
    while reason is not None:
        # torchvision says so, and transformers, which imports it whenever it is there, passes it on.
        if isinstance(reason, RuntimeError) and str(reason).startswith("operator torchvision::"):
            return (
                "the installed torchvision does not work with the installed torch: they are of different "
                "releases, or one is built for CUDA and one is not; reinstall both in one pip command, "
                "from the same index ('Installing' in README.md)"
            )
        reason = reason.__cause__ or reason.__context__
    return None
