"""Numbers, drawings and choices of an invented film are those of the frozen files, whatever the words are.

A change that means to change them deletes the file and runs this test once: it writes the file anew, and
fails. What differs is read in the review.
"""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from msgspec import to_builtins
from msgspec.structs import replace as changed

from obygaze.cli import main
from obygaze_features.io import sha256_of
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_film import evaluation
from obygaze_film.claims import words as texts
from obygaze_film.exchange import export
from obygaze_film.judged_rate import FilmRates, correct_rate
from obygaze_film.page import Owned, film_page
from obygaze_film.score import score_film
from obygaze_film.segments import as_in_files
from obygaze_film.windows_to_judge import choose_next
from obygaze_models.report import asset
from tests.film.films import film_store, shots_of
from tests.film.page.invented import PLANTED, invented_film, with_model

SMALL = {"duration_s": 540.0, "n_rows": 40}
BOOK = builtin_codebook("obygaze12")


def frozen(name, text):
    """Compare with a frozen file."""
    path = Path(__file__).parent / "frozen" / f"{name}.txt"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} is new")
    assert text == path.read_text(encoding="utf-8")


def numbers(text):
    """Keep the numbers of each line, rounded to six digits."""
    text = re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number[0]):.6g}", text)
    lines = (re.findall(r"[-+−<]?\d[\d:,]*\.?\d*(?:e-\d+)?", line) for line in text.splitlines())
    return "\n".join(" ".join(line) for line in lines if line) + "\n"


@pytest.fixture(scope="module")
def films():
    """Films of all kinds: whole, withheld, trained on, without calibration, without a bracket."""
    one = invented_film("tt01", "A", year=2009, traced=True, **SMALL)
    second = changed(one.model(), key="linear", title="L", concepts=[], by_concepts=False)
    table = one.table.assign(flags=["bars;short", *one.table["flags"][1:]])
    table = pd.concat([table, one.table.assign(model="linear", p=one.table["p_low"])], ignore_index=True)
    one = replace(one, record=changed(one.record, models=[one.model(), second]), table=table)
    half = invented_film("b", "B", year=None, unlike_parts=((0.0, 0.3),), **SMALL)
    metrics = [{"metric": "auc", "movie_mean": 0.6, "n_movies": 9}]
    half = with_model(half, clip_s=60.0, metrics=metrics, licence="")
    windows = changed(half.record.windows, hop_s=None)
    half = with_model(replace(half, record=changed(half.record, windows=windows)), human=None)
    levels = {"codebook": "violence", "levels": (("calm",), ("violent", "gore"))}
    trained = invented_film("c/d", "C", seed=3, trained_on=True, **levels, **SMALL)
    trained = with_model(trained, rate=changed(half.model().rate, unreliable=0.0))
    bare = invented_film("e", "E", concepts=(), seed=4, **SMALL)
    bare = with_model(bare, calibration=None, threshold_p=None, metrics=[], rate=half.model().rate)
    last = invented_film("f", "F", year=1989, seed=5, **SMALL)
    rate = changed(last.model().rate, bracket_low=None, bracket_high=None)
    return [one, half, trained, bare, with_model(last, rate=rate)]


def said(clip, name, *, sure):
    """Give a clip a level and an annotator."""
    return replace(clip, clip_id=f"{name}-{clip.clip_id}", level="S" if sure else "EN", annotator=name)


@pytest.fixture(scope="module")
def judged(films):
    """Blind judgements of two people, of whom one sees less."""
    clips = choose_next(films[:1], 10, blind=True)
    sure = [any(clip.start_s < 540 * b and 540 * a < clip.end_s for a, b in PLANTED) for clip in clips]
    both = [said(clip, "AB", sure=is_sure) for clip, is_sure in zip(clips, sure, strict=True)]
    both += [
        said(clip, "CD", sure=is_sure and clip.start_s > 100)
        for clip, is_sure in zip(clips, sure, strict=True)
    ]
    return Manifest(tuple(both), Path(), BOOK)


@pytest.mark.parametrize("first", [1, 2, 5])
def test_a_page(films, judged, monkeypatch, request, first):
    """Every text is its name and what is filled in; of the markup, the values of attributes are kept."""

    def named(*place):
        texts = tomllib.loads(asset(*place))
        for key, text in texts.items():
            if re.search("[a-z]{2}", text):
                texts[key] = " ".join([key, *re.findall(r"{\w*}", text)])
        return "\n".join(f"{key} = {json.dumps(text)}" for key, text in texts.items())

    monkeypatch.setattr(texts, "asset", named)
    texts.texts_of.cache_clear()
    request.addfinalizer(texts.texts_of.cache_clear)
    rate = changed(correct_rate(films[0], judged)[0], high=0.6)  # the end of a scale
    rates = {}
    if first > 1:
        rates = {"tt01": [FilmRates((rate,))], "b": [FilmRates((changed(rate, worth=None),))]}
    owned = {movie: Owned(rates) for movie, rates in rates.items()}
    page = film_page(films[:first], top=6, owned=owned)
    data = [json.loads(text) for text in re.findall('class="data">(.*?)</script>', page, re.DOTALL)]
    page = re.sub(r"<meta[^>]*>|<style.*?</style>|<script.*?</script>", "", page, flags=re.DOTALL)
    text = re.sub("<[^>]*>", lambda tag: " ".join(["", *re.findall('"([^"]*)"', tag[0]), ""]), page)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert not re.search(r"\bNone\b|\bnan\b", text)
    for film in data:
        lines += [f"{key}: {_short(value)}" for key, value in film.items() if key != "passages"]
        lines += [f"passage: {_short(passage)}" for passage in film["passages"]]
    frozen(f"page-{first}", "\n".join(filter(None, lines)))


def _short(value):
    """Write data on one line, packed rows by their digest: what they unpack to is tested elsewhere."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r'"[\w+/]{60,}=*"', lambda packed: f'"sha256 {sha256_of(packed[0].encode())[:12]}"', text)


def test_an_export(films, kind):
    frozen(kind, "".join(numbers(export(film, kind, top=6, rate=25)) for film in films[:2]))


@pytest.mark.parametrize("kind", ["shots", "steps"])
def test_scores(trained, tmp_path, kind):
    """To two decimals: models are fitted."""
    store = film_store(tmp_path, "x", end_s=100.0, planted=((20.0, 45.0),), failed=["x-0012", "x-0013"])
    models = [trained.paths[name] for name in ("pcbm_lr", "bank")]
    film = score_film(store, models, shots=shots_of("x", 100.0) if kind == "shots" else None)
    rows = [to_builtins(model.rate) | model.flags for model in film.record.models]
    tables = (film.table, as_in_files(film.segments()), pd.DataFrame(rows))
    frozen(f"scores-{kind}", "".join(numbers(table.round(2).to_csv()) for table in tables))


def test_evaluation_and_judgements(films, judged):
    """Of three films, the second annotator six seconds late and without the last passage."""
    clips = [
        said(Clip(f"{movie[0]}{a}", movie, start_s=540 * a + late, end_s=540 * b + late), name, sure=True)
        for movie in ("tt01", "c/d", "f")
        for name, late, n in (("AB", 0, 5), ("CD", 6, 4))
        for a, b in PLANTED[:n]
    ]
    found = evaluation.evaluate_films(films[::2], Manifest(tuple(clips), Path(), BOOK), n_shifts=20)
    rows = [f"{row}\n" for block in evaluation.evaluation_report(found).blocks for row in block.rows]
    frozen("evaluation", numbers(found.summary.to_csv() + found.by_film.to_csv() + "".join(rows)))
    chosen = [
        *judged,
        *choose_next([films[3], *films[:2]], 12),
        *choose_next(films[:1], 9, judged=list(judged)),
    ]
    rows = [f"{clip.clip_id} {clip.start_s} {clip.end_s} {clip.extras}\n" for clip in chosen]
    rate = to_builtins(correct_rate(films[0], judged)[0], enc_hook=str)
    frozen("judgements", numbers("".join(rows) + str(rate)))


def test_what_commands_print(films, judged, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    films[0].write(Path("a"))
    write_manifest(judged, Path("judged.csv"))
    for movie, window_s in (("x", 8.0), ("y", 5.0)):  # of a model of clips of 4 s
        film_store(Path(), movie, end_s=100.0, window_s=window_s)
    Path("facts.csv").write_text("movie,title,year\ny,Y 2,1931\n", encoding="utf-8")
    for words in (
        "rate a judged.csv",
        "next a --n 7 --out next.csv",
        "score MODEL x --out x-scored",
        "score MODEL y --films facts.csv --out y-scored",
        f"score {trained.paths['bank']} y --out bank",
        "report y-scored --out new/pages/1.html",
        "export y-scored --as edl --out new/lists/2.edl",
    ):
        with pytest.raises(SystemExit) as ended:
            main(["film", *words.replace("MODEL", str(trained.paths["pcbm_lr"])).split()])
        assert not ended.value.code
    assert Path("new/pages/1.html").exists()
    frozen("commands", numbers(capsys.readouterr().out))
