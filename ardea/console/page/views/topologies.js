/** All topologies: how each of them is doing. */

import { ago, ask, path } from "../client.js";
import { h } from "../dom.js";
import { Feed, Repeated } from "../feed.js";
import { table } from "../table.js";
import { name, shown } from "../text.js";
import * as units from "../units.js";
import { figure, figures, link, notice, staleNotice, state } from "../widgets.js";

/** Topologies whose rates are asked for; those of more are shown on their own pages only. */
const MOST = 20;
const chosen = { running: false };

/** What those that run emit and fail.  `tops`: by id, those that are present. */
class Rates extends Repeated {
  tops = new Map();

  fade() {
    this.tops.clear();
  }
}

export function topologies(page) {
  const list = new Feed("events", page.redraw);
  const rows = () => list.document("topologies")?.topologies ?? null;
  const rates = new Rates(async (signal, arrived) => {
    const running = (rows() ?? []).filter((row) => row.running && !hasRate(row)).slice(0, MOST);
    await Promise.all(running.map((row) => rateOf(row, rates.tops, signal)));
    arrived();
    return rows() === null ? 0.2 : 10;
  }, page.redraw);
  const known = { tops: rates.tops, rows };
  list.open();
  rates.open();
  return {
    title: "Topologies",
    link: list.link,
    repeated: [list, rates],
    get age() {
      return list.readings.topologies?.age(false) ?? null;
    },
    again: () => list.again(),
    close: () => [list, rates].forEach((each) => each.close()),
    draw: () => drawn(page, known, list),
  };
}

function hasRate(row) {
  return typeof row.acked === "number" || typeof row.emitted === "number";
}

async function rateOf(row, tops, signal) {
  try {
    const top = await ask(path("topologies", row.id, "top"), { signal });
    const whole = top.rows.filter((each) => each.component && each.task === null);
    const spouts = sources(top);
    const sum = (rows, field) => rows.reduce((total, each) => total + each[field], 0);
    const first = whole.filter((each) => spouts.has(each.component) || whole.length === 1);
    const said = { emitted: sum(first, "emitted"), failed: sum(whole, "failed") };
    if (top.reading.state === "live") tops.set(row.id, said);
    else tops.delete(row.id);
  } catch {
    tops.delete(row.id); // its own page says why
  }
}

/** The components that read from nobody. */
function sources({ edges }) {
  const targets = new Set(edges.map((edge) => edge.target));
  return new Set(edges.map((edge) => edge.source).filter((each) => !targets.has(each)));
}

function drawn(page, known, list) {
  const all = known.rows() ?? [];
  const ill = all.filter((row) => row.running && row.health && row.health.state !== "HEALTHY");
  return h(
    "div",
    { class: "view" },
    h("h1", null, "Topologies"),
    staleNotice(list.readings.topologies),
    list.document("topologies")?.after &&
      notice("info", `Only ${units.count(all.length)} are shown, those that run first; \`ardea list\` has all.`),
    known.rows() !== null &&
      figures(
        figure("Running", units.count(all.filter((row) => row.running).length)),
        figure("Not healthy", units.count(ill.length), { kind: ill.length ? "warn" : "" }),
        figure("Over", units.count(all.filter((row) => !row.running).length)),
      ),
    known.rows() === null
      ? h(
          "p",
          { class: "nothing" },
          list.link.state === "connecting" ? "Asking the console …" : "Nothing has been heard yet.",
        )
      : h("section", { class: "panel" }, listed(page, known, all)),
  );
}

function listed(page, known, all) {
  const rows = chosen.running ? all.filter((row) => row.running) : all;
  const of = (row, field) => (row.running ? (row[field] ?? known.tops.get(row.id)?.[field] ?? null) : null);
  const only = h(
    "label",
    { class: "check" },
    h("input", {
      type: "checkbox",
      checked: chosen.running,
      on: {
        change: (event) => {
          chosen.running = event.target.checked;
          page.redraw();
        },
      },
    }),
    "Running only",
  );
  return table({
    id: "topologies",
    label: "All topologies",
    find: "Search by name, id, person or file",
    rows,
    key: (row) => row.id,
    text: (row) => [row.name, row.id, row.submitted_by, row.location, row.state, row.health?.state].join(" "),
    redraw: page.redraw,
    extra: only,
    tone: (row) => (row.running ? "" : "past"),
    empty: "No topology has been submitted here. `ardea submit FILE` does so.",
    columns: [
      { title: "Name", by: (row) => row.name, cell: (row) => h("a", { href: link(row.id) }, name(row.name)) },
      {
        title: "State",
        by: (row) => row.state ?? "",
        cell: (row) => state(row.state, row.problem && shown(row.problem, 400)),
      },
      { title: "Health", by: (row) => row.health?.state ?? "", cell: health },
      {
        title: "Emitted",
        number: true,
        by: (row) => of(row, "emitted"),
        cell: (row) => units.rate(of(row, "emitted")),
      },
      { title: "Failed", number: true, by: (row) => of(row, "failed"), cell: (row) => bad(of(row, "failed")) },
      { title: "Age", number: true, by: (row) => since(row), cell: (row) => units.age(since(row)) },
      { title: "By", by: (row) => row.submitted_by ?? "", cell: (row) => row.submitted_by },
      { title: "Id", by: (row) => row.id, cell: (row) => h("code", null, name(row.id)) },
    ],
  });
}

function health(row) {
  if (!row.health) return null;
  const first = row.health.troubles?.[0];
  return [
    state(row.health.state),
    first && h("span", { class: "why" }, ` ${name(`${first.who}: ${first.why}`, 90)}`),
  ].filter(Boolean);
}

function bad(value) {
  return value > 0 ? h("span", { class: "failed" }, units.rate(value)) : units.rate(value);
}

function since(row) {
  return row.submitted_at ? ago(Date.parse(row.submitted_at) / 1000) : null;
}
