// The network of an entity: its related entities, and theirs, in three columns.

import { el, svg } from './dom.js';
import { ask } from './api.js';
import { entityJSON, keysOf, linking, namedBy, namesIn } from './model.js';
import { toEntity } from './route.js';
import { id, number } from './text.js';

const mostNear = 16; // entities in the second column
const mostFar = 20; // entities in the third column
const rowHeight = 30;
const letter = 7.6; // width of a letter, at most

// network draws the entities in the list features of an entity of one key into a box: first those in its own values,
// then those that a question about all of these adds.
export async function network(entity, values, at, box, stale) {
  const [[key, named], ...more] = Object.entries(entity);
  const features = linking([key]);
  if (more.length > 0 || features.length === 0) return;
  const near = met(features, values);
  if (near.length === 0) return;
  const graph = { centre: { key, id: named }, near: near.slice(0, mostNear), left: near.length - mostNear, far: [], edges: [] };
  try {
    await reach(graph, at);
  } catch {
    // The near entities are still shown; the answers below say what is wrong.
  }
  if (stale()) return;
  box.replaceChildren(el('h3', {}, 'Network'), el('div'));
  const [, place] = box.children;
  new ResizeObserver(() => {
    const width = place.clientWidth;
    if (width > 0 && width !== Number(place.firstChild?.getAttribute('width'))) place.replaceChildren(picture(graph, width));
  }).observe(place);
}

// met lists the entities in the values of features, each once.
function met(features, values) {
  const list = features.flatMap(f => namesIn(f, values[f.name]?.value).map(id => ({ key: namedBy(f), id })));
  return [...new Map(list.map(node => [text(node), node])).values()];
}

const text = node => `${node.key} ${node.id}`;

// reach adds the entities related to the near ones, with one question for all near entities of a key.
async function reach(graph, at) {
  const { centre, near } = graph;
  const far = new Map();
  for (const key of new Set(near.map(node => node.key))) {
    const features = linking([key]);
    if (features.length === 0) continue;
    const asked = near.filter(node => node.key === key);
    const entities = asked.map(node => entityJSON({ [key]: node.id }, keysOf(features)));
    const answer = await ask('v1/query', `{"features": ${JSON.stringify(features.map(f => f.name))}, "entities": [${entities.join(', ')}], "at": ${at}}`);
    for (const [i, result] of answer.results.entries()) {
      for (const node of met(features, result.features)) {
        if (text(node) === text(centre)) continue;
        const known = near.find(other => text(other) === text(node)) ?? far.get(text(node)) ?? node;
        if (!near.includes(known)) far.set(text(known), known);
        known.by = [...(known.by ?? []), asked[i]];
        graph.edges.push([asked[i], known]);
      }
    }
  }
  // Entities related to several near ones come first, because they connect a fraud ring.
  const sorted = [...far.values()].sort((a, b) => b.by.length - a.by.length);
  graph.far = sorted.slice(0, mostFar);
  graph.leftFar = sorted.length - mostFar;
}

function picture(graph, width) {
  const columns = graph.far.length > 0 ? 3 : 2;
  const wide = Math.min(150, width / columns - 24);
  const longest = Math.max(graph.near.length, graph.far.length) + 2;
  const height = longest * rowHeight;
  const at = column => (columns === 1 ? 0 : ((width - wide) * column) / (columns - 1));
  const put = (nodes, column) => {
    const top = ((longest - nodes.length) / 2) * rowHeight;
    for (const [i, node] of nodes.entries()) Object.assign(node, { x: at(column), y: top + i * rowHeight + rowHeight / 2 });
  };
  put([graph.centre], 0);
  put(graph.near, 1);
  put(graph.far, 2);
  const seen = node => node.x !== undefined;
  const edges = [...graph.near.map(node => [graph.centre, node]), ...graph.edges].filter(([a, b]) => seen(a) && seen(b) && a.x < b.x);
  const label = `The network of ${text(graph.centre)}: ${graph.near.length} entities that it meets, ${graph.far.length} that those meet`;
  const heading = (column, nodes) => svg('text', { class: 'left', x: at(column) + 8, y: 14 }, [...new Set(nodes.map(node => node.key))].join(', '));
  const note = (column, left) => left > 0 && svg('text', { class: 'left', x: at(column) + 8, y: height - 6 }, `${number(left)} more`);
  return svg('svg', { class: 'network', width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': label },
    edges.map(([a, b]) => {
      const [from, middle] = [a.x + wide, (a.x + wide + b.x) / 2];
      return svg('path', { class: graph.far.includes(b) && b.by.length > 1 ? 'edge shared' : 'edge', d: `M${from},${a.y} C${middle},${a.y} ${middle},${b.y} ${b.x},${b.y}` });
    }),
    pill(graph.centre, wide, 'centre'), graph.near.map(node => pill(node, wide)),
    graph.far.map(node => pill(node, wide, node.by.length > 1 ? 'shared' : '')),
    [[graph.centre], graph.near, graph.far].map((nodes, column) => heading(column, nodes)), note(1, graph.left), note(2, graph.leftFar));
}

// pill is a node: a link to its page.
function pill(node, wide, kind = '') {
  const most = Math.floor((wide - 14) / letter);
  const whole = id(node.id);
  const read = whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
  const shared = node.by?.length > 1 ? `, met by ${node.by.length}` : '';
  return svg('a', { href: toEntity({ [node.key]: node.id }), class: `node ${kind}`, 'data-node': text(node), 'aria-label': text(node) + shared },
    svg('title', {}, text(node) + shared),
    svg('rect', { x: node.x, y: node.y - 12, width: wide, height: 24, rx: 12 }),
    svg('text', { x: node.x + wide / 2, y: node.y + 4.5, 'text-anchor': 'middle' }, read));
}
