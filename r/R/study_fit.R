# SPDX-License-Identifier: Apache-2.0
# Fits that are made of a study's moments: formulas as combinations of standardised columns, and the way back.

LOUD <- 3 # noise over sampling standard error above which a reader is warned
LEVEL <- 0.95 # of intervals, the field's convention; confint gives others

study_estimand <- "Least squares, with records beyond the study's radius downweighted."

# What the fits of a study are about.
estimand_of <- function(study) {
  paste0(
    study_estimand,
    if (!is.null(study$result$design_effect)) {
      paste(
        " Standard errors are as large as the likeness of a person's rows can make them; those of the declared formula are by",
        "person."
      )
    },
    if (!is.null(study$result$effects)) " All columns are deviations from the person's means (person effects)."
  )
}

# y (q) and X (p, q) of the standardised columns; beta = L theta + o in the units of the data. With an intercept columns are
# centred at public centres, without one they are not, as that would change the model. Deviations from a person's means have none.
study_model <- function(moments, response, terms, intercept) {
  intercept <- intercept && !moments$effects
  rows <- diag(length(moments$names))
  centres <- moments$centres
  scales <- moments$scales
  unit <- scales[response]
  p <- length(terms)
  if (intercept) {
    used <- c(1, terms)
    L <- diag(unit / scales[used], p + 1)
    L[1, -1] <- -unit * centres[terms] / scales[terms]
    return(list(
      names = moments$names[used], y = rows[response, ], X = rows[used, , drop = FALSE], L = L,
      offset = c(centres[response], numeric(p)), unit = unit
    ))
  }
  X <- rows[terms, , drop = FALSE] + outer(centres[terms] / scales[terms], rows[1, ])
  y <- rows[response, ] + centres[response] / unit * rows[1, ]
  list(names = moments$names[terms], y = y, X = X, L = diag(unit / scales[terms], p), offset = numeric(p), unit = unit)
}

model_of <- function(moments, specification) {
  study_model(moments, specification$response, specification$terms, specification$intercept)
}

study_ols <- function(study, formula) {
  specification <- without_instruments(study, formula)
  fit_of(study, specification, unsaid_warning(study, specification))
}

fit_of <- function(study, specification, said = character()) {
  moments <- study_moments(study)
  model <- model_of(moments, specification)
  fit <- moment_fit(moments, model$y, model$X)
  result <- fit_result(
    model, fit, study$result$n, estimand_of(study), c(said, plain_vector(study$result$warnings)),
    bared = bared_names(moments, model$y, model$X)
  )
  as_study_fit(study, specification$text, result)
}

study_ridge <- function(study, formula, penalty) {
  specification <- without_instruments(study, formula)
  if (!isTRUE(penalty > 0)) stop("The penalty is positive.", call. = FALSE)
  moments <- study_moments(study)
  model <- model_of(moments, specification)
  weights <- ifelse(model$names == "Intercept", 0, penalty)
  fit <- moment_fit(moments, model$y, model$X, diag(weights, length(weights)))
  estimand <- paste0(
    "Ridge regression with penalty ", format(penalty, digits = 6), " on standardised columns; l", substring(estimand_of(study), 2)
  )
  result <- fit_result(
    model, fit, study$result$n, estimand, plain_vector(study$result$warnings), bared = bared_names(moments, model$y, model$X)
  )
  as_study_fit(study, specification$text, result)
}

study_main <- function(study) {
  if (inherits(study, "reticent_pooled")) stop("Each site has its main formula: heterogeneity(pooled, \"main\") adds them.", call. = FALSE)
  result <- own_result(study)$main
  if (is.null(result)) {
    raise("The study was asked for without a main formula; study_ols() has any.", "not_found")
  }
  result$warnings <- c(result$warnings, study$result$warnings)
  as_study_fit(study, result$formula, result)
}

study_r2 <- function(study, formula) {
  specification <- with_intercept(study, formula, "R squared")
  places <- c(specification$response, specification$terms)
  found <- delta_of(study_moments(study), places, r_squared)
  half <- stats::qnorm(0.975) * found$bse
  c(estimate = found$values, lower = min(max(found$values - half, 0), 1), upper = min(max(found$values + half, 0), 1))
}

r_squared <- function(K) {
  cross <- K[-1, 1]
  sum(cross * solved(K[-1, -1, drop = FALSE], cross)) / K[1, 1]
}

# What a fit says. factor: by which intervals are wider than nominal ones; bared: columns that leave it without.
fit_result <- function(model, fit, n, estimand, warnings = character(), factor = 1, bared = character()) {
  L <- model$L
  beta <- drop(L %*% fit$theta) + model$offset
  privacy <- L %*% fit$privacy %*% t(L)
  sampling <- L %*% fit$sampling %*% t(L)
  leaning <- squares_of(fit$leaning, L)
  covariance <- lengthened(privacy + sampling, leaning)
  errors <- roots(covariance)
  open <- fit$gate <= GATE && !length(bared)
  said <- c(if (fit$gate > GATE) closed_warning(model, fit), if (length(bared)) bared_warning(bared))
  loud <- open & roots(privacy) > LOUD * roots(sampling)
  if (any(loud)) {
    said <- c(said, paste0("Privacy noise dominates the standard errors of ", listed(model$names[loud]), "."))
  }
  moved <- open & 2 * leaning > diag(covariance)
  if (any(moved)) said <- c(said, moved_warning(model$names[moved]))
  half <- stats::qnorm((1 + LEVEL) / 2) * factor * errors
  p <- 2 * stats::pnorm(-abs(beta) / pmax(errors, TINY))
  list(
    terms = model$names, coefficients = beta, standard_errors = errors, covariance = unname(as_rows(covariance)),
    confidence_level = LEVEL, confidence_intervals = unname(as_rows(cbind(beta - half, beta + half) * if (open) 1 else NA)),
    p_values = if (open) p else rep(NA_real_, length(beta)), privacy_standard_errors = roots(privacy),
    estimable = rep(open, length(beta)), scale = sqrt(fit$stretch * fit$variance) * model$unit, gate = fit$gate, estimand = estimand,
    n = n, warnings = c(said, warnings)
  )
}

as_rows <- function(matrix) lapply(seq_len(nrow(matrix)), function(i) matrix[i, ])

roots <- function(covariance) sqrt(pmax(diag(covariance), 0))

listed <- function(names, otherwise = "") if (length(names)) paste(names, collapse = ", ") else otherwise

as_study_fit <- function(study, formula, result, classes = character()) {
  query <- c(list(kind = "study", formula = formula), study$query[names(study$query) %in% c("where", "by")])
  document <- unclass(study)
  document$query <- query
  document$result <- result
  structure(document, class = c(classes, "reticent_study_fit", "reticent_fit", "reticent_release"))
}

unsaid_warning <- function(study, specification) {
  wanted <- unsaid_indicators(study$result$variables, study_terms(study)[specification$terms])
  if (!length(wanted)) return(character())
  paste0(
    "Missing cells are filled in this formula's variables: add ", paste(wanted, collapse = " + "),
    ", or coefficients are about filled cells too."
  )
}

bared_warning <- function(names) {
  paste0(
    "No intervals: much of ", listed(names), " lies in few records, or may behind the noise. The radius downweights these, and coefficients of all ",
    "records may lie outside of any interval that could be given. Take a logarithm (as a variable of the study), or ",
    "a regression, which is about typical records."
  )
}

moved_warning <- function(names) {
  paste0(
    "Few records with large values bear on ", listed(names), ": the radius downweights them, and intervals are wider for ",
    "it. A logarithm, or an indicator of the few, is about all records."
  )
}

closed_warning <- function(model, fit) {
  weights <- abs(fit$weakest)
  heavy <- model$names[weights > max(weights) / 2 & model$names != "Intercept"]
  paste0(
    "No intervals: the noise is too large beside the data's information about the combination of ",
    listed(heavy, "the terms"), ". Leave one of them out, or ask for a study with a larger epsilon."
  )
}
