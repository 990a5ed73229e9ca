// The state of the pipeline of this process, polled.

import { $, el, problem, table } from './dom.js';
import { ask, fetched } from './api.js';
import { line } from './chart.js';
import { bytes, minute, moment, number, percent, rate, second, seconds } from './text.js';

const interval = 2000; // milliseconds
const soon = 500; // until the second look, which gives the first rates
const kept = 60; // number of rates in the line
const rarely = 5; // looks between two reads of what rarely changes

let before = null; // the previous status
let rates = [];
let timer;
let watching = 0; // the number of the present watch
let looks = 0;
let process = {}; // what rarely changes: definitions, checks, keys

// watch shows the status while it is wanted and the page is visible.
export function watch(wanted) {
  clearTimeout(timer);
  const mine = ++watching;
  const over = () => mine !== watching; // also during a look, which may take long
  if (!wanted) return;
  [before, rates, looks] = [null, [], 0];
  const next = async () => {
    if (!document.hidden) await look(over);
    if (!over()) timer = setTimeout(next, looks === 1 ? soon : interval);
  };
  timer = setTimeout(next);
}

async function look(over) {
  let status;
  try {
    status = await ask('v1/status');
    if (over()) return;
    if (looks++ % rarely === 0) process = await slow();
    if (over()) return;
  } catch (error) {
    if (over()) return;
    $('live-state').textContent = 'unknown';
    $('live-note').hidden = true;
    $('letters').hidden = true;
    $('greatest').hidden = true;
    $('figures').replaceChildren();
    const said = problem(error);
    // The same again is not announced again.
    if ($('live-details').textContent !== said.textContent) $('live-details').replaceChildren(said);
    before = null;
    looks = 0;
    return;
  }
  if (before && restarted(status)) before = null;
  const past = before && before.at < status.at ? (status.at - before.at) / 1000 : 0;
  $('live-state').textContent = `at ${second(status.at)} UTC`;
  $('live-note').hidden = status.processor !== undefined;
  $('live-note').textContent = 'This process answers questions only; it applies no events. ' +
    'To see the pipeline, open the page of a process with the role processor.';
  const figures = [...(status.processor ? pipeline(status.processor, past) : []), questions(status, past), ...slowFigures()];
  $('figures').replaceChildren(...figures.map(figure));
  $('live-details').querySelector('.problem')?.remove();
  checks();
  if (status.processor) details(status.processor);
  $('letters').hidden = !status.processor;
  $('greatest').hidden = false;
  if (status.backfills) backfills(status.backfills);
  before = status;
}

// restarted says whether the process was restarted since the last look: its counters fell, or it has other roles.
function restarted(status) {
  const counted = [s => total(s.questions), s => total(s.processor?.events ?? [])];
  return counted.some(count => count(status) < count(before)) || !status.processor !== !before.processor;
}

// slow reads what rarely changes, without what this client may not see.
async function slow() {
  const [readiness, metrics] = await Promise.all([fetched('readyz'), fetched('metrics')].map(reading => reading.catch(() => ({}))));
  const metric = name => new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'm').exec(metrics.text ?? '') ?? undefined;
  let ready = {};
  try {
    ready = JSON.parse(readiness.text);
  } catch {
    // a proxy that answers with something other than JSON
  }
  return {
    ready, greatest: metric('weir_greatest_key_bytes')?.[2],
    build: /\bversion="([^"]*)"/.exec(metric('weir_build_info')?.[1] ?? '')?.[1],
  };
}

// slowFigures lists the figures that rarely change.
function slowFigures() {
  const { ready: { definitions }, greatest, build } = process;
  const reload = definitions?.last_reload;
  return [
    greatest > 0 && { id: 'greatest', name: 'Greatest key', value: bytes(Number(greatest)), note: 'of those compacted lately; the greatest of all are listed below', warn: greatest > 1 << 20 },
    definitions && {
      id: 'definitions', name: 'Definitions', value: definitions.version.slice(0, 8), title: definitions.version, warn: reload?.loaded === false,
      note: !reload ? 'as at the start' : `${reload.loaded ? 'changed' : 'a change was refused'} at ${minute(Date.parse(reload.at))}`,
    },
    build && { id: 'build', name: 'Weir', value: build, note: 'version of this process' },
  ].filter(Boolean);
}

// checks shows the checks that fail, or pass with a warning.
function checks() {
  const bad = (process.ready.checks ?? []).filter(check => check.error || check.warning);
  const refused = process.ready.definitions?.last_reload?.error;
  const all = [...bad.map(check => [check.name, check.error ?? check.warning]), ...(refused ? [['definitions', refused]] : [])];
  const list = all.flatMap(([name, text]) => text.split('\n').map(line => [name, line])); // one line for each problem
  fold('checks', 'Not as it should be', list, rows => [table('Not as it should be', ['Check', 'What is wrong'], rows)]);
}

function backfills(list) {
  fold('backfills', 'Backfills', list, rows => [table('Backfills', ['Features', 'Topic', 'Filled', 'Progress', 'Left'], rows.map(b => [
    b.features.join(', '), b.topic, percent(b.share) + (b.files?.total ? `; ${percent(b.files.applied / b.files.total)} of ${number(b.files.total)} rows of files` : ''), el('progress', { max: 1, value: b.share, 'aria-label': `Backfill of ${b.topic}` }),
    b.seconds_left === undefined ? 'not known' : seconds(b.seconds_left),
  ]))]);
}

const total = list => list.reduce((sum, item) => sum + Number(item.count), 0);
const oldest = list => list.reduce((most, item) => Math.max(most, Number(item.count)), 0);
const only = (list, outcome) => list.filter(item => item.outcome === outcome);

// pipeline lists the figures of a processor; past is the time since the last look, in seconds; 0 if there was none.
function pipeline(p, past) {
  const events = total(p.events);
  const speed = past > 0 ? (events - total(before.processor.events)) / past : null;
  if (speed !== null) rates = [...rates, speed].slice(-kept);
  const fresh = freshness(p.freshness, past > 0 ? before.processor.freshness : null);
  const late = total(only(p.events, 'late'));
  const lost = total(p.lost);
  const open = total(p.open);
  return [
    { id: 'events', ...perSecond('Events', speed, events), extra: rates.length > 1 && line(rates, kept) },
    { id: 'lag', name: 'Lag', value: number(total(p.lag)), note: open > 0 ? `${number(open)} held back by an open transaction` : 'records still to be processed', warn: open > 0 && oldest(p.open_age) > 60 },
    { id: 'freshness', name: 'Freshness', value: fresh.within(0.5), note: `median age when applied${fresh.recent ? '' : ', since the start'}; 99 % within ${fresh.within(0.99)}` },
    { id: 'dead', name: 'Dead letters', value: number(total(p.dead_letters)), note: `${number(late)} events were late`, warn: total(p.dead_letters) > 0 },
    { id: 'rewinds', name: 'Rewinds', value: number(total(p.rewinds)), note: lost > 0 ? `${number(lost)} records lost` : 'no records lost', warn: total(p.rewinds) > 0 || lost > 0 },
    { id: 'partitions', name: 'Partitions', value: number(p.partitions), note: 'assigned to this process', warn: p.partitions === 0 },
  ];
}

function questions(status, past) {
  const all = total(status.questions);
  const bad = total(status.questions.filter(q => !['answered', 'refused', 'abandoned'].includes(q.outcome)));
  const wrong = total(only(status.questions, 'refused'));
  const speed = past > 0 ? (all - total(before.questions)) / past : null;
  const figure = perSecond('Questions', speed, all);
  return { id: 'questions', ...figure, note: `${figure.note}, ${number(bad)} not answered, ${number(wrong)} refused as invalid` };
}

// perSecond returns a rate or, before a second look gives one, the count.
const perSecond = (name, speed, all) => (speed === null
  ? { name, value: number(all), note: 'since the start' }
  : { name: `${name} per second`, value: rate(speed), note: `${number(all)} since the start` });

const figure = f => el('div', { class: f.warn ? 'figure warn' : 'figure', 'data-figure': f.id },
  el('dt', {}, f.name), el('dd', { class: 'value', title: f.title }, f.value), el('dd', { class: 'hint' }, f.note), f.extra && el('dd', {}, f.extra));

// freshness returns a function for quantiles of the freshness of events: those since the last look or, if there are
// none, all events, including old records that were applied first.
function freshness(now, last) {
  const recent = last && now.count > last.count;
  const base = i => (recent ? last.buckets[i].count : 0);
  const count = now.count - (recent ? last.count : 0);
  const within = part => {
    if (count === 0) return '–';
    let below = 0;
    let from = 0;
    for (const [i, bucket] of now.buckets.entries()) {
      const upTo = bucket.count - base(i);
      if (upTo >= part * count) {
        return seconds(from + (bucket.seconds - from) * ((part * count - below) / (upTo - below)));
      }
      [below, from] = [upTo, bucket.seconds];
    }
    return `> ${seconds(from)}`;
  };
  return { within, recent };
}

const place = d => (d ? `${d.topic}/${d.partition}/${d.offset}` : 'TOPIC/PARTITION/OFFSET');

// details shows the tables behind the figures.
function details(p) {
  const byPlace = (a, b) => a.topic.localeCompare(b.topic) || Number(a.partition) - Number(b.partition);
  const open = new Map(p.open.map(o => [`${o.topic}/${o.partition}`, o.count]));
  fold('lag', 'Lag by partition', [...p.lag].sort(byPlace), list =>
    [table('Lag by partition', ['Topic', 'Partition', 'Records', 'In or after an open transaction'],
      list.map(l => [l.topic, l.partition, number(l.count), number(open.get(`${l.topic}/${l.partition}`) || 0)]))], p.open);
  fold('dead', 'Dead letters by reason', p.dead_letters, list => [
    table('Dead letters by reason', ['Reason', 'Stream', 'Records'], list.map(d => [d.reason, d.stream || 'none', number(d.count)])),
    ...(p.last_dead_letters.length > 0 ? [
      el('h3', {}, 'Latest'),
      table('Latest dead letters', ['Record time', 'Reason', 'Path', 'Position'],
        p.last_dead_letters.map(d => [moment(d.timestamp), d.reason, d.path || '–', el('code', {}, place(d))])),
    ] : []),
    el('p', { class: 'hint' }, 'To see one: ', el('code', {}, `weir deadletters show ${place(p.last_dead_letters[0])}`), '. To list more: ', el('code', {}, 'weir deadletters list'), '.'),
  ], p.last_dead_letters);
  fold('rewinds', 'Rewinds by topic', p.rewinds.filter(r => r.count > 0), list =>
    [table('Rewinds by topic', ['Topic', 'Rewinds'], list.map(r => [r.topic, number(r.count)]))]);
}

// fold shows a list in a details element, which stays open or closed, or hides it if the
// list is empty. It is rendered again only if the list or also has changed, so that the
// reader keeps focus and selection.
function fold(id, title, list, content, also) {
  let node = document.querySelector(`[data-details=${id}]`);
  if (!node) {
    node = el('details', { 'data-details': id }, el('summary'), el('div'));
    $('live-details').append(node);
  }
  const now = JSON.stringify([list, also]);
  if (node.dataset.list === now) return;
  node.dataset.list = now;
  node.hidden = list.length === 0;
  node.firstChild.textContent = `${title} (${list.length})`;
  node.lastChild.replaceChildren(...content(list));
}
