"""What fuzz.py feeds: each reads the bytes of one file as obygaze would."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import h5py
import numpy as np
from calls import test_package
from fuzz_readers import SPANS, Target, file_target, load_all, reader_targets

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_files import array_files
from obygaze_features.exchange.import_hdf5 import hdf5_items
from obygaze_features.exchange.publish import pack
from obygaze_features.exchange.transfer import download
from obygaze_features.io import file_sha256
from obygaze_features.manifest import Manifest, builtin_codebook, read_manifest, write_manifest
from obygaze_features.signature_likeness import SKETCH_BYTES
from obygaze_features.store import open_store, read_stage, seal, verify
from obygaze_features.store.format import TIME_ARRAYS
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import (
    FolderFiles,
    digests_bytes,
    parse_digests,
    payload_files,
    tag_files,
)
from obygaze_features.store.testing import seal_arrays
from obygaze_film import Timeline, scored_files
from obygaze_film.exchange import FORMATS, export
from obygaze_film.judged_rate import correct_rate
from obygaze_film.page import film_page
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.joint import join, read_sums, write_sums
from obygaze_models.joint.sums import About, Sums, _film_moments
from obygaze_models.persistence.sharing import verify_models
from obygaze_models.persistence.zoo_list import default_zoo
from obygaze_models.prediction.saved_model import load_model
from obygaze_models.prediction.training_films import KEPT_VIEWS, TrainingFilms
from obygaze_models.protocol import find_target
from obygaze_models.protocol.targets import codebook_record

sys.path.append(str(Path(__file__).parents[1]))

FILM_FILES = ("film.json", "timeline.csv", "shots.csv")
CONFIGS = ("vivit config", "clip config")


def make_store(folder: Path) -> Path:
    """Seal a store with all kinds of arrays, and leave its stage."""
    rng = np.random.default_rng(0)
    arrays = {
        "pooled": rng.standard_normal((5, 4)).astype(np.float32),
        "frames": rng.standard_normal((5, 2, 4)).astype(np.float16),
        "tokens": rng.standard_normal((5, 3, 2)).astype(np.float16),
    }
    clips = {f"clip-{i}": "m" for i in range(5)}
    return seal_arrays(folder / "s", clips, {"toy": arrays}, failed={"clip-1": 'no, such "file"'})


def read_store(path: Path) -> None:
    """Open a store, read all of it, verify it."""
    try:
        store = open_store(path)
        assert len(store.clips) >= 0
        for name in store:
            group = store[name]
            for array in (*group.arrays, *TIME_ARRAYS):
                group.raw(array)
            for clip in group.clip_ids[:2]:
                group.read(clip, group.arrays[0])
    except StoreError:
        pass
    verify(path, "full")


def copy_store(path: Path) -> None:
    """Read a store or a zip, and bring it elsewhere."""
    read_store(path)
    download(locate(path), path.with_name("copy"))


def rebag(store: Path) -> None:
    """Make the digests agree with the files, so that what is wrong with them gets further."""
    payload = {name: file_sha256(store / name) for name in payload_files(store)}
    (store / "manifest-sha256.txt").write_bytes(digests_bytes(payload))
    retag(store)


def retag(store: Path) -> None:
    """Make the digests of the files beside `data/` agree with them."""
    tags = {name: file_sha256(store / name) for name in tag_files(store)}
    (store / "tagmanifest-sha256.txt").write_bytes(digests_bytes(tags))


def copy_listed(store: Path) -> None:
    """Bring a store elsewhere whose digest manifest says what it likes, written as the format demands."""
    manifest = store / "manifest-sha256.txt"
    manifest.write_bytes(digests_bytes(parse_digests(manifest.read_bytes())[0]))
    retag(store)
    copy_store(store)


def copy_rebagged(store: Path) -> None:
    """Bring a store elsewhere of which one file has other content."""
    rebag(store)
    copy_store(store)


def use_model(path: Path) -> None:
    """Read a model and use it."""
    model = load_model(path)
    X = np.zeros((2, model.card.n_features), np.float32)
    model.out_of_distribution_share(X)
    model.estimator.predict(X)


def read_staging(path: Path) -> None:
    """Read a stage and seal it."""
    stage = read_stage(path)
    stage.status()
    stage.damage()
    stage.missing()
    seal(path, path.with_name("again"), licence="MIT", allow_missing=True)


def zarr_targets(store: Path) -> dict[str, tuple[Path, Target]]:
    """Damage one file of a store; then with digests that agree with it, which gets further."""
    zarr = store / "data/features.zarr"
    paths = {
        "root": zarr / "zarr.json",
        "group": zarr / "toy/zarr.json",
        "array": zarr / "toy/frames/zarr.json",
        "ids": zarr / "toy/clip/c/0",
        "shard": zarr / "toy/tokens/c/0/0/0",
        "clips.csv": store / "data/clips.csv",
        "bag-info": store / "bag-info.txt",
        "digests": store / "manifest-sha256.txt",
    }
    targets = {name: (path, file_target(path, lambda: read_store(store))) for name, path in paths.items()}

    def undo() -> None:
        rebag(store)
        forget(store)

    names = paths["digests"]
    targets["names"] = names, file_target(names, lambda: copy_listed(store), undo)
    for name in ("root", "array", "clips.csv"):
        run = file_target(paths[name], lambda: copy_rebagged(store), undo)
        targets[f"{name}, rebagged"] = paths[name], run
    return targets


def stage_targets(stage: Path) -> dict[str, tuple[Path, Target]]:
    """Damage one file of a stage."""
    copied = stage.with_name("kept")
    shutil.copytree(stage, copied)

    def restore() -> None:  # sealing writes the pieces with damaged rows once more
        for folder in stage.parent.glob("again*"):
            shutil.rmtree(folder)
        shutil.rmtree(stage)
        shutil.copytree(copied, stage)

    paths = {
        "journal": next((stage / "journal").iterdir()),
        "plan": stage / "plan.jsonl",
        "staged": stage / "stage.json",
        "rows": next((stage / "pieces").glob("*.rows")),
        "staged shard": next((stage / "pieces").glob("*.tokens")),
    }
    return {
        name: (path, file_target(path, lambda: read_staging(stage), restore)) for name, path in paths.items()
    }


def small_sums() -> Sums:
    """Sum up three films of thirty clips, of two features."""
    rng = np.random.default_rng(0)
    codebook = builtin_codebook("obygaze12")
    parts = [_film_moments(np.column_stack([rng.normal(size=(30, 2)), np.arange(30) % 2])) for _ in range(3)]
    about = About(
        **dict.fromkeys(("backbone", "features", "pool", "label_policy"), "x"),
        **dict.fromkeys(("provenance_sha256", "store"), "0" * 64),
        n_features=2, provenance={}, left_out={}, codebook=codebook_record(codebook), concepts=[], least=20,
        target=find_target("hn_s", codebook).record(), movies=["a", "b", "c"], licence="MIT",
    )  # fmt: skip
    means, products = (np.stack(parts_of_one) for parts_of_one in zip(*parts, strict=True))
    digests = rng.integers(1, 256, (90, 1, 16), np.uint8)
    no_pictures = np.empty((0, len(KEPT_VIEWS), SKETCH_BYTES), np.uint8)
    no_films = np.empty(0, np.int64)
    training = TrainingFilms(digests, np.repeat(np.arange(3), 30), no_pictures, no_films)
    return Sums(about, np.full(3, 30.0), means, products, {}, training)


def file_targets(folder: Path, store: Path) -> dict[str, tuple[Path, Target]]:
    """Damage a file that stands alone."""
    paths = {name: folder / name for name in ("m.csv", "npy/x.npy", "x.h5", "s-1.0.0.zip", "a.model")}
    paths["m.csv"].write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,note\n"
        "a-1,a,a/1.mp4,0.0,1.5,S,Look;Body,x,hm\n"
        'b-2,b,"b, 2.mp4",,,EN,,,"a\n"\n',
        encoding="utf-8",
    )
    (folder / "npy").mkdir()
    np.save(paths["npy/x.npy"], np.ones((3, 4), np.float32))
    with h5py.File(paths["x.h5"], "w") as file:
        for clip in "abc":
            file[f"{clip}/pooled"] = np.ones(4, np.float32)
    packed = pack(FolderFiles(store), paths["s-1.0.0.zip"])
    paths["a.model"].write_bytes(test_package("persistence", "model_files").MODEL_FILE)
    zoo = shutil.copytree(default_zoo(), folder / "zoo")
    write_sums(small_sums(), folder / "lab.sums")

    def read_hdf5() -> None:
        with hdf5_items(paths["x.h5"]) as (targets, _):
            load_all(targets)

    reads: dict[str, tuple[Path, Callable[[], object]]] = {
        "manifest": (paths["m.csv"], lambda: read_manifest(paths["m.csv"])),
        "npy": (paths["npy/x.npy"], lambda: load_all(array_files(folder / "npy", ArrayChoice()))),
        "hdf5": (paths["x.h5"], read_hdf5),
        "model": (paths["a.model"], lambda: use_model(paths["a.model"])),
        "list": (zoo / "zoo.toml", lambda: verify_models(zoo)),
        "sums": (folder / "lab.sums", lambda: join([read_sums(folder / "lab.sums")]).linear(penalty=1.0)),
    }
    targets = {name: (path, file_target(path, read)) for name, (path, read) in reads.items()}
    zipped = file_target(packed, lambda: copy_store(packed), lambda: forget(packed))
    return {**targets, "zip": (packed, zipped)}


def film_targets(folder: Path) -> dict[str, tuple[Path, Target]]:
    """Damage judgements, or a file of a scored film, all of whose digests fit: else it ends there."""
    from tests.film.films import MODELS, scored_film
    from tests.planted_models import codebook, train_and_save_models

    scored, film = scored_film(folder, train_and_save_models(folder / "trained", MODELS))
    record = json.loads((scored / "film.json").read_bytes())
    same = dict.fromkeys(record["tables"], "")
    (scored / "film.json").write_text(json.dumps(record | {"tables": same}), encoding="utf-8")
    scored_files.sha256_of = lambda _: ""

    def read() -> None:
        film = Timeline.read(scored)
        film_page([film])
        for kind in FORMATS:
            export(film, kind)

    blind = choose_next([film], 12, blind=True)
    clips = (replace(clip, level="calm", annotator="A") for clip in blind)
    rated = folder / "rated.csv"
    write_manifest(Manifest(tuple(clips), folder, codebook(folder)), rated, spreadsheet_safe=True)

    def rate() -> None:
        truth = read_manifest(rated, spreadsheet_safe=True)
        correct_rate(film, truth)
        choose_next([film], 4, judged=truth)

    targets = {}
    for name in FILM_FILES:
        targets[name] = (scored / name, file_target(scored / name, read))
    targets[rated.name] = (rated, file_target(rated, rate))
    return targets


def weight_targets(folder: Path) -> dict[str, tuple[Path, Target]]:
    """Damage the configuration beside some weights."""
    from tests.tiny_checkpoints import tiny_checkpoint

    targets = {}
    for config in CONFIGS:
        name = config.partition(" ")[0]
        weights = str(tiny_checkpoint(name, folder / name))
        path = folder / name / "config.json"
        targets[config] = path, file_target(path, partial(load_backbone, name, weights=weights))
    return targets


def forget(store: Path) -> None:
    """Remove what was copied."""
    for name in ("copy", "copy.pulling"):
        shutil.rmtree(store.with_name(name), ignore_errors=True)


def targets(folder: Path, only: str = "") -> dict[str, tuple[Path, Target]]:
    """Give name -> (a good file, what reads it when it has other bytes).

    If `only` names a target, what it does not need is not made, so that other targets may be left out.
    """
    if only.startswith(SPANS):
        return reader_targets(folder, only)
    store = make_store(folder)
    targets_of = file_targets(folder, store) | zarr_targets(store) | stage_targets(folder / "s.staging")
    for make, names in ((film_targets, (*FILM_FILES, "rated.csv")), (weight_targets, CONFIGS)):
        if only in {"", *names}:  # what takes seconds to make
            targets_of |= make(folder)
    return targets_of | reader_targets(folder)
