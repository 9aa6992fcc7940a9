# SPDX-License-Identifier: Apache-2.0
# A fitted model: what R's own fits answer.

coef.reticent_fit <- function(object, ...) {
  stats::setNames(plain_vector(object$result$coefficients), plain_vector(object$result$terms))
}

# Terms that a fit leaves out, as a level may have no record, are NA: no part of a prediction that is not about them.
zero_for_na <- function(values) {
  values[is.na(values)] <- 0
  values
}

vcov.reticent_fit <- function(object, ...) {
  names <- plain_vector(object$result$terms)
  rows <- lapply(object$result$covariance, plain_vector)
  matrix(unlist(rows), length(names), byrow = TRUE, dimnames = list(names, names))
}

# At the released level the released intervals; at another one normal quantiles, in the proportion in which the released
# intervals are wider than normal ones.
confint.reticent_fit <- function(object, parm, level = 0.95, ...) {
  b <- coef(object)
  given <- released_ends(object)
  ratio <- stats::qnorm((1 + level) / 2) / stats::qnorm((1 + given$level) / 2)
  ends <- b + ratio * (given$ends - b)
  ends[!estimable(object), ] <- NA
  dimnames(ends) <- list(names(b), ends_named(level))
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

# The released intervals and their level; normal ones where a release has none.
released_ends <- function(object) {
  given <- object$result$confidence_intervals
  if (!is.null(given)) return(list(ends = json_matrix(given), level = object$result$confidence_level))
  half <- stats::qnorm(0.975) * standard_errors(object)
  list(ends = unname(cbind(coef(object) - half, coef(object) + half)), level = 0.95)
}

# By how much the released intervals are wider than normal ones: the largest ratio, at least 1.
widening <- function(object) {
  given <- released_ends(object)
  ratio <- (given$ends[, 2] - given$ends[, 1]) / (2 * stats::qnorm((1 + given$level) / 2) * standard_errors(object))
  largest <- max(1, ratio[is.finite(ratio) & estimable(object)])
  if (largest > 1 + 1e-9) largest else 1 # a smaller difference is rounding
}

ends_named <- function(level) paste(format(100 * c((1 - level) / 2, (1 + level) / 2), trim = TRUE), "%")

formula.reticent_fit <- function(x, ...) stats::as.formula(r_spelling(x$query$formula))

# Huge, as of a fit whose intervals rest on the normal law.
df.residual.reticent_fit <- function(object, ...) Inf

print.reticent_fit <- function(x, ...) {
  headline(x)
  cat("Formula: ", x$query$formula, "\n\n", sep = "")
  print(coef(x), ...)
  invisible(x)
}

summary.reticent_fit <- function(object, ...) {
  errors <- standard_errors(object)
  kept <- estimable(object)
  z <- ifelse(kept, coef(object) / errors, NA)
  p <- plain_vector(object$result$p_values)
  p <- if (is.null(p)) 2 * stats::pnorm(-abs(z)) else ifelse(kept, p, NA)
  table <- cbind(
    Estimate = coef(object), `Std. Error` = errors,
    `of which privacy` = standard_errors(object, "privacy_standard_errors"),
    `z value` = z, `Pr(>|z|)` = p
  )
  structure(list(fit = object, coefficients = table), class = "summary.reticent_fit")
}

print.summary.reticent_fit <- function(x, ...) {
  headline(x$fit)
  cat("Formula: ", x$fit$query$formula, "\n", sep = "")
  cat("Records: ", format(x$fit$result$n, big.mark = ","), "\n\n", sep = "")
  stats::printCoefmat(x$coefficients, has.Pvalue = TRUE, cs.ind = 1:3, tst.ind = 4, na.print = "-", ...)
  lost <- setdiff(plain_vector(x$fit$result$terms)[!estimable(x$fit)], first_look(x$fit))
  if (length(lost)) {
    cat(strwrap(paste0(
      "Not identifiable at this epsilon (collinear, constant or too rare): ",
      paste(lost, collapse = ", "), ". Do not interpret their values."
    ), 90), sep = "\n")
  }
  if (!is.null(x$fit$result$estimand)) cat(strwrap(paste("Estimand:", x$fit$result$estimand), 90), sep = "\n")
  for (warning in plain_vector(x$fit$result$warnings)) cat(strwrap(warning, 90, prefix = "  ", initial = "- "), sep = "\n")
  cat("Standard errors count sampling and privacy noise.\n\n")
  if (inherits(x$fit, "reticent_study_fit")) cat("Free: made from the study's release, which has been charged already.\n")
  footer(x$fit)
  invisible(x)
}

anova.reticent_fit <- function(object, ...) {
  if (length(list(...))) {
    stop("Fits of different questions have independent noise: anova() takes one fit, and tests its terms.", call. = FALSE)
  }
  names <- names(coef(object))
  term <- vapply(names, term_of, "", USE.NAMES = FALSE)
  terms <- setdiff(unique(term), "Intercept")
  rows <- lapply(terms, function(each) wald(object, which(term == each & estimable(object))))
  table <- data.frame(do.call(rbind, rows), row.names = terms, check.names = FALSE)
  names(table) <- c("Df", "Chisq", "Pr(>Chisq)")
  structure(table, heading = "Wald tests of the terms", class = c("anova", "data.frame"))
}

wald <- function(object, at) {
  if (!length(at)) return(c(0, NA, NA))
  b <- coef(object)[at]
  statistic <- tryCatch(sum(b * solve(vcov(object)[at, at, drop = FALSE], b)), error = function(singular) NA)
  c(length(at), statistic, stats::pchisq(statistic, length(at), lower.tail = FALSE))
}

predict.reticent_fit <- function(object, newdata, type = c("link", "response"), se.fit = FALSE, level = NULL, ...) {
  type <- match.arg(type)
  if (missing(newdata)) stop("Give newdata, a data frame of public values: the data themselves are private.", call. = FALSE)
  if (!is.null(object$result$levels)) stop("This model has a probability for each level: make them of coef().", call. = FALSE)
  check_levels(names(coef(object)), newdata, object$result$baselines)
  X <- design_of(names(coef(object)), newdata)
  eta <- drop(X %*% zero_for_na(coef(object))) + offset_of(object$query, newdata)
  error <- sqrt(rowSums((X %*% zero_for_na(vcov(object))) * X))
  used <- abs(X) %*% as.numeric(!estimable(object)) > 0
  eta[used] <- NA
  to <- if (type == "response") inverse_link(object) else identity
  fit <- to(eta)
  if (!is.null(level)) {
    half <- stats::qnorm((1 + level) / 2) * widening(object) * error
    ends <- cbind(to(eta - half), to(eta + half))
    fit <- cbind(fit = fit, lwr = pmin(ends[, 1], ends[, 2]), upr = pmax(ends[, 1], ends[, 2]))
  }
  if (se.fit) list(fit = fit, se.fit = error) else fit
}

plot.reticent_fit <- function(x, level = 0.95, intercept = FALSE, ...) {
  ends <- confint(x, level = level)
  keep <- estimable(x) & (intercept | names(coef(x)) != "Intercept")
  if (!any(keep)) stop("No coefficient can be shown.", call. = FALSE)
  b <- coef(x)[keep]
  ends <- ends[keep, , drop = FALSE]
  at <- rev(seq_along(b))
  old <- graphics::par(mar = c(4, max(nchar(names(b))) * 0.5 + 2, 2, 1))
  on.exit(graphics::par(old))
  graphics::plot(b, at, xlim = range(ends, 0), ylim = c(0.5, length(b) + 0.5), yaxt = "n", ylab = "", pch = 19, xlab = paste0("coefficient, ", 100 * level, " % interval"), ...)
  graphics::abline(v = 0, lty = 3)
  graphics::segments(ends[, 1], at, ends[, 2], at)
  graphics::axis(2, at, names(b), las = 1)
  invisible(x)
}

tidy.reticent_fit <- function(x, conf.int = FALSE, conf.level = 0.95, exponentiate = FALSE, ...) {
  table <- summary(x)$coefficients
  found <- data.frame(
    term = rownames(table), estimate = table[, 1], std.error = table[, 2],
    statistic = table[, 4], p.value = table[, 5], row.names = NULL, stringsAsFactors = FALSE
  )
  if (conf.int) {
    ends <- confint(x, level = conf.level)
    found$conf.low <- ends[, 1]
    found$conf.high <- ends[, 2]
  }
  if (exponentiate) {
    for (name in intersect(c("estimate", "conf.low", "conf.high"), names(found))) found[[name]] <- exp(found[[name]])
  }
  found
}

glance.reticent_fit <- function(x, ...) {
  data.frame(nobs = x$result$n, epsilon = x$charged$epsilon, delta = x$charged$delta)
}

# Names of coefficients that the kind gives without intervals, whatever epsilon is: the lines of a discontinuity are to draw by.
first_look <- function(object) {
  if (identical(object$query$kind, "discontinuity")) plain_vector(object$result$terms)[-JUMP] else character()
}

# NA where a coefficient is not identifiable: an error would be read as a finding.
standard_errors <- function(object, field = "standard_errors") {
  errors <- plain_vector(object$result[[field]])
  errors[!estimable(object)] <- NA
  stats::setNames(errors, names(coef(object)))
}

estimable <- function(object) {
  given <- plain_vector(object$result$estimable)
  if (is.null(given)) rep(TRUE, length(object$result$terms)) else as.logical(given)
}

inverse_link <- function(object) {
  family <- text_or(object$result$family)
  link <- text_or(object$result$link, if (nzchar(family)) "" else "identity")
  if (!nzchar(link)) stop("The release does not say the link of its family. Ask for the fit again.", call. = FALSE)
  stats::make.link(link)$linkinv
}
