/** All tasks of a topology, and one of them. */

import { ago } from "../client.js";
import { h } from "../dom.js";
import * as model from "../model.js";
import { table } from "../table.js";
import { name } from "../text.js";
import * as units from "../units.js";
import { facts, figure, figures, nothing, panel, state } from "../widgets.js";
import { chartsOf } from "./component.js";
import { inspection } from "./inspection.js";
import { numberColumns } from "./overview.js";
import { lately } from "./spans.js";
import { told } from "./troubles.js";

export function tasks(known) {
  return {
    title: "Tasks",
    draw: () =>
      known.top
        ? panel("Tasks", {}, taskTable(known, model.tasks(known.top), `tasks ${known.id}`))
        : nothing("Its tasks have not been heard yet."),
  };
}

/** Tasks with what they do now.  `rows`: of `top`. */
export function taskTable(known, rows, id) {
  const running = model.processes(known.describe);
  const number = (title, field, unit, hint) => ({
    title,
    hint,
    number: true,
    by: (row) => row[field],
    cell: (row) => unit(row[field]),
  });
  const state_ = (row) => running.get(row.task)?.state ?? null;
  return table({
    id,
    label: "Tasks",
    find: "Search by task, component, container or state",
    rows,
    key: (row) => row.task,
    text: (row) => `${row.task} ${row.component} container-${row.container} ${state_(row) ?? ""}`,
    redraw: known.redraw,
    tone: (row) => (row.failed > 0 || row.exceptions > 0 ? "failing" : row.initiates > model.LEAST ? "culprit" : ""),
    columns: [
      {
        title: "Task",
        by: (row) => row.task,
        cell: (row) => h("a", { href: known.to("task", row.task) }, name(row.task)),
      },
      {
        title: "Container",
        number: true,
        by: (row) => row.container,
        cell: (row) => h("a", { href: known.to("container", row.container) }, String(row.container)),
      },
      { title: "State", by: (row) => state_(row) ?? "", cell: (row) => state(state_(row)) },
      {
        title: "Restarts",
        number: true,
        by: (row) => running.get(row.task)?.restarts ?? 0,
        cell: (row) => units.count(running.get(row.task)?.restarts),
      },
      ...numberColumns(number),
      number("Exceptions", "exceptions", units.count, "in the last seconds"),
    ],
  });
}

export function task(known, which) {
  const history = known.remember(which);
  const looks = inspection(known, which);
  return {
    title: name(which),
    close: looks.close,
    draw: () => {
      const row = model.tasks(known.top).find((each) => each.task === which);
      const process = model.processes(known.describe).get(which);
      return [
        h("h2", { class: "subject" }, name(which), process && state(process.state)),
        facts(of(known, which, row, process)),
        row ? numbers(row) : nothing("There is no such task, or nothing has been heard of it yet."),
        lately(history, chartsOf(known, history, which)),
        looks.draw(),
        lives(known, which, process),
      ];
    },
  };
}

function of(known, which, row, process) {
  const asked = known.status?.tasks?.[which]?.asked;
  const component = row?.component;
  const container = row?.container ?? process?.container;
  return [
    ["Component", component && h("a", { href: known.to("component", component) }, name(component))],
    [
      "Container",
      container !== undefined &&
        container !== null &&
        h("a", { href: known.to("container", container) }, String(container)),
    ],
    ["Process", process?.pid && `pid ${process.pid}, life ${process.life}`],
    ["Asked for", asked && `${asked.cpu} CPU, ${units.bytes(asked.ram)}`],
    ["Log", h("a", { href: known.to("logs", which) }, "follow it")],
  ].filter(([, value]) => value);
}

function numbers(row) {
  return figures(
    figure("Emitted", units.rate(row.emitted)),
    figure("Executed", units.rate(row.executed)),
    figure("Acked", units.rate(row.acked)),
    figure("Failed", units.rate(row.failed), { kind: row.failed > 0 ? "bad" : "" }),
    figure("Latency, p99", units.seconds(row.latency_p99)),
    figure("Capacity", units.percent(row.capacity), { kind: row.capacity >= 0.9 ? "warn" : "" }),
    figure("Held back", units.percent(row.back_pressure)),
    figure("Holds back", units.percent(row.initiates), { kind: row.initiates > model.LEAST ? "bad" : "" }),
    figure("Pending", units.count(row.pending)),
    figure("CPU, cores", units.cores(row.cpu)),
    figure("Memory", units.bytes(row.resident_memory_bytes)),
  );
}

/** How often it was started, and why it ended. */
function lives(known, which, process) {
  if (!process) return null;
  const ended = process.last_end ? `${units.age(ago(process.last_end))} ago` : null;
  return panel(
    "Lives",
    {},
    facts([
      ["Restarts", String(process.restarts)],
      ["Last end", ended],
      ["Reason", process.last_reason],
      ["Crash loop", process.crash_loop],
    ]),
    told(known, which),
  );
}
