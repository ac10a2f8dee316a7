// Converts a stored row into the object that a response contains.

import type { Fields } from '@headgate/catalogue/declaration.ts';
import type { Row } from '../store/rows.ts';

export function presenterOf<Shown>(fields: Fields): (row: Row) => Shown {
  const columns = Object.entries(fields).map(([name, { kind }]) => ({ name, kind }));
  return (row) => {
    const shown: Record<string, unknown> = {};
    for (let column = 0; column < columns.length; column++) {
      const { name, kind } = columns[column]!;
      const kept = row[column]!;
      shown[name] = kept === null ? null : kind.present(kept);
    }
    return shown as Shown;
  };
}
