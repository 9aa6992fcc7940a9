"""Linear regression by noisy Newton steps."""

from reticent_server.kinds.linear_regression.plan import (
    LinearRegressionPlan,
    plan_linear_regression,
)

__all__ = ["LinearRegressionPlan", "plan_linear_regression"]
