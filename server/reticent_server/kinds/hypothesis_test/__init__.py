"""Tests of linear hypotheses: Wald, score and likelihood-ratio-type, with the privacy noise counted."""
