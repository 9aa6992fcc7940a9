# SPDX-License-Identifier: Apache-2.0
# Names say what is estimated, and the first line of what is printed too.

houses <- structure(list(client = NULL, name = "houses", project = NULL), class = "reticent_dataset")

fitted_model <- function(answers) {
  reticent:::as_release(list(
    id = "rel_1", dataset = "houses", version = 1, status = "reply", answers = answers,
    query = list(kind = "linear_regression", formula = "y ~ x"), charged = list(epsilon = 1, delta = 1e-6),
    guarantee = list(statement = "A guarantee."),
    result = list(
      terms = list("Intercept", "x"), coefficients = list(1, 2), standard_errors = list(0.1, 0.2),
      privacy_standard_errors = list(0.05, 0.1), covariance = list(list(0.01, 0), list(0, 0.04)),
      estimable = list(TRUE, TRUE), n = 100
    )
  ))
}

# The body that a call would post.
posted <- function(call) {
  sent <- NULL
  asked <- function(client, method, path, body = NULL, idempotency_key = NULL) {
    sent <<- body
    unclass(fitted_model("Least squares"))
  }
  own <- reticent:::call_server
  utils::assignInNamespace("call_server", asked, "reticent")
  on.exit(utils::assignInNamespace("call_server", own, "reticent"))
  force(call)
  sent
}

test_that("private_lm is least squares and private_rlm is robust, in either order of arguments", {
  for (body in list(
    posted(private_lm(houses, y ~ x + factor(g), epsilon = 1)), posted(private_lm(y ~ x + factor(g), houses, epsilon = 1)),
    posted(private_lm(y ~ x + factor(g), data = houses, epsilon = 1)), posted(private_lm(formula = y ~ x + factor(g), data = houses, epsilon = 1))
  )) {
    expect_equal(body$dataset, "houses")
    expect_equal(body$query$formula, "y ~ x + C(g)")
    expect_equal(body$query$loss, "squared")
  }
  expect_equal(posted(private_rlm(houses, y ~ x, epsilon = 1))$query$loss, "huber")
  expect_equal(posted(private_rlm(y ~ x, data = houses, epsilon = 1, psi = "bisquare"))$query$loss, "tukey")
  further <- posted(private_lm(houses, y ~ x, "x > 0", epsilon = 1, by = "g", fit_statistics = FALSE))
  expect_equal(further$query$where, "x > 0")
  expect_equal(further$query$by, "g")
  expect_equal(posted(private_lm(y ~ x, houses, epsilon = 1, cluster = ~state))$query$cluster, "state")
  expect_equal(posted(private_lm(y ~ x, houses, epsilon = 1, cluster = "state"))$query$cluster, "state")
  expect_equal(posted(private_lm(y ~ x, houses, epsilon = 1, cluster = ~ state + year))$query$cluster, list("state", "year"))
  surveyed <- posted(private_lm(y ~ x, houses, epsilon = 1, cluster = ~psu, strata = ~stratum, weights = ~w))$query
  expect_equal(surveyed[c("cluster", "strata", "weights")], list(cluster = "psu", strata = "stratum", weights = "w"))
  expect_error(private_lm(y ~ x, houses, epsilon = 1, cluster = ~ state * year), "one column or two")
  glm <- posted(private_glm(y ~ x, houses, family = binomial, epsilon = 1))
  expect_equal(glm$query[c("formula", "family")], list(formula = "y ~ x", family = "binomial"))
})

test_that("cliques are sets of columns, of one column, too, and a vector of names is one", {
  cliques <- function(given) posted(synthetic(houses, c("x", "y"), cliques = given, epsilon = 1))$query$cliques
  expect_equal(cliques(list("x", c("x", "y"))), list(list("x"), list("x", "y")))
  expect_equal(cliques(c("x", "y")), list(list("x", "y")))
  expect_null(cliques(NULL))
})

test_that("what lacks a data set or epsilon says what to write", {
  expect_error(private_lm(y ~ x, epsilon = 1), "Give a data set and a formula")
  expect_error(private_lm(houses, y ~ x), "Give epsilon")
  expect_error(lm(y ~ x, data = houses), "private_lm")
  expect_error(glm(y ~ x, data = houses), "private_glm")
})

test_that("the first line says what is estimated", {
  words <- "Robust (Huber–Mallows); least squares may differ"
  fit <- fitted_model(words)
  first <- function(x) utils::capture.output(print(x))[1]
  expect_equal(first(fit), paste0(words, "."))
  expect_equal(first(summary(fit)), paste0(words, "."))
  expect_equal(first(fitted_model("Least squares")), "Least squares.")
  expect_match(first(fitted_model(NULL)), "^linear regression on houses")
})

test_that("a plan tells both targets", {
  one <- function(answers, ratios) list(answers = answers, precision = list(names = list("Intercept", "x"), ci_ratios = ratios))
  plan <- structure(c(one("Least squares", list(1.2, 1.63)), list(other_target = one("Robust (Huber–Mallows); least squares may differ", list(1.1, NULL)))), class = "reticent_plan")
  said <- utils::capture.output(print(plan))
  expect_true("Least squares: intervals up to 1.6 times as wide as without privacy" %in% said)
  expect_true("Robust (Huber–Mallows): no interval expected for some terms" %in% said)
})
