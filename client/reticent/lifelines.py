# SPDX-License-Identifier: Apache-2.0
"""lifelines' CoxPHFitter, KaplanMeierFitter and AalenJohansenFitter over a data set: hazards that
are constant between public cuts, curves at public times.

from reticent.lifelines import CoxPHFitter
CoxPHFitter().fit(ds.budgeted(2.0), "week", "arrest", formula="fin + age").print_summary()
KaplanMeierFitter().fit("week", "arrest", ds.budgeted(1.0)).survival_function_
AalenJohansenFitter().fit("months", "outcome", "relapse", ds.budgeted(1.0)).cumulative_density_
"""

from reticent._shapes.hazards import CoxPHFitter
from reticent._shapes.survival import AalenJohansenFitter, KaplanMeierFitter

__all__ = ["AalenJohansenFitter", "CoxPHFitter", "KaplanMeierFitter"]
