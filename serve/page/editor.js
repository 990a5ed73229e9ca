// The editor of definitions: the mistakes in a file, and what its features would answer.

import { $, el, facts, name, problem, table } from './dom.js';
import { ask } from './api.js';
import { toView } from './route.js';
import { count, minute, number, percent, rounded } from './text.js';

const fresh = 'new.yaml';
const example = `features:
  # What this feature says about a user, in words.
  my_feature_1h: COUNT(1h, transaction, user_id)
`;

let files = new Map(); // texts by the names of the files in use
let drafts = new Map(); // what was typed for each
let checking = false; // the server previews for one request at a time

// show offers the files in use and fills the box with the file of the URL.
export async function show(parameters, stale) {
  $('draft-result').replaceChildren();
  try {
    files = new Map((await ask('v1/definitions')).definitions.map(file => [file.path, file.text]));
  } catch (error) {
    if (!stale()) $('draft-result').replaceChildren(problem(error));
    return;
  }
  if (stale()) return;
  const chosen = parameters.get('file');
  $('draft-file').replaceChildren(el('option', { value: '' }, 'a new file'), ...[...files.keys()].map(path => el('option', { value: path }, path)));
  $('draft-file').value = files.has(chosen) ? chosen : '';
  $('draft-text').value = drafts.get($('draft-file').value) ?? files.get($('draft-file').value) ?? example;
}

// put checks and previews the text in the box.
async function put(event) {
  event.preventDefault();
  if (checking) return;
  checking = true;
  $('draft-said').textContent = 'Checking …';
  $('draft-result').replaceChildren();
  const file = $('draft-file').value || fresh;
  try {
    const answer = await ask('v1/preview', JSON.stringify({ file, text: $('draft-text').value, minutes: Number($('draft-minutes').value) }));
    const wrong = answer.findings.length;
    $('draft-said').textContent = wrong > 0 ? `${wrong === 1 ? '1 mistake' : `${wrong} mistakes`}.` : 'All is well.';
    $('draft-result').replaceChildren(...(wrong > 0 ? [findings(answer.findings, file)] : [...effects(answer.effects), ...preview(answer)]));
  } catch (error) {
    $('draft-said').textContent = '';
    $('draft-result').replaceChildren(problem(error));
  } finally {
    checking = false;
  }
}

// findings lists mistakes; those in the box lead to their place.
const findings = (list, file) => el('ul', { class: 'findings' }, list.map(f => {
  const place = f.line > 0 ? `${f.file}:${f.line}:${f.column}` : f.file;
  return el('li', {}, f.file === file && f.line > 0
    ? el('button', { type: 'button', class: 'exact', click: () => select(f.line, f.column) }, place) : el('span', {}, place), `: ${f.message}`);
}));

// select moves the cursor to a finding; its columns count characters, but the box counts UTF-16 units.
function select(line, column) {
  const lines = $('draft-text').value.split('\n');
  const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const at = before + [...(lines[line - 1] ?? '')].slice(0, column - 1).join('').length;
  $('draft-text').focus();
  $('draft-text').setSelectionRange(at, before + (lines[line - 1] ?? '').length);
}

// effects says what those who ask see once the file is in use; services that answer less for a time come first.
const effects = (list = []) => [true, false].map(loses => list.filter(e => e.loses === loses)).filter(some => some.length > 0).map(some =>
  el('div', { class: some[0].loses ? 'problem' : 'note' }, el('p', {}, some[0].loses ? 'Services would answer less than now for a time:' : 'Once it is in use:'),
    el('ul', {}, some.map(e => el('li', {}, el('span', { class: 'exact' }, e.feature), `: ${e.effect}${e.services ? ` (in ${e.services.join(', ')})` : ''}`)))));

function preview({ preview: report, no_preview: why }) {
  if (!report) return [el('p', { class: 'note' }, `No preview: ${why}.`)];
  const also = [[report.unmatched, 'of no stream'], [report.late, 'too late for some feature']].filter(([n]) => n > 0).map(([n, what]) => `, ${number(n)} ${what}`);
  return [
    el('p', {}, `${count(report.records, 'record')} since ${minute(report.since)} UTC: ${number(report.events)} used${also.join('')}.`,
      report.cut && ' There are more; these are the newest.', report.gone && ' Older ones may be missing.'),
    ...(report.set_aside ?? []).map(s => el('div', { class: 'problem' }, el('p', {}, `${number(s.records)} would be set aside as ${s.reason}.`),
      s.first.map(first => el('p', { class: 'hint' }, first)))),
    ...report.features.map(feature),
  ];
}

function feature(f) {
  const used = f.used ?? { no_key: 0, filtered: 0, no_value: 0, no_category: 0 };
  return el('article', { class: 'feature', 'data-preview': f.name },
    el('h3', {}, name(f.name)),
    el('code', { class: 'definition' }, f.definition),
    f.note && el('p', { class: 'note' }, f.note),
    facts([
      ['Counts', f.part && 'only these records, a part of the window'],
      ['Entities', number(f.entities)],
      ['Without a value', f.asked > 0 && percent(f.nulls / f.asked)],
      ['Left out', [[used.no_key, `lack ${f.by.join(' or ')}`], [used.filtered, 'do not pass the filter'], [used.no_value, 'have no value of the field'],
        [used.no_category, 'have no category']]
        .filter(([n]) => n > 0).map(([n, why]) => `${number(n)} events ${why}`).join(', ')],
      ['Bytes of an entity', f.bytes_full && `${number(f.bytes_once)} with one event, ${number(f.bytes_full)} at most, for all features of the same keys`],
    ]),
    distribution(f.numbers, 'value', f.name) ?? distribution(f.lengths, 'length', f.name),
    f.values && table(`Most frequent values of ${f.name}`, ['Value', 'Entities'], f.values.map(v => [rounded(v.value), number(v.count)])),
    f.examples && table(`Examples of ${f.name}`, ['Entity', 'Events', 'Value'],
      f.examples.map(e => [e.entity, number(e.events), typeof e.answer.value === 'object' ? JSON.stringify(e.answer.value) : rounded(e.answer.value)])));
}

const distribution = (d, what, of) => d && table(`${what}s of ${of}`, [`Least ${what}`, 'Median', '90 % up to', '99 % up to', 'Greatest'],
  [[d.min, d.p50, d.p90, d.p99, d.max].map(rounded)]);

// start adds the listeners of the box.
export function start() {
  $('draft').addEventListener('submit', put);
  $('draft-text').addEventListener('input', () => drafts.set($('draft-file').value, $('draft-text').value));
  $('draft-file').addEventListener('change', () => { location.hash = toView('editor', $('draft-file').value ? { file: $('draft-file').value } : {}); });
}
