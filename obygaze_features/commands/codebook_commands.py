"""`obygaze codebook show | check | init | texts | questions | template`."""

import json
from pathlib import Path

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import complete_codebook
from obygaze_features.errors import ManifestError
from obygaze_features.io import sha256_of, write_whole
from obygaze_features.lines import csv_line, json_bytes
from obygaze_features.options import Answer, Output, declared
from obygaze_features.screen import table
from obygaze_features.templates import filled


@declared(__package__, "codebook show", what={"shell_complete": complete_codebook})
def show(what: str | None) -> Answer:
    """Show a codebook: levels, concepts with their instances, tasks, scales and label policies.

    The argument is the name of a built-in codebook, a .toml file, or a manifest (for the codebook it names).
    Without an argument, lists the built-in codebooks.

    \b
    Examples:
      obygaze codebook show
      obygaze codebook show obygaze12
      obygaze codebook show violence.toml
      obygaze codebook show films.csv --json
    """
    if what is not None:
        codebook = _codebook_of(what)
        values = {"book": codebook, "policies": manifests.policies_of(codebook)}
        return Answer(_record(codebook), filled(__package__, "codebook.txt.jinja", values).removesuffix("\n"))
    books = [manifests.builtin_codebook(name) for name in manifests.BUILTIN]
    rows = [[book.name, book.version, _counts(book), book.source] for book in books]
    shown = table(rows, ["name", "version", "holds", "source"], full=True)
    return Answer([*map(_record, books)], f"{shown}\n")


@declared(__package__, "codebook check")
def check(file: Path) -> Answer:
    """Check a codebook file and report its content, or the error, in one line.

    \b
    Examples:
      obygaze codebook check violence.toml
    """
    codebook = manifests.load_codebook(file)
    document = {"file": str(file), **_record(codebook)}
    return Answer(document, f"{file}: codebook {codebook.name} {codebook.version}: {_counts(codebook)}")


@declared(__package__, "codebook init")
def init(out: Path) -> Answer:
    """Write a commented template of a codebook. An existing file is never replaced.

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


@declared(__package__, "codebook texts", what={"shell_complete": complete_codebook})
def texts(what: str, output: Output) -> Answer:
    """Write the texts of a codebook's visual concepts, for a text backbone to encode.

    Definitions (or names, where there is none), names of instances and their examples.

    \b
    Examples:
      obygaze codebook texts obygaze12 --out thesaurus.csv
      obygaze extract thesaurus.csv stores/thesaurus --backbone xclip-text
      obygaze evaluate films.csv stores/films --task concept:Body \\
          --texts stores/thesaurus
    """
    output.refuse_existing()
    codebook = _codebook_of(what)
    texts = manifests.concept_texts(codebook)
    if not texts:
        raise ManifestError(f"the codebook {codebook.name!r} has no visual concepts, so no texts of them")
    write_whole(output.path, "".join(map(csv_line, (texts[0]._fields, *texts))))
    n = len(codebook.visual_concepts)
    document = {"file": str(output.path), "texts": len(texts), "concepts": n}
    return Answer(document, f"{output.path}: {len(texts)} texts of {manifests.counted(n, 'concept')}")


@declared(__package__, "codebook questions")
def questions(manifest: Path, output: Output) -> Answer:
    """Write the questions of a codebook about each clip, for a vision-language model to answer.

    A question for each level and concept, by what the codebook says it `means`: yes or no. Put a line's
    questions to a model with the clip's frames, write its answers in their place ("answers": yes, no, or the
    probability of yes; beside them "model" and "date"), and read them with 'manifest import spans'.

    \b
    Examples:
      obygaze codebook questions films.csv --out questions.jsonl
      obygaze manifest import spans films.csv answers.jsonl \\
          --annotator qwen-vl --out judged.csv
    """
    output.refuse_existing()
    read = manifests.read_manifest(manifest)
    if not read.clips:
        raise ManifestError(f"{manifest}: there is no clip to ask about")
    asked = manifests.codebook_questions(read.codebook)
    prompt = sha256_of(json_bytes(asked))
    names = ("clip_id", "movie", "video", "start_s", "end_s")
    clips = {clip.clip_id: {name: getattr(clip, name) for name in names} for clip in read}
    lines = [{**clip, "prompt": prompt, "questions": asked} for clip in clips.values()]
    write_whole(output.path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    document = {"file": str(output.path), "clips": len(clips), "questions": asked, "prompt": prompt}
    return Answer(
        document, f"{output.path}: {len(asked)} questions about {manifests.counted(len(clips), 'clip')}"
    )


@declared(__package__, "codebook template", what={"shell_complete": complete_codebook})
def template(what: str, films: tuple[Path, ...], annotators: tuple[str, ...], output: Output) -> Answer:
    """Write a blank ELAN document for each film, to annotate without a model's opinion in sight.

    It offers the codebook's levels and lists its concepts; each annotator has tiers of their own. 'manifest
    import spans' reads it back.

    \b
    Examples:
      obygaze codebook template obygaze12 films/*.mkv --annotator AB \\
          --annotator CD --out blank
      obygaze manifest import spans blank/*.eaf --out annotated.csv
    """
    codebook = _codebook_of(what)
    documents = {
        film.stem: manifests.blank_document(codebook, manifests.slug(film.stem), annotators, media=film.name)
        for film in films
    }
    paths = manifests.write_documents(documents, output.path, force=output.force)
    document = {"files": [*map(str, paths)], "codebook": codebook.name}
    return Answer(
        document,
        f"{output.path}: {manifests.counted(len(films), 'blank document')} of codebook {codebook.name}",
    )


def _codebook_of(what: str) -> "manifests.Codebook":
    path = Path(what)
    if what not in manifests.BUILTIN and path.suffix.lower() != ".toml" and path.is_file():
        return manifests.read_manifest(path).codebook
    return manifests.find_codebook(what)


def _counts(codebook: "manifests.Codebook") -> str:
    few, seen = len(codebook.labels), len(codebook.visual_concepts)
    parts = [
        ("level", codebook.levels, f" ({few} in tasks)" * (few < len(codebook.levels))),
        ("concept", codebook.concepts, f" ({seen} visual)" * (seen < len(codebook.concepts))),
        ("task", codebook.tasks, ""),
        *[("scale", codebook.scales, "")] * bool(codebook.scales),
    ]
    return ", ".join(f"{manifests.counted(len(things), name)}{more}" for name, things, more in parts)


def _record(codebook: "manifests.Codebook") -> dict[str, object]:
    return {**codebook.record(), "digest": codebook.digest()}
