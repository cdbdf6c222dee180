"""Every public function refuses every other public type before it begins, and says what makes the right."""

import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

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


VALUE_OF_KIND = {
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
KINDS_TAKEN = {
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

ONE_OF_A_FEW_TEXTS = {"fused": {"how": "late"}, "layered": {"how": "each"}}
"""Public function -> parameters that take no kind of thing, but one of a few texts, and such a text."""


def right_arguments(name):
    """Give each parameter that a public function needs a value of a kind that it takes."""
    arguments_of_function = {}
    for parameter, kinds in KINDS_TAKEN[name].items():
        if kinds:
            arguments_of_function[parameter] = VALUE_OF_KIND[kinds[0]]
        else:
            arguments_of_function[parameter] = ONE_OF_A_FEW_TEXTS[name][parameter]
    return arguments_of_function


def test_the_table_of_kinds_has_every_public_function_and_each_parameter_that_it_needs():
    """A parameter is needed that has no default; `options`, of load_backbone, stands for any others."""
    parameters_of_function = {}
    for name, function in FUNCTIONS.items():
        parameters = inspect.signature(function).parameters.values()
        needed = {parameter.name for parameter in parameters if parameter.default is parameter.empty}
        parameters_of_function[name] = needed - {"options"}

    parameters_in_table = {name: set(kinds) for name, kinds in KINDS_TAKEN.items()}
    assert parameters_in_table == parameters_of_function


@pytest.mark.parametrize("name", sorted(name for name in KINDS_TAKEN if KINDS_TAKEN[name]))
def test_a_public_function_refuses_every_kind_of_value_that_it_does_not_take(name):
    """Kinds of values are "store", "path", "number" and so on; VALUE_OF_KIND has a value of each.

    KINDS_TAKEN says which kinds each parameter takes that the function needs. One parameter gets a value of
    every other kind, while the others are right. The message is one line, "FUNCTION: PARAMETER is ...;
    expected ...: FUNCTION(...)", which ends with a right call.
    """
    function = FUNCTIONS[name]
    for parameter, kinds_taken in KINDS_TAKEN[name].items():
        wrong_kinds = VALUE_OF_KIND.keys() - set(kinds_taken)
        for kind in wrong_kinds:
            wrong_arguments = right_arguments(name) | {parameter: VALUE_OF_KIND[kind]}

            with pytest.raises(ArgumentError) as refused:
                function(**wrong_arguments)

            check_that_it_proposes_a_call(str(refused.value), name, parameter, kind)


def check_that_it_proposes_a_call(message, function, parameter, kind):
    """Check a message "FUNCTION: PARAMETER is ...; expected ...: FUNCTION(...)" on a value of a kind."""
    _, _, expected = message.partition("; expected")
    assert message.startswith(f"{function}: {parameter} "), kind
    assert f"{function}(" in expected, kind
    assert "\n" not in message, kind


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_public_function_refuses_in_its_options_an_object_that_nothing_takes(name):
    """Options are the parameters with a default; the message names the one that is wrong.

    The parameters that the function needs are right, by `right_arguments`.
    """
    function = FUNCTIONS[name]
    strange_object = object()
    for parameter in inspect.signature(function).parameters.values():
        has_default = parameter.default is not parameter.empty
        if has_default:
            with pytest.raises(ArgumentError, match=parameter.name):
                function(**right_arguments(name) | {parameter.name: strange_object})


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


def public_functions(package):
    """Give the public functions of a package by their names."""
    module = importlib.import_module(package)
    members = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    return {name: member for name, member in members.items() if inspect.isfunction(member)}


def annotated_parameters(function):
    """Give the parameters of a function that stand for one value, with what they take."""
    return arguments._annotations(getattr(function, "__wrapped__", function)).items()


@pytest.mark.long
@pytest.mark.parametrize("package", OFFERING)
def test_a_function_of_any_package_refuses_each_kind_of_value_that_it_does_not_take(package):
    """By the annotations of its parameters. Each gets a store, a path, a number and so on, alone.

    The message, in one line, names the function and the parameter, and behind "; expected" a right call.
    """
    pytest.importorskip("torch")  # which some packages import
    values = VALUE_OF_KIND | {"nothing that is known": object()}
    for function in public_functions(package).values():
        for parameter, annotation in annotated_parameters(function):
            for kind, value in values.items():
                if allows(annotation, value):
                    continue
                with pytest.raises(ArgumentError) as refused:
                    function(**{parameter: value})
                check_that_it_proposes_a_call(str(refused.value), function.__qualname__, parameter, kind)


@pytest.mark.long
def test_fewer_than_eight_parameters_take_any_value():
    """A parameter whose annotation allows an object of no known class is not checked at all.

    Seven are meant to be so, among them a cell of a table and a head of a model. One more is likely to be an
    annotation that was forgotten or is too wide. OFFERING lists the packages whose functions are public.
    """
    pytest.importorskip("torch")
    object_of_no_known_class = object()

    take_any_value = set()
    for package in OFFERING:
        for name, function in public_functions(package).items():
            for parameter, annotation in annotated_parameters(function):
                if allows(annotation, object_of_no_known_class):
                    take_any_value.add(f"{name}: {parameter}")

    assert len(take_any_value) < 8, sorted(take_any_value)


@pytest.mark.parametrize("kind", ["text", "store", "table"])
def test_a_method_that_takes_an_object_of_ours_refuses_others(kind):
    """A group's `to_frame` takes a manifest, and a run's `save` takes a dataset first."""
    group, run, other_object = VALUE_OF_KIND["group"], VALUE_OF_KIND["run"], VALUE_OF_KIND[kind]

    with pytest.raises(ArgumentError):
        group.to_frame(other_object)
    with pytest.raises(ArgumentError):
        run.save(other_object, ["linear"], "models")


@pytest.mark.parametrize("wrong", ["a-01", 5, None, [5]], ids=repr)
def test_clips_that_are_read_together_are_a_list_of_ids(wrong):
    """One id alone is a text, whose letters would be taken for ids of clips."""
    group = VALUE_OF_KIND["group"]

    with pytest.raises(ArgumentError, match=r"clip_ids is .*; expected a list, each item a text"):
        group.read_many(wrong, "pooled")


def test_the_message_on_a_list_with_a_wrong_item_shows_an_item_of_each_class():
    """Ids of clips are texts. A list of them has a number by mistake, 5, beside four texts.

    The message shows the first text and the number. Without items it would read "is a list; expected a list",
    and leave open what is wrong.
    """
    group = VALUE_OF_KIND["group"]
    ids_with_a_number = ["a-01", 5, "a-02", "a-03", "a-04"]

    with pytest.raises(ArgumentError, match="clip_ids is a list of the text 'a-01' and 5; expected a list, "):
        group.read_many(ids_with_a_number, "pooled")


def test_a_pair_with_an_item_too_many_is_described_with_all_items():
    """Not by the first alone, `is a tuple of 1; expected a list`, which hides that there are three."""
    message = r"shard is a tuple of 1 and 2 and 3; expected a list of 2, each item a whole number: "
    with pytest.raises(ArgumentError, match=message):
        of.extract("films.csv", "stores/films", ["toy"], shard=(1, 2, 3))


def test_the_message_on_a_list_of_two_texts_shows_both_if_the_second_is_a_wrong_word():
    """A function takes a list of the words "levels" and "concepts", and gets "levels" and "rates".

    Of a list, a message shows the first item of each class. Here both items are texts: shown by the first one
    alone, the list would seem to be right.
    """

    @checked
    def measure(kinds: Sequence[Literal["levels", "concepts"]]) -> None:
        """Take kinds of labels."""

    with pytest.raises(ArgumentError, match="a list of the text 'levels' and the text 'rates'; expected "):
        measure(["levels", "rates"])


@pytest.mark.long
def test_the_call_that_a_message_proposes_runs(prepared, monkeypatch):
    """`load_dataset` takes a store and a manifest, and gets their paths.

    Its message ends with ": load_dataset(open_store(PATH), read_manifest(PATH))", which one types with
    the paths. The folder has a store of 95 clips with labels and features.
    """
    monkeypatch.chdir(prepared)
    with pytest.raises(ArgumentError) as error:
        om.load_dataset("stores/films", "films.csv")

    _, _, call = str(error.value).rpartition(": ")
    call_with_paths = call.replace("PATH", "'stores/films'", 1).replace("PATH", "'films.csv'", 1)
    names = {"open_store": of.open_store, "read_manifest": of.read_manifest, "load_dataset": om.load_dataset}
    data = eval(call_with_paths, names)  # noqa: S307 - what the message says to type

    assert len(data) == 95


def test_a_function_that_checks_its_arguments_keeps_its_name_signature_and_help():
    """`evaluate` is wrapped by what checks its arguments; the annotation of `data` is a class of ours."""
    signature = inspect.signature(om.evaluate)
    first_parameter, second_parameter, *_ = signature.parameters

    assert om.evaluate.__name__ == "evaluate"
    assert (first_parameter, second_parameter) == ("data", "models")
    assert om.evaluate.__doc__.startswith("Test models")
    assert "data: obygaze" in str(signature)


def test_unknown_and_missing_parameters_are_errors_of_python():
    """As without a check of arguments: a TypeError that names the parameter."""
    with pytest.raises(TypeError, match="nothing"):
        of.uniform(3, nothing=1)
    with pytest.raises(TypeError, match="'n'"):
        of.uniform()


@pytest.mark.parametrize(
    ("annotation", "value", "is_allowed"),
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
def test_values_that_an_annotation_allows(annotation, value, is_allowed):
    """Numbers of numpy count as numbers, a whole number as a float, and tuples and lists as each other.

    A class that can't be found, here "Later", allows all; `ArrayLike` allows lists of numbers or texts.
    """
    assert allows(annotation, value) is is_allowed


def test_classes_that_are_imported_for_type_checkers_alone_are_known_by_their_names():
    """In a module that imports pandas under TYPE_CHECKING alone, its name is known to no running program."""

    @checked
    def count(frame: "pandas.DataFrame | None", *others: int) -> int:  # noqa: F821 - as under TYPE_CHECKING
        n_rows = 0 if frame is None else len(frame)
        return n_rows + len(others)

    two_rows = pd.DataFrame({"f0": [1.0, 2.0]})
    assert count(two_rows, 7, 8, 9) == 2 + 3
    assert count(None) == 0
    with pytest.raises(ArgumentError, match="a DataFrame"):
        count([1])
