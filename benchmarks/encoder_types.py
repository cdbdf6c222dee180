"""Try every type of network of the installed transformers that sees: which enter, and which are refused.

Run it with: python benchmarks/encoder_types.py [--only TYPE ...] [--out TABLE.csv] [--page PAGE.md]
With --table TABLE.csv it tries nothing, and writes the page of an earlier run's table.

Each type gets a tiny network with random weights, saved in the hub's format beside its class's own processor;
then the adapter loads that folder offline, and the conformance check runs. No recipe names a type: fields of
the class's default configuration are made small by what they are called, and the next recipe is tried where a
network cannot be made. Types with a row in `networks.toml` are asked as if they had none.
"""

import csv
import json
import os
import re
import signal
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from measure import arguments, show
from transformers import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING

from obygaze_features.backbones.any_encoder import inspect_type
from obygaze_features.backbones.checkpoint import quiet, untrained
from obygaze_features.backbones.class_calls import call_of, pooler_off_arguments
from obygaze_features.backbones.conformance import CHECKS, Conformance, check
from obygaze_features.backbones.own_processor import default_processor
from obygaze_features.backbones.weights import Weights, find_weights
from obygaze_features.errors import ObygazeError, first_line

MAX_PARAMETERS = 30_000_000
"""Numbers of a network at most: larger ones have a field that no recipe made small."""
DERIVED = (
    "transformers_version",
    "out_features",
    "out_indices",
    "stage_names",
    "layer_types",
    "mlp_layer_types",
)
"""Fields that follow from others, by numbers of layers."""
SECONDS = 120
"""Time for one type."""
SIDE = 64


class Recipe(NamedTuple):
    """How a configuration is made small.

    Attributes
    ----------
    width, heads, layers
        Of transformers.
    side, patch
        Of pictures, in pixels.
    keep_lists
        Whether lists of numbers (widths and depths of stages) keep their values.
    """

    width: int
    heads: int
    layers: int
    side: int
    patch: int
    keep_lists: bool

    def most(self) -> dict[str, int]:
        """Return patterns of the names of fields, and the most that a number may be; the first one counts."""
        return {
            r"(image_size|crop_size|img_size|input_size)$": self.side,
            r"(num_frames|frames_per_clip)$": 4,
            r"(^|_)patch_size$": self.patch,
            r"layers$|^depth$|n_layer$": self.layers,
            r"heads$|n_head$": self.heads,
            r"^head_dim$": self.width // self.heads,
            r"(intermediate_size|ffn_dim|mlp_dim|inner_dim)$": 2 * self.width,
            r"(hidden_size|hidden_dim|d_model|_dim|_width|out_channels)$": self.width,
            r"(vocab_size|max_position_embeddings|num_experts)$": 128,
        }


RECIPES = (
    Recipe(32, 2, 2, SIDE, 16, keep_lists=False),
    Recipe(64, 4, 4, SIDE, 16, keep_lists=True),
    Recipe(32, 2, 2, 56, 14, keep_lists=False),
    Recipe(32, 2, 2, 224, 16, keep_lists=True),
    Recipe(96, 3, 2, 224, 4, keep_lists=True),
)
"""In the order in which they are tried."""


def small_value(name: str, value: Any, recipe: Recipe) -> Any:
    """Return a small value for a field of a configuration, by what the field is called."""
    if isinstance(value, int) and not isinstance(value, bool):
        limits = [most for pattern, most in recipe.most().items() if re.search(pattern, name)]
        return min(value, limits[0]) if limits else value
    is_list = isinstance(value, list | tuple) and value and all(isinstance(part, int) for part in value)
    if is_list and re.search(r"(image_size|img_size|input_size)$", name):
        return [recipe.side] * len(value)
    if is_list and not recipe.keep_lists:
        if re.search(r"heads$", name):
            return [recipe.heads] * len(value)
        if re.search(r"(depths|layers|num_blocks)$", name):
            return [1] * len(value)
    return value


def small_fields(fields: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Make the fields of a configuration small, and those of configurations inside it."""
    small: dict[str, Any] = {}
    for name, value in fields.items():
        if name in DERIVED:
            continue
        if name.endswith("config") and isinstance(value, Mapping):
            small[name] = small_fields(value, recipe)
        else:
            small[name] = small_value(name, value, recipe)
    return small


def small_network(model_type: str, cls: Any, recipe: Recipe) -> Any:
    """Make a tiny network of a type, whose random weights let a picture through as trained ones do."""
    default = CONFIG_MAPPING[model_type]()
    config = CONFIG_MAPPING[model_type].from_dict(small_fields(default.to_dict(), recipe))
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in cls(config, **pooler_off_arguments(cls)).parameters())
    if size > MAX_PARAMETERS:
        raise ValueError(f"{size / 1e6:.0f} million numbers")
    network = untrained(lambda: cls(config), seed=0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            torch.manual_seed(len(name))
            if parameter.ndim > 1:  # weights of .02, the usual start, lose the picture layer by layer
                torch.nn.init.kaiming_normal_(parameter)
            elif not parameter.any():  # a query or a gate, which starts as zeros
                torch.nn.init.normal_(parameter, std=0.1)
    return network


class Outcome(NamedTuple):
    """What became of a type.

    Attributes
    ----------
    model_type, form
        The type and its call form; no form if its class takes no pictures alone.
    result
        `passed`, `refused by the check`, `takes no pictures alone`, `no processor`, `no tiny network`.
    detail
        Which output is the vector, or the reason.
    """

    model_type: str
    form: str
    result: str
    detail: str


def seeing_types() -> list[str]:
    """List the types of the installed transformers whose class sees."""
    types = []
    for model_type in sorted(CONFIG_MAPPING.keys()):
        try:
            cls: Any = MODEL_MAPPING[CONFIG_MAPPING[model_type]]
            cls = cls[0] if isinstance(cls, tuple) else cls
            modalities = str(getattr(cls, "input_modalities", ""))
            seen = "image" in modalities or "video" in modalities
            if seen or "pixel_values" in str(cls.main_input_name):
                types.append(model_type)
        except (
            KeyError,
            ValueError,
            ImportError,
        ):  # no class that gives vectors, or one that lacks libraries
            continue
    return types


def outcome_of(model_type: str, folder: Path) -> Outcome:
    """Try one type."""
    cls: Any = MODEL_MAPPING[CONFIG_MAPPING[model_type]]
    cls = cls[0] if isinstance(cls, tuple) else cls
    try:
        call = call_of(cls, "image", cls.__name__)
    except ObygazeError as error:
        return Outcome(model_type, "", "takes no pictures alone", first_line(error))
    if call.other_arguments and not call.takes_patches:
        needed = ", ".join(call.other_arguments)
        return Outcome(model_type, "", "takes no pictures alone", f"it needs {needed} beside pictures")
    try:
        processor = default_processor(Weights(seed=0, network=model_type), cls)
    except ObygazeError as error:
        return Outcome(model_type, call.form, "no processor", first_line(error))
    reasons: list[str] = []
    failed: list[str] = []
    for recipe in RECIPES:
        try:
            conformance = checked_network(model_type, cls, processor, recipe, folder)
        except Exception as error:  # noqa: BLE001 - any recipe may fit no network of the type
            reasons.append(f"{type(error).__name__}: {first_line(error)}")
            continue
        if conformance.passed:
            processor_name = conformance.findings[0].detail.partition(",")[0]
            return Outcome(model_type, call.form, "passed", f"{conformance.pooled}; {processor_name}")
        findings = conformance.failures()
        failed.append("; ".join(f"{finding.check}: {finding.detail}" for finding in findings))
        if all(finding.check not in ("processor", "runs") for finding in findings):
            break  # it is no matter of size
    if failed:
        return Outcome(model_type, call.form, "refused by the check", failed[-1])
    return Outcome(model_type, call.form, "no tiny network", reasons[-1])


def checked_network(model_type: str, cls: Any, processor: Any, recipe: Recipe, folder: Path) -> Conformance:
    """Save a tiny network in the hub's format with its processor, load it by the adapter, and check it."""
    for path in folder.iterdir():
        path.unlink()
    with quiet():
        network = small_network(model_type, cls, recipe)
        network.save_pretrained(folder)
    is_video = "VideoProcessor" in type(processor).__name__
    name = "video_preprocessor_config.json" if is_video else "preprocessor_config.json"
    settings = small_processor(json.loads(processor.to_json_string()), recipe)
    (folder / name).write_text(json.dumps(settings), encoding="utf-8")
    return check(inspect_type(find_weights(folder), model_type, "image"), even_if_passed=True).conformance


def small_processor(settings: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Give a class's own processor the size of the tiny network's pictures, or of its patches."""
    square = {"height": recipe.side, "width": recipe.side}
    small = dict(settings)
    size = settings.get("size")
    if isinstance(size, dict) and {"shortest_edge", "longest_edge"} <= set(size) and "patch_size" in settings:
        # Of packed patches these are the numbers of pixels.
        small["size"] = {"shortest_edge": 28 * 28, "longest_edge": 16 * 28 * 28}
        small["patch_size"] = min(settings["patch_size"], recipe.patch)
    elif isinstance(size, dict) and len(size) == 1:
        small["size"] = dict.fromkeys(size, recipe.side)
    elif size is not None:
        small["size"] = square
    for field in ("crop_size", "pad_size"):
        if settings.get(field) is not None:
            small[field] = square
    if settings.get("max_pixels") is not None:
        small["max_pixels"] = 16 * 28 * 28
    return small


class TooLongError(BaseException):
    """A type took more than its time; no `Exception`, which the check would take for a failure of its own."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Stop what runs longer, by an alarm."""

    def stop(_signal: int, _frame: object) -> None:
        raise TooLongError(f"longer than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


BEGIN = "<!-- types: written by benchmarks/encoder_types.py -->"
END = "<!-- end of types -->"
"""Lines around the table in a page."""
FORMS = {
    "pictures": "pictures",
    "clips": "clips",
    "grid": "patches with a grid",
    "shapes": "patches with shapes",
}
RESULTS = (
    "passed",
    "refused by the check",
    "takes no pictures alone",
    "no processor",
    "no tiny network",
)
"""Results, in the order of the table."""


def group_of(outcome: Outcome) -> str:
    """Return what the types of one row of the table have in common, beside their result.

    Of a type that passed that is its form and its vector, of one that was refused the checks that it failed.
    """
    if outcome.result == "passed":
        vector = outcome.detail.partition(";")[0]
        vector = re.sub(r"(pooler_output|last_hidden_state)", r"`\1`", vector)
        return f"{FORMS[outcome.form]}: {vector}"
    if outcome.result == "refused by the check":
        failed = [check for check in CHECKS if re.search(rf"(^|; ){re.escape(check)}: ", outcome.detail)]
        return ", ".join(failed)
    if outcome.result == "takes no pictures alone":
        needs_more = outcome.detail.startswith("it needs")
        return (
            "its class needs more beside pictures" if needs_more else "its class takes texts or sound first"
        )
    if outcome.result == "no processor":
        has_none = outcome.detail.startswith("transformers has no processor")
        return (
            "transformers has none for the class"
            if has_none
            else "transformers' own cannot be made without files"
        )
    return "no recipe fits its configuration"


def table_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the table of a page: a row for each group of types, with all their names."""
    counts = Counter(outcome.result for outcome in outcomes)
    lines = ["| result | number of types |", "| --- | --- |", f"| **tried** | **{len(outcomes)}** |"]
    lines += [f"| {result} | {counts[result]} |" for result in RESULTS]
    lines += ["", "| result | call and vector, or reason | number | types |", "| --- | --- | --- | --- |"]
    for result in RESULTS:
        groups: dict[str, list[str]] = {}
        for outcome in outcomes:
            if outcome.result == result:
                groups.setdefault(group_of(outcome), []).append(f"`{outcome.model_type}`")
        for group, types in sorted(groups.items(), key=lambda item: -len(item[1])):
            lines.append(f"| {result} | {group} | {len(types)} | {', '.join(types)} |")
    return lines


def write_page(page: Path, outcomes: Sequence[Outcome]) -> None:
    """Put the table into a page, between the lines `BEGIN` and `END`."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(table_lines(outcomes))
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def read_table(path: Path) -> list[Outcome]:
    """Read the outcomes that an earlier run has written."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Outcome(**row) for row in csv.DictReader(file)]


def outcomes_of(types: Sequence[str]) -> list[Outcome]:
    """Try types one after the other, and print what became of each."""
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        for model_type in types:
            try:
                with limited(SECONDS):
                    outcome = outcome_of(model_type, Path(name))
            except (Exception, TooLongError) as error:  # noqa: BLE001 - shown in the table
                outcome = Outcome(
                    model_type, "", "no tiny network", f"{type(error).__name__}: {first_line(error)}"
                )
            outcomes.append(outcome)
            print(*outcome, sep=" | ", flush=True)
    return outcomes


def main() -> None:
    """Print what became of every type."""
    options = arguments(__doc__, only=[""], out=Path(), page=Path(), table=Path())
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.table != Path():
        outcomes = read_table(options.table)
    else:
        named = [model_type for model_type in options.only if model_type]
        outcomes = outcomes_of(named or seeing_types())
    counts = Counter(outcome.result for outcome in outcomes)
    show({"result": result, "types": count} for result, count in counts.most_common())
    if options.out != Path():
        with options.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Outcome._fields)
            writer.writerows(outcomes)
    if options.page != Path():
        write_page(options.page, outcomes)


if __name__ == "__main__":
    main()
