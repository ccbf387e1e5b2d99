package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// message is a text that NCCL prints, and the rule that judges it.
type message struct {
	rule string
	text *regexp.Regexp // the part that the versions share
	// echo marks what only follows from a text of the rule: it is judged with it
	// and proves nothing alone.
	echo bool
}

// messages is in the order of the catalogue. Texts are from NCCL's sources 2.4 to
// 2.30.7; reference/nccl/logs.md says which version prints which.
var messages = []message{
	{rule: "pcie-speed-unreadable", text: regexp.MustCompile(`could not read \S*max_link_(speed|width)|KV Convert to int : could not find value of ''`)},
	{rule: "nvlink-p2p-disabled", text: regexp.MustCompile(`P2P is disabled between NVLINK connected GPUs`)},
	{rule: "imex-missing", text: regexp.MustCompile(`Cuda failure.*(\b800\b|operation not permitted)|MNNVL .*available but not working|Check the IMEX`)},
	{rule: "log-plugin-missing", text: regexp.MustCompile(`NET/Plugin.*(Could not find|No plugin found)`)},
	{rule: "log-interface-unroutable", text: regexp.MustCompile(`no socket interface found`)},
	{rule: "log-dmabuf-failed", text: regexp.MustCompile(`ibv_reg_dmabuf_mr.* failed`)},
	{rule: "log-qp-failed", text: regexp.MustCompile(`ibv_modify_qp failed|Got completion .*(with error 12\b|status=(\w+\()?12\b)`)},
	{rule: "log-qp-failed", text: regexp.MustCompile(`Got completion .*(with error 5\b|status=(\w+\()?5\b)`), echo: true}, // flushed after the first failure
	{rule: "log-port-error", text: regexp.MustCompile(`async event ?: ?port (error|active)|async fatal event`)},
	{rule: "log-duplicate-gpu", text: regexp.MustCompile(`Duplicate GPU detected|Multiple [Rr]anks (are|detected) using the same GPU`)},
	{rule: "log-search-failed", text: regexp.MustCompile(`Could not find a path for pattern`)},
	{rule: "log-nvls-failed", text: regexp.MustCompile(`^\S*nvls\.cc:|Failed to bind NVLink SHARP|Cuda failure.*\b401\b`)},
	{rule: "log-version-mixed", text: regexp.MustCompile(`Mismatched NCCL version detected`)},
	{rule: "log-algo-unavailable", text: regexp.MustCompile(`(?i)no algorithm/protocol available for function`)},
	{rule: "shm-too-small", text: regexp.MustCompile(`posix_fallocate failed: No space left|failed to extend /dev/shm/nccl-`)},
	{rule: "shm-too-small", text: regexp.MustCompile(`Error while creating shared memory segment`), echo: true},
	{rule: "memlock-low", text: regexp.MustCompile(`ibv_reg_mr\S* failed.*Cannot allocate memory|ibv_create_qp failed`)},
	{rule: "verbs-missing", text: regexp.MustCompile(`ibv_open_device failed|Unable to open device|Failed to open libibverbs`)},
}

// messageOf returns the message that an event of NCCL is; nil for all others. A
// warning's place in NCCL's source counts as the begin of its text.
func messageOf(e probe.Event) *message {
	if e.Kind != probe.EventWarning && e.Kind != probe.EventNote {
		return nil
	}
	text := e.Text
	if e.Site != "" {
		text = e.Site + ": " + text
	}
	for i := range messages {
		if messages[i].text.MatchString(text) {
			return &messages[i]
		}
	}
	return nil
}

// said returns the events that the rule judges, without echoes.
func (a *Across) said() []probe.Event { return a.saidOf(a.rule.ID) }

func (a *Across) saidOf(rule string) []probe.Event {
	var out []probe.Event
	for i, m := range a.judged {
		if m != nil && m.rule == rule && !m.echo {
			out = append(out, a.Job.Events[i])
		}
	}
	return out
}

// judgedElsewhere are the kinds of events that rules read by kind: gpu-faulted and
// measured-wrong-data. Notes are facts, no faults.
var judgedElsewhere = map[string]bool{probe.EventNote: true, probe.EventXid: true, probe.EventWrongData: true}

// unjudgedEvents says that logs hold events (Xids, warnings) which no rule reads:
// silence about them is no verdict.
func unjudgedEvents(a *Across) {
	var subjects []string
	for i, e := range a.Job.Events {
		if judgedElsewhere[e.Kind] || a.judged[i] != nil {
			continue
		}
		s := HostKey(e.Host)
		if e.Subject != "" {
			s = a.Key(e.Host, e.Subject)
		} else if e.Host == "" && len(a.Hosts) == 1 {
			s = HostKey(a.Hosts[0].Inv.Host.Name)
		}
		if !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	a.Gap("events in logs are read but not judged by any rule of this version", "look at them with ncclmap log, or ncclmap probe --format json", subjects...)
}

// quotes is the evidence of some events, not more than a reader wants to see.
func quotes(events []probe.Event) []Evidence {
	var out []Evidence
	for _, e := range events {
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		out = append(out, evidence(e.Origins, "", "", "%s%s%s", hostPrefix(e.Host), clip(e.Text, 300), times))
	}
	return few(out)
}

// few cuts evidence that repeats itself over many hosts and ranks.
func few(proof []Evidence) []Evidence {
	const most = 8
	return proof[:min(len(proof), most)]
}

func hostPrefix(host string) string {
	if host == "" {
		return ""
	}
	return host + ": "
}

// clip shortens a text to n bytes and a mark.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// eventHosts returns the hosts of some events, sorted.
func eventHosts(events []probe.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Host)
	}
	return names(out)
}

// names sorts host names and drops repeats.
func names(hosts []string) []string {
	slices.SortFunc(hosts, probe.CompareNames)
	return slices.Compact(hosts)
}

func hostKeys(hosts []string) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = HostKey(h)
	}
	return out
}

// listed names some hosts or other things, and how many more there are.
func listed(list []string) string {
	shown := slices.Clone(list)
	for i, h := range shown {
		if h == "" {
			shown[i] = "a host that the log does not name"
		}
	}
	return someNames(shown)
}
