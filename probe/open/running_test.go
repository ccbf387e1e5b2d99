package open

import (
	"strings"
	"testing"
)

// What running jobs write is told apart from each other and from all else.
func TestRunningJobs(t *testing.T) {
	const (
		records = `{"header":{"id":"0x1","rank":0,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","hostname":"gx07","pid":1},` +
			`"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":8192,"coll_exec_time_us":10,"coll_timing_source":"kernel_gpu"}}` + "\n"
		ras  = `{"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [{"hash": "0x1", "secondary_hash": "0x2:0x3", "size": 1, "ranks": [{"rank": 0}], "missing_ranks": []}]}`
		text = "NCCL version 2.27.3 compiled with CUDA 12.9\nCUDA runtime version 12090, driver version 13000\n\nJob summary\n===========\n\n" +
			"  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n      1          8            1          8        8\n\n" +
			"Communicators... (0.00s)\n=============\n\nGroup     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n" +
			"    #  in group  per comm  per node  per comm  in group\n    0         1         1         8         8         8   RUNNING      OK\n"
		entry = `{"process_group": ["0", "default_pg"], "collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "time_created_ns": 1781852157000000000, "state": "scheduled"}`
		dump  = `{"version": "2.9", "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1]"}}, "pg_status": {}, "entries": [` + entry + `]}`
	)
	long := `{"entries": [` + strings.Repeat(entry+",", headSize/len(entry)+1) + entry + `], "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1]"}}}`
	for _, c := range []struct{ text, kind string }{
		{records, kindInspector}, {strings.Repeat(records, headSize/len(records)+2), kindInspector}, {ras, kindNCCLRAS}, {text, kindNCCLRAS}, {dump, kindFlightRec}, {long, kindFlightRec},
	} {
		cl, sources, err := Read([]string{write(t, "x.log", c.text)}, nil)
		if err != nil || len(sources) != 1 || sources[0].Kind != c.kind {
			t.Errorf("%v, %v; want %s", sources, err, c.kind)
			continue
		}
		if cl.NoJob() {
			t.Errorf("%s: nothing of a job", c.kind)
		}
	}
	pickle := "\x80\x02}q\x00(X\x09\x00\x00\x00pg_configq\x01}X\x09\x00\x00\x00pg_status}u."
	if _, _, err := Read([]string{write(t, "trace_rank_0", pickle)}, nil); err == nil || !strings.Contains(err.Error(), "trace_rank_0: a pickled flight recorder dump") {
		t.Errorf("a pickle: %v", err)
	}
	if _, _, err := Read([]string{write(t, "gpu.prom", `nccl_bus_bandwidth_gbs{nranks="8"} 1`)}, nil); err == nil || !strings.Contains(err.Error(), "NCCL_INSPECTOR_PROM_DUMP=0") {
		t.Errorf("a Prometheus file: %v", err)
	}
}
