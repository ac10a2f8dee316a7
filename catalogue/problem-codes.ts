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
    meaning: 'The value has another JSON type than the field; nothing is converted.',
    remedy: 'Send the JSON type that the field asks for: `1.5` rather than `"1.5"`.',
    retryable: false,
  },
  invalid_format: {
    meaning: 'The text is not of the form that the field asks for, or names an impossible date.',
    remedy: 'Write the value in the documented form.',
    retryable: false,
  },
  out_of_range: {
    meaning: 'The number or the moment lies outside the bounds of the field.',
    remedy: 'Send a value within the bounds.',
    retryable: false,
  },
  too_long: {
    meaning: 'The text has more characters than the field takes.',
    remedy: 'Shorten the text.',
    retryable: false,
  },
  not_allowed: {
    meaning: 'The value is not one of the values that the field knows.',
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
    meaning: 'The store did not confirm that the record is stored; it may be stored or not.',
    remedy:
      'Send it again as it is, with a growing pause between tries. That is safe for uploads, and for an interaction ' +
      'with an `Idempotency-Key`.',
    retryable: true,
  },
} as const satisfies Record<string, ProblemCodeDescription>;

export type ProblemCode = keyof typeof problemCodes;
