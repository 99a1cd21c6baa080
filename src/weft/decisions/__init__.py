"""The decision graph of a project: goals, options, decisions and outcomes, folded from facts.

Pure.  It knows what was decided and why; where its facts are stored, and when they are read or
written, is for others.
"""

from weft.decisions.access import DecisionAccess
from weft.decisions.entry import (
    DecisionEntry,
    DecisionOption,
    LoggedEntry,
    accepted,
    checked,
    clean_scope,
    clean_why,
    decision_id,
    file_evidence,
    linked,
    log_entry,
    options_of,
    share_left,
)
from weft.decisions.facts import (
    DECISION_FACTS,
    CheckEvidence,
    CommitEvidence,
    DecisionAdded,
    DecisionChanged,
    DecisionEdge,
    DecisionEvidence,
    DecisionFact,
    DecisionLinked,
    DecisionNode,
    DecisionPurged,
    DecisionSuperseded,
    FileEvidence,
    TurnEvidence,
    decode_decision,
)
from weft.decisions.graph import (
    EDGE_KINDS,
    KINDS,
    OPEN,
    STATUSES,
    DecisionGraph,
    fold_decisions,
)
from weft.decisions.narrative import narrative_of
from weft.decisions.note import note_line
from weft.decisions.pulse import returning_options
from weft.decisions.relevance import nodes_for_path, relevant_nodes, search

__all__ = [
    "DECISION_FACTS",
    "EDGE_KINDS",
    "KINDS",
    "OPEN",
    "STATUSES",
    "CheckEvidence",
    "CommitEvidence",
    "DecisionAccess",
    "DecisionAdded",
    "DecisionChanged",
    "DecisionEdge",
    "DecisionEntry",
    "DecisionEvidence",
    "DecisionFact",
    "DecisionGraph",
    "DecisionLinked",
    "DecisionNode",
    "DecisionOption",
    "DecisionPurged",
    "DecisionSuperseded",
    "FileEvidence",
    "LoggedEntry",
    "TurnEvidence",
    "accepted",
    "checked",
    "clean_scope",
    "clean_why",
    "decision_id",
    "decode_decision",
    "file_evidence",
    "fold_decisions",
    "linked",
    "log_entry",
    "narrative_of",
    "nodes_for_path",
    "note_line",
    "options_of",
    "relevant_nodes",
    "returning_options",
    "search",
    "share_left",
]
