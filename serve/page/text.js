// Formatting of values, times and numbers.

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const hundredths = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const threeDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

export const number = n => grouped.format(n);

// count writes a number of things.
export const count = (n, thing) => `${number(n)} ${thing}${n === 1 ? '' : 's'}`;

// rate writes a number per second.
export function rate(n) {
  if (n >= 10000) return short.format(n);
  return n >= 10 || n === 0 ? grouped.format(n) : n.toFixed(1);
}

export const brief = n => (Math.abs(n) >= 10000 ? short.format(n) : String(Number(n.toPrecision(4))));

// seconds writes a duration.
export function seconds(s) {
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  return s < 120 ? `${s.toFixed(1)} s` : `${Math.round(s / 60)} min`;
}

// bytes writes a size.
export const bytes = n => (n < 1024 ? `${number(n)} B` : n < 1024 ** 2 ? `${rate(n / 1024)} KiB` : `${rate(n / 1024 ** 2)} MiB`);

// moment writes milliseconds since 1970 in UTC, to the last digit.
export function moment(ms) {
  const at = new Date(Number(ms));
  return Number.isNaN(at.getTime()) ? String(ms) : at.toISOString().replace('T', ' ').replace('.000Z', '').replace('Z', '');
}

// minute writes milliseconds since 1970 in UTC, to the minute.
export const minute = ms => moment(ms).replace(/(:\d\d):\d\d(\.\d+)?$/, '$1');

// inYear writes milliseconds since 1970 in UTC, to the minute of a year.
export const inYear = ms => minute(ms).slice(5);

// second writes the time of a day, to the second.
export const second = ms => moment(ms).slice(11, 19);

// percent writes a share of 1. What is not whole is not rounded to 100 %.
export const percent = p => `${Math.min(Number((p * 100).toPrecision(2)), p < 1 ? 99 : Infinity)} %`;

// value writes a scalar of an answer with all its digits.
export function value(v) {
  if (v === null || v === undefined) return 'null';
  if (v.constructor === Object) return 'lat' in v ? `${v.lat}, ${v.lon}` : JSON.stringify(v);
  return String(v);
}

// escaped writes characters that cannot be seen, or that change how others are shown, as their codes.
export const escaped = text => text.replace(/[^\P{C}\n\t]/gu, c => `\\u{${c.codePointAt(0).toString(16)}}`);

// id writes the id of an entity so that it can be seen, even if it is empty.
export const id = text => (text === '' ? '""' : escaped(text));

// isNumber says whether a value is a number, with whatever digits.
export const isNumber = v => typeof v === 'number' || v?.text !== undefined;

// rounded writes a scalar of an answer, rounded for reading.
export function rounded(v) {
  if (v === null || v === undefined) return 'none';
  if (!isNumber(v)) return value(v);
  const exact = String(v);
  if (/^-?\d+$/.test(exact)) return grouped.format(exact);
  const size = Math.abs(Number(exact));
  // As a sum that has decayed for a month: its zeros would fill the page.
  if (size !== 0 && (size < 1e-6 || size >= 1e21)) return String(Number(Number(exact).toPrecision(3)));
  return size >= 1 ? hundredths.format(exact) : threeDigits.format(exact);
}

const units = { ms: 'millisecond', s: 'second', m: 'minute', h: 'hour', d: 'day' };

// span describes a window: "last 7 days" for 7d. Other windows than rolling ones are written as in a definition.
export function span(window) {
  if (window === undefined) return undefined;
  if (window === 'lifetime') return 'ever';
  const [, n, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(window) ?? [];
  if (n === undefined) return window;
  return n === '1' ? `last ${units[unit]}` : `last ${n} ${units[unit]}s`;
}

// quality says in words how far an answer can be relied on.
export function quality(a) {
  const parts = [standing(a)];
  if (a.standard_error) parts.push(`an estimate, ± ${percent(a.standard_error)}`);
  if (a.relative_error) parts.push(`within ± ${percent(a.relative_error)}`);
  if (a.uncertain) parts.push(`may be ${number(a.uncertain)} greater`);
  if (a.capped) parts.push('cut at its bound, so it may be too small');
  if (a.false_positive_rate) parts.push(`true is wrong in at most ${percent(a.false_positive_rate)}`);
  if (parts.length === 1 && !a.exact && a.status === 'PRESENT') parts.push('not exact');
  return parts.join('; ');
}

function standing(a) {
  const since = a.complete_since != null ? `holds every event since ${minute(a.complete_since)}` : '';
  switch (a.status) {
    case 'PRESENT': case undefined: return since === '' ? 'complete' : `complete: ${since}`;
    case 'INCOMPLETE': return ['younger than its window', since,
      a.filled != null && `${percent(a.filled)} filled from the log`,
      a.complete_at != null && `whole by ${minute(a.complete_at)}`].filter(Boolean).join(', ');
    case 'LATER_EVENTS': return 'may count events after this moment';
    case 'NOT_FOUND': return 'no event';
    case 'NULL_VALUE': return 'events, but no value';
    case 'NO_EVENT': return 'it reads the event in hand: give one as pending';
    case 'OUTSIDE_MAX_AGE': return `further back than is kept${a.oldest != null ? `: ask from ${minute(a.oldest)} on` : ''}`;
    case 'UNAVAILABLE': return 'its Redis does not answer now: ask again';
    case 'DAMAGED': return 'its state cannot be read';
    default: return a.status;
  }
}
