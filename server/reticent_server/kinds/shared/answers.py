# SPDX-License-Identifier: Apache-2.0
"""The first line of a reply: which question its numbers answer, and which usual fit may say
something else.

What stands before the semicolon names the target. The second part is about the textbook's fit of
the same model. By how much that differs no number of a robust release tells, so that no number
stands here: the fit that is named does, for a charge of its own, and its forecast is free
(pipeline.both_targets).
"""

LEAST_SQUARES = "Least squares"
ROBUST = "Robust (Huber–Mallows); least squares may differ"
BIWEIGHT = "Robust (biweight–Mallows); least squares may differ"
MAXIMUM_LIKELIHOOD = "Maximum likelihood"
ROBUST_LIKELIHOOD = "Robust (Mallows quasi-likelihood); maximum likelihood may differ"
ROBUST_LOGITS = "Robust (Mallows weights); maximum likelihood may differ"
ROBUST_QUANTILES = (
    "Robust (quantiles with Mallows weights); unweighted quantile regression may differ"
)
PARTIAL_LIKELIHOOD = "Cox's partial likelihood"
ROBUST_HAZARDS = "Robust (hazards with Mallows weights); Cox's partial likelihood may differ"
ROBUST_LOCATION = "Robust (Huber's location); the mean may differ"
COHORT_EFFECTS = (
    "Effects by cohort and period (Callaway & Sant'Anna), of responses cut to the radius"
)
IN_BLOCKS = "Mean of fits to blocks of records; one fit of all records may differ"


def cut_least_squares(c: float) -> str:
    """The line of least squares whose residuals are cut at c scales."""
    return (
        f"Least squares cut at {c:g} residual scales and at far-off records; least squares of all "
        "records may differ"
    )


def penalised(answers: str) -> str:
    """The line of the same fit with a ridge penalty."""
    target, mark, other = answers.partition(";")
    return f"{target}, with a ridge penalty{mark}{other}"
