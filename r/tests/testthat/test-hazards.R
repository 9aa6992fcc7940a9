# SPDX-License-Identifier: Apache-2.0
# A hazard regression from a release by hand: ratios, curves, the test of proportional hazards.

hazards <- function(...) {
  result <- c(list(
    terms = list("x"), coefficients = list(0.5), standard_errors = list(0.15), covariance = list(list(0.0225)),
    privacy_standard_errors = list(0.1), confidence_level = 0.95, confidence_intervals = list(list(0.2, 0.8)),
    p_values = list(0.0009), estimable = list(TRUE), n = 1000, warnings = list(), cuts = list(1, 3),
    baseline = list(
      hazards = list(0.2, 0.1), log_standard_errors = list(0.2, 0.3), reference = list(x = 2),
      covariance = list(list(0.04, 0, 0.01), list(0, 0.09, 0))
    )
  ), list(...))
  reticent:::as_release(list(
    id = "rel_1", dataset = "people", version = 1, status = "reply", query = list(kind = "hazard_regression", formula = "Surv(t, e) ~ x"),
    charged = list(epsilon = 1, delta = 1e-6), guarantee = list(statement = "A guarantee."), result = result
  ))
}

test <- list(
  terms = list("x"), trends = list(-1.6), standard_errors = list(0.64), p_values = list(0.0124), statistic = 6.25, df = 1, p_value = 0.0124,
  bins = list(
    list(end = 2, events = 60, terms = list("x"), coefficients = list(0.9), standard_errors = list(0.2)),
    list(end = 3, events = 50, terms = list("x"), coefficients = list(0.1), standard_errors = list(0.25))
  )
)

test_that("a summary has hazard ratios as coxph() prints them", {
  fit <- hazards()
  told <- summary(fit)
  expect_equal(unname(told$ratios[1, ]), exp(c(0.5, -0.5, 0.2, 0.8)))
  text <- paste(capture.output(print(told)), collapse = "\n")
  expect_match(text, "exp(coef)", fixed = TRUE)
  expect_match(text, "Hazard ratios")
})

test_that("replies that repeat the coefficients' covariance have the same bands", {
  old <- hazards()
  old$result$baseline$covariance[[3]] <- list(0.01, 0, 0.0225)
  at <- data.frame(x = 3)
  expect_equal(predict_survival(old, at, 1)$lower, predict_survival(hazards(), at, 1)$lower)
})

test_that("predicted survival has the bands of the Python client", {
  found <- predict_survival(hazards(), data.frame(x = c(2, 3)), c(1, 2))
  expect_equal(found$survival[1:2], exp(-c(0.2, 0.3)))
  expect_equal(found$survival[3:4], exp(-c(0.2, 0.3) * exp(0.5)))
  width <- exp(qnorm(0.975) * sqrt(0.04 + 2 * 0.01 + 0.0225))
  expect_equal(found$lower[3], exp(-0.2 * exp(0.5) * width))
  expect_error(predict_survival(hazards(), data.frame(x = 2), 9), "up to the last")
  expect_error(predict_survival(hazards(), data.frame(x = 2), stratum = "a"), "stratum must be")
  twice <- list(column = "g", levels = list("a", "b"), baselines = list(hazards()$result$baseline, within(hazards()$result$baseline, hazards <- list(0.4, 0.2))))
  expect_equal(predict_survival(hazards(strata = twice), data.frame(x = 2), 1, stratum = "b")$survival, exp(-0.4))
})

test_that("the test of proportional hazards is a table as that of cox.zph()", {
  zph <- cox_zph(hazards(proportionality = test))
  expect_equal(unname(zph$table["x", ]), c(6.25, 1, 0.0124))
  expect_equal(unname(zph$table["GLOBAL", "df"]), 1)
  expect_equal(as.data.frame(zph)$coef, c(0.9, 0.1))
  expect_match(paste(capture.output(print(zph)), collapse = "\n"), "GLOBAL")
  expect_error(cox_zph(hazards()), "proportionality = 3")
  expect_error(plot(zph, "y"), "must be one of")
})

test_that("figures are drawn", {
  fit <- hazards(proportionality = test)
  pdf(NULL)
  on.exit(dev.off())
  expect_silent(plot(cox_zph(fit), "x"))
  expect_silent(plot(predict_survival(fit, data.frame(x = 2:3))))
  skip_if_not_installed("ggplot2")
  for (object in list(fit, cox_zph(fit), predict_survival(fit, data.frame(x = 2:3)))) {
    expect_s3_class(ggplot2::autoplot(object), "ggplot")
  }
})

test_that("an answer by group has a fit for each, with ratios and curves", {
  one <- hazards()$result
  two <- c(one[setdiff(names(one), "coefficients")], list(coefficients = list(-0.5)))
  found <- hazards()
  found <- reticent:::as_release(c(unclass(found)[setdiff(names(found), c("result", "query"))], list(
    query = list(kind = "hazard_regression", formula = "Surv(t, e) ~ x", by = "zone"),
    result = list(by = "zone", n = 1000, groups = list(c(one, list(level = "a")), c(two, list(level = "b"))))
  )))
  expect_equal(unname(coef(found)["x", ]), c(0.5, -0.5))
  told <- summary(found)
  expect_identical(names(told), c("a", "b"))
  expect_output(print(told), "exp\\(coef\\)")
  expect_equal(predict_survival(found, data.frame(x = 2), 1)$b$survival, exp(-0.2))
})
