/** The graph of a topology, its figures, and a line for each component. */

import { chart } from "../chart.js";
import { h } from "../dom.js";
import { graph } from "../graph.js";
import * as model from "../model.js";
import { table } from "../table.js";
import { name } from "../text.js";
import * as units from "../units.js";
import { figure, figures, meter, nothing, panel } from "../widgets.js";
import { lately } from "./spans.js";

export function overview(known) {
  const history = known.remember();
  return { title: "Overview", draw: () => drawn(known, history) };
}

function drawn(known, history) {
  const { top, components: all } = known; // the plan is known a second before the first figures
  if (!top && !all.length) return nothing("Its plan and its figures have not been heard yet.");
  const rows = model.whole(top);
  return [
    numbers(known, top ? model.sums(top, all) : {}),
    panel(
      "Graph",
      { class: "panel graph-panel" },
      graph({
        components: all,
        edges: known.edges,
        rows,
        culprits: model.culprits(top),
        link: (each) => known.to("component", each),
        redraw: known.redraw,
      }),
    ),
    panel("Components", {}, componentTable(known, all, rows)),
    lately(history, charts(known, all, history)),
  ];
}

function numbers(known, sums) {
  const snapshots = known.top?.snapshots;
  const last = snapshots?.last;
  return figures(
    figure("Emitted", units.rate(sums.emitted)),
    figure("Acked", units.rate(sums.acked)),
    figure("Failed", units.rate(sums.failed), { kind: sums.failed > 0 ? "bad" : "" }),
    figure("Latency, p99", units.seconds(sums.latency)),
    figure("Open trees", units.count(sums.pending)),
    figure("Busiest", units.percent(sums.capacity), { kind: sums.capacity >= 0.9 ? "warn" : "" }),
    figure("CPU, cores", units.cores(sums.cpu)),
    figure("Memory", units.bytes(sums.memory)),
    snapshots &&
      figure("Snapshot", last?.ago === null || last?.ago === undefined ? "–" : `${units.age(last.ago)} old`),
    last?.bytes && figure("State", units.bytes(last.bytes)),
  );
}

function componentTable(known, all, rows) {
  const row = (each) => rows.get(each.component) ?? {};
  const number = (title, field, unit, hint) => ({
    title,
    hint,
    number: true,
    by: (each) => row(each)[field] ?? null,
    cell: (each) => unit(row(each)[field]),
  });
  return table({
    id: `components ${known.id}`,
    label: "Components",
    rows: all,
    key: (each) => each.component,
    text: all.length > 8 ? (each) => each.component : null,
    redraw: known.redraw,
    tone: (each) => (row(each).failed > 0 || row(each).exceptions > 0 ? "failing" : ""),
    columns: [
      {
        title: "Component",
        by: (each) => each.component,
        cell: (each) => h("a", { href: known.to("component", each.component) }, name(each.component)),
      },
      { title: "Kind", by: (each) => each.kind, cell: (each) => each.kind },
      { title: "Tasks", number: true, by: (each) => each.tasks, cell: (each) => units.count(each.tasks) },
      ...numberColumns(number),
    ],
  });
}

/** The columns that components and tasks have alike. */
export function numberColumns(number) {
  return [
    number("Emitted", "emitted", units.rate),
    number("Executed", "executed", units.rate),
    number("Acked", "acked", units.rate),
    number("Failed", "failed", units.rate),
    number("Latency", "latency", units.seconds, "the mean"),
    number("p99", "latency_p99", units.seconds),
    number("Capacity", "capacity", (share) => meter("", share), "the share of the time at work"),
    number("Held back", "back_pressure", units.percent, "the share of the time"),
    number("Holds back", "initiates", units.percent, "the share of the time in which it held spouts back"),
    number("Pending", "pending", units.count),
    number("CPU", "cpu", units.cores, "cores"),
    number("Memory", "resident_memory_bytes", units.bytes),
  ];
}

function charts(known, all, history) {
  const spouts = all.filter((each) => each.kind === "spout").map((each) => each.component);
  const add = (names, field) => together(history, names, field, (a, b) => a + b);
  const most = (names, field) => together(history, names, field, (a, b) => Math.max(a, b));
  const every = all.map((each) => each.component);
  const common = { times: history.times, redraw: known.redraw };
  return [
    chart({
      ...common,
      title: "Spouts",
      unit: units.rate,
      series: [
        { name: "emitted", values: add(spouts, "emitted") },
        { name: "acked", values: add(spouts, "acked") },
        { name: "failed", values: add(every, "failed") },
      ],
    }),
    chart({
      ...common,
      title: "Complete latency",
      unit: units.seconds,
      series: [
        { name: "p50", values: most(spouts, "latency_p50") },
        { name: "p99", values: most(spouts, "latency_p99") },
      ],
    }),
    chart({
      ...common,
      title: "Busiest and held back",
      unit: units.percent,
      least: 1,
      series: [
        { name: "capacity", values: most(every, "capacity") },
        { name: "spouts held back", values: most(spouts, "back_pressure") },
      ],
    }),
    chart({
      ...common,
      title: "CPU of tasks, cores",
      unit: units.cores,
      series: [{ name: "all tasks", values: add(every, "cpu") }],
    }),
    chart({
      ...common,
      title: "Memory of tasks",
      unit: units.bytes,
      base: 2,
      series: [{ name: "all tasks", values: add(every, "resident_memory_bytes") }],
    }),
    chart({
      ...common,
      title: "Waiting input",
      unit: units.bytes,
      base: 2,
      series: [{ name: "all tasks", values: add(every, "queued_bytes") }],
    }),
  ];
}

function together(history, names, field, with_) {
  const all = names.map((each) => history.values(each, field));
  return history.times.map((_, i) => {
    const values = all.map((each) => each[i]).filter((value) => value !== null);
    return values.length ? values.reduce(with_) : null;
  });
}
