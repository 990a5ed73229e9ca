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
const of = value => `${path()}?value=${encodeURIComponent(value)}`;

// read shows the entries of the list, or the one with a value.
async function read(value = '') {
  const mine = ++reading;
  let shown;
  try {
    const found = await ask(value === '' ? path() : of(value));
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

const soon = 200; // milliseconds until a change is looked for again
const patience = 25; // looks: the change is made, though this process has not read it yet

// change sends a change about a value, and shows the list once this process has read it.
async function change(value, body, said) {
  $('entry-said').textContent = '';
  const entry = async () => JSON.stringify((await ask(of(value))).entries);
  try {
    const before = await entry();
    await ask(path(), JSON.stringify(body));
    for (let looks = 0; looks < patience && await entry() === before; looks++) await new Promise(done => setTimeout(done, soon));
  } catch (error) {
    $('entries').replaceChildren(problem(error));
    return false;
  }
  $('entry-said').textContent = said;
  await read();
  return true;
}

const remove = value => change(value, { remove: [{ value, why: $('entry-why').value }] }, `${escaped(value)} is removed.`);

async function add(event) {
  event.preventDefault();
  const value = $('entry-value').value.trim();
  const entry = { value, until: $('entry-until').value.trim(), why: $('entry-why').value };
  if (await change(value, { add: [entry] }, `${escaped(value)} is added.`)) $('entry-value').value = '';
}

// start adds the listeners of the view.
export function start() {
  $('entry').addEventListener('submit', add);
  $('entry-look').addEventListener('click', () => read($('entry-value').value.trim()));
  $('list').addEventListener('change', () => go(toView('lists', { list: $('list').value })));
}
