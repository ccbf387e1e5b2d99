package tune

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// Schema is the "schema" member of a plan document.
const Schema = "ncclmap.tune/v1"

// Plan is the settings for jobs on one machine, with what was declined.
type Plan struct {
	Schema string `json:"schema"`
	// Fingerprint names the shape of the machine that the plan was made for:
	// models, links and classes, no names or serial numbers.
	Fingerprint string          `json:"fingerprint"`
	NCCL        string          `json:"nccl_version,omitempty"` // that the sources state, several parted by ", "; "" = none does
	Date        string          `json:"date,omitempty"`         // when it was made, 2006-01-02; set by the caller, who has a clock
	Hosts       []string        `json:"hosts,omitempty"`        // that it was made for; none = the one machine
	Variables   []Variable      `json:"variables"`
	Declined    []Declined      `json:"declined"`
	Findings    []check.Finding `json:"findings"`
	Gaps        []check.Gap     `json:"gaps"`
}

// Variable is one setting and everything that speaks for it.
type Variable struct {
	Name     string           `json:"name"`
	Value    string           `json:"value"`
	Why      string           `json:"why"`
	Evidence []check.Evidence `json:"evidence"`
	Risk     string           `json:"risk"`
	Since    string           `json:"since"` // first NCCL version that reads it so
	Until    string           `json:"until"` // last version it helps with; "" = no end
	Verify   string           `json:"verify"`
	// Hosts is where it is to be set; none = wherever the plan goes.
	Hosts []string `json:"hosts,omitempty"`
}

// Declined is a variable that was considered and left at NCCL's default.
type Declined struct {
	Name     string           `json:"name"`
	Why      string           `json:"why"`
	Evidence []check.Evidence `json:"evidence,omitempty"`
}

// Head says what the plan is for, until when it counts and whether it sets anything.
func (p Plan) Head() []string {
	made := "Made"
	if p.Date != "" {
		made += " on " + p.Date
	}
	nccl := "an unknown version of NCCL"
	if p.NCCL != "" {
		nccl = "NCCL " + p.NCCL
	}
	head := []string{
		"NCCL settings by ncclmap.",
		made + " for topology fingerprint " + p.Fingerprint + " and " + nccl + ".",
		"Check again after a change of either: ncclmap tune --format json names both as they are then.",
	}
	if len(p.Hosts) > 1 {
		head = append(head, "For "+hostList(p.Hosts)+".")
	}
	if len(p.Variables) == 0 {
		head = append(head, "No variable is set: nothing seen here speaks against NCCL's defaults.")
	}
	for _, v := range p.Variables {
		if len(v.Hosts) > 0 {
			head = append(head, fmt.Sprintf("Not in this file, since only for %s: %s=%s (--host writes one host's)", hostList(v.Hosts), v.Name, v.Value), "  "+v.Why)
		}
	}
	return head
}

// hostList names hosts; of many, the first, the last and how many.
func hostList(names []string) string {
	if len(names) <= 6 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s … %s, %d hosts", names[0], names[len(names)-1], len(names))
}

// Considered lists what was declined, a line each.
func (p Plan) Considered() []string {
	lines := []string{"", "Considered and left at NCCL's default:"}
	for _, d := range p.Declined {
		lines = append(lines, fmt.Sprintf("  %s: %s", d.Name, d.Why))
	}
	return lines
}

// Settings spells the variables of all hosts for probe/ncclenv, each with its
// reason, evidence, risk, versions and way to verify.
func (p Plan) Settings() (settings []ncclenv.Setting) {
	for _, v := range p.Variables {
		if len(v.Hosts) > 0 {
			continue // one file would be wrong for the others; see Head
		}
		c := []string{v.Why}
		for _, e := range v.Evidence {
			c = append(c, "evidence: "+e.String())
		}
		valid := "since NCCL " + v.Since
		if v.Until != "" {
			valid += ", no longer needed after " + v.Until
		}
		c = append(c, "risk: "+v.Risk, "valid: "+valid, "verify: "+v.Verify)
		settings = append(settings, ncclenv.Setting{Name: v.Name, Value: v.Value, Comment: c})
	}
	return settings
}

// String is a plan in one line.
func (p Plan) String() string {
	if len(p.Variables) == 0 {
		return fmt.Sprintf("no variable set, %d considered and declined", len(p.Declined))
	}
	var names []string
	for _, v := range p.Variables {
		names = append(names, v.Name+"="+v.Value)
	}
	return fmt.Sprintf("%s; %d considered and declined", strings.Join(names, " "), len(p.Declined))
}
