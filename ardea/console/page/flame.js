/** A profile as a flame graph: calls below their callers, as wide as their share of the time. */

import { h } from "./dom.js";
import { name, shown } from "./text.js";
import * as units from "./units.js";
import { button, nothing } from "./widgets.js";

/** Calls narrower than this share are left out. */
const NARROWEST = 0.002;
const DEEPEST = 60;

/** `found.document`: the profile; `found.zoom`: the call that takes the whole width, or null. */
export function flames(found, redraw) {
  const { root, samples, seconds, cut } = found.document;
  const threads = root?.children ?? [];
  if (!threads.length) return nothing("No thread was seen.");
  const missing = cut ? `; ${units.count(cut)} calls had no place` : "";
  return [
    h(
      "p",
      { class: "muted" },
      `${units.count(samples)} samples in ${units.seconds(seconds)}${missing}. Choose a call to see it wider.`,
    ),
    threads.map((thread) => one(thread, found, redraw)),
  ];
}

function one(thread, found, redraw) {
  const top = found.zoom?.thread === thread ? found.zoom.frame : thread;
  const rows = [];
  lay(top, 0, 1, 0, rows);
  const zoom = (frame) => {
    found.zoom = frame === thread ? null : { thread, frame };
    redraw();
  };
  return h(
    "figure",
    { key: `flames ${thread.name}` },
    h(
      "figcaption",
      { class: "bar" },
      h("b", null, name(thread.name, 100)),
      ` ${units.seconds(thread.seconds)}`,
      top !== thread && button("The whole thread", () => zoom(thread)),
    ),
    h(
      "div",
      { class: "flames" },
      rows.map((row) =>
        h(
          "div",
          { class: "flame-row" },
          row.map((call) => bar(call, thread, zoom)),
        ),
      ),
    ),
  );
}

function lay(frame, left, width, depth, rows) {
  if (width < NARROWEST || depth >= DEEPEST) return;
  (rows[depth] ??= []).push({ frame, left, width });
  let at = left;
  for (const child of frame.children ?? []) {
    const share = frame.samples ? (child.samples / frame.samples) * width : 0;
    lay(child, at, share, depth + 1, rows);
    at += share;
  }
}

function bar({ frame, left, width }, thread, zoom) {
  const where = frame.file ? ` ${shown(frame.file, 300)}:${frame.line}` : "";
  const words = `${name(frame.name, 200)}${where}: ${units.percent(frame.samples / thread.samples)}`;
  return h(
    "button",
    {
      type: "button",
      class: isOwn(frame) ? "flame own" : "flame",
      style: { left: `${100 * left}%`, width: `${100 * width}%` },
      title: words,
      "aria-label": `${words}, ${units.seconds(frame.seconds)}`,
      on: { click: () => zoom(frame) },
    },
    name(frame.name, 120),
  );
}

/** Whether most of its time is its own, and not that of what it calls. */
function isOwn(frame) {
  return frame.children.reduce((sum, child) => sum + child.samples, 0) < frame.samples / 2;
}
