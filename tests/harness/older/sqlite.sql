-- A database that Headgate wrote on 15 November 2026, in the oldest form that the current version opens. Only the id and
-- the hash of a key were replaced, the hash by that of a secret of 48 zeros. This is a record: do not change it.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE organisations (
    organisation INTEGER PRIMARY KEY,
    org_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL
  ) STRICT;
INSERT INTO organisations VALUES(1,'6f9db229-a1ab-4428-8016-918098c058b4','acme',1795046578074);
INSERT INTO organisations VALUES(2,'b5da8bdf-4e11-4bb5-b593-0bdda13ae153','other',1795046578392);
CREATE TABLE api_keys (
    key_id TEXT PRIMARY KEY,
    organisation INTEGER NOT NULL,
    secret_hash TEXT NOT NULL,
    name TEXT,
    scopes TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    revoked_at_ms INTEGER,
    last_used_at_ms INTEGER,
    replaced_by TEXT
  ) STRICT;
INSERT INTO api_keys VALUES('000000000001',1,'f9a2ba511957122bfa67b029061c679703494540b35f02e0e0496a3b0cdcc46a','loader','["data:write","data:read","interactions:write","interactions:read"]',1795046578687,NULL,NULL,1795046580475,NULL);
INSERT INTO api_keys VALUES('68d7c682b0da',2,'73b7bf27f5b7ad5a8d5ec5c2bb2db876516fc44ef2d16146242dd7c476c5be32',NULL,'["data:write","data:read","interactions:write","interactions:read"]',1795046578977,1802822578977,1795046579360,NULL,NULL);
CREATE TABLE idempotency_answers (
    organisation INTEGER NOT NULL,
    path TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    answer BLOB NOT NULL,
    tallies TEXT NOT NULL,
    kept_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (organisation, path, key)
  ) STRICT;
INSERT INTO idempotency_answers VALUES(1,'/v1/data/tags','tags-1','strict:bdaaf1268448996a8674ba51c469ed2679f341ad8a2f98f9b5bbe0f49b239482',X'65cdb10e82301485e17739739bb41402f40d5c5d0d43e15e1083886dd110c2bb1bc4cded7ccb7f56787ece1ce28960a1b4d3add62413654a992ba5644d94486e5353646999719e41202e13c322ba2e4080fc729e47d8d60d81056a179b2b07d8cb7aecbf7273948bb6c865e90cb131c42a3510f0dc70ff62824d76dcb8893b94409827f681e9c7c93fea81effb4d25f0767eecc7eeabadda3e','[{"created":2,"updated":0,"unchanged":0}]',1795046580284,1795132980284);
CREATE TABLE IF NOT EXISTS "customers" (
  "organisation" INTEGER NOT NULL,
  "customer_id" TEXT NOT NULL,
  "user_id" TEXT NOT NULL,
  "region" TEXT NOT NULL,
  "birthdate" TEXT,
  "institute_id" TEXT,
  "course_id" TEXT,
  "gender" TEXT,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "customer_id")
) STRICT;
INSERT INTO customers VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000000d','0d1f6a3c-9a57-4e0e-8a52-000000000071','GB',NULL,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO customers VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000000e','0d1f6a3c-9a57-4e0e-8a52-000000000072','DE','2004-02-29','0d1f6a3c-9a57-4e0e-8a52-000000000009','0d1f6a3c-9a57-4e0e-8a52-00000000000b','stated','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "transactions" (
  "organisation" INTEGER NOT NULL,
  "transaction_id" TEXT NOT NULL,
  "shop_id" TEXT NOT NULL,
  "region" TEXT NOT NULL,
  "savings" REAL NOT NULL,
  "amount" REAL NOT NULL,
  "student_id" TEXT,
  "offer_id" TEXT,
  "branch_id" TEXT,
  "source" TEXT,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  "discount_name" TEXT,
  "discount_type" TEXT,
  "discount_value" REAL,
  PRIMARY KEY ("organisation", "transaction_id")
) STRICT;
INSERT INTO transactions VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000001b','0d1f6a3c-9a57-4e0e-8a52-000000000001','GB',0.0,9.9999999999999995472e-08,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL);
INSERT INTO transactions VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000001c','0d1f6a3c-9a57-4e0e-8a52-000000000002','DE',2.5,12345678.900000000372,'0d1f6a3c-9a57-4e0e-8a52-00000000000e','0d1f6a3c-9a57-4e0e-8a52-000000000010','0d1f6a3c-9a57-4e0e-8a52-000000000012','online','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1,'Ten off','percentage',-1.5);
CREATE TABLE IF NOT EXISTS "offers" (
  "organisation" INTEGER NOT NULL,
  "offer_id" TEXT NOT NULL,
  "shop_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "type" TEXT NOT NULL,
  "value" REAL NOT NULL,
  "region" TEXT NOT NULL,
  "allowed_from" TEXT,
  "allowed_to" TEXT,
  "allowed_branches" TEXT,
  "allowed_days" TEXT,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  "is_enabled" INTEGER,
  PRIMARY KEY ("organisation", "offer_id")
) STRICT;
INSERT INTO offers VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000000f','0d1f6a3c-9a57-4e0e-8a52-000000000001','Ten off','percentage',10.0,'GB',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO offers VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000010','0d1f6a3c-9a57-4e0e-8a52-000000000002','Fixed','fixed',0.10000000000000000555,'DE','2024-01-01T00:00:00.000000Z','2024-12-31T23:59:59.999999Z','0d1f6a3c-9a57-4e0e-8a52-000000000011','Monday,Tuesday','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1,0);
CREATE TABLE IF NOT EXISTS "shops" (
  "organisation" INTEGER NOT NULL,
  "shop_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "region" TEXT NOT NULL,
  "is_public" INTEGER,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "shop_id")
) STRICT;
INSERT INTO shops VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000001','Corner Books','GB',NULL,NULL,NULL,0);
INSERT INTO shops VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000002',replace('Café “Zum Löwen” 🦁 O''Hara \ "quoted"\n	tab','\n',char(10)),'DE',1,'2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "branches" (
  "organisation" INTEGER NOT NULL,
  "branch_id" TEXT NOT NULL,
  "shop_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "region" TEXT NOT NULL,
  "latitude" REAL,
  "longitude" REAL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "branch_id")
) STRICT;
INSERT INTO branches VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000011','0d1f6a3c-9a57-4e0e-8a52-000000000001','Centre','GB',NULL,NULL,NULL,NULL,0);
INSERT INTO branches VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000012','0d1f6a3c-9a57-4e0e-8a52-000000000002','Nord','DE',-90.0,13.404954000000000036,'2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "categories" (
  "organisation" INTEGER NOT NULL,
  "category_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "region" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "category_id")
) STRICT;
INSERT INTO categories VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000003','Books','GB',NULL,NULL,0);
INSERT INTO categories VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000004','Food','DE','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "shop_categories" (
  "organisation" INTEGER NOT NULL,
  "shop_category_id" TEXT NOT NULL,
  "shop_id" TEXT NOT NULL,
  "category_id" TEXT NOT NULL,
  "region" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "shop_category_id")
) STRICT;
INSERT INTO shop_categories VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000013','0d1f6a3c-9a57-4e0e-8a52-000000000001','0d1f6a3c-9a57-4e0e-8a52-000000000003','GB',NULL,NULL,0);
INSERT INTO shop_categories VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000014','0d1f6a3c-9a57-4e0e-8a52-000000000002','0d1f6a3c-9a57-4e0e-8a52-000000000004','DE','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "institutes" (
  "organisation" INTEGER NOT NULL,
  "institute_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "region" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "institute_id")
) STRICT;
INSERT INTO institutes VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000009','University','GB',NULL,NULL,0);
INSERT INTO institutes VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000000a','Hochschule','DE','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "courses" (
  "organisation" INTEGER NOT NULL,
  "course_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "course_id")
) STRICT;
INSERT INTO courses VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000000b','Physics',NULL,NULL,0);
INSERT INTO courses VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000000c','Latin','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "tags" (
  "organisation" INTEGER NOT NULL,
  "tag_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "tag_id")
) STRICT;
INSERT INTO tags VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000005','coffee',NULL,NULL,0);
INSERT INTO tags VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000006','old','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "shop_tags" (
  "organisation" INTEGER NOT NULL,
  "shop_tag_id" TEXT NOT NULL,
  "shop_id" TEXT NOT NULL,
  "tag_id" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "shop_tag_id")
) STRICT;
INSERT INTO shop_tags VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000015','0d1f6a3c-9a57-4e0e-8a52-000000000001','0d1f6a3c-9a57-4e0e-8a52-000000000005',NULL,NULL,0);
INSERT INTO shop_tags VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000016','0d1f6a3c-9a57-4e0e-8a52-000000000002','0d1f6a3c-9a57-4e0e-8a52-000000000006','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "keywords" (
  "organisation" INTEGER NOT NULL,
  "keyword_id" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "keyword_id")
) STRICT;
INSERT INTO keywords VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000007','novel',NULL,NULL,0);
INSERT INTO keywords VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000008','old','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "shop_keywords" (
  "organisation" INTEGER NOT NULL,
  "shop_keyword_id" TEXT NOT NULL,
  "shop_id" TEXT NOT NULL,
  "keyword_id" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "shop_keyword_id")
) STRICT;
INSERT INTO shop_keywords VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000017','0d1f6a3c-9a57-4e0e-8a52-000000000001','0d1f6a3c-9a57-4e0e-8a52-000000000007',NULL,NULL,0);
INSERT INTO shop_keywords VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000018','0d1f6a3c-9a57-4e0e-8a52-000000000002','0d1f6a3c-9a57-4e0e-8a52-000000000008','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "student_favourites" (
  "organisation" INTEGER NOT NULL,
  "student_favourite_id" TEXT NOT NULL,
  "student_id" TEXT NOT NULL,
  "shop_id" TEXT NOT NULL,
  "created" TEXT,
  "updated" TEXT,
  "is_deleted" INTEGER NOT NULL,
  PRIMARY KEY ("organisation", "student_favourite_id")
) STRICT;
INSERT INTO student_favourites VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-000000000019','0d1f6a3c-9a57-4e0e-8a52-00000000000d','0d1f6a3c-9a57-4e0e-8a52-000000000001',NULL,NULL,0);
INSERT INTO student_favourites VALUES(1,'0d1f6a3c-9a57-4e0e-8a52-00000000001a','0d1f6a3c-9a57-4e0e-8a52-00000000000e','0d1f6a3c-9a57-4e0e-8a52-000000000002','2024-02-29T21:59:59.123456Z','2025-06-01T08:30:00.000000Z',1);
CREATE TABLE IF NOT EXISTS "interactions" (
  "organisation" INTEGER NOT NULL,
  "interaction_type" TEXT NOT NULL,
  "user_id" TEXT,
  "student_id" TEXT,
  "item_type" TEXT NOT NULL,
  "item_id" TEXT NOT NULL,
  "city" TEXT,
  "country" TEXT,
  "platform" TEXT,
  "event_timestamp" TEXT NOT NULL,
  "source" TEXT,
  "recommendation_id" TEXT,
  "interaction_id" TEXT NOT NULL,
  "occurred_at" TEXT NOT NULL,
  "created" TEXT NOT NULL,
  PRIMARY KEY ("organisation", "interaction_id")
) STRICT;
INSERT INTO interactions VALUES(1,'SHARE',NULL,NULL,'SHOP','0d1f6a3c-9a57-4e0e-8a52-000000000001',NULL,NULL,NULL,'1700000000',NULL,NULL,'01a1f11d-20c1-7000-8c0a-c65fb86de288','2023-11-14T22:13:20.000000Z','2026-11-19T00:03:00.417000Z');
INSERT INTO interactions VALUES(1,'DISCOUNT_CODE','user 14 é','0d1f6a3c-9a57-4e0e-8a52-00000000000e','OFFER','0d1f6a3c-9a57-4e0e-8a52-000000000010','München','Deutschland','WEB','2024-02-29T23:59:59+02:00','SERVICE','0d1f6a3c-9a57-4e0e-8a52-000000000063','01a1f11d-20cc-7000-98cc-744ba75df391','2024-02-29T21:59:59.000000Z','2026-11-19T00:03:00.428000Z');
CREATE INDEX api_keys_by_organisation ON api_keys (organisation, created_at_ms, key_id);
CREATE INDEX idempotency_answers_by_expiry ON idempotency_answers (expires_at_ms);
CREATE INDEX "interactions_by_time" ON "interactions" ("organisation", "occurred_at", "interaction_id");
CREATE INDEX "interactions_by_student" ON "interactions" ("organisation", "student_id", "occurred_at", "interaction_id") WHERE "student_id" IS NOT NULL;
CREATE INDEX "interactions_by_user" ON "interactions" ("organisation", "user_id", "occurred_at", "interaction_id") WHERE "user_id" IS NOT NULL;
CREATE INDEX "interactions_by_source" ON "interactions" ("organisation", "source", "occurred_at", "interaction_id") WHERE "source" IS NOT NULL;
CREATE INDEX "interactions_by_item" ON "interactions" ("organisation", "item_id", "occurred_at", "interaction_id");
PRAGMA application_id = 1214734708;
PRAGMA user_version = 1;
COMMIT;
PRAGMA journal_mode = WAL;
