"""Texts that tokenizers may split differently, made with a seed."""

import random
import unicodedata

SCRIPTS = [(0x61, 0x7b), (0x41, 0x5b), (0xc0, 0x180), (0x250, 0x2b0), (0x370, 0x400), (0x400, 0x530),
           (0x531, 0x58a), (0x5d0, 0x5eb), (0x620, 0x660), (0x900, 0x980), (0x980, 0xa00),
           (0xb80, 0xc00), (0xe00, 0xe60), (0xe80, 0xee0), (0x1000, 0x10a0), (0x10a0, 0x1100),
           (0x1100, 0x1200), (0x1200, 0x1380), (0x13a0, 0x1400), (0x1780, 0x1800), (0x1e00, 0x2000),
           (0x2c00, 0x2d00), (0x3040, 0x30a0), (0x30a0, 0x3100), (0x3105, 0x3130), (0x3131, 0x318f),
           (0x3400, 0x3500), (0x4e00, 0x9fa6), (0xa640, 0xa6a0), (0xa720, 0xa7c0), (0xac00, 0xd7a4),
           (0xf900, 0xfa6e), (0xfb00, 0xfb07), (0xff21, 0xff3b), (0xff41, 0xff5b), (0xff65, 0xffa0),
           (0x10400, 0x10450), (0x1d400, 0x1d500), (0x20000, 0x20100)]
BLANKS = [" ", "  ", "   ", "    ", " " * 7, " " * 16, " " * 33, "\t", "\t\t", " \t ", "\n", "\n\n",
          "\n\n\n", "\r\n", "\r\n\r\n", "\r", " \n", "\n ", "  \n  ", "\n\t", "\v", "\f", "\xa0",
          "\u2003", "\u2028", "\u3000", "\u3000\u3000", "\u200b", "\x85", "\u202f"]
CODE = ["def f(x):\n    return x**2 + 1", "for (int i = 0; i < n; i++) {\n\tsum += a[i];\n}",
        "#include <stdio.h>", "std::vector<int>{1,2}", "a->b && !c || d != e", "x <<= 3;", "/* c */",
        "// c\n", "<div class=\"a\">&nbsp;</div>", "SELECT * FROM t WHERE a='b'", "$HOME/.bashrc",
        "\\n\\t\\u00e9", "{\"a\": [1.5e-3, null]}", "f\"{x!r:>10}\"", "0xDEADBEEF", "`ls -la`", "@a.b",
        "https://example.org/a?b=c&d=%20#e", "me@example.org", "C:\\Users\\x", "a_b__c", "----", "====",
        "...", "!!!", "?!", "(((", "))]}", "***bold***", "~~~", "^_^", "|a|b|\n|-|-|", "'''", '"""',
        "1+1=2", "50%", "#42", "<sentinel:12>", "IMGIMGAZ", "<0x41>", "\u2581", "[unused1]", "##ing"]
CONTRACTIONS = ["I'm", "it's", "IT'S", "don't", "DON'T", "we'Re", "you've", "they'LL", "he'd", "'s",
                "\u2019s", "isn\u2019t", "'Twas", "o'clock", "rock'n'roll", "x'\u017f"]
SYMBOLS = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\xa1\xa7\xab\xb0\xb1\xb2\xb5\xb6\xbf\xd7\xf7") + [
    "\u2013", "\u2014", "\u2018", "\u201c", "\u201d", "\u2026", "\u20ac", "\u2122", "\u2190", "\u2264",
    "\u221e", "\u2500", "\u25a0", "\u2713", "\u3001", "\u3002", "\u300c", "\uff01", "\uff0c", "\uff1f",
    "\u060c", "\u06d4", "\u0964", "\ufffd"]
EMOJI = ["\U0001f600", "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467",
         "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3", "\u2764\ufe0f", "\U0001f9d1\u200d\U0001f4bb",
         "\U0001f3f4\u200d\u2620\ufe0f"]
NUMBERS = ["\u0664\u0662", "\u0967\u0968\u0969\u096a", "\uff11\uff12", "\u2167", "\xbd", "\xb2\xb3",
           "\u2460", "\U0001d7d8\U0001d7d9", "\u3007\u4e00", "1,234,567.89", "3.14159", "-273.15",
           "2024-02-29", "12:34:56", "+49 30 123456", "1e10", "007"]
MARKS = ["\u0301", "\u0308", "\u0327", "\u20d7", "\u093e", "\u0902", "\u094d", "\u05b8", "\u064e",
         "\u0e31", "\u3099", "\ufe0f", "\u200d"]


def _letters(source, script, n):
    found = []
    while len(found) < n:
        character = chr(source.randrange(*script))
        if unicodedata.category(character) != "Cn":
            found.append(character)
    return "".join(found)


def _word(source):
    script = source.choice(SCRIPTS if source.random() < 0.5 else SCRIPTS[:2])
    word = _letters(source, script, 1 + int(source.expovariate(0.25)))
    change = source.randrange(6)
    if change == 0:
        word = word.capitalize()
    elif change == 1:
        word += _letters(source, source.choice(SCRIPTS[:3]), 3)
    elif change == 2:
        at = source.randrange(len(word) + 1)
        word = word[:at] + source.choice(MARKS) * source.randrange(1, 3) + word[at:]
    return word


def _english(source):
    words = ("the of and to in is was for that it with as his on be at by had not are but from or have "
             "an they which one you were her all she there would their we him been has when who will "
             "more no if out so said what up its about into than them can only other new some could "
             "time these two may then do first any my now such like our over man me even most made "
             "tokenization internationalization Hello World Python function return").split()
    return " ".join(source.choice(words) for _ in range(source.randrange(1, 8)))


def _number(source):
    return "".join(source.choice("0123456789") for _ in range(source.randrange(1, 14)))


def make(seed, n, special=()):
    """Return n texts without NUL; some contain texts of `special`."""
    source = random.Random(seed)
    kinds = [lambda: _word(source)] * 5 + [lambda: _english(source)] * 5 + [
        lambda: source.choice(BLANKS), lambda: source.choice(BLANKS), lambda: " ", lambda: " ",
        lambda: source.choice(CODE), lambda: source.choice(CONTRACTIONS), lambda: _number(source),
        lambda: source.choice(NUMBERS), lambda: source.choice(SYMBOLS) * source.randrange(1, 4),
        lambda: source.choice(EMOJI)]
    if special:
        kinds.append(lambda: source.choice(special))
    texts = []
    while len(texts) < n:
        text = "".join(source.choice(kinds)() + (" " if source.random() < 0.4 else "")
                       for _ in range(source.randrange(1, 16)))
        texts.append(text.replace("\0", ""))
    return texts
