"""`python -m weft` is the command line."""

from weft.cli import run

if __name__ == "__main__":
    run()
