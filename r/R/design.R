# SPDX-License-Identifier: Apache-2.0
# The design of new data, from the names of a fit's terms: the coding is the server's.

design_of <- function(terms, newdata) {
  columns <- lapply(terms, function(term) {
    pieces <- lapply(split_term(term), value_of, newdata = newdata, terms = terms)
    Reduce(`*`, pieces)
  })
  matrix(unlist(columns), nrow(newdata), dimnames = list(NULL, terms))
}

# A term's factors, the first as short as leaves a rest that can be read: a level may be any text. NULL: there are none.
split_term <- function(term) {
  head <- grepl(coded_head, term, perl = TRUE)
  for (end in c(gregexpr(":", term, fixed = TRUE)[[1]], nchar(term) + 1)) {
    first <- substring(term, 1, end - 1)
    if (end < 1 || !(if (head) !is.null(level_parts(first)) else is_balanced(first))) next
    if (end > nchar(term)) return(term)
    rest <- split_term(substring(term, end + 1))
    if (!is.null(rest)) return(c(first, rest))
  }
  NULL
}

is_balanced <- function(text) {
  marks <- strsplit(gsub(paste0(quoted, "|`[^`]*`"), "", text), "")[[1]]
  nzchar(text) && !any(marks %in% c("\"", "'", "`")) && sum(marks %in% c("(", "[")) == sum(marks %in% c(")", "]"))
}

value_of <- function(piece, newdata, terms = piece) {
  if (piece == "Intercept") return(rep(1, nrow(newdata)))
  if (!is.null(parts <- level_parts(piece))) return(coded_column(parts, newdata, terms))
  if (grepl("^(poly|bs)\\(", piece)) stop("predict() of poly() and bs() terms is in the Python client only.", call. = FALSE)
  expression <- parse(text = r_spelling(piece), keep.source = FALSE)[[1]]
  check_expression(expression)
  names <- intersect(all.vars(expression), names(newdata))
  numbers <- Map(function(name) number_column(newdata[[name]], name), names)
  missing <- setdiff(all.vars(expression), names)
  if (length(missing)) stop("newdata has no column ", missing[1], ".", call. = FALSE)
  as.numeric(eval(expression, c(own_functions, numbers), baseenv()))
}

# The grammar's functions that R has not, or has with another meaning. Dates are days since 1970-01-01, as in R.
own_functions <- list(
  center = function(x, at) x - at,
  scale = function(x, at, by) (x - at) / by,
  days_since = function(x, since) days(x) - days(since),
  year = function(x) as.numeric(format(as.Date(days(x), origin = "1970-01-01"), "%Y")),
  month = function(x) as.numeric(format(as.Date(days(x), origin = "1970-01-01"), "%m"))
)

days <- function(x) if (is.character(x) || is.factor(x)) as.numeric(as.Date(as.character(x))) else as.numeric(x)

# Names, numbers and the grammar's own functions: nothing else is evaluated.
check_expression <- function(expression) {
  known <- c("log", "log1p", "log10", "sqrt", "exp", "I", "^", "(", "-", names(own_functions))
  if (is.call(expression)) {
    if (!as.character(expression[[1]])[1] %in% known) stop("A term of this fit cannot be computed here: ", deparse(expression), call. = FALSE)
    for (part in as.list(expression)[-1]) check_expression(part)
  }
}

new_column <- function(name, newdata) {
  if (!name %in% names(newdata)) stop("newdata has no column ", name, ".", call. = FALSE)
  newdata[[name]]
}

plain_column <- function(column) if (is.logical(column) || inherits(column, "Date")) as.numeric(column) else column

# A numeric column's cells: numbers or dates. A number that is given as a text or as a factor is refused.
number_column <- function(column, name) {
  if (is.character(column) || is.factor(column)) {
    column <- as.character(column)
    known <- !is.na(column) & nzchar(column)
    if (!all(grepl("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", column[known]))) {
      stop("newdata's ", name, " holds texts or levels: give numbers, or dates such as 2020-01-31.", call. = FALSE)
    }
    column <- as.Date(ifelse(known, column, NA))
  }
  as.numeric(column)
}

r_spelling <- function(text) gsub("**", "^", gsub("\\bC\\(", "factor(", text), fixed = TRUE)

quoted <- "\"[^\"]*\"|'[^']*'"
grouping <- paste0("(?:merge|lump)\\((?:[^\"'`()\\[\\]]|", quoted, "|`[^`]*`|\\[(?:[^\"'\\[\\]]|", quoted, ")*\\])*\\)")
coded_head <- paste0("^(?:C\\()?(", grouping, "|(?:year|month)\\((?:`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*)\\)|`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*)(?:, (Sum|Helmert))?\\)?\\[")
coded <- paste0(coded_head, "(.*)\\]$")

# A factor's column by its name, such as C(g, Sum)[S.a]: factor as written, column of the data, contrast, level. NULL: none.
level_parts <- function(piece) {
  found <- regmatches(piece, regexec(coded, piece, perl = TRUE))[[1]]
  if (!length(found)) return(NULL)
  factor <- found[2]
  column <- gsub("`", "", if (grepl("^(merge|lump)\\(", factor)) sub("^(?:merge|lump)\\((`[^`]+`|[^,]+),.*$", "\\1", factor, perl = TRUE) else factor)
  constant <- paste(found[3], found[4]) %in% c("Sum mean", "Helmert H.intercept")
  level <- if (constant) NA_character_ else if (nzchar(found[3])) substring(found[4], 3) else found[4]
  list(factor = factor, column = column, contrast = found[3], level = level, text = found[4])
}

# The column's values on new data. Sum: -1 at the level without a column; Helmert: j at the j-th, -1 at those before it.
coded_column <- function(parts, newdata, terms) {
  part <- grepl("^(year|month)\\(", parts$factor)
  cells <- grouped(parts, as.character(if (part) value_of(parts$factor, newdata) else plain_column(new_column(parts$column, newdata))))
  if (is.na(parts$level)) return(ifelse(is.na(cells), NA, 1))
  if (parts$contrast == "") return(as.numeric(cells == parts$level))
  others <- lapply(unlist(lapply(terms, split_term)), level_parts)
  levels <- unique(unlist(lapply(others, function(p) if (identical(p$column, parts$column) && !is.na(p$level)) p$level)))
  place <- match(cells, levels, nomatch = 0)
  own <- match(parts$level, levels)
  value <- if (parts$contrast == "Sum") (place == own) - (place == 0) else own * (place == own) - (place < own)
  ifelse(is.na(cells), NA, value)
}

# What the question's offset and exposure add to the linear predictor of each row.
offset_of <- function(query, newdata) {
  cells <- function(name) if (is.null(name)) 0 else number_column(new_column(name, newdata), name)
  total <- cells(query$offset)
  rep_len(if (is.null(query$exposure)) total else total + log(cells(query$exposure)), nrow(newdata))
}

# Stops at a level that the fit has not. baselines: by column, the level without a term; NULL of earlier versions.
check_levels <- function(terms, newdata, baselines) {
  all_parts <- Filter(Negate(is.null), lapply(unlist(lapply(terms, split_term)), level_parts))
  for (column in names(baselines)) {
    own <- Filter(function(p) identical(p$column, column) && !is.na(p$level), all_parts)
    if (!length(own) || !column %in% names(newdata)) next
    levels <- unique(c(unlist(lapply(own, `[[`, "level")), baselines[[column]]))
    unknown <- setdiff(grouped(own[[1]], as.character(plain_column(newdata[[column]]))), c(levels, NA))
    if (length(unknown)) stop(column, " has no level ", paste(unknown, collapse = ", "), " in this fit: its levels are ", paste(levels, collapse = ", "), ".", call. = FALSE)
  }
}

# The level that each cell belongs to, after merge() and lump().
grouped <- function(parts, cells) {
  if (!grepl("^(merge|lump)\\(", parts$factor)) return(cells)
  text <- sub("^(merge|lump)\\((`[^`]+`|[^,]+),", "", parts$factor, perl = TRUE)
  lists <- regmatches(text, gregexpr("(?<![A-Za-z0-9_.])(`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*)=\\[[^]]*\\]", text, perl = TRUE))[[1]]
  for (each in lists) {
    listed <- regmatches(each, gregexpr(quoted, each, perl = TRUE))[[1]]
    inside <- cells %in% substring(listed, 2, nchar(listed) - 1)
    if (grepl("^lump\\(", parts$factor)) {
      other <- regmatches(text, regexec("other=[\"'](.*)[\"']\\)$", text))[[1]]
      cells[!inside & !is.na(cells)] <- if (length(other)) other[2] else "other"
    } else {
      cells[inside] <- gsub("`", "", sub("=.*$", "", each))
    }
  }
  cells
}

# A column's term: its name without the level in brackets at its end.
term_of <- function(name) {
  paste(vapply(split_term(name), function(piece) {
    parts <- level_parts(piece)
    if (is.null(parts)) return(gsub("\\[[^]]*\\]", "", piece))
    substring(piece, 1, nchar(piece) - nchar(parts$text) - 2)
  }, ""), collapse = ":")
}
