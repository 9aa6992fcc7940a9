# SPDX-License-Identifier: Apache-2.0
# A released study: every linear analysis of its columns is made here, and costs nothing more.

study_analyses <- paste(
  "Free from here on: study_ols, study_ridge, study_lasso, study_iv, study_corr, study_partial_corr, study_pca, study_factor,",
  "study_mediation, study_robustness, study_select, study_r2, study_sem, study_reliability, study_icc, study_bland_altman, study_mixedlm,",
  "study_twin."
)

check_study <- function(study) {
  if (!inherits(study, "reticent_study")) stop("The first argument is a released study: study(dataset, variables, epsilon = 1).", call. = FALSE)
}

# Names of the columns, the intercept first.
study_terms <- function(study) {
  check_study(study)
  plain_vector(study$result$terms)
}

study_groups <- function(study) {
  check_study(study)
  if (inherits(study, "reticent_pooled")) return(names(study$sites))
  as.character(names(study$result$groups))
}

study_group <- function(study, level) {
  groups <- study_groups(study)
  if (!level %in% groups) stop(level, ": the groups are ", listed(groups, "none"), ".", call. = FALSE)
  if (inherits(study, "reticent_pooled")) return(study$sites[[level]])
  own <- study$result$groups[[level]]
  study$result$groups <- NULL
  study$result[names(own)] <- own
  study
}

# The result that holds the moments.
own_result <- function(study) {
  groups <- study_groups(study)
  if (length(groups)) {
    stop("This study is by groups: take one first, such as study_group(study, \"", groups[1], "\").", call. = FALSE)
  }
  study$result
}

print.reticent_study <- function(x, ...) {
  headline(x)
  groups <- study_groups(x)
  cat(strwrap(paste("Columns:", listed(study_terms(x)[-1])), 90), sep = "\n")
  if (length(groups)) cat(strwrap(paste("Groups:", listed(groups)), 90), sep = "\n")
  else cat("Clipped: ", format_value(x$result$clipped$share), " of the weight.\n", sep = "")
  cat(strwrap(study_analyses, 90), sep = "\n")
  for (warning in plain_vector(x$result$warnings)) cat(strwrap(warning, 90, prefix = "  ", initial = "- "), sep = "\n")
  footer(x)
  invisible(x)
}

# Means with standard errors, and standard deviations, in the units of the data.
as.data.frame.reticent_study <- function(x, ...) {
  moments <- study_moments(x)
  places <- own_places(x)
  variance <- diag(column_covariance(moments, places))
  spread <- sqrt(pmax(variance, 0)) * moments$scales[places]
  if (moments$effects) return(data.frame(sd = spread, row.names = moments$names[places]))
  means <- lapply(places, function(place) {
    fit_of(x, list(text = paste(moments$names[place], "~ 1"), response = place, terms = integer(), intercept = TRUE))$result
  })
  data.frame(
    mean = vapply(means, function(each) each$coefficients, 0), std.error = vapply(means, function(each) each$standard_errors, 0),
    sd = spread, row.names = moments$names[places]
  )
}

plot.reticent_study <- function(x, ...) plot(study_corr(x), ...)
