/** Places the nodes of a directed graph in layers from left to right.  Pure. */

/** Rounds of ordering; more change little. */
const ROUNDS = 12;

/**
 * Where nodes and edges lie, in pixels.
 *
 * @param {string[]} names nodes, in the order in which equals are kept.
 * @param {[string, string][]} pairs edges: from, to.  A cycle's closing edge runs backwards.
 * @param {{width: number, height: number, across: number, down: number}} size of a node, and the gaps between them.
 * @returns nodes by name `{x, y}` (their upper left corners), edges as lists of points, and the whole's size.
 */
export function layout(names, pairs, size) {
  const edges = forward(
    names,
    pairs.filter(([from, to]) => from !== to),
  );
  const layers = layered(names, edges);
  const chains = withBends(layers, edges);
  ordered(layers, chains);
  return placed(layers, chains, names, pairs, size);
}

/** The edges without cycles: those that close one are turned.  Depth first, spouts first. */
function forward(names, pairs) {
  const readers = new Map(names.map((name) => [name, []]));
  for (const [from, to] of pairs) readers.get(from)?.push(to);
  const [open, done, turned] = [new Set(), new Set(), new Set()];
  const sources = new Set(names);
  for (const [, to] of pairs) sources.delete(to);
  for (const root of [...sources, ...names]) {
    if (done.has(root)) continue;
    const stack = [[root, 0]];
    open.add(root);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const next = readers.get(top[0])[top[1]++];
      if (next === undefined) {
        open.delete(top[0]);
        done.add(top[0]);
        stack.pop();
      } else if (open.has(next)) turned.add(`${top[0]}\n${next}`);
      else if (!done.has(next) && readers.has(next)) {
        open.add(next);
        stack.push([next, 0]);
      }
    }
  }
  const known = pairs.filter(([from, to]) => readers.has(from) && readers.has(to));
  return known.map(([from, to]) => (turned.has(`${from}\n${to}`) ? [to, from] : [from, to]));
}

/** The longest way from a source says in which layer a node lies; a source lies next to its nearest reader. */
function layered(names, edges) {
  const depth = new Map(names.map((name) => [name, 0]));
  for (let round = 0, moved = true; moved && round <= names.length; round++) {
    moved = false;
    for (const [from, to] of edges) {
      if (depth.get(to) <= depth.get(from)) {
        depth.set(to, depth.get(from) + 1);
        moved = true;
      }
    }
  }
  const read = new Set(edges.map(([, to]) => to));
  for (const name of names) {
    const after = edges.filter(([from]) => from === name).map(([, to]) => depth.get(to));
    if (!read.has(name) && after.length) depth.set(name, Math.min(...after) - 1);
  }
  const layers = [];
  for (const name of names) (layers[depth.get(name)] ??= []).push(name);
  return layers.map((layer) => layer ?? []);
}

/** Each edge as the nodes that it passes, one a layer; those between its ends are added to the layers. */
function withBends(layers, edges) {
  const at = new Map();
  layers.forEach((layer, depth) => layer.forEach((name) => at.set(name, depth)));
  return edges.map(([from, to], number) => {
    const chain = [from];
    for (let depth = at.get(from) + 1; depth < at.get(to); depth++) {
      const bend = `\n${number} ${depth}`;
      layers[depth].push(bend);
      chain.push(bend);
    }
    return [...chain, to];
  });
}

/** Orders each layer by where its neighbours lie, forwards and backwards, and keeps the order that crosses least. */
function ordered(layers, chains) {
  const [before, after] = [new Map(), new Map()];
  for (const chain of chains) {
    for (let i = 1; i < chain.length; i++) {
      push(before, chain[i], chain[i - 1]);
      push(after, chain[i - 1], chain[i]);
    }
  }
  let [best, least] = [layers.map((layer) => [...layer]), crossings(layers, after)];
  for (let round = 0; round < ROUNDS && least > 0; round++) {
    const down = round % 2 === 0;
    for (let i = 1; i < layers.length; i++) {
      const depth = down ? i : layers.length - 1 - i;
      sort(layers[depth], layers[down ? depth - 1 : depth + 1], down ? before : after);
    }
    const now = crossings(layers, after);
    if (now < least) [best, least] = [layers.map((layer) => [...layer]), now];
  }
  best.forEach((layer, depth) => layers.splice(depth, 1, layer));
}

function sort(layer, fixed, neighbours) {
  const place = new Map(fixed.map((name, index) => [name, index]));
  const weight = new Map(
    layer.map((name, index) => {
      const found = (neighbours.get(name) ?? []).map((other) => place.get(other));
      return [name, found.length ? found.reduce((sum, value) => sum + value, 0) / found.length : index];
    }),
  );
  layer.sort((one, other) => weight.get(one) - weight.get(other));
}

function crossings(layers, after) {
  let found = 0;
  for (let depth = 0; depth + 1 < layers.length; depth++) {
    const place = new Map(layers[depth + 1].map((name, index) => [name, index]));
    const ends = layers[depth].flatMap((name) =>
      (after.get(name) ?? []).map((to) => place.get(to)).sort((a, b) => a - b),
    );
    for (let i = 0; i < ends.length; i++) for (let j = i + 1; j < ends.length; j++) found += ends[i] > ends[j] ? 1 : 0;
  }
  return found;
}

function placed(layers, chains, names, pairs, { width, height, across, down }) {
  const tall = (name) => (name.startsWith("\n") ? height / 2 : height);
  const heights = layers.map((layer) => layer.reduce((sum, name) => sum + tall(name) + down, -down));
  const most = Math.max(0, ...heights);
  const all = new Map();
  layers.forEach((layer, depth) => {
    let y = (most - heights[depth]) / 2;
    for (const name of layer) {
      all.set(name, { x: depth * (width + across), y });
      y += tall(name) + down;
    }
  });
  const middle = (name) => all.get(name).y + tall(name) / 2;
  const lines = new Map();
  for (const chain of chains) {
    const points = chain.flatMap((name, i) => {
      const { x } = all.get(name);
      const left = [x, middle(name)];
      const right = [x + width, middle(name)];
      return i === 0 ? [right] : i === chain.length - 1 ? [left] : [left, right];
    });
    lines.set(`${chain[0]}\n${chain[chain.length - 1]}`, points);
  }
  const edges = pairs.map(
    ([from, to]) => lines.get(`${from}\n${to}`) ?? [...(lines.get(`${to}\n${from}`) ?? [])].reverse(),
  );
  const nodes = new Map(names.map((name) => [name, all.get(name)]));
  return { nodes, edges, width: Math.max(0, layers.length * (width + across) - across), height: most };
}

function push(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}
