// Checks the catalogue at start, and throws an error that names the field and the reason.

import type { Catalogue, Fields } from './declaration.ts';
import { referencedTypes, uploadOrder } from './references.ts';

const FIELD_NAME = /^[a-z][a-z0-9_]*$/;

export function checkDeclarations(types: Catalogue, interaction: Fields): void {
  for (const [typeName, { key, fields }] of Object.entries(types)) {
    const keyField = fields[key];
    if (keyField === undefined) throw new Error(`${typeName}: the key ${key} names no field`);
    if (keyField.kind.name !== 'uuid' || !keyField.required || keyField.nullable) {
      throw new Error(`${typeName}: the key ${key} must be a required UUID`);
    }
    for (const name of ['updated', 'is_deleted']) {
      if (!(name in fields)) throw new Error(`${typeName}: lacks ${name}, which every type has`);
    }
    checkFields(typeName, fields, types);
  }
  checkFields('interaction', interaction, types);
  uploadOrder(types);
}

function checkFields(owner: string, fields: Fields, types: Catalogue): void {
  for (const [name, field] of Object.entries(fields)) {
    if (!FIELD_NAME.test(name)) throw new Error(`${owner}.${name}: is no snake_case name`);
    if (field.references === undefined) continue;
    if (field.kind.name !== 'uuid') throw new Error(`${owner}.${name}: only a UUID can reference`);
    for (const target of referencedTypes(field.references)) {
      if (!Object.hasOwn(types, target)) {
        throw new Error(`${owner}.${name}: references ${target}, which is no record type`);
      }
    }
    if (typeof field.references !== 'string' && fields[field.references.by] === undefined) {
      throw new Error(`${owner}.${name}: is told apart by ${field.references.by}, which is no field`);
    }
  }
}
