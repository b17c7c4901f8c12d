missing_in_python <- function(table) {
  count <- reticulate::py_eval("lambda frame: frame.isna().sum().to_dict()")
  unlist(count(as_python_table(table)))
}

test_that("NA of every type is a missing cell in Python", {
  skip_without_python()
  table <- data.frame(
    double = c(1.5, NA), integer = c(1L, NA), logical = c(TRUE, NA), character = c("a", NA), factor = factor(c("a", NA)),
    date = as.Date(c("2024-01-01", NA)), time = as.POSIXct(c("2024-01-01 10:00:00", NA), tz = "UTC"),
    duration = as.difftime(c(1, NA), units = "hours")
  )
  counts <- missing_in_python(table)
  expect_equal(names(counts), names(table))
  expect_true(all(counts == 1))
})

test_that("names, durations and matrices are kept", {
  table <- as_python_table(data.frame(`C-reactive protein` = 1:2, check.names = FALSE))
  expect_equal(names(table), "C-reactive protein")
  expect_equal(as_python_table(data.frame(x = as.difftime(36, units = "hours")))$x, 1.5)
  expect_equal(names(as_python_table(matrix(1:4, 2, dimnames = list(NULL, c("a", "b"))))), c("a", "b"))
  expect_equal(as_python_table("target.csv"), "target.csv")
})

test_that("what is not a table is refused", {
  expect_error(as_python_table(c(1, 2)), "data frame")
  expect_error(as_python_table(data.frame(x = I(list(1, 2)))), "Split it")
})
