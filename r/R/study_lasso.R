# SPDX-License-Identifier: Apache-2.0
# The lasso's path from a Gram matrix, by coordinate descent (Friedman, Hastie & Tibshirani 2010).

PATH_POINTS <- 60 # values of the penalty
PATH_LEAST <- 1e-3 # down to this share of the one at which every slope is 0
SWEEPS <- 2000
PATH_SETTLED <- 1e-9
GRAM_LEAST <- 1e-9

study_lasso <- function(study, formula) {
  specification <- with_intercept(study, formula, "The lasso's path")
  moments <- study_moments(study)
  if (moments$effects) invalid_formula("The lasso's path is for formulas with an intercept.")
  model <- model_of(moments, specification)
  found <- lasso_path(moments, model)
  colnames(found$coefficients) <- model$names
  structure(c(found, list(formula = specification$text, noise = lasso_noise(moments, model))), class = "reticent_study_lasso")
}

# Slopes are penalised in standard deviations of their columns, the intercept is not.
lasso_path <- function(moments, model) {
  S <- moments$sums
  gram <- model$X %*% S %*% t(model$X)
  cross <- drop(model$X %*% (S %*% model$y))
  G <- centred_moments(gram)
  g <- cross[-1] / gram[1, 1] - gram[-1, 1] * cross[1] / gram[1, 1]^2
  size <- sqrt(pmax(diag(G), GRAM_LEAST))
  found <- eigen(G / tcrossprod(size), symmetric = TRUE)
  G <- found$vectors %*% (t(found$vectors) * pmax(found$values, GRAM_LEAST))
  g <- g / size
  penalties <- (if (length(g)) max(abs(g)) else 1) * PATH_LEAST^(seq(0, PATH_POINTS - 1) / (PATH_POINTS - 1))
  theta <- numeric(length(g))
  path <- matrix(0, PATH_POINTS, length(model$names))
  for (k in seq_along(penalties)) {
    theta <- descended(G, g, penalties[k], theta)
    slopes <- theta / size
    first <- (cross[1] - sum(gram[1, -1] * slopes)) / gram[1, 1]
    path[k, ] <- drop(model$L %*% c(first, slopes)) + model$offset
  }
  list(penalties = penalties, coefficients = path)
}

descended <- function(G, g, penalty, theta) {
  for (sweep in seq_len(SWEEPS)) {
    before <- theta
    for (j in seq_along(g)) {
      rest <- g[j] - sum(G[j, ] * theta) + G[j, j] * theta[j]
      theta[j] <- sign(rest) * max(abs(rest) - penalty, 0) / max(G[j, j], GRAM_LEAST)
    }
    if (!length(g) || max(abs(theta - before)) < PATH_SETTLED) break
  }
  theta
}

# The penalty below which what enters is likely to be noise: the largest of p slopes' noise in a correlation with the residual.
lasso_noise <- function(moments, model) {
  fit <- moment_fit(moments, model$y, model$X)
  slopes <- model$X[-1, , drop = FALSE]
  noisy <- diag(noise_of(moments, fit$residual, slopes, diag(nrow(slopes))))
  sqrt(max(noisy, 0) + fit$variance / records_of(moments)) * sqrt(2 * log(max(nrow(slopes), 2)))
}

coef.reticent_study_lasso <- function(object, ...) object$coefficients

as.data.frame.reticent_study_lasso <- function(x, ...) {
  data.frame(penalty = x$penalties, x$coefficients, check.names = FALSE)
}

print.reticent_study_lasso <- function(x, ...) {
  cat("Lasso of ", x$formula, "\n", sep = "")
  clear <- x$penalties >= x$noise
  entered <- colnames(x$coefficients)[colSums(x$coefficients[clear, , drop = FALSE] != 0) > 0]
  cat(strwrap(paste0("Enter above the noise (penalty ", format_value(x$noise), "): ", listed(setdiff(entered, "Intercept"), "none"), "."), 90), sep = "\n")
  cat("No intervals: they would have to know of the selection.\n")
  invisible(x)
}

plot.reticent_study_lasso <- function(x, ...) {
  slopes <- x$coefficients[, colnames(x$coefficients) != "Intercept", drop = FALSE]
  colours <- grDevices::hcl.colors(max(ncol(slopes), 2), "Dark 3")
  graphics::matplot(x$penalties, slopes, type = "l", lty = 1, col = colours, log = "x", xlab = "penalty", ylab = "coefficient", ...)
  graphics::abline(v = x$noise, lty = 2)
  graphics::legend("topright", c(colnames(slopes), "noise"), col = c(colours[seq_len(ncol(slopes))], "black"), lty = c(rep(1, ncol(slopes)), 2), bty = "n")
  invisible(x)
}
