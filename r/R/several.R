# SPDX-License-Identifier: Apache-2.0
# Answers that hold several fits: quantile regressions, one a tau, and fits by group.

# The fits of a release, by name: levels of a group, quantiles, or both as "level, tau". NULL: it holds none.
fits_of <- function(release, parts = release$result) {
  groups <- parts[["groups"]]
  if (is.list(groups) && length(groups)) {
    inner <- lapply(groups, function(each) fits_of(release, each))
    if (any(vapply(inner, is.null, NA))) return(NULL)
    levels <- vapply(groups, function(each) said(each$level), "")
    return(unlist(Map(function(fits, level) stats::setNames(fits, if (length(fits) == 1 && is.null(names(fits))) level else paste0(level, ", ", names(fits))), inner, levels, USE.NAMES = FALSE), recursive = FALSE))
  }
  if (!is.null(parts[["fits"]])) {
    taus <- vapply(parts[["fits"]], function(each) said(each$tau), "")
    return(stats::setNames(lapply(parts[["fits"]], one_fit, release = release), taus))
  }
  if (!is.null(parts[["coefficients"]])) list(one_fit(parts, release))
}

one_fit <- function(result, release) {
  release$result <- result
  structure(release, class = c(class(release)[1], "reticent_fit", "reticent_release"))
}

several <- function(object) {
  found <- fits_of(object)
  if (is.null(found)) stop("This answer holds no coefficients.", call. = FALSE)
  found
}

coef.reticent_several <- function(object, ...) {
  found <- lapply(several(object), coef)
  if (length(found) == 1) found[[1]] else if (length(unique(lapply(found, names))) == 1) do.call(cbind, found) else found
}

# Lists by the fits' names; of one fit what that fit answers.
each_fit <- function(object, what, ...) {
  found <- lapply(several(object), what, ...)
  if (length(found) == 1) found[[1]] else found
}

confint.reticent_several <- function(object, parm, level = 0.95, ...) {
  wanted <- if (missing(parm)) TRUE else parm
  each_fit(object, function(fit) confint(fit, level = level)[wanted, , drop = FALSE])
}

vcov.reticent_several <- function(object, ...) each_fit(object, vcov)

predict.reticent_several <- function(object, newdata, ...) each_fit(object, predict, newdata = newdata, ...)

summary.reticent_several <- function(object, ...) structure(lapply(several(object), summary), class = "summary.reticent_several")

print.summary.reticent_several <- function(x, ...) {
  for (name in names(x)) {
    cat("== ", name, "\n", sep = "")
    print(x[[name]], ...)
    cat("\n")
  }
  invisible(x)
}

tidy.reticent_several <- function(x, ...) {
  found <- several(x)
  tables <- Map(function(fit, name) cbind(data.frame(fit = name, stringsAsFactors = FALSE), tidy.reticent_fit(fit, ...)), found, names(found))
  do.call(rbind, unname(tables))
}

glance.reticent_several <- function(x, ...) glance.reticent_fit(x, ...)

# Intervals of every coefficient, a row for each fit.
plot.reticent_several <- function(x, level = 0.95, ...) {
  found <- several(x)
  terms <- setdiff(names(coef(found[[1]])), "Intercept")
  ends <- lapply(found, confint, level = level)
  old <- graphics::par(mfrow = grDevices::n2mfrow(length(terms)))
  on.exit(graphics::par(old))
  for (term in terms) {
    low <- vapply(ends, function(each) each[term, 1], 0)
    high <- vapply(ends, function(each) each[term, 2], 0)
    at <- seq_along(found)
    b <- vapply(found, function(fit) coef(fit)[[term]], 0)
    b[is.na(low)] <- NA
    graphics::plot(at, b, xaxt = "n", pch = 19, ylim = finite_range(low, high, 0), xlab = "", ylab = term, ...)
    graphics::axis(1, at, names(found))
    graphics::segments(at, low, at, high)
    graphics::abline(h = 0, lty = 3)
  }
  invisible(x)
}

finite_range <- function(...) {
  values <- c(...)
  range(values[is.finite(values)])
}
