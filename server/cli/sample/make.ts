// Generates a whole sample. The same plan gives the same records in the same order.

import type { SamplePlan } from './plan.ts';
import { Random } from './random.ts';
import type { Put } from './records.ts';
import { makeReferenceData } from './reference-data.ts';
import { Students } from './students.ts';

/**
 * Calls `put` with every record. Yields the number of finished customers after each shop and each customer, so that the
 * caller can write in between.
 */
export function* makeSample(plan: SamplePlan, put: Put): Generator<number> {
  const random = new Random(plan.seed);
  const students = new Students(plan, yield* makeReferenceData(plan, random, put), random, put);
  for (let done = 1; done <= plan.customers; done++) {
    students.putStudent();
    yield done;
  }
}
