// Sample results for tests: ordinary results, and extreme results that test the layout.

import type { Machine } from '../machine.ts';
import type { Comparison, Figure, Results, Series } from '../results.ts';

export const machine: Machine = {
  cpu: 'Example-1',
  cores: 2,
  memoryBytes: 8 * 2 ** 30,
  architecture: 'arm64',
  kernel: 'Linux 6.1',
  fileSystem: 'ext2/3/4',
};

export function figure(
  values: readonly number[],
  bound: Figure['bound'],
  given: Partial<Figure> = {},
): Figure {
  return {
    id: 'rate',
    title: 'Upload rate against the textbook service',
    values,
    unit: 'ratio',
    bound,
    ...given,
  };
}

export function series(
  contender: string,
  values: readonly number[],
  unit: Series['unit'] = 'records/s',
): Series {
  return { contender, values, unit };
}

export function comparison(all: readonly Series[], given: Partial<Comparison> = {}): Comparison {
  return {
    id: 'uploads',
    title: 'Uploads of new transactions',
    conditions: '4 clients, 5,000 records an upload, an empty store',
    series: all,
    ...given,
  };
}

export function results(given: Partial<Results> = {}): Results {
  return {
    startedAt: '2026-02-03T04:05:06.000Z',
    elapsedMs: 754_000,
    mode: 'full',
    command: 'npm run bench',
    machine,
    versions: { 'Node.js': '24.1.0', SQLite: '3.50.1', PostgreSQL: '18.1' },
    figures: [],
    comparisons: [],
    leftOut: [],
    ...given,
  };
}

export const ordinary = results({
  figures: [
    figure(
      [4.8, 5.2, 5.1, 4.6, 5.3],
      { atLeast: 3 },
      { id: 'textbook', title: 'Against the textbook service on SQLite' },
    ),
    figure(
      [61, 75, 70, 66, 72],
      { atLeast: 20 },
      { id: 'directus', title: 'Against Directus on PostgreSQL' },
    ),
    figure(
      [0.83, 0.78, 0.86, 0.81, 0.8],
      { atLeast: 0.9 },
      { id: 'floor', title: 'Against bare prepared upserts into the same table, without HTTP or checks' },
    ),
    figure(
      [12.1, 14.9, 13.2, 11.8, 12.6],
      { below: 50 },
      { id: 'latency', title: 'Interaction, 99th percentile, under a full upload', unit: 'ms' },
    ),
    figure(
      [212, 215, 209, 220, 214],
      { below: 256 },
      { id: 'memory', title: 'Memory after a million records', unit: 'MB' },
    ),
    figure([0.41, 0.4, 0.43, 0.42, 0.39], null, {
      id: 'start',
      title: 'From the command to the first answer',
      unit: 's',
    }),
  ],
  comparisons: [
    comparison([
      series('Headgate, SQLite', [84_200, 88_100, 86_300, 79_800, 87_000]),
      series('Headgate, PostgreSQL', [41_000, 42_500, 39_700, 43_100, 41_900]),
      series('Textbook service, SQLite', [17_100, 16_800, 17_900, 16_400, 17_300]),
      series('Textbook service, PostgreSQL', [6_210, 6_400, 6_020, 6_300, 6_150]),
      series('Directus 11, PostgreSQL', [1_012, 990, 1_050, 1_031, 978]),
    ]),
    comparison(
      [
        series('Headgate', [3.1, 3.4, 2.9, 3.2, 8.8], 'ms'),
        series('Bare node:http', [1.2, 1.3, 1.1, 1.2, 1.2], 'ms'),
      ],
      {
        id: 'interactions',
        title: 'One interaction, median time to the answer',
        conditions: '1 client, no other load',
      },
    ),
  ],
  leftOut: [{ contender: 'NocoDB', reason: 'its packages could not be installed within 300 s' }],
});

const hostile = `<b>"R&D's" rate</b>`;
const longTitle = `${hostile} of a question whose title goes on and on so that it can never fit on a line of the table, ${'unbroken'.repeat(20)}`;

/**
 * Results that strain the layout: texts with markup, very long lines, values that differ by a factor of a hundred
 * thousand, a comparison with one round, and one with ten contenders.
 */
export const straining = results({
  mode: 'smoke',
  machine: { ...machine, cpu: hostile },
  versions: {
    ...results().versions,
    ...Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`Peer number ${n}`, '1.2.3-beta.4'])),
  },
  figures: [
    figure([2], { atLeast: 2 }, { id: 'at-least-its-bound', title: 'Just at the least it must be' }),
    figure(
      [50, 50, 50],
      { below: 50 },
      { id: 'below-its-bound', title: 'Just at what it must be below', unit: 'ms' },
    ),
    figure(
      [1.9996, 1.9997, 2.1],
      { atLeast: 2 },
      { id: 'near', title: 'Missed by less than three digits show' },
    ),
    figure([5_000, 6_000, 7_000], { atLeast: 2 }, { id: 'far', title: 'Far beyond its bound' }),
    figure(
      [0, 0, 1],
      { below: 1000 },
      { id: 'nothing', title: 'Nothing at all, where less is better', unit: 'MB' },
    ),
    figure([0, 0, 0], { atLeast: 2 }, { id: 'zero', title: 'Nothing at all, where more is better' }),
    figure(
      [1_234_567.8, 2_345_678.9, 3_456_789.1],
      { below: 1_000_000 },
      { id: 'wide', title: longTitle, unit: 'ms' },
    ),
    figure([1, 2, 3], null, { id: 'orientation', title: longTitle, unit: 's' }),
  ],
  comparisons: [
    comparison(
      [
        series('Headgate', [100_000, 180_000, 101_000]),
        ...Array.from({ length: 8 }, (_, n) =>
          series(`Contender ${n}`, [1_000 / 3 ** n, 1_100 / 3 ** n, 90_000 / 3 ** n]),
        ),
        series(
          `A contender with a name that needs several lines ${'X'.repeat(40)} ${hostile}`,
          [99_000, 150_000, 1],
        ),
      ],
      { id: 'ten', title: longTitle, conditions: `${longTitle}. ${longTitle}.` },
    ),
    comparison([series('Headgate', [123_456_789]), series('Other', [1])], {
      id: 'one-round',
      title: 'One round only',
    }),
  ],
  leftOut: [{ contender: hostile, reason: `it said: \u001b[31m| * _failed_ |\u001b[0m\nand ended` }],
});
