"""Start-up: nothing heavy is loaded before it is needed, and Ctrl-C at any moment ends with one line."""

import inspect
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import priorshift as ps
from priorshift.cli.options import METHODS, OPTIONS, SETTINGS
from priorshift.cli.parser import parser
from priorshift.inference import intervals
from priorshift.io.parameters import RULES
from priorshift.kernels.kernel import KERNELS
from priorshift.methods import registry

HEAVY = ["numpy", "scipy", "sklearn", "pyarrow", "torch", "pandas", "narwhals", "matplotlib", "joblib", "starlette"]
PROGRAM = "import sys; from priorshift.cli import main; sys.exit(main())"
LIGHT = [
    "",
    "--version",
    "--help",
    *(f"{name} --help" for name in parser().commands if name != "experiment"),
    "estimat",
]


def python(code, *words):
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)


@pytest.mark.parametrize("words", LIGHT)
def test_help_version_and_misspelt_commands_load_nothing_heavy(words):
    code = (
        "import atexit, sys; from priorshift.cli import main\n"
        f"atexit.register(lambda: print('loaded:', *[m for m in {HEAVY} if m in sys.modules], file=sys.stderr))\n"
        "sys.exit(main())"
    )
    assert python(code, *words.split()).stderr.endswith("loaded:\n")


def test_import_loads_nothing_heavy_until_a_name_is_used():
    code = f"import sys, priorshift as ps; print([m for m in {HEAVY} if m in sys.modules]); ps.TCPU; ps.errors; ps.diagnose"
    ended = python(code)
    assert ended.stdout == "[]\n" and ended.returncode == 0


def test_start_takes_less_time_than_importing_numpy():
    """CPU seconds in the same run: about 0.02 to 0.05 of ours for 0.1 of numpy's."""

    def seconds(code, *words):
        code = f"import atexit, os, time\natexit.register(lambda: os.write(2, b'%f' % time.process_time()))\n{code}"
        return min(float(re.search(r"[\d.]+$", python(code, *words).stderr)[0]) for _ in range(3))

    numpy = seconds("import numpy")
    assert seconds("import priorshift") < numpy
    assert seconds(PROGRAM, "--version") < numpy
    assert seconds(PROGRAM, "estimate", "--help") < 1.5 * numpy


# ---- the static description of options agrees with the estimators


def test_methods_and_choices_are_those_of_the_library():
    assert registry.names() == METHODS == OPTIONS["--method"]["choices"]
    assert OPTIONS["--kernel"]["choices"] == KERNELS
    assert OPTIONS["--interval"]["choices"] == intervals.METHODS
    for name in ("scenario", "statistic"):
        choices = OPTIONS[f"--{name}"]["choices"]
        assert RULES[name][1] == f"one of {', '.join(map(repr, choices))}"


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_parameters_of_the_methods_with_their_defaults(name):
    takers = [method for method in registry.METHODS if name in method.options]
    assert takers
    option = OPTIONS.get(f"--{name.replace('_', '-')}") or OPTIONS["--no-standardize"]
    defaults = {inspect.signature(method.estimator).parameters[name].default for method in takers} - {None, True}
    for default in defaults:
        assert re.search(rf"default: {default}\b|{default} \(default\)", option["help"]), option["help"]
    if len(takers) == 1:
        assert f"--method {takers[0].name}" in option["help"]


def test_limits_in_the_help_of_the_app_are_its_defaults():
    limits = pytest.importorskip("priorshift.app.uploads").Limits()
    shown = {option.dest: option.help for option in parser().commands["app"].options}
    for dest, value in (("max_rows", limits.rows), ("max_bytes", limits.bytes), ("time_limit", limits.seconds)):
        assert f"(default: {value:,})" in shown[dest] or f"(default: {value:g})" in shown[dest]


# ---- Ctrl-C

AT_IMPORT = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from priorshift.cli import main
sys.exit(main())
"""


@pytest.fixture
def tables(tmp_path):
    s = ps.simulate.gaussian(0.2, 0.6, 400, 400, dimension=2, shared=False, random_state=0)
    words = []
    for name in ("positive", "unlabeled", "target"):
        lines = ["a,b", *(",".join(map(str, row)) for row in getattr(s, name).tolist())]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        words += [f"--{name}", str(tmp_path / f"{name}.csv")]
    return words


def interrupted(code, err):
    return code == 130 and re.fullmatch(r"priorshift: interrupted; no file was written\.\n", err)


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX signals")
@pytest.mark.parametrize(
    "module",
    ["priorshift.cli.streams", "argparse", "priorshift.cli.parser", "textwrap", "priorshift.cli.output", "numpy", "numpy.linalg",
     "numpy.random.mtrand", "scipy.special", "sklearn.base", "priorshift.cli.estimate", "narwhals"],
)  # fmt: skip
def test_an_interrupt_during_imports_ends_with_one_line(module, tables):
    ended = python(AT_IMPORT.format(module=module), "estimate", *tables, "--source-prior", "0.2")
    assert interrupted(ended.returncode, ended.stderr) and ended.stdout == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX signals")
@pytest.mark.parametrize("module", ["matplotlib.figure", "matplotlib.backends.backend_agg"])
def test_an_interrupt_while_the_work_loads_a_library_ends_with_one_line(module, tables, tmp_path):
    picture = tmp_path / "p.png"
    words = [*tables, "--source-prior", "0.2", "--json", "--plot", str(picture)]
    ended = python(AT_IMPORT.format(module=module), "estimate", *words)
    assert interrupted(ended.returncode, ended.stderr) and not picture.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX signals")
@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5, 1.0, 1.5])
def test_an_interrupt_after_some_time_ends_with_one_line_or_comes_too_late(delay, tables):
    """Whatever runs by then; the program says first that it has begun."""
    code = "import os, sys; from priorshift.cli import main; os.write(1, b'.'); sys.exit(main())"
    words = [sys.executable, "-c", code, "estimate", *tables]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert process.stdout.read(1) == "."
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    last = err.splitlines()[-1:] or [""]
    assert (process.returncode == 130 and last[0].startswith("priorshift: interrupted")) or out.startswith(
        "target prior"
    )
