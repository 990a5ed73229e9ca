// The page of an entity: all its features, their timelines, and related entities.

import { $, el, problem } from './dom.js';
import { ask } from './api.js';
import { answers, asCommand, chips } from './answer.js';
import { spark } from './chart.js';
import { about, defined, entityJSON, grouped, keysOf, literal, namedBy, namesIn } from './model.js';
import { network } from './network.js';
import { toEntity, toView } from './route.js';
import { id, inYear, minute, moment, span } from './text.js';

// name shows which entity the page is about, and nothing of the one before.
export function name(entity) {
  $('entity-title').replaceChildren(...Object.entries(entity).map(([key, value]) =>
    el('span', { class: 'id' }, el('span', { class: 'hint' }, key), ` ${id(value)}`)));
  $('entity-said').textContent = '';
  $('entity-parts').replaceChildren();
}

// show shows an entity at a moment, by default the present. stale returns whether another view has replaced it
// meanwhile.
export async function show(entity, at, stale) {
  const named = Object.entries(entity);
  $('entity-said').textContent = 'Asking …';
  const features = about(entity).filter(f => !f.members_needed);
  const keys = keysOf(defined.features).map(key => key.name);
  const unknown = named.map(([key]) => key).find(key => !keys.includes(key));
  const meant = unknown === undefined ? [] : keys.filter(key => key.startsWith(unknown)).map(key => [key, renamed(named, unknown, key, at)]);
  if (meant.length === 1) return location.replace(meant[0][1]); // such as user for user_id
  if (unknown !== undefined || features.length === 0) {
    $('entity-said').textContent = '';
    $('entity-parts').replaceChildren(nothing(unknown, meant, keys));
    return;
  }
  const question = `{"features": ${JSON.stringify(features.map(f => f.name))},\n "entities": [${entityJSON(entity, keysOf(features))}]` +
    `${at === '' ? '' : `,\n "at": ${literal(at, 'timestamp')}`}}`;
  try {
    const answer = await ask('v1/query', question);
    if (stale()) return;
    render(entity, features, answer, question, stale);
  } catch (error) {
    if (stale()) return;
    $('entity-said').textContent = '';
    $('entity-parts').replaceChildren(problem(error));
  }
}

// renamed makes the address of an entity with another name for a key.
const renamed = (named, from, to, at) =>
  toEntity(Object.fromEntries(named.map(([key, value]) => [key === from ? to : key, value])), at === '' ? {} : { at });

// nothing explains that no feature has these keys, and lists the existing keys.
function nothing(unknown, meant, keys) {
  return el('p', { class: 'note' },
    unknown === undefined ? 'No feature has these keys alone. ' : `No feature has the key "${unknown}". `,
    ...(meant.length > 0 ? ['Did you mean ', ...meant.flatMap(([key, address], i) => [i > 0 && ' or ', el('a', { href: address }, key)]), '?']
      : [`The keys are ${keys.join(', ')}.`]));
}

function render(entity, features, answer, question, stale) {
  const values = answer.results[0].features;
  const drawn = features.filter(f => f.timeline);
  const marks = new Map(drawn.map(f => [f.name, el('div')]));
  const head = el('span', { class: 'axis' });
  const axes = el('div', { class: 'axes' });
  const found = features.filter(f => values[f.name].status !== 'NOT_FOUND').length;
  $('entity-said').textContent = found === 0 ? `Nothing is known of it at ${minute(answer.at)} UTC.`
    : `${found} of ${features.length} features have events at ${minute(answer.at)} UTC.`;
  const networkBox = el('aside', { 'aria-label': 'Network' });
  $('entity-parts').replaceChildren(
    el('p', { class: 'actions' },
      el('a', { href: toEntity(entity, { at: answer.at }) }, 'Link to this moment'),
      el('a', { href: toEntity(entity) }, 'Now'),
      el('a', { href: toView('ask', { entity: new URLSearchParams(entity) }) }, 'Ask about it')),
    el('div', { class: 'beside' },
      el('div', {},
        axes,
        answers('Features', grouped(features), answer.results, marks, drawn.length > 0 ? head : undefined),
        together(entity, values),
        asCommand(question)),
      networkBox));
  timelines(entity, drawn, answer.at, { marks, head, axes }, stale);
  network(entity, values, answer.at, networkBox, stale);
}

// together offers the pages of this entity together with another one, for features with one more key.
function together(entity, values) {
  const parts = [];
  const lacking = f => f.keys.filter(key => !Object.hasOwn(entity, key.name));
  for (const key of keysOf(defined.features)) {
    const needing = defined.features.filter(f => f.keys.length > 1 && f.keys.length === lacking(f).length + Object.keys(entity).length &&
      lacking(f).length === 1 && lacking(f)[0].name === key.name);
    if (needing.length === 0) continue;
    const known = new Set(about(entity).filter(f => namedBy(f) === key.name).flatMap(f => namesIn(f, values[f.name]?.value)));
    parts.push(el('h3', {}, `Together with a ${key.name}`),
      el('p', { class: 'hint' }, `Features: ${needing.map(f => f.name).join(', ')}. `,
        known.size === 0 && `Search for ${Object.entries(entity).map(pair => pair.join('=')).join(' ')} ${key.name}=… to see them.`),
      known.size > 0 && chips([...known].map(v => el('a', { href: toEntity({ ...entity, [key.name]: v }) }, id(v)))));
  }
  return parts.filter(Boolean);
}

// timelines draws the timelines of features on one axis. The server takes one feature per request, so the requests run
// concurrently.
async function timelines(entity, features, at, place, stale) {
  const loaded = (await Promise.all(features.map(async f => {
    const query = new URLSearchParams(f.keys.map(key => [key.name, entity[key.name]]));
    if (!query.has('at')) query.set('at', at); // a key may have the parameter's name
    try {
      const timeline = await ask(`v1/timeline/${encodeURIComponent(f.name)}?${query}`);
      return { feature: f, points: timeline.points };
    } catch (error) {
      place.marks.get(f.name).replaceChildren(el('span', { class: 'problem' }, error.message));
      return undefined;
    }
  }))).filter(one => one?.points.length > 0 && one.points[0].status !== 'OUTSIDE_MAX_AGE');
  if (stale() || loaded.length === 0) return;
  // The windows to choose from, the shortest first; the axis begins with the middle one.
  const windows = [...new Map(loaded.map(({ feature, points }) => [feature.window, Number(points[0].from)]))].sort(([, a], [, b]) => b - a);
  const choose = chosen => {
    const axis = { from: windows[chosen][1], to: Number(at) };
    for (const { feature, points } of loaded) place.marks.get(feature.name).replaceChildren(spark(feature, points, axis));
    const write = moment(axis.from).slice(0, 4) === moment(axis.to).slice(0, 4) ? inYear : minute;
    place.head.replaceChildren(el('span', {}, write(axis.from)), el('span', {}, write(axis.to)));
    place.head.title = `${moment(axis.from)} to ${moment(axis.to)} UTC`;
    for (const [i, button] of [...place.axes.querySelectorAll('button')].entries()) button.setAttribute('aria-pressed', i === chosen);
  };
  if (windows.length > 1) {
    place.axes.replaceChildren(el('div', { role: 'group', 'aria-label': 'Time axis' },
      el('span', { class: 'hint' }, 'Time axis'),
      windows.map(([window], i) => el('button', { type: 'button', class: 'quiet', click: () => choose(i) }, span(window)))));
  }
  choose(Math.floor(windows.length / 2));
  if (loaded.some(({ points }) => points.some(p => p.status === 'INCOMPLETE'))) {
    place.axes.append(el('p', { class: 'hint' }, 'Pale bars are from before the state is complete.'));
  }
}
