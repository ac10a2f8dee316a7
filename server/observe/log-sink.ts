// Where log lines go: gathered in memory, and written to a descriptor without ever holding up whoever logs. A reader
// that stands still costs lines, which are counted, not memory.

import { write, writeSync } from 'node:fs';

const WRITE_AFTER_MS = 50;
const WRITE_AT_LENGTH = 16 * 1024;
const TRY_AGAIN_AFTER_MS = 10;
const LAST_WORDS_MS = 500;
const HELD_LIMIT_LENGTH = 4 * 1024 * 1024;
/** So much goes to a pipe in one piece, whoever else writes to it (PIPE_BUF). */
export const WHOLE_ON_A_PIPE_BYTES = 4096;
export const LARGE_WRITE_BYTES = 64 * 1024;

export interface LogSink {
  /** A whole line, with its line break. */
  write(line: string): void;
  /** Begins to write what is held, instead of in a moment. */
  hurry(): void;
  /** Resolves when all is written, or when the reader has stood still for too long. */
  close(): Promise<void>;
}

/** `dropNote`: the line that tells how many are missing. */
export function openLogSink(
  fd: number,
  mostBytesAtOnce: number,
  dropNote: (dropped: number) => string,
): LogSink {
  let chunks: string[] = [];
  let current = '';
  let heldLength = 0;
  let dropped = 0;
  /** Taken from `chunks` and not yet written to its end. */
  let leaving: Buffer | null = null;
  let isInSystemCall = false;
  /** The reader is behind: it is tried again when the timer says so. */
  let isStalled = false;
  let timer: NodeJS.Timeout | null = null;
  let isGone = false;
  let whenEmpty: (() => void) | null = null;

  const isFull = (line: string): boolean => heldLength + line.length > HELD_LIMIT_LENGTH;

  const hold = (line: string): void => {
    if (current.length + line.length > mostBytesAtOnce && current !== '') {
      chunks.push(current);
      current = '';
    }
    current += line;
    heldLength += line.length;
  };

  const takeNext = (): Buffer | null => {
    if (dropped > 0) {
      const note = dropNote(dropped);
      dropped = 0;
      hold(note);
    }
    let next = chunks.shift();
    if (next === undefined) {
      next = current;
      current = '';
    }
    heldLength -= next.length;
    return next === '' ? null : Buffer.from(next);
  };

  /** The other end is closed: nobody will ever read a line. */
  const giveUp = (): void => {
    isGone = true;
    chunks = [];
    current = '';
    heldLength = 0;
    leaving = null;
  };

  const writeNext = (): void => {
    if (isInSystemCall || isStalled || isGone) return;
    clearDue();
    leaving ??= takeNext();
    if (leaving === null) {
      whenEmpty?.();
      return;
    }
    isInSystemCall = true;
    write(fd, leaving, (error, written) => {
      isInSystemCall = false;
      if (error === null) {
        leaving = leaving!.byteLength > written ? leaving!.subarray(written) : null;
        writeNext();
      } else if (isBusy(error)) {
        isStalled = true;
        due(TRY_AGAIN_AFTER_MS);
      } else {
        giveUp();
        whenEmpty?.();
      }
    });
  };

  const due = (delayMs: number): void => {
    timer ??= setTimeout(() => {
      timer = null;
      isStalled = false;
      writeNext();
    }, delayMs).unref();
  };
  const clearDue = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  };

  /** The process ends now: what a system call has in hand ends by itself, the rest is written here. */
  const writeLastWords = (): void => {
    const deadlineMs = performance.now() + LAST_WORDS_MS;
    if (isInSystemCall) leaving = null;
    for (leaving ??= takeNext(); leaving !== null && !isGone; leaving ??= takeNext()) {
      try {
        const written = writeSync(fd, leaving);
        leaving = leaving.byteLength > written ? leaving.subarray(written) : null;
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadlineMs) giveUp();
        else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_AFTER_MS);
      }
    }
  };
  process.on('uncaughtExceptionMonitor', writeLastWords).on('exit', writeLastWords);

  return {
    write(line) {
      if (isGone) return;
      if (isFull(line)) {
        dropped++;
        return;
      }
      hold(line);
      if (heldLength >= WRITE_AT_LENGTH) writeNext();
      else due(WRITE_AFTER_MS);
    },
    hurry: writeNext,
    async close() {
      if (isInSystemCall || leaving !== null || heldLength > 0 || dropped > 0) {
        const patience = setTimeout(() => whenEmpty?.(), LAST_WORDS_MS);
        await new Promise<void>((resolve) => {
          whenEmpty = resolve;
          writeNext();
        });
        clearTimeout(patience);
      }
      clearDue();
      process.off('uncaughtExceptionMonitor', writeLastWords).off('exit', writeLastWords);
    },
  };
}

/** A pipe that is full for now. */
function isBusy(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EAGAIN' || code === 'EBUSY';
}
