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

# What belongs to this process: the keys of its clients, so that no saved fit or client holds one, and its own connections.
process <- new.env()
process$keys <- list()

key_of <- function(client) {
  key <- if (!is.null(client$id)) process$keys[[client$id]]
  if (is.null(key)) find_key(NULL) else key
}

call_server <- function(client, method, path, body = NULL, idempotency_key = NULL) {
  if (!is.null(body)) check_body(body)
  request <- httr2::request(paste0(client$base_url, path))
  request <- httr2::req_method(request, method)
  request <- httr2::req_auth_bearer_token(request, key_of(client))
  request <- httr2::req_timeout(request, client$timeout)
  if (!is.null(client$ca_file)) request <- httr2::req_options(request, cainfo = client$ca_file)
  if (!is.null(body)) request <- httr2::req_body_json(request, body, auto_unbox = TRUE, digits = NA)
  if (!is.null(idempotency_key)) {
    request <- httr2::req_headers(request, `Idempotency-Key` = idempotency_key)
  }
  # a forked process has its parent's open connection, on which it would read another's reply
  if (is.null(process$id)) process$id <- Sys.getpid()
  if (process$id != Sys.getpid()) request <- httr2::req_options(request, fresh_connect = TRUE, forbid_reuse = TRUE)
  request <- httr2::req_error(request, is_error = function(reply) FALSE)
  # a plan is free, and a release has a key: neither is charged twice
  again <- method == "GET" || path == "/v1/plans" || !is.null(idempotency_key)
  reply <- performed(request, if (again) client$retries else 0)
  if (inherits(reply, "error")) no_reply_came(client, idempotency_key, reply)
  if (httr2::resp_status(reply) >= 400) refuse(reply, body)
  content <- tryCatch(
    jsonlite::fromJSON(httr2::resp_body_string(reply), simplifyVector = FALSE), error = function(unread) not_ours(client)
  )
  given <- httr2::resp_header(reply, "Idempotency-Key")
  if (!is_answer(content, body) || (!is.null(given) && !identical(given, idempotency_key))) {
    text <- "The reply is the answer to another question, and is not used."
    if (!is.null(idempotency_key)) text <- paste0(text, " Ask again with idempotency_key = \"", idempotency_key, "\", which is no second charge.")
    raise(text, "transport")
  }
  content
}

# The reply, or the error of the last attempt. Ctrl-C, which curl makes an error of, stays what it is.
performed <- function(request, retries) {
  for (attempt in seq_len(retries + 1)) {
    reply <- tryCatch(httr2::req_perform(request), error = identity)
    failed <- inherits(reply, "error")
    if (failed && grepl("aborted by an application callback", reason_of(reply))) rlang::interrupt()
    if (attempt > retries || !(failed || httr2::resp_status(reply) %in% c(429, 502, 503, 504))) return(reply)
    asked <- if (failed) NA else httr2::resp_retry_after(reply)
    Sys.sleep(min(30, if (is.na(asked)) 0.25 * 2^(attempt - 1) else asked))
  }
}

reason_of <- function(problem) gsub("\\s+", " ", conditionMessage(if (is.null(problem$parent)) problem else problem$parent))

# Whether a reply is about the data set and the query that were asked; the server adds defaults.
is_answer <- function(content, body) {
  if (is.null(body$query) || is.null(content$query)) return(TRUE)
  same <- function(sent, found) {
    if (is.list(sent) && !is.null(names(sent))) return(all(vapply(intersect(names(sent), names(found)), function(name) same(sent[[name]], found[[name]]), NA)))
    isTRUE(all.equal(unlist(sent), unlist(found), check.attributes = FALSE))
  }
  same(body[c("dataset", "query")], content)
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
  text <- paste0("No reply from ", client$base_url, " (", reason_of(problem), "). Is the address right, and does the server run?")
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
