"""Rank the encodings that a text may be in, by the scripts and letters that languages have.

A text in another encoding than its own has signs where letters should be, capitals inside of words, letters
of two scripts in one word, or letters that no one language has together. Each language is a list of the
letters beyond ASCII that it uses, the frequent ones first.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice, pairwise
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

KOREAN_ROWS: Final = range(0xB0, 0xC9)
"""First bytes of the usual Korean syllables in EUC-KR. Source: KS X 1001, rows 16 to 40."""

HANGUL: Final = frozenset(
    bytes([first, second]).decode("euc_kr") for first in KOREAN_ROWS for second in range(0xA1, 0xFF)
)
"""The 2350 syllables that are usual in Korean. cp949 adds 8822 to them, which Korean hardly ever has."""

TYPOGRAPHIC: Final = frozenset("’‘“”„–—…«»‹›¿¡°€£©®•½\u00a0،؟。、，！？「」『』（）：；・ー～・")
"""Signs that stand beside letters in texts; not inside of words, but for the apostrophe."""

SCORE_OF_RARE_CHARACTER: Final = 0.35
"""Score of a Chinese character that is not among `HAN`, or of a Korean syllable that is not among `HANGUL`.
There are thousands of both; wrong encodings give many."""

MAX_LINES: Final = 200
"""How many lines beyond ASCII are judged."""

MAX_LINE: Final = 500
"""Bytes of each line that are judged."""


class Likely(NamedTuple):
    """An encoding with how likely it is; 1 where every letter is a frequent one of one language."""

    name: str
    score: float


def likely_encodings(lines: Iterable[bytes]) -> list[Likely]:
    """Return the encodings in which lines can be decoded, the likeliest first.

    Examples
    --------
    >>> likely_encodings(["Привет, как дела?".encode("cp1251")])[0].name
    'cp1251'
    >>> likely_encodings(["déjà vu".encode("cp1252")])[0].name
    'cp1252'
    """
    sample = [line[:MAX_LINE] for line in islice(lines, MAX_LINES)]
    ranked: list[Likely] = []
    for name in ENCODINGS:
        decoded_lines = [decoded_line(line, name) for line in sample]
        texts = [text for text in decoded_lines if text is not None]
        # One line that cannot be decoded rules an encoding out.
        if len(texts) == len(sample):
            ranked.append(Likely(name, _score(texts)))
    return sorted(ranked, key=lambda likely: -likely.score)  # equal ones stay in the order of `ENCODINGS`


def decoded_line(line: bytes, name: str) -> str | None:
    """Decode a line that was cut to `MAX_LINE` bytes; None if it is no text in this encoding.

    Half a letter at the end of a line that was cut is left out. `name` is Python's name of the encoding.
    """
    try:
        return line.decode(name)
    except UnicodeDecodeError as error:
        may_be_cut = len(line) >= MAX_LINE
        is_wrong_at_end = error.end >= len(line)
        has_half_a_letter = may_be_cut and is_wrong_at_end
        if not has_half_a_letter:
            return None
    try:
        return line[:-1].decode(name)
    except UnicodeDecodeError:
        return None


def _score(texts: Sequence[str]) -> float:
    """Return how likely texts are to be of one language, by their characters beyond ASCII.

    Each character has a score in each language. The score of the texts is (the sum of their characters in the
    language that fits best - the number of oddities) / the number of characters. It is at most 1, and 0 for
    texts in ASCII. The numbers are our own, chosen by hand: only the order of encodings matters.
    """
    text = "\n".join(texts)
    characters = Counter(sign for sign in text if not sign.isascii())
    n_characters = characters.total()
    if not n_characters:
        return 0.0
    alphabet_score = max(_score_in_alphabet(characters, letters) for letters in LANGUAGES)
    han_score = max(_score_in_han(characters, frequent) for frequent in HAN.values())
    best = max(alphabet_score, han_score, _score_in_korean(characters))
    return (best - _oddities(text)) / n_characters


@cache
def _weights(letters: str) -> dict[str, float]:
    """Return letter -> score in a language, for both cases: from 1 for the most frequent letter down to 0.5.

    `letters` are the language's letters beyond ASCII, the most frequent first.
    """
    weights = {}
    for index, letter in enumerate(letters):
        weight = 1.0 - 0.5 * index / len(letters)
        weights[letter.upper()] = weight - 0.03  # texts have few capitals
        weights[letter] = weight
    return weights


def _score_in_alphabet(signs: Counter[str], letters: str) -> float:
    """Return the sum of the scores of characters in a language with an alphabet, whose letters are given."""
    weights = _weights(letters)
    return sum(n * weights.get(sign, _score_of_foreign_sign(sign)) for sign, n in signs.items())


def _score_in_han(signs: Counter[str], frequent: str) -> float:
    """Return the sum of the scores of characters in a language written with Chinese characters.

    `frequent` are its most frequent characters. In Japanese, syllables count like these.
    """
    total = 0.0
    is_japanese = frequent == HAN["Japanese"]
    for sign, n in signs.items():
        is_syllable = is_japanese and "\u3040" <= sign <= "\u30ff"  # hiragana and katakana
        is_chinese_character = "\u4e00" <= sign <= "\u9fff"
        if sign in frequent or is_syllable:
            total += n
        elif is_chinese_character:
            total += SCORE_OF_RARE_CHARACTER * n
        else:
            total += n * _score_of_foreign_sign(sign)
    return total


def _score_in_korean(signs: Counter[str]) -> float:
    """Return the sum of the scores of characters in Korean.

    Rare syllables count less, since Japanese in Shift JIS has hardly any other ones if it is read as Korean.
    """
    total = 0.0
    for sign, n in signs.items():
        is_syllable = "\uac00" <= sign <= "\ud7a3"  # block "Hangul Syllables" of Unicode
        if sign in HANGUL:
            total += n
        elif is_syllable:
            total += SCORE_OF_RARE_CHARACTER * n
        else:
            total += n * _score_of_foreign_sign(sign)
    return total


def _score_of_foreign_sign(sign: str) -> float:
    """Return the score of a character that is no letter of the language.

    Typographic signs, such as quotes, are in texts of all languages; letters of another language may be in a
    name; symbols are least likely.
    """
    if sign in TYPOGRAPHIC:
        return 0.5
    letters_and_accents = {"Lu", "Ll", "Lo", "Lm", "Mn", "Mc"}
    if unicodedata.category(sign) in letters_and_accents:
        return -0.5
    return -1.0


def _oddities(text: str) -> float:
    r"""Count what shows that a text was decoded in a wrong encoding, such as `dÈj‡` for `déjà`.

    Each counts 1: a capital inside of a word, a change of the script inside of a word, a control character,
    and a letter of a word with hardly any ASCII letters. A symbol behind a letter counts 0.5.

    Examples
    --------
    >>> _oddities("déjà\r\n")  # no sign of another encoding, and line ends are in all texts
    0.0
    >>> _oddities("dÈj‡")  # a capital inside of a word, and a symbol behind a letter
    1.5
    >>> _oddities("now \x85")  # … in Windows-1252, read as Latin-1
    1.0
    """
    n_odd = 0.0
    for before, sign in pairwise(text):
        if before.isascii() and sign.isascii():  # ASCII is the same in all these encodings
            continue
        if before.isalpha() and sign.isalpha():
            is_capital_inside = before.islower() and sign.isupper()
            if is_capital_inside or _script(before) != _script(sign):
                n_odd += 1
        elif before.isalpha() and _is_odd_inside(sign):
            n_odd += 0.5
    control_characters = {"Cc", "Cf", "Co", "Cn"}  # with private and unassigned ones
    for sign in text:
        if not sign.isascii() and unicodedata.category(sign) in control_characters:
            n_odd += 1
    return n_odd + _n_letters_of_words_without_ascii(text)


def _is_odd_inside(sign: str) -> bool:
    """Return whether a character behind a letter is odd there.

    ASCII, typographic signs such as an apostrophe, accents, and letters without case are not odd.
    """
    if sign.isascii() or sign in TYPOGRAPHIC:
        return False
    marks = {"Mn", "Mc"}  # accents, and vowel signs such as those of Hindi
    letters_without_case = {"Lo", "Lm"}
    return unicodedata.category(sign) not in marks | letters_without_case


@cache
def _script(letter: str) -> str:
    """Return the script of a letter: the first word of its name."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    # Japanese mixes three scripts in one word.
    return "CJK" if name in {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"} else name


def _n_letters_of_words_without_ascii(text: str) -> float:
    """Count the letters beyond ASCII in Latin words that consist mostly of them, as hardly any word does.

    A word counts if it has at least three such letters, and they are at least three quarters of it.
    """
    n_letters = 0
    for word in text.split():
        beyond_ascii = [sign for sign in word if not sign.isascii() and sign.isalpha()]
        has_mostly_such_letters = len(beyond_ascii) >= 3 and 4 * len(beyond_ascii) >= 3 * len(word)
        if has_mostly_such_letters and all(_script(sign) == "LATIN" for sign in beyond_ascii):
            n_letters += len(beyond_ascii)
    return float(n_letters)
