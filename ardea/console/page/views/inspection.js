/** Looks into a task: a sample of what it emits, stacks, a profile as a flame graph; into a component: the sample. */

import { Refused, ask, events, path } from "../client.js";
import { h } from "../dom.js";
import { flames } from "../flame.js";
import { shown } from "../text.js";
import * as units from "../units.js";
import { button, nothing, panel, trouble } from "../widgets.js";

/** Seconds that a profile takes, and lines of a sample that are kept. */
const [PROFILED, SAMPLED] = [30, 200];
/** Milliseconds after which an answer is late. */
const PATIENCE = 90000;

/** `which`: a task; or a component, whose threads nobody can ask for. */
export function inspection(known, which, { threads = true } = {}) {
  const found = { kind: null, busy: false, since: 0, error: null, lines: [], document: null, zoom: null };
  let stop = null;
  const begin = async (kind, work) => {
    stop?.abort();
    const mine = (stop = new AbortController());
    Object.assign(found, {
      kind,
      busy: true,
      since: performance.now(),
      error: null,
      lines: [],
      document: null,
      zoom: null,
    });
    known.redraw();
    try {
      await work(mine.signal);
    } catch (error) {
      if (!mine.signal.aborted) found.error = error;
    }
    if (stop === mine) found.busy = false;
    known.redraw();
  };
  const where = (kind) => path("topologies", known.id, "tasks", which, kind);
  const document = (kind) =>
    begin(kind, async (signal) => (found.document = await ask(where(kind), { signal, patience: PATIENCE })));
  const sample = () =>
    begin("sample", async (signal) => {
      for await (const { event, data } of events(where("sample"), { signal })) {
        const said = JSON.parse(data);
        if (event === "problem") throw new Refused(said.status, said);
        found.lines.push(...said.lines.map((line) => `${line.process}  ${line.text}`));
        found.lines.splice(0, found.lines.length - SAMPLED);
        known.redraw();
      }
    });
  return {
    close: () => stop?.abort(),
    draw: () =>
      panel(
        "Look inside",
        {},
        h(
          "div",
          { class: "bar" },
          button("Sample what it emits", sample),
          threads && button("Stacks", () => document("stacks")),
          threads && button(`Profile for ${PROFILED} s`, () => document("profile")),
          found.busy && button("Stop", () => stop.abort(), { class: "quiet" }),
          h("span", { class: "muted" }, found.busy ? `${found.kind}: ${waits(found)}` : ""),
        ),
        found.error && trouble(found.error),
        result(found, known),
      ),
  };
}

function waits(found) {
  const past = Math.round((performance.now() - found.since) / 1000);
  return found.kind === "profile" ? `${past} of about ${PROFILED} s` : `since ${units.age(past)}`;
}

function result(found, known) {
  if (found.kind === "sample" && (found.lines.length || !found.busy)) {
    return found.lines.length
      ? h("pre", { tabindex: 0, "aria-label": "Sample" }, shown(found.lines.join("\n"), 200000))
      : !found.error && nothing("It has emitted nothing.");
  }
  if (found.document === null) return null;
  return found.kind === "profile" ? flames(found, known.redraw) : stacks(found.document);
}

/** Threads with their calls, the innermost first; or the lines that a process has written down. */
function stacks({ threads, lines }) {
  if (!threads?.length)
    return h("pre", { tabindex: 0, "aria-label": "Stacks" }, shown(lines?.join("\n") ?? "", 200000));
  return threads.map((thread) => {
    const frames = thread.frames.toReversed().map((frame) => `${frame.name}  ${frame.file}:${frame.line}`);
    return h(
      "details",
      { open: true },
      h("summary", null, shown(thread.name, 200)),
      h("pre", { tabindex: 0 }, shown(frames.join("\n"), 50000)),
    );
  });
}
