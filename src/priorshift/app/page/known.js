// The form: what the user knows, and which columns have a meaning.

import { named, shown } from "./names.js";

const NONE = "";
const IDENTICAL = "\u0000identical"; // no column has that name
const HINTS = { "value-hint": ["value"], "range-hint": ["low", "high"], "threshold-hint": ["threshold"] };
const field = (id) => document.querySelector(`#${id}`);
const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;

class Wrong extends Error {
  constructor(message, input) {
    super(message);
    this.input = input;
  }
}

function number(id, what) {
  const input = field(id);
  if (input.value.trim() === "" || !input.validity.valid) throw new Wrong(`${what} Fill it in.`, input);
  return input.valueAsNumber;
}

function share(id, what, such) {
  const message = `${what} must be between 0 and 100%, such as ${such}.`;
  const input = field(id);
  if (input.valueAsNumber <= 0 || input.valueAsNumber >= 100) throw new Wrong(message, input);
  return Number((number(id, message) / 100).toPrecision(12)); // 12.3 / 100 is 0.123
}

function range() {
  const isEmpty = field("low").value.trim() === "" && !field("low").validity.badInput; // text also has an empty value
  const isAtMost = isEmpty || field("low").valueAsNumber === 0;
  const low = isAtMost ? 0 : share("low", "The lower end of the range", 10);
  const high = share("high", "The upper end of the range", 30);
  if (low >= high) throw new Wrong("The lower end of the range must be below the upper one, such as 10 to 30%.", field("low"));
  return { low, high };
}

function prior() {
  switch (chosen("prior")) {
    case "value":
      return { value: share("value", "The share of the old population", 20) };
    case "range":
      return range();
    case "counts":
      return {
        positives: number("positives", "How many had it must be a whole number."),
        rows: number("rows", "How many were examined must be a whole number."),
      };
    default:
      return null;
  }
}

// The settings that decide how columns are used.
export function columnSettings() {
  const scenario = chosen("scenario");
  const shared = scenario === "censoring" ? NONE : field("shared").value;
  const values = { scenario, shared: shared === IDENTICAL ? { identical: true } : shared || null };
  for (const use of ["weights", "groups", "audit", "by"]) values[use] = field(use).value || null;
  const left = [...document.querySelectorAll("#drop input:checked")].map((box) => box.value);
  return { ...values, drop: left };
}

export function settings() {
  const values = { ...columnSettings(), prior: prior() };
  values.confidence = share("confidence", "The confidence of the interval", 95);
  values.seed = number("seed", "The seed must be a whole number from 0 on.");
  values.threshold = null;
  if (field("threshold").value.trim() || !field("threshold").validity.valid) {
    values.threshold = share("threshold", "The share that matters", 10);
  }
  return values;
}

// Whoever writes 0.22 may mean 22 in 100. The value is used as it is, since things can be that rare.
export function showHints() {
  for (const [id, inputs] of Object.entries(HINTS)) {
    const words = hint(Math.max(...inputs.map((input) => field(input).valueAsNumber || 0)));
    if (field(id).textContent !== words) field(id).textContent = words;
  }
}

function hint(percent) {
  if (!(percent > 0 && percent < 1)) return "";
  const of = Math.max(1000, 10 ** Math.ceil(2 - Math.log10(percent)));
  const meant = Number((100 * percent).toPrecision(6));
  return `That is ${percent}%, about ${Math.round((percent / 100) * of)} in ${of.toLocaleString("en")}. For ${meant} in 100 write ${meant}.`;
}

export function fillIn(values) {
  document.querySelector(`#prior-value`).checked = true;
  field("value").value = values.prior.value * 100;
  field("shared").value = values.shared;
}

// Which columns can have which use, by the files that have them.
export function offerColumns(files) {
  const names = Object.fromEntries(
    Object.entries(files).map(([role, file]) => [role, file.look.named ? file.look.columns.map((c) => c.name) : []]),
  );
  const every = [...new Set(Object.values(names).flat())];
  const has = (role) => (name) => names[role].includes(name);
  offer("shared", every.filter(has("positive")).filter(has("unlabeled")), "nobody, or not known", [
    [IDENTICAL, "rows with the same values are the same"],
  ]);
  offer("by", names.target, "nothing, there is one");
  offer("groups", every.filter((name) => Object.keys(names).every((role) => has(role)(name))), "no rows belong together");
  offer("weights", every, "none, all rows count the same");
  offer("audit", every.filter((name) => has("unlabeled")(name) || has("target")(name)), "none");
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
  const place = error?.input?.closest("fieldset, .grid > div");
  if (place) place.append(box);
  else field("go").before(box);
  box.hidden = !error;
  box.textContent = error ? shown(error.message) : "";
  for (const input of document.querySelectorAll("#settings [aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    if (input.getAttribute("aria-describedby") === box.id) input.removeAttribute("aria-describedby");
  }
  if (error?.input) {
    error.input.setAttribute("aria-invalid", "true");
    if (!error.input.hasAttribute("aria-describedby")) error.input.setAttribute("aria-describedby", box.id);
    const fold = error.input.closest("details");
    if (fold) fold.open = true;
    error.input.focus();
  }
}
