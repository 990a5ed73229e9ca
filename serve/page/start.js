// The view to begin with when no entity is known.

import { $, el } from './dom.js';
import { ask } from './api.js';
import { shares } from './chart.js';
import { defined } from './model.js';
import { toEntity, toView } from './route.js';
import { count, id, second } from './text.js';

// show lists the busiest entities and the services.
export async function show(stale) {
  $('services').replaceChildren(...defined.services.map(s => el('li', {},
    el('a', { href: toView('ask', { service: s.name }) }, s.name), el('span', { class: 'hint' }, count(s.features.length, 'feature')))));
  $('services-part').hidden = defined.services.length === 0;
  let found;
  try {
    found = await ask('v1/busiest');
  } catch {
    found = { busiest: [] }; // for example without the scope for it: then one begins with a known entity
  }
  if (stale()) return;
  const lists = found.busiest.filter(list => list.entities.length > 0);
  $('busiest-part').hidden = lists.length === 0;
  $('busiest-since').textContent = found.since ? `by events since ${second(found.since)} UTC` : '';
  $('busiest').replaceChildren(...lists.map(list => el('article', { class: 'panel', 'data-busiest': list.key },
    el('h3', {}, list.key),
    shares(`Busiest ${list.key}`, [list.key, 'Events'], list.entities.map(one =>
      [found.hashed ? one.entity : el('a', { href: toEntity({ [list.key]: one.entity }) }, id(one.entity)), one.events])))));
}
