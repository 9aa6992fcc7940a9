# SPDX-License-Identifier: Apache-2.0
"""Shows where in a text the server's sentence about it points."""

import re
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"position (\d+) of the (formula|where condition)")
_FIELDS = {"formula": ("formula", "main"), "where condition": ("where",)}
_INDENT = "    "


def pointed(sentence: str, query: Mapping[str, Any]) -> str:
    """The sentence, with the text of the question under it and a caret at the position that it
    names.

    The server never repeats what it was asked; the caller has it.
    """
    place = _PLACE.search(sentence)
    if place is None:
        return sentence
    position, what = int(place[1]), place[2]
    texts = [query[name] for name in _FIELDS[what] if isinstance(query.get(name), str)]
    if len(texts) != 1 or not 1 <= position <= len(texts[0]) + 1:
        return sentence
    shown = "".join(" " if character.isspace() else character for character in texts[0])
    return f"{sentence}\n{_INDENT}{shown}\n{_INDENT}{' ' * (position - 1)}^"
