"""Run embedding association tests on stores: one row per test."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from obygaze_models.report import Picture, Report
from obygaze_studies.audit_common.audit_tables import Row, audit_report, drawn_by, table
from obygaze_studies.audit_common.embeddings import Embeddings, check_same_space
from obygaze_studies.audit_common.published_values import EFFECTS
from obygaze_studies.eat.eat_tests import Attributes, EatTest, Variant, label, select, texts_of
from obygaze_studies.eat.effect_size import (
    MOST_EXACT,
    Associations,
    Vectors,
    associations,
    effect,
    exact,
    sampled,
)
from obygaze_studies.errors import AuditError

STAR = "star: a normal p below .05 in either tail"


def audit_eat(
    images: Embeddings,
    texts: Embeddings,
    *,
    items: Mapping[str, Row],
    text_ids: Mapping[str, str],
    tests: Sequence[EatTest],
    variant: Variant = Variant.CODE,
    n_perm: int = 10_000,
    seed: int = 0,
    model: str | None = None,
) -> Report:
    """Run every test.

    Parameters
    ----------
    images, texts
        Embeddings of targets and of attributes, of one space.
    items
        Item id -> its columns, by which targets are selected.
    text_ids
        Text -> its id among `texts`.
    n_perm, seed
        Partitions drawn for a test with too many targets to count all, each test anew with this seed.
    model
        A model of the published tables, to put its values beside.

    Raises
    ------
    AuditError
        Naming the test, the set and the id.
    """
    check_same_space(images, texts)
    if model is not None and model not in EFFECTS:
        raise AuditError(f"no published values of {model!r}, but of {', '.join(EFFECTS)}")
    material = _Material(images, texts, items, text_ids, variant)
    rows = []
    for test in tests:
        sets = material.sets(test)
        try:
            associated = associations(sets["X"], sets["Y"], sets["A"], sets["B"])
            measured = effect(associated)
        except AuditError as error:
            raise AuditError(f"test {test.name}: {error}") from error
        printed = EFFECTS[model].get(test.name) if model else None
        rows.append(
            {"test": test.name}
            | {side: label(getattr(test, side)) for side in "xyab"}
            | {f"n_{side.lower()}": len(sets[side]) for side in "XYAB"}
            | asdict(measured)
            | {"star": measured.star}
            | _permutations(associated, n_perm, seed)
            | {
                "published_d": printed.d if printed else None,
                "published_star": printed.star if printed else None,
            }
        )
    record: dict[str, object] = {
        "space": images.space,
        "images": images.fingerprint,
        "texts": texts.fingerprint,
        "n_partial": {"images": len(images.partial), "texts": len(texts.partial)},
        "variant": str(variant),
        "tests": [{"name": test.name, "X": test.x, "Y": test.y, "A": test.a, "B": test.b} for test in tests],
        "published_model": model,
        "source": "Wolfe et al., FAccT 2023, eq. 1-2; published: its Tables 1 and 2",
    }
    columns = ["test", "n_x", "n_y", "d", "star", "p_normal"]
    columns += [name for name in ("p_exact", "p_sampled") if any(row[name] for row in rows)]
    columns += ["published_d", "published_star"] if model else []

    return audit_report(
        "eat",
        "Embedding association tests",
        rows,
        [table("Effect size and p of every test", rows, columns, (STAR,))],
        record,
        picture=Picture(
            "eat",
            "Effect sizes; grey, the band in which a normal p is not below .05 in either tail",
            drawn_by("draw_forest", rows=rows),
        ),
    )


@dataclass(frozen=True)
class _Material:
    images: Embeddings
    texts: Embeddings
    items: Mapping[str, Row]
    text_ids: Mapping[str, str]
    variant: Variant

    def sets(self, test: EatTest) -> dict[str, Vectors]:
        """Return the vectors of X, Y, A and B."""
        what = {side: f"test {test.name}, set {side}" for side in "XYAB"}
        x, y = select(test.x, self.items, what["X"]), select(test.y, self.items, what["Y"])
        if both := [name for name in x if name in set(y)]:
            raise AuditError(f"test {test.name}: {both[0]} is in both X and Y")
        return {
            "X": self.images.take(x, what["X"]),
            "Y": self.images.take(y, what["Y"]),
            "A": self.texts.take(self._text_ids(test.a, what["A"]), what["A"]),
            "B": self.texts.take(self._text_ids(test.b, what["B"]), what["B"]),
        }

    def _text_ids(self, attributes: Attributes, what: str) -> tuple[str, ...]:
        texts = texts_of(attributes, self.variant)
        for text in texts:
            if text not in self.text_ids:
                hint = f" of '{attributes}', variant {self.variant}" if isinstance(attributes, str) else ""
                raise AuditError(f"{what}: the table of texts has no {text!r}{hint}")
        return tuple(self.text_ids[text] for text in texts)


def _permutations(associated: Associations, n_perm: int, seed: int) -> dict[str, object]:
    """Count every partition where that can be done, draw some where not."""
    counted = exact(associated) if len(associated.x) + len(associated.y) <= MOST_EXACT else None
    drawn = None if counted else sampled(associated, n_perm=n_perm, seed=seed)
    return {
        "p_exact": counted.p if counted else None,
        "n_ge": counted.n_ge if counted else None,
        "n_partitions": counted.total if counted else None,
        "p_sampled": drawn.p if drawn else None,
        "n_perm": drawn.n_perm if drawn else None,
        "seed": drawn.seed if drawn else None,
    }
