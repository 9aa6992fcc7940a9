# SPDX-License-Identifier: Apache-2.0
"""Pieces of a formula's text, outside of brackets and quotes."""

from reticent._errors import InvalidFormula

OPEN, CLOSE, QUOTES = "([", ")]", "\"'`"
_SHOWN = 80
"""Characters of a text that an error repeats."""


def shortened(text: str) -> str:
    """A text as an error repeats it."""
    text = text.strip()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def walk(text: str) -> list[tuple[str, int]]:
    """Each character with the depth of brackets around it; quoted text is one level deeper."""
    found: list[tuple[str, int]] = []
    depth, quote = 0, ""
    for character in text:
        inside = depth + bool(quote)
        if quote:
            quote = "" if character == quote else quote
            inside = depth + 1
        elif character in QUOTES:
            quote, inside = character, depth + 1
        elif character in OPEN:
            depth += 1
            inside = depth
        elif character in CLOSE:
            inside, depth = depth, depth - 1
        found.append((character, inside))
    if depth != 0 or quote:
        raise InvalidFormula("Close every bracket and quote of the formula.")
    return found


def balanced(text: str) -> bool:
    """Whether a text closes every bracket and quote that it opens."""
    try:
        return bool(walk(text))
    except InvalidFormula:
        return False


def quoted_split(text: str, separator: str) -> list[str]:
    """At a character outside of brackets and quotes."""
    pieces = [""]
    for character, depth in walk(text):
        if character == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces]
