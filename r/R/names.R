# SPDX-License-Identifier: Apache-2.0
# Models by the names that R has for them. The name says what is estimated: lm() is least squares, rlm() is robust.

private_lm <- function(dataset, formula, where = NULL, epsilon, delta = NULL, ..., data = NULL) {
  asked <- in_order(list(if (!missing(dataset)) dataset, if (!missing(formula)) formula, data))
  linear_regression(asked$dataset, asked$formula, where, epsilon, delta, loss = "squared", ...)
}

private_rlm <- function(dataset, formula, where = NULL, epsilon, delta = NULL, psi = c("huber", "bisquare"), ..., data = NULL) {
  asked <- in_order(list(if (!missing(dataset)) dataset, if (!missing(formula)) formula, data))
  loss <- c(huber = "huber", bisquare = "tukey")[[match.arg(psi)]]
  linear_regression(asked$dataset, asked$formula, where, epsilon, delta, loss = loss, ...)
}

# The data set and the formula, in either order: houses |> private_lm(y ~ x), or private_lm(y ~ x, houses) as lm() has it.
in_order <- function(given) {
  is_dataset <- vapply(given, inherits, NA, "reticent_dataset")
  others <- Filter(Negate(is.null), given[!is_dataset])
  if (sum(is_dataset) != 1 || length(others) != 1) stop("Give a data set and a formula: private_lm(dataset(client, name), y ~ x, epsilon = 1).", call. = FALSE)
  list(dataset = given[is_dataset][[1]], formula = others[[1]])
}

# What lm(), glm(), rlm() and coxph() ask of their data: the rows, which stay with the curator.
as.data.frame.reticent_dataset <- function(x, ...) {
  stop(
    "The rows of ", x$name, " are private. Write private_lm(dataset, y ~ x, epsilon = 1) for lm(), private_rlm() for rlm(), ",
    "private_glm(family = ) for glm(), hazard_regression() for coxph().", call. = FALSE
  )
}
