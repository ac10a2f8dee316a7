// Computes previews and explanations of conditions: for how many customers a condition holds, and why it holds for a
// customer or not.

import type { DuckDBConnection } from '@duckdb/node-api';
import { Failure } from '../../failure.ts';
import type { SegmentStore } from '../../store/segments.ts';
import type { ExplanationOrder, OrderRefusal, PreviewOrder } from '../analytics-orders.ts';
import type { AsOf } from '../replica.ts';
import { type ReplicaService, readReplica } from '../replica-use.ts';
import type { Evaluation } from './compile-condition.ts';
import { type ConditionNode, segmentsUsedIn } from './condition-node.ts';
import { ConditionProblem } from './condition-problem.ts';
import { parseCondition } from './parse-condition.ts';
import {
  type Explanation,
  explanationSql,
  type Preview,
  previewSql,
  readExplanation,
  readPreview,
} from './preview-sql.ts';
import { readConditions } from './segment-conditions.ts';
import type { Statement } from './sql-params.ts';

export interface AnsweredPreview extends Preview {
  readonly ms: number;
  readonly as_of: AsOf;
}

/** The explanation is null if there is no such customer. */
export interface AnsweredExplanation {
  readonly explanation: Explanation | null;
  readonly as_of: AsOf;
}

export async function answerPreview(
  service: ReplicaService,
  store: SegmentStore,
  order: PreviewOrder,
  signal: AbortSignal,
): Promise<AnsweredPreview | OrderRefusal> {
  const { organisation } = order;
  const { segments } = await store.segments(organisation);
  const condition = parseCondition(
    order.condition,
    segments.map(({ name }) => name),
  );
  if (condition instanceof ConditionProblem) return invalid(`${condition.path}: ${condition.message}`);
  const others = await readConditions(store, organisation, segments, segmentsUsedIn(condition));
  return readReplica(
    service,
    order,
    { signal, subject: 'The preview' },
    async ({ connection, asOf, wait }) => {
      const startedAtMs = performance.now();
      const statement = previewSql(condition, evaluationAt(asOf, others));
      if (statement instanceof Failure) return invalid(statement.reason);
      const row = await wait(() => firstRow(connection, statement));
      const ms = Math.round(performance.now() - startedAtMs);
      return { ...readPreview(condition, row!), ms, as_of: asOf };
    },
  );
}

export async function answerExplanation(
  service: ReplicaService,
  store: SegmentStore,
  order: ExplanationOrder,
  signal: AbortSignal,
): Promise<AnsweredExplanation | OrderRefusal> {
  const { organisation } = order;
  const { segments } = await store.segments(organisation);
  const others = await readConditions(store, organisation, segments, [order.segment]);
  const condition = others.get(order.segment);
  if (condition === undefined) return invalid(`the condition of ${order.segment} is no longer valid`);
  return readReplica(
    service,
    order,
    { signal, subject: 'The explanation' },
    async ({ connection, asOf, wait }) => {
      const statement = explanationSql(condition, order.customerId, evaluationAt(asOf, others));
      if (statement instanceof Failure) return invalid(statement.reason);
      const row = await wait(() => firstRow(connection, statement));
      return { explanation: row === undefined ? null : readExplanation(condition, row), as_of: asOf };
    },
  );
}

function evaluationAt({ at }: AsOf, conditions: ReadonlyMap<string, ConditionNode>): Evaluation {
  return { asOf: new Date(at), conditionOf: (segment) => conditions.get(segment) ?? null };
}

async function firstRow(
  connection: DuckDBConnection,
  { sql, params }: Statement,
): Promise<readonly unknown[] | undefined> {
  const reader = await connection.runAndReadAll(sql, [...params]);
  return reader.getRowsJson()[0];
}

function invalid(reason: string): OrderRefusal {
  return { kind: 'invalid', message: `${reason}.`, position: null };
}
