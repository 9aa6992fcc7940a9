# SPDX-License-Identifier: Apache-2.0
# What the server answers: a release, which may be a fit, or No Reply.

as_release <- function(document) {
  if (!document$status %in% c("reply", "no_reply")) {
    raise(paste0("The release ", document$id, " is ", document$status, "; release(client, id) asks again, for nothing."), document$status)
  }
  kind <- document$query$kind
  classes <- c(paste0("reticent_", kind), "reticent_release")
  if (document$status == "no_reply") classes <- c("reticent_no_reply", "reticent_release")
  else if (!is.null(document$result$coefficients)) classes <- c(classes[1], "reticent_fit", "reticent_release")
  if (document$status == "reply" && is.null(document$result[["coefficients"]]) && !is.null(document$result) && holds_fits(document$result)) {
    classes <- c(classes[1], "reticent_several", "reticent_release")
  }
  structure(document, class = classes)
}

# Whether a result is of several fits: by quantile or by group.
holds_fits <- function(result) {
  inner <- if (!is.null(result[["fits"]])) result[["fits"]] else result[["groups"]]
  is.list(inner) && length(inner) > 0 && is.list(inner[[1]]) && (!is.null(inner[[1]][["coefficients"]]) || !is.null(inner[[1]][["fits"]]))
}

print.reticent_release <- function(x, digits = 5, ...) {
  headline(x)
  result <- x$result
  warned(result)
  if (!is.null(result[["value"]])) cat(estimate_line(result), "\n", sep = "")
  laid <- laid_out(result)
  for (name in setdiff(names(laid$facts), headed(result))) {
    value <- laid$facts[[name]]
    text <- if (grepl("p_value", name) && is.numeric(value)) p_text(value) else said(value, digits)
    cat(strwrap(paste0(name, ": ", text), 90, exdent = 2), sep = "\n")
  }
  if (identical(result[["estimable"]], FALSE)) cat("Not identifiable at this epsilon: there is no statistic and no p-value.\n")
  print_tables(Filter(function(each) !each$aside, laid$tables), digits)
  footer(x)
  invisible(x)
}

# What the line of an estimate says, or its sentence.
headed <- function(result) {
  line <- c("value", "standard_error", "confidence_interval")
  c(if (!is.null(result[["value"]])) line, if (identical(result[["estimable"]], FALSE)) c("statistic", "p_value"), "estimable")
}

print_tables <- function(tables, digits) {
  for (each in tables) {
    cat("\n", if (nzchar(each$title)) paste0(each$title, "\n"), sep = "")
    table <- each$table
    lost <- !is.null(table$estimable) && any(!table$estimable)
    if (!lost) table$estimable <- NULL
    table[] <- lapply(table, function(column) vapply(column, said, "", digits = digits))
    print(table, row.names = FALSE, max = .Machine$integer.max)
    if (lost) cat(strwrap("estimable FALSE: not identifiable at this epsilon. Do not interpret the value.", 90), sep = "\n")
  }
  cat("\n")
}

# Warnings of a result and of the groups inside it, each once.
warned <- function(result) {
  for (warning in unique(warnings_in(result))) cat(strwrap(warning, 90, prefix = "  ", initial = "- "), sep = "\n")
}

warnings_in <- function(part) {
  if (!is.list(part)) return(character())
  c(unlist(part$warnings), unlist(lapply(part[setdiff(seq_along(part), match("warnings", names(part), 0))], warnings_in)))
}

print.reticent_no_reply <- function(x, ...) {
  headline(x)
  cat("No Reply: the data are too far from those on which the answer is stable. It was charged.\n")
  footer(x)
  invisible(x)
}

# A p-value as tables have it: three digits, and "< .001" below them.
p_text <- function(p) ifelse(p < 0.001, "< .001", formatC(p, digits = 3, format = "f"))

summary.reticent_release <- function(object, ...) object

# The table that has the most rows of those that are no programs' business; of one number, its facts as a row.
as.data.frame.reticent_release <- function(x, ...) {
  laid <- laid_out(x$result)
  tables <- Filter(function(each) !each$aside, laid$tables)
  if (length(tables)) return(tables[[which.max(vapply(tables, function(each) nrow(each$table), 0L))]]$table)
  cells <- do.call(c, Map(fact_cells, names(laid$facts), laid$facts, USE.NAMES = FALSE))
  frame_of(list(cells))
}

nobs.reticent_release <- function(object, ...) object$result$n

# First which question a model's numbers answer, in the server's words; releases of earlier versions do not say it.
headline <- function(x) {
  if (!is.null(x$answers)) cat(strwrap(paste0(x$answers, "."), 90), sep = "\n")
  cat(gsub("_", " ", x$query$kind), " on ", x$dataset, " (version ", x$version, ")\n", sep = "")
}

footer <- function(x) {
  statement <- text_or(x$guarantee$statement)
  cat(strwrap(statement, 90), sep = "\n")
  cat("Charged: epsilon = ", format(x$charged$epsilon), ", delta = ", format(x$charged$delta), ". Release ", x$id, "\n", sep = "")
}

estimate_line <- function(result) {
  text <- format_value(result[["value"]])
  if (!is.null(result$standard_error)) text <- paste0(text, "   standard error ", format_value(result$standard_error))
  ends <- unlist(result$confidence_interval)
  if (length(ends) == 2) text <- paste0(text, "   interval [", paste(format_value(ends), collapse = ", "), "]")
  text
}

format_value <- function(value) if (is.numeric(value)) format(signif(value, 6), trim = TRUE) else format(value)

# A JSON list as a vector, null as NA.
plain_vector <- function(part) unlist(lapply(part, function(each) if (is.null(each)) NA else each))
