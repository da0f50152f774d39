// knex: schema builder, migrations, query builder, transactions.
import knexOf from 'knex';
import { DSN, S, runner, eq, raises, finish } from './lib.mjs';

const check = runner('knex');
const knex = knexOf({ client: 'pg', connection: DSN, searchPath: [S, 'public'], pool: { min: 0, max: 4 } });
const migrations = {
  async getMigrations() { return ['001', '002']; },
  getMigrationName(m) { return m; },
  async getMigration(m) {
    if (m === '001') {
      return {
        up: async (k) => {
          await k.schema.createTable('kx_author', (t) => { t.increments('id'); t.string('name', 40).notNullable(); t.timestamp('made').defaultTo(k.fn.now()); });
          await k.schema.createTable('kx_book', (t) => {
            t.uuid('id').primary(); t.integer('author_id').references('id').inTable('kx_author'); t.jsonb('info'); t.specificType('tags', 'text[]'); t.decimal('price', 10, 2); t.index(['author_id']);
          });
        },
        down: async (k) => { await k.schema.dropTable('kx_book'); await k.schema.dropTable('kx_author'); },
      };
    }
    return {
      up: async (k) => k.schema.alterTable('kx_author', (t) => { t.boolean('active').defaultTo(true); t.string('name', 80).notNullable().alter(); t.renameColumn('made', 'made_at'); }),
      down: async (k) => k.schema.alterTable('kx_author', (t) => { t.dropColumn('active'); t.renameColumn('made_at', 'made'); }),
    };
  },
};
await check('setup', async () => {
  await knex.raw('CREATE SCHEMA IF NOT EXISTS ??', [S]);
  for (const t of ['kx_book', 'kx_author', 'kx_item', 'knex_migrations', 'knex_migrations_lock']) await knex.schema.dropTableIfExists(t);
  await knex.schema.createTable('kx_item', (t) => { t.bigint('id'); t.string('name', 40); t.decimal('price', 10, 2); t.primary(['id']); });
});
await check('upsert', async () => {
  await knex('kx_item').insert([{ id: 1, name: 'a' }, { id: 2, name: 'b' }]).onConflict('id').merge();
  eq(await knex('kx_item').where({ id: 1 }).first('name'), { name: 'a' });
  await knex('kx_item').insert({ id: 1, name: 'zz' }).onConflict('id').ignore();
  eq(await knex('kx_item').pluck('name').orderBy('id'), ['a', 'b']);
});
await check('schema-questions', async () => {
  eq(await knex.schema.hasTable('kx_item'), true);
  eq(await knex.schema.hasColumn('kx_item', 'name'), true);
  const info = await knex('kx_item').columnInfo();
  eq([info.name.type, info.name.maxLength, info.id.nullable], ['character varying', 40, false]);
});
await check('migrate-latest', async () => {
  eq((await knex.migrate.latest({ migrationSource: migrations }))[1], ['001', '002']);
  eq(await knex.migrate.currentVersion({ migrationSource: migrations }), '002');
});
await check('insert-returning-serial', async () => {
  const [a] = await knex('kx_author').insert({ name: 'Ann' }).returning(['id', 'active']);
  eq(a, { id: 1, active: true });
  await knex('kx_book').insert({ id: '00000000-0000-0000-0000-000000000001', author_id: 1, info: { a: [1, 2] }, tags: ['x', 'y'], price: '9.90' });
});
await check('join-and-aggregate', async () => {
  const r = await knex('kx_book as b').join('kx_author as a', 'a.id', 'b.author_id').select('a.name', 'b.info', 'b.tags').sum('b.price as s').groupBy('a.name', 'b.info', 'b.tags');
  eq(r, [{ name: 'Ann', info: { a: [1, 2] }, tags: ['x', 'y'], s: '9.90' }]);
  eq((await knex('kx_book').whereRaw("info->'a'->>1 = ?", ['2']).count('* as n'))[0].n, '1');
  eq(await knex.with('w', knex('kx_item').select('id')).select('id').from('w').whereIn('id', [1, 9]), [{ id: '1' }]);
});
await check('transaction-rolled-back', async () => {
  await knex.transaction(async (t) => { await t('kx_item').insert({ id: 50, name: 'no' }); throw new Error('stop'); }).catch((e) => eq(e.message, 'stop'));
  eq(await knex('kx_item').where('id', 50), []);
});
await check('savepoint', async () => {
  await knex.transaction(async (t) => {
    await t('kx_item').insert({ id: 51, name: 'yes' });
    await t.transaction(async (u) => { await u('kx_item').where('id', 51).update({ name: 'no' }); throw new Error('stop'); }).catch(() => {});
  });
  eq((await knex('kx_item').where('id', 51).first()).name, 'yes');
  await knex('kx_item').where('id', 51).del();
});
await check('for-update', async () => knex.transaction(async (t) => eq((await t('kx_item').where('id', 1).forUpdate().first()).name, 'a')));
await check('stream', async () => {
  let n = 0;
  for await (const _ of knex('kx_item').select('id').stream()) n++;
  eq(n, 2);
});
await check('error-code', () => raises(knex('kx_nope').select('*'), '42P01'));
await check('increment-and-returning', async () => eq(await knex('kx_item').where('id', 2).update({ price: 3 }).returning('price'), [{ price: '3.00' }]));
await check('migrate-rollback', async () => {
  await knex.migrate.rollback({ migrationSource: migrations }, true);
  eq(await knex.schema.hasTable('kx_author'), false);
});
await knex.destroy();
finish();
