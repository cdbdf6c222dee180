"""Run the steps from a film's file to its page: each step is a command, printed before it runs."""

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from obygaze.pipeline import format_command, remove, run_command
from obygaze_features.commands.manifest_film import Hop
from obygaze_features.signatures import argument, command, option
from obygaze_features.text import counted
from obygaze_features.untrusted import parse_json, read_bytes
from obygaze_film.commands.film_options import YEARS, Language

if TYPE_CHECKING:
    from obygaze_features.backbones import Layers
    from obygaze_features.backbones.people import People
    from obygaze_models.persistence.card import Card
    from obygaze_models.persistence.model_file import ModelFile

RECORD_FILE = "film-run.json"
"""File that records what windows and features are made of: a run resumes only with the same inputs."""

DETECTORS_OF_SECOND_PASS = {"scenedetect": "PySceneDetect", "transnet": "TransNet"}
"""Option of a detector of shots that decodes the film before its windows are decoded -> its name."""

WRITTEN_NAMES = (
    "windows.csv",
    "windows.shots.csv",
    "variables.csv",
    "features.staging",
    "features-1.0.0",
    "scored",
    "report.html",
    RECORD_FILE,  # the last, so that a removal that was stopped can go on
)
"""Everything that a run writes into its folder."""


class Step(NamedTuple):
    """One command of a run.

    Attributes
    ----------
    words : sequence
        The command's words after `obygaze`.
    result : Path
        The file or folder that it writes.
    once : bool
        Whether it is skipped where its result exists, since that does not depend on the model that scores.
    """

    words: Sequence[object]
    result: Path
    once: bool


@dataclass(frozen=True)
class Plan:
    """The steps of a run as commands, and where they write.

    Attributes
    ----------
    out : Path
        Folder of the run.
    films : sequence of str
        Files.
    models : sequence of str
        Files, URLs, or names in a list of models.
    shots : str
        How shots are found: a detector, `none`, or a table of them.
    """

    out: Path
    films: Sequence[str]
    models: Sequence[str]
    shots: str

    @property
    def _film_paths(self) -> list[Path]:
        """Files of the films, as words of a command."""
        return [Path(film) for film in self.films]

    @property
    def windows_manifest(self) -> Path:
        """Manifest of the films' windows."""
        return self.out / "windows.csv"

    @property
    def features_store(self) -> Path:
        """Store of the windows' features."""
        return self.out / "features-1.0.0"

    @property
    def variables_table(self) -> Path:
        """Table of how the films are staged."""
        return self.out / "variables.csv"

    @property
    def scored_folder(self) -> Path:
        """Folder of the scored films."""
        return self.out / "scored"

    @property
    def report_page(self) -> Path:
        """The page of the films."""
        return self.out / "report.html"

    @property
    def _shots_option(self) -> list[object]:
        """The words of the option that names the table of the films' shots; empty if no shots are found."""
        return [] if self.shots == "none" else ["--shots", self.out / "windows.shots.csv"]

    def cut_step(self, window: str, hop: str) -> Step:
        """Plan to cut the films into windows, and to find shots first by a detector that is not `own`.

        `window` and `hop` are the values of the run's options of these names. For `train`, the length of the
        windows is that of the clips that the first model was trained on.
        """
        words: list[object] = ["manifest", "import", "film", *self._film_paths, "--window", window]
        if window == "train":
            words += ["--model", self.models[0]]
        # The package's own detector finds shots later, while the windows are decoded.
        shots = "none" if self.shots == "own" else self.shots
        words += ["--hop", hop, "--shots", shots, "--out", self.windows_manifest]
        return Step(words, self.windows_manifest, once=True)

    def extract_step(self, features: Sequence[object], workers: int | None) -> Step:
        """Plan to extract the windows' features and, with the detector `own`, to find the shots.

        `features` are the options of `extract` that name the features; `workers` is its number of processes,
        None for its default.
        """
        words: list[object] = ["extract", self.windows_manifest, self.out / "features", *features]
        if self.shots == "own":
            words += self._shots_option
        if workers:
            words += ["--workers", workers]
        return Step(words, self.features_store, once=True)

    def variables_step(self, *, sound: bool) -> Step:
        """Plan to measure how the films are staged, with speech if `sound` is set."""
        words: list[object] = ["film", "variables", *self._film_paths, "--windows", self.features_store]
        words += self._shots_option
        if sound:
            words.append("--sound")
        return Step([*words, "--out", self.variables_table], self.variables_table, once=True)

    def score_step(self, options: Sequence[object]) -> Step:
        """Plan to score the films; `options` are further options of `film score`."""
        # A file whose name begins with "-" would be taken for an option: as a path, it is written with "./".
        # Other models stay as they were given. As paths, a URL would lose a slash, and the file ./NAME its
        # "./", so that it would be taken for the model NAME of a list.
        models = [Path(model) if model.startswith("-") else model for model in self.models]
        words = ["film", "score", *models, self.features_store, *self._shots_option, *options]
        return Step([*words, "--out", self.scored_folder], self.scored_folder, once=False)

    def report_step(self, language: str) -> Step:
        """Plan to write the page of the scored films in a language."""
        words = ["film", "report", self.scored_folder, "--out", self.report_page, "--language", language]
        return Step(words, self.report_page, once=False)


@command()
def run(
    films: Annotated[tuple[str, ...], argument(type=click.Path(exists=True), metavar="FILM...")],
    *,
    models: Annotated[tuple[str, ...], option("File of a saved model; repeatable.", name="model")],
    weights: Annotated[
        tuple[str, ...],
        option(
            "Weights of the backbone NAME, as for 'extract'.  [default: those that the model's file records, "
            "on the hub or random]",
            metavar="[NAME=]WEIGHTS",
        ),
    ] = (),
    window: Annotated[
        str,
        option(
            "Length of a window in seconds. train: the median length of the clips that the first model was "
            "trained on.",
            metavar="train|SECONDS",
        ),
    ] = "train",
    hop: Hop = "auto",
    shots: Annotated[
        str,
        option(
            "Detector that finds the shots, or a table of them. own is built in. transnet and scenedetect "
            "need the extra shots and decode the film a second time. none: no shots.",
            metavar="own|transnet|scenedetect|none|FILE.csv",
        ),
    ] = "own",
    flags: Annotated[
        str | None,
        option(
            "Table of black pictures and credits that a person marked (columns start_s, end_s, flags, and "
            "movie if there are several films). At these times it replaces the detector's flags.",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE.csv",
        ),
    ] = None,
    subtitles: Annotated[
        bool,
        option(
            "Also show each film's subtitles: those of FILM.srt (or .vtt, .ass, .ttml) beside it, else those "
            "of its own text track."
        ),
    ] = False,
    encoding: Annotated[str, option("Encoding of subtitles that are not UTF-8, such as cp1251.")] = "",
    variables: Annotated[
        bool,
        option(
            "Also measure how films are staged, as 'film variables' does: for the page, and in variables.csv."
        ),
    ] = False,
    sound: Annotated[bool, option("With --variables, also measure speech; needs the extra sound.")] = False,
    people: Annotated[
        tuple[str, ...],
        option(
            "With --variables, also count and measure people in the pictures, with this detector (see 'film "
            "variables --help'); repeatable.",
            metavar="centerface|WHEEL|onnx:FILE[:LAYER]",
        ),
    ] = (),
    out: Annotated[Path, option("Folder to write.")],
    title: Annotated[str | None, option("Title of the film; for one film only.")] = None,
    year: Annotated[
        int | None,
        option("Year of the film, by which 'film compare' groups films; for one film only.", type=YEARS),
    ] = None,
    language: Language = "en",
    stills: Annotated[
        bool,
        option(
            "Also make the stills, colours and sound that the timeline of 'film open' shows. They are kept "
            "in your cache."
        ),
    ] = False,
    workers: Annotated[
        int | None,
        option("Number of decoding processes.  [default: the usable cores]", type=click.IntRange(1)),
    ] = None,
    dry_run: Annotated[bool, option("Print the commands, and run none of them.")] = False,
    force: Annotated[bool, option("Remove what an earlier run wrote into --out, and start anew.")] = False,
) -> None:
    """Score whole films with saved models, from the video files to a page: report.html.

    Each step is a command that is printed before it runs. The steps are: cut the films into windows, extract
    the features that the models read and find the shots, score the windows, and write the page. To resume a
    run that was stopped, start it again.

    Windows and features are made once per folder --out, scores and page in each run. So you can run again in
    the same folder with another title, another language, or another model that reads the same features.

    A film's id is the name of its file without suffix. If the film is among the labelled films that a model
    was trained on, name the file as the film is called there: then the page says that the scores are no
    predictions.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but windows failed or
    nothing of a film can be judged (see 'film score --help').

    \b
    Examples:
      obygaze film run film.mkv --model run/pcbm_lr.model --out scored
      obygaze film run films/*.mkv --model pcbm_lr.model --window 8 --hop 4 \\
          --out scored
    """
    from obygaze_features.backbones.people import load_people
    from obygaze_models.persistence.sharing import describe_model

    # Whatever a later step would refuse is refused now, before hours of work.
    _check_options(films, shots, flags, title, year, variables=variables, sound=sound, people=people)
    _suggest_year_option(films, title, year)
    _check_inputs_of_later_steps(films, title, flags, sound=sound)

    # What is extracted: the features that the models read, and what is measured besides. Each is said by
    # options of `extract`.
    model_files = {model: describe_model(model)[0] for model in models}
    extract_options = _options_of_models(model_files, weights)
    people_finder = load_people(people) if people else None
    extract_options += _measurement_options(people_finder, variables=variables)

    # The steps, as commands. None stands for an option that is not given.
    plan = Plan(out, films, models, shots)
    score_options = _subtitle_options(films, encoding) if subtitles else []
    score_options += _option_words(
        {
            "flags": flags,
            "title": title,
            "year": year,
            "encoding": encoding or None,
            "variables": plan.variables_table if variables else None,
        }
    )
    # Its step is run alone: only when films are cut into windows, the cost of finding people can be told.
    cut_step = plan.cut_step(window, hop)
    later_steps = [plan.extract_step(extract_options, workers)]
    if variables:
        later_steps.append(plan.variables_step(sound=sound))
    later_steps += [plan.score_step(score_options), plan.report_step(language)]
    _print_second_decoding(shots)
    if dry_run:
        for step in (cut_step, *later_steps):
            click.echo(format_command(step.words))
        return

    # The folder. It has a record of what windows and features are made of: a run goes on with what is there
    # only if these inputs are the same.
    window_length = model_files[models[0]].card.clip_s if window == "train" else window
    inputs: dict[str, object] = {
        "films": _identify_films(films),
        "windows": [window_length, hop],
        "shots": _identify_shots(shots),
        "features": [str(word) for word in extract_options],
        "variables": _variables_word(variables=variables, sound=sound),
        "people": _identify_detectors(people_finder),
    }
    _prepare_folder(out, inputs, force=force)
    if plan.features_store.exists():
        # It is left over if a run was killed just after the finished store got its name.
        remove([out / "features.building"])

    # The run.
    ctx = click.get_current_context()
    _run_steps(ctx, [cut_step])
    _print_people_cost(people_finder, plan)
    code = _run_steps(ctx, later_steps)
    if stills:
        _make_stills(plan.scored_folder, [Path(film) for film in films])
    click.echo(f"\nThe page: {plan.report_page}")
    if _has_failed_windows(plan.features_store):
        ctx.exit(3)
    ctx.exit(code)  # 0, or 3 of a step that says that nothing of a film can be judged


def _print_second_decoding(shots: str) -> None:
    """Print why films are decoded twice, if `shots` is a detector that needs it.

    The detectors of the packages PySceneDetect and TransNet decode a film before its windows are decoded.
    """
    if shots not in DETECTORS_OF_SECOND_PASS:
        return
    reason = f"{DETECTORS_OF_SECOND_PASS[shots]} needs all frames in order, from the first on"
    click.echo(f"--shots {shots}: every film is decoded twice, because {reason}")


def _identify_films(films: Sequence[str]) -> list[list[str]]:
    """Return what the record of a run says of its films: name and digest of each file."""
    from obygaze_features.video import file_digest

    return [[Path(film).name, file_digest(Path(film))] for film in films]


def _identify_detectors(people_finder: "People | None") -> list[str]:
    """Return what the record of a run says of the detectors of people: their digests, if there are any."""
    if people_finder is None:
        return []
    return [detector.digest for detector in people_finder.detectors]


def _identify_shots(shots: str) -> str:
    """Return what the record of a run says of how shots are found: a table's digest, or a detector's name.

    `shots` is the value of the option: the path of a table, the name of a detector, or "none".
    """
    from obygaze_features.io import file_sha256

    is_table = Path(shots).is_file()
    return file_sha256(Path(shots)) if is_table else shots


def _has_failed_windows(features_store: Path) -> bool:
    """Return whether the features of a window could not be extracted, in this run or an earlier one.

    The exit code of the extraction does not say so, since a run that resumes skips it.
    """
    from obygaze_features.store import open_store

    return any(clip.status == "failed" for clip in open_store(features_store).clips)


def _variables_word(*, variables: bool, sound: bool) -> str:
    """Return what the record of a run says of the measured staging: "none", "with" or "without speech"."""
    if not variables:
        return "none"
    return "with speech" if sound else "without speech"


def _check_options(
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
    """Raise a UsageError if options of `film run` do not go together.

    The parameters are the values of the options of these names.
    """
    describes_one_film = bool(title or year)
    if describes_one_film and len(films) > 1:
        raise click.UsageError(f"--title and --year are for one film; there are {len(films)}")
    finds_no_shots = shots == "none"
    if flags is not None and finds_no_shots:
        raise click.UsageError("--flags replaces flags of shots: there are none with --shots none")
    sound_without_variables = sound and not variables
    variables_without_shots = variables and finds_no_shots
    if sound_without_variables or variables_without_shots:
        raise click.UsageError("--sound is for --variables, and these count cuts: not with --shots none")
    if people and not variables:
        raise click.UsageError("--people is for --variables")


def _option_words(values: Mapping[str, object]) -> list[object]:
    """Return options as words of a command, such as `--title TITLE`.

    `values` is name of an option -> its value; an option whose value is None is left out.
    """
    words: list[object] = []
    for name, value in values.items():
        if value is not None:
            words += [f"--{name}", value]
    return words


def _check_inputs_of_later_steps(
    films: Sequence[str], title: str | None, flags: str | None, *, sound: bool
) -> None:
    """Check, before hours of work, what the last steps of a run would refuse.

    These are the films' names, the title, the table of flags, and the detector of speech if sound is
    measured; each raises the error that the step itself would raise.

    Parameters
    ----------
    films
        The films' files, whose names are the films' ids.
    title, flags
        Title of a film, and table of its black pictures and credits; None without.
    sound
        Whether speech is measured.
    """
    from obygaze_features.backbones.speech import speech_probabilities
    from obygaze_features.io import file_names
    from obygaze_features.manifest import read_parts
    from obygaze_features.text import composed, unsuitable

    movies = [composed(Path(film).stem) for film in films]
    file_names(movies)  # raises if two films have one name, or a name is no file name
    if title is not None:
        unsuitable_character = unsuitable(title, line_breaks=True)
        if unsuitable_character:
            raise click.UsageError(f"--title {unsuitable_character}")
    if flags is not None:
        only_movie = movies if len(movies) == 1 else None
        read_parts(Path(flags), only_movie, flagged=True)  # raises if the table is no table of flags
    if sound:
        speech_probabilities(())  # raises if the detector cannot be loaded; there is no sound to measure yet


def _suggest_year_option(films: Sequence[str], title: str | None, year: int | None) -> None:
    """Suggest on stderr how to keep the year that a film has in its title or file name, as "Ferry (1954)".

    One film can be given the option --year; its file name is searched if it has no title. Years of several
    films can be given in a table. Nothing is suggested if --year is given.
    """
    if year is not None:
        return
    if len(films) > 1:
        _suggest_table_of_years(films)
        return
    source = "title" if title else "name"
    found_year = _year_in(title or Path(films[0]).stem)
    if found_year:
        notice = f"{films[0]}: its {source} says {found_year}: 'film run --year {found_year}' keeps that"
        click.echo(notice, err=True)


def _suggest_table_of_years(films: Sequence[str]) -> None:
    """Suggest on stderr a table of the films' years, if some of the films have a year in their file name.

    Who has films such as "Harbour Lights (1954).mp4" probably wants to compare them by years. Names of files
    are not read for that: the years must be in a table, films.csv, which the notice describes.
    """
    films_with_year = [film for film in films if _year_in(Path(film).stem)]
    if not films_with_year:
        return
    first_example = Path(films_with_year[0]).name
    all_films = counted(len(films), "film")
    notice = (
        f"{first_example} has a year in its name "
        f"(so {len(films_with_year)} of {all_films}): "
        "'film open --films films.csv --by decade', and 'film compare', compare by years that "
        "films.csv has, in the columns movie and year"
    )
    click.echo(notice, err=True)


def _year_in(text: str) -> str:
    """Find a year from 1800 to 2099 in brackets, as in "Harbour Lights (1954)"; empty if there is none."""
    match = re.search(r"\((1[89]\d\d|20\d\d)\)", text)
    return match[1] if match else ""


def _measurement_options(people_finder: "People | None", *, variables: bool) -> list[object]:
    """Return as options of `extract` what is measured on the frames in addition to the models' features.

    Parameters
    ----------
    people_finder
        The detectors of people; None to measure no people.
    variables
        Whether the staging of films is measured, which needs the movement of the camera.
    """
    options: list[object] = []
    if variables and find_spec("cv2"):  # without OpenCV its movement is not measured
        options += ["--backbone", "camera"]
    if people_finder is not None:
        options += ["--backbone", "people", "--weights", f"people={','.join(people_finder.sources())}"]
    return options


def _print_people_cost(people_finder: "People | None", plan: Plan) -> None:
    """Print how long finding people in the films' windows takes, if that is still to be done.

    `people_finder` is None if no people are measured. The windows must be cut already, since their number
    decides.
    """
    from obygaze_features import read_manifest

    if people_finder is not None and not plan.features_store.exists():
        click.echo(f"\n{people_finder.cost(len(read_manifest(plan.windows_manifest)))}")


def _run_steps(ctx: click.Context, steps: Sequence[Step]) -> int:
    """Run the commands of steps in order, and return the highest exit code of the steps that run every time.

    A step with `once` is skipped if its result exists, and its exit code does not count. Commands exit with 0
    if all is well, and with 3 if they are done, but something failed that they reported. Any other code is an
    error, and ends the whole run with that code.
    """
    highest_code = 0
    for step in steps:
        if step.once and step.result.exists():
            click.echo(f"\n{format_command(step.words)}\n{step.result} is there already")
            continue
        words = list(step.words)
        # A command refuses to overwrite what it finds, unless it gets --force. There may be a result of an
        # earlier run. Or there may be no windows.csv, but the windows.shots.csv that the same command writes
        # before it, because the earlier run was stopped between the two.
        shots_beside_result = step.result.with_suffix(".shots.csv")
        if step.result.exists() or shots_beside_result.exists():
            words.append("--force")
        code = run_command(ctx, words)
        is_done = code in {0, 3} and step.result.exists()
        if not is_done:
            ctx.exit(code or 1)  # 1: the command ended with 0, and without a result
        if not step.once:
            highest_code = max(highest_code, code)
    return highest_code


def _options_of_models(model_files: "Mapping[str, ModelFile]", weights: Sequence[str]) -> list[object]:
    """Return as options of `extract` what saved models need: the features that they read, and signatures.

    Parameters
    ----------
    model_files
        Name of a model -> its file.
    weights
        Values of the option --weights: `NAME=WEIGHTS`, or weights for all backbones.
    """
    cards = {model: file.card for model, file in model_files.items()}
    options = _feature_options(cards, weights)
    if any(file.keeps_pictures for file in model_files.values()):
        # The signature recognises a film that a model was trained on, even in another encoding.
        options += ["--backbone", "signature"]
    return options


def _feature_options(cards: "Mapping[str, Card]", weights: Sequence[str]) -> list[object]:
    """Return as options of `extract` which features saved models read.

    Parameters
    ----------
    cards
        Name of a model -> its card, which records where its features came from.
    weights
        Values of the option --weights: `NAME=WEIGHTS`, or weights for all backbones.

    Raises
    ------
    UsageError
        The models read features that one extraction can't make, or that were made with another tool.
    """
    provenances: dict[str, dict[str, Any]] = {}
    of_all_models: list[dict[str, Any]] = []
    for model, card in cards.items():
        for group in card.inputs:
            provenance = group["provenance"]
            backbone = group["backbone"]
            if provenance.get("imported"):
                raise click.UsageError(
                    f"{model} reads features of {backbone} that another tool made: extract the windows "
                    "with it, then 'obygaze store import' and 'obygaze film score'"
                )
            provenances.setdefault(backbone, provenance)
            of_all_models.append(provenance)

    sampling_options = _sampling_options(of_all_models)
    _refuse_features_made_differently(cards)
    return [
        *_backbone_options(provenances, weights),
        *_precision_options(provenances.values()),
        *sampling_options,
    ]


def _sampling_options(provenances: "Sequence[Mapping[str, Any]]") -> list[object]:
    """Return the options of `extract` by which frames are sampled, and damage treated, as features were made.

    Parameters
    ----------
    provenances
        The records of where the features of all models came from.

    Raises
    ------
    UsageError
        They differ: one extraction samples the frames of all backbones in the same way.
    """
    from obygaze_features.extraction.job import REFUSED

    sampling = provenances[0]["sampling"]
    if any(other["sampling"] != sampling for other in provenances):
        raise click.UsageError("the models read features that were sampled differently: run them one by one")
    # Whether damaged files were refused (`extract --strict`).
    are_strict = {other.get("decoder", {}).get("on_damage") == REFUSED for other in provenances}
    if len(are_strict) > 1:
        raise click.UsageError(
            "the models read features of which some were extracted with --strict: run them one by one"
        )
    options: list[object] = []
    if sampling.get("n"):
        options += ["--n", sampling["n"]]
    if sampling.get("rate"):
        options += ["--per-second", sampling["rate"]]
    if are_strict == {True}:
        options.append("--strict")
    if sampling.get("policy") == "keyframes":
        options += ["--sampling", "keyframes"]
    return options


def _refuse_features_made_differently(cards: "Mapping[str, Card]") -> None:
    """Raise unless all models that read features of a backbone read the same ones.

    The film has one group of features for each backbone, so that one of the models would refuse it.
    """
    from obygaze_features.store import same_numerics

    first_of_backbone: dict[str, Any] = {}  # the first model's description of the features
    for card in cards.values():
        for group in card.inputs:
            first: Any = first_of_backbone.setdefault(group["backbone"], group)
            if group is first:
                continue
            fields = same_numerics(first["provenance"], group["provenance"], array=first["features"])
            if fields:
                raise click.UsageError(
                    f"the models read features of {group['backbone']} that were made differently "
                    f"({', '.join(fields[:3])}): run them one by one"
                )


def _precision_options(provenances: "Iterable[Mapping[str, Any]]") -> list[object]:
    """Return the options of `extract` by which networks compute in the precision that features were made in.

    Parameters
    ----------
    provenances
        The records of where the features came from; those of no network are skipped.

    Raises
    ------
    UsageError
        Networks computed in different precisions, for which one extraction has no options.
    """
    from obygaze_features.commands.extract_command import PRECISIONS

    options_of_networks: list[list[object]] = []
    for provenance in provenances:
        # Only of networks is it recorded whether they were compiled; other backbones have no precision.
        compute = provenance.get("compute", {})
        is_of_network = "compiled" in compute
        if not is_of_network:
            continue

        # "bfloat16": the weights are float32, and computing is in bfloat16. "bfloat16-weights": both are.
        dtype_of_weights = compute["dtype"]
        precision = compute["autocast"] or dtype_of_weights
        if precision != "float32" and precision == dtype_of_weights:
            precision += "-weights"
        options: list[object] = []
        for name, precision_of_name in PRECISIONS.items():
            is_default = precision_of_name == "float32"
            if precision_of_name == precision and not is_default:
                options += ["--dtype", name]
        if compute["tf32"]:
            options.append("--tf32")
        if compute["compiled"]:
            options.append("--compile")
        options_of_networks.append(options)

    if not options_of_networks:
        return []
    first = options_of_networks[0]
    if any(other != first for other in options_of_networks):
        raise click.UsageError("the models read features of different precisions: run them one by one")
    return first


def _backbone_options(provenances: "Mapping[str, Mapping[str, Any]]", weights: Sequence[str]) -> list[object]:
    """Return as options of `extract` which backbones give the features, with which weights and layers.

    Parameters
    ----------
    provenances
        Name of a group of features -> the record of where it came from.
    weights
        Values of the option --weights: `NAME=WEIGHTS`, or weights for all backbones.
    """
    from obygaze_features.backbones.registry import backbone_call
    from obygaze_features.commands.backbone_values import values_by_backbone

    # A group has the name of its backbone. But a backbone may give further groups, such as a layer (xclip.8);
    # these have names of their own, and name the backbone under "beside".
    backbone_of_group = {
        name: str(provenance.get("beside", name)) for name, provenance in provenances.items()
    }
    # The user may name a group or its backbone before the weights.
    known_names = [*backbone_of_group, *backbone_of_group.values()]
    weights_of_name: dict[str, str] = {}  # name of a group or a backbone -> weights that the user gives
    for text in weights:
        weights_of_name |= values_by_backbone(text, known_names)

    # What each backbone must be called with, so that it gives all of its groups.
    weights_by_backbone: dict[str, str | None] = {}  # None: the backbone's own
    layers_by_backbone: dict[str, list[Layers]] = {}
    has_answers = False
    for group, provenance in provenances.items():
        weights_of_user = weights_of_name.get(group) or weights_of_name.get(backbone_of_group[group])
        call = backbone_call(provenance, weights_of_user)  # name of the backbone, its weights, its options
        weights_by_backbone[call.name] = call.weights
        if "layers" in call.options:
            layers_by_backbone.setdefault(call.name, []).append(call.options["layers"])
        if "answers" in call.options:
            has_answers = True

    options: list[object] = ["--answers"] if has_answers else []
    for backbone, named_weights in weights_by_backbone.items():
        options += ["--backbone", backbone]
        if named_weights:
            options += ["--weights", f"{backbone}={named_weights}"]
    return [*options, *_layer_options(layers_by_backbone)]


def _layer_options(by_backbone: "Mapping[str, Sequence[Layers]]") -> list[object]:
    """Return the options of `extract` that store the layers of backbones that the models read.

    Parameters
    ----------
    by_backbone
        Backbone -> the choices of layers, one of each group of its features.

    Raises
    ------
    UsageError
        Some are normalised and others are not, or some have frames: one extraction stores all in one way.
    """
    options: list[object] = []
    norm_and_frames: set[tuple[bool, bool]] = set()
    for backbone, choices in by_backbone.items():
        layer_numbers: set[int] = set()
        for choice in choices:
            layer_numbers.update(choice.numbers)
            norm_and_frames.add((choice.norm, choice.frames))
        options += ["--layers", f"{backbone}={','.join(map(str, sorted(layer_numbers)))}"]
    if len(norm_and_frames) > 1:
        raise click.UsageError("the models read layers that were stored differently: run them one by one")
    for norm, frames in norm_and_frames:
        if norm:
            options.append("--layer-norm")
        if frames:
            options.append("--layer-frames")
    return options


def _subtitle_options(films: Sequence[str], encoding: str) -> list[object]:
    """Find the subtitles of films, and return their files as options of `film score`.

    Films without subtitles are named on stderr. `encoding` is that of subtitles that are not UTF-8.
    """
    options: list[object] = []
    for film in films:
        path = _find_subtitles(Path(film), encoding)
        if path is None:
            click.echo(f"{film} has no subtitles: none are beside it, and none in it are text", err=True)
        else:
            options += ["--subtitles", path]
    return options


def _find_subtitles(film: Path, encoding: str) -> Path | None:
    """Find the file that a film's subtitles can be read from; None if there is none.

    It is a subtitle file of the same name in the film's folder, or the film itself, for its text track. A
    file that cannot be read is passed over. `encoding` is that of subtitles that are not UTF-8.
    """
    from obygaze_features.errors import ManifestError, VideoError
    from obygaze_features.file_kinds import SUBTITLE_SUFFIXES
    from obygaze_film.rows import read_subtitle_lines

    other_suffixes = SUBTITLE_SUFFIXES - {".srt"}  # which is the most usual one
    suffixes = [".srt", *sorted(other_suffixes)]
    subtitle_files = [film.with_suffix(suffix) for suffix in suffixes]
    for path in (*subtitle_files, film):
        with contextlib.suppress(ManifestError, VideoError, FileNotFoundError):
            read_subtitle_lines(path, encoding)
            return path
    return None


def _make_stills(scored: Path, films: Sequence[Path]) -> None:
    """Make the stills, colours and sound that the timeline of `film open` shows, in the user's cache.

    Parameters
    ----------
    scored
        Folder of the scored films.
    films
        Their video files.
    """
    from obygaze_film import read_films
    from obygaze_film.film_videos import make_media_of_films, videos_of_films
    from obygaze_film.workspace.cache import cache_folder

    timeline_of_movie = {film.movie: film for film in read_films([scored])}
    click.echo(f"\nStills, colours and sound for 'obygaze film open' are in {cache_folder()}")
    video_of_movie = videos_of_films(films, [*timeline_of_movie.values()])
    timeline_of_video = {video: timeline_of_movie[movie] for movie, video in video_of_movie.items()}
    # An error is printed, and the other films get their stills all the same.
    make_media_of_films(timeline_of_video, lambda error: click.echo(error, err=True))


def _prepare_folder(out: Path, inputs: Mapping[str, Any], *, force: bool) -> None:
    """Make the folder of a run, with a record of the inputs of its windows and features.

    A folder whose record names the same inputs is left as it is, so that its run is resumed.

    Parameters
    ----------
    out
        The folder.
    inputs
        Name of an input or option -> its value, or what identifies it, as JSON values.
    force
        Whether what an earlier run wrote is removed first.

    Raises
    ------
    UsageError
        The folder holds something else, or was made of something else.
    """
    from obygaze_features.io import make_folder, write_whole
    from obygaze_features.lines import json_bytes

    record = out / RECORD_FILE
    if force and record.is_file():  # without the record, the files may be somebody else's
        remove(out / name for name in WRITTEN_NAMES)  # and the record with them

    is_resumed = record.is_file()
    if is_resumed:
        try:
            recorded = parse_json(read_bytes(record))
            differing = [name for name, value in inputs.items() if recorded[name] != value]
        except (ValueError, TypeError, KeyError):  # no JSON, no object, or without one of the inputs
            raise click.UsageError(
                f"{record} is damaged, or of another version: choose another --out"
            ) from None
        if differing:
            raise click.UsageError(
                f"{out} was made with other {' and '.join(differing)} ({RECORD_FILE}): choose another --out"
            )
        return

    if out.exists():
        may_be_used = out.is_dir() and all(path.name.startswith(".") for path in out.iterdir())
        if not may_be_used:
            raise click.UsageError(f"{out} holds something else: choose another --out")
    make_folder(out.absolute())
    write_whole(record, json_bytes(inputs))
