"""The program that `read` starts for a PDF: the file on standard input, its text on standard
output, a form feed behind each page.  The first line is how many pages there are.

A PDF is a program in all but name, and comes from anywhere: it is parsed in a process of its own,
in pure Python, with a limit on memory and time.
"""

from __future__ import annotations

import io
import resource
import sys

MAX_MEMORY = 1024 * 1024 * 1024
MAX_SECONDS = 60


def main() -> None:
    """Print the text of the pages that the arguments name: the first and the last."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    first, last = int(sys.argv[1]), int(sys.argv[2])
    try:
        reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        pages = reader.pages
        count = len(pages)
        # One that opens without a password may still be encrypted, and vendors refuse it.
        sys.stdout.write(f"{count} locked\n" if reader.is_encrypted else f"{count}\n")
        for number in range(first, min(last, count) + 1):
            sys.stdout.write(pages[number - 1].extract_text() + "\f")
    # Whatever a hostile file makes of the parser is the file's fault, and said in one line.
    except (PyPdfError, Exception) as error:
        sys.stdout.write(f"\nbroken: {type(error).__name__}: {str(error)[:200]}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
