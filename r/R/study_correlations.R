# SPDX-License-Identifier: Apache-2.0
# Correlations and partial correlations of a study's columns, with intervals that count noise.
#
# With Fisher's z = atanh(r): Var(z) = 1/(N - k - 3) + (Var_noise(r) + b^2)/(1 - r^2)^2, k columns being held fixed, b what
# clipping may have moved r by. Source: Fisher (1921); the noise by the delta method.

MOST_CORRELATED <- 0.9999 # largest |r| of which an interval is made: noise can make an estimate larger than 1
CLEAR <- 3 # standard deviations of its noise that a variance must be above 0 for a correlation to mean something

study_corr <- function(study, variables = NULL) {
  moments <- study_moments(study)
  places <- places_of(study, variables)
  k <- length(places)
  names <- moments$names[places]
  empty <- matrix(0, k, k, dimnames = list(names, names))
  found <- list(values = empty, bse = empty, privacy_bse = empty, lower = empty, upper = empty)
  for (part in c("values", "lower", "upper")) diag(found[[part]]) <- 1
  for (i in seq_len(k)) for (j in seq_len(i - 1)) {
    pair <- correlation_of(moments, places[j], places[i])
    ends <- fisher_interval(pair)
    entries <- c(values = pair$value, bse = pair$bse, privacy_bse = pair$privacy_bse, lower = ends[1], upper = ends[2])
    for (part in names(entries)) found[[part]][i, j] <- found[[part]][j, i] <- entries[[part]]
  }
  structure(found, class = "reticent_study_corr")
}

study_partial_corr <- function(study, x, y, given = character()) {
  names <- study_terms(study)
  places <- different(one_place(names, x), one_place(names, y), places_of(study, given))
  correlation_of(study_moments(study), places[1], places[2], places[-(1:2)])
}

correlation_of <- function(moments, x, y, given = integer()) {
  estimate <- delta_of(moments, c(x, y, given), partial_of)
  noise <- sqrt(max(estimate$privacy[1, 1], 0))
  moved <- squares_of(estimate$leaning, diag(1))
  value <- estimate$values
  if (!(varies(moments, x) && varies(moments, y) && is.finite(value))) value <- noise <- NaN
  degrees <- max(records_of(moments) - length(given) - 3, 1)
  shrunk <- 1 - min(value^2, MOST_CORRELATED^2)
  error <- sqrt(1 / degrees + (noise^2 + moved) / shrunk^2)
  if (length(bared_names(moments, diag(length(moments$names))[c(x, y, given), , drop = FALSE]))) error <- NaN # neither an interval nor a test
  structure(list(
    names = moments$names[c(x, y)], given = moments$names[given], value = value, bse = error * shrunk, privacy_bse = noise,
    z_error = error, p_value = 2 * stats::pnorm(-abs(bounded_atanh(value)) / error)
  ), class = "reticent_study_pair")
}

varies <- function(moments, place) {
  column_covariance(moments, place)[1, 1] > CLEAR * deviation_of(moments, replace(numeric(length(moments$names)), place, 1))
}

# The correlation of the first two columns given the rest.
partial_of <- function(K) {
  if (nrow(K) > 2) {
    across <- K[1:2, -(1:2), drop = FALSE]
    K <- K[1:2, 1:2] - across %*% solved(K[-(1:2), -(1:2), drop = FALSE], t(across))
  }
  suppressWarnings(K[1, 2] / sqrt(K[1, 1] * K[2, 2]))
}

bounded_atanh <- function(value) atanh(pmin(pmax(value, -MOST_CORRELATED), MOST_CORRELATED))

fisher_interval <- function(pair, level = 0.95) {
  tanh(bounded_atanh(pair$value) + c(-1, 1) * stats::qnorm((1 + level) / 2) * pair$z_error)
}

confint.reticent_study_pair <- function(object, parm, level = 0.95, ...) {
  matrix(fisher_interval(object, level), 1, dimnames = list(paste(object$names, collapse = ", "), ends_named(level)))
}

print.reticent_study_pair <- function(x, ...) {
  ends <- fisher_interval(x)
  cat(
    "Correlation of ", paste(x$names, collapse = " and "), if (length(x$given)) paste(" given", listed(x$given)), ": ",
    sprintf("%.3f [%.3f, %.3f]", x$value, ends[1], ends[2]), ", p ", p_said(x$p_value), "\n",
    sep = ""
  )
  invisible(x)
}

p_said <- function(p) if (isTRUE(p < 0.001)) "< .001" else paste("=", formatC(p, digits = 3, format = "f"))

as.matrix.reticent_study_corr <- function(x, ...) x$values

# One row a pair.
as.data.frame.reticent_study_corr <- function(x, ...) {
  at <- which(lower.tri(x$values), arr.ind = TRUE)
  names <- rownames(x$values)
  data.frame(
    x = names[at[, 2]], y = names[at[, 1]], correlation = x$values[at], std.error = x$bse[at],
    privacy_std.error = x$privacy_bse[at], conf.low = x$lower[at], conf.high = x$upper[at], stringsAsFactors = FALSE
  )
}

print.reticent_study_corr <- function(x, digits = 3, ...) {
  cat("Correlations with 95 % intervals (sampling and privacy noise)\n\n")
  table <- as.data.frame(x)
  cat(sprintf("%s, %s: %.3f [%.3f, %.3f]\n", table$x, table$y, table$correlation, table$conf.low, table$conf.high), sep = "")
  invisible(x)
}

plot.reticent_study_corr <- function(x, ...) {
  k <- nrow(x$values)
  names <- rownames(x$values)
  room <- max(nchar(names)) * 0.5 + 2
  old <- graphics::par(mar = c(room, room, 1, 1))
  on.exit(graphics::par(old))
  colours <- grDevices::hcl.colors(41, "Blue-Red 3", rev = TRUE)
  graphics::image(
    seq_len(k), seq_len(k), pmin(pmax(x$values, -1), 1)[, rev(seq_len(k)), drop = FALSE],
    zlim = c(-1, 1), col = colours, axes = FALSE, xlab = "", ylab = "", ...
  )
  at <- expand.grid(seq_len(k), seq_len(k))
  shown <- ifelse(is.na(x$values), "-", sprintf("%.2f", x$values))
  graphics::text(at[, 1], k + 1 - at[, 2], shown)
  graphics::axis(1, seq_len(k), names, las = 2)
  graphics::axis(2, rev(seq_len(k)), names, las = 1)
  invisible(x)
}
