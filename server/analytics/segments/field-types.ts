// Generates the types of the fields that a condition can test, so that an editor completes every path and its tests.

import type { ChoiceKind } from '@headgate/catalogue/kinds/choice.ts';
import type { Kind } from '@headgate/catalogue/kinds/kind.ts';
import { fieldPaths } from './field-paths.ts';

/** Returns the code of `client/condition-fields.ts`. */
export function conditionFieldsModule(): string {
  const types = Object.entries(fieldPaths).map(([type, paths]) => {
    const fields = Array.from(
      paths.values(),
      ({ text, kind }) => `    ${property(text)}: ${kindType(kind)};\n`,
    );
    if (type === 'customers') fields.push("    age: 'number';\n");
    return `  ${property(type)}: {\n${fields.join('')}  };\n`;
  });
  return (
    '// The kinds of all fields that a condition can test, and the values of choices. Generated from the catalogue.\n\n' +
    `export interface ConditionFields {\n${types.join('')}}\n`
  );
}

function property(name: string): string {
  return /^\w+$/.test(name) ? name : `'${name}'`;
}

function kindType(kind: Kind): string {
  if (kind.name !== 'choice') return `'${kind.name}'`;
  const { values } = kind as ChoiceKind<string>;
  return `{ choice: ${values.map((value) => `'${value}'`).join(' | ')} }`;
}
