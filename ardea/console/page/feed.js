/** What is known of one topology, as it changes: each document with its age, and how the console is reached. */

import { Backoff, Refused, ago, events, path, steady } from "./client.js";

/** How the console is reached.  `since`: of this state; `next`: when it is tried again (milliseconds, steady). */
export class Link {
  state = "connecting";
  since = steady();
  why = "";
  hint = "";
  next = 0;

  become(state, { why = "", hint = "", next = 0 } = {}) {
    if (state !== this.state) [this.state, this.since] = [state, steady()];
    [this.why, this.hint, this.next] = [why, hint, next];
  }
}

/** A document that was heard.  `state`: live, stale, over or unknown. */
export class Reading {
  faded = false;

  constructor(document) {
    const { state = "live", as_of = null, reason = null } = document.reading ?? {};
    [this.document, this.state, this.why, this.asOf] = [document, state, reason ?? "", as_of];
    this.heard = steady();
  }

  /** It was heard before, and nobody has said it again. */
  fade() {
    this.faded = true;
    if (this.state === "live") this.state = "stale";
  }

  /** The stream by which it came goes on, and would have said what is no longer so. */
  lasts() {
    if (this.state === "live") this.heard = steady();
  }

  /** Seconds since it was known to be so; `connected`: whether news would come now. */
  age(connected) {
    if (this.asOf !== null) return Math.max(0, ago(this.asOf));
    return connected && this.state === "live" ? 0 : (steady() - this.heard) / 1000;
  }
}

/** Repeats `turn(signal, arrived)` for ever, with back-off; `turn` calls `arrived` whenever something has come. */
export class Repeated {
  #turn;
  #changed;
  #stop = null;
  #wake = null;
  link = new Link();

  constructor(turn, changed) {
    [this.#turn, this.#changed] = [turn, changed];
  }

  open() {
    if (this.#stop !== null) return;
    this.#stop = new AbortController();
    this.link.become("connecting");
    this.fade();
    this.#run(this.#stop.signal);
  }

  /** What was heard before is old. */
  fade() {}

  close() {
    this.#stop?.abort();
    this.#wake?.();
    this.#stop = null;
  }

  /** Tries at once. */
  again() {
    this.#wake?.();
  }

  async #run(signal) {
    const backoff = new Backoff();
    const arrived = () => {
      backoff.reset();
      this.link.become("live");
      this.#changed();
    };
    while (!signal.aborted) {
      let pause;
      try {
        pause = await this.#turn(signal, arrived);
        if (pause === undefined) throw new Refused(0, { what: "the console has ended the stream" });
      } catch (error) {
        if (signal.aborted) return;
        pause = this.#failed(error, backoff);
      }
      await this.#sleep(pause, signal);
    }
  }

  #failed(error, backoff) {
    if (!(error instanceof Refused))
      error = new Refused(0, { what: `what the console says cannot be read: ${error.message}` });
    const pause = error.status === 401 || error.status === 404 || error.status === 403 ? 15 : backoff.next();
    const state = error.status === 401 ? "unknown" : error.gone ? "gone" : "refused";
    this.link.become(state, { why: error.message, hint: error.hint, next: steady() + 1000 * pause });
    this.#changed();
    return pause;
  }

  #sleep(pause, signal) {
    if (signal.aborted) return null;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 1000 * pause);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Seconds after which a stream that has ended is asked for again. */
const SOON = 0.5;

/** Documents that are sent as they change; a new stream has all of them again, and what it does not have is old. */
export class Feed extends Repeated {
  readings = {};

  constructor(where, changed) {
    super(async (signal, arrived) => {
      let begun = false;
      const alive = () => begun && Object.values(this.readings).forEach((each) => each.lasts());
      for await (const { event, data } of events(where, { signal, alive })) {
        if (!begun) this.fade();
        begun = true;
        this.#take(event, new Reading(JSON.parse(data)));
        arrived();
      }
      return begun ? SOON : undefined;
    }, changed);
  }

  /** Of another run of the same name nothing of the former one counts. */
  #take(kind, reading) {
    const known = this.readings[kind] ?? reading;
    if (known.document.id !== reading.document.id)
      this.readings = Object.fromEntries(Object.entries(this.readings).filter(([, each]) => !each.faded));
    this.readings[kind] = reading;
  }

  fade() {
    for (const each of Object.values(this.readings)) each.fade();
  }

  document(kind) {
    return this.readings[kind]?.document ?? null;
  }
}

/** Those of one topology: `topology`, `plan`, `top` and `action`.  `topology`: its name or id. */
export class TopologyFeed extends Feed {
  constructor(topology, changed) {
    super(path("topologies", topology, "events"), changed);
    this.topology = topology;
  }
}
