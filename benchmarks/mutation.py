"""Count how many random bugs the tests catch.

    python benchmarks/mutation.py [--seed 0] [--count 40] [--root FOLDER] [--tests PATH ...] [--ignore PATH ...]

Each mutant is a copy of the repository with one small change in a function of src. The suite runs once to learn which
tests reach the chosen functions. Then each mutant runs the tests that reach its function, cheapest files first, until
one fails, hangs or the time is over. A failure counts only if it can be repeated and the original code passes. Code
for GPUs, strings, annotations and raise statements are not mutated. Results are written to a CSV file.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, fields
from itertools import accumulate, permutations, repeat
from pathlib import Path
from statistics import fmean
from typing import Any

_PAIRS = ["Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "Add Sub", "Mult Div", "And Or"]
SWAPS = {getattr(ast, a): getattr(ast, b) for pair in _PAIRS for a, b in permutations(pair.split())}
NEGATIONS = (ast.Not, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass
class Mutant:
    """One change of one file, and its outcome."""

    file: str
    function: str
    line: int
    kind: str
    before: str
    after: str
    span: tuple[int, int]  # bytes of the file that are replaced
    entry: int  # byte at which the body of the function starts
    outcome: str = "not reached"
    test: str = ""
    tests_run: int = 0
    tests_reaching: int = 0


def walk(node: ast.AST, scope: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the nodes that may be mutated, each with the classes and functions around it."""
    children = list(ast.iter_child_nodes(node))
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():  # without decorators, defaults, annotations
            scope, children = (*scope, node), list(node.body)
        case ast.AnnAssign():
            children = [node.value] if node.value else []
        case ast.Slice():  # whose constants are mutated as bounds
            children = [child for child in children if not isinstance(child, ast.Constant)]
    yield node, scope
    for child in children:
        yield from walk(child, scope)


def changes(node: ast.AST) -> Iterator[tuple[Any, str, ast.AST]]:
    """Yield the mutations of a node: what is replaced, the kind of mutation, the replacement."""
    match node:
        case ast.Compare(ops=ops):
            for k, op in enumerate(ops):
                swapped = [*ops[:k], SWAPS[type(op)](), *ops[k + 1 :]]
                yield node, "comparison", ast.Compare(node.left, swapped, node.comparators)
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            yield node, "operator", type(node)(**vars(node) | {"op": SWAPS[type(op)]()})
        case ast.UnaryOp(op=ast.Not()):
            yield node, "not", node.operand
        case ast.Constant(value=value) if type(value) in (int, float):
            yield node, "constant", ast.Constant(value + 1 if isinstance(value, int) else 2 * value or 1.0)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in EXTREMES:
            field = "id" if isinstance(node.func, ast.Name) else "attr"
            yield node.func, "min/max", type(node.func)(**vars(node.func) | {field: EXTREMES[name]})
        case ast.Expr(value=ast.Call()):
            yield node, "deleted call", ast.Pass()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield node, "return", ast.Return(ast.Constant(None))
        case ast.Slice():
            for bound in filter(None, (node.lower, node.upper)):
                yield bound, "slice", ast.BinOp(bound, ast.Add(), ast.Constant(1))
        case ast.If(test=test) | ast.IfExp(test=test):
            ops = getattr(test, "ops", [getattr(test, "op", None)])
            if len(ops) > 1 or not isinstance(ops[0], NEGATIONS):  # those are mutants already
                yield test, "condition", ast.UnaryOp(ast.Not(), test)


def mutants_of(file: str, source: bytes) -> Iterator[Mutant]:
    """Yield every mutant of one file."""
    starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    for node, scope in walk(ast.parse(source)):
        functions = [part for part in scope if not isinstance(part, ast.ClassDef)]
        for old, kind, new in changes(node) if functions else ():
            after = f"({ast.unparse(new)})" if isinstance(new, ast.expr) else ast.unparse(new)
            span = starts[old.lineno - 1] + old.col_offset, starts[old.end_lineno - 1] + old.end_col_offset
            first = functions[-1].body[ast.get_docstring(functions[-1]) is not None]
            line = min(part.lineno for part in [first, *getattr(first, "decorator_list", [])])
            name, entry = ".".join(part.name for part in scope), starts[line - 1] + first.col_offset
            yield Mutant(file, name, old.lineno, kind, ast.unparse(old), after, span, entry)


def draw(root: Path, count: int, seed: int, skip: str) -> list[Mutant]:
    """Draw mutants uniformly over all sites."""
    files = [path.relative_to(root).as_posix() for path in sorted(root.glob("src/**/*.py"))]
    sites = [m for file in files for m in mutants_of(file, (root / file).read_bytes())]
    sites = [m for m in sites if not re.search(skip, f"{m.file} {m.function} {m.before}", re.IGNORECASE)]
    print(f"{len(sites)} sites in {len(files)} files", flush=True)
    return random.Random(seed).sample(sites, min(count, len(sites)))


def file_of(test: str) -> str:
    return test.split("::")[0]


def start_pytest(tree: Path, log: Path, arguments: list[str], **options: Path) -> subprocess.Popen[bytes]:
    """Start pytest in a copy of the repository, with options of the plugin."""
    environment = os.environ | {f"MUTATION_{name.upper()}": str(value) for name, value in options.items()}
    environment |= {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutation_plugin", *arguments]
    with log.open("wb") as out:
        return subprocess.Popen(command, cwd=tree, env=environment, stdout=out, stderr=out, start_new_session=True)


def reach(tree: Path, folder: Path, mutants: list[Mutant], arguments: list[str]) -> list[dict[str, float]]:
    """Run the suite on an instrumented copy: the tests that reach each mutant, with their seconds."""
    log, reports = folder / "reached", folder / "reports"
    for number, mutant in sorted(enumerate(mutants), key=lambda pair: -pair[1].entry):
        source, entry = (tree / mutant.file).read_bytes(), mutant.entry
        indent = source[source.rfind(b"\n", 0, entry) + 1 : entry]
        call = f'__import__("mutation_plugin").reached({number})'.encode()
        call += b"; " if indent.strip() else b"\n" + indent
        (tree / mutant.file).write_bytes(source[:entry] + call + source[entry:])
    if (code := start_pytest(tree, folder / "suite.log", arguments, reached=log, reports=reports).wait()) not in (0, 1):
        sys.exit(f"pytest ended with code {code}:\n{(folder / 'suite.log').read_text()[-3000:]}")
    seconds, unusable = defaultdict(float), set()
    for test, outcome, duration in map(json.loads, reports.read_text().splitlines()):
        seconds[test] += duration
        unusable |= {test} if outcome != "passed" else set()
    print(f"{len(seconds)} tests, {len(unusable)} of which failed or were skipped on the instrumented copy", flush=True)
    found: list[dict[str, float]] = [{} for _ in mutants]
    for number, context in map(json.loads, log.read_text().splitlines()):
        test, _, phase = context.rpartition(" (")
        shared = phase == "setup)"  # by a fixture or a constant that other tests of the file may use
        same = {other for other in seconds if file_of(other) == file_of(test)} if shared else {test} & set(seconds)
        found[number] |= {other: seconds[other] for other in same - unusable}
    return found


def cpu_seconds(process: int) -> float:
    """Return the time of a process and its finished children, which does not depend on the load of the machine."""
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def run(tree: Path, log: Path, limits: dict[str, float], budget: float) -> tuple[str, list[str]]:
    """Run tests, file by file, until one fails or exceeds its limit: the outcome, and the tests that were started."""
    started, selection, begin, outcome = log.with_suffix(".started"), log.with_suffix(".json"), time.time(), ""
    started.write_text("")
    selection.write_text(json.dumps(list(limits)))
    files = dict.fromkeys(map(file_of, limits))
    process = start_pytest(tree, log, ["-x", *files], selection=selection, started=started)
    while not outcome and process.poll() is None:
        time.sleep(0.1)
        tests = started.read_text().splitlines()
        if tests and time.time() - started.stat().st_mtime > limits[tests[-1]]:
            outcome = "caught"
        elif max(cpu_seconds(process.pid), (time.time() - begin) / 20) > budget:
            outcome = "out of time"
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    codes = {0: "survived", 5: "survived", -signal.SIGKILL: "killed"}  # 5: no tests were collected
    return outcome or codes.get(process.wait(), "caught"), started.read_text().splitlines()


def judge(mutant: Mutant, reaching: dict[str, float], original: Path, tree: Path, budget: float) -> None:
    """Run the tests that reach a mutant, and set its outcome."""
    if not reaching:
        return
    mutant.tests_reaching, log, files = len(reaching), tree.with_suffix(".log"), set(map(file_of, reaching))
    costs = {file: [cost for test, cost in reaching.items() if file_of(test) == file] for file in files}
    order = sorted(reaching, key=lambda test: (fmean(costs[file_of(test)]), file_of(test)))
    limits = {test: 60 + 10 * max(costs[file_of(test)]) for test in order}
    shutil.copytree(original, tree)
    source = (tree / mutant.file).read_bytes()
    source = source[: mutant.span[0]] + mutant.after.encode() + source[mutant.span[1] :]
    compile(source, mutant.file, "exec")
    (tree / mutant.file).write_bytes(source)
    while limits:  # again only after a failure that is not due to the mutation
        mutant.outcome, started = run(tree, log, limits, budget)
        mutant.tests_run += len(started)
        mutant.test = (started or ["collection"])[-1] if mutant.outcome == "caught" else ""
        same = {test: limits.pop(test) for test in started if file_of(test) == file_of(mutant.test)}
        if not same or [run(code, log, same, budget)[0] for code in (original, tree)] == ["survived", "caught"]:
            break
        mutant.outcome, mutant.test, limits = "survived", "", {t: limits[t] for t in limits if t not in started}
    shutil.rmtree(tree)
    print(f"{mutant.outcome:12}{mutant.file}:{mutant.line} {mutant.before} -> {mutant.after} {mutant.test}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="repository to mutate")
    parser.add_argument("--count", type=int, default=40, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw of mutants")
    parser.add_argument("--skip", default="cuda|fused|triton|gpu", help="pattern of code that is not mutated")
    parser.add_argument("--tests", nargs="*", default=[], help="paths of tests; default: those of pyproject.toml")
    parser.add_argument("--ignore", nargs="*", default=[], help="paths of tests to leave out")
    parser.add_argument("--seconds", type=float, default=150, help="CPU time for each mutant")
    parser.add_argument("--parallel", type=int, default=1, help="number of mutants at a time")
    parser.add_argument("--output", type=Path, default=Path("mutants.csv"), help="file of results")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(args.parallel) as pool:
        folder, original = Path(temporary), Path(temporary, "original")
        shutil.copytree(args.root, original, ignore=shutil.ignore_patterns(".*", "__pycache__", "_build", "dist"))
        compileall.compile_dir(original / "src", quiet=1)
        mutants = draw(original, args.count, args.seed, args.skip)
        shutil.copy(Path(__file__).with_name("mutation_plugin.py"), original / "src")
        suite = ["-n", "2", "--dist", "loadfile", *(f"--ignore={path}" for path in args.ignore), *args.tests]
        reaching = reach(shutil.copytree(original, folder / "instrumented"), folder, mutants, suite)
        trees = [folder / f"mutant{number}" for number in range(len(mutants))]
        list(pool.map(judge, mutants, reaching, repeat(original), trees, repeat(args.seconds)))
    with args.output.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([[column.name for column in fields(Mutant)], *map(astuple, mutants)])
    counts = Counter(mutant.outcome for mutant in mutants)
    print(f"{len(mutants)} mutants of seed {args.seed}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))


if __name__ == "__main__":
    main()
