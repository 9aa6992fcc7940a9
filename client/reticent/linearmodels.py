# SPDX-License-Identifier: Apache-2.0
"""linearmodels' PanelOLS.from_formula over a data set whose unit is a person; instruments are of a
study.

from reticent.linearmodels import PanelOLS
PanelOLS.from_formula("wage ~ union + EntityEffects", ds.budgeted(1.0)).fit(cov_type="clustered",
cluster_entity=True)
"""

from reticent._shapes.panels import IV2SLS, PanelOLS

__all__ = ["IV2SLS", "PanelOLS"]
