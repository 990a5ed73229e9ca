// The lists, whose entries operators write.

import { $, el, problem, table } from './dom.js';
import { ask } from './api.js';
import { defined } from './model.js';
import { go, toView } from './route.js';
import { escaped, moment, number } from './text.js';

let reading = 0; // the number of the last reading

// show shows the list of the parameters, or the first one.
export function show(parameters) {
  const names = defined.lists.map(list => list.name);
  $('list').replaceChildren(...defined.lists.map(list => el('option', { value: list.name }, `${list.name} (${list.type})`)));
  $('list').value = names.includes(parameters.get('list')) ? parameters.get('list') : names[0] ?? '';
  $('entry').hidden = names.length === 0;
  if (names.length === 0) $('entries').replaceChildren(el('p', { class: 'note' }, 'There are no lists, or you may not change them.'));
  else read();
}

const path = () => `v1/lists/${encodeURIComponent($('list').value)}`;

// read shows the entries of the list, or the one with a value.
async function read(value = '') {
  const mine = ++reading;
  let shown;
  try {
    const found = await ask(path() + (value === '' ? '' : `?value=${encodeURIComponent(value)}`));
    shown = entries(found, value);
  } catch (error) {
    shown = [problem(error)];
  }
  if (mine === reading) $('entries').replaceChildren(...shown);
}

function entries({ total, entries: list }, value) {
  if (total === 0) return [el('p', { class: 'note' }, value === '' ? 'The list is empty.' : `${escaped(value)} is not in the list.`)];
  return [
    el('p', { class: 'hint' }, list.length < total ? `The first ${number(list.length)} of ${number(total)} entries` : `Entries: ${number(total)}`),
    table('Entries', ['Value', 'Since', 'Until', 'Who', 'Why', 'Change'], list.map(e => [
      el('code', {}, escaped(e.value)), time(e.since), e.until ? time(e.until) : 'for ever', escaped(e.who ?? ''), escaped(e.why ?? ''),
      el('button', { type: 'button', class: 'quiet', 'aria-label': `Remove ${escaped(e.value)}`, click: () => remove(e.value) }, 'Remove'),
    ])),
  ];
}

const time = text => `${moment(Date.parse(text))} UTC`;

// change sends a change, and shows the list as it is then.
async function change(body, said) {
  $('entry-said').textContent = '';
  try {
    await ask(path(), JSON.stringify(body));
  } catch (error) {
    $('entries').replaceChildren(problem(error));
    return false;
  }
  $('entry-said').textContent = said;
  await read();
  return true;
}

const remove = value => change({ remove: [{ value, why: $('entry-why').value }] }, `${escaped(value)} is removed.`);

async function add(event) {
  event.preventDefault();
  const value = $('entry-value').value.trim();
  const entry = { value, until: $('entry-until').value.trim(), why: $('entry-why').value };
  if (await change({ add: [entry] }, `${escaped(value)} is added.`)) $('entry-value').value = '';
}

// start adds the listeners of the view.
export function start() {
  $('entry').addEventListener('submit', add);
  $('entry-look').addEventListener('click', () => read($('entry-value').value.trim()));
  $('list').addEventListener('change', () => go(toView('lists', { list: $('list').value })));
}
