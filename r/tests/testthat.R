library(testthat)
library(priorshift)

test_check("priorshift")
