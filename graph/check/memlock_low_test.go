package check

import "testing"

func TestMemlockLow(t *testing.T) {
	testLog(t, "memlock-low", []logCase{
		{name: "registration", log: []string{"a0!ibvwrap.cc:1 Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"}, want: []string{"critical likely host:a"}, says: []string{"ulimit -l"}},
		{name: "queue pair", log: []string{"a0!ibvwrap.cc:1 Call to ibv_create_qp failed", "b0!ibvwrap.cc:1 Call to ibv_create_qp failed"}, want: []string{"critical likely host:a host:b"}},
		{name: "another error", log: []string{"a0!ibvwrap.cc:1 Call to ibv_reg_mr failed with error Bad address"}},
	})
}
