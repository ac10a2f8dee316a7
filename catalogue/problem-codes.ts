// The complete list of reasons why a record or a field is rejected.
// Validation, responses, docs and tests all use these codes.

export interface ProblemCodeDescription {
  readonly meaning: string;
  readonly remedy: string;
  /** Whether the same record may be accepted if it is sent again unchanged. */
  readonly retryable: boolean;
}

export const problemCodes = {
  not_an_object: {
    meaning: 'The record is not a JSON object.',
    remedy: 'Send each record as an object of fields.',
    retryable: false,
  },
  required: {
    meaning: 'A required field is missing, null, or an empty text.',
    remedy: 'Give the field a value.',
    retryable: false,
  },
  wrong_type: {
    meaning: 'The value has the wrong JSON type. Values are not converted to another type.',
    remedy: 'Send the JSON type that the field has: `1.5`, not `"1.5"`.',
    retryable: false,
  },
  invalid_format: {
    meaning: 'The text does not have the required format, or is not a real date.',
    remedy: 'Write the value in the documented format.',
    retryable: false,
  },
  out_of_range: {
    meaning: 'The number or time is out of range.',
    remedy: 'Send a value within the documented range.',
    retryable: false,
  },
  too_long: {
    meaning: 'The text is too long.',
    remedy: 'Shorten the text.',
    retryable: false,
  },
  not_allowed: {
    meaning: 'The value is not one of the allowed values.',
    remedy: 'Use one of the values that the message lists.',
    retryable: false,
  },
  unknown_field: {
    meaning: 'The record has a field that its type does not have.',
    remedy: 'Correct the name, leave the field out, or send `Prefer: handling=lenient` to have it dropped.',
    retryable: false,
  },
  unknown_reference: {
    meaning: 'The field names a record that the organisation has not uploaded.',
    remedy: 'Upload the referenced record first, then this one again.',
    retryable: false,
  },
  store_unavailable: {
    meaning: 'The store did not confirm that the record is stored; it may or may not be stored.',
    remedy:
      'Send it again unchanged, with increasing delays. That is safe for records, and for an interaction with an ' +
      '`interaction_id` or an `Idempotency-Key`.',
    retryable: true,
  },
} as const satisfies Record<string, ProblemCodeDescription>;

export type ProblemCode = keyof typeof problemCodes;
