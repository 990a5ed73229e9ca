// The page: shows the view that the URL names.

import { $, el, problem } from './dom.js';
import { setToken, token } from './api.js';
import * as catalogue from './catalogue.js';
import * as editor from './editor.js';
import * as entity from './entity.js';
import * as keys from './keys.js';
import * as letters from './letters.js';
import * as lists from './lists.js';
import { defined, keysOf, load } from './model.js';
import * as operations from './operations.js';
import * as question from './question.js';
import { current, go, toEntity } from './route.js';
import * as start from './start.js';

const titles = { start: 'Start', entity: 'Entity', ask: 'Ask', features: 'Features', lists: 'Lists', editor: 'Editor', operations: 'Operations' };
const withoutCatalogue = ['editor', 'operations'];

let turn = 0; // of the view that is shown

// open shows the view of the URL. Only the first view after the page is loaded does not move the focus.
async function open() {
  if (location.hash !== '' && !location.hash.startsWith('#/')) return;
  const { view, parameters, entity: named } = current() ?? { view: 'start', parameters: new URLSearchParams() };
  const [mine, before] = [++turn, document.querySelector('main > section:not([hidden])')];
  const stale = () => turn !== mine;
  for (const section of document.querySelectorAll('main > section')) section.hidden = section.id !== view;
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (view === 'entity') entity.name(named); // before its title gets the focus, and is read aloud
  document.title = `${named ? Object.values(named).join(' · ') : titles[view]} – Weir`;
  if (before && (before.id !== view || view === 'entity')) {
    scrollTo(0, 0);
    $(`${view}-title`).focus({ preventScroll: true });
  }
  operations.watch(view === 'operations');
  if (view === 'editor') editor.show(parameters, stale);
  if (!await known(stale, view, named)) return;
  switch (view) {
    case 'entity': return entity.show(named, parameters.get('at') ?? '', stale);
    case 'ask': return question.show(parameters);
    case 'features': return catalogue.show(parameters);
    case 'lists': return lists.show(parameters);
    case 'start': return start.show(stale);
  }
}

// known reads the catalogue, which may change at any time, and returns whether it was read and is still wanted.
async function known(stale, view, named) {
  try {
    await load();
  } catch (error) {
    if (!withoutCatalogue.includes(view)) $('trouble').replaceChildren(error.status === 404
      ? el('p', { class: 'note' }, 'This process answers no questions. Open the page of a process with the role api. ', el('a', { href: '#/operations' }, 'Its operations'))
      : problem(error));
    return false;
  }
  if (stale()) return false;
  $('trouble').replaceChildren();
  const before = [...Object.keys(named ?? {}), $('find-key').value];
  const keys = keysOf(defined.features).map(key => key.name);
  $('find-key').replaceChildren(...keys.map(key => el('option', { value: key }, key)));
  $('find-key').value = before.find(key => keys.includes(key)) ?? keys[0];
  $('find').hidden = false;
  document.querySelector('nav [data-view=lists]').hidden = defined.lists.length === 0;
  return true;
}

// find shows the entity in the search box: an id of the chosen key, or KEY=VALUE pairs.
function find(event) {
  event.preventDefault();
  const text = $('find-id').value.trim();
  if (text === '') return;
  const pairs = text.split(/\s+/).map(pair => pair.split(/=(.*)/s).slice(0, 2));
  const keys = keysOf(defined.features).map(key => key.name);
  // Ids may have a "=", too, such as those in base64.
  const named = ([key, id]) => id !== undefined && key !== '' && keys.some(name => name.startsWith(key));
  $('find-id').value = ''; // the title names it
  go(toEntity(pairs.every(named) ? Object.fromEntries(pairs) : { [$('find-key').value]: text }));
}

$('token').value = token();
$('access-form').addEventListener('submit', event => {
  event.preventDefault();
  setToken($('token').value.trim());
  $('access').open = false;
  open();
});
$('find').addEventListener('submit', find);
$('skip').addEventListener('click', event => {
  event.preventDefault(); // the URL names what is shown
  document.querySelector('main > section:not([hidden]) h2').focus();
});
question.start();
editor.start();
letters.start();
lists.start();
keys.start();
window.addEventListener('hashchange', open);
open();
