# SPDX-License-Identifier: Apache-2.0
# From a call's arguments to the JSON of a question.

ask <- function(dataset, kind, fields, epsilon, delta, idempotency_key, several = character()) {
  if (inherits(dataset, "formula") && inherits(fields[["formula"]], "reticent_dataset")) { # in the order of lm() and glm()
    asked <- dataset
    dataset <- fields[["formula"]]
    fields[["formula"]] <- asked
  }
  body <- question_body(dataset, kind, fields, if (!missing(epsilon)) epsilon, delta, several)
  key <- if (is.null(idempotency_key)) new_key() else idempotency_key
  release <- as_release(call_server(dataset$client, "POST", "/v1/releases", body, key))
  structure(release, dataset = dataset)
}

question_body <- function(dataset, kind, fields, epsilon = NULL, delta = NULL, several = character(), wanted = NULL) {
  if (!inherits(dataset, "reticent_dataset")) stop("The first argument is a data set: dataset(client, name).", call. = FALSE)
  open <- is.null(epsilon) && length(wanted) > 0
  if (!open && (!is.numeric(epsilon) || length(epsilon) != 1)) {
    stop("Give epsilon, one number: what this answer may cost.", call. = FALSE)
  }
  privacy <- if (open) structure(list(), names = character()) else list(epsilon = epsilon)
  if (!is.null(delta)) privacy$delta <- delta
  fields <- Filter(Negate(is.null), from_cliques(from_cluster(from_formula(from_family(fields)))))
  query <- c(list(kind = kind), Map(function(name, value) as_field(value, name %in% several), names(fields), fields))
  body <- list(dataset = dataset$name, query = query, privacy = privacy)
  if (!is.null(dataset$project)) body$project <- dataset$project
  if (!is.null(dataset$protocol)) body$protocol <- dataset$protocol
  if (length(wanted) > 0) body$wanted <- wanted
  body
}

# Sets of columns, each a list over HTTP, of one column, too; a vector of names is one set.
from_cliques <- function(fields) {
  if (is.character(fields$cliques)) fields$cliques <- list(fields$cliques)
  if (!is.null(fields$cliques)) fields$cliques <- lapply(fields$cliques, as.list)
  fields
}

# several: the field is a list over HTTP, of one entry, too.
as_field <- function(value, several) {
  if (inherits(value, "formula")) return(formula_text(value))
  if (is.list(value)) return(if (is.null(names(value))) unname(lapply(value, as_field, FALSE)) else lapply(value, as_field, FALSE))
  if (!is.null(names(value))) return(as.list(value))
  if (several || length(value) > 1) return(as.list(value))
  value
}

families <- c(binomial = "binomial", quasibinomial = "binomial", poisson = "poisson", quasipoisson = "poisson", gaussian = "gaussian", Gamma = "gamma")
usual_links <- c(binomial = "logit", poisson = "log", gaussian = "identity", gamma = "log")

# family = binomial, binomial() or binomial("probit") as the server has it: a name, and a link that is not the usual one.
from_family <- function(fields) {
  family <- fields$family
  if (is.function(family)) family <- family()
  if (!inherits(family, "family")) return(fields)
  name <- families[family$family]
  if (is.na(name)) stop("The families are ", paste(unique(families), collapse = ", "), " and negative_binomial; not ", family$family, ".", call. = FALSE)
  fields$family <- unname(name)
  if (is.null(fields[["link"]]) && family$link != usual_links[name] && !identical(family, stats::Gamma())) fields$link <- family$link
  fields
}

# age ~ sex as a column and a group, Surv(time, event) ~ group + strata(s) as follow-up; an empty right side is 1.
from_formula <- function(fields) {
  for (name in names(fields)) if (inherits(fields[[name]], "formula")) fields[[name]] <- without_libraries(fields[[name]])
  place <- Find(function(each) each %in% names(fields), c("column", "time"))
  formula <- if (!is.null(place)) fields[[place]]
  if (!inherits(formula, "formula")) return(fields)
  if (length(formula) != 3) stop("Write the formula with two sides, such as ", if (place == "time") "Surv(time, event) ~ group." else "age ~ sex.", call. = FALSE)
  right <- formula[[3]]
  if (place == "time" && is.call(right) && identical(right[[1]], quote(`+`)) && is.call(right[[3]]) && identical(right[[3]][[1]], quote(strata))) {
    fields$strata <- deparse1(right[[3]][[2]])
    right <- right[[2]]
  }
  group <- deparse1(right)
  if (group != "1") fields[[if (place == "time") "by" else "group"]] <- gsub("^(C|(as\\.)?factor)\\((.*)\\)$", "\\3", group)
  left <- formula[[2]]
  if (place == "column") {
    fields$column <- deparse1(left)
  } else {
    if (!is.call(left) || !identical(left[[1]], quote(Surv)) || length(left) != 3) stop("The left side is Surv(time, event).", call. = FALSE)
    fields$time <- deparse1(left[[2]])
    fields$event <- deparse1(left[[3]])
  }
  fields
}

# survival::Surv(t, d) as Surv(t, d).
without_libraries <- function(part) {
  if (!is.call(part)) return(part)
  if (identical(part[[1]], quote(`::`))) return(part[[3]])
  for (at in seq_along(part)) if (is.call(part[[at]])) part[[at]] <- without_libraries(part[[at]])
  part
}

# cluster = ~state as sandwich::vcovCL has it, two-way ~state + year; strata and weights as survey::svydesign has
# them: the columns' names.
from_cluster <- function(fields) {
  for (field in intersect(c("cluster", "strata", "weights"), names(fields))) {
    given <- fields[[field]]
    if (!inherits(given, "formula")) next
    side <- given[[length(given)]]
    two <- is.call(side) && identical(side[[1]], quote(`+`)) && all(vapply(as.list(side)[-1], is.name, NA))
    most <- if (field == "cluster") 2L else 1L
    if (length(given) != 2 || !(is.name(side) || (two && most > 1))) {
      stop("Write one column", if (most > 1) " or two", ": ", field, " = ~state", if (most > 1) " + year", ".", call. = FALSE)
    }
    fields[[field]] <- all.vars(side)
  }
  fields
}

# R's spelling in the server's: factor(g) is C(g), a power in I() has two stars.
formula_text <- function(formula) {
  text <- paste(deparse(formula, width.cutoff = 500L), collapse = " ")
  text <- gsub("(?<![A-Za-z0-9._])(?:[A-Za-z][A-Za-z0-9.]*::)?(as\\.)?factor\\(", "C(", text, perl = TRUE)
  gsub("^", "**", text, fixed = TRUE)
}
