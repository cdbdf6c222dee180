"""One of each is added to a copy of the checkout, in new files and the place that docs say."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lazy_import import lazy_import
from tests.private import files_below
from tests.process import python

Image = lazy_import("PIL.Image")

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
COPIED = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies", "tests", "docs")


class Change(NamedTuple):
    """Text of a file, and what is written in its place; a new file's is empty, and all of it is new."""

    file: str
    before: str
    after: str

    @property
    def is_of_new_file(self) -> bool:
        """Whether the file was not there before."""
        return self.before == ""


COMMAND = [
    Change(
        "obygaze_features/commands/store_age.py",
        "",
        '''"""`obygaze store age`: when a store was sealed."""

from pathlib import Path
from typing import Annotated

import click

from obygaze_features.options import Answer
from obygaze_features.signatures import argument, command


@command()
def age(store: Annotated[Path, argument()]) -> Answer:
    """Print when a store was changed last.

    \\b
    Examples:
      obygaze store age stores/films
    """
    if not store.exists():
        raise click.UsageError(f"{store}: no such store")
    changed = store.stat().st_mtime
    return Answer({"changed": changed}, f"{store}: {changed:.0f}")
''',
    ),
    Change(
        "obygaze/contents.py",
        '    "store rm": Entry(',
        '    "store age": Entry("Print the age.", "obygaze_features.commands.store_age:age"),\n'
        '    "store rm": Entry(',
    ),
    Change("tests/cli/rows/age.txt", "", "store age in/films.csv\n    0 | in/films.csv:\n"),
]

OPTION = [
    Change(
        "obygaze_studies/commands/audit_commands.py",
        '    pairs: Annotated[bool, option("Also report alpha for every pair of raters.")] = False,\n',
        '    pairs: Annotated[bool, option("Also report alpha for every pair of raters.")] = False,\n'
        '    loud: Annotated[bool, option("Say what is read.")] = False,\n',
    ),
    Change(
        "obygaze_studies/commands/audit_commands.py",
        "    return output.finish(audit_alpha(read_ratings(ratings), pairs=pairs))\n",
        "    if loud:\n        click.echo(f'reading {ratings}', err=True)\n"
        "    return output.finish(audit_alpha(read_ratings(ratings), pairs=pairs))\n",
    ),
]

AUDIT = [
    Change(
        "obygaze_studies/longest.py",
        "",
        '''"""Find the longest caption."""

from pathlib import Path

from obygaze_studies.audit_common.findings import Finding, Wording, audited
from obygaze_studies.audit_common.inputs import read_rows

SHOWN = ("image_id", "caption")


@audited(Wording(name="longest", title="Longest caption", table="Longest", columns=SHOWN))
def audit_longest(captions: Path) -> Finding:
    """Find the longest caption of a table."""
    rows = sorted(read_rows(captions, SHOWN), key=lambda row: len(row["caption"]))
    return Finding(rows=rows[-1:])
''',
    ),
    Change(
        "obygaze_studies/commands/audit_commands.py",
        "@click.group(cls=Audits)\n",
        '''@command()
def longest(*, captions: Annotated[Path, option("CSV of captions.")], out: Out) -> Answer:
    """Find the longest caption.

    \\b
    Examples:
      obygaze audit longest --captions captions.csv --out longest.csv
    """
    from obygaze_studies.longest import audit_longest

    return ReportOutput(out, beside=True).finish(audit_longest(captions))


@click.group(cls=Audits)
''',
    ),
    Change("obygaze_studies/commands/audit_commands.py", "in (words,", "in (longest, words,"),
    Change("tests/cli/rows/longest.txt", "", "audit longest --captions in/captions.csv --out out/l.csv\n"),
]


METRIC = [
    Change(
        "obygaze_models/evaluation/metrics.py",
        "# --- ordered levels\n",
        '''def accuracy(y: LabelArray, called: LabelArray) -> float:
    """Share of right calls; NaN without clips."""
    return float(np.mean(y == called)) if len(y) else NAN


# --- ordered levels
''',
    ),
    Change(
        "obygaze_models/evaluation/metrics.py",
        '        Metric(\n            "auc",\n',
        """        Metric(
            "accuracy",
            "accuracy",
            "called",
            accuracy,
            chance_of_constant_calls(accuracy),
            shown=False,
            meaning="share of right calls",
            chance_meaning="best constant",
        ),
        Metric(
            "auc",
""",
    ),
]

BACKBONE = [
    Change(
        "obygaze_features/backbones/tiny.py",
        "",
        '''"""A layer of convolutions with weights drawn from a seed."""

import torch
from torch import nn

from obygaze_features.backbones.backbone import Backbone
from obygaze_features.backbones.checkpoint import untrained
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import Weights

WIDTH = 4


class Patches(nn.Module):
    """The mean over patches."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, kernel_size=32, stride=32)

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Take clips [B, F, 3, 224, 224]; give one vector per clip."""
        maps = self.patches(pixels.flatten(0, 1)).mean(dim=(2, 3))
        return {"pooled": maps.view(*pixels.shape[:2], WIDTH).float().mean(dim=1)}


def tiny(n_frames: int | None = None, *, compute: Compute | None = None) -> Backbone:
    """Build the network of the seed 7."""
    return network_backbone(
        "tiny",
        untrained(Patches, 7),
        n_frames=n_frames or 2,
        shapes={"pooled": (WIDTH,)},
        meanings={"pooled": "mean over patches and frames"},
        weights=Weights(seed=7),
        preset=choose_preset("clip", ("clip",)),
        compute=compute or Compute(),
        head=None,
        layer="patches",
        architecture={"type": "tiny", "width": WIDTH},
        citation="none",
        libraries=("torch",),
    )
''',
    ),
    Change(
        "obygaze_features/backbones/networks.toml",
        "[backbones.clip]\n",
        '[backbones.tiny]\nfunction = "obygaze_features.backbones.tiny:tiny"\n'
        'about = "a layer of convolutions"\nn_frames = "2"\npooled = "mean over patches and frames"\n\n'
        "[backbones.clip]\n",
    ),
]

KIND = [
    Change(
        "obygaze_features/manifest/spans/beats.py",
        "",
        '''"""Read lists of beats: a start, an end and a level on each line."""

from collections.abc import Iterator

from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile


def read_beats(file: SpanFile) -> Iterator[RawSpan]:
    """Yield a record for each line below the first."""
    for line_number, line in enumerate(file.lines[1:], start=2):
        cells = line.split()
        if len(cells) == 3:
            start_s, end_s = number(cells[0]), number(cells[1])
            yield RawSpan(f"line {line_number}", start_s, end_s, cells[2], tier="level")
        elif cells:
            yield RawSpan(f"line {line_number}", reason="no start, end and level")
''',
    ),
    Change(
        "obygaze_features/manifest/spans/kinds.toml",
        "[kinds.srt]\n",
        """[kinds.beats]
name = "beats"
tool = "Lab"
source = "our lab"
reader = "obygaze_features.manifest.spans.beats:read_beats"
holds = '\\A#BEATS\\n'
notes = "a start, an end and a level on each line."
sample = "#BEATS\\n1 5 S\\n"

[kinds.srt]
""",
    ),
]

EXPORTER = [
    Change(
        "obygaze_film/exchange/lines.py",
        "",
        '''"""Write a line of text for each span."""

from obygaze_film.exchange.tiers import Exported


def to_lines(exported: Exported) -> str:
    """Write the caveats, then the spans."""
    lines = [*exported.caveats]
    for tier, span in exported.spans:
        lines.append(f"{span.start_s:.1f} {span.end_s:.1f} {tier.name}: {span.text}")
    return "\\n".join(lines) + "\\n"
''',
    ),
    Change(
        "obygaze_film/exchange/formats.toml",
        "[formats.csv]\n",
        """[formats.lines]
about = "text for people"
writer = "obygaze_film.exchange.lines:to_lines"
suffix = ".txt"
tiers = ["segments"]
loses = "probabilities have two decimals, times tenths"

[formats.csv]
""",
    ),
]

CHANGES_OF = {
    "a command": COMMAND,
    "an option": OPTION,
    "an audit": AUDIT,
    "a metric": METRIC,
    "a backbone": BACKBONE,
    "a kind of file with spans": KIND,
    "an exporter of scored films": EXPORTER,
}
"""Kind of addition -> all changes of files that it takes."""

EXISTING_FILES_CHANGED_BY = {
    "a command": {"obygaze/contents.py"},
    "an option": {"obygaze_studies/commands/audit_commands.py"},
    "an audit": {"obygaze_studies/commands/audit_commands.py"},
    "a metric": {"obygaze_models/evaluation/metrics.py"},
    "a backbone": {"obygaze_features/backbones/networks.toml"},
    "a kind of file with spans": {"obygaze_features/manifest/spans/kinds.toml"},
    "an exporter of scored films": {"obygaze_film/exchange/formats.toml"},
}
"""Kind of addition -> the files that were there before and that a person changes for it: one each."""

WRITTEN_BY_PROGRAMS = {
    "tests/surface.toml",  # by python -m tests.surface
    *("docs/backbones.md", "docs/corpora.md", "docs/evaluation.md", "docs/film-page.md"),  # tests.page_tables
}
"""Files that are there already and that a program writes anew."""


def apply(change: Change, folder: Path) -> None:
    path = folder / change.file
    if change.is_of_new_file:
        path.write_text(change.after, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    assert text.count(change.before) == 1, change
    path.write_text(text.replace(change.before, change.after), encoding="utf-8")


@pytest.fixture(scope="module")
def checkout_with_additions(tmp_path_factory):
    """A copy of the checkout with all additions of `CHANGES_OF`."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("cli.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for changes in CHANGES_OF.values():
        for change in changes:
            apply(change, folder)
    surface = python("-m", "tests.surface", cwd=folder).stdout
    (folder / "tests/surface.toml").write_text(surface, encoding="utf-8")
    python("-m", "tests.page_tables", cwd=folder)
    return folder


@pytest.mark.parametrize("addition", CHANGES_OF)
def test_an_addition_takes_new_files_and_a_change_of_one_file(addition):
    """To add a command, say, one writes new files, and of those that are there changes one alone.

    The changes that each kind of addition takes stand in CHANGES_OF. They are tried in a copy of the checkout
    by the other tests, so that an addition that needs a second place fails there. Here the changes must be of
    one existing file: for a command it is obygaze/contents.py.
    """
    existing_files_changed = {change.file for change in CHANGES_OF[addition] if not change.is_of_new_file}

    assert existing_files_changed == EXISTING_FILES_CHANGED_BY[addition]
    assert len(existing_files_changed) == 1


def test_additions_change_only_the_files_where_they_are_listed_and_those_that_programs_write(
    checkout_with_additions,
):
    """A copy of the checkout has a new command, option, audit, metric, backbone, kind of file and exporter.

    For each, a person wrote new files and changed one that was there (EXISTING_FILES_CHANGED_BY). Then two
    programs wrote tests/surface.toml and the tables of docs/ (WRITTEN_BY_PROGRAMS). All other files of the
    original are as they were.
    """
    changed = set()
    for path in files_below(*(checkout_with_additions / name for name in COPIED)):
        file = path.relative_to(checkout_with_additions).as_posix()
        original = ROOT / file
        was_there_before = path.suffix != ".pyc" and original.is_file()
        if was_there_before and original.read_bytes() != path.read_bytes():
            changed.add(file)

    changed_by_hand = set.union(*EXISTING_FILES_CHANGED_BY.values())
    assert changed == changed_by_hand | WRITTEN_BY_PROGRAMS


@pytest.mark.parametrize("addition", CHANGES_OF)
def test_the_page_on_architecture_names_the_files_to_change(addition):
    """A table of docs/architecture.md says where to change what, with a row for each addition, as "a metric".

    CHANGES_OF has the changes of files that make up each addition. The row must name the folder of each new
    file, and the name of each file that is changed. It must also name the program to run then:
    `tests.surface` for what the command line shows, which is counted, and `tests.page_tables` for what a page
    lists.
    """
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    # The next section has a table too, whose rows begin alike.
    section_where_to_change_what, _, _ = page.partition("## How this house reads")
    (row,) = re.findall(rf"^\| {addition} \| (.*) \|$", section_where_to_change_what, re.MULTILINE)

    may_be_in_the_file_of_any_command = addition == "an option"  # so that the row names no file
    if not may_be_in_the_file_of_any_command:
        for change in CHANGES_OF[addition]:
            path = Path(change.file)
            place = f"{path.parent.name}/" if change.is_of_new_file else path.name
            assert place in row

    is_shown_by_the_command_line = addition in {"a command", "an option", "an audit"}
    program_to_run = "tests/surface.toml" if is_shown_by_the_command_line else "python -m tests.page_tables"
    assert program_to_run in row


@pytest.mark.parametrize(
    ("command", "output_of_addition"),
    [
        pytest.param("store age tests", "tests: ", id="the command runs"),
        pytest.param("store age --help", "Print when a store was changed last.", id="the command has a help"),
        pytest.param("store --help", "Print the age.", id="the command is listed"),
        pytest.param(
            "audit alpha --ratings ratings.csv --out a.csv --loud",
            "reading ratings.csv",
            id="the option --loud is obeyed",
        ),
        pytest.param(
            "audit longest --captions captions.csv --out l.csv", "a sleeping cat", id="the audit runs"
        ),
        pytest.param(
            "manifest import spans a.beats --movie a --out beats.csv",
            "1 of 1 span read (beats)",
            id="the kind of file beats is read",
        ),
        pytest.param("film export --help", "lines      text for people", id="the format lines is listed"),
        pytest.param("manifest import spans --help", "ass, beats", id="the kind of file beats is listed"),
    ],
)
def test_a_command_uses_or_lists_what_was_added_to_the_checkout(
    command, output_of_addition, checkout_with_additions
):
    """To a copy of the checkout were added, among others, these, of which nothing is there without them.

    They are the command `store age`, the option --loud of `audit alpha`, the audit `longest`, the kind of
    file `beats` (spans to import), and the format `lines` (scored films to export). Each command prints a
    text that comes from one of them.
    """
    folder = checkout_with_additions
    (folder / "ratings.csv").write_text("item_id,a,b\nx,1,2\ny,2,3\nz,4,4\n")
    (folder / "a.beats").write_text("#BEATS\n0.5 2 S\n")
    (folder / "captions.csv").write_text("image_id,caption\na,a cat\nb,a sleeping cat\n")

    result = python("-m", "obygaze", *command.split(), cwd=folder)

    assert output_of_addition in result.stdout + result.stderr


@pytest.mark.nightly
def test_a_backbone_that_was_added_fills_a_store_that_verifies(checkout_with_additions):
    """The checkout has a new backbone `tiny`; it is run on one still picture."""
    folder = checkout_with_additions
    (folder / "stills").mkdir()
    Image.new("RGB", (64, 48), "red").save(folder / "stills/a.png")

    def obygaze(*words):
        return python("-m", "obygaze", *words, cwd=folder).stdout

    obygaze("manifest", "import", "images", "stills", "--out", "stills.csv")
    obygaze("extract", "stills.csv", "red", "--backbone", "tiny", "--workers", 1, "--licence", "CC0-1.0")
    report = obygaze("store", "verify", "red-1.0.0", "--full")

    assert "nothing wrong" in report


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        ("evaluation/test_levels.py evaluation/test_predictions.py evaluation/test_summary.py", "metric"),
        ("test_page_tables.py test_patterns.py extraction/test_options.py", ""),
        ("manifest/spans test_plugins.py", "beats or formats or command"),
        ("film/exchange film/workspace/test_importing.py", "lines"),
        ("test_surface.py cli/test_contents.py", ""),
        ("cli/test_commands.py", "has_a_row or json or [age] or [longest]"),
    ],
    ids=["a metric", "tables and patterns", "a kind of file", "an exporter", "the surface", "commands"],
)
def test_our_own_tests_pass_in_a_checkout_with_additions(files, chosen, checkout_with_additions):
    """Who adds a metric, say, need not change any test: those that look at all metrics pass with it.

    `files` are paths below tests/, `chosen` is pytest's -k.
    """
    paths = [f"tests/{file}" for file in files.split()]
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *paths, "-k", chosen]

    python(*words, cwd=checkout_with_additions)  # fails unless it exits with 0
