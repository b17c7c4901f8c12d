# Patients with two measurements, a factor and a count; the shares of ill ones are exact.
patients <- function(rows, ill) {
  is_ill <- seq_len(rows) <= round(rows * ill)
  data.frame(age = rnorm(rows, 50 + 10 * is_ill, 10), marker = exp(rnorm(rows, 1.2 * is_ill, 0.6)),
             sex = factor(sample(c("f", "m"), rows, TRUE)), visits = rpois(rows, 2 + 2 * is_ill))
}

skip_without_python <- function() {
  available <- tryCatch(reticulate::py_numpy_available(TRUE) && reticulate::py_module_available("priorshift"),
                        error = function(error) FALSE)
  skip_if_not(available, "Python with priorshift and a NumPy that reticulate supports")
}

example_tables <- function() {
  set.seed(1)
  list(positive = patients(300, 1), unlabeled = patients(1000, 0.2), target = patients(800, 0.5))
}
