"""Django: migrations of its own applications and of a model that changes, the ORM, inspectdb, the admin's queries."""
import datetime as dt, decimal, io, os, sys, tempfile, uuid

import checks
from checks import SCHEMA, eq, finish, runner

check = runner("django")
SCHEMA += "_django"
work = tempfile.TemporaryDirectory()
sys.path.insert(0, work.name)
app = os.path.join(work.name, "shop")
os.makedirs(os.path.join(app, "migrations"))
for f in ("__init__.py", "migrations/__init__.py"):
    open(os.path.join(app, f), "w").close()

FIRST = """
from django.db import models

class Customer(models.Model):
    name = models.CharField(max_length=60, db_index=True)
    email = models.EmailField(unique=True)
    joined = models.DateTimeField(auto_now_add=True)
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["name"]

class Tag(models.Model):
    label = models.SlugField(primary_key=True)

class Order(models.Model):
    ref = models.UUIDField(primary_key=True)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="orders")
    tags = models.ManyToManyField(Tag)
    day = models.DateField()
    total = models.DecimalField(max_digits=10, decimal_places=2)
    extra = models.JSONField(default=dict)
    took = models.DurationField(null=True)
    blob = models.BinaryField(null=True)
    weight = models.FloatField(null=True)
    %s

    class Meta:
        indexes = [models.Index(fields=["day", "total"], name="order_day_total")]
        constraints = [models.CheckConstraint(condition=models.Q(total__gte=0), name="total_not_negative")]
"""


def models(extra):
    with open(os.path.join(app, "models.py"), "w") as f:
        f.write(FIRST % extra)


models("note = models.TextField(blank=True)")
import django  # noqa: E402
from django.conf import settings  # noqa: E402

settings.configure(
    USE_TZ=True, SECRET_KEY="x", DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django.contrib.admin",
                    "django.contrib.messages", "shop"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {"context_processors": [
        "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages"]}}],
    ROOT_URLCONF="urls", ALLOWED_HOSTS=["*"], STATIC_URL="/static/",
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": checks.DATABASE, "USER": checks.USER,
                           "PASSWORD": checks.PASSWORD, "HOST": checks.HOST, "PORT": checks.PORT,
                           "OPTIONS": {"options": "-c search_path=%s -c paimon.insert_mode=strict" % SCHEMA if os.environ.get("PAIMON_SQL_SERVER") != "postgres"
                                       else "-c search_path=%s" % SCHEMA}}})
with open(os.path.join(work.name, "urls.py"), "w") as f:
    f.write("from django.contrib import admin\nfrom django.urls import path\nfrom shop.models import Order\nadmin.site.register(Order)\n"
            "urlpatterns = [path('admin/', admin.site.urls)]\n")
django.setup()
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, transaction  # noqa: E402
from django.db.models import Avg, Case, Count, Exists, F, Max, OuterRef, Q, Sum, Value, When, Window  # noqa: E402
from django.db.models.functions import Coalesce, Concat, ExtractYear, Lower, RowNumber, TruncMonth  # noqa: E402
from shop.models import Customer, Order, Tag  # noqa: E402

UTC = dt.timezone.utc


def out(*a, **k):
    s = io.StringIO()
    call_command(*a, stdout=s, **k)
    return s.getvalue()


@check
def fresh_schema():
    with connection.cursor() as c:
        c.execute("DROP SCHEMA IF EXISTS %s CASCADE" % SCHEMA)
        c.execute("CREATE SCHEMA %s" % SCHEMA)


@check
def schema_editor_makes_an_unmanaged_table():
    # Statements of the corpus are about this table.
    from django.db import models as m

    class Item(m.Model):
        id = m.BigIntegerField(primary_key=True)
        name = m.CharField(max_length=50)
        price = m.DecimalField(max_digits=10, decimal_places=2, null=True)
        made = m.DateTimeField(null=True)
        ok = m.BooleanField()

        class Meta:
            app_label, managed, db_table = "unmanaged", False, '%s"."dj_item' % checks.SCHEMA

    with connection.cursor() as c:
        c.execute('CREATE SCHEMA IF NOT EXISTS "%s"' % checks.SCHEMA)
        c.execute('DROP TABLE IF EXISTS "%s"."dj_item"' % checks.SCHEMA)
    with connection.schema_editor() as e:
        e.create_model(Item)
    Item.objects.create(id=1, name="one", ok=True)
    eq(Item.objects.get(pk=1).made, None)


@check
def makemigrations():
    assert "Create model Order" in out("makemigrations", "shop", verbosity=1)


@check
def migrate_own_and_contrib_applications():
    assert "Applying shop.0001_initial... OK" in out("migrate", verbosity=1)
    assert "[ ]" not in out("showmigrations")


@check
def migrate_again_does_nothing():
    assert "No migrations to apply" in out("migrate", verbosity=1)


@check
def introspection():
    with connection.cursor() as c:
        names = connection.introspection.table_names(c)
        assert {"shop_order", "shop_customer", "django_migrations"} <= set(names), names
        cols = {f.name: f.type_code for f in connection.introspection.get_table_description(c, "shop_order")}
        eq(sorted(cols), sorted(["ref", "customer_id", "day", "total", "extra", "took", "blob", "weight", "note"]))
        eq(connection.introspection.get_primary_key_column(c, "shop_order"), "ref")
        eq([s["column"] for s in connection.introspection.get_sequences(c, "shop_customer")], ["id"])
        cons = connection.introspection.get_constraints(c, "shop_order")
        assert any(x["primary_key"] and x["columns"] == ["ref"] for x in cons.values()), cons
        assert "total_not_negative" in cons and cons["total_not_negative"]["check"], cons
        eq(connection.introspection.get_relations(c, "shop_order"), {"customer_id": ("id", "shop_customer")})


@check
def inspectdb():
    text = out("inspectdb", "shop_order", "shop_customer")
    for want in ("ref = models.UUIDField(primary_key=True)", "total = models.DecimalField(max_digits=10, decimal_places=2)",
                 "extra = models.JSONField()", "took = models.DurationField(blank=True, null=True)", "day = models.DateField()"):
        assert want in text, text


@check
def create_and_read():
    anna = Customer.objects.create(name="Anna", email="anna@example.com")
    bert = Customer.objects.create(name="Bert", email="bert@example.com", active=False)
    assert anna.pk and bert.pk and anna.pk != bert.pk
    Tag.objects.bulk_create([Tag(label="new"), Tag(label="gift")])
    for i in range(6):
        o = Order.objects.create(ref=uuid.UUID(int=i + 1), customer=anna if i % 2 else bert, day=dt.date(2024, 1 + i % 3, 5),
                                 total=decimal.Decimal(i) + decimal.Decimal("0.50"), extra={"n": i, "a": {"b": [1, 2]}},
                                 took=dt.timedelta(hours=i, days=1), blob=b"\x00\xff", weight=i / 2)
        o.tags.add("new")
    o = Order.objects.get(pk=uuid.UUID(int=3))
    eq((o.total, o.extra, o.took, bytes(o.blob), o.weight), (decimal.Decimal("2.50"), {"n": 2, "a": {"b": [1, 2]}}, dt.timedelta(days=1, hours=2), b"\x00\xff", 1.0))
    eq(o.customer.name, "Bert")


@check
def queries():
    eq(Order.objects.filter(customer__name="Anna", total__gt=2).count(), 2)
    eq([c.name for c in Customer.objects.filter(Q(name__icontains="AN") | Q(email__startswith="bert"))], ["Anna", "Bert"])
    eq(list(Customer.objects.filter(name__iregex="^a").values_list("name", flat=True)), ["Anna"])
    eq(Order.objects.filter(day__month=2, day__year=2024).count(), 2)
    eq(list(Customer.objects.exclude(orders__total__gt=5).values_list("name", flat=True)), ["Bert"])
    eq(Order.objects.filter(ref__in=[uuid.UUID(int=1), uuid.UUID(int=2)]).exists(), True)
    eq(Customer.objects.annotate(big=Exists(Order.objects.filter(customer=OuterRef("pk"), total__gt=5))).filter(big=True).count(), 1)
    eq([o.ref.int for o in Order.objects.select_related("customer").prefetch_related("tags").order_by("-total")[1:3]], [5, 4])
    eq(list(Order.objects.order_by("day").distinct().values_list("day", flat=True)), [dt.date(2024, m, 5) for m in (1, 2, 3)])
    eq(Order.objects.filter(tags__label="new").count(), 6)


@check
def json_lookups():
    eq(Order.objects.filter(extra__n=3).count(), 1)
    eq(Order.objects.filter(extra__a__b__0=1).count(), 6)
    eq(Order.objects.filter(extra__has_key="n").count(), 6)
    eq(Order.objects.filter(extra__contains={"n": 4}).count(), 1)
    eq(Order.objects.filter(extra__n__gte=4).count(), 2)


@check
def aggregates_and_expressions():
    eq(Order.objects.aggregate(s=Sum("total"), m=Max("day"), a=Avg("weight"), n=Count("customer", distinct=True)),
       {"s": decimal.Decimal("18.00"), "m": dt.date(2024, 3, 5), "a": 1.25, "n": 2})
    eq(list(Customer.objects.annotate(n=Count("orders"), s=Coalesce(Sum("orders__total"), decimal.Decimal(0))).order_by("name").values_list("name", "n", "s")),
       [("Anna", 3, decimal.Decimal("10.50")), ("Bert", 3, decimal.Decimal("7.50"))])
    eq(list(Order.objects.annotate(m=TruncMonth("day")).values("m").annotate(n=Count("pk")).order_by("m").values_list("m", "n")),
       [(dt.date(2024, m, 1), 2) for m in (1, 2, 3)])
    eq(Order.objects.annotate(y=ExtractYear("day")).values_list("y", flat=True).first(), 2024)
    eq(list(Customer.objects.annotate(t=Concat(Lower("name"), Value("!"))).values_list("t", flat=True)), ["anna!", "bert!"])
    eq(Order.objects.annotate(k=Case(When(total__gt=3, then=Value("big")), default=Value("small"))).filter(k="big").count(), 3)
    eq([r for r in Order.objects.annotate(r=Window(RowNumber(), partition_by=[F("customer")], order_by="total")).order_by("customer", "total").values_list("r", flat=True)],
       [1, 2, 3, 1, 2, 3])
    eq(Order.objects.filter(day=dt.date(2024, 1, 5)).union(Order.objects.filter(day=dt.date(2024, 2, 5))).count(), 4)


@check
def update_and_delete():
    eq(Order.objects.filter(total__gt=3).update(total=F("total") + 10, note="up"), 3)
    o = Order.objects.get(pk=uuid.UUID(int=4))
    eq((o.total, o.note), (decimal.Decimal("13.50"), "up"))
    o.note = "saved"
    o.save()
    o.refresh_from_db()
    eq(o.note, "saved")
    o.save(update_fields=["note"])
    Order.objects.filter(note="up").update(total=Case(When(ref=uuid.UUID(int=5), then=Value(decimal.Decimal(1))), default=F("total")))
    n, by = Order.objects.get(pk=uuid.UUID(int=6)).delete()
    eq((n, by["shop.Order"]), (2, 1))


@check
def get_or_create_and_duplicates():
    eq([Tag.objects.get_or_create(label="rare")[1] for _ in range(2)], [True, False])
    eq(Customer.objects.update_or_create(email="anna@example.com", defaults={"name": "Anna B"})[1], False)
    try:
        with transaction.atomic():
            Tag.objects.create(label="rare")
    except IntegrityError:
        pass
    else:
        raise AssertionError("no IntegrityError")
    Tag.objects.bulk_create([Tag(label="rare"), Tag(label="x1")], ignore_conflicts=True)
    Customer(id=Customer.objects.first().id, name="Anna C", email="anna@example.com", joined=dt.datetime.now(UTC)).save()
    Order.objects.bulk_create([Order(ref=uuid.UUID(int=1), customer=Customer.objects.first(), day=dt.date(2024, 9, 9), total=3)],
                              update_conflicts=True, update_fields=["day"], unique_fields=["ref"])
    eq(Order.objects.get(pk=uuid.UUID(int=1)).day, dt.date(2024, 9, 9))


@check
def check_constraint_is_an_integrity_error():
    try:
        with transaction.atomic():
            Order.objects.filter(pk=uuid.UUID(int=1)).update(total=-1)
    except IntegrityError as e:
        assert "total_not_negative" in str(e)
    else:
        raise AssertionError("no IntegrityError")


@check
def transactions_and_savepoints():
    with transaction.atomic():
        c = Customer.objects.create(name="Tx", email="tx@example.com")
        try:
            with transaction.atomic():
                Customer.objects.create(name="Inner", email="inner@example.com")
                raise KeyError
        except KeyError:
            pass
        c.name = "Tx2"
        c.save()
    eq(list(Customer.objects.filter(name__in=["Tx", "Tx2", "Inner"]).values_list("name", flat=True)), ["Tx2"])
    with transaction.atomic():
        eq(Order.objects.select_for_update().get(pk=uuid.UUID(int=2)).ref.int, 2)
        eq(Order.objects.select_for_update(skip_locked=True).order_by("ref")[0].ref.int, 1)
    done = []
    with transaction.atomic():
        transaction.on_commit(lambda: done.append(1))
    eq(done, [1])


@check
def server_side_cursor():
    eq(sum(1 for _ in Order.objects.all().iterator(chunk_size=2)), 5)


@check
def bulk_update():
    os_ = list(Order.objects.all())
    for o in os_:
        o.weight = 9.5
    eq(Order.objects.bulk_update(os_, ["weight"]), 5)
    eq(Order.objects.filter(weight=9.5).count(), 5)


@check
def explain():
    assert Order.objects.filter(total__gt=1).explain()


@check
def auth_users_and_sessions():
    from django.contrib.auth.models import Group, Permission, User
    u = User.objects.create_superuser("root", "root@example.com", "secret")
    g = Group.objects.create(name="editors")
    g.permissions.set(Permission.objects.filter(content_type__app_label="shop"))
    u.groups.add(g)
    eq(User.objects.filter(groups__permissions__codename="add_order").distinct().count(), 1)


@check
def admin_pages():
    from django.test import Client
    c = Client()
    assert c.login(username="root", password="secret")
    r = c.get("/admin/shop/order/?q=")
    eq(r.status_code, 200)
    assert b"5 orders" in r.content
    eq(c.get("/admin/shop/order/%s/change/" % uuid.UUID(int=1)).status_code, 200)


@check
def migration_that_changes_columns():
    with open(os.path.join(app, "migrations", "0002_change.py"), "w") as f:
        f.write("""
from django.db import migrations, models
class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AddField("order", "rank", models.IntegerField(default=0)),
        migrations.RenameField("order", "note", "remark"),
        migrations.AlterField("customer", "name", models.CharField(max_length=200)),
        migrations.AlterField("order", "rank", models.BigIntegerField(null=True)),
        migrations.AddIndex("order", models.Index(fields=["rank"], name="order_rank")),
        migrations.RemoveIndex("order", "order_rank"),
        migrations.RemoveConstraint("order", "total_not_negative"),
        migrations.RenameModel("Tag", "Label"),
        migrations.RemoveField("order", "blob"),
        migrations.CreateModel("Log", [("id", models.BigAutoField(primary_key=True)), ("line", models.TextField())]),
    ]
""")
    with open(os.path.join(app, "migrations", "0003_fill.py"), "w") as f:
        f.write("""
from django.db import migrations
def fill(apps, schema_editor):
    apps.get_model("shop", "Order").objects.update(rank=7)
class Migration(migrations.Migration):
    dependencies = [("shop", "0002_change")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
""")
    import importlib
    importlib.invalidate_caches()
    text = out("migrate", "shop", verbosity=1)
    assert "0002_change... OK" in text and "0003_fill... OK" in text, text
    with connection.cursor() as c:
        c.execute("SELECT rank, remark FROM shop_order ORDER BY 1 LIMIT 1")
        eq(c.fetchone()[0], 7)


@check
def migration_backwards():
    assert "Unapplying shop.0002_change... OK" in out("migrate", "shop", "0001", verbosity=1)


@check
def dumpdata_and_loaddata():
    text = out("dumpdata", "shop")
    p = os.path.join(work.name, "d.json")
    open(p, "w").write(text)
    Order.objects.all().delete()
    call_command("loaddata", p, verbosity=0)
    eq(Order.objects.count(), 5)


@check
def flush_empties_tables():
    call_command("flush", interactive=False, verbosity=0)
    eq(Customer.objects.count(), 0)
    eq(Customer.objects.create(name="first", email="f@example.com").pk, 1)


@check
def sqlsequencereset():
    text = out("sqlsequencereset", "shop", no_color=True)
    with connection.cursor() as c:
        c.execute(text)
    assert Customer.objects.create(name="second", email="s@example.com").pk == 2


finish()
