"""Scores of rows by models that have not seen them, and what they tell: p-values, mixture, level sets, odds."""
