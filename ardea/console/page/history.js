/** What a master has kept of components and tasks, or Prometheus: asked for again and again, and put together. */

import { ask, path } from "./client.js";
import { Repeated } from "./feed.js";

/** Seconds between two questions: to a master, and to Prometheus. */
const [EVERY, SELDOM] = [5, 15];
/** Seconds that are kept. */
const KEPT = 15 * 60;
/** Hours that people want to see, in all views (0: what the master keeps), and whether there are more to choose. */
let [wanted, longer] = [0, false];

/** Samples of `names`, or of all components; `times` are Unix seconds, `series` is name → field → values. */
export class History extends Repeated {
  since = null;
  interval = EVERY;
  times = [];
  series = {};
  /** Whether hours and days can be asked for. */
  longer = longer;
  /** Why nothing newer is known. */
  why = "";
  hours = wanted;

  constructor(known, names, changed) {
    super(async (signal, arrived) => {
      const { hours } = this;
      const question = new URLSearchParams(hours ? { hours } : { since: String(this.times.at(-1) ?? 0) });
      if (names.length) question.set("names", names.join(","));
      const document = await ask(`${path("topologies", known.id, "history")}?${question}`, { signal });
      if (hours !== this.hours) return 0; // meanwhile somebody has chosen others
      this.take(document);
      arrived();
      return hours ? SELDOM : EVERY;
    }, changed);
  }

  /** From now on so many hours, here and in views to come. */
  reach(hours) {
    wanted = this.hours = hours;
    [this.since, this.times, this.series] = [null, [], {}];
    this.again();
  }

  /** Adds later samples; those of another master, and of other hours, begin anew. */
  take({ since, interval, times, series, longer: more, reading }) {
    longer = this.longer = more;
    this.why = reading.state === "stale" ? (reading.reason ?? "") : "";
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
    if (!this.hours) this.#forget();
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
