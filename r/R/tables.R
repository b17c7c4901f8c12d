# What R and Python store differently. reticulate alone turns a missing logical into TRUE, a missing integer into
# -2147483648, a missing character into the text "NA", and stops at a missing Date.

# A table of R as Python reads it: a data frame without NA outside of numbers, factors and times.
as_python_table <- function(table) {
  if (is.character(table) && length(table) == 1 && is.null(dim(table))) return(path.expand(table))  # a file
  if (is.matrix(table)) table <- as.data.frame(table, stringsAsFactors = FALSE)
  if (!is.data.frame(table)) {
    stop("A table must be a data frame, a matrix or the path of a file, but it is of class '", class(table)[1],
         "'. Pass one column as data.frame(name = values).", call. = FALSE)
  }
  columns <- lapply(stats::setNames(names(table), names(table)), function(name) python_column(table[[name]], name))
  as.data.frame(columns, stringsAsFactors = FALSE, optional = TRUE)
}

python_column <- function(column, name) {
  if (is.list(column) && !inherits(column, "POSIXlt") || is.matrix(column)) {
    stop("Column '", name, "' holds lists or a matrix. Split it into several columns, or drop it.", call. = FALSE)
  }
  if (inherits(column, c("Date", "POSIXlt"))) return(as.POSIXct(format(column, "%Y-%m-%d %H:%M:%S"), tz = "UTC"))
  if (inherits(column, "POSIXct")) return(column)
  if (inherits(column, "difftime")) return(as.double(column, units = "days"))
  if (is.character(column) && anyNA(column)) return(factor(column))
  python_values(column)
}

# Values of an option or a column: NA is NaN, which only doubles have.
python_values <- function(values) {
  if (is.factor(values) || inherits(values, "python.builtin.object")) return(values)
  if (is.list(values)) return(lapply(values, python_values))
  if ((is.logical(values) || is.integer(values)) && anyNA(values)) return(as.double(values))
  values
}

# Options of a call: factors are texts, whole numbers are integers where Python wants them.
python_options <- function(...) {
  options <- lapply(list(...), function(option) if (is.factor(option)) as.character(option) else python_values(option))
  if (length(options) && (is.null(names(options)) || any(names(options) == ""))) {
    stop("Pass options by name, such as source_prior = 0.2.", call. = FALSE)
  }
  seed <- options$random_state
  if (is.numeric(seed) && isTRUE(seed == round(seed))) options$random_state <- as.integer(seed)
  options
}
