# SPDX-License-Identifier: Apache-2.0
"""The numbers of a reply, whatever its kind calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent_server.domain.steps import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Of q coefficients. errors: standard errors, privacy: their part from noise (q,); estimable
    (q,).
    """

    terms: tuple[str, ...]
    coefficients: FloatArray
    errors: FloatArray
    privacy: FloatArray
    estimable: np.ndarray


def estimates(result: Mapping[str, Any]) -> Estimates:
    """Of a regression's, a location's or a mean's reply."""
    if "location" in result:
        values = ("location", "scale"), (result["location"], result["scale"])
    elif "value" in result:
        one = [result["standard_error"]], [result["privacy_standard_error"]], [True]
        return _estimates(("mean",), [result["value"]], *one)
    else:
        values = tuple(result["terms"]), result["coefficients"]
    rest = (result[k] for k in ("standard_errors", "privacy_standard_errors", "estimable"))
    return _estimates(*values, *rest)


def _estimates(
    terms: tuple[str, ...], coefficients: Any, errors: Any, privacy: Any, estimable: Any
) -> Estimates:
    floats = (np.array(x, dtype=float) for x in (coefficients, errors, privacy))
    return Estimates(terms, *floats, np.array(estimable, dtype=bool))


def forecast_ratios(forecast: Mapping[str, Any] | None, size: int) -> FloatArray:
    """(q,) privacy over sampling standard error as a plan says it; NaN where it says none."""
    said = forecast or {}
    if "privacy_to_sampling" in said:
        return np.array(said["privacy_to_sampling"], dtype=float)
    privacy, sampling = (said.get(f"{part}_standard_error") for part in ("privacy", "sampling"))
    return np.full(size, privacy / sampling if privacy and sampling else np.nan)
