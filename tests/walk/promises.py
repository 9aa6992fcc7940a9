# SPDX-License-Identifier: Apache-2.0
"""What a plan promises of intervals, against those that came, whatever the shape of the reply."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import inf
from statistics import NormalDist
from typing import Any

from walk.questions import EVERYBODY, Json, Question

WIDER, BLIND, NARROWER = 3.0, 12.0, 12.0
"""An interval may be wider than planned by WIDER, where a profile says how columns vary, else by
BLIND, since their declared bounds are taken for it; and narrower by NARROWER, since a plan does not
know how well a model fits."""
CLEAR = 0.5
"""Of a standard error, the part that noise is at most where an interval is clear of it."""
FORECAST_CLEAR = 1.05
"""Ratio of widths, with noise and without, up to which a promised interval has to come."""
_Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class CameInterval:
    """An interval of a reply. half: of the 95 % interval; None: it was withheld. noise: the part of
    the standard error that is noise; None: not said."""

    half: float | None
    noise: float | None = None


_LABELS = ("terms", "levels", "names")
_MAIN = ("confidence_interval", "effect_interval")
"""The interval of a record that says nothing else of what it is about."""


def came(result: Any, name: str, place: int | None) -> list[CameInterval]:
    """The intervals of a number that a plan has named, in every record of a result (a group, a
    fit): by its name; without such, by its place; of the only number, a record's main one."""
    return _found(result, lambda record: _named(record, name)) or _found(
        result, lambda record: _placed(record, place)
    )


def _found(result: Any, own: Callable[[Json], Iterable[CameInterval]]) -> list[CameInterval]:
    if isinstance(result, list):
        return [interval for each in result for interval in _found(each, own)]
    if not isinstance(result, dict):
        return []
    inner = (_found(each, own) for name, each in result.items() if name not in _NOT_ANSWERS)
    return [*own(result), *chain.from_iterable(inner)]


_NOT_ANSWERS = frozenset({"sizes", "narrow", "cut", "cutoffs", "statistics"})
"""Fields of a result whose intervals are about something else than what was asked."""


def _named(record: Json, name: str) -> Iterator[CameInterval]:
    """Of a number that has an error in place of an interval, twice the error."""
    labels = [str(each) for each in next((record[k] for k in _LABELS if k in record), ())]
    labels = labels or [f"{100 * each:g}%" for each in record.get("probabilities", ())]
    pairs = record.get("confidence_intervals")
    if f"{name}_interval" in record:
        yield _interval(record, record[f"{name}_interval"])
    elif name in labels and pairs:
        yield _numbered(record, labels.index(name))
    elif name in record and pairs:
        yield _numbered(record, 0)
    elif name in record and record.get("standard_error") is not None:
        yield CameInterval(_Z95 * record["standard_error"])


def _placed(record: Json, place: int | None) -> Iterator[CameInterval]:
    pairs = record.get("confidence_intervals") or ()
    main = next((record[each] for each in _MAIN if each in record), None)
    if place is None and main is not None:
        yield _interval(record, main)
    elif place is None and "interval_half_width" in record:
        yield CameInterval(record["interval_half_width"])
    elif place is None and "tables" in record and "standard_error" in record:
        yield CameInterval(_Z95 * record["standard_error"])
    elif place is None:
        yield from (_numbered(record, k) for k in range(len(pairs)))


def _at_95(record: Json) -> float:
    """What an interval's width is multiplied by."""
    return _Z95 / NormalDist().inv_cdf(0.5 + record.get("confidence_level", 0.95) / 2)


def _numbered(record: Json, place: int) -> CameInterval:
    errors, noises = record.get("standard_errors"), record.get("privacy_standard_errors")
    one = {"confidence_level": record.get("confidence_level", 0.95)}
    if errors and noises:
        one |= {"standard_error": errors[place], "privacy_standard_error": noises[place]}
    return _interval(one, record["confidence_intervals"][place])


def _interval(record: Json, pair: Any) -> CameInterval:
    error, noise = record.get("standard_error"), record.get("privacy_standard_error")
    withheld = pair is None or any(end is None for end in pair)
    half = None if withheld else _at_95(record) * (pair[1] - pair[0]) / 2
    return CameInterval(half, noise / error if noise is not None and error else None)


def broken_promises(
    question: Question, precision: Json | None, result: Json
) -> Iterator[tuple[str, Any]]:
    """What a plan said of intervals, and a reply of everybody did not keep. A study has moments in
    place of intervals, which whoever reads it makes of them."""
    query = question.query
    if query.get("where", EVERYBODY) != EVERYBODY or precision is None or "moments" in result:
        return
    is_known = question.table.endswith("profiled") and "persons" not in query
    names, ratios, halves = (precision[k] for k in ("names", "ci_ratios", "half_widths"))
    for place, (name, ratio, half) in enumerate(zip(names, ratios, halves, strict=True)):
        found = came(result, name, None if len(names) == 1 else place)
        if not found and _is_clear(ratio, half):
            yield "an interval is promised and there is none", (name, ratio, half)
        for each in found:
            what = _broken(each, ratio, half, WIDER if is_known else BLIND)
            # without a profile a plan may not know how wide, and says nothing of the width
            if what and (is_known or (ratio, half) != (None, None)):
                yield what, (name, ratio, half, each)


def _is_clear(ratio: float | None, half: float | None) -> bool:
    """Whether a number is promised with an interval that noise hardly widens."""
    return half is not None if ratio is None else ratio <= FORECAST_CLEAR


def _broken(each: CameInterval, ratio: float | None, half: float | None, wider: float) -> str:
    """Empty where the promise is kept."""
    is_clear = _is_clear(ratio, half)
    if each.half is None:
        return "an interval is promised and withheld" if is_clear else ""
    if ratio is None and half is None:
        is_sure = each.noise is not None and each.noise < CLEAR
        return "no interval is promised and one came" if is_sure else ""
    if not half or not each.half:
        return ""
    # where no ratio is known, the width that is planned is that of the noise alone
    width = each.half * (each.noise or 1.0 if ratio is None else 1.0)
    says_noise = ratio is not None or each.noise is not None
    most = wider if is_clear and says_noise else inf
    return "" if 1 / NARROWER <= width / half <= most else "an interval is not as wide as planned"
