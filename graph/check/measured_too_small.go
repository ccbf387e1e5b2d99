package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

var measuredTooSmall = Rule{
	ID:    "measured-too-small",
	Title: "the sizes tested are too small to show bandwidth",
	Doc: `Fires for a file of test output whose largest size is below 64 MiB. Info.
Silent: otherwise; a file without samples.`,
	Across: func(a *Across) {
		type largest struct {
			file  string
			bytes int64
			last  Evidence
		}
		var files []largest
		for _, s := range tests(a.Job) {
			i := slices.IndexFunc(files, func(f largest) bool { return f.file == s.Run.File })
			if i < 0 {
				i = len(files)
				files = append(files, largest{file: s.Run.File})
			}
			if p := s.Points[len(s.Points)-1]; p.Bytes >= files[i].bytes {
				files[i].bytes, files[i].last = p.Bytes, sampleEvidence(p.Fastest())
			}
		}
		for _, f := range files {
			if f.bytes >= smallestJudged {
				continue
			}
			a.Report(Finding{
				Severity:  Info,
				Certainty: Sure,
				Subjects:  []string{"file:" + f.file},
				Expected:  "sizes of at least " + probe.SizeText(smallestJudged),
				Observed:  fmt.Sprintf("the largest size is %s: latency, not bandwidth", probe.SizeText(f.bytes)),
				Evidence:  []Evidence{f.last},
				Fix:       "run the test up to 1 GiB or more, for example with -b 8 -e 4G -f 2",
			})
		}
	},
}
