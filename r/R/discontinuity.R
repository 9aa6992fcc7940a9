# SPDX-License-Identifier: Apache-2.0
# What is made of released discontinuities and histograms for nothing: the effect of a fuzzy design, and whether the density jumps at the
# cut-off. The same computations as the Python client's results/fuzzy.py and results/density_test.py, which have the derivations.

JUMP <- 2 # place of the jump among the coefficients: intercept, jump, slope, change of the slope
DENSITY_TERMS <- 3 # of a fit on one side: 1, u, u^2
NEAR <- 1e-9 # of a bin's width, by which a cut-off may miss its edge: rounding

fuzzy_effect <- function(response, treatment, level = 0.95) {
  releases <- list(response, treatment)
  asked <- lapply(releases, function(release) {
    if (!identical(release$query$kind, "discontinuity")) stop("Both arguments are releases of discontinuity().", call. = FALSE)
    c(release[c("dataset", "version")], release$query[intersect(names(release$query), c("running", "cutoff", "bandwidth", "where", "order"))])
  })
  if (!isTRUE(all.equal(asked[[1]][sort(names(asked[[1]]))], asked[[2]][sort(names(asked[[2]]))], tolerance = 0))) {
    stop("both releases must have the same data set and, but for y, question", call. = FALSE)
  }
  J <- jump_of(response)
  D <- jump_of(treatment)
  value <- if (D$value != 0) J$value / D$value else Inf
  ends <- ratio_interval(J, D, stats::qnorm((1 + level) / 2))
  if (!length(ends)) ends <- c(value, value)
  data.frame(effect = value, conf.low = ends[1], conf.high = ends[2])
}

# The smallest interval that holds the set of ratios: the whole line where one of the two jumps has no errors.
ratio_interval <- function(J, D, z) {
  if (!all(is.finite(c(J$sampling, J$noise, D$sampling, D$noise)))) return(c(-Inf, Inf))
  turned <- J
  turned$value <- -J$value
  ends <- c(ratio_set(J, D, z), -ratio_set(turned, D, z))
  if (length(ends)) range(ends)
}

# A released jump: its value, and the standard errors of sampling and of noise.
jump_of <- function(release) {
  part <- function(name) plain_vector(release$result[[name]])[JUMP]
  if (!isTRUE(as.logical(part("estimable")))) return(list(value = part("coefficients"), sampling = NaN, noise = NaN))
  noise <- part("privacy_standard_errors")
  list(value = part("coefficients"), sampling = sqrt(max(part("standard_errors")^2 - noise^2, 0)), noise = noise)
}

# The least and the largest theta >= 0 with (J - theta D)^2 <= z^2 V(theta), or nothing.
ratio_set <- function(J, D, z) {
  a <- D$value^2 - z^2 * (D$sampling^2 + D$noise^2)
  b <- -2 * (J$value * D$value + z^2 * J$sampling * D$sampling)
  c <- J$value^2 - z^2 * (J$sampling^2 + J$noise^2)
  roots <- quadratic_roots(a, b, c)
  inner <- sort(roots[roots > 0])
  inside <- if (c <= 0) c(0, inner) else inner
  c(utils::head(inside, 1), utils::tail(inside, 1), if (a <= 0) Inf)
}

quadratic_roots <- function(a, b, c) {
  if (a == 0) return(if (b == 0) numeric() else -c / b)
  square <- b^2 - 4 * a * c
  if (square < 0) return(numeric())
  q <- -(b + (if (b < 0) -1 else 1) * sqrt(square)) / 2
  if (q == 0) 0 else c(q / a, c / q)
}

density_test <- function(histogram, cutoff, bandwidth) {
  edges <- plain_vector(histogram$result$edges)
  if (!length(edges)) stop("a density has bins with edges: ask for `bins`, not for levels", call. = FALSE)
  counts <- plain_vector(histogram$result$values)
  noise <- histogram$result$standard_error
  place <- which.min(abs(edges - cutoff))
  inner <- place > 1 && place < length(edges)
  if (!inner || abs(edges[place] - cutoff) > NEAR * max(diff(edges))) {
    stop("the cut-off must be an inner edge of the bins: name it among them", call. = FALSE)
  }
  bins <- seq_along(counts)
  below <- density_level(edges, counts, noise, cutoff, bandwidth, bins < place)
  above <- density_level(edges, counts, noise, cutoff, bandwidth, bins >= place)
  difference <- above$value - below$value
  error <- sqrt(below$variance + above$variance)
  half <- stats::qnorm(0.975) * error
  data.frame(
    below = below$value, above = above$value, difference = difference, std.error = error, conf.low = difference - half,
    conf.high = difference + half, statistic = difference / error, p.value = 2 * stats::pnorm(-abs(difference) / error),
    bins.below = below$bins, bins.above = above$bins
  )
}

# The density at the cut-off from one side, its variance, and the number of bins.
density_level <- function(edges, counts, noise, cutoff, bandwidth, side) {
  width <- diff(edges)[side]
  u <- (((edges[-1] + edges[-length(edges)]) / 2)[side] - cutoff) / bandwidth
  kernel <- pmax(1 - abs(u), 0)
  inside <- kernel > 0
  if (sum(inside) <= DENSITY_TERMS) {
    stop("the test needs four bins or more within the bandwidth on each side: finer bins, or a wider bandwidth", call. = FALSE)
  }
  X <- outer(u[inside], seq_len(DENSITY_TERMS) - 1, `^`)
  weighted <- t(X * kernel[inside])
  weights <- solve(weighted %*% X, weighted)
  width <- width[inside]
  density <- counts[side][inside] / width
  fitted <- pmax(drop(X %*% (weights %*% density)), 0) * width
  variance <- (pmax(fitted, 1) + noise^2) / width^2
  list(value = sum(weights[1, ] * density), variance = sum(weights[1, ]^2 * variance), bins = sum(inside))
}
