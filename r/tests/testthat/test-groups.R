# SPDX-License-Identifier: Apache-2.0
# Table 1 and differences of groups against the Python client's, which tests/support/kinds/r_groups.py has written beside them.

groups_fixture <- local({
  path <- test_path("groups.json")
  bytes <- readBin(path, "raw", file.size(path))
  httr2::resp_body_json(httr2::response(200, headers = list("Content-Type" = "application/json"), body = bytes))
})

as_row <- function(part) vapply(part, function(each) if (is.null(each)) NaN else as.numeric(each), 0)

expect_near <- function(ours, theirs) {
  expect_identical(is.nan(ours), is.nan(theirs))
  expect_lt(max(0, abs(ours - theirs) / pmax(1, abs(theirs)), na.rm = TRUE), 1e-8)
}

test_that("standardised differences and tests are the Python client's", {
  for (name in names(groups_fixture$tests)) {
    found <- table_one_tests(groups_fixture$releases[[name]])
    expect_identical(rownames(found), names(groups_fixture$tests[[name]]))
    for (column in rownames(found)) expect_near(as.numeric(found[column, ]), as_row(groups_fixture$tests[[name]][[column]]))
  }
})

test_that("Table 1 has a row for each figure", {
  table <- table_one(groups_fixture$releases$by_two)
  expect_identical(names(table), c("characteristic", "all", "0", "1", "SMD", "p"))
  expect_identical(table$characteristic[1:3], c("Records", "x, mean (SD)", "x, median"))
  expect_match(table$SMD[2], "^0[.][0-9]{2} \\[")
  expect_match(table_one(groups_fixture$releases$by_two, intervals = TRUE)[2, 2], "\\[")
  expect_error(table_one(groups_fixture$releases$mean), "description")
  hidden <- groups_fixture$releases$by_two
  for (k in seq_along(hidden$result$columns[[1]]$groups)) hidden$result$columns[[1]]$groups[[k]]$standard_deviation["value"] <- list(NULL)
  expect_match(table_one(hidden)[2, 2], " [(]-[)]$")
  expect_true(is.nan(table_one_tests(hidden)$smd[1]))
})

test_that("differences of groups are the Python client's, one at a time and all at once", {
  for (name in names(groups_fixture$differences)) for (adjust in names(groups_fixture$differences[[name]])) {
    found <- group_differences(groups_fixture$releases[[name]], adjust = adjust)
    theirs <- lapply(groups_fixture$differences[[name]][[adjust]], as_row)
    # R's own tables of Tukey's law have eight digits.
    for (k in seq_along(theirs)) expect_lt(max(abs(unname(found[[k]]) - theirs[[k]])), 1e-6)
  }
  expect_identical(nrow(group_differences(groups_fixture$releases$mean, reference = "b")), 3L)
  expect_error(group_differences(groups_fixture$releases$mean, reference = "b", adjust = "tukey"), "all pairs")
  expect_error(group_differences(groups_fixture$releases$by_two), "of an anova")
})

test_that("a Brier score is the Python client's", {
  expect_near(as.numeric(brier_score(groups_fixture$releases$residuals)), as_row(groups_fixture$brier))
  expect_error(brier_score(groups_fixture$releases$mean), "logit")
})
