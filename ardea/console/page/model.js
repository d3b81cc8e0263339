/** What the documents of a topology say, put together.  Pure. */

/** A share of the time from which on somebody counts as held back, or as holding back. */
export const LEAST = 0.02;

/** Components: `{component, kind, tasks, operations, functions}`; from the plan, else from the rows. */
export function components(plan, top) {
  if (plan?.components) return plan.components.map((each) => ({ operations: [], functions: [], ...each }));
  const found = new Map();
  for (const row of top?.rows ?? []) {
    if (!row.component) continue;
    const unknown = { component: row.component, kind: "bolt", tasks: 0, operations: [], functions: [] };
    const one = found.get(row.component) ?? unknown;
    if (row.task !== null) one.tasks += 1;
    found.set(row.component, one);
  }
  return [...found.values()];
}

/** Edges: `{source, stream, target, grouping, rate}`; `rate` is null where nobody has said it. */
export function edges(plan, top) {
  const rates = new Map((top?.edges ?? []).map((edge) => [`${edge.source}\n${edge.stream}\n${edge.target}`, edge]));
  if (!plan?.components) return [...rates.values()];
  return plan.components.flatMap((component) =>
    Object.entries(component.inputs ?? {}).map(([read, grouping]) => {
      const at = read.lastIndexOf(":");
      const [source, stream] = [read.slice(0, at), read.slice(at + 1)];
      const rate = rates.get(`${source}\n${stream}\n${component.component}`)?.rate ?? null;
      return { source, stream, target: component.component, grouping, rate };
    }),
  );
}

/** Rows of whole components, by name. */
export function whole(top) {
  return new Map(
    (top?.rows ?? []).filter((row) => row.component && row.task === null).map((row) => [row.component, row]),
  );
}

/** Rows of tasks. */
export function tasks(top) {
  return (top?.rows ?? []).filter((row) => row.component && row.task !== null);
}

/** Rows of managers and masters. */
export function managers(top) {
  return (top?.rows ?? []).filter((row) => !row.component);
}

/** Components that hold spouts back: name → `{share, tasks}`, the tasks as in `stalls`, the worst first. */
export function culprits(top) {
  const found = new Map();
  for (const stall of [...(top?.stalls ?? [])].sort((one, other) => other.share - one.share)) {
    const one = found.get(stall.component) ?? { share: stall.share, tasks: [] };
    one.tasks.push(stall);
    found.set(stall.component, one);
  }
  return found;
}

/** Sums over spouts and over all tasks. */
export function sums(top, all) {
  const spouts = new Set(all.filter((each) => each.kind === "spout").map((each) => each.component));
  const rows = [...whole(top).values()];
  const own = rows.filter((row) => spouts.has(row.component));
  const add = (list, field) => list.reduce((sum, row) => sum + (row[field] ?? 0), 0);
  const most = (list, field) =>
    list.reduce((best, row) => (row[field] !== null && row[field] > (best ?? -1) ? row[field] : best), null);
  return {
    emitted: add(own, "emitted"),
    acked: add(own, "acked"),
    failed: add(rows, "failed"),
    executed: add(rows, "executed"),
    pending: add(own, "pending"),
    latency: most(own, "latency_p99"),
    capacity: most(rows, "capacity"),
    cpu: add(rows, "cpu") + add(managers(top), "cpu"),
    memory: add(rows, "resident_memory_bytes") + add(managers(top), "resident_memory_bytes"),
    exceptions: add(rows, "exceptions"),
  };
}

/**
 * What authors' code has raised: `{title, text, row, times, tasks, last}`, what was raised last first.  From the
 * master's groups; where it has none, from the last error of each task, equal ones together.
 */
export function grouped(raised, status) {
  return raised.length ? raised.map(group) : alike(status);
}

function group({ type, message, stack, row, count, tasks, last }) {
  return { title: `${type}: ${message}`, text: stack, row, times: count, tasks: Object.keys(tasks), last };
}

function alike(status) {
  const found = new Map();
  (status?.errors ?? []).forEach((text, index) => {
    const title = text.trim().split("\n").pop();
    const key = title.replace(/0x[0-9a-f]+|\d+/gi, "#");
    const one = found.get(key) ?? { title, text: "", row: "", times: 0, tasks: [], last: null };
    one.times += 1;
    if (text.trim().includes("\n")) one.text = text;
    if (status.erring?.[index]) one.tasks.push(status.erring[index]);
    found.set(key, one);
  });
  return [...found.values()].sort((one, other) => other.times - one.times);
}

/** The processes of `describe`, by name; managers by `CONTAINER/NAME`. */
export function processes(describe) {
  return new Map((describe?.processes ?? []).map((row) => [processKey(row), row]));
}

function processKey(row) {
  return isManager(row) ? `${row.container}/${row.name}` : row.name;
}

/** Whether a process is a manager, a master or a supervisor, and no task. */
export function isManager(row) {
  return (
    row.container === null || row.container === 0 || row.name === "stream-manager" || row.name === "metrics-manager"
  );
}
