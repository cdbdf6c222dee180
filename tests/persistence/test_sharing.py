"""Models travel as stores do: listed with digests, pulled whole or not at all, applied as they were."""

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
from tests.exchange.conftest import bucket, s3_endpoint  # noqa: F401 - fixtures
from tests.exchange.test_hub import COMMIT, HubHandler
from tests.persistence.model_files import edited
from tests.planted_models import corpus, make_shelf
from tests.process import python
from tests.store.serving import serving

pytest.importorskip("obstore")
FROZEN = Path(__file__).parent / "frozen" / "protocol_4_attentive.model"


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


@pytest.mark.usefixtures("obstore")
def test_models_are_listed_by_their_name_and_version(server):
    assert [entry.label for entry in read_zoo(server.url)] == [
        "lab-linear@1.0.0",
        "lab-mlp@0.9.0",
        "lab-mlp@0.10.0",
    ]
    assert problems_of(server.url) == []


@pytest.mark.usefixtures("obstore")
def test_a_model_is_pulled_to_the_byte(paths, server, tmp_path):
    progress = []
    path = pull_model(
        "lab-linear", tmp_path / "theirs", zoo=server.url, progress=lambda *done: progress.append(done)
    )
    assert path.read_bytes() == paths["linear"].read_bytes()
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["lab-linear-1.0.0.model"]
    n_bytes = paths["linear"].stat().st_size
    assert progress[-1] == (n_bytes, n_bytes)


@pytest.mark.usefixtures("obstore")
def test_the_newest_version_of_a_model_is_pulled(server, tmp_path):
    assert pull_model("lab-mlp", tmp_path / "theirs", zoo=server.url).name == "lab-mlp-0.10.0.model"


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


def within_movie_auc(entry):
    """Return an entry's AUC within films."""
    (score,) = [score for score in entry.scores if score.metric == "within_movie_auc"]
    return score


def test_an_entry_has_the_cards_scores(paths, zoo):
    metrics = om.load_model(paths["linear"]).card.metrics
    (on_card,) = [row for row in metrics if row["metric"] == "within_movie_auc"]
    listed = within_movie_auc(read_zoo(zoo)[0])
    assert listed.value == round(on_card["movie_mean"], 4)
    assert listed.low == round(on_card["method_low"], 4)


def test_a_page_has_its_parts_in_order(zoo):
    page = (zoo / "lab-linear-1.0.0.md").read_text("utf-8")
    parts = [
        "license: cc-by-4.0",
        "(violent against calm)",
        NOTES,
        "How well",
        "AUC within a film",
        "fails",
        "must not be used",
        "Trained on",
        read_zoo(zoo)[0].sha256,
        "CC-BY-4.0. us",
    ]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)


def test_a_page_has_the_listed_score(zoo):
    score = within_movie_auc(read_zoo(zoo)[0])
    page = (zoo / "lab-linear-1.0.0.md").read_text("utf-8")
    assert f"| {score.value:.3f} | {score.low:.3f} to {score.high:.3f} |" in page


def test_the_page_of_a_listed_model_is_the_one_in_the_zoo(zoo):
    assert describe_model("lab-linear", zoo)[1] == (zoo / "lab-linear-1.0.0.md").read_text("utf-8")


def test_a_file_has_a_page_without_a_zoo(paths):
    assert "must not be used" in describe_model(str(paths["mlp"]))[1]


def test_a_flipped_byte_is_refused_by_pulling(server, tmp_path):
    server.damaged_files.add(".model")
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=server.url)
    assert not (tmp_path / "theirs" / "lab-linear-1.0.0.model").exists()


def test_a_flipped_byte_is_refused_by_loading(server):
    server.damaged_files.add(".model")
    with pytest.raises(ModelError):
        om.load_model("lab-linear", zoo=server.url)


def test_a_flipped_byte_is_found_by_verifying(server):
    server.damaged_files.add(".model")
    assert problems_of(server.url) == ["lab-linear@1.0.0", "lab-mlp@0.9.0", "lab-mlp@0.10.0"]


@pytest.mark.long
def test_a_pull_that_breaks_off_resumes_where_it_stopped(zoo, server, tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "FIRST_WAIT_S", 0.001)
    content = (zoo / "lab-linear-1.0.0.model").read_bytes()
    server.n_breaks_left[".model"] = 100
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=server.url)
    (partial,) = [path for path in (tmp_path / "theirs").rglob("*") if path.is_file()]
    n_bytes = partial.stat().st_size
    assert 0 < n_bytes < len(content)

    server.n_breaks_left.clear()
    server.n_bytes_sent = 0
    progress = []
    path = pull_model(
        "lab-linear", tmp_path / "theirs", zoo=server.url, progress=lambda *done: progress.append(done)
    )

    assert path.read_bytes() == content
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["lab-linear-1.0.0.model"]
    assert progress[-1] == (len(content), len(content))
    ranges = [ranges for _, path, ranges in server.requests if path.endswith(".model")]
    assert ranges[-1].startswith(f"bytes={n_bytes}-")


def test_another_whole_model_in_the_place_of_the_listed_one_is_refused(zoo, tmp_path):
    """Its own digests hold: that it is another tells the list's alone."""
    listed = find_entry("lab-linear", zoo)
    mlp = find_entry("lab-mlp", zoo)
    shutil.copy(zoo / mlp.file, zoo / listed.file)
    of_the_size_of_the_other = msgspec.structs.replace(listed, octets=mlp.octets)
    (zoo / LIST).write_bytes(write_list([of_the_size_of_the_other]))
    with pytest.raises(ModelError, match="digest"):
        om.load_model("lab-linear", zoo=zoo)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    assert problems_of(zoo) == ["lab-linear@1.0.0"]


def test_a_file_that_sends_more_than_was_listed_is_given_up_before_it_fills_a_disk(zoo, tmp_path):
    size = 64 << 20
    os.truncate(zoo / "lab-linear-1.0.0.model", size)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    partial = [path for path in (tmp_path / "theirs").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in partial) < size / 4
    with pytest.raises(ModelError):
        om.load_model("lab-linear", zoo=zoo)


def contents(folder):
    """Read all files of a folder by their names."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_version_is_never_replaced_by_another_model(paths, zoo):
    before = contents(zoo)
    with pytest.raises(ModelError):
        push_model(paths["mlp"], zoo, "lab-linear", "1.0.0")
    assert contents(zoo) == before


def test_pushing_the_same_model_again_changes_nothing(paths, zoo):
    before = contents(zoo)
    assert push_model(paths["linear"], zoo, "lab-linear", "1.0.0", notes=NOTES).label == "lab-linear@1.0.0"
    assert contents(zoo) == before


@pytest.mark.parametrize(("name", "version"), [("Lab Linear", "1.0.0"), ("lab-linear", "one")])
def test_a_name_with_spaces_or_a_version_in_words_is_refused(paths, zoo, name, version):
    before = contents(zoo)
    with pytest.raises(ModelError):
        push_model(paths["linear"], zoo, name, version)
    assert contents(zoo) == before


def test_pulling_again_keeps_the_file(zoo, tmp_path):
    path = pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    left_by_a_killed_pull = path.with_name(f"{path.name}{PARTIAL_SUFFIX}")
    left_by_a_killed_pull.mkdir()
    assert pull_model("lab-linear", tmp_path / "copies", zoo=zoo) == path
    assert not left_by_a_killed_pull.exists()


def test_pulling_does_not_replace_another_file_of_its_name(zoo, tmp_path):
    (tmp_path / "copies").mkdir()
    other = tmp_path / "copies" / "lab-linear-1.0.0.model"
    other.write_bytes(b"mine")
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    assert other.read_bytes() == b"mine"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"}, reason="Windows makes links for few"
)
@pytest.mark.parametrize("target", ["/dev/zero", "elsewhere.toml", "nowhere"])
def test_a_list_that_is_a_link_is_called_one(zoo, tmp_path, target):
    (tmp_path / "elsewhere.toml").write_bytes((zoo / LIST).read_bytes())
    (zoo / LIST).unlink()
    (zoo / LIST).symlink_to(tmp_path / target)
    with pytest.raises(ModelError, match="a link"):
        read_zoo(zoo)


@pytest.mark.parametrize("name", ["con", "Nul", "lpt1"])
def test_a_model_is_not_called_what_some_systems_cannot_write(paths, tmp_path, name):
    with pytest.raises(ModelError, match=name):
        push_model(paths["linear"], tmp_path / "zoo", name, "1.0.0")
    assert not (tmp_path / "zoo").exists()


def test_a_list_of_dots_says_what_is_wrong(zoo):
    (zoo / LIST).write_text("a" + ".a" * 20_000 + " = 1\n")
    with pytest.raises(ModelError, match="parts"):
        read_zoo(zoo)


def test_a_models_file_may_be_a_link_in_its_list(zoo, tmp_path):
    path = zoo / "lab-linear-1.0.0.model"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")  # as git-annex and caches of the Hub do
    pulled = pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    assert not pulled.is_symlink()
    assert pulled.read_bytes() == path.read_bytes()


def test_a_listed_model_that_cannot_be_made_is_found(zoo):
    data = edited(licence="MIT", parameters={})
    entry = entry_of(audit("x", data).card, data, "lab-none", "1.0.0", sha256_of(b""))
    (zoo / entry.file).write_bytes(data)
    (zoo / entry.page).write_bytes(b"")
    (zoo / LIST).write_bytes(write_list([entry]))
    ((_, problem),) = verify_models(zoo)
    assert "n_epochs" in problem


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
    ],
    ids=[
        "an unknown field",
        "a name that is a path",
        "a file of its own",
        "a version of two numbers",
        "a model listed twice",
        "no TOML",
    ],
)
def test_a_list_that_is_none_is_refused(zoo, before, after):
    text = (zoo / LIST).read_text("utf-8").replace("0.9.0", "1.0.0")
    (zoo / LIST).write_text(text.replace(before, after), "utf-8")
    with pytest.raises(ModelError):
        read_zoo(zoo)


def test_the_newest_version_is_found(zoo):
    assert find_entry("lab-mlp", zoo).version == "0.10.0"


def test_a_version_is_found_by_its_number(zoo):
    assert find_entry("lab-mlp@0.9.0", zoo).version == "0.9.0"


@pytest.mark.parametrize("name", ["lab-mpl", "lab-mlp@2.0.0", "other"])
def test_a_name_that_is_not_listed_is_refused(zoo, name):
    with pytest.raises(ModelError):
        find_entry(name, zoo)


def test_a_file_comes_before_a_listed_model_of_its_name(paths, zoo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(paths["mlp"], "lab-linear")
    assert om.load_model("lab-linear", zoo=zoo).card.model == "mlp"


def test_without_a_setting_the_zoo_is_the_projects(monkeypatch):
    monkeypatch.delenv("OBYGAZE_ZOO", raising=False)
    assert default_zoo().endswith("zoo")


def test_a_model_without_a_licence_is_not_shared(tmp_path):
    with pytest.raises(ModelError):
        push_model(FROZEN, tmp_path / "zoo", "mine")
    assert not (tmp_path / "zoo").exists()


def test_a_model_that_cannot_be_made_is_not_shared(tmp_path):
    (tmp_path / "of-nothing.model").write_bytes(edited(licence="MIT", parameters={}))
    with pytest.raises(ModelError):
        push_model(tmp_path / "of-nothing.model", tmp_path / "zoo", "mine")
    assert not (tmp_path / "zoo").exists()


def test_two_pulls_at_once_are_one_file_and_a_line(zoo, tmp_path, monkeypatch):
    begun = threading.Event()
    go_on = threading.Event()
    real = sharing.download_file

    def slow(*arguments):
        begun.set()
        go_on.wait(60)
        real(*arguments)

    monkeypatch.setattr(sharing, "download_file", slow)
    first = threading.Thread(target=pull_model, args=("lab-linear", tmp_path), kwargs={"zoo": zoo})
    first.start()
    begun.wait(60)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path, zoo=zoo)
    go_on.set()
    first.join()
    assert (tmp_path / "lab-linear-1.0.0.model").is_file()


def test_pushes_at_once_are_both_listed_and_a_version_stays_what_it_was(paths, tmp_path, monkeypatch):
    """Three push: `linear` as a, and while it writes `mlp` as b and as a; the last one is refused."""
    first_writes = threading.Event()
    go_on = threading.Event()
    write_once = objects.write_once
    refusals = []

    def slow(*arguments):
        first_writes.set()
        go_on.wait(60)
        return write_once(*arguments)

    def push(model, name):
        try:
            push_model(paths[model], tmp_path / "zoo", name)
        except ModelError as error:
            refusals.append(str(error))

    monkeypatch.setattr(objects, "write_once", slow)
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


@pytest.fixture
def edited_page(zoo):
    """The page of lab-linear, in which somebody has changed the licence."""
    page = zoo / "lab-linear-1.0.0.md"
    page.write_text(page.read_text("utf-8").replace("cc-by-4.0", "cc0-1.0"), "utf-8")
    return page


def test_an_edited_page_is_found(zoo, edited_page):
    assert problems_of(zoo) == ["lab-linear@1.0.0"]
    with pytest.raises(ModelError, match=edited_page.name):
        describe_model("lab-linear", zoo)


@pytest.mark.usefixtures("edited_page")
def test_an_edited_page_is_not_replaced_by_a_push(zoo, paths):
    with pytest.raises(ModelError):
        push_model(paths["linear"], zoo, "lab-linear", notes=NOTES)


def test_a_page_that_is_lost_is_written_by_pushing_again(zoo, paths):
    page = zoo / "lab-linear-1.0.0.md"
    page.unlink()
    assert problems_of(zoo) == ["lab-linear@1.0.0"]
    push_model(paths["linear"], zoo, "lab-linear", notes=NOTES)
    assert page.is_file()
    assert problems_of(zoo) == []


def test_notes_of_a_version_are_not_replaced(zoo, paths):
    with pytest.raises(ModelError):
        push_model(paths["linear"], zoo, "lab-linear", notes="For hiring.")


def test_a_version_whose_file_is_there_unlisted_is_not_replaced(zoo, paths):
    unlisted = zoo / "new-1.0.0.model"
    unlisted.write_bytes(b"of a push that was killed, or of another tool")
    with pytest.raises(ModelError, match=unlisted.name):
        push_model(paths["linear"], zoo, "new")
    assert b"killed" in unlisted.read_bytes()
    assert "new" not in (zoo / LIST).read_text("utf-8")


# --- elsewhere
# ---------------------------------------------------------------------------
@pytest.mark.usefixtures("bucket")
def test_a_list_on_s3(paths, tmp_path):
    zoo = "s3://bucket/zoo"
    push_model(paths["linear"], zoo, "linear")
    push_model(paths["mlp"], zoo, "mlp")
    assert [entry.label for entry in read_zoo(zoo)] == ["linear@1.0.0", "mlp@1.0.0"]
    assert problems_of(zoo) == []
    assert pull_model("mlp", tmp_path, zoo=zoo).read_bytes() == paths["mlp"].read_bytes()


@pytest.fixture
def pushes_between(paths, monkeypatch):
    """Names under which somebody else pushes `linear` to s3://bucket/raced, the last one first.

    Each push ends between another one's reading of the list and its writing.
    """
    names = []
    read_tagged = ObstoreFiles.read_tagged

    def read_and_be_beaten(files, name, *most, **part):
        try:
            return read_tagged(files, name, *most, **part)
        finally:
            if names:
                push_model(paths["linear"], "s3://bucket/raced", names.pop(), "1.0.0")

    monkeypatch.setattr(ObstoreFiles, "read_tagged", read_and_be_beaten)
    return names


@pytest.mark.usefixtures("bucket")
def test_a_push_to_s3_that_lost_a_race_repeats(paths, pushes_between):
    pushes_between += ["b", "c"]
    push_model(paths["mlp"], "s3://bucket/raced", "a")
    assert [entry.label for entry in read_zoo("s3://bucket/raced")] == ["a@1.0.0", "b@1.0.0", "c@1.0.0"]
    assert problems_of("s3://bucket/raced") == []


@pytest.mark.usefixtures("bucket")
def test_a_push_to_s3_that_lost_its_name_is_refused(paths, pushes_between):
    pushes_between.append("lost")
    with pytest.raises(ModelError):
        push_model(paths["mlp"], "s3://bucket/raced", "lost")
    assert problems_of("s3://bucket/raced") == []
    assert om.load_model("lost", zoo="s3://bucket/raced").card.model == "linear"


CLIENT = """
import sys
from obygaze_models import load_model, push_model
print(push_model(sys.argv[1], "hf://datasets/lab/films", "linear").label)
print(load_model("linear", zoo="hf://datasets/lab/films").card.model)
"""


@pytest.mark.long
def test_a_list_on_the_hub(paths, tmp_path):
    """Alone it runs the Hub's own client, in a process that knows no other."""
    pytest.importorskip("huggingface_hub")
    (tmp_path / "hub").mkdir()
    with serving(tmp_path / "hub", HubHandler) as server:
        server.n_commits_to_refuse = 2
        settings = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_dont_tell"}
        process = python("-c", CLIENT, paths["linear"], env={**os.environ, **settings})
        parents = {place for kind, place, _ in server.requests if kind == "PARENT"}
    assert server.n_commits_to_refuse == 0
    assert parents == {COMMIT}
    assert process.stdout.split() == ["linear@1.0.0", "linear"]
    files = {path.name for path in (tmp_path / "hub").iterdir()}
    assert files == {"linear-1.0.0.md", "linear-1.0.0.model", LIST}


def test_nothing_is_pushed_over_http(paths):
    with pytest.raises(ModelError):
        push_model(paths["linear"], "http://127.0.0.1:9/zoo", "linear")
