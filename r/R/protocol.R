# SPDX-License-Identifier: Apache-2.0
# A protocol: what the sites of a pooled study agree on. The Python client's reticent._pooled.protocol describes the file.

MOST_DIGITS <- 21 # digits before the point beyond which a number is written with an exponent (ECMA-262)
MOST_ZEROS <- 6 # places after the point of the first digit beyond which it is, too

protocol <- function(file) {
  content <- tryCatch({
    bytes <- readBin(file, "raw", file.size(file))
    httr2::resp_body_json(httr2::response(200, headers = list("Content-Type" = "application/json"), body = bytes))
  }, error = function(problem) stop(file, " is not a file of JSON.", call. = FALSE))
  if (!identical(as.numeric(value_or(content$protocol, 0)), 1)) stop("A protocol is a JSON object with \"protocol\": 1.", call. = FALSE)
  signatures <- content$signatures
  content$signatures <- NULL
  if (length(content$sites) < 2 || is.null(names(content$sites))) stop("The protocol's \"sites\" are two or more, by name.", call. = FALSE)
  if (!length(content$study$variables)) stop("The protocol's \"study\" names its \"variables\".", call. = FALSE)
  text <- canonical_json(content)
  structure(list(
    document = content, digest = sha256_of(text), sites = names(content$sites),
    signed = vapply(signatures, function(each) each$site, "")
  ), class = "reticent_protocol")
}

print.reticent_protocol <- function(x, ...) {
  cat("<reticent_protocol ", text_or(x$document$title), ">\nsites: ", listed(x$sites), "\nsigned: ", listed(x$signed, "none"), "\ndigest: ", x$digest, "\n", sep = "")
  invisible(x)
}

# RFC 8785: members by name, no blanks, numbers as ECMAScript writes them.
canonical_json <- function(value) {
  if (is.null(value)) return("null")
  if (is.list(value) && !is.null(names(value))) {
    inner <- value[order(names(value), method = "radix")]
    members <- vapply(seq_along(inner), function(at) paste0(json_text(names(inner)[at]), ":", canonical_json(inner[[at]])), "")
    return(paste0("{", paste(members, collapse = ","), "}"))
  }
  if (is.list(value)) return(paste0("[", paste(vapply(value, canonical_json, ""), collapse = ","), "]"))
  if (is.logical(value)) return(if (value) "true" else "false")
  if (is.character(value)) return(json_text(value))
  json_number(as.numeric(value))
}

json_text <- function(text) {
  escapes <- c("\\" = "\\\\", "\"" = "\\\"", "\b" = "\\b", "\f" = "\\f", "\n" = "\\n", "\r" = "\\r", "\t" = "\\t")
  characters <- strsplit(enc2utf8(text), "")[[1]]
  for (at in seq_along(characters)) {
    code <- utf8ToInt(characters[at])
    if (characters[at] %in% names(escapes)) characters[at] <- escapes[[characters[at]]]
    else if (code < 32) characters[at] <- sprintf("\\u%04x", code)
  }
  paste0("\"", paste(characters, collapse = ""), "\"")
}

json_number <- function(x) {
  if (x == 0) return("0")
  for (places in 0:16) {
    text <- sprintf("%.*e", places, abs(x))
    if (as.numeric(text) == abs(x)) break
  }
  halves <- strsplit(text, "e", fixed = TRUE)[[1]]
  digits <- sub("0+$", "", gsub(".", "", halves[1], fixed = TRUE))
  point <- as.integer(halves[2]) + 1L
  k <- nchar(digits)
  minus <- if (x < 0) "-" else ""
  if (k <= point && point <= MOST_DIGITS) return(paste0(minus, digits, strrep("0", point - k)))
  if (0 < point && point <= MOST_DIGITS) return(paste0(minus, substr(digits, 1, point), ".", substring(digits, point + 1)))
  if (-MOST_ZEROS < point && point <= 0) return(paste0(minus, "0.", strrep("0", -point), digits))
  rest <- substring(digits, 2)
  paste0(minus, substr(digits, 1, 1), if (nzchar(rest)) paste0(".", rest), sprintf("e%+d", point - 1L))
}

# In hexadecimal.
sha256_of <- function(text) paste(openssl::sha256(enc2utf8(text)), collapse = "")

site_epsilon <- function(terms, site) as.numeric(value_or(terms$document$sites[[site]]$epsilon, terms$document$epsilon))

# Words of a formula's text, of which some are columns.
words_of <- function(text) gsub("`", "", regmatches(text, gregexpr("`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*", text))[[1]])

# The study's fields for a site: without the variables that it does not have.
site_question <- function(terms, site) {
  asked <- Filter(Negate(is.null), terms$document$study)
  absent <- unlist(terms$document$sites[[site]]$without)
  has <- function(text) !any(words_of(text) %in% absent)
  asked$variables <- unlist(Filter(has, asked$variables))
  if (!is.null(asked$main) && !has(asked$main)) asked$main <- NULL
  asked
}

# What in a site's public schema does not agree.
site_problems <- function(terms, site, dataset) {
  own <- terms$document$sites[[site]]
  found <- dataset$facts$schema$columns
  agreed <- terms$document$columns
  unlist(lapply(setdiff(names(agreed), unlist(own$without)), function(name) {
    column <- found[[name]]
    if (is.null(column)) return(paste0(site, " has no column ", name, "."))
    stated <- agreed[[name]]
    kind <- if (isTRUE(column$date)) "date" else if (isTRUE(column$ordered)) "ordered" else column$kind
    bounds <- as.numeric(unlist(value_or(own$bounds[[name]], stated$bounds)))
    levels <- unlist(stated$levels)
    c(
      if (!is.null(stated$kind) && kind != stated$kind) paste0(site, ": ", name, " is ", kind, ", agreed is ", stated$kind, "."),
      if (length(levels) && !identical(as.character(levels), as.character(unlist(column$levels)))) paste0(site, ": the levels of ", name, " are not those agreed, in their order."),
      if (length(bounds) && !identical(bounds, as.numeric(c(column$lower, column$upper)))) paste0(site, ": the bounds of ", name, " are not those agreed.")
    )
  }))
}
