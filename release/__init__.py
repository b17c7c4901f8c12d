"""Checks of the wheel and the sdist before a version is published: ``make release-check``."""
