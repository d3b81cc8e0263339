/** One component: its lines over the last minutes, what it reads and who reads it, its tasks. */

import { chart } from "../chart.js";
import { h } from "../dom.js";
import * as model from "../model.js";
import { name } from "../text.js";
import * as units from "../units.js";
import { figure, figures, nothing, panel } from "../widgets.js";
import { inspection } from "./inspection.js";
import { lately } from "./spans.js";
import { taskTable } from "./tasks.js";

export function component(known, which) {
  const history = known.remember(which);
  const looks = inspection(known, which, { threads: false });
  return { title: name(which), close: looks.close, draw: () => drawn(known, which, history, looks) };
}

function drawn(known, which, history, looks) {
  const one = known.components.find((each) => each.component === which);
  const row = model.whole(known.top).get(which);
  const totals = known.status?.components?.[which] ?? {};
  if (!one && known.top) return nothing("There is no such component in this topology.");
  return [
    h(
      "h2",
      { class: "subject" },
      name(which),
      one && h("span", { class: "chip" }, `${one.kind}, ${units.several(one.tasks, "task")}`),
    ),
    one?.operations.length > 0 && h("p", { class: "muted" }, name(one.operations.join(" · "), 1000)),
    row && numbers(row, totals),
    lately(history, chartsOf(known, history, which)),
    streams(known, which),
    known.edges.some((edge) => edge.source === which) && looks.draw(),
    panel(
      "Tasks",
      {},
      taskTable(
        known,
        model.tasks(known.top).filter((each) => each.component === which),
        `tasks of ${which}`,
      ),
    ),
  ];
}

function numbers(row, totals) {
  return figures(
    figure("Emitted", units.rate(row.emitted)),
    figure("Executed", units.rate(row.executed)),
    figure("Acked", units.rate(row.acked)),
    figure("Failed", units.rate(row.failed), { kind: row.failed > 0 ? "bad" : "" }),
    figure("Latency, mean", units.seconds(row.latency)),
    figure("Latency, p99", units.seconds(row.latency_p99)),
    figure("Busiest task", units.percent(row.capacity), { kind: row.capacity >= 0.9 ? "warn" : "" }),
    figure("Held back", units.percent(row.back_pressure)),
    figure("Holds back", units.percent(row.initiates), { kind: row.initiates > model.LEAST ? "bad" : "" }),
    figure("Pending", units.count(row.pending)),
    figure("Memory", units.bytes(row.resident_memory_bytes)),
    row.watermark_lag !== null && figure("Watermark lag", units.seconds(row.watermark_lag)),
    totals.windows_fired > 0 && figure("Windows seen", units.count(totals.windows_fired)),
    totals.window_rows_refused > 0 &&
      figure("Rows in no window", units.count(totals.window_rows_refused), {
        kind: "warn",
        title: "late, or without a stamp, since the topology began",
      }),
  );
}

/** The charts of a component or a task. */
export function chartsOf(known, history, which) {
  const common = { times: history.times, redraw: known.redraw };
  const of = (field, words = field) => ({ name: words, values: history.values(which, field) });
  return [
    chart({
      ...common,
      title: "Rows",
      unit: units.rate,
      series: [of("executed"), of("emitted"), of("acked"), of("failed")],
    }),
    chart({
      ...common,
      title: "Latency",
      unit: units.seconds,
      series: [of("latency_p50", "p50"), of("latency_p99", "p99")],
    }),
    chart({
      ...common,
      title: "Shares of the time",
      unit: units.percent,
      least: 1,
      series: [of("capacity"), of("back_pressure", "held back"), of("initiates", "holds back")],
    }),
    chart({ ...common, title: "CPU, cores", unit: units.cores, series: [of("cpu", "cores")] }),
    chart({
      ...common,
      title: "Memory",
      unit: units.bytes,
      base: 2,
      series: [of("resident_memory_bytes", "resident")],
    }),
    chart({ ...common, title: "Waiting input", unit: units.bytes, base: 2, series: [of("queued_bytes", "queued")] }),
    chart({ ...common, title: "Pending", unit: units.count, series: [of("pending")] }),
  ];
}

function streams(known, which) {
  const [reads, read] = [
    known.edges.filter((edge) => edge.target === which),
    known.edges.filter((edge) => edge.source === which),
  ];
  const line = (edge, other, words) =>
    h(
      "li",
      null,
      words,
      h("a", { href: known.to("component", other) }, name(other)),
      edge.stream === "default" ? "" : ` (stream ${name(edge.stream)})`,
      ` · ${name(edge.grouping ?? "")}`,
      edge.rate === null ? "" : h("b", null, ` · ${units.rate(edge.rate)}`),
    );
  if (!reads.length && !read.length) return null;
  return panel(
    "Streams",
    {},
    h(
      "ul",
      { class: "plain" },
      reads.map((edge) => line(edge, edge.source, "reads ")),
      read.map((edge) => line(edge, edge.target, "is read by ")),
    ),
  );
}
