"""Tell by its heading whether a column can be one annotator's, and which columns an annotator has."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from obygaze_features.identity import plain
from obygaze_features.manifest.importers.column_contents import label_of_heading
from obygaze_features.manifest.spans.headings import (
    KNOWN_HEADINGS,
    LABEL_COLUMNS,
    bare_heading,
    is_headed_by,
    meanings_of_heading,
    without_name,
    words_of,
)
from obygaze_features.manifest.spans.label_words import LabelWords

COMPUTED_FROM_ANNOTATORS: Final = {
    "agree", "agreed", "agreement", "consensus", "majority", "majority vote", "mode", "modus", "final",
    "kappa", "übereinstimmung", "konsens", "mehrheit", "accord", "majorité", "accordo", "maggioranza",
    "acuerdo", "mayoría", "difference", "diff", "differenz", "différence",
}  # fmt: skip
"""Headings of columns that are computed from the labels of several annotators, and belong to none of them."""

VAGUE_HEADINGS: Final = {
    "note", "code", "value", "wert", "valeur", "valor", "valore", "annotation", "category", "kategorie",
    "catégorie", "categorie", "categoría", "categoria", "class", "klasse", "classe", "score", "scale",
    "skala", "échelle", "label", "labels",
}  # fmt: skip
"""Headings that may mean much: a column below one holds levels only if its cells can be levels too."""

_DECIDED: Final = COMPUTED_FROM_ANNOTATORS | {
    "adjudicated", "adjudication", "adjudicator", "adjudiziert", "reconciled", "resolved", "combined",
    "merged", "gold", "golden", "goldstandard", "truth", "aggregated", "joint", "endgültig", "gemeinsam",
    "konsensus", "einigung", "définitif", "définitive", "consensuel", "consenso", "definitivo",
}  # fmt: skip
"""Words for what several people decided together, or was computed from what they said."""

_OF_A_MODEL: Final = {
    "model", "modell", "modèle", "modelo", "modello", "prediction", "predictions", "predicted", "predict",
    "pred", "vorhersage", "prognose", "prédiction", "prédit", "predicción", "predicho", "predizione",
    "predetto", "previsão", "machine", "classifier", "automatic", "auto", "automatisch", "ai", "gpt",
    "chatgpt", "llm", "vlm", "gemini", "llama", "qwen",
}  # fmt: skip
"""Words for what a model says."""

_HOW_SURE: Final = {
    "confidence", "confident", "conf", "certainty", "sureness", "sicherheit", "konfidenz", "gewissheit",
    "confiance", "certitude", "confianza", "seguridad", "certeza", "fiducia", "sicurezza", "certezza",
    "confiança", "segurança", "zekerheid", "pewność", "jistota", "уверенность", "güven", "確信度", "自信度",
    "置信度", "확신도",
}  # fmt: skip
"""Words for how sure somebody is of a label."""

_OF_ANOTHER_TIME: Final = {
    "old", "before", "previous", "previously", "earlier", "initial", "original", "revised", "round", "pass",
    "wave", "retest", "alt", "alte", "vorher", "früher", "ursprünglich", "runde", "durchgang", "revidiert",
    "ancien", "ancienne", "avant", "précédent", "initiale", "révisé", "tour", "anterior", "antes", "ronda",
    "revisado", "precedente", "rivisto", "vecchio", "antigo",
}  # fmt: skip
"""Words for labels of an earlier or a later time, which the same people may have given."""

_REMARKS: Final = {
    "notes", "comment", "comments", "remark", "remarks", "bemerkung", "bemerkungen", "kommentar",
    "kommentare", "anmerkung", "anmerkungen", "notiz", "notizen", "remarque", "remarques", "commentaire",
    "commentaires", "observaciones", "comentario", "comentarios", "notas", "osservazioni", "commento",
    "commenti", "observações", "opmerking", "opmerkingen", "uwagi", "poznámka", "примечание", "备注", "備考",
}  # fmt: skip
"""Words for remarks, which may name labels too."""

_OF_SPEECH: Final = {
    "language", "lang", "sprache", "langue", "idioma", "lingua", "língua", "taal", "język", "jazyk", "язык",
    "dil", "言語", "语言", "اللغة", "speaker", "speakers", "sprecher", "sprecherin", "locuteur", "locutrice",
    "hablante", "parlante", "falante", "spreker", "character", "figur", "personnage", "personaje",
    "personaggio", "personagem", "actor", "actress", "schauspieler", "schauspielerin", "acteur", "actrice",
    "text", "texts", "texte", "texto", "testo", "transcript", "transcription", "transkript", "subtitle",
    "subtitles", "untertitel", "dialog", "dialogue", "dialogues", "utterance", "utterances", "word", "words",
    "wort", "wörter", "mot", "mots", "palabra", "palabras", "parola", "token", "phone", "phones", "phoneme",
}  # fmt: skip
"""Words for what is said, in which language, and who speaks or is seen."""

_PARTS = re.compile(r"[^\W_]+")
"""A word or number of a heading."""

_INITIALS = re.compile(r"[A-Z]{1,3}\d{0,2}|[a-z]\d{1,2}|\d{1,2}")
"""Initials of a person, or a letter and a number."""

_OF_NO_ANNOTATOR: Final = _DECIDED | _OF_A_MODEL | _HOW_SURE | _OF_ANOTHER_TIME | _REMARKS | _OF_SPEECH


def names_no_annotator(heading: str) -> bool:
    """Return whether a heading says that a column is of no single annotator.

    Either the whole heading is a word for labels (`Rating`), or it has one of these words: for what several
    people decided (`final`), for what a model says (`gpt`), for how sure somebody is (`confidence`), for an
    earlier or later time (`round`), for remarks (`comment`), or for speech (`speaker`).

    Examples
    --------
    >>> [names_no_annotator(heading) for heading in ("Rating", "Level final", "AB_confidence", "gpt4", "AB")]
    [True, True, True, True, False]
    """
    bare = bare_heading(heading).rstrip("?")
    is_word_for_labels = any(bare in KNOWN_HEADINGS[name] for name in LABEL_COLUMNS)
    words = {bare, *words_of(heading)}
    return is_word_for_labels or not words.isdisjoint(_OF_NO_ANNOTATOR)


def is_of_speech(heading: str) -> bool:
    """Return whether a heading is as a whole a word for what is said, in which language, or who speaks.

    Words below it may be spelled like labels: S is a speaker, EN is English, and look is a word.
    """
    return bare_heading(heading) in _OF_SPEECH


def is_of_model_or_doubt(heading: str) -> bool:
    """Return whether a heading has a word for what a model says, or for how sure somebody is."""
    return not (_OF_A_MODEL | _HOW_SURE).isdisjoint(words_of(heading))


def label_columns_of(annotator: str, columns: Sequence[str], words: LabelWords) -> list[str]:
    """Return the columns that hold an annotator's labels, among those headed by the annotator's name.

    If one of them clearly has the levels, `AB` alone or `Level AB`, the others are labels only if their
    headings say so: `Concepts AB`, or `Look (AB)`, which has marks of Look. Then `Remarks AB` and `Start AB`
    are something else. If none does, all are taken, as any of them may have the levels.

    `columns` are all headings of the table.
    """
    headed_columns = [column for column in columns if is_headed_by(annotator, column)]
    heading_of_column = {column: without_name(annotator, column) for column in headed_columns}
    named_alone = [column for column, heading in heading_of_column.items() if not heading]
    clear_levels = [name for name, heading in heading_of_column.items() if _means_levels_clearly(heading)]
    level_columns = named_alone or clear_levels
    if not level_columns:
        return headed_columns
    label_columns = []
    for column, heading in heading_of_column.items():
        has_marks = bool(label_of_heading(heading, words))  # of the label in the heading
        has_concepts = _first_role(heading) == "concepts"
        if column in level_columns or has_marks or has_concepts:
            label_columns.append(column)
    return label_columns


def _means_levels_clearly(heading: str) -> bool:
    """Return whether a heading means levels, and is neither vague, such as `Note`, nor how sure one is."""
    is_vague = bare_heading(heading) in VAGUE_HEADINGS
    is_of_sureness = not _HOW_SURE.isdisjoint(words_of(heading))
    return _first_role(heading) == "level" and not is_vague and not is_of_sureness


def _first_role(heading: str) -> str:
    """Return the likeliest of `level` and `concepts` that a heading means; "" if it means neither."""
    roles = [name for name in meanings_of_heading(heading) if name in LABEL_COLUMNS]
    return roles[0] if roles else ""


class AnnotatorsLabel(NamedTuple):
    """An annotator and a label, both named in the heading of a column."""

    annotator: str
    label: str


def annotators_of_grid(columns: Sequence[str], words: LabelWords) -> list[str]:
    """Return the annotators of columns of marks, if each annotator has a column for each label; else [].

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> words = LabelWords(builtin_codebook("obygaze12"))
    >>> annotators_of_grid(["AB_level_S", "AB_level_EN", "CD_level_S", "CD_level_EN"], words)
    ['AB', 'CD']
    """
    annotators_of_label: dict[str, list[str]] = {}
    for column in columns:
        named = _annotator_and_label(column, words)
        if named is not None:
            annotators_of_label.setdefault(named.label, []).append(named.annotator)
    groups = list(annotators_of_label.values())
    if not groups or any(group != groups[0] for group in groups):
        return []
    annotators = groups[0]
    are_different = len(annotators) == len(set(map(plain, annotators)))
    are_people = len(annotators) > 1 and all(map(_looks_like_annotator, annotators))
    return annotators if are_different and are_people else []


def _looks_like_annotator(name: str) -> bool:
    """Return whether a name is initials, such as AB or R1, or has a word for annotators, as `Rater 2` does.

    Other words beside a label may be of what is seen, as in `woman body`.
    """
    has_word_for_annotators = not set(words_of(name)).isdisjoint(KNOWN_HEADINGS["annotator"])
    return has_word_for_annotators or _INITIALS.fullmatch(name) is not None


def names_beside_label(columns: Sequence[str], words: LabelWords) -> list[str]:
    """Return what stands beside a label in the headings of columns, if several have the same label; else [].

    Examples
    --------
    >>> from obygaze_features import builtin_codebook
    >>> names_beside_label(["Anna look", "Ben look", "Body"], LabelWords(builtin_codebook("obygaze12")))
    ['Anna', 'Ben']
    """
    names_of_label: dict[str, list[str]] = {}
    for column in columns:
        named = _annotator_and_label(column, words)
        if named is not None:
            names_of_label.setdefault(named.label, []).append(named.annotator)
    names = [name for group in names_of_label.values() if len(group) > 1 for name in group]
    return list(dict.fromkeys(names))


def _annotator_and_label(heading: str, words: LabelWords) -> AnnotatorsLabel | None:
    """Split a heading such as `Anna look` or `Look (Anna)` into its annotator and its label; None for others.

    The shortest beginning that leaves a name and a label is taken. A heading that is as a whole a label names
    nobody, nor does one whose rest says that it is of no annotator, as `final` (`names_no_annotator`).
    """
    if words.level_of(heading) or words.concept_of(heading):
        return None
    parts = _PARTS.findall(heading)
    for n_parts in range(1, len(parts)):
        beginning = " ".join(parts[:n_parts])
        end = " ".join(parts[n_parts:])
        for name, possible_label in ((beginning, end), (end, beginning)):
            label = label_of_heading(possible_label, words)
            if label and not names_no_annotator(name):
                return AnnotatorsLabel(name, label)
    return None


def ends_with_label(heading: str, words: LabelWords) -> bool:
    """Return whether a heading names a label: as a whole, or at its end behind a word for labels.

    `Look` and `AB level S` do, and `AB S` does not: its S may be another person.
    """
    parts = _PARTS.findall(heading)
    for start, part in enumerate(parts):
        is_word_for_labels = any(plain(part) in KNOWN_HEADINGS[name] for name in LABEL_COLUMNS)
        if is_word_for_labels:
            from_this_word_on = " ".join(parts[start:])  # such as `level S`
            if label_of_heading(from_this_word_on, words):
                return True
    return bool(label_of_heading(heading, words))
