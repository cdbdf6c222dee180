"""Inputs with which the commands of the table succeed, or are refused."""

import csv
import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image

from obygaze_features.backbones.weights import find_weights
from obygaze_features.exchange.publish import pack
from obygaze_features.manifest import (
    Clip,
    Manifest,
    builtin_codebook,
    concept_texts,
    import_folder,
    load_codebook,
    write_manifest,
)
from obygaze_features.store import ClipFeatures, ClipResult, PlannedClip, Stage, seal, staging_path
from obygaze_features.store.testing import seal_arrays, toy_group
from obygaze_film.score import score_film
from obygaze_studies.eat_stimuli import prompt_rows
from obygaze_studies.gender_score.priors import write_priors
from obygaze_studies.mediaeval15 import import_mediaeval15
from obygaze_studies.saliency.maps_file import SIDE, Maps, write_maps
from tests.film.films import MODELS, film_store
from tests.planted_models import corpus, make_shelf
from tests.studies.lsmdc.corpus import picture, tiny_clip, write_corpus, write_video
from tests.tiny_checkpoints import tiny_language_model, tiny_text_checkpoint
from tests.video.encoding import encode

SPACE = "xclip sha256:0123"
COMMIT = "0123456789abcdef" * 2 + "01234567"
FIELDS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
MAN, WOMAN = "an angry man with a shoe", "a sad woman with a shoe"
SWAPPED = (MAN.replace("man", "woman"), WOMAN.replace("woman", "man"))
TABLES = {
    "ids.txt": [f"f{film}-{place:02}" for film in range(6) for place in range(30)],
    "few.txt": ["f0-07", "f0-14"],
    "frames.csv": [
        "clip_id,frame,shown_ms,f0,f1,score",
        *("f0-07,2,500,0.5,1.5,9", "f0-00,1,0,1.5,0.5,9", "f0-07,1,0,2.5,3.5,9", "f0-07,3,1000,0.5,0.5,9"),
    ],
    "violet.toml": [
        'name = "violet"\nversion = "1"\nlevels = ["calm", "violent"]',
        '[tasks.t]\nnegative = ["calm"]\npositive = ["violet"]',
    ],
    "spans.csv": ["video;start_s;end_s;level", "m1/a.mp4;0,5;00:00:02,5;Sure"],
    "ratings.csv": ["movie;Anfang;Ende;Stufe", "f;0,5;2,5;S", "f;3;4;EN"],
    "wide.csv": ["movie,start_s,end_s,AB,CD", "f,0,2,S,EN", "f,3,4,EN,"],
    "codes.csv": ["video,start_s,end_s", "m1/a.mp4,00:00:01:00,00:00:02:12"],
    "fights.csv": [
        "clip_id,video,start_s,end_s,level,concepts",
        "1,m1/a.mp4,0,2,violent,Gun",
        "2,m1/a.mp4,2,4,unsure,",
    ],
    "same.csv": [FIELDS, "1,m,,0,1,S,,a", "2,m,,0,1,S,,b"],
    "years.csv": ["movie,year", "m,soon"],
    "facts.csv": ["movie,title,year", "m,The M,1931", "other,Other,"],
    "seen.csv": [f"{FIELDS},seen_score", "1,m,,40,48,violent,Gun,AB,0", "2,m,,80,88,calm,,AB,1"],
    "scenes.csv": [FIELDS, "s1,m0,,0,50,HN,,", "s2,z,,0,10,,,"],
    "ne.csv": [FIELDS, *(f"{movie},{movie},,0,9,{['EN', 'HN'][movie > 'b']},," for movie in "abcd")],
    "two.csv": [FIELDS, "m0-00,m0,,0,4,EN,,", "m1-01,m1,,0,4,S,,"],
    "oby.csv": ["idx;util;clip;label;overlap_ratio;concepts;id;movie;graph_number"],
    "texts.csv": ["text_id,text", "a,a man"],
    "tests.json": [
        '[{"name": "mine", "X": {"w": "n"}, "Y": {"w": "o"}, "A": ["sad person"], "B": ["person"]}]'
    ],
    "own.csv": ["item_id,w", "1_AN1_NO_1,n", "2_AN1_NO_1,n", "1_AN1_O_1,o", "2_AN1_O_1,o"],
    "roi.csv": ["image_id,roi,y0,x0,y1,x1", "i1,face,0,0,112,224", "i2,face,0,0,112,224"],
    "items.csv": ["image_id,emotion,level,condition", "i1,anger,high,NO", "i2,anger,high,O"],
    "captions.csv": ["caption_id,image_id,caption", f"c1,i1,{MAN}", f"c2,i2,{WOMAN}", "c3,i2,a dog"],
    "shoes.csv": ["caption_id,image_id,caption", f"c1,i1,{MAN}", f"c2,i2,{WOMAN}"],
    "many.csv": ["caption_id,image_id,caption", *(f"n{n},i1,a dog" for n in range(120)), f"s,i1,{MAN}"],
    "rated.csv": ["item_id,r1,r2,r3", "a,1,1,1", "b,0,0,1", "c,1,,0", "d,0,0,0"],
    "objects.csv": ["image_id,object,p_c", "i1,shoe,0.5", "i2,shoe,0.5"],
    "objects.txt": ["shoe", "cat"],
    "sims.csv": ["text,object,sim", *(f"{text},shoe,0.3" for text in (MAN, WOMAN, *SWAPPED))],
    "prompts.txt": ["a cat"],
    "declared.json": ['{"compute": {"device": "their GPU"}}'],
    "list.json": ["[1]"],
    "empty.csv": [],
    "empty.toml": [],
    "kept.npz": ["mine"],
    "foreign.zip": ["no zip"],
    "empty.mp4": [],
}


def write(folder: Path) -> None:
    """Write everything."""
    for name, lines in TABLES.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _planted(folder)
    _marked(folder)
    _stages(folder)
    pack(folder / "films-1.0.0", folder / "packed.zip", None)
    _audits(folder)
    _mediaeval(folder / "mediaeval15")
    for name, colour in (("warm", "red"), ("cold", "blue")):
        (folder / "stills").mkdir(exist_ok=True)
        Image.new("RGB", (64, 64), colour).save(folder / "stills" / f"{name}.png")


def _planted(folder: Path) -> None:
    """Keep films of another codebook than ObyGaze12's, models of them, windows to score and a video."""
    trained = make_shelf(folder, MODELS)
    write_manifest(trained.manifest, folder / "films.csv")
    measured = [
        f"{clip.clip_id},{clip.movie},{clip.start_s},{clip.end_s},{n % 5}"
        for n, clip in enumerate(trained.manifest)
    ]
    (folder / "variables.csv").write_text("\n".join(["clip_id,movie,start_s,end_s,cuts", *measured]) + "\n")
    _, more = corpus(folder, "more", ("g0", "f0"), seed=1)
    write_manifest(more, folder / "more.csv")
    corpus(folder, "alien", ("g8",), seed=2, shift=30.0)
    store = film_store(folder, "m", end_s=120.0)
    score_film(store, [trained.paths["pcbm_lr"]]).write(folder / "scored")
    truth = [Clip(f"m-{n}", "m", "", 20.0 * n, 20.0 * n + 20, ("calm", "violent")[n % 2]) for n in range(6)]
    write_manifest(Manifest(tuple(truth), folder, trained.manifest.codebook), folder / "truth.csv")
    rng = np.random.default_rng(0)
    np.save(folder / "rows.npy", rng.normal(size=(180, 3)).astype(np.float32))
    (folder / "npy").mkdir()
    for clip in ("f0-00", "f0-07", "stray"):
        np.save(folder / "npy" / f"{clip}.npy", np.arange(4, dtype=np.float32))
    (folder / "videos" / "m1").mkdir(parents=True)
    pictures = (rng.integers(0, 255, (48, 64, 3), np.uint8) // (1 + n % 5) for n in range(32))
    encode(folder / "video.mp4", pictures, "mpeg4", 8)
    shutil.copy(folder / "video.mp4", folder / "videos" / "m1" / "a.mp4")
    calm = (folder / "violence.codebook.toml").read_text("utf-8").replace('version = "1"', 'version = "2"')
    (folder / "other.toml").write_text(calm, encoding="utf-8")
    fights = import_folder(folder / "videos", folder, load_codebook(folder / "other.toml"))
    write_manifest(fights.manifest, folder / "fights-2.csv")


def _marked(folder: Path) -> None:
    """Keep clips of four movies with concepts, texts in their space, and two people's segments."""
    codebook, rng = builtin_codebook("obygaze12"), np.random.default_rng(0)
    names = codebook.visual_concepts
    clips = []
    for movie, place in product(range(4), range(16)):
        there = tuple(name for name in names if rng.random() < 0.4)
        level = "S" if "Body" in there else ("EN", "HN")[place % 2]
        start = 4.0 * place
        clips.append(Clip(f"m{movie}-{place:02}", f"m{movie}", "", start, start + 4, level, concepts=there))
    write_manifest(Manifest(tuple(clips), folder), folder / "marked.csv")
    released = [
        replace(clip, video=f"films/{clip.clip_id}.mp4", extras=_folds(clip, n))
        for n, clip in enumerate(clips)
    ]
    write_manifest(Manifest(tuple(released), folder), folder / "published.csv")
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in clips}
    seen = np.array([[name in clip.concepts for name in names] for clip in clips])
    X = (3.0 * seen + rng.normal(size=seen.shape)).astype(np.float32)
    arrays = {"pooled": X, "frames": np.stack([X, X + 1, X - 1, X], axis=1)}
    seal_arrays(folder / "marked", movie_of, {"xclip": {"pooled": X}}, space=SPACE)
    seal_arrays(folder / "frames", movie_of, {"xclip": arrays}, spans=spans, n_frames=4, space=SPACE)
    two = {"xclip": {"pooled": X}, "vivit": {"pooled": X}}
    seal_arrays(folder / "backbones", movie_of, two, failed={"m0-00": "the file is empty (0 bytes)"})
    texts = {f"t{place}": text.text for place, text in enumerate(concept_texts(codebook))}
    vectors = rng.normal(size=(len(texts), len(names))).astype(np.float32)
    no_movie = dict.fromkeys(texts, "")
    seal_arrays(folder / "texts", no_movie, {"xclip-text": {"pooled": vectors}}, texts=texts, space=SPACE)
    segments = [
        Clip(
            f"m{movie}-{annotator}-{place}",
            f"m{movie}",
            "",
            8.0 * place + 1 + shift,
            8.0 * place + 4 + shift,
            ("S", "HN")[place % 2],
            concepts=("Body",),
            annotator=annotator,
        )
        for movie, (annotator, shift), place in product(range(4), (("ann", 0.0), ("bea", 0.5)), range(8))
    ]
    write_manifest(Manifest(tuple(segments), folder), folder / "segments.csv")
    judged = [
        replace(
            clip,
            level="EN" if rng.random() < 0.1 else clip.level,
            annotator=annotator,
            extras={"model": "tiny" if annotator == "vlm" else ""},
        )
        for clip, annotator in product(clips, ("ann", "bea", "vlm"))
    ]
    write_manifest(Manifest(tuple(judged), folder), folder / "answered.csv")
    sexes = [f"{clip.clip_id},{clip.movie},{'mw'[n % 2]}" for n, clip in enumerate(clips)]
    (folder / "sexes.csv").write_text("\n".join(["item_id,movie,sex", *sexes, ""]))
    scaled = [replace(clip, level=None, concepts=()) for clip in clips[:6]]
    write_manifest(Manifest(tuple(scaled), folder, builtin_codebook("mediaeval15")), folder / "scaled.csv")
    pairs = [(f"w{n % 3}", clips[n].clip_id, clips[m].clip_id) for m in range(6) for n in range(m)]
    lines = [f"{annotator},{left},{right},{right}" for annotator, left, right in pairs]
    (folder / "pairs.csv").write_text("\n".join(["worker,left,right,chosen", *lines, ""]))
    (folder / "one-pair.csv").write_text("worker,left,right,chosen\nw,m0-00,m0-01,m0-02\nw,m0-00,x,x\n")


def _folds(clip: Clip, place: int) -> dict[str, str]:
    """Give a clip its folds of ObyGaze12's split files, which the protocol `paper` reads."""
    levels_of = {"en_s": "EN S", "hn_s": "HN S", "enhn_s": "EN HN S", "en_hn_s": "EN HN S"}
    folds = {f"fold_{name}": (levels, place // 6 % 10) for name, levels in levels_of.items()}
    folds |= {f"fold_movieset_{name}": (levels_of[name], int(clip.movie[1:])) for name in ("hn_s", "enhn_s")}
    return {name: str(fold) if clip.level in levels.split() else "" for name, (levels, fold) in folds.items()}


def _stages(folder: Path) -> None:
    """Keep a stage whose last clip failed, and one that is not done; a damaged store and a link."""
    group = toy_group("toy", {"pooled": np.ones((1, 2), np.float32)}, n_frames=1)
    good = {"toy": ClipFeatures(np.zeros(1), np.zeros(1, np.int64), {"pooled": np.ones(2, np.float32)})}
    results = [ClipResult(clip, "ok", groups=good) for clip in "ab"] + [ClipResult("c", "failed", "no file")]
    for name, done in (("whole", 3), ("late", 1)):
        path = staging_path(folder / "stores" / name)
        stage = Stage.open(path, [PlannedClip(clip, "m") for clip in "abc"], [group], {"name": "Films"})
        with stage.writer() as writer:
            writer.commit(results[:done])
    for name, licence, citation in (("mit", "MIT", "A"), ("cc", "CC0-1.0", "B")):
        path = staging_path(folder / "stores" / name)
        stage = Stage.open(path, [PlannedClip(name, "m")], [group], {"name": "Films"})
        with stage.writer() as writer:
            writer.commit([ClipResult(name, "ok", groups=good)])
        seal(None, folder / "stores" / name, licence=licence, citation=citation)
    (folder / "stores" / "broken-1.0.0" / "data" / "features.zarr").mkdir(parents=True)
    (folder / "stores" / "link").symlink_to("broken-1.0.0")
    rows = np.ones((2, 4), np.float32)
    for name, clips, changes in (
        ("left", "ab", {}),
        ("right", "cd", {}),
        ("other", "cd", {"layer": "other"}),
    ):
        movies = dict.fromkeys(clips, "m")
        seal_arrays(folder / "stores" / name, movies, {"toy": {"pooled": rows}}, **changes)


def _audits(folder: Path) -> None:
    """Keep SOBEM-like images of which the clothed lie near emotion, prompts, maps and texts' priors."""
    rng, space = np.random.default_rng(0), "toy-clip sha256:0123"
    images = [
        f"{who}_{emotion}{level}_{worn}_1"
        for who, emotion, level, worn in product(range(1, 5), ("AN", "SA", "HA"), (1, 2), ("NO", "O"))
    ]
    prompts = prompt_rows("code")
    with (folder / "prompts.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(prompts[0]))
        table.writeheader()
        table.writerows(prompts)
    near = {
        "sobem": [4.0 * ("_NO_" in name) for name in images],
        "prompted": [2.0 * (row["list"] in {"angry", "sad", "happy"}) for row in prompts],
    }
    ids = {"sobem": images, "prompted": [row["text_id"] for row in prompts]}
    for name, moved in near.items():
        rows = rng.normal(size=(len(moved), 4)).astype(np.float32)
        rows[:, 0] += moved
        seal_arrays(folder / name, dict.fromkeys(ids[name], "none"), {"toy": {"pooled": rows}}, space=space)
    about = {"text": "angry person", "group": "g", "score": 0.5, "peak": 1.0}
    pairs = tuple({"image_id": name, **about} for name in ("i1", "i2"))
    raw = np.ones((2, SIDE, SIDE), np.float32)
    write_maps(Maps({"space": space, "layer": "it"}, pairs, raw), folder / "maps.zarr")
    write_priors(folder / "lm.csv", {t: {"n_tokens": 6, "lm_mean": 0.2} for t in (MAN, WOMAN, *SWAPPED)}, {})
    for name in ("pictures", "torn", "mine"):
        (folder / name).mkdir()
    (folder / "mine" / "thesis.txt").touch()
    for name, colour in (("i1", "red"), ("i2", "blue")):
        Image.new("RGB", (6, 8), colour).save(folder / "pictures" / f"{name}.png")
    shutil.copy(folder / "pictures" / "i1.png", folder / "torn")
    (folder / "torn" / "i2.jpg").write_bytes(b"no picture")
    for name, files in (("pictures", ("i1.png", "i2.png")), ("torn", ("i1.png", "i2.jpg")), ("no", ())):
        rows = "".join(f"{file[:2]},m,{name}/{file},,,,,\n" for file in files or ("i3.png",))
        (folder / f"{name}.csv").write_text(f"{FIELDS}\n{rows}", encoding="utf-8")
    said = {f"t{place}": text for place, text in enumerate((MAN, WOMAN, *SWAPPED, "shoe"))}
    rows = {"pooled": rng.normal(size=(len(said), 4)).astype(np.float32)}
    seal_arrays(folder / "said", dict.fromkeys(said, ""), {"toy": rows}, texts=said, space=space)


def _mediaeval(folder: Path) -> None:
    """Keep the annotations of 60 clips of six movies, and a store of features that tell the violent ones."""
    folder.mkdir()
    lines, movie_of = ["clip,movie,split,valence,arousal,violence"], {}
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    for row in range(60):
        clip, split = f"ACCEDE{row:05}.mp4", ("dev", "test")[row >= 30]
        movie_of[clip] = f"film{row // 10}"
        valence, arousal = (row % 3 - 1) / 2, ("calm", "neutral", "active")[row % 3]
        lines.append(f"{clip},{movie_of[clip]},{split},{valence},{arousal},{int(row % 4 == 0)}")
        X[row, 0] += 9 * (row % 4 == 0)
    (folder / "clips.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    imported = import_mediaeval15(folder, folder.parent).manifest
    write_manifest(imported, folder.with_name("m15.csv"))
    leaking = folder.with_name("m15.csv").read_text("utf-8").replace(",dev,", ",test,", 1)
    folder.with_name("leak.csv").write_text(leaking, encoding="utf-8")
    failed = {"ACCEDE00059.mp4": "the file is empty (0 bytes)"}
    seal_arrays(folder.with_name("m15"), movie_of, {"descriptors": {"pooled": X}}, failed=failed)
    digest = {"weights_sha256": "0" * 64}
    seal_arrays(folder.with_name("m15-xclip"), movie_of, {"xclip": {"pooled": X}}, **digest)


def write_networks(folder: Path) -> None:
    """Write tiny networks, the corpus that one is trained on, and four films to extract."""
    tiny_clip(folder / "lsmdc-clip")
    write_corpus(folder / "lsmdc", training=4, held_out=2)
    tiny_text_checkpoint("clip", folder / "clip")
    tiny_language_model(folder / "gpt2")
    tiny_text_checkpoint("xclip", folder / "xclip")
    repository = folder / "hub" / "models--lab--net"
    shutil.copytree(folder / "clip", repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(COMMIT)
    digest = find_weights(folder / "xclip").sha256
    width = json.loads((folder / "xclip" / "config.json").read_text())["projection_dim"]
    rows = np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)
    movies = dict.fromkeys("abcd", "m")
    seal_arrays(folder / "xclip", movies, {"xclip": {"pooled": rows}}, weights_sha256=digest)
    rng = np.random.default_rng(0)
    (folder / "drawn").mkdir()
    for movie in ("f0", "f1", "f2", "f3"):
        write_video(folder / "drawn" / f"{movie}.mp4", [picture(n // 4 % 2, rng) for n in range(40)], rate=4)
    codebook = load_codebook(folder / "violence.codebook.toml")
    clips = [
        Clip(f"{movie}-{n}", movie, f"drawn/{movie}.mp4", float(n), n + 1.0, ("calm", "violent")[n % 2])
        for movie in ("f0", "f1", "f2", "f3")
        for n in range(10)
    ]
    write_manifest(Manifest(tuple(clips), folder, codebook), folder / "drawn.csv")
