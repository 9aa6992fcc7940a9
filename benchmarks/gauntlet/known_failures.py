"""Models that fall short of a goal, and why: the audit prints them, and fails when one of them has been mended.

Only goals that are missed beyond chance stand here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """goals: those that are missed at some ε."""

    goals: frozenset[str]
    reason: str


KNOWN: dict[str, KnownFailure] = {}
