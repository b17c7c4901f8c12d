// Requests to the app, with the cookie of its address; jobs are followed to their end.

const SILENT = "The app does not respond. Is it still running?";
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const OVER = ["done", "failed", "cancelled"];

export async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      credentials: "same-origin",
      headers: { "X-Page": PAGE, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error(SILENT);
  }
  return parse(answer.status, await answer.text());
}

function parse(status, text) {
  let content = null;
  try {
    content = text ? JSON.parse(text) : null;
  } catch {
    throw new Error(text || SILENT);
  }
  if (status >= 400) throw Object.assign(new Error(content?.message ?? SILENT), { field: content?.field });
  return content;
}

// A request that reports how much of a file was sent, which fetch cannot do.
export function send(path, file, sent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path);
    request.setRequestHeader("X-Page", PAGE);
    request.upload.onprogress = (event) => sent(event.loaded / (event.total || 1));
    request.onload = () => {
      try {
        resolve(parse(request.status, request.responseText));
      } catch (error) {
        reject(error);
      }
    };
    request.onerror = () => reject(new Error(`The file could not be sent. ${SILENT}`));
    request.send(file);
  });
}

// The page is closed, so its jobs are cancelled. A beacon would not send its origin.
export function leave() {
  fetch(`pages/${PAGE}`, { method: "DELETE", credentials: "same-origin", keepalive: true }).catch(() => {});
}

export async function follow(id, report = () => {}) {
  for (let wait = 100; ; wait = Math.min(wait * 1.2, 700)) {
    const status = await ask("GET", `tasks/${id}`);
    report(status);
    if (OVER.includes(status.state)) return status;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
