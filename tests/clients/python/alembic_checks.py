"""Alembic: migrations up and down, autogenerate against what they made; SQLAlchemy's ORM on the result."""
import os, tempfile

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg

import checks
from checks import SCHEMA, eq, finish, raises, runner

check = runner("alembic")
SCHEMA += "_alembic"
URL = checks.DSN.replace("postgresql://", "postgresql+psycopg://", 1)
eng = sa.create_engine(URL, connect_args={"options": "-c search_path=" + SCHEMA})


class Base(orm.DeclarativeBase):
    pass


class Owner(Base):
    __tablename__ = "owner"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(60), index=True)
    since: orm.Mapped[sa.DateTime] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    pets: orm.Mapped[list["Pet"]] = orm.relationship(back_populates="owner", order_by="Pet.id", cascade="all, delete-orphan")


class Pet(Base):
    __tablename__ = "pet"
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    owner_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("owner.id"))
    kind: orm.Mapped[str] = orm.mapped_column(sa.Text, comment="cat or dog")
    price = orm.mapped_column(sa.Numeric(10, 2), server_default="0")
    info = orm.mapped_column(pg.JSONB)
    tags = orm.mapped_column(pg.ARRAY(sa.Text))
    token = orm.mapped_column(pg.UUID)
    version: orm.Mapped[int] = orm.mapped_column(sa.Integer)
    owner: orm.Mapped[Owner] = orm.relationship(back_populates="pets")
    __table_args__ = (sa.CheckConstraint("price >= 0", name="price_ok"),)
    __mapper_args__ = {"version_id_col": version}


work = tempfile.TemporaryDirectory()
cfg = Config()
cfg.set_main_option("script_location", work.name)
cfg.set_main_option("path_separator", "os")
os.mkdir(os.path.join(work.name, "versions"))
with open(os.path.join(work.name, "script.py.mako"), "w") as f:
    f.write('"""${message}"""\nfrom alembic import op\nimport sqlalchemy as sa\nfrom sqlalchemy import Text\nfrom sqlalchemy.dialects import postgresql\n'
            "revision = ${repr(up_revision)}\ndown_revision = ${repr(down_revision)}\n\n"
            "def upgrade():\n    ${upgrades if upgrades else 'pass'}\n\ndef downgrade():\n    ${downgrades if downgrades else 'pass'}\n")
with open(os.path.join(work.name, "env.py"), "w") as f:
    f.write("""from alembic import context
c = context.config.attributes
context.configure(connection=c["connection"], target_metadata=c["metadata"], compare_server_default=True)
with context.begin_transaction():
    context.run_migrations()
""")


def alembic(fn, *a, **k):
    with eng.connect() as c:
        cfg.attributes.update(connection=c, metadata=Base.metadata)
        r = fn(cfg, *a, **k)
        c.commit()
        return r


def difference():
    with eng.connect() as c:
        return compare_metadata(MigrationContext.configure(c, opts={"compare_server_default": True}), Base.metadata)


@check
def fresh_schema():
    with eng.begin() as c:
        c.execute(sa.text("DROP SCHEMA IF EXISTS %s CASCADE" % SCHEMA))
        c.execute(sa.text("CREATE SCHEMA " + SCHEMA))


@check
def autogenerate_first_revision():
    s = alembic(command.revision, message="first", autogenerate=True)
    text = open(s.path).read()
    assert "op.create_table('owner'" in text and "op.create_index" in text, text


@check
def upgrade_head():
    alembic(command.upgrade, "head")
    with eng.connect() as c:
        assert MigrationContext.configure(c).get_current_revision()


@check
def autogenerate_finds_nothing():
    eq(difference(), [])


@check
def operations():
    with eng.begin() as c:
        op = Operations(MigrationContext.configure(c))
        op.add_column("pet", sa.Column("age", sa.SmallInteger(), nullable=True, comment="in years"))
        op.alter_column("pet", "age", type_=sa.Integer(), existing_type=sa.SmallInteger(), server_default="1")
        op.alter_column("pet", "age", new_column_name="years")
        op.create_index("pet_years", "pet", ["years"])
        op.drop_index("pet_years")
        op.create_unique_constraint("pet_token", "pet", ["token"])
        op.drop_constraint("pet_token", "pet")
        op.create_check_constraint("years_ok", "pet", "years < 100")
        op.create_table_comment("pet", "animals")
        op.bulk_insert(sa.table("owner", sa.column("id", sa.Integer), sa.column("name", sa.Text)), [{"id": 900, "name": "Bulk"}])
        op.execute("UPDATE owner SET name = 'Bulk2' WHERE id = 900")


@check
def autogenerate_finds_the_difference():
    kinds = sorted(str(d[0] if isinstance(d, tuple) else d[0][0]) for d in difference())
    eq(kinds, ["remove_column", "remove_table_comment"])
    with eng.connect() as c:
        code = render_python_code(produce_migrations(MigrationContext.configure(c), Base.metadata).upgrade_ops)
    assert "op.drop_column('pet', 'years')" in code, code


@check
def failed_migration_leaves_nothing():
    try:
        with eng.begin() as c:
            op = Operations(MigrationContext.configure(c))
            op.create_table("half", sa.Column("id", sa.Integer, primary_key=True))
            op.execute("SELECT 1/0")
    except sa.exc.DBAPIError:
        pass
    assert not sa.inspect(eng).has_table("half")


@check
def orm_unit_of_work():
    with orm.Session(eng) as s:
        a = Owner(name="Ann", pets=[Pet(kind="cat", info={"a": 1}, tags=["x"]), Pet(kind="dog", price=3)])
        s.add(a)
        s.commit()
        eq((a.id > 0, [p.id for p in a.pets], a.since is not None), (True, [1, 2], True))
        a.pets[0].price = 9
        del a.pets[1]
        s.commit()
    with orm.Session(eng) as s:
        a = s.scalars(sa.select(Owner).options(orm.selectinload(Owner.pets)).where(Owner.name == "Ann")).one()
        eq([(p.kind, str(p.price), p.info, p.tags, p.version) for p in a.pets], [("cat", "9.00", {"a": 1}, ["x"], 2)])


@check
def orm_version_counter_sees_a_lost_update():
    with orm.Session(eng) as one, orm.Session(eng) as two:
        p, q = one.scalars(sa.select(Pet)).one(), two.scalars(sa.select(Pet)).one()
        p.kind, q.kind = "fox", "owl"
        one.commit()
        try:
            two.commit()
        except orm.exc.StaleDataError:
            return
    raise AssertionError("no StaleDataError")


@check
def orm_bulk():
    with orm.Session(eng) as s:
        s.execute(sa.insert(Owner), [{"name": "o%d" % i} for i in range(50)])
        ids = s.scalars(sa.insert(Owner).returning(Owner.id, sort_by_parameter_order=True), [{"name": "r%d" % i} for i in range(5)]).all()
        eq(sorted(ids), list(ids))
        s.execute(sa.update(Owner).where(Owner.name.like("o%")).values(name=sa.func.upper(Owner.name)))
        eq(s.scalar(sa.select(sa.func.count()).where(Owner.name.like("O%"))), 50)
        s.execute(sa.delete(Owner).where(Owner.name.like("O%")))
        s.commit()


@check
def orm_queries():
    with orm.Session(eng) as s:
        sub = sa.select(Pet.owner_id, sa.func.count().label("n")).group_by(Pet.owner_id).subquery()
        eq(s.execute(sa.select(Owner.name, sub.c.n).join(sub, sub.c.owner_id == Owner.id)).all(), [("Ann", 1)])
        eq(s.scalars(sa.select(Pet.kind).where(Pet.info["a"].as_integer() == 1, Pet.tags.contains(["x"]))).all(), ["fox"])
        eq(s.execute(sa.select(Owner.name, sa.func.row_number().over(order_by=Owner.name)).order_by(Owner.name).limit(1)).all(), [("Ann", 1)])
        eq(len(s.scalars(sa.select(Owner).where(Owner.id == 900).with_for_update()).all()), 1)
        with s.begin_nested():
            s.execute(sa.update(Owner).where(Owner.id == 900).values(name="Sp"))
        s.rollback()


@check
def downgrade_base():
    with eng.begin() as c:
        c.execute(sa.text("ALTER TABLE pet DROP CONSTRAINT years_ok"))
        c.execute(sa.text("ALTER TABLE pet DROP COLUMN years"))
    alembic(command.downgrade, "base")
    eq(sa.inspect(eng).get_table_names(), ["alembic_version"])


finish()
