# SPDX-License-Identifier: Apache-2.0
# What users of R expect: families, formulas, several fits, other packages' generics; errors that say what is wrong.

houses <- structure(
  list(client = structure(list(base_url = "http://127.0.0.1:9"), class = "reticent_client"), name = "houses", project = NULL, facts = list(
    n = 100,
    schema = list(columns = list(
      y = list(kind = "numeric", lower = 0, upper = 10), x = list(kind = "numeric", lower = 0, upper = 4),
      g = list(kind = "categorical", levels = list("a", "b"))
    )),
    profile = list(probabilities = list(0.25, 0.5, 0.75), columns = list(x = list(quantiles = list(1, 3, 3.5), missing = 0)))
  )),
  class = "reticent_dataset"
)

result_of <- function(coefficients, ...) {
  c(list(
    terms = list("Intercept", "x", "C(g)[b]"), coefficients = as.list(coefficients), standard_errors = list(0.1, 0.2, 0.3),
    privacy_standard_errors = list(0.05, 0.1, 0.1), covariance = lapply(1:3, function(i) as.list(replace(numeric(3), i, c(0.1, 0.2, 0.3)[i]^2))),
    confidence_level = 0.95, confidence_intervals = lapply(1:3, function(i) as.list(coefficients[i] + c(-2, 2) * c(0.1, 0.2, 0.3)[i])),
    estimable = list(TRUE, TRUE, TRUE), n = 100
  ), list(...))
}

released <- function(kind, result, ...) {
  document <- list(
    id = "rel_1", dataset = "houses", version = 1, status = "reply", query = list(kind = kind, formula = "y ~ x + C(g)", ...),
    charged = list(epsilon = 1, delta = 1e-6), guarantee = list(statement = "A guarantee."), result = result
  )
  structure(reticent:::as_release(document), dataset = houses)
}

sent <- function(...) reticent:::question_body(houses, "glm", list(...), 1)$query

test_that("a family may be a name, a function or an object", {
  expect_equal(sent(family = binomial())$family, "binomial")
  expect_equal(sent(family = binomial)$family, "binomial")
  expect_equal(sent(family = "poisson")$family, "poisson")
  expect_null(sent(family = binomial())$link)
  expect_equal(sent(family = binomial("probit"))$link, "probit")
  expect_equal(sent(family = Gamma())$family, "gamma")
  expect_equal(sent(family = quasipoisson())$family, "poisson")
  expect_error(sent(family = inverse.gaussian()), "The families are")
})

test_that("a formula names a column and a group, or a follow-up", {
  body <- reticent:::question_body(houses, "t_test", list(column = age ~ sex, group = NULL), 1)
  expect_equal(body$query, list(kind = "t_test", column = "age", group = "sex"))
  body <- reticent:::question_body(houses, "t_test", list(column = age ~ 1), 1)
  expect_equal(body$query, list(kind = "t_test", column = "age"))
  body <- reticent:::question_body(houses, "survival_curve", list(time = Surv(days, died) ~ factor(arm), event = NULL), 1)
  expect_equal(body$query, list(kind = "survival_curve", time = "days", event = "died", by = "arm"))
  expect_error(reticent:::question_body(houses, "log_rank", list(time = days ~ arm), 1), "Surv")
  expect_error(reticent:::question_body(houses, "t_test", list(column = ~sex), 1), "two sides")
})

test_that("formulas are sent as people type them", {
  expect_equal(reticent:::formula_text(y ~ as.factor(g) + factor(h) + I(x^2)), "y ~ C(g) + C(h) + I(x**2)")
  body <- reticent:::question_body(houses, "log_rank", list(time = survival::Surv(days, died) ~ as.factor(arm) + survival::strata(site)), 1)
  expect_equal(body$query, list(kind = "log_rank", time = "days", strata = "site", by = "arm", event = "died"))
  expect_equal(sent(formula = y ~ splines::bs(x, df = 5))$formula, "y ~ bs(x, df = 5)")
})

test_that("what is wrong with a call is not told as a lost network", {
  told <- expect_error(reticent:::call_server(houses$client, "POST", "/v1/releases", list(query = list(family = quote(f(x))))), class = "reticent_invalid_query")
  expect_match(conditionMessage(told), "family is a call")
  lost <- expect_error(datasets(reticent_client("http://127.0.0.1:9", "k", retries = 0)), class = "reticent_transport")
  expect_match(conditionMessage(lost), "does the server run")
})

test_that("quantile regressions answer as fits do", {
  fits <- list(c(result_of(c(1, 2, 3)), tau = 0.25), c(result_of(c(4, 5, 6)), tau = 0.75))
  several <- released("quantile_regression", list(fits = fits, crossing = FALSE, warnings = list(), n = 100))
  expect_equal(coef(several)["x", ], c(`0.25` = 2, `0.75` = 5))
  expect_equal(names(confint(several)), c("0.25", "0.75"))
  expect_output(print(several), "0.75 +C\\(g\\)\\[b\\]")
  expect_output(print(summary(several)), "== 0.25")
  expect_equal(nrow(generics::tidy(several)), 6)
  one <- released("quantile_regression", list(fits = fits[1], crossing = FALSE, n = 100))
  expect_equal(coef(one), c(Intercept = 1, x = 2, `C(g)[b]` = 3))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_invisible(plot(several))
})

test_that("fits by group and quantile are named by both", {
  groups <- lapply(c("a", "b"), function(level) list(fits = list(c(result_of(c(1, 2, 3)), tau = 0.5)), level = level))
  expect_equal(colnames(coef(released("quantile_regression", list(groups = groups, by = "h", n = 100)))), c("a, 0.5", "b, 0.5"))
  groups <- lapply(c("a", "b"), function(level) result_of(c(1, 2, 3), level = level))
  expect_equal(colnames(coef(released("linear_regression", list(groups = groups, by = "h", n = 100)))), c("a", "b"))
})

test_that("survival by group is printed and drawn", {
  curve <- function(level) list(
    times = list(2, 5), survival = list(0.8, 0.625), standard_errors = list(0.1, 0.1), confidence_intervals = list(list(0.7, 0.9), list(0.5, 0.7)),
    at_risk = list(90, 70), events = list(9, 8), median = 4.125, median_interval = list(3, 6), level = level
  )
  found <- released("survival_curve", list(confidence_level = 0.95, horizon = 5, n = 100, groups = list(curve("a"), curve("b"))))
  expect_output(print(found), "b +5 +0.625")
  expect_output(print(found), "4.125")
  expect_equal(nrow(as.data.frame(found)), 4)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_invisible(plot(found))
  margins <- graphics::par("mar")
  expect_invisible(plot(found, at_risk = FALSE))
  expect_equal(graphics::par("mar"), margins)
  expect_equal(reticent:::numbers_at_risk(curve("a"), c(0, 1, 2, 4, 5, 6)), c("90", "90", "70", "70", "", ""))
})

test_that("follow-up within strata is a formula", {
  body <- reticent:::question_body(houses, "log_rank", list(time = Surv(days, died) ~ arm + strata(site), event = NULL, trend = TRUE), 1)
  expect_equal(body$query, list(kind = "log_rank", time = "days", event = "died", trend = TRUE, strata = "site", by = "arm"))
})

incidences <- function() {
  curve <- function(level, cause) list(
    level = level, cause = cause, times = list(2, 5), incidence = list(0.1, 0.25), standard_errors = list(0.02, 0.03), confidence_intervals = list(list(0.06, 0.14), list(0.2, 0.3)),
    at_risk = list(90, 70), events = list(9, 8), times_lost = list(0.1, 0.6), times_lost_standard_errors = list(0.01, 0.05)
  )
  test <- list(cause = "relapse", statistic = 5.02, df = 1, p_value = 0.025, observed_minus_expected = list(3, -3), until = 5, privacy_share = 0.1)
  released("cumulative_incidence", list(confidence_level = 0.95, n = 100, curves = list(curve("a", "relapse"), curve("a", "death"), curve("b", "relapse"), curve("b", "death")), tests = list(test)))
}

test_that("cumulative incidences are printed as cuminc's and drawn", {
  found <- incidences()
  expect_output(print(found), "relapse +5.02 +0.025 +1")
  expect_output(print(found), "b relapse +0.10? +0.25")
  expect_equal(names(as.data.frame(found)), c("group", "cause", "time", "estimate", "std.error", "conf.low", "conf.high"))
  expect_equal(nrow(as.data.frame(found)), 8)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_invisible(plot(found))
  skip_if_not_installed("ggplot2")
  expect_s3_class(print(ggplot2::autoplot(found)), "ggplot")
})

test_that("survival curves are printed as survfit's and drawn by ggplot2", {
  curve <- list(times = list(2, 5), survival = list(0.8, 0.6), standard_errors = list(0.1, 0.1), confidence_intervals = list(list(0.7, 0.9), list(0.5, 0.7)), at_risk = list(90, 70), events = list(9, 8))
  more <- list(confidence_level = 0.95, horizon = 5, n = 100, median_interval = list(4, NULL), restricted_mean = 4.2, restricted_mean_standard_error = 0.1)
  found <- released("survival_curve", c(curve, more))
  expect_output(print(found), "0.95LCL")
  expect_output(print(found), "17 +4.2 +0.1 +NA +4 +NA")
  skip_if_not_installed("ggplot2")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_s3_class(print(ggplot2::autoplot(found)), "ggplot")
})

test_that("survival is drawn where a group has no times", {
  empty <- list(times = list(), survival = list(), standard_errors = list(), confidence_intervals = list(), at_risk = list(), events = list(), level = "b")
  seen <- list(times = list(2, 5), survival = list(0.8, 0.6), standard_errors = list(0.1, 0.1), confidence_intervals = list(list(0.7, 0.9), list(0.5, 0.7)), at_risk = list(90, 70), events = list(9, 8), level = "a")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_invisible(plot(released("survival_curve", list(confidence_level = 0.95, horizon = NULL, n = 100, groups = list(seen, empty)))))
})

test_that("a crosstab is a table of cells", {
  found <- released("crosstab", list(columns = list("g", "b"), levels = list(list("x", "y"), list("0", "1")), values = list(list(1, 2), list(3, 4)), n = 10))
  expect_equal(as.data.frame(found), data.frame(g = c("x", "x", "y", "y"), b = c("0", "1", "0", "1"), count = c(1, 2, 3, 4)))
  expect_output(print(found), "y +1 +4")
})

test_that("what is not identifiable has no error anywhere", {
  result <- result_of(c(1, 2, 3))
  result$estimable[[2]] <- FALSE
  fit <- released("linear_regression", result)
  expect_equal(unname(is.na(summary(fit)$coefficients[, "Std. Error"])), c(FALSE, TRUE, FALSE))
  expect_equal(is.na(released_tables(fit)[[1]]$standard_errors), c(FALSE, TRUE, FALSE))
  expect_equal(is.na(confint(fit)[, 1]), c(Intercept = FALSE, x = TRUE, `C(g)[b]` = FALSE))
})

test_that("rows stay on the server, and a changed question is a new charge", {
  fit <- released("linear_regression", result_of(c(1, 2, 3)))
  expect_error(residuals(fit), "binned_residuals")
  expect_error(fitted(fit), "predict")
  expect_error(update(fit, . ~ . + z), "charged")
  attr(fit, "dataset") <- NULL
  expect_error(update(fit, . ~ . + z, epsilon = 1), "by its id")
  expect_equal(reticent:::formula_text(reticent:::updated("y ~ x + C(g)", . ~ . - x)), "y ~ C(g)")
})

test_that("a data set has its columns' names and its profile", {
  expect_equal(names(houses), c("y", "x", "g"))
  expect_equal(profile(houses)$median, 3)
})

test_that("marginal means are made on public values", {
  skip_if_not_installed("emmeans")
  fit <- released("linear_regression", result_of(c(1, 2, 3)))
  found <- as.data.frame(emmeans::emmeans(fit, ~g))
  expect_equal(found$emmean, c(1 + 2 * 3, 1 + 2 * 3 + 3))
  expect_equal(found$SE, sqrt(c(0.1^2 + 9 * 0.2^2, 0.1^2 + 9 * 0.2^2 + 0.3^2)))
})

counted <- function(...) {
  fit <- released("glm", result_of(c(1, 2, 3), family = "poisson", link = "log"), ...)
  fit$query$formula <- "k ~ x + C(g)"
  fit
}

test_that("predictions count the offset and the exposure", {
  new <- data.frame(x = c(0.5, 1), g = c("a", "b"), o = c(2, 3))
  expect_equal(predict(counted(offset = "o"), new), 1 + 2 * new$x + c(0, 3) + new$o)
  expect_equal(predict(counted(exposure = "o"), new, type = "response"), exp(1 + 2 * new$x + c(0, 3)) * new$o)
  expect_error(predict(counted(exposure = "o"), new[c("x", "g")]), "no column o")
})

test_that("a term that was left out is NA, and the rest answers", {
  result <- result_of(c(1, 2, 3))
  result$terms <- c(result$terms, "C(g)[z]")
  for (part in c("coefficients", "standard_errors", "privacy_standard_errors")) result[[part]] <- c(result[[part]], list(NULL))
  result$covariance <- c(lapply(result$covariance, function(row) c(row, list(NULL))), list(list(NULL, NULL, NULL, NULL)))
  result$confidence_intervals <- c(result$confidence_intervals, list(list(NULL, NULL)))
  result$estimable <- list(TRUE, TRUE, TRUE, FALSE)
  fit <- released("linear_regression", result)
  expect_identical(is.na(unname(coef(fit))), c(FALSE, FALSE, FALSE, TRUE))
  expect_equal(predict(fit, data.frame(x = 2, g = c("a", "b", "z"))), c(5, 8, NA))
  expect_equal(anova(fit)$Df, c(1, 1))
  expect_true(is.na(confint(fit)[4, 1]))
  expect_output(print(summary(fit)), "Not identifiable")
  grDevices::pdf(NULL)
  plot(fit)
  grDevices::dev.off()
})

test_that("a number that is a text or a factor is refused, and a date is a number of days", {
  fit <- released("linear_regression", result_of(c(1, 2, 3)))
  for (x in list("20000", factor("20000"), "2020")) expect_error(predict(fit, data.frame(x = x, g = "a")), "x holds texts or levels")
  for (x in list("1970-01-03", factor("1970-01-03"), as.Date("1970-01-03"), 2)) expect_equal(predict(fit, data.frame(x = x, g = "b")), 8)
  expect_true(is.na(predict(fit, data.frame(x = NA_character_, g = "b"))))
})

test_that("a level may be any text", {
  for (level in c("Don't know", "5\" pipe", "low (a", "a: b", "[c]")) {
    result <- result_of(c(1, 2, 3))
    result$terms <- list("Intercept", "x", paste0("x:C(g)[", level, "]"))
    fit <- released("linear_regression", result)
    expect_equal(predict(fit, data.frame(x = 2, g = c(level, "a"))), c(11, 5))
    expect_equal(rownames(anova(fit)), c("x", "x:C(g)"))
  }
})

test_that("emmeans transforms back what the fit transforms, and counts the exposure", {
  skip_if_not_installed("emmeans")
  shown <- function(fit) capture.output(print(emmeans::emmeans(fit, ~g)))
  logged <- released("linear_regression", result_of(c(1, 2, 3)))
  logged$query$formula <- "log(y) ~ x + C(g)"
  expect_match(shown(logged), "log (not the response) scale", fixed = TRUE, all = FALSE)
  found <- as.data.frame(emmeans::emmeans(logged, ~g, type = "response"))
  expect_equal(found$response, exp(c(7, 10)))
  rates <- counted()
  expect_match(shown(rates), "log (not the response) scale", fixed = TRUE, all = FALSE)
  expect_equal(as.data.frame(emmeans::emmeans(rates, ~g, type = "response"))$rate, exp(c(7, 10)))
  expect_equal(as.data.frame(emmeans::emmeans(counted(exposure = "y"), ~g, type = "response"))$rate, 5 * exp(c(7, 10)))
  expect_equal(as.data.frame(emmeans::emmeans(counted(offset = "y"), ~g))$emmean, 5 + c(7, 10))
})

test_that("a fit is drawn by ggplot2 and tidied by broom", {
  skip_if_not_installed("ggplot2")
  fit <- released("linear_regression", result_of(c(1, 2, 3)))
  drawn <- ggplot2::autoplot(fit)
  expect_equal(as.character(drawn$data$term), c("x", "C(g)[b]"))
  skip_if_not_installed("broom")
  expect_equal(broom::tidy(fit)$estimate, c(1, 2, 3))
})

test_that("agreement is Cohen's kappa, with the noise in its error", {
  table <- function(...) {
    result <- list(
      columns = list("a", "b"), levels = list(list("x", "y", "z"), list("x", "y", "z")),
      values = list(list(300, 50, 20), list(60, 200, 60), list(10, 80, 220)), standard_error = 12,
      independence = list(statistic = 1, df = 4, p_value = 0.3), n = 1000
    )
    released("crosstab", utils::modifyList(result, list(...)))
  }
  quiet <- cohens_kappa(table(standard_error = 0))
  expect_equal(unlist(quiet[1:3], use.names = FALSE), c(0.5786305493, 0.0212546118, 0), tolerance = 1e-8)
  expect_equal(unlist(cohens_kappa(table(), "linear")[1:3], use.names = FALSE), c(0.6517636486, 0.0362747610, 0.0308134402), tolerance = 1e-8)
  expect_equal(unlist(cohens_kappa(table(n = 1100), "quadratic")[1:3], use.names = FALSE), c(0.7242098986, 0.0497362945, 0.0460143523), tolerance = 1e-8)
  other <- table()
  other$result$levels <- list(list("x", "y", "z"), list("u", "v", "w"))
  expect_error(cohens_kappa(other), "same")
  alike <- table()
  alike$result$independence <- NULL
  expect_error(cohens_kappa(alike), "per")
})
