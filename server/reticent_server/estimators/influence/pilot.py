"""The pilot: a noisy Newton fit, whose releases all else is relative to."""

from collections.abc import Generator, Mapping
from typing import Any

from reticent_server.domain.steps import Released, Step
from reticent_server.estimators.glm import GlmPlan
from reticent_server.estimators.glm.plan import NO_PROFILE
from reticent_server.estimators.glm.recipe import GlmFitted
from reticent_server.estimators.glm.report import report as report_glm
from reticent_server.estimators.newton import LinearRegressionPlan
from reticent_server.estimators.newton.coding import Coding, Split, code_design
from reticent_server.estimators.newton.recipe import Newton, StandardFit
from reticent_server.estimators.newton.report import report as report_regression

Pilot = LinearRegressionPlan | GlmPlan
PilotFit = StandardFit | GlmFitted
NANOSECONDS: Mapping[str, int] = {"huber": 5, "logistic": 12}
"""Planned time of one step of the solver, for a record and coefficient."""


def pilot_fit(pilot: Pilot) -> Generator[Step, tuple[Released, ...], tuple[Coding, PilotFit]]:
    """Runs the pilot's recipe; without a report, and without a bootstrap of its standard errors."""
    if isinstance(pilot, GlmPlan):
        glm_coding, glm_fitted, _ = yield from pilot.fitted()
        return glm_coding, glm_fitted
    coding = pilot.coding
    if pilot.start:
        *locations, response = pilot.start.locations((yield pilot.start.step))
        split = Split(coding.white, coding.rare, coding.rare_locations)
        coding = code_design(coding.design, coding.response, split, locations, response)
    fitted = yield from Newton(coding, pilot.settings, pilot.sizes).fit()
    return coding, fitted


def notes(pilot: Pilot) -> list[str]:
    """What an analyst should know where the pilot releases quantiles of its own."""
    start = pilot.quantiles if isinstance(pilot, GlmPlan) else pilot.start
    return [NO_PROFILE] if start else []


def reported(
    pilot: Pilot, coding: Coding, fitted: PilotFit, tuning: float, level: float
) -> dict[str, Any]:
    """The result of a fit that has taken the pilot's place."""
    n = pilot.facts.n
    if isinstance(pilot, LinearRegressionPlan) and isinstance(fitted, StandardFit):
        return report_regression(coding, fitted, tuning=tuning, level=level, factor=1.0, n=n)
    if isinstance(pilot, GlmPlan) and isinstance(fitted, GlmFitted):
        return report_glm(coding, pilot.settings, fitted, level=level, n=n)
    raise TypeError("a fit belongs to its pilot")
