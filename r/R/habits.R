# SPDX-License-Identifier: Apache-2.0
# What users of R expect of a fit and of a data set, and what other packages ask of a model.

names.reticent_dataset <- function(x) columns(x)$name

residuals.reticent_fit <- function(object, ...) private_rows("Residuals")

fitted.reticent_fit <- function(object, ...) private_rows("Fitted values")

private_rows <- function(what) {
  stop(
    what, " are of single records and stay on the server. binned_residuals(dataset, formula, coef(fit), epsilon = ...) ",
    "releases residuals in bins, for a charge; predict(fit, newdata) is free.", call. = FALSE
  )
}

# The question again with another formula or other fields: a new answer, which is charged.
update.reticent_fit <- function(object, formula. = NULL, ..., epsilon) {
  dataset <- asked_of(object)
  if (missing(epsilon)) stop("update() asks the server again, which is charged: give epsilon.", call. = FALSE)
  query <- object$query
  if (!is.null(formula.)) query$formula <- formula_text(updated(query$formula, formula.))
  changes <- list(...)
  query[names(changes)] <- changes
  fields <- query[setdiff(names(query), "kind")]
  ask(dataset, query$kind, fields, epsilon, NULL, NULL)
}

updated <- function(old, new) {
  if (is.character(new)) new <- stats::as.formula(new)
  stats::update.formula(stats::as.formula(r_spelling(old)), new)
}

asked_of <- function(object) {
  found <- attr(object, "dataset")
  if (is.null(found)) stop("This release was read by its id: ask with the kind's function, which knows the data set.", call. = FALSE)
  found
}

# The released profile of a data set's columns: quantiles, counts by level and missing cells. NULL: the curator has none.
profile.reticent_dataset <- function(fitted, ...) {
  profile <- fitted$facts$profile
  if (is.null(profile)) {
    message("The curator has released no profile of ", fitted$name, ".")
    return(invisible(NULL))
  }
  rows <- lapply(names(profile$columns), function(name) {
    column <- profile$columns[[name]]
    quantiles <- plain_vector(column$quantiles)
    p <- plain_vector(profile$probabilities)
    at <- function(q) if (length(quantiles) && any(abs(p - q) < 1e-9)) quantiles[[which(abs(p - q) < 1e-9)]] else NA_real_
    list(column = name, q25 = at(0.25), median = at(0.5), q75 = at(0.75), missing = value_or(column$missing, NA))
  })
  frame_of(rows)
}

# ---- emmeans: a grid of public values, made of the declared levels and the released medians (or the middle of the bounds).

recover_data.reticent_fit <- function(object, data = NULL, ...) {
  added <- c(object$query$offset, sprintf("log(%s)", object$query$exposure))
  model <- stats::as.formula(paste(c(r_spelling(object$query$formula), sprintf("offset(%s)", added)), collapse = " + "))
  trms <- stats::delete.response(stats::terms(model))
  if (is.null(data)) data <- public_grid(asked_of(object), all.vars(trms), names(coef(object)))
  # emmeans looks for a transformation of the response, such as log(y), in the call
  structure(data, call = call("reticent_fit", formula = model), terms = trms, predictors = all.vars(trms), responses = character())
}

emm_basis.reticent_fit <- function(object, trms, xlev, grid, ...) {
  if (!all(estimable(object))) warning("Some coefficients are not identifiable at this epsilon: their means are not to be interpreted.", call. = FALSE)
  X <- design_of(names(coef(object)), grid)
  list(
    X = X, bhat = unname(zero_for_na(coef(object))), nbasis = matrix(NA), V = unname(zero_for_na(vcov(object))),
    dffun = function(k, dfargs) Inf, dfargs = list(),
    misc = if (is.null(object$result$family)) list() else emmeans::.std.link.labels(object$result[c("family", "link")], list())
  )
}

# Two rows or more of each column in use: every level of a factor, the middle of a number.
public_grid <- function(dataset, names, terms) {
  declared <- dataset$facts$schema$columns[names]
  values <- Map(function(name, column) public_values(name, column, dataset$facts$profile), names, declared)
  size <- max(2, lengths(values))
  as.data.frame(lapply(values, function(each) if (is.factor(each)) each[rep_len(seq_along(each), size)] else rep_len(each, size)), stringsAsFactors = FALSE)
}

public_values <- function(name, column, profile) {
  levels <- plain_vector(column$levels)
  if (length(levels)) return(factor(levels, levels))
  if (identical(column$kind, "boolean")) return(c(0, 1))
  p <- plain_vector(profile$probabilities)
  quantiles <- plain_vector(profile$columns[[name]]$quantiles)
  at <- which(abs(p - 0.5) < 1e-9)
  if (length(at) && length(quantiles)) quantiles[[at]] else (column$lower + column$upper) / 2
}

# ---- ggplot2: the coefficients with their intervals.

autoplot.reticent_fit <- function(object, level = 0.95, ...) {
  found <- tidy.reticent_fit(object, conf.int = TRUE, conf.level = level)
  found <- found[found$term != "Intercept" & estimable(object), ]
  found$term <- factor(found$term, rev(found$term))
  .data <- ggplot2::.data
  ggplot2::ggplot(found, ggplot2::aes(x = .data[["estimate"]], y = .data[["term"]])) +
    ggplot2::geom_vline(xintercept = 0, linetype = "dotted") +
    ggplot2::geom_pointrange(ggplot2::aes(xmin = .data[["conf.low"]], xmax = .data[["conf.high"]])) +
    ggplot2::labs(x = paste0("coefficient, ", 100 * level, " % interval"), y = NULL)
}

# ---- marginaleffects: predictions on public values, coefficients and their covariance.

get_coef.reticent_fit <- function(model, ...) coef(model)

set_coef.reticent_fit <- function(model, coefs, ...) {
  model$result$coefficients <- as.list(unname(coefs))
  model
}

get_vcov.reticent_fit <- function(model, ...) vcov(model)

get_predict.reticent_fit <- function(model, newdata, type = "response", ...) {
  data.frame(rowid = seq_len(nrow(newdata)), estimate = unname(predict(model, newdata, type = if (identical(type, "link")) "link" else "response")))
}
