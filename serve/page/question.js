// The question box.

import { $, el, problem } from './dom.js';
import { ask } from './api.js';
import { show } from './answer.js';

let catalogue = { features: [], services: [] };
let chosen = []; // names of features
const typed = new Map(); // the contents of the inputs of keys and members, by their ids

// prepare offers the features, services and streams of the catalogue.
export function prepare(from) {
  catalogue = from;
  $('names').replaceChildren(...catalogue.features.map(f => el('option', { value: f.name })));
  offer($('service'), catalogue.services.map(s => s.name));
  offer($('pending-stream'), [...new Set(catalogue.features.map(f => f.stream).filter(Boolean))].sort());
  $('service-field').hidden = catalogue.services.length === 0;
  chosen = chosen.filter(known);
  refresh();
}

// offer lists names after the first option, which stands for none of them.
function offer(select, names) {
  const before = select.value;
  select.replaceChildren(select.options[0], ...names.map(name => el('option', { value: name }, name)));
  select.value = names.includes(before) ? before : '';
}

const known = name => catalogue.features.some(f => f.name === name);

// choose adds a feature to the question.
export function choose(name) {
  $('add-problem').textContent = '';
  if (!known(name)) {
    $('add-problem').textContent = name === '' ? 'Enter the name of a feature.' : `There is no feature "${name}".`;
    return;
  }
  if (!chosen.includes(name)) chosen.push(name);
  $('add').value = '';
  refresh();
}

// asked returns the features of the question, including those of the service.
function asked() {
  const service = catalogue.services.find(s => s.name === $('service').value);
  const names = new Set([...chosen, ...(service?.features ?? [])]);
  return catalogue.features.filter(f => names.has(f.name));
}

// refresh shows the chosen features and the inputs that they need.
function refresh() {
  $('chosen').replaceChildren(...chosen.map(name => el('li', {}, name,
    el('button', { type: 'button', 'aria-label': `Remove ${name}`, click: () => remove(name) }, '×'))));
  const features = asked();
  const keys = new Map(features.flatMap(f => f.keys).map(key => [key.name, key]));
  $('inputs').replaceChildren(
    ...[...keys.values()].map(key => input(`key-${key.name}`, key.name, key.type, control(key.type))),
    ...features.filter(f => f.members).map(f => input(`members-${f.name}`, `Members of ${f.name}`,
      `${f.members}, separated by commas${f.members_needed ? '' : '; optional'}`, el('input'))));
}

function remove(name) {
  chosen = chosen.filter(other => other !== name);
  refresh();
  $('add').focus();
}

const control = type => (type === 'bool'
  ? el('select', {}, ['true', 'false'].map(v => el('option', { value: v }, v)))
  : el('input'));

// input makes a labelled control that remembers what was typed.
function input(id, label, hint, node) {
  for (const [name, value] of Object.entries({ id, autocomplete: 'off', spellcheck: 'false' })) node.setAttribute(name, value);
  if (typed.has(id)) node.value = typed.get(id);
  node.addEventListener('input', () => typed.set(id, node.value));
  return el('div', { class: 'field' }, el('label', { for: id }, label, el('span', { class: 'hint' }, hint)), node);
}

// literal writes the input as JSON of a type. Other input is sent as a string: the
// server's error says what it expects.
function literal(text, type) {
  if (type !== 'string') {
    try {
      JSON.parse(text);
      return text;
    } catch {
      // a moment in RFC 3339, or a mistake
    }
  }
  return JSON.stringify(text);
}

// body writes the question as text, so that no digit is lost.
function body(features) {
  const parts = [];
  if (chosen.length > 0) parts.push(`"features": ${JSON.stringify(chosen)}`);
  if ($('service').value !== '') parts.push(`"service": ${JSON.stringify($('service').value)}`);
  parts.push(`"entities": [{${entity(features).map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join(', ')}}]`);
  const members = features.filter(f => f.members && $(`members-${f.name}`).value.trim() !== '').map(f => {
    const values = $(`members-${f.name}`).value.split(',').map(text => literal(text.trim(), f.members));
    return `${JSON.stringify(f.name)}: [${values.join(', ')}]`;
  });
  if (members.length > 0) parts.push(`"members": {${members.join(', ')}}`);
  if (at() !== '') parts.push(`"at": ${literal(at(), 'timestamp')}`);
  if ($('pending-stream').value !== '') {
    const event = $('pending-event').value.trim() || '{}';
    parts.push(`"pending": {"stream": ${JSON.stringify($('pending-stream').value)}, "event": ${event}}`);
  }
  return `{${parts.join(',\n ')}}`;
}

const at = () => $('at').value.trim();

// entity returns the keys that were filled in, with their values as JSON.
function entity(features) {
  const keys = new Map(features.flatMap(f => f.keys).map(key => [key.name, key]));
  return [...keys.values()].map(key => [key.name, $(`key-${key.name}`).value, key.type])
    .filter(([, text]) => text !== '').map(([name, text, type]) => [name, literal(text, type)]);
}

async function submit(event) {
  event.preventDefault();
  $('add-problem').textContent = '';
  if ($('add').value.trim() !== '') {
    choose($('add').value.trim());
    // Enter after a name only adds it.
    if (document.activeElement === $('add') || $('add-problem').textContent !== '') return;
  }
  const features = asked();
  const question = body(features);
  const keys = Object.fromEntries(features.flatMap(f => f.keys).map(key => [key.name, $(`key-${key.name}`).value]));
  $('answer').setAttribute('aria-busy', 'true');
  const began = performance.now();
  try {
    const answer = await ask('v1/query', question);
    show({ answer, features, question, keys, took: performance.now() - began, pending: $('pending-stream').value !== '' });
  } catch (error) {
    $('answer').replaceChildren(problem(error));
  }
  $('answer').removeAttribute('aria-busy');
}

// start adds the listeners of the box.
export function start() {
  $('question').addEventListener('submit', submit);
  $('service').addEventListener('change', refresh);
  $('add-button').addEventListener('click', () => choose($('add').value.trim()));
  // A name picked from the list needs no button.
  $('add').addEventListener('input', event => {
    if (event.inputType === 'insertReplacementText' && known($('add').value)) choose($('add').value);
  });
}
