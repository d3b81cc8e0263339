/** What components run elsewhere, and the batches of Trident, as far as the documents have them. */

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
      return [spark(known), trident(known)];
    },
  };
}

function spark(known) {
  const rows = Object.entries(known.status?.components ?? {}).filter(([, totals]) => totals.job_tasks > 0);
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
          cell: ([component]) => h("a", { href: known.to("component", component) }, name(component)),
        },
        { title: "Tasks", number: true, cell: ([, totals]) => units.count(totals.job_tasks) },
        { title: "Done", number: true, cell: ([, totals]) => units.count(totals.job_tasks_done) },
        { title: "Progress", cell: ([, totals]) => meter("", totals.job_tasks_done / totals.job_tasks) },
      ],
    }),
  );
}

function trident(known) {
  const rows = known.components.filter((each) => each.operations.length);
  const now = model.whole(known.top);
  return panel(
    "Trident",
    {},
    table({
      id: `trident ${known.id}`,
      label: "What the components of Trident do",
      rows,
      key: (each) => each.component,
      redraw: known.redraw,
      empty: "This is no topology of Trident, or its operations are not known here.",
      columns: [
        {
          title: "Component",
          by: (each) => each.component,
          cell: (each) => h("a", { href: known.to("component", each.component) }, name(each.component)),
        },
        { title: "Does", cell: (each) => name(each.operations.join(" · "), 400) },
        { title: "Executed", number: true, cell: (each) => units.rate(now.get(each.component)?.executed) },
      ],
    }),
  );
}
