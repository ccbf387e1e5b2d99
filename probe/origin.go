package probe

import (
	"fmt"
	"slices"
)

// Origin says where a fact was read. Where is a path within the source, or
// file:line for text.
type Origin struct {
	Source string `json:"source"`
	Where  string `json:"where"`
	// Fields names the JSON keys of the object that this origin supplied; empty
	// means all that are known. Merge fills it where several sources spoke.
	Fields []string `json:"fields,omitempty"`
}

func (o Origin) String() string {
	if o.Where == "" {
		return o.Source
	}
	return o.Source + " " + o.Where
}

// LineOf is the origin of what a line of a text file says; line 0 is the file as a
// whole.
func LineOf[N int | int64](source, file string, line N) Origin {
	if line == 0 {
		return Origin{Source: source, Where: file}
	}
	return Origin{Source: source, Where: fmt.Sprintf("%s:%d", file, line)}
}

// Source names. Each reader uses its own.
const (
	SourceSysfs       = "sysfs"
	SourceNVML        = "nvml"
	SourceHost        = "host"
	SourceIBStatus    = "ibstatus"
	SourceSMITopo     = "smitopo"
	SourceSMIQuery    = "smiquery"
	SourceHwlocXML    = "hwlocxml"
	SourceNCCLLog     = "nccllog"
	SourceNCCLXML     = "ncclxml"
	SourceKernLog     = "kernlog"
	SourceNCCLTests   = "nccltests"
	SourceNVBandwidth = "nvbandwidth"
	SourceNCCLEnv     = "ncclenv"
	SourceInspector   = "inspector"
	SourceNCCLRAS     = "ncclras"
	SourceFlightRec   = "flightrec"
	SourceInferred    = "inferred"
)

// OriginOf returns the origin of one field of an object: the one that names the
// field, else the first.
func OriginOf(origins []Origin, field string) Origin {
	for _, o := range origins {
		if slices.Contains(o.Fields, field) {
			return Origin{Source: o.Source, Where: o.Where}
		}
	}
	if len(origins) == 0 {
		return Origin{Source: "unknown"}
	}
	return Origin{Source: origins[0].Source, Where: origins[0].Where}
}

// Gap is something a source could not read: not an error and not a default.
type Gap struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	How    string `json:"how,omitempty"` // what to run or do to get it
	Origin Origin `json:"origin"`
}

// Conflict is a fact on which two sources of one host disagree. The first value
// is the one that Merge kept.
type Conflict struct {
	Subject string          `json:"subject"`
	Field   string          `json:"field"`
	Values  []ConflictValue `json:"values"`
}

// ConflictValue is one side of a Conflict.
type ConflictValue struct {
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
}
