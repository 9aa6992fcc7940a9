# SPDX-License-Identifier: Apache-2.0
# Times to an event: survival curves as survfit prints and draws them, cumulative incidences as cuminc does.

curves_of <- function(x) if (is.null(x$result[["groups"]])) list(x$result) else x$result[["groups"]]

print.reticent_survival_curve <- function(x, digits = 4, ...) {
  headline(x)
  curves <- curves_of(x)
  cat("\n")
  table <- do.call(rbind, lapply(curves, survfit_row))
  rownames(table) <- vapply(curves, function(each) said(each$level), "")
  if (length(curves) == 1) rownames(table) <- ""
  print(signif(table, digits))
  cat("Restricted means go up to ", said(x$result$horizon), ".\n", sep = "")
  print_tables(Filter(function(each) !each$aside && nrow(each$table) > length(curves), laid_out(x$result)$tables), digits)
  footer(x)
  invisible(x)
}

# As survfit's print: noisy persons and events, the restricted mean, the median with its interval.
survfit_row <- function(curve) {
  ends <- lapply(1:2, function(i) number_or_na(curve[["median_interval"]][i]))
  at_risk <- plain_vector(curve$at_risk)
  cbind(
    n = if (length(at_risk)) at_risk[1] else NA, events = sum(plain_vector(curve$events)), rmean = number_or_na(curve[["restricted_mean"]]),
    `se(rmean)` = number_or_na(curve[["restricted_mean_standard_error"]]), median = number_or_na(curve[["median"]]), `0.95LCL` = ends[[1]], `0.95UCL` = ends[[2]]
  )
}

number_or_na <- function(value) {
  value <- unlist(value)
  if (is.numeric(value)) value[1] else NA_real_
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

# Steps of survival with their intervals and, below, the numbers at risk.
autoplot.reticent_survival_curve <- function(object, at_risk = TRUE, ...) {
  curves <- curves_of(object)
  steps <- do.call(rbind, lapply(curves, function(each) steps_of(each, "survival", 1, said(each$level))))
  drawn <- step_layers(steps, said(object$query$by)) + ggplot2::labs(x = object$query$time, y = "survival, 95 % interval")
  if (!at_risk) return(drawn)
  drawn + risk_layer(curves, vapply(curves, function(each) said(each$level), ""))
}

# One curve from its first step on: time, value and ends of its interval.
steps_of <- function(curve, value, first, name) {
  ends <- json_matrix(curve$confidence_intervals)
  if (!length(curve$times)) ends <- matrix(numeric(), 0, 2)
  data.frame(
    time = c(0, plain_vector(curve$times)), value = c(first, plain_vector(curve[[value]])),
    low = c(first, ends[, 1]), high = c(first, ends[, 2]), group = name, stringsAsFactors = FALSE
  )
}

step_layers <- function(steps, title) {
  .data <- ggplot2::.data
  drawn <- ggplot2::ggplot(steps, ggplot2::aes(x = .data[["time"]], colour = .data[["group"]])) +
    ggplot2::geom_step(ggplot2::aes(y = .data[["value"]])) +
    ggplot2::geom_step(ggplot2::aes(y = .data[["low"]]), linetype = "dotted") +
    ggplot2::geom_step(ggplot2::aes(y = .data[["high"]]), linetype = "dotted") +
    ggplot2::scale_y_continuous(breaks = seq(0, 1, 0.25)) +
    ggplot2::labs(colour = title)
  if (length(unique(steps$group)) == 1) drawn + ggplot2::guides(colour = "none") else drawn
}

# Numbers at risk, a line for each curve, below the axis.
risk_layer <- function(curves, names) {
  .data <- ggplot2::.data
  ticks <- pretty(c(0, max(0, unlist(lapply(curves, `[[`, "times")))), 4)
  lines <- do.call(rbind, lapply(seq_along(curves), function(i) {
    data.frame(time = ticks, y = -0.07 * i, label = numbers_at_risk(curves[[i]], ticks), group = names[i], stringsAsFactors = FALSE)
  }))
  ggplot2::geom_text(ggplot2::aes(y = .data[["y"]], label = .data[["label"]]), data = lines, size = 3, show.legend = FALSE)
}

# As cuminc's print: the tests, then estimates and their variances at the times.
print.reticent_cumulative_incidence <- function(x, digits = 4, ...) {
  headline(x)
  curves <- x$result$curves
  tests <- x$result[["tests"]]
  if (length(tests)) {
    cat("\nTests (Gray):\n")
    table <- do.call(rbind, lapply(tests, function(each) cbind(stat = each$statistic, pv = each$p_value, df = each$df, `up to` = each$until)))
    rownames(table) <- vapply(tests, `[[`, "", "cause")
    print(signif(table, digits))
  }
  for (part in c("incidence", "standard_errors", "times_lost")) {
    cat("\n", c(incidence = "Estimates", standard_errors = "Standard errors", times_lost = "Mean times lost up to")[[part]], ":\n", sep = "")
    print(signif(by_time(curves, part), digits))
  }
  footer(x)
  invisible(x)
}

# A row for each group and cause, a column for each time of the longest curve.
by_time <- function(curves, part) {
  times <- plain_vector(curves[[which.max(vapply(curves, function(each) length(each$times), 0L))]]$times)
  table <- do.call(rbind, lapply(curves, function(each) c(plain_vector(each[[part]]), rep(NA_real_, length(times) - length(each$times)))))
  dimnames(table) <- list(vapply(curves, incidence_name, ""), times)
  table
}

incidence_name <- function(curve) trimws(paste(said(curve$level), curve$cause))

as.data.frame.reticent_cumulative_incidence <- function(x, ...) {
  found <- lapply(x$result$curves, function(each) {
    cbind(steps_of(each, "incidence", 0, said(each$level)), cause = each$cause, std.error = c(0, plain_vector(each$standard_errors)), stringsAsFactors = FALSE)[-1, ]
  })
  found <- do.call(rbind, found)
  rownames(found) <- NULL
  names(found)[2:4] <- c("estimate", "conf.low", "conf.high")
  found[c("group", "cause", "time", "estimate", "std.error", "conf.low", "conf.high")]
}

# Incidences of each cause as steps; a colour for each group, a line type for each cause.
plot.reticent_cumulative_incidence <- function(x, ...) {
  curves <- x$result$curves
  levels <- vapply(curves, function(each) said(each$level), "")
  causes <- vapply(curves, `[[`, "", "cause")
  graphics::plot(NULL, xlim = c(0, max(0, unlist(lapply(curves, `[[`, "times")))), ylim = c(0, 1), xlab = x$query$time, ylab = "cumulative incidence", ...)
  colours <- match(levels, unique(levels))
  types <- match(causes, unique(causes))
  for (i in seq_along(curves)) {
    steps <- steps_of(curves[[i]], "incidence", 0, "")
    graphics::lines(steps$time, steps$value, type = "s", col = colours[i], lty = types[i], lwd = 2)
  }
  graphics::legend("topleft", vapply(curves, incidence_name, ""), col = colours, lty = types, lwd = 2, bty = "n")
  invisible(x)
}

autoplot.reticent_cumulative_incidence <- function(object, at_risk = TRUE, ...) {
  curves <- object$result$curves
  steps <- do.call(rbind, lapply(curves, function(each) cbind(steps_of(each, "incidence", 0, said(each$level)), cause = each$cause, stringsAsFactors = FALSE)))
  drawn <- step_layers(steps, said(object$query$by)) + ggplot2::facet_wrap("cause") + ggplot2::labs(x = object$query$time, y = "cumulative incidence, 95 % interval")
  if (!at_risk) return(drawn)
  levels <- vapply(curves, function(each) said(each$level), "")
  first <- !duplicated(levels)
  drawn + risk_layer(curves[first], levels[first])
}
