// Samples of dead letters, which are read from their topic only on request.

import { $, el, facts, problem } from './dom.js';
import { ask } from './api.js';
import { escaped, moment, number } from './text.js';

let reading = false; // the server reads for one request at a time

async function read() {
  if (reading) return;
  reading = true;
  $('samples').replaceChildren(el('p', { class: 'hint', role: 'status' }, 'Reading …'));
  let shown;
  try {
    const { dead_letters: letters } = await ask('v1/dead-letters');
    shown = letters.length > 0 ? letters.map(letter) : [el('p', { class: 'note' }, 'There is none among the last records of the topic.')];
  } catch (error) {
    shown = [problem(error)];
  }
  reading = false;
  $('samples').replaceChildren(...shown);
}

const letter = l => el('article', { class: 'feature', 'data-letter': l.source },
  el('h3', {}, l.reason, el('span', { class: 'hint' }, l.source)),
  el('p', {}, l.message),
  facts([
    ['Record time', `${moment(l.timestamp)} UTC`],
    ['Set aside', `${moment(l.set_aside)} UTC`],
    ['Stream', l.stream],
    ['Dead letter', l.at],
    ['Replayed', l.replayed && 'yes'],
    ['Sealed', !l.sealed && 'no: of another namespace, or forged'],
    ['Key', l.key && el('code', {}, escaped(l.key.text ?? l.key.base64))],
  ]),
  l.value ? content(l.value) : el('p', { class: 'hint' }, 'The record has no value.'));

function content(value) {
  const text = value.text ?? bytesOf(value.base64);
  const shown = value.text === undefined ? atob(value.base64).length : new TextEncoder().encode(value.text).length;
  return el('div', {},
    el('p', { class: 'hint' }, shown < value.bytes ? `The first ${number(shown)} of ${number(value.bytes)} bytes` : `${number(value.bytes)} bytes`),
    el('pre', {}, escaped(text)));
}

// bytesOf writes bytes in hexadecimal, 16 on a line.
const bytesOf = base64 => [...atob(base64)].map((c, i) => c.charCodeAt(0).toString(16).padStart(2, '0') + (i % 16 === 15 ? '\n' : ' ')).join('');

// start adds the listeners of the box.
export function start() {
  $('letters').addEventListener('toggle', () => { if ($('letters').open) read(); });
  $('letters-again').addEventListener('click', read);
}
