# SPDX-License-Identifier: Apache-2.0
# An invented table with a study's means, deviations and correlations: a Gaussian copula.
#
# Columns of 0 and 1 are normal variables that are cut where their released share wants it; their correlations are corrected for
# the cut, r / (phi(z) / sqrt(p (1 - p))) for each such column, which is exact where the other column is normal.

TWIN_LEAST <- 1e-6 # least share of ones, variance and eigenvalue
TWIN_MOST <- 0.99 # largest corrected correlation

study_twin <- function(study, rows = 1000, variables = NULL) {
  law <- twin_law(study, variables)
  normal <- matrix(stats::rnorm(rows * length(law$mean)), rows) %*% t(law$root)
  k <- seq_along(law$mean)
  columns <- lapply(k, function(j) if (law$flags[j]) as.numeric(normal[, j] >= -law$cut[j]) else law$mean[j] + law$spread[j] * normal[, j])
  as.data.frame(stats::setNames(columns, law$names), optional = TRUE)
}

# Means, deviations, cuts, and a root of the latent correlations.
twin_law <- function(study, variables) {
  moments <- study_moments(study)
  places <- places_of(study, variables)
  scales <- moments$scales[places]
  mean <- moments$centres[places] + scales * moments$sums[1, places] / moments$sums[1, 1]
  K <- column_covariance(moments, places) * tcrossprod(scales)
  spread <- sqrt(pmax(diag(K), TWIN_LEAST))
  flags <- as.logical(plain_vector(study$result$dummies))[places]
  share <- pmin(pmax(mean, TWIN_LEAST), 1 - TWIN_LEAST)
  cut <- stats::qnorm(share)
  kept <- ifelse(flags, stats::dnorm(cut) / sqrt(share * (1 - share)), 1)
  latent <- K / tcrossprod(spread) / tcrossprod(kept)
  latent[] <- pmin(pmax(latent, -TWIN_MOST), TWIN_MOST)
  diag(latent) <- 1
  found <- eigen(latent, symmetric = TRUE)
  root <- sweep(found$vectors, 2, sqrt(pmax(found$values, TWIN_LEAST)), `*`)
  list(names = moments$names[places], mean = mean, spread = spread, cut = cut, flags = flags, root = root / sqrt(rowSums(root^2)))
}
