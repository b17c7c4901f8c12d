"""The application: the routes to the page, uploads, jobs and results."""

from __future__ import annotations

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
from priorshift.app.fields import show_field
from priorshift.app.jobs import DECISIONS, REPORT, RESULT
from priorshift.app.queue import OVER, TaskQueue
from priorshift.app.settings import ROLES, Settings, is_role, translate_message
from priorshift.app.uploads import DISK_FULL, Limits, Upload, Uploads, is_disk_full
from priorshift.app.watching import FILES, MODEL, STATE, WatchSettings, check_files
from priorshift.errors import InputError
from priorshift.result_tables import csv_line
from priorshift.version import __version__

_RESULT_HEADERS = {  # a report runs no script and loads nothing, also when it is opened by itself
    # same origin, so that the page can measure its height and show it whole
    "Content-Security-Policy": "sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
}
_PAGE = {"index.html": "text/html", "watch.html": "text/html", "app.css": "text/css"} | dict.fromkeys(
    ("app.js", "ask.js", "classes.js", "files.js", "known.js", "names.js", "result.js", "watch.js"), "text/javascript"
)
PUBLIC = ("", *_PAGE)  # paths of the page itself, which holds no data
_MAX_JSON = 4_000_000  # bytes of settings: columns may have long names
_EXAMPLE_PRIORS = 0.2, 0.5  # source, target
_EXAMPLE_ID = "tumour"


def example_files() -> dict[str, str]:
    """Return the demo's data on tumours as CSV texts by role: 20% malignant in the source, 50% in the target."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    is_malignant = data.target == 0
    simulated = simulate.shift_labels(data.data, is_malignant, *_EXAMPLE_PRIORS, random_state=0)
    samples = {
        "positive": (simulated.positive, simulated.positive_ids),
        "unlabeled": (simulated.unlabeled, simulated.unlabeled_ids),
        "target": (simulated.target, 1 + max(simulated.ids) + np.arange(len(simulated.target))),  # new ids
    }
    texts = {}
    for role, (rows, row_ids) in samples.items():
        lines = [[_EXAMPLE_ID, *map(str, data.feature_names)]]
        for row_id, row in zip(row_ids, rows, strict=True):
            lines.append([str(row_id), *(f"{cell:.6g}" for cell in row)])
        texts[role] = "".join(map(csv_line, lines))
    return texts


class Site:
    """The uploads and jobs of the app, and the routes to them."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        """Create the folders for uploads and results below a private `folder`, and start the queue."""
        self.limits = limits
        for name in ("files", "results"):
            (folder / name).mkdir(mode=0o700)
        self.tasks = TaskQueue(folder / "results", limits)
        self.uploads = Uploads(folder / "files", limits, lambda: self.tasks.in_use)

    def application(self) -> Starlette:
        """Return the application with all routes; it must be wrapped in AccessMiddleware."""
        routes = [
            Route("/", self._page),
            *(Route(f"/{name}", self._page) for name in _PAGE),
            Route("/about", self._about),
            Route("/fields", self._fields),
            Route("/files", self._receive, methods=["PUT"]),
            Route("/files/{key}", self._delete, methods=["DELETE"]),
            Route("/example", self._example, methods=["POST"]),
            Route("/example/{name}", self._example_file),
            Route("/pages/{page}", self._close_page, methods=["DELETE"]),
            Route("/tasks", self._add_task, methods=["POST"]),
            Route("/tasks/{key}", self._status),
            Route("/tasks/{key}", self._cancel, methods=["DELETE"]),
            Route("/tasks/{key}/{name}", self._result),
        ]
        errors = (InputError, HTTPException, ClientDisconnect, OSError, Exception)
        application = Starlette(routes=routes, exception_handlers=dict.fromkeys(errors, _error_response))
        application.router.redirect_slashes = False  # it would redirect to an address without the random folder
        return application

    async def _page(self, request: Request) -> Response:
        """Send a static file of the page (HTML, CSS or JavaScript); index.html for "/"."""
        name = request.url.path.rpartition("/")[2] or "index.html"
        return Response(files("priorshift.app").joinpath("page", name).read_bytes(), media_type=_PAGE[name])

    async def _about(self, request: Request) -> Response:
        """Send the version and the limits that the page shows."""
        limits = {name: getattr(self.limits, name) for name in ("rows", "bytes", "seconds")}
        return JSONResponse({"version": __version__, **limits})

    async def _fields(self, request: Request) -> Response:
        """Send how the numbers in the fields of the form, which are in the query by name, are read."""
        return JSONResponse({name: show_field(name, text) for name, text in request.query_params.items()})

    async def _receive(self, request: Request) -> Response:
        """Store an uploaded file, and add a job that reads its columns."""
        role, name = request.query_params.get("role", ""), request.query_params.get("name", "")
        if not is_role(role) and role not in FILES:
            raise HTTPException(400, "The role of the file is missing. Reload the page.")
        declared = request.headers.get("content-length", "")
        size = int(declared) if declared.isdecimal() and len(declared) < 20 else 0
        upload = await self.uploads.receive(name, request.stream(), size, _page_of(request))
        if request.query_params.get("for") == "watch" or not is_role(role):
            return JSONResponse({"id": upload.id, "name": upload.name, "bytes": upload.bytes}, 201)
        return JSONResponse(self._inspect(role, upload), 201)

    def _inspect(self, role: str, upload: Upload) -> dict[str, Any]:
        """Add a job that reads the columns of an upload; return the upload, with the id of the job, as JSON values."""
        try:
            task = self.tasks.add("look", {role: upload}, {}, upload.page)
        except HTTPException:
            self.uploads.delete(upload.id)
            raise
        return {"id": upload.id, "name": upload.name, "bytes": upload.bytes, "task": task.id}

    async def _delete(self, request: Request) -> Response:
        """Delete an uploaded file that no job needs."""
        key = request.path_params["key"]
        if key in self.tasks.in_use:
            raise HTTPException(409, "A job still needs this file. Cancel it first.")
        self.uploads.delete(key)
        return Response(status_code=204)

    async def _example(self, request: Request) -> Response:
        """Store the example's three files as uploads, and send them with its settings."""
        stored = {}
        for role, text in example_files().items():
            upload = self.uploads.add_text(f"example-{role}.csv", text, _page_of(request))
            stored[role] = self._inspect(role, upload)
        settings = {"prior": {"value": _EXAMPLE_PRIORS[0]}, "shared": _EXAMPLE_ID}
        return JSONResponse({"files": stored, "settings": settings}, 201)

    async def _example_file(self, request: Request) -> Response:
        """Send one file of the example as a download."""
        role = request.path_params["name"].removeprefix("example-").removesuffix(".csv")
        if role not in ROLES:
            raise HTTPException(404)
        headers = _RESULT_HEADERS | {"Content-Disposition": f'attachment; filename="example-{role}.csv"'}
        return Response(example_files()[role], media_type="text/csv", headers=headers)

    async def _add_task(self, request: Request) -> Response:
        """Add a job of kind "columns" or "run" for three or more uploads, or of kind "watch", and send its state."""
        order = await _read_json(request)
        kind, keys, settings = order.get("kind"), order.get("files"), order.get("settings", {})
        if kind == "watch" and isinstance(keys, dict):
            check_files(set(keys))
            WatchSettings.from_json(settings)
            uploads = {role: self.uploads[str(key)] for role, key in keys.items()}
            task = self.tasks.add(kind, uploads, settings, _page_of(request))
            return JSONResponse(self.tasks.status(task.id), 201)
        if kind not in ("columns", "run") or not isinstance(keys, dict):
            raise HTTPException(400, "Three files are needed. Choose all of them.")
        roles = Settings.from_json(settings).roles  # wrong settings are refused at once
        if set(keys) != set(roles):
            number = "Three files are" if set(roles) == set(ROLES) else f"{len(roles)} files are"
            raise HTTPException(400, f"{number} needed. Choose all of them.")
        uploads = {role: self.uploads[str(keys[role])] for role in roles}
        task = self.tasks.add(kind, uploads, settings, _page_of(request))
        return JSONResponse(self.tasks.status(task.id), 201)

    async def _status(self, request: Request) -> Response:
        """Send the state of a job."""
        return JSONResponse(self.tasks.status(request.path_params["key"]))

    async def _cancel(self, request: Request) -> Response:
        """Cancel a job, and send its state."""
        self.tasks.cancel(request.path_params["key"])
        return await self._status(request)

    async def _close_page(self, request: Request) -> Response:
        """Cancel the jobs and delete the files of a browser tab that was closed."""
        page = request.path_params["page"]
        self.tasks.cancel_page(page)
        self.uploads.delete_page(page)
        return Response(status_code=204)

    async def _result(self, request: Request) -> Response:
        """Send a file of a job's result as a download; the name "report" shows the report in the page."""
        task, name = self.tasks[request.path_params["key"]], request.path_params["name"]
        path = task.folder / (REPORT if name == "report" else name)
        if path.name not in (REPORT, RESULT, DECISIONS, STATE, MODEL) or task.state not in OVER or not path.exists():
            raise HTTPException(404, "This result does not exist. Run the estimate first.")
        return FileResponse(path, filename=None if name == "report" else name, headers=_RESULT_HEADERS)


def _page_of(request: Request) -> str:
    """Return the id of the browser tab, which it chose for itself and sends with each request; "" if missing."""
    return request.headers.get("x-page", "")[:64]


async def _read_json(request: Request) -> dict[str, Any]:
    """Read the body of a request, a JSON object; answer 413 if it is too long and 400 if it is something else."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_JSON:
            raise HTTPException(413, "The settings are too long. Leave out fewer columns.")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise HTTPException(400, "The request is not a JSON object. Reload the page.")
    return content


async def _error_response(request: Request, error: Exception) -> Response:
    """Turn an exception into a JSON response with a message for the user."""
    if isinstance(error, HTTPException):
        return JSONResponse({"message": error.detail}, error.status_code)
    if isinstance(error, InputError):
        message = translate_message(str(error), {}, {})
        return JSONResponse({"message": message, "field": getattr(error, "field", None)}, 422)
    if isinstance(error, ClientDisconnect):
        return JSONResponse({"message": "The request was not sent completely."}, 400)
    if is_disk_full(error):
        return JSONResponse({"message": DISK_FULL}, 507)
    traceback.print_exception(error, file=sys.stderr)
    message = "An internal error occurred in priorshift. Please report it, with the message in the terminal."
    return JSONResponse({"message": message}, 500)
