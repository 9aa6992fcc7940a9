# SPDX-License-Identifier: Apache-2.0
# Against a server that whoever runs the tests has started; RETICENT_TEST_URL, RETICENT_KEY and RETICENT_TEST_DATA name it.

url <- Sys.getenv("RETICENT_TEST_URL")

test_that("from a key to a fit with a plot", {
  skip_if(!nzchar(url), "RETICENT_TEST_URL names no server")
  client <- reticent_client(url)
  houses <- dataset(client, "houses")
  fit <- linear_regression(houses, price ~ sqft_living + factor(waterfront), epsilon = 2)
  expect_s3_class(fit, "reticent_fit")
  expect_named(coef(fit), c("Intercept", "sqft_living", "C(waterfront)[1]"))
  expect_equal(nobs(fit), houses$facts$n)
  expect_lt(abs(coef(fit)[["sqft_living"]] / 200 - 1), 1)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_invisible(plot(fit))
  expect_equal(coef(release(client, fit$id)), coef(fit))
  expect_output(print(summary(fit)), "epsilon = 2")
})

test_that("every shape of answer can be printed and is a data frame", {
  skip_if(!nzchar(url), "RETICENT_TEST_URL names no server")
  client <- reticent_client(url)
  houses <- dataset(client, "houses")
  answers <- list(
    count(houses, "waterfront == \"1\"", epsilon = 1),
    private_mean(houses, "price", epsilon = 1),
    quantiles(houses, "price", c(0.25, 0.75), epsilon = 1),
    histogram(houses, "price", bins = c(0, 4e5, 1e6, 1e7), epsilon = 1),
    crosstab(houses, c("waterfront", "grade"), epsilon = 1),
    t_test(houses, "price", "waterfront", epsilon = 1)
  )
  for (answer in answers) {
    expect_output(print(answer), "Charged")
    expect_s3_class(as.data.frame(answer), "data.frame")
  }
  expect_equal(nrow(as.data.frame(answers[[4]])) %in% 3:4, TRUE)
  expect_gt(budget(client)$spent[1], 0)
  expect_true("houses" %in% datasets(client)$name)
  expect_output(print(houses), "records")
})

test_that("refusals are errors with words, and cost nothing", {
  skip_if(!nzchar(url), "RETICENT_TEST_URL names no server")
  client <- reticent_client(url)
  houses <- dataset(client, "houses")
  spent <- budget(client)$spent
  told <- expect_error(private_glm(houses, "waterfront ~ absent", "binomial", epsilon = 1), class = "reticent_invalid_formula")
  expect_match(conditionMessage(told), "\\^$")
  expect_error(dataset(client, "absent"), class = "reticent_not_found")
  expect_error(datasets(reticent_client(url, "rk_wrong")), class = "reticent_unauthorized")
  expect_output(print(plan(houses, "mean", column = "price", epsilon = 1)), "nothing is charged")
  expect_lte(plan(houses, "count", half_width = 20)$precision$half_widths[[1]], 20)
  expect_equal(budget(client)$spent, spent)
  expect_error(datasets(reticent_client("http://127.0.0.1:9", "k", retries = 0)), class = "reticent_transport")
})

test_that("a repeated key is a repeated answer, without a second charge", {
  skip_if(!nzchar(url), "RETICENT_TEST_URL names no server")
  client <- reticent_client(url)
  houses <- dataset(client, "houses")
  key <- reticent:::new_key()
  first <- private_mean(houses, "price", epsilon = 0.5, idempotency_key = key)
  spent <- budget(client)$spent
  expect_equal(private_mean(houses, "price", epsilon = 0.5, idempotency_key = key)$result, first$result)
  expect_equal(budget(client)$spent, spent)
})

test_that("a study is analysed for nothing", {
  skip_if(!nzchar(url), "RETICENT_TEST_URL names no server")
  client <- reticent_client(url)
  houses <- dataset(client, "houses")
  released <- study(houses, c("price", "sqft_living", "grade"), main = price ~ sqft_living, epsilon = 4)
  spent <- budget(client)$spent
  fit <- study_ols(released, price ~ sqft_living + grade)
  expect_named(coef(fit), c("Intercept", "sqft_living", "grade"))
  expect_lt(abs(coef(fit)[["sqft_living"]] / 160 - 1), 0.5)
  expect_equal(coef(study_main(release(client, released$id))), coef(study_main(released)))
  expect_output(print(released), "Free from here on")
  expect_equal(budget(client)$spent, spent)
})

test_that("names say what is estimated, and so does the first line", {
  skip_if(!nzchar(url), "RETICENT_TEST_URL names no server")
  houses <- dataset(reticent_client(url), "houses")
  first <- function(x) utils::capture.output(print(x))[1]
  expect_equal(first(summary(private_lm(price ~ grade, data = houses, epsilon = 1))), "Least squares.")
  expect_match(first(private_rlm(houses, price ~ grade, epsilon = 1)), "^Robust .*least squares may differ")
  both <- utils::capture.output(print(plan(houses, "linear_regression", formula = price ~ grade, loss = "squared", epsilon = 1)))
  expect_match(both[2], "^Least squares: ")
  expect_match(both[3], "^Robust")
})
