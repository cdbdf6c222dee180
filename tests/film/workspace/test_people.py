"""Several people judge one film on machines whose folders are synchronised."""

import shutil
import subprocess

import pytest

from obygaze_film.workspace.authority import in_force
from obygaze_film.workspace.decisions import JUDGEMENTS
from obygaze_film.workspace.ledger import Ledger
from tests.files import rows_of


def synchronise(*folders):
    """Copy what is new in one folder to the others, as a program does: of two versions the newer one."""
    for source in folders:
        for path in [path for path in source.rglob("*") if path.is_file()]:
            for target in folders:
                copied = target / path.relative_to(source)
                if not copied.exists() or copied.stat().st_mtime_ns < path.stat().st_mtime_ns:
                    copied.parent.mkdir(exist_ok=True)
                    shutil.copy2(path, copied.with_suffix(".arriving"))
                    copied.with_suffix(".arriving").replace(copied)


class Judge:
    """Somebody who judges a film blindly on a machine of their own, ten windows in all."""

    def __init__(self, name, folder, desk):
        self.name, self.folder, self.desk = name, folder, desk

    def judge(self, n_windows, level, other):
        """Judge the next windows of the draw, and synchronise with another judge's machine after each."""
        for _ in range(n_windows):
            window = self.desk.next(who=self.name, n=10)["window"]
            span = {"start_s": window["start"], "end_s": window["end"], "place": window["place"]}
            status, answer = self.desk.decide(
                kind="judgement", who=self.name, level=level, windows=10, **span
            )
            assert (status, answer["said"]) == (200, "kept")
            synchronise(self.folder, other.folder)

    def judges_seen(self):
        """Return whose judgements the desk shows to this judge.

        The desk answers a decision with what it shows; so a note is written, and undone.
        """
        note = {"kind": "note", "start_s": 0, "end_s": 9, "note": "here"}
        _, answer = self.desk.decide(who=self.name, **note)
        self.desk.decide(kind="undo", who=self.name)
        return {decision["who"] for decision in answer["you"] if decision["kind"] != "note"}


@pytest.fixture
def ab_and_cd(serve, films, tmp_path):
    """Two judges of one film, AB and CD, each with a folder and a desk; the folders are synchronised."""
    judges = []
    for name in ("AB", "CD"):
        folder = tmp_path / name / "tt1"
        shutil.copytree(films / "scored" / "tt1", folder)
        judges.append(Judge(name, folder, serve(folder, films / "violence.codebook.toml")))
    return judges


@pytest.mark.long
def test_a_judge_sees_the_other_machines_judgements_once_finished(ab_and_cd):
    """Judges must not influence each other: one who has not finished sees only their own judgements.

    Both planned ten windows. CD finishes first and sees both; AB, after six windows, sees nothing of
    CD's, and no share so far either.
    """
    ab, cd = ab_and_cd
    ab.judge(6, "violent", other=cd)
    cd.judge(10, "calm", other=ab)
    assert ab.judges_seen() == {"AB"}
    assert cd.judges_seen() == {"AB", "CD"}
    answer_to_ab = ab.desk.next(who="AB", n=10, tell=1)  # asks for the share so far, of AB's six windows
    assert "sofar" not in answer_to_ab

    ab.judge(4, "violent", other=cd)
    assert ab.judges_seen() == {"AB", "CD"}


@pytest.mark.long
def test_synchronised_machines_give_one_share_and_have_the_same_files(ab_and_cd):
    """On two machines AB and CD judge the same ten windows, AB all violent and CD all calm.

    Once their folders are synchronised, both machines say that none is alike, and have all 20 judgements.
    Each wrote one file of the ledger: a third would mean that a synchronised table was taken for an edited
    one.
    """
    ab, cd = ab_and_cd
    ab.judge(10, "violent", other=cd)
    cd.judge(10, "calm", other=ab)
    synchronise(ab.folder, cd.folder)

    share_by_ab = ab.desk.next(who="AB", n=10)["share"]
    share_by_cd = cd.desk.next(who="CD", n=10)["share"]
    assert "AB and CD: 0 windows of 10 alike" in share_by_ab
    assert share_by_cd == share_by_ab
    assert len(rows_of(ab.folder / JUDGEMENTS)) == 20
    assert len(rows_of(cd.folder / JUDGEMENTS)) == 20
    files_of_ab = sorted(path.name for path in ab.folder.glob("ledger/*.jsonl"))
    files_of_cd = sorted(path.name for path in cd.folder.glob("ledger/*.jsonl"))
    assert files_of_ab == files_of_cd
    assert len(files_of_ab) == 2


def git(folder, *arguments):
    """Run Git as on Windows, where it changes the ends of lines (`core.autocrlf`)."""
    options = ["-c", "user.name=x", "-c", "user.email=x", "-c", "core.autocrlf=true"]
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def commit_judgement(folder, replaces=()):
    """Judge in a clone, in place of earlier judgements that are named, and commit; return the line."""
    ledger = Ledger(folder, pytest.fail)  # which it calls if a file is damaged
    ledger.read()
    line = ledger.add("judgement", {"annotator": "AB"}, replaces)
    git(folder, "add", ".")
    git(folder, "commit", "-m", "judge")
    return line


@pytest.mark.long
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no Git")
def test_ledgers_of_two_clones_merge_without_a_conflict(tmp_path):
    """Each clone writes a file of its own, so that Git merges the ledger without a conflict.

    Both clones replace one judgement without seeing each other, so that both new judgements stand.
    """
    clone, other_clone = tmp_path / "one", tmp_path / "other"
    clone.mkdir()
    git(clone, "init", "-b", "main")
    judgement = commit_judgement(clone)
    git(tmp_path, "clone", clone, other_clone)

    replacement = commit_judgement(clone, replaces=[judgement.id])
    other_replacement = commit_judgement(other_clone, replaces=[judgement.id])
    git(clone, "pull", "--no-rebase", "--no-edit", other_clone, "main")

    merged = Ledger(clone, pytest.fail)  # which it calls if a file is damaged
    merged.read()
    ids_in_force = {line.id for line in in_force(merged.lines.values())}
    assert ids_in_force == {replacement.id, other_replacement.id}
