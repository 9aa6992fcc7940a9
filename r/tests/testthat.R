library(testthat)
library(reticent)

test_check("reticent")
