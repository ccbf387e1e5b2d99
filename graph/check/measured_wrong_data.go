package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var measuredWrongData = Rule{
	ID:    "measured-wrong-data",
	Title: "a collective computed wrong results",
	Doc: `Fires where a test counts wrong elements (#wrong) or values out of bounds. Critical.
Silent: results that were not checked (-c 0, N/A).`,
	Across: runMeasuredWrongData,
}

func runMeasuredWrongData(a *Across) {
	var found []Finding
	for _, e := range a.Job.Events {
		if e.Kind != probe.EventWrongData {
			continue
		}
		o := probe.OriginOf(e.Origins, "")
		file, _, _ := strings.Cut(o.Where, ":")
		subjects := []string{"collective:" + e.Class, "file:" + file}
		if e.Class == "" {
			subjects = subjects[1:]
		}
		fact := Evidence{Source: o.Source, Where: o.Where, Fact: e.Text}
		if i := slices.IndexFunc(found, func(f Finding) bool { return slices.Equal(f.Subjects, subjects) }); i >= 0 {
			found[i].Evidence = append(found[i].Evidence, fact)
			continue
		}
		found = append(found, Finding{
			Severity:  Critical,
			Certainty: Sure,
			Subjects:  subjects,
			Expected:  "no wrong element",
			Observed:  e.Text,
			Evidence:  []Evidence{fact},
			Fix:       "stop jobs on these hosts. Then, in this order: remove a forced LL128 (NCCL_PROTO), check the IOMMU (boot with iommu=pt) and ACS, check links (nvidia-smi nvlink -e, Xids in the kernel log, port error counters); run the test again with -c 1",
		})
	}
	for _, f := range found {
		if n := len(f.Evidence); n > 1 {
			f.Observed += fmt.Sprintf("; %d tests in all", n)
		}
		a.Report(f)
	}
}
