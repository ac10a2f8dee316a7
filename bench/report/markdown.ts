// Formats the results as a Markdown document, which is committed with the code.

import type { Comparison, Results } from './results.ts';
import { figureCells, seriesCells } from './table.ts';
import {
  capitalised,
  isHigherBetter,
  memoryInWords,
  roundsInWords,
  runInWords,
  summaryOf,
} from './wording.ts';
import { oneLine } from './wrap.ts';

export function markdownReport(results: Results): string {
  const { machine, versions, figures, comparisons, leftOut, command, mode } = results;
  const { cpu, cores, memoryBytes, architecture, kernel, fileSystem } = machine;
  const facts = [
    ['Processor', cpu],
    ['Cores', String(cores)],
    ['Memory', memoryInWords(memoryBytes)],
    ['Architecture', architecture],
    ['Kernel', kernel],
    ['File system of the stores', fileSystem ?? 'not known'],
    ...Object.entries(versions),
  ];
  const sections = [
    '# Benchmark',
    sentence(runInWords(results)),
    ...(figures.length === 0
      ? []
      : [
          '## Figures',
          sentence(summaryOf(figures)),
          table(
            ['Figure', 'Bound', 'Median', 'Spread', 'Verdict', 'Rounds'],
            figures.map((figure) => [...figureCells(figure), String(figure.values.length)]),
          ),
        ]),
    ...(comparisons.length === 0
      ? []
      : [
          '## Comparisons',
          'The contenders of a comparison take turns in every round. The last column is the median of the ratios to the first contender in the same round, so it may differ a little from the ratio of the medians.',
          ...comparisons.flatMap(comparisonSection),
        ]),
    ...(leftOut.length === 0
      ? []
      : [
          '## Left out',
          table(
            ['Contender', 'Why'],
            leftOut.map(({ contender, reason }) => [contender, reason]),
          ),
        ]),
    '## Measured on',
    table(['What', 'Which'], facts),
    '## To repeat it',
    `\`\`\`\n${oneLine(command)}\n\`\`\``,
    `Each value is the median of all rounds, and the spread is the range from the lowest round to the highest. A bound is met if the median is within it. The value of every round is in [${mode}.json](${mode}.json).`,
  ];
  return `${sections.map((section) => section.trimEnd()).join('\n\n')}\n`;
}

function comparisonSection({ title, conditions, series }: Comparison): string[] {
  const first = series[0]!;
  return [
    `### ${escaped(title)}`,
    sentence(
      `${conditions}; ${roundsInWords(first.values)}; ${isHigherBetter(first.unit) ? 'higher' : 'lower'} is better`,
    ),
    table(
      ['Contender', 'Median', 'Spread', 'To the first'],
      series.map((one) => seriesCells(one, first)),
    ),
  ];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map((row) => line(row.map(escaped)))].join('\n');
}

function sentence(text: string): string {
  return `${escaped(capitalised(text))}.`;
}

function escaped(text: string): string {
  return oneLine(text)
    .replaceAll(/[\\`*_[\]|~]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
