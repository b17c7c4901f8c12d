"""The command line: ``main`` is what the ``priorshift`` program runs.

It imports next to nothing itself, so that ``--version`` and ``--help`` are fast and Ctrl-C is answered at any moment.
Results go to stdout, in JSON with ``--json``; warnings and errors go to stderr.
"""

import os
import signal
import sys

INTERRUPTED = "interrupted; no file was written."


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit code: 0, 2 for wrong use or unusable data, 3 by --fail-on, 130 if interrupted.

    `arguments` are the words of the command line; None takes those of this process, which is then the program.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        prepare_program()
    from priorshift.cli.streams import print_error, print_last

    if words == ["--version"]:
        from priorshift.version import __version__

        return print_last(f"priorshift {__version__}\n")
    from priorshift.cli.parser import parse

    try:
        args = parse(words)
    except SystemExit as ended:  # --help and wrong use end here, before numpy is loaded
        print_error(end="")
        raise SystemExit(ended.code or print_last()) from None
    from priorshift.cli.output import run_command

    return run_command(args, as_program=arguments is None)


def prepare_program() -> None:
    """Prepare this process to be a program: Ctrl-C ends it with one line, and printing never ends in a traceback."""
    signal.signal(signal.SIGINT, _exit_at_once)
    from priorshift.cli.streams import prepare_streams

    prepare_streams()


def _exit_at_once(number: int, frame: object) -> None:
    """Handle the signal of Ctrl-C before any work has begun: end the process.

    An exception would not do: C extensions turn any exception during their import into ImportError.
    """
    os.write(2, f"priorshift: {INTERRUPTED}\n".encode())
    os._exit(130)
