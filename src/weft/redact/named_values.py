"""Patterns of a secret value behind its name (`password: …`, `setToken("…")`), as JSON, TOML, YAML,
programs, URLs and pages write it.

Only patterns: `secret_shapes` says when they are tried.  Like its own, none takes more than linear
time.
"""

from __future__ import annotations

from collections.abc import Iterator

_EXAMPLES = (
    r"(?i:x{3}|your|example|placeholder"
    r"|changeme|pass\b|password\b|secret\b|token\b|none\b|null\b|true\b|false\b)"
)
NO_EXAMPLE = rf"(?![<\[{{$%*.]|{_EXAMPLES})"
"""What stands in documentation where a secret would."""
LETTER = r"(?:[^\s\"'\\`$]|\$(?![({]))"
"""A letter of a secret in quotes.  What a shell would run (`$(…)`) is none: masked, it would be
hidden from the user who is asked about it.
"""
HAS_DIGIT_AND_LETTER = r"(?=[^\s\"']{0,128}[0-9])(?=[^\s\"']{0,128}[A-Za-z])"
_HAS_SIGN = r"(?=[^\s\"']{0,128}[0-9!@#%^&*+?])"
_IS_MIXED = (
    r"(?=[^\s\"']{0,128}[0-9])(?=[^\s\"']{0,128}[a-z])(?=[^\s\"']{0,128}[A-Z])"
    r"(?![A-Z]?[a-z]+(?:[A-Z][a-z]+)*[0-9]*(?:\s|$))"
)
"""Digits, small and capital letters, and not as in a name of a program's."""

# The names without their first letter, which may be upper or lower case: a pattern that opens with
# a literal is found fast, and looking for the word first spares even that.
PASSWORDS = ("assword", "ASSWORD", "asswd", "ASSWD", "assphrase", "ASSPHRASE")
SECRETS = (
    *("ecret", "ECRET", "oken", "OKEN", "pi_key", "PI_KEY", "pi-key", "pikey", "piKey"),
    *("ccess_key", "CCESS_KEY", "ccessKey", "rivate_key", "RIVATE_KEY", "rivateKey"),
    *("redentials", "ecret_key", "ECRET_KEY", "ecretKey", "ecret_key_base"),
)

_QUOTE = r"\\{0,2}[\"']"
_SEPARATOR = r"[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}"
_TAGS = r"(?:[!&][^\s]{0,32}[ \t]{1,4}){0,2}"
"""Tags and anchors of YAML, which may stand before a value."""
_BLOCK = r":[ \t]{1,8}[|>][-+0-9]{0,2}[ \t]{0,8}\r?\n"
_BLOCK_SIGN = r"(?=[^\r\n]{0,128}[0-9!@#%^&*+?])"
_ONE_WORD = r"(?=[^\s]{1,2048}(?:\r?\n|$))"
_OPEN = r"[ \t]{0,8}(?:[!&][^\s]{0,32}[ \t]{0,4})?"
"""Behind the sign, where the value stands on the next line."""
_NEXT_LINE = r"\r?\n[ \t]{1,64}"
_PAIRED = (
    r"[\"']?[ \t]{0,4}(?:,[ \t]{0,4})?(?:\r?\n)?[ \t]{0,64}[\"']?(?:V|v)alue[\"']?[ \t]{0,4}[:=]"
)
"""Between a name and its value, where a list has both by name: `name: DB_PASSWORD`, `value: …`."""
_CALLED = rf"\([ \t]{{0,4}}{_QUOTE}"
_WRAPPED = r"[ \t]{0,8}[:=][ \t]{0,8}(?:[a-z]{1,16}\.)?Secret[A-Za-z]{0,8}"
"""Between a name and a type whose values are secret."""
_LISTED = rf"{_QUOTE}[ \t]{{0,4}},[ \t]{{0,4}}{_QUOTE}"
_ESCAPED_QUOTE = r"(?:%(?:25)?2[27]|\\{1,2}(?:u002|x2)[27]|&quot;|&#3[49];)"
_ESCAPED_SIGN = r"(?:%(?:25)?3[AaDd]|\\{1,2}(?:u003|x3)[AaDd]|&#(?:58|61);)"
_ESCAPED = (
    rf"(?:{_ESCAPED_QUOTE}[ \t]{{0,4}}(?:{_ESCAPED_SIGN}|[:=])|{_ESCAPED_SIGN})"
    rf"(?:%20| ){{0,2}}{_ESCAPED_QUOTE}?"
)
"""Behind a name in a URL, in a page, or in JSON whose signs are escaped."""

# To compile the patterns for values takes longer than all the rest of a small command, and prose
# and code are full of names.
HAS_VALUE = (
    # A quote, escaped twice, and eight blanks at most, then the sign.
    rf"(?:[\\\"' \t]{{0,12}}[:=>]|{_PAIRED})"
)
"""Behind a name with a value."""
HAS_RARE_VALUE = rf"(?:{_ESCAPED}|(?:{_QUOTE})?[ \t]{{0,8}}[:=]{_OPEN}\r?\n)"
"""The same, for the spellings of `rare_patterns`."""
HAS_CALL = rf"(?:{_CALLED}|{_WRAPPED}\(|{_LISTED})"
"""The same, for those of `call_patterns`."""
BEHIND_NAME = r"[\\\"' \t:=>,\r\nVv%&(]"
"""What all of the three begin with: words that go on, or end, are passed over by one search."""

_NO_PLACE = r"(?![a-z][a-z0-9+.-]{1,15}:/|[./~])"
"""No URL and no path: calls are handed those more often than secrets."""
_NO_NAME = r"(?![^\s\"']{0,64}(?i:pass|token|secret|key|user|name))"
_NO_STATEMENT = r"(?![\w.]{1,64}=[^=\s])"
_SETTER = r"(?<![A-Za-z])(?:[sS]et|[wW]ith|[uU]se|[cC]hange|[uU]pdate)[A-Za-z_]{1,32}?"
"""The start of a name of a call that is handed a value.  Others (`getSecret`) are handed a name."""


def value_patterns(word: str) -> Iterator[str]:
    """The patterns of a value behind this name, one of `PASSWORDS` and `SECRETS`; the group `keep`
    is what stands before the value.
    """
    is_password = word in PASSWORDS
    shortest, has = _demands(word)
    value, plain = _quoted_value(word), _plain_value(word)
    yield rf"(?P<keep>{word}(?:{_QUOTE})?{_SEPARATOR}{_QUOTE}(?:[\"']{{2}})?){value}(?={_QUOTE})"
    yield rf"(?P<keep>{word}[ \t]{{0,8}}:[ \t]{{1,8}}{_TAGS}){plain}"
    # Without quotes, as options, properties and connection strings have it.  Code that hands a
    # value on ends in a comma or a parenthesis, or has no digit.
    yield (
        rf"(?P<keep>{word}=){NO_EXAMPLE}{HAS_DIGIT_AND_LETTER}"
        rf"[A-Za-z0-9+/=_~!@%^*-]{{{shortest},512}}+(?=[\s;&\"'<]|$)"
    )
    # With blanks, as .ini files have it, where code looks the same: only what no name looks like.
    yield (
        rf"(?P<keep>{word}[ \t]{{1,4}}=[ \t]{{1,4}}){NO_EXAMPLE}{_IS_MIXED}"
        rf"[A-Za-z0-9+/=~!@%^*-]{{{shortest},512}}+(?=[ \t]*(?:\r?\n|$))"
    )
    # In a block of YAML, on lines of its own; of a password the words may stand apart.
    yield (
        rf"(?P<keep>{word}{_BLOCK}(?P<indent>[ \t]{{1,64}})){NO_EXAMPLE}"
        rf"{_BLOCK_SIGN if is_password else has}{'' if is_password else _ONE_WORD}"
        r"[^\r\n]{1,2048}+(?:\r?\n(?:(?P=indent)[^\r\n]{1,2048}|[ \t]{0,64}(?=\r?\n)))"
        r"{0,64}(?<=\S)"
    )
    yield rf"(?P<keep>{word}{_PAIRED}[ \t]{{0,4}}[\"']?){value}(?=[\"']|[ \t]*(?:\r?\n|$))"
    yield rf"(?P<keep>{word}>){NO_EXAMPLE}{has}[^\s<>]{{{shortest},256}}+(?=</)"


def rare_patterns(word: str) -> Iterator[str]:
    """The same, for a value on the next line, where formatters put what is long, and one in a text
    whose signs are escaped.
    """
    yield (
        rf"(?P<keep>{word}(?:{_QUOTE})?[ \t]{{0,8}}[:=]{_OPEN}{_NEXT_LINE}{_QUOTE})"
        rf"{_quoted_value(word)}(?={_QUOTE})"
    )
    yield (
        rf"(?P<keep>{word}[ \t]{{0,8}}:{_OPEN}{_NEXT_LINE}{_TAGS})"
        rf"{_NO_STATEMENT}{_plain_value(word)}"
    )
    yield f"(?P<keep>{word}{_ESCAPED}){escaped_value(_demands(word)[0])}"


def call_patterns(word: str) -> Iterator[str]:
    """The same, for a value that is handed to a call."""
    value = f"{_NO_PLACE}{_quoted_value(word)}(?={_QUOTE}"
    # The only pattern that opens with no literal: slow, but for texts with such a call.
    yield rf"(?P<keep>{_SETTER}{word}{_CALLED}){value})"
    yield rf"(?P<keep>{word}{_WRAPPED}{_CALLED}){value})"
    yield rf"(?P<keep>{word}{_LISTED}){_NO_NAME}{value}[ \t]{{0,4}}\))"
    if word in PASSWORDS:  # of a builder; `token("…")` is handed a name as often
        yield rf"(?P<keep>{word}(?<![A-Za-z0-9_][A-Za-z]{word}){_CALLED}){value})"


def _demands(word: str) -> tuple[int, str]:
    """How long a value of this name is at least, and what it has."""
    return (8, _HAS_SIGN) if word in PASSWORDS else (12, HAS_DIGIT_AND_LETTER)


def _quoted_value(word: str) -> str:
    shortest, has = _demands(word)
    return f"{NO_EXAMPLE}{has}{LETTER}{{{shortest},512}}+"


def _plain_value(word: str) -> str:
    """A value that goes to the end of its line."""
    shortest, has = _demands(word)
    return (
        rf"{NO_EXAMPLE}{has}[A-Za-z0-9+/=_.~!@#%^&*-]{{{shortest},512}}+"
        r"(?=[ \t]*(?:#[^\n]*)?(?:\r?\n|$))"
    )


_ESCAPE = (
    r"(?:%(?!(?:25)?(?:2[0267]|0[AaDd]|3[Bb]))[0-9A-Fa-f]{2}|\\{1,2}u(?!002[0267])[0-9A-Fa-f]{4})"
)
"""An escaped letter that ends no value: no blank, no quote, no `&`, no `;`."""
_ESCAPED_START = r"(?:%(?:25)?|\\{1,2}u00)(?:2[4AaEe]|3[Cc]|5[Bb]|7[Bb])"
"""The signs that no value starts with, as in `NO_EXAMPLE`."""


def escaped_value(shortest: int) -> str:
    """A value in a text whose signs are escaped."""
    no_example = rf"(?![<\[{{$*.&]|{_ESCAPED_START}|{_EXAMPLES})"
    return (
        rf"{no_example}(?=(?:[A-Za-z+/=_~.-]|{_ESCAPE}){{0,128}}+[0-9!@^*])"
        rf"(?:[A-Za-z0-9+/=_~!@^*.-]|{_ESCAPE}){{{shortest},512}}+"
    )


_NAMES = "|".join((*PASSWORDS, *SECRETS))
OPEN_NAME = rf"(?:{_NAMES})[\"']?[ \t]{{0,8}}(?:[:=]{_OPEN})?,?[ \t]{{0,4}}\r?\Z"
"""A line that ends with a name, whose value may stand on the next one."""
OPEN_BLOCK = rf"(?:{_NAMES}){_BLOCK}"
