"""Base class of all pictures, and their export as SVG for light or dark pages under a strict content policy."""

from __future__ import annotations

import os
import re
import unicodedata
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np

from priorshift.arrays import Floats
from priorshift.errors import InputError, InputTypeError, MissingExtraError
from priorshift.formatting import decimals, format_fixed
from priorshift.io.files import atomic_write

# Okabe and Ito's colours: distinct with every kind of colour vision, and visible on a white and on a dark page
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7F7F7F"
WIDTH = 4.0  # inches: on a phone 360 pixels wide, letters of ten points are ten pixels high
_ROW, _BAR = 0.42, 0.4  # height of a row in inches, and of its bar in rows: the name is above the bar
_MAX_LETTERS = 36  # of a name
_EMOJI_JOINER = "\u200d"
_DRAWING = Lock()  # all threads share matplotlib's settings
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "priorshift", "font.size": 10.0}
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_NAME = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REMOVED = {f"{_SVG}metadata", f"{_SVG}style"}
_BLACK = "#000000"
PICTURE_ENDINGS = (".svg", ".png")
_PNG_DPI = 200
_NO_MATPLOTLIB = 'Pictures need matplotlib; run pip install "priorshift[plot]".'


class Display(ABC):
    """A picture together with the numbers that it draws, like scikit-learn's displays.

    Attributes
    ----------
    title : str
        Heading.
    description : str
        Text alternative: what the picture shows, with its numbers.
    caption : str
        What to look for, without the numbers that the picture or a table shows.
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
    width: ClassVar[float] = WIDTH
    height: ClassVar[float] = 3.2
    ax_: Any
    figure_: Any

    def __repr__(self) -> str:
        """Return a short text, which a notebook shows below the picture."""
        return f"<{type(self).__name__}: {self.title}>"

    @property
    @abstractmethod
    def description(self) -> str:
        """Text alternative: what the picture shows, with its numbers."""

    @property
    def caption(self) -> str:
        """What to look for, for those who see the picture; by default its text alternative."""
        return self.description

    @property
    def size(self) -> tuple[float, float]:
        """Default width and height in inches."""
        return self.width, self.height

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
        if ax is None:
            ax = self.make_axes(pyplot().figure(figsize=self.size, layout="constrained"))
        self.draw(ax)
        first_ax = ax if hasattr(ax, "figure") else ax[0]  # some pictures have a sequence of Axes
        self.ax_, self.figure_ = ax, first_ax.figure
        return self

    def make_axes(self, figure: Any) -> Any:
        """Add to an empty figure the Axes that the picture needs."""
        return figure.subplots()

    @abstractmethod
    def draw(self, ax: Any) -> None:
        """Draw the picture on Axes, or on a sequence of Axes by `make_axes`, without storing them."""

    @staticmethod
    def band_style(colour: str) -> dict[str, Any]:
        """Return the style of a filled interval: light, with an edge that is visible on every page."""
        return {"facecolor": (colour, 0.2), "edgecolor": colour, "linewidth": 0.6}

    @staticmethod
    def rows_size(rows: int, space: float) -> tuple[float, float]:
        """Return width and height in inches of a picture with a row for each name, and `space` for axis and legend."""
        return WIDTH, space + _ROW * max(rows, 1)

    @staticmethod
    def label_rows(ax: Any, names: Sequence[str], labels: Sequence[str] | None = None) -> tuple[Floats, float]:
        """Write the names above their rows, the first on top; return the heights of the rows and of a bar.

        A name next to its bar would leave no space for the bar on a phone. `labels` are texts in place of the names.
        """
        heights = np.arange(len(names), dtype=float)[::-1]
        ax.set_yticks(heights + 0.5, [tick_label(name) for name in names] if labels is None else labels)
        ax.tick_params(axis="y", length=0, pad=-4)  # inside the Axes
        for label in ax.get_yticklabels():
            label.set(horizontalalignment="left", verticalalignment="center")
        ax.set_ylim(-0.4, max(len(names), 1) - 0.1)
        return heights, _BAR

    @staticmethod
    def legend(ax: Any, columns: int = 2, **more: Any) -> None:
        """Put the legend above the Axes, where it hides nothing; `more` are arguments of Axes.legend."""
        more.setdefault("handles", ax.get_legend_handles_labels()[0])  # explicit, since there may be none below a title
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, ncols=columns, alignment="left",
                  borderpad=0.2, handlelength=1.4, handletextpad=0.5, columnspacing=1.2, **more)  # fmt: skip


def pyplot() -> Any:
    """Import and return matplotlib.pyplot; if it is missing, raise MissingExtraError, which says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtraError(_NO_MATPLOTLIB) from None
    return plt


def check_has(argument: Any, attribute: str, expected: str, function: str) -> None:
    """Raise InputTypeError if an argument lacks the attribute that a picture is drawn from.

    The message says what was `expected`, and which `function` returns it.
    """
    if not hasattr(argument, attribute):
        raise InputTypeError(
            f"This picture needs {expected}, but got {type(argument).__name__}. Pass the result of {function}."
        )


def printable(name: object, letters: int | None = _MAX_LETTERS) -> str:
    """Shorten a name to some letters, and replace characters that are invisible or change the direction of text.

    `letters` None does not shorten it.
    """
    text = str(name)
    if letters is not None and len(text) > letters:
        end = letters // 3  # letters of the end: names in one table often begin with the same letters
        text = f"{text[: letters - 1 - end]}…{text[len(text) - end :]}"
    visible = ""
    for character in text:
        if character.isspace():
            visible += " "
        elif unicodedata.category(character)[0] == "C" and character != _EMOJI_JOINER:  # a control or format character
            visible += "\ufffd"
        else:
            visible += character
    return visible


def tick_label(name: object, letters: int = _MAX_LETTERS) -> str:
    """Make a name printable for matplotlib, which reads mathematics between two dollar signs."""
    return printable(name, letters).replace("$", r"\$")


def format_prior(value: float, width: float | None = None) -> str:
    """Format a prior with the decimals that the `width` of its interval requires; by default its own size."""
    return format_fixed(value, decimals(abs(value) if width is None else width))


def interval_label(confidence: float) -> str:
    """Name an interval by its confidence level, 0 to 1, as in "95% interval"."""
    return f"{100 * confidence:g}% interval"


def svg(display: Display, *, name: str) -> str:
    """Write a picture as an SVG element for a page of HTML.

    It takes the text colour, background and width of the page, contains its title and text alternative, and has no
    style, no script and no identifier but those that start with `name`. The same numbers give the same text.

    Parameters
    ----------
    display : Display
        The picture.
    name : str
        Prefix of its identifiers: letters, digits, "-" and "_"; different for each picture of a page.

    Returns
    -------
    str
        One element.

    Examples
    --------
    >>> import priorshift as ps
    >>> s = ps.simulate.gaussian(0.2, 0.6, n_source=300, n_target=300, shared=False, random_state=0)
    >>> display = ps.plots.displays_of(ps.TCPU(0.2).fit(s.X, s.y).estimate(s.target))["objective"]
    >>> text = ps.plots.svg(display, name="objective")
    >>> text[:4], '<title id="objective-title">Which target prior fits best</title>' in text
    ('<svg', True)
    """
    if not isinstance(display, Display):
        raise InputError(f"display is {type(display).__name__}, but must be a Display; see plots.displays_of.")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InputError(f"name is {name!r}, but must be a letter followed by letters, digits, '-' or '_'.")
    from xml.etree import ElementTree  # slow to import

    root = ElementTree.fromstring(_render(display, format="svg", transparent=True, metadata={"Date": None}))
    _clean(root)
    _rename_identifiers(root, name)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({
        "xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "width": "100%", "role": "img",
        "aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-desc",
        "font-family": "system-ui, sans-serif", "fill": "currentColor", "stroke-linejoin": "round",
    })  # fmt: skip
    for position, (tag, text) in enumerate([("title", display.title), ("desc", display.description)]):
        element = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        element.text = printable(text, letters=None)
        root.insert(position, element)
    return ElementTree.tostring(root, encoding="unicode")


def write_picture(display: Display, path: str | os.PathLike[str]) -> None:
    """Write a picture to a file, as SVG or PNG by the ending of its name. An existing file is replaced."""
    ending = Path(path).suffix.lower()
    if ending not in PICTURE_ENDINGS:
        raise InputError(f"{path} must end in .svg or .png. Rename it.")
    if ending == ".svg":
        content = f"{svg(display, name='picture')}\n".encode()
    else:
        content = _render(display, format="png", dpi=_PNG_DPI)
    with atomic_write(path) as draft:
        draft.write_bytes(content)


def _render(display: Display, **save: Any) -> bytes:
    """Return a picture drawn with matplotlib's default settings whatever the user has set; `save` is for savefig."""
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(_NO_MATPLOTLIB) from None
    buffer = BytesIO()
    with _DRAWING, style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # the page has other fonts, with more letters
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        warnings.filterwarnings("ignore", "Matplotlib currently does not support .* natively", UserWarning)
        figure = Figure(figsize=display.size, layout="constrained")
        display.draw(display.make_axes(figure))
        figure.savefig(buffer, **save)
    return buffer.getvalue()


def _clean(element: Any) -> None:
    """Clean an SVG element and its children in place for a page with a strict content policy.

    Styles become attributes, black becomes the text colour, numbers are shortened, and empty elements are removed.
    """
    for child in list(element):
        if child.tag in _REMOVED:
            element.remove(child)
            continue
        _clean(child)
        is_empty_group = child.tag in ("g", "defs") and len(child) == 0
        is_empty_path = child.tag == "path" and not child.attrib.get("d")  # a line through NaN has no points
        if is_empty_group or is_empty_path:
            element.remove(child)
    element.tag = element.tag.removeprefix(_SVG)
    style = element.attrib.pop("style", "")
    for declaration in style.split(";"):
        if declaration.strip():
            property_, _, value = declaration.partition(":")
            element.set(property_.strip(), value.strip())
    if element.tag != "text":
        element.text = None
    element.tail = None
    element.attrib.pop("font-family", None)
    if _LINK in element.attrib:
        element.set("href", element.attrib.pop(_LINK))
    for key, value in element.attrib.items():
        if key == "d":
            value = " ".join(value.split())
        element.set(key, _LONG_NUMBER.sub(lambda match: f"{float(match[0]):.2f}", value))
        if key in ("fill", "stroke") and value == _BLACK:
            element.set(key, "currentColor")


def _rename_identifiers(root: Any, name: str) -> None:
    """Remove identifiers that are not referred to, and rename the others to `name` and a number, in place."""
    used = set()  # identifiers in url(#identifier) of any attribute, or in href="#identifier"
    for element in root.iter():
        for value in element.attrib.values():
            used.update(_REFERENCE.findall(value))
        if "href" in element.attrib:
            used.add(element.attrib["href"].removeprefix("#"))
    renamed: dict[str, str] = {}
    for element in root.iter():
        identifier = element.attrib.pop("id", None)
        if identifier in used:
            renamed.setdefault(identifier, f"{name}-{len(renamed)}")
            element.set("id", renamed[identifier])
    for element in root.iter():
        for key, value in element.attrib.items():
            element.set(key, _REFERENCE.sub(lambda match: f"url(#{renamed[match[1]]})", value))
        if "href" in element.attrib:
            element.set("href", f"#{renamed[element.attrib['href'].removeprefix('#')]}")
