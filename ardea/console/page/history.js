/** What a master has kept of components and tasks: asked for again and again, and put together. */

import { ask, path } from "./client.js";
import { Repeated } from "./feed.js";

/** Seconds between two questions. */
const EVERY = 5;
/** Seconds that are kept. */
const KEPT = 15 * 60;

/** Samples of `names`, or of all components; `times` are Unix seconds, `series` is name → field → values. */
export class History extends Repeated {
  since = null;
  interval = EVERY;
  times = [];
  series = {};

  constructor(topology, names, changed) {
    super(async (signal, arrived) => {
      const question = new URLSearchParams({ since: String(this.times.at(-1) ?? 0) });
      if (names.length) question.set("names", names.join(","));
      const document = await ask(`${path("topologies", topology, "history")}?${question}`, { signal });
      this.take(document);
      arrived();
      return EVERY;
    }, changed);
  }

  /** Adds later samples; those of another master begin anew. */
  take({ since, interval, times, series }) {
    if (since !== this.since) [this.times, this.series] = [[], {}];
    [this.since, this.interval] = [since, interval];
    const fresh = times.filter((time) => time > (this.times.at(-1) ?? 0));
    const skipped = times.length - fresh.length;
    const before = this.times.length;
    this.times.push(...fresh);
    for (const [name, fields] of Object.entries(series)) {
      for (const [field, values] of Object.entries(fields)) {
        const kept = ((this.series[name] ??= {})[field] ??= new Array(before).fill(null));
        while (kept.length < before) kept.push(null);
        kept.push(...values.slice(skipped));
      }
    }
    this.#forget();
  }

  /** The values of one field, one for each of `times`. */
  values(name, field) {
    const found = this.series[name]?.[field] ?? [];
    return this.times.map((_, index) => found[index] ?? null);
  }

  /** Unix seconds since which `field` of `name` is above `least` without a break; null: it is not. */
  above(name, field, least) {
    const values = this.values(name, field);
    let first = values.length;
    while (first > 0 && values[first - 1] > least) first--;
    return first < values.length ? this.times[first] : null;
  }

  #forget() {
    const least = (this.times.at(-1) ?? 0) - KEPT;
    const old = this.times.findIndex((time) => time >= least);
    if (old <= 0) return;
    this.times.splice(0, old);
    for (const fields of Object.values(this.series)) for (const values of Object.values(fields)) values.splice(0, old);
  }
}
