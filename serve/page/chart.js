// Small charts.

import { el, svg, table } from './dom.js';
import { brief, moment, value } from './text.js';

const width = 600;
const height = 96;

// bars draws a timeline: one bar for each answer, from its first millisecond on.
export function bars(feature, answers) {
  const numbers = answers.map(a => (a.value === null ? 0 : Number(a.value)));
  const top = Math.max(0, ...numbers);
  const bottom = Math.min(0, ...numbers);
  const scale = n => height - ((n - bottom) / (top - bottom || 1)) * height;
  const step = width / answers.length;
  const gap = Math.min(3, step * 0.2);
  const shapes = answers.map((a, i) => {
    const y = Math.min(scale(numbers[i]), scale(0));
    const tall = Math.abs(scale(numbers[i]) - scale(0));
    return svg('rect', {
      class: incomplete(a) ? 'bar incomplete' : 'bar', x: i * step + gap / 2, width: step - gap,
      y: tall === 0 ? y : Math.min(y, height - 2), height: tall === 0 ? 0 : Math.max(2, tall),
    }, svg('title', {}, `${moment(a.from)} to ${moment(a.to)}: ${value(a.value)}`));
  });
  const greatest = answers[numbers.indexOf(top)];
  const label = `${feature.name} over ${feature.window}, in ${answers.length} bars: ` +
    `the maximum is ${value(greatest.value)}, from ${moment(greatest.from)}`;
  return el('figure', { class: 'timeline' },
    el('figcaption', {}, el('span', {}, stretch(answers)), el('span', {}, `maximum ${brief(top)}`)),
    svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
      svg('line', { class: 'axis', x1: 0, x2: width, y1: scale(0), y2: scale(0) }), shapes),
    el('div', { class: 'ends hint' }, el('span', {}, toSecond(answers[0].from)), el('span', {}, toSecond(answers.at(-1).to))),
    answers.some(incomplete) && el('p', { class: 'hint' }, 'Pale bars are from before the state is complete.'));
}

const toSecond = ms => moment(ms).split('.')[0];

const incomplete = a => a.status === 'INCOMPLETE';

// stretch describes the width of a bar. It uses the first, which is never cut short.
function stretch(answers) {
  const ms = Number(answers[0].to) + 1 - Number(answers[0].from);
  const units = [['day', 86400000], ['hour', 3600000], ['minute', 60000], ['second', 1000], ['ms', 1]];
  const [unit, size] = units.find(([, size]) => ms % size === 0) ?? units.at(-1);
  return ms === size ? `one bar per ${unit}` : `one bar per ${ms / size} ${unit}${unit === 'ms' ? '' : 's'}`;
}

// shares is a table of names and values, with a bar for each number.
export function shares(caption, heads, rows) {
  const numbers = rows.map(([, n]) => (n === null || typeof n === 'string' || typeof n === 'boolean' ? NaN : Number(n)));
  const drawn = numbers.filter(n => !Number.isNaN(n));
  if (drawn.length === 0) return table(caption, heads, rows.map(([name, v]) => [name, value(v)]));
  const bottom = Math.min(0, ...drawn);
  const all = Math.max(0, ...drawn) - bottom || 1;
  const bar = n => svg('svg', { class: 'share', viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'bar', x: ((Math.min(n, 0) - bottom) / all) * 100, width: (Math.abs(n) / all) * 100, height: 10 }));
  const node = table(caption, [...heads, el('span', { class: 'unseen' }, 'Share')],
    rows.map(([name, v], i) => [name, value(v), Number.isNaN(numbers[i]) ? '' : bar(numbers[i])]));
  node.classList.add('shares');
  return node;
}

// line draws the latest values of a figure.
export function line(numbers, length) {
  const top = Math.max(...numbers, 1);
  const points = numbers.map((n, i) => `${((length - numbers.length + i) / (length - 1)) * 100},${23 - (n / top) * 22}`);
  return svg('svg', { class: 'spark', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('polyline', { points: points.join(' ') }));
}
