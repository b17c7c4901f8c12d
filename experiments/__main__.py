"""Run the command line of the studies by ``python -m experiments``; Ctrl-C during its imports ends with one line."""

import signal
import sys

from priorshift.cli import prepare_program

if __name__ == "__main__":
    prepare_program()
    from experiments.command_line import main  # takes a second

    signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on, KeyboardInterrupt, which main reports
    sys.exit(main())
