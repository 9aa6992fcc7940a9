# SPDX-License-Identifier: Apache-2.0
"""Mediation: how much of x's effect on y goes through m. Linear, by the delta method.

m = a·x + …, y = b·m + c·x + …: indirect ab, direct c, total ab + c (Baron & Kenny 1986; Sobel
1982).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from reticent import _drawing, _optional
from reticent._study.moments import FloatArray, Moments

EFFECTS = ("indirect", "direct", "total", "a", "b")


@dataclass(frozen=True, slots=True, eq=False)
class Mediation:
    """Effects of x on y by way of m, in the units of the data: values, bse, privacy_bse (5,), as
    named by `effects`.

    They are causal only under assumptions that no release can check.
    """

    x: str
    mediator: str
    y: str
    controls: tuple[str, ...]
    values: FloatArray
    bse: FloatArray
    privacy_bse: FloatArray
    effects: tuple[str, ...] = EFFECTS

    def __getitem__(self, effect: str) -> float:
        return float(self.values[self.effects.index(effect)])

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(5, 2) normal intervals."""
        half = float(ndtri(1 - alpha / 2)) * self.bse
        return np.column_stack([self.values - half, self.values + half])

    @property
    def pvalues(self) -> FloatArray:
        """(5,) two-sided, of "no effect"."""
        return np.asarray(2 * ndtr(-np.abs(self.values) / self.bse))

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row an effect; needs pandas."""
        lower, upper = self.conf_int().T
        columns = {"effect": self.values, "bse": self.bse, "lower": lower, "upper": upper}
        return _optional.pandas().DataFrame(columns, index=list(self.effects))

    def __repr__(self) -> str:
        rows = zip(self.effects, self.values, self.conf_int(), strict=True)
        lines = [
            f"{name}: {value:.4g} [{low:.4g}, {high:.4g}]" for name, value, (low, high) in rows
        ]
        return "\n".join([f"Mediation of {self.x} on {self.y} by {self.mediator}", *lines])

    def plot(self, ax: Any = None) -> Any:
        """The effects with intervals; needs matplotlib, gives the Axes."""
        return _drawing.intervals(self.effects, self.values, self.conf_int(), ax)


def mediation(moments: Moments, x: int, m: int, y: int, controls: Sequence[int]) -> Mediation:
    """Of columns at these places."""
    effects = moments.delta((x, m, y, *controls), _effects)
    to = moments.scales
    units = np.array([to[y] / to[x]] * 3 + [to[m] / to[x], to[y] / to[m]])
    names = moments.names
    return Mediation(
        names[x],
        names[m],
        names[y],
        tuple(names[k] for k in controls),
        effects.values * units,
        effects.bse * units,
        np.sqrt(np.maximum(np.diag(effects.privacy), 0.0)) * units,
    )


def _effects(K: FloatArray) -> FloatArray:
    """(5,) of the covariance of (x, m, y, controls)."""
    rest = list(range(3, len(K)))
    first, second = [0, *rest], [0, 1, *rest]
    a = np.linalg.solve(K[np.ix_(first, first)], K[first, 1])[0]
    direct, b = np.linalg.solve(K[np.ix_(second, second)], K[second, 2])[:2]
    return np.array([a * b, direct, a * b + direct, a, b])
