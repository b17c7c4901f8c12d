"""A picture as SVG inside a page: light or dark, wide or narrow, alone or one of many, under a strict policy."""

from __future__ import annotations

import re
import warnings
from io import BytesIO
from threading import Lock
from typing import Any

from priorshift.errors import InputError
from priorshift.plots.display import Display, missing, shown

_DRAWING = Lock()  # matplotlib's settings are one for all threads
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "priorshift", "font.size": 10.0}
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_NAME = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_LONG = re.compile(r"-?\d+\.\d{3,}")
_LEFT_OUT = {f"{_SVG}metadata", f"{_SVG}style"}
_INK = "#000000"


def svg(display: Display, *, name: str) -> str:
    """Draw a picture as SVG that can stand inside a page of HTML.

    Ink is the page's text colour, the background is that of the page, and the picture is as wide as what holds it. A
    title and a text alternative are inside. It has no style, no script and no identifier but those that begin with
    `name`; the same numbers give the same text. Nothing of matplotlib's state is changed.

    Parameters
    ----------
    display : Display
        The picture.
    name : str
        What its identifiers begin with: letters, digits, "-" and "_"; another one for each picture of a page.

    Returns
    -------
    str
        One element.

    Examples
    --------
    >>> from priorshift import plots
    >>> display = plots.DriversDisplay(("age", "<b>"), (0.7, 0.2), (1.1, -0.4))
    >>> text = plots.svg(display, name="drivers")
    >>> text[:4], "<title id=\\"drivers-title\\">What tells the positives apart</title>" in text, "&lt;b&gt;" in text
    ('<svg', True, True)
    """
    if not isinstance(display, Display):
        raise InputError(f"display is {type(display).__name__}, but pictures are Displays, as displays_of gives them.")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InputError(f"name is {name!r}, but it begins identifiers of a page; pass letters, digits, '-' and '_'.")
    from xml.etree import ElementTree  # here, since it makes every import of the library slower

    root = ElementTree.fromstring(_drawn(display))
    _clean(root)
    _rename(root, name)
    of_title, of_text = f"{name}-title", f"{name}-desc"
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({
        "xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "width": "100%", "role": "img",
        "aria-labelledby": of_title, "aria-describedby": of_text, "font-family": "system-ui, sans-serif",
        "fill": "currentColor", "stroke-linejoin": "round",
    })  # fmt: skip
    for place, (tag, identifier, text) in enumerate(
        (("title", of_title, display.title), ("desc", of_text, display.description))
    ):
        said = ElementTree.Element(tag, {"id": identifier})
        said.text = shown(text, letters=None)
        root.insert(place, said)
    return ElementTree.tostring(root, encoding="unicode")


def _drawn(display: Display) -> bytes:
    """What matplotlib makes of it, as if nobody had changed its settings."""
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        raise missing() from None
    made = BytesIO()
    with _DRAWING, style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # the page has other fonts, with more letters
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        warnings.filterwarnings("ignore", "Matplotlib currently does not support .* natively", UserWarning)
        figure = Figure(figsize=display.size, layout="constrained")
        display.draw(display.axes_of(figure))
        figure.savefig(made, format="svg", transparent=True, metadata={"Date": None})
    return made.getvalue()


def _clean(element: Any) -> None:
    """Styles become attributes, black becomes the ink of the page; what a page does not need is left out."""
    for child in list(element):
        if child.tag in _LEFT_OUT:
            element.remove(child)
            continue
        _clean(child)
        empty = child.tag in ("g", "defs") and not len(child)
        if empty or (child.tag == "path" and not child.attrib.get("d")):  # of numbers that do not exist
            element.remove(child)
    element.tag = element.tag.removeprefix(_SVG)
    style = element.attrib.pop("style", "")
    for property_, _, value in (part.partition(":") for part in style.split(";") if part.strip()):
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
        element.set(key, _LONG.sub(lambda found: f"{float(found[0]):.2f}", value))
        if key in ("fill", "stroke") and value == _INK:
            element.set(key, "currentColor")


def _rename(root: Any, name: str) -> None:
    """Only identifiers that something refers to stay, under the picture's name."""
    used = {found for e in root.iter() for value in e.attrib.values() for found in _REFERENCE.findall(value)}
    used |= {e.attrib["href"][1:] for e in root.iter() if "href" in e.attrib}
    new: dict[str, str] = {}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in used:
            new.setdefault(old, f"{name}-{len(new)}")
            element.set("id", new[old])
    for element in root.iter():
        for key, value in element.attrib.items():
            element.set(key, _REFERENCE.sub(lambda found: f"url(#{new[found[1]]})", value))
        if "href" in element.attrib:
            element.set("href", f"#{new[element.attrib['href'][1:]]}")
