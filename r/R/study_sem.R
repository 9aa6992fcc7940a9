# SPDX-License-Identifier: Apache-2.0
# Confirmatory factors, paths and structural equations from a released study, in lavaan's words.
#
# Factors and columns v obey v = Av + e, cov(e) = P, so that they have the covariance C = B P t(B), B = (I - A)^-1, and the columns have
# Sigma, a part of C. The estimate minimises F = log|Sigma| - log|K| + tr(K Sigma^-1) - m. Its score is
# g_i = tr(Sigma^-1 (Sigma - K) Sigma^-1 Sigma_i) with the expected slope J_ij = tr(Sigma^-1 Sigma_i Sigma^-1 Sigma_j); noise is carried
# by d theta / dK = H^-1 Sigma^-1 Sigma_i Sigma^-1, H the slope of g; so is sampling, by the normal law. The same computation as the Python
# client's, from which docs/kinds/study.md has the derivation. sem_model reads models.

SCORING_ROUNDS <- 500 # of Fisher scoring; fits that exist settle within 50
SCORING_SETTLED <- 1e-22 # square of a step by the expected slope: eleven digits
SCORING_ROUNDING <- 1e-13 # of F, which is a difference of numbers of order m
HALVINGS <- 30 # of a step: below 1e-9 of it nothing is to be gained
COMPLEX_STEP <- 1e-30 # of a derivative, which has no rounding
FLAT <- 1e-9 # least eigenvalue of J with a unit diagonal, below which parameters are not told apart
COMMON <- 0.5 # share of an indicator's variance that a start gives to its factor
LEAST_FACTOR <- 1e-6 # least variance that a factor starts with
ROUNDED_VARIANCE <- 1e-9 # of the largest variance: an eigenvalue that rounding makes of 0
CLOSE_FIT <- 0.05 # RMSEA that is called close: MacCallum, Browne & Sugawara (1996), who give 90 % intervals
FURTHEST <- 1e8 # noncentrality within which an end is looked for

normal_note <- paste(
  "Sampling errors and the test of fit assume a normal law: a study has no fourth moments. Noise and clipping are counted."
)
alike_note <- paste(
  "Persons have several rows, and moments do not show how alike these are: standard errors are as large as that can make them, and",
  "there is no test of fit."
)
whole_note <- paste(
  "Structural models, reliability and agreement are about persons, not about deviations from their means: ask a study without effects."
)

study_sem <- function(study, model, std.lv = FALSE) {
  moments <- study_moments(study)
  if (moments$effects) invalid_formula(whole_note)
  read <- sem_model(model, moments$names, std.lv)
  places <- unname(read$columns)
  units <- moments$scales[places]
  K <- clear_covariance(moments, places) * tcrossprod(units)
  S <- sem_structure(read)
  if (sem_df(S) < 0) {
    invalid_formula(
      "The model has ", S$t, " parameters for ", sem_df(S) + S$t, " variances and covariances: leave some out."
    )
  }
  theta <- sem_fitted(S, sem_start(S, read, K), K)
  sem_proper(S, theta)
  shut <- bare_note(moments, places)
  alike <- !is.null(study$result$design_effect)
  carried <- sem_carried(S, theta, K, moments, places, units)
  estimates <- sem_estimates(S, theta, read, carried, length(shut) > 0)
  C <- diag(sem_total(S, theta))
  P <- sem_matrices(S, theta)$P
  explained <- with(estimates, c(rhs[op == "=~"], lhs[op == "~"]))
  r2 <- 1 - diag(P) / C
  names(r2) <- S$names
  left <- P[S$rows, S$rows, drop = FALSE]
  dimnames(left) <- list(names(read$columns), names(read$columns))
  structure(list(
    estimates = estimates, rsquared = r2[S$names %in% explained], residual_covariance = left, factors = read$factors,
    fit_indices = if (!alike && !length(shut)) sem_indices(S, theta, read, moments, places, units, K),
    notes = c(normal_note, if (alike) alike_note, shut, plain_vector(study$result$warnings))
  ), class = "reticent_study_sem")
}

not_estimable <- function(...) raise(paste0(...), "not_estimable")

sem_df <- function(S) S$m * (S$m + 1) / 2 - S$t

# Each free path or label is one parameter. A, P: free entries, as row, column and the parameter that stands there.
sem_structure <- function(model) {
  names <- c(model$factors, names(model$columns))
  v <- length(names)
  paths <- model$paths
  keys <- vapply(paths, function(p) if (nzchar(p$label)) p$label else paste(p$op, p$left, p$right, sep = "\r"), "")
  free <- vapply(paths, function(p) is.na(p$fixed), NA)
  parameter <- ifelse(free, match(keys, unique(keys[free])), NA)
  fixed <- list(A = matrix(0, v, v), P = matrix(0, v, v))
  entries <- list(A = matrix(0L, 0, 3), P = matrix(0L, 0, 3))
  for (k in seq_along(paths)) {
    path <- paths[[k]]
    part <- if (path$op == "~~") "P" else "A"
    for (at in path_places(path, names)) {
      if (free[k]) entries[[part]] <- rbind(entries[[part]], c(at, parameter[k]))
      else fixed[[part]][at[1], at[2]] <- path$fixed
    }
  }
  m <- length(model$columns)
  list(
    names = names, m = m, t = length(unique(keys[free])), rows = v - m + seq_len(m), A0 = fixed$A, P0 = fixed$P,
    A = entries$A, P = entries$P, parameter = parameter
  )
}

# Entries of A (to, from), or of P, which is symmetric.
path_places <- function(path, names) {
  left <- match(path$left, names)
  right <- match(path$right, names)
  if (path$op == "~~") return(unique(list(c(left, right), c(right, left))))
  list(if (path$op == "=~") c(right, left) else c(left, right))
}

sem_matrices <- function(S, theta) {
  A <- S$A0
  P <- S$P0
  A[S$A[, 1:2, drop = FALSE]] <- theta[S$A[, 3]]
  P[S$P[, 1:2, drop = FALSE]] <- theta[S$P[, 3]]
  list(A = A, P = P, B = solve(diag(nrow(A)) - A))
}

sem_total <- function(S, theta) {
  of <- sem_matrices(S, theta)
  of$B %*% of$P %*% t(of$B)
}

sem_implied <- function(S, theta) sem_total(S, theta)[S$rows, S$rows, drop = FALSE]

# The slope of Sigma in each parameter.
sem_slopes <- function(S, theta) {
  of <- sem_matrices(S, theta)
  rest <- of$B[S$rows, , drop = FALSE]
  C <- (of$B %*% of$P %*% t(of$B))[, S$rows, drop = FALSE]
  found <- rep(list(matrix(0, S$m, S$m)), S$t)
  for (k in seq_len(nrow(S$A))) {
    moved <- outer(rest[, S$A[k, 1]], C[S$A[k, 2], ])
    found[[S$A[k, 3]]] <- found[[S$A[k, 3]]] + moved + t(moved)
  }
  for (k in seq_len(nrow(S$P))) {
    found[[S$P[k, 3]]] <- found[[S$P[k, 3]]] + outer(rest[, S$P[k, 1]], rest[, S$P[k, 2]])
  }
  found
}

sem_score <- function(S, theta, K) {
  inverse <- solve(sem_implied(S, theta))
  middle <- inverse - inverse %*% K %*% inverse
  vapply(sem_slopes(S, theta), function(each) sum(each * middle), middle[1])
}

sem_information <- function(S, theta) {
  inverse <- solve(sem_implied(S, theta))
  turned <- lapply(sem_slopes(S, theta), function(each) inverse %*% each)
  flat <- vapply(turned, as.vector, numeric(S$m^2))
  flipped <- vapply(turned, function(each) as.vector(t(each)), numeric(S$m^2))
  crossprod(flat, flipped)
}

sem_discrepancy <- function(S, theta, K) {
  sigma <- tryCatch(sem_implied(S, theta), error = function(refusal) NULL)
  if (is.null(sigma) || !all(is.finite(sigma)) || increasing(sigma)$values[1] <= 0) return(Inf)
  ratio <- solve(sigma, K)
  sum(diag(ratio)) - as.numeric(determinant(ratio)$modulus) - S$m
}

# Loadings on an indicators' first component, and half of each variance left.
sem_start <- function(S, model, K) {
  column <- stats::setNames(seq_len(S$m), names(model$columns))
  sd <- sqrt(diag(K))
  size <- list()
  loadings <- list()
  for (factor in model$factors) {
    own <- Filter(function(p) p$op == "=~" && p$left == factor, model$paths)
    indicators <- vapply(own, function(p) p$right, "")
    known <- column[indicators[indicators %in% names(column)]]
    raw <- numeric()
    if (length(known)) {
      first <- increasing((K / tcrossprod(sd))[known, known, drop = FALSE])$vectors[, length(known)]
      raw <- stats::setNames((if (first[1] >= 0) first else -first) * sd[known] * sqrt(COMMON), names(known))
    }
    held <- Filter(function(p) !is.na(p$fixed) && p$fixed != 0, own)
    unit <- 1
    if (length(held)) unit <- (if (held[[1]]$right %in% names(raw)) raw[[held[[1]]$right]] else 1) / held[[1]]$fixed
    size[[factor]] <- max(unit^2 * max(length(known), 1), LEAST_FACTOR)
    loadings[[factor]] <- stats::setNames(ifelse(indicators %in% names(raw), raw[indicators], unit) / unit, indicators)
  }
  theta <- numeric(S$t)
  for (k in which(!is.na(S$parameter))) theta[S$parameter[k]] <- sem_begin(model$paths[[k]], K, column, size, loadings, model$outside)
  theta
}

sem_begin <- function(path, K, column, size, loadings, outside) {
  if (path$op == "=~") return(loadings[[path$left]][[path$right]])
  if (path$op != "~~") return(0)
  same <- path$left == path$right
  if (all(c(path$left, path$right) %in% names(column))) {
    entry <- K[column[[path$left]], column[[path$right]]]
    if (all(c(path$left, path$right) %in% outside)) return(entry)
    return(if (same) entry / 2 else 0)
  }
  if (same) size[[path$left]] else 0
}

sem_fitted <- function(S, theta, K) {
  value <- sem_discrepancy(S, theta, K)
  for (round in seq_len(SCORING_ROUNDS)) {
    J <- sem_information(S, theta)
    scale <- sqrt(diag(J))
    if (!all(scale > 0) || increasing(J / tcrossprod(scale))$values[1] < FLAT) {
      not_estimable(
        "The model is not identified: these columns leave a parameter open. Fix a parameter, or give each factor two or three ",
        "columns of its own."
      )
    }
    step <- -solved(J, sem_score(S, theta, K))
    if (sum(step * (J %*% step)) < SCORING_SETTLED) return(theta + step)
    length <- 1
    for (half in seq_len(HALVINGS)) {
      after <- sem_discrepancy(S, theta + length * step, K)
      if (after <= value + abs(value) * SCORING_ROUNDING + SCORING_ROUNDING) break
      length <- length / 2
    }
    theta <- theta + length * step
    value <- after
  }
  not_estimable(
    "The model does not fit these moments: its likelihood has no maximum within reach. Leave parameters out, or ask a study at a ",
    "larger epsilon."
  )
}

# (k, t) by complex steps.
complex_jacobian <- function(fun, theta) {
  columns <- lapply(seq_along(theta), function(i) {
    moved <- as.complex(theta)
    moved[i] <- moved[i] + COMPLEX_STEP * 1i
    Im(fun(moved)) / COMPLEX_STEP
  })
  do.call(cbind, columns)
}

# d theta / dK, a symmetric matrix for each parameter.
sem_movement <- function(S, theta, K) {
  H <- complex_jacobian(function(moved) sem_score(S, moved, K), theta)
  inverse <- solve(sem_implied(S, theta))
  G <- vapply(sem_slopes(S, theta), function(each) as.vector(inverse %*% each %*% inverse), numeric(S$m^2))
  moved <- matrix(G, S$m^2) %*% t(solved(H, diag(S$t)))
  lapply(seq_len(S$t), function(i) matrix(moved[, i], S$m))
}

sem_carried <- function(S, theta, K, moments, places, units) {
  slopes <- lapply(sem_movement(S, theta, K), function(each) each * tcrossprod(units))
  carried_of(moments, places, theta, slopes)
}

# A variance below 0, or correlations beyond 1 (a Heywood case).
sem_proper <- function(S, theta) {
  P <- sem_matrices(S, theta)$P
  negative <- S$names[diag(P) < 0]
  if (!length(negative) && increasing(P)$values[1] >= -ROUNDED_VARIANCE * max(diag(P))) return(invisible())
  which <- if (length(negative)) paste(paste(negative, collapse = ", "), "below 0") else "correlations beyond 1"
  not_estimable(
    "An improper solution (Heywood case): ", which, ". The noise may be too large, or the model wrong: use fewer factors, more ",
    "indicators for each, or a study at a larger epsilon."
  )
}

clear_covariance <- function(moments, places) {
  rows <- diag(length(moments$names))[c(1, places), , drop = FALSE]
  K <- column_covariance(moments, places)
  if (gate_of(moments, rows) > GATE || increasing(K)$values[1] <= 0) {
    not_estimable(
      "Not identifiable at this epsilon: the noise is too large beside what distinguishes these columns. Use fewer ",
      "columns, or ask a study at a larger epsilon."
    )
  }
  K
}

bare_note <- function(moments, places) {
  named <- bared_names(moments, diag(length(moments$names))[places, , drop = FALSE])
  if (!length(named)) return(NULL)
  paste0(
    "No intervals and no test of fit: the study's radius takes much of ", paste(named, collapse = ", "), ", whose variance is in few ",
    "large values. Ask a study of its logarithm."
  )
}

sem_estimates <- function(S, theta, model, carried, shut) {
  paths <- model$paths
  fixed <- vapply(paths, function(p) p$fixed, 0)
  labels <- vapply(paths, function(p) p$label, "")
  plain <- function(t) {
    values <- ifelse(is.na(S$parameter), fixed, t[S$parameter])
    c(values, sem_defined(model, labels, values))
  }
  standard <- function(t) {
    C <- diag(sem_total(S, t))
    P <- diag(sem_matrices(S, t)$P)
    names(C) <- names(P) <- S$names
    values <- plain(t)
    scaled <- lapply(seq_along(paths), function(k) sem_standard(paths[[k]], values[k], C, P))
    scaled <- unlist(scaled)
    c(scaled, sem_defined(model, labels, scaled))
  }
  errors <- sem_errors(carried, complex_jacobian(plain, theta))
  std <- sem_errors(carried, complex_jacobian(standard, theta))
  gone <- if (shut) NA_real_ else 1
  extra <- names(model$defined)
  table <- data.frame(
    lhs = c(vapply(paths, function(p) p$left, ""), extra), op = c(vapply(paths, function(p) p$op, ""), rep(":=", length(extra))),
    rhs = c(vapply(paths, function(p) p$right, ""), rep("", length(extra))), label = c(labels, extra), est = plain(theta),
    se = errors$all * gone, privacy_se = errors$noise * gone, std.all = standard(theta), std.se = std$all * gone, stringsAsFactors = FALSE
  )
  table$z <- ifelse(!is.na(table$se) & table$se > 0, table$est / table$se, NaN)
  table$pvalue <- 2 * stats::pnorm(-abs(table$z))
  table
}

sem_errors <- function(carried, L) {
  noise <- diag(L %*% carried$privacy %*% t(L))
  total <- noise + diag(L %*% carried$sampling %*% t(L)) + squares_of(carried$leaning, L)
  list(all = sqrt(pmax(total, 0)), noise = sqrt(pmax(noise, 0)))
}

sem_defined <- function(model, labels, values) {
  known <- as.list(stats::setNames(values, labels)[nzchar(labels)])
  for (name in names(model$defined)) known[[name]] <- eval(model$defined[[name]], known, baseenv())
  unlist(known[names(model$defined)], use.names = FALSE)
}

# By the deviations of both ends; a covariance by those of the residuals.
sem_standard <- function(path, value, C, P) {
  left <- path$left
  right <- path$right
  if (path$op == "=~") return(value * sqrt(C[[left]] / C[[right]]))
  if (path$op == "~") return(value * sqrt(C[[right]] / C[[left]]))
  if (left == right) value / C[[left]] else value / sqrt(P[[left]] * P[[right]])
}

# Indices beside the model in which columns are unrelated, but those that nothing explains.
sem_indices <- function(S, theta, model, moments, places, units, K) {
  own <- sem_misfit(S, theta, moments, places, units)
  kept <- Filter(function(p) p$op == "~~" && p$left != p$right && all(c(p$left, p$right) %in% model$outside), model$paths)
  alone <- list(factors = character(), columns = model$columns, outside = model$outside, defined = list(), paths = c(
    lapply(names(model$columns), function(name) sem_path(name, "~~", name)), lapply(kept, function(p) sem_path(p$left, "~~", p$right))
  ))
  B <- sem_structure(alone)
  base <- sem_misfit(B, sem_fitted(B, sem_start(B, alone, K), K), moments, places, units)
  n <- records_of(moments)
  df <- own$df
  excess <- own$T - own$first
  worst <- base$T - base$first
  rmsea <- function(noncentrality) if (df) sqrt(max(noncentrality, 0) / (own$a * n * df)) else 0
  c(
    npar = S$t, chisq = own$chisq, df = df, pvalue = if (df) stats::pchisq(own$chisq, df, lower.tail = FALSE) else NaN,
    cfi = if (max(excess, worst) > 0) 1 - max(excess, 0) / max(excess, worst, 0) else 1,
    tli = if (df && worst > 0) 1 - excess / df * base$df / worst else NaN, rmsea = rmsea(own$chisq - df),
    rmsea.ci.lower = rmsea(noncentral_end(own, 0.95)), rmsea.ci.upper = rmsea(noncentral_end(own, 0.05)),
    rmsea.pvalue = if (df) 1 - stats::pchisq(own$chisq, df, own$a * n * df * CLOSE_FIT^2) else NaN, srmr = own$srmr,
    noise = if (df) own$first / df else 1
  )
}

# T = N F is about N/2 |Me|^2 with e the standardised residuals and M the projection off their slopes: a sum of lambda chi^2 with
# lambda the eigenvalues of M (I + N/2 V) M, V the noise of e. Two moments of it are matched.
sem_misfit <- function(S, theta, moments, places, units) {
  K <- column_covariance(moments, places) * tcrossprod(units)
  sigma <- sem_implied(S, theta)
  back <- t(solve(chol(sigma)))
  J <- vapply(sem_slopes(S, theta), function(each) frobenius_entries(back %*% each %*% t(back)), numeric(S$m * (S$m + 1) / 2))
  Q <- qr.Q(qr(J))
  M <- diag(nrow(J)) - tcrossprod(Q)
  frame <- t(t(back) * units)
  slopes <- lapply(frobenius_units(S$m), function(U) t(frame) %*% U %*% frame)
  V <- M %*% carried_of(moments, places, numeric(length(slopes)), slopes)$privacy %*% M
  extra <- records_of(moments) / 2 * V
  df <- sem_df(S)
  first <- df + sum(diag(extra))
  second <- df + 2 * sum(diag(extra)) + sum(extra^2)
  a <- if (df) sqrt(df / second) else 1
  T <- records_of(moments) * sem_discrepancy(S, theta, K)
  list(T = T, df = df, first = first, a = a, chisq = max(a * T + df - a * first, 0), srmr = sem_srmr(K, sigma, V))
}

sem_srmr <- function(K, sigma, V) {
  m <- nrow(K)
  sd <- sqrt(diag(K))
  lower <- lower.tri(K, diag = TRUE)
  residual <- ((K - sigma) / tcrossprod(sd))[lower]
  L <- t(chol(sigma)) / sd
  turned <- vapply(frobenius_units(m), function(U) (L %*% U %*% t(L))[lower], numeric(length(residual)))
  sqrt(max(sum(residual^2) - sum((turned %*% V) * turned), 0) / length(residual))
}

# The noncentrality at which chi^2 is below what was seen with this probability.
noncentral_end <- function(own, probability) {
  if (own$df == 0 || stats::pchisq(own$chisq, own$df, lower.tail = FALSE) > 1 - probability) return(0)
  over <- function(value) stats::pchisq(own$chisq, own$df, value) - probability
  high <- 1
  while (over(high) > 0 && high < FURTHEST) high <- high * 2
  stats::uniroot(over, c(0, high), tol = 1e-10 * high)$root
}

frobenius_entries <- function(matrix) {
  lower <- lower.tri(matrix, diag = TRUE)
  (matrix * ifelse(diag(nrow(matrix)) == 1, 1, sqrt(2)))[lower]
}

# Symmetric matrices whose products with a matrix are its frobenius_entries.
frobenius_units <- function(m) {
  at <- which(lower.tri(diag(m), diag = TRUE), arr.ind = TRUE)
  lapply(seq_len(nrow(at)), function(k) {
    U <- matrix(0, m, m)
    U[at[k, 1], at[k, 2]] <- U[at[k, 2], at[k, 1]] <- if (at[k, 1] == at[k, 2]) 1 else sqrt(0.5)
    U
  })
}

coef.reticent_study_sem <- function(object, ...) {
  stats::setNames(object$estimates$est, trimws(with(object$estimates, paste0(lhs, op, rhs))))
}

confint.reticent_study_sem <- function(object, parm, level = 0.95, ...) {
  half <- stats::qnorm((1 + level) / 2) * object$estimates$se
  ends <- cbind(coef(object) - half, coef(object) + half)
  colnames(ends) <- ends_named(level)
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

as.data.frame.reticent_study_sem <- function(x, ...) {
  ends <- unname(confint(x))
  cbind(x$estimates, ci.lower = ends[, 1], ci.upper = ends[, 2])
}

print.reticent_study_sem <- function(x, ...) {
  f <- x$fit_indices
  if (length(f)) {
    cat(sprintf(
      "Chi-squared(%.0f) = %.4g, p %s; noise alone would multiply its mean by %.3g, which is corrected for\n", f["df"], f["chisq"],
      p_said(f["pvalue"]), f["noise"]
    ))
    cat(sprintf(
      "CFI %.3f, TLI %.3f, RMSEA %.3f [%.3f, %.3f], SRMR %.3f\n\n", f["cfi"], f["tli"], f["rmsea"], f["rmsea.ci.lower"], f["rmsea.ci.upper"], f["srmr"]
    ))
  }
  print(as.data.frame(x)[c("lhs", "op", "rhs", "est", "se", "pvalue", "ci.lower", "ci.upper", "std.all")], digits = 3)
  cat("\n")
  for (note in x$notes) cat(strwrap(note, 90), sep = "\n")
  invisible(x)
}

plot.reticent_study_sem <- function(x, ...) {
  shown <- x$estimates[x$estimates$op != ":=" & x$estimates$lhs != x$estimates$rhs, ]
  half <- stats::qnorm(0.975) * shown$std.se
  values <- stats::setNames(shown$std.all, paste(shown$lhs, shown$op, shown$rhs))
  draw_intervals(values, cbind(values - half, values + half), "standardised estimate, 95 % interval", ...)
  invisible(x)
}
