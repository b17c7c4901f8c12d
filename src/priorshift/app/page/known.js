// The form: what the user knows, and which columns have a meaning.

import { ask } from "./ask.js";
import { classRoles, classSettings, hasRest, several, shareFields } from "./classes.js";
import { named, shown } from "./names.js";

const NONE = "";
const IDENTICAL = "\u0000identical"; // no column has that name
const FIELDS = ["value", "low", "high", "positives", "rows", "confidence", "threshold", "seed", "cost_ratio", "top", "precision", "recall"];
const field = (id) => document.querySelector(`#${id}`);
const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;

let asked = 0; // number of the last question how fields are read

// What was typed in the fields of a choice. The app reads it, as the command line does.
const typed = (...ids) => Object.fromEntries(ids.map((id) => [id, field(id).value.trim()]));
const PRIORS = { unknown: [], value: ["value"], range: ["low", "high"], counts: ["positives", "rows"] };

function prior() {
  const ids = PRIORS[chosen("prior")];
  return ids.length ? typed(...ids) : null;
}

function rule() {
  return chosen("rule") === "likelier" ? null : typed(chosen("rule"));
}

// The settings that decide how columns are used.
export function columnSettings() {
  const scenario = chosen("scenario");
  const shared = scenario === "censoring" ? NONE : field("shared").value;
  const values = { scenario, shared: shared === IDENTICAL ? { identical: true } : shared || null };
  for (const use of ["weights", "groups", "by"]) values[use] = field(use).value || null;
  if (!several()) values.audit = field("audit").value || null;
  if (!hasRest()) values.shared = null;
  if (!hasRest()) values.scenario = "case-control";
  const left = [...document.querySelectorAll("#drop input:checked")].map((box) => box.value);
  return { ...values, drop: left, ...classSettings() };
}

export function settings() {
  const common = { ...columnSettings(), ...typed("confidence", "seed") };
  return several() ? common : { ...common, prior: prior(), rule: rule(), ...typed("threshold") };
}

// How the app reads what was typed: 4,5 is 4.5% = 0.045.
export async function showHints() {
  const turn = ++asked;
  const fields = [...FIELDS, ...shareFields()];
  const texts = Object.entries(typed(...fields)).filter(([, text]) => text);
  const read = await ask("GET", `fields?${new URLSearchParams(texts)}`).catch(() => ({}));
  if (turn !== asked) return;
  for (const id of fields) {
    const hint = field(`${id}-hint`);
    const words = read[id] ?? "";
    if (hint && hint.textContent !== words) hint.textContent = words;
  }
}

export function fillIn(values) {
  document.querySelector(`#prior-value`).checked = true;
  field("value").value = values.prior.value * 100;
  field("shared").value = values.shared;
  showHints();
}

// Which columns can have which use, by the files that have them.
export function offerColumns(files) {
  const names = Object.fromEntries(
    Object.entries(files).map(([role, file]) => [role, file.look.named ? file.look.columns.map((c) => c.name) : []]),
  );
  const every = [...new Set(Object.values(names).flat())];
  const has = (role) => (name) => names[role].includes(name);
  const inSource = (name) => [...classRoles(), "unlabeled"].every((role) => names[role]?.includes(name));
  offer("shared", every.filter(inSource), "nobody, or not known", [
    [IDENTICAL, "rows with the same values are the same"],
  ]);
  offer("by", names.target, "nothing, there is one");
  offer("groups", every.filter((name) => Object.keys(names).every((role) => has(role)(name))), "no rows belong together");
  offer("weights", every, "none, all rows count the same");
  offer("audit", every.filter((name) => names.unlabeled?.includes(name) || has("target")(name)), "none");
  offerDrop(every);
}

function offer(id, names, none, besides = []) {
  const select = field(id);
  const before = select.value;
  const options = [[NONE, none], ...besides, ...names.map((name) => [name, shown(name)])];
  select.replaceChildren(...options.map(([value, words]) => {
    const option = document.createElement("option");
    option.value = value;
    option.textContent = words;
    return option;
  }));
  if (options.some(([value]) => value === before)) select.value = before;
}

function offerDrop(names) {
  const before = new Set([...document.querySelectorAll("#drop input:checked")].map((box) => box.value));
  field("drop").replaceChildren(...names.map((name) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.value = name;
    box.checked = before.has(name);
    label.append(box, named(name));
    return label;
  }));
}

export function showScenario() {
  field("shared-row").hidden = chosen("scenario") === "censoring";
}

export function showProblem(error) {
  const box = field("settings-problem");
  const input = error?.field ? field(error.field) : null;
  const place = input?.closest("fieldset, .grid > div, .class-name");
  if (place) place.append(box);
  else field("go").before(box);
  box.hidden = !error;
  box.textContent = error ? shown(error.message) : "";
  for (const input of document.querySelectorAll("main [aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    if (input.getAttribute("aria-describedby") === box.id) input.removeAttribute("aria-describedby");
  }
  if (input) {
    input.setAttribute("aria-invalid", "true");
    if (!input.hasAttribute("aria-describedby")) input.setAttribute("aria-describedby", box.id);
    const fold = input.closest("details");
    if (fold) fold.open = true;
    input.focus();
  }
}
