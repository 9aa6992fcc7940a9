# SPDX-License-Identifier: Apache-2.0
# What is made of a released staggered_did for nothing: effects over time with a simultaneous band, and intervals that allow for trends
# which are not parallel (Rambachan & Roth 2023). The same computation as the Python client's results/honest.py, which has the derivation.

REFERENCE <- -1 # time since treatment at which effects are 0
PENALTIES <- 10^seq(-2, 2, length.out = 9) # of squared bias against variance, which is all that the search varies
HONEST_ROUNDS <- 30 # of weighing again; more shorten no interval by a hundredth
LEAST_PART <- 1e-9 # of a weight's part in the bias, so that none is divided by 0
HALVINGS <- 24 # of the bracket of a breakdown value

dynamic_effects <- function(release, control = NULL, level = 0.95) {
  found <- effects_over_time(release, control)
  errors <- sqrt(diag(found$covariance))
  half <- stats::qnorm((1 + level) / 2) * errors
  band <- critical_value(found$covariance, level) * errors
  data.frame(
    time = found$times, effect = found$values, std.error = errors, privacy.std.error = found$privacy, conf.low = found$values - half,
    conf.high = found$values + half, band.low = found$values - band, band.high = found$values + band
  )
}

honest_did <- function(release, M, trends = c("smoothness", "relative"), at = NULL, level = 0.95, control = NULL) {
  trends <- match.arg(trends)
  if (!isTRUE(M >= 0)) stop("M must not be negative", call. = FALSE)
  honest_interval(without_gaps(effects_over_time(release, control)), M, trends, at, 1 - level)
}

# The largest M at which the interval leaves 0 out; 0 where none does.
honest_breakdown <- function(release, trends = c("smoothness", "relative"), at = NULL, level = 0.95, control = NULL) {
  trends <- match.arg(trends)
  effects <- without_gaps(effects_over_time(release, control))
  tells <- function(M) {
    ends <- honest_interval(effects, M, trends, at, 1 - level)
    ends[[1]] > 0 || ends[[2]] < 0
  }
  if (!tells(0)) return(0)
  low <- 0
  high <- max(sqrt(diag(effects$covariance)))
  while (tells(high)) {
    low <- high
    high <- 2 * high
  }
  for (halving in seq_len(HALVINGS)) {
    middle <- (low + high) / 2
    if (tells(middle)) low <- middle else high <- middle
  }
  low
}

# Of the named controls, else of the never treated where there are effects with them.
effects_over_time <- function(release, control = NULL) {
  if (!identical(release$query$kind, "staggered_did")) stop("The first argument is a release of staggered_did().", call. = FALSE)
  known <- c("never", "not_yet")
  names <- if (is.null(control)) known else match.arg(control, known)
  told <- Filter(function(name) !is.null(release$result[[name]]), names)
  if (!length(told)) {
    stop("no effect could be distinguished from the noise with these controls: see warnings, or take the other ones", call. = FALSE)
  }
  found <- release$result[[told[1]]]$dynamic
  list(
    times = plain_vector(found$at), values = vapply(found$effects, function(each) each$value, 0),
    privacy = vapply(found$effects, function(each) each$privacy_standard_error, 0), covariance = json_matrix(found$covariance)
  )
}

without_gaps <- function(effects) {
  every <- sort(c(effects$times, REFERENCE))
  if (!identical(as.numeric(every), as.numeric(seq(every[1], every[length(every)]))) || every[1] == REFERENCE) {
    stop("the times since treatment need at least one before -1, and none left out", call. = FALSE)
  }
  effects$after <- effects$times > REFERENCE
  effects
}

honest_interval <- function(effects, M, trends, at, alpha) {
  if (!is.null(at) && !(at %in% effects$times[effects$after])) stop("at must be one of the times under treatment", call. = FALSE)
  aim <- if (is.null(at)) effects$after / sum(effects$after) else as.numeric(effects$times == at)
  ends <- if (trends == "relative") relative_interval(effects, aim, M, alpha) else smoothness_interval(effects, aim, M, alpha)
  stats::setNames(ends, c("lower", "upper"))
}

# The shortest interval of fixed length among candidates, each of which is valid.
smoothness_interval <- function(effects, aim, M, alpha) {
  trends <- trends_of(effects)
  found <- vapply(honest_candidates(effects, trends, aim, M), function(a) {
    sd <- sqrt(sum(a * (effects$covariance %*% a)))
    bias <- M * sum(abs(drop(a %*% trends$D))) / sd
    c(sum(a * effects$values), sd * folded_quantile(bias, 1 - alpha))
  }, numeric(2))
  best <- found[, which.min(found[2, ])]
  c(best[1] - best[2], best[1] + best[2])
}

relative_interval <- function(effects, aim, M, alpha) {
  R <- differences_before(effects)
  C <- R %*% effects$covariance %*% t(R)
  largest <- max(abs(drop(R %*% effects$values)) + critical_value(C, 1 - alpha / 2) * sqrt(diag(C)))
  grows <- sum(abs(aim) * pmax(effects$times + 1, 0))
  half <- stats::qnorm(1 - alpha / 4) * sqrt(sum(aim * (effects$covariance %*% aim))) + M * grows * largest
  value <- sum(aim * effects$values)
  c(value - half, value + half)
}

# Rows of beta(s + 1) - beta(s) before treatment, with beta(-1) = 0.
differences_before <- function(effects) {
  before <- which(effects$times < REFERENCE)
  R <- matrix(0, length(before), length(effects$times))
  for (row in seq_along(before)) {
    R[row, before[row]] <- -1
    if ((before[row] + 1) %in% before) R[row, before[row] + 1] <- 1
  }
  R
}

# The linear trend through 0 at -1, and D: what each second difference adds to the difference in trends.
trends_of <- function(effects) {
  times <- effects$times
  second <- seq_len(max(max(REFERENCE, times) - min(times) - 1, 0)) + min(times)
  after <- sweep(pmax(outer(times, second, `-`), 0), 2, second >= 0, `*`)
  before <- sweep(pmax(-outer(times, second, `-`), 0), 2, second < 0, `*`)
  D <- before
  D[effects$after, ] <- after[effects$after, ]
  list(line = times + 1, D = D)
}

# Weights that remove every linear trend, from least variance to least bias.
honest_candidates <- function(effects, trends, aim, M) {
  before <- !effects$after
  line <- trends$line
  D <- trends$D
  start <- aim
  start[before] <- -sum(aim * line) * line[before] / sum(line[before]^2)
  if (sum(before) < 2) return(list(start))
  free <- matrix(0, length(aim), sum(before) - 1)
  free[before, ] <- qr.Q(qr(matrix(line[before])), complete = TRUE)[, -1]
  c(list(start), lapply(PENALTIES, function(penalty) {
    a <- start
    for (round in seq_len(HONEST_ROUNDS)) {
      x <- abs(drop(a %*% D)) + LEAST_PART
      bent <- effects$covariance + penalty * M^2 * sweep(D, 2, sum(x) / x, `*`) %*% t(D)
      a <- start - drop(free %*% solved(t(free) %*% bent %*% free, t(free) %*% (bent %*% start)))
    }
    a
  }))
}

# The `level` quantile of |N(bias, 1)|.
folded_quantile <- function(bias, level) {
  inside <- function(c) stats::pnorm(c - bias) - stats::pnorm(-c - bias) - level
  stats::uniroot(inside, c(0, bias + 10), tol = 1e-12)$root
}
