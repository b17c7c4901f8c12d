// Requests to the app, all of them relative to the address with its secret, and jobs followed to their end.

const SILENT = "The app does not answer. Is it still running?";
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const OVER = ["done", "refused", "cancelled"];

export async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      credentials: "omit",
      headers: { "X-Page": PAGE, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error(SILENT);
  }
  return understood(answer.status, await answer.text());
}

function understood(status, text) {
  let said = null;
  try {
    said = text ? JSON.parse(text) : null;
  } catch {
    throw new Error(text || SILENT);
  }
  if (status >= 400) throw new Error(said?.sentence ?? SILENT);
  return said;
}

// A request that tells how much of a file was sent, which fetch cannot.
export function send(path, file, sent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path);
    request.setRequestHeader("X-Page", PAGE);
    request.upload.onprogress = (event) => sent(event.loaded / (event.total || 1));
    request.onload = () => {
      try {
        resolve(understood(request.status, request.responseText));
      } catch (error) {
        reject(error);
      }
    };
    request.onerror = () => reject(new Error(`The file could not be sent. ${SILENT}`));
    request.send(file);
  });
}

// The page goes away: nobody waits for its jobs any more. A beacon would not tell where it comes from.
export function leave() {
  fetch(`pages/${PAGE}`, { method: "DELETE", credentials: "omit", keepalive: true }).catch(() => {});
}

export async function follow(id, tell = () => {}) {
  for (let wait = 100; ; wait = Math.min(wait * 1.2, 700)) {
    const story = await ask("GET", `tasks/${id}`);
    tell(story);
    if (OVER.includes(story.state)) return story;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
