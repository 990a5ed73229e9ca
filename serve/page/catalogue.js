// The catalogue: the features, their sources, and the services that use them.

import { $, el, facts, name } from './dom.js';
import { defined } from './model.js';
import { toView } from './route.js';
import { count, minute, number, percent } from './text.js';

// show shows the catalogue, filtered by the words of the URL.
export function show(parameters) {
  const entries = defined.features.map(feature => ({ text: searched(feature), node: entry(feature) }));
  const none = el('p', { class: 'note', hidden: true });
  $('catalogue').replaceChildren(...entries.map(e => e.node), none);
  $('streams').replaceChildren(...defined.streams.length > 0 ? [el('h2', {}, 'Streams'), ...defined.streams.map(stream)] : []);
  const filter = () => {
    const words = $('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const e of entries) {
      e.node.hidden = !words.every(word => e.text.includes(word));
      shown += !e.node.hidden;
    }
    $('count').textContent = shown === entries.length ? String(shown) : `${shown} of ${entries.length}`;
    none.hidden = shown > 0;
    none.textContent = entries.length === 0 ? 'No features are defined.' : 'No feature matches all of these words.';
  };
  $('search').value = parameters.get('words') ?? '';
  $('search').oninput = () => {
    filter();
    history.replaceState(null, '', toView('features', $('search').value === '' ? {} : { words: $('search').value }));
  };
  filter();
}

const searched = f => [f.name, f.description, f.owner, f.definition, f.stream, f.function, f.where, ...states(f), ...services(f)]
  .filter(Boolean).join(' ').toLowerCase();

const states = f => [...new Set((f.series ?? []).map(s => s.state))];

const services = f => defined.services.filter(s => s.features.includes(f.name)).map(s => s.name);

function stream(s) {
  return el('article', { class: 'feature' },
    el('h3', {}, s.name),
    facts([
      [s.topics.length > 1 ? 'Topics' : 'Topic', s.topics.join(', ')],
      ['An event changes', s.mutations !== undefined && `up to ${s.entities} entities by ${count(s.mutations, 'mutation')}`],
      ['IDs remembered', s.remember_ids && `for ${s.remember_ids}`],
      ['Written to', s.enrich && `${s.enrich.topic} in ${s.enrich.format === 'avro' ? 'Avro' : 'JSON'}, with the features of ${s.enrich.service}`],
    ]));
}

function entry(f) {
  return el('article', { class: 'feature', 'data-entry': f.name },
    el('div', { class: 'row' },
      el('h3', {}, name(f.name)),
      el('a', { class: 'button', href: toView('ask', { feature: f.name }), 'aria-label': `Ask ${f.name}` }, 'Ask')),
    f.description && el('p', {}, f.description),
    el('code', { class: 'definition' }, f.definition),
    f.meaning && el('p', { class: 'meaning' }, f.meaning),
    lineage(f),
    facts([
      ['Owner', f.owner],
      ['Window', f.window],
      ['Tile', f.tile],
      ['Keep', f.keep],
      ['Keys', f.keys.map(k => `${k.name} (${k.type})`).join(', ')],
      ['Where', f.where && el('code', {}, f.where)],
      ['Through', f.through && `${f.through.set}, up to ${f.through.max}`],
      ['Bytes of an entity', cost(f)],
      ['Complete since', f.complete_since !== undefined && `${minute(f.complete_since)} UTC`],
      ['Filled from the log', f.filled !== undefined && percent(f.filled)],
      ['Members', f.members && `${f.members}, ${f.members_needed ? 'required' : 'optional'}`],
    ]));
}

// cost says how many bytes the series of a feature take, including series that other features share.
function cost(f) {
  const sized = (f.series ?? []).filter(s => s.bytes_full !== undefined);
  const sum = part => number(sized.reduce((all, s) => all + s[part], 0));
  return sized.length > 0 && `${sum('bytes_once')} with one event, ${sum('bytes_full')} at most`;
}

// lineage shows the path from events to answers: topic, stream, series or parts, the feature, services.
function lineage(f) {
  const streams = [...new Set([f.stream, ...(f.series ?? []).map(s => s.stream)].filter(Boolean))];
  const topics = new Set(streams.flatMap(name => defined.streams.find(s => s.name === name)?.topics ?? []));
  const series = (f.series ?? []).map(s => el('span', { title: s.shared_with?.length > 0 ? `shared with ${s.shared_with.join(', ')}` : undefined },
    `${s.measure}: ${s.state}${s.shared_with?.length > 0 ? `, shared with ${s.shared_with.length}` : ''}`));
  const steps = [
    ['Topic', [...topics]],
    ['Stream', streams.map(words)],
    ['Features', f.parts?.map(words)],
    ['Series', series],
    ['Feature', [el('strong', {}, name(f.name))]],
    ['Services', services(f).map(s => el('a', { href: toView('ask', { service: s }) }, s))],
  ].filter(([, items]) => items?.length > 0);
  return el('ol', { class: 'lineage', 'aria-label': `Lineage of ${f.name}` }, steps.map(([kind, items]) =>
    el('li', {}, el('span', { class: 'hint' }, kind), items.map(item => el('span', {}, item)))));
}

// words makes a link to the entries of the catalogue with a word.
const words = text => el('a', { href: toView('features', { words: text }) }, name(text));
