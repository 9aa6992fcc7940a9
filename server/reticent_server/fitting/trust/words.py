# SPDX-License-Identifier: Apache-2.0
"""What a reply says where intervals are declined or doubted."""

FEW_PERSONS = (
    "No intervals are given: for the number of persons and their largest number of rows the noise "
    "is too large a part of the standard errors. A larger epsilon, fewer terms or a smaller "
    "max_rows would help."
)
FEW_CLUSTERS = (
    "No intervals are given: fewer than 10 clusters have a number of records above its noise. Take "
    "a column with more levels, or ask for errors by row and for the column as a factor in the "
    "formula."
)
CLUSTERS_HIDDEN = (
    "Noise hides by how much clusters widen the intervals of {names}: none is given. A larger "
    "epsilon, fewer terms or a column with fewer levels (10 at least) would help; or put the "
    "column in the formula as a factor, and ask for errors by row."
)
FEW_UNITS = (
    "No interval is known: fewer than 10 sampling units have a number of records above its noise. "
    "Name coarser units or ask with weights alone."
)
UNITS_HIDDEN = (
    "No interval is known: noise hides how much sampling units differ. A larger epsilon or coarser "
    "units would help; weights alone take records as drawn one by one."
)
NO_WEIGHTS = "No interval is known: the sum of weights is not above its noise."
CLUSTERS_TOLD = (
    "Errors by {column}: where records of a level are independent, sampling errors are about "
    "{wider:.2g} times those by row, as noise hides that they are; the more the levels multiply "
    "sampling errors, the less noise adds."
)
CLUSTERS_NOT_TOLD = (
    "Errors by {column}: intervals are expected only of coefficients whose variance the levels of "
    "{column} multiply by {effect:.2g} or more. A larger epsilon, fewer terms or a column with "
    "fewer levels would help."
)
UNSETTLED = (
    "No intervals are given: the mean response is curved, and with so much noise the fit may be "
    "too far from its solution for a linear approximation. A larger epsilon or fewer terms would "
    "help."
)
INFORMATION_UNKNOWN = (
    "No intervals are given: the information matrix is below its noise at this epsilon. A larger "
    "epsilon or fewer terms would help."
)
STRATA_UNKNOWN = (
    "No intervals are given: the strata have hardly more events than noise, and baselines that are "
    "not known would move the coefficients. A larger epsilon, fewer strata or the column as a term "
    "would help."
)
NOT_ARRIVED = (
    "No intervals are given: the last step found the fit farther from its solution than earlier "
    "steps had indicated. A larger epsilon, fewer terms or the logarithm of a regressor with a "
    "long tail would help."
)
CURVATURE_DOUBTED = (
    "No intervals are given: the steps of the fit contradict the curvature that its standard "
    "errors would rest on. A larger epsilon, fewer terms or the logarithm of a regressor with a "
    "long tail would help."
)
SAME_IN_ALL_ROWS = (
    "With person effects a term that is the same in all rows of a person, or nearly, is not "
    "identifiable: nothing of it remains once the person's mean is subtracted."
)
FEW_IN_GROUP = (
    "The group's records are too few for intervals at this epsilon: a larger epsilon, fewer terms, "
    "coarser groups or a profile by the curator would help."
)
SPREAD_UNKNOWN = (
    "No intervals are given: at this epsilon the query cannot measure the spread of {columns}, and "
    "no profile has it. A larger epsilon would help, or a profile by the curator that resolves "
    "these columns."
)
FEW_EVENTS = (
    "These coefficients compare levels of which one has too few events (or records): {names}. No "
    "interval is given: choose a frequent reference level, or merge levels."
)
TIED_ROBUST = (
    "Nearly all records have the same response, so residuals have no scale and a robust fit no "
    'standard error: no intervals are given. Ask for loss="squared", or model whether the response '
    "differs from that value."
)
TIED_QUANTILE = (
    "Many records have the same response, so quantiles jump from value to value and have no "
    "standard error: no intervals are given. Model whether the response exceeds a value (a "
    "binomial GLM) instead."
)
PAIR_HIDDEN = (
    "No test and no interval is expected: the noise hides that the columns vary. Ask for a larger "
    'epsilon, or for method="spearman".'
)
FEW_DECIDE = (
    "About {records:.0f} records decide this correlation: it may be anything from -1 to 1, and is "
    'not tested. Ask for method="spearman", for the correlation with a logarithm of what has the '
    "long tail, or for a larger epsilon."
)
FEW_ALLOWED = (
    "Half or more of the standard error allows for about {records:.0f} records far from the "
    'middle, which are cut; method="spearman" does not depend on them.'
)
CONSTANT = (
    "A column does not vary by more than the noise, so the correlation may be anything from -1 to "
    "1, and is not tested. Ask for a larger epsilon; a constant column has no correlation."
)
NO_JUMP = (
    "The jump is not identifiable: near the cut-off are too few records for the noise of their "
    "moments. Raise epsilon, or widen the bandwidth."
)
NOISY_JUMP = (
    "The jump's noise is more than {times:g} times its sampling error, so there is no interval: "
    "raise epsilon, or widen the bandwidth."
)
HIDDEN_JUMP = (
    "The noise hides whether a few records far from the lines decide the jump, so there is no "
    "interval: ask for a larger epsilon or bandwidth, or about whether the response exceeds a "
    "value."
)
HEAVY_JUMP = (
    "A few records far from the lines may decide the jump, so there is no interval: ask about a "
    "logarithm of the response, about whether it exceeds a value, or for a larger epsilon."
)
