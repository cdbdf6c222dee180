"""Models travel as stores do: listed with digests, pulled whole or not at all, applied as they were."""

import json
import os
import shutil
import sys
import threading
from pathlib import Path

import msgspec
import pytest

import obygaze_models as om
from obygaze_features.io import PARTIAL_SUFFIX, sha256_of
from obygaze_features.store import objects
from obygaze_features.store.files_obstore import ObstoreFiles
from obygaze_models.errors import ModelError
from obygaze_models.persistence import sharing
from obygaze_models.persistence.model_file import audit
from obygaze_models.persistence.sharing import describe_model, pull_model, push_model, verify_models
from obygaze_models.persistence.zoo_list import (
    LIST,
    default_zoo,
    entry_of,
    find_entry,
    read_zoo,
    write_list,
)
from tests.command import obygaze
from tests.exchange.conftest import bucket, s3_endpoint  # noqa: F401 - fixtures
from tests.exchange.test_hub import COMMIT, HubHandler
from tests.persistence.model_files import model_file_with_card
from tests.planted_models import corpus, make_shelf
from tests.process import python
from tests.store.serving import serving

pytest.importorskip("obstore")
MODEL_WITHOUT_LICENCE = Path(__file__).parent / "frozen" / "protocol_4_attentive.model"

NOTES = "**Length alone does as well.**"


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Files of the models `linear` and `mlp`, which have a licence: name -> path."""
    return make_shelf(tmp_path_factory.mktemp("shared"), ("linear", "mlp")).paths


@pytest.fixture(scope="module")
def unseen_film(tmp_path_factory):
    """A store of a film that the models have not seen."""
    return corpus(tmp_path_factory.mktemp("unseen"), "more", ("g0",), seed=1).store


@pytest.fixture
def zoo(paths, tmp_path):
    """A folder that lists lab-linear 1.0.0, and lab-mlp 0.9.0 and 0.10.0."""
    folder = tmp_path / "zoo"
    push_model(paths["linear"], folder, "lab-linear", "1.0.0", notes=NOTES)
    push_model(paths["mlp"], folder, "lab-mlp", "0.9.0", notes=NOTES)
    push_model(paths["mlp"], folder, "lab-mlp", "0.10.0", notes=NOTES)
    return folder


@pytest.fixture
def server(zoo):
    """A server of the zoo."""
    with serving(zoo) as server:
        yield server


@pytest.fixture(params=[True, False], ids=["with obstore", "without obstore"])
def obstore(request, monkeypatch):
    """Run a test as with the library obstore, and as in a laptop's install, which lacks it."""
    if not request.param:
        monkeypatch.setitem(sys.modules, "obstore", None)


def problems_of(zoo):
    """Return the models of a zoo in which verifying finds a problem, by their labels."""
    return [entry.label for entry, problem in verify_models(zoo) if problem]


@pytest.mark.long
@pytest.mark.usefixtures("obstore")
def test_models_are_listed_by_their_name_and_version(server):
    assert [entry.label for entry in read_zoo(server.url)] == [
        "lab-linear@1.0.0",
        "lab-mlp@0.9.0",
        "lab-mlp@0.10.0",
    ]
    assert problems_of(server.url) == []


@pytest.mark.usefixtures("obstore")
def test_the_newest_version_of_a_model_is_pulled_to_the_byte(paths, server, tmp_path):
    progress = []
    folder = tmp_path / "theirs"
    path = pull_model("lab-mlp", folder, zoo=server.url, progress=lambda *done: progress.append(done))
    assert path.read_bytes() == paths["mlp"].read_bytes()
    assert [path.name for path in folder.iterdir()] == ["lab-mlp-0.10.0.model"]
    n_bytes = paths["mlp"].stat().st_size
    assert progress[-1] == (n_bytes, n_bytes)


@pytest.mark.usefixtures("obstore")
def test_a_model_by_name_predicts_as_its_file(paths, unseen_film, server, monkeypatch):
    monkeypatch.setenv("OBYGAZE_ZOO", server.url)
    by_name = om.predict(om.load_model("lab-linear@1.0.0"), unseen_film)
    by_path = om.predict(om.load_model(paths["linear"]), unseen_film)
    assert by_name.to_csv() == by_path.to_csv()


@pytest.mark.usefixtures("obstore")
def test_a_list_of_four_megabytes_is_refused(zoo, server):
    with (zoo / LIST).open("ab") as file:
        file.write(b"#" * (1 << 22))
    with pytest.raises(ModelError, match="more than"):
        read_zoo(server.url)


def test_an_entry_says_what_the_card_says(paths, zoo):
    card = om.load_model(paths["linear"]).card
    entry = read_zoo(zoo)[0]
    assert entry.task == card.target["name"]
    assert entry.codebook == "violence"
    assert entry.reads == ["descriptors"]
    assert entry.licence == "CC-BY-4.0"
    assert entry.citation == "us"
    assert entry.films == len(card.movies)
    assert entry.clips == card.n_clips
    (on_card,) = [row for row in card.metrics if row["metric"] == "within_movie_auc"]
    (listed,) = [score for score in entry.scores if score.metric == "within_movie_auc"]
    assert listed.value == round(on_card["movie_mean"], 4)
    assert listed.low == round(on_card["method_low"], 4)


def test_a_page_has_its_parts_in_order(zoo, paths):
    page = (zoo / "lab-linear-1.0.0.md").read_text("utf-8")
    entry = read_zoo(zoo)[0]
    (score,) = [score for score in entry.scores if score.metric == "within_movie_auc"]
    phrase_of_part = {
        "metadata": "license: cc-by-4.0",
        "task": "(violent against calm)",
        "notes of the lab": NOTES,
        "scores": "How well",
        "row of the scores": "AUC within a film",
        "its numbers": f"| {score.value:.3f} | {score.low:.3f} to {score.high:.3f} |",
        "limits": "fails",
        "misuse": "must not be used",
        "corpus": "Trained on",
        "digest": entry.sha256,
        "licence and citation": "CC-BY-4.0. us",
    }
    places = [page.index(phrase) for phrase in phrase_of_part.values()]
    assert places == sorted(places)

    assert describe_model("lab-linear", zoo)[1] == page
    page_of_a_file = describe_model(str(paths["mlp"]))[1]  # without a zoo
    assert "must not be used" in page_of_a_file


def test_a_flipped_byte_is_refused_by_pulling_and_loading_and_found_by_verifying(server, tmp_path):
    server.damaged_files.add(".model")
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=server.url)
    assert not (tmp_path / "theirs" / "lab-linear-1.0.0.model").exists()
    with pytest.raises(ModelError):
        om.load_model("lab-linear", zoo=server.url)
    assert problems_of(server.url) == ["lab-linear@1.0.0", "lab-mlp@0.9.0", "lab-mlp@0.10.0"]


@pytest.mark.long
def test_a_pull_that_breaks_off_resumes_where_it_stopped(zoo, server, tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "FIRST_WAIT_S", 0.001)  # between two attempts
    content = (zoo / "lab-linear-1.0.0.model").read_bytes()
    server.n_breaks_left[".model"] = 100  # the next 100 answers break off
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=server.url)
    (partial,) = [path for path in (tmp_path / "theirs").rglob("*") if path.is_file()]
    n_bytes_at_the_stop = partial.stat().st_size
    assert 0 < n_bytes_at_the_stop < len(content)

    server.n_breaks_left.clear()
    path = pull_model("lab-linear", tmp_path / "theirs", zoo=server.url)

    assert path.read_bytes() == content
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["lab-linear-1.0.0.model"]
    ranges_asked_for = [ranges for _, path, ranges in server.requests if path.endswith(".model")]
    assert ranges_asked_for[-1].startswith(f"bytes={n_bytes_at_the_stop}-")


def test_a_sound_file_of_another_model_than_the_listed_one_is_refused(zoo, tmp_path):
    """The file's own digests and the listed size are right: only the listed digest differs."""
    listed = find_entry("lab-linear", zoo)
    mlp = find_entry("lab-mlp", zoo)
    shutil.copy(zoo / mlp.file, zoo / listed.file)
    with_the_size_of_mlp = msgspec.structs.replace(listed, octets=mlp.octets)
    (zoo / LIST).write_bytes(write_list([with_the_size_of_mlp]))
    with pytest.raises(ModelError, match="digest"):
        om.load_model("lab-linear", zoo=zoo)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    assert problems_of(zoo) == ["lab-linear@1.0.0"]


def test_a_file_longer_than_listed_is_not_loaded_and_pulling_it_stops_soon_after_that_size(zoo, tmp_path):
    size = 64 << 20  # far longer than the list says
    os.truncate(zoo / "lab-linear-1.0.0.model", size)  # appends zeros
    with pytest.raises(ModelError):
        om.load_model("lab-linear", zoo=zoo)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    partial = [path for path in (tmp_path / "theirs").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in partial) < size / 4


def contents(folder):
    """Read all files of a folder by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("model", "name", "version", "notes"),
    [
        ("mlp", "lab-linear", "1.0.0", NOTES),
        ("linear", "lab-linear", "1.0.0", "For hiring."),
        ("linear", "Lab Linear", "1.0.0", NOTES),
        ("linear", "lab-linear", "one", NOTES),
        ("linear", "con", "1.0.0", NOTES),
        ("linear", "Nul", "1.0.0", NOTES),
        ("linear", "lpt1", "1.0.0", NOTES),
    ],
    ids=[
        "another model of a version",
        "other notes of a version",
        "a name with spaces",
        "a version in words",
        "a name that Windows keeps",
        "such a name in other letters",
        "such a name with a number",
    ],
)
def test_a_push_that_is_refused_changes_nothing(paths, zoo, model, name, version, notes):
    before = contents(zoo)
    with pytest.raises(ModelError):
        push_model(paths[model], zoo, name, version, notes=notes)
    assert contents(zoo) == before


def test_pushing_the_same_model_again_changes_nothing_but_writes_a_page_that_was_lost(paths, zoo):
    before = contents(zoo)
    (zoo / "lab-linear-1.0.0.md").unlink()
    assert problems_of(zoo) == ["lab-linear@1.0.0"]
    assert push_model(paths["linear"], zoo, "lab-linear", "1.0.0", notes=NOTES).label == "lab-linear@1.0.0"
    assert contents(zoo) == before
    assert push_model(paths["linear"], zoo, "lab-linear", "1.0.0", notes=NOTES).label == "lab-linear@1.0.0"
    assert contents(zoo) == before


def test_pulling_again_removes_what_a_killed_pull_has_left_and_replaces_no_other_file(zoo, tmp_path):
    path = pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    left_by_a_killed_pull = path.with_name(f"{path.name}{PARTIAL_SUFFIX}")
    left_by_a_killed_pull.mkdir()
    assert pull_model("lab-linear", tmp_path / "copies", zoo=zoo) == path
    assert not left_by_a_killed_pull.exists()

    path.write_bytes(b"mine")
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    assert path.read_bytes() == b"mine"


@pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"},
    reason="making links needs a permission on Windows",
)
@pytest.mark.parametrize("target", ["/dev/zero", "elsewhere.toml", "nowhere"])
def test_a_list_that_is_a_link_is_refused_as_a_link(zoo, tmp_path, target):
    (tmp_path / "elsewhere.toml").write_bytes((zoo / LIST).read_bytes())
    (zoo / LIST).unlink()
    (zoo / LIST).symlink_to(tmp_path / target)
    with pytest.raises(ModelError, match="a link"):
        read_zoo(zoo)


def test_a_models_file_may_be_a_link_in_its_list(zoo, tmp_path):
    path = zoo / "lab-linear-1.0.0.model"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")  # as git-annex and caches of the Hub do
    pulled = pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    assert not pulled.is_symlink()
    assert pulled.read_bytes() == path.read_bytes()


MODEL_WITHOUT_PARAMETERS = model_file_with_card(licence="MIT", parameters={})


def test_verifying_finds_a_listed_model_without_parameters(zoo):
    page = b""
    card = audit("x", MODEL_WITHOUT_PARAMETERS).card
    entry = entry_of(card, MODEL_WITHOUT_PARAMETERS, "lab-none", "1.0.0", sha256_of(page))
    (zoo / entry.file).write_bytes(MODEL_WITHOUT_PARAMETERS)
    (zoo / entry.page).write_bytes(page)
    (zoo / LIST).write_bytes(write_list([entry]))
    ((_, problem),) = verify_models(zoo)
    assert "n_epochs" in problem


def test_the_command_gives_each_listed_model_with_what_is_wrong_with_it(zoo, capsys):
    listed = [entry.label for entry in read_zoo(zoo)]
    damaged = zoo / "lab-linear-1.0.0.model"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert obygaze("model", "verify", "--zoo", zoo, "--json") == 3
    records = json.loads(capsys.readouterr().out)["models"]
    assert [record["model"] for record in records] == listed
    assert [record["model"] for record in records if record["problem"]] == ["lab-linear@1.0.0"]


def test_a_list_that_lies_about_a_card_is_found(zoo):
    text = (zoo / LIST).read_text("utf-8")
    (zoo / LIST).write_text(text.replace('licence = "CC-BY-4.0"', 'licence = "MIT"', 1), "utf-8")
    assert problems_of(zoo) == ["lab-linear@1.0.0"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("sha256", "digest"),
        ('name = "lab', 'name = "../lab'),
        ('version = "1.0.0"', 'version = "1.0.0"\nfile = "numpy.py"'),  # names are computed, not taken
        ('version = "1.0.0"', 'version = "1.0"'),
        ("lab-linear", "lab-mlp"),
        ("[[model]]", "[[[model"),
        ("[[model]]", "a" + ".a" * 20_000 + " = 1\n[[model]]"),  # a TOML key that is nested as deep
    ],
    ids=[
        "an unknown field",
        "a name that is a path",
        "a file of its own",
        "a version of two numbers",
        "a model listed twice",
        "no TOML",
        "a name of too many parts",
    ],
)
def test_a_list_that_was_changed_into_an_invalid_one_is_refused(zoo, before, after):
    # Where lab-mlp has a version 1.0.0 too, renaming lab-linear lists one model twice.
    text = (zoo / LIST).read_text("utf-8").replace("0.9.0", "1.0.0")
    (zoo / LIST).write_text(text.replace(before, after), "utf-8")
    with pytest.raises(ModelError):
        read_zoo(zoo)


def test_a_model_is_found_by_its_version_or_as_the_newest_unless_a_file_has_its_name(
    paths, zoo, tmp_path, monkeypatch
):
    assert find_entry("lab-mlp", zoo).version == "0.10.0"
    assert find_entry("lab-mlp@0.9.0", zoo).version == "0.9.0"
    for name in ("lab-mpl", "lab-mlp@2.0.0", "other"):
        with pytest.raises(ModelError):
            find_entry(name, zoo)
    monkeypatch.chdir(tmp_path)
    shutil.copy(paths["mlp"], "lab-linear")
    assert om.load_model("lab-linear", zoo=zoo).card.model == "mlp"


def test_without_a_setting_the_zoo_is_the_projects(monkeypatch):
    monkeypatch.delenv("OBYGAZE_ZOO", raising=False)
    assert default_zoo().endswith("zoo")


def test_a_model_is_not_shared_without_a_licence_or_parameters_nor_over_http(paths, tmp_path):
    with pytest.raises(ModelError):
        push_model(MODEL_WITHOUT_LICENCE, tmp_path / "zoo", "mine")
    (tmp_path / "none.model").write_bytes(MODEL_WITHOUT_PARAMETERS)
    with pytest.raises(ModelError):
        push_model(tmp_path / "none.model", tmp_path / "zoo", "mine")
    assert not (tmp_path / "zoo").exists()
    with pytest.raises(ModelError):
        push_model(paths["linear"], "http://127.0.0.1:9/zoo", "linear")


def test_a_second_pull_while_the_first_still_downloads_is_refused(zoo, tmp_path, monkeypatch):
    begun = threading.Event()
    go_on = threading.Event()
    download_file = sharing.download_file

    def wait_and_download(*arguments):
        begun.set()
        go_on.wait(60)
        download_file(*arguments)

    monkeypatch.setattr(sharing, "download_file", wait_and_download)
    first = threading.Thread(target=pull_model, args=("lab-linear", tmp_path), kwargs={"zoo": zoo})
    first.start()
    begun.wait(60)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path, zoo=zoo)
    go_on.set()
    first.join()
    assert (tmp_path / "lab-linear-1.0.0.model").is_file()


def test_of_three_pushes_at_once_only_the_one_of_a_name_that_is_taken_is_refused(
    paths, tmp_path, monkeypatch
):
    """While `linear` is being written as a, `mlp` is pushed as b and as a: the last one is refused."""
    first_writes = threading.Event()
    go_on = threading.Event()
    write_once = objects.write_once
    refusals = []

    def wait_and_write(*arguments):
        first_writes.set()
        go_on.wait(60)
        return write_once(*arguments)

    def push(model, name):
        try:
            push_model(paths[model], tmp_path / "zoo", name)
        except ModelError as error:
            refusals.append(str(error))

    monkeypatch.setattr(objects, "write_once", wait_and_write)
    linear_as_a = threading.Thread(target=push, args=("linear", "a"))
    mlp_as_b = threading.Thread(target=push, args=("mlp", "b"))
    mlp_as_a = threading.Thread(target=push, args=("mlp", "a"))
    linear_as_a.start()
    first_writes.wait(60)
    mlp_as_b.start()
    mlp_as_a.start()
    go_on.set()
    linear_as_a.join()
    mlp_as_b.join()
    mlp_as_a.join()

    assert [entry.label for entry in read_zoo(tmp_path / "zoo")] == ["a@1.0.0", "b@1.0.0"]
    assert (tmp_path / "zoo" / "a-1.0.0.model").read_bytes() == paths["linear"].read_bytes()
    assert len(refusals) == 1


def test_a_listed_file_that_is_no_model_is_not_pulled(zoo, tmp_path):
    no_model = b"import os" * 99
    entry = find_entry("lab-linear", zoo)
    listed = msgspec.structs.replace(entry, sha256=sha256_of(no_model), octets=len(no_model))
    (zoo / LIST).write_bytes(write_list([listed]))
    (zoo / entry.file).write_bytes(no_model)
    with pytest.raises(ModelError, match=entry.file):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    assert list((tmp_path / "theirs").iterdir()) == []


def test_an_edited_page_is_found_and_not_replaced_by_a_push(zoo, paths):
    page = zoo / "lab-linear-1.0.0.md"
    page.write_text(page.read_text("utf-8").replace("cc-by-4.0", "cc0-1.0"), "utf-8")
    assert problems_of(zoo) == ["lab-linear@1.0.0"]
    with pytest.raises(ModelError, match=page.name):
        describe_model("lab-linear", zoo)
    with pytest.raises(ModelError):
        push_model(paths["linear"], zoo, "lab-linear", notes=NOTES)


def test_a_file_that_is_not_listed_is_not_replaced_by_a_push(zoo, paths):
    unlisted = zoo / "new-1.0.0.model"
    unlisted.write_bytes(b"of a push that was killed, or of another tool")
    with pytest.raises(ModelError, match=unlisted.name):
        push_model(paths["linear"], zoo, "new")
    assert b"killed" in unlisted.read_bytes()
    assert "new" not in (zoo / LIST).read_text("utf-8")


# --- elsewhere
# ---------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.usefixtures("bucket")
def test_a_list_on_s3(paths, tmp_path):
    zoo = "s3://bucket/zoo"
    push_model(paths["linear"], zoo, "linear")
    push_model(paths["mlp"], zoo, "mlp")
    assert [entry.label for entry in read_zoo(zoo)] == ["linear@1.0.0", "mlp@1.0.0"]
    assert problems_of(zoo) == []
    assert pull_model("mlp", tmp_path, zoo=zoo).read_bytes() == paths["mlp"].read_bytes()


@pytest.fixture
def names_pushed_by_another_lab(paths, monkeypatch):
    """Return a list; whenever the list of s3://bucket/raced is read, its last name is taken off and pushed.

    Another lab thus pushes `linear` under this name after a push has read the list and before it writes.
    """
    names = []
    read_tagged = ObstoreFiles.read_tagged

    def read_and_let_another_lab_push(files, name, *most, **part):
        try:
            return read_tagged(files, name, *most, **part)
        finally:
            if names:
                push_model(paths["linear"], "s3://bucket/raced", names.pop(), "1.0.0")

    monkeypatch.setattr(ObstoreFiles, "read_tagged", read_and_let_another_lab_push)
    return names


@pytest.mark.long
@pytest.mark.usefixtures("bucket")
def test_a_push_to_s3_is_repeated_when_others_pushed_meanwhile(paths, names_pushed_by_another_lab):
    names_pushed_by_another_lab += ["b", "c"]
    push_model(paths["mlp"], "s3://bucket/raced", "a")
    assert [entry.label for entry in read_zoo("s3://bucket/raced")] == ["a@1.0.0", "b@1.0.0", "c@1.0.0"]
    assert problems_of("s3://bucket/raced") == []


@pytest.mark.usefixtures("bucket")
def test_a_push_to_s3_is_refused_when_its_name_was_taken_meanwhile(paths, names_pushed_by_another_lab):
    names_pushed_by_another_lab.append("taken")
    with pytest.raises(ModelError):
        push_model(paths["mlp"], "s3://bucket/raced", "taken")
    assert problems_of("s3://bucket/raced") == []
    assert om.load_model("taken", zoo="s3://bucket/raced").card.model == "linear"


PUSH_AND_LOAD_ON_THE_HUB = """
import sys
from obygaze_models import load_model, push_model
print(push_model(sys.argv[1], "hf://datasets/lab/films", "linear").label)
print(load_model("linear", zoo="hf://datasets/lab/films").card.model)
"""


@pytest.mark.long
@pytest.mark.nightly
def test_a_push_to_the_hub_is_repeated_when_others_committed_meanwhile(paths, tmp_path):
    """It runs in a process of its own, because the Hub's client reads its settings when it is imported."""
    pytest.importorskip("huggingface_hub")
    (tmp_path / "hub").mkdir()
    with serving(tmp_path / "hub", HubHandler) as hub:
        hub.n_commits_to_refuse = 2  # the first two commits are refused
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_dont_tell"}
        process = python("-c", PUSH_AND_LOAD_ON_THE_HUB, paths["linear"], env={**os.environ, **settings})
        parents_of_commits = {commit for kind, commit, _ in hub.requests if kind == "PARENT"}
    assert hub.n_commits_to_refuse == 0
    assert parents_of_commits == {COMMIT}
    label_of_push, model_of_card = process.stdout.split()
    assert (label_of_push, model_of_card) == ("linear@1.0.0", "linear")
    files = {path.name for path in (tmp_path / "hub").iterdir()}
    assert files == {"linear-1.0.0.md", "linear-1.0.0.model", LIST}
