# SPDX-License-Identifier: Apache-2.0
# A specification curve: one coefficient over many formulas of one study (Simonsohn, Simmons & Nelson 2020).

study_robustness <- function(study, base, variations, term = NULL) {
  base <- formula_of(base)
  variations <- vapply(if (inherits(variations, "formula")) list(variations) else as.list(variations), formula_of, "")
  whole <- grepl("~", variations, fixed = TRUE)
  formulas <- c(base, ifelse(whole, variations, paste(base, trimws(variations))))
  fits <- lapply(formulas, function(text) study_ols(study, text))
  slopes <- setdiff(names(coef(fits[[1]])), "Intercept")
  names <- study_terms(study)
  chosen <- if (is.null(term)) slopes[1] else names[one_place(names, term)]
  if (!all(vapply(fits, function(fit) chosen %in% names(coef(fit)), NA))) invalid_formula("Every specification needs ", chosen, ".")
  structure(list(term = chosen, formulas = formulas, fits = fits), class = "reticent_study_robustness")
}

# One row a formula, the base first. Intervals are nominal, one formula at a time; NA where a formula has none.
as.data.frame.reticent_study_robustness <- function(x, ..., level = 0.95) {
  rows <- lapply(x$fits, function(fit) {
    ends <- confint(fit, x$term, level = level)
    table <- summary(fit)$coefficients[x$term, ]
    data.frame(
      estimate = table[["Estimate"]], std.error = table[["Std. Error"]], conf.low = ends[1], conf.high = ends[2],
      p.value = table[["Pr(>|z|)"]]
    )
  })
  data.frame(formula = x$formulas, do.call(rbind, rows), stringsAsFactors = FALSE)
}

print.reticent_study_robustness <- function(x, ...) {
  cat(x$term, " by specification, 95 % intervals\n\n", sep = "")
  table <- as.data.frame(x)
  cat(sprintf("%10.4g  [%.4g, %.4g]  %s\n", table$estimate, table$conf.low, table$conf.high, table$formula), sep = "")
  invisible(x)
}

# Coefficients in increasing order, named by how they vary the base, which is above.
plot.reticent_study_robustness <- function(x, level = 0.95, ...) {
  table <- as.data.frame(x, level = level)
  base <- x$formulas[1]
  varied <- startsWith(x$formulas, base)
  labels <- ifelse(varied, trimws(substring(x$formulas, nchar(base) + 1)), x$formulas)
  labels[!nzchar(labels)] <- "as above"
  order <- order(table$estimate)
  values <- stats::setNames(table$estimate, labels)[order]
  draw_intervals(values, as.matrix(table[order, c("conf.low", "conf.high")]), paste0(x$term, ", ", 100 * level, " % interval"), main = base, at_line = table$estimate[1], ...)
  invisible(x)
}

# One row each, the first above: a point and its interval.
draw_intervals <- function(values, ends, label, at_line = 0, ...) {
  rows <- rev(seq_along(values))
  old <- graphics::par(mar = c(4, max(nchar(names(values))) * 0.5 + 2, 2, 1))
  on.exit(graphics::par(old))
  graphics::plot(
    values, rows,
    xlim = range(ends, values, at_line, na.rm = TRUE), ylim = c(0.5, length(values) + 0.5), yaxt = "n", ylab = "", pch = 19, xlab = label, ...
  )
  graphics::abline(v = at_line, lty = 3)
  graphics::segments(ends[, 1], rows, ends[, 2], rows)
  graphics::axis(2, rows, names(values), las = 1)
}
