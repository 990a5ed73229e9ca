// The greatest keys of the state, which the server looks for only when it is asked to.

import { $, el, problem, table } from './dom.js';
import { ask } from './api.js';
import { defined } from './model.js';
import { toEntity } from './route.js';
import { bytes, count, escaped, id, second } from './text.js';

const named = 3; // features of a key that are named

let looking = false; // the server looks for one request at a time

async function look() {
  if (looking) return;
  looking = true;
  $('keys').replaceChildren(el('p', { class: 'hint', role: 'status' }, 'Looking, for up to 10 seconds …'));
  let shown;
  try {
    shown = list(await ask('v1/greatest-keys'));
  } catch (error) {
    shown = [problem(error)];
  }
  looking = false;
  $('keys').replaceChildren(...shown);
}

function list(found) {
  const several = found.greatest_keys.some(k => k.server);
  return [
    el('p', { class: 'hint' }, `Of ${count(found.looked, 'key')}, at ${second(found.at)} UTC. weir state shows what takes the room.`),
    found.incomplete && el('p', { class: 'note' }, `These are not all keys: ${found.incomplete}.`),
    found.greatest_keys.length > 0 && table('Greatest keys', ['Entity', 'Bytes', 'Features', 'Shard', ...(several ? ['Server'] : [])], found.greatest_keys.map(k =>
      [entity(k), bytes(k.bytes), features(k.features), String(k.shard), ...(several ? [k.server ?? ''] : [])])),
  ].filter(Boolean);
}

// entity leads to the page of an entity, if the server answers questions; without one it is the key.
function entity(k) {
  if (!k.entity) return el('code', {}, escaped(k.key));
  const text = Object.entries(k.entity).map(([key, value]) => `${key} ${id(value)}`).join(' · ');
  return defined.features.length > 0 ? el('a', { href: toEntity(k.entity) }, text) : text;
}

const features = names => (names.length === 0 ? 'none that is defined'
  : names.slice(0, named).join(', ') + (names.length > named ? ` and ${names.length - named} more` : ''));

// start adds the listeners of the box.
export function start() {
  $('greatest').addEventListener('toggle', () => { if ($('greatest').open) look(); });
  $('greatest-again').addEventListener('click', look);
}
