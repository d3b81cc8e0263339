/** The log of a process, followed as it is written. */

import { Refused, events, path } from "../client.js";
import { h, placed } from "../dom.js";
import { Repeated } from "../feed.js";
import { name, shown } from "../text.js";
import * as units from "../units.js";
import { button, notice, panel } from "../widgets.js";
import { logOf } from "./containers.js";

/** Asks for the logs of all processes. */
const ALL = "_";
/** Lines that are kept. */
const MOST = 5000;
/** Characters that are shown of a line. */
const LONGEST = 10000;
const LEVELS = ["", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];
const LEVEL = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) |^\{"time": "[^"]*", "level": "([A-Z]+)"/;
/** Escape sequences of colours, as the console has written them down. */
const COLOURS = /\\x1b\[[0-9;:]*m/g;

export function logs(known, which = ALL) {
  const log = new Log(known, which);
  log.begin();
  return {
    title: titleOf(which),
    get repeated() {
      return [log.stream];
    },
    close: () => log.stream.close(),
    draw: () => [chooser(known, which), log.draw()],
  };
}

function titleOf(which) {
  return which === ALL ? "All logs" : `Log of ${name(which)}`;
}

/** All processes whose logs there are. */
function chooser(known, which) {
  const names = [...new Set((known.describe?.processes ?? []).map(logOf))].sort((a, b) =>
    a.localeCompare(b, "en", { numeric: true }),
  );
  const all = [...new Set([...known.components.map((each) => each.component), ...names])];
  const go = (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get("process").trim();
    location.hash = known.to("logs", wanted || ALL);
  };
  return h(
    "form",
    { class: "bar", key: "chooser", on: { submit: go } },
    h("label", { for: "process" }, "Log of"),
    h("input", {
      id: "process",
      name: "process",
      list: "processes",
      value: which === ALL ? "" : which,
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "all, or a component, task, process",
    }),
    h(
      "datalist",
      { id: "processes" },
      all.slice(0, 2000).map((each) => h("option", { value: each })),
    ),
    h("button", { type: "submit" }, "Follow"),
  );
}

/** What stands in a log where nobody listened: the tab was hidden, or the console gone. */
const GAP = "— what was logged here meanwhile is not shown: Search asks for the last lines anew —";

class Log {
  #box = h("div", { class: "log", role: "log", "aria-live": "off", tabindex: 0, own: true, key: Symbol("log") });
  #waiting = [];
  #kept = 0;
  #leftOut = 0;
  #search = "";
  #level = "";
  #follows = true;
  #level_ = "";
  /** The id of the run whose log is in the box; undefined: nobody has said it yet. */
  #run;

  constructor(known, which) {
    [this.known, this.which] = [known, which];
    this.#box.setAttribute("aria-label", titleOf(which));
    this.#box.addEventListener("scroll", () => {
      const box = this.#box;
      const follows = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
      if (follows !== this.#follows) {
        this.#follows = follows;
        known.redraw();
      }
    });
  }

  begin() {
    this.stream?.close();
    this.#box.replaceChildren();
    [this.#kept, this.#leftOut, this.#waiting, this.#level_] = [0, 0, [], ""];
    this.stream = new Repeated((signal, arrived) => this.#follow(signal, arrived), this.known.redraw);
    this.stream.open();
  }

  async #follow(signal, arrived) {
    const asked = new URLSearchParams({ follow: "true", tail: this.#kept ? "0" : "500" });
    if (this.#search) asked.set("search", this.#search);
    if (this.#level) asked.set("level", this.#level);
    const where = `${path("topologies", this.known.id, "logs", this.which)}?${asked}`;
    let missed = this.#kept > 0;
    for await (const { event, data } of events(where, { signal })) {
      if (missed) this.#waiting.push(GAP);
      missed = false;
      if (event === "problem") throw new Refused(500, JSON.parse(data));
      const { lines, left_out } = JSON.parse(data);
      this.#leftOut += left_out ?? 0;
      this.#waiting.push(...lines);
      if (this.#waiting.length > MOST) this.#leftOut += this.#waiting.splice(0, this.#waiting.length - MOST).length;
      arrived();
    }
    throw new Refused(0, { what: "the log has ended" });
  }

  /** Puts what has come into the box; the oldest lines make room. */
  #flush() {
    if (!this.#waiting.length) return;
    const processes = new Set(this.#waiting.filter((line) => line !== GAP).map((line) => line.process));
    const several = processes.size > 1 || this.#box.classList.contains("several");
    this.#box.classList.toggle("several", several);
    this.#box.append(...this.#waiting.map((line) => this.#line(line)));
    this.#kept += this.#waiting.length;
    this.#waiting = [];
    for (; this.#kept > MOST; this.#kept--) this.#box.firstChild.remove();
    if (this.#follows) requestAnimationFrame(() => (this.#box.scrollTop = this.#box.scrollHeight));
  }

  #line(given) {
    if (given === GAP) return h("div", { class: "line" }, GAP);
    const { process, text } = given;
    const found = LEVEL.exec(text);
    if (found) this.#level_ = found[1] ?? found[2];
    const line = h("div", { class: `line ${this.#level_.toLowerCase()}` });
    line.append(h("span", { class: "who" }, `${name(process, 40)} `), shown(text.replace(COLOURS, ""), LONGEST));
    return line;
  }

  draw() {
    const run = this.known.describe?.id;
    if (this.#run !== undefined && run !== this.#run) this.begin();
    this.#run = run;
    this.#flush();
    const { state, why, hint } = this.stream.link;
    const trouble = state === "gone" || state === "refused" || state === "unknown";
    return panel(
      titleOf(this.which),
      { class: "panel log-panel" },
      this.#controls(),
      trouble && notice("bad", shown(why), hint ? ` (${shown(hint)})` : ""),
      this.#leftOut > 0 &&
        notice(
          "warn",
          `${units.several(this.#leftOut, "line")} were left out: they came faster than they can be shown.`,
        ),
      placed(this.#box),
    );
  }

  #controls() {
    const submit = (event) => {
      event.preventDefault();
      const form = new FormData(event.target);
      [this.#search, this.#level] = [form.get("search").trim(), form.get("level")];
      this.begin();
      this.known.redraw();
    };
    return h(
      "form",
      { class: "bar", on: { submit } },
      h("input", {
        type: "search",
        name: "search",
        class: "search",
        "aria-label": "Only lines that contain",
        placeholder: "Only lines that contain …",
        value: this.#search,
        autocomplete: "off",
      }),
      h(
        "label",
        null,
        h("span", { class: "sr" }, "Least level"),
        h(
          "select",
          { name: "level" },
          LEVELS.map((level) => h("option", { value: level, selected: level === this.#level }, level || "every level")),
        ),
      ),
      h("button", { type: "submit" }, "Search"),
      h("span", { class: "muted" }, `${units.several(this.#kept, "line")}${this.#follows ? ", followed" : ""}`),
      !this.#follows &&
        button("To the end", () => ((this.#box.scrollTop = this.#box.scrollHeight), this.known.redraw())),
      button("Clear", () => this.#clear(), { class: "quiet" }),
    );
  }

  #clear() {
    this.#box.replaceChildren();
    this.#kept = 0;
    this.known.redraw();
  }
}
