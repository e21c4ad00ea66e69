// A message in the conversation: what it says, its figures, its buttons, and the comparison with the other view.

import {copyButton, element, say} from './dom.js';
import {MarkdownView} from './markdown.js';
import {shown, summary, view_name} from './progress.js';
import {Runs} from './runs.js';

/** The view of what the user wrote: as written. */
export function userMessage(message) {
  return element('article', {class: 'message user'},
    element('h2', {}, 'You'), element('div', {class: 'text'}, message.content));
}

/** The view of an answer, finished or not. */
export class AnswerView {
  /** `actions` = {regenerate(), compare()}. */
  constructor(actions) {
    this.thinking = element('summary', {}, 'Thinking');
    this.thought = element('details', {class: 'thought', hidden: true}, this.thinking);
    this.thought_text = element('div', {class: 'text'});
    this.thought.append(this.thought_text);
    this.text = element('div', {class: 'text'});
    this.figures = element('p', {class: 'figures'});
    this.comparison = element('div', {class: 'comparison', hidden: true});
    this.copy = copyButton(() => this.source, 'Copy this answer');
    this.regenerate = element('button', {type: 'button', class: 'small', onclick: actions.regenerate}, 'Regenerate');
    this.compare = element('button', {type: 'button', class: 'small compare', onclick: actions.compare}, 'Compare with AR');
    this.buttons = element('div', {class: 'actions', hidden: true}, this.copy, this.regenerate, this.compare);
    this.node = element('article', {class: 'message answer'}, element('h2', {}, 'Answer'),
      this.thought, this.text, this.figures, this.buttons, this.comparison);
    this.source = '';
    this.waiting = {content: '', reasoning: ''};
    this.scheduled = false;
    this.pause = 0;  // milliseconds before the next frame
  }

  /** Shows what `progress` has and goes on with what comes. Finished paragraphs are said. */
  follow(progress, request) {
    this.progress = progress;
    this.request = request;
    this.begin(progress.runs, progress.thought_runs, say);
    this.node.setAttribute('aria-busy', 'true');
    this.node.classList.add('busy');
  }

  begin(runs, thought_runs, on_block) {
    const painter = (of) => (parent, text, start) => of.paint(parent, text, start);
    this.content_view = new MarkdownView(this.text, painter(runs), on_block);
    this.thought_view = new MarkdownView(this.thought_text, painter(thought_runs));
  }

  /** Text that came, to be shown soon: frames are so rare that they take at most a quarter of the time. */
  add({content, reasoning}) {
    this.waiting.content += content;
    this.waiting.reasoning += reasoning;
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => requestAnimationFrame(() => this.flush()), this.pause);
  }

  flush() {
    this.scheduled = false;
    const begun = performance.now();
    const {content, reasoning} = this.waiting;
    this.waiting = {content: '', reasoning: ''};
    this.before_flush?.();
    if (reasoning) this.thought.hidden = false;
    if (reasoning) this.thought_view.append(reasoning);
    if (content) this.content_view.append(content);
    if (this.progress) this.figures.textContent = summary(this.request, this.progress.figures());
    this.after_flush?.();
    this.pause = 3 * (performance.now() - begun);
  }

  /** The answer stands as in the conversation's `message`. */
  finish(message) {
    if (!this.content_view) {
      this.begin(new Runs(message.runs), new Runs(message.thought_runs));
      this.waiting = {content: message.content, reasoning: message.reasoning ?? ''};
    }
    this.progress = null;
    this.flush();
    this.content_view.end();
    this.thought_view.end();
    this.node.removeAttribute('aria-busy');
    this.node.classList.remove('busy');
    this.source = message.content;
    this.thinking.textContent = 'Thought';
    const ends = {length: ' · ended at the token limit', stopped: ' · stopped', cut: ' · broken off'};
    this.figures.textContent = summary(message.request, message.figures) + (ends[message.finish] ?? '');
    const was_plain = message.request.use_diffusion_mode === false;
    this.compare.textContent = was_plain ? 'Compare with dual view' : 'Compare with AR';
    this.compare.hidden = message.figures.tokens === 0;
    if (message.comparison) this.show_comparison(message, message.comparison);
    this.buttons.hidden = false;
  }

  /** The other view's `other` = {request, figures, same, length, done} beside this answer. */
  show_comparison(message, other) {
    const rows = [message, other].map(({request, figures}) => element('tr', {},
      element('th', {scope: 'row'}, view_name(request)),
      ...[[figures.rate, 1], [figures.per_cycle, 2], [figures.tpf, 2]].map(
        ([figure, digits]) => element('td', {}, shown(figure, digits)))));
    const heads = ['view', 'tokens/s', 'tokens/cycle', 'TPF'].map((name) => element('th', {scope: 'col'}, name));
    this.comparison.replaceChildren(
      element('table', {}, element('caption', {}, 'The same prompt with the other view'),
        element('thead', {}, element('tr', {}, ...heads)), element('tbody', {}, ...rows)),
      element('p', {class: 'verdict'}, other.done ? verdict(message, other) : `running: ${other.figures.tokens} tokens`));
    this.comparison.hidden = false;
  }
}

/** What the comparison came to, in words. */
export function verdict(message, other) {
  const dual = other.request.use_diffusion_mode === false ? message : other;
  const plain = dual === other ? message : other;
  const speed = dual.figures.rate && plain.figures.rate
    ? `The dual view ran at ${(dual.figures.rate / plain.figures.rate).toFixed(2)} times the speed of plain AR. ` : '';
  return speed + (other.same
    ? `Texts identical: yes, all ${other.length} characters.`
    : `Texts identical: no, they differ from character ${other.length + 1} on.`);
}
