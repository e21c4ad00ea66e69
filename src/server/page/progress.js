// What an answer has brought so far: its text, whose cycles the text is of, and how fast it came.

import {Runs} from './runs.js';

export class Progress {
  constructor() {
    this.content = '';
    this.reasoning = '';
    this.runs = new Runs();
    this.thought_runs = new Runs();
    this.finish = null;      // the server's finish_reason
    this.tokens = 0;
    this.cycles = 0;
    this.passes = 0;         // forward passes; 0 where the server does not say
    this.begun = performance.now();
    this.first = 0;          // when the first tokens came, and how many
    this.first_tokens = 0;
    this.last = 0;
    this.timings = null;     // the server's own account, at the end
    this.usage = null;
  }

  /** Takes a chunk of the stream. Returns the new text of both kinds. */
  take(chunk) {
    const choice = chunk.choices?.[0];
    const content = choice?.delta?.content ?? '';
    const reasoning = choice?.delta?.reasoning_content ?? '';
    // The tokens of each cycle that the chunk is of: mostly one cycle; several where text was held back, and then the
    // longest tints it. Without the server's extension a chunk counts as a token, and nothing is known of cycles.
    const cycles = chunk.orthrus?.cycles ?? [];
    const longest = Math.max(1, ...cycles);
    this.content += content;
    this.reasoning += reasoning;
    this.runs.add(content.length, longest);
    this.thought_runs.add(reasoning.length, longest);
    const counted = cycles.reduce((sum, length) => sum + length, 0);
    const tokens = chunk.orthrus ? counted : Number(Boolean(content || reasoning));
    if (tokens > 0) this.count(tokens);
    this.cycles += cycles.length;
    this.passes += chunk.orthrus?.forward_passes ?? 0;
    this.finish = choice?.finish_reason ?? this.finish;
    this.timings = chunk.timings ?? this.timings;
    this.usage = chunk.usage ?? this.usage;
    return {content, reasoning};
  }

  count(tokens) {
    this.last = performance.now();
    if (!this.first) {
      this.first = this.last;
      this.first_tokens = tokens;
    }
    this.tokens += tokens;
  }

  /** The figures as they stand; those that are not known are null. Rates are tokens a second without the first step. */
  figures() {
    const seconds = (this.last - this.first) / 1000;
    const timings = this.timings ?? {};
    return {
      tokens: this.usage?.completion_tokens ?? this.tokens,
      rate: timings.predicted_per_second || (seconds > 0 ? (this.tokens - this.first_tokens) / seconds : null),
      per_cycle: timings.tokens_per_cycle ?? (this.cycles ? this.tokens / this.cycles : null),
      tpf: timings.tpf ?? (this.passes ? this.tokens / this.passes : null),
      wait: this.first ? (this.first - this.begun) / 1000 : null,
      cached: this.usage?.prompt_tokens_details?.cached_tokens ?? null,
    };
  }
}

/** A figure as shown: '–' where it is not known. */
export const shown = (figure, digits) => (figure === null || figure === undefined ? '–' : figure.toFixed(digits));

export const view_name = (request) => (request.use_diffusion_mode === false ? 'plain AR' : 'dual view');

/** One line of figures for a request and its progress. */
export function summary(request, figures) {
  const parts = [
    view_name(request),
    `${figures.tokens} ${figures.tokens === 1 ? 'token' : 'tokens'}`,
    `${shown(figures.rate, 1)} tokens/s`,
    `${shown(figures.per_cycle, 2)} tokens/cycle`,
    `TPF ${shown(figures.tpf, 2)}`,
  ];
  if (figures.wait !== null) parts.push(`first after ${shown(figures.wait, 2)} s`);
  if (figures.cached) parts.push(`${figures.cached} of the prompt cached`);
  return parts.join(' · ');
}
