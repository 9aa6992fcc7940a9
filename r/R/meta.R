# SPDX-License-Identifier: Apache-2.0
# Meta-analysis of released estimates; errors count sampling and noise. The Python client's reticent._pooled.meta has the sources.

META_WIDE <- 100 # times the largest spread or variance that tau^2 is looked for below
META_GRID <- 400 # points at which the restricted likelihood is looked at first

meta <- function(estimates, term = NULL, method = c("REML", "fixed", "DL", "PM"), hartung_knapp = NULL) {
  method <- match.arg(method)
  if (length(estimates) < 2 || is.null(names(estimates))) stop("A meta-analysis needs the estimates of two sites or more, by name.", call. = FALSE)
  pairs <- Map(function(site, found) estimate_pair(site, found, term), names(estimates), estimates)
  y <- vapply(pairs, `[`, 0, 1)
  s <- vapply(pairs, `[`, 0, 2)
  knapp <- if (is.null(hartung_knapp)) method != "fixed" else isTRUE(hartung_knapp)
  analysed(names(estimates), unname(y), unname(s), method, knapp, if (is.null(term)) "estimate" else term)
}

analysed <- function(sites, y, s, method, knapp, name) {
  v <- s^2
  tau2 <- switch(method, fixed = 0, DL = dersimonian_laird(y, v), PM = paule_mandel(y, v), REML = restricted(y, v))
  w <- 1 / (v + tau2)
  centre <- sum(w * y) / sum(w)
  variance <- 1 / sum(w)
  df <- length(y) - 1
  if (knapp) variance <- variance * max(sum(w * (y - centre)^2) / df, 1)
  Q <- cochran(y, v, 0)
  structure(list(
    sites = sites, estimates = y, std.errors = s, estimate = centre, std.error = sqrt(variance), tau2 = tau2, Q = Q, df = df,
    p_value_Q = stats::pchisq(Q, df, lower.tail = FALSE), I2 = if (Q > 0) max(0, 1 - df / Q) else 0, method = method,
    hartung_knapp = knapp, name = name
  ), class = "reticent_meta")
}

cochran <- function(y, v, tau2) {
  w <- 1 / (v + tau2)
  sum(w * (y - sum(w * y) / sum(w))^2)
}

dersimonian_laird <- function(y, v) {
  w <- 1 / v
  max(0, (cochran(y, v, 0) - (length(y) - 1)) / (sum(w) - sum(w^2) / sum(w)))
}

most_tau2 <- function(y, v) META_WIDE * max(diff(range(y))^2, max(v))

# Q falls in tau^2.
paule_mandel <- function(y, v) {
  excess <- function(tau2) cochran(y, v, tau2) - (length(y) - 1)
  if (excess(0) <= 0) return(0)
  stats::uniroot(excess, c(0, most_tau2(y, v)), tol = .Machine$double.eps^0.75 * most_tau2(y, v))$root
}

# The maximum over tau^2 >= 0 of the restricted likelihood.
restricted <- function(y, v) {
  lost <- function(tau2) {
    w <- 1 / (v + tau2)
    -sum(log(w)) + log(sum(w)) + cochran(y, v, tau2)
  }
  grid <- c(0, most_tau2(y, v) * 10^seq(-8, 0, length.out = META_GRID))
  k <- which.min(vapply(grid, lost, 0))
  ends <- c(grid[max(k - 1, 1)], grid[min(k + 1, length(grid))])
  found <- stats::optimize(lost, ends, tol = ends[2] * 1e-10)
  if (found$objective < lost(0)) found$minimum else 0
}

# (estimate, standard error) of a pair, a fit with a term, or an estimate.
estimate_pair <- function(site, found, term) {
  if (is.null(term)) {
    pair <- if (is.list(found)) c(value_or(found$result[["value"]], NA), value_or(found$result[["standard_error"]], NA)) else found
  } else {
    at <- match(term, names(coef(found)))
    if (is.na(at)) stop(site, ": there is no ", term, "; it has ", listed(names(coef(found))), ".", call. = FALSE)
    shown <- all(is.finite(confint(found)[at, ]))
    pair <- c(coef(found)[[at]], if (shown) standard_errors(found)[[at]] else NA)
  }
  pair <- as.numeric(pair)
  if (length(pair) != 2 || !all(is.finite(pair)) || pair[2] <= 0) {
    raise(paste0(site, ": its number has no interval, so its error is not known. Leave the site out, or ask it again with a larger epsilon."), "not_estimable")
  }
  pair
}

confint.reticent_meta <- function(object, parm, level = 0.95, ...) {
  p <- (1 + level) / 2
  half <- object$std.error * if (object$hartung_knapp) stats::qt(p, object$df) else stats::qnorm(p)
  matrix(object$estimate + c(-half, half), 1, dimnames = list(object$name, paste0(format(100 * c(1 - p, p)), " %")))
}

as.data.frame.reticent_meta <- function(x, ...) {
  half <- stats::qnorm(0.975) * x$std.errors
  ends <- rbind(cbind(x$estimates - half, x$estimates + half), confint(x))
  data.frame(
    site = c(x$sites, "all"), estimate = c(x$estimates, x$estimate), std.error = c(x$std.errors, x$std.error),
    conf.low = unname(ends[, 1]), conf.high = unname(ends[, 2]), stringsAsFactors = FALSE
  )
}

print.reticent_meta <- function(x, digits = 4, ...) {
  cat("Meta-analysis of ", x$name, " (", x$method, if (x$hartung_knapp) ", Hartung-Knapp", "), errors count noise\n", sep = "")
  print(as.data.frame(x), digits = digits, row.names = FALSE)
  cat(sprintf("tau2 = %.4g, I2 = %.0f%%, Q = %.3g on %d df, p = %.3g\n", x$tau2, 100 * x$I2, x$Q, x$df, x$p_value_Q))
  invisible(x)
}

plot.reticent_meta <- function(x, ...) {
  rows <- as.data.frame(x)
  places <- rev(seq_len(nrow(rows)))
  graphics::plot(rows$estimate, places, xlim = range(rows[c("conf.low", "conf.high")]), yaxt = "n", ylab = "", xlab = x$name, pch = 19, ...)
  graphics::segments(rows$conf.low, places, rows$conf.high, places)
  graphics::axis(2, places, rows$site, las = 1)
  invisible(x)
}
