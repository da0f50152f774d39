package reports

import (
	"fmt"
	"testing"
)

// kindsOfTables are tables with and without a key, with deletion vectors, and with file
// indexes over the columns that the reports rename and drop.
func kindsOfTables(cols, key string, indexed string) []string {
	ix := fmt.Sprintf("'file-index.bitmap.columns' = '%s', 'file-index.bloom-filter.columns' = '%[1]s', 'file-index.range-bitmap.columns' = '%[1]s'", indexed)
	return []string{
		"(" + cols + ")",
		"(" + cols + ") with ('deletion-vectors.enabled' = 'true')",
		"(" + cols + ") with (" + ix + ")",
		"(" + cols + ", primary key (" + key + ")) with ('bucket' = '1')",
		"(" + cols + ", primary key (" + key + ")) with ('bucket' = '1', 'deletion-vectors.enabled' = 'true', " + ix + ")",
	}
}

// A05: columns are told by their ids, whatever they are called.
func TestA05ColumnsByID(t *testing.T) {
	_, _, c := fresh(t)
	for i, clause := range kindsOfTables("id int, a int, b int, s struct<x int, y int>", "id", "a,b") {
		tab := fmt.Sprintf("t%d", i)
		do(t, c, "create table "+tab+" "+clause, "insert into "+tab+" values (1, 10, 100, row(7, 8))", "alter table "+tab+" rename column a to c")
		want(t, c, "select c from "+tab, "10")
		want(t, c, "select c from "+tab+" where c = 10", "10")
		want(t, c, "select id from "+tab+" where c <> 10")
		if i == 2 || i == 4 {
			do(t, c, "alter table "+tab+" reset ('file-index.bitmap.columns', 'file-index.bloom-filter.columns', 'file-index.range-bitmap.columns')")
		}
		do(t, c, "alter table "+tab+" drop column b", "alter table "+tab+" add column b int")
		want(t, c, "select b from "+tab, "NULL")
		want(t, c, "select id from "+tab+" where b is null", "1")
		want(t, c, "select id from "+tab+" where b = 100")
		do(t, c, "insert into "+tab+" values (2, 20, row(9, 10), 200)")
		// c and b change names.
		do(t, c, "alter table "+tab+" rename column c to z", "alter table "+tab+" rename column b to c", "alter table "+tab+" rename column z to b")
		want(t, c, "select id, b, c from "+tab+" order by id", "1\t10\tNULL", "2\t20\t200")
		want(t, c, "select id from "+tab+" where b = 10", "1")
		want(t, c, "select id from "+tab+" where c = 200", "2")
		want(t, c, "select id from "+tab+" where c = 20")
		want(t, c, "select min(b), max(b), min(c), max(c), count(c) from "+tab, "10\t20\t200\t200\t1")
		do(t, c, "call sys.compact('"+tab+"', compact_strategy => 'full')")
		want(t, c, "select id, b, c from "+tab+" where b > 10 or c is null order by id", "1\t10\tNULL", "2\t20\t200")
	}
}

// A06: statistics and indexes speak of the schema that a file was written with.
func TestA06StatisticsAfterEvolution(t *testing.T) {
	_, _, c := fresh(t)
	for i, clause := range kindsOfTables("id int, score int, a text", "id", "score,a") {
		tab := fmt.Sprintf("t%d", i)
		do(t, c, "create table "+tab+" "+clause, "insert into "+tab+" values (1, 40, '9'), (2, 50, '10')", "insert into "+tab+" values (3, 70, '11')",
			"alter table "+tab+" rename column score to grade")
		want(t, c, "select count(*) from "+tab+" where grade < 60", "2")
		want(t, c, "select id from "+tab+" where grade = 70", "3")
		do(t, c, "alter table "+tab+" add column n text")
		want(t, c, "select count(*) from "+tab+" where n is null", "3")
		want(t, c, "select count(*) from "+tab+" where n is not null", "0")
		want(t, c, "select count(*) from "+tab+" where n = 'x' or grade = 40", "1")
		if i == 2 || i == 4 {
			do(t, c, "alter table "+tab+" reset ('file-index.bitmap.columns', 'file-index.bloom-filter.columns', 'file-index.range-bitmap.columns')")
		}
		do(t, c, "alter table "+tab+" alter column a type int using a::int")
		want(t, c, "select a from "+tab+" where a > 9 order by a", "10", "11")
		want(t, c, "select a from "+tab+" where a = 9", "9")
		want(t, c, "select min(a), max(a) from "+tab, "9\t11")
		want(t, c, "select a from "+tab+" order by a desc limit 1", "11")
		do(t, c, "insert into "+tab+" values (4, 80, 100, 'x')")
		want(t, c, "select a from "+tab+" where a between 10 and 100 order by a", "10", "11", "100")
		want(t, c, "select id from "+tab+" where n is null order by id", "1", "2", "3")
	}
}
