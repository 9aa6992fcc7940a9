# SPDX-License-Identifier: Apache-2.0
"""The response of a regression in public units: where it is centred, and what its scale starts
from."""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting import trust
from reticent_server.fitting.public.standardise import Location

_NORMAL_IQR = 1.3489795003921634  # 2Φ⁻¹(3/4)
_NORMAL_90 = 3.2897072539029444  # 2Φ⁻¹(.95)
_NORMAL_98 = 4.652695748081682  # 2Φ⁻¹(.99)


@dataclass(frozen=True, slots=True)
class PublicResponse:
    """location: centre and scale in the units of the data. tie: the share of the most frequent
    value."""

    location: Location
    tie: float


class ResponseModel:
    """What models of a response on its own scale share; in part a fitting.fit_plan.Model."""

    __slots__ = ()

    @property
    def cut_words(self) -> str:
        """As of lines."""
        return trust.OF_LINES

    @property
    def of_persons(self) -> bool:
        """True: scores are sums over a person's rows."""
        return True

    def check(self, response: Term) -> None:
        """Any response will do."""

    def response(self, term: Term, values: FloatArray) -> PublicResponse:
        """Centre, scale and ties of the public responses (rows,)."""
        return public_response(term, values)

    def location(self, response: PublicResponse, *, intercept: bool) -> Location:
        """Without an intercept the response is not centred, as that would change the model."""
        return response.location if intercept else Location(0.0, response.location.scale)


def public_response(term: Term, values: FloatArray) -> PublicResponse:
    """From the values (rows,) of public rows: the median and the IQR/1.349.

    Of a tied response, or one without an IQR, the scale is that of the 5–95 % range (of the 1–99 %
    range where that is 0); else the declared bounds'.
    """
    low, first, centre, third, high = np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95))
    outer = np.quantile(values, (0.01, 0.99))
    tie = _largest_tie(values)
    narrow = trust.tied(tie) or third - first < 0.01 * (high - low)
    candidates = (
        0.0 if narrow else (third - first) / _NORMAL_IQR,
        (high - low) / _NORMAL_90,
        (outer[1] - outer[0]) / _NORMAL_98,
        (term.upper - term.lower) / 12**0.5,
        1.0,
    )
    scale = float(next(s for s in candidates if np.isfinite(s) and s > 0))
    return PublicResponse(Location(float(centre), scale), tie)


def _largest_tie(values: FloatArray) -> float:
    """The share of the most frequent value."""
    counts = np.unique(values, return_counts=True)[1]
    return float(counts.max(initial=0)) / max(len(values), 1)
