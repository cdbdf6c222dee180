"""Runs commands under interpose.c: every one in a fork of this process, which has imported all it needs.

Reads requests from stdin, one JSON object a line, and answers each with one line: the exit code (or minus the
signal), what was said on stderr, how many calls of each kind there were, and those that were made to fail.
"""

import atexit
import ctypes
import importlib
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Container
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import h5py  # noqa: F401 - so that forks need not import it
import numpy as np

from obygaze import cli
from obygaze_features.io import write_whole
from obygaze_features.manifest import (
    Clip,
    Manifest,
    builtin_codebook,
    load_codebook,
    read_manifest,
    write_manifest,
)
from obygaze_features.store import (
    ArraySpec,
    ClipFeatures,
    ClipResult,
    GroupSpec,
    PlannedClip,
    Stage,
    open_store,
    read_stage,
    seal,
)
from obygaze_features.store.format import ANY_NUMBER, PIECE_ROWS
from obygaze_features.store.growth import plan_growth
from obygaze_features.store.journal import is_done
from obygaze_features.store.testing import seal_arrays, seal_frames, toy_provenance
from obygaze_features.untrusted import read_bytes

if TYPE_CHECKING:
    from obygaze_film.workspace.decisions import Decisions

for name in ("store_commands", "store_combine", "store_exchange", "store_transfer"):
    importlib.import_module(f"obygaze_features.commands.{name}")
for name in ("export", "import_features", "import_tables", "merge", "publish", "transfer"):
    importlib.import_module(f"obygaze_features.exchange.{name}")
for name in ("encodings.cp437", "encodings.utf_8_sig", "html", "importlib.readers", "mmap", "numpy.random"):
    importlib.import_module(name)

KINDS = ("write", "fsync", "close", "rename", "open", "unlink", "link", "read", "lock")
"""In the order of interpose.c."""
SHIM = ctypes.PyDLL(None)
"""The functions of interpose.c, which is loaded into this process (LD_PRELOAD)."""
SHIM.disk_hits.restype = ctypes.c_char_p
SHIM.disk_count.restype = ctypes.c_long
SHIM.disk_arm.argtypes = [
    ctypes.c_char_p,  # the folder below which calls count
    ctypes.c_int,  # the kind of call that fails, a place in KINDS; -1 for none
    ctypes.c_long,  # which call of the kind fails: 1 is the first
    ctypes.c_int,  # its error; 0 ends the process
    ctypes.c_int,  # whether all later calls of the kind fail too
    ctypes.c_char_p,  # where the log is written; None for no log
]
CONTENTS = cli.root_command
N_CLIPS = 6
IDS = [f"clip {i}" for i in range(N_CLIPS)]
STAGED = [f"clip {i:02}" for i in range(2 * PIECE_ROWS + 4)]
"""The clips of a stage of three pieces, the last of which is open until the writer ends."""
IN_TURN = sorted(STAGED[:-4], key=lambda clip: STAGED.index(clip) % PIECE_ROWS) + STAGED[-4:]
"""The same clips in an order in which two pieces are open at a time."""
AGAIN = "no such file, again"
SHAPES = {"pooled": ((4,), "float32"), "frames": ((2, 4), "float16"), "tokens": ((3, 2), "float16")}
ARRAYS = [ArraySpec(name, shape, dtype) for name, (shape, dtype) in SHAPES.items()]


def planted(n_clips: int = N_CLIPS) -> dict[str, np.ndarray]:
    """The features of all clips."""
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal((n_clips, *shape)).astype(dtype) for name, (shape, dtype) in SHAPES.items()
    }


def make_inputs(folder: Path) -> None:
    """Make a stage, its store, the store's halves and zip, a partial copy, and files to import."""
    arrays = planted()
    make_stores(folder, arrays)
    make_small_store(folder)
    make_zips_and_partial_copies(folder)
    make_stage_with_failures(folder / "failed")
    make_stage_of_two_attempts(folder / "scattered")
    make_features_to_import(folder, arrays["pooled"])


def make_stores(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Make the store "toy" and its halves "toy-a" and "toy-b", and the same with frames of any number.

    One clip of the six failed. The others have 2, 3, 4 ... frames in the stores named "ragged-".
    """
    rows_of_stores = {"toy": slice(None), "toy-a": slice(0, 3), "toy-b": slice(3, None)}
    for name, rows in rows_of_stores.items():
        clips = IDS[rows]
        movies = dict.fromkeys(clips, "m")
        failed = {clip: "no such file" for clip in clips if clip == "clip 1"}
        features = {array: values[rows] for array, values in arrays.items()}
        seal_arrays(folder / name, movies, {"toy": features}, failed=failed)

        frames = {}
        for n_frames, clip in enumerate(clips, start=2):
            if clip not in failed:
                frames[clip] = np.full((n_frames, 4), n_frames, np.float32)
        seal_frames(folder / f"ragged-{name}", movies, frames, failed=failed)


def make_small_store(folder: Path) -> None:
    """Make the store "small" of a whole piece and two clips of the next, which `grow` grows."""
    n_small = PIECE_ROWS + 2
    opened = Stage.open(folder / "small.staging", PLANNED[:n_small], KINDS_OF_GROUPS, {"name": "toy"})
    fill(opened, STAGED[:n_small])
    seal(stage_path=None, destination=folder / "small", licence="CC0-1.0")


def make_zips_and_partial_copies(folder: Path) -> None:
    """Zip the two stores, and copy of each a part: one array of the one, two clips of the other."""
    two_clips = folder / "few.txt"
    two_clips.write_text("\n".join(IDS[3:5]), encoding="utf-8")
    parts = {"toy": ("--arrays", "pooled"), "ragged-toy": ("--clips", two_clips)}
    for store, part in parts.items():
        sealed = folder / f"{store}-1.0.0"
        obygaze("store", "pack", sealed)
        obygaze("store", "pull", sealed, folder / f"part-{store}-1.0.0", *part)


def make_stage_with_failures(folder: Path) -> None:
    """Make a stage with three failed clips, in two of its pieces, which `retry` tries again."""
    folder.mkdir()
    fill(open_stage(folder / "toy.staging"), STAGED, failed={"clip 01", "clip 02", "clip 17"})


def make_stage_of_two_attempts(folder: Path) -> None:
    """Make a stage whose pieces have their rows in two attempts each, which `join` seals.

    A writer announces every other clip. Before it commits them, another writer, of which it does not know,
    does the rest: so each of the two has half the rows of each piece.
    """
    folder.mkdir()
    opened = open_stage(folder / "toy.staging")
    with opened.writer(STAGED[1::2]) as first_writer:
        fill(opened, STAGED[::2])
        first_writer.commit(results(STAGED[1::2]))


def make_features_to_import(folder: Path, pooled: np.ndarray) -> None:
    """Make a table of clips, a vector for each, and for each 1 to 6 vectors of its frames."""
    (folder / "npy").mkdir()
    for clip, row in zip(IDS, pooled, strict=True):
        np.save(folder / "npy" / f"{clip}.npy", row)

    (folder / "npy-frames").mkdir()
    for n_frames, clip in enumerate(IDS, start=1):
        frames = np.linspace(0, n_frames, 8 * n_frames, dtype=np.float32).reshape(n_frames, 8)
        np.save(folder / "npy-frames" / f"{clip}.npy", frames)

    table = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator"]
    table += [f"{clip},m,{clip}.mp4,,,,," for clip in IDS]
    (folder / "clips.csv").write_text("\n".join(table) + "\n", encoding="utf-8")


def obygaze(*words: object) -> None:
    """Run a command in this process; an error is raised, not printed."""
    CONTENTS().main([str(word) for word in words], standalone_mode=False)


def make_films(folder: Path) -> None:
    """Make two models of films' frames, a film that they don't know, its windows, and its scores by one."""
    rng = np.random.default_rng(0)
    for movie in "abcd":
        make_video(folder / f"{movie}.mp4", rng)
    known = [folder / f"{movie}.mp4" for movie in "abc"]
    unknown = folder / "d.mp4"
    obygaze("manifest", "import", "film", *known, *WINDOWS, "--shots", "none", "--out", folder / "abc.csv")
    obygaze("extract", folder / "abc.csv", folder / "abc", *ONE_WORKER)
    obygaze("manifest", "import", "film", unknown, *WINDOWS, "--out", folder / "d.csv")
    obygaze("extract", folder / "d.csv", folder / "d", *ONE_WORKER)
    make_models(folder)
    scored = (folder / "d-1.0.0", "--shots", folder / "d.shots.csv", "--out", folder / "scored")
    obygaze("film", "score", folder / "linear.model", *scored)


def make_video(path: Path, rng: np.random.Generator) -> None:
    """Make 80 pictures of noise at 5 a second: 8 windows of 2 s, every other one bright."""
    from obygaze.demo_corpus import write_video

    n_pictures_of_window = 10
    pictures = []
    for number in range(80):
        is_bright = number // n_pictures_of_window % 2 == 1
        light = 180 if is_bright else 60
        noise = rng.integers(0, 50, (48, 64, 3))
        pictures.append((light + noise).astype(np.uint8))
    write_video(path, pictures, rate=5)


def make_models(folder: Path) -> None:
    """Train two models to tell the dark windows of three films (EN) from the bright ones (S)."""
    import obygaze_models as om

    clips = []
    for number, clip in enumerate(read_manifest(folder / "abc.csv").clips):
        level = "EN" if number % 2 == 0 else "S"
        clips.append(replace(clip, level=level))
    labelled = Manifest(tuple(clips), folder)
    write_manifest(labelled, folder / "labelled.csv")
    data = om.load_dataset(open_store(folder / "abc"), labelled)
    run = om.evaluate(data, ["linear", "mlp"], task="en_s")
    om.save_models(run, data, ["linear", "mlp"], folder)


def make_lab(folder: Path) -> None:
    """Make the folder of a lab: a film, its scores and store, all that trained the model, and judgements.

    All windows of the film were judged blindly: in a table, `blind.csv`, and in `judged` at the desk too,
    where also a passage was marked. An export of the latter, for ELAN, was changed by hand: `changed.eaf`.
    """
    lab = folder / "lab"
    lab.mkdir()
    for name in ("d.mp4", "d.csv", "d.shots.csv", "linear.model", "labelled.csv"):
        shutil.copy(folder / name, lab / name)
    for name in ("abc-1.0.0", "d-1.0.0", "scored"):
        shutil.copytree(folder / name, lab / name)
    shutil.copytree(folder / "scored", lab / "judged")

    write_blind_judgements(lab / "scored", lab / "blind.csv")
    judge_all_blindly(lab / "judged")
    obygaze("film", "export", lab / "judged", "--as", "eaf", "--people", "--out", lab / "changed.eaf")
    change_levels(lab / "changed.eaf")


def write_blind_judgements(scored_film: Path, path: Path) -> None:
    """Draw all windows of a film for blind judgements, and fill in their levels."""
    obygaze("film", "next", scored_film, "--blind", "--n", 8, "--out", path)
    drawn = read_manifest(path)
    judged = []
    for number, clip in enumerate(drawn.clips):
        level = "S" if number % 3 == 0 else "EN"
        judged.append(replace(clip, level=level, annotator="AB"))
    write_manifest(drawn.with_clips(judged), path)


def judge_all_blindly(scored_film: Path) -> None:
    """Judge all windows of a film at the desk, in the order of the draw, and mark a passage."""
    _, desk = open_desk(scored_film)
    for number, (start_s, end_s) in enumerate(desk.windows, start=1):
        level = "S" if number % 3 == 0 else "EN"
        desk.keep("judgement", start_s, end_s, "AB", level=level, place=number, n_planned=8)
    desk.keep("passage", 2.0, 4.0, "AB", level="S")


def change_levels(eaf: Path) -> None:
    """Change every level EN of a document of ELAN to HN, as a person would there."""
    text = eaf.read_text("utf-8")
    eaf.write_text(text.replace(">EN<", ">HN<"), "utf-8")


def make_rare_inputs(folder: Path) -> None:
    """Make a CLIP and what it is trained on, a run, and a store that the paper's tables are made of."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.studies.lsmdc.corpus import tiny_clip, write_corpus
    from tests.studies.obygaze12.test_strict_protocol import planted_results

    tiny_clip(folder / "clip")
    write_corpus(folder / "lsmdc")
    results = planted_results(of_level=2.0, n_movies=4, n_clips=24)
    manifest = results.corpus.manifest
    write_manifest(manifest, folder / "paper.csv")
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    seal_arrays(folder / "paper", movie_of, {"toy": {"pooled": results.source.X}})
    evaluate = ("evaluate", folder / "labelled.csv", folder / "abc-1.0.0", "--task", "en_s", "--model", "mlp")
    obygaze(*evaluate, "--save", "mlp", "--out", folder / "run")


WINDOWS = ("--window", "2", "--hop", "2")
ONE_WORKER = ("--workers", "1", "--licence", "CC0-1.0")


# --- work that is no command of its own
# ---------------------------------------------------------------------------
def open_stage(path: Path) -> Stage:
    """Make a stage of three pieces, or resume it."""
    return Stage.open(path, PLANNED, KINDS_OF_GROUPS, {"name": "toy"})


PLANNED = [PlannedClip(clip, "m", start_s=None, end_s=None) for clip in STAGED]
KINDS_OF_GROUPS = [
    GroupSpec("toy", tuple(ARRAYS), n_frames=2, provenance=toy_provenance("toy")),
    GroupSpec(
        "ragged", (ArraySpec("frames", (ANY_NUMBER, 4), "float32"),), ANY_NUMBER, toy_provenance("ragged")
    ),
]
"""A group of two frames a clip, and one of one to four."""


def stage(folder: Path) -> None:
    """Commit what a stage misses, two clips at a time and from two pieces in turn; then seal it."""
    opened = open_stage(folder / "new" / "toy.staging")
    mark("made")
    opened.sweep()
    todo = set(opened.missing())
    fill(opened, [clip for clip in IN_TURN if clip in todo], failed={"clip 01"})
    seal(stage_path=None, destination=folder / "new" / "toy", licence="CC0-1.0")


def retry(folder: Path) -> None:
    """Try the failed clips of a stage again, of which one fails again; then seal it."""
    opened = read_stage(folder / "new" / "toy.staging")
    opened.sweep()
    status = opened.status()
    tried = [clip for clip in status if status[clip].status == "failed" and status[clip].reason != AGAIN]
    fill(opened, tried, failed={"clip 02"}, reason=AGAIN)
    seal(stage_path=None, destination=folder / "new" / "toy", licence="CC0-1.0")


def join(folder: Path) -> None:
    """Seal a stage whose pieces have their rows in two attempts each."""
    opened = read_stage(folder / "new" / "toy.staging")
    opened.sweep()
    fill(opened, [])  # nothing is missing: this only marks which clips the stage has
    seal(stage_path=None, destination=folder / "new" / "toy", licence="CC0-1.0")


def grow(folder: Path) -> None:
    """Grow a store of a whole piece and the begin of another."""
    parent = folder / "toy-1.0.0"
    planned = plan_growth(open_store(parent), "1.1.0", PLANNED, KINDS_OF_GROUPS, {"name": "toy"})
    opened = Stage.open(folder / "new" / "toy.staging", *planned, parent=parent)
    mark("made")
    opened.sweep()
    todo = set(opened.missing())
    fill(opened, [clip for clip in IN_TURN if clip in todo])
    seal(stage_path=None, destination=folder / "new" / "toy", version="1.1.0", licence="CC0-1.0")


def fill(opened: Stage, clips: list[str], failed: Container[str] = (), reason: str = "no such file") -> None:
    """Commit clips to a stage, two at a time, and mark after each commit what the stage has from then on."""
    mark_clips(opened, "found")
    mark_clips(opened, "had")
    with opened.writer(clips) as writer:
        for start in range(0, len(clips), 2):
            writer.commit(results(clips[start : start + 2], failed, reason))
            mark_clips(opened, "had")
    mark_clips(opened, "had")


def mark_clips(opened: Stage, word: str) -> None:
    """Mark which clips a stage has, and once more with "ok" which of them are done.

    `word` is "found" for what a run finds when it begins, and "had" for what must outlive a power cut from
    now on; `lost_records` in harness.py compares the two.
    """
    for clip, entry in opened.status().items():
        mark(f"{word} {clip}")
        if is_done(entry):
            mark(f"{word} {clip} ok")


def results(clips: list[str], failed: Container[str] = (), reason: str = "no such file") -> list[ClipResult]:
    """Make the results of clips, as a writer commits them: features drawn by their row, or a failure."""
    arrays = planted(len(STAGED))
    made = []
    for clip in clips:
        if clip in failed:
            made.append(ClipResult(clip, "failed", reason))
        else:
            row = STAGED.index(clip)
            groups = {"toy": toy_features(arrays, row), "ragged": ragged_features(row)}
            made.append(ClipResult(clip, "ok", groups=groups))
    return made


def toy_features(arrays: dict[str, np.ndarray], row: int) -> ClipFeatures:
    """Give a clip its row of each array, of two frames a second apart."""
    times_s = np.arange(2.0)
    frame_numbers = np.arange(2)
    return ClipFeatures(times_s, frame_numbers, {name: values[row] for name, values in arrays.items()})


def ragged_features(row: int) -> ClipFeatures:
    """Give a clip one to four frames, whose vectors hold its row."""
    n_frames = row % 4 + 1
    times_s = np.arange(float(n_frames))
    frame_numbers = np.arange(n_frames)
    return ClipFeatures(times_s, frame_numbers, {"frames": np.full((n_frames, 4), row, np.float32)})


def mark(text: str) -> None:
    """Note in the log what a user may rely on from here on."""
    if text not in MARKS:
        MARKS.append(text)
        SHIM.disk_mark(text.encode())


MARKS: list[str] = []


def manifest(folder: Path) -> None:
    """Write a manifest with a codebook of its own."""
    text = (
        'name = "violence"\nversion = "1"\n[[levels]]\nname = "calm"\n[[levels]]\nname = "violent"\n'
        '[tasks.calm_violent]\nnegative = ["calm"]\npositive = ["violent"]\n'
    )
    place = Path(tempfile.gettempdir(), f"obygaze-{os.getpid()}.codebook.toml")
    place.write_text(text, encoding="utf-8")
    codebook = load_codebook(place)
    place.unlink()
    clips = tuple(Clip(clip, "m", level="calm") for clip in IDS)
    write_manifest(Manifest(clips, folder, codebook), folder / "films.csv")


def prepare_run() -> None:
    """Evaluate a model once, in the process that forks: the work "run" only writes what comes out."""
    if "run" in MADE:
        return
    import obygaze_models as om
    import obygaze_models.evaluation.run  # so that forks need not import it

    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.conftest import dataset

    rng = np.random.default_rng(0)
    levels = np.array(["EN", "S"] * 24)
    X = rng.normal(size=(48, 4)) + (levels == "S")[:, None]
    data = dataset(X, levels, np.repeat(["a", "b", "c", "d"], 12))
    MADE["run"] = om.evaluate(data, {"linear": om.linear_probe()}, task="en_s")


def prepare_model() -> None:
    """Fit a model once, in the process that forks: the work "model" only writes it."""
    if "model" in MADE:
        return
    from obygaze_models.persistence.model_file import to_state

    sys.path.append(str(Path(__file__).parents[1] / "persistence"))
    import model_files

    probe = model_files.PROBE
    MADE["model"] = (
        model_files.card_of_probe(probe),
        to_state(probe).arrays,
        model_files.other_arrays_of(probe),
    )


MADE: dict[object, object] = {}
"""What the process that forks has prepared: the name of a work, or the words of a command -> it."""


def model(folder: Path) -> None:
    """Write a model over an older one."""
    from obygaze_models.persistence.model_file import write_model

    write_model(folder / "a.model", *MADE["model"])


def run(folder: Path) -> None:
    """Write a run over an older one."""
    from obygaze_models.evaluation.run_folder import write_run

    write_run(MADE["run"], folder / "run", force=True)


def prepare_decide() -> None:
    """Import, in the process that forks, what the work "decide" needs."""
    importlib.import_module("obygaze_film.workspace.decisions")
    importlib.import_module("obygaze_film.timeline")
    importlib.import_module("obygaze_models.persistence")


def decide(folder: Path) -> None:
    """Judge, mark and note in a scored film what is not decided yet, as `film open` writes it."""
    from obygaze_film.errors import FilmError

    scored_film, desk = open_desk(folder / "scored")
    levels = desk.codebook.level_names
    found = kept_decisions(desk)
    mark_each("found", found)
    for number, (start_s, end_s) in enumerate(desk.windows[:3], start=1):
        decisions_of_window = {
            "judgement": {"level": levels[number % 2], "place": number, "n_planned": 3},
            "passage": {"level": levels[0]},
            "note": {"note": "as in the first scene"},
        }
        for kind, fields in decisions_of_window.items():
            if f"{kind} {start_s:g}" not in found:
                desk.keep(kind, start_s, end_s, "AB", **fields)
                for notice in desk.notices:
                    raise FilmError(notice)
            mark_each("had", kept_decisions(desk))
    write_decisions(scored_film, folder / "decided.txt")


def open_desk(folder: Path) -> "tuple[Path, Decisions]":
    """Open the decisions on the scored film below a folder, where clock and chance are taken out."""
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace import decisions, ledger, rules

    scored_film, film = next(iter(found_films([folder]).items()))
    rules.now = lambda: "2026-01-01T00:00:00+00:00"
    # Names of sittings are random; here they are numbers, so that what comes out can be compared.
    ledger.token_hex = lambda _: f"{len(list(scored_film.glob('ledger/*.jsonl'))):016x}"
    desk = decisions.Decisions(scored_film, film, builtin_codebook(film.model().codebook))
    # A table may be older than the ledger after a power cut; it is mended, and that is no error.
    desk.notices = [notice for notice in desk.notices if not notice.endswith("written anew")]
    return scored_film, desk


def kept_decisions(desk: "Decisions") -> set[str]:
    """List the decisions that a desk keeps, like "note 4": the kind, and where in the film, in seconds."""
    return {f"{kind} {clip.start_s:g}" for kind, clips in desk.clips_by_kind.items() for clip in clips}


def mark_each(word: str, names: set[str]) -> None:
    """Mark each name, in an order that is always the same."""
    for name in sorted(names):
        mark(f"{word} {name}")


def write_decisions(scored_film: Path, path: Path) -> None:
    """Write the rows of all tables of a film without their first column, ids that differ from run to run."""
    from obygaze_film.workspace import decisions

    rows = []
    for name in decisions.COLUMNS:
        table = scored_film / name
        if table.exists():  # nothing was agreed on, so there is no table of agreements
            for line in read_bytes(table).decode().splitlines()[1:]:
                _, _, after_id = line.partition(",")
                rows.append(after_id)
    write_whole(path, "\n".join(sorted(rows)))


CALLS = {
    call.__name__: call
    for call in (
        make_inputs,
        make_films,
        make_lab,
        make_rare_inputs,
        stage,
        retry,
        join,
        grow,
        manifest,
        model,
        run,
        decide,
    )
}
PREPARATIONS = {"model": prepare_model, "run": prepare_run, "decide": prepare_decide}
"""Work -> what is done once before it, in the process that forks."""


class Call:
    """Stands in for the table of contents, so that what is called meets the command line's own errors."""

    def __init__(self, call: str, folder: Path) -> None:
        self.call, self.folder = call, folder

    def main(self, **_: object) -> None:
        """Call it."""
        CALLS[self.call](self.folder)


def child(request: dict[str, object], stderr: int, facts: int) -> None:
    """Do the work of a request in this fork, under interpose.c, and end as a process ends.

    Parameters
    ----------
    request
        What `Runner.ask` sends: `root` and either `words` of a command or `call`, a function above; the
        fault, if any (`kind`, `n`, `error`, `lasting`); `log`; `exits`.
    stderr
        Descriptor of the file that gets what the work says there.
    facts
        Descriptor of a pipe that gets, as JSON, what interpose.c saw.
    """
    redirect_output(stderr)
    if "call" in request:
        cli.root_command = lambda: Call(request["call"], Path(request["root"]))
    modules = set(sys.modules)

    arm(request)
    code = exit_code(request.get("words", []))
    if request.get("exits"):  # HDF5 has work to do then
        atexit._run_exitfuncs()
    SHIM.disk_mark(f"exit {code}".encode())

    seen = {
        "new": sorted(set(sys.modules) - modules),
        "counts": {kind: SHIM.disk_count(index) for index, kind in enumerate(KINDS)},
        "marks": MARKS,
        "hits": SHIM.disk_hits().decode().splitlines(),
    }
    os.write(facts, json.dumps(seen).encode())
    sys.stderr.flush()
    if request.get("exits"):
        SHIM.exit(code)
    os._exit(code)


def redirect_output(stderr: int) -> None:
    """Send what this process says on stderr to a descriptor, and what it prints nowhere."""
    os.dup2(stderr, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def arm(request: dict[str, object]) -> None:
    """Tell interpose.c what counts from here on, what fails, and where to log."""
    kind = KINDS.index(request["kind"]) if "kind" in request else -1
    log = request["log"].encode() if "log" in request else None
    SHIM.disk_arm(
        request["root"].encode(),
        kind,
        request.get("n", 0),
        request.get("error", 0),
        request.get("lasting", False),
        log,
    )


def exit_code(words: list[str]) -> int:
    """Run the command, and return its exit code; 99 where it ends with a traceback, which no work may."""
    try:
        cli.main(words)
    except SystemExit as end:
        return end.code
    except BaseException:  # noqa: BLE001 - a traceback, which is what is looked for
        sys.excepthook(*sys.exc_info())
        return 99
    return 0


def rehearse(words: list[str], root: str) -> None:
    """Run a command once on a copy of its folder, so that forks need not import what it needs."""
    command = tuple(word.replace(root, "") for word in words)
    if command in MADE:
        return
    MADE[command] = True
    output = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(output), redirect_stderr(output):
        shutil.copytree(root, folder, dirs_exist_ok=True)
        obygaze(*[word.replace(root, folder) for word in words])


def serve() -> None:
    """Answer requests until stdin ends: a line of JSON in, a line of JSON out."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        prepare(request)
        answers.write(json.dumps(answer_from_fork(request)) + "\n")
        answers.flush()


def prepare(request: dict[str, object]) -> None:
    """Import and compute in this process what every fork for such a request would need."""
    call = request.get("call")
    if call in PREPARATIONS:
        PREPARATIONS[call]()
    # Commands on stores have their modules imported above.
    words = request.get("words")
    if words is not None and words[0] != "store":
        rehearse(words, request["root"])


def answer_from_fork(request: dict[str, object]) -> dict[str, object]:
    """Do the work of a request in a fork; return its exit code, its stderr, and what interpose.c saw."""
    with tempfile.TemporaryFile() as stderr:
        read_end, write_end = os.pipe()
        process = os.fork()
        if process == 0:
            child(request, stderr.fileno(), write_end)

        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            facts = pipe.read()
        _, status = os.waitpid(process, 0)
        stderr.seek(0)
        seen = {"counts": {}, "hits": [], "marks": []}  # by a fork that was killed
        if facts:
            seen = json.loads(facts)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "said": stderr.read().decode("utf-8", "replace"),
            **seen,
        }


if __name__ == "__main__":
    serve()
