package function

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// System information and administration: what psql, drivers and tools ask of a
// server. What concerns the catalog is answered through Env.Catalog.

type rowFunc = func(c *Call, args []types.Datum) (types.Datum, error)

// sys makes an overload of a stable function. strict functions are NULL when an
// argument is.
func sys(name string, strict bool, ret types.Type, args []types.Type, f rowFunc) *Overload {
	k := rowFn(f)
	if strict {
		k = strictRowFn(f)
	}
	return &Overload{Name: name, Args: args, Ret: ret, Strict: strict, Volatility: Stable, Kernel: k, Doc: "System information or administration: " + strings.ReplaceAll(name, "_", " ") + "."}
}

func constant(v types.Datum) rowFunc {
	return func(*Call, []types.Datum) (types.Datum, error) { return v, nil }
}

// catalogText answers through CatalogEnv.Text.
func catalogText(name string) rowFunc {
	return func(c *Call, args []types.Datum) (types.Datum, error) {
		cat := catalogOf(c.Env)
		if cat == nil {
			return nil, nil
		}
		s, err := cat.Text(callCtx(c), name, append([]types.Datum(nil), args...))
		if err != nil || s == nil {
			return nil, err
		}
		return *s, nil
	}
}

func callCtx(c *Call) context.Context {
	if c.Ctx != nil {
		return c.Ctx
	}
	return context.Background()
}

func action(name string) rowFunc {
	return func(c *Call, args []types.Datum) (types.Datum, error) {
		cat := catalogOf(c.Env)
		if cat == nil {
			return nil, nil
		}
		return cat.Action(callCtx(c), name, append([]types.Datum(nil), args...))
	}
}

func systemInfo() []*Overload {
	oid, txt, name, b := tOID, tText, tName, tBool
	none := []types.Type(nil)
	ts := func(t ...types.Type) []types.Type { return t }
	reg := func(k types.Kind) types.Type { return types.Of(k) }
	var out []*Overload
	add := func(o ...*Overload) { out = append(out, o...) }

	add(
		sys("version", false, txt, none, func(c *Call, _ []types.Datum) (types.Datum, error) {
			if c.Env != nil {
				if v, ok := c.Env.Setting("paimon.version_string"); ok && v != "" {
					return v, nil
				}
				v, _ := c.Env.Setting("paimon.version")
				return "PostgreSQL 15.0 (paimon-sql " + v + ")", nil
			}
			return "PostgreSQL 15.0 (paimon-sql)", nil
		}),
		sys("current_database", false, name, none, func(c *Call, _ []types.Datum) (types.Datum, error) { return c.Env.Database(), nil }),
		sys("current_catalog", false, name, none, func(c *Call, _ []types.Datum) (types.Datum, error) { return c.Env.Database(), nil }),
		sys("current_user", false, name, none, func(c *Call, _ []types.Datum) (types.Datum, error) { return c.Env.User(), nil }),
		sys("session_user", false, name, none, func(c *Call, _ []types.Datum) (types.Datum, error) {
			if u, ok := c.Env.Setting("session_authorization"); ok && u != "" {
				return u, nil
			}
			return c.Env.User(), nil
		}),
		sys("current_schema", false, name, none, func(c *Call, _ []types.Datum) (types.Datum, error) {
			if p := c.Env.SearchPath(false); len(p) > 0 {
				return p[0], nil
			}
			return nil, nil
		}),
		sys("current_schemas", true, types.ArrayOf(name), ts(b), func(c *Call, a []types.Datum) (types.Datum, error) {
			out := []types.Datum{}
			for _, s := range c.Env.SearchPath(a[0].(bool)) {
				out = append(out, s)
			}
			return out, nil
		}),
		sys("pg_backend_pid", false, tInt4, none, func(c *Call, _ []types.Datum) (types.Datum, error) { return int64(c.Env.BackendPID()), nil }),
		sys("current_setting", true, txt, ts(txt), func(c *Call, a []types.Datum) (types.Datum, error) {
			if v, ok := c.Env.Setting(a[0].(string)); ok {
				return v, nil
			}
			return nil, pgerr.New(pgerr.UndefinedObject, "unrecognized configuration parameter %q", a[0].(string))
		}),
		sys("current_setting", true, txt, ts(txt, b), func(c *Call, a []types.Datum) (types.Datum, error) {
			if v, ok := c.Env.Setting(a[0].(string)); ok {
				return v, nil
			}
			if a[1].(bool) {
				return nil, nil
			}
			return nil, pgerr.New(pgerr.UndefinedObject, "unrecognized configuration parameter %q", a[0].(string))
		}),
	)
	setConfig := sys("set_config", false, txt, ts(txt, txt, b), nil)
	setConfig.Volatility = Volatile
	setConfig.Kernel = volatileFn(func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[0] == nil {
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "SET requires parameter name")
		}
		local, _ := a[2].(bool)
		v, ok := a[1].(string)
		if r, can := c.Env.(interface {
			ResetSetting(name string, local bool) error
		}); can && !ok {
			if err := r.ResetSetting(a[0].(string), local); err != nil {
				return nil, err
			}
		} else if err := c.Env.SetSetting(a[0].(string), v, local); err != nil {
			return nil, err
		}
		now, _ := c.Env.Setting(a[0].(string))
		return now, nil
	})
	add(setConfig)

	typeof := sys("pg_typeof", false, reg(types.RegType), ts(types.Of(types.Any)), func(c *Call, _ []types.Datum) (types.Datum, error) {
		return int64(c.ArgTypes[0].OID()), nil
	})
	add(typeof)

	format := func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[0] == nil {
			return nil, nil
		}
		mod, has := a[1].(int64)
		if !has {
			mod = -1
		}
		return formatTypeOID(c, a[0].(int64), int32(mod), has), nil
	}
	add(sys("format_type", false, txt, ts(oid, tInt4), format))

	// Definitions, by OID.
	for _, f := range []struct {
		name string
		args []types.Type
	}{
		{"pg_get_userbyid", ts(oid)},
		{"pg_get_expr", ts(reg(types.NodeTree), oid)}, {"pg_get_expr", ts(reg(types.NodeTree), oid, b)},
		{"pg_get_indexdef", ts(oid)}, {"pg_get_indexdef", ts(oid, tInt4, b)},
		{"pg_get_constraintdef", ts(oid)}, {"pg_get_constraintdef", ts(oid, b)},
		{"pg_get_viewdef", ts(oid)}, {"pg_get_viewdef", ts(oid, b)}, {"pg_get_viewdef", ts(oid, tInt4)},
		{"pg_get_viewdef", ts(txt)}, {"pg_get_viewdef", ts(txt, b)},
		{"pg_get_functiondef", ts(oid)}, {"pg_get_function_result", ts(oid)}, {"pg_get_function_arguments", ts(oid)},
		{"pg_get_function_identity_arguments", ts(oid)}, {"pg_get_function_arg_default", ts(oid, tInt4)}, {"pg_get_function_sqlbody", ts(oid)},
		{"pg_get_triggerdef", ts(oid)}, {"pg_get_triggerdef", ts(oid, b)}, {"pg_get_ruledef", ts(oid)}, {"pg_get_ruledef", ts(oid, b)},
		{"pg_get_partkeydef", ts(oid)}, {"pg_get_partition_constraintdef", ts(oid)}, {"pg_get_statisticsobjdef", ts(oid)},
		{"pg_get_statisticsobjdef_columns", ts(oid)}, {"pg_get_serial_sequence", ts(txt, txt)},
		{"obj_description", ts(oid, name)}, {"obj_description", ts(oid)}, {"col_description", ts(oid, tInt4)}, {"shobj_description", ts(oid, name)},
		{"pg_tablespace_location", ts(oid)}, {"pg_relation_filepath", ts(reg(types.RegClass))}, {"pg_describe_object", ts(oid, oid, tInt4)},
	} {
		ret := txt
		if f.name == "pg_get_userbyid" {
			ret = name
		}
		o := sys(f.name, true, ret, f.args, catalogText(f.name))
		add(o)
	}
	// Visibility.
	for _, n := range []string{"table", "type", "function", "operator", "opclass", "opfamily", "conversion", "collation", "ts_config", "ts_dict", "ts_parser", "ts_template", "statistics_obj"} {
		fn := "pg_" + n + "_is_visible"
		add(sys(fn, true, b, ts(oid), func(c *Call, a []types.Datum) (types.Datum, error) {
			cat := catalogOf(c.Env)
			if cat == nil {
				return true, nil
			}
			v, known := cat.Visible(callCtx(c), fn, uint32(a[0].(int64)))
			if !known {
				return nil, nil
			}
			return v, nil
		}))
	}
	// Privileges on objects.
	for _, p := range []string{"table", "any_column", "schema", "database", "function", "language", "sequence", "tablespace", "type", "server", "foreign_data_wrapper", "parameter"} {
		fn := "has_" + p + "_privilege"
		for _, obj := range []types.Type{oid, txt} {
			add(sys(fn, true, b, ts(obj, txt), action(fn)))
			for _, who := range []types.Type{name, oid} {
				add(sys(fn, true, b, ts(who, obj, txt), action(fn)))
			}
		}
	}
	for _, obj := range []types.Type{oid, txt} {
		for _, col := range []types.Type{txt, types.Of(types.Int2)} {
			add(sys("has_column_privilege", true, b, ts(obj, col, txt), action("has_column_privilege")))
			for _, who := range []types.Type{name, oid} {
				add(sys("has_column_privilege", true, b, ts(who, obj, col, txt), action("has_column_privilege")))
			}
		}
	}
	for _, r := range []types.Type{name, oid} {
		add(sys("pg_has_role", true, b, ts(r, txt), action("pg_has_role")))
		for _, who := range []types.Type{name, oid} {
			add(sys("pg_has_role", true, b, ts(who, r, txt), action("pg_has_role")))
		}
	}
	acl := types.ArrayOf(types.Of(types.AclItem))
	add(
		sys("acldefault", true, acl, ts(types.Of(types.Char), oid), action("acldefault")),
		sys("makeaclitem", true, types.Of(types.AclItem), ts(oid, oid, txt, b), action("makeaclitem")),
		sys("row_security_active", true, b, ts(oid), constant(false)),
		sys("row_security_active", true, b, ts(txt), constant(false)),
	)
	// Sizes.
	for _, n := range []string{"pg_table_size", "pg_total_relation_size", "pg_relation_size", "pg_indexes_size"} {
		add(sys(n, true, tInt8, ts(reg(types.RegClass)), tableSize(n)))
	}
	add(sys("pg_relation_size", true, tInt8, ts(reg(types.RegClass), txt), tableSize("pg_relation_size")))
	for _, t := range []types.Type{oid, name} {
		add(sys("pg_database_size", true, tInt8, ts(t), constant(int64(0))), sys("pg_tablespace_size", true, tInt8, ts(t), constant(int64(0))))
	}
	add(
		sys("pg_size_pretty", true, txt, ts(tInt8), func(_ *Call, a []types.Datum) (types.Datum, error) { return sizePretty(a[0].(int64)), nil }),
		sys("pg_size_pretty", true, txt, ts(tNum), func(_ *Call, a []types.Datum) (types.Datum, error) {
			n, ok := a[0].(*numeric.Dec).Trunc(0).Int64()
			if !ok {
				return a[0].(*numeric.Dec).String() + " bytes", nil
			}
			return sizePretty(n), nil
		}),
		sys("pg_encoding_to_char", true, name, ts(tInt4), func(_ *Call, a []types.Datum) (types.Datum, error) {
			switch a[0].(int64) {
			case 6:
				return "UTF8", nil
			case 0:
				return "SQL_ASCII", nil
			}
			return "", nil
		}),
		sys("pg_char_to_encoding", true, tInt4, ts(name), func(_ *Call, a []types.Datum) (types.Datum, error) {
			switch strings.ToLower(strings.ReplaceAll(a[0].(string), "-", "")) {
			case "utf8", "unicode":
				return int64(6), nil
			case "sql_ascii":
				return int64(0), nil
			}
			return int64(-1), nil
		}),
		sys("getdatabaseencoding", false, name, none, constant("UTF8")),
		sys("pg_client_encoding", false, name, none, constant("UTF8")),
	)
	// The server.
	startTime := func(c *Call, _ []types.Datum) (types.Datum, error) {
		cat := catalogOf(c.Env)
		if cat == nil {
			return nil, nil
		}
		return cat.Action(callCtx(c), "pg_postmaster_start_time", nil)
	}
	tz := types.Of(types.TimestampTZ)
	add(
		sys("pg_is_in_recovery", false, b, none, constant(false)),
		sys("pg_is_wal_replay_paused", false, b, none, constant(false)),
		sys("pg_postmaster_start_time", false, tz, none, startTime),
		sys("pg_conf_load_time", false, tz, none, startTime),
		sys("inet_server_addr", false, reg(types.Inet), none, constant(nil)),
		sys("inet_client_addr", false, reg(types.Inet), none, constant(nil)),
		sys("inet_server_port", false, tInt4, none, constant(nil)),
		sys("inet_client_port", false, tInt4, none, constant(nil)),
		sys("txid_current", false, tInt8, none, constant(int64(1))),
		sys("txid_current_if_assigned", false, tInt8, none, constant(nil)),
		sys("pg_current_xact_id_if_assigned", false, tInt8, none, constant(nil)),
		sys("pg_my_temp_schema", false, oid, none, constant(int64(0))),
		sys("pg_is_other_temp_schema", true, b, ts(oid), constant(false)),
		sys("pg_relation_is_publishable", true, b, ts(reg(types.RegClass)), constant(true)),
		sys("pg_relation_is_updatable", true, tInt4, ts(reg(types.RegClass), b), constant(int64(28))),
		sys("pg_column_is_updatable", true, b, ts(reg(types.RegClass), types.Of(types.Int2), b), constant(true)),
		sys("pg_filenode_relation", true, reg(types.RegClass), ts(oid, oid), constant(nil)),
		sys("pg_relation_filenode", true, oid, ts(reg(types.RegClass)), constant(nil)),
		sys("pg_index_column_has_property", true, b, ts(reg(types.RegClass), tInt4, txt), indexProperty(2)),
		sys("pg_index_has_property", true, b, ts(reg(types.RegClass), txt), constant(false)),
		sys("pg_indexam_has_property", true, b, ts(oid, txt), constant(true)),
		sys("pg_stat_get_numscans", true, tInt8, ts(oid), constant(int64(0))),
		sys("pg_stat_get_live_tuples", true, tInt8, ts(oid), constant(int64(0))),
		sys("pg_jit_available", false, b, none, constant(false)),
		sys("pg_get_replica_identity_index", true, reg(types.RegClass), ts(reg(types.RegClass)), constant(nil)),
		sys("pg_partition_root", true, reg(types.RegClass), ts(reg(types.RegClass)), constant(nil)),
		sys("pg_encoding_max_length", true, tInt4, ts(tInt4), constant(int64(4))),
		sys("pg_collation_actual_version", true, txt, ts(oid), constant(nil)),
		sys("pg_database_collation_actual_version", true, txt, ts(oid), constant(nil)),
		sys("pg_collation_for", true, txt, ts(types.Of(types.Any)), func(c *Call, _ []types.Datum) (types.Datum, error) {
			if c.ArgTypes[0].IsTextLike() {
				return `"default"`, nil
			}
			return nil, nil
		}),
		sys("pg_column_size", true, tInt4, ts(types.Of(types.Any)), func(c *Call, a []types.Datum) (types.Datum, error) {
			switch v := a[0].(type) {
			case string:
				return int64(len(v) + 1), nil
			case []byte:
				return int64(len(v) + 1), nil
			}
			if l := c.ArgTypes[0].Info().Len; l > 0 {
				return int64(l), nil
			}
			return int64(8), nil
		}),
	)
	// Addresses of clients: values of type inet are made by the server only.
	inet := reg(types.Inet)
	add(
		sys("host", true, txt, ts(inet), func(_ *Call, a []types.Datum) (types.Datum, error) {
			addr, _, _ := strings.Cut(a[0].(string), "/")
			return addr, nil
		}),
		sys("text", true, txt, ts(inet), func(_ *Call, a []types.Datum) (types.Datum, error) {
			addr, bits := inetParts(a[0].(string))
			return addr + "/" + strconv.Itoa(bits), nil
		}),
		sys("abbrev", true, txt, ts(inet), func(_ *Call, a []types.Datum) (types.Datum, error) { return a[0], nil }),
		sys("family", true, tInt4, ts(inet), func(_ *Call, a []types.Datum) (types.Datum, error) {
			if strings.Contains(a[0].(string), ":") {
				return int64(6), nil
			}
			return int64(4), nil
		}),
		sys("masklen", true, tInt4, ts(inet), func(_ *Call, a []types.Datum) (types.Datum, error) {
			_, bits := inetParts(a[0].(string))
			return int64(bits), nil
		}),
	)
	// Names to objects; NULL where there is none.
	for _, r := range []struct {
		name string
		kind types.Kind
	}{{"to_regclass", types.RegClass}, {"to_regtype", types.RegType}, {"to_regproc", types.RegProc}, {"to_regnamespace", types.RegNamespace}, {"to_regrole", types.RegRole}} {
		add(sys(r.name, true, types.Of(r.kind), ts(txt), func(c *Call, a []types.Datum) (types.Datum, error) {
			d, err := regOf(c, r.kind, a[0].(string))
			if err != nil {
				return nil, nil //nolint:nilerr // that is what to_reg* are for
			}
			return d, nil
		}))
	}
	// Actions.
	vol := func(o *Overload, f rowFunc, strict bool) *Overload {
		o.Volatility = Volatile
		o.Kernel = volatileFn(func(c *Call, a []types.Datum) (types.Datum, error) {
			if strict && anyNull(a) {
				return nil, nil
			}
			return f(c, a)
		})
		return o
	}
	void := types.Of(types.Void)
	for _, a := range []struct {
		name string
		ret  types.Type
		args []types.Type
	}{
		{"pg_cancel_backend", b, ts(tInt4)}, {"pg_terminate_backend", b, ts(tInt4)}, {"pg_terminate_backend", b, ts(tInt4, tInt8)},
		{"pg_stat_statements_reset", void, none}, {"pg_stat_statements_reset", void, ts(oid)}, {"pg_stat_statements_reset", void, ts(oid, oid)},
		{"pg_stat_statements_reset", void, ts(oid, oid, tInt8)}, {"pg_stat_reset", void, none}, {"pg_stat_reset_single_table_counters", void, ts(oid)},
		{"pg_stat_reset_shared", void, ts(txt)}, {"pg_stat_reset_slru", void, ts(txt)}, {"pg_stat_clear_snapshot", void, none},
		{"pg_reload_conf", b, none}, {"pg_rotate_logfile", b, none}, {"pg_notification_queue_usage", tF8, none},
	} {
		add(vol(sys(a.name, true, a.ret, a.args, nil), action(a.name), true))
	}
	add(vol(sys("pg_notify", false, void, ts(txt, txt), nil), action("pg_notify"), false))
	add(vol(sys("pg_blocking_pids", true, types.ArrayOf(tInt4), ts(tInt4), nil), action("pg_blocking_pids"), true))
	channels := setFn("pg_listening_channels", txt, func(c *Call, _ []types.Datum) (SetReader, error) {
		v, err := action("pg_listening_channels")(c, nil)
		list, _ := v.([]types.Datum)
		return &listReader{t: txt, vals: list}, err
	}, "The channels that the session listens to.")
	channels.Volatility = Stable
	add(channels)
	for _, args := range [][]types.Type{ts(tInt8), ts(tInt4, tInt4)} {
		for _, n := range []string{"pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared"} {
			add(vol(sys(n, true, void, args, nil), action(n), true))
		}
		for _, n := range []string{"pg_try_advisory_lock", "pg_try_advisory_lock_shared", "pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared", "pg_advisory_unlock", "pg_advisory_unlock_shared"} {
			add(vol(sys(n, true, b, args, nil), action(n), true))
		}
	}
	add(vol(sys("pg_advisory_unlock_all", false, void, none, nil), action("pg_advisory_unlock_all"), false))
	sleep := func(d time.Duration, c *Call) error {
		if d <= 0 {
			return nil
		}
		t := time.NewTimer(d)
		defer t.Stop()
		ctx := callCtx(c)
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	add(
		vol(sys("pg_sleep", true, void, ts(tF8), nil), func(c *Call, a []types.Datum) (types.Datum, error) {
			s := math.Min(a[0].(float64), 1e9)
			return nil, sleep(time.Duration(s*float64(time.Second)), c)
		}, true),
		vol(sys("pg_sleep_for", true, void, ts(types.Of(types.Interval)), nil), func(c *Call, a []types.Datum) (types.Datum, error) {
			us, err := AddInterval(0, pgtext.DecodeInterval(a[0].([]byte)))
			if err != nil {
				return nil, err
			}
			return nil, sleep(time.Duration(us)*time.Microsecond, c)
		}, true),
		vol(sys("pg_sleep_until", true, void, ts(tz), nil), func(c *Call, a []types.Datum) (types.Datum, error) {
			return nil, sleep(time.Until(time.UnixMicro(a[0].(int64))), c)
		}, true),
	)
	return out
}

func tableSize(name string) rowFunc {
	return func(c *Call, a []types.Datum) (types.Datum, error) {
		cat := catalogOf(c.Env)
		if cat == nil {
			return nil, nil
		}
		n, ok := cat.TableSize(callCtx(c), name, uint32(a[0].(int64)))
		if !ok {
			return nil, nil
		}
		if name == "pg_indexes_size" {
			return int64(0), nil
		}
		return n, nil
	}
}

// indexProperty answers for our only kind of index, the primary key, which is
// ascending with nulls last.
func indexProperty(arg int) rowFunc {
	return func(_ *Call, a []types.Datum) (types.Datum, error) {
		switch strings.ToLower(a[arg].(string)) {
		case "asc", "nulls_last", "orderable", "returnable", "search_array", "search_nulls":
			return true, nil
		case "desc", "nulls_first", "distance_orderable":
			return false, nil
		}
		return nil, nil
	}
}

// sizePretty is pg_size_pretty: the unit changes at 10 of the next one.
func sizePretty(n int64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	abs := func(v int64) int64 {
		if v < 0 {
			return -v
		}
		return v
	}
	if abs(n) < 10*1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	// From here on one bit more is kept for rounding half away from zero.
	v := n / 512
	for i := 1; ; i++ {
		if abs(v) < 20*1024-1 || i == len(units)-1 {
			if v >= 0 {
				v = (v + 1) / 2
			} else {
				v = (v - 1) / 2
			}
			return fmt.Sprintf("%d %s", v, units[i])
		}
		v /= 1024
	}
}

// inetParts cuts an inet into its address and the length of its mask.
func inetParts(s string) (addr string, bits int) {
	addr, mask, ok := strings.Cut(s, "/")
	bits = 32
	if strings.Contains(addr, ":") {
		bits = 128
	}
	if n, err := strconv.Atoi(mask); ok && err == nil {
		bits = n
	}
	return addr, bits
}

// formatTypeOID is format_type: the SQL name of a type with its modifier.
func formatTypeOID(c *Call, oid int64, mod int32, has bool) string {
	if oid == 0 {
		return "-"
	}
	t, ok := types.ByOID(uint32(oid))
	if !ok {
		return RegTypeName(c.Ctx, c.Env, uint32(oid), "???")
	}
	inner := t
	suffix := ""
	if t.Kind == types.Array && t.Elem != nil {
		inner, suffix = *t.Elem, "[]"
	}
	if !has || mod < 0 {
		if inner.Kind == types.BpChar {
			if has { // asked with typmod -1
				return "bpchar" + suffix
			}
			return "character" + suffix
		}
		return inner.WithNotNull(false).Info().SQLName + suffix
	}
	switch inner.Kind {
	case types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ:
		inner.Mod = mod + 1
	default:
		inner.Mod = mod
	}
	return inner.String() + suffix
}

func regOf(c *Call, k types.Kind, s string) (types.Datum, error) {
	if _, err := strconv.ParseUint(s, 10, 32); err == nil {
		return nil, nil
	}
	return parseReg(c, k, s)
}
