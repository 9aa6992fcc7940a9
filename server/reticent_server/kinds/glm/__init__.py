"""Generalised linear models by noisy Newton: planned from public facts, run on releases."""

from reticent_server.kinds.glm.plan import GlmPlan, plan_glm

__all__ = ["GlmPlan", "plan_glm"]
