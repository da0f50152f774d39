package vectorized

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

type initParam struct{}

func (p *initParam) value(context.Context) (types.Datum, error) { return nil, nil }
