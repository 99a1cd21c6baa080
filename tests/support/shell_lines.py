"""Random command lines: from a grammar of bash, and mutations of real ones."""

from __future__ import annotations

from random import Random

NAMES = ("ls", "cat", "git", "echo", "x", "head", "rm", "find", "sed", "bash", "env", "xargs")
LITERAL = (
    *("a", "b c", "x=1", "'q r'", '"d e"', "\\ ", "\\\\", "\\'", '\\"', "$'t\\tu'", "$'\\x41'"),
    *("$'\\101b'", "$", '"$"', "{", "}", "{}", "a~", "[", "]", "a#b", "#", "!", "-n", "--", "-x=y"),
    *("@{u}", "HEAD~1", "%H", "a:b", ",", ".", "..", "/", "/x", "^", "é", "\\\n", "\t", " ", "''"),
    *('""', '"a\\$b"', '"a\\\\b"', '"a\\nb"', "'$x'", "'`'", '"\'"', "'\"'", "1", "2", "-c", "-l"),
    *("time", "if", "then", "fi", "do", "done", "for", "in", "while", "{ ", "; }"),
)
DYNAMIC = (
    *("`", "`id`", "$x", "${x}", "$(id)", "{a,b}", "{1..3}", "~", "~/x", "=~", "*", "?", "[a]"),
    *("case", "esac", "function", "[[", "]]", "coproc", "$((1+2))", "((", "))", "<(ls)", "a=(b)"),
)
OPERATORS = (
    *(" ; ", " | ", " && ", " || ", " & ", "\n", ";", " > f ", " 2>&1 ", " < f ", " >> f "),
    *(" 2> f ", "&>f ", "(", ")", " <<< ", " |& ", " <<E\nx\nE\n", " <<'E'\n$x\nE\n", ";;"),
)


def grammar_line(random: Random) -> str:
    """Words, expansions and operators in any order: much of it is no bash."""
    pieces = [random.choice(NAMES)]
    for _ in range(random.randint(0, 8)):
        pieces.append(random.choice(OPERATORS) if random.random() < 0.3 else " ")
        if random.random() < 0.25:
            pieces.pop()
        source = LITERAL if random.random() < 0.75 else DYNAMIC
        pieces.append(random.choice(source) if random.random() < 0.75 else random.choice(NAMES))
    return "".join(pieces)


def literal_line(random: Random) -> str:
    """Mostly literal words, with quotes of every kind, in a few plain commands."""
    pieces = [random.choice(NAMES[:6])]
    for _ in range(random.randint(1, 8)):
        pieces.append(" " if random.random() < 0.6 else "")
        pieces.append(random.choice(LITERAL))
        if random.random() < 0.15:
            pieces.append(random.choice((" ; ", " | ", " && ", "\n", " > f ", " 2>&1 ")))
            pieces.append(random.choice(NAMES[:6]))
    return "".join(pieces)


def mutated_line(random: Random, line: str) -> str:
    """A line with a few characters taken out, doubled or put in."""
    letters = list(line)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(letters) + 1)
        what = random.random()
        if what < 0.3 and letters:
            del letters[place - 1]
        elif what < 0.5:
            letters[place:place] = letters[place : place + random.randint(1, 8)]
        else:
            letters.insert(place, random.choice("'\"`$(){}[]<>|&;\\\n\t #*?~!=-e\x00\u200b\ud800"))
    return "".join(letters)
