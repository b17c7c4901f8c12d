// The cards of files: a file is chosen or dropped, sent at once, and its rows and columns are shown.

import { ask, follow, send } from "./ask.js";
import { fileRoles, suggestName } from "./classes.js";
import { named, shown } from "./names.js";

export const ROLES = ["positive", "unlabeled", "target"];
const cards = {};
let limits = { bytes: Infinity };
let changed = () => {};

export const counted = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export function setUp(about, whenChanged) {
  limits = about;
  changed = whenChanged;
}

// The files that were read without a problem, by role.
export function filesRead() {
  return Object.fromEntries(fileRoles().filter((role) => cards[role]?.file?.look).map((role) => [role, cards[role].file]));
}

export function makeCards() {
  for (const role of ROLES) makeCard(role);
  for (const kind of ["dragover", "drop"]) {
    window.addEventListener(kind, (event) => {
      event.preventDefault(); // otherwise the browser would open the file
      if (kind === "drop") for (const { box } of Object.values(cards)) box.classList.remove("over");
    });
  }
}

export function makeCard(role) {
  const box = document.querySelector(`[data-role="${role}"]`);
  box.append(document.querySelector("#card").content.cloneNode(true));
  const input = box.querySelector("input[type=file]");
  input.id = `${role}-input`;
  input.setAttribute("aria-labelledby", `${role}-pick ${role}-heading`);
  input.setAttribute("aria-describedby", `${role}-help`);
  box.querySelector(".pick span").id = `${role}-pick`;
  const card = (cards[role] = { role, box, input, file: null, turn: 0 });
  input.addEventListener("change", () => {
    if (input.files.length) bring(card, input.files[0]);
    input.value = "";
  });
  box.querySelector(".remove").addEventListener("click", () => {
    remove(card);
    input.focus();
  });
  box.querySelector(".remove").setAttribute("aria-describedby", `${role}-heading`);
  box.addEventListener("dragover", () => box.classList.add("over"));
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length) bring(card, event.dataTransfer.files[0]);
  });
}

export function removeCard(role) {
  const card = cards[role];
  card.turn++;
  forget(card);
  delete cards[role];
}

export async function bringExample(answer) {
  await Promise.all(ROLES.map((role) => {
    const card = cards[role];
    forget(card);
    return look(card, answer.files[role], ++card.turn);
  }));
}

async function bring(card, file) {
  const turn = ++card.turn;
  forget(card);
  changed();
  if (file.size > limits.bytes) {
    show(card, "bad", file.name, `It is larger than ${limits.bytes.toLocaleString("en")} bytes, the limit of this app. Take a random subsample of its rows.`);
    return;
  }
  const bar = card.box.querySelector("progress");
  bar.hidden = false;
  bar.value = 0;
  bar.setAttribute("aria-label", `Sending ${shown(file.name)}`);
  show(card, "", file.name, "Sending …");
  try {
    const query = new URLSearchParams({ role: card.role, name: file.name });
    const stored = await send(`files?${query}`, file, (share) => (bar.value = share));
    if (turn !== card.turn) return drop(stored.id);
    await look(card, stored, turn);
  } catch (error) {
    if (turn === card.turn) show(card, "bad", file.name, error.message);
  } finally {
    if (turn === card.turn) bar.hidden = true;
  }
}

async function look(card, stored, turn) {
  card.file = { id: stored.id, name: stored.name, look: null };
  show(card, "", stored.name, "Reading …");
  const status = await follow(stored.task, ({ ahead }) => {
    if (ahead && turn === card.turn) show(card, "", stored.name, "Waiting for the running job …");
  });
  if (turn !== card.turn) return;
  if (status.state !== "done") {
    drop(stored.id);
    card.file = null;
    show(card, "bad", stored.name, status.message ?? "The file could not be read.");
  } else {
    card.file.look = status.answer;
    suggestName(card.role, stored.name);
    const { rows, columns } = status.answer;
    show(card, "good", stored.name, `${counted(rows, "row")}, ${counted(columns.length, "column")}`);
  }
  changed();
}

function show(card, state, name, words) {
  card.box.classList.toggle("good", state === "good");
  card.box.classList.toggle("bad", state === "bad");
  const text = card.box.querySelector(".read");
  const strong = document.createElement("strong");
  strong.append(named(name));
  text.replaceChildren(...(name ? [strong, shown(words)] : []));
  card.box.querySelector(".remove").hidden = !card.file?.look;
  card.box.querySelector(".pick span").textContent = name ? "Choose another" : "Choose a file";
  card.box.querySelector(".or").hidden = Boolean(name);
}

function forget(card) {
  if (card.file) drop(card.file.id);
  card.file = null;
}

function remove(card) {
  card.turn++;
  forget(card);
  show(card, "", "", "");
  changed();
}

function drop(id) {
  ask("DELETE", `files/${id}`).catch(() => {}); // one that a job still needs goes later
}
