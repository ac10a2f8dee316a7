// Reads from /proc how much time on processors a process has used.

import { readFile } from 'node:fs/promises';

/** Linux counts in hundredths of a second. */
const MS_PER_TICK = 10;

export async function processCpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name of the program is in parentheses, and may have spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [userTicks, systemTicks] = [fields[11], fields[12]];
  return (Number(userTicks) + Number(systemTicks)) * MS_PER_TICK;
}
