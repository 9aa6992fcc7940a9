# SPDX-License-Identifier: Apache-2.0
# A study's noisy second moments, least squares from them, and errors of any function of them.
#
# The columns, the intercept first, are standardised by public centres and scales. S is their weighted mean product plus noise
# t(C) E C, E symmetric Gaussian with the standard deviation s on the diagonal and s/sqrt(2) off it; Q = t(C) C. Least squares of
# y = a'z on x = Xz is theta = solve(S_XX, S_Xy); with v = a - t(X) theta its noise has the covariance
# (s^2/2) S_XX^-1 [(v'Qv) Q_XX + (XQv)(XQv)'] S_XX^-1, and sampling sigma^2 S_XX^-1 / n for errors of one variance. The first holds
# while the gate s sqrt(2p) / lambda is at most 1/3, lambda the smallest eigenvalue of S_XX in the frame in which Q_XX is 1.
#
# Clipping: what is missing from S is judged by moments at a narrower radius (`narrow`): an estimate may have moved by
# b = ratio * A X (S - S2) v, with the noise of S2; before b is seen it has `typical`^2 times the sampling variance.
# Where persons have several rows, S counts rows for each person, and n is the number of persons over the release's design effect:
# sampling covariances are as large as they can be, whatever the rows of a person have in common. effects: columns are deviations
# from a person's means, and formulas have no intercept; stretch: by what mean squares of residuals are multiplied to be of errors.
# The same computation as the Python client's, from which docs/kinds/study.md has the derivation.

GATE <- 1 / 3 # largest noise relative to the smallest eigenvalue at which errors of first order hold
BARED <- 0.10 # share of a column's mean square in a doubling of the radius, from which on there are no intervals
STEP <- 1e-5 # of a difference quotient: entries of S are of order 1, so that rounding leaves ten digits
TINY <- .Machine$double.xmin

study_moments <- function(study) {
  if (inherits(study, "reticent_pooled")) return(study$pooled)
  result <- own_result(study)
  centres <- plain_vector(result$centres)
  scales <- plain_vector(result$scales)
  D <- diag(scales)
  D[-1, 1] <- centres[-1]
  back <- solve(D)
  S <- json_matrix(result$moments)
  lost <- result$lost
  list(
    names = study_terms(study), centres = centres, scales = scales,
    sums = back %*% S %*% t(back), root = json_matrix(result$noise$root) %*% t(back), sd = result$noise$sd,
    n = result$n / (if (is.null(result$design_effect)) 1 else result$design_effect),
    effects = !is.null(result$effects), stretch = if (is.null(result$stretch)) 1 else result$stretch, narrow = narrow_moments(result$narrow, back),
    lost = if (length(lost)) plain_vector(lost) else numeric(nrow(S))
  )
}

narrow_moments <- function(narrow, back) {
  if (!length(narrow)) return(NULL)
  list(
    sums = back %*% json_matrix(narrow$moments) %*% t(back), root = json_matrix(narrow$noise$root) %*% t(back),
    sd = narrow$noise$sd, ratio = narrow$ratio, typical = narrow$typical
  )
}

# The noise of moments: independent parts t(C) E C that are added, each with its C (root) and s (sd). Of one release it is one.
parts_of <- function(moments) if (is.null(moments$parts)) list(moments[c("root", "sd")]) else moments$parts

# The sum over a study's parts.
over_parts <- function(moments, fun) Reduce(`+`, lapply(parts_of(moments), fun))

# Q (q, q); of several parts their mean, each by its s^2.
overlap_of <- function(moments) {
  parts <- parts_of(moments)
  sds <- vapply(parts, function(part) part$sd, 0)
  largest <- if (max(sds) > 0) max(sds) else 1
  weights <- pmax(sds / largest, STEP)^2
  Reduce(`+`, Map(function(part, weight) weight * crossprod(part$root), parts, weights)) / sum(weights)
}

# How large the noise X N t(X) is as a matrix: 2v, v^2 the largest eigenvalue of the sum of (s^2/2) tr(XQX') XQX'; s sqrt(2p) where
# there is one part and XQX' = 1 (Tropp 2015, 4.1).
norm_of <- function(moments, X) {
  square <- over_parts(moments, function(part) {
    Q <- crossprod(part$root %*% t(X))
    part$sd^2 / 2 * sum(diag(Q)) * Q
  })
  if (!all(is.finite(square))) return(Inf)
  2 * sqrt(max(eigen(square, symmetric = TRUE, only.values = TRUE)$values[1], 0))
}

# The same in the frame in which the mean XQX' is 1.
frame_norm <- function(moments, frame, X) {
  if (is.null(moments$parts)) moments$sd * sqrt(2 * nrow(X)) else norm_of(moments, frame %*% X)
}

# The standard deviation of v'Nv.
deviation_of <- function(moments, v) sqrt(over_parts(moments, function(part) (part$sd * sum((part$root %*% v)^2))^2))

json_matrix <- function(rows) unname(do.call(rbind, lapply(rows, plain_vector)))

# The released weight of the records in use, over the design effect.
records_of <- function(moments) moments$n * max(moments$sums[1, 1], 1 / moments$n)

# Of y (q) on the rows of X (p, q). penalty (p, p) is added to S_XX (a ridge); the target is then the ridge's.
moment_fit <- function(moments, y, X, penalty = NULL) {
  S <- moments$sums
  gram <- X %*% S %*% t(X)
  penalised <- if (is.null(penalty)) gram else gram + penalty
  found <- spectrum(moments, penalised, X)
  norm <- frame_norm(moments, found$frame, X)
  gate <- if (found$values[1] > 0) norm / found$values[1] else Inf
  usable <- if (gate <= GATE) found$values else pmax(found$values, max(norm, TINY))
  half <- found$frame %*% found$vectors
  inverse <- half %*% (t(half) / usable)
  theta <- drop(inverse %*% (X %*% (S %*% y)))
  v <- drop(y - t(X) %*% theta)
  variance <- residual_variance(moments, v)
  spread <- if (is.null(penalty)) inverse else inverse %*% gram %*% inverse
  sampling <- variance * spread / moments$n
  list(
    theta = theta, privacy = noise_of(moments, v, X, inverse), sampling = sampling,
    leaning = leaning_of(moments, v, X, inverse, sampling), inverse = inverse, variance = variance, gate = gate,
    residual = v, weakest = half[, 1], stretch = moments$stretch
  )
}

# Increasing eigenvalues, and eigenvectors, of S_XX in the frame in which Q_XX is 1, and Q_XX^(-1/2).
spectrum <- function(moments, gram, X) {
  size <- eigen(X %*% overlap_of(moments) %*% t(X), symmetric = TRUE)
  frame <- size$vectors %*% (t(size$vectors) / sqrt(pmax(size$values, TINY)))
  found <- increasing(frame %*% gram %*% frame)
  list(values = found$values, vectors = found$vectors, frame = frame)
}

increasing <- function(matrix) {
  found <- eigen((matrix + t(matrix)) / 2, symmetric = TRUE)
  order <- rev(seq_along(found$values))
  list(values = found$values[order], vectors = found$vectors[, order, drop = FALSE])
}

gate_of <- function(moments, X) {
  found <- spectrum(moments, X %*% moments$sums %*% t(X), X)
  if (found$values[1] > 0) frame_norm(moments, found$frame, X) / found$values[1] else Inf
}

# Mean square of v'z; no less than the standard deviation of its noise.
residual_variance <- function(moments, v) {
  max(sum(v * (moments$sums %*% v)), deviation_of(moments, v)) / max(moments$sums[1, 1], 1 / moments$n)
}

# (k, k) covariance of AXNv, N the noise of `moments` (the study's, or the narrower ones), for A (k, p), X (p, q) and v (q).
noise_of <- function(moments, v, X, A) {
  over_parts(moments, function(part) {
    CX <- part$root %*% t(X)
    Cv <- drop(part$root %*% v)
    across <- drop(crossprod(CX, Cv))
    part$sd^2 / 2 * A %*% (sum(Cv^2) * crossprod(CX) + tcrossprod(across)) %*% t(A)
  })
}

leaning_of <- function(moments, v, X, A, sampling) {
  narrow <- moments$narrow
  if (is.null(narrow)) return(unmoved(nrow(A)))
  moved <- drop(A %*% (X %*% ((moments$sums - narrow$sums) %*% v)))
  list(moved = narrow$ratio * moved, noise = narrow$ratio^2 * noise_of(narrow, v, X, A), prior = narrow$typical^2 * sampling)
}

unmoved <- function(k) list(moved = numeric(k), noise = matrix(0, k, k), prior = matrix(0, k, k))

# (k) mean squares of what clipping has moved the values L theta by.
squares_of <- function(leaning, L) {
  prior <- pmax(diag(L %*% leaning$prior %*% t(L)), 0)
  noise <- pmax(diag(L %*% leaning$noise %*% t(L)), 0)
  w <- prior / pmax(prior + noise, TINY)
  (w * drop(L %*% leaning$moved))^2 + w * noise
}

# The covariance with `squares` added to its variances, and with its own correlations.
lengthened <- function(covariance, squares) {
  stretch <- sqrt(1 + squares / pmax(diag(covariance), TINY))
  covariance * tcrossprod(stretch)
}

# Names of the columns that the rows of matrices use and of which the radius takes too much for intervals.
bared_names <- function(moments, ...) {
  used <- colSums(rbind(...) != 0) > 0
  moments$names[used & moments$lost >= BARED]
}

centred_moments <- function(S) {
  mean <- S[1, -1] / S[1, 1]
  S[-1, -1, drop = FALSE] / S[1, 1] - tcrossprod(mean)
}

column_covariance <- function(moments, places) {
  chosen <- c(1, places)
  centred_moments(moments$sums[chosen, chosen, drop = FALSE])
}

# A function of the covariance of some columns, by the delta method. Sampling is by the normal law,
# 2 tr(GKHK)/n for gradients G, H in K: heavy tails have more.
delta_of <- function(moments, places, fun) {
  K <- column_covariance(moments, places)
  carried_of(moments, places, fun(K), gradients(K, fun))
}

# Values with symmetric gradients in the covariance of some columns: with their errors, as of delta_of.
carried_of <- function(moments, places, values, slopes) {
  chosen <- c(1, places)
  S <- moments$sums[chosen, chosen, drop = FALSE]
  K <- centred_moments(S)
  turned <- vapply(slopes, function(G) as.vector(G %*% K), numeric(length(K)))
  flipped <- vapply(slopes, function(G) as.vector(K %*% G), numeric(length(K)))
  sampling <- 2 / records_of(moments) * crossprod(matrix(turned, length(K)), matrix(flipped, length(K)))
  inner <- lapply(slopes, slope_in_sums, S = S)
  moved_of(moments, chosen, values, inner, sampling)
}

# Values with symmetric gradients in S, and their sampling covariance: with their noise, and what clipping may have moved.
moved_of <- function(moments, chosen, values, inner, sampling) {
  privacy <- noise_of_slopes(moments, inner, chosen)
  leaning <- delta_leaning(moments, inner, chosen, sampling)
  variance <- diag(privacy) + diag(sampling) + squares_of(leaning, diag(length(inner)))
  list(values = values, privacy = privacy, sampling = sampling, leaning = leaning, bse = sqrt(pmax(variance, 0)))
}

# The gradient in S of what has the gradient G in centred_moments(S) = S11/w - m t(m), m = s1/w.
slope_in_sums <- function(G, S) {
  w <- S[1, 1]
  m <- S[1, -1] / w
  Gm <- drop(G %*% m)
  rbind(c(sum(m * Gm) - sum(G * centred_moments(S)), -Gm), cbind(-Gm, G)) / w
}

delta_leaning <- function(moments, slopes, chosen, sampling) {
  narrow <- moments$narrow
  if (is.null(narrow)) return(unmoved(length(slopes)))
  between <- (moments$sums - narrow$sums)[chosen, chosen, drop = FALSE]
  noise <- narrow$ratio^2 * noise_of_slopes(narrow, slopes, chosen)
  moved <- vapply(slopes, function(G) sum(G * between), 0)
  list(moved = narrow$ratio * moved, noise = noise, prior = narrow$typical^2 * sampling)
}

# (k, k) covariance of <G, N> for symmetric gradients G in the columns at the places `chosen`.
noise_of_slopes <- function(moments, slopes, chosen) {
  over_parts(moments, function(part) {
    C <- part$root[, chosen, drop = FALSE]
    turned <- vapply(slopes, function(G) as.vector(C %*% G %*% t(C)), numeric(nrow(C)^2))
    part$sd^2 * crossprod(matrix(turned, nrow(C)^2))
  })
}

# For each value of the function its symmetric gradient, by central differences.
gradients <- function(M, fun) {
  m <- nrow(M)
  k <- length(fun(M))
  found <- rep(list(matrix(0, m, m)), k)
  for (i in seq_len(m)) for (j in seq_len(i)) {
    step <- matrix(0, m, m)
    step[i, j] <- step[j, i] <- STEP
    change <- (fun(M + step) - fun(M - step)) / (2 * STEP) / (if (i == j) 1 else 2)
    for (which in seq_len(k)) found[[which]][i, j] <- found[[which]][j, i] <- change[which]
  }
  found
}

# A^-1 b, also where A is nearly singular: its intervals say so.
solved <- function(A, b) solve(A, b, tol = 0)
