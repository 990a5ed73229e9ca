// The address of what is shown, behind the # of the URL: a view, the keys of an entity, and
// parameters.
//
//   #/                                     where to begin
//   #/user_id/u000123?at=1532496076032     all about an entity; further keys may follow
//   #/ask?service=payment_risk&entity=…    a question
//   #/features?words=…                     the catalogue
//   #/lists?list=…                         the entries of a list
//   #/editor?file=…                        a file of definitions
//   #/operations                           the pipeline

// views are those without an entity, by the first and only step of their path.
const views = { '': 'start', ask: 'ask', features: 'features', lists: 'lists', editor: 'editor', operations: 'operations' };

// current returns the view of the URL with its parameters, undefined if there is no such view.
export function current() {
  const [path, search = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const parameters = new URLSearchParams(search);
  let steps;
  try {
    steps = path.split('/').map(decodeURIComponent);
  } catch {
    return undefined; // a % that begins nothing
  }
  if (steps.length === 1) return Object.hasOwn(views, path) ? { view: views[path], parameters } : undefined;
  if (steps.length % 2 !== 0) return undefined;
  const entity = {};
  for (let i = 0; i < steps.length; i += 2) entity[steps[i]] = steps[i + 1];
  return { view: 'entity', entity, parameters };
}

// toEntity returns the address of an entity's page.
export function toEntity(entity, parameters = {}) {
  return `#/${Object.entries(entity).flat().map(encodeURIComponent).join('/')}${search(parameters)}`;
}

// toView returns the address of another view.
export const toView = (name, parameters = {}) => `#/${name}${search(parameters)}`;

function search(parameters) {
  const text = new URLSearchParams(parameters).toString();
  return text === '' ? '' : `?${text}`;
}

// go shows an address, also if it is already shown.
export function go(address) {
  if (location.hash === address) window.dispatchEvent(new Event('hashchange'));
  else location.hash = address;
}
