"""Noisy Newton for Huber–Mallows regression: planned from public facts, run on releases."""

from reticent_server.estimators.newton.plan import LinearRegressionPlan, plan_linear_regression

__all__ = ["LinearRegressionPlan", "plan_linear_regression"]
