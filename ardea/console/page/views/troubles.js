/** What is wrong: troubles, exceptions with equal ones together, and what happened last. */

import { ago, ask, download, path } from "../client.js";
import { h } from "../dom.js";
import { Reading, Repeated } from "../feed.js";
import * as model from "../model.js";
import { name, shown } from "../text.js";
import * as units from "../units.js";
import { button, nothing, panel, staleNotice, state, trouble } from "../widgets.js";

/** Seconds between two questions for the exceptions. */
const EVERY = 5;

export function troubles(known) {
  const raised = { reading: null };
  const list = new Repeated(async (signal, arrived) => {
    raised.reading = new Reading(await ask(path("topologies", known.id, "exceptions"), { signal }));
    arrived();
    return EVERY;
  }, known.redraw);
  list.open();
  const packed = new Bundle(known);
  return {
    title: "Troubles",
    repeated: [list],
    close: () => {
      list.close();
      packed.close();
    },
    draw: () => {
      const { health } = known;
      if (!known.describe) return nothing("Nothing has been heard yet.");
      return [
        panel("Health", {}, health ? found(known, health) : nothing("It is over, or nobody can say.")),
        exceptions(known, raised.reading, list.link),
        ends(known),
        stories(known),
        packed.draw(),
      ];
    },
  };
}

function found(known, health) {
  if (!health.troubles.length) return h("p", null, state(health.state), " Nothing is wrong that anybody knows of.");
  return h(
    "ul",
    { class: "plain" },
    health.troubles.map((each) =>
      h(
        "li",
        { class: each.crashing ? "failed" : "" },
        h("b", null, name(each.who)),
        each.since === null ? ": " : ` since ${units.age(ago(each.since))}: `,
        shown(each.why, 1000),
      ),
    ),
  );
}

function exceptions(known, reading, link) {
  const groups = model.grouped(reading?.document.exceptions ?? [], known.status);
  const seen = model.tasks(known.top).filter((row) => row.exceptions > 0);
  return panel(
    "Exceptions",
    {},
    staleNotice(reading, link),
    groups.length
      ? h(
          "ul",
          { class: "exceptions" },
          groups.map((group) => exception(known, group)),
        )
      : nothing(untold(known.status?.erring ?? [], link)),
    seen.length > 0 &&
      h(
        "p",
        null,
        "Raising now: ",
        seen
          .slice(0, 20)
          .map((row, i) => [
            i ? ", " : "",
            h("a", { href: known.to("task", row.task) }, name(row.task)),
            ` (${row.exceptions})`,
          ]),
      ),
  );
}

/** Why no exception is shown; those who may only look are told whose there are. */
function untold(erring, link) {
  const who = erring.length ? `Code of ${name(erring.slice(0, 20).join(", "), 400)} has raised exceptions. ` : "";
  return who + (link.why ? shown(link.why, 400) : "No exception of a task is known.");
}

function exception(known, { title, text, row, times, tasks, last }) {
  const when = last === null ? "" : `, last ${units.age(ago(last))} ago`;
  return h(
    "li",
    null,
    h(
      "div",
      { class: "exception-head" },
      h("b", { class: "failed" }, shown(title, 400)),
      h("span", { class: "chip" }, `${units.several(times, "time")}${when}`),
    ),
    h(
      "div",
      null,
      tasks.slice(0, 20).map((task, i) => [i ? ", " : "", h("a", { href: known.to("task", task) }, name(task))]),
      tasks.length > 20 && ` and ${tasks.length - 20} more`,
    ),
    row && h("div", { class: "why" }, "of the row ", h("code", null, shown(row, 500))),
    text && h("details", null, h("summary", null, "Stack"), h("pre", { tabindex: 0 }, shown(text))),
  );
}

function ends(known) {
  const died = known.describe.processes
    .filter((row) => row.restarts > 0 && row.last_end !== null)
    .sort((a, b) => b.last_end - a.last_end);
  if (!died.length) return null;
  return panel(
    "Processes that have ended",
    {},
    h(
      "ul",
      { class: "plain" },
      died
        .slice(0, 50)
        .map((row) =>
          h(
            "li",
            null,
            h("b", null, name(row.name)),
            row.container === null ? "" : ` in container ${row.container}`,
            `, ${units.several(row.restarts, "restart")}, the last one `,
            `${units.age(ago(row.last_end))} ago: `,
            shown(row.last_reason, 400),
          ),
        ),
    ),
  );
}

function stories(known) {
  const all = Object.entries(known.status?.stories ?? {}).filter(([, events]) => events.length);
  if (!all.length) return null;
  return panel(
    "What happened last",
    {},
    all.slice(0, 40).map(([who, events]) => h("details", null, h("summary", null, name(who)), story(events))),
  );
}

/** What happened last to one of them. */
export function told(known, who) {
  const events = known.status?.stories?.[who];
  return events?.length ? panel("What happened last", {}, story(events)) : null;
}

function story(events) {
  const line = ([ago, what, times]) =>
    h("li", null, `${units.age(ago)} ago: ${shown(what, 1000)}${times > 1 ? ` (${times} times)` : ""}`);
  return h("ol", { class: "plain story" }, events.map(line));
}

/** The archive for somebody else: asked for, saved as a file. */
class Bundle {
  #stop = null;
  #says = "";
  #error = null;

  constructor(known) {
    this.known = known;
  }

  close() {
    this.#stop?.abort();
    this.#stop = null;
  }

  async #fetch() {
    const { known } = this;
    const mine = (this.#stop = new AbortController());
    [this.#says, this.#error] = ["It is being packed …", null];
    known.redraw();
    try {
      const file = `${known.id}-bundle.tar.gz`;
      const packed = await download(path("topologies", known.id, "bundle"), { signal: mine.signal });
      save(packed, file);
      this.#says = `${file}, ${units.bytes(packed.size)}: look before you send it.`;
    } catch (error) {
      [this.#says, this.#error] = ["", mine.signal.aborted ? null : error];
    }
    if (this.#stop === mine) this.#stop = null;
    known.redraw();
  }

  draw() {
    return panel(
      "For somebody else",
      {},
      h("p", { class: "muted" }, "One archive of all that is known of it, with its logs and without secrets."),
      h(
        "div",
        { class: "bar" },
        button("Download a bundle", () => this.#fetch(), { disabled: this.#stop !== null }),
        this.#stop !== null && button("Stop", () => this.close(), { class: "quiet" }),
        h("span", { class: "muted", role: "status" }, shown(this.#says, 400)),
      ),
      this.#error && trouble(this.#error),
    );
  }
}

/** As a file of the browser's folder for downloads. */
function save(content, file) {
  const address = URL.createObjectURL(content);
  const link = h("a", { href: address, download: file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
