// Requests to the server.

const place = 'weir-token';

export const token = () => sessionStorage.getItem(place) ?? '';

export function setToken(text) {
  if (text === '') sessionStorage.removeItem(place);
  else sessionStorage.setItem(place, text);
}

// Digits holds the digits of a number that JavaScript would round.
class Digits {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
  valueOf() { return Number(this.text); }
  toJSON() { return JSON.rawJSON(this.text); }
}

const keepDigits = (_, value, context) =>
  typeof value === 'number' && context?.source && String(value) !== context.source ? new Digits(context.source) : value;

// ask returns the server's answer for a path relative to this page. It throws the
// server's error with all its members and the HTTP status.
export async function ask(path, question) {
  const { response, text } = await fetched(path, question);
  const failed = error => Object.assign(new Error(`the server answered ${response.status} ${response.statusText}`), error, { status: response.status });
  let answer;
  try {
    answer = JSON.parse(text, keepDigits);
  } catch {
    throw failed();
  }
  if (!response.ok) throw failed(answer?.error); // a proxy's answer has none
  return answer;
}

// fetched returns a response of any status, with its text.
export async function fetched(path, question) {
  const headers = {};
  if (token() !== '') headers.Authorization = `Bearer ${token()}`;
  if (question !== undefined) headers['Content-Type'] = 'application/json';
  try {
    const response = await fetch(path, { method: question === undefined ? 'GET' : 'POST', headers, body: question, cache: 'no-store' });
    return { response, text: await response.text() };
  } catch {
    throw new Error('the server does not answer');
  }
}
