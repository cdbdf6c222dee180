"""Inputs with which the commands of the table succeed, or are refused."""

import csv
import json
import shutil
from collections.abc import Iterable
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
from tests.planted_models import TrainedModels, corpus, train_and_save_models
from tests.studies.lsmdc.corpus import picture, tiny_clip, write_corpus, write_video
from tests.tiny_checkpoints import tiny_language_model, tiny_text_checkpoint
from tests.video.encoding import encode

SPACE = "xclip sha256:0123"
VISUAL_CONCEPTS = builtin_codebook("obygaze12").visual_concepts
COMMIT = "0123456789abcdef" * 2 + "01234567"
FIELDS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
MAN, WOMAN = "an angry man with a shoe", "a sad woman with a shoe"
SWAPPED = (MAN.replace("man", "woman"), WOMAN.replace("woman", "man"))
TABLES = {
    "ids.txt": [f"f{film}-{workdir:02}" for film in range(6) for workdir in range(30)],
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
    """Write all inputs of commands but those for networks, which `write_networks` writes."""
    _write_tables(folder)
    _write_films_and_models(folder)
    _write_marked_movies(folder)
    _write_stages(folder)
    _write_small_stores(folder / "stores")
    pack(folder / "films-1.0.0", folder / "packed.zip", progress=None)
    _write_inputs_of_audits(folder)
    _write_mediaeval(folder)
    _write_stills(folder / "stills")


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_tables(folder: Path) -> None:
    for name, lines in TABLES.items():
        _write_lines(folder / name, lines)


def _write_stills(folder: Path) -> None:
    folder.mkdir()
    for name, colour in (("warm", "red"), ("cold", "blue")):
        Image.new("RGB", (64, 64), colour).save(folder / f"{name}.png")


# --- films of a codebook of violence
# ------------------------------------------------------------------------------
def _write_films_and_models(folder: Path) -> None:
    """Write what is about films whose codebook has the levels calm, unsure and violent.

    The films f0 to f5 with models that were trained on them (`films`, `models`), and a table of a variable of
    their clips; other films (`more`, with f0 again, and `alien`, unlike the others); a film m in windows, its
    scores and its truth; and files to import.
    """
    trained_models = train_and_save_models(folder, MODELS)
    write_manifest(trained_models.manifest, folder / "films.csv")
    cuts = [
        f"{clip.clip_id},{clip.movie},{clip.start_s},{clip.end_s},{number % 5}"
        for number, clip in enumerate(trained_models.manifest)
    ]
    _write_lines(folder / "variables.csv", ["clip_id,movie,start_s,end_s,cuts", *cuts])
    _, more_films = corpus(folder, "more", ("g0", "f0"), seed=1)
    write_manifest(more_films, folder / "more.csv")
    corpus(folder, "alien", ("g8",), seed=2, shift=30.0)
    _write_scored_film(folder, trained_models)
    rng = np.random.default_rng(0)
    _write_arrays_to_import(folder, rng)
    _write_videos_to_import(folder, rng)


def _write_scored_film(folder: Path, trained_models: TrainedModels) -> None:
    """Write the windows of a film m of two minutes, a model's scores of them, and its truth."""
    store = film_store(folder, "m", end_s=120.0)
    score_film(store, [trained_models.paths["pcbm_lr"]]).write(folder / "scored")
    truth = []
    for number in range(6):  # six spans of 20 s, calm and violent in turn
        start_s = 20.0 * number
        level = ("calm", "violent")[number % 2]
        truth.append(Clip(f"m-{number}", "m", "", start_s, start_s + 20, level))
    write_manifest(Manifest(tuple(truth), folder, trained_models.manifest.codebook), folder / "truth.csv")


def _write_arrays_to_import(folder: Path, rng: np.random.Generator) -> None:
    """Write vectors of all 180 clips of the films in one file, and files of single clips, one of none."""
    np.save(folder / "rows.npy", rng.normal(size=(180, 3)).astype(np.float32))
    (folder / "npy").mkdir()
    for clip_id in ("f0-00", "f0-07", "stray"):
        np.save(folder / "npy" / f"{clip_id}.npy", np.arange(4, dtype=np.float32))


def _write_videos_to_import(folder: Path, rng: np.random.Generator) -> None:
    """Write a video of four seconds of noise, a folder with it, and its manifest by another codebook."""
    (folder / "videos" / "m1").mkdir(parents=True)
    pictures = []
    for number in range(32):
        noise = rng.integers(0, 255, (48, 64, 3), np.uint8)
        darkness = 1 + number % 5
        pictures.append(noise // darkness)
    encode(folder / "video.mp4", pictures, "mpeg4", rate=8)
    shutil.copy(folder / "video.mp4", folder / "videos" / "m1" / "a.mp4")
    codebook = (folder / "violence.codebook.toml").read_text("utf-8")
    next_version = codebook.replace('version = "1"', 'version = "2"')
    (folder / "other.toml").write_text(next_version, encoding="utf-8")
    clips = import_folder(folder / "videos", folder, load_codebook(folder / "other.toml")).manifest
    write_manifest(clips, folder / "fights-2.csv")


# --- movies with the concepts of ObyGaze12
# ------------------------------------------------------------------------------
def _write_marked_movies(folder: Path) -> None:
    """Write what is about 64 clips of four movies, m0 to m3, in which concepts of ObyGaze12 are marked.

    Their manifest and stores whose features tell the concepts, texts in the same space, and tables of other
    annotators' segments, levels and comparisons of the clips.
    """
    rng = np.random.default_rng(0)
    clips = _clips_with_concepts(rng)
    write_manifest(Manifest(tuple(clips), folder), folder / "marked.csv")
    _write_published_manifest(folder, clips)
    _write_stores_of_marked_clips(folder, clips, rng)
    _write_segments_of_two_annotators(folder)
    _write_levels_of_three_annotators(folder, clips, rng)
    sex_of_clip = [f"{clip.clip_id},{clip.movie},{'mw'[number % 2]}" for number, clip in enumerate(clips)]
    _write_lines(folder / "sexes.csv", ["item_id,movie,sex", *sex_of_clip])
    _write_comparisons(folder, clips[:6])


def _clips_with_concepts(rng: np.random.Generator) -> list[Clip]:
    """Make 16 clips of 4 s of each movie: those with the concept Body are S, the others EN and HN in turn."""
    clips = []
    for movie in range(4):
        for index in range(16):
            concepts = [concept for concept in VISUAL_CONCEPTS if rng.random() < 0.4]
            level = "S" if "Body" in concepts else ("EN", "HN")[index % 2]
            start_s = 4.0 * index
            clip_id = f"m{movie}-{index:02}"
            clips.append(
                Clip(clip_id, f"m{movie}", "", start_s, start_s + 4, level, concepts=tuple(concepts))
            )
    return clips


def _write_published_manifest(folder: Path, clips: list[Clip]) -> None:
    """Write the clips as ObyGaze12 publishes its own: with files and with their folds."""
    published = [
        replace(clip, video=f"films/{clip.clip_id}.mp4", extras=_folds(clip, number))
        for number, clip in enumerate(clips)
    ]
    write_manifest(Manifest(tuple(published), folder), folder / "published.csv")


LEVELS_OF_TASK = {
    "en_s": ("EN", "S"),
    "hn_s": ("HN", "S"),
    "enhn_s": ("EN", "HN", "S"),
    "en_hn_s": ("EN", "HN", "S"),
}
"""Tasks of ObyGaze12 -> the levels of their clips."""


def _folds(clip: Clip, number: int) -> dict[str, str]:
    """Return a clip's folds in ObyGaze12's split files, which the protocol `paper` reads; "" in no fold.

    Ten folds have six clips in a row in turn; where movies are kept together, each is a fold.
    """
    folds = {}
    for task, levels in LEVELS_OF_TASK.items():
        fold = number // 6 % 10
        folds[f"fold_{task}"] = str(fold) if clip.level in levels else ""
    for task in ("hn_s", "enhn_s"):
        fold_of_movie = clip.movie.removeprefix("m")
        folds[f"fold_movieset_{task}"] = fold_of_movie if clip.level in LEVELS_OF_TASK[task] else ""
    return folds


def _write_stores_of_marked_clips(folder: Path, clips: list[Clip], rng: np.random.Generator) -> None:
    """Write stores in which feature k is larger by 3 where concept k is marked, and one of texts.

    `marked` has vectors of clips, `frames` four of each clip besides, `backbones` vectors of two backbones
    and a clip that failed, `texts` vectors of the concepts' texts, which are random.
    """
    movie_of_clip = {clip.clip_id: clip.movie for clip in clips}
    span_of_clip = {clip.clip_id: (clip.start_s, clip.end_s) for clip in clips}
    is_marked = np.array([[concept in clip.concepts for concept in VISUAL_CONCEPTS] for clip in clips])
    X = (3.0 * is_marked + rng.normal(size=is_marked.shape)).astype(np.float32)  # [N clips, K concepts]
    frames = np.stack([X, X + 1, X - 1, X], axis=1)  # [N clips, 4 frames, K concepts]
    seal_arrays(folder / "marked", movie_of_clip, {"xclip": {"pooled": X}}, space=SPACE)
    with_frames = {"xclip": {"pooled": X, "frames": frames}}
    seal_arrays(folder / "frames", movie_of_clip, with_frames, spans=span_of_clip, n_frames=4, space=SPACE)
    two_backbones = {"xclip": {"pooled": X}, "vivit": {"pooled": X}}
    failed = {"m0-00": "the file is empty (0 bytes)"}
    seal_arrays(folder / "backbones", movie_of_clip, two_backbones, failed=failed)

    texts = {
        f"t{number}": text.text for number, text in enumerate(concept_texts(builtin_codebook("obygaze12")))
    }
    vectors = rng.normal(size=(len(texts), len(VISUAL_CONCEPTS))).astype(np.float32)
    no_movie = dict.fromkeys(texts, "")
    seal_arrays(folder / "texts", no_movie, {"xclip-text": {"pooled": vectors}}, texts=texts, space=SPACE)


def _write_segments_of_two_annotators(folder: Path) -> None:
    """Write eight segments of 3 s of each movie as ann has them, and half a second later as bea has them."""
    segments = []
    for movie in range(4):
        for annotator, later_s in (("ann", 0.0), ("bea", 0.5)):
            for index in range(8):
                start_s = 8.0 * index + 1 + later_s
                segment = Clip(
                    f"m{movie}-{annotator}-{index}",
                    f"m{movie}",
                    "",
                    start_s,
                    start_s + 3,
                    level=("S", "HN")[index % 2],
                    concepts=("Body",),
                    annotator=annotator,
                )
                segments.append(segment)
    write_manifest(Manifest(tuple(segments), folder), folder / "segments.csv")


def _write_levels_of_three_annotators(folder: Path, clips: list[Clip], rng: np.random.Generator) -> None:
    """Write the clips as two people and a model label them, who make every tenth of them EN by mistake."""
    answers = []
    for clip in clips:
        for annotator in ("ann", "bea", "vlm"):
            is_mistaken = rng.random() < 0.1
            level = "EN" if is_mistaken else clip.level
            model = "tiny" if annotator == "vlm" else ""
            answers.append(replace(clip, level=level, annotator=annotator, extras={"model": model}))
    write_manifest(Manifest(tuple(answers), folder), folder / "answered.csv")


def _write_comparisons(folder: Path, clips: list[Clip]) -> None:
    """Write clips without levels, and comparisons of all pairs of them: the later clip is always chosen.

    Three workers compare in turn. In one-pair.csv, the clip chosen is none of the two, and one is not known.
    """
    without_levels = [replace(clip, level=None, concepts=()) for clip in clips]
    codebook = builtin_codebook("mediaeval15")
    write_manifest(Manifest(tuple(without_levels), folder, codebook), folder / "scaled.csv")
    header = "worker,left,right,chosen"
    comparisons = []
    for later_place, later in enumerate(clips):
        for index, earlier in enumerate(clips[:later_place]):
            comparisons.append(f"w{index % 3},{earlier.clip_id},{later.clip_id},{later.clip_id}")
    _write_lines(folder / "pairs.csv", [header, *comparisons])
    _write_lines(folder / "one-pair.csv", [header, "w,m0-00,m0-01,m0-02", "w,m0-00,x,x"])


# --- stages and small stores
# ------------------------------------------------------------------------------
TOY_GROUP = toy_group("toy", {"pooled": np.ones((1, 2), np.float32)}, n_frames=1)
TOY_FEATURES = {"toy": ClipFeatures(np.zeros(1), np.zeros(1, np.int64), {"pooled": np.ones(2, np.float32)})}


def _write_stages(folder: Path) -> None:
    """Write two stages of the clips a, b and c: `whole` is done, and c failed; `late` has only a yet."""
    results = [
        ClipResult("a", "ok", groups=TOY_FEATURES),
        ClipResult("b", "ok", groups=TOY_FEATURES),
        ClipResult("c", "failed", "no file"),
    ]
    _write_stage(folder / "stores" / "whole", "abc", results)
    _write_stage(folder / "stores" / "late", "abc", results[:1])


def _write_stage(store: Path, clip_ids: Iterable[str], results: list[ClipResult]) -> None:
    """Write the stage of a store of some clips of the movie m, with the results that there are yet."""
    planned = [PlannedClip(clip_id, "m") for clip_id in clip_ids]
    stage = Stage.open(staging_path(store), planned, [TOY_GROUP], {"name": "Films"})
    with stage.writer() as writer:
        writer.commit(results)


def _write_small_stores(folder: Path) -> None:
    """Write stores of one or two clips.

    `mit` and `cc` differ in licence; `left` and `right` can be merged, and neither with `other`, whose layer
    differs; `broken-1.0.0` has no metadata, and `link` is a link to it.
    """
    for name, licence, citation in (("mit", "MIT", "A"), ("cc", "CC0-1.0", "B")):
        clip_id = name
        _write_stage(folder / name, [clip_id], [ClipResult(clip_id, "ok", groups=TOY_FEATURES)])
        seal(stage_path=None, destination=folder / name, licence=licence, citation=citation)
    rows = {"toy": {"pooled": np.ones((2, 4), np.float32)}}
    seal_arrays(folder / "left", {"a": "m", "b": "m"}, rows)
    seal_arrays(folder / "right", {"c": "m", "d": "m"}, rows)
    seal_arrays(folder / "other", {"c": "m", "d": "m"}, rows, layer="other")
    (folder / "broken-1.0.0" / "data" / "features.zarr").mkdir(parents=True)
    (folder / "link").symlink_to("broken-1.0.0")


# --- audits
# ------------------------------------------------------------------------------
def _write_inputs_of_audits(folder: Path) -> None:
    """Write what audits of backbones read: images of people, prompts, maps, captions and their pictures."""
    rng = np.random.default_rng(0)
    space = "toy-clip sha256:0123"
    _write_images_and_prompts(folder, space, rng)
    _write_maps_of_two_images(folder, space)
    priors = {text: {"n_tokens": 6, "lm_mean": 0.2} for text in (MAN, WOMAN, *SWAPPED)}
    write_priors(folder / "lm.csv", priors, {})
    _write_pictures(folder)
    captions = (MAN, WOMAN, *SWAPPED, "shoe")
    texts = {f"t{number}": caption for number, caption in enumerate(captions)}
    rows = {"pooled": rng.normal(size=(len(texts), 4)).astype(np.float32)}
    seal_arrays(folder / "said", dict.fromkeys(texts, ""), {"toy": rows}, texts=texts, space=space)


def _write_images_and_prompts(folder: Path, space: str, rng: np.random.Generator) -> None:
    """Write stores of images like SOBEM's and of prompts, and the table of the prompts.

    Four people are shown with three emotions in two strengths, not objectified (NO, clothed) and objectified
    (O). Feature 0 is larger by 4 in clothed images and by 2 in prompts of emotions, so that these are near.
    """
    images = []
    for person, emotion, strength, condition in product(range(1, 5), ("AN", "SA", "HA"), (1, 2), ("NO", "O")):
        images.append(f"{person}_{emotion}{strength}_{condition}_1")
    rows = rng.normal(size=(len(images), 4)).astype(np.float32)
    rows[["_NO_" in image for image in images], 0] += 4
    seal_arrays(folder / "sobem", dict.fromkeys(images, "none"), {"toy": {"pooled": rows}}, space=space)

    prompts = prompt_rows("code")
    with (folder / "prompts.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(prompts[0]))
        table.writeheader()
        table.writerows(prompts)
    rows = rng.normal(size=(len(prompts), 4)).astype(np.float32)
    rows[[prompt["list"] in {"angry", "sad", "happy"} for prompt in prompts], 0] += 2
    movies = dict.fromkeys([prompt["text_id"] for prompt in prompts], "none")
    seal_arrays(folder / "prompted", movies, {"toy": {"pooled": rows}}, space=space)


def _write_maps_of_two_images(folder: Path, space: str) -> None:
    """Write the file of maps of the images i1 and i2 for a text, which are the same everywhere."""
    text = {"text": "angry person", "group": "g", "score": 0.5, "peak": 1.0}
    pairs = ({"image_id": "i1", **text}, {"image_id": "i2", **text})
    values = np.ones((2, SIDE, SIDE), np.float32)
    write_maps(Maps({"space": space, "layer": "it"}, pairs, values), folder / "maps.zarr")


def _write_pictures(folder: Path) -> None:
    """Write manifests of pictures: two, one and a file that is none (`torn`), an absent one (`no`).

    The folder `mine` has a file of somebody's own.
    """
    for name in ("pictures", "torn", "mine"):
        (folder / name).mkdir()
    (folder / "mine" / "thesis.txt").touch()
    Image.new("RGB", (6, 8), "red").save(folder / "pictures" / "i1.png")
    Image.new("RGB", (6, 8), "blue").save(folder / "pictures" / "i2.png")
    shutil.copy(folder / "pictures" / "i1.png", folder / "torn")
    (folder / "torn" / "i2.jpg").write_bytes(b"no picture")
    files_of_manifest = {"pictures": ("i1.png", "i2.png"), "torn": ("i1.png", "i2.jpg"), "no": ("i3.png",)}
    for name, files in files_of_manifest.items():
        rows = [f"{Path(file).stem},m,{name}/{file},,,,," for file in files]
        _write_lines(folder / f"{name}.csv", [FIELDS, *rows])


# --- MediaEval 2015
# ------------------------------------------------------------------------------
def _write_mediaeval(folder: Path) -> None:
    """Write the annotations of 60 clips of six movies, their manifest, and stores of their features.

    Every fourth clip is violent, and feature 0 larger by 9 in it. The first 30 clips, of three movies, are
    for development, the others for testing; in leak.csv, a clip of the first movie is for testing, too.
    """
    annotations = folder / "mediaeval15"
    annotations.mkdir()
    lines = ["clip,movie,split,valence,arousal,violence"]
    movie_of_clip = {}
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    for row in range(60):
        clip_id = f"ACCEDE{row:05}.mp4"
        movie = f"film{row // 10}"
        split = "dev" if row < 30 else "test"
        valence = (-0.5, 0.0, 0.5)[row % 3]
        arousal = ("calm", "neutral", "active")[row % 3]
        is_violent = row % 4 == 0
        if is_violent:
            X[row, 0] += 9
        movie_of_clip[clip_id] = movie
        lines.append(f"{clip_id},{movie},{split},{valence},{arousal},{int(is_violent)}")
    _write_lines(annotations / "clips.csv", lines)
    write_manifest(import_mediaeval15(annotations, folder).manifest, folder / "m15.csv")
    manifest = (folder / "m15.csv").read_text("utf-8")
    leaking = manifest.replace(",dev,", ",test,", 1)
    (folder / "leak.csv").write_text(leaking, encoding="utf-8")
    failed = {"ACCEDE00059.mp4": "the file is empty (0 bytes)"}
    seal_arrays(folder / "m15", movie_of_clip, {"descriptors": {"pooled": X}}, failed=failed)
    seal_arrays(folder / "m15-xclip", movie_of_clip, {"xclip": {"pooled": X}}, weights_sha256="0" * 64)


# --- networks
# ------------------------------------------------------------------------------
def write_networks(folder: Path) -> None:
    """Write tiny networks, what they are run and trained on, and a cache of the hub with one of them."""
    tiny_clip(folder / "lsmdc-clip")
    write_corpus(folder / "lsmdc", training=4, held_out=2)
    tiny_text_checkpoint("clip", folder / "clip")
    tiny_language_model(folder / "gpt2")
    tiny_text_checkpoint("xclip", folder / "xclip")
    _write_cache_of_hub(folder / "hub", folder / "clip")
    _write_store_of_network(folder / "xclip")
    _write_drawn_films(folder)


def _write_cache_of_hub(cache: Path, weights: Path) -> None:
    """Write the cache in which the hub's client finds weights as the version v1 of lab/net."""
    repository = cache / "models--lab--net"
    shutil.copytree(weights, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(COMMIT)


def _write_store_of_network(weights: Path) -> None:
    """Write beside weights a store of four clips that names these weights; its features are random."""
    config = json.loads((weights / "config.json").read_text())
    width = config["projection_dim"]
    rows = np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)
    movie_of_clip = dict.fromkeys("abcd", "m")
    digest = find_weights(weights).sha256
    seal_arrays(weights, movie_of_clip, {"xclip": {"pooled": rows}}, weights_sha256=digest)


def _write_drawn_films(folder: Path) -> None:
    """Write four films to extract, of ten clips of a second: calm and violent ones in turn look different."""
    rng = np.random.default_rng(0)
    (folder / "drawn").mkdir()
    movies = ("f0", "f1", "f2", "f3")
    for movie in movies:
        pictures = [picture(number // 4 % 2, rng) for number in range(40)]
        write_video(folder / "drawn" / f"{movie}.mp4", pictures, rate=4)
    clips = []
    for movie in movies:
        for second in range(10):
            level = ("calm", "violent")[second % 2]
            clips.append(
                Clip(f"{movie}-{second}", movie, f"drawn/{movie}.mp4", float(second), second + 1.0, level)
            )
    codebook = load_codebook(folder / "violence.codebook.toml")
    write_manifest(Manifest(tuple(clips), folder, codebook), folder / "drawn.csv")
