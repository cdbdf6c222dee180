"""Every public function that takes a path takes it as text too, and replaces a ``~`` at its beginning."""

import functools
import inspect
import re
from pathlib import Path

import pytest

import obygaze_features as of
import obygaze_film
import obygaze_models as om

STORE, MANIFEST = "~/stores/films", "~/films.csv"
JUDGED = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\na,film0,,0,5,S,,AB,1\n"


@functools.cache
def scored():
    store = of.open_store("~/stores/more")
    return obygaze_film.score_film(store, ["~/kept/linear.model"], movie="film6")


@functools.cache
def a_run():
    data = om.load_dataset(of.open_store(STORE), of.read_manifest(MANIFEST))
    return om.evaluate(data, ["linear"], task="hn_s"), data


def searched():
    with pytest.raises(of.ObygazeError, match="no group"):
        of.search(STORE, "a", text_store="~/stores/more")


CALLS = {
    "extract": lambda: of.extract("~/clip.csv", "~/out/clip", ["descriptors"], workers=1, licence="CC0-1.0"),
    "import_folder": lambda: of.import_folder("~/videos", "~/"),
    "load_codebook": lambda: of.load_codebook("~/mine.codebook.toml"),
    "merge": lambda: of.merge([STORE, "~/stores/more"], "~/out/merged"),
    "open_store": lambda: of.open_store(STORE),
    "pack": lambda: of.pack(STORE, "~/out/packed.zip"),
    "probe": lambda: of.probe("~/videos/clip.mp4"),
    "pull": lambda: of.pull(STORE, "~/out/pulled-1.0.0"),
    "push": lambda: of.push(STORE, "~/out/pushed-1.0.0"),
    "read_frames": lambda: of.read_frames("~/videos/clip.mp4", of.uniform(4)),
    "read_manifest": lambda: of.read_manifest(MANIFEST),
    "search": searched,
    "search_like": lambda: of.search_like(STORE, "film0-c003"),
    "verify": lambda: of.verify(STORE),
    "write_manifest": lambda: of.write_manifest(
        of.read_manifest(MANIFEST), "~/out/again.csv", beside={"~/out/beside.csv": b"a"}
    ),
    "Manifest.placed_in": lambda: Path(of.read_manifest(MANIFEST).placed_in("~/out").root).stat(),
    "load_model": lambda: om.load_model("~/kept/linear.model"),
    "push_model": lambda: om.push_model("~/kept/linear.model", "~/out/zoo", "linear"),
    "pull_model": lambda: om.pull_model("linear", "~/out/theirs", zoo="~/out/zoo"),
    "verify_models": lambda: om.verify_models("~/out/zoo"),
    "write_sums": lambda: om.write_sums(om.gram(a_run()[1], "hn_s", least=5), "~/out/lab.sums"),
    "read_sums": lambda: om.read_sums("~/out/lab.sums"),
    "save_joint": lambda: om.save_joint(
        joint := om.join([om.read_sums("~/out/lab.sums")]), joint.linear(), "~/out/joint.model"
    ),
    "write_run": lambda: om.write_run(a_run()[0], "~/out/run"),
    "read_run": lambda: om.read_run("~/out/run"),
    "save_models": lambda: om.save_models(*a_run(), ["linear"], "~/out/models"),
    "Run.save": lambda: a_run()[0].save(a_run()[1], ["linear"], "~/out/kept"),
    "write_report": lambda: om.write_report(om.run_report(a_run()[0]), "~/out"),
    "write_html": lambda: om.write_html(om.run_report(a_run()[0]), "~/out/report.html"),
    "Predictions.write": lambda: a_run()[0].predictions.write("~/out/predictions.csv"),
    "Predictions.read": lambda: om.Predictions.read("~/out/predictions.csv"),
    "score_film": scored,
    "score_films": lambda: obygaze_film.score_films(of.open_store("~/stores/more"), ["~/kept/linear.model"]),
    "Timeline.write": lambda: scored().write("~/out/film"),
    "Timeline.read": lambda: obygaze_film.Timeline.read("~/out/film"),
    "read_films": lambda: obygaze_film.read_films(["~/out/film"]),
}


def taking_paths():
    """Annotations of the parameters that are paths, by function, methods of public classes too."""
    result = {}
    for package in (of, om, obygaze_film):
        for name in package.__all__:
            member = getattr(package, name)
            functions = {name: member}
            if inspect.isclass(member):
                methods = [key for key in vars(member) if not key.startswith("_")]
                functions = {f"{name}.{key}": getattr(member, key) for key in methods}
            for function in filter(lambda key: callable(functions[key]), functions):
                annotations = inspect.signature(functions[function]).parameters.values()
                texts = [str(parameter.annotation) for parameter in annotations]
                if paths := [text for text in texts if re.search(r"\bPath\b", text)]:
                    result[function] = paths
    return result


def test_every_path_may_be_given_as_text():
    for name, annotations in taking_paths().items():
        assert all(re.search(r"\bstr\b", text) for text in annotations), name
    assert taking_paths().keys() <= CALLS.keys()


MADE_BY_CALLS = {
    "clip-1.0.0",
    "merged-1.0.0",
    "packed.zip",
    "pulled-1.0.0",
    "pushed-1.0.0",
    "again.csv",
    "beside.csv",
    "zoo",
    "theirs",
    "lab.sums",
    "joint.model",
    "run",
    "models",
    "evaluate.md",
    "report.html",
    "predictions.csv",
    "film",
}
"""Some files and folders that `CALLS` write into ~/out."""


@pytest.mark.long
def test_every_path_may_begin_with_the_home_folder(prepared, tmp_path, monkeypatch):
    """No call takes ~ for the name of a folder: the working folder stays empty."""
    monkeypatch.setenv("HOME", str(prepared))
    monkeypatch.setenv("USERPROFILE", str(prepared))
    monkeypatch.chdir(tmp_path)
    (prepared / "out").mkdir()
    (prepared / "judged.csv").write_text(JUDGED)
    header = JUDGED.splitlines()[0].removesuffix(",seen_score")
    (prepared / "clip.csv").write_text(f"{header}\na,film0,videos/clip.mp4,,,,,\n")
    (prepared / "spans.csv").write_text("video,start_s,end_s\nclip.mp4,0,1\n")
    (prepared / "mine.codebook.toml").write_text(
        'name = "mine"\nversion = "1"\n[[levels]]\nname = "calm"\n[[levels]]\nname = "violent"\n'
    )
    for call in CALLS.values():
        call()
    assert list(tmp_path.iterdir()) == []
    assert {path.name for path in (prepared / "out").iterdir()} >= MADE_BY_CALLS


def test_one_store_stands_for_a_list_of_one(prepared):
    store = of.open_store(prepared / "stores" / "more")
    model = om.load_model(prepared / "kept" / "attention.model")
    assert om.predict(model, store).table.equals(om.predict(model, [store]).table)
    assert om.predict_frames(model, store).equals(om.predict_frames(model, [store]))
