"""The pilot: a noisy Newton fit, whose releases all else is relative to."""

from collections.abc import Generator

from reticent_server.domain.steps import Released, Step
from reticent_server.estimators.glm import GlmPlan
from reticent_server.estimators.glm.recipe import GlmFitted
from reticent_server.estimators.newton import LinearRegressionPlan
from reticent_server.estimators.newton.coding import Coding, Split, code_design
from reticent_server.estimators.newton.recipe import Newton, StandardFit

Pilot = LinearRegressionPlan | GlmPlan
PilotFit = StandardFit | GlmFitted


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


def is_unprofiled(pilot: Pilot) -> bool:
    """Whether the pilot releases quantiles of its own."""
    return bool(pilot.quantiles if isinstance(pilot, GlmPlan) else pilot.start)
