package parser

// subRules are the rules other rules use.
var subRules = map[string]string{
	"exists":     `IF EXISTS`,
	"notexists":  `IF NOT EXISTS`,
	"aggrargs":   `'(' '*' ')' | '(' ORDER BY funcarg, ')' | '(' funcarg, [ORDER BY funcarg,] ')'`,
	"opsig":      `anyop opargs`,
	"handler":    `anyname`,
	"fdwopt":     `HANDLER handler | NO HANDLER | VALIDATOR handler | NO VALIDATOR`,
	"mapuser":    `USER | role`,
	"evtwhen":    `name IN '(' string, ')'`,
	"execproc":   `EXECUTE (FUNCTION | PROCEDURE) funcname`,
	"trigarg":    `int | float | string | label`,
	"trigevent":  `INSERT | DELETE | UPDATE OF name, | UPDATE | TRUNCATE`,
	"transition": `(NEW | OLD) (TABLE | ROW) [AS] name`,
	"opcpurpose": `FOR SEARCH | FOR ORDER BY anyname`,
	"opcitem": `OPERATOR int anyop [opargs] [opcpurpose] | FUNCTION int ['(' type, ')'] funcsig
		| STORAGE type`,
	"opcdrop":   `(OPERATOR | FUNCTION) int '(' type, ')'`,
	"pubobj":    `TABLE relation ['(' name, ')'] [pubwhere] | TABLES IN SCHEMA (CURRENT_SCHEMA | name) | relation ['(' name, ')'] [pubwhere] | CURRENT_SCHEMA`,
	"pubwhere":  `WHERE '(' expr ')'`,
	"statparam": `key`,
	"sqlfunc":   `SQL WITH FUNCTION funcsig`,
	"policycmd": `ALL | SELECT | INSERT | UPDATE | DELETE`,
	"tskind":    `PARSER | DICTIONARY | TEMPLATE | CONFIGURATION`,
	"newname":   `RENAME TO name`,
	"owner":     `OWNER TO role`,
	"setschema": `SET SCHEMA name`,
	"opdef":     `label '=' (NONE | defarg)`,
	"domalter": `SET DEFAULT expr | DROP DEFAULT | DROP NOT NULL | SET NOT NULL | ADD tabcons
		| DROP CONSTRAINT [exists] name dropb | VALIDATE CONSTRAINT name
		| RENAME CONSTRAINT name TO name | newname | owner | setschema`,
	"typealter": `ADD ATTRIBUTE colname dropb | DROP ATTRIBUTE [exists] name dropb
		| ALTER ATTRIBUTE name [SET DATA] TYPE type [COLLATE anyname] dropb`,
	"objname": `ACCESS METHOD name | EVENT TRIGGER name | EXTENSION name | FOREIGN DATA WRAPPER name | LANGUAGE name
		| PROCEDURAL LANGUAGE name | PUBLICATION name | SCHEMA name | SERVER name | DATABASE name | ROLE name
		| SUBSCRIPTION name | TABLESPACE name`,
	"objany": `TABLE anyname | SEQUENCE anyname | VIEW anyname | MATERIALIZED VIEW anyname | INDEX anyname
		| FOREIGN TABLE anyname | COLLATION anyname | CONVERSION anyname | STATISTICS anyname | TEXT SEARCH tskind anyname`,
	"extmember": `objname | objany | AGGREGATE funcname aggrargs | CAST '(' type AS type ')' | DOMAIN type
		| OPERATOR CLASS anyname USING name | OPERATOR FAMILY anyname USING name | OPERATOR opsig
		| (FUNCTION | PROCEDURE | ROUTINE) funcsig | TRANSFORM FOR type LANGUAGE name | TYPE type`,
	"labelobj": `objany | COLUMN anyname | objname | (TYPE | DOMAIN) type | AGGREGATE funcname aggrargs
		| (FUNCTION | PROCEDURE | ROUTINE) funcsig | LARGE OBJECT number`,
	"dependson": `[NO] DEPENDS ON EXTENSION name`,
	"settbs":    `ALL IN TABLESPACE name [OWNED BY role,] SET TABLESPACE name [NOWAIT]`,
}

// statementRules are the statements without a tree.
var statementRules = []statementRule{
	{kind: "CREATE ACCESS METHOD", rule: `CREATE ACCESS METHOD name TYPE (INDEX | TABLE) HANDLER handler`},
	{kind: "CREATE AGGREGATE", rule: `CREATE [OR REPLACE] AGGREGATE funcname (aggrargs def | '(' (ident '=' defarg), ')')`},
	{
		kind: "CREATE ASSERTION", rule: `CREATE ASSERTION anyname CHECK '(' expr ')' attrs`,
		fail: "CREATE ASSERTION is not yet implemented",
	},
	{kind: "CREATE CAST", rule: `CREATE CAST '(' type AS type ')' (WITH FUNCTION funcsig | WITHOUT FUNCTION | WITH INOUT) [AS (IMPLICIT | ASSIGNMENT)]`},
	{kind: "CREATE CATALOG", rule: `CREATE CATALOG [notexists] name [COMMENT string] [(WITH | PROPERTIES) opts]`},
	{kind: "CREATE COLLATION", rule: `CREATE COLLATION [notexists] anyname (def | FROM anyname)`},
	{kind: "CREATE CONVERSION", rule: `CREATE [DEFAULT] CONVERSION anyname FOR string TO string FROM anyname`},
	{kind: "CREATE DOMAIN", rule: `CREATE DOMAIN anyname [AS] type domcons`},
	{
		kind: "CREATE EVENT TRIGGER",
		rule: `CREATE EVENT TRIGGER name ON label [WHEN evtwhen {AND evtwhen}] execproc '(' ')'`,
	},
	{kind: "CREATE EXTENSION", rule: `CREATE EXTENSION [notexists] name [WITH] {SCHEMA name | VERSION wordstr | CASCADE}`},
	{kind: "CREATE FOREIGN DATA WRAPPER", rule: `CREATE FOREIGN DATA WRAPPER name {fdwopt} [genopts]`},
	{
		kind: "CREATE FOREIGN TABLE",
		rule: `CREATE FOREIGN TABLE [notexists] qname (PARTITION OF qname ['(' typedelem, ')'] bound
			| '(' [elem,] ')' [INHERITS '(' qname, ')']) SERVER name [genopts]`,
	},
	{kind: "CREATE LANGUAGE", rule: `CREATE [OR REPLACE] [TRUSTED] [PROCEDURAL] LANGUAGE name [HANDLER handler [INLINE handler] [VALIDATOR handler | NO VALIDATOR]]`},
	{
		kind: "CREATE OPERATOR CLASS",
		rule: `CREATE OPERATOR CLASS anyname [DEFAULT] FOR TYPE type USING name [FAMILY anyname] AS opcitem,`,
	},
	{kind: "CREATE OPERATOR FAMILY", rule: `CREATE OPERATOR FAMILY anyname USING name`},
	{kind: "CREATE OPERATOR", rule: `CREATE OPERATOR anyop def`},
	{
		kind: "CREATE POLICY",
		rule: `CREATE POLICY name ON qname [AS ident] [FOR policycmd] [TO role,] [USING '(' expr ')'] [WITH CHECK '(' expr ')']`,
	},
	{kind: "CREATE PUBLICATION", rule: `CREATE PUBLICATION name [FOR ALL TABLES | FOR publist] [WITH def]`},
	{
		kind: "CREATE RULE",
		rule: `CREATE [OR REPLACE] RULE name AS ON (SELECT | UPDATE | DELETE | INSERT) TO qname [WHERE expr]
			DO [INSTEAD | ALSO] (NOTHING | query | '(' [query] {';' [query]} ')')`,
	},
	{
		kind: "CREATE SERVER",
		rule: `CREATE SERVER [notexists] name [TYPE string] [VERSION (string | NULL)] FOREIGN DATA WRAPPER name [genopts]`,
	},
	{kind: "CREATE STATISTICS", rule: `CREATE STATISTICS [notexists] anyname ['(' name, ')'] ON statparam, FROM fromlist`},
	{kind: "CREATE SUBSCRIPTION", rule: `CREATE SUBSCRIPTION name CONNECTION string PUBLICATION name, [WITH def]`},
	{kind: "CREATE TABLESPACE", rule: `CREATE TABLESPACE name [OWNER role] LOCATION string [WITH opts]`},
	{kind: "CREATE TEXT SEARCH", rule: `CREATE TEXT SEARCH tskind anyname def`},
	{
		kind: "CREATE TRANSFORM",
		rule: `CREATE [OR REPLACE] TRANSFORM FOR type LANGUAGE name '(' (FROM sqlfunc [',' TO sqlfunc] | TO sqlfunc [',' FROM sqlfunc]) ')'`,
	},
	{
		kind: "CREATE TRIGGER",
		rule: `CREATE [OR REPLACE] TRIGGER name (BEFORE | AFTER | INSTEAD OF) trigevent {OR trigevent} ON qname
			[REFERENCING transition {transition}] [FOR [EACH] (ROW | STATEMENT)] [WHEN '(' expr ')'] execproc '(' [trigarg,] ')'`,
	},
	{
		kind: "CREATE TRIGGER",
		rule: `CREATE [OR REPLACE] CONSTRAINT TRIGGER name AFTER trigevent {OR trigevent} ON qname [FROM qname] attrs
			FOR EACH ROW [WHEN '(' expr ')'] execproc '(' [trigarg,] ')'`,
	},
	{
		kind: "CREATE TYPE",
		rule: `CREATE TYPE anyname [AS '(' [colname,] ')' | AS ENUM '(' [string,] ')' | AS RANGE def | def]`,
	},
	{kind: "CREATE USER MAPPING", rule: `CREATE USER MAPPING [notexists] FOR mapuser SERVER name [genopts]`},

	{kind: "ALTER AGGREGATE", rule: `ALTER AGGREGATE funcname aggrargs (newname | owner | setschema)`},
	{kind: "ALTER COLLATION", rule: `ALTER COLLATION anyname (newname | owner | setschema | REFRESH VERSION)`},
	{kind: "ALTER CONVERSION", rule: `ALTER CONVERSION anyname (newname | owner | setschema)`},
	{kind: "ALTER DOMAIN", rule: `ALTER DOMAIN anyname domalter`},
	{kind: "ALTER EVENT TRIGGER", rule: `ALTER EVENT TRIGGER name (ENABLE [REPLICA | ALWAYS] | DISABLE | newname | owner)`},
	{kind: "ALTER EXTENSION", rule: `ALTER EXTENSION name (UPDATE {TO wordstr} | setschema | (ADD | DROP) extmember)`},
	{
		kind: "ALTER FOREIGN DATA WRAPPER",
		rule: `ALTER FOREIGN DATA WRAPPER name (newname | owner | fdwopt {fdwopt} [altopts] | altopts)`,
	},
	{kind: "ALTER FUNCTION", rule: `ALTER FUNCTION funcsig (newname | owner | setschema | dependson | funcopts [RESTRICT])`},
	{kind: "ALTER PROCEDURE", rule: `ALTER PROCEDURE funcsig (newname | owner | setschema | dependson | funcopts [RESTRICT])`},
	{kind: "ALTER ROUTINE", rule: `ALTER ROUTINE funcsig (newname | owner | setschema | dependson | funcopts [RESTRICT])`},
	{kind: "ALTER INDEX", rule: `ALTER INDEX (settbs | qname dependson)`},
	{kind: "ALTER LANGUAGE", rule: `ALTER [PROCEDURAL] LANGUAGE name (newname | owner)`},
	{kind: "ALTER LARGE OBJECT", rule: `ALTER LARGE OBJECT number owner`},
	{kind: "ALTER MATERIALIZED VIEW", rule: `ALTER MATERIALIZED VIEW (settbs | qname dependson)`},
	{kind: "ALTER OPERATOR CLASS", rule: `ALTER OPERATOR CLASS anyname USING name (newname | owner | setschema)`},
	{
		kind: "ALTER OPERATOR FAMILY",
		rule: `ALTER OPERATOR FAMILY anyname USING name (newname | owner | setschema | ADD opcitem, | DROP opcdrop,)`,
	},
	{kind: "ALTER OPERATOR", rule: `ALTER OPERATOR opsig (owner | setschema | SET '(' opdef, ')')`},
	{
		kind: "ALTER POLICY",
		rule: `ALTER POLICY (exists name ON qname newname | name ON qname (newname | [TO role,] [USING '(' expr ')'] [WITH CHECK '(' expr ')']))`,
	},
	{kind: "ALTER PUBLICATION", rule: `ALTER PUBLICATION name (newname | owner | SET def | (ADD | SET | DROP) publist)`},
	{kind: "ALTER RULE", rule: `ALTER RULE name ON qname newname`},
	{
		kind: "ALTER SERVER",
		rule: `ALTER SERVER name (newname | owner | VERSION (string | NULL) [altopts] | altopts)`,
	},
	{kind: "ALTER STATISTICS", rule: `ALTER STATISTICS [exists] anyname (SET STATISTICS signed | newname | owner | setschema)`},
	{
		kind: "ALTER SUBSCRIPTION",
		rule: `ALTER SUBSCRIPTION name (newname | owner | SET PUBLICATION name, [WITH def] | SET def | CONNECTION string
			| REFRESH PUBLICATION [WITH def] | (ADD | DROP) PUBLICATION name, [WITH def] | ENABLE | DISABLE | SKIP def)`,
	},
	{kind: "ALTER TABLE", rule: `ALTER TABLE settbs`},
	{kind: "ALTER TABLESPACE", rule: `ALTER TABLESPACE name (newname | owner | (SET | RESET) opts)`},
	{
		kind: "ALTER TEXT SEARCH",
		rule: `ALTER TEXT SEARCH (DICTIONARY anyname def
			| CONFIGURATION anyname (ADD MAPPING FOR name, WITH anyname, | ALTER MAPPING FOR name, WITH anyname,
				| ALTER MAPPING FOR name, REPLACE anyname WITH anyname | ALTER MAPPING REPLACE anyname WITH anyname
				| DROP MAPPING [exists] FOR name,)
			| tskind anyname (newname | setschema) | (DICTIONARY | CONFIGURATION) anyname owner)`,
	},
	{kind: "ALTER TRIGGER", rule: `ALTER TRIGGER name ON qname (newname | dependson)`},
	{
		kind: "ALTER TYPE",
		rule: `ALTER TYPE anyname (ADD VALUE [notexists] string [(BEFORE | AFTER) string] | RENAME VALUE string TO string
			| RENAME ATTRIBUTE name TO name dropb | newname | owner | setschema | SET '(' opdef, ')' | typealter,)`,
	},
	{kind: "ALTER USER MAPPING", rule: `ALTER USER MAPPING FOR mapuser SERVER name altopts`},

	{kind: "DROP AGGREGATE", rule: `DROP AGGREGATE [exists] (funcname aggrargs), dropb`},
	{kind: "DROP CAST", rule: `DROP CAST [exists] '(' type AS type ')' dropb`},
	{kind: "DROP CATALOG", rule: `DROP CATALOG [exists] name`},
	{kind: "DROP OPERATOR CLASS", rule: `DROP OPERATOR CLASS [exists] anyname USING name dropb`},
	{kind: "DROP OPERATOR FAMILY", rule: `DROP OPERATOR FAMILY [exists] anyname USING name dropb`},
	{kind: "DROP OPERATOR", rule: `DROP OPERATOR [exists] opsig, dropb`},
	{kind: "DROP SUBSCRIPTION", rule: `DROP SUBSCRIPTION [exists] name dropb`},
	{kind: "DROP TABLESPACE", rule: `DROP TABLESPACE [exists] name`},
	{kind: "DROP TRANSFORM", rule: `DROP TRANSFORM [exists] FOR type LANGUAGE name dropb`},
	{kind: "DROP USER MAPPING", rule: `DROP USER MAPPING [exists] FOR mapuser SERVER name`},

	{kind: "SECURITY LABEL", rule: `SECURITY LABEL [FOR wordstr] ON labelobj IS (string | NULL)`},
	{
		kind: "IMPORT FOREIGN SCHEMA",
		rule: `IMPORT FOREIGN SCHEMA name [(LIMIT TO | EXCEPT) '(' relation, ')'] FROM SERVER name INTO name [genopts]`,
	},
	{kind: "LOAD", rule: `LOAD string`},
	{kind: "REFRESH TABLE", rule: `REFRESH TABLE qname`},
	{kind: "MSCK REPAIR TABLE", rule: `MSCK REPAIR TABLE qname`},
}
