// The page: the catalogue, questions and the live state.

import { $ } from './dom.js';
import { setToken, token } from './api.js';
import { load } from './catalogue.js';
import { look, watch } from './live.js';
import * as question from './question.js';

const choose = name => {
  question.choose(name);
  $('ask').scrollIntoView();
  document.querySelector('#inputs input, #inputs select')?.focus();
};

const open = async () => question.prepare(await load(choose));

$('token').value = token();
$('access-form').addEventListener('submit', event => {
  event.preventDefault();
  setToken($('token').value.trim());
  $('access').open = false;
  open();
  look();
});
question.start();
open();
watch();
