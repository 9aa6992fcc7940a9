# SPDX-License-Identifier: Apache-2.0
# From a call's arguments to the JSON of a question.

ask <- function(dataset, kind, fields, epsilon, delta, idempotency_key, several = character()) {
  body <- question_body(dataset, kind, fields, if (!missing(epsilon)) epsilon, delta, several)
  key <- if (is.null(idempotency_key)) new_key() else idempotency_key
  as_release(call_server(dataset$client, "POST", "/v1/releases", body, key))
}

question_body <- function(dataset, kind, fields, epsilon = NULL, delta = NULL, several = character(), wanted = NULL) {
  if (!inherits(dataset, "reticent_dataset")) stop("The first argument is a data set: dataset(client, name).", call. = FALSE)
  open <- is.null(epsilon) && length(wanted) > 0
  if (!open && (!is.numeric(epsilon) || length(epsilon) != 1)) {
    stop("Give epsilon, one number: what this answer may cost.", call. = FALSE)
  }
  privacy <- if (open) structure(list(), names = character()) else list(epsilon = epsilon)
  if (!is.null(delta)) privacy$delta <- delta
  fields <- Filter(Negate(is.null), fields)
  query <- c(list(kind = kind), Map(function(name, value) as_field(value, name %in% several), names(fields), fields))
  body <- list(dataset = dataset$name, query = query, privacy = privacy)
  if (!is.null(dataset$project)) body$project <- dataset$project
  if (length(wanted) > 0) body$wanted <- wanted
  body
}

# several: the field is a list over HTTP, of one entry, too.
as_field <- function(value, several) {
  if (inherits(value, "formula")) return(formula_text(value))
  if (is.list(value)) return(if (is.null(names(value))) unname(lapply(value, as_field, FALSE)) else lapply(value, as_field, FALSE))
  if (!is.null(names(value))) return(as.list(value))
  if (several || length(value) > 1) return(as.list(value))
  value
}

# R's spelling in the server's: factor(g) is C(g), a power in I() has two stars.
formula_text <- function(formula) {
  text <- paste(deparse(formula, width.cutoff = 500L), collapse = " ")
  gsub("^", "**", gsub("\\bfactor\\(", "C(", text), fixed = TRUE)
}
