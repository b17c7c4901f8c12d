"""Estimators of the source prior side by side: ours and those that users would otherwise take, on the same draws.

    PRIORSHIFT_DATA=FOLDER OMP_NUM_THREADS=1 python benchmarks/peers.py run [--sets …] [--draws 1] [--peers …]
    python benchmarks/peers.py table

Each line of benchmarks/results/peers.jsonl is one peer's answer to one draw; what is there is not run again. The draws
are described in benchmarks/peers/draws.py, each peer and its settings, its authors' own, in a file of that folder.
Peers that are installed come with the extra `peers`; a peer that is not there is left out, and said. A peer has 60
seconds for an answer; more, or an exception, is a failure, and counted. Seconds are the processor's, of one thread, so
that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for what is beside this folder

from benchmarks.peers import PEERS  # noqa: E402
from benchmarks.peers.draws import ROUNDS, SETS, grid  # noqa: E402
from benchmarks.peers.tables import tables  # noqa: E402
from benchmarks.peers.timed import TimedWorker  # noqa: E402
from experiments.store import Store, read_lines  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "peers.jsonl"


def run(path: Path, sets: tuple[str, ...], draws: int, peers: tuple[str, ...], processes: int = 1) -> int:
    """Make the lines that are missing; how many were made."""
    with Store(path) as store:
        done = {_key(line) for line in store.lines}
        asked = [(draw, peer) for draw in grid(sets, draws) for peer in peers]
        missing = [(draw, peer) for draw, peer in asked if _key({**asdict(draw), "peer": peer}) not in done]
        left, lock = iter(missing), Lock()

        def _work() -> None:
            worker = TimedWorker()
            try:
                while True:
                    with lock:
                        draw, peer = next(left, (None, ""))
                    if draw is None:
                        return
                    line = {"experiment": "peers", **asdict(draw), "peer": peer, **worker.ask(draw, peer)}
                    with lock:
                        store.append([line])
                        print(" ".join(f"{key}={value}" for key, value in line.items()), flush=True)
            finally:
                worker.stop()

        with ThreadPoolExecutor(processes) as pool:
            for work in [pool.submit(_work) for _ in range(processes)]:
                work.result()
    return len(missing)


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("dataset", "source_prior", "labels", "seed", "peer"))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("run", "table"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET", help=", ".join(SETS))
    parser.add_argument("--draws", type=int, default=ROUNDS, help="rounds; each has many labels once, and few once")
    parser.add_argument(
        "--peers", nargs="+", choices=PEERS, default=tuple(PEERS), metavar="PEER", help=", ".join(PEERS)
    )
    parser.add_argument("--processes", type=int, default=1, help="side by side")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args(arguments)
    if args.task == "table":
        print(tables(read_lines(args.results)), end="")
        return
    there = tuple(peer for peer in args.peers if PEERS[peer].installed)
    for peer in sorted(set(args.peers) - set(there)):
        print(f"{peer} is left out: it needs {PEERS[peer].package}, of the extra peers", file=sys.stderr)
    run(args.results, tuple(args.sets), args.draws, there, args.processes)


if __name__ == "__main__":
    main()
