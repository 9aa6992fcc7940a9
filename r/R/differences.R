# SPDX-License-Identifier: Apache-2.0
# Differences between the groups of one release: of means (sums, counts) by group, and of an analysis of variance. Free.
#
# Errors of two groups are independent. Tukey's p-values compare |d|/se * sqrt(2) with the range of as many normal values as there are
# groups, each pair with its own error, as Games and Howell do: a released error counts the noise, whose variance is known.

group_differences <- function(release, reference = NULL, adjust = c("none", "tukey", "holm", "bonferroni"), level = 0.95) {
  adjust <- match.arg(adjust)
  part <- if (identical(release$query$kind, "anova")) "mean" else "value"
  groups <- Filter(function(g) !is.null(g[[part]]), release$result$groups)
  if (!length(groups) || is.null(groups[[1]][[part]])) {
    stop("Differences of groups are of an anova, or of a mean, sum or count by group.", call. = FALSE)
  }
  levels <- vapply(groups, function(g) as.character(g$level), "")
  values <- vapply(groups, function(g) as.numeric(g[[part]]), 0)
  errors <- vapply(groups, function(g) as.numeric(g$standard_error), 0)
  if (!is.null(reference) && !reference %in% levels) stop(reference, ": the levels are ", listed(levels), ".", call. = FALSE)
  if (!is.null(reference) && adjust == "tukey") stop("tukey is of all pairs of groups: leave reference out.", call. = FALSE)
  pairs <- utils::combn(length(levels), 2)
  if (!is.null(reference)) pairs <- rbind(match(reference, levels), setdiff(seq_along(levels), match(reference, levels)))
  d <- values[pairs[2, ]] - values[pairs[1, ]]
  se <- sqrt(errors[pairs[1, ]]^2 + errors[pairs[2, ]]^2)
  reach <- switch(adjust,
    none = stats::qnorm((1 + level) / 2), tukey = stats::qtukey(level, length(levels), Inf) / sqrt(2),
    stats::qnorm(1 - (1 - level) / (2 * length(d)))
  )
  single <- 2 * stats::pnorm(-abs(d) / se)
  p <- if (adjust == "tukey") stats::ptukey(abs(d) / se * sqrt(2), length(levels), Inf, lower.tail = FALSE) else stats::p.adjust(single, adjust)
  data.frame(
    difference = d, std.error = se, conf.low = d - reach * se, conf.high = d + reach * se, p.value = p,
    row.names = paste(levels[pairs[2, ]], "-", levels[pairs[1, ]])
  )
}
