"""What is in the files that commands make, where no library function below them makes them."""

import json
import os
import re
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from obygaze.demo_corpus import write_video
from obygaze_features.errors import OutputError
from obygaze_features.manifest import Clip, Manifest, load_codebook, read_manifest, write_manifest
from obygaze_features.store import (
    ClipFeatures,
    ClipResult,
    PlannedClip,
    Stage,
    open_store,
    staging_path,
)
from obygaze_features.store.testing import seal_arrays, toy_group
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.sheet import LINE_HEIGHT, thumbnail
from obygaze_models.report import new_folder
from tests.command import obygaze
from tests.files import rows_of
from tests.private import files_below
from tests.store.toy_stores import seal_stage_of

PAGE_ON_CODEBOOKS = Path(__file__).parents[2] / "docs" / "codebooks.md"

WORDS_OF_OBYGAZE12 = re.compile(
    r"\b(EN|HN|NS|S|Sure|Body|Look|Speech|ObyGaze12|obygaze12|printed|paper|released|hn_s|objectif\w*)\b"
)


@pytest.fixture
def run_expecting_code(run, workdir):
    """Run a command in the folder `workdir`, which must end with the code 0, or another that is given.

    Gives what it printed to stdout.
    """

    def run_expecting_code(command, *, code=0):
        ended = run(command, workdir)
        assert ended.exit_code == code, ended.err
        return ended.out

    return run_expecting_code


@pytest.fixture
def greys(workdir):
    """The film in/greys.mp4, 64 x 32 pixels, ten pictures a second: picture n of 20 has the grey 10 n."""
    pictures = (np.full((32, 64, 3), 10 * number, np.uint8) for number in range(20))
    write_video(workdir / "in/greys.mp4", pictures, rate=10)


def test_predictions_that_are_written_are_not_printed_too_unless_as_json(run_expecting_code, workdir):
    """Of a store of 100,000 clips the table would be as many lines."""
    predict = "predict in/models/linear.model in/more"
    table = run_expecting_code(predict)
    assert table.startswith("clip_id")

    assert run_expecting_code(f"{predict} --out out/predictions.csv") == ""
    assert rows_of(workdir / "out/predictions.csv") != []
    assert json.loads(run_expecting_code(f"{predict} --out out/again.csv --json")) != {}


@pytest.mark.long
@pytest.mark.usefixtures("greys")
def test_saved_frames_are_of_full_size_with_their_numbers_and_times(run_expecting_code, workdir):
    """The film has ten pictures a second of 64 x 32 pixels, and picture n has the grey 10 n.

    Pictures 3 and 12 are shown at 0.3 and 1.2 s; their greys are 30 and 120, but for the loss of encoding.
    """
    run_expecting_code("frames in/greys.mp4 --indices 3,12 --npz out/a.npz")

    with np.load(workdir / "out/a.npz", allow_pickle=False) as saved:
        frames = saved["frames"]
        assert frames.shape == (2, 32, 64, 3)
        assert frames.dtype == np.uint8
        assert frames[0].mean() == pytest.approx(30, abs=3)
        assert frames[1].mean() == pytest.approx(120, abs=3)
        assert saved["index"].tolist() == [3, 12]
        assert saved["time_s"].tolist() == [0.3, 1.2]


CELLS_IN_ROW = 8


def cells_of(sheet, thumbnail_height):
    """Cut a sheet of thumbnails into its cells, row by row; a caption stands below each thumbnail."""
    rows = np.split(sheet, len(sheet) // (thumbnail_height + LINE_HEIGHT))
    return [cell for row in rows for cell in np.split(row, CELLS_IN_ROW, axis=1)]


@pytest.mark.long
@pytest.mark.usefixtures("greys")
def test_a_sheet_of_frames_has_thumbnails_with_captions_in_rows_of_eight(run_expecting_code, workdir):
    """The film has 20 pictures of 64 x 32 pixels, and picture n has the grey 10 n.

    Ten of them are every second one. They fill a row of eight cells and two of the next row; below each is a
    caption in light letters on black.
    """
    run_expecting_code("frames in/greys.mp4 --n 10 --sheet out/sheet.png")

    sheet = np.asarray(Image.open(workdir / "out/sheet.png"))
    cells = cells_of(sheet, thumbnail_height=32)
    assert len(cells) == 2 * 8
    greys = [0, 20, 40, 60, 80, 100, 120, 140, 160, 180]
    for cell, grey in zip(cells[:10], greys, strict=True):
        thumbnail, caption = cell[:32, :64], cell[32:]
        assert thumbnail.mean() == pytest.approx(grey, abs=3)
        assert caption.max() > 200
    for empty_cell in cells[10:]:
        assert not empty_cell.any()


@pytest.mark.parametrize(
    "command",
    [
        "manifest project in/segments.csv --window 9 --out out/a.csv",
        "frames in/video.mp4 --npz out/a.npz",
    ],
    ids=["a text", "an array"],
)
def test_a_failed_write_leaves_nothing_behind(run, workdir, monkeypatch, command):
    """The disk is full: `write_all`, which writes all texts, and numpy's `savez` raise the system's error.

    A half-written file could be taken for a whole one. The message does not name the temporary file, which
    says nothing to a user: its name ends in .partial.
    """

    def write_to_a_full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("obygaze_features.io.write_all", write_to_a_full_disk)
    monkeypatch.setattr(np, "savez", write_to_a_full_disk)

    ended = run(command, workdir)

    assert ended.exit_code == 1
    assert "No space left on device" in ended.err
    assert "partial" not in ended.err
    assert list((workdir / "out").iterdir()) == []


@pytest.fixture
def two_films(shared_data, workdir):
    """The manifest in/two.csv of clips of two real films and of films that cannot be read; gives the folder.

    Body is marked in a1, a2 and b1; Look in b1, in b2, whose video is broken, and in c1, whose video is not
    there; Posture in c1 alone.
    """
    videos = shared_data / "videos"
    nasa, arms = str(videos / "nasa_13013.mp4"), str(videos / "arm_wrestling.mp4")
    clips = (
        Clip("a1", "nasa", nasa, 0, 4, "S", ("Body",)),
        Clip("a2", "nasa", nasa, 4, 8, "HN", ("Body",)),
        Clip("b1", "arms", arms, 0, 3, "S", ("Body", "Look")),
        Clip("b2", "arms", "empty.mp4", None, None, "S", ("Look",)),
        Clip("c1", "gone", "gone.mp4", None, None, "S", ("Look", "Posture")),
    )
    write_manifest(Manifest(clips, workdir / "in"), workdir / "in/two.csv")
    return workdir


MAKE_SHEETS_OF_THREE_CONCEPTS = (
    "manifest sheets in/two.csv --concept Body --concept Look --concept Posture --out out/s"
)


def test_sheets_of_concepts_count_the_clips_that_are_marked_and_drawn(run_expecting_code, two_films):
    """Body is marked in three clips with videos.

    Look is marked in three clips too. One has no video and the video of one is empty, so that one is drawn.
    Posture is marked in one clip without a video, and gets no sheet.
    """
    assert (two_films / "in/empty.mp4").stat().st_size == 0

    body, look, posture = json.loads(run_expecting_code(f"{MAKE_SHEETS_OF_THREE_CONCEPTS} --json"))

    assert (body["n_clips"], body["n_with_video"], body["n_drawn"]) == (3, 3, 3)
    assert (look["n_clips"], look["n_with_video"], look["n_drawn"]) == (3, 2, 1)
    assert posture["n_with_video"] == 0
    assert body["file"] == "body.png"
    assert posture["file"] == ""


def test_clips_of_a_sheet_alternate_between_films(run_expecting_code, two_films):
    """Body is marked in the clips a1 and a2 of one film and b1 of another; a long film would fill a sheet."""
    run_expecting_code(MAKE_SHEETS_OF_THREE_CONCEPTS)

    rows = rows_of(two_films / "out/s/index.csv")
    clips_with_body = [row["clip_id"] for row in rows if row["sheet"] == "body.png"]
    assert clips_with_body == ["a1", "b1", "a2"]


def test_a_sheet_shows_the_middle_frame_of_a_clip(run_expecting_code, two_films, shared_data):
    """The sheet of Look has the clip b1 alone, from 0 to 3 s of a video: its middle is at 1.5 s.

    Of two frames at even distances the first is at the beginning and the second in the middle.
    """
    run_expecting_code(MAKE_SHEETS_OF_THREE_CONCEPTS)

    video_of_b1 = shared_data / "videos" / "arm_wrestling.mp4"
    _, frame_in_the_middle = read_frames(video_of_b1, uniform(2), start_s=0, end_s=3).images
    expected = thumbnail(frame_in_the_middle)
    height, width = expected.shape[:2]
    sheet = np.asarray(Image.open(two_films / "out/s/look.png"))
    assert (sheet[:height, :width] == expected).all()
    *_, row_of_b1 = rows_of(two_films / "out/s/index.csv")
    assert float(row_of_b1["time_s"]) == pytest.approx(1.5, abs=0.1)


def test_sheets_are_replaced_by_force_alone_and_other_files_of_the_folder_stay(
    run_expecting_code, run, two_films
):
    """The command makes sheets in out/s, where then a file of the user's, mine.txt, is put.

    It is refused the second time. With --force it makes the same files, and leaves mine.txt.
    """
    folder = two_films / "out/s"
    run_expecting_code(MAKE_SHEETS_OF_THREE_CONCEPTS)
    (folder / "mine.txt").touch()
    files_before = {path.name: path.read_bytes() for path in folder.iterdir()}

    ended_without_force = run(MAKE_SHEETS_OF_THREE_CONCEPTS, two_films)
    run_expecting_code(f"{MAKE_SHEETS_OF_THREE_CONCEPTS} --force")

    assert ended_without_force.exit_code == 1
    files_after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files_after == files_before


HEADER_OF_PREDICTIONS = "model,task,fold,clip_id,label,score,threshold"
MAKE_SHEETS_OF_ERRORS = "manifest sheets in/two.csv --predictions in/p.csv --out out/e"


@pytest.fixture
def predictions_of_two_models(two_films):
    """The table in/p.csv of predictions of mlp and linear for four clips; gives the folder.

    Clip a2 alone is positive. At the threshold of 0.5, mlp takes a1 and b1 for positive and misses a2.
    """
    labels = {"a1": 0, "a2": 1, "b1": 0, "b2": 0}
    scores_of_mlp = {"a1": 0.9, "a2": 0.1, "b1": 0.6, "b2": 0.2}
    task, fold, threshold = "hn_s>hn_s", 0, 0.5
    rows = []
    for clip, label in labels.items():
        rows.append(f"mlp,{task},{fold},{clip},{label},{scores_of_mlp[clip]},{threshold}")
    for clip, label in labels.items():
        rows.append(f"linear,{task},{fold},{clip},{label},0,{threshold}")
    (two_films / "in/p.csv").write_text("\n".join([HEADER_OF_PREDICTIONS, *rows, ""]), encoding="utf-8")
    return two_films


def test_a_models_errors_are_two_sheets_with_the_clearest_error_first(
    run_expecting_code, predictions_of_two_models
):
    """Of four clips a2 alone is positive. The threshold is .5.

    The model mlp gives a1 the score .9 and b1 .6, though they are negative, and a2 .1: it misses it.
    """
    run_expecting_code(f"{MAKE_SHEETS_OF_ERRORS} --model mlp")

    rows = rows_of(predictions_of_two_models / "out/e/index.csv")
    assert [(row["sheet"], row["clip_id"], row["score"]) for row in rows] == [
        ("false-alarms.png", "a1", "0.9"),
        ("false-alarms.png", "b1", "0.6"),
        ("misses.png", "a2", "0.1"),
    ]


def test_sheets_of_errors_ask_for_one_model_of_several(run, predictions_of_two_models):
    """The table has predictions of mlp and of linear, and no --model is typed."""
    ended = run(MAKE_SHEETS_OF_ERRORS, predictions_of_two_models)

    assert "choose one model with --model: there are mlp, linear" in ended.err


def test_a_row_of_predictions_whose_score_is_no_number_is_named_by_its_line(run, two_films):
    """The table of predictions has a header and, on line 2, a row with the score "x"."""
    row_without_score = "mlp,t,0,zz,0,x,0.5"
    table = f"{HEADER_OF_PREDICTIONS}\n{row_without_score}\n"
    (two_films / "in/p.csv").write_text(table, encoding="utf-8")

    ended = run(MAKE_SHEETS_OF_ERRORS, two_films)

    assert "line 2" in ended.err


GROUP = toy_group("toy", {"pooled": np.zeros((1, 4), np.float32)}, n_frames=1)
FEATURES = ClipFeatures(np.zeros(1), np.zeros(1, np.int64), {"pooled": np.ones(4, np.float32)})


def extract_clips(workdir, name, clips):
    """Write features of some of the clips a and b into the stage of a store, as an extraction does.

    `clips` is "a", "b" or "ab". The stage is the folder NAME.staging.
    """
    stage = Stage.open(
        staging_path(workdir / name), [PlannedClip(clip, "m") for clip in "ab"], [GROUP], {"name": "F"}
    )
    with stage.writer() as writer:
        writer.commit([ClipResult(clip, "ok", groups={"toy": FEATURES}) for clip in clips])
    return stage


def test_a_stage_that_is_written_to_is_not_removed(run, workdir):
    """A stage is the folder of an unfinished extraction. Its writer is still open, as in another process."""
    stage = extract_clips(workdir, "out/open", clips="a")
    with stage.writer() as writer:
        writer.commit([ClipResult("b", "ok", groups={"toy": FEATURES})])

        ended = run("store rm out/open.staging --yes", workdir)

    assert "1 process(es) write to it now" in ended.err


@pytest.fixture
def stage_behind_its_store(workdir):
    """The store out/grown-1.0.0 of the clip a, whose stage got the clip b after it was sealed."""
    extract_clips(workdir, "out/grown", "a")
    seal_stage_of(workdir / "out/grown", licence="MIT", allow_missing=True)
    extract_clips(workdir, "out/grown", "b")


@pytest.mark.usefixtures("stage_behind_its_store")
def test_a_stage_with_more_clips_than_its_store_is_not_removed_as_sealed(run, workdir):
    """The store was sealed with the clip a; then clip b was added to the stage. It would be lost."""
    ended = run("store rm --sealed-stages out --yes", workdir)

    assert "kept out/grown.staging: no sealed store has all of its clips" in ended.err


def test_a_stage_without_a_store_is_not_removed_as_sealed(run, workdir):
    """A stage is the folder of an unfinished extraction; nobody has sealed this one."""
    extract_clips(workdir, "out/open", clips="ab")

    ended = run("store rm --sealed-stages out --yes", workdir)

    assert "kept out/open.staging: it is not sealed" in ended.err


def test_removing_a_store_does_not_follow_links(run_expecting_code, workdir):
    """A link in the store leads to a folder outside, which must stay."""
    extract_clips(workdir, "out/films", clips="ab")
    store = seal_stage_of(workdir / "out/films", licence="MIT")
    (workdir / "outside").mkdir()
    (workdir / "outside" / "precious").touch()
    (store / "link").symlink_to(workdir / "outside")

    run_expecting_code("store rm out/films-1.0.0 --yes")

    assert not store.exists()
    assert (workdir / "outside" / "precious").exists()


def test_a_stage_that_is_named_is_removed(run_expecting_code, workdir):
    """A stage is the folder of an unfinished extraction. Its name is typed, so that it may go unsealed."""
    extract_clips(workdir, "out/open", clips="a")

    run_expecting_code("store rm out/open.staging --yes")

    assert list((workdir / "out").iterdir()) == []


def test_verify_names_the_file_that_changed(run_expecting_code, workdir):
    """The exit code 3 says that something is wrong with the store."""
    (workdir / "in/films-1.0.0/README.md").write_text("better", encoding="utf-8")

    text = run_expecting_code("store verify in/films", code=3)
    document = json.loads(run_expecting_code("store verify in/films --json", code=3))

    assert text.startswith("README.md: changed")
    assert document["problems"][0]["file"] == "README.md"


class RunsACommand:
    """Its pickle makes the file `pwned` when it is loaded."""

    def __reduce__(self):
        return (os.system, ("touch pwned",))


IMPORT_PTH = "store import in/abc.csv in/pth out/lab --from pth --backbone lab --licence MIT"


def labels_in_hdf5(file):
    """Read clip -> (level, concepts) from the attributes of an exported file's datasets."""
    return {clip: (array.attrs["level"], array.attrs["concepts"]) for clip, array in file.items()}


def labels_in_anndata(file):
    """Read clip -> (level, concepts) from the table of an exported file's observations."""
    whole_array = ()
    observations = file["obs"]
    clips = observations["_index"].asstr()[whole_array]
    levels = observations["level"].asstr()[whole_array]
    concepts = observations["concepts"].asstr()[whole_array]
    return {
        clip: (level, concepts_of_clip)
        for clip, level, concepts_of_clip in zip(clips, levels, concepts, strict=True)
    }


@pytest.fixture
def pth_files(workdir):
    """The manifest in/abc.csv of clips a, b and c, and in/pth with a tensor for each; gives in/pth."""
    torch = pytest.importorskip("torch")
    (workdir / "in/pth").mkdir()
    clips = tuple(Clip(clip, "m", f"films/{clip}.avi") for clip in "abc")
    write_manifest(Manifest(clips, workdir / "in"), workdir / "in/abc.csv")
    for clip in "abc":
        torch.save(torch.full((1, 4), 0.5).requires_grad_(), workdir / f"in/pth/{clip}.pth")
    return workdir / "in/pth"


@pytest.mark.parametrize(
    "content",
    [
        lambda _: RunsACommand(),
        lambda torch: {"a": torch.zeros(4), "b": torch.zeros(4)},
        lambda torch: torch.zeros(5),
        lambda torch: torch.full((4,), torch.nan),
        None,
    ],
    ids=["code", "two tensors", "another length", "not finite", "an empty file"],
)
def test_a_pth_that_holds_no_fitting_tensor_is_refused_and_not_run(run, workdir, pth_files, content):
    """A .pth file is a pickle, which can run any code: one of the cases would make the file `pwned`.

    It must hold one finite tensor of the length of the others, which is 4.
    """
    import torch

    if content is None:
        (pth_files / "b.pth").write_bytes(b"")
    else:
        torch.save(content(torch), pth_files / "b.pth")

    ended = run(IMPORT_PTH, workdir)

    assert ended.exit_code == 1
    assert ended.out == ""
    assert "in/pth/b.pth: " in ended.err
    assert not (workdir / "pwned").exists()


@pytest.fixture
def pth_files_with_rates(pth_files):
    """In each file a tensor of bfloat16, which numpy has not, and a rate of frames; clip b is a `.pt`."""
    import torch

    (pth_files / "b.pth").unlink()
    for clip, name in (("a", "a.pth"), ("b", "b.pt"), ("c", "c.pth")):
        feature = torch.arange(4) if clip == "b" else torch.full((1, 4), 0.5)
        torch.save({"feature": feature.to(torch.bfloat16), "fps": 25.0}, pth_files / name)


@pytest.mark.usefixtures("pth_files_with_rates")
def test_what_a_pth_holds_besides_its_tensor_is_left_out_with_a_note(run, workdir):
    """Each file holds a tensor, by the key "feature", and a rate of frames, by the key "fps"."""
    ended = run(IMPORT_PTH, workdir)

    assert ended.exit_code == 0
    assert "left out" in ended.err
    assert "fps" in ended.err


@pytest.mark.long
@pytest.mark.usefixtures("pth_files_with_rates")
def test_the_tensor_of_a_key_is_imported_from_each_pth(run_expecting_code, workdir):
    """Each file holds a tensor by the key "feature": four times 0.5, but of clip b 0 to 3."""
    run_expecting_code(f"{IMPORT_PTH} --key feature")

    group = open_store(workdir / "out/lab")["lab"]
    assert group.read("a", "pooled").tolist() == [0.5, 0.5, 0.5, 0.5]
    assert group.read("b", "pooled").tolist() == [0, 1, 2, 3]
    assert group.provenance["imported"] is True


@pytest.mark.usefixtures("pth_files")
def test_one_file_of_torch_may_hold_the_tensors_of_all_clips(run_expecting_code, workdir):
    """It holds a dictionary: the id of each clip of the manifest, a, b and c -> a tensor of four numbers."""
    import torch

    torch.save({clip: torch.arange(4.0) for clip in "abc"}, workdir / "in/all.pt")

    out = run_expecting_code(
        "store import in/abc.csv in/all.pt out/one --from pth --backbone lab --licence MIT --json"
    )

    assert json.loads(out)["arrays"] == {"pooled": [4]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "labels_in"), [("hdf5", labels_in_hdf5), ("h5ad", labels_in_anndata)], ids=["hdf5", "h5ad"]
)
def test_features_are_exported_with_the_labels_of_their_clips(run_expecting_code, workdir, kind, labels_in):
    """The labels are a clip's level and its concepts, such as "Gun;Blood"; failed clips are not exported."""
    run_expecting_code(f"store export in/films out/films.x --to {kind} --manifest in/films.csv")

    with h5py.File(workdir / "out/films.x") as file:
        exported = labels_in(file)

    failed = {clip.clip_id for clip in open_store(workdir / "in/films").clips if clip.status == "failed"}
    expected = {}
    for clip in read_manifest(workdir / "in/films.csv"):
        if clip.clip_id not in failed:
            expected[clip.clip_id] = (clip.level, ";".join(clip.concepts))
    assert exported == expected


@pytest.mark.long
def test_embeddings_of_cut_texts_are_used_and_counted(run, workdir):
    """One of 240 texts was longer than the network takes: its status is partial.

    Its embedding is of the beginning alone, and the user must know.
    """
    text_ids = [row["text_id"] for row in rows_of(workdir / "in/prompts.csv")]
    vectors = np.random.default_rng(1).normal(size=(len(text_ids), 4)).astype(np.float32)
    seal_arrays(
        workdir / "in/prompted-2",
        dict.fromkeys(text_ids, "none"),  # texts are of no movie
        {"toy": {"pooled": vectors}},
        partial={text_ids[0]: "cut at 77 of 90 tokens"},
        space=open_store(workdir / "in/sobem")["toy"].provenance["space"],  # that of the images
    )
    images_and_texts = "--images in/sobem --texts in/prompted-2 --text-items in/prompts.csv"

    ended = run(f"audit eat {images_and_texts} --out out/eat.csv", workdir)

    assert ended.exit_code == 0
    assert f"1 of 240 embeddings are partial, such as {text_ids[0]}: cut at 77" in ended.err
    document = json.loads((workdir / "out/eat.json").read_text())
    assert document["record"]["n_partial"] == {"images": 0, "texts": 1}


def test_an_audit_prints_the_json_that_it_also_writes_beside_its_table(run_expecting_code, workdir):
    """An audit writes its table out/a.csv and the same as JSON, out/a.json; with `--json` it prints this too.

    A row of the JSON has the columns of the table.
    """
    printed = json.loads(run_expecting_code("audit alpha --ratings in/rated.csv --out out/a.csv --json"))

    kept = json.loads((workdir / "out/a.json").read_text("utf-8"))
    assert printed == kept
    first_row_of_table = rows_of(workdir / "out/a.csv")[0]
    first_row_of_json = printed["rows"][0]
    assert list(first_row_of_json) == list(first_row_of_table)


@pytest.fixture
def no_training(monkeypatch):
    """Fail a command that would go on to train its models."""

    def train(*_, **__):
        pytest.fail("it trained models")

    monkeypatch.setattr("obygaze_models.evaluate", train)


@pytest.fixture
def estimator_of_a_lab(workdir, monkeypatch):
    """The function `make` of the module `planted_forest` in the current folder, which gives a forest."""
    monkeypatch.setattr(sys, "path", [*sys.path])  # the command adds the folder
    (workdir / "planted_forest.py").write_text(
        "from sklearn.ensemble import RandomForestClassifier\n\n\n"
        "def make():\n    return RandomForestClassifier(5)\n",
        encoding="utf-8",
    )


EVALUATION_OF_TWO_MODELS = "evaluate in/films.csv in/films --task calm_violent --model linear --model mlp"


@pytest.mark.long
def test_an_evaluation_keeps_nothing_unless_it_is_asked_to_and_prints_the_same(run_expecting_code, workdir):
    """It prints a row for each of two models and for chance: a name, then numbers such as 0.932."""
    files_before = files_below(workdir)
    printed = run_expecting_code(EVALUATION_OF_TWO_MODELS)
    files_after = files_below(workdir)
    printed_when_kept = run_expecting_code(f"{EVALUATION_OF_TWO_MODELS} --out out/kept")

    names_before_numbers = re.findall(r"([a-z()]+) \d\.\d{3} ", printed)
    assert names_before_numbers == ["linear", "mlp", "(chance)"]
    assert files_after == files_before
    assert printed_when_kept == printed
    assert "AP by movie" in (workdir / "out/kept/report.md").read_text("utf-8")


@pytest.mark.long
@pytest.mark.usefixtures("no_training", "estimator_of_a_lab")
@pytest.mark.parametrize(
    "options",
    [
        "--out in/films.csv/run",
        "--html in/films.csv/page.html",
        "--model planted_forest:make --save planted_forest:make --out out/run",
        "--model linear --save linear --licence a,b --out out/run",
        "--model linear --save linear",
    ],
    ids=[
        "a folder in a file",
        "a page in a file",
        "a model that cannot be saved",
        "no licence",
        "a model without a folder",
    ],
)
def test_an_output_that_cannot_be_kept_is_refused_before_training(run, workdir, options):
    """Training may take hours, and its results could not be written. Here it would fail the test."""
    ended = run(f"evaluate in/films.csv in/films --task calm_violent {options}", workdir)

    assert ended.exit_code in {1, 2}
    assert ended.out == ""
    assert not (workdir / "out/run").exists()
    assert "pip install" not in ended.err  # no package would help


@pytest.mark.long
@pytest.mark.parametrize(
    "commands",
    [
        [
            "manifest inspect in/films.csv",
            "manifest stats in/films.csv",
            "manifest stats in/films.csv --json",
            "manifest project in/films.csv --window 5 --out out/w.csv",
        ],
        ["codebook show in/films.csv", "codebook show in/films.csv --json"],
        [
            "evaluate in/films.csv in/films --task calm_violent --model linear --model pcbm_lr --out out/run",
            "evaluate in/films.csv in/films --task concept:Gun --model cav --out out/gun",
            "evaluate in/films.csv in/films --task levels --model linear --out out/levels",
            "compare out/run out/run --model linear --against pcbm_lr --out out/compared",
        ],
        [
            "predict in/models/pcbm_lr.model in/more",
            "predict in/models/pcbm_lr.model in/more --json",
            "explain in/models/pcbm_lr.model in/more --clip g0-14",
            "model card in/models/pcbm_lr.model --json",
        ],
    ],
    ids=["manifests", "codebooks", "evaluations", "models"],
)
def test_a_corpus_of_another_codebook_shows_no_word_of_obygaze12(run, workdir, commands):
    """The codebook of in/films.csv is of violence: levels such as EN and concepts such as Body are not in it.

    The commands run in turn; neither what they print nor what they write may have such a word.
    """
    for command in commands:
        ended = run(command, workdir)
        assert ended.exit_code == 0, ended.err
        assert not WORDS_OF_OBYGAZE12.search(ended.out + ended.err), command

    for path in files_below(workdir / "out"):
        text = path.read_bytes().decode("utf-8", "replace")
        words = WORDS_OF_OBYGAZE12.findall(text)
        assert not words, (path, words)


@pytest.mark.long
def test_a_projected_manifest_keeps_its_codebook(run_expecting_code, workdir):
    """The labels of clips are projected onto windows of 5 s. The codebook of in/films.csv is of violence."""
    run_expecting_code("manifest project in/films.csv --window 5 --out out/w.csv")

    projected = read_manifest(workdir / "out/w.csv")
    assert projected.codebook == load_codebook(workdir / "in/violence.codebook.toml")


@pytest.mark.long
def test_the_examples_in_a_new_codebook_load_once_their_comment_signs_are_removed(
    run_expecting_code, workdir
):
    """One of the examples is the scale "tension", whose level "high" begins at 0.5."""
    run_expecting_code("codebook init --out out/mine.toml")
    text = (workdir / "out/mine.toml").read_text(encoding="utf-8")
    comment_sign_before_toml = re.compile(r"^# (?=\[\[|name|levels|cuts)", re.MULTILINE)
    with_examples = comment_sign_before_toml.sub("", text)
    (workdir / "out/all.toml").write_text(with_examples, encoding="utf-8")

    tension = load_codebook(workdir / "out/all.toml").scale("tension")
    assert tension.level_of("0.7") == "high"


@pytest.fixture
def example_of_the_page(tmp_path, monkeypatch):
    """The files that the page on codebooks has its reader make; gives the blocks of the page by language."""
    monkeypatch.chdir(tmp_path)
    page = PAGE_ON_CODEBOOKS.read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL))
    Path("violence.toml").write_text(blocks["toml"], encoding="utf-8")
    Path("fights.csv").write_text(blocks["text"], encoding="utf-8")
    Path("films").mkdir()
    for name in ("one.mp4", "two.mp4"):
        (Path("films") / name).touch()
    return blocks


def import_fights_as_the_page_does():
    """Run the command of the page on codebooks, which imports fights.csv; gives its exit code."""
    options = "--videos films --codebook violence.toml --out films.csv --force"
    return obygaze("manifest", "import", "spans", "fights.csv", *options.split())


def is_quoted_by_the_page(err):
    """Whether the page on codebooks quotes what stderr says of fights.csv, in its one line on this file."""
    (line_on_fights,) = (line for line in err.splitlines() if "fights.csv: " in line)
    message = line_on_fights.split("fights.csv: ")[1]
    return message in " ".join(PAGE_ON_CODEBOOKS.read_text(encoding="utf-8").split())


def test_the_example_of_the_page_on_codebooks_runs(example_of_the_page, capsys):
    """The page shows a codebook, a table of spans, a command with its message, and lines of Python."""
    assert import_fights_as_the_page_does() == 0

    assert is_quoted_by_the_page(capsys.readouterr().err)
    exec(example_of_the_page["python"], {})  # noqa: S102 - the page's own code


@pytest.mark.usefixtures("example_of_the_page")
def test_the_page_on_codebooks_quotes_what_the_command_says_of_a_level_with_a_typing_error(capsys):
    """The page on codebooks has a table of spans, fights.csv, and the command that imports it.

    It says what the command prints if somebody writes a level wrongly. Here "violent" is written "vilent" in
    the page's own table: the message, after the file's name, must stand in the page word for word.
    """
    table_file = Path("fights.csv")
    table = table_file.read_text(encoding="utf-8")
    table_file.write_text(table.replace("violent", "vilent"), encoding="utf-8")

    assert import_fights_as_the_page_does() == 1

    assert is_quoted_by_the_page(capsys.readouterr().err)


def test_a_folder_with_a_file_that_is_no_output_is_not_replaced(tmp_path):
    """`new_folder` writes a list of its files; thesis.txt, which a user put there, is not in it."""
    out = tmp_path / "out"
    with new_folder(out) as outputs:
        (outputs / "a.csv").touch()
    (out / "thesis.txt").touch()

    with pytest.raises(OutputError, match="thesis"), new_folder(out, force=True):
        pytest.fail("it let its caller write")

    assert (out / "thesis.txt").exists()


@pytest.mark.parametrize("list_of_files", ["[" * 100_000, "{", "1"], ids=["nested", "torn", "no list"])
def test_a_folder_with_a_damaged_list_of_its_files_is_not_replaced(tmp_path, list_of_files):
    """Without the list of outputs, contents.json, nobody knows which files are a user's own."""
    (tmp_path / "contents.json").write_text(list_of_files)

    with pytest.raises(OutputError, match=r"contents\.json"), new_folder(tmp_path, force=True):
        pytest.fail("it let its caller write")

    assert (tmp_path / "contents.json").read_text() == list_of_files


@pytest.fixture
def paper_with_untrained_weights(run_expecting_code, workdir):
    """All tables and figures of a trained backbone and of one with random weights, in out/all; gives that."""
    movie_of = {clip.clip_id: clip.movie for clip in read_manifest(workdir / "in/marked.csv")}
    vectors = np.random.default_rng(0).normal(size=(len(movie_of), 4)).astype(np.float32)
    failed = {"m1-07": "the file is empty (0 bytes)"}
    seal_arrays(
        workdir / "in/random", movie_of, {"vivit": {"pooled": vectors}}, failed=failed, untrained=True
    )
    run_expecting_code("paper all in/marked.csv in/marked in/random --protocol strict --out out/all")
    return workdir / "out/all"


@pytest.mark.long
@pytest.mark.nightly
def test_the_index_of_a_papers_tables_and_figures_links_all_their_files(paper_with_untrained_weights):
    """The list contents.json names all files of the folder; index.md must link each of them but itself."""
    index = (paper_with_untrained_weights / "index.md").read_text(encoding="utf-8")
    files = json.loads((paper_with_untrained_weights / "contents.json").read_text(encoding="utf-8"))

    not_linked = [name for name in files if f"({name})" not in index]

    assert not_linked == ["index.md"]
    assert {"table2-strict.tex", "figure6-strict.json"} <= set(files)


@pytest.mark.long
@pytest.mark.nightly
def test_each_table_and_figure_of_a_backbone_of_random_weights_says_that_it_is_untrained(
    paper_with_untrained_weights,
):
    """One of two stores, of vivit, has features of random weights: no reader may take them for results.

    So the index and each page say it. Each page also counts the clips: the manifest has 64 labelled ones of
    four movies, of which one has failed in one of the stores, and is left out of all models.
    """
    index = (paper_with_untrained_weights / "index.md").read_text(encoding="utf-8")

    assert "**UNTRAINED: the weights of vivit are random.**" in index
    for stem in ("table2", "table4", "figure3", "figure5", "figure6"):
        page = (paper_with_untrained_weights / f"{stem}-strict.md").read_text(encoding="utf-8")
        assert "vivit (untrained)" in page
        assert "63 clips of 4 movies; 1 without features left out of all models" in page


def test_a_span_behind_the_end_of_its_video_is_named_when_it_is_imported(shared_data, tmp_path, capsys):
    """The video is 13 s long, and the second span begins at 830.5 s."""
    spans = tmp_path / "spans.csv"
    spans.write_text("video,start_s,end_s\nnasa_13013.mp4,1,2\nnasa_13013.mp4,830.5,840\n", encoding="utf-8")
    videos, out = shared_data / "videos", tmp_path / "clips.csv"

    assert obygaze("manifest", "import", "spans", spans, "--videos", videos, "--out", out) == 0

    err = capsys.readouterr().err
    assert "begins at 830.5 s" in err
    assert "begins at 1 s" not in err
