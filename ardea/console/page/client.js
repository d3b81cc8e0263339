/** The REST interface: questions with a deadline, and streams of events. */

import * as session from "./session.js";

const BASE = "api/v1";
/** Milliseconds that an answer may take. */
const PATIENCE = 10000;
/** Milliseconds of a stream without a byte after which it counts as gone. */
const SILENCE = 40000;
/** Characters that one event may have. */
const LONGEST = 16 * 1024 * 1024;

/** Seconds by which a browser's clock may differ from the console's, whose header `Date` has no fractions. */
const APART = 2;
/** Unix seconds when the browser's steady clock began. */
let begin = (Date.now() - performance.now()) / 1000;
/** Milliseconds that the machine has slept, in which the browser's steady clock may have stood still. */
let slept = 0;
/** Milliseconds by which the browser's other clock is ahead of the steady one. */
let ahead = Date.now() - performance.now();

/** Milliseconds, steady, in which the machine's sleep counts. */
export function steady() {
  return performance.now() + slept;
}

/** Whether the machine has slept since this was asked last. */
export function woke() {
  const more = Date.now() - steady() - ahead;
  const asleep = more > 1000 * APART;
  if (asleep) slept += more;
  else ahead += more;
  return asleep;
}

/** Seconds since `at`, Unix seconds, by the clock of the console. */
export function ago(at) {
  return begin + steady() / 1000 - at;
}

/** An answer that is none: what the console says of it, or why there was no answer (`status` 0). */
export class Refused extends Error {
  constructor(status, { what, where, hint } = {}) {
    super(what || (status === 0 ? "the console does not answer" : `the console answered with status ${status}`));
    this.status = status;
    this.where = where ?? "";
    this.hint = hint ?? "";
  }

  get gone() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** `topologies/word-count/top`; each part is one name. */
export function path(...parts) {
  return parts.map(encodeURIComponent).join("/");
}

/** The document at `where`; with `body` it is posted.  Throws `Refused`. */
export async function ask(where, { body, signal, patience = PATIENCE } = {}) {
  const limit = AbortSignal.timeout(patience);
  const answer = await send(where, body, signal ? AbortSignal.any([signal, limit]) : limit);
  try {
    return await answer.json();
  } catch (error) {
    throw broken(error, signal);
  }
}

/** The body of the answer, as it is: a file. */
export async function download(where, { signal, patience = 120000 } = {}) {
  const limit = AbortSignal.timeout(patience);
  const answer = await send(where, undefined, signal ? AbortSignal.any([signal, limit]) : limit);
  return await answer.blob();
}

async function send(where, body, signal, accept = "application/json") {
  const headers = { Accept: accept, Authorization: `Bearer ${session.token() ?? ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`${BASE}/${where}`, {
      method: body === undefined ? "GET" : "POST",
      body: body === undefined ? undefined : JSON.stringify(body),
      headers,
      signal,
      cache: body === undefined ? "no-cache" : "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    throw broken(error, signal);
  }
  const date = Date.parse(answer.headers.get("Date"));
  if (Math.abs(ago(date / 1000)) > APART) begin = (date - steady()) / 1000;
  if (!answer.ok) throw new Refused(answer.status, await problem(answer));
  return answer;
}

async function problem(answer) {
  try {
    return await answer.json();
  } catch {
    return {};
  }
}

function broken(error, signal) {
  if (signal?.aborted && signal.reason?.name === "AbortError") return error;
  const late = error.name === "TimeoutError" || signal?.reason?.name === "TimeoutError";
  return new Refused(0, late ? { what: "the console has not answered in time" } : {});
}

/**
 * Events of `where` as `{event, data}`, until the stream ends, breaks or is silent.  Throws `Refused`.
 *
 * @param alive is called whenever something has come, be it no event: the console says so four times a minute.
 */
export async function* events(where, { signal, alive = () => {}, silence = SILENCE } = {}) {
  const quiet = new AbortController();
  const both = AbortSignal.any([signal, quiet.signal]);
  let timer = setTimeout(() => quiet.abort(new DOMException("", "TimeoutError")), silence);
  try {
    const answer = await send(where, undefined, both, "text/event-stream");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(new DOMException("", "TimeoutError")), silence);
      alive();
      yield* parser.feed(value);
    }
  } catch (error) {
    throw error instanceof Refused ? error : broken(error, both);
  } finally {
    clearTimeout(timer);
    quiet.abort();
  }
}

/** Server-sent events out of pieces of text. */
export class Parser {
  #rest = "";
  #event = "message";
  #data = [];

  *feed(piece) {
    this.#rest += piece;
    if (this.#rest.length > LONGEST) throw new Refused(0, { what: "an event of the console is too long" });
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length) yield { event: this.#event, data: this.#data.join("\n") };
        [this.#event, this.#data] = ["message", []];
      } else if (!line.startsWith(":")) {
        const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
        if (field === "event") this.#event = value;
        else if (field === "data") this.#data.push(value);
      }
    }
  }
}

/** Seconds between tries: longer each time, and never for all viewers the same. */
export class Backoff {
  #tries = 0;

  next() {
    const most = Math.min(15, 0.5 * 2 ** this.#tries++);
    return most * (0.5 + 0.5 * Math.random());
  }

  reset() {
    this.#tries = 0;
  }
}
