/** Small things that every view shows: states, figures, bars. */

import { h } from "./dom.js";
import { name, shown } from "./text.js";
import * as units from "./units.js";

const MARKS = {
  ok: ["●", ["RUNNING", "HEALTHY", "SUCCEEDED", "running", "live", "done", "up"]],
  wait: ["◌", ["STARTING", "PAUSED", "ENDING", "SUBMITTED", "starting", "backoff", "waiting", "stale", "connecting"]],
  warn: ["▲", ["DEGRADED", "stuck", "silent", "unwatched", "UNKNOWN"]],
  bad: ["✖", ["FAILED", "CRASHING", "UNREACHABLE", "ORPHANED", "KILLED", "dead", "gone", "refused"]],
};
const KINDS = new Map(
  Object.entries(MARKS).flatMap(([kind, [mark, words]]) => words.map((word) => [word, [kind, mark]])),
);

/** A state: a mark, a word and a colour. */
export function state(word, title) {
  if (!word) return h("span", { class: "muted" }, "–");
  const [kind, mark] = KINDS.get(word) ?? ["plain", "○"];
  return h(
    "span",
    { class: `state ${kind}`, title },
    h("span", { class: "mark", "aria-hidden": "true" }, mark),
    name(word),
  );
}

/** A share of 1 as a bar with its number; what is nearly full is marked. */
export function meter(label, share) {
  const known = typeof share === "number";
  const level = !known ? "" : share >= 0.9 ? " full" : share >= 0.7 ? " high" : "";
  return h(
    "span",
    { class: `meter${level}` },
    h("span", { class: "meter-label" }, label),
    h(
      "span",
      { class: "meter-bar", "aria-hidden": "true" },
      h("span", { style: { width: `${known ? 100 * share : 0}%` } }),
    ),
    h("span", { class: "meter-value" }, units.percent(share)),
  );
}

/** A figure with what it is: `812/s acked`. */
export function figure(label, value, { kind = "", title = null } = {}) {
  return h("div", { class: `figure ${kind}`, title }, h("dt", null, label), h("dd", null, value));
}

export function figures(...all) {
  return h("dl", { class: "figures" }, all);
}

/** A list of facts; those without a value are left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    known.map(([label, value]) => h("div", null, h("dt", null, label), h("dd", null, plain(value)))),
  );
}

function plain(value) {
  return value instanceof Node || Array.isArray(value) ? value : shown(value);
}

/** A block with a heading. */
export function panel(title, attributes, ...content) {
  return h("section", { class: "panel", key: `panel ${title}`, ...attributes }, h("h2", null, title), content);
}

/** A sentence about what is not there. */
export function nothing(...text) {
  return h("p", { class: "nothing" }, text);
}

/** Says so of a reading that is not heard any more; nothing of others.  `link`: by which it would be, if no other. */
export function staleNotice(reading, link = null) {
  const connected = link === null || link.state === "live";
  if (!reading || (connected && reading.state !== "stale")) return null;
  const why = shown(reading.why || link?.why, 400);
  return notice("warn", `What is shown here is ${units.age(reading.age(connected))} old. `, why);
}

/** A sentence that somebody has to read.  `kind`: bad, warn or info. */
export function notice(kind, ...content) {
  const mark = { bad: "✖", warn: "▲", info: "ℹ" }[kind];
  return h(
    "div",
    { class: `notice ${kind}` },
    h("span", { class: "mark", "aria-hidden": "true" }, mark),
    h("div", null, content),
  );
}

/** What went wrong with a question to the console. */
export function trouble(error) {
  return notice(
    "bad",
    shown(error.message),
    error.where && ` (${shown(error.where)})`,
    error.hint && h("div", { class: "hint" }, shown(error.hint)),
  );
}

export function button(label, act, attributes = {}) {
  return h("button", { type: "button", on: { click: act }, ...attributes }, label);
}

/** Where things of a topology lie in the page. */
export function link(topology, ...parts) {
  return `#/${["t", topology, ...parts].map(encodeURIComponent).join("/")}`;
}
