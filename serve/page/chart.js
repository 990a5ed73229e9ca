// Small charts.

import { el, svg, table } from './dom.js';
import { brief, minute, moment, value } from './text.js';

const width = 240;
const height = 32;

// spark draws a timeline on an axis: a bar for each of its points, on a background that shows the extent of the window.
export function spark(feature, points, axis) {
  const numbers = points.map(p => (p.value === null ? 0 : Number(p.value)));
  const top = Math.max(0, ...numbers);
  const bottom = Math.min(0, ...numbers);
  const scale = n => height - ((n - bottom) / (top - bottom || 1)) * height;
  const place = ms => ((Math.min(Math.max(Number(ms), axis.from), axis.to) - axis.from) / (axis.to - axis.from)) * width;
  const shapes = points.map((p, i) => {
    const [x, end] = [place(p.from), place(Number(p.to) + 1)];
    const tall = Math.abs(scale(numbers[i]) - scale(0));
    const bar = tall === 0 ? 0 : Math.max(1.5, tall);
    return end > x && svg('rect', {
      class: incomplete(p) ? 'bar incomplete' : 'bar', x, width: Math.max(0.8, end - x - Math.min(1.5, (end - x) * 0.2)),
      y: Math.min(scale(numbers[i]), scale(0), height - bar), height: bar,
    }, svg('title', {}, `${moment(p.from)} to ${moment(p.to)}: ${value(p.value)}`));
  });
  const shown = points.filter(p => p.value !== null);
  const greatest = shown.reduce((a, b) => (Number(b.value) > Number(a.value) ? b : a), shown[0] ?? points[0]);
  const label = `${feature.name} over ${feature.window}, in ${points.length} steps: ` +
    `the maximum is ${value(greatest.value)}, from ${minute(greatest.from)}`;
  const from = place(points[0].from);
  return el('div', { class: 'spark', 'data-spark': feature.name },
    svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
      svg('rect', { class: 'ground', x: from, width: width - from, height }), shapes),
    top > 0 && el('span', { class: 'hint' }, `max ${brief(top)}`));
}

const incomplete = p => p.status === 'INCOMPLETE';

// shares makes a table of names and values, with a bar for each number.
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
  return svg('svg', { class: 'line', viewBox: '0 0 100 24', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('polyline', { points: points.join(' ') }));
}
