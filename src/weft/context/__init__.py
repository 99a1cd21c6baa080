"""What the model sees: messages built from a line of the tree, the prefix, and estimates of their size.

Pure functions of what they are given.  Knows no provider: vendors' words are theirs.
"""

from weft.context.build import (
    CUT_OFF,
    GO_ON,
    NO_RESULT,
    Composed,
    Composer,
    Entry,
    Target,
    build,
    render,
)
from weft.context.estimate import estimate, estimate_text
from weft.context.prefix import Prefix, PrefixTool, RenderedPrefix, load_prefix, render_prefix

__all__ = [
    "CUT_OFF",
    "GO_ON",
    "NO_RESULT",
    "Composed",
    "Composer",
    "Entry",
    "Prefix",
    "PrefixTool",
    "RenderedPrefix",
    "Target",
    "build",
    "estimate",
    "estimate_text",
    "load_prefix",
    "render",
    "render_prefix",
]
