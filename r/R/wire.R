# SPDX-License-Identifier: Apache-2.0
# What goes over the wire: JSON, a key, retries that are never a second charge, and errors in words.

find_key <- function(key) {
  if (is.null(key)) key <- Sys.getenv("RETICENT_KEY")
  if (!nzchar(key) && nzchar(Sys.getenv("RETICENT_KEY_FILE"))) {
    file <- path.expand(Sys.getenv("RETICENT_KEY_FILE"))
    if (!file.exists(file)) stop("The file that RETICENT_KEY_FILE names cannot be read.", call. = FALSE)
    key <- readLines(file, n = 1, warn = FALSE)
  }
  if (!nzchar(key)) {
    stop("Give reticent_client() a key, or set RETICENT_KEY, or RETICENT_KEY_FILE to its file.", call. = FALSE)
  }
  trimws(key)
}

# An idempotency key: of the clock, the process and names of temporary files, because R's random numbers
# repeat after set.seed(), and a repeated key would give an earlier release again.
new_key <- function() {
  parts <- c(
    basename(tempfile("")), basename(tempfile("")), Sys.getpid(),
    format(as.numeric(Sys.time()) * 1e6, digits = 20)
  )
  gsub("[^A-Za-z0-9]", "", paste(parts, collapse = ""))
}

call_server <- function(client, method, path, body = NULL, idempotency_key = NULL) {
  if (!is.null(body)) check_body(body)
  request <- httr2::request(paste0(client$base_url, path))
  request <- httr2::req_method(request, method)
  request <- httr2::req_auth_bearer_token(request, client$key)
  request <- httr2::req_timeout(request, client$timeout)
  if (!is.null(client$ca_file)) request <- httr2::req_options(request, cainfo = client$ca_file)
  if (!is.null(body)) request <- httr2::req_body_json(request, body, auto_unbox = TRUE, digits = NA)
  if (!is.null(idempotency_key)) {
    request <- httr2::req_headers(request, `Idempotency-Key` = idempotency_key)
  }
  # a plan is free, and a release has a key: neither is charged twice
  if (method == "GET" || path == "/v1/plans" || !is.null(idempotency_key)) {
    waits <- c(429, 502, 503, 504)
    request <- httr2::req_retry(
      request, max_tries = client$retries + 1,
      is_transient = function(reply) httr2::resp_status(reply) %in% waits
    )
  }
  request <- httr2::req_error(request, is_error = function(reply) FALSE)
  reply <- tryCatch(
    httr2::req_perform(request),
    httr2_failed = function(problem) no_reply_came(client, idempotency_key, problem), # its name before httr2 1.0
    httr2_failure = function(problem) no_reply_came(client, idempotency_key, problem)
  )
  if (httr2::resp_status(reply) >= 400) refuse(reply, body)
  tryCatch(httr2::resp_body_json(reply), error = function(unread) not_ours(client))
}

# What cannot be written as JSON is the caller's: it is said before anything is sent, by the field's name.
check_body <- function(body) {
  plain <- function(value) is.null(value) || is.atomic(value) || (is.list(value) && all(vapply(value, plain, NA)))
  wrong <- names(Filter(Negate(plain), body$query))
  if (length(wrong)) {
    value <- body$query[[wrong[1]]]
    raise(paste0(wrong[1], " is a ", class(value)[1], ", which cannot be sent: give text, numbers, or a formula where the function takes one."), "invalid_query")
  }
}

not_ours <- function(client) {
  raise(paste0("What answers at ", client$base_url, " is not a Reticent server: its reply is no JSON. Is the address right?"), "server")
}

no_reply_came <- function(client, idempotency_key, problem) {
  why <- gsub("\\s+", " ", conditionMessage(if (is.null(problem$parent)) problem else problem$parent))
  text <- paste0("No reply from ", client$base_url, " (", why, "). Is the address right, and does the server run?")
  if (!is.null(idempotency_key)) {
    text <- paste0(
      text, " The release may have been charged: the same call with idempotency_key = \"",
      idempotency_key, "\" gives it, without a second charge."
    )
  }
  raise(text, "transport")
}

refuse <- function(reply, body) {
  status <- httr2::resp_status(reply)
  problem <- tryCatch(
    httr2::resp_body_json(reply, check_type = FALSE), error = function(unread) list()
  )
  detail <- text_or(problem$detail, text_or(problem$title, paste("The server replied", status)))
  if (grepl("unknown column", detail)) detail <- paste(detail, "columns(dataset) lists them.")
  raise(pointed(detail, body), text_or(problem$code, "server"), status)
}

raise <- function(text, code, status = NA_integer_) {
  kind <- c(paste0("reticent_", code), "reticent_error", "error", "condition")
  stop(structure(list(message = text, call = NULL, code = code, status = status), class = kind))
}

# The question's text under the sentence that names a position in it, with a caret.
pointed <- function(sentence, body) {
  found <- regmatches(sentence, regexec("position ([0-9]+) of the (formula|where condition)", sentence))[[1]]
  if (length(found) == 0) return(sentence)
  text <- body$query[[if (found[3] == "formula") "formula" else "where"]]
  if (!is.character(text)) return(sentence)
  paste0(sentence, "\n    ", text, "\n    ", strrep(" ", as.integer(found[2]) - 1), "^")
}

value_or <- function(value, otherwise) if (is.null(value)) otherwise else value

text_or <- function(value, otherwise = "") if (is.character(value)) value else otherwise
