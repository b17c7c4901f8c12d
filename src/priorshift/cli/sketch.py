"""Work that was interrupted: kept beside the wanted file, and gone on from when the same command is given again.

What is kept is a sketch of the first rows, with the settings and the files, as they were, that it is of. It is never
thrown away for another command: what does not fit is refused.

`priorshift sketch`: a sample of any size as a small file, which merges and travels; the rows stay where they are."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from priorshift.cli.inputs import standard_input
from priorshift.cli.output import check_writable, print_json
from priorshift.errors import InputError
from priorshift.io.chunks import refuse_twice
from priorshift.io.header_fields import Fields
from priorshift.sketch import Histogram, ScoreModel, Sketch, container, load
from priorshift.sketch.private import release
from priorshift.sketch.row_reader import open_chunks

_SECONDS = 30.0  # between two times that it is kept

Made = Sketch | Histogram


def files_as_they_are(files: Sequence[Path]) -> list[list[Any]]:
    """Path, size and time of each, by which it is seen whether one has changed."""
    told = [(file.resolve(), file.stat()) for file in files]
    return [[str(path), about.st_size, about.st_mtime_ns] for path, about in told]


@dataclass(frozen=True)
class Unfinished:
    """Where work is kept, and what it is of."""

    path: str
    files: list[list[Any]]  # none where rows come through a pipe, which cannot be gone on with
    settings: dict[str, Any]  # None where one was not given
    load: Callable[[dict[str, Any], dict[str, Any]], Made]

    def resume(self) -> Made | None:
        """What was kept of the same work, which stderr is told of; None where nothing was."""
        if not os.path.lexists(self.path):
            return None
        try:
            found = container.read(self.path, [container.CHECKPOINT])
        except InputError as error:
            why = str(error).split(";")[0]
            raise InputError(
                f"{why}; unfinished work is kept there, so move it away, or name another --output."
            ) from None
        fields = Fields(found.header, "files settings made", f"unfinished work in {self.path}")
        if other := self._difference(fields.source):
            raise InputError(
                f"{self.path} holds unfinished work of another command ({other}); give that one again to go on with "
                "it, or remove the file to begin anew."
            )
        made = self.load(fields.source["made"], found.arrays)
        print(f"priorshift: going on after {len(made):,} rows, which {self.path} has kept.", file=sys.stderr)
        return made

    def finish(self, growing: Iterator[Made], before: Made | None) -> Made:
        """The whole, from what was made before on; what is made is kept every now and then."""
        made, kept = before, time.monotonic()
        try:
            for made in growing:
                if self.files and time.monotonic() - kept >= _SECONDS:
                    self._keep(made)
                    kept = time.monotonic()
        except KeyboardInterrupt:
            if made is None or not self.files:
                raise
            self._keep(made)
            raise KeyboardInterrupt(
                f"interrupted after {len(made):,} rows, which {self.path} keeps; give the same command again to go on."
            ) from None
        if made is None:
            raise InputError("there are no rows; pass files that have some.")  # which reading them says before
        return made

    def remove(self) -> None:
        """Leave nothing behind, once the wanted file is there."""
        Path(self.path).unlink(missing_ok=True)

    def _keep(self, made: Made) -> None:
        header, arrays = made.to_contents()
        container.write(
            self.path, container.CHECKPOINT, {"files": self.files, "settings": self.settings, "made": header}, arrays
        )

    def _difference(self, was: dict[str, Any]) -> str | None:
        """In what other work differs from this, if it does."""
        if was["files"] != self.files:
            return "of other files, or of files that have changed since"
        if not isinstance(was["settings"], dict) or was["settings"].keys() != self.settings.keys():
            return "of another version"
        for option, value in self.settings.items():
            before = was["settings"][option]
            if before != value:
                return f"--{option.replace('_', '-')} was {'not given' if before in (None, []) else before}"
        return None


_NAME = "the sample"
_SETTINGS = ("features", "bandwidth", "kernel", "standardize", "random_state")


def run(args: argparse.Namespace) -> None:
    """Write a sketch, a histogram or a score model."""
    check_writable("--output", args.output, [*args.files, args.like, args.positive, args.unlabeled])
    if (args.epsilon is None) != (args.delta is None):
        raise InputError("--epsilon and --delta say together how private a release is; pass both, or none.")
    if args.positive or args.unlabeled:
        _run_model(args)
        return
    if not args.files:
        raise InputError("name the files of a sample, or pass --positive and --unlabeled to make a score model.")
    check_writable("--output", _part(args), [*args.files, args.like])
    saved = [file for file in args.files if container.is_saved(file)]
    if saved and len(saved) < len(args.files):
        raise InputError(f"{saved[0]} is a sketch and others are tables; add up sketches, or sketch tables.")
    made = _added_up(args) if saved else _made(args)
    print(f"priorshift: {made}, written to {args.output}.", file=sys.stderr)
    print_json({
        "kind": "sketch" if isinstance(made, Sketch) else "histogram",
        "rows": len(made),
        **(_about(made) if isinstance(made, Sketch) else {"model": made.model}),
        "path": args.output,
    })  # fmt: skip


def _run_model(args: argparse.Namespace) -> None:
    """Fit a score model to the source."""
    if not (args.positive and args.unlabeled) or args.files:
        raise InputError("a score model is made of --positive and --unlabeled alone; pass both, and no other file.")
    for option in ("like", "weight_column", "epsilon", "features", "kernel", "bandwidth"):
        if getattr(args, option, None) is not None:
            raise InputError(f"--{option.replace('_', '-')} has no meaning for a score model; leave it out.")
    settings = {name: value for name in ("standardize", "random_state") if (value := getattr(args, name)) is not None}
    made = ScoreModel.fit(args.positive, args.unlabeled, drop=args.drop, **settings)
    made.save(args.output)
    print(f"priorshift: {made}, written to {args.output}.", file=sys.stderr)
    print_json({"kind": "score model", "model": made.fingerprint, "path": args.output})


def _about(sketch: Sketch) -> dict[str, Any]:
    columns = sketch.columns
    return {
        "columns": sketch.design.reader.width if columns is None else list(columns),
        "features": sketch.features,
        "kernel": sketch.kernel,
        "bandwidth": sketch.bandwidth,
    }


def _part(args: argparse.Namespace) -> str:
    return f"{args.output}.part"


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of a first sketch that the user gave."""
    made = {name: value for name in _SETTINGS if (value := getattr(args, name)) is not None}
    return made | ({"drop": tuple(args.drop)} if args.drop else {})


def _refuse_settings(args: argparse.Namespace, why: str) -> None:
    for name in _given(args):
        option = "--no-standardize" if name == "standardize" else f"--{name.replace('_', '-')}"
        raise InputError(f"{option} is a setting of the first sketch, but {why}; leave it out.")


def _added_up(args: argparse.Namespace) -> Made:
    """Sketches, or histograms, of parts of a sample as one."""
    _refuse_settings(args, "sketches that are added up have theirs")
    for option, value in (("--like", args.like), ("--weight-column", args.weight_column)):
        if value is not None:
            raise InputError(f"{option} has no meaning where sketches are added up; leave it out.")
    refuse_twice(args.files, _NAME)
    parts: list[Any] = [load(file) for file in args.files]
    for file, part in zip(args.files, parts, strict=True):
        if isinstance(part, ScoreModel):
            raise InputError(f"{file} holds a score model, which is of no sample; pass it as --like, with tables.")
    return _saved(reduce(lambda one, other: one.merge(other), parts), args)


def _made(args: argparse.Namespace) -> Made:
    """The sketch, or the histogram, of tables; it goes on where it was interrupted."""
    like = _like(args)
    reader = None if like is None else like.design.reader if isinstance(like, Sketch) else like.reader
    if args.weight_column in args.drop:
        raise InputError(
            f"--weight-column and --drop name the same column, {args.weight_column!r}; it must be one of them."
        )
    drop = tuple(args.drop) if reader is None else reader.drop
    batches = open_chunks(_source(args.files), drop, args.weight_column, _NAME)
    settings = {name: getattr(args, name) for name in (*_SETTINGS, "drop", "weight_column")}
    settings["like"] = None if like is None else _fingerprint(like)
    load_part: Any = Histogram.from_contents if isinstance(like, ScoreModel) else Sketch.from_contents
    unfinished = Unfinished(_part(args), files_as_they_are(batches.files), settings, load_part)
    before: Any = unfinished.resume()
    growing: Iterator[Made]
    if isinstance(like, ScoreModel):
        growing = Histogram.checkpoints(batches, model=like, resume=before)
    else:
        growing = Sketch.checkpoints(batches, like=like, weights=args.weight_column, resume=before, **_given(args))
    made = _saved(unfinished.finish(growing, before), args)
    unfinished.remove()
    return made


def _saved(made: Made, args: argparse.Namespace) -> Made:
    """What was made, in its file; of a private release nothing else ever stands there."""
    if args.epsilon is not None:
        made = release(made, args.epsilon, args.delta)
    made.save(args.output)
    return made


def _like(args: argparse.Namespace) -> Sketch | ScoreModel | None:
    if args.like is None:
        return None
    like = load(args.like)
    _refuse_settings(args, "--like has its own")
    if isinstance(like, Histogram):
        raise InputError(
            f"--like {args.like} holds a histogram, which lacks the model that it was made by; pass the model."
        )
    if isinstance(like, ScoreModel) and args.weight_column:
        raise InputError("--weight-column has no meaning beside a score model, which counts rows; leave it out.")
    return like


def _fingerprint(like: Sketch | ScoreModel) -> str:
    return like.design.fingerprint if isinstance(like, Sketch) else like.fingerprint


def _source(files: list[str]) -> Any:
    if "-" not in files:
        return files
    if len(files) > 1:
        raise InputError("standard input (-) stands beside other files; pass it alone, or pass files.")
    return standard_input("FILE")
