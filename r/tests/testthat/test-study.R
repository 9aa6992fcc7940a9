# SPDX-License-Identifier: Apache-2.0
# Analyses of released studies against the Python client's, which tools/r_study.py has written beside them.

fixture <- local({
  path <- test_path("study.json")
  bytes <- readBin(path, "raw", file.size(path))
  httr2::resp_body_json(httr2::response(200, headers = list("Content-Type" = "application/json"), body = bytes))
})

study_named <- function(name, group = NULL) {
  found <- reticent:::as_release(fixture$studies[[name]])
  if (is.null(group)) found else study_group(found, group)
}

as_numbers <- function(part) {
  if (!is.list(part)) return(if (is.null(part)) NA else part)
  if (length(part) && is.list(part[[1]])) return(do.call(rbind, lapply(part, as_numbers)))
  vapply(part, function(each) if (is.null(each)) NA_real_ else as.numeric(each), 0)
}

# Largest difference, relative where values are larger than 1; Inf where one is missing and the other is not.
away <- function(ours, theirs) {
  ours <- unname(as.vector(as.matrix(ours)))
  theirs <- unname(as.vector(as.matrix(theirs)))
  if (length(ours) != length(theirs) || !identical(is.na(ours), is.na(theirs))) return(Inf)
  same <- is.na(ours) | ours == theirs
  max(0, (abs(ours - theirs) / pmax(1, abs(theirs)))[!same])
}

fit_parts <- function(fit) {
  open <- all(reticent:::estimable(fit))
  last <- length(coef(fit))
  list(
    terms = names(coef(fit)), coef = coef(fit), vcov = vcov(fit), errors = reticent:::standard_errors(fit),
    privacy_errors = summary(fit)$coefficients[, "of which privacy"], p_values = summary(fit)$coefficients[, "Pr(>|z|)"],
    intervals = confint(fit), intervals_90 = confint(fit, level = 0.9), scale = fit$result$scale, gate = if (is.finite(fit$result$gate)) fit$result$gate,
    warnings = as.character(unlist(fit$result$warnings)), wald = if (open && last > 1) reticent:::wald(fit, last)[2]
  )
}

agreement_parts <- function(found) {
  list(
    values = found$estimates$estimate, errors = found$estimates$std.error, privacy_errors = found$estimates$privacy_std.error,
    intervals = unname(confint(found)), notes = found$notes
  )
}

# Each analysis by Python's name, as the parts that the fixture has.
analyses <- list(
  bland_altman = function(...) agreement_parts(study_bland_altman(...)),
  icc = function(...) agreement_parts(study_icc(...)),
  corr = function(...) unclass(study_corr(...)),
  factor = function(...) {
    found <- study_factor(...)
    list(loadings = unclass(found$loadings), uniqueness = found$uniqueness)
  },
  frame = function(study) {
    found <- as.data.frame(study)
    list(mean = found$mean, bse = found$std.error, sd = found$sd)
  },
  iv = function(...) {
    fit <- study_iv(...)
    first <- first_stage(fit)
    sets <- tryCatch(anderson_rubin(fit), reticent_not_estimable = function(refusal) conditionMessage(refusal))
    c(fit_parts(fit), list(first_stage = as.list(as.data.frame(t(first), optional = TRUE)), anderson_rubin = sets))
  },
  lasso = function(...) unclass(study_lasso(...))[c("penalties", "coefficients", "noise")],
  main = function(study) fit_parts(study_main(study)),
  mediation = function(...) {
    found <- study_mediation(...)
    list(
      values = coef(found), bse = found$effects$std.error, privacy_bse = found$effects$privacy_std.error,
      p_values = as.data.frame(found)$p.value, intervals = confint(found)
    )
  },
  mixedlm = function(...) {
    fit <- study_mixedlm(...)
    rows <- variance_components(fit, level = 0.9)
    c(fit_parts(fit), list(
      estimand = fit$result$estimand, components = rows$estimate, components_errors = rows$std.error,
      components_intervals = rows[c("conf.low", "conf.high")]
    ))
  },
  ols = function(...) fit_parts(study_ols(...)),
  partial_corr = function(...) {
    found <- study_partial_corr(...)
    c(unclass(found)[c("value", "bse", "privacy_bse", "p_value")], list(interval = confint(found)))
  },
  pca = function(...) unclass(study_pca(...)),
  r2 = function(...) list(values = study_r2(...)),
  ridge = function(...) fit_parts(study_ridge(...)),
  robustness = function(...) {
    found <- study_robustness(...)
    table <- as.data.frame(found)
    list(
      term = found$term, formulas = found$formulas, values = table$estimate, bse = table$std.error,
      intervals = table[c("conf.low", "conf.high")]
    )
  },
  reliability = function(...) {
    agreement_parts(study_reliability(...))
  },
  sem = function(study, model, std_lv) {
    found <- study_sem(study, model, std_lv)
    rows <- found$estimates
    list(
      parameters = paste(rows$lhs, rows$op, rows$rhs), est = rows$est, se = rows$se, privacy_se = rows$privacy_se, std = rows$std.all,
      std_se = rows$std.se, intervals = unname(confint(found)), fit = unname(found$fit_indices), rsquared = unname(found$rsquared),
      notes = found$notes
    )
  },
  select = function(...) {
    fit <- study_select(...)
    c(fit_parts(fit), list(formula = fit$query$formula, ranking = fit$ranking$terms, bic = fit$ranking$bic))
  }
)

asked <- function(case) {
  study <- study_named(case$study, case$group)
  arguments <- lapply(case$arguments, function(each) if (is.list(each)) as.character(unlist(each)) else each)
  do.call(analyses[[case$analysis]], c(list(study), arguments))
}

said <- function(case) paste(case$study, case$group, case$analysis, paste(unlist(case$arguments), collapse = "; "))

# R names its own functions, and begins a sentence with a capital.
in_r <- function(words) {
  words <- sub("(take one first, such as) study\\['(.*)'\\]", "\\1 study_group(study, \"\\2\")", words)
  tolower(sub("[.]$", "", sub("\\b(iv|ols)\\(\\)", "study_\\1()", words)))
}

is_text <- function(part) is.character(unlist(part)) && !any(unlist(part) %in% c("Inf", "-Inf"))

answered <- Filter(function(case) !is.null(case$result) && case$analysis != "twin", fixture$cases)
refused <- Filter(function(case) !is.null(case$refusal), fixture$cases)

test_that("each analysis has the Python client's numbers, intervals and warnings", {
  expect_gt(length(answered), 40)
  expect_setequal(names(analyses), vapply(answered, function(case) case$analysis, ""))
  for (case in answered) {
    found <- asked(case)
    for (part in names(case$result)) {
      theirs <- case$result[[part]]
      if (is.list(theirs) && !is.null(names(theirs))) {
        expect_named(found[[part]], names(theirs))
        theirs <- unname(theirs)
        found[[part]] <- do.call(rbind, found[[part]])
      }
      if (is.null(theirs)) expect_null(found[[part]], info = said(case))
      else if (!length(theirs) || is_text(theirs)) expect_equal(as.character(found[[part]]), as.character(unlist(theirs)), info = said(case))
      else expect_lt(away(found[[part]], as_numbers(theirs)), 1e-8, label = paste(said(case), part))
    }
  }
})

test_that("what Python refuses is refused in the same words", {
  expect_gt(length(refused), 15)
  for (case in refused) {
    refusal <- expect_error(asked(case), info = said(case))
    expect_equal(in_r(conditionMessage(refusal)), in_r(case$refusal), info = said(case))
  }
})

test_that("a study's columns may have any levels, and a plus may stand before a minus", {
  names <- c("Intercept", "q[Don't know]", "q[low (a]", "x", "x:q[low (a]")
  expect_equal(reticent:::term_places(names, "C(q)"), 2:3)
  expect_equal(reticent:::term_places(names, "q:x"), 5L)
  expect_equal(reticent:::read_sum(names, "x + -1"), list(places = 4L, intercept = FALSE))
  expect_error(reticent:::read_sum(names, "x - +q"), "missing")
})

test_that("a study's fit is a fit, for nothing", {
  study <- study_named("whole")
  fit <- study_ols(study, log(price) ~ size + I(size^2) + factor(town))
  expect_s3_class(fit, "reticent_fit")
  expect_equal(coef(fit), coef(study_ols(study, "log(price) ~ size + I(size**2) + C(town)")))
  expect_output(print(summary(fit)), "Free: made from the study's release")
  expect_equal(anova(fit)["C(town)", "Df"], 2)
  new <- data.frame(size = c(4, 6), town = c("a", "b"))
  b <- coef(fit)
  expect_equal(unname(predict(fit, new)[2]), sum(b * c(1, 6, 36, 1, 0)))
  found <- predict(fit, new, level = 0.95, se.fit = TRUE)
  expect_equal(found$fit[, "upr"] - found$fit[, "fit"], qnorm(0.975) * found$se.fit)
  expect_equal(deparse(formula(fit)), "log(price) ~ size + I(size^2) + factor(town)")
  chosen <- study_select(study, "log(price)", c("size", "grade"))
  wide <- predict(chosen, data.frame(size = 0, grade = 0), level = 0.95)
  expect_equal(unname(wide[, c("lwr", "upr")]), unname(confint(chosen)["Intercept", ]))
  expect_equal(nobs(fit), study$result$n)
})

test_that("a twin has the study's means, deviations and correlations", {
  case <- Filter(function(case) case$analysis == "twin", fixture$cases)[[1]]
  theirs <- lapply(case$result[c("means", "deviations", "corr")], as_numbers)
  set.seed(1)
  rows <- 20000
  found <- study_twin(study_named("whole"), rows, unlist(case$arguments$variables))
  expect_named(found, unlist(case$result$names))
  # Both are of 20,000 rows: a difference has at most the error sqrt(2 / rows), and 6 of them are seen less than once in 10^8.
  margin <- 6 * sqrt(2 / rows)
  expect_lt(max(abs(colMeans(found) - theirs$means) / theirs$deviations), margin)
  expect_lt(max(abs(vapply(found, sd, 0) / theirs$deviations - 1)), margin)
  expect_lt(max(abs(cor(found) - theirs$corr)), margin)
  set.seed(1)
  expect_identical(found, study_twin(study_named("whole"), rows, unlist(case$arguments$variables)))
})

test_that("everything can be printed, plotted and be a data frame", {
  study <- study_named("whole")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  found <- list(
    study, study_corr(study, c("log(price)", "size", "near")), study_pca(study, c("log(price)", "size", "grade")),
    study_lasso(study, "log(price) ~ size + grade + near"), study_mediation(study, "lot", "size", "log(price)", "grade"),
    study_robustness(study, "log(price) ~ grade", c("+ size", "log(price) ~ grade + lot"))
  )
  for (each in found) {
    expect_output(print(each))
    expect_invisible(plot(each))
    if (!inherits(each, "reticent_study_pca")) expect_s3_class(as.data.frame(each), "data.frame")
  }
  expect_output(print(study), "Free from here on")
  expect_output(print(study_partial_corr(study, "lot", "log(price)", "size")), "given size")
  expect_error(study_partial_corr(study, "lot", "log(price)", "lot"), "must all be different")
  expect_error(study_mediation(study, "lot", "lot", "log(price)"), "must all be different")
  expect_output(print(study_factor(study, 1, c("log(price)", "size", "grade"))), "Uniqueness")
  expect_equal(nrow(as.data.frame(found[[2]])), 3)
  expect_equal(as.matrix(found[[2]]), found[[2]]$values)
  expect_equal(dim(coef(found[[4]])), c(60, 4))
})

test_that("a study by groups is one study a group", {
  study <- study_named("groups")
  expect_equal(study_groups(study), c("a", "b", "c"))
  expect_output(print(study), "Groups: a, b, c")
  expect_error(study_group(study, "z"), "the groups are a, b, c")
  expect_false(identical(coef(study_main(study_group(study, "a"))), coef(study_main(study_group(study, "b")))))
  expect_error(study_ols(1, "y ~ x"), "released study")
})

test_that("a formula without intervals says so in R's summary", {
  fit <- study_ols(study_named("noisy"), log(price) ~ size + I(size^2) + grade)
  expect_true(all(is.na(confint(fit))))
  expect_output(print(summary(fit)), "noise is too large")
})

test_that("many candidates are searched by steps", {
  found <- reticent:::searched_subsets(reticent:::study_moments(study_named("whole")), 2L, as.list(rep(3:8, length.out = 13)))
  expect_equal(found[[1]], integer())
  expect_equal(lengths(found), seq_along(found) - 1)
})
