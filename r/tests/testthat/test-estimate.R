test_that("an estimate has the numbers and the text of Python", {
  skip_without_python()
  s <- example_tables()
  estimate <- estimate_prior(s$positive, s$unlabeled, s$target, source_prior = 0.2, random_state = 0)
  expect_true(estimate$low < 0.5 && 0.5 < estimate$high)
  expect_equal(estimate$value, estimate$python$value)
  expect_equal(estimate$rows_target, 800)
  expect_output(print(estimate), "target prior 0.*95% interval")
})

test_that("an unknown source prior is NULL, a range is two numbers", {
  skip_without_python()
  s <- example_tables()
  unknown <- estimate_prior(s$positive, s$unlabeled, s$target, source_prior = NULL, random_state = 0)
  range <- estimate_prior(s$positive, s$unlabeled, s$target, source_prior = c(0, 0.3), random_state = 0)
  expect_equal(unknown$python$source_prior_by, "MixturePrior")
  expect_equal(c(range$source_prior_low, range$source_prior_high), c(0, 0.3))
})

test_that("several targets are a tibble, from a list and from a column", {
  skip_without_python()
  s <- example_tables()
  months <- list(january = s$target, february = patients(800, 0.1))
  table <- estimate_priors(s$positive, s$unlabeled, months, source_prior = 0.2, random_state = 0)
  expect_s3_class(table, "tbl_df")
  expect_equal(table$target, c("january", "february"))
  expect_true(all(table$low < c(0.5, 0.1) & c(0.5, 0.1) < table$high))
  change <- differences(table, consecutive = TRUE)
  expect_true(change$low < -0.4 && -0.4 < change$high)
  stacked <- do.call(rbind, months)
  stacked$month <- as.Date(rep(c("2024-01-01", "2024-02-01"), each = 800))
  by_column <- estimate_priors(s$positive, s$unlabeled, stacked, by = "month", source_prior = 0.2, random_state = 0)
  expect_equal(by_column$target, c("2024-01-01", "2024-02-01"))
  expect_equal(by_column$estimate, table$estimate)
  expect_error(differences(stacked), "estimate_priors")
})

test_that("a diagnosis has a verdict, reasons and a picture", {
  skip_without_python()
  s <- example_tables()
  found <- diagnose(s$positive, s$unlabeled, s$target, source_prior = 0.2, random_state = 0)
  expect_equal(found$answer, "yes")
  expect_type(found$reasons, "character")
  expect_output(print(found), "May I publish this number")
  changed <- transform(s$target, age = age + 15)
  expect_equal(diagnose(s$positive, s$unlabeled, changed, source_prior = 0.2, random_state = 0)$answer, "no")
  skip_if_not(reticulate::py_module_available("matplotlib"), "matplotlib")
  picture <- tempfile(fileext = ".pdf")
  pdf(picture)
  plot(found)
  dev.off()
  expect_gt(file.size(picture), 10000)
})

test_that("an audit with NA is what it says, and a contradiction is a warning of R", {
  skip_without_python()
  s <- example_tables()
  looked_up <- rep(NA, 800)
  looked_up[sample(800, 60)] <- TRUE
  expect_warning(
    audited <- estimate_prior(s$positive, s$unlabeled, s$target, source_prior = 0.2, random_state = 0,
                              audit = list(target = looked_up)),
    "audit of 60 of 800 rows"
  )
  expect_gt(audited$low, 0.8)
})

test_that("an error of Python is an error of R with its sentence", {
  skip_without_python()
  s <- example_tables()
  expect_error(estimate_prior(s$positive, s$unlabeled, s$target, source_prior = 20), "strictly between 0 and 1")
  expect_error(estimate_prior(s$positive, s$unlabeled, s$target, 0.2), "by name")
  expect_error(estimate_prior(s$positive, s$unlabeled, s$target, random_state = 1.7), "whole number")
})
