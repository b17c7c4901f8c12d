"""The routes: the page, uploads, jobs, results and the bundled example."""

from __future__ import annotations

import csv
import io
import json
import sys
import traceback
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from priorshift import simulate
from priorshift.app.jobs import DECISIONS, REPORT, RESULT
from priorshift.app.middleware import REPORT_POLICY, RefusedError
from priorshift.app.queue import OVER, TaskQueue
from priorshift.app.settings import ROLES, Settings, translate_message
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
_EXAMPLE_PRIORS = 0.2, 0.5  # source, target
_EXAMPLE_ID = "tumour"


def example_files() -> dict[str, str]:
    """Return the demo's data on tumours as CSV texts: 20% malignant in the old population, 50% in the new one."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    s = simulate.shift_labels(data.data, data.target == 0, *_EXAMPLE_PRIORS, random_state=0)
    first = 1 + max(s.ids)
    ids = s.positive_ids, s.unlabeled_ids, np.arange(first, first + len(s.target))
    files = {}
    for role, rows, numbers in zip(ROLES, (s.positive, s.unlabeled, s.target), ids, strict=True):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_EXAMPLE_ID, *map(str, data.feature_names)])
        writer.writerows(
            [int(number), *(f"{cell:.6g}" for cell in row)] for number, row in zip(numbers, rows, strict=True)
        )
        files[role] = text.getvalue()
    return files


class Site:
    """The uploads and jobs of the app, and the routes to them; `folder` is the private one."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.limits = limits
        for name in ("files", "results"):
            (folder / name).mkdir(mode=0o700)
        self.tasks = TaskQueue(folder / "results", limits)
        self.uploads = Uploads(folder / "files", limits, lambda: self.tasks.in_use)

    def application(self) -> Starlette:
        """Return the routes, to be put behind the access control."""
        routes = [
            *(Route(f"/{name}", self._page) for name in _PAGE),
            Route("/about", self._about),
            Route("/files", self._receive, methods=["PUT"]),
            Route("/files/{key}", self._delete, methods=["DELETE"]),
            Route("/example", self._example, methods=["POST"]),
            Route("/example/{name}", self._example_file),
            Route("/pages/{page}", self._close_page, methods=["DELETE"]),
            Route("/tasks", self._add_task, methods=["POST"]),
            Route("/tasks/{key}", self._status),
            Route("/tasks/{key}", self._cancel, methods=["DELETE"]),
            Route("/tasks/{key}/report", self._report),
            Route("/tasks/{key}/{name}", self._result),
        ]
        errors = (RefusedError, InputError, HTTPException, ClientDisconnect, Exception)
        return Starlette(routes=routes, exception_handlers=dict.fromkeys(errors, _error_response))

    def close(self) -> None:
        """End the running job."""
        self.tasks.close()

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
            raise RefusedError(400, "The role of the file is missing. Reload the page.")
        declared = request.headers.get("content-length", "")
        size = int(declared) if declared.isdecimal() and len(declared) < 20 else 0
        name = request.query_params.get("name", "")
        upload = await self.uploads.receive(name, request.stream(), size, _page_of(request))
        return JSONResponse(self._look_at(role, upload), 201)

    def _look_at(self, role: str, upload: Upload) -> dict[str, Any]:
        """Add a job that reads the columns of an upload."""
        try:
            task = self.tasks.add("look", {role: _place(upload)}, {}, (upload.id,), upload.page)
        except RefusedError:
            self.uploads.delete(upload.id)
            raise
        return {"id": upload.id, "name": upload.name, "bytes": upload.bytes, "task": task.id}

    async def _delete(self, request: Request) -> Response:
        key = request.path_params["key"]
        if key in self.tasks.in_use:
            raise RefusedError(409, "A job still needs this file. Cancel it first.")
        self.uploads.delete(key)
        return Response(status_code=204)

    async def _example(self, request: Request) -> Response:
        page = _page_of(request)
        stored = {
            role: self._look_at(role, self.uploads.add_text(f"example-{role}.csv", text, page))
            for role, text in example_files().items()
        }
        settings = {"prior": {"value": _EXAMPLE_PRIORS[0]}, "shared": _EXAMPLE_ID}
        return JSONResponse({"files": stored, "settings": settings}, 201)

    async def _example_file(self, request: Request) -> Response:
        role = request.path_params["name"].removeprefix("example-").removesuffix(".csv")
        if role not in ROLES:
            raise HTTPException(404)
        return Response(example_files()[role], media_type="text/csv", headers=_attachment(f"example-{role}.csv"))

    async def _add_task(self, request: Request) -> Response:
        order = await _read_json(request)
        kind, keys = order.get("kind"), order.get("files")
        if kind not in ("columns", "run") or not isinstance(keys, dict) or set(keys) != set(ROLES):
            raise RefusedError(400, "Three files are needed. Choose all of them.")
        uploads = {role: self.uploads[str(keys[role])] for role in ROLES}
        settings = order.get("settings", {})
        Settings.from_json(settings)  # wrong settings are refused at once
        places = {role: _place(upload) for role, upload in uploads.items()}
        task = self.tasks.add(
            kind, places, settings, tuple(upload.id for upload in uploads.values()), _page_of(request)
        )
        return JSONResponse(self.tasks.status(task.id), 201)

    async def _status(self, request: Request) -> Response:
        return JSONResponse(self.tasks.status(request.path_params["key"]))

    async def _cancel(self, request: Request) -> Response:
        self.tasks.cancel(request.path_params["key"])
        return JSONResponse(self.tasks.status(request.path_params["key"]))

    async def _close_page(self, request: Request) -> Response:
        """Cancel the jobs and delete the files of a page that was closed."""
        page = request.path_params["page"]
        self.tasks.cancel_page(page)
        self.uploads.delete_page(page)
        return Response(status_code=204)

    async def _report(self, request: Request) -> Response:
        path = self._result_path(request, REPORT)
        return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})

    async def _result(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _RESULTS:
            raise HTTPException(404)
        return FileResponse(self._result_path(request, name), media_type=_RESULTS[name], headers=_attachment(name))

    def _result_path(self, request: Request, name: str) -> Path:
        task = self.tasks[request.path_params["key"]]
        path = task.folder / name
        if task.state not in OVER or not path.exists():
            raise RefusedError(404, "This result does not exist. Run the estimate first.")
        return path


def _page_of(request: Request) -> str:
    """Return the name that the browser tab has given itself."""
    return request.headers.get("x-page", "")[:64]


def _place(upload: Upload) -> dict[str, str]:
    return {"path": str(upload.path), "name": upload.name}


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": REPORT_POLICY}


async def _read_json(request: Request) -> dict[str, Any]:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_JSON:
            raise RefusedError(413, "The settings are too long. Leave out fewer columns.")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise RefusedError(400, "The request is not a JSON object. Reload the page.")
    return content


async def _error_response(request: Request, error: Exception) -> Response:
    """Answer an error with a message for the user."""
    if isinstance(error, RefusedError):
        return JSONResponse({"message": error.message}, error.status)
    if isinstance(error, InputError):
        return JSONResponse({"message": translate_message(str(error), {}, {})}, 422)
    if isinstance(error, HTTPException):
        return JSONResponse({"message": f"This address does not exist ({error.detail})."}, error.status_code)
    if isinstance(error, ClientDisconnect):
        return JSONResponse({"message": "The request was not sent completely."}, 400)
    traceback.print_exception(error, file=sys.stderr)
    return JSONResponse(
        {"message": "An internal error occurred in priorshift. Please report it, with the message in the terminal."},
        500,
    )
