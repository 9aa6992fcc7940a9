# SPDX-License-Identifier: Apache-2.0
# What needs no server: the JSON of questions, terms of new data, errors in words.

document <- function(...) {
  fit <- list(
    id = "rel_1", dataset = "houses", version = 1, status = "reply",
    query = list(kind = "linear_regression", formula = "y ~ x + C(g) + C(g):x + log(z)"),
    charged = list(epsilon = 1, delta = 1e-6), guarantee = list(statement = "A guarantee."),
    result = list(
      terms = list("Intercept", "x", "C(g)[b]", "C(g)[b]:x", "log(z)"),
      coefficients = list(1, 2, 3, 4, 5), standard_errors = list(0.1, 0.2, 0.3, 0.4, 9),
      privacy_standard_errors = list(0.05, 0.1, 0.1, 0.1, 8),
      covariance = lapply(1:5, function(i) as.list(replace(numeric(5), i, c(0.1, 0.2, 0.3, 0.4, 9)[i]^2))),
      estimable = list(TRUE, TRUE, TRUE, TRUE, FALSE), n = 100
    )
  )
  utils::modifyList(fit, list(...))
}

sure <- function(document) {
  document$result$estimable <- as.list(rep(TRUE, 5))
  reticent:::as_release(document)
}

houses <- structure(list(client = NULL, name = "houses", project = NULL), class = "reticent_dataset")

test_that("a fit answers as a fit does", {
  fit <- reticent:::as_release(document())
  expect_s3_class(fit, "reticent_fit")
  expect_equal(unname(coef(fit)), 1:5)
  expect_equal(dim(vcov(fit)), c(5, 5))
  expect_equal(unname(sqrt(diag(vcov(fit)))), c(0.1, 0.2, 0.3, 0.4, 9))
  expect_equal(unname(confint(fit, "x")[1, ]), 2 + c(-1, 1) * qnorm(0.975) * 0.2)
  expect_true(all(is.na(confint(fit)["log(z)", ])))
  expect_equal(nobs(fit), 100)
  expect_equal(anova(fit)["C(g)", "Chisq"], (3 / 0.3)^2)
  expect_equal(anova(fit)["log(z)", "Df"], 0)
  expect_output(print(summary(fit)), "Not identifiable")
  expect_equal(deparse(formula(fit)), "y ~ x + factor(g) + factor(g):x + log(z)")
  expect_error(anova(fit, fit), "independent noise")
})

test_that("predictions are of the server's coding", {
  fit <- sure(document())
  new <- data.frame(x = c(1, 2), g = c("a", "b"), z = c(1, exp(1)))
  expect_equal(unname(predict(fit, new)), c(3, 1 + 4 + 3 + 8 + 5))
  found <- predict(fit, new, level = 0.95, se.fit = TRUE)
  expect_equal(found$se.fit[1], sqrt(0.1^2 + 0.2^2))
  expect_equal(colnames(found$fit), c("fit", "lwr", "upr"))
  expect_error(predict(fit, new["x"]), "no column")
  expect_error(predict(fit), "newdata")
  unsure <- reticent:::as_release(document())
  expect_equal(is.na(unname(predict(unsure, new))), c(FALSE, TRUE))
})

test_that("a level that the fit has not is an error", {
  told <- document()
  told$result$baselines <- list(g = "a")
  fit <- sure(told)
  new <- data.frame(x = c(1, 2), g = c("a", "b"), z = c(1, exp(1)))
  expect_equal(predict(fit, new), predict(sure(document()), new))
  expect_error(predict(fit, transform(new, g = c("a", "w"))), "no level w")
})

test_that("inverse links are those of the release", {
  fit <- sure(document(query = list(kind = "glm", family = "binomial")))
  fit$result$family <- "binomial"
  fit$result$link <- "logit"
  new <- data.frame(x = 0, g = "a", z = 1)
  expect_equal(unname(predict(fit, new, type = "response")), plogis(1))
  fit$result$link <- "log"
  expect_equal(unname(predict(fit, new, type = "response")), exp(1))
  fit$result$link <- NULL
  expect_error(predict(fit, new, type = "response"), "link")
  fit$result$levels <- list("a", "b", "c")
  expect_error(predict(fit, new), "each level")
})

test_that("no term runs code", {
  expect_error(reticent:::value_of("system(x)", data.frame(x = 1)), "cannot be computed")
  expect_equal(reticent:::value_of("I(x**2)", data.frame(x = 3)), 9)
  expect_equal(reticent:::split_term("C(g)[a:b]:x"), c("C(g)[a:b]", "x"))
})

test_that("contrasts and joined levels are read from the names of terms", {
  new <- data.frame(g = c("a", "b", "c", NA), x = 2)
  sums <- c("C(g, Sum)[S.a]", "C(g, Sum)[S.b]", "C(g, Sum)[S.b]:x")
  expect_equal(unname(reticent:::design_of(sums, new)), cbind(c(1, 0, -1, NA), c(0, 1, -1, NA), c(0, 2, -2, NA)))
  steps <- c("C(g, Helmert)[H.intercept]", "C(g, Helmert)[H.b]", "C(g, Helmert)[H.c]")
  expect_equal(unname(reticent:::design_of(steps, new)), cbind(c(1, 1, 1, NA), c(-1, 1, 0, NA), c(-1, -1, 2, NA)))
  joined <- c('merge(g, low=["a", "b"])[low]', 'lump(g, keep=["b"])[other]', "lump(g, keep=[\"b\"], other=\"the rest\")[the rest]")
  expect_equal(unname(reticent:::design_of(joined, new)), cbind(c(1, 1, 0, NA), c(1, 0, 1, NA), c(1, 0, 1, NA)))
  expect_equal(reticent:::term_of(sums[3]), "C(g, Sum):x")
  expect_equal(reticent:::term_of(joined[1]), 'merge(g, low=["a", "b"])')
})

test_that("centres, scales and dates are in the names of terms", {
  new <- data.frame(x = 5, sold = as.Date("2014-05-02"))
  terms <- c("center(x, at=3)", "I(scale(x, at=-1, by=2)**2)", "year(sold)", "month(sold)", 'days_since(sold, "2014-05-01")', "sold")
  expect_equal(c(reticent:::design_of(terms, new)), c(2, 9, 2014, 5, 1, 16192))
  expect_equal(c(reticent:::design_of(c("C(month(sold))[5]", "C(year(sold), Sum)[S.2013]"), new)), c(1, -1))
})

test_that("a question is the JSON that the server reads", {
  body <- reticent:::question_body(houses, "crosstab", list(columns = c("a", "b"), where = NULL), 1, NULL, "columns")
  expect_equal(body$query, list(kind = "crosstab", columns = list("a", "b")))
  body <- reticent:::question_body(houses, "quantiles", list(probabilities = 0.5), 1, 1e-6, "probabilities")
  expect_equal(body$query$probabilities, list(0.5))
  expect_equal(body$privacy, list(epsilon = 1, delta = 1e-6))
  expect_equal(reticent:::formula_text(y ~ factor(g) + I(x^2)), "y ~ C(g) + I(x**2)")
  expect_equal(reticent:::as_field(list(c(0, 1), c(2, 3)), FALSE), list(list(0, 1), list(2, 3)))
  expect_error(count(houses), "epsilon")
  expect_error(count("houses", epsilon = 1), "data set")
})

test_that("idempotency keys do not repeat after set.seed()", {
  set.seed(1)
  first <- reticent:::new_key()
  set.seed(1)
  expect_false(first == reticent:::new_key())
  expect_match(first, "^[A-Za-z0-9]{20,}$")
})

test_that("an error points at the place in the formula", {
  body <- list(query = list(formula = "y ~ secret"))
  told <- strsplit(reticent:::pointed("At position 5 of the formula: unknown.", body), "\n")[[1]]
  expect_equal(regexpr("^", told[3], fixed = TRUE)[1], regexpr("secret", told[2])[1])
  expect_equal(reticent:::pointed("Something else.", body), "Something else.")
})

test_that("tidy and glance are those of generics", {
  skip_if_not_installed("generics")
  fit <- reticent:::as_release(document())
  found <- generics::tidy(fit, conf.int = TRUE, exponentiate = TRUE)
  expect_named(found, c("term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"))
  expect_equal(found$estimate[2], exp(2))
  expect_equal(generics::glance(fit)$nobs, 100)
})

test_that("a client says where its key may stand", {
  old <- Sys.getenv(c("RETICENT_KEY", "RETICENT_KEY_FILE"), names = TRUE)
  on.exit(do.call(Sys.setenv, as.list(old)))
  Sys.setenv(RETICENT_KEY = "", RETICENT_KEY_FILE = "")
  expect_error(reticent_client("http://127.0.0.1:1"), "RETICENT_KEY_FILE")
  expect_error(reticent_client("127.0.0.1", "k"), "http://")
  Sys.setenv(RETICENT_KEY = " rk_1 ")
  expect_equal(reticent:::key_of(reticent_client("http://127.0.0.1:1")), "rk_1")
})

test_that("no export masks a function of base R", {
  base <- unlist(lapply(c("base", "stats", "graphics", "utils", "methods"), getNamespaceExports))
  expect_equal(intersect(getNamespaceExports("reticent"), base), character())
})

test_that("a p-value below .001 is said to be below it", {
  test <- document()
  test$query <- list(kind = "t_test", column = "x")
  test$result <- list(statistic = 25.2, p_value = 0, n = 100)
  expect_output(print(reticent:::as_release(test)), "p_value: < .001", fixed = TRUE)
  test$result$p_value <- 0.0312
  expect_output(print(reticent:::as_release(test)), "p_value: 0.031", fixed = TRUE)
})
