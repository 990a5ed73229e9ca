// Answers, with their quality.

import { $, el, problem, table } from './dom.js';
import { ask, token } from './api.js';
import { bars, shares } from './chart.js';
import { moment, number, percent, value } from './text.js';

// show shows the answer to a question about one entity.
export function show({ answer, features, question, keys, took, pending }) {
  const result = answer.results[0];
  const cards = Object.entries(result.features).map(([name, a]) => card(features.find(f => f.name === name), a));
  $('answer').replaceChildren(
    el('p', { class: 'hint' }, `At ${moment(answer.at)} UTC · ${Math.max(1, Math.round(took))} ms round trip`),
    ...(answer.pending ?? []).map(p => el('p', { class: 'note' },
      `Counts a pending event of ${p.stream} at ${moment(p.time)}` +
      (p.late ? ', too late for some features' : '') +
      (p.deduplicated ? '; not counted twice if it has already arrived' : '; counted twice if it has already arrived'))),
    ...cards.map(c => c.node),
    asCommand(question));
  if (pending) return; // a timeline counts only events on the bus
  for (const c of cards) {
    if (c.feature.timeline) draw(c.feature, keys, answer.at, c.node);
  }
}

function card(feature, a) {
  const facts = [
    ['Covers', `${a.from === null ? 'all' : moment(a.from)} to ${moment(a.to)}`],
    ['Exact', exactness(a)],
    ['Complete since', a.complete_since != null && moment(a.complete_since)],
    ['Whole at the latest', a.complete_at != null && moment(a.complete_at)],
    ['Filled from the log', a.filled != null && `${Math.round(100 * a.filled)}%`],
    ['Oldest moment available', a.oldest != null && moment(a.oldest)],
  ].filter(([, fact]) => fact);
  return {
    feature,
    node: el('article', { class: 'card', 'data-feature': feature.name },
      el('div', { class: 'row' }, el('h3', {}, feature.name), a.status && badge(a.status)),
      valueOf(feature, a),
      el('dl', { class: 'facts' }, facts.map(([term, fact]) => el('div', {}, el('dt', {}, term), el('dd', {}, fact))))),
  };
}

const badge = status => el('span', { class: `badge ${status.toLowerCase()}` }, status);

function exactness(a) {
  const notes = [];
  if (a.standard_error) notes.push(`an estimate, ± ${percent(a.standard_error)}`);
  if (a.relative_error) notes.push(`within ± ${percent(a.relative_error)}`);
  if (a.uncertain) notes.push(`may be ${number(a.uncertain)} greater`);
  if (a.capped) notes.push('a cap was reached, so it may be too small');
  if (a.status === 'INCOMPLETE') notes.push('the feature is younger than its window');
  if (a.false_positive_rate) notes.push(`true is wrong in at most ${percent(a.false_positive_rate)}`);
  return notes.length > 0 ? notes.join('; ') : a.exact ? 'yes' : 'no';
}

// valueOf shows the value according to the shape of the feature's answers.
function valueOf(feature, a) {
  if (a.members) {
    return table('Members', ['Member', 'Seen', 'Status'], a.members.map(m => [value(m.member), value(m.value), badge(m.status)]));
  }
  if (a.value === null || !feature.shape) {
    return el('p', { class: a.value === null ? 'value none' : 'value' }, value(a.value));
  }
  if (Object.keys(a.value).length === 0) return el('p', { class: 'value none' }, 'empty');
  switch (feature.shape) {
    case 'categories': return shares(feature.name, [feature.per, feature.function], Object.entries(a.value).sort(greatestFirst));
    case 'counts': return shares(feature.name, ['Value', 'Count'], a.value.map(item => [value(item.value), item.count]));
    case 'bins': return shares(feature.name, ['Values', 'Count'], a.value.map(bin => [range(bin), bin.count]));
    default: return el('ol', { class: 'chips' }, a.value.map(item => el('li', {}, value(item))));
  }
}

const greatestFirst = ([, a], [, b]) => Number(b) - Number(a) || 0;

// range describes the values in a bin, which includes its lower edge only.
function range({ from, to }) {
  if (from === null) return `below ${value(to)}`;
  return to === null ? `${value(from)} and above` : `${value(from)} to below ${value(to)}`;
}

// draw adds the timeline of a feature to its answer.
async function draw(feature, keys, at, node) {
  const query = new URLSearchParams(feature.keys.map(key => [key.name, keys[key.name]]));
  query.set('at', at);
  let timeline;
  try {
    timeline = await ask(`v1/timeline/${encodeURIComponent(feature.name)}?${query}`);
  } catch (error) {
    node.append(problem(error));
    return;
  }
  if (timeline.points.some(point => typeof point.value !== 'object' || point.value?.text)) node.append(bars(feature, timeline.points));
}

// asCommand shows the question as a shell command, without the token.
function asCommand(question) {
  const quoted = question.replaceAll("'", "'\\''");
  const header = token() === '' ? '' : ' -H "Authorization: Bearer $WEIR_TOKEN"';
  const address = new URL('v1/query', document.baseURI).href;
  return el('details', {}, el('summary', {}, 'Ask from a shell'),
    el('pre', { tabindex: '0' }, `curl -s${header} ${address} -d '${quoted}'`));
}
