# SPDX-License-Identifier: Apache-2.0
library(testthat)
library(reticent)

test_check("reticent")
