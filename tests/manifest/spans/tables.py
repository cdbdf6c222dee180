# ruff: noqa: E501, ARG001 - rows of a table stand on one line; every shape is made of the same
"""Tables of one annotation, in the shapes, languages and files in which people make them."""

import csv
import io
from dataclasses import dataclass, field, replace

from tests.manifest.spans.files import sheet

CONCEPTS = ("Look", "Posture", "Body", "Clothing", "Type of shot")


@dataclass(frozen=True)
class Span:
    """What an annotator says of a span of a film."""

    film: str
    start_s: float
    end_s: float
    level: str
    concepts: tuple[str, ...] = ()
    annotator: str = ""


@dataclass(frozen=True)
class Words:
    """Headings and words of a language."""

    film: str
    start: str
    end: str
    duration: str
    level: str
    concepts: str
    annotator: str
    remarks: str
    yes: str
    no: str
    none: str
    total: str
    timecode: str


LANGUAGES = {
    "English": Words("Film", "Start", "End", "Duration", "Rating", "Tags", "Coder", "Comments", "yes", "no", "none", "Total", "Timecode"),
    "German": Words("Filmtitel", "Beginn", "Ende", "Dauer", "Einstufung", "Merkmale", "Kodiererin", "Bemerkung", "ja", "nein", "keine", "Summe", "Timecode"),
    "French": Words("Titre", "Début", "Fin", "Durée", "Niveau", "Éléments", "Codeuse", "Remarques", "oui", "non", "aucun", "Total", "Minutage"),
    "Spanish": Words("Película", "Inicio", "Fin", "Duración", "Nivel", "Conceptos", "Anotadora", "Notas", "sí", "no", "ninguno", "Suma", "Tiempos"),
    "Italian": Words("Titolo", "Inizio", "Fine", "Durata", "Livello", "Concetti", "Annotatore", "Commenti", "sì", "no", "nessuno", "Totale", "Tempi"),
    "Portuguese": Words("Filme", "Início", "Fim", "Duração", "Nível", "Conceitos", "Anotador", "Observações", "sim", "não", "nenhum", "Soma", "Tempos"),
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Rows of cells, as a person sees them, with what the table says."""

    rows: list[list[str]]
    spans: list[Span]
    options: dict[str, object] = field(default_factory=dict)

    def wide(self) -> int:
        """The number of its columns."""
        return max(len(row) for row in self.rows)


# --- how times and numbers are written
# ---------------------------------------------------------------------------
def seconds(time_s: float) -> str:
    return f"{time_s:g}"


def decimal_comma(time_s: float) -> str:
    return f"{time_s:.1f}".replace(".", ",")


def clock(time_s: float) -> str:
    return f"{int(time_s) // 3600:02d}:{int(time_s) // 60 % 60:02d}:{time_s % 60:04.1f}"


def minutes(time_s: float) -> str:
    return f"{int(time_s) // 60:02d}:{time_s % 60:04.1f}"


TIMES = {"seconds": seconds, "decimal commas": decimal_comma, "clocks": clock, "minutes": minutes}


# --- shapes
# ---------------------------------------------------------------------------
def of_one(spans: list[Span]) -> list[Span]:
    """What the first annotator says, by name."""
    return [span for span in spans if span.annotator == spans[0].annotator]


def long(spans, words, time):
    """Write a row for each span, with its concepts in one cell; `time` writes seconds."""
    rows = [[words.film, words.start, words.end, words.annotator, words.level, words.concepts, words.remarks]]
    for span in spans:
        concepts = ", ".join(span.concepts) or words.none
        rows.append(
            [span.film, time(span.start_s), time(span.end_s), span.annotator, span.level, concepts, "ok"]
        )
    return Table(rows, spans)


def with_durations(spans, words, time):
    """Write a row for each span, with its start and how long it lasts."""
    rows = [[words.film, words.start, words.duration, words.annotator, words.level, words.concepts]]
    for span in spans:
        length = time(span.end_s - span.start_s)
        rows.append(
            [span.film, time(span.start_s), length, span.annotator, span.level, " + ".join(span.concepts)]
        )
    return Table(rows, spans)


def with_both_times_in_a_cell(spans, words, time):
    """Write a row for each span, with its times in one cell: "00:01:05.5 - 00:01:20.5"."""
    rows = [[words.film, words.timecode, words.annotator, words.level, words.concepts]]
    for span in spans:
        both = f"{clock(span.start_s)} - {clock(span.end_s)}"
        rows.append([span.film, both, span.annotator, span.level, " / ".join(span.concepts)])
    return Table(rows, spans)


def marks(spans, words, time):
    """Write a row for each span, with a column for each concept, in which stands yes or no."""
    rows = [[words.film, words.start, words.end, words.annotator, words.level, *CONCEPTS]]
    for span in spans:
        marked = [words.yes if concept in span.concepts else words.no for concept in CONCEPTS]
        rows.append([span.film, time(span.start_s), time(span.end_s), span.annotator, span.level, *marked])
    return Table(rows, spans)


def marks_of_levels(spans, words, time):
    """Write a row for each span, with a column for each level, of which one has an x."""
    levels = ["EN", "HN", "NS", "S"]
    rows = [[words.film, words.start, words.end, *levels, words.concepts, words.annotator]]
    for span in spans:
        marked = ["x" if level == span.level else "" for level in levels]
        rows.append(
            [
                span.film,
                time(span.start_s),
                time(span.end_s),
                *marked,
                "|".join(span.concepts),
                span.annotator,
            ]
        )
    return Table(rows, spans)


def annotators_of(spans):
    return list(dict.fromkeys(span.annotator for span in spans))


def by_span(spans):
    """The spans of each time, by annotator."""
    rows: dict[tuple[str, float, float], dict[str, Span]] = {}
    for span in spans:
        rows.setdefault((span.film, span.start_s, span.end_s), {})[span.annotator] = span
    return rows


def wide(spans, words, time):
    """Write a row for each time, with a column for each annotator's level; concepts are not written."""
    annotators = annotators_of(spans)
    rows = [[words.film, words.start, words.end, *annotators, words.remarks]]
    for (film, start_s, end_s), own in by_span(spans).items():
        rows.append([film, time(start_s), time(end_s), *(own[name].level for name in annotators), "-"])
    return Table(rows, [replace(span, concepts=()) for span in spans])


def wide_with_concepts(spans, words, time):
    """Write a row for each time, with a column for each annotator's level and one for their concepts."""
    annotators = annotators_of(spans)
    heads = [f"{role} {name}" for name in annotators for role in (words.level, words.concepts)]
    rows = [[words.film, words.start, words.end, *heads]]
    for (film, start_s, end_s), own in by_span(spans).items():
        cells = [cell for name in annotators for cell in (own[name].level, "; ".join(own[name].concepts))]
        rows.append([film, time(start_s), time(end_s), *cells])
    return Table(rows, spans)


def two_rows_of_headings(spans, words, time):
    """Write a row for each time; the first row of headings has annotators, the second level and concepts."""
    annotators = annotators_of(spans)
    groups = [cell for name in annotators for cell in (name, "")]
    rows = [
        [words.film, words.start, words.end, *groups],
        ["", "", "", *[words.level, words.concepts] * len(annotators)],
    ]
    for (film, start_s, end_s), own in by_span(spans).items():
        cells = [cell for name in annotators for cell in (own[name].level, "\n".join(own[name].concepts))]
        rows.append([film, time(start_s), time(end_s), *cells])
    return Table(rows, spans)


def one_label_a_row(spans, words, time):
    """Write a row for each level and each concept of a span, with what the label is before it."""
    rows = [[words.film, words.start, words.end, words.annotator, "tier", "value"]]
    for span in spans:
        head = [span.film, time(span.start_s), time(span.end_s), span.annotator]
        rows.append([*head, words.level, span.level])
        rows += [[*head, words.concepts, concept] for concept in span.concepts]
    return Table(rows, spans)


def with_titles_and_sums(spans, words, time):
    """Write a row for each span, below a title and above a row of sums and a legend."""
    table = long(spans, words, time)
    width = table.wide()
    total = [words.total, "", seconds(sum(span.end_s - span.start_s for span in spans))]
    legend = ["EN = easy negative, S = sure"]
    rows = [["Seminar: objectification in film"], *table.rows, total, legend]
    return Table([[*row, *[""] * (width - len(row))] for row in rows], spans)


def films_named_once(spans, words, time):
    """Write a row for each span; a film is named in its first row, and the cells below are empty."""
    table = long(spans, words, time)
    rows = [table.rows[0]]
    last = ""
    for row in table.rows[1:]:
        rows.append(["" if row[0] == last else row[0], *row[1:]])
        last = row[0]
    return Table(rows, spans)


def numbers(spans, words, time):
    """Write levels as numbers from 0 (EN) to 3 (S)."""
    number_of_level = {"EN": "0", "HN": "1", "NS": "2", "S": "3"}
    header, *rows = long(spans, words, time).rows
    at = header.index(words.level)
    for row in rows:
        row[at] = number_of_level[row[at]]
    return Table([header, *rows], spans)


def of_files(spans, words, time):
    """Write a row for each span of the first annotator, as if it were a file of its own without times."""
    own = of_one(spans)
    rows = [["Clip", words.level, words.concepts, words.annotator]]
    whole = []
    for at, span in enumerate(own):
        rows.append([f"clip_{at}.mp4", span.level, ", ".join(span.concepts), span.annotator])
        whole.append(replace(span, film=f"clip_{at}", start_s=None, end_s=None))
    return Table(rows, whole)


def of_one_film(spans, words, time):
    """Write a row for each span as if all were of Vertigo, which a line above the headings names."""
    table = long(spans, words, time)
    rows = [[f"{words.film}: Vertigo", ""], *[row[1:] for row in table.rows]]
    return Table(rows, [replace(span, film="Vertigo") for span in spans])


SHAPES = {
    shape.__name__.replace("_", " "): shape
    for shape in (
        long,
        with_durations,
        with_both_times_in_a_cell,
        marks,
        marks_of_levels,
        wide,
        wide_with_concepts,
        two_rows_of_headings,
        one_label_a_row,
        with_titles_and_sums,
        films_named_once,
        numbers,
        of_files,
        of_one_film,
    )
}


# --- files
# ---------------------------------------------------------------------------
def text(rows, sign, encoding):
    """Write rows as CSV, with a sign between cells, as Windows ends lines."""
    content = io.StringIO()
    csv.writer(content, delimiter=sign, lineterminator="\r\n").writerows(rows)
    return content.getvalue().encode(encoding)


def workbook(rows):
    """A workbook whose numbers are numbers."""
    return sheet([[_number(cell) for cell in row] for row in rows])


def _number(cell):
    """Make a number of a cell where it is one."""
    try:
        return float(cell)
    except ValueError:
        return cell


FILES = {
    "CSV": ("t.csv", lambda rows: text(rows, ",", "utf-8")),
    "CSV with a mark": ("t.csv", lambda rows: text(rows, ";", "utf-8-sig")),
    "CSV of Windows": ("t.csv", lambda rows: text(rows, ";", "cp1252")),
    "UTF-16 with tabs": ("t.txt", lambda rows: text(rows, "\t", "utf-16")),
    "tabs": ("t.tsv", lambda rows: text(rows, "\t", "utf-8")),
    "bars": ("t.csv", lambda rows: text(rows, "|", "utf-8")),
    "workbook": ("t.xlsx", workbook),
}
