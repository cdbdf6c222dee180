"""No command writes or prints a path of the machine that nobody typed, or a secret.

Every command of the contents has a case: one that is added without fails.
"""

import json
import re
import shutil

import click
import numpy as np
import pytest

from obygaze.cli import main, table_of_contents
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_features.store.testing import seal_arrays
from tests.cli import private_inputs
from tests.film.films import film_store, train
from tests.private import MARK, SECRETS, WORDS, files_below, marked

pytest.importorskip("av")

URL = "https://mark5user:mark6password@127.0.0.1:9/films-1.0.0?token=mark2secret"

CASES = {
    "demo": "--out in/films.csv",
    "manifest import eaf": "in/nothing.eaf --out out/a.csv",
    "manifest import film": "in/video.mp4 --window 1 --shots none --out out/windows.csv",
    "manifest import folder": "in/videos --out in/videos.csv",
    "manifest import images": "in/images --out out/images.csv",
    "manifest import judgements": "out/next.csv --codebook in/violence.codebook.toml --out out/judged.csv",
    "manifest import mediaeval15": "in/videos --out out/b.csv",
    "manifest import mobygaze": "in/videos --out out/c.csv",
    "manifest import obygaze12": "in/videos --out out/d.csv",
    "manifest inspect": "in/films.csv",
    "manifest project": "in/films.csv --window 4 --out out/windowed.csv",
    "manifest agreement": "in/films.csv",
    "manifest stats": "in/twelve.csv --figure out/stats.png",
    "codebook show": "in/violence.codebook.toml",
    "codebook check": "in/violence.codebook.toml",
    "codebook init": "--out out/mine.toml",
    "doctor": "out/store --json",
    "frames": "in/video.mp4 --n 2 --npz out/frames.npz --sheet out/sheet.png",
    "extract": "in/videos.csv out/videos --n 2 --workers 1 --licence CC0-1.0 --no-seal",
    "train xclip-lsmdc": "--clip in/nothing --annotations in/films.csv --videos in/videos --out out/train",
    "gradcam": "in/films.csv --prompts in/films.csv --out out/maps --network in/nothing",
    "store ls": "in",
    "store seal": "out/videos --licence CC0-1.0",
    "store inspect": "out/videos",
    "store verify": "in/films-1.0.0 --full",
    "store diff": "in/films-1.0.0 in/m-1.0.0",
    "store merge": "in/films-1.0.0 in/m-1.0.0 --corpus both --out out/both",
    "store export": "in/films-1.0.0 out/films.h5 --to hdf5",
    "store import": "in/films.csv in/rows.npy out/imported --from table --ids in/ids.txt --backbone lab --licence CC0-1.0",  # noqa: E501
    "store card": "in/films-1.0.0 --out out/card",
    "store pack": "in/films-1.0.0 --out out/films.zip",
    "store unpack": "out/films.zip --out out/unpacked-1.0.0",
    "store pull": "in/films-1.0.0 out/part-1.0.0 --arrays pooled",
    "store push": "in/films-1.0.0 out/pushed-1.0.0",
    "store rm": "out/unpacked-1.0.0 --yes",
    "store gc": "out --yes",
    "weights fetch": "nothing",
    "weights verify": f"in/video.mp4 --sha256 {'0' * 64}",
    "lm": "in/texts.csv --model in/nothing --out out/lm.csv",
    "folds": "in/films.csv --task calm_violent",
    "evaluate": "in/films.csv in/films-1.0.0 --task calm_violent --model linear --save linear --out out/run --html out/run.html",  # noqa: E501
    "compare": "out/run out/run --model linear --against positive --out out/compared",
    "paper all": "in/films.csv in/films-1.0.0 --out out/all",
    "paper table2": "in/twelve.csv in/twelve-1.0.0 --out out/table2",
    "paper table4": "in/twelve.csv in/twelve-1.0.0 --out out/table4",
    "paper figure2": "in/twelve.csv --out out/figure2 --html out/figure2.html",
    "paper figure3": "in/twelve.csv in/twelve-1.0.0 --out out/figure3",
    "paper figure5": "in/twelve.csv in/twelve-1.0.0 --out out/figure5",
    "paper figure6": "in/twelve.csv in/twelve-1.0.0 --out out/figure6",
    "audit eat": "--out out/eat.csv",
    "audit eat prompts": "--out out/prompts.csv",
    "audit words": "--captions in/captions.csv --items in/images.csv --out out/words.csv",
    "audit alpha": "--ratings in/ratings.csv --out out/alpha.csv --figure out/alpha.pdf --html out/alpha.html",  # noqa: E501
    "audit saliency": "--maps in/nothing --out out/saliency.csv",
    "audit gender-score": "--captions in/captions.csv --objects in/objects.csv --list-texts out/texts.csv",
    "audit cooc": "--captions in/captions.csv --objects-list in/objects.txt --out out/cooc.csv",
    "audit objects": "--objects-list in/objects.txt --list-texts out/object-texts.csv",
    "audit text-directions": "in/films.csv in/films-1.0.0 --texts in/m-1.0.0 --out out/directions.csv",
    "codebook texts": "in/violence.codebook.toml --out out/concept-texts.csv",
    "film thumbnails": "in/video.mp4 --scored out/scored --out out/thumbnails",
    "localise": "in/films.csv in/films.csv --positive violent --out out/localised",
    "manifest sheets": "in/films.csv --out out/sheets --n 1",
    "paper claims": "--out out/claims",
    "paper figure4": "in/films.csv --movie f0 --out out/figure4",
    "search": "in/films-1.0.0 gun",
    "task mediaeval15 labels": "in/films.csv --out out/labels.csv",
    "task mediaeval15 train": "in/films.csv in/films-1.0.0 --subtask violence --run 1 --out out/runs",
    "task mediaeval15 score": "--truth in/films.csv --run in/films.csv --out out/score",
    "task mediaeval15 check": "in --truth in/films.csv",
    "film run": "in/video.mp4 --model out/run/linear.model --window 1 --hop 1 --shots none --out in/ran --workers 1",  # noqa: E501
    "film score": "in/pcbm_lr.model in/m-1.0.0 --out out/scored",
    "film report": "out/scored --out out/film.html",
    "film export": "out/scored --as csv --out out/film.csv",
    "film evaluate": "out/scored --truth in/truth.csv --out out/agreement",
    "film next": "out/scored --n 4 --codebook in/violence.codebook.toml --out out/next.csv",
    "film rate": "out/scored out/next.csv",
    "predict": "in/pcbm_lr.model in/films-1.0.0 --out out/predictions.csv",
    "explain": "in/pcbm_lr.model in/films-1.0.0 --clip f0-03",
    "model inspect": "in/pcbm_lr.model",
}
"""Command -> its arguments; each path begins with in/ or out/."""

MADE = {
    "codebook init",
    "evaluate",
    "extract",
    "film evaluate",
    "film export",
    "film next",
    "film report",
    "film score",
    "frames",
    "manifest import film",
    "manifest import folder",
    "manifest stats",
    "paper claims",
    "paper figure2",
    "paper figure3",
    "paper figure5",
    "paper figure6",
    "paper table2",
    "paper table4",
    "predict",
    "store card",
    "store export",
    "store import",
    "store pack",
    "store pull",
    "store push",
    "store seal",
    "audit eat prompts",
}
"""The cases that must succeed; others may end in a message, which is looked through too."""


def every_command():
    def below(group, context, names):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if not isinstance(command, click.Group) or command.invoke_without_command:
                yield " ".join([*names, name])
            if isinstance(command, click.Group):
                yield from below(
                    command, click.Context(command, info_name=name, parent=context), [*names, name]
                )

    root = table_of_contents()
    return list(below(root, click.Context(root, info_name="obygaze"), []))


def test_every_command_has_a_case():
    assert sorted(every_command()) == sorted(CASES)


def told(words, capfd):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    out, err = capfd.readouterr()
    return left.value.code or 0, out + err


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of marked name with a little of everything."""
    import av

    root = tmp_path_factory.mktemp("private") / MARK
    given = root / "in"
    (given / "videos" / "m1").mkdir(parents=True)
    (given / "images").mkdir()
    (root / "out").mkdir()
    trained = train(given)
    write_manifest(trained.manifest, given / "films.csv")
    shutil.copy(trained.paths["pcbm_lr"], given)
    film_store(given, "m", end_s=120.0)
    truth = [Clip(f"m-{n}", "m", "", 20.0 * n, 20.0 * n + 20, ("calm", "violent")[n % 2]) for n in range(6)]
    write_manifest(Manifest(tuple(truth), given, trained.manifest.codebook), given / "truth.csv")
    rng = np.random.default_rng(0)
    concepts = builtin_codebook("obygaze12").visual_concepts
    clips = [
        Clip(f"t{m}-{n:02}", f"t{m}", level=("EN", "HN", "S")[n % 3], concepts=concepts[: n % 3 * 2])
        for m in range(3)
        for n in range(9)
    ]
    write_manifest(Manifest(tuple(clips), given), given / "twelve.csv")
    rows = {"descriptors": {"pooled": rng.normal(size=(len(clips), 6)).astype(np.float32)}}
    seal_arrays(given / "twelve", {clip.clip_id: clip.movie for clip in clips}, rows)
    ids = [clip.clip_id for clip in trained.manifest]
    np.save(given / "rows.npy", rng.normal(size=(len(ids), 3)).astype(np.float32))
    (given / "ids.txt").write_text("\n".join(ids) + "\n")
    (given / "texts.csv").write_text("text_id,text\na,a man\n")
    (given / "captions.csv").write_text("caption_id,image_id,caption\na,i,a sad man\nb,i,a happy woman\n")
    (given / "objects.csv").write_text("image_id,object,confidence\ni,dog,0.9\n")
    (given / "objects.txt").write_text("dog\n")
    (given / "images.csv").write_text("image_id,group\ni,a\n")
    (given / "ratings.csv").write_text("item,a,b\n1,1,1\n2,0,1\n3,1,0\n4,0,0\n")
    with av.open(str(given / "video.mp4"), "w") as film:
        stream = film.add_stream("mpeg4", rate=8)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for n in range(32):
            picture = rng.integers(0, 255, (48, 64, 3), np.uint8) // (1 + n % 5)
            film.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        film.mux(stream.encode())
    shutil.copy(given / "video.mp4", given / "videos" / "m1" / "a.mp4")
    return root


def listen(command, words, place, capfd):
    """Run a command, which may say no secret and no path that was not typed; gives code and what it said."""
    words = [str(place / word) if word.startswith(("in/", "out/")) else word for word in words.split()]
    code, said = told([*re.sub(r" \d+$", "", command).split(), *words], capfd)
    assert not [word for word in WORDS if word in said], (command, said)
    flat = re.sub(r"\s+", " ", said.replace(json.dumps(MARK)[1:-1], MARK))
    for typed in sorted((word for word in words if MARK in word), key=len, reverse=True):
        flat = flat.replace(typed, "")
    # Files beside what was typed are named too, such as a codebook; never the folders above.
    flat = flat.replace(f"{place}/in", "").replace(f"{place}/out", "")
    assert MARK not in flat, (command, flat)
    return code, said


@pytest.fixture
def private(place, monkeypatch, capfd):
    """Stand in the marked folder, with marked secrets in the environment."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(place)
    capfd.readouterr()
    return place


@pytest.mark.long
def test_no_file_holds_a_path_and_no_output_one_that_was_not_typed(private, capfd):
    order = ["film score", "film next", *[name for name in CASES if name not in {"film score", "film next"}]]
    failed: dict[str, str] = {}
    for command in order:
        code, said = listen(command, CASES[command], private, capfd)
        if command in MADE and code not in {0, 3}:
            failed[command] = said
        assert command not in MADE or list((private / "out").iterdir())
    assert not failed
    files = files_below(private / "out", private / "in/ran")
    assert (private / "in/ran/film-run.json").is_file()
    assert len(files) > 100
    assert not marked(files)


@pytest.mark.long
@pytest.mark.usefixtures("grad_cam")
def test_networks_audits_tasks_and_tables_leave_no_path_either(private, monkeypatch, capfd):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(private / "in/hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    private_inputs.write(private / "in")
    monkeypatch.syspath_prepend(str(private / "in"))
    failed: dict[str, str] = {}
    for command, words in private_inputs.CASES.items():
        code, said = listen(command, words, private, capfd)
        if code:
            failed[command] = said
    assert not failed
    assert not marked(files_below(private / "out", private / "in/rerun"))


@pytest.mark.parametrize("command", CASES)
def test_no_password_of_a_url_is_echoed(command, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    found, context = table_of_contents(), click.Context(table_of_contents(), info_name="obygaze")
    for name in command.split():
        found = found.get_command(context, name)
        context = click.Context(found, info_name=name, parent=context)
    words = []
    for parameter in found.params:
        if isinstance(parameter, click.Argument) and (parameter.required or parameter.nargs == 1):
            words.append(URL)
        elif parameter.required and not isinstance(parameter.type, click.Choice):
            words += [parameter.opts[0], URL]
        elif parameter.required:
            words += [parameter.opts[0], parameter.type.choices[0]]
    if not words:
        words = ["--out", URL] if any("--out" in one.opts for one in found.params) else [URL]
    _, said = told([*command.split(), *words], capfd)
    assert not [word for word in WORDS if word in said]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or not [word for word in WORDS if word.encode() in path.read_bytes()], path
