// What the page shows of a result: the verdict, what to expect of the decisions, and the report at its full height.

import { counted } from "./files.js";
import { element, named } from "./names.js";

const part = (id) => document.querySelector(`#${id}`);
const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)}%`;
const count = (number) => Math.round(number).toLocaleString("en");
const MOST = 12; // targets whose reasons are listed

export function showVerdicts(verdicts) {
  const box = part("verdict");
  if (verdicts.length === 1) {
    const [verdict] = verdicts;
    const answer = verdict.shares.length ? sharesTable(verdict.shares) : element("p", verdict.answer);
    box.replaceChildren(badge(verdict), answer, ...reasons(verdict));
    return;
  }
  const counts = ["yes", "care", "no"].map((tone) => verdicts.filter((verdict) => verdict.tone === tone).length);
  const doubted = verdicts.filter(({ tone }) => tone !== "yes");
  const list = document.createElement("ul");
  list.append(...doubted.slice(0, MOST).map((verdict) => {
    const item = document.createElement("li");
    const name = document.createElement("strong");
    name.append(named(verdict.target));
    item.append(name, `: ${verdict.words}. ${verdict.answer}`, ...reasons(verdict));
    return item;
  }));
  const summary = `${counted(verdicts.length, "new population")}: ${counts[0]} of the ${verdicts[0].shares.length ? "answers" : "numbers"} can be published, ${counts[1]} with care, ${counts[2]} not.`;
  const more = doubted.length > MOST ? [element("p", `The report has the reasons for the other ${doubted.length - MOST}.`)] : [];
  box.replaceChildren(element("p", summary), ...(doubted.length ? [list] : []), ...more);
}

// The share of each class, with its interval.
function sharesTable(shares) {
  const table = document.createElement("table");
  table.className = "shares";
  const head = document.createElement("tr");
  const hasSource = shares.some(({ source }) => source);
  const titles = ["Class", "Share of the new population", "Interval", ...(hasSource ? ["Share of the old population"] : [])];
  head.append(...titles.map((title) => Object.assign(element("th", title), { scope: "col" })));
  table.createTHead().append(head);
  table.createTBody().append(...shares.map((one) => {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    name.append(named(one.class));
    const share = document.createElement("td");
    share.append(element("strong", one.share));
    row.append(name, share, element("td", one.interval), ...(hasSource ? [element("td", one.source)] : []));
    return row;
  }));
  return table;
}

function badge({ question, tone, mark, words }) {
  const line = document.createElement("p");
  line.className = `badge ${tone}`;
  const sign = element("span", mark);
  sign.className = "mark";
  sign.setAttribute("aria-hidden", "true");
  const text = element("span", `${question} `);
  text.append(element("strong", words));
  line.append(sign, text);
  return line;
}

function reasons(verdict) {
  if (!verdict.reasons.length) return [];
  const list = document.createElement("ul");
  list.append(...verdict.reasons.map((reason) => element("li", reason)));
  return [list];
}

export function showDecisions(decisions) {
  part("expected").hidden = decisions.length === 0;
  part("class-expected").hidden = true;
  const single = decisions.length === 1 && decisions[0].target === "";
  part("expected").classList.toggle("single", single);
  part("expected").querySelector("tbody").replaceChildren(...decisions.map((one) => {
    const row = document.createElement("tr");
    const name = document.createElement("th");
    name.scope = "row";
    name.append(named(one.target || "new population"));
    row.append(name, ...[
      `${count(one.decided_positive)} of ${count(one.rows)}`,
      expected(one, "true_positives", count),
      expected(one, "precision", percent),
      expected(one, "recall", percent),
    ].map((words) => element("td", words)));
    return row;
  }));
}

// What to expect of the decisions on several classes: a row for each class of each new population.
export function showClassDecisions(decisions) {
  part("expected").hidden = true;
  const box = part("class-expected");
  box.hidden = decisions.length === 0;
  box.classList.toggle("single", decisions.every(({ target }) => target === ""));
  box.querySelector("tbody").replaceChildren(...decisions.map((one) => {
    const row = document.createElement("tr");
    const target = document.createElement("td");
    target.append(named(one.target));
    const name = document.createElement("th");
    name.scope = "row";
    name.append(named(one.class));
    row.append(target, name, ...[
      expected(one, "rows", count),
      count(one.decided),
      expected(one, "right", count),
      expected(one, "precision", percent),
      expected(one, "recall", percent),
    ].map((words) => element("td", words)));
    return row;
  }));
}

function expected(one, name, write) {
  if (one[name] === null) return "unknown";
  const [low, high] = one[`${name}_interval`];
  return `${write(one[name])} (${write(low)} to ${write(high)})`;
}

// The report is as high as its contents, so that the page has one scroll bar; it runs no script, so the page measures it.
const observer = new ResizeObserver(([{ target }]) => {
  part("report").style.height = `${Math.ceil(target.getBoundingClientRect().height) + 2}px`;
});

export function showReport(address) {
  part("report").src = address;
}

part("report").addEventListener("load", () => {
  observer.disconnect();
  const page = part("report").contentDocument?.documentElement;
  if (page) observer.observe(page);
});
