"""Estimators of the target prior, and the table that names them."""
