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
from obygaze_film.claims import words as words_module
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
"""Of invented films: nine minutes."""

BOOK = builtin_codebook("obygaze12")


def check_snapshot(name, text):
    """Check that a text is that of frozen/NAME.txt; write this file, and fail, where it is not there."""
    path = Path(__file__).parent / "frozen" / f"{name}.txt"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} is new")
    assert text == path.read_text(encoding="utf-8")


def numbers_of_lines(text):
    """Keep of each line its numbers, rounded to six digits: words may change."""
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


def by(annotator, clip, *, is_sure):
    """Let an annotator call a clip S (Sure) or EN."""
    level = "S" if is_sure else "EN"
    return replace(clip, clip_id=f"{annotator}-{clip.clip_id}", level=level, annotator=annotator)


@pytest.fixture(scope="module")
def judged(films):
    """Blind judgements of the first film: AB calls what meets a planted passage S, CD only after 100 s."""
    clips = []
    windows = choose_next(films[:1], 10, blind=True)
    passages = [(540 * start, 540 * end) for start, end in PLANTED]
    for window in windows:
        meets_passage = any(window.start_s < end and start < window.end_s for start, end in passages)
        clips.append(by("AB", window, is_sure=meets_passage))
        clips.append(by("CD", window, is_sure=meets_passage and window.start_s > 100))
    by_ab_first = sorted(clips, key=lambda clip: clip.annotator)
    return Manifest(tuple(by_ab_first), Path(), BOOK)


@pytest.fixture
def texts_are_names(monkeypatch):
    """Make each text of pages its name and the names of its fields: "shares_1 {n} {share}"."""

    def named_asset(*place):
        texts = tomllib.loads(asset(*place))
        for key, text in texts.items():
            if re.search("[a-z]{2}", text):
                texts[key] = " ".join([key, *re.findall(r"{\w*}", text)])
        return "\n".join(f"{key} = {json.dumps(text)}" for key, text in texts.items())

    monkeypatch.setattr(words_module, "asset", named_asset)
    words_module.texts_of.cache_clear()
    yield
    words_module.texts_of.cache_clear()


def without_markup(page):
    """Keep the texts of a page, and of its tags the values of attributes; without scripts and styles."""
    page = re.sub(r"<meta[^>]*>|<style.*?</style>|<script.*?</script>", "", page, flags=re.DOTALL)
    text = re.sub("<[^>]*>", lambda tag: " ".join(["", *re.findall('"([^"]*)"', tag[0]), ""]), page)
    return [" ".join(line.split()) for line in text.splitlines()]


def lines_of_data(page):
    """Write what the scripts of a page read, one value a line."""
    lines = []
    for data in re.findall('class="data">(.*?)</script>', page, re.DOTALL):
        film = json.loads(data)
        lines += [f"{key}: {on_one_line(value)}" for key, value in film.items() if key != "passages"]
        lines += [f"passage: {on_one_line(passage)}" for passage in film["passages"]]
    return lines


@pytest.mark.long
@pytest.mark.usefixtures("texts_are_names")
@pytest.mark.parametrize("n_films", [1, 2, 5])
def test_a_page_is_as_in_its_snapshot_but_for_words(films, judged, n_films):
    """Pages of more than one film have judged rates: of the first, and of the second without a worth."""
    owned = {}
    if n_films > 1:
        rate = changed(correct_rate(films[0], judged)[0], high=0.6)  # the end of a scale
        owned["tt01"] = Owned([FilmRates((rate,))])
        owned["b"] = Owned([FilmRates((changed(rate, worth=None),))])
    page = film_page(films[:n_films], top=6, owned=owned)
    lines = without_markup(page)
    assert not re.search(r"\bNone\b|\bnan\b", "\n".join(lines))
    lines += lines_of_data(page)
    check_snapshot(f"page-{n_films}", "\n".join(filter(None, lines)))


def on_one_line(value):
    """Write data on one line, packed rows by their digest: what they unpack to is tested elsewhere."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r'"[\w+/]{60,}=*"', lambda packed: f'"sha256 {sha256_of(packed[0].encode())[:12]}"', text)


def test_the_numbers_of_an_export_are_as_in_its_snapshot(films, kind):
    exports = [export(film, kind, top=6, rate=25) for film in films[:2]]
    check_snapshot(kind, "".join(map(numbers_of_lines, exports)))


@pytest.mark.parametrize("rows_are", ["shots", "steps"])
def test_scores_segments_and_rates_are_as_in_their_snapshot(trained, tmp_path, rows_are):
    """To two decimals, as models are fitted. With a table of shots rows are shots, without they are steps."""
    store = film_store(tmp_path, "x", end_s=100.0, planted=((20.0, 45.0),), failed=["x-0012", "x-0013"])
    models = [trained.paths[name] for name in ("pcbm_lr", "bank")]
    film = score_film(store, models, shots=shots_of("x", 100.0) if rows_are == "shots" else None)
    rates = pd.DataFrame([to_builtins(model.rate) | model.flags for model in film.record.models])
    tables = [table.round(2).to_csv() for table in (film.table, as_in_files(film.segments()), rates)]
    check_snapshot(f"scores-{rows_are}", "".join(map(numbers_of_lines, tables)))


@pytest.mark.long
def test_an_evaluation_is_as_in_its_snapshot(films):
    """AB marks the five planted passages of three films, and CD the first four of them six seconds later."""
    first, _, third, _, fifth = films
    clips = []
    for film in (first, third, fifth):
        movie = film.movie
        for annotator, late_s, n_passages in (("AB", 0, 5), ("CD", 6, 4)):
            for start, end in PLANTED[:n_passages]:
                clip = Clip(
                    f"{movie[0]}{start}", movie, start_s=540 * start + late_s, end_s=540 * end + late_s
                )
                clips.append(by(annotator, clip, is_sure=True))
    evaluated = evaluation.evaluate_films(
        [first, third, fifth], Manifest(tuple(clips), Path(), BOOK), n_shifts=20
    )
    rows = [f"{row}\n" for block in evaluation.evaluation_report(evaluated).blocks for row in block.rows]
    text = evaluated.summary.to_csv() + evaluated.by_film.to_csv() + "".join(rows)
    check_snapshot("evaluation", numbers_of_lines(text))


def test_windows_to_judge_and_a_rate_are_as_in_their_snapshot(films, judged):
    windows = [
        *judged,
        *choose_next([films[3], films[0], films[1]], 12),
        *choose_next(films[:1], 9, judged=list(judged)),
    ]
    lines = [f"{clip.clip_id} {clip.start_s} {clip.end_s} {clip.extras}\n" for clip in windows]
    rate, _ = correct_rate(films[0], judged)
    text = "".join(lines) + str(to_builtins(rate, enc_hook=str))
    check_snapshot("judgements", numbers_of_lines(text))


@pytest.mark.long
def test_the_numbers_that_commands_print_are_as_in_their_snapshot(
    films, judged, trained, tmp_path, monkeypatch, capsys
):
    """Stores x and y have windows of 8 and 5 s; the models were trained on clips of 4 s."""
    monkeypatch.chdir(tmp_path)
    films[0].write(Path("a"))
    write_manifest(judged, Path("judged.csv"))
    film_store(Path(), "x", end_s=100.0, window_s=8.0)
    film_store(Path(), "y", end_s=100.0, window_s=5.0)
    Path("facts.csv").write_text("movie,title,year\ny,Y 2,1931\n", encoding="utf-8")
    pcbm, bank = trained.paths["pcbm_lr"], trained.paths["bank"]
    for command in (
        "rate a judged.csv",
        "next a --n 7 --out next.csv",
        f"score {pcbm} x --out x-scored",
        f"score {pcbm} y --films facts.csv --out y-scored",
        f"score {bank} y --out bank",
        "report y-scored --out new/pages/1.html",
        "export y-scored --as edl --out new/lists/2.edl",
    ):
        with pytest.raises(SystemExit) as ended:
            main(["film", *command.split()])
        assert not ended.value.code
    assert Path("new/pages/1.html").exists()
    check_snapshot("commands", numbers_of_lines(capsys.readouterr().out))
