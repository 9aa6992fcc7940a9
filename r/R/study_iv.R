# SPDX-License-Identifier: Apache-2.0
# Two-stage least squares, and Anderson-Rubin sets that hold with weak instruments.
#
# y ~ d + w | w + z: w is exogenous, d is not, z are instruments. For one endogenous d, y - d b0 regressed on (w, z) has
# z-coefficients that are 0 under b = b0, so that AR(b0) = theta_z' V_zz^-1 theta_z is chi-squared with as many degrees of freedom
# as instruments; V counts sampling and noise, and is lengthened by what clipping may have moved. The set of b0 that are not
# rejected has its level however weak the instruments are, and may be unbounded. Source: Anderson & Rubin (1949).

ANGLES <- 361 # candidates b0 = b + tau tan(phi), by half degrees; ends are found by root finding between them
WEAK <- 10 # first-stage F below which intervals are not reliable

study_iv <- function(study, formula) {
  specification <- read_specification(study, formula)
  if (is.null(specification$instruments)) {
    invalid_formula("Write the instruments after '|', such as 'y ~ x + w | z + w'.")
  }
  endogenous <- setdiff(specification$terms, specification$instruments)
  excluded <- setdiff(specification$instruments, specification$terms)
  if (!length(endogenous) || length(excluded) < length(endogenous)) {
    invalid_formula(
      "Name at least one regressor that is not among the instruments, and at least as many instruments that are ",
      "no regressors."
    )
  }
  moments <- study_moments(study)
  structural <- model_of(moments, specification)
  Z <- study_model(moments, specification$response, specification$instruments, specification$intercept)$X
  at <- as.integer(specification$intercept && !moments$effects) + match(excluded, specification$instruments)
  columns <- lapply(endogenous, study_model, moments = moments, terms = integer(), intercept = specification$intercept)
  first <- lapply(columns, first_stage_of, moments = moments, Z = Z, at = at)
  names(first) <- moments$names[endogenous]
  bared <- bared_names(moments, structural$y, structural$X, Z)
  result <- fit_result(
    structural, two_stage(moments, structural, Z), study$result$n,
    "Two-stage least squares, with records beyond the radius downweighted.",
    c(weak_warnings(first), plain_vector(study$result$warnings)),
    bared = bared
  )
  result$first_stage <- first
  if (length(endogenous) == 1) {
    y <- study_model(moments, specification$response, integer(), specification$intercept)
    result$anderson_rubin <- if (length(bared)) whole_line() else anderson_rubin_set(moments, Z, at, y, columns[[1]])
  }
  as_study_fit(study, specification$text, result, "reticent_study_iv")
}

first_stage <- function(fit) {
  if (!inherits(fit, "reticent_study_iv")) stop("first_stage() is of a fit by study_iv().", call. = FALSE)
  found <- fit$result$first_stage
  data.frame(
    F = vapply(found, function(each) each$F, 0), p.value = vapply(found, function(each) each$pvalue, 0), row.names = names(found)
  )
}

anderson_rubin <- function(fit) {
  if (!inherits(fit, "reticent_study_iv")) stop("anderson_rubin() is of a fit by study_iv().", call. = FALSE)
  found <- fit$result$anderson_rubin
  if (is.null(found)) raise("An Anderson-Rubin set is given for one endogenous column.", "not_estimable")
  found
}

whole_line <- function() matrix(c(-Inf, Inf), 1, dimnames = list(NULL, c("lower", "upper")))

weak_warnings <- function(first) {
  weak <- Filter(function(each) each$F < WEAK, first)
  values <- vapply(weak, function(each) formatC(each$F, digits = 2, format = "g"), "")
  if (length(weak)) sprintf("The instruments say little of %s (F = %s): use anderson_rubin().", names(weak), values)
}

two_stage <- function(moments, structural, Z) {
  S <- moments$sums
  XZ <- structural$X %*% S %*% t(Z)
  ZZ <- pseudoinverse(Z %*% S %*% t(Z))
  bread <- pseudoinverse(XZ %*% ZZ %*% t(XZ))
  A <- bread %*% XZ %*% ZZ
  theta <- drop(A %*% (Z %*% (S %*% structural$y)))
  v <- drop(structural$y - t(structural$X) %*% theta)
  variance <- residual_variance(moments, v)
  sampling <- variance * bread / moments$n
  list(
    theta = theta, privacy = noise_of(moments, v, Z, A), sampling = sampling,
    leaning = leaning_of(moments, v, Z, A, sampling), inverse = bread, variance = variance, stretch = moments$stretch,
    gate = gate_of(moments, Z), residual = v, weakest = rep(1, length(theta))
  )
}

# Of a symmetric matrix, without eigenvalues that rounding alone makes.
pseudoinverse <- function(M) {
  found <- eigen((M + t(M)) / 2, symmetric = TRUE)
  kept <- abs(found$values) > 1e-15 * max(abs(found$values))
  vectors <- found$vectors[, kept, drop = FALSE]
  vectors %*% (t(vectors) / found$values[kept])
}

# theta_z' V_zz^-1 theta_z for coefficients theta on the rows of Z with the residual v; at: the excluded instruments' places.
instrument_statistic <- function(moments, Z, at, theta, v, inverse) {
  sampling <- residual_variance(moments, v) * inverse / moments$n
  squares <- squares_of(leaning_of(moments, v, Z, inverse, sampling), diag(length(theta)))
  V <- lengthened(sampling + noise_of(moments, v, Z, inverse), squares)
  sum(theta[at] * solved(V[at, at, drop = FALSE], theta[at]))
}

first_stage_of <- function(d, moments, Z, at) {
  fit <- moment_fit(moments, d$y, Z)
  statistic <- instrument_statistic(moments, Z, at, fit$theta, fit$residual, fit$inverse)
  list(F = statistic / length(at), pvalue = stats::pchisq(statistic, length(at), lower.tail = FALSE))
}

# The 95 % set by rows of (lower, upper); everything where the gate of the instruments is shut.
anderson_rubin_set <- function(moments, Z, at, y, d) {
  first <- moment_fit(moments, y$y, Z)
  second <- moment_fit(moments, d$y, Z)
  if (first$gate > GATE) return(whole_line())
  limit <- stats::qchisq(0.95, length(at))
  # AR - limit of y cos(phi) - d sin(phi); phi = -pi/2 and pi/2 are b0 = -Inf and Inf.
  rejected <- function(angle) {
    theta <- cos(angle) * first$theta - sin(angle) * second$theta
    v <- cos(angle) * first$residual - sin(angle) * second$residual
    instrument_statistic(moments, Z, at, theta, v, first$inverse) - limit
  }
  set_inside(rejected, y$unit / d$unit)
}

set_inside <- function(rejected, unit) {
  angles <- seq(-pi / 2, pi / 2, length.out = ANGLES)
  inside <- vapply(angles, rejected, 0) <= 0
  changes <- which(diff(inside) != 0)
  ends <- vapply(changes, function(k) {
    tan(stats::uniroot(rejected, angles[k + 0:1], tol = .Machine$double.eps)$root) * unit
  }, 0)
  if (inside[1]) ends <- c(-Inf, ends)
  if (inside[ANGLES]) ends <- c(ends, Inf)
  matrix(ends, ncol = 2, byrow = TRUE, dimnames = list(NULL, c("lower", "upper")))
}
