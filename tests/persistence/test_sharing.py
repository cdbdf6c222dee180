"""Models travel as stores do: listed with digests, pulled whole or not at all, applied as they were."""

import json
import os
import shutil
import sys
import threading
from dataclasses import replace
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
from obygaze_models.persistence.sharing import (
    describe_model,
    model_page,
    pull_model,
    push_model,
    verify_models,
)
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
from tests.planted_models import corpus, train_and_save_models
from tests.process import python
from tests.store.serving import serving

pytest.importorskip("obstore")
MODEL_WITHOUT_LICENCE = Path(__file__).parent / "frozen" / "protocol_4_attentive.model"

NOTES = "**Length alone does as well.**"


@pytest.fixture(scope="module")
def paths_of_linear_and_mlp(tmp_path_factory):
    """Files of the models `linear` and `mlp`, which have a licence: name -> path."""
    return train_and_save_models(tmp_path_factory.mktemp("shared"), ("linear", "mlp")).paths


@pytest.fixture(scope="module")
def unseen_film(tmp_path_factory):
    """A store of a film that the models have not seen."""
    return corpus(tmp_path_factory.mktemp("unseen"), "more", ("g0",), seed=1).store


@pytest.fixture
def zoo_of_three_models(paths_of_linear_and_mlp, tmp_path):
    """A folder that lists lab-linear 1.0.0, and lab-mlp 0.9.0 and 0.10.0."""
    folder = tmp_path / "zoo"
    push_model(paths_of_linear_and_mlp["linear"], folder, "lab-linear", "1.0.0", notes=NOTES)
    push_model(paths_of_linear_and_mlp["mlp"], folder, "lab-mlp", "0.9.0", notes=NOTES)
    push_model(paths_of_linear_and_mlp["mlp"], folder, "lab-mlp", "0.10.0", notes=NOTES)
    return folder


@pytest.fixture
def server_of_zoo(zoo_of_three_models):
    """A server of the zoo."""
    with serving(zoo_of_three_models) as server:
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
def test_models_are_listed_by_their_name_and_version(server_of_zoo):
    """The server offers a zoo, a folder of models with a list: one version of lab-linear, and two of lab-mlp.

    Versions are sorted as numbers: 0.9.0 comes before 0.10.0.
    """
    entries = read_zoo(server_of_zoo.url)

    labels = [entry.label for entry in entries]
    assert labels == ["lab-linear@1.0.0", "lab-mlp@0.9.0", "lab-mlp@0.10.0"]
    assert problems_of(server_of_zoo.url) == []


@pytest.mark.usefixtures("obstore")
def test_the_newest_version_of_a_model_is_pulled_to_the_byte(
    paths_of_linear_and_mlp, server_of_zoo, tmp_path
):
    """The server has the versions 0.9.0 and 0.10.0 of lab-mlp, from one file."""
    folder = tmp_path / "theirs"

    path = pull_model("lab-mlp", folder, zoo=server_of_zoo.url)

    assert path.read_bytes() == paths_of_linear_and_mlp["mlp"].read_bytes()
    assert [path.name for path in folder.iterdir()] == ["lab-mlp-0.10.0.model"]


@pytest.mark.usefixtures("obstore")
def test_pulling_reports_its_progress_up_to_all_bytes(paths_of_linear_and_mlp, server_of_zoo, tmp_path):
    """Progress is told as (bytes that are there, bytes of the file)."""
    progress = []

    def report(n_bytes, n_bytes_of_file):
        progress.append((n_bytes, n_bytes_of_file))

    pull_model("lab-mlp", tmp_path / "theirs", zoo=server_of_zoo.url, progress=report)

    n_bytes = paths_of_linear_and_mlp["mlp"].stat().st_size
    assert progress[-1] == (n_bytes, n_bytes)


@pytest.mark.usefixtures("obstore")
def test_a_model_by_name_predicts_as_its_file(
    paths_of_linear_and_mlp, unseen_film, server_of_zoo, monkeypatch
):
    """The variable OBYGAZE_ZOO says where models are looked for by name."""
    monkeypatch.setenv("OBYGAZE_ZOO", server_of_zoo.url)

    by_name = om.predict(om.load_model("lab-linear@1.0.0"), unseen_film)
    by_path = om.predict(om.load_model(paths_of_linear_and_mlp["linear"]), unseen_film)

    assert by_name.to_csv() == by_path.to_csv()


@pytest.mark.usefixtures("obstore")
def test_a_list_of_four_megabytes_is_refused(zoo_of_three_models, server_of_zoo):
    """The list of models in the folder that the server has is made longer by 4 MB of comments."""
    four_megabytes = b"#" * (4 << 20)
    with (zoo_of_three_models / LIST).open("ab") as file:
        file.write(four_megabytes)

    with pytest.raises(ModelError, match="more than"):
        read_zoo(server_of_zoo.url)


def test_an_entry_says_what_the_card_says(paths_of_linear_and_mlp, zoo_of_three_models):
    """The card in the model's file says what the model is; the list of a zoo repeats some of it.

    The first entry is of the model lab-linear, which was saved with a licence and the citation "us". Scores
    are listed with four decimals.
    """
    card = om.load_model(paths_of_linear_and_mlp["linear"]).card

    entry = read_zoo(zoo_of_three_models)[0]

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


def test_a_page_has_its_parts_in_order(zoo_of_three_models):
    """Each model in a zoo has a page for people. Of each part of it, one phrase is looked for.

    NOTES are what the lab wrote about its model.
    """
    page = (zoo_of_three_models / "lab-linear-1.0.0.md").read_text("utf-8")

    entry = read_zoo(zoo_of_three_models)[0]
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


def card_and_page_of_model(path, auc_low, p_skilled):
    """Return a model's card, and its page in a zoo, as if its evidence were these two numbers.

    They are the lower end of the interval of its AUC, and the probability that it is better than chance. The
    page has the interval also in its table of scores, beside their chance level .5.
    """
    data = path.read_bytes()
    file = audit("linear.model", data)
    evidence = file.card.evidence | {"auc_low": auc_low, "p_skilled": p_skilled}
    card = msgspec.structs.replace(file.card, evidence=evidence)
    entry = entry_of(card, data, name="lab-linear", version="1.0.0", page_sha256="")
    scores = [msgspec.structs.replace(score, low=auc_low, chance=0.5) for score in entry.scores]
    page = model_page(msgspec.structs.replace(entry, scores=scores), replace(file, card=card))
    return card, page


@pytest.mark.parametrize(("p_skilled", "may_be_chance"), [(0.95, False), (0.6, True)])
def test_the_page_of_a_model_warns_of_chance_exactly_if_its_predictions_do(
    paths_of_linear_and_mlp, p_skilled, may_be_chance
):
    """Predictions of a model without skill are flagged (`card.no_skill`), and its page warns in words.

    The interval of the model's AUC begins at .4, below chance. Even so both count it as skilled if it is so
    with a probability of .95, and both don't with one of .6.
    """
    card, page = card_and_page_of_model(paths_of_linear_and_mlp["linear"], auc_low=0.4, p_skilled=p_skilled)

    assert card.no_skill is may_be_chance
    assert ("may be no better than chance" in page) is may_be_chance
    assert "interval of its AUC within a film" in page


def test_a_model_is_described_by_its_page_in_the_zoo(zoo_of_three_models):
    """A zoo is a folder of models with a list. Beside each model's file lies a page for people."""
    _, description = describe_model("lab-linear", zoo_of_three_models)

    assert description == (zoo_of_three_models / "lab-linear-1.0.0.md").read_text("utf-8")


def test_a_models_file_is_described_without_a_zoo(paths_of_linear_and_mlp):
    """The page is made of the file. Each page says for what a model must not be used."""
    _, description = describe_model(str(paths_of_linear_and_mlp["mlp"]))

    assert "must not be used" in description


def test_a_model_of_which_a_byte_was_flipped_on_the_way_is_not_pulled(server_of_zoo, tmp_path):
    """The server flips a byte of every model that it sends."""
    server_of_zoo.damaged_files.add(".model")

    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=server_of_zoo.url)

    assert not (tmp_path / "theirs" / "lab-linear-1.0.0.model").exists()


def test_a_model_of_which_a_byte_was_flipped_on_the_way_is_not_loaded(server_of_zoo):
    """The server flips a byte of every model that it sends."""
    server_of_zoo.damaged_files.add(".model")

    with pytest.raises(ModelError):
        om.load_model("lab-linear", zoo=server_of_zoo.url)


def test_models_of_which_a_byte_was_flipped_are_found_by_verifying(server_of_zoo):
    """The server flips a byte of every model that it sends."""
    server_of_zoo.damaged_files.add(".model")
    assert problems_of(server_of_zoo.url) == ["lab-linear@1.0.0", "lab-mlp@0.9.0", "lab-mlp@0.10.0"]


@pytest.mark.long
def test_a_pull_that_breaks_off_resumes_where_it_stopped(
    zoo_of_three_models, server_of_zoo, tmp_path, monkeypatch
):
    """The server's next 100 answers break off, which is more than a pull (download) tries.

    So the first pull fails, and leaves the bytes that it got. Then the server is sound, and the second pull
    asks for the bytes from there on.
    """
    monkeypatch.setattr(objects, "FIRST_WAIT_S", 0.001)  # between two attempts
    content = (zoo_of_three_models / "lab-linear-1.0.0.model").read_bytes()
    folder = tmp_path / "theirs"

    server_of_zoo.n_breaks_left[".model"] = 100
    with pytest.raises(ModelError):
        pull_model("lab-linear", folder, zoo=server_of_zoo.url)
    (partial,) = [path for path in folder.rglob("*") if path.is_file()]
    n_bytes_at_the_stop = partial.stat().st_size
    assert 0 < n_bytes_at_the_stop < len(content)

    server_of_zoo.n_breaks_left.clear()
    pulled = pull_model("lab-linear", folder, zoo=server_of_zoo.url)
    ranges_asked_for = [ranges for _, path, ranges in server_of_zoo.requests if path.endswith(".model")]
    assert ranges_asked_for[-1].startswith(f"bytes={n_bytes_at_the_stop}-")
    assert pulled.read_bytes() == content
    assert [path.name for path in folder.iterdir()] == ["lab-linear-1.0.0.model"]


def test_an_undamaged_file_of_another_model_than_the_listed_one_is_refused(zoo_of_three_models, tmp_path):
    """A zoo lists each model's file with its size and digest. Somebody put another model's file in its place.

    The file of lab-linear is that of lab-mlp. Its own digests are right, and so is the listed size, which is
    that of lab-mlp here: by the listed digest alone, which is of the bytes of lab-linear, it can be told.
    """
    linear = find_entry("lab-linear", zoo_of_three_models)
    mlp = find_entry("lab-mlp", zoo_of_three_models)
    shutil.copy(zoo_of_three_models / mlp.file, zoo_of_three_models / linear.file)
    linear_with_size_of_mlp = msgspec.structs.replace(linear, octets=mlp.octets)
    (zoo_of_three_models / LIST).write_bytes(write_list([linear_with_size_of_mlp]))

    with pytest.raises(ModelError, match="digest"):
        om.load_model("lab-linear", zoo=zoo_of_three_models)
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo_of_three_models)
    assert problems_of(zoo_of_three_models) == ["lab-linear@1.0.0"]


@pytest.fixture
def zoo_with_a_model_of_64_mb(zoo_of_three_models):
    """A zoo in which the file of lab-linear has zeros behind it, and is far longer than its list says."""
    os.truncate(zoo_of_three_models / "lab-linear-1.0.0.model", 64 << 20)
    return zoo_of_three_models


def test_a_file_longer_than_listed_is_not_loaded(zoo_with_a_model_of_64_mb):
    """The file of lab-linear in the zoo has zeros behind it, up to 64 MB."""
    with pytest.raises(ModelError):
        om.load_model("lab-linear", zoo=zoo_with_a_model_of_64_mb)


def test_pulling_a_file_longer_than_listed_stops_soon_after_that_size(zoo_with_a_model_of_64_mb, tmp_path):
    """Of the 64 MB, less than 16 are left behind."""
    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo_with_a_model_of_64_mb)

    files = [path for path in (tmp_path / "theirs").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 16 << 20


def contents_of(folder):
    """Read all files of a folder, {name: bytes}."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("model", "name", "version", "notes"),
    [
        ("mlp", "lab-linear", "1.0.0", NOTES),
        ("linear", "lab-linear", "1.0.0", "For hiring."),
        ("linear", "Lab Linear", "1.0.0", NOTES),
        ("linear", "lab-linear", "one", NOTES),
        ("linear", "Nul", "1.0.0", NOTES),
    ],
    ids=[
        "another model of a version",
        "other notes of a version",
        "a name with spaces",
        "a version in words",
        "a name that Windows keeps",
    ],
)
def test_a_push_that_is_refused_changes_nothing(
    paths_of_linear_and_mlp, zoo_of_three_models, model, name, version, notes
):
    """The zoo has version 1.0.0 of lab-linear, with `NOTES` of the lab. A version is never replaced."""
    before = contents_of(zoo_of_three_models)

    with pytest.raises(ModelError):
        push_model(paths_of_linear_and_mlp[model], zoo_of_three_models, name, version, notes=notes)

    assert contents_of(zoo_of_three_models) == before


def test_pushing_the_same_model_again_changes_nothing(paths_of_linear_and_mlp, zoo_of_three_models):
    """The zoo has this version of lab-linear, with the same notes."""
    before = contents_of(zoo_of_three_models)

    entry = push_model(
        paths_of_linear_and_mlp["linear"], zoo_of_three_models, "lab-linear", "1.0.0", notes=NOTES
    )

    assert entry.label == "lab-linear@1.0.0"
    assert contents_of(zoo_of_three_models) == before


def test_pushing_the_same_model_again_writes_a_page_that_was_lost(
    paths_of_linear_and_mlp, zoo_of_three_models
):
    """Beside each model's file in the zoo lies a page. That of lab-linear is removed."""
    before = contents_of(zoo_of_three_models)
    (zoo_of_three_models / "lab-linear-1.0.0.md").unlink()
    assert problems_of(zoo_of_three_models) == ["lab-linear@1.0.0"]

    entry = push_model(
        paths_of_linear_and_mlp["linear"], zoo_of_three_models, "lab-linear", "1.0.0", notes=NOTES
    )

    assert entry.label == "lab-linear@1.0.0"
    assert contents_of(zoo_of_three_models) == before


def test_pulling_again_removes_what_a_killed_pull_has_left(zoo_of_three_models, tmp_path):
    """A pull keeps what it has in a folder beside the file, which is there until it ends."""
    path = pull_model("lab-linear", tmp_path / "copies", zoo=zoo_of_three_models)
    left_by_a_killed_pull = path.with_name(f"{path.name}{PARTIAL_SUFFIX}")
    left_by_a_killed_pull.mkdir()

    assert pull_model("lab-linear", tmp_path / "copies", zoo=zoo_of_three_models) == path
    assert not left_by_a_killed_pull.exists()


def test_pulling_replaces_no_other_file_of_the_models_name(zoo_of_three_models, tmp_path):
    """The user wrote something of their own into the file that a pull has made."""
    path = pull_model("lab-linear", tmp_path / "copies", zoo=zoo_of_three_models)
    path.write_bytes(b"mine")

    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path / "copies", zoo=zoo_of_three_models)
    assert path.read_bytes() == b"mine"


@pytest.mark.skipif(
    os.environ.get("SIMULATED", os.name) in {"windows", "nt"},
    reason="making links needs a permission on Windows",
)
@pytest.mark.parametrize("target", ["/dev/zero", "elsewhere.toml", "nowhere"])
def test_a_list_that_is_a_link_is_refused_as_a_link(zoo_of_three_models, tmp_path, target):
    """The link leads to an endless device, to a sound list, or nowhere."""
    (tmp_path / "elsewhere.toml").write_bytes((zoo_of_three_models / LIST).read_bytes())
    (zoo_of_three_models / LIST).unlink()
    (zoo_of_three_models / LIST).symlink_to(tmp_path / target)

    with pytest.raises(ModelError, match="a link"):
        read_zoo(zoo_of_three_models)


def test_a_models_file_may_be_a_link_in_its_list(zoo_of_three_models, tmp_path):
    """The file lies elsewhere, and in the zoo is a link to it. What is pulled is the file, no link."""
    path = zoo_of_three_models / "lab-linear-1.0.0.model"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")  # as git-annex and caches of the Hub do

    pulled = pull_model("lab-linear", tmp_path / "copies", zoo=zoo_of_three_models)

    assert not pulled.is_symlink()
    assert pulled.read_bytes() == path.read_bytes()


MODEL_WITHOUT_PARAMETERS = model_file_with_card(licence="MIT", parameters={})


def list_alone(zoo, data, name):
    """Let a zoo list one model alone, given the bytes of its file; the list has the file's true digest."""
    empty_page = b""
    card = audit("model", data).card
    entry = entry_of(card, data, name, version="1.0.0", page_sha256=sha256_of(empty_page))
    (zoo / entry.file).write_bytes(data)
    (zoo / entry.page).write_bytes(empty_page)
    (zoo / LIST).write_bytes(write_list([entry]))


def test_verifying_a_zoo_finds_a_model_that_cannot_be_made_although_its_digest_is_right(zoo_of_three_models):
    """A zoo lists a perceptron whose file has the listed digest, but whose card has no parameters.

    So the model can't be made of it. The problem that is reported names a parameter that is missing.
    """
    list_alone(zoo_of_three_models, MODEL_WITHOUT_PARAMETERS, "lab-none")

    ((_entry, problem),) = verify_models(zoo_of_three_models)

    assert "n_epochs" in problem


def test_the_command_prints_each_listed_model_with_what_is_wrong_with_it(zoo_of_three_models, capsys):
    """One of three models lacks its last byte. The command ends with code 3."""
    damaged = zoo_of_three_models / "lab-linear-1.0.0.model"
    damaged.write_bytes(damaged.read_bytes()[:-1])

    code = obygaze("model", "verify", "--zoo", zoo_of_three_models, "--json")

    assert code == 3
    records = json.loads(capsys.readouterr().out)["models"]
    labels = [record["model"] for record in records]
    assert labels == ["lab-linear@1.0.0", "lab-mlp@0.9.0", "lab-mlp@0.10.0"]
    assert [record["model"] for record in records if record["problem"]] == ["lab-linear@1.0.0"]


def test_verifying_finds_a_list_that_says_another_licence_than_the_card(zoo_of_three_models):
    """The licence of the first model, lab-linear, is changed in the list from CC-BY-4.0 to MIT."""
    text = (zoo_of_three_models / LIST).read_text("utf-8")
    with_other_licence = text.replace('licence = "CC-BY-4.0"', 'licence = "MIT"', 1)
    (zoo_of_three_models / LIST).write_text(with_other_licence, "utf-8")

    assert problems_of(zoo_of_three_models) == ["lab-linear@1.0.0"]


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
def test_a_list_that_was_changed_into_an_invalid_one_is_refused(zoo_of_three_models, before, after):
    """In the text of a list of lab-linear and lab-mlp, `before` is replaced by `after`.

    Both have a version 1.0.0 here, so that renaming lab-linear to lab-mlp lists one model twice.
    """
    text = (zoo_of_three_models / LIST).read_text("utf-8").replace("0.9.0", "1.0.0")
    assert before in text
    (zoo_of_three_models / LIST).write_text(text.replace(before, after), "utf-8")

    with pytest.raises(ModelError):
        read_zoo(zoo_of_three_models)


def test_a_model_is_found_by_its_version_or_as_the_newest(zoo_of_three_models):
    """The zoo has the versions 0.9.0 and 0.10.0 of lab-mlp."""
    assert find_entry("lab-mlp", zoo_of_three_models).version == "0.10.0"
    assert find_entry("lab-mlp@0.9.0", zoo_of_three_models).version == "0.9.0"


@pytest.mark.parametrize("name", ["lab-mpl", "lab-mlp@2.0.0"])
def test_a_name_or_version_that_is_not_listed_is_refused(zoo_of_three_models, name):
    """The zoo has the versions 0.9.0 and 0.10.0 of lab-mlp, and lab-linear."""
    with pytest.raises(ModelError):
        find_entry(name, zoo_of_three_models)


def test_a_file_in_the_working_folder_comes_before_a_listed_model_of_its_name(
    paths_of_linear_and_mlp, zoo_of_three_models, tmp_path, monkeypatch
):
    """The zoo lists lab-linear, a linear model. A file of this name in the working folder holds an mlp."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(paths_of_linear_and_mlp["mlp"], "lab-linear")

    model = om.load_model("lab-linear", zoo=zoo_of_three_models)

    assert model.card.model == "mlp"


def test_without_a_setting_the_zoo_is_the_one_of_the_package(monkeypatch):
    """The variable OBYGAZE_ZOO would say where models are looked for by name.

    Without it, they are looked for in the folder `zoo` of the installed package.
    """
    monkeypatch.delenv("OBYGAZE_ZOO", raising=False)

    assert default_zoo().endswith("zoo")


def test_a_model_without_a_licence_is_not_shared(tmp_path):
    """A model without a licence is pushed to a zoo that doesn't exist yet: not even its folder is made."""
    zoo = tmp_path / "zoo"

    with pytest.raises(ModelError):
        push_model(MODEL_WITHOUT_LICENCE, zoo, "mine")

    assert not zoo.exists()


def test_a_model_without_parameters_is_not_shared(tmp_path):
    """A model's file has a licence, but no parameters, such as the number of its hidden units.

    Nobody could make the model of it. It is pushed to a zoo that doesn't exist yet: not even its folder is
    made.
    """
    zoo = tmp_path / "zoo"
    model = tmp_path / "none.model"
    model.write_bytes(MODEL_WITHOUT_PARAMETERS)

    with pytest.raises(ModelError):
        push_model(model, zoo, "mine")

    assert not zoo.exists()


def test_a_model_cannot_be_pushed_over_http(paths_of_linear_and_mlp):
    """Models can be pulled over HTTP, and pushed to a folder, a bucket or the Hub."""
    with pytest.raises(ModelError):
        push_model(paths_of_linear_and_mlp["linear"], "http://127.0.0.1:9/zoo", "linear")


def pause(monkeypatch, module, function):
    """Have a function of a module wait whenever it is called.

    Returned are two events: the first is set once it was called, and it goes on once the second is set.
    """
    is_called = threading.Event()
    may_go_on = threading.Event()
    without_pause = getattr(module, function)

    def with_pause(*arguments):
        is_called.set()
        may_go_on.wait(60)
        return without_pause(*arguments)

    monkeypatch.setattr(module, function, with_pause)
    return is_called, may_go_on


def test_a_second_pull_while_the_first_still_downloads_is_refused(zoo_of_three_models, tmp_path, monkeypatch):
    """Two pulls (downloads) of one model into one folder must not write the same file.

    The first, in a thread, waits at the begin of its download until the second has been refused. Then it
    ends well.
    """
    first_downloads, first_may_go_on = pause(monkeypatch, sharing, "download_file")
    first = threading.Thread(
        target=pull_model, args=("lab-linear", tmp_path), kwargs={"zoo": zoo_of_three_models}
    )
    first.start()
    first_downloads.wait(60)

    with pytest.raises(ModelError):
        pull_model("lab-linear", tmp_path, zoo=zoo_of_three_models)

    first_may_go_on.set()
    first.join()
    assert (tmp_path / "lab-linear-1.0.0.model").is_file()


def thread_that_pushes(model, name, zoo, names_refused):
    """A thread that pushes a model to a zoo under a name, and adds the name to a list if it is refused."""

    def push():
        try:
            push_model(model, zoo, name)
        except ModelError:
            names_refused.append(name)

    return threading.Thread(target=push)


def test_of_two_models_that_are_pushed_under_one_name_at_once_the_later_one_is_refused(
    paths_of_linear_and_mlp, tmp_path, monkeypatch
):
    """While `linear` is being written to an empty zoo as a, `mlp` is pushed as b and as a.

    Names of a zoo are unique: although no model a was there yet when `mlp` was pushed as a, this push is
    refused. The other two are done. The first push is stopped in the function that writes its file, until the
    others have begun.
    """
    zoo = tmp_path / "zoo"
    names_refused = []
    push_of_linear_as_a = thread_that_pushes(paths_of_linear_and_mlp["linear"], "a", zoo, names_refused)
    push_of_mlp_as_b = thread_that_pushes(paths_of_linear_and_mlp["mlp"], "b", zoo, names_refused)
    push_of_mlp_as_a = thread_that_pushes(paths_of_linear_and_mlp["mlp"], "a", zoo, names_refused)

    first_file_is_being_written, writing_may_go_on = pause(monkeypatch, objects, "write_once")
    push_of_linear_as_a.start()
    first_file_is_being_written.wait(60)
    push_of_mlp_as_b.start()
    push_of_mlp_as_a.start()
    writing_may_go_on.set()
    for push in (push_of_linear_as_a, push_of_mlp_as_b, push_of_mlp_as_a):
        push.join()

    assert [entry.label for entry in read_zoo(zoo)] == ["a@1.0.0", "b@1.0.0"]
    assert (zoo / "a-1.0.0.model").read_bytes() == paths_of_linear_and_mlp["linear"].read_bytes()
    assert names_refused == ["a"]


def test_a_listed_file_that_is_no_model_is_not_pulled(zoo_of_three_models, tmp_path):
    """The list has the right size and digest of the file, which is a text."""
    no_model = b"import os" * 99
    entry = find_entry("lab-linear", zoo_of_three_models)
    listed = msgspec.structs.replace(entry, sha256=sha256_of(no_model), octets=len(no_model))
    (zoo_of_three_models / LIST).write_bytes(write_list([listed]))
    (zoo_of_three_models / entry.file).write_bytes(no_model)

    with pytest.raises(ModelError, match=entry.file):
        pull_model("lab-linear", tmp_path / "theirs", zoo=zoo_of_three_models)

    assert list((tmp_path / "theirs").iterdir()) == []


@pytest.fixture
def edited_page(zoo_of_three_models):
    """The page of lab-linear in the zoo, in which somebody changed the licence."""
    page = zoo_of_three_models / "lab-linear-1.0.0.md"
    page.write_text(page.read_text("utf-8").replace("cc-by-4.0", "cc0-1.0"), "utf-8")
    return page


@pytest.mark.usefixtures("edited_page")
def test_an_edited_page_is_found_by_verifying(zoo_of_three_models):
    """Somebody changed the licence in the page of lab-linear."""
    assert problems_of(zoo_of_three_models) == ["lab-linear@1.0.0"]


def test_an_edited_page_is_not_shown(zoo_of_three_models, edited_page):
    """Somebody changed the licence in the page of lab-linear, so that it is not what its digest says."""
    with pytest.raises(ModelError, match=edited_page.name):
        describe_model("lab-linear", zoo_of_three_models)


@pytest.mark.usefixtures("edited_page")
def test_an_edited_page_is_not_replaced_by_a_push(zoo_of_three_models, paths_of_linear_and_mlp):
    """Somebody changed the licence in the page of lab-linear. The same model is pushed again."""
    with pytest.raises(ModelError):
        push_model(paths_of_linear_and_mlp["linear"], zoo_of_three_models, "lab-linear", notes=NOTES)


def test_a_file_that_is_not_listed_is_not_replaced_by_a_push(zoo_of_three_models, paths_of_linear_and_mlp):
    """The zoo has a file new-1.0.0.model, of another tool or of a push that was killed.

    It is the file in which a push of the name `new` would put its model.
    """
    unlisted = zoo_of_three_models / "new-1.0.0.model"
    unlisted.write_bytes(b"of another tool")

    with pytest.raises(ModelError, match=unlisted.name):
        push_model(paths_of_linear_and_mlp["linear"], zoo_of_three_models, "new")

    assert unlisted.read_bytes() == b"of another tool"
    assert "new" not in (zoo_of_three_models / LIST).read_text("utf-8")


# --- elsewhere
# ---------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.usefixtures("bucket")
def test_models_are_pushed_listed_verified_and_pulled_on_s3(paths_of_linear_and_mlp, tmp_path):
    """The bucket is of a server of S3 on this machine, and is empty before."""
    zoo = "s3://bucket/zoo"

    push_model(paths_of_linear_and_mlp["linear"], zoo, "linear")
    push_model(paths_of_linear_and_mlp["mlp"], zoo, "mlp")

    assert [entry.label for entry in read_zoo(zoo)] == ["linear@1.0.0", "mlp@1.0.0"]
    assert problems_of(zoo) == []
    assert pull_model("mlp", tmp_path, zoo=zoo).read_bytes() == paths_of_linear_and_mlp["mlp"].read_bytes()


def let_another_lab_push(linear_model, zoo, names, monkeypatch):
    """Let another lab push a model to a zoo on S3 under these names, each time at the worst moment.

    A push reads the list of the zoo, and then writes it with one model more. After each reading the other lab
    pushes `linear_model` under the next name, so that the list that was read is out of date.
    """
    names_to_come = list(names)
    read_tagged = ObstoreFiles.read_tagged

    def read_and_let_another_lab_push(files, name, *most, **part):
        try:
            return read_tagged(files, name, *most, **part)
        finally:
            if names_to_come:
                push_model(linear_model, zoo, names_to_come.pop(0), "1.0.0")

    monkeypatch.setattr(ObstoreFiles, "read_tagged", read_and_let_another_lab_push)


@pytest.mark.long
@pytest.mark.usefixtures("bucket")
def test_a_push_to_s3_is_repeated_until_no_other_lab_pushed_meanwhile(paths_of_linear_and_mlp, monkeypatch):
    """A push reads the list of a zoo on S3, and writes it with its model added.

    We push `mlp` as a. Twice another lab pushes `linear` between our reading and writing: as b, and as c. Our
    push begins anew each time, and in the end all three models are listed.
    """
    zoo = "s3://bucket/pushed-at-once"
    let_another_lab_push(paths_of_linear_and_mlp["linear"], zoo, ["b", "c"], monkeypatch)

    push_model(paths_of_linear_and_mlp["mlp"], zoo, "a")

    labels = [entry.label for entry in read_zoo(zoo)]
    assert labels == ["a@1.0.0", "b@1.0.0", "c@1.0.0"]
    assert problems_of(zoo) == []


@pytest.mark.usefixtures("bucket")
def test_a_push_to_s3_is_refused_if_another_lab_took_its_name_meanwhile(paths_of_linear_and_mlp, monkeypatch):
    """A push reads the list of a zoo on S3, and writes it with its model added.

    We push `mlp` as a. Between our reading and writing another lab pushes `linear` as a: that model stays.
    """
    zoo = "s3://bucket/pushed-as-a"
    let_another_lab_push(paths_of_linear_and_mlp["linear"], zoo, ["a"], monkeypatch)

    with pytest.raises(ModelError):
        push_model(paths_of_linear_and_mlp["mlp"], zoo, "a")

    assert problems_of(zoo) == []
    assert om.load_model("a", zoo=zoo).card.model == "linear"


PUSH_AND_LOAD_ON_THE_HUB = """
import sys
from obygaze_models import load_model, push_model
print(push_model(sys.argv[1], "hf://datasets/lab/films", "linear").label)
print(load_model("linear", zoo="hf://datasets/lab/films").card.model)
"""


@pytest.mark.long
@pytest.mark.nightly
def test_a_push_to_the_hub_is_repeated_when_others_committed_meanwhile(paths_of_linear_and_mlp, tmp_path):
    """A server stands for the Hub. It refuses the first two commits, as if others had committed before.

    `PUSH_AND_LOAD_ON_THE_HUB` pushes a model and loads it again, in a process of its own, as the Hub's client
    reads its settings when it is imported. Each commit must name the one that it builds on, its parent, by
    which the Hub knows whether others committed meanwhile: here always `COMMIT`, the server's only one.
    """
    pytest.importorskip("huggingface_hub")
    (tmp_path / "hub").mkdir()

    with serving(tmp_path / "hub", HubHandler) as hub:
        hub.n_commits_to_refuse = 2
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_dont_tell"}
        process = python(
            "-c", PUSH_AND_LOAD_ON_THE_HUB, paths_of_linear_and_mlp["linear"], env={**os.environ, **settings}
        )
        parents_of_commits = {commit for kind, commit, _ in hub.requests if kind == "PARENT"}

    n_commits_that_are_still_refused = hub.n_commits_to_refuse
    assert n_commits_that_are_still_refused == 0
    assert parents_of_commits == {COMMIT}
    label_of_push, model_of_card = process.stdout.split()
    assert label_of_push == "linear@1.0.0"
    assert model_of_card == "linear"
    files = {path.name for path in (tmp_path / "hub").iterdir()}
    assert files == {"linear-1.0.0.md", "linear-1.0.0.model", LIST}
