// The catalogue of features.

import { $, el, problem } from './dom.js';
import { ask } from './api.js';

// load shows the catalogue and returns it. choose is called with the name of a feature
// to ask.
export async function load(choose) {
  let catalogue;
  try {
    catalogue = await ask('v1/features');
  } catch (error) {
    $('catalogue').replaceChildren(error.status === 404
      ? el('p', { class: 'note' }, 'This process answers no questions. Open the page of a process with the role api.')
      : problem(error));
    $('count').textContent = '';
    return { features: [], services: [] };
  }
  const entries = catalogue.features.map(feature => ({ text: searched(feature), node: entry(feature, choose) }));
  const none = el('p', { class: 'note', hidden: true });
  $('catalogue').replaceChildren(...entries.map(e => e.node), none);
  $('streams').replaceChildren(...catalogue.streams.length ? [el('h2', {}, 'Streams'), ...catalogue.streams.map(stream)] : []);
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
  $('search').oninput = filter;
  filter();
  return catalogue;
}

const searched = f => [f.name, f.description, f.owner, f.definition, f.stream, f.function, f.where, ...states(f)]
  .filter(Boolean).join(' ').toLowerCase();

const states = f => [...new Set((f.series ?? []).map(s => s.state))];

// list shows the facts that have a value.
const list = facts => el('dl', { class: 'facts' },
  facts.filter(([, fact]) => fact).map(([name, fact]) => el('div', {}, el('dt', {}, name), el('dd', {}, fact))));

function stream(s) {
  return el('article', { class: 'feature' },
    el('h3', {}, s.name),
    list([
      ['Topic', s.topic],
      ['IDs remembered', s.remember_ids && `for ${s.remember_ids}`],
      ['Written to', s.enrich && `${s.enrich.topic}, with the features of ${s.enrich.service}`],
    ]));
}

function entry(f, choose) {
  const facts = [
    ['Window', f.window],
    ['Tile', f.tile],
    ['Keep', f.keep],
    ['State', states(f).join(', ') || (f.parts || f.through ? 'that of its parts' : undefined)],
    ['Keys', f.keys.map(k => `${k.name} (${k.type})`).join(', ')],
    ['Owner', f.owner],
    ['Stream', f.stream],
    ['Where', f.where && el('code', {}, f.where)],
    ['Computed from', f.parts?.join(', ')],
    ['Through', f.through && `${f.through.set}, up to ${f.through.max}`],
    ['Members', f.members && `${f.members}, ${f.members_needed ? 'required' : 'optional'}`],
  ];
  return el('article', { class: 'feature' },
    el('div', { class: 'row' },
      el('h3', {}, f.name),
      el('button', { type: 'button', class: 'quiet', 'aria-label': `Ask ${f.name}`, click: () => choose(f.name) }, 'Ask')),
    f.description && el('p', {}, f.description),
    el('code', { class: 'definition' }, f.definition),
    list(facts));
}
