// One more file of a series: sent with the model and the state of last time, and answered by a page and a new state.

import { ask, follow, leave, send } from "./ask.js";
import { element, shown } from "./names.js";

const part = (id) => document.querySelector(`#${id}`);
const FILES = ["positive", "unlabeled", "model", "state", "target"];
let running = null; // the job that the page waits for

function say(words) {
  part("working").textContent = words;
}

function showProblem(error) {
  part("problem").hidden = !error;
  part("problem").textContent = error ? shown(error.message) : "";
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  const input = error?.field ? part(error.field === "value" ? "prior" : error.field) : null;
  if (input) {
    input.setAttribute("aria-invalid", "true");
    if (input.closest("details")) input.closest("details").open = true;
    input.focus();
  }
}

async function sendFiles() {
  const ids = {};
  for (const role of FILES) {
    const file = part(role).files[0];
    if (!file) continue;
    const query = new URLSearchParams({ role, name: file.name, for: "watch" });
    say(`Sending ${shown(file.name)} …`);
    ids[role] = (await send(`files?${query}`, file, () => {})).id;
  }
  return ids;
}

function settings() {
  const typed = Object.fromEntries(["name", "prior", "level"].map((id) => [id, part(id).value.trim()]));
  return { ...typed, replace: part("replace").checked };
}

async function start(event) {
  event.preventDefault();
  if (running !== null) return;
  running = "asked";
  showProblem(null);
  part("start").disabled = true;
  try {
    const task = await ask("POST", "tasks", { kind: "watch", files: await sendFiles(), settings: settings() });
    running = task.id;
    part("cancel").hidden = false;
    const status = await follow(task.id, ({ state, now }) => say(state === "waiting" ? "Waiting for the running job …" : `${now ?? "Working"} …`));
    if (status.state === "failed") throw new Error(status.message);
    say(status.state === "cancelled" ? "Cancelled." : "");
    if (status.state === "done") showResult(status);
  } catch (error) {
    say("");
    showProblem(error);
  } finally {
    running = null;
    part("start").disabled = false;
    part("cancel").hidden = true;
  }
}

function showResult({ id, answer }) {
  const at = `tasks/${id}`;
  part("badge").className = `badge ${answer.tone}`;
  part("badge").querySelector(".mark").textContent = answer.mark;
  part("badge").querySelector("strong").textContent = answer.words;
  part("lines").replaceChildren(...answer.lines.map((line) => element("li", line)));
  for (const name of ["state.json", "model.priorshift", "report.html"]) part(`download-${name.split(".")[0]}`).href = `${at}/${name}`;
  part("has-model").hidden = !answer.files.includes("model.priorshift");
  part("report").src = `${at}/report`;
  part("command").textContent = shown(answer.command);
  part("result").hidden = false;
  part("result-heading").focus();
  part("result").scrollIntoView({ block: "start" });
}

// The page of the series is as high as its contents, so that there is one scroll bar.
const observer = new ResizeObserver(([{ target }]) => {
  part("report").style.height = `${Math.ceil(target.getBoundingClientRect().height) + 2}px`;
});
part("report").addEventListener("load", () => {
  observer.disconnect();
  const page = part("report").contentDocument?.documentElement;
  if (page) observer.observe(page);
});
part("watch").addEventListener("submit", start);
part("cancel").addEventListener("click", () => ask("DELETE", `tasks/${running}`).catch(() => {}));
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", (event) => event.persisted && location.reload()); // its jobs and files are gone
