"""Rank the encodings that a text may be in, by the scripts and letters that languages have.

A text in another encoding than its own has signs where letters should be, capitals inside of words, letters
of two scripts in one word, or letters that no one language has together. Each language is a list of the
letters beyond ASCII that it uses, the frequent ones first.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

ENCODINGS: Final = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "mac_roman", "cp850",
    "cp437", "cp852", "cp866", "koi8_r", "koi8_u", "mac_cyrillic", "iso8859_2", "iso8859_7", "cp874", "cp932",
    "euc_jp", "gb18030", "big5", "cp949",
)  # fmt: skip
"""Encodings that files of annotations and subtitles are in, those that are met most often first."""

LANGUAGES: Final = (
    "éèàêçùâîôûëïœæÿ",  # French
    "üäöß",  # German
    "óíáéñúü",  # Spanish
    "ãçáéíóõêâúàô",  # Portuguese
    "èàòùéì",  # Italian
    "äöå",  # Swedish, Finnish
    "åøæéö",  # Danish, Norwegian
    "łęąóśżćńź",  # Polish
    "íáéěšýřčžůúťňďó",  # Czech
    "áíéčšýžúľťôňďäóĺŕ",  # Slovak
    "áéóöíőüúű",  # Hungarian
    "ăîâșțşţ",  # Romanian
    "ıişğüçöâ",  # Turkish
    "čšžćđ",  # Croatian, Slovene
    "ėšžųįūčąę",  # Lithuanian
    "āīēšņļžķčģū",  # Latvian
    "äõöüšž",  # Estonian
    "áðíéþöóæúý",  # Icelandic
    "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё",  # Russian
    "оаинвіртеслкудмпзяьбгчхйїцжюєшщґф",  # Ukrainian
    "аиетонрсвлкдпмзяъгубчшйжцхющфь",  # Bulgarian
    "аиоенрсјтукдвмпљгзбњчшжћђџцхф",  # Serbian
    "αοιτεσνηυρπκμλςωγδθχφβξζψάέήίόύώϊϋΐΰ",  # Greek
    "יוהלרבאתמשנעדקפחכגטםצסזןךףץ",  # Hebrew
    "الينمتوربعهدفسقحكجشصخطزضذثغظءأإآىةئؤ",  # Arabic
    "ایندرمهتوسبشکزلفگخقپعجحچژغصطضذثظئآ",  # Persian
    "านรอกเ่งม้ยลวดทัสต์ิีะปบคหแจพชขใไุูึืำ็โถณผซ",  # Thai
)
"""Letters beyond ASCII of languages of alphabets."""

HAN: Final = {
    "simplified": (
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
        "好没什么吧吗呢很都想看起去回家知道事情她"
    ),
    "traditional": (
        "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡"
        "好沒什麼吧嗎呢很都想看起去回家知道事情她"
    ),
    "Japanese": "私何人今日一二三本大小中上下出来行見言思気時間前後彼女男子手目心話分会事者生先年",
}
"""Characters that are most frequent in languages that are written with Chinese ones."""

TYPOGRAPHIC: Final = frozenset("’‘“”„–—…«»‹›¿¡°€£©®•½\u00a0،؟。、，！？「」『』（）：；・ー～・")
"""Signs that stand beside letters in texts; not inside of words, but for the apostrophe."""

APOSTROPHES: Final = frozenset("’‘")

MOST_LINES: Final = 200
"""How many lines beyond ASCII are judged."""

MOST_LINE: Final = 500
"""Bytes of each line that are judged."""


class Likely(NamedTuple):
    """An encoding with how likely it is; 1 where every letter is a frequent one of one language."""

    name: str
    score: float


def likely_encodings(lines: Iterable[bytes]) -> list[Likely]:
    """Return the encodings in which lines that are not ASCII are texts, the likeliest first.

    Examples
    --------
    >>> likely_encodings(["Привет, как дела?".encode("cp1251")])[0].name
    'cp1251'
    >>> likely_encodings(["déjà vu".encode("cp1252")])[0].name
    'cp1252'
    """
    sample = [line[:MOST_LINE] for _, line in zip(range(MOST_LINES), lines, strict=False)]
    ranked: list[Likely] = []
    for name in ENCODINGS:
        texts = [decoded_line(line, name) for line in sample]
        # A line that is cut may end in half a letter; one of many that is broken otherwise rules it out.
        if any(text is None for text in texts):
            continue
        ranked.append(Likely(name, _score([text for text in texts if text is not None])))
    return sorted(ranked, key=lambda likely: -likely.score)  # equal ones stay in the order of `ENCODINGS`


def decoded_line(line: bytes, name: str) -> str | None:
    """Decode a line; None where it is no text in this encoding. A last letter that is cut is left out."""
    for end in (len(line), len(line) - 1):
        try:
            return line[:end].decode(name)
        except UnicodeDecodeError as error:
            if error.end < len(line) or len(line) < MOST_LINE:
                return None
    return None


def _score(texts: Sequence[str]) -> float:
    """Return how much the letters of texts are those of one language, between -2 and 1."""
    text = "\n".join(texts)
    signs = Counter(sign for sign in text if not sign.isascii())
    n_signs = signs.total()
    if not n_signs:
        return 0.0
    of_language = max(_of_alphabet(signs, letters) for letters in LANGUAGES)
    of_script = max(_of_han(signs, frequent) for frequent in HAN.values())
    best = max(of_language, of_script, _of_korean(signs))
    return (best - _oddities(text)) / n_signs


@cache
def _weights(letters: str) -> dict[str, float]:
    """Return what each letter of a language counts, in both cases: frequent ones more."""
    weights = {}
    for place, letter in enumerate(letters):
        weight = 1.0 - 0.5 * place / len(letters)
        weights[letter.upper()] = weight - 0.03  # texts have few capitals
        weights[letter] = weight
    return weights


def _of_alphabet(signs: Counter[str], letters: str) -> float:
    """Return the sum of what signs count in a language of an alphabet."""
    weights = _weights(letters)
    return sum(n * weights.get(sign, _beside(sign)) for sign, n in signs.items())


def _of_han(signs: Counter[str], frequent: str) -> float:
    """Return the sum of what signs count in a language with Chinese characters, or Japanese syllables."""
    total = 0.0
    for sign, n in signs.items():
        is_syllable = "\u3040" <= sign <= "\u30ff" and frequent == HAN["Japanese"]
        if sign in frequent or is_syllable:
            total += n
        elif "\u4e00" <= sign <= "\u9fff":
            total += 0.35 * n
        else:
            total += n * _beside(sign)
    return total


def _of_korean(signs: Counter[str]) -> float:
    """Return the sum of what signs count in Korean, whose letters are syllables."""
    return sum(n * (1.0 if "\uac00" <= sign <= "\ud7a3" else _beside(sign)) for sign, n in signs.items())


def _beside(sign: str) -> float:
    """Return what a sign counts that is no letter of the language."""
    if sign in TYPOGRAPHIC:
        return 0.5
    if unicodedata.category(sign) in {"Lu", "Ll", "Lo", "Lm", "Mn", "Mc"}:
        return -0.5
    return -1.0


def _oddities(text: str) -> float:
    """Count what words do not have: capitals inside, letters of two scripts, signs in between, controls."""
    odd = 0.0
    for before, sign in pairwise(text):
        if before.isascii() and sign.isascii():
            continue
        if before.isalpha() and sign.isalpha():
            is_capital_inside = before.islower() and sign.isupper()
            odd += is_capital_inside or _script(before) != _script(sign)
        elif before.isalpha() and _is_odd_inside(sign):
            odd += 0.5
    odd += sum(unicodedata.category(sign) in {"Cc", "Cf", "Co", "Cn"} for sign in text if not sign.isascii())
    return odd + _bare_words(text)


def _is_odd_inside(sign: str) -> bool:
    """Return whether a sign behind a letter is neither ASCII, nor a mark of one, nor an apostrophe."""
    if sign.isascii() or sign in TYPOGRAPHIC:
        return False
    return unicodedata.category(sign) not in {"Mn", "Mc", "Lo", "Lm"}


@cache
def _script(letter: str) -> str:
    """Return the script of a letter: the first word of its name."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    # Japanese mixes three scripts in one word.
    return "CJK" if name in {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"} else name


def _bare_words(text: str) -> float:
    """Count the letters of Latin words that are nearly all beyond ASCII, as few words of any language are."""
    n_letters = 0
    for word in text.split():
        beyond = [sign for sign in word if not sign.isascii() and sign.isalpha()]
        if len(beyond) < 3 or 4 * len(beyond) < 3 * len(word):
            continue
        if all(_script(sign) == "LATIN" for sign in beyond):
            n_letters += len(beyond)
    return float(n_letters)
