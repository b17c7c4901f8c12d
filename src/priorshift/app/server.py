"""The routes: the page, files that come in, jobs, and what came of them."""

from __future__ import annotations

import json
import sys
import traceback
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from priorshift.app import example
from priorshift.app.jobs import DECISIONS, REPORT, RESULT
from priorshift.app.middleware import REPORT_POLICY, RefusedError
from priorshift.app.settings import ROLES, Settings, for_the_page
from priorshift.app.tasks import OVER, Task, Tasks
from priorshift.app.uploads import Limits, Upload, Uploads
from priorshift.errors import InputError
from priorshift.version import __version__

_PAGE = {
    "": ("index.html", "text/html"),
    "app.css": ("app.css", "text/css"),
    **{name: (name, "text/javascript") for name in ("app.js", "ask.js", "files.js", "known.js", "names.js")},
}
_RESULTS = {REPORT: "text/html", RESULT: "application/json", DECISIONS: "text/csv"}
_MOST_JSON = 4_000_000  # bytes of settings: columns may have long names


class Site:
    """What the routes share.

    Parameters
    ----------
    folder : Path
        The private one.
    limits : Limits
        What is taken on.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.limits = limits
        for name in ("files", "results"):
            (folder / name).mkdir(mode=0o700)
        self.uploads, self.tasks = Uploads(folder / "files", limits), Tasks(folder / "results", limits)

    def application(self) -> Starlette:
        """The routes, which are to be guarded."""
        routes = [
            *(Route(f"/{name}", self._page) for name in _PAGE),
            Route("/about", self._about),
            Route("/files", self._receive, methods=["PUT"]),
            Route("/files/{key}", self._drop, methods=["DELETE"]),
            Route("/example", self._example, methods=["POST"]),
            Route("/example/{name}", self._example_file),
            Route("/pages/{page}", self._leave, methods=["DELETE"]),
            Route("/tasks", self._add, methods=["POST"]),
            Route("/tasks/{key}", self._story),
            Route("/tasks/{key}", self._cancel, methods=["DELETE"]),
            Route("/tasks/{key}/report", self._report),
            Route("/tasks/{key}/{name}", self._result),
        ]
        return Starlette(routes=routes, exception_handlers={
            RefusedError: _refused, InputError: _refused, HTTPException: _refused, ClientDisconnect: _refused,
            Exception: _refused,
        })  # fmt: skip

    def close(self) -> None:
        """End what runs."""
        self.tasks.close()

    def _in_use(self) -> set[str]:
        return self.tasks.in_use

    async def _page(self, request: Request) -> Response:
        name, kind = _PAGE[request.url.path.rpartition("/")[2]]
        return Response(files("priorshift.app").joinpath("page", name).read_bytes(), media_type=kind)

    async def _about(self, request: Request) -> Response:
        limits = self.limits
        return JSONResponse({
            "version": __version__, "rows": limits.rows, "bytes": limits.bytes, "seconds": limits.seconds,
        })  # fmt: skip

    async def _receive(self, request: Request) -> Response:
        role = request.query_params.get("role", "")
        if role not in ROLES:
            raise RefusedError(400, "It is not said which of the three files this is; reload the page.")
        told = request.headers.get("content-length", "")
        size = int(told) if told.isdecimal() and len(told) < 20 else None
        name = request.query_params.get("name", "")
        upload = await self.uploads.receive(name, request.stream(), size, self._in_use, _page_of(request))
        return JSONResponse(self._looked_at(role, upload), 201)

    def _looked_at(self, role: str, upload: Upload) -> dict[str, Any]:
        try:
            task = self.tasks.add("look", {role: _place(upload)}, {}, (upload.id,), upload.page)
        except RefusedError:
            self.uploads.drop(upload.id)
            raise
        return {"id": upload.id, "name": upload.name, "bytes": upload.bytes, "task": task.id}

    async def _drop(self, request: Request) -> Response:
        key = request.path_params["key"]
        if key in self._in_use():
            raise RefusedError(409, "A job still needs that file; cancel it first.")
        self.uploads.drop(key)
        return Response(status_code=204)

    async def _example(self, request: Request) -> Response:
        kept = {
            role: self._looked_at(role, self.uploads.keep(f"example-{role}.csv", text, self._in_use, _page_of(request)))
            for role, text in example.files().items()
        }
        return JSONResponse({"files": kept, "settings": example.SETTINGS}, 201)

    async def _example_file(self, request: Request) -> Response:
        role = request.path_params["name"].removeprefix("example-").removesuffix(".csv")
        if role not in ROLES:
            raise HTTPException(404)
        return Response(example.files()[role], media_type="text/csv", headers=_attached(f"example-{role}.csv"))

    async def _add(self, request: Request) -> Response:
        said = await _read_json(request)
        kind, keys = said.get("kind"), said.get("files")
        if kind not in ("columns", "run") or not isinstance(keys, dict) or set(keys) != set(ROLES):
            raise RefusedError(400, "Three files are needed; choose them all.")
        uploads = {role: self.uploads[str(keys[role])] for role in ROLES}
        settings = said.get("settings", {})
        Settings.of(settings)  # what cannot be meant is said at once
        places = {role: _place(upload) for role, upload in uploads.items()}
        task = self.tasks.add(
            kind, places, settings, tuple(upload.id for upload in uploads.values()), _page_of(request)
        )
        return JSONResponse(self.tasks.story(task.id), 201)

    async def _story(self, request: Request) -> Response:
        return JSONResponse(self.tasks.story(request.path_params["key"]))

    async def _cancel(self, request: Request) -> Response:
        self.tasks.cancel(request.path_params["key"])
        return JSONResponse(self.tasks.story(request.path_params["key"]))

    async def _leave(self, request: Request) -> Response:
        """A page was closed: its jobs end, and its files go."""
        page = request.path_params["page"]
        self.tasks.leave(page)
        self.uploads.leave(page, self._in_use)
        return Response(status_code=204)

    async def _report(self, request: Request) -> Response:
        path = self._made(request, REPORT)
        return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

    async def _result(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _RESULTS:
            raise HTTPException(404)
        return FileResponse(self._made(request, name), media_type=_RESULTS[name], headers=_attached(name))

    def _made(self, request: Request, name: str) -> Path:
        task: Task = self.tasks[request.path_params["key"]]
        path = task.folder / name
        if task.state not in OVER or not path.exists():
            raise RefusedError(404, "There is no such result; run the estimate first.")
        return path


def _page_of(request: Request) -> str:
    """The tab that asks, which made itself a name."""
    return request.headers.get("x-page", "")[:64]


def _place(upload: Upload) -> dict[str, str]:
    return {"path": str(upload.path), "name": upload.name}


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": REPORT_POLICY}


async def _read_json(request: Request) -> dict[str, Any]:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_JSON:
            raise RefusedError(413, "The settings are too long; leave out fewer columns.")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise RefusedError(400, "What was sent is not a JSON object; reload the page.")
    return said


async def _refused(request: Request, error: Exception) -> Response:
    """Every refusal is a sentence."""
    if isinstance(error, RefusedError):
        return JSONResponse({"sentence": error.sentence}, error.status)
    if isinstance(error, InputError):
        return JSONResponse({"sentence": for_the_page(str(error), {}, {})}, 422)
    if isinstance(error, HTTPException):
        return JSONResponse({"sentence": f"There is nothing here ({error.detail})."}, error.status_code)
    if isinstance(error, ClientDisconnect):
        return JSONResponse({"sentence": "The request was not sent to its end."}, 400)
    traceback.print_exception(error, file=sys.stderr)
    return JSONResponse(
        {"sentence": "Something went wrong in priorshift itself, and the terminal shows where; tell its makers."},
        500,
    )
