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
def scored_film():
    """Score a film of the store `more`, once."""
    store = of.open_store("~/stores/more")
    return obygaze_film.score_film(store, ["~/kept/linear.model"], movie="film6")


@functools.cache
def run_and_data():
    """Evaluate the model `linear`, once; return the run and its data."""
    data = om.load_dataset(of.open_store(STORE), of.read_manifest(MANIFEST))
    return om.evaluate(data, ["linear"], task="hn_s"), data


def search_that_is_refused():
    """Search a store by a store that has no texts, which is found by its path and then refused."""
    with pytest.raises(of.ObygazeError, match="no group"):
        of.search(STORE, "a", text_store="~/stores/more")


CALL_OF_NAME = {
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
    "search": search_that_is_refused,
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
    "write_sums": lambda: om.write_sums(om.gram(run_and_data()[1], "hn_s", least=5), "~/out/lab.sums"),
    "read_sums": lambda: om.read_sums("~/out/lab.sums"),
    "save_joint": lambda: om.save_joint(
        joint := om.join([om.read_sums("~/out/lab.sums")]), joint.linear(), "~/out/joint.model"
    ),
    "write_run": lambda: om.write_run(run_and_data()[0], "~/out/run"),
    "read_run": lambda: om.read_run("~/out/run"),
    "save_models": lambda: om.save_models(*run_and_data(), ["linear"], "~/out/models"),
    "Run.save": lambda: run_and_data()[0].save(run_and_data()[1], ["linear"], "~/out/kept"),
    "write_report": lambda: om.write_report(om.run_report(run_and_data()[0]), "~/out"),
    "write_html": lambda: om.write_html(om.run_report(run_and_data()[0]), "~/out/report.html"),
    "Predictions.write": lambda: run_and_data()[0].predictions.write("~/out/predictions.csv"),
    "Predictions.read": lambda: om.Predictions.read("~/out/predictions.csv"),
    "score_film": scored_film,
    "score_films": lambda: obygaze_film.score_films(of.open_store("~/stores/more"), ["~/kept/linear.model"]),
    "Timeline.write": lambda: scored_film().write("~/out/film"),
    "Timeline.read": lambda: obygaze_film.Timeline.read("~/out/film"),
    "read_films": lambda: obygaze_film.read_films(["~/out/film"]),
}
"""Public name that takes a path -> a call of it with paths that are texts and begin with ~."""


def types_of_path_parameters():
    """Return public function or method -> the types of its parameters that may be a `Path`."""
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


def test_every_parameter_that_takes_a_path_takes_a_text_too():
    """By its annotation, such as `str | Path`.

    CALL_OF_NAME has a call of each such function, which another test makes.
    """
    types_of_function = types_of_path_parameters()

    for name, types in types_of_function.items():
        for type_of_parameter in types:
            assert re.search(r"\bstr\b", type_of_parameter), name
    assert types_of_function.keys() <= CALL_OF_NAME.keys()


WRITTEN_BY_CALLS = {
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
"""Some files and folders that the calls write into ~/out."""


@pytest.mark.long
def test_every_path_may_begin_with_the_home_folder(prepared, tmp_path, monkeypatch):
    """CALL_OF_NAME has a call of every public function that takes a path, with one such as "~/films.csv".

    The home folder (`prepared`) is one of toy films, with tables, stores and models. Four small files that
    some calls read are written here: judged windows, a manifest of one clip, a table of spans and a codebook.

    No call takes ~ for the name of a folder: what they write is below the home folder, in out/, and the
    current folder stays empty.
    """
    home, current_folder = prepared, tmp_path
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(current_folder)
    (home / "out").mkdir()
    (home / "judged.csv").write_text(JUDGED)
    header_of_judged = JUDGED.splitlines()[0]
    header_of_manifest = header_of_judged.removesuffix(",seen_score")  # a column of judged windows alone
    (home / "clip.csv").write_text(f"{header_of_manifest}\na,film0,videos/clip.mp4,,,,,\n")
    (home / "spans.csv").write_text("video,start_s,end_s\nclip.mp4,0,1\n")
    (home / "mine.codebook.toml").write_text(
        'name = "mine"\nversion = "1"\n[[levels]]\nname = "calm"\n[[levels]]\nname = "violent"\n'
    )

    for call in CALL_OF_NAME.values():
        call()

    assert list(current_folder.iterdir()) == []
    written = {path.name for path in (home / "out").iterdir()}
    assert written >= WRITTEN_BY_CALLS


@pytest.mark.parametrize("function", [om.predict, om.predict_frames], ids=["predict", "predict_frames"])
def test_one_store_stands_for_a_list_of_one(prepared, function):
    """A model of toy films scores the clips of a store; both functions take one store or a list of them."""
    store = of.open_store(prepared / "stores" / "more")
    model = om.load_model(prepared / "kept" / "attention.model")

    by_store = function(model, store)
    by_list = function(model, [store])

    if function is om.predict:
        by_store, by_list = by_store.table, by_list.table
    assert by_store.equals(by_list)
