"""Read and write the folder of a run: results, and the state to resume from after a kill at any time.

Every file is written to a temporary name and renamed, so that either the old or the new file is complete. The
state is written last: work done after it is repeated, with the same bytes.

| file | content |
| --- | --- |
| `run.json` | the record: settings, digests of CLIP and data, films |
| `left_out.csv` | sentences without a usable video, with the reason |
| `log.csv` | loss, gradient norm and rate factor of every step |
| `epochs.json` | retrieval measures on the validation set after every epoch |
| `epoch-E.safetensors` | weights after epoch E, float32, in the original's names |
| `model.safetensors` | the chosen epoch's weights: what `extract --weights RUN` reads |
| `vocab.json`, `merges.txt`, ... | CLIP's tokenizer, for texts: `extract --backbone xclip-lsmdc-text` |
| `test.json` | measures of the chosen epoch on the test set |
| `README.md` | the card |
| `state.safetensors` | weights, moments and position, to resume from |
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from tabulate import tabulate

from obygaze_features.backbones import LsmdcFormat
from obygaze_features.errors import first_line
from obygaze_features.io import whole_file, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.locks import alone_in
from obygaze_features.text import counted
from obygaze_features.untrusted import open_regular, parse_json, read_bytes, read_text
from obygaze_models.report import asset
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.lsmdc16 import PUBLISHED
from obygaze_studies.lsmdc.step import BertAdam

LOG_COLUMNS = ("step", "epoch", "loss", "gradient_norm", "rate_factor", "logit_scale")

MAY_CHANGE = ("processes", "chunk", "software")
"""Fields of the record that may change when a run resumes, because they affect only rounding."""


POSITION_KEY = "position"
"""Entry of the state's metadata that holds the position."""

_ERRORS_OF_A_DAMAGED_STATE = (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError)
"""What reading a damaged state, or that of another network, raises."""

N_SHOWN_DIFFERENCES = 5
"""Number of differences between two records that a message names."""

LONGEST_DIFFERENCE = 100
"""Number of characters that a message shows of a difference."""


@dataclass(frozen=True)
class Position:
    """Progress of a training.

    Parameters
    ----------
    step
        Total number of steps done.
    epoch, batch
        Epoch and batch of the next step, from 0.
    best_epoch
        The epoch with the highest validation R@1 (text to video) so far, the later of equals; -1 before any.
    measures
        Validation measures of the completed epochs.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_epoch: int = -1
    measures: tuple[dict[str, Any], ...] = ()


class RunFolder:
    """Reader and writer of a run's files.

    Parameters
    ----------
    folder
        Created by `begin`.
    """

    def __init__(self, folder: Path) -> None:
        """Name the files of the folder; none is opened."""
        self.folder = folder
        self.state = folder / "state.safetensors"
        self.model = folder / "model.safetensors"
        self.log = folder / "log.csv"

    @contextmanager
    def locked_for_training(self) -> Iterator[None]:
        """Lock the folder against a second training, and remove what a killed one was writing.

        Raises
        ------
        StoreError
            If another training uses it.
        """
        with alone_in(self.folder, "training here"):
            # safetensors writes to files of these names; a killed training leaves its last one.
            for unfinished in self.folder.glob(".tmp??????"):
                unfinished.unlink()
            yield

    def begin(
        self, record: dict[str, Any], left_out: str, tokenizer: Iterable[Path], *, resume: bool
    ) -> None:
        """Write the first files of a run; if the folder has a run, check that it can be resumed.

        Parameters
        ----------
        record
            What determines the weights, for run.json.
        left_out
            Content of left_out.csv.
        tokenizer
            Files of the tokenizer, which are copied.
        resume
            Whether an existing run is resumed.

        Raises
        ------
        TrainError
            If there is a run and `resume` is false, or its settings or data differ.
        """
        if (self.folder / "run.json").exists():
            self._check_resumable(record, resume=resume)
            return
        self.write("left_out.csv", left_out)
        for file in tokenizer:
            self.write(file.name, read_bytes(file))
        self.write("run.json", json_bytes(record))

    def _check_resumable(self, record: Mapping[str, Any], *, resume: bool) -> None:
        """Raise a TrainError unless the folder's run is to be resumed, and has this record."""
        before = self.record()
        if not resume:
            raise TrainError(
                f"{self.folder}: a run is here already; go on with it (--resume) or name another folder"
            )
        differences = _differences(before, record)
        if differences:
            shown = "; ".join(differences[:N_SHOWN_DIFFERENCES])
            raise TrainError(f"{self.folder}: the run that is here was begun otherwise: {shown}")

    def record(self) -> dict[str, Any]:
        """Read the record of the run."""
        record: dict[str, Any] = parse_json(read_bytes(self.folder / "run.json"))
        return record

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file atomically; text as UTF-8."""
        write_whole(self.folder / name, content)

    def write_model(self, name: str, tensors: Mapping[str, torch.Tensor], record: Mapping[str, Any]) -> None:
        """Write weights in float32, with the record of the run in the file's metadata."""
        weights = {}
        for tensor_name, tensor in tensors.items():
            weights[tensor_name] = tensor.detach().float().cpu().contiguous()
        self._write_tensors(self.folder / name, weights, LsmdcFormat.RECORD_KEY, record)

    def read_log(self, steps: int) -> list[str]:
        """Return the header line of the log, and the lines of the first `steps` steps, one each.

        Lines of later steps are left out, because a resumed training repeats these steps.
        """
        if steps == 0 or not self.log.exists():
            return [",".join(LOG_COLUMNS) + "\n"]
        lines = read_text(self.log).splitlines(keepends=True)
        return lines[: 1 + steps]

    def save(self, network: torch.nn.Module, optimiser: BertAdam, position: Position) -> None:
        """Save weights, moments of the optimiser, and position to one file, for `restore`."""
        tensors = {f"weight.{name}": value for name, value in network.state_dict().items()}
        tensors |= {f"m.{name}": value for name, value in optimiser.m.items()}  # first moments
        tensors |= {f"v.{name}": value for name, value in optimiser.v.items()}  # second moments
        tensors_to_write = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
        self._write_tensors(self.state, tensors_to_write, POSITION_KEY, asdict(position))

    def restore(self, network: torch.nn.Module, optimiser: BertAdam) -> Position:
        """Restore network and optimiser from the saved state, if there is one.

        Raises
        ------
        TrainError
            If the file is damaged or belongs to another network.
        """
        if not self.state.exists():
            return Position()
        open_regular(self.state).close()  # refuses what is no regular file, such as a pipe
        try:
            fields = self._read_into(network, optimiser)
        except _ERRORS_OF_A_DAMAGED_STATE as error:
            message = first_line(error)
            raise TrainError(
                f"{self.state}: the state cannot be read ({message}); remove it to begin anew"
            ) from None
        measures = tuple(fields.pop("measures"))  # JSON has no tuples
        position = Position(**fields, measures=measures)
        optimiser.steps = position.step
        return position

    def _read_into(self, network: torch.nn.Module, optimiser: BertAdam) -> dict[str, Any]:
        """Copy the saved weights and moments to network and optimiser; return the fields of the position."""
        with safe_open(self.state, framework="pt") as file:
            fields: dict[str, Any] = json.loads(file.metadata()[POSITION_KEY])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
        with torch.no_grad():
            for name, value in network.state_dict().items():
                value.copy_(tensors[f"weight.{name}"])
            for kind, moments in (("m", optimiser.m), ("v", optimiser.v)):
                for name, value in moments.items():
                    value.copy_(tensors[f"{kind}.{name}"])
        return fields

    @staticmethod
    def _write_tensors(path: Path, tensors: dict[str, torch.Tensor], key: str, value: object) -> None:
        """Write tensors with one entry of metadata; the file is complete or not written at all.

        There is one entry only, because safetensors writes several in an order that differs between runs.

        Parameters
        ----------
        path
            The file.
        tensors
            The tensors by name.
        key, value
            The entry: its name, and what is written as JSON.

        Raises
        ------
        TrainError
            The file cannot be written, as on a full disk.
        """
        metadata = {key: json.dumps(value, ensure_ascii=False)}
        with whole_file(path) as partial:
            try:
                save_file(tensors, partial, metadata=metadata)
            except SafetensorError as error:  # such as a full disk
                raise TrainError(f"{path}: cannot be written ({first_line(error)})") from None


def card(
    record: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]], best: int, test: Mapping[str, Any]
) -> str:
    """Return the model card in Markdown, filled in from card.md; the same training gives the same bytes.

    Parameters
    ----------
    record
        The record of the run.
    epochs
        Validation measures of each epoch.
    best
        The chosen epoch.
    test
        Measures of the chosen epoch on the test set.
    """
    movies = record["movies"]
    data = record["data"]
    shared = ", ".join(f"{title} ({count})" for title, count in movies["shared_with_obygaze12"].items())
    left_out = ", ".join(f"{split} {counts['left_out']}" for split, counts in data.items())
    table = tabulate(
        _rows(epochs, test), headers="keys", tablefmt="github", floatfmt=".2f", disable_numparse=[0, 1]
    )
    return asset("card.md", "obygaze_studies.lsmdc").format(
        best=best,
        procedure=PUBLISHED["procedures"][record["arithmetic"]],
        gather_share=record["gather_share"],
        test=test["sentences"],
        validation=epochs[best]["sentences"],
        table=table,
        left_out=left_out,
        excluded=", ".join(movies["excluded"]) or "none",
        shared=shared or "none found by name",
        record=json.dumps(record, indent=2, ensure_ascii=False),
    )


def _rows(epochs: Sequence[Mapping[str, Any]], test: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the rows of the card's table: each evaluation in both directions, as published and tie-safe.

    The measures are those of `retrieval.measures`; of the three tie-safe ones, the mean is shown.
    """
    measures_of_evaluation = {}  # title of an evaluation -> its measures
    for number, measures_of_epoch in enumerate(epochs):
        measures_of_evaluation[f"validation, epoch {number}"] = measures_of_epoch
    measures_of_evaluation["test, chosen epoch"] = test
    rows = []
    for title, measures in measures_of_evaluation.items():
        data = f"{title} ({measures['sentences']} sentences, {counted(measures['clips'], 'clip')})"
        for direction, published in measures["published"].items():
            name = direction.replace("_", " ")
            tie_safe = measures["tie_safe"][direction]["mean"]
            rows.append({"data": data, "direction": f"{name}, published", **published})
            rows.append({"data": data, "direction": f"{name}, tie-safe", **tie_safe})
    return rows


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """List the differences between two records of runs, except in the fields that may change.

    `before` is the record in the folder of the run, and `now` that of the training that would resume it.
    """
    differences = []
    fields = set(before).union(now).difference(MAY_CHANGE)
    for field in sorted(fields):
        differences += _differences_of_field(field, before.get(field), now.get(field))
    return differences


def _differences_of_field(field: str, before: Any, now: Any) -> list[str]:
    """List the differences of a field, or of its entries if it is a dictionary.

    A difference reads "data training clips 3, now 4".
    """
    if isinstance(before, dict) and isinstance(now, dict):
        differences = []
        for name in sorted(set(before).union(now)):
            differences += _differences_of_field(f"{field} {name}", before.get(name), now.get(name))
        return differences
    if before == now:
        return []
    difference = f"{field} {before}, now {now}"
    return [difference[:LONGEST_DIFFERENCE]]
