# SPDX-License-Identifier: Apache-2.0
# A hazard regression as R's coxph() shows it: hazard ratios, predicted survival, the test of proportional hazards.

summary.reticent_hazard_regression <- function(object, ...) {
  if (inherits(object, "reticent_several")) return(summary.reticent_several(object, ...))
  found <- summary.reticent_fit(object)
  b <- found$coefficients[, 1]
  ends <- exp(confint(object, level = 0.95))
  found$ratios <- cbind(`exp(coef)` = exp(b), `exp(-coef)` = exp(-b), `lower .95` = ends[, 1], `upper .95` = ends[, 2])
  found$ratios[!estimable(object), ] <- NA
  structure(found, class = c("summary.reticent_hazard_regression", "summary.reticent_fit"))
}

print.summary.reticent_hazard_regression <- function(x, digits = 4, ...) {
  print.summary.reticent_fit(x, ...)
  cat("Hazard ratios, 95 % intervals:\n")
  print(x$ratios, digits = digits, na.print = "-")
  cat("\n")
  if (!is.null(x$fit$result$proportionality)) print(cox_zph(x$fit))
  invisible(x)
}

autoplot.reticent_hazard_regression <- function(object, level = 0.95, ...) {
  if (inherits(object, "reticent_several")) return(NextMethod())
  found <- tidy.reticent_fit(object, conf.int = TRUE, conf.level = level, exponentiate = TRUE)
  found <- found[estimable(object), ]
  found$term <- factor(found$term, rev(found$term))
  .data <- ggplot2::.data
  ggplot2::ggplot(found, ggplot2::aes(x = .data[["estimate"]], y = .data[["term"]])) +
    ggplot2::geom_vline(xintercept = 1, linetype = "dotted") +
    ggplot2::geom_pointrange(ggplot2::aes(xmin = .data[["conf.low"]], xmax = .data[["conf.high"]])) +
    ggplot2::scale_x_log10() +
    ggplot2::labs(x = paste0("hazard ratio, ", 100 * level, " % interval"), y = NULL)
}

# Survival of new public persons, with intervals of the cumulative hazard's logarithm; nothing is charged.
predict_survival <- function(fit, newdata, times = NULL, level = 0.95, offset = NULL, stratum = NULL) {
  if (inherits(fit, "reticent_several")) return(lapply(several(fit), predict_survival, newdata = newdata, times = times, level = level, offset = offset, stratum = stratum))
  if (!inherits(fit, "reticent_hazard_regression")) stop("predict_survival() takes a hazard regression.", call. = FALSE)
  cuts <- plain_vector(fit$result$cuts)
  times <- if (is.null(times)) cuts else as.numeric(times)
  if (!length(times) || anyNA(times) || is.unsorted(times) || times[1] < 0 || max(times) > max(cuts)) {
    stop("times must be increasing, from 0 up to the last of the cuts.", call. = FALSE)
  }
  baseline <- baseline_of(fit, stratum)
  check_levels(names(coef(fit)), newdata, fit$result$baselines)
  X <- design_of(names(coef(fit)), newdata)
  X <- X - rep(unlist(baseline$reference)[names(coef(fit))], each = nrow(X))
  if (is.null(offset)) offset <- offset_of(fit$query, newdata)
  begins <- c(0, cuts[-length(cuts)])
  spent <- vapply(seq_along(cuts), function(j) pmin(pmax(times - begins[j], 0), cuts[j] - begins[j]), numeric(length(times)))
  spent <- matrix(spent, length(times)) * rep(plain_vector(baseline$hazards), each = length(times))
  total <- rowSums(spent)
  V <- joint_covariance(baseline, json_matrix(fit$result$covariance))
  z <- stats::qnorm((1 + level) / 2)
  rows <- lapply(seq_len(nrow(X)), function(i) {
    gradient <- cbind(spent / pmax(total, .Machine$double.xmin), matrix(X[i, ], length(times), ncol(X), byrow = TRUE))
    hazard <- total * exp(sum(X[i, ] * coef(fit)) + rep_len(offset, nrow(X))[i])
    width <- exp(z * sqrt(pmax(rowSums((gradient %*% V) * gradient), 0)))
    data.frame(row = i, time = times, survival = exp(-hazard), lower = exp(-hazard * width), upper = exp(-hazard / width))
  })
  structure(do.call(rbind, rows), class = c("reticent_predicted_survival", "data.frame"))
}

# Of ln hazards and coefficients; replies of earlier versions repeat the coefficients' own.
joint_covariance <- function(baseline, own) {
  J <- length(plain_vector(baseline$hazards))
  rows <- json_matrix(baseline$covariance)[seq_len(J), , drop = FALSE]
  with_coefficients <- rows[, -seq_len(J), drop = FALSE]
  rbind(rows, cbind(t(with_coefficients), own))
}

baseline_of <- function(fit, stratum) {
  strata <- fit$result$strata
  if (is.null(strata) && is.null(stratum)) return(fit$result$baseline)
  at <- match(stratum, plain_vector(strata$levels))
  if (length(at) != 1 || is.na(at)) stop("stratum must be one of: ", paste(plain_vector(strata$levels), collapse = ", "), ".", call. = FALSE)
  strata$baselines[[at]]
}

plot.reticent_predicted_survival <- function(x, ...) {
  graphics::plot(range(x$time), c(0, 1), type = "n", xlab = "time", ylab = "survival", ...)
  for (i in unique(x$row)) {
    each <- x[x$row == i, ]
    graphics::lines(each$time, each$survival, col = i)
    graphics::lines(each$time, each$lower, col = i, lty = 3)
    graphics::lines(each$time, each$upper, col = i, lty = 3)
  }
  invisible(x)
}

autoplot.reticent_predicted_survival <- function(object, ...) {
  object$row <- factor(object$row)
  .data <- ggplot2::.data
  ggplot2::ggplot(as.data.frame(object), ggplot2::aes(x = .data[["time"]], y = .data[["survival"]], colour = .data[["row"]])) +
    ggplot2::geom_ribbon(ggplot2::aes(ymin = .data[["lower"]], ymax = .data[["upper"]], fill = .data[["row"]]), alpha = 0.2, colour = NA) +
    ggplot2::geom_line() +
    ggplot2::coord_cartesian(ylim = c(0, 1))
}

# The test of a fit that was asked with proportionality = 3: a table as that of survival::cox.zph().
cox_zph <- function(fit) {
  found <- fit$result$proportionality
  if (is.null(found)) stop("Ask the fit with proportionality = 3: a test needs scores by time.", call. = FALSE)
  names <- names(coef(fit))
  p <- plain_vector(found$p_values)
  squares <- (plain_vector(found$trends) / plain_vector(found$standard_errors))^2
  squares[is.na(p)] <- NA
  all <- c(if (is.null(found$statistic)) NA else found$statistic, found$df, if (is.null(found$p_value)) NA else found$p_value)
  table <- rbind(cbind(chisq = squares, df = 1, p = p), all)
  rownames(table) <- c(names, "GLOBAL")
  of_bins <- function(field) unlist(lapply(found$bins, function(each) plain_vector(as.list(each[[field]]))))
  ends <- of_bins("end")
  by_bin <- function(field) matrix(of_bins(field), length(ends), byrow = TRUE, dimnames = list(NULL, names))
  structure(list(
    table = table, begins = c(0, ends[-length(ends)]), ends = ends, events = of_bins("events"),
    coefficients = by_bin("coefficients"), standard_errors = by_bin("standard_errors")
  ), class = "reticent_cox_zph")
}

print.reticent_cox_zph <- function(x, digits = 3, ...) {
  cat("Test of proportional hazards, bins of time up to ", paste(format(x$ends, trim = TRUE, digits = 4), collapse = ", "), ":\n", sep = "")
  print(signif(x$table, digits), na.print = "-", ...)
  invisible(x)
}

as.data.frame.reticent_cox_zph <- function(x, ...) {
  k <- ncol(x$coefficients)
  half <- stats::qnorm(0.975) * c(x$standard_errors)
  value <- c(x$coefficients)
  data.frame(
    term = rep(colnames(x$coefficients), each = length(x$ends)), begin = rep(x$begins, k), end = rep(x$ends, k),
    events = rep(x$events, k), coef = value, lower = value - half, upper = value + half
  )
}

plot.reticent_cox_zph <- function(x, term = colnames(x$coefficients)[1], ...) {
  each <- as.data.frame(x)
  each <- each[each$term == term, ]
  if (!nrow(each)) stop("term must be one of: ", paste(colnames(x$coefficients), collapse = ", "), ".", call. = FALSE)
  graphics::plot(range(each$begin, each$end), range(each$lower, each$upper, 0), type = "n", xlab = "time", ylab = paste("coefficient of", term), ...)
  graphics::rect(each$begin, each$lower, each$end, each$upper, col = "#9db4c0", border = NA)
  graphics::segments(each$begin, each$coef, each$end, each$coef, lwd = 2)
  graphics::abline(h = 0, lty = 3)
  invisible(x)
}

autoplot.reticent_cox_zph <- function(object, ...) {
  .data <- ggplot2::.data
  ggplot2::ggplot(as.data.frame(object)) +
    ggplot2::geom_rect(ggplot2::aes(xmin = .data[["begin"]], xmax = .data[["end"]], ymin = .data[["lower"]], ymax = .data[["upper"]]), fill = "#9db4c0") +
    ggplot2::geom_segment(ggplot2::aes(x = .data[["begin"]], xend = .data[["end"]], y = .data[["coef"]], yend = .data[["coef"]])) +
    ggplot2::geom_hline(yintercept = 0, linetype = "dotted") +
    ggplot2::facet_wrap("term", scales = "free_y") +
    ggplot2::labs(x = "time", y = "coefficient, 95 % interval")
}
