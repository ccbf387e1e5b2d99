package check

import "testing"

func TestLogQPFailed(t *testing.T) {
	testLog(t, "log-qp-failed", []logCase{
		{name: "the port is named", log: []string{"a0!ibvwrap.cc:1 Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_3:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.0.3.1, remote GID ::ffff:10.0.1.2"},
			want: []string{"critical sure port:mlx5_3/1"}, says: []string{"timed out (110)", "to ::ffff:10.0.1.2", "NCCL_CROSS_NIC=0"}},
		{name: "two kinds", log: []string{"a0!ibvwrap.cc:1 Call to ibv_modify_qp failed with error Invalid argument", "a0!ibvwrap.cc:1 Call to ibv_modify_qp failed with error No route to host"},
			want: []string{"critical sure host:a", "critical sure host:a"}, says: []string{"invalid argument (22)", "no route to the peer (113)"}},
		{name: "no answer", log: []string{"a0!net_ib.cc:1 NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_1"},
			want: []string{"critical sure hca:mlx5_1"}, says: []string{"to 10.0.0.2"}},
		{name: "flushed after it", log: []string{"a0!net_ib.cc:1 NET/IB : Got completion from peer 10.0.0.2<4791> with error 5, opcode 0, len 0, vendor err 244"}},
		{name: "healthy", log: comm("ab", 1, "COMPLETE")},
	})
}
