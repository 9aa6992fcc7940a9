# SPDX-License-Identifier: Apache-2.0
"""Wald tests of linear hypotheses about released coefficients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from reticent._errors import NotEstimable

FloatArray = NDArray[np.float64]
_SINGULAR = 1e-10
"""Eigenvalue of a correlation matrix below which what is tested has no covariance to speak of."""


@dataclass(frozen=True, slots=True)
class WaldTest:
    """H0: R θ = r, tested by (Rθ̂ − r)ᵀ(R C Rᵀ)⁻¹(Rθ̂ − r) ~ χ² with `df` degrees of freedom.

    C counts sampling and privacy noise. Computed from the release: free of charge.
    """

    hypotheses: tuple[str, ...]
    statistic: float
    df: int
    pvalue: float

    def __repr__(self) -> str:
        tested = ", ".join(self.hypotheses)
        return (
            f"Wald test of {tested}: chi2({self.df}) = {self.statistic:.4g}, p = {self.pvalue:.4g}"
        )


def wald(
    hypotheses: Sequence[str], R: FloatArray, r: FloatArray, params: FloatArray, cov: FloatArray
) -> WaldTest:
    """The test of R θ = r, R (k, p) of rank k, r (k,), with cov (p, p).

    Raises NotEstimable where R C Rᵀ is singular.
    """
    middle = R @ cov @ R.T
    scale = np.sqrt(np.diag(middle))
    if not np.all(scale > 0) or np.linalg.eigvalsh(middle / np.outer(scale, scale))[0] < _SINGULAR:
        raise NotEstimable("The covariance of what is tested is singular: test less at once.")
    difference = R @ params - r
    statistic = float(difference @ np.linalg.solve(middle, difference))
    return WaldTest(tuple(hypotheses), statistic, len(R), float(chdtrc(len(R), statistic)))


def unresolved_share(R: FloatArray, directions: Sequence[Mapping[str, Any]]) -> float:
    """The largest share of variance in unresolved directions, over all combinations of R's rows (k,
    p).

    directions: as released, p vectors v_i (p,) with `resolved`: the variance of a combination c is,
    up to a factor, Σ_i (cᵀv_i)²; or none where all are resolved.
    """
    unresolved = np.array([not d["resolved"] for d in directions], dtype=bool)
    if not unresolved.any():
        return 0.0
    vectors = np.array([d["vector"] for d in directions], dtype=np.float64)
    basis = np.linalg.qr(vectors @ R.T)[0]
    return float(np.linalg.norm(basis[unresolved], 2) ** 2)
