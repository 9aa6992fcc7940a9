"""Tests of linear hypotheses: Wald, score and likelihood-ratio-type, with the privacy noise counted."""

from reticent_server.kinds.hypothesis_test.plan import HypothesisTestPlan

__all__ = ["HypothesisTestPlan"]
