// Command goclients runs the checks of gorm against PAIMON_SQL_DSN.
package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/datatypes"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

var passed, failed int

// check runs one check and prints its line.
func check(name string, f func() error) {
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return f()
	}()
	if err == nil {
		passed++
		fmt.Printf("gorm: %s: ok\n", name)
		return
	}
	failed++
	why := strings.Join(strings.Fields(err.Error()), " ")
	fmt.Printf("gorm: %s: FAIL %.300s\n", name, why)
}

func eq(got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("got %v (%T), want %v (%T)", got, got, want, want)
	}
	return nil
}

type company struct {
	ID   uint
	Name string `gorm:"size:60;index"`
}

type person struct {
	gorm.Model
	Name      string         `gorm:"not null"`
	Born      datatypes.Date `gorm:"type:date"`
	Price     float64        `gorm:"type:numeric(10,2);default:1.5;check:price_ok,price >= 0"`
	Info      datatypes.JSON `gorm:"type:jsonb"`
	Active    *bool          `gorm:"default:true"`
	Blob      []byte
	CompanyID *uint
	Company   *company
	Mails     []mail
	Langs     []language `gorm:"many2many:person_langs"`
}

type mail struct {
	ID       uint
	PersonID uint
	Addr     string `gorm:"type:varchar(80)"`
}

type language struct {
	Code string `gorm:"primaryKey;size:8"`
}

// kv has a key that the program gives.
type kv struct {
	K string `gorm:"primaryKey"`
	V int
}

func main() {
	schema := os.Getenv("PAIMON_SQL_SCHEMA")
	if schema == "" {
		schema = "compat"
	}
	schema += "_gorm"
	dsn := os.Getenv("PAIMON_SQL_DSN")
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	db, err := gorm.Open(postgres.Open(dsn+sep+"search_path="+schema), &gorm.Config{Logger: logger.Discard, TranslateError: true})
	check("open", func() error { return err })
	if err != nil {
		finish()
	}
	check("setup", func() error {
		return db.Exec("DROP SCHEMA IF EXISTS " + schema + " CASCADE; CREATE SCHEMA " + schema).Error
	})
	models := []any{&company{}, &language{}, &person{}, &mail{}, &kv{}}
	check("automigrate", func() error { return db.AutoMigrate(models...) })
	check("automigrate-again-changes-nothing", func() error {
		var sql []string
		s := db.Session(&gorm.Session{Logger: recorder{logger.Discard, &sql}})
		if err := s.AutoMigrate(models...); err != nil {
			return err
		}
		for _, q := range sql {
			if strings.HasPrefix(q, "ALTER") || strings.HasPrefix(q, "CREATE") {
				return errors.New(q)
			}
		}
		return nil
	})
	var ann person
	check("create-with-associations", func() error {
		ann = person{Name: "Ann", Born: datatypes.Date(time.Date(1980, 2, 3, 0, 0, 0, 0, time.UTC)), Info: datatypes.JSON(`{"a": {"b": 1}}`), Blob: []byte{0, 255},
			Company: &company{Name: "Co"}, Mails: []mail{{Addr: "a@x"}, {Addr: "b@x"}}, Langs: []language{{"de"}, {"en"}}}
		if err := db.Create(&ann).Error; err != nil {
			return err
		}
		return eq([]any{ann.ID, ann.Price, *ann.Active, ann.Mails[1].ID}, []any{uint(1), 1.5, true, uint(2)})
	})
	check("preload-and-joins", func() error {
		var p person
		if err := db.Preload("Mails").Preload("Langs").Joins("Company").First(&p, "people.name = ?", "Ann").Error; err != nil {
			return err
		}
		return eq([]any{p.Company.Name, len(p.Mails), len(p.Langs), p.Blob}, []any{"Co", 2, 2, []byte{0, 255}})
	})
	check("create-in-batches", func() error {
		var ps []person
		for i := range 25 {
			ps = append(ps, person{Name: fmt.Sprintf("p%02d", i)})
		}
		if err := db.CreateInBatches(ps, 10).Error; err != nil {
			return err
		}
		var n int64
		return errors.Join(db.Model(&person{}).Where("name LIKE ?", "p%").Count(&n).Error, eq(n, int64(25)))
	})
	check("json-query", func() error {
		var n int64
		return errors.Join(db.Model(&person{}).Where(datatypes.JSONQuery("info").Equals(1, "a", "b")).Count(&n).Error, eq(n, int64(1)))
	})
	check("update-with-expression", func() error {
		r := db.Model(&person{}).Where("name = ?", "Ann").Updates(map[string]any{"price": gorm.Expr("price * ?", 2)})
		var p person
		return errors.Join(r.Error, eq(r.RowsAffected, int64(1)), db.First(&p, ann.ID).Error, eq(p.Price, 3.0))
	})
	check("upsert", func() error {
		for v := range 2 {
			err := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "k"}}, DoUpdates: clause.AssignmentColumns([]string{"v"})}).Create(&[]kv{{"a", v}, {"b", v}}).Error
			if err != nil {
				return err
			}
		}
		var sum int
		return errors.Join(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&kv{"a", 9}).Error, db.Model(&kv{}).Select("sum(v)").Scan(&sum).Error, eq(sum, 2))
	})
	check("first-or-create-and-save", func() error {
		x := kv{}
		return errors.Join(db.Where(kv{K: "c"}).Attrs(kv{V: 4}).FirstOrCreate(&x).Error, eq(x.V, 4), db.Save(&kv{"c", 5}).Error,
			db.First(&x, "k = ?", "c").Error, eq(x.V, 5))
	})
	check("soft-delete", func() error {
		var n, all int64
		return errors.Join(db.Where("name = ?", "p00").Delete(&person{}).Error, db.Model(&person{}).Count(&n).Error,
			db.Unscoped().Model(&person{}).Count(&all).Error, eq(all-n, int64(1)))
	})
	check("group-having-subquery", func() error {
		var rows []struct {
			Price float64
			N     int
		}
		sub := db.Model(&person{}).Select("avg(price)")
		err := db.Model(&person{}).Select("price, count(*) AS n").Where("price >= (?) - 5", sub).Group("price").Having("count(*) > ?", 1).Find(&rows).Error
		return errors.Join(err, eq(len(rows), 1))
	})
	check("transaction-and-savepoint", func() error {
		_ = db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&kv{"tx", 1}).Error; err != nil {
				return err
			}
			_ = tx.Transaction(func(tx *gorm.DB) error {
				tx.Create(&kv{"inner", 1})
				return errors.New("back")
			})
			return nil
		})
		var n int64
		return errors.Join(db.Model(&kv{}).Where("k IN ?", []string{"tx", "inner"}).Count(&n).Error, eq(n, int64(1)))
	})
	check("lock", func() error {
		return db.Transaction(func(tx *gorm.DB) error {
			return tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&kv{}, "k = ?", "a").Error
		})
	})
	check("check-constraint", func() error {
		err := db.Model(&person{}).Where("id = ?", ann.ID).Update("price", -1).Error
		var pe *pgconn.PgError
		if !errors.Is(err, gorm.ErrCheckConstraintViolated) && !(errors.As(err, &pe) && pe.Code == "23514") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	check("find-in-batches-and-rows", func() error {
		n := 0
		err := db.FindInBatches(&[]person{}, 7, func(*gorm.DB, int) error { n++; return nil }).Error
		rows, err2 := db.Model(&kv{}).Rows()
		if err2 != nil {
			return err2
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var x kv
			if err := db.ScanRows(rows, &x); err != nil {
				return err
			}
		}
		return errors.Join(err, eq(n, 4), rows.Err())
	})
	check("migrator", func() error {
		m := db.Migrator()
		type kv struct {
			K    string `gorm:"primaryKey"`
			V    int64
			More string `gorm:"default:none"`
		}
		if err := errors.Join(m.AddColumn(&kv{}, "More"), m.AlterColumn(&kv{}, "V"), m.RenameColumn(&kv{}, "more", "extra"), m.DropColumn(&kv{}, "extra")); err != nil {
			return err
		}
		types, err := m.ColumnTypes(&kv{})
		if err != nil {
			return err
		}
		kinds := map[string]string{}
		for _, t := range types {
			kinds[t.Name()] = t.DatabaseTypeName()
		}
		indexes, err := m.GetIndexes(&company{})
		return errors.Join(err, eq(kinds, map[string]string{"k": "text", "v": "int8"}), eq(len(indexes) > 0, true), eq(m.HasConstraint(&person{}, "price_ok"), true),
			eq(m.HasTable(&kv{}), true), m.DropTable(&kv{}), eq(m.HasTable(&kv{}), false))
	})
	finish()
}

func finish() {
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}
