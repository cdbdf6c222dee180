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


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Two models with a licence, and the features of a film that they have not seen."""
    folder = tmp_path_factory.mktemp("shared")
    return make_shelf(folder, ("linear", "mlp")).paths, corpus(folder, "more", ("g0",), seed=1)[0]


@pytest.fixture
def zoo(kept, tmp_path):
    paths, _ = kept
    for name, version in (("linear", "1.0.0"), ("mlp", "0.9.0"), ("mlp", "0.10.0")):
        push_model(
            paths[name], tmp_path / "zoo", f"lab-{name}", version, notes="**Length alone does as well.**"
        )
    return tmp_path / "zoo"


@pytest.mark.parametrize("has_obstore", [True, False])
def test_a_model_that_is_pushed_is_listed_pulled_and_applied_as_it_was(
    kept, zoo, tmp_path, monkeypatch, has_obstore
):
    paths, store = kept
    if not has_obstore:  # a laptop's install
        monkeypatch.setitem(sys.modules, "obstore", None)
    with serving(zoo) as site:
        entries = read_zoo(site.url)
        assert [entry.label for entry in entries] == ["lab-linear@1.0.0", "lab-mlp@0.9.0", "lab-mlp@0.10.0"]
        shown = []
        pulled = pull_model(
            "lab-linear", tmp_path / "theirs", zoo=site.url, progress=lambda *of: shown.append(of)
        )
        assert shown[-1] == (entries[0].octets, entries[0].octets)
        assert pulled.read_bytes() == paths["linear"].read_bytes()
        assert pull_model("lab-mlp", tmp_path / "theirs", zoo=site.url).name == "lab-mlp-0.10.0.model"
        assert [problem for _, problem in verify_models(site.url)] == [""] * 3
        monkeypatch.setenv("OBYGAZE_ZOO", site.url)
        by_name = om.predict(om.load_model("lab-linear@1.0.0"), store).to_csv()
        (zoo / LIST).write_bytes((zoo / LIST).read_bytes() + b"#" * (1 << 22))
        with pytest.raises(ModelError, match="more than"):
            read_zoo(site.url)
    assert by_name == om.predict(om.load_model(paths["linear"]), store).to_csv()
    assert sorted(path.name for path in (tmp_path / "theirs").iterdir()) == [
        "lab-linear-1.0.0.model", "lab-mlp-0.10.0.model"
    ]  # fmt: skip


def test_an_entry_says_what_the_card_says(kept, zoo):
    paths, _ = kept
    card = om.load_model(paths["linear"]).card
    entry = read_zoo(zoo)[0]
    assert (entry.task, entry.codebook, entry.reads) == (card.target["name"], "violence", ["descriptors"])
    assert (entry.licence, entry.citation) == ("CC-BY-4.0", "us")
    assert (entry.films, entry.clips) == (len(card.movies), card.n_clips)
    (within,) = (score for score in entry.scores if score.metric == "within_movie_auc")
    (row,) = (row for row in card.metrics if row["metric"] == "within_movie_auc")
    assert (within.value, within.low) == (round(row["movie_mean"], 4), round(row["method_low"], 4))


def test_a_page_says_how_well_on_whom_it_fails_and_what_it_is_not_for(kept, zoo):
    page = (zoo / "lab-linear-1.0.0.md").read_text("utf-8")
    assert page == describe_model("lab-linear", zoo)[1]
    places = [
        page.index(words)
        for words in (
            "license: cc-by-4.0", "(violent against calm)", "**Length alone does as well.**", "How well",
            "AUC within a film", "fails",
            "must not be used", "Trained on", read_zoo(zoo)[0].sha256, "CC-BY-4.0. us",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    score = next(entry for entry in read_zoo(zoo)[0].scores if entry.metric == "within_movie_auc")
    assert f"| {score.value:.3f} | {score.low:.3f} to {score.high:.3f} |" in page
    assert "must not be used" in describe_model(str(kept[0]["mlp"]))[1]


def test_a_byte_that_was_flipped_is_refused(zoo, tmp_path):
    with serving(zoo) as site:
        site.flips.add(".model")
        for read in (
            lambda: pull_model("lab-linear", tmp_path / "theirs", zoo=site.url),
            lambda: om.load_model("lab-linear", zoo=site.url),
        ):
            with pytest.raises(ModelError):
                read()
        assert all(problem for _, problem in verify_models(site.url))
    assert not (tmp_path / "theirs" / "lab-linear-1.0.0.model").exists()


@pytest.mark.long
def test_a_pull_that_breaks_off_resumes_where_it_stopped(zoo, tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "FIRST_WAIT_S", 0.001)
    content = (zoo / "lab-linear-1.0.0.model").read_bytes()
    with serving(zoo) as site:
        site.drops[".model"] = 100
        with pytest.raises(ModelError):
            pull_model("lab-linear", tmp_path / "theirs", zoo=site.url)
        (partial,) = (path for path in (tmp_path / "theirs").rglob("*") if path.is_file())
        n_bytes = partial.stat().st_size
        assert 0 < n_bytes < len(content)
        site.drops.clear()
        site.sent = 0
        progress = []
        pulled = pull_model(
            "lab-linear", tmp_path / "theirs", zoo=site.url, progress=lambda *done: progress.append(done)
        )
        asked = [ranges for _, path, ranges in site.asked if path.endswith(".model")]
    assert pulled.read_bytes() == content
    assert asked[-1].startswith(f"bytes={n_bytes}-")
    assert progress[-1] == (len(content), len(content))
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["lab-linear-1.0.0.model"]


def test_another_whole_model_in_the_place_of_the_listed_one_is_refused(zoo, tmp_path):
    """Its own digests hold: that it is another tells the list's alone."""
    listed = find_entry("lab-linear", zoo)
    mlp = find_entry("lab-mlp", zoo)
    shutil.copy(zoo / mlp.file, zoo / listed.file)
    replaced = msgspec.structs.replace(listed, octets=mlp.octets)  # so that its size gives nothing away
    (zoo / LIST).write_bytes(write_list([replaced]))
    with pytest.raises(ModelError, match="digest"):
        om.load_model("lab-linear", zoo=zoo)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    assert [bool(problem) for _, problem in verify_models(zoo)] == [True]


def test_a_file_that_sends_more_than_was_listed_is_given_up_before_it_fills_a_disk(zoo, tmp_path):
    listed = find_entry("lab-linear", zoo)
    size = 64 << 20
    os.truncate(zoo / listed.file, size)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    partial = [path for path in (tmp_path / "theirs").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in partial) < size / 4
    with pytest.raises(ModelError):
        om.load_model("lab-linear", zoo=zoo)


def test_a_version_is_never_replaced_and_pushing_it_again_changes_nothing(kept, zoo):
    paths, _ = kept
    before = {path.name: path.read_bytes() for path in zoo.iterdir()}
    with pytest.raises(ModelError):
        push_model(paths["mlp"], zoo, "lab-linear", "1.0.0")
    pushed_again = push_model(
        paths["linear"], zoo, "lab-linear", "1.0.0", notes="**Length alone does as well.**"
    )
    assert pushed_again.label == "lab-linear@1.0.0"
    for name, version in (("Lab Linear", "1.0.0"), ("lab-linear", "one")):
        with pytest.raises(ModelError):
            push_model(paths["linear"], zoo, name, version)
    assert {path.name: path.read_bytes() for path in zoo.iterdir()} == before


def test_pulling_again_keeps_the_file_and_another_of_its_name_is_refused(zoo, tmp_path):
    path = pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    (unfinished := path.with_name(f"{path.name}{PARTIAL_SUFFIX}")).mkdir()  # as by a pull that was killed
    assert pull_model("lab-linear", tmp_path / "copies", zoo=zoo) == path
    assert not unfinished.exists()
    path.write_bytes(b"mine")
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "copies", zoo=zoo)
    assert path.read_bytes() == b"mine"


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
def test_a_model_is_not_called_what_some_systems_cannot_write(kept, tmp_path, name):
    paths, _ = kept
    with pytest.raises(ModelError, match=name):
        push_model(paths["linear"], tmp_path / "zoo", name, "1.0.0")
    assert not (tmp_path / "zoo").exists()


def test_a_list_of_dots_says_what_is_wrong(zoo):
    (zoo / LIST).write_text("a" + ".a" * 20_000 + " = 1\n")
    with pytest.raises(ModelError, match="parts"):
        read_zoo(zoo)


def test_a_models_file_may_be_a_link_in_its_list(zoo, tmp_path):
    (path := zoo / "lab-linear-1.0.0.model").rename(tmp_path / "elsewhere")
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
    assert [bool(problem) for _, problem in verify_models(zoo)] == [True, False, False]


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
)
def test_a_list_that_is_none_is_refused(zoo, before, after):
    text = (zoo / LIST).read_text("utf-8").replace("0.9.0", "1.0.0")
    (zoo / LIST).write_text(text.replace(before, after), "utf-8")
    with pytest.raises(ModelError):
        read_zoo(zoo)


def test_names_are_looked_up_and_files_come_first(kept, zoo, tmp_path, monkeypatch):
    assert find_entry("lab-mlp", zoo).version == "0.10.0"
    assert find_entry("lab-mlp@0.9.0", zoo).version == "0.9.0"
    for wrong in ("lab-mpl", "lab-mlp@2.0.0", "other"):
        with pytest.raises(ModelError):
            find_entry(wrong, zoo)
    monkeypatch.chdir(tmp_path)
    shutil.copy(kept[0]["mlp"], "lab-linear")
    assert om.load_model("lab-linear", zoo=zoo).card.model == "mlp"
    monkeypatch.delenv("OBYGAZE_ZOO", raising=False)
    assert default_zoo().endswith("zoo")


def test_a_model_without_a_licence_is_not_shared_nor_one_that_cannot_be_made(tmp_path):
    of_nothing = tmp_path / "of-nothing.model"
    of_nothing.write_bytes(edited(licence="MIT", parameters={}))
    for model in (FROZEN, of_nothing):
        with pytest.raises(ModelError):
            push_model(model, tmp_path / "zoo", "mine")
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


def test_two_pushes_at_once_are_both_listed_and_a_version_stays_what_it_was(kept, tmp_path, monkeypatch):
    paths, _ = kept
    begun = threading.Event()
    go_on = threading.Event()
    real = objects.write_once
    failed = []

    def slow(*arguments):
        begun.set()
        go_on.wait(60)
        return real(*arguments)

    def push(model, name):
        try:
            push_model(paths[model], tmp_path / "zoo", name)
        except ModelError as error:
            failed.append(str(error))

    monkeypatch.setattr(objects, "write_once", slow)
    contenders = [
        threading.Thread(target=push, args=words) for words in (("linear", "a"), ("mlp", "b"), ("mlp", "a"))
    ]
    contenders[0].start()
    begun.wait(60)
    for contender in contenders[1:]:
        contender.start()
    go_on.set()
    for contender in contenders:
        contender.join()
    assert [entry.label for entry in read_zoo(tmp_path / "zoo")] == ["a@1.0.0", "b@1.0.0"]
    assert (tmp_path / "zoo" / "a-1.0.0.model").read_bytes() == paths["linear"].read_bytes()
    assert len(failed) == 1


def test_what_is_listed_and_is_no_model_gets_no_name(zoo, tmp_path):
    no_model = b"import os" * 99
    text = (zoo / LIST).read_text("utf-8")
    entry = find_entry("lab-linear", zoo)
    text = text.replace(entry.sha256, sha256_of(no_model)).replace(
        f"bytes = {entry.octets}", f"bytes = {len(no_model)}"
    )
    (zoo / LIST).write_text(text, "utf-8")
    (zoo / entry.file).write_bytes(no_model)
    with pytest.raises(ModelError, match=entry.file):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo)
    assert list((tmp_path / "theirs").iterdir()) == []


def test_a_page_is_the_one_that_was_listed(zoo, kept):
    page = zoo / "lab-linear-1.0.0.md"
    page.write_text(page.read_text("utf-8").replace("cc-by-4.0", "cc0-1.0"), "utf-8")
    assert [entry.label for entry, problem in verify_models(zoo) if problem] == ["lab-linear@1.0.0"]
    with pytest.raises(ModelError, match=page.name):
        describe_model("lab-linear", zoo)
    with pytest.raises(ModelError):  # nor is it replaced by a push
        push_model(kept[0]["linear"], zoo, "lab-linear", notes="**Length alone does as well.**")
    page.unlink()
    assert [entry.label for entry, problem in verify_models(zoo) if problem] == ["lab-linear@1.0.0"]
    push_model(kept[0]["linear"], zoo, "lab-linear", notes="**Length alone does as well.**")
    assert page.is_file()
    with pytest.raises(ModelError):
        push_model(kept[0]["linear"], zoo, "lab-linear", notes="For hiring.")


def test_a_version_whose_file_is_there_unlisted_is_not_replaced(zoo, kept):
    (unlisted := zoo / "new-1.0.0.model").write_bytes(b"of a push that was killed, or of another tool")
    with pytest.raises(ModelError, match=unlisted.name):
        push_model(kept[0]["linear"], zoo, "new")
    assert b"killed" in unlisted.read_bytes()
    assert "new" not in (zoo / LIST).read_text("utf-8")


# --- elsewhere
# ---------------------------------------------------------------------------
@pytest.mark.usefixtures("bucket")
def test_a_list_on_s3(kept, tmp_path):
    place = "s3://bucket/zoo"
    for name in ("linear", "mlp"):
        push_model(kept[0][name], place, name)
    assert [entry.label for entry in read_zoo(place)] == ["linear@1.0.0", "mlp@1.0.0"]
    assert pull_model("mlp", tmp_path, zoo=place).read_bytes() == kept[0]["mlp"].read_bytes()
    assert [problem for _, problem in verify_models(place)] == ["", ""]


@pytest.mark.usefixtures("bucket")
def test_a_push_to_s3_that_lost_a_race_repeats_or_refuses(kept, monkeypatch):
    place = "s3://bucket/raced"
    read = ObstoreFiles.read_tagged
    paths = kept[0]
    waiting = [("linear", "b", "1.0.0"), ("linear", "c", "1.0.0")]

    def beaten(files, name, *most, **part):
        try:
            return read(files, name, *most, **part)
        finally:
            if waiting:  # another push ends between this one's reading and its writing
                model, *words = waiting.pop()
                push_model(paths[model], place, *words)

    monkeypatch.setattr(ObstoreFiles, "read_tagged", beaten)
    push_model(paths["mlp"], place, "a")
    assert [entry.label for entry in read_zoo(place)] == ["a@1.0.0", "b@1.0.0", "c@1.0.0"]
    waiting.append(("linear", "d", "1.0.0"))
    with pytest.raises(ModelError):
        push_model(paths["mlp"], place, "d")
    assert [problem for _, problem in verify_models(place)] == [""] * 4
    assert om.load_model("d", zoo=place).card.model == "linear"


CLIENT = """
import sys
from obygaze_models import load_model, push_model
print(push_model(sys.argv[1], "hf://datasets/lab/films", "linear").label)
print(load_model("linear", zoo="hf://datasets/lab/films").card.model)
"""


@pytest.mark.long
def test_a_list_on_the_hub(kept, tmp_path):
    """Alone it runs the Hub's own client, in a process that knows no other."""
    pytest.importorskip("huggingface_hub")
    (tmp_path / "hub").mkdir()
    with serving(tmp_path / "hub", HubHandler) as site:
        site.beaten = 2
        settings = {"HF_ENDPOINT": site.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_dont_tell"}
        process = python("-c", CLIENT, kept[0]["linear"], env={**os.environ, **settings})
        parents = {place for kind, place, _ in site.asked if kind == "PARENT"}
    assert (site.beaten, parents) == (0, {COMMIT})
    assert process.stdout.split() == ["linear@1.0.0", "linear"]
    assert sorted(path.name for path in (tmp_path / "hub").iterdir()) == [
        "linear-1.0.0.md", "linear-1.0.0.model", LIST
    ]  # fmt: skip


def test_nothing_is_pushed_over_http(kept):
    with pytest.raises(ModelError):
        push_model(kept[0]["linear"], "http://127.0.0.1:9/zoo", "linear")
