# SPDX-License-Identifier: Apache-2.0
# Principal components and common factors of a study's correlations.

ROUNDS <- 200 # most iterations of a communality or a rotation; both settle in some 50
SETTLED <- 1e-8
LEAST <- 1e-6 # least unique variance and least eigenvalue that a correlation matrix is taken to have

study_pca <- function(study, variables = NULL) {
  moments <- study_moments(study)
  places <- places_of(study, variables)
  K <- column_covariance(moments, places)
  eigenvalues <- delta_of(moments, places, correlation_eigenvalues)
  found <- eigen(scaled_to_one(K), symmetric = TRUE)
  largest <- apply(abs(found$vectors), 2, which.max)
  signs <- sign(found$vectors[cbind(largest, seq_along(places))])
  scale <- 1 / sqrt(pmax(diag(K), LEAST))
  noise <- norm_of(moments, diag(scale, length(scale)) %*% diag(length(moments$names))[places, , drop = FALSE])
  names <- moments$names[places]
  vectors <- sweep(found$vectors, 2, signs, `*`)
  dimnames(vectors) <- list(names, paste0("PC", seq_along(names)))
  structure(list(
    eigenvalues = found$values, bse = eigenvalues$bse, privacy_bse = roots(eigenvalues$privacy), vectors = vectors,
    explained = found$values / length(names), noise = noise, above_noise = sum(found$values > noise)
  ), class = "reticent_study_pca")
}

study_factor <- function(study, number, variables = NULL) {
  moments <- study_moments(study)
  places <- places_of(study, variables)
  if (!isTRUE(number >= 1 && number < length(places))) {
    stop("Ask for at least one factor and fewer than there are columns.", call. = FALSE)
  }
  found <- principal_axes(scaled_to_one(column_covariance(moments, places)), number)
  names <- moments$names[places]
  loadings <- found$loadings
  dimnames(loadings) <- list(names, paste0("F", seq_len(number)))
  structure(
    list(loadings = structure(loadings, class = "loadings"), uniqueness = stats::setNames(1 - found$communality, names)),
    class = "reticent_study_factor"
  )
}

# Principal-axis factors, rotated by varimax. Source: Harman (1976); Kaiser (1958).
principal_axes <- function(R, number) {
  communality <- 1 - 1 / diag(solved(positive_part(R), diag(nrow(R))))
  for (round in seq_len(ROUNDS)) {
    found <- eigen(R - diag(nrow(R)) + diag(communality), symmetric = TRUE)
    used <- seq_len(number)
    loadings <- sweep(found$vectors[, used, drop = FALSE], 2, sqrt(pmax(found$values[used], 0)), `*`)
    next_one <- pmin(rowSums(loadings^2), 1 - LEAST)
    done <- max(abs(next_one - communality)) < SETTLED
    communality <- next_one
    if (done) break
  }
  list(loadings = varimax_rotated(loadings), communality = communality)
}

varimax_rotated <- function(loadings) {
  m <- ncol(loadings)
  turn <- diag(m)
  before <- 0
  for (round in seq_len(if (m > 1) ROUNDS else 0)) {
    turned <- loadings %*% turn
    found <- svd(crossprod(loadings, turned^3 - sweep(turned, 2, colMeans(turned^2), `*`)))
    turn <- found$u %*% t(found$v)
    if (sum(found$d) < before * (1 + SETTLED)) break
    before <- sum(found$d)
  }
  turned <- loadings %*% turn
  sweep(turned, 2, ifelse(colSums(turned) < 0, -1, 1), `*`)
}

scaled_to_one <- function(K) {
  scale <- 1 / sqrt(pmax(diag(K), LEAST))
  R <- K * tcrossprod(scale)
  (R + t(R)) / 2
}

correlation_eigenvalues <- function(K) eigen(scaled_to_one(K), symmetric = TRUE, only.values = TRUE)$values

positive_part <- function(R) {
  found <- eigen(R, symmetric = TRUE)
  found$vectors %*% (t(found$vectors) * pmax(found$values, LEAST))
}

print.reticent_study_pca <- function(x, digits = 3, ...) {
  cat("Principal components of the correlations;", x$above_noise, "of", length(x$eigenvalues), "stand above the noise\n\n")
  table <- rbind(eigenvalue = x$eigenvalues, `std. error` = x$bse, `of which privacy` = x$privacy_bse, `share of variance` = x$explained)
  colnames(table) <- colnames(x$vectors)
  print(signif(table, digits))
  cat("\n")
  print(round(x$vectors, digits))
  invisible(x)
}

plot.reticent_study_pca <- function(x, ...) {
  at <- seq_along(x$eigenvalues)
  half <- stats::qnorm(0.975) * x$bse
  graphics::plot(
    at, x$eigenvalues,
    type = "b", pch = 19, xaxt = "n", xlab = "component", ylab = "eigenvalue", ylim = range(0, x$eigenvalues - half, x$eigenvalues + half), ...
  )
  graphics::axis(1, at)
  graphics::segments(at, x$eigenvalues - half, at, x$eigenvalues + half)
  graphics::abline(h = 1, lty = 3)
  invisible(x)
}

print.reticent_study_factor <- function(x, ...) {
  print(x$loadings, ...)
  cat("\nUniqueness:\n")
  print(round(x$uniqueness, 3))
  invisible(x)
}
