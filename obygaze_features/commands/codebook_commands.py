"""`obygaze codebook show | check | init | guess | texts | questions | template`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import Columns, Wide, complete_codebook, headings_of
from obygaze_features.errors import ManifestError
from obygaze_features.io import refuse_existing, sha256_of, write_whole
from obygaze_features.lines import csv_line, json_bytes
from obygaze_features.options import FILE, Answer
from obygaze_features.perception import MODALITIES, PICTURES
from obygaze_features.screen import table
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.text import counted

CodebookArgument = Annotated[
    str,
    argument(type=click.STRING, metavar="NAME|FILE|MANIFEST", shell_complete=complete_codebook),
]


@command()
def show(
    what: Annotated[
        str | None,
        argument(type=click.STRING, metavar="[NAME|FILE|MANIFEST]", shell_complete=complete_codebook),
    ] = None,
) -> Answer:
    """Show a codebook: levels, concepts with their instances, tasks, scales and label policies.

    The argument is the name of a built-in codebook, a codebook file (.toml), or a manifest, for the codebook
    that it names. Without an argument, the built-in codebooks are listed.

    \b
    Examples:
      obygaze codebook show
      obygaze codebook show obygaze12
      obygaze codebook show violence.toml
      obygaze codebook show films.csv --json
    """
    if what is not None:
        codebook = _codebook_of(what)
        return Answer(_record(codebook), "\n".join(_lines(codebook)))
    codebooks = [manifests.builtin_codebook(name) for name in manifests.BUILTIN]
    rows = [[codebook.name, codebook.version, _counts(codebook), codebook.source] for codebook in codebooks]
    shown = table(rows, ["name", "version", "holds", "source"], drop_empty_columns=True)
    records = [_record(codebook) for codebook in codebooks]
    return Answer(records, f"{shown}\n")


@command()
def check(
    file: Annotated[Path, argument()],
) -> Answer:
    """Check a codebook file, and print one line: what it contains, or the error.

    \b
    Examples:
      obygaze codebook check violence.toml
    """
    codebook = manifests.load_codebook(file)
    document = {"file": str(file), **_record(codebook)}
    return Answer(document, f"{file}: codebook {codebook.name} {codebook.version}: {_counts(codebook)}")


@command()
def init(
    *,
    out: Annotated[Path, option("File to write (.toml).", type=FILE)],
) -> Answer:
    """Write a codebook to start from, with comments that explain it. An existing file is never replaced.

    \b
    Examples:
      obygaze codebook init --out mine.toml
    """
    from obygaze_features.manifest.codebook import starter

    if out.suffix.lower() != ".toml":
        raise click.BadParameter(f"'{out}' should end in .toml", param_hint="--out")
    try:
        with out.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(starter())
    except FileExistsError:
        raise ManifestError(f"{out} is there already; choose another --out") from None
    return Answer({"file": str(out)}, f"{out}: edit it, then run: obygaze codebook check {out}")


@command()
def guess(
    source: Annotated[Path, argument(metavar="TABLE")],
    *,
    columns: Columns = (),
    wide: Wide = "",
    out: Annotated[Path, option("File to write (.toml).", type=FILE)],
) -> Answer:
    """Draft a codebook from the words in a table, with their counts. An existing file is never replaced.

    Words are taken from the columns of levels and concepts. These are the columns that --column names as
    level or concepts, the columns of --wide, or else those whose headings mean level or concepts. Words that
    differ only in case or blanks count as one. Pairs that may be one word mistyped are printed.

    Levels that are numbers are in their order. Put other levels in order yourself, from low to high.

    \b
    Examples:
      obygaze codebook guess ratings.csv --column level=rating --out mine.toml
      obygaze codebook guess wide.xlsx --wide AB,CD --out mine.toml
    """
    if out.suffix.lower() != ".toml":
        raise click.BadParameter(f"'{out}' should end in .toml", param_hint="--out")
    refuse_existing(out, force=False)
    guessed = manifests.guess_codebook(source, headings_of(columns, wide))
    write_whole(out, guessed.to_toml())

    count_of_level = {word.name: word.frequency for word in guessed.levels}
    count_of_concept = {word.name: word.frequency for word in guessed.concepts}
    notices = guessed.notices()
    next_command = _command_that_reads(source, columns, wide, out)
    document = {
        "file": str(out),
        "levels": count_of_level,
        "concepts": count_of_concept,
        "notices": notices,
        "then": next_command,
    }

    n_concepts = manifests.counted(len(count_of_concept), "concept")
    levels = "no levels"
    if count_of_level:
        counts = ", ".join(f"{name} ({count:,})" for name, count in count_of_level.items())
        levels = f"{manifests.counted(len(count_of_level), 'level')} ({counts})"
    lines = [f"{out}: {levels}, {n_concepts}", *notices, f"then: {next_command}"]
    return Answer(document, "\n".join(lines))


def _command_that_reads(source: Path, columns: Sequence[str], wide: str, codebook: Path) -> str:
    """Return the command that imports a table with the codebook that was guessed from its words.

    The import is tried here: if it needs other options than those given, its error names them.

    Parameters
    ----------
    source
        The table.
    columns, wide
        The options --column and --wide as they were typed.
    codebook
        The file of the codebook.
    """
    headings = headings_of(columns, wide)
    options = [f"--column {quote(column)}" for column in columns]
    if wide:
        options.append(f"--wide {quote(wide)}")

    try:
        manifests.import_spans(
            [source],
            source.parent,
            columns=headings.columns,
            wide=headings.wide,
            codebook=manifests.load_codebook(codebook),
        )
    except manifests.UnreadColumnsError as error:
        options = list(error.options)
    except ManifestError:
        pass  # such as a wrong row, which the command itself will report

    parts = [
        "obygaze manifest import spans",
        quote(str(source)),
        *options,
        f"--codebook {quote(str(codebook))}",
        "--videos FOLDER --out clips.csv",
    ]
    return " ".join(parts)


@command()
def texts(
    what: CodebookArgument,
    *,
    out: Annotated[Path, option("CSV file to write: text_id, concept, kind, text.", type=FILE)],
    force: Force = False,
) -> Answer:
    """Write the texts of a codebook's visual concepts, for a text backbone to encode.

    A visual concept is one that pictures can show. Its texts are its definition (its name if it has none),
    the names of its instances, and their examples.

    \b
    Examples:
      obygaze codebook texts obygaze12 --out thesaurus.csv
      obygaze extract thesaurus.csv stores/thesaurus --backbone xclip-text
      obygaze evaluate films.csv stores/films --task concept:Body \\
          --texts stores/thesaurus
    """
    refuse_existing(out, force=force)
    codebook = _codebook_of(what)
    concept_texts = manifests.concept_texts(codebook)
    if not concept_texts:
        raise ManifestError(f"the codebook {codebook.name!r} has no visual concepts, so no texts of them")
    header = concept_texts[0]._fields
    write_whole(out, "".join(csv_line(row) for row in [header, *concept_texts]))
    n_concepts = len(codebook.visual_concepts)
    document = {"file": str(out), "texts": len(concept_texts), "concepts": n_concepts}
    counts = f"{counted(len(concept_texts), 'text')} of {manifests.counted(n_concepts, 'concept')}"
    return Answer(document, f"{out}: {counts}")


@command()
def questions(
    manifest: Annotated[Path, argument()],
    *,
    perceives: Annotated[
        tuple[str, ...],
        option(
            "What the model perceives: pictures (visual), motion (moving), sound (heard), speech (said), the "
            "story (told); repeatable.",
            type=click.Choice(MODALITIES),
        ),
    ] = PICTURES,
    out: Annotated[Path, option("JSON lines file to write, with a line for each clip.", type=FILE)],
    force: Force = False,
) -> Answer:
    """Write yes-or-no questions about each clip, for a vision-language model to answer.

    There is a question for each level of the manifest's codebook, and for each concept that the model can
    perceive (by default in pictures; see --perceives). A question explains the level or concept by what it
    `means` in the codebook, a concept also by its instances and examples.

    \b
    What to do with the file:
    1. Ask the model the questions of a line, with frames of the clip.
    2. In the line, replace "questions" by "answers": for each question
       yes, no, or the probability of yes. Add "model" and "date".
    3. When all lines have answers, read them with 'manifest import spans'.

    \b
    Examples:
      obygaze codebook questions films.csv --out questions.jsonl
      obygaze manifest import spans films.csv answers.jsonl \\
          --annotator qwen-vl --out judged.csv
    """
    refuse_existing(out, force=force)
    clips = manifests.read_manifest(manifest)
    if not clips.clips:
        raise ManifestError(f"{manifest}: there is no clip to ask about")
    perceives = manifests.modalities_of(perceives, "--perceives")

    # A question is named after what it is about: level:NAME or concept:NAME.
    question_of_name = manifests.codebook_questions(clips.codebook, perceives)
    # Of concepts that the model cannot perceive: name -> why there is no question.
    why_not_asked = {}
    for concept_name, reason in manifests.unperceived(clips.codebook, perceives).items():
        why_not_asked[f"concept:{concept_name}"] = reason

    digest_of_questions = sha256_of(json_bytes(question_of_name))
    same_for_all_clips = {
        "prompt": digest_of_questions,
        "perceives": perceives,
        "conveyed": _modalities_of_questions(clips.codebook, question_of_name),
        "absent": why_not_asked,
        "questions": question_of_name,
    }
    lines = _lines_of_clips(clips, same_for_all_clips)
    write_whole(out, "".join(f"{line}\n" for line in lines))

    n_clips = len(lines)
    document = {
        "file": str(out),
        "clips": n_clips,
        "perceives": perceives,
        "questions": question_of_name,
        "absent": why_not_asked,
        "prompt": digest_of_questions,
    }
    counts = f"{counted(len(question_of_name), 'question')} about {manifests.counted(n_clips, 'clip')}"
    shown = [f"{out}: {counts}"]
    if why_not_asked:
        n_not_asked = manifests.counted(len(why_not_asked), "concept")
        shown.append(f"not asked: {n_not_asked}: {'; '.join(why_not_asked.values())}")
    return Answer(document, "\n".join(shown))


def _modalities_of_questions(codebook: "manifests.Codebook", names: Iterable[str]) -> dict[str, str]:
    """Return name of a question -> by what a film conveys the concept that it asks about.

    That is by pictures ("visual"), sound ("heard") and so on. A question is named after what it is about, as
    `concept:Body`; questions about levels are left out.
    """
    modalities_of_name = {f"concept:{concept.name}": concept.conveyed for concept in codebook.concepts}
    return {name: modalities_of_name[name] for name in names if name in modalities_of_name}


def _lines_of_clips(clips: "manifests.Manifest", same_for_all_clips: Mapping[str, object]) -> list[str]:
    """Return the lines of a file of questions: a JSON object for each clip.

    Parameters
    ----------
    clips
        The clips. A clip that has a row for each annotator gets one line.
    same_for_all_clips
        Fields of the object beside those that say which clip it is: the questions, and what they are for.
    """
    line_of_clip: dict[str, str] = {}
    for clip in clips:
        document = {
            "clip_id": clip.clip_id,
            "movie": clip.movie,
            "video": clip.video,
            "start_s": clip.start_s,
            "end_s": clip.end_s,
            **same_for_all_clips,
        }
        line_of_clip[clip.clip_id] = json.dumps(document, ensure_ascii=False)
    return list(line_of_clip.values())


@command()
def template(
    what: CodebookArgument,
    films: Annotated[tuple[Path, ...], argument()],
    *,
    annotators: Annotated[
        tuple[str, ...], option("Name of an annotator, who gets own tiers; repeatable.", name="annotator")
    ] = (),
    out: Annotated[Path, option("Folder to write the documents (.eaf) into.")],
    force: Annotated[bool, option("Replace existing documents.")] = False,
) -> Answer:
    """Write a blank ELAN document for each film, to annotate without seeing what a model says.

    In the document annotators choose from the codebook's levels, and its concepts are listed. Each annotator
    has their own tiers. 'manifest import spans' reads the annotated documents.

    \b
    Examples:
      obygaze codebook template obygaze12 films/*.mkv --annotator AB \\
          --annotator CD --out blank
      obygaze manifest import spans blank/*.eaf --out annotated.csv
    """
    codebook = _codebook_of(what)
    documents = {}
    for film in films:
        movie = manifests.slug(film.stem)
        documents[film.stem] = manifests.blank_document(codebook, movie, annotators, media=film.name)
    paths = manifests.write_documents(documents, out, force=force)
    document = {"files": [str(path) for path in paths], "codebook": codebook.name}
    count = manifests.counted(len(films), "blank document")
    return Answer(document, f"{out}: {count} of codebook {codebook.name}")


def _codebook_of(source: str) -> "manifests.Codebook":
    """Return a codebook, given its name if it is built in, its file (.toml), or a manifest that names it."""
    path = Path(source)
    is_codebook_file = path.suffix.lower() == ".toml"
    if source in manifests.BUILTIN or is_codebook_file or not path.is_file():
        return manifests.find_codebook(source)
    return manifests.read_manifest(path).codebook


def _counts(codebook: "manifests.Codebook") -> str:
    """Return in words how many levels, concepts, tasks and scales a codebook has."""
    levels = manifests.counted(len(codebook.levels), "level")
    n_in_tasks = len(codebook.labels)  # levels that tasks may use
    if n_in_tasks < len(codebook.levels):
        levels += f" ({n_in_tasks} in tasks)"

    concepts = manifests.counted(len(codebook.concepts), "concept")
    if len(codebook.visual_concepts) < len(codebook.concepts):
        concepts += f" ({len(codebook.visual_concepts)} visual)"

    tasks = manifests.counted(len(codebook.tasks), "task")
    could_have_task = n_in_tasks > 1
    if not codebook.tasks and could_have_task:
        tasks += " (evaluate with --negative and --positive, or name one in it)"

    counts = [levels, concepts, tasks]
    if codebook.scales:
        counts.append(manifests.counted(len(codebook.scales), "scale"))
    return ", ".join(counts)


def _record(codebook: "manifests.Codebook") -> dict[str, object]:
    """Return a codebook as JSON values, with its digest, for the commands that answer with a codebook."""
    return {**codebook.record(), "digest": codebook.digest()}


# --- a codebook as text
# ---------------------------------------------------------------------------
def _lines(codebook: "manifests.Codebook") -> list[str]:
    """Write a codebook as lines: name, digest and policies, its tables, and the instances of its concepts."""
    policies = ", ".join(manifests.policies_of(codebook))
    lines = [
        f"{codebook.name} {codebook.version}  {codebook.source}".strip(),
        f"digest {codebook.digest()}",
        f"label policies: {policies}",
        "",
    ]
    for table_of_part in _tables(codebook):
        lines += [table_of_part, ""]
    if codebook.sub_constructs:
        lines += [f"sub-constructs: {'; '.join(codebook.sub_constructs)}", ""]
    for concept in codebook.concepts:
        lines += _instance_lines(concept)
    return lines


def _tables(codebook: "manifests.Codebook") -> list[str]:
    """Write the levels, concepts, tasks and scales as a table each, if there are any."""
    levels = []
    for level in codebook.levels:
        synonyms = ", ".join(level.synonyms)
        is_in_tasks = _yes_or_no(level.label)
        levels.append([level.name, level.title, is_in_tasks, synonyms])

    concepts = []
    for concept in codebook.concepts:
        synonyms = ", ".join(concept.synonyms)
        is_visual = _yes_or_no(concept.visual)
        concepts.append([concept.name, concept.group, is_visual, synonyms, concept.definition])

    tasks = [[task.name, ", ".join(task.negatives), ", ".join(task.positives)] for task in codebook.tasks]

    scales = []
    for scale in codebook.scales:
        names = ", ".join(level.name for level in scale.levels)
        cuts = ", ".join(f"{cut:g}" for cut in scale.cuts)
        scales.append([scale.name, names, cuts])

    rows_and_headings = (
        (levels, ["level", "title", "in tasks", "also spelled"]),
        (concepts, ["concept", "group", "visual", "also spelled", "definition"]),
        (tasks, ["task", "negative", "positive"]),
        (scales, ["scale", "levels", "cuts"]),
    )
    return [table(rows, headings, drop_empty_columns=True) for rows, headings in rows_and_headings if rows]


def _yes_or_no(value: bool) -> str:
    """Write a truth value as a word."""
    return "yes" if value else "no"


def _instance_lines(concept: "manifests.Concept") -> list[str]:
    """List the instances of a concept, each with its examples, below the concept's name."""
    if not concept.instances:
        return []
    lines = [f"{concept.name}:"]
    for instance in concept.instances:
        examples = f" ({'; '.join(instance.examples)})" if instance.examples else ""
        lines.append(f"  {instance.name}{examples}")
    return lines
