# SPDX-License-Identifier: Apache-2.0
"""pyfixest's feols and fepois over a data set: fixed effects are the persons' own where the column
is the data set's unit, else dummies.

from reticent.pyfixest import feols
feols("wage ~ union | person + year", ds.budgeted(1.0)).tidy()
"""

from reticent._shapes.fixed_effects import FixedEffectsFit, feols, fepois

__all__ = ["FixedEffectsFit", "feols", "fepois"]
