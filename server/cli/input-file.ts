// Reads a file that a command was given, or standard input if its name is a hyphen.

import { readFile } from 'node:fs/promises';
import { text as textOf } from 'node:stream/consumers';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../failure.ts';

export async function readInput(file: string): Promise<string | Failure> {
  try {
    return file === '-' ? await textOf(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    return new Failure(`the file ${quote(file)} cannot be read: ${(error as Error).message}`);
  }
}
