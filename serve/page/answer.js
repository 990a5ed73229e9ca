// Answers as a table, with their quality in words.

import { el, name, table } from './dom.js';
import { token } from './api.js';
import { shares } from './chart.js';
import { namedBy, namesIn } from './model.js';
import { toEntity } from './route.js';
import { count, id, isNumber, moment, number, quality, rounded, span, value } from './text.js';

const shown = 12; // items of a list that are shown at once

// answers makes a table with a row for each feature and a column for each entity. groups are titles, which may be
// empty, with features. marks are the contents of the last column, by feature, under markHead.
export function answers(caption, groups, results, marks, markHead) {
  const heads = results.length === 1 ? ['Value'] : results.map(r => entityLink(r.entity));
  const columns = 1 + heads.length + (markHead ? 1 : 0);
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    el('table', { class: markHead ? 'answers marked' : 'answers' },
      el('thead', {}, el('tr', {}, ['Feature', ...heads, markHead].filter(Boolean).map(head => el('th', { scope: 'col' }, head)))),
      groups.map(([title, features]) => el('tbody', {},
        title !== '' && el('tr', { class: 'group' }, el('th', { scope: 'rowgroup', colspan: columns }, title)),
        features.flatMap(f => rows(f, results, columns, markHead && (marks.get(f.name) ?? '')))))));
}

const pairs = entity => Object.entries(entity).map(([key, v]) => `${key} ${id(String(v))}`);

const entityLink = entity => el('a', { class: 'entity', href: toEntity(entity) }, pairs(entity).map(pair => el('span', {}, pair)));

// rows makes the rows of a feature: its values, and below them those that are too long for a cell.
function rows(f, results, columns, mark) {
  const list = results.map(r => r.features[f.name]);
  const row = el('tr', { 'data-feature': f.name, 'data-status': list[0].status },
    el('th', { scope: 'row', title: f.description }, name(f.name),
      el('span', { class: 'words' }, [span(f.window), list.length === 1 && quality(list[0])].filter(Boolean).join(' · '))),
    // Without a mark, its column is the value's, too: texts are long.
    list.map(a => el('td', { class: 'value', title: reach(a), colspan: mark === '' && 2 }, brief(f, a),
      list.length > 1 && a.status !== 'PRESENT' && el('span', { class: 'words' }, quality(a)))),
    mark !== undefined && mark !== '' && el('td', { class: 'mark' }, mark));
  const caption = r => [f.name, ...(results.length > 1 ? pairs(r.entity) : [])].join(', ');
  const below = results.map((r, i) => whole(f, list[i], caption(r))).filter(Boolean);
  return below.length === 0 ? [row] : [row, el('tr', { 'data-whole': f.name }, el('td', { colspan: columns }, below))];
}

const reach = a => `${a.from === null ? 'all' : moment(a.from)} to ${moment(a.to)}, ${a.exact ? 'exact' : 'not exact'}`;

// brief makes the content of a cell: a rounded number, which shows all its digits when it is pressed, or the number of
// items.
function brief(f, a) {
  if (a.members) return count(a.members.length, 'member');
  if (a.value === null || a.value === undefined) return el('span', { class: 'none' }, 'none');
  if (f.shape) return count(Object.keys(a.value).length, 'value');
  const [exact, read] = [value(a.value), rounded(a.value)];
  if (!isNumber(a.value)) return read;
  if (read.replaceAll(',', '') === exact) return thousands(read);
  return el('button', {
    type: 'button', class: 'exact', title: `exactly ${exact}`, 'aria-label': `${read}, rounded: show all digits`,
    click: event => event.currentTarget.replaceWith(exact),
  }, thousands(read));
}

// thousands writes a number so that a line may break after its commas.
const thousands = text => text.split(/(?<=,)/).flatMap((part, i) => (i > 0 ? [el('wbr'), part] : [part]));

// whole shows a value of several parts according to its shape; it is undefined for others.
function whole(f, a, caption) {
  if (a.members) {
    return table(`Members of ${caption}`, ['Member', 'Seen', 'Status'], a.members.map(m => [value(m.member), value(m.value), quality({ ...m, exact: true })]));
  }
  if (a.value === null || !f.shape || Object.keys(a.value).length === 0) return undefined;
  const key = namedBy(f);
  const linked = text => (key ? el('a', { href: toEntity({ [key]: text }) }, id(text)) : text);
  switch (f.shape) {
    case 'categories': return shares(caption, [f.per, f.function], Object.entries(a.value).sort(greatestFirst).map(([c, n]) => [linked(c), n]));
    case 'counts': return shares(caption, ['Value', 'Count'], a.value.map(item => [linked(value(item.value)), item.count]));
    case 'bins': return shares(caption, ['Values', 'Count'], a.value.map(bin => [range(bin), bin.count]));
    default: return chips(a.value.map(item => linked(value(item))));
  }
}

// chips shows the items of a list, or the first ones of a long list.
export function chips(items) {
  const list = el('ul', { class: 'chips' }, items.slice(0, shown).map(item => el('li', {}, item)));
  if (items.length > shown) {
    list.append(el('li', {}, el('button', {
      type: 'button', class: 'more', click: () => list.replaceChildren(...items.map(item => el('li', {}, item))),
    }, `${number(items.length - shown)} more`)));
  }
  return list;
}

const greatestFirst = ([, a], [, b]) => Number(b) - Number(a) || 0;

// range describes the values in a bin, which includes its lower edge only.
function range({ from, to }) {
  if (from === null) return `below ${value(to)}`;
  return to === null ? `${value(from)} and above` : `${value(from)} to below ${value(to)}`;
}

// asCommand shows a question as a shell command, without the token.
export function asCommand(question) {
  const quoted = question.replaceAll("'", "'\\''");
  const header = token() === '' ? '' : ' -H "Authorization: Bearer $WEIR_TOKEN"';
  const address = new URL('v1/query', document.baseURI).href;
  return el('details', {}, el('summary', {}, 'Ask from a shell'),
    el('pre', { tabindex: '0' }, `curl -s${header} ${address} -d '${quoted}'`));
}
