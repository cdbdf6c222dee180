"""A whole training: resumed to the same bytes wherever it was killed, refused in one line, read by extract.

Checks 9, 12 and 13 of the specification.
"""

import json
import os
from itertools import count
from types import SimpleNamespace

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
    """Let trainings write their state after every step; usually they do so after many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("obygaze_studies.lsmdc.run.SAVE_EVERY", 1)
        yield


def files_of(folder):
    """Return the bytes of the files in a folder by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def module_tmp(tmp_path_factory):
    """A folder that all tests of this file share."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def uninterrupted_run(settings, module_tmp):
    """The settings of a training that ran to its end without a stop; `out` is its folder. It ran once."""
    out = module_tmp / "whole"
    settings_of_run = settings(out=out)
    if not out.exists():
        train(settings_of_run)
    return settings_of_run


@pytest.mark.long
def test_a_run_writes_settings_log_measures_tokenizer_weights_state_and_a_card(uninterrupted_run):
    """The run was trained for two epochs, 0 and 1, on 12 clips, of which each step took 4.

    So it has 2 x 3 steps, the first of which has the learning rate 0. The validation has 4 clips.
    """
    folder = uninterrupted_run.out
    assert files_of(folder).keys() == {
        "README.md",
        "epoch-0.safetensors",
        "epoch-1.safetensors",
        "epochs.json",
        "left_out.csv",
        "log.csv",
        "model.safetensors",
        "run.json",
        "state.safetensors",
        "test.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }

    rows_of_log = rows_of(folder / "log.csv")
    assert [row["step"] for row in rows_of_log] == ["0", "1", "2", "3", "4", "5"]
    assert tuple(rows_of_log[0]) == state.LOG_COLUMNS
    assert float(rows_of_log[0]["rate_factor"]) == 0

    card = (folder / "README.md").read_text()
    assert "validation, epoch 1 (4 sentences, 4 clips)" in card
    film_shared_with_obygaze12 = "Juno (3)"
    assert film_shared_with_obygaze12 in card


def last_of_the_largest(values):
    """Return the position of the largest value, of equal ones the last."""
    return max(range(len(values)), key=lambda position: (values[position], position))


@pytest.mark.long
def test_the_model_is_that_of_the_epoch_with_the_best_validation_recall(uninterrupted_run):
    """A run of two epochs keeps the weights of each, and has measured each on the validation clips.

    The recall is the share of sentences whose clip is found in the first place. Of equal recalls, the last
    epoch is taken.
    """
    folder = uninterrupted_run.out
    measures_of_epochs = json.loads((folder / "epochs.json").read_text())
    recalls = [measures["published"]["text_to_video"]["R@1"] for measures in measures_of_epochs]
    assert len(recalls) == 2

    best_epoch = last_of_the_largest(recalls)
    weights_of_best_epoch = folder / f"epoch-{best_epoch}.safetensors"
    assert (folder / "model.safetensors").read_bytes() == weights_of_best_epoch.read_bytes()


@pytest.mark.long
def test_the_backbone_that_loads_a_written_model_has_its_tensors_in_float32(uninterrupted_run):
    """A training writes its network to model.safetensors, and `load` makes a backbone of this file.

    The backbone's network names and arranges tensors otherwise than the file; its format changes them back.
    """
    folder = uninterrupted_run.out
    tensors_of_file = load_file(folder / "model.safetensors")

    network, network_format = load(find_weights(folder))

    tensors_loaded = network_format.from_port(network.state_dict())
    assert tensors_of_file.keys() == tensors_loaded.keys()
    for name, tensor in tensors_of_file.items():
        assert tensor.dtype == torch.float32, name
        assert torch.equal(tensor, tensors_loaded[name]), name


class Killed(BaseException):
    """In place of SIGKILL: nothing catches it, and files are left as they are at that moment."""


class Killer:
    """Counts what a training does, and kills it at the n-th thing that it does.

    Attributes
    ----------
    n_left : int
        How many things the training may still begin; it is killed in the last of them.
    """

    n_left = 0

    def count(self, leave_half_done=lambda: None):
        """Count one thing; if it is the last one, leave it half done and kill the training."""
        self.n_left -= 1
        if self.n_left == 0:
            leave_half_done()
            raise Killed


@pytest.fixture
def killer(monkeypatch):
    """Count the gradients that a training computes and the files that it writes; kill it in the last of them.

    A file in which it is killed is half written, under its name with `.partial`.
    """
    killer = Killer()
    compute_gradients = step.compute_gradients
    write = RunFolder.write
    write_tensors = RunFolder._write_tensors

    def counted_gradients(*args, **kwargs):
        killer.count()
        return compute_gradients(*args, **kwargs)

    def counted_write(folder, name, *args):
        half_of_file = folder.folder / f".{name}.partial"
        killer.count(lambda: half_of_file.write_text("half"))
        return write(folder, name, *args)

    def counted_write_of_tensors(path, *args):
        half_of_file = path.with_name(f".{path.name}.partial")
        killer.count(lambda: half_of_file.write_bytes(b"half"))
        return write_tensors(path, *args)

    monkeypatch.setattr(step, "compute_gradients", counted_gradients)
    monkeypatch.setattr(RunFolder, "write", counted_write)
    monkeypatch.setattr(RunFolder, "_write_tensors", staticmethod(counted_write_of_tensors))
    return killer


def train_and_kill_repeatedly(settings_of_run, killer, *, every):
    """Train, killed in each n-th gradient or file, and resumed each time; return the outcome at the end."""
    for _ in range(30):  # more often than needed
        killer.n_left = every
        try:
            return train(settings_of_run)
        except Killed:
            continue
    raise AssertionError("the training did not come to its end")


@pytest.mark.long  # trains, is stopped, trains again
def test_a_training_killed_repeatedly_and_resumed_gives_the_same_bytes(uninterrupted_run, settings, killer):
    """A training is killed in the ninth gradient or file, resumed, killed in the next ninth, and so on.

    A step has fewer than nine, and not always the same number, so that kills come at all places of a step.
    At its end, the files have to be those of a run that was not killed; what was half written when it was
    killed (`.partial`) may still lie beside them.
    """
    settings_of_run = settings(resume=True)

    outcome = train_and_kill_repeatedly(settings_of_run, killer, every=9)

    assert outcome.complete
    files = files_of(settings_of_run.out)
    whole_files = {name: data for name, data in files.items() if not name.endswith(".partial")}
    expected = files_of(uninterrupted_run.out)
    assert whole_files.keys() == expected.keys()
    assert [name for name in expected if whole_files[name] != expected[name]] == []


def yes_from_the_nth_question_on(n):
    """Make a function that answers False to the first n - 1 calls, and True to all later ones."""
    calls = count(1)
    return lambda: next(calls) >= n


@pytest.mark.long  # trains, is stopped, trains again
def test_a_training_that_is_stopped_on_request_and_resumed_ends_with_the_same_bytes(
    uninterrupted_run, settings
):
    """A training of two epochs of three steps asks after each step and each epoch whether it should stop.

    Here it is told to when it asks for the fifth time: after steps 1 to 3, epoch 0 and step 4. Resumed, it
    must end with the files of a run that nothing interrupted.
    """
    settings_of_run = settings(resume=True)

    stopped = train(settings_of_run, stopped=yes_from_the_nth_question_on(5))
    listener = Listener()
    resumed = train(settings_of_run, watch=listener)

    assert stopped.steps == 4
    assert len(stopped.epochs) == 1
    assert not stopped.complete
    assert resumed.complete
    assert any("step 4 of 6" in text for text in listener.said)
    assert files_of(settings_of_run.out) == files_of(uninterrupted_run.out)


@pytest.mark.long
def test_to_resume_a_complete_run_changes_nothing(uninterrupted_run, settings):
    """The run was trained to its end. Its folder is given once more, with `resume`."""
    folder = uninterrupted_run.out
    files_before = files_of(folder)

    outcome = train(settings(out=folder, resume=True))

    assert outcome.complete
    assert files_of(folder) == files_before


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed_settings", "message"),
    [({"resume": False}, "--resume"), ({"resume": True, "lr": 1e-4}, "lr")],
    ids=["a new training", "resumed at another learning rate"],
)
def test_a_complete_run_is_not_overwritten_by_another_training(
    uninterrupted_run, settings, changed_settings, message
):
    """The run was trained to its end, at the learning rate 3e-4, and its folder is given once more.

    A new training would lose its files. Resumed at the rate 1e-4, they would be of two trainings.
    """
    folder = uninterrupted_run.out
    files_before = files_of(folder)

    with pytest.raises(TrainError, match=message):
        train(settings(out=folder, **changed_settings))

    assert files_of(folder) == files_before


def test_a_training_that_is_stopped_while_videos_are_decoded_makes_no_folder(settings, tmp_path):
    """Videos are decoded into an empty cache before the first step, where the training is told to stop."""
    of_a_run = settings(cache=tmp_path / "empty_cache")

    outcome = train(of_a_run, stopped=lambda: True)

    assert outcome.steps == 0
    assert outcome.total == 0
    assert not outcome.complete
    assert not of_a_run.out.exists()


@pytest.mark.long
def test_a_run_whose_folder_another_training_has_locked_is_not_resumed(uninterrupted_run, settings):
    """A training locks its folder, so that no other one writes there. The refusal names the folder."""
    folder = uninterrupted_run.out
    name_of_folder = folder.name
    assert name_of_folder == "whole"

    with RunFolder(folder).locked_for_training(), pytest.raises(StoreError, match=name_of_folder):
        train(settings(out=folder, resume=True))


@pytest.mark.long
def test_a_training_that_locks_its_folder_removes_what_a_killed_one_left_half_written(uninterrupted_run):
    """The library safetensors first writes a file under a name of chance, such as .tmpOrMfiG."""
    half_written = uninterrupted_run.out / ".tmpOrMfiG"
    half_written.touch()

    with RunFolder(uninterrupted_run.out).locked_for_training():
        assert not half_written.exists()


@pytest.fixture
def training_stopped_after_two_steps(settings):
    """The settings of a training of one epoch of three steps that was stopped after the second one.

    It asks after each step whether to stop, and while it decodes videos too: these have to be in the cache.
    """
    settings_of_run = settings(epochs=1, resume=True)
    train(settings_of_run, stopped=yes_from_the_nth_question_on(2))
    return settings_of_run


@pytest.mark.long
@pytest.mark.usefixtures("uninterrupted_run")  # which has filled the cache
def test_a_training_is_not_resumed_from_a_damaged_state_which_is_named(training_stopped_after_two_steps):
    """The file with the state after the second step is cut to 1,000 bytes."""
    state = training_stopped_after_two_steps.out / "state.safetensors"
    state.write_bytes(state.read_bytes()[:1000])

    with pytest.raises(TrainError, match=r"state\.safetensors"):
        train(training_stopped_after_two_steps)


@pytest.fixture
def disk_is_full(monkeypatch):
    """Let tensors be written to a disk that is full: as the library safetensors says it."""

    def fail(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(state, "save_file", fail)


@pytest.mark.usefixtures("disk_is_full")
def test_a_full_disk_is_an_error_in_words(tmp_path):
    """The error names the file that was to be written, of which nothing is left."""
    folder = RunFolder(tmp_path)

    with pytest.raises(TrainError, match=r"epoch-0\.safetensors.*No space left"):
        folder.write_model("epoch-0.safetensors", {}, {})

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def loss_of_third_step_is_nan(monkeypatch):
    """Give the third step of a training a loss that is not a number."""
    compute_gradients = step.compute_gradients
    steps = count(1)

    def compute_gradients_or_fail(*args, **kwargs):
        if next(steps) == 3:
            return float("nan")
        return compute_gradients(*args, **kwargs)

    monkeypatch.setattr(step, "compute_gradients", compute_gradients_or_fail)


@pytest.mark.long
@pytest.mark.usefixtures("loss_of_third_step_is_nan")
def test_a_loss_that_is_not_finite_stops_before_it_spoils_a_weight(settings):
    """A step with such a loss would turn every weight into NaN, and the training would be lost.

    It is stopped in the third step, which is batch 2 as batches are counted from 0. The state that it keeps
    is that after two steps, and has finite numbers alone.
    """
    of_a_run = settings()

    with pytest.raises(TrainError, match=r"step 3 \(epoch 0, batch 2\)"):
        train(of_a_run)

    with safe_open(of_a_run.out / "state.safetensors", framework="pt") as file:
        n_steps_kept = json.loads(file.metadata()["position"])["step"]
    assert n_steps_kept == 2
    for name, tensor in load_file(of_a_run.out / "state.safetensors").items():
        assert torch.isfinite(tensor).all(), name


def test_titles_of_excluded_films_of_which_there_is_no_clip_are_announced():
    """A misspelt title would exclude nothing without notice."""
    plan = SimpleNamespace(captions={}, shared_movies={}, titles=("Juno", "Up"), excluded={"test": {"Up": 2}})
    listener = Listener()
    run._announce(listener, plan, [])
    assert listener.said == ["--exclude-movies: no clip is of Juno"]


@pytest.fixture
def memory_is_full(monkeypatch):
    """Let the first step of a training fail as it does where the memory is too small."""

    def fail(*_, **__):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(step, "compute_gradients", fail)


@pytest.mark.long
@pytest.mark.usefixtures("memory_is_full")
def test_too_large_a_chunk_for_the_memory_says_what_to_do(settings):
    """A chunk is the clips that the network sees at once: a smaller one needs less memory."""
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


def replace_video(link, data):
    """Write a file in place of a link to a video, which stays as it is."""
    link.unlink()
    link.write_bytes(data)


def folders_of(corpus):
    """Return settings of one epoch on a corpus, with an empty cache."""
    folders = {"annotations": corpus / "annotations", "videos": corpus / "videos", "cache": corpus / "cache"}
    return folders | {"epochs": 1}


@pytest.mark.long
def test_clips_without_a_readable_video_are_left_out_and_listed(settings, corpus_to_spoil):
    """Of 12 training clips, number 3 has no video, and that of number 5 is damaged.

    Clips are numbered from 0 and lines from 1: their captions are on lines 4 and 6.
    """
    missing = clip_id("training", 3)
    (corpus_to_spoil / "videos" / f"{missing}.avi").unlink()
    unreadable = clip_id("training", 5)
    replace_video(corpus_to_spoil / "videos" / f"{unreadable}.avi", b"RIFF and nothing else")
    listener = Listener()
    of_a_run = settings(**folders_of(corpus_to_spoil))

    outcome = train(of_a_run, watch=listener)

    assert outcome.left_out == {"training": 2, "validation": 0, "test": 0}

    row_of_missing, row_of_unreadable = rows_of(of_a_run.out / "left_out.csv")
    assert row_of_missing["clip_id"] == missing
    assert row_of_missing["line"] == "4"
    assert row_of_missing["reason"]
    assert row_of_unreadable["clip_id"] == unreadable
    assert row_of_unreadable["line"] == "6"
    assert row_of_unreadable["reason"]

    assert any(text.startswith("training: 2 of 12") and "line 4" in text for text in listener.said)


@pytest.mark.long
def test_a_corpus_without_a_readable_validation_clip_is_refused(settings, corpus_to_spoil):
    """The videos of all four validation clips are removed, whose names have 00.01 as their time."""
    for video_of_validation_clip in (corpus_to_spoil / "videos").glob("*_00.01.*"):
        video_of_validation_clip.unlink()
    with pytest.raises(TrainError, match="validation"):
        train(settings(**folders_of(corpus_to_spoil)))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"batch": 300}, "--batch 300"),
        ({"batch": None}, "--batch"),
    ],
    ids=["300 clips, of 12", "the published one, of which there is none for patches of 8 pixels"],
)
def test_a_training_without_a_possible_batch_is_refused_when_it_is_planned(settings, setting, message):
    """The plan of a training is made before any video is decoded, which may take hours.

    This training has 12 clips, and its CLIP cuts pictures into patches of 8 pixels.
    """
    settings_of_run = settings(**setting)

    with pytest.raises(TrainError, match=message):
        make_plan(settings_of_run)


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"gather_share": 0.0}, "--gather-share 0"), ({"arithmetic": "float64"}, "'float64'")],
    ids=["no share of the gradient", "an unknown arithmetic"],
)
def test_a_setting_that_no_training_can_have_is_refused_and_named(settings, setting, message):
    """One of the settings of a small training is replaced."""
    with pytest.raises(TrainError, match=message):
        settings(**setting)


@pytest.mark.long
def test_a_store_says_how_the_run_that_extracted_it_was_trained(uninterrupted_run, corpus, tmp_path):
    """The features of one film are extracted with the weights of a run that began from a CLIP.

    The corpus of the run has three clips each of two films that are in ObyGaze12 too. Its network embeds
    texts and clips into one space, so a text has the same training and space.
    """
    folder_of_film = tmp_path / "film"
    folder_of_film.mkdir()
    (video,) = (corpus / "videos").rglob(f"{clip_id('test', 3)}.avi")
    os.link(video, folder_of_film / "film.avi")
    manifest = tmp_path / "film.csv"
    store = tmp_path / "store"

    assert obygaze("manifest", "import", "folder", folder_of_film, "--out", manifest) == 0
    weights_of_run = ["--backbone", "xclip-lsmdc", "--weights", uninterrupted_run.out]
    on_one_cpu = ["--workers", 1, "--device", "cpu"]
    assert obygaze("extract", manifest, store, *weights_of_run, *on_one_cpu) == 0

    provenance = open_store(store)["xclip-lsmdc"].provenance
    assert provenance["weights_sha256"] == find_weights(uninterrupted_run.out).sha256

    training = provenance["training"]
    assert training["clip"]["weights_sha256"] == find_weights(uninterrupted_run.clip).sha256
    assert training["arithmetic"] == "float32"
    assert training["gather_share"] == 0.25
    n_hexadecimal_digits = len(training["data"]["training"]["frames_sha256"])
    assert n_hexadecimal_digits == 64
    assert training["movies"]["shared_with_obygaze12"] == {"Juno": 3, "Pulp Fiction": 3}

    texts = load_text_backbone("xclip-lsmdc-text", weights=str(uninterrupted_run.out))
    assert texts.provenance["training"] == training
    assert texts.provenance["space"] == embedding_space(provenance)
