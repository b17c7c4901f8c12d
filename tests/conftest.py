"""Hypothesis tries the same examples every time; `--hypothesis-profile=explore` tries new ones."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile("repeatable")
