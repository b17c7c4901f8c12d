"""Write a picture as SVG for a page of HTML: light or dark, wide or narrow, under a strict content policy."""

from __future__ import annotations

import re
import warnings
from io import BytesIO
from threading import Lock
from typing import Any

from priorshift.errors import InputError
from priorshift.plots.display import Display, missing_matplotlib, printable

_DRAWING = Lock()  # all threads share matplotlib's settings
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "priorshift", "font.size": 10.0}
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_NAME = re.compile(r"[A-Za-z][\w-]*", re.ASCII)
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REMOVED = {f"{_SVG}metadata", f"{_SVG}style"}
_BLACK = "#000000"


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
        raise InputError(f"display is {type(display).__name__}, but a Display is expected; see plots.displays_of.")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InputError(f"name is {name!r}, but it starts identifiers of a page; pass letters, digits, '-' and '_'.")
    from xml.etree import ElementTree  # slow to import

    root = ElementTree.fromstring(_matplotlib_svg(display))
    _clean(root)
    _rename_identifiers(root, name)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({
        "xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "width": "100%", "role": "img",
        "aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-desc",
        "font-family": "system-ui, sans-serif", "fill": "currentColor", "stroke-linejoin": "round",
    })  # fmt: skip
    for place, (tag, text) in enumerate((("title", display.title), ("desc", display.description))):
        element = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        element.text = printable(text, letters=None)
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _matplotlib_svg(display: Display) -> bytes:
    """Draw with matplotlib's default settings, whatever the user has set."""
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_matplotlib() from None
    text = BytesIO()
    with _DRAWING, style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # the page has other fonts, with more letters
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        warnings.filterwarnings("ignore", "Matplotlib currently does not support .* natively", UserWarning)
        figure = Figure(figsize=display.size, layout="constrained")
        display.draw(display.make_axes(figure))
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return text.getvalue()


def _clean(element: Any) -> None:
    """Turn styles into attributes and black into the text colour, and remove what a page does not need."""
    for child in list(element):
        if child.tag in _REMOVED:
            element.remove(child)
            continue
        _clean(child)
        empty = child.tag in ("g", "defs") and not len(child)
        if empty or (child.tag == "path" and not child.attrib.get("d")):  # drawn from NaN
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
        element.set(key, _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value))
        if key in ("fill", "stroke") and value == _BLACK:
            element.set(key, "currentColor")


def _rename_identifiers(root: Any, name: str) -> None:
    """Keep only identifiers that are referred to, and start them with the name of the picture."""
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
