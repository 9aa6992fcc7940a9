# SPDX-License-Identifier: Apache-2.0
# Pooled studies and meta-analyses against the Python client's; tests/support/kinds/r_pooled.py wrote the fixture.

fixture <- local({
  path <- test_path("pooled.json")
  bytes <- readBin(path, "raw", file.size(path))
  httr2::resp_body_json(httr2::response(200, headers = list("Content-Type" = "application/json"), body = bytes))
})
sites <- lapply(fixture$sites, reticent:::as_release)
numbers <- function(part) vapply(part, as.numeric, 0)

same_meta <- function(found, theirs) {
  for (part in c("estimate", "std.error", "Q", "I2", "p_value_Q")) expect_equal(found[[part]], theirs[[part]], tolerance = 1e-5)
  expect_equal(found$tau2, theirs$tau2, tolerance = 1e-4)
  expect_equal(as.vector(confint(found)), c(theirs$low, theirs$high), tolerance = 1e-5)
}

test_that("a pool answers as Python's does", {
  for (each in fixture$fits) {
    found <- pool(sites, weights = each$weights)
    fit <- study_ols(found, each$formula)
    expect_equal(names(coef(fit)), unlist(each$terms))
    expect_equal(unname(coef(fit)), numbers(each$coef), tolerance = 1e-8)
    expect_equal(unname(reticent:::standard_errors(fit)), numbers(each$bse), tolerance = 1e-8)
    expect_equal(unname(summary(fit)$coefficients[, "of which privacy"]), numbers(each$privacy_bse), tolerance = 1e-8)
    expect_equal(fit$result$gate, each$gate, tolerance = 1e-8)
  }
  one <- pool(sites)
  corr <- study_corr(one)
  expect_equal(unname(corr$values), do.call(rbind, lapply(fixture$corr, numbers)), tolerance = 1e-8)
  expect_equal(unname(corr$bse), do.call(rbind, lapply(fixture$corr_errors, numbers)), tolerance = 1e-8)
  expect_equal(study_pca(one)$noise, fixture$pca_noise, tolerance = 1e-8)
  expect_equal(unname(study_r2(one, "y ~ x + w")), numbers(fixture$r2), tolerance = 1e-6)
  expect_output(print(one), "Pooled study of a \\(n = 4,000\\)")
  expect_equal(nrow(as.data.frame(one)), 3)
  expect_equal(study_groups(one), c("a", "b", "c"))
  expect_identical(study_group(one, "b"), sites$b)
  expect_named(study_twin(one, rows = 10), c("y", "x", "w"))
})

test_that("heterogeneity and meta-analysis are Python's", {
  found <- heterogeneity(pool(sites), "y ~ x + w")
  expect_named(found, names(fixture$heterogeneity))
  for (term in names(found)) same_meta(found[[term]], fixture$heterogeneity[[term]])
  for (way in names(fixture$meta)) same_meta(meta(lapply(fixture$pairs, numbers), method = way), fixture$meta[[way]])
  expect_output(print(found[["x"]]), "errors count noise")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_invisible(plot(found[["x"]]))
  expect_error(meta(list(a = c(1, 1), b = c(1, NA))), "b: its number has no interval")
  expect_error(meta(list(a = c(1, 1))), "two sites")
})

test_that("a protocol has one digest in all languages", {
  for (each in fixture$protocols) {
    file <- tempfile(fileext = ".json")
    writeLines(enc2utf8(each$text), file, useBytes = TRUE)
    found <- protocol(file)
    expect_equal(found$digest, each$digest)
    expect_equal(reticent:::site_question(found, "south")$variables, c("y", "C(g)"))
    expect_equal(reticent:::site_epsilon(found, "south"), 0.5)
    expect_output(print(found), "signed: none")
  }
})

test_that("what a site answers and cannot be is refused", {
  wrong <- list(
    function(each) { each$result$moments[[2]][[3]] <- NaN; each },
    function(each) { each$result$moments <- each$result$moments[-1]; each },
    function(each) { each$result$noise$sd <- -1; each },
    function(each) { each$result$moments[[2]][[3]] <- 50; each }
  )
  expect_error(pool(list(a = sites$a, b = sites$a)), "count twice")
  for (change in wrong) expect_error(pool(list(a = sites$a, b = change(sites$b))), "b: its answer has numbers")
  question <- list(variables = unlist(sites$a$query$variables))
  n <- sites$a$result$n
  expect_silent(reticent:::require_asked("a", sites$a, question, n))
  expect_error(reticent:::require_asked("a", sites$a, list(variables = c("y", "z")), n), "another question, in variables")
  other <- sites$a
  other$query$where <- "x > 1"
  expect_error(reticent:::require_asked("a", other, question, n), "another question, in where")
  expect_error(reticent:::require_asked("a", sites$a, question, n + 1), "another number of records")
})

test_that("a pooled study is asked of a server", {
  url <- Sys.getenv("RETICENT_TEST_URL")
  skip_if(!nzchar(url), "RETICENT_TEST_URL names no server")
  houses <- dataset(reticent_client(url), "houses")
  file <- tempfile(fileext = ".json")
  text <- paste0(
    '{"protocol": 1, "study": {"variables": ["price", "grade"]}, "epsilon": 2, "columns": {"price": {"kind": "numeric"}, ',
    '"grade": {"kind": "integer"}}, "sites": {"north": {}, "south": {}}}'
  )
  writeLines(text, file)
  found <- pooled(file, list(north = houses, south = houses))
  expect_named(coef(study_ols(found, price ~ grade + site)), c("Intercept", "grade", "site[south]"))
  spent <- budget(houses$client)$spent
  expect_equal(pooled(file, list(north = houses, south = houses))$id, found$id)
  expect_equal(budget(houses$client)$spent, spent)
  writeLines(sub("numeric", "integer", text), file)
  expect_error(pooled(file, list(north = houses, south = houses)), "Nothing was asked or charged")
})
