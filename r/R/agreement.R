# SPDX-License-Identifier: Apache-2.0
# Cohen's kappa of a released two-way table, with the noise in its error: as the Python client's results/agreement.py, which
# has the formulas.

LEAST_CLEAR <- 3 # standard deviations of its noise that the table's sum must be above 0 for an interval

cohens_kappa <- function(table, weights = c("none", "linear", "quadratic"), level = 0.95) {
  result <- table$result
  levels <- lapply(result$levels, unlist)
  if (length(levels) != 2 || !identical(levels[[1]], levels[[2]]) || length(levels[[1]]) < 2) {
    stop("kappa is of two columns with the same two or more levels", call. = FALSE)
  }
  if (is.null(result$independence)) stop("kappa takes records as independent: ask for the table with per", call. = FALSE)
  counts <- do.call(rbind, lapply(result$values, unlist))
  total <- abs(sum(counts) - result$n) < 1e-6 + 1e-9 * result$n
  sd <- result$standard_error
  sigma <- if (total) sd / sqrt(1 - 1 / length(counts)) else sd
  n <- max(sum(counts), 1)
  W <- agreement_weights(nrow(counts), match.arg(weights))
  kept <- pmax(counts, 0)
  P <- kept / max(sum(kept), 1)
  slope <- kappa_of(P, W)$gradient
  centred <- slope - sum(P * slope)
  u <- centred / n
  noise <- sigma^2 * max(sum(u^2) - if (total) sum(u)^2 / length(counts) else 0, 0)
  value <- min(max(kappa_of(counts / n, W)$value, -1), 1)
  bse <- sqrt(sum(P * centred^2) / n + noise)
  half <- stats::qnorm((1 + level) / 2) * bse
  sure <- total || n > LEAST_CLEAR * sigma * sqrt(length(counts))
  ends <- if (sure) c(max(value - half, -1), min(value + half, 1)) else c(-1, 1)
  data.frame(kappa = value, std.error = bse, privacy.std.error = sqrt(noise), conf.low = ends[1], conf.high = ends[2])
}

agreement_weights <- function(k, kind) {
  distance <- abs(outer(seq_len(k), seq_len(k), `-`)) / max(k - 1, 1)
  switch(kind, none = diag(k), linear = 1 - distance, quadratic = 1 - distance^2)
}

kappa_of <- function(P, W) {
  r <- rowSums(P)
  c <- colSums(P)
  a <- sum(W * P)
  rest <- max(1 - drop(r %*% W %*% c), .Machine$double.eps)
  chance <- outer(drop(W %*% c), drop(t(W) %*% r), `+`)
  list(value = 1 - (1 - a) / rest, gradient = (W * rest - chance * (1 - a)) / rest^2)
}
