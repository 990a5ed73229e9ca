// The catalogue as a model: which features belong to which keys, and how they relate.

import { ask } from './api.js';

// defined is the catalogue. It is empty until it has been read.
export let defined = { features: [], services: [], streams: [], lists: [] };

// load reads the catalogue. It throws the server's error, and then keeps what was read before.
export async function load() {
  defined = await ask('v1/features');
}

export const feature = name => defined.features.find(f => f.name === name);

// keysOf lists the keys of features, each once.
export const keysOf = features => [...new Map(features.flatMap(f => f.keys).map(key => [key.name, key])).values()];

// about lists the features that the keys of an entity answer.
export const about = entity => defined.features.filter(f => f.keys.every(key => Object.hasOwn(entity, key.name)));

// families groups functions by what they tell.
const families = [
  ['How often', ['count', 'active', 'streak']],
  ['How much', ['sum', 'avg', 'min', 'max', 'exp_decay_sum', 'quantile', 'histogram', 'diff', 'lag',
    'variance', 'var_samp', 'var_pop', 'stddev', 'stddev_samp', 'stddev_pop']],
  ['With whom and what', ['count_distinct', 'approx_count_distinct', 'set', 'seen', 'mode', 'top_k', 'entropy',
    'first', 'last', 'first_k', 'last_k', 'last_distinct_k']],
  ['When', ['time_since_first', 'time_since_last', 'idle_since']],
  ['Where', ['distance', 'speed']],
  ['Shares and what is derived', ['ratio', 'expr']],
];

// grouped sorts features by what they tell: pairs of a title and features.
export function grouped(features) {
  const family = f => families.find(([, functions]) => functions.includes(f.function))?.[0] ?? 'Other';
  return [...families.map(([title]) => title), 'Other']
    .map(title => [title, features.filter(f => family(f) === title)]).filter(([, list]) => list.length > 0);
}

// namedBy returns the key of the entities that a feature lists, such as device_id for the devices of a user; undefined
// if its values are no entities.
export function namedBy(f) {
  const field = f.shape === 'categories' ? f.per : ['list', 'counts'].includes(f.shape) ? listed(f) : undefined;
  return keysOf(defined.features).some(key => key.name === field) ? field : undefined;
}

// listed returns the field of a feature: the argument of its definition that is not a key.
function listed(f) {
  const positional = /^\w+\(([^('"=]*?)(?:,\s*\w+\s*=.*)?\)$/s.exec(f.definition)?.[1].split(',').map(text => text.trim()) ?? [];
  return positional.slice(2).find(argument => f.keys.every(key => key.name !== argument));
}

// namesIn lists the entities in a value of such a feature.
export function namesIn(f, value) {
  if (value === null || value === undefined) return [];
  if (f.shape === 'categories') return Object.keys(value);
  return value.map(item => String(f.shape === 'counts' ? item.value : item));
}

// linking lists the features of exactly these keys that name related entities.
export const linking = keys => defined.features.filter(f => namedBy(f) !== undefined && !f.members_needed &&
  f.keys.length === keys.length && f.keys.every(key => keys.includes(key.name)));

// literal writes an input as JSON of a type. Invalid input is sent as a string: the server's error says what it
// expects.
export function literal(text, type) {
  if (type !== 'string') {
    try {
      JSON.parse(text);
      return text;
    } catch {
      // a moment in RFC 3339, or a mistake
    }
  }
  return JSON.stringify(text);
}

// entityJSON writes those keys that an entity has as JSON, so that no digit is lost.
export function entityJSON(entity, keys) {
  const members = keys.filter(key => Object.hasOwn(entity, key.name))
    .map(key => `${JSON.stringify(key.name)}: ${literal(entity[key.name], key.type)}`);
  return `{${members.join(', ')}}`;
}
