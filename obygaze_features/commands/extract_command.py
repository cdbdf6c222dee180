"""`obygaze extract`: extract features of a manifest's clips, or of texts, to a store."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import click
from click.core import ParameterSource

import obygaze_features as of
from obygaze_features import backbones, extraction
from obygaze_features import store as stores
from obygaze_features.commands.backbone_values import values_by_backbone
from obygaze_features.commands.extract_output import NOTE, diagnosed, estimated, logs_as_notes, note, outcome
from obygaze_features.cores import no_gpu_here
from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.io import NO_LICENCE
from obygaze_features.machine import this_machine
from obygaze_features.options import LOCAL, PROBLEMS_FOUND, Answer, Number, completed
from obygaze_features.signatures import Json, argument, command, option
from obygaze_features.store.shares import check_shares, number_of_shares, shares_not_begun, shown_shares
from obygaze_features.text import counted

Precision = Literal["fp32", "bf16", "fp16", "bf16-weights"]
PRECISIONS: Mapping[Precision, Literal["float32", "bfloat16", "float16", "bfloat16-weights"]] = {
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "bf16-weights": "bfloat16-weights",
}
OF_FRAMES = (
    *(
        "n_frames",
        "per_second",
        "sampling",
        "preset",
        "tokens",
        "layers",
        "layer_norm",
        "layer_frames",
        "answers",
        "track",
        "questions",
        "tf32",
        "compiled",
        "same_device",
    ),
    *("engine", "workers", "gpus", "timeout_s", "decoder", "strict", "hash_sources", "shots", "keep_frames"),
)
"""Parameters that have no meaning for texts, of which no video is decoded."""

NOT_TYPED = (ParameterSource.DEFAULT, ParameterSource.ENVIRONMENT, None)
"""Sources of a parameter's value other than the command line."""

ARRAY_TASK = "SLURM_ARRAY_TASK_ID"
"""Environment variable that the tasks of a Slurm job array have."""

GROUPS = {
    "Options that most people need": (
        "backbone weights n device workers licence corpus store-version retry-failed dry-run check"
    ),
    "Frames, sound and what is stored of them": (
        "sampling per-second preset tokens layers layer-norm layer-frames answers track shots keep-frames "
        "decoder strict timeout hash-sources"
    ),
    "Networks": "questions dtype tf32 compile clips-at-once batch-size same-device",
    "Several GPUs, machines and jobs": "gpus engine shard limit",
    "The store": "append citation json",
}
"""Title of a section of the help -> its options."""


@dataclass(frozen=True)
class ComputeOptions:
    """The options for networks as they were given; None or False for those that were not."""

    device: str | None = None
    dtype: Precision | None = None
    tf32: bool = False
    compiled: bool = False
    clips_at_once: int | None = None
    same_device: bool = False

    def typed(self) -> list[str]:
        """List the names of the options that were given."""
        values = {
            "--device": self.device,
            "--dtype": self.dtype,
            "--tf32": self.tf32,
            "--compile": self.compiled,
            "--clips-at-once": self.clips_at_once,
            "--same-device": self.same_device,
        }
        return [name for name, value in values.items() if value]

    def compute(self) -> "backbones.Compute":
        """Return the settings of a network, with the defaults for options that were not given."""
        return backbones.Compute(
            self.device or "auto",
            PRECISIONS[self.dtype or "fp32"],
            tf32=self.tf32,
            compiled=self.compiled,
            clips_at_once=self.clips_at_once,
            same_device=self.same_device,
        )


@command(groups=GROUPS)
def extract(
    manifest: Annotated[Path, argument()],
    store: Annotated[Path, argument(type=LOCAL)],
    *,
    names: Annotated[
        tuple[str, ...],
        option(
            "Backbone to run; repeatable.",
            name="backbone",
            type=click.STRING,
            metavar="NAME|onnx:FILE[:LAYER]",
            shell_complete=completed(lambda _: of.backbone_names()),
        ),
    ] = ("descriptors",),
    n_frames: Annotated[
        int | None,
        option(
            "Number of frames per clip.  [default: the backbone's; 1 for still images]",
            name="n",
            type=click.IntRange(1),
        ),
    ] = None,
    per_second: Annotated[
        float | None,
        option(
            "Sample N frames per second instead of --n frames per clip, for clips of different "
            "lengths. Each frame is encoded alone, and its vector is stored.",
            type=Number(min=0, min_open=True),
            metavar="N",
        ),
    ] = None,
    sampling: Annotated[
        Literal["uniform", "keyframes"],
        option(
            "uniform: exactly the evenly spaced frames. keyframes: the keyframe nearest to each of "
            "them; faster, but not the same frames."
        ),
    ] = "uniform",
    weights: Annotated[
        tuple[str, ...],
        option(
            "Weights of the backbone NAME: a folder in the format of the Hugging Face Hub, a file "
            "of such a folder, repository[@commit], or random:SEED; for xclip-lsmdc also a "
            "checkpoint.",
            type=click.STRING,
            metavar="[NAME=]WEIGHTS",
        ),
    ] = (),
    preset: Annotated[
        tuple[str, ...],
        option(
            "How frames are resized, cropped and scaled: a preset such as obygaze12 or clip "
            "(docs/backbones.md).",
            metavar="[NAME=]PRESET",
        ),
    ] = (),
    questions: Annotated[
        tuple[str, ...],
        option(
            "For the backbone vlm: questions to answer about each clip, a file that 'obygaze "
            "codebook questions' wrote.",
            type=click.STRING,
            metavar="[NAME=]FILE",
        ),
    ] = (),
    tokens: Annotated[
        tuple[str, ...],
        option(
            "Which tokens of the network to store, such as patches, all or none "
            "(docs/backbones.md).  [default: the backbone's]",
            metavar="[NAME=]WHICH",
        ),
    ] = (),
    layers: Annotated[
        tuple[str, ...],
        option(
            "Also store these layers of the network: numbers such as 4,8,12, or all. A layer is "
            "stored as a group of its own, such as xclip.8, with the mean over its patch tokens.",
            type=click.STRING,
            metavar="[NAME=]LAYERS",
        ),
    ] = (),
    layer_norm: Annotated[
        bool,
        option(
            "Apply the network's final normalisation to every layer of --layers; by default it is "
            "not applied."
        ),
    ] = False,
    layer_frames: Annotated[
        bool, option("With --layers, also store a vector for each frame or time step of every layer.")
    ] = False,
    answers: Annotated[
        bool,
        option(
            "Also store the probabilities that the network's classifier gives to its named "
            "classes, as a group of its own, such as vivit.answers."
        ),
    ] = False,
    track: Annotated[
        tuple[str, ...],
        option("Sound track of the video to use: a language or a number.", metavar="[NAME=]TRACK"),
    ] = (),
    device: Annotated[
        str | None,
        option(
            "Device to run networks on.  [default: auto]",
            metavar="auto|cpu|cuda[:N]",
            envvar="OBYGAZE_DEVICE",
        ),
    ] = None,
    dtype: Annotated[
        Precision | None,
        option(
            "Precision in which networks compute. bf16 and fp16 keep the weights in fp32; "
            "bf16-weights does not.  [default: fp32]"
        ),
    ] = None,
    tf32: Annotated[
        bool, option("Compute fp32 products on a GPU in TF32, which is faster and less precise.")
    ] = False,
    compiled: Annotated[bool, option("Compile networks with torch.compile.", name="compile")] = False,
    clips_at_once: Annotated[
        int | None,
        option(
            "Number of clips in each call of a network.  [default: 8 on a GPU, 1 on a CPU]",
            type=click.IntRange(1),
        ),
    ] = None,
    same_device: Annotated[
        bool,
        option(
            "Record the model of the GPU, and stop with an error if the store is continued on another model."
        ),
    ] = False,
    engine: Annotated[
        Literal["local", "ray"],
        option(
            "local: run on this machine. ray: run on a Ray cluster, the one at RAY_ADDRESS or one "
            "started for the run."
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        option(
            "Number of decoding processes.  [default: the usable cores]",
            type=click.IntRange(1),
            envvar="OBYGAZE_WORKERS",
        ),
    ] = None,
    gpus: Annotated[
        str,
        option(
            "Indices of GPUs of this machine, such as 0,1,3. They share the clips and the cores; "
            "each has a process.",
            metavar="0,1,...",
        ),
    ] = "",
    batch_size: Annotated[
        int | None,
        option(
            "Number of clips or texts to encode together.  [default: 8 clips or 64 texts]",
            type=click.IntRange(1),
        ),
    ] = None,
    timeout_s: Annotated[
        float,
        option(
            "Time limit for decoding one clip, in seconds.", name="timeout", type=Number(min=0, min_open=True)
        ),
    ] = 600.0,
    decoder: Annotated[
        str,
        option(
            "Decoder of the videos. pyav: on the cores. cuda: also on an NVIDIA card, with the "
            "same features (not tried on a card yet). Or the name of a decoder of an installed "
            "package."
        ),
    ] = "pyav",
    strict: Annotated[
        bool,
        option("Mark damaged files as failed instead of keeping the readable part as 'partial'."),
    ] = False,
    hash_sources: Annotated[
        bool, option("Also record the SHA-256 of every video file in the store.")
    ] = False,
    limit: Annotated[
        int | None, option("Process at most this many clips, then stop.", type=click.IntRange(1))
    ] = None,
    shard: Annotated[
        str | None,
        option(
            "Process only shard i (0 to n-1) of the clips, split into n shards. Shards, and tasks "
            "of job arrays, never seal the store; use 'obygaze store seal' after the last one.  "
            "[default: all clips; in a Slurm job array from 0 to n-1, the shard of the task]",
            metavar="i/n",
        ),
    ] = None,
    retry_failed: Annotated[bool, option("Try clips again that failed in an earlier run.")] = False,
    corpus: Annotated[
        str | None, option("Name of the corpus in the store.  [default: the manifest's name]")
    ] = None,
    licence: Annotated[
        str,
        option("Licence of the features, an SPDX expression such as CC-BY-4.0.", envvar="OBYGAZE_LICENCE"),
    ] = NO_LICENCE,
    citation: Annotated[str, option("How to cite the store, in one line.")] = "",
    version: Annotated[str, option("Version of the sealed store.", name="store-version")] = "1.0.0",
    append: Annotated[
        Path | None,
        option(
            "Make the next version of this sealed store: its clips, and the clips of MANIFEST that it lacks.",
            metavar="STORE",
        ),
    ] = None,
    shots: Annotated[
        Path | None,
        option(
            "Also find the shots of the films whose windows are in MANIFEST, and write them to "
            "this table. Each frame is decoded only once for windows and shots.",
            metavar="FILE.csv",
        ),
    ] = None,
    keep_frames: Annotated[
        Path | None,
        option(
            "Keep the sampled frames in FOLDER, as JPEG of at most 256 pixels at the short side, "
            "and use the frames that are there instead of decoding videos again. Features are "
            "computed from the JPEGs.",
            type=LOCAL,
            metavar="FOLDER",
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("Print the work to be done and its estimated duration; extract nothing.")
    ] = False,
    check: Annotated[
        bool,
        option(
            "Check for what would stop the run, and extract nothing: manifest, videos, weights, "
            "licence, an existing stage or store, disk space and quota. Needs no GPU, so that it "
            "can run on a login node before you submit jobs. Exit code 0 if nothing would stop the "
            "run."
        ),
    ] = False,
    json: Json = False,
) -> Answer:
    """Extract features of the clips of MANIFEST, or of a list of texts, into STORE.

    A finished clip is saved at once in the folder STORE.staging (the stage), so that the same command
    resumes where it was stopped. When every clip is done, or has failed with a reason, the stage is sealed
    as the folder STORE-VERSION (the store), which never changes.

    A backbone is a network or another method that computes features. With several backbones, each clip is
    decoded only once. To share the clips between GPUs of one machine, use --gpus 0,1; between machines, a
    job array (--shard) or --engine ray. `obygaze slurm init` writes job scripts.

    The backbones sentence, text, clip-text, openclip-text, xclip-text and xclip-lsmdc-text read texts.
    MANIFEST is then a CSV with the columns text_id and text, or caption_id and caption, or a .txt file with
    one text per line. Texts longer than the backbone's limit are cut and marked 'partial'.

    \b
    Exit codes: 0 all done, 1 error, 2 usage, 3 done but some clips failed,
    130 or 143 stopped by SIGINT or SIGTERM.

    \b
    Examples:
      obygaze extract films.csv stores/films --dry-run
      obygaze extract films.csv stores/films --licence CC-BY-4.0
      obygaze extract films.csv stores/films --retry-failed --store-version 1.1.0
      obygaze extract films.csv stores/films --backbone xclip --backbone vivit \\
          --dtype bf16
      obygaze extract films.csv stores/films --backbone xclip-lsmdc \\
          --weights pytorch_model.bin.4
      obygaze extract more.csv stores/films --append stores/films-1.0.0 \\
          --store-version 1.1.0
      obygaze extract films.csv stores/films --backbone xclip --layers 4,8,12
      obygaze extract films.csv stores/films --backbone xclip --gpus 0,1
      obygaze extract windows.csv stores/film --shots windows.shots.csv
      obygaze extract films.csv stores/films --shard 3/8       # one of eight jobs
      obygaze extract films.csv stores/films --backbone descriptors \\
          --backbone sound
      obygaze extract stills.csv stores/stills --backbone clip      # still images
      obygaze extract prompts.csv stores/prompts --backbone clip-text  # texts
    """
    from obygaze_features.extraction.before_queue import decoder_without_gpu, examine_run, recipes_on_cpu
    from obygaze_features.extraction.extract import reads_texts
    from obygaze_features.extraction.trial_weights import with_untrained_networks

    # What was typed: which clips, on which devices, of which kind.
    ctx = click.get_current_context()
    typed_shard = None if shard is None else _parse_shard(shard)
    shard_of_job = _shard_or_usage_error(typed_shard, store)
    gpu_indices = _parse_gpu_indices(gpus)
    if store.is_file():
        raise click.UsageError(f"the order is MANIFEST STORE: {store} is a file, and a store is a new folder")
    if not check:
        _refuse_without_gpu(names, device, gpu_indices)
    try:
        texts = reads_texts(names)
    except ExtractError as error:
        raise click.UsageError(str(error)) from None
    if texts:
        _refuse_options_of_frames(ctx, names)

    # A device that nothing here uses is refused if it was typed. A site may set one in the environment for
    # all commands: that is ignored.
    is_device_of_site = ctx.get_parameter_source("device") == ParameterSource.ENVIRONMENT
    if is_device_of_site and (gpu_indices or not _only_networks(names)):
        device = None

    # The recipes of the backbones; what else is stored, and where they run, is added to them one by one.
    options_by_backbone = {
        "weights": weights,
        "preset": preset,
        "tokens": tokens,
        "track": track,
        "questions": questions,
    }
    compute_options = ComputeOptions(device, dtype, tf32, compiled, clips_at_once, same_device)
    recipes = read_recipes(names, n_frames, options_by_backbone, compute_options)
    recipes = with_layers(recipes, layers, norm=layer_norm, frames=layer_frames)
    recipes = with_answers(recipes, wanted=answers)
    if check:
        recipes = recipes_on_cpu(recipes)
    if dry_run:
        recipes = with_untrained_networks(recipes, note)

    # The prepared run, which is examined, estimated or done.
    work = extraction.prepare(
        manifest,
        store,
        recipes,
        n_frames=n_frames,
        per_second=per_second,
        sampling=sampling,
        engine=engine,
        workers=workers,
        gpus=gpu_indices,
        batch_size=batch_size,
        timeout_s=timeout_s,
        decoder=decoder_without_gpu(decoder) if check else decoder,
        strict=strict,
        hash_sources=hash_sources,
        retry_failed=retry_failed,
        corpus=corpus,
        licence=licence,
        citation=citation,
        version=version,
        append=append,
        shard=shard_of_job,
        limit=limit,
        sealing=ARRAY_TASK not in os.environ,  # other tasks may write: a later job seals
        shots=shots,
        keep_frames=keep_frames,
        note=note,
        progress=True,
    )
    if check:
        return diagnosed(examine_run(work))
    if dry_run:
        return estimated(work.estimate(), work.unit, shard_of_job)
    return _run(work, store, shard_of_job, json=json)


def _run(work: "extraction.Extraction", store: Path, shard: tuple[int, int], *, json: bool) -> Answer:
    """Run an extraction, seal the store if no clip is left, and return what to print.

    Parameters
    ----------
    work
        The prepared extraction.
    store
        The store, as it was given.
    shard
        (number of this shard, from 0; number of shards).
    json
        Whether the answer is printed as JSON, which has the remarks itself.
    """
    # `stop()` is true once a signal, such as Ctrl-C, has asked the run to stop.
    with extraction.stop_on_signals() as stop, logs_as_notes():
        stage, report = work.run(stopped=stop)
    sealed_path = None if stop() else work.seal(stage)
    answer = outcome(stage, report, sealed_path, stop, work.unit)
    remarks = [] if json else [*answer.remarks]

    if stop():
        n_left = len(stage.missing())
        verb = "is" if n_left == 1 else "are"
        remarks.append(
            f"obygaze: stopped; {counted(n_left, work.unit)} {verb} left. Run the same command "
            "again to go on."
        )
        return replace(answer, remarks=remarks, code=stop.exit_code)

    _, n_shards = shard
    is_one_of_several = n_shards > 1 or ARRAY_TASK in os.environ
    if is_one_of_several and not stage.missing(shard):
        remarks += _remarks_on_finished_shard(stage, shard, store, work)
    code = PROBLEMS_FOUND if _has_failed_clips(stage, shard) else 0
    return replace(answer, remarks=remarks, code=code)


FIRST_VERSION = "1.0.0"
"""The version that `obygaze store seal` makes unless another is typed."""


def _remarks_on_finished_shard(
    stage: "stores.Stage", shard: tuple[int, int], store: Path, work: "extraction.Extraction"
) -> list[str]:
    """Return remarks on how to seal the store once all shards are done, and on shards that nobody has begun.

    If the store is sealed already, there is nothing to advise.

    Parameters
    ----------
    stage
        The stage of all shards.
    shard
        (number of the finished shard, from 0; number of shards).
    store
        The store, as it was given.
    work
        The extraction, which says what would be stated of the store if it were sealed now.
    """
    number, n_shards = shard
    if work.sealed_path.exists():
        return [f"{NOTE}shard {number}/{n_shards} is done, and the store is sealed: {work.sealed_path}"]
    terms = work.terms()
    typed_licence = "SPDX" if terms.licence == NO_LICENCE else quote(terms.licence)
    seal_command = f"obygaze store seal {quote(str(store))} --licence {typed_licence}"
    if terms.citation:
        seal_command += f" --citation {quote(terms.citation)}"
    if work.version != FIRST_VERSION:
        seal_command += f" --store-version {work.version}"
    remarks = [f"{NOTE}shard {number}/{n_shards} is done. Once all are: {seal_command}"]
    not_begun = shares_not_begun(stage.path)
    if not_begun:
        remarks.append(f"{NOTE}no task has begun these shares of {n_shards}: {shown_shares(not_begun)}")
    return remarks


def _has_failed_clips(stage: "stores.Stage", shard: tuple[int, int]) -> bool:
    """Return whether a clip of a shard has failed, in this or an earlier run.

    Parameters
    ----------
    stage
        The unfinished store. Its pieces (16 neighbouring rows each) are dealt to the shards in turn: shard 0
        of 3 has the pieces 0, 3, 6, ...
    shard
        (number of the shard, from 0; number of shards).
    """
    number, n_shards = shard
    for clip in stage.status().values():
        is_of_shard = stage.piece(clip.clip_id) % n_shards == number
        if is_of_shard and clip.status == "failed":
            return True
    return False


# --- checks and parsing of the options
# ---------------------------------------------------------------------------
def _refuse_options_of_frames(ctx: click.Context, names: Sequence[str]) -> None:
    """Raise a UsageError if options about frames were typed for backbones that read texts.

    Parameters
    ----------
    ctx
        The command's context, which knows the options that were typed.
    names
        The backbones.
    """
    typed_options = []
    for parameter in ctx.command.params:
        is_typed = ctx.get_parameter_source(str(parameter.name)) not in NOT_TYPED
        if parameter.name in OF_FRAMES and is_typed:
            typed_options.append(parameter.opts[0])
    if typed_options:
        raise click.UsageError(
            f"{', '.join(typed_options)}: about frames, and {', '.join(names)} reads texts"
        )


def _parse_shard(text: str) -> tuple[int, int]:
    """Parse the option --shard, `i/n`: this job does shard i (from 0) of n shards of the clips."""
    number, _, n_shards = text.partition("/")
    are_numbers = number.isdecimal() and n_shards.isdecimal()
    if not are_numbers or int(number) >= int(n_shards):
        raise click.BadParameter(
            f"'{text}' is not i/n with i from 0 to n-1, as in 0/4", param_hint="'--shard'"
        )
    return int(number), int(n_shards)


def _shard_or_usage_error(typed: tuple[int, int] | None, store: Path) -> tuple[int, int]:
    """Choose the shard to do (see `choose_shard`), and turn errors into usage errors.

    A job script starts the command again after other errors, but not after a usage error, as the same command
    would fail again. `typed` is the shard that was typed, None if none was.
    """
    try:
        return choose_shard(typed, stores.staging_path(store))
    except (ExtractError, StoreError) as error:
        raise click.UsageError(str(error)) from None


def choose_shard(typed: tuple[int, int] | None, stage: Path) -> tuple[int, int]:
    """Return the shard that was typed, or that of the Slurm array task, or (0, 1) for all clips.

    Shard (i, n) is the i-th of the n shares into which the clips are divided, from 0; share and shard are the
    same thing. In a job array of Slurm each task does one shard. All tasks of a stage divide its clips into
    the same number of shares.

    Parameters
    ----------
    typed
        The shard (i, n) that was typed; None if none was.
    stage
        The stage, which records into how many shares earlier tasks have divided its clips.

    Raises
    ------
    ExtractError
        The tasks of the job array do not fit the number of shares: that into which earlier tasks have divided
        the clips or, for the first task of a stage, that of the shard that was typed.
    StoreError
        The clips are divided into another number of shares already, or another cluster works on the share.
    """
    n_shares = number_of_shares(stage)  # None before the first task
    if typed is not None:
        if n_shares is None:
            extraction.check_first_array(os.environ, typed)  # raises if it has too few or too many tasks
        check_shares(stage, typed, this_machine())
        return typed

    shard = extraction.array_shard(os.environ, n_shares)
    if shard is None:  # not in a job array
        return 0, 1
    check_shares(stage, shard, this_machine())
    number, n_shards = shard
    note(f"--shard {number}/{n_shards}, by SLURM_ARRAY_TASK_ID and the numbers of the job array")
    return shard


def _parse_gpu_indices(text: str) -> tuple[int, ...]:
    """Parse the option --gpus, such as `0,1,3`, into GPU indices; an empty text means none."""
    if not text:
        return ()
    indices = [index.strip() for index in text.split(",")]
    if not all(index.isdecimal() for index in indices):
        raise click.BadParameter(f"'{text}' is no list of numbers such as 0,1", param_hint="'--gpus'")
    return tuple(int(index) for index in indices)


def _refuse_without_gpu(names: Iterable[str], device: str | None, gpus: Sequence[int]) -> None:
    """Raise an ExtractError if --gpus or --device asks for a GPU, and this process cannot use one.

    It is called before anything is loaded. Backbones that are no networks need no GPU.

    Parameters
    ----------
    names
        The backbones.
    device
        The value of --device.
    gpus
        The values of --gpus.
    """
    asks_for_cuda = device is not None and device.startswith("cuda")
    if gpus:
        option_text = "--gpus"
    elif asks_for_cuda:
        option_text = f"--device {device}"
    else:
        return

    # Imported here because it imports numpy, which would slow down --help.
    from obygaze_features.backbones.registry import is_known_network

    networks = [name for name in names if is_known_network(name)]
    if not networks:
        return

    reason = no_gpu_here()
    if reason:
        raise ExtractError(f"{option_text} for {', '.join(networks)}: {reason}. --device cpu runs it without")


def _only_networks(names: Iterable[str]) -> list[str]:
    """Return those of the backbones that are networks: they take the options on device and precision."""
    return [name for name in names if "compute" in backbones.backbone_options(name)]


def read_recipes(
    names: Sequence[str],
    n_frames: int | None,
    texts_of_option: Mapping[str, tuple[str, ...]],
    compute: ComputeOptions,
) -> "tuple[extraction.Recipe, ...]":
    """Build a recipe for each backbone from the options.

    Parameters
    ----------
    names
        The backbones.
    n_frames
        Number of frames per clip; None for the default of each backbone.
    texts_of_option
        Option (`weights`, `preset`, `tokens`, `track`, `questions`) -> its values as typed: `VALUE` for all
        backbones, or `NAME=VALUE` for one.
    compute
        Options for all backbones that are networks.

    Raises
    ------
    click.UsageError
        A backbone does not take an option that was given for it.
    """
    known_options = {name: backbones.backbone_options(name) for name in names}
    options_of_backbone: dict[str, dict[str, Any]] = {name: {} for name in names}

    # The options that are given for each backbone. A later value replaces an earlier one.
    for option_name, texts in texts_of_option.items():
        may_be_file = option_name in {"weights", "questions"}
        for text in texts:
            for name, value in values_by_backbone(text, names).items():
                if option_name not in known_options[name]:
                    raise click.UsageError(_not_taken_message(name, option_name, value, names))
                options_of_backbone[name][option_name] = _absolute_path(value) if may_be_file else value

    # The options for all networks.
    typed_compute_options = compute.typed()
    if typed_compute_options:
        networks = _only_networks(names)
        if not networks:
            raise click.UsageError(f"{', '.join(names)}: takes no {', '.join(typed_compute_options)}")
        for name in networks:
            options_of_backbone[name]["compute"] = compute.compute()

    return tuple(extraction.Recipe(name, n_frames, options_of_backbone[name]) for name in names)


def with_layers(
    recipes: "Sequence[extraction.Recipe]", layers: Sequence[str], *, norm: bool, frames: bool
) -> "tuple[extraction.Recipe, ...]":
    """Return recipes that also store the layers of networks that the user named.

    Parameters
    ----------
    recipes
        The recipe of each backbone.
    layers
        The values of --layers as typed: `LAYERS` for all backbones, or `NAME=LAYERS` for one.
    norm, frames
        The options --layer-norm and --layer-frames, for all layers.

    Raises
    ------
    click.UsageError
        If a backbone has no layers, or no layers are named for the other options.
    """
    if (norm or frames) and not layers:
        raise click.UsageError(
            "--layer-norm and --layer-frames say how layers are stored: name them by --layers"
        )
    names = [recipe.name for recipe in recipes]
    layers_of_backbone: dict[str, backbones.Layers] = {}
    for text in layers:
        for name, value in values_by_backbone(text, names).items():
            if "layers" not in backbones.backbone_options(name):
                raise click.UsageError(_not_taken_message(name, "layers", value, names))
            layers_of_backbone[name] = backbones.Layers.parse(value, norm=norm, frames=frames)

    recipes_with_layers = []
    for recipe in recipes:
        if recipe.name in layers_of_backbone:
            options = {**recipe.options, "layers": layers_of_backbone[recipe.name]}
            recipes_with_layers.append(replace(recipe, options=options))
        else:
            recipes_with_layers.append(recipe)
    return tuple(recipes_with_layers)


def with_answers(recipes: "Sequence[extraction.Recipe]", *, wanted: bool) -> "tuple[extraction.Recipe, ...]":
    """Return recipes that also store the probabilities of a network's classifier, if they are wanted.

    Recipes of backbones without a classifier stay as they are.

    Raises
    ------
    click.UsageError
        They are wanted, and no backbone can have a classifier.
    """
    if not wanted:
        return tuple(recipes)
    recipes_with_answers = []
    n_classifiers = 0
    for recipe in recipes:
        may_have_classifier = "answers" in backbones.backbone_options(recipe.name)
        if may_have_classifier:
            n_classifiers += 1
            recipes_with_answers.append(replace(recipe, options={**recipe.options, "answers": True}))
        else:
            recipes_with_answers.append(recipe)

    if not n_classifiers:
        names = ", ".join(recipe.name for recipe in recipes)
        raise click.UsageError(f"--answers: {names} has no classifier")
    return tuple(recipes_with_answers)


def _not_taken_message(name: str, option_name: str, value: str, names: Sequence[str]) -> str:
    """Return the message for an option that a backbone does not take.

    If the command has other backbones among `names`, it says how to give the option to only one of them.
    """
    message = f"backbone '{name}' takes no --{option_name}"
    others = [other for other in names if other != name]
    if not others:
        return message
    return f"{message}; write for whom it is, as in --{option_name} {others[0]}={value}"


def _absolute_path(text: str) -> str:
    """Return the absolute path of an existing file, because workers run in other folders.

    A text that names no file, such as a repository of the Hub, is returned as it is.
    """
    path = Path(text).expanduser()
    return str(path.absolute()) if path.exists() else text
