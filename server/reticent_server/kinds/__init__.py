# SPDX-License-Identifier: Apache-2.0
"""The kinds of questions, one room each, and their only list."""

from typing import Any

from reticent_server.kinds.anova.kind import KIND as ANOVA
from reticent_server.kinds.base import Kind
from reticent_server.kinds.binned_residuals.kind import KIND as BINNED_RESIDUALS
from reticent_server.kinds.correlation.kind import KIND as CORRELATION
from reticent_server.kinds.count.kind import KIND as COUNT
from reticent_server.kinds.crosstab.kind import KIND as CROSSTAB
from reticent_server.kinds.cumulative_incidence.kind import KIND as CUMULATIVE_INCIDENCE
from reticent_server.kinds.depth_median.kind import KIND as DEPTH_MEDIAN
from reticent_server.kinds.describe.kind import KIND as DESCRIBE
from reticent_server.kinds.did.kind import KIND as DID
from reticent_server.kinds.discontinuity.kind import KIND as DISCONTINUITY
from reticent_server.kinds.event_study.kind import KIND as EVENT_STUDY
from reticent_server.kinds.glm.kind import KIND as GLM
from reticent_server.kinds.hazard_regression.kind import KIND as HAZARD_REGRESSION
from reticent_server.kinds.histogram.kind import KIND as HISTOGRAM
from reticent_server.kinds.hypothesis_test.kind import KIND as HYPOTHESIS_TEST
from reticent_server.kinds.iqr.kind import KIND as IQR
from reticent_server.kinds.kruskal.kind import KIND as KRUSKAL
from reticent_server.kinds.ks_test.kind import KIND as KS_TEST
from reticent_server.kinds.linear_regression.kind import KIND as LINEAR_REGRESSION
from reticent_server.kinds.location_scale.kind import KIND as LOCATION_SCALE
from reticent_server.kinds.log_rank.kind import KIND as LOG_RANK
from reticent_server.kinds.m_estimate.kind import KIND as M_ESTIMATE
from reticent_server.kinds.mann_whitney.kind import KIND as MANN_WHITNEY
from reticent_server.kinds.mean.kind import KIND as MEAN
from reticent_server.kinds.median.kind import KIND as MEDIAN
from reticent_server.kinds.profile.kind import KIND as PROFILE
from reticent_server.kinds.proportion_test.kind import KIND as PROPORTION_TEST
from reticent_server.kinds.quantile_regression.kind import KIND as QUANTILE_REGRESSION
from reticent_server.kinds.quantiles.kind import KIND as QUANTILES
from reticent_server.kinds.roc.kind import KIND as ROC
from reticent_server.kinds.staggered_did.kind import KIND as STAGGERED_DID
from reticent_server.kinds.study.kind import KIND as STUDY
from reticent_server.kinds.subsample_aggregate.kind import KIND as SUBSAMPLE_AGGREGATE
from reticent_server.kinds.sum.kind import KIND as SUM
from reticent_server.kinds.survival_curve.kind import KIND as SURVIVAL_CURVE
from reticent_server.kinds.synthetic.kind import KIND as SYNTHETIC
from reticent_server.kinds.t_test.kind import KIND as T_TEST
from reticent_server.kinds.treatment_effect.kind import KIND as TREATMENT_EFFECT

KINDS: tuple[Kind[Any], ...] = (
    COUNT,
    MEAN,
    SUM,
    DESCRIBE,
    HISTOGRAM,
    CROSSTAB,
    SYNTHETIC,
    QUANTILES,
    IQR,
    MEDIAN,
    M_ESTIMATE,
    LOCATION_SCALE,
    DEPTH_MEDIAN,
    LINEAR_REGRESSION,
    DID,
    EVENT_STUDY,
    STAGGERED_DID,
    GLM,
    DISCONTINUITY,
    TREATMENT_EFFECT,
    QUANTILE_REGRESSION,
    HYPOTHESIS_TEST,
    BINNED_RESIDUALS,
    STUDY,
    SUBSAMPLE_AGGREGATE,
    SURVIVAL_CURVE,
    CUMULATIVE_INCIDENCE,
    LOG_RANK,
    HAZARD_REGRESSION,
    T_TEST,
    ANOVA,
    MANN_WHITNEY,
    KRUSKAL,
    ROC,
    PROPORTION_TEST,
    CORRELATION,
    KS_TEST,
    PROFILE,
)
