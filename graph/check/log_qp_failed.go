package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var logQPFailed = Rule{
	ID:    "log-qp-failed",
	Title: "Queue pair cannot be connected, or its peer does not answer",
	Doc: `Fires for each kind of failure of an InfiniBand or RoCE connection: ibv_modify_qp with
error 110, 113 or 22, and completions with status 12 (retries exceeded). Subjects are the
ports, or the hosts where the text does not name one.

critical.

Silent for flushed requests (status 5), which follow another failure.`,
	Across: runLogQPFailed,
}

// qpFailure is a kind of failure, by a part of its text.
type qpFailure struct {
	text     *regexp.Regexp
	what, do string
}

// qpFailures is searched in order.
var qpFailures = []qpFailure{
	{regexp.MustCompile(`ibv_modify_qp .*(\b22\b|Invalid argument)`), "ibv_modify_qp: invalid argument (22)",
		"administrator: the two ends do not fit: InfiniBand against RoCE, different MTU, partition (pkey) or GID type; leave adapters of the other kind out with NCCL_IB_HCA"},
	{regexp.MustCompile(`ibv_modify_qp .*(\b113\b|No route to host)`), "ibv_modify_qp: no route to the peer (113)",
		"network administrator: the RoCE network has no route between these ports (VLAN, gateway, GID); look at the GIDs with show_gids"},
	{regexp.MustCompile(`ibv_modify_qp .*(\b110\b|timed out)`), "ibv_modify_qp: timed out (110)", cannotReach},
	{regexp.MustCompile(`ibv_modify_qp`), "ibv_modify_qp failed", cannotReach},
	{regexp.MustCompile(`Got completion`), "no answer from the peer: retries exceeded (status 12)", cannotReach},
}

const cannotReach = "network administrator: these two ports cannot reach each other: GID index, VLAN, rails that are not connected, cable or switch port; try ib_write_bw between them. Where rings work and only pairs on different rails fail, NCCL_CROSS_NIC=0 keeps both ends on one rail"

var (
	qpPort = regexp.MustCompile(`\bon dev ([\w+-]+):(\d+)`)
	qpHCA  = regexp.MustCompile(`\bhca ([\w+-]+)`)
	qpPeer = regexp.MustCompile(`remote GID ([0-9a-fA-F:.]+)|from peer ([^ <]+)`)
)

func runLogQPFailed(a *Across) {
	said := a.said()
	for i, kind := range qpFailures {
		var events []probe.Event
		var subjects, peers []string
		for _, e := range said {
			if slices.IndexFunc(qpFailures, func(k qpFailure) bool { return k.text.MatchString(e.Text) }) != i {
				continue
			}
			events = append(events, e)
			subject := HostKey(e.Host)
			if m := qpPort.FindStringSubmatch(e.Text); m != nil {
				subject = a.Key(e.Host, fmt.Sprintf("port:%s/%s", m[1], m[2]))
			} else if m := qpHCA.FindStringSubmatch(e.Text); m != nil {
				subject = a.Key(e.Host, "hca:"+m[1])
			}
			subjects = append(subjects, subject)
			if m := qpPeer.FindStringSubmatch(e.Text); m != nil {
				peers = append(peers, strings.TrimSuffix(m[1]+m[2], ","))
			}
		}
		if len(events) == 0 {
			continue
		}
		slices.SortFunc(subjects, compareKeys)
		to := ""
		if peers = names(peers); len(peers) > 0 {
			to = ", to " + listed(peers)
		}
		a.Report(Finding{
			Severity: Critical, Subjects: slices.Compact(subjects),
			Expected: "a connection between the two ports",
			Observed: kind.what + " on " + listed(eventHosts(events)) + to,
			Evidence: quotes(events), Fix: kind.do,
		})
	}
}
