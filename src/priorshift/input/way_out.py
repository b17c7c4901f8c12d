"""How a column is left out, as messages say it to those who write Python and to those who type commands."""

from __future__ import annotations

import shlex


def shell_option(option: str, value: str) -> str:
    """An option and its value as they are typed, whatever the value holds."""
    quoted = shlex.quote(value)
    return f"{option}={quoted}" if value.startswith("-") else f"{option} {quoted}"


def drop_words(name: str) -> str:
    """The argument and the option that leave a column out."""
    return f"(drop=[{name!r}], {shell_option('--drop', name)})"
