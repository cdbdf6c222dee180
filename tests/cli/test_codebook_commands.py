"""`obygaze codebook ...`, and a lab's own codebook through the manifest commands, as a user meets them."""

import json
import re
from pathlib import Path

import pytest

from obygaze.cli import main
from obygaze_features.manifest import BUILTIN, builtin_codebook, load_codebook, read_manifest

VIOLENCE = """\
name = "violence"
version = "1"
levels = ["calm", { name = "unsure", label = false }, "violent"]
[[concepts]]
name = "Gun"
synonyms = ["gun", "pistol"]
[tasks.calm_violent]
negative = ["calm"]
positive = ["violent"]
"""
PAGE = Path(__file__).parents[2] / "docs" / "codebooks.md"
OBYGAZE_WORDS = re.compile(
    r"\b(EN|HN|NS|S|Sure|Body|Look|Speech|ObyGaze12|obygaze12|printed|paper|released)\b"
)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run


@pytest.fixture
def violence(tmp_path):
    """A film, spans of it by two annotators, and a codebook of the lab's own."""
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "a.mp4").touch()
    (tmp_path / "violence.toml").write_text(VIOLENCE, encoding="utf-8")
    spans = [
        "video,start_s,end_s,clip_id,level,concepts,annotator",
        "a.mp4,0,10,a1,violent,pistol,ann",
        "a.mp4,10,20,a2,calm,,ann",
        "a.mp4,0,10,a3,unsure,,bea",
        "a.mp4,10,20,a4,calm,,bea",
    ]
    (tmp_path / "spans.csv").write_text("\n".join(spans) + "\n", encoding="utf-8")
    return ("manifest", "import", "folder", "films", "--spans", "spans.csv", "--codebook", "violence.toml")


def test_built_in_codebooks_are_listed_and_shown(run):
    code, out, _ = run("codebook", "show")
    assert code == 0
    assert all(name in out for name in BUILTIN)
    assert "4 levels (3 in tasks), 12 " in out
    assert "concepts (8 visual), 3 tasks" in out
    assert [one["name"] for one in json.loads(run("codebook", "show", "--json")[1])] == list(BUILTIN)
    out = run("codebook", "show", "obygaze12")[1]
    assert "label policies: paper, released, raw" in out
    assert "  Voyeurism (character watching another one without their knowledge)" in out
    assert "neutral" in run("codebook", "show", "mediaeval15")[1]
    assert (
        json.loads(run("codebook", "show", "obygaze12", "--json")[1])["digest"]
        == builtin_codebook("obygaze12").digest()
    )


def test_what_init_writes_passes_check_and_is_never_replaced(run):
    code, out, _ = run("codebook", "init", "--out", "mine.toml")
    assert (code, out) == (0, "mine.toml: edit it, then run: obygaze codebook check mine.toml\n")
    code, out, _ = run("codebook", "check", "mine.toml")
    assert code == 0
    assert out == "mine.toml: codebook my-codebook 1: 3 levels (2 in tasks), 2 concepts (1 visual), 1 task\n"
    text = Path("mine.toml").read_text(encoding="utf-8")
    Path("all.toml").write_text(re.sub(r"(?m)^# (?=\[\[|name|levels|cuts)", "", text), encoding="utf-8")
    assert load_codebook("all.toml").scale("tension").level_of("0.7") == "high"
    assert run("codebook", "init", "--out", "mine.toml")[2].startswith(
        "obygaze: error: mine.toml is there already"
    )
    assert Path("mine.toml").read_text(encoding="utf-8") == text
    assert run("codebook", "init", "--out", "mine.txt")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (
            ["check", "bad.toml"],
            "bad.toml: codebook 'bad': tasks.t: positive: unknown level 'violet' (did you mean 'v",
        ),
        (["show", "bad.toml"], "bad.toml: codebook 'bad': tasks.t: positive: unknown level"),
        (["check", "nowhere.toml"], "nowhere.toml: No such file"),
        (["check", "."], ".: is a folder"),
        (["check", "empty.toml"], "empty.toml: the file is empty"),
        (["show", "nowhere.csv"], "nowhere.csv: neither a file nor a built-in codebook"),
        (["show", "empty.csv"], "empty.csv: the file is empty"),
    ],
)
def test_a_mistake_is_one_line(run, arguments, what):
    Path("bad.toml").write_text(
        'name = "bad"\nversion = "1"\nlevels = ["calm", "violent"]\n'
        '[tasks.t]\nnegative = ["calm"]\npositive = ["violet"]\n'
    )
    Path("empty.toml").touch()
    Path("empty.csv").touch()
    code, out, err = run("codebook", *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"obygaze: error: {what}")
    assert err.count("\n") == 1


def test_a_corpus_of_another_codebook_shows_no_word_of_obygaze12(run, violence):
    outputs = [run(*violence, "--out", "a.csv")]
    assert outputs[0][1] == "a.csv: 4 clips of 1 movie (2 calm, 1 unsure, 1 violent)\n"
    assert "read 'pistol' as Gun (1 row)\n" in outputs[0][2]
    for arguments in (
        ("manifest", "inspect", "a.csv"),
        ("manifest", "inspect", "a.csv", "--json"),
        ("manifest", "stats", "a.csv"),
        ("manifest", "stats", "a.csv", "--json"),
        ("manifest", "agreement", "a.csv"),
        ("manifest", "agreement", "a.csv", "--json"),
        ("manifest", "project", "a.csv", "--window", "5", "--out", "w.csv"),
        ("manifest", "stats", "w.csv"),
        ("codebook", "show", "a.csv"),
        ("codebook", "show", "w.csv", "--json"),
    ):
        outputs.append(run(*arguments))
        assert outputs[-1][0] == 0, outputs[-1]
    assert "label policy raw: 4 clips" in outputs[3][1]
    assert outputs[5][1].count("unsure") == 3
    for _, out, err in outputs:
        assert not OBYGAZE_WORDS.search(out + err)
    assert read_manifest("w.csv").codebook == load_codebook("violence.toml")


def test_the_example_of_the_page_runs(run):
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    Path("violence.toml").write_text(blocks["toml"], encoding="utf-8")
    Path("fights.csv").write_text(blocks["text"], encoding="utf-8")
    Path("films").mkdir()
    for name in ("one.mp4", "two.mp4"):
        (Path("films") / name).touch()
    words = "manifest import folder films --spans fights.csv --codebook violence.toml --out films.csv"
    code, out, err = run(*words.split())
    assert (code, out) == (0, "films.csv: 3 clips of 2 movies (1 calm, 1 unsure, 1 violent)\n")
    assert err == "read 'pistol' as Gun (1 row)\n"
    exec(blocks["python"], {})  # noqa: S102 - the page's own code
    Path("fights.csv").write_text(blocks["text"].replace("violent", "vilent"), encoding="utf-8")
    err = run(*words.split(), "--force")[2]
    quoted = (
        "line 3, column level: unknown level 'vilent' (did you mean 'violent'?) in the codebook 'violence'"
    )
    assert quoted in err
    assert quoted in PAGE.read_text(encoding="utf-8").replace("line 3,\ncolumn", "line 3, column")


def test_what_is_of_obygaze12_alone_is_refused_for_another_codebook(run, violence):
    assert run(*violence, "--out", "a.csv")[0] == 0
    code, _, err = run("manifest", "stats", "a.csv", "--policy", "paper")
    assert (code, err) == (1, "obygaze: error: label policy paper: the codebook 'violence' has raw alone\n")
    pytest.importorskip("matplotlib")
    code, _, err = run("manifest", "stats", "a.csv", "--figure", "f.svg")
    assert code == 1
    assert "this manifest's codebook is 'violence'" in err


def test_an_edited_codebook_replaces_the_one_beside_the_manifest_with_force_alone(run, violence):
    assert run(*violence, "--out", "a.csv")[0] == 0
    Path("violence.toml").write_text(VIOLENCE.replace('"1"', '"2"'), encoding="utf-8")
    code, _, err = run(*violence, "--out", "a.csv")
    assert code == 1
    assert (
        "a.codebook.toml is there already and is another codebook than 'violence'; choose another --out"
        in err
    )
    assert run(*violence, "--out", "a.csv", "--force")[0] == 0
    assert read_manifest("a.csv").codebook.version == "2"
    code, _, err = run("manifest", "import", "folder", "films", "--out", "a.csv", "--force")
    assert code == 1
    assert "a.codebook.toml would be taken for the codebook of a.csv, and it is another one" in err
    assert len(read_manifest("a.csv")) == 4


def test_an_unknown_codebook_is_refused_with_a_suggestion(run, violence):
    code, _, err = run(*violence[:-1], "mobygase", "--out", "a.csv")
    assert code == 1
    assert err == (
        "obygaze: error: mobygase: neither a file nor a built-in codebook (did you mean 'mobygaze'?)\n"
    )
