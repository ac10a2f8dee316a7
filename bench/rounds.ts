// Interleaves the contenders: each is measured once in every round, so that other load on the machine affects all of
// them alike.

import type { Series } from './report/results.ts';

export interface Turn {
  readonly contender: string;
  readonly unit: Series['unit'];
  measure(): Promise<number>;
}

/** Measures all turns in every round. The order rotates from round to round, so that no contender is always first. */
export async function inRounds(
  rounds: number,
  turns: readonly Turn[],
  say: (line: string) => void,
): Promise<readonly Series[]> {
  const values = new Map<Turn, number[]>(turns.map((turn) => [turn, []]));
  for (let round = 0; round < rounds; round++) {
    for (let place = 0; place < turns.length; place++) {
      const turn = turns[(place + round) % turns.length]!;
      const value = await turn.measure();
      values.get(turn)!.push(value);
      say(`  round ${round + 1}/${rounds}  ${turn.contender}: ${Math.round(value)} ${turn.unit}`);
    }
  }
  return turns.map((turn) => ({ contender: turn.contender, unit: turn.unit, values: values.get(turn)! }));
}
