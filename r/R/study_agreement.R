# SPDX-License-Identifier: Apache-2.0
# Agreement of raters or methods from a study's moments: intraclass correlations, Bland and Altman's limits.
#
# MSR = sum K/k, MSE = (tr K - MSR)/(k - 1), v = the variance of the raters' means less MSE/N. Sampling is by the normal law, in which
# means have the covariance K/N, independent of that of K. As the Python client's _study/agreement.py.

BLAND_ALTMAN <- 1.96 # standard deviations of a difference, as Bland and Altman have it

study_icc <- function(study, raters) {
  moments <- study_moments(study)
  if (moments$effects) invalid_formula(whole_note)
  places <- different(places_of(study, raters))
  if (length(places) < 2) invalid_formula("Agreement is of two columns at least.")
  agreement_of(moments, places, c("ICC(3,1)", "ICC(2,1)", "ICC(3,k)", "ICC(2,k)"), icc_of)
}

study_bland_altman <- function(study, x, y) {
  moments <- study_moments(study)
  if (moments$effects) invalid_formula(whole_note)
  places <- different(one_place(moments$names, x), one_place(moments$names, y))
  agreement_of(moments, places, c("bias", "lower", "upper"), limits_of)
}

icc_of <- function(m, K, n) {
  k <- length(m)
  K <- K * n / max(n - 1, 1)
  MSR <- sum(K) / k
  MSE <- (sum(diag(K)) - MSR) / (k - 1)
  v <- sum((m - mean(m))^2) / (k - 1) - MSE / n
  one <- MSR + (k - 1) * MSE
  (MSR - MSE) / c(one, one + k * v, MSR, MSR + v)
}

limits_of <- function(m, K, n) {
  bias <- m[1] - m[2]
  reach <- BLAND_ALTMAN * sqrt(max((K[1, 1] + K[2, 2] - 2 * K[1, 2]) * n / max(n - 1, 1), 0))
  c(bias, bias - reach, bias + reach)
}

agreement_of <- function(moments, places, names, fun) {
  clear_covariance(moments, places)
  n <- records_of(moments)
  centres <- moments$centres[places]
  units <- moments$scales[places]
  found <- mean_delta(moments, places, function(m, K) fun(centres + units * m, K * tcrossprod(units), n))
  notes <- bare_note(moments, places)
  gone <- if (length(notes)) NaN else 1
  estimates <- data.frame(estimate = found$values, std.error = found$bse * gone, privacy_std.error = roots(found$privacy) * gone, row.names = names)
  structure(list(columns = moments$names[places], estimates = estimates, notes = notes), class = "reticent_study_agreement")
}

# A function of the means and the covariance of some columns.
mean_delta <- function(moments, places, fun) {
  chosen <- c(1, places)
  S <- moments$sums[chosen, chosen, drop = FALSE]
  w <- S[1, 1]
  m <- S[1, -1] / w
  K <- column_covariance(moments, places)
  slopes <- gradients(S, function(s) fun(s[1, -1] / s[1, 1], centred_moments(s)))
  of_means <- vapply(slopes, function(G) 2 * w * (G[1, -1] + drop(G[-1, -1, drop = FALSE] %*% m)), m)
  turned <- vapply(slopes, function(G) as.vector(w * G[-1, -1, drop = FALSE] %*% K), numeric(length(K)))
  flipped <- vapply(slopes, function(G) as.vector(w * K %*% G[-1, -1, drop = FALSE]), numeric(length(K)))
  sampling <- (2 * crossprod(turned, flipped) + t(of_means) %*% K %*% of_means) / records_of(moments)
  moved_of(moments, chosen, fun(m, K), slopes, sampling)
}

confint.reticent_study_agreement <- function(object, parm, level = 0.95, ...) {
  half <- stats::qnorm((1 + level) / 2) * object$estimates$std.error
  ends <- cbind(object$estimates$estimate - half, object$estimates$estimate + half)
  dimnames(ends) <- list(rownames(object$estimates), ends_named(level))
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

print.reticent_study_agreement <- function(x, ...) {
  cat("Agreement of", listed(x$columns), "\n")
  print(cbind(x$estimates, confint(x)), digits = 4)
  for (note in x$notes) cat(strwrap(note, 90), sep = "\n")
  invisible(x)
}
