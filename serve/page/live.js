// The state of the pipeline of this process, polled.

import { $, el, problem, table } from './dom.js';
import { ask } from './api.js';
import { line } from './chart.js';
import { moment, number, rate, seconds } from './text.js';

const interval = 2000; // milliseconds
const kept = 60; // number of rates in the line

let before = null; // the previous status
let rates = [];

// watch shows the status, and repeats that while the page is visible.
export async function watch() {
  if (!document.hidden) await look();
  setTimeout(watch, interval);
}

// look shows the current status.
export async function look() {
  let status;
  try {
    status = await ask('v1/status');
  } catch (error) {
    $('live-state').textContent = 'unknown';
    $('live-note').hidden = true;
    $('figures').replaceChildren();
    $('live-details').replaceChildren(problem(error));
    before = null;
    return;
  }
  // The process was restarted if its counters fell.
  if (before && total(status.processor?.events ?? []) < total(before.processor?.events ?? [])) before = null;
  const past = before && before.at < status.at ? (status.at - before.at) / 1000 : 0;
  $('live-state').textContent = `at ${moment(status.at).slice(11, 19)} UTC`;
  $('live-note').hidden = status.processor !== undefined;
  $('live-note').textContent = 'This process answers questions only; it applies no events. ' +
    'To see the pipeline, open the page of a process with the role processor.';
  const figures = [...(status.processor ? pipeline(status.processor, past) : []), questions(status, past)];
  $('figures').replaceChildren(...figures.map(figure));
  $('live-details').querySelector('.problem')?.remove();
  if (status.processor) details(status.processor);
  before = status;
}

const total = list => list.reduce((sum, item) => sum + Number(item.count), 0);
const oldest = list => list.reduce((most, item) => Math.max(most, Number(item.count)), 0);
const only = (list, outcome) => list.filter(item => item.outcome === outcome);

// pipeline lists the figures of a processor; past is the time since the last look in
// seconds, 0 if there was none.
function pipeline(p, past) {
  const events = total(p.events);
  const speed = past > 0 ? (events - total(before.processor.events)) / past : null;
  if (speed !== null) rates = [...rates, speed].slice(-kept);
  const fresh = freshness(p.freshness, past > 0 ? before.processor.freshness : null);
  const late = total(only(p.events, 'late'));
  const lost = total(p.lost);
  const open = total(p.open);
  return [
    { id: 'events', name: 'Events per second', value: speed === null ? '…' : rate(speed), note: `${number(events)} since the start`, extra: line(rates, kept) },
    { id: 'lag', name: 'Lag', value: number(total(p.lag)), note: open > 0 ? `${number(open)} held back by an open transaction` : 'records not fetched yet', warn: open > 0 && oldest(p.open_age) > 60 },
    { id: 'freshness', name: 'Freshness', value: fresh(0.5), note: `median age when applied; 99 % within ${fresh(0.99)}` },
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
  return { id: 'questions', name: 'Questions per second', value: speed === null ? '…' : rate(speed), note: `${number(all)} since the start, ${number(bad)} not answered, ${number(wrong)} refused as invalid` };
}

const figure = f => el('div', { class: f.warn ? 'figure warn' : 'figure', 'data-figure': f.id },
  el('dt', {}, f.name), el('dd', { class: 'value' }, f.value), el('dd', { class: 'hint' }, f.note), f.extra && el('dd', {}, f.extra));

// freshness returns a function for quantiles of the time that events took: those since
// the last look or, if there are none, all of them.
function freshness(now, last) {
  const recent = last && now.count > last.count;
  const base = i => (recent ? last.buckets[i].count : 0);
  const count = now.count - (recent ? last.count : 0);
  return part => {
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
    return `more than ${seconds(from)}`;
  };
}

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
        p.last_dead_letters.map(d => [moment(d.timestamp), d.reason, d.path || '–', el('code', {}, `${d.topic}/${d.partition}/${d.offset}`)])),
    ] : []),
    el('p', { class: 'hint' }, 'To see one: ', el('code', {}, 'weir deadletters show topic/partition/offset')),
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
