// Buffers log lines in memory and writes them to a file descriptor without ever blocking the caller. If the reader of
// the descriptor stalls, further lines are dropped and counted, so that memory stays bounded.

import { closeSync, constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';

const WRITE_AFTER_MS = 50;
/**
 * When this many characters are buffered, they are written without waiting for `WRITE_AFTER_MS`. The number is less
 * than `LARGE_WRITE_BYTES`, so that one write is enough.
 */
const WRITE_AT_LENGTH = 48 * 1024;
const TRY_AGAIN_AFTER_MS = 10;
/** The pause after a failure such as a full disk, which is unlikely to end soon. */
const TRY_AGAIN_AFTER_FAILURE_MS = 1000;
const LAST_WORDS_MS = 500;
const LINE_BREAK = 0x0a;
const HELD_LIMIT_LENGTH = 4 * 1024 * 1024;
/** The largest write to a pipe that is atomic even if other processes write to the same pipe (PIPE_BUF). */
export const WHOLE_ON_A_PIPE_BYTES = 4096;
export const LARGE_WRITE_BYTES = 64 * 1024;

export interface LogSink {
  /** Adds a whole line, which includes its line break. */
  write(line: string): void;
  /** Starts to write the buffered lines now instead of after `WRITE_AFTER_MS`. */
  hurry(): void;
  /** Resolves when everything is written, or when the reader has stalled for too long. */
  close(): Promise<void>;
}

/** Lines that are written with one call. */
interface Chunk {
  readonly text: string;
  /** The number of dropped lines that this chunk reports. 0 if the chunk contains ordinary lines. */
  readonly toldDrops: number;
}

/** Opens a sink. `dropNote` returns the line that reports how many lines were dropped. */
export function openLogSink(
  givenFd: number,
  mostBytesAtOnce: number,
  dropNote: (dropped: number) => string,
): LogSink {
  const fd = openWithoutBlocking(givenFd) ?? givenFd;
  let chunks: Chunk[] = [];
  let current = '';
  let heldLength = 0;
  let dropped = 0;
  /** The chunk that was taken from `chunks` and is not completely written. */
  let leaving: { readonly rest: Buffer; readonly toldDrops: number } | null = null;
  /** True if the last write ended in the middle of a line. The next chunk then begins with a line break. */
  let isLineBroken = false;
  let isInSystemCall = false;
  /** True while the reader is slow or the disk is full. The timer then starts the next attempt. */
  let isStalled = false;
  let timer: NodeJS.Timeout | null = null;
  let isOver = false;
  let whenEmpty: (() => void) | null = null;

  const isFull = (line: string): boolean => heldLength + line.length > HELD_LIMIT_LENGTH;

  const endChunk = (): void => {
    if (current !== '') chunks.push({ text: current, toldDrops: 0 });
    current = '';
  };

  const hold = (line: string): void => {
    if (current.length + line.length > mostBytesAtOnce) endChunk();
    current += line;
    heldLength += line.length;
  };

  const holdDropNote = (): void => {
    endChunk();
    const text = dropNote(dropped);
    chunks.push({ text, toldDrops: dropped });
    heldLength += text.length;
    dropped = 0;
  };

  const takeNext = (): void => {
    if (dropped > 0) holdDropNote();
    if (chunks.length === 0) endChunk();
    const next = chunks.shift();
    if (next === undefined) return;
    heldLength -= next.text.length;
    leaving = { rest: Buffer.from(isLineBroken ? `\n${next.text}` : next.text), toldDrops: next.toldDrops };
  };

  const noteWritten = (bytes: number): void => {
    const { rest, toldDrops } = leaving!;
    if (bytes > 0) isLineBroken = rest[bytes - 1] !== LINE_BREAK;
    leaving = rest.byteLength > bytes ? { rest: rest.subarray(bytes), toldDrops } : null;
  };

  /** Discards all lines. Called when the other end is closed, because no line will ever be read then. */
  const giveUp = (): void => {
    isOver = true;
    chunks = [];
    current = '';
    heldLength = 0;
    leaving = null;
  };

  const dropLeaving = (): void => {
    const { rest, toldDrops } = leaving!;
    dropped += toldDrops > 0 ? toldDrops : linesIn(rest);
    leaving = null;
  };

  const writeNext = (): void => {
    if (isInSystemCall || isStalled || isOver) return;
    clearDue();
    if (leaving === null) takeNext();
    if (leaving === null) {
      whenEmpty?.();
      return;
    }
    isInSystemCall = true;
    write(fd, leaving.rest, (error, written) => {
      isInSystemCall = false;
      if (error === null) {
        noteWritten(written);
        writeNext();
      } else if (isBusy(error)) {
        isStalled = true;
        due(TRY_AGAIN_AFTER_MS);
      } else if (hasNoReader(error)) {
        giveUp();
        whenEmpty?.();
      } else {
        dropLeaving();
        isStalled = true;
        due(TRY_AGAIN_AFTER_FAILURE_MS);
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

  /**
   * Writes the remaining lines synchronously. Called when the process ends. A write that is in a system call at that
   * time completes by itself.
   */
  const writeLastWords = (): void => {
    const deadlineMs = performance.now() + LAST_WORDS_MS;
    if (isInSystemCall) leaving = null;
    while (!isOver && performance.now() < deadlineMs) {
      if (leaving === null) takeNext();
      if (leaving === null) return;
      try {
        noteWritten(writeSync(fd, leaving.rest));
      } catch (error) {
        if (!isBusy(error)) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_AGAIN_AFTER_MS);
      }
    }
  };
  process.on('uncaughtExceptionMonitor', writeLastWords).on('exit', writeLastWords);

  return {
    write(line) {
      if (isOver) return;
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
      isOver = true;
      if (fd !== givenFd && !isInSystemCall) closeSync(fd);
    },
  };
}

/**
 * Opens the same terminal or pipe again in non-blocking mode, and returns the new descriptor. Without it, a paused
 * terminal (Ctrl-S) or a pipe that nobody reads would block a write, and with it the end of the process. The mode of
 * the given descriptor must not change, because other programs share it. Returns null if a new descriptor is not needed
 * or cannot be opened.
 */
function openWithoutBlocking(fd: number): number | null {
  try {
    if (!isatty(fd) && !fstatSync(fd).isFIFO()) return null;
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // The system has no /proc, or the terminal belongs to another user.
    return null;
  }
}

function linesIn(bytes: Buffer): number {
  let count = 0;
  for (const byte of bytes) if (byte === LINE_BREAK) count++;
  return count;
}

/** Returns whether the error means that the terminal or pipe is full for now. */
function isBusy(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EAGAIN' || code === 'EBUSY';
}

function hasNoReader({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EPIPE' || code === 'EBADF';
}
