// Formatting of values, times and numbers.

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

export const number = n => grouped.format(n);

// rate writes a number per second.
export function rate(n) {
  if (n >= 10000) return short.format(n);
  return n >= 10 || n === 0 ? grouped.format(n) : n.toFixed(1);
}

export const brief = n => (Math.abs(n) >= 10000 ? short.format(n) : String(Number(n.toPrecision(6))));

// seconds writes a duration.
export function seconds(s) {
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  return s < 120 ? `${s.toFixed(1)} s` : `${Math.round(s / 60)} min`;
}

// moment writes milliseconds since 1970 in UTC, to the last digit.
export function moment(ms) {
  const at = new Date(Number(ms));
  return Number.isNaN(at.getTime()) ? String(ms) : at.toISOString().replace('T', ' ').replace('.000Z', '').replace('Z', '');
}

// percent writes a share of 1.
export const percent = p => `${Number((p * 100).toPrecision(2))} %`;

// value writes a scalar of an answer.
export function value(v) {
  if (v === null || v === undefined) return 'null';
  if (v.constructor === Object) return 'lat' in v ? `${v.lat}, ${v.lon}` : JSON.stringify(v);
  return String(v);
}
