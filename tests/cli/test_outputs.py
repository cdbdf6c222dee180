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
    seal,
    staging_path,
)
from obygaze_features.store.testing import seal_arrays, toy_group
from obygaze_features.video import read_frames, uniform
from obygaze_features.video.sheet import LINE_HEIGHT, thumbnail
from obygaze_models.report import CONTENTS, new_folder
from tests.cli.table import EAT
from tests.command import obygaze
from tests.files import rows_of
from tests.private import files_below

PAGE = Path(__file__).parents[2] / "docs" / "codebooks.md"
OBYGAZE_WORDS = re.compile(
    r"\b(EN|HN|NS|S|Sure|Body|Look|Speech|ObyGaze12|obygaze12|printed|paper|released|hn_s|objectif\w*)\b"
)


@pytest.fixture
def ok(run, place):
    """Run a command that must succeed; gives what it printed."""

    def ok(command, *, code=0):
        found, out, err = run(command, place)
        assert found == code, err
        return out

    return ok


@pytest.fixture
def greys(place):
    """A film of 20 grey pictures, each 10 levels lighter than the one before, ten a second."""
    pictures = (np.full((32, 64, 3), 10 * number, np.uint8) for number in range(20))
    write_video(place / "in/greys.mp4", pictures, 10)


@pytest.mark.long
@pytest.mark.usefixtures("greys")
def test_saved_frames_are_of_full_size_with_their_numbers_and_times(ok, place):
    ok("frames in/greys.mp4 --indices 3,12 --npz out/a.npz")
    with np.load(place / "out/a.npz", allow_pickle=False) as saved:
        assert (saved["frames"].shape, saved["frames"].dtype) == ((2, 32, 64, 3), np.uint8)
        assert np.abs(saved["frames"].mean(axis=(1, 2, 3)) - [30, 120]).max() < 3
        assert (saved["index"].tolist(), saved["time_s"].tolist()) == ([3, 12], [0.3, 1.2])


@pytest.mark.long
@pytest.mark.usefixtures("greys")
def test_a_sheet_of_frames_has_thumbnails_with_captions_in_rows_of_eight(ok, place):
    ok("frames in/greys.mp4 --n 10 --sheet out/sheet.png")
    sheet = np.asarray(Image.open(place / "out/sheet.png"))
    cells = sheet.reshape(2, 32 + LINE_HEIGHT, 8, -1, 3)  # two rows of eight pictures with their captions
    lightness = cells[:, :32, :, :64].mean(axis=(1, 3, 4)).ravel()
    empty_cells = [0] * 6
    assert np.abs(lightness - [*range(0, 200, 20), *empty_cells]).max() < 3
    has_caption = cells[:, 32:].max(axis=(1, 3, 4)).ravel() > 200
    assert has_caption.tolist() == [True] * 10 + [False] * 6
    assert not cells[1, :, 2:].any()


@pytest.mark.parametrize(
    "command",
    [
        "manifest project in/segments.csv --window 9 --out out/a.csv",
        "frames in/video.mp4 --npz out/a.npz",
    ],
)
def test_a_failed_write_leaves_nothing_behind(run, place, monkeypatch, command):
    def write_to_a_full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("obygaze_features.io.write_all", write_to_a_full_disk)
    monkeypatch.setattr(np, "savez", write_to_a_full_disk)
    code, _, err = run(command, place)
    assert code == 1
    assert "No space left on device" in err
    assert "partial" not in err
    assert list((place / "out").iterdir()) == []


@pytest.fixture
def two_films(shared_data, place):
    """Clips of two real films: Body in both, Look in one whose video is broken, Posture in none at hand."""
    videos = shared_data / "videos"
    nasa, arms = str(videos / "nasa_13013.mp4"), str(videos / "arm_wrestling.mp4")
    clips = (
        Clip("a1", "nasa", nasa, 0, 4, "S", ("Body",)),
        Clip("a2", "nasa", nasa, 4, 8, "HN", ("Body",)),
        Clip("b1", "arms", arms, 0, 3, "S", ("Body", "Look")),
        Clip("b2", "arms", "empty.mp4", None, None, "S", ("Look",)),
        Clip("c1", "gone", "gone.mp4", None, None, "S", ("Look", "Posture")),
    )
    write_manifest(Manifest(clips, place / "in"), place / "in/two.csv")
    return place


SHEETS = "manifest sheets in/two.csv --concept Body --concept Look --concept Posture --out out/s"


def test_sheets_of_concepts_count_the_clips_that_are_marked_and_drawn(ok, two_films):
    body, look, posture = json.loads(ok(f"{SHEETS} --json"))
    assert [body[key] for key in ("n_clips", "n_with_video", "n_drawn", "file")] == [3, 3, 3, "body.png"]
    assert [look[key] for key in ("n_clips", "n_with_video", "n_drawn")] == [3, 2, 1]
    assert (posture["n_with_video"], posture["file"]) == (0, "")
    assert two_films.is_dir()


def test_clips_of_a_sheet_are_of_films_in_turn(ok, two_films):
    ok(SHEETS)
    rows = rows_of(two_films / "out/s/index.csv")
    assert [row["clip_id"] for row in rows if row["sheet"] == "body.png"] == ["a1", "b1", "a2"]


def test_a_sheet_shows_the_middle_frame_of_a_clip(ok, two_films, shared_data):
    ok(SHEETS)
    video = shared_data / "videos" / "arm_wrestling.mp4"
    middle = thumbnail(read_frames(video, uniform(2), start_s=0, end_s=3).images[1])
    height, width = middle.shape[:2]
    sheet = np.asarray(Image.open(two_films / "out/s/look.png"))
    assert (sheet[:height, :width] == middle).all()
    last_row = rows_of(two_films / "out/s/index.csv")[-1]
    assert float(last_row["time_s"]) == pytest.approx(1.5, abs=0.1)


def test_sheets_are_replaced_with_force_alone_by_the_same_bytes(ok, run, two_films):
    ok(SHEETS)
    made = {path.name: path.read_bytes() for path in (two_films / "out/s").iterdir()}
    assert run(SHEETS, two_films)[0] == 1
    ok(f"{SHEETS} --force")
    assert {path.name: path.read_bytes() for path in (two_films / "out/s").iterdir()} == made


def test_replacing_sheets_leaves_files_of_others(ok, two_films):
    ok(SHEETS)
    (two_films / "out/s/mine.txt").touch()
    ok(f"{SHEETS} --force")
    assert (two_films / "out/s/mine.txt").exists()


HEADER_OF_PREDICTIONS = "model,task,fold,clip_id,label,score,threshold"
ERRORS = "manifest sheets in/two.csv --predictions in/p.csv --out out/e"


@pytest.fixture
def predictions(two_films):
    """Predictions of two models for four clips, of which a2 alone is positive; the threshold is 0.5."""
    labels = {"a1": 0, "a2": 1, "b1": 0, "b2": 0}
    scores_of_mlp = {"a1": 0.9, "a2": 0.1, "b1": 0.6, "b2": 0.2}
    rows = [f"mlp,hn_s>hn_s,0,{clip},{labels[clip]},{score},0.5" for clip, score in scores_of_mlp.items()]
    rows += [f"linear,hn_s>hn_s,0,{clip},{label},0,0.5" for clip, label in labels.items()]
    (two_films / "in/p.csv").write_text("\n".join([HEADER_OF_PREDICTIONS, *rows, ""]), encoding="utf-8")
    return two_films


def test_a_models_errors_are_two_sheets_the_clearest_error_first(ok, predictions):
    ok(f"{ERRORS} --model mlp")
    rows = rows_of(predictions / "out/e/index.csv")
    assert [(row["sheet"], row["clip_id"], row["score"]) for row in rows] == [
        ("false-alarms.png", "a1", "0.9"),
        ("false-alarms.png", "b1", "0.6"),
        ("misses.png", "a2", "0.1"),
    ]


def test_sheets_of_errors_ask_for_one_model_of_several(run, predictions):
    assert "choose one model with --model: there are mlp, linear" in run(ERRORS, predictions)[2]


def test_a_torn_row_of_predictions_is_named_by_its_line(run, two_films):
    (two_films / "in/p.csv").write_text(f"{HEADER_OF_PREDICTIONS}\nmlp,t,0,zz,0,x,0.5\n", encoding="utf-8")
    assert "line 2" in run(ERRORS, two_films)[2]


GROUP = toy_group("toy", {"pooled": np.zeros((1, 4), np.float32)}, 1)
GOOD = ClipFeatures(np.zeros(1), np.zeros(1, np.int64), {"pooled": np.ones(4, np.float32)})


def stage(place, name, done):
    made = Stage.open(staging_path(place / name), [PlannedClip(c, "m") for c in "ab"], [GROUP], {"name": "F"})
    with made.writer() as writer:
        writer.commit([ClipResult(clip, "ok", groups={"toy": GOOD}) for clip in made.missing()[:done]])
    return made


def test_a_stage_that_is_written_to_is_not_removed(run, place):
    with stage(place, "out/open", 1).writer() as writer:
        writer.commit([ClipResult("b", "ok", groups={"toy": GOOD})])
        assert "1 process(es) write to it now" in run("store rm out/open.staging --yes", place)[2]


@pytest.fixture
def grown_stage(place):
    """A stage that got clips after its store was sealed."""
    stage(place, "out/grown", 1)
    seal(None, place / "out/grown", licence="MIT", allow_missing=True)
    stage(place, "out/grown", 1)


@pytest.mark.usefixtures("grown_stage")
def test_only_stages_whose_clips_are_all_sealed_are_removed(run, place):
    with stage(place, "out/open", 1).writer() as writer:
        writer.commit([ClipResult("b", "ok", groups={"toy": GOOD})])
    _, _, err = run("store rm --sealed-stages out --yes", place)
    assert "kept out/grown.staging: no sealed store has all of its clips" in err
    assert "kept out/open.staging: it is not sealed" in err


@pytest.mark.usefixtures("grown_stage")
def test_removing_a_store_does_not_follow_links(ok, place):
    (place / "outside").mkdir()
    (place / "outside" / "precious").touch()
    (place / "out/grown-1.0.0/link").symlink_to(place / "outside")
    ok("store rm out/grown-1.0.0 --yes")
    assert (place / "outside" / "precious").exists()
    assert [path.name for path in (place / "out").iterdir()] == ["grown.staging"]


def test_a_stage_that_is_named_is_removed(ok, place):
    stage(place, "out/open", 1)
    ok("store rm out/open.staging --yes")
    assert list((place / "out").iterdir()) == []


def test_verify_names_the_file_that_changed(ok, place):
    (place / "in/films-1.0.0/README.md").write_text("better", encoding="utf-8")
    assert ok("store verify in/films", code=3).startswith("README.md: changed")
    assert json.loads(ok("store verify in/films --json", code=3))["problems"][0]["file"] == "README.md"


class Evil:
    def __reduce__(self):
        return (os.system, ("touch pwned",))


IMPORT_PTH = "store import in/abc.csv in/pth out/lab --from pth --backbone b --licence MIT"


@pytest.fixture
def tensors(place):
    """A manifest of clips a, b and c, and a folder with a file of torch for each; gives the folder."""
    torch = pytest.importorskip("torch")
    (place / "in/pth").mkdir()
    clips = tuple(Clip(clip, "m", f"films/{clip}.avi") for clip in "abc")
    write_manifest(Manifest(clips, place / "in"), place / "in/abc.csv")
    for clip in "abc":
        torch.save(torch.full((1, 4), 0.5).requires_grad_(), place / f"in/pth/{clip}.pth")
    return place / "in/pth"


@pytest.mark.parametrize(
    "content",
    [
        lambda _: Evil(),
        lambda torch: {"a": torch.zeros(4), "b": torch.zeros(4)},
        lambda torch: torch.zeros(5),
        lambda torch: torch.full((4,), torch.nan),
    ],
    ids=["code", "two tensors", "another length", "not finite"],
)
def test_a_pth_that_holds_no_fitting_tensor_is_refused_and_not_run(run, place, tensors, content):
    import torch

    torch.save(content(torch), tensors / "b.pth")
    code, out, err = run(IMPORT_PTH, place)
    assert (code, out) == (1, "")
    assert "in/pth/b.pth: " in err
    assert not (place / "pwned").exists()


def test_an_empty_pth_is_refused(run, place, tensors):
    (tensors / "b.pth").write_bytes(b"")
    code, out, err = run(IMPORT_PTH, place)
    assert (code, out) == (1, "")
    assert "in/pth/b.pth: " in err


@pytest.fixture
def tensors_with_rates(tensors):
    """In each file a tensor of bfloat16, which numpy has not, and a rate of frames; clip b is a `.pt`."""
    import torch

    (tensors / "b.pth").unlink()
    for clip, name in (("a", "a.pth"), ("b", "b.pt"), ("c", "c.pth")):
        feature = torch.arange(4) if clip == "b" else torch.full((1, 4), 0.5)
        torch.save({"feature": feature.to(torch.bfloat16), "fps": 25.0}, tensors / name)


@pytest.mark.usefixtures("tensors_with_rates")
def test_what_a_pth_holds_besides_its_tensor_is_left_out_with_a_note(run, place):
    code, _, err = run(IMPORT_PTH, place)
    assert code == 0
    assert "left out" in err
    assert "fps" in err


@pytest.mark.usefixtures("tensors_with_rates")
def test_the_tensor_of_a_key_is_imported_from_each_pth(ok, place):
    ok(f"{IMPORT_PTH} --key feature")
    group = open_store(place / "out/lab")["b"]
    assert [group.read(clip, "pooled").tolist() for clip in "ab"] == [[0.5] * 4, [0, 1, 2, 3]]
    assert group.provenance["imported"] is True


@pytest.mark.usefixtures("tensors")
def test_one_file_of_torch_may_hold_the_tensors_of_all_clips(ok, place):
    import torch

    torch.save({clip: torch.arange(4.0) for clip in "abc"}, place / "in/all.pt")
    out = ok("store import in/abc.csv in/all.pt out/one --from pth --backbone b --licence MIT --json")
    assert json.loads(out)["arrays"] == {"pooled": [4]}


@pytest.mark.parametrize("kind", ["hdf5", "h5ad"])
def test_labels_go_out_with_the_features(ok, place, kind):
    ok(f"store export in/films out/films.x --to {kind} --manifest in/films.csv")
    films = read_manifest(place / "in/films.csv")
    labels = {clip.clip_id: (clip.level, ";".join(clip.concepts)) for clip in films}
    with h5py.File(place / "out/films.x") as file:
        if kind == "hdf5":
            found = {clip: (rows.attrs["level"], rows.attrs["concepts"]) for clip, rows in file.items()}
        else:
            columns = [file["obs"][name].asstr()[()] for name in ("_index", "level", "concepts")]
            found = {clip: (level, concepts) for clip, level, concepts in zip(*columns, strict=True)}
    assert len(found) == 179
    assert found.items() <= labels.items()


def test_embeddings_of_a_part_alone_are_used_and_counted(run, place):
    ids = [row["text_id"] for row in rows_of(place / "in/prompts.csv")]
    rows = np.random.default_rng(1).normal(size=(len(ids), 4)).astype(np.float32)
    partial = {ids[0]: "cut at 77 of 90 tokens"}
    space = open_store(place / "in/sobem")["toy"].provenance["space"]
    no_movie = dict.fromkeys(ids, "none")
    seal_arrays(place / "in/prompted-2", no_movie, {"toy": {"pooled": rows}}, partial=partial, space=space)
    code, _, err = run(f"audit eat {EAT.replace('prompted', 'prompted-2')} --out out/eat.csv", place)
    assert (code, f"1 of 240 embeddings are partial, such as {ids[0]}: cut at 77" in err) == (0, True)
    assert json.loads((place / "out/eat.json").read_text())["record"]["n_partial"] == {
        "images": 0,
        "texts": 1,
    }


def test_the_json_of_an_audit_is_printed_as_it_is_kept_with_the_rows_of_its_table(ok, place):
    document = json.loads(ok("audit alpha --ratings in/rated.csv --out out/a.csv --json"))
    assert document == json.loads((place / "out/a.json").read_text("utf-8"))
    table = rows_of(place / "out/a.csv")
    assert [list(row) for row in table] == [list(row) for row in document["rows"]]


EVALUATION = "evaluate in/films.csv in/films --task calm_violent --model linear --model mlp"


def test_an_evaluation_prints_a_row_for_each_model_and_for_chance(ok):
    assert re.findall(r"([a-z()]+) \d\.\d{3} ", ok(EVALUATION)) == ["linear", "mlp", "(chance)"]


def test_an_evaluation_keeps_nothing_unless_it_is_asked_to(ok, place):
    before = files_below(place)
    ok(EVALUATION)
    assert files_below(place) == before


def test_an_evaluation_that_is_kept_prints_the_same_and_has_a_report(ok, place):
    assert ok(f"{EVALUATION} --out out/again") == ok(EVALUATION)
    assert "AP by movie" in (place / "out/again/report.md").read_text("utf-8")


@pytest.mark.parametrize(
    "options",
    [
        "--out in/films.csv/run",
        "--html in/films.csv/page.html",
        "--model planted_forest:make --save planted_forest:make --out out/run",
        "--model linear --save linear --licence a,b --out out/run",
        "--model linear --save linear",
    ],
)
def test_an_output_that_cannot_be_kept_is_refused_before_training(run, place, monkeypatch, options):
    monkeypatch.setattr("obygaze_models.evaluate", None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (place / "planted_forest.py").write_text(
        "from sklearn.ensemble import RandomForestClassifier\n\n\n"
        "def make():\n    return RandomForestClassifier(5)\n",
        encoding="utf-8",
    )
    code, out, err = run(f"evaluate in/films.csv in/films --task calm_violent {options}", place)
    assert code in {1, 2}
    assert out == ""
    assert not (place / "out/run").exists()
    assert "pip install" not in err


@pytest.mark.long
def test_a_corpus_of_another_codebook_shows_no_word_of_obygaze12(run, place):
    model = "in/models/pcbm_lr.model"
    for command in (
        "manifest inspect in/films.csv",
        "manifest stats in/films.csv",
        "manifest stats in/films.csv --json",
        "manifest project in/films.csv --window 5 --out out/w.csv",
        "codebook show in/films.csv",
        "codebook show in/films.csv --json",
        "evaluate in/films.csv in/films --task calm_violent --model linear --model pcbm_lr --out out/run",
        "evaluate in/films.csv in/films --task concept:Gun --model cav --out out/gun",
        "evaluate in/films.csv in/films --task levels --model linear --out out/levels",
        "compare out/run out/run --model linear --against pcbm_lr --out out/compared",
        f"predict {model} in/more",
        f"predict {model} in/more --json",
        f"explain {model} in/more --clip g0-14",
        f"model card {model} --json",
    ):
        code, out, err = run(command, place)
        assert code == 0, err
        assert not OBYGAZE_WORDS.search(out + err), command
    for path in files_below(place / "out"):
        found = OBYGAZE_WORDS.findall(path.read_bytes().decode("utf-8", "replace"))
        assert not found, (path, found)
    assert read_manifest(place / "out/w.csv").codebook == load_codebook(place / "in/violence.codebook.toml")


def test_the_starter_of_a_codebook_holds_examples_that_load(ok, place):
    ok("codebook init --out out/mine.toml")
    text = (place / "out/mine.toml").read_text(encoding="utf-8")
    (place / "out/all.toml").write_text(
        re.sub(r"(?m)^# (?=\[\[|name|levels|cuts)", "", text), encoding="utf-8"
    )
    assert load_codebook(place / "out/all.toml").scale("tension").level_of("0.7") == "high"


def test_the_example_of_the_page_on_codebooks_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    Path("violence.toml").write_text(blocks["toml"], encoding="utf-8")
    Path("films").mkdir()
    for name in ("one.mp4", "two.mp4"):
        (Path("films") / name).touch()
    words = "manifest import spans fights.csv --videos films --codebook violence.toml --out films.csv --force"
    for spans, code in ((blocks["text"], 0), (blocks["text"].replace("violent", "vilent"), 1)):
        Path("fights.csv").write_text(spans, encoding="utf-8")
        assert obygaze(*words.split()) == code
    exec(blocks["python"], {})  # noqa: S102 - the page's own code
    quoted = [line.partition("fights.csv: ")[2] for line in capsys.readouterr().err.splitlines()]
    page = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    assert sum(bool(text) for text in quoted) == 2
    assert all(text in page for text in quoted)


def test_nothing_but_an_output_is_replaced(tmp_path):
    out = tmp_path / "out"
    with new_folder(out) as made:
        (made / "a.csv").touch()
    (out / "thesis.txt").touch()
    with pytest.raises(OutputError, match="thesis"), new_folder(out, force=True):
        pass
    assert (out / "thesis.txt").exists()


@pytest.mark.parametrize("contents", ["[" * 100_000, "{", "1"], ids=["nested", "torn", "no list"])
def test_a_folder_with_a_torn_list_of_files_is_not_replaced(tmp_path, contents):
    (tmp_path / CONTENTS).write_text(contents)
    with pytest.raises(OutputError, match=CONTENTS), new_folder(tmp_path, force=True):
        pass
    assert (tmp_path / CONTENTS).read_text() == contents


@pytest.mark.long
@pytest.mark.nightly
def test_one_index_links_all_that_is_there_and_untrained_weights_are_said(ok, place):
    movie_of = {clip.clip_id: clip.movie for clip in read_manifest(place / "in/marked.csv")}
    rows = np.random.default_rng(0).normal(size=(len(movie_of), 4)).astype(np.float32)
    failed = {"m1-07": "the file is empty (0 bytes)"}
    seal_arrays(place / "in/random", movie_of, {"vivit": {"pooled": rows}}, failed=failed, untrained=True)
    ok("paper all in/marked.csv in/marked in/random --protocol strict --out out/all")
    index = (place / "out/all/index.md").read_text(encoding="utf-8")
    made = json.loads((place / "out/all" / CONTENTS).read_text(encoding="utf-8"))
    assert {"table2-strict.tex", "figure6-strict.json"} <= {*made}
    assert not [name for name in made if name != "index.md" and f"({name})" not in index]
    assert "**UNTRAINED: the weights of vivit are random.**" in index
    for stem in ("table2", "table4", "figure3", "figure5", "figure6"):
        text = (place / "out/all" / f"{stem}-strict.md").read_text(encoding="utf-8")
        assert "vivit (untrained)" in text
        assert "63 clips of 4 movies; 1 without features left out of all models" in text


def test_a_span_behind_the_end_of_its_video_is_named_when_it_is_imported(shared_data, tmp_path, capsys):
    spans = tmp_path / "spans.csv"
    spans.write_text("video,start_s,end_s\nnasa_13013.mp4,1,2\nnasa_13013.mp4,830.5,840\n", encoding="utf-8")
    out = tmp_path / "clips.csv"
    words = ("manifest", "import", "spans", spans, "--videos", shared_data / "videos")
    assert obygaze(*words, "--out", out) == 0
    output = capsys.readouterr().err
    assert "begins at 830.5 s" in output
    assert "begins at 1 s" not in output
