// Several classes: a card for the file of each further class, its name, and its share of the old population.

import { named } from "./names.js";

const MOST = 20;
const FIRST = "positive";
const part = (id) => document.querySelector(`#${id}`);
let roles = [FIRST]; // of the files of classes, in their order
let changed = () => {};

export const classRoles = () => roles;
export const several = () => roles.length > 1;
export const hasRest = () => !several() || !part("no-rest").checked;

// Roles of all files that are needed.
export function fileRoles() {
  return hasRest() ? [...roles, "unlabeled", "target"] : [...roles, "target"];
}

// What the form sends about classes; nothing of a single one.
export function classSettings() {
  if (!several()) return {};
  const classes = roles.map((role) => [role, {
    name: part(`${role}-name`).value.trim(), share: hasRest() ? part(`${role}-share`).value.trim() : "",
  }]);
  return { classes: Object.fromEntries(classes), rest: hasRest() };
}

export function shareFields() {
  return several() && hasRest() ? roles.map((role) => `${role}-share`) : [];
}

// The name of a file is a good guess of the class in it.
export function suggestName(role, file) {
  const input = part(`${role}-name`);
  if (input && !input.value.trim()) {
    input.value = file.replace(/(\.[a-z0-9]{1,7}){1,2}$/i, "");
    showNames();
  }
}

export function setUpClasses(makeCard, removeCard, whenChanged) {
  changed = whenChanged;
  addName(FIRST);
  addShare(FIRST);
  part("add-class").addEventListener("click", () => {
    const number = Math.max(1, ...roles.slice(1).map((role) => Number(role.split("-")[1]))) + 1;
    const role = `${FIRST}-${number}`;
    roles = [...roles, role];
    addCard(role, () => {
      removeCard(role);
      roles = roles.filter((other) => other !== role);
      document.querySelector(`[data-role="${role}"]`).remove();
      part(`${role}-share`).closest("tr").remove();
      update();
      part("add-class").focus();
    });
    makeCard(role);
    addShare(role);
    update();
    part(`${role}-name`).focus();
  });
  part("no-rest").addEventListener("change", update);
  update();
}

function addCard(role, drop) {
  const box = document.createElement("div");
  box.className = "card";
  box.dataset.role = role;
  const heading = document.createElement("h3");
  heading.id = `${role}-heading`;
  heading.textContent = "Known rows of another class";
  const help = document.createElement("p");
  help.id = `${role}-help`;
  help.textContent = "Rows of the old population that certainly are of this class.";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet drop-class";
  button.textContent = "Remove this class";
  button.setAttribute("aria-describedby", `${role}-name`);
  button.addEventListener("click", drop);
  box.append(heading, help, button);
  const others = roles.slice(0, -1);
  document.querySelector(`[data-role="${others.at(-1)}"]`).after(box);
  addName(role);
}

function addName(role) {
  const label = document.createElement("label");
  label.className = "class-name several-classes";
  const input = document.createElement("input");
  input.type = "text";
  input.id = `${role}-name`;
  input.inputMode = "text";
  input.autocomplete = "off";
  input.maxLength = 80;
  input.placeholder = role === FIRST ? "e.g. flu" : "e.g. covid";
  input.addEventListener("input", showNames);
  input.addEventListener("change", () => changed());
  label.append("Name of the class ", input);
  document.querySelector(`[data-role="${role}"]`).append(label);
}

function addShare(role) {
  const row = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  name.id = `${role}-share-name`;
  const cell = document.createElement("td");
  const input = document.createElement("input");
  input.type = "text";
  input.id = `${role}-share`;
  input.inputMode = "decimal";
  input.autocomplete = "off";
  input.placeholder = "not known";
  input.setAttribute("aria-labelledby", `shares-unit ${name.id}`);
  const hint = document.createElement("span");
  hint.className = "hint";
  hint.id = `${role}-share-hint`;
  hint.setAttribute("role", "status");
  cell.append(input, " %", hint);
  row.append(name, cell);
  part("class-shares").querySelector("tbody").append(row);
}

function showNames() {
  for (const [k, role] of roles.entries()) {
    part(`${role}-share-name`).replaceChildren(named(part(`${role}-name`).value.trim() || `class ${k + 1}`));
  }
}

function update() {
  for (const id of ["files", "read", "known"]) part(id).classList.toggle("several", several());
  part("positive-heading").textContent = several() ? "Known rows of one class" : "Known positives";
  part("add-class").disabled = roles.length >= MOST;
  document.querySelector('[data-role="unlabeled"]').hidden = !hasRest();
  for (const element of document.querySelectorAll(".needs-rest")) element.hidden = !hasRest();
  showNames();
  changed();
}
