# SPDX-License-Identifier: Apache-2.0
# Formulas over a study's columns: y ~ a + b:c + d*e - f, and y ~ x | z for instruments.
#
# A factor names a column of the study, one of its variables with all of its columns (a factor's levels, a basis), or in an
# interaction what the study's interactions are made of. Blanks do not matter, and C(g) and C(g, ref="a") are g.

study_factor_pattern <- "C\\((`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*)(?:,ref=(?:\"[^\"]*\"|'[^']*'|[0-9]+))?\\)"

invalid_formula <- function(...) raise(paste0(...), "invalid_formula")

# A formula's columns by place among the study's: response, terms in the order of writing, instruments (NULL without).
read_specification <- function(study, formula) {
  text <- formula_of(formula)
  names <- study_terms(study)
  if (!grepl("~", text, fixed = TRUE)) invalid_formula("Write a response, '~' and terms, such as 'y ~ x1 + x2'.")
  left <- sub("~.*$", "", text)
  sides <- split_outside(sub("^[^~]*~", "", text), "|")
  if (length(sides) > 2) invalid_formula("Write '|' once, before the instruments.")
  response <- one_place(names, left)
  sum <- read_sum(names, sides[1])
  instruments <- if (length(sides) == 2) read_sum(names, sides[2])$places
  if (response %in% c(sum$places, instruments)) {
    invalid_formula("The response is also among the terms: leave it out there.")
  }
  if (!length(sum$places) && !sum$intercept) {
    invalid_formula("The formula has no terms: name at least one after '~'.")
  }
  list(text = text, response = response, terms = sum$places, intercept = sum$intercept, instruments = instruments)
}

without_instruments <- function(study, formula) {
  specification <- read_specification(study, formula)
  if (!is.null(specification$instruments)) invalid_formula("A formula with instruments is for study_iv().")
  specification
}

with_intercept <- function(study, formula, what) {
  specification <- without_instruments(study, formula)
  if (!specification$intercept) invalid_formula(what, " is for formulas with an intercept.")
  specification
}

formula_of <- function(formula) {
  if (inherits(formula, "formula")) return(formula_text(formula))
  if (!is.character(formula) || length(formula) != 1) stop("A formula is one R formula or one character string.", call. = FALSE)
  formula
}

# Places of the columns that several texts name; of all but the intercept where `variables` is NULL.
places_of <- function(study, variables) {
  names <- study_terms(study)
  if (is.null(variables)) return(own_places(study))
  as.integer(unlist(lapply(variables, term_places, names = names)))
}

# Of the study's columns without the intercept, and in a pool without those that tell sites apart.
own_places <- function(study) {
  sites <- if (inherits(study, "reticent_pooled")) length(study$sites) else 1
  seq_len(length(study_terms(study)) / sites)[-1]
}

# The places, all of them different.
different <- function(...) {
  places <- c(...)
  if (anyDuplicated(places)) invalid_formula("the columns that are named must all be different.")
  places
}

one_place <- function(names, text) {
  places <- term_places(names, text)
  if (length(places) != 1) {
    invalid_formula(
      trimws(text), " has ", length(places), " columns in this study; name one of ", paste(names[places], collapse = ", "), "."
    )
  }
  places
}

# The places of a term's columns; the intercept, in the first place, is none.
term_places <- function(names, text) {
  wanted <- term_pieces(text)
  fits <- vapply(names, function(name) pieces_match(wanted, sort(term_pieces(name), method = "radix")), NA)
  places <- setdiff(which(unname(fits)), 1L)
  if (!length(places)) {
    invalid_formula(trimws(text), " is not in this study; its columns are ", paste(names[-1], collapse = ", "), ".")
  }
  places
}

term_pieces <- function(name) {
  pieces <- split_term(trimws(name))
  if (is.null(pieces)) invalid_formula("Close every bracket and quote of the formula.")
  trimws(vapply(pieces, plain_term, "", USE.NAMES = FALSE))
}

# Whether each factor is one of the pieces, or all levels of it, and no piece is left.
pieces_match <- function(wanted, pieces) {
  if (length(wanted) != length(pieces)) return(FALSE)
  for (factor in wanted) {
    hit <- which(pieces == factor | startsWith(pieces, paste0(factor, "[")))
    if (!length(hit)) return(FALSE)
    pieces <- pieces[-hit[1]]
  }
  TRUE
}

read_sum <- function(names, text) {
  places <- integer()
  intercept <- TRUE
  for (part in signed_items(text)) {
    if (part$item %in% c("0", "1")) {
      intercept <- (part$item == "1") == (part$sign == "+")
      next
    }
    found <- crossed_places(names, part$item)
    places <- if (part$sign == "+") c(places, setdiff(found, places)) else setdiff(places, found)
  }
  list(places = places, intercept = intercept)
}

# a*b is a + b + a:b.
crossed_places <- function(names, item) {
  depths <- outside_depths(item)
  power <- grepl("**", paste(names(depths)[depths == 0], collapse = ""), fixed = TRUE)
  factors <- if (power) item else split_outside(item, "*")
  uses <- rev(expand.grid(rep(list(c(TRUE, FALSE)), length(factors))))
  uses <- as.matrix(uses)[rowSums(uses) > 0, , drop = FALSE]
  chosen <- apply(uses, 1, function(use) paste(factors[use], collapse = ":"))
  pieces <- vapply(chosen, function(name) length(split_outside(name, ":")), 0L)
  unlist(lapply(chosen[order(pieces)], term_places, names = names))
}

# The signs and items of a sum.
signed_items <- function(text) {
  items <- list()
  sign <- "+"
  item <- ""
  depths <- outside_depths(text)
  for (at in seq_along(depths)) {
    character <- names(depths)[at]
    if (!(character %in% c("+", "-") && depths[at] == 0)) {
      item <- paste0(item, character)
      next
    }
    if (nzchar(trimws(item))) items <- c(items, list(list(sign = sign, item = trimws(item))))
    else if (character == "+" || sign == "-") invalid_formula("A term is missing beside a '+' or '-' of the formula.")
    sign <- character
    item <- ""
  }
  if (!nzchar(trimws(item))) invalid_formula("A term is missing at the end of the formula.")
  c(items, list(list(sign = sign, item = trimws(item))))
}

# The depth of brackets around each character, which names it; quoted text is one level deeper.
outside_depths <- function(text) {
  characters <- strsplit(text, "")[[1]]
  found <- integer(length(characters))
  depth <- 0L
  quote <- ""
  for (at in seq_along(characters)) {
    character <- characters[at]
    found[at] <- depth + 1L
    if (nzchar(quote)) {
      if (character == quote) quote <- ""
    } else if (character %in% c("\"", "'", "`")) {
      quote <- character
    } else if (character %in% c("(", "[")) {
      depth <- depth + 1L
    } else if (character %in% c(")", "]")) {
      depth <- depth - 1L
    } else {
      found[at] <- depth
    }
  }
  if (depth != 0 || nzchar(quote)) invalid_formula("Close every bracket and quote of the formula.")
  stats::setNames(found, characters)
}

# At a character outside of brackets and quotes.
split_outside <- function(text, separator) {
  depths <- outside_depths(text)
  at <- unname(which(names(depths) == separator & depths == 0))
  trimws(substring(text, c(1, at + 1), c(at - 1, nchar(text))))
}

# Without blanks outside of quotes, and with g in place of C(g): the study has settled the reference.
plain_term <- function(text) {
  characters <- strsplit(text, "")[[1]]
  quote <- ""
  keep <- rep(TRUE, length(characters))
  for (at in seq_along(characters)) {
    character <- characters[at]
    if (nzchar(quote)) {
      if (character == quote) quote <- ""
    } else if (character %in% c("\"", "'", "`")) {
      quote <- character
    } else {
      keep[at] <- !grepl("[[:space:]]", character)
    }
  }
  gsub(study_factor_pattern, "\\1", paste(characters[keep], collapse = ""), perl = TRUE)
}

# The columns missing(x) that the terms `used` need beside them and have not.
unsaid_indicators <- function(variables, used) {
  needed <- lapply(variables, function(names) {
    names <- plain_vector(names)
    flags <- startsWith(names, "missing(")
    if (any(names[!flags] %in% used)) setdiff(names[flags], used)
  })
  unique(as.character(unlist(needed)))
}
