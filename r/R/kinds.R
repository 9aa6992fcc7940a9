# SPDX-License-Identifier: Apache-2.0
# One function for each kind. Made by tools/r_methods.py from the server's questions.

count <- function(dataset, where = NULL, epsilon, delta = NULL, by = NULL, per = NULL, idempotency_key = NULL) {
  fields <- list(where = where, by = by, per = per)
  ask(dataset, "count", fields, epsilon, delta, idempotency_key)
}

private_mean <- function(dataset, column, where = NULL, epsilon, delta = NULL, by = NULL, weights = NULL, cluster = NULL, strata = NULL, idempotency_key = NULL) {
  fields <- list(column = column, where = where, by = by, weights = weights, cluster = cluster, strata = strata)
  ask(dataset, "mean", fields, epsilon, delta, idempotency_key)
}

private_sum <- function(dataset, column, where = NULL, epsilon, delta = NULL, by = NULL, per = NULL, weights = NULL, cluster = NULL, strata = NULL, idempotency_key = NULL) {
  fields <- list(column = column, where = where, by = by, per = per, weights = weights, cluster = cluster, strata = strata)
  ask(dataset, "sum", fields, epsilon, delta, idempotency_key)
}

describe <- function(dataset, columns = NULL, by = NULL, where = NULL, epsilon, delta = NULL, idempotency_key = NULL) {
  fields <- list(columns = columns, by = by, where = where)
  ask(dataset, "describe", fields, epsilon, delta, idempotency_key, c("columns"))
}

histogram <- function(dataset, column, bins = NULL, where = NULL, epsilon, delta = NULL, by = NULL, per = NULL, idempotency_key = NULL) {
  fields <- list(column = column, bins = bins, where = where, by = by, per = per)
  ask(dataset, "histogram", fields, epsilon, delta, idempotency_key, c("bins"))
}

crosstab <- function(dataset, columns, where = NULL, epsilon, delta = NULL, per = NULL, idempotency_key = NULL) {
  fields <- list(columns = columns, where = where, per = per)
  ask(dataset, "crosstab", fields, epsilon, delta, idempotency_key, c("columns"))
}

synthetic <- function(dataset, columns, cliques = NULL, bins = 8, where = NULL, epsilon, delta = NULL, idempotency_key = NULL) {
  fields <- list(columns = columns, cliques = cliques, bins = bins, where = where)
  ask(dataset, "synthetic", fields, epsilon, delta, idempotency_key, c("columns", "cliques"))
}

quantiles <- function(dataset, column, probabilities = c(0.25, 0.5, 0.75), where = NULL, epsilon, delta = NULL, by = NULL, per = NULL, intervals = FALSE, weights = NULL, idempotency_key = NULL) {
  fields <- list(column = column, probabilities = probabilities, where = where, by = by, per = per, intervals = intervals, weights = weights)
  ask(dataset, "quantiles", fields, epsilon, delta, idempotency_key, c("probabilities"))
}

iqr <- function(dataset, column, mechanism = "quantiles", where = NULL, epsilon, delta = NULL, per = NULL, intervals = FALSE, idempotency_key = NULL) {
  fields <- list(column = column, mechanism = mechanism, where = where, per = per, intervals = intervals)
  ask(dataset, "iqr", fields, epsilon, delta, idempotency_key)
}

private_median <- function(dataset, column, mechanism = "exponential", where = NULL, epsilon, delta = NULL, by = NULL, per = NULL, intervals = FALSE, weights = NULL, idempotency_key = NULL) {
  fields <- list(column = column, mechanism = mechanism, where = where, by = by, per = per, intervals = intervals, weights = weights)
  ask(dataset, "median", fields, epsilon, delta, idempotency_key)
}

m_estimate <- function(dataset, column, tuning = NULL, base = "uniform", lower = NULL, upper = NULL, epsilon, delta = NULL, psi = "huber", idempotency_key = NULL) {
  fields <- list(column = column, tuning = tuning, base = base, lower = lower, upper = upper, psi = psi)
  ask(dataset, "m_estimate", fields, epsilon, delta, idempotency_key)
}

location_scale <- function(dataset, column, where = NULL, epsilon, delta = NULL, tuning = NULL, mechanism = "newton", calibration = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(column = column, where = where, tuning = tuning, mechanism = mechanism, calibration = calibration, confidence_level = confidence_level)
  ask(dataset, "location_scale", fields, epsilon, delta, idempotency_key)
}

depth_median <- function(dataset, columns, scale = "trimmed", eta = NULL, directions = NULL, epsilon, delta = NULL, idempotency_key = NULL) {
  fields <- list(columns = columns, scale = scale, eta = eta, directions = directions)
  ask(dataset, "depth_median", fields, epsilon, delta, idempotency_key, c("columns"))
}

linear_regression <- function(dataset, formula, where = NULL, epsilon, delta = NULL, loss = "huber", tuning = NULL, ridge = NULL, mechanism = "newton", calibration = NULL, confidence_level = 0.95, weights = NULL, effects = NULL, by = NULL, fit_statistics = FALSE, working_correlation = NULL, cluster = NULL, strata = NULL, idempotency_key = NULL) {
  fields <- list(formula = formula, where = where, loss = loss, tuning = tuning, ridge = ridge, mechanism = mechanism, calibration = calibration, confidence_level = confidence_level, weights = weights, effects = effects, by = by, fit_statistics = fit_statistics, working_correlation = working_correlation, cluster = cluster, strata = strata)
  ask(dataset, "linear_regression", fields, epsilon, delta, idempotency_key)
}

did <- function(dataset, y, treated, time, start = NULL, covariates = NULL, where = NULL, epsilon, delta = NULL, loss = "squared", confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(y = y, treated = treated, time = time, start = start, covariates = covariates, where = where, loss = loss, confidence_level = confidence_level)
  ask(dataset, "did", fields, epsilon, delta, idempotency_key)
}

event_study <- function(dataset, y, treatment_time, time, before = 4, after = 4, never = NULL, covariates = NULL, where = NULL, epsilon, delta = NULL, loss = "squared", confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(y = y, treatment_time = treatment_time, time = time, before = before, after = after, never = never, covariates = covariates, where = where, loss = loss, confidence_level = confidence_level)
  ask(dataset, "event_study", fields, epsilon, delta, idempotency_key)
}

staggered_did <- function(dataset, y, treatment_time, time, never = NULL, first = NULL, last = NULL, where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(y = y, treatment_time = treatment_time, time = time, never = never, first = first, last = last, where = where, confidence_level = confidence_level)
  ask(dataset, "staggered_did", fields, epsilon, delta, idempotency_key)
}

private_glm <- function(dataset, formula, family, where = NULL, epsilon, delta = NULL, tuning = NULL, mechanism = "newton", calibration = NULL, confidence_level = 0.95, dispersion = NULL, link = NULL, weights = NULL, offset = NULL, exposure = NULL, by = NULL, fit_statistics = FALSE, target = "robust", cluster = NULL, strata = NULL, idempotency_key = NULL) {
  fields <- list(formula = formula, family = family, where = where, tuning = tuning, mechanism = mechanism, calibration = calibration, confidence_level = confidence_level, dispersion = dispersion, link = link, weights = weights, offset = offset, exposure = exposure, by = by, fit_statistics = fit_statistics, target = target, cluster = cluster, strata = strata)
  ask(dataset, "glm", fields, epsilon, delta, idempotency_key)
}

discontinuity <- function(dataset, y, running, cutoff, bandwidth, where = NULL, epsilon, delta = NULL, confidence_level = 0.95, order = 1, idempotency_key = NULL) {
  fields <- list(y = y, running = running, cutoff = cutoff, bandwidth = bandwidth, where = where, confidence_level = confidence_level, order = order)
  ask(dataset, "discontinuity", fields, epsilon, delta, idempotency_key)
}

treatment_effect <- function(dataset, y, treatment, covariates, estimand = "ate", estimator = "aipw", where = NULL, epsilon, delta = NULL, propensity = NULL, propensity_noise = NULL, outcome = NULL, outcome_covariance = NULL, outcome_link = "identity", trim = 0.05, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(y = y, treatment = treatment, covariates = covariates, estimand = estimand, estimator = estimator, where = where, propensity = propensity, propensity_noise = propensity_noise, outcome = outcome, outcome_covariance = outcome_covariance, outcome_link = outcome_link, trim = trim, confidence_level = confidence_level)
  ask(dataset, "treatment_effect", fields, epsilon, delta, idempotency_key, c("propensity", "propensity_noise", "outcome", "outcome_covariance"))
}

quantile_regression <- function(dataset, formula, tau = 0.5, where = NULL, epsilon, delta = NULL, confidence_level = 0.95, by = NULL, weights = NULL, idempotency_key = NULL) {
  fields <- list(formula = formula, tau = tau, where = where, confidence_level = confidence_level, by = by, weights = weights)
  ask(dataset, "quantile_regression", fields, epsilon, delta, idempotency_key)
}

hypothesis_test <- function(dataset, formula, hypothesis = NULL, test = "wald", family = NULL, where = NULL, epsilon, delta = NULL, tuning = NULL, mechanism = "newton", confidence_level = 0.95, dispersion = NULL, loss = "huber", idempotency_key = NULL) {
  fields <- list(formula = formula, hypothesis = hypothesis, test = test, family = family, where = where, tuning = tuning, mechanism = mechanism, confidence_level = confidence_level, dispersion = dispersion, loss = loss)
  ask(dataset, "hypothesis_test", fields, epsilon, delta, idempotency_key, c("hypothesis"))
}

binned_residuals <- function(dataset, formula, coefficients, link = "identity", scale = NULL, variance_power = 0.0, dispersion = 0.0, bins = NULL, where = NULL, epsilon, delta = NULL, idempotency_key = NULL) {
  fields <- list(formula = formula, coefficients = coefficients, link = link, scale = scale, variance_power = variance_power, dispersion = dispersion, bins = bins, where = where)
  ask(dataset, "binned_residuals", fields, epsilon, delta, idempotency_key, c("coefficients", "bins"))
}

study <- function(dataset, variables, main = NULL, by = NULL, where = NULL, epsilon, delta = NULL, missing = "mask", effects = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(variables = variables, main = main, by = by, where = where, missing = missing, effects = effects, confidence_level = confidence_level)
  ask(dataset, "study", fields, epsilon, delta, idempotency_key, c("variables"))
}

subsample_aggregate <- function(dataset, model, blocks = NULL, parameter_bounds = NULL, bias_correction = TRUE, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(model = model, blocks = blocks, parameter_bounds = parameter_bounds, bias_correction = bias_correction, confidence_level = confidence_level)
  ask(dataset, "subsample_aggregate", fields, epsilon, delta, idempotency_key, c("parameter_bounds"))
}

survival_curve <- function(dataset, time, event = NULL, by = NULL, cuts = NULL, where = NULL, epsilon, delta = NULL, idempotency_key = NULL) {
  fields <- list(time = time, event = event, by = by, cuts = cuts, where = where)
  ask(dataset, "survival_curve", fields, epsilon, delta, idempotency_key, c("cuts"))
}

cumulative_incidence <- function(dataset, time, event = NULL, by = NULL, cuts = NULL, where = NULL, epsilon, delta = NULL, censored = NULL, idempotency_key = NULL) {
  fields <- list(time = time, event = event, by = by, cuts = cuts, where = where, censored = censored)
  ask(dataset, "cumulative_incidence", fields, epsilon, delta, idempotency_key, c("cuts"))
}

log_rank <- function(dataset, time, event = NULL, by = NULL, cuts = NULL, where = NULL, epsilon, delta = NULL, strata = NULL, trend = FALSE, emphasis = c(0.0, 0.0), idempotency_key = NULL) {
  fields <- list(time = time, event = event, by = by, cuts = cuts, where = where, strata = strata, trend = trend, emphasis = emphasis)
  ask(dataset, "log_rank", fields, epsilon, delta, idempotency_key, c("cuts", "emphasis"))
}

hazard_regression <- function(dataset, formula, cuts = NULL, where = NULL, epsilon, delta = NULL, confidence_level = 0.95, offset = NULL, exposure = NULL, target = "robust", strata = NULL, proportionality = NULL, by = NULL, idempotency_key = NULL) {
  fields <- list(formula = formula, cuts = cuts, where = where, confidence_level = confidence_level, offset = offset, exposure = exposure, target = target, strata = strata, proportionality = proportionality, by = by)
  ask(dataset, "hazard_regression", fields, epsilon, delta, idempotency_key, c("cuts"))
}

t_test <- function(dataset, column = NULL, group = NULL, levels = NULL, columns = NULL, paired = FALSE, popmean = 0.0, alternative = "two-sided", where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(column = column, group = group, levels = levels, columns = columns, paired = paired, popmean = popmean, alternative = alternative, where = where, confidence_level = confidence_level)
  ask(dataset, "t_test", fields, epsilon, delta, idempotency_key, c("levels", "columns"))
}

private_anova <- function(dataset, column, group = NULL, levels = NULL, where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(column = column, group = group, levels = levels, where = where, confidence_level = confidence_level)
  ask(dataset, "anova", fields, epsilon, delta, idempotency_key, c("levels"))
}

mann_whitney <- function(dataset, column, group = NULL, levels = NULL, alternative = "two-sided", where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(column = column, group = group, levels = levels, alternative = alternative, where = where, confidence_level = confidence_level)
  ask(dataset, "mann_whitney", fields, epsilon, delta, idempotency_key, c("levels"))
}

kruskal <- function(dataset, column, group = NULL, levels = NULL, where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(column = column, group = group, levels = levels, where = where, confidence_level = confidence_level)
  ask(dataset, "kruskal", fields, epsilon, delta, idempotency_key, c("levels"))
}

roc <- function(dataset, score, outcome, thresholds = c(), level = NULL, positive = "high", where = NULL, epsilon, delta = NULL, confidence_level = 0.95, coefficients = NULL, idempotency_key = NULL) {
  fields <- list(score = score, outcome = outcome, thresholds = thresholds, level = level, positive = positive, where = where, confidence_level = confidence_level, coefficients = coefficients)
  ask(dataset, "roc", fields, epsilon, delta, idempotency_key, c("thresholds", "coefficients"))
}

proportion_test <- function(dataset, column, group = NULL, levels = NULL, success = NULL, value = NULL, alternative = "two-sided", where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(column = column, group = group, levels = levels, success = success, value = value, alternative = alternative, where = where, confidence_level = confidence_level)
  ask(dataset, "proportion_test", fields, epsilon, delta, idempotency_key, c("levels"))
}

correlation <- function(dataset, columns, method = "pearson", alternative = "two-sided", where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(columns = columns, method = method, alternative = alternative, where = where, confidence_level = confidence_level)
  ask(dataset, "correlation", fields, epsilon, delta, idempotency_key, c("columns"))
}

ks_test <- function(dataset, column, group = NULL, levels = NULL, law = NULL, parameters = NULL, where = NULL, epsilon, delta = NULL, confidence_level = 0.95, idempotency_key = NULL) {
  fields <- list(column = column, group = group, levels = levels, law = law, parameters = parameters, where = where, confidence_level = confidence_level)
  ask(dataset, "ks_test", fields, epsilon, delta, idempotency_key, c("levels", "parameters"))
}
