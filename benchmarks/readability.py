"""Draw functions of the package at random, for a reader who rates each as clear, so-so or cryptic.

    python benchmarks/readability.py [--seed 23] [--count 15]

Functions of at least five lines are drawn with equal probability. The source of each is printed with the module's first
docstring line, which is all that a reader of the rating gets to see.
"""

from __future__ import annotations

import argparse
import ast
import random
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "priorshift"


def functions() -> list[tuple[str, str, str]]:
    """Return the module, the first line of its docstring and the source of every function of at least five lines."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        module = ast.parse(text)
        about = (ast.get_docstring(module) or "").split("\n")[0]
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None and node.end_lineno - node.lineno >= 4:
                source = ast.get_source_segment(text, node) or ""
                found.append((f"{path.relative_to(PACKAGE)}:{node.lineno}", about, source))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--count", type=int, default=15)
    args = parser.parse_args()
    for number, (where, about, source) in enumerate(random.Random(args.seed).sample(functions(), args.count), start=1):
        print(f"# {number}. {where}: {about}\n{source}\n")


if __name__ == "__main__":
    main()
