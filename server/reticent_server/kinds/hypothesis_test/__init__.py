# SPDX-License-Identifier: Apache-2.0
"""Tests of linear hypotheses: Wald, score and likelihood-ratio-type, with the privacy noise
counted."""
