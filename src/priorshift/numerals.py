"""How numbers are written where people read them: on the terminal, on pages, in pictures and in sentences.

A minus is the sign − that axes of pictures have, a percentage has no space before its sign, and a p-value is never said
to be 0.
"""

from __future__ import annotations

_SMALLEST_P = 1e-4  # said in sentences


def written(value: float, digits: int, sign: str = "") -> str:  # numpydoc ignore=PR01,RT01
    """A number with so many decimals; what rounds to 0 has no minus.

    Examples
    --------
    >>> from priorshift.numerals import written
    >>> written(-0.25, 2), written(0.25, 1, "+"), written(-0.0001, 3)
    ('−0.25', '+0.2', '0.000')
    """
    return f"{value:{sign}z.{digits}f}".replace("-", "−")


def short(value: float, digits: int = 2, sign: str = "") -> str:  # numpydoc ignore=PR01,RT01
    """A number with so many digits.

    Examples
    --------
    >>> from priorshift.numerals import short
    >>> short(-0.2871), short(0.2871, 3, "+"), short(-0.000012)
    ('−0.29', '+0.287', '−1.2e-05')
    """
    text = f"{value:{sign}.{digits}g}"
    return f"−{text[1:]}" if text.startswith("-") else text


def percent(share: float) -> str:  # numpydoc ignore=PR01,RT01
    """A share, as people say it.

    Examples
    --------
    >>> from priorshift.numerals import percent
    >>> percent(0.514), percent(0.0042), percent(0.0)
    ('51%', '0.4%', '0%')
    """
    return f"{100 * share:.1f}%" if 0 < share < 0.0095 else f"{100 * share:.0f}%"


def p_words(p: float, digits: int = 2) -> str:  # numpydoc ignore=PR01,RT01
    """A p-value in a sentence, with its letter.

    Examples
    --------
    >>> from priorshift.numerals import p_words
    >>> p_words(0.0312), p_words(0.00012), p_words(1e-9)
    ('p = 0.031', 'p = 0.00012', 'p < 0.0001')
    """
    return f"p < {_SMALLEST_P:g}" if p < _SMALLEST_P else f"p = {p:.{digits}g}"


def p_cell(p: float, digits: int = 3) -> str:  # numpydoc ignore=PR01,RT01
    """A p-value in a table, with so many decimals.

    Examples
    --------
    >>> from priorshift.numerals import p_cell
    >>> p_cell(0.0312), p_cell(0.0312, 4), p_cell(1e-9), p_cell(float("nan"))
    ('0.031', '0.0312', '< 0.001', 'none')
    """
    smallest = 10.0**-digits
    return "none" if p != p else f"< {smallest:g}" if p < smallest else f"{p:.{digits}f}"
