// TypeORM: schema synchronisation, migrations, repositories, query builder.
import 'reflect-metadata';
import { DataSource, EntitySchema, In, MoreThan } from 'typeorm';
import { DSN, S, runner, eq, raises, finish } from './lib.mjs';

const check = runner('typeorm');
const D = S + '_typeorm';
const User = new EntitySchema({
  name: 'User', schema: D, columns: {
    id: { type: 'int', primary: true, generated: 'increment' }, name: { type: 'varchar', length: 60 }, mail: { type: 'varchar', unique: true, nullable: true },
    info: { type: 'jsonb', nullable: true }, tags: { type: 'text', array: true, nullable: true }, price: { type: 'numeric', precision: 10, scale: 2, nullable: true },
    made: { type: 'timestamp with time zone', createDate: true }, day: { type: 'date', nullable: true },
  }, indices: [{ columns: ['name'] }], relations: { posts: { type: 'one-to-many', target: 'Post', inverseSide: 'user' } },
});
const Post = new EntitySchema({
  name: 'Post', schema: D, columns: { id: { type: 'uuid', primary: true, generated: 'uuid' }, title: { type: 'text' } },
  relations: { user: { type: 'many-to-one', target: 'User', inverseSide: 'posts', nullable: true } },
});
class First1700000000000 {
  async up(q) { await q.query(`CREATE TABLE ${D}.by_hand (id int PRIMARY KEY, v text)`); }
  async down(q) { await q.query(`DROP TABLE ${D}.by_hand`); }
}
const ds = new DataSource({ type: 'postgres', url: DSN, schema: D, uuidExtension: 'pgcrypto', entities: [User, Post], migrations: [First1700000000000], extra: { max: 3 } });
await check('initialize', async () => {
  await ds.initialize();
  await ds.query(`DROP SCHEMA IF EXISTS ${D} CASCADE`);
  await ds.query(`CREATE SCHEMA ${D}`);
});
await check('synchronize', () => ds.synchronize());
await check('synchronize-finds-nothing-to-do', async () => eq((await ds.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query), []));
await check('run-migrations', async () => {
  eq((await ds.runMigrations()).length, 1);
  eq(await ds.showMigrations(), false);
});
await check('save-and-find', async () => {
  const users = ds.getRepository('User'), posts = ds.getRepository('Post');
  const u = await users.save({ name: 'Ann', mail: 'a@x', info: { a: 1 }, tags: ['x', 'y'], price: '2.50', day: '2024-02-29' });
  eq([u.id, u.made instanceof Date], [1, true]);
  await posts.save([{ title: 'One', user: u }, { title: 'Two', user: u }]);
  const r = await users.findOne({ where: { name: 'Ann' }, relations: { posts: true }, order: { posts: { title: 'ASC' } } });
  eq([r.info, r.tags, r.price, r.day, r.posts.map((p) => p.title)], [{ a: 1 }, ['x', 'y'], '2.50', '2024-02-29', ['One', 'Two']]);
  eq(await users.countBy({ id: In([1, 2]), price: MoreThan(1) }), 1);
});
await check('update-and-delete', async () => {
  const users = ds.getRepository('User');
  await users.update({ id: 1 }, { name: 'Anna', price: '3' });
  await users.increment({ id: 1 }, 'price', 2);
  eq((await users.findOneBy({ id: 1 })).price, '5.00');
  await users.save({ name: 'Gone' });
  eq((await users.delete({ name: 'Gone' })).affected, 1);
});
await check('query-builder', async () => {
  const r = await ds.getRepository('Post').createQueryBuilder('p').innerJoin('p.user', 'u').select('u.name', 'name').addSelect('count(*)', 'n').groupBy('u.name').getRawMany();
  eq(r, [{ name: 'Anna', n: '2' }]);
  eq(await ds.getRepository('User').createQueryBuilder('u').leftJoinAndSelect('u.posts', 'p').take(1).skip(0).orderBy('u.id').getCount(), 1);
});
await check('transaction', async () => {
  await ds.transaction(async (m) => { await m.getRepository('User').save({ name: 'T' }); throw new Error('stop'); }).catch((e) => eq(e.message, 'stop'));
  eq(await ds.getRepository('User').countBy({ name: 'T' }), 0);
});
await check('pessimistic-lock', () => ds.transaction(async (m) => eq((await m.getRepository('User').findOne({ where: { id: 1 }, lock: { mode: 'pessimistic_write' } })).id, 1)));
await check('query-runner-ddl', async () => {
  const q = ds.createQueryRunner();
  const t = await q.getTable(`${D}.by_hand`);
  eq(t.columns.map((c) => [c.name, c.type, c.isPrimary]), [['id', 'integer', true], ['v', 'text', false]]);
  await q.renameColumn(t, 'v', 'w');
  await q.renameTable(t, 'by_hand2');
  await q.release();
});
await check('undo-migration', async () => {
  await ds.query(`ALTER TABLE ${D}.by_hand2 RENAME TO by_hand`);
  await ds.undoLastMigration();
  eq(await ds.showMigrations(), true);
});
await check('drop-schema-of-entities', async () => {
  await ds.dropDatabase();
  eq((await ds.query(`SELECT count(*)::int AS n FROM information_schema.tables WHERE table_schema = '${D}'`))[0].n, 0);
});
await ds.destroy();
finish();
