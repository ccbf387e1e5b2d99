package check_test

import (
	"fmt"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
)

func ExampleRun() {
	m, err := fixtures.Load("h100x8-nvlink-down")
	if err != nil {
		fmt.Println(err)
		return
	}
	topo, err := graph.Build(m.Inventory)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range check.Run(topo, check.All()).Findings {
		fmt.Println(f.Severity, f.Rule, f.Subjects)
		fmt.Println("expected:", f.Expected)
		fmt.Println("observed:", f.Observed)
	}
	// Output:
	// critical nvlink-down [gpu:0000:61:00.0]
	// expected: 18 NVLinks up per GPU (H100 SXM5 80GB), 450 GB/s per direction
	// observed: 9 up on GPU3 (down: 9, 10, 11, 12, 13, 14, 15, 16, 17), 225 GB/s per direction
}
