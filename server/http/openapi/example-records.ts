// Defines one realistic record of every type, with all its fields, and one interaction. The API description, its code
// samples and the reference page show them. The records refer to each other, and all are accepted if they are uploaded
// in the upload order.

import type {
  RecordTypeName,
  SentInteraction,
  SentRecord,
  UploadTypeName,
} from '@headgate/catalogue/record-types.ts';

type FullRecord<T extends RecordTypeName> = Required<SentRecord<T>>;

const shop_id = '8d7ce2ca-5c5b-4ef6-9b1e-3b7d9a0f4c11';
const customer_id = '5f0c6a52-6c1d-4a53-9d0b-6f2b7b1c9e34';
const institute_id = 'b7a1f6de-0f4e-4f0b-8a8e-5f0d6c3e2a17';
const course_id = 'e4c9d2b8-7a36-4d91-b5c2-1f8e0a9d6b43';
const offer_id = '3a9e5d70-2b64-4c8f-a1d7-9c0e4f6b8d25';
const branch_id = 'c2d8b4f1-9e57-4a06-8b3c-7d1f5e9a0c68';
const category_id = '71e3a0c9-4d82-4b5f-9c16-0a7f8e2d3b59';
const tag_id = '96b0d7e4-1c3a-4f28-8e5d-2b9a6f0c7d81';
const keyword_id = 'd05f8c3b-6e91-4a7d-b240-8c1e9f3a5b76';

const bookkeeping = {
  created: '2026-09-01T08:00:00Z',
  updated: '2026-10-12T14:30:00Z',
  is_deleted: false,
};

export const exampleRecords: { readonly [T in RecordTypeName]: FullRecord<T> } = {
  customers: {
    customer_id,
    user_id: '0b8f3d6e-5a27-4c19-9e80-4d7c1b2a6f93',
    region: 'GB',
    birthdate: '2004-03-17',
    institute_id,
    course_id,
    gender: 'female',
    ...bookkeeping,
  },
  shops: { shop_id, name: 'Corner Books', region: 'GB', is_public: true, ...bookkeeping },
  transactions: {
    transaction_id: '2e6b9f04-8c15-4d7a-a3e2-5b0c7d9f1e48',
    shop_id,
    region: 'GB',
    savings: 2.4,
    amount: 21.6,
    student_id: customer_id,
    offer_id,
    branch_id,
    source: 'in-store',
    ...bookkeeping,
    discount_name: 'Autumn reading',
    discount_type: 'percentage',
    discount_value: 10,
  },
  offers: {
    offer_id,
    shop_id,
    name: 'Autumn reading',
    type: 'percentage',
    value: 10,
    region: 'GB',
    allowed_from: '2026-09-01T00:00:00Z',
    allowed_to: '2026-11-30T23:59:59Z',
    allowed_branches: branch_id,
    allowed_days: 'monday,tuesday,wednesday',
    ...bookkeeping,
    is_enabled: true,
  },
  branches: {
    branch_id,
    shop_id,
    name: 'Corner Books, Mill Road',
    region: 'GB',
    latitude: 52.1989,
    longitude: 0.1396,
    ...bookkeeping,
  },
  categories: { category_id, name: 'Books', region: 'GB', ...bookkeeping },
  'shop-categories': {
    shop_category_id: '48c7e1a5-3f90-4b6d-8d24-6e0b9a5c7f12',
    shop_id,
    category_id,
    region: 'GB',
    ...bookkeeping,
  },
  institutes: { institute_id, name: 'Fenland College', region: 'GB', ...bookkeeping },
  courses: { course_id, name: 'Comparative literature', ...bookkeeping },
  tags: { tag_id, name: 'second-hand', ...bookkeeping },
  'shop-tags': { shop_tag_id: 'a6d3f8b2-0e74-4c95-9b1f-3c8d5e7a2f60', shop_id, tag_id, ...bookkeeping },
  keywords: { keyword_id, name: 'textbooks', ...bookkeeping },
  'shop-keywords': {
    shop_keyword_id: '1f9b5c7e-4a28-4d03-8e6c-9d2a0b7f3c85',
    shop_id,
    keyword_id,
    ...bookkeeping,
  },
  'student-favourites': {
    student_favourite_id: '7c0e2d9a-5b41-4f86-a3d8-1e6f4b8c9d07',
    student_id: customer_id,
    shop_id,
    ...bookkeeping,
  },
};

export const exampleInteraction: Required<SentInteraction> = {
  interaction_type: 'PAGE_VIEW',
  user_id: 'visitor-4711',
  student_id: customer_id,
  item_type: 'SHOP',
  item_id: shop_id,
  city: 'Cambridge',
  country: 'GB',
  platform: 'WEB',
  event_timestamp: '2026-11-02T09:30:00Z',
  source: 'SERVICE',
  recommendation_id: 'f3a8c5d1-7e62-4b09-9d4f-0b5c8e1a2d76',
};

/** Ids for examples. Except for the last two, each stands for an id that the server makes. */
export const exampleIds = {
  request: '019a4b3c-7d20-7000-8f31-5c2e9a6b0d14',
  batch: '019a4b3c-7d24-7000-a6d2-8b0f3e7c1a59',
  interaction: '019a4b3c-81f6-7000-b94e-2d7a5c0f8e63',
  uploadedInteraction: '5b1e7d0c-94a2-4f38-8c6b-2e0d7f9a1b43',
  /** The id of a record that does not exist. */
  missing: '00000000-0000-4000-8000-000000000000',
};
/** The number of an upload's entry in the ledger. */
export const EXAMPLE_SEQ = 42;
export const exampleRecordedAt = '2026-11-02T09:30:01.250Z';

/** One object of everything that can be uploaded in batches. */
export const exampleUploads: Readonly<Record<UploadTypeName, Readonly<Record<string, unknown>>>> = {
  ...exampleRecords,
  interactions: {
    ...exampleInteraction,
    interaction_id: exampleIds.uploadedInteraction,
    created: exampleRecordedAt,
  },
};
