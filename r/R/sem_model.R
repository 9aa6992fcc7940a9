# SPDX-License-Identifier: Apache-2.0
# A structural model in lavaan's words: f =~ x1 + x2, y ~ b*x, x1 ~~ x2, ab := a*b.
#
# Lines end at a new line or ";", comments begin with "#". A number before "*" fixes a parameter, NA frees it, a label names it;
# parameters with one label are equal. Defaults are lavaan's.

sem_operators <- c("=~", ":=", "~~", "~")

sem_path <- function(left, op, right, label = "", fixed = NA_real_, freed = FALSE) {
  list(left = left, op = op, right = right, label = label, fixed = fixed, freed = freed)
}

sem_model <- function(text, names, std_lv) {
  lines <- trimws(sub("#.*$", "", strsplit(text, "[;\n]")[[1]]))
  lines <- lapply(lines[nzchar(lines)], sem_line)
  ops <- vapply(lines, function(line) line$op, "")
  factors <- unique(vapply(lines[ops == "=~"], function(line) line$left, ""))
  columns <- integer()
  name <- function(word) {
    if (word %in% factors) return(word)
    place <- one_place(names, word)
    columns[names[place]] <<- place
    names[place]
  }
  written <- list()
  for (line in lines[ops != ":="]) for (path in sem_items(line)) {
    path$left <- name(path$left)
    path$right <- name(path$right)
    written <- c(written, list(path))
  }
  sem_distinct(written)
  if (any(factors %in% names)) {
    invalid_formula(factors[factors %in% names][1], " is a column of the study: give the factor another name.")
  }
  if (!length(written)) invalid_formula("The model has no line such as 'f =~ x1 + x2 + x3' or 'y ~ x'.")
  scaled <- sem_scaled(written, factors, std_lv)
  found <- sem_defaults(scaled, factors, names(columns))
  labels <- unique(vapply(scaled, function(path) path$label, ""))
  labels <- labels[nzchar(labels)]
  defined <- list()
  for (line in lines[ops == ":="]) {
    defined[[line$left]] <- sem_function(line$right, c(labels, names(defined)))
  }
  list(factors = factors, columns = columns, paths = c(scaled, found$paths), outside = found$outside, defined = defined)
}

sem_line <- function(line) {
  if (grepl("==|<|>", line)) invalid_formula(line, ": write equal parameters with one label, 'f =~ a*x1 + a*x2'.")
  op <- Filter(function(each) grepl(each, line, fixed = TRUE), sem_operators)
  if (!length(op)) invalid_formula(line, ": a line has one of =~, ~, ~~ and :=.")
  at <- regexpr(op[1], line, fixed = TRUE)
  left <- trimws(substr(line, 1, at - 1))
  right <- trimws(substring(line, at + nchar(op[1])))
  if (!nzchar(left) || !nzchar(right)) invalid_formula(line, ": a term is missing beside ", op[1], ".")
  list(left = left, op = op[1], right = right)
}

sem_items <- function(line) {
  lapply(split_outside(line$right, "+"), function(item) {
    parts <- split_outside(item, "*")
    last <- parts[length(parts)]
    if (length(parts) > 2 || !nzchar(last)) invalid_formula(trimws(item), ": write a term as 'x', 'label*x' or '0.5*x'.")
    if (last %in% c("0", "1")) invalid_formula("Means and intercepts are not part of the model: leave them out.")
    sem_modified(sem_path(line$left, line$op, last), if (length(parts) == 2) parts[1] else "")
  })
}

sem_modified <- function(path, modifier) {
  if (!nzchar(modifier)) return(path)
  if (modifier == "NA") path$freed <- TRUE
  else if (grepl("^[-+]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][-+]?[0-9]+)?$", modifier)) path$fixed <- as.numeric(modifier)
  else if (grepl("^[A-Za-z_.][A-Za-z0-9_.]*$", modifier)) path$label <- modifier
  else invalid_formula(modifier, ": before '*' stands a number, NA or a label.")
  path
}

sem_distinct <- function(paths) {
  seen <- character()
  for (path in paths) {
    ends <- c(path$left, path$right)
    key <- paste(c(path$op, if (path$op == "~~") sort(ends) else ends), collapse = "\r")
    if (key %in% seen || (path$op != "~~" && path$left == path$right)) {
      invalid_formula(path$left, " ", path$op, " ", path$right, " stands twice in the model, or explains itself.")
    }
    seen <- c(seen, key)
  }
}

# With each factor's first loading at 1, where it is not modified, and what has its label too; or with each factor's variance at 1.
sem_scaled <- function(paths, factors, std_lv) {
  if (std_lv) {
    open <- Filter(function(f) !sem_has(paths, f, f), factors)
    return(c(paths, lapply(open, function(f) sem_path(f, "~~", f, fixed = 1))))
  }
  for (f in factors) {
    k <- which(vapply(paths, function(p) p$op == "=~" && p$left == f, NA))[1]
    p <- paths[[k]]
    if (!p$freed && is.na(p$fixed)) paths[[k]]$fixed <- 1
  }
  for (held in Filter(function(p) nzchar(p$label) && !is.na(p$fixed), paths)) {
    paths <- lapply(paths, function(p) if (p$label == held$label) utils::modifyList(p, list(fixed = held$fixed)) else p)
  }
  paths
}

sem_has <- function(paths, one, other) {
  any(vapply(paths, function(p) p$op == "~~" && setequal(c(p$left, p$right), c(one, other)), NA))
}

# Columns that nothing explains and explain something, and the parameters without a line.
sem_defaults <- function(paths, factors, columns) {
  side <- function(op, part) vapply(Filter(function(p) p$op == op, paths), function(p) p[[part]], "")
  responses <- side("~", "left")
  regressors <- side("~", "right")
  indicators <- side("=~", "right")
  free <- setdiff(factors, c(responses, indicators))
  outside <- setdiff(columns[columns %in% regressors], c(responses, indicators))
  everyone <- c(factors, columns)
  last <- setdiff(everyone[everyone %in% responses], c(regressors, indicators))
  pairs <- lapply(c(columns, factors), function(name) c(name, name))
  for (group in list(free, outside, last)) if (length(group) > 1) pairs <- c(pairs, utils::combn(group, 2, simplify = FALSE))
  wanted <- Filter(function(pair) !sem_has(paths, pair[1], pair[2]), pairs)
  list(outside = outside, paths = lapply(wanted, function(pair) sem_path(pair[1], "~~", pair[2])))
}

# An expression of labels, by + - * / ^ and brackets.
sem_function <- function(text, labels) {
  found <- tryCatch(parse(text = text)[[1]], error = function(refusal) {
    invalid_formula(text, ": write an expression of labels, such as a*b.")
  })
  if (!all(all.vars(found) %in% labels) || !all(setdiff(all.names(found), all.vars(found)) %in% c("+", "-", "*", "/", "^", "("))) {
    said <- if (length(labels)) paste(sort(labels, method = "radix"), collapse = ", ") else "(none)"
    invalid_formula(text, ": write an expression of the labels ", said, ".")
  }
  found
}
