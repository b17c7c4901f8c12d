"""Input: files, data frames and arrays as tables of numbers, row metadata, and checks of both."""
