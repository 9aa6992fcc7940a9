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

# Survival curves as steps, with dotted intervals and the numbers at risk below; a colour for each group.
plot.reticent_survival_curve <- function(x, at_risk = TRUE, ...) {
  groups <- x$result[["groups"]]
  curves <- if (is.null(groups)) list(x$result) else groups
  horizon <- x$result$horizon
  if (is.null(horizon)) horizon <- max(0, unlist(lapply(curves, `[[`, "times")))
  if (at_risk) {
    kept <- graphics::par(mar = graphics::par("mar") + c(1 + length(curves), 2, 0, 0), xpd = FALSE)
    on.exit(graphics::par(kept))
  }
  graphics::plot(NULL, xlim = c(0, horizon), ylim = c(0, 1), xlab = "time", ylab = "survival", ...)
  for (i in seq_along(curves)) draw_curve(curves[[i]], i)
  if (at_risk) risk_lines(curves, pretty(c(0, horizon), 4))
  if (!is.null(groups)) graphics::legend("bottomleft", vapply(groups, function(each) said(each$level), ""), col = seq_along(groups), lwd = 2, bty = "n")
  invisible(x)
}

draw_curve <- function(curve, colour) {
  if (!length(curve$times)) return(invisible())
  times <- c(0, plain_vector(curve$times))
  ends <- json_matrix(curve$confidence_intervals)
  graphics::lines(times, c(1, plain_vector(curve$survival)), type = "s", col = colour, lwd = 2)
  for (side in 1:2) graphics::lines(times, c(1, ends[, side]), type = "s", col = colour, lty = 3)
}

# A line of numbers at risk for each curve, below the axis of time.
risk_lines <- function(curves, ticks) {
  ticks <- ticks[ticks <= graphics::par("usr")[2]]
  graphics::mtext("number at risk", side = 1, line = 4, at = ticks[1], adj = 0, cex = 0.8)
  for (i in seq_along(curves)) {
    graphics::mtext(said(curves[[i]]$level), side = 1, line = 4 + i, at = ticks[1], adj = 1.8, cex = 0.8, col = i)
    graphics::mtext(numbers_at_risk(curves[[i]], ticks), side = 1, line = 4 + i, at = ticks, cex = 0.8)
  }
}

# At each time, of the interval that it lies in; empty beyond the last one.
numbers_at_risk <- function(curve, times) {
  n <- pmax(plain_vector(curve$at_risk), 0)[findInterval(times, c(0, plain_vector(curve$times)))]
  ifelse(is.na(n), "", format(round(n), big.mark = ",", trim = TRUE))
}
