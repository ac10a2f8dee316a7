// Declares every record type that Headgate accepts. Schemas, TypeScript types, tables, the reference graph, test
// generators and docs are derived from these declarations.

import { checkDeclarations } from './check-declarations.ts';
import { optional, recordType, required, type Sent, type Shown } from './declaration.ts';
import { boolean } from './kinds/boolean.ts';
import { choice } from './kinds/choice.ts';
import { date } from './kinds/date.ts';
import { dateTime } from './kinds/date-time.ts';
import { eventTimestamp } from './kinds/event-timestamp.ts';
import { number } from './kinds/number.ts';
import { region } from './kinds/region.ts';
import { text } from './kinds/text.ts';
import { uuid } from './kinds/uuid.ts';

const bookkeeping = {
  created: optional(dateTime, { note: 'when the record was created in the source system' }),
  updated: optional(dateTime, {
    note: 'when the record was last changed in the source system; an older version never replaces a newer one',
  }),
  is_deleted: optional(boolean, { note: 'marks the record as deleted', omitted: false }),
};

const country = required(region);

export const recordTypes = {
  customers: recordType('Customer', 'customer_id', {
    customer_id: required(uuid, { note: 'record identifier' }),
    user_id: required(uuid, { note: 'user identifier' }),
    region: country,
    birthdate: optional(date, { note: 'date of birth' }),
    institute_id: optional(uuid, { note: 'educational institute' }),
    course_id: optional(uuid, { note: 'course' }),
    gender: optional(text),
    ...bookkeeping,
  }),

  transactions: recordType('Transaction', 'transaction_id', {
    transaction_id: required(uuid, { note: 'record identifier' }),
    shop_id: required(uuid, { references: 'shops' }),
    region: country,
    savings: required(number({ min: 0 }), { note: 'what the student saved' }),
    amount: required(number({ above: 0 }), { note: 'what the student paid' }),
    student_id: optional(uuid, { note: 'purchasing student' }),
    offer_id: optional(uuid, { note: 'offer used' }),
    branch_id: optional(uuid, { note: 'branch location' }),
    source: optional(text, { note: 'origin of the transaction, for example online or in-store' }),
    ...bookkeeping,
    discount_name: optional(text),
    discount_type: optional(text, { note: 'for example percentage or fixed' }),
    discount_value: optional(number()),
  }),

  offers: recordType('Offer', 'offer_id', {
    offer_id: required(uuid, { note: 'record identifier' }),
    shop_id: required(uuid, { references: 'shops' }),
    name: required(text),
    type: required(text, { note: 'for example percentage or fixed' }),
    value: required(number({ above: 0 })),
    region: country,
    allowed_from: optional(dateTime, { note: 'start of validity' }),
    allowed_to: optional(dateTime, { note: 'end of validity' }),
    allowed_branches: optional(text, { note: 'comma-separated branch ids' }),
    allowed_days: optional(text, { note: 'comma-separated day names' }),
    ...bookkeeping,
    is_enabled: optional(boolean, { note: 'whether the offer is currently enabled' }),
  }),

  shops: recordType('Shop', 'shop_id', {
    shop_id: required(uuid, { note: 'record identifier' }),
    name: required(text),
    region: country,
    is_public: optional(boolean),
    ...bookkeeping,
  }),

  branches: recordType('Branch', 'branch_id', {
    branch_id: required(uuid, { note: 'record identifier' }),
    shop_id: required(uuid, { references: 'shops' }),
    name: required(text),
    region: country,
    latitude: optional(number({ min: -90, max: 90 })),
    longitude: optional(number({ min: -180, max: 180 })),
    ...bookkeeping,
  }),

  categories: recordType('Category', 'category_id', {
    category_id: required(uuid, { note: 'record identifier' }),
    name: required(text),
    region: country,
    ...bookkeeping,
  }),

  'shop-categories': recordType('Shop category', 'shop_category_id', {
    shop_category_id: required(uuid, { note: 'record identifier' }),
    shop_id: required(uuid, { references: 'shops' }),
    category_id: required(uuid, { references: 'categories' }),
    region: country,
    ...bookkeeping,
  }),

  institutes: recordType('Institute', 'institute_id', {
    institute_id: required(uuid, { note: 'record identifier' }),
    name: required(text),
    region: country,
    ...bookkeeping,
  }),

  courses: recordType('Course', 'course_id', {
    course_id: required(uuid, { note: 'record identifier' }),
    name: required(text),
    ...bookkeeping,
  }),

  tags: recordType('Tag', 'tag_id', {
    tag_id: required(uuid, { note: 'record identifier' }),
    name: required(text),
    ...bookkeeping,
  }),

  'shop-tags': recordType('Shop tag', 'shop_tag_id', {
    shop_tag_id: required(uuid, { note: 'record identifier' }),
    shop_id: required(uuid, { references: 'shops' }),
    tag_id: required(uuid, { references: 'tags' }),
    ...bookkeeping,
  }),

  keywords: recordType('Keyword', 'keyword_id', {
    keyword_id: required(uuid, { note: 'record identifier' }),
    name: required(text),
    ...bookkeeping,
  }),

  'shop-keywords': recordType('Shop keyword', 'shop_keyword_id', {
    shop_keyword_id: required(uuid, { note: 'record identifier' }),
    shop_id: required(uuid, { references: 'shops' }),
    keyword_id: required(uuid, { references: 'keywords' }),
    ...bookkeeping,
  }),

  'student-favourites': recordType('Student favourite', 'student_favourite_id', {
    student_favourite_id: required(uuid, { note: 'record identifier' }),
    student_id: required(uuid, { references: 'customers', note: "a customer's customer_id" }),
    shop_id: required(uuid, { references: 'shops' }),
    ...bookkeeping,
  }),
};

/** The fields of a user interaction that a client sends. */
export const interaction = {
  interaction_type: required(choice('FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE')),
  user_id: optional(text, { note: 'pseudonymous user identifier' }),
  student_id: optional(uuid, { references: 'customers', note: "a customer's customer_id" }),
  item_type: required(choice('TAG', 'OFFER', 'SHOP', 'KEYWORD')),
  item_id: required(uuid, {
    references: {
      by: 'item_type',
      types: { TAG: 'tags', OFFER: 'offers', SHOP: 'shops', KEYWORD: 'keywords' },
    },
    note: 'an item of the type that item_type names',
  }),
  city: optional(text, { note: 'where the interaction occurred' }),
  country: optional(text, { note: 'where the interaction occurred' }),
  platform: optional(choice('ANDROID', 'IOS', 'WEB', 'OTHER')),
  event_timestamp: required(eventTimestamp, { note: 'when it occurred' }),
  source: optional(choice('SERVICE'), {
    note: 'SERVICE when it came from a recommendation response, null for normal browsing',
  }),
  recommendation_id: optional(uuid, { note: 'the recommendation it came from' }),
};

/** The fields that Headgate adds to an interaction when it stores it. */
export const assignedToInteraction = {
  interaction_id: required(uuid, { note: 'a UUIDv7, unless an upload has given it another id' }),
  occurred_at: required(dateTime, { note: 'event_timestamp as a UTC date-time' }),
  created: required(dateTime, { note: 'when Headgate recorded it' }),
};

export const storedInteraction = { ...interaction, ...assignedToInteraction };

/** The name under which many interactions are uploaded at once. */
export const INTERACTIONS = 'interactions' as const;

/** The fields of an interaction that only an upload of many may contain. */
export const uploadedWithInteraction = {
  interaction_id: optional(uuid, {
    note: 'if omitted, Headgate assigns one; an interaction that is stored with this id is never changed',
  }),
  created: optional(dateTime, { note: 'when it was recorded; if omitted, now' }),
};

/** Everything that can be uploaded in batches: records of all types, and interactions. */
export const uploadTypes = {
  ...recordTypes,
  [INTERACTIONS]: recordType('Interaction', 'interaction_id', { ...interaction, ...uploadedWithInteraction }),
};

export type RecordTypeName = keyof typeof recordTypes;
export type SentRecord<T extends RecordTypeName = RecordTypeName> = Sent<(typeof recordTypes)[T]['fields']>;
export type ShownRecord<T extends RecordTypeName = RecordTypeName> = Shown<(typeof recordTypes)[T]['fields']>;
export type SentInteraction = Sent<typeof interaction>;
export type UploadTypeName = keyof typeof uploadTypes;
export type ShownInteraction = Shown<typeof storedInteraction>;

export const recordTypeNames = Object.keys(recordTypes) as readonly RecordTypeName[];
export const uploadTypeNames = Object.keys(uploadTypes) as readonly UploadTypeName[];

export function isRecordTypeName(name: string): name is RecordTypeName {
  return Object.hasOwn(recordTypes, name);
}

export function isUploadTypeName(name: string): name is UploadTypeName {
  return Object.hasOwn(uploadTypes, name);
}

checkDeclarations(recordTypes, interaction);
