/** The containers of a topology with their processes, and one of them. */

import * as actions from "../actions.js";
import { ago } from "../client.js";
import { h } from "../dom.js";
import * as model from "../model.js";
import { table } from "../table.js";
import { name, shown } from "../text.js";
import * as units from "../units.js";
import { facts, nothing, panel, state } from "../widgets.js";
import { taskTable } from "./tasks.js";
import { told } from "./troubles.js";

export function containers(known) {
  return {
    title: "Containers",
    draw: () => {
      if (!known.describe) return nothing("Its containers have not been heard yet.");
      return [
        panel("Containers", {}, containerTable(known)),
        panel("Processes", {}, processTable(known, known.describe.processes, `processes ${known.id}`)),
      ];
    },
  };
}

function containerTable(known) {
  const numbers = [
    ...new Set([
      ...known.describe.processes.map((row) => row.container),
      ...model.tasks(known.top).map((row) => row.container),
    ]),
  ];
  const rows = numbers
    .filter((number) => number !== null)
    .sort((a, b) => a - b)
    .map((number) => summary(known, number));
  return table({
    id: `containers ${known.id}`,
    label: "Containers",
    rows,
    key: (row) => String(row.number),
    redraw: known.redraw,
    columns: [
      {
        title: "Container",
        by: (row) => row.number,
        cell: (row) =>
          h(
            "a",
            { href: known.to("container", row.number) },
            row.number === 0 ? "0, the master's" : String(row.number),
          ),
      },
      { title: "Where", by: (row) => row.where, cell: (row) => row.where },
      { title: "Processes", number: true, by: (row) => row.processes, cell: (row) => units.count(row.processes) },
      { title: "Not running", number: true, by: (row) => row.down, cell: (row) => units.count(row.down) },
      { title: "Restarts", number: true, by: (row) => row.restarts, cell: (row) => units.count(row.restarts) },
      { title: "CPU", number: true, by: (row) => row.cpu, cell: (row) => units.cores(row.cpu) },
      { title: "Memory", number: true, by: (row) => row.memory, cell: (row) => units.bytes(row.memory) },
    ],
  });
}

function summary(known, number) {
  const own = known.describe.processes.filter((row) => row.container === number);
  const busy = [...model.tasks(known.top), ...model.managers(known.top)].filter((row) => row.container === number);
  const add = (rows, field) => rows.reduce((sum, row) => sum + row[field], 0);
  const pod = (known.describe.pods ?? []).find((each) => each.container === number);
  return {
    number,
    where: pod
      ? `${pod.pod ?? "no pod"} on ${pod.node ?? "no node"}, ${pod.phase ?? ""}${pod.trouble ? `; ${pod.trouble}` : ""}`
      : (known.describe.kept_by?.host ?? "?"),
    processes: own.length,
    down: own.filter((row) => row.state !== "running").length,
    restarts: add(own, "restarts"),
    cpu: add(busy, "cpu"),
    memory: add(busy, "resident_memory_bytes"),
  };
}

/** Processes with their lives. */
function processTable(known, rows, id) {
  const key = (row) => `${row.container}/${row.name}`;
  const own = single(rows, key);
  const used = single(
    [...model.tasks(known.top), ...model.managers(known.top)],
    (row) => `${row.container}/${row.task}`,
  );
  const use = (row, field) => own.get(key(row)) && (used.get(key(row)) ?? used.get(`null/${row.name}`))?.[field];
  const tasks = new Set(model.tasks(known.top).map((row) => row.task));
  return table({
    id,
    label: "Processes",
    find: "Search by name, state or reason",
    rows,
    key,
    text: (row) => `${row.name} ${row.state} ${row.last_reason}`,
    redraw: known.redraw,
    tone: (row) => (row.crash_loop ? "failing" : ""),
    columns: [
      {
        title: "Process",
        by: (row) => row.name,
        cell: (row) =>
          h(
            "a",
            { href: tasks.has(row.name) ? known.to("task", row.name) : known.to("logs", logOf(row)) },
            name(row.name),
          ),
      },
      {
        title: "Container",
        number: true,
        by: (row) => row.container,
        cell: (row) => (row.container === null ? null : String(row.container)),
      },
      { title: "State", by: (row) => row.state, cell: (row) => state(row.state) },
      { title: "Pid", number: true, by: (row) => row.pid, cell: (row) => row.pid && String(row.pid) },
      { title: "Life", number: true, by: (row) => row.life, cell: (row) => String(row.life) },
      { title: "Restarts", number: true, by: (row) => row.restarts, cell: (row) => units.count(row.restarts) },
      { title: "CPU", number: true, by: (row) => use(row, "cpu"), cell: (row) => units.cores(use(row, "cpu")) },
      {
        title: "Memory",
        number: true,
        by: (row) => use(row, "resident_memory_bytes"),
        cell: (row) => units.bytes(use(row, "resident_memory_bytes")),
      },
      {
        title: "Last end",
        by: (row) => row.last_end,
        cell: (row) =>
          row.last_end && [
            `${units.age(ago(row.last_end))} ago: `,
            h("span", { class: "why" }, shown(row.last_reason, 200)),
          ],
      },
    ],
  });
}

/** Rows by key; null where several have it: of two masters nobody says which figures are whose. */
function single(rows, key) {
  const found = new Map();
  for (const row of rows) found.set(key(row), found.has(key(row)) ? null : row);
  return found;
}

/** What the log of a process is asked for by. */
export function logOf(row) {
  return row.container === null ? row.name : model.isManager(row) ? `container-${row.container}/${row.name}` : row.name;
}

export function container(known, which) {
  const number = Number(which);
  return {
    title: `Container ${which}`,
    draw: () => {
      if (!known.describe) return nothing("It has not been heard of yet.");
      const own = known.describe.processes.filter((row) => row.container === number);
      const found = summary(known, number);
      return [
        h(
          "h2",
          { class: "subject" },
          number === 0 ? "Container 0, the master's" : `Container ${number}`,
          actions.restartButton(known, number),
        ),
        facts([
          ["Where", found.where],
          ["CPU", `${units.cores(found.cpu)} cores`],
          ["Memory", units.bytes(found.memory)],
          [
            "Metrics",
            known.describe.metrics_ports?.[number] &&
              `http://127.0.0.1:${known.describe.metrics_ports[number]}/metrics`,
          ],
        ]),
        panel("Processes", {}, processTable(known, own, `processes of ${number}`)),
        number !== 0 &&
          panel(
            "Tasks",
            {},
            taskTable(
              known,
              model.tasks(known.top).filter((row) => row.container === number),
              `tasks of container ${number}`,
            ),
          ),
        told(known, `container-${number}`),
      ];
    },
  };
}
