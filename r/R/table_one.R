# SPDX-License-Identifier: Apache-2.0
# Table 1 of a released description by groups: means, medians and shares, standardised differences and p-values. Free.
#
# The formulas are in the Python client's results/group_comparisons.py. Numbers: d = (m2 - m1)/s with s^2 the mean of the two variances,
# Welch's test of equal means. Levels: Wald's test of equal shares. Errors count sampling and noise.

LEAST_POOLED <- 2 # standard errors that a pooled variance must be above 0, for a difference in its units

table_one <- function(description, intervals = FALSE) {
  result <- description$result
  if (is.null(result$columns) || is.null(result$sizes)) stop("The argument is a description: describe(dataset, ..., epsilon = 1).", call. = FALSE)
  groups <- vapply(result$sizes, function(size) as.character(size$level), "")
  counted <- vapply(result$sizes, function(size) format(round(max(0, size$number)), big.mark = ",", trim = TRUE), "")
  compared <- length(groups) > 2
  rows <- list(c("Records", counted, if (compared) c("", "")))
  for (column in result$columns) {
    cells <- vapply(column$groups, function(group) described_cells(column, group, intervals), described_cells(column, column$groups[[1]], intervals))
    cells <- matrix(cells, ncol = length(groups))
    names <- names(described_cells(column, column$groups[[1]], intervals))
    said <- matrix("", length(names), if (compared) 2 else 0)
    if (compared) said[1, ] <- compared_cells(column)
    rows <- c(rows, lapply(seq_along(names), function(k) c(names[k], cells[k, ], said[k, ])))
  }
  found <- as.data.frame(do.call(rbind, rows), stringsAsFactors = FALSE)
  names(found) <- c("characteristic", groups, if (compared) c("SMD", "p"))
  found
}

# A data frame with one row a column.
table_one_tests <- function(description) {
  columns <- description$result$columns
  if (length(columns[[1]]$groups) < 3) stop("The description has no groups to compare: ask it with by.", call. = FALSE)
  found <- do.call(rbind, lapply(columns, compared_groups))
  data.frame(found, row.names = vapply(columns, function(column) column$column, ""))
}

described_figures <- function(column, group) {
  found <- if (!is.null(group$mean)) {
    c(list(mean = group$mean, `standard deviation` = group$standard_deviation), stats::setNames(group$quartiles, c("25%", "50%", "75%")))
  } else {
    stats::setNames(group$shares, plain_vector(column$levels))
  }
  if (is.null(group$missing)) found else c(found, list(missing = group$missing))
}

described_cells <- function(column, group, intervals) {
  figures <- described_figures(column, group)
  value <- function(name) short_number(figures[[name]]$value)
  if (intervals) {
    ends <- vapply(figures, function(each) {
      found <- plain_vector(each$confidence_interval)
      paste0(short_number(each$value), " [", short_number(found[1]), ", ", short_number(found[2]), "]")
    }, "")
    return(stats::setNames(ends, paste0(column$column, ", ", names(figures))))
  }
  percent <- function(share) sprintf("%.1f %%", 100 * share)
  if (!is.null(group$mean)) {
    cells <- c(paste0(value("mean"), " (", value("standard deviation"), ")"), paste0(value("50%"), " [", value("25%"), ", ", value("75%"), "]"))
    cells <- stats::setNames(cells, paste0(column$column, c(", mean (SD)", ", median")))
  } else {
    levels <- plain_vector(column$levels)
    counts <- pmax(plain_vector(group$counts)[seq_along(levels)], 0)
    shares <- vapply(group$shares, function(each) percent(each$value), "")
    cells <- stats::setNames(paste0(format(round(counts), big.mark = ",", trim = TRUE), " (", shares, ")"), paste(column$column, "=", levels))
  }
  if (!is.null(group$missing)) cells[paste0(column$column, ", missing")] <- percent(group$missing$value)
  cells
}

compared_cells <- function(column) {
  found <- compared_groups(column)
  smd <- if (is.na(found$smd)) "-" else sprintf("%.2f", found$smd)
  if (!is.na(found$std.error)) {
    half <- stats::qnorm(0.975) * found$std.error
    smd <- sprintf("%.2f [%.2f, %.2f]", found$smd, found$smd - half, found$smd + half)
  }
  c(smd, if (is.na(found$p.value)) "-" else if (found$p.value < 0.001) "<.001" else sprintf("%.3f", found$p.value))
}

compared_groups <- function(column) {
  groups <- column$groups[-1]
  numbers <- !is.null(groups[[1]]$mean)
  pairs <- utils::combn(length(groups), 2, simplify = FALSE)
  apart <- vapply(pairs, function(at) {
    if (numbers) numbers_apart(groups[[at[1]]], groups[[at[2]]]) else levels_apart(groups[[at[1]]], groups[[at[2]]], length(groups))
  }, c(0, 0))
  smd <- if (ncol(apart) == 1) apart[, 1] else c(mean(abs(apart[1, ])), NaN)
  test <- if (numbers) equal_means_of(groups, column) else equal_shares_of(groups)
  data.frame(
    smd = smd[1], std.error = smd[2], statistic = test[1], df = test[2], p.value = stats::pchisq(test[1], test[2], lower.tail = FALSE)
  )
}

# Of a deviation that noise hides, 0: its interval says how far it may be from that.
squared_deviation <- function(figure) if (is.null(figure$value)) 0 else figure$value^2

numbers_apart <- function(a, b) {
  change <- b$mean$value - a$mean$value
  error <- sqrt(a$mean$standard_error^2 + b$mean$standard_error^2)
  squares <- vapply(list(a, b), function(each) squared_deviation(each$standard_deviation), 0)
  # From the upper end of s: the lower one may be cut at 0.
  noise <- vapply(list(a, b), function(each) plain_vector(each$standard_deviation$confidence_interval)[2]^2, 0) - squares
  pooled <- mean(squares)
  wide <- sqrt(sum((noise / stats::qnorm(0.975))^2)) / 2
  if (pooled <= LEAST_POOLED * wide || pooled <= 0) return(c(NaN, NaN))
  d <- change / sqrt(pooled)
  c(d, sqrt(error^2 / pooled + (d * wide / (2 * pooled))^2))
}

equal_means_of <- function(groups, column) {
  means <- vapply(groups, function(g) g$mean$value, 0)
  errors <- vapply(groups, function(g) g$mean$standard_error, 0)
  open <- vapply(groups, function(g) identical(plain_vector(g$mean$confidence_interval), plain_vector(column$clipped)), NA)
  if (any(open) || !all(errors > 0)) return(c(NaN, length(groups) - 1))
  w <- errors^-2
  c(sum(w * (means - sum(w * means) / sum(w))^2), length(groups) - 1)
}

# Shares, and the covariance of their noise.
noisy_shares <- function(group, groups) {
  L <- length(group$shares)
  counts <- plain_vector(group$counts)[seq_len(L)]
  N <- max(sum(counts), 1)
  p <- pmax(counts, 0.5)
  p <- p / sum(p)
  A <- diag(L) - outer(p, rep(1, L))
  list(N = N, p = p, V = group$count_standard_error^2 / (1 - 1 / (L * groups)) / N^2 * tcrossprod(A))
}

sure_shares <- function(group) any(vapply(group$shares, function(each) !all(plain_vector(each$confidence_interval) == c(0, 1)), NA))

multinomial <- function(p) diag(p, length(p)) - tcrossprod(p)

levels_apart <- function(a, b, groups) {
  if (!(sure_shares(a) && sure_shares(b))) return(c(NaN, NaN))
  one <- noisy_shares(a, groups)
  other <- noisy_shares(b, groups)
  kept <- -length(one$p)
  D <- (other$p - one$p)[kept]
  S <- ((multinomial(one$p) + multinomial(other$p)) / 2)[kept, kept, drop = FALSE]
  if (length(D) == 1) {
    first <- D / sqrt(S[1, 1])
    errors <- vapply(list(a, b), function(each) {
      error <- each$shares[[1]]$standard_error
      if (is.null(error)) NaN else as.numeric(error)
    }, 0)
    slopes <- c(-1, 1) / sqrt(S[1, 1]) - first * (1 - 2 * c(one$p[1], other$p[1])) / (4 * S[1, 1])
    return(c(first, sqrt(sum((slopes * errors)^2))))
  }
  square <- sum(D * solve(S, D)) - sum(diag(solve(S, (one$V + other$V)[kept, kept])))
  c(sqrt(max(square, 0)), NaN)
}

equal_shares_of <- function(groups) {
  L <- length(groups[[1]]$shares)
  df <- max((L - 1) * (length(groups) - 1), 1)
  if (L < 2 || !all(vapply(groups, sure_shares, NA))) return(c(NaN, df))
  found <- lapply(groups, noisy_shares, groups = length(groups))
  N <- vapply(found, function(each) each$N, 0)
  pooled <- Reduce(`+`, Map(function(each, n) each$p * n, found, N)) / sum(N)
  weights <- lapply(found, function(each) solve((multinomial(pooled) / each$N + each$V)[-L, -L, drop = FALSE]))
  kept <- lapply(found, function(each) each$p[-L])
  centre <- solve(Reduce(`+`, weights), Reduce(`+`, Map(`%*%`, weights, kept)))
  away <- lapply(kept, function(p) p - drop(centre))
  c(sum(mapply(function(d, w) sum(d * (w %*% d)), away, weights)), df)
}

short_number <- function(value) if (is.null(value) || is.na(value)) "-" else format(signif(value, 4), trim = TRUE)
