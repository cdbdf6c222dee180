"""Run the steps from a film's file to its page: each step is a command, printed before it runs."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from obygaze.pipeline import remove, run_command, typed
from obygaze_features.door import parse_json, read_bytes
from obygaze_features.signatures import argument, command, option
from obygaze_film.commands.film_options import YEARS, Language

if TYPE_CHECKING:
    from obygaze_features.backbones import Layers
    from obygaze_features.backbones.people import People
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


class Step(NamedTuple):
    """A command, what it makes, and whether that is made once, whichever model scores."""

    words: Sequence[object]
    made: Path
    once: bool


@dataclass(frozen=True)
class Plan:
    """The steps of a run as commands, and where they write.

    Attributes
    ----------
    out : Path
        Folder of the run.
    films, models : sequence of str
        Files.
    shots : str
        How shots are found: a detector, `none`, or a table of them.
    """

    out: Path
    films: Sequence[str]
    models: Sequence[str]
    shots: str

    @property
    def windows(self) -> Path:
        """Manifest of the films' windows."""
        return self.out / "windows.csv"

    @property
    def sealed(self) -> Path:
        """Store of the windows' features."""
        return self.out / "features-1.0.0"

    @property
    def variables(self) -> Path:
        """Table of how the films are staged."""
        return self.out / "variables.csv"

    @property
    def scored(self) -> Path:
        """Folder of the scored films."""
        return self.out / "scored"

    @property
    def page(self) -> Path:
        """The page of the films."""
        return self.out / "report.html"

    @property
    def _table_of_shots(self) -> list[object]:
        return [] if self.shots == "none" else ["--shots", self.out / "windows.shots.csv"]

    def cut(self, window: str, hop: str) -> Step:
        """Cut films into windows; detectors of shots other than our own see the film before."""
        words: list[object] = ["manifest", "import", "film", *self.films, "--window", window]
        if window == "train":
            words += ["--model", self.models[0]]
        # Shots of our own are found while the windows are decoded.
        shots = "none" if self.shots == "own" else self.shots
        words += ["--hop", hop, "--shots", shots, "--out", self.windows]
        return Step(words, self.windows, once=True)

    def extract(self, features: Sequence[object], workers: int | None) -> Step:
        """Extract the features that the models read, in options of `extract`."""
        words: list[object] = ["extract", self.windows, self.out / "features", *features]
        if self.shots == "own":
            words += self._table_of_shots
        if workers:
            words += ["--workers", workers]
        return Step(words, self.sealed, once=True)

    def measure(self, *, sound: bool) -> Step:
        """Measure how films are staged."""
        words: list[object] = ["film", "variables", *self.films, "--windows", self.sealed]
        words += self._table_of_shots
        if sound:
            words.append("--sound")
        return Step([*words, "--out", self.variables], self.variables, once=True)

    def score(self, options: Sequence[object]) -> Step:
        """Score the films, with options of `film score`."""
        words = ["film", "score", *self.models, self.sealed, *self._table_of_shots, *options]
        return Step([*words, "--out", self.scored], self.scored, once=False)

    def report(self, language: str) -> Step:
        """Write the page."""
        words = ["film", "report", self.scored, "--out", self.page, "--language", language]
        return Step(words, self.page, once=False)


@command()
def run(
    films: Annotated[tuple[str, ...], argument(type=click.Path(exists=True), metavar="FILM...")],
    *,
    models: Annotated[tuple[str, ...], option("Saved model; repeatable.", name="model")],
    weights: Annotated[
        tuple[str, ...],
        option(
            "Weights of the backbone NAME, as for extract.  [default: those that the model names, on the hub "
            "or random]",
            metavar="[NAME=]WEIGHTS",
        ),
    ] = (),
    window: Annotated[
        str,
        option(
            "Length of a window. train: median length of the clips the first model was trained on.",
            metavar="train|SECONDS",
        ),
    ] = "train",
    hop: Annotated[str, option("Time between windows' starts.", metavar="auto|SECONDS")] = "auto",
    shots: Annotated[
        str,
        option(
            "How shots are found. With own, and with none or a table, each frame is decoded once.",
            metavar="own|transnet|scenedetect|none|FILE.csv",
        ),
    ] = "own",
    flags: Annotated[
        str | None,
        option(
            "Where films are black or show credits, as a person saw it.",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE.csv",
        ),
    ] = None,
    subtitles: Annotated[
        bool,
        option(
            "Keep what is said: of FILM.srt (or .vtt, .ass) beside the film, else of the film's own text "
            "track."
        ),
    ] = False,
    encoding: Annotated[str, option("Of subtitles that are not UTF-8: cp1251.")] = "",
    variables: Annotated[
        bool,
        option("Measure how films are staged too (film variables): for the page, and in variables.csv."),
    ] = False,
    sound: Annotated[bool, option("With --variables, measure speech; needs the extra sound.")] = False,
    people: Annotated[
        tuple[str, ...],
        option(
            "With --variables, count and measure people, by detectors as of film variables.",
            metavar="centerface|WHEEL|onnx:FILE[:LAYER]",
        ),
    ] = (),
    out: Annotated[Path, option("Folder to write.")],
    title: Annotated[str | None, option("Title of the film, if there is one only.")] = None,
    year: Annotated[int | None, option("Its year, by which films are compared.", type=YEARS)] = None,
    language: Language = "en",
    stills: Annotated[
        bool,
        option("Make stills, colours and sound for the timeline of 'obygaze film open', kept in your cache."),
    ] = False,
    workers: Annotated[
        int | None, option("Decoding processes.  [default: the usable cores]", type=click.IntRange(1))
    ] = None,
    dry_run: Annotated[bool, option("Print the commands, run nothing that takes long.")] = False,
    force: Annotated[bool, option("Remove what an earlier run wrote, and start anew.")] = False,
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

    _refuse_options(films, shots, flags, title, year, variables=variables, sound=sound, people=people)
    _offer_year(films, title, year)
    _refuse_late(films, title, flags, sound=sound)
    model_files = {model: describe_model(model)[0] for model in models}
    cards = {model: file.card for model, file in model_files.items()}
    features = _features(cards, weights)
    if any(file.keeps_pictures for file in model_files.values()):
        # By it a film that a model was trained on is known again, in another encoding too.
        features += ["--backbone", "signature"]
    finder = _people(people)
    features += _measured(finder, variables=variables)

    plan = Plan(out, films, models, shots)
    score_options = _subtitles_of(films, encoding) if subtitles else []
    staged = plan.variables if variables else None
    score_options += _options_of(
        {"flags": flags, "title": title, "year": year, "encoding": encoding or None, "variables": staged}
    )
    steps = [plan.cut(window, hop), plan.extract(features, workers)]
    if variables:
        steps.append(plan.measure(sound=sound))
    steps += [plan.score(score_options), plan.report(language)]
    if shots in SECOND_PASS:
        needs = f"{SECOND_PASS[shots]} needs all frames in order, from the first on"
        click.echo(f"--shots {shots}: every film is decoded twice, because {needs}")
    if dry_run:
        for step in steps:
            click.echo(typed(step.words))
        return
    made_of: dict[str, object] = {
        "films": [[Path(film).name, file_digest(Path(film))] for film in films],
        "windows": [cards[models[0]].clip_s if window == "train" else window, hop],
        "shots": file_sha256(Path(shots)) if Path(shots).is_file() else shots,
        "features": [str(word) for word in features],
        "variables": "none",
        "people": [detector.digest for detector in finder.detectors] if finder else [],
    }
    if variables:
        made_of["variables"] = "with speech" if sound else "without speech"
    _prepare(out, made_of, force=force)
    if plan.sealed.exists():
        remove([out / "features.building"])  # of a run that was killed as the store had its name
    ctx = click.get_current_context()
    code = _take(ctx, steps[:1])
    _say_cost(finder, plan)
    code = max(code, _take(ctx, steps[1:]))
    if stills:
        _make_stills(plan.scored, [Path(film) for film in films])
    click.echo(f"\nThe page: {plan.page}")
    failed = any(clip.status == "failed" for clip in open_store(plan.sealed).clips)
    ctx.exit(3 if failed else code)


def _refuse_options(
    films: Sequence[str],
    shots: str,
    flags: str | None,
    title: str | None,
    year: int | None,
    *,
    variables: bool,
    sound: bool,
    people: Sequence[str],
) -> None:
    """Refuse options that do not go together."""
    if (title or year) and len(films) > 1:
        raise click.UsageError(f"--title and --year are for one film; there are {len(films)}")
    if flags is not None and shots == "none":
        raise click.UsageError("--flags replaces flags of shots: there are none with --shots none")
    if (sound and not variables) or (variables and shots == "none"):
        raise click.UsageError("--sound is for --variables, and these count cuts: not with --shots none")
    if people and not variables:
        raise click.UsageError("--people is for --variables")


def _options_of(values: Mapping[str, object]) -> list[object]:
    """Write options that have a value as words of a command."""
    words: list[object] = []
    for name, value in values.items():
        if value is not None:
            words += [f"--{name}", value]
    return words


def _refuse_late(films: Sequence[str], title: str | None, flags: str | None, *, sound: bool) -> None:
    """Refuse before hours of work what the steps behind them would refuse."""
    from obygaze_features.backbones.speech import speech_probabilities
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
        speech_probabilities(())


def _offer_year(films: Sequence[str], title: str | None, year: int | None) -> None:
    """Say how to keep a year that the only film's title has in brackets, or the name of its file."""
    if year is not None or len(films) > 1:
        return
    of_what, text = ("title", title) if title else ("name", Path(films[0]).stem)
    named = re.search(r"\((1[89]\d\d|20\d\d)\)", text)
    if named:
        notice = f"{films[0]}: its {of_what} says {named[1]}: 'film run --year {named[1]}' keeps that"
        click.echo(notice, err=True)


def _people(sources: Sequence[str]) -> "People | None":
    """Load the detectors of people: what is wrong with one is said before any work."""
    from obygaze_features.backbones.people import load_people

    return load_people(sources) if sources else None


def _measured(finder: "People | None", *, variables: bool) -> list[object]:
    """Say in options of `extract` what is measured on the frames that are decoded for windows and shots."""
    options: list[object] = []
    if variables and find_spec("cv2"):  # without OpenCV there is no camera
        options += ["--backbone", "camera"]
    if finder is not None:
        options += ["--backbone", "people", "--weights", f"people={','.join(finder.sources())}"]
    return options


def _say_cost(finder: "People | None", plan: Plan) -> None:
    """Say how long people take, before the windows of the films are decoded."""
    from obygaze_features import read_manifest

    if finder is not None and not plan.sealed.exists():
        click.echo(f"\n{finder.cost(len(read_manifest(plan.windows)))}")


def _take(ctx: click.Context, steps: Sequence[Step]) -> int:
    """Take the steps, those made once unless they are done; return the worst exit code of the others."""
    worst = 0
    for step in steps:
        if step.once and step.made.exists():
            click.echo(f"\n{typed(step.words)}\n{step.made} is there already")
            continue
        # Shots are written before the windows that they belong to.
        shots_are_there = step.made.with_suffix(".shots.csv").exists()
        replaces = shots_are_there or step.made.exists()
        code = run_command(ctx, [*step.words, "--force"] if replaces else step.words)
        if code not in {0, 3} or not step.made.exists():
            ctx.exit(code or 1)
        if not step.once:
            worst = max(worst, code)
    return worst


def _features(cards: "Mapping[str, Card]", weights: Sequence[str]) -> list[object]:
    """Say in options of `extract` which features the models read.

    Raises
    ------
    UsageError
        The models read features that one extraction can't make, or that were made with another tool.
    """
    provenances: dict[str, dict[str, Any]] = {}
    samplings: list[dict[str, Any]] = []
    for model, card in cards.items():
        for group in card.inputs:
            provenance, backbone = group["provenance"], group["backbone"]
            if provenance.get("imported"):
                raise click.UsageError(
                    f"{model} reads features of {backbone} that another tool made: extract the windows "
                    "with it, then 'obygaze store import' and 'obygaze film score'"
                )
            provenances.setdefault(backbone, provenance)
            samplings.append(provenance["sampling"])
    if any(sampling != samplings[0] for sampling in samplings):
        raise click.UsageError("the models read features that were sampled differently: run them one by one")
    options = _backbones(provenances, weights)
    if samplings[0].get("n"):
        options += ["--n", samplings[0]["n"]]
    if samplings[0].get("policy") == "keyframes":
        options += ["--sampling", "keyframes"]
    return options


def _backbones(provenances: "Mapping[str, Mapping[str, Any]]", weights: Sequence[str]) -> list[object]:
    """Say in options of `extract` which backbones give groups, with which weights and layers."""
    from obygaze_features.backbones.registry import backbone_call
    from obygaze_features.commands.extract_command import addressed

    owners = {name: str(provenance.get("beside", name)) for name, provenance in provenances.items()}
    weights_of: dict[str, str] = {}
    for text in weights:
        weights_of |= addressed(text, [*owners, *owners.values()])
    weights_by_backbone: dict[str, str | None] = {}
    layers_by_backbone: dict[str, list[Layers]] = {}
    wants_answers = False
    for name, provenance in provenances.items():
        maker = backbone_call(provenance, weights_of.get(name) or weights_of.get(owners[name]))
        weights_by_backbone[maker.name] = maker.weights
        if "layers" in maker.options:
            layers_by_backbone.setdefault(maker.name, []).append(maker.options["layers"])
        if "answers" in maker.options:
            wants_answers = True
    options: list[object] = ["--answers"] if wants_answers else []
    for backbone, named_weights in weights_by_backbone.items():
        options += ["--backbone", backbone]
        if named_weights:
            options += ["--weights", f"{backbone}={named_weights}"]
    return [*options, *_layers(layers_by_backbone)]


def _layers(by_backbone: "Mapping[str, Sequence[Layers]]") -> list[object]:
    """Say in options of `extract` which layers of which backbones the models read.

    Raises
    ------
    UsageError
        Some are normalised and others are not, or some have frames: one extraction stores all in one way.
    """
    options: list[object] = []
    ways: set[tuple[bool, bool]] = set()
    for backbone, layers in by_backbone.items():
        numbers = sorted({number for each in layers for number in each.numbers})
        options += ["--layers", f"{backbone}={','.join(map(str, numbers))}"]
        ways |= {(each.norm, each.frames) for each in layers}
    if len(ways) > 1:
        raise click.UsageError("the models read layers that were stored differently: run them one by one")
    for norm, frames in ways:
        if norm:
            options.append("--layer-norm")
        if frames:
            options.append("--layer-frames")
    return options


def _subtitles_of(films: Sequence[str], encoding: str) -> list[object]:
    """Write as options of `film score` where the subtitles of films are; print which films have none."""
    options: list[object] = []
    for film in films:
        path = _subtitles_file(Path(film), encoding)
        if path is None:
            click.echo(f"{film} has no subtitles: none are beside it, and none in it are text", err=True)
        else:
            options += ["--subtitles", path]
    return options


def _subtitles_file(film: Path, encoding: str) -> Path | None:
    """Find the file that holds a film's subtitles: one beside it, or the film."""
    from obygaze_features.errors import ManifestError, VideoError
    from obygaze_film.rows import read_words

    beside = [film.with_suffix(suffix) for suffix in (".srt", ".vtt", ".ass")]
    for path in (*beside, film):
        with contextlib.suppress(ManifestError, VideoError, FileNotFoundError):
            read_words(path, encoding)
            return path
    return None


def _make_stills(scored: Path, films: Sequence[Path]) -> None:
    """Make what the desk shows of the films' pictures and sound."""
    from obygaze_film import read_films
    from obygaze_film.commands.film_open import make_all, matched
    from obygaze_film.workspace.proxy import cache_folder

    timelines = {film.movie: film for film in read_films([scored])}
    click.echo(f"\nStills, colours and sound for 'obygaze film open' are in {cache_folder()}")
    timeline_of = {path: timelines[movie] for movie, path in matched(films, [*timelines.values()]).items()}
    make_all(timeline_of, lambda error: click.echo(error, err=True))


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
