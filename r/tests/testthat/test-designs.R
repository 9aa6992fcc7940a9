# SPDX-License-Identifier: Apache-2.0
# What is made of staggered_did, discontinuity and histogram against the Python client's, which tests/support/kinds/r_designs.py has
# written beside them.

designs_fixture <- local({
  path <- test_path("designs.json")
  bytes <- readBin(path, "raw", file.size(path))
  httr2::resp_body_json(httr2::response(200, headers = list("Content-Type" = "application/json"), body = bytes))
})

released <- function(name) reticent:::as_release(c(designs_fixture$releases[[name]], status = "reply"))

# Numbers that are relative to the largest of theirs; infinite ones are texts in the fixture.
expect_same <- function(ours, theirs, tolerance = 1e-6, ...) {
  theirs <- vapply(theirs, as.numeric, 0)
  ours <- as.numeric(ours)
  expect_identical(is.infinite(ours), is.infinite(theirs), ...)
  finite <- is.finite(theirs)
  expect_identical(ours[!finite], theirs[!finite], ...)
  expect_lt(max(0, abs(ours - theirs)[finite]) / max(1e-3, abs(theirs)[finite]), tolerance, ...)
}

test_that("effects over time and their band are the Python client's", {
  for (control in names(designs_fixture$dynamic)) {
    found <- dynamic_effects(released("staggered"), control = control)
    for (k in seq_along(found)) expect_same(found[[k]], designs_fixture$dynamic[[control]][[k]], tolerance = 1e-5)
  }
  expect_identical(dynamic_effects(released("staggered")), dynamic_effects(released("staggered"), "never"))
  wider <- dynamic_effects(released("staggered"), level = 0.99)
  expect_true(all(wider$band.low < wider$conf.low & wider$conf.high < wider$band.high))
})

test_that("honest intervals and breakdown values are the Python client's", {
  study <- released("staggered")
  for (case in designs_fixture$honest) {
    expect_same(honest_did(study, case[[2]], case[[1]], case[[3]]), case[[4]], tolerance = 1e-5, label = paste(case[1:3], collapse = " "))
  }
  for (case in designs_fixture$breakdown) expect_same(honest_breakdown(study, case[[1]], case[[2]]), case[3], tolerance = 1e-5)
  expect_named(honest_did(study, 0.1), c("lower", "upper"))
  expect_lt(honest_did(study, 0.1, level = 0.99)[["lower"]], honest_did(study, 0.1)[["lower"]])
  expect_error(honest_did(study, -1), "negative")
  expect_error(honest_did(study, 0.1, at = -2), "times under treatment")
  expect_error(honest_did(released("response"), 0.1), "staggered_did")
  study$result$never$dynamic$at[[2]] <- 99
  expect_error(honest_did(study, 0.1, control = "never"), "none left out")
  study$result$never <- NULL
  study$result$not_yet <- NULL
  expect_error(honest_did(study, 0.1), "distinguished from the noise")
})

test_that("the critical value of one estimate is the normal law's, of many between it and Bonferroni's", {
  expect_equal(reticent:::critical_value(matrix(4), 0.95), qnorm(0.975))
  # Of independent estimates it is the quantile of the largest of p.
  expect_equal(reticent:::critical_value(diag(5), 0.95), qnorm((1 + 0.95^(1 / 5)) / 2), tolerance = 1e-3)
})

test_that("the effect of a fuzzy design is the Python client's", {
  for (case in designs_fixture$fuzzy) {
    found <- fuzzy_effect(released(case[[1]]), released(case[[2]]))
    expect_same(as.numeric(found), case[[3]], label = paste(case[1:2], collapse = " "))
  }
  whole <- vapply(designs_fixture$fuzzy, function(case) is.character(case[[3]][[2]]), NA)
  expect_true(any(whole) && !all(whole))
  expect_error(fuzzy_effect(released("response"), released("nowhere")), "but for y")
  expect_error(fuzzy_effect(released("response"), released("parabolas_treatment")), "but for y")
  expect_error(fuzzy_effect(released("response"), released("histogram")), "discontinuity")
})

test_that("the test of a density's jump is the Python client's", {
  expect_same(as.numeric(density_test(released("histogram"), 0, 6)), designs_fixture$density, tolerance = 1e-9)
  expect_error(density_test(released("histogram"), 0.1, 6), "inner edge")
  expect_error(density_test(released("histogram"), 0, 1.5), "four bins")
  expect_error(density_test(released("levels"), 0, 1), "edges")
})

test_that("a line's coefficients are a first look, not lost to the noise", {
  found <- capture.output(print(summary(released("response"))))
  expect_false(any(grepl("Not identifiable", found)))
  expect_true(any(grepl("Not identifiable.*: x >= 0[.]", capture.output(print(summary(released("hidden")))))))
})
