"""Shapes of secrets, as patterns.

Shapes come in groups, each behind a gate: a literal, or a cheap pattern, that every secret of the
group contains.  Gates stand behind gates: a sign that many groups have in common is looked for
first.  Text that no gate lets through, which is nearly all text, is passed over at the speed of a
few memory searches.  No pattern takes more than linear time: patterns start with a
literal, check what stands *before* it afterwards (a start inside a word is refused at once), and
repeat possessively or boundedly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import msgspec

from weft.data_tables import read_table
from weft.redact.named_values import (
    BEHIND_NAME,
    HAS_CALL,
    HAS_DIGIT_AND_LETTER,
    HAS_RARE_VALUE,
    HAS_VALUE,
    LETTER,
    NO_EXAMPLE,
    OPEN_BLOCK,
    OPEN_NAME,
    PASSWORDS,
    SECRETS,
    call_patterns,
    escaped_value,
    rare_patterns,
    value_patterns,
)


class SecretShape(msgspec.Struct, frozen=True):
    """One kind of secret."""

    kind: str
    source: str
    """The pattern; its group `keep`, where there is one, is what stands before the secret and
    stays.
    """

    prefix: str = ""
    """Of a vendor's token: a pattern that starts a word, before what `source` says."""
    opening: str = ""
    """A pattern that every secret of this kind contains.

    Its longest literal is searched for first: that costs a tenth of what the whole pattern does.
    """

    def mask(self, text: str) -> str:
        """The text with every secret of this kind masked."""
        if _longest_literal(self.prefix or self.opening) not in text:
            return text
        # A token's pattern is put together here: there are more than a hundred, long ones, and most
        # runs never meet one.
        pattern = _compiled(_started(self.prefix) + self.source)
        kept = r"\g<keep>" if "keep" in pattern.groupindex else ""
        return pattern.sub(f"{kept}[redacted {self.kind}]", text)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    """Compiled when the first text gets through the gate: all of them at once would take as long as
    starting Weft.
    """
    return re.compile(source)


class ShapeGroup(msgspec.Struct, frozen=True):
    """Shapes behind one gate."""

    needles: tuple[str, ...]
    """One of them stands in every text that holds a secret of the group."""
    shapes: tuple[SecretShape, ...] = ()
    pattern: str = ""
    """What such a text also has, as a cheap pattern."""
    word: str = ""
    """A name with a value: its shapes are made when one gets through the gate (`_named`)."""
    spellings: Callable[[str], Iterator[str]] = value_patterns
    """Of a name: which patterns its shapes are made of."""
    groups: tuple[ShapeGroup, ...] = ()
    """Groups behind this gate, each with its own, in place of shapes."""

    def mask(self, text: str) -> str:
        """The text, which has a needle, with every secret of the group masked."""
        if self.pattern and not _compiled(self.pattern).search(text):
            return text
        if self.groups:
            return mask_groups(text, self.groups)
        for shape in self.shapes or _named(self.word, self.spellings):
            text = shape.mask(text)
        return text


def mask_groups(text: str, groups: Sequence[ShapeGroup]) -> str:
    """The text with every secret of these groups masked, in their order."""
    for group in groups:
        # Spelt out: a call for each group would cost more than the searches.
        for needle in group.needles:
            if needle in text:
                text = group.mask(text)
                break
    return text


def _token(kind: str, prefix: str, body: str) -> SecretShape:
    """A vendor's token: a prefix that starts a word, then the secret itself."""
    return SecretShape(kind, body, prefix)


def _started(prefix: str) -> str:
    """The prefix, where it starts a word.

    The end of a colour code, of a backslash escape and of a percent escape are letters and digits
    too, but no part of the word.
    """
    if not prefix:
        return ""
    # A lookbehind in Python has one fixed width, so every way to begin is an alternative of its
    # own. It stands behind the prefix because a pattern that opens with a literal is found fast.
    starts = (
        rf"(?:(?<![A-Za-z0-9_-]{prefix})|(?<=[\[;0-9]m{prefix})|(?<=\\[abfnrtv]{prefix})"
        rf"|(?<=\\u[0-9a-fA-F]{{4}}{prefix})|(?<=%[0-9A-F]{{2}}{prefix}))"
    )
    return prefix + starts


@cache
def _longest_literal(pattern: str) -> str:
    """The longest run of plain characters in a prefix, whose groups and classes may vary."""
    plain = re.split(r"\(\?:[^)]*\)|\[[^\]]*\](?:\{[0-9]+\})?|.\{[0-9]+\}", pattern)
    return max((part.replace("\\.", ".") for part in plain), key=len)


def _after(kind: str, pattern: str) -> SecretShape:
    return SecretShape(kind, pattern)


def _behind(*words: str) -> str:
    """Stands right after one of the words."""
    # One lookbehind for each word: their widths differ.
    return "(?:" + "|".join(f"(?<={word})" for word in words) + ")"


_END = r"(?![A-Za-z0-9_-])"
_GATES: dict[str, str] = {
    "_": r"_[A-Za-z0-9+/]{16}",
    "-": r"-[A-Za-z0-9_-]{10}(?<!-{10})",
    ".": r"\.[A-Za-z0-9_-]{11}",
}
"""Cheap patterns for the vendors' tokens that have a sign before their secret part."""

_VENDOR_SIGNS: dict[str, str] = {
    # The numbers are what the shortest tokens have behind the sign: Stripe's and Alibaba's.
    "_": r"_[A-Za-z0-9+/=_.-]{21}",
    "A": r"A[A-Za-z0-9+/=_%-]{17}",
    "G": "",
    "Z": "",
    "~": "",
    "/": "",
}
"""What the gates of many vendors' tokens have in common, and a cheap pattern for all those tokens.

One character is found ten times faster than a longer needle.
"""


def _vendor_groups() -> tuple[ShapeGroup, ...]:
    """The shapes of `token_shapes.tsv`; those with the same gate are one group."""
    shapes: dict[str, list[SecretShape]] = {}
    for kind, gate, prefix, body, _ in read_table(__file__, "token_shapes.tsv", 5):
        shapes.setdefault(gate, []).append(_token(kind, prefix, body))
    return _behind_signs(
        [
            ShapeGroup(tuple(gate.split(" ")), tuple(behind), _GATES.get(gate, ""))
            for gate, behind in shapes.items()
        ],
        _VENDOR_SIGNS,
    )


def _behind_signs(groups: Sequence[ShapeGroup], signs: Mapping[str, str]) -> tuple[ShapeGroup, ...]:
    """The groups, with those that have a sign in common behind one gate, where the first stood."""
    behind: dict[str, list[ShapeGroup]] = {}
    for group in groups:
        first, *others = group.needles
        # The first alone decides nearly always, and the start of every run waits for this.
        shared = [sign for sign in signs if sign in first]
        if others:
            shared = [sign for sign in shared if all(sign in needle for needle in others)]
        behind.setdefault(shared[0] if shared else first, []).append(group)
    return tuple(
        ShapeGroup((sign,), pattern=signs[sign], groups=tuple(each)) if sign in signs else each[0]
        for sign, each in behind.items()
    )


_PARAMETERS = (
    *(
        "token",
        "access_token",
        "refresh_token",
        "auth_token",
        "id_token",
        "password",
        "passwd",
        "secret",
        "client_secret",
    ),
    *("api_key", "apikey", "key", "sig", "signature", "X-Amz-Signature", "X-Amz-Security-Token"),
)
_VARIABLES = (
    *("KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS"),
    # With the sign before it: `PWD` alone is the folder.
    *("_PASS", "_PWD", "_PAT", "_DSN", "_AUTH", "JWT"),
)
_AFTER_EQUALS = (
    _after(
        "azure key",
        rf"(?P<keep>={_behind('AccountKey=', 'AccessKey=')})"
        r"(?=[A-Za-z+/]*+[0-9])[A-Za-z0-9+/]{16,128}+={0,2}",
    ),
    _after(
        "npm token",  # of an .npmrc
        rf"(?P<keep>={_behind('_authToken=', '_auth=', '_password=')}[\"']?)"
        rf"{NO_EXAMPLE}[A-Za-z0-9+/=_.-]{{8,}}+",
    ),
    _after(
        "parameter",  # of a URL
        rf"(?P<keep>={_behind(*(f'[?&]{name}=' for name in _PARAMETERS))})"
        rf"{NO_EXAMPLE}(?=[^\s&'\"<>#]{{0,64}}[0-9])[^\s&'\"<>#]{{8,}}+",
    ),
    _after(
        "variable",  # a line of an environment file, or of what `env` prints
        rf"(?P<keep>={_behind(*(f'{name}=' for name in _VARIABLES))}[\"']?)"
        rf"{NO_EXAMPLE}(?=[^\s\"']{{0,64}}[0-9])[A-Za-z0-9+/=_.:~!@#^-]{{10,}}+(?=[\"']?(?:\s|$))",
    ),
)
_HEADER = r"[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"


@cache
def _named(word: str, spellings: Callable[[str], Iterator[str]]) -> tuple[SecretShape, ...]:
    """A value behind this name, in these spellings."""
    kind = "password" if word in PASSWORDS else "secret"
    return tuple(SecretShape(kind, source, opening=word) for source in spellings(word))


_NAME_SIGNS = dict.fromkeys(("ass", "ASS", "key", "KEY", "Key"), "")
"""What several names have in common."""
_CAPITALS = dict.fromkeys(("S", "E", "K"), "")
"""What the signs and names in capitals have in common; many texts have none of these letters."""


def _spelt(word: str) -> tuple[ShapeGroup, ...]:
    """The spellings of a value behind this name, the rare ones apart: few texts have any."""
    return tuple(
        ShapeGroup((word,), pattern=f"{word}{behind}", word=word, spellings=spellings)
        for behind, spellings in (
            (HAS_VALUE, value_patterns),
            (HAS_RARE_VALUE, rare_patterns),
            (HAS_CALL, call_patterns),
        )
    )


def _named_groups() -> ShapeGroup:
    """One group for each name: most texts hold none of them, and are passed over at once."""
    names = [
        ShapeGroup((each,), pattern=f"{each}{BEHIND_NAME}", groups=_spelt(each))
        for each in (*PASSWORDS, *SECRETS)
    ]
    signed = _behind_signs(_behind_signs(names, _NAME_SIGNS), _CAPITALS)
    # One of these signs stands behind every name (`HAS_VALUE` and the others).
    return ShapeGroup((":", "=", ">", "(", ",", "%", "\\", "&"), groups=signed)


_KEY_HEADER = _after(
    "key header",
    rf"(?P<keep>-(?i:api-key){_HEADER}){NO_EXAMPLE}"
    r"(?=[A-Za-z._~+/=-]*+[0-9])[A-Za-z0-9._~+/=-]{16,}+",
)
_COOKIE_LETTER = r"(?:[^\r\n\"'`$]|\$(?![({]))"
_NETRC_WORDS = (
    r"(?:[ \t]{1,8}(?:login|account)[ \t]{1,8}[^\s]{1,128}){1,2}[ \t]{1,8}password[ \t]{1,8}"
)

_CURL_USER = r" (?:-[A-Za-z]{0,8}u|--user)[ =]{0,2}[\"']?[^\s:\"'$]{1,64}:"
_COOKIE_START = r"ookie[\"'\]]{0,2}[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
_JAR_WORDS = r"(?:TRUE|FALSE)\t/[^\s]{0,256}\t(?:TRUE|FALSE)\t[0-9]{1,20}\t[^\t\r\n]{1,256}\t"
_OPTIONS = ("--token ", "api-key ", "access-key ", "secret-key ", "--secret ", "auth-token ")
_OPTION_GROUP = ShapeGroup(
    _OPTIONS,
    (
        _after(
            "secret",
            rf"(?P<keep> {_behind(*_OPTIONS)}[\"']?)(?![/~.]){NO_EXAMPLE}"
            rf"{HAS_DIGIT_AND_LETTER}{LETTER}{{12,512}}+(?=[\"']?(?:\s|$))",
        ),
    ),
)
_LOGIN_GROUP = ShapeGroup(
    ("redis-cli ", "docker login ", "podman login ", " pass:"),
    (
        _after(
            "password",
            r"(?P<keep>(?:redis-cli(?:(?! -a )[^\n]){0,200}+ -a "
            r"|(?:docker|podman) login(?:(?! -p )[^\n]){0,200}+ -p "
            r"|-pass(?:in|out)? pass:)[\"']?)"
            rf"{NO_EXAMPLE}{LETTER}{{6,256}}+",
        ),
    ),
)
_USER_LETTER = r"[^\s/:@'\"<>]"
_USER_GROUP = ShapeGroup(
    ("@",),
    (
        _after(
            "token",  # in the place of the user of a URL
            r"(?P<keep>://(?:(?<=http://)|(?<=https://)))"
            rf"{NO_EXAMPLE}(?={_USER_LETTER}{{0,128}}[0-9])(?={_USER_LETTER}{{0,128}}[A-Za-z])"
            r"[A-Za-z0-9_~+=%-]{20,256}+(?=(?::(?:x-oauth-basic)?)?@[A-Za-z0-9\[])",
        ),
        _after(
            "password",  # of a URL
            rf"(?P<keep>://{_USER_LETTER}{{0,64}}:){NO_EXAMPLE}{_USER_LETTER}{{3,256}}(?=@[A-Za-z0-9\[])",
        ),
    ),
)
_ESCAPED_VARIABLE = _after(
    "variable",  # or a parameter, whose equals sign is escaped
    r"(?P<keep>(?:%|\\u00)3[Dd]"
    + _behind(
        *(
            f"{name}{sign}"
            for name in (*_VARIABLES, *(f"[?&6Ff]{parameter}" for parameter in _PARAMETERS))
            for sign in ("%3[Dd]", r"\\u003[Dd]")
        )
    )
    + f"){escaped_value(10)}",
)
_DATABASE_PORTS = ("5432", "5433", "6432", "6543", "*")
_OTHER_GROUPS: tuple[ShapeGroup, ...] = (
    # A gate may let too much through, never too little: every shape behind it contains what it asks
    # for. A new shape needs a look at its gate.
    ShapeGroup(("=",), _AFTER_EQUALS, r"=[\"']?[^\s\"']{8}"),
    # AKIA: keys that last; ASIA: temporary ones.
    ShapeGroup(
        # Without the first letter, which may be upper or lower case: a literal is searched for many
        # times faster than a pattern that ignores case.
        ("ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey"),
        (
            _after(
                "aws secret",
                rf"(?P<keep>(?i:ecret_?access_?key){_HEADER})[A-Za-z0-9/+]{{40}}(?![A-Za-z0-9/+])",
            ),
        ),
    ),
    ShapeGroup(
        ("hooks.slack.com/",),
        (
            _after(
                "slack webhook", r"(?P<keep>hooks\.slack\.com/[a-z]{1,12}/)[A-Za-z0-9_/+-]{20,}+"
            ),
        ),
    ),
    ShapeGroup(("K",), (_token("twilio key", "SK", rf"[0-9a-f]{{32}}{_END}"),), r"SK[0-9a-f]{32}"),
    ShapeGroup(
        (":AA",),
        # The bot's number stands before the colon and is public.
        (_after("telegram token", rf"(?P<keep>:)AA(?<=[0-9]{{8}}:AA)[A-Za-z0-9_-]{{33}}{_END}"),),
    ),
    ShapeGroup(
        ("uthorization", "UTHORIZATION"),
        (
            _after(
                "authorization",
                rf"(?P<keep>(?i:uthorization){_HEADER}(?i:bearer|basic|token|apikey)[ \t]{{1,4}})"
                rf"{NO_EXAMPLE}[A-Za-z0-9._~+/=:-]{{8,}}+",
            ),
        ),
    ),
    ShapeGroup(("-api-key",), (_KEY_HEADER,)),
    ShapeGroup(("-Api-Key", "-API-Key", "-API-KEY"), (_KEY_HEADER,)),
    ShapeGroup(
        ("curl ",),
        (
            _after(
                "password",
                # The line is looked through for a bounded piece: a text of nothing but `curl` must
                # not cost its square.
                rf"(?P<keep>curl(?:(?!{_CURL_USER})[^\n]){{0,300}}+{_CURL_USER})"
                rf"{NO_EXAMPLE}[^\s\"'`$/]{{3,256}}(?=[\"']?(?:\s|$))",
            ),
        ),
    ),
    ShapeGroup(
        ("mysql", "mariadb"),
        (
            _after(
                "password",
                r"(?P<keep>(?:mysql|mariadb)(?:(?! -p[^\s]| --password=)[^\n]){0,300}+"
                r" (?:-p|--password=)(?P<quote>[\"']?))"
                # Not the ports of a container.
                rf"(?![0-9.]*:[0-9]){NO_EXAMPLE}"
                # Of what a mask cut, the rest stays: masked again it would be another text.
                r"(?:(?<=[\"'])[^\n\"'`$]{1,256}+(?=(?P=quote))"
                r"|(?![^\s\"'`$]{0,256}\[redacted )[^\s\"'`$]{3,256}+(?=\s|$))",
            ),
        ),
        r" (?:-p[^\s]|--password=)",
    ),
    ShapeGroup(
        ("--password",),
        (
            _after(
                "password",
                rf"(?P<keep>--password[= ][\"']?){NO_EXAMPLE}(?=[^\s\"']{{0,128}}[0-9!@#%^&*+?])"
                rf"{LETTER}{{6,256}}+(?=[\"']?(?:\s|$))",
            ),
        ),
    ),
    ShapeGroup(
        # The ports of PostgreSQL and of its poolers: with any number this would be what compilers
        # and `grep -n` print.
        tuple(f":{port}:" for port in _DATABASE_PORTS),
        (
            _after(
                "password",  # of a .pgpass
                rf"(?P<keep>:(?:{'|'.join(map(re.escape, _DATABASE_PORTS))}):"
                r"(?:(?<=[A-Za-z0-9*_.\]-]:[0-9]{4}:)|(?<=[A-Za-z0-9*_.\]-]:\*:))"
                r"(?![0-9]+:)(?:[^:\s]{1,63}:){2})"
                rf"{NO_EXAMPLE}[^\s\"'`$]{{3,256}}+(?=[ \t]*(?:\r?\n|$))",
            ),
        ),
    ),
    ShapeGroup(
        ("sshpass -p", "requirepass ", "DENTIFIED BY ", "dentified by "),
        (
            _after(
                "password",
                r"(?P<keep>(?:sshpass -p[ ]?|requirepass |(?i:dentified by) )[\"']?)"
                rf"{NO_EXAMPLE}{LETTER}{{6,256}}+",
            ),
        ),
    ),
    ShapeGroup(
        ("password ", "password\t"),
        (
            SecretShape(
                "password",  # of a .netrc
                rf"(?P<keep>machine[ \t]{{1,8}}[^\s]{{1,256}}{_NETRC_WORDS}){NO_EXAMPLE}"
                r"[^\s]{1,256}",
                opening="machine",
            ),
            SecretShape(
                "password",
                rf"(?P<keep>default{_NETRC_WORDS}){NO_EXAMPLE}[^\s]{{1,256}}",
                opening="default",
            ),
            _after(
                "password",  # on a line of its own
                r"(?P<keep>password[ \t]{1,8})(?:(?<![^\s]password[ ])|(?<![^\s]password\t))"
                rf"{NO_EXAMPLE}(?=[^\s]{{0,128}}[0-9!@#%^&*])[^\s]{{6,256}}(?=[ \t]*(?:\r?\n|$))",
            ),
        ),
    ),
    ShapeGroup(
        ('"auth"',),
        (
            _after(
                "authorization",  # of a registry, in the settings of Docker
                r"(?P<keep>\"auth\"[ \t]{0,4}:[ \t]{0,4}\")[A-Za-z0-9+/]{8,1024}+={0,2}(?=\")",
            ),
        ),
    ),
    ShapeGroup(
        ("ookie",),
        (
            _after(
                "cookie",
                rf"(?P<keep>{_COOKIE_START}[\w.-]{{1,64}}=)"
                rf"{NO_EXAMPLE}(?=[^\r\n\"';]{{0,256}}[0-9]){_COOKIE_LETTER}{{8,4096}}+",
            ),
            _after(
                "cookie",  # several, which only a client sends; a server's has words behind it
                rf"(?P<keep>(?<![Ss]et-[Cc]){_COOKIE_START})(?=[\w.-]{{1,64}}=[^\r\n\"';]{{0,256}};)"
                rf"{NO_EXAMPLE}(?=[^\r\n\"']{{0,2048}}[0-9]){_COOKIE_LETTER}{{8,4096}}+",
            ),
        ),
    ),
    ShapeGroup(
        ("E\t/",),  # of `TRUE` and `FALSE`; numbered lines have a tab each
        # Of a jar.
        (_after("cookie", rf"(?P<keep>{_JAR_WORDS})[^\t\r\n]{{4,4096}}+"),),
    ),
    ShapeGroup(("--",), groups=(_OPTION_GROUP,)),
    ShapeGroup((" -",), groups=(_LOGIN_GROUP,)),
    ShapeGroup(
        ("ENV ", "setx "),
        (
            _after(
                "variable",
                rf"(?P<keep>(?:ENV|setx)[ \t]{{1,4}}[A-Za-z0-9_]{{1,64}}[ \t]"
                rf"{_behind(*(f'{name}[ ]' for name in _VARIABLES))}[\"']?){NO_EXAMPLE}(?!/)"
                r"(?=[^\s\"']{0,64}[0-9])[A-Za-z0-9+/=_.:~!@#^-]{10,}+(?=[\"']?(?:\s|$))",
            ),
        ),
    ),
    ShapeGroup(
        (";",),
        (
            _after(
                "password",  # of a connection string
                rf"(?P<keep>(?i:pwd)={_behind('[;]...=', '; ...=')}){NO_EXAMPLE}"
                r"[^\s;\"'`$]{3,256}+",
            ),
        ),
        r"; ?(?:P|p)(?:W|w)(?:D|d)=",
    ),
    ShapeGroup(("://",), groups=(_USER_GROUP,)),
    # One letter, and a look at what follows: three times as fast as a search for the whole sign.
    ShapeGroup(("%",), (_ESCAPED_VARIABLE,), r"%(?=3[Dd])"),
    ShapeGroup(("\\",), (_ESCAPED_VARIABLE,), r"\\(?=u003[Dd])"),
)
"""Shapes that are more than a vendor's prefix and a body."""
_OTHER_SIGNS = dict.fromkeys(("/", '"', "A"), "")


def _other_groups() -> Iterator[ShapeGroup]:
    """The other groups in their order, those with a sign that is found fast behind it."""
    for group in _OTHER_GROUPS:
        yield from _behind_signs([group], _OTHER_SIGNS)


@cache
def shape_groups() -> tuple[ShapeGroup, ...]:
    """Every group, in the order in which they are masked: a vendor's token says more of what it was
    than the parameter or the variable that it stands in.
    """
    return (*_vendor_groups(), *map(_behind_character, _other_groups()), _named_groups())


def _behind_character(group: ShapeGroup) -> ShapeGroup:
    """The group behind a character that all its needles have: it is found, or missed, ten times
    faster than they are.
    """
    shared = [sign for sign in ":-" if all(sign in needle for needle in group.needles)]
    if not shared or group.needles == (shared[0],):
        return group
    return ShapeGroup((shared[0],), groups=(group,))


KEY_BEGINS = "-----BEGIN "
_KEY = (
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    # Also as a string in code or JSON: quotes, commas and escaped line ends between the lines.
    r"(?P<body>(?:[A-Za-z0-9+/=\s\\\"',:.]|-(?!-)){0,20000}+)"
    r"(?:-----END [A-Z0-9 ]{1,80}-----)?"
)
"""A private key in its armour, with or without its end."""
_KEY_BODY = r"[A-Za-z0-9+/]{32}"
"""What tells a key from a text that only speaks of one."""
_KEY_END = r"-----END [A-Z0-9 ]{1,80}-----"


def mask_keys(text: str) -> str:
    """The text with every private key masked."""

    def masked(match: re.Match[str]) -> str:
        # Documentation and code name the armour without a key in it.
        is_key = _compiled(_KEY_BODY).search(match["body"])
        return "[redacted private key]" if is_key else match[0]

    return _compiled(_KEY).sub(masked, text)


def key_end(text: str, begin: int) -> int:
    """Where the private key that begins there has its end, -1 when that has not come."""
    end = _compiled(_KEY_END).search(text, begin)
    return -1 if end is None else end.end()


def open_block(text: str) -> int:
    """Where the name of a block of YAML stands that may hold a secret and has not ended, or a name
    whose value may stand on the line that has not ended; -1 where there is none.
    """
    end = text.rfind("\n")
    start = text.rfind("\n", 0, max(end, 0)) + 1
    if end >= 0 and _compiled(OPEN_NAME).search(text, start, end):
        return start
    # The sign of a block stands at the end of its line.
    if "|" not in text and ">" not in text:
        return -1
    found = list(_compiled(OPEN_BLOCK).finditer(text))
    if not found:
        return -1
    # A line that may still grow says nothing yet; blank ones belong to the block.
    lines = [line for line in text[found[-1].end() :].split("\n")[:-1] if line.strip()]
    depths = [len(line) - len(line.lstrip()) for line in lines]
    has_ended = bool(depths) and min(depths) < max(depths[0], 1)
    return -1 if has_ended else found[-1].start()
