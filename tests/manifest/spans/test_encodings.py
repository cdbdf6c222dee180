"""Encodings of texts that are not UTF-8: the likeliest is first, and what others would give is shown."""

import time

import pytest

from obygaze_features.manifest.spans.encodings import SHOWN_ENCODINGS, decoded
from obygaze_features.manifest.spans.likely_encodings import ENCODINGS, likely_encodings

TEXTS = {
    "cp1252": [
        "Le café était fermé, déjà là-bas à l'été.",
        "Schöne Grüße aus München, weiß",
        "¿Qué pasó, señor?",
        "Ela não está aqui, coração",
        "é",
        "“Hello” – he said…",
        "Så går det på øen",
    ],
    "cp1250": [
        "Zażółć gęślą jaźń, proszę panią",
        "Příliš žluťoučký kůň",
        "Őrült vagy, fiú? Szűk",
        "čaša šuma žaba",
        "Nu știu ce să fac, să mergem în oraș".replace("ș", "ş").replace("ț", "ţ"),
    ],
    "cp1251": ["Привет, как дела?", "Он сказал: «Нет!»", "ЧТО ТЫ ДЕЛАЕШЬ", "Я не знаю, де він і що їсть"],
    "koi8_r": ["Привет, как дела?", "Она пришла домой"],
    "cp866": ["Привет, как дела?"],
    "cp1253": ["Καλημέρα, τι κάνεις;"],
    "iso8859_7": ["Καλημέρα τι κάνεις σήμερα"],
    "cp1255": ["שלום מה שלומך היום"],
    "cp1256": ["مرحبا كيف حالك اليوم"],
    "cp1254": ["Günaydın, nasılsınız? Şimdi değil, çok ışık"],
    "cp1257": ["Ačiū už pagalbą, viskas gerai žinių", "Paldies, jā, es zinu, šķiet"],
    "mac_roman": ["Le café était fermé, déjà là-bas à l'été.", "Schöne Grüße"],
    "cp437": ["Le café était fermé", "Schöne Grüße aus München"],
    "cp850": ["Ela não está aqui, coração", "Le café était à côté"],
    "cp932": [
        "こんにちは、元気ですか。私は日本人です",
        "ありがとう",
        "女性が窓から男性を見ている。",  # which Korean could be too, of syllables that it hardly ever has
        "会議室で二人が話し合っている",
    ],
    "euc_jp": ["こんにちは、元気ですか。私は日本人です"],
    "gb18030": ["你好，你在做什么？我不知道他们来了没有", "我们走吧"],
    "big5": ["你好，你在做什麼？我不知道他們來了沒有", "我們走吧", "電話響了，喂，我是張偉。"],
    "cp949": [
        "안녕하세요, 어떻게 지내세요?",
        "여자가 창문으로 남자를 본다.",
        "비 오는 밤, 택시에서 우는 아내",
        "왜? 싫어!",
        "형님",
        "폭력",
    ],
    "cp874": ["สวัสดีครับ คุณสบายดีไหม"],
    "mac_cyrillic": ["Привет, как дела?"],
    "cp852": ["Zażółć gęślą jaźń", "Příliš žluťoučký kůň"],
}
"""Sentences of languages, by an encoding that they are saved in."""

SAVED = [(encoding, text) for encoding, texts in TEXTS.items() for text in texts]


@pytest.mark.parametrize(("encoding", "text"), SAVED)
def test_a_text_is_read_in_the_likeliest_encoding(encoding, text):
    """The bytes do not say their encoding.

    It is guessed by the letters it gives, and one line of the text, the second, is shown to check the guess.
    """
    content = f"1\n{text}\nplain\n".encode(encoding, "replace")

    decoded_text, notice = decoded(content)

    assert decoded_text == content.decode(encoding)
    assert "which is a guess (line 2 " in notice
    assert "\n" not in notice


@pytest.mark.parametrize(("encoding", "text"), SAVED)
def test_the_next_encodings_are_shown_with_a_line_that_differs(encoding, text):
    """The bytes of a text do not say their encoding, so it is read in the likeliest, and a notice says so.

    The notice goes on "give --encoding, of" and a few other encodings, each with the line that it would give.
    By this option the text is read in the other encoding, which gives another text, and there is no notice.
    """
    content = text.encode(encoding, "replace")

    likeliest_text, notice = decoded(content)

    _, _, part_of_others = notice.partition("give --encoding, of ")
    other_encodings = [name for name in ENCODINGS if f"{name} (line 1 " in part_of_others]
    n_shown_besides_the_likeliest = SHOWN_ENCODINGS - 1
    assert len(other_encodings) <= n_shown_besides_the_likeliest
    for other_encoding in other_encodings:
        text_by_option, notice_by_option = decoded(content, other_encoding)
        assert text_by_option == content.decode(other_encoding)
        assert text_by_option != likeliest_text
        assert notice_by_option == ""


def test_any_bytes_are_read_by_some_encoding():
    """The bytes are all those that are not ASCII, three times: they are a text of no language."""
    content = bytes(range(128, 256)) * 3

    text, notice = decoded(content)

    assert text != ""
    assert "which is a guess" in notice


def test_of_encodings_that_give_the_same_letters_the_most_usual_one_is_first():
    """The two bytes of é in "été" are é in several encodings of Western Europe, of which cp1252 is usual."""
    line = "été".encode("cp1252")
    likeliest, *_ = likely_encodings([line])
    assert likeliest.name == "cp1252"


def seconds_to_decode(content):
    """Return the time of the processor that the content takes."""
    start = time.process_time()
    decoded(content)
    return time.process_time() - start


def test_a_long_text_takes_time_that_grows_with_its_length_alone():
    """Four times the length takes four times as long.

    It would take 16 times as long if every line were compared with every other. So 8 times is the limit, and
    half a second more for a busy machine.
    """
    line = "Привет, как дела? ".encode("cp1251")

    time_s = seconds_to_decode(line * 20_000)
    time_of_four_times_the_length_s = seconds_to_decode(line * 80_000)

    assert time_of_four_times_the_length_s < 8 * time_s + 0.5
