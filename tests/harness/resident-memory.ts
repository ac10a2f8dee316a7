// Reads from /proc how much memory a process uses.

import { readFile } from 'node:fs/promises';

const BYTES_PER_MB = 1e6;
const KIB_BYTES = 1024;

export interface ResidentMemory {
  readonly nowMb: number;
  /** The highest ever. */
  readonly peakMb: number;
}

/** Resolves to null if the process has ended. */
export async function residentMemory(pid: number): Promise<ResidentMemory | null> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return '';
    throw error;
  });
  const nowMb = megabytes(status, 'VmRSS');
  const peakMb = megabytes(status, 'VmHWM');
  return nowMb === null || peakMb === null ? null : { nowMb, peakMb };
}

/** Returns null for a process that has ended but still has an entry: its status has no memory figures. */
function megabytes(status: string, name: string): number | null {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
  return kib === undefined ? null : (Number(kib) * KIB_BYTES) / BYTES_PER_MB;
}
