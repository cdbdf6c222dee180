"""Every public function refuses every other public type before it begins, and says what makes the right."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike

import obygaze_features as of
import obygaze_film
import obygaze_models as om
import obygaze_studies
from obygaze_features import arguments
from obygaze_features.arguments import allows, checked
from obygaze_features.errors import ArgumentError
from obygaze_features.video import Sampling
from obygaze_models.evaluation.compare import Comparison, Side
from obygaze_models.evaluation.run_folder import SavedRun
from obygaze_models.joint.fits import Joint, Planes
from obygaze_models.joint.sums import Sums
from obygaze_models.prediction import Model
from obygaze_models.protocol import FoldTable, Target

PACKAGES = (of, om, obygaze_film, obygaze_studies)
FUNCTIONS = {
    name: getattr(package, name)
    for package in PACKAGES
    for name in package.__all__
    if inspect.isfunction(getattr(package, name))
}


def blank(kind):
    """Make an object of a class that holds nothing: what it holds is nobody's business before it is used."""
    return object.__new__(kind)


KINDS = {
    "store": blank(of.Store),
    "group": blank(of.Group),
    "manifest": blank(of.Manifest),
    "clip": of.Clip("a-0", "a"),
    "codebook": blank(of.Codebook),
    "backbone": blank(of.Backbone),
    "sampling": blank(Sampling),
    "dataset": blank(om.Dataset),
    "run": blank(om.Run),
    "saved run": blank(SavedRun),
    "side": blank(Side),
    "comparison": blank(Comparison),
    "predictions": blank(om.Predictions),
    "report": blank(om.Report),
    "model": blank(Model),
    "spec": blank(om.ModelSpec),
    "target": blank(Target),
    "folds": blank(FoldTable),
    "sums": blank(Sums),
    "joint": blank(Joint),
    "planes": blank(Planes),
    "timeline": blank(obygaze_film.Timeline),
    "table": pd.DataFrame({"f0": [1.0]}),
    "array": np.zeros(3),
    "array of texts": np.array(["a", "b"]),
    "text": "films",
    "path": Path("films"),
    "whole number": 3,
    "number": 0.5,
    "truth": True,
    "nothing": None,
    "texts": ["a", "b"],
    "numbers": [1.0, 2.0],
    "stores": [blank(of.Store)],
    "models": [blank(Model)],
    "specs": [blank(om.ModelSpec)],
    "reports": [blank(om.Report)],
    "several sums": [blank(Sums)],
    "timelines": [blank(obygaze_film.Timeline)],
    "dict of texts": {"a": "b"},
    "dict of spans": {"a": [(0.0, 1.0)]},
    "function": len,
}

PLACE = ("text", "path")
WHOLE = ("whole number", "truth")  # Python counts True as 1
A_STORE = ("store", *PLACE)
TAKES = {
    "backbone_names": {},
    "builtin_codebook": {"name": ("text",)},
    "diff": {"first": ("store",), "second": ("store",)},
    "extract": {"manifest": ("manifest", *PLACE), "out": PLACE},
    "import_folder": {"source": PLACE, "root": PLACE},
    "load_backbone": {"name": ("text",)},
    "load_codebook": {"path": PLACE},
    "merge": {"places": ("stores", "texts", "array of texts"), "destination": PLACE},
    "open_store": {"path": PLACE},
    "pack": {"store": A_STORE},
    "probe": {"path": PLACE},
    "pull": {"store": A_STORE, "destination": PLACE},
    "push": {"store": A_STORE, "destination": PLACE},
    "read_frames": {"path": PLACE, "sampling": ("sampling",)},
    "read_manifest": {"path": PLACE},
    "search": {"store": A_STORE, "query": ("text",)},
    "search_like": {"store": A_STORE, "clip_id": ("text",)},
    "uniform": {"n": WHOLE},
    "verify": {"store": A_STORE},
    "write_manifest": {"manifest": ("manifest",), "path": PLACE},
    "compare": {"a": ("side",), "b": ("side",)},
    "comparison_report": {"comparison": ("comparison",)},
    "evaluate": {"data": ("dataset",)},
    "find_target": {"name": ("text",), "codebook": ("codebook",)},
    "fused": {"models": ("texts", "array of texts", "specs"), "data": ("dataset",), "how": ()},
    "fused_by_concepts": {"data": ("dataset",)},
    "gram": {"data": ("dataset",), "task": ("text",)},
    "join": {"several": ("several sums",)},
    "leave_one_movie_out": {"clip_ids": ("texts", "array of texts"), "movies": ("texts", "array of texts")},
    "linear_probe": {},
    "layered": {"models": ("texts", "array of texts", "specs"), "data": ("dataset",), "how": ()},
    "load_bags": {"store": ("store",), "manifest": ("manifest",)},
    "load_dataset": {"store": ("store", "stores"), "manifest": ("manifest",)},
    "load_layers": {"store": ("store",), "manifest": ("manifest",)},
    "load_model": {"place": PLACE},
    "localise": {"frames": ("table",), "segments": ("dict of spans",)},
    "newton_step": {"joint": ("joint",)},
    "predict": {"model": ("model",), "stores": ("store", "stores")},
    "predict_frames": {"model": ("model",), "stores": ("store", "stores")},
    "pull_model": {"name": ("text",), "folder": PLACE},
    "push_model": {"model": PLACE, "zoo": PLACE, "name": ("text",)},
    "read_run": {"folder": PLACE},
    "read_sums": {"path": PLACE},
    "run_report": {"run": ("run",)},
    "save_joint": {"joint": ("joint",), "planes": ("planes",), "path": PLACE},
    "save_models": {
        "run": ("run",),
        "data": ("dataset",),
        "names": ("texts", "array of texts", "dict of texts", "dict of spans"),
        "folder": PLACE,
    },
    "saved": {"run": ("run",)},
    "side": {"run": ("saved run",)},
    "splits": {
        "table": ("folds",),
        "train": ("array", "array of texts", "table"),
        "test": ("array", "array of texts", "table"),
    },
    "verify_models": {},
    "write_html": {"reports": ("report", "reports"), "path": PLACE},
    "write_report": {"report": ("report",), "folder": PLACE},
    "write_run": {"run": ("run",), "folder": PLACE},
    "write_sums": {"sums": ("sums",), "path": PLACE},
    "compare_films": {"films": ("timelines",), "judgements": ("manifest",)},
    "evaluate_films": {"films": ("timelines",), "truth": ("manifest",)},
    "learn_from_judgements": {
        "films": ("timelines",),
        "judgements": ("manifest",),
        "windows": ("stores",),
        "manifest": ("manifest",),
        "store": ("store",),
    },
    "read_films": {"folders": ("texts", "array of texts")},
    "score_film": {"store": ("store",), "models": ("models", "texts", "array of texts")},
    "score_films": {"store": ("store",), "models": ("models", "texts", "array of texts")},
}
"""Public function -> what each parameter that it needs may be; arrays are sequences of what they hold."""

HOW = {"fused": {"how": "late"}, "layered": {"how": "each"}}
"""What is right and no kind of thing: one of a few texts."""


def right(name):
    """Give each needed parameter something of a kind that it takes."""
    return {
        parameter: HOW[name][parameter] if not kinds else KINDS[kinds[0]]
        for parameter, kinds in TAKES[name].items()
    }


def test_the_table_is_of_every_public_function_and_what_it_needs():
    needed = {
        name: {
            each.name
            for each in inspect.signature(function).parameters.values()
            if each.default is each.empty
        }
        - {"options"}  # of load_backbone: any others
        for name, function in FUNCTIONS.items()
    }
    assert {name: set(kinds) for name, kinds in TAKES.items()} == needed


@pytest.mark.parametrize("name", sorted(name for name in TAKES if TAKES[name]))
def test_a_public_function_refuses_every_other_public_type(name):
    for parameter, kinds in TAKES[name].items():
        for kind in KINDS.keys() - {*kinds}:
            with pytest.raises(ArgumentError) as refused:
                FUNCTIONS[name](**right(name) | {parameter: KINDS[kind]})
            message = str(refused.value)
            assert message.startswith(f"{name}: {parameter} "), kind
            assert f"{name}(" in message.partition("; expected")[2], kind
            assert "\n" not in message


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_public_function_refuses_in_its_options_what_nothing_takes(name):
    strange = object()
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        if parameter.default is parameter.empty:
            continue
        with pytest.raises(ArgumentError, match=parameter.name):
            FUNCTIONS[name](**right(name) | {parameter.name: strange})


# --- every package that lists what it offers
# ---------------------------------------------------------------------------
def names_of_packages(root):
    """Name a package and all below it but those of commands, which read text that was typed."""
    below = pkgutil.walk_packages(root.__path__, f"{root.__name__}.")
    return [
        root.__name__,
        *(module.name for module in below if module.ispkg and ".commands" not in module.name),
    ]


OFFERING = [name for root in PACKAGES for name in names_of_packages(root)]
"""Every package that may list what it offers; what it lists is imported when it is asked for."""


def offered(package):
    """Give the public functions of a package by their names."""
    module = importlib.import_module(package)
    members = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    return {name: member for name, member in members.items() if inspect.isfunction(member)}


def annotated(function):
    """Give the parameters of a function that stand for one value, with what they take."""
    return arguments._annotations(getattr(function, "__wrapped__", function)).items()


@pytest.mark.long
@pytest.mark.parametrize("package", OFFERING)
def test_a_function_of_any_package_refuses_each_kind_of_thing_that_it_does_not_take(package):
    pytest.importorskip("torch")  # which some packages import
    for name, function in offered(package).items():
        for parameter, annotation in annotated(function):
            for kind, value in {**KINDS, "nothing that is known": object()}.items():
                if allows(annotation, value):
                    continue
                with pytest.raises(ArgumentError) as refused:
                    function(**{parameter: value})
                message, called = str(refused.value), function.__qualname__
                assert message.startswith(f"{called}: {parameter} "), f"{name}, {kind}"
                assert f"{called}(" in message.partition("; expected")[2], f"{name}, {kind}"
                assert "\n" not in message


@pytest.mark.long
def test_fewer_than_eight_parameters_take_any_value():
    """Those that do stand for any value: a cell of a table, a head of a model, concepts or none."""
    pytest.importorskip("torch")
    strange = object()
    anything = {
        f"{name}: {parameter}"
        for package in OFFERING
        for name, function in offered(package).items()
        for parameter, annotation in annotated(function)
        if allows(annotation, strange)
    }
    assert len(anything) < 8, sorted(anything)


@pytest.mark.parametrize("kind", ["text", "store", "table"])
def test_methods_that_take_our_types_refuse_others(kind):
    with pytest.raises(ArgumentError):
        KINDS["group"].to_frame(KINDS[kind])
    with pytest.raises(ArgumentError):
        KINDS["run"].save(KINDS[kind], ["linear"], "models")


@pytest.mark.parametrize("wrong", ["a-01", 5, None, [5]], ids=repr)
def test_clips_that_are_read_together_are_a_list_of_ids(wrong):
    """The letters of one id would be taken for ids of clips."""
    with pytest.raises(ArgumentError, match=r"clip_ids is .*; expected a list, each item a text"):
        KINDS["group"].read_many(wrong, "pooled")


@pytest.mark.long
def test_the_call_that_a_message_proposes_runs(prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    with pytest.raises(ArgumentError) as error:
        om.load_dataset("stores/films", "films.csv")
    line = str(error.value).rpartition(": ")[2]
    names = {"open_store": of.open_store, "read_manifest": of.read_manifest, "load_dataset": om.load_dataset}
    places = line.replace("PATH", "'stores/films'", 1).replace("PATH", "'films.csv'", 1)
    assert len(eval(places, names)) == 95  # noqa: S307 - what the message says to type


def test_names_signatures_and_help_stay_those_of_the_function():
    assert om.evaluate.__name__ == "evaluate"
    assert list(inspect.signature(om.evaluate).parameters)[:2] == ["data", "models"]
    assert om.evaluate.__doc__.startswith("Test models")
    assert "data: obygaze" in str(inspect.signature(om.evaluate))


def test_unknown_and_missing_parameters_are_errors_of_python():
    with pytest.raises(TypeError, match="nothing"):
        of.uniform(3, nothing=1)
    with pytest.raises(TypeError, match="'n'"):
        of.uniform()


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, np.int64(3), True),
        (float, np.float32(3), True),
        (float, 3, True),
        (int, 3.0, False),
        (str | None, None, True),
        ("Later", object(), True),
        (list[int], (1, 2), True),
        (dict[str, int], {"a": 1}, True),
        (dict[str, int], {"a": "b"}, False),
        (tuple[int, int], (1, 2), True),
        (tuple[int, int], (1, 2, 3), False),
        (frozenset[str], {"a"}, True),
        (frozenset[str], ["a"], False),
        (ArrayLike, [[1, 2], [3.5, 4]], True),
        (ArrayLike, ["a", "b"], True),
        (ArrayLike | None, None, True),
        (ArrayLike, "a", False),
        (ArrayLike, None, False),
        (ArrayLike, [object()], False),
        (ArrayLike, object(), False),
        (list[float], np.float64(3), False),
    ],
)
def test_what_an_annotation_allows(annotation, value, expected):
    assert allows(annotation, value) is expected


def test_classes_that_are_imported_for_type_checkers_alone_are_known_by_their_names():
    @checked
    def takes(frame: "pandas.DataFrame | None", *others: int) -> int:  # noqa: F821 - as under TYPE_CHECKING
        return len(others) + (frame is None)

    assert takes(KINDS["table"], 1, 2) == 2
    assert takes(None) == 1
    with pytest.raises(ArgumentError, match="a DataFrame"):
        takes([1])
