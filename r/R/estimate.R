# Functions that mirror those of the Python package. Each result keeps the Python object as `python`.

estimate_prior <- function(positive, unlabeled, target, ...) {
  result <- call_python("estimate_prior", samples(positive, unlabeled, target), ...)
  structure(c(result$numbers(), list(status = result$status, method = result$method, python = result)),
            class = "prior_estimate")
}

estimate_priors <- function(positive, unlabeled, targets, ...) {
  result <- call_python("estimate_priors", samples(positive, unlabeled, targets), ...)
  table <- to_tibble(result$to_frame)
  attr(table, "python") <- result
  class(table) <- c("prior_estimates", class(table))
  table
}

diagnose <- function(positive, unlabeled, target, ...) {
  result <- call_python("diagnose", samples(positive, unlabeled, target), ...)
  fields <- list(answer = result$verdict$answer, reasons = as.character(result$verdict$reasons),
                 p_label_shift = result$label_shift_test$p_value, p_shift = result$shift_test$p_value)
  structure(c(fields, result$estimate$numbers(), list(python = result)), class = "prior_diagnosis")
}

# Differences of the targets of estimate_priors, such as consecutive = TRUE or "2024-01", as a tibble.
differences <- function(estimates, ...) {
  if (!inherits(estimates, "prior_estimates")) stop("Pass the result of estimate_priors.", call. = FALSE)
  to_tibble(attr(estimates, "python")$differences(...)$to_frame)
}

print.prior_estimate <- function(x, ...) {
  cat(strwrap(reticulate::py_str(x$python)), sep = "\n")
  invisible(x)
}

print.prior_diagnosis <- function(x, ...) {
  cat(reticulate::py_str(x$python$estimate), reticulate::py_str(x$python$verdict), sep = "\n")
  invisible(x)
}

plot.prior_diagnosis <- function(x, ...) {
  draw(x$python, ...)
  invisible(x)
}

plot.prior_estimates <- function(x, ...) {
  draw(attr(x, "python"), ...)
  invisible(x)
}

# Draw a result, by matplotlib, on the current device of R; `...` are arguments of the Python method.
draw <- function(result, ...) {
  pyplot <- import("matplotlib.pyplot")
  pyplot$switch_backend("agg")  # no window: the picture is shown by R
  file <- tempfile(fileext = ".png")
  on.exit({pyplot$close("all"); unlink(file)})
  result$plot(...)
  pyplot$savefig(file, dpi = 150L, bbox_inches = "tight")
  grid::grid.newpage()
  grid::grid.raster(png::readPNG(file))
}

# A list of tables, such as several targets, keeps its names.
samples <- function(positive, unlabeled, target) {
  several <- is.list(target) && !is.data.frame(target)
  list(as_python_table(positive), as_python_table(unlabeled),
       if (several) lapply(target, as_python_table) else as_python_table(target))
}

# Call a function of the Python package; its warnings become warnings of R.
call_python <- function(name, samples, ...) {
  arguments <- c(samples, python_options(...))
  if (!reticulate::py_numpy_available(initialize = TRUE)) {
    stop("reticulate ", utils::packageVersion("reticulate"), " cannot use the NumPy of this Python. Update reticulate ",
         "to 1.38 or newer, or install NumPy 1 (numpy<2). reticulate::py_config() shows which Python is used.",
         call. = FALSE)
  }
  recorded <- record_warnings(result <- do.call(import("priorshift")[[name]], arguments))
  from_library <- vapply(recorded, function(each) grepl("priorshift", reticulate::py_str(each$category)), NA)
  for (each in recorded[from_library]) warning(reticulate::py_str(each$message), call. = FALSE)
  result
}

# Evaluate an expression and return the warnings of Python.
record_warnings <- function(expression) {
  python_warnings <- import("warnings", convert = FALSE)  # R would copy the list before anything is recorded
  with(python_warnings$catch_warnings(record = TRUE), as = "recorded", {
    python_warnings$simplefilter("always")
    force(expression)
    reticulate::py_to_r(recorded)
  })
}

# The data frame that a Python method returns, as a tibble with NA where Python has NaN. Its columns are passed as lists,
# because reticulate converts data frames only for some versions of pandas.
to_tibble <- function(method) {
  columns <- reticulate::py_eval("lambda method: method().to_dict('list')")(method)
  as_tibble(lapply(columns, function(column) {
    if (is.list(column)) column <- unlist(lapply(column, function(cell) if (is.null(cell)) NA else cell))
    if (is.numeric(column)) column[is.nan(column)] <- NA
    column
  }))
}
