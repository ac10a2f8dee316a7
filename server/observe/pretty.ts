// Formats log lines for people at a terminal.

import { styleText } from 'node:util';
import { printable, printableLines } from '../printable.ts';
import type { EndedRequest, IngestSummary } from './ended-request.ts';

type Style = Parameters<typeof styleText>[0];
type Paint = (style: Style, text: string) => string;

const levelStyles: Readonly<Record<string, Style>> = { error: 'red', warn: 'yellow', info: 'green' };

export function prettyRequest(time: string, ended: EndedRequest, hasColours: boolean): string {
  const paint = painter(hasColours);
  const { method, route, status, isCutOff, orgId, type, summary, code, durationMs } = ended;
  const parts = [
    paint('dim', time),
    paint(styleOf(status), status === null ? '---' : String(status)),
    method.padEnd(4),
    type === null ? route : route.replace('{type}', type),
    ...(summary === null ? (code === null ? [] : [code]) : [wordsOf(summary)]),
    ...(isCutOff ? [paint('yellow', 'cut off')] : []),
    ...(orgId === null ? [] : [paint('dim', orgId)]),
    paint('dim', `${durationMs < 10 ? durationMs.toFixed(1) : durationMs.toFixed(0)} ms`),
  ];
  return `${parts.join(' ')}\n`;
}

export function prettyEvent(
  time: string,
  level: string,
  summary: Readonly<Record<string, unknown>>,
  message: string,
  hasColours: boolean,
): string {
  const paint = painter(hasColours);
  const stacks = Object.values(summary).filter((value) => value instanceof Error);
  const details = Object.entries(summary)
    .filter(([, value]) => !(value instanceof Error) && value !== undefined)
    .map(([name, value]) =>
      paint('dim', printable(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)),
    );
  const first = [
    paint('dim', time),
    paint(levelStyles[level] ?? 'dim', level),
    printable(message),
    ...details,
  ].join(' ');
  return [first, ...stacks.map(({ stack, message: said }) => printableLines(stack ?? said))]
    .join('\n')
    .concat('\n');
}

function painter(hasColours: boolean): Paint {
  return hasColours ? (style, text) => styleText(style, text, { validateStream: false }) : (_, text) => text;
}

function styleOf(status: number | null): Style {
  if (status === null) return 'yellow';
  return status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green';
}

function wordsOf({ outcome, counts }: IngestSummary): string {
  if (counts === undefined) return outcome;
  const words = (['created', 'updated', 'unchanged', 'rejected'] as const)
    .filter((name) => counts[name] > 0)
    .map((name) => `${counts[name]} ${name}`);
  return `${outcome.replace('_', ' ')}: ${words.join(', ')}`;
}
