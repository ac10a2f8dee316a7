// Shows the progress of a load: a bar on a terminal, plain lines elsewhere.

import type { RetryNotice } from '@headgate/client/patience.ts';
import { printable } from '../../printable.ts';
import type { Io } from '../io.ts';
import { progressBar, progressLine, shownDuration } from '../progress.ts';
import type { Counts } from './tally.ts';

const BAR_CHARACTERS = 24;
const USUAL_WIDTH_CHARACTERS = 80;
/** A file's rate and remaining time are shown only after this time, because earlier they would be too inaccurate. */
const LEAST_RATE_MS = 500;

/** If there is no terminal, progress is printed only after this time. A file that is loaded faster gets one line. */
const FIRST_LINE_MS = 5000;

export function shown(count: number): string {
  return count.toLocaleString('en');
}

export class Display {
  readonly #io: Io;
  readonly #bar: ReturnType<typeof progressLine>;
  readonly #isQuiet: boolean;
  #file = '';
  #sizeBytes = 0;
  #startBytes = 0;
  #startMs = 0;
  #isRetrying = false;
  /** The width of the current file's bar. It only shrinks, so that it does not flicker when figures change length. */
  #barCharacters = BAR_CHARACTERS;

  constructor(io: Io, isQuiet: boolean) {
    this.#io = io;
    this.#isQuiet = isQuiet;
    this.#bar = progressLine(io);
  }

  /** `place` is where in the file the load resumes, or null if it starts at the beginning. */
  start(file: string, sizeBytes: number, startBytes: number, place: string | null): void {
    // The name is escaped here, because the width of the bar depends on the number of characters that are shown.
    this.#file = printable(file);
    this.#sizeBytes = sizeBytes;
    this.#startBytes = startBytes;
    this.#barCharacters = BAR_CHARACTERS;
    this.#startMs = performance.now();
    this.#isRetrying = false;
    if (place !== null) this.note(`${file}: resuming at ${place}`);
  }

  update(counts: Counts, readBytes: number): void {
    this.#isRetrying = false;
    const isEarly = performance.now() - this.#startMs < FIRST_LINE_MS;
    if (this.#isQuiet || (isEarly && !this.#io.isTerminal)) return;
    this.#bar.show(this.#line(counts, readBytes));
  }

  retry({ pauseMs, reason }: Pick<RetryNotice, 'pauseMs' | 'reason'>): void {
    const sentence = `${this.#file}: ${reason.replace(/\.$/, '')}; trying again`;
    const pauseSeconds = Math.max(1, Math.round(pauseMs / 1000));
    if (this.#io.isTerminal && !this.#isQuiet)
      this.#bar.show(this.#fitted(`${sentence} in ${pauseSeconds} s`));
    else if (!this.#isRetrying) this.note(sentence);
    this.#isRetrying = true;
  }

  /** Prints the final line of a file. */
  end(counts: Counts): void {
    const seconds = (performance.now() - this.#startMs) / 1000;
    const { received } = counts;
    this.note(
      `${this.#file}: ${shown(received)} ${received === 1 ? 'record' : 'records'} in ${shownDuration(seconds)}, ${outcome(counts)}`,
    );
  }

  /** Removes the bar. */
  clear(): void {
    if (this.#io.isTerminal) this.#io.rewrite('');
  }

  note(sentence: string): void {
    this.clear();
    if (!this.#isQuiet) this.#io.err(sentence);
  }

  #line(counts: Counts, readBytes: number): string {
    const share = this.#sizeBytes === 0 ? 1 : Math.min(1, readBytes / this.#sizeBytes);
    const elapsedMs = performance.now() - this.#startMs;
    const isSure = elapsedMs >= LEAST_RATE_MS && readBytes > this.#startBytes;
    const leftSeconds = ((this.#sizeBytes - readBytes) / (readBytes - this.#startBytes)) * (elapsedMs / 1000);
    const parts = [
      `${Math.floor(share * 100)} %`,
      outcome(counts),
      ...(isSure
        ? [
            `${shown(Math.round(counts.received / (elapsedMs / 1000)))}/s`,
            `${shownDuration(leftSeconds)} left`,
          ]
        : []),
    ];
    if (!this.#io.isTerminal) return `${this.#file}: ${parts.join(', ')}`;
    const facts = parts.join('  ');
    const width = this.#width();
    const file = this.#file.length > width / 3 ? `…${this.#file.slice(-Math.floor(width / 3))}` : this.#file;
    this.#barCharacters = Math.min(this.#barCharacters, width - file.length - facts.length - 4);
    const barWidth = this.#barCharacters;
    const bar = barWidth < 5 ? '' : `${progressBar(share, barWidth)}  `;
    return this.#fitted(`${file}  ${bar}${facts}`);
  }

  /** Shortens a line to the terminal's width, because a wrapped line cannot be overwritten. */
  #fitted(line: string): string {
    const characters = [...printable(line)];
    const width = this.#width();
    return characters.length <= width ? characters.join('') : `${characters.slice(0, width - 1).join('')}…`;
  }

  #width(): number {
    // A terminal of unknown size reports a width of 0. The usual width is then used.
    return Math.max(20, (this.#io.widthCharacters || USUAL_WIDTH_CHARACTERS) - 1);
  }
}

function outcome({ received, rejected, unchecked }: Counts): string {
  return [
    `${shown(received - rejected - unchecked)} accepted`,
    ...(unchecked === 0 ? [] : [`${shown(unchecked)} unchecked`]),
    `${shown(rejected)} rejected`,
  ].join(', ');
}
