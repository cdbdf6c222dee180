"""What a source writes it reads back; a change of one record costs that record alone, or is said."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import SOURCES, Subtitle, import_spans, write_textgrid
from tests.manifest.spans.files import EXAMPLES, tabbed

WORDS = (
    st.text("aé ‌<&\"'=中\U0001f600", min_size=1, max_size=12)
    .map(lambda text: " ".join(text.split()))
    .filter(bool)
)
SPANS = st.lists(st.tuples(st.integers(0, 10**7), st.integers(9, 10**5), WORDS), min_size=1, max_size=6).map(
    lambda rows: [Subtitle(a / 1000, (a + n) / 1000, text) for a, n, text in rows]
)
WRITERS = [kind for kind, source in SOURCES.items() if source.write]


@pytest.mark.parametrize("kind", WRITERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(spans=SPANS)
def test_what_is_written_is_read_back_to_the_millisecond(tmp_path, kind, spans):
    path = tmp_path / "tt1.x"
    path.write_text(SOURCES[kind].write(spans, "tt1", 20_000.0), encoding="utf-8", newline="")
    imported = import_spans([path], tmp_path, kind)
    found = sorted((round(1000 * c.start_s), round(1000 * c.end_s)) for c in imported.manifest)
    assert found == sorted((round(1000 * s.start_s), round(1000 * s.end_s)) for s in spans)
    (account,) = imported.accounts
    assert account.used == len(spans)


@given(SPANS)
def test_praat_finds_no_overlap_and_no_gap(spans):
    lines = [line.strip() for line in write_textgrid({"a": spans}, 20_000.0).splitlines()]
    edges = [line.partition(" = ")[::2] for line in lines if line.startswith(("xmin", "xmax", "class"))]
    last = 0.0
    for name, value in edges[2:]:
        if name == "class":
            last = 0.0
        elif name == "xmin":
            assert float(value) in {last, 0.0}
        else:
            assert float(value) > 0
            last = float(value) if float(value) < 20_000 else 0.0


def lines_of(kind):
    """A file of six records of a line or block each: what is above them, and they."""
    times = [(10 * n + 1, 10 * n + 5) for n in range(6)]
    if kind == "srt":
        return "", [
            f"{n + 1}\n00:00:{a:02},000 --> 00:00:{b:02},000\nword{n}\n\n" for n, (a, b) in enumerate(times)
        ]
    if kind == "vtt":
        return "WEBVTT\n\n", [
            f"00:{a:02}.000 --> 00:{b:02}.000\nword{n}\n\n" for n, (a, b) in enumerate(times)
        ]
    if kind == "rttm":
        return "", [
            f"SPEAKER tt1 1 {a} {b - a} <NA> <NA> word{n} <NA> <NA>\n" for n, (a, b) in enumerate(times)
        ]
    if kind == "ass":
        head = EXAMPLES["ass"].content.partition("Dialogue")[0]
        return head, [
            f"Dialogue: 0,0:00:{a:02}.00,0:00:{b:02}.00,word{n}\n" for n, (a, b) in enumerate(times)
        ]
    head = tabbed(["Behavior", "Behavior type", "Start (s)", "Stop (s)", "Media file name"])
    return head, [f"word{n}\tSTATE\t{a}.0\t{b}.0\ttt1.mp4\n" for n, (a, b) in enumerate(times)]


@pytest.mark.parametrize("kind", ["srt", "vtt", "ass", "rttm", "boris"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(place=st.integers(0, 5), data=st.data())
def test_a_change_of_one_record_costs_that_record_alone_or_is_said(tmp_path, kind, place, data):
    head, records = lines_of(kind)
    before = records[place]
    at = data.draw(st.integers(0, len(before.rstrip()) - 1))
    sign = data.draw(st.sampled_from(["", "\0", "x", "-", ":", ",", "\xff", " ", "9", "<", "\t"]))
    changed = before[:at] + sign + before[at + 1 :]
    assume(changed != before)
    path = tmp_path / "tt1.x"
    path.write_text(head + "".join([*records[:place], changed, *records[place + 1 :]]), encoding="latin-1")
    try:
        imported = import_spans([path], tmp_path, kind)
    except ManifestError:
        return
    (account,) = imported.accounts
    assert account.seen == account.used + len(account.left_out)
    kept = {(clip.start_s, clip.end_s) for clip in imported.manifest}
    others = {(10 * n + 1.0, 10 * n + 5.0) for n in range(6) if n != place}
    assert others <= kept or account.left_out
    words = {clip.extras.get("text", "") for clip in imported.manifest}
    assert sum(f"word{n}" in words for n in range(6) if n != place) == 5 or account.left_out
