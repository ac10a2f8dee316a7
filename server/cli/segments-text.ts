// Shows segments to people: as a list, one by one, and the trees of a preview and an explanation.

import type { ListedSegment, MemberExplanation, Segment, SegmentPreview } from '@headgate/client/segments.ts';
import { printable } from '../printable.ts';
import { columns, wrap } from './columns.ts';
import { type TreeNode, treeLines, treeOf } from './condition-tree.ts';
import { shown } from './load/display.ts';
import { missingData } from './missing-data.ts';
import { progressBar } from './progress.ts';
import { cutTo } from './shown-width.ts';

const BAR_CHARACTERS = 12;
const WIDEST_VALUE = 40;
const NOTHING = '–';

export function listText(segments: readonly ListedSegment[], nowMs: number): readonly string[] {
  const rows = segments.map(({ name, count, evaluation, failure }) => [
    printable(name),
    shown(count),
    evaluation === null ? 'never' : shownAge(evaluation.at, nowMs),
    evaluation === null ? '' : `${shown(evaluation.ms)} ms`,
    evaluation === null ? '' : shown(evaluation.entered),
    evaluation === null ? '' : shown(evaluation.left),
    failure === null ? '' : `${shownAge(failure.at, nowMs)}: ${printable(failure.message)}`,
  ]);
  return columns([['NAME', 'MEMBERS', 'EVALUATED', 'TOOK', 'ENTERED', 'LEFT', 'FAILED'], ...rows]);
}

export function segmentText(segment: Segment, nowMs: number, widthCharacters: number): readonly string[] {
  const { evaluation, failure, note, used_by: users } = segment;
  const timeText = (time: string): string => `${toTheSecond(time)} (${shownAge(time, nowMs)})`;
  const facts = columns([
    ['Name', printable(segment.name)],
    ...(note === null ? [] : [['Note', printable(note)]]),
    ['Members', shown(segment.count)],
    ['Created', timeText(segment.created_at)],
    ['Saved', timeText(segment.saved_at)],
    [
      'Evaluated',
      evaluation === null ? 'never' : `${timeText(evaluation.at)}, in ${shown(evaluation.ms)} ms`,
    ],
    ...(evaluation === null
      ? []
      : [['', `${shown(evaluation.entered)} entered, ${shown(evaluation.left)} left`]]),
    ...(failure === null ? [] : [['Failed', `${timeText(failure.at)}: ${printable(failure.message)}`]]),
    ...(failure === null ? [] : [['', 'The members are those of the evaluation before.']]),
    ...(users.length === 0 ? [] : [['Used by', printable(users.join(', '))]]),
  ]);
  return [...facts, '', ...treeLines(treeOf(segment.condition), [], () => [], widthCharacters)];
}

export function previewText(
  condition: unknown,
  { count, nodes, sample, ms, as_of }: SegmentPreview,
  widthCharacters: number,
): readonly string[] {
  const counts = new Map(nodes.map((node) => [node.path, node.count]));
  const largest = Math.max(1, ...counts.values());
  const digits = Math.max(...Array.from(counts.values(), (each) => shown(each).length), 'CUSTOMERS'.length);
  const cellsOf = ({ path }: TreeNode): readonly string[] => {
    const holds = counts.get(path) ?? 0;
    return [shown(holds).padStart(digits), progressBar(holds / largest, BAR_CHARACTERS)];
  };
  const missing = missingData(as_of);
  const late = missing === null ? '' : `; ${missing}`;
  return [
    ...treeLines(treeOf(condition), ['CUSTOMERS', ''], cellsOf, widthCharacters),
    '',
    `${counted(count, 'customer')}, in ${shown(ms)} ms, as of entry ${as_of.seq}${late}`,
    ...(sample.length === 0 ? [] : ['', count > sample.length ? 'Some of them:' : 'They are:']),
    ...sample.map((id) => `  ${printable(id)}`),
  ];
}

export function explanationText(
  name: string,
  condition: unknown,
  { member, since, nodes, as_of }: MemberExplanation,
  widthCharacters: number,
): readonly string[] {
  const found = new Map(nodes.map((node) => [node.path, node]));
  const cellsOf = ({ path, isTest }: TreeNode): readonly string[] => {
    const { holds = false, saw = null } = found.get(path) ?? {};
    return [holds ? 'yes' : 'no', isTest ? shownValue(saw) : ''];
  };
  const missing = missingData(as_of);
  const late = missing === null ? '' : ` Note: ${missing}.`;
  return [
    ...wrap(membershipText(printable(name), member, since) + late, widthCharacters),
    '',
    ...treeLines(treeOf(condition), ['HOLDS', 'SAW'], cellsOf, widthCharacters),
  ];
}

/** The condition is evaluated now, and the members are those of the last evaluation. So both can differ. */
function membershipText(name: string, holds: boolean, since: string | null): string {
  if (since === null) {
    return holds
      ? `The condition of ${name} holds for the customer now, who will become a member at the next evaluation.`
      : `The customer is not a member of ${name}.`;
  }
  const sinceText = `The customer has been a member of ${name} since ${toTheSecond(since)}`;
  return holds ? `${sinceText}.` : `${sinceText}, but will leave at the next evaluation.`;
}

/** Returns what an evaluation did, such as `regulars has 3 members; 1 entered, 0 left`. */
export function outcomeText({ name, count, evaluation }: Segment): string {
  const changes =
    evaluation === null ? '' : `; ${shown(evaluation.entered)} entered, ${shown(evaluation.left)} left`;
  return `${printable(name)} has ${counted(count, 'member')}${changes}`;
}

function counted(count: number, noun: string): string {
  return `${shown(count)} ${noun}${count === 1 ? '' : 's'}`;
}

function shownValue(saw: string | number | boolean | null): string {
  if (saw === null) return NOTHING;
  if (typeof saw === 'number') return saw.toLocaleString('en', { maximumFractionDigits: 6 });
  return cutTo(printable(String(saw)), WIDEST_VALUE);
}

const unitsMs: readonly (readonly [string, number])[] = [
  ['d', 24 * 3_600_000],
  ['h', 3_600_000],
  ['min', 60_000],
];

/** Returns how long ago a time was. The server's clock may be ahead of this machine's. */
function shownAge(time: string, nowMs: number): string {
  const ms = Math.max(0, nowMs - Date.parse(time));
  const [unit, unitMs] = unitsMs.find(([, least]) => ms >= 2 * least) ?? ['s', 1000];
  return `${shown(Math.floor(ms / unitMs))} ${unit} ago`;
}

function toTheSecond(time: string): string {
  return time.replace(/\.\d+Z$/, 'Z');
}
