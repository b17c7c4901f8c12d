"""What all pictures share: numbers that are drawn on Axes, with a title and a text in their place."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from priorshift.errors import InputTypeError, MissingExtraError
from priorshift.formatting import written
from priorshift.results import decimals

# Okabe and Ito's colours, told apart with every kind of colour vision; each stands out from a white and a dark page
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7F7F7F"
WIDTH = 5.2  # inches: letters of ten points can be read on a phone that is as wide as the picture
_LETTERS = 26  # of a name
_JOINER = "\u200d"  # makes one sign of several emoji


class Display(ABC):
    """A picture that knows the numbers it draws, in scikit-learn's habit.

    Attributes
    ----------
    title : str
        A few words, for a heading.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> display = ps.plots.displays_of(ps.TCPU(0.2).fit(s.X, s.y).estimate(s.target))[0]
    >>> isinstance(display, ps.plots.Display), display.title
    (True, 'Which target prior fits best')
    >>> display.plot().ax_ is display.figure_.axes[0]
    True
    """

    title: ClassVar[str]
    ax_: Any
    figure_: Any

    def __repr__(self) -> str:  # a notebook shows it below the picture
        return f"<{type(self).__name__}: {self.title}>"

    @property
    @abstractmethod
    def description(self) -> str:  # numpydoc ignore=RT01
        """What the picture shows, in sentences with its numbers."""

    @property
    def size(self) -> tuple[float, float]:  # numpydoc ignore=RT01
        """Width and height in inches that suit it."""
        return WIDTH, 3.2

    def plot(self, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; a new figure by default.

        Returns
        -------
        Self
            With `ax_` and `figure_`.
        """
        self.ax_ = self.axes_of(pyplot().figure(figsize=self.size, layout="constrained")) if ax is None else ax
        self.draw(self.ax_)
        self.figure_ = first_of(self.ax_).figure
        return self

    def axes_of(self, figure: Any) -> Any:
        """Make the Axes that it is drawn on.

        Parameters
        ----------
        figure : matplotlib Figure
            An empty one.

        Returns
        -------
        matplotlib Axes
        """
        return figure.subplots()

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw it on Axes, and remember nothing.

        Parameters
        ----------
        ax : matplotlib Axes
            Where.
        """


def first_of(axes: Any) -> Any:  # numpydoc ignore=PR01,RT01
    """The Axes, or the first of several."""
    return axes if hasattr(axes, "figure") else axes[0]


def pyplot() -> Any:  # numpydoc ignore=PR01,RT01
    """Matplotlib's interface with windows, where it is installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing() from None
    return plt


def missing() -> MissingExtraError:  # numpydoc ignore=PR01,RT01
    """What is said where there is no matplotlib."""
    return MissingExtraError('pictures need matplotlib; run pip install "priorshift[plot]".')


def legend_above(ax: Any, columns: int = 2, title: str | None = None) -> None:  # numpydoc ignore=PR01,RT01
    """Above the Axes, where it hides nothing."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, ncols=columns, fontsize="small",
              title=title, title_fontsize="small", alignment="left")  # fmt: skip


def say_instead(ax: Any, text: str) -> None:  # numpydoc ignore=PR01
    """Where there is nothing to draw."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize="small")


def band(colour: str) -> dict[str, Any]:  # numpydoc ignore=PR01,RT01
    """How an interval is filled: lightly, with an edge that can be seen on every page."""
    return {"facecolor": (colour, 0.2), "edgecolor": colour, "linewidth": 0.6}


def bars_size(bars: int, more: float = 0.9) -> tuple[float, float]:  # numpydoc ignore=PR01,RT01
    """Width and height of a picture with bars, or lines with a name each, one below the other."""
    return WIDTH, more + 0.27 * max(bars, 2)


def shown(name: object, letters: int | None = _LETTERS) -> str:  # numpydoc ignore=PR01,RT01
    """A name as text that can be drawn and read: short, without signs that steer or break what stands around it.

    Examples
    --------
    >>> from priorshift.plots.display import shown
    >>> shown("age at diagnosis"), shown("a\\x00b\\u202ec"), shown("x" * 10_000, letters=5)
    ('age at diagnosis', 'a�b�c', 'xxx…x')
    """
    text = str(name)
    if letters is not None and len(text) > letters:
        end = letters // 3  # names of one table often begin alike
        text = f"{text[: letters - 1 - end]}…{text[len(text) - end :]}"
    return "".join(_shown(sign) for sign in text)


def label(name: object, letters: int = _LETTERS) -> str:  # numpydoc ignore=PR01,RT01
    """A name as matplotlib takes it, which reads mathematics between two dollar signs."""
    return shown(name, letters).replace("$", r"\$")


def _shown(sign: str) -> str:
    if sign.isspace():
        return " "
    return "�" if unicodedata.category(sign)[0] == "C" and sign != _JOINER else sign


def number(value: float, width: float | None = None) -> str:  # numpydoc ignore=PR01,RT01
    """A prior with as many digits as it needs, or as the width of its interval needs.

    Examples
    --------
    >>> from priorshift.plots.display import number
    >>> number(0.25), number(0.00123), number(0.25, width=0.0004)
    ('0.250', '0.0012', '0.25000')
    """
    return written(value, decimals(abs(value) if width is None else width))


def expect(given: Any, part: str, what: str, giver: str) -> None:  # numpydoc ignore=PR01
    """Refuse what has not the part that a picture is made of.

    Examples
    --------
    >>> from priorshift.plots.display import expect
    >>> expect(None, "evidence", "an estimate", "estimate_prior")
    Traceback (most recent call last):
    priorshift.errors.InputTypeError: the picture is of an estimate, but this is of type NoneType; pass what
    estimate_prior gives.
    """
    if not hasattr(given, part):
        raise InputTypeError(
            f"the picture is of {what}, but this is of type {type(given).__name__}; pass what {giver} gives."
        )
