"""The block under "Try it" of every audit's page runs as it stands."""

import re
import shlex
from pathlib import Path

import pytest

from tests.command import obygaze

ROOT = Path(__file__).parents[3]
PAGES = sorted(page for page in (ROOT / "docs" / "audits").glob("*.md") if page.stem != "README")


def commands_to_try(page):
    """Return the words of each command in the section "Try it" of a page, without `obygaze`."""
    section = page.read_text(encoding="utf-8").partition("## Try it")[2].partition("\n## ")[0]
    block = "\n".join(line for line in section.splitlines() if line.startswith("    "))
    return [shlex.split(line)[1:] for line in re.sub(r"\\\n\s*", " ", block).splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_under_try_it_of_an_audits_page_run_and_say_where_results_are_kept(
    page, tmp_path, monkeypatch, capsys
):
    """The page docs/audits/eat.md, say, has a section "Try it" of commands, the last of which is that audit.

    They read the demo's files, which are in the folder of the package, and run in an empty folder otherwise.
    """
    folder_with_files_of_demo = ROOT / "obygaze_studies"
    (tmp_path / "obygaze_studies").symlink_to(folder_with_files_of_demo)
    monkeypatch.chdir(tmp_path)

    commands = commands_to_try(page)
    *_, last_command = commands
    assert last_command[:2] == ["audit", page.stem]
    for words in commands:
        exit_code = obygaze(*words)
        assert exit_code == 0, capsys.readouterr().err

    assert "kept in" in capsys.readouterr().err
