"""Run the steps from a film's file to its page: each step is a command, printed before it runs."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze.pipeline import remove, run_command, typed
from obygaze_features.door import parse_json, read_bytes
from obygaze_features.options import declared

if TYPE_CHECKING:
    from obygaze_models.persistence.card import Card

RECORD = "film-run.json"
"""What the windows and the features are made of: a run that was stopped resumes only with the same."""

SECOND_PASS = {"scenedetect": "PySceneDetect", "transnet": "TransNet"}
"""Detectors of shots that see the film before its windows are decoded."""

WRITTEN = (
    "windows.csv",
    "windows.shots.csv",
    "variables.csv",
    "features.staging",
    "features-1.0.0",
    "scored",
    "report.html",
    RECORD,  # the last, so that a removal that was stopped can go on
)
"""Everything that a run writes into its folder."""


@declared(
    __package__,
    "film run",
    films={"type": click.Path(exists=True)},
    flags={"type": click.Path(exists=True, dir_okay=False)},
)
@click.pass_context
def run(  # noqa: PLR0917 - click passes options by name
    ctx: click.Context,
    films: tuple[str, ...],
    models: tuple[str, ...],
    weights: tuple[str, ...],
    window: str,
    hop: str,
    shots: str,
    flags: str | None,
    subtitles: bool,
    encoding: str,
    variables: bool,
    sound: bool,
    out: Path,
    title: str | None,
    year: int | None,
    language: str,
    stills: bool,
    workers: int | None,
    dry_run: bool,
    force: bool,
) -> None:
    """Score whole films with saved models, from the video files to a page: report.html.

    Commands, printed before they run: cut films into windows, extract the features that the models read and
    find the shots, score, and write the page. A run that was stopped resumes
    where it was. Windows and features are made once; scores and page each time, so that another
    model that reads the same features, title or language needs no other folder.

    A film's id is the name of its file; the id that it has in the labels, if it is labelled, so that a model
    that was trained on it is not taken to predict it.

    \b
    Exit codes: as of the commands; 3 if windows failed, or if a film is
    unlike every film that a model was trained on.

    \b
    Examples:
      obygaze film run film.mkv --model run/pcbm_lr.model --out scored
      obygaze film run films/*.mkv --model pcbm_lr.model --window 8 --hop 4 \\
          --out scored
    """
    from obygaze_features.io import file_sha256
    from obygaze_features.store import open_store
    from obygaze_features.video import file_digest
    from obygaze_models.persistence.sharing import describe_model

    if (title or year) and len(films) > 1:
        raise click.UsageError(f"--title and --year are for one film; there are {len(films)}")
    _offer_year(films, year)
    if flags is not None and shots == "none":
        raise click.UsageError("--flags replaces flags of shots: there are none with --shots none")
    if (sound and not variables) or (variables and shots == "none"):
        raise click.UsageError("--sound is for --variables, and these count cuts: not with --shots none")
    _refuse_late(films, title, flags, sound=sound)
    cards = {model: describe_model(model)[0].card for model in models}
    features = _features(cards, weights)
    # On the frames that are decoded for windows and shots; without OpenCV there is no camera.
    features += ["--backbone", "camera"] if variables and find_spec("cv2") else []
    windows, store = out / "windows.csv", out / "features"
    sealed, scored, page = (out / name for name in WRITTEN[4:7])
    table, staged = out / "windows.shots.csv", out / "variables.csv"
    length = ["--window", "train", "--model", models[0]] if window == "train" else ["--window", window]
    # Shots of our own are found while the windows are decoded; other detectors see the film before.
    first = "none" if shots == "own" else shots
    cut = ["manifest", "import", "film", *films, *length, "--hop", hop, "--shots", first, "--out", windows]
    beside = [] if shots == "none" else ["--shots", table]
    parallel = ["--workers", workers] if workers else []
    score = ["film", "score", *models, sealed, *beside]
    score += [word for film in films if subtitles for word in _subtitles_of(Path(film), encoding)]
    told: dict[str, object] = {"--flags": flags, "--title": title, "--year": year}
    told |= {"--encoding": encoding or None, "--variables": staged if variables else None}
    score += [word for option, value in told.items() if value is not None for word in (option, value)]
    measure = ["film", "variables", *films, "--windows", sealed, *beside, *["--sound"] * sound]
    steps: list[tuple[Sequence[object], Path]] = [
        (cut, windows),
        (["extract", windows, store, *features, *(beside if shots == "own" else []), *parallel], sealed),
        *[([*measure, "--out", staged], staged)] * variables,
        ([*score, "--out", scored], scored),
        (["film", "report", scored, "--out", page, "--language", language], page),
    ]
    if shots in SECOND_PASS:
        needs = f"{SECOND_PASS[shots]} needs all frames in order, from the first on"
        click.echo(f"--shots {shots}: every film is decoded twice, because {needs}")
    if dry_run:
        for words, _ in steps:
            click.echo(typed(words))
        return
    made_of = {
        "films": [[Path(film).name, file_digest(Path(film))] for film in films],
        "windows": [cards[models[0]].clip_s if window == "train" else window, hop],
        "shots": file_sha256(Path(shots)) if Path(shots).is_file() else shots,
        "features": [str(word) for word in features],
    }
    made_of["variables"] = ("with speech" if sound else "without speech") if variables else "none"
    _prepare(out, made_of, force=force)
    if sealed.exists():
        remove([out / "features.building"])  # of a run that was killed as the store had its name
    code = _take(ctx, steps, once=(windows, sealed, staged))
    if stills:
        _make_stills(scored, [Path(film) for film in films])
    click.echo(f"\nThe page: {page}")
    failed = any(clip.status == "failed" for clip in open_store(sealed).clips)
    ctx.exit(3 if failed else code)


def _refuse_late(films: Sequence[str], title: str | None, flags: str | None, *, sound: bool) -> None:
    """Refuse before hours of work what the steps behind them would refuse."""
    from obygaze_features.backbones.speech import speech_chances
    from obygaze_features.io import file_names
    from obygaze_features.manifest import read_parts
    from obygaze_features.text import composed, unsuitable

    movies = [composed(Path(film).stem) for film in films]
    file_names(movies)
    if title is not None and (wrong := unsuitable(title, lines=True)):
        raise click.UsageError(f"--title {wrong}")
    if flags is not None:
        read_parts(Path(flags), movies if len(movies) == 1 else None, flagged=True)
    if sound:
        speech_chances(())


def _offer_year(films: Sequence[str], year: int | None) -> None:
    """Say how to keep a year that the only film's name has in brackets."""
    said = re.search(r"\((1[89]\d\d|20\d\d)\)", Path(films[0]).stem)
    if said and year is None and len(films) == 1:
        click.echo(f"{films[0]}: its name says {said[1]}: 'film run --year {said[1]}' keeps that", err=True)


def _take(ctx: click.Context, steps: Sequence[tuple[Sequence[object], Path]], once: Sequence[Path]) -> int:
    """Take the steps, those of `once` unless they are done; return the worst exit code of the others."""
    code = 0
    for words, made in steps:
        if made in once and made.exists():
            click.echo(f"\n{typed(words)}\n{made} is there already")
            continue
        # Shots are written before the windows that they belong to.
        remains = (made not in once and made.exists()) or made.with_suffix(".shots.csv").exists()
        ended = run_command(ctx, [*words, "--force"] if remains else words)
        if ended not in {0, 3} or not made.exists():
            ctx.exit(ended or 1)
        code = max(code, 0 if made in once else ended)
    return code


def _features(cards: "Mapping[str, Card]", weights: Sequence[str]) -> list[object]:
    """Say in options of `extract` which features the models read.

    Raises
    ------
    UsageError
        The models read features that one extraction can't make, or that were made with another tool.
    """
    from obygaze_features.backbones.registry import made_by
    from obygaze_features.commands.extract_command import addressed

    provenances: dict[str, dict[str, Any]] = {}
    samplings: list[dict[str, Any]] = []
    for each, model in ((each, model) for model, card in cards.items() for each in card.inputs):
        provenance, backbone = each["provenance"], each["backbone"]
        if provenance.get("imported"):
            raise click.UsageError(
                f"{model} reads features of {backbone} that another tool made: extract the windows "
                "with it, then 'obygaze store import' and 'obygaze film score'"
            )
        provenances.setdefault(backbone, provenance)
        samplings.append(provenance["sampling"])
    if any(sampling != samplings[0] for sampling in samplings):
        raise click.UsageError("the models read features that were sampled differently: run them one by one")
    options: list[object] = []
    given = {name: value for each in weights for name, value in addressed(each, provenances).items()}
    for name, provenance in provenances.items():
        backbone, named = made_by(provenance, given.get(name))
        options += ["--backbone", backbone, *(["--weights", f"{backbone}={named}"] if named else [])]
    if samplings[0].get("n"):
        options += ["--n", samplings[0]["n"]]
    if samplings[0].get("policy") == "keyframes":
        options += ["--sampling", "keyframes"]
    return options


def _subtitles_of(film: Path, encoding: str) -> list[object]:
    """Say in options of `film score` where the subtitles of a film are; nowhere if it has none."""
    from obygaze_features.errors import ManifestError, VideoError
    from obygaze_film.rows import read_words

    for path in (*(film.with_suffix(suffix) for suffix in (".srt", ".vtt", ".ass")), film):
        with contextlib.suppress(ManifestError, VideoError, FileNotFoundError):
            read_words(path, encoding)
            return ["--subtitles", path]
    click.echo(f"{film} has no subtitles: none are beside it, and none in it are text", err=True)
    return []


def _make_stills(scored: Path, films: Sequence[Path]) -> None:
    """Make what the desk shows of the films' pictures and sound."""
    from obygaze_film import read_films
    from obygaze_film.commands.film_open import make_all, matched
    from obygaze_film.workspace.proxy import cache_folder

    timelines = {film.movie: film for film in read_films([scored])}
    click.echo(f"\nStills, colours and sound for 'obygaze film open' are in {cache_folder()}")
    found = {path: timelines[movie] for movie, path in matched(films, [*timelines.values()]).items()}
    make_all(found, lambda error: click.echo(error, err=True))


def _prepare(out: Path, made_of: Mapping[str, Any], *, force: bool) -> None:
    """Make the folder, with the record of what its windows and features are made of.

    Raises
    ------
    UsageError
        The folder holds something else, or was made of something else.
    """
    from obygaze_features.io import make_folder, write_whole
    from obygaze_features.lines import json_bytes

    record = out / RECORD
    if force and record.is_file():
        remove(out / name for name in WRITTEN)
    if record.is_file():
        try:
            made = parse_json(read_bytes(record))
            differing = [name for name, value in made_of.items() if made[name] != value]
        except (ValueError, TypeError, KeyError):
            raise click.UsageError(
                f"{record} is damaged, or of another version: choose another --out"
            ) from None
        if differing:
            raise click.UsageError(
                f"{out} was made with other {' and '.join(differing)} ({RECORD}): choose another --out"
            )
        return
    if out.exists() and (not out.is_dir() or any(not path.name.startswith(".") for path in out.iterdir())):
        raise click.UsageError(f"{out} holds something else: choose another --out")
    make_folder(out.absolute())
    write_whole(record, json_bytes(made_of))
