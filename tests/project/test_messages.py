"""The form of all messages: errors and warnings say in plain English what was received, expected, and what to do."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "priorshift"
RAISED = {"InputError", "InputTypeError", "MissingExtraError", "UsageError"}
DIALECT = (
    "told", "tells", "heed", "mend", "mended", "beside", "overheard", "unsaid", "alike", "so many", "worth", "stands",
    "whatever its name says", "made of it", "write it so", "nothing was", "cannot be had", "was asked of",
)  # fmt: skip
LONGEST = 90  # words


def template(node):
    """Return the text of a literal with {} for every expression in it; None if the message is built elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = template(node.left), template(node.right)
        return None if None in parts else "".join(parts)
    return None


def messages():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                is_message = node.func.id in RAISED or (node.func.id == "warn" and len(node.args) == 2)
                text = template(node.args[0]) if is_message else None
                if text is not None and text != "{}":
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno}", text


MESSAGES = dict(messages())


def test_the_catalogue_has_the_messages_of_the_package():
    assert len(MESSAGES) > 250
    assert any("strictly between 0 and 1" in text for text in MESSAGES.values())


@pytest.mark.parametrize("where", MESSAGES)
def test_a_message_is_sentences_without_dialect(where):
    text = MESSAGES[where]
    assert text.rstrip().endswith((".", "?", ")", "{}")), "a message ends with a full stop"
    assert "  " not in text and "\n" not in text
    assert len(text.split()) <= LONGEST
    found = [word for word in DIALECT if re.search(rf"\b{word}\b", text)]
    assert not found, f"words to replace: {found}"


@pytest.mark.parametrize("where", MESSAGES)
def test_a_message_says_what_to_do_or_what_is_expected(where):
    text = MESSAGES[where]
    has_remedy = re.search(r"[;:.?] \S|must|expected|needed|\b(use|pass|choose|name)\b|\{\}\.?$", text, re.IGNORECASE)
    assert has_remedy, "a message names a remedy, or what is expected"
