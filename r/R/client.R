# SPDX-License-Identifier: Apache-2.0
# A connection to a server, and what can be asked of it for nothing.

reticent_client <- function(base_url, key = NULL, timeout = 300, retries = 4, ca_file = NULL) {
  if (!is.character(base_url) || length(base_url) != 1 || !grepl("^https?://", base_url)) {
    stop("The address of a server starts with http:// or https://.", call. = FALSE)
  }
  fields <- list(base_url = sub("/+$", "", base_url), id = new_key(), timeout = timeout, retries = retries, ca_file = ca_file)
  process$keys[[fields$id]] <- find_key(key)
  structure(fields, class = "reticent_client")
}

print.reticent_client <- function(x, ...) {
  cat("<reticent_client ", x$base_url, ">\n", sep = "")
  invisible(x)
}

datasets <- function(client) {
  found <- call_server(client, "GET", "/v1/datasets")$datasets
  data.frame(
    name = vapply(found, function(each) each$name, ""),
    n = vapply(found, function(each) as.numeric(each$n), 0),
    stringsAsFactors = FALSE
  )
}

dataset <- function(client, name, project = NULL, protocol = NULL) {
  path <- paste0("/v1/datasets/", utils::URLencode(name, reserved = TRUE))
  facts <- call_server(client, "GET", path)
  fields <- list(client = client, name = name, project = project, facts = facts)
  if (!is.null(protocol)) fields$protocol <- protocol
  structure(fields, class = "reticent_dataset")
}

print.reticent_dataset <- function(x, ...) {
  cat("<reticent_dataset ", x$name, ": ", format(x$facts$n, big.mark = ","), " records>\n", sep = "")
  if (nzchar(text_or(x$facts$description))) cat(strwrap(x$facts$description), sep = "\n")
  print(columns(x), row.names = FALSE)
  invisible(x)
}

columns <- function(dataset) {
  found <- dataset$facts$schema$columns
  number <- function(name) {
    vapply(found, function(each) if (is.null(each[[name]])) NA_real_ else as.numeric(each[[name]]), 0)
  }
  data.frame(
    name = names(found),
    kind = vapply(found, function(each) each$kind, ""),
    lower = number("lower"),
    upper = number("upper"),
    levels = vapply(found, function(each) paste(unlist(each$levels), collapse = ", "), ""),
    label = vapply(found, function(each) text_or(each$label, ""), ""),
    row.names = NULL, stringsAsFactors = FALSE
  )
}

# spent: total less remaining, so that a row adds up. Under the rule zcdp the epsilons of answers add up to more than that: what
# many answers cost together is less than their sum.
budget <- function(client) {
  accounts <- call_server(client, "GET", "/v1/budget")$accounts
  number <- function(part, name) {
    vapply(accounts, function(each) as.numeric(value_or(each[[part]][[name]], NA)), 0)
  }
  data.frame(
    dataset = vapply(accounts, function(each) each$dataset, ""),
    project = vapply(accounts, function(each) text_or(each$project, NA_character_), ""),
    rule = vapply(accounts, function(each) each$rule, ""),
    total = number("total", "epsilon"),
    spent = number("total", "epsilon") - number("remaining", "epsilon"),
    remaining = number("remaining", "epsilon"),
    stringsAsFactors = FALSE
  )
}

release <- function(client, id) {
  as_release(call_server(client, "GET", paste0("/v1/releases/", utils::URLencode(id, reserved = TRUE))))
}

plan <- function(dataset, kind, ..., epsilon = NULL, delta = NULL, ci_ratio = NULL, half_width = NULL) {
  wanted <- Filter(Negate(is.null), list(ci_ratio = as_widths(ci_ratio), half_width = as_widths(half_width)))
  body <- question_body(dataset, kind, list(...), epsilon, delta, wanted = wanted)
  structure(call_server(dataset$client, "POST", "/v1/plans", body), class = "reticent_plan")
}

# What would be estimated, and how wide the widest of its intervals is forecast to be.
target_line <- function(each) {
  ratios <- plain_vector(each$precision$ci_ratios)
  known <- length(ratios) && !anyNA(ratios)
  width <- if (known) paste("intervals up to", format(signif(max(ratios), 2)), "times as wide as without privacy") else "no interval expected for some terms"
  paste0(sub(";.*$", "", each$answers), ": ", width)
}

# Widths: one number for all, or numbers by name.
as_widths <- function(widths) if (is.null(names(widths))) widths else as.list(widths)

print.reticent_plan <- function(x, ...) {
  cat("A plan; nothing is charged.\n")
  for (each in list(x, x$other_target)) {
    if (nzchar(text_or(each$answers)) && !is.null(x$other_target)) cat(target_line(each), "\n", sep = "")
  }
  utils::str(unclass(x)[setdiff(names(x), c("query", "answers", "other_target"))], give.attr = FALSE, vec.len = 6, no.list = TRUE)
  invisible(x)
}
