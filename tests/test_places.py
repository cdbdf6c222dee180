"""A command, an option and an audit are added to a copy in the places that docs/architecture.md names."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.process import python

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
COPIED = ("obygaze", "obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies", "tests", "docs")


class Change(NamedTuple):
    """Text of a file, and what is written in its place; a new file's is empty, and all of it is new."""

    file: str
    before: str
    after: str


class Number(NamedTuple):
    """A number of tests/surface.toml, and by how much it rises."""

    section: str
    group: str
    by: int


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
    Change("tests/cli/lines.py", '    "films": f"""\n', '    "films": f"""\nstore age in/m\n    0 | in/m:\n'),
    Change(
        "tests/cli/test_mistakes.py",
        'MISTAKES = f"""\n',
        'MISTAKES = f"""\n2 store age nowhere\n    nowhere: no such store\n',
    ),
    Number("commands", "store", 1),
    Number("options", "store", 1),  # --json
]

OPTION = [
    Change(
        "obygaze_studies/commands/audit_commands.py",
        '    pairs: Annotated[bool, option("Also report every pair of raters.")] = False,\n',
        '    pairs: Annotated[bool, option("Also report every pair of raters.")] = False,\n'
        '    loud: Annotated[bool, option("Say what is read.")] = False,\n',
    ),
    Change(
        "obygaze_studies/commands/audit_commands.py",
        "    return output.finish(audit_alpha(read_ratings(ratings), pairs=pairs))\n",
        "    if loud:\n        click.echo(f'reading {ratings}', err=True)\n"
        "    return output.finish(audit_alpha(read_ratings(ratings), pairs=pairs))\n",
    ),
    Number("options", "audit", 1),
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
    Change(
        "tests/cli/lines.py",
        '    "films": f"""\n',
        '    "films": f"""\naudit longest --captions in/captions.csv --out out/l.csv\n',
    ),
    Number("commands", "audit", 1),
    Number("options", "audit", 3),  # --captions, --out, --json
]


ADDED = {"a command": COMMAND, "an option": OPTION, "an audit": AUDIT}
SURFACE = "tests/surface.toml"


def apply(change: Change, folder: Path) -> None:
    path = folder / change.file
    if not change.before:
        path.write_text(change.after, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    assert text.count(change.before) == 1, change
    path.write_text(text.replace(change.before, change.after), encoding="utf-8")


def count(number: Number, folder: Path) -> None:
    path = folder / SURFACE
    before, title, section = path.read_text(encoding="utf-8").partition(f"[{number.section}]\n")
    (today,) = re.findall(rf"^{number.group} = (\d+)", section.partition("\n\n")[0], re.MULTILINE)
    line = f"{number.group} = {int(today) + number.by}"
    path.write_text(before + title + section.replace(f"{number.group} = {today}", line, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of what the command line is made of, with all three additions."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("cli.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for changes in ADDED.values():
        for change in changes:
            count(change, folder) if isinstance(change, Number) else apply(change, folder)
    return folder


@pytest.mark.parametrize("case", ["a command", "an audit"])
def test_the_page_names_the_places(case):
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    places = page.partition("## How this house reads")[0]  # there stand models to follow
    (row,) = re.findall(rf"^\| {case} \| (.*) \|$", places, re.MULTILINE)
    for change in ADDED[case]:
        place = SURFACE if isinstance(change, Number) else change.file
        is_new_module = isinstance(change, Change) and not change.before
        assert (f"{Path(place).parent.name}/" if is_new_module else place) in row


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("store age tests", "tests: "),
        ("store age --help", "Print when a store was changed last."),
        ("store --help", "Print the age."),
        ("audit alpha --ratings ratings.csv --out a.csv --loud", "reading ratings.csv"),
        ("audit longest --captions captions.csv --out l.csv", "a sleeping cat"),
    ],
)
def test_what_was_added_works(command, words, checkout):
    (checkout / "ratings.csv").write_text("item_id,a,b\nx,1,2\ny,2,3\nz,4,4\n")
    (checkout / "captions.csv").write_text("image_id,caption\na,a cat\nb,a sleeping cat\n")
    ended = python("-m", "obygaze", *command.split(), cwd=checkout)
    assert words in ended.stdout + ended.stderr


def test_the_places_are_all_that_the_tests_of_the_command_line_ask_for(checkout):
    files = ("tests/test_surface.py", "tests/cli/test_contents.py", "tests/cli/test_commands.py")
    chosen = "written_down or contents or has_a_row or json_too"
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", *files, "-k", chosen, cwd=checkout)
