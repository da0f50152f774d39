// Sequelize: sync, sync with alter, models, associations, transactions.
import { Sequelize, DataTypes, Op, QueryTypes } from 'sequelize';
import { DSN, S, runner, eq, raises, finish } from './lib.mjs';

const check = runner('sequelize');
const db = new Sequelize(DSN, { dialect: 'postgres', logging: false, schema: S, pool: { max: 3 } });
const Item = db.define('Item', { id: { type: DataTypes.BIGINT, primaryKey: true }, name: DataTypes.STRING(40), price: DataTypes.DECIMAL(10, 2) }, { tableName: 'sq_item', timestamps: false });
const Author = db.define('Author', { name: { type: DataTypes.STRING, allowNull: false }, born: DataTypes.DATEONLY, info: DataTypes.JSONB, tags: DataTypes.ARRAY(DataTypes.TEXT), score: DataTypes.DOUBLE }, { tableName: 'sq_author' });
const Book = db.define('Book', { id: { type: DataTypes.UUID, primaryKey: true, defaultValue: DataTypes.UUIDV4 }, title: DataTypes.TEXT }, { tableName: 'sq_book', indexes: [{ fields: ['title'] }] });
Author.hasMany(Book);
Book.belongsTo(Author);

await check('authenticate', async () => {
  await db.authenticate();
  await db.query(`CREATE SCHEMA IF NOT EXISTS ${S}`);
});
await check('sync-force', () => db.sync({ force: true }));
await check('sync-alter', () => db.sync({ alter: true }));
await check('describe-and-show', async () => {
  const d = await db.getQueryInterface().describeTable({ tableName: 'sq_author', schema: S });
  eq([d.id.primaryKey, d.name.type, d.name.allowNull, d.born.type, d.tags.type], [true, 'CHARACTER VARYING(255)', false, 'DATE', 'ARRAY']);
  eq((await db.getQueryInterface().showAllSchemas()).includes(S), true);
  eq((await db.getQueryInterface().showIndex({ tableName: 'sq_book', schema: S })).length, 2);
});
await check('create-and-find', async () => {
  await Item.bulkCreate([{ id: 1, name: 'a', price: 1 }, { id: 2, name: 'b' }]);
  const a = await Author.create({ name: 'Ann', born: '1980-02-03', info: { k: { n: 5 } }, tags: ['x', 'y'], score: 0.1 });
  eq(a.id, 1);
  await Book.create({ title: 'One', AuthorId: a.id });
  await Book.bulkCreate([{ title: 'Two', AuthorId: a.id }]);
  const r = await Author.findOne({ where: { name: { [Op.iLike]: '%NN' } }, include: Book, order: [[Book, 'title', 'ASC']] });
  eq([r.born, r.info.k.n, r.tags, r.score, r.Books.map((b) => b.title)], ['1980-02-03', 5, ['x', 'y'], 0.1, ['One', 'Two']]);
});
await check('upsert', async () => {
  await Item.upsert({ id: 1, name: 'aa' });
  eq((await Item.findByPk(1)).name, 'aa');
});
await check('where-json-and-array', async () => {
  eq(await Author.count({ where: { info: { k: { n: 5 } } } }), 1);
  eq(await Author.count({ where: { tags: { [Op.contains]: ['x'] } } }), 1);
  eq(await Author.count({ where: { tags: { [Op.overlap]: ['q', 'y'] } } }), 1);
});
await check('aggregate-and-group', async () => {
  eq(await Item.sum('price'), 1);
  eq(await Item.max('id'), 2);
  const r = await Book.findAll({ attributes: ['AuthorId', [db.fn('COUNT', db.col('id')), 'n']], group: ['AuthorId'], raw: true });
  eq(r, [{ AuthorId: 1, n: '2' }]);
  eq((await Item.findAndCountAll({ limit: 1, offset: 1, order: ['id'] })).count, 2);
});
await check('update-increment-destroy', async () => {
  eq((await Item.update({ price: 4 }, { where: { id: 2 }, returning: true }))[1][0].price, '4.00');
  await Item.increment('price', { by: 2, where: { id: 2 } });
  eq((await Item.findByPk(2)).price, '6.00');
  await Item.create({ id: 9, name: 'gone' });
  eq(await Item.destroy({ where: { id: 9 } }), 1);
});
// findOrCreate makes a function of PL/pgSQL where a row may be there already; this does not.
await check('find-create-find', async () => {
  eq((await Item.findCreateFind({ where: { id: 1 }, defaults: { name: 'q' } }))[1], false);
  eq((await Item.findCreateFind({ where: { id: 3 }, defaults: { name: 'q' } }))[1], true);
});
await check('transaction', async () => {
  await db.transaction(async (transaction) => { await Item.create({ id: 70, name: 't' }, { transaction }); throw new Error('stop'); }).catch((e) => eq(e.message, 'stop'));
  eq(await Item.findByPk(70), null);
});
await check('replacements-and-bind', async () => {
  eq(await db.query(`SELECT name FROM ${S}.sq_item WHERE id IN (:ids)`, { replacements: { ids: [1] }, type: QueryTypes.SELECT }), [{ name: 'aa' }]);
  eq(await db.query('SELECT $1::int + $2::int AS s', { bind: [1, 2], type: QueryTypes.SELECT }), [{ s: 3 }]);
});
await check('query-interface', async () => {
  const q = db.getQueryInterface(), t = { tableName: 'sq_item', schema: S };
  await q.addColumn(t, 'extra', { type: DataTypes.INTEGER, defaultValue: 3 });
  await q.changeColumn(t, 'extra', { type: DataTypes.BIGINT });
  await q.renameColumn(t, 'extra', 'more');
  await q.addIndex(t, ['name'], { name: 'sq_item_name' });
  await q.removeIndex(t, 'sq_item_name');
  await q.removeColumn(t, 'more');
});
await db.close();
finish();
