"""Redaction: secrets out of text.

Pure.  Knows shapes of secrets and the values it is given; where the text comes from and goes to is
decided above.
"""

from weft.redact.redactor import LiveRedactor, Redactor, redact

__all__ = ["LiveRedactor", "Redactor", "redact"]
