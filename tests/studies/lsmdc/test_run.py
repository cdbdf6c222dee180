"""A whole training: resumed to the same bytes wherever it was killed, refused in one line, read by extract.

Checks 9, 12 and 13 of the specification.
"""

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import SafetensorError, safe_open

from obygaze_features.backbones import load_text_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import StoreError
from obygaze_features.store import open_store
from obygaze_features.store.provenance import embedding_space
from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.lsmdc16 import FILES
from tests.command import obygaze
from tests.files import rows_of
from tests.lazy_import import lazy_import

from .corpus import clip_id

torch = lazy_import("torch")
load_file = lazy_import("safetensors.torch", "load_file")
load = lazy_import("obygaze_features.backbones.xclip_lsmdc", "load")
Listener = lazy_import("tests.studies.lsmdc.listener", "Listener")
make_plan = lazy_import("obygaze_studies.lsmdc", "make_plan")
run = lazy_import("obygaze_studies.lsmdc.run")
state = lazy_import("obygaze_studies.lsmdc.state")
step = lazy_import("obygaze_studies.lsmdc.step")
train = lazy_import("obygaze_studies.lsmdc", "train")
RunFolder = lazy_import("obygaze_studies.lsmdc.state", "RunFolder")


@pytest.fixture(scope="module", autouse=True)
def saved_at_every_step():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("obygaze_studies.lsmdc.run.SAVE_EVERY", 1)
        yield


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def module_tmp(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def uninterrupted_run(settings, module_tmp):
    """Give a run that nothing interrupted, and what came of it; made once."""
    out = module_tmp / "whole"
    of_a_run = settings(out=out)
    if not out.exists():
        train(of_a_run)
    return of_a_run


N_EPOCHS, STEPS_OF_EPOCH = 2, 3


@pytest.mark.long
def test_a_run_writes_settings_log_measures_tokenizer_weights_state_and_a_card(uninterrupted_run):
    names = {"run.json", "left_out.csv", "log.csv", "epochs.json", "test.json", "README.md"}
    names |= {"tokenizer.json", "tokenizer_config.json"}
    names |= {"epoch-0.safetensors", "epoch-1.safetensors", "model.safetensors", "state.safetensors"}
    assert files_of(uninterrupted_run.out).keys() == names

    rows = rows_of(uninterrupted_run.out / "log.csv")
    assert [int(row["step"]) for row in rows] == list(range(N_EPOCHS * STEPS_OF_EPOCH))
    assert tuple(rows[0]) == state.LOG_COLUMNS
    assert float(rows[0]["rate_factor"]) == 0
    card = (uninterrupted_run.out / "README.md").read_text()
    assert "validation, epoch 1 (4 sentences, 4 clips)" in card
    assert "Juno (3)" in card  # a film shared with ObyGaze12


@pytest.mark.long
def test_the_model_is_that_of_the_epoch_with_the_best_validation_recall(uninterrupted_run):
    epochs = json.loads((uninterrupted_run.out / "epochs.json").read_text())
    recalls = [measures["published"]["text_to_video"]["R@1"] for measures in epochs]
    best = N_EPOCHS - 1 - int(np.argmax(recalls[::-1]))  # of equal recalls the last epoch
    model = (uninterrupted_run.out / "model.safetensors").read_bytes()
    assert model == (uninterrupted_run.out / f"epoch-{best}.safetensors").read_bytes()

    network, size = load(find_weights(uninterrupted_run.out))
    written = load_file(uninterrupted_run.out / "model.safetensors")
    loaded = size.from_port(network.state_dict())
    assert {name: value.dtype for name, value in written.items()} == dict.fromkeys(loaded, torch.float32)
    assert all(torch.equal(written[name], value) for name, value in loaded.items())


class Killed(BaseException):
    """In place of SIGKILL: nothing catches it, and files are left as they are at that moment."""


class Countdown:
    """Counts what a training does, and kills it at the n-th.

    Attributes
    ----------
    left : int
        How many things it may still do, the one that kills it included.
    """

    left = 0

    def count(self, leave_half_done=lambda: None):
        """Count one thing; if it is the last one, leave it half done and kill the training."""
        self.left -= 1
        if self.left == 0:
            leave_half_done()
            raise Killed


@pytest.fixture
def countdown(monkeypatch):
    """Count the gradients that a training computes and the files that it writes; the last is half written."""
    countdown = Countdown()
    compute_gradients = step.compute_gradients
    write = RunFolder.write
    write_tensors = RunFolder._write_tensors

    def counted_gradients(*args, **kwargs):
        countdown.count()
        return compute_gradients(*args, **kwargs)

    def counted_write(folder, name, *args):
        half_of_file = folder.folder / f".{name}.partial"
        countdown.count(lambda: half_of_file.write_text("half"))
        return write(folder, name, *args)

    def counted_write_of_tensors(path, *args):
        half_of_file = path.with_name(f".{path.name}.partial")
        countdown.count(lambda: half_of_file.write_bytes(b"half"))
        return write_tensors(path, *args)

    monkeypatch.setattr(step, "compute_gradients", counted_gradients)
    monkeypatch.setattr(RunFolder, "write", counted_write)
    monkeypatch.setattr(RunFolder, "_write_tensors", staticmethod(counted_write_of_tensors))
    return countdown


@pytest.mark.long  # trains, is stopped, trains again
def test_a_training_killed_repeatedly_and_resumed_gives_the_same_bytes(
    uninterrupted_run, settings, countdown
):
    """Killed at every place of a step at some time, it ends with the files of a run that was not killed."""
    resumed = settings(resume=True)
    more_times_than_needed = 30
    for _ in range(more_times_than_needed):
        countdown.left = 9
        try:
            outcome = train(resumed)
            break
        except Killed:
            continue
    assert outcome.complete
    files = {name: data for name, data in files_of(resumed.out).items() if not name.endswith(".partial")}
    expected = files_of(uninterrupted_run.out)

    assert files.keys() == expected.keys()
    assert [name for name in expected if files[name] != expected[name]] == []


@pytest.mark.long  # trains, is stopped, trains again
def test_a_training_that_is_stopped_on_request_and_resumed_ends_with_the_same_bytes(
    uninterrupted_run, settings
):
    resumed = settings(resume=True)
    # It asks after each of the three steps of the first epoch, after this epoch, and after step 4.
    answers = iter([False, False, False, False, True])
    outcome = train(resumed, stopped=lambda: next(answers, True))
    assert (outcome.steps, outcome.complete, len(outcome.epochs)) == (4, False, 1)
    listener = Listener()

    assert train(resumed, watch=listener).complete
    assert any("step 4 of 6" in text for text in listener.said)
    assert files_of(resumed.out) == files_of(uninterrupted_run.out)


@pytest.mark.long
def test_a_complete_run_is_resumed_without_a_change_and_not_overwritten_or_resumed_otherwise(
    uninterrupted_run, settings
):
    before = files_of(uninterrupted_run.out)
    assert train(settings(out=uninterrupted_run.out, resume=True)).complete
    with pytest.raises(TrainError, match="--resume"):
        train(settings(out=uninterrupted_run.out))
    with pytest.raises(TrainError, match="lr"):
        train(settings(out=uninterrupted_run.out, lr=1e-4, resume=True))
    assert files_of(uninterrupted_run.out) == before


def test_a_training_that_is_stopped_while_videos_are_decoded_makes_no_folder(settings, tmp_path):
    of_a_run = settings(cache=tmp_path / "cache")
    outcome = train(of_a_run, stopped=lambda: True)
    assert (outcome.steps, outcome.total, outcome.complete) == (0, 0, False)
    assert not of_a_run.out.exists()


@pytest.mark.long
def test_a_run_that_another_process_trains_is_not_resumed(uninterrupted_run, settings):
    """What a killed training left half written is removed first."""
    half_written = uninterrupted_run.out / ".tmpOrMfiG"
    half_written.touch()
    with RunFolder(uninterrupted_run.out).locked_for_training(), pytest.raises(StoreError, match="whole"):
        train(settings(out=uninterrupted_run.out, resume=True))
    assert not half_written.exists()


@pytest.mark.long
@pytest.mark.usefixtures(
    "uninterrupted_run"
)  # which has filled the cache: decoding asks whether to stop, too
def test_a_damaged_state_is_refused_by_its_name(settings):
    resumed = settings(epochs=1, resume=True)
    answers = iter([False, True])  # stop after the second step
    train(resumed, stopped=lambda: next(answers, True))
    state = resumed.out / "state.safetensors"
    state.write_bytes(state.read_bytes()[:1000])

    with pytest.raises(TrainError, match=r"state\.safetensors"):
        train(resumed)


def test_a_full_disk_is_an_error_in_words(tmp_path, monkeypatch):
    def full(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(state, "save_file", full)
    with pytest.raises(TrainError, match=r"epoch-0\.safetensors.*No space left"):
        RunFolder(tmp_path).write_model("epoch-0.safetensors", {}, {})
    assert not any(tmp_path.iterdir())


@pytest.mark.long
def test_a_loss_that_is_not_finite_stops_before_it_spoils_a_weight(settings, monkeypatch):
    real = step.compute_gradients
    calls = []

    def broken(*args, **kwargs):
        calls.append(1)
        return float("nan") if len(calls) == 3 else real(*args, **kwargs)

    monkeypatch.setattr(step, "compute_gradients", broken)
    of_a_run = settings()
    with pytest.raises(TrainError, match=r"step 3 \(epoch 0, batch 2\)"):
        train(of_a_run)
    with safe_open(of_a_run.out / "state.safetensors", framework="pt") as file:
        assert json.loads(file.metadata()["position"])["step"] == 2
        assert all(torch.isfinite(file.get_tensor(name)).all() for name in file.keys())  # noqa: SIM118 - not a mapping


def test_titles_of_excluded_films_of_which_there_is_no_clip_are_announced():
    """A misspelt title would exclude nothing without notice."""
    plan = SimpleNamespace(captions={}, shared_movies={}, titles=("Juno", "Up"), excluded={"test": {"Up": 2}})
    listener = Listener()
    run._announce(listener, plan, [])
    assert listener.said == ["--exclude-movies: no clip is of Juno"]


@pytest.mark.long
def test_too_large_a_chunk_for_the_memory_says_what_to_do(settings, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(step, "compute_gradients", full)
    with pytest.raises(TrainError, match=r"step 1.*--chunk"):
        train(settings(chunk=4))


@pytest.fixture
def corpus_to_spoil(corpus, tmp_path):
    """A copy of the corpus, of links to its videos, from which a test may remove some."""
    folder = tmp_path / "spoilt"
    for path in (corpus / "videos").rglob("*.avi"):
        (folder / "videos").mkdir(parents=True, exist_ok=True)
        os.link(path, folder / "videos" / path.name)
    (folder / "annotations").mkdir()
    for name in FILES.values():
        (folder / "annotations" / name).write_bytes((corpus / "annotations" / name).read_bytes())
    return folder


def folders_of(corpus):
    """Return settings of one epoch on a corpus, with an empty cache."""
    folders = {"annotations": corpus / "annotations", "videos": corpus / "videos", "cache": corpus / "cache"}
    return folders | {"epochs": 1}


@pytest.mark.long
def test_clips_without_a_readable_video_are_left_out_and_listed(settings, corpus_to_spoil):
    """Of 12 training clips, the video of number 3 is missing and that of number 5 is damaged.

    Their captions are on lines 4 and 6.
    """
    missing, unreadable = clip_id("training", 3), clip_id("training", 5)
    (corpus_to_spoil / "videos" / f"{missing}.avi").unlink()
    link = corpus_to_spoil / "videos" / f"{unreadable}.avi"
    link.unlink()  # so that writing does not change the corpus
    link.write_bytes(b"RIFF and nothing else")
    listener = Listener()
    of_a_run = settings(**folders_of(corpus_to_spoil))

    outcome = train(of_a_run, watch=listener)

    assert outcome.left_out == {"training": 2, "validation": 0, "test": 0}
    rows = rows_of(of_a_run.out / "left_out.csv")
    assert [(row["line"], row["clip_id"]) for row in rows] == [("4", missing), ("6", unreadable)]
    assert all(row["reason"] for row in rows)
    assert any(text.startswith("training: 2 of 12") and "line 4" in text for text in listener.said)


@pytest.mark.long
def test_a_corpus_without_a_readable_validation_clip_is_refused(settings, corpus_to_spoil):
    for video_of_validation_clip in (corpus_to_spoil / "videos").glob("*_00.01.*"):
        video_of_validation_clip.unlink()
    with pytest.raises(TrainError, match="validation"):
        train(settings(**folders_of(corpus_to_spoil)))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"batch": 300}, "--batch 300"),
        ({"batch": None}, "--batch"),
        ({"gather_share": 0.0}, "--gather-share 0"),
        ({"arithmetic": "float64"}, "'float64'"),
    ],
    ids=["more than there are clips", "no batch", "no share", "an unknown arithmetic"],
)
def test_a_setting_that_cannot_be_is_refused_before_anything_is_decoded(settings, setting, message):
    with pytest.raises(TrainError, match=message):
        make_plan(settings(**setting))


@pytest.mark.long
def test_a_store_says_how_the_run_that_extracted_it_was_trained(uninterrupted_run, corpus, tmp_path):
    """Two commands extract the features of one film with the weights of a run."""
    (tmp_path / "films").mkdir()
    (video,) = (corpus / "videos").rglob(f"{clip_id('test', 3)}.avi")
    os.link(video, tmp_path / "films" / "film.avi")
    manifest, store = tmp_path / "films.csv", tmp_path / "store"
    options = [
        "--backbone",
        "xclip-lsmdc",
        "--weights",
        uninterrupted_run.out,
        "--workers",
        1,
        "--device",
        "cpu",
    ]

    assert obygaze("manifest", "import", "folder", tmp_path / "films", "--out", manifest) == 0
    assert obygaze("extract", manifest, store, *options) == 0

    provenance = open_store(store)["xclip-lsmdc"].provenance
    training = provenance["training"]
    assert provenance["weights_sha256"] == find_weights(uninterrupted_run.out).sha256
    assert training["clip"]["weights_sha256"] == find_weights(uninterrupted_run.clip).sha256
    assert (training["arithmetic"], training["gather_share"]) == ("float32", 0.25)
    assert len(training["data"]["training"]["frames_sha256"]) == 64  # hexadecimal digits
    assert training["movies"]["shared_with_obygaze12"] == {"Juno": 3, "Pulp Fiction": 3}
    # Texts that the run embeds are in the space of its clips.
    texts = load_text_backbone("xclip-lsmdc-text", weights=str(uninterrupted_run.out))
    assert texts.provenance["training"] == training
    assert texts.provenance["space"] == embedding_space(provenance)
