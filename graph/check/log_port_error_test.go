package check

import "testing"

func TestLogPortError(t *testing.T) {
	testLog(t, "log-port-error", []logCase{
		{name: "flapping", log: []string{"a0!net_ib.cc:1 NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)", "a0!net_ib.cc:1 NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)"},
			want: []string{"critical sure port:mlx5_0/1"}, says: []string{"cable"}},
		{name: "the port is not named", log: []string{"a0!net_ib.cc:1 NET/IB : Got async event : port error"}, want: []string{"critical sure host:a"}},
		{name: "once, after all ranks ended", log: lines(comm("a", 2, "Destroy"), []string{"a0!net_ib.cc:1 NET/IB : Got async event : port error"})},
		{name: "twice", log: lines(comm("a", 2, "Destroy"), []string{"a0!net_ib.cc:1 NET/IB : Got async event : port error", "a0!net_ib.cc:1 NET/IB : Got async event : port error"}), want: []string{"critical sure host:a"}},
		{name: "healthy", log: comm("a", 2, "COMPLETE")},
	})
}
