"""Judge the search by names of classes: frozen queries on windows of public videos.

    python benchmarks/search_classes.py bring FOLDER      brings the videos by git, and checks their digests
    python benchmarks/search_classes.py extract FOLDER    makes FOLDER/store: EfficientNet-Lite0's answers
    python benchmarks/search_classes.py windows FOLDER    draws every window, for the reader who lists
    python benchmarks/search_classes.py search FOLDER     searches, and draws what blind readers judge
    python benchmarks/search_classes.py report FOLDER [--check]

search_queries.csv was written, and its digest committed, before anything was searched. Its kind `nowhere`
names what no window is meant to show. search_windows.csv lists the windows, search_films.csv the videos. One
reader lists, of all windows and before any search, which show what each query names (search_shown.csv). Then
each query that the search answers is judged blind (search_sittings.csv): its first answer stands among three
windows drawn at random, in random order, and a reader who sees no score says which of the four show it.
Pictures are of people and of films: they stay in FOLDER.
"""

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import show, verdict
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from public_films import HOST, bring, digest, listed

import obygaze_features as of
from obygaze_features.answer_search import NearClasses, class_scores, near_classes
from obygaze_features.backbones import TextBackbone, load_text_backbone
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.packaged_sentence import packaged_sentence_encoder
from obygaze_features.errors import VideoError
from obygaze_features.store import Group, classes_of
from obygaze_features.store.answers import LIKELY
from obygaze_features.video import read_frames, uniform

HERE = Path(__file__).parent
QUERIES = HERE / "search_queries.csv"
QUERIES_SHA256 = "69bd5a86d0f6af85a87be0cd72a566b507d7283c398c65b29f53e560b065e602"
FILMS = HERE / "search_films.csv"
WINDOWS = HERE / "search_windows.csv"
SHOWN = HERE / "search_shown.csv"
SITTINGS = HERE / "search_sittings.csv"
ANSWERS = "efficientnet-lite0.answers"

MIN_ANSWERED, MIN_RIGHT, MAX_OF_SHUFFLED = 10, 0.8, 1 / 20
"""Answered queries, the share of those that is right first, and of all queries under names at random."""

N_FRAMES = 4
BESIDE = 3
"""Windows drawn at random that stand beside a first answer."""
SHUFFLES = 20
SEED = 89
READERS = ("1", "2")
LETTERS = "ABCD"
WIDTH, HEIGHT = 160, 110
"""Of a frame that a reader sees, in pixels."""
COLUMNS, A_SHEET = 3, 54
"""Windows beside each other, and on one sheet."""


class Asked(NamedTuple):
    """A query, and what kind of thing it names."""

    kind: str
    query: str


class FirstAnswer(NamedTuple):
    """The window that a query finds first; empty where the search does not answer."""

    query: str
    clip_id: str
    score: float
    names: str


class Judged(NamedTuple):
    """What a reader said of a window: whether it shows what a query names."""

    reader: str
    query: str
    clip_id: str
    shown: bool


def queries() -> list[Asked]:
    """Read the frozen queries; end if they are others."""
    if digest(QUERIES) != QUERIES_SHA256:
        sys.exit(f"{QUERIES.name} is not the frozen one, whose SHA-256 is {QUERIES_SHA256}")
    with QUERIES.open(encoding="utf-8", newline="") as file:
        return [Asked(**row) for row in csv.DictReader(file)]


def windows(folder: Path) -> of.Manifest:
    """Read the windows of the videos that were brought to a folder."""
    return of.Manifest(listed_windows(), folder / "videos")


def listed_windows() -> tuple[of.Clip, ...]:
    """Read the list of windows."""
    with WINDOWS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    clips = []
    for row in rows:
        start_s, end_s = seconds(row["start_s"]), seconds(row["end_s"])
        clips.append(of.Clip(row["clip_id"], row["movie"], row["video"], start_s, end_s))
    return tuple(clips)


def seconds(cell: str) -> float | None:
    """Read a time; none where the window is the whole video."""
    return float(cell) if cell else None


def extract(folder: Path) -> None:
    """Make a store of what EfficientNet-Lite0 answers for each window."""
    backbone = of.load_backbone("efficientnet-lite0", N_FRAMES, answers=True)
    of.extract(windows(folder), folder / "store", [backbone], workers=1, licence="NOASSERTION")


# --- pictures for readers
# --------------------------------------------------------------------------------
def strip(folder: Path, clip: of.Clip, label: str) -> Image.Image:
    """Draw three frames of a window beside each other, under a label."""
    drawn = Image.new("RGB", (3 * WIDTH, HEIGHT + 14), "white")
    ImageDraw.Draw(drawn).text((2, HEIGHT + 1), label, fill="black")
    path = folder / "videos" / clip.video
    with suppress(VideoError):
        frames = read_frames(path, uniform(3), start_s=clip.start_s, end_s=clip.end_s)
        for index, pixels in enumerate(frames.images):
            picture = Image.fromarray(pixels)
            picture.thumbnail((WIDTH - 2, HEIGHT))
            drawn.paste(picture, (index * WIDTH, 0))
    return drawn


def tiled(strips: Sequence[Image.Image], columns: int) -> Image.Image:
    """Put strips on one sheet."""
    rows = -(-len(strips) // columns)
    sheet = Image.new("RGB", (columns * 3 * WIDTH, rows * (HEIGHT + 14)), "white")
    for index, drawn in enumerate(strips):
        row, column = divmod(index, columns)
        sheet.paste(drawn, (column * 3 * WIDTH, row * (HEIGHT + 14)))
    return sheet


def draw_windows(folder: Path) -> None:
    """Draw every window with its name, for the reader who lists what shows what."""
    clips = list(windows(folder))
    for number, start in enumerate(range(0, len(clips), A_SHEET), start=1):
        strips = [strip(folder, clip, clip.clip_id) for clip in clips[start : start + A_SHEET]]
        tiled(strips, COLUMNS).save(folder / f"windows-{number}.png")


def draw_sittings(folder: Path, answered: Sequence[FirstAnswer]) -> None:
    """Draw what two blind readers judge: each first answer among windows at random, in random order.

    `sitting-R/` gets a sheet a query, named by its place in the sitting, and `queries.csv`: the query, and
    which windows A, B, C and D are.
    """
    clips = {clip.clip_id: clip for clip in windows(folder)}
    for reader in READERS:
        chance = np.random.default_rng([SEED, READERS.index(reader)])
        place_of = folder / f"sitting-{reader}"
        place_of.mkdir(exist_ok=True)
        rows = []
        for number, query in enumerate(chance.permutation(len(answered)).tolist(), start=1):
            first = answered[query]
            others = [name for name in clips if name != first.clip_id]
            four = [first.clip_id, *chance.choice(others, BESIDE, replace=False).tolist()]
            order = [four[place] for place in chance.permutation(len(four)).tolist()]
            strips = [strip(folder, clips[name], letter) for letter, name in zip(LETTERS, order, strict=True)]
            tiled(strips, 1).save(place_of / f"{number:02d}.png")
            rows.append((number, first.query, *order))
        with (place_of / "queries.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("sheet", "query", *LETTERS), *rows])


# --- searching
# --------------------------------------------------------------------------------
def searched(group: Group, encoder: TextBackbone, names: tuple[str, ...]) -> list[FirstAnswer]:
    """Search the windows for every query, with classes of these names, by the rule of the house."""
    answers = []
    for asked in queries():
        near = near_classes(names, asked.query, encoder)
        answers.append(first_answer(group, asked.query, near))
    return answers


def first_answer(group: Group, query: str, near: NearClasses) -> FirstAnswer:
    """Find the best window of a query; none where no class is near, or likely."""
    scores = class_scores(group, near)
    best = int(np.nanargmax(scores))
    score = float(scores[best])
    is_answered = near.is_near and score >= LIKELY
    clip_id = group.clip_ids[best] if is_answered else ""
    return FirstAnswer(query, clip_id, score, near.in_words())


def search(folder: Path) -> None:
    """Search by the names as they are, and as often by names that are shuffled; draw the sittings.

    `answers.csv` has what was found: a row a query and shuffle, 0 for none.
    """
    group = of.open_store(folder / "store-1.0.0")[ANSWERS]
    names = classes_of(group)
    with packaged_sentence_encoder() as weights:
        encoder = load_text_backbone("sentence", weights=str(weights), compute=Compute("cpu"))
    once = remembered(encoder)
    chance = np.random.default_rng(SEED)
    found = searched(group, once, names)
    rows = [(0, *answer) for answer in found]
    for shuffle in range(1, SHUFFLES + 1):
        shuffled = tuple(names[place] for place in chance.permutation(len(names)).tolist())
        rows += [(shuffle, *answer) for answer in searched(group, once, shuffled)]
    with (folder / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("shuffle", *FirstAnswer._fields), *rows])
    draw_sittings(folder, [answer for answer in found if answer.clip_id])


def remembered(encoder: TextBackbone) -> TextBackbone:
    """Encode each text once: a thousand names are asked for again and again."""
    vectors: dict[bytes, NDArray[np.float32]] = {}

    def encode(ids: NDArray[np.int64]) -> NDArray[np.float32]:
        key = ids.tobytes()
        if key not in vectors:
            vectors[key] = encoder.encode(ids)
        return vectors[key]

    return replace(encoder, encode=encode)


# --- judging
# --------------------------------------------------------------------------------
def listed_as_shown() -> dict[str, set[str]]:
    """Read which windows show what each query names: `v012` is every window of a video."""
    clips = listed_windows()
    shown = {}
    with SHOWN.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            names = set(row["clips"].split())
            shown[row["query"]] = {clip.clip_id for clip in clips if names & {clip.clip_id, clip.movie}}
    return shown


def sittings() -> list[Judged]:
    """Read what blind readers said."""
    with SITTINGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Judged(row["reader"], row["query"], row["clip_id"], row["shown"] == "yes") for row in rows]


def report(folder: Path, *, check: bool) -> None:
    """Print how many queries were answered, how many of those right first, and what names at random do."""
    kinds = {asked.query: asked.kind for asked in queries()}
    shown = listed_as_shown()
    with (folder / "answers.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {row["query"]: row for row in rows if row["shuffle"] == "0"}
    answered = [query for query in kinds if found[query]["clip_id"]]
    blind = {(said.reader, said.query, said.clip_id): said.shown for said in sittings()}
    readers = list(dict.fromkeys(said.reader for said in sittings()))
    table = []
    right: dict[str, list[bool]] = {"list": [], **{reader: [] for reader in readers}}
    for query in answered:
        first = found[query]["clip_id"]
        said = {"list": first in shown[query]}
        said |= {reader: blind[reader, query, first] for reader in readers}
        for reader, is_right in said.items():
            right[reader].append(is_right)
        names = found[query]["names"]
        table.append({"kind": kinds[query], "query": query, "first": first, **said, "classes": names})
    show(table, title="Answered")
    silent = [query for query in kinds if query not in answered]
    rows_of_silent = []
    for query in silent:
        row = found[query]
        n_shown = len(shown[query])
        rows_of_silent.append(
            {"kind": kinds[query], "query": query, "windows that show it": n_shown, "classes": row["names"]}
        )
    show(rows_of_silent, title="Not answered")
    show(by_kind(kinds, answered, found, shown), title="By kind")
    by_chance = right_when_shuffled(rows, shown)
    n_clips = len(windows(folder))
    base = float(np.mean([len(shown[query]) / n_clips for query in kinds]))
    print(
        f"\n{len(answered)} of {len(kinds)} queries are answered; a window shows one in {base:.3f} of cases"
    )
    for reader, values in right.items():
        print(f"{reader}: right first in {sum(values)} of {len(values)}")
    print(agreement(blind, shown, readers))
    mean, most = np.mean(by_chance), max(by_chance)
    print(f"names shuffled {SHUFFLES} times: right first in {mean:.2f} queries, at most {most}")
    wrong = []
    if len(answered) < MIN_ANSWERED:
        wrong.append(f"{len(answered)} queries are answered")
    for reader, values in right.items():
        if sum(values) < MIN_RIGHT * len(values):
            wrong.append(f"{reader}: {sum(values)} of {len(values)} are right first")
    if max(by_chance) > MAX_OF_SHUFFLED * len(kinds):
        wrong.append(f"shuffled names are right first in {max(by_chance)} queries")
    verdict(wrong, check=check)


def by_kind(
    kinds: Mapping[str, str],
    answered: Sequence[str],
    found: Mapping[str, Mapping[str, str]],
    shown: Mapping[str, set[str]],
) -> list[dict[str, object]]:
    """Count, for each kind of query, how many are answered and how many of those right first."""
    rows = []
    for kind in dict.fromkeys(kinds.values()):
        own = [query for query in kinds if kinds[query] == kind]
        own_answered = [query for query in own if query in answered]
        n_right = sum(found[query]["clip_id"] in shown[query] for query in own_answered)
        rows.append(
            {"kind": kind, "queries": len(own), "answered": len(own_answered), "right first": n_right}
        )
    return rows


def right_when_shuffled(rows: Sequence[Mapping[str, str]], shown: Mapping[str, set[str]]) -> list[int]:
    """Count the queries that are right first under each shuffle of the names."""
    n_right = dict.fromkeys(range(1, SHUFFLES + 1), 0)
    for row in rows:
        shuffle = int(row["shuffle"])
        if shuffle and row["clip_id"] in shown[row["query"]]:
            n_right[shuffle] += 1
    return list(n_right.values())


def agreement(
    blind: Mapping[tuple[str, str, str], bool], shown: Mapping[str, set[str]], readers: Sequence[str]
) -> str:
    """Say how often each sitting agrees with the list, of all windows that it judged."""
    parts = []
    for reader in readers:
        pairs = [
            (said, clip_id in shown[query])
            for (judge, query, clip_id), said in blind.items()
            if judge == reader
        ]
        equal = sum(said == listed for said, listed in pairs)
        parts.append(f"{reader} agrees with the list on {equal} of {len(pairs)} windows")
    return "; ".join(parts)


def main() -> None:
    """Do one step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["bring", "extract", "windows", "search", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default=HOST, help="where repositories are")
    parser.add_argument("--check", action="store_true", help="end with exit code 1 where a goal is missed")
    options = parser.parse_args()
    folder: Path = options.folder
    if options.step == "bring":
        problems = bring(listed(FILMS), folder / "videos", options.host)
        print(*problems, sep="\n")
        sys.exit(bool(problems))
    if options.step == "extract":
        extract(folder)
    elif options.step == "windows":
        draw_windows(folder)
    elif options.step == "search":
        search(folder)
    else:
        report(folder, check=options.check)


if __name__ == "__main__":
    main()
