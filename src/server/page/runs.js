// Which characters of a text came from which cycle.

import {element} from './dom.js';

export class Runs {
  /** `list` as `list` of another one: [end, tokens, end, tokens, ...], ends in UTF-16 units from the start of the text. */
  constructor(list = []) {
    this.list = list;
    this.cycle = null;
  }

  /** The next `length` characters came with `tokens` tokens of this cycle. */
  add(length, tokens, cycle) {
    const last = this.list.length - 2;
    if (last >= 0 && cycle !== undefined && cycle === this.cycle) {
      this.list[last] += length;
      this.list[last + 1] += tokens;
    } else if (length > 0) {
      this.list.push((last >= 0 ? this.list[last] : 0) + length, tokens);
      this.cycle = cycle;
    }
  }

  /** Appends `text`, which stands at `start`, to `parent`: plain where a cycle gave one token, else a tinted span. */
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
      } else if (parent.lastChild instanceof Text) {
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
