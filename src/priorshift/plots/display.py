"""Base class of all pictures, and what their drawing code shares."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from priorshift.errors import InputTypeError, MissingExtraError
from priorshift.formatting import decimals, format_fixed

# Okabe and Ito's colours: distinct with every kind of colour vision, and visible on a white and on a dark page
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7F7F7F"
WIDTH = 5.2  # inches: letters of ten points can be read on a phone that is as wide as the picture
_MAX_LETTERS = 26  # of a name
_EMOJI_JOINER = "\u200d"


class Display(ABC):
    """A picture together with the numbers that it draws, like scikit-learn's displays.

    Attributes
    ----------
    title : str
        Heading.
    description : str
        Text alternative: what the picture shows, with its numbers.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn last.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> display = ps.plots.displays_of(ps.TCPU(0.2).fit(s.X, s.y).estimate(s.target))["objective"]
    >>> display.title
    'Which target prior fits best'
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
    def description(self) -> str:
        """Text alternative: what the picture shows, with its numbers."""

    @property
    def size(self) -> tuple[float, float]:
        """Default width and height in inches."""
        return WIDTH, 3.2

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw. Default: a new figure.

        Returns
        -------
        Self
            With `ax_` and `figure_`.
        """
        self.ax_ = self.make_axes(pyplot().figure(figsize=self.size, layout="constrained")) if ax is None else ax
        self.draw(self.ax_)
        self.figure_ = (self.ax_ if hasattr(self.ax_, "figure") else self.ax_[0]).figure
        return self

    def make_axes(self, figure: Any) -> Any:
        """Add to an empty figure the Axes that the picture needs."""
        return figure.subplots()

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw on Axes, without storing them."""


def pyplot() -> Any:
    """Import matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing_matplotlib() from None
    return plt


def missing_matplotlib() -> MissingExtraError:
    """Return the error to raise where matplotlib is not installed."""
    return MissingExtraError('pictures need matplotlib; run pip install "priorshift[plot]".')


def check_has(given: Any, attribute: str, expected: str, function: str) -> None:
    """Refuse an object without the attribute that a picture is drawn from."""
    if not hasattr(given, attribute):
        raise InputTypeError(
            f"{expected} is needed for this picture, but got {type(given).__name__}; pass the result of {function}."
        )


def legend_above(ax: Any, columns: int = 2, title: str | None = None) -> None:
    """Put the legend above the Axes, where it hides nothing."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, ncols=columns, fontsize="small",
              title=title, title_fontsize="small", alignment="left")  # fmt: skip


def write_instead(ax: Any, text: str) -> None:
    """Write a message in the middle of Axes that have nothing to draw."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize="small")


def band_style(colour: str) -> dict[str, Any]:
    """Return the style of a filled interval: light, with an edge that is visible on every page."""
    return {"facecolor": (colour, 0.2), "edgecolor": colour, "linewidth": 0.6}


def bars_size(bars: int, more: float = 0.9) -> tuple[float, float]:
    """Return width and height of a picture with named bars one below the other."""
    return WIDTH, more + 0.27 * max(bars, 2)


def printable(name: object, letters: int | None = _MAX_LETTERS) -> str:
    """Shorten a name, and replace characters that are invisible or change the direction of text."""
    text = str(name)
    if letters is not None and len(text) > letters:
        end = letters // 3  # names of one table often begin alike
        text = f"{text[: letters - 1 - end]}…{text[len(text) - end :]}"

    def _printable(character: str) -> str:
        if character.isspace():
            return " "
        is_control = unicodedata.category(character)[0] == "C" and character != _EMOJI_JOINER
        return "�" if is_control else character

    return "".join(map(_printable, text))


def tick_label(name: object, letters: int = _MAX_LETTERS) -> str:
    """Make a name printable for matplotlib, which reads mathematics between two dollar signs."""
    return printable(name, letters).replace("$", r"\$")


def format_prior(value: float, width: float | None = None) -> str:
    """Format a prior with as many digits as it needs, or as the width of its interval needs."""
    return format_fixed(value, decimals(abs(value) if width is None else width))


def interval_label(confidence: float) -> str:
    """Name an interval by its confidence level, as in "95% interval"."""
    return f"{100 * confidence:g}% interval"
