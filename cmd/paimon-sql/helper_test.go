package main

import (
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// nil0 knows no names of OIDs.
type nil0 struct{}

func (nil0) OIDName(types.Kind, int64) (string, bool) { return "", false }
func (nil0) TextStyle() *pgtext.Style                 { return &pgtext.Style{} }
