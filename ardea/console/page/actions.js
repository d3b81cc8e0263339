/** What somebody may do: the dry run is shown first, and has to be confirmed. */

import { ask, path } from "./client.js";
import { h, render } from "./dom.js";
import { name, shown } from "./text.js";
import * as units from "./units.js";
import { button, facts, notice, trouble } from "./widgets.js";

/** Milliseconds that an action may take. */
const PATIENCE = 180000;

/** What a kill can be asked for beside. */
const SAVED = [{ key: "savepoint", label: "Copy its state into a savepoint first; if that fails, it goes on" }];

const WORDS = {
  activate: ["Activate", "Its spouts go on."],
  deactivate: ["Deactivate", "Its spouts pause; what they have emitted is still processed."],
  restart: ["Restart", "Processes start again; tuples that were open are replayed."],
  update: ["Rescale", "Its spouts pause, open tuples are processed, then it goes on with the new number of tasks."],
  savepoint: ["Savepoint", "All its state is copied into a folder that stays; rows keep flowing."],
  kill: ["Kill", "Its spouts stop, open tuples may finish, then its processes end. Logs and savepoints stay."],
};

/** The buttons at the head of a topology. */
export function bar(known) {
  const paused = known.state === "PAUSED";
  return h(
    "div",
    { class: "actions", role: "group", "aria-label": "Actions" },
    button(paused ? "Activate" : "Deactivate", () => open(known, paused ? "activate" : "deactivate")),
    button("Rescale", () => open(known, "update", { fields: tasksOf(known) })),
    known.top?.snapshots && savepointButton(known),
    button("Restart", () => open(known, "restart")),
    button("Kill", () => open(known, "kill", { choices: known.top?.snapshots ? SAVED : [] }), { class: "danger" }),
  );
}

export function savepointButton(known) {
  if (known.over) return null;
  return button("Savepoint", () => open(known, "savepoint"));
}

export function restartButton(known, container) {
  if (known.over) return null;
  return button("Restart it", () => open(known, "restart", { given: { container }, what: `container ${container}` }));
}

/** The number of tasks of each component, to be changed. */
function tasksOf(known) {
  return known.components.map(({ component, tasks }) => ({ key: component, label: component, value: tasks }));
}

/** A dialog about one action.  `given`: what is asked for, but for what `fields` ask the person for. */
function open(known, verb, { given = {}, fields = [], choices = [], what = "" } = {}) {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", class: "action" });
  const asks = fields.length + choices.length > 0;
  const asked = { known, id: known.id, verb, given, fields, choices, what, dialog, dry: null, error: null, done: null };
  [asked.state, asked.confirmed] = [asks ? "form" : "asking", false];
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  draw(asked);
  dialog.showModal();
  if (!asks) dryRun(asked);
}

async function dryRun(asked) {
  await step(asked, "asking", "dry", "confirm", {});
}

async function confirm(asked) {
  await step(asked, "doing", "done", "end", { confirm: asked.dry.confirm });
}

async function step(asked, while_, kept, then, more) {
  [asked.state, asked.error, asked.confirmed] = [while_, null, while_ === "doing"];
  draw(asked);
  try {
    asked[kept] = await ask(path("topologies", asked.id, asked.verb), {
      body: { ...asked.given, ...more },
      patience: PATIENCE,
    });
    asked.state = then;
  } catch (error) {
    asked.error = error;
    asked.state = error.status === 409 ? "changed" : "failed";
  }
  draw(asked);
}

function draw(asked) {
  const [title, about] = WORDS[asked.verb];
  const whole = `${title} ${asked.what || name(asked.known.describe?.name ?? asked.known.id)}`;
  render(asked.dialog, [
    h("h2", { id: "dialog-title" }, whole),
    h("p", { class: "muted" }, about),
    body(asked),
    buttons(asked, title),
  ]);
}

function body(asked) {
  if (asked.state === "form") return form(asked);
  const said = [];
  if (asked.state === "asking") said.push(h("p", { role: "status" }, "Asking what would happen …"));
  if (asked.dry !== null) said.push(h("h3", null, "This would happen"), plan(asked.dry));
  if (asked.state === "doing")
    said.push(h("p", { role: "status" }, "It is under way, and goes on when this is closed …"));
  if (asked.state === "changed")
    said.push(notice("warn", "Something else would happen by now. Look again before you confirm."));
  if (asked.error !== null) said.push(trouble(asked.error));
  if (asked.state === "end") said.push(h("div", { role: "status" }, h("h3", null, "Done"), plan(asked.done)));
  return h("div", { class: "dialog-body" }, said);
}

function form(asked) {
  const submit = (event) => {
    event.preventDefault();
    asked.given = { ...asked.given, ...answers(asked, new FormData(event.target)) };
    dryRun(asked);
  };
  return h(
    "form",
    { id: "action-form", on: { submit } },
    h("div", { class: "scale" }, asked.fields.map(tasksField)),
    asked.choices.map(({ key, label }) =>
      h("label", { class: "check" }, h("input", { type: "checkbox", name: key }), label),
    ),
  );
}

function tasksField({ label, key, value }, number) {
  const id = `field-${number}`;
  return [
    h("label", { for: id }, name(label, 60)),
    h("input", { id, name: key, type: "number", min: 1, max: 10000, step: 1, required: true, value }),
  ];
}

function answers({ fields, choices }, values) {
  const changed = fields.filter(({ key, value }) => Number(values.get(key)) !== value);
  const parallelism = Object.fromEntries(changed.map(({ key }) => [key, Number(values.get(key))]));
  const chosen = choices.map(({ key }) => [key, values.has(key)]);
  return { ...(fields.length ? { parallelism } : {}), ...Object.fromEntries(chosen) };
}

function buttons(asked, title) {
  const close = button(asked.confirmed ? "Close" : "Cancel", () => asked.dialog.close(), { autofocus: true });
  const danger = asked.verb === "kill" ? "danger" : "primary";
  const next = {
    form: () => h("button", { type: "submit", form: "action-form", class: "primary" }, "Show what would happen"),
    confirm: () => button(`${title} it`, () => confirm(asked), { class: danger }),
    changed: () => button("Look again", () => dryRun(asked), { class: "primary" }),
    failed: () => button("Try again", () => dryRun(asked)),
  }[asked.state];
  return h("div", { class: "dialog-buttons" }, close, next?.());
}

/** What a dry run or an action says: sentences, and of a change what differs. */
function plan({ does, said, difference }) {
  return [
    h(
      "ul",
      { class: "says" },
      (does ?? said ?? []).map((sentence) => h("li", null, shown(sentence, 2000))),
    ),
    difference && changes(difference),
  ];
}

function changes(difference) {
  const listed = (title, values) => [title, values.length ? values.join(", ") : ""];
  return facts([
    ...difference.components.map(({ component, what, tasks: [before, after] }) => [
      name(component, 60),
      before === after ? (what === "same" ? "" : what) : `${before} → ${units.several(after, "task")}`,
    ]),
    listed("configuration", difference.configuration),
    listed("start", difference.started),
    listed("end", difference.stopped),
    listed("move", difference.moved),
    listed("containers added", difference.containers_added),
    listed("containers removed", difference.containers_removed),
    listed("containers replaced", difference.containers_replaced),
    ["start again", difference.restarted ? "every instance and metrics manager" : ""],
  ]);
}
