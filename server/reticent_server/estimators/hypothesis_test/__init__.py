"""Tests of linear hypotheses: Wald, score and likelihood-ratio-type, with the privacy noise counted."""

from reticent_server.estimators.hypothesis_test.plan import HypothesisTestPlan

__all__ = ["HypothesisTestPlan"]
