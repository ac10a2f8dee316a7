// Checks a condition that was given as JSON, and returns it as nodes, or the first problem with its path.

import { alternatives } from '@headgate/catalogue/alternatives.ts';
import { Flaw, quote, typeNameOf } from '@headgate/catalogue/kinds/kind.ts';
import { text } from '@headgate/catalogue/kinds/text.ts';
import {
  type ConditionNode,
  type CustomerNode,
  type DidNode,
  type Measure,
  MOST_DEPTH,
  MOST_NODES,
  type Test,
  type Time,
  type Window,
} from './condition-node.ts';
import { ConditionProblem, didYouMean, pathTo, suggestion } from './condition-problem.ts';
import { eventTypes, type FieldPath, fieldPaths, isEventType } from './field-paths.ts';
import {
  checkTime,
  DURATION,
  durationMs,
  parseTests,
  type Tested,
  testedAge,
  testedCount,
  testedField,
  testedTime,
} from './parse-tests.ts';

type JsonObject = Readonly<Record<string, unknown>>;

interface Parsing {
  nodes: number;
  readonly segmentNames: ReadonlySet<string>;
  readonly ownName: string | null;
}

type NodeParser = (
  given: JsonObject,
  at: string,
  depth: number,
  parsing: Parsing,
) => ConditionNode | ConditionProblem;

/** Maps the property that every condition of a form has to the parser of the form. */
const parsers: Readonly<Record<string, NodeParser>> = {
  all: (given, at, depth, parsing) => parseCombination('all', given, at, depth, parsing),
  any: (given, at, depth, parsing) => parseCombination('any', given, at, depth, parsing),
  not: parseNot,
  customer: parseCustomer,
  did: parseDid,
  segment: parseSegment,
  sample: parseSample,
};
const forms = Object.keys(parsers);
/** What many languages call a form. Without this, "and" would be taken for a mistyped "any". */
const usualNames: ReadonlyMap<string, string> = new Map([
  ['and', 'all'],
  ['or', 'any'],
]);

/**
 * Checks a condition. The names of the existing segments are those that it can use. A condition that uses the segment
 * with its own name is valid here, because the check for circles has the better message.
 */
export function parseCondition(
  given: unknown,
  segmentNames: Iterable<string> = [],
  ownName: string | null = null,
): ConditionNode | ConditionProblem {
  return parseNode(given, '', 1, { nodes: 0, segmentNames: new Set(segmentNames), ownName });
}

function parseNode(
  given: unknown,
  at: string,
  depth: number,
  parsing: Parsing,
): ConditionNode | ConditionProblem {
  if (depth > MOST_DEPTH)
    return new ConditionProblem(at, `conditions must be nested at most ${MOST_DEPTH} deep`);
  const tooMany = countNode(at, parsing);
  if (tooMany !== null) return tooMany;
  if (given === undefined) return new ConditionProblem(at, 'a condition is required');
  if (!isObject(given)) {
    return new ConditionProblem(at, `a condition must be an object, not ${typeNameOf(given)}`);
  }
  const names = Object.keys(given);
  const [form, other] = names.filter((name) => Object.hasOwn(parsers, name));
  if (form === undefined) {
    const [first] = names;
    const hint =
      first === undefined ? `: ${alternatives(forms)}` : suggestion(usualNames.get(first) ?? first, forms);
    const what = first === undefined ? '' : `, not ${quote(first)}`;
    return new ConditionProblem(at, `a condition must have one of the known forms${what}${hint}`);
  }
  if (other !== undefined) {
    return new ConditionProblem(at, `a condition must have either ${quote(form)} or ${quote(other)}`);
  }
  return parsers[form]!(given, at, depth, parsing);
}

/** Counts a node or a test of `where`, like `nodeCount`, so that a large condition is not parsed to its end. */
function countNode(at: string, parsing: Parsing): ConditionProblem | null {
  parsing.nodes++;
  if (parsing.nodes <= MOST_NODES) return null;
  return new ConditionProblem(
    at,
    `a condition must have at most ${MOST_NODES} nodes, including the tests of "where"`,
  );
}

function parseCombination(
  kind: 'all' | 'any',
  given: JsonObject,
  at: string,
  depth: number,
  parsing: Parsing,
): ConditionNode | ConditionProblem {
  const unknown = unknownProperty(given, at, [kind]);
  if (unknown !== null) return unknown;
  const list = given[kind];
  const listAt = pathTo(at, kind);
  if (!Array.isArray(list)) {
    return new ConditionProblem(listAt, `must be a list of conditions, not ${typeNameOf(list)}`);
  }
  if (list.length === 0) return new ConditionProblem(listAt, 'must have at least one condition');
  const of: ConditionNode[] = [];
  for (const [index, each] of list.entries()) {
    const node = parseNode(each, `${listAt}[${index}]`, depth + 1, parsing);
    if (node instanceof ConditionProblem) return node;
    of.push(node);
  }
  return { kind, at, of };
}

function parseNot(
  given: JsonObject,
  at: string,
  depth: number,
  parsing: Parsing,
): ConditionNode | ConditionProblem {
  const unknown = unknownProperty(given, at, ['not']);
  if (unknown !== null) return unknown;
  const of = parseNode(given.not, pathTo(at, 'not'), depth + 1, parsing);
  return of instanceof ConditionProblem ? of : { kind: 'not', at, of };
}

function parseCustomer(given: JsonObject, at: string): CustomerNode | ConditionProblem {
  const { customer: name, ...rest } = given;
  const nameAt = pathTo(at, 'customer');
  if (typeof name !== 'string') {
    return new ConditionProblem(nameAt, `must be the name of a field, not ${typeNameOf(name)}`);
  }
  if (name === 'age') {
    const tests = parseTests(rest, at, testedAge);
    return tests instanceof ConditionProblem ? tests : { kind: 'customer', at, value: 'age', tests };
  }
  const paths = fieldPaths.customers;
  const path = paths.get(name);
  if (path === undefined) return unknownField('customers', name, nameAt, [...paths.keys(), 'age']);
  const tests = parseTests(rest, at, testedField(name, path.kind));
  return tests instanceof ConditionProblem ? tests : { kind: 'customer', at, value: path, tests };
}

const windowNames = ['within', 'since', 'until'] as const;
const measureNames = ['times', 'sum', 'average', 'distinct', 'last', 'first'] as const;
type MeasureName = (typeof measureNames)[number];

function parseDid(
  given: JsonObject,
  at: string,
  _depth: number,
  parsing: Parsing,
): DidNode | ConditionProblem {
  const type = given.did;
  if (typeof type !== 'string' || !isEventType(type)) {
    const hint =
      typeof type === 'string' ? suggestion(type, eventTypes) : `; it can be ${alternatives(eventTypes)}`;
    const what = typeof type === 'string' ? quote(type) : typeNameOf(type);
    return new ConditionProblem(pathTo(at, 'did'), `${what} is nothing that a customer does${hint}`);
  }
  const unknown = unknownProperty(given, at, ['did', 'where', ...windowNames, ...measureNames]);
  if (unknown !== null) return unknown;
  const paths = fieldPaths[type];
  const where = parseWhere(given.where, pathTo(at, 'where'), type, parsing);
  if (where instanceof ConditionProblem) return where;
  const window = parseWindow(given, at);
  if (window instanceof ConditionProblem) return window;
  const measure = parseMeasure(
    given,
    at,
    (name, pathAt) => paths.get(name) ?? unknownField(type, name, pathAt, paths.keys()),
  );
  return measure instanceof ConditionProblem ? measure : { kind: 'did', at, type, where, window, measure };
}

function parseWhere(
  given: unknown,
  at: string,
  type: DidNode['type'],
  parsing: Parsing,
): DidNode['where'] | ConditionProblem {
  if (given === undefined) return [];
  if (!isObject(given)) return new ConditionProblem(at, `must be an object, not ${typeNameOf(given)}`);
  const where: { path: FieldPath; tests: readonly Test[] }[] = [];
  const paths = fieldPaths[type];
  for (const [name, tests] of Object.entries(given)) {
    const testsAt = pathTo(at, name);
    const tooMany = countNode(testsAt, parsing);
    if (tooMany !== null) return tooMany;
    const path = paths.get(name);
    if (path === undefined) return unknownField(type, name, testsAt, paths.keys());
    const parsed = parseTestObject(tests, testsAt, testedField(name, path.kind));
    if (parsed instanceof ConditionProblem) return parsed;
    where.push({ path, tests: parsed });
  }
  return where;
}

function parseWindow(given: JsonObject, at: string): Window | ConditionProblem {
  const { within, since, until } = given;
  if (within !== undefined) {
    const other = since !== undefined ? 'since' : until !== undefined ? 'until' : null;
    if (other !== null) {
      return new ConditionProblem(pathTo(at, other), '"within" cannot be combined with "since" or "until"');
    }
    const ms = typeof within === 'string' ? durationMs(within) : null;
    if (ms !== null) return { kind: 'within', ms };
    const what = typeof within === 'string' ? quote(within) : typeNameOf(within);
    return new ConditionProblem(pathTo(at, 'within'), `must be ${DURATION}, not ${what}`);
  }
  if (since === undefined && until === undefined) return { kind: 'always' };
  const from = since === undefined ? null : checkTime(since);
  if (from instanceof Flaw) return new ConditionProblem(pathTo(at, 'since'), from.message);
  const to = until === undefined ? null : checkTime(until);
  if (to instanceof Flaw) return new ConditionProblem(pathTo(at, 'until'), to.message);
  if (isAfter(from, to)) return new ConditionProblem(pathTo(at, 'since'), 'must not be after "until"');
  return { kind: 'between', since: from, until: to };
}

/** Returns false if it depends on when the condition is evaluated. */
function isAfter(time: Time | null, other: Time | null): boolean {
  if (time === null || other === null) return false;
  if (typeof time === 'string') return typeof other === 'string' && time > other;
  return typeof other !== 'string' && time.agoMs < other.agoMs;
}

function parseMeasure(
  given: JsonObject,
  at: string,
  pathOf: (name: string, at: string) => FieldPath | ConditionProblem,
): Measure | ConditionProblem {
  const [kind, other] = measureNames.filter((name) => given[name] !== undefined);
  if (kind === undefined) return { kind: 'times', tests: [{ kind: 'at_least', value: 1 }] };
  if (other !== undefined) {
    return new ConditionProblem(pathTo(at, other), `${quote(kind)} and ${quote(other)} cannot be combined`);
  }
  const measureAt = pathTo(at, kind);
  if (kind === 'times' || kind === 'last' || kind === 'first') {
    const tests = parseTestObject(
      given[kind],
      measureAt,
      kind === 'times' ? testedCount(kind) : testedTime(kind),
    );
    return tests instanceof ConditionProblem ? tests : { kind, tests };
  }
  return parseFieldMeasure(kind, given[kind], measureAt, pathOf);
}

function parseFieldMeasure(
  kind: Exclude<MeasureName, 'times' | 'last' | 'first'>,
  given: unknown,
  at: string,
  pathOf: (name: string, at: string) => FieldPath | ConditionProblem,
): Measure | ConditionProblem {
  if (!isObject(given) || Object.keys(given).length !== 1) {
    return new ConditionProblem(at, 'must be an object with one field and its tests');
  }
  const [name, tests] = Object.entries(given)[0]!;
  const fieldAt = pathTo(at, name);
  const path = pathOf(name, fieldAt);
  if (path instanceof ConditionProblem) return path;
  if (kind !== 'distinct' && (path.kind.name !== 'number' || path.isMany)) {
    return new ConditionProblem(fieldAt, `${quote(name)} is not a number, so it has no ${kind}`);
  }
  const parsed = parseTestObject(tests, fieldAt, testedCount(kind));
  return parsed instanceof ConditionProblem ? parsed : { kind, path, tests: parsed };
}

function parseTestObject(given: unknown, at: string, tested: Tested): readonly Test[] | ConditionProblem {
  if (isObject(given)) return parseTests(given, at, tested);
  return new ConditionProblem(
    at,
    `must be an object with tests, such as {"${tested.tests[0]}": …}, not ${typeNameOf(given)}`,
  );
}

function parseSegment(
  given: JsonObject,
  at: string,
  _depth: number,
  { segmentNames, ownName }: Parsing,
): ConditionNode | ConditionProblem {
  const unknown = unknownProperty(given, at, ['segment']);
  if (unknown !== null) return unknown;
  const name = given.segment;
  const nameAt = pathTo(at, 'segment');
  if (typeof name !== 'string') {
    return new ConditionProblem(nameAt, `must be the name of a segment, not ${typeNameOf(name)}`);
  }
  if (segmentNames.has(name) || name === ownName) return { kind: 'segment', at, name };
  return new ConditionProblem(
    nameAt,
    `there is no segment ${quote(name)}${suggestion(name, [...segmentNames])}`,
  );
}

function parseSample(given: JsonObject, at: string): ConditionNode | ConditionProblem {
  const unknown = unknownProperty(given, at, ['sample']);
  if (unknown !== null) return unknown;
  const sampleAt = pathTo(at, 'sample');
  if (!isObject(given.sample)) {
    return new ConditionProblem(sampleAt, `must be an object, not ${typeNameOf(given.sample)}`);
  }
  const unknownPart = unknownProperty(given.sample, sampleAt, ['percent', 'salt']);
  if (unknownPart !== null) return unknownPart;
  const { percent, salt } = given.sample;
  if (typeof percent !== 'number' || !(percent >= 0 && percent <= 100)) {
    return new ConditionProblem(pathTo(sampleAt, 'percent'), 'must be a number from 0 to 100');
  }
  const checkedSalt = typeof salt === 'string' ? text.check(salt, false) : null;
  if (typeof checkedSalt !== 'string') {
    return new ConditionProblem(
      pathTo(sampleAt, 'salt'),
      'must be text: another salt chooses other customers',
    );
  }
  return { kind: 'sample', at, percent, salt: checkedSalt };
}

function unknownField(type: string, name: string, at: string, known: Iterable<string>): ConditionProblem {
  const names = [...known];
  const own = names.filter((each) => !each.includes('.'));
  const all = `; it can be ${alternatives(own)}, or a path such as ${pathIn(names)}`;
  return new ConditionProblem(at, `${type} have no field ${quote(name)}${didYouMean(name, names) ?? all}`);
}

function pathIn(names: readonly string[]): string {
  return quote(names.find((name) => name.endsWith('.name')) ?? names[0]!);
}

function unknownProperty(given: JsonObject, at: string, known: readonly string[]): ConditionProblem | null {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return null;
  return new ConditionProblem(
    pathTo(at, unknown),
    `there is no property ${quote(unknown)}${suggestion(unknown, known)}`,
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
