// Renders a stream of markdown as it comes: paragraphs, headings, lists, code fences, rules; `code`, **bold**, *italic*
// within a line. What is shown is appended to and never built again, but for an unfinished construct at the end of a
// line, so an answer of n characters costs O(n). Text reaches the document as text nodes only.

import {copyButton, element} from './dom.js';

// An opened ` or ** that is not closed within so many characters is literal: bounds what is scanned again.
const kReach = 1000;
const kFence = /^(\s*)(`{3,}|~{3,})([^`]{0,80})$/;
const kItem = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?=\S)/;
const kHeading = /^(#{1,6})\s+(?=\S)/;
const kRule = /^\s{0,3}([-*_])\s*(\1\s*){2,}$/;
// A line of which only so much is known can still become one of the above.
const kUndecided = new RegExp([
  /^\s*(#{0,6}|[-*_+]|\d{1,9}[.)]?)\s*$/,                    // heading, item
  /^\s*([-*_])\s*(\2\s*)+$/,                                // rule
  /^\s*(`{1,2}|~{1,2}|`{3,}[^`]{0,80}|~{3,}.{0,80})$/,       // fence
].map((part) => part.source).join('|'));

export class MarkdownView {
  /** Appends to `parent`; `paint(parent, text, start)` puts a piece of the source into the document;
   * `on_block(text)`, if any, is told of every finished block. */
  constructor(parent, paint, on_block = () => {}) {
    this.parent = parent;
    this.paint = paint;
    this.on_block = on_block;
    this.pending = '';      // source not yet in the document for good
    this.base = 0;          // where it stands in the source
    this.ended = false;
    this.block = null;      // the open top-level element
    this.lists = [];        // open lists, outermost first: {node, indent, item}
    this.paragraph = null;  // element that a further line of text goes on in
    this.fence = null;      // open code block: {mark, indent, code}
    this.line = null;       // element that the rest of the current line goes into
    this.unfinished = null; // what of `pending` is shown for the time being
  }

  append(text) {
    this.unfinished?.remove();
    this.unfinished = null;
    this.pending += text;
    while (this.pending && (this.line ? this.rest_of_line() : this.start_of_line())) { /* goes on */ }
    if (this.line && this.pending) {
      this.unfinished = element('span');
      this.paint(this.unfinished, this.pending, this.base);
      this.line.append(this.unfinished);
    }
  }

  /** Nothing more comes. */
  end() {
    this.ended = true;
    this.append('');
    this.close_block();
  }

  /** Takes `length` characters of the source away, shown in `node` or not at all. */
  take(length, node = null) {
    const text = this.pending.slice(0, length);
    if (node && text) this.paint(node, text, this.base);
    this.pending = this.pending.slice(length);
    this.base += length;
  }

  /** Decides what a line is. False where too little of it is known. */
  start_of_line() {
    const newline = this.pending.indexOf('\n');
    const line = newline < 0 ? this.pending : this.pending.slice(0, newline);
    const whole = newline >= 0 || this.ended;
    if (this.fence) return this.line_of_code(line, whole);
    if (!whole && kUndecided.test(line)) return false;
    const after = Math.min(line.length + 1, this.pending.length);
    let match;
    if (!line.trim()) {
      this.paragraph = null;
      if (!this.lists.length) this.close_block();
      this.take(after);
    } else if (whole && (match = kFence.exec(line))) {
      this.open_fence(match[1].length, match[2], match[3].trim());
      this.take(after);
    } else if (whole && kRule.test(line)) {
      this.open_block(element('hr'));
      this.take(after);
    } else if ((match = kItem.exec(line))) {
      this.open_item(match[1].length, match[2]);
      this.take(match[0].length);
    } else if ((match = kHeading.exec(line))) {
      this.line = this.open_block(element(`h${Math.min(match[1].length + 2, 5)}`));
      this.take(match[0].length);
    } else {
      this.open_text(line);
    }
    return true;
  }

  /** Shows what is known of the line. False where its end is still to come. */
  rest_of_line() {
    const newline = this.pending.indexOf('\n');
    const whole = newline >= 0 || this.ended;
    const length = newline < 0 ? this.pending.length : newline;
    if (this.fence) {
      this.take(newline < 0 ? length : length + 1, this.line);
    } else {
      const taken = this.inline(this.line, this.pending.slice(0, length), this.base, whole);
      this.take(taken);
      if (taken < length) return false;
      if (newline >= 0) this.take(1);
    }
    if (whole) this.line = null;
    return whole;
  }

  line_of_code(line, whole) {
    const {mark, indent, code} = this.fence;
    const closing = line.trim();
    const closes = closing.length >= mark.length && closing === mark[0].repeat(closing.length);
    if (whole && closes) {
      this.take(Math.min(line.length + 1, this.pending.length));
      this.fence = null;
      if (!this.lists.length) this.close_block();
      return true;
    }
    // Spaces only, or marks only: may be the end of the block.
    if (!whole && (!closing || closing === mark[0].repeat(closing.length))) return false;
    this.take(Math.min(indent, line.length - line.trimStart().length));
    this.line = code;
    return true;
  }

  open_fence(indent, mark, language) {
    const code = element('code');
    const name = language.split(/\s/)[0] || 'code';
    const figure = element('figure', {class: 'code'},
      element('figcaption', {}, element('span', {}, name), copyButton(() => code.textContent, 'Copy this code')),
      element('pre', {tabindex: '0', role: 'region', 'aria-label': `${name} block`}, code));
    const list = indent > 0 ? this.lists.at(-1) : undefined;
    if (list) list.item.append(figure);
    else this.open_block(figure);
    this.fence = {mark, indent, code};
    this.paragraph = null;
  }

  open_item(indent, mark) {
    while (this.lists.length && this.lists.at(-1).indent > indent) this.lists.pop();
    const ordered = /\d/.test(mark);
    const name = ordered ? 'OL' : 'UL';
    let list = this.lists.at(-1);
    if (!list || indent >= list.indent + 2 || list.node.nodeName !== name) {
      const node = element(name.toLowerCase(), ordered ? {start: String(parseInt(mark, 10))} : {});
      if (list && indent < list.indent + 2) this.lists.pop();
      const outer = this.lists.at(-1);
      if (outer) outer.item.append(node);
      else this.open_block(node);
      list = {node, indent};
      this.lists.push(list);
    }
    list.item = element('li');
    list.node.append(list.item);
    this.line = list.item;
    this.paragraph = list.item;
  }

  open_text(line) {
    const list = this.lists.at(-1);
    if (this.paragraph) {
      this.paragraph.append('\n');
      this.line = this.paragraph;
    } else if (list && /^\s{2,}/.test(line)) {
      this.line = this.paragraph = element('p');
      list.item.append(this.line);
    } else {
      this.line = this.paragraph = this.open_block(element('p'));
    }
    this.take(line.length - line.trimStart().length);
  }

  open_block(node) {
    this.close_block();
    this.parent.append(node);
    this.block = node;
    return node;
  }

  close_block() {
    if (this.block) this.on_block(this.block.nodeName === 'FIGURE' ? 'Code block' : this.block.textContent);
    this.block = this.paragraph = this.line = this.fence = null;
    this.lists = [];
  }

  /** Paints `text`, a piece of one line that stands at `start`. Returns how many characters are shown for good. */
  inline(node, text, start, whole) {
    const marks = /`+|\*+/g;
    let shown = 0;
    for (let match; (match = marks.exec(text));) {
      const at = match.index;
      const mark = match[0];
      const open = at + mark.length;
      const undecided = !whole && text.length - at < 2 * kReach;
      if (open === text.length && undecided) {
        this.paint(node, text.slice(shown, at), start + shown);
        return at;
      }
      const name = mark[0] === '`' ? 'code' : {'*': 'em', '**': 'strong'}[mark];
      const opens = name === 'code' || (name && /\S/.test(text[open] ?? ' '));
      const close = opens ? closing(text, mark, open, whole) : -1;
      if (close < 0) {
        if (close === kLater && undecided) {
          this.paint(node, text.slice(shown, at), start + shown);
          return at;
        }
        continue;  // literal
      }
      this.paint(node, text.slice(shown, at), start + shown);
      const inner = element(name);
      if (name === 'code') this.paint(inner, text.slice(open, close), start + open);
      else this.inline(inner, text.slice(open, close), start + open, true);
      node.append(inner);
      shown = marks.lastIndex = close + mark.length;
    }
    this.paint(node, text.slice(shown), start + shown);
    return text.length;
  }
}

const kLater = -2;

/** Where the marks that close `mark` stand, within reach of `from`; kLater: not in this text yet; -1: nowhere. */
function closing(text, mark, from, whole) {
  const runs = mark[0] === '`' ? /`+/g : /\*+/g;
  runs.lastIndex = from;
  for (let match; (match = runs.exec(text)) && match.index < from + kReach;) {
    const at_end = match.index + match[0].length === text.length;
    if (at_end && !whole) return kLater;  // more marks may follow
    const fits = match[0] === mark && match.index > from;
    if (fits && (mark[0] === '`' || /\S/.test(text[match.index - 1]))) return match.index;
  }
  return text.length < from + kReach ? kLater : -1;
}
