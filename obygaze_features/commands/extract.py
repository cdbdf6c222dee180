"""`obygaze extract`: a manifest's clips, or a list of texts, into a store."""

from pathlib import Path
from shlex import quote
from typing import Any

import click

from obygaze_features.commands.extract_options import (
    Shard,
    choose_shard,
    what_forbids_writing,
)
from obygaze_features.commands.extract_output import (
    note,
    progress,
    show_outcome,
)
from obygaze_features.commands.extract_work import clip_work, reads_texts, text_work
from obygaze_features.commands.places import HERE
from obygaze_features.store.format import NO_LICENCE


@click.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.argument("store", type=HERE)
@click.option(
    "--backbone",
    "names",
    multiple=True,
    default=["descriptors"],
    help="May be repeated.  [default: descriptors]",
)
@click.option(
    "--n",
    "n_frames",
    type=click.IntRange(1),
    help="Frames of a clip.  [default: what the backbone takes; 1 of still images]",
)
@click.option(
    "--sampling",
    "policy",
    type=click.Choice(["uniform", "keyframes"]),
    default="uniform",
    show_default=True,
    help="Exact uniform frames, or the key frame nearest to each: cheaper, and other frames.",
)
@click.option(
    "--weights",
    multiple=True,
    metavar="[NAME=]WEIGHTS",
    help="A file, folder, repository[@revision] or random:SEED, for the backbone NAME.",
)
@click.option("--preset", "presets", multiple=True, metavar="[NAME=]PRESET", help="How frames are prepared.")
@click.option("--tokens", multiple=True, metavar="[NAME=]WHICH", help="Which tokens are stored.")
@click.option("--device", metavar="auto|cpu|cuda[:N]", help="Where networks run.  [default: auto]")
@click.option(
    "--dtype", type=click.Choice(["fp32", "bf16", "fp16"]), help="Precision of networks.  [default: fp32]"
)
@click.option("--compile", "compiled", is_flag=True, help="Compile networks with torch.compile.")
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="This machine, or a Ray cluster: RAY_ADDRESS's, or one made for the run.",
)
@click.option("--workers", type=click.IntRange(1), help="Decode processes.  [default: the usable cores]")
@click.option(
    "--batch-size", type=click.IntRange(1), help="Rows encoded together.  [default: 8 clips or 64 texts]"
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Longest decoding of one clip, in seconds.",
)
@click.option(
    "--strict", is_flag=True, help="Fail damaged files, rather than keep what can be read as 'partial'."
)
@click.option("--hash-sources", is_flag=True, help="Record the SHA-256 of every video file.")
@click.option("--limit", type=click.IntRange(1), help="Do at most this many clips now.")
@click.option(
    "--shard",
    "given_shard",
    type=Shard(),
    help="Do every n-th clip from the i-th: one of n jobs, none of which seals.  "
    "[default: all, or a Slurm job array's]",
)
@click.option("--retry-failed", is_flag=True, help="Try the clips again that failed before.")
@click.option("--corpus", help="What the corpus is called in the store.  [default: the manifest's name]")
@click.option("--licence", default=NO_LICENCE, show_default=True, help="SPDX licence of the features.")
@click.option("--citation", default="", help="How to cite the store.")
@click.option("--store-version", default="1.0.0", show_default=True, help="Version of the sealed store.")
@click.option("--no-seal", is_flag=True, help="Leave sealing to 'obygaze store seal'.")
@click.option("--dry-run", is_flag=True, help="Only say what is to be done and how long it would take.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def extract(
    ctx: click.Context,
    /,
    manifest: Path,
    store: Path,
    names: tuple[str, ...],
    limit: int | None,
    given_shard: tuple[int, int] | None,
    retry_failed: bool,
    corpus: str | None,
    licence: str,
    citation: str,
    store_version: str,
    no_seal: bool,
    dry_run: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Extract the clips of MANIFEST, or the texts of a list, into STORE, resuming where it was stopped.

    Finished clips are safe in STORE.staging at once. When every clip is done, or has failed with a reason,
    the stage is sealed as STORE-VERSION, which nothing changes any more.

    With several backbones each clip is decoded once for all of them. Several GPUs: one job each, with --shard
    and CUDA_VISIBLE_DEVICES, or --engine ray. docs/slurm.md has whole job scripts.

    The backbones clip-text and sentence read texts: MANIFEST is then a CSV with text_id and text, or with
    caption_id and caption, or a .txt with one text a line. What is longer than the backbone takes is cut, and
    'partial'.

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
      obygaze extract films.csv stores/films --shard 3/8         one of eight jobs
      obygaze extract stills.csv stores/stills --backbone clip        still images
      obygaze extract prompts.csv stores/prompts --backbone clip-text    texts
    """
    from obygaze_features.extract import ExtractError, stop_on_signals
    from obygaze_features.store import Stage, read_stage, staging_path
    from obygaze_features.store.provenance import validate_licence
    from obygaze_features.store.sealing import versioned

    make = text_work if reads_texts(names) else clip_work  # each names what it takes of `how`
    work = make(ctx, manifest, corpus or manifest.stem, names, as_json=as_json, **how)
    shard = choose_shard(given_shard)
    no_seal = no_seal or shard[1] > 1
    validate_licence(licence)
    place = staging_path(store)
    sealed = versioned(store, store_version)
    obstacle = what_forbids_writing(place)
    if dry_run:
        if obstacle:
            note(obstacle)
        todo = (
            read_stage(place).missing(shard, retry_failed=retry_failed)
            if place.exists()
            else [clip.clip_id for clip in work.job.planned_clips()][shard[0] :: shard[1]]
        )
        work.show_cost(todo[:limit])
        return
    _refuse_to_outdate(sealed, place)
    if obstacle:
        raise ExtractError(obstacle)
    stage = Stage.open(place, work.job.planned_clips(), work.job.groups(), work.job.corpus_record())
    for damage in stage.damage():
        note(damage)
    todo = stage.missing(shard, retry_failed=retry_failed)[:limit]
    if todo and shard[1] == 1 and (others := stage.n_writers()):
        note(
            f"{others} other process(es) write to {place} now and may do the same {work.unit}s: that harms "
            "nothing but costs twice; --shard shares the work"
        )
    if todo and sealed.exists() and not no_seal:
        raise click.UsageError(
            f"{sealed} is sealed already; {len(todo)} more {work.unit}s need another, such as "
            "--store-version 1.1.0"
        )
    with stop_on_signals() as stop, progress(len(todo), work.unit) as show:
        report = work.run(stage, todo, stopped=stop, on_commit=show)
    path = None
    if not (no_seal or stop() or stage.missing()):
        path = sealed if sealed.exists() else _seal(place, store, store_version, licence, citation)
    show_outcome(stage, report, path, stop, as_json=as_json, unit=work.unit)
    if shard[1] > 1 and not (stop() or stage.missing(shard)):
        stated = "SPDX" if licence == NO_LICENCE else quote(licence)
        note(
            f"shard {shard[0]}/{shard[1]} is done. "
            f"Once all are: obygaze store seal {quote(str(store))} --licence {stated}"
        )
    failed = any(
        entry.status == "failed" and entry.row % shard[1] == shard[0] for entry in stage.status().values()
    )
    ctx.exit(stop.exit_code or (3 if failed else 0))


def _seal(place: Path, store: Path, version: str, licence: str, citation: str) -> Path:
    from obygaze_features.store import seal

    if licence == NO_LICENCE:
        note(
            f"nobody has stated a licence (--licence), and the sealed store says so: {NO_LICENCE}. Before "
            f"you share it: obygaze store seal {quote(str(store))} --licence SPDX --store-version 1.0.1"
        )
    return seal(place, store, version=version, licence=licence, citation=citation)


def _refuse_to_outdate(sealed: Path, place: Path) -> None:
    from obygaze_features.extract import ExtractError

    if sealed.exists() and not place.exists():
        raise ExtractError(
            f"{sealed} is sealed, and its staging folder is gone: nothing can be added to it. "
            "Extract under another name or --store-version"
        )
