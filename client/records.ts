// What is uploaded and what is read back. Written by `npm run docs` from the catalogue.

/** A record of `customers` as it is uploaded. */
export interface SentCustomer {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  customer_id: string;
  /** User identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  user_id: string;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** Date of birth. A calendar date, YYYY-MM-DD. */
  birthdate?: string | null;
  /** Educational institute. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  institute_id?: string | null;
  /** Course. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  course_id?: string | null;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  gender?: string | null;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `customers` as it is read back. */
export interface ShownCustomer {
  /** Record identifier. */
  customer_id: string;
  /** User identifier. */
  user_id: string;
  /** 2-letter country code. */
  region: string;
  /** Date of birth. */
  birthdate: string | null;
  /** Educational institute. */
  institute_id: string | null;
  /** Course. */
  course_id: string | null;
  gender: string | null;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `shops` as it is uploaded. */
export interface SentShop {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  shop_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** True or false. */
  is_public?: boolean | null;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `shops` as it is read back. */
export interface ShownShop {
  /** Record identifier. */
  shop_id: string;
  name: string;
  /** 2-letter country code. */
  region: string;
  is_public: boolean | null;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `transactions` as it is uploaded. */
export interface SentTransaction {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  transaction_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: shops. */
  shop_id: string;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** What the student saved. A number of 0 or more. */
  savings: number;
  /** What the student paid. A number greater than 0. */
  amount: number;
  /** Purchasing student. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  student_id?: string | null;
  /** Offer used. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  offer_id?: string | null;
  /** Branch location. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  branch_id?: string | null;
  /** Origin of the transaction, for example online or in-store. Text of at most 10000 characters, without NUL or lone surrogates. */
  source?: string | null;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  discount_name?: string | null;
  /** For example percentage or fixed. Text of at most 10000 characters, without NUL or lone surrogates. */
  discount_type?: string | null;
  /** A number. */
  discount_value?: number | null;
}

/** A record of `transactions` as it is read back. */
export interface ShownTransaction {
  /** Record identifier. */
  transaction_id: string;
  shop_id: string;
  /** 2-letter country code. */
  region: string;
  /** What the student saved. */
  savings: number;
  /** What the student paid. */
  amount: number;
  /** Purchasing student. */
  student_id: string | null;
  /** Offer used. */
  offer_id: string | null;
  /** Branch location. */
  branch_id: string | null;
  /** Origin of the transaction, for example online or in-store. */
  source: string | null;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
  discount_name: string | null;
  /** For example percentage or fixed. */
  discount_type: string | null;
  discount_value: number | null;
}

/** A record of `offers` as it is uploaded. */
export interface SentOffer {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  offer_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: shops. */
  shop_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** For example percentage or fixed. Text of at most 10000 characters, without NUL or lone surrogates. */
  type: string;
  /** A number greater than 0. */
  value: number;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** Start of validity. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  allowed_from?: string | null;
  /** End of validity. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  allowed_to?: string | null;
  /** Comma-separated branch ids. Text of at most 10000 characters, without NUL or lone surrogates. */
  allowed_branches?: string | null;
  /** Comma-separated day names. Text of at most 10000 characters, without NUL or lone surrogates. */
  allowed_days?: string | null;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
  /** Whether the offer is currently enabled. True or false. */
  is_enabled?: boolean | null;
}

/** A record of `offers` as it is read back. */
export interface ShownOffer {
  /** Record identifier. */
  offer_id: string;
  shop_id: string;
  name: string;
  /** For example percentage or fixed. */
  type: string;
  value: number;
  /** 2-letter country code. */
  region: string;
  /** Start of validity. */
  allowed_from: string | null;
  /** End of validity. */
  allowed_to: string | null;
  /** Comma-separated branch ids. */
  allowed_branches: string | null;
  /** Comma-separated day names. */
  allowed_days: string | null;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
  /** Whether the offer is currently enabled. */
  is_enabled: boolean | null;
}

/** A record of `branches` as it is uploaded. */
export interface SentBranch {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  branch_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: shops. */
  shop_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** A number from -90 to 90. */
  latitude?: number | null;
  /** A number from -180 to 180. */
  longitude?: number | null;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `branches` as it is read back. */
export interface ShownBranch {
  /** Record identifier. */
  branch_id: string;
  shop_id: string;
  name: string;
  /** 2-letter country code. */
  region: string;
  latitude: number | null;
  longitude: number | null;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `categories` as it is uploaded. */
export interface SentCategory {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  category_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `categories` as it is read back. */
export interface ShownCategory {
  /** Record identifier. */
  category_id: string;
  name: string;
  /** 2-letter country code. */
  region: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `shop-categories` as it is uploaded. */
export interface SentShopCategory {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  shop_category_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: shops. */
  shop_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: categories. */
  category_id: string;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `shop-categories` as it is read back. */
export interface ShownShopCategory {
  /** Record identifier. */
  shop_category_id: string;
  shop_id: string;
  category_id: string;
  /** 2-letter country code. */
  region: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `institutes` as it is uploaded. */
export interface SentInstitute {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  institute_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** 2-letter country code. A country code of two letters. */
  region: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `institutes` as it is read back. */
export interface ShownInstitute {
  /** Record identifier. */
  institute_id: string;
  name: string;
  /** 2-letter country code. */
  region: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `courses` as it is uploaded. */
export interface SentCourse {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  course_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `courses` as it is read back. */
export interface ShownCourse {
  /** Record identifier. */
  course_id: string;
  name: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `tags` as it is uploaded. */
export interface SentTag {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  tag_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `tags` as it is read back. */
export interface ShownTag {
  /** Record identifier. */
  tag_id: string;
  name: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `shop-tags` as it is uploaded. */
export interface SentShopTag {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  shop_tag_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: shops. */
  shop_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: tags. */
  tag_id: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `shop-tags` as it is read back. */
export interface ShownShopTag {
  /** Record identifier. */
  shop_tag_id: string;
  shop_id: string;
  tag_id: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `keywords` as it is uploaded. */
export interface SentKeyword {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  keyword_id: string;
  /** Text of at most 10000 characters, without NUL or lone surrogates. */
  name: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `keywords` as it is read back. */
export interface ShownKeyword {
  /** Record identifier. */
  keyword_id: string;
  name: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `shop-keywords` as it is uploaded. */
export interface SentShopKeyword {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  shop_keyword_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: shops. */
  shop_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: keywords. */
  keyword_id: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `shop-keywords` as it is read back. */
export interface ShownShopKeyword {
  /** Record identifier. */
  shop_keyword_id: string;
  shop_id: string;
  keyword_id: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** A record of `student-favourites` as it is uploaded. */
export interface SentStudentFavourite {
  /** Record identifier. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  student_favourite_id: string;
  /** A customer's customer_id. A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: customers. */
  student_id: string;
  /** A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: shops. */
  shop_id: string;
  /** When the record was made at its source. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  created?: string | null;
  /** When it was last changed there; an older one never replaces a newer. An ISO 8601 date-time such as 2024-05-01T09:30:00Z, of the years 0001 to 9999. */
  updated?: string | null;
  /** Marks the record as deleted. True or false. */
  is_deleted?: boolean | null;
}

/** A record of `student-favourites` as it is read back. */
export interface ShownStudentFavourite {
  /** Record identifier. */
  student_favourite_id: string;
  /** A customer's customer_id. */
  student_id: string;
  shop_id: string;
  /** When the record was made at its source. */
  created: string | null;
  /** When it was last changed there; an older one never replaces a newer. */
  updated: string | null;
  /** Marks the record as deleted. */
  is_deleted: boolean | null;
}

/** An interaction as it is recorded. */
export interface SentInteraction {
  /** One of FILTER_CLICK, SHARE, PAGE_VIEW, DISCOUNT_CODE. */
  interaction_type: 'FILTER_CLICK' | 'SHARE' | 'PAGE_VIEW' | 'DISCOUNT_CODE';
  /** Pseudonymous user identifier. Text of at most 10000 characters, without NUL or lone surrogates. */
  user_id?: string | null;
  /** A customer's customer_id. A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: customers. */
  student_id?: string | null;
  /** One of TAG, OFFER, SHOP, KEYWORD. */
  item_type: 'TAG' | 'OFFER' | 'SHOP' | 'KEYWORD';
  /** An item of the kind that item_type gives. A UUID of the form 8-4-4-4-12 hexadecimal digits. Must be uploaded already: tags, offers, shops, keywords. */
  item_id: string;
  /** Where the interaction occurred. Text of at most 10000 characters, without NUL or lone surrogates. */
  city?: string | null;
  /** Where the interaction occurred. Text of at most 10000 characters, without NUL or lone surrogates. */
  country?: string | null;
  /** One of ANDROID, IOS, WEB, OTHER. */
  platform?: 'ANDROID' | 'IOS' | 'WEB' | 'OTHER' | null;
  /** When it occurred. A positive integer (seconds or milliseconds since 1970) or an ISO 8601 date-time. */
  event_timestamp: string | number;
  /** SERVICE when it came from a recommendation response, null for normal browsing. SERVICE. */
  source?: 'SERVICE' | null;
  /** The recommendation it came from. A UUID of the form 8-4-4-4-12 hexadecimal digits. */
  recommendation_id?: string | null;
}

/** An interaction as it is read back. */
export interface ShownInteraction {
  interaction_type: 'FILTER_CLICK' | 'SHARE' | 'PAGE_VIEW' | 'DISCOUNT_CODE';
  /** Pseudonymous user identifier. */
  user_id: string | null;
  /** A customer's customer_id. */
  student_id: string | null;
  item_type: 'TAG' | 'OFFER' | 'SHOP' | 'KEYWORD';
  /** An item of the kind that item_type gives. */
  item_id: string;
  /** Where the interaction occurred. */
  city: string | null;
  /** Where the interaction occurred. */
  country: string | null;
  platform: 'ANDROID' | 'IOS' | 'WEB' | 'OTHER' | null;
  /** When it occurred. */
  event_timestamp: string | number;
  /** SERVICE when it came from a recommendation response, null for normal browsing. */
  source: 'SERVICE' | null;
  /** The recommendation it came from. */
  recommendation_id: string | null;
  /** A UUIDv7, rising with time. */
  interaction_id: string;
  /** The moment that event_timestamp means. */
  occurred_at: string;
  /** When Headgate recorded it. */
  created: string;
}

/** By record type, a record as it is uploaded. */
export interface SentRecords {
  customers: SentCustomer;
  shops: SentShop;
  transactions: SentTransaction;
  offers: SentOffer;
  branches: SentBranch;
  categories: SentCategory;
  'shop-categories': SentShopCategory;
  institutes: SentInstitute;
  courses: SentCourse;
  tags: SentTag;
  'shop-tags': SentShopTag;
  keywords: SentKeyword;
  'shop-keywords': SentShopKeyword;
  'student-favourites': SentStudentFavourite;
}

/** By record type, a record as it is read back. */
export interface ShownRecords {
  customers: ShownCustomer;
  shops: ShownShop;
  transactions: ShownTransaction;
  offers: ShownOffer;
  branches: ShownBranch;
  categories: ShownCategory;
  'shop-categories': ShownShopCategory;
  institutes: ShownInstitute;
  courses: ShownCourse;
  tags: ShownTag;
  'shop-tags': ShownShopTag;
  keywords: ShownKeyword;
  'shop-keywords': ShownShopKeyword;
  'student-favourites': ShownStudentFavourite;
}

export type RecordTypeName = keyof SentRecords;

export type SentRecord<T extends RecordTypeName = RecordTypeName> = SentRecords[T];

export type ShownRecord<T extends RecordTypeName = RecordTypeName> = ShownRecords[T];

/** Why a record, or a field of it, is not accepted. */
export type ProblemCode =
  | 'not_an_object'
  | 'required'
  | 'wrong_type'
  | 'invalid_format'
  | 'out_of_range'
  | 'too_long'
  | 'not_allowed'
  | 'unknown_field'
  | 'unknown_reference'
  | 'store_unavailable';

/** All record types, each after those that its records refer to. */
export const uploadOrder = [
  'customers',
  'shops',
  'transactions',
  'offers',
  'branches',
  'categories',
  'shop-categories',
  'institutes',
  'courses',
  'tags',
  'shop-tags',
  'keywords',
  'shop-keywords',
  'student-favourites',
] as const;

/** By record type, the field that identifies a record. */
export const keyFields = {
  customers: 'customer_id',
  shops: 'shop_id',
  transactions: 'transaction_id',
  offers: 'offer_id',
  branches: 'branch_id',
  categories: 'category_id',
  'shop-categories': 'shop_category_id',
  institutes: 'institute_id',
  courses: 'course_id',
  tags: 'tag_id',
  'shop-tags': 'shop_tag_id',
  keywords: 'keyword_id',
  'shop-keywords': 'shop_keyword_id',
  'student-favourites': 'student_favourite_id',
} as const;
