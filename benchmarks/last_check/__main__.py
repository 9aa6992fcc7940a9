# SPDX-License-Identifier: Apache-2.0
"""python -m benchmarks.last_check [--tables T] [--sound S]: T tables of each fault, S of each sound
law.

Each table is asked twice: by a filter that is sure of its curvature and has no
check, and as the product does. A fit *fails* where the first is off by FAR stated errors in some
coefficient. It is *caught* where the second gives no interval that is as far off: it has none for
that coefficient, or is there, or knows how far it is. A sound fit has a *false alarm* where the
second declines an interval that the first gives, or its errors are WIDER times the first's.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.last_check.cases import FAULTS, SOUND, CheckedLaw
from benchmarks.real_tables.fast import numpy_noise
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import residual_score, trust
from reticent_server.fitting.beliefs import EXPECTED
from reticent_server.fitting.curvature import ScoreCurvature

TABLES, SOUND_TABLES = 24, 9  # of each fault, of each sound law
FAR = 4.0  # stated errors: of ten coefficients, a right normal law is as far once in 1,600
WIDER = 1.1  # of the median stated error


@dataclass(frozen=True, slots=True)
class CheckLine:
    """Of a case: how many fits failed, and of these were declined or caught; of all, how many had a
    false alarm."""

    name: str
    fits: int
    failed: int
    declined: int
    caught: int
    alarms: int

    def text(self) -> str:
        return (
            f"{self.name:32s} fits {self.fits:3d} failed {self.failed:3d} declined "
            f"{self.declined:3d} caught {self.caught:3d} | false alarms {self.alarms}"
        )


@contextmanager
def sure() -> Iterator[None]:
    """Within it a fit takes its curvature for what is expected, and checks nothing at its end."""
    with (
        mock.patch.object(residual_score, "STEADY", ScoreCurvature(factors=EXPECTED)),
        mock.patch.object(trust, "believed", return_value=trust.SOUND),
    ):
        yield


def z_of(result: dict[str, Any], beta: FloatArray) -> FloatArray:
    """(q,) distances to the law's coefficients in stated errors."""
    off = np.array(result["coefficients"]) - beta
    return np.asarray(np.abs(off) / np.array(result["standard_errors"]))


def asked_twice(case: CheckedLaw, seed: int) -> tuple[dict[str, Any], dict[str, Any], FloatArray]:
    """The reply of the sure filter, that of the product, and the law's coefficients."""
    replies = []
    for unchecked in (True, False):
        rng = np.random.default_rng((seed, *case.name.encode()))
        with numpy_noise(rng, on=True):
            made = case.made(rng)
            if unchecked:
                with sure():
                    replies.append(made.reply())
            else:
                replies.append(made.reply())
    return replies[0], replies[1], made.coefficients


def line(case: CheckedLaw, seeds: Sequence[int]) -> CheckLine:
    failed = declined = caught = alarms = 0
    for seed in seeds:
        before, after, beta = asked_twice(case, seed)
        far = z_of(before, beta) > FAR
        known = np.array(after["estimable"])
        if far.any():
            failed += 1
            declined += not known[far].any()
            caught += not (known & (z_of(after, beta) > FAR)).any()
        wider = np.median(after["standard_errors"]) > WIDER * np.median(before["standard_errors"])
        alarms += bool(wider or (np.array(before["estimable"]) & ~known).any())
    return CheckLine(case.name, len(seeds), failed, declined, caught, alarms)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.last_check")
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--sound", type=int, default=SOUND_TABLES)
    given = parser.parse_args()
    for cases, tables, title in ((FAULTS, given.tables, "faults"), (SOUND, given.sound, "sound")):
        lines = []
        for case in cases:
            lines.append(line(case, range(tables)))
            print(lines[-1].text(), flush=True)
        names = ("fits", "failed", "declined", "caught", "alarms")
        total = CheckLine(title, *(sum(getattr(x, name) for x in lines) for name in names))
        print(total.text(), flush=True)


if __name__ == "__main__":
    main()
