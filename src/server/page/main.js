// The chat: sends, stops, regenerates, compares, and keeps the conversation.

import {byId, element, say} from './dom.js';
import {AnswerView, userMessage, verdict} from './message.js';
import {Progress} from './progress.js';
import {Settings} from './settings.js';
import {load, save} from './store.js';
import {ApiError, chat, get} from './stream.js';

const log = byId('log');
const prompt = byId('prompt');
const send = byId('send');
const scroller = byId('scroller');
const settings = new Settings(() => log.classList.toggle('tinted', settings.tint));

// {role, content}, and of answers: reasoning, runs, thought_runs, request, system, figures, finish, comparison
let messages = [];
let views = [];      // the answers' views, beside `messages`
let running = null;  // AbortController of what runs
let at_end = true;   // whether the reader follows the answer's end
let in_progress = null;  // brings the running answer's message up to date, for a page that is left

function keep() {
  if (!save('chat', messages)) {
    // The tints take most of the room.
    const bare = messages.map(({runs, thought_runs, ...message}) => message);
    if (!save('chat', bare)) say('The browser has no room to keep this conversation');
  }
}

/** What is sent: the system prompt, if any, and the conversation before `index`, without thoughts. */
function history(index, system) {
  const turns = messages.slice(0, index).map(({role, content}) => ({role, content}));
  return system.trim() ? [{role: 'system', content: system}, ...turns] : turns;
}

function show(message) {
  const index = messages.length;
  messages.push(message);
  byId('intro').hidden = true;
  if (message.role === 'user') {
    views.push(null);
    log.append(userMessage(message));
    return null;
  }
  const view = new AnswerView({regenerate, compare: () => compare(index)});
  view.before_flush = () => {
    at_end = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40;
  };
  view.after_flush = () => { if (at_end) scroller.scrollTop = scroller.scrollHeight; };
  views.push(view);
  log.append(view.node);
  return view;
}

/** Only the last answer can be written again. */
function mark_last() {
  views.forEach((view, index) => { if (view) view.regenerate.hidden = index !== views.length - 1; });
}

function set_running(controller) {
  running = controller;
  send.textContent = running ? 'Stop' : 'Send';
  send.classList.toggle('primary', !running);
  for (const view of views) if (view) view.regenerate.disabled = view.compare.disabled = Boolean(running);
}

/** Runs a request to its end; `on_text(text)` sees each chunk's. Returns how it ended ('stop', 'length', 'stopped', 'cut') and,
 * of 'cut', the error. */
async function run(request, turns, progress, on_text) {
  const controller = new AbortController();
  set_running(controller);
  try {
    for await (const chunk of chat({messages: turns, ...request}, settings.key, controller.signal)) {
      on_text(progress.take(chunk));
    }
    return {finish: progress.finish ?? 'stop'};
  } catch (error) {
    if (error.name === 'AbortError') return {finish: 'stopped'};
    if (!(error instanceof ApiError)) throw error;
    return {finish: 'cut', error};
  } finally {
    set_running(null);
  }
}

async function answer() {
  clear_error();
  const request = settings.parameters();
  const {system} = settings;
  const turns = history(messages.length, system);
  const progress = new Progress();
  const message = {
    role: 'assistant', content: '', reasoning: '', request, system, finish: 'cut', figures: progress.figures(),
  };
  const update = () => Object.assign(message, {
    content: progress.content,
    reasoning: progress.reasoning,
    runs: progress.runs.list,
    thought_runs: progress.thought_runs.list,
    figures: progress.figures(),
  });
  const view = show(message);
  mark_last();
  view.follow(progress, request);
  scroller.scrollTop = scroller.scrollHeight;
  in_progress = update;
  const {finish, error} = await run(request, turns, progress, (text) => view.add(text));
  in_progress = null;
  if (messages.at(-1) !== message) return;  // a new chat was begun
  Object.assign(update(), {finish});
  if (error && !message.content && !message.reasoning) {
    drop_last();
  } else {
    view.finish(message);
    say(`Answer ${finish === 'stopped' ? 'stopped' : 'finished'}: ${view.figures.textContent}`);
  }
  keep();
  if (error) show_error(error);
}

function drop_last() {
  clear_error();
  log.lastElementChild.remove();
  views.pop();
  messages.pop();
  mark_last();
}

function regenerate() {
  if (running || messages.at(-1)?.role !== 'assistant') return;
  drop_last();
  send.focus();
  answer();
}

/** Runs the request of an answer again with the other view. */
async function compare(index) {
  if (running) return;
  clear_error();
  const message = messages[index];
  const request = {...message.request, use_diffusion_mode: message.request.use_diffusion_mode === false};
  // An answer that was stopped is compared as far as it goes.
  if (message.finish !== 'stop') request.max_tokens = message.figures.tokens;
  const progress = new Progress();
  const other = {request, done: false};
  let shown_at = 0;
  const {finish, error} = await run(request, history(index, message.system), progress, () => {
    other.figures = progress.figures();
    if (performance.now() - shown_at < 100) return;
    shown_at = performance.now();
    views[index].show_comparison(message, other);
    views[index].comparison.scrollIntoView({block: 'nearest'});
  });
  if (messages[index] !== message) return;
  if (error || finish === 'stopped') {
    if (message.comparison) views[index].show_comparison(message, message.comparison);
    else views[index].comparison.hidden = true;
    if (error) show_error(error);
    return;
  }
  const mine = message.reasoning + message.content;
  const theirs = progress.reasoning + progress.content;
  const common = common_length(mine, theirs);
  const whole = mine.length === theirs.length || message.finish !== 'stop';
  const same = whole && common === Math.min(mine.length, theirs.length);
  message.comparison = {request, figures: progress.figures(), same, length: common, done: true};
  views[index].show_comparison(message, message.comparison);
  views[index].comparison.scrollIntoView({block: 'nearest'});
  say(verdict(message, message.comparison));
  keep();
}

function common_length(left, right) {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length += 1;
  return length;
}

function clear_error() {
  log.querySelector('.error')?.remove();
}

function show_error(error) {
  clear_error();
  const buttons = element('div', {class: 'actions'});
  const offer = (name, onclick) => buttons.append(element('button', {type: 'button', class: 'small', onclick}, name));
  if (error.status === 401) offer('Enter the API key', () => settings.open('key'));
  if (messages.at(-1)?.role === 'user') {
    offer('Try again', () => {
      send.focus();
      answer();
    });
  }
  const box = element('div', {class: 'error', role: 'alert'}, element('p', {}, error.message), buttons);
  log.append(box);
  box.scrollIntoView({block: 'nearest'});
  watch_health();
}

/** Shows the state that /health names; looks again every two seconds until the server is ready. */
async function watch_health() {
  const health = byId('health');
  let state = 'gone';
  try {
    const {status, body} = await get('health');
    state = status === 200 ? 'ready' : body.status ?? body.error?.message ?? `status ${status}`;
  } catch { /* stays gone */ }
  health.dataset.state = state;
  health.textContent = state === 'gone' ? 'cannot be reached' : state;
  clearTimeout(watch_health.timer);
  if (state !== 'ready') watch_health.timer = setTimeout(watch_health, 2000);
  else name_model();
}

/** Says which model is served. Requests do not name it: the page is the server's own. */
async function name_model() {
  let model = {};
  try {
    model = (await get('v1/models', settings.key)).body.data?.[0] ?? {};
  } catch { /* the health is looked at again, and then this */ }
  byId('model').textContent = model.id ?? '';
  document.title = model.id ? `${model.id} · orthrus` : 'orthrus';
  settings.plain = model.dual_view === false;
  document.body.classList.toggle('plain', settings.plain);
}

function fit_prompt() {
  prompt.style.height = 'auto';
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}

byId('composer').addEventListener('submit', async (event) => {
  event.preventDefault();
  if (running) {
    running.abort();
    return;
  }
  const content = prompt.value.trim();
  if (!content) return;
  prompt.value = '';
  fit_prompt();
  if (messages.at(-1)?.role === 'user') drop_last();  // it was refused, and this is said instead
  show({role: 'user', content});
  keep();
  answer();
});

prompt.addEventListener('keydown', (event) => {
  // Enter that ends the composition of a character sends nothing, and neither does one while an answer runs.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!running) byId('composer').requestSubmit();
});
prompt.addEventListener('input', fit_prompt);

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && running && !settings.dialog.open) running.abort();
});

byId('new-chat').addEventListener('click', () => {
  running?.abort();
  messages = [];
  views = [];
  log.replaceChildren();
  byId('intro').hidden = false;
  keep();
  say('New chat');
  prompt.focus();
});

/** Shows the conversation that was kept; one of another version of the page is left behind. */
function restore() {
  const kept = load('chat', []);
  try {
    for (const message of kept) show(message)?.finish(message);
  } catch {
    messages = [];
    views = [];
    log.replaceChildren();
    byId('intro').hidden = false;
  }
}

addEventListener('pagehide', () => {
  if (!in_progress) return;
  in_progress();
  keep();
});

log.classList.toggle('tinted', settings.tint);
restore();
mark_last();
scroller.scrollTop = scroller.scrollHeight;
watch_health();
