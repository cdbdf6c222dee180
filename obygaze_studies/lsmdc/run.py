"""Re-train the LSMDC X-CLIP from a CLIP: the training function and its loop."""

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from obygaze_features.arguments import checked
from obygaze_features.backbones import Weights, load_state_dict
from obygaze_features.cores import usable_cores
from obygaze_features.extraction import stop_on_signals
from obygaze_features.io import file_sha256, sha256_of
from obygaze_features.lines import csv_line, json_bytes
from obygaze_features.options import Answer
from obygaze_features.screen import ShowProgress, progress_bar
from obygaze_features.text import counted
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc import samples, step
from obygaze_studies.lsmdc.execution import Processes, choose_device, convert, join_processes, repeatable
from obygaze_studies.lsmdc.frame_cache import CachedClip, digest_of
from obygaze_studies.lsmdc.lsmdc16 import FILES, Caption
from obygaze_studies.lsmdc.plan import LsmdcPlan, LsmdcSettings, make_plan
from obygaze_studies.lsmdc.retrieval import evaluate, recall_line
from obygaze_studies.lsmdc.state import RunFolder, card

SAVE_EVERY = 200
"""Number of steps between two saved states."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a training.

    Parameters
    ----------
    steps, total
        Steps done and total steps; both 0 if it was stopped while decoding.
    left_out
        Split -> sentences without a usable video.
    epochs
        Validation measures per epoch.
    best_epoch
        The chosen epoch, from 0; -1 if none is complete.
    test
        Measures of the chosen epoch on the test set; None if it was stopped before.
    """

    steps: int
    total: int
    left_out: Mapping[str, int]
    epochs: tuple[Mapping[str, Any], ...]
    best_epoch: int
    test: Mapping[str, Any] | None

    @property
    def complete(self) -> bool:
        """Whether the training is complete."""
        return self.test is not None


class TrainingCallbacks:
    """Callbacks of a training, called in process 0 only; without bars they ignore everything.

    Parameters
    ----------
    bars
        Closes the progress bars; they, and notes, are then shown on stderr.
    """

    def __init__(self, bars: ExitStack | None = None) -> None:
        """Show nothing yet; the bar of a task is opened when `progress` is first called for it."""
        self._bars = bars
        self._shown: dict[str, ShowProgress] = {}  # name of a task -> function that moves its bar

    def say(self, text: str) -> None:
        """Show a note about the data or the run, or the measures of an evaluation."""
        if self._bars is not None:
            tqdm.write(text, file=sys.stderr)

    def progress(self, done: int, total: int, *, what: str, unit: str, note: str = "") -> None:
        """Show how far a task has got, in a bar of its own.

        Parameters
        ----------
        done, total
            Units done, and units to do.
        what
            Name of the task: decoding, training, or the split that is evaluated.
        unit
            What is counted.
        note
            Text next to the bar, such as the loss.
        """
        if self._bars is not None:
            if what not in self._shown:
                self._shown[what] = self._bars.enter_context(progress_bar(what, unit))
            self._shown[what](done, total, note)


def xclip_lsmdc(settings: LsmdcSettings) -> Answer:
    """Train until the training is complete or a signal stops it; only process 0 answers in words."""
    with stop_on_signals() as stop, ExitStack() as bars:
        outcome = train(settings, watch=TrainingCallbacks(bars), stopped=stop)
    # A signal that comes after the last step changes nothing: the training is complete.
    was_stopped = stop() and not outcome.complete
    code = stop.exit_code if was_stopped else 0
    if os.environ.get("RANK", "0") != "0":
        return Answer(document=None, code=code)
    if outcome.test is not None:
        text = f"{settings.out}: epoch {outcome.best_epoch} chosen; test: {recall_line(outcome.test)}"
    elif outcome.total:
        text = f"stopped after step {outcome.steps} of {outcome.total}; go on with --resume"
    else:  # the number of steps is only known once the clips are decoded
        text = "stopped while decoding; go on with --resume"
    document = {"run": str(settings.out), "complete": outcome.complete, **asdict(outcome)}
    return Answer(document, text=text, code=code)


STOPPED_WHILE_DECODING = Outcome(steps=0, total=0, left_out={}, epochs=(), best_epoch=-1, test=None)


@checked
def train(
    settings: LsmdcSettings,
    *,
    watch: TrainingCallbacks | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train from a CLIP on LSMDC's clips and sentences, or resume a stopped training.

    A training can be killed at any time. Resumed with the same number of processes and the same chunk, it
    gives the same bytes.

    Parameters
    ----------
    watch
        Receives progress and results.
    stopped
        Polled after every step; once it returns true, the state is saved and the function returns.

    Raises
    ------
    TrainError, BackboneError
        In one line, naming the file, line or option at fault.
    """
    watch = watch or TrainingCallbacks()
    device = choose_device(settings.device)
    plan = make_plan(settings)

    # Every process gets here: the first one to lock the cache decodes, and the others wait for the lock.
    workers = settings.workers or usable_cores()
    decoding = partial(watch.progress, what="decoding", unit="clip")
    entries = plan.cache.fill(plan.videos, workers, decoding, stopped)
    if len(entries) < len(plan.videos):
        return STOPPED_WHILE_DECODING
    data = _choose_data(plan, entries)

    with join_processes(device) as processes, repeatable(device), ExitStack() as stack:
        folder = RunFolder(settings.out)
        is_first_process = processes.rank == 0
        if is_first_process:  # it alone shows progress, and writes files
            _announce(watch, plan, data.left_out)
            stack.enter_context(folder.locked_for_training())
            _begin_folder(folder, plan, data, processes.count)
        else:
            watch = TrainingCallbacks()  # shows nothing
        processes.wait()  # until process 0 has begun the folder
        training = Training(plan, data.pairs, folder, processes=processes, device=device, watch=watch)
        return training.run(stopped, data.n_left_out)


@dataclass(frozen=True, slots=True)
class _Data:
    """The data of a training.

    Attributes
    ----------
    pairs
        Split -> sentences with their clips.
    left_out
        The sentences that are left out, and the damaged clips.
    n_left_out
        Split -> number of sentences left out.
    record
        Split -> what identifies its data, as plain JSON.
    """

    pairs: Mapping[str, samples.Pairs]
    left_out: Sequence[samples.LeftOut]
    n_left_out: Mapping[str, int]
    record: Mapping[str, Any]


def _begin_folder(folder: RunFolder, plan: LsmdcPlan, data: _Data, n_processes: int) -> None:
    """Write the first files of a run, or check that the run in the folder is the same and can be resumed.

    Parameters
    ----------
    folder
        The run's folder.
    plan, data
        The checked inputs and settings, and the data, of which the run's record is made.
    n_processes
        Number of processes that train together.
    """
    record = plan.record() | {"data": data.record, "processes": n_processes, "chunk": plan.chunk}
    header_and_rows = (samples.LeftOut._fields, *data.left_out)
    left_out_csv = "".join(map(csv_line, header_and_rows))
    folder.begin(record, left_out_csv, plan.network.tokenizer.files, resume=plan.settings.resume)


def _choose_data(plan: LsmdcPlan, entries: Mapping[str, CachedClip]) -> _Data:
    """Choose the sentences whose clips were decoded, and pair them with the clips.

    Parameters
    ----------
    plan
        The checked inputs and settings.
    entries
        Clip id -> the cache's record of its frames.
    """
    captions, left_out = samples.choose_samples(plan.captions, entries)
    rows_of_split = Counter(row.split for row in left_out)
    pairs = {}
    n_left_out = {}
    record = {}
    for split, captions_of_split in captions.items():
        pairs[split] = _pairs_of(captions_of_split, plan)
        n_left_out[split] = rows_of_split[split]
        annotations = plan.settings.annotations / FILES[split]
        record[split] = _describe_data(captions_of_split, n_left_out[split], entries, annotations)
    return _Data(pairs, left_out, n_left_out, record)


def _pairs_of(captions: Sequence[Caption], plan: LsmdcPlan) -> samples.Pairs:
    """Tokenize the sentences of a split, and pair each with its clip."""
    clip_ids = tuple(caption.clip_id for caption in captions)
    tokens = plan.network.tokenizer.ids([caption.sentence for caption in captions])
    return samples.Pairs(clip_ids, tokens, plan.cache, plan.size.max_frames)


def _describe_data(
    captions: Sequence[Caption], n_left_out: int, entries: Mapping[str, CachedClip], annotations: Path
) -> dict[str, Any]:
    """Return the record of a split's data: numbers of sentences and clips, and digests that identify them.

    Parameters
    ----------
    captions, n_left_out
        The sentences that are used, and the number of those that are left out.
    entries
        Clip id -> the cache's record of its frames.
    annotations
        File of the split's annotations.
    """
    clip_ids = {caption.clip_id for caption in captions}  # in any order, since `digest_of` sorts them
    lines = "".join(f"{caption.clip_id}\t{caption.sentence}\n" for caption in captions)
    return {
        "annotations_sha256": file_sha256(annotations),
        "sentences": len(captions),
        "clips": len(clip_ids),
        "left_out": n_left_out,
        "captions_sha256": sha256_of(lines.encode()),
        "frames_sha256": digest_of(entries[clip_id] for clip_id in clip_ids),
    }


class Training:
    """A network in training, with all state that changes between steps.

    Parameters
    ----------
    plan
        The checked inputs and settings.
    pairs
        Split -> its sentences with their clips.
    folder
        The run's folder, for the state and the results; `RunFolder.begin` has written its record.
    processes
        The processes that train together; each has a `Training` of its own.
    device
        Where this process computes.
    watch
        Receives progress and results.
    """

    def __init__(
        self,
        plan: LsmdcPlan,
        pairs: Mapping[str, samples.Pairs],
        folder: RunFolder,
        *,
        processes: Processes,
        device: torch.device,
        watch: TrainingCallbacks,
    ) -> None:
        """Load the network and the optimiser, and restore their saved state if there is one."""
        self.plan = plan
        self.pairs = pairs
        self.folder = folder
        self.processes = processes
        self.device = device
        self.watch = watch
        self.record = folder.record()
        self.epoch_steps = samples.steps_of_an_epoch(len(pairs["training"]), plan.batch)
        self.total = self.epoch_steps * plan.settings.epochs  # steps of the whole training
        self.network = make_network(plan).to(device)
        # Name -> tensor, without the frozen ones.
        self.trained = {name: value for name, value in self.network.named_parameters() if value.requires_grad}
        self.optimiser = self._make_optimiser()
        self.position = folder.restore(self.network, self.optimiser)
        self._log = folder.read_log(self.position.step)  # lines of the log up to the restored step

    def _make_optimiser(self) -> step.BertAdam:
        """Make the optimiser before its first step; the group of a tensor follows from its original name."""
        settings = self.plan.settings
        groups = {}
        for name in self.trained:
            original_name = self.plan.size.original_name(name)
            groups[name] = step.group_of(original_name, settings.lr, settings.clip_lr_scale)
        return step.BertAdam(self.trained, groups, self.total)

    def run(self, stopped: Callable[[], bool], left_out: Mapping[str, int]) -> Outcome:
        """Run the remaining steps and evaluations, until all are done or a stop is requested.

        Parameters
        ----------
        stopped
            Polled after every step: whether a stop is requested.
        left_out
            Split -> number of sentences left out, for the outcome.
        """
        if self.position.step:
            self.watch.say(f"resuming after step {self.position.step} of {self.total}")
        goes_on = True
        while goes_on and self.position.epoch < self.plan.settings.epochs:
            goes_on = self._finish_epoch(stopped)
        test = self._test() if goes_on else None
        return Outcome(
            steps=self.position.step,
            total=self.total,
            left_out=left_out,
            epochs=self.position.measures,
            best_epoch=self.position.best_epoch,
            test=test,
        )

    def _finish_epoch(self, stopped: Callable[[], bool]) -> bool:
        """Run the remaining steps of the epoch, and evaluate; return whether the training goes on.

        If a stop is requested during the steps, the state is saved and the epoch is not evaluated: the
        resumed training runs its remaining steps and evaluates it.

        Parameters
        ----------
        stopped
            Polled after every step and after the evaluation: whether a stop is requested.
        """
        for local_batch in self.pairs["training"].batches(self._remaining_samples()):
            self._step(local_batch.to(self.device))
            before = self.position
            self.position = replace(before, step=before.step + 1, batch=before.batch + 1)
            is_stopped = self.processes.any(stopped(), self.device)
            if is_stopped or self.position.step % SAVE_EVERY == 0:
                self._save()
            if is_stopped:
                return False
        self._evaluate()
        self._save()
        return not self.processes.any(stopped(), self.device)

    def _remaining_samples(self) -> list[list[int]]:
        """List the samples that this process trains on in each remaining batch of the epoch."""
        order = samples.epoch_order(len(self.pairs["training"]), self.position.epoch)
        batch_size = self.plan.batch
        share_of_process = self.processes.share(batch_size)
        remaining = []
        for number in range(self.position.batch, self.epoch_steps):
            samples_of_batch = order[number * batch_size : (number + 1) * batch_size]
            remaining.append(samples_of_batch[share_of_process])
        return remaining

    def _step(self, batch: step.Batch) -> None:
        """Train on this process's share of a batch, and log the step.

        Raises
        ------
        TrainError
            The memory is too small for the chunk, or the loss or the gradient is not finite.
        """
        loss = self._compute_gradients(batch)
        gradient_norm = step.clip_gradients(self.trained.values())
        self._refuse_not_finite(loss, gradient_norm)
        self.optimiser.step()
        with torch.no_grad():
            self.network.logit_scale.clamp_(max=step.LARGEST_SCALE)
        self._log_step(loss, gradient_norm)
        n_done = self.position.step + 1
        note = f"loss {loss:.3f}"
        self.watch.progress(n_done, self.total, what="training", unit="step", note=note)

    def _compute_gradients(self, batch: step.Batch) -> float:
        """Compute the gradients of the whole batch from this process's share, and return the loss.

        Raises
        ------
        TrainError
            The memory is too small for the chunk.
        """
        settings = self.plan.settings
        try:
            return step.compute_gradients(
                self.network,
                self.plan.size,
                batch,
                self.plan.batch,
                processes=self.processes,
                gather_share=settings.gather_share,
                chunk=self.plan.chunk,
                arithmetic=settings.arithmetic,
            )
        except torch.OutOfMemoryError:
            raise TrainError(
                f"step {self.position.step + 1}: {self.plan.chunk} pairs at a time are too "
                f"many for the memory of {self.device}; resume with a smaller --chunk"
            ) from None

    def _log_step(self, loss: float, gradient_norm: float) -> None:
        """Add the present step's line to the log, with the columns `LOG_COLUMNS`."""
        position = self.position
        rate_factor = step.schedule(position.step, self.total)  # as the optimiser used it
        logit_scale = float(self.network.logit_scale.detach())
        row = (position.step, position.epoch, loss, gradient_norm, rate_factor, logit_scale)
        self._log.append(",".join(map(repr, row)) + "\n")

    def _refuse_not_finite(self, loss: float, norm: float) -> None:
        """Raise a TrainError if the loss of the present step, or the norm of its gradient, is not finite."""
        if math.isfinite(loss) and math.isfinite(norm):
            return
        position = self.position
        problem = f"gradient's norm is {norm}" if math.isfinite(loss) else f"loss is {loss}"
        raise TrainError(
            f"step {position.step + 1} (epoch {position.epoch}, batch {position.batch}): the {problem}; "
            f"no weight was changed by it, and the last saved state in {self.folder.folder} is good"
        )

    def _evaluate(self) -> None:
        """Evaluate the completed epoch, choose the best epoch so far, and save the weights.

        `self.position` says how far the training is: which epoch, batch and step, and how good each completed
        epoch was. It is moved to the beginning of the next epoch.
        """
        position = self.position
        epoch = position.epoch
        measures = (*position.measures, self._measure("validation", epoch))
        best_epoch = _best_epoch(measures)
        # All processes have the same weights: the first one writes them, under the names of the published
        # checkpoints, and those of the best epoch once more as the model.
        is_first_process = self.processes.rank == 0
        if is_first_process:
            record = self.record | {"epoch": epoch, "step": position.step, "validation": measures[-1]}
            tensors_by_original_name = self.plan.size.from_port(self.network.state_dict())
            self.folder.write_model(f"epoch-{epoch}.safetensors", tensors_by_original_name, record)
            if best_epoch == epoch:
                self.folder.write_model(self.folder.model.name, tensors_by_original_name, record)
            self.folder.write("epochs.json", json_bytes(measures))
        self.position = replace(position, epoch=epoch + 1, batch=0, best_epoch=best_epoch, measures=measures)

    def _test(self) -> dict[str, Any]:
        """Load the weights of the chosen epoch, evaluate them on the test set, and write the model card.

        Returns
        -------
        The measures (`retrieval.measures`).
        """
        self.processes.wait()  # until process 0 has written the weights
        weights = Weights(files=(self.folder.model,))
        tensors_by_our_name = self.plan.size.to_port(weights.name, load_state_dict(weights))
        self.network.load_state_dict(tensors_by_our_name)

        best_epoch = self.position.best_epoch
        measures = self._measure("test", best_epoch)
        if self.processes.rank == 0:
            self.folder.write("test.json", json_bytes(measures))
            self.folder.write("README.md", card(self.record, self.position.measures, best_epoch, measures))
        return measures

    def _measure(self, split: str, epoch: int) -> dict[str, Any]:
        """Measure retrieval on a split with the present weights, show the result, and return it.

        `split` is "validation" or "test", and `epoch` that of the weights, for the message.
        """
        measures = evaluate(
            self.network,
            self.pairs[split],
            self.device,
            processes=self.processes,
            arithmetic=self.plan.settings.arithmetic,
            progress=partial(self.watch.progress, what=split, unit="item"),
        )
        self.watch.say(f"{split}, epoch {epoch}: {recall_line(measures)}")
        return measures

    def _save(self) -> None:
        """Save the log, then the state: the log may be ahead of the state, but never behind."""
        if self.processes.rank == 0:
            self.folder.write(self.folder.log.name, "".join(self._log))
            self.folder.save(self.network, self.optimiser, self.position)


def _best_epoch(measures: Sequence[Mapping[str, Any]]) -> int:
    """Return the epoch with the highest R@1 of text to video, the published criterion; the later of equals.

    `measures` has the validation measures of each epoch (`retrieval.measures`).
    """
    best = 0
    best_r1 = -math.inf
    for epoch, measures_of_epoch in enumerate(measures):
        r1 = measures_of_epoch["published"]["text_to_video"]["R@1"]
        if r1 >= best_r1:
            best = epoch
            best_r1 = r1
    return best


def make_network(plan: LsmdcPlan) -> Any:
    """Prepare the plan's network for training, in place, and return it.

    Tensors that the published training keeps fixed are frozen: they get no gradient. The weights get the data
    types in which the plan computes, such as float16.
    """
    network = plan.network.module
    for name, value in network.named_parameters():
        name_in_checkpoint = plan.size.original_name(name)  # which tensors are trained is told by this name
        value.requires_grad_(step.is_trained(name_in_checkpoint))
    convert(network, plan.size, plan.settings.arithmetic)  # changes the network
    return network


def _announce(watch: TrainingCallbacks, plan: LsmdcPlan, left_out: Sequence[samples.LeftOut]) -> None:
    """Show notes on sentences left out, damaged clips, films shared with ObyGaze12, and titles without clips.

    `left_out` has a row for each sentence that is left out, and for each damaged clip.
    """
    notes = [
        *_notes_on_left_out(plan, left_out),
        *_notes_on_damaged(left_out),
        *_notes_on_shared_films(plan),
        *_notes_on_titles_without_clip(plan),
    ]
    for note in notes:
        watch.say(note)


def _notes_on_left_out(plan: LsmdcPlan, left_out: Sequence[samples.LeftOut]) -> list[str]:
    """Say for each split how many sentences are left out, with the first as an example."""
    notes = []
    for split, captions_of_split in plan.captions.items():
        rows = [row for row in left_out if row.split == split]
        if rows:
            first = rows[0]
            example = f"line {first.line}, {first.clip_id}: {first.reason}"
            total = counted(len(captions_of_split), "sentence")
            notes.append(f"{split}: {len(rows)} of {total} left out, e.g. {example}")
    return notes


def _notes_on_damaged(left_out: Sequence[samples.LeftOut]) -> list[str]:
    """Say how many damaged clips are used as far as they can be read.

    They stand in the table of what is left out, in which the column `left_out` says "no" of them: a reader
    finds there all that is not as it should be.
    """
    damaged = [row for row in left_out if row.left_out == "no"]
    if not damaged:
        return []
    example = f"{damaged[0].clip_id}: {damaged[0].reason}"
    return [f"{len(damaged)} damaged clips are used as far as they can be read, e.g. {example}"]


def _notes_on_shared_films(plan: LsmdcPlan) -> list[str]:
    """Say how many training sentences are of films of ObyGaze12."""
    if not plan.shared_movies:
        return []
    films = ", ".join(f"{title} ({count})" for title, count in plan.shared_movies.items())
    return [f"training sentences of ObyGaze12 films (--exclude-movies leaves them out): {films}"]


def _notes_on_titles_without_clip(plan: LsmdcPlan) -> list[str]:
    """Say which films to leave out have no clip, as their titles may be misspelt."""
    titles_with_clips = set(chain.from_iterable(plan.excluded.values()))
    titles_without_clip = [title for title in plan.titles if title not in titles_with_clips]
    if not titles_without_clip:
        return []
    return [f"--exclude-movies: no clip is of {', '.join(titles_without_clip)}"]
