# SPDX-License-Identifier: Apache-2.0
# The Brier score of binned residuals of a logistic model, with the noise in its error: as the Python client's results/brier.py, which has
# the formulas.

brier_score <- function(residuals, level = 0.95) {
  result <- residuals$result
  if (!identical(residuals$query$link, "logit")) stop("A Brier score is of probabilities: of a model with the link logit.", call. = FALSE)
  part <- function(name) plain_vector(result[[name]])
  ranges <- do.call(rbind, lapply(result$clipped, plain_vector))
  c <- rowMeans(ranges)
  h <- (ranges[, 2] - ranges[, 1]) / 2
  numbers <- part("numbers")
  N <- pmax(numbers, 1)
  total <- max(sum(numbers), 1)
  r <- part("residuals")
  fitted <- part("fitted")
  value <- min(sum((N - 1) * part("standard_deviations")^2 + N * r^2) / total, 1)
  s <- stats::median(part("privacy_standard_errors") * N / (h * sqrt(((r - c) / h)^2 + 0.5)))
  noise <- s^2 * sum(h^4 + 2 * h^2 * c^2 + (c^2 - value)^2) / total^2
  p <- pmin(pmax(fitted + r, 0), 1)
  fourth <- sum(N * (p * (1 - fitted)^4 + (1 - p) * fitted^4)) / sum(N)
  bse <- sqrt(max(fourth - value^2, 0) / total + noise)
  half <- stats::qnorm((1 + level) / 2) * bse
  data.frame(brier = value, std.error = bse, privacy.std.error = sqrt(noise), conf.low = max(value - half, 0), conf.high = min(value + half, 1))
}
