"""The composition root: settings in, a running application out.

Reads the environment and the working directory, and picks a store, a workspace and providers, so
that no part below has to.
"""

from weft.app.app import App, open_app
from weft.app.single_run import run

__all__ = ["App", "open_app", "run"]
