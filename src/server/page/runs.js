// Which characters of a text came from which cycle.

import {element} from './dom.js';

const kLongText = 4096;  // appending to a text node copies it

export class Runs {
  /** `list` as that of another one: [end, tokens, end, tokens, ...]; ends count from the start of the text. */
  constructor(list = []) {
    this.list = list;
  }

  /** The next `length` characters are those of one cycle of `tokens` tokens. */
  add(length, tokens) {
    if (length === 0) return;
    const end = (this.list.at(-2) ?? 0) + length;
    if (tokens === 1 && this.list.at(-1) === 1) this.list[this.list.length - 2] = end;  // plain text is one run
    else this.list.push(end, tokens);
  }

  /** Appends `text`, which stands at `start`, to `parent`: as it is where a cycle gave one token, else in a span. */
  paint(parent, text, start) {
    const end = start + text.length;
    let run = this.find(start);
    for (let at = start; at < end; run += 1) {
      const stop = Math.min(end, this.list[2 * run] ?? end);
      const piece = text.slice(at - start, stop - start);
      const tokens = this.list[2 * run + 1] ?? 1;
      if (tokens > 1) {
        parent.append(element('span', {
          class: `run ${run % 2 ? 'odd' : 'even'} n${Math.min(tokens, 5)}`,
          title: `${tokens} tokens from one cycle`,
        }, piece));
      } else if (parent.lastChild instanceof Text && parent.lastChild.length < kLongText) {
        parent.lastChild.appendData(piece);
      } else {
        parent.append(piece);
      }
      at = stop;
    }
  }

  /** The first run that ends after `position`. */
  find(position) {
    let low = 0;
    let high = this.list.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.list[2 * middle] > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
