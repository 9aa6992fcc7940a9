# SPDX-License-Identifier: Apache-2.0
# Rscript shown_in_r.R PACKAGE RELEASES: what the R package shows of each release of a JSON file, as JSON on standard output.

arguments <- commandArgs(TRUE)
for (file in list.files(file.path(arguments[1], "R"), full.names = TRUE)) source(file)
releases <- jsonlite::fromJSON(arguments[2], simplifyVector = FALSE)
shown <- lapply(releases, function(document) {
  release <- as_release(document)
  tables <- released_tables(release)
  flags <- as.logical(unlist(lapply(tables, function(table) table[["estimable"]])))
  list(
    printed = paste(utils::capture.output(print(release)), collapse = "\n"),
    own = inherits(release, c("reticent_fit", "reticent_study", "reticent_survival_curve", "reticent_cumulative_incidence")),
    lost = sum(!flags) + sum(tables$facts$name == "estimable" & tables$facts$value == "no"),
    tables = unname(lapply(tables, function(table) unname(as.list(table))))
  )
})
cat(jsonlite::toJSON(shown, auto_unbox = TRUE, digits = NA, na = "null"))
