# The design of new data, from the names of a fit's terms: the coding is the server's.

design_of <- function(terms, newdata) {
  columns <- lapply(terms, function(term) {
    pieces <- lapply(split_term(term), value_of, newdata = newdata)
    Reduce(`*`, pieces)
  })
  matrix(unlist(columns), nrow(newdata), dimnames = list(NULL, terms))
}

# A term's factors: at the colons outside of brackets and quotes.
split_term <- function(term) {
  characters <- strsplit(term, "")[[1]]
  depth <- cumsum(characters %in% c("(", "[")) - cumsum(characters %in% c(")", "]"))
  at <- which(characters == ":" & depth == 0)
  substring(term, c(1, at + 1), c(at - 1, nchar(term)))
}

value_of <- function(piece, newdata) {
  if (piece == "Intercept") return(rep(1, nrow(newdata)))
  level <- regmatches(piece, regexec("^(?:C\\()?`?([^`()\\[]+)`?\\)?\\[(.*)\\]$", piece, perl = TRUE))[[1]]
  if (length(level)) return(as.numeric(as.character(new_column(level[2], newdata)) == level[3]))
  if (grepl("^(poly|bs)\\(", piece)) stop("predict() of poly() and bs() terms is in the Python client only.", call. = FALSE)
  expression <- parse(text = r_spelling(piece), keep.source = FALSE)[[1]]
  check_expression(expression)
  as.numeric(eval(expression, lapply(newdata, plain_column), baseenv()))
}

# Names, numbers and the grammar's own functions: nothing else is evaluated.
check_expression <- function(expression) {
  known <- c("log", "log1p", "log10", "sqrt", "exp", "I", "^", "(", "-")
  if (is.call(expression)) {
    if (!as.character(expression[[1]])[1] %in% known) stop("A term of this fit cannot be computed here: ", deparse(expression), call. = FALSE)
    for (part in as.list(expression)[-1]) check_expression(part)
  }
}

new_column <- function(name, newdata) {
  if (!name %in% names(newdata)) stop("newdata has no column ", name, ".", call. = FALSE)
  newdata[[name]]
}

plain_column <- function(column) if (is.logical(column)) as.numeric(column) else column

r_spelling <- function(text) gsub("**", "^", gsub("\\bC\\(", "factor(", text), fixed = TRUE)
