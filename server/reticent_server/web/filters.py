# SPDX-License-Identifier: Apache-2.0
"""How the templates show numbers and times."""

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup, escape


def plain(value: float | None) -> str:
    """The shortest usual spelling of a number; a dash for none."""
    return "–" if value is None else f"{value:.6g}"


def percent(share: float) -> str:
    """A share as a percentage, never shown as 0 or 100 where it is not."""
    if 0 < share < 0.001:
        return "<\N{NO-BREAK SPACE}0.1\N{NO-BREAK SPACE}%"
    if 0.999 < share < 1:
        return ">\N{NO-BREAK SPACE}99.9\N{NO-BREAK SPACE}%"
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


def when(at: str) -> str:
    """An ISO time to the minute, in UTC."""
    return at[:16].replace("T", " ")


def level(share: float) -> str:
    """How a gauge looks: "high" from 75 % on, "full" from 95 % on."""
    return "full" if share >= 0.95 else "high" if share >= 0.75 else "low"


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def coded(text: str) -> Markup:
    """A docstring's text, with what stands between backticks as code."""
    parts = text.split("`")
    marked = (
        Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts)
    )
    return Markup().join(marked)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "plain": plain,
    "coded": coded,
    "percent": percent,
    "when": when,
    "level": level,
    "count": count,
}
