"""Estimators of the source prior, and how their error is taken into account."""
