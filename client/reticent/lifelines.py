# SPDX-License-Identifier: Apache-2.0
"""lifelines' CoxPHFitter over a data set: hazards that are constant between public cuts.

from reticent.lifelines import CoxPHFitter
CoxPHFitter().fit(ds.budgeted(2.0), "week", "arrest", formula="fin + age").print_summary()
"""

from reticent._shapes.hazards import CoxPHFitter

__all__ = ["CoxPHFitter"]
