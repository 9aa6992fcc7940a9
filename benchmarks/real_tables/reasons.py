# SPDX-License-Identifier: Apache-2.0
"""Why coefficients have no interval, by what replies say, and whether the interval that was kept
back would have held."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.real_tables.textbook import Textbook
from reticent_server.fitting.trust import words
from reticent_server.fitting.trust.thresholds import PLAIN_NOISE_ALONE

_WHOLE = {
    words.UNSETTLED: "not settled",
    words.INFORMATION_UNKNOWN: "information",
    words.NOT_ARRIVED: "not arrived",
    words.CURVATURE_DOUBTED: "curvature",
}
Kept = dict[str, tuple[float, float, float]]
"""Of each reason: the share of a model's coefficients, the coverage and the median width (over the
textbook's) that their intervals would have."""


def reasons(result: dict[str, Any]) -> list[str]:
    """(q,) the first rule that declines each coefficient; "" of one with an interval."""
    said = [next((r for s, r in _WHOLE.items() if s in result["warnings"]), "")] * len(
        result["terms"]
    )
    return [
        "" if known else (whole or _own(result, place))
        for place, (known, whole) in enumerate(zip(result["estimable"], said, strict=True))
    ]


def _own(result: dict[str, Any], place: int) -> str:
    """Of one coefficient, of a reply whose fit is sound."""
    name, se = result["terms"][place], result["standard_errors"][place]
    noise = result["privacy_standard_errors"][place]
    named = [s for s in result["warnings"] if name in s]
    if any("records decide" in s for s in named):
        return "slope of the tail" if result["cut"].get("tail_index") else "no tail"
    if any("events" in s for s in named):
        return "events"
    sampling = np.sqrt(max(se**2 - noise**2, 0.0))
    return "noise" if noise > PLAIN_NOISE_ALONE.value * sampling else "whitening"


def kept_back(samples: Sequence[Any], target: Textbook, z: float) -> Kept:
    """samples: benchmarks.real_tables.lines.Sample."""
    found: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for sample in samples:
        off = np.abs(sample.coefficients - target.coefficients)
        held, width = off <= z * sample.errors, sample.errors / target.standard_errors
        for each in zip(sample.reasons, held, width, strict=True):
            found[each[0]].append((bool(each[1]), float(each[2])))
    of = len(samples) * len(target.terms)
    return {
        reason: (
            len(each) / of,
            float(np.mean([x for x, _ in each])),
            float(np.median([x for _, x in each])),
        )
        for reason, each in found.items()
        if reason
    }


def table(lines: Sequence[Any]) -> str:
    """Over the models, one line a reason, as Markdown. lines: RealLine, as JSON."""
    rows = ["| reason | share | would cover | width |", "|---|---|---|---|"]
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for line in lines:
        for reason, each in line["kept_back"].items():
            found[reason].append(each)
    for reason, each in sorted(found.items(), key=lambda item: -sum(x[0] for x in item[1])):
        share, covered, width = np.array(each).T
        rows.append(
            f"| {reason} | {share.sum() / len(lines):.3f} | "
            f"{np.average(covered, weights=share):.2f} | {np.median(width):.1f} |"
        )
    return "\n".join(rows) + "\n"
