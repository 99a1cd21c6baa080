"""The program that `fetch` starts for a page: HTML on standard input, Markdown on standard output.

A page comes from anywhere: it is parsed in a process of its own, with a limit on memory and time.
"""

from __future__ import annotations

import resource
import sys

MAX_MEMORY = 2 * 1024 * 1024 * 1024
MAX_SECONDS = 20


def main() -> None:
    """Convert the page; the arguments are its encoding and its address."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    # A page that ends it leaves no copy of its memory in the project.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        base_url=sys.argv[2],
        extract_metadata=False,
        skip_images=True,
        exclude_selectors=["script", "style", "svg", "iframe", "template"],
        preprocessing=PreprocessingOptions(enabled=True, remove_navigation=True),
    )
    text = sys.stdin.buffer.read().decode(sys.argv[1], "replace")
    sys.stdout.buffer.write((convert(text, options).content or "").encode(errors="replace"))


if __name__ == "__main__":
    main()
