// From files to a report.

import { ask, follow, leave } from "./ask.js";
import { fileRoles, setUpClasses } from "./classes.js";
import { bringExample, counted, filesRead, makeCard, makeCards, removeCard, ROLES, setUp } from "./files.js";
import { columnSettings, fillIn, offerColumns, settings, showHints, showProblem, showScenario } from "./known.js";
import { element, named, shown } from "./names.js";
import { showClassDecisions, showDecisions, showReport, showVerdicts } from "./result.js";

const part = (id) => document.querySelector(`#${id}`);
const ids = (files) => Object.fromEntries(Object.entries(files).map(([role, file]) => [role, file.id]));
const USES = {
  feature: "comparing rows", constant: "nothing", "left out": "nothing", dropped: "nothing", id: "id", group: "group", weight: "weight",
  audit: "checked rows", target: "which population",
};
let running = null; // the job whose report the page waits for
let reading = 0; // number of the last look at the columns
let delay = 0;
let command = ""; // for a shell; the page shows it with invisible characters escaped

function filesChanged() {
  const files = filesRead();
  const complete = fileRoles().every((role) => files[role]);
  part("read").hidden = part("known").hidden = !complete;
  part("start").disabled = !complete || running !== null;
  part("example-note").hidden = !ROLES.every((role) => files[role]?.name === `example-${role}.csv`);
  part("result-stale").hidden = false;
  reading++;
  showHints();
  if (complete) {
    offerColumns(files);
    lookAtColumns();
  }
}

async function lookAtColumns() {
  const turn = ++reading;
  const text = part("read-status");
  text.className = "";
  text.textContent = "Reading the columns …";
  try {
    const order = { kind: "columns", files: ids(filesRead()), settings: columnSettings() };
    const status = await follow((await ask("POST", "tasks", order)).id);
    if (turn !== reading) return;
    if (status.state !== "done") throw new Error(status.message ?? "The columns could not be read.");
    showColumns(status.answer);
  } catch (error) {
    if (turn !== reading) return;
    text.className = "problem";
    text.textContent = shown(error.message);
    part("read-columns").hidden = part("odd").hidden = true;
    part("columns").open = !error.field; // where most problems are solved
  }
}

function showColumns({ columns, odd }) {
  const features = columns.filter((column) => column.use === "feature").length;
  part("read-status").textContent =
    `Rows are compared by ${counted(features, "column")}` +
    (columns.length > features ? `; ${counted(columns.length - features, "other is", "others are")} not compared.` : ".");
  part("odd").hidden = odd.length === 0;
  part("odd").replaceChildren(...odd.map((message) => element("li", message)));
  part("read-columns").hidden = false;
  part("read-columns").querySelector("tbody").replaceChildren(...columns.map((column) => {
    const row = document.createElement("tr");
    const name = element("th", "");
    name.append(named(column.name));
    name.scope = "row";
    const empty = column.missing === null ? "" : column.missing === 0 ? "none" : `${(100 * column.missing).toPrecision(2)}%`;
    row.append(name, ...[USES[column.use] ?? column.use, column.kind, empty, column.became].map((words) => element("td", words)));
    return row;
  }));
}

function settingsChanged(event) {
  showScenario();
  showHints();
  part("result-stale").hidden = false;
  const radio = event.target.closest(".choice")?.querySelector('input[type="radio"]');
  if (event.target.inputMode && radio) radio.checked = true; // a number was typed
  if (event.target.matches("select, #drop input, input[name=scenario]")) {
    clearTimeout(delay);
    delay = setTimeout(lookAtColumns, 300);
  }
}

async function start(event) {
  event.preventDefault();
  if (running !== null) return;
  const order = { kind: "run", files: ids(filesRead()), settings: settings() };
  showProblem(null);
  part("start").disabled = true;
  say("cancelled", "");
  running = "asked";
  try {
    const task = await ask("POST", "tasks", order);
    running = task.id;
    part("result").hidden = part("failed").hidden = true;
    part("working").hidden = false;
    part("steps").replaceChildren();
    part("working-heading").focus();
    part("working").scrollIntoView({ block: "start" });
    finish(await follow(task.id, showStatus));
  } catch (error) {
    if (running === "asked") {
      part("start").disabled = false; // so that it can have the focus again
      showProblem(error);
    } else finish({ state: "failed", message: error.message });
  } finally {
    running = null;
    part("start").disabled = part("known").hidden;
    part("cancel").disabled = false;
  }
}

function showStatus(status) {
  const waits = status.state === "waiting";
  say("working-status", waits
    ? `Waiting: ${status.ahead === 0 ? "this job is next" : `${counted(status.ahead, "job")} before it`}.`
    : status.now ?? "Starting");
  part("working-status").classList.toggle("unseen", !waits && status.now !== null); // the list shows it
  part("elapsed").textContent = waits ? "" : `${Math.round(status.seconds)} s`;
  part("steps").replaceChildren(...status.steps.map((step) => {
    const item = element("li", step.name);
    item.className = step.name === status.now ? "now" : step.done < step.of ? "open" : ""; // one may be within another
    if (step.name === status.now && step.of > 1) {
      const bar = document.createElement("progress");
      bar.max = step.of;
      bar.value = step.done - 1;
      bar.setAttribute("aria-label", `${step.name}: step ${step.done} of ${step.of}`);
      item.append(bar);
    }
    return item;
  }));
}

// Screen readers announce only what has changed.
function say(id, words) {
  if (part(id).textContent !== words) part(id).textContent = words;
}

function finish(status) {
  part("working").hidden = true;
  if (status.state === "done") {
    showResult(status);
  } else if (status.state === "cancelled") {
    part("start").disabled = false;
    part("start").focus();
    say("cancelled", "Cancelled.");
  } else {
    part("failed").hidden = false;
    part("failed-message").textContent = shown(status.message);
    part("failed-heading").focus();
    part("failed").scrollIntoView({ block: "nearest" });
  }
}

function showResult({ id, answer }) {
  const at = `tasks/${id}`;
  showVerdicts(answer.verdicts);
  part("result").classList.toggle("several", answer.classes.length > 1);
  (answer.classes.length > 1 ? showClassDecisions : showDecisions)(answer.decisions);
  showReport(`${at}/report`);
  part("open").href = `${at}/report`;
  part("entered").textContent = shown(`Used: ${answer.entered.join("; ")}.`);
  for (const name of ["report.html", "result.json", "decisions.csv"]) part(`download-${name.split(".")[0]}`).href = `${at}/${name}`;
  part("decisions").hidden = !answer.files.includes("decisions.csv");
  part("undecided").hidden = !answer.undecided;
  part("undecided").textContent = answer.undecided ? `No decisions were made. ${shown(answer.undecided)}` : "";
  part("doubted").hidden = !answer.doubted;
  part("doubted").textContent = answer.doubted ?? "";
  command = answer.command;
  part("command").textContent = command.split("\n").map(shown).join("\n");
  part("copied").textContent = "";
  part("result").hidden = false;
  part("result-stale").hidden = true;
  part("result-heading").focus();
  part("result").scrollIntoView({ block: "start" });
}

async function example() {
  part("example").disabled = true;
  try {
    const answer = await ask("POST", "example");
    await bringExample(answer);
    fillIn(answer.settings);
    part("columns").open = true;
    lookAtColumns();
    part("read").scrollIntoView({ block: "start" });
  } catch (error) {
    showProblem(error);
  } finally {
    part("example").disabled = false;
  }
}

async function copy() {
  try {
    await navigator.clipboard.writeText(command);
    part("copied").textContent = "Copied.";
  } catch {
    part("copied").textContent = "The browser does not allow copying. Select the text and copy it yourself.";
  }
}

makeCards();
setUpClasses(makeCard, removeCard, filesChanged);
part("settings").addEventListener("submit", start);
part("settings").addEventListener("input", settingsChanged);
part("example").addEventListener("click", example);
part("copy").addEventListener("click", copy);
part("cancel").addEventListener("click", () => {
  part("cancel").disabled = true;
  ask("DELETE", `tasks/${running}`).catch(() => {});
});
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", (event) => event.persisted && location.reload()); // its jobs and files are gone
showScenario();
showHints();
setUp({ bytes: Infinity }, filesChanged);
try {
  const about = await ask("GET", "about");
  setUp(about, filesChanged);
  part("version").textContent = about.version;
  part("limits").textContent =
    `A file can have up to ${about.rows.toLocaleString("en")} rows and ${Math.round(about.bytes / 1e6).toLocaleString("en")} MB; ` +
    `an estimate can take up to ${Math.round(about.seconds / 60) || 1} min.`;
} catch (error) {
  document.querySelector("main").replaceChildren(element("p", error.message)); // this browser has no access
}
