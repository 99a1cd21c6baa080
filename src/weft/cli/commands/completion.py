"""`weft completion`: scripts for shells, made from the tables of options."""

from __future__ import annotations

from weft.cli.command_spec import CommandOption, CommandSpec
from weft.cli.exit_codes import OK
from weft.cli.options import VERBS, options_of, run_options
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import write
from weft.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
_FILES = ("FILE", "SCHEMA")
_FOLDERS = ("DIR",)


def run(arguments: ParsedArguments) -> int:
    """Print the script."""
    if len(arguments.words) != 1 or arguments.words[0] not in SHELLS:
        raise UsageError(f"`weft completion` needs one of {', '.join(SHELLS)}")
    write({"bash": bash, "zsh": zsh, "fish": fish}[arguments.words[0]]())
    return OK


def _names(options: tuple[CommandOption, ...]) -> str:
    return " ".join(name for option in options for name in option.names)


def _paths() -> list[tuple[str, CommandSpec]]:
    """Every command by its words: `session`, `session list`."""
    found: list[tuple[str, CommandSpec]] = []
    for verb in VERBS:
        found.append((verb.name, verb))
        found += [(f"{verb.name} {each.name}", each) for each in verb.verbs]
    return found


def _values() -> list[tuple[str, str]]:
    """Options with known values as patterns of `COMMAND OPTION`, and the values.

    One name may have other values behind another command: `-f` of each export.
    """
    found: list[tuple[str, str]] = []
    for path, options in (("", run_options()), *((path, options_of(v)) for path, v in _paths())):
        for option in options:
            if option.choices:
                patterns = "|".join(f'"{path} {name}"' for name in option.names)
                found.append((patterns, " ".join(option.choices)))
    return found


def bash() -> str:
    """For bash."""
    values = "\n".join(
        f'        {patterns}) COMPREPLY=($(compgen -W "{choices}" -- "$word")); return ;;'
        for patterns, choices in _values()
    )
    files = "|".join(_taking(_FILES))
    folders = "|".join(_taking(_FOLDERS))
    cases = "\n".join(f'        "{path}") words="{_after(verb)}" ;;' for path, verb in _paths())
    known = "|".join(f'"{path}"' for path, _ in _paths())
    return f"""\
# Completion of weft for bash: `source <(weft completion bash)`.
_weft() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path="" words=""
    local each
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "${{path:+$path }}$each" in
            {known}) path="${{path:+$path }}$each" ;;
        esac
    done
    case "$path $before" in
{values}
    esac
    case $before in
        {files}) COMPREPLY=($(compgen -f -- "$word")); return ;;
        {folders}) COMPREPLY=($(compgen -d -- "$word")); return ;;
    esac
    case $path in
        "") words="{_after(None)}" ;;
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _weft weft
"""


def _after(verb: CommandSpec | None) -> str:
    if verb is None:
        return f"{' '.join(each.name for each in VERBS)} {_names(run_options())}"
    return " ".join([*(each.name for each in verb.verbs), _names(options_of(verb))]).strip()


def _taking(metavars: tuple[str, ...]) -> list[str]:
    options = [*run_options(), *(option for _, verb in _paths() for option in verb.options)]
    return sorted(
        {name for option in options if option.metavar in metavars for name in option.names}
    )


def zsh() -> str:
    """For zsh: the script of bash, through its own emulation."""
    script = bash().replace(
        "for bash: `source <(weft completion bash)`", "for zsh: `source <(weft completion zsh)`"
    )
    return script.replace("_weft() {", "autoload -U +X bashcompinit && bashcompinit\n_weft() {", 1)


def fish() -> str:
    """For fish."""
    lines = [
        "# Completion of weft for fish: `weft completion fish | source`.",
        "complete -c weft -f",
    ]
    verbs = " ".join(verb.name for verb in VERBS)
    none = f"not __fish_seen_subcommand_from {verbs}"
    for verb in VERBS:
        lines.append(f"complete -c weft -n '{none}' -a {verb.name} -d {_quoted(verb.about)}")
        inside = f"__fish_seen_subcommand_from {verb.name}"
        lines += [
            f"complete -c weft -n '{inside}' -a {each.name} -d {_quoted(each.about)}"
            for each in verb.verbs
        ]
        if not verb.is_run:
            options = dict.fromkeys(
                (*options_of(verb), *(o for v in verb.verbs for o in v.options))
            )
            lines += [_fish_option(option, inside) for option in options]
    lines += [_fish_option(option, none) for option in run_options()]
    return "\n".join(lines) + "\n"


def _fish_option(option: CommandOption, condition: str) -> str:
    parts = [f"complete -c weft -n '{condition}'"]
    parts += [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names]
    if option.choices:
        parts.append(f"-x -a {_quoted(' '.join(option.choices))}")
    elif option.metavar in (*_FILES, *_FOLDERS):
        parts.append("-r -F")
    elif option.takes_value and option.kind != "maybe":
        parts.append("-x")
    return " ".join([*parts, f"-d {_quoted(option.about)}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
