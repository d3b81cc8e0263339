/** One topology: its head, what is wrong with it, and one of its views below. */

import { ago } from "../client.js";
import { h } from "../dom.js";
import { History } from "../history.js";
import * as actions from "../actions.js";
import * as model from "../model.js";
import { name, shown } from "../text.js";
import * as units from "../units.js";
import { link, notice, state } from "../widgets.js";
import { component } from "./component.js";
import { containers, container } from "./containers.js";
import { logs } from "./logs.js";
import { overview } from "./overview.js";
import { jobs } from "./jobs.js";
import { snapshots } from "./snapshots.js";
import { task, tasks } from "./tasks.js";
import { troubles } from "./troubles.js";

const TABS = [
  ["", "Overview", overview],
  ["tasks", "Tasks", tasks],
  ["containers", "Containers", containers],
  ["logs", "Logs", logs],
  ["snapshots", "Snapshots", snapshots],
  ["troubles", "Troubles", troubles],
  ["jobs", "Jobs", jobs],
];
const INNER = { component: [component, ""], task: [task, "tasks"], container: [container, "containers"] };

/** `parts`: what stands after the topology in the address. */
export function topology(page, feed, parts) {
  const [section = "", ...rest] = parts;
  const known = knownOf(page, feed);
  const [opens, tab] = INNER[section] ?? [TABS.find(([key]) => key === section)?.[2] ?? overview, section];
  const inner = opens(known, ...rest);
  const repeated = () => [known.history, ...(inner.repeated ?? [])].filter(Boolean);
  return {
    title: `${inner.title} · ${name(feed.topology, 60)}`,
    link: feed.link,
    get repeated() {
      return repeated();
    },
    get age() {
      return known.oldest();
    },
    again: () => [feed, ...repeated()].forEach((each) => each.again()),
    close: () => [known.history, inner].forEach((each) => each?.close?.()),
    draw: () => [top(known, tab), h("div", { class: "view", key: section }, inner.draw())],
  };
}

/** What views see of a topology. */
function knownOf(page, feed) {
  return {
    page,
    feed,
    /** Of the run that is shown; its name, as long as none is. */
    get id() {
      return this.describe?.id ?? feed.topology;
    },
    redraw: page.redraw,
    history: null,
    to: (...parts) => link(feed.topology, ...parts),
    get top() {
      return feed.document("top");
    },
    get describe() {
      return feed.document("topology");
    },
    get status() {
      return feed.document("topology")?.status ?? null;
    },
    /** The worse of what describes it and of its figures. */
    get reading() {
      const heard = [feed.readings.topology, feed.readings.top].filter(Boolean);
      const worse = (state) => heard.find((each) => each.state === state);
      return worse("over") ?? worse("stale") ?? heard[0] ?? null;
    },
    get over() {
      return this.reading?.state === "over";
    },
    /** The figures, as long as they are present. */
    get present() {
      return !this.over && feed.readings.top?.state === "live" ? this.top : null;
    },
    /** Of a run that is gone nobody knows what became of it. */
    get state() {
      return this.over && this.describe?.running ? null : (this.present?.state ?? this.describe?.state);
    },
    get health() {
      return this.over ? null : (this.present?.health ?? this.describe?.health);
    },
    get components() {
      return model.components(feed.document("plan"), feed.document("top"));
    },
    get edges() {
      return model.edges(feed.document("plan"), feed.document("top"));
    },
    /** Begins to keep samples of these; none: of all components. */
    remember(...names) {
      this.history = new History(this, names, page.redraw);
      this.history.open();
      return this.history;
    },
    /** Seconds since all that is shown was known to be so; null: there is nothing. */
    oldest() {
      const heard = [feed.readings.topology, feed.readings.top].filter(Boolean);
      const ages = heard.map((reading) => reading.age(false));
      return ages.length ? Math.max(...ages) : null;
    },
  };
}

function top(known, tab) {
  const { describe, health } = known;
  return h(
    "div",
    { class: "top", key: "top" },
    h(
      "div",
      { class: "title" },
      h("h1", null, name(describe?.name ?? known.id)),
      state(known.state),
      health && state(health.state),
      stale(known),
      h("span", { class: "grow" }),
      describe?.running && !known.over && actions.bar(known),
    ),
    h("p", { class: "muted sub" }, subtitle(describe, known)),
    tabs(known, tab, health),
    notices(known, health),
  );
}

function subtitle(describe, known) {
  if (!describe)
    return known.feed.link.state === "connecting" ? "Asking the console …" : "Nothing has been heard of it yet.";
  const age = describe.submitted_at ? ago(Date.parse(describe.submitted_at) / 1000) : null;
  const master = describe.status?.acting ? `${describe.status.acting} acts, term ${describe.status.term}` : null;
  return [
    describe.id,
    age !== null && `submitted ${units.age(age)} ago${describe.submitted_by ? ` by ${describe.submitted_by}` : ""}`,
    describe.version && `Ardea ${describe.version}`,
    master,
  ]
    .filter(Boolean)
    .map((text) => name(text, 120))
    .join(" · ");
}

/** A mark on what is not heard any more. */
function stale({ reading, over }) {
  if (!reading || reading.state === "live") return null;
  if (over) return h("span", { class: "chip" }, "over: what was said of it last");
  return h("span", { class: "chip warn" }, `stale, ${units.age(reading.age(true))} old`);
}

function tabs(known, tab, health) {
  const marks = { troubles: (health?.troubles?.length ?? 0) + (known.status?.erring?.length ?? 0) };
  return h(
    "nav",
    { class: "tabs", "aria-label": "Views of this topology" },
    TABS.map(([key, title]) =>
      h(
        "a",
        { href: known.to(...(key ? [key] : [])), "aria-current": key === tab ? "page" : null },
        title,
        marks[key] > 0 && h("span", { class: "count" }, String(marks[key])),
      ),
    ),
  );
}

/** What somebody has to know before anything else. */
function notices(known, health) {
  const { describe, feed } = known;
  const status = known.over ? null : known.status;
  const found = [];
  const reading = feed.readings.topology;
  if (reading?.state === "stale" && reading.why && feed.link.state === "live") {
    found.push(
      notice(
        "warn",
        h("b", null, "The master does not answer. "),
        `${shown(reading.why)} What is shown is ${units.age(reading.age(true))} old.`,
      ),
    );
  }
  for (const [component, { tasks: all }] of model.culprits(known.present)) {
    found.push(held(known, component, all[0], all.length - 1));
  }
  found.push(doing(known));
  if (known.state === "PAUSED") {
    found.push(notice("info", h("b", null, "Its spouts are paused"), " by `deactivate`; `activate` lets them go on."));
  }
  const update = status?.update;
  if (update && ["draining", "switching", "putting back"].includes(update.step)) {
    found.push(
      notice(
        "info",
        h("b", null, `An update is ${update.step}. `),
        update.late.length ? `It waits for ${name(update.late.join(", "), 200)}.` : "",
      ),
    );
  }
  const missing = [
    ...(status?.missing_containers ?? []).map((number) => `container ${number}`),
    ...(status?.silent_tasks ?? []),
  ];
  if (missing.length) found.push(notice("warn", h("b", null, "Not registered: "), name(missing.join(", "), 300)));
  for (const each of (health?.troubles ?? []).slice(0, 3)) {
    const since = each.since === null ? "" : ` since ${units.age(ago(each.since))}`;
    found.push(
      notice(each.crashing ? "bad" : "warn", h("b", null, `${name(each.who)}${since}: `), shown(each.why, 400)),
    );
  }
  const more = (health?.troubles?.length ?? 0) - 3;
  if (more > 0) found.push(h("p", null, h("a", { href: known.to("troubles") }, `${more} more troubles`)));
  if (describe && !describe.running && describe.reason)
    found.push(notice("info", h("b", null, "It is over: "), shown(describe.reason, 1000)));
  return h("div", { class: "notices", key: "notices" }, found);
}

/** The verb that is under way, whoever has asked for it. */
function doing(known) {
  const { document: action, state: heard } = known.feed.readings.action ?? {};
  if (heard !== "live" || action.state !== "running") return null;
  return notice("info", h("b", null, `${action.verb} is under way. `), shown(action.said.at(-1) ?? "", 400));
}

/** The sentence that names who holds the spouts back, whom, and since when. */
function held(known, component, worst, others) {
  const slow = worst.capacity >= 0.7;
  const why = worst.idle_since
    ? `It has processed nothing for ${units.age(ago(worst.idle_since))}: its stacks say where it stands.`
    : `It works for ${units.percent(worst.capacity)} of the time: `;
  const then = slow ? "too slow, more tasks would help." : "it waits for something, its stacks say for what.";
  return notice(
    "bad",
    h("a", { href: known.to("task", worst.task) }, h("b", null, name(worst.task))),
    ` holds back ${name(worst.spouts.join(", "), 300) || "the spouts"} for ${units.percent(worst.share)} of the time`,
    `, since ${units.clock(worst.since)} (${units.age(ago(worst.since))}): `,
    `${units.bytes(worst.queued_bytes)} wait for it. `,
    why,
    worst.idle_since ? "" : then,
    others > 0 && ` So do ${units.several(others, "other task")} of ${name(component)}.`,
  );
}
