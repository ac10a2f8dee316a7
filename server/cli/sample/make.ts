// Makes a whole sample, record by record: the same plan gives the same records, in the same order.

import type { SamplePlan } from './plan.ts';
import type { Put } from './records.ts';
import { Students } from './students.ts';
import { buildTown } from './town.ts';

/** Puts everything; yields how many customers are done, often enough to write away what was put. */
export function* makeSample(plan: SamplePlan, put: Put): Generator<number> {
  const building = buildTown(plan, put);
  let step = building.next();
  while (!step.done) {
    yield 0;
    step = building.next();
  }
  const students = new Students(plan, step.value, put);
  for (let number = 0; number < plan.customers; number++) {
    students.putStudent(number);
    yield number + 1;
  }
}
