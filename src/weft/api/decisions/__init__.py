"""`app.decisions`: the decision graph of a project, for programs."""

from weft.api.decisions.project import ProjectDecisions, WhyReport

__all__ = ["ProjectDecisions", "WhyReport"]
