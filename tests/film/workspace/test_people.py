"""Several people judge one film on machines whose folders are synchronised."""

import shutil
import subprocess

import pytest

from obygaze_film.workspace.decisions import JUDGEMENTS
from obygaze_film.workspace.ledger import Ledger, standing
from tests.files import rows_of
from tests.film.workspace.conftest import Served


def synchronise(*folders):
    """Copy what is new in one folder to the others, as a program does: of two versions the newer one."""
    for source in folders:
        for path in [path for path in source.rglob("*") if path.is_file()]:
            for target in folders:
                there = target / path.relative_to(source)
                if not there.exists() or there.stat().st_mtime_ns < path.stat().st_mtime_ns:
                    there.parent.mkdir(exist_ok=True)
                    shutil.copy2(path, there.with_suffix(".arriving"))
                    there.with_suffix(".arriving").replace(there)


@pytest.mark.long
def test_two_machines_judge_blindly_and_see_each_other_when_they_are_finished(process, films, tmp_path):
    folders, machines = [tmp_path / name / "tt1" for name in ("ab", "cd")], []
    for folder in folders:
        shutil.copytree(films / "scored" / "tt1", folder)
        machines.append(Served(process(folder, films / "violence.codebook.toml")[1]))
    ab, cd = machines

    def judge(machine, who, number, level):
        for _ in range(number):
            window = machine.next(who=who, n=10)["window"]
            span = {"start_s": window["start"], "end_s": window["end"], "place": window["place"]}
            status, answer = machine.decide(kind="judgement", who=who, level=level, windows=10, **span)
            assert (status, answer["said"]) == (200, "kept")
            synchronise(*folders)

    def seen(machine, who):
        note = {"kind": "note", "start_s": 0, "end_s": 9, "note": "here"}
        people = {one["who"] for one in machine.decide(who=who, **note)[1]["you"] if one["kind"] != "note"}
        machine.decide(kind="undo", who=who)
        return people

    judge(ab, "AB", 6, "violent")
    judge(cd, "CD", 10, "calm")
    assert (seen(ab, "AB"), seen(cd, "CD")) == ({"AB"}, {"AB", "CD"})
    assert "sofar" not in ab.next(who="AB", n=10, tell=1)  # of the six of one's own
    judge(ab, "AB", 4, "violent")
    assert seen(ab, "AB") == {"AB", "CD"}
    synchronise(*folders)
    found = [machine.next(who=who, n=10) for machine, who in ((ab, "AB"), (cd, "CD"))]
    assert all("AB and CD: 0 windows of 10 alike" in one["share"] for one in found)
    assert len({one["share"] for one in found}) == 1
    synchronise(*folders)
    tables = [rows_of(folder / JUDGEMENTS) for folder in folders]
    assert [len(rows) for rows in tables] == [20, 20]
    ledgers = [sorted(path.name for path in folder.glob("ledger/*.jsonl")) for folder in folders]
    assert (ledgers[0], len(ledgers[0])) == (ledgers[1], 2)  # no table was taken for one that was edited


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no Git")
def test_ledgers_of_two_clones_merge_without_a_conflict(tmp_path):
    def git(folder, *words):
        names = ["-c", "user.name=x", "-c", "user.email=x", "-c", "core.autocrlf=true"]
        subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)

    one, other, damage = tmp_path / "one", tmp_path / "other", []
    one.mkdir()
    git(one, "init", "-b", "main")
    old = Ledger(one, damage.append).add("judgement", {"annotator": "AB"})
    git(one, "add", ".")
    git(one, "commit", "-m", "first")
    git(tmp_path, "clone", one, other)
    made = []
    for folder in (one, other):
        ledger = Ledger(folder, damage.append)
        ledger.read()
        made.append(ledger.add("judgement", {"annotator": "AB"}, [old.id]).id)
        git(folder, "add", ".")
        git(folder, "commit", "-m", "more")
    git(one, "pull", "--no-rebase", "--no-edit", other, "main")
    ledger = Ledger(one, damage.append)
    ledger.read()
    assert ({line.id for line in standing(ledger.lines.values())}, damage) == ({*made}, [])
