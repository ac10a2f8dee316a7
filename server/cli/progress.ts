// Shows progress: one line that is rewritten on a terminal, or a new line every few seconds elsewhere.

import type { Io } from './io.ts';

const REWRITE_EVERY_MS = 100;
const PRINT_EVERY_MS = 5000;

const BAR_CHARACTERS = 20;

export function progressBar(share: number, widthCharacters: number = BAR_CHARACTERS): string {
  const filled = Math.round(share * widthCharacters);
  return '█'.repeat(filled) + '░'.repeat(widthCharacters - filled);
}

export function shownDuration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const rest = String(whole % 60).padStart(2, '0');
  if (hours > 0) return `${hours}:${String(minutes).padStart(2, '0')}:${rest} h`;
  return whole < 60 ? `${whole} s` : `${minutes}:${rest} min`;
}

export interface ProgressLine {
  show(text: string): void;
  end(): void;
}

export function progressLine(io: Io): ProgressLine {
  let shownAtMs = Number.NEGATIVE_INFINITY;
  let last: string | null = null;
  const put = (text: string): void => {
    if (io.isTerminal) io.rewrite(text);
    else io.err(text);
    shownAtMs = performance.now();
    last = null;
  };
  return {
    show(text) {
      last = text;
      const pauseMs = io.isTerminal ? REWRITE_EVERY_MS : PRINT_EVERY_MS;
      if (performance.now() - shownAtMs >= pauseMs) put(text);
    },
    end() {
      if (last !== null) put(last);
      if (io.isTerminal) io.rewrite('');
    },
  };
}
