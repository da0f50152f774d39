// drizzle-orm on node-postgres: queries, relations, migrations.
import pg from 'pg';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { pgSchema, bigint, varchar, numeric, serial, integer, jsonb, timestamp, uuid, text, boolean, index } from 'drizzle-orm/pg-core';
import { eq as is, desc, sql, relations, and, gt, inArray, count, avg } from 'drizzle-orm';
import { DSN, S, runner, eq, raises, finish } from './lib.mjs';

const check = runner('drizzle');
const D = S + '_drizzle';
const schema = pgSchema(D);
const item = schema.table('item', { id: bigint({ mode: 'number' }).primaryKey(), name: varchar({ length: 40 }), price: numeric({ precision: 10, scale: 2 }) });
const author = schema.table('author', { id: serial().primaryKey(), name: text().notNull(), active: boolean().default(true), made: timestamp({ withTimezone: true }).defaultNow() });
const book = schema.table('book', { id: uuid().primaryKey(), authorId: integer('author_id').references(() => author.id), info: jsonb(), tags: text().array() }, (t) => [index('book_author').on(t.authorId)]);
const authorRelations = relations(author, ({ many }) => ({ books: many(book) }));
const bookRelations = relations(book, ({ one }) => ({ author: one(author, { fields: [book.authorId], references: [author.id] }) }));
const pool = new pg.Pool({ connectionString: DSN, max: 3 });
const db = drizzle(pool, { schema: { item, author, book, authorRelations, bookRelations } });

const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'drizzle-'));
fs.mkdirSync(path.join(dir, 'meta'));
// What drizzle-kit generates from the tables above.
fs.writeFileSync(path.join(dir, '0000_first.sql'), `CREATE TABLE "${D}"."item" (
	"id" bigint PRIMARY KEY NOT NULL,
	"name" varchar(40),
	"price" numeric(10, 2)
);
--> statement-breakpoint
CREATE TABLE "${D}"."author" (
	"id" serial PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"active" boolean DEFAULT true,
	"made" timestamp with time zone DEFAULT now()
);
--> statement-breakpoint
CREATE TABLE "${D}"."book" (
	"id" uuid PRIMARY KEY NOT NULL,
	"author_id" integer,
	"info" jsonb,
	"tags" text[]
);
--> statement-breakpoint
ALTER TABLE "${D}"."book" ADD CONSTRAINT "book_author_id_author_id_fk" FOREIGN KEY ("author_id") REFERENCES "${D}"."author"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "book_author" ON "${D}"."book" USING btree ("author_id");`);
fs.writeFileSync(path.join(dir, '0001_second.sql'), `ALTER TABLE "${D}"."author" ALTER COLUMN "name" SET DATA TYPE varchar(80);--> statement-breakpoint
ALTER TABLE "${D}"."author" ADD COLUMN "age" integer DEFAULT 7 NOT NULL;`);
fs.writeFileSync(path.join(dir, 'meta', '_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries: ['0000_first', '0001_second'].map((tag, idx) => ({ idx, version: '7', when: 1700000000000 + idx, tag, breakpoints: true })) }));

await check('setup', async () => {
  await pool.query(`DROP SCHEMA IF EXISTS ${D} CASCADE; CREATE SCHEMA ${D}`);
});
await check('migrate', async () => {
  await migrate(db, { migrationsFolder: dir, migrationsSchema: D });
  await migrate(db, { migrationsFolder: dir, migrationsSchema: D });
  eq((await pool.query(`SELECT count(*)::int AS n FROM ${D}.__drizzle_migrations`)).rows[0].n, 2);
});
await check('insert-returning-default', async () => {
  eq(await db.insert(item).values({ id: 1, name: 'c' }).onConflictDoUpdate({ target: item.id, set: { name: sql`excluded.name` } }).returning(), [{ id: 1, name: 'c', price: null }]);
  const [a] = await db.insert(author).values({ name: 'Ann' }).returning();
  eq([a.id, a.active, a.made instanceof Date], [1, true, true]);
  await db.insert(book).values([1, 2].map((n) => ({ id: `00000000-0000-0000-0000-00000000000${n}`, authorId: 1, info: { n }, tags: ['x', 'y'] })));
});
await check('select', async () => {
  eq(await db.select().from(item).where(is(item.id, 1)).orderBy(desc(item.id)).limit(1), [{ id: 1, name: 'c', price: null }]);
  eq(await db.select({ name: author.name, n: count() }).from(author).leftJoin(book, is(book.authorId, author.id)).groupBy(author.name), [{ name: 'Ann', n: 2 }]);
  eq(await db.select({ id: item.id }).from(item).where(and(gt(item.id, 0), inArray(item.id, [1, 2]))), [{ id: 1 }]);
});
await check('relational-query', async () => {
  const r = await db.query.author.findMany({ columns: { name: true }, with: { books: { columns: { info: true }, orderBy: (b, { asc }) => [asc(b.id)] } } });
  eq(r, [{ name: 'Ann', books: [{ info: { n: 1 } }, { info: { n: 2 } }] }]);
  eq((await db.query.book.findFirst({ with: { author: { columns: { name: true } } }, where: (b, o) => o.eq(b.authorId, 1) })).author, { name: 'Ann' });
});
await check('transaction-and-savepoint', async () => {
  await db.transaction(async (t) => {
    await t.update(item).set({ name: 'd' }).where(is(item.id, 1));
    await t.transaction(async (u) => { await u.delete(item).where(is(item.id, 1)); u.rollback(); }).catch(() => {});
  });
  eq((await db.select().from(item))[0].name, 'd');
});
await check('prepared', async () => {
  const q = db.select({ name: item.name }).from(item).where(is(item.id, sql.placeholder('id'))).prepare('drizzle_p');
  for (let i = 0; i < 3; i++) eq(await q.execute({ id: 1 }), [{ name: 'd' }]);
});
await check('subquery-and-cte', async () => {
  const w = db.$with('w').as(db.select({ id: book.id, n: sql`(${book.info}->>'n')::int`.as('n') }).from(book));
  eq((await db.with(w).select({ a: avg(w.n) }).from(w))[0].a, '1.5000000000000000');
});
await check('error-code', async () => {
  try { await db.execute(sql`SELECT nope FROM ${item}`); } catch (e) { eq((e.cause ?? e).code, '42703'); return; }
  throw new Error('no error');
});
await pool.end();
finish();
