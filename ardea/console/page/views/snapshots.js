/** Snapshots and savepoints, and how taking them goes. */

import * as actions from "../actions.js";
import { h } from "../dom.js";
import { ago, ask, path } from "../client.js";
import { Reading, Repeated } from "../feed.js";
import { table } from "../table.js";
import { name, shown } from "../text.js";
import * as units from "../units.js";
import { facts, nothing, panel, staleNotice, state, trouble } from "../widgets.js";

export function snapshots(known) {
  const kept = { reading: null };
  const list = new Repeated(async (signal, arrived) => {
    kept.reading = new Reading(await ask(path("topologies", known.id, "snapshots"), { signal }));
    arrived();
    return 5;
  }, known.redraw);
  list.open();
  return {
    title: "Snapshots",
    repeated: [list],
    close: () => list.close(),
    draw: () => [now(known), listed(known, kept.reading, list.link)],
  };
}

function now(known) {
  const status = known.top?.snapshots ?? known.status?.snapshots;
  if (!status)
    return panel(
      "Now",
      {},
      nothing("This topology takes no snapshots; `topology.reliability.mode: EFFECTIVELY_ONCE` would."),
    );
  const { last, taking, rollback } = status;
  return panel(
    "Now",
    {},
    h(
      "p",
      null,
      state(status.state),
      ` ${name(status.mode)}, timeline ${status.timeline}, every ${units.seconds(status.interval)} `,
      actions.savepointButton(known),
    ),
    facts([
      ["Last snapshot", last && lastOne(last)],
      ["Under way", taking && `${taking.number}, for ${units.seconds(taking.seconds)}`],
      ["Waits for", status.waits.join("; ")],
      ["Abandoned", status.abandoned ? `${status.abandoned} in a row, the last one because of ${status.why}` : ""],
      [
        "Rollbacks",
        rollback
          ? `${status.rollbacks}; the last one ${units.age(rollback.ago)} ago: ${rollback.cause}`
          : "none that this master has seen",
      ],
      ...(status.sinks ?? [])
        .slice(0, 10)
        .map((sink) => [
          "Sink",
          `${sink.task}: ${sink.intervals} intervals wait, the oldest for ${units.age(sink.seconds)}. ${sink.why}`,
        ]),
    ]),
  );
}

function lastOne(last) {
  const [slowest, aligned] = [units.seconds(last.slowest_seconds), units.seconds(last.aligned)];
  const slow = `slowest: ${last.slowest}, ${slowest} (${aligned} aligning)`;
  if (last.ago === null) return `${last.number}, committed by a former master`;
  return (
    `${last.number}, ${units.age(last.ago)} ago, took ${units.seconds(last.seconds)}; ${units.bytes(last.bytes)}, ` +
    `${units.bytes(last.written)} of it new; ${slow}`
  );
}

function listed(known, reading, link) {
  if (reading === null)
    return panel("Kept", {}, link.why ? trouble({ message: link.why, hint: link.hint }) : nothing("Asking …"));
  const { document } = reading;
  const rows = [
    ...(document.committed ? [{ ...document.committed, what: "snapshot" }] : []),
    ...document.savepoints.map((each) => ({ ...each, what: "savepoint" })),
  ];
  return panel(
    "Kept",
    {},
    staleNotice(reading, link),
    table({
      id: `snapshots ${known.id}`,
      label: "The snapshot that counts, and savepoints",
      rows,
      key: (row) => `${row.what} ${row.topology} ${row.number} ${row.folder}`,
      redraw: known.redraw,
      empty: "No snapshot counts yet, and there are no savepoints.",
      columns: [
        { title: "What", by: (row) => row.what, cell: (row) => row.what },
        { title: "Number", cell: (row) => row.number },
        { title: "Timeline", number: true, cell: (row) => String(row.timeline) },
        { title: "Age", number: true, by: (row) => -row.at, cell: (row) => units.age(ago(row.at)) },
        { title: "Size", number: true, by: (row) => row.bytes, cell: (row) => units.bytes(row.bytes) },
        { title: "Files", number: true, by: (row) => row.files, cell: (row) => units.count(row.files) },
        { title: "Of", cell: (row) => row.topology },
        { title: "Folder", cell: (row) => row.folder && h("code", null, shown(row.folder, 300)) },
      ],
    }),
  );
}
