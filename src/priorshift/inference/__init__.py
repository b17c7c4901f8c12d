"""Intervals, bounds and confidence distributions: how sure R and the two priors are."""
