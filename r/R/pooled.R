# SPDX-License-Identifier: Apache-2.0
# Studies of several sites as one. The same computation as the Python client's reticent._pooled, which has the derivation.

pooled <- function(protocol, datasets, weights = c("people", "precision"), resume = FALSE) {
  terms <- if (inherits(protocol, "reticent_protocol")) protocol else reticent::protocol(protocol)
  if (!setequal(names(datasets), terms$sites)) stop("Give a data set for each of ", listed(terms$sites), ", by name.", call. = FALSE)
  datasets <- Map(function(site, each) under_protocol(terms, site, each), terms$sites, datasets[terms$sites])
  problems <- unlist(Map(function(site, each) site_problems(terms, site, each), terms$sites, datasets))
  if (length(problems)) raise(paste("Nothing was asked or charged.", paste(problems, collapse = " ")), "invalid_query")
  covered <- vapply(terms$sites, function(site) isTRUE(do.call(plan, c(list(datasets[[site]], "study"), site_asked(terms, site)))$budget$covered), NA)
  if (!all(covered) && !resume) {
    raise(paste0(
      "Nothing was asked or charged: the budgets at ", listed(terms$sites[!covered]), " do not cover it. Where a site has answered this ",
      "protocol already, resume = TRUE asks for its release."
    ), "invalid_query")
  }
  studies <- lapply(terms$sites, function(site) do.call(study, c(list(datasets[[site]]), site_asked(terms, site), list(idempotency_key = site_key(terms, site)))))
  names(studies) <- terms$sites
  for (site in terms$sites) require_asked(site, studies[[site]], site_question(terms, site), datasets[[site]]$facts$n)
  pool(studies, weights)
}

site_asked <- function(terms, site) {
  c(site_question(terms, site), list(epsilon = site_epsilon(terms, site)), if (!is.null(terms$document$delta)) list(delta = as.numeric(terms$document$delta)))
}

# Of a site's request: the Python client's, so that either asks for the same release again.
site_key <- function(terms, site) {
  own <- substr(sha256_of(site), 1, 12)
  paste0("pooled-", substr(terms$digest, 1, 32), "-", own, if (site %in% terms$signed) "-signed")
}

# A site that has signed holds requests to the protocol.
under_protocol <- function(terms, site, dataset) {
  if (site %in% terms$signed) dataset$protocol <- terms$digest
  dataset
}

require_asked <- function(site, study, question, n) {
  if (!inherits(study, "reticent_study")) raise(paste0(site, ": no reply, which was charged; pool() adds the others."), "not_estimable")
  usual <- c(list(main = NULL, where = NULL, by = NULL, effects = NULL, persons = NULL), list(missing = "mask"))
  for (name in union(names(question), c("main", "where", "by", "effects", "persons", "missing"))) {
    asked <- if (name %in% names(question)) question[[name]] else usual[[name]]
    if (!identical(as.character(unlist(value_or(study$query[[name]], usual[[name]]))), as.character(unlist(asked)))) {
      raise(paste0(site, ": it answered another question, in ", name, "."), "unexpected_reply")
    }
  }
  if (!isTRUE(study$result$n == n)) raise(paste0(site, ": it answered about another number of records than it has."), "unexpected_reply")
}

pool <- function(sites, weights = c("people", "precision")) {
  weights <- match.arg(weights)
  if (length(sites) < 2 || is.null(names(sites))) stop("A pool has the studies of two sites or more, by name.", call. = FALSE)
  for (site in names(sites)) require_addable(site, sites[[site]])
  if (anyDuplicated(lapply(sites, unclass)) > 0) stop("One release stands for two sites: its people would count twice.", call. = FALSE)
  has <- lapply(sites, study_terms)
  common <- Reduce(intersect, has)
  if (length(common) < 2) stop("The studies have no column in common.", call. = FALSE)
  if (any(grepl("(^|:)site(\\[|:|$)", common))) invalid_formula("A column is called site, which distinguishes sites: rename it.")
  moments <- lapply(sites, function(study) chosen_moments(study_moments(study), match(common, study_terms(study))))
  sizes <- if (weights == "people") vapply(sites, function(study) as.numeric(study$result$n), 0) else vapply(moments, precise, 0)
  shares <- sizes / sum(sizes)
  added <- pooled_moments(moments, shares)
  absent <- setdiff(unique(unlist(has)), common)
  lacking <- vapply(absent, function(term) {
    paste0(term, " is not at ", listed(names(sites)[!vapply(has, function(terms) term %in% terms, NA)]), ", and not pooled.")
  }, "")
  first <- sites[[which.max(vapply(sites, function(study) as.numeric(value_or(study$charged$epsilon, 0)), 0))]]
  document <- unclass(first)[c("version", "status", "charged", "guarantee", "created_at")]
  document$id <- paste0("pool_", substr(sha256_of(paste(vapply(sites, function(study) study$id, ""), collapse = "")), 1, 16))
  document$dataset <- paste(names(sites), collapse = " + ")
  document$query <- list(kind = "study", sites = names(sites), weights = weights)
  document$result <- pooled_result(sites, added, lacking)
  structure(c(document, list(sites = sites, weights = shares, pooled = added)), class = c("reticent_pooled", "reticent_study", "reticent_release"))
}

pooled_result <- function(sites, added, lacking) {
  dummies <- stats::setNames(unlist(sites[[1]]$result$dummies), study_terms(sites[[1]]))
  flags <- ifelse(added$names %in% names(dummies), dummies[added$names], startsWith(added$names, "site"))
  result <- list(
    terms = added$names, variables = sites[[1]]$result$variables, dummies = as.logical(flags),
    n = sum(vapply(sites, function(study) as.numeric(study$result$n), 0)),
    warnings = unname(c(lacking, unique(unlist(lapply(sites, function(study) plain_vector(study$result$warnings))))))
  )
  effects <- vapply(sites, function(study) as.numeric(value_or(study$result$design_effect, NA)), 0)
  if (!all(is.na(effects))) result$design_effect <- max(effects, na.rm = TRUE)
  if (added$effects) result$effects <- "person"
  result
}

require_addable <- function(site, study) {
  if (!inherits(study, "reticent_study")) stop(site, ": that is no study with a reply, and is not in the pool.", call. = FALSE)
  if (length(study$result$groups)) stop(site, ": that study is by groups: take one with study_group().", call. = FALSE)
  if (any(startsWith(study_terms(study), "missing("))) stop(site, ": missing = \"indicator\" fills cells with a value of the site's own: ask for missing = \"mask\".", call. = FALSE)
  moments <- tryCatch(study_moments(study), error = function(problem) NULL)
  q <- length(study_terms(study))
  sound <- !is.null(moments) && identical(dim(moments$sums), c(q, q)) && ncol(moments$root) == q && all(lengths(moments[c("centres", "scales", "lost")]) == q) &&
    all(is.finite(unlist(moments[c("sums", "root", "sd", "n", "centres", "scales", "lost", "stretch")]))) && all(is.finite(unlist(moments$narrow))) &&
    moments$sd >= 0 && moments$n >= 1 && all(moments$scales > 0) && isSymmetric(unname(moments$sums), tol = 1e-6)
  if (!isTRUE(sound)) raise(paste0(site, ": its answer has numbers that cannot be a study's; it is not in the pool."), "unexpected_reply")
}

# The moments of some columns, the intercept first.
chosen_moments <- function(moments, places) {
  cut <- function(each) {
    each$sums <- each$sums[places, places, drop = FALSE]
    each$root <- each$root[, places, drop = FALSE]
    each
  }
  for (part in c("names", "centres", "scales", "lost")) moments[[part]] <- moments[[part]][places]
  if (!is.null(moments$narrow)) moments$narrow <- cut(moments$narrow)
  cut(moments)
}

# What a site's moments are worth where all sites have one law: 1/(1/n + s^2 q^2).
precise <- function(moments) 1 / (1 / moments$n + (moments$sd * mean(diag(overlap_of(moments))))^2)

# The sum with weights w of the sites' moments, in the coordinates of the first, with columns that tell sites apart.
pooled_moments <- function(sites, w) {
  first <- sites[[1]]
  q <- length(first$names)
  turned <- lapply(seq_along(sites), function(k) turned_units(sites[[k]], first, k, length(sites)))
  each <- function(fun) Map(fun, seq_along(sites), sites, turned)
  sums <- Reduce(`+`, each(function(k, m, T) w[k] * T %*% m$sums %*% t(T)))
  parts <- each(function(k, m, T) list(root = m$root %*% t(T), sd = w[k] * m$sd))
  n <- 1 / sum(w^2 / vapply(sites, function(m) m$n, 0))
  lost <- lapply(sites, function(m) m$lost)
  told <- paste0("site[", names(sites)[-1], "]")
  list(
    names = c(first$names, unlist(lapply(told, function(site) c(site, paste0(site, ":", first$names[-1]))))),
    centres = c(first$centres, numeric(q * (length(sites) - 1))), scales = rep(first$scales, length(sites)), sums = sums,
    root = parts[[1]]$root, sd = parts[[1]]$sd, parts = parts, n = n, effects = first$effects,
    stretch = max(vapply(sites, function(m) m$stretch, 0)), narrow = pooled_narrow(sites, turned, w, sums, n),
    lost = c(Reduce(`+`, Map(`*`, lost, w)), unlist(lost[-1]))
  )
}

# (q K, q): from a site's columns to the pooled ones.
turned_units <- function(moments, common, k, sites) {
  units <- function(m) {
    D <- diag(m$scales)
    D[-1, 1] <- m$centres[-1]
    D
  }
  here <- units(moments)
  q <- nrow(here)
  found <- matrix(0, q * sites, q)
  found[seq_len(q), ] <- solve(units(common), here)
  if (k > 1) found[q * (k - 1) + seq_len(q), ] <- here / c(1, common$scales[-1])
  found
}

# What clipping may have moved, of the sites that say it; its ratio is 1.
pooled_narrow <- function(sites, turned, w, sums, n) {
  said <- which(!vapply(sites, function(m) is.null(m$narrow), NA))
  if (!length(said)) return(NULL)
  missing <- 0 * sums
  parts <- list()
  typical <- 0
  for (k in said) {
    m <- sites[[k]]
    factor <- w[[k]] * m$narrow$ratio
    missing <- missing + factor * turned[[k]] %*% (m$sums - m$narrow$sums) %*% t(turned[[k]])
    parts <- c(parts, list(list(root = m$narrow$root %*% t(turned[[k]]), sd = factor * m$narrow$sd)))
    typical <- typical + w[[k]] * m$narrow$typical / sqrt(m$n)
  }
  list(sums = sums - missing, root = parts[[1]]$root, sd = parts[[1]]$sd, parts = parts, ratio = 1, typical = sqrt(n) * typical)
}

heterogeneity <- function(pooled, formula, method = "REML", hartung_knapp = NULL) {
  if (!inherits(pooled, "reticent_pooled")) stop("The first argument is a pooled study: pool(list(north = a, south = b)).", call. = FALSE)
  fits <- lapply(pooled$sites, function(study) if (identical(formula, "main")) study_main(study) else study_ols(study, formula))
  found <- list()
  for (term in unique(unlist(lapply(fits, function(fit) names(coef(fit)))))) {
    usable <- Filter(function(fit) term %in% names(coef(fit)) && all(is.finite(confint(fit)[term, ])), fits)
    if (length(usable) > 1) found[[term]] <- meta(usable, term, method, hartung_knapp)
  }
  if (!length(found)) raise("No term has intervals at two sites: the noise of single sites is too large. The pooled fit with `site` may have them.", "not_estimable")
  found
}

print.reticent_pooled <- function(x, ...) {
  counts <- vapply(x$sites, function(study) format(study$result$n, big.mark = ","), "")
  cat(strwrap(paste0("Pooled study of ", listed(paste0(names(x$sites), " (n = ", counts, ")"))), 90), sep = "\n")
  own <- seq_len(length(x$pooled$names) / length(x$sites))[-1]
  cat(strwrap(paste("Columns:", listed(x$pooled$names[own])), 90), sep = "\n")
  cat(strwrap(paste(study_analyses, "site tells sites apart; heterogeneity() and meta() summarise their fits."), 90), sep = "\n")
  for (warning in x$result$warnings) cat(strwrap(warning, 90, prefix = "  ", initial = "- "), sep = "\n")
  footer(x)
  invisible(x)
}
