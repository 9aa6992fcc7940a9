# SPDX-License-Identifier: Apache-2.0
# Mediation: how much of x's effect on y goes through m. Linear, by the delta method.
#
# m = a x + ..., y = b m + c x + ...: indirect ab, direct c, total ab + c (Baron & Kenny 1986; Sobel 1982).

study_mediation <- function(study, x, mediator, y, controls = character()) {
  names <- study_terms(study)
  places <- c(one_place(names, x), one_place(names, mediator), one_place(names, y))
  fixed <- places_of(study, controls)
  different(places, fixed)
  moments <- study_moments(study)
  found <- delta_of(moments, c(places, fixed), mediated)
  to <- moments$scales[places]
  units <- c(rep(to[3] / to[1], 3), to[2] / to[1], to[3] / to[2])
  structure(list(
    x = names[places[1]], mediator = names[places[2]], y = names[places[3]], controls = names[fixed],
    effects = data.frame(
      estimate = found$values * units, std.error = found$bse * units, privacy_std.error = roots(found$privacy) * units,
      row.names = c("indirect", "direct", "total", "a", "b")
    )
  ), class = "reticent_study_mediation")
}

# Five effects of the covariance of (x, m, y, controls).
mediated <- function(K) {
  rest <- seq_len(nrow(K))[-(1:3)]
  first <- c(1, rest)
  second <- c(1, 2, rest)
  a <- solved(K[first, first, drop = FALSE], K[first, 2])[1]
  slopes <- solved(K[second, second, drop = FALSE], K[second, 3])
  c(a * slopes[2], slopes[1], a * slopes[2] + slopes[1], a, slopes[2])
}

coef.reticent_study_mediation <- function(object, ...) stats::setNames(object$effects$estimate, rownames(object$effects))

confint.reticent_study_mediation <- function(object, parm, level = 0.95, ...) {
  half <- stats::qnorm((1 + level) / 2) * object$effects$std.error
  ends <- cbind(coef(object) - half, coef(object) + half)
  colnames(ends) <- ends_named(level)
  if (missing(parm)) ends else ends[parm, , drop = FALSE]
}

as.data.frame.reticent_study_mediation <- function(x, ...) {
  ends <- unname(confint(x))
  p <- 2 * stats::pnorm(-abs(x$effects$estimate) / x$effects$std.error)
  cbind(x$effects, conf.low = ends[, 1], conf.high = ends[, 2], p.value = p)
}

print.reticent_study_mediation <- function(x, ...) {
  cat("Mediation of ", x$x, " on ", x$y, " by ", x$mediator, if (length(x$controls)) paste(", given", listed(x$controls)), "\n", sep = "")
  print(as.data.frame(x)[c("estimate", "std.error", "conf.low", "conf.high")], digits = 4)
  invisible(x)
}

plot.reticent_study_mediation <- function(x, ...) {
  draw_intervals(coef(x), confint(x), "effect, 95 % interval", ...)
  invisible(x)
}
