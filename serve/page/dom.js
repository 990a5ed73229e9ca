// Helpers to build elements.

export const $ = id => document.getElementById(id);

// el makes an element: attributes by name, with functions as listeners and
// booleans as flags, and children that are nodes or text.
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg makes an SVG element.
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter(child => child != null && child !== false));
  return node;
}

// table makes a table in a box that scrolls if the table is too wide.
export function table(caption, heads, rows) {
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    el('table', {},
      el('thead', {}, el('tr', {}, heads.map(head => el('th', { scope: 'col' }, head)))),
      el('tbody', {}, rows.map(row => el('tr', {}, row.map(cell => el('td', {}, cell)))))));
}

// facts makes a list of names and values, without those that have no value.
export const facts = list => el('dl', { class: 'facts' },
  list.filter(([, fact]) => fact).map(([name, fact]) => el('div', {}, el('dt', {}, name), el('dd', {}, fact))));

// name writes a name so that a line may break after its underscores.
export const name = text => text.split(/(?<=_)/).flatMap((part, i) => (i > 0 ? [el('wbr'), part] : [part]));

// problem shows an error of the server.
export function problem(error) {
  const about = ['code', 'feature', 'key', 'entity', 'event', 'reason', 'path', 'nearest']
    .filter(name => error[name] != null).map(name => `${name}: ${error[name]}`);
  return el('div', { class: 'problem', role: 'alert' },
    el('p', {}, error.message), about.length > 0 && el('p', { class: 'hint' }, about.join(' · ')));
}
