# SPDX-License-Identifier: Apache-2.0
# The critical value of simultaneous intervals: the quantile of max |Z_j|, Z normal with a given correlation.
#
# P(max |Z_j| <= c) is integrated one coordinate at a time given the ones before it (Genz 1992) over a fixed lattice of points, so that
# the same covariance always gives the same value: as the Python client's _simultaneous.py.

LATTICE <- 2^13 # points: the probability's error is some 1e-4
JITTER <- 1e-9 # of eigenvalues, for Cholesky
EDGE <- 1e-15 # of probabilities, so that no quantile is infinite

critical_value <- function(covariance, level) {
  se <- sqrt(diag(covariance))
  p <- length(se)
  least <- stats::qnorm((1 + level) / 2)
  if (p == 1) return(least)
  most <- stats::qnorm(1 - (1 - level) / (2 * p))
  found <- eigen((covariance + t(covariance)) / 2 / tcrossprod(se), symmetric = TRUE)
  root <- t(chol(found$vectors %*% (pmax(found$values, JITTER) * t(found$vectors))))
  points <- lattice(p - 1)
  beyond <- function(c) inside_all(root, points, c) - level
  min(max(stats::uniroot(beyond, c(0.99 * least, 1.01 * most), tol = 1e-8)$root, least), most)
}

# P(|Z_j| <= c for all j): the mean over points of the product of P(|Z_j| <= c | before).
inside_all <- function(root, points, c) {
  p <- nrow(root)
  normal <- matrix(0, p, ncol(points))
  inside <- rep(1, ncol(points))
  for (j in seq_len(p)) {
    before <- seq_len(j - 1)
    centre <- drop(root[j, before] %*% normal[before, , drop = FALSE])
    low <- stats::pnorm((-c - centre) / root[j, j])
    high <- stats::pnorm((c - centre) / root[j, j])
    inside <- inside * (high - low)
    if (j < p) normal[j, ] <- stats::qnorm(pmin(pmax(low + points[j, ] * (high - low), EDGE), 1 - EDGE))
  }
  mean(inside)
}

# (dimensions, points) in (0, 1): fractional parts of multiples of square roots of primes, folded.
lattice <- function(dimensions) {
  primes <- integer()
  candidate <- 2
  while (length(primes) < dimensions) {
    if (all(candidate %% primes != 0)) primes <- c(primes, candidate)
    candidate <- candidate + 1
  }
  abs(2 * ((sqrt(primes) %o% (seq_len(LATTICE) - 0.5)) %% 1) - 1)
}
