"""Lets pytest show the values where a claim of a contract does not hold.

Imported before the contracts, for afterwards it is too late.
"""

from __future__ import annotations

import sys

if "pytest" in sys.modules:
    sys.modules["pytest"].register_assert_rewrite(
        "weft.testing.model_contract", "weft.testing.store_contract"
    )
