/** What somebody may do: the dry run is shown first, and has to be confirmed. */

import { ask, path } from "./client.js";
import { h, render } from "./dom.js";
import { name, shown } from "./text.js";
import * as units from "./units.js";
import { button, notice, trouble } from "./widgets.js";

/** Milliseconds that an action may take. */
const PATIENCE = 180000;

const WORDS = {
  activate: ["Activate", "Its spouts go on."],
  deactivate: ["Deactivate", "Its spouts pause; what they have emitted is still processed."],
  restart: ["Restart", "Processes start again; tuples that were open are replayed."],
  update: ["Rescale", "Its spouts pause, open tuples are processed, then it goes on with the new number of tasks."],
  savepoint: ["Savepoint", "All its state is copied into a folder that stays; rows keep flowing."],
  kill: ["Kill", "Its spouts stop, open tuples may finish, then its processes end. Logs and savepoints stay."],
};

/** The buttons at the head of a topology. */
export function bar(known, state) {
  const paused = state === "PAUSED";
  return h(
    "div",
    { class: "actions", role: "group", "aria-label": "Actions" },
    button(paused ? "Activate" : "Deactivate", () => open(known, paused ? "activate" : "deactivate")),
    button("Rescale", () => open(known, "update", { fields: tasksOf(known) })),
    known.top?.snapshots && savepointButton(known),
    button("Restart", () => open(known, "restart")),
    button("Kill", () => open(known, "kill"), { class: "danger" }),
  );
}

export function savepointButton(known) {
  return button("Savepoint", () => open(known, "savepoint"));
}

export function restartButton(known, container) {
  return button("Restart it", () => open(known, "restart", { given: { container }, what: `container ${container}` }));
}

/** The number of tasks of each component, to be changed. */
function tasksOf(known) {
  return known.components.map(({ component, tasks }) => ({ key: component, label: component, value: tasks }));
}

/** A dialog about one action.  `given`: what is asked for, but for what `fields` ask the person for. */
function open(known, verb, { given = {}, fields = [], what = "" } = {}) {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", class: "action" });
  const asked = {
    known,
    verb,
    given,
    fields,
    what,
    dialog,
    state: fields.length ? "form" : "asking",
    dry: null,
    error: null,
    done: null,
  };
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  draw(asked);
  dialog.showModal();
  if (!fields.length) dryRun(asked);
}

async function dryRun(asked) {
  await step(asked, "asking", "dry", "confirm", {});
}

async function confirm(asked) {
  await step(asked, "doing", "done", "end", { confirm: asked.dry.confirm });
}

async function step(asked, while_, kept, then, more) {
  [asked.state, asked.error] = [while_, null];
  draw(asked);
  try {
    asked[kept] = await ask(path("topologies", asked.known.id, asked.verb), {
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
  if (asked.state === "doing") said.push(h("p", { role: "status" }, "It is under way …"));
  if (asked.state === "changed")
    said.push(notice("warn", "Something else would happen by now. Look again before you confirm."));
  if (asked.error !== null) said.push(trouble(asked.error));
  if (asked.state === "end") said.push(h("div", { role: "status" }, h("h3", null, "Done"), plan(asked.done)));
  return h("div", { class: "dialog-body" }, said);
}

function form(asked) {
  const submit = (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    const changed = asked.fields.filter((field) => Number(values.get(field.key)) !== field.value);
    asked.given = {
      ...asked.given,
      parallelism: Object.fromEntries(changed.map((field) => [field.key, Number(values.get(field.key))])),
    };
    if (changed.length) dryRun(asked);
  };
  return h(
    "form",
    { id: "action-form", class: "scale", on: { submit } },
    asked.fields.map((field, number) => [
      h("label", { for: `field-${number}` }, name(field.label, 60)),
      h("input", {
        id: `field-${number}`,
        name: field.key,
        type: "number",
        min: 1,
        max: 10000,
        step: 1,
        required: true,
        value: field.value,
      }),
    ]),
  );
}

function buttons(asked, title) {
  const close = button(asked.state === "end" ? "Close" : "Cancel", () => asked.dialog.close(), { autofocus: true });
  const danger = asked.verb === "kill" ? "danger" : "primary";
  const next = {
    form: () => h("button", { type: "submit", form: "action-form", class: "primary" }, "Show what would happen"),
    confirm: () => button(`${title} it`, () => confirm(asked), { class: danger }),
    changed: () => button("Look again", () => dryRun(asked), { class: "primary" }),
    failed: () => button("Try again", () => dryRun(asked)),
  }[asked.state];
  return h("div", { class: "dialog-buttons" }, close, next?.());
}

/** Whatever a dry run or an action says, as a list: words of the console, and fields of its document. */
function plan(document) {
  const { confirm: _, ...said } = document;
  return h(
    "dl",
    { class: "facts" },
    Object.entries(said)
      .filter(([, value]) => !isEmpty(value))
      .map(([key, value]) => fact(key, value)),
  );
}

function fact(key, value) {
  return h("div", null, h("dt", null, name(key.replaceAll("_", " "))), h("dd", null, text(value)));
}

function text(value) {
  if (Array.isArray(value))
    return value.some((each) => typeof each === "object")
      ? h(
          "ul",
          { class: "plain" },
          value.map((each) => h("li", null, text(each))),
        )
      : shown(value.join(", "), 2000);
  if (value !== null && typeof value === "object") {
    if ("component" in value && Array.isArray(value.tasks)) {
      const [before, after] = value.tasks;
      const tasks = units.several(after, "task");
      return `${name(value.component)}: ${before === after ? `${tasks}, ${value.what}` : `${before} → ${tasks}`}`;
    }
    return h(
      "dl",
      { class: "facts" },
      Object.entries(value)
        .filter(([, each]) => !isEmpty(each))
        .map(([key, each]) => fact(key, each)),
    );
  }
  return shown(typeof value === "boolean" ? (value ? "yes" : "no") : value, 2000);
}

function isEmpty(value) {
  return value === null || value === "" || value === false || (Array.isArray(value) && value.length === 0);
}
