# SPDX-License-Identifier: Apache-2.0
"""Linear regression by noisy gradient descent."""

from reticent_server.kinds.linear_regression.gradient_descent.plan import (
    GradientDescentPlan,
    plan_gradient_descent,
)

__all__ = ["GradientDescentPlan", "plan_gradient_descent"]
