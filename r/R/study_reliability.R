# SPDX-License-Identifier: Apache-2.0
# Reliability of a sum of items from a study's moments: Cronbach's alpha and McDonald's omega.
#
# alpha = k/(k - 1) (1 - tr K / sum K); omega = (sum lambda)^2 / ((sum lambda)^2 + sum theta) of one factor behind all items. Intervals
# count the noise, what clipping may have moved, and sampling by the normal law; they are made of log(1 - alpha) (Bonett 2002).

study_reliability <- function(study, items) {
  moments <- study_moments(study)
  if (moments$effects) invalid_formula(whole_note)
  places <- different(places_of(study, items))
  if (length(places) < 2) invalid_formula("Reliability is of two items at least.")
  units <- moments$scales[places]
  K <- clear_covariance(moments, places) * tcrossprod(units)
  k <- length(places)
  total <- sum(K)
  value <- k / (k - 1) * (1 - sum(diag(K)) / total)
  slope <- k / (k - 1) * (sum(diag(K)) / total^2 - diag(k) / total)
  notes <- bare_note(moments, places)
  rows <- rbind(alpha = value_with_errors(moments, places, units, value, slope), omega = rep(NaN, 3))
  found <- tryCatch(omega_of(K, moments$names[places]), reticent_not_estimable = function(refusal) conditionMessage(refusal))
  if (is.list(found)) rows["omega", ] <- value_with_errors(moments, places, units, found$value, found$slope)
  else notes <- c(notes, paste("No omega.", found))
  if (length(bare_note(moments, places))) rows[, 2:3] <- NaN
  colnames(rows) <- c("estimate", "std.error", "privacy_std.error")
  structure(list(items = moments$names[places], estimates = as.data.frame(rows), notes = notes), class = "reticent_study_reliability")
}

value_with_errors <- function(moments, places, units, value, slope) {
  found <- carried_of(moments, places, value, list(slope * tcrossprod(units)))
  c(value, found$bse, roots(found$privacy))
}

omega_of <- function(K, names) {
  k <- length(names)
  if (k < 3) not_estimable("One factor behind two items is not identified: use three or more.")
  factor <- "common factor"
  model <- list(factors = factor, columns = stats::setNames(seq_len(k), names), outside = character(), defined = list(), paths = c(
    lapply(names, function(name) sem_path(factor, "=~", name)), list(sem_path(factor, "~~", factor, fixed = 1)),
    lapply(names, function(name) sem_path(name, "~~", name))
  ))
  S <- sem_structure(model)
  theta <- sem_fitted(S, sem_start(S, model, K), K)
  if (min(theta[-seq_len(k)]) < 0) not_estimable("One factor behind these items has a residual variance below 0.")
  omega <- function(t) sum(t[seq_len(k)])^2 / (sum(t[seq_len(k)])^2 + sum(t[-seq_len(k)]))
  weights <- complex_jacobian(omega, theta)
  moved <- sem_movement(S, theta, K)
  list(value = omega(theta), slope = Reduce(`+`, Map(`*`, moved, as.list(drop(weights)))))
}

confint.reticent_study_reliability <- function(object, parm, level = 0.95, ...) {
  left <- 1 - object$estimates$estimate
  half <- stats::qnorm((1 + level) / 2) * object$estimates$std.error / left
  ends <- cbind(1 - left * exp(half), 1 - left * exp(-half))
  dimnames(ends) <- list(rownames(object$estimates), ends_named(level))
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

print.reticent_study_reliability <- function(x, ...) {
  ends <- confint(x)
  cat("Reliability of", paste(x$items, collapse = " + "), "\n")
  cat(sprintf("%s %.3f [%.3f, %.3f]\n", rownames(ends), x$estimates$estimate, ends[, 1], ends[, 2]), sep = "")
  for (note in x$notes) cat(strwrap(note, 90), sep = "\n")
  invisible(x)
}
