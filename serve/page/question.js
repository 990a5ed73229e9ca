// The question box. The question is in the URL, so that it can be shared and repeated.

import { $, el, problem } from './dom.js';
import { ask } from './api.js';
import { answers, asCommand } from './answer.js';
import { defined, entityJSON, feature, keysOf, literal } from './model.js';
import { toView } from './route.js';
import { count, minute, moment } from './text.js';

let chosen = []; // names of features
let entities = [{}]; // what was typed for each
let asking = 0; // the number of the question under way

// show fills the box with the question of the URL, and asks it if it is complete.
export function show(parameters) {
  offer($('service'), defined.services.map(s => s.name), parameters.get('service'));
  offer($('pending-stream'), [...new Set(defined.features.map(f => f.stream).filter(Boolean))].sort(), parameters.get('pending'));
  $('names').replaceChildren(...defined.features.map(f => el('option', { value: f.name })));
  $('service-field').hidden = defined.services.length === 0;
  $('at').value = parameters.get('at') ?? '';
  $('pending-event').value = parameters.get('event') ?? '';
  chosen = parameters.getAll('feature').filter(feature);
  entities = parameters.getAll('entity').map(text => Object.fromEntries(new URLSearchParams(text)));
  if (entities.length === 0) entities = [{}];
  refresh();
  for (const f of asked().filter(f => f.members && parameters.has(`members.${f.name}`))) {
    $(`members-${f.name}`).value = parameters.get(`members.${f.name}`);
    $(`members-${f.name}`).closest('details')?.setAttribute('open', '');
  }
  clear();
  $('add').value = '';
  $('add-problem').textContent = gone(parameters).join(' ');
  if (parameters.has('entity') && asked().length > 0) put();
}

// gone names what a URL asks for and is not defined, or no longer: the question is without it.
function gone(parameters) {
  const streams = [...$('pending-stream').options].map(option => option.value);
  return [
    ...parameters.getAll('feature').filter(name => !feature(name)).map(name => `There is no feature "${name}".`),
    ...parameters.getAll('service').filter(name => !defined.services.some(s => s.name === name)).map(name => `There is no service "${name}".`),
    ...parameters.getAll('pending').filter(name => !streams.includes(name)).map(name => `There is no stream "${name}".`),
  ];
}

function clear() {
  asking++;
  $('said').textContent = '';
  $('answer').replaceChildren();
}

// offer lists names after the first option, which means none.
function offer(select, names, value) {
  select.replaceChildren(select.options[0], ...names.map(name => el('option', { value: name }, name)));
  select.value = names.includes(value) ? value : '';
}

// choose adds a feature to the question.
function choose(name) {
  $('add-problem').textContent = '';
  if (!feature(name)) {
    $('add-problem').textContent = name === '' ? 'Enter the name of a feature.' : `There is no feature "${name}".`;
    return;
  }
  if (!chosen.includes(name)) chosen.push(name);
  $('add').value = '';
  refresh();
}

// asked returns the features of the question, including those of the service.
function asked() {
  const service = defined.services.find(s => s.name === $('service').value);
  const names = new Set([...(service?.features ?? []), ...chosen]);
  return [...names].map(feature).filter(Boolean);
}

// refresh shows the chosen features and the inputs that they need.
function refresh() {
  $('chosen').replaceChildren(...chosen.map(name => el('li', {}, name,
    el('button', { type: 'button', 'aria-label': `Remove ${name}`, click: () => remove(name) }, '×'))));
  const features = asked();
  const keys = keysOf(features);
  const members = new Map([...$('inputs').querySelectorAll('[data-members]')].map(node => [node.id, node.value]));
  const opened = $('inputs').querySelector('details')?.open ?? false;
  const optional = features.filter(f => f.members && !f.members_needed);
  $('inputs').replaceChildren(
    ...entities.map((typed, i) => el('fieldset', { hidden: keys.length === 0 },
      el('legend', {}, entities.length === 1 ? 'Entity' : `Entity ${i + 1}`),
      keys.map(key => keyInput(key, typed, i === 0 ? '' : `-${i + 1}`)))),
    ...features.filter(f => f.members_needed).map(f => membersInput(f, members)),
    ...(optional.length === 0 ? [] : [el('details', { class: 'field', open: opened }, el('summary', {}, 'Ask about members'), optional.map(f => membersInput(f, members)))]));
  $('more-entities').hidden = keys.length === 0;
  $('fewer-entities').hidden = entities.length < 2;
}

function remove(name) {
  chosen = chosen.filter(other => other !== name);
  refresh();
  $('add').focus();
}

// keyInput is the control of a key of an entity, which remembers what is typed.
function keyInput(key, typed, suffix) {
  const node = key.type === 'bool' ? el('select', {}, ['', 'true', 'false'].map(v => el('option', { value: v }, v))) : el('input');
  node.value = typed[key.name] ?? '';
  node.addEventListener('input', () => { typed[key.name] = node.value; });
  return field(`key-${key.name}${suffix}`, key.name, key.type, node);
}

// membersInput is the control of the members that a feature is asked about, with what was typed before.
const membersInput = (f, before) => field(`members-${f.name}`, `Members of ${f.name}`, `${f.members}, separated by commas`,
  el('input', { 'data-members': f.name, value: before.get(`members-${f.name}`) }));

// field makes a labelled control.
function field(id, label, hint, node) {
  for (const [name, value] of Object.entries({ id, autocomplete: 'off', spellcheck: 'false' })) node.setAttribute(name, value);
  return el('div', { class: 'field' }, el('label', { for: id }, label, el('span', { class: 'hint' }, hint)), node);
}

const trimmed = id => $(id).value.trim();

const filledIn = typed => Object.fromEntries(Object.entries(typed).filter(([, text]) => text !== ''));

// body writes the question as text, so that no digit is lost.
function body(features) {
  const parts = [];
  if (chosen.length > 0) parts.push(`"features": ${JSON.stringify(chosen)}`);
  if ($('service').value !== '') parts.push(`"service": ${JSON.stringify($('service').value)}`);
  parts.push(`"entities": [${entities.map(typed => entityJSON(filledIn(typed), keysOf(features))).join(', ')}]`);
  const members = features.filter(f => f.members && trimmed(`members-${f.name}`) !== '').map(f => {
    const values = trimmed(`members-${f.name}`).split(',').map(text => literal(text.trim(), f.members));
    return `${JSON.stringify(f.name)}: [${values.join(', ')}]`;
  });
  if (members.length > 0) parts.push(`"members": {${members.join(', ')}}`);
  if (trimmed('at') !== '') parts.push(`"at": ${literal(trimmed('at'), 'timestamp')}`);
  if ($('pending-stream').value !== '') {
    parts.push(`"pending": {"stream": ${JSON.stringify($('pending-stream').value)}, "event": ${trimmed('pending-event') || '{}'}}`);
  }
  return `{${parts.join(',\n ')}}`;
}

// address returns the URL of the question in the box.
function address() {
  const pairs = [['service', $('service').value], ...chosen.map(name => ['feature', name]), ['at', trimmed('at')],
    ['pending', $('pending-stream').value], ['event', $('pending-stream').value && trimmed('pending-event')],
    ...asked().filter(f => f.members).map(f => [`members.${f.name}`, trimmed(`members-${f.name}`)])].filter(([, value]) => value !== '');
  const needed = new Set(keysOf(asked()).map(key => key.name));
  const texts = entities.map(entity => ['entity', new URLSearchParams(Object.entries(entity).filter(([key, value]) => needed.has(key) && value !== ''))]);
  return toView('ask', [...pairs, ...texts]);
}

function submit(event) {
  event.preventDefault();
  $('add-problem').textContent = '';
  if (trimmed('add') !== '') {
    choose(trimmed('add'));
    // Enter after a name only adds it.
    if (document.activeElement === $('add') || $('add-problem').textContent !== '') return;
  }
  if (asked().length === 0) $('add-problem').textContent = 'Choose a feature or a service.';
  else {
    // Not through the URL: that would fill the box again while its user is still typing.
    if (location.hash !== address()) history.pushState(null, '', address());
    put();
  }
}

// put asks the question in the box and shows its answer.
async function put() {
  const mine = ++asking;
  const features = asked();
  const question = body(features);
  $('said').textContent = 'Asking …';
  const began = performance.now();
  try {
    const answer = await ask('v1/query', question);
    if (mine !== asking) return;
    $('said').textContent = `${count(features.length, 'feature')} at ${minute(answer.at)} UTC, ` +
      `in ${Math.max(1, Math.round(performance.now() - began))} ms.`;
    $('answer').replaceChildren(...(answer.pending ?? []).map(pendingNote), answers('Answer', [['', features]], answer.results), asCommand(question));
    // On a phone the answer is below the box.
    if ($('said').getBoundingClientRect().top > innerHeight / 2) $('said').scrollIntoView();
  } catch (error) {
    if (mine !== asking) return;
    clear();
    $('answer').replaceChildren(problem(error));
  }
}

const pendingNote = p => el('p', { class: 'note' }, p.uncounted
  ? `No answer counts the pending event of ${p.stream} at ${moment(p.time)}: it is of other entities than those asked about, or no feature selects it`
  : `Counts a pending event of ${p.stream} at ${moment(p.time)}` +
  (p.late ? ', too late for some features' : '') +
  (p.met !== undefined ? `; not counted again, since its ID was met at ${moment(p.met)}`
    : p.deduplicated ? '; not counted twice if it has already arrived' : '; counted twice if it has already arrived'));

// resize changes the number of entities.
function resize(by) {
  entities = by > 0 ? [...entities, {}] : entities.slice(0, -1);
  refresh();
  $('inputs').querySelector('fieldset:last-of-type input, fieldset:last-of-type select')?.focus();
}

// start adds the listeners of the box.
export function start() {
  $('question').addEventListener('submit', submit);
  $('service').addEventListener('change', refresh);
  $('add-button').addEventListener('click', () => choose(trimmed('add')));
  $('more-entities').addEventListener('click', () => resize(1));
  $('fewer-entities').addEventListener('click', () => resize(-1));
  // A name that is picked from the list needs no button.
  $('add').addEventListener('input', event => {
    if (event.inputType === 'insertReplacementText' && feature($('add').value)) choose($('add').value);
  });
}
