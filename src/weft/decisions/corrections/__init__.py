"""Corrections of a user, found in what they answer to a proposal."""

from weft.decisions.corrections.detector import UserCorrection, find_correction

__all__ = ["UserCorrection", "find_correction"]
