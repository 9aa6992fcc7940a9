# SPDX-License-Identifier: Apache-2.0
"""Dates as whole days since 1970-01-01, and as texts in ISO 8601's order: 2020-01-31."""

import re
from datetime import date

ISO_DATES = "%Y-%m-%d"
"""The format of a date's texts where none is declared."""
_FIRST = date(1970, 1, 1).toordinal()


def date_days(text: str) -> float:
    """Days since 1970-01-01 of a text such as 2020-01-31. Raises ValueError."""
    found = date.fromisoformat(text)
    if found.isoformat() != text:  # fromisoformat takes 20200131 and weeks, too
        raise ValueError("a date is written as 2020-01-31")
    return float(found.toordinal() - _FIRST)


def date_text(days: float) -> str:
    """The date of a day, of any fraction, since 1970-01-01; years 1 to 9999."""
    return date.fromordinal(int(days // 1) + _FIRST).isoformat()


_YEARS, _MONTHS, _OTHERS = "Yy", "mb", "HMS%"
"""Directives: years of four digits and of two, months by number and by English name; what is left
out of a date.
"""


def date_format_error(text: str) -> str | None:
    """What is wrong with a format; None: nothing."""
    used = re.findall(r"%(.?)", text)
    once = [sum(used.count(k) for k in kinds) for kinds in (_YEARS, _MONTHS, "d")]
    if once != [1, 1, 1]:
        return (
            "format must have %Y, %m and %d once each, such as %d.%m.%Y; %y is a year of two "
            "digits, %b a "
            "month's English name"
        )
    if not set(used) <= set(_YEARS + _MONTHS + "d" + _OTHERS):
        return "format may have %Y, %y, %m, %b, %d, %H, %M and %S only"
    return None
