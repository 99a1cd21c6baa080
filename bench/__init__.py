"""Benchmarks: what each part costs, beside a bare floor measured in the same run.

A module `bench_<name>.py` has `run() -> list[Row]`.  `python -m bench` runs all of them, or those
that are named.
"""

from bench.table import Row

__all__ = ["Row"]
