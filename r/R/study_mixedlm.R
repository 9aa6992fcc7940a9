# SPDX-License-Identifier: Apache-2.0
# A linear model with a random intercept of every person, from a study's moments.
#
# B and W are the sums of products between and within persons; V_W and V_B the residuals' squares in them.
#   sigma^2 = V_W/(R - P), tau^2 = (V_B - P sigma^2)/R, theta = solve(W + lambda B, ...), lambda = sigma^2/(sigma^2 + tau^2 R/P),
# solved by iteration from lambda = 1. The same computation as the Python client's _study/mixed.py, which has the derivation.

MIXED_ROUNDS <- 20 # of the iteration, which gains a digit or more in each
MIXED_TAILS <- 4 # of squares of errors: real ones have tails, and a kurtosis of 5 is allowed for
LEAST_WITHIN <- 0.05 # of the rows, those beyond one a person at the least: below, noise may be all of them

mixed_estimand <- paste(
  "Generalised least squares with a random intercept of every person, with persons beyond the study's radius downweighted.",
  "Intercepts are taken as independent of the terms, and intervals of the components allow for a kurtosis of 5."
)
mixed_hidden <- paste(
  "Not identifiable at this epsilon: the noise is too large beside what these columns have within and between persons.",
  "Use fewer columns, or ask a study at a larger epsilon."
)

study_mixedlm <- function(study, formula, constant = NULL) {
  specification <- without_instruments(study, formula)
  moments <- study_moments(study)
  if (!specification$intercept) invalid_formula("A model with a random intercept has an intercept: leave 0 out.")
  persons <- persons_of(study)
  used <- c(specification$response, specification$terms)
  parts <- mixed_parts(moments, used, if (length(constant)) places_of(study, constant))
  found <- mixed_estimates(moments, parts, persons)
  mixed_fit(study, moments, used, found, bared_names(moments, parts$D, parts$M), specification$text)
}

# P over n, the sd of its noise, and the most rows of a person.
persons_of <- function(study) {
  result <- study$result
  if (is.null(result$persons_standard_error) || !is.null(result$effects)) {
    invalid_formula("A random intercept is of persons with several rows: ask a study of a data set whose unit is a column, without effects.")
  }
  share <- min(result$persons / result$n, 1) * (1 - max(result$clipped$share, 0))
  list(share = share, sd = result$persons_standard_error / result$n, most = result$design_effect)
}

# Rows that make deviations (D) and means (M) of the response, the intercept and the terms from the standardised columns.
mixed_parts <- function(moments, used, fixed) {
  means <- vapply(used, function(p) if (p %in% fixed) p else match(paste0("mean(", moments$names[p], ")"), moments$names), 0L)
  missing <- is.na(means)
  if (any(missing)) {
    invalid_formula(
      "A random intercept needs the person's mean beside each column: ask a study with ",
      listed(paste0("mean(", moments$names[used[missing]], ")")), " among its variables too, or name columns that are the same in all ",
      "rows of a person in constant."
    )
  }
  rows <- diag(length(moments$names))
  D <- M <- matrix(0, length(used) + 1, length(moments$names))
  M[2, ] <- rows[1, ]
  for (k in seq_along(used)) {
    p <- used[k]
    at <- means[k]
    row <- if (k == 1) 1 else k + 1
    M[row, ] <- rows[at, ] * moments$scales[at] / moments$scales[p]
    M[row, 1] <- M[row, 1] + (moments$centres[at] - moments$centres[p]) / moments$scales[p]
    if (at != p) D[row, ] <- rows[p, ] - M[row, ]
  }
  if (!any(D[1, ] != 0)) invalid_formula("The response is not constant within persons: leave it out there.")
  list(D = D, M = M)
}

# W and B.
mixed_sums <- function(parts, S) list(W = parts$D %*% S %*% t(parts$D), B = parts$M %*% S %*% t(parts$M))

# The noise of W + lambda B, at most, relative to its smallest eigenvalue in the frame in which the noise is alike.
mixed_gate <- function(parts, moments, lambda) {
  D <- parts$D[-1, , drop = FALSE]
  M <- parts$M[-1, , drop = FALSE]
  Q <- overlap_of(moments)
  size <- eigen(D %*% Q %*% t(D) + lambda * M %*% Q %*% t(M), symmetric = TRUE)
  frame <- size$vectors %*% (t(size$vectors) / sqrt(pmax(size$values, TINY)))
  sums <- mixed_sums(parts, moments$sums)
  gram <- frame %*% (sums$W + lambda * sums$B)[-1, -1, drop = FALSE] %*% frame
  least <- increasing(gram)$values[1]
  if (least > 0) (norm_of(moments, frame %*% D) + lambda * norm_of(moments, frame %*% M)) / least else Inf
}

# theta, tau^2, sigma^2 and the intraclass correlation with their errors, and the gate.
mixed_estimates <- function(moments, parts, persons) {
  S <- moments$sums
  P <- persons$share
  R <- S[1, 1]
  if (R - P < LEAST_WITHIN * R) not_estimable("Too few persons have several rows to estimate a random intercept.")
  if (mixed_gate(parts, moments, 1) > GATE) not_estimable(mixed_hidden)
  values <- function(moved, share = P) {
    sums <- mixed_sums(parts, moved)
    mixed_values(sums$W, sums$B, moved[1, 1], share)
  }
  at <- values(S)
  p <- length(at) - 3
  gate <- mixed_gate(parts, moments, mixed_weight(at[p + 1], at[p + 2], R / P))
  if (gate > GATE || at[p + 2] <= 0) not_estimable(mixed_hidden)
  step <- 1e-4 * P
  turned <- (values(S, P + step) - values(S, P - step)) / (2 * step)
  sampling <- mixed_sampling(parts, moments, persons, at) + tcrossprod(turned) * persons$sd^2
  c(moved_of(moments, seq_len(nrow(S)), at, gradients(S, values), sampling), list(gate = gate))
}

mixed_values <- function(W, B, R, P) {
  lambda <- 1
  for (round in seq_len(MIXED_ROUNDS)) {
    G <- W + lambda * B
    theta <- drop(solved(G[-1, -1, drop = FALSE], G[-1, 1]))
    r <- c(1, -theta)
    sigma2 <- sum(r * (W %*% r)) / (R - P)
    tau2 <- (sum(r * (B %*% r)) - P * sigma2) / R
    lambda <- mixed_weight(tau2, sigma2, R / P)
  }
  c(theta, tau2, sigma2, tau2 / max(tau2 + sigma2, 1e-12))
}

# lambda.
mixed_weight <- function(tau2, sigma2, rows) if (sigma2 > 0) sigma2 / (sigma2 + max(tau2, 0) * rows) else 1

mixed_sampling <- function(parts, moments, persons, at) {
  sums <- mixed_sums(parts, moments$sums)
  W <- sums$W[-1, -1, drop = FALSE]
  B <- sums$B[-1, -1, drop = FALSE]
  p <- length(at) - 3
  n <- moments$n * persons$most
  R <- moments$sums[1, 1]
  P <- persons$share
  tau2 <- max(at[p + 1], 0)
  sigma2 <- max(at[p + 2], 0)
  lambda <- mixed_weight(tau2, sigma2, R / P)
  inverse <- solved(W + lambda * B, diag(p))
  found <- matrix(0, p + 3, p + 3)
  found[seq_len(p), seq_len(p)] <- inverse %*% (sigma2 * W + lambda^2 * (sigma2 + persons$most * tau2) * B) %*% inverse / n
  within <- MIXED_TAILS * sigma2^2 / (R - P) / n
  means <- MIXED_TAILS * (persons$most * R * tau2^2 + 2 * R * tau2 * sigma2 + P * sigma2^2) / n
  J <- rbind(c(1 / R, -P / R), c(0, 1))
  components <- J %*% diag(c(means, within)) %*% t(J)
  total <- max(tau2 + sigma2, 1e-12)
  J <- rbind(diag(2), c(sigma2, -tau2) / total^2)
  found[p + 1:3, p + 1:3] <- J %*% components %*% t(J)
  found
}

mixed_fit <- function(study, moments, used, found, bared, formula) {
  p <- length(used)
  model <- study_model(moments, used[1], used[-1], TRUE)
  own <- seq_len(p)
  leaning <- list(
    moved = found$leaning$moved[own], noise = found$leaning$noise[own, own, drop = FALSE],
    prior = found$leaning$prior[own, own, drop = FALSE]
  )
  fit <- list(
    theta = found$values[own], privacy = found$privacy[own, own, drop = FALSE], sampling = found$sampling[own, own, drop = FALSE],
    leaning = leaning, variance = found$values[p + 2], gate = found$gate, weakest = numeric(p), stretch = 1
  )
  result <- fit_result(model, fit, study$result$n, mixed_estimand, plain_vector(study$result$warnings), bared = bared)
  squares <- c(model$unit^2, model$unit^2, 1)
  result$components <- data.frame(
    estimate = pmax(found$values[p + 1:3] * squares, 0), std.error = found$bse[p + 1:3] * squares * (if (length(bared)) NaN else 1),
    row.names = c("var(person)", "var(residual)", "icc")
  )
  as_study_fit(study, formula, result, "reticent_study_mixedlm")
}

# Variance components and the intraclass correlation: normal intervals, of variances from 0, of the correlation within [0, 1].
variance_components <- function(fit, level = 0.95) {
  if (!inherits(fit, "reticent_study_mixedlm")) stop("variance_components() is of a fit by study_mixedlm().", call. = FALSE)
  found <- fit$result$components
  half <- stats::qnorm((1 + level) / 2) * found$std.error
  found$conf.low <- pmax(found$estimate - half, 0)
  found$conf.high <- pmin(found$estimate + half, c(Inf, Inf, 1))
  found
}

print.reticent_study_mixedlm <- function(x, ...) {
  NextMethod()
  cat("\n")
  print(variance_components(x), digits = 4)
  invisible(x)
}
