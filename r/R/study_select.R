# SPDX-License-Identifier: Apache-2.0
# The best subset of candidate terms, and intervals that survive the search.
#
# Subsets are ranked by BIC, N ln(sigma^2) + k ln(N), with the released residual variance. Nominal intervals of the subset that is
# chosen are too short; with sqrt(chi-squared_{p, .95}) in place of 1.96, p candidates, all combinations of all coefficients are
# covered at once, whatever is chosen (Scheffe 1953; Berk, Brown, Buja, Zhang & Zhao 2013).

EXHAUSTIVE <- 12 # candidate terms up to which every subset is looked at; beyond, forward steps
SUBSETS_SHOWN <- 10

study_select <- function(study, response, candidates = NULL) {
  moments <- study_moments(study)
  place <- one_place(moments$names, response)
  texts <- if (length(candidates)) candidates else moments$names[-c(1, place)]
  groups <- lapply(texts, term_places, names = moments$names)
  ranked <- ranked_subsets(moments, place, groups)
  best <- ranked$subsets[[1]]
  model <- study_model(moments, place, as.integer(unlist(groups[best])), TRUE)
  said <- "Chosen among subsets: intervals are simultaneous over all of them; p-values are not."
  total <- 1 + sum(lengths(groups))
  result <- fit_result(
    model, moment_fit(moments, model$y, model$X), study$result$n, estimand_of(study), c(said, plain_vector(study$result$warnings)),
    factor = sqrt(stats::qchisq(0.95, total)) / stats::qnorm(0.975), bared = bared_names(moments, model$y, model$X)
  )
  named <- function(subset) if (length(subset)) paste(texts[subset], collapse = " + ") else "1"
  fit <- as_study_fit(study, paste(response, "~", named(best)), result)
  shown <- utils::head(seq_along(ranked$bic), SUBSETS_SHOWN)
  fit$ranking <- data.frame(terms = vapply(ranked$subsets[shown], named, ""), bic = ranked$bic[shown], stringsAsFactors = FALSE)
  fit
}

# Subsets of the groups whose gate is open, the best first.
ranked_subsets <- function(moments, response, groups) {
  searched <- searched_subsets(moments, response, groups)
  bic <- vapply(searched, function(chosen) subset_bic(moments, response, groups, chosen), 0)
  if (all(is.na(bic))) {
    raise("No subset explains more than the noise does; ask for a study with a larger epsilon.", "not_estimable")
  }
  order <- order(bic, na.last = NA)
  list(subsets = searched[order], bic = bic[order])
}

searched_subsets <- function(moments, response, groups) {
  every <- seq_along(groups)
  if (length(every) <= EXHAUSTIVE) {
    return(unlist(lapply(c(0, every), function(size) utils::combn(length(every), size, simplify = FALSE)), recursive = FALSE))
  }
  found <- list(integer())
  while (length(found) <= length(every)) {
    chosen <- found[[length(found)]]
    steps <- lapply(setdiff(every, chosen), function(k) sort(c(chosen, k)))
    bic <- vapply(steps, function(step) subset_bic(moments, response, groups, step), 0)
    if (all(is.na(bic))) break
    found <- c(found, steps[which.min(bic)])
  }
  found
}

# NA where the gate is shut.
subset_bic <- function(moments, response, groups, chosen) {
  places <- as.integer(unlist(groups[chosen]))
  if (moments$effects && !length(places)) return(NA_real_)
  model <- study_model(moments, response, places, TRUE)
  fit <- moment_fit(moments, model$y, model$X)
  if (fit$gate > GATE) return(NA_real_)
  records_of(moments) * log(fit$variance) + length(places) * log(records_of(moments))
}
