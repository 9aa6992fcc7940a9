# SPDX-License-Identifier: Apache-2.0
# A release's result as data frames: made from the shape of its fields, so that every kind has them.
#
# A single value, or an interval, is a fact. Lists of one length that stand beside each other are a table's columns. Records
# of a list stand below each other, each with what names it; so do their tables. A matrix has names at both sides.

interval_parts <- c("interval", "bin", "quartiles", "range", "bounds", "clipped")
blanked_fields <- c(
  "standard_errors", "privacy_standard_errors", "classical_standard_errors", "p_values", "confidence_intervals", "statistic", "p_value"
)
record_names <- c("level", "column", "term", "tau") # what tells records apart, in the order in which it is looked for
grids <- "(edges|cuts|times|probabilities)$" # lists that name rows themselves, and belong to no table whose rows have texts
aside_fields <- c("covariance", "directions", "weighting", "shares", "moments", "noise", "narrow", "variables")

released_tables <- function(release) {
  if (!inherits(release, "reticent_release")) stop("The argument is a release.", call. = FALSE)
  laid <- laid_out(release$result)
  c(stats::setNames(lapply(laid$tables, `[[`, "table"), make.unique(vapply(laid$tables, `[[`, "", "title"))), list(facts = facts_frame(c(laid$facts, laid$more))))
}

facts_frame <- function(facts) {
  data.frame(name = as.character(names(facts)), value = as.character(vapply(facts, said, "", digits = 15)), stringsAsFactors = FALSE)
}

# facts: by name; more: those that say how it was computed. tables: lists of title, table and whether it is for programs more
# than for readers; those with intervals stand first.
laid_out <- function(record, title = "", around = list(), aside = FALSE) {
  record <- blanked(record)
  record$warnings <- NULL
  single <- vapply(names(record), function(name) is_single(name, record[[name]]), NA)
  column <- vapply(names(record), function(name) !single[[name]] && is_list_column(name, record[[name]]), NA)
  columns <- record[column]
  names <- c(text_names(columns), around)
  facts <- Filter(Negate(is.null), record[single])
  more <- list()
  tables <- own_tables(columns, record, names, title, aside)
  for (name in names(record)[!single & !column]) {
    inner <- nested(record, name, names, paste(c(if (nzchar(title)) title, gsub("_", " ", name)), collapse = ", "), aside || folded(name, record[[name]]))
    own <- named_after(name, inner$facts, facts)
    if (folded(name, record[[name]])) more <- c(more, own) else facts <- c(facts, own)
    more <- c(more, named_after(name, inner$more, list()))
    tables <- c(tables, inner$tables)
  }
  first <- vapply(tables, function(each) !each$aside && any(grepl("interval", names(each$table))), NA)
  list(facts = facts, more = more, tables = c(tables[first], tables[!first]))
}

# Facts of a field, by its name; not those that were said already.
named_after <- function(name, inner, facts) {
  new <- inner[!vapply(names(inner), function(each) identical(facts[[each]], inner[[each]]), NA)]
  stats::setNames(new, if (length(new)) paste0(name, ": ", names(new)))
}

# Whether a field is for programs; a list of figures never is.
folded <- function(name, value) name %in% aside_fields && !(is.null(names(value)) && all(vapply(value, function(each) "value" %in% names(each), NA)))

nested <- function(record, name, names, title, aside) {
  value <- record[[name]]
  if (!length(value)) return(list(facts = list(), more = list(), tables = list()))
  records <- all(vapply(value, function(each) is.list(each) && !is.null(names(each)), NA))
  if (!is.null(names(value))) {
    if (records) return(stacked(Map(function(each, level) c(list(level = level), each), value, names(value)), name, names, title, aside))
    return(laid_out(value, title, c(grid_names(record), names), aside))
  }
  if (records) return(stacked(value, name, c(names, grid_names(record)), title, aside))
  if (is_axes(value)) return(list(facts = list(), more = list(), tables = list()))
  if (is_axes(record[["levels"]]) && identical(nested_shape(value), lengths(record[["levels"]]))) {
    return(list(facts = list(), more = list(), tables = list(list(title = title, table = cells_frame(value, unlist(record[["columns"]]), record[["levels"]]), aside = FALSE))))
  }
  numbers <- do.call(rbind, lapply(value, plain_vector))
  grid <- Find(function(each) length(record[[each]]) == ncol(numbers), grep(grids, names(record), value = TRUE))
  if (!is.null(grid)) {
    functions <- stats::setNames(as.data.frame(t(numbers)), paste0(name, ": ", label_of(nrow(numbers), names)$values))
    table <- cbind(stats::setNames(data.frame(plain_vector(record[[grid]])), grid), functions)
    return(list(facts = list(), more = list(), tables = list(list(title = title, table = table, aside = FALSE))))
  }
  across <- label_of(ncol(numbers), names)$values
  table <- data.frame(label_of(nrow(numbers), names)$values, numbers, stringsAsFactors = FALSE)
  names(table) <- c(label_of(nrow(numbers), names)$head, as.character(across))
  list(facts = list(), more = list(), tables = list(list(title = title, table = table, aside = TRUE)))
}

# Columns of one length beside each other; grids apart from what texts name, edges of bins as two columns.
own_tables <- function(columns, record, names, title, aside) {
  texts <- lengths(Filter(is_text, columns))
  groups <- list()
  for (name in names(columns)) {
    size <- length(columns[[name]])
    if (grepl("edges$", name) && any(lengths(columns) == size - 1)) next
    key <- paste(size, if (grepl(grids, name) && size %in% texts) name)
    groups[[key]] <- c(groups[[key]], columns[name])
  }
  inside <- any(vapply(setdiff(names(record), c(names(columns), "warnings")), function(name) !is_single(name, record[[name]]), NA))
  named <- function(group) inside && all(vapply(names(group), function(name) is_text(group[[name]]) || grepl("edges$", name), NA))
  lapply(unname(Filter(Negate(named), groups)), function(group) {
    size <- length(group[[1]])
    edges <- Filter(function(each) length(each) == size + 1, columns[grepl("edges$", names(columns))])
    own <- unlist(lapply(names(group), function(name) spread(name, group[[name]])), recursive = FALSE)
    lead <- if (length(edges)) list(from = plain_vector(edges[[1]])[seq_len(size)], to = plain_vector(edges[[1]])[-1])
    else if (!any(vapply(group, is_text, NA)) && !any(grepl(grids, names(group)))) one_label(label_of(size, names))
    first <- vapply(own, is.character, NA)
    table <- data.frame(c(lead, own[first], own[!first]), check.names = FALSE, stringsAsFactors = FALSE)
    list(title = title, table = table, aside = aside)
  })
}

one_label <- function(label) stats::setNames(list(label$values), label$head)

# Intervals are two columns.
spread <- function(name, values) {
  if (!all(vapply(values, is.list, NA))) return(stats::setNames(list(plain_vector(values)), name))
  ends <- do.call(rbind, lapply(values, plain_vector))
  stats::setNames(list(ends[, 1], ends[, 2]), paste0(name, c("_low", "_high")))
}

# Records below each other: their facts are one table, and their tables of the same columns are joined.
stacked <- function(records, name, names, title, aside) {
  records <- unname(records)
  head <- Find(function(each) all(vapply(records, function(record) !is.null(record[[each]]), NA)), record_names)
  labels <- if (!is.null(head)) lapply(records, `[[`, head)
  else if (name == "quartiles" && length(records) == 3) list("25 %", "50 %", "75 %")
  else as.list(label_of(length(records), names)$values)
  head <- text_or(head, if (name == "quartiles") "quartile" else "no.")
  laid <- lapply(records, function(record) laid_out(record[setdiff(names(record), head)], title, names, aside))
  facts <- lapply(laid, `[[`, "facts")
  alike <- Filter(function(name) is_alike(name, facts), if (length(facts) > 1) names(facts[[1]]))
  own <- lapply(facts, function(each) each[setdiff(names(each), alike)])
  tables <- list(facts_table(title, head, labels, own, aside), facts_table(title, head, labels, lapply(laid, `[[`, "more"), TRUE))
  found <- list()
  for (i in seq_along(laid)) for (each in laid[[i]]$tables) {
    table <- cbind(stats::setNames(data.frame(rep(labels[[i]], nrow(each$table))), head), each$table)
    key <- paste(c(each$title, names(table)), collapse = "\r")
    found[[key]] <- list(title = each$title, aside = each$aside, table = rbind(found[[key]]$table, table))
  }
  list(facts = facts[[1]][alike], more = list(), tables = c(Filter(Negate(is.null), tables), unname(found)))
}

# Texts, whole numbers and levels of confidence that all records have alike are said once.
is_alike <- function(name, facts) {
  value <- facts[[1]][[name]]
  plain <- is.character(value) || is.integer(value) || grepl("(confidence_level|tuning)$", name)
  plain && all(vapply(facts, function(each) identical(each[[name]], value), NA))
}

facts_table <- function(title, head, labels, facts, aside) {
  rows <- Map(function(label, each) c(stats::setNames(list(label), head), do.call(c, Map(fact_cells, names(each), each, USE.NAMES = FALSE))), labels, facts)
  if (any(lengths(rows) > 1)) list(title = title, table = frame_of(rows), aside = aside)
}

# An interval is two cells.
fact_cells <- function(name, value) {
  if (is_interval_value(value)) stats::setNames(value, paste0(name, c("_low", "_high"))) else stats::setNames(list(value), name)
}

# Rows, lists by name, as a data frame; NA where a row lacks a column.
frame_of <- function(rows) {
  heads <- unique(unlist(lapply(rows, names)))
  columns <- lapply(heads, function(head) unlist(lapply(rows, function(row) value_or(row[[head]], NA))))
  stats::setNames(as.data.frame(columns, stringsAsFactors = FALSE), heads)
}

# Counts of several columns: one row a cell.
cells_frame <- function(values, columns, levels) {
  places <- rev(expand.grid(lapply(rev(levels), plain_vector), stringsAsFactors = FALSE))
  stats::setNames(cbind(places, plain_vector(flat(values))), c(columns, "count"))
}

flat <- function(values) if (is.list(values)) unlist(lapply(values, flat), recursive = TRUE) else values

nested_shape <- function(values) if (is.list(values) && length(values)) c(length(values), nested_shape(values[[1]])) else NULL

label_of <- function(size, names) {
  found <- names[[as.character(size)]]
  if (is.null(found)) list(head = "no.", values = seq_len(size)) else found
}

# What names rows, by their number.
text_names <- function(columns) {
  found <- Filter(function(values) is_text(values) && !anyDuplicated(unlist(values)), columns)
  stats::setNames(Map(function(name, values) list(head = name, values = plain_vector(values)), names(found), found), lengths(found))
}

grid_names <- function(record) {
  found <- list()
  for (name in grep(grids, names(record), value = TRUE)) {
    values <- record[[name]]
    if (!is_list_column(name, values)) next
    numbers <- plain_vector(values)
    bins <- grepl("edges$", name)
    label <- if (bins) paste(numbers[-length(numbers)], "to", numbers[-1]) else numbers
    found[[as.character(length(label))]] <- list(head = if (bins) "bin" else name, values = label)
  }
  found
}

# Errors of what is not identifiable are NA: they would be read as a finding.
blanked <- function(record) {
  kept <- record[["estimable"]]
  if (is.null(kept)) return(record)
  for (name in intersect(blanked_fields, names(record))) {
    value <- record[[name]]
    if (is.list(kept) && length(value) == length(kept)) {
      lost <- !unlist(kept)
      record[[name]][lost] <- list(if (is.list(value[[1]])) list(NULL, NULL) else NULL)
    } else if (!is.list(kept) && !kept) {
      record[name] <- list(NULL)
    }
  }
  record
}

is_single <- function(name, value) is.null(value) || !is.list(value) || (is_interval(name) && is_interval_value(value))

is_interval <- function(name) name %in% c("clipped", "quartiles") || (grepl(paste(interval_parts, collapse = "|"), name) && !grepl("s$", name))

is_interval_value <- function(value) {
  is.list(value) && is.null(names(value)) && length(value) == 2 && all(vapply(value, function(end) is.null(end) || is.numeric(end), NA))
}

is_text <- function(values) length(values) > 0 && all(vapply(values, is.character, NA))

is_axes <- function(values) is.list(values) && length(values) > 0 && all(vapply(values, function(each) is.list(each) && is_text(each), NA))

is_list_column <- function(name, values) {
  if (!is.list(values) || !length(values) || !is.null(names(values))) return(FALSE)
  if (all(vapply(values, is.list, NA))) return(grepl(paste(interval_parts, collapse = "|"), name) && all(vapply(values, is_interval_value, NA)))
  !any(vapply(values, is.list, NA))
}

# A value as text.
said <- function(value, digits = 6) {
  if (is.null(value) || identical(value, NA_real_)) return("")
  if (is.list(value)) return(paste(vapply(value, said, "", digits = digits), collapse = " to "))
  if (is.logical(value)) return(if (is.na(value)) "" else if (value) "yes" else "no")
  if (is.numeric(value)) format(signif(value, digits), digits = digits, trim = TRUE) else as.character(value)
}
