/** Batches of Trident, functions of DRPC and jobs in Spark, as far as the documents have them. */

import { h } from "../dom.js";
import * as model from "../model.js";
import { table } from "../table.js";
import { name } from "../text.js";
import * as units from "../units.js";
import { meter, nothing, panel } from "../widgets.js";

export function jobs(known) {
  return {
    title: "Jobs",
    draw: () => {
      if (!known.describe) return nothing("Nothing has been heard yet.");
      return [trident(known), functions(known), spark(known)];
    },
  };
}

function spark(known) {
  const rows = Object.entries(known.status?.components ?? {}).filter(
    ([, totals]) => totals.job_tasks > 0 || totals.batches_open !== null,
  );
  return panel(
    "Spark",
    {},
    table({
      id: `spark ${known.id}`,
      label: "Jobs in Spark",
      rows,
      key: ([component]) => component,
      redraw: known.redraw,
      empty: "No component runs a job in Spark now.",
      columns: [
        {
          title: "Component",
          by: ([component]) => component,
          cell: ([component]) => linked(known, component),
        },
        { title: "Tasks", number: true, cell: ([, totals]) => units.count(totals.job_tasks) },
        { title: "Done", number: true, cell: ([, totals]) => units.count(totals.job_tasks_done) },
        {
          title: "Progress",
          cell: ([, totals]) => (totals.job_tasks > 0 ? meter("", totals.job_tasks_done / totals.job_tasks) : "–"),
        },
        { title: "Micro-batches", number: true, cell: ([, totals]) => units.count(totals.batch) },
        {
          title: "Not acked",
          hint: "micro-batches that are published",
          number: true,
          cell: ([, totals]) => units.count(totals.batches_open),
        },
      ],
    }),
  );
}

/** Begins the name of who begins and commits the batches of a group: each step of a batch is a tree of its own. */
const COORDINATOR = "$mastercoord-";

function trident(known) {
  const now = model.whole(known.top);
  const rows = known.components.filter((each) => each.component.startsWith(COORDINATOR));
  const totals = (each) => known.status?.components?.[each.component] ?? {};
  return panel(
    "Trident",
    {},
    table({
      id: `trident ${known.id}`,
      label: "Batches of Trident",
      rows,
      key: (each) => each.component,
      redraw: known.redraw,
      empty: "This is no topology of Trident.",
      columns: [
        { title: "Coordinator", by: (each) => each.component, cell: (each) => linked(known, each.component) },
        {
          title: "Last batch",
          hint: "the number of the last one that is committed",
          number: true,
          cell: (each) => (totals(each).batch > 0 ? String(totals(each).batch) : "–"),
        },
        {
          title: "Its time",
          hint: "from the begin of a batch to its commit, the mean of lately",
          number: true,
          cell: (each) => units.seconds(totals(each).batch ? totals(each).batch_latency_ms / 1000 : null),
        },
        {
          title: "Batches under way",
          hint: "being processed or committed",
          number: true,
          cell: (each) => units.count(now.get(each.component)?.pending),
        },
        { title: "Steps done", number: true, cell: (each) => units.rate(now.get(each.component)?.acked) },
        { title: "Steps failed", number: true, cell: (each) => units.rate(now.get(each.component)?.failed) },
        {
          title: "Time of a step, p99",
          number: true,
          cell: (each) => units.seconds(now.get(each.component)?.latency_p99),
        },
      ],
    }),
    rows.length > 0 && h("p", { class: "muted" }, "A batch has two steps, processing and commit."),
  );
}

function functions(known) {
  const now = model.whole(known.top);
  return panel(
    "DRPC",
    {},
    table({
      id: `drpc ${known.id}`,
      label: "Functions of DRPC",
      rows: known.components.flatMap((each) => each.functions.map((called) => [called, each.component])),
      key: ([called]) => called,
      redraw: known.redraw,
      empty: "This topology serves no function.",
      columns: [
        { title: "Function", by: ([called]) => called, cell: ([called]) => name(called) },
        { title: "Component", by: ([, component]) => component, cell: ([, component]) => linked(known, component) },
        { title: "Under way", number: true, cell: ([, component]) => units.count(now.get(component)?.pending) },
        { title: "Answered", number: true, cell: ([, component]) => units.rate(now.get(component)?.acked) },
        { title: "Failed", number: true, cell: ([, component]) => units.rate(now.get(component)?.failed) },
        {
          title: "Latency, p99",
          number: true,
          cell: ([, component]) => units.seconds(now.get(component)?.latency_p99),
        },
      ],
    }),
  );
}

function linked(known, component) {
  return h("a", { href: known.to("component", component) }, name(component));
}
