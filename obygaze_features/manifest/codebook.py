"""Define, read and check codebooks: the levels, concepts, scales and tasks of a manifest's labels."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.io import local_path
from obygaze_features.manifest.codebook_parts import (
    CodebookTexts,
    Concept,
    Level,
    Scale,
    Task,
    Translation,
    check_codebook,
    spellings_of,
)
from obygaze_features.manifest.spans.names import has_doubt, suggestion, with_usual_separators, without_zeros
from obygaze_features.manifest.text_tables import CODEBOOK_COLUMN, error_context, text_of
from obygaze_features.schema import misfit
from obygaze_features.templates import packaged_text
from obygaze_features.text import composed
from obygaze_features.untrusted import parse_toml

BUILTIN: tuple[str, ...] = ("obygaze12", "mobygaze", "mediaeval15")
"""Codebooks that come with the package; the first is that of a manifest that names none."""

FOLDER = "codebooks"
TaskOrScale = TypeVar("TaskOrScale", Task, Scale)


@made_by("load_codebook(PATH)")
@dataclass(frozen=True)
class Codebook:
    """Levels in rising order, concepts in canonical order, and the tasks that they make.

    Parameters
    ----------
    name, version
        Manifests name their codebook by its name.
    levels
        From low to high.
    concepts
        In the order in which manifests list them.
    tasks
        Sets of levels to classify.
    policies
        Label policies that make sense for it, of POLICIES.
    scales
        Further ordered labels.
    sub_constructs
        What the concepts together stand for, as the source lists it.
    source
        Where it is from, for people.
    construct
        What the levels measure, such as "objectifying gaze".
    constructs
        The same in other languages, by language.

    Raises
    ------
    ManifestError
        Naming the codebook and the key: no levels, a name twice or not allowed, a task of unknown levels, ...

    Examples
    --------
    >>> from obygaze_features import Codebook
    >>> from obygaze_features.manifest import Level, Task
    >>> levels = (Level("calm"), Level("violent"))
    >>> mine = Codebook("fights", "1", levels, tasks=(Task("violence", ("calm",), ("violent",)),))
    >>> mine.level_names
    ('calm', 'violent')
    """

    name: str
    version: str
    levels: tuple[Level, ...]
    concepts: tuple[Concept, ...] = ()
    tasks: tuple[Task, ...] = ()
    policies: tuple[str, ...] = ()
    scales: tuple[Scale, ...] = ()
    sub_constructs: tuple[str, ...] = ()
    source: str = ""
    construct: str = ""
    constructs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a codebook that contradicts itself, in a message that names it."""
        with error_context(f"codebook {self.name!r}"):
            check_codebook(self)

    @cached_property
    def _name_of_spelling(self) -> Mapping[str, Mapping[str, str]]:
        """Kind (`level` or `concept`) -> spelling as `plain` writes it -> name of that level or concept."""
        return {"level": spellings_of(self.levels), "concept": spellings_of(self.concepts)}

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        """All levels, from low to high."""
        return tuple(level.name for level in self.levels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels that can be in a task, from low to high."""
        return tuple(level.name for level in self.levels if level.label)

    @cached_property
    def concept_names(self) -> tuple[str, ...]:
        """All concepts, in canonical order."""
        return tuple(concept.name for concept in self.concepts)

    @property
    def visual_concepts(self) -> tuple[str, ...]:
        """The concepts that an image can show."""
        return tuple(concept.name for concept in self.concepts if concept.visual)

    def rank(self, level: str) -> int:
        """Return the number of levels below a level: 0 for the lowest."""
        return self.level_names.index(self.level_named(level))

    def in_order(self, concepts: Iterable[str]) -> tuple[str, ...]:
        """Put names of concepts in the order of the codebook, each once; refuse unknown names."""
        names = {self.concept_named(name) for name in concepts}
        return tuple(name for name in self.concept_names if name in names)

    def visual(self, concepts: Iterable[str]) -> tuple[str, ...]:
        """Return the concepts among `concepts` that an image can show, in the order given."""
        visual_concepts = self.visual_concepts
        return tuple(name for name in concepts if self.concept_named(name) in visual_concepts)

    def level_named(self, name: str) -> str:
        """Return a level's name, after checking that this codebook has a level of exactly this name.

        Raises
        ------
        ManifestError
            If no level has this name; the message suggests the nearest one.
        """
        return self._checked_name("level", name, self.level_names)

    def level_spelled(self, text: str) -> str:
        """Find a level's name from its name, title or synonym; case and blanks are ignored.

        A whole number may have decimals of zero, as data frames write them beside an empty cell: 2.0 is 2.
        """
        name_of_spelling = self._name_of_spelling["level"]
        for spelling in (plain(text), plain(without_zeros(text))):
            if spelling in name_of_spelling:
                return name_of_spelling[spelling]
        return self.level_named(text)  # which refuses it

    def concept_named(self, name: str) -> str:
        """Return a concept's name, after checking that this codebook has a concept of exactly this name.

        Raises
        ------
        ManifestError
            If no concept has this name; the message suggests the nearest one.
        """
        return self._checked_name("concept", name, self.concept_names)

    def concept_spelled(self, text: str) -> str:
        """Find a concept's name from its name or synonym; case and blanks are ignored."""
        name = self._name_of_spelling["concept"].get(plain(text))
        if name is not None:
            return name
        return self.concept_named(text)  # which refuses it

    def concept(self, name: str) -> Concept:
        """Find a concept by its name.

        Raises
        ------
        ManifestError
            If there is no such concept; the message suggests the nearest one.
        """
        index = self.concept_names.index(self.concept_named(name))
        return self.concepts[index]

    def split_concepts(self, text: str) -> tuple[str, ...]:
        """Split concepts as people write them: at semicolons, and at commas where no concept has one.

        Commas and semicolons of other scripts, such as `、` and `؛`, are read as these.

        Examples
        --------
        >>> from obygaze_features import builtin_codebook
        >>> builtin_codebook("obygaze12").split_concepts("Body, Look; Clothes")
        ('Body', 'Look', 'Clothes')
        """
        text = with_usual_separators(text, self.spellings)
        if self.commas_separate_concepts:
            text = text.replace(",", ";")
        parts = [part.strip() for part in text.split(";")]
        return tuple(part for part in parts if part)

    @cached_property
    def commas_separate_concepts(self) -> bool:
        """Whether a comma separates concepts in a list: it does if no concept's spelling has a comma."""
        return not any("," in " ".join(concept.spellings) for concept in self.concepts)

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """The names, titles and synonyms of all levels and concepts, as the codebook writes them."""
        parts: tuple[Level | Concept, ...] = (*self.levels, *self.concepts)
        return tuple(spelling for part in parts for spelling in part.spellings)

    def task(self, name: str) -> Task:
        """Find a task by its name.

        Raises
        ------
        ManifestError
            If there is no such task; the message suggests the nearest one.
        """
        return self._find("task", self.tasks, name)

    def scale(self, name: str) -> Scale:
        """Find a scale by its name.

        Raises
        ------
        ManifestError
            If there is no such scale; the message suggests the nearest one.
        """
        return self._find("scale", self.scales, name)

    def record(self) -> dict[str, Any]:
        """Return the codebook as plain values under the keys of its file, without empty and default ones."""
        fields = {name: getattr(self, name) for name in CodebookFile.__struct_fields__}
        fields["tasks"] = {task.name: TaskLevels(task.negatives, task.positives) for task in self.tasks}
        record: dict[str, Any] = msgspec.to_builtins(CodebookFile(**fields))
        # A file has the texts of all languages together: those of a level or concept, and of the construct.
        for part in (*record["levels"], *record.get("concepts", ())):
            _join_translations(part)
        translated_constructs = record.pop("constructs", {})  # language -> text
        if translated_constructs:
            record["construct"] = {ENGLISH: self.construct, **translated_constructs}
        return record

    def to_toml(self) -> str:
        """Write the codebook as the text of a codebook file, which `load_codebook` reads back as equal."""
        import tomli_w  # noqa: PLC0415 - only where a codebook is written

        return tomli_w.dumps(self.record())

    @property
    def means(self) -> dict[str, str]:
        """What levels and concepts mean, in words for people, by name."""
        parts: tuple[Level | Concept, ...] = (*self.levels, *self.concepts)
        return {part.name: part.means for part in parts if part.means}

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages besides English in which it has texts, in alphabetical order.

        They are those of any level or concept, and those of what the levels measure (`constructs`).
        """
        parts: tuple[Level | Concept, ...] = (*self.levels, *self.concepts)
        languages = {language for part in parts for language in part.translations}
        languages_of_construct = set(self.constructs)
        return tuple(sorted(languages | languages_of_construct))

    def texts(self, language: str) -> CodebookTexts:
        """Return the codebook's texts that are translated into a language other than English.

        Examples
        --------
        >>> from obygaze_features import builtin_codebook
        >>> builtin_codebook("obygaze12").texts("fr").levels["S"].title
        'Sûr'
        """
        return CodebookTexts(
            self.constructs.get(language, ""),
            _translations(self.levels, language),
            _translations(self.concepts, language),
        )

    def digest(self) -> str:
        """Hash what defines the labels, as JSON with sorted keys and without blanks: SHA-256, hexadecimal.

        The texts that only explain labels are left out: `construct`, `means`, `modality` and translations.
        """
        record = self.record()
        _remove_explanations(record)
        for part in (*record["levels"], *record.get("concepts", ())):
            _remove_explanations(part)
        canonical = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8")).hexdigest()

    def definition(self) -> str:
        """Hash the texts that annotators read: names, titles and meanings of labels (SHA-256, hexadecimal).

        Every change of these words changes it, though it may not change `digest`. Name, version, source,
        tasks, synonyms and translations of the codebook do not count.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from obygaze_features import Codebook
        >>> from obygaze_features.manifest import Level
        >>> mine = Codebook("fights", "1", (Level("calm"), Level("violent", means="a blow is seen")))
        >>> later = replace(mine, levels=(Level("calm"), Level("violent", means="blood is seen")))
        >>> mine.definition() == later.definition(), mine.digest() == later.digest()
        (False, True)
        """
        levels = [[level.name, level.title, level.means] for level in self.levels]
        concepts = []
        for concept in self.concepts:
            instances = [[instance.name, instance.examples] for instance in concept.instances]
            concepts.append([concept.name, concept.group, concept.definition, concept.means, instances])
        scales = [[scale.name, scale.level_names] for scale in self.scales]
        texts = {"construct": self.construct, "levels": levels, "concepts": concepts, "scales": scales}
        text = json.dumps(texts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def _checked_name(self, kind: str, name: str, names: Sequence[str]) -> str:
        """Return a name of a level or concept with composed accents; refuse one that the codebook lacks.

        `kind` is `level` or `concept`, and `names` are all of this kind.
        """
        name = composed(name)
        if name in names:
            return name
        column = "concepts" if kind == "concept" else kind
        raise self._error_of_unknown_name(kind, name, self._name_of_spelling[kind], column)

    def _find(self, kind: str, items: Sequence[TaskOrScale], name: str) -> TaskOrScale:
        """Return the item with a name; refuse a name that none of `items` has.

        `kind` is what the items are, `task` or `scale`.
        """
        for item in items:
            if item.name == name:
                return item
        raise self._error_of_unknown_name(kind, name, {plain(item.name): item.name for item in items})

    def _error_of_unknown_name(
        self, kind: str, text: str, spellings: Mapping[str, str], column: str = ""
    ) -> ManifestError:
        """Return the error for a name that the codebook does not have, with the nearest one it has.

        No name is suggested for a label with a question mark, such as `S?`: it says that somebody was in
        doubt, and is no slip for S.

        `kind` is `level`, `concept`, `task` or `scale`, `spellings` is spelling -> name for all of that kind,
        and `column` is the manifest's column that the name is in.
        """
        parts = text.split(",")  # perhaps a list; but commas are part of some names
        is_list_of_known_names = len(parts) > 1 and all(plain(part) in spellings for part in parts)
        if is_list_of_known_names:
            hint = " (separate several by ;)"
        else:
            is_label = kind in {"level", "concept"}
            may_be_slip = not (is_label and has_doubt(text, self.spellings))
            hint = suggestion(text, spellings, may_be_slip=may_be_slip) or f" (it has no {kind}s)"
        message = f"unknown {kind} {text!r}{hint} in the codebook {self.name!r}"
        if kind == "task" and not self.tasks:
            message += ": --negative LEVEL --positive LEVEL makes one, [tasks.NAME] in the codebook keeps it"
        return ManifestError(message, column)


def _translations(parts: Sequence[Level | Concept], language: str) -> dict[str, Translation]:
    """Return the translations of those levels or concepts that have one, by name."""
    return {part.name: part.translations[language] for part in parts if language in part.translations}


# --- files of codebooks
# ---------------------------------------------------------------------------
ENGLISH = "en"
"""The language of texts of which no other is said."""

TRANSLATED = ("title", "means")
"""Texts that may be given by language: `means.fr`."""

NAMED = ("levels", "concepts", "instances")
"""Lists of tables in which a text stands for a table with that name."""


class TaskLevels(Struct, frozen=True, forbid_unknown_fields=True):
    """The table of a task, whose name is its key."""

    negative: tuple[str, ...]
    positive: tuple[str, ...]


class CodebookFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys of a codebook file, in the order in which they are written."""

    name: str
    version: str
    source: str = ""
    construct: str = ""
    constructs: dict[str, str] = {}
    policies: tuple[str, ...] = ()
    sub_constructs: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    concepts: tuple[Concept, ...] = ()
    tasks: dict[str, TaskLevels] = {}
    scales: tuple[Scale, ...] = ()


def codebook_parameters(text: str) -> dict[str, Any]:
    """Read the TOML text of a codebook file as the keyword arguments of `Codebook`.

    Raises
    ------
    ManifestError
        The text is not TOML, a key is unknown or missing, or a value has another type; names the key.
    """
    try:
        tables = _as_in_schema(parse_toml(text))
        # `construct` is an English text, or language -> text. The schema has the English one apart.
        construct = tables.get("construct")
        if isinstance(construct, dict):
            other_languages = {language: text for language, text in construct.items() if language != ENGLISH}
            tables["construct"] = construct.get(ENGLISH, "")
            tables["constructs"] = other_languages
        file = msgspec.convert(tables, CodebookFile)
    except msgspec.ValidationError as error:
        raise ManifestError(misfit(error)) from None
    except ManifestError:
        raise  # a ManifestError is a ValueError too, but says more than that this is not TOML
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ManifestError(f"not TOML: {reason}") from None
    tasks = tuple(Task(name, levels.negative, levels.positive) for name, levels in file.tasks.items())
    return msgspec.structs.asdict(file) | {"tasks": tasks}


def _separate_translations(part: dict[str, Any]) -> None:
    """Move the translated texts of a level or concept, such as `means.fr`, to its key `translations`.

    It changes `part`. The English text stays: `{"means": {"en": "x", "fr": "y"}}` becomes `{"means": "x",
    "translations": {"fr": {"means": "y"}}}`.

    Raises
    ------
    ManifestError
        A translation is no text.
    """
    translations: dict[str, dict[str, str]] = {}  # language -> name of a text -> text
    for name in TRANSLATED:
        texts = part.get(name)
        if not isinstance(texts, dict):  # absent, or an English text
            continue
        del part[name]
        for language, text in texts.items():
            if not isinstance(text, str):
                raise ManifestError(f"{part['name']}: {name}.{language}: {text!r} is no text")
            if language == ENGLISH:
                part[name] = text
            else:
                translations.setdefault(language, {})[name] = text
    part["translations"] = translations


def _join_translations(part: dict[str, Any]) -> None:
    """Move the translations of a level or concept back to its texts, as a file has them: `means.fr`.

    It changes `part`, and undoes `_separate_translations`.
    """
    for language, translation in part.pop("translations", {}).items():
        for name, text in translation.items():
            texts = part.get(name)
            if not isinstance(texts, dict):
                texts = {} if texts is None else {ENGLISH: texts}
                part[name] = texts
            texts[language] = text


def _remove_explanations(part: dict[str, Any]) -> None:
    """Remove the texts that do not define labels from the record of a codebook, level or concept, in place.

    The English title stays, as it may name the label.
    """
    for key in ("construct", "means", "modality"):
        part.pop(key, None)
    title = part.pop("title", "")
    if isinstance(title, dict):  # language -> title
        title = title.get(ENGLISH, "")
    if title:
        part["title"] = title


def _as_in_schema(value: Any, key: str = "") -> Any:
    """Return a value of a parsed codebook file in the form of `CodebookFile`, without its short forms.

    A text in a list of levels, concepts or instances becomes a table with that name, and texts that are given
    by language become translations.

    Parameters
    ----------
    value
        A table, a list, or any other value of a codebook file.
    key
        The key of that value; "" for the whole file and for items of lists.
    """
    if isinstance(value, dict):
        table = {name: _as_in_schema(inner, name) for name, inner in value.items()}
        is_translated = any(isinstance(table.get(name), dict) for name in TRANSLATED)
        if "name" in table and is_translated:
            _separate_translations(table)
        return table
    if isinstance(value, list) and key in NAMED:
        return [_named_item(item, key) for item in value]
    if isinstance(value, list):
        return [_as_in_schema(item) for item in value]
    return value


def _named_item(item: Any, key: str) -> Any:
    """Return an item of a list of levels, concepts or instances (`key`) as a table: a text is its name.

    Raises
    ------
    ManifestError
        It is a number: a name that was written without quotes.
    """
    if isinstance(item, str):
        return {"name": item}
    if isinstance(item, int | float) and not isinstance(item, bool):
        raise ManifestError(f'{key}: {item} is a number, and a name was expected: write "{item}"')
    return _as_in_schema(item)


@checked
def codebook_of_text(text: str) -> Codebook:
    """Make a codebook of the text of a codebook file.

    Raises
    ------
    ManifestError
        The text is no codebook file (`codebook_parameters`), or its parts make no valid codebook.
    """
    return Codebook(**codebook_parameters(composed(text)))


@checked
def load_codebook(path: str | Path) -> Codebook:
    r"""Read and check a codebook file.

    Raises
    ------
    ManifestError
        The file is no valid codebook (names file and key), or it has the name of a built-in codebook and
        differs from it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import load_codebook
    >>> levels = "".join(f'[[levels]]\nname = "{name}"\n' for name in ("calm", "violent"))
    >>> _ = Path("fights.codebook.toml").write_text(f'name = "fights"\nversion = "1"\n{levels}')
    >>> load_codebook("fights.codebook.toml").name
    'fights'
    """
    path = local_path(path)
    text = text_of(path)
    with error_context(path):
        codebook = codebook_of_text(text)
    if codebook.name in BUILTIN and codebook.digest() != builtin_codebook(codebook.name).digest():
        raise ManifestError(
            f"{path}: name: {codebook.name!r} is a built-in codebook, and this one differs: "
            "give it another name"
        )
    return codebook


@checked
@cache
def builtin_codebook(name: str) -> Codebook:
    """Read a built-in codebook.

    Raises
    ------
    ManifestError
        If there is none of this name; the message suggests the nearest one.

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> builtin_codebook("obygaze12").level_names
    ('EN', 'HN', 'NS', 'S')
    """
    if name not in BUILTIN:
        problem = f"unknown codebook {name!r}{suggestion(name, BUILTIN)}"
        raise ManifestError(problem, CODEBOOK_COLUMN)
    return codebook_of_text(packaged_text(__package__, FOLDER, f"{name}.codebook.toml"))


def starter() -> str:
    """Return the text of a commented codebook file to begin with."""
    return packaged_text(__package__, FOLDER, "starter.toml")


@checked
def find_codebook(name_or_path: str) -> Codebook:
    """Find a codebook by the name of a built-in one, or by its file.

    Raises
    ------
    ManifestError
        If it is neither; or the file is no codebook.
    """
    if name_or_path in BUILTIN:
        return builtin_codebook(name_or_path)
    path = Path(name_or_path)
    if not path.is_file() and path.suffix != ".toml":
        hint = suggestion(name_or_path, BUILTIN)
        raise ManifestError(f"{name_or_path}: neither a file nor a built-in codebook{hint}")
    return load_codebook(path)
